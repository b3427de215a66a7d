// Upper bounds on the work that each node can do from a start in each cell of time, maintained
// while free time changes.
//
// Time is cut into cells of a few rows each. A byte for each (cell, node) holds the class (a
// quantized logarithm) of the largest work that the node can do from a start within the cell;
// rounding never makes it too small, so a search that skips by class misses no node. A bit is set
// if a free span of the node starts in the cell: every window, except one at the query's earliest
// start, has such a part.
//
//   classes_    [cell * width_ + rank]  1 byte         width_: number of nodes, padded to 64
//   start_bits_ [cell * width_ + rank]  1 bit          rank: position of the node by rising rate
//
// Memory: at most 72 bytes for each slot. Cost: O(cells whose class changes) to book or release a
// part; O(nodes / 64 + n) to walk the nodes of a cell.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/pool/availability.hpp"
#include "slotkern/slots/prepared.hpp"

namespace slotkern {

namespace detail {

// Writes the classes of the work possible at this speed between each edge and `until`; 47 and
// `offset` as in MaxWorkMatrix::unclamped_class().
SLOTKERN_CLONES static inline void fill_classes(const double* edges, std::size_t count,
                                                double until, double speed, std::int64_t offset,
                                                 std::uint8_t* to) {
  for (std::size_t j = 0; j < count; ++j) {
    const double work = std::max(until - edges[j], 0.0) * speed;
    const auto place = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(work) >> 47) + offset;
    to[j] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(place, 0, 255));
  }
}

}  // namespace detail

class MaxWorkMatrix {
 public:
  struct RankedNode {  // sorted by rising rate
    double rate;  // lowest price / performance
    double performance, price;
    std::size_t place;
    bool has_one_price;  // true if all its slots have this price
  };

  // Classes for each doubling of work, and in total. Work above the last class is clamped to it.
  static constexpr std::int64_t kClassesPerOctave = 32, kClasses = 256;
  // One row for 0.75 slots: blocks of 64 rows are built with 48 slots.
  static constexpr std::size_t kMaxBytesPerRow = 48;

  // Number of cells and of class bytes for these slots.
  static std::size_t count_cells(const PreparedSlots& prepared) {
    const std::size_t rows = prepared.slots.size();
    return std::min(rows / prepared.options.rows_per_cell,
                    kMaxBytesPerRow * rows / width_for(prepared));
  }
  static std::size_t count_bytes(const PreparedSlots& prepared) {
    return count_cells(prepared) * width_for(prepared);
  }

  // `prices` by row of the origin array. `largest`: volume that must be distinguished; work above
  // twice this volume shares the last class.
  void build(const PreparedSlots& prepared, const std::vector<double>& prices,
             const AvailabilityTimeline& spans, double largest) {
    std::vector<double> starts;
    starts.reserve(prepared.slots.size());
    prepared.each_row([&](std::size_t row) { starts.push_back(prepared.slots[row].start); });
    const std::size_t num_cells = std::min(count_cells(prepared), starts.size());
    edges_.assign(1, -kInfinity);
    for (std::size_t j = 1; j < num_cells; ++j) {
      const double edge = starts[j * starts.size() / num_cells];
      if (edge > edges_.back()) edges_.push_back(edge);
    }
    build_buckets(prepared.options.cell_buckets);
    width_ = width_for(prepared);
    top_class_bits_ = exponent_bits(largest) + kClassesPerOctave;
    rank(prepared, prices, spans);
    classes_.assign(edges_.size() * width_, 0);
    start_bits_.assign(classes_.size() / 64, 0);
    std::vector<std::uint8_t> lines(64 * size());
    for (std::size_t rank = 0; rank < nodes_.size(); rank += 64) {
      poll();
      fill_nodes(spans.free(), rank, std::min(nodes_.size(), rank + 64), lines);
    }
  }
  void clear() { classes_ = {}, start_bits_ = {}; }

  // The span [begin, end) was removed from the free time of node k, which is now `free`.
  void on_booked(std::size_t k, const std::vector<Span>& free, double begin, double end) {
    const std::size_t before = count_started(free, begin), at = cell_at(begin), last = cell_at(end);
    const bool left = before > 0 && free[before - 1].end == begin;
    update_classes(k, free, left ? cell_at(free[before - 1].start) : at, at, last,
                   [](std::size_t, std::size_t, std::size_t) {});
    // Even if `left`: the span that ends at `begin` may be an adjacent one, not the remainder of
    // the booked span, which then started at `begin`.
    update_start_bit(k, free, at);
    if (last != at) update_start_bit(k, free, last);
  }
  // The span `freed` was added and is now a part of `grown`. Calls on_changed(j, before, now) for
  // each cell j whose class changed.
  template <class OnChanged>
  void on_released(std::size_t k, const std::vector<Span>& free, const Span& freed,
                   const Span& grown, OnChanged on_changed) {
    update_classes(k, free, cell_at(grown.start), cell_at(freed.start), cell_at(freed.end),
                   on_changed);
    update_start_bit(k, free, cell_at(freed.start));
    update_start_bit(k, free, cell_at(freed.end));
  }
  // The free time of node k has changed anywhere in [begin, end), and no span that starts earlier
  // has. Calls on_changed as on_released() does.
  template <class OnChanged>
  void on_replaced(std::size_t k, const std::vector<Span>& free, double begin, double end,
                   OnChanged on_changed) {
    const std::size_t rank = ranks_[k], first = cell_at(begin), last = cell_at(end);
    for_each_class(free, count_started(free, this->end(last)), first, last, speed(rank),
                   [&](std::size_t j, std::uint8_t c) {
                     std::uint8_t& byte = classes_[j * width_ + rank];
                     if (byte != c) on_changed(j, byte, c);
                     byte = c;
                     return true;
                   });
    for (std::size_t j = first; j <= last; ++j) update_start_bit(k, free, j);
  }
  // All time of node k was removed.
  void on_node_removed(std::size_t k) {
    update_classes(k, {}, 0, 0, size() - 1, [](std::size_t, std::size_t, std::size_t) {});
    for (std::size_t j = 0; j < size(); ++j) update_start_bit(k, {}, j);
  }

  std::size_t size() const { return edges_.size(); }
  // Begin and end of cell j.
  double begin(std::size_t j) const { return edges_[j]; }
  double end(std::size_t j) const { return j + 1 < edges_.size() ? edges_[j + 1] : kInfinity; }
  std::size_t cell_at(double t) const {
    const std::size_t b = bucket(t);
    std::size_t at = buckets_[b];  // branch-free: the position is unpredictable
    for (std::size_t size = buckets_[b + 1] - at + 1; size > 1; size -= size / 2)
      at += (edges_[at + size / 2] <= t) * (size / 2);
    return at;
  }

  std::size_t nodes() const { return nodes_.size(); }
  const RankedNode& node(std::size_t rank) const { return nodes_[rank]; }
  double rate(std::size_t rank) const { return rates_[rank]; }

  // True if the class of this work is not clamped.
  bool can_distinguish(double work) const {
    const std::int64_t c = unclamped_class(work);
    return c >= 1 && c < kClasses;
  }
  std::uint8_t class_of(double work) const {
    return static_cast<std::uint8_t>(
        std::clamp<std::int64_t>(unclamped_class(work), 0, kClasses - 1));
  }

  // Enumerates, by rank, the nodes that can do work of a class from a start in a cell. A filter:
  // classes are upper bounds.
  class NodeEnumerator {
   public:
    static constexpr std::size_t kEnd = ~std::size_t{0};

    // The caller guarantees that all nodes of rank below 64 * `skipped_groups` have a lower class.
    NodeEnumerator(const MaxWorkMatrix& cells, std::size_t cell, std::uint8_t min_class,
         std::size_t skipped_groups)
        : classes_(cells.classes_.data() + cell * cells.width_),
          start_bits_(cells.start_bits_.data() + cell * cells.width_ / 64), width_(cells.width_),
          min_class_(min_class), base_(64 * skipped_groups),
          hits_(detail::mask_at_least64(classes_ + base_, min_class)) {}

    std::size_t next() {
      while (!hits_) {
        if ((base_ += 64) >= width_) return kEnd;
        hits_ = detail::mask_at_least64(classes_ + base_, min_class_);
      }
      return pop();
    }
    // Like next(), but next_starting_here() returns only nodes with a free span that starts in the
    // cell, and next_already_free() only the others.
    std::size_t next_starting_here() {
      hits_ &= start_bits_[base_ / 64];
      while (!hits_) {
        if ((base_ += 64) >= width_) return kEnd;
        if (start_bits_[base_ / 64])
          hits_ = detail::mask_at_least64(classes_ + base_, min_class_) & start_bits_[base_ / 64];
      }
      return pop();
    }
    std::size_t next_already_free() {
      std::size_t rank;
      do rank = next();
      while (rank != kEnd && starts_here(rank));
      return rank;
    }
    bool starts_here(std::size_t rank) const { return start_bits_[rank / 64] >> rank % 64 & 1; }

   private:
    std::size_t pop() {
      const std::size_t rank = base_ + static_cast<std::size_t>(std::countr_zero(hits_));
      hits_ &= hits_ - 1;
      return rank;
    }

    const std::uint8_t* classes_;
    const std::uint64_t* start_bits_;
    std::size_t width_;
    std::uint8_t min_class_;
    std::size_t base_;
    std::uint64_t hits_;
  };

  // Prefetches the classes that a walk from there reads first.
  void prefetch_cell(std::size_t cell, std::size_t skipped_groups) const {
    const std::uint8_t* const at = classes_.data() + cell * width_ + 64 * skipped_groups;
    slotkern::prefetch(at), slotkern::prefetch(at + 64);
  }

 private:
  static std::int64_t exponent_bits(double x) {
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) >> 47);
  }
  // The class of this work before clamping to [0, kClasses).
  std::int64_t unclamped_class(double work) const {
    return exponent_bits(work) - top_class_bits_ + kClasses - 1;
  }

  // Index of the uniform time bucket of t. Monotone in t, also in floating point. So the cell of t
  // is between the last cell that begins before the bucket and the last that begins in it.
  std::size_t bucket(double t) const {
    const double at = (t - first_edge_) * per_time_;
    return at > 0 ? static_cast<std::size_t>(std::min(at, last_bucket_)) : 0;
  }
  void build_buckets(std::size_t count) {
    first_edge_ = edges_.size() > 1 ? edges_[1] : 0;
    const double span = edges_.back() - first_edge_;
    per_time_ = span > 0 ? static_cast<double>(count) / span : 0;
    last_bucket_ = static_cast<double>(count - 1);
    buckets_.resize(count + 1);
    for (std::size_t b = 0, j = 0; b <= count; ++b) {
      while (j + 1 < edges_.size() && bucket(edges_[j + 1]) < b) ++j;
      buckets_[b] = static_cast<std::uint32_t>(j);
    }
  }

  static std::size_t width_for(const PreparedSlots& prepared) {
    return (prepared.nodes.size() + 63) / 64 * 64;
  }
  void rank(const PreparedSlots& prepared, const std::vector<double>& prices,
            const AvailabilityTimeline& spans) {
    nodes_.clear();
    for (std::size_t k = 0; k < prepared.nodes.size(); ++k) {
      const Node& node = prepared.nodes[k];
      bool has_one_price = true;
      for (const Span& span : spans.free()[k])
        has_one_price = has_one_price && prices[span.origin_row] == node.min_price;
      const double rate = node.min_price / node.performance;
      nodes_.push_back({rate, node.performance, node.min_price, k, has_one_price});
    }
    const auto check_price = [&](std::size_t k, const Span& span) {
      nodes_[k].has_one_price =
          nodes_[k].has_one_price && prices[span.origin_row] == nodes_[k].price;
    };
    // Booked and withheld spans may become free again.
    spans.bookings().for_each(check_price), spans.for_each_withheld(check_price);
    std::sort(nodes_.begin(), nodes_.end(), [](const RankedNode& a, const RankedNode& b) {
      return a.rate != b.rate ? a.rate < b.rate : a.place < b.place;
    });
    ranks_.resize(nodes_.size());
    rates_.clear();
    for (const RankedNode& node : nodes_) {
      ranks_[node.place] = rates_.size();
      rates_.push_back(node.rate);
    }
  }

  // Returns the number of spans that start before t. Branch-free.
  static std::size_t count_started(const std::vector<Span>& spans, double t) {
    std::size_t count = 0;
    for (std::size_t size = spans.size(), half; size > 0; size -= half) {
      half = (size + 1) / 2;
      count += (spans[count + half - 1].start < t) * half;
    }
    return count;
  }

  // Calls put(j, class of the node from a start in cell j) for the cells last, last - 1, ...,
  // first, until it returns false. Spans from `end_index` on start after these cells. Returns the
  // number of spans that start before the last cell visited.
  template <class Put>
  std::size_t for_each_class(const std::vector<Span>& free, std::size_t end_index,
                             std::size_t first, std::size_t last, double speed, Put put) const {
    for (std::size_t j = last + 1; j > first;) {
      while (end_index > 0 && free[end_index - 1].start >= end(j - 1)) --end_index;
      const Span span = end_index > 0 ? free[end_index - 1] : Span{-kInfinity, -kInfinity, 0};
      while (j > first && edges_[j - 1] >= span.end)
        if (!put(--j, std::uint8_t{0})) return end_index;
      for (const double until = round_up_end(span.end); j > first && edges_[j - 1] >= span.start;)
        if (--j; !put(j, class_of((until - edges_[j]) * speed))) return end_index;
      if (j > first && span.start < end(j - 1))
        if (--j; !put(j, class_in_start_cell(free, end_index, j, speed))) return end_index;
    }
    return end_index;
  }
  // The class of the node in cell j, in which at least one of its spans starts.
  std::uint8_t class_in_start_cell(const std::vector<Span>& free, std::size_t end_index,
                                   std::size_t j, double speed) const {
    std::uint8_t c = 0;
    for (; end_index > 0 && free[end_index - 1].end > edges_[j]; --end_index) {
      const Span& span = free[end_index - 1];
      c = std::max(c, class_of((round_up_end(span.end) - std::max(span.start, edges_[j])) * speed));
    }
    return c;
  }

  double speed(std::size_t rank) const { return nodes_[rank].performance * (1 + kMargin); }

  // Updates the classes of node k in cells first..last after its free time has changed from cell
  // `at` on; calls on_changed(j, before, now) for each change. Before `at`, one span ends earlier
  // or later than it did. If its class was and is the last one in some cell, so it is in all
  // earlier cells, and the update stops.
  template <class OnChanged>
  void update_classes(std::size_t k, const std::vector<Span>& free, std::size_t first,
                      std::size_t at, std::size_t last, OnChanged on_changed) {
    const std::size_t rank = ranks_[k];
    for_each_class(free, count_started(free, end(last)), first, last, speed(rank),
                   [&](std::size_t j, std::uint8_t c) {
                std::uint8_t& byte = classes_[j * width_ + rank];
                if (j < at && byte == kClasses - 1 && c == kClasses - 1) return false;
                if (byte != c) on_changed(j, byte, c);
                byte = c;
                return true;
              });
  }

  // Updates the start bit of node k in cell j. Not called when the clock trims a start: later
  // searches start at their earliest start or in a later cell, so that bit is not read.
  void update_start_bit(std::size_t k, const std::vector<Span>& free, std::size_t j) {
    const std::size_t count = count_started(free, end(j));
    set_start_bit(ranks_[k], j, count > 0 && free[count - 1].start >= edges_[j]);
  }
  void set_start_bit(std::size_t rank, std::size_t j, bool begins) {
    const std::uint64_t bit = std::uint64_t{1} << rank % 64;
    std::uint64_t& word = start_bits_[(j * width_ + rank) / 64];
    word = begins ? word | bit : word & ~bit;
  }

  // Fills the classes and bits of the nodes of rank first..last - 1, at most 64: node by node into
  // `lines`, then transposed.
  void fill_nodes(const SpanLists& free, std::size_t first, std::size_t last,
                  std::vector<std::uint8_t>& lines) {
    const std::size_t cells = size();
    std::fill(lines.begin(), lines.end(), std::uint8_t{0});
    for (std::size_t rank = first; rank < last; ++rank) {
      const std::vector<Span>& spans = free[nodes_[rank].place];
      std::uint8_t* const line = lines.data() + (rank - first) * cells;
      const double fast = speed(rank);
      std::size_t at = spans.empty() ? 0 : cell_at(spans.front().start);
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const Span& span = spans[i];
        const double until = round_up_end(span.end);
        line[at] = std::max(line[at], class_of((until - span.start) * fast));
        set_start_bit(rank, at, true);
        const std::size_t next = i + 1 < spans.size() ? cell_at(spans[i + 1].start) : cells - 1;
        detail::fill_classes(&edges_[at] + 1, next - at, until, fast,
                             kClasses - 1 - top_class_bits_, line + at + 1);
        at = next;
      }
    }
    std::uint8_t* to = classes_.data() + first;
    const std::uint8_t* const from = lines.data();
    for (std::size_t j = 0, width = width_; j < cells; ++j, to += width)
      for (std::size_t k = 0; k < 64; ++k) to[k] = from[k * cells + j];
  }

  // Rounds an end up so that t + d <= end in floating point implies d <= round_up_end(end) - t.
  static double round_up_end(double t) { return std::isinf(t) ? t : t + std::fabs(t) * 0x1p-50; }

  std::size_t width_ = 0;
  std::int64_t top_class_bits_ = 0;  // exponent_bits() of the last class
  std::vector<double> edges_;        // [cell]: begin
  double first_edge_ = 0, per_time_ = 0, last_bucket_ = 0;
  std::vector<std::uint32_t> buckets_;     // [bucket]: last cell that begins before it
  LargeVector<std::uint8_t> classes_;      // [cell * width_ + rank]
  LargeVector<std::uint64_t> start_bits_;  // bit cell * width_ + rank
  std::vector<RankedNode> nodes_;
  std::vector<double> rates_;       // [rank]
  std::vector<std::size_t> ranks_;  // [place]
};

}  // namespace slotkern

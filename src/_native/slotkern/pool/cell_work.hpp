// How much work each node may do from a start in each stretch of time, also while what is free
// changes.
//
// Time is cut into cells of some rows each. For each cell and node there is one byte: the class of
// the largest work that the node may do from a start in the cell, never too small. One bit more
// tells whether a free span of the node begins in the cell: each window but those at the earliest
// start holds such a one.
//
// Memory: at most 72 bytes a slot. A part taken or given back costs O(cells in which its node can
// do less or more); looking through the nodes of a cell O(nodes / 64 + n).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/pool/hints.hpp"
#include "slotkern/pool/spans.hpp"

namespace slotkern {

namespace detail {

// The classes of what can be done at this speed from each edge until then; 47 and `offset` as in
// CellWork::place_of().
SLOTKERN_CLONES static inline void classes_until(const double* edges, std::size_t count,
                                                 double until, double speed, std::int64_t offset,
                                                 std::uint8_t* to) {
  for (std::size_t j = 0; j < count; ++j) {
    const double work = std::max(until - edges[j], 0.0) * speed;
    const auto place = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(work) >> 47) + offset;
    to[j] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(place, 0, 255));
  }
}

}  // namespace detail

class CellWork {
 public:
  struct RankedNode {  // by rising rate
    double rate;       // the least
    double performance, price;
    std::size_t place;
    bool one_price;  // of all its slots
  };

  // So many classes an octave of work, and in all: what is as much as the last is not told apart.
  static constexpr std::int64_t kOctave = 32, kClasses = 256;
  // Rows stand with gaps, 64 for 48 slots.
  static constexpr std::size_t kMostBytes = 48, kCellRows = kFewRows == 0 ? 2 : 16;

  // How many cells these slots have, and bytes.
  static std::size_t cells_for(const PreparedSlots& prepared) {
    const std::size_t rows = prepared.slots.size();
    return std::min(rows / kCellRows, kMostBytes * rows / width_for(prepared));
  }
  static std::size_t bytes_for(const PreparedSlots& prepared) {
    return cells_for(prepared) * width_for(prepared);
  }

  // `prices` by row of the origin array; work of more than twice the `largest` is one class.
  void build(const PreparedSlots& prepared, const std::vector<double>& prices,
             const PoolSpans& spans, double largest) {
    std::vector<double> starts;
    starts.reserve(prepared.slots.size());
    prepared.each_row([&](std::size_t row) { starts.push_back(prepared.slots[row].start); });
    const std::size_t most = std::min(cells_for(prepared), starts.size());
    edges_.assign(1, -kInfinity);
    for (std::size_t j = 1; j < most; ++j) {
      const double edge = starts[j * starts.size() / most];
      if (edge > edges_.back()) edges_.push_back(edge);
    }
    sort_into_buckets();
    width_ = width_for(prepared);
    top_ = bits_of(largest) + kOctave;
    rank(prepared, prices, spans);
    bytes_.assign(edges_.size() * width_, 0);
    begins_.assign(bytes_.size() / 64, 0);
    std::vector<std::uint8_t> lines(64 * size());
    for (std::size_t rank = 0; rank < nodes_.size(); rank += 64) {
      poll();
      set_line(spans.free(), rank, std::min(nodes_.size(), rank + 64), lines);
    }
  }
  void forget() { bytes_ = {}, begins_ = {}; }

  // [begin, end) has been taken out of the free time of the node at place k, which is this now.
  void took(std::size_t k, const std::vector<Span>& free, double begin, double end) {
    const std::size_t before = begun(free, begin), at = cell_at(begin), last = cell_at(end);
    const bool left = before > 0 && free[before - 1].end == begin;
    set_bytes(k, free, left ? cell_at(free[before - 1].start) : at, at, last,
              [](std::size_t, std::size_t, std::size_t) {});
    set_begins(k, free, at);  // also where another span ends there
    if (last != at) set_begins(k, free, last);
  }
  // The span `freed` has come back and is a part of `grown` now: changed(j, before, now) where the
  // byte of cell j is another.
  template <class Changed>
  void gave(std::size_t k, const std::vector<Span>& free, const Span& freed, const Span& grown,
            Changed changed) {
    set_bytes(k, free, cell_at(grown.start), cell_at(freed.start), cell_at(freed.end), changed);
    set_begins(k, free, cell_at(freed.start));
    set_begins(k, free, cell_at(freed.end));
  }
  // All its time has left.
  void lost(std::size_t k) {
    set_bytes(k, {}, 0, 0, size() - 1, [](std::size_t, std::size_t, std::size_t) {});
    for (std::size_t j = 0; j < size(); ++j) set_begins(k, {}, j);
  }

  std::size_t size() const { return edges_.size(); }
  // When a cell begins and ends.
  double begin(std::size_t j) const { return edges_[j]; }
  double end(std::size_t j) const { return j + 1 < edges_.size() ? edges_[j + 1] : kInfinity; }
  std::size_t cell_at(double t) const {
    const std::size_t b = bucket(t);
    std::size_t at = buckets_[b];  // without a branch: where it is cannot be guessed
    for (std::size_t size = buckets_[b + 1] - at + 1; size > 1; size -= size / 2)
      at += (edges_[at + size / 2] <= t) * (size / 2);
    return at;
  }

  std::size_t nodes() const { return nodes_.size(); }
  const RankedNode& node(std::size_t rank) const { return nodes_[rank]; }
  double rate(std::size_t rank) const { return rates_[rank]; }

  // Whether the class of this work is told from others.
  bool tells(double work) const {
    const std::int64_t c = place_of(work);
    return c >= 1 && c < kClasses;
  }
  std::uint8_t class_of(double work) const {
    return static_cast<std::uint8_t>(std::clamp<std::int64_t>(place_of(work), 0, kClasses - 1));
  }

  // The nodes that may do work of a class in a cell, by rank.
  class Walk {
   public:
    static constexpr std::size_t kEnd = ~std::size_t{0};

    // All nodes before so many times 64 can do less.
    Walk(const CellWork& cells, std::size_t cell, std::uint8_t least, std::size_t before)
        : bytes_(cells.bytes_.data() + cell * cells.width_),
          begins_(cells.begins_.data() + cell * cells.width_ / 64), width_(cells.width_),
          least_(least), base_(64 * before), hits_(detail::at_least64(bytes_ + base_, least)) {}

    std::size_t next() {
      while (!hits_) {
        if ((base_ += 64) >= width_) return kEnd;
        hits_ = detail::at_least64(bytes_ + base_, least_);
      }
      return take();
    }
    // The same among those of which a span begins in the cell, and among the others.
    std::size_t next_fresh() {
      hits_ &= begins_[base_ / 64];
      while (!hits_) {
        if ((base_ += 64) >= width_) return kEnd;
        if (begins_[base_ / 64])
          hits_ = detail::at_least64(bytes_ + base_, least_) & begins_[base_ / 64];
      }
      return take();
    }
    std::size_t next_old() {
      std::size_t rank;
      do rank = next();
      while (rank != kEnd && fresh(rank));
      return rank;
    }
    bool fresh(std::size_t rank) const { return begins_[rank / 64] >> rank % 64 & 1; }

   private:
    std::size_t take() {
      const std::size_t rank = base_ + static_cast<std::size_t>(std::countr_zero(hits_));
      hits_ &= hits_ - 1;
      return rank;
    }

    const std::uint8_t* bytes_;
    const std::uint64_t* begins_;
    std::size_t width_;
    std::uint8_t least_;
    std::size_t base_;
    std::uint64_t hits_;
  };

  // A walk from there comes soon.
  void expect(std::size_t cell, std::size_t before) const {
    const std::uint8_t* const at = bytes_.data() + cell * width_ + 64 * before;
    slotkern::fetch(at), slotkern::fetch(at + 64);
  }

 private:
  static std::int64_t bits_of(double x) {
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) >> 47);
  }
  // Its class, or where it would be.
  std::int64_t place_of(double work) const { return bits_of(work) - top_ + kClasses - 1; }

  // Time in stretches of one length, of which each has few edges. It never falls with t, also as it
  // is rounded: the cell of t is one of those from the last that begins before the bucket, up to
  // the last that begins in it.
  std::size_t bucket(double t) const {
    const double at = (t - first_edge_) * per_time_, last = static_cast<double>(kBuckets - 1);
    return at > 0 ? static_cast<std::size_t>(std::min(at, last)) : 0;
  }
  void sort_into_buckets() {
    first_edge_ = edges_.size() > 1 ? edges_[1] : 0;
    per_time_ = edges_.back() > first_edge_ ? kBuckets / (edges_.back() - first_edge_) : 0;
    buckets_.resize(kBuckets + 1);
    for (std::size_t b = 0, j = 0; b <= kBuckets; ++b) {
      while (j + 1 < edges_.size() && bucket(edges_[j + 1]) < b) ++j;
      buckets_[b] = static_cast<std::uint32_t>(j);
    }
  }

  static std::size_t width_for(const PreparedSlots& prepared) {
    return (prepared.nodes.size() + 63) / 64 * 64;
  }
  void rank(const PreparedSlots& prepared, const std::vector<double>& prices,
            const PoolSpans& spans) {
    nodes_.clear();
    for (std::size_t k = 0; k < prepared.nodes.size(); ++k) {
      const Node& node = prepared.nodes[k];
      bool one = true;
      for (const Span& span : spans.free()[k]) one = one && prices[span.row] == node.min_price;
      const double rate = node.min_price / node.performance;
      nodes_.push_back({rate, node.performance, node.min_price, k, one});
    }
    const auto look = [&](std::size_t k, const Span& span) {
      nodes_[k].one_price = nodes_[k].one_price && prices[span.row] == nodes_[k].price;
    };
    spans.bookings().each(look), spans.each_held(look);  // may be free again
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

  // How many of the spans begin before t, without a branch.
  static std::size_t begun(const std::vector<Span>& spans, double t) {
    std::size_t count = 0;
    for (std::size_t size = spans.size(), half; size > 0; size -= half) {
      half = (size + 1) / 2;
      count += (spans[count + half - 1].start < t) * half;
    }
    return count;
  }

  // Calls put(j, class of what a node may do from a start in cell j) for the cells first..last,
  // from the last on, until it returns false. None of the spans from `behind` on begins in them or
  // before; returns how many begin before them.
  template <class Put>
  std::size_t each_byte(const std::vector<Span>& free, std::size_t behind, std::size_t first,
                        std::size_t last, double speed, Put put) const {
    for (std::size_t j = last + 1; j > first;) {
      while (behind > 0 && free[behind - 1].start >= end(j - 1)) --behind;
      const Span span = behind > 0 ? free[behind - 1] : Span{-kInfinity, -kInfinity, 0};
      while (j > first && edges_[j - 1] >= span.end)
        if (!put(--j, std::uint8_t{0})) return behind;
      for (const double until = late(span.end); j > first && edges_[j - 1] >= span.start;)
        if (--j; !put(j, class_of((until - edges_[j]) * speed))) return behind;
      if (j > first && span.start < end(j - 1))
        if (--j; !put(j, begun_in(free, behind, j, speed))) return behind;
    }
    return behind;
  }
  // The same of one cell, in which a span begins.
  std::uint8_t begun_in(const std::vector<Span>& free, std::size_t behind, std::size_t j,
                        double speed) const {
    std::uint8_t c = 0;
    for (; behind > 0 && free[behind - 1].end > edges_[j]; --behind) {
      const Span& span = free[behind - 1];
      c = std::max(c, class_of((late(span.end) - std::max(span.start, edges_[j])) * speed));
    }
    return c;
  }

  double speed(std::size_t rank) const { return nodes_[rank].performance * (1 + kMargin); }

  // The bytes of a node in cells first..last, whose free time from cell `at` on is another;
  // changed(j, before, now) where a byte is. Before `at` a span ends earlier or later than it did:
  // from the first cell back in which any work can be done, then as now, nothing changes.
  template <class Changed>
  void set_bytes(std::size_t k, const std::vector<Span>& free, std::size_t first, std::size_t at,
                 std::size_t last, Changed changed) {
    const std::size_t rank = ranks_[k];
    each_byte(free, begun(free, end(last)), first, last, speed(rank),
              [&](std::size_t j, std::uint8_t c) {
                std::uint8_t& byte = bytes_[j * width_ + rank];
                if (j < at && byte == kClasses - 1 && c == kClasses - 1) return false;
                if (byte != c) changed(j, byte, c);
                byte = c;
                return true;
              });
  }

  // The bit of a node and cell j. Where the clock has moved a start it is not told: all that is
  // asked for then begins at the earliest start or behind the cell.
  void set_begins(std::size_t k, const std::vector<Span>& free, std::size_t j) {
    const std::size_t count = begun(free, end(j));
    mark(ranks_[k], j, count > 0 && free[count - 1].start >= edges_[j]);
  }
  void mark(std::size_t rank, std::size_t j, bool begins) {
    const std::uint64_t bit = std::uint64_t{1} << rank % 64;
    std::uint64_t& word = begins_[(j * width_ + rank) / 64];
    word = begins ? word | bit : word & ~bit;
  }

  // The bytes and bits of up to 64 nodes, which stand together: node by node first.
  void set_line(const SpanLists& free, std::size_t first, std::size_t last,
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
        const double until = late(span.end);
        line[at] = std::max(line[at], class_of((until - span.start) * fast));
        mark(rank, at, true);
        const std::size_t next = i + 1 < spans.size() ? cell_at(spans[i + 1].start) : cells - 1;
        detail::classes_until(&edges_[at] + 1, next - at, until, fast, kClasses - 1 - top_,
                              line + at + 1);
        at = next;
      }
    }
    std::uint8_t* to = bytes_.data() + first;
    const std::uint8_t* const from = lines.data();
    for (std::size_t j = 0, width = width_; j < cells; ++j, to += width)
      for (std::size_t k = 0; k < 64; ++k) to[k] = from[k * cells + j];
  }

  // No part that fits a span which ends at t takes longer than until then, as it is rounded.
  static double late(double t) { return std::isinf(t) ? t : t + std::fabs(t) * 0x1p-50; }

  std::size_t width_ = 0;
  std::int64_t top_ = 0;               // bits_of() the highest class
  std::vector<double> edges_;          // [j]: when cell j begins
  static constexpr std::size_t kBuckets = kFewRows == 0 ? 8 : 1024;
  double first_edge_ = 0, per_time_ = 0;
  std::vector<std::uint32_t> buckets_;  // the last cell that begins before each
  LargeVector<std::uint8_t> bytes_;    // [j * width_ + rank]
  LargeVector<std::uint64_t> begins_;  // the same, a bit each
  std::vector<RankedNode> nodes_;
  std::vector<double> rates_;       // [rank]
  std::vector<std::size_t> ranks_;  // [place]
};

}  // namespace slotkern

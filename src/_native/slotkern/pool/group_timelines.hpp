// Which nodes of a group are free, by time: finds the earliest window within one group of a pool.
//
// Input: the free spans of a pool whose nodes have one performance; the divisions of group rules
// that allow one group (slots/group_rules.hpp). Each division has rows: from the time `begin[i]` to
// begin[i + 1] the nodes of `bits` are free. A node holds a part of length T at t exactly if its
// bit is set in all rows that meet [t, t + T), because its free spans do not touch; if spans do
// touch, is_exact() is false and the caller sweeps.
//
// The earliest start is `earliest` or the time at which a row begins. Rows are combined from the
// start on until fewer than n bits remain; then no start up to the last row that makes them fewer
// is possible, so that the scan continues behind it. Divisions are scanned only up to the earliest
// start so far. The window with the lowest cost wins among divisions with that start, then the
// smallest node ids.
//
// Cost: O(log rows + rows passed) for each division; a changed span O(rows of its division), by
// memmove. Memory: 16 bytes for each row.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/pool/availability.hpp"
#include "slotkern/pool/start_bounds.hpp"
#include "slotkern/window/groups.hpp"

namespace slotkern {

namespace detail {

// The rows of one division.
struct GroupTimeline {
  // [bit]: node place; by price, if all slots of a node have one, then by node id
  std::vector<std::size_t> places;
  std::vector<double> begin;  // ascending; the first is -inf
  std::vector<std::uint64_t> bits;  // [row]: the free nodes
  std::size_t compacted = 0;  // rows after the last compact()

  std::size_t row_at(double t) const {
    return static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), t) -
                                    begin.begin()) - 1;
  }

  // Returns the row that begins at t, after splitting the row around t.
  std::size_t cut(double t) {
    if (t == kInfinity) return begin.size();
    const std::size_t i = row_at(t);
    if (begin[i] == t) return i;
    reserve_extra(1, begin, bits);
    begin.insert(begin.begin() + static_cast<std::ptrdiff_t>(i) + 1, t);
    bits.insert(bits.begin() + static_cast<std::ptrdiff_t>(i) + 1, bits[i]);
    return i + 1;
  }
  void set(std::size_t bit, std::size_t from, std::size_t to, bool free) {
    const std::uint64_t mask = std::uint64_t{1} << bit;
    for (std::size_t i = from; i < to; ++i) bits[i] = free ? bits[i] | mask : bits[i] & ~mask;
  }

  // Drops the rows that end by `now`, and those equal to the row before.
  void compact(double now) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < begin.size(); ++i) {
      if (i + 1 < begin.size() && begin[i + 1] <= now) continue;
      if (kept > 0 && bits[i] == bits[kept - 1]) continue;
      begin[kept] = kept > 0 ? begin[i] : -kInfinity;
      bits[kept++] = bits[i];
    }
    begin.resize(kept), bits.resize(kept);
    compacted = kept;
  }
};

// Returns the first start from t on, in row i or later, at which `n` nodes are free for `length`;
// infinity if there is none up to `last`. `i`: the row of the start.
SLOTKERN_NARROW_CLONES static inline double earliest_start_of(
    const double* begin, const std::uint64_t* bits, std::size_t rows, double t, double length,
    int n, double last, std::size_t& i, std::uint64_t& free) {
  for (;;) {
    if (t > last) return kInfinity;
    const double end = t + length;
    std::uint64_t all = bits[i];
    std::size_t j = i;
    while (std::popcount(all) >= n && ++j < rows && begin[j] < end) all &= bits[j];
    if (std::popcount(all) >= n) {
      free = all;
      return t;
    }
    // Rows j, j - 1, ... together: the first that leaves fewer than n ends before the next start.
    all = bits[j];
    std::size_t k = j;
    while (std::popcount(all) >= n) all &= bits[--k];
    if ((i = k + 1) >= rows) return kInfinity;
    t = begin[i];
  }
}

}  // namespace detail

class GroupTimelines {
 public:
  // The most nodes of a division with rows.
  static constexpr std::size_t kMaxNodes = 64;

  bool overflows = false;  // a result of find()

  // Cached start bounds of the requests within one group, as in the pool.
  std::array<StartBoundCache, 4> start_bounds;

  bool is_for(const GroupRules& rules) const {
    return id_ == rules.id || division_ == rules.division;
  }
  std::uint64_t id() const { return id_; }
  void set_id(std::uint64_t id) { id_ = id; }

  // True if find() is exact.
  bool is_exact() const { return is_exact_; }
  bool is_built() const { return is_built_; }

  // Remembers the divisions; build() adds the rows.
  void open(const GroupRules& rules) {
    id_ = rules.id;
    division_ = rules.division;
    divisions_ = rules.divisions;
  }

  // Builds the rows from all free spans.
  void build(const PreparedSlots& prepared, const SpanLists& free, double now) {
    is_built_ = is_exact_ = false;
    bool exact = prepared.groups.size() == 1;
    sorted_by_price_ = prepared.one_price;
    const auto is_other_price = [&](const Node& node) {
      return node.min_price != prepared.nodes.front().min_price;
    };
    has_one_price_ = sorted_by_price_ && std::none_of(prepared.nodes.begin(),
                                                      prepared.nodes.end(), is_other_price);
    lines_.assign(divisions_, {});
    bit_.resize(prepared.nodes.size());
    // Nodes of one performance are in the order of ids.
    for (std::size_t k = 0; k < prepared.nodes.size(); ++k)
      lines_[division_of(k)].places.push_back(k);
    for (detail::GroupTimeline& line : lines_) {
      exact = exact && line.places.size() <= kMaxNodes;
      if (sorted_by_price_)
        std::stable_sort(line.places.begin(), line.places.end(), [&](auto a, auto b) {
          return prepared.nodes[a].min_price < prepared.nodes[b].min_price;
        });
      for (std::size_t bit = 0; bit < line.places.size(); ++bit)
        bit_[line.places[bit]] = static_cast<std::uint32_t>(bit);
    }
    if (!exact) {
      is_built_ = true;
      return;
    }
    std::vector<double> times;
    for (detail::GroupTimeline& line : lines_) {
      poll();
      times.assign(1, -kInfinity);
      for (const std::size_t k : line.places)
        for (const Span& span : free[k])
          if (span.end > now) times.push_back(span.start), times.push_back(span.end);
      std::sort(times.begin(), times.end());
      times.erase(std::unique(times.begin(), times.end()), times.end());
      if (times.back() == kInfinity) times.pop_back();
      line.begin.assign(times.begin(), times.end());
      line.bits.assign(times.size(), 0);
      line.compacted = times.size();
      for (std::size_t bit = 0; bit < line.places.size(); ++bit) {
        const std::vector<Span>& spans = free[line.places[bit]];
        for (std::size_t i = 0; i < spans.size(); ++i) {
          exact = exact && !(i > 0 && spans[i - 1].end == spans[i].start);
          if (spans[i].end > now)
            line.set(bit, line.cut(spans[i].start), line.cut(spans[i].end), true);
        }
      }
    }
    is_built_ = true, is_exact_ = exact;
  }

  // Updates the rows after the free time of node k has changed in [start, end). If memory runs
  // out, the rows are built again when they are needed.
  void on_changed(std::size_t k, const std::vector<Span>& spans, double start, double end,
                  double now) {
    if (!is_built_ || !is_exact_) return;
    try {
      update(k, spans, start, end, now);
    } catch (const std::bad_alloc&) {
      is_built_ = is_exact_ = false;
    }
  }

  void on_removed(std::size_t k) {
    if (!is_built_ || !is_exact_) return;
    detail::GroupTimeline& line = lines_[division_of(k)];
    line.set(bit_[k], 0, line.begin.size(), false);
  }

  // True if find() supports the request.
  static bool supports(const Query& query) {
    return !query.mask && !query.limits &&
           query.sets_only<&Query::volume, &Query::budget, &Query::min_performance,
                           &Query::earliest, &Query::deadline, &Query::setup, &Query::step,
                           &Query::latest, &Query::max_runtime>();
  }

  // Finds the earliest window of a query, normalized, with lowest cost, then smallest node ids.
  // slot_of(place, span) returns the slot of a free span. Returns none also if costs overflow: then
  // `overflows` is true, and the caller sweeps.
  template <class Shape, class SlotOf>
  Status find(const PreparedSlots& prepared, const Query& query, const Shape& shape,
              const SpanLists& free, SlotOf slot_of, Workspace& work, Found& found) {
    overflows = false;
    const double performance = prepared.groups.front().performance;
    if (performance < query.min_performance) return Status::none;
    const double length = query.length(performance);
    const auto is_in_time = [&](double t) {
      return t <= query.latest && t + length <= query.deadline;
    };
    best_.clear();
    double start = query.latest;
    for (std::size_t d = 0; d < lines_.size(); ++d) {
      const detail::GroupTimeline& line = lines_[d];
      if (static_cast<std::int64_t>(line.places.size()) < query.n) continue;
      std::uint64_t bits = 0;
      std::size_t row = line.row_at(query.earliest);
      double t = query.earliest;
      for (;;) {
        t = detail::earliest_start_of(line.begin.data(), line.bits.data(), line.begin.size(), t,
                                      length, static_cast<int>(query.n), start, row, bits);
        if (t == kInfinity || !is_in_time(t) || query.budget == kInfinity) break;
        if (cost_of(prepared, query, shape, free, slot_of, d, bits, t) <= query.max_cost()) break;
        if (++row == line.begin.size()) t = kInfinity;
        if (t == kInfinity) break;
        t = line.begin[row];
      }
      if (t == kInfinity || !is_in_time(t)) continue;
      if (t < start) best_.clear();
      start = t;
      best_.push_back({d, bits});
    }
    if (best_.empty()) return Status::none;
    select(prepared, query, shape, free, slot_of, start, work, found);
    overflows = work.parts.empty();
    return overflows ? Status::none : Status::ok;
  }

 private:
  struct Candidate {
    std::size_t division;
    std::uint64_t bits;  // nodes that are free for the length of a part
  };

  void update(std::size_t k, const std::vector<Span>& spans, double start, double end,
              double now) {
    detail::GroupTimeline& line = lines_[division_of(k)];
    const auto first = std::partition_point(spans.begin(), spans.end(),
                                            [&](const Span& s) { return s.end <= start; });
    const auto after = std::partition_point(first, spans.end(),
                                            [&](const Span& s) { return s.start < end; });
    double before = first == spans.begin() ? -kInfinity : std::prev(first)->end;
    std::size_t row = before == -kInfinity ? 0 : line.cut(before);
    for (auto span = first; span != after; ++span) {
      is_exact_ = is_exact_ && span->start != before;
      before = span->end;
      const std::size_t begin = line.cut(span->start);
      line.set(bit_[k], row, begin, false);
      row = line.cut(span->end);
      line.set(bit_[k], begin, row, true);
    }
    const double next = after == spans.end() ? kInfinity : after->start;
    is_exact_ = is_exact_ && next != before;
    line.set(bit_[k], row, line.cut(next), false);
    if (line.begin.size() > 2 * line.compacted + 64) line.compact(now);
  }

  std::size_t division_of(std::size_t place) const {
    return division_.empty() ? 0 : static_cast<std::size_t>(division_[place]);
  }

  // Returns the total cost of the n cheapest parts of a division; writes them to list_ unless the
  // order of bits determines it.
  template <class Shape, class SlotOf>
  double cost_of(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                 const SpanLists& free, SlotOf slot_of, std::size_t division, std::uint64_t bits,
                 double t) {
    if (!sorted_by_price_) return collect(query, shape, free, slot_of, division, bits, t);
    keys_.clear();
    for (; bits && keys_.size() < static_cast<std::size_t>(query.n); bits &= bits - 1) {
      const Node& node = prepared.nodes[place_of(division, bits)];
      keys_.push_back(shape.key({0, 0, node.performance, node.min_price,
                                 node.min_price / node.performance, node.id, 0}));
    }
    return shape.total(exact_sum(keys_.size(), [&](std::size_t i) { return keys_[i]; }));
  }
  std::size_t place_of(std::size_t division, std::uint64_t bits) const {
    return lines_[division].places[static_cast<std::size_t>(std::countr_zero(bits))];
  }

  // Writes the n cheapest parts of a division to list_; returns their total cost.
  template <class Shape, class SlotOf>
  double collect(const Query& query, const Shape& shape, const SpanLists& free, SlotOf slot_of,
                 std::size_t division, std::uint64_t bits, double t) {
    const std::size_t n = static_cast<std::size_t>(query.n);
    list_.clear();
    for (; bits; bits &= bits - 1) {
      const std::size_t k = place_of(division, bits);
      if (sorted_by_price_ && list_.size() == n) break;
      const std::vector<Span>& spans = free[k];
      const auto span = std::prev(std::partition_point(
          spans.begin(), spans.end(), [t](const Span& s) { return s.start <= t; }));
      const Slot slot = slot_of(k, *span);
      const GroupCandidate part{shape.key(slot), shape.length(slot), slot.end, span->origin_row,
                                slot.node, slot.place};
      if (part.key < kInfinity)
        list_.insert(std::upper_bound(list_.begin(), list_.end(), part), part);
    }
    if (list_.size() < n) return kInfinity;
    list_.resize(n);
    return shape.total(exact_sum(n, [&](std::size_t i) { return list_[i].key; }));
  }

  template <class Shape, class SlotOf>
  void select(const PreparedSlots& prepared, const Query& query, const Shape& shape,
              const SpanLists& free, SlotOf slot_of, double t, Workspace& work, Found& found) {
    // With one price the smallest first node decides.
    if (has_one_price_) {
      const auto first = std::min_element(
          best_.begin(), best_.end(), [&](const Candidate& a, const Candidate& b) {
            return place_of(a.division, a.bits) < place_of(b.division, b.bits);
          });
      best_.assign(1, Candidate(*first));
    }
    double cost = kInfinity;
    std::vector<Part>& parts = work.trial_parts;
    const auto by_node = [](const Part& a, const Part& b) { return a.node < b.node; };
    work.parts.clear();
    for (const Candidate& candidate : best_) {
      if (best_.size() > 1 && cost_of(prepared, query, shape, free, slot_of, candidate.division,
                                      candidate.bits, t) > cost)
        continue;
      const double total =
          collect(query, shape, free, slot_of, candidate.division, candidate.bits, t);
      if (total > cost || list_.size() < static_cast<std::size_t>(query.n)) continue;
      parts.clear();
      found.start = t, found.runtime = 0;
      for (const GroupCandidate& c : list_)
        parts.emplace_back(c.row, c.node, c.length, shape.total(c.key));
      std::sort(parts.begin(), parts.end(), by_node);
      if (total == cost && !std::lexicographical_compare(parts.begin(), parts.end(),
                                                         work.parts.begin(), work.parts.end(),
                                                         by_node))
        continue;
      cost = total;
      work.parts.swap(parts);
    }
    found.start = found.value = t;
    found.cost = cost;
    found.runtime = found.processor_time = 0;
    for (const Part& part : work.parts) {
      found.runtime = part.length;
      found.processor_time += part.length;
    }
    if (!Shape::per_part_length)
      found.processor_time = static_cast<double>(query.n) * found.runtime;
  }

  std::uint64_t id_ = 0;
  std::vector<std::int32_t> division_;
  std::size_t divisions_ = 0;
  bool is_built_ = false, is_exact_ = false;
  bool sorted_by_price_ = false;  // all slots of a node have one price, and bits are in its order
  bool has_one_price_ = false;  // of all slots of all nodes
  std::vector<std::uint32_t> bit_;  // [place]
  std::vector<detail::GroupTimeline> lines_;  // [division]
  // Scratch memory of find().
  std::vector<Candidate> best_;
  std::vector<GroupCandidate> list_;
  std::vector<double> keys_;
};

}  // namespace slotkern

// Selects the n cheapest slots that are live at one time, ordered by (key, node id): the tie rule.
//
// Nodes are usually of few kinds, so thousands of slots cost the same and the smallest node ids
// decide. A block is skipped if no slot of it is cheaper than the current n-th entry and all its
// node ids are larger than that entry's. Cost: O(m / 4096) for the blocks, then the few remaining
// slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/window/shapes.hpp"
#include "slotkern/window/top_n.hpp"

namespace slotkern {

// The order of the tie rule: by key, then by node id.
inline bool is_cheaper(const PreparedSlots& prepared, const Entry& a, const Entry& b) {
  if (a.key != b.key) return a.key < b.key;
  return prepared.slots[a.row].node < prepared.slots[b.row].node;
}

// The current n-th entry under the tie rule. With dictionary-coded keys it also yields per-block
// skip tests; otherwise only the key test.
template <class Shape>
class NthCandidate {
 public:
  // Slots of nodes slower than `performance` are excluded.
  NthCandidate(const PreparedSlots& prepared, const Shape& shape, double performance)
      : prepared_(prepared), shape_(shape), zone_map_(Shape::zone_map(prepared)),
        dictionary_coded_(Shape::index_order_is_key_order && zone_map_.dictionary().is_exact()) {
    if (dictionary_coded_) group_ = prepared.slowest_group_at_least(performance);
  }

  void set(const Entry& nth) {
    key_ = nth.key;
    if (!dictionary_coded_) return;
    const Slot& slot = prepared_.slots[nth.row];
    const double key = shape_.index_key(slot);
    has_node_test_ = true;
    node_ = slot.node, node_as_float_ = round_down(node_);
    const bool is_least = !group_ || !(key > shape_.min_index_key(*group_));
    max_smaller_key_ = is_least ? -std::numeric_limits<float>::infinity()
                                : zone_map_.dictionary().predecessor_code(key);
  }
  bool precedes(double key, const Slot& slot) const {
    return key > key_ || (has_node_test_ && key == key_ && slot.node > node_);
  }
  // Bit j: the j-th block from `entries` on may hold a slot that comes before the n-th entry.
  std::uint64_t blocks_to_visit(std::size_t entries) const {
    if (!has_node_test_) return ~std::uint64_t{0};
    return zone_map_.blocks_with_keys(entries, max_smaller_key_) |
           detail::mask_at_most64(&prepared_.min_node_ids[entries], node_as_float_);
  }

 private:
  const PreparedSlots& prepared_;
  const Shape& shape_;
  const SlotZoneMap& zone_map_;
  const bool dictionary_coded_;
  const Group* group_ = nullptr;
  double key_ = kInfinity;
  bool has_node_test_ = false;  // the fields below are valid
  std::int32_t node_ = 0;
  float node_as_float_ = 0;  // node_ rounded down
  float max_smaller_key_ = 0;  // upper bound on index keys smaller than the n-th
};

// Writes to `chosen` the n cheapest slots, in tie order, that are live at t and pass `useful`.
// Returns true if there are n. each(thresholds, nth_so_far, visit) calls visit(row) for each slot
// that passes the thresholds; visit returns true if the slot may be one of the n. The current n-th
// entry tightens the thresholds: after each slot for small n, else after about every n slots.
template <class Shape, class Useful, class Each>
bool select_cheapest(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                     double t, Thresholds& thresholds, Useful useful, std::vector<Entry>& chosen,
                     Each each) {
  const std::size_t n = static_cast<std::size_t>(query.n), capacity = 2 * n + 8;
  const bool keeps_sorted = n <= kMaxInsertionSorted;
  const auto before = [&prepared](const Entry& a, const Entry& b) {
    return is_cheaper(prepared, a, b);
  };
  chosen.resize(capacity);
  std::size_t size = 0;
  NthCandidate<Shape> nth_so_far(prepared, shape, thresholds.performance);
  const auto keep_n_cheapest = [&] {
    const auto first = chosen.begin(), nth = first + static_cast<std::ptrdiff_t>(n) - 1;
    if (!keeps_sorted)
      std::nth_element(first, nth, first + static_cast<std::ptrdiff_t>(size), before);
    size = n;
    nth_so_far.set(*nth);
    thresholds.key = std::min(thresholds.key, max_index_key(shape.index_key_of(nth->key), 0));
  };
  each(thresholds, nth_so_far, [&](std::size_t row) {
    const Slot& s = prepared.slots[row];
    const Entry entry{shape.key(s), row};
    if (nth_so_far.precedes(entry.key, s) || !is_live(query, shape, s, t) ||
        !query.admits(s, row) ||
        s.performance < shape.min_performance() || !useful(s))
      return false;
    if (keeps_sorted)
      insert_sorted(chosen, size++, entry, before);
    else
      chosen[size++] = entry;
    if (size == capacity || (keeps_sorted && size >= n)) keep_n_cheapest();
    return true;
  });
  if (size > n) keep_n_cheapest();
  chosen.resize(size);
  if (!keeps_sorted) std::sort(chosen.begin(), chosen.end(), before);
  return size == n;
}

template <class Shape>
Thresholds thresholds_at(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                         double t) {
  Thresholds thresholds = initial_thresholds(prepared, query, shape);
  thresholds.end = std::max(thresholds.end, Shape::zone_map(prepared).ending(t));
  return thresholds;
}

// Selects from the slots at positions 0..last. `nth_key` (upper bound on keys) and
// `least_performance` (lower bound) are known from the sweep.
template <class Shape, class Useful>
bool select_cheapest_at(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                        double t, std::size_t last, double nth_key, double least_performance,
                        Useful useful, std::vector<Entry>& chosen) {
  Thresholds thresholds = thresholds_at(prepared, query, shape, t);
  thresholds.key = max_index_key(shape.index_key_of(nth_key), 0);
  thresholds.performance =
      std::max(thresholds.performance, round_down(least_performance * (1 - kMargin)));
  return select_cheapest(
      prepared, query, shape, t, thresholds, useful, chosen,
      [&](const Thresholds& tightened, const NthCandidate<Shape>& nth_so_far, auto add) {
        Shape::zone_map(prepared).each_of(
            prepared.order, tightened, 0, last,
            [&](std::size_t entries) { return nth_so_far.blocks_to_visit(entries); },
            [&](std::size_t row, std::size_t) { return add(row), true; });
      });
}

}  // namespace slotkern

// The door: a strided view on the user's slot records, and the check that they are sane.
//
// check_slots is O(m) expected: every rule of the slot format in one pass, per-node rules
// through a table from node id to place. Everything behind it trusts its input.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "status.hpp"

namespace slotkern {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Five native fields anywhere in records of any size, aligned or not, forwards or
// backwards in memory: what numpy calls a structured array.
struct SlotView {
  const char* base = nullptr;
  std::ptrdiff_t stride = 0;
  std::ptrdiff_t node = 0, start = 0, end = 0, performance = 0, price = 0;  // offsets
  std::size_t size = 0;

  template <class T>
  T load(std::size_t row, std::ptrdiff_t offset) const {
    T value;
    std::memcpy(&value, base + static_cast<std::ptrdiff_t>(row) * stride + offset, sizeof value);
    return value;
  }
};

// Node ids may have any gaps: a flat table while they are dense, open addressing otherwise.
class NodeIndex {
 public:
  void reset(std::int32_t largest, std::size_t slots) {
    count_ = 0;
    dense_ = static_cast<std::size_t>(largest) < 4 * slots + 1024;
    std::size_t size = static_cast<std::size_t>(largest) + 1;
    if (!dense_) {
      size = 64;
      while (size < 2 * slots) size *= 2;
      ids_.assign(size, -1);
    }
    places_.assign(size, -1);
  }

  // The place of a node in order of first appearance, and whether it is new.
  std::int32_t place(std::int32_t id, bool& fresh) {
    std::size_t cell = static_cast<std::size_t>(id);
    if (!dense_) {
      const std::size_t mask = ids_.size() - 1;
      cell = (static_cast<std::uint64_t>(cell) * 0x9E3779B97F4A7C15u >> 32) & mask;
      while (ids_[cell] != -1 && ids_[cell] != id) cell = (cell + 1) & mask;
      ids_[cell] = id;
    }
    fresh = places_[cell] < 0;
    if (fresh) places_[cell] = count_++;
    return places_[cell];
  }

 private:
  bool dense_ = true;
  std::int32_t count_ = 0;
  std::vector<std::int32_t> ids_, places_;
};

// What the check learns about a node on its way.
struct Node {
  std::int32_t id;
  double performance;
  double min_price;     // over its slots
  double last_end;      // of the slot seen last
  std::size_t last_row;
};

struct CheckScratch {
  NodeIndex index;
  std::vector<Node> nodes;
  std::vector<std::int32_t> places;  // per slot: the place of its node
};

// Returns the first row that breaks a rule, fields in the order of the record, then order,
// then the rules about one node. On success `scratch` holds the nodes and each slot's place.
inline Fault check_slots(const SlotView& view, CheckScratch& scratch) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < view.size; ++i)
    largest = std::max(largest, view.load<std::int32_t>(i, view.node));
  scratch.index.reset(largest, view.size);
  scratch.nodes.clear();
  scratch.places.resize(view.size);
  double previous_start = -kInfinity;
  std::int32_t previous_node = -1;
  for (std::size_t i = 0; i < view.size; ++i) {
    const auto id = view.load<std::int32_t>(i, view.node);
    const auto start = view.load<double>(i, view.start);
    const auto end = view.load<double>(i, view.end);
    const auto performance = view.load<double>(i, view.performance);
    const auto price = view.load<double>(i, view.price);
    if (id < 0) return {Status::node_negative, i, i};
    if (!std::isfinite(start)) return {Status::start_not_finite, i, i};
    if (std::isnan(end)) return {Status::end_is_nan, i, i};
    if (!(end > start)) return {Status::end_not_after_start, i, i};
    if (!(performance > 0) || !std::isfinite(performance))
      return {Status::performance_not_positive, i, i};
    if (!(price >= 0) || !std::isfinite(price)) return {Status::price_not_valid, i, i};
    if (start < previous_start || (start == previous_start && id < previous_node))
      return {Status::not_sorted, i, i - 1};
    previous_start = start;
    previous_node = id;
    bool fresh;
    const std::int32_t place = scratch.index.place(id, fresh);
    scratch.places[i] = place;
    if (fresh) {
      scratch.nodes.push_back({id, performance, price, end, i});
      continue;
    }
    Node& node = scratch.nodes[static_cast<std::size_t>(place)];
    if (node.performance != performance) return {Status::performance_differs, i, node.last_row};
    if (start < node.last_end) return {Status::overlap, i, node.last_row};
    node.min_price = std::min(node.min_price, price);
    node.last_end = end;
    node.last_row = i;
  }
  return {};
}

}  // namespace slotkern

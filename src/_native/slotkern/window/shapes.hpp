// Shapes of windows: the run time and cost of a part, and the values that the zone map may prune
// by.
//
// A shape (ShapePolicy; contract in window/policies.hpp) is compiled into a sweep. The run time and
// cost of a part are defined here alone; index keys and ceilings are rearranged expressions whose
// margins err on the safe side.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "slotkern/slots/prepared.hpp"
#include "slotkern/window/policies.hpp"

namespace slotkern {

// Ragged windows: part i runs d_i = V / performance_i and costs V * rate_i. Index keys are rates.
struct Ragged {
  static constexpr bool per_part_length = true, index_order_is_key_order = true;
  double volume;

  explicit Ragged(const Query& query) : volume(query.volume) {}

  static const SlotZoneMap& zone_map(const PreparedSlots& prepared) { return prepared.by_rate; }
  double length_on(double performance) const { return volume / performance; }
  double length(const Slot& s) const { return length_on(s.performance); }
  double key(const Slot& s) const { return volume * s.rate; }
  double min_key(const Node& node) const {
    return volume * (node.min_price / node.performance) * (1 - kMargin);
  }
  double min_rate(const Node& node) const { return node.min_price / node.performance; }
  double index_key(const Slot& s) const { return s.rate; }
  double min_index_key(const Group& group) const { return group.least_rate; }
  double total(double sum) const { return sum; }
  double max_key_sum(double total) const { return total * (1 + kMargin) + kUnderflow; }
  double to_index_units(double total) const { return (total + kUnderflow) / volume; }
  double index_key_of(double key) const { return to_index_units(key); }
  double required_capacity() const { return volume; }
  double min_performance() const { return 0; }
  double shortest(const PreparedSlots& prepared) const {
    return length_on(prepared.nodes.front().performance);
  }
};

// Ragged windows of a request with overhead (setup or step): part i runs Query::length and costs
// that length times its price. Costs are then not in the order of rates, but a part costs at least
// its pure work, so the index of rates stays a valid filter, widened by the underflow of a rate. A
// rate that overflows makes a part infinitely expensive, as in Ragged.
struct RaggedWithOverhead {
  static constexpr bool per_part_length = true, index_order_is_key_order = false;
  const Query* query;

  explicit RaggedWithOverhead(const Query& given) : query(&given) {}

  static const SlotZoneMap& zone_map(const PreparedSlots& prepared) { return prepared.by_rate; }
  double length_on(double performance) const { return query->length(performance); }
  double length(const Slot& s) const { return length_on(s.performance); }
  double key(const Slot& s) const {
    return std::isinf(s.rate) ? kInfinity : cost(s.price, s.performance);
  }
  double min_key(const Node& node) const { return cost(node.min_price, node.performance); }
  double min_rate(const Node& node) const {
    return std::max(0.0, node.min_price / node.performance - kMinSubnormal_);
  }
  double index_key(const Slot& s) const { return s.rate; }
  double min_index_key(const Group& group) const { return group.least_rate; }
  double total(double sum) const { return sum; }
  double max_key_sum(double total) const { return total * (1 + kMargin) + kUnderflow; }
  double to_index_units(double total) const {
    return (total + kUnderflow) / query->volume + static_cast<double>(query->n) * kMinSubnormal_;
  }
  double index_key_of(double key) const { return to_index_units(key); }
  double required_capacity() const { return query->volume; }
  double min_performance() const { return 0; }
  double shortest(const PreparedSlots& prepared) const {
    return length_on(prepared.nodes.front().performance);
  }

 private:
  double cost(double price, double performance) const {  // a price of 0 costs nothing at any length
    return price > 0 ? price * length_on(performance) : 0;
  }

  static constexpr double kMinSubnormal_ = std::numeric_limits<double>::denorm_min();
};

// Ragged windows of any request, with the same bits as the shape of the request. Overhead is tested
// for each part instead of compiled in: for searches that spend far more on a part than this test.
struct AnyRagged : RaggedWithOverhead {
  explicit AnyRagged(const Query& given)
      : RaggedWithOverhead(given), has_overhead_(given.has_overhead()) {}

  double key(const Slot& s) const {
    return has_overhead_ ? RaggedWithOverhead::key(s) : Ragged(*query).key(s);
  }
  double min_key(const Node& node) const {
    return has_overhead_ ? RaggedWithOverhead::min_key(node) : Ragged(*query).min_key(node);
  }

 private:
  bool has_overhead_;
};

// Square windows: all parts run T = Query::length(P_k) on nodes with performance >= P_k; the window
// costs T * (sum of prices). Keys are prices.
struct Square {
  static constexpr bool per_part_length = false, index_order_is_key_order = true;
  double span, least;

  static const SlotZoneMap& zone_map(const PreparedSlots& prepared) { return prepared.by_price(); }
  double length(const Slot&) const { return span; }
  double key(const Slot& s) const { return s.price; }
  double index_key(const Slot& s) const { return s.price; }
  double min_index_key(const Group& group) const { return group.least_price; }
  double total(double sum) const { return span * sum; }
  double max_key_sum(double total) const { return (total + kUnderflow) / span * (1 + kMargin); }
  double to_index_units(double total) const { return (total + kUnderflow) / span; }
  double index_key_of(double key) const { return key; }
  double required_capacity() const { return span; }
  double min_performance() const { return least; }
  double shortest(const PreparedSlots&) const { return span; }
};

template <class Shape>
bool is_live(const Query& query, const Shape& shape, const Slot& slot, double t) {
  return t + shape.length(slot) <= query.limit(slot);
}

// The largest index key of a slot that fits under `ceiling` together with `least_others`; both
// sides are rounded to the safe side.
inline float max_index_key(double ceiling, double least_others) {
  const double most = ceiling - least_others + kMargin * (ceiling + least_others);
  return std::isnan(most) ? std::numeric_limits<float>::infinity() : round_up(most);
}

template <class Shape>
Thresholds initial_thresholds(const PreparedSlots& prepared, const Query& query,
                            const Shape& shape) {
  Thresholds thresholds;
  thresholds.capacity = round_down(shape.required_capacity() * (1 - kMargin));
  thresholds.performance = round_down(std::max(query.min_performance, shape.min_performance()));
  thresholds.end = Shape::zone_map(prepared).ending(query.earliest);
  return thresholds;
}

static_assert(ShapePolicy<Ragged> && ShapePolicy<RaggedWithOverhead> && ShapePolicy<AnyRagged> &&
              ShapePolicy<Square>);

}  // namespace slotkern

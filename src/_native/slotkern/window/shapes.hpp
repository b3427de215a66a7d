// Shapes of windows: how long a part takes and what it costs, and what the screen may rule out.
//
// A shape (ShapePolicy) is compiled into a sweep. SlotZoneMap keys and ceilings are rearranged
// expressions with margins on the safe side; what a part runs and costs is written here once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "slotkern/slots/prepared.hpp"
#include "slotkern/window/policies.hpp"

namespace slotkern {

// Part i runs d_i = V / performance_i and costs V * rate_i. SlotZoneMap keys are rates.
struct Ragged {
  static constexpr bool own_lengths = true, keys_by_screen = true;
  double volume;

  explicit Ragged(const Query& query) : volume(query.volume) {}

  static const SlotZoneMap& screen(const PreparedSlots& prepared) { return prepared.by_rate; }
  double length_on(double performance) const { return volume / performance; }
  double length(const Slot& s) const { return length_on(s.performance); }
  double key(const Slot& s) const { return volume * s.rate; }
  double least_key(const Node& node) const {
    return volume * (node.min_price / node.performance) * (1 - kMargin);
  }
  double least_rate(const Node& node) const { return node.min_price / node.performance; }
  double screen_key(const Slot& s) const { return s.rate; }
  double least_screen_key(const Group& group) const { return group.least_rate; }
  double total(double sum) const { return sum; }
  double most_sum(double total) const { return total * (1 + kMargin) + kUnderflow; }
  double screened(double total) const { return (total + kUnderflow) / volume; }  // screen units
  double screen_key_of(double key) const { return screened(key); }
  double room() const { return volume; }
  double performance() const { return 0; }
  double shortest(const PreparedSlots& prepared) const {
    return length_on(prepared.nodes.front().performance);
  }
};

// The same for a charged request: part i runs Query::length and costs so much times its price.
// No order of rates is one of costs then, but a part costs no less than its work alone, so that
// the screen of rates holds. It is loosened by what a rate may gain where it underflows. A
// rate that overflows makes a part infinitely dear, as in Ragged.
struct Charged {
  static constexpr bool own_lengths = true, keys_by_screen = false;
  const Query* query;

  explicit Charged(const Query& asked) : query(&asked) {}

  static const SlotZoneMap& screen(const PreparedSlots& prepared) { return prepared.by_rate; }
  double length_on(double performance) const { return query->length(performance); }
  double length(const Slot& s) const { return length_on(s.performance); }
  double key(const Slot& s) const {
    return std::isinf(s.rate) ? kInfinity : cost(s.price, s.performance);
  }
  double least_key(const Node& node) const { return cost(node.min_price, node.performance); }
  double least_rate(const Node& node) const {
    return std::max(0.0, node.min_price / node.performance - kLeast);
  }
  double screen_key(const Slot& s) const { return s.rate; }
  double least_screen_key(const Group& group) const { return group.least_rate; }
  double total(double sum) const { return sum; }
  double most_sum(double total) const { return total * (1 + kMargin) + kUnderflow; }
  double screened(double total) const {
    return (total + kUnderflow) / query->volume + static_cast<double>(query->n) * kLeast;
  }
  double screen_key_of(double key) const { return screened(key); }
  double room() const { return query->volume; }
  double performance() const { return 0; }
  double shortest(const PreparedSlots& prepared) const {
    return length_on(prepared.nodes.front().performance);
  }

 private:
  double cost(double price, double performance) const {  // what is free is so at any length
    return price > 0 ? price * length_on(performance) : 0;
  }

  static constexpr double kLeast = std::numeric_limits<double>::denorm_min();
};

// All parts run T = Query::length(P_k) on nodes with performance >= P_k; the window costs
// T * (sum of prices). Keys are prices.
struct Square {
  static constexpr bool own_lengths = false, keys_by_screen = true;
  double span, least;

  static const SlotZoneMap& screen(const PreparedSlots& prepared) { return prepared.by_price(); }
  double length(const Slot&) const { return span; }
  double key(const Slot& s) const { return s.price; }
  double screen_key(const Slot& s) const { return s.price; }
  double least_screen_key(const Group& group) const { return group.least_price; }
  double total(double sum) const { return span * sum; }
  double most_sum(double total) const { return (total + kUnderflow) / span * (1 + kMargin); }
  double screened(double total) const { return (total + kUnderflow) / span; }
  double screen_key_of(double key) const { return key; }
  double room() const { return span; }
  double performance() const { return least; }
  double shortest(const PreparedSlots&) const { return span; }
};

template <class Shape>
bool live(const Query& query, const Shape& shape, const Slot& slot, double t) {
  return t + shape.length(slot) <= query.limit(slot);
}

// The screen keys of slots that fit under `ceiling` beside `others` (both sides rounded safe).
inline float key_ceiling(double ceiling, double least_others) {
  const double most = ceiling - least_others + kMargin * (ceiling + least_others);
  return std::isnan(most) ? std::numeric_limits<float>::infinity() : round_up(most);
}

template <class Shape>
Thresholds first_thresholds(const PreparedSlots& prepared, const Query& query,
                            const Shape& shape) {
  Thresholds thresholds;
  thresholds.capacity = round_down(shape.room() * (1 - kMargin));
  thresholds.performance = round_down(std::max(query.min_performance, shape.performance()));
  thresholds.end = Shape::screen(prepared).ending(query.earliest);
  return thresholds;
}

static_assert(ShapePolicy<Ragged> && ShapePolicy<Charged> && ShapePolicy<Square>);

}  // namespace slotkern

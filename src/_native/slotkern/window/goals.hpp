// Goals of a sweep: the test for a better step, the slots that can still help, and the stop rule.
//
// A goal (GoalPolicy; contract in window/policies.hpp) is compiled into a sweep. Its tests keep
// ties as long as the tie rule (window/tie_rule.hpp) needs them.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

// The best step of a sweep: its time and row, the total cost, the longest part, and the n-th
// smallest key, which is an upper bound on the keys of the canonical window at this time.
struct Best {
  bool found = false;
  bool other_groups_may_tie = true;  // another group may have the same value at the same time
  bool entries_valid = false;  // Workspace::chosen holds the window
  double start = 0, total = 0, longest = 0, finish = kInfinity, nth_key = 0;
  std::size_t defining_row = 0, group = 0;
};

// Smallest positive double: the relative rounding error of lengths near it is unbounded.
inline constexpr double kMinSubnormal = std::numeric_limits<double>::denorm_min();

// The common part of all goals; each test is explained in window/policies.hpp.
struct Goal {
  static constexpr bool needs_times = true;  // needs best.longest and best.finish
  static constexpr bool can_bound_by_fast_nodes = false;  // a bound by fast nodes only pays off
  // a better window may exist at the same time
  static constexpr bool can_improve_at_same_time = false;
  // evaluates after each slot, not after each start
  static constexpr bool evaluate_per_slot = false;
  // slots after the step may belong to its window
  static constexpr bool later_slots_may_join = false;
  double budget;
  Best best;
  // lower bound on the value of any window: reaching it proves optimality
  double least = -kInfinity;
  // Index keys above it are not visited.
  float max_probed_key = std::numeric_limits<float>::infinity();

  double ceiling() const { return budget; }
  bool is_past(double, double) const { return false; }
  bool is_useful(double, double) const { return true; }
  bool accepts(double, double total) const { return total <= budget; }
  bool can_stop() const { return true; }
  double least_performance(double) const { return 0; }
};

// The earliest start at which the n cheapest slots fit the budget.
struct EarliestStart : Goal {
  bool is_past(double t, double) const { return best.found && t >= best.start; }
};

// The first step, in slot order, at which they fit.
struct EarliestStep : EarliestStart {
  static constexpr bool evaluate_per_slot = true;
};

// The earliest finish over performance groups. Later groups are slower, so at an equal finish they
// start earlier.
struct EarliestFinishOfGroups : Goal {
  bool is_past(double t, double span) const {
    return best.found &&
           (t + span > best.finish || (t + span == best.finish && t >= best.start));
  }
};

struct LowestCost : Goal {
  static constexpr bool needs_times = false;
  double ceiling() const { return best.found ? best.total : budget; }
  bool accepts(double t, double total) {
    const bool better = best.found
                            ? total < best.total || (total == best.total && t < best.start)
                            : total <= budget;
    if (better)
      best.other_groups_may_tie = false;
    else if (total == best.total && t == best.start)
      best.other_groups_may_tie = true;
    return better;
  }
  bool can_stop() const { return best.total <= least; }
};

// The shortest longest part: drops all parts that are as long as the longest, and evaluates again.
struct ShortestRuntime : Goal {
  static constexpr bool can_bound_by_fast_nodes = true, can_improve_at_same_time = true,
                        evaluate_per_slot = true, later_slots_may_join = true;
  bool is_past(double, double shortest) const { return best.found && best.longest <= shortest; }
  bool is_useful(double, double length) const { return !best.found || length < best.longest; }
  bool can_stop() const { return best.longest <= least; }
  double least_performance(double volume) const { return volume / (best.longest + kMinSubnormal); }
};

// The earliest t + d. The sum is rounded, hence the margin of an ulp of the finish.
struct EarliestFinish : Goal {
  static constexpr bool can_improve_at_same_time = true, evaluate_per_slot = true,
                        later_slots_may_join = true;
  bool is_past(double t, double shortest) const {
    return best.found && t + shortest >= best.finish;
  }
  bool is_useful(double t, double length) const { return !best.found || t + length < best.finish; }
  bool can_stop() const { return best.finish <= least; }
  double least_performance(double volume) const {
    return volume / (best.longest + kMinSubnormal + std::fabs(best.finish) * 0x1p-51);
  }
};

}  // namespace slotkern

// Goals of a sweep: what counts as better, which slots can still help, when to stop.
//
// A goal (GoalPolicy) is compiled into a sweep and never dispatched within it. Its tests keep
// equality as long as the tie rule needs it.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

// What a sweep found: the step's time and row, the total, the longest part, and the n-th
// smallest key, which bounds the keys of the canonical window at this time.
struct Best {
  bool found = false;
  bool other_groups_may_tie = true;  // another group may have the same value at the same time
  bool entries_valid = false;  // Workspace::chosen holds the window
  double start = 0, total = 0, longest = 0, finish = kInfinity, nth_key = 0;
  std::size_t defining_row = 0, group = 0;
};

// Goals. ceiling(): no total above it helps. is_past(t): no step from t on helps. is_useful(t, d):
// a part of length d can be in a better window. can_stop(): stop at once.

// The least double: lengths near it are rounded by more than a share of themselves.
inline constexpr double kMinSubnormal = std::numeric_limits<double>::denorm_min();

struct Goal {
  static constexpr bool needs_times = true;     // needs best.longest and best.finish
  static constexpr bool can_bound_by_fast_nodes = false;  // worth bounding the rest by fast nodes only
  static constexpr bool can_improve_at_same_time = false;  // a better window may stand at the same time
  static constexpr bool evaluate_per_slot = false;  // judges after each slot, not after each time
  static constexpr bool later_slots_may_join = false;  // slots behind the step may belong to its window
  double budget;
  Best best;
  double least = -kInfinity;  // no window has a lower value: what reaches it is the best
  float max_probed_key = std::numeric_limits<float>::infinity();  // look at screen keys up to here only

  double ceiling() const { return budget; }
  bool is_past(double, double) const { return false; }
  bool is_useful(double, double) const { return true; }
  bool accepts(double, double total) const { return total <= budget; }
  bool can_stop() const { return true; }
  double least_performance(double) const { return 0; }
};

// The first time at which the n cheapest fit.
struct EarliestStart : Goal {
  bool is_past(double t, double) const { return best.found && t >= best.start; }
};

// The first step of that time at which they do.
struct EarliestStep : EarliestStart {
  static constexpr bool evaluate_per_slot = true;
};

// The same, for the earliest finish over groups: later groups are slower, so at an equal
// finish they start earlier.
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

// The longest part only ever falls: drop all that are as long, look again.
struct ShortestRuntime : Goal {
  static constexpr bool can_bound_by_fast_nodes = true, can_improve_at_same_time = true, evaluate_per_slot = true, later_slots_may_join = true;
  bool is_past(double, double shortest) const { return best.found && best.longest <= shortest; }
  bool is_useful(double, double length) const { return !best.found || length < best.longest; }
  bool can_stop() const { return best.longest <= least; }
  double least_performance(double volume) const { return volume / (best.longest + kMinSubnormal); }
};

// The same with t + d; the sum is rounded, hence the extra room of an ulp of the finish.
struct EarliestFinish : Goal {
  static constexpr bool can_improve_at_same_time = true, evaluate_per_slot = true, later_slots_may_join = true;
  bool is_past(double t, double shortest) const { return best.found && t + shortest >= best.finish; }
  bool is_useful(double t, double length) const { return !best.found || t + length < best.finish; }
  bool can_stop() const { return best.finish <= least; }
  double least_performance(double volume) const {
    return volume / (best.longest + kMinSubnormal + std::fabs(best.finish) * 0x1p-51);
  }
};

}  // namespace slotkern

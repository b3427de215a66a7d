// The best window by an additive criterion: n slots of the largest total value within the budget,
// at every step of the sweep (2018, sections 3.2 and 3.3).
//
// Budgets are in units of the key (square: prices, budget / T; ragged: money), so that only the
// budget changes from group to group. Why the result is exact:
// - A group's Lagrangian bound over its nodes (best value, least price) holds for all its steps.
//   Groups are swept by falling bound until it does not exceed the incumbent; if there are many
//   groups, value/ranges.hpp prunes most of them first.
// - If values are constant in time, only sets that contain the newest slot are new at a step
//   (value/newest.hpp); if they change with time, every step is bounded by itself
//   (value/steps.hpp).
//
// A group's set without a slot of its performance P_k is shorter and belongs to a faster group. It
// may be kept if longer is no better; else (`needs_anchor`) sets must contain such a slot. With
// `group_span` it suffices that one is live (the papers' procedure): T is the group's length.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "slotkern/value/newest.hpp"
#include "slotkern/value/ranges.hpp"
#include "slotkern/value/steps.hpp"

namespace slotkern {

template <class Shape, class Source>
class ValueSearch {
  using State = ValueIncumbent<Shape, Source>;
  using Plan = typename State::Plan;
  using Ranges = GroupRanges<Shape, Source>;

 public:
  ValueSearch(const PreparedSlots& prepared, const Query& query, const Source& source,
              const ValueOptions& options, ValueWorkspace& work)
      : state_(prepared, query, source, options, work) {}

  const ValueOutcome& result() const { return state_; }

  // Returns false if there is no window, or at a fault; else work.chosen holds the rows of the best
  // one.
  bool run() {
    state_.list_groups();
    if constexpr (Ranges::apply)
      if (ranges_.should_run()) {
        if (!ranges_.sweep_sample([this] { return sweep_listed(); })) return false;
        ranges_.run([this](const Plan& plan) { sweep(plan); });
        conclude();
        return !state_.work.chosen.empty();
      }
    if (!sweep_listed()) return false;
    conclude();
    return !state_.work.chosen.empty();
  }

 private:
  // Sweeps the groups in work.plans by falling bound. Returns false at a fault.
  bool sweep_listed() {
    if (!state_.bound_plans()) return false;
    state_.work.sort_plans_by_bound();
    for (const Plan& plan : state_.work.plans) {
      if (!(plan.bound > state_.cutoff(state_.best, plan.lambda))) continue;
      if (state_.is_out_of_work()) {
        state_.mark_unproven(plan.bound);
        break;
      }
      sweep(plan);
      if (state_.fault.status != Status::ok) return false;
    }
    return true;
  }

  void sweep(const Plan& plan) {
    state_.begin_group();
    sweep_.run(state_.shape_of(plan), plan);
  }

  // Computes the final bound.
  void conclude() {
    state_.effort.work = state_.knapsack.work;
    const double best = state_.best;
    if (!std::isfinite(best)) return;
    const double relative = std::max(state_.options.gap, 1e-12) * std::fabs(best);
    state_.bound =
        std::max(state_.bound,
                 best + std::max(relative, state_.knapsack.rounding(state_.n, best)));
  }

  State state_;
  std::conditional_t<Source::moving, StepSweep<Shape, Source>, NewestSweep<Shape, Source>> sweep_{
      state_};
  Ranges ranges_{state_};
};

}  // namespace slotkern

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
#include <vector>

#include "slotkern/value/cheapest_steps.hpp"
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

  // The best window: its total, start, proof and statistics.
  const State& result() const { return state_; }

  // Returns false if there is no window, or at a fault; else work.chosen holds the rows of the best
  // one.
  bool run() {
    state_.list_groups();
    if (state_.options.lite && !state_.options.any_start) return run_lite();
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

  // Computes the best total of each step into work.steps; stops after the first that is not proven.
  // Returns false at a fault.
  bool record() {
    state_.list_groups();
    if (!state_.bound_plans()) return false;
    state_.work.steps.clear();
    state_.recording = true;
    for (const Plan& plan : state_.work.plans) {
      steps_.run(state_.shape_of(plan), plan);
      if (state_.fault.status != Status::ok) return false;
      if (!state_.proven) break;
    }
    return true;
  }

 private:
  // Lite: sweeps all groups that can pay for a window, fastest first; bounds would take longer.
  bool run_lite() {
    for (const Plan& plan : state_.work.plans) {
      if (++state_.effort.groups == State::kLong) enable_interrupts();
      poll();
      cheapest_.run(state_.shape_of(plan), plan);
      if (state_.fault.status != Status::ok) return false;
    }
    conclude();
    return !state_.work.chosen.empty();
  }

  // Sweeps the groups in work.plans by falling bound. Returns false at a fault.
  bool sweep_listed() {
    if (!state_.bound_plans()) return false;
    const ValueOptions& options = state_.options;
    state_.work.sort_plans_by_bound();
    for (const Plan& plan : state_.work.plans) {
      // A Lite window shorter than its group's length may be worth more than the group's bound.
      const bool sure =
          !options.lite || !State::kSquare || !Source::length_dependent || options.group_span;
      if (sure && !(plan.bound > state_.cutoff(state_.best, plan.lambda))) continue;
      if (state_.is_out_of_work()) {
        state_.mark_unproven(plan.bound);
        break;
      }
      sweep(plan);
      if (state_.fault.status != Status::ok) return false;
    }
    return true;
  }

  // Sweeps one group, by the method that its source requires.
  void sweep(const Plan& plan) {
    if (++state_.effort.groups == State::kLong) enable_interrupts();
    poll();
    if constexpr (!Source::moving)
      if (!state_.options.lite) return newest_.run(state_.shape_of(plan), plan);
    steps_.run(state_.shape_of(plan), plan);
  }

  // Computes the final bound; a Lite answer is never proven.
  void conclude() {
    state_.effort.work = state_.knapsack.work;
    const double best = state_.best;
    if (state_.options.lite) {
      state_.proven = false;
      state_.bound = kInfinity;
    } else if (std::isfinite(best)) {
      const double relative = std::max(state_.options.gap, 1e-12) * std::fabs(best);
      state_.bound = std::max(
          state_.bound, best + std::max(relative, state_.knapsack.rounding(state_.n, best)));
    }
  }

  State state_;
  NewestSweep<Shape, Source> newest_{state_};
  StepSweep<Shape, Source> steps_{state_};
  CheapestSteps<Shape, Source> cheapest_{state_};
  Ranges ranges_{state_};
};

}  // namespace slotkern

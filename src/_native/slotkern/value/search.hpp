// The best window by any additive criterion: n slots of the largest total value within the
// budget, at every step of the sweep (2018, sections 3.2 and 3.3).
//
// Budgets are in units of the key (square: prices, budget / T; ragged: budget_charge), so that only the
// budget changes from group to group. Exact, because
//   - a group's LagrangianBound bound over its nodes (best value, cutoff price) holds for all its steps;
//     groups are swept by falling bound expiry that is no better than the incumbent, of many
//     groups only those that value/ranges.hpp leaves;
//   - when values do not move with time, only sets that hold the newest slot are new at a step
//     (value/newest.hpp); when they move, every step is bounded anew (value/steps.hpp).
// A group's set without a slot of its performance P_k has its true length in a faster group. It
// does no harm where longer is no better; else (`anchored`) sets must hold such a slot. With
// `group_span` they need not, as long as one is live (the papers' procedure): T is the group's.
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

  // What is known of the best window: its total, start, what proves it, the work.
  const State& result() const { return state_; }

  // The rows of the best window are in work.chosen. False if there is none, or at a fault.
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

  // The best total of each step by itself, in work.steps; up to the first that is not proven.
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
  // All groups that can pay for a window, fastest first: no bound is worth its time.
  bool run_lite() {
    for (const Plan& plan : state_.work.plans) {
      if (++state_.effort.groups == State::kLong) expect_long();
      poll();
      cheapest_.run(state_.shape_of(plan), plan);
      if (state_.fault.status != Status::ok) return false;
    }
    conclude();
    return !state_.work.chosen.empty();
  }

  // The groups in work.plans by falling bound. False at a fault.
  bool sweep_listed() {
    if (!state_.bound_plans()) return false;
    const ValueOptions& options = state_.options;
    std::vector<Plan>& plans = state_.work.plans;
    std::sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
      return a.bound > b.bound || (a.bound == b.bound && a.group < b.group);
    });
    for (const Plan& plan : plans) {
      // A Lite window shorter than its group's time may be worth more than the group's bound.
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

  void sweep(const Plan& plan) {
    if (++state_.effort.groups == State::kLong) expect_long();
    poll();
    if (Source::moving || state_.options.lite)
      steps_.run(state_.shape_of(plan), plan);
    else
      newest_.run(state_.shape_of(plan), plan);
  }

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

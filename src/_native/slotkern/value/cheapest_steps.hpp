// Lite heuristic (2018, section 4): for one performance group, evaluates at each step the window of
// the n cheapest live slots that the group's window length can pay for.
//
// A step is a slot that fits the group and joins. Only the n cheapest live slots are kept in order
// (window/top_n.hpp). Their window is evaluated again only if one of them is new, if one has
// expired, or if values change with time and the time differs. A window counts only while a slot of
// the group's own performance is live, be it part of the window or not.
//
// O(slots) a group, O(n) for each window evaluated, O(log slots) for a slot that waits until
// cheaper ones have expired.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/value/steps.hpp"

namespace slotkern {

struct CostOrder {  // by cost, with the tie-break
  const PreparedSlots* prepared;
  bool operator()(const Entry& a, const Entry& b) const { return is_cheaper(*prepared, a, b); }
};

template <class Shape>
class CheapestSteps {
  using State = ValueIncumbent<Shape, AnySource>;
  using Plan = typename State::Plan;

 public:
  explicit CheapestSteps(State& state)
      : state_(state), prepared_(state.prepared), query_(state.query), source_(state.source),
        options_(state.options), n_(static_cast<std::size_t>(state.n)),
        top_(CostOrder{&prepared_}) {}

  // Sweeps the group's slots in order of start and updates the incumbent.
  void run(const Shape& shape, const Plan& plan) {
    if (admitted_.empty()) list_admitted();
    const double budget = state_.key_budget(shape);
    top_.reset(n_, admitted_.size());
    is_stale_ = false, next_expiry_ = kInfinity;
    double anchored = -kInfinity;  // latest end of the anchors so far
    double before = -kInfinity;
    for (const AdmittedSlot& one : admitted_) {
      if (one.performance < shape.min_performance()) continue;
      const Slot& slot = prepared_.slots[one.row];
      const double length = shape.length(slot), t = one.start;
      if (!(t + length <= one.limit)) continue;
      if (state_.is_anchor(shape, one.row)) anchored = std::max(anchored, one.limit);
      const double key = shape.key(slot);
      is_stale_ |= (source_.moving && t != before) | (t > next_expiry_);
      // A slot too expensive for any window still makes a step.
      if (key <= budget) is_stale_ |= top_.offer(key, one.row);
      before = t;
      if (!is_stale_ || !top_.full()) continue;
      if (State::kSquare && !(t + length <= anchored)) continue;
      if (++state_.effort.steps == State::kLong) enable_interrupts();
      poll();
      if (!value(shape, plan, budget, t)) return;
    }
  }

 private:
  struct AdmittedSlot {
    double start, limit, performance;
    std::size_t row;
  };

  // Lists the admitted slots with their first start and their limit.
  void list_admitted() {
    prepared_.each_row([&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      if (query_.admits(s, row))
        admitted_.push_back({query_.start_in(s), query_.limit(s), s.performance, row});
    });
  }

  // Evaluates the n cheapest slots at time t. Returns false at a fault.
  bool value(const Shape& group, const Plan& plan, double budget, double t) {
    const auto keep = [&](std::size_t row) {
      return is_live(query_, group, prepared_.slots[row], t);
    };
    while (top_.drop_expired(keep))
      if (!top_.full()) return true;  // is_stale_ stays set
    is_stale_ = false, next_expiry_ = kInfinity;
    double slowest = kInfinity;
    for (std::size_t i = 0; i < n_; ++i) {
      const Slot& s = prepared_.slots[top_[i].row];
      next_expiry_ = std::min(next_expiry_, state_.latest_start(s, group.length(s)));
      slowest = std::min(slowest, s.performance);
    }
    if (top_.lower() > budget) return true;
    Shape shape = group;
    if constexpr (State::kSquare)
      if (!options_.group_span) shape = Square{query_.length(slowest), slowest};
    double total = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t row = top_[i].row;
      const Slot& s = prepared_.slots[row];
      double z = 0;
      if (!source_.value(s, row, t, shape.length(s), z)) return state_.fail(row);
      total += z;
    }
    if (!(total > state_.best) || !(top_.sum() <= budget)) return true;
    state_.best = total;
    state_.start = t;
    if constexpr (State::kSquare) state_.span = plan.span;
    state_.work.chosen.clear();
    for (std::size_t i = 0; i < n_; ++i) state_.work.chosen.push_back(top_[i].row);
    return true;
  }

  State& state_;
  const PreparedSlots& prepared_;
  const Query& query_;
  const AnySource& source_;
  const ValueOptions& options_;
  const std::size_t n_;
  TopN<CostOrder> top_;
  std::vector<AdmittedSlot> admitted_;  // all admitted slots, by time
  bool is_stale_ = false;  // the current n cheapest have not been evaluated
  double next_expiry_ = kInfinity;  // no evaluated slot expires before
};

// The search by Lite; its answer is never proven.
template <class Shape>
class LiteSearch {
  using State = ValueIncumbent<Shape, AnySource>;
  using Plan = typename State::Plan;

 public:
  LiteSearch(const PreparedSlots& prepared, const Query& query, const AnySource& source,
             const ValueOptions& options, ValueWorkspace& work)
      : state_(prepared, query, source, options, work) {}

  const ValueOutcome& result() const { return state_; }

  // Returns false if there is no window, or at a fault; else work.chosen holds the rows of the best
  // one.
  bool run() {
    state_.list_groups();
    if (!(state_.options.any_start ? sweep_all_starts() : sweep_slots())) return false;
    state_.effort.work = state_.knapsack.work;
    state_.proven = false, state_.bound = kInfinity;
    return !state_.work.chosen.empty();
  }

 private:
  // Sweeps all groups that can pay for a window, fastest first; bounds would take longer. Returns
  // false at a fault.
  bool sweep_slots() {
    for (const Plan& plan : state_.work.plans) {
      state_.begin_group();
      cheapest_.run(state_.shape_of(plan), plan);
      if (state_.fault.status != Status::ok) return false;
    }
    return true;
  }

  // Sweeps the groups by falling bound. Returns false at a fault.
  bool sweep_all_starts() {
    if (!state_.bound_plans()) return false;
    state_.work.sort_plans_by_bound();
    // A window shorter than its group's length may be worth more than the group's bound.
    const bool is_bounded = !State::kSquare || !state_.source.length_dependent ||
                            state_.options.group_span;
    for (const Plan& plan : state_.work.plans) {
      if (is_bounded && !(plan.bound > state_.cutoff(state_.best, plan.lambda))) continue;
      if (state_.is_out_of_work()) break;
      state_.begin_group();
      steps_.run(state_.shape_of(plan), plan);
      if (state_.fault.status != Status::ok) return false;
    }
    return true;
  }

  State state_;
  CheapestSteps<Shape> cheapest_{state_};
  StepSweep<Shape, AnySource> steps_{state_};
};

}  // namespace slotkern

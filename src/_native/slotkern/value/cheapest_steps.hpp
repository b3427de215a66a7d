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
#include "slotkern/value/incumbent.hpp"

namespace slotkern {

struct CostOrder {  // by cost, with the tie-break
  const PreparedSlots* prepared;
  bool operator()(const Entry& a, const Entry& b) const { return is_cheaper(*prepared, a, b); }
};

template <class Shape, class Source>
class CheapestSteps {
  using State = ValueIncumbent<Shape, Source>;
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
      is_stale_ |= (Source::moving && t != before) | (t > next_expiry_);
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
  const Source& source_;
  const ValueOptions& options_;
  const std::size_t n_;
  TopN<CostOrder> top_;
  std::vector<AdmittedSlot> admitted_;  // all admitted slots, by time
  bool is_stale_ = false;  // the current n cheapest have not been evaluated
  double next_expiry_ = kInfinity;  // no evaluated slot expires before
};

}  // namespace slotkern

// The sweep of a group for Lite (2018, section 4): the n cheapest slots of each step that the
// group's time can pay for, valued as the window that they are.
//
// A step is a slot that fits the group and joins. Only the n cheapest live slots are kept in order
// (window/cheapest.hpp). They are valued again only if one of them is new, if one has expired, or
// if values move and the time is another one: else the step's window was valued before. A set
// counts while a slot of the group's own performance is live, whether it is in the set or not.
//
// O(slots) a group, O(n) for each set that is valued; O(log slots) for a slot that waits until
// cheaper ones have expired.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/value/incumbent.hpp"

namespace slotkern {

template <class Shape, class Source>
class CheapestSteps {
  using State = ValueIncumbent<Shape, Source>;
  using Plan = typename State::Plan;

 public:
  explicit CheapestSteps(State& state)
      : state_(state), prepared_(state.prepared), query_(state.query), source_(state.source),
        options_(state.options), n_(static_cast<std::size_t>(state.n)), top_(Order{&prepared_}) {}

  void run(const Shape& shape, const Plan& plan) {
    if (joining_.empty()) list_joining();
    const double budget = state_.key_budget(shape);
    top_.reset(n_, joining_.size());
    is_stale_ = false, next_expiry_ = kInfinity;
    double anchored = -kInfinity;  // the latest end of the anchors so far
    double before = -kInfinity;
    for (const Joining& one : joining_) {
      if (one.performance < shape.performance()) continue;
      const Slot& slot = prepared_.slots[one.row];
      const double length = shape.length(slot), t = one.start;
      if (!(t + length <= one.limit)) continue;
      if (state_.is_anchor(shape, one.row)) anchored = std::max(anchored, one.limit);
      const double key = shape.key(slot);
      is_stale_ |= (Source::moving && t != before) | (t > next_expiry_);
      // A slot too dear for any window makes a step all the same.
      if (key <= budget) is_stale_ |= top_.offer(key, one.row);
      before = t;
      if (!is_stale_ || !top_.full()) continue;
      if (State::kSquare && !(t + length <= anchored)) continue;
      if (++state_.effort.steps == State::kLong) expect_long();
      poll();
      if (!value(shape, plan, budget, t)) return;
    }
  }

 private:
  struct Joining {
    double start, limit, performance;
    std::size_t row;
  };
  struct Order {  // of the tie rule
    const PreparedSlots* prepared;
    bool operator()(const Entry& a, const Entry& b) const { return cheaper(*prepared, a, b); }
  };

  void list_joining() {
    prepared_.each_row([&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      if (query_.admits(s, row))
        joining_.push_back({query_.start_in(s), query_.limit(s), s.performance, row});
    });
  }

  // Values the n cheapest at t. False at a fault.
  bool value(const Shape& group, const Plan& plan, double budget, double t) {
    const auto keep = [&](std::size_t row) {
      return live(query_, group, prepared_.slots[row], t);
    };
    while (top_.purge(keep))
      if (!top_.full()) return true;  // still stale
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
  SmallestOf<Order> top_;
  std::vector<Joining> joining_;  // all slots that are admitted, by time
  bool is_stale_ = false;            // the n cheapest have not been valued as they are
  double next_expiry_ = kInfinity;    // none of those that were valued expires before
};

}  // namespace slotkern

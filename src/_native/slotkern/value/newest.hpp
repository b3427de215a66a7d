// The sweep of a group where values stay: only a set that holds the newest slot is new at a step.
//
// Its bound: the weights of that slot and of the n - 1 heaviest others. The knapsack is solved
// only where this beats the incumbent; a slot that cannot beat it with the heaviest others of the
// whole group is never kept. O(live) a slot that is kept, and the knapsacks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slotkern/value/incumbent.hpp"

namespace slotkern {

template <class Shape, class Source>
class NewestSweep {
  using State = ValueIncumbent<Shape, Source>;
  using Plan = typename State::Plan;

 public:
  explicit NewestSweep(State& state)
      : state_(state), prepared_(state.prepared), query_(state.query), source_(state.source),
        options_(state.options), w_(state.work), knapsack_(state.knapsack), n_(state.n) {}

  void run(const Shape& shape, const Plan& from) {
    if (state_.listed)
      sweep<true>(shape, from);
    else
      sweep<false>(shape, from);
  }

 private:
  static constexpr std::size_t kNone = State::kNone;
  static constexpr std::int64_t kLong = State::kLong;
  static std::size_t at(int j) { return State::at(j); }

  template <bool kListed>
  void sweep(const Shape& shape, const Plan& from) {
    Plan plan = from;
    double heaviest = 0;  // the n - 1 heaviest nodes
    if (!state_.tighten(plan, heaviest, shape)) return;
    const double lambda = plan.lambda, money = lambda * plan.budget;
    double least = state_.beat(state_.best, lambda);
    w_.clear();
    double soonest = kInfinity;  // no live slot expires before
    std::size_t place = plan.memo;
    state_.template each_possible<kListed>(shape, plan.least_others, [&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      const double t = query_.start_in(s), length = shape.length(s);
      double z = 0;
      if (plan.memo != kNone)
        z = w_.memo[place++];
      else if (!source_.value(s, row, t, length, z))
        return state_.fail(row);
      const double key = shape.key(s), weight = z - lambda * key;
      if (key > plan.budget || !(weight + heaviest + money > least)) return true;
      if (++state_.effort.steps == kLong) expect_long();
      poll();
      if (t > soonest) soonest = w_.purge(t, [&](std::size_t row) {
        return live(query_, shape, prepared_.slots[row], t);
      });
      const int others = n_ - 1, count = static_cast<int>(w_.row.size());
      if (count >= others) {
        double top = weight + money;
        for (int k = 0; k < others; ++k) top += w_.weight[at(k)];
        if (top > least) {
          solve_newest(shape, plan, row, key, z, t);
          least = state_.beat(state_.best, lambda);
          if (state_.out_of_work()) {
            state_.give_up(plan.bound);
            return false;
          }
        }
      }
      const double until = state_.latest(s, length);
      w_.insert(weight, key, z, until, row, state_.is_anchor(shape, row));
      soonest = std::min(soonest, until);
      return true;
    });
  }

  void solve_newest(const Shape& shape, const Plan& plan, std::size_t row, double key, double z,
                    double t) {
    ++state_.effort.subsets;
    const double before = state_.best;
    const Forced forced{1, {key, 0}, z};
    const Items items{w_.key.data(), w_.value.data(), static_cast<int>(w_.row.size())};
    const bool found = knapsack_.improve(items, w_.weight.data(), n_ - 1, plan.budget,
                                         plan.lambda, forced, before);
    if (!found) {
      if (!knapsack_.complete) state_.give_up(knapsack_.bound);
      return;
    }
    if (!State::kAnchored || state_.is_anchor(shape, row) || state_.any_anchor()) {
      if (!knapsack_.complete) state_.give_up(knapsack_.bound);
      state_.take(shape, t, row);
      return;
    }
    state_.incumbent = before;
    // Not one of them has this group's length: force its slots in, one after the other.
    state_.with_anchors(shape, plan, t, [&](int anchor) {
      return Forced{2, {key, w_.key[at(anchor)]}, z + w_.value[at(anchor)]};
    }, n_ - 2, row);
  }

  State& state_;
  const PreparedSlots& prepared_;
  const Query& query_;
  const Source& source_;
  const ValueOptions& options_;
  ValueWorkspace& w_;
  Knapsack& knapsack_;
  const int n_;
};

}  // namespace slotkern

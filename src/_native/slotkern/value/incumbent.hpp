// What the sweeps of a search by value share beside its groups: the best window so far and what
// is known about it, and the choice that holds an anchor.
//
// An anchor is a slot of the group's performance P_k. A set without one has its true length in a
// faster group. Where longer may look better (`Source::needs_anchor`) a set must hold one: each live
// anchor is forced in, one after the other, O(anchors) knapsacks, and so nothing is missed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/value/groups.hpp"

namespace slotkern {

template <class Shape, class Source>
struct ValueIncumbent : ValueGroups<Shape, Source> {
  using Groups = ValueGroups<Shape, Source>;
  using typename Groups::Plan;
  using Groups::kNone, Groups::kSquare;
  using Groups::prepared, Groups::query, Groups::options, Groups::work, Groups::knapsack,
      Groups::n;

  static constexpr bool kAnchored = kSquare && Source::needs_anchor;
  static constexpr std::int64_t kLong = 256;  // steps or groups that take a while

  Effort effort;
  bool proven = true;
  double best = -kInfinity, bound = -kInfinity;  // totals, larger is better
  double start = 0;
  double span = 0;              // of the group that the best window was found in
  bool recording = false;       // each step counts by itself
  double incumbent = -kInfinity;  // what a step must cutoff

  using Groups::Groups;

  // Not before there is a window at all, for None means that nothing fits.
  bool is_out_of_work() const { return best > -kInfinity && knapsack.work >= options.limits.work; }

  void mark_unproven(double open) {
    proven = false;
    bound = std::max(bound, open);
  }

  // The group's own multiplier, and the weights of its n - 1 heaviest nodes under it.
  bool tighten_bound(Plan& plan, double& heaviest, const Shape& shape) {
    if (this->listed_rows) {
      heaviest = this->listed_heaviest;
      return plan.bound > this->cutoff(best, plan.lambda);
    }
    // Ragged windows have one group, whose nodes plan() has valued.
    if (kSquare && Source::length_dependent && !this->value_nodes(shape, plan)) return false;
    this->list_nodes(0, prepared.groups[plan.group].end);
    const Items items{work.node_key.data(), work.node_value.data(),
                      static_cast<int>(work.node_value.size())};
    if (!this->solve_dual(items, plan, plan.lambda)) return false;
    if (!(plan.bound > this->cutoff(best, plan.lambda))) return false;
    heaviest = 0;
    if (n > 1) {
      LagrangianBound::select_heaviest(items, n - 1, 1, plan.lambda, work.side);
      heaviest = work.side.weight;
    }
    return true;
  }

  bool is_anchor(const Shape& shape, std::size_t row) const {
    const Slot& s = prepared.slots[row];
    return !kSquare || query.length(s.performance) == shape.length(s);
  }

  bool holds_anchor() const {
    for (const int j : knapsack.chosen)
      if (work.anchor[at(j)]) return true;
    return false;
  }

  // Solves with every anchor among the live slots forced in, the ones before it left out.
  template <class Force>
  void solve_with_each_anchor(const Shape& shape, const Plan& plan, double t, Force force, int pick,
                    std::size_t newest) {
    const int count = static_cast<int>(work.row.size());
    work.order.clear();  // the items left
    for (int j = 0; j < count; ++j) work.order.push_back(j);
    for (int anchor = 0; anchor < count && pick >= 0; ++anchor) {
      poll();
      if (!work.anchor[at(anchor)]) continue;
      std::erase(work.order, anchor);
      work.some_key.clear(), work.some_value.clear(), work.some = work.order;
      for (const int j : work.some) {
        work.some_key.push_back(work.key[at(j)]);
        work.some_value.push_back(work.value[at(j)]);
      }
      const Items items{work.some_key.data(), work.some_value.data(),
                        static_cast<int>(work.some.size())};
      ++effort.subsets;
      const bool found = knapsack.solve(items, pick, plan.budget, force(anchor), incumbent,
                                        plan.lambda);
      if (!knapsack.complete) mark_unproven(knapsack.bound);
      if (!found) continue;
      for (int& j : knapsack.chosen) j = work.some[at(j)];
      knapsack.chosen.push_back(anchor);
      accept_set(shape, t, newest);
    }
  }

  // knapsack.chosen are live slots; `newest` comes on top unless it is kNone.
  void accept_set(const Shape& shape, double t, std::size_t newest) {
    incumbent = knapsack.best;
    if (recording) return;
    best = knapsack.best;
    start = t;
    if constexpr (kSquare) span = shape.span;
    work.chosen.clear();
    for (const int j : knapsack.chosen) work.chosen.push_back(work.row[at(j)]);
    if (newest != kNone) work.chosen.push_back(newest);
  }

  // Up to this time the slot is live for sure; the test itself is on a rounded sum.
  double latest_start(const Slot& s, double length) const {
    const double limit = query.limit(s);
    return std::isinf(limit) ? limit : limit - length - 4 * 0x1p-52 * (std::fabs(limit) + length);
  }

  static std::size_t at(int j) { return static_cast<std::size_t>(j); }
};

}  // namespace slotkern

// State shared by the sweeps of a search by value: the incumbent window, its proof, and the choice
// of a set that contains an anchor.
//
// An anchor is a slot of the group's own performance P_k. A window without one is shorter than the
// group's length and belongs to a faster group. If a longer length may raise values
// (`Source::needs_anchor`), a set must contain an anchor: each live anchor is forced in, one after
// the other. This takes O(anchors) knapsacks and misses no set.
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
      Groups::n, Groups::source;
  using Groups::effort, Groups::proven, Groups::best, Groups::bound, Groups::start, Groups::span;

  static constexpr std::int64_t kLong = 256;  // more steps or groups take a while

  bool recording = false;  // record mode: each step has its own incumbent
  double incumbent = -kInfinity;  // the total that a step must exceed

  using Groups::Groups;

  // Counts a group, and lets signals in.
  void begin_group() {
    if (++effort.groups == kLong) enable_interrupts();
    poll();
  }

  // The work limit is ignored until a first window exists, because returning none would claim
  // infeasibility.
  bool is_out_of_work() const { return best > -kInfinity && knapsack.work >= options.limits.work; }

  // Records that sets worth up to `open` were not searched.
  void mark_unproven(double open) {
    proven = false;
    bound = std::max(bound, open);
  }

  // Computes the group's own multiplier and bound, and the weights of its n - 1 heaviest nodes
  // under it. Returns false if the group cannot beat the incumbent.
  bool tighten_bound(Plan& plan, double& heaviest, const Shape& shape) {
    if (this->listed_rows) {
      heaviest = this->listed_heaviest;
      return plan.bound > this->cutoff(best, plan.lambda);
    }
    // Ragged windows have one group, whose nodes bound_plans() has evaluated.
    if (kSquare && source.length_dependent && !this->value_nodes(shape, plan)) return false;
    this->list_nodes(0, prepared.groups[plan.group].end);
    const Items items{work.node_key.data(), work.node_value.data(),
                      static_cast<int>(work.node_value.size())};
    if (!this->solve_dual(items, plan, plan.lambda)) return false;
    if (!(plan.bound > this->cutoff(best, plan.lambda))) return false;
    heaviest = 0;
    if (n > 1) {
      LagrangianBound::select_heaviest(items, n - 1, 1, plan.lambda, work.heaviest);
      heaviest = work.heaviest.weight;
    }
    return true;
  }

  // True if a set without an anchor may be worth less than computed.
  bool needs_anchor() const { return kSquare && source.needs_anchor; }

  bool is_anchor(const Shape& shape, std::size_t row) const {
    const Slot& s = prepared.slots[row];
    return !kSquare || query.length(s.performance) == shape.length(s);
  }

  bool holds_anchor() const {
    for (const int j : knapsack.chosen)
      if (work.anchor[at(j)]) return true;
    return false;
  }

  // Solves one knapsack for each live anchor: it is forced in, and the anchors before it are
  // excluded.
  template <class Force>
  void solve_with_each_anchor(const Shape& shape, const Plan& plan, double t, Force force, int pick,
                    std::size_t newest) {
    const int count = static_cast<int>(work.row.size());
    work.order.clear();  // items not excluded
    for (int j = 0; j < count; ++j) work.order.push_back(j);
    for (int anchor = 0; anchor < count && pick >= 0; ++anchor) {
      poll();
      if (!work.anchor[at(anchor)]) continue;
      std::erase(work.order, anchor);
      work.subset_key.clear(), work.subset_value.clear(), work.subset = work.order;
      for (const int j : work.subset) {
        work.subset_key.push_back(work.key[at(j)]);
        work.subset_value.push_back(work.value[at(j)]);
      }
      const Items items{work.subset_key.data(), work.subset_value.data(),
                        static_cast<int>(work.subset.size())};
      ++effort.subsets;
      const bool found = knapsack.solve(items, pick, plan.budget, force(anchor), incumbent,
                                        plan.lambda);
      if (!knapsack.complete) mark_unproven(knapsack.bound);
      if (!found) continue;
      for (int& j : knapsack.chosen) j = work.subset[at(j)];
      knapsack.chosen.push_back(anchor);
      accept_set(shape, t, newest);
    }
  }

  // Makes the set of live slots in knapsack.chosen the incumbent, together with `newest` unless it
  // is kNone.
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

  // A time up to which the slot is live in any case; the exact test is on a rounded sum.
  double latest_start(const Slot& s, double length) const {
    const double limit = query.limit(s);
    return std::isinf(limit) ? limit : limit - length - 4 * 0x1p-52 * (std::fabs(limit) + length);
  }

  static std::size_t at(int j) { return static_cast<std::size_t>(j); }
};

}  // namespace slotkern

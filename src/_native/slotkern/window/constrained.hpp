// Finds the best window by a built-in criterion under sum limits (limits on sums over the parts).
//
// If the best window without the limits satisfies them, it is the answer. Otherwise an exact search
// with the same goals (window/goals.hpp) solves, for each start, a multidimensional knapsack
// (choice/multidim_knapsack.hpp) over the live slots, with the new slot forced in if only one is
// new. By first, start, finish and runtime any better set is accepted, repeatedly while there is
// one; by cost a cheaper one. The tie rule then selects the window at that start: the lowest cost,
// then the slots that come first in cost order. Square: each group holds the windows that last
// exactly as long as the group's own slots run.
//
// Exact while the work suffices (Query::max_work, counted). If a step is still undecided, the
// answer is not proven, and `bound` is the lowest value that a window of such a step can have.
// Cost: one knapsack per start in the worst case, O(live slots * limits) if its bounds decide.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/best.hpp"
#include "slotkern/window/constrained_cheapest.hpp"

namespace slotkern {

namespace detail {

// Returns true if a window satisfies the limits; all square parts run for `runtime`.
inline bool satisfies_limits(const SumConstraints& limits, const std::vector<Part>& parts,
                             bool square, double runtime, ConstrainedScratch& work) {
  for (const SumConstraint& limit : limits.all) {
    work.sum.clear();
    for (const Part& part : parts) {
      double use = 0;
      if (part.row >= limits.rows || !limit.use(part.row, square ? runtime : part.length, use) ||
          !(std::fabs(use) <= kMaxUse))
        return false;
      work.sum.add(use);
    }
    if (!limit.is_met_by(work.sum.value())) return false;
  }
  return true;
}

}  // namespace detail

// A lower bound on the value of all windows that a search has not decided.
template <class Criterion>
struct UndecidedBound {
  bool any = false;
  double bound = kInfinity;

  // Adds windows that start at t or later and last `runtime` or longer.
  void add(double t, double runtime) {
    any = true;
    bound = std::min(bound, Criterion::value(t, runtime, 0));
  }
};

// One pass over the slots of a shape, like Sweep of window/sweep.hpp: improves goal.best.
template <class Shape, class Goal, class Criterion>
class ConstrainedSweep {
 public:
  ConstrainedSweep(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                   Goal& goal, ConstrainedScratch& work, std::vector<Entry>& entries,
                   UndecidedBound<Criterion>& undecided)
      : prepared_(prepared), query_(query), shape_(shape), goal_(goal), w_(work),
        entries_(entries), undecided_(undecided), filter_(work),
        live_(prepared, query, shape, work), shortest_(shape.shortest(prepared)) {}

  std::size_t failed() const { return live_.failed; }

  // Returns true if it found something better than goal.best.
  bool run() {
    prepared_.each_row([&](std::size_t row) {
      if (finished_) return;
      if (filter_.built()) {
        const double most = shape_.max_key_sum(goal_.ceiling());
        if ((finished_ = filter_.prunes_all(most)) || filter_.prunes(row, most)) return;
      }
      visit_slot(row);
    });
    if (!finished_) find_better();
    return better_;
  }

 private:
  void visit_slot(std::size_t row) {
    const Slot& slot = prepared_.slots[row];
    const double t = query_.start_in(slot);
    if (t > t_) {
      find_better();
      if (finished_) return;
    }
    if (t > query_.latest || goal_.is_past(t, shortest_)) {
      finished_ = true;
      return;
    }
    const double length = shape_.length(slot);
    if (!live_.is_live(slot, row, t) || !goal_.is_useful(t, length)) return;
    poll();
    if (detail::exceeds_work_limit(query_, w_)) {
      undecided_.add(t, shortest_);
      finished_ = true;
      return;
    }
    live_.expire(t);
    if (Goal::can_improve_at_same_time && t > t_ && goal_.best.found) drop_useless_slots(t);
    if (t > t_) knapsack_calls_at_t_ = 0;
    t_ = t;
    if (!live_.add(row)) {
      finished_ = live_.failed == row;
      return;
    }
    ++new_slots_, newest_row_ = row;
    if (Criterion::only_up_to_step || knapsack_calls_at_t_++ < kOneByOne) find_better();
  }

  // Searches sets that start at t_: those with the newest slot if it is the only new one, else any.
  void find_better() {
    if (new_slots_ == 0) return;
    const auto newest_is_last = [&] {
      return live_.size() > 0 && live_.row(static_cast<int>(live_.size()) - 1) == newest_row_;
    };
    const bool forced = new_slots_ == 1;
    new_slots_ = 0;
    bool complete = true;
    while (!forced || newest_is_last()) {
      const bool any =
          live_.solve_cheap(forced, query_.max_cost(), kInfinity, kAnyGap, query_.max_work);
      complete = w_.knapsack.complete;
      if (!any) break;
      record(newest_row_, t_, live_.total());
      if (goal_.can_stop() || !Goal::can_improve_at_same_time) {
        finished_ = true;
        return;
      }
      drop_useless_slots(t_);
    }
    if (!complete)
      undecided_.add(t_, forced ? shape_.length(prepared_.slots[newest_row_]) : shortest_);
    if (++knapsack_calls_ == kCallsBeforeFilter)
      finished_ = !filter_.build(prepared_, query_, shape_, live_);
  }

  void drop_useless_slots(double t) {
    live_.keep_if(
        [&](int j) { return goal_.is_useful(t, shape_.length(prepared_.slots[live_.row(j)])); });
  }

  void record(std::size_t row, double t, double total) {
    Best& best = goal_.best;
    better_ = best.found = true;
    best.start = t;
    best.total = total;
    best.longest = live_.longest();
    best.finish = t + best.longest;
    best.defining_row = row;
    entries_ = live_.entries();
  }

  static constexpr int kOneByOne = detail::kOneByOne;
  static constexpr double kAnyGap = 1e100;  // the first set closes this gap
  // knapsacks before the filter is built from all slots
  static constexpr int kCallsBeforeFilter = 24;

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  Goal& goal_;
  ConstrainedScratch& w_;
  std::vector<Entry>& entries_;  // of the best set
  UndecidedBound<Criterion>& undecided_;
  LagrangianFilter filter_;
  ConstrainedLiveSet<Shape> live_;
  int knapsack_calls_ = 0;
  int knapsack_calls_at_t_ = 0;  // knapsacks solved at t_
  std::size_t new_slots_ = 0, newest_row_ = 0;  // number of new slots at t_, and the last one
  const double shortest_;
  double t_ = -kInfinity;
  bool finished_ = false, better_ = false;
};

// The search of one request.
template <class Criterion>
class ConstrainedSearch {
 public:
  std::size_t failed = Proof::kNone;

  ConstrainedSearch(const PreparedSlots& prepared, const Query& query, Workspace& work,
                    Found& found)
      : prepared_(prepared), query_(query), work_(work), w_(constrained_scratch()), found_(found) {
    w_.knapsack.work = 0;
  }

  // Returns true if the answer (also "none") is proven.
  bool proven(bool any, double value) const {
    return !undecided_.any || (any && !Criterion::only_up_to_step && !(undecided_.bound < value));
  }
  double bound() const { return undecided_.bound; }
  std::int64_t work() const { return w_.knapsack.work; }

  template <class Shape>
  bool ragged() {
    const Shape shape(query_);
    typename Criterion::RaggedRules::Goal goal{{query_.max_cost(), {}}};
    if (!sweep(shape, goal)) return false;
    Best& best = goal.best;
    if (!Criterion::value_is_cost) select_canonical(shape, best, kInfinity);
    detail::build_window(prepared_, shape, chosen_, chosen_.size(), best.start, found_, work_.parts,
                   work_.node_order);
    return true;
  }

  bool square() {
    detail::compute_group_bounds(prepared_, query_, work_);
    bounds_ = work_.bounds;
    if (Criterion::value_is_cost) std::sort(bounds_.begin(), bounds_.end(), has_lower_bound);
    typename Criterion::SquareRules::Goal goal{{query_.max_cost(), {}}};
    const double first = std::max(prepared_.first_start(), query_.earliest);
    for (next_ = 0; next_ < bounds_.size();) {
      const Workspace::GroupBound bound = bounds_[next_++];
      poll();
      if (bound.total > goal.ceiling() || goal.is_past(first, bound.span)) continue;
      if (detail::exceeds_work_limit(query_, w_)) {
        add_undecided(bound, first);
        continue;
      }
      if (sweep(shape_of(bound), goal)) goal.best.group = bound.group;
      if (failed != Proof::kNone) return false;
      if (Criterion::SquareRules::stops_at_first_group && goal.best.found) break;
    }
    if (!goal.best.found) return false;
    return select_square_window(goal.best);
  }

 private:
  void add_undecided(const Workspace::GroupBound& group, double first) {
    if constexpr (Criterion::value_is_cost) {
      undecided_.any = true;
      undecided_.bound = std::min(undecided_.bound, group.total);
    } else {
      undecided_.add(first, group.span);
    }
  }

  template <class Shape, class Goal>
  bool sweep(const Shape& shape, Goal& goal) {
    ConstrainedSweep<Shape, Goal, Criterion> sweep(prepared_, query_, shape, goal, w_, chosen_,
                                              undecided_);
    const bool better = sweep.run();
    failed = sweep.failed();
    return better && failed == Proof::kNone;
  }

  template <class Shape>
  bool sweep(const Shape& shape, LowestCost& goal) {
    ConstrainedCheapestSweep<Shape> sweep(prepared_, query_, shape, goal, w_, chosen_);
    const bool better = sweep.run();
    undecided_.any = undecided_.any || !sweep.proven;
    undecided_.bound = std::min(undecided_.bound, sweep.bound);
    failed = sweep.failed();
    if constexpr (!Shape::per_part_length)
      if (!bounds_raised_ && next_ < bounds_.size() && !(bounds_[next_].total > goal.ceiling()))
        raise_group_bounds(sweep.filter(), shape.span);
    return better && failed == Proof::kNone;
  }

  // Raises the bounds of all groups by the multipliers of one of them, and sorts the remaining
  // groups again.
  void raise_group_bounds(LagrangianFilter& filter, double span) {
    bounds_raised_ = filter.raise_group_bounds(prepared_, query_, span, work_.bounds);
    if (!bounds_raised_) return;
    for (Workspace::GroupBound& bound : bounds_)
      bound = *std::lower_bound(work_.bounds.begin(), work_.bounds.end(), bound.group,
                                [](const auto& a, std::size_t group) { return a.group < group; });
    std::sort(bounds_.begin() + static_cast<std::ptrdiff_t>(next_), bounds_.end(), has_lower_bound);
  }

  static bool has_lower_bound(const Workspace::GroupBound& a, const Workspace::GroupBound& b) {
    return a.total < b.total || (a.total == b.total && a.group < b.group);
  }

  Square shape_of(const Workspace::GroupBound& bound) const {
    return {bound.span, prepared_.groups[bound.group].performance};
  }

  // Writes to chosen_ the canonical window at best.start among slots of this shape, with cost at
  // most `most`. Returns false, with chosen_ unchanged, if there is none or the work did not
  // suffice.
  template <class Shape>
  bool select_canonical(const Shape& shape, const Best& best, double most) {
    ConstrainedLiveSet<Shape> live(prepared_, query_, shape, w_);
    const double t = best.start;
    bool over = false;
    prepared_.each_row([&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      over = over || query_.start_in(s) > t;
      if (over) return;
      const bool ok =
          !Shape::per_part_length ||
          Criterion::RaggedRules::is_part_allowed(best, t, shape.length(s));
      if (ok && live.is_live(s, row, t)) live.add(row);
      over = Criterion::only_up_to_step && row == best.defining_row;
    });
    most = std::min(most, query_.max_cost());
    const bool any =
        live.solve_cheap(false, most, kInfinity, 0, w_.knapsack.work + tie_work_limit());
    if (!any || live.total() > most) return false;
    chosen_ = live.entries();
    if (live.select_cheapest(live.total(), true, tie_work_limit())) chosen_ = live.entries();
    return true;
  }

  bool select_square_window(const Best& best) {
    double cost = kInfinity;
    work_.parts.clear();
    const auto try_group = [&](const Workspace::GroupBound& bound, bool chosen) {
      const Square shape = shape_of(bound);
      if (!chosen && !select_canonical(shape, best, cost) && bound.group != best.group) return;
      Found trial;
      detail::build_window(prepared_, shape, chosen_, chosen_.size(), best.start, trial,
                     work_.trial_parts, work_.node_order);
      trial.processor_time = static_cast<double>(query_.n) * trial.runtime;
      const auto by_node = [](const Part& a, const Part& b) { return a.node < b.node; };
      if (trial.cost > cost ||
          (trial.cost == cost &&
           !std::lexicographical_compare(work_.trial_parts.begin(), work_.trial_parts.end(),
                                         work_.parts.begin(), work_.parts.end(), by_node)))
        return;
      cost = trial.cost;
      found_ = trial;
      work_.parts.swap(work_.trial_parts);
    };
    for (const Workspace::GroupBound& bound : bounds_)
      if (bound.group == best.group) try_group(bound, Criterion::value_is_cost);
    if (!Criterion::SquareRules::best_group_only)
      for (const Workspace::GroupBound& bound : bounds_)
        if (bound.group != best.group &&
            Criterion::SquareRules::is_span_allowed(best, bound.span) &&
            !(bound.total > cost))
          try_group(bound, false);
    return cost < kInfinity;
  }

  // Work limit of each search that decides ties at the best start.
  std::int64_t tie_work_limit() const {
    return std::max<std::int64_t>(kMinWork, query_.max_work / 16);
  }

  const PreparedSlots& prepared_;
  const Query& query_;
  Workspace& work_;
  ConstrainedScratch& w_;
  Found& found_;
  std::vector<Workspace::GroupBound> bounds_;
  std::size_t next_ = 0;  // next entry of bounds_ to search
  bool bounds_raised_ = false;
  UndecidedBound<Criterion> undecided_;
  std::vector<Entry> chosen_;
};

}  // namespace slotkern

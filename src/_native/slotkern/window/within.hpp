// The best window by a built-in criterion under limits on sums over the parts.
//
// First the search without the limits: a window that keeps them is the best of all. Else an exact
// search of its own, with the same goals (window/goals.hpp). Each start asks the knapsack under
// several limits (choice/multidim_knapsack.hpp) for a set of the live slots, with the new slot forced
// in if only one is new: first, start, finish and runtime for any that is better, again and
// again while there is one; cost for a cheaper one. Then the window is taken at that start by the
// tie rule: the lowest cost, then the slots that come first in cost order.
// Square: each group holds the windows that last as long as its own slots do.
//
// Exact as long as the work suffices (Query::max_work, counted). A step that is not decided by
// then leaves the answer unproven, and `bound` is the least value that a window of such a step can
// have. A knapsack a start in the worst case, O(live slots * limits) if its bounds settle it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/best.hpp"
#include "slotkern/window/cheapest_sweep.hpp"

namespace slotkern {

namespace detail {

// Whether a window keeps the limits; square parts all run as long as it does.
inline bool keeps_limits(const SumConstraints& limits, const std::vector<Part>& parts, bool square,
                         double runtime, WithinScratch& work) {
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

// The least value of windows that a search has not decided about.
template <class Criterion>
struct Undecided {
  bool any = false;
  double bound = kInfinity;

  // Windows that start at t or later and last as long or longer.
  void add(double t, double runtime) {
    any = true;
    bound = std::min(bound, Criterion::value(t, runtime, 0));
  }
};

// One pass over the slots of a shape: raises goal.best. As Sweep of window/sweep.hpp.
template <class Shape, class Goal, class Criterion>
class WithinSweep {
 public:
  WithinSweep(const PreparedSlots& prepared, const Query& query, const Shape& shape, Goal& goal,
              WithinScratch& work, std::vector<Entry>& entries, Undecided<Criterion>& undecided)
      : prepared_(prepared), query_(query), shape_(shape), goal_(goal), w_(work),
        entries_(entries), undecided_(undecided), sieve_(work),
        live_(prepared, query, shape, work), shortest_(shape.shortest(prepared)) {}

  std::size_t failed() const { return live_.failed; }

  // Whether it found something better than goal.best.
  bool run() {
    prepared_.each_row([&](std::size_t row) {
      if (over_) return;
      if (sieve_.built()) {
        const double most = shape_.most_sum(goal_.ceiling());
        if ((over_ = sieve_.stops_all(most)) || sieve_.stops(row, most)) return;
      }
      take(row);
    });
    if (!over_) find_better();
    return better_;
  }

 private:
  void take(std::size_t row) {
    const Slot& slot = prepared_.slots[row];
    const double t = query_.start_in(slot);
    if (t > t_) {
      find_better();
      if (over_) return;
    }
    if (t > query_.latest || goal_.past(t, shortest_)) {
      over_ = true;
      return;
    }
    const double length = shape_.length(slot);
    if (!live_.live(slot, row, t) || !goal_.useful(t, length)) return;
    poll();
    if (detail::overworked(query_, w_)) {
      undecided_.add(t, shortest_);
      over_ = true;
      return;
    }
    live_.expire(t);
    if (Goal::repeats && t > t_ && goal_.best.found) drop_useless(t);
    if (t > t_) asked_here_ = 0;
    t_ = t;
    if (!live_.add(row)) {
      over_ = live_.failed == row;
      return;
    }
    ++fresh_, newest_ = row;
    if (Criterion::up_to_step || asked_here_++ < kOneByOne) find_better();
  }

  // Sets that start at t_: that hold the newest slot, if it is the only new one, else any.
  void find_better() {
    if (fresh_ == 0) return;
    const auto newest_is_last = [&] {
      return live_.size() > 0 && live_.row(static_cast<int>(live_.size()) - 1) == newest_;
    };
    const bool forced = fresh_ == 1;
    fresh_ = 0;
    bool complete = true;
    while (!forced || newest_is_last()) {
      const bool any =
          live_.solve_cheap(forced, query_.max_cost(), kInfinity, kAny, query_.max_work);
      complete = w_.knapsack.complete;
      if (!any) break;
      record(newest_, t_, live_.total());
      if (goal_.enough() || !Goal::repeats) {
        over_ = true;
        return;
      }
      drop_useless(t_);
    }
    if (!complete) undecided_.add(t_, forced ? shape_.length(prepared_.slots[newest_]) : shortest_);
    if (++asked_ == kPatience) over_ = !sieve_.build(prepared_, query_, shape_, live_);
  }

  void drop_useless(double t) {
    live_.keep_if(
        [&](int j) { return goal_.useful(t, shape_.length(prepared_.slots[live_.row(j)])); });
  }

  void record(std::size_t row, double t, double total) {
    Best& best = goal_.best;
    better_ = best.found = true;
    best.start = t;
    best.total = total;
    best.longest = live_.longest();
    best.finish = t + best.longest;
    best.step = row;
    entries_ = live_.entries();
  }

  static constexpr int kOneByOne = detail::kOneByOne;
  static constexpr double kAny = 1e100;  // a gap that the first set closes
  static constexpr int kPatience = 24;   // knapsacks before all slots are looked through

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  Goal& goal_;
  WithinScratch& w_;
  std::vector<Entry>& entries_;  // of the best set
  Undecided<Criterion>& undecided_;
  WithinSieve sieve_;
  LiveWithin<Shape> live_;
  int asked_ = 0;
  int asked_here_ = 0;                  // knapsacks at t_
  std::size_t fresh_ = 0, newest_ = 0;  // slots that are new at t_, and the last of them
  const double shortest_;
  double t_ = -kInfinity;
  bool over_ = false, better_ = false;
};

// The search of one request.
template <class Criterion>
class WithinSearch {
 public:
  std::size_t failed = Proof::kNone;

  WithinSearch(const PreparedSlots& prepared, const Query& query, Workspace& work, Found& found)
      : prepared_(prepared), query_(query), work_(work), w_(within_scratch()), found_(found) {
    w_.knapsack.work = 0;
  }

  // Whether the answer, or that there is none, is proven.
  bool proven(bool any, double value) const {
    return !undecided_.any || (any && !Criterion::up_to_step && !(undecided_.bound < value));
  }
  double bound() const { return undecided_.bound; }
  std::int64_t work() const { return w_.knapsack.work; }

  template <class Shape>
  bool ragged() {
    const Shape shape(query_);
    typename Criterion::RaggedRules::Goal goal{{query_.max_cost(), {}}};
    if (!sweep(shape, goal)) return false;
    Best& best = goal.best;
    if (!Criterion::by_bound) take(shape, best, kInfinity);
    detail::settle(prepared_, shape, chosen_, chosen_.size(), best.start, found_, work_.parts,
                   work_.node_order);
    return true;
  }

  bool square() {
    detail::bound_groups(prepared_, query_, work_);
    bounds_ = work_.bounds;
    if (Criterion::by_bound) std::sort(bounds_.begin(), bounds_.end(), promising);
    typename Criterion::SquareRules::Goal goal{{query_.max_cost(), {}}};
    const double first = std::max(prepared_.first_start(), query_.earliest);
    for (next_ = 0; next_ < bounds_.size();) {
      const Workspace::Bound bound = bounds_[next_++];
      poll();
      if (bound.total > goal.ceiling() || goal.past(first, bound.span)) continue;
      if (detail::overworked(query_, w_)) {
        add_undecided(bound, first);
        continue;
      }
      if (sweep(shape_of(bound), goal)) goal.best.group = bound.group;
      if (failed != Proof::kNone) return false;
      if (Criterion::SquareRules::first_group && goal.best.found) break;
    }
    if (!goal.best.found) return false;
    return take_square(goal.best);
  }

 private:
  void add_undecided(const Workspace::Bound& group, double first) {
    if constexpr (Criterion::by_bound) {
      undecided_.any = true;
      undecided_.bound = std::min(undecided_.bound, group.total);
    } else {
      undecided_.add(first, group.span);
    }
  }

  template <class Shape, class Goal>
  bool sweep(const Shape& shape, Goal& goal) {
    WithinSweep<Shape, Goal, Criterion> sweep(prepared_, query_, shape, goal, w_, chosen_,
                                              undecided_);
    const bool better = sweep.run();
    failed = sweep.failed();
    return better && failed == Proof::kNone;
  }

  template <class Shape>
  bool sweep(const Shape& shape, LowestCost& goal) {
    CheapestSweep<Shape> sweep(prepared_, query_, shape, goal, w_, chosen_);
    const bool better = sweep.run();
    undecided_.any = undecided_.any || !sweep.proven;
    undecided_.bound = std::min(undecided_.bound, sweep.bound);
    failed = sweep.failed();
    if constexpr (!Shape::own_lengths)
      if (!raised_ && next_ < bounds_.size() && !(bounds_[next_].total > goal.ceiling()))
        raise(sweep.sieve(), shape.span);
    return better && failed == Proof::kNone;
  }

  // The bounds of the groups, by the multipliers of one of them; those that are left in order.
  void raise(WithinSieve& sieve, double span) {
    raised_ = sieve.raise(prepared_, query_, span, work_.bounds);
    if (!raised_) return;
    for (Workspace::Bound& bound : bounds_)
      bound = *std::lower_bound(work_.bounds.begin(), work_.bounds.end(), bound.group,
                                [](const auto& a, std::size_t group) { return a.group < group; });
    std::sort(bounds_.begin() + static_cast<std::ptrdiff_t>(next_), bounds_.end(), promising);
  }

  static bool promising(const Workspace::Bound& a, const Workspace::Bound& b) {
    return a.total < b.total || (a.total == b.total && a.group < b.group);
  }

  Square shape_of(const Workspace::Bound& bound) const {
    return {bound.span, prepared_.groups[bound.group].performance};
  }

  // The canonical window at best.start among slots of this shape, no dearer than `most`, into
  // chosen_. False: there is none, or the work did not suffice; chosen_ is as it was.
  template <class Shape>
  bool take(const Shape& shape, const Best& best, double most) {
    LiveWithin<Shape> live(prepared_, query_, shape, w_);
    const double t = best.start;
    bool over = false;
    prepared_.each_row([&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      over = over || query_.start_in(s) > t;
      if (over) return;
      const bool ok =
          !Shape::own_lengths || Criterion::RaggedRules::part_ok(best, t, shape.length(s));
      if (ok && live.live(s, row, t)) live.add(row);
      over = Criterion::up_to_step && row == best.step;
    });
    most = std::min(most, query_.max_cost());
    const bool any = live.solve_cheap(false, most, kInfinity, 0, w_.knapsack.work + take_work());
    if (!any || live.total() > most) return false;
    chosen_ = live.entries();
    if (live.cheapest(live.total(), true, take_work())) chosen_ = live.entries();
    return true;
  }

  bool take_square(const Best& best) {
    double cost = kInfinity;
    work_.parts.clear();
    const auto take_group = [&](const Workspace::Bound& bound, bool chosen) {
      const Square shape = shape_of(bound);
      if (!chosen && !take(shape, best, cost) && bound.group != best.group) return;
      Found trial;
      detail::settle(prepared_, shape, chosen_, chosen_.size(), best.start, trial,
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
    for (const Workspace::Bound& bound : bounds_)
      if (bound.group == best.group) take_group(bound, Criterion::by_bound);
    if (!Criterion::SquareRules::best_group_only)
      for (const Workspace::Bound& bound : bounds_)
        if (bound.group != best.group && Criterion::SquareRules::span_ok(best, bound.span) &&
            !(bound.total > cost))
          take_group(bound, false);
    return cost < kInfinity;
  }

  // Of each of the searches that settle ties at the best start.
  std::int64_t take_work() const {
    return std::max<std::int64_t>(kLeastWork, query_.max_work / 16);
  }

  const PreparedSlots& prepared_;
  const Query& query_;
  Workspace& work_;
  WithinScratch& w_;
  Found& found_;
  std::vector<Workspace::Bound> bounds_;
  std::size_t next_ = 0;  // of them
  bool raised_ = false;
  Undecided<Criterion> undecided_;
  std::vector<Entry> chosen_;
};

}  // namespace slotkern

// The cheapest window of a shape under limits on sums over the parts.
//
// Under the filter's multipliers (window/lagrangian_filter.hpp) a set that is new at a step costs no
// less than the step's slot and the n - 1 least of the others. Steps are asked by rising bound,
// not by time: the first one mostly has the best set, and what it costs rules out nearly all
// others, and at the next steps nearly all slots. The knapsack's answers are good up to a
// tolerance: last of all the starts where a set may cost as little are searched exactly, by time,
// for the cheapest set by the tie rule.
//
// Exact as long as the work suffices (Query::max_work). O(slots * limits) a pivot, O(live
// slots) a step that passes the filter, and initial_limit knapsacks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/goals.hpp"
#include "slotkern/window/lagrangian_filter.hpp"

namespace slotkern {

// Raises goal.best, the canonical window there into `chosen`, in cost order.
template <class Shape>
class ConstrainedCheapestSweep {
 public:
  bool proven = true;
  double bound = kInfinity;  // of totals, where they are not proven

  ConstrainedCheapestSweep(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                LowestCost& goal, ConstrainedScratch& work, std::vector<Entry>& chosen)
      : prepared_(prepared), query_(query), shape_(shape), goal_(goal), w_(work),
        chosen_(chosen), filter_(work), live_(prepared, query, shape, work),
        n_(static_cast<std::size_t>(query.n)) {
    w_.ties.clear();
  }

  std::size_t failed() const { return live_.failed; }
  LagrangianFilter& filter() { return filter_; }

  // Whether it found something better than goal.best.
  bool run() {
    if (!filter_.build(prepared_, query_, shape_, live_)) return false;
    // A low ceiling early: first a initial_limit slots only.
    const double initial_limit = goal_.best.found ? kInfinity : filter_.limit_for_count(kFew * n_);
    sweep_steps(initial_limit);
    if (initial_limit < kInfinity && !(max_key_sum() < initial_limit)) sweep_steps(kInfinity);
    if (better_) resolve_ties();
    return better_;
  }

 private:
  double max_key_sum() const { return shape_.max_key_sum(goal_.ceiling()); }
  double start(std::size_t index) const {
    return query_.start_in(prepared_.slots[w_.all.row[index]]);
  }

  // Over all slots that a window with a sum of keys up to `max_probed_key` may hold.
  void sweep_steps(double max_probed_key) {
    list_steps(std::min(max_probed_key, max_key_sum()));
    for (const ConstrainedScratch::Step& step : w_.steps) {
      if (filter_.prunes_sum(step.bound, max_key_sum())) return;
      if (detail::exceeds_work_limit(query_, w_)) return mark_undecided(filter_.min_key_sum(step.bound));
      evaluate_step(step);
    }
  }

  // The slots that sweep_steps, and the steps among them by rising bound.
  void list_steps(double most) {
    w_.candidates.clear(), w_.steps.clear(), w_.others.clear();
    if (filter_.prunes_all(most)) return;
    double earliest_expiry = kInfinity;
    for (std::size_t index = 0; index < w_.all.size(); ++index) {
      const double weight = w_.weight[index];
      if (filter_.prunes_weight(weight, most)) continue;
      poll();
      w_.candidates.push_back(index);
      const double t = start(index);
      if (t > earliest_expiry) {
        earliest_expiry = kInfinity;
        std::erase_if(w_.others, [&](const ConstrainedScratch::Other& other) {
          if (!live_.is_still_live(w_.all, other.index, t)) return true;
          earliest_expiry = std::min(earliest_expiry, w_.all.live_until[other.index]);
          return false;
        });
      }
      if (w_.others.size() + 1 >= n_) {
        double sum = weight - filter_.offset();
        for (std::size_t i = 0; i + 1 < n_; ++i) sum += w_.others[i].weight;
        if (!filter_.prunes_sum(sum, most))
          add_step({sum, n_ > 1 ? w_.others[n_ - 2].weight : kInfinity, index, true});
      }
      earliest_expiry = std::min(earliest_expiry, w_.all.live_until[index]);
      const auto at = std::upper_bound(
          w_.others.begin(), w_.others.end(), weight,
          [](double w, const ConstrainedScratch::Other& other) { return w < other.weight; });
      w_.others.insert(at, {weight, index});
    }
    std::sort(w_.steps.begin(), w_.steps.end(), [](const auto& a, const auto& b) {
      return a.bound < b.bound || (a.bound == b.bound && a.index < b.index);
    });
  }

  // Behind the first initial_limit, the steps of one start become one, of any sets at that start.
  void add_step(const ConstrainedScratch::Step& step) {
    const std::size_t size = w_.steps.size(), initial_limit = detail::kOneByOne;
    const double t = start(step.index);
    if (size <= initial_limit || start(w_.steps[size - 1 - initial_limit].index) < t) {
      w_.steps.push_back(step);
      return;
    }
    ConstrainedScratch::Step& before = w_.steps.back();
    before = {std::min(before.bound, step.bound), step.last, step.index, false};
  }

  // Sets that hold the step's slot and others that came before it, or any up to that slot.
  void evaluate_step(const ConstrainedScratch::Step& step) {
    Best& best = goal_.best;
    const double t = start(step.index), most = max_key_sum();
    // Ties matter only where they start earlier, and nothing is cheaper than free.
    const bool earlier = !best.found || t < best.start;
    if (best.found && best.total <= 0 && !earlier) return;
    poll();
    w_.knapsack.work += static_cast<std::int64_t>(w_.candidates.size()) / 2;
    live_.clear();
    for (const std::size_t index : w_.candidates) {
      if (index >= step.index || (step.alone && n_ == 1)) break;
      const bool prunes = step.alone
                             ? filter_.prunes_sum(step.bound - step.last + w_.weight[index], most)
                             : filter_.prunes_weight(w_.weight[index], most);
      if (!prunes && live_.is_still_live(w_.all, index, t))
        w_.live.push(w_.all, index);
    }
    w_.live.push(w_.all, step.index);
    const bool any = live_.solve_cheap(step.alone, goal_.ceiling(), incumbent(), 0, query_.max_work);
    if (!w_.knapsack.complete) mark_undecided(live_.min_sum());
    if (!any) return;
    w_.ties.push_back({t, live_.min_sum()});
    const double total = live_.total();
    if (!best.found || total < best.total || (total == best.total && earlier)) record(t, total);
  }

  // The cheapest set of all, of the earliest start: nothing is missed for the tolerance.
  void resolve_ties() {
    const Best& best = goal_.best;
    std::sort(w_.ties.begin(), w_.ties.end(), [](const auto& a, const auto& b) {
      return a.start < b.start || (a.start == b.start && a.sum < b.sum);
    });
    double done = -kInfinity;
    for (const ConstrainedScratch::Tie& tie : w_.ties) {
      if (tie.start == done || shape_.total(tie.sum) > best.total) continue;
      done = tie.start;
      live_.clear();
      for (std::size_t index = 0; index < w_.all.size() && !(start(index) > tie.start); ++index)
        if (!filter_.prunes_weight(w_.weight[index], max_key_sum()) &&
            live_.is_still_live(w_.all, index, tie.start))
          w_.live.push(w_.all, index);
      const double most = best.total;
      // For its multipliers.
      live_.solve_cheap(false, most, incumbent(), 0, w_.knapsack.work + kLeast);
      const std::int64_t left = std::max(kLeast, query_.max_work - w_.knapsack.work);
      if (live_.select_cheapest(most, tie.start <= best.start, left)) record(tie.start, live_.total());
      if (!live_.finished) mark_undecided(most / shape_.total(1) * (1 - 1e-11));
    }
  }

  // A little worse than the best: the knapsack's answers are good up to a tolerance.
  double incumbent() const {
    if (!goal_.best.found) return kInfinity;
    const double sum = goal_.best.total / shape_.total(1);
    return sum + 1e-11 * sum + std::numeric_limits<double>::min();
  }

  // No set that is left undecided has a smaller sum of keys.
  void mark_undecided(double sum) {
    proven = false;
    bound = std::min(bound, shape_.total(sum) * (1 - 1e-12));
  }

  void record(double t, double total) {
    Best& best = goal_.best;
    better_ = best.found = true;
    best.start = t;
    best.total = total;
    chosen_ = live_.entries();
  }

  static constexpr std::size_t kFew = 4;  // times n
  static constexpr std::int64_t kLeast = 1 << 12;

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  LowestCost& goal_;
  ConstrainedScratch& w_;
  std::vector<Entry>& chosen_;
  LagrangianFilter filter_;
  ConstrainedLiveSet<Shape> live_;
  const std::size_t n_;
  bool better_ = false;
};

}  // namespace slotkern

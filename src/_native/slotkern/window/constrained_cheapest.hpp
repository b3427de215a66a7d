// Finds the cheapest window of a shape under sum limits.
//
// Under the filter's multipliers (window/lagrangian_filter.hpp) a set that is new at a step costs
// at least the weight of the step's slot plus the n - 1 smallest weights of the others. Steps are
// evaluated by rising bound, not by time: the first usually has the best set, and its cost prunes
// nearly all other steps, and nearly all slots of the next ones. The knapsack's answers have a
// tolerance; therefore the starts at which a set may cost as little are searched again at the end,
// exactly and by time, for the cheapest set under the tie rule.
//
// Exact while the work suffices (Query::max_work). Cost: O(slots * limits) per simplex pivot,
// O(live slots) per step that passes the filter, and few knapsacks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/goals.hpp"
#include "slotkern/window/lagrangian_filter.hpp"

namespace slotkern {

// Improves goal.best and writes the canonical window there to `chosen`, in cost order.
template <class Shape>
class ConstrainedCheapestSweep {
 public:
  bool proven = true;
  double bound = kInfinity;  // lower bound on undecided totals if not proven

  ConstrainedCheapestSweep(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                           LowestCost& goal, ConstrainedScratch& work,
                           std::vector<Entry>& chosen)
      : prepared_(prepared), query_(query), shape_(shape), goal_(goal), w_(work),
        chosen_(chosen), filter_(work), live_(prepared, query, shape, work),
        n_(static_cast<std::size_t>(query.n)) {
    w_.ties.clear();
  }

  std::size_t failed() const { return live_.failed; }
  LagrangianFilter& filter() { return filter_; }

  // Returns true if it found something better than goal.best.
  bool run() {
    if (!filter_.build(prepared_, query_, shape_, live_)) return false;
    // A low ceiling early: the first pass visits a few slots only.
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

  // Evaluates all slots that a window with a sum of keys up to `max_probed_key` may hold.
  void sweep_steps(double max_probed_key) {
    list_steps(std::min(max_probed_key, max_key_sum()));
    for (const ConstrainedScratch::SweepStep& step : w_.steps) {
      if (filter_.prunes_sum(step.bound, max_key_sum())) return;
      if (detail::exceeds_work_limit(query_, w_))
        return mark_undecided(filter_.min_key_sum(step.bound));
      evaluate_step(step);
    }
  }

  // Lists the slots that pass the filter, and the steps among them by rising bound.
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

  // After the first few, the steps of one start are merged into one step that covers all of them.
  void add_step(const ConstrainedScratch::SweepStep& step) {
    const std::size_t size = w_.steps.size(), num_single = detail::kOneByOne;
    const double t = start(step.index);
    if (size <= num_single || start(w_.steps[size - 1 - num_single].index) < t) {
      w_.steps.push_back(step);
      return;
    }
    ConstrainedScratch::SweepStep& before = w_.steps.back();
    before = {std::min(before.bound, step.bound), step.last, step.index, false};
  }

  // Searches the sets that hold the step's slot and earlier ones, or for a merged step any slots up
  // to its own.
  void evaluate_step(const ConstrainedScratch::SweepStep& step) {
    Best& best = goal_.best;
    const double t = start(step.index), most = max_key_sum();
    // A tie helps only if it starts earlier, and nothing is cheaper than 0.
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
    const bool any =
        live_.solve_cheap(step.alone, goal_.ceiling(), incumbent(), 0, query_.max_work);
    if (!w_.knapsack.complete) mark_undecided(live_.min_sum());
    if (!any) return;
    w_.ties.push_back({t, live_.min_sum()});
    const double total = live_.total();
    if (!best.found || total < best.total || (total == best.total && earlier)) record(t, total);
  }

  // Finds the cheapest set of the earliest start exactly, because the knapsack's tolerance may hide
  // it.
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
      // Computes the multipliers for select_cheapest().
      live_.solve_cheap(false, most, incumbent(), 0, w_.knapsack.work + kLeast);
      const std::int64_t left = std::max(kLeast, query_.max_work - w_.knapsack.work);
      if (live_.select_cheapest(most, tie.start <= best.start, left))
        record(tie.start, live_.total());
      if (!live_.finished) mark_undecided(most / shape_.total(1) * (1 - 1e-11));
    }
  }

  // Slightly above the best sum: the knapsack's answers have a tolerance.
  double incumbent() const {
    if (!goal_.best.found) return kInfinity;
    const double sum = goal_.best.total / shape_.total(1);
    return sum + 1e-11 * sum + std::numeric_limits<double>::min();
  }

  // Records that sets with a sum of keys of at least `sum` remain undecided.
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

// What a choice of items within a budget is judged by: the exact test of a set, the best one so
// far, and what a bound must exceed to be worth a look.
//
// A set is within the budget if the exact sum of its costs, rounded once, is: that test decides
// about every set that is taken. Plain sums only rule out, beyond their rounding. The caller's
// budget is the largest sum that meets the amount (base/exact_sum.hpp).
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/choice/lagrangian_bound.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

class KnapsackIncumbent {
 public:
  double gap = 0;       // relative; 1e-12 at least
  ValueScale scale;     // of all values that will be seen
  WorkLimits limits;

  // What the last call left.
  double best = -kInfinity;
  double bound = kInfinity;
  bool complete = true;      // no set beats `best` by more than the tolerance
  std::vector<int> chosen;   // without the forced item
  std::int64_t work = 0;     // grows over all calls

  // What a bound of n items must exceed to be worth a look, where costs weigh at most `weighed`
  // = lambda * (the largest sum of costs).
  double cutoff(int n, double incumbent, double weighed) const {
    Tolerance tolerance = tolerance_of(n);
    tolerance.noise = noise(n, weighed);
    return tolerance.cutoff(incumbent);
  }

  // The largest rounding error of a bound; of the difference of two sums of `pick` values, the
  // larger of size `sum`.
  double noise(int pick, double weighed) const {
    return 0x1p-50 * (pick + 64) * ((pick + 2) * scale.max_abs() + weighed);
  }
  double rounding(int pick, double sum) const {
    if (has_integer_sums(pick)) return 0;
    return 0x1p-52 * (pick + 2) *
           (scale.has_mixed_signs() ? (pick + 2) * scale.max_abs() : std::fabs(sum));
  }

 protected:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // The problem, and nothing found yet.
  void reset(const Items& items, int pick, double budget, const ForcedItems& forced,
             double incumbent) {
    items_ = items;
    pick_ = pick;
    budget_ = std::min(budget, DBL_MAX);  // what costs infinitely much fits no budget
    forced_ = forced;
    max_cost_ = max_of(items.cost, items.count);
    double max_affordable_cost = std::max(forced.costs[0], forced.costs[1]);
    if (max_cost_ <= budget_)
      max_affordable_cost = std::max(max_affordable_cost, max_cost_);
    else
      for (int i = 0; i < items.count; ++i)
        if (items.cost[i] <= budget_) max_affordable_cost = std::max(max_affordable_cost, items.cost[i]);
    max_cost_sum_ = std::min((pick + 4) * max_affordable_cost, DBL_MAX);
    capacity_ = std::min(budget_, max_cost_sum_) - forced.cost();
    slack_ = 0x1p-49 * (pick + 8) * max_cost_sum_;
    best = incumbent;
    bound = kInfinity;
    complete = true;
    found_ = false;
    chosen.clear();
    tolerance_ = tolerance_of(pick);
  }

  Tolerance tolerance_of(int pick) const {
    const bool exact = has_integer_sums(pick);
    return {exact ? gap : std::max(gap, 1e-12), exact ? 1.0 : 0.0, 0};
  }

  // Whether all sums of `pick` values are whole and exact.
  bool has_integer_sums(int pick) const {
    return scale.all_integer && (pick + 2) * scale.max_abs() < kMaxExactSum;
  }

  static double max_of(const double* cost, int count) {
    double lane[4] = {0, 0, 0, 0};  // no comparison waits for the one before
    int i = 0;
    for (; i + 4 <= count; i += 4)
      for (int k = 0; k < 4; ++k) lane[k] = std::max(lane[k], cost[i + k]);
    for (; i < count; ++i) lane[0] = std::max(lane[0], cost[i]);
    return std::max(std::max(lane[0], lane[1]), std::max(lane[2], lane[3]));
  }

  // What costs too much for any set leaves before anything is summed, so that roundings are those
  // of costs that count.
  void drop_unaffordable() {
    const double most = capacity_ + slack_;
    if (max_cost_ <= most) return;
    affordable_.clear(), affordable_cost_.clear(), affordable_value_.clear();
    for (int i = 0; i < items_.count; ++i) {
      if (!(items_.cost[i] <= most)) continue;
      affordable_.push_back(i);
      affordable_cost_.push_back(items_.cost[i]);
      affordable_value_.push_back(items_.value[i]);
    }
    items_ = {affordable_cost_.data(), affordable_value_.data(), static_cast<int>(affordable_.size())};
  }

  // The chosen as the caller of `items` counts them.
  void map_to_original_ids(const Items& items) {
    if (items_.count < items.count)
      for (int& i : chosen) i = affordable_[at(i)];
  }

  bool is_open() const { return bound > tolerance_.cutoff(best); }

  // No set's value, summed in any order, is above the bound.
  void finalize_bound() {
    const double error = rounding(pick_, std::max(std::fabs(best), std::fabs(bound)));
    bound += tolerance_.noise + error;
    if (complete)
      bound = std::min(bound, best + std::max(tolerance_.relative * std::fabs(best), error));
    bound = std::max(bound, best);
  }

  double value_of(const std::vector<int>& ids) const {
    double value = forced_.value;
    for (const int i : ids) value += items_.value[i];
    return value;
  }

  // The exact budget test of `ids` (with what is fixed and forced).
  bool fits_exactly(const std::vector<int>& ids) const {
    const double sum = exact_sum_of([&](auto visit) {
      for (const int i : ids) visit(items_.cost[i]);
      for (int k = 0; k < forced_.count; ++k) visit(forced_.costs[k]);
    });
    return sum <= budget_;
  }

  bool fits(const std::vector<int>& ids, double cost) {
    return cost <= capacity_ - slack_ || (cost <= capacity_ + slack_ && fits_exactly(ids));
  }

  // Takes a set if it is better and within the budget.
  void offer(const std::vector<int>& ids) {
    const double value = value_of(ids);
    if (!(value > best) || !fits_exactly(ids)) return;
    best = value;
    chosen = ids;
    found_ = true;
  }

  Items items_{nullptr, nullptr, 0};
  int pick_ = 0;
  double budget_ = 0, capacity_ = 0;
  double max_cost_sum_ = 0, slack_ = 0;  // no sum of costs is larger; none is rounded by more
  ForcedItems forced_;
  Tolerance tolerance_;
  bool found_ = false;

 private:
  double max_cost_ = 0;
  std::vector<int> affordable_;  // items of the caller that are not too dear, and their columns
  std::vector<double> affordable_cost_, affordable_value_;
};

}  // namespace slotkern

// Base class of Knapsack: the incumbent, the exact budget test of a set, the cutoff that a bound
// must exceed, and bounds on rounding errors.
//
// A set is within the budget if the exact sum of its costs, rounded once, is at most the budget.
// This test decides about every set that becomes the incumbent; plain sums only exclude sets beyond
// their rounding error. The caller's budget is the largest sum that meets the amount
// (base/exact_sum.hpp).
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
  double gap = 0;  // relative; values of 0 to 1e-12 count as 1e-12 unless sums are integers
  ValueScale scale;  // range of all values that the searches will see
  WorkLimits limits;

  // Results of the last call.
  double best = -kInfinity;
  double bound = kInfinity;
  bool complete = true;  // true if no set beats `best` by more than the tolerance
  std::vector<int> chosen;  // chosen items without the forced ones
  std::int64_t work = 0;  // units of work, cumulative over all calls

  // The cutoff that a bound of n items must exceed, if lambda * (largest sum of costs) = `weighed`.
  double cutoff(int n, double incumbent, double weighed) const {
    Tolerance tolerance = tolerance_of(n);
    tolerance.noise = noise(n, weighed);
    return tolerance.cutoff(incumbent);
  }

  // noise(): largest rounding error of a bound. rounding(): largest rounding error of the
  // difference of two sums of `pick` values, the larger of size `sum`.
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

  // Sets up a problem with no set found yet.
  void reset(const Items& items, int pick, double budget, const ForcedItems& forced,
             double incumbent) {
    items_ = items;
    pick_ = pick;
    budget_ = std::min(budget, DBL_MAX);  // an item of infinite cost fits no budget
    forced_ = forced;
    max_cost_ = max_of(items.cost, items.count);
    double max_affordable_cost = std::max(forced.costs[0], forced.costs[1]);
    if (max_cost_ <= budget_)
      max_affordable_cost = std::max(max_affordable_cost, max_cost_);
    else
      for (int i = 0; i < items.count; ++i)
        if (items.cost[i] <= budget_)
          max_affordable_cost = std::max(max_affordable_cost, items.cost[i]);
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

  // True if every sum of `pick` values is an integer and exact.
  bool has_integer_sums(int pick) const {
    return scale.all_integer && (pick + 2) * scale.max_abs() < kMaxExactSum;
  }

  static double max_of(const double* cost, int count) {
    double lane[4] = {0, 0, 0, 0};  // independent lanes, to break the dependency chain
    int i = 0;
    for (; i + 4 <= count; i += 4)
      for (int k = 0; k < 4; ++k) lane[k] = std::max(lane[k], cost[i + k]);
    for (; i < count; ++i) lane[0] = std::max(lane[0], cost[i]);
    return std::max(std::max(lane[0], lane[1]), std::max(lane[2], lane[3]));
  }

  // Removes items that are too expensive for any set before anything is summed, so that rounding
  // bounds depend only on costs that can occur.
  void drop_unaffordable() {
    const double max_cost = capacity_ + slack_;
    if (max_cost_ <= max_cost) return;
    affordable_.clear(), affordable_cost_.clear(), affordable_value_.clear();
    for (int i = 0; i < items_.count; ++i) {
      if (!(items_.cost[i] <= max_cost)) continue;
      affordable_.push_back(i);
      affordable_cost_.push_back(items_.cost[i]);
      affordable_value_.push_back(items_.value[i]);
    }
    items_ = {affordable_cost_.data(), affordable_value_.data(),
        static_cast<int>(affordable_.size())};
  }

  // Maps `chosen` back to the caller's numbering of `items`.
  void map_to_original_ids(const Items& items) {
    if (items_.count < items.count)
      for (int& i : chosen) i = affordable_[at(i)];
  }

  bool is_open() const { return bound > tolerance_.cutoff(best); }

  // Makes `bound` an upper bound on the value of every set, in any order of summation.
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

  // The exact budget test of `ids` together with the forced items.
  bool fits_exactly(const std::vector<int>& ids) const {
    const double sum = exact_sum_of([&](auto visit) {
      for (const int i : ids) visit(items_.cost[i]);
      for (int k = 0; k < forced_.count; ++k) visit(forced_.costs[k]);
    });
    return sum <= budget_;
  }

  // Budget test of a set of known plain cost; the exact test runs only near the budget.
  bool fits(const std::vector<int>& ids, double cost) {
    return cost <= capacity_ - slack_ || (cost <= capacity_ + slack_ && fits_exactly(ids));
  }

  // Makes a set the incumbent if it is better and within the budget.
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
  // upper bound on any sum of costs; largest rounding error of a sum
  double max_cost_sum_ = 0, slack_ = 0;
  ForcedItems forced_;
  Tolerance tolerance_;
  bool found_ = false;

 private:
  double max_cost_ = 0;
  std::vector<int> affordable_;  // affordable items of the caller, and their columns
  std::vector<double> affordable_cost_, affordable_value_;
};

}  // namespace slotkern

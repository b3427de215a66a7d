// The Lagrangian bound of the cardinality-constrained knapsack
//
//   max sum z_i x_i   with   sum c_i x_i <= b,   sum x_i = n,   x binary        (2018, eq. 1).
//
// For any multiplier lambda >= 0, (sum of the n largest z - lambda * c) + lambda * b is an upper
// bound; the minimum over lambda is the bound of the linear relaxation. The bound is convex and
// piecewise linear in lambda, so two sets of n items on either set of the budget give two lines,
// and their crossing is the next lambda. O(m + n log n) a step, usually a handful of steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

// The n items of largest weight = scale * value - lambda * cost, and their sums.
struct ItemSet {
  double weight = 0, value = 0, cost = 0;
  double min_weight = 0;  // smallest weight in the set
  std::vector<int> chosen;
};

class LagrangianBound {
 public:
  static constexpr double kMaxWeight = 1e290;  // limit of a multiplier times any sum of costs

  double lambda = 0;
  double bound = kInfinity;
  ItemSet feasible;  // the best set within the budget that was found
  bool is_optimal = false;  // `feasible` is an optimal set

  static void select_heaviest(const Items& items, int n, double scale, double lambda,
      ItemSet& set) {
    std::vector<int>& ids = set.chosen;
    const auto weigh = [&](int i) { return scale * items.value[i] - lambda * items.cost[i]; };
    if (n <= kMaxInsertion)
      select_by_insertion(items.count, n, weigh, ids);
    else
      select_by_partition(items.count, n, weigh, ids);
    set.weight = set.value = set.cost = 0;
    for (const int i : ids) {
      set.weight += weigh(i);
      set.value += items.value[i];
      set.cost += items.cost[i];
    }
    set.min_weight = weigh(ids.back());
  }

  // Computes the smallest bound, or stops early at a bound <= `stop`. `fits(set)` is the budget
  // test; `max_sum` bounds all sums of costs that the multiplier may weigh. `cheapest`: the n
  // cheapest items, if the caller has them. Returns false if no n items fit the budget.
  template <class Fits>
  bool solve(const Items& items, int n, double budget, double max_sum, double first_lambda,
             double stop, Fits fits, const ItemSet* cheapest = nullptr) {
    is_optimal = false;
    bound = kInfinity;
    lambda = 0;
    if (cheapest)
      feasible = *cheapest;
    else
      select_heaviest(items, n, 0, 1, feasible);
    if (!fits(feasible)) return false;
    select_heaviest(items, n, 1, 0, infeasible_);
    if (fits(infeasible_)) {
      std::swap(feasible, infeasible_);
      bound = feasible.value;
      is_optimal = true;
      return true;
    }
    bound = infeasible_.value;
    for (int step = 0; step < kMaxSteps; ++step) {
      poll();
      const bool warm = step == 0 && first_lambda > 0 && first_lambda * max_sum < kMaxWeight;
      const double cost_difference = infeasible_.cost - feasible.cost;
      if (!(cost_difference > 0)) break;
      const double crossing = std::max(0.0, (infeasible_.value - feasible.value) / cost_difference);
      const double multiplier = warm ? first_lambda : crossing;
      if (!(multiplier * max_sum < kMaxWeight)) break;  // this bound would overflow
      select_heaviest(items, n, 1, multiplier, trial_);
      const double value = trial_.weight + multiplier * budget;
      if (value < bound) {
        bound = value;
        lambda = multiplier;
      }
      if (bound <= stop) return true;
      const double line_value = infeasible_.value + multiplier * (budget - infeasible_.cost);
      if (!warm && value <= line_value + 1e-13 * (std::fabs(line_value) + multiplier * budget))
        break;
      if (fits(trial_))
        std::swap(feasible, trial_);
      else
        std::swap(infeasible_, trial_);
    }
    return true;
  }

 private:
  static constexpr int kMaxInsertion = 64, kMaxSteps = 40;

  // Insertion sort by falling weight; among equal weights the earlier item comes first.
  template <class Weigh>
  static void select_by_insertion(int count, int n, Weigh weigh, std::vector<int>& ids) {
    double weights[kMaxInsertion];
    ids.resize(static_cast<std::size_t>(n));
    int* id = ids.data();
    const auto insert = [&](int place, double weight, int i) {
      for (; place > 0 && weights[place - 1] < weight; --place) {
        weights[place] = weights[place - 1];
        id[place] = id[place - 1];
      }
      weights[place] = weight;
      id[place] = i;
    };
    for (int i = 0; i < n; ++i) insert(i, weigh(i), i);
    for (int i = n; i < count; ++i) {
      const double weight = weigh(i);
      if (weight > weights[n - 1]) insert(n - 1, weight, i);
    }
  }

  template <class Weigh>
  static void select_by_partition(int count, int n, Weigh weigh, std::vector<int>& ids) {
    ids.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = i;
    const auto heavier = [&](int a, int b) {
      const double x = weigh(a), y = weigh(b);
      return x > y || (x == y && a < b);
    };
    std::nth_element(ids.begin(), ids.begin() + (n - 1), ids.end(), heavier);
    ids.resize(static_cast<std::size_t>(n));
  }

  ItemSet infeasible_, trial_;  // the set over the budget; the set of the current multiplier
};

}  // namespace slotkern

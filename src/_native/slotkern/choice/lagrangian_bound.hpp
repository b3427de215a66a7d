// The Lagrangian bound of the cardinality-constrained knapsack
//
//   max sum z_i x_i   with   sum c_i x_i <= b,   sum x_i = n,   x binary        (2018, eq. 1).
//
// For any multiplier lambda >= 0, (the n largest z - lambda * c) + lambda * b is an upper
// bound; the least of them is the bound of the linear relaxation. As a function of lambda it is
// convex and piecewise linear, so two sets of n items on either side of the budget give two
// lines, and their crossing is the next lambda. O(m + n log) a step, a handful of steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"

namespace slotkern {

struct Items {
  const double* cost;
  const double* value;
  int count;
};

// The bounds that a search must still follow. An answer is optimal within `relative`; sums of
// values that are all whole differ by at least `step` = 1; a bound is wrong by at most `noise`.
struct Tolerance {
  double relative = 1e-12, step = 0, noise = 0;

  // A set is better than `best` only if its bound is larger than this. The next double below
  // best + step stands for "equal or more": no fraction of the step is subtracted, because it
  // would vanish beside a large sum.
  double beat(double best) const {
    if (best == -kInfinity) return best;  // -inf + eps * inf is NaN, and NaN prunes everything
    const double more = step > 0 ? std::nextafter(best + step, -kInfinity) : best;
    return std::max(best + relative * std::fabs(best), more) - noise;
  }
};

// The n items of largest weight = scale * value - lambda * cost, and their sums.
struct ItemSet {
  double weight = 0, value = 0, cost = 0;
  double last = 0;  // the smallest weight among them
  std::vector<int> chosen;
};

class LagrangianBound {
 public:
  static constexpr double kMostWeight = 1e290;  // of a multiplier times any sum of costs

  double lambda = 0;
  double bound = kInfinity;
  ItemSet under;           // within the budget; the best such set that was met
  bool closed = false;  // `under` is optimal

  static void top(const Items& items, int n, double scale, double lambda, ItemSet& side) {
    std::vector<int>& ids = side.chosen;
    const auto weigh = [&](int i) { return scale * items.value[i] - lambda * items.cost[i]; };
    if (n <= kInsertion)
      insert_top(items.count, n, weigh, ids);
    else
      partition_top(items.count, n, weigh, ids);
    side.weight = side.value = side.cost = 0;
    for (const int i : ids) {
      side.weight += weigh(i);
      side.value += items.value[i];
      side.cost += items.cost[i];
    }
    side.last = weigh(ids.back());
  }

  // The least bound, or an early end once it is no larger than `stop`. `fits(side)` is the
  // budget test of a set; no sum of costs that the multiplier shall weigh exceeds `reach`.
  // `cheapest`: the n cheapest items, where they are known. False if no n items fit.
  template <class Fits>
  bool solve(const Items& items, int n, double budget, double reach, double first_lambda,
             double stop, Fits fits, const ItemSet* cheapest = nullptr) {
    closed = false;
    bound = kInfinity;
    lambda = 0;
    if (cheapest)
      under = *cheapest;
    else
      top(items, n, 0, 1, under);
    if (!fits(under)) return false;
    top(items, n, 1, 0, over_);
    if (fits(over_)) {
      std::swap(under, over_);
      bound = under.value;
      closed = true;
      return true;
    }
    bound = over_.value;
    for (int step = 0; step < kSteps; ++step) {
      poll();
      const bool warm = step == 0 && first_lambda > 0 && first_lambda * reach < kMostWeight;
      const double across = over_.cost - under.cost;
      if (!(across > 0)) break;
      const double crossing = std::max(0.0, (over_.value - under.value) / across);
      const double at = warm ? first_lambda : crossing;
      if (!(at * reach < kMostWeight)) break;  // a bound that overflows is none
      top(items, n, 1, at, side_);
      const double value = side_.weight + at * budget;
      if (value < bound) {
        bound = value;
        lambda = at;
      }
      if (bound <= stop) return true;
      const double line = over_.value + at * (budget - over_.cost);
      if (!warm && value <= line + 1e-13 * (std::fabs(line) + at * budget)) break;
      if (fits(side_))
        std::swap(under, side_);
      else
        std::swap(over_, side_);
    }
    return true;
  }

 private:
  static constexpr int kInsertion = 64, kSteps = 40;

  // Falling weight; the earlier item first among equals.
  template <class Weigh>
  static void insert_top(int count, int n, Weigh weigh, std::vector<int>& ids) {
    double weights[kInsertion];
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
  static void partition_top(int count, int n, Weigh weigh, std::vector<int>& ids) {
    ids.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = i;
    const auto heavier = [&](int a, int b) {
      const double x = weigh(a), y = weigh(b);
      return x > y || (x == y && a < b);
    };
    std::nth_element(ids.begin(), ids.begin() + (n - 1), ids.end(), heavier);
    ids.resize(static_cast<std::size_t>(n));
  }

  ItemSet over_, side_;  // over the budget; the one just weighed
};

}  // namespace slotkern

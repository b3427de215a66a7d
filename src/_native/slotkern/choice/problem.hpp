// Inputs of every knapsack that chooses exactly n items: the items, the items forced into every
// set, the limits on work and memory, and the scale of the values, from which rounding errors are
// bounded; and the tolerance that decides which bounds require further search.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

inline constexpr double kMaxExactSum = 0x1p53;  // sums of integers below it are exact
// half of kMaxExactSum: differences stay exact, too
inline constexpr double kMaxIntegerSum = 0x1p52;
inline constexpr int kMaxSumLimits = 8;

using Amounts = std::array<double, kMaxSumLimits>;  // one number for each limit

// Items with one limit: the sum of their costs.
struct Items {
  const double* cost;
  const double* value;
  int count;
};

// Items that every set must contain. The `pick` items that a knapsack chooses come in addition.
struct ForcedItems {
  int count = 0;  // number of forced items: 0, 1 or 2
  double costs[2] = {0, 0};
  double value = 0;

  double cost() const { return costs[0] + costs[1]; }
};

struct WorkLimits {
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
  double memory = 268435456;
  bool allow_table = true;  // permits the dynamic programming table
};

// The items that cost at most an amount, with columns of their own. Items that fit into no set are
// removed before anything is summed, so that rounding bounds, scales and tables depend only on
// costs that can occur.
class ItemSubset {
 public:
  std::vector<int> ids;  // ascending numbers of the kept items; empty if none was removed

  // Keeps the items of at most `max_cost`; `may_exceed`: some may cost more.
  Items keep(const Items& items, double max_cost, bool may_exceed) {
    ids.clear();
    if (!may_exceed) return items;
    cost_.clear(), value_.clear();
    for (int i = 0; i < items.count; ++i) {
      if (!(items.cost[i] <= max_cost)) continue;
      ids.push_back(i);
      cost_.push_back(items.cost[i]);
      value_.push_back(items.value[i]);
    }
    return {cost_.data(), value_.data(), static_cast<int>(ids.size())};
  }

 private:
  std::vector<double> cost_, value_;
};

// Range of the values, for bounds on rounding errors, and a flag: are all values integers?
struct ValueScale {
  double min = 0, max = 0;  // the range always includes 0
  bool all_integer = true;

  SLOTKERN_INLINE void add(double z) {
    min = std::min(min, z);
    max = std::max(max, z);
    all_integer = all_integer && z == std::floor(z);
  }
  double max_abs() const { return std::max(-min, max); }
  bool has_mixed_signs() const { return min < 0 && max > 0; }  // sums may cancel

  static ValueScale from_values(const double* value, int count) {
    ValueScale scale;
    for (int i = 0; i < count; ++i) scale.add(value[i]);
    return scale;
  }
};

// Decides which bounds require further search. An answer is optimal within `relative`; values that
// are all multiples of `step` differ by at least `step`; a bound is wrong by at most `noise`.
struct Tolerance {
  double relative = 1e-12, step = 0, noise = 0;

  // Pruning cutoff: a set can improve on `best` sufficiently only if its bound is larger than this.
  double cutoff(double best) const {
    if (best == -kInfinity) return best;  // -inf + eps * inf is NaN, and NaN prunes everything
    const double more = step > 0 ? below_next_multiple(best) : best;
    return std::max(best + relative * std::fabs(best), more) - noise;
  }

 private:
  // Returns a number below the first multiple of `step` above `best`. Sums of integers are exact,
  // so the next double below best + 1 serves; subtracting a fraction of the step would vanish in a
  // large sum. Else the result is smaller by at least what doubles of its size distinguish.
  double below_next_multiple(double best) const {
    if (step == 1 && best == std::floor(best)) return std::nextafter(best + 1, -kInfinity);
    const double count = std::floor(best / step + std::fabs(best / step) * 0x1p-46);
    return step * (count + (std::fabs(count) < 0x1p30 ? 1 - 1e-6 : 0.5));
  }
};

}  // namespace slotkern

// Inputs of a knapsack besides its items: the items forced into every set, the limits on work and
// memory, and the scale of the values, from which rounding errors are bounded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace slotkern {

inline constexpr double kMaxExactSum = 0x1p53;  // sums of integers below it are exact
// half of kMaxExactSum: differences stay exact, too
inline constexpr double kMaxIntegerSum = 0x1p52;

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

}  // namespace slotkern

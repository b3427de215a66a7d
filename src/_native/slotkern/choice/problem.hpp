// What a knapsack is given beside its items: what is forced in, what it may spend, and the scale
// of the values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace slotkern {

inline constexpr double kMaxExactSum = 0x1p53;    // sums of whole numbers below it are exact
inline constexpr double kMaxIntegerSum = 0x1p52;  // the same with room for differences

// Items that must be among the chosen; choosing `pick` others comes on top.
struct ForcedItems {
  int count = 0;  // 0, 1 or 2
  double costs[2] = {0, 0};
  double value = 0;

  double cost() const { return costs[0] + costs[1]; }
};

struct WorkLimits {
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
  double memory = 268435456;
  bool allow_table = true;  // may be tried
};

// Scale of the values, from which rounding errors are judged, and whether they are all_integer.
struct ValueScale {
  double min = 0, max = 0;  // 0 is always among them
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

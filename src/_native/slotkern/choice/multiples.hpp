// A column of numbers as whole multiples of one unit, such as tenths: sums and comparisons of
// whole numbers are exact, and equal sums of different sets are recognized.
//
// Input: the numbers, and the largest sum of them that is allowed (most_met() of an amount, see
// base/exact_sum.hpp, is a little more than the amount). Invariant: the exact sum of any of the
// numbers is at most that if and only if the sum of their multiples is at most `most`. It is shown
// from each number's difference to its multiple; columns for which it cannot be shown have no
// unit. O(numbers), and an approximate Euclid for each new divisor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class Multiples {
 public:
  double unit = 0;            // 0: the column has none
  double most = 0;            // the amount in units
  std::vector<double> count;  // the numbers in units

  // Numbers alone, of any signs. False if they have no unit.
  bool measure(const std::vector<double>& numbers) {
    unit = 0;
    return divide(numbers) && count_all(numbers, kNear, kNear);
  }

  // Numbers whose sum is at most `amount`.
  bool measure(const std::vector<double>& numbers, double amount) {
    unit = 0;
    if (!std::isfinite(amount) || !divide(numbers)) return false;
    const double nearest = std::nearbyint(amount / divisor_);
    if (!(std::fabs(nearest) < kMostAmount)) return false;
    most = std::floor(amount / divisor_);
    const bool near = std::fabs(amount / divisor_ - nearest) <= kClose * std::fabs(nearest);
    const bool one_sign = !(least_ < 0 && largest_ > 0);
    if (!near || nearest == 0) {
      if (nearest == 0 && near) most = 0;
      return count_all(numbers, one_sign ? kNear : 0, one_sign ? kNear : 0);
    }
    // Sums of `nearest` multiples are at most the amount; larger ones are not.
    most = nearest;
    if (!one_sign)
      return std::fma(nearest, divisor_, -amount) <= 0 ? count_all(numbers, 0, 0) : false;
    divisor_ = amount / nearest;
    return count_all(numbers, -0x1p-53, 0x1p-47);
  }

 private:
  static constexpr double kNear = 0x1p-50, kClose = 0x1p-40;
  static constexpr double kMostCount = 0x1p20, kMostAmount = 0x1p40;

  // An approximate divisor of all numbers.
  bool divide(const std::vector<double>& numbers) {
    least_ = largest_ = 0;
    for (const double x : numbers) least_ = std::min(least_, x), largest_ = std::max(largest_, x);
    const double size = std::max(-least_, largest_), noise = size * 0x1p-36;
    if (!std::isfinite(size)) return false;
    divisor_ = size;
    if (size == 0) divisor_ = 1;
    for (const double x : numbers) {
      double rest = std::fabs(std::remainder(x, divisor_));
      while (rest > noise) {
        const double next = std::fabs(std::remainder(divisor_, rest));
        divisor_ = rest, rest = next;
      }
      if (divisor_ * kMostCount < size) return false;
    }
    if (size > 0) divisor_ = size / std::nearbyint(size / divisor_);
    return divisor_ > 0;
  }

  // No number is above its multiple by more than `over` of its size, or below by more than `under`.
  bool count_all(const std::vector<double>& numbers, double over, double under) {
    count.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double whole = std::nearbyint(numbers[i] / divisor_), size = std::fabs(numbers[i]);
      const double above = std::fma(-whole, divisor_, numbers[i]);
      if (above > over * size || -above > under * size) return false;
      count[i] = whole;
    }
    unit = divisor_;
    return true;
  }

  double divisor_ = 0, least_ = 0, largest_ = 0;
};

}  // namespace slotkern

// Converts a column of numbers to integer multiples of one unit, such as tenths: sums and
// comparisons of integers are exact, so equal sums of different sets compare equal.
//
// Input: the numbers, and the largest sum of them that is allowed (relaxed_max() of an amount, see
// base/exact_sum.hpp, is slightly larger than the amount). Invariant: the exact sum of any of the
// numbers is at most the allowed sum if and only if the sum of their multiples is at most `limit`.
// It is proven from the difference between each number and its multiple; a column without such a
// proof has no unit. O(numbers), and an approximate Euclidean algorithm for each new divisor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class Multiples {
 public:
  double unit = 0;  // 0: the column has no unit
  double limit = 0;  // the allowed sum, in units
  std::vector<double> counts;  // the numbers, in units

  // Converts numbers of any signs. Returns false if they have no unit.
  bool convert(const std::vector<double>& numbers) {
    unit = 0;
    return find_divisor(numbers) && round_all(numbers, kMaxError, kMaxError);
  }

  // Converts numbers whose sum may be at most `amount`. Returns false if they have no unit.
  bool convert(const std::vector<double>& numbers, double amount) {
    unit = 0;
    if (!std::isfinite(amount) || !find_divisor(numbers)) return false;
    const double nearest = std::nearbyint(amount / divisor_);
    if (!(std::fabs(nearest) < kMaxAmount)) return false;
    limit = std::floor(amount / divisor_);
    const bool near = std::fabs(amount / divisor_ - nearest) <= kAmountError * std::fabs(nearest);
    const bool one_sign = !(least_ < 0 && largest_ > 0);
    if (!near || nearest == 0) {
      if (nearest == 0 && near) limit = 0;
      return round_all(numbers, one_sign ? kMaxError : 0, one_sign ? kMaxError : 0);
    }
    // Sums of at most `nearest` multiples are at most the amount; larger sums are not.
    limit = nearest;
    if (!one_sign)
      return std::fma(nearest, divisor_, -amount) <= 0 ? round_all(numbers, 0, 0) : false;
    divisor_ = amount / nearest;
    return round_all(numbers, -0x1p-53, 0x1p-47);
  }

 private:
  static constexpr double kMaxError = 0x1p-50, kAmountError = 0x1p-40;
  static constexpr double kMaxCount = 0x1p20, kMaxAmount = 0x1p40;

  // Finds an approximate common divisor of all numbers.
  bool find_divisor(const std::vector<double>& numbers) {
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
      if (divisor_ * kMaxCount < size) return false;
    }
    if (size > 0) divisor_ = size / std::nearbyint(size / divisor_);
    return divisor_ > 0;
  }

  // Rounds all numbers to multiples. Returns false if a number is above its multiple by more than
  // `over` times its size, or below by more than `under` times its size.
  bool round_all(const std::vector<double>& numbers, double over, double under) {
    counts.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double multiple = std::nearbyint(numbers[i] / divisor_), size = std::fabs(numbers[i]);
      const double above = std::fma(-multiple, divisor_, numbers[i]);
      if (above > over * size || -above > under * size) return false;
      counts[i] = multiple;
    }
    unit = divisor_;
    return true;
  }

  double divisor_ = 0, least_ = 0, largest_ = 0;
};

}  // namespace slotkern

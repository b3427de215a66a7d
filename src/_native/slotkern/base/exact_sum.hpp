// Exact sums of doubles, rounded once, and the rule by which a sum meets an amount. The sum does
// not depend on the order of the terms.
//
// exact_sum() accumulates each term with its rounding error (Knuth's two-sum, as in Ogita, Rump,
// Oishi, "Accurate Sum and Dot Product", 2005). The pair of sums is nearly always exact; its
// rounded value is then the result, about as fast as a plain loop. If the sum of the errors was
// itself rounded, the terms are added again in an expansion (Shewchuk, "Adaptive Precision
// Floating-Point Arithmetic and Fast Robust Geometric Predicates", 1997, section 2.4).
//
// Tolerance: a sum meets an upper limit if it exceeds it by at most the relative error kDecimals.
// Price, performance, volume, product, sum and amount each lose at most 2^-53 of their size,
// together less than kDecimals: a limit that is met exactly in decimals is met in doubles, and a
// sum one cent above it is not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

// Relative tolerance for amounts and sums given in decimals.
inline constexpr double kDecimals = 0x1p-50;

// Largest sum that meets an upper limit. It is finite: an infinite sum meets no limit.
inline double relaxed_max(double amount) {
  constexpr double largest = std::numeric_limits<double>::max();
  return std::min(amount * (amount < 0 ? 1 - kDecimals : 1 + kDecimals), largest);
}

// Smallest sum that meets a lower limit.
inline double relaxed_min(double amount) { return -relaxed_max(-amount); }

// An exact sum as an expansion of doubles.
class ExactSum {
 public:
  void clear() { parts_.clear(); }

  // Adds a finite term; no partial sum may overflow.
  void add(double x) {
    std::size_t kept = 0;
    for (double y : parts_) {
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0) parts_[kept++] = low;
      x = high;
    }
    parts_.resize(kept);
    parts_.push_back(x);
  }

  // The components do not overlap and ascend in size. The first inexact sum from the top is the
  // result, except that a tie is rounded in the direction of the remainder.
  double value() const {
    std::size_t k = parts_.size();
    if (k == 0) return 0;
    double high = parts_[--k], low = 0;
    while (k > 0) {
      const double x = high, y = parts_[--k];
      high = x + y;
      low = y - (high - x);
      if (low != 0) break;
    }
    if (k > 0 && ((low < 0 && parts_[k - 1] < 0) || (low > 0 && parts_[k - 1] > 0))) {
      const double twice = 2 * low, next = high + twice;
      if (twice == next - high) high = next;
    }
    return high;
  }

 private:
  std::vector<double> parts_;  // components, nonoverlapping, ascending in size
};

// A sum as a pair of doubles; cheap to copy. If exact(), value() is the exact sum, rounded once.
class PairSum {
 public:
  SLOTKERN_INLINE void add(double x) {
    const double high = high_ + x, part = high - high_;
    const double error = (high_ - (high - part)) + (x - part);
    const double low = low_ + error, share = low - low_;
    lost_ += std::fabs((low_ - (low - share)) + (error - share));
    high_ = high, low_ = low;
  }
  bool exact() const { return lost_ == 0; }
  double value() const { return std::isfinite(high_) ? high_ + low_ : high_; }
  // Lower bound on the sum, if all terms are >= 0.
  double lower() const { return exact() ? value() : value() * (1 - kMargin); }
  // The exact sum minus value(), if exact().
  double rest() const { return (high_ - value()) + low_; }
  bool overflows() const { return !std::isfinite(high_); }

 private:
  double high_ = 0, low_ = 0, lost_ = 0;
};

// The exact sum, rounded once, of the terms that each(visit) passes to visit(term). `each` may be
// called twice and must visit the same terms. Infinite if a partial sum overflows.
template <class Each>
inline double exact_sum_of(Each each) {
  PairSum sum;
  each([&](double term) { sum.add(term); });
  if (sum.exact() || sum.overflows()) [[likely]]
    return sum.value();
  static thread_local ExactSum all;
  all.clear();
  each([](double term) { all.add(term); });
  return all.value();
}

// The exact sum of term(0) .. term(n - 1).
template <class Term>
inline double exact_sum(std::size_t n, Term term) {
  return exact_sum_of([&](auto visit) {
    for (std::size_t i = 0; i < n; ++i) visit(term(i));
  });
}

}  // namespace slotkern

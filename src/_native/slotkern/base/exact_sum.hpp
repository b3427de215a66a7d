// Sums of doubles as if they were computed without rounding and rounded once at the end, and the
// rule by which a sum meets an amount. The sum is the same for every order of the terms.
//
// exact_sum() adds each term with its rounding error (Knuth's two-sum, as in Ogita, Rump, Oishi,
// "Accurate Sum and Dot Product", 2005). The pair of sums is nearly always the exact value: then
// its rounded value is the answer, about as fast as a plain loop. If the sum of the errors was
// itself rounded, the terms are read once more into an expansion (Shewchuk, "Adaptive Precision
// Floating-Point Arithmetic and Fast Robust Geometric Predicates", 1997, section 2.4).
//
// The rule: a sum meets an upper amount if it exceeds it by no more than decimals are rounded.
// Price, performance, volume, product, sum and amount each lose at most 2^-53 of their size,
// together less than kDecimals: what is met exactly in decimals is met in doubles, and one cent
// more is not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

// The relative rounding of amounts and sums that are written in decimals.
inline constexpr double kDecimals = 0x1p-50;

// The largest sum that meets an amount from above. It is finite: an infinite sum meets none.
inline double relaxed_max(double amount) {
  constexpr double largest = std::numeric_limits<double>::max();
  return std::min(amount * (amount < 0 ? 1 - kDecimals : 1 + kDecimals), largest);
}

// The least sum that meets an amount from below.
inline double relaxed_min(double amount) { return -relaxed_max(-amount); }

// A sum that grows term by term.
class ExactSum {
 public:
  void clear() { parts_.clear(); }

  // Finite terms whose sums do not overflow.
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

  // Parts do not overlap and rise in size: the first inexact sum from above decides, and a
  // half is rounded in the direction of what is left.
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
  std::vector<double> parts_;  // nonoverlapping, by rising size
};

// A sum as a pair of doubles, copied at will. While it is `exact`, value() is the exact sum,
// rounded once.
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
  // At most the sum; of terms >= 0.
  double lower() const { return exact() ? value() : value() * (1 - kMargin); }
  // The sum less value(), while it is exact.
  double rest() const { return (high_ - value()) + low_; }
  bool overflows() const { return !std::isfinite(high_); }

 private:
  double high_ = 0, low_ = 0, lost_ = 0;
};

// The exact sum, rounded once, of the terms that each(visit) hands to visit(term), the same ones
// at every call; infinite if a sum on the way overflows.
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

// The same of term(0) to term(n - 1).
template <class Term>
inline double exact_sum(std::size_t n, Term term) {
  return exact_sum_of([&](auto visit) {
    for (std::size_t i = 0; i < n; ++i) visit(term(i));
  });
}

}  // namespace slotkern

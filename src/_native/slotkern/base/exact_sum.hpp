// The sum of doubles as if it were computed without rounding and rounded once at the end: the
// same for every order of the terms (Shewchuk, "Adaptive Precision Floating-Point Arithmetic and
// Fast Robust Geometric Predicates", 1997, section 2.4: expansions grown term by term).
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace slotkern {

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

}  // namespace slotkern

// Bounds for depth-first searches over items in a fixed order: the smallest, or the largest, sum of
// uses of any r items from item j on. O(m w) to build, with w = min(n, 64); O(1) a query.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class SuffixBounds {
 public:
  // Builds the sums of the smallest (sign 1) or largest (sign -1) uses of up to `max_items` items.
  void build(const std::vector<double>& use, std::size_t max_items, double sign) {
    width_ = std::min(max_items, kMaxWidth);
    sums_.assign((use.size() + 1) * width_, sign * kInfinity);
    extremes_.clear();
    for (std::size_t j = use.size(); j-- > 0;) {
      const double w = sign * use[j];
      extremes_.insert(std::upper_bound(extremes_.begin(), extremes_.end(), w), w);
      if (extremes_.size() > width_) extremes_.pop_back();
      double sum = 0;
      for (std::size_t r = 0; r < extremes_.size(); ++r)
        sums_[j * width_ + r] = sum += sign * extremes_[r];
    }
  }

  // Bound on the uses of any `rest` >= 1 items from j on. Beyond the width, each further item
  // counts as much as the last one.
  double bound(std::size_t j, std::size_t rest) const {
    const double* row = sums_.data() + j * width_;
    if (rest <= width_) return row[rest - 1];
    const double last = row[width_ - 1] - (width_ > 1 ? row[width_ - 2] : 0);
    return row[width_ - 1] + static_cast<double>(rest - width_) * last;
  }

 private:
  static constexpr std::size_t kMaxWidth = 64;

  std::size_t width_ = 0;
  std::vector<double> sums_, extremes_;
};

}  // namespace slotkern

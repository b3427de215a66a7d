// What any r of the items from j on use of a limit at least, or at most: bounds of depth-first
// searches over items in a fixed order. O(m w) to make for w = min(n, 64); then O(1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class SuffixBounds {
 public:
  // The sums of the smallest uses (sign 1) or the largest (sign -1) of up to `most` items.
  void build(const std::vector<double>& use, std::size_t most, double sign) {
    width_ = std::min(most, kMostEnds);
    sums_.assign((use.size() + 1) * width_, sign * kInfinity);
    ends_.clear();
    for (std::size_t j = use.size(); j-- > 0;) {
      const double w = sign * use[j];
      ends_.insert(std::upper_bound(ends_.begin(), ends_.end(), w), w);
      if (ends_.size() > width_) ends_.pop_back();
      double sum = 0;
      for (std::size_t r = 0; r < ends_.size(); ++r) sums_[j * width_ + r] = sum += sign * ends_[r];
    }
  }

  // Of `rest` >= 1 items from j on. Of more than the width those beyond count as the last one.
  double of(std::size_t j, std::size_t rest) const {
    const double* row = sums_.data() + j * width_;
    if (rest <= width_) return row[rest - 1];
    const double last = row[width_ - 1] - (width_ > 1 ? row[width_ - 2] : 0);
    return row[width_ - 1] + static_cast<double>(rest - width_) * last;
  }

 private:
  static constexpr std::size_t kMostEnds = 64;

  std::size_t width_ = 0;
  std::vector<double> sums_, ends_;
};

}  // namespace slotkern

// Future changes of the number of free processors, given the estimates: running jobs release theirs
// at their estimated ends, blocked spans allocate and release theirs.
//
// A sorted array with spare space at both ends, because most changes are near one of them:
// O(log n) to find a change, and at most half of the array is shifted.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "slotkern/replay/jobs.hpp"

namespace slotkern::replay {

// A change of the number of free processors at a time.
struct CapacityChange {
  double time;
  std::int32_t width;  // change of the number of free processors
  friend bool operator<(const CapacityChange& a, const CapacityChange& b) {
    return a.time < b.time || (a.time == b.time && a.width < b.width);
  }
};

// The future changes, ordered by time and then by width.
class CapacityChanges {
 public:
  const CapacityChange* begin() const { return changes_.data() + first_; }
  const CapacityChange* end() const { return changes_.data() + changes_.size(); }
  bool empty() const { return first_ == changes_.size(); }

  void add(CapacityChange change) {
    const std::size_t size = changes_.size();
    const auto i = static_cast<std::size_t>(
        std::upper_bound(begin(), end(), change) - changes_.data());
    if (first_ > 0 && i - first_ < size - i) {
      move(first_ - 1, first_, i - first_);
      --first_;
      changes_[i - 1] = change;
    } else {
      changes_.insert(changes_.begin() + static_cast<std::ptrdiff_t>(i), change);
    }
  }

  void remove(CapacityChange change) {
    const std::size_t size = changes_.size();
    const auto i = static_cast<std::size_t>(
        std::lower_bound(begin(), end(), change) - changes_.data());
    if (i - first_ < size - i) {
      move(first_ + 1, first_, i - first_);
      ++first_;
    } else {
      changes_.erase(changes_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (first_ > 256 && 2 * first_ > changes_.size()) {
      changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

 private:
  void move(std::size_t to, std::size_t from, std::size_t count) {
    if (count > 0) std::memmove(&changes_[to], &changes_[from], count * sizeof(CapacityChange));
  }

  std::vector<CapacityChange> changes_;
  std::size_t first_ = 0;
};

}  // namespace slotkern::replay

// How the number of free processors will change, as far as the estimates tell: running jobs
// give theirs back at their estimated ends, blocked spans take theirs and give them back.
//
// A sorted array with room at both ends, since most estimated ends are near one of them:
// O(log n) to find a change, and half of the array to move at worst.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "slotkern/replay/jobs.hpp"

namespace slotkern::replay {

struct CapacityChange {
  double time;
  std::int32_t width;  // > 0: so many processors come to be free
  friend bool operator<(const CapacityChange& a, const CapacityChange& b) {
    return a.time < b.time || (a.time == b.time && a.width < b.width);
  }
};

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

// The n smallest keys of a set that grows slot by slot and loses members at any time.
//
// A short sorted array holds the smallest known, a min-heap the rest; every key of the heap
// is at least the array's largest. Members expire without a word: while one that has expired
// sits among the n smallest it is no dearer than its replacement, so the sum is a LOWER bound
// of the true one, and only a sum that would win need be purged and looked at again.
// Offers are O(K) in the array (K = n + 8) and O(log m) in the heap; each member is popped at
// most once. No allocation after reset().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slots.hpp"

namespace slotkern {

struct Entry {
  double key;
  std::size_t row;
};

class NCheapest {
 public:
  // Room for n smallest among at most `members`.
  void reset(std::size_t n, std::size_t members) {
    n_ = n;
    capacity_ = n + 8;
    if (array_.size() < capacity_) array_.resize(capacity_);
    heap_.clear();
    heap_.reserve(members);
    size_ = 0;
    cut_ = kInfinity;
    sum_ = slack_ = 0;
  }

  // Adds a member; true when it is among the n smallest now.
  bool offer(double key, std::size_t row) {
    if (key >= cut_) {
      push(key, row);
      return false;
    }
    if (size_ == capacity_) {
      --size_;
      push(array_[size_].key, array_[size_].row);
    }
    std::size_t at = size_++;
    if (capacity_ <= 40) {
      for (; at > 0 && array_[at - 1].key > key; --at) array_[at] = array_[at - 1];
    } else {
      const auto first = array_.begin(), last = first + static_cast<std::ptrdiff_t>(at);
      const auto spot = std::upper_bound(
          first, last, key, [](double k, const Entry& entry) { return k < entry.key; });
      std::move_backward(spot, last, last + 1);
      at = static_cast<std::size_t>(spot - first);
    }
    array_[at] = {key, row};
    if (size_ == capacity_ || !heap_.empty()) cut_ = array_[size_ - 1].key;
    if (at >= n_) return false;
    sum_ += key;
    slack_ += sum_ * 4e-16;
    if (size_ > n_) sum_ -= array_[n_].key;
    return true;
  }

  bool full() const { return size_ >= n_; }
  std::size_t n() const { return n_; }
  const Entry& operator[](std::size_t i) const { return array_[i]; }

  // At most the sum of the n smallest: a running sum less its worst rounding error.
  double lower() const { return sum_ - slack_; }

  // The sum of the n smallest from scratch, in ascending order.
  double sum() const {
    double total = 0;
    for (std::size_t i = 0; i < n_; ++i) total += array_[i].key;
    return total;
  }

  // Drops what keep(row) refuses if any of it is among the n smallest, and says whether it did.
  template <class Keep>
  bool purge(Keep keep) {
    const std::size_t front = std::min(n_, size_);
    std::size_t kept = 0;
    while (kept < front && keep(array_[kept].row)) ++kept;
    if (kept == front) return false;
    for (std::size_t i = kept + 1; i < size_; ++i)
      if (keep(array_[i].row)) array_[kept++] = array_[i];
    size_ = kept;
    while (size_ < n_ && !heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      if (keep(heap_.back().row)) array_[size_++] = heap_.back();
      heap_.pop_back();
    }
    cut_ = heap_.empty() ? kInfinity : array_[size_ - 1].key;
    sum_ = slack_ = 0;
    for (std::size_t i = 0; i < std::min(n_, size_); ++i) {
      sum_ += array_[i].key;
      slack_ += sum_ * 4e-16;
    }
    return true;
  }

 private:
  static bool later(const Entry& a, const Entry& b) { return a.key > b.key; }

  void push(double key, std::size_t row) {
    heap_.push_back({key, row});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::size_t n_ = 0, capacity_ = 0, size_ = 0;
  double cut_ = kInfinity;  // keys from here on belong to the heap
  double sum_ = 0, slack_ = 0;
  std::vector<Entry> array_, heap_;
};

}  // namespace slotkern

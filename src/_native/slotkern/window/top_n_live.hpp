// The cheapest slots that a sweep keeps: the n that a window would take, and some to spare.
//
// A sorted array of at most n + spare. What is dearer than a full array is not kept and need not
// even be looked at: `cut` is the least key that may be missing, and never rises but by reset().
// Slots expire without a word: while one that has expired is among the n cheapest it is no dearer
// than its replacement, so that the sum is a LOWER bound of the true one. So is a sum in which
// `cut` stands for each that is missing. Only a sum that would win need be purged, and only when
// purging leaves fewer than n of more than there were must the rest be looked for again.
// What comes goes to an unsorted tail first and joins the array all at once (merge_pending): O(log n) a
// slot where many come together, O(n) where few do. Until it can make a sum that wins (optimistic_sum) it
// may wait there. No allocation after reset().
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "slotkern/base/merge_sort.hpp"
#include "slotkern/window/top_n.hpp"

namespace slotkern {

inline constexpr std::size_t kNoRow = ~std::size_t{0};

class TopNLive {
 public:
  static std::size_t spare(std::size_t n) { return std::max<std::size_t>(4, n / 2); }

  // Keys from `cut` on may be missing from the first.
  void reset(std::size_t n, std::size_t spare, double cutoff = kInfinity) {
    n_ = n;
    capacity_ = n + spare;
    const std::size_t room = 2 * capacity_;
    if (merged_.size() < room) array_.resize(room), merged_.resize(room);
    size_ = end_ = 0;
    cutoff_ = cutoff, cutoff_row_ = kNoRow;
    sum_ = {};
    max_gain_ = pending_sum_ = 0, weighed_ = 0;
    changed_ = false;
  }

  // Whether it is kept for now. What is infinite is never.
  bool add(double key, std::size_t row) {
    if (!(key < cutoff_)) return false;
    array_[end_++] = {key, row};
    pending_sum_ += key;
    if (end_ == 2 * capacity_) merge_pending();
    return true;
  }

  // Joins what was added; whether the n cheapest are others than at the last call of clear_changed().
  bool merge_pending() {
    if (end_ - size_ > kMaxInserted)
      merge();
    else if (end_ > size_)
      insert_tail();
    return changed_;
  }
  void clear_changed() { changed_ = false; }

  // Whether fewer than n are kept, and none is missing.
  bool is_exhausted() const { return end_ < n_ && cutoff_ == kInfinity; }
  bool full() const { return size_ >= n_; }
  double cutoff() const { return cutoff_; }  // infinite: nothing is missing
  std::size_t cutoff_row() const { return cutoff_row_; }  // whose key it is; kNoRow: it was given
  double nth_key() const { return array_[n_ - 1].key; }

  // Calls visit(entry) for the n cheapest.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < n_; ++i) visit(array_[i]);
  }

  // Whether the n cheapest are those of the tie rule, but for their order: no other slot can have
  // the key of the n-th.
  bool is_tie_free() const {
    return array_[n_ - 1].key < (size_ > n_ ? array_[n_].key : cutoff_);
  }

  // At most what merge_pending() would make of the sum; minus infinity where it tells as soon.
  double optimistic_sum() {
    if (!full() || (n_ <= kMergeIsCheap && end_ - size_ <= kMaxInserted)) return -kInfinity;
    for (; weighed_ < end_ - size_; ++weighed_)
      max_gain_ += std::max(0.0, array_[n_ - 1].key - array_[size_ + weighed_].key);
    const double known = sum_.lower();
    return known - max_gain_ - (known + max_gain_) * kMargin;
  }

  // The most, but for rounding, that the sum can be once all that came has joined.
  double upper_bound() const { return sum_.upper() + (full() ? 0 : pending_sum_); }

  // At most the sum of the n cheapest there are.
  double lower() const {
    const double known = sum_.lower();
    return full() ? known : known + static_cast<double>(n_ - size_) * cutoff_ * (1 - kMargin);
  }

  // The exact sum of the n cheapest, rounded once.
  double sum() const {
    return exact_sum(n_, [this](std::size_t i) { return array_[i].key; });
  }

  // Drops whatever keep(row) refuses, also of what has not joined yet.
  template <class Keep>
  void retain(Keep keep) {
    std::size_t kept = 0, sorted = 0;
    pending_sum_ = 0;
    for (std::size_t i = 0; i < end_; ++i) {
      if (!keep(array_[i].row)) continue;
      if (i < size_)
        ++sorted;
      else
        pending_sum_ += array_[i].key;
      array_[kept++] = array_[i];
    }
    if (sorted < size_) sum_.of(array_, std::min(n_, sorted));
    size_ = sorted, end_ = kept;
    max_gain_ = 0, weighed_ = 0;
  }

  // Drops what keep(row) refuses if any of it is among the n cheapest, and says whether it did.
  template <class Keep>
  bool drop_expired(Keep keep) {
    const std::size_t front = std::min(n_, size_);
    std::size_t kept = 0;
    while (kept < front && keep(array_[kept].row)) ++kept;
    if (kept == front) return false;
    for (std::size_t i = kept + 1; i < size_; ++i)
      if (keep(array_[i].row)) array_[kept++] = array_[i];
    size_ = end_ = kept;
    sum_.of(array_, std::min(n_, size_));
    return true;
  }

 private:
  void insert_tail() {
    for (std::size_t i = size_; i < end_; ++i) {
      const Entry entry = array_[i];  // its place may be taken by now
      if (!(entry.key < cutoff_)) continue;
      const std::size_t at = insert_sorted(array_, size_, entry, ByKey{});
      if (size_ < capacity_) ++size_;
      if (size_ == capacity_) set_cutoff_to_last();
      if (at >= n_) continue;
      changed_ = true;
      sum_.add(entry.key);
      if (size_ > n_) sum_.drop(array_[n_].key);
    }
    end_ = size_;
    max_gain_ = pending_sum_ = 0, weighed_ = 0;
  }

  void merge() {
    const auto first = array_.begin(), middle = first + static_cast<std::ptrdiff_t>(size_),
               last = first + static_cast<std::ptrdiff_t>(end_);
    if (end_ - size_ <= kStdSortMax)
      std::sort(middle, last, ByKey{});
    else
      merge_sort(array_.data() + size_, end_ - size_, merged_.data(), ByKey{});
    const double nth = full() ? array_[n_ - 1].key : kInfinity;
    changed_ = changed_ || middle->key < nth;
    std::merge(first, middle, middle, last, merged_.begin(), ByKey{});
    array_.swap(merged_);
    size_ = end_ = std::min(end_, capacity_);
    if (size_ == capacity_) set_cutoff_to_last();
    sum_.of(array_, std::min(n_, size_));
    max_gain_ = pending_sum_ = 0, weighed_ = 0;
  }

  void set_cutoff_to_last() { cutoff_ = array_[size_ - 1].key, cutoff_row_ = array_[size_ - 1].row; }

  static constexpr std::size_t kMaxInserted = 8;  // are put into their places one by one
  // Of so many a processor remembers how they were sorted for the search before, where it was of
  // the same slots: a plain sort is quicker then, and not much slower where they differ.
  static constexpr std::size_t kStdSortMax = 160;
  static constexpr std::size_t kMergeIsCheap = 64;  // among so many as soon as they are weighed

  std::size_t n_ = 0, capacity_ = 0;
  std::size_t size_ = 0, end_ = 0;  // sorted; all of it
  double cutoff_ = kInfinity;
  std::size_t cutoff_row_ = kNoRow;
  RunningSum sum_;  // of the n cheapest
  double pending_sum_ = 0;  // sum of the tail
  double max_gain_ = 0;  // what those of the tail that are weighed take off it at most
  std::size_t weighed_ = 0;
  bool changed_ = false;
  std::vector<Entry> array_, merged_;
};

}  // namespace slotkern

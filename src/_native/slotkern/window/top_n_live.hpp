// Keeps the cheapest slots of a sweep: the n that a window would take, and some extra.
//
//   array_:  [0 .. size_) sorted by key, up to capacity_ | [size_ .. end_) pending, unsorted
//
// `cutoff`: the smallest key that may have been discarded; only reset() raises it. Slots with a
// higher key are not kept and need not be read. Slots expire without notice: an expired one among
// the n cheapest costs no more than its replacement, so the sum is a lower bound on the true sum;
// so is a sum in which the cutoff stands for each missing slot. Only a sum that would win needs
// drop_expired(), and only if that leaves fewer than n although some were discarded must the caller
// rescan. New slots wait in the tail and are merged all at once (merge_pending), at the latest when
// they could make a winning sum (optimistic_sum). Cost: O(log n) per slot if many are merged
// together, O(n) if few. No allocation after reset().
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
  static std::size_t extra_capacity(std::size_t n) { return std::max<std::size_t>(4, n / 2); }

  // Keys from `cutoff` on are discarded from the beginning.
  void reset(std::size_t n, std::size_t spare, double cutoff = kInfinity) {
    n_ = n;
    capacity_ = n + spare;
    const std::size_t capacity = 2 * capacity_;
    if (merged_.size() < capacity) array_.resize(capacity), merged_.resize(capacity);
    size_ = end_ = 0;
    cutoff_ = cutoff, cutoff_row_ = kNoRow;
    sum_ = {};
    max_gain_ = pending_sum_ = 0, weighed_ = 0;
    changed_ = false;
  }

  // Adds a slot; returns false if its key is at or above the cutoff, or infinite.
  bool add(double key, std::size_t row) {
    if (!(key < cutoff_)) return false;
    array_[end_++] = {key, row};
    pending_sum_ += key;
    if (end_ == 2 * capacity_) merge_pending();
    return true;
  }

  // Merges the pending slots; returns true if the n cheapest changed since clear_changed().
  bool merge_pending() {
    if (end_ - size_ > kMaxInserted)
      merge();
    else if (end_ > size_)
      insert_tail();
    return changed_;
  }
  void clear_changed() { changed_ = false; }

  // Returns true if fewer than n slots are kept and none was discarded: no window is possible now.
  bool is_exhausted() const { return end_ < n_ && cutoff_ == kInfinity; }
  bool full() const { return size_ >= n_; }
  double cutoff() const { return cutoff_; }  // infinite: none was discarded
  // the row with this key; kNoRow: given by reset()
  std::size_t cutoff_row() const { return cutoff_row_; }
  double nth_key() const { return array_[n_ - 1].key; }

  // Calls visit(entry) for the n cheapest.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < n_; ++i) visit(array_[i]);
  }

  // Returns true if the n cheapest are those of the tie rule, up to their order: no other slot can
  // have the key of the n-th.
  bool is_tie_free() const {
    return array_[n_ - 1].key < (size_ > n_ ? array_[n_].key : cutoff_);
  }

  // Returns a lower bound on the sum after merge_pending(), or -inf if merging is as cheap as
  // computing the bound.
  double optimistic_sum() {
    if (!full() || (n_ <= kMergeIsCheap && end_ - size_ <= kMaxInserted)) return -kInfinity;
    for (; weighed_ < end_ - size_; ++weighed_)
      max_gain_ += std::max(0.0, array_[n_ - 1].key - array_[size_ + weighed_].key);
    const double known = sum_.lower();
    return known - max_gain_ - (known + max_gain_) * kMargin;
  }

  // Returns an upper bound (up to rounding) on the sum after merging all pending slots.
  double upper_bound() const { return sum_.upper() + (full() ? 0 : pending_sum_); }

  // Returns a lower bound on the sum of the n cheapest; discarded slots count as the cutoff.
  double lower() const {
    const double known = sum_.lower();
    return full() ? known : known + static_cast<double>(n_ - size_) * cutoff_ * (1 - kMargin);
  }

  // Returns the exact sum of the n cheapest, rounded once.
  double sum() const {
    return exact_sum(n_, [this](std::size_t i) { return array_[i].key; });
  }

  // Drops every slot, kept or pending, that fails keep(row).
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

  // If any of the n cheapest fails keep(row), drops all slots that fail it and returns true.
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
      const Entry entry = array_[i];  // copied, because its place may be overwritten
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

  void set_cutoff_to_last() {
    cutoff_ = array_[size_ - 1].key, cutoff_row_ = array_[size_ - 1].row;
  }

  // up to this many pending slots are inserted one by one
  static constexpr std::size_t kMaxInserted = 8;
  // Below this size std::sort wins: on repeated searches of the same slots the branch predictor
  // predicts the order.
  static constexpr std::size_t kStdSortMax = 160;
  // up to this n, merging costs no more than optimistic_sum()
  static constexpr std::size_t kMergeIsCheap = 64;

  std::size_t n_ = 0, capacity_ = 0;
  std::size_t size_ = 0, end_ = 0;  // the sorted part; with the pending tail
  double cutoff_ = kInfinity;
  std::size_t cutoff_row_ = kNoRow;
  RunningSum sum_;  // of the n cheapest
  double pending_sum_ = 0;  // sum of the pending keys
  // upper bound on the decrease of the sum by the weighed_ first pending slots
  double max_gain_ = 0;
  std::size_t weighed_ = 0;
  bool changed_ = false;
  std::vector<Entry> array_, merged_;
};

}  // namespace slotkern

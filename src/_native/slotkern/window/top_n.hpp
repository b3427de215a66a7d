// Keeps the n smallest keys of a set that grows slot by slot and may lose any member.
//
// A short sorted array holds the smallest keys, an overflow heap the rest; every key in the
// overflow is at least the array's largest. Members expire without notice: an expired one among the
// n smallest costs no more than its replacement, so the sum is a lower bound on the true one, and
// only a sum that would win needs drop_expired() and a second look. The overflow is a min-heap with
// an unsorted tail: adding costs one append, and a member enters the heap only if it is still alive
// when the array runs short. Cost: O(K) per offer (K = n + 4); each member enters and leaves the
// heap at most once, O(log m). No allocation after reset().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/numbers.hpp"

namespace slotkern {

struct Entry {
  double key;
  std::size_t row;
};

// Sufficient while only sums count: the order of equal keys is unspecified.
struct ByKey {
  bool operator()(const Entry& a, const Entry& b) const { return a.key < b.key; }
};

// Up to this size the insert position is counted, without branches on keys.
inline constexpr std::size_t kMaxInsertionSorted = 12;

// Inserts an entry into the first `size` entries of a sorted array, which has space for one more,
// and returns its position. The method depends on the size: each is the fastest for its sizes.
template <class Order>
SLOTKERN_INLINE std::size_t insert_sorted(std::vector<Entry>& array, std::size_t size, Entry entry,
                                          Order order) {
  constexpr std::size_t stride = 8;
  Entry* const entries = array.data();
  std::size_t at = 0;
  if (size <= kMaxInsertionSorted) {  // branch-free on keys, which are unpredictable
    for (std::size_t i = 0; i < size; ++i) at += !order(entry, entries[i]);
    for (std::size_t i = size; i > 0; --i) entries[i] = entries[i - (i > at)];
  } else if (size <= 40) {
    for (at = size; at > 0 && order(entry, entries[at - 1]); --at) entries[at] = entries[at - 1];
  } else {
    if (size <= 512) {  // counted in strides, then within one: branch-free too
      for (std::size_t i = stride - 1; i < size; i += stride)
        at += order(entry, entries[i]) ? 0 : stride;
      const std::size_t first = at, last = std::min(first + stride - 1, size);
      for (std::size_t i = first; i < last; ++i) at += !order(entry, entries[i]);
    } else {
      at = static_cast<std::size_t>(std::upper_bound(entries, entries + size, entry, order) -
                                    entries);
    }
    std::move_backward(entries + at, entries + size, entries + size + 1);
  }
  entries[at] = entry;
  return at;
}

// A running sum of keys >= 0 with a bound on its rounding error.
class RunningSum {
 public:
  void add(double key) {
    sum_ += key;
    slack_ += sum_ * 4e-16;
  }
  void drop(double key) { sum_ -= key; }  // key must have been counted by add()
  void of(const std::vector<Entry>& array, std::size_t count) {
    sum_ = slack_ = 0;
    for (std::size_t i = 0; i < count; ++i) add(array[i].key);
  }
  double lower() const { return sum_ - slack_; }
  double upper() const { return sum_ + slack_; }

 private:
  double sum_ = 0, slack_ = 0;
};

template <class Order = ByKey>
class TopN {
 public:
  TopN() = default;
  explicit TopN(Order order) : order_(order) {}

  // Prepares for the n smallest of at most `members` keys. Without an overflow (`reserve` false),
  // entries that leave the array are discarded; this is for sets that never lose a member.
  void reset(std::size_t n, std::size_t members, bool reserve = true) {
    if (array_.size() < n + 4) array_.resize(n + 4);  // allocate first: may throw
    if (reserve && overflow_.size() < members) overflow_.resize(members);
    n_ = n;
    capacity_ = n + 4;
    has_overflow_ = reserve;
    appends_until_full_ = reserve && n > 8;
    sorted_ = true;
    heaped_ = overflow_size_ = 0;
    size_ = 0;
    cutoff_ = kInfinity;
    sum_ = {};
  }

  // Adds a member; returns true if it is now among the n smallest. Infinite keys are ignored.
  bool offer(double key, std::size_t row) {
    const Entry entry{key, row};
    if (size_ < n_ && appends_until_full_ && key < kInfinity) {
      array_[size_++] = entry;
      sorted_ = false;
      sum_.add(key);
      return true;
    }
    if (!sorted_) sort();
    if (key >= cutoff_) {
      if (key == kInfinity) return false;
      if (key > cutoff_ || !order_(entry, array_[size_ - 1])) {
        add_overflow(entry);
        return false;
      }
    }
    if (size_ == capacity_) add_overflow(array_[--size_]);
    const std::size_t at = insert_sorted(array_, size_++, entry, order_);
    if (size_ == capacity_ || overflow_size_ > 0) cutoff_ = array_[size_ - 1].key;
    if (at >= n_) return false;
    sum_.add(key);
    if (size_ > n_) sum_.drop(array_[n_].key);
    return true;
  }

  bool full() const { return size_ >= n_; }
  std::size_t n() const { return n_; }
  // Without an overflow, offers of this key or a higher one change nothing.
  double cutoff() const { return cutoff_; }
  const Entry& operator[](std::size_t i) const { return array_[i]; }

  // Returns a lower bound on the sum of the n smallest.
  double lower() const { return sum_.lower(); }

  // Returns the exact sum of the n smallest, rounded once.
  double sum() const {
    return exact_sum(n_, [this](std::size_t i) { return array_[i].key; });
  }

  // If any of the n smallest fails keep(row), drops all members that fail it and returns true.
  template <class Keep>
  bool drop_expired(Keep keep) {
    const std::size_t front = std::min(n_, size_);
    std::size_t kept = 0;
    while (kept < front && keep(array_[kept].row)) ++kept;
    if (kept == front) {
      if (!sorted_) sort();
      return false;
    }
    for (std::size_t i = kept + 1; i < size_; ++i)
      if (keep(array_[i].row)) array_[kept++] = array_[i];
    size_ = kept;
    restore_array(keep);
    return true;
  }

 private:
  struct ReverseOrder {
    Order order;
    bool operator()(const Entry& a, const Entry& b) const { return order(b, a); }
  };

  void sort() {
    std::sort(array_.begin(), array_.begin() + static_cast<std::ptrdiff_t>(size_), order_);
    sorted_ = true;
  }

  void add_overflow(const Entry& entry) {
    if (has_overflow_) overflow_[overflow_size_++] = entry;
  }

  template <class Keep>
  void restore_array(Keep keep) {
    if (size_ < n_) refill(keep);
    cutoff_ = overflow_size_ > 0 || size_ == capacity_ ? array_[size_ - 1].key : kInfinity;
    sum_.of(array_, std::min(n_, size_));
  }

  template <class Keep>
  void refill(Keep keep) {
    const auto first = overflow_.begin();
    const auto at = [first](std::size_t i) { return first + static_cast<std::ptrdiff_t>(i); };
    for (std::size_t i = heaped_; i < overflow_size_; ++i)
      if (keep(overflow_[i].row)) {
        overflow_[heaped_++] = overflow_[i];
        std::push_heap(first, at(heaped_), ReverseOrder{order_});
      }
    overflow_size_ = heaped_;
    while (size_ < n_ && overflow_size_ > 0) {
      std::pop_heap(first, at(overflow_size_), ReverseOrder{order_});
      const Entry& entry = overflow_[--overflow_size_];
      if (keep(entry.row)) array_[size_++] = entry;
    }
    heaped_ = overflow_size_;
  }

  [[no_unique_address]] Order order_{};
  std::size_t n_ = 0, capacity_ = 0, size_ = 0;
  double cutoff_ = kInfinity;  // keys from here on belong to the overflow
  RunningSum sum_;  // of the n smallest
  bool has_overflow_ = true;
  bool appends_until_full_ = false, sorted_ = true;  // unsorted until n have been added
  std::size_t heaped_ = 0, overflow_size_ = 0;  // of overflow_: size of the heap, and with its tail
  std::vector<Entry> array_, overflow_;
};

using TopNByKey = TopN<>;

}  // namespace slotkern

// The n smallest keys of a set that grows slot by slot and loses members at any time.
//
// A short sorted array holds the smallest known, a reserve the rest; every key of the reserve
// is at least the array's largest. Members expire without a word: while one that has expired
// sits among the n smallest it is no dearer than its replacement, so the sum is a LOWER bound
// of the true one, and only a sum that would win need be purged and looked at again.
// The reserve is a min-heap with an unsorted tail: what arrives costs one append, and joins
// the heap only if it is still alive when the array runs short. Offers are O(K) in the array
// (K = n + 4), each member joins and leaves the heap at most once, O(log m). No allocation
// after reset().
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

// Any order of equal keys will do while only sums count.
struct ByKey {
  bool operator()(const Entry& a, const Entry& b) const { return a.key < b.key; }
};

// Among so few the place is counted, not looked for.
inline constexpr std::size_t kMaxInsertionSorted = 12;

// Puts an entry among the first `size` of a sorted array that has allocated for it; says where. Of the
// ways to find its place each is the quickest at its sizes.
template <class Order>
SLOTKERN_INLINE std::size_t insert_sorted(std::vector<Entry>& array, std::size_t size, Entry entry,
                                          Order order) {
  constexpr std::size_t stride = 8;
  Entry* const entries = array.data();
  std::size_t at = 0;
  if (size <= kMaxInsertionSorted) {  // without a branch on keys, which would be guessed wrong
    for (std::size_t i = 0; i < size; ++i) at += !order(entry, entries[i]);
    for (std::size_t i = size; i > 0; --i) entries[i] = entries[i - (i > at)];
  } else if (size <= 40) {
    for (at = size; at > 0 && order(entry, entries[at - 1]); --at) entries[at] = entries[at - 1];
  } else {
    if (size <= 512) {  // counted in strides, then in one: no branch on keys either
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

// A running sum of keys >= 0, and its worst rounding error.
class RunningSum {
 public:
  void add(double key) {
    sum_ += key;
    slack_ += sum_ * 4e-16;
  }
  void drop(double key) { sum_ -= key; }  // one that add() has counted
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

  // Room for n smallest among at most `members`; with no reserve what falls out of the
  // array is gone, for sets that never lose a member.
  void reset(std::size_t n, std::size_t members, bool reserve = true) {
    if (array_.size() < n + 4) array_.resize(n + 4);  // first what may fail
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

  // Adds a member; true when it is among the n smallest now. What is infinite is no member.
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
  const Entry& operator[](std::size_t i) const { return array_[i]; }

  // At most the sum of the n smallest.
  double lower() const { return sum_.lower(); }

  // The exact sum of the n smallest, rounded once.
  double sum() const {
    return exact_sum(n_, [this](std::size_t i) { return array_[i].key; });
  }

  // Drops what keep(row) refuses if any of it is among the n smallest, and says whether it did.
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
  double cutoff_ = kInfinity;  // keys from here on belong to the reserve
  RunningSum sum_;  // of the n smallest
  bool has_overflow_ = true;
  bool appends_until_full_ = false, sorted_ = true;  // fewer than n are kept as they came, until they are n
  std::size_t heaped_ = 0, overflow_size_ = 0;  // of overflow_: the heap, then its tail
  std::vector<Entry> array_, overflow_;
};

using TopNByKey = TopN<>;

}  // namespace slotkern

// Keeps the n cheapest remnants of a set that grows one by one and may lose any member.
//
// A short array sorted by key, then node, holds the cheapest, an overflow heap the rest; no member
// of the overflow comes before the array's last. Members expire without notice: an expired one
// among the n cheapest costs no more than its replacement, so the sum is a lower bound on the true
// one, and only a sum that would win needs drop_expired() and a second look. For few parts the
// array has a constant size, padded with infinite keys: insertion runs in loops of constant length,
// without branches on keys, which would be mispredicted. The overflow is a min-heap with an
// unsorted tail: adding costs one append, and a member enters the heap only if it is still alive
// when the array runs short. Cost: O(n) per offer; each member enters and leaves the heap at most
// once, O(log m).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "slotkern/window/top_n.hpp"

namespace slotkern::detail {

class TopNRemnants {
 public:
  struct Member {
    double key;
    std::int32_t node;
    std::uint32_t remnant;
    bool operator<(const Member& other) const {
      return key != other.key ? key < other.key : node < other.node;
    }
  };

  // Keeps the n cheapest; allocates `waiting` places in the overflow.
  TopNRemnants(std::size_t n, std::size_t waiting)
      : n_(n), is_padded_(n <= kPaddedSize / 2), capacity_(is_padded_ ? kPaddedSize : n + 4),
        all_(2 + 2 * capacity_, kNone), overflow_(waiting) {
    // sentinel before all others, so that searches need no test for the beginning
    all_[0].key = -kInfinity;
  }

  // Adds a member unless its key is infinite; returns true if it is now among the n cheapest.
  // Requires !is_overflow_full().
  SLOTKERN_INLINE bool offer(const Member& member) {
    if (!(member.key < kInfinity)) return false;
    if (member.key > cutoff_) {  // frequent: many groups hold cheaper members
      overflow_[overflow_size_++] = member;
      return false;
    }
    const std::size_t at = insert(member), last = size_;
    if (!is_padded_ && at < n_) {
      sum_.add(member.key);
      if (last >= n_) sum_.drop(members()[n_].key);
    }
    const bool spills = last == capacity_ || (overflow_size_ > 0 && at == last);
    overflow_[overflow_size_] = members()[last];
    if (spills) members()[last] = kNone;
    overflow_size_ += spills, size_ += !spills;
    cutoff_ = overflow_size_ > 0 || size_ == capacity_ ? members()[size_ - 1].key : kInfinity;
    return at < n_;
  }

  bool full() const { return size_ >= n_; }
  const Member& operator[](std::size_t i) const { return members()[i]; }

  // Returns the number of the n cheapest with a smaller node id than member i.
  std::size_t rank(std::size_t i) const {
    std::size_t lower = 0;
    for (std::size_t k = 0; k < n_; ++k) lower += members()[k].node < members()[i].node;
    return lower;
  }

  // Returns a lower bound on the sum of the n cheapest.
  double lower() const {
    if (!is_padded_) return sum_.lower();
    double total = 0;
    for (std::size_t i = 0; i < n_; ++i) total += members()[i].key;
    return total * (1 - kPaddedRounding);
  }

  // Returns the exact sum of the n cheapest, rounded once.
  double sum() const {
    return exact_sum(n_, [this](std::size_t i) { return members()[i].key; });
  }

  // If any of the n cheapest fails keep(remnant), drops all members that fail it and returns true.
  template <class Keep>
  bool drop_expired(Keep keep) {
    const std::size_t front = std::min(n_, size_);
    std::size_t kept = 0;
    while (kept < front && keep(members()[kept].remnant)) ++kept;
    if (kept == front) return false;
    for (std::size_t i = kept + 1; i < size_; ++i)
      if (keep(members()[i].remnant)) members()[kept++] = members()[i];
    shorten(kept);
    restore_array(keep);
    return true;
  }

  // Removes the n cheapest; requires full(). If fewer than n members remain in the array, it is
  // refilled from the overflow, and overflow members found to fail keep(remnant) are discarded.
  // Members of the array are not tested: expired ones stay until drop_expired().
  template <class Keep>
  void drop_cheapest(Keep keep) {
    const std::size_t left = size_ - n_;
    const auto first = all_.begin() + 1, nth = first + static_cast<std::ptrdiff_t>(n_);
    std::copy(nth, nth + static_cast<std::ptrdiff_t>(is_padded_ ? kPaddedSize : left), first);
    shorten(left);
    restore_array(keep);
  }

  std::size_t allocated() const { return all_.size() + overflow_.size(); }
  bool is_overflow_full() const { return overflow_size_ == overflow_.size(); }

  // Drops overflow members that fail keep(remnant), and doubles the overflow if most stay.
  // Amortized O(1) per member.
  template <class Keep>
  void compact_overflow(Keep keep) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < overflow_size_; ++i)
      if (keep(overflow_[i].remnant)) overflow_[kept++] = overflow_[i];
    overflow_size_ = kept;
    heaped_ = 0;  // all of it is an unsorted tail again
    if (2 * overflow_size_ > overflow_.size()) overflow_.resize(2 * overflow_.size());
  }

 private:
  Member* members() { return all_.data() + 1; }
  const Member* members() const { return all_.data() + 1; }

  struct ByFallingKey {  // makes the standard max-heap a min-heap
    bool operator()(const Member& a, const Member& b) const { return b < a; }
  };

  // Inserts a member and returns its position.
  SLOTKERN_INLINE std::size_t insert(const Member& member) {
    Member* const members = this->members();
    std::size_t at = 0;
    if (!is_padded_) {
      at = static_cast<std::size_t>(std::upper_bound(members, members + size_, member) - members);
      std::move_backward(members + at, members + size_, members + size_ + 1);
    } else {
      for (std::size_t i = 0; i < kPaddedSize; ++i) at += members[i].key <= member.key;
      while (members[static_cast<std::ptrdiff_t>(at) - 1].key == member.key && at > 0 &&
             member.node < members[at - 1].node)
        --at;
      std::memmove(members + at + 1, members + at, kPaddedSize * sizeof(Member));
    }
    members[at] = member;
    return at;
  }

  void shorten(std::size_t size) {
    for (std::size_t i = size; i < size_; ++i) members()[i] = kNone;
    size_ = size;
  }

  template <class Keep>
  void restore_array(Keep keep) {
    if (size_ < n_ && overflow_size_ > 0) refill(keep);
    cutoff_ = overflow_size_ > 0 || size_ == capacity_ ? members()[size_ - 1].key : kInfinity;
    if (is_padded_) return;
    sum_ = {};
    for (std::size_t i = 0; i < std::min(n_, size_); ++i) sum_.add(members()[i].key);
  }

  template <class Keep>
  void refill(Keep keep) {
    const auto first = overflow_.begin();
    const auto at = [first](std::size_t i) { return first + static_cast<std::ptrdiff_t>(i); };
    for (std::size_t i = heaped_; i < overflow_size_; ++i)
      if (keep(overflow_[i].remnant)) {
        overflow_[heaped_++] = overflow_[i];
        std::push_heap(first, at(heaped_), ByFallingKey{});
      }
    overflow_size_ = heaped_;
    while (size_ < n_ && overflow_size_ > 0) {
      std::pop_heap(first, at(overflow_size_), ByFallingKey{});
      const Member& next = overflow_[--overflow_size_];
      if (keep(next.remnant)) members()[size_++] = next;
    }
    heaped_ = overflow_size_;
  }

  static constexpr std::size_t kPaddedSize = 16;
  // more than the rounding of a plain sum of so short an array
  static constexpr double kPaddedRounding = 0x1p-48;
  static constexpr Member kNone{kInfinity, 0, 0};

  std::size_t n_;
  bool is_padded_;
  std::size_t capacity_, size_ = 0;
  double cutoff_ = kInfinity;  // members with larger keys belong to the overflow
  RunningSum sum_;  // of the n cheapest; unused if is_padded_
  std::vector<Member> all_;  // the array, after one sentinel
  std::size_t heaped_ = 0, overflow_size_ = 0;  // of overflow_: size of the heap, and with its tail
  std::vector<Member> overflow_;
};

}  // namespace slotkern::detail

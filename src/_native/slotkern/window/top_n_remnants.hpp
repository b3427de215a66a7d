// The n cheapest remnants of a set that grows remnant by remnant and loses members at any time.
//
// A short array sorted by key, then node, holds the cheapest known, a reserve the rest; none of the
// reserve comes before the array's last. Members expire without a word: while one that has expired
// sits among the n cheapest it is no dearer than its replacement, so that the sum is a LOWER bound
// of the true one, and only a sum that would win need be purged and looked at again.
// For few parts the array is of one size, padded with infinite keys: a remnant finds its place and
// moves what is dearer in loops of constant length, where branches on keys would be guessed wrong.
// The reserve is a min-heap with an unsorted tail: what arrives costs one append, and joins the
// heap only if it is still alive when the array runs short. Offers are O(n), each member joins and
// leaves the heap at most once, O(log m).
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

  // The n cheapest; allocated for so many more in the reserve.
  TopNRemnants(std::size_t n, std::size_t waiting)
      : n_(n), is_padded_(n <= kPaddedSize / 2), capacity_(is_padded_ ? kPaddedSize : n + 4),
        all_(2 + 2 * capacity_, kNone), overflow_(waiting) {
    all_[0].key = -kInfinity;  // before all others, so that none looks for the beginning
  }

  // Adds a member unless its key is infinite; whether it is among the n cheapest now. The reserve
  // must not be is_overflow_full.
  SLOTKERN_INLINE bool offer(const Member& member) {
    if (!(member.key < kInfinity)) return false;
    if (member.key > cutoff_) {  // many groups hold cheaper ones
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

  // How many of the n cheapest have lower nodes.
  std::size_t rank(std::size_t i) const {
    std::size_t lower = 0;
    for (std::size_t k = 0; k < n_; ++k) lower += members()[k].node < members()[i].node;
    return lower;
  }

  // At most the sum of the n cheapest.
  double lower() const {
    if (!is_padded_) return sum_.lower();
    double total = 0;
    for (std::size_t i = 0; i < n_; ++i) total += members()[i].key;
    return total * (1 - kPaddedRounding);
  }

  // The exact sum of the n cheapest, rounded once.
  double sum() const {
    return exact_sum(n_, [this](std::size_t i) { return members()[i].key; });
  }

  // Drops what keep(remnant) refuses if any of it is among the n cheapest, and says whether it did.
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

  // Takes the n cheapest out. What moves up from the reserve is what keep(remnant) takes; of the few
  // behind the n cheapest, drop_expired() tells.
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

  // Drops what keep(remnant) refuses, and makes twice the allocated when most of it stays. O(1) a member
  // in the mean.
  template <class Keep>
  void compact_overflow(Keep keep) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < overflow_size_; ++i)
      if (keep(overflow_[i].remnant)) overflow_[kept++] = overflow_[i];
    overflow_size_ = kept;
    heaped_ = 0;  // all of it is tail again
    if (2 * overflow_size_ > overflow_.size()) overflow_.resize(2 * overflow_.size());
  }

 private:
  Member* members() { return all_.data() + 1; }
  const Member* members() const { return all_.data() + 1; }

  struct ReverseOrder {  // the heap gives the largest
    bool operator()(const Member& a, const Member& b) const { return b < a; }
  };

  // Puts one in its place and says where.
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
        std::push_heap(first, at(heaped_), ReverseOrder{});
      }
    overflow_size_ = heaped_;
    while (size_ < n_ && overflow_size_ > 0) {
      std::pop_heap(first, at(overflow_size_), ReverseOrder{});
      const Member& next = overflow_[--overflow_size_];
      if (keep(next.remnant)) members()[size_++] = next;
    }
    heaped_ = overflow_size_;
  }

  static constexpr std::size_t kPaddedSize = 16;
  static constexpr double kPaddedRounding = 0x1p-48;  // more than a plain sum of few loses
  static constexpr Member kNone{kInfinity, 0, 0};

  std::size_t n_;
  bool is_padded_;
  std::size_t capacity_, size_ = 0;
  double cutoff_ = kInfinity;  // keys beyond it belong to the reserve
  RunningSum sum_;  // of the n cheapest, unless they are few
  std::vector<Member> all_;  // the array behind one that comes before all
  std::size_t heaped_ = 0, overflow_size_ = 0;  // of overflow_: the heap, then its tail
  std::vector<Member> overflow_;
};

}  // namespace slotkern::detail

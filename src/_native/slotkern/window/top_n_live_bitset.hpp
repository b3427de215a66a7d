// Keeps the cheapest slots of a sweep, as window/top_n_live.hpp does, if every node has one price:
// then a node's rank by rate is fixed (slots/nodes.hpp), and a set of slots is a bitset over ranks.
//
// Adding a slot and removing the n-th cost O(1) without sorting, and the n cheapest are in tie
// order. A node has at most one live slot: a later one replaces an expired one. Words between two
// set bits are scanned, so this is faster only if many of the nodes are wanted. No allocation after
// reset().
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/slots/prepared.hpp"
#include "slotkern/window/top_n.hpp"
#include "slotkern/window/top_n_live.hpp"

namespace slotkern {

class TopNLiveBitset {
 public:
  // Returns true if the bitset is faster than the sorted array. For the lowest cost it never is,
  // because the array discards all slots above its cutoff.
  static bool is_faster(const PreparedSlots& prepared, std::size_t n) {
    const IndexOptions& options = prepared.options;
    return prepared.one_price && n >= options.min_bitset_parts &&
           (prepared.nodes.size() - 1) / n < options.max_bitset_nodes_per_part;
  }
  static std::size_t extra_capacity(std::size_t n) { return n / 2 + 64; }

  // Sets the slots to keep and the volume of the request.
  void set_slots(const PreparedSlots& prepared, double volume) {
    slots_ = &prepared.slots;
    const NodeRateOrder& ranks = prepared.rate_order();
    ranks_ = ranks.of.data();
    order_determines_cost_ = ranks.order_determines_cost(volume);
    const std::size_t nodes = prepared.nodes.size();
    if (entries_.size() < nodes) entries_.resize(nodes);
    words_.resize((nodes + 63) / 64);
  }

  void reset(std::size_t n, std::size_t spare, double = kInfinity) {
    n_ = n;
    capacity_ = n + spare;
    std::fill(words_.begin(), words_.end(), 0);
    size_ = nth_ = last_ = 0;
    cutoff_ = kNone;
    sum_ = {};
    changed_ = front_verified_ = false;
  }

  bool add(double key, std::size_t row) {
    const std::size_t rank = ranks_[static_cast<std::size_t>((*slots_)[row].place)];
    front_verified_ = false;
    if (rank >= cutoff_ || !(key < kInfinity)) return false;
    entries_[rank] = {key, row};
    if (words_[rank / 64] & bit(rank)) return changed_ |= rank <= nth_, true;
    words_[rank / 64] |= bit(rank);
    last_ = std::max(last_, rank);
    if (size_++ < n_) {
      sum_.add(key);
      nth_ = std::max(nth_, rank);
      changed_ = true;
    } else if (rank < nth_) {
      sum_.add(key), sum_.drop(entries_[nth_].key);
      nth_ = last_kept_up_to(nth_ - 1);
      changed_ = true;
    }
    if (size_ > capacity_) {
      last_ = last_kept_up_to(last_);
      drop(last_);
    }
    if (size_ == capacity_) cutoff_ = last_ = last_kept_up_to(last_);
    return true;
  }

  bool merge_pending() const { return changed_; }
  void clear_changed() { changed_ = false; }

  bool is_exhausted() const { return size_ < n_ && cutoff_ == kNone; }
  bool full() const { return size_ >= n_; }
  double cutoff() const { return cutoff_ == kNone ? kInfinity : entries_[cutoff_].key; }
  std::size_t cutoff_row() const { return cutoff_ == kNone ? kNoRow : entries_[cutoff_].row; }
  double nth_key() const { return entries_[nth_].key; }

  // Returns true if the n cheapest are those of the tie rule.
  bool is_tie_free() const { return order_determines_cost_ && entries_[nth_].key < cutoff(); }

  double optimistic_sum() const { return lower(); }
  double upper_bound() const { return sum_.upper(); }
  double lower() const {
    const double known = sum_.lower();
    return full() ? known : known + static_cast<double>(n_ - size_) * cutoff() * (1 - kMargin);
  }
  double sum() const {
    return exact_sum_of(
        [this](auto visit) { each([&](const Entry& entry) { visit(entry.key); }); });
  }

  // Calls visit(entry) for the n cheapest.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t word = 0; word <= nth_ / 64; ++word)
      for (std::uint64_t bits = words_[word]; bits; bits &= bits - 1) {
        const std::size_t rank = rank_of(word, bits);
        if (rank > nth_) return;
        visit(entries_[rank]);
      }
  }

  template <class Keep>
  void retain(Keep keep) {
    retain_cheapest(keep, true);
    front_verified_ = true;
  }
  template <class Keep>
  bool drop_expired(Keep keep) {
    front_verified_ = !front_verified_ && retain_cheapest(keep, false);
    return front_verified_;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  static std::uint64_t bit(std::size_t rank) { return std::uint64_t{1} << rank % 64; }
  static std::size_t rank_of(std::size_t word, std::uint64_t bits) {
    return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

  // Returns the highest kept rank not above `rank`; there must be one.
  std::size_t last_kept_up_to(std::size_t rank) const {
    std::size_t word = rank / 64;
    std::uint64_t bits = words_[word] & ~std::uint64_t{0} >> (63 - rank % 64);
    while (!bits) bits = words_[--word];
    return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(bits));
  }

  void drop(std::size_t rank) {
    words_[rank / 64] &= ~bit(rank);
    --size_;
  }

  // Drops slots that fail keep(row): of all slots, or only until n remain. Returns true if one was
  // dropped. Works on words without branches, because expiry is unpredictable.
  template <class Keep>
  bool retain_cheapest(Keep keep, bool all) {
    const std::size_t before = size_;
    std::size_t kept = 0;
    sum_ = {};
    nth_ = 0;
    for (std::size_t word = 0; word <= last_ / 64 && (all || kept < n_); ++word) {
      const std::uint64_t bits = words_[word];
      std::uint64_t stay = 0;
      for (std::uint64_t rest = bits; rest; rest &= rest - 1) {
        const std::size_t rank = rank_of(word, rest);
        stay |= std::uint64_t{keep(entries_[rank].row)} << rank % 64;
      }
      words_[word] = stay;
      size_ -= static_cast<std::size_t>(std::popcount(bits ^ stay));
      for (; stay && kept < n_; stay &= stay - 1, ++kept) {
        nth_ = rank_of(word, stay);
        sum_.add(entries_[nth_].key);
      }
    }
    return size_ < before;
  }

  std::size_t n_ = 0, capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t nth_ = 0;  // rank of the n-th kept slot, or of the last if fewer
  std::size_t last_ = 0;  // upper bound on the kept ranks
  std::size_t cutoff_ = kNone;
  RunningSum sum_;  // of the n cheapest
  bool changed_ = false;
  bool front_verified_ = false;  // no slot was added since the n cheapest were found to be live
  bool order_determines_cost_ = false;
  const LargeVector<Slot>* slots_ = nullptr;
  const std::uint32_t* ranks_ = nullptr;
  std::vector<std::uint64_t> words_;  // bit j: the slot of rank j is kept
  std::vector<Entry> entries_;  // by rank
};

}  // namespace slotkern

// The time order of the blocks of 64 rows of a pool that changes: a two-level B+-tree.
//
// Each leaf has 64 consecutive entries; its first entries hold block numbers:
//
//   leaves_ (in time order):   leaf 0   leaf 2   leaf 1   ...
//   block_at_[64 * leaf ...]:  | b7 b0 b4 .. (at most 64) | free |
//
// An entry is an index 64 * leaf + j; a position is 64 * leaf_rank + j, which counts in time order
// as if all leaves were full. Adding or removing a block shifts the later entries of its leaf only.
// Arrays indexed by entry elsewhere (slots/zone_map.hpp) are kept in step by a RelocationListener
// with resize(entries), move(from, to, count) and clear(entry).
//
// O(log m + 64) to find, add or remove a block. A leaf is split, O(m / 4096), after at least 5
// insertions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class BlockDirectory {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // True if the directory is unused: block numbers are in time order.
  bool empty() const { return leaves_.empty(); }
  void clear() { *this = {}; }
  void reserve(std::size_t blocks) {
    const std::size_t leaves = leaves_for(blocks);
    leaves_.reserve(leaves), leaf_min_start_.reserve(leaves), leaf_rank_.reserve(leaves);
    leaf_size_.reserve(leaves), block_at_.reserve(64 * leaves), min_start_.reserve(64 * leaves);
    entry_of_.reserve(blocks);
  }

  // Creates entries for blocks 0 .. count - 1 (at least one), in this order, with start -infinity.
  void bulk_load(std::size_t count) {
    const std::size_t leaves = leaves_for(count);
    leaves_.resize(leaves), leaf_rank_.resize(leaves), leaf_size_.resize(leaves),
        free_leaves_.clear();
    leaf_min_start_.assign(leaves, -kInfinity);
    block_at_.assign(64 * leaves, kNoBlock), min_start_.assign(64 * leaves, -kInfinity);
    entry_of_.resize(count);
    for (std::size_t leaf = 0, block = 0; leaf < leaves; ++leaf) {
      leaves_[leaf] = leaf_rank_[leaf] = static_cast<std::uint32_t>(leaf);
      const std::size_t first = block, end = (leaf + 1) * count / leaves;
      for (; block < end; ++block) {
        entry_of_[block] = static_cast<std::uint32_t>(64 * leaf + block - first);
        block_at_[entry_of_[block]] = static_cast<std::uint32_t>(block);
      }
      leaf_size_[leaf] = static_cast<std::uint8_t>(end - first);
    }
  }

  std::size_t entries() const { return block_at_.size(); }
  std::size_t entry_at(std::size_t position) const {
    return std::size_t{64} * leaves_[position / 64] + position % 64;
  }
  std::size_t position_of(std::size_t entry) const {
    return std::size_t{64} * leaf_rank_[entry / 64] + entry % 64;
  }
  std::size_t block(std::size_t entry) const { return block_at_[entry]; }
  std::size_t entry_of(std::size_t block) const { return entry_of_[block]; }
  std::size_t first_entry() const { return entry_at(0); }
  std::size_t last_entry() const {
    return std::size_t{64} * leaves_.back() + leaf_size_[leaves_.back()] - 1;
  }
  // The next entry in time order, or kNone.
  std::size_t next(std::size_t entry) const {
    if (entry % 64 + 1 < leaf_size_[entry / 64]) return entry + 1;
    const std::size_t rank = leaf_rank_[entry / 64] + std::size_t{1};
    return rank < leaves_.size() ? std::size_t{64} * leaves_[rank] : kNone;
  }
  std::size_t previous(std::size_t entry) const {
    if (entry % 64 != 0) return entry - 1;
    const std::size_t rank = leaf_rank_[entry / 64];
    if (rank == 0) return kNone;
    const std::size_t leaf = leaves_[rank - 1];
    return 64 * leaf + leaf_size_[leaf] - 1;
  }
  // Calls visit(entry) for all blocks in time order.
  template <class Visit>
  void each(Visit visit) const {
    for (const std::size_t leaf : leaves_)
      for (std::size_t j = 0; j < leaf_size_[leaf]; ++j) visit(64 * leaf + j);
  }

  // Start of the first slot of the block.
  double min_start(std::size_t entry) const { return min_start_[entry]; }
  void set_min_start(std::size_t entry, double start) {
    min_start_[entry] = start;
    if (entry % 64 == 0) leaf_min_start_[leaf_rank_[entry / 64]] = start;
  }
  // The last block that starts at or before t, otherwise the first block.
  std::size_t last_starting_by(double t) const {
    const std::size_t leaf = leaves_[last_at_most(leaf_min_start_.data(), leaves_.size(), t)];
    return 64 * leaf + last_at_most(min_start_.data() + 64 * leaf, leaf_size_[leaf], t);
  }
  // The same, but excludes blocks that start at t if later(entry) is true.
  template <class Later>
  std::size_t last_starting_by(double t, Later later) const {
    const auto last = [&](const double* starts, std::size_t count, auto entry) {
      std::size_t at = 0;
      for (; count > 1; count -= count / 2) {
        const std::size_t k = at + count / 2;
        if (starts[k] < t || (starts[k] == t && !later(entry(k)))) at = k;
      }
      return at;
    };
    const std::size_t leaf =
        leaves_[last(leaf_min_start_.data(), leaves_.size(),
                     [this](std::size_t k) { return std::size_t{64} * leaves_[k]; })];
    return 64 * leaf + last(min_start_.data() + 64 * leaf, leaf_size_[leaf],
                            [leaf](std::size_t k) { return 64 * leaf + k; });
  }

  // Inserts the block, possibly a new one, after `entry`; returns its entry. Other entries may
  // move.
  template <class RelocationListener>
  std::size_t add(std::size_t entry, std::size_t block, const RelocationListener& listener) {
    if (leaf_size_[entry / 64] == 64) entry = split_leaf(entry, listener);
    const std::size_t leaf = entry / 64, fresh = entry + 1;
    if (entry_of_.size() <= block) entry_of_.resize(block + 1);
    move(fresh, fresh + 1, 64 * leaf + leaf_size_[leaf]++ - fresh, listener);
    block_at_[fresh] = static_cast<std::uint32_t>(block);
    entry_of_[block] = static_cast<std::uint32_t>(fresh);
    return fresh;
  }

  // Removes a block, which must not be the only one. Earlier entries do not move.
  template <class RelocationListener>
  void remove(std::size_t entry, const RelocationListener& listener) {
    const std::size_t leaf = entry / 64, rank = leaf_rank_[leaf];
    erase(entry, 1, listener);
    if (leaf_size_[leaf] == 0) return remove_leaf(rank);
    if (rank + 1 < leaves_.size() &&
        leaf_size_[leaf] + leaf_size_[leaves_[rank + 1]] <= kMergeBelow) {
      const std::size_t next = leaves_[rank + 1], count = leaf_size_[next];
      transfer(64 * next, 64 * leaf + leaf_size_[leaf], count, listener);
      leaf_size_[leaf] = static_cast<std::uint8_t>(leaf_size_[leaf] + count);
      remove_leaf(rank + 1);
    }
  }

 private:
  // Blocks per leaf after bulk_load(), and the largest leaf that a merge may produce.
  static constexpr std::size_t kBulkFill = 60, kMergeBelow = 48;
  static constexpr std::uint32_t kNoBlock = std::numeric_limits<std::uint32_t>::max();

  // Index of the last of `count` starts that is at most t, otherwise 0. Branch-free bisection.
  static std::size_t last_at_most(const double* starts, std::size_t count, double t) {
    std::size_t at = 0;
    for (; count > 1; count -= count / 2) at += (starts[at + count / 2] <= t) * (count / 2);
    return at;
  }

  static std::size_t leaves_for(std::size_t blocks) { return (blocks + kBulkFill - 1) / kBulkFill; }

  template <class RelocationListener>
  void move(std::size_t from, std::size_t to, std::size_t count,
            const RelocationListener& listener) {
    move_items(block_at_, from, to, count), move_items(min_start_, from, to, count);
    for (std::size_t entry = to; entry < to + count; ++entry)
      entry_of_[block_at_[entry]] = static_cast<std::uint32_t>(entry);
    listener.move(from, to, count);
  }
  template <class T>
  static void move_items(std::vector<T>& items, std::size_t from, std::size_t to,
                         std::size_t count) {
    std::memmove(items.data() + to, items.data() + from, count * sizeof(T));
  }

  // Removes `count` blocks from `entry` on and shifts the later ones of the leaf.
  template <class RelocationListener>
  void erase(std::size_t entry, std::size_t count, const RelocationListener& listener) {
    const std::size_t leaf = entry / 64, end = 64 * leaf + leaf_size_[leaf];
    move(entry + count, entry, end - entry - count, listener);
    for (std::size_t gap = end - count; gap < end; ++gap)
      block_at_[gap] = kNoBlock, listener.clear(gap);
    leaf_size_[leaf] = static_cast<std::uint8_t>(leaf_size_[leaf] - count);
    if (leaf_size_[leaf] > 0) set_min_start(64 * leaf, min_start_[64 * leaf]);
  }

  // Moves `count` blocks from one leaf to another.
  template <class RelocationListener>
  void transfer(std::size_t from, std::size_t to, std::size_t count,
                const RelocationListener& listener) {
    move(from, to, count, listener);
    erase(from, count, listener);
  }

  // Moves the second half of a full leaf to a new leaf after it; returns the new entry of the
  // block.
  template <class RelocationListener>
  std::size_t split_leaf(std::size_t entry, const RelocationListener& listener) {
    if (free_leaves_.empty()) {
      listener.resize(block_at_.size() + 64);
      block_at_.resize(block_at_.size() + 64, kNoBlock),
          min_start_.resize(block_at_.size(), -kInfinity);
      leaf_size_.push_back(0), leaf_rank_.push_back(0);
      free_leaves_.push_back(static_cast<std::uint32_t>(leaf_size_.size() - 1));
    }
    const std::size_t leaf = entry / 64, rank = leaf_rank_[leaf] + std::size_t{1},
                      fresh = free_leaves_.back();
    const auto behind = static_cast<std::ptrdiff_t>(rank);
    leaves_.insert(leaves_.begin() + behind, static_cast<std::uint32_t>(fresh));
    leaf_min_start_.insert(leaf_min_start_.begin() + behind, -kInfinity);
    free_leaves_.pop_back();
    renumber_from(rank);
    constexpr std::size_t half = 32;
    leaf_size_[fresh] = half;
    transfer(64 * leaf + half, 64 * fresh, half, listener);
    set_min_start(64 * fresh, min_start_[64 * fresh]);
    return entry % 64 < half ? entry : 64 * fresh + entry % 64 - half;
  }

  // Unlinks the empty leaf at this rank.
  void remove_leaf(std::size_t rank) {
    free_leaves_.push_back(leaves_[rank]);
    leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(rank));
    leaf_min_start_.erase(leaf_min_start_.begin() + static_cast<std::ptrdiff_t>(rank));
    renumber_from(rank);
  }
  void renumber_from(std::size_t rank) {
    for (; rank < leaves_.size(); ++rank)
      leaf_rank_[leaves_[rank]] = static_cast<std::uint32_t>(rank);
  }

  std::vector<std::uint32_t> leaves_;  // [leaf_rank]: leaf
  std::vector<double> leaf_min_start_;  // [leaf_rank]: start of its first block
  std::vector<std::uint32_t> leaf_rank_;  // [leaf]: rank in time order
  std::vector<std::uint8_t> leaf_size_;  // [leaf]: number of blocks
  std::vector<std::uint32_t> block_at_;  // [entry]: block number, or kNoBlock
  std::vector<double> min_start_;  // [entry]: start of the first slot
  std::vector<std::uint32_t> entry_of_;  // [block]
  std::vector<std::uint32_t> free_leaves_;  // unlinked leaves
};

}  // namespace slotkern

// The slots of a changing pool as a two-level B+-tree in the order of (start, node), stored in
// PreparedSlots itself: searches read the same arrays before and after a change. Rows are in blocks
// of 64 with gaps (pool/block_store.hpp); a directory orders the blocks
// (slots/block_directory.hpp).
//
// Changes are applied in batches. A slot that leaves becomes a gap at once; slots that arrive wait
// for apply_pending(), which sorts them and writes each block once. The parts of one job start
// together, so that a batch touches few blocks. The zone map by price serves square searches only,
// and is maintained only after the first of them has built it.
//
// Cost: O(log m + 64) for a change, less in batches. A split costs O(64); built, split and merged
// blocks have at least 16 gaps, so at least 16 insertions come before the next split.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/bitmap_sort.hpp"
#include "slotkern/base/merge_sort.hpp"
#include "slotkern/pool/block_store.hpp"

namespace slotkern {

class SlotTree {
 public:
  std::size_t size() const { return size_; }

  static bool before(const Slot& a, const Slot& b) {
    return BlockStore::before(a, b.start, b.node);
  }

  // Heuristic: true if removing `leaving` rows one by one is cheaper than building all rows again.
  bool can_update_incrementally(std::size_t leaving) const {
    return leaving <= 8 * (size_ / BlockStore::kFill + 1);
  }

  // Returns the number of rows before the block that holds the last slot to start by t, counted as
  // if all blocks, and all leaves of the directory, were full.
  std::size_t count_started(double t) const {
    return size_ == 0 ? 0 : kBlock * order().position_of(order().last_starting_by(t));
  }

  // Continues on `prepared`, a copy of the PreparedSlots used so far.
  void attach(PreparedSlots& prepared) { blocks_.attach(prepared); }

  // Builds all rows from slots sorted by (start, node), with their rows of the origin array. Strong
  // exception guarantee.
  void build(PreparedSlots& prepared, const std::vector<SlotWithOrigin>& slots) {
    blocks_.build(prepared, slots);
    size_ = slots.size();
    pending_.clear(), shrunk_blocks_.clear();
  }

  bool should_prefetch() const { return size_ >= kLarge; }
  // Prefetches row `at`, whose slot will start at `to`, and the block into which it will move.
  void prefetch_row(std::size_t at, double to) const {
    const PreparedSlots& prepared = blocks_.prepared();
    const std::size_t rows = blocks_.first_row(prepared.order.last_starting_by(to));
    // the rows that PreparedSlots::count_prefix() reads first
    for (std::size_t row = rows + 7; row < rows + kBlock; row += 8) prefetch(&prepared.slots[row]);
    prefetch(&prepared.occupied[rows / kBlock]);
    if (at < prepared.slots.size()) {
      prefetch(&prepared.slots[at]);
      prefetch(&prepared.origins[at]);
      prefetch(&prepared.occupied[at / kBlock]);
      prepared.by_rate.prefetch(at);
    }
  }

  // The changes below are visible after apply_pending(). A slot that was inserted or moved must not
  // change again before that.
  void insert(const Slot& slot, std::size_t origin) {
    pending_.push_back({slot, origin});
    ++size_;
  }

  // Removes the slot of node k that starts at `start`; `at`: hint, its row.
  void erase(double start, std::size_t k, std::size_t at) {
    const auto [entry, row] = locate(start, k, at);
    remove_row(entry, row);
  }

  // Moves the end of the slot to `end`.
  void set_end(double start, std::size_t k, double end, std::size_t at) {
    const auto [entry, row] = locate(start, k, at);
    blocks_.set_end(entry, row, end);
  }

  // Moves the start of the slot to `to`.
  void set_start(double start, std::size_t k, double to, std::size_t at) {
    const auto [entry, row] = locate(start, k, at);
    pending_.push_back(blocks_.slot_with_origin(row));
    pending_.back().first.start = to;
    ++size_;
    remove_row(entry, row);
  }

  // Makes all changes visible: merges sparse blocks with their successors, then inserts the pending
  // slots block by block.
  void apply_pending() {
    const std::size_t parts = pending_.size();
    for (const std::uint32_t block : shrunk_blocks_)
      if (blocks_.prepared().occupied[block]) merge_with_next(order().entry_of(block));
    shrunk_blocks_.clear();
    if (pending_.empty()) return;
    sort_pending(parts);
    const MergeItem *next = sorted_.data(), *const end = next + pending_.size();
    while (next != end) {
      const std::size_t entry = entry_for(next->start, next->node), after = order().next(entry);
      const MergeItem* const first = next;
      if (after == BlockDirectory::kNone)
        next = end;
      else
        for (const MergeItem x{blocks_.first_slot(after), 0};
             next != end && ByStartThenNode{}(*next, x);)
          ++next;
      insert_into_block(entry, first, static_cast<std::size_t>(next - first));
    }
    pending_.clear();
  }

 private:
  static constexpr std::size_t kBlock = BlockStore::kBlock;
  static constexpr std::size_t kLarge = 1 << 16;       // rows; below, all of them fit the cache
  static constexpr std::size_t kMaxSingleInserts = 8;  // more rewrite the block
  static constexpr int kMaxMergedRows = 32;            // rows of two blocks to merge

  const BlockDirectory& order() const { return blocks_.prepared().order; }

  // Returns the directory entry of the block that holds (start, node), or into which it belongs.
  std::size_t entry_for(double start, std::int32_t node) {
    const std::size_t entry = order().last_starting_by(start);
    const auto later = [&](std::size_t other) { return blocks_.first_slot(other).node > node; };
    if (order().min_start(entry) != start || !later(entry)) return entry;
    return order().last_starting_by(start, later);
  }

  struct RowRef {
    std::size_t entry, row;
  };

  // Returns the row of the slot of node k that starts at `start`: row `at` if the hint is right,
  // else the first row that is not before (start, node). Gaps may hold copies of the slot, but they
  // come after it, so this row is the slot and not a gap.
  RowRef locate(double start, std::size_t k, std::size_t at) {
    const PreparedSlots& prepared = blocks_.prepared();
    if (at < prepared.slots.size() && static_cast<std::size_t>(prepared.slots[at].place) == k &&
        prepared.slots[at].start == start && prepared.occupied[at / kBlock] & BlockStore::bit(at))
      return {prepared.order.entry_of(at / kBlock), at};
    const std::int32_t node = prepared.nodes[k].id;
    const std::size_t entry = entry_for(start, node);
    return {entry, blocks_.first_row(entry) + blocks_.count_rows_before(entry, start, node)};
  }

  // Empties a row, and removes the block if no row is left.
  void remove_row(std::size_t entry, std::size_t row) {
    --size_;
    if (!blocks_.remove_row(entry, row)) return;
    const auto block = static_cast<std::uint32_t>(row / kBlock);
    if (shrunk_blocks_.empty() || shrunk_blocks_.back() != block) shrunk_blocks_.push_back(block);
  }

  // Merges two sparse blocks: the rows of the second become pending for the first.
  void merge_with_next(std::size_t entry) {
    const std::size_t next = order().next(entry);
    if (next == BlockDirectory::kNone ||
        blocks_.count(entry) + blocks_.count(next) > kMaxMergedRows)
      return;
    blocks_.for_each(next,
                     [&](std::size_t row) { pending_.push_back(blocks_.slot_with_origin(row)); });
    blocks_.remove_block(next);
  }

  // Sorts pending_ into sorted_. The first `parts` entries were inserted or moved by the caller,
  // and are often sorted already, or would be in the order of node indices; the others come from
  // merged blocks.
  void sort_pending(std::size_t parts) {
    const std::size_t size = pending_.size();
    sorted_.resize(size), merged_.resize(size);
    for (std::size_t j = 0; j < size; ++j) sorted_[j] = {pending_[j].first, kBlock + j};
    MergeItem *const first = sorted_.data(), *const middle = first + parts,
                      *const last = first + size;
    const auto in_order = [=] { return std::is_sorted(first, middle, ByStartThenNode{}); };
    // Nodes are indexed by falling performance. So remainders of parts that started together are in
    // the order of their starts if they are in the order of node indices.
    if (!in_order()) {
      MergeItem* next = merged_.data();
      if (by_place_.each(
              parts,
              [this](std::size_t j) { return static_cast<std::size_t>(pending_[j].first.place); },
              [&](std::size_t j) { *next++ = first[j]; }))
        std::copy(merged_.data(), next, first);
      if (!in_order()) merge_sort(first, parts, merged_.data(), ByStartThenNode{});
    }
    if (middle == last) return;
    if (!std::is_sorted(middle, last, ByStartThenNode{}))
      std::sort(middle, last, ByStartThenNode{});
    std::merge(first, middle, middle, last, merged_.data(), ByStartThenNode{});
    sorted_.swap(merged_);
  }

  // Inserts sorted slots into a block: up to kMaxSingleInserts one by one if they fit; otherwise
  // the block is rewritten, and split if it would exceed kBlock slots.
  void insert_into_block(std::size_t entry, const MergeItem* slots, std::size_t count) {
    const std::size_t all = count + static_cast<std::size_t>(blocks_.count(entry));
    if (count <= kMaxSingleInserts && all <= kBlock) {
      for (const MergeItem* next = slots; next != slots + count; ++next)
        blocks_.add(entry, pending_[next->source - kBlock]);
      return;
    }
    const std::size_t blocks =
                          all <= kBlock ? 1 : (all + BlockStore::kFill - 1) / BlockStore::kFill,
                      rows = blocks_.first_row(entry);
    std::array<MergeItem, kBlock> present;
    MergeItem* end = present.data();
    blocks_.for_each(entry, [&](std::size_t row) {
      *end++ = {blocks_.prepared().slots[row], row % kBlock};
    });
    merged_.resize(all);
    std::merge(present.data(), end, slots, slots + count, merged_.data(), ByStartThenNode{});
    for (std::size_t k = 1; k < blocks; ++k) entry = blocks_.add_block_after(entry);
    // Last block first, because the others still read the rows of the first one.
    for (std::size_t k = blocks; k-- > 0; entry = order().previous(entry)) {
      const std::size_t first = k * all / blocks;
      blocks_.fill(entry, rows, merged_.data() + first, (k + 1) * all / blocks - first,
                   pending_.data());
    }
  }

  BlockStore blocks_;
  std::size_t size_ = 0;
  std::vector<SlotWithOrigin> pending_;       // inserted at apply_pending()
  std::vector<std::uint32_t> shrunk_blocks_;  // have lost rows; some have been removed since
  std::vector<MergeItem> sorted_, merged_;   // scratch
  BitmapSort by_place_;
};

}  // namespace slotkern

// The slots of a pool that changes, in the order of time: the rows of PreparedSlots itself, in
// blocks of 64 with gaps among them (pool/block_store.hpp), so that every search and criterion runs
// on a changed pool as it does on a fresh one.
//
// What makes changes cheap. Those that belong together are made together: rows that leave become
// gaps at once, and what comes waits for settle(), sorted once and put into each block once. The
// parts of a wide job were free at one time, and what they leave begins within one: a few blocks
// hold them all. The screen by price serves square searches alone and is not there before the
// first of them.
//
// A change costs O(log m + 64), of many at once less. A block splits after 16 insertions at the
// soonest, O(64); see slots/blocks.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/by_number.hpp"
#include "slotkern/base/merge_sort.hpp"
#include "slotkern/pool/block_store.hpp"

namespace slotkern {

class SlotTree {
 public:
  std::size_t size() const { return size_; }

  static bool before(const Slot& a, const Slot& b) {
    return BlockStore::before(a, b.start, b.node);
  }

  // Whether so many can leave one by one faster than all rows are laid out anew.
  bool can_update_incrementally(std::size_t leaving) const {
    return leaving <= 8 * (size_ / BlockStore::kFill + 1);
  }

  // How many rows stand before those that begin behind t, as if all blocks were full.
  std::size_t count_started(double t) const {
    return size_ == 0 ? 0 : kBlock * order().position_of(order().last_by(t));
  }

  // The same rows, of another PreparedSlots that has been copied.
  void attach(PreparedSlots& prepared) { blocks_.attach(prepared); }

  // All rows anew: slots in the order of (start, node), and the rows of the origin array. Without
  // memory they stay as they were.
  void build(PreparedSlots& prepared, const std::vector<SlotWithOrigin>& slots) {
    blocks_.build(prepared, slots);
    size_ = slots.size();
    pending_.clear(), shrunk_blocks_.clear();
  }

  bool should_prefetch() const { return size_ >= kLarge; }
  // A slot that stands in row `at` will start at `to`: its row, and where it will stand, are on
  // their way from memory.
  void prefetch_row(std::size_t at, double to) const {
    const PreparedSlots& prepared = blocks_.prepared();
    const std::size_t rows = blocks_.first_row(prepared.order.last_by(to));
    for (std::size_t row = rows + 7; row < rows + kBlock; row += 8) fetch(&prepared.slots[row]);
    fetch(&prepared.taken[rows / kBlock]);
    if (at < prepared.slots.size()) {
      fetch(&prepared.slots[at]);
      fetch(&prepared.origins[at]);
      fetch(&prepared.taken[at / kBlock]);
      prepared.by_rate.expect(at);
    }
  }

  // Changes, which show when all are settled. A slot that has come or was moved meanwhile cannot
  // change again before.
  void insert(const Slot& slot, std::size_t origin) {
    pending_.push_back({slot, origin});
    ++size_;
  }

  // Of the slot that starts at `start` of the node at place k, which stands in row `at` perhaps:
  // it leaves.
  void erase(double start, std::size_t k, std::size_t at) {
    const auto [seat, row] = locate(start, k, at);
    remove_row(seat, row);
  }

  // It ends at `end` now.
  void set_end(double start, std::size_t k, double end, std::size_t at) {
    const auto [seat, row] = locate(start, k, at);
    blocks_.set_end(seat, row, end);
  }

  // It starts at `to` now.
  void set_start(double start, std::size_t k, double to, std::size_t at) {
    const auto [seat, row] = locate(start, k, at);
    pending_.push_back(blocks_.slot_with_origin(row));
    pending_.back().first.start = to;
    ++size_;
    remove_row(seat, row);
  }

  // All that has changed is in order again: blocks that lost rows take those of the next, and
  // what comes into one block comes at once.
  void apply_pending() {
    const std::size_t parts = pending_.size();
    for (const std::uint32_t block : shrunk_blocks_)
      if (blocks_.prepared().taken[block]) merge_with_next(order().seat_of(block));
    shrunk_blocks_.clear();
    if (pending_.empty()) return;
    sort_pending(parts);
    const MergeEntry *next = sorted_.data(), *const end = next + pending_.size();
    while (next != end) {
      const std::size_t seat = seat_for(next->start, next->node), behind = order().next(seat);
      const MergeEntry* const first = next;
      if (behind == Blocks::kNone)
        next = end;
      else
        for (const MergeEntry x{blocks_.first_slot(behind), 0}; next != end && ByStartThenNode{}(*next, x);) ++next;
      insert_into_block(seat, first, static_cast<std::size_t>(next - first));
    }
    pending_.clear();
  }

 private:
  static constexpr std::size_t kBlock = BlockStore::kBlock;
  static constexpr std::size_t kLarge = 1 << 16;  // rows that stand far apart
  static constexpr std::size_t kMaxSingleInserts = 8;        // come one by one
  static constexpr int kMaxMergedRows = 32;            // of two blocks become one

  const Blocks& order() const { return blocks_.prepared().order; }

  // The block where (start, node) stands, or would.
  std::size_t seat_for(double start, std::int32_t node) {
    const std::size_t seat = order().last_by(start);
    const auto later = [&](std::size_t other) { return blocks_.first_slot(other).node > node; };
    if (order().first(seat) != start || !later(seat)) return seat;
    return order().last_by(start, later);
  }

  struct RowRef {
    std::size_t seat, row;
  };

  // Where the slot that starts at `start` of the node at place k stands: in row `at`, or first of
  // all rows of this time, for gaps that say the same are behind it.
  RowRef locate(double start, std::size_t k, std::size_t at) {
    const PreparedSlots& prepared = blocks_.prepared();
    if (at < prepared.slots.size() && static_cast<std::size_t>(prepared.slots[at].place) == k &&
        prepared.slots[at].start == start && prepared.taken[at / kBlock] & BlockStore::bit(at))
      return {prepared.order.seat_of(at / kBlock), at};
    const std::int32_t node = prepared.nodes[k].id;
    const std::size_t seat = seat_for(start, node);
    return {seat, blocks_.first_row(seat) + blocks_.count_rows_before(seat, start, node)};
  }

  // Takes a row out of a block, and the block when nothing is left.
  void remove_row(std::size_t seat, std::size_t row) {
    --size_;
    if (!blocks_.remove_row(seat, row)) return;
    const auto block = static_cast<std::uint32_t>(row / kBlock);
    if (shrunk_blocks_.empty() || shrunk_blocks_.back() != block) shrunk_blocks_.push_back(block);
  }

  // Where two blocks are nearly empty, the rows of the second come to the first.
  void merge_with_next(std::size_t seat) {
    const std::size_t next = order().next(seat);
    if (next == Blocks::kNone || blocks_.count(seat) + blocks_.count(next) > kMaxMergedRows) return;
    blocks_.for_each(next, [&](std::size_t row) { pending_.push_back(blocks_.slot_with_origin(row)); });
    blocks_.remove_block(next);
  }

  // Parts of one job come by node: where all begin at one time, in their order already. The rows
  // of blocks that were joined come behind them.
  void sort_pending(std::size_t parts) {
    const std::size_t size = pending_.size();
    sorted_.resize(size), merged_.resize(size);
    for (std::size_t j = 0; j < size; ++j) sorted_[j] = {pending_[j].first, kBlock + j};
    MergeEntry *const first = sorted_.data(), *const middle = first + parts, *const last = first + size;
    const auto in_order = [=] { return std::is_sorted(first, middle, ByStartThenNode{}); };
    if (!in_order()) {  // nodes stand by falling performance, and end their parts in this order
      MergeEntry* next = merged_.data();
      if (by_place_.each(
              parts,
              [this](std::size_t j) { return static_cast<std::size_t>(pending_[j].first.place); },
              [&](std::size_t j) { *next++ = first[j]; }))
        std::copy(merged_.data(), next, first);
      if (!in_order()) merge_sort(first, parts, merged_.data(), ByStartThenNode{});
    }
    if (middle == last) return;
    if (!std::is_sorted(middle, last, ByStartThenNode{})) std::sort(middle, last, ByStartThenNode{});
    std::merge(first, middle, middle, last, merged_.data(), ByStartThenNode{});
    sorted_.swap(merged_);
  }

  // Slots that belong in the block, in their order: a few one by one, else all of it is laid out
  // anew, in as many blocks as it needs.
  void insert_into_block(std::size_t seat, const MergeEntry* slots, std::size_t count) {
    const std::size_t all = count + static_cast<std::size_t>(blocks_.count(seat));
    if (count <= kMaxSingleInserts && all <= kBlock) {
      for (const MergeEntry* next = slots; next != slots + count; ++next)
        blocks_.add(seat, pending_[next->source - kBlock]);
      return;
    }
    const std::size_t blocks = all <= kBlock ? 1 : (all + BlockStore::kFill - 1) / BlockStore::kFill,
                      rows = blocks_.first_row(seat);
    std::array<MergeEntry, kBlock> present;
    MergeEntry* end = present.data();
    blocks_.for_each(seat, [&](std::size_t row) {
      *end++ = {blocks_.prepared().slots[row], row % kBlock};
    });
    merged_.resize(all);
    std::merge(present.data(), end, slots, slots + count, merged_.data(), ByStartThenNode{});
    for (std::size_t k = 1; k < blocks; ++k) seat = blocks_.add_block_after(seat);
    // The last block first: those before it read the rows of the first one.
    for (std::size_t k = blocks; k-- > 0; seat = order().previous(seat)) {
      const std::size_t first = k * all / blocks;
      blocks_.fill(seat, rows, merged_.data() + first, (k + 1) * all / blocks - first,
                   pending_.data());
    }
  }

  BlockStore blocks_;
  std::size_t size_ = 0;
  std::vector<SlotWithOrigin> pending_;      // what waits for settle()
  std::vector<std::uint32_t> shrunk_blocks_;  // blocks that rows have left, some of them gone by now
  std::vector<MergeEntry> sorted_, merged_;  // scratch, as is what follows
  ByNumber by_place_;
};

}  // namespace slotkern

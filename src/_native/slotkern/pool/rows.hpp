// The slots of a pool that changes, in the order of time: the rows of PreparedSlots itself, in
// blocks of at most 64 with gaps at their ends, so that a change moves a few rows of one block
// and every search and criterion runs on a changed pool as it does on a fresh one.
//
// What makes a change cheap. A slot whose start moves stays in its block if its neighbours let
// it: only the rows between are moved. The screen by price serves square searches alone and is
// not kept before the first of them. What a screen says of a block may be too wide, never too
// narrow (slots/screen.hpp): rows that join widen it; when some have left or shrunk, it is folded
// anew, O(64), by the first search that comes to it in vain.
//
// A change costs O(log m + 64); every 32nd insertion splits a block, O(m / 64).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "slotkern/slots/prepared.hpp"

namespace slotkern {

class PoolRows {
 public:
  std::size_t size() const { return size_; }

  static bool before(const Slot& a, double start, std::int32_t node) {
    return (a.start < start) | ((a.start == start) & (a.node < node));
  }
  static bool before(const Slot& a, const Slot& b) { return before(a, b.start, b.node); }

  // Whether so many can leave one by one faster than all rows are laid out anew: a block that
  // goes moves all behind it.
  bool moves_cheaply(std::size_t leaving) const {
    const std::size_t blocks = size_ / kFill + 1;
    return leaving * (1 + blocks / 4096) <= 8 * blocks;
  }

  // The same rows, of another PreparedSlots that has been copied.
  void attach(PreparedSlots& prepared) { prepared_ = &prepared; }

  // All rows anew: slots in the order of (start, node), and the rows of the origin array. Without
  // memory they stay as they were.
  void lay_out(PreparedSlots& prepared, const std::vector<std::pair<Slot, std::size_t>>& slots,
               bool prices) {
    const std::size_t blocks = std::max<std::size_t>(1, (slots.size() + kFill - 1) / kFill);
    prepared.slots.reserve(blocks * kBlock);
    prepared.origins.reserve(blocks * kBlock);
    prepared.counts.reserve(blocks);
    prepared.firsts.reserve(blocks);
    prepared.order.reserve(blocks);
    prepared.by_rate.reserve(blocks * kBlock);
    if (prices) prepared.by_price.reserve(blocks * kBlock);
    prepared_ = &prepared;
    prices_ = prices;
    size_ = slots.size();
    prepared.slots.assign(blocks * kBlock, Slot{});
    prepared.origins.assign(blocks * kBlock, 0);
    prepared.counts.assign(blocks, 0);
    prepared.by_rate.reset(blocks * kBlock);
    prepared.by_price.reset(prices_ ? blocks * kBlock : 0);
    prepared.firsts.assign(blocks, -kInfinity);
    prepared.order.clear();
    for (std::size_t b = 0; b < blocks; ++b)
      prepared.order.push_back(static_cast<std::uint32_t>(b));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      put(i / kFill * kBlock + i % kFill, slots[i].first, slots[i].second);
      ++prepared.counts[i / kFill];
    }
    for (std::size_t b = 0; b < blocks; ++b) fold(b);
    spare_.clear();
  }

  bool keeps_prices() const { return prices_; }

  // From here on square searches can be made.
  void keep_prices() {
    if (prices_) return;
    PreparedSlots& prepared = *prepared_;
    prepared.by_price.reset(prepared.slots.size(), spare_.size());
    prices_ = true;
    for (const std::uint32_t block : prepared.order)
      for (std::size_t j = 0; j < prepared.counts[block]; ++j) {
        const std::size_t row = block * kBlock + j;
        set(prepared.by_price, row, prepared.slots[row]);
      }
    for (std::size_t b = 0; b < prepared.order.size(); ++b) fold(b);
  }

  void insert(const Slot& slot, std::size_t origin) {
    ++size_;
    PreparedSlots& prepared = *prepared_;
    RowAt here = spot(slot.start, slot.node);
    if (prepared.counts[prepared.order[here.block]] == kBlock) {
      split(here.block);
      if (here.offset > kBlock / 2) here = {here.block + 1, here.offset - kBlock / 2};
    }
    const std::size_t row = row_of(here);
    std::uint8_t& count = prepared.counts[prepared.order[here.block]];
    move_rows(row, row + 1, count - here.offset);
    ++count;
    join(here, slot, origin);
  }

  void erase(double start, std::int32_t node) {
    --size_;
    close_gap(spot(start, node));
  }

  // The slot of the node that starts at `start` ends there now.
  void set_end(double start, std::int32_t node, double end) {
    const RowAt here = spot(start, node);
    const std::size_t row = row_of(here);
    Slot& slot = prepared_->slots[row];
    const bool shrinks = end < slot.end;
    slot.end = end;
    prepared_->by_rate.set_end(row, PreparedSlots::room(slot) * slot.performance, end);
    if (prices_) prepared_->by_price.set_end(row, PreparedSlots::room(slot), end);
    if (shrinks)
      loosen(here.block);
    else
      widen(here.block, row);
  }

  // The slot of the node that starts at `start` becomes this one of the same node.
  void replace(double start, const Slot& slot, std::size_t origin) {
    PreparedSlots& prepared = *prepared_;
    const RowAt here = spot(start, slot.node);
    const std::size_t block = prepared.order[here.block] * kBlock;
    const std::size_t count = prepared.counts[prepared.order[here.block]];
    std::size_t to = here.offset;
    if (slot.start > start) {
      while (to + 1 < count && before(prepared.slots[block + to + 1], slot)) ++to;
      if (to + 1 == count && here.block + 1 < prepared.order.size()) to = count;
      if (to < count) move_rows(block + here.offset + 1, block + here.offset, to - here.offset);
    } else {
      while (to > 0 && before(slot, prepared.slots[block + to - 1])) --to;
      if (to == 0 && here.block > 0) to = count;
      if (to < count) move_rows(block + to, block + to + 1, here.offset - to);
    }
    if (to == count) {  // perhaps into another block
      close_gap(here);
      --size_;
      return insert(slot, origin);
    }
    join({here.block, to}, slot, origin);
    loosen(here.block);
  }

 private:
  static constexpr std::size_t kBlock = 64, kFill = 48;

  struct RowAt {
    std::size_t block, offset;  // position of the block, place in it
  };

  // Where (start, node) stands, or would.
  RowAt spot(double start, std::int32_t node) const {
    const PreparedSlots& prepared = *prepared_;
    std::size_t block = prepared.block_at(start);
    while (block > 0 && prepared.firsts[block] == start &&
           prepared.slots[prepared.order[block] * kBlock].node > node)
      --block;
    const Slot* first = prepared.slots.data() + prepared.order[block] * kBlock;
    const std::size_t count = prepared.counts[prepared.order[block]];
    std::size_t offset = 0;  // counted: no step waits for the one before, and nothing is guessed
    for (std::size_t k = 7; k < count; k += 8) offset += before(first[k], start, node) ? 8 : 0;
    const std::size_t from = offset, most = std::min(from + 7, count);
    for (std::size_t k = from; k < most; ++k) offset += before(first[k], start, node);
    return {block, offset};
  }

  std::size_t row_of(const RowAt& spot) const {
    return prepared_->order[spot.block] * kBlock + spot.offset;
  }

  static void set(Screen& by_price, std::size_t row, const Slot& slot) {
    by_price.set(row, slot.price, PreparedSlots::room(slot), slot.performance, slot.end);
  }

  void set_screens(std::size_t row, const Slot& slot) {
    prepared_->by_rate.set(row, slot.rate, PreparedSlots::room(slot) * slot.performance,
                           slot.performance, slot.end);
    if (prices_) set(prepared_->by_price, row, slot);
  }

  void put(std::size_t row, const Slot& slot, std::size_t origin) {
    prepared_->slots[row] = slot;
    prepared_->origins[row] = origin;
    set_screens(row, slot);
  }

  // A row of the block has been made free for the slot.
  void join(const RowAt& here, const Slot& slot, std::size_t origin) {
    const std::size_t row = row_of(here);
    put(row, slot, origin);
    mark_first(here.block);
    widen(here.block, row);
  }

  void fold(std::size_t block) {
    const std::size_t rows = prepared_->order[block] * kBlock;
    mark_first(block);
    prepared_->by_rate.fold(block, rows);
    if (prices_) prepared_->by_price.fold(block, rows);
  }

  void widen(std::size_t block, std::size_t row) {
    prepared_->by_rate.widen(block, row);
    if (prices_) prepared_->by_price.widen(block, row);
  }

  // A row has left the block or holds less than before.
  void loosen(std::size_t block) {
    const std::size_t rows = prepared_->order[block] * kBlock;
    prepared_->by_rate.loosen(rows);
    if (prices_) prepared_->by_price.loosen(rows);
  }

  void mark_first(std::size_t block) {
    const std::uint32_t rows = prepared_->order[block];
    prepared_->firsts[block] =
        prepared_->counts[rows] ? prepared_->slots[rows * kBlock].start : -kInfinity;
  }

  void move_rows(std::size_t from, std::size_t to, std::size_t count) {
    if (count == 0) return;
    PreparedSlots& prepared = *prepared_;
    static_assert(std::is_trivially_copyable_v<Slot>);
    std::memmove(&prepared.slots[to], &prepared.slots[from], count * sizeof(Slot));
    std::memmove(&prepared.origins[to], &prepared.origins[from], count * sizeof(std::size_t));
    prepared.by_rate.move(from, to, count);
    if (prices_) prepared.by_price.move(from, to, count);
  }

  // Takes a row out of a block, and the block when nothing is left or its neighbour can take
  // the rest.
  void close_gap(const RowAt& here) {
    PreparedSlots& prepared = *prepared_;
    const std::size_t block = here.block, rows = prepared.order[block] * kBlock;
    std::uint8_t& count = prepared.counts[prepared.order[block]];
    --count;
    move_rows(rows + here.offset + 1, rows + here.offset, count - here.offset);
    clear(rows + count, 1);
    if (block + 1 < prepared.order.size() &&
        count + prepared.counts[prepared.order[block + 1]] <= kFill) {
      const std::size_t next = prepared.order[block + 1];
      for (std::size_t j = 0; j < prepared.counts[next]; ++j)
        put(rows + count + j, prepared.slots[next * kBlock + j],
            prepared.origins[next * kBlock + j]);
      count = static_cast<std::uint8_t>(count + prepared.counts[next]);
      clear(next * kBlock, prepared.counts[next]);
      prepared.counts[next] = 0;
      drop_block(block + 1);
      fold(block);
    } else if (count == 0 && prepared.order.size() > 1) {
      drop_block(block);
    } else {
      mark_first(block);
      loosen(block);
    }
  }

  void clear(std::size_t row, std::size_t count) {
    for (std::size_t j = row; j < row + count; ++j) {
      prepared_->by_rate.clear(j);
      if (prices_) prepared_->by_price.clear(j);
    }
  }

  void split(std::size_t block) {
    PreparedSlots& prepared = *prepared_;
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(prepared.counts.size()));
      prepared.slots.resize(prepared.slots.size() + kBlock);
      prepared.origins.resize(prepared.origins.size() + kBlock);
      prepared.counts.push_back(0);
      prepared.by_rate.add_rows();
      if (prices_) prepared.by_price.add_rows();
    }
    const std::uint32_t fresh = spare_.back(), old = prepared.order[block];
    spare_.pop_back();
    const auto next = static_cast<std::ptrdiff_t>(block) + 1;
    prepared.order.insert(prepared.order.begin() + next, fresh);
    prepared.firsts.insert(prepared.firsts.begin() + next, 0);
    prepared.by_rate.insert_block(block + 1);
    if (prices_) prepared.by_price.insert_block(block + 1);
    constexpr std::size_t half = kBlock / 2;
    for (std::size_t j = 0; j < half; ++j)
      put(fresh * kBlock + j, prepared.slots[old * kBlock + half + j],
          prepared.origins[old * kBlock + half + j]);
    clear(old * kBlock + half, half);
    prepared.counts[old] = prepared.counts[fresh] = half;
    fold(block);
    fold(block + 1);
  }

  void drop_block(std::size_t block) {
    PreparedSlots& prepared = *prepared_;
    spare_.push_back(prepared.order[block]);
    prepared.order.erase(prepared.order.begin() + static_cast<std::ptrdiff_t>(block));
    prepared.firsts.erase(prepared.firsts.begin() + static_cast<std::ptrdiff_t>(block));
    prepared.by_rate.erase_block(block);
    if (prices_) prepared.by_price.erase_block(block);
  }

  PreparedSlots* prepared_ = nullptr;
  std::size_t size_ = 0;
  bool prices_ = false;              // whether the screen by price is kept
  std::vector<std::uint32_t> spare_;  // blocks of rows that are empty
};

}  // namespace slotkern

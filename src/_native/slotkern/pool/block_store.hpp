// The blocks of 64 rows of a pool that changes, with gaps among them, and what screens say of both
// (pool/slot_tree.hpp).
//
// A slot that leaves becomes a gap where it stood. One that comes takes the nearest gap: only the
// rows between are moved; where many come, the block is laid out anew, O(64), gaps evenly among
// its slots. What a screen says of a block may be too wide, never too narrow (slots/screen.hpp):
// rows that join widen it; when some have left or shrunk, it is folded anew, O(64), by the first
// search that comes to it in vain.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "slotkern/slots/prepared.hpp"

namespace slotkern {

using SlotWithOrigin = std::pair<Slot, std::size_t>;  // and its row of the origin array

// A slot in the order of time, which is in this row of its block or, from 64 on, coming.
struct MergeEntry {
  double start;
  std::int32_t node;
  std::uint32_t source;

  MergeEntry() = default;
  MergeEntry(const Slot& slot, std::size_t source_row)
      : start(slot.start), node(slot.node), source(static_cast<std::uint32_t>(source_row)) {}
};
struct ByStartThenNode {
  bool operator()(const MergeEntry& a, const MergeEntry& b) const {
    return (a.start < b.start) | ((a.start == b.start) & (a.node < b.node));
  }
};

// Blocks are named by their seats (slots/blocks.hpp).
class BlockStore {
 public:
  static constexpr std::size_t kBlock = 64, kFill = 48;

  static bool before(const Slot& a, double start, std::int32_t node) {
    return (a.start < start) | ((a.start == start) & (a.node < node));
  }
  static std::uint64_t bit(std::size_t row) { return std::uint64_t{1} << row % kBlock; }

  // The same blocks, of another PreparedSlots that has been copied.
  void attach(PreparedSlots& prepared) { prepared_ = &prepared; }

  // All rows anew: slots in the order of (start, node), and the rows of the origin array. Without
  // memory they stay as they were.
  void build(PreparedSlots& prepared, const std::vector<SlotWithOrigin>& slots) {
    const std::size_t blocks = std::max<std::size_t>(1, (slots.size() + kFill - 1) / kFill);
    // More can come without all being moved. Until they do, they cost no more than addresses.
    const std::size_t few = std::min<std::size_t>(2 * blocks, 48),
                      most = blocks + std::max(blocks / 4, few);
    Blocks order;
    order.reserve(most);
    order.lay_out(blocks);
    prepared.slots.reserve(most * kBlock);
    prepared.origins.reserve(most * kBlock);
    prepared.taken.reserve(most);
    prepared.least_nodes.reserve(order.seats() * 5 / 4);
    prepared_ = &prepared;
    each_screen([&](Screen& screen) { screen.reserve(most * kBlock, order.seats() * 5 / 4); });
    prepared.slots.resize(blocks * kBlock);
    prepared.origins.resize(blocks * kBlock);
    prepared.taken.resize(blocks);
    prepared.least_nodes.assign(order.seats(), PreparedSlots::kNoNode);
    const double origin = slots.empty() ? 0 : slots.front().first.start;
    each_screen([&](Screen& screen) {
      screen.reset(blocks * kBlock, origin, blocks, order.seats());
    });
    prepared.order = std::move(order);
    std::size_t b = 0;
    prepared.order.each([&](std::size_t seat) {
      const std::size_t first = b * slots.size() / blocks;
      std::array<MergeEntry, kBlock> rows;
      for (std::size_t j = 0; j < kBlock; ++j) rows[j].source = static_cast<std::uint32_t>(kBlock + j);
      fill(seat, 0, rows.data(), ++b * slots.size() / blocks - first, slots.data() + first);
    });
    free_blocks_.clear();
  }

  PreparedSlots& prepared() const { return *prepared_; }
  std::uint64_t& taken(std::size_t seat) { return prepared_->taken[prepared_->order.block(seat)]; }
  std::size_t first_row(std::size_t seat) const { return prepared_->order.block(seat) * kBlock; }
  const Slot& first_slot(std::size_t seat) {
    const auto row = static_cast<std::size_t>(std::countr_zero(taken(seat)));
    return prepared_->slots[first_row(seat) + row];
  }

  // How many rows of the block come before (start, node), gaps too.
  std::size_t count_rows_before(std::size_t seat, double start, std::int32_t node) const {
    return prepared_->count_rows(first_row(seat),
                                 [=](const Slot& slot) { return before(slot, start, node); });
  }

  SlotWithOrigin slot_with_origin(std::size_t row) const { return {prepared_->slots[row], prepared_->origins[row]}; }
  int count(std::size_t seat) { return std::popcount(taken(seat)); }

  // Calls visit(row) for all slots of the block, in their order.
  template <class Visit>
  void for_each(std::size_t seat, Visit visit) {
    for (std::uint64_t rows = taken(seat); rows; rows &= rows - 1)
      visit(first_row(seat) + static_cast<std::size_t>(std::countr_zero(rows)));
  }

  // A slot comes into a block that is not full.
  void add(std::size_t seat, const SlotWithOrigin& fresh) {
    const auto& [slot, origin] = fresh;
    const std::size_t row = claim_row(seat, slot);
    prepared_->slots[row] = slot;
    prepared_->origins[row] = origin;
    const double room = PreparedSlots::room(slot);
    prepared_->by_rate.set(row, slot.rate, room * slot.performance, slot.performance, slot.end);
    if (Screen* prices = prepared_->prices())
      prices->set(row, slot.price, room, slot.performance, slot.end);
    if (is_first(seat, row)) update_first(seat);
    float& least = prepared_->least_nodes[seat];
    least = std::min(least, round_down(slot.node));
    each_screen([=](Screen& screen) { screen.widen(seat, row); });
  }

  // The slot of a row leaves, and the block when nothing is left: whether it is still there.
  bool remove_row(std::size_t seat, std::size_t row) {
    const bool first = is_first(seat, row);
    taken(seat) &= ~bit(row);
    each_screen([=](Screen& screen) { screen.clear(row); });
    const bool stays = taken(seat) != 0 || is_only_block(seat);
    if (stays) {
      if (first) update_first(seat);
      each_screen([=](Screen& screen) { screen.loosen(seat); });
    } else {
      remove_block(seat);
    }
    return stays;
  }

  // The slot of a row ends at `end` now.
  void set_end(std::size_t seat, std::size_t row, double end) {
    Slot& slot = prepared_->slots[row];
    const bool shrinks = end < slot.end;
    slot.end = end;
    const double room = PreparedSlots::room(slot);
    prepared_->by_rate.set_end(row, room * slot.performance, end);
    if (Screen* prices = prepared_->prices()) prices->set_end(row, room, end);
    each_screen([=](Screen& screen) { shrinks ? screen.loosen(seat) : screen.widen(seat, row); });
  }

  // These become all that the block holds, with gaps evenly among them: of the rows from `stand`
  // on, which may be its own, and of what is coming.
  void fill(std::size_t seat, std::size_t present_first, const MergeEntry* entries, std::size_t count,
            const SlotWithOrigin* pending) {
    const std::size_t rows = first_row(seat);
    std::array<Slot, kBlock> fresh;
    std::array<std::size_t, kBlock> origins;
    const std::uint64_t mask = kEvenlySpread[count];
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    if (count == 0) fresh.fill({}), origins.fill(0);
    for (std::uint64_t rest = mask; rest; rest &= rest - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(rest));
      const std::size_t at = entries++->source;
      const bool is_present = at < kBlock;
      fresh[row] = *(is_present ? &prepared_->slots[present_first + at] : &pending[at - kBlock].first);
      origins[row] = *(is_present ? &prepared_->origins[present_first + at] : &pending[at - kBlock].second);
      least = std::min(least, fresh[row].node);
    }
    for (std::uint64_t gaps = ~mask; count && gaps; gaps &= gaps - 1) {  // they say what is before
      const auto row = static_cast<std::size_t>(std::countr_zero(gaps));
      fresh[row] = fresh[row - 1], origins[row] = origins[row - 1];
    }
    std::memcpy(&prepared_->slots[rows], fresh.data(), sizeof fresh);
    std::memcpy(&prepared_->origins[rows], origins.data(), sizeof origins);
    taken(seat) = mask;
    update_first(seat);
    prepared_->least_nodes[seat] = count == 0 ? PreparedSlots::kNoNode : round_down(least);
    screen(prepared_->by_rate, seat, [](const Slot& s) { return s.rate; },
           [](const Slot& s) { return PreparedSlots::room(s) * s.performance; });
    if (Screen* prices = prepared_->prices())
      screen(*prices, seat, [](const Slot& s) { return s.price; }, PreparedSlots::room);
  }

  // An empty block gets a seat behind this one: which it is. Others may have changed.
  std::size_t add_block_after(std::size_t seat) {
    PreparedSlots& prepared = *prepared_;
    if (free_blocks_.empty()) {
      free_blocks_.push_back(static_cast<std::uint32_t>(prepared.taken.size()));
      prepared.slots.resize(prepared.slots.size() + kBlock);
      prepared.origins.resize(prepared.origins.size() + kBlock);
      prepared.taken.push_back(0);
      each_screen([](Screen& screen) { screen.add_rows(); });
    }
    const std::size_t fresh = prepared.order.add(seat, free_blocks_.back(), BoundsRelocator{this});
    free_blocks_.pop_back();
    count_blocks();
    return fresh;
  }

  // The block and all its slots leave.
  void remove_block(std::size_t seat) {
    for_each(seat, [&](std::size_t row) {
      each_screen([=](Screen& screen) { screen.clear(row); });
    });
    taken(seat) = 0;
    free_blocks_.push_back(static_cast<std::uint32_t>(prepared_->order.block(seat)));
    prepared_->order.take(seat, BoundsRelocator{this});
    count_blocks();
  }

 private:
  template <class Change>
  void each_screen(Change change) {
    change(prepared_->by_rate);
    if (Screen* prices = prepared_->prices()) change(*prices);
  }

  bool is_only_block(std::size_t seat) const {
    return prepared_->order.next(seat) == Blocks::kNone &&
           prepared_->order.previous(seat) == Blocks::kNone;
  }

  // No slot of the block stands before this row.
  bool is_first(std::size_t seat, std::size_t row) {
    return (taken(seat) & (bit(row) - 1)) == 0;
  }
  void update_first(std::size_t seat) {
    prepared_->order.set_first(seat, taken(seat) ? first_slot(seat).start : -kInfinity);
  }

  // A row for the slot, where the order wants it, in a block that is not full: the rows between
  // there and the nearest gap move by one.
  std::size_t claim_row(std::size_t seat, const Slot& slot) {
    const std::size_t rows = first_row(seat), at = count_rows_before(seat, slot.start, slot.node);
    const std::uint64_t gaps = ~taken(seat);
    const auto right = static_cast<std::size_t>(at < kBlock ? std::countr_zero(gaps >> at) : 64);
    const auto left =
        static_cast<std::size_t>(at > 0 ? std::countl_zero(gaps << (kBlock - at)) : 64);
    if (right <= left) {
      move_rows(rows + at, rows + at + 1, right);
      taken(seat) |= bit(at + right);
      return rows + at;
    }
    move_rows(rows + at - left, rows + at - left - 1, left);
    taken(seat) |= bit(at - left - 1);
    return rows + at - 1;
  }

  // [count]: bit j: so many slots, evenly among gaps, stand in row j too.
  static constexpr std::array<std::uint64_t, kBlock + 1> kEvenlySpread = [] {
    std::array<std::uint64_t, kBlock + 1> rows{};
    for (std::size_t count = 0; count <= kBlock; ++count)
      for (std::size_t j = 0; j < kBlock; ++j)
        rows[count] |= std::uint64_t{j * count % kBlock < count} << j;
    return rows;
  }();

  void move_rows(std::size_t from, std::size_t to, std::size_t count) {
    const auto move = [=](auto& items) {
      std::memmove(items.data() + to, items.data() + from, count * sizeof items[0]);
    };
    move(prepared_->slots), move(prepared_->origins);
    each_screen([=](Screen& screen) { screen.move_rows(from, to, count); });
  }

  template <class Key, class Room>
  void screen(Screen& of, std::size_t seat, Key key, Room room) {
    const Slot* const slots = &prepared_->slots[first_row(seat)];
    ScreenRows screened;
    screened.end_at(0);
    for (std::uint64_t rows = taken(seat); rows; rows &= rows - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(rows));
      const Slot& s = slots[row];
      screened.put(row, key(s), room(s), s.performance, s.end);
    }
    of.put(seat, first_row(seat), screened);
  }

  void count_blocks() {
    each_screen([blocks = prepared_->last_position() / kBlock + 1](Screen& screen) {
      screen.count_blocks(blocks);
    });
  }

  // What Blocks tells of seats.
  struct BoundsRelocator {
    BlockStore* rows;
    void resize(std::size_t seats) const {
      rows->prepared_->least_nodes.resize(seats, PreparedSlots::kNoNode);
      rows->each_screen([=](Screen& screen) { screen.resize(seats); });
    }
    void move(std::size_t from, std::size_t to, std::size_t count) const {
      float* const least = rows->prepared_->least_nodes.data();
      std::memmove(least + to, least + from, count * sizeof(float));
      rows->each_screen([=](Screen& screen) { screen.move(from, to, count); });
    }
    void clear(std::size_t seat) const {
      rows->prepared_->least_nodes[seat] = PreparedSlots::kNoNode;
      rows->each_screen([=](Screen& screen) { screen.clear_seat(seat); });
    }
  };

  PreparedSlots* prepared_ = nullptr;
  std::vector<std::uint32_t> free_blocks_;  // blocks of rows that are empty
};

}  // namespace slotkern

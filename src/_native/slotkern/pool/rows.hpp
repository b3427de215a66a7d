// The slots of a pool that changes, in the order of time: the rows of PreparedSlots itself, in
// blocks of 64 with gaps among them, so that every search and criterion runs on a changed pool as
// it does on a fresh one.
//
// What makes a change cheap. A slot that leaves becomes a gap where it stood, and one that comes
// takes the nearest gap: only the rows between are moved, a few, because blocks are laid out with
// gaps everywhere. The screen by price serves square searches alone and is not there before the
// first of them. What a screen says of a block may be too wide, never too narrow
// (slots/screen.hpp): rows that join widen it; when some have left or shrunk, it is folded anew,
// O(64), by the first search that comes to it in vain.
//
// A change costs O(log m + 64). A block splits after 16 insertions at the soonest, O(64); see
// slots/blocks.hpp.
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

using RowSlot = std::pair<Slot, std::size_t>;  // and its row of the origin array

class PoolRows {
 public:
  std::size_t size() const { return size_; }

  static bool before(const Slot& a, double start, std::int32_t node) {
    return (a.start < start) | ((a.start == start) & (a.node < node));
  }
  static bool before(const Slot& a, const Slot& b) { return before(a, b.start, b.node); }

  // Whether so many can leave one by one faster than all rows are laid out anew.
  bool moves_cheaply(std::size_t leaving) const { return leaving <= 8 * (size_ / kFill + 1); }

  // The same rows, of another PreparedSlots that has been copied.
  void attach(PreparedSlots& prepared) { prepared_ = &prepared; }

  // All rows anew: slots in the order of (start, node), and the rows of the origin array. Without
  // memory they stay as they were.
  void lay_out(PreparedSlots& prepared, const std::vector<RowSlot>& slots) {
    const std::size_t blocks = std::max<std::size_t>(1, (slots.size() + kFill - 1) / kFill);
    // More can come without all being moved. Until they do, they cost no more than addresses.
    const std::size_t most = blocks + blocks / 4;
    Blocks order;
    order.reserve(most);
    order.lay_out(blocks);
    prepared.slots.reserve(most * kBlock);
    prepared.origins.reserve(most * kBlock);
    prepared.taken.reserve(most);
    prepared.least_nodes.reserve(order.seats() * 5 / 4);
    prepared_ = &prepared;
    each_screen([&](Screen& screen) { screen.reserve(most * kBlock, order.seats() * 5 / 4); });
    size_ = slots.size();
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
      fill(seat, slots.data() + first, ++b * slots.size() / blocks - first);
    });
    spare_.clear();
  }

  // A slot that stands in row `at` will start at `to`. Its row, and where it will stand, are on
  // their way from memory while others are looked up: only where rows are many.
  void expect(std::size_t at, double to) const {
    if (size_ < kFar) return;
    const PreparedSlots& prepared = *prepared_;
    const std::size_t rows = rows_of(prepared.order.last_by(to));
    for (std::size_t row = rows + 7; row < rows + kBlock; row += 8) fetch(&prepared.slots[row]);
    fetch(&prepared.taken[rows / kBlock]);
    prepared.by_rate.expect(rows);
    if (at < prepared.slots.size()) {
      fetch(&prepared.slots[at]);
      fetch(&prepared.origins[at]);
      fetch(&prepared.taken[at / kBlock]);
      prepared.by_rate.expect(at);
    }
  }

  void insert(const Slot& slot, std::size_t origin) {
    ++size_;
    std::size_t seat = seat_for(slot.start, slot.node);
    if (taken(seat) == kFull) {
      const std::size_t second = split(seat);
      seat = before(slot, first_of(second)) ? prepared_->order.previous(second) : second;
    }
    join(seat, free_row(seat, slot), slot, origin);
  }

  // Of the slot of the node that starts at `start`, which stands in row `at` perhaps: it leaves.
  void erase(double start, std::int32_t node, std::size_t at) {
    --size_;
    const auto [seat, row] = find(start, node, at);
    vacate(seat, row);
  }

  // It ends at `end` now.
  void set_end(double start, std::int32_t node, double end, std::size_t at) {
    const auto [seat, row] = find(start, node, at);
    Slot& slot = prepared_->slots[row];
    const bool shrinks = end < slot.end;
    slot.end = end;
    const double room = PreparedSlots::room(slot);
    prepared_->by_rate.set_end(row, room * slot.performance, end);
    if (Screen* prices = prepared_->prices()) prices->set_end(row, room, end);
    shrinks ? loosen(seat) : widen(seat, row);
  }

  // It starts at `to` now.
  void set_start(double start, std::int32_t node, double to, std::size_t at) {
    const auto [seat, row] = find(start, node, at);
    Slot slot = prepared_->slots[row];
    const std::size_t origin = prepared_->origins[row];
    slot.start = to;
    if (!stays(seat, to)) {
      vacate(seat, row);
      --size_;
      return insert(slot, origin);
    }
    Screen* const prices = prepared_->prices();
    const Screen::Row rate = prepared_->by_rate.row(row), price = prices ? prices->row(row) : rate;
    taken(seat) &= ~bit(row);
    const std::size_t fresh = free_row(seat, slot);
    if (!(taken(seat) & bit(row))) clear(row);
    prepared_->slots[fresh] = slot;
    prepared_->origins[fresh] = origin;
    const double room = PreparedSlots::room(slot);
    prepared_->by_rate.put(fresh, rate);
    prepared_->by_rate.set_room(fresh, room * slot.performance);
    if (prices) {
      prices->put(fresh, price);
      prices->set_room(fresh, room);
    }
    mark_first(seat);
    start < to ? loosen(seat) : widen(seat, fresh);
  }

 private:
  static constexpr std::size_t kBlock = 64, kFill = 48, kFar = 1 << 16;
  static constexpr std::uint64_t kFull = ~std::uint64_t{0};

  static std::uint64_t bit(std::size_t row) { return std::uint64_t{1} << row % kBlock; }

  std::uint64_t& taken(std::size_t seat) { return prepared_->taken[prepared_->order.block(seat)]; }
  std::size_t rows_of(std::size_t seat) const { return prepared_->order.block(seat) * kBlock; }
  const Slot& first_of(std::size_t seat) {
    const auto row = static_cast<std::size_t>(std::countr_zero(taken(seat)));
    return prepared_->slots[rows_of(seat) + row];
  }

  template <class Change>
  void each_screen(Change change) {
    change(prepared_->by_rate);
    if (Screen* prices = prepared_->prices()) change(*prices);
  }

  // The block where (start, node) stands, or would.
  std::size_t seat_for(double start, std::int32_t node) {
    const Blocks& order = prepared_->order;
    std::size_t seat = order.last_by(start);
    while (order.first(seat) == start && first_of(seat).node > node) {
      const std::size_t before = order.previous(seat);
      if (before == Blocks::kNone) break;
      seat = before;
    }
    return seat;
  }

  // Whether a slot of the block stands there still when it starts at `start`.
  bool stays(std::size_t seat, double start) const {
    const Blocks& order = prepared_->order;
    const std::size_t next = order.next(seat);
    return (order.first(seat) < start || seat == order.first_seat()) &&
           (next == Blocks::kNone || start < order.first(next));
  }

  // How many rows of the block come before (start, node), gaps too.
  std::size_t count_before(std::size_t seat, double start, std::int32_t node) const {
    return prepared_->count_rows(rows_of(seat),
                                 [=](const Slot& slot) { return before(slot, start, node); });
  }

  struct RowAt {
    std::size_t seat, row;
  };

  // Where the slot of the node that starts at `start` stands: in row `at`, or first of all rows
  // of this time, for gaps that say the same are behind it.
  RowAt find(double start, std::int32_t node, std::size_t at) {
    PreparedSlots& prepared = *prepared_;
    if (at < prepared.slots.size() && prepared.slots[at].node == node &&
        prepared.slots[at].start == start && prepared.taken[at / kBlock] & bit(at))
      return {prepared.order.seat_of(at / kBlock), at};
    const std::size_t seat = seat_for(start, node);
    return {seat, rows_of(seat) + count_before(seat, start, node)};
  }

  // A row for the slot, where the order wants it, in a block that is not full: the rows between
  // there and the nearest gap move by one.
  std::size_t free_row(std::size_t seat, const Slot& slot) {
    const std::size_t rows = rows_of(seat), at = count_before(seat, slot.start, slot.node);
    const std::uint64_t gaps = ~taken(seat);
    const int right = at < kBlock ? std::countr_zero(gaps >> at) : 64,
              left = at > 0 ? std::countl_zero(gaps << (kBlock - at)) : 64;
    if (right <= left) {
      const std::size_t gap = rows + at + static_cast<std::size_t>(right);
      for (std::size_t row = gap; row > rows + at; --row) copy_row(row - 1, row);
      taken(seat) |= bit(gap);
      return rows + at;
    }
    const std::size_t gap = rows + at - 1 - static_cast<std::size_t>(left);
    for (std::size_t row = gap; row + 1 < rows + at; ++row) copy_row(row + 1, row);
    taken(seat) |= bit(gap);
    return rows + at - 1;
  }

  void copy_row(std::size_t from, std::size_t to) {
    PreparedSlots& prepared = *prepared_;
    prepared.slots[to] = prepared.slots[from];
    prepared.origins[to] = prepared.origins[from];
    each_screen([=](Screen& screen) { screen.put(to, screen.row(from)); });
  }

  void put(std::size_t row, const Slot& slot, std::size_t origin) {
    prepared_->slots[row] = slot;
    prepared_->origins[row] = origin;
    const double room = PreparedSlots::room(slot);
    prepared_->by_rate.set(row, slot.rate, room * slot.performance, slot.performance, slot.end);
    if (Screen* prices = prepared_->prices())
      prices->set(row, slot.price, room, slot.performance, slot.end);
  }

  // A row of the block has been made free for the slot.
  void join(std::size_t seat, std::size_t row, const Slot& slot, std::size_t origin) {
    put(row, slot, origin);
    mark_first(seat);
    float& least = prepared_->least_nodes[seat];
    least = std::min(least, round_down(slot.node));
    widen(seat, row);
  }

  void clear(std::size_t row) {
    each_screen([=](Screen& screen) { screen.clear(row); });
  }

  void fold(std::size_t seat) {
    each_screen([=, rows = rows_of(seat)](Screen& screen) { screen.fold(seat, rows); });
  }

  void widen(std::size_t seat, std::size_t row) {
    each_screen([=](Screen& screen) { screen.widen(seat, row); });
  }

  // A row has left the block or holds less than before.
  void loosen(std::size_t seat) {
    each_screen([=](Screen& screen) { screen.loosen(seat); });
  }

  void mark_first(std::size_t seat) {
    prepared_->order.set_first(seat, taken(seat) ? first_of(seat).start : -kInfinity);
  }

  // The slots become all that the block holds, with gaps evenly among them.
  void fill(std::size_t seat, const RowSlot* slots, std::size_t count) {
    const std::size_t rows = rows_of(seat);
    std::uint64_t mask = 0;
    std::int32_t least = std::numeric_limits<std::int32_t>::max();
    for (std::size_t row = rows, j = 0; row < rows + kBlock; ++row) {
      if (j < count && (row - rows) * count >= j * kBlock) {
        put(row, slots[j].first, slots[j].second);
        least = std::min(least, slots[j].first.node);
        mask |= bit(row);
        ++j;
      } else {
        prepared_->slots[row] = j ? slots[j - 1].first : Slot{};
        clear(row);
      }
    }
    taken(seat) = mask;
    mark_first(seat);
    prepared_->least_nodes[seat] = count == 0 ? PreparedSlots::kNoNode : round_down(least);
    fold(seat);
  }

  // Takes a row out of a block, and the block when nothing is left or it can take the rest of its
  // neighbour.
  void vacate(std::size_t seat, std::size_t row) {
    taken(seat) &= ~bit(row);
    clear(row);
    const std::size_t next = prepared_->order.next(seat);
    const int count = std::popcount(taken(seat));
    if (next != Blocks::kNone &&
        count + std::popcount(taken(next)) <= static_cast<int>(kFill)) {
      Gathered slots;
      std::size_t all = gather(seat, slots, 0);
      all = gather(next, slots, all);
      empty(next);
      drop(next);
      fill(seat, slots.data(), all);
    } else if (count == 0 && !only(seat)) {
      drop(seat);
    } else {
      mark_first(seat);
      loosen(seat);
    }
  }
  bool only(std::size_t seat) const {
    return prepared_->order.next(seat) == Blocks::kNone &&
           prepared_->order.previous(seat) == Blocks::kNone;
  }

  using Gathered = std::array<RowSlot, kBlock>;
  // The slots of the block behind those that are there; returns how many there are then.
  std::size_t gather(std::size_t seat, Gathered& slots, std::size_t count) {
    for (std::uint64_t rows = taken(seat); rows; rows &= rows - 1) {
      const std::size_t row = rows_of(seat) + static_cast<std::size_t>(std::countr_zero(rows));
      slots[count++] = {prepared_->slots[row], prepared_->origins[row]};
    }
    return count;
  }

  void empty(std::size_t seat) {
    for (std::uint64_t rows = std::exchange(taken(seat), 0); rows; rows &= rows - 1)
      clear(rows_of(seat) + static_cast<std::size_t>(std::countr_zero(rows)));
  }

  // Half of a full block becomes one behind it, whose seat this is: others may have changed.
  std::size_t split(std::size_t seat) {
    PreparedSlots& prepared = *prepared_;
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(prepared.taken.size()));
      prepared.slots.resize(prepared.slots.size() + kBlock);
      prepared.origins.resize(prepared.origins.size() + kBlock);
      prepared.taken.push_back(0);
      each_screen([](Screen& screen) { screen.add_rows(); });
    }
    Gathered slots;
    gather(seat, slots, 0);
    const std::size_t second = prepared.order.add(seat, spare_.back(), SeatsOfScreens{this});
    spare_.pop_back();
    count_blocks();
    constexpr std::size_t half = kBlock / 2;
    fill(prepared.order.previous(second), slots.data(), half);
    fill(second, slots.data() + half, half);
    return second;
  }

  void drop(std::size_t seat) {
    spare_.push_back(static_cast<std::uint32_t>(prepared_->order.block(seat)));
    prepared_->order.take(seat, SeatsOfScreens{this});
    count_blocks();
  }
  void count_blocks() {
    each_screen([blocks = prepared_->last_position() / kBlock + 1](Screen& screen) {
      screen.count_blocks(blocks);
    });
  }

  // What Blocks tells of seats.
  struct SeatsOfScreens {
    PoolRows* rows;
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
  std::size_t size_ = 0;
  std::vector<std::uint32_t> spare_;  // blocks of rows that are empty
};

}  // namespace slotkern

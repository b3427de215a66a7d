// The row storage of a changing pool (pool/slot_tree.hpp): blocks of 64 rows with gaps, and the
// zone maps and minima that searches use to skip blocks.
//
//   directory (PreparedSlots::order)       block b of 64 rows
//
//   rank in time   leaf     entry          row      64b     64b+1   64b+2   ...   64b+63
//   0          ->  leaf 4 : 256..319       slots    S(t=3)  S(t=5)  copy          S(t=9)
//   1          ->  leaf 0 :   0..63        origins  17      4       4             31
//   2          ->  leaf 7 : 448..511       occupied bit j of occupied[b] is set if row 64b+j holds
//                                                   a slot; otherwise it is a gap (here row 64b+2)
//   entry e = 64 * leaf + j  ->  block(e) = b   (any order: blocks never move, entries do)
//   position of row r in the order of time = 64 * (64 * rank + j) + r % 64
//   zone maps: row bounds at [r], block bounds at [e]; min_node_ids at [e]
//
// A slot that leaves becomes a gap. One that arrives takes the nearest gap and moves only the rows
// between. After many arrivals the block is rewritten, O(64), with its gaps spread evenly. A gap
// holds a copy of the slot before it, or the slot that left it: the 64 rows are always sorted, and
// a slot comes before the gaps that hold its copies.
//
// Bounds of a block may be too wide, never too narrow, so no search misses a slot. An arriving row
// expands them; after a removal they are stale, and the first search with a false positive
// recomputes them, O(64) (slots/zone_map.hpp).
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

using SlotWithOrigin = std::pair<Slot, std::size_t>;  // slot, row of the origin array

// Key of a slot while blocks are merged. `source`: its row in the block if below 64, else 64 + its
// index among the pending slots.
struct MergeItem {
  double start;
  std::int32_t node;
  std::uint32_t source;

  MergeItem() = default;
  MergeItem(const Slot& slot, std::size_t source_row)
      : start(slot.start), node(slot.node), source(static_cast<std::uint32_t>(source_row)) {}
};
struct ByStartThenNode {
  bool operator()(const MergeItem& a, const MergeItem& b) const {
    return (a.start < b.start) | ((a.start == b.start) & (a.node < b.node));
  }
};

// Blocks are identified by their directory entries (slots/block_directory.hpp).
class BlockStore {
 public:
  static constexpr std::size_t kBlock = 64, kFill = 48;

  static bool before(const Slot& a, double start, std::int32_t node) {
    return (a.start < start) | ((a.start == start) & (a.node < node));
  }
  static std::uint64_t bit(std::size_t row) { return std::uint64_t{1} << row % kBlock; }

  // Continues on `prepared`, a copy of the PreparedSlots used so far.
  void attach(PreparedSlots& prepared) { prepared_ = &prepared; }

  // Builds all rows from slots sorted by (start, node). Strong exception guarantee.
  void build(PreparedSlots& prepared, const std::vector<SlotWithOrigin>& slots) {
    const std::size_t blocks = std::max<std::size_t>(1, (slots.size() + kFill - 1) / kFill);
    // Reserve address space for growth, so that arrivals rarely move all rows. Unused pages cost no
    // memory.
    const std::size_t min_spare = std::min<std::size_t>(2 * blocks, 48),
                      max_blocks = blocks + std::max(blocks / 4, min_spare);
    BlockDirectory order;
    order.reserve(max_blocks);
    order.bulk_load(blocks);
    prepared.slots.reserve(max_blocks * kBlock);
    prepared.origins.reserve(max_blocks * kBlock);
    prepared.occupied.reserve(max_blocks);
    prepared.min_node_ids.reserve(order.entries() * 5 / 4);
    prepared_ = &prepared;
    for_each_zone_map([&](SlotZoneMap& zone_map) {
      zone_map.reserve(max_blocks * kBlock, order.entries() * 5 / 4);
    });
    prepared.slots.resize(blocks * kBlock);
    prepared.origins.resize(blocks * kBlock);
    prepared.occupied.resize(blocks);
    prepared.min_node_ids.assign(order.entries(), PreparedSlots::kNoNode);
    const double origin = slots.empty() ? 0 : slots.front().first.start;
    for_each_zone_map([&](SlotZoneMap& zone_map) {
      zone_map.reset(blocks * kBlock, origin, blocks, order.entries());
    });
    prepared.order = std::move(order);
    std::size_t b = 0;
    prepared.order.each([&](std::size_t entry) {
      const std::size_t first = b * slots.size() / blocks;
      std::array<MergeItem, kBlock> rows;
      for (std::size_t j = 0; j < kBlock; ++j)
        rows[j].source = static_cast<std::uint32_t>(kBlock + j);
      fill(entry, 0, rows.data(), ++b * slots.size() / blocks - first, slots.data() + first);
    });
    free_blocks_.clear();
  }

  PreparedSlots& prepared() const { return *prepared_; }
  std::uint64_t& occupied(std::size_t entry) {
    return prepared_->occupied[prepared_->order.block(entry)];
  }
  std::size_t first_row(std::size_t entry) const { return prepared_->order.block(entry) * kBlock; }
  const Slot& first_slot(std::size_t entry) {
    const auto row = static_cast<std::size_t>(std::countr_zero(occupied(entry)));
    return prepared_->slots[first_row(entry) + row];
  }

  // Returns the number of rows of the block, gaps included, that come before (start, node).
  std::size_t count_rows_before(std::size_t entry, double start, std::int32_t node) const {
    return prepared_->count_prefix(first_row(entry),
                                   [=](const Slot& slot) { return before(slot, start, node); });
  }

  SlotWithOrigin slot_with_origin(std::size_t row) const {
    return {prepared_->slots[row], prepared_->origins[row]};
  }
  int count(std::size_t entry) { return std::popcount(occupied(entry)); }

  // Calls visit(row) for each slot of the block, in the order of time.
  template <class Visit>
  void for_each(std::size_t entry, Visit visit) {
    for (std::uint64_t rows = occupied(entry); rows; rows &= rows - 1)
      visit(first_row(entry) + static_cast<std::size_t>(std::countr_zero(rows)));
  }

  // Adds a slot to a block that has a gap.
  void add(std::size_t entry, const SlotWithOrigin& fresh) {
    const auto& [slot, origin] = fresh;
    const std::size_t row = claim_row(entry, slot);
    prepared_->slots[row] = slot;
    prepared_->origins[row] = origin;
    const double capacity = PreparedSlots::capacity(slot);
    prepared_->by_rate.set(row, slot.rate, capacity * slot.performance, slot.performance, slot.end);
    if (SlotZoneMap* prices = prepared_->by_price_if_built())
      prices->set(row, slot.price, capacity, slot.performance, slot.end);
    if (is_first(entry, row)) update_first(entry);
    float& min_node = prepared_->min_node_ids[entry];
    min_node = std::min(min_node, round_down(slot.node));
    for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.expand(entry, row); });
  }

  // Empties a row, and removes the block if it was the last row of one of several blocks. Returns
  // false if the block was removed.
  bool remove_row(std::size_t entry, std::size_t row) {
    const bool first = is_first(entry, row);
    occupied(entry) &= ~bit(row);
    for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.clear(row); });
    const bool stays = occupied(entry) != 0 || is_only_block(entry);
    if (stays) {
      if (first) update_first(entry);
      for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.mark_stale(entry); });
    } else {
      remove_block(entry);
    }
    return stays;
  }

  // Moves the end of the slot in a row to `end`.
  void set_end(std::size_t entry, std::size_t row, double end) {
    Slot& slot = prepared_->slots[row];
    const bool shrinks = end < slot.end;
    slot.end = end;
    const double capacity = PreparedSlots::capacity(slot);
    prepared_->by_rate.set_end(row, capacity * slot.performance, end);
    if (SlotZoneMap* prices = prepared_->by_price_if_built()) prices->set_end(row, capacity, end);
    for_each_zone_map([=](SlotZoneMap& zone_map) {
      shrinks ? zone_map.mark_stale(entry) : zone_map.expand(entry, row);
    });
  }

  // Rewrites the block with `count` sorted items, gaps spread evenly. The source of an item
  // (MergeItem::source) is a row of the block whose first row is `present_first`, which may be this
  // block, or an entry of `pending`.
  void fill(std::size_t entry, std::size_t present_first, const MergeItem* items,
            std::size_t count, const SlotWithOrigin* pending) {
    const std::size_t rows = first_row(entry);
    std::array<Slot, kBlock> fresh;
    std::array<std::size_t, kBlock> origins;
    const std::uint64_t mask = kEvenlySpread[count];
    std::int32_t min_node = std::numeric_limits<std::int32_t>::max();
    if (count == 0) fresh.fill({}), origins.fill(0);
    for (std::uint64_t rest = mask; rest; rest &= rest - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(rest));
      const std::size_t at = items++->source;
      const bool is_present = at < kBlock;
      fresh[row] =
          *(is_present ? &prepared_->slots[present_first + at] : &pending[at - kBlock].first);
      origins[row] =
          *(is_present ? &prepared_->origins[present_first + at] : &pending[at - kBlock].second);
      min_node = std::min(min_node, fresh[row].node);
    }
    // Each gap copies the slot before it.
    for (std::uint64_t gaps = ~mask; count && gaps; gaps &= gaps - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(gaps));
      fresh[row] = fresh[row - 1], origins[row] = origins[row - 1];
    }
    std::memcpy(&prepared_->slots[rows], fresh.data(), sizeof fresh);
    std::memcpy(&prepared_->origins[rows], origins.data(), sizeof origins);
    occupied(entry) = mask;
    update_first(entry);
    prepared_->min_node_ids[entry] = count == 0 ? PreparedSlots::kNoNode : round_down(min_node);
    put_bounds(prepared_->by_rate, entry, [](const Slot& s) { return s.rate; },
               [](const Slot& s) { return PreparedSlots::capacity(s) * s.performance; });
    if (SlotZoneMap* prices = prepared_->by_price_if_built())
      put_bounds(*prices, entry, [](const Slot& s) { return s.price; }, PreparedSlots::capacity);
  }

  // Adds an empty block after this one and returns its directory entry. Invalidates other entries.
  std::size_t add_block_after(std::size_t entry) {
    PreparedSlots& prepared = *prepared_;
    if (free_blocks_.empty()) {
      free_blocks_.push_back(static_cast<std::uint32_t>(prepared.occupied.size()));
      prepared.slots.resize(prepared.slots.size() + kBlock);
      prepared.origins.resize(prepared.origins.size() + kBlock);
      prepared.occupied.push_back(0);
      for_each_zone_map([](SlotZoneMap& zone_map) { zone_map.add_rows(); });
    }
    const std::size_t fresh = prepared.order.add(entry, free_blocks_.back(), BoundsRelocator{this});
    free_blocks_.pop_back();
    count_blocks();
    return fresh;
  }

  // Removes the block with all its slots.
  void remove_block(std::size_t entry) {
    for_each(entry, [&](std::size_t row) {
      for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.clear(row); });
    });
    occupied(entry) = 0;
    free_blocks_.push_back(static_cast<std::uint32_t>(prepared_->order.block(entry)));
    prepared_->order.remove(entry, BoundsRelocator{this});
    count_blocks();
  }

 private:
  template <class Change>
  void for_each_zone_map(Change change) {
    change(prepared_->by_rate);
    if (SlotZoneMap* prices = prepared_->by_price_if_built()) change(*prices);
  }

  bool is_only_block(std::size_t entry) const {
    return prepared_->order.next(entry) == BlockDirectory::kNone &&
           prepared_->order.previous(entry) == BlockDirectory::kNone;
  }

  // True if no slot of the block comes before this row.
  bool is_first(std::size_t entry, std::size_t row) {
    return (occupied(entry) & (bit(row) - 1)) == 0;
  }
  void update_first(std::size_t entry) {
    prepared_->order.set_min_start(entry, occupied(entry) ? first_slot(entry).start : -kInfinity);
  }

  // Makes a free row for the slot at its place in the order: shifts the rows between that place and
  // the nearest gap by one. The block must have a gap.
  std::size_t claim_row(std::size_t entry, const Slot& slot) {
    const std::size_t rows = first_row(entry), at = count_rows_before(entry, slot.start, slot.node);
    const std::uint64_t gaps = ~occupied(entry);
    const auto right = static_cast<std::size_t>(at < kBlock ? std::countr_zero(gaps >> at) : 64);
    const auto left =
        static_cast<std::size_t>(at > 0 ? std::countl_zero(gaps << (kBlock - at)) : 64);
    if (right <= left) {
      move_rows(rows + at, rows + at + 1, right);
      occupied(entry) |= bit(at + right);
      return rows + at;
    }
    move_rows(rows + at - left, rows + at - left - 1, left);
    occupied(entry) |= bit(at - left - 1);
    return rows + at - 1;
  }

  // [count]: bit mask of the rows that `count` slots take if gaps are spread evenly.
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
    for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.move_rows(from, to, count); });
  }

  template <class Key, class Capacity>
  void put_bounds(SlotZoneMap& target, std::size_t entry, Key key, Capacity capacity) {
    const Slot* const slots = &prepared_->slots[first_row(entry)];
    ZoneMapRows rows_of_block;
    rows_of_block.end_at(0);
    for (std::uint64_t rows = occupied(entry); rows; rows &= rows - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(rows));
      const Slot& s = slots[row];
      rows_of_block.put(row, key(s), capacity(s), s.performance, s.end);
    }
    target.put(entry, first_row(entry), rows_of_block);
  }

  void count_blocks() {
    for_each_zone_map([blocks = prepared_->last_position() / kBlock + 1](SlotZoneMap& zone_map) {
      zone_map.count_blocks(blocks);
    });
  }

  // RelocationListener of the directory: per-entry data move with the entries.
  struct BoundsRelocator {
    BlockStore* rows;
    void resize(std::size_t entries) const {
      rows->prepared_->min_node_ids.resize(entries, PreparedSlots::kNoNode);
      rows->for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.resize(entries); });
    }
    void move(std::size_t from, std::size_t to, std::size_t count) const {
      float* const min_node = rows->prepared_->min_node_ids.data();
      std::memmove(min_node + to, min_node + from, count * sizeof(float));
      rows->for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.move(from, to, count); });
    }
    void clear(std::size_t entry) const {
      rows->prepared_->min_node_ids[entry] = PreparedSlots::kNoNode;
      rows->for_each_zone_map([=](SlotZoneMap& zone_map) { zone_map.clear_entry(entry); });
    }
  };

  PreparedSlots* prepared_ = nullptr;
  std::vector<std::uint32_t> free_blocks_;  // indices of unused blocks
};

}  // namespace slotkern

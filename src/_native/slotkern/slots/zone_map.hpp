// Zone map of the slots: rejects, 64 slots at a time, those that cannot be in a better window.
//
// Stored: four float columns per slot, rounded so that the slot passes (key down; capacity,
// performance and end up), and the same four as bounds (minimum key, maximum of the others) of each
// block of 64 slots:
//
//   block_bounds_: [entry]        4 floats per block, 64 blocks (4,096 slots) tested at once
//   row_bounds_:   [64*block + j] 4 floats per slot, 64 slots tested at once
//
// Ends are stored relative to an origin, because a float resolves seconds since 1970 to two minutes
// only. Filtering is one-sided: false positives are tested again in double with the expressions
// that define the answer; there are no false negatives. Cost: O(m / 64) for the blocks plus 64 rows
// per block that passes; 16 bytes per slot.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/memory.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/slots/block_directory.hpp"
#include "slotkern/slots/filter64.hpp"
#include "slotkern/slots/index_options.hpp"
#include "slotkern/slots/key_dictionary.hpp"

namespace slotkern {

namespace detail {

// Converts 64 doubles to floats, rounded to one side: half of the time to build a zone map.
SLOTKERN_CLONES static inline void round64_down(const double* from, float* to) {
  for (int j = 0; j < 64; ++j) to[j] = round_down(from[j]);
}
SLOTKERN_CLONES static inline void round64_up(const double* from, double origin, float* to) {
  for (int j = 0; j < 64; ++j) to[j] = round_up(from[j] - origin);
}

}  // namespace detail

// The four columns of 64 rows before rounding. Rows that are absent never pass.
struct ZoneMapRows {
  double key[64], capacity[64], performance[64], end[64];

  void put(std::size_t j, double k, double r, double p, double e) {
    key[j] = k, capacity[j] = r, performance[j] = p, end[j] = e;
  }
  void end_at(std::size_t count) {
    for (std::size_t j = count; j < 64; ++j) clear(j);
  }
  void clear(std::size_t j) { put(j, kInfinity, -1, 0, -kInfinity); }
};

// block_bounds_ is indexed by directory entry (slots/block_directory.hpp): in time order until a
// pool changes.
class SlotZoneMap {
 public:
  // Reserves memory for reset().
  void reserve(std::size_t slots, std::size_t entries) {
    const std::size_t blocks = (slots + 63) / 64;
    row_bounds_.reserve(blocks * 64);
    block_bounds_.reserve((entries + 63) / 64 * 64);
  }

  // Makes space for `slots` rows in `blocks` blocks at `entries` directory entries, for rows that
  // change between searches. All rows are absent until set.
  void reset(std::size_t slots, double origin, std::size_t blocks, std::size_t entries) {
    slots_ = slots;
    origin_ = origin;
    blocks_ = blocks;
    row_bounds_.reset(slots);
    block_bounds_.reset(entries);
    stale_.clear();
  }

  double origin() const { return origin_; }
  // The threshold for slots that end at or after t.
  float ending(double t) const { return round_down(t - origin_); }

  // Sets the options, and the dictionary of the keys of all present and future rows, before any
  // row is added.
  void configure(const IndexOptions& options, const KeyDictionary& dictionary) {
    options_ = options;
    dictionary_ = dictionary;
  }
  const KeyDictionary& dictionary() const { return dictionary_; }

  // Starts an empty map with memory for `slots` rows; append() adds 64 at a time, which never
  // change.
  void open(std::size_t slots, double origin) {
    slots_ = slots;
    origin_ = origin;
    blocks_ = 0;
    row_bounds_.clear_all(), block_bounds_.clear_all(), stale_.clear();
    reserve(slots, (slots + 63) / 64);
  }

  // Appends a block and computes its bounds while its rows are in cache.
  void append(const ZoneMapRows& rows) {
    alignas(64) float key[64], capacity[64], performance[64], end[64];
    round64(rows.key, key);
    detail::round64_up(rows.capacity, 0, capacity);
    detail::round64_up(rows.performance, 0, performance);
    detail::round64_up(rows.end, origin_, end);
    row_bounds_.append(key, capacity, performance, end);
    if (blocks_ % 64 == 0) block_bounds_.resize(blocks_ + 64);
    recompute_bounds(blocks_, blocks_ * 64);
    ++blocks_;
  }

  // Calls visit(row, position) in order for the slots at positions from..last that pass, until it
  // returns false. `visit` may tighten `thresholds`: the next block uses the new values. Returns
  // the number of blocks whose rows were tested.
  template <class Visit>
  std::size_t each(const BlockDirectory& order, const Thresholds& thresholds, std::size_t from,
                   std::size_t last, Visit visit) const {
    const auto all = [](std::size_t) { return ~std::uint64_t{0}; };
    return each_of(order, thresholds, from, last, all, visit);
  }
  // The same for blocks selected by some(entries), a 64-bit mask of the blocks at `entries` and
  // after.
  template <class Some, class Visit>
  std::size_t each_of(const BlockDirectory& order, const Thresholds& thresholds, std::size_t from,
                      std::size_t last, Some some, Visit visit) const {
    std::size_t tested = 0;
    if (slots_ == 0 || from > last) return tested;
    const std::size_t first_block = from / 64, last_block = last / 64;
    std::uint64_t wanted = ~std::uint64_t{0} << first_block % 64;
    for (std::size_t leaf = first_block / 64; leaf <= last_block / 64; ++leaf) {
      poll();
      const std::size_t entries = order.empty() ? leaf * 64 : order.entry_at(leaf * 64);
      std::uint64_t blocks = mask_passing_blocks(entries, thresholds) & wanted;
      for (wanted = ~std::uint64_t{0}; blocks &= some(entries); blocks &= blocks - 1) {
        const auto j = static_cast<std::size_t>(std::countr_zero(blocks));
        const std::size_t entry = entries + j, block = leaf * 64 + j;
        if (block > last_block) return tested;
        ++tested;
        const std::size_t rows = 64 * (order.empty() ? entry : order.block(entry));
        std::uint64_t hits = row_bounds_.pass(rows, thresholds);
        if (!hits && blocks_ > options_.max_unindexed_blocks) on_false_positive(entry, rows);
        if (block == first_block) hits &= ~std::uint64_t{0} << from % 64;
        for (; hits; hits &= hits - 1) {
          const auto offset = static_cast<std::size_t>(std::countr_zero(hits));
          const std::size_t position = block * 64 + offset;
          if (position > last || !visit(rows + offset, position)) return tested;
        }
      }
    }
    return tested;
  }
  // The same for all positions up to `last`: visit(row).
  template <class Visit>
  void each(const BlockDirectory& order, const Thresholds& thresholds, std::size_t last,
            Visit visit) const {
    each(order, thresholds, 0, last, [&](std::size_t row, std::size_t) { return visit(row); });
  }

  // Bit j: block `entries + j` may have a row with a key of at most `most`.
  std::uint64_t blocks_with_keys(std::size_t entries, float most) const {
    return blocks_ <= options_.max_unindexed_blocks
               ? ~std::uint64_t{0}
               : detail::mask_at_most64(&block_bounds_.key[entries], most);
  }

  // The functions below serve pools whose rows change (pool/pool.hpp).
  void add_rows() { row_bounds_.resize(row_bounds_.key.size() + 64); }
  void count_blocks(std::size_t blocks) { blocks_ = blocks; }

  // RelocationListener of the BlockDirectory.
  void resize(std::size_t entries) {
    block_bounds_.resize(entries);
    if (!stale_.empty()) stale_.resize(entries);
  }
  void move(std::size_t from, std::size_t to, std::size_t count) {
    block_bounds_.move(from, to, count);
    if (!stale_.empty()) std::memmove(stale_.data() + to, stale_.data() + from, count);
  }
  void clear_entry(std::size_t entry) {
    block_bounds_.clear(entry);
  }

  void clear(std::size_t row) { row_bounds_.clear(row); }
  // Prefetches the row for a change.
  void prefetch(std::size_t row) const { row_bounds_.prefetch(row); }

  void set(std::size_t i, double key, double capacity, double performance, double end) {
    row_bounds_.put(i, dictionary_.code_of(key), round_up(capacity), round_up(performance),
                    round_up(end - origin_));
  }

  void set_end(std::size_t i, double capacity, double end) {
    row_bounds_.capacity[i] = round_up(capacity), row_bounds_.end[i] = round_up(end - origin_);
  }

  // Expands the bounds of the block to a row that was added.
  void expand(std::size_t entry, std::size_t row) {
    block_bounds_.expand(entry, row_bounds_, row);
  }

  // Marks bounds as possibly too wide after a row was removed or shrank. The next false positive of
  // the block recomputes them; changes themselves stay O(1).
  void mark_stale(std::size_t entry) {
    if (stale_.empty()) stale_.resize(block_bounds_.key.size());
    stale_[entry] = 1;
  }

  // Recomputes all stale bounds: searches write nothing until rows change.
  void refresh(const BlockDirectory& order) const {
    if (stale_.empty()) return;
    order.each([&](std::size_t entry) {
      if (stale_[entry]) recompute_block_bounds(entry, 64 * order.block(entry));
    });
  }

  void move_rows(std::size_t from, std::size_t to, std::size_t count) {
    row_bounds_.move(from, to, count);
  }

  // Replaces the rows of a block.
  void put(std::size_t entry, std::size_t rows, const ZoneMapRows& fresh) {
    round64(fresh.key, &row_bounds_.key[rows]);
    detail::round64_up(fresh.capacity, 0, &row_bounds_.capacity[rows]);
    detail::round64_up(fresh.performance, 0, &row_bounds_.performance[rows]);
    detail::round64_up(fresh.end, origin_, &row_bounds_.end[rows]);
    recompute_bounds(entry, rows);
  }

  // Recomputes the bounds of a block whose rows were replaced.
  void recompute_bounds(std::size_t entry, std::size_t rows) {
    recompute_block_bounds(entry, rows);
  }

 private:
  void round64(const double* keys, float* to) const {
    if (dictionary_.is_plain_rounding()) return detail::round64_down(keys, to);
    for (int j = 0; j < 64; ++j) to[j] = dictionary_.code_of(keys[j]);
  }

  // Mask of the blocks of a leaf that may contain rows that pass.
  std::uint64_t mask_passing_blocks(std::size_t entries, const Thresholds& thresholds) const {
    return blocks_ <= options_.max_unindexed_blocks ? ~std::uint64_t{0}
                                                    : block_bounds_.pass(entries, thresholds);
  }

  // A false positive: recomputes the bounds if rows have been removed.
  void on_false_positive(std::size_t entry, std::size_t rows) const {
    if (!stale_.empty() && stale_[entry]) recompute_block_bounds(entry, rows);
  }

  // Computes the bounds of a block from its rows.
  void recompute_block_bounds(std::size_t entry, std::size_t rows) const {
    if (!stale_.empty()) stale_[entry] = 0;
    block_bounds_.put(entry, detail::min64(row_bounds_.key.data() + rows),
                detail::max64(row_bounds_.capacity.data() + rows),
                detail::max64(row_bounds_.performance.data() + rows),
                detail::max64(row_bounds_.end.data() + rows));
  }

  struct Columns {
    LargeVector<float> key, capacity, performance, end;

    void reserve(std::size_t size) {
      for (LargeVector<float>* column : {&key, &capacity, &performance, &end})
        column->reserve(size);
    }
    void clear_all() {
      for (LargeVector<float>* column : {&key, &capacity, &performance, &end}) column->clear();
    }
    void append(const float* k, const float* r, const float* p, const float* e) {
      key.insert(key.end(), k, k + 64), capacity.insert(capacity.end(), r, r + 64);
      performance.insert(performance.end(), p, p + 64), end.insert(end.end(), e, e + 64);
    }
    void reset(std::size_t size) {
      clear_all();
      reserve(size);
      resize(size);
    }
    void resize(std::size_t size) {  // padding never passes: its capacity is negative
      key.resize(size, std::numeric_limits<float>::infinity());
      capacity.resize(size, -1.0f);
      performance.resize(size, 0.0f);
      end.resize(size, -std::numeric_limits<float>::infinity());
    }
    void clear(std::size_t i) {
      put(i, std::numeric_limits<float>::infinity(), -1.0f, 0.0f,
          -std::numeric_limits<float>::infinity());
    }
    void move(std::size_t from, std::size_t to, std::size_t count) {
      for (LargeVector<float>* column : {&key, &capacity, &performance, &end})
        std::memmove(column->data() + to, column->data() + from, count * sizeof(float));
    }
    void put(std::size_t i, float k, float r, float p, float e) {
      key[i] = k, capacity[i] = r, performance[i] = p, end[i] = e;
    }
    void expand(std::size_t block, const Columns& from, std::size_t i) {
      key[block] = std::min(key[block], from.key[i]);
      capacity[block] = std::max(capacity[block], from.capacity[i]);
      performance[block] = std::max(performance[block], from.performance[i]);
      end[block] = std::max(end[block], from.end[i]);
    }
    // Prefetches one row of all columns.
    void prefetch(std::size_t i) const {
      slotkern::prefetch(&key[i]), slotkern::prefetch(&capacity[i]),
          slotkern::prefetch(&performance[i]), slotkern::prefetch(&end[i]);
    }
    std::uint64_t pass(std::size_t i, const Thresholds& thresholds) const {
      return detail::pass64(key.data() + i, capacity.data() + i, performance.data() + i,
                            end.data() + i, thresholds);
    }
  };

  std::size_t slots_ = 0, blocks_ = 0;
  double origin_ = 0;
  IndexOptions options_;
  KeyDictionary dictionary_;
  Columns row_bounds_;
  // Caches written by const searches if rows change. Guarded by the pool's exclusive lock;
  // up to date after refresh().
  mutable Columns block_bounds_;
  mutable std::vector<std::uint8_t> stale_;  // [entry]; empty until a row was removed or shrank
};

}  // namespace slotkern

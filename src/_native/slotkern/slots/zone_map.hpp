// The screen: thresholds in float32 over all slots that throw out, 64 at a time, those that cannot
// be part of a better window.
//
// Four float columns a slot, each rounded to the side that keeps the slot (keys down; capacity,
// performance and end up), and the same four as extremes of every block of 64 slots, so that
// one pass over 64 blocks looks at 4,096 slots. Ends are counted from an origin near them: of
// seconds since 1970 a float tells two minutes apart. The screen only ever keeps too much: every
// slot it passes is tested again in float64 with the expressions that define the answer.
// Cost of a pass: O(m / 64) for the blocks, then the blocks that are left; 16 bytes a slot.
#pragma once

#include <algorithm>
#include <array>
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
#include "slotkern/slots/key_dictionary.hpp"
#include "slotkern/slots/min_key_by_capacity.hpp"

namespace slotkern {

namespace detail {

// 64 numbers to floats on one side of them. These loops are half of what a screen costs to make.
SLOTKERN_CLONES static inline void round64_down(const double* from, float* to) {
  for (int j = 0; j < 64; ++j) to[j] = round_down(from[j]);
}
SLOTKERN_CLONES static inline void round64_up(const double* from, double origin, float* to) {
  for (int j = 0; j < 64; ++j) to[j] = round_up(from[j] - origin);
}

}  // namespace detail

// What 64 rows say, before it is rounded for the screen. Rows that are not there never pass.
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

// Extremes of blocks stand by entry (slots/block_directory.hpp): in a pool that has not changed, in order.
class SlotZoneMap {
 public:
  // Memory for so many rows, for reset().
  void reserve(std::size_t slots, std::size_t entries) {
    const std::size_t blocks = (slots + 63) / 64;
    row_bounds_.reserve(blocks * 64);
    block_bounds_.reserve((entries + 63) / 64 * 64);
    min_keys_.reserve(blocks, entries);
  }

  // Room for so many rows, the blocks of which stand on so many entries, some of them perhaps empty.
  // Searches will come between changes of rows.
  void reset(std::size_t slots, double origin, std::size_t blocks, std::size_t entries) {
    slots_ = slots;
    origin_ = origin;
    blocks_ = blocks;
    row_bounds_.reset(slots);
    block_bounds_.reset(entries);
    stale_.clear();
    min_keys_.reset(blocks, entries, true);
  }

  double origin() const { return origin_; }
  // The threshold of what ends at t or later.
  float ending(double t) const { return round_down(t - origin_); }

  // Before rows come: what is known of the keys of all rows there will ever be.
  void set_dictionary(const KeyDictionary& dictionary) { dictionary_ = dictionary; }
  const KeyDictionary& dictionary() const { return dictionary_; }

  // reset() of no rows yet, with memory for so many: 64 at a time follow, and none will change.
  void open(std::size_t slots, double origin) {
    slots_ = slots;
    origin_ = origin;
    blocks_ = 0;
    row_bounds_.clear_all(), block_bounds_.clear_all(), stale_.clear();
    min_keys_.reset(0, 0, false);
    reserve(slots, (slots + 63) / 64);
  }

  // Memory is written once, and the extremes of the block are taken while its rows are near.
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

  // Calls visit(row, position) for the slots at positions from..last of the order that pass, in
  // order, until it returns false. `thresholds` may tighten meanwhile: the next block sees it.
  template <class Visit>
  void each(const BlockDirectory& order, const Thresholds& thresholds, std::size_t from, std::size_t last,
            Visit visit) const {
    each_of(order, thresholds, from, last, [](std::size_t) { return ~std::uint64_t{0}; }, visit);
  }
  // The same of the blocks that some(entries) has bits of, 64 from there on.
  template <class Some, class Visit>
  void each_of(const BlockDirectory& order, const Thresholds& thresholds, std::size_t from,
               std::size_t last, Some some, Visit visit) const {
    if (slots_ == 0 || from > last) return;
    const std::size_t first_block = from / 64, last_block = last / 64;
    const std::size_t size = class_for(thresholds.capacity);
    std::uint64_t wanted = ~std::uint64_t{0} << first_block % 64;
    for (std::size_t leaf = first_block / 64; leaf <= last_block / 64; ++leaf) {
      poll();
      const std::size_t entries = order.empty() ? leaf * 64 : order.entry_at(leaf * 64);
      std::uint64_t blocks = pass_blocks(entries, size, thresholds) & wanted;
      for (wanted = ~std::uint64_t{0}; blocks &= some(entries); blocks &= blocks - 1) {
        const auto j = static_cast<std::size_t>(std::countr_zero(blocks));
        const std::size_t entry = entries + j, block = leaf * 64 + j;
        if (block > last_block) return;
        const std::size_t rows = 64 * (order.empty() ? entry : order.block(entry));
        std::uint64_t hits = row_bounds_.pass(rows, thresholds);
        if (!hits && blocks_ > kMaxUnindexedBlocks) on_false_positive(entry, rows, size);
        if (block == first_block) hits &= ~std::uint64_t{0} << from % 64;
        for (; hits; hits &= hits - 1) {
          const auto offset = static_cast<std::size_t>(std::countr_zero(hits));
          const std::size_t position = block * 64 + offset;
          if (position > last || !visit(rows + offset, position)) return;
        }
      }
    }
  }
  // The same of all up to `last`: visit(row).
  template <class Visit>
  void each(const BlockDirectory& order, const Thresholds& thresholds, std::size_t last,
            Visit visit) const {
    each(order, thresholds, 0, last, [&](std::size_t row, std::size_t) { return visit(row); });
  }

  // Whether probe_cheapest() may tell anything: not of few rows, nor where most keys are the same.
  bool can_probe() const { return !min_keys_.empty() && !dictionary_.is_exact(); }

  // How often probe_cheapest() is worth trying: twice where it hardly ever was in vain, not at all
  // where it often was, or where several threads search: nothing may be written then.
  int probe_budget() const {
    if (frozen_) return 0;
    if (skipped_probes_ < failed_probes_ / 2) return ++skipped_probes_, 0;
    skipped_probes_ = 0;
    return failed_probes_ == kMaxProbeConfidence ? 2 : 1;
  }

  // Calls visit(row) for those at positions up to `last` whose keys are low: about as many blocks
  // as wanted are likely to have one. Which they are is known before the first is looked at, so
  // that their keys are on their way from memory meanwhile, and expect(row) may come before. Where
  // few keys are low the other thresholds are left to visit(), which says whether it was of use.
  // Lowers thresholds.key to what it looks at; false: nothing was visited, for nothing is known of
  // keys.
  template <class Expect, class Visit>
  bool probe_cheapest(const BlockDirectory& order, Thresholds& thresholds, std::size_t last,
                  std::size_t wanted, Expect expect, Visit visit) const {
    const std::size_t size = class_for(thresholds.capacity), last_block = last / 64;
    if (size == MinKeyByCapacity::kNoClass || order.empty()) return false;
    const float key = min_keys_.estimate_threshold(order, size, last_block, wanted);
    if (!(key < std::numeric_limits<float>::infinity())) return false;
    thresholds.key = std::min(thresholds.key, key);
    struct Ahead {
      std::size_t entry, rows;
      std::uint64_t cheap;  // rows with low keys
    };
    std::array<Ahead, 64> ahead;
    std::size_t count = 0;
    const auto look = [&] {
      const auto each = [](const Ahead& block, auto visit_row) {
        for (std::uint64_t rows = block.cheap; rows; rows &= rows - 1)
          visit_row(block.rows + static_cast<std::size_t>(std::countr_zero(rows)));
      };
      for (std::size_t k = 0; k < count; ++k) {
        ahead[k].cheap = detail::mask_at_most64(&row_bounds_.key[ahead[k].rows], thresholds.key);
        if (at_most(2, ahead[k].cheap))
          each(ahead[k], expect);
        else
          for (std::size_t j = 0; j < 64; j += 16) row_bounds_.prefetch(ahead[k].rows + j);
      }
      for (std::size_t k = 0; k < count; ++k) {
        if (!at_most(2, ahead[k].cheap)) ahead[k].cheap = row_bounds_.pass(ahead[k].rows, thresholds);
        bool in_vain = true;
        each(ahead[k], [&](std::size_t row) { in_vain = !visit(row) && in_vain; });
        if (in_vain) on_false_positive(ahead[k].entry, ahead[k].rows, size);
      }
      count = 0;
    };
    for (std::size_t leaf = 0; leaf <= last_block / 64; ++leaf) {
      poll();
      if (min_keys_.leaf_min_key(leaf) > thresholds.key) continue;
      const std::size_t entries = order.entry_at(leaf * 64);
      for (std::uint64_t blocks = pass_blocks(entries, size, thresholds); blocks;
           blocks &= blocks - 1) {
        const std::size_t entry = entries + static_cast<std::size_t>(std::countr_zero(blocks));
        if (leaf * 64 + entry - entries > last_block) break;
        const std::size_t rows = 64 * order.block(entry);
        ahead[count++] = {entry, rows, 0};
        prefetch_block(entry, rows);
        if (count == ahead.size()) look();
      }
    }
    look();
    return true;
  }

  // Whether that was enough. After two in vain one search goes without it, then three, and so on.
  void report_probe(bool enough) const {
    failed_probes_ = enough ? std::max(std::min(failed_probes_, 0) - 1, kMaxProbeConfidence)
                      : std::min(2 * std::max(failed_probes_, 0) + 1, 63);
  }

  // Bit j: the block on the j-th entry from here may have a row with a key of at most this.
  std::uint64_t blocks_with_keys(std::size_t entries, float most) const {
    return blocks_ <= kMaxUnindexedBlocks ? ~std::uint64_t{0} : detail::mask_at_most64(&block_bounds_.key[entries], most);
  }

  // For rows that change (pool/pool.hpp): blocks of rows come and go, rows move within one.
  void add_rows() { row_bounds_.resize(row_bounds_.key.size() + 64); }
  void count_blocks(std::size_t blocks) { blocks_ = blocks; }

  // For BlockDirectory, whose entries these are.
  void resize(std::size_t entries) {
    block_bounds_.resize(entries);
    if (!stale_.empty()) stale_.resize(entries);
    min_keys_.resize(entries);
  }
  void move(std::size_t from, std::size_t to, std::size_t count) {
    block_bounds_.move(from, to, count);
    if (!stale_.empty()) std::memmove(stale_.data() + to, stale_.data() + from, count);
    min_keys_.move(from, to, count);
  }
  void clear_entry(std::size_t entry) {
    block_bounds_.clear(entry);
    min_keys_.reset_entry(entry, block_bounds_.key[entry]);
  }

  void clear(std::size_t row) { row_bounds_.clear(row); }
  // It will change.
  void prefetch(std::size_t row) const { row_bounds_.prefetch(row); }

  void set(std::size_t i, double key, double capacity, double performance, double end) {
    row_bounds_.put(i, dictionary_.code_of(key), round_up(capacity), round_up(performance), round_up(end - origin_));
  }

  void set_end(std::size_t i, double capacity, double end) {
    row_bounds_.capacity[i] = round_up(capacity), row_bounds_.end[i] = round_up(end - origin_);
  }

  // The row has joined the block on the entry.
  void expand(std::size_t entry, std::size_t row) {
    block_bounds_.expand(entry, row_bounds_, row);
    min_keys_.expand(entry, row_bounds_.key[row], row_bounds_.capacity[row]);
  }

  // A row of the block has left or holds less: its extremes may be too wide. They are taken anew by
  // the first pass that comes to the block in vain, not at each change.
  void mark_stale(std::size_t entry) {
    if (stale_.empty()) stale_.resize(block_bounds_.key.size());
    stale_[entry] = 1;
    min_keys_.mark_stale(entry);
  }

  // All blocks that are loose, so that passes write nothing until unfreeze().
  void freeze(const BlockDirectory& order) const {
    frozen_ = true;
    if (stale_.empty()) return;
    order.each([&](std::size_t entry) {
      if (stale_[entry]) recompute_block_bounds(entry, 64 * order.block(entry));
    });
  }

  void unfreeze() const { frozen_ = false; }

  void move_rows(std::size_t from, std::size_t to, std::size_t count) {
    row_bounds_.move(from, to, count);
  }

  // The rows of a block are these now.
  void put(std::size_t entry, std::size_t rows, const ZoneMapRows& fresh) {
    round64(fresh.key, &row_bounds_.key[rows]);
    detail::round64_up(fresh.capacity, 0, &row_bounds_.capacity[rows]);
    detail::round64_up(fresh.performance, 0, &row_bounds_.performance[rows]);
    detail::round64_up(fresh.end, origin_, &row_bounds_.end[rows]);
    recompute_bounds(entry, rows);
  }

  // The rows of a block are others.
  void recompute_bounds(std::size_t entry, std::size_t rows) {
    recompute_block_bounds(entry, rows);
    min_keys_.reset_entry(entry, block_bounds_.key[entry]);
  }

 private:
  void round64(const double* keys, float* to) const {
    if (dictionary_.is_plain_rounding()) return detail::round64_down(keys, to);
    for (int j = 0; j < 64; ++j) to[j] = dictionary_.code_of(keys[j]);
  }

  // Whether these are so few bits: what is told of few is read one by one.
  static bool at_most(int few, std::uint64_t bits) {
    for (; few > 0; --few) bits &= bits - 1;
    return bits == 0;
  }

  // The blocks of a leaf that may have rows that pass.
  std::uint64_t pass_blocks(std::size_t entries, std::size_t size,
                            const Thresholds& thresholds) const {
    std::uint64_t blocks = ~std::uint64_t{0};
    if (blocks_ <= kMaxUnindexedBlocks) return blocks;
    if (size != MinKeyByCapacity::kNoClass) blocks = min_keys_.pass(entries, size, thresholds.key);
    if (!at_most(4, blocks)) return blocks & block_bounds_.pass(entries, thresholds);
    std::uint64_t passing = 0;  // of a few only what is told of them is read
    for (std::uint64_t rest = blocks; rest; rest &= rest - 1) {
      const auto j = static_cast<std::size_t>(std::countr_zero(rest));
      passing |= std::uint64_t{block_bounds_.passes(entries + j, thresholds)} << j;
    }
    return passing;
  }

  std::size_t class_for(float capacity) const {
    return frozen_ ? MinKeyByCapacity::kNoClass : min_keys_.class_for(capacity, block_bounds_.key.data());
  }

  // The keys of the block are read soon, and what is learnt from if they are read in vain.
  void prefetch_block(std::size_t entry, std::size_t rows) const {
    const bool learns = !min_keys_.is_exact(entry);
    for (std::size_t row = rows; row < rows + 64; row += 16) {
      slotkern::prefetch(&row_bounds_.key[row]);
      if (learns) slotkern::prefetch(&row_bounds_.capacity[row]);
    }
  }

  // Extremes are taken anew only where keys say no more: half as much is read.
  void on_false_positive(std::size_t entry, std::size_t rows, std::size_t size) const {
    if (size != MinKeyByCapacity::kNoClass && !min_keys_.is_exact(entry))
      min_keys_.compute(entry, row_bounds_.key.data() + rows, row_bounds_.capacity.data() + rows);
    else if (!stale_.empty() && stale_[entry])
      recompute_block_bounds(entry, rows);
  }

  // The extremes of a block, from its rows.
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
    void resize(std::size_t size) {  // padding has no capacity, so it never passes
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
    // It is on its way from memory.
    void prefetch(std::size_t i) const {
      slotkern::prefetch(&key[i]), slotkern::prefetch(&capacity[i]), slotkern::prefetch(&performance[i]), slotkern::prefetch(&end[i]);
    }
    bool passes(std::size_t i, const Thresholds& thresholds) const {
      return key[i] <= thresholds.key && capacity[i] >= thresholds.capacity &&
             performance[i] >= thresholds.performance && end[i] >= thresholds.end;
    }
    std::uint64_t pass(std::size_t i, const Thresholds& thresholds) const {
      return detail::pass64(key.data() + i, capacity.data() + i, performance.data() + i,
                            end.data() + i, thresholds);
    }
  };

  // failed_probes_ once so many looks in a row were enough: one that is not is worth a second.
  static constexpr int kMaxProbeConfidence = -8;
  // So many blocks are themselves looked at as fast as their extremes.
  static constexpr std::size_t kMaxUnindexedBlocks = kKeyIndexThreshold == 0 ? 0 : 2;

  std::size_t slots_ = 0, blocks_ = 0;
  double origin_ = 0;
  KeyDictionary dictionary_;
  Columns row_bounds_;
  // Searches write here only where rows change, and there they take turns but for freeze().
  mutable Columns block_bounds_;
  mutable std::vector<std::uint8_t> stale_;  // by entry; empty until a row has left or shrunk
  mutable MinKeyByCapacity min_keys_;
  // Of probe_cheapest(): how often in vain lately (below zero: not so), and skipped since it was tried.
  mutable int failed_probes_ = 0, skipped_probes_ = 0;
  mutable bool frozen_ = false;              // several threads search
};

}  // namespace slotkern

// The screen: thresholds in float32 over all slots that throw out, 64 at a time, those that cannot
// be part of a better window.
//
// Four float columns a slot, each rounded to the side that keeps the slot (keys down; room,
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
#include "slotkern/base/numbers.hpp"
#include "slotkern/base/room.hpp"
#include "slotkern/slots/blocks.hpp"
#include "slotkern/slots/few_keys.hpp"
#include "slotkern/slots/least_keys.hpp"
#include "slotkern/slots/pass.hpp"

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
struct ScreenRows {
  double key[64], room[64], performance[64], end[64];

  void put(std::size_t j, double k, double r, double p, double e) {
    key[j] = k, room[j] = r, performance[j] = p, end[j] = e;
  }
  void end_at(std::size_t count) {
    for (std::size_t j = count; j < 64; ++j) clear(j);
  }
  void clear(std::size_t j) { put(j, kInfinity, -1, 0, -kInfinity); }
};

// Extremes of blocks stand by seat (slots/blocks.hpp): in a pool that has not changed, in order.
class Screen {
 public:
  // Memory for so many rows, for reset().
  void reserve(std::size_t slots, std::size_t seats) {
    const std::size_t blocks = (slots + 63) / 64;
    fine_.reserve(blocks * 64);
    coarse_.reserve((seats + 63) / 64 * 64);
    least_keys_.reserve(blocks, seats);
  }

  // Room for so many rows, the blocks of which stand on so many seats, some of them perhaps empty.
  // Searches will come between changes of rows.
  void reset(std::size_t slots, double origin, std::size_t blocks, std::size_t seats) {
    slots_ = slots;
    origin_ = origin;
    blocks_ = blocks;
    fine_.reset(slots);
    coarse_.reset(seats);
    loose_.clear();
    least_keys_.reset(blocks, seats, true);
  }

  double origin() const { return origin_; }
  // The threshold of what ends at t or later.
  float ending(double t) const { return round_down(t - origin_); }

  // Before rows come: what is known of the keys of all rows there will ever be.
  void set_kinds(const FewKeys& kinds) { kinds_ = kinds; }
  const FewKeys& kinds() const { return kinds_; }

  // reset() of no rows yet, with memory for so many: 64 at a time follow, and none will change.
  void open(std::size_t slots, double origin) {
    slots_ = slots;
    origin_ = origin;
    blocks_ = 0;
    fine_.clear_all(), coarse_.clear_all(), loose_.clear();
    least_keys_.reset(0, 0, false);
    reserve(slots, (slots + 63) / 64);
  }

  // Memory is written once, and the extremes of the block are taken while its rows are near.
  void append(const ScreenRows& rows) {
    alignas(64) float key[64], room[64], performance[64], end[64];
    round64(rows.key, key);
    detail::round64_up(rows.room, 0, room);
    detail::round64_up(rows.performance, 0, performance);
    detail::round64_up(rows.end, origin_, end);
    fine_.append(key, room, performance, end);
    if (blocks_ % 64 == 0) coarse_.resize(blocks_ + 64);
    fold(blocks_, blocks_ * 64);
    ++blocks_;
  }

  // Calls visit(row, position) for the slots at positions from..last of the order that pass, in
  // order, until it returns false. `thresholds` may tighten meanwhile: the next block sees it.
  template <class Visit>
  void each(const Blocks& order, const Thresholds& thresholds, std::size_t from, std::size_t last,
            Visit visit) const {
    each_of(order, thresholds, from, last, [](std::size_t) { return ~std::uint64_t{0}; }, visit);
  }
  // The same of the blocks that some(seats) has bits of, 64 from there on.
  template <class Some, class Visit>
  void each_of(const Blocks& order, const Thresholds& thresholds, std::size_t from,
               std::size_t last, Some some, Visit visit) const {
    if (slots_ == 0 || from > last) return;
    const std::size_t first_block = from / 64, last_block = last / 64;
    const std::size_t size = size_for(thresholds.room);
    std::uint64_t wanted = ~std::uint64_t{0} << first_block % 64;
    for (std::size_t page = first_block / 64; page <= last_block / 64; ++page) {
      poll();
      const std::size_t seats = order.empty() ? page * 64 : order.seat_at(page * 64);
      std::uint64_t blocks = pass_blocks(seats, size, thresholds) & wanted;
      for (wanted = ~std::uint64_t{0}; blocks &= some(seats); blocks &= blocks - 1) {
        const auto j = static_cast<std::size_t>(std::countr_zero(blocks));
        const std::size_t seat = seats + j, block = page * 64 + j;
        if (block > last_block) return;
        const std::size_t rows = 64 * (order.empty() ? seat : order.block(seat));
        std::uint64_t hits = fine_.pass(rows, thresholds);
        if (!hits && blocks_ > kBare) seen_in_vain(seat, rows, size);
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
  void each(const Blocks& order, const Thresholds& thresholds, std::size_t last,
            Visit visit) const {
    each(order, thresholds, 0, last, [&](std::size_t row, std::size_t) { return visit(row); });
  }

  // Whether each_cheap() may tell anything: not of few rows, nor where most keys are the same.
  bool knows_keys() const { return !least_keys_.empty() && !kinds_.few(); }

  // How often each_cheap() is worth trying: twice where it hardly ever was in vain, not at all
  // where it often was, or where several threads search: nothing may be written then.
  int tries_for_cheap() const {
    if (shared_) return 0;
    if (skipped_ < in_vain_ / 2) return ++skipped_, 0;
    skipped_ = 0;
    return in_vain_ == kTrusted ? 2 : 1;
  }

  // Calls visit(row) for those at positions up to `last` whose keys are low: about as many blocks
  // as wanted are likely to have one. Which they are is known before the first is looked at, so
  // that their keys are on their way from memory meanwhile, and expect(row) may come before. Where
  // few keys are low the other thresholds are left to visit(), which says whether it was of use.
  // Lowers thresholds.key to what it looks at; false: nothing was visited, for nothing is known of
  // keys.
  template <class Expect, class Visit>
  bool each_cheap(const Blocks& order, Thresholds& thresholds, std::size_t last,
                  std::size_t wanted, Expect expect, Visit visit) const {
    const std::size_t size = size_for(thresholds.room), last_block = last / 64;
    if (size == LeastKeys::kNone || order.empty()) return false;
    const float key = least_keys_.key_of_some(order, size, last_block, wanted);
    if (!(key < std::numeric_limits<float>::infinity())) return false;
    thresholds.key = std::min(thresholds.key, key);
    struct Ahead {
      std::size_t seat, rows;
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
        ahead[k].cheap = detail::at_most64(&fine_.key[ahead[k].rows], thresholds.key);
        if (at_most(2, ahead[k].cheap))
          each(ahead[k], expect);
        else
          for (std::size_t j = 0; j < 64; j += 16) fine_.expect(ahead[k].rows + j);
      }
      for (std::size_t k = 0; k < count; ++k) {
        if (!at_most(2, ahead[k].cheap)) ahead[k].cheap = fine_.pass(ahead[k].rows, thresholds);
        bool in_vain = true;
        each(ahead[k], [&](std::size_t row) { in_vain = !visit(row) && in_vain; });
        if (in_vain) seen_in_vain(ahead[k].seat, ahead[k].rows, size);
      }
      count = 0;
    };
    for (std::size_t page = 0; page <= last_block / 64; ++page) {
      poll();
      if (least_keys_.page_least(page) > thresholds.key) continue;
      const std::size_t seats = order.seat_at(page * 64);
      for (std::uint64_t blocks = pass_blocks(seats, size, thresholds); blocks;
           blocks &= blocks - 1) {
        const std::size_t seat = seats + static_cast<std::size_t>(std::countr_zero(blocks));
        if (page * 64 + seat - seats > last_block) break;
        const std::size_t rows = 64 * order.block(seat);
        ahead[count++] = {seat, rows, 0};
        expect_block(seat, rows);
        if (count == ahead.size()) look();
      }
    }
    look();
    return true;
  }

  // Whether that was enough. After two in vain one search goes without it, then three, and so on.
  void enough_were_cheap(bool enough) const {
    in_vain_ = enough ? std::max(std::min(in_vain_, 0) - 1, kTrusted)
                      : std::min(2 * std::max(in_vain_, 0) + 1, 63);
  }

  // Bit j: the block on the j-th seat from here may have a row with a key of at most this.
  std::uint64_t with_keys(std::size_t seats, float most) const {
    return blocks_ <= kBare ? ~std::uint64_t{0} : detail::at_most64(&coarse_.key[seats], most);
  }

  // For rows that change (pool/pool.hpp): blocks of rows come and go, rows move within one.
  void add_rows() { fine_.resize(fine_.key.size() + 64); }
  void count_blocks(std::size_t blocks) { blocks_ = blocks; }

  // For Blocks, whose seats these are.
  void resize(std::size_t seats) {
    coarse_.resize(seats);
    if (!loose_.empty()) loose_.resize(seats);
    least_keys_.resize(seats);
  }
  void move(std::size_t from, std::size_t to, std::size_t count) {
    coarse_.move(from, to, count);
    if (!loose_.empty()) std::memmove(loose_.data() + to, loose_.data() + from, count);
    least_keys_.move(from, to, count);
  }
  void clear_seat(std::size_t seat) {
    coarse_.clear(seat);
    least_keys_.forget(seat, coarse_.key[seat]);
  }

  void clear(std::size_t row) { fine_.clear(row); }
  // It will change.
  void expect(std::size_t row) const { fine_.expect(row); }

  void set(std::size_t i, double key, double room, double performance, double end) {
    fine_.put(i, kinds_.of(key), round_up(room), round_up(performance), round_up(end - origin_));
  }

  void set_end(std::size_t i, double room, double end) {
    fine_.room[i] = round_up(room), fine_.end[i] = round_up(end - origin_);
  }

  // The row has joined the block on the seat.
  void widen(std::size_t seat, std::size_t row) {
    coarse_.widen(seat, fine_, row);
    least_keys_.widen(seat, fine_.key[row], fine_.room[row]);
  }

  // A row of the block has left or holds less: its extremes may be too wide. They are taken anew by
  // the first pass that comes to the block in vain, not at each change.
  void loosen(std::size_t seat) {
    if (loose_.empty()) loose_.resize(coarse_.key.size());
    loose_[seat] = 1;
    least_keys_.loosen(seat);
  }

  // All blocks that are loose, so that passes write nothing until unshare().
  void share(const Blocks& order) const {
    shared_ = true;
    if (loose_.empty()) return;
    order.each([&](std::size_t seat) {
      if (loose_[seat]) refold(seat, 64 * order.block(seat));
    });
  }

  void unshare() const { shared_ = false; }

  void move_rows(std::size_t from, std::size_t to, std::size_t count) {
    fine_.move(from, to, count);
  }

  // The rows of a block are these now.
  void put(std::size_t seat, std::size_t rows, const ScreenRows& fresh) {
    round64(fresh.key, &fine_.key[rows]);
    detail::round64_up(fresh.room, 0, &fine_.room[rows]);
    detail::round64_up(fresh.performance, 0, &fine_.performance[rows]);
    detail::round64_up(fresh.end, origin_, &fine_.end[rows]);
    fold(seat, rows);
  }

  // The rows of a block are others.
  void fold(std::size_t seat, std::size_t rows) {
    refold(seat, rows);
    least_keys_.forget(seat, coarse_.key[seat]);
  }

 private:
  void round64(const double* keys, float* to) const {
    if (kinds_.rounded()) return detail::round64_down(keys, to);
    for (int j = 0; j < 64; ++j) to[j] = kinds_.of(keys[j]);
  }

  // Whether these are so few bits: what is told of few is read one by one.
  static bool at_most(int few, std::uint64_t bits) {
    for (; few > 0; --few) bits &= bits - 1;
    return bits == 0;
  }

  // The blocks of a page that may have rows that pass.
  std::uint64_t pass_blocks(std::size_t seats, std::size_t size,
                            const Thresholds& thresholds) const {
    std::uint64_t blocks = ~std::uint64_t{0};
    if (blocks_ <= kBare) return blocks;
    if (size != LeastKeys::kNone) blocks = least_keys_.pass(seats, size, thresholds.key);
    if (!at_most(4, blocks)) return blocks & coarse_.pass(seats, thresholds);
    std::uint64_t passing = 0;  // of a few only what is told of them is read
    for (std::uint64_t rest = blocks; rest; rest &= rest - 1) {
      const auto j = static_cast<std::size_t>(std::countr_zero(rest));
      passing |= std::uint64_t{coarse_.passes(seats + j, thresholds)} << j;
    }
    return passing;
  }

  std::size_t size_for(float room) const {
    return shared_ ? LeastKeys::kNone : least_keys_.size_for(room, coarse_.key.data());
  }

  // The keys of the block are read soon, and what is learnt from if they are read in vain.
  void expect_block(std::size_t seat, std::size_t rows) const {
    const bool learns = !least_keys_.knows(seat);
    for (std::size_t row = rows; row < rows + 64; row += 16) {
      fetch(&fine_.key[row]);
      if (learns) fetch(&fine_.room[row]);
    }
  }

  // Extremes are taken anew only where keys say no more: half as much is read.
  void seen_in_vain(std::size_t seat, std::size_t rows, std::size_t size) const {
    if (size != LeastKeys::kNone && !least_keys_.knows(seat))
      least_keys_.learn(seat, fine_.key.data() + rows, fine_.room.data() + rows);
    else if (!loose_.empty() && loose_[seat])
      refold(seat, rows);
  }

  // The extremes of a block, from its rows.
  void refold(std::size_t seat, std::size_t rows) const {
    if (!loose_.empty()) loose_[seat] = 0;
    coarse_.put(seat, detail::least64(fine_.key.data() + rows),
                detail::most64(fine_.room.data() + rows),
                detail::most64(fine_.performance.data() + rows),
                detail::most64(fine_.end.data() + rows));
  }

  struct Columns {
    LargeVector<float> key, room, performance, end;

    void reserve(std::size_t size) {
      for (LargeVector<float>* column : {&key, &room, &performance, &end})
        column->reserve(size);
    }
    void clear_all() {
      for (LargeVector<float>* column : {&key, &room, &performance, &end}) column->clear();
    }
    void append(const float* k, const float* r, const float* p, const float* e) {
      key.insert(key.end(), k, k + 64), room.insert(room.end(), r, r + 64);
      performance.insert(performance.end(), p, p + 64), end.insert(end.end(), e, e + 64);
    }
    void reset(std::size_t size) {
      clear_all();
      reserve(size);
      resize(size);
    }
    void resize(std::size_t size) {  // padding has no room, so it never passes
      key.resize(size, std::numeric_limits<float>::infinity());
      room.resize(size, -1.0f);
      performance.resize(size, 0.0f);
      end.resize(size, -std::numeric_limits<float>::infinity());
    }
    void clear(std::size_t i) {
      put(i, std::numeric_limits<float>::infinity(), -1.0f, 0.0f,
          -std::numeric_limits<float>::infinity());
    }
    void move(std::size_t from, std::size_t to, std::size_t count) {
      for (LargeVector<float>* column : {&key, &room, &performance, &end})
        std::memmove(column->data() + to, column->data() + from, count * sizeof(float));
    }
    void put(std::size_t i, float k, float r, float p, float e) {
      key[i] = k, room[i] = r, performance[i] = p, end[i] = e;
    }
    void widen(std::size_t block, const Columns& from, std::size_t i) {
      key[block] = std::min(key[block], from.key[i]);
      room[block] = std::max(room[block], from.room[i]);
      performance[block] = std::max(performance[block], from.performance[i]);
      end[block] = std::max(end[block], from.end[i]);
    }
    // It is on its way from memory.
    void expect(std::size_t i) const {
      fetch(&key[i]), fetch(&room[i]), fetch(&performance[i]), fetch(&end[i]);
    }
    bool passes(std::size_t i, const Thresholds& thresholds) const {
      return key[i] <= thresholds.key && room[i] >= thresholds.room &&
             performance[i] >= thresholds.performance && end[i] >= thresholds.end;
    }
    std::uint64_t pass(std::size_t i, const Thresholds& thresholds) const {
      return detail::pass64(key.data() + i, room.data() + i, performance.data() + i,
                            end.data() + i, thresholds);
    }
  };

  // in_vain_ once so many looks in a row were enough: one that is not is worth a second.
  static constexpr int kTrusted = -8;
  // So many blocks are themselves looked at as fast as their extremes.
  static constexpr std::size_t kBare = kFewBlocks == 0 ? 0 : 2;

  std::size_t slots_ = 0, blocks_ = 0;
  double origin_ = 0;
  FewKeys kinds_;
  Columns fine_;
  // Searches write here only where rows change, and there they take turns but for share().
  mutable Columns coarse_;
  mutable std::vector<std::uint8_t> loose_;  // by seat; empty until a row has left or shrunk
  mutable LeastKeys least_keys_;
  // Of each_cheap(): how often in vain lately (below zero: not so), and skipped since it was tried.
  mutable int in_vain_ = 0, skipped_ = 0;
  mutable bool shared_ = false;              // several threads search
};

}  // namespace slotkern

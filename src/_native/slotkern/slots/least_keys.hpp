// Of each block of 64 rows the least key among those that have some room, for some sizes of it.
//
// The extremes of a block say little where its cheapest row is too short for what is asked, and
// its longest too dear: blocks of many nodes that are free at one time are looked at in vain
// again and again. What such a look has seen is remembered: what is known for the next size of
// room below the one asked for bounds the keys that matter.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "slotkern/base/numbers.hpp"
#include "slotkern/slots/blocks.hpp"
#include "slotkern/slots/pass.hpp"

// Of so few blocks nothing is remembered. Tests, whose pools are small, remember all.
#if !defined(SLOTKERN_FEW_BLOCKS)
#define SLOTKERN_FEW_BLOCKS 512
#endif

namespace slotkern {

inline constexpr std::size_t kFewBlocks = SLOTKERN_FEW_BLOCKS;

// By seat of the blocks (slots/blocks.hpp).
class LeastKeys {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Nothing is known of so many blocks, which stand on so many seats.
  void reset(std::size_t blocks, std::size_t seats, bool wanted) {
    first_ = 0;
    resize_all(wanted && blocks > kFew ? seats : 0);
  }
  bool empty() const { return known_.empty(); }
  void reserve(std::size_t blocks, std::size_t seats) {
    if (blocks <= kFew) return;
    known_.reserve(seats);
    for (auto& keys : least_) keys.reserve(seats);
  }
  void resize(std::size_t seats) {
    if (!known_.empty()) resize_all(seats);
  }
  void move(std::size_t from, std::size_t to, std::size_t count) {
    if (known_.empty()) return;
    std::memmove(known_.data() + to, known_.data() + from, count);
    for (auto& keys : least_)
      std::memmove(keys.data() + to, keys.data() + from, count * sizeof(float));
  }

  // Which size serves those who ask for this room; kNone: none does. `keys`: the least of the
  // blocks, whatever room it has.
  std::size_t size_for(float room, const float* keys) {
    if (known_.empty() || !(room > 0)) return kNone;
    const std::int32_t size = size_of(room);
    if (size < 1) return kNone;
    if (size < first_ || first_ == 0) {  // they begin lower from now on
      constexpr auto sizes = static_cast<std::int32_t>(kSizes);
      first_ = std::clamp(size - sizes / 2, 1, size_of(kNothing) - sizes);
      for (std::size_t k = 0; k < kSizes; ++k)
        sizes_[k] = std::bit_cast<float>((first_ + static_cast<std::int32_t>(k)) << kShift);
      begin_anew(keys);
    }
    return std::min(static_cast<std::size_t>(size - first_), kSizes - 1);
  }

  // Bit j: the block on the j-th seat from here may have a row of that room and a key of at most
  // this.
  std::uint64_t pass(std::size_t seats, std::size_t size, float key) const {
    return detail::at_most64(&least_[size][seats], key);
  }

  bool knows(std::size_t seat) const { return known_[seat] != 0; }
  // Of these 64 rows none was of use.
  void learn(std::size_t seat, const float* key, const float* room) {
    known_[seat] = 1;
    const float largest = detail::least_with64(key, room, sizes_.back());
    std::array<float, kSizes> least;
    least.fill(kNothing);
    least.back() = largest;
    // Few are cheaper than what has room for all.
    for (std::uint64_t rows = detail::at_most64(key, largest); rows; rows &= rows - 1) {
      const int j = std::countr_zero(rows);
      const std::int32_t size = size_of(room[j]) - first_;
      if (size < 0) continue;
      float& of_size = least[std::min(static_cast<std::size_t>(size), kSizes - 1)];
      of_size = std::min(of_size, key[j]);
    }
    for (std::size_t k = kSizes; k-- > 0;) {
      if (k + 1 < kSizes) least[k] = std::min(least[k], least[k + 1]);
      least_[k][seat] = least[k];
    }
  }

  // A row of the block has come or grown. Keys do not fall with the size: most often one is read.
  void widen(std::size_t seat, float key, float room) {
    if (known_.empty()) return;
    std::size_t k = kSizes;
    while (k > 0 && !(sizes_[k - 1] <= room)) --k;
    for (; k > 0 && key < least_[k - 1][seat]; --k) least_[k - 1][seat] = key;
  }
  // One has left or shrunk.
  void loosen(std::size_t seat) {
    if (!known_.empty()) known_[seat] = 0;
  }
  // Its rows are others, none of a lower key; of an infinite one: there are none.
  void forget(std::size_t seat, float key) {
    loosen(seat);
    if (!known_.empty())
      for (auto& keys : least_) keys[seat] = key;
  }

  // A key that rows of about so many blocks up to the last one are likely to have at most: blocks
  // stand in groups, four or more for each that is wanted, and few groups have two of them.
  // Infinite where there is none. Afterwards page_least() is of these pages.
  float key_of_some(const Blocks& order, std::size_t size, std::size_t last_block,
                    std::size_t wanted) {
    const std::size_t pages = last_block / 64 + 1, sets = 8 * (wanted / 16 + 1);
    groups_.assign(8 * sets, kNothing);
    pages_.resize(pages);
    for (std::size_t page = 0, set = 0; page < pages; ++page, set = set + 1 < sets ? set + 1 : 0) {
      const float* keys = &least_[size][order.seat_at(64 * page)];
      std::array<float, 64> begun;
      if (page + 1 == pages) {
        begun.fill(kNothing);
        std::copy(keys, keys + last_block % 64 + 1, begun.begin());
        keys = begun.data();
      }
      pages_[page] = detail::least_of_lanes64(keys, &groups_[8 * set]);
    }
    return detail::about_nth(groups_, wanted);
  }
  float page_least(std::size_t page) const { return pages_[page]; }

 private:
  // So many from one power of two to the next, and in all.
  static constexpr std::size_t kShift = 20, kSizes = 16, kFew = kFewBlocks;
  static constexpr float kNothing = std::numeric_limits<float>::infinity();

  static std::int32_t size_of(float room) { return std::bit_cast<std::int32_t>(room) >> kShift; }
  void resize_all(std::size_t seats) {
    known_.resize(seats, 0);
    for (auto& keys : least_) keys.resize(seats, kNothing);
  }
  void begin_anew(const float* keys) {
    std::fill(known_.begin(), known_.end(), std::uint8_t{0});
    for (auto& least : least_) std::copy(keys, keys + least.size(), least.begin());
  }

  std::int32_t first_ = 0;              // of the sizes; 0: nobody has asked yet
  std::array<float, kSizes> sizes_{};
  std::array<std::vector<float>, kSizes> least_;  // [size][seat]
  std::vector<float> groups_, pages_;   // of key_of_some()
  std::vector<std::uint8_t> known_;     // [seat]: what is said of it is no less than it may be
};

}  // namespace slotkern

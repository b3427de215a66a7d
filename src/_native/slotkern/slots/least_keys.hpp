// Of each block of 64 rows the least key among those that have some room, for a few sizes of it.
//
// The extremes of a block say little where its cheapest row is too short for what is asked, and
// its longest too dear: blocks of many nodes that are free at one time are looked at in vain
// again and again. What such a look has seen is remembered: of the next size of room below the
// one that was asked for, so that it serves others that ask for about as much.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/numbers.hpp"

// Of so few blocks nothing is remembered. Tests, whose pools are small, remember all.
#if !defined(SLOTKERN_FEW_BLOCKS)
#define SLOTKERN_FEW_BLOCKS 512
#endif

namespace slotkern {

namespace detail {

// The least of the 64 keys whose room is `enough`.
SLOTKERN_NARROW_CLONES static inline float least_with_room(const float* key, const float* room,
                                                           float enough) {
  constexpr float none = std::numeric_limits<float>::infinity();
  float lane[8];
  for (float& x : lane) x = none;
  for (int j = 0; j < 64; j += 8)
    for (int k = 0; k < 8; ++k) {
      const float x = room[j + k] >= enough ? key[j + k] : none;
      lane[k] = x < lane[k] ? x : lane[k];
    }
  for (float x : lane) lane[0] = std::min(lane[0], x);
  return lane[0];
}

}  // namespace detail

class LeastKeys {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // Nothing is known of so many blocks.
  void reset(std::size_t blocks, bool wanted) {
    first_ = 0;
    known_.assign(wanted && blocks > kFew ? blocks : 0, 0);
    for (auto& keys : least_) keys.assign(known_.size(), kUnknown);
  }
  void reserve(std::size_t blocks) {
    if (blocks <= kFew) return;
    known_.reserve(blocks);
    for (auto& keys : least_) keys.reserve(blocks);
  }
  void add_block() {
    if (known_.empty()) return;
    known_.push_back(0);
    for (auto& keys : least_) keys.push_back(kUnknown);
  }

  // Which size serves those who ask for this room; kNone: none does.
  std::size_t size_for(float room) {
    if (known_.empty() || !(room > 0)) return kNone;
    const std::int32_t size = size_of(room);
    if (first_ == 0) first_ = std::max(size - static_cast<std::int32_t>(kSizes / 2), 1);
    if (size < first_) return kNone;
    return std::min(static_cast<std::size_t>(size - first_), kSizes - 1);
  }

  // False: no row of the block has that room and a key of at most this.
  bool pass(std::size_t block, std::size_t size, float key) const {
    return least_[size][block] <= key;
  }

  // Nothing has passed.
  void learn(std::size_t block, std::size_t size, const float* key, const float* room) {
    if (known_[block] >> size & 1) return;
    known_[block] |= static_cast<std::uint8_t>(1 << size);
    least_[size][block] = detail::least_with_room(key, room, room_of(size));
  }

  // A row of the block has come or grown.
  void widen(std::size_t block, float key, float room) {
    if (known_.empty()) return;
    for (std::size_t size = 0; size < kSizes && room_of(size) <= room; ++size)
      least_[size][block] = std::min(least_[size][block], key);
  }
  // One has left or shrunk.
  void loosen(std::size_t block) {
    if (!known_.empty()) known_[block] = 0;
  }
  // Its rows are others.
  void forget(std::size_t block) {
    loosen(block);
    if (!known_.empty())
      for (auto& keys : least_) keys[block] = kUnknown;
  }

 private:
  static constexpr std::size_t kSizes = 8, kFew = SLOTKERN_FEW_BLOCKS;
  static constexpr float kUnknown = -std::numeric_limits<float>::infinity();

  // Four sizes from one power of two to the next.
  static std::int32_t size_of(float room) { return std::bit_cast<std::int32_t>(room) >> 21; }
  float room_of(std::size_t size) const {
    return std::bit_cast<float>((first_ + static_cast<std::int32_t>(size)) << 21);
  }

  std::int32_t first_ = 0;                        // of the sizes; 0: nobody has asked yet
  std::array<std::vector<float>, kSizes> least_;  // by block
  std::vector<std::uint8_t> known_;               // by block: bit k: as it is, of the k-th size
};

}  // namespace slotkern

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

  // Which size serves those who ask for this room; kNone: none does.
  std::size_t size_for(float room) {
    if (known_.empty() || !(room > 0)) return kNone;
    const std::int32_t size = size_of(room);
    if (size < first_ || first_ == 0) {  // they begin lower from now on
      first_ = std::max(size - static_cast<std::int32_t>(kSizes / 2), 1);
      for (std::size_t k = 0; k < kSizes; ++k)
        sizes_[k] = std::bit_cast<float>((first_ + static_cast<std::int32_t>(k)) << kShift);
      begin_anew();
    }
    return std::min(static_cast<std::size_t>(size - first_), kSizes - 1);
  }

  // Bit j: the block on the j-th seat from here may have a row of that room and a key of at most
  // this.
  std::uint64_t pass(std::size_t seats, std::size_t size, float key) const {
    return detail::at_most64(&least_[size][seats], key);
  }

  // Nothing of these 64 rows has passed.
  void learn(std::size_t seat, const float* key, const float* room) {
    if (known_[seat]) return;
    known_[seat] = 1;
    std::array<float, kSizes + 1> least;  // of rooms below the first size too, then by size
    least.fill(std::numeric_limits<float>::infinity());
    for (std::size_t j = 0; j < 64; ++j) {
      const std::int32_t size = size_of(room[j]) - first_ + 1, most = kSizes;
      float& of_size = least[static_cast<std::size_t>(std::clamp(size, 0, most))];
      of_size = std::min(of_size, key[j]);
    }
    for (std::size_t k = kSizes; k-- > 0; least[k] = std::min(least[k], least[k + 1]))
      least_[k][seat] = least[k + 1];
  }

  // A row of the block has come or grown.
  void widen(std::size_t seat, float key, float room) {
    if (known_.empty()) return;
    for (std::size_t k = 0; k < kSizes && sizes_[k] <= room; ++k)
      least_[k][seat] = std::min(least_[k][seat], key);
  }
  // One has left or shrunk.
  void loosen(std::size_t seat) {
    if (!known_.empty()) known_[seat] = 0;
  }
  // Its rows are others.
  void forget(std::size_t seat) {
    loosen(seat);
    if (!known_.empty())
      for (auto& keys : least_) keys[seat] = kUnknown;
  }

 private:
  // So many from one power of two to the next, and in all.
  static constexpr std::size_t kShift = 20, kSizes = 16, kFew = kFewBlocks;
  static constexpr float kUnknown = -std::numeric_limits<float>::infinity();

  static std::int32_t size_of(float room) { return std::bit_cast<std::int32_t>(room) >> kShift; }
  void resize_all(std::size_t seats) {
    known_.resize(seats, 0);
    for (auto& keys : least_) keys.resize(seats, kUnknown);
  }
  void begin_anew() {
    std::fill(known_.begin(), known_.end(), std::uint8_t{0});
    for (auto& keys : least_) std::fill(keys.begin(), keys.end(), kUnknown);
  }

  std::int32_t first_ = 0;              // of the sizes; 0: nobody has asked yet
  std::array<float, kSizes> sizes_{};
  std::array<std::vector<float>, kSizes> least_;  // [size][seat]
  std::vector<std::uint8_t> known_;     // [seat]: what is said of it is no less than it may be
};

}  // namespace slotkern

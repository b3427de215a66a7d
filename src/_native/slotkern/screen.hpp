// The screen: a float32 sieve over all slots that throws out, 64 at a time, those that
// cannot be part of a better window.
//
// Four float columns a slot, each rounded to the side that keeps the slot (keys down; room,
// performance and end up), and the same four as extremes of every block of 64 slots, so that
// one pass over 64 blocks looks at 4,096 slots. The screen only ever keeps too much: every
// slot it passes is tested again in float64 with the expressions that define the answer.
// Cost of a pass: O(m / 64) for the blocks, then the blocks that are left; 16 bytes a slot.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "slots.hpp"

#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
#define SLOTKERN_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define SLOTKERN_CLONES
#endif

namespace slotkern {

// Pre-filters work on rearranged expressions; this relative margin keeps them on the safe side.
inline constexpr double kMargin = 1e-9;

// The largest float not above x: one step of the bit pattern where rounding went up.
inline float round_down(double x) {
  const float f = static_cast<float>(x);
  if (!(f > x)) return f;
  const auto bits = std::bit_cast<std::int32_t>(f);
  if (f == 0) return -std::numeric_limits<float>::denorm_min();
  return std::bit_cast<float>(bits > 0 ? bits - 1 : bits + 1);
}

inline float round_up(double x) { return -round_down(-x); }

// What a slot must have to stay.
struct Sieve {
  float key = std::numeric_limits<float>::infinity();  // at most
  float room = 0;                                      // at least, as are the next two
  float performance = 0;
  float end = -std::numeric_limits<float>::infinity();
};

namespace detail {

// Bit j of the result: slot j passes. A leaf loop of its own, for the per-CPU clones.
SLOTKERN_CLONES [[maybe_unused]] static std::uint64_t pass64(const float* __restrict key,
                                                            const float* __restrict room,
                                                            const float* __restrict performance,
                                                            const float* __restrict end,
                                                            const Sieve& sieve) {
  alignas(64) std::uint8_t flag[64];
  const float k = sieve.key, r = sieve.room, p = sieve.performance, e = sieve.end;
  for (int j = 0; j < 64; ++j)
    flag[j] = static_cast<std::uint8_t>((key[j] <= k) & (room[j] >= r) & (performance[j] >= p) &
                                        (end[j] >= e));
  std::uint64_t bits = 0;
  for (int w = 0; w < 8; ++w) {  // eight flags of 0 or 1 to eight bits
    std::uint64_t word;
    std::memcpy(&word, flag + 8 * w, 8);
    if constexpr (std::endian::native == std::endian::little)
      bits |= (word * 0x0102040810204080u >> 56) << (8 * w);
    else
      for (int j = 0; j < 8; ++j) bits |= std::uint64_t{flag[8 * w + j]} << (8 * w + j);
  }
  return bits;
}

}  // namespace detail

class Screen {
 public:
  void reset(std::size_t slots) {
    slots_ = slots;
    const std::size_t blocks = (slots + 63) / 64;
    fine_.reset(blocks * 64);
    coarse_.reset((blocks + 63) / 64 * 64);
  }

  void put(std::size_t i, double key, double room, double performance, double end) {
    fine_.put(i, round_down(key), round_up(room), round_up(performance), round_up(end));
    coarse_.widen(i / 64, fine_, i);
  }

  // Calls visit(i) for the slots 0..last that pass, in order, until it returns false.
  // `sieve` may tighten meanwhile: the next block sees it.
  template <class Visit>
  void each(const Sieve& sieve, std::size_t last, Visit visit) const {
    if (slots_ == 0) return;
    const std::size_t last_block = last / 64;
    for (std::size_t base = 0; base <= last_block; base += 64) {
      for (std::uint64_t blocks = coarse_.pass(base, sieve); blocks; blocks &= blocks - 1) {
        const std::size_t block = base + static_cast<std::size_t>(std::countr_zero(blocks));
        if (block > last_block) return;
        for (std::uint64_t hits = fine_.pass(block * 64, sieve); hits; hits &= hits - 1) {
          const std::size_t i = block * 64 + static_cast<std::size_t>(std::countr_zero(hits));
          if (i > last || !visit(i)) return;
        }
      }
    }
  }

 private:
  struct Columns {
    std::vector<float> key, room, performance, end;

    void reset(std::size_t size) {  // padding has no room, so it never passes
      key.assign(size, std::numeric_limits<float>::infinity());
      room.assign(size, -1.0f);
      performance.assign(size, 0.0f);
      end.assign(size, -std::numeric_limits<float>::infinity());
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
    std::uint64_t pass(std::size_t i, const Sieve& sieve) const {
      return detail::pass64(key.data() + i, room.data() + i, performance.data() + i,
                            end.data() + i, sieve);
    }
  };

  std::size_t slots_ = 0;
  Columns fine_, coarse_;
};

}  // namespace slotkern

// Which of 64 rows of the screen pass four thresholds.
//
// The screen holds each number as the upper half of its float, in the same order and within 0.8%:
// what a pass costs is to read them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "slotkern/base/numbers.hpp"

#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
#include <immintrin.h>
#endif

namespace slotkern {

// Equal halves compare as equal, others as the floats that they were made of.
using Half = std::int16_t;

// The largest half not above x, and the least one not below.
inline Half half_down(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x + 0.0f);  // negative zero becomes zero
  return static_cast<Half>((bits ^ (bits >> 31 & 0x7fffffff)) >> 16);
}
inline Half half_up(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x + 0.0f);
  return static_cast<Half>(((bits ^ (bits >> 31 & 0x7fffffff)) + 0xffff) >> 16);
}

// What a slot must have to stay.
struct Thresholds {
  float key = std::numeric_limits<float>::infinity();  // at most
  float room = 0;                                      // at least, as are the next two
  float performance = 0;
  float end = -std::numeric_limits<float>::infinity();
};

namespace detail {

// Bit j of the result: row j passes.
static inline std::uint64_t pass_any(const Half* __restrict key, const Half* __restrict room,
                                   const Half* __restrict performance, const Half* __restrict end,
                                   const Thresholds& least) {
  alignas(64) std::uint8_t flag[64];
  const Half k = half_down(least.key), r = half_up(least.room), p = half_up(least.performance),
             e = half_up(least.end);
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

#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
// The same in instructions that compilers do not find: comparisons that give bits.
__attribute__((target("avx2")))
static inline std::uint64_t pass_avx2(const Half* __restrict key, const Half* __restrict room,
                                   const Half* __restrict performance, const Half* __restrict end,
                                   const Thresholds& least) {
  const __m256i k = _mm256_set1_epi16(half_down(least.key)),
                r = _mm256_set1_epi16(half_up(least.room)),
                p = _mm256_set1_epi16(half_up(least.performance)),
                e = _mm256_set1_epi16(half_up(least.end));
  const auto keys = reinterpret_cast<const __m256i*>(key),
             rooms = reinterpret_cast<const __m256i*>(room),
             performances = reinterpret_cast<const __m256i*>(performance),
             ends = reinterpret_cast<const __m256i*>(end);
  std::uint64_t fails = 0;
  for (int j = 0; j < 2; ++j) {
    __m256i both[2];
    for (int h = 0; h < 2; ++h) {
      const int i = 2 * j + h;
      both[h] = _mm256_or_si256(
          _mm256_or_si256(_mm256_cmpgt_epi16(_mm256_loadu_si256(keys + i), k),
                          _mm256_cmpgt_epi16(r, _mm256_loadu_si256(rooms + i))),
          _mm256_or_si256(_mm256_cmpgt_epi16(p, _mm256_loadu_si256(performances + i)),
                          _mm256_cmpgt_epi16(e, _mm256_loadu_si256(ends + i))));
    }
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(both[0], both[1]), 0xd8);
    fails |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes))} << 32 * j;
  }
  return ~fails;
}

__attribute__((target("avx512bw")))
static inline std::uint64_t pass_avx512(const Half* __restrict key, const Half* __restrict room,
                                   const Half* __restrict performance, const Half* __restrict end,
                                   const Thresholds& least) {
  const __m512i k = _mm512_set1_epi16(half_down(least.key)),
                r = _mm512_set1_epi16(half_up(least.room)),
                p = _mm512_set1_epi16(half_up(least.performance)),
                e = _mm512_set1_epi16(half_up(least.end));
  std::uint64_t bits = 0;
  for (int j = 0; j < 64; j += 32) {
    __mmask32 pass = _mm512_cmple_epi16_mask(_mm512_loadu_si512(key + j), k);
    pass = _mm512_mask_cmpge_epi16_mask(pass, _mm512_loadu_si512(room + j), r);
    pass = _mm512_mask_cmpge_epi16_mask(pass, _mm512_loadu_si512(performance + j), p);
    pass = _mm512_mask_cmpge_epi16_mask(pass, _mm512_loadu_si512(end + j), e);
    bits |= std::uint64_t{pass} << j;
  }
  return bits;
}
#endif

SLOTKERN_INLINE std::uint64_t pass64(const Half* key, const Half* room, const Half* performance,
                                     const Half* end, const Thresholds& least) {
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
  if (__builtin_cpu_supports("avx512bw")) return pass_avx512(key, room, performance, end, least);
  if (__builtin_cpu_supports("avx2")) return pass_avx2(key, room, performance, end, least);
#endif
  return pass_any(key, room, performance, end, least);
}

}  // namespace detail

}  // namespace slotkern

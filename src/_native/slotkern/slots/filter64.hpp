// SIMD tests of 64 rows of a zone map against thresholds, and reductions of 64 numbers.
//
// The cost is memory bandwidth: performance and end are read only if key and capacity let a row
// pass. Columns stay 32-bit floats: a 16-bit float of the same range (bfloat16) resolves only 2^-7
// = 0.8%, enough for prices but not for times.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "slotkern/base/numbers.hpp"

#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
#include <immintrin.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace slotkern {

// Thresholds that a slot must meet to pass.
struct Thresholds {
  float key = std::numeric_limits<float>::infinity();  // upper limit
  float capacity = 0;  // lower limit, like the next two
  float performance = 0;
  float end = -std::numeric_limits<float>::infinity();
};

namespace detail {

// Portable version: bit j of the result is set if row j passes.
inline std::uint64_t pass_any(const float* __restrict key, const float* __restrict capacity,
                              const float* __restrict performance, const float* __restrict end,
                              const Thresholds& thresholds) {
  alignas(64) std::uint8_t flag[64];
  const float k = thresholds.key, r = thresholds.capacity, p = thresholds.performance,
              e = thresholds.end;
  for (int j = 0; j < 64; ++j)
    flag[j] = static_cast<std::uint8_t>((key[j] <= k) & (capacity[j] >= r) & (performance[j] >= p) &
                                        (end[j] >= e));
  std::uint64_t bits = 0;
  for (int w = 0; w < 8; ++w) {  // packs eight 0/1 bytes into eight bits
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
// The same with compare-to-mask instructions, which compilers do not generate from the loop.
__attribute__((target("avx2"))) inline std::uint64_t pass_avx2(
    const float* key, const float* capacity, const float* performance, const float* end,
    const Thresholds& thresholds) {
  const __m256 k = _mm256_set1_ps(thresholds.key), r = _mm256_set1_ps(thresholds.capacity),
               p = _mm256_set1_ps(thresholds.performance), e = _mm256_set1_ps(thresholds.end);
  std::uint64_t bits = 0, rest = 0;
  for (int j = 0; j < 64; j += 8) {
    const __m256 pass = _mm256_and_ps(_mm256_cmp_ps(_mm256_loadu_ps(key + j), k, _CMP_LE_OQ),
                                      _mm256_cmp_ps(_mm256_loadu_ps(capacity + j), r, _CMP_GE_OQ));
    bits |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_ps(pass))} << j;
  }
  if (!bits) return 0;
  for (int j = 0; j < 64; j += 8) {
    const __m256 pass =
        _mm256_and_ps(_mm256_cmp_ps(_mm256_loadu_ps(performance + j), p, _CMP_GE_OQ),
                      _mm256_cmp_ps(_mm256_loadu_ps(end + j), e, _CMP_GE_OQ));
    rest |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_ps(pass))} << j;
  }
  return bits & rest;
}

__attribute__((target("avx512f"))) inline std::uint64_t pass_avx512(const float* key,
                                                                    const float* capacity,
                                                                    const float* performance,
                                                                    const float* end,
                                                                    const Thresholds& thresholds) {
  const __m512 k = _mm512_set1_ps(thresholds.key), r = _mm512_set1_ps(thresholds.capacity),
               p = _mm512_set1_ps(thresholds.performance), e = _mm512_set1_ps(thresholds.end);
  std::uint64_t bits = 0, rest = 0;
  for (int j = 0; j < 64; j += 16) {
    const __mmask16 pass = _mm512_cmp_ps_mask(_mm512_loadu_ps(key + j), k, _CMP_LE_OQ);
    bits |= std::uint64_t{_mm512_mask_cmp_ps_mask(pass, _mm512_loadu_ps(capacity + j), r,
                                                  _CMP_GE_OQ)}
            << j;
  }
  if (!bits) return 0;
  for (int j = 0; j < 64; j += 16) {
    const __mmask16 pass = _mm512_cmp_ps_mask(_mm512_loadu_ps(performance + j), p, _CMP_GE_OQ);
    rest |= std::uint64_t{_mm512_mask_cmp_ps_mask(pass, _mm512_loadu_ps(end + j), e, _CMP_GE_OQ)}
            << j;
  }
  return bits & rest;
}
#endif

SLOTKERN_INLINE std::uint64_t pass64(const float* key, const float* capacity,
                                     const float* performance, const float* end,
                                     const Thresholds& thresholds) {
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
  if (__builtin_cpu_supports("avx512f"))
    return pass_avx512(key, capacity, performance, end, thresholds);
  if (__builtin_cpu_supports("avx2")) return pass_avx2(key, capacity, performance, end, thresholds);
#endif
  return pass_any(key, capacity, performance, end, thresholds);
}

// Bit j: bytes[j] >= least.
inline std::uint64_t mask_at_least64(const std::uint8_t* bytes, std::uint8_t least) {
  std::uint64_t bits = 0;
#if defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(least));
  for (int j = 0; j < 64; j += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + j));
    const int some = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(x, wanted), x));
    bits |= std::uint64_t{static_cast<std::uint32_t>(some)} << j;
  }
#else
  for (int j = 0; j < 64; ++j) bits |= std::uint64_t{bytes[j] >= least} << j;
#endif
  return bits;
}

// Bit j: x[j] <= most.
inline std::uint64_t mask_at_most64(const float* x, float most) {
  std::uint64_t bits = 0;
#if defined(__SSE2__)
  const __m128 limit = _mm_set1_ps(most);
  for (int j = 0; j < 64; j += 4) {
    const int some = _mm_movemask_ps(_mm_cmple_ps(_mm_loadu_ps(x + j), limit));
    bits |= std::uint64_t{static_cast<std::uint32_t>(some)} << j;
  }
#else
  for (int j = 0; j < 64; ++j) bits |= std::uint64_t{x[j] <= most} << j;
#endif
  return bits;
}

#if defined(__SSE2__)
inline float least_lane(__m128 x) {
  x = _mm_min_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_min_ss(x, _mm_shuffle_ps(x, x, 1)));
}
inline float most_lane(__m128 x) {
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}
#endif

// Minimum and maximum of 64 floats.
inline float min64(const float* x) {
#if defined(__SSE2__)
  __m128 even = _mm_loadu_ps(x), odd = _mm_loadu_ps(x + 4);
  for (int j = 8; j < 64; j += 8)
    even = _mm_min_ps(even, _mm_loadu_ps(x + j)), odd = _mm_min_ps(odd, _mm_loadu_ps(x + j + 4));
  return least_lane(_mm_min_ps(even, odd));
#else
  return *std::min_element(x, x + 64);
#endif
}
inline float max64(const float* x) {
#if defined(__SSE2__)
  __m128 even = _mm_loadu_ps(x), odd = _mm_loadu_ps(x + 4);
  for (int j = 8; j < 64; j += 8)
    even = _mm_max_ps(even, _mm_loadu_ps(x + j)), odd = _mm_max_ps(odd, _mm_loadu_ps(x + j + 4));
  return most_lane(_mm_max_ps(even, odd));
#else
  return *std::max_element(x, x + 64);
#endif
}

}  // namespace detail

}  // namespace slotkern

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
#include <vector>

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

#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
__attribute__((target("avx2"))) inline float least_of_lanes64_avx2(const float* x, float* lanes) {
  __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + 8), c = _mm256_loadu_ps(x + 16),
         d = _mm256_loadu_ps(x + 24);
  a = _mm256_min_ps(a, _mm256_loadu_ps(x + 32)), b = _mm256_min_ps(b, _mm256_loadu_ps(x + 40));
  c = _mm256_min_ps(c, _mm256_loadu_ps(x + 48)), d = _mm256_min_ps(d, _mm256_loadu_ps(x + 56));
  a = _mm256_min_ps(_mm256_min_ps(a, b), _mm256_min_ps(c, d));
  _mm256_storeu_ps(lanes, _mm256_min_ps(a, _mm256_loadu_ps(lanes)));
  __m128 e = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  e = _mm_min_ps(e, _mm_movehl_ps(e, e));
  return _mm_cvtss_f32(_mm_min_ss(e, _mm_shuffle_ps(e, e, 1)));
}
#endif

// Minimum of 64 floats; also lowers each of 8 lane minima, lane j over the elements j mod 8.
inline float min_of_lanes64(const float* x, float* lanes) {
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
  if (__builtin_cpu_supports("avx2")) return least_of_lanes64_avx2(x, lanes);
#endif
#if defined(__SSE2__)
  __m128 low = _mm_loadu_ps(x), high = _mm_loadu_ps(x + 4);
  for (int j = 8; j < 64; j += 8)
    low = _mm_min_ps(low, _mm_loadu_ps(x + j)), high = _mm_min_ps(high, _mm_loadu_ps(x + j + 4));
  _mm_storeu_ps(lanes, _mm_min_ps(low, _mm_loadu_ps(lanes)));
  _mm_storeu_ps(lanes + 4, _mm_min_ps(high, _mm_loadu_ps(lanes + 4)));
  return least_lane(_mm_min_ps(low, high));
#else
  for (int j = 0; j < 64; ++j) lanes[j % 8] = std::min(lanes[j % 8], x[j]);
  return *std::min_element(x, x + 64);
#endif
}

// A value that about n of the floats do not exceed: at least n (or all finite ones, if fewer), at
// most n + n/4 except for ties. The size of x must be a multiple of 64 and its elements positive.
// Infinite if no element is finite. Bisects the bit pattern.
inline float approximate_nth(const std::vector<float>& x, std::size_t n) {
  const auto count = [&x](std::int32_t bits) {
    int at_most = 0;
    for (std::size_t i = 0; i < x.size(); i += 64)
      at_most += std::popcount(mask_at_most64(x.data() + i, std::bit_cast<float>(bits)));
    return static_cast<std::size_t>(at_most);
  };
  std::int32_t low = 0, high = std::bit_cast<std::int32_t>(std::numeric_limits<float>::max());
  n = std::min(n, count(high));
  if (n == 0) return std::numeric_limits<float>::infinity();
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    const std::size_t found = count(middle);
    (found < n ? low : high) = middle;
    if (found >= n && found <= n + n / 4) break;
  }
  return std::bit_cast<float>(high);
}

// Minimum key of the rows among 64 with at least this capacity; infinite if there is none.
inline float min_key_with_capacity64(const float* key, const float* capacity, float wanted) {
  constexpr float none = std::numeric_limits<float>::infinity();
#if defined(__SSE2__)
  const __m128 limit = _mm_set1_ps(wanted), infinite = _mm_set1_ps(none);
  __m128 least = infinite;
  for (int j = 0; j < 64; j += 4) {
    const __m128 fits = _mm_cmpge_ps(_mm_loadu_ps(capacity + j), limit);
    least = _mm_min_ps(least, _mm_or_ps(_mm_and_ps(fits, _mm_loadu_ps(key + j)),
                                        _mm_andnot_ps(fits, infinite)));
  }
  return least_lane(least);
#else
  float least = none;
  for (int j = 0; j < 64; ++j) least = std::min(least, capacity[j] >= wanted ? key[j] : none);
  return least;
#endif
}

}  // namespace detail

}  // namespace slotkern

// Floating-point rules of all layers: margins of pre-filters, directed rounding, and functions
// compiled once per kind of processor.
//
// The expression that defines an answer exists in one place. Code that rearranges it may only
// reject candidates, and only beyond these margins.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Function multiversioning. Write `SLOTKERN_CLONES static inline ...`, the form that compilers
// accept and the build tests. NARROW omits 512-bit vectors, which slow some processors down for a
// while: loops over a few rows between other work lose more than they gain.
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
#define SLOTKERN_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define SLOTKERN_NARROW_CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define SLOTKERN_CLONES
#define SLOTKERN_NARROW_CLONES
#endif

// INLINE: a few lines on the hot path, for which a call would cost as much as the lines. NOINLINE:
// rare code that would enlarge its hot caller.
#if defined(__GNUC__)
#define SLOTKERN_INLINE __attribute__((always_inline)) inline
#define SLOTKERN_NOINLINE __attribute__((noinline))
#else
#define SLOTKERN_INLINE inline
#define SLOTKERN_NOINLINE
#endif

namespace slotkern {

// Name of the instruction set of the clones in use; NARROW clones stop at x86-64-v3, and the zone
// map tests for AVX2 or AVX-512F only (slots/filter64.hpp).
inline const char* clones_in_use() {
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
  // Tests the features of each level, since not all compilers accept the names of levels here.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "x86-64-v4";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return "x86-64-v3";
  return "any x86-64";
#else
  return "one kind of processor";
#endif
}

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Relative margin that keeps pre-filters, which use rearranged expressions, on the safe side.
inline constexpr double kMargin = 1e-9;

// Largest loss of sums of products by underflow; added to totals before they become limits of keys.
inline constexpr double kUnderflow = 0x1p-1000;

// True if t + d > t, for t and for all times nearer to zero. A tie rounds to even: half an ulp is
// lost at even times, although t itself may be odd.
inline bool clock_moves(double t, double d) {
  const double size = std::fabs(t);
  if (d > size * 0x1p-52) return true;
  return d > 0.5 * (std::nextafter(size, kInfinity) - size);
}

// Largest float not above x. Branch-free, because the direction of rounding is unpredictable: steps
// the bit pattern down if rounding went up. Negative zero steps to the largest float below zero.
inline float round_down(double x) {
  const float f = static_cast<float>(x);
  const auto bits = std::bit_cast<std::int32_t>(f);
  return std::bit_cast<float>(bits - (f > x) * (bits >> 31 | 1));
}

inline float round_up(double x) { return -round_down(-x); }

// Largest float below x.
inline float next_below(float x) {
  return std::nextafter(x, -std::numeric_limits<float>::infinity());
}

}  // namespace slotkern

// Rules of floating point that all rooms share: margins of pre-filters, rounding to the side
// that keeps a slot, and loops that are compiled once for each kind of processor.
//
// What defines an answer is one expression, written in one place; whatever rearranges it may only
// rule out, beyond these margins.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Cloned functions are written `SLOTKERN_CLONES static inline ...`: the form that compilers
// take, and that the build probes. NARROW: without vectors of 512 bits, which make some processors
// slower for a while: loops of a few rows between other work lose more by them than they gain.
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
#define SLOTKERN_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define SLOTKERN_NARROW_CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define SLOTKERN_CLONES
#define SLOTKERN_NARROW_CLONES
#endif

// For a few lines that every row or step passes: a call costs as much as they do. APART: for what
// is rare, and would make those lines many.
#if defined(__GNUC__)
#define SLOTKERN_INLINE __attribute__((always_inline)) inline
#define SLOTKERN_NOINLINE __attribute__((noinline))
#else
#define SLOTKERN_INLINE inline
#define SLOTKERN_NOINLINE
#endif

namespace slotkern {

// For which processors this one runs the cloned loops; narrow ones stop at x86-64-v3, and the
// screen asks for AVX2 or AVX-512F alone (slots/filter64.hpp).
inline const char* clones_in_use() {
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
  // The features that tell the levels apart: not all compilers know their names here.
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

// Pre-filters work on rearranged expressions; this relative margin keeps them on the safe side.
inline constexpr double kMargin = 1e-9;

// What sums of products can lose where they underflow: totals are lifted by it before they
// become limits of keys.
inline constexpr double kUnderflow = 0x1p-1000;

// Whether the clock moves in d from t, and from every time nearer to zero: half an ulp is lost
// at even times, though t itself may be odd.
inline bool clock_moves(double t, double d) {
  const double size = std::fabs(t);
  if (d > size * 0x1p-52) return true;
  return d > 0.5 * (std::nextafter(size, kInfinity) - size);
}

// The largest float not above x: one step of the bit pattern where rounding went up, which no
// branch could guess. Negative zero steps to the largest float below zero.
inline float round_down(double x) {
  const float f = static_cast<float>(x);
  const auto bits = std::bit_cast<std::int32_t>(f);
  return std::bit_cast<float>(bits - (f > x) * (bits >> 31 | 1));
}

inline float round_up(double x) { return -round_down(-x); }

// The largest float below x.
inline float next_below(float x) {
  return std::nextafter(x, -std::numeric_limits<float>::infinity());
}

}  // namespace slotkern

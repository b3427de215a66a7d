// Ticks: the starts that a clock can show. Starts of windows are turns or ticks.
//
// Without ticks every double is one. With a length, ticks are its whole multiples. Otherwise a
// function of the caller returns the first tick at or after a time.
#pragma once

#include <cmath>

namespace slotkern {

struct Ticks {
  double length = 0;  // 0: every double is a tick
  double (*first)(const void* clock, double t) = nullptr;  // overrides `length`
  const void* clock = nullptr;

  // The first tick at or after t.
  double at_or_after(double t) const {
    if (first) return first(clock, t);
    if (!(length > 0)) return t;
    double count = std::ceil(t / length);
    if ((count - 1) * length >= t) --count;  // the quotient is rounded
    if (count * length < t) ++count;
    return count * length >= t ? count * length : t;  // ticks finer than doubles
  }
  bool is_tick(double t) const { return at_or_after(t) == t; }
};

}  // namespace slotkern

// Ticks: the starts that a clock can show. Starts of windows are turns or ticks.
//
// Without ticks every double is one. Otherwise ticks are the quotients k / per_unit of integers k,
// rounded once, as a clock converts its dates to numbers.
#pragma once

#include <cmath>

namespace slotkern {

struct Ticks {
  double per_unit = 0;  // ticks for each unit of time; 0: every double is a tick

  // The first tick at or after t.
  double at_or_after(double t) const {
    if (!(per_unit > 0)) return t;
    double count = std::ceil(t * per_unit);
    if (!(std::fabs(count) < 0x1p53)) return t;  // ticks finer than doubles
    if ((count - 1) / per_unit >= t) --count;  // the product is rounded
    if (count / per_unit < t) ++count;
    return count / per_unit;
  }
  bool is_tick(double t) const { return at_or_after(t) == t; }
};

}  // namespace slotkern

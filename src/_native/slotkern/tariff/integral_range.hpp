// The least and the largest integral of a tariff over the starts of a part, for bounds.
//
// The integral over [t, t + length) is piecewise linear in t, with kinks at breakpoints and at
// breakpoints minus the length, so its extremes are at the ends of the interval or at kinks.
// Cost: O(breakpoints between the first start and the last end).
#pragma once

#include <algorithm>

#include "slotkern/tariff/price_table.hpp"

namespace slotkern {

struct IntegralRange {
  double least, most;
};

// Bounds on the integrals of parts that start in [from, to]; `to` may be infinite.
inline IntegralRange integral_range(const Tariff& tariff, double from, double to, double length) {
  const auto all = tariff.breakpoints();
  if (!all.empty()) to = std::min(to, std::max(from, all.back()));
  IntegralRange range{kInfinity, 0};
  const auto visit = [&](double t) {
    const double integral = tariff.integral(std::clamp(t, from, std::max(from, to)), length);
    range.least = std::min(range.least, integral * (1 - kBoundMargin));
    range.most = std::max(range.most, integral * (1 + kBoundMargin));
  };
  visit(from);
  if (all.empty()) return range;
  visit(to);
  for (const double shift : {0.0, length})
    for (auto at = std::lower_bound(all.begin(), all.end(), from + shift);
         at != all.end() && *at <= to + shift; ++at)
      visit(*at - shift);
  return range;
}

}  // namespace slotkern

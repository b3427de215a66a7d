// Candidate start times of a search by value: the starts of the admitted slots; with `any_start`
// also the times at which the value of a part can have an extremum (value/steps.hpp explains why
// these suffice).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "slotkern/window/shapes.hpp"

namespace slotkern {

// Ascending, without duplicates.
template <class Shape>
void list_starts(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                 bool any_start, std::vector<double>& starts) {
  starts.clear();
  prepared.each_row([&](std::size_t row) {
    const Slot& s = prepared.slots[row];
    if (!query.admits(s, row)) return;
    const double first = query.start_in(s), length = shape.length(s);
    starts.push_back(first);
    if (!any_start || s.performance < shape.min_performance() || !is_live(query, shape, s, first))
      return;
    const double middle = s.start + 0.5 * (s.end - s.start - length);  // rounded once
    if (middle > first && middle <= query.latest && is_live(query, shape, s, middle))
      starts.push_back(middle);
    double last = std::min(query.limit(s) - length, query.latest);
    for (int k = 0; k < 4 && !is_live(query, shape, s, last); ++k)  // t + d is rounded
      last = std::nextafter(last, -kInfinity);
    if (last > first && is_live(query, shape, s, last)) starts.push_back(last);
  });
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
}

}  // namespace slotkern

// The closed time of a node of a pool, and the time within it that would be free.
//
// Invariant: the spans of each list ascend and are disjoint, and withheld spans of one origin row do
// not touch, so opening the node restores the free spans as they were.
//
// Cost: O(spans of the node) to withhold a span.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "slotkern/pool/booking_index.hpp"

namespace slotkern {

struct ClosedTime {
  std::vector<Span> times;     // origin_row is not used
  std::vector<Span> withheld;  // closed, not booked

  // Inserts a span into `withheld` and merges it with spans of the same origin row that it touches.
  void withhold(Span span) {
    auto next = std::lower_bound(withheld.begin(), withheld.end(), span.start,
                                 [](const Span& other, double t) { return other.start < t; });
    if (next != withheld.begin()) {
      const auto before = std::prev(next);
      if (before->end == span.start && before->origin_row == span.origin_row) {
        span.start = before->start;
        next = withheld.erase(before);
      }
    }
    if (next != withheld.end() && next->start == span.end && next->origin_row == span.origin_row) {
      span.end = next->end;
      next = withheld.erase(next);
    }
    withheld.insert(next, span);
  }
};

// Merges spans, sorted by start, that overlap or touch.
inline void merge_overlapping(std::vector<Span>& times) {
  std::size_t count = 0;
  for (const Span& time : times)
    if (count > 0 && time.start <= times[count - 1].end)
      times[count - 1].end = std::max(times[count - 1].end, time.end);
    else
      times[count++] = {time.start, time.end, 0};
  times.resize(count);
}

}  // namespace slotkern

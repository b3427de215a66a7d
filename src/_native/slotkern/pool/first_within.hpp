// Finds the first window, by start or by finish, during which capacities of the pool have enough.
//
// Input: what the window uses of each capacity (pool/caps.hpp), a query, and a search of windows by
// start or by finish. Output: its best window among those that keep the capacities.
//
// A window lies in one of the maximal spans with enough of all. The search without capacities comes
// first: it stores bounds, which searches with a deadline do not, and its window is the answer if
// enough is free during it. Otherwise the spans are searched in order; no window that keeps the
// capacities is earlier than one that does not, so spans before it are omitted. After kMaxFailed
// spans without a window the search without capacities finds the next span that can have one.
//
// Cost: one search for each span visited.
#pragma once

#include <algorithm>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/status.hpp"
#include "slotkern/pool/caps.hpp"
#include "slotkern/slots/request.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

// `now`: no window starts before. `least_runtime`: lower bound of runtimes. find(query, found)
// returns the status of a search; `found` is that of the window if ok is returned.
template <class Find>
Status find_first_within(const std::vector<CapacityUse>& uses, const Query& query, double now,
                         double least_runtime, bool by_finish, Found& found, Find find) {
  constexpr int kMaxFailed = 3;
  Query asked = query;
  const auto run = [&](double earliest, double deadline) {
    asked.earliest = std::max(query.earliest, earliest);
    asked.deadline = std::min(query.deadline, deadline);
    if (asked.earliest > query.latest || asked.earliest > asked.deadline) return Status::none;
    return find(static_cast<const Query&>(asked), found);
  };
  double first = std::max(query.earliest, now);
  Status status = run(first, kInfinity);
  while (status == Status::ok) {
    const double finish = found.start + found.runtime;
    if (have_enough(uses, found.start, finish)) return status;
    if (!by_finish) first = std::max(first, found.start);
    for (int failed = 0; failed < kMaxFailed;) {
      poll();
      const TimeSpan span = span_with_enough(uses, first, least_runtime);
      if (span.first == kInfinity) return Status::none;
      if (!(by_finish && span.last < finish)) {
        status = run(span.first, span.last);
        if (status != Status::none) return status;
        ++failed;
      }
      first = span.last;
      if (first > query.latest || first >= query.deadline) return Status::none;
    }
    status = run(first, kInfinity);
  }
  return status;
}

// Adds `sign` times the uses of a window to the free amounts. Strong exception guarantee. Time up
// to `now` counts as all time before it.
inline void add_uses(const std::vector<CapacityUse>& uses, double start, double finish, double now,
                     int sign) {
  if (finish <= now) return;
  const double first = start <= now ? -kInfinity : start;
  std::size_t done = 0;
  try {
    for (; done < uses.size(); ++done)
      uses[done].free->add(first, finish, sign * uses[done].amount);
  } catch (...) {
    while (done-- > 0) uses[done].free->add(first, finish, -sign * uses[done].amount);
    throw;
  }
}

}  // namespace slotkern

// What a kernel can answer. Kernels never throw across guarded(): they return one of
// these codes, and each door turns them into exceptions in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "slotkern/base/interrupt.hpp"

namespace slotkern {

enum class Status : int {
  ok = 0,
  none,                    // a correct search that found no window
  no_memory,
  internal,                // a bug: an exception nobody expected
  interrupted,             // a signal has come: ask what it means, then perhaps again
  // what check_slots finds wrong with a row
  node_negative,
  start_not_finite,
  end_is_nan,
  end_not_after_start,
  performance_not_positive,
  price_not_valid,
  not_sorted,
  performance_differs,
  overlap,
  // what a search finds wrong with a request
  volume_too_small,        // a part of half an ulp of the time or less
  // what choose finds wrong with its items
  cost_not_valid,
  value_not_finite,
  sum_overflows,           // of n costs or values
  cost_not_integer,        // the table needs integers
  table_too_large,
  weight_not_finite,       // of a limit on a sum
  weights_overflow,
  // what a search for alternatives finds
  endless,                 // alternatives without number in slots that never end
  too_many,                // more parts than one search may give
  too_many_live,           // more live slots of all groups than there is room for
  // what a pool finds wrong with a window
  not_free,                // to be booked
  not_booked,              // to be released
  // what a search by values finds
  criterion_failed,        // a user's function raised, or its value is not finite
  end_is_infinite,         // placement needs ends
  out_of_work,             // before every step had its value
  limit_failed,            // as criterion_failed, of a function that a limit is on
  // what callers in other languages than Python can say, whose doors check it before
  request_not_valid,       // fewer than one node, no volume, a NaN; an unknown criterion or shape
  time_is_nan,
  // what a search under limits on sums finds when its work is spent
  undecided,               // no window was found, and it is not proven that there is none
};

// The first thing wrong with a slot array: `row`, and where performances differ or slots overlap
// the earlier row of the same node that it clashes with.
struct Fault {
  Status status = Status::ok;
  std::size_t row = 0;
  std::size_t other = 0;
};

// Calls f at the boundary: nothing is thrown beyond it.
template <class F>
Status guarded(F f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  } catch (const Interrupted&) {
    return Status::interrupted;
  } catch (...) {
    return Status::internal;
  }
}

}  // namespace slotkern

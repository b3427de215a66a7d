// Status codes of kernels. No exception passes guarded(): it returns a status, which the binding
// turns into an exception in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "slotkern/base/interrupt.hpp"

namespace slotkern {

enum class Status : int {
  ok = 0,
  none,  // no window exists
  no_memory,
  internal,  // a bug: an unexpected exception
  interrupted,  // a signal arrived: run its handlers, then perhaps start again
  // check_slots: an invalid row
  node_negative,
  start_not_finite,
  end_is_nan,
  end_not_after_start,
  performance_not_positive,
  price_not_valid,
  not_sorted,
  performance_differs,
  overlap,
  // searches: an invalid request
  volume_too_small,  // a part is at most half an ulp of the time long
  // choose: invalid items
  cost_not_valid,
  value_not_finite,
  sum_overflows,  // of n costs or values
  cost_not_integer,  // the table method needs integers
  table_too_large,
  weight_not_finite,  // of a sum constraint
  weights_overflow,
  // searches for alternatives
  endless,  // infinitely many alternatives in slots that never end
  too_many,  // more parts than one search may return
  too_many_live,  // more live slots over all groups than fit in memory
  // pools: an invalid window
  not_free,  // to be booked
  not_booked,  // to be released
  // searches by values
  criterion_failed,  // a user function failed, or its value is not finite
  end_is_infinite,  // the placement needs finite ends
  out_of_work,  // work limit reached before every step had its value
  limit_failed,  // a user function of a sum constraint failed
  // requests of callers other than Python, whose binding validates them first
  request_not_valid,  // nodes < 1, no volume, a NaN, an unknown criterion or shape
  time_is_nan,
  // searches under sum constraints that reach their work limit
  undecided,  // no window found, and its absence is not proven
  // traces
  line_not_valid,
};

// The first violation in a slot array: its row, and, if performances differ or slots overlap, the
// earlier row of the same node in `other`.
struct Fault {
  Status status = Status::ok;
  std::size_t row = 0;
  std::size_t other = 0;
};

// Calls f at the API boundary and turns exceptions into status codes.
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

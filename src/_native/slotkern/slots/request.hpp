// A request, and the one expression for how long a part runs.
//
// A part of a window on a node of performance p takes setup + volume / p, then so much more that
// it is a multiple of `step`. That is never longer on a faster node, so that groups by falling
// performance are groups by rising length, and it is never less than volume / p but for a few
// ulps, so that bounds on bare work hold for it within the margins of pre-filters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/slots/sum_constraints.hpp"

namespace slotkern {

// rate = price / performance: money per unit of work.
struct Slot {
  double start, end, performance, price, rate;
  std::int32_t node;
  std::int32_t place;  // index of the node in PreparedSlots::nodes
};

// The least multiple of step that holds a time. At most 4 ulp over a multiple are rounding, not
// time: 0.1 + 0.2 are three steps of 0.1. A step of less than an ulp of the time rounds nothing.
inline double round_up_to_step(double time, double step) {
  const double count = time / step;
  if (!(count < 0x1p52)) return time;
  const double whole = std::floor(count);
  return step * (whole >= 1 && count - whole <= 4 * 0x1p-52 * count ? whole : whole + 1);
}

// The most work of a search under limits on sums, unless the caller says otherwise: a few tenths of
// a second.
inline constexpr std::int64_t kLimitsWork = 50'000'000;

// One request, its numbers checked at the door. An infinite deadline is the largest finite
// double, so that t + d = inf never counts as in time.
struct Query {
  std::int64_t n = 1;
  double volume = 0;
  double budget = kInfinity;
  double min_performance = 0;
  double earliest = -kInfinity;
  double deadline = std::numeric_limits<double>::max();
  double max_price = kInfinity;
  double setup = 0;                // constant part of a part's length
  double step = 0;                 // lengths are multiples of it; 0: any length
  double latest = kInfinity;       // start
  double max_runtime = kInfinity;  // of the window; see PreparedSlots::normalized_for_search
  const std::uint8_t* mask = nullptr;  // one byte a slot, 0 = filtered out
  // For a mask by origin row (PreparedSlots::origins) of so many rows; those behind are filtered
  // out.
  const std::size_t* origins = nullptr;
  std::size_t masked = 0;
  const SumConstraints* limits = nullptr;  // on sums over the parts; null: none
  // Of a search under limits, counted in units of 5 to 10 ns; when it is spent, the answer is not
  // proven.
  std::int64_t max_work = kLimitsWork;

  // What the door of Python promises; searches rely on it.
  bool is_valid() const {
    const auto amount = [](double x) { return x >= 0 && x <= std::numeric_limits<double>::max(); };
    return n >= 1 && volume > 0 && amount(volume) && budget >= 0 &&
           !std::isnan(min_performance) && !std::isnan(earliest) && !std::isnan(deadline) &&
           !std::isnan(max_price) && amount(setup) && amount(step) && !std::isnan(latest) &&
           !std::isnan(max_runtime) && (!limits || limits->all.size() <= kMaxSumConstraints);
  }

  // How long a part runs on a node of this performance.
  double length(double performance) const {
    const double time = setup + volume / performance;
    if (step > 0) [[unlikely]]
      return round_up_to_step(time, step);
    return time;
  }
  // Whether a part is charged for more than its work.
  bool has_overhead() const { return setup > 0 || step > 0; }

  double start_in(const Slot& slot) const { return std::max(slot.start, earliest); }
  double limit(const Slot& slot) const { return std::min(slot.end, deadline); }
  // The largest cost that meets the budget.
  double max_cost() const { return relaxed_max(budget); }
  SLOTKERN_INLINE bool admits(const Slot& slot, std::size_t row) const {
    return slot.performance >= min_performance && slot.price <= max_price &&
           start_in(slot) <= latest && (!mask || passes(origins ? origins[row] : row));
  }

  // Whether other requests may learn from this one's answer: it wants nothing but what hints
  // (pool/start_bounds.hpp) compare, which keep charged requests of equal terms by themselves. All
  // fields are named, so that a new limit does not compile before it has been thought of here.
  bool is_cacheable() const {
    const auto& [nodes, work, money, performance, first, last, price, constant, multiple, late,
                 runtime, filter, rows, count, sums, effort] = *this;
    return last == std::numeric_limits<double>::max() && price == kInfinity &&
           late == kInfinity && runtime == kInfinity && !filter && !sums;
  }

 private:
  bool passes(std::size_t row) const { return !(origins && row >= masked) && mask[row]; }
};

}  // namespace slotkern

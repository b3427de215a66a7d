// A request, and the expression that defines the length of a part.
//
// A part on a node of performance p takes setup + volume / p, rounded up to a multiple of `step`.
// Length is monotone: never longer on a faster node, so groups by descending performance are groups
// by ascending length. Length is at least volume / p up to a few ulps, so bounds on bare work hold
// within the margin of the pre-filters (kMargin).
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

// Smallest multiple of step that is at least `time`. An excess of at most 4 ulp over a multiple is
// treated as rounding: 0.1 + 0.2 is three steps of 0.1. If step is below an ulp of `time`, returns
// `time`.
inline double round_up_to_step(double time, double step) {
  const double count = time / step;
  if (!(count < 0x1p52)) return time;
  const double whole = std::floor(count);
  return step * (whole >= 1 && count - whole <= 4 * 0x1p-52 * count ? whole : whole + 1);
}

// Default work limit of a search under sum constraints: a few tenths of a second.
inline constexpr std::int64_t kLimitsWork = 50'000'000;

// A request whose numbers the binding has validated. Without a deadline, `deadline` is the largest
// finite double, so that an infinite end t + d is never in time.
struct Query {
  std::int64_t n = 1;
  double volume = 0;
  double budget = kInfinity;
  double min_performance = 0;
  double earliest = -kInfinity;
  double deadline = std::numeric_limits<double>::max();
  double max_price = kInfinity;
  double setup = 0;  // constant part of a part's length
  double step = 0;  // lengths are rounded up to a multiple; 0: no rounding
  double latest = kInfinity;  // latest start
  double max_runtime = kInfinity;  // of the window; see PreparedSlots::normalized_for_search
  const std::uint8_t* mask = nullptr;  // one byte per slot, 0: filtered out
  // If not null, the mask is indexed by origin row (PreparedSlots::origins) and has `masked`
  // entries; slots of later rows are filtered out.
  const std::size_t* origins = nullptr;
  std::size_t masked = 0;
  const SumConstraints* limits = nullptr;  // on sums over the parts; null: none
  // Work limit of a search under constraints, in units of 5 to 10 ns; a search that reaches it
  // returns an answer that is not proven.
  std::int64_t max_work = kLimitsWork;

  // Preconditions of every search, which the Python binding validates.
  bool is_valid() const {
    const auto amount = [](double x) { return x >= 0 && x <= std::numeric_limits<double>::max(); };
    return n >= 1 && volume > 0 && amount(volume) && budget >= 0 &&
           !std::isnan(min_performance) && !std::isnan(earliest) && !std::isnan(deadline) &&
           !std::isnan(max_price) && amount(setup) && amount(step) && !std::isnan(latest) &&
           !std::isnan(max_runtime) && (!limits || limits->all.size() <= kMaxSumConstraints);
  }

  // Length of a part on a node of this performance.
  double length(double performance) const {
    const double time = setup + volume / performance;
    if (step > 0) [[unlikely]]
      return round_up_to_step(time, step);
    return time;
  }
  // True if parts are charged for more than their work.
  bool has_overhead() const { return setup > 0 || step > 0; }

  // Earliest start, and latest end, of a part in the slot.
  double start_in(const Slot& slot) const { return std::max(slot.start, earliest); }
  double limit(const Slot& slot) const { return std::min(slot.end, deadline); }
  // Largest cost that meets the budget.
  double max_cost() const { return relaxed_max(budget); }
  SLOTKERN_INLINE bool admits(const Slot& slot, std::size_t row) const {
    return slot.performance >= min_performance && slot.price <= max_price &&
           start_in(slot) <= latest && (!mask || passes(origins ? origins[row] : row));
  }

  // True if the answer may be cached for other requests: only the fields compared by the
  // start-bound cache (pool/start_bounds.hpp) are set; requests with overhead are cached
  // separately. The structured binding names all fields, so a new field does not compile until it
  // is considered here.
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

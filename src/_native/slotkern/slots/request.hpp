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
#include <iterator>
#include <limits>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/slots/group_rules.hpp"
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

// Default of the deadline: an infinite end t + d is never in time.
inline constexpr double kMaxTime = std::numeric_limits<double>::max();

enum class FieldKind : int { number, time, duration };
enum class FieldRange : int { any, amount, positive };

// The least and the largest value of a field: infinite only on the side of the default.
constexpr double least_of(FieldRange range, double otherwise) {
  if (range == FieldRange::any) return otherwise > 0 ? -kMaxTime : -kInfinity;
  return range == FieldRange::amount ? 0 : std::numeric_limits<double>::denorm_min();
}
constexpr double most_of(double otherwise) {
  return otherwise >= kMaxTime ? kInfinity : kMaxTime;
}

// A request: the numbers of request_fields.def, and what only the bindings can resolve.
struct Query {
  std::int64_t n = 1;
#define SLOTKERN_REQUEST_FIELD(name, kind, range, otherwise, unit, label, text) \
  double name = otherwise;
#include "slotkern/slots/request_fields.def"
  const std::uint8_t* mask = nullptr;  // one byte per slot, 0: filtered out
  // If not null, the mask is indexed by origin row (PreparedSlots::origins) and has `masked`
  // entries; slots of later rows are filtered out.
  const std::size_t* origins = nullptr;
  std::size_t masked = 0;
  const SumConstraints* limits = nullptr;  // on sums over the parts; null: none
  const GroupRules* groups = nullptr;  // on the groups of the nodes; null: none
  // Work limit of a search under constraints, in units of 5 to 10 ns; a search that reaches it
  // returns an answer that is not proven.
  std::int64_t max_work = kLimitsWork;

  // Preconditions of every search; the Python binding also refuses other infinite values.
  bool is_valid() const {
    bool valid = n >= 1 && std::max({volume, setup, step}) <= kMaxTime &&
                 (!limits || limits->all.size() <= kMaxSumConstraints);
#define SLOTKERN_REQUEST_FIELD(name, kind, range, otherwise, unit, label, text) \
  valid = valid && name >= least_of(FieldRange::range, otherwise);
#include "slotkern/slots/request_fields.def"
    return valid;
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
  // True if the slot meets all limits on single slots. The only such test for kernels and Python
  // (suitable_rows in request.pyx). A slot that it refuses has no piece that it accepts: sweeps cut
  // slots, and caches of starts survive bookings.
  SLOTKERN_INLINE bool suits(const Slot& slot) const {
    return slot.performance >= min_performance && slot.price <= max_price &&
           start_in(slot) <= latest;
  }
  // True if the slot also passes the filter.
  SLOTKERN_INLINE bool admits(const Slot& slot, std::size_t row) const {
    return suits(slot) && (!mask || passes(origins ? origins[row] : row));
  }

  // True if the mask has the row of the origin array.
  bool passes(std::size_t origin) const {
    return !mask || (!(origins && origin >= masked) && mask[origin]);
  }

  // True if all other fields have their defaults. A search that tests slots or hosts itself, without
  // suits(), lists the fields that it keeps to: it then refuses requests with fields added later.
  template <double Query::*... Kept>
  bool sets_only() const {
    bool others_unset = true;
#define SLOTKERN_REQUEST_FIELD(name, kind, range, otherwise, unit, label, text) \
  others_unset = others_unset && (((&Query::name == Kept) || ...) || name == otherwise);
#include "slotkern/slots/request_fields.def"
    return others_unset;
  }

  // True if the answer may be cached for other requests: all limits are unset but those that the
  // start-bound cache compares (pool/start_bounds.hpp). Requests with overhead are cached
  // separately.
  bool is_cacheable() const {
    return !mask && !limits && !groups &&
           sets_only<&Query::volume, &Query::budget, &Query::min_performance, &Query::earliest,
                     &Query::setup, &Query::step>();
  }
};

// A field of request_fields.def, for loops over all fields.
struct QueryField {
  const char* name;
  double Query::* member;
  FieldKind kind;
  FieldRange range;
  double otherwise;  // the default
  const char *unit, *label, *text;
  double least = least_of(range, otherwise);
  double most = most_of(otherwise);
  double cap = otherwise == kMaxTime ? kMaxTime : kInfinity;  // the largest value in a query

  // A time without upper limit is infinite for the user.
  double get(const Query& query) const {
    return query.*member == cap ? kInfinity : query.*member;
  }
  bool accepts(double x) const { return least <= x && x <= most; }  // false for NaN
  void set(Query& query, double x) const { query.*member = std::min(x, cap); }
};

inline constexpr QueryField kQueryFields[] = {
#define SLOTKERN_REQUEST_FIELD(name, kind, range, otherwise, unit, label, text) \
  {#name, &Query::name, FieldKind::kind, FieldRange::range, otherwise, unit, label, text},
#include "slotkern/slots/request_fields.def"
};
inline constexpr int kQueryFieldCount = std::size(kQueryFields);

}  // namespace slotkern

// What a slot is worth to an additive criterion: the sources of z in
// max z_1 + ... + z_n (2018, section 3.3; placement: Toporkov et al., section 3.4).
//
// A source says z of a slot at the start t for a part of that length, and `most`, a bound of z
// over all t. Four flags tell the search what it may skip:
//   moving      z changes with t: every live slot is valued anew at each step
//   by_length   z changes with the length: bounds are made for each group
//   anchored    a longer window may look better, so that a group's window must hold a slot of
//               its own performance (else its true length is another group's)
//   dear        asking for z takes long: it is asked once a slot and group, and remembered
// A function's value beyond kMostValue is no value: sums of such values overflow.
// A source of distances is a function of the times before and after the part (`between`).
// Columns and records are those of the array that the pool was made of: a slot cut from a row
// keeps its values. To add a criterion, write its source and give it a line in with_source.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "slotkern/slots/prepared.hpp"

namespace slotkern {

// A user's compiled function; non-zero when it failed. The record is the slot as the user's
// array holds it.
using StaticValue = int (*)(const void* slot, double length, double* value);
using MovingValue = int (*)(const void* slot, double start, double length, double* value);

enum class ValueKind : int { column = 0, part_time, static_function, moving_function, dependable,
                         coordinated };

struct Valuation {
  ValueKind worth = ValueKind::column;
  double sign = 1;                 // -1 turns minimize round
  const double* column = nullptr;  // one value a row
  void* function = nullptr;
  bool fixed = false;  // a static function that does not look at the length: a column
  const char* records = nullptr;
  std::ptrdiff_t stride = 0;
};

inline constexpr double kMostValue = 1e290;

// A finite column, from an extra field or an array.
struct ColumnSource {
  static constexpr bool moving = false, by_length = false, anchored = false, dear = false;
  const PreparedSlots& prepared;
  const double* z;
  double sign;

  bool value(const Slot&, std::size_t row, double, double, double& out) const {
    out = sign * z[prepared.origin(row)];
    return true;
  }
  bool upper_bound(const Slot& s, std::size_t row, double d, double& out) const {
    return value(s, row, 0, d, out);
  }
};

// The processor time of a part, minimized.
struct PartTimeSource {
  static constexpr bool moving = false, by_length = true, anchored = true, dear = false;

  bool value(const Slot&, std::size_t, double, double length, double& out) const {
    out = -length;
    return true;
  }
  bool upper_bound(const Slot& s, std::size_t row, double d, double& out) const {
    return value(s, row, 0, d, out);
  }
};

struct StaticFunctionSource {
  static constexpr bool moving = false, by_length = true, anchored = true, dear = true;
  const PreparedSlots& prepared;
  StaticValue function;
  const char* records;
  std::ptrdiff_t stride;
  double sign;

  bool value(const Slot&, std::size_t row, double, double length, double& out) const {
    const char* record = records + static_cast<std::ptrdiff_t>(prepared.origin(row)) * stride;
    if (function(record, length, &out)) return false;
    out *= sign;
    return std::fabs(out) <= kMostValue;  // NaN is none either
  }
  bool upper_bound(const Slot& s, std::size_t row, double d, double& out) const {
    return value(s, row, 0, d, out);
  }
};

struct MovingFunctionSource {
  static constexpr bool moving = true, by_length = true, anchored = true, dear = false;
  const PreparedSlots& prepared;
  MovingValue function;
  const char* records;
  std::ptrdiff_t stride;
  double sign;

  bool value(const Slot&, std::size_t row, double t, double length, double& out) const {
    const char* record = records + static_cast<std::ptrdiff_t>(prepared.origin(row)) * stride;
    if (function(record, t, length, &out)) return false;
    out *= sign;
    return std::fabs(out) <= kMostValue;  // NaN is none either
  }
  bool upper_bound(const Slot&, std::size_t, double, double& out) const {
    out = kInfinity;
    return true;
  }
};

// Distances are rounded like the slot's length, however close to each other the times come.
inline double rounding(const Slot& s) { return 0x1p-50 * (s.end - s.start); }

// Time to the nearest neighbouring task, maximized. The ends of a slot are tasks, those of the
// horizon too. A longer window only comes closer to them, so no anchor is needed.
struct DependableSource {
  static constexpr bool moving = true, by_length = true, anchored = false, dear = false;

  static double between(double before, double after) { return std::min(before, after); }

  bool value(const Slot& s, std::size_t, double t, double length, double& out) const {
    out = between(t - s.start, s.end - t - length);
    return true;
  }
  bool upper_bound(const Slot& s, std::size_t, double length, double& out) const {
    const double spare = s.end - s.start - length;
    out = (spare > 0 ? 0.5 * spare : spare) + rounding(s);
    return true;
  }
};

// Time to the farthest neighbouring task, minimized.
struct CoordinatedSource {
  static constexpr bool moving = true, by_length = true, anchored = true, dear = false;

  static double between(double before, double after) { return -std::max(before, after); }

  bool value(const Slot& s, std::size_t, double t, double length, double& out) const {
    out = between(t - s.start, s.end - t - length);
    return true;
  }
  bool upper_bound(const Slot& s, std::size_t, double length, double& out) const {
    out = -0.5 * (s.end - s.start - length) + rounding(s);
    return true;
  }
};

// Calls f with the source: the one dispatch of a search.
template <class F>
auto with_source(const PreparedSlots& prepared, const Valuation& v, F f) {
  switch (v.worth) {
    case ValueKind::part_time:
      return f(PartTimeSource{});
    case ValueKind::static_function:
      return f(StaticFunctionSource{prepared, reinterpret_cast<StaticValue>(v.function), v.records,
                                    v.stride, v.sign});
    case ValueKind::moving_function:
      return f(MovingFunctionSource{prepared, reinterpret_cast<MovingValue>(v.function), v.records,
                                    v.stride, v.sign});
    case ValueKind::dependable:
      return f(DependableSource{});
    case ValueKind::coordinated:
      return f(CoordinatedSource{});
    default:
      return f(ColumnSource{prepared, v.column, v.sign});
  }
}

// A function's values of parts that are given: of parts[k] in the slot of rows[k]. Returns the
// first k that has none, or `count`.
inline std::size_t values_of_parts(const Valuation& v, const std::int64_t* rows,
                                   const double* starts, const double* lengths, std::size_t count,
                                   double* out) {
  for (std::size_t k = 0; k < count; ++k) {
    const char* record = v.records + static_cast<std::ptrdiff_t>(rows[k]) * v.stride;
    const bool failed =
        v.worth == ValueKind::moving_function
            ? reinterpret_cast<MovingValue>(v.function)(record, starts[k], lengths[k], out + k)
            : reinterpret_cast<StaticValue>(v.function)(record, lengths[k], out + k);
    if (failed || !(std::fabs(out[k]) <= kMostValue)) return k;
  }
  return count;
}

}  // namespace slotkern

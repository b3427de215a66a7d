// Sources of values: what a slot contributes (z) to an additive criterion max z_1 + ... + z_n
// (Toporkov et al. 2018, section 3.3; dependable and coordinated: paper C of docs/science.md,
// section 3.4).
//
// Columns and records belong to the array from which the pool was made: a slot cut from a row keeps
// its values. A function result beyond kMaxValue is an error, because sums of such values overflow.
//
// Each source is one struct in the list `Sources`, from which names, documentation, dispatch and
// tests are generated. To add a source, write its struct and append it to the list.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "slotkern/slots/prepared.hpp"

namespace slotkern {

// A user's compiled function; returns nonzero on failure. The record is the slot as the user's
// array holds it.
using StaticValue = int (*)(const void* slot, double length, double* value);
using MovingValue = int (*)(const void* slot, double start, double length, double* value);

// Positions in the list `Sources`, for sources that code refers to.
enum class ValueKind : int { column = 0, part_time, static_function, moving_function, dependable,
                         coordinated };

struct Valuation {
  ValueKind kind = ValueKind::column;
  double sign = 1;  // -1 to minimize
  const double* column = nullptr;  // one value a row
  void* function = nullptr;
  bool fixed = false;  // a static function that ignores the length: evaluated once, as a column
  const char* records = nullptr;
  std::ptrdiff_t stride = 0;
};

inline constexpr double kMaxValue = 1e290;

enum class LengthEffect { unknown, no_better, no_worse };

// Requirements of a source. `value` computes z of a part of this length that starts at t; larger is
// better; repeated calls give the same result; it returns false if z is undefined. `upper_bound`
// computes a bound on z for this length and any t; infinite if not `bounded`. The user sees sign *
// the sum, or the mean. The flags select the algorithm:
//   moving            z changes with t: every live slot is evaluated again at each step
//   length_dependent  z changes with the length: bounds are computed for each group
//   needs_anchor      z may grow with the length of the window. A set without a slot of the group's
//                     own performance (an anchor) is in fact shorter than the length for which its
//                     z is computed, so a group's window must contain an anchor
//   is_expensive      evaluating z takes long: once for each slot and group, then memoized
//   needs_end         z depends on the slot's end, which must be finite
//   integral          z may be integers, whose sums are exact
//   length_effect     effect of a longer part on the rounded z: a larger length never raises it
//                     (no_better) or never lowers it (no_worse). With it one bound holds for all
//                     groups of a range (value/ranges.hpp)
//   max_value         upper bound on z for any length
// A source of distances is a function of the times before and after the part (`between`). A source
// without a name is supplied by the user.
template <class S>
concept Source = requires(const S& source, const Slot& slot, std::size_t row, double t,
                          double length, double& z) {
  requires std::same_as<decltype(S::name), const std::string_view>;
  requires std::same_as<decltype(S::doc), const std::string_view>;
  requires std::same_as<decltype(S::moving), const bool>;
  requires std::same_as<decltype(S::length_dependent), const bool>;
  requires std::same_as<decltype(S::is_expensive), const bool>;
  requires std::same_as<decltype(S::needs_anchor), const bool>;
  requires std::same_as<decltype(S::needs_end), const bool>;
  requires std::same_as<decltype(S::integral), const bool>;
  requires std::same_as<decltype(S::mean), const bool>;
  requires std::same_as<decltype(S::bounded), const bool>;
  requires std::same_as<decltype(S::length_effect), const LengthEffect>;
  requires std::same_as<decltype(S::max_value), const double>;
  { source.sign } -> std::convertible_to<double>;
  { source.value(slot, row, t, length, z) } -> std::same_as<bool>;
  { source.upper_bound(slot, row, length, z) } -> std::same_as<bool>;
};

// Flags of most sources; a source overrides those that differ.
struct SourceDefaults {
  static constexpr std::string_view name = "", doc = "";
  static constexpr bool moving = false, length_dependent = true, needs_anchor = true,
      is_expensive = false;
  static constexpr bool needs_end = false, integral = false, mean = false, bounded = true;
  static constexpr LengthEffect length_effect = LengthEffect::unknown;
  static constexpr double max_value = kInfinity;
};

// A column of values within kMaxValue, from an extra field or an array.
struct ColumnSource : SourceDefaults {
  static constexpr bool length_dependent = false, needs_anchor = false, integral = true;
  static constexpr LengthEffect length_effect = LengthEffect::no_better;
  const PreparedSlots& prepared;
  const double* z;
  double sign;

  ColumnSource(const PreparedSlots& slots, const Valuation& v)
      : prepared(slots), z(v.column), sign(v.sign) {}

  bool value(const Slot&, std::size_t row, double, double, double& out) const {
    out = sign * z[prepared.origin(row)];
    return true;
  }
  bool upper_bound(const Slot& s, std::size_t row, double d, double& out) const {
    return value(s, row, 0, d, out);
  }
};

// The processor time of a part, minimized.
struct PartTimeSource : SourceDefaults {
  static constexpr std::string_view name = "processor_time";
  static constexpr std::string_view doc = "the least sum of the parts' lengths";
  static constexpr LengthEffect length_effect = LengthEffect::no_better;
  static constexpr double sign = -1;

  PartTimeSource(const PreparedSlots&, const Valuation&) {}

  bool value(const Slot&, std::size_t, double, double length, double& out) const {
    out = -length;
    return true;
  }
  bool upper_bound(const Slot& s, std::size_t row, double d, double& out) const {
    return value(s, row, 0, d, out);
  }
};

struct StaticFunctionSource : SourceDefaults {
  static constexpr bool is_expensive = true;
  const PreparedSlots& prepared;
  StaticValue function;
  const char* records;
  std::ptrdiff_t stride;
  double sign;

  StaticFunctionSource(const PreparedSlots& slots, const Valuation& v)
      : prepared(slots), function(reinterpret_cast<StaticValue>(v.function)), records(v.records),
        stride(v.stride), sign(v.sign) {}

  bool value(const Slot&, std::size_t row, double, double length, double& out) const {
    const char* record = records + static_cast<std::ptrdiff_t>(prepared.origin(row)) * stride;
    if (function(record, length, &out)) return false;
    out *= sign;
    return std::fabs(out) <= kMaxValue;  // also rejects NaN
  }
  bool upper_bound(const Slot& s, std::size_t row, double d, double& out) const {
    return value(s, row, 0, d, out);
  }
};

struct MovingFunctionSource : SourceDefaults {
  static constexpr bool moving = true, bounded = false;
  const PreparedSlots& prepared;
  MovingValue function;
  const char* records;
  std::ptrdiff_t stride;
  double sign;

  MovingFunctionSource(const PreparedSlots& slots, const Valuation& v)
      : prepared(slots), function(reinterpret_cast<MovingValue>(v.function)), records(v.records),
        stride(v.stride), sign(v.sign) {}

  bool value(const Slot&, std::size_t row, double t, double length, double& out) const {
    const char* record = records + static_cast<std::ptrdiff_t>(prepared.origin(row)) * stride;
    if (function(record, t, length, &out)) return false;
    out *= sign;
    return std::fabs(out) <= kMaxValue;  // also rejects NaN
  }
  bool upper_bound(const Slot&, std::size_t, double, double& out) const {
    out = kInfinity;
    return true;
  }
};

// Rounding error of a distance within the slot: relative to the slot's length, however small the
// distance.
inline double rounding(const Slot& s) { return 0x1p-50 * (s.end - s.start); }

// Time to the nearest neighbouring task, maximized. The ends of a slot are tasks, and those of the
// horizon, too. A longer window only comes closer to them, so no anchor is needed.
struct DependableSource : SourceDefaults {
  static constexpr std::string_view name = "dependable";
  static constexpr std::string_view doc = "the largest mean time to the nearest neighbouring task";
  static constexpr bool moving = true, needs_anchor = false, needs_end = true, mean = true;
  static constexpr LengthEffect length_effect = LengthEffect::no_better;
  static constexpr double sign = 1;

  DependableSource(const PreparedSlots&, const Valuation&) {}

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
struct CoordinatedSource : SourceDefaults {
  static constexpr std::string_view name = "coordinated";
  static constexpr std::string_view doc =
      "the smallest mean time to the farthest neighbouring task";
  static constexpr bool moving = true, needs_end = true, mean = true;
  static constexpr LengthEffect length_effect = LengthEffect::no_worse;
  static constexpr double max_value = 0;
  static constexpr double sign = -1;

  CoordinatedSource(const PreparedSlots&, const Valuation&) {}

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

// Free time left over in the slots, minimized: long slots stay available.
struct LeftoverSource : SourceDefaults {
  static constexpr std::string_view name = "leftover";
  static constexpr std::string_view doc =
      "the least sum of the free time left over in the slots used (best fit)";
  static constexpr bool needs_end = true;
  static constexpr LengthEffect length_effect = LengthEffect::no_worse;
  static constexpr double sign = -1;

  LeftoverSource(const PreparedSlots&, const Valuation&) {}

  bool value(const Slot& s, std::size_t, double, double length, double& out) const {
    out = -(s.end - s.start - length);
    return true;
  }
  bool upper_bound(const Slot& s, std::size_t row, double d, double& out) const {
    return value(s, row, 0, d, out);
  }
};

// A source whose type is known at run time. Searches in which values are a small part of the time
// (value/constrained_search.hpp, LiteSearch in value/cheapest_steps.hpp, StepRecorder in
// value/steps.hpp) are compiled once for it, and not once for each source.
class AnySource {
 public:
  bool moving, length_dependent, needs_anchor, is_expensive, integral, mean, bounded;
  double sign;

  // The source must outlive this object.
  template <Source S>
  explicit AnySource(const S& source)
      : moving(S::moving), length_dependent(S::length_dependent), needs_anchor(S::needs_anchor),
        is_expensive(S::is_expensive), integral(S::integral), mean(S::mean), bounded(S::bounded),
        sign(source.sign),
        source_(&source),
        value_([](const void* s, const Slot& slot, std::size_t row, double t, double length,
                  double& out) {
          return static_cast<const S*>(s)->value(slot, row, t, length, out);
        }),
        upper_bound_([](const void* s, const Slot& slot, std::size_t row, double length,
                        double& out) {
          return static_cast<const S*>(s)->upper_bound(slot, row, length, out);
        }) {}

  bool value(const Slot& s, std::size_t row, double t, double length, double& out) const {
    return value_(source_, s, row, t, length, out);
  }
  bool upper_bound(const Slot& s, std::size_t row, double length, double& out) const {
    return upper_bound_(source_, s, row, length, out);
  }

 private:
  const void* source_;
  bool (*value_)(const void*, const Slot&, std::size_t, double, double, double&);
  bool (*upper_bound_)(const void*, const Slot&, std::size_t, double, double&);
};

using Sources =
    std::tuple<ColumnSource, PartTimeSource, StaticFunctionSource, MovingFunctionSource,
               DependableSource, CoordinatedSource, LeftoverSource>;
inline constexpr int kSources = static_cast<int>(std::tuple_size_v<Sources>);

// Calls f with a tag of the type of the source at this position: the dispatch of a search.
template <class F, int I = 0>
auto with_source_type(int place, F f) {
  if constexpr (I + 1 < kSources) {
    if (place != I) return with_source_type<F, I + 1>(place, f);
  }
  static_assert(Source<std::tuple_element_t<I, Sources>>);
  return f(std::type_identity<std::tuple_element_t<I, Sources>>{});
}

template <class F>
auto with_source(const PreparedSlots& prepared, const Valuation& v, F f) {
  return with_source_type(static_cast<int>(v.kind), [&](auto tag) {
    return f(typename decltype(tag)::type(prepared, v));
  });
}

// The same with an AnySource, for which f is compiled once.
template <class F>
Status with_any_source(const PreparedSlots& prepared, const Valuation& v, F f) {
  return with_source(prepared, v, [&](const auto& source) { return f(AnySource(source)); });
}

// Properties of the source at a position; an empty name means that the user supplies it.
struct SourceFacts {
  std::string_view name, doc;
  bool moving, needs_end, mean;
  double sign;
};

inline SourceFacts source_facts(int place) {
  return with_source_type(place, [](auto tag) -> SourceFacts {
    using S = typename decltype(tag)::type;
    if constexpr (!S::name.empty())
      return {S::name, S::doc, S::moving, S::needs_end, S::mean, S::sign};
    else
      return {S::name, S::doc, S::moving, S::needs_end, S::mean, 1};
  });
}

// Computes the values of given parts, in the criterion's own direction: parts[k] is in the slot of
// rows[k]. Returns the first k whose value is undefined, or `count`.
inline std::size_t values_of_parts(const PreparedSlots& prepared, const Valuation& v,
                                   const std::int64_t* rows, const double* starts,
                                   const double* lengths, std::size_t count, double* out) {
  return with_source(prepared, v, [&](const auto& source) {
    for (std::size_t k = 0; k < count; ++k) {
      const auto row = static_cast<std::size_t>(rows[k]);
      if (!source.value(prepared.slots[row], row, starts[k], lengths[k], out[k])) return k;
      out[k] *= source.sign;
    }
    return count;
  });
}

}  // namespace slotkern

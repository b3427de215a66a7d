// The criteria that a sweep optimizes by itself. One struct each, in one list: names,
// documentation, dispatch and parametrized tests grow from `Builtin`. To add one, write its
// struct here: the goal of its ragged sweep, the goal and the rules of its square search.
#pragma once

#include <string_view>
#include <tuple>

#include "slotkern/window/policies.hpp"
#include "slotkern/window/sweep.hpp"

namespace slotkern {

// Which step the ragged window is cut at, and which groups can hold the square one.
struct CriterionDefaults {
  static constexpr bool up_to_step = false;      // take slots up to the step, not all of its time
  static constexpr bool by_bound = false;        // the total is the value: cheap nodes first
  static constexpr bool first_group = false;     // square: the first group that fits wins
  static constexpr bool best_group_only = false; // square: ties do not cross groups

  static constexpr bool sweep_ends_there = false;  // ragged: with the n cheapest of the window
  static constexpr bool earliest = false;          // nothing better starts earlier

  static bool part_ok(const Best&, double, double) { return true; }
  static bool span_ok(const Best&, double) { return true; }
};

struct First : CriterionDefaults {
  static constexpr std::string_view name = "first";
  static constexpr std::string_view doc =
      "the papers' AMP and FirstFit: the first step whose n cheapest slots fit the budget";
  using RaggedGoal = EarliestStep;
  static constexpr bool sweep_ends_there = true, earliest = true;
  using SquareGoal = EarliestStep;
  static constexpr bool up_to_step = true, best_group_only = true;
  static double value(double start, double, double) { return start; }
};

struct Start : CriterionDefaults {
  static constexpr std::string_view name = "start";
  static constexpr std::string_view doc = "the earliest start, then the lowest cost";
  using RaggedGoal = EarliestStart;
  static constexpr bool sweep_ends_there = true, earliest = true;
  using SquareGoal = EarliestStart;
  static double value(double start, double, double) { return start; }
};

struct Finish : CriterionDefaults {
  static constexpr std::string_view name = "finish";
  static constexpr std::string_view doc = "the earliest finish of the last part (minFinish)";
  using RaggedGoal = EarliestFinish;
  using SquareGoal = EarliestFinishOfGroups;
  static bool part_ok(const Best& best, double t, double length) {
    return t + length <= best.finish;
  }
  static bool span_ok(const Best& best, double span) { return best.start + span == best.finish; }
  static double value(double start, double runtime, double) { return start + runtime; }
};

struct Runtime : CriterionDefaults {
  static constexpr std::string_view name = "runtime";
  static constexpr std::string_view doc = "the shortest time from start to finish (minRuntime)";
  using RaggedGoal = ShortestRuntime;
  using SquareGoal = EarliestStart;
  static constexpr bool first_group = true, best_group_only = true;
  static bool part_ok(const Best& best, double, double length) { return length <= best.longest; }
  static double value(double, double runtime, double) { return runtime; }
};

struct Cost : CriterionDefaults {
  static constexpr std::string_view name = "cost";
  static constexpr std::string_view doc = "the lowest cost of all parts together (minCost)";
  using RaggedGoal = LowestCost;
  using SquareGoal = LowestCost;
  static constexpr bool by_bound = true;
  static double value(double, double, double cost) { return cost; }
};

using Builtin = std::tuple<First, Start, Finish, Runtime, Cost>;
inline constexpr int kBuiltins = static_cast<int>(std::tuple_size_v<Builtin>);

static_assert([]<class... C>(std::tuple<C...>) { return (CriterionPolicy<C> && ...); }(Builtin{}));

// Calls f with the criterion of this index: the one dispatch of a search.
template <class F, int I = 0>
auto with_criterion(int index, F f) {
  if constexpr (I + 1 < kBuiltins) {
    if (index != I) return with_criterion<F, I + 1>(index, f);
  }
  return f(std::tuple_element_t<I, Builtin>{});
}

inline std::string_view criterion_name(int index) {
  return with_criterion(index, [](auto c) { return decltype(c)::name; });
}
// -1 for a name that is not in the list.
inline int criterion_index(std::string_view name) {
  int index = kBuiltins;
  while (--index >= 0 && criterion_name(index) != name) {
  }
  return index;
}
inline std::string_view criterion_doc(int index) {
  return with_criterion(index, [](auto c) { return decltype(c)::doc; });
}

}  // namespace slotkern

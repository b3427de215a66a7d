// The built-in criteria that a sweep optimizes. Each is one struct in the list `Builtin`, from
// which names, documentation, dispatch and parametrized tests are derived. To add a criterion, add
// its struct here: the goal and the tie rules of its ragged and of its square search.
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

#include "slotkern/window/policies.hpp"
#include "slotkern/window/sweep.hpp"

namespace slotkern {

// Defaults of most criteria; each search (ragged, square) has its own rules.
struct CriterionDefaults {
  // select slots up to the best step, not all of its start
  static constexpr bool only_up_to_step = false;
  // the total is the value: groups are searched by cost bound
  static constexpr bool value_is_cost = false;
  static constexpr bool earliest = false;  // no better window starts earlier
};
template <class G>
struct RaggedDefaults {
  using Goal = G;
  static bool is_part_allowed(const Best&, double, double) { return true; }
};
template <class G>
struct SquareDefaults {
  using Goal = G;
  static constexpr bool stops_at_first_group = false;  // the first group with a window wins
  static constexpr bool best_group_only = false;  // other groups are not searched for ties
  static bool is_span_allowed(const Best&, double) { return true; }
};

struct FirstSquareRules : SquareDefaults<EarliestStep> {
  static constexpr bool best_group_only = true;
};
struct First : CriterionDefaults {
  static constexpr std::string_view name = "first";
  static constexpr std::string_view doc =
      "the papers' AMP and FirstFit: the first step whose n cheapest slots fit the budget";
  static constexpr bool only_up_to_step = true, earliest = true;
  using RaggedRules = RaggedDefaults<EarliestStep>;
  using SquareRules = FirstSquareRules;
  static double value(double start, double, double) { return start; }
};

struct Start : CriterionDefaults {
  static constexpr std::string_view name = "start";
  static constexpr std::string_view doc = "the earliest start, then the lowest cost";
  static constexpr bool earliest = true;
  using RaggedRules = RaggedDefaults<EarliestStart>;
  using SquareRules = SquareDefaults<EarliestStart>;
  static double value(double start, double, double) { return start; }
};

struct FinishRaggedRules : RaggedDefaults<EarliestFinish> {
  static bool is_part_allowed(const Best& best, double t, double length) {
    return t + length <= best.finish;
  }
};
struct FinishSquareRules : SquareDefaults<EarliestFinishOfGroups> {
  static bool is_span_allowed(const Best& best, double span) {
    return best.start + span == best.finish;
  }
};
struct Finish : CriterionDefaults {
  static constexpr std::string_view name = "finish";
  static constexpr std::string_view doc = "the earliest finish of the last part (minFinish)";
  using RaggedRules = FinishRaggedRules;
  using SquareRules = FinishSquareRules;
  static double value(double start, double runtime, double) { return start + runtime; }
};

struct RuntimeRaggedRules : RaggedDefaults<ShortestRuntime> {
  static bool is_part_allowed(const Best& best, double, double length) {
    return length <= best.longest;
  }
};
struct RuntimeSquareRules : SquareDefaults<EarliestStart> {
  static constexpr bool stops_at_first_group = true, best_group_only = true;
};
struct Runtime : CriterionDefaults {
  static constexpr std::string_view name = "runtime";
  static constexpr std::string_view doc = "the shortest time from start to finish (minRuntime)";
  using RaggedRules = RuntimeRaggedRules;
  using SquareRules = RuntimeSquareRules;
  static double value(double, double runtime, double) { return runtime; }
};

struct Cost : CriterionDefaults {
  static constexpr std::string_view name = "cost";
  static constexpr std::string_view doc = "the lowest cost of all parts together (minCost)";
  static constexpr bool value_is_cost = true;
  using RaggedRules = RaggedDefaults<LowestCost>;
  using SquareRules = SquareDefaults<LowestCost>;
  static double value(double, double, double cost) { return cost; }
};

using Builtin = std::tuple<First, Start, Finish, Runtime, Cost>;
inline constexpr int kBuiltins = static_cast<int>(std::tuple_size_v<Builtin>);

static_assert([]<class... C>(std::tuple<C...>) { return (CriterionPolicy<C> && ...); }(Builtin{}));

// Calls f with the criterion of this index: the only dispatch of a search.
template <class F, int I = 0>
auto with_criterion(int index, F f) {
  if constexpr (I + 1 < kBuiltins) {
    if (index != I) return with_criterion<F, I + 1>(index, f);
  }
  return f(std::tuple_element_t<I, Builtin>{});
}

// Returns true if no better window starts earlier.
inline bool finds_earliest(int index) {
  return with_criterion(index, [](auto c) { return decltype(c)::earliest; });
}

inline bool finds_cheapest(int index) {
  return with_criterion(index, [](auto c) { return std::is_same_v<decltype(c), Cost>; });
}

inline bool finds_shortest(int index) {
  return with_criterion(index, [](auto c) { return std::is_same_v<decltype(c), Runtime>; });
}

inline std::string_view criterion_name(int index) {
  return with_criterion(index, [](auto c) { return decltype(c)::name; });
}
// Returns the index of a criterion, or -1 if the name is not in the list.
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

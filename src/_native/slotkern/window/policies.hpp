// The contracts of the policies of a one-sweep search; window/criteria.hpp checks every policy.
//
// A shape defines how long a part in a slot runs and what it costs. Keys order the parts: the sum
// of the n smallest keys determines the total (`total`), and a larger key never gives a smaller
// total. An index key is the value that the zone map stores for the slot. `to_index_units` converts
// a total, and `index_key_of` a key, to units of the index, never below the exact quotient by more
// than the margin of max_index_key. `index_order_is_key_order`: a slot with a larger index key
// never has a smaller key. No live part is shorter than `shortest`.
//
// A goal defines which step is better. It starts with best.found = false, and the sweep writes to
// `best` each step that `accepts`, which may record ties there. No total above `ceiling` helps, and
// the ceiling only falls; no step from t on helps once `is_past`; a part that is not `is_useful` is
// in no better window, now or later; `can_stop` ends the sweep; nodes slower than
// `least_performance` do not help. All tests keep ties as long as the tie rule needs them.
//
// A criterion names a goal for each shape of search, the rules by which the tie rule selects the
// window at the best step, and the value that the user sees, as one expression.
#pragma once

#include <concepts>
#include <string_view>

#include "slotkern/slots/prepared.hpp"

namespace slotkern {

struct Best;

template <class S>
concept ShapePolicy = requires(const S& shape, const Slot& slot, const Group& group,
                               const PreparedSlots& prepared, double x) {
  { S::per_part_length } -> std::convertible_to<bool>;
  { S::index_order_is_key_order } -> std::convertible_to<bool>;
  { S::zone_map(prepared) } -> std::same_as<const SlotZoneMap&>;
  { shape.length(slot) } -> std::same_as<double>;
  { shape.key(slot) } -> std::same_as<double>;
  { shape.index_key(slot) } -> std::same_as<double>;
  { shape.min_index_key(group) } -> std::same_as<double>;
  { shape.total(x) } -> std::same_as<double>;
  { shape.to_index_units(x) } -> std::same_as<double>;
  { shape.index_key_of(x) } -> std::same_as<double>;
  { shape.required_capacity() } -> std::same_as<double>;
  { shape.min_performance() } -> std::same_as<double>;
  { shape.shortest(prepared) } -> std::same_as<double>;
};

template <class G>
concept GoalPolicy = requires(const G& goal, G& changing, double x) {
  { G::needs_times } -> std::convertible_to<bool>;
  { G::can_bound_by_fast_nodes } -> std::convertible_to<bool>;
  { G::can_improve_at_same_time } -> std::convertible_to<bool>;
  { G::evaluate_per_slot } -> std::convertible_to<bool>;
  { G::later_slots_may_join } -> std::convertible_to<bool>;
  { changing.best } -> std::same_as<Best&>;
  { changing.max_probed_key } -> std::same_as<float&>;
  { goal.ceiling() } -> std::same_as<double>;
  { goal.is_past(x, x) } -> std::same_as<bool>;
  { goal.is_useful(x, x) } -> std::same_as<bool>;
  { changing.accepts(x, x) } -> std::same_as<bool>;
  { goal.can_stop() } -> std::same_as<bool>;
  { goal.least_performance(x) } -> std::same_as<double>;
};

template <class C>
concept CriterionPolicy = requires(const Best& best, double x) {
  requires GoalPolicy<typename C::RaggedRules::Goal>;
  requires GoalPolicy<typename C::SquareRules::Goal>;
  { C::name } -> std::convertible_to<std::string_view>;
  { C::doc } -> std::convertible_to<std::string_view>;
  { C::only_up_to_step } -> std::convertible_to<bool>;
  { C::value_is_cost } -> std::convertible_to<bool>;
  { C::earliest } -> std::convertible_to<bool>;
  { C::RaggedRules::is_part_allowed(best, x, x) } -> std::same_as<bool>;
  { C::SquareRules::stops_at_first_group } -> std::convertible_to<bool>;
  { C::SquareRules::best_group_only } -> std::convertible_to<bool>;
  { C::SquareRules::is_span_allowed(best, x) } -> std::same_as<bool>;
  { C::value(x, x, x) } -> std::same_as<double>;
};

}  // namespace slotkern

// What the policies of a search by one sweep must keep; window/criteria.hpp asks it of every one.
//
// A shape says how long a part of a slot takes and what it costs. Keys order the parts: the sum of
// the n least keys, in that order, gives the total (`total`), and a larger key never gives a
// smaller one. SlotZoneMap keys are what the screen holds for the slot; `to_index_units` turns a total, and
// `index_key_of` a key, into the screen's units, never below the true quotient by more than the
// margin of max_index_key. `index_order_is_key_order`: a larger screen key never has a smaller key. No live
// part is shorter than `shortest`.
//
// A goal says which step is better. It starts with best.found = false, and the sweep fills `best`
// with each step that `accepts`, which may note there that others tie. No total above `ceiling` is of
// use, and the ceiling only falls; no step from t on is of use once `is_past`; no part that is not
// `is_useful` is in a better window, and what is not is_useful stays so; `can_stop`: stop now. No slower
// node than `least_performance` is of use. All of them keep equality as long as ties need it.
//
// A criterion names a goal for each shape of search, the rules by which the tie rule takes the
// window out of the best step, and the value that the user sees, in one expression.
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
  { S::screen(prepared) } -> std::same_as<const SlotZoneMap&>;
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
  { C::SquareRules::first_group } -> std::convertible_to<bool>;
  { C::SquareRules::best_group_only } -> std::convertible_to<bool>;
  { C::SquareRules::is_span_allowed(best, x) } -> std::same_as<bool>;
  { C::value(x, x, x) } -> std::same_as<double>;
};

}  // namespace slotkern

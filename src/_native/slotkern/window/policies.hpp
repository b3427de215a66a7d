// What the policies of a search by one sweep must keep; window/criteria.hpp asks it of every one.
//
// A shape says how long a part of a slot takes and what it costs. Keys order the parts: the sum of
// the n least keys, in that order, gives the total (`total`), and a larger key never gives a
// smaller one. SlotZoneMap keys are what the screen holds for the slot; `screened` turns a total, and
// `screen_key_of` a key, into the screen's units, never below the true quotient by more than the
// margin of key_ceiling. `keys_by_screen`: a larger screen key never has a smaller key. No live
// part is shorter than `shortest`.
//
// A goal says which step is better. It starts with best.found = false, and the sweep fills `best`
// with each step that `fits`, which may note there that others tie. No total above `ceiling` is of
// use, and the ceiling only falls; no step from t on is of use once `past`; no part that is not
// `useful` is in a better window, and what is not useful stays so; `enough`: stop now. No slower
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
  { S::own_lengths } -> std::convertible_to<bool>;
  { S::keys_by_screen } -> std::convertible_to<bool>;
  { S::screen(prepared) } -> std::same_as<const SlotZoneMap&>;
  { shape.length(slot) } -> std::same_as<double>;
  { shape.key(slot) } -> std::same_as<double>;
  { shape.screen_key(slot) } -> std::same_as<double>;
  { shape.least_screen_key(group) } -> std::same_as<double>;
  { shape.total(x) } -> std::same_as<double>;
  { shape.screened(x) } -> std::same_as<double>;
  { shape.screen_key_of(x) } -> std::same_as<double>;
  { shape.room() } -> std::same_as<double>;
  { shape.performance() } -> std::same_as<double>;
  { shape.shortest(prepared) } -> std::same_as<double>;
};

template <class G>
concept GoalPolicy = requires(const G& goal, G& changing, double x) {
  { G::times } -> std::convertible_to<bool>;
  { G::narrows } -> std::convertible_to<bool>;
  { G::repeats } -> std::convertible_to<bool>;
  { G::by_step } -> std::convertible_to<bool>;
  { G::looks_on } -> std::convertible_to<bool>;
  { changing.best } -> std::same_as<Best&>;
  { changing.probe } -> std::same_as<float&>;
  { goal.ceiling() } -> std::same_as<double>;
  { goal.past(x, x) } -> std::same_as<bool>;
  { goal.useful(x, x) } -> std::same_as<bool>;
  { changing.fits(x, x) } -> std::same_as<bool>;
  { goal.enough() } -> std::same_as<bool>;
  { goal.least_performance(x) } -> std::same_as<double>;
};

template <class C>
concept CriterionPolicy = requires(const Best& best, double x) {
  requires GoalPolicy<typename C::RaggedRules::Goal>;
  requires GoalPolicy<typename C::SquareRules::Goal>;
  { C::name } -> std::convertible_to<std::string_view>;
  { C::doc } -> std::convertible_to<std::string_view>;
  { C::up_to_step } -> std::convertible_to<bool>;
  { C::by_bound } -> std::convertible_to<bool>;
  { C::earliest } -> std::convertible_to<bool>;
  { C::RaggedRules::part_ok(best, x, x) } -> std::same_as<bool>;
  { C::SquareRules::first_group } -> std::convertible_to<bool>;
  { C::SquareRules::best_group_only } -> std::convertible_to<bool>;
  { C::SquareRules::span_ok(best, x) } -> std::same_as<bool>;
  { C::value(x, x, x) } -> std::same_as<double>;
};

}  // namespace slotkern

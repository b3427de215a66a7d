// Entry point of searches by value: one call for the binding values.pyx, which selects shape and
// source, and computes the numbers of the window found from its rows.
#pragma once

#include <vector>

#include "slotkern/value/cheapest_steps.hpp"
#include "slotkern/value/constrained_search.hpp"
#include "slotkern/value/search.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

struct ValueAnswer {
  Status status = Status::none;
  Fault fault;
  Found found;
  double bound = 0;  // in the direction and units of the criterion
  bool proven = false;
  Effort effort;
  const Part* parts = nullptr;
};

inline ValueWorkspace& value_workspace() {
  static thread_local ValueWorkspace work;
  return work;
}

namespace detail {

// Converts a total to the user's units and direction.
inline double to_criterion_units(const AnySource& source, double total, std::size_t n) {
  return source.sign * total / (source.mean ? static_cast<double>(n) : 1.0);
}

template <class Shape>
bool build_value_window(const PreparedSlots& prepared, const Query& query, const AnySource& source,
                  double start, double span, ValueWorkspace& work, ValueAnswer& answer) {
  const std::size_t n = work.chosen.size();
  const bool square = std::is_same_v<Shape, Square>;
  double slowest = kInfinity;
  for (const std::size_t row : work.chosen)
    slowest = std::min(slowest, prepared.slots[row].performance);
  const Shape shape = [&] {
    if constexpr (std::is_same_v<Shape, Square>)
      return Square{span > 0 ? span : query.length(slowest), slowest};
    else
      return Shape(query);
  }();
  std::vector<Entry>& order = work.base.chosen;
  order.clear();
  for (const std::size_t row : work.chosen)
    order.push_back({shape.key(prepared.slots[row]), row});
  work.sort_chosen_by_cost(prepared);
  double total = 0;
  for (const Entry& entry : order) {
    const Slot& s = prepared.slots[entry.row];
    double z = 0;
    if (!source.value(s, entry.row, start, shape.length(s), z)) {
      answer.fault = {Status::criterion_failed, entry.row, 0};
      return false;
    }
    total += z;
  }
  build_window(prepared, shape, order, n, start, answer.found, work.base.parts,
         work.base.node_order);
  if (square) answer.found.processor_time = static_cast<double>(n) * answer.found.runtime;
  answer.found.value = to_criterion_units(source, total, n);
  return true;
}

// Turns the outcome of a search into its answer.
template <class Shape>
Status answer_with(const ValueOutcome& outcome, bool any, const PreparedSlots& prepared,
                   const Query& query, const AnySource& source, const ValueOptions& options,
                   ValueWorkspace& work, ValueAnswer& answer) {
  answer.fault = outcome.fault;
  answer.effort = outcome.effort;
  if (answer.fault.status != Status::ok) return answer.fault.status;
  if (!any) return Status::none;
  const double span = options.group_span ? outcome.span : 0;  // 0: the span of the slowest node
  if (!build_value_window<Shape>(prepared, query, source, outcome.start, span, work, answer))
    return answer.fault.status;
  if (!(answer.found.cost <= query.max_cost())) return Status::internal;
  answer.parts = work.base.parts.data();
  answer.proven = outcome.proven;
  answer.bound =
      to_criterion_units(source, outcome.bound, static_cast<std::size_t>(query.n));
  return Status::ok;
}

// Finds the best window without limits and rules.
template <class Shape>
Status search_by_value(const PreparedSlots& prepared, const Query& query, const Valuation& v,
                       const ValueOptions& options, ValueWorkspace& work, ValueAnswer& answer) {
  return with_source(prepared, v, [&](const auto& known) {
    const AnySource source(known);
    const auto run = [&](auto search) {
      const bool any = search.run();
      return answer_with<Shape>(search.result(), any, prepared, query, source, options, work,
                                answer);
    };
    if (options.lite) return run(LiteSearch<Shape>(prepared, query, source, options, work));
    return run(ValueSearch<Shape, std::remove_cvref_t<decltype(known)>>(prepared, query, known,
                                                                        options, work));
  });
}

// Computes the best value of each step into work.steps.
template <class Shape>
Status record_steps(const PreparedSlots& prepared, const Query& query, const Valuation& v,
                    const ValueOptions& options, ValueWorkspace& work, ValueAnswer& answer) {
  return with_source(prepared, v, [&](const auto& known) {
    const AnySource source(known);
    const auto run = [&](auto recorder) {
      const bool any = recorder.run();
      const ValueOutcome& outcome = recorder.result();
      answer.fault = outcome.fault;
      answer.effort = outcome.effort;
      if (!any) return answer.fault.status;
      if (!outcome.proven) return Status::out_of_work;
      for (StepValue& step : work.steps)
        step.value = to_criterion_units(source, step.value, static_cast<std::size_t>(query.n));
      return Status::ok;
    };
    using Source = std::remove_cvref_t<decltype(known)>;
    if constexpr (Source::moving)  // its own type has a quick bound of a step
      return run(StepRecorder<Shape, Source>(prepared, query, known, options, work));
    else
      return run(StepRecorder<Shape, AnySource>(prepared, query, source, options, work));
  });
}

// The same under sum constraints: returns the best unconstrained window if it satisfies them, else
// searches with value/constrained_search.hpp.
template <class Shape>
Status search_by_value_constrained(const PreparedSlots& prepared, const Query& query,
                              const Valuation& v, const ValueOptions& options,
                              ValueWorkspace& work, ValueAnswer& answer) {
  if (options.lite || options.group_span) return Status::request_not_valid;
  const Status status =
      search_by_value<Shape>(prepared, query, v, options, work, answer);
  if (status != Status::ok ||
      satisfies_limits(*query.limits, work.base.parts, std::is_same_v<Shape, Square>,
                   answer.found.runtime, constrained_scratch()))
    return status;
  return with_any_source(prepared, v, [&](const AnySource& source) {
    ConstrainedValueSearch<Shape> search(prepared, query, source, options, work);
    const bool any = search.run();
    answer.fault = search.fault;
    answer.effort = search.effort;
    if (answer.fault.status != Status::ok) return answer.fault.status;
    if (!any) return search.proven ? Status::none : Status::undecided;
    if (!build_value_window<Shape>(prepared, query, source, search.start, 0, work, answer))
      return answer.fault.status;
    answer.parts = work.base.parts.data();
    answer.proven = search.proven;
    answer.bound = to_criterion_units(source, search.bound, static_cast<std::size_t>(query.n));
    return Status::ok;
  });
}

inline Status check_ends(const PreparedSlots& prepared, const Query& query, Fault& fault) {
  prepared.each_row([&](std::size_t row) {
    if (std::isinf(prepared.slots[row].end) && query.admits(prepared.slots[row], row) &&
        fault.status == Status::ok)
      fault = {Status::end_is_infinite, prepared.origin(row), 0};
  });
  return fault.status;
}

// Evaluates a function that ignores the length once for each row, as a column; rows that are
// filtered out get 0.
inline Status fill_column(const PreparedSlots& prepared, const Query& query, Valuation& v,
                          ValueWorkspace& work, Fault& fault) {
  std::size_t rows = prepared.slots.size();
  prepared.each_row([&](std::size_t row) { rows = std::max(rows, prepared.origin(row) + 1); });
  work.column.assign(rows, 0.0);
  Valuation plain = v;
  plain.sign = 1;  // the column search applies the sign
  const StaticFunctionSource source(prepared, plain);
  prepared.each_row([&](std::size_t row) {
    const Slot& s = prepared.slots[row];
    if (fault.status != Status::ok || !query.admits(s, row)) return;
    poll();
    if (!source.value(s, row, 0, query.length(s.performance), work.column[prepared.origin(row)]))
      fault = {Status::criterion_failed, prepared.origin(row), 0};
  });
  v.kind = ValueKind::column;
  v.column = work.column.data();
  return fault.status;
}

}

// Finds the best window by a valuation; with `record`, computes the best value of each step
// instead, into recorded_steps().
inline ValueAnswer find_by_value(const PreparedSlots& prepared, const Query& given,
                                 Valuation valuation, ShapeKind shape, const ValueOptions& options,
                                 bool record) noexcept {
  ValueAnswer answer;
  answer.status = guarded([&] {
    const Query query = prepared.normalized_for_search(given);
    ValueWorkspace& work = value_workspace();
    work.chosen.clear();
    work.steps.clear();
    if (const Status status = prepared.check(query, options.any_start); status != Status::ok)
      return status;
    if (query.n > static_cast<std::int64_t>(prepared.nodes.size())) return Status::none;
    if (record || prepared.is_long_running(query, shape)) enable_interrupts();
    if (source_facts(static_cast<int>(valuation.kind)).needs_end)
      if (const Status status = detail::check_ends(prepared, query, answer.fault);
          status != Status::ok)
        return status;
    if (valuation.kind == ValueKind::static_function && valuation.fixed)
      if (const Status status = detail::fill_column(prepared, query, valuation, work, answer.fault);
          status != Status::ok)
        return status;
    if (query.limits && record) return Status::request_not_valid;
    if (query.groups) return Status::groups_not_supported;
    const auto search = [&](auto kind) {
      using Shape = typename decltype(kind)::type;
      if (query.limits)
        return detail::search_by_value_constrained<Shape>(prepared, query, valuation, options, work,
                                                     answer);
      if (record)
        return detail::record_steps<Shape>(prepared, query, valuation, options, work, answer);
      return detail::search_by_value<Shape>(prepared, query, valuation, options, work, answer);
    };
    return shape == ShapeKind::square ? search(std::type_identity<Square>{})
                                      : search(std::type_identity<AnyRagged>{});
  });
  return answer;
}

inline std::vector<StepValue>& recorded_steps() { return value_workspace().steps; }

}  // namespace slotkern

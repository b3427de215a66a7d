// choose_constrained: choose exactly n items within a budget and several further sum constraints,
// for the binding knapsack.pyx. Validates the items, turns every constraint into an upper limit, and
// computes the sums of the chosen items.
//
// Sums of costs and of constraint weights are exact, rounded once; values are summed in ascending
// (cost, row) order, as in choose(). Memory: 3 columns of the items for each constraint.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/status.hpp"
#include "slotkern/choice/choose.hpp"
#include "slotkern/choice/multidim_knapsack.hpp"

namespace slotkern {

// Requires that the sum of `weight` over the chosen items is at most, or at least, `amount`.
struct SumLimit {
  const double* weight;
  double amount;
  bool at_least;
};

struct ConstrainedChooser {
  MultidimKnapsack knapsack;
  ExactSum sum;
  Choice choice;
  std::vector<double> negated;

  // Validates the items. In a fault, `other` is the index of the constraint.
  static Fault check(const Items& items, int n, const std::vector<SumLimit>& limits) {
    if (const Fault fault = Chooser::check(items, n); fault.status != Status::ok) return fault;
    for (std::size_t k = 0; k < limits.size(); ++k) {
      double largest = std::fabs(limits[k].amount);
      for (int i = 0; i < items.count; ++i) {
        const double w = limits[k].weight[i];
        if (!std::isfinite(w)) return {Status::weight_not_finite, static_cast<std::size_t>(i), k};
        largest = std::max(largest, std::fabs(w));
      }
      if (!((n + 64.0) * largest < 1e300)) return {Status::weights_overflow, 0, k};
    }
    return {};
  }

  // Exact test of one constraint.
  bool satisfies(const SumLimit& limit, const std::vector<int>& rows) {
    sum.clear();
    for (const int i : rows) sum.add(limit.weight[i]);
    return limit.at_least ? sum.value() >= relaxed_min(limit.amount)
                          : sum.value() <= relaxed_max(limit.amount);
  }

  static double cost_of(const Items& items, const std::vector<int>& rows) {
    return exact_sum(rows.size(), [&](std::size_t i) { return items.cost[rows[i]]; });
  }

  Fault run(const Items& items, int n, double budget, const std::vector<SumLimit>& limits,
            double gap, std::int64_t work) {
    choice = {};
    if (const Fault fault = check(items, n, limits); fault.status != Status::ok) return fault;
    if (n > items.count) return {};
    const std::size_t count = static_cast<std::size_t>(items.count);
    negated.clear();
    negated.reserve(count * limits.size());  // pointers into it must stay valid
    MultidimItems all;
    all.value = items.value;
    all.count = items.count;
    Amounts amounts{};
    const auto add = [&](const double* weight, double amount) {
      amounts[static_cast<std::size_t>(all.limits)] = amount;
      all.weight[static_cast<std::size_t>(all.limits++)] = weight;
    };
    if (std::isfinite(budget)) add(items.cost, relaxed_max(budget));
    for (const SumLimit& limit : limits) {
      if (!limit.at_least) {
        add(limit.weight, relaxed_max(limit.amount));
        continue;
      }
      const std::size_t first = negated.size();
      for (std::size_t i = 0; i < count; ++i) negated.push_back(-limit.weight[i]);
      add(negated.data() + first, -relaxed_min(limit.amount));
    }
    knapsack.gap = gap;
    knapsack.scale = ValueScale::from_values(items.value, items.count);
    knapsack.limits.work = work;
    knapsack.work = 0;
    if (items.count > Chooser::kManyItems) enable_interrupts();
    const bool any = knapsack.solve(all, n, amounts, {}, 0, -kInfinity, [&](const auto& rows) {
      return cost_of(items, rows) <= relaxed_max(budget) &&
             std::all_of(limits.begin(), limits.end(),
                         [&](const SumLimit& limit) { return satisfies(limit, rows); });
    });
    if (!any) {
      Fault fault;  // no set fits; or the work limit was reached before that was proven
      if (!knapsack.complete) fault.status = Status::undecided;
      return fault;
    }
    choice.proven = knapsack.complete;
    choice.rows = knapsack.chosen;
    complete_choice(items, choice);
    choice.bound = std::max(choice.value, knapsack.bound);
    return {};
  }
};

inline Fault choose_constrained(const double* cost, const double* value, int count, int n,
                           double budget, const std::vector<SumLimit>& limits, double gap,
                           std::int64_t work, Choice*& choice) noexcept {
  Fault fault;
  const Status status = guarded([&] {
    static thread_local ConstrainedChooser scratch;
    choice = &scratch.choice;
    fault = scratch.run({cost, value, count}, n, budget, limits, gap, work);
    return Status::ok;
  });
  if (status != Status::ok) fault.status = status;
  return fault;
}

}  // namespace slotkern

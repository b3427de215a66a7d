// choose: the cardinality-constrained knapsack as a call of its own, for the binding knapsack.pyx.
// Validates the items, selects the algorithm (table or search), and computes the sums of the chosen
// items: costs exactly, rounded once; values in ascending (cost, row) order.
//
// Items that fit into no set are removed first, so that they cannot inflate rounding bounds, scales
// or the table. Memory: 10 columns of the items, and at most `memory` bytes of lists or table.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/status.hpp"
#include "slotkern/choice/knapsack.hpp"

namespace slotkern {

enum class Method : int { fastest = 0, table, search };

struct Choice {
  bool any = false, proven = true;
  double value = 0, cost = 0, bound = 0;
  std::vector<int> rows;  // ascending row numbers
};

// Completes a choice of `rows`: sorts them, and computes the cost exactly, rounded once, and the
// value in ascending (cost, row) order.
inline void complete_choice(const Items& items, Choice& choice) {
  std::vector<int>& rows = choice.rows;
  std::sort(rows.begin(), rows.end(), [&](int a, int b) {
    return items.cost[a] < items.cost[b] || (items.cost[a] == items.cost[b] && a < b);
  });
  choice.any = true;
  choice.cost = exact_sum(rows.size(), [&](std::size_t i) { return items.cost[rows[i]]; });
  choice.value = 0;
  for (const int i : rows) choice.value += items.value[i];
  std::sort(rows.begin(), rows.end());
}

struct Chooser {
  Knapsack knapsack;
  std::vector<std::int64_t> costs;
  std::vector<double> sorted;
  std::vector<Choice> choices;
  Items all_items{nullptr, nullptr, 0};
  ItemSet cheapest;
  ItemSubset affordable;  // the items that fit into some set

  // Maps the chosen items to the caller's rows and computes the sums of the choice.
  void finish(Choice& choice) const {
    if (!affordable.ids.empty())
      for (int& i : choice.rows) i = affordable.ids[static_cast<std::size_t>(i)];
    complete_choice(all_items, choice);
  }

  // Returns the items that fit with the n - 1 cheapest others. Afterwards `cheapest` holds the n
  // cheapest of them.
  Items keep_affordable(int n, double budget) {
    LagrangianBound::select_heaviest(all_items, n, 0, 1, cheapest);
    const double nth = all_items.cost[cheapest.chosen.back()], others = cheapest.cost - nth;
    const double max_cost = std::min(budget, budget - others + 0x1p-50 * (n + 8) * budget);
    affordable.ids.clear();
    if (!(nth <= max_cost)) return {nullptr, nullptr, 0};
    const bool all_fit = std::all_of(all_items.cost, all_items.cost + all_items.count,
                                     [max_cost](double cost) { return cost <= max_cost; });
    const Items items = affordable.keep(all_items, max_cost, !all_fit);
    const std::vector<int>& ids = affordable.ids;
    if (!ids.empty())
      for (int& i : cheapest.chosen)
        i = static_cast<int>(std::lower_bound(ids.begin(), ids.end(), i) - ids.begin());
    return items;
  }

  static Fault check(const Items& items, int n) {
    for (int i = 0; i < items.count; ++i) {
      const std::size_t row = static_cast<std::size_t>(i);
      if (!(items.cost[i] >= 0) || std::isinf(items.cost[i]))
        return {Status::cost_not_valid, row, 0};
      if (!std::isfinite(items.value[i])) return {Status::value_not_finite, row, 0};
    }
    double cost = 0, value = 0;
    for (int i = 0; i < items.count; ++i) {
      cost = std::max(cost, items.cost[i]);
      value = std::max(value, std::fabs(items.value[i]));
    }
    // Sums are multiplied and compared later, so they must stay far below the largest double.
    if (!((n + 64.0) * std::max(cost, value) < 1e300)) return {Status::sum_overflows, 0, 0};
    return {};
  }

  // Number of columns of the table of eq. (2): the smaller of the budget and the n largest costs,
  // plus 1.
  double table_width(const Items& items, int n, double budget) {
    sorted.assign(items.cost, items.cost + items.count);
    const auto middle = sorted.begin() + std::min(n, items.count);
    std::partial_sort(sorted.begin(), middle, sorted.end(), std::greater<>());
    double max_sum = 0;
    for (auto it = sorted.begin(); it != middle; ++it) max_sum += *it;
    return std::floor(std::min(budget, max_sum)) + 1;
  }

  // Converts the costs to integers; a fault names the first cost that is none.
  Fault convert_costs(const Items& items) {
    for (int i = 0; i < items.count; ++i)
      if (items.cost[i] != std::floor(items.cost[i]) || items.cost[i] >= 0x1p52)
        return {Status::cost_not_integer, static_cast<std::size_t>(i), 0};
    costs.clear();
    for (int i = 0; i < items.count; ++i)
      costs.push_back(static_cast<std::int64_t>(items.cost[i]));
    return {};
  }

  // Fills choices[k - from] for k = from..n from one table.
  Fault solve_by_table(const Items& items, int from, int n, double columns, double memory) {
    if (!KnapsackTable::fits(items.count, n, columns, memory))
      return {Status::table_too_large, 0, 0};
    const std::size_t last = static_cast<std::size_t>(columns) - 1;
    knapsack.work += static_cast<std::int64_t>(KnapsackTable::cells(items.count, n, columns) /
                                               KnapsackTable::kCellsPerUnit);
    knapsack.table().run(costs.data(), items.value, static_cast<std::size_t>(items.count),
              static_cast<std::size_t>(n), last + 1, from < n);
    for (int k = from; k <= n; ++k) {
      Choice& choice = choices[static_cast<std::size_t>(k - from)];
      if (knapsack.table().best(static_cast<std::size_t>(k), last) == -kInfinity) continue;
      knapsack.table().trace(static_cast<std::size_t>(k), last, choice.rows);
      finish(choice);
      choice.bound = choice.value + knapsack.rounding(k, choice.value);
    }
    return {};
  }

  // Finds the best choice of n items by Knapsack.
  void solve_by_search(const Items& items, int n, double budget, Choice& choice) {
    const bool known = cheapest.chosen.size() == static_cast<std::size_t>(n);
    if (!knapsack.solve(items, n, budget, {}, -kInfinity, 0, known ? &cheapest : nullptr)) return;
    choice.rows = knapsack.chosen;
    finish(choice);
    choice.proven = knapsack.complete;
    choice.bound = std::max(choice.value, knapsack.bound);
  }

  // Fills choices[k - from] with the best choice of k items, for k = from..n.
  Fault run(const Items& all, int from, int n, double amount, double gap,
            const WorkLimits& limits, Method method) {
    const double budget = relaxed_max(amount);
    choices.clear();
    choices.resize(static_cast<std::size_t>(n - from + 1));
    knapsack.work = 0;
    all_items = all;
    if (const Fault fault = check(all_items, n); fault.status != Status::ok) return fault;
    if (method == Method::table)
      if (const Fault fault = convert_costs(all_items); fault.status != Status::ok) return fault;
    if (all_items.count < from) return {};
    const Items items = keep_affordable(from, budget);
    const int max_pick = std::min(n, items.count);
    if (max_pick < from) return {};
    knapsack.scale = ValueScale::from_values(items.value, items.count);
    const int cardinalities = max_pick - from + 1;
    bool table = method == Method::table;
    // For a single cardinality Knapsack itself decides about a table, except for tiny ones.
    if (method == Method::fastest)
      table = (cardinalities > 1 || is_tiny_table(items, max_pick, budget)) &&
              convert_costs(items).status == Status::ok;
    if (method == Method::table) convert_costs(items);
    const double columns = table ? table_width(items, max_pick, budget) : 0;
    if (method == Method::table)
      return solve_by_table(items, from, max_pick, columns, limits.memory);
    const double units =
        KnapsackTable::cells(items.count, max_pick, columns) / KnapsackTable::kCellsPerUnit;
    const double allowed = static_cast<double>(limits.work);
    const bool applies = table && units <= allowed &&
                         KnapsackTable::fits(items.count, max_pick, columns, limits.memory);
    // One table serves all cardinalities; bounds alone cost about kSearchUnitsPerItem * m for each.
    if (applies && units < kSearchUnitsPerItem * items.count * cardinalities)
      return solve_by_table(items, from, max_pick, columns, limits.memory);
    knapsack.gap = gap;
    knapsack.limits = limits;
    knapsack.limits.allow_table = method != Method::search;
    if (cardinalities > 1 || items.count > kManyItems) enable_interrupts();
    // With several cardinalities all searches together may spend half of the table's work.
    if (applies && cardinalities > 1)
      knapsack.limits.work = static_cast<std::int64_t>(std::min(units / 2, allowed - units));
    for (int k = from; k <= max_pick; ++k) {
      solve_by_search(items, k, budget, choices[static_cast<std::size_t>(k - from)]);
      if (knapsack.complete || !applies || cardinalities == 1) continue;
      choices.assign(choices.size(), {});
      return solve_by_table(items, from, max_pick, columns, limits.memory);
    }
    return {};
  }

  // Estimates if the table of eq. (2) may take less than kSearchUnitsPerItem units an item.
  static bool is_tiny_table(const Items& items, int n, double budget) {
    const double small_cost = kSearchUnitsPerItem * KnapsackTable::kCellsPerUnit / n;
    return budget < small_cost ||
           std::all_of(items.cost, items.cost + items.count,
                       [small_cost](double c) { return c < small_cost; });
  }

  static constexpr double kSearchUnitsPerItem = 2;
  static constexpr int kManyItems = 1 << 12;
};

inline Chooser& choice_scratch() {
  static thread_local Chooser scratch;
  return scratch;
}

// Returns the units of work of the calling thread's last choose().
inline std::int64_t last_work() noexcept { return choice_scratch().knapsack.work; }

inline Fault choose(const double* cost, const double* value, int count, int from, int n,
                    double budget, double gap, std::int64_t work, double memory,
                    Method method, std::vector<Choice>*& choices) noexcept {
  Fault fault;
  const Status status = guarded([&] {
    Chooser& scratch = choice_scratch();
    choices = &scratch.choices;
    WorkLimits limits;
    limits.work = work;
    limits.memory = memory;
    fault = scratch.run({cost, value, count}, from, n, budget, gap, limits, method);
    for (const Choice& choice : *choices)
      if (choice.any && !(choice.cost <= relaxed_max(budget))) return Status::internal;
    return Status::ok;
  });
  if (status != Status::ok) fault.status = status;
  return fault;
}

}  // namespace slotkern

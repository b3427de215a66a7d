// Unit tests of the knapsacks: each part against exhaustive search or its plain definition.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "slotkern/choice/choose.hpp"
#include "slotkern/choice/multiple_choice.hpp"
#include "slotkern/choice/trade_off.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

void select_heaviest_matches_sorting() {
  for (int round = 0; round < 200; ++round) {
    const int count = 1 + static_cast<int>(below(200)),
              n = 1 + static_cast<int>(below(static_cast<std::size_t>(count)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(below(12)));
      value.push_back(static_cast<double>(below(12)) - 4);
    }
    ItemSet heaviest;
    LagrangianBound::select_heaviest({cost.data(), value.data(), count}, n, 1, 0.5, heaviest);
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    const auto weigh = [&](int i) {
      return value[static_cast<std::size_t>(i)] - 0.5 * cost[static_cast<std::size_t>(i)];
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weigh(a) > weigh(b); });
    order.resize(static_cast<std::size_t>(n));
    double weight = 0, money = 0;
    for (const int i : order) weight += weigh(i), money += cost[static_cast<std::size_t>(i)];
    CHECK(heaviest.weight == weight && heaviest.cost == money);
    CHECK(heaviest.min_weight == weigh(order.back()));
    std::vector<int> chosen = heaviest.chosen;
    std::sort(chosen.begin(), chosen.end());
    std::sort(order.begin(), order.end());
    CHECK(chosen == order);
  }
}

// The bound holds for every feasible set, and `is_optimal` implies that the set is the best one.
void lagrangian_bounds_are_valid() {
  for (int round = 0; round < 400; ++round) {
    const int count = 2 + static_cast<int>(below(8)), n = 1 + static_cast<int>(below(
                                                              static_cast<std::size_t>(count)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(below(20)));
      value.push_back(static_cast<double>(below(20)));
    }
    const double budget = static_cast<double>(below(60));
    double best = -kInfinity;
    each_set(count, n, [&](const std::vector<int>& set) {
      double money = 0, worth = 0;
      for (const int i : set)
        money += cost[static_cast<std::size_t>(i)], worth += value[static_cast<std::size_t>(i)];
      if (money <= budget) best = std::max(best, worth);
    });
    LagrangianBound lagrange;
    const bool any = lagrange.solve({cost.data(), value.data(), count}, n, budget, 1000, 0,
                                    -kInfinity,
                                    [&](const ItemSet& set) { return set.cost <= budget; });
    CHECK(any == (best > -kInfinity));
    if (!any) continue;
    CHECK(lagrange.bound >= best - 1e-9 && lagrange.feasible.cost <= budget);
    CHECK(lagrange.feasible.value <= best);
    if (lagrange.is_optimal) CHECK(lagrange.feasible.value == best);
    double weight = lagrange.lambda * budget;
    ItemSet heaviest;
    LagrangianBound::select_heaviest({cost.data(), value.data(), count}, n, 1, lagrange.lambda,
        heaviest);
    weight += heaviest.weight;
    if (!lagrange.is_optimal) CHECK(std::fabs(weight - lagrange.bound) < 1e-9 * (1 + weight));
  }
}

// A core as Knapsack::reduce creates it, by descending weight, with cost errors of up to `error`.
Core make_core(const std::vector<double>& cost, const std::vector<double>& value, int pick,
               double capacity, double error) {
  Core core;
  core.pick = pick, core.capacity[0] = capacity, core.slack[0] = 2 * error * pick;
  core.lambda[0] = 0.7;
  std::vector<int> order(cost.size());
  std::iota(order.begin(), order.end(), 0);
  const auto weigh = [&](int i) {
    const auto k = static_cast<std::size_t>(i);
    return value[k] - core.lambda[0] * cost[k];
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return weigh(a) > weigh(b); });
  const auto p = static_cast<std::size_t>(pick);
  core.middle = p < order.size() ? 0.5 * (weigh(order[p - 1]) + weigh(order[p])) : 0;
  for (const int i : order) {
    const auto k = static_cast<std::size_t>(i);
    core.add(weigh(i) - core.middle, cost[k] + error * (2 * real() - 1), value[k], i);
  }
  core.set_offset();
  return core;
}

// Both searches of the core against exhaustive search. If costs are not exact, the dynamic program
// reports a rounding conflict, and its strict variant still finds the optimum.
void core_searches_match_exhaustive_search() {
  int conflicts = 0;
  for (int round = 0; round < 1200; ++round) {
    const int count = 2 + static_cast<int>(below(9)), pick = 1 + static_cast<int>(below(
                                                              static_cast<std::size_t>(count - 1)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(1 + below(9)));
      value.push_back(static_cast<double>(below(3)) + cost.back() * (round % 3 == 0));
    }
    const double capacity = static_cast<double>(below(static_cast<std::size_t>(6 * pick)) + 1);
    const double error = round % 2 == 0 ? 0 : 0.3;
    const Core core = make_core(cost, value, pick, capacity, error);
    double best = -kInfinity;
    each_set(count, pick, [&](const std::vector<int>& set) {
      double money = 0, worth = 0;
      for (const int i : set)
        money += cost[static_cast<std::size_t>(i)], worth += value[static_cast<std::size_t>(i)];
      if (money <= capacity) best = std::max(best, worth);
    });
    const Tolerance tolerance{0, 0, 2 * error * pick + 1e-9};
    double seen = -kInfinity;
    const auto accept = [&](const std::vector<int>& positions) {
      double money = 0, worth = 0;
      for (const int j : positions) {
        const auto k = static_cast<std::size_t>(core.id[static_cast<std::size_t>(j)]);
        money += cost[k], worth += value[k];
      }
      CHECK(std::set<int>(positions.begin(), positions.end()).size() ==
            static_cast<std::size_t>(pick));
      if (!(money <= capacity)) return false;
      seen = worth;
      return true;
    };
    CoreBranchAndBound<OneLimit> depth;
    double found = -kInfinity;
    CHECK(depth.run(core, tolerance, found, 1'000'000, accept));
    CHECK(found == best && (found == seen || found == -kInfinity));
    found = -kInfinity;
    CHECK(!depth.run(core, tolerance, found, 0, accept) || depth.nodes == 0);
    CoreDynamicProgram program;
    found = seen = -kInfinity;
    CHECK(program.run<false>(core, tolerance, found, 1'000'000, 1e9, accept));
    if (!program.has_rounding_conflict) CHECK(found == best);
    CHECK(found == seen);
    if (error == 0) CHECK(!program.has_rounding_conflict);
    conflicts += program.has_rounding_conflict;
    found = seen = -kInfinity;
    CHECK(program.run<true>(core, tolerance, found, 1'000'000, 1e9, accept));
    CHECK(found == best && found == seen);
    found = -kInfinity;
    if (program.states > 40) {
      CHECK(!program.run<true>(core, tolerance, found, 20, 1e9, accept) && program.states == 20);
      CHECK(!program.run<true>(core, tolerance, found, 1'000'000, 1, accept));
    }
  }
  CHECK(conflicts > 40);
}

void tables_match_exhaustive_search() {
  for (int round = 0; round < 150; ++round) {
    const int count = 1 + static_cast<int>(below(9));
    const auto n = 1 + below(static_cast<std::size_t>(count));
    const std::size_t width = 1 + below(round % 4 == 0 ? 1200 : 40);
    std::vector<std::int64_t> cost;
    std::vector<double> value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<std::int64_t>(below(width + 3)) / (round % 3 + 1));
      value.push_back(static_cast<double>(below(30)) - 5);
    }
    const bool each = below(2) == 0;
    KnapsackTable table;
    table.run(cost.data(), value.data(), cost.size(), n, width, each);
    for (std::size_t k = each ? 1 : n; k <= n; ++k)
      for (const std::size_t column : {width - 1, below(width)}) {
        double best = -kInfinity;
        each_set(count, static_cast<int>(k), [&](const std::vector<int>& set) {
          std::int64_t money = 0;
          double worth = 0;
          for (const int i : set)
            money += cost[static_cast<std::size_t>(i)], worth += value[static_cast<std::size_t>(i)];
          if (money <= static_cast<std::int64_t>(column)) best = std::max(best, worth);
        });
        CHECK(table.best(k, column) == best);
        if (best == -kInfinity) continue;
        std::vector<int> chosen;
        table.trace(k, column, chosen);
        double worth = 0;
        std::int64_t money = 0;
        for (const int i : chosen)
          worth += value[static_cast<std::size_t>(i)], money += cost[static_cast<std::size_t>(i)];
        CHECK(chosen.size() == k && worth == best && money <= static_cast<std::int64_t>(column));
      }
  }
  CHECK(KnapsackTable::fits(10, 3, 1, 8 * 4 * 1024 + 30 * 128));
  CHECK(!KnapsackTable::fits(10, 3, 1, 8 * 4 * 1024 + 30 * 128 - 1));
}

// Sums that tie up to rounding: the set that the dynamic program keeps exceeds the budget by one
// ulp, and only the strict variant, run afterwards, keeps another set of equal value.
void rounding_conflicts_repeat_the_dynamic_program() {
  std::vector<double> cost, value;
  for (const int c : {47, 33, 43, 40, 22, 25, 28, 21, 28, 39, 31,
                      27, 33, 46, 27, 35, 32, 24, 35, 37, 26}) {
    cost.push_back(0.1 * c);
    value.push_back(c);
  }
  const int count = 21, pick = 10;
  double budget = 0, best = -kInfinity;
  for (std::size_t i = 0; i < 10; ++i) budget += cost[i];
  budget = std::nextafter(budget, 0);
  each_set(count, pick, [&](const std::vector<int>& set) {
    double worth = 0;
    for (const int i : set) worth += value[static_cast<std::size_t>(i)];
    if (worth <= best) return;
    const double money = exact_sum(set.size(), [&](std::size_t k) {
      return cost[static_cast<std::size_t>(set[k])];
    });
    if (money <= budget) best = worth;
  });
  Knapsack knapsack;
  knapsack.scale = ValueScale::from_values(value.data(), count);
  CHECK(knapsack.solve({cost.data(), value.data(), count}, pick, budget, ForcedItems{},
      -kInfinity));
  CHECK(knapsack.complete && knapsack.best == best && best == 325);
}

void core_tables_subtract_minimum_and_divisor() {
  Core core;
  const double cost[] = {10, 16, 22, 34, 10}, value[] = {1, 5, 6, 9, 2};
  for (int i = 0; i < 5; ++i) core.add(0, cost[i], value[i], i);
  core.pick = 2;
  CoreTable table;
  for (double capacity = 19; capacity <= 60; ++capacity) {
    double best = -kInfinity;
    each_set(5, 2, [&](const std::vector<int>& set) {
      if (cost[set[0]] + cost[set[1]] <= capacity)
        best = std::max(best, value[set[0]] + value[set[1]]);
    });
    const std::int64_t work = table.prepare(core, capacity, 1e6);
    CHECK((work >= 0) == (capacity >= 20));
    if (work < 0) continue;
    CHECK(work <= 1);  // five columns: costs 0, 1, 2, 4, 0 times 6
    CHECK(table.run(core) == best);
    const std::vector<int>& set = table.trace(core);
    CHECK(set.size() == 2 && value[set[0]] + value[set[1]] == best);
  }
  CHECK(table.prepare(core, 60, 10) < 0);
  core.use[0][2] = 22.5;
  CHECK(table.prepare(core, 60, 1e6) < 0);
}

void swaps_match_exhaustive_search() {
  for (int round = 0; round < 300; ++round) {
    const int count = 3 + static_cast<int>(below(8)), n = 1 + static_cast<int>(below(
                                                              static_cast<std::size_t>(count - 1)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(below(10)));
      value.push_back(static_cast<double>(below(10)));
    }
    std::vector<int> set(static_cast<std::size_t>(n));
    std::iota(set.begin(), set.end(), 0);
    const auto sum = [](const std::vector<double>& column, const std::vector<int>& ids) {
      double total = 0;
      for (const int i : ids) total += column[static_cast<std::size_t>(i)];
      return total;
    };
    const double capacity = sum(cost, set) + static_cast<double>(below(4));
    LocalSearch swaps;
    swaps.reset({cost.data(), value.data(), count}, capacity, 0);
    swaps.start_from(set);
    double gain = 0;
    for (const int i : set)
      for (int j = n; j < count; ++j)
        if (sum(cost, set) - cost[static_cast<std::size_t>(i)] +
                cost[static_cast<std::size_t>(j)] <= capacity)
          gain = std::max(gain, value[static_cast<std::size_t>(j)] -
                                    value[static_cast<std::size_t>(i)]);
    const bool moved = swaps.swap_one();
    CHECK(moved == (gain > 0));
    CHECK(sum(value, swaps.set()) == sum(value, set) + gain);
    CHECK(sum(cost, swaps.set()) <= capacity);
    swaps.start_from(set);
    std::int64_t work = 0;
    if (swaps.swap_two(work)) CHECK(sum(value, swaps.set()) > sum(value, set));
    CHECK(work == 4 * n * (count - n) + 1);
    CHECK(sum(cost, swaps.set()) <= capacity);
    swaps.perturb();
    std::vector<int> ids = swaps.set();
    CHECK(sum(cost, ids) <= capacity);
    CHECK(std::set<int>(ids.begin(), ids.end()).size() == static_cast<std::size_t>(n));
  }
}

void multiple_choice_matches_exhaustive_search() {
  for (int round = 0; round < 500; ++round) {
    const std::size_t count = 1 + below(5);
    std::vector<std::int64_t> first{0};
    std::vector<double> value, weight;
    const double unit = round % 2 == 0 ? 1 : 0.1;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t size = 1 + below(4);
      for (std::size_t i = 0; i < size; ++i) {
        weight.push_back(unit * static_cast<double>(below(12)));
        value.push_back(unit * static_cast<double>(below(12)) - 0.3);
      }
      first.push_back(first.back() + static_cast<std::int64_t>(size));
    }
    const double limit = unit * static_cast<double>(below(10 * count));
    const bool maximize = below(2) == 0;
    const Classes classes{value.data(), weight.data(), first.data(), count};
    double best = -kInfinity, least = kInfinity;
    std::vector<std::pair<ExactSum, double>> sums{{{}, 0}};
    for (std::size_t k = 0; k < count; ++k) {
      std::vector<std::pair<ExactSum, double>> more;
      for (const auto& [w, z] : sums)
        for (auto row = static_cast<std::size_t>(first[k]);
             row < static_cast<std::size_t>(first[k + 1]); ++row) {
          more.push_back({w, z + value[row]});
          more.back().first.add(weight[row]);
        }
      sums = more;
    }
    std::vector<std::pair<double, double>> all;
    for (const auto& [w, z] : sums) all.push_back({w.value(), z});
    const double sign = maximize ? 1 : -1;
    for (const auto& [w, z] : all) {
      least = std::min(least, w);
      if (w <= relaxed_max(limit)) best = std::max(best, sign * z);
    }
    MultipleChoiceKnapsack* answer = nullptr;
    CHECK(choose_one_each(classes, limit, maximize, 0, 1 << 20, answer).status == Status::ok);
    CHECK(answer->feasible == (best > -kInfinity) && answer->least == least);
    if (answer->feasible) {
      CHECK(answer->proven && answer->weight <= relaxed_max(limit) && answer->rows.size() == count);
      CHECK(std::fabs(sign * answer->value - best) <= 1e-12 * (1 + std::fabs(best)));
      CHECK(sign * answer->bound >= best - 1e-12 * (1 + std::fabs(best)));
      for (std::size_t k = 0; k < count; ++k)
        CHECK(first[k] <= answer->rows[k] && answer->rows[k] < first[k + 1]);
      CHECK(answer->weight == exact_sum(count, [&](std::size_t k) {
              return weight[static_cast<std::size_t>(answer->rows[k])];
            }));
    }
    CHECK(choose_one_each(classes, limit, maximize, 0, 1, answer).status == Status::ok);
    if (answer->feasible)
      CHECK(sign * answer->bound >= best - 1e-12 * (1 + std::fabs(best)) &&
            sign * answer->value <= sign * answer->bound);
    TradeOff pairs;
    CHECK(trade_off(classes, maximize, 1 << 20, pairs).status == Status::ok && pairs.complete);
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : sign * a.second > sign * b.second;
    });
    std::vector<std::pair<double, double>> front;
    for (const auto& pair : all)
      if (front.empty() || sign * pair.second > sign * front.back().second) front.push_back(pair);
    CHECK(front.size() == pairs.value.size());
    for (std::size_t i = 0; i < std::min(front.size(), pairs.value.size()); ++i)
      CHECK(front[i].first == pairs.weight[i] && front[i].second == pairs.value[i]);
    CHECK(trade_off(classes, maximize, 0, pairs).status == Status::ok && !pairs.complete &&
          pairs.value.empty());
  }
}

// Sums so fine that the first incumbent is not optimal: a search that reaches its work limit is not
// proven, and its bound covers the optimum.
void unproven_choices_have_valid_bounds() {
  for (int round = 0; round < 5; ++round) {
    const std::size_t count = 12, size = 6;
    std::vector<std::int64_t> first{0};
    std::vector<double> weight;
    double limit = 0;
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t i = 0; i < size; ++i) {
        weight.push_back(static_cast<double>(below(1000000000)));
        limit += weight.back() / static_cast<double>(size);
      }
      first.push_back(first.back() + static_cast<std::int64_t>(size));
    }
    const Classes classes{weight.data(), weight.data(), first.data(), count};
    MultipleChoiceKnapsack* answer = nullptr;
    CHECK(choose_one_each(classes, limit, true, 0, 1 << 24, answer).status == Status::ok);
    const double better = answer->value;
    CHECK(choose_one_each(classes, limit, true, 0, 1, answer).status == Status::ok);
    CHECK(!answer->proven && answer->value < better && better <= answer->bound);
  }
}

// The first of equal rows is chosen, however many there are; work is counted in states.
void equal_rows_of_classes_and_work() {
  std::vector<double> value, weight;
  std::vector<std::int64_t> first{0};
  for (int k = 0; k < 30; ++k) {
    for (int i = 0; i < 40; ++i) {
      value.push_back(i % 2 == 0 ? 2 : 1);
      weight.push_back(1);
    }
    first.push_back(first.back() + 40);
  }
  const Classes classes{value.data(), weight.data(), first.data(), 30};
  MultipleChoiceKnapsack* answer = nullptr;
  for (const bool maximize : {false, true}) {
    CHECK(choose_one_each(classes, 100, maximize, 0, 1 << 20, answer).status == Status::ok);
    for (std::size_t k = 0; k < 30; ++k)
      CHECK(answer->rows[k] == first[k] + (maximize ? 0 : 1));
  }
  int unproven = 0, proven = 0;
  for (int round = 0; round < 20; ++round) {
    for (double& w : weight) w = real();
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = 1 - weight[i] + 1e-3 * real();
    CHECK(choose_one_each(classes, 12, false, 0, 1 << 24, answer).status == Status::ok);
    proven += answer->proven;
    CHECK(choose_one_each(classes, 12, false, 0, 1000, answer).status == Status::ok);
    unproven += !answer->proven;
  }
  CHECK(proven == 20 && unproven == 20);
}

// Sums of integers are exact: the bound of the optimum equals its value, and a sum smaller by 1 is
// not accepted.
void integer_sums_are_compared_exactly() {
  for (int round = 0; round < 60; ++round) {
    std::vector<double> cost, value;
    for (int i = 0; i < 12; ++i) {
      cost.push_back(0.1 * static_cast<double>(1 + below(50)));
      value.push_back(1e13 + static_cast<double>(below(20)));
    }
    double best = -kInfinity;
    each_set(12, 5, [&](const std::vector<int>& set) {
      double worth = 0;
      for (const int i : set) worth += value[static_cast<std::size_t>(i)];
      const double money = exact_sum(set.size(), [&](std::size_t k) {
        return cost[static_cast<std::size_t>(set[k])];
      });
      if (money <= relaxed_max(12)) best = std::max(best, worth);
    });
    std::vector<Choice>* choices = nullptr;
    CHECK(choose(cost.data(), value.data(), 12, 5, 5, 12, 0, 1 << 30, 1e9, Method::search,
                 choices).status == Status::ok);
    const Choice& choice = choices->front();
    CHECK(choice.any == (best > -kInfinity));
    if (choice.any) CHECK(choice.proven && choice.value == best && choice.bound == best);
  }
}

void interrupts_are_reported() {
  const double cost[] = {1, 2.5, 3}, value[] = {1, 2, 4};
  InterruptScope watch;
  watch.arm(true);
  detail::stop_flags = detail::by_signal;
  std::vector<Choice>* choices = nullptr;
  CHECK(choose(cost, value, 3, 2, 2, 4, 0, 1 << 30, 1e9, Method::search, choices).status ==
        Status::interrupted);
  detail::stop_flags = 0;
}

}  // namespace

int main() {
  select_heaviest_matches_sorting();
  lagrangian_bounds_are_valid();
  core_searches_match_exhaustive_search();
  tables_match_exhaustive_search();
  rounding_conflicts_repeat_the_dynamic_program();
  core_tables_subtract_minimum_and_divisor();
  swaps_match_exhaustive_search();
  multiple_choice_matches_exhaustive_search();
  unproven_choices_have_valid_bounds();
  equal_rows_of_classes_and_work();
  integer_sums_are_compared_exactly();
  interrupts_are_reported();
  return report();
}

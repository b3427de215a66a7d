// Choose exactly n of m items, the most value within the budget (2018, section 3.3, eq. 1), for
// real costs and values, exactly.
//
// Stages, each only if the one before left the question open:
//   1. the Lagrange bound and the best set it meets within the budget; 1-swaps improve that;
//   2. items whose exchange costs more than (bound - incumbent) are decided; the rest is the core;
//   3. depth-first search, limited; 4. core lists, limited; 2-swaps;
//   5. for integer costs the table over the core once the others have spent a share of its
//      work, which is known beforehand; else the lists to their end.
// What a set is worth and whether it fits is judged in choice/best_set.hpp. Work is counted, never
// timed: one unit is a node of the search, a state of the lists, half an exchange of two items,
// 64 cells of the table or of the exchanges of one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/choice/best_set.hpp"
#include "slotkern/choice/core.hpp"
#include "slotkern/choice/core_table.hpp"
#include "slotkern/choice/problem.hpp"
#include "slotkern/choice/swaps.hpp"

namespace slotkern {

class Knapsack : public BestSet {
 public:
  KnapsackTable& table() { return core_table_.table; }  // at the caller's between calls

  // A set of `pick` items that, with the forced one, beats `incumbent`. False if there is none
  // (or none was found: see `complete`). `cheapest`: the `pick` cheapest, where they are known.
  bool solve(const Items& items, int pick, double budget, const Forced& forced, double incumbent,
             double first_lambda = 0, const Side* cheapest = nullptr) {
    begin(items, pick, budget, forced, incumbent);
    leave_out_dear();
    if (pick == 0 || pick >= items_.count) {
      trivial();
    } else {
      stages(first_lambda, items_.count == items.count ? cheapest : nullptr);
    }
    count_all_again(items);
    return found_;
  }

  // Of the last solve(), 0 if it needed none.
  double lambda() const { return lagrange_.lambda; }

  // The same for items that lie by falling weight = value - lambda * cost already: a short
  // depth-first search first, solve() only if that does not settle it.
  bool improve(const Items& items, const double* weight, int pick, double budget, double lambda,
               const Forced& forced, double incumbent) {
    begin(items, pick, budget, forced, incumbent);
    if (pick == 0 || pick >= items.count) return trivial();
    tolerance_.noise = noise(pick, lambda * reach_);
    core_.clear();
    core_.middle = weight[pick - 1];
    fixed_.clear();
    double heaviest = forced.value + lambda * room_;
    for (int j = 0; j < pick; ++j) heaviest += weight[j];
    const double least = core_.middle - (heaviest - tolerance_.beat(best));
    for (int j = 0; j < items.count && (j < pick || weight[j] > least); ++j)
      core_.add(weight[j] - core_.middle, items.cost[j], items.value[j], j);
    core_.pick = pick;
    core_.lambda = lambda;
    core_.base_value = forced.value;
    core_.room = room_;
    core_.slack = slack_;
    core_.offset = forced.value + lambda * room_ + pick * core_.middle;
    if (depth_first(kShortSearch)) return found_;
    const std::vector<int> kept = chosen;
    const bool found = found_;
    if (solve(items, pick, budget, forced, best, lambda)) return true;
    if (found) chosen = kept;
    return found_ = found;
  }

 private:
  void begin(const Items& items, int pick, double budget, const Forced& forced,
             double incumbent) {
    start(items, pick, budget, forced, incumbent);
    lagrange_.lambda = 0;  // that of an earlier search would make answers depend on it
  }

  // At most one set to choose from.
  bool trivial() {
    bound = -kInfinity;
    if (pick_ > items_.count) return false;
    set_.clear();
    for (int i = 0; i < pick_; ++i) set_.push_back(i);
    if (fits_exactly(set_)) {
      bound = value_of(set_);
      bound += rounding(pick_, bound);
      consider(set_);
    }
    return found_;
  }

  void stages(double first_lambda, const Side* cheapest) {
    const bool first = best == -kInfinity;
    const double stop = tolerance_.beat(best) - forced_.value;
    const auto within = [&](const Side& side) { return fits(side.chosen, side.cost); };
    if (!lagrange_.solve(items_, pick_, room_, reach_, first_lambda, stop, within, cheapest)) {
      bound = -kInfinity;
      return;
    }
    bound = lagrange_.bound + forced_.value;
    consider(lagrange_.under.chosen);
    if (!lagrange_.closed) {
      tolerance_.noise = noise(pick_, lagrange_.lambda * reach_);
      swaps_.start(items_, room_, slack_);
      if (open() && first) {
        swaps_.stand_on(lagrange_.under.chosen);
        one_swaps();
      }
      if (open()) search();
    }
    conclude();
  }

  // Positions in the core, as the searches report them.
  bool accept(const std::vector<int>& positions) {
    set_ = fixed_;
    for (const int j : positions) set_.push_back(core_.id[at(j)]);
    if (!fits_exactly(set_)) return false;
    chosen = set_;
    return found_ = true;
  }

  // Decides all items that no better set can exchange; the others become the core, which is
  // `sorted` by falling weight unless only the table shall see it.
  void reduce(bool sorted = true) {
    const double lambda = lagrange_.lambda;
    Lagrange::top(items_, pick_, 1, lambda, side_);
    mark(side_.chosen);
    weight_.resize(static_cast<std::size_t>(items_.count));
    double next = -kInfinity;
    for (int i = 0; i < items_.count; ++i) {
      weight_[at(i)] = items_.value[i] - lambda * items_.cost[i];
      if (!marked_[at(i)]) next = std::max(next, weight_[at(i)]);
    }
    double last = kInfinity;
    for (const int i : side_.chosen) last = std::min(last, weight_[at(i)]);
    const double gap = bound - tolerance_.beat(best);
    core_.clear();
    fixed_.clear();
    order_.clear();
    core_.base_value = forced_.value;
    core_.room = room_;
    for (int i = 0; i < items_.count; ++i) {
      if (marked_[at(i)] && weight_[at(i)] - next >= gap) {
        fixed_.push_back(i);
        core_.base_value += items_.value[i];
        core_.room -= items_.cost[i];
      } else if (marked_[at(i)] || last - weight_[at(i)] < gap) {
        order_.push_back(i);
      }
    }
    if (sorted)
      std::sort(order_.begin(), order_.end(), [this](int a, int b) {
        const double x = weight_[at(a)], y = weight_[at(b)];
        return x > y || (x == y && a < b);
      });
    core_.pick = pick_ - static_cast<int>(fixed_.size());
    core_.lambda = lambda;
    core_.middle = 0.5 * (last + next);
    core_.slack = slack_;
    for (const int i : order_)
      core_.add(weight_[at(i)] - core_.middle, items_.cost[i], items_.value[i], i);
    core_.offset = core_.base_value + lambda * core_.room + core_.pick * core_.middle;
  }

  // What the stages may spend, known once the core is.
  struct Budgets {
    std::int64_t table;  // work of the table, or -1
    std::int64_t share;  // of it that the others may spend; all that is left if there is none
    std::int64_t first;  // of that, for the first lists
  };

  void search() {
    if (small_table()) return;
    reduce();
    const std::int64_t table = table_work(), share = table >= 0 ? table / 32 + 40 : left();
    const Budgets budgets{table, share, std::min(kFirstStates, share)};
    // Each says whether the question is settled, or given up.
    constexpr bool (Knapsack::*stages[])(const Budgets&) = {
        &Knapsack::go_deep,    &Knapsack::first_lists, &Knapsack::climb_first,
        &Knapsack::enumerate,  &Knapsack::more_lists,  &Knapsack::climb_long,
        &Knapsack::table_at_last};
    for (const auto stage : stages)
      if ((this->*stage)(budgets)) return;
    complete = false;
  }

  // One that is done before the others have begun.
  bool small_table() {
    if (!limits.table) return false;
    reduce(false);
    const std::int64_t small = table_work();
    if (small < 0 || small > kSmallTable * static_cast<std::int64_t>(core_.size()) ||
        small > left())
      return false;
    run_table();
    return true;
  }

  // Depth first: to its end where the core has few sets, else a short look.
  bool go_deep(const Budgets& budgets) {
    const bool few =
        sets() < (budgets.table >= 0 ? static_cast<double>(budgets.table) / 2 : kFewSets);
    const bool finished =
        depth_first(few ? left() : std::min({kShortSearch, budgets.share, left()}));
    if (few) complete = finished;
    return finished || few;
  }

  bool first_lists(const Budgets& budgets) {
    const bool finished = lists(std::min(budgets.first, left()));
    if (!finished) expect_long();
    return finished;
  }

  static bool table_is_near(const Budgets& budgets) { return budgets.share <= budgets.first; }

  // A better set makes the core smaller.
  bool climb_first(const Budgets& budgets) {
    if (table_is_near(budgets)) return false;
    if (found_) climb(std::min({kClimb, budgets.share / 4, left()}));
    if (!open()) return true;
    reduce();
    return false;
  }

  bool enumerate(const Budgets& budgets) {
    if (table_is_near(budgets)) return false;
    if (!(sets() < kManySets && sets() < static_cast<double>(budgets.share))) return false;
    complete = depth_first(left());
    return true;
  }

  bool more_lists(const Budgets& budgets) {
    return !table_is_near(budgets) &&
           lists(std::min({budgets.share - budgets.first, left(), kMostStates}));
  }

  bool climb_long(const Budgets& budgets) {
    if (table_is_near(budgets) || budgets.table >= 0 || !found_) return false;
    climb(std::min(kLastClimb, left()));
    return !open();
  }

  bool table_at_last(const Budgets& budgets) {
    if (budgets.table < 0 || table_work() > left()) return false;
    run_table();
    return true;
  }

  // How many sets the core has: the search has hardly more nodes.
  double sets() const {
    double count = 1;
    for (int k = 1; k <= core_.pick && count < kManySets; ++k)
      count *= static_cast<double>(static_cast<int>(core_.size()) - core_.pick + k) / k;
    return count;
  }

  std::int64_t left() const { return std::max<std::int64_t>(0, limits.work - work); }

  bool depth_first(std::int64_t limit) {
    const bool finished =
        depth_.run(core_, tolerance_, best, limit,
                   [this](const std::vector<int>& set) { return accept(set); });
    work += depth_.nodes;
    return finished;
  }

  bool lists(std::int64_t limit) {
    const auto take = [this](const std::vector<int>& set) { return accept(set); };
    bool finished = lists_.run<false>(core_, tolerance_, best, limit, limits.memory, take);
    work += lists_.states;
    if (finished && lists_.blurred) {
      finished = lists_.run<true>(core_, tolerance_, best, std::min(limit * 4, left()),
                                  limits.memory, take);
      work += lists_.states;
    }
    return finished;
  }

  // --- local search

  void mark(const std::vector<int>& set) {
    marked_.assign(static_cast<std::size_t>(items_.count), 0);
    for (const int i : set) marked_[at(i)] = 1;
  }

  // The best exchange of one item for another, again and again.
  void one_swaps() {
    for (int round = 0; round < kSwaps && left() > 0; ++round) {
      work += swaps_.work_of_one();
      if (!swaps_.exchange_one()) break;
    }
    consider(swaps_.set());
  }

  bool two_swaps() {
    if (!swaps_.exchange_two(work)) return false;
    consider(swaps_.set());
    return true;
  }

  // From the best set, and then from sets a few random exchanges away from it (always the same
  // ones): for values that follow costs closely, where any good sum will do.
  void climb(std::int64_t limit) {
    const std::int64_t until = work + limit;
    swaps_.stand_on(chosen);
    while (work < until) {
      poll();
      for (int round = 0; round < kPairRounds && open(); ++round) {
        one_swaps();
        if (!open() || !two_swaps()) break;
      }
      if (!open()) return;
      swaps_.stand_on(chosen);
      swaps_.kick();
    }
  }

  // --- the table over the core

  // Work of the table, or -1 where it does not apply.
  std::int64_t table_work() {
    if (!limits.table || !(budget_ < kMostInteger)) return -1;
    double room = std::floor(budget_);  // what integers may sum to
    for (const int i : fixed_) {
      if (items_.cost[i] != std::floor(items_.cost[i])) return -1;
      room -= items_.cost[i];
    }
    for (const double c : forced_.costs) {
      if (c != std::floor(c)) return -1;
      room -= c;
    }
    return core_table_.prepare(core_, room, limits.memory);
  }

  void run_table() {
    work += table_work();
    const double value = core_.base_value + core_table_.run(core_);
    if (!(value > best)) return;
    if (accept(core_table_.trace(core_)))
      best = value;
    else
      complete = false;
  }

  static constexpr std::int64_t kSmallTable = 64;  // work for each item of the core
  static constexpr std::int64_t kShortSearch = 300, kFirstStates = 20000, kClimb = 200000;
  static constexpr std::int64_t kMostStates = 10000000, kLastClimb = 20000000;
  static constexpr double kFewSets = 20000, kManySets = 4e6;
  static constexpr int kSwaps = 200, kPairRounds = 20;

  Lagrange lagrange_;
  Side side_;
  Core core_;
  CoreSearch depth_;
  CoreLists lists_;
  Swaps swaps_;
  CoreTable core_table_;
  std::vector<int> fixed_, order_, set_;
  std::vector<char> marked_;
  std::vector<double> weight_;
};

}  // namespace slotkern

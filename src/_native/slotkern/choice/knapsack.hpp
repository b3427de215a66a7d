// Choose exactly n of m items, the most value within the budget (2018, section 3.3, eq. 1), for
// real costs and values, exactly.
//
// Stages, each only if the one before left the question open:
//   1. the Lagrangian bound and the best set it meets within the budget; 1-swaps improve that;
//   2. items whose exchange costs more than (bound - incumbent) are decided; the rest is the core;
//   3. the search: depth first, core lists and local search, in slices that grow;
//   4. for integer costs the table over the core, once the search has spent half of its work.
// The table's work T is known before it begins and the search's is not, so that this order takes
// at most 1.5 T and at most three times the work of the search alone.
//
// choice/knapsack_incumbent.hpp compares values and tests budgets. Work is counted, never timed. One unit
// takes about 10 ns: a node of the depth-first search, a state of the lists, 64 cells of the
// table, a quarter of an exchange of two items, 32 exchanges of one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/choice/knapsack_incumbent.hpp"
#include "slotkern/choice/core.hpp"
#include "slotkern/choice/core_table.hpp"
#include "slotkern/choice/problem.hpp"
#include "slotkern/choice/local_search.hpp"

namespace slotkern {

class Knapsack : public KnapsackIncumbent {
 public:
  KnapsackTable& table() { return core_table_.table; }  // at the caller's between calls

  // A set of `pick` items that, with the forced one, beats `incumbent`. False if there is none
  // (or none was found: see `complete`). `cheapest`: the `pick` cheapest, where they are known.
  bool solve(const Items& items, int pick, double budget, const ForcedItems& forced, double incumbent,
             double first_lambda = 0, const ItemSet* cheapest = nullptr) {
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
               const ForcedItems& forced, double incumbent) {
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
  void begin(const Items& items, int pick, double budget, const ForcedItems& forced,
             double incumbent) {
    start(items, pick, budget, forced, incumbent);
    begun_ = work;
    until_ = limits.work;
    table_ = -1;
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

  void stages(double first_lambda, const ItemSet* cheapest) {
    const bool first = best == -kInfinity;
    const double stop = tolerance_.beat(best) - forced_.value;
    const auto within = [&](const ItemSet& side) { return fits(side.chosen, side.cost); };
    if (!lagrange_.solve(items_, pick_, room_, reach_, first_lambda, stop, within, cheapest)) {
      bound = -kInfinity;
      return;
    }
    bound = lagrange_.bound + forced_.value;
    consider(lagrange_.under.chosen);
    if (!lagrange_.closed) {
      tolerance_.noise = noise(pick_, lagrange_.lambda * reach_);
      swaps_.start(items_, room_, slack_);
      const bool swap = open() && first;
      if (swap) swaps_.stand_on(lagrange_.under.chosen);
      // Many items: exchanges may take longer than the table.
      if (swap && limits.table && swaps_.work_of_one() > kLongSwaps) {
        reduce(false);
        allot();
      }
      if (swap) one_swaps();
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

  // Decides all items that no better set can exchange; the others become the core, sorted by
  // falling weight if a search follows.
  void reduce(bool sorted = true) {
    const double lambda = lagrange_.lambda;
    LagrangianBound::top(items_, pick_, 1, lambda, side_);
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

  // If the table does not apply, the search has all the work that is allowed.
  void search() {
    reduce();
    if (depth_first(std::min(kShortSearch, left()))) return;
    allot();
    // Each returns whether the question is settled.
    constexpr bool (Knapsack::*stages[])() = {
        &Knapsack::small_table, &Knapsack::few_sets,  &Knapsack::first_lists,
        &Knapsack::climb_first, &Knapsack::enumerate, &Knapsack::more_lists,
        &Knapsack::climb_long,  &Knapsack::finish_by_table};
    for (const auto stage : stages)
      if ((this->*stage)()) return;
    complete = false;
  }

  // Sets `until_`, the work at which the search gives up, for the core as it is. Once work is
  // reserved for the table, a search that overshoots does not take it away.
  void allot() {
    const std::int64_t room = limits.work - (table_ >= 0 ? begun_ : work);
    table_ = table_work();
    if (table_ > room) table_ = -1;
    until_ = limits.work;
    if (table_ >= 0) until_ = std::min(begun_ + table_ / 2 + kShortSearch, limits.work - table_);
  }

  // A table that takes hardly longer than sorting the core did.
  bool small_table() {
    return table_ <= kSmallTable * static_cast<std::int64_t>(core_.size()) && finish_by_table();
  }

  bool few_sets() { return sets() < kFewSets && depth_first(std::min(kFewNodes, left())); }

  bool first_lists() { return lists(std::min(kFirstStates, left())); }

  // A better set makes the core, and with it the table, smaller.
  bool climb_first() {
    if (left() == 0) return false;
    if (found_) climb(std::min(kClimb, left()));
    if (!open()) return true;
    reduce();
    allot();
    return false;
  }

  bool enumerate() {
    if (left() == 0 || !(sets() < kManySets)) return false;
    return depth_first(std::min(kManyNodes, left()));
  }

  bool more_lists() { return left() > 0 && lists(std::min(left(), kMostStates)); }

  bool climb_long() {
    if (left() == 0 || !found_) return false;
    climb(std::min(kLastClimb, left()));
    return !open();
  }

  bool finish_by_table() {
    if (table_ < 0) return false;
    run_table();
    return true;
  }

  // The number of sets that the core has; counting stops beyond kManySets.
  double sets() const {
    double count = 1;
    for (int k = 1; k <= core_.pick && count < kManySets; ++k)
      count *= static_cast<double>(static_cast<int>(core_.size()) - core_.pick + k) / k;
    return count;
  }

  // Work that the search may still spend.
  std::int64_t left() const { return std::max<std::int64_t>(0, until_ - work); }

  bool depth_first(std::int64_t limit) {
    if (limit > kLongWork) expect_long();
    const bool finished =
        depth_.run(core_, tolerance_, best, limit,
                   [this](const std::vector<int>& set) { return accept(set); });
    work += depth_.nodes;
    return finished;
  }

  // States hold sums of more than `pick` values on their way: whole ones must stay exact there.
  bool lists(std::int64_t limit) {
    if (limit > kLongWork) expect_long();
    if (integers(pick_) && !integers(static_cast<int>(core_.size()) + pick_)) return false;
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
    const std::int64_t once = swaps_.work_of_one();
    for (int round = 0; round < kSwaps && left() > 0; ++round) {
      if ((round + 1) * once > kLongWork) expect_long();
      work += once;
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
    if (limit > kLongWork) expect_long();
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
    if (!limits.table || !(budget_ < kMaxIntegerSum)) return -1;
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
    work += table_;
    const double value = core_.base_value + core_table_.run(core_);
    if (!(value > best)) return;
    if (accept(core_table_.trace(core_)))
      best = value;
    else
      complete = false;
  }

  static constexpr std::int64_t kSmallTable = 8;  // work for each item of the core
  static constexpr std::int64_t kLongSwaps = 64;
  static constexpr std::int64_t kShortSearch = 300, kFewNodes = 200000, kManyNodes = 20000000;
  static constexpr std::int64_t kFirstStates = 20000, kMostStates = 10000000;
  static constexpr std::int64_t kClimb = 400000, kLastClimb = 40000000;
  static constexpr std::int64_t kLongWork = 20000;  // units, about half a millisecond
  static constexpr double kFewSets = 20000, kManySets = 4e6;
  static constexpr int kSwaps = 200, kPairRounds = 20;

  std::int64_t begun_ = 0, until_ = std::numeric_limits<std::int64_t>::max();  // see allot()
  std::int64_t table_ = -1;  // work of the table, or -1 if it does not apply
  LagrangianBound lagrange_;
  ItemSet side_;
  Core core_;
  CoreSearch depth_;
  CoreDynamicProgram lists_;
  LocalSearch swaps_;
  CoreTable core_table_;
  std::vector<int> fixed_, order_, set_;
  std::vector<char> marked_;
  std::vector<double> weight_;
};

}  // namespace slotkern

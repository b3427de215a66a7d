// The cardinality-constrained knapsack: choose exactly n of m items of largest total value within
// the budget (2018, section 3.3, eq. 1), for real costs and values, exactly.
//
// Stages; each runs only if the one before has not proven the optimum:
// 1. the Lagrangian bound and its best set within the budget, improved by 1-swaps;
// 2. reduction: items whose exchange costs more than (bound - incumbent) are fixed; the rest is the
//    core;
// 3. search of the core: branch and bound, dynamic program and local search, with growing work
//    limits;
// 4. for integer costs the table over the core, after the search has spent half of the table's
//    work.
//
// The work T of the table can be computed in advance and that of the search cannot. This order
// therefore needs at most 1.5 T and at most three times the work of the search alone.
//
// choice/knapsack_incumbent.hpp compares values and tests budgets. Work is counted, not timed, so
// that results are reproducible. One unit takes about 10 ns: a node of the branch and bound, a
// state of the dynamic program, 48 cells of the table, a quarter of a swap of two items, or 32
// swaps of one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/choice/core.hpp"
#include "slotkern/choice/core_table.hpp"
#include "slotkern/choice/knapsack_incumbent.hpp"
#include "slotkern/choice/local_search.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

class Knapsack : public KnapsackIncumbent {
 public:
  KnapsackTable& table() { return core_table_.table; }  // the caller may use it between calls

  // Finds a set of `pick` items that, together with the forced items, is worth more than
  // `incumbent`. Returns false if there is none, or if none was found and `complete` is false.
  // `cheapest`: the `pick` cheapest items, if the caller has them.
  bool solve(const Items& items, int pick, double budget, const ForcedItems& forced,
             double incumbent, double first_lambda = 0, const ItemSet* cheapest = nullptr) {
    begin(items, pick, budget, forced, incumbent);
    drop_unaffordable();
    if (pick == 0 || pick >= items_.count) {
      solve_trivial();
    } else {
      run_stages(first_lambda, items_.count == items.count ? cheapest : nullptr);
    }
    map_to_original_ids(items);
    return found_;
  }

  // Multiplier of the last solve(); 0 if it needed none.
  double lambda() const { return lagrange_.lambda; }

  // Like solve(), for items that are already sorted by falling weight = value - lambda * cost. A
  // short branch and bound comes first; solve() runs only if that does not finish.
  bool improve(const Items& items, const double* weight, int pick, double budget, double lambda,
               const ForcedItems& forced, double incumbent) {
    begin(items, pick, budget, forced, incumbent);
    if (pick == 0 || pick >= items.count) return solve_trivial();
    tolerance_.noise = noise(pick, lambda * max_cost_sum_);
    core_.clear();
    core_.middle = weight[pick - 1];
    fixed_.clear();
    double heaviest = forced.value + lambda * capacity_;
    for (int j = 0; j < pick; ++j) heaviest += weight[j];
    const double least = core_.middle - (heaviest - tolerance_.cutoff(best));
    for (int j = 0; j < items.count && (j < pick || weight[j] > least); ++j)
      core_.add(weight[j] - core_.middle, items.cost[j], items.value[j], j);
    core_.pick = pick;
    core_.lambda = lambda;
    core_.base_value = forced.value;
    core_.capacity = capacity_;
    core_.slack = slack_;
    core_.offset = forced.value + lambda * capacity_ + pick * core_.middle;
    if (run_branch_and_bound(kShortNodes)) return found_;
    const std::vector<int> kept = chosen;
    const bool found = found_;
    if (solve(items, pick, budget, forced, best, lambda)) return true;
    if (found) chosen = kept;
    return found_ = found;
  }

 private:
  void begin(const Items& items, int pick, double budget, const ForcedItems& forced,
             double incumbent) {
    reset(items, pick, budget, forced, incumbent);
    work_at_start_ = work;
    work_limit_ = limits.work;
    table_work_ = -1;
    lagrange_.lambda = 0;  // a multiplier of an earlier search would make results depend on it
  }

  // Handles problems with at most one set.
  bool solve_trivial() {
    bound = -kInfinity;
    if (pick_ > items_.count) return false;
    set_.clear();
    for (int i = 0; i < pick_; ++i) set_.push_back(i);
    if (fits_exactly(set_)) {
      bound = value_of(set_);
      bound += rounding(pick_, bound);
      offer(set_);
    }
    return found_;
  }

  // Runs stages 1 to 4 (see the header); `first_lambda` is the first multiplier to try.
  void run_stages(double first_lambda, const ItemSet* cheapest) {
    const bool first = best == -kInfinity;
    const double stop = tolerance_.cutoff(best) - forced_.value;
    const auto is_feasible = [&](const ItemSet& set) { return fits(set.chosen, set.cost); };
    if (!lagrange_.solve(items_, pick_, capacity_, max_cost_sum_, first_lambda, stop, is_feasible,
        cheapest)) {
      bound = -kInfinity;
      return;
    }
    bound = lagrange_.bound + forced_.value;
    offer(lagrange_.feasible.chosen);
    if (!lagrange_.is_optimal) {
      tolerance_.noise = noise(pick_, lagrange_.lambda * max_cost_sum_);
      local_search_.reset(items_, capacity_, slack_);
      const bool swap = is_open() && first;
      if (swap) local_search_.start_from(lagrange_.feasible.chosen);
      // With many items, swaps may take longer than the table.
      if (swap && limits.allow_table && local_search_.one_swap_work() > kLongSwapWork) {
        reduce(false);
        reserve_table_work();
      }
      if (swap) run_one_swaps();
      if (is_open()) search();
    }
    finalize_bound();
  }

  // Exact budget test of a set of the core. Makes it the incumbent and returns true if it fits.
  bool accept(const std::vector<int>& positions) {
    set_ = fixed_;
    for (const int j : positions) set_.push_back(core_.id[at(j)]);
    if (!fits_exactly(set_)) return false;
    chosen = set_;
    return found_ = true;
  }

  // Reduction: fixes all items that no better set can exchange. The others become the core, sorted
  // by falling weight if a search follows.
  void reduce(bool sorted = true) {
    const double lambda = lagrange_.lambda;
    LagrangianBound::select_heaviest(items_, pick_, 1, lambda, heaviest_);
    mark(heaviest_.chosen);
    weight_.resize(static_cast<std::size_t>(items_.count));
    double next = -kInfinity;
    for (int i = 0; i < items_.count; ++i) {
      weight_[at(i)] = items_.value[i] - lambda * items_.cost[i];
      if (!marked_[at(i)]) next = std::max(next, weight_[at(i)]);
    }
    double last = kInfinity;
    for (const int i : heaviest_.chosen) last = std::min(last, weight_[at(i)]);
    const double gap = bound - tolerance_.cutoff(best);
    core_.clear();
    fixed_.clear();
    core_order_.clear();
    core_.base_value = forced_.value;
    core_.capacity = capacity_;
    for (int i = 0; i < items_.count; ++i) {
      if (marked_[at(i)] && weight_[at(i)] - next >= gap) {
        fixed_.push_back(i);
        core_.base_value += items_.value[i];
        core_.capacity -= items_.cost[i];
      } else if (marked_[at(i)] || last - weight_[at(i)] < gap) {
        core_order_.push_back(i);
      }
    }
    if (sorted)
      std::sort(core_order_.begin(), core_order_.end(), [this](int a, int b) {
        const double x = weight_[at(a)], y = weight_[at(b)];
        return x > y || (x == y && a < b);
      });
    core_.pick = pick_ - static_cast<int>(fixed_.size());
    core_.lambda = lambda;
    core_.middle = 0.5 * (last + next);
    core_.slack = slack_;
    for (const int i : core_order_)
      core_.add(weight_[at(i)] - core_.middle, items_.cost[i], items_.value[i], i);
    core_.offset = core_.base_value + lambda * core_.capacity + core_.pick * core_.middle;
  }

  // Searches the core. If the table is not applicable, the search may use the whole work limit.
  void search() {
    reduce();
    if (run_branch_and_bound(std::min(kShortNodes, work_left()))) return;
    reserve_table_work();
    // Each stage returns true if the optimum is proven, or the table has run.
    constexpr bool (Knapsack::*stages[])() = {
        &Knapsack::try_small_table, &Knapsack::try_few_sets,  &Knapsack::try_short_dp,
        &Knapsack::climb_and_reduce, &Knapsack::try_enumeration, &Knapsack::try_long_dp,
        &Knapsack::try_long_climb,  &Knapsack::finish_with_table};
    for (const auto stage : stages)
      if ((this->*stage)()) return;
    complete = false;
  }

  // Sets `work_limit_`, the work at which the search stops, so that enough remains for the table of
  // the current core. Work that is reserved for the table stays reserved if a search exceeds its
  // limit.
  void reserve_table_work() {
    const std::int64_t available = limits.work - (table_work_ >= 0 ? work_at_start_ : work);
    table_work_ = table_work();
    if (table_work_ > available) table_work_ = -1;
    work_limit_ = limits.work;
    if (table_work_ >= 0)
      work_limit_ =
          std::min(work_at_start_ + table_work_ / 2 + kShortNodes, limits.work - table_work_);
  }

  // Runs the table if that takes little longer than sorting the core.
  bool try_small_table() {
    return table_work_ <= kSmallTableWorkPerItem * static_cast<std::int64_t>(core_.size()) &&
           finish_with_table();
  }

  // Enumerates the sets of a small core.
  bool try_few_sets() {
    return count_sets() < kFewSets && run_branch_and_bound(std::min(kFewNodes, work_left()));
  }

  bool try_short_dp() { return run_dp(std::min(kShortStates, work_left())); }

  // Local search, then a new reduction: a better incumbent makes the core and its table smaller.
  bool climb_and_reduce() {
    if (work_left() == 0) return false;
    if (found_) climb(std::min(kShortClimbWork, work_left()));
    if (!is_open()) return true;
    reduce();
    reserve_table_work();
    return false;
  }

  bool try_enumeration() {
    if (work_left() == 0 || !(count_sets() < kManySets)) return false;
    return run_branch_and_bound(std::min(kManyNodes, work_left()));
  }

  bool try_long_dp() { return work_left() > 0 && run_dp(std::min(work_left(), kMaxStates)); }

  bool try_long_climb() {
    if (work_left() == 0 || !found_) return false;
    climb(std::min(kLongClimbWork, work_left()));
    return !is_open();
  }

  // Runs the table if it is applicable; it always finishes.
  bool finish_with_table() {
    if (table_work_ < 0) return false;
    run_table();
    return true;
  }

  // Number of sets of the core; counting stops above kManySets.
  double count_sets() const {
    double count = 1;
    for (int k = 1; k <= core_.pick && count < kManySets; ++k)
      count *= static_cast<double>(static_cast<int>(core_.size()) - core_.pick + k) / k;
    return count;
  }

  // Work that the search may still spend.
  std::int64_t work_left() const { return std::max<std::int64_t>(0, work_limit_ - work); }

  // Runs the branch and bound. Returns true if it finished within `limit` nodes.
  bool run_branch_and_bound(std::int64_t limit) {
    if (limit > kLongWork) enable_interrupts();
    const bool finished =
        branch_and_bound_.run(core_, tolerance_, best, limit,
                   [this](const std::vector<int>& set) { return accept(set); });
    work += branch_and_bound_.nodes;
    return finished;
  }

  // Runs the dynamic program. Its states may sum more than `pick` values; for integers these sums
  // must stay exact.
  bool run_dp(std::int64_t limit) {
    if (limit > kLongWork) enable_interrupts();
    if (has_integer_sums(pick_) && !has_integer_sums(static_cast<int>(core_.size()) + pick_))
      return false;
    const auto accept_set = [this](const std::vector<int>& set) { return accept(set); };
    bool finished = dp_.run<false>(core_, tolerance_, best, limit, limits.memory, accept_set);
    work += dp_.states;
    if (finished && dp_.has_rounding_conflict) {
      finished = dp_.run<true>(core_, tolerance_, best, std::min(limit * 4, work_left()),
                                  limits.memory, accept_set);
      work += dp_.states;
    }
    return finished;
  }

  // --- local search

  void mark(const std::vector<int>& set) {
    marked_.assign(static_cast<std::size_t>(items_.count), 0);
    for (const int i : set) marked_[at(i)] = 1;
  }

  // Repeats the best swap of one item until none improves the set.
  void run_one_swaps() {
    const std::int64_t once = local_search_.one_swap_work();
    for (int round = 0; round < kMaxSwaps && work_left() > 0; ++round) {
      if ((round + 1) * once > kLongWork) enable_interrupts();
      work += once;
      if (!local_search_.swap_one()) break;
    }
    offer(local_search_.set());
  }

  bool run_two_swaps() {
    if (!local_search_.swap_two(work)) return false;
    offer(local_search_.set());
    return true;
  }

  // Iterated local search: improves the incumbent, then sets a few random swaps away from it, from
  // a fixed seed. It helps if values follow costs closely, so that many sets are nearly optimal.
  void climb(std::int64_t limit) {
    const std::int64_t until = work + limit;
    if (limit > kLongWork) enable_interrupts();
    local_search_.start_from(chosen);
    while (work < until) {
      poll();
      for (int round = 0; round < kMaxPairRounds && is_open(); ++round) {
        run_one_swaps();
        if (!is_open() || work + local_search_.two_swap_work() > until) break;
        if (!run_two_swaps()) break;
      }
      if (!is_open()) return;
      local_search_.start_from(chosen);
      local_search_.perturb();
    }
  }

  // --- the table over the core

  // Units of work of the table, or -1 if it is not applicable.
  std::int64_t table_work() {
    if (!limits.allow_table || !(budget_ < kMaxIntegerSum)) return -1;
    double available = std::floor(budget_);  // budget for integer costs
    for (const int i : fixed_) {
      if (items_.cost[i] != std::floor(items_.cost[i])) return -1;
      available -= items_.cost[i];
    }
    for (const double c : forced_.costs) {
      if (c != std::floor(c)) return -1;
      available -= c;
    }
    return core_table_.prepare(core_, available, limits.memory);
  }

  // Runs the table and makes its set the incumbent if it is better.
  void run_table() {
    work += table_work_;
    const double value = core_.base_value + core_table_.run(core_);
    if (!(value > best)) return;
    if (accept(core_table_.trace(core_)))
      best = value;
    else
      complete = false;
  }

  // units of work for each item of the core
  static constexpr std::int64_t kSmallTableWorkPerItem = 8;
  static constexpr std::int64_t kLongSwapWork = 64;
  static constexpr std::int64_t kShortNodes = 300, kFewNodes = 200000, kManyNodes = 20000000;
  static constexpr std::int64_t kShortStates = 20000, kMaxStates = 10000000;
  static constexpr std::int64_t kShortClimbWork = 400000, kLongClimbWork = 40000000;
  static constexpr std::int64_t kLongWork = 20000;  // units; about half a millisecond
  static constexpr double kFewSets = 20000, kManySets = 4e6;
  static constexpr int kMaxSwaps = 200, kMaxPairRounds = 20;

  // see reserve_table_work()
  std::int64_t work_at_start_ = 0, work_limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t table_work_ = -1;  // units of work of the table; -1 if it is not applicable
  LagrangianBound lagrange_;
  ItemSet heaviest_;
  Core core_;
  CoreBranchAndBound branch_and_bound_;
  CoreDynamicProgram dp_;
  LocalSearch local_search_;
  CoreTable core_table_;
  std::vector<int> fixed_, core_order_, set_;
  std::vector<char> marked_;
  std::vector<double> weight_;
};

}  // namespace slotkern

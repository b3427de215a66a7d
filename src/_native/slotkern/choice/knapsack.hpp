// The cardinality-constrained knapsack: choose exactly n of m items of largest total value within
// the budget (2018, section 3.3, eq. 1), for real costs and values, exactly. One limit is the
// special case of choice/staged_knapsack.hpp with a Lagrangian bound in one multiplier, a dynamic
// program, and a table for integer costs.
//
// The Lagrangian bound's best set within the budget is improved by 1-swaps. The turns of the search
// are branch and bound, dynamic program and local search, with growing work limits; for integer
// costs the table over the core follows, after they have spent half of the table's work. The work T
// of the table can be computed in advance and that of the search cannot. This order therefore needs
// at most 1.5 T and at most three times the work of the search alone.
//
// Exact test: a set is within the budget if the exact sum of its costs, rounded once, is at most
// the budget. The caller's budget is the largest sum that meets the amount (base/exact_sum.hpp).
// One unit of work takes about 10 ns: a node of the branch and bound, a state of the dynamic
// program, 48 cells of the table, a quarter of a swap of two items, or 32 swaps of one.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/choice/core_dynamic_program.hpp"
#include "slotkern/choice/knapsack_table.hpp"
#include "slotkern/choice/lagrangian_bound.hpp"
#include "slotkern/choice/local_search.hpp"
#include "slotkern/choice/staged_knapsack.hpp"

namespace slotkern {

class Knapsack : public StagedKnapsack<Knapsack, Items> {
 public:
  KnapsackTable& table() { return core_table_.table; }  // the caller may use it between calls

  // Finds a set of `pick` items that, together with the forced items, is worth more than
  // `incumbent`. Returns false if there is none, or if none was found and `complete` is false.
  // `cheapest`: the `pick` cheapest items, if the caller has them.
  bool solve(const Items& items, int pick, double budget, const ForcedItems& forced,
             double incumbent, double first_lambda = 0, const ItemSet* cheapest = nullptr) {
    begin(items, pick, budget, forced, incumbent);
    const double max_cost = capacity_ + slack_;
    items_ = affordable_.keep(items, max_cost, max_cost_ > max_cost);
    first_lambda_ = first_lambda;
    cheapest_ = items_.count == items.count ? cheapest : nullptr;
    return solve_reduced();
  }

  // Multiplier of the last solve(); 0 if it needed none.
  double lambda() const { return lagrange_.lambda; }

  // Like solve(), for items that are already sorted by falling weight = value - lambda * cost. A
  // short branch and bound comes first; solve() runs only if that does not finish.
  bool improve(const Items& items, const double* weight, int pick, double budget, double lambda,
               const ForcedItems& forced, double incumbent) {
    begin(items, pick, budget, forced, incumbent);
    affordable_.ids.clear();
    if (pick == 0 || pick >= items.count) return solve_trivial();
    tolerance_.noise = noise(pick, lambda * max_cost_sum_);
    core_.clear();
    fixed_.clear();
    begin_core(weight[pick - 1]);
    core_.lambda[0] = lambda;
    double heaviest = forced.value + lambda * capacity_;
    for (int j = 0; j < pick; ++j) heaviest += weight[j];
    const double least = core_.middle - (heaviest - tolerance_.cutoff(best));
    for (int j = 0; j < items.count && (j < pick || weight[j] > least); ++j)
      core_.add(weight[j] - core_.middle, items.cost[j], items.value[j], j);
    core_.pick = pick;
    core_.set_offset();
    if (run_branch_and_bound(kShortNodes)) return found_;
    const std::vector<int> kept = chosen;
    const bool found = found_;
    if (solve(items, pick, budget, forced, best, lambda)) return true;
    if (found) chosen = kept;
    return found_ = found;
  }

 private:
  friend StagedKnapsack<Knapsack, Items>;

  // Sets up a problem with no set found yet.
  void begin(const Items& items, int pick, double budget, const ForcedItems& forced,
             double incumbent) {
    StagedKnapsack::begin(items, pick, forced.value, incumbent);
    forced_ = forced;
    budget_ = std::min(budget, DBL_MAX);  // an item of infinite cost fits no budget
    max_cost_ = max_of(items.cost, items.count);
    double max_affordable_cost = std::max(forced.costs[0], forced.costs[1]);
    if (max_cost_ <= budget_)
      max_affordable_cost = std::max(max_affordable_cost, max_cost_);
    else
      for (int i = 0; i < items.count; ++i)
        if (items.cost[i] <= budget_)
          max_affordable_cost = std::max(max_affordable_cost, items.cost[i]);
    max_cost_sum_ = std::min((pick + 4) * max_affordable_cost, DBL_MAX);
    capacity_ = std::min(budget_, max_cost_sum_) - forced.cost();
    slack_ = 0x1p-49 * (pick + 8) * max_cost_sum_;
    work_at_start_ = work;
    work_limit_ = limits.work;
    table_work_ = -1;
    lagrange_.lambda = 0;  // a multiplier of an earlier search would make results depend on it
  }

  static double max_of(const double* cost, int count) {
    double lane[4] = {0, 0, 0, 0};  // independent lanes, to break the dependency chain
    int i = 0;
    for (; i + 4 <= count; i += 4)
      for (int k = 0; k < 4; ++k) lane[k] = std::max(lane[k], cost[i + k]);
    for (; i < count; ++i) lane[0] = std::max(lane[0], cost[i]);
    return std::max(std::max(lane[0], lane[1]), std::max(lane[2], lane[3]));
  }

  const std::vector<int>& original_ids() const { return affordable_.ids; }

  // The exact budget test of `ids` together with the forced items.
  bool fits_exactly(const std::vector<int>& ids) const {
    const double sum = exact_sum_of([&](auto visit) {
      for (const int i : ids) visit(items_.cost[i]);
      for (int k = 0; k < forced_.count; ++k) visit(forced_.costs[k]);
    });
    return sum <= budget_;
  }

  // Budget test of a set of known plain cost; the exact test runs only near the budget.
  bool fits(const std::vector<int>& ids, double cost) {
    return cost <= capacity_ - slack_ || (cost <= capacity_ + slack_ && fits_exactly(ids));
  }

  // Computes the bound and its best set; first_lambda_ is the first multiplier to try.
  RelaxationResult relax() {
    is_first_ = best == -kInfinity;
    const double stop = tolerance_.cutoff(best) - base_;
    const auto is_feasible = [&](const ItemSet& set) { return fits(set.chosen, set.cost); };
    if (!lagrange_.solve(items_, pick_, capacity_, max_cost_sum_, first_lambda_, stop, is_feasible,
                         cheapest_))
      return RelaxationResult::infeasible;
    bound = lagrange_.bound + base_;
    offer(lagrange_.feasible.chosen);
    if (lagrange_.is_optimal) return RelaxationResult::optimal;
    tolerance_.noise = noise(pick_, lagrange_.lambda * max_cost_sum_);
    local_search_.reset(items_, capacity_, slack_);
    return RelaxationResult::open;
  }

  void improve_incumbent() {
    if (!is_first_) return;
    local_search_.start_from(lagrange_.feasible.chosen);
    // With many items, swaps may take longer than the table.
    if (limits.allow_table && local_search_.one_swap_work() > kLongSwapWork) {
      reduce(false);
      reserve_table_work();
    }
    run_one_swaps();
  }

  // Searches the core. Returns true if the optimum is proven, or the table has run. If the table is
  // not applicable, the search may use the whole work limit.
  bool search_turn(int turn) {
    switch (turn) {
      case 0:
        reduce();
        if (run_branch_and_bound(at_most(kShortNodes))) return true;
        reserve_table_work();
        // The table runs now if that takes little longer than sorting the core.
        return table_work_ <= kSmallTableWorkPerItem * static_cast<std::int64_t>(core_.size()) &&
               finish_with_table();
      case 1: return count_sets() < kFewSets && run_branch_and_bound(at_most(kFewNodes));
      case 2: return run_dp(at_most(kShortStates));
      case 3: return work_left() > 0 && climb_and_reduce();
      case 4:
        return work_left() > 0 && count_sets() < kManySets &&
               run_branch_and_bound(at_most(kManyNodes));
      case 5: return work_left() > 0 && run_dp(at_most(kMaxStates));
      case 6:
        if (work_left() > 0 && found_) climb(at_most(kLongClimbWork));
        return false;
      case 7: return finish_with_table();
    }
    complete = false;
    return true;
  }

  // --- the core

  void begin_core(double middle) {
    core_.middle = middle;
    core_.lambda[0] = lagrange_.lambda;
    core_.base_value = base_;
    core_.capacity[0] = capacity_;
    core_.slack[0] = slack_;
  }
  double value_in_core(int i) const { return items_.value[i]; }
  double use_in_core(int, int i) const { return items_.cost[i]; }

  // Reduces the problem to the core; sorts it if a search follows.
  void reduce(bool sorted = true) {
    const double lambda = lagrange_.lambda;
    LagrangianBound::select_heaviest(items_, pick_, 1, lambda, heaviest_);
    marked_.assign(at(items_.count), 0);
    for (const int i : heaviest_.chosen) marked_[at(i)] = 1;
    weight_.resize(at(items_.count));
    double next = -kInfinity;
    for (int i = 0; i < items_.count; ++i) {
      weight_[at(i)] = items_.value[i] - lambda * items_.cost[i];
      if (!marked_[at(i)]) next = std::max(next, weight_[at(i)]);
    }
    double last = kInfinity;
    for (const int i : heaviest_.chosen) last = std::min(last, weight_[at(i)]);
    const auto for_each_item = [this](auto visit) {
      for (int i = 0; i < items_.count; ++i) visit(i, marked_[at(i)] != 0, weight_[at(i)]);
    };
    build_core(last, next, for_each_item, [&](std::vector<int>& ids) {
      if (!sorted) return;
      std::sort(ids.begin(), ids.end(), [this](int a, int b) {
        const double x = weight_[at(a)], y = weight_[at(b)];
        return x > y || (x == y && a < b);
      });
    });
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

  // Local search, then a new reduction: a better incumbent makes the core and its table smaller.
  bool climb_and_reduce() {
    if (found_) climb(at_most(kShortClimbWork));
    if (!is_open()) return true;
    reduce();
    reserve_table_work();
    return false;
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

  // Work that the search may still spend, and a limit on it.
  std::int64_t work_left() const { return std::max<std::int64_t>(0, work_limit_ - work); }
  std::int64_t at_most(std::int64_t limit) const { return std::min(limit, work_left()); }

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
      finished = dp_.run<true>(core_, tolerance_, best, at_most(limit * 4),
                                  limits.memory, accept_set);
      work += dp_.states;
    }
    return finished;
  }

  // --- local search

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

  void climb(std::int64_t limit) {
    if (limit > kLongWork) enable_interrupts();
    StagedKnapsack::climb(
        limit, local_search_, [this] { local_search_.start_from(chosen); },
        [this](std::int64_t until) {
          for (int round = 0; round < kMaxPairRounds && is_open(); ++round) {
            run_one_swaps();
            if (!is_open() || work + local_search_.two_swap_work() > until) break;
            if (!run_two_swaps()) break;
          }
        });
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

  double budget_ = 0, capacity_ = 0;
  // largest cost; upper bound on any sum of costs; largest rounding error of a sum
  double max_cost_ = 0, max_cost_sum_ = 0, slack_ = 0;
  ForcedItems forced_;
  double first_lambda_ = 0;
  const ItemSet* cheapest_ = nullptr;
  bool is_first_ = false;  // the call started without an incumbent
  // see reserve_table_work()
  std::int64_t work_at_start_ = 0, work_limit_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t table_work_ = -1;  // units of work of the table; -1 if it is not applicable
  LagrangianBound lagrange_;
  ItemSet heaviest_;
  CoreBranchAndBound<OneLimit> branch_and_bound_;
  CoreDynamicProgram dp_;
  LocalSearch local_search_;
  CoreTable core_table_;
  ItemSubset affordable_;
  std::vector<char> marked_;
  std::vector<double> weight_;
};

}  // namespace slotkern

// The cardinality-constrained multidimensional knapsack: choose exactly n of m items of largest
// total value, with each of several sums within its amount. It is choice/staged_knapsack.hpp with
// one multiplier for each limit.
//
// Items in no feasible set are removed first; a weight so small that its item satisfies the limit
// with any others is clipped, so that no huge number spoils a sum. The multipliers of the linear
// relaxation give the bound, or a proof of infeasibility. The turns of the search are branch and
// bound with growing work limits, each followed by local search; after the first turn with sums in
// integer multiples (choice/multiples.hpp), without items that n others dominate, and with a
// transposition table.
//
// The caller's exact test decides if a set is feasible; sums kept here only exclude sets beyond
// their rounding error. One unit of work takes 5 to 10 ns.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "slotkern/choice/multidim_bound.hpp"
#include "slotkern/choice/multidim_local_search.hpp"
#include "slotkern/choice/multidim_search.hpp"
#include "slotkern/choice/multiples.hpp"
#include "slotkern/choice/staged_knapsack.hpp"

namespace slotkern {

class MultidimKnapsack : public StagedKnapsack<MultidimKnapsack, MultidimItems> {
 public:
  // Finds a set of `pick` items worth more than `incumbent`. `fits(ids)` is the exact test. Returns
  // false if there is none, or if none was found and `complete` is false. The caller handles forced
  // items: `taken` are their uses, `base` is their value.
  template <class Fits>
  bool solve(const MultidimItems& items, int pick, const Amounts& amounts, const Amounts& taken,
             double base, double incumbent, Fits fits) {
    begin(items, pick, base, incumbent);
    fits_ = std::ref(fits);
    given_ = items, given_amount_ = amount_ = amounts, forced_use_ = taken;
    for (int k = 0; k < items.limits; ++k)
      if (taken[at(k)] != 0)
        amount_[at(k)] +=
            0x1p-50 * (std::fabs(amounts[at(k)]) + std::fabs(taken[at(k)])) - taken[at(k)];
    is_scaled_ = false;
    original_ids_.clear();
    if (pick > 0 && pick < items.count && !reduce_items()) {
      bound = -kInfinity;
      return false;
    }
    return solve_reduced();
  }

  // Multipliers of the last relaxation, one for each limit; any multipliers give a bound.
  const Amounts& multipliers() const { return multipliers_.lambda; }

 private:
  friend StagedKnapsack<MultidimKnapsack, MultidimItems>;

  const std::vector<int>& original_ids() const { return original_ids_; }

  // The caller's exact test of a set of items_.
  bool fits_exactly(const std::vector<int>& ids) {
    if (original_ids_.empty()) return fits_(ids);
    mapped_.clear();
    for (const int i : ids) mapped_.push_back(original_ids_[at(i)]);
    return fits_(mapped_);
  }

  // Removes the items of no feasible set and clips weights from below. Returns false if too few
  // items are left.
  bool reduce_items() {
    original_ids_.resize(at(given_.count));
    for (int i = 0; i < given_.count; ++i) original_ids_[at(i)] = i;
    for (int round = 0; round < 3; ++round) {
      const std::size_t before = original_ids_.size();
      for (int k = 0; k < given_.limits; ++k) {
        const double* w = given_.weight[at(k)];
        const double others = least_others(w);
        const double max_weight = amount_[at(k)] - others;
        const double max_weight_with_margin = max_weight + 0x1p-48 * (pick_ + 8) *
                                       (std::fabs(amount_[at(k)]) + std::fabs(others));
        std::erase_if(original_ids_, [&](int i) { return w[i] > max_weight_with_margin; });
        if (static_cast<int>(original_ids_.size()) < pick_) return false;
      }
      if (original_ids_.size() == before) break;
    }
    const std::size_t count = original_ids_.size();
    columns_.resize(count * at(given_.limits + 1));
    double* into = columns_.data();
    items_ = {};
    items_.count = static_cast<int>(count);
    items_.limits = given_.limits;
    for (std::size_t i = 0; i < count; ++i) into[i] = given_.value[original_ids_[i]];
    items_.value = into;
    for (int k = 0; k < given_.limits; ++k) {
      into += count;
      const double* w = given_.weight[at(k)];
      double largest = -kInfinity;
      for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, w[original_ids_[i]]);
      // An item at or below this satisfies the constraint with any others; twice the distance is
      // safe against rounding.
      const double a = amount_[at(k)];
      const double enough = a - (pick_ - 1) * std::max(0.0, largest) -
                            (std::fabs(a) + pick_ * std::fabs(largest));
      double reach = 0;
      for (std::size_t i = 0; i < count; ++i) {
        into[i] = std::max(w[original_ids_[i]], enough);
        reach = std::max(reach, std::fabs(into[i]));
      }
      items_.weight[at(k)] = into;
      reach_[at(k)] = (pick_ + 4) * reach + std::fabs(a);
      slack_[at(k)] = 0x1p-49 * (pick_ + 8) * reach_[at(k)];
    }
    return true;
  }

  // Sum of the pick - 1 smallest weights, lowered so that it bounds the sum in any order.
  double least_others(const double* w) {
    sorted_.clear();
    for (const int i : original_ids_) sorted_.push_back(w[i]);
    const auto middle = sorted_.begin() + (pick_ - 1);
    if (pick_ - 1 < static_cast<int>(sorted_.size()))
      std::nth_element(sorted_.begin(), middle, sorted_.end());
    double sum = 0, size = 0;
    for (auto it = sorted_.begin(); it != middle; ++it) sum += *it, size += std::fabs(*it);
    return sum - 0x1p-50 * (pick_ + 4) * size;
  }

  RelaxationResult relax() {
    const bool solved = multipliers_.solve(items_, pick_, amount_);
    work += 1 + static_cast<std::int64_t>(items_.count) * (items_.limits + 1) *
                    (multipliers_.pivots + 8) / 8;
    if (!solved && is_infeasible()) return RelaxationResult::infeasible;
    compute_bound();
    swaps_.reset(items_, amount_, slack_, reach_);
    return RelaxationResult::open;
  }

  void improve_incumbent() {
    set_.assign(order_.begin(), order_.begin() + pick_);
    swaps_.start_from(set_, order_);
    for (int round = 0; round < kMaxSwaps; ++round)
      if (!swaps_.swap_one(work)) break;
    offer(swaps_.set());
  }

  // Searches the core, then improves the incumbent by local search.
  bool search_turn(int turn) {
    const std::int64_t share = kShortWork << (3 * turn);
    if (share > kLongWork) enable_interrupts();
    if (turn > 0 && !is_scaled_) convert_to_multiples();
    reduce();
    if (is_scaled_) drop_dominated();
    const std::int64_t left = std::max<std::int64_t>(0, limits.work - work);
    if (run_branch_and_bound(std::min(left, share))) return true;
    if (left <= share) {
      complete = false;
      return true;
    }
    if (best == -kInfinity)
      search_feasible(share);
    else if (found_)
      climb(share, swaps_, [this] { swaps_.start_from(chosen, order_); },
            [this](std::int64_t until) {
              while (is_open() && work < until && (swaps_.swap_one(work) || swaps_.swap_two(work)))
                offer(swaps_.set());
            });
    return false;
  }

  // Searches any feasible set: swaps from random sets until the violation is gone.
  void search_feasible(std::int64_t work_limit) {
    const std::int64_t until = work + work_limit;
    while (work < until && best == -kInfinity) {
      poll();
      swaps_.start_from_random(order_, at(pick_));
      work += items_.count / 4;
      for (int round = 0; round < kMaxSwaps && !swaps_.is_feasible(); ++round)
        if (!swaps_.swap_one(work)) break;
      if (swaps_.is_feasible()) offer(swaps_.set());
    }
  }

  // Searches the core for a set better than the incumbent. Returns true if it finished within
  // `work_limit` units of work.
  bool run_branch_and_bound(std::int64_t work_limit) {
    const double unit = value_unit();
    const Tolerance tolerance{tolerance_.relative, has_value_unit() ? 1 : tolerance_.step,
                              tolerance_.noise / unit};
    double reached = best / unit;
    const bool finished =
        branch_and_bound_.run(core_, tolerance, reached, work_limit / (items_.limits + 1),
                              [this](const std::vector<int>& set) { return accept(set); });
    work += branch_and_bound_.nodes * (items_.limits + 1) +
            static_cast<std::int64_t>(core_.size()) * std::min(core_.pick, 64) * items_.limits / 4;
    if (reached > best / unit) best = std::max(best, value_of(chosen));
    return finished;
  }

  // Converts the columns to integer multiples, for those that have a unit.
  void convert_to_multiples() {
    is_scaled_ = true;
    const auto count = at(items_.count);
    for (int k = 0; k < items_.limits; ++k) {
      sorted_.resize(count + 1);
      for (std::size_t i = 0; i < count; ++i) sorted_[i] = given_.weight[at(k)][original_ids_[i]];
      sorted_[count] = forced_use_[at(k)];
      multiple_[at(k)].convert(sorted_, given_amount_[at(k)]);
    }
    sorted_.resize(count + 1);
    for (std::size_t i = 0; i < count; ++i) sorted_[i] = items_.value[i];
    sorted_[count] = base_;
    if (value_.convert(sorted_)) tolerance_.step = std::max(tolerance_.step, value_.unit);
    work += static_cast<std::int64_t>(count) * (items_.limits + 1) * 2;
  }

  // Removes dominated items of the core: enough others are no worse in value and in every use, so
  // that an optimal set without them exists.
  void drop_dominated() {
    const std::size_t size = core_.size(), need = at(core_.pick);
    if (size <= need || size > kMaxDominanceItems) return;
    is_kept_.assign(size, 1);
    bool drops = false;
    for (std::size_t j = need; j < size; ++j) {
      std::size_t better = 0;
      for (std::size_t i = 0; i < j && better < need; ++i) {
        bool no_worse = core_.value[i] >= core_.value[j];
        for (int k = 0; no_worse && k < items_.limits; ++k)
          no_worse = core_.use[at(k)][i] <= core_.use[at(k)][j];
        better += no_worse;
      }
      if (better >= need) is_kept_[j] = 0, drops = true;
    }
    work += static_cast<std::int64_t>(size * size) / 4;
    if (!drops) return;
    std::size_t kept = 0;
    for (std::size_t j = 0; j < size; ++j)
      if (is_kept_[j]) core_.copy_item(j, kept++);
    core_.resize(kept);
  }

  // True if the ray proves that no n items satisfy all constraints.
  bool is_infeasible() {
    const Amounts& y = multipliers_.ray;
    weight_.resize(at(items_.count));
    double size = 0, min_sum = 0, max_sum = 0;
    for (int i = 0; i < items_.count; ++i) weight_[at(i)] = -items_.weigh(i, y, 0);
    for (int k = 0; k < items_.limits; ++k) {
      max_sum += y[at(k)] * amount_[at(k)];
      size += y[at(k)] * reach_[at(k)];
    }
    std::nth_element(weight_.begin(), weight_.begin() + (pick_ - 1), weight_.end());
    for (int i = 0; i < pick_; ++i) min_sum += weight_[at(i)];
    return min_sum > max_sum + 0x1p-48 * (pick_ + 16) * size && std::isfinite(size);
  }

  // Computes the bound by the multipliers, and the weights of the items under them.
  void compute_bound() {
    if (!charge_limits()) {  // overflow: without multipliers the sums of values are a bound
      multipliers_.lambda = {};
      charge_limits();
    }
    order_.resize(at(items_.count));
    for (int i = 0; i < items_.count; ++i) order_[at(i)] = i;
    std::sort(order_.begin(), order_.end(), [this](int a, int b) {
      return weight_[at(a)] > weight_[at(b)] || (weight_[at(a)] == weight_[at(b)] && a < b);
    });
    for (int i = 0; i < pick_; ++i) bound += weight_[at(order_[at(i)])];
  }

  // Computes weight_, and adds the amounts' charge to the bound. Returns false if sums overflow.
  bool charge_limits() {
    const Amounts& lambda = multipliers_.lambda;
    double size = 0;
    bound = base_;
    weight_.resize(at(items_.count));
    for (int i = 0; i < items_.count; ++i) weight_[at(i)] = items_.weigh(i, lambda);
    for (int k = 0; k < items_.limits; ++k) {
      bound += lambda[at(k)] * amount_[at(k)];
      size += lambda[at(k)] * reach_[at(k)];  // charge of n items
    }
    tolerance_.noise = noise(pick_, size);
    return size < kMaxCharge;
  }

  // --- the core, in units of the columns that have been converted

  bool has_value_unit() const { return is_scaled_ && value_.unit > 0; }
  double value_unit() const { return has_value_unit() ? value_.unit : 1; }
  bool has_unit(int k) const { return is_scaled_ && multiple_[at(k)].unit > 0; }

  double value_in_core(int i) const {
    return has_value_unit() ? value_.counts[at(i)] : items_.value[i];
  }
  double use_in_core(int k, int i) const {
    return has_unit(k) ? multiple_[at(k)].counts[at(i)] : items_.weight[at(k)][i];
  }

  void begin_core(double middle) {
    core_.middle = middle / value_unit();
    core_.base_value = has_value_unit() ? value_.counts.back() : base_;
    core_.limits = items_.limits;
    for (int k = 0; k < items_.limits; ++k) {
      const Multiples& multiple = multiple_[at(k)];
      const bool scaled = core_.is_integer[at(k)] = has_unit(k);
      core_.capacity[at(k)] = scaled ? multiple.limit - multiple.counts.back() : amount_[at(k)];
      core_.slack[at(k)] = scaled ? 0.5 : slack_[at(k)];
      core_.lambda[at(k)] =
          multipliers_.lambda[at(k)] * (scaled ? multiple.unit : 1) / value_unit();
    }
    core_.use_table = is_scaled_;
    core_.any_set_suffices = tolerance_.relative > 1 && best == -kInfinity;
    core_.has_integer_values = is_scaled_ ? value_.unit > 0 : tolerance_.step > 0;
  }

  void reduce() {
    const double last = weight_[at(order_[at(pick_ - 1)])], next = weight_[at(order_[at(pick_)])];
    const auto for_each_item = [this](auto visit) {
      for (int place = 0; place < items_.count; ++place)
        visit(order_[at(place)], place < pick_, weight_[at(order_[at(place)])]);
    };
    build_core(last, next, for_each_item, [](std::vector<int>&) {});
    core_.sort();
  }

  static constexpr std::int64_t kShortWork = 6000, kLongWork = 300000;
  static constexpr std::size_t kMaxDominanceItems = 4096;
  static constexpr double kMaxCharge = 1e307;
  static constexpr int kMaxSwaps = 60;

  std::function<bool(const std::vector<int>&)> fits_;  // of the current call
  MultidimItems given_;
  Amounts given_amount_{}, forced_use_{};  // amounts for all items; uses of the forced items
  Amounts amount_{}, reach_{}, slack_{};
  bool is_scaled_ = false;
  // the last entry of each belongs to the forced items
  std::array<Multiples, kMaxSumLimits> multiple_;
  Multiples value_;
  DualSimplex multipliers_;
  CoreBranchAndBound<SeveralLimits> branch_and_bound_;
  MultidimLocalSearch swaps_;
  std::vector<int> original_ids_, mapped_, order_;
  std::vector<double> columns_, sorted_, weight_;
  std::vector<char> is_kept_;
};

}  // namespace slotkern

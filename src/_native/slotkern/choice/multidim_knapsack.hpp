// The cardinality-constrained multidimensional knapsack: choose exactly n of m items of largest
// total value, with each of several sums within its amount.
//
// Stages; each runs only if the one before has not proven the optimum:
// 1. items in no feasible set are removed; a weight so small that its item satisfies the constraint
//    with any others is clipped, so that no huge number spoils a sum;
// 2. the multipliers of the linear relaxation give the bound, or a proof of infeasibility;
// 3. local search for a feasible set: swaps reduce the violation first, then raise the value;
// 4. reduction: items whose exchange costs more than (bound - incumbent) are fixed; the rest is the
//    core, which a short branch and bound searches;
// 5. the same search with growing work limits, with sums in integer multiples
//    (choice/multiples.hpp), without items that n others dominate, and with a transposition table.
//
// The caller's exact test decides if a set is feasible; sums kept here only exclude sets beyond
// their rounding error. Work is counted, not timed, in units of 5 to 10 ns. A call that exceeds
// `max_work` has complete = false; its bound is still valid.
#pragma once

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/choice/multidim_search.hpp"
#include "slotkern/choice/multiples.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

class MultidimKnapsack {
 public:
  double gap = 0;  // relative; values of 0 to 1e-12 count as 1e-12 unless sums are integers
  ValueScale scale;
  std::int64_t max_work = std::numeric_limits<std::int64_t>::max();

  // Results of the last call.
  double best = -kInfinity, bound = kInfinity;
  bool complete = true;
  std::vector<int> chosen;
  std::int64_t work = 0;  // units of work, cumulative over all calls

  // Finds a set of `pick` items worth more than `incumbent`. `fits(ids)` is the exact test. Returns
  // false if there is none, or if none was found and `complete` is false. The caller handles forced
  // items: `taken` are their uses, `base` is their value.
  template <class Fits>
  bool solve(const MultidimItems& items, int pick, const Amounts& amounts, const Amounts& taken,
             double base, double incumbent, Fits fits) {
    given_ = items, pick_ = pick, given_amount_ = amount_ = amounts,
    forced_use_ = taken, base_ = base;
    for (int k = 0; k < items.limits; ++k)
      if (taken[at(k)] != 0)
        amount_[at(k)] +=
            0x1p-50 * (std::fabs(amounts[at(k)]) + std::fabs(taken[at(k)])) - taken[at(k)];
    is_scaled_ = false;
    best = incumbent, bound = -kInfinity, complete = true;
    chosen.clear();
    random_ = 0x9E3779B97F4A7C15u;
    tolerance_ = tolerance_of(pick);
    if (pick > items.count) return false;
    if (pick == 0 || pick == items.count) {
      set_.clear();
      for (int i = 0; i < pick; ++i) set_.push_back(i);
      return solve_single(fits);
    }
    if (!reduce_items()) return false;
    if (items_.count == pick) {
      set_.clear();
      for (int i = 0; i < pick; ++i) set_.push_back(original_ids_[at(i)]);
      return solve_single(fits);
    }
    return run_stages(fits);
  }

  // Multipliers of the last relaxation, one for each constraint; any multipliers give a bound.
  const Amounts& multipliers() const { return multipliers_.lambda; }

  // Largest rounding error of the difference of two sums of `pick` values, the larger of size
  // `sum`.
  double rounding(int pick, double sum) const {
    if (has_integer_sums(pick)) return 0;
    return 0x1p-52 * (pick + 2) *
           (scale.has_mixed_signs() ? (pick + 2) * scale.max_abs() : std::fabs(sum));
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // An incumbent that is not an integer consists of other items.
  MultidimTolerance tolerance_of(int pick) const {
    const bool exact = has_integer_sums(pick) && (best == -kInfinity || best == std::floor(best));
    return {exact ? gap : std::max(gap, 1e-12), exact ? 1.0 : 0.0, 0};
  }
  bool has_integer_sums(int pick) const {
    return scale.all_integer && (pick + 2) * scale.max_abs() < kMaxExactSum;
  }

  template <class Fits>
  bool solve_single(Fits& fits) {
    double value = base_;
    for (const int i : set_) value += given_.value[i];
    if (!fits(set_)) return false;
    bound = value + rounding(pick_, value);
    if (!(value > best)) return false;
    best = value;
    chosen = set_;
    return true;
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

  template <class Fits>
  bool run_stages(Fits& fits) {
    const auto feasible = [&](const std::vector<int>& ids) {
      set_.clear();
      for (const int i : ids) set_.push_back(original_ids_[at(i)]);
      return fits(set_);
    };
    const bool solved = multipliers_.solve(items_, pick_, amount_);
    work += 1 + static_cast<std::int64_t>(items_.count) * (items_.limits + 1) *
                    (multipliers_.pivots + 8) / 8;
    if (!solved && is_infeasible()) return false;
    compute_bound();
    const double before = best;
    if (is_open()) find_feasible(feasible);
    const auto accept = [&](const std::vector<int>& positions) {
      candidate_ = fixed_;
      for (const int j : positions) candidate_.push_back(core_.id[at(j)]);
      if (!feasible(candidate_)) return false;
      store_best(candidate_);
      return true;
    };
    std::int64_t share = kShortWork;
    for (; is_open(); share *= 8) {
      if (share > kLongWork) enable_interrupts();
      if (share > kShortWork && !is_scaled_) convert_to_multiples();
      reduce();
      if (is_scaled_) drop_dominated();
      const std::int64_t left = std::max<std::int64_t>(0, max_work - work);
      const bool finished = search(std::min(left, share), accept);
      if (finished) break;
      if (left <= share) {
        complete = false;
        break;
      }
      if (best == -kInfinity)
        search_feasible(share, feasible);
      else if (!chosen.empty())
        climb(share, feasible);
    }
    finalize_bound();
    return best > before;
  }

  // Searches the core for a set better than the incumbent. Returns true if it finished within
  // `work_limit` units of work.
  template <class Accept>
  bool search(std::int64_t work_limit, Accept& accept) {
    const bool by_unit = is_scaled_ && value_.unit > 0;
    const double unit = by_unit ? value_.unit : 1;
    const MultidimTolerance tolerance{tolerance_.relative, by_unit ? 1 : tolerance_.step,
                                   tolerance_.noise / unit};
    double reached = best / unit;
    const bool finished =
        search_.run(core_, tolerance, reached, work_limit / (items_.limits + 1), accept);
    work += search_.nodes * (items_.limits + 1) +
            static_cast<std::int64_t>(core_.size()) * std::min(core_.pick, 64) * items_.limits / 4;
    if (reached > best / unit) {
      double value = base_;
      for (const int i : chosen) value += given_.value[i];
      best = std::max(best, value);
    }
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
    std::vector<char>& is_kept = marked_;
    is_kept.assign(size, 1);
    bool drops = false;
    for (std::size_t j = need; j < size; ++j) {
      std::size_t better = 0;
      for (std::size_t i = 0; i < j && better < need; ++i) {
        bool no_worse = core_.value[i] >= core_.value[j];
        for (int k = 0; no_worse && k < items_.limits; ++k)
          no_worse = core_.use[at(k)][i] <= core_.use[at(k)][j];
        better += no_worse;
      }
      if (better >= need) is_kept[j] = 0, drops = true;
    }
    work += static_cast<std::int64_t>(size * size) / 4;
    if (!drops) return;
    std::size_t kept = 0;
    for (std::size_t j = 0; j < size; ++j)
      if (is_kept[j]) core_.copy_item(j, kept++);
    core_.resize(kept);
  }

  // Makes `bound` an upper bound on the value of every set, in any order of summation.
  void finalize_bound() {
    const double size = best > -kInfinity ? std::fabs(best) : 0;
    const double error = rounding(pick_, std::max(size, std::fabs(bound)));
    bound += tolerance_.noise + error;
    if (complete && best > -kInfinity)
      bound = std::min(bound, best + std::max(tolerance_.relative * std::fabs(best), error));
    bound = std::max(bound, best);
  }

  bool is_open() const { return bound > tolerance_.cutoff(best); }

  void store_best(const std::vector<int>& ids) {
    best_ids_ = ids;
    chosen.clear();
    for (const int i : ids) chosen.push_back(original_ids_[at(i)]);
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
    tolerance_.noise = 0x1p-50 * (pick_ + 64) * ((pick_ + 2) * scale.max_abs() + size);
    return size < kMaxCharge;
  }

  // --- feasible sets by local search

  // Total violation of the constraints, each relative to its scale; 0 if all fit.
  double excess(const Amounts& use) const {
    double sum = 0;
    for (int k = 0; k < items_.limits; ++k)
      sum += std::max(0.0, use[at(k)] - amount_[at(k)] - slack_[at(k)]) / reach_[at(k)];
    return sum;
  }

  // Makes the heaviest items the current set; swaps may use the next kNeighbours.
  void start_from_heaviest() {
    in_.assign(order_.begin(), order_.begin() + pick_);
    out_.assign(order_.begin() + pick_, order_.end());
    std::size_t neighbours = at(std::min(items_.count - pick_, kNeighbours));
    out_.resize(neighbours);
    sum_uses();
  }

  void sum_uses() {
    use_ = {};
    for (const int i : in_)
      for (int k = 0; k < items_.limits; ++k) use_[at(k)] += items_.weight[at(k)][i];
  }

  // Applies the swap of one item for another that leaves the least violation and, among those,
  // gains the most value. Returns false if none improves the current set.
  bool swap_one() {
    const double now = excess(use_);
    double least = now, gain = now > 0 ? -kInfinity : 0;
    std::size_t from = 0, to = out_.size();
    for (std::size_t a = 0; a < in_.size(); ++a) {
      poll();
      for (std::size_t b = 0; b < out_.size(); ++b) {
        Amounts use = use_;
        for (int k = 0; k < items_.limits; ++k)
          use[at(k)] += items_.weight[at(k)][out_[b]] - items_.weight[at(k)][in_[a]];
        const double over = excess(use), more = items_.value[out_[b]] - items_.value[in_[a]];
        if (over < least || (over == least && (to < out_.size() || now == 0) && more > gain))
          least = over, gain = more, from = a, to = b;
      }
    }
    work += static_cast<std::int64_t>(in_.size() * out_.size()) * items_.limits / 2 + 1;
    if (to == out_.size()) return false;
    std::swap(in_[from], out_[to]);
    sum_uses();
    return true;
  }

  template <class Feasible>
  void find_feasible(Feasible feasible) {
    start_from_heaviest();
    for (int round = 0; round < kMaxSwaps; ++round)
      if (!swap_one()) break;
    offer(feasible);
  }

  // Searches any feasible set: starts from the heaviest items with a few random swaps (fixed seed),
  // then swaps items with a random part of the others.
  template <class Feasible>
  void search_feasible(std::int64_t work_limit, Feasible feasible) {
    const std::int64_t end_of_work = work + work_limit;
    const std::size_t pick = at(pick_), rest = at(items_.count) - pick;
    while (work < end_of_work && best == -kInfinity) {
      poll();
      std::vector<int>& places = candidate_;
      places = order_;
      for (std::size_t k = 0; k < kShakes; ++k)
        std::swap(places[random_below(pick)], places[pick + random_below(rest)]);
      const std::size_t neighbours = std::min(rest, at(kNeighbours));
      for (std::size_t k = 0; k < neighbours; ++k)
        std::swap(places[pick + k], places[pick + k + random_below(rest - k)]);
      const auto middle = places.begin() + pick_;
      in_.assign(places.begin(), middle);
      out_.assign(middle, middle + static_cast<std::ptrdiff_t>(neighbours));
      sum_uses();
      work += items_.count / 4;
      for (int round = 0; round < kMaxSwaps && excess(use_) > 0; ++round)
        if (!swap_one()) break;
      if (excess(use_) <= 0) offer(feasible);
    }
  }

  template <class Feasible>
  void offer(Feasible feasible) {
    double value = base_;
    for (const int i : in_) value += items_.value[i];
    if (value > best && feasible(in_)) {
      best = value;
      store_best(in_);
    }
  }

  // Iterated local search: improves the incumbent, then sets a few random swaps away from it, from
  // a fixed seed. It helps if values follow weights closely, so that many sets are nearly optimal.
  template <class Feasible>
  void climb(std::int64_t work_limit, Feasible feasible) {
    const std::int64_t end_of_work = work + work_limit;
    start_from(best_ids_);
    while (work < end_of_work && is_open()) {
      poll();
      while (is_open() && work < end_of_work && (swap_one() || swap_two())) offer(feasible);
      if (!is_open()) return;
      start_from(best_ids_);
      perturb();
    }
  }

  // Makes `set` the current set; swaps may use the heaviest kNeighbours others.
  void start_from(const std::vector<int>& set) {
    in_ = set;
    marked_.assign(at(items_.count), 0);
    for (const int i : in_) marked_[at(i)] = 1;
    out_.clear();
    for (const int i : order_)
      if (!marked_[at(i)] && static_cast<int>(out_.size()) < kNeighbours) out_.push_back(i);
    sum_uses();
  }

  bool is_within(const Amounts& use) const {
    for (int k = 0; k < items_.limits; ++k)
      if (use[at(k)] > amount_[at(k)] + slack_[at(k)]) return false;
    return true;
  }

  // Applies the best swap of two for two: pairs of single swaps by falling value.
  bool swap_two() {
    swaps_.clear();
    for (std::size_t a = 0; a < in_.size(); ++a)
      for (std::size_t b = 0; b < out_.size(); ++b) {
        MultidimSwap swap{items_.value[out_[b]] - items_.value[in_[a]], {}, a, b};
        for (int k = 0; k < items_.limits; ++k)
          swap.use[at(k)] = items_.weight[at(k)][out_[b]] - items_.weight[at(k)][in_[a]];
        swaps_.push_back(swap);
      }
    std::sort(swaps_.begin(), swaps_.end(), [](const MultidimSwap& x, const MultidimSwap& y) {
      if (x.value != y.value) return x.value > y.value;
      return x.from != y.from ? x.from < y.from : x.to < y.to;
    });
    work += static_cast<std::int64_t>(swaps_.size());
    double gain = 0;
    const MultidimSwap *one = nullptr, *two = nullptr;
    std::int64_t examined = 0;
    for (std::size_t p = 0; p < swaps_.size() && examined < kMaxPairs; ++p) {
      const MultidimSwap& x = swaps_[p];
      if (!(x.value + x.value > gain)) break;
      for (std::size_t q = p + 1; q < swaps_.size(); ++q) {
        const MultidimSwap& y = swaps_[q];
        if (!(x.value + y.value > gain)) break;
        ++examined;
        if (x.from == y.from || x.to == y.to) continue;
        Amounts use = use_;
        for (int k = 0; k < items_.limits; ++k) use[at(k)] += x.use[at(k)] + y.use[at(k)];
        if (!is_within(use)) continue;
        gain = x.value + y.value;
        one = &x, two = &y;
        break;
      }
    }
    work += examined / 4;
    if (!one) return false;
    std::swap(in_[one->from], out_[one->to]);
    std::swap(in_[two->from], out_[two->to]);
    sum_uses();
    return true;
  }

  // Applies a few random swaps; undoes those after which the set does not fit.
  void perturb() {
    for (int k = 0; k < kPerturbations; ++k) {
      const std::size_t from = random_below(in_.size()), to = random_below(out_.size());
      std::swap(in_[from], out_[to]);
      sum_uses();
      if (is_within(use_)) continue;
      std::swap(in_[from], out_[to]);
      sum_uses();
    }
  }

  std::size_t random_below(std::size_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % below;
  }

  // Reduction: fixes all items that no better set can exchange. The others become the core, in
  // units of the columns that have been converted.
  void reduce() {
    const double last = weight_[at(order_[at(pick_ - 1)])], next = weight_[at(order_[at(pick_)])];
    const double margin = bound - tolerance_.cutoff(best);
    const double unit = is_scaled_ && value_.unit > 0 ? value_.unit : 1;
    const auto value_of = [&](int i) {
      return is_scaled_ && value_.unit > 0 ? value_.counts[at(i)] : items_.value[i];
    };
    const auto use_of = [&](int k, int i) {
      const Multiples& multiple = multiple_[at(k)];
      return is_scaled_ && multiple.unit > 0 ? multiple.counts[at(i)] : items_.weight[at(k)][i];
    };
    core_.clear();
    fixed_.clear();
    core_.base_value = is_scaled_ && value_.unit > 0 ? value_.counts.back() : base_;
    core_.limits = items_.limits;
    for (int k = 0; k < items_.limits; ++k) {
      const Multiples& multiple = multiple_[at(k)];
      const bool has_unit = is_scaled_ && multiple.unit > 0;
      core_.is_integer[at(k)] = has_unit;
      core_.capacity[at(k)] = has_unit ? multiple.limit - multiple.counts.back() : amount_[at(k)];
      core_.slack[at(k)] = has_unit ? 0.5 : slack_[at(k)];
      core_.lambda[at(k)] = multipliers_.lambda[at(k)] * (has_unit ? multiple.unit : 1) / unit;
    }
    const double middle = 0.5 * (last + next) / unit;
    for (int place = 0; place < items_.count; ++place) {
      const int i = order_[at(place)];
      const double w = weight_[at(i)];
      if (place < pick_ && w - next >= margin) {
        fixed_.push_back(i);
        core_.base_value += value_of(i);
        for (int k = 0; k < items_.limits; ++k) core_.capacity[at(k)] -= use_of(k, i);
      } else if (place < pick_ || last - w < margin) {
        double weight = value_of(i);
        for (int k = 0; k < items_.limits; ++k) {
          core_.use[at(k)].push_back(use_of(k, i));
          weight -= core_.lambda[at(k)] * core_.use[at(k)].back();
        }
        core_.id.push_back(i);
        core_.weight.push_back(weight - middle);
        core_.value.push_back(value_of(i));
      }
    }
    core_.pick = pick_ - static_cast<int>(fixed_.size());
    double constant = 0;
    for (int k = 0; k < items_.limits; ++k)
      constant += core_.lambda[at(k)] * core_.capacity[at(k)];
    core_.offset = core_.base_value + constant + core_.pick * middle;
    core_.use_table = is_scaled_;
    core_.any_set_suffices = tolerance_.relative > 1 && best == -kInfinity;
    core_.has_integer_values = is_scaled_ ? value_.unit > 0 : tolerance_.step > 0;
    core_.sort();
  }

  static constexpr std::size_t kShakes = 3;
  static constexpr std::int64_t kShortWork = 6000, kLongWork = 300000;
  static constexpr std::size_t kMaxDominanceItems = 4096;
  static constexpr double kMaxCharge = 1e307;
  static constexpr int kMaxSwaps = 60, kNeighbours = 64, kPerturbations = 4;
  static constexpr std::int64_t kMaxPairs = 20000;

  struct MultidimSwap {
    double value;
    Amounts use;
    std::size_t from, to;  // positions in in_ and out_
  };

  MultidimItems given_, items_;
  int pick_ = 0;
  Amounts given_amount_{}, forced_use_{};  // amounts for all items; uses of the forced items
  Amounts amount_{}, reach_{}, slack_{}, use_{};
  double base_ = 0;
  bool is_scaled_ = false;
  // the last entry of each belongs to the forced items
  std::array<Multiples, kMaxSumLimits> multiple_;
  Multiples value_;
  MultidimTolerance tolerance_;
  DualSimplex multipliers_;
  MultidimCore core_;
  MultidimSearch search_;
  std::vector<int> original_ids_, set_, order_, fixed_, candidate_, in_, out_;
  std::vector<double> columns_, sorted_, weight_;
  std::vector<int> best_ids_;
  std::vector<char> marked_;
  std::vector<MultidimSwap> swaps_;
  std::uint64_t random_ = 0;
};

}  // namespace slotkern

// The cheapest n items under several sum constraints, exactly and with a deterministic tie-break:
// of all feasible sets the one of least cost, and of equal costs the first in cost order.
//
// Branch and bound in cost order. A set's cost is the exact sum of its keys, rounded once. It never
// falls when a key rises, so the sum of the next r keys from item j on is a bound without rounding
// error, and a cost that ties with the incumbent is never visited twice. In this order the first
// set found of a cost is the first by the tie-break.
//
// A set is also pruned if the smallest uses that may follow violate a constraint, or if the sum of
// key + multipliers * uses exceeds its Lagrangian bound. Among items equal in key and uses the
// earlier ones are chosen first. If all uses are integer multiples (choice/multiples.hpp), a state
// met before at no higher cost and with no fewer items left is pruned, too. O(1) a node, plus the r
// keys.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/interrupt.hpp"
#include "slotkern/choice/multidim_bound.hpp"
#include "slotkern/choice/multiples.hpp"
#include "slotkern/choice/suffix_bounds.hpp"
#include "slotkern/choice/transposition_table.hpp"

namespace slotkern {

class ConstrainedCheapest {
 public:
  std::vector<int> chosen;  // ascending item numbers
  double best = 0;  // cost of `chosen`, or the initial limit if it is empty
  std::int64_t work = 0;  // units of MultidimKnapsack, of the last run

  // `items.value` holds the keys, ascending. The cost of a set is total(sum of keys). Only costs
  // below `most`, or up to it if `inclusive`, are searched; no set of such a cost has a sum of keys
  // above `max_key_sum`. `fits(set)` is the exact test. Returns true if the search finished within
  // `limit` units of work; `chosen` holds the best set found, or is empty.
  template <class Total, class Fits>
  bool run(const MultidimItems& items, int n, const Amounts& amount, const Amounts& lambda,
           double max_cost, bool inclusive, double max_key_sum, std::int64_t limit, Total total,
           Fits fits) {
    chosen.clear();
    best = max_cost;
    work = 0;
    prepare_items(items, n, amount, lambda, max_key_sum);
    if (id_.size() < at(n)) return true;
    sums_.assign((at(n) + 1) * kRows, 0);
    stack_.clear();
    group_equal_items(at(items.limits));
    use_table_ = start_table(at(items.limits), n, limit);
    is_chosen_.assign(id_.size(), 0);
    CheapestDescent<Total, Fits> walk{*this, limit, inclusive, total, fits};
    return walk.descend(0, at(n), {});
  }

 private:
  static constexpr std::size_t kRows = kMaxSumLimits + 1;
  static constexpr double kMaxSum = 1e300;  // beyond it a bound may overflow

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Selects the items that may be in a feasible set. There is one row of uses for each constraint,
  // and one for the Lagrangian bound.
  void prepare_items(const MultidimItems& items, int n, const Amounts& amount,
                     const Amounts& lambda, double max_key_sum) {
    rows_ = at(items.limits);
    double charged = 0;
    for (std::size_t k = 0; k < rows_; ++k) {
      use_[k].assign(items.weight[k], items.weight[k] + items.count);
      ceiling_[k] = amount[k];
      charged += lambda[k] * amount[k];
    }
    if (std::isfinite(max_key_sum) && std::isfinite(charged)) {
      std::vector<double>& bound = use_[rows_];
      bound.resize(at(items.count));
      double size = std::fabs(max_key_sum + charged);
      for (int i = 0; i < items.count; ++i) {
        double sum = items.value[i];
        for (std::size_t k = 0; k < rows_; ++k) {
          const double charge = lambda[k] * items.weight[k][i];
          size = std::max(size, std::fabs(charge));
          sum += charge;
        }
        bound[at(i)] = sum;
      }
      if (size * (n + 1.0) < kMaxSum) ceiling_[rows_++] = max_key_sum + charged;
    }
    id_.resize(at(items.count));
    for (int i = 0; i < items.count; ++i) id_[at(i)] = i;
    for (std::size_t k = 0; k < at(items.limits); ++k) {
      is_integer_[k] = multiples_.convert(use_[k], amount[k]);
      if (!is_integer_[k]) continue;
      use_[k] = multiples_.counts;
      ceiling_[k] = multiples_.limit + 0.5;
      drop_infeasible(k, at(n));
    }
    for (std::size_t k = 0; k < rows_; ++k) {
      if (k < at(items.limits) && is_integer_[k]) continue;
      double largest = std::fabs(ceiling_[k]);
      for (const double w : use_[k]) largest = std::max(largest, std::fabs(w));
      for (std::size_t l = 0; l < at(items.limits); ++l)  // the products in the bound may cancel
        if (k >= at(items.limits)) largest = std::max(largest, std::fabs(lambda[l] * amount[l]));
      ceiling_[k] += 0x1p-48 * (n + 16.0) * (n + 4.0) * largest;
      drop_infeasible(k, at(n));
    }
    key_.clear();
    for (const int i : id_) key_.push_back(items.value[i]);
    for (std::size_t k = 0; k < rows_; ++k) {
      std::size_t kept = 0;
      for (const int i : id_) use_[k][kept++] = use_[k][at(i)];
      use_[k].resize(kept);
      min_uses_[k].build(use_[k], at(n), 1);
    }
  }

  // Removes items that violate constraint k even together with the n - 1 smallest others.
  void drop_infeasible(std::size_t k, std::size_t n) {
    if (id_.size() < n) return;
    sorted_.clear();
    for (const int i : id_) sorted_.push_back(use_[k][at(i)]);
    const auto middle = sorted_.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(sorted_.begin(), middle, sorted_.end());
    double others = 0;
    for (auto it = sorted_.begin(); it != middle; ++it) others += *it;
    std::erase_if(id_, [&](int i) { return use_[k][at(i)] + others > ceiling_[k]; });
  }

  // Links each item to the previous item with the same key and the same uses.
  void group_equal_items(std::size_t limits) {
    order_.resize(id_.size());
    for (std::size_t j = 0; j < order_.size(); ++j) order_[j] = j;
    const auto compare = [&](std::size_t a, std::size_t b) {
      if (key_[a] != key_[b]) return key_[a] < key_[b] ? -1 : 1;
      for (std::size_t k = 0; k < limits; ++k)
        if (use_[k][a] != use_[k][b]) return use_[k][a] < use_[k][b] ? -1 : 1;
      return 0;
    };
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const int sign = compare(a, b);
      return sign != 0 ? sign < 0 : a < b;
    });
    equal_before_.assign(id_.size(), kNone);
    for (std::size_t i = 1; i < order_.size(); ++i)
      if (compare(order_[i - 1], order_[i]) == 0) equal_before_[order_[i]] = order_[i - 1];
  }

  // Prepares the transposition table. Returns false if uses are not integers or states do not fit.
  bool start_table(std::size_t limits, int n, std::int64_t limit) {
    fields_.assign(1, n);
    for (std::size_t k = 0; k < limits; ++k) {
      if (!is_integer_[k]) return false;
      const auto [smallest, largest] = std::minmax_element(use_[k].begin(), use_[k].end());
      min_sum_[k] = n * std::min(0.0, *smallest);
      fields_.push_back(n * std::max(0.0, *largest) - min_sum_[k]);
    }
    return table_.reset(fields_, limit);
  }

  // Returns true if the state was met before at no higher cost and with no fewer items left; else
  // stores it.
  bool is_dominated(std::size_t j, std::size_t rest, const double* sums, const PairSum& sum) {
    if (!sum.exact()) return false;
    table_.begin_key();
    table_.append(static_cast<double>(rest));
    for (std::size_t k = 0; k + 1 < fields_.size(); ++k) table_.append(sums[k] - min_sum_[k]);
    return table_.prune_or_store({sum.value(), sum.rest(), static_cast<double>(j)}, 0);
  }

  template <class Total, class Fits>
  struct CheapestDescent {
    ConstrainedCheapest& search;
    std::int64_t limit;
    bool inclusive;
    Total& total;
    Fits& fits;

    bool descend(std::size_t j, std::size_t rest, const PairSum& sum) {
      if (rest == 0) {
        search.set_.clear();
        for (const std::size_t place : search.stack_) search.set_.push_back(search.id_[place]);
        if (!fits(search.set_)) return true;
        search.chosen = search.set_;
        search.best = total(exact_sum(search.stack_.size(), [this](std::size_t i) {
          return search.key_[search.stack_[i]];
        }));
        inclusive = false;
        return true;
      }
      const double* sums = search.sums_.data() + search.stack_.size() * kRows;
      double* next = search.sums_.data() + (search.stack_.size() + 1) * kRows;
      if (search.use_table_ && !search.stack_.empty() && search.is_dominated(j, rest, sums, sum))
        return true;
      for (const std::size_t first = j; j + rest <= search.id_.size(); ++j) {
        if (search.is_redundant(j, first)) continue;
        PairSum least = sum;
        for (std::size_t i = j; i < j + rest; ++i) least.add(search.key_[i]);
        const double cost = total(least.lower());
        if (cost > search.best || (cost == search.best && !inclusive)) return true;
        if (!fits_with_rest(sums, j, rest)) return true;
        search.work += static_cast<std::int64_t>(search.rows_ + 1 + rest / 4);
        if (search.work >= limit) return false;
        poll();
        for (std::size_t k = 0; k < search.rows_; ++k) next[k] = sums[k] + search.use_[k][j];
        if (rest > 1 ? !fits_with_rest(next, j + 1, rest - 1) : !fits_limits(next)) continue;
        search.stack_.push_back(j);
        search.is_chosen_[j] = 1;
        PairSum with = sum;
        with.add(search.key_[j]);
        const bool finished = descend(j + 1, rest - 1, with);
        search.stack_.pop_back();
        search.is_chosen_[j] = 0;
        if (!finished) return false;
      }
      return true;
    }

    bool fits_with_rest(const double* sums, std::size_t j, std::size_t rest) const {
      for (std::size_t k = 0; k < search.rows_; ++k)
        if (sums[k] + search.min_uses_[k].bound(j, rest) > search.ceiling_[k]) return false;
      return true;
    }

    bool fits_limits(const double* sums) const {
      for (std::size_t k = 0; k < search.rows_; ++k)
        if (sums[k] > search.ceiling_[k]) return false;
      return true;
    }
  };

  // True if an equal, earlier item makes this one redundant: one of this loop, or one that was
  // skipped before. The second rule makes states depend on more than their sums, so it excludes the
  // table.
  bool is_redundant(std::size_t j, std::size_t first) const {
    const std::size_t before = equal_before_[j];
    if (before == kNone) return false;
    return use_table_ ? before >= first : !is_chosen_[before];
  }

  static constexpr std::size_t kNone = ~std::size_t{0};

  Multiples multiples_;
  TranspositionTable table_;
  bool use_table_ = false;
  std::array<bool, kRows> is_integer_{};
  std::array<double, kRows> min_sum_{};
  std::vector<double> fields_;
  std::vector<std::size_t> equal_before_, order_;
  std::vector<char> is_chosen_;
  std::size_t rows_ = 0;
  std::array<std::vector<double>, kRows> use_;
  std::array<SuffixBounds, kRows> min_uses_;
  std::array<double, kRows> ceiling_{};
  std::vector<double> key_, sums_, sorted_;
  std::vector<int> id_, set_;
  std::vector<std::size_t> stack_;
};

}  // namespace slotkern

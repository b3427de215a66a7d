// The cheapest n items under several limits, exactly and by the tie rule: of all sets whose sums
// keep their limits the one of least cost, and of equal costs the first in cost order.
//
// Items stand in cost order, and a set's cost is the exact sum of its keys, rounded once. That
// sum never falls when a key rises, so the next r keys from j on are a bound without rounding: a
// cost that ties is never looked at twice. Depth first in cost order the first set of a cost is
// the first by the tie rule. A set is also left where the smallest uses that could still come
// break a limit, or the sum of key + multipliers * uses, which any set below a cost keeps small:
// the limits' Lagrange bound. O(1) a node but for the r keys.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/interrupt.hpp"
#include "slotkern/choice/multi_bound.hpp"
#include "slotkern/choice/suffix_sums.hpp"

namespace slotkern {

class CheapestWithin {
 public:
  std::vector<int> chosen;  // ascending
  double best = 0;          // its cost
  std::int64_t nodes = 0;

  // `items.value` holds the keys, ascending. A set's cost is total(sum of keys); only sets below
  // `most` are looked for, or up to it where `inclusive`. No set of that cost has a sum of keys
  // above `most_sum`. `fits(set)` is the exact test. Says whether the search was finished within
  // `limit` nodes; what it has found by then is in `chosen`.
  template <class Total, class Fits>
  bool run(const MultiItems& items, int n, const Amounts& amount, const Amounts& lambda,
           double most, bool inclusive, double most_sum, std::int64_t limit, Total total,
           Fits fits) {
    chosen.clear();
    best = most;
    nodes = 0;
    lay_out(items, n, amount, lambda, most_sum);
    if (id_.size() < at(n)) return true;
    sums_.assign((at(n) + 1) * kRows, 0);
    stack_.clear();
    Walk<Total, Fits> walk{*this, limit, inclusive, total, fits};
    return walk.descend(0, at(n), {});
  }

 private:
  static constexpr std::size_t kRows = kMostLimits + 1;
  static constexpr double kMostSum = 1e300;  // beyond it a bound may overflow

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // The items that some set may hold, with one row a limit and one for the bound.
  void lay_out(const MultiItems& items, int n, const Amounts& amount, const Amounts& lambda,
               double most_sum) {
    rows_ = at(items.limits);
    double charged = 0;
    for (std::size_t k = 0; k < rows_; ++k) {
      use_[k].assign(items.weight[k], items.weight[k] + items.count);
      ceiling_[k] = amount[k];
      charged += lambda[k] * amount[k];
    }
    if (std::isfinite(most_sum) && std::isfinite(charged)) {
      std::vector<double>& bound = use_[rows_];
      bound.resize(at(items.count));
      double size = std::fabs(most_sum + charged);
      for (int i = 0; i < items.count; ++i) {
        double sum = items.value[i];
        for (std::size_t k = 0; k < rows_; ++k) {
          const double charge = lambda[k] * items.weight[k][i];
          size = std::max(size, std::fabs(charge));
          sum += charge;
        }
        bound[at(i)] = sum;
      }
      if (size * (n + 1.0) < kMostSum) ceiling_[rows_++] = most_sum + charged;
    }
    id_.resize(at(items.count));
    for (int i = 0; i < items.count; ++i) id_[at(i)] = i;
    for (std::size_t k = 0; k < rows_; ++k) {
      double largest = std::fabs(ceiling_[k]);
      for (const double w : use_[k]) largest = std::max(largest, std::fabs(w));
      for (std::size_t l = 0; l < at(items.limits); ++l)  // the products in it may cancel
        if (k >= at(items.limits)) largest = std::max(largest, std::fabs(lambda[l] * amount[l]));
      ceiling_[k] += 0x1p-48 * (n + 16.0) * (n + 4.0) * largest;
      drop_hopeless(k, at(n));
    }
    key_.clear();
    for (const int i : id_) key_.push_back(items.value[i]);
    for (std::size_t k = 0; k < rows_; ++k) {
      std::size_t kept = 0;
      for (const int i : id_) use_[k][kept++] = use_[k][at(i)];
      use_[k].resize(kept);
      least_[k].build(use_[k], at(n), 1);
    }
  }

  // Items that break limit k even with the n - 1 smallest others.
  void drop_hopeless(std::size_t k, std::size_t n) {
    if (id_.size() < n) return;
    sorted_.clear();
    for (const int i : id_) sorted_.push_back(use_[k][at(i)]);
    const auto middle = sorted_.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(sorted_.begin(), middle, sorted_.end());
    double others = 0;
    for (auto it = sorted_.begin(); it != middle; ++it) others += *it;
    std::erase_if(id_, [&](int i) { return use_[k][at(i)] + others > ceiling_[k]; });
  }

  template <class Total, class Fits>
  struct Walk {
    CheapestWithin& search;
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
      for (; j + rest <= search.id_.size(); ++j) {
        PairSum least = sum;
        for (std::size_t i = j; i < j + rest; ++i) least.add(search.key_[i]);
        const double cost = total(least.lower());
        if (cost > search.best || (cost == search.best && !inclusive)) return true;
        if (!room(sums, j, rest)) return true;
        if (search.nodes++ >= limit) return false;
        poll();
        for (std::size_t k = 0; k < search.rows_; ++k) next[k] = sums[k] + search.use_[k][j];
        if (rest > 1 ? !room(next, j + 1, rest - 1) : !fit(next)) continue;
        search.stack_.push_back(j);
        PairSum with = sum;
        with.add(search.key_[j]);
        const bool finished = descend(j + 1, rest - 1, with);
        search.stack_.pop_back();
        if (!finished) return false;
      }
      return true;
    }

    bool room(const double* sums, std::size_t j, std::size_t rest) const {
      for (std::size_t k = 0; k < search.rows_; ++k)
        if (sums[k] + search.least_[k].of(j, rest) > search.ceiling_[k]) return false;
      return true;
    }

    bool fit(const double* sums) const {
      for (std::size_t k = 0; k < search.rows_; ++k)
        if (sums[k] > search.ceiling_[k]) return false;
      return true;
    }
  };

  std::size_t rows_ = 0;
  std::array<std::vector<double>, kRows> use_;
  std::array<SuffixSums, kRows> least_;
  std::array<double, kRows> ceiling_{};
  std::vector<double> key_, sums_, sorted_;
  std::vector<int> id_, set_;
  std::vector<std::size_t> stack_;
};

}  // namespace slotkern

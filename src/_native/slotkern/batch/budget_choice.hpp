// The least choice of n parts within a budget, over many starts: Lagrangian bounds, then knapsacks.
//
// Each start has live parts with an amount and money, and an amount of its own. For a multiplier
// m >= 0 the n least sums of amount + m * money, minus m * budget, are lower bounds. Multipliers are
// tried by bisection at the start of the lowest bound. Starts whose bound is below the best choice
// are then solved exactly, by rising bound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/base/status.hpp"
#include "slotkern/choice/choose.hpp"

namespace slotkern {

// A part that may start at a time.
struct LivePart {
  double amount, money;
  std::int64_t row;
};

struct LiveChoice {
  double value = kInfinity;  // the sum of the amounts, in the order of the choice
  double least = kInfinity;  // the same with the multiplied money
  double money = kInfinity;  // the exact sum, rounded once
  std::vector<std::int64_t> rows;
};

// Chooses the n least amounts + multiplier * money; the first of equal ones. The result has no rows:
// list_rows() takes them from the first n places of `order`.
inline LiveChoice choose_least(const std::vector<LivePart>& live, int n, double multiplier,
                               std::vector<std::size_t>& order) {
  LiveChoice choice;
  const auto size = static_cast<std::size_t>(n);
  if (live.size() < size) return choice;
  order.resize(live.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    return multiplier != 0 ? live[i].amount + multiplier * live[i].money : live[i].amount;
  };
  std::partial_sort(order.begin(), order.begin() + n, order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double x = key(a), y = key(b);
                      return x < y || (x == y && a < b);
                    });
  choice.value = live[order[0]].amount, choice.least = key(order[0]);
  for (std::size_t j = 1; j < size; ++j)
    choice.value += live[order[j]].amount, choice.least += key(order[j]);
  choice.money = exact_sum(size, [&](std::size_t j) { return live[order[j]].money; });
  return choice;
}

// Lists the rows of the choice of choose_least(): none with fewer than n parts.
inline void list_rows(const std::vector<LivePart>& live, int n,
                      const std::vector<std::size_t>& order, std::vector<std::int64_t>& rows) {
  rows.clear();
  const auto size = static_cast<std::size_t>(n);
  if (live.size() < size) return;
  for (std::size_t j = 0; j < size; ++j) rows.push_back(live[order[j]].row);
}

class BudgetChoice {
 public:
  static constexpr int kMultipliers = 10;

  LiveChoice best;       // the least choice; infinite without one
  std::size_t at = 0;    // its start
  double bound = 0;      // no choice is less

  void clear(int n, double budget) {
    n_ = n, budget_ = budget, limit_ = relaxed_max(budget);
    count_ = 0;
  }

  void add_start(const std::vector<LivePart>& live, double whole) {
    if (starts_.size() == count_) starts_.emplace_back();
    PricedStart& start = starts_[count_++];
    start.live = live, start.whole = whole, start.bound = -kInfinity;
  }

  Status solve() {
    best = {};
    bound = kInfinity;
    for (std::size_t i = 0; i < count_; ++i)
      if (!(least_money(starts_[i].live) <= limit_)) starts_[i].bound = kInfinity;
    double low = 0, high = kInfinity, multiplier = 0;
    for (int attempt = 0; attempt < kMultipliers; ++attempt) {
      try_multiplier(multiplier);
      const std::size_t lowest = lowest_start();
      if (lowest == count_) return Status::ok;
      bound = starts_[lowest].bound;
      if (bound >= best.value) {
        bound = best.value;
        return Status::ok;
      }
      if (bound == kInfinity) return Status::ok;
      (starts_[lowest].money > limit_ ? low : high) = multiplier;
      if (attempt == 0) multiplier = first_multiplier();
      else multiplier = high == kInfinity ? 2 * low : (low + high) / 2;
    }
    return solve_exactly();
  }

 private:
  static constexpr double kMemory = 0x1p28;  // largest size of the tables of a knapsack, bytes

  struct PricedStart {
    std::vector<LivePart> live;
    double whole, bound, money;
  };

  // The sum of the n least amounts of money, infinite without n parts.
  double least_money(const std::vector<LivePart>& live) {
    const auto n = static_cast<std::size_t>(n_);
    if (live.size() < n) return kInfinity;
    costs_.clear();
    for (const LivePart& part : live) costs_.push_back(part.money);
    std::nth_element(costs_.begin(), costs_.begin() + n_ - 1, costs_.end());
    return exact_sum(n, [&](std::size_t j) { return costs_[j]; });
  }

  void try_multiplier(double multiplier) {
    const double saved = multiplier != 0 ? multiplier * limit_ : 0;
    for (std::size_t i = 0; i < count_; ++i) {
      PricedStart& start = starts_[i];
      if (start.bound == kInfinity) continue;
      poll();
      const LiveChoice choice = choose_least(start.live, n_, multiplier, order_);
      start.bound = std::max(start.bound, choice.least + start.whole - saved);
      start.money = choice.money;
      const double value = choice.value + start.whole;
      if (!(choice.money <= limit_ && value < best.value)) continue;
      list_rows(start.live, n_, order_, rows_);
      offer(i, value, rows_);
    }
  }

  void offer(std::size_t i, double value, const std::vector<std::int64_t>& rows) {
    if (!(value < best.value)) return;
    best.value = value, best.rows = rows;
    at = i;
  }

  std::size_t lowest_start() const {
    std::size_t lowest = count_;
    for (std::size_t i = 0; i < count_; ++i)
      if (starts_[i].bound < (lowest == count_ ? kInfinity : starts_[lowest].bound)) lowest = i;
    return lowest;
  }

  // The spread of the amounts by that of the money.
  double first_multiplier() const {
    double low = kInfinity, high = -kInfinity, least = kInfinity, most = -kInfinity;
    for (std::size_t i = 0; i < count_; ++i)
      for (const LivePart& part : starts_[i].live) {
        low = std::min(low, part.amount), high = std::max(high, part.amount);
        least = std::min(least, part.money), most = std::max(most, part.money);
      }
    return most > least ? (high - low) / (most - least) : 1;
  }

  Status solve_exactly() {
    enable_interrupts();
    by_bound_.resize(count_);
    std::iota(by_bound_.begin(), by_bound_.end(), std::size_t{0});
    std::stable_sort(by_bound_.begin(), by_bound_.end(), [&](std::size_t a, std::size_t b) {
      return starts_[a].bound < starts_[b].bound;
    });
    for (const std::size_t i : by_bound_) {
      PricedStart& start = starts_[i];
      if (start.bound >= best.value) break;
      poll();
      costs_.clear(), gains_.clear();
      for (const LivePart& part : start.live)
        costs_.push_back(part.money), gains_.push_back(-part.amount);
      std::vector<Choice>* choices = nullptr;
      const Fault fault = choose(costs_.data(), gains_.data(), static_cast<int>(costs_.size()),
                                 n_, n_, budget_, 0, std::numeric_limits<std::int64_t>::max(),
                                 kMemory, Method::fastest, choices);
      if (fault.status != Status::ok) return fault.status;
      const Choice& choice = choices->front();
      if (!choice.any) {
        start.bound = kInfinity;
        continue;
      }
      start.bound = std::max(start.bound, start.whole - choice.bound);
      rows_.clear();
      for (const int at : choice.rows) rows_.push_back(start.live[static_cast<std::size_t>(at)].row);
      offer(i, start.whole - choice.value, rows_);
    }
    const std::size_t lowest = lowest_start();
    bound = lowest == count_ ? kInfinity : starts_[lowest].bound;
    return Status::ok;
  }

  int n_ = 1;
  double budget_ = 0, limit_ = 0;
  std::vector<PricedStart> starts_;  // the first count_
  std::size_t count_ = 0;
  std::vector<std::size_t> order_, by_bound_;
  std::vector<double> costs_, gains_;
  std::vector<std::int64_t> rows_;
};

}  // namespace slotkern

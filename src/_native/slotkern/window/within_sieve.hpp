// Which slots can be in a window at all, where sums over the parts are limited: the relaxation
// over all slots of a search, as if they were live at once, gives one multiplier a limit. Under
// them a window with a slot costs no less than this slot and the n - 1 least of other nodes; and
// where even the relaxation has no solution, its ray tells which sums are too large with a slot,
// or with any. O(slots * limits) a pivot once, then O(1) a slot, and O(live slots) for those of
// one step.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/live_within.hpp"

namespace slotkern {

class WithinSieve {
 public:
  explicit WithinSieve(WithinScratch& work) : w_(work) {}

  // All slots that a window of the shape may use. False where a user's function failed.
  template <class Shape>
  bool build(const PreparedSlots& prepared, const Query& query, const Shape& shape,
             LiveWithin<Shape>& live) {
    const PartLimits& limits = *query.limits;
    const std::size_t n = static_cast<std::size_t>(query.n);
    w_.sieve_row.clear(), w_.sieve_value.clear();
    for (auto& column : w_.sieve_use) column.clear();
    std::array<double, kMostPartLimits> uses{};
    prepared.each_row([&](std::size_t row) {
      const Slot& slot = prepared.slots[row];
      if (live.failed == row || !live.live(slot, row, query.start_in(slot))) return;
      poll();
      if (!live.measure(row, uses)) return;
      w_.sieve_row.push_back(row), w_.sieve_value.push_back(-shape.key(slot));
      for (std::size_t k = 0; k < limits.all.size(); ++k) w_.sieve_use[k].push_back(uses[k]);
    });
    if (live.failed != Proof::kNone) return false;
    weigh(prepared, limits, n);
    built_ = true;
    return true;
  }

  bool built() const { return built_; }

  // Whether no window with this slot, or none at all, has a sum of keys up to `most`.
  bool stops(std::size_t row, double most) const {
    return w_.sieve_weight[row] + others_ - charged_ > (keyed_ ? most : 0) + noise_;
  }
  bool stops_all(double most) const { return least_ > (keyed_ ? most : 0) + noise_; }

  // The same of the sets that hold the newest of these slots and n - 1 of the others.
  template <class Shape>
  bool stops_newest(const LiveWithin<Shape>& live, std::size_t n, double most) {
    std::vector<double>& weights = w_.least_of;
    weights.clear();
    for (std::size_t j = 0; j + 1 < live.size(); ++j)
      weights.push_back(w_.sieve_weight[live.row(static_cast<int>(j))]);
    if (weights.size() + 1 < n) return true;
    double sum = w_.sieve_weight[live.row(static_cast<int>(live.size()) - 1)] - charged_;
    const auto middle = weights.begin() + static_cast<std::ptrdiff_t>(n - 1);
    if (middle != weights.end()) std::nth_element(weights.begin(), middle, weights.end());
    for (auto it = weights.begin(); it != middle; ++it) sum += *it;
    return sum > (keyed_ ? most : 0) + noise_;
  }

  // The most that lets `some` slots pass.
  double most_for(std::size_t some) {
    if (!keyed_ || w_.sieve_row.size() <= some) return kInfinity;
    std::vector<double>& weights = w_.least_of;
    weights.clear();
    for (const std::size_t row : w_.sieve_row) weights.push_back(w_.sieve_weight[row]);
    const auto last = weights.begin() + static_cast<std::ptrdiff_t>(some - 1);
    std::nth_element(weights.begin(), last, weights.end());
    return *last + others_ - charged_;
  }

 private:
  void weigh(const PreparedSlots& prepared, const PartLimits& limits, std::size_t n) {
    const std::size_t count = w_.sieve_row.size();
    w_.sieve_weight.assign(prepared.slots.size(), kInfinity);
    least_ = kInfinity;
    if (count < n) return;
    MultiItems items;
    Amounts amounts{};
    items.count = static_cast<int>(count);
    items.limits = static_cast<int>(limits.all.size());
    items.value = w_.sieve_value.data();
    for (std::size_t k = 0; k < limits.all.size(); ++k) {
      items.weight[k] = w_.sieve_use[k].data();
      amounts[k] = limits.all[k].at_least ? -limits.all[k].amount : limits.all[k].amount;
    }
    keyed_ = w_.multipliers.solve(items, static_cast<int>(n), amounts);
    double size = charge(items, keyed_ ? w_.multipliers.lambda : w_.multipliers.ray, amounts);
    if (!(size < kMostCharge)) {  // they overflow; keys alone are a bound
      keyed_ = true;
      size = charge(items, {}, amounts);
    }
    std::vector<double>& least = w_.least_of;
    least.assign(prepared.nodes.size(), kInfinity);
    for (const std::size_t row : w_.sieve_row) {
      double& of_node = least[static_cast<std::size_t>(prepared.slots[row].place)];
      of_node = std::min(of_node, w_.sieve_weight[row]);
    }
    const auto middle = least.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(least.begin(), middle, least.end());
    others_ = 0;
    for (auto it = least.begin(); it != middle; ++it) others_ += *it;
    least_ = others_ + *middle - charged_;
    noise_ = 0x1p-48 * (static_cast<double>(n) + 16) * (static_cast<double>(n) + 4) * size;
  }

  // The weights under these multipliers, and the largest number among the terms of their sums.
  double charge(const MultiItems& items, const Amounts& lambda, const Amounts& amounts) {
    double size = 0;
    charged_ = 0;
    const auto limits = static_cast<std::size_t>(items.limits);
    for (std::size_t k = 0; k < limits; ++k) {
      charged_ += lambda[k] * amounts[k];
      size = std::max(size, std::fabs(lambda[k] * amounts[k]));
    }
    for (std::size_t j = 0; j < w_.sieve_row.size(); ++j) {
      double weight = keyed_ ? -items.value[j] : 0;
      size = std::max(size, weight);
      for (std::size_t k = 0; k < limits; ++k) {
        const double part = lambda[k] * items.weight[k][j];
        weight += part;
        size = std::max(size, std::fabs(part));
      }
      w_.sieve_weight[w_.sieve_row[j]] = weight;
    }
    return size;
  }

  static constexpr double kMostCharge = 1e300;

  WithinScratch& w_;
  bool built_ = false, keyed_ = true;
  double charged_ = 0, others_ = 0, least_ = 0, noise_ = 0;
};

}  // namespace slotkern

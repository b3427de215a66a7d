// Which slots can be in a cheap window at all, where sums over the parts are limited: the
// relaxation over all slots of a search, as if they were live at once, gives one multiplier a
// limit. Under them a window with a slot costs no less than this slot and the n - 1 least of
// other nodes. O(slots * limits) once, then O(1) a slot.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/live_within.hpp"

namespace slotkern {

class WithinSieve {
 public:
  explicit WithinSieve(WithinScratch& work) : w_(work) {
    w_.sieve_row.clear(), w_.sieve_key.clear();
    for (auto& column : w_.sieve_use) column.clear();
  }

  void add(std::size_t row, double key, const std::array<double, kMostPartLimits>& uses,
           std::size_t limits) {
    w_.sieve_row.push_back(row), w_.sieve_key.push_back(key);
    for (std::size_t k = 0; k < limits; ++k) w_.sieve_use[k].push_back(uses[k]);
  }

  // False if there are not n nodes.
  bool build(const PreparedSlots& prepared, const PartLimits& limits, std::size_t n) {
    const std::size_t count = w_.sieve_row.size();
    if (count < n) return false;
    MultiItems items;
    Amounts amounts{};
    items.count = static_cast<int>(count);
    items.limits = static_cast<int>(limits.all.size());
    w_.sieve_value.resize(count);
    for (std::size_t j = 0; j < count; ++j) w_.sieve_value[j] = -w_.sieve_key[j];
    items.value = w_.sieve_value.data();
    for (std::size_t k = 0; k < limits.all.size(); ++k) {
      items.weight[k] = w_.sieve_use[k].data();
      amounts[k] = limits.all[k].at_least ? -limits.all[k].amount : limits.all[k].amount;
    }
    Amounts lambda{};
    if (w_.multipliers.solve(items, static_cast<int>(n), amounts)) lambda = w_.multipliers.lambda;
    double size = 0;
    charged_ = 0;
    for (std::size_t k = 0; k < limits.all.size(); ++k) {
      charged_ += lambda[k] * amounts[k];
      size = std::max(size, std::fabs(lambda[k] * amounts[k]));
    }
    std::vector<double>& least = w_.least_of;
    least.assign(prepared.nodes.size(), kInfinity);
    for (std::size_t j = 0; j < count; ++j) {
      double weight = w_.sieve_key[j];
      for (std::size_t k = 0; k < limits.all.size(); ++k) {
        const double charge = lambda[k] * w_.sieve_use[k][j];
        weight += charge;
        size = std::max(size, std::fabs(charge));
      }
      size = std::max(size, w_.sieve_key[j]);
      w_.sieve_value[j] = weight;
      double& of_node = least[static_cast<std::size_t>(prepared.slots[w_.sieve_row[j]].place)];
      of_node = std::min(of_node, weight);
    }
    const auto middle = least.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(least.begin(), middle, least.end());
    if (*middle == kInfinity) return false;
    others_ = 0;
    for (auto it = least.begin(); it != middle; ++it) others_ += *it;
    least_ = others_ + *middle - charged_;
    noise_ = 0x1p-48 * (static_cast<double>(n) + 16) * (static_cast<double>(n) + 4) * size;
    return true;
  }

  std::size_t size() const { return w_.sieve_row.size(); }
  std::size_t row(std::size_t j) const { return w_.sieve_row[j]; }

  // Whether no window with this slot, or none at all, has a sum of keys up to `most`.
  bool stops(std::size_t j, double most) const {
    return w_.sieve_value[j] + others_ - charged_ > most + noise_;
  }
  bool stops_all(double most) const { return least_ > most + noise_; }

 private:
  WithinScratch& w_;
  double charged_ = 0, others_ = 0, least_ = 0, noise_ = 0;
};

}  // namespace slotkern

// Preprocessing of the multiple-choice knapsack: validates the rows, removes infeasible and
// dominated ones, scales the values, and defines the exact sums that decide about an answer. O(m
// log m) for m rows; 40 bytes a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/base/status.hpp"

namespace slotkern {

// Input columns; rows first[k] to first[k + 1] - 1 are class k.
struct Classes {
  const double* value;
  const double* weight;
  const std::int64_t* first;
  std::size_t count;

  Fault check() const {
    const auto rows = static_cast<std::size_t>(first[count]);
    for (std::size_t i = 0; i < rows; ++i) {
      if (!std::isfinite(value[i])) return {Status::value_not_finite, i, 0};
      if (!std::isfinite(weight[i])) return {Status::cost_not_valid, i, 0};
    }
    return {};
  }
};

// The rows of all classes that an optimal answer may contain, in the form that the search uses.
struct ClassItems {
  struct Item {
    // `value` is scaled by a power of two and signed so that smaller is better
    double weight, value;
    std::int64_t row;
  };

  const Classes* classes = nullptr;
  // `limit`: largest sum that meets the caller's limit; `sign`: -1 to maximize
  double limit = 0, sign = 1;
  double least = 0;  // sum of the lightest rows: the smallest feasible limit
  std::vector<Item> items;
  std::vector<std::size_t> firsts;  // items firsts[k] to firsts[k + 1] - 1 are class k
  double capacity = 0;  // `limit`, clamped to the range of all sums
  double slack = 0;  // largest rounding error of a sum of weights
  double bound_noise = 0;  // largest rounding error of a bound, in scaled values
  double value_step = 0;  // smallest difference of two scaled sums if all sums are exact, else 0
  double weight_unit = 1, value_unit = 1;

  std::size_t count() const { return classes->count; }

  double weight_of(std::int64_t row) const { return classes->weight[row]; }

  // Validates values and weights, and computes the smallest feasible limit.
  Fault check() {
    if (const Fault fault = classes->check(); fault.status != Status::ok) return fault;
    lightest.resize(classes->count);
    for (std::size_t k = 0; k < classes->count; ++k) {
      const double* const begin = classes->weight + classes->first[k];
      lightest[k] = *std::min_element(begin, classes->weight + classes->first[k + 1]);
    }
    least = exact_sum(lightest.size(), [this](std::size_t k) { return lightest[k]; });
    return std::isfinite(least) ? Fault{} : Fault{Status::sum_overflows, 0, 0};
  }

  // Fills `items`: per class, the rows that fit with the lightest rows of the other classes and
  // that no row of the class dominates, by rising weight and falling value. Among equal rows the
  // first stays.
  void collect_undominated() {
    double size = std::fabs(limit);
    for (const double w : lightest) size += std::fabs(w);
    const double n = static_cast<double>(classes->count);
    const double spare = (limit - least) + (n + 4) * 0x1p-50 * size;
    items.clear();
    firsts.assign(1, 0);
    for (std::size_t k = 0; k < classes->count; ++k) {
      const std::size_t begin = items.size();
      for (std::int64_t row = classes->first[k]; row < classes->first[k + 1]; ++row)
        if (!(weight_of(row) - lightest[k] > spare))
          items.push_back({weight_of(row), sign * classes->value[row], row});
      const auto first = items.begin() + static_cast<std::ptrdiff_t>(begin);
      std::sort(first, items.end(), [](const Item& a, const Item& b) {
        if (a.weight != b.weight) return a.weight < b.weight;
        return a.value != b.value ? a.value < b.value : a.row < b.row;
      });
      std::size_t end = begin;
      for (std::size_t i = begin; i < items.size(); ++i)
        if (end == begin || items[i].value < items[end - 1].value) items[end++] = items[i];
      items.resize(end);
      firsts.push_back(end);
    }
  }

  // Scales values so that the largest is about 1; a power of two keeps products and quotients in
  // the range of doubles without rounding. Weights are not scaled, because small weights may decide
  // if large ones cancel. Returns false if a sum of the remaining rows could overflow.
  bool scale() {
    const double n = static_cast<double>(classes->count);
    double largest[2] = {0, 0}, sum[2] = {0, 0}, spread[2] = {0, 0};
    bool all_integer[2] = {true, true};
    for (std::size_t k = 0; k < classes->count; ++k) {
      double own[2] = {0, 0}, low[2] = {kInfinity, kInfinity}, high[2] = {-kInfinity, -kInfinity};
      for (std::size_t i = firsts[k]; i < firsts[k + 1]; ++i) {
        const double x[2] = {items[i].weight, items[i].value};
        for (int j = 0; j < 2; ++j) {
          own[j] = std::max(own[j], std::fabs(x[j]));
          low[j] = std::min(low[j], x[j]), high[j] = std::max(high[j], x[j]);
          all_integer[j] = all_integer[j] && x[j] == std::floor(x[j]);
        }
      }
      for (int j = 0; j < 2; ++j) {
        largest[j] = std::max(largest[j], own[j]);
        sum[j] += own[j], spread[j] = std::max(spread[j], high[j] - low[j]);
      }
    }
    if (!((n + 64) * std::max(largest[0], largest[1]) < 1e300)) return false;
    double unit[2];
    for (int j = 0; j < 2; ++j) {
      int exponent = 0;
      std::frexp(largest[j], &exponent);
      unit[j] = std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
    }
    for (Item& item : items) item.value *= unit[1];
    // A limit beyond every possible sum has the same effect as the largest sum.
    capacity = std::clamp(limit, -2 * sum[0] - 1, 2 * sum[0] + 1);
    const double rounding = (n + 2) * 0x1p-52;
    // Sums of integers, and differences within a class, are exact below 2^53.
    const auto exact = [&](int j) {
      return all_integer[j] && std::max(sum[j], spread[j]) < 0x1p53;
    };
    slack = exact(0) ? 0 : 2 * rounding * sum[0];
    if (exact(0)) capacity = std::floor(capacity);
    value_step = exact(1) ? unit[1] : 0;
    bound_noise = (value_step > 0 ? 4 : 1) * rounding * (sum[1] * unit[1]);
    weight_unit = unit[0], value_unit = unit[1];
    return true;
  }

  // --- exact sums, which decide about an answer

  double sum_weights(const std::vector<std::uint32_t>& chosen) const {
    return exact_sum(chosen.size(),
                     [&](std::size_t k) { return weight_of(items[chosen[k]].row); });
  }
  bool fits(const std::vector<std::uint32_t>& chosen) const {
    return sum_weights(chosen) <= limit;
  }
  double sum_values(const std::vector<std::uint32_t>& chosen) const {
    double sum = 0;
    for (const std::uint32_t i : chosen) sum += items[i].value;
    return sum;
  }

 private:
  std::vector<double> lightest;
};

}  // namespace slotkern

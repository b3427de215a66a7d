// The rows of a multiple-choice knapsack: checked, those left out that no answer can hold,
// scaled, and the sums that count. O(m log m); 40 bytes a row.
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

// Rows first[k] to first[k + 1] are class k.
struct Classes {
  const double* value;
  const double* weight;
  const std::int64_t* first;
  std::size_t count;
};

// The rows of all classes that an answer may hold.
struct ClassItems {
  struct Item {
    double weight, value;  // the value scaled by a power of two, so that less is better
    std::int64_t row;
  };

  const Classes* classes = nullptr;
  double limit = 0, sign = 1;  // the largest sum that meets the limit
  double least = 0;  // the least limit that would do
  std::vector<Item> items;
  std::vector<std::size_t> firsts;  // items firsts[k] to firsts[k + 1] are of class k
  double capacity = 0;                  // the limit, no larger than any sum
  double slack = 0;                 // largest rounding error of a sum of weights
  double bound_noise = 0;                 // largest rounding error of a bound, in scaled values
  double value_step = 0;                  // least difference of two scaled sums if all are exact, or 0
  double weight_unit = 1, value_unit = 1;

  std::size_t count() const { return classes->count; }

  double weight_of(std::int64_t row) const { return classes->weight[row]; }

  Fault check() {
    const auto count = static_cast<std::size_t>(classes->first[classes->count]);
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isfinite(classes->value[i])) return {Status::value_not_finite, i, 0};
      if (!std::isfinite(classes->weight[i])) return {Status::cost_not_valid, i, 0};
    }
    lightest.resize(classes->count);
    for (std::size_t k = 0; k < classes->count; ++k) {
      const double* const begin = classes->weight + classes->first[k];
      lightest[k] = *std::min_element(begin, classes->weight + classes->first[k + 1]);
    }
    least = exact_sum(lightest.size(), [this](std::size_t k) { return lightest[k]; });
    return std::isfinite(least) ? Fault{} : Fault{Status::sum_overflows, 0, 0};
  }

  // items: rows by class that fit beside the lightest others and are not dominated, by rising
  // weight and falling value. Of equal rows the first.
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

  // The largest sizes count as about 1, exactly, so that no product or quotient leaves the
  // doubles. Weights keep their bits: tiny ones may decide beside large ones that cancel. False
  // where sums of what is left could overflow.
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
    // |limit| beyond every sum decides nothing more than the largest sum does.
    capacity = std::clamp(limit, -2 * sum[0] - 1, 2 * sum[0] + 1);
    const double rounding = (n + 2) * 0x1p-52;
    // Sums of all_integer numbers, and differences within a class, are exact below 2^53.
    const auto exact = [&](int j) { return all_integer[j] && std::max(sum[j], spread[j]) < 0x1p53; };
    slack = exact(0) ? 0 : 2 * rounding * sum[0];
    if (exact(0)) capacity = std::floor(capacity);
    value_step = exact(1) ? unit[1] : 0;
    bound_noise = (value_step > 0 ? 4 : 1) * rounding * (sum[1] * unit[1]);
    weight_unit = unit[0], value_unit = unit[1];
    return true;
  }

  // --- sums that count

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

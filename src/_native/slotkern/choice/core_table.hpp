// The dynamic programming table over the core of a knapsack: applicability, cost and result.
//
// Integer costs only. All sets have the same number of items, so the smallest cost is subtracted
// from every cost, and the differences are divided by their greatest common divisor: most tables
// become much narrower.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "slotkern/choice/core.hpp"
#include "slotkern/choice/knapsack_table.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

class CoreTable {
 public:
  KnapsackTable table;  // the caller may use it between calls

  // Returns the units of work of the table over the core with this integer capacity, or -1 if it is
  // not applicable: costs that are not integers, too little capacity, or too much memory.
  std::int64_t prepare(const Core& core, double capacity, double memory) {
    double min_cost = kInfinity, total = 0;
    for (const double c : core.cost) {
      if (c != std::floor(c)) return -1;
      min_cost = std::min(min_cost, c);
    }
    costs_.clear();
    std::int64_t divisor = 0;
    for (const double c : core.cost) {
      costs_.push_back(static_cast<std::int64_t>(c - min_cost));
      if (divisor != 1) divisor = std::gcd(divisor, costs_.back());
      total += c - min_cost;
    }
    if (divisor > 1)
      for (std::int64_t& c : costs_) c /= divisor;
    divisor = std::max<std::int64_t>(divisor, 1);
    const double spare = capacity - core.pick * min_cost;
    if (!(total < kMaxIntegerSum) || spare < 0) return -1;
    width_ = std::floor(std::min(spare, total) / static_cast<double>(divisor)) + 1;
    const double size = static_cast<double>(core.size());
    if (!KnapsackTable::fits(size, core.pick, width_, memory)) return -1;
    return static_cast<std::int64_t>(KnapsackTable::cells(size, core.pick, width_) /
                                     KnapsackTable::kCellsPerUnit);
  }

  // Returns the largest value that the core can add; call prepare() first.
  double run(const Core& core) {
    const std::size_t pick = static_cast<std::size_t>(core.pick);
    const std::size_t width = static_cast<std::size_t>(width_);
    table.run(costs_.data(), core.value.data(), core.size(), pick, width, false);
    return table.best(pick, width - 1);
  }

  // Returns the core positions of the set that run() found.
  const std::vector<int>& trace(const Core& core) {
    positions_.clear();
    table.trace(static_cast<std::size_t>(core.pick), static_cast<std::size_t>(width_) - 1,
                positions_);
    return positions_;
  }

 private:
  std::vector<std::int64_t> costs_;
  std::vector<int> positions_;
  double width_ = 0;
};

}  // namespace slotkern

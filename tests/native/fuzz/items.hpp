// Items for fuzz tests of choices, generated from the fuzzer's bytes, and exhaustive search over
// them.
#pragma once

#include "instance.hpp"

namespace fuzz {

struct Basket {
  std::vector<double> cost, value;
  double budget = 0;
  int n = 1;
};

inline double any_number(Bytes& bytes, std::size_t kind) {
  static const double odd[] = {0, 5e-324, 1e-308, 0x1p-52, 0.1, 1 / 3.0, 1, 1e9, 0x1p52, 0x1p53,
                               1e16, 1e100, 1e200, 1e290};
  const double small = bytes.next();
  switch (kind) {
    case 0: return std::floor(small / 32);
    case 1: return small / 10;
    case 2: return (small + bytes.next() / 256.0) / 3;
    case 3: return 1000 + small;
    case 4: return 1 + small * 0x1p-52;
    case 5: return bytes.pick(odd);
    default: return std::ldexp(1 + small / 256, static_cast<int>(bytes.below(60)) - 30);
  }
}

inline std::vector<std::size_t> cost_order(const Basket& items) {
  std::vector<std::size_t> rows(items.cost.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return items.cost[a] < items.cost[b] || (items.cost[a] == items.cost[b] && a < b);
  });
  return rows;
}

inline double cost_in_order(const Basket& items, std::uint32_t set, double* value = nullptr) {
  double total = 0;
  std::vector<double> costs;
  for (const std::size_t i : cost_order(items))
    if (set >> i & 1) costs.push_back(items.cost[i]), total += items.value[i];
  if (value) *value = total;
  return rounded_sum(costs, [](double cost) { return cost; });
}

// Calls visit(count, cost, value) for every set of items: the exact cost, rounded once, and the sum
// of the values in cost order.
template <class Visit>
void each_set(const Basket& items, Visit visit) {
  struct Sums {
    std::size_t count = 0;
    std::vector<double> costs;
    double value = 0;
  };
  std::vector<Sums> all(1);  // sets of the items before; the next item is appended to each
  for (const std::size_t i : cost_order(items))
    for (std::size_t k = 0, before = all.size(); k < before; ++k) {
      all.push_back({all[k].count + 1, all[k].costs, all[k].value + items.value[i]});
      all.back().costs.push_back(items.cost[i]);
      visit(all.back().count, rounded_sum(all.back().costs, [](double cost) { return cost; }),
            all.back().value);
    }
}

// Generates values equal to costs, near them, or opposed to them; single huge items; budgets met or
// missed by one bit.
inline Basket make_items(Bytes& bytes, std::size_t most) {
  Basket items;
  const std::size_t m = 1 + bytes.below(most), costs = bytes.below(7), values = bytes.below(12);
  for (std::size_t i = 0; i < m; ++i) {
    const double c = any_number(bytes, costs);
    items.cost.push_back(c);
    switch (values) {
      case 7: items.value.push_back(c); break;
      case 8: items.value.push_back(c + 1); break;
      case 9: items.value.push_back(-c); break;
      case 10: items.value.push_back(c + static_cast<double>(bytes.below(3)) / 4); break;
      case 11: items.value.push_back(any_number(bytes, 0) - 4); break;
      default: items.value.push_back(any_number(bytes, values));
    }
  }
  if (bytes.one_in(6)) items.cost[bytes.below(m)] = any_number(bytes, 5);
  if (bytes.one_in(6)) items.value[bytes.below(m)] = any_number(bytes, 5);
  items.n = static_cast<int>(1 + bytes.below(m + 1));
  std::uint32_t set = 0;
  for (int k = 0; k < items.n; ++k) set |= 1u << bytes.below(m);
  items.budget = cost_in_order(items, set);
  const std::size_t off = bytes.below(10);
  if (off == 5) items.budget = std::max(0.0, next_down(items.budget));
  if (off == 6) items.budget *= 1 - 0x1p-49;  // by more than the rounding of decimals
  if (off == 7) items.budget *= 0.5;
  if (off == 8) items.budget = kInfinity;
  if (off == 9) items.budget = bytes.below(2) ? 0 : 5e-324;
  return items;
}

inline void print(const Basket& items) {
  std::fprintf(stderr, "n %d, budget %.17g\n", items.n, items.budget);
  for (std::size_t i = 0; i < items.cost.size(); ++i)
    std::fprintf(stderr, "  %zu: cost %.17g, value %.17g\n", i, items.cost[i], items.value[i]);
}

}  // namespace fuzz

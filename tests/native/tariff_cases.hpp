// Random instances under tariffs, and the comparison of TariffSearch with the plain definition.
//
// Dyadic instances use exact arithmetic: windows must be equal. Instances of any doubles are
// compared by value. If every double is a tick, the start must fit and the double before it must
// not.
#pragma once

#include <cstdio>
#include <memory>
#include <vector>

#include "random_draws.hpp"
#include "slotkern/tariff/search.hpp"
#include "tariff_oracle.hpp"

namespace tariffs {

using namespace slotkern;

struct Case {
  bool dyadic = true;
  std::vector<PlainTariff> tariffs;
  std::vector<PlainSlot> slots;  // by (start, node)
  Query query;
  std::vector<std::uint8_t> mask;
  double tick = 0;
  bool tiny = true;
};

inline PlainTariff make_tariff(Random& random, bool dyadic, double origin, double horizon,
                               std::size_t most) {
  static constexpr double few[] = {0, 0.25, 0.5, 1, 1, 2, 3};
  PlainTariff tariff;
  const auto factor = [&] {
    return dyadic ? random.pick(few) : random.one_in(8) ? 0.0 : random.real();
  };
  tariff.factors.push_back(factor());
  const std::size_t count = random.below(most + 1);
  const bool periodic = random.one_in(3);
  const double period =
      dyadic ? 0.5 * static_cast<double>(1 + random.below(8)) : 0.1 + 3 * random.real();
  double t = origin + (dyadic ? 0.5 * static_cast<double>(random.below(8)) : random.real()) - 1;
  for (std::size_t k = 0; k < count && t < origin + 1.2 * horizon; ++k) {
    tariff.breakpoints.push_back(t);
    tariff.factors.push_back(periodic ? (k % 2 ? 0.5 : 2) : factor());
    const double step = periodic ? period
                        : dyadic ? 0.5 * static_cast<double>(1 + random.below(6))
                                 : 0.01 + 4 * random.real();
    t += step;
  }
  return tariff;
}

inline Case make_case(Random& random, bool dyadic, std::size_t most_nodes, std::size_t most_slots,
                      std::size_t most_breakpoints) {
  static constexpr double origins[] = {0, 0, -7, 1.7e9};
  static constexpr double performances[] = {1, 2, 3, 4, 6};
  static constexpr double prices[] = {0, 0.5, 1, 1, 2, 3};
  Case c;
  c.dyadic = dyadic;
  const double origin = random.pick(origins);
  const double horizon = 8 + static_cast<double>(random.below(40));
  const std::size_t count = random.one_in(4) ? 0 : 1 + random.below(random.one_in(8) ? 100 : 3);
  for (std::size_t k = 0; k < count; ++k)
    c.tariffs.push_back(make_tariff(random, dyadic, origin, horizon, most_breakpoints));
  const std::size_t nodes = 1 + random.below(most_nodes);
  const bool equal = random.one_in(4);
  for (std::size_t k = 0; k < nodes; ++k) {
    const auto id = static_cast<std::int32_t>(random.one_in(10) ? 1000 + k : k);
    const double performance = equal    ? 2
                               : dyadic ? random.pick(performances)
                                        : 0.3 + 4 * random.real();
    const int tariff = c.tariffs.empty() || random.one_in(6)
                           ? -1
                           : static_cast<int>(random.below(c.tariffs.size()));
    double t = origin + (random.one_in(2) ? 0
                         : dyadic         ? 0.25 * static_cast<double>(random.below(40))
                                          : 9 * random.real());
    const std::size_t slots = 1 + random.below(most_slots);
    for (std::size_t j = 0; j < slots; ++j) {
      const double length = dyadic ? 0.5 * static_cast<double>(1 + random.below(30))
                                   : 0.1 + 14 * random.real();
      double end = t + length;
      if (j + 1 == slots && random.one_in(8)) end = kInfinity;
      const double price = equal && !random.one_in(5) ? 1
                           : dyadic                   ? random.pick(prices)
                           : random.one_in(12)        ? 0
                                                      : random.real();
      c.slots.push_back({id, t, end, performance, price, tariff, true});
      t = end + (random.one_in(3) ? 0 : dyadic ? 0.25 * static_cast<double>(random.below(16))
                                               : 3 * random.real());
    }
  }
  std::sort(c.slots.begin(), c.slots.end(), [](const PlainSlot& a, const PlainSlot& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  Query& q = c.query;
  q.n = static_cast<std::int64_t>(1 + random.below(std::min<std::size_t>(nodes, 4)));
  if (random.one_in(20)) q.n = static_cast<std::int64_t>(nodes);
  q.volume = dyadic ? 3 * static_cast<double>(1 + random.below(8)) : 0.2 + 20 * random.real();
  if (dyadic && random.one_in(2)) q.volume = 12;
  const auto time = [&] {
    return origin + (dyadic ? 0.25 * static_cast<double>(random.below(120)) : 30 * random.real());
  };
  if (random.one_in(4)) q.earliest = time();
  if (random.one_in(4)) q.latest = time();
  if (random.one_in(4)) q.deadline = time() + 4;
  const auto half_steps = [&](std::size_t least, std::size_t most) {
    return dyadic ? 0.5 * static_cast<double>(least + random.below(most)) : random.real();
  };
  if (random.one_in(4)) q.setup = half_steps(0, 4);
  if (random.one_in(4)) q.step = half_steps(1, 6);
  if (random.one_in(5)) q.min_performance = random.pick(performances);
  if (random.one_in(8)) q.max_price = 1;
  if (random.one_in(8))
    q.max_runtime = dyadic ? static_cast<double>(2 + random.below(8)) : 8 * random.real();
  // A slot just long enough.
  if (random.one_in(4)) {
    PlainSlot& s = c.slots[random.below(c.slots.size())];
    const double end = s.start + q.length(s.performance);
    if (end < s.end && end > s.start) s.end = end;
  }
  if (random.one_in(6))
    for (PlainSlot& s : c.slots) {
      s.admitted = !random.one_in(4);
      c.mask.push_back(s.admitted);
    }
  static constexpr double ticks[] = {0, 0, 0.25, 0.125, 1, 2};
  c.tick = random.pick(ticks);
  c.tiny = c.slots.size() <= 8;
  return c;
}

struct Prepared {
  struct Row {
    std::int32_t node;
    double start, end, performance, price;
  };
  std::vector<Row> rows;
  PreparedSlots slots;
  NodeTariffs tariffs;
  TariffIndex index;
  std::unique_ptr<TariffSearch> search;

  explicit Prepared(const Case& c, std::size_t cells = 0) {
    for (const PlainSlot& s : c.slots)
      rows.push_back({s.node, s.start, s.end, s.performance, s.price});
    SlotView view;
    view.base = reinterpret_cast<const char*>(rows.data());
    view.stride = sizeof(Row), view.size = rows.size();
    view.node = offsetof(Row, node), view.start = offsetof(Row, start);
    view.end = offsetof(Row, end), view.performance = offsetof(Row, performance);
    view.price = offsetof(Row, price);
    CheckScratch scratch;
    valid = slots.build(view, true, ShapeKind::ragged, 1, scratch).status == Status::ok;
    std::vector<std::int32_t> tariff_of;
    for (const Node& node : slots.nodes)
      for (const PlainSlot& s : c.slots)
        if (s.node == node.id) {
          tariff_of.push_back(s.tariff);
          break;
        }
    std::vector<Tariff> all(c.tariffs.size());
    for (std::size_t k = 0; k < all.size(); ++k)
      valid = valid && all[k].set(c.tariffs[k].breakpoints, c.tariffs[k].factors) == Status::ok;
    const Ticks ticks{c.tick > 0 ? 1 / c.tick : 0};
    valid = valid && tariffs.set(all, tariff_of, ticks) == Status::ok;
    if (!valid) return;
    index.build(slots, tariffs, cells);
    search = std::make_unique<TariffSearch>(index);
  }
  Status find(const Query& query, int criterion, ShapeKind shape, Found& found) {
    return search->find(slots, query, criterion, shape, found);
  }
  bool valid = false;
};

struct Counts {
  std::uint64_t searches = 0, found = 0, between = 0;
};

// Compares all criteria of one shape; returns a fault, or null.
inline const char* compare(const Case& c, const Query& query, Prepared& prepared, bool square,
                           Counts& counts, int& criterion) {
  // Without ticks, starts between turns are compared by their certificate; a fine raster shows
  // that no earlier one fits.
  Oracle oracle(c.slots, c.tariffs, query, square, c.tick);
  oracle.run(c.tiny && c.dyadic);
  Query asked = query;
  if (!c.mask.empty()) asked.mask = c.mask.data();
  const ShapeKind shape = square ? ShapeKind::square : ShapeKind::ragged;
  const bool exact = c.dyadic;
  for (criterion = 0; criterion < 5; ++criterion) {
    Found found;
    const Status status = prepared.find(asked, criterion, shape, found);
    if (status == Status::volume_too_small) return nullptr;
    ++counts.searches;
    const PlainWindow& best = oracle.best(criterion);
    if ((status == Status::ok) != best.found) return best.found ? "missed" : "invented";
    if (!best.found) continue;
    ++counts.found;
    const auto value = [criterion](double start, double runtime, double cost) {
      if (criterion < 2) return start;
      return criterion == 2 ? start + runtime : criterion == 3 ? runtime : cost;
    };
    const double ours = found.value, theirs = value(best.start, best.runtime, best.total);
    if (ours != value(found.start, found.runtime, found.cost)) return "value";
    std::vector<double> costs;
    for (const Part& part : prepared.search->parts()) costs.push_back(part.cost);
    if (found.cost != exact_sum(costs.size(), [&](std::size_t k) { return costs[k]; }))
      return "total";
    if (!(found.cost <= query.max_cost())) return "over the budget";
    if (criterion == 4 || c.tick > 0) {
      const bool near = std::fabs(ours - theirs) <= 1e-12 * std::max(std::fabs(ours), 1e-3);
      if (exact ? ours != theirs : !near && cost_key(ours) != cost_key(theirs))
        return "not the best value";
      if (!exact) continue;
      if (found.start != best.start || found.cost != best.total || found.runtime != best.runtime)
        return "start, cost or runtime";
      std::vector<std::int32_t> nodes;
      for (const Part& part : prepared.search->parts()) nodes.push_back(part.node);
      if (nodes != best.nodes) return "nodes";
      continue;
    }
    if (criterion == 3 ? ours != theirs : ours > theirs) return "worse than a turn";
    double most = square || criterion == 2 || criterion == 3 ? found.runtime : kInfinity;
    if (!square && std::isinf(most)) most = oracle.lengths().back();
    if (!oracle.fits(found.start, most)) return "does not fit";
    if (found.start != best.start) ++counts.between;
    if (oracle.fits(std::nextafter(found.start, -kInfinity), most)) return "an earlier double fits";
    if (exact && criterion != 3) {
      Oracle fine(c.slots, c.tariffs, query, square, 0.125);
      fine.run(false);
      const PlainWindow& raster = fine.best(criterion);
      if (raster.found && value(raster.start, raster.runtime, 0) < ours)
        return "an earlier tick fits";
    }
  }
  return nullptr;
}

inline void print(const Case& c, const Query& q) {
  for (std::size_t k = 0; k < c.tariffs.size(); ++k) {
    std::fprintf(stderr, "tariff %zu:", k);
    for (std::size_t i = 0; i < c.tariffs[k].factors.size(); ++i) {
      if (i > 0) std::fprintf(stderr, " [%.17g]", c.tariffs[k].breakpoints[i - 1]);
      std::fprintf(stderr, " %.17g", c.tariffs[k].factors[i]);
    }
    std::fprintf(stderr, "\n");
  }
  for (const PlainSlot& s : c.slots)
    std::fprintf(stderr, "node %d [%.17g, %.17g) performance %.17g price %.17g tariff %d%s\n",
                 s.node, s.start, s.end, s.performance, s.price, s.tariff,
                 s.admitted ? "" : " (masked)");
  std::fprintf(stderr,
               "n %lld volume %.17g budget %.17g earliest %.17g latest %.17g deadline %.17g setup "
               "%.17g step %.17g performance %.17g max_price %.17g max_runtime %.17g tick %.17g\n",
               static_cast<long long>(q.n), q.volume, q.budget, q.earliest, q.latest, q.deadline,
               q.setup, q.step, q.min_performance, q.max_price, q.max_runtime, c.tick);
}

// Runs all searches of a case, for several budgets; returns false and prints the case on a fault.
inline bool run_case(Random& random, const Case& c, Counts& counts, std::size_t cells) {
  Prepared prepared(c, cells);
  if (!prepared.valid) return true;
  for (const bool square : {false, true}) {
    Oracle free(c.slots, c.tariffs, c.query, square, 0);
    free.run(false);
    const double least = free.best(4).found ? free.best(4).total : 1;
    const double start = free.best(1).found ? free.best(1).total : 2;
    const double share = 0.125 * static_cast<double>(random.below(9));
    const double budgets[] = {kInfinity, least, least * (1 - 0x1p-48),
                              least + (start - least) * share};
    for (const double budget : budgets) {
      Query query = c.query;
      query.budget = budget;
      int criterion = 0;
      const char* fault = compare(c, query, prepared, square, counts, criterion);
      if (!fault) continue;
      std::fprintf(stderr, "%s: criterion %d, %s\n", fault, criterion,
                   square ? "square" : "ragged");
      print(c, query);
      return false;
    }
  }
  return true;
}

}  // namespace tariffs

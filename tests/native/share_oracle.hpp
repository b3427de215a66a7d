// The plain definition of shared hosts, for tests: a list of free amounts for each unit of time,
// and all sets of hosts at all starts. Units are half a unit of time. Independent of
// slotkern/shares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/slots/request.hpp"

namespace shares {

using slotkern::kInfinity;
using slotkern::Query;
using Amounts = std::vector<std::int32_t>;

struct PlainHost {
  double performance = 1;
  std::vector<Amounts> free;       // [unit]
  std::vector<int> reasons_to_be_off;  // [unit]: outside of its time, and closed
};

struct PlainWindow {
  bool exists = false;
  double start = 0, finish = 0, runtime = 0, cost = 0;
};

enum Goal { kFirst, kStart, kFinish, kRuntime, kCost };  // the built-in criteria, by number

struct PlainHosts {
  static constexpr int kUnits = 64;
  std::vector<PlainHost> hosts;
  double now = -kInfinity;

  void add(std::size_t host, double start, double end, const Amounts& amounts, int sign) {
    for (int u = unit(start); u < unit(end); ++u)
      for (std::size_t d = 0; d < amounts.size(); ++d) hosts[host].free[u][d] += sign * amounts[d];
  }
  void set_off(std::size_t host, double start, double end, int more) {
    for (int u = unit(start); u < unit(end); ++u) hosts[host].reasons_to_be_off[u] += more;
  }
  bool holds(std::size_t host, double start, double end, const Amounts& demand, int times) const {
    if (start < 0 || unit(end) > kUnits) return false;
    for (int u = unit(start); u < unit(end); ++u) {
      if (hosts[host].reasons_to_be_off[u] > 0) return false;
      for (std::size_t d = 0; d < demand.size(); ++d)
        if (hosts[host].free[u][d] < demand[d] * times) return false;
    }
    return true;
  }

  // Returns the window of the least value, of these the first, of these the cheapest.
  PlainWindow find(const Query& query, const Amounts& demand, int stack,
                   const std::vector<double>& prices, int goal, bool square) const {
    PlainWindow best;
    std::vector<int> counts(hosts.size(), 0);
    for (int u = 0; u < kUnits; ++u) {
      const double t = 0.5 * u;
      if (t < now || t < query.earliest || t > query.latest) continue;
      if (goal == kStart && best.exists) break;
      visit_sets(0, static_cast<int>(query.n), stack, counts, [&] {
        PlainWindow window = evaluate(t, query, demand, prices, counts, square);
        if (window.exists && (!best.exists || is_better(window, best, goal))) best = window;
      });
    }
    return best;
  }

 private:
  static int unit(double t) {
    return static_cast<int>(2 * std::clamp(t, 0.0, 0.5 * (kUnits + 1)));
  }

  template <class Visit>
  void visit_sets(std::size_t host, int left, int stack, std::vector<int>& counts,
                  Visit visit) const {
    if (left == 0) return visit();
    if (host == hosts.size()) return;
    for (int count = 0; count <= std::min(left, stack); ++count) {
      counts[host] = count;
      visit_sets(host + 1, left - count, stack, counts, visit);
    }
    counts[host] = 0;
  }

  PlainWindow evaluate(double t, const Query& query, const Amounts& demand,
                       const std::vector<double>& prices, const std::vector<int>& counts,
                       bool square) const {
    PlainWindow window;
    double longest = 0;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      if (counts[h] == 0) continue;
      if (query.mask && !query.mask[h]) return window;
      if (hosts[h].performance < query.min_performance || prices[h] > query.max_price)
        return window;
      longest = std::max(longest, query.length(hosts[h].performance));
    }
    double cost = 0;  // sums of halves and quarters are exact
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      if (counts[h] == 0) continue;
      const double length = square ? longest : query.length(hosts[h].performance);
      if (!(t + length <= query.deadline) || !(length <= query.max_runtime) ||
          !holds(h, t, t + length, demand, counts[h]))
        return window;
      cost += counts[h] * prices[h] * length;
    }
    if (cost > query.budget) return window;
    return {true, t, t + longest, longest, cost};
  }

  static bool is_better(const PlainWindow& a, const PlainWindow& b, int goal) {
    const auto value = [goal](const PlainWindow& w) {
      return goal == kStart ? w.start : goal == kFinish ? w.finish
                          : goal == kRuntime ? w.runtime : w.cost;
    };
    if (value(a) != value(b)) return value(a) < value(b);
    if (a.start != b.start) return a.start < b.start;
    return a.cost < b.cost;
  }
};

}  // namespace shares

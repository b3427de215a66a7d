// Chooses the cheapest groups and hosts of a tree at one start, and builds their window.
//
// Input: the parts that each host can take, and which groups have a window at the start. Output: in
// each group the cheapest of its groups or hosts, of equal cost those that come first in the tree.
// Exact because choices in disjoint groups are independent: the least cost of a group is the sum of
// the least costs of its cheapest groups. Cost: O(groups and hosts, sorted by cost if prices differ).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/shares/share_request.hpp"
#include "slotkern/shares/tree_request.hpp"

namespace slotkern {

// Memory of the choices, which only grows.
struct TreeScratch {
  std::vector<Amount> parts;  // [host]: that start at the time
  std::vector<Amount> chosen;  // [host]
  std::vector<std::vector<double>> bounds;  // [level][group]: lower bound on the start of a window
  std::vector<std::vector<double>> costs;   // [level][group]
  std::vector<std::vector<std::uint32_t>> picked;  // [level]: groups taken of one group
  std::vector<double> prices;  // of the parts or groups of one group
  std::vector<std::pair<double, std::uint32_t>> order;
};

class TreeChoice {
 public:
  // `length`: of all parts. `scratch`: with `parts` and `bounds`, which searches write.
  TreeChoice(const HostTree& tree, const ShareHosts& hosts, const TreeRequest& request,
             TreeScratch& scratch, double length, bool are_prices_equal)
      : tree_(tree), hosts_(hosts), request_(request), query_(*request.query), scratch_(scratch),
        length_(length), are_prices_equal_(are_prices_equal) {}

  // Builds the cheapest window at t; returns false if it exceeds the budget.
  bool choose(double t, Workspace& work, Found& found) {
    scratch_.chosen.assign(hosts_.ids.size(), 0);
    if (!are_prices_equal_ || takes_all()) set_costs(t);
    choose_groups(0, 0, static_cast<std::uint32_t>(groups_of(0)), t);
    fill(t, work.parts, found);
    return found.cost <= query_.max_cost();
  }

 private:
  std::size_t levels() const { return tree_.first.size(); }
  std::size_t groups_of(std::size_t level) const { return tree_.first[level].size() - 1; }
  bool takes_all() const { return request_.parts == 0; }

  // Sets the least cost of each group in which a window at t has parts, for one time unit.
  void set_costs(double t) {
    for (std::size_t level = levels(); level-- > 0;) {
      scratch_.costs[level].resize(groups_of(level));
      for (std::uint32_t g = 0; g < groups_of(level); ++g) {
        if (scratch_.bounds[level][g] > t) continue;
        const std::uint32_t begin = tree_.first[level][g], end = tree_.first[level][g + 1];
        std::vector<double>& values = scratch_.prices;
        values.clear();
        if (level + 1 == levels()) {
          each_part(begin, end, [&](std::uint32_t host, Amount count) {
            values.insert(values.end(), static_cast<std::size_t>(count), request_.prices[host]);
          });
        } else {
          order_groups(level + 1, begin, end, t);
          for (const auto& [cost, group] : scratch_.order) values.push_back(cost);
        }
        scratch_.costs[level][g] =
            exact_sum(values.size(), [&](std::size_t i) { return values[i]; });
      }
    }
  }
  // Sets `order` to the cheapest groups of a level that are taken of [begin, end).
  void order_groups(std::size_t level, std::uint32_t begin, std::uint32_t end, double t) {
    const bool by_cost = !are_prices_equal_ || takes_all();
    scratch_.order.clear();
    for (std::uint32_t g = begin; g < end; ++g)
      if (scratch_.bounds[level][g] <= t)
        scratch_.order.emplace_back(by_cost ? scratch_.costs[level][g] : 0, g);
    if (by_cost) std::sort(scratch_.order.begin(), scratch_.order.end());
    scratch_.order.resize(static_cast<std::size_t>(request_.counts[level]));
  }
  // Calls visit(host, number of parts) for the cheapest parts of an innermost group.
  template <class Visit>
  void each_part(std::uint32_t begin, std::uint32_t end, Visit visit) {
    scratch_.order.clear();
    for (std::uint32_t i = begin; i < end; ++i)
      if (const std::uint32_t host = tree_.hosts[i]; scratch_.parts[host] > 0)
        scratch_.order.emplace_back(request_.prices[host], i);
    if (!are_prices_equal_) std::sort(scratch_.order.begin(), scratch_.order.end());
    Amount left = takes_all() ? std::numeric_limits<Amount>::max() : request_.parts;
    for (const auto& [price, place] : scratch_.order) {
      const std::uint32_t host = tree_.hosts[place];
      const Amount count = std::min(left, scratch_.parts[host]);
      if (count == 0) break;
      visit(host, count);
      left -= count;
    }
  }
  void choose_groups(std::size_t level, std::uint32_t begin, std::uint32_t end, double t) {
    order_groups(level, begin, end, t);
    std::vector<std::uint32_t>& picked = scratch_.picked[level];
    picked.clear();
    for (const auto& [cost, group] : scratch_.order) picked.push_back(group);
    for (const std::uint32_t group : picked) {
      const std::uint32_t inner = tree_.first[level][group], last = tree_.first[level][group + 1];
      if (level + 1 < levels())
        choose_groups(level + 1, inner, last, t);
      else
        each_part(inner, last,
                  [&](std::uint32_t host, Amount count) { scratch_.chosen[host] = count; });
    }
  }
  // Writes the chosen parts: totals as in detail::build_window().
  void fill(double t, std::vector<Part>& parts, Found& found) const {
    parts.clear();
    for (std::size_t h = 0; h < hosts_.ids.size(); ++h)
      for (Amount k = 0; k < scratch_.chosen[h]; ++k)
        parts.push_back({h, hosts_.ids[h], length_, request_.prices[h]});
    found.start = found.value = t;
    found.runtime = length_;
    found.processor_time = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) found.processor_time += length_;
    found.cost =
        length_ * exact_sum(parts.size(), [&](std::size_t i) { return parts[i].cost; });
    for (Part& part : parts) part.cost *= length_;
  }

  const HostTree& tree_;
  const ShareHosts& hosts_;
  const TreeRequest& request_;
  const Query& query_;
  TreeScratch& scratch_;
  const double length_;
  const bool are_prices_equal_;  // of all hosts
};

}  // namespace slotkern

// Finds the best window by a built-in criterion, without sum limits.
//
// A sweep finds the best (value, start); then the tie rule (lowest cost, then the lexicographically
// smallest node ids) selects the canonical window at that start from all slots live there. If no
// other slot can belong to it, the window is the set that the sweep kept.
//
// Ragged: one sweep. Square (Toporkov et al. 2018, section 3.2): one sweep per performance group,
// for groups that can still win. The lower bound of a group is T_k times the sum of its n cheapest
// node prices, one of them of performance P_k. Relaxed windows (without a P_k slot) never decide:
// in their own, faster group the same nodes cost no more, and its n cheapest are at least as good,
// also if rounding makes costs equal.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "slotkern/base/merge_sort.hpp"
#include "slotkern/window/criteria.hpp"
#include "slotkern/window/tie_rule.hpp"

namespace slotkern {

namespace detail {

// Builds the window from the n entries in `chosen` (in cost order): totals, and parts by node id.
template <class Shape>
void build_window(const PreparedSlots& prepared, const Shape& shape,
                  const std::vector<Entry>& chosen, std::size_t n, double start, Found& found,
                  std::vector<Part>& parts, NodeOrder& order) {
  const bool is_small = n <= kMaxInsertionSorted;
  parts.resize(n);
  if (!is_small && order.parts.size() < n) order.parts.resize(n);
  Part* const to = is_small ? parts.data() : order.parts.data();
  std::int32_t nodes[kMaxInsertionSorted];
  for (std::size_t i = 0; is_small && i < n; ++i) nodes[i] = prepared.slots[chosen[i].row].node;
  double time = 0;
  found.start = start;
  found.runtime = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Slot& s = prepared.slots[chosen[i].row];
    const double length = shape.length(s);
    time += length;
    found.runtime = std::max(found.runtime, length);
    std::size_t at = is_small ? 0 : i;
    for (std::size_t j = 0; is_small && j < n; ++j) at += nodes[j] < s.node;
    to[at] = {prepared.origin(chosen[i].row), s.node, length, shape.total(chosen[i].key),
              static_cast<std::uint32_t>(chosen[i].row)};
  }
  found.cost = shape.total(exact_sum(n, [&](std::size_t i) { return chosen[i].key; }));
  found.processor_time = time;
  if (is_small) return;
  Part* next = parts.data();
  if (order.by_node.each(
          n, [to](std::size_t i) { return static_cast<std::size_t>(to[i].node); },
          [&](std::size_t i) { *next++ = to[i]; }))
    return;
  merge_sort(to, n, parts.data(), [](const Part& a, const Part& b) { return a.node < b.node; });
  std::copy(to, to + n, parts.data());
}

template <class Criterion>
std::size_t last_position_of(const PreparedSlots& prepared, const Best& best) {
  return Criterion::only_up_to_step ? prepared.position(best.defining_row)
                                 : prepared.position_at(best.start);
}

template <class Criterion, class Shape>
bool find_best_ragged(const PreparedSlots& prepared, const Query& query, double least,
                   Workspace& work, Found& found, const Best& incumbent = {}) {
  using Goal = typename Criterion::RaggedRules::Goal;
  static_assert(!Goal::evaluate_per_slot || Goal::later_slots_may_join ||
                Criterion::only_up_to_step);
  const std::size_t n = static_cast<std::size_t>(query.n);
  const Shape shape(query);
  Goal goal{{query.max_cost(), incumbent, least}};
  const double least_others = prepared.min_rate_sum(n - 1);
  const auto sweep = [&] { Sweep(prepared, query, shape, least_others, goal, work).run(); };
  bool complete = false;
  if (Criterion::value_is_cost) {  // a low ceiling early: first sweep a few cheap nodes
    const std::size_t some = 4 * n;
    if (prepared.nodes.size() > 16 * some && prepared.cheapest_rates.size() > some) {
      goal.max_probed_key =
          max_index_key(prepared.min_rate_sum(some), prepared.min_rate_sum(some - 1));
      sweep();
      complete = goal.best.found &&
                 max_index_key(shape.to_index_units(goal.best.total), least_others) <=
                     goal.max_probed_key;
      // slots with equal cost may not have been visited
      if (!complete) goal.best.entries_valid = false;
      goal.max_probed_key = std::numeric_limits<float>::infinity();
    }
  }
  if (!complete) sweep();
  const Best& best = goal.best;
  if (!best.found) return false;
  if (best.entries_valid) {
    const auto before = [&prepared](const Entry& a, const Entry& b) {
      return is_cheaper(prepared, a, b);
    };
    // keys are sorted, node ids may not be
    if (!std::is_sorted(work.chosen.begin(), work.chosen.end(), before))
      std::sort(work.chosen.begin(), work.chosen.end(), before);
  } else {
    const bool all = select_cheapest_at(
        prepared, query, shape, best.start, last_position_of<Criterion>(prepared, best),
        best.nth_key,
        goal.least_performance(query.volume),
        [&](const Slot& s) {
          return Criterion::RaggedRules::is_part_allowed(best, best.start, shape.length(s));
        },
        work.chosen);
    // A bound above is wrong: raise an error instead of returning an invalid window.
    if (!all) throw std::logic_error("the window that the sweep has found is not there");
  }
  build_window(prepared, shape, work.chosen, n, best.start, found, work.parts, work.node_order);
  return true;
}

// Returns the node-price statistics of the groups down to performance `least`. They are cached in
// `work` for later searches of the same nodes with the same n, for up to 8 values of n. O(N log n),
// but O(N / 64 + n log n) if few nodes after the first n are cheaper: blocks of dear nodes are
// skipped.
inline const std::vector<Workspace::GroupPriceStats>& group_price_stats(
    const PreparedSlots& prepared, std::size_t n, double least, Workspace& work) {
  if (work.price_stats_build != prepared.identity || prepared.identity == BuildId{}) {
    work.price_stats_build = prepared.identity;
    work.num_price_stats = 0;
  }
  std::size_t at = 0;
  while (at < work.num_price_stats && work.price_stats[at].prices.n() != n) ++at;
  if (at == work.num_price_stats) {
    constexpr std::size_t max_entries = 1 << 14;  // groups in all cache entries
    const std::size_t most =
        std::clamp<std::size_t>(max_entries / (prepared.groups.size() + 1), 1, 8);
    if (at >= most) at = (work.next_victim + 1) % most;
    if (work.price_stats.size() <= at) work.price_stats.resize(at + 1);
    work.price_stats[at].prices.reset(n, 0, false);  // last of the steps that may throw
    work.price_stats[at].groups.clear();
    if (at == work.num_price_stats)
      ++work.num_price_stats;
    else
      work.next_victim = at;
  }
  auto& [prices, groups] = work.price_stats[at];
  groups.reserve(prepared.groups.size());
  for (std::size_t k = groups.size(); k < prepared.groups.size(); ++k) {
    if (prepared.groups[k].performance < least) break;
    double anchor = kInfinity;
    const std::size_t end = prepared.groups[k].end;
    for (std::size_t i = k > 0 ? prepared.groups[k - 1].end : 0; i < end;) {
      const bool is_block = i % kNodesPerBlock == 0 && i + kNodesPerBlock <= end;
      const bool is_dear =
          is_block && prepared.least_prices[i / kNodesPerBlock] >= prices.cutoff();
      const double price =
          is_dear ? prepared.least_prices[i / kNodesPerBlock] : prepared.nodes[i].min_price;
      anchor = std::min(anchor, price);
      if (price < prices.cutoff()) prices.offer(price, i);
      i += is_dear ? kNodesPerBlock : 1;
    }
    if (!prices.full()) {
      groups.push_back({anchor, kInfinity, kInfinity, 0});
      continue;
    }
    const double nth = prices[n - 1].key;
    groups.push_back({anchor, nth, std::max(0.0, prices.lower() - nth),
                      std::max(nth - prices[n / 2].key, nth / 64)});
  }
  return groups;
}

// Fills work.bounds, fastest group first. Groups with equal spans in floating point are merged;
// groups slower than the minimum performance or with fewer than n nodes so far are left out.
inline void compute_group_bounds(const PreparedSlots& prepared, const Query& query,
                                 Workspace& work) {
  const auto& group_prices =
      group_price_stats(prepared, static_cast<std::size_t>(query.n), query.min_performance, work);
  work.bounds.clear();
  double anchor = kInfinity;
  for (std::size_t k = 0; k < prepared.groups.size(); ++k) {
    const Group& group = prepared.groups[k];
    if (group.performance < query.min_performance) break;
    const auto& prices = group_prices[k];
    anchor = std::min(anchor, prices.min);
    const double span = query.length(group.performance);
    if (std::isinf(span)) break;  // nor does any slower group fit
    if (k + 1 < prepared.groups.size() &&
        prepared.groups[k + 1].performance >= query.min_performance &&
        query.length(prepared.groups[k + 1].performance) == span)
      continue;
    if (prices.nth < kInfinity)
      work.bounds.push_back(
          {span, span * (prices.sum_of_n_minus_1 + std::max(prices.nth, anchor)) * (1 - kMargin),
           prices.sum_of_n_minus_1, prices.nth, prices.nth_minus_median, k});
    anchor = kInfinity;
  }
}

// Replaces `found` by the canonical window of one group at best.start if it is better: cheaper than
// `cost`, or of equal cost with smaller node ids.
template <class Criterion>
void try_group(const PreparedSlots& prepared, const Query& query, const Best& best,
                const Workspace::GroupBound& bound, double nth_key, double& cost, Workspace& work,
                Found& found) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  const Square shape{bound.span, prepared.groups[bound.group].performance};
  if (!select_cheapest_at(
          prepared, query, shape, best.start, last_position_of<Criterion>(prepared, best), nth_key,
          0,
          [](const Slot&) { return true; }, work.chosen))
    return;
  double slowest = kInfinity;
  for (const Entry& entry : work.chosen)
    slowest = std::min(slowest, prepared.slots[entry.row].performance);
  // relaxed: its own group has a window that is no worse
  if (query.length(slowest) != bound.span) return;
  Found trial;
  build_window(prepared, shape, work.chosen, n, best.start, trial, work.trial_parts,
               work.node_order);
  trial.processor_time = static_cast<double>(n) * trial.runtime;
  const auto by_node = [](const Part& a, const Part& b) { return a.node < b.node; };
  if (trial.cost > cost ||
      (trial.cost == cost &&
       !std::lexicographical_compare(work.trial_parts.begin(), work.trial_parts.end(),
                                     work.parts.begin(), work.parts.end(), by_node)))
    return;
  cost = trial.cost;
  found = trial;
  work.parts.swap(work.trial_parts);
}

// Collects into work.live_by_group the slots that are live at `start` for their own run time and
// may be in a window of at most `cost`: one list per entry of work.bounds, that of the first group
// the slot serves. `least`, `shortest` and `least_others` are the minimum performance, span and sum
// of other prices over the groups to search.
inline void collect_live_by_group(const PreparedSlots& prepared, const Query& query, double start,
                         double cost, double least, double shortest, double least_others,
                         Workspace& work) {
  work.live_by_group.clear();
  work.group_list_heads.assign(work.bounds.size(), Workspace::kNone);
  Thresholds thresholds = initial_thresholds(prepared, query, Square{0, least});
  thresholds.end = std::max(thresholds.end, Square::zone_map(prepared).ending(start));
  thresholds.key = max_index_key((cost + kUnderflow) / shortest, least_others);
  Square::zone_map(prepared).each(
      prepared.order, thresholds, prepared.position_at(start), [&](std::size_t row) {
        const Slot& s = prepared.slots[row];
        const double own = query.length(s.performance);  // its shortest run time
        if (!(start + own <= query.limit(s)) || !query.admits(s, row) ||
            own * (s.price + least_others) * (1 - kMargin) > cost)
          return true;
        const auto first = std::partition_point(
            work.bounds.begin(), work.bounds.end(), [&](const Workspace::GroupBound& bound) {
              return prepared.groups[bound.group].end <= static_cast<std::size_t>(s.place);
            });
        if (first == work.bounds.end()) return true;
        const auto k = static_cast<std::size_t>(first - work.bounds.begin());
        work.live_by_group.push_back({row, work.group_list_heads[k]});
        work.group_list_heads[k] = work.live_by_group.size() - 1;
        return true;
      });
}

// Selects the cheapest canonical window at best.start. If other groups may give the same value,
// they are swept at this one time: by falling performance slots are added, and longer spans expire
// them.
template <class Criterion>
void select_square_window(const PreparedSlots& prepared, const Query& query, const Best& best,
                 Workspace& work, Found& found) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  double cost = kInfinity, least_others = kInfinity, least = kInfinity;
  work.parts.clear();
  for (const auto& bound : work.bounds)
    if (bound.group == best.group)
      try_group<Criterion>(prepared, query, best, bound, best.nth_key, cost, work, found);
  if (Criterion::SquareRules::best_group_only || !best.other_groups_may_tie) return;

  const auto can_win = [&](const Workspace::GroupBound& bound) {
    return bound.group != best.group && Criterion::SquareRules::is_span_allowed(best, bound.span) &&
           !(bound.total > cost);
  };
  // Try the group of lowest cost bound first: a low incumbent removes most others. If few remain,
  // search each (about 8n slots pass the index per group); otherwise make one pass over all live
  // slots.
  const std::size_t slots = prepared.slots.size(), slots_per_group = 8 * n + slots / 64;
  work.order.clear();
  for (std::size_t k = 0; k < work.bounds.size(); ++k)
    if (can_win(work.bounds[k])) work.order.push_back(k);
  do {
    if (work.order.empty()) return;
    const auto lowest = std::min_element(
        work.order.begin(), work.order.end(), [&work](std::size_t a, std::size_t b) {
          return work.bounds[a].total < work.bounds[b].total;
        });
    const Workspace::GroupBound& bound = work.bounds[*lowest];
    work.order.erase(lowest);
    try_group<Criterion>(prepared, query, best, bound, (cost + kUnderflow) / bound.span, cost,
                          work, found);
    std::erase_if(work.order, [&](std::size_t k) { return !can_win(work.bounds[k]); });
  } while (work.order.size() * slots_per_group <= slots);
  double shortest = kInfinity;
  for (const std::size_t k : work.order) {
    const Workspace::GroupBound& bound = work.bounds[k];
    shortest = std::min(shortest, bound.span);
    least_others = std::min(least_others, bound.least_others);
    least = prepared.groups[bound.group].performance;
  }

  collect_live_by_group(prepared, query, best.start, cost, least, shortest, least_others, work);
  TopNByKey& top = work.top;
  top.reset(n, work.live_by_group.size());
  for (std::size_t k = 0; k < work.bounds.size(); ++k) {
    const Workspace::GroupBound& bound = work.bounds[k];
    for (std::size_t j = work.group_list_heads[k]; j != Workspace::kNone;
         j = work.live_by_group[j].next)
      top.offer(prepared.slots[work.live_by_group[j].row].price, work.live_by_group[j].row);
    if (!can_win(bound)) continue;
    while (top.full() && !(bound.span * top.lower() > cost)) {
      if (top.drop_expired([&](std::size_t row) {
            return best.start + bound.span <= query.limit(prepared.slots[row]);
          }))
        continue;
      const double total = bound.span * top.sum();
      if (total <= query.max_cost() && total <= cost)
        try_group<Criterion>(prepared, query, best, bound, top[n - 1].key, cost, work, found);
      break;
    }
  }
}

template <class Criterion>
bool find_best_square(const PreparedSlots& prepared, const Query& query, Workspace& work,
                   Found& found) {
  using GroupBound = Workspace::GroupBound;
  compute_group_bounds(prepared, query, work);
  work.order.clear();
  for (std::size_t k = 0; k < work.bounds.size(); ++k)
    if (!(work.bounds[k].total > query.max_cost())) work.order.push_back(k);
  const auto has_higher_bound = [&](std::size_t a, std::size_t b) {
    const GroupBound &x = work.bounds[a], &y = work.bounds[b];
    return x.total > y.total || (x.total == y.total && a > b);
  };
  if (Criterion::value_is_cost)
    std::make_heap(work.order.begin(), work.order.end(), has_higher_bound);

  typename Criterion::SquareRules::Goal goal{{query.max_cost(), {}}};
  const double first = std::max(prepared.first_start(), query.earliest);
  auto stop = work.order.end();
  // At the last improvement: the highest price in the window minus the n-th lowest node price of
  // its group (GroupBound::nth), in units of GroupBound::rise. Infinite: no improvement yet.
  double price_rise = kInfinity;
  for (auto it = work.order.begin(); it != stop;) {
    std::size_t k = *it;
    if (Criterion::value_is_cost) {
      std::pop_heap(work.order.begin(), stop, has_higher_bound);
      k = *--stop;
    } else {
      ++it;
    }
    const GroupBound& bound = work.bounds[k];
    poll();
    if (bound.total > goal.ceiling()) {
      if (Criterion::value_is_cost) break;
      continue;
    }
    if (goal.is_past(first, bound.span)) continue;
    const Square shape{bound.span, prepared.groups[bound.group].performance};
    // Heuristic initial cutoff, from the last improvement: assume that the same share of cheap
    // nodes is busy in every group. Infinite or NaN means no cutoff.
    const double initial_cutoff =
        Criterion::value_is_cost ? bound.nth + 1.25 * (price_rise + 1) * bound.rise : kInfinity;
    if (Sweep(prepared, query, shape, bound.least_others, goal, work, initial_cutoff)
            .run()) {
      goal.best.group = bound.group;
      price_rise = (goal.best.nth_key - bound.nth) / bound.rise;
    }
    if (Criterion::SquareRules::stops_at_first_group && goal.best.found) break;
  }
  if (!goal.best.found) return false;
  select_square_window<Criterion>(prepared, query, goal.best, work, found);
  return true;
}

}  // namespace detail

}  // namespace slotkern

// The best window by a built-in criterion: a sweep finds the best (value, start), then the
// canonical window is taken at that start by the tie rule (lowest cost, then the
// lexicographically smallest node ids) from all slots that are live there. Where the sweep saw
// that nothing else may belong to it, the window is what the best step had kept.
//
// Ragged: one sweep. Square (Toporkov et al. 2018, section 3.2): one sweep a group of
// performance, but only in groups that can still win. A group's bound: T_k times its n
// cheapest node prices, one of them of performance P_k. Relaxed windows (no P_k slot) never
// decide: in their own, faster group the same nodes cost no more, and the n cheapest of it stand,
// also where rounding makes costs equal.
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

// Totals of the n entries in front (in cost order), and the parts by node.
template <class Shape>
void settle(const PreparedSlots& prepared, const Shape& shape, const std::vector<Entry>& chosen,
            std::size_t n, double start, Found& found, std::vector<Part>& parts,
            NodeOrder& order) {
  const bool few = n <= kFewSorted;
  parts.resize(n);
  if (!few && order.parts.size() < n) order.parts.resize(n);
  Part* const to = few ? parts.data() : order.parts.data();
  std::int32_t nodes[kFewSorted];
  for (std::size_t i = 0; few && i < n; ++i) nodes[i] = prepared.slots[chosen[i].row].node;
  double time = 0;
  found.start = start;
  found.runtime = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Slot& s = prepared.slots[chosen[i].row];
    const double length = shape.length(s);
    time += length;
    found.runtime = std::max(found.runtime, length);
    std::size_t at = few ? 0 : i;
    for (std::size_t j = 0; few && j < n; ++j) at += nodes[j] < s.node;
    to[at] = {prepared.origin(chosen[i].row), s.node, length, shape.total(chosen[i].key),
              static_cast<std::uint32_t>(chosen[i].row)};
  }
  found.cost = shape.total(exact_sum(n, [&](std::size_t i) { return chosen[i].key; }));
  found.processor_time = time;
  if (few) return;
  Part* next = parts.data();
  if (order.by_node.each(
          n, [to](std::size_t i) { return static_cast<std::size_t>(to[i].node); },
          [&](std::size_t i) { *next++ = to[i]; }))
    return;
  merge_sort(to, n, parts.data(), [](const Part& a, const Part& b) { return a.node < b.node; });
  std::copy(to, to + n, parts.data());
}

template <class Criterion>
std::size_t last_step(const PreparedSlots& prepared, const Best& best) {
  return Criterion::up_to_step ? prepared.position(best.step)
                                 : prepared.position_at(best.start);
}

// Whether the window of the earliest start begins at the first time there is, and is soon found
// there: into `chosen`. Booked by little, a pool has most windows there.
template <class Shape>
SLOTKERN_NOINLINE bool starts_at_once(const PreparedSlots& prepared, const Query& query,
                                   const Shape& shape, double& start,
                                   std::vector<Entry>& chosen) {
  start = std::max(prepared.first_start(), query.earliest);
  if (!soon_cheapest_at(prepared, query, shape, start, chosen)) return false;
  const double sum = exact_sum(chosen.size(), [&](std::size_t i) { return chosen[i].key; });
  return shape.total(sum) <= query.max_cost();
}

template <class Criterion, class Shape>
bool search_ragged(const PreparedSlots& prepared, const Query& query, double least,
                   Workspace& work, Found& found, const Best& known = {}) {
  using Goal = typename Criterion::RaggedRules::Goal;
  static_assert(!Goal::by_step || Goal::looks_on || Criterion::up_to_step);
  const std::size_t n = static_cast<std::size_t>(query.n);
  const Shape shape(query);
  Goal goal{{query.max_cost(), known, least}};
  if constexpr (Criterion::earliest && !Criterion::up_to_step) {
    double start = 0;
    if (Shape::screen(prepared).can_probe() &&
        starts_at_once(prepared, query, shape, start, work.chosen)) {
      settle(prepared, shape, work.chosen, n, start, found, work.parts, work.node_order);
      return true;
    }
  }
  const double least_others = prepared.min_rate_sum(n - 1);
  const auto sweep = [&] {
    if constexpr (Shape::keys_by_screen)
      if (KeptByRank::pays(prepared, n, Criterion::by_bound)) {
        work.by_rank.open(prepared, query.volume);
        Sweep(prepared, query, shape, least_others, goal, work, work.by_rank).run();
        return;
      }
    Sweep(prepared, query, shape, least_others, goal, work, work.kept).run();
  };
  bool complete = false;
  if (Criterion::by_bound) {  // a low ceiling early: first the slots of some cheap nodes only
    const std::size_t some = 4 * n;
    if (prepared.nodes.size() > 16 * some && prepared.cheapest_rates.size() > some) {
      goal.probe = key_ceiling(prepared.min_rate_sum(some), prepared.min_rate_sum(some - 1));
      sweep();
      complete = goal.best.found &&
                 key_ceiling(shape.screened(goal.best.total), least_others) <= goal.probe;
      if (!complete) goal.best.chosen = false;  // what is as cheap may not have been looked at
      goal.probe = std::numeric_limits<float>::infinity();
    }
  }
  if (!complete) sweep();
  const Best& best = goal.best;
  if (!best.found) return false;
  if (best.chosen) {
    const auto before = [&prepared](const Entry& a, const Entry& b) {
      return cheaper(prepared, a, b);
    };
    if (!std::is_sorted(work.chosen.begin(), work.chosen.end(), before))  // keys are, nodes may not
      std::sort(work.chosen.begin(), work.chosen.end(), before);
  } else {
    const bool all = cheapest_at(
        prepared, query, shape, best.start, last_step<Criterion>(prepared, best), best.nth_key,
        goal.least_performance(query.volume),
        [&](const Slot& s) {
          return Criterion::RaggedRules::part_ok(best, best.start, shape.length(s));
        },
        work.chosen);
    // A bound above is wrong: better an error than a window that is none.
    if (!all) throw std::logic_error("the window that the sweep has found is not there");
  }
  settle(prepared, shape, work.chosen, n, best.start, found, work.parts, work.node_order);
  return true;
}

// Sums of node prices of the groups down to this performance. They stay in `work` for the next
// searches of the same nodes for as many: O(N log n) once for each of a few n, then nothing.
inline const std::vector<Workspace::GroupPrices>& price_groups(const PreparedSlots& prepared,
                                                               std::size_t n, double least,
                                                               Workspace& work) {
  if (work.priced_of != prepared.identity || prepared.identity == BuildId{}) {
    work.priced_of = prepared.identity;
    work.known = 0;
  }
  std::size_t at = 0;
  while (at < work.known && work.priced[at].prices.n() != n) ++at;
  if (at == work.known) {
    constexpr std::size_t room = 1 << 14;  // groups in all
    const std::size_t most = std::clamp<std::size_t>(room / (prepared.groups.size() + 1), 1, 8);
    if (at >= most) at = (work.replaced + 1) % most;
    if (work.priced.size() <= at) work.priced.resize(at + 1);
    work.priced[at].prices.reset(n, 0, false);  // last of what may fail
    work.priced[at].groups.clear();
    if (at == work.known)
      ++work.known;
    else
      work.replaced = at;
  }
  auto& [prices, groups] = work.priced[at];
  groups.reserve(prepared.groups.size());
  for (std::size_t k = groups.size(); k < prepared.groups.size(); ++k) {
    if (prepared.groups[k].performance < least) break;
    double anchor = kInfinity;
    for (std::size_t i = k > 0 ? prepared.groups[k - 1].end : 0; i < prepared.groups[k].end; ++i) {
      anchor = std::min(anchor, prepared.nodes[i].min_price);
      prices.offer(prepared.nodes[i].min_price, i);
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

// Fills work.bounds, fastest group first. Groups whose spans are equal in floating point are
// one group; groups under the least performance or with fewer than n nodes are left out.
inline void bound_groups(const PreparedSlots& prepared, const Query& query, Workspace& work) {
  const auto& group_prices =
      price_groups(prepared, static_cast<std::size_t>(query.n), query.min_performance, work);
  work.bounds.clear();
  double anchor = kInfinity;
  for (std::size_t k = 0; k < prepared.groups.size(); ++k) {
    const Group& group = prepared.groups[k];
    if (group.performance < query.min_performance) break;
    const auto& prices = group_prices[k];
    anchor = std::min(anchor, prices.anchor);
    const double span = query.length(group.performance);
    if (std::isinf(span)) break;  // of this and all slower groups: it fits nowhere
    if (k + 1 < prepared.groups.size() &&
        prepared.groups[k + 1].performance >= query.min_performance &&
        query.length(prepared.groups[k + 1].performance) == span)
      continue;
    if (prices.nth < kInfinity)
      work.bounds.push_back(
          {span, span * (prices.least_others + std::max(prices.nth, anchor)) * (1 - kMargin),
           prices.least_others, prices.nth, prices.rise, k});
    anchor = kInfinity;
  }
}

// The canonical window of one group at best.start, if it beats what `found` holds at `cost`.
template <class Criterion>
void take_group(const PreparedSlots& prepared, const Query& query, const Best& best,
                const Workspace::Bound& bound, double nth_key, double& cost, Workspace& work,
                Found& found) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  const Square shape{bound.span, prepared.groups[bound.group].performance};
  if (!cheapest_at(
          prepared, query, shape, best.start, last_step<Criterion>(prepared, best), nth_key, 0,
          [](const Slot&) { return true; }, work.chosen))
    return;
  double slowest = kInfinity;
  for (const Entry& entry : work.chosen)
    slowest = std::min(slowest, prepared.slots[entry.row].performance);
  if (query.length(slowest) != bound.span) return;  // relaxed: its own group has one no worse
  Found trial;
  settle(prepared, shape, work.chosen, n, best.start, trial, work.trial_parts, work.node_order);
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

// Slots that are live at `start` for as long as they need themselves and may be in a window of at
// most `cost`, into work.joining: a list for each of work.bounds, that of the first group they
// serve. The least performance, the shortest span and the least sum of other prices of the groups
// that are asked for are known.
inline void list_joining(const PreparedSlots& prepared, const Query& query, double start,
                         double cost, double least, double shortest, double least_others,
                         Workspace& work) {
  work.joining.clear();
  work.last_joining.assign(work.bounds.size(), Workspace::kNone);
  Thresholds thresholds = first_thresholds(prepared, query, Square{0, least});
  thresholds.end = std::max(thresholds.end, Square::screen(prepared).ending(start));
  thresholds.key = key_ceiling((cost + kUnderflow) / shortest, least_others);
  Square::screen(prepared).each(
      prepared.order, thresholds, prepared.position_at(start), [&](std::size_t row) {
        const Slot& s = prepared.slots[row];
        const double own = query.length(s.performance);  // the least it can run
        if (!(start + own <= query.limit(s)) || !query.admits(s, row) ||
            own * (s.price + least_others) * (1 - kMargin) > cost)
          return true;
        const auto first = std::partition_point(
            work.bounds.begin(), work.bounds.end(), [&](const Workspace::Bound& bound) {
              return prepared.groups[bound.group].end <= static_cast<std::size_t>(s.place);
            });
        if (first == work.bounds.end()) return true;
        const auto k = static_cast<std::size_t>(first - work.bounds.begin());
        work.joining.push_back({row, work.last_joining[k]});
        work.last_joining[k] = work.joining.size() - 1;
        return true;
      });
}

// The cheapest canonical window at best.start. Where other groups may give the same value they
// are swept at this one time: by falling performance slots join, longer spans expire them.
template <class Criterion>
void take_square(const PreparedSlots& prepared, const Query& query, const Best& best,
                 Workspace& work, Found& found) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  double cost = kInfinity, least_others = kInfinity, least = kInfinity;
  work.parts.clear();
  for (const auto& bound : work.bounds)
    if (bound.group == best.group)
      take_group<Criterion>(prepared, query, best, bound, best.nth_key, cost, work, found);
  if (Criterion::SquareRules::best_group_only || !best.tied) return;

  const auto allowed = [&](const Workspace::Bound& bound) {
    return bound.group != best.group && Criterion::SquareRules::span_ok(best, bound.span) &&
           !(bound.total > cost);
  };
  // First the one that is cheapest by its bound: a low cost leaves few groups to look at. Few are
  // taken one by one: of each the screen lets some times n slots through. Through many goes, once,
  // all that is live.
  const std::size_t slots = prepared.slots.size(), taking = 8 * n + slots / 64;
  work.order.clear();
  for (std::size_t k = 0; k < work.bounds.size(); ++k)
    if (allowed(work.bounds[k])) work.order.push_back(k);
  do {
    if (work.order.empty()) return;
    const auto promising = std::min_element(
        work.order.begin(), work.order.end(), [&work](std::size_t a, std::size_t b) {
          return work.bounds[a].total < work.bounds[b].total;
        });
    const Workspace::Bound& bound = work.bounds[*promising];
    work.order.erase(promising);
    take_group<Criterion>(prepared, query, best, bound, (cost + kUnderflow) / bound.span, cost,
                          work, found);
    std::erase_if(work.order, [&](std::size_t k) { return !allowed(work.bounds[k]); });
  } while (work.order.size() * taking <= slots);
  double shortest = kInfinity;
  for (const std::size_t k : work.order) {
    const Workspace::Bound& bound = work.bounds[k];
    shortest = std::min(shortest, bound.span);
    least_others = std::min(least_others, bound.least_others);
    least = prepared.groups[bound.group].performance;
  }

  list_joining(prepared, query, best.start, cost, least, shortest, least_others, work);
  NCheapest& top = work.top;
  top.reset(n, work.joining.size());
  for (std::size_t k = 0; k < work.bounds.size(); ++k) {
    const Workspace::Bound& bound = work.bounds[k];
    for (std::size_t j = work.last_joining[k]; j != Workspace::kNone; j = work.joining[j].before)
      top.offer(prepared.slots[work.joining[j].row].price, work.joining[j].row);
    if (!allowed(bound)) continue;
    while (top.full() && !(bound.span * top.lower() > cost)) {
      if (top.purge([&](std::size_t row) {
            return best.start + bound.span <= query.limit(prepared.slots[row]);
          }))
        continue;
      const double total = bound.span * top.sum();
      if (total <= query.max_cost() && total <= cost)
        take_group<Criterion>(prepared, query, best, bound, top[n - 1].key, cost, work, found);
      break;
    }
  }
}

template <class Criterion>
bool search_square(const PreparedSlots& prepared, const Query& query, Workspace& work,
                   Found& found) {
  using Bound = Workspace::Bound;
  bound_groups(prepared, query, work);
  work.order.clear();
  for (std::size_t k = 0; k < work.bounds.size(); ++k)
    if (!(work.bounds[k].total > query.max_cost())) work.order.push_back(k);
  const auto dearer = [&](std::size_t a, std::size_t b) {
    const Bound &x = work.bounds[a], &y = work.bounds[b];
    return x.total > y.total || (x.total == y.total && a > b);
  };
  if (Criterion::by_bound) std::make_heap(work.order.begin(), work.order.end(), dearer);

  typename Criterion::SquareRules::Goal goal{{query.max_cost(), {}}};
  const double first = std::max(prepared.first_start(), query.earliest);
  auto stop = work.order.end();
  double rises = kInfinity;  // from the n-th price of nodes to that of the best window
  for (auto it = work.order.begin(); it != stop;) {
    std::size_t k = *it;
    if (Criterion::by_bound) {
      std::pop_heap(work.order.begin(), stop, dearer);
      k = *--stop;
    } else {
      ++it;
    }
    const Bound& bound = work.bounds[k];
    poll();
    if (bound.total > goal.ceiling()) {
      if (Criterion::by_bound) break;
      continue;
    }
    if (goal.past(first, bound.span)) continue;
    const Square shape{bound.span, prepared.groups[bound.group].performance};
    // About as many of the cheap nodes are busy in each group: prices well above are dear. Where
    // nodes are free this is not a number, and nothing is.
    const double dear =
        Criterion::by_bound ? bound.nth + 1.25 * (rises + 1) * bound.rise : kInfinity;
    if (Sweep(prepared, query, shape, bound.least_others, goal, work, work.kept, dear).run()) {
      goal.best.group = bound.group;
      rises = (goal.best.nth_key - bound.nth) / bound.rise;
    }
    if (Criterion::SquareRules::first_group && goal.best.found) break;
  }
  if (!goal.best.found) return false;
  take_square<Criterion>(prepared, query, goal.best, work, found);
  return true;
}

}  // namespace detail

}  // namespace slotkern

// The best window by a built-in criterion: a sweep finds the best (value, start), then the
// canonical window is taken at that start by the tie rule (lowest cost, then the
// lexicographically smallest node ids) from all slots that are live there.
//
// Ragged: one sweep. Square (Toporkov et al. 2018, section 3.2): one sweep a group of
// performance, but only in groups that can still win. A group's bound: T_k times its n
// cheapest node prices, one of them of performance P_k. Relaxed windows (no P_k slot) cost
// more than the same nodes in their own, faster group, so they never decide.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "criteria.hpp"

namespace slotkern {

// The window that a search leaves, its parts in Workspace::parts by ascending node id.
struct Found {
  double start = 0, runtime = 0, cost = 0, processor_time = 0, value = 0;
};

namespace detail {

// Totals of the n entries in front (in cost order), and the parts by node.
template <class Shape>
void settle(const Pool& pool, const Shape& shape, const std::vector<Entry>& chosen,
            std::size_t n, double start, Found& found, std::vector<Part>& parts) {
  parts.clear();
  double sum = 0, time = 0;
  found.start = start;
  found.runtime = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Slot& s = pool.slots[chosen[i].row];
    const double length = shape.length(s);
    sum += chosen[i].key;
    time += length;
    found.runtime = std::max(found.runtime, length);
    parts.push_back({chosen[i].row, s.node, length, shape.total(chosen[i].key)});
  }
  found.cost = shape.total(sum);
  found.processor_time = time;
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.node < b.node; });
}

template <class Criterion>
bool search_ragged(const Pool& pool, const Query& query, Workspace& work, Found& found) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  const Ragged shape{query.volume};
  typename Criterion::RaggedGoal goal;
  goal.budget = query.budget;
  sweep(pool, query, shape, pool.rates_of(n - 1), goal, work.top);
  const Best& best = goal.best;
  if (!best.found) return false;
  const std::size_t last = Criterion::up_to_step ? best.step : last_row(pool, best.start);
  gather(pool, query, shape, best.start, last, shape.screened(best.nth_key),
         [&](const Slot& s) {
           return shape.key(s) <= best.nth_key &&
                  Criterion::part_ok(best, best.start, shape.length(s));
         },
         work.candidates);
  cheapest_first(pool, work.candidates, n);
  settle(pool, shape, work.candidates, n, best.start, found, work.parts);
  return true;
}

// Fills work.bounds, fastest group first. Groups whose spans are equal in floating point are
// one group; groups under the least performance or with fewer than n nodes are left out.
inline void bound_groups(const Pool& pool, const Query& query, Workspace& work) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  work.bounds.clear();
  NCheapest& prices = work.top;
  prices.reset(n, pool.nodes.size());
  double anchor = kInfinity;
  std::size_t next = 0;
  for (std::size_t k = 0; k < pool.groups.size(); ++k) {
    const Group& group = pool.groups[k];
    if (group.performance < query.min_performance) break;
    for (; next < group.end; ++next) {
      anchor = std::min(anchor, pool.nodes[next].min_price);
      prices.offer(pool.nodes[next].min_price, next);
    }
    const double span = query.volume / group.performance;
    if (k + 1 < pool.groups.size() && pool.groups[k + 1].performance >= query.min_performance &&
        query.volume / pool.groups[k + 1].performance == span)
      continue;
    if (prices.full()) {
      const double nth = prices[n - 1].key, others = std::max(0.0, prices.lower() - nth);
      work.bounds.push_back({span, span * (others + std::max(nth, anchor)) * (1 - kMargin),
                             others, k});
    }
    anchor = kInfinity;
  }
}

// The cheapest canonical window at best.start among the groups that give the same value.
template <class Criterion>
void take_square(const Pool& pool, const Query& query, const Best& best, Workspace& work,
                 Found& found) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  const std::size_t last = Criterion::up_to_step ? best.step : last_row(pool, best.start);
  const auto allowed = [&](const Workspace::Bound& bound) {
    if (Criterion::best_group_only) return bound.group == best.group;
    return Criterion::span_ok(best, bound.span) && !(bound.total > best.total);
  };
  // A slot's own span is the least it can run; beside it stand n - 1 parts.
  double least = kInfinity, longest_least = 0, others = kInfinity;
  for (const auto& bound : work.bounds)
    if (allowed(bound)) {
      least = std::min(least, pool.groups[bound.group].performance);
      longest_least = std::max(longest_least, bound.span);
      others = std::min(others, bound.others);
    }
  const Square widest{Criterion::best_group_only ? longest_least : 0.0, least};
  const bool one = Criterion::best_group_only;
  gather(pool, query, widest, best.start, last, one ? best.nth_key : kInfinity,
         [&](const Slot& s) {
           if (one) return s.price <= best.nth_key;
           const double own = query.volume / s.performance;
           return best.start + own <= query.limit(s) &&
                  !(own * (s.price + others) * (1 - kMargin) > best.total);
         },
         work.candidates);
  cheapest_first(pool, work.candidates, one ? n : work.candidates.size());

  bool have = false;
  double cheapest = kInfinity;
  Found trial;
  std::vector<Part>& parts = work.trial_parts;
  for (const auto& bound : work.bounds) {
    if (!allowed(bound) || (have && bound.total > cheapest)) continue;
    const Square shape{bound.span, pool.groups[bound.group].performance};
    work.chosen.clear();
    double sum = 0;
    for (const Entry& entry : work.candidates) {
      const Slot& s = pool.slots[entry.row];
      if (s.performance < shape.least || !live(query, shape, s, best.start)) continue;
      work.chosen.push_back(entry);
      sum += entry.key;
      if (work.chosen.size() == n) break;
    }
    const double total = shape.total(sum);
    if (work.chosen.size() < n || !(total <= query.budget) || (have && total > cheapest)) continue;
    double slowest = kInfinity;  // the window's own span: V / (its least performance)
    for (const Entry& entry : work.chosen)
      slowest = std::min(slowest, pool.slots[entry.row].performance);
    settle(pool, Square{query.volume / slowest, slowest}, work.chosen, n, best.start, trial, parts);
    trial.processor_time = static_cast<double>(n) * trial.runtime;
    const auto by_nodes = [](const Part& a, const Part& b) { return a.node < b.node; };
    if (have && trial.cost == cheapest &&
        !std::lexicographical_compare(parts.begin(), parts.end(), work.parts.begin(),
                                      work.parts.end(), by_nodes))
      continue;
    have = true;
    cheapest = trial.cost;
    found = trial;
    work.parts.swap(parts);
  }
}

template <class Criterion>
bool search_square(const Pool& pool, const Query& query, Workspace& work, Found& found) {
  using Bound = Workspace::Bound;
  bound_groups(pool, query, work);
  work.order.clear();
  for (std::size_t k = 0; k < work.bounds.size(); ++k)
    if (!(work.bounds[k].total > query.budget)) work.order.push_back(k);
  const auto dearer = [&](std::size_t a, std::size_t b) {
    const Bound &x = work.bounds[a], &y = work.bounds[b];
    return x.total > y.total || (x.total == y.total && a > b);
  };
  if (Criterion::by_bound) std::make_heap(work.order.begin(), work.order.end(), dearer);

  typename Criterion::SquareGoal goal;
  goal.budget = query.budget;
  const double first = query.step(pool.slots.front());
  auto stop = work.order.end();
  for (auto it = work.order.begin(); it != stop;) {
    std::size_t k = *it;
    if (Criterion::by_bound) {
      std::pop_heap(work.order.begin(), stop, dearer);
      k = *--stop;
    } else {
      ++it;
    }
    const Bound& bound = work.bounds[k];
    if (bound.total > goal.ceiling()) {
      if (Criterion::by_bound) break;
      continue;
    }
    if (goal.past(first, bound.span)) continue;
    if (sweep(pool, query, Square{bound.span, pool.groups[bound.group].performance},
              bound.others, goal, work.top))
      goal.best.group = bound.group;
    if (Criterion::first_group && goal.best.found) break;
  }
  if (!goal.best.found) return false;
  take_square<Criterion>(pool, query, goal.best, work, found);
  return true;
}

}  // namespace detail

// ok with the window in `found` and work.parts, none, or volume_too_small.
inline Status search(const Pool& pool, const Query& query, int criterion, Shape shape,
                     Workspace& work, Found& found) {
  if (query.n > static_cast<std::int64_t>(pool.nodes.size())) return Status::none;
  const Status status = pool.check(query);
  if (status != Status::ok) return status;
  return with_criterion(criterion, [&](auto c) {
    using Criterion = decltype(c);
    const bool any = shape == Shape::ragged
                         ? detail::search_ragged<Criterion>(pool, query, work, found)
                         : detail::search_square<Criterion>(pool, query, work, found);
    if (!any) return Status::none;
    found.value = Criterion::value(found.start, found.runtime, found.cost);
    return Status::ok;
  });
}

}  // namespace slotkern

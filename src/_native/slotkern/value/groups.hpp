// The performance groups of a search by value, and their upper bounds: the best value and least key
// of each node, combined by the Lagrangian bound of the budget. All sweeps of value/search.hpp use
// it.
//
// Values: at most O(slots) evaluations a group if values depend on the part's length, else once. A
// Lagrangian dual of O(nodes) for every sixteenth group; between these, O(1) for each new node.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "slotkern/value/live_slots.hpp"
#include "slotkern/value/sources.hpp"

namespace slotkern {

// The largest double b <= cap with factor * b <= limit, tested on the rounded product: near limit /
// factor, except for subnormal products. The bit patterns of doubles >= 0 are ordered like the
// doubles, which allows a binary search.
inline double largest_factor(double factor, double limit, double cap) {
  const auto fits = [&](std::uint64_t bits) {
    return factor * std::bit_cast<double>(bits) <= limit;
  };
  std::uint64_t high = std::bit_cast<std::uint64_t>(cap), step = 1;
  if (fits(high)) return cap;
  std::uint64_t low = std::bit_cast<std::uint64_t>(std::min(limit / factor, cap));
  for (; !fits(low); step *= 2) {
    high = low;
    low -= std::min(low, step);
  }
  for (step = 1; high - low > step && fits(low + step); step *= 2) low += step;
  high = std::min(high, low + step);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return std::bit_cast<double>(low);
}

// The result of a search, without its rows: total, start, proof, statistics.
struct ValueOutcome {
  Fault fault;  // set for a slot that the user's function cannot evaluate
  Effort effort;
  bool proven = true;
  double best = -kInfinity, bound = -kInfinity;  // totals; larger is better
  double start = 0;
  double span = 0;  // span of the group in which the best window was found
};

template <class Shape, class Source>
struct ValueGroups : ValueOutcome {
  using Plan = ValueWorkspace::Plan;

  static constexpr bool kSquare = std::is_same_v<Shape, Square>;

  ValueGroups(const PreparedSlots& prepared, const Query& query, const Source& source,
               const ValueOptions& options, ValueWorkspace& work)
      : prepared(prepared), query(query), source(source), options(options), work(work),
        knapsack(work.knapsack), n(static_cast<int>(query.n)) {
    knapsack.gap = options.gap;
    knapsack.scale = {};  // range of the values of admitted slots
    knapsack.scale.all_integer = source.integral;
    knapsack.limits = options.limits;
    knapsack.limits.allow_table = false;  // the small knapsacks of a step never need it
    knapsack.work = 0;
    if (kSquare) min_span_ = query.length(prepared.nodes.front().performance);
    prepared.each_row([&](std::size_t row) {
      const Slot& s = prepared.slots[row];
      const double key = key_of(s);  // rarely a new maximum, so this is tested first
      if (key > max_key_ && is_affordable(s) && query.admits(s, row)) max_key_ = key;
    });
    max_key_sum = std::min((n + 4) * max_key_, std::numeric_limits<double>::max());
  }

  // The slot's key: its price (square) or the cost of its part (ragged).
  double key_of(const Slot& s) const {
    if constexpr (kSquare)
      return s.price;
    else
      return Shape(query).key(s);
  }

  // True if the slot alone, in the shortest possible window, is within the budget. Other slots are
  // in no answer and must not affect any scale.
  bool is_affordable(const Slot& s) const {
    return (kSquare ? min_span_ * s.price : key_of(s)) <= query.max_cost();
  }

  Shape shape_of(const Plan& plan) const {
    if constexpr (kSquare)
      return Square{plan.span, prepared.groups[plan.group].performance};
    else
      return Shape(query);
  }

  // Records that the user's function failed for this row. Returns false.
  bool fail(std::size_t row) {
    fault = {Status::criterion_failed, prepared.origin(row), 0};
    return false;
  }

  // True if a window of this shape may use the slot from its first start on.
  bool is_usable(const Shape& shape, const Slot& s, std::size_t row) const {
    return is_live(query, shape, s, query.start_in(s)) && query.admits(s, row) &&
           s.performance >= shape.min_performance();
  }

  // The largest double b with total(b) <= budget, capped at the sum of any n keys.
  double key_budget(const Shape& shape) const {
    const double money = query.max_cost();
    if constexpr (kSquare)
      return largest_factor(shape.span, money, max_key_sum);
    else
      return std::min(money, max_key_sum);
  }

  // Cutoff that a total must exceed to beat the incumbent, with multiplier lambda of the costs.
  double cutoff(double incumbent, double lambda) const {
    return knapsack.cutoff(n, incumbent, lambda * max_key_sum);
  }

  // Lists in work.plans the groups that may contain a window, fastest first, without bounds.
  void list_groups() {
    work.plans.clear();
    work.memo.clear();
    if constexpr (kSquare) {
      detail::compute_group_bounds(prepared, query, work.base);
      for (const auto& b : work.base.bounds)
        if (!(min_total(b) > query.max_cost()) || options.group_span)
          work.plans.push_back({b.span, 0, kInfinity, 0, b.least_others, b.group, kNone});
    } else {
      work.plans.push_back(
          {0, 0, kInfinity, 0, prepared.min_rate_sum(n - 1u), prepared.groups.size() - 1, kNone});
    }
  }

  // Lower bound on the cost of the group's windows; a Lite window need not contain a slot of the
  // group's performance.
  double min_total(const Workspace::GroupBound& b) const {
    return options.lite ? b.span * (b.least_others + b.nth) * (1 - kMargin) : b.total;
  }

  // Bounds the listed groups, and drops those that have no window. Returns false at a fault.
  bool bound_plans() {
    double lambda = 0;
    std::size_t kept = 0, from = 0;
    const std::size_t every = std::max<std::size_t>(16, work.plans.size() / 16);
    int counted = 0;  // nodes already merged into heaviest_
    for (std::size_t k = 0; k < work.plans.size(); ++k) {
      poll();
      Plan plan = work.plans[k];
      const Shape shape = shape_of(plan);
      if (source.length_dependent || k == 0) {
        if (!value_nodes(shape, plan)) return false;
        from = 0;
      }
      list_nodes(from, prepared.groups[plan.group].end);
      from = prepared.groups[plan.group].end;
      const int nodes = static_cast<int>(work.node_value.size());
      if (nodes < n) continue;
      plan.budget = key_budget(shape);
      if (source.bounded) {
        const Items items{work.node_key.data(), work.node_value.data(), nodes};
        // Any multiplier gives a bound; that of a previous group is good enough to sort the groups.
        // With a fixed multiplier the heaviest n only change by the nodes that a slower group adds.
        if (kept % every == 0) {
          if (!solve_dual(items, plan, lambda)) continue;
          lambda = plan.lambda;
          heaviest_.clear();
          counted = 0;
        } else if (source.length_dependent) {
          heaviest_.clear();
          counted = 0;
        }
        add_heaviest(items, lambda, counted);
        counted = nodes;
        if (kept % every != 0) {
          plan.lambda = lambda;
          plan.bound = lambda * plan.budget;
          for (const double weight : heaviest_) plan.bound += weight;
          plan.bound += knapsack.noise(n, lambda * max_key_sum);
        }
      }
      work.plans[kept++] = plan;
    }
    work.plans.resize(kept);
    return true;
  }

  // Merges the items from `first` on into heaviest_, the n largest weights in falling order.
  void add_heaviest(const Items& items, double lambda, int first) {
    const std::size_t count = static_cast<std::size_t>(n);
    for (int i = first; i < items.count; ++i) {
      const double weight = items.value[i] - lambda * items.cost[i];
      if (heaviest_.size() == count && !(weight > heaviest_.back())) continue;
      if (heaviest_.size() == count) heaviest_.pop_back();
      heaviest_.insert(std::upper_bound(heaviest_.begin(), heaviest_.end(), weight,
                                        std::greater<>()),
                       weight);
    }
  }

  // Sets the plan's multiplier and bound by the Lagrangian dual. Returns false if n nodes never
  // fit.
  bool solve_dual(const Items& items, Plan& plan, double lambda) {
    if (!lagrangian_.solve(items, n, plan.budget, max_key_sum, lambda, -kInfinity,
                     [&](const ItemSet& set) { return set.cost <= plan.budget * (1 + kMargin); }))
      return false;
    plan.lambda = lagrangian_.is_optimal ? 0 : lagrangian_.lambda;
    plan.bound = lagrangian_.bound + knapsack.noise(n, plan.lambda * max_key_sum);
    return true;
  }

  // Appends the usable nodes of from..end - 1 to the columns; from = 0 clears the columns first.
  void list_nodes(std::size_t from, std::size_t end) {
    if (from == 0) work.node_value.clear(), work.node_key.clear();
    for (std::size_t k = from; k < end; ++k) {
      if (work.best_value_of_node[k] == -kInfinity) continue;
      const Node& node = prepared.nodes[k];
      work.node_value.push_back(work.best_value_of_node[k]);
      if constexpr (kSquare)
        work.node_key.push_back(node.min_price);
      else
        work.node_key.push_back(Shape(query).min_key(node));
    }
  }

  // Computes the best value of the slots of every node; -inf for nodes without a usable slot.
  bool value_nodes(const Shape& shape, Plan& plan) {
    const bool is_memoized = plan.memo != kNone;
    std::size_t place = is_memoized ? plan.memo : work.memo.size();
    if (source.is_expensive && 8.0 * static_cast<double>(place) < options.limits.memory)
      plan.memo = place;
    work.best_value_of_node.assign(prepared.nodes.size(), -kInfinity);
    const auto visit = [&](std::size_t row) {
      const Slot& s = prepared.slots[row];
      double z = 0;
      if (is_memoized) {
        z = work.memo[place++];
      } else {
        if (!source.upper_bound(s, row, shape.length(s), z)) return fail(row);
        if (plan.memo != kNone) work.memo.push_back(z);
      }
      if (!is_affordable(s)) return true;
      if (std::isfinite(z)) record_value(z);
      double& best = work.best_value_of_node[static_cast<std::size_t>(s.place)];
      best = std::max(best, z);
      return true;
    };
    if (source.length_dependent) {  // only the slots that this group may use
      for_each_usable(shape, plan.least_others, visit);
    } else {
      prepared.each_row([&](std::size_t row) {
        if (query.admits(prepared.slots[row], row)) visit(row);
      });
    }
    return fault.status == Status::ok;
  }

  // Calls visit(row) for the slots that a window of this shape may use, until it returns false. The
  // two loops are separate instantiations, so that neither slows the other.
  template <bool kListed = false, class Visit>
  void for_each_usable(const Shape& shape, double least_others, Visit visit) {
    if constexpr (kListed) {
      for (const std::size_t row : *listed_rows)
        if (is_usable(shape, prepared.slots[row], row) && !visit(row)) return;
      return;
    }
    Thresholds thresholds = initial_thresholds(prepared, query, shape);
    // Slots too expensive for any window still make a step of Lite, and extend the time of a group.
    if (!options.lite && !options.group_span)
      thresholds.key = max_index_key(shape.to_index_units(query.max_cost()), least_others);
    Shape::zone_map(prepared).each(
        prepared.order, thresholds, prepared.last_position(),
        [&](std::size_t row) { return !is_usable(shape, prepared.slots[row], row) || visit(row); });
  }

  void record_value(double z) { knapsack.scale.add(z); }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const PreparedSlots& prepared;
  const Query& query;
  const Source& source;
  const ValueOptions& options;
  ValueWorkspace& work;
  Knapsack& knapsack;
  LagrangianBound lagrangian_;
  int n;
  double max_key_sum = 0;  // upper bound on the sum of the keys of any window
  // If a caller has reduced the next group to sweep: the only slots that a better window may use,
  // by time, and the weights of their n - 1 heaviest nodes under the plan's multiplier.
  const std::vector<std::size_t>* listed_rows = nullptr;
  double listed_heaviest = 0;

 private:
  std::vector<double> heaviest_;  // weights of the current group in bound_plans()
  double min_span_ = 0;  // span of the fastest node
  double max_key_ = 0;  // largest key of any slot that may be in an answer
};

}  // namespace slotkern

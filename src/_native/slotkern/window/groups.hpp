// Finds the best window by a built-in criterion under group rules (slots/group_rules.hpp).
//
// Input: prepared slots, a query with rules. Output: as window/best.hpp, with its goals and its tie
// rule: the best value of the windows that obey the rules, then the earliest start, the lowest
// cost, the smallest node ids. By "first" the cheapest set that obeys the rules takes the place of
// the n cheapest slots.
//
// One pass over the slots by start keeps the live slots of each division in cost order. At each
// start at which a division has a new slot, the choice (window/group_choice.hpp) finds its cheapest
// set. Exact because (1) rules concern nodes only, so only a new slot can make a better set, and
// windows start at slots or at `earliest`; (2) a shorter longest part is found by dropping all
// slots that are no shorter and choosing again; (3) the n cheapest live slots of a division, and
// the zone map's test of a slot with the n - 1 cheapest nodes, are lower bounds on any set's cost;
// (4) a square window without a slot of its group's performance obeys the rules in its own, faster
// group too, at no higher cost. Cost: O(slots * (live slots of the division + choice)).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/best.hpp"
#include "slotkern/window/group_choice.hpp"

namespace slotkern {

namespace detail {

// Scratch memory of one thread; it only grows.
struct GroupScratch {
  GroupChoice choice;
  std::vector<std::vector<GroupCandidate>> live;  // [division]
  std::vector<std::size_t> ordered;  // [division]: candidates before it are in cost order
  std::vector<std::size_t> touched;  // divisions whose list is not empty
  std::vector<std::size_t> changed;  // divisions with a new slot at the current start
  std::vector<std::uint8_t> is_changed;  // [division]

  void reset(std::size_t divisions) {
    for (const std::size_t d : touched) live[d].clear();
    touched.clear(), changed.clear();
    if (live.size() < divisions) live.resize(divisions);
    ordered.assign(live.size(), 0);
    is_changed.assign(std::max(divisions, is_changed.size()), 0);
  }
  void add(std::size_t division, const GroupCandidate& candidate) {
    if (live[division].empty() && ordered[division] == 0) touched.push_back(division);
    live[division].push_back(candidate);
    ordered[division] = std::max<std::size_t>(ordered[division], 1);
  }
  // Sorts the list of a division, which is not empty, by (key, node id), and keeps those that pass.
  template <class Keep>
  std::vector<GroupCandidate>& order(std::size_t division, Keep keep) {
    std::vector<GroupCandidate>& list = live[division];
    const auto middle = list.begin() + static_cast<std::ptrdiff_t>(ordered[division]);
    const auto drops = [&](const GroupCandidate& c) { return !keep(c); };
    const auto kept = std::remove_if(list.begin(), middle, drops);
    auto added = std::remove_if(middle, list.end(), drops);
    if (kept != middle) added = std::move(middle, added, kept);
    if (!std::is_sorted(kept, added)) std::sort(kept, added);  // often in order of nodes
    std::inplace_merge(list.begin(), kept, added);
    list.erase(added, list.end());
    ordered[division] = std::max<std::size_t>(list.size(), 1);
    return list;
  }
};

inline GroupScratch& group_scratch() {
  static thread_local GroupScratch scratch;
  return scratch;
}

template <class Shape>
GroupCandidate candidate_of(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                            std::size_t row) {
  const Slot& s = prepared.slots[row];
  return {shape.key(s), shape.length(s), query.limit(s), row, s.node, s.place};
}

// The total cost of the chosen candidates.
template <class Shape>
double total_of(const Shape& shape, const GroupChoice& choice,
                const std::vector<GroupCandidate>& list) {
  return shape.total(exact_sum(choice.chosen.size(),
                               [&](std::size_t i) { return list[choice.chosen[i]].key; }));
}

// A lower bound on the total of any n of the candidates.
template <class Shape>
double floor_of(const Shape& shape, std::size_t n, const std::vector<GroupCandidate>& list) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += list[i].key;
  return shape.total(sum * (1 - kMargin));
}

}  // namespace detail

// One pass over the slots of a shape, like Sweep of window/sweep.hpp: improves goal.best.
template <class Shape, class Goal, class Criterion>
class GroupSweep {
 public:
  GroupSweep(const PreparedSlots& prepared, const Query& query, const Shape& shape,
             double least_others, Goal& goal, detail::GroupScratch& work)
      : prepared_(prepared), query_(query), rules_(*query.groups), shape_(shape),
        least_others_(least_others), goal_(goal), work_(work),
        n_(static_cast<std::size_t>(query.n)), shortest_(shape.shortest(prepared)),
        thresholds_(initial_thresholds(prepared, query, shape)) {
    thresholds_.end = std::max(thresholds_.end,
                               Shape::zone_map(prepared).ending(query.earliest + shortest_));
    work_.reset(rules_.divisions);
    update_threshold();
  }

  // Returns true if it found something better than goal.best.
  bool run() {
    Shape::zone_map(prepared_).each(
        prepared_.order, thresholds_, 0, prepared_.last_position(),
        [&](std::size_t row, std::size_t) { return visit_slot(row), !finished_; });
    if (!finished_) evaluate_step();
    return better_;
  }

 private:
  void visit_slot(std::size_t row) {
    const Slot& slot = prepared_.slots[row];
    const double t = query_.start_in(slot);
    if (t > t_) evaluate_step();
    if (finished_ || t > query_.latest || goal_.is_past(t, shortest_)) {
      finished_ = true;
      return;
    }
    const double length = shape_.length(slot);
    if (!(t + length <= query_.limit(slot)) || !query_.admits(slot, row) ||
        slot.performance < shape_.min_performance() || !goal_.is_useful(t, length))
      return;
    const GroupCandidate candidate = detail::candidate_of(prepared_, query_, shape_, row);
    if (!(candidate.key < kInfinity)) return;
    const std::size_t division = rules_.division_of(slot.place);
    work_.add(division, candidate);
    if (!work_.is_changed[division]) work_.changed.push_back(division);
    work_.is_changed[division] = 1;
    t_ = t, newest_row_ = row;
    if constexpr (Criterion::only_up_to_step) evaluate_step();
  }

  // Searches the divisions with new slots for sets that start at t_.
  void evaluate_step() {
    for (const std::size_t division : work_.changed) {
      work_.is_changed[division] = 0;
      if (!finished_) evaluate(division);
    }
    work_.changed.clear();
  }

  void evaluate(std::size_t division) {
    poll();
    for (;;) {
      // Drops the slots that have expired or cannot improve on the best window.
      const std::vector<GroupCandidate>& list = work_.order(division, [&](const auto& c) {
        return t_ + c.length <= c.end && goal_.is_useful(t_, c.length);
      });
      if (list.size() < n_) return;
      if (detail::floor_of(shape_, n_, list) > goal_.ceiling()) return;
      if (!work_.choice.choose(rules_, n_, list, false)) return;
      const double total = detail::total_of(shape_, work_.choice, list);
      if (!goal_.accepts(t_, total)) return;
      record(total, list);
      if ((finished_ = goal_.can_stop()) || !Goal::can_improve_at_same_time) return;
    }
  }

  void record(double total, const std::vector<GroupCandidate>& list) {
    Best& best = goal_.best;
    better_ = best.found = true;
    best.start = t_;
    best.total = total;
    best.longest = 0;
    for (const std::uint32_t i : work_.choice.chosen)
      best.longest = std::max(best.longest, list[i].length);
    best.finish = t_ + best.longest;
    best.defining_row = newest_row_;
    update_threshold();
  }

  void update_threshold() {
    thresholds_.key = max_index_key(shape_.to_index_units(goal_.ceiling()), least_others_);
  }

  const PreparedSlots& prepared_;
  const Query& query_;
  const GroupRules& rules_;
  const Shape& shape_;
  const double least_others_;  // lower bound on the index keys of any n - 1 live slots
  Goal& goal_;
  detail::GroupScratch& work_;
  const std::size_t n_;
  const double shortest_;
  Thresholds thresholds_;
  double t_ = -kInfinity;
  std::size_t newest_row_ = 0;
  bool finished_ = false, better_ = false;
};

// The search of one request.
template <class Criterion>
class GroupSearch {
 public:
  GroupSearch(const PreparedSlots& prepared, const Query& query, Workspace& work, Found& found)
      : prepared_(prepared), query_(query), rules_(*query.groups), work_(work),
        scratch_(detail::group_scratch()), n_(static_cast<std::size_t>(query.n)), found_(found) {}

  template <class Shape>
  bool ragged() {
    const Shape shape(query_);
    typename Criterion::RaggedRules::Goal goal{{query_.max_cost(), {}}};
    GroupSweep<Shape, decltype(goal), Criterion>(prepared_, query_, shape,
                                                 prepared_.min_rate_sum(n_ - 1), goal, scratch_)
        .run();
    if (!goal.best.found) return false;
    double cost = kInfinity;
    select_at(shape, goal.best, cost, [](double) { return true; });
    return any_;
  }

  bool square() {
    detail::compute_group_bounds(prepared_, query_, work_);
    bounds_ = work_.bounds;
    if (Criterion::value_is_cost)
      std::sort(bounds_.begin(), bounds_.end(), [](const auto& a, const auto& b) {
        return a.total < b.total || (a.total == b.total && a.group < b.group);
      });
    typename Criterion::SquareRules::Goal goal{{query_.max_cost(), {}}};
    const double first = std::max(prepared_.first_start(), query_.earliest);
    for (const Workspace::GroupBound& bound : bounds_) {
      poll();
      if (bound.total > goal.ceiling() || goal.is_past(first, bound.span)) continue;
      const Square shape = shape_of(bound);
      if (GroupSweep<Square, decltype(goal), Criterion>(prepared_, query_, shape,
                                                        bound.least_others, goal, scratch_)
              .run())
        goal.best.group = bound.group;
      if (Criterion::SquareRules::stops_at_first_group && goal.best.found) break;
    }
    const Best& best = goal.best;
    if (!best.found) return false;
    double cost = kInfinity;
    const auto select = [&](const Workspace::GroupBound& bound) {
      select_at(shape_of(bound), best, cost, [&](double performance) {
        return query_.length(performance) == bound.span;
      });
    };
    for (const Workspace::GroupBound& bound : bounds_)
      if (bound.group == best.group) select(bound);
    if (!Criterion::SquareRules::best_group_only)
      for (const Workspace::GroupBound& bound : bounds_)
        if (bound.group != best.group && !(bound.total > cost) &&
            Criterion::SquareRules::is_span_allowed(best, bound.span))
          select(bound);
    return any_;
  }

 private:
  Square shape_of(const Workspace::GroupBound& bound) const {
    return {bound.span, prepared_.groups[bound.group].performance};
  }

  // Replaces the window by the canonical one of this shape at best.start if that costs less than
  // `cost`, or as much with smaller node ids. `is_own(performance of the slowest node)`: false for
  // square windows of a faster group.
  template <class Shape, class IsOwn>
  void select_at(const Shape& shape, const Best& best, double& cost, IsOwn is_own) {
    scratch_.reset(rules_.divisions);
    const double t = best.start;
    Thresholds thresholds = thresholds_at(prepared_, query_, shape, t);
    Shape::zone_map(prepared_).each(
        prepared_.order, thresholds, detail::last_position_of<Criterion>(prepared_, best),
        [&](std::size_t row) {
          const Slot& s = prepared_.slots[row];
          if (!is_live(query_, shape, s, t) || !query_.admits(s, row) ||
              s.performance < shape.min_performance())
            return true;
          if constexpr (Shape::per_part_length)
            if (!Criterion::RaggedRules::is_part_allowed(best, t, shape.length(s))) return true;
          const GroupCandidate candidate = detail::candidate_of(prepared_, query_, shape, row);
          if (candidate.key < kInfinity)
            scratch_.add(rules_.division_of(s.place), candidate);
          return true;
        });
    for (const std::size_t division : scratch_.touched) {
      const std::vector<GroupCandidate>& list =
          scratch_.order(division, [](const GroupCandidate&) { return true; });
      if (list.size() < n_ || detail::floor_of(shape, n_, list) > cost) continue;
      poll();
      if (!scratch_.choice.choose(rules_, n_, list, true)) continue;
      const double total = detail::total_of(shape, scratch_.choice, list);
      if (total > std::min(cost, query_.max_cost())) continue;
      chosen_.clear();
      double slowest = kInfinity;
      for (const std::uint32_t i : scratch_.choice.chosen) {
        chosen_.push_back({list[i].key, list[i].row});
        slowest = std::min(slowest, prepared_.slots[list[i].row].performance);
      }
      if (!is_own(slowest)) continue;
      Found trial;
      detail::build_window(prepared_, shape, chosen_, n_, t, trial, work_.trial_parts,
                           work_.node_order);
      if (!Shape::per_part_length)
        trial.processor_time = static_cast<double>(n_) * trial.runtime;
      const auto by_node = [](const Part& a, const Part& b) { return a.node < b.node; };
      if (any_ && trial.cost == cost &&
          !std::lexicographical_compare(work_.trial_parts.begin(), work_.trial_parts.end(),
                                        work_.parts.begin(), work_.parts.end(), by_node))
        continue;
      any_ = true;
      cost = trial.cost;
      found_ = trial;
      work_.parts.swap(work_.trial_parts);
    }
  }

  const PreparedSlots& prepared_;
  const Query& query_;
  const GroupRules& rules_;
  Workspace& work_;
  detail::GroupScratch& scratch_;
  const std::size_t n_;
  Found& found_;
  std::vector<Workspace::GroupBound> bounds_;
  std::vector<Entry> chosen_;
  bool any_ = false;  // found_ and work_.parts hold a window
};

}  // namespace slotkern

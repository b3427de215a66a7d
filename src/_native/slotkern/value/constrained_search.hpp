// The best window by a sum of values under constraints on other sums over its parts.
//
// Like value/search.hpp, but each step solves a multidimensional knapsack. If values are constant
// in time, a better set contains the new slot (or any of the new slots, if there are many). If
// values change with time, each start considers all sets. A slot is skipped if it exceeds a
// constraint with any n - 1 others of its group, or cannot win with the best others: by their
// values, or by Lagrangian weights, which charge the constraints (window/lagrangian_filter.hpp) at
// the multipliers of the best set so far. Square windows: each performance group is searched with
// its own length. O(slots * constraints) a group, and a step if bounds decide it. If the work limit
// is reached, the answer is not proven; its bound is still valid.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "slotkern/value/live_slots.hpp"
#include "slotkern/value/sources.hpp"
#include "slotkern/value/starts.hpp"
#include "slotkern/window/lagrangian_filter.hpp"

namespace slotkern {

template <class Shape>
class ConstrainedValueSearch {
 public:
  Fault fault;
  Effort effort;
  bool proven = true;
  double best = -kInfinity, bound = -kInfinity;  // totals; larger is better
  double start = 0;

  ConstrainedValueSearch(const PreparedSlots& prepared, const Query& query, const AnySource& source,
               const ValueOptions& options, ValueWorkspace& work)
      : prepared_(prepared), query_(query), source_(source), options_(options), w_(work),
        scratch_(constrained_scratch()), n_(static_cast<std::size_t>(query.n)) {
    scratch_.knapsack.work = 0;
  }

  // Returns false if there is no window, or at a fault; else work.chosen holds the rows of the best
  // one.
  bool run() {
    w_.chosen.clear();
    if constexpr (Shape::per_part_length) {
      if (!sweep(Shape(query_))) return false;
    } else {
      detail::compute_group_bounds(prepared_, query_, w_.base);
      const std::vector<Workspace::GroupBound> groups = w_.base.bounds;
      for (const Workspace::GroupBound& group : groups)
        if (!(group.total > query_.max_cost()) &&
            !sweep(Square{group.span, prepared_.groups[group.group].performance}))
          return false;
    }
    effort.work = scratch_.knapsack.work;
    if (w_.chosen.empty()) return false;
    scratch_.knapsack.scale = scale_;
    bound = std::max(bound, best + std::max(std::max(options_.gap, 1e-12) * std::fabs(best),
                                            scratch_.knapsack.rounding(static_cast<int>(n_),
                                                                       best)));
    return true;
  }

 private:
  // Searches the windows of one shape. Returns false at a fault.
  bool sweep(const Shape& shape) {
    ++effort.groups;
    ConstrainedLiveSet<Shape> live(prepared_, query_, shape, scratch_);
    if (!collect(shape, live)) return false;
    if (!(total_bound_ > best)) return true;
    if (is_over_limit()) return mark_unproven();
    filter_.discard();
    knapsacks_ = 0, is_finished_ = false;
    build_filter();
    return source_.moving ? sweep_starts(shape, live) : sweep_newest(shape, live);
  }

  // Collects the slots that a window may use, by time, if they may make a better one. Returns false
  // at a fault, also if a user's function fails for a slot that the sweep would not need.
  bool collect(const Shape& shape, ConstrainedLiveSet<Shape>& live) {
    rows_.clear(), upper_.clear();
    prepared_.each_row([&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      if (fault.status != Status::ok || !live.is_live(s, row, query_.start_in(s))) return;
      poll();
      double z = 0;
      if (!source_.upper_bound(s, row, shape.length(s), z))
        fail(row);  // ends the search
      rows_.push_back(row), upper_.push_back(z);
    });
    if (fault.status != Status::ok) return false;
    bound_values(rows_, upper_);
    if (!(total_bound_ > best)) return true;
    ConstrainedParts& all = scratch_.all;
    ConstrainedPart part;
    std::size_t count = 0;
    all.limits = query_.limits->all.size();
    all.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (live.measure(rows_[i], part, upper_[i]))
        all.put(count++, part);
      else if (live.failed == rows_[i])
        return fail(rows_[i], Status::limit_failed);
    }
    all.resize(count);
    max_key_sum_ = live.max_key_sum(query_.max_cost());
    for (std::size_t k = 0; k < all.limits; ++k)
      drop_heavy(all.use[k], query_.limits->all[k].upper_amount());
    drop_heavy(all.key, max_key_sum_);
    bound_values(all.row, all.value);
    return true;
  }

  // Removes the collected slots that exceed one constraint with any n - 1 others.
  void drop_heavy(const std::vector<double>& use, double amount) {
    ConstrainedParts& all = scratch_.all;
    double size = std::fabs(amount);
    if (!(size < kMaxValue)) return;
    least_of_nodes_.assign(prepared_.nodes.size(), kInfinity);
    for (std::size_t j = 0; j < all.size(); ++j) {
      double& least = least_of_nodes_[static_cast<std::size_t>(prepared_.slots[all.row[j]].place)];
      least = std::min(least, use[j]);
      size = std::max(size, std::fabs(use[j]));
    }
    const auto others = least_of_nodes_.begin() + static_cast<std::ptrdiff_t>(n_ - 1);
    std::nth_element(least_of_nodes_.begin(), others, least_of_nodes_.end());
    double sum = 0;
    for (auto it = least_of_nodes_.begin(); it != others; ++it) sum += *it;
    const double n = static_cast<double>(n_), margin = 0x1p-48 * (n + 16) * (n + 4) * size;
    std::size_t kept = 0;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (!(use[j] + sum > amount + margin)) {
        if (kept != j) all.move(j, kept);
        ++kept;
      }
    all.resize(kept);
  }

  // Bounds the values of any n of these slots, and of any n - 1; -inf if they are on fewer nodes.
  void bound_values(const std::vector<std::size_t>& rows, const std::vector<double>& values) {
    total_bound_ = others_bound_ = -kInfinity;
    node_values_.assign(prepared_.nodes.size(), -kInfinity);
    for (std::size_t j = 0; j < rows.size(); ++j) {
      double& most = node_values_[static_cast<std::size_t>(prepared_.slots[rows[j]].place)];
      most = std::max(most, values[j]);
    }
    std::erase(node_values_, -kInfinity);
    if (node_values_.size() < n_) return;
    std::partial_sort(node_values_.begin(), node_values_.begin() + static_cast<std::ptrdiff_t>(n_),
                      node_values_.end(), std::greater<>());
    double size = 0;
    others_bound_ = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      size += std::fabs(node_values_[i]);
      if (i + 1 < n_) others_bound_ += node_values_[i];
    }
    others_bound_ += 0x1p-50 * (static_cast<double>(n_) + 4) * size;  // margin for rounding
    total_bound_ = others_bound_ + node_values_[n_ - 1];
    if (std::isnan(others_bound_) || std::isnan(total_bound_))
      others_bound_ = total_bound_ = kInfinity;
  }

  // Builds the filter from the multipliers of the last knapsack that was relaxed, if any was. Any
  // multipliers give valid bounds; those of a good set give tight ones.
  void build_filter() {
    if (!has_multipliers_ || !std::isfinite(total_bound_)) return;
    filter_.build_from_multipliers(prepared_, query_, multipliers_, max_key_sum_);
    knapsacks_ = 0, is_filter_outdated_ = false;
    is_finished_ = filter_.prunes_all(-best);
  }

  // Returns true if no window with the collected slot j is better than the best one.
  bool is_pruned(std::size_t j) const {
    return is_finished_ || scratch_.all.value[j] + others_bound_ <= best ||
           (filter_.built() && filter_.prunes_weight(scratch_.weight[j], -best));
  }

  // Sweep for values that are constant in time: new slots join, then their sets are searched.
  bool sweep_newest(const Shape& shape, ConstrainedLiveSet<Shape>& live) {
    const ConstrainedParts& all = scratch_.all;
    t_ = -kInfinity, new_slots_ = 0;
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (is_pruned(j)) continue;
      const std::size_t row = all.row[j];
      const Slot& s = prepared_.slots[row];
      const double t = query_.start_in(s);
      poll();
      if (t > t_) choose_new(live);
      if (is_over_limit()) return mark_unproven();
      live.expire(t);
      if (t > t_) knapsacks_at_start_ = 0;
      t_ = t;
      double z = 0;
      if (!source_.value(s, row, t, shape.length(s), z)) return fail(row);
      live.add_collected(j, z);
      scale_.add(z);
      ++new_slots_;
      if (knapsacks_at_start_++ < detail::kOneByOne) choose_new(live);
    }
    choose_new(live);
    return true;
  }

  // Searches the sets that start at t_: those with the newest slot if it is the only new one, else
  // any.
  void choose_new(ConstrainedLiveSet<Shape>& live) {
    if (new_slots_ > 0 && live.size() >= n_) choose(live, new_slots_ == 1, t_);
    new_slots_ = 0;
  }

  // Sweep for values that change with time: each candidate start searches all live sets.
  bool sweep_starts(const Shape& shape, ConstrainedLiveSet<Shape>& live) {
    const ConstrainedParts& all = scratch_.all;
    list_starts(prepared_, query_, shape, options_.any_start, w_.times);
    std::size_t next = 0;
    for (const double t : w_.times) {
      if (t > query_.latest) break;
      poll();
      for (; next < all.size(); ++next) {
        const Slot& s = prepared_.slots[all.row[next]];
        if (!(query_.start_in(s) <= t)) break;
        if (!is_pruned(next) && live.is_live(s, all.row[next], t))
          live.add_collected(next, all.value[next]);
      }
      live.expire(t);
      if (live.size() < n_) continue;
      if (is_over_limit()) return mark_unproven();
      for (std::size_t j = 0; j < live.size(); ++j) {
        const std::size_t row = live.row(static_cast<int>(j));
        const Slot& s = prepared_.slots[row];
        if (!source_.value(s, row, t, shape.length(s), scratch_.live.value[j])) return fail(row);
        scale_.add(scratch_.live.value[j]);
      }
      choose(live, false, t);
    }
    return true;
  }

  // Solves the knapsack of the live slots at t, if it may win; forces in the newest if `forced`.
  void choose(ConstrainedLiveSet<Shape>& live, bool forced, double t) {
    ++effort.steps;
    if (effort.steps == kLong) enable_interrupts();
    if (!can_improve(forced)) return;
    ++effort.subsets;
    if (++knapsacks_ >= kKnapsacksPerFilter && is_filter_outdated_) build_filter();
    const std::int64_t work_before = scratch_.knapsack.work;
    const bool any =
        live.solve(scratch_.live.value, source_.integral, forced, query_.max_cost(), best,
                   options_.gap, options_.limits.work);
    if (!scratch_.knapsack.complete) {
      proven = false;
      bound = std::max(bound, scratch_.knapsack.bound);
    }
    if (!any) return;
    best = scratch_.knapsack.best;
    start = t;
    w_.chosen.clear();
    for (const int j : live.chosen) w_.chosen.push_back(live.row(j));
    if (scratch_.knapsack.work > work_before) {  // else no relaxation was solved
      multipliers_ = scratch_.knapsack.multipliers();
      has_multipliers_ = is_filter_outdated_ = true;
    }
  }

  // True if the n best live slots, or the newest and n - 1 others, may beat the best window: by
  // their weights once there are some, and by their values.
  bool can_improve(bool forced) {
    const ConstrainedParts& live = scratch_.live;
    const std::size_t others = live.size() - (forced ? 1 : 0), count = forced ? n_ - 1 : n_;
    if (others < count) return false;
    if (filter_.built()) {
      node_values_.clear();
      for (std::size_t j = 0; j < others; ++j)
        node_values_.push_back(scratch_.weight_by_row[live.row[j]]);
      const double newest = forced ? scratch_.weight_by_row[live.row.back()] : 0;
      const double sum = newest + sum_of_first(node_values_, count, std::less<>());
      if (filter_.prunes_sum(sum - filter_.offset(), -best)) return false;
      if (!source_.moving) return true;  // the weights include the values
    }
    if (best == -kInfinity) return true;
    node_values_.assign(live.value.begin(),
                        live.value.begin() + static_cast<std::ptrdiff_t>(others));
    double sum = sum_of_first(node_values_, count, std::greater<>());
    double size = 0;
    for (std::size_t j = 0; j < count; ++j) size += std::fabs(node_values_[j]);
    if (forced) sum += live.value.back(), size += std::fabs(live.value.back());
    return sum + 0x1p-50 * (static_cast<double>(n_) + 4) * size > best;
  }

  // Moves the first `count` numbers of the order to the front and returns their sum.
  template <class Order>
  static double sum_of_first(std::vector<double>& numbers, std::size_t count, Order order) {
    const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(numbers.begin(), end, numbers.end(), order);
    return std::accumulate(numbers.begin(), end, 0.0);
  }

  // True if the work limit, with its tolerance, is exceeded.
  bool is_over_limit() const {
    return static_cast<double>(scratch_.knapsack.work) >
           static_cast<double>(options_.limits.work) * (1 + kWorkTolerance) + kMinWork;
  }

  // Abandons the shape: no window of it is worth more than the n most valuable slots.
  bool mark_unproven() {
    proven = false;
    bound = std::max(bound, total_bound_);
    return true;
  }

  bool fail(std::size_t row, Status status = Status::criterion_failed) {
    fault = {status, prepared_.origin(row), 0};
    return false;
  }

  static constexpr std::int64_t kLong = 64;
  static constexpr int kKnapsacksPerFilter = 16;  // fewer cost less than a filter

  const PreparedSlots& prepared_;
  const Query& query_;
  const AnySource& source_;
  const ValueOptions& options_;
  ValueWorkspace& w_;
  ConstrainedScratch& scratch_;
  const std::size_t n_;
  ValueScale scale_;
  LagrangianFilter filter_{scratch_};  // of the current shape
  Amounts multipliers_{};  // of the knapsack of the best window
  bool has_multipliers_ = false, is_filter_outdated_ = false;
  int knapsacks_ = 0;  // knapsacks since the filter was built
  bool is_finished_ = false;  // no window of the shape is better than the best one
  std::vector<std::size_t> rows_;
  std::vector<double> upper_, node_values_, least_of_nodes_;
  double max_key_sum_ = kInfinity;  // constraint on the cost of the shape
  double t_ = -kInfinity;
  int knapsacks_at_start_ = 0;  // knapsacks solved at t_
  std::size_t new_slots_ = 0;  // number of slots added at t_
  // upper bounds on the value of any n slots, and of any n - 1 slots
  double total_bound_ = 0, others_bound_ = 0;
};

}  // namespace slotkern

// The best window by a sum of values under constraints on other sums over its parts.
//
// Like value/search.hpp, but each step solves a multidimensional knapsack. If values are constant
// in time, a better set contains the new slot (or any of the new slots, if there are many), and a
// slot is skipped if it cannot win with the n - 1 best others of its group. If values change with
// time, each start considers all sets. Square windows: each performance group is searched with its
// own length. O(live slots * constraints) a step if bounds decide it. If the work limit is reached,
// the answer is not proven; its bound is still valid.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "slotkern/value/live_slots.hpp"
#include "slotkern/value/sources.hpp"
#include "slotkern/value/starts.hpp"
#include "slotkern/window/constrained_live_set.hpp"

namespace slotkern {

template <class Shape, class Source>
class ConstrainedValueSearch {
 public:
  Fault fault;
  Effort effort;
  bool proven = true;
  double best = -kInfinity, bound = -kInfinity;  // totals; larger is better
  double start = 0;

  ConstrainedValueSearch(const PreparedSlots& prepared, const Query& query, const Source& source,
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
    if (!list(shape, live)) return false;
    if (!(total_bound_ > best)) return true;
    if (is_over_limit()) return mark_unproven();
    if constexpr (Source::moving)
      return sweep_starts(shape, live);
    else
      return sweep_newest(shape, live);
  }

  // Lists the rows that a window may use, by time, and bounds the values of each row, of any n
  // rows, and of any n - 1 rows. Returns false at a fault.
  bool list(const Shape& shape, const ConstrainedLiveSet<Shape>& live) {
    rows_.clear(), upper_.clear();
    node_values_.assign(prepared_.nodes.size(), -kInfinity);
    prepared_.each_row([&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      if (fault.status != Status::ok || !live.is_live(s, row, query_.start_in(s))) return;
      poll();
      double z = 0;
      if (!source_.upper_bound(s, row, shape.length(s), z)) {
        fail(row);
        return;
      }
      rows_.push_back(row), upper_.push_back(z);
      double& max_value = node_values_[static_cast<std::size_t>(s.place)];
      max_value = std::max(max_value, z);
    });
    std::erase(node_values_, -kInfinity);
    total_bound_ = others_bound_ = -kInfinity;
    if (fault.status != Status::ok || node_values_.size() < n_) return fault.status == Status::ok;
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
    return true;
  }

  // Sweep for values that are constant in time: new slots join, then their sets are searched.
  bool sweep_newest(const Shape& shape, ConstrainedLiveSet<Shape>& live) {
    t_ = -kInfinity, new_slots_ = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (upper_[i] + others_bound_ <= best) continue;
      const std::size_t row = rows_[i];
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
      if (!live.add(row, z)) {
        if (live.failed == row) return fail(row, Status::limit_failed);
        continue;
      }
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
    list_starts(prepared_, query_, shape, options_.any_start, w_.times);
    std::size_t next = 0;
    for (const double t : w_.times) {
      if (t > query_.latest) break;
      poll();
      for (; next < rows_.size() && query_.start_in(prepared_.slots[rows_[next]]) <= t; ++next) {
        const std::size_t row = rows_[next];
        if (upper_[next] + others_bound_ <= best || !live.is_live(prepared_.slots[row], row, t))
          continue;
        if (!live.add(row) && live.failed == row) return fail(row, Status::limit_failed);
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
    const bool any =
        live.solve(scratch_.live.value, Source::integral, forced, query_.max_cost(), best,
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
  }

  // True if the n most valuable live slots, or the newest and n - 1 others, may beat the best
  // window.
  bool can_improve(bool forced) {
    if (best == -kInfinity) return true;
    std::vector<double>& values = node_values_;
    values.assign(scratch_.live.value.begin(), scratch_.live.value.end() - (forced ? 1 : 0));
    const std::size_t count = forced ? n_ - 1 : n_;
    if (values.size() < count) return false;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(values.begin(), middle, values.end(), std::greater<>());
    double sum = forced ? scratch_.live.value.back() : 0, size = std::fabs(sum);
    for (auto it = values.begin(); it != middle; ++it) sum += *it, size += std::fabs(*it);
    return sum + 0x1p-50 * (static_cast<double>(n_) + 4) * size > best;
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

  const PreparedSlots& prepared_;
  const Query& query_;
  const Source& source_;
  const ValueOptions& options_;
  ValueWorkspace& w_;
  ConstrainedScratch& scratch_;
  const std::size_t n_;
  ValueScale scale_;
  std::vector<std::size_t> rows_;
  std::vector<double> upper_, node_values_;
  double t_ = -kInfinity;
  int knapsacks_at_start_ = 0;  // knapsacks solved at t_
  std::size_t new_slots_ = 0;  // number of slots added at t_
  // upper bounds on the value of any n slots, and of any n - 1 slots
  double total_bound_ = 0, others_bound_ = 0;
};

}  // namespace slotkern

// Computes a bound that no schedule of a batch can beat, whichever alternatives it considers.
//
// For each job alone on all the free time: the least sum of target + lambda * expense over n slots
// that are live together, without budgets and without the other jobs. For every lambda >= 0 the
// sum over the jobs, minus lambda * limit, is a lower bound of the target of every schedule within
// the limit (Lagrangian relaxation). As a function of lambda it is concave, so a bisection by the
// sign of (expense of the minima - limit) finds the best lambda.
// Under tariffs the cost of a part is bounded over all its starts in the slot.
// Cost: one sweep of all slots for each job and lambda, O(kSteps * jobs * m log n).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "slotkern/batch/batch.hpp"
#include "slotkern/tariff/integral_range.hpp"

namespace slotkern {

// Computes the bound for one batch.
class BatchBound {
 public:
  BatchBound(const PreparedSlots& prepared, const std::vector<BatchJob>& jobs,
             const BatchRules& rules)
      : prepared_(prepared), jobs_(jobs), rules_(rules), sign_(rules.maximize ? -1 : 1) {}

  // Returns the bound in the direction of the target; infinite if some job fits nowhere.
  double compute(double limit) {
    double expense = 0;
    double bound = dual_value(0, limit, expense);
    if (!rules_.limited || std::isinf(bound) || !(expense > limit)) return sign_ * bound;
    double low = 0, high = 1;
    for (int step = 0; step < 60; ++step, high *= 4) {
      bound = std::max(bound, dual_value(high, limit, expense));
      if (!(expense > limit)) break;
      low = high;
    }
    for (int step = 0; step < kSteps; ++step) {
      const double middle = (low + high) / 2;
      bound = std::max(bound, dual_value(middle, limit, expense));
      (expense > limit ? low : high) = middle;
    }
    return sign_ * bound;
  }

 private:
  static constexpr int kSteps = 30;
  static constexpr std::size_t kMaxCached = std::size_t{1} << 22;  // values of parts, 64 MiB

  // Returns a lower bound on the contribution of a part on the slot; an upper one if not `least`.
  double part_value(const Measure& measure, const Query& query, const Slot& slot, std::size_t row,
                    bool least) const {
    if (measure.kind == Measure::column) return measure.values[row];
    double performance = slot.performance;
    if (rules_.shape == ShapeKind::square && !least)  // the part may run as long as on the slowest
      performance = std::max(query.min_performance, prepared_.nodes.back().performance);
    const double length = query.length(performance);
    if (measure.kind != Measure::cost) return length;
    return prepared_.tariffs ? cost_under_tariffs(query, slot, length, least)
                             : length * slot.price;
  }

  // Lower (or upper) bound on the cost of a part of `length` that starts anywhere in the slot.
  double cost_under_tariffs(const Query& query, const Slot& slot, double length,
                            bool least) const {
    const double first = query.start_in(slot);
    const double last = std::min(query.latest, query.limit(slot) - query.length(slot.performance));
    const Tariff& tariff = prepared_.tariffs->tariffs().at(static_cast<std::size_t>(slot.place));
    const IntegralRange range = integral_range(tariff, first, std::max(first, last), length);
    return slot.price * (least ? range.least : range.most);
  }

  struct PartValues {
    double expense, target;
  };
  // Returns the values of a part of a job. Under tariffs they are cached for the next lambda,
  // because each takes a pass over the breakpoints of the slot; up to kMaxCached values, to bound
  // memory.
  PartValues values_of(std::size_t job, const Query& query, const Slot& slot, std::size_t row) {
    const auto compute = [&] {
      return PartValues{part_value(rules_.expense, query, slot, row, true),
                        sign_ * part_value(rules_.target, query, slot, row, !rules_.maximize)};
    };
    const std::size_t at = job * prepared_.slots.size() + row;
    if (!prepared_.tariffs || at >= kMaxCached) return compute();
    if (cached_.empty())
      cached_.assign(std::min(jobs_.size() * prepared_.slots.size(), kMaxCached),
                     {std::numeric_limits<double>::quiet_NaN(), 0});
    PartValues& values = cached_[at];
    if (std::isnan(values.expense)) values = compute();
    return values;
  }

  // Returns the Lagrangian bound for this lambda, and the expense of the minima in `expense`.
  double dual_value(double lambda, double limit, double& expense) {
    double sum = 0;
    expense = 0;
    for (std::size_t job = 0; job < jobs_.size(); ++job)
      sum += min_sum_of_job(job, prepared_.normalized_for_search(jobs_[job].query), lambda,
                            expense);
    return sum - (rules_.limited ? lambda * limit : 0);
  }

  // Returns the least sum of one job alone, and adds its expense to `expense`.
  double min_sum_of_job(std::size_t job, const Query& query, double lambda, double& expense) {
    const std::size_t n = static_cast<std::size_t>(query.n);
    double best = kInfinity, spent = 0;
    live_.clear();
    poll();
    for (std::size_t row = 0; row < prepared_.slots.size(); ++row) {
      const Slot& slot = prepared_.slots[row];
      const double t = query.start_in(slot), length = query.length(slot.performance);
      if (!(t + length <= query.limit(slot)) || !query.admits(slot, row)) continue;
      const auto [cost, target] = values_of(job, query, slot, row);
      const LiveSlot live{target + lambda * cost, cost, query.limit(slot) - length};
      live_.insert(
          std::upper_bound(live_.begin(), live_.end(), live,
                           [](const LiveSlot& a, const LiveSlot& b) { return a.key < b.key; }),
          live);
      // Remove slots that end too early to start now. The tolerance only loosens the bound.
      std::erase_if(live_, [t](const LiveSlot& x) {
        return x.last < t - 4 * 0x1p-52 * std::fabs(t);
      });
      if (live_.size() < n) continue;
      double key = 0, cost_sum = 0;
      for (std::size_t i = 0; i < n; ++i) key += live_[i].key, cost_sum += live_[i].expense;
      if (key < best) best = key, spent = cost_sum;
    }
    // The cost of a window cannot exceed its budget.
    if (rules_.maximize && rules_.target.kind == Measure::cost && lambda == 0)
      best = std::max(best, -query.max_cost());
    expense += spent;
    return best;
  }

  // A slot on which a part of the job can start now.
  struct LiveSlot {
    double key, expense, last;  // last: the latest start of a part on the slot
  };

  const PreparedSlots& prepared_;
  const std::vector<BatchJob>& jobs_;
  const BatchRules& rules_;
  const double sign_;
  std::vector<LiveSlot> live_;  // by ascending key
  std::vector<PartValues> cached_;  // [job][row] under tariffs; expense NaN: not computed
};

// Computes the bound of a batch, for rules.limit.
inline Status bound_batch(const PreparedSlots& prepared, const std::vector<BatchJob>& jobs,
                          const BatchRules& rules, double& bound) noexcept {
  return guarded([&] {
    if (jobs.size() * prepared.slots.size() > kLongCallPairs) enable_interrupts();
    bound = BatchBound(prepared, jobs, rules).compute(rules.limit);
    return Status::ok;
  });
}

}  // namespace slotkern

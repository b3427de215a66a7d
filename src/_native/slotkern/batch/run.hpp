// Entry points of batches: schedule_batch() computes a schedule, execute_batch() executes one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/backfill.hpp"
#include "slotkern/batch/execution.hpp"

namespace slotkern {

// Schedules the whole batch: slices, then backfilling by the criterion `earliest`.
inline Status schedule_batch(const PreparedSlots& base, const std::vector<BatchJob>& jobs,
                             const BatchRules& rules, Backfill backfill, int earliest,
                             BatchAnswer& out) noexcept {
  return guarded([&] {
    static thread_local Batch batch;
    const Status status = batch.run(base, jobs, rules, out);
    if (status != Status::ok || backfill == Backfill::none || base.slots.empty()) return status;
    const std::size_t first = rules.slices.back();
    if (backfill == Backfill::conservative) return batch.backfill(first, earliest);
    const std::vector<double> shares(jobs.size(), 1.0);
    Execution queue(batch.free, jobs, rules.shape, earliest, shares.data());
    for (std::size_t j = 0; j < first; ++j) {
      if (out.chosen[j] < 0) {
        queue.mark_failed(j);
        continue;
      }
      const auto a = static_cast<std::size_t>(out.chosen[j]);
      queue.record_window(j, out.alternatives.found[a], out.alternatives.parts_of(a),
                          out.alternatives.count(a));
    }
    if (const Status done = queue.run_easy(base); done != Status::ok) return done;
    ExecutionAnswer found;
    queue.answer(found);
    for (std::size_t j = first; j < jobs.size(); ++j) {
      out.reasons[j] = found.reasons[j];
      if (!found.windows.any(j)) continue;
      out.chosen[j] = static_cast<std::int64_t>(out.alternatives.size());
      out.alternatives.add_from(found.windows, j);
      out.owner.push_back(static_cast<std::int64_t>(j));
    }
    return Status::ok;
  });
}

// Executes a schedule on all slots. `planned`: each job's row in `windows`, or -1. With
// backfilling all but the first `fixed` jobs may move earlier, and jobs without a window queue.
inline Status execute_batch(const PreparedSlots& base, const std::vector<BatchJob>& jobs,
                            ShapeKind shape, Backfill backfill, int earliest,
                            const WindowTable& windows, const std::int64_t* planned,
                            std::size_t fixed, const double* shares,
                            ExecutionAnswer& out) noexcept {
  return guarded([&] {
    static thread_local BatchPool free;
    out.windows.clear(), out.promised.clear(), out.reasons.clear();
    if (jobs.size() * base.slots.size() > kLongCallPairs) enable_interrupts();
    if (base.slots.empty()) {
      for (std::size_t j = 0; j < jobs.size(); ++j) out.windows.add_none();
      out.promised.assign(jobs.size(), std::numeric_limits<double>::quiet_NaN());
      out.reasons.assign(jobs.size(), static_cast<std::uint8_t>(Reason::nodes));
      return Status::ok;
    }
    free.open(base, jobs, backfill != Backfill::none);
    Execution run(free, jobs, shape, earliest, shares);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (planned[j] >= 0) {
        const auto i = static_cast<std::size_t>(planned[j]);
        const Status placed =
            run.book_window(j, windows.found[i], windows.parts_of(i), windows.count(i));
        if (placed != Status::ok) return placed;
      } else if (j < fixed) {
        run.mark_failed(j);
      }
    }
    Status status = Status::ok;
    if (backfill == Backfill::conservative)
      status = run.run_conservative(fixed);
    else if (backfill == Backfill::easy)
      status = run.run_easy(base);
    else
      run.run_reserved();
    if (status == Status::ok) run.answer(out);
    return status;
  });
}

}  // namespace slotkern

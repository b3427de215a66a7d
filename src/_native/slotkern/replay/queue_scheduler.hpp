// Schedulers that examine their queue at each event: first come first served, EASY backfilling and
// first fit, for any order of the queue.
//
// A job fits at t if its processors are free in [t, t + estimate), given the estimates of running
// jobs and the blocked spans. Jobs start from the head of the queue while they fit. Then
//   none       no other job starts;
//   easy       the head gets a reservation at its shadow time, the earliest time at which it fits;
//              in queue order, each job starts that fits without delaying this reservation;
//   first_fit  in queue order, each job starts that fits.
// (Lifka 1995; Mu'alem and Feitelson 2001, section 2, for one order and no blocked time.)
//
// Why the short tests are exact. If no blocked span lies ahead, the number of free processors only
// grows. So a job fits if it fits now, and the shadow time is the first change at which enough
// processors are free, after all changes of that time. A job does not delay the head if it ends by
// the shadow time or is no wider than the processors left by the head then (`extra`). A refused
// job stays refused until capacity grows, so otherwise only new jobs are tested. With blocked spans
// ahead, the capacity changes are walked instead.
// Cost of a pass: O(q) vectorized, plus O(running jobs) when the shadow time changes.
#pragma once

#include <vector>

#include "slotkern/base/backfill.hpp"
#include "slotkern/replay/capacity_changes.hpp"
#include "slotkern/replay/waiting.hpp"

namespace slotkern::replay {

// A scheduler (concept Scheduler) with at most one reservation, that of the head.
class QueueScheduler {
 public:
  QueueScheduler(const JobColumns& jobs, std::int32_t processors, const QueueOrder& order,
                 Backfill backfill, const std::vector<BlockedSpan>& blocked)
      : jobs_(jobs), waiting_(jobs, order), backfill_(backfill), free_(processors),
        started_(jobs.size) {
    for (const BlockedSpan& span : blocked) {
      changes_.add({span.start, -span.width});
      changes_.add({span.end, span.width});
      block_edges_.push_back(span.start);
      block_edges_.push_back(span.end);
    }
    std::sort(block_edges_.begin(), block_edges_.end(), std::greater<>());
  }

  std::size_t waiting() const { return waiting_.size(); }

  // Returns the next edge of a blocked span, at which jobs may start without an event; or kNever.
  double next_wakeup() const { return block_edges_.empty() ? kNever : block_edges_.back(); }

  void on_submit(JobId job, double) { first_new_ = std::min(first_new_, waiting_.add(job)); }

  // Removes a waiting job. The reservation of a withdrawn head ends at the next pass.
  void on_withdraw(JobId job, double) { waiting_.remove(job); }

  void on_end(JobId job, double now) {
    const double promised = started_[job] + jobs_.estimate[job];
    changes_.remove({promised, jobs_.width[job]});
    free_ += jobs_.width[job];
    if (promised != now) shadow_valid_ = false;  // an end on time is part of the shadow already
    capacity_grew_ = true;
  }

  // Calls start(job) for each job that starts now. All ends at `now` must have been reported.
  template <class Start>
  void start_jobs(double now, Start start) {
    apply_past_changes(now);
    if (waiting_.empty()) return;
    if (waiting_.has_changing_keys()) {
      waiting_.sort(now);
      first_new_ = head_ = 0;
    }
    const bool head_changed = start_heads(now, start);
    if (head_changed) shadow_valid_ = false;
    if (backfill_ != Backfill::none && free_ > 0 && !waiting_.empty())
      backfill_jobs(now,
                    head_changed || capacity_grew_ ? head_ + 1 : std::max(first_new_, head_ + 1),
                    start);
    first_new_ = kNone;
    capacity_grew_ = false;
    if (waiting_.compact_if_sparse()) head_ = 0;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // Applies the edges of blocked spans and the capacity changes up to `now`.
  void apply_past_changes(double now) {
    while (!block_edges_.empty() && block_edges_.back() <= now) {
      block_edges_.pop_back();
      shadow_valid_ = false;
      capacity_grew_ = true;
    }
    while (!changes_.empty() && changes_.begin()->time <= now) {
      free_ += changes_.begin()->width;
      changes_.remove(*changes_.begin());
    }
  }

  // Starts jobs from the head on while they fit. Returns true if the head is another job now.
  template <class Start>
  bool start_heads(double now, Start& start) {
    const bool overtaken = first_new_ <= head_;
    std::size_t i = std::min(first_new_, head_);
    const std::size_t old = i;
    while (i < waiting_.num_entries() &&
           (waiting_.is_tombstone(i) || fits(now, waiting_.widths()[i], waiting_.estimates()[i]))) {
      if (!waiting_.is_tombstone(i)) start_at(i, now, start);
      ++i;
    }
    head_ = i;
    return overtaken || i != old;
  }

  template <class Start>
  void start_at(std::size_t i, double now, Start& start) {
    const JobId job = waiting_.job(i);
    const std::int32_t width = jobs_.width[job];
    waiting_.remove_at(i);
    free_ -= width;
    changes_.add({now + jobs_.estimate[job], width});
    started_[job] = now;
    start(job);
  }

  // Starts jobs from entry i on that fit, in queue order.
  template <class Start>
  void backfill_jobs(double now, std::size_t i, Start& start) {
    const std::size_t end = waiting_.num_entries();
    if (i >= end) return;  // no job to test
    i = detail::first_at_most(waiting_.widths(), i, end, free_);
    if (i >= end) return;
    const bool reserve_head = backfill_ == Backfill::easy;
    if (reserve_head && !shadow_valid_) find_shadow(now);
    if (!block_edges_.empty()) {  // capacity may shrink
      for (; i < end; i = detail::first_at_most(waiting_.widths(), i + 1, end, free_))
        if (fits_beside(now, waiting_.widths()[i], waiting_.estimates()[i], reserve_head))
          start_at(i, now, start);
      return;
    }
    const double until = reserve_head ? shadow_ : kNever;
    const auto next = [&](std::size_t from) {
      return detail::first_backfill(waiting_.widths(), waiting_.estimates(), from, end, free_,
                                    now, until, extra_);
    };
    for (i = next(i); i < end; i = free_ > 0 ? next(i + 1) : end) {
      if (!(now + waiting_.estimates()[i] <= until)) extra_ -= waiting_.widths()[i];
      start_at(i, now, start);
    }
  }

  bool fits(double now, std::int32_t width, double estimate) const {
    if (width > free_) return false;
    return block_edges_.empty() || fits_beside(now, width, estimate, false);
  }

  // Tests a job against each capacity change in [now, now + estimate), and against the reservation
  // of the head if `reserve_head`.
  bool fits_beside(double now, std::int32_t width, double estimate, bool reserve_head) const {
    const double until = now + estimate;
    const auto head_needs = [&](double time) {
      const bool held = reserve_head && shadow_ <= time &&
                        time < shadow_ + waiting_.estimates()[head_];
      return held ? waiting_.widths()[head_] : 0;
    };
    std::int32_t free = free_;
    if (free - head_needs(now) < width) return false;
    const CapacityChange* change = changes_.begin();
    if (reserve_head && shadow_ < until &&
        !has_capacity_at(shadow_, width + waiting_.widths()[head_]))
      return false;
    while (change != changes_.end() && change->time < until) {
      const double time = change->time;
      for (; change != changes_.end() && change->time == time; ++change) free += change->width;
      if (free - head_needs(time) < width) return false;
    }
    return true;
  }

  bool has_capacity_at(double time, std::int32_t width) const {
    std::int32_t free = free_;
    for (const CapacityChange* c = changes_.begin(); c != changes_.end() && c->time <= time; ++c)
      free += c->width;
    return free >= width;
  }

  // Computes the shadow time of the head, and the number of processors that it leaves free.
  void find_shadow(double now) {
    const std::int32_t width = waiting_.widths()[head_];
    const double estimate = waiting_.estimates()[head_];
    std::int32_t free = free_;
    shadow_ = free >= width ? now : kNever;
    if (shadow_ == now) extra_ = free - width;
    const CapacityChange* change = changes_.begin();
    while (change != changes_.end()) {
      const double time = change->time;
      if (shadow_ != kNever && (block_edges_.empty() || time >= shadow_ + estimate)) break;
      for (; change != changes_.end() && change->time == time; ++change) free += change->width;
      if (free < width) {
        shadow_ = kNever;
      } else if (shadow_ == kNever) {
        shadow_ = time;
        extra_ = free - width;
      }
    }
    shadow_valid_ = true;
  }

  JobColumns jobs_;
  WaitingJobs waiting_;
  Backfill backfill_;
  CapacityChanges changes_;
  std::vector<double> block_edges_;  // starts and ends of blocked spans, descending
  std::int32_t free_, extra_ = 0;
  double shadow_ = kNever;
  bool shadow_valid_ = false;
  std::size_t head_ = 0;           // no job waits before this entry
  std::size_t first_new_ = kNone;  // first entry of a job submitted since the last pass
  bool capacity_grew_ = false;     // since the last pass
  std::vector<double> started_;
};

}  // namespace slotkern::replay

// Conservative backfilling: each job gets a reservation on arrival, the earliest one that delays no
// earlier reservation, and a reservation never moves later.
//
// If jobs end before their estimates, one compression pass moves each waiting job, in queue order,
// to the earliest start that the profile now allows; its own old reservation counts as free. One
// pass, not a fixed point, as in the definition (Mu'alem and Feitelson 2001, section 2.3; Feitelson
// and Weil 1998).
//
// Why the pass is exact. An earlier start may overlap the job's own reservation. Then all time from
// that start to the reservation is free, and free_since() finds the earliest such start. Otherwise
// it is a hole of the current profile; the bounds kept from earlier searches (`HoleBounds`) mostly
// exclude it at once. Such a hole contains time freed since the job's last search, so it starts
// before `horizon`, the end of the latest freed time: freed by early ends, by moves in this pass,
// and by moves of the last pass that jobs earlier in the queue could not use.
// Cost of a pass: O(q log pieces), and O(pieces changed) for each move.
#pragma once

#include <algorithm>
#include <vector>

#include "slotkern/replay/availability_profile.hpp"
#include "slotkern/replay/reservation_heap.hpp"

namespace slotkern::replay {

// A scheduler (concept Scheduler) with a reservation for each waiting job.
class ConservativeScheduler {
 public:
  ConservativeScheduler(const JobColumns& jobs, std::int32_t processors, const QueueOrder& order,
                        const std::vector<BlockedSpan>& blocked)
      : jobs_(jobs), waiting_(jobs, order), profile_(processors), reservations_(jobs.size),
        reserved_start_(jobs.size, kNever) {
    for (const BlockedSpan& span : blocked) profile_.reserve(span.start, span.end, span.width);
  }

  std::size_t waiting() const { return waiting_.size(); }

  // Returns the earliest reserved start, at which jobs start without an event; or kNever.
  double next_wakeup() const { return reservations_.time(); }

  void on_submit(JobId job, double) { arrived_.push_back(job); }

  // Removes a waiting job and releases its reservation.
  void on_withdraw(JobId job, double now) {
    reservations_.remove(job);
    waiting_.remove(job);
    release_from(reserved_start_[job], job, now);
  }

  void on_end(JobId job, double now) { release_from(now, job, now); }

  // Compresses, reserves for arrived jobs, then calls start(job) for each job whose start has come.
  template <class Start>
  void start_jobs(double now, Start start) {
    profile_.advance(now);
    if (freed_until_ > -kNever && !waiting_.empty()) compress(now);
    freed_until_ = -kNever;
    for (const JobId job : arrived_) {
      const double length = jobs_.estimate[job];
      const std::int32_t width = jobs_.width[job];
      const double begin = profile_.find_start(now, length, width, kNever);
      profile_.reserve(begin, begin + length, width);
      waiting_.add(job);
      reservations_.add(job, reserved_start_[job] = begin);
    }
    arrived_.clear();
    while (reservations_.time() <= now) {
      const JobId job = reservations_.job();
      reservations_.remove(job);
      waiting_.remove(job);
      start(job);
    }
    waiting_.compact_if_sparse();
  }

 private:
  // Releases the time that the job holds from `from` on.
  void release_from(double from, JobId job, double now) {
    const double until = reserved_start_[job] + jobs_.estimate[job];
    if (!(until > from)) return;
    profile_.advance(now);
    profile_.release(from, until, jobs_.width[job]);
    freed_until_ = std::max(freed_until_, until);
  }

  // Moves waiting jobs to earlier starts, in queue order.
  void compress(double now) {
    if (waiting_.has_changing_keys()) waiting_.sort(now);
    double horizon = std::max(freed_until_, moved_until_);
    moved_until_ = -kNever;
    std::int32_t max_movable_width = profile_.max_free(now, horizon);  // until a job has moved
    const std::int32_t* const widths = waiting_.widths();
    const std::size_t size = waiting_.num_entries();
    for (std::size_t i = 0;
         (i = detail::first_at_most(widths, i, size, max_movable_width)) < size; ++i) {
      const JobId job = waiting_.job(i);
      const double old = reserved_start_[job], length = waiting_.estimates()[i];
      if (old <= now) continue;
      const std::int32_t width = widths[i];
      const double own = old > horizon ? old : profile_.free_since(now, old, width);
      const double limit = std::min(own, horizon);
      const double hole = profile_.find_start(now, length, width, limit);
      const double begin = hole < limit ? hole : own;
      if (begin == old) continue;
      reservations_.decrease_key(job, reserved_start_[job] = begin);
      profile_.move(old, begin, length, width);
      horizon = std::max(horizon, old + length);
      moved_until_ = std::max(moved_until_, old + length);
      max_movable_width = kTombstone - 1;
    }
  }

  JobColumns jobs_;
  WaitingJobs waiting_;
  AvailabilityProfile profile_;
  ReservationHeap reservations_;
  std::vector<double> reserved_start_;  // by job, also of jobs that have started
  std::vector<JobId> arrived_;
  double freed_until_ = -kNever;  // end of the latest time freed by ends since the last pass
  double moved_until_ = -kNever;  // end of the latest time freed by moves in the last pass
};

}  // namespace slotkern::replay

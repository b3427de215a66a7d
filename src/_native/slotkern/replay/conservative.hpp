// Conservative backfilling: every job gets a promise when it arrives, the earliest hole that
// delays no earlier promise, and a promise never gets later.
//
// When jobs end before their estimates, one pass compresses: in the order of the queue each
// waiting job moves to the earliest start that the profile now allows, its own old place
// counting as free. One pass, not a fixed point, as in the definition this follows
// (Mu'alem and Feitelson 2001, section 2.3; Feitelson and Weil 1998).
//
// An earlier start either reaches into the job's own place: then all before that place is
// free back to the start, and a look at the pieces before it finds the earliest such start.
// Or it does not: then it is a hole of the profile as it stands, and what earlier searches
// learned of holes so wide and long (`Holes`) mostly tells at once that there is none.
// And an earlier start there is only through time that was freed since the job was searched:
// so it lies before `horizon`, the end of the latest time freed: by early ends, by moves in
// this pass, and by moves of the last pass (which jobs before them in the queue have not seen).
// Cost of a pass: O(q log pieces), and O(pieces touched) a move.
#pragma once

#include <algorithm>
#include <vector>

#include "slotkern/replay/profile.hpp"
#include "slotkern/replay/promises.hpp"

namespace slotkern::replay {

class ConservativeScheduler {
 public:
  ConservativeScheduler(const Jobs& jobs, std::int32_t processors, const Order& order,
                        const std::vector<BlockedSpan>& blocked)
      : jobs_(jobs), waiting_(jobs, order), profile_(processors), promises_(jobs.size),
        promised_(jobs.size, kNever) {
    for (const BlockedSpan& span : blocked) profile_.take(span.start, span.end, span.width);
  }

  std::size_t waiting() const { return waiting_.size(); }

  // When it wants to start jobs without an event.
  double wake() const { return promises_.time(); }

  void submit(JobId job, double) { arrived_.push_back(job); }

  // A job that waits is taken away: its promise comes free.
  void withdraw(JobId job, double now) {
    promises_.remove(job);
    waiting_.remove(job);
    give(promised_[job], job, now);
  }

  void end(JobId job, double now) { give(now, job, now); }

  template <class Start>
  void decide(double now, Start start) {
    profile_.advance(now);
    if (freed_ > -kNever && !waiting_.empty()) compress(now);
    freed_ = -kNever;
    for (const JobId job : arrived_) {
      const double length = jobs_.estimate[job];
      const std::int32_t width = jobs_.width[job];
      const double begin = profile_.find(now, length, width, kNever);
      profile_.take(begin, begin + length, width);
      waiting_.add(job);
      promises_.add(job, promised_[job] = begin);
    }
    arrived_.clear();
    while (promises_.time() <= now) {
      const JobId job = promises_.job();
      promises_.remove(job);
      waiting_.remove(job);
      start(job);
    }
    waiting_.tidy();
  }

 private:
  // What a job holds from `from` on.
  void give(double from, JobId job, double now) {
    const double until = promised_[job] + jobs_.estimate[job];
    if (!(until > from)) return;
    profile_.advance(now);
    profile_.give(from, until, jobs_.width[job]);
    freed_ = std::max(freed_, until);
  }

  void compress(double now) {
    if (waiting_.changing()) waiting_.sort(now);
    double horizon = std::max(freed_, carry_);
    carry_ = -kNever;
    std::int32_t widest = profile_.most(now, horizon);  // that could move, until one has moved
    const std::int32_t* const widths = waiting_.widths();
    const std::size_t size = waiting_.places();
    for (std::size_t i = 0; (i = detail::first_at_most(widths, i, size, widest)) < size; ++i) {
      const JobId job = waiting_.job(i);
      const double old = promised_[job], length = waiting_.estimates()[i];
      if (old <= now) continue;
      const std::int32_t width = widths[i];
      const double own = old > horizon ? old : profile_.free_since(now, old, width);
      const double limit = std::min(own, horizon);
      const double hole = profile_.find(now, length, width, limit);
      const double begin = hole < limit ? hole : own;
      if (begin == old) continue;
      promises_.hasten(job, promised_[job] = begin);
      profile_.move(old, begin, length, width);
      horizon = std::max(horizon, old + length);
      carry_ = std::max(carry_, old + length);
      widest = kGone - 1;
    }
  }

  Jobs jobs_;
  WaitingJobs waiting_;
  Profile profile_;
  Promises promises_;
  std::vector<double> promised_;  // also of those that have started
  std::vector<JobId> arrived_;
  double freed_ = -kNever;  // until when time was freed by ends since the last look
  double carry_ = -kNever;  // and by moves in the last pass
};

}  // namespace slotkern::replay

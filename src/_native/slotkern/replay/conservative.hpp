// Conservative backfilling: every job gets a promise when it arrives, the earliest hole that
// delays no earlier promise, and a promise never gets later.
//
// When jobs end before their estimates, one pass compresses: in the order of the queue each
// waiting job moves to the earliest start that the profile now allows, its own old place
// counting as free. One pass, not a fixed point, as in the definition this follows
// (Mu'alem and Feitelson 2001, section 2.3; Feitelson and Weil 1998).
//
// What spares most searches, and why nothing is missed. A job that was searched has no
// earlier start but through time that was freed since. So a new start lies before `horizon`,
// the end of the latest time freed: by early ends, by moves in this pass, and by moves of
// the last pass (which jobs before them in the queue have not seen). And it lies at or after
// the first moment at which the job's width is free at all: `peaks`, valid until the first
// move. Jobs of equal width and estimate share what a search in this pass has found: no start
// before its result but through time freed since then (`floor`).
// Cost of a pass: O(q) vector code, O(pieces) a search.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/replay/events.hpp"
#include "slotkern/replay/profile.hpp"

namespace slotkern::replay {

// Numbers the pairs of width and estimate, O(m log m).
struct JobKinds {
  std::vector<std::uint32_t> of;  // by job
  std::size_t count = 1;

  explicit JobKinds(const Jobs& jobs) : of(jobs.size) {
    std::vector<JobId> order(jobs.size);
    std::iota(order.begin(), order.end(), JobId{0});
    const auto less = [&](JobId a, JobId b) {
      poll();
      return jobs.width[a] < jobs.width[b] ||
             (jobs.width[a] == jobs.width[b] && jobs.estimate[a] < jobs.estimate[b]);
    };
    std::sort(order.begin(), order.end(), less);
    for (std::size_t i = 0; i < order.size(); ++i) {
      count += i > 0 && less(order[i - 1], order[i]);
      of[order[i]] = static_cast<std::uint32_t>(count - 1);
    }
  }
};

class ConservativeScheduler {
 public:
  // `kinds` are those of the jobs, where schedulers of the same jobs share them.
  ConservativeScheduler(const Jobs& jobs, std::int32_t processors, const Order& order,
                        const std::vector<BlockedSpan>& blocked,
                        std::shared_ptr<const JobKinds> kinds = nullptr)
      : jobs_(jobs), waiting_(jobs, order), profile_(processors), promised_(jobs.size, kNever),
        kinds_(kinds ? std::move(kinds) : std::make_shared<const JobKinds>(jobs)),
        kind_state_(kinds_->count) {
    for (const BlockedSpan& span : blocked) profile_.add(span.start, span.end, -span.width);
  }

  std::size_t waiting() const { return waiting_.size(); }

  // When it wants to start jobs without an event.
  double wake() const { return starts_.time(); }

  void submit(JobId job, double) { arrived_.push_back(job); }

  // A job that waits is taken away: its promise comes free.
  void withdraw(JobId job, double now) {
    profile_.advance(now);
    const double begin = promised_[job], end = begin + jobs_.estimate[job];
    profile_.add(begin, end, jobs_.width[job]);
    freed_ = std::max(freed_, end);
    waiting_.remove(job);
    promised_[job] = kNever;
    drop_moved();
  }

  void end(JobId job, double now) {
    const double estimated = promised_[job] + jobs_.estimate[job];
    if (!(estimated > now)) return;
    profile_.advance(now);
    profile_.add(now, estimated, jobs_.width[job]);
    freed_ = std::max(freed_, estimated);
  }

  template <class Start>
  void decide(double now, Start start) {
    profile_.advance(now);
    if (freed_ > -kNever && !waiting_.empty()) compress(now);
    freed_ = -kNever;
    for (const JobId job : arrived_) {
      const double begin = profile_.find(now, jobs_.estimate[job], jobs_.width[job], kNever,
                                         kNever);
      profile_.add(begin, begin + jobs_.estimate[job], -jobs_.width[job]);
      waiting_.add(job);
      promise(job, begin);
    }
    arrived_.clear();
    for (; starts_.time() <= now; drop_moved()) {
      const JobId job = starts_.top().job;
      // Twice, if it was withdrawn, came back and was promised the same time again.
      while (starts_.time() <= now && starts_.top().job == job) starts_.pop();
      waiting_.remove(job);
      start(job);
    }
    waiting_.tidy();
  }

 private:
  // What the searches of this pass know of jobs of one width and estimate.
  struct Kind {
    std::uint64_t pass = 0;
    std::size_t moves = 0;  // how many there had been at the search
    double start = 0;       // which found no start before this one
  };

  // After move number `move` time was freed from `start` on.
  struct Freed {
    std::size_t move;
    double start;
  };

  void promise(JobId job, double begin) {
    promised_[job] = begin;
    starts_.push({begin, job});
  }

  // A job that has moved leaves its old event behind.
  void drop_moved() {
    while (!starts_.empty() && promised_[starts_.top().job] != starts_.top().time) starts_.pop();
  }

  void compress(double now) {
    if (waiting_.changing()) waiting_.sort(now);
    ++pass_;
    freed_by_moves_.clear();
    double horizon = std::max(freed_, carry_);
    carry_ = -kNever;
    profile_.peaks(now, horizon, peaks_);
    std::size_t moves = 0;
    std::int32_t widest = peaks_.empty() ? 0 : peaks_.back().free;
    const std::int32_t* width = waiting_.widths();
    const std::size_t size = waiting_.places();
    for (std::size_t i = 0; (i = detail::first_at_most(width, i, size, widest)) < size; ++i) {
      const JobId job = waiting_.job(i);
      const double old = promised_[job], length = waiting_.estimates()[i];
      if (old <= now || (moves == 0 && old <= first_room(width[i]))) continue;
      const double limit = std::min(old, horizon);
      Kind& kind = kind_state_[kinds_->of[job]];
      const double from = earliest(kind, now, old, length, width[i], limit, horizon);
      if (from >= limit) continue;
      const double begin = profile_.find(from, length, width[i], old, limit);
      kind.pass = pass_, kind.moves = moves, kind.start = begin;
      if (begin >= limit) continue;
      const double freed = move(job, old, begin);
      while (!freed_by_moves_.empty() && freed_by_moves_.back().start >= freed)
        freed_by_moves_.pop_back();
      freed_by_moves_.push_back({moves++, freed});
      horizon = std::max(horizon, old + length);
      carry_ = std::max(carry_, old + length);
      widest = kGone - 1;
    }
    drop_moved();
  }

  // Returns from when on time is freed.
  double move(JobId job, double old, double begin) {
    const double length = jobs_.estimate[job];
    const std::int32_t width = jobs_.width[job];
    promised_[job] = begin;
    starts_.push({begin, job});
    const double end = begin + length;
    profile_.add(begin, std::min(end, old), -width);
    profile_.add(std::max(end, old), old + length, width);
    return std::max(end, old);
  }

  double first_room(std::int32_t width) const {
    for (const Profile::Peak& peak : peaks_)
      if (peak.free >= width) return peak.time;
    return kNever;
  }

  // No start before the returned time; `limit` or later: none at all.
  double earliest(const Kind& kind, double now, double old, double length, std::int32_t width,
                  double limit, double horizon) const {
    if (kind.pass != pass_) return now;
    double floor = kind.start;
    const auto since = std::lower_bound(
        freed_by_moves_.begin(), freed_by_moves_.end(), kind.moves,
        [](const Freed& freed, std::size_t move) { return freed.move < move; });
    if (since != freed_by_moves_.end()) floor = std::min(floor, reaching(since->start, length));
    // The search took the other job's place as free, this one may use its own.
    const double overlapping = reaching(old, length);
    if (floor >= limit && (horizon < overlapping || profile_.free_before(old) < width))
      return limit;
    return std::max(now, std::min(floor, overlapping));
  }

  // No start before this one reaches `time`: a margin on the safe side of rounding.
  static double reaching(double time, double length) {
    return time - length - 1e-15 * (std::abs(time) + length);
  }

  Jobs jobs_;
  WaitingJobs waiting_;
  Profile profile_;
  EventQueue starts_;
  std::vector<double> promised_;
  std::vector<JobId> arrived_;
  std::shared_ptr<const JobKinds> kinds_;
  std::vector<Kind> kind_state_;
  std::vector<Profile::Peak> peaks_;
  std::vector<Freed> freed_by_moves_;
  double freed_ = -kNever;  // until when time was freed by ends since the last look
  double carry_ = -kNever;  // and by moves in the last pass
  std::uint64_t pass_ = 0;
};

}  // namespace slotkern::replay

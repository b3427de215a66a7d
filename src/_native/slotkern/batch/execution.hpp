// What becomes of a schedule when the true lengths of the jobs become known only as they end.
//
// A job runs a share of each part's reserved time; every node is free again when its own part
// ends (Toporkov et al. 2014, section 4.2). Three ways to go on:
//
//   reserved      nothing moves: CSS and Batch-slicer as the paper runs them.
//   conservative  whenever a part ends, every job that waits is, in order, taken out, searched
//                 for again and put at its earliest start if that is strictly earlier, else
//                 back where it was. So no job ever starts later than it was promised.
//   EASY          jobs start when they can, in order; only the first that cannot start now, the
//                 head, holds a reservation, until it starts. It is never delayed, others may be.
//
// A waiting job is searched for again only if time came free, since it was last looked at, that
// could hold a part of it before its present start (EASY: now), and only among the starts that
// this time makes possible (batch/openings.hpp). A job with a reservation is searched for as if
// that were free (SlotPool::assume_free), so that only what does move is booked anew, and the head's
// reservation stands until it moves or starts. The clock goes on in O(1); the pool drops what is
// past once as many parts have ended as there are nodes. So an end costs O(jobs) simple tests and
// a few searches. Memory: a copy of the pool, and what openings take.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/batch/openings.hpp"

namespace slotkern {

struct ExecutionAnswer {
  WindowTable windows;                 // by job, as reserved when it started; none: never ran
  std::vector<double> promised;        // by job: the first start it was given a reservation for
  std::vector<std::uint8_t> reasons;
  std::int64_t ends = 0, moves = 0;    // parts that ended; reservations that moved up
};

class Execution {
 public:
  // All of the jobs, a share of the reserved time for each, and where they stand.
  Execution(BatchPool& free, const std::vector<BatchJob>& jobs, ShapeKind shape, int earliest,
            const double* shares)
      : free_(free), jobs_(jobs), shape_(shape), earliest_(earliest), shares_(shares),
        openings_(free, jobs, shape), windows_(jobs.size()),
        promised_(jobs.size(), std::numeric_limits<double>::quiet_NaN()) {}

  // The job has this window, whose time is booked already.
  void hold(std::size_t job, const Found& found, const Part* parts, std::size_t n) {
    Window& window = windows_[job];
    window.found = found;
    window.parts.assign(parts, parts + n);
    window.state = State::reserved;
    openings_.reserve(job, found.start, window.parts);
    if (std::isnan(promised_[job])) promised_[job] = found.start;
  }

  // Books a window for the job; not_free where other bookings are in its way.
  Status place(std::size_t job, const Found& found, const Part* parts, std::size_t n) {
    std::size_t bad;
    if (free_.pool.book(found.start, parts, n, bad) != Status::ok) return Status::not_free;
    hold(job, found, parts, n);
    return Status::ok;
  }

  // The job has failed for good.
  void leave_out(std::size_t job) { windows_[job].state = State::out; }

  void run_reserved() {
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      if (windows_[j].state == State::reserved) begin(j);
    ends_ = static_cast<std::int64_t>(coming_.size());
  }

  // The first `fixed` jobs do not move.
  Status run_conservative(std::size_t fixed) {
    const auto waits = [this](std::size_t j) { return windows_[j].state <= State::reserved; };
    for (std::size_t j = fixed; j < jobs_.size(); ++j)
      if (waits(j))
        openings_.wait(j, windows_[j].state == State::reserved ? windows_[j].found.start : kInfinity);
    for (;;) {
      const double next = openings_.next_start();
      const double end = coming_.empty() ? kInfinity : coming_.front().time;
      if (next == kInfinity && end == kInfinity) return Status::ok;
      if (next <= end) {
        for (std::size_t j = 0; j < jobs_.size(); ++j)
          if (openings_.begins_at(j, next)) begin(j);
        continue;
      }
      if (const Status status = end_parts(end); status != Status::ok) return status;
      for (std::size_t j = 0; j < jobs_.size(); ++j)
        if (openings_.marked(j))
          if (const Status status = move_up(j); status != Status::ok) return status;
    }
  }

  // Jobs with a window keep it; the others queue in order.
  Status run_easy(const PreparedSlots& base) {
    std::vector<double> arrivals;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (windows_[j].state == State::reserved)
        begin(j);
      else if (windows_[j].state == State::waiting)
        wait(j);
      arrivals.push_back(jobs_[j].query.earliest);
    }
    std::sort(arrivals.begin(), arrivals.end());
    std::size_t came = 0, begun = 0;
    double now = base.slots.front().start;  // what is booked there may end early
    while (!queue_.empty() && now < kInfinity) {
      if (const Status status = end_parts(now); status != Status::ok) return status;
      for (; begun < base.slots.size() && base.slots[begun].start <= now; ++begun)
        openings_.add(now, base.slots[begun].end, static_cast<std::size_t>(base.slots[begun].place));
      if (const Status status = start_what_can(now); status != Status::ok) return status;
      while (came < arrivals.size() && arrivals[came] <= now) ++came;
      now = head_ == kNobody ? kInfinity : windows_[head_].found.start;
      if (begun < base.slots.size()) now = std::min(now, base.slots[begun].start);
      if (came < arrivals.size()) now = std::min(now, arrivals[came]);
      if (!coming_.empty()) now = std::min(now, coming_.front().time);
    }
    ends_ += static_cast<std::int64_t>(coming_.size());
    return Status::ok;
  }

  void answer(ExecutionAnswer& out) {
    Workspace& work = workspace();
    out.promised = promised_;
    out.ends = ends_, out.moves = moves_;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const Window& window = windows_[j];
      if (window.state == State::waiting || window.state == State::out) {
        out.windows.add_none();
        out.reasons.push_back(static_cast<std::uint8_t>(
            detail::rejection_reason(free_.pool, free_.slots, jobs_[j].query, shape_, work)));
      } else {
        out.windows.add(window.found, window.parts.data(), window.parts.size());
        out.reasons.push_back(0);
      }
    }
  }

 private:
  enum class State : std::uint8_t { waiting = 0, reserved, started, out };

  struct Window {
    State state = State::waiting;
    Found found;
    std::vector<Part> parts;
  };
  struct Ending {
    double time;
    std::uint32_t job, part;
    bool operator<(const Ending& other) const {  // the heap gives the largest
      if (time != other.time) return time > other.time;
      return job != other.job ? job > other.job : part > other.part;
    }
  };
  static constexpr std::size_t kNobody = ~std::size_t{0};

  // The job queues for EASY, where it may start at any time that is now.
  void wait(std::size_t job) {
    queue_.push_back(job);
    openings_.wait(job, -kInfinity);
  }

  void begin(std::size_t job) {
    Window& window = windows_[job];
    window.state = State::started;
    openings_.give_up(job, window.parts);
    openings_.leave(job);
    for (std::size_t k = 0; k < window.parts.size(); ++k) {
      const double time = window.found.start + window.parts[k].length * shares_[job];
      coming_.push_back({time, static_cast<std::uint32_t>(job), static_cast<std::uint32_t>(k)});
      std::push_heap(coming_.begin(), coming_.end());
    }
  }

  // The time is `now`: parts that end give the rest of their reservation back.
  Status end_parts(double now) {
    poll();
    free_.pool.set_clock(now);
    if (past_ >= free_.slots.nodes.size()) {
      free_.pool.trim_before_now();
      past_ = 0;
    }
    while (!coming_.empty() && coming_.front().time <= now) {
      const Window& window = windows_[coming_.front().job];
      const Part& part = window.parts[coming_.front().part];
      std::size_t bad;
      if (free_.pool.release(window.found.start, &part, 1, bad) != Status::ok)
        return Status::internal;
      openings_.add(now, window.found.start + part.length, place_of(part));
      std::pop_heap(coming_.begin(), coming_.end());
      coming_.pop_back();
      ++ends_;
      ++past_;
    }
    return Status::ok;
  }

  std::size_t place_of(const Part& part) const {
    return static_cast<std::size_t>(free_.pool.place_of(part.node));
  }

  // Gives up the job's reservation; announce() says so when its new place is known.
  Status give_up(std::size_t job) {
    Window& window = windows_[job];
    window.state = State::waiting;
    openings_.give_up(job, window.parts);
    left_start_ = window.found.start;
    left_.swap(window.parts);
    std::size_t bad;
    return free_.pool.release(left_start_, left_.data(), left_.size(), bad) == Status::ok
               ? Status::ok
               : Status::internal;
  }
  void announce(std::size_t job) {
    for (const Part& part : left_)
      openings_.add(left_start_, left_start_ + part.length, place_of(part));
    openings_.looked(job);
  }

  // A window that begins within `starts`; none is no failure.
  Status look(std::size_t job, const Openings::Starts& starts, Found& found) {
    const Status status = free_.pool.find_in_range(starts.first, starts.last, jobs_[job].query,
                                                  earliest_, shape_, workspace(), found);
    return status == Status::no_memory || status == Status::internal ? status
           : status == Status::ok                                   ? Status::ok
                                                                    : Status::none;
  }

  Status take(std::size_t job, const Found& found) {
    const Workspace& work = workspace();
    return place(job, found, work.parts.data(), work.parts.size());
  }

  Status move_up(std::size_t job) {
    const Window& window = windows_[job];
    const double start = window.state == State::reserved ? window.found.start : kInfinity;
    bool moved = false;
    const Status status =
        move_within(job, may_start(job, std::nextafter(start, -kInfinity)), moved);
    moves_ += moved && start < kInfinity;
    return status;
  }

  // Gives the job the best window that begins within `starts`, all before its reservation if it
  // has one, which it keeps where there is none.
  Status move_within(std::size_t job, const Openings::Starts& starts, bool& moved) {
    if (!starts.any()) return Status::ok;
    const Window& window = windows_[job];
    const bool had = window.state == State::reserved;
    Found found;
    if (had)
      free_.pool.assume_free(window.found.start, starts.last, window.parts.data(), window.parts.size());
    const Status status = look(job, starts, found);
    if (had) free_.pool.end_assume_free();
    if (status != Status::ok) return status == Status::none ? Status::ok : status;
    moved = true;
    if (!had) return take(job, found);
    if (const Status given = give_up(job); given != Status::ok) return given;
    if (const Status taken = take(job, found); taken != Status::ok) return taken;
    announce(job);
    return Status::ok;
  }

  // The head of the queue comes first while it holds a reservation: what arrives later, or fits
  // for the first time because others ended early, must not delay it, whatever its place.
  Status start_what_can(double now) {
    if (head_ != kNobody)
      if (const Status status = move_head(now); status != Status::ok) return status;
    for (const std::size_t j : queue_) {
      if (head_ != kNobody && !openings_.marked(j)) continue;
      if (windows_[j].state != State::waiting || jobs_[j].query.earliest > now) continue;
      const Status status = head_ == kNobody ? start_or_reserve(j, now) : start(j, now);
      if (status != Status::ok) return status;
    }
    std::erase_if(queue_, [this](std::size_t j) { return windows_[j].state == State::started; });
    return Status::ok;
  }

  // At its own start others may have become the cheapest: then it is searched for anew.
  Status move_head(double now) {
    const std::size_t j = head_;
    const Window& window = windows_[j];
    const Openings::Starts starts = may_start(j, window.found.start);
    if (starts.any() && !(starts.last < window.found.start)) {
      head_ = kNobody;
      if (const Status status = give_up(j); status != Status::ok) return status;
      if (const Status status = start_or_reserve(j, now); status != Status::ok) return status;
      announce(j);
      return Status::ok;
    }
    bool moved = false;
    if (const Status status = move_within(j, starts, moved); status != Status::ok) return status;
    if (window.found.start <= now) begin(std::exchange(head_, kNobody));
    return Status::ok;
  }

  Openings::Starts may_start(std::size_t job, double latest) {
    return openings_.starts(job, latest, windows_[job].parts);
  }

  Status start(std::size_t j, double now) {
    const Openings::Starts starts = may_start(j, now);
    if (!starts.any()) return Status::ok;
    Found found;
    if (const Status status = look(j, starts, found); status != Status::ok)
      return status == Status::none ? Status::ok : status;
    const Status placed = take(j, found);
    if (placed == Status::ok) begin(j);
    return placed;
  }

  // Starts the job, or makes it the head.
  Status start_or_reserve(std::size_t j, double now) {
    Found found;
    openings_.looked(j);
    const Status status = look(j, {-kInfinity, kInfinity}, found);
    if (status != Status::ok) return status == Status::none ? Status::ok : status;
    if (const Status placed = take(j, found); placed != Status::ok) return placed;
    if (found.start <= now)
      begin(j);
    else
      head_ = j;
    return Status::ok;
  }

  BatchPool& free_;
  const std::vector<BatchJob>& jobs_;
  const ShapeKind shape_;
  const int earliest_;  // the criterion
  const double* const shares_;
  Openings openings_;
  std::vector<Window> windows_;
  std::vector<double> promised_;
  std::vector<Ending> coming_;  // a heap
  std::vector<Part> left_;          // of the reservation that was given up last
  double left_start_ = 0;
  std::vector<std::size_t> queue_;  // EASY: jobs that have not started, in order
  std::size_t head_ = kNobody;      // of the queue: the one with a reservation
  std::size_t past_ = 0;            // parts that have ended since the pool dropped what is past
  std::int64_t ends_ = 0, moves_ = 0;
};

}  // namespace slotkern

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
// A waiting job is looked at again only if time came free, since it was last looked at, on a
// node and in a span that could hold a part of it before its present start (EASY: now). That
// loses nothing: a window that begins earlier and was not there before has a part in such time.
// A job with a reservation is searched for as if that were free (SlotPool::lend), so that only
// what does move is booked anew, and the head's reservation stands until it moves or starts.
// The clock goes on in O(1); the pool drops what is past once as many parts have ended as there
// are nodes. So an end costs O(jobs) tests and a few searches. Memory: a copy of the pool and 32
// bytes a freed span.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/batch/batch.hpp"

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
        windows_(jobs.size()), promised_(jobs.size(), std::numeric_limits<double>::quiet_NaN()) {}

  // The job has this window, whose time is booked already.
  void hold(std::size_t job, const Found& found, const Part* parts, std::size_t n) {
    Window& window = windows_[job];
    window.found = found;
    window.parts.assign(parts, parts + n);
    window.state = State::reserved;
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

  Status run_conservative(const std::uint8_t* movable) {
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      if (windows_[j].state <= State::reserved) queue_.push_back(j);
    for (;;) {
      double next = kInfinity;
      for (const std::size_t j : queue_)
        if (windows_[j].state == State::reserved) next = std::min(next, windows_[j].found.start);
      const double end = coming_.empty() ? kInfinity : coming_.front().time;
      if (next == kInfinity && end == kInfinity) return Status::ok;
      if (next <= end) {
        std::erase_if(queue_, [&](std::size_t j) {
          const bool starts = windows_[j].state == State::reserved &&
                              windows_[j].found.start == next;
          if (starts) begin(j);
          return starts;
        });
        continue;
      }
      if (const Status status = end_parts(end); status != Status::ok) return status;
      for (const std::size_t j : queue_)
        if (movable[j])
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
        queue_.push_back(j);
      arrivals.push_back(jobs_[j].query.earliest);
    }
    std::sort(arrivals.begin(), arrivals.end());
    std::size_t came = 0, begun = 0;
    double now = free_.slots.first_start();
    while (!queue_.empty() && now < kInfinity) {
      if (const Status status = end_parts(now); status != Status::ok) return status;
      for (; begun < base.slots.size() && base.slots[begun].start <= now; ++begun)
        come_free(now, base.slots[begun].end, static_cast<std::size_t>(base.slots[begun].place));
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
            detail::why_not(free_.pool, free_.slots, jobs_[j].query, shape_, work)));
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
    bool looked = false;   // nothing earlier but by what is freed from `seen` on
    std::size_t seen = 0;
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

  struct Freed {
    double start, end, performance;
    std::size_t place;  // of the node
  };

  void begin(std::size_t job) {
    Window& window = windows_[job];
    window.state = State::started;
    for (std::size_t k = 0; k < window.parts.size(); ++k) {
      const double time = window.found.start + window.parts[k].length * shares_[job];
      coming_.push_back({time, static_cast<std::uint32_t>(job), static_cast<std::uint32_t>(k)});
      std::push_heap(coming_.begin(), coming_.end());
    }
  }

  // The time is `now`: parts that end give the rest of their reservation back.
  Status end_parts(double now) {
    poll();
    if (past_ < free_.slots.nodes.size()) {
      free_.pool.pass(now);
    } else {
      free_.pool.advance(now);
      past_ = 0;
    }
    while (!coming_.empty() && coming_.front().time <= now) {
      const Window& window = windows_[coming_.front().job];
      const Part& part = window.parts[coming_.front().part];
      std::size_t bad;
      if (free_.pool.release(window.found.start, &part, 1, bad) != Status::ok)
        return Status::internal;
      come_free(now, window.found.start + part.length, place_of(part));
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

  void come_free(double start, double end, std::size_t place) {
    freed_.push_back({start, end, free_.slots.nodes[place].performance, place});
  }

  // Whether time that came free since it was last looked at could hold a part of the job that
  // begins by `latest`.
  bool may_start(std::size_t job, double latest) {
    Window& window = windows_[job];
    const Query& query = jobs_[job].query;
    const bool had = window.state == State::reserved;
    const double from = std::max(query.earliest, free_.pool.now());
    bool may = !window.looked;
    window.looked = true;
    for (std::size_t i = window.seen; i < freed_.size() && !may; ++i) {
      const Freed& freed = freed_[i];
      // The part would begin by `latest` and reach into the freed time.
      if (freed.end < from) continue;
      const double length = query.length(freed.performance);
      if (freed.start - latest >= length * (1 + kMargin)) continue;
      for (const Part& part : window.parts)
        may = may || (had && part.node == free_.slots.nodes[freed.place].id);
      const std::vector<Span>& spans = free_.pool.free_at(freed.place);
      auto span = std::upper_bound(spans.begin(), spans.end(), freed.start,
                                   [](double t, const Span& x) { return t < x.end; });
      for (; !may && span != spans.end() && span->start <= freed.end; ++span) {
        const double t = std::max(span->start, from);
        may = t <= latest && std::min(span->end, query.deadline) - t >= length * (1 - kMargin);
      }
    }
    window.seen = freed_.size();
    return may;
  }

  // Gives up the job's reservation.
  Status give_up(std::size_t job) {
    Window& window = windows_[job];
    window.state = State::waiting;
    std::size_t bad;
    if (free_.pool.release(window.found.start, window.parts.data(), window.parts.size(), bad) !=
        Status::ok)
      return Status::internal;
    for (const Part& part : window.parts)
      come_free(window.found.start, window.found.start + part.length, place_of(part));
    return Status::ok;
  }

  // A window that begins by `latest`; none is no failure.
  Status look(std::size_t job, double latest, Found& found) {
    const Status status =
        free_.pool.find_by(latest, jobs_[job].query, earliest_, shape_, workspace(), found);
    return status == Status::no_memory || status == Status::internal ? status
           : status == Status::ok                                   ? Status::ok
                                                                    : Status::none;
  }

  Status take(std::size_t job, const Found& found) {
    const Workspace& work = workspace();
    return place(job, found, work.parts.data(), work.parts.size());
  }

  Status move_up(std::size_t job) {
    Window& window = windows_[job];
    const bool had = window.state == State::reserved;
    const double latest = had ? std::nextafter(window.found.start, -kInfinity) : kInfinity;
    if (latest < free_.pool.now() || !may_start(job, latest)) return Status::ok;
    Found found;
    if (had) free_.pool.lend(window.found.start, window.parts.data(), window.parts.size());
    const Status status = look(job, latest, found);
    if (had) free_.pool.take_back();
    if (status != Status::ok) return status == Status::none ? Status::ok : status;
    if (had)
      if (const Status given = give_up(job); given != Status::ok) return given;
    moves_ += had;
    return take(job, found);
  }

  // The head of the queue comes first while it holds a reservation: what arrives later, or fits
  // for the first time because others ended early, must not delay it, whatever its place.
  Status start_what_can(double now) {
    if (head_ != kNobody && may_start(head_, windows_[head_].found.start)) {
      const std::size_t j = std::exchange(head_, kNobody);
      if (const Status status = give_up(j); status != Status::ok) return status;
      if (const Status status = start_or_reserve(j, now); status != Status::ok) return status;
    } else if (head_ != kNobody && windows_[head_].found.start <= now) {
      begin(std::exchange(head_, kNobody));
    }
    for (const std::size_t j : queue_) {
      if (windows_[j].state != State::waiting || jobs_[j].query.earliest > now) continue;
      Status status = Status::ok;
      if (head_ == kNobody)
        status = start_or_reserve(j, now);
      else if (may_start(j, now))
        status = start(j, now);
      if (status != Status::ok) return status;
    }
    std::erase_if(queue_, [this](std::size_t j) { return windows_[j].state == State::started; });
    return Status::ok;
  }

  Status start(std::size_t j, double now) {
    Found found;
    if (const Status status = look(j, now, found); status != Status::ok)
      return status == Status::none ? Status::ok : status;
    const Status placed = take(j, found);
    if (placed == Status::ok) begin(j);
    return placed;
  }

  // Starts the job, or makes it the head.
  Status start_or_reserve(std::size_t j, double now) {
    Found found;
    windows_[j].looked = true;
    windows_[j].seen = freed_.size();
    const Status status = look(j, kInfinity, found);
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
  std::vector<Window> windows_;
  std::vector<double> promised_;
  std::vector<Ending> coming_;  // a heap
  std::vector<Freed> freed_;
  std::vector<std::size_t> queue_;  // jobs that have not started, in order
  std::size_t head_ = kNobody;      // of the queue: the one with a reservation
  std::size_t past_ = 0;            // parts that have ended since the pool dropped what is past
  std::int64_t ends_ = 0, moves_ = 0;
};

// How jobs behind the sub-batches are scheduled, and how a schedule is executed.
enum class Backfill : int { none = 0, conservative, easy };

// The whole schedule of a batch. `earliest` is the criterion of backfilled windows.
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
        queue.leave_out(j);
        continue;
      }
      const auto a = static_cast<std::size_t>(out.chosen[j]);
      queue.hold(j, out.alternatives.found[a], out.alternatives.parts_of(a),
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

// Executes a schedule on all slots: `planned` by job; jobs that may move up by `movable`, or
// that queue for EASY where they have no window.
inline Status execute_batch(const PreparedSlots& base, const std::vector<BatchJob>& jobs,
                            ShapeKind shape, Backfill backfill, int earliest,
                            const WindowTable& planned, const std::uint8_t* movable,
                            const double* shares, ExecutionAnswer& out) noexcept {
  return guarded([&] {
    static thread_local BatchPool free;
    out.windows.clear(), out.promised.clear(), out.reasons.clear();
    if (jobs.size() * base.slots.size() > kManyPairs) expect_long();
    if (base.slots.empty()) {
      for (std::size_t j = 0; j < jobs.size(); ++j) out.windows.add_none();
      out.promised.assign(jobs.size(), std::numeric_limits<double>::quiet_NaN());
      out.reasons.assign(jobs.size(), static_cast<std::uint8_t>(Reason::nodes));
      return Status::ok;
    }
    free.open(base, jobs);
    Execution run(free, jobs, shape, earliest, shares);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (planned.any(j)) {
        const Status placed = run.place(j, planned.found[j], planned.parts_of(j), planned.count(j));
        if (placed != Status::ok) return placed;
      } else if (!movable[j]) {
        run.leave_out(j);
      }
    }
    Status status = Status::ok;
    if (backfill == Backfill::conservative)
      status = run.run_conservative(movable);
    else if (backfill == Backfill::easy)
      status = run.run_easy(base);
    else
      run.run_reserved();
    if (status == Status::ok) run.answer(out);
    return status;
  });
}

}  // namespace slotkern

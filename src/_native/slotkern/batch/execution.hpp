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
// node and in a span that could hold a part of it before its present start. That loses nothing:
// a window that begins earlier and was not there before has a part in such time. So an end costs
// O(jobs) tests and a few searches. Memory: a copy of the pool and 32 bytes a freed span.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
    for (;;) {
      double next = kInfinity;
      for (std::size_t j = 0; j < jobs_.size(); ++j)
        if (windows_[j].state == State::reserved) next = std::min(next, windows_[j].found.start);
      const double end = coming_.empty() ? kInfinity : coming_.front().time;
      if (next == kInfinity && end == kInfinity) return Status::ok;
      if (next <= end) {
        for (std::size_t j = 0; j < jobs_.size(); ++j)
          if (windows_[j].state == State::reserved && windows_[j].found.start == next) begin(j);
        continue;
      }
      if (const Status status = end_parts(end); status != Status::ok) return status;
      for (std::size_t j = 0; j < jobs_.size(); ++j)
        if (movable[j] && windows_[j].state <= State::reserved)
          if (const Status status = move_up(j); status != Status::ok) return status;
    }
  }

  // Jobs with a window keep it; the others queue in order.
  Status run_easy(const PreparedSlots& base) {
    std::vector<double> times;
    for (const Slot& slot : base.slots) times.push_back(slot.start);
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (windows_[j].state == State::reserved)
        begin(j);
      else if (windows_[j].state == State::waiting)
        queue_.push_back(j);
      times.push_back(jobs_[j].query.earliest);
    }
    std::sort(times.begin(), times.end());
    std::size_t past = 0;
    double now = times.empty() ? kInfinity : free_.slots.first_start();
    while (!queue_.empty() && now < kInfinity) {
      if (const Status status = end_parts(now); status != Status::ok) return status;
      double next = kInfinity;
      if (const Status status = start_what_can(now, next); status != Status::ok) return status;
      while (past < times.size() && times[past] <= now) ++past;
      if (past < times.size()) next = std::min(next, times[past]);
      if (!coming_.empty()) next = std::min(next, coming_.front().time);
      now = next;
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
    free_.pool.advance(now);
    while (!coming_.empty() && coming_.front().time <= now) {
      const Window& window = windows_[coming_.front().job];
      const Part& part = window.parts[coming_.front().part];
      const double end = window.found.start + part.length;
      std::size_t bad;
      if (free_.pool.release(window.found.start, &part, 1, bad) != Status::ok)
        return Status::internal;
      if (end > now) give_up(now, end, part.node);
      std::pop_heap(coming_.begin(), coming_.end());
      coming_.pop_back();
      ++ends_;
    }
    return Status::ok;
  }

  void give_up(double start, double end, std::int32_t node) {
    const auto place = static_cast<std::size_t>(free_.pool.place_of(node));
    freed_.push_back({start, end, free_.slots.nodes[place].performance, place});
  }

  // Whether time that came free could hold a part of the job before it starts.
  bool may_move(std::size_t job) {
    Window& window = windows_[job];
    const Query& query = jobs_[job].query;
    const bool had = window.state == State::reserved;
    const double start = had ? window.found.start : kInfinity;
    const double from = std::max(query.earliest, free_.pool.now());
    bool may = false;
    for (std::size_t i = window.seen; i < freed_.size() && !may; ++i) {
      const Freed& freed = freed_[i];
      // The part would begin before `start` and reach into the freed time.
      if (freed.end <= from ||
          (freed.start - start) * freed.performance >= query.volume * (1 + kMargin))
        continue;
      for (const Part& part : window.parts)
        may = may || (had && part.node == free_.slots.nodes[freed.place].id);
      const double length = query.volume / freed.performance * (1 - kMargin);
      const std::vector<Span>& spans = free_.pool.free_at(freed.place);
      auto span = std::upper_bound(spans.begin(), spans.end(), freed.start,
                                   [](double t, const Span& x) { return t < x.end; });
      for (; !may && span != spans.end() && span->start < freed.end; ++span) {
        const double t = std::max(span->start, from);
        may = t < start && std::min(span->end, query.deadline) - t >= length;
      }
    }
    window.seen = freed_.size();
    return may;
  }

  Status move_up(std::size_t job) {
    Window& window = windows_[job];
    if (window.looked && !may_move(job)) return Status::ok;
    window.looked = true;
    window.seen = freed_.size();
    const bool had = window.state == State::reserved;
    std::size_t bad;
    if (had && free_.pool.release(window.found.start, window.parts.data(), window.parts.size(),
                                  bad) != Status::ok)
      return Status::internal;
    Workspace& work = workspace();
    Found found;
    const Status status = free_.pool.find(jobs_[job].query, earliest_, shape_, work, found);
    if (status == Status::no_memory || status == Status::internal) return status;
    if (status == Status::ok && (!had || found.start < window.found.start)) {
      if (had)
        for (const Part& part : window.parts)
          give_up(window.found.start, window.found.start + part.length, part.node);
      moves_ += had;
      return place(job, found, work.parts.data(), work.parts.size());
    }
    if (!had) return Status::ok;
    return free_.pool.book(window.found.start, window.parts.data(), window.parts.size(), bad) ==
                   Status::ok
               ? Status::ok
               : Status::internal;
  }

  // The head of the queue comes first while it holds a reservation: what arrives later, or fits
  // for the first time because others ended early, must not delay it, whatever its place.
  Status start_what_can(double now, double& next) {
    reserved_ = false;
    if (head_ < jobs_.size())
      if (const Status status = try_to_start(head_, now); status != Status::ok) return status;
    for (const std::size_t j : queue_) {
      const Query& query = jobs_[j].query;
      if (windows_[j].state == State::started || j == head_) continue;
      if (query.earliest > now) continue;  // not in the queue yet
      if (reserved_ && free_.pool.known(query, shape_) > now) continue;
      if (const Status status = try_to_start(j, now); status != Status::ok) return status;
    }
    std::erase_if(queue_, [this](std::size_t j) { return windows_[j].state == State::started; });
    if (!reserved_) return Status::ok;
    next = held_start_;
    std::size_t bad;
    return free_.pool.release(held_start_, held_.data(), held_.size(), bad) == Status::ok
               ? Status::ok
               : Status::internal;
  }

  // Starts the job now, or makes it the head if nobody is.
  Status try_to_start(std::size_t j, double now) {
    Workspace& work = workspace();
    Found found;
    const Status status = free_.pool.find(jobs_[j].query, earliest_, shape_, work, found);
    if (status == Status::no_memory || status == Status::internal) return status;
    if (status != Status::ok) return Status::ok;
    if (found.start <= now) {
      if (head_ == j) head_ = kNobody;
      const Status placed = place(j, found, work.parts.data(), work.parts.size());
      if (placed == Status::ok) begin(j);
      return placed;
    }
    if (reserved_) return Status::ok;
    reserved_ = true;
    head_ = j;
    held_start_ = found.start;
    held_ = work.parts;
    if (std::isnan(promised_[j])) promised_[j] = found.start;
    std::size_t bad;
    return free_.pool.book(held_start_, held_.data(), held_.size(), bad) == Status::ok
               ? Status::ok
               : Status::internal;
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
  std::vector<std::size_t> queue_;
  std::size_t head_ = kNobody;  // of the queue, and its reservation
  bool reserved_ = false;
  double held_start_ = 0;
  std::vector<Part> held_;
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

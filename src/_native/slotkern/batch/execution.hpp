// Executes a schedule whose true job lengths become known only when the jobs end.
//
// A job uses a share of each part's reserved time; a node is free again as soon as its own part
// ends (Toporkov et al. 2014, section 4.2). There are three policies:
//
//   reserved      no window moves: CSS and Batch-slicer as in the paper.
//   conservative  when a part ends, each waiting job, in order, moves to its earliest possible
//                 start if that is strictly earlier than its reservation, and else stays. So no
//                 job starts later than the first start reserved for it.
//   EASY          jobs start as early as possible, in order; only the first job that cannot start,
//                 the head, holds a reservation until it starts. Only the head is never delayed.
//
// A waiting job is searched for again only if time was released since its last search that could
// host a part before its present start (EASY: now), and only in the start range that this time
// makes possible (batch/release_watchlist.hpp). Such a search treats the job's own reservation as
// free (SlotPool::assume_free), so bookings change only if the job does move. The clock advances in
// O(1); the pool drops past time once the number of ended parts reaches the number of nodes.
// Under tariffs a job behind the EASY head may become affordable at a time without an event: it is
// searched for at the earliest start that its last search found.
// Cost of an end: O(jobs) comparisons and a few searches. Memory: a copy of the pool, and the
// watchlist.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/batch/release_watchlist.hpp"

namespace slotkern {

// The outcome of an execution.
struct ExecutionAnswer {
  WindowTable windows;                 // by job: the window in which it started, or none
  std::vector<double> promised;        // by job: start of its first reservation; NaN: none
  std::vector<std::uint8_t> reasons;
  std::int64_t ends = 0, moves = 0;    // parts that ended; reservations that moved earlier
};

// Executes the jobs of one batch in `free`, by one of the three run_ functions.
class Execution {
 public:
  // `shares`: for each job the used share of its reserved time, in (0, 1].
  Execution(BatchPool& free, const std::vector<BatchJob>& jobs, ShapeKind shape, int earliest,
            const double* shares)
      : free_(free), jobs_(jobs), shape_(shape), earliest_(earliest), shares_(shares),
        watchlist_(free, jobs, shape), windows_(jobs.size()), affordable_(jobs.size(), kInfinity),
        promised_(jobs.size(), std::numeric_limits<double>::quiet_NaN()) {}

  // Records a window whose time is already booked.
  void record_window(std::size_t job, const Found& found, const Part* parts, std::size_t n) {
    JobWindow& window = windows_[job];
    window.found = found;
    window.parts.assign(parts, parts + n);
    window.state = JobState::reserved;
    watchlist_.add_reservation(job, found.start, window.parts);
    if (std::isnan(promised_[job])) promised_[job] = found.start;
  }

  // Books a window for the job; returns not_free if another booking overlaps it.
  Status book_window(std::size_t job, const Found& found, const Part* parts, std::size_t n) {
    std::size_t failed_part;
    if (free_.pool.book(found.start, parts, n, failed_part) != Status::ok) return Status::not_free;
    record_window(job, found, parts, n);
    return Status::ok;
  }

  // Excludes the job from execution.
  void mark_failed(std::size_t job) { windows_[job].state = JobState::out; }

  void run_reserved() {
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      if (windows_[j].state == JobState::reserved) start_job(j);
    ends_ = static_cast<std::int64_t>(part_ends_.size());
  }

  // Runs conservative backfilling; the first `fixed` jobs do not move.
  Status run_conservative(std::size_t fixed) {
    const auto waits = [this](std::size_t j) { return windows_[j].state <= JobState::reserved; };
    for (std::size_t j = fixed; j < jobs_.size(); ++j)
      if (waits(j))
        watchlist_.enqueue(j, windows_[j].state == JobState::reserved ? windows_[j].found.start
                                                                      : kInfinity);
    for (;;) {
      const double next = watchlist_.next_reserved_start();
      const double end = part_ends_.empty() ? kInfinity : part_ends_.front().time;
      if (next == kInfinity && end == kInfinity) return Status::ok;
      if (next <= end) {
        for (std::size_t j = 0; j < jobs_.size(); ++j)
          if (watchlist_.is_reserved_at(j, next)) start_job(j);
        continue;
      }
      if (const Status status = release_ended_parts(end); status != Status::ok) return status;
      for (std::size_t j = 0; j < jobs_.size(); ++j)
        if (watchlist_.needs_search(j))
          if (const Status status = move_up(j); status != Status::ok) return status;
    }
  }

  // Runs EASY backfilling: jobs with a window keep it, the others queue in order.
  Status run_easy(const PreparedSlots& base) {
    std::vector<double> arrivals;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (windows_[j].state == JobState::reserved)
        start_job(j);
      else if (windows_[j].state == JobState::waiting)
        enqueue(j);
      arrivals.push_back(jobs_[j].query.earliest);
    }
    std::sort(arrivals.begin(), arrivals.end());
    std::size_t num_arrived = 0, num_slots_begun = 0;
    double now = base.slots.front().start;  // parts booked there may end early
    while (!queue_.empty() && now < kInfinity) {
      if (const Status status = release_ended_parts(now); status != Status::ok) return status;
      for (; num_slots_begun < base.slots.size() && base.slots[num_slots_begun].start <= now;
           ++num_slots_begun)
        watchlist_.add(now, base.slots[num_slots_begun].end,
                       static_cast<std::size_t>(base.slots[num_slots_begun].place));
      if (const Status status = start_ready_jobs(now); status != Status::ok) return status;
      while (num_arrived < arrivals.size() && arrivals[num_arrived] <= now) ++num_arrived;
      now = head_ == kNoJob ? kInfinity : windows_[head_].found.start;
      if (num_slots_begun < base.slots.size())
        now = std::min(now, base.slots[num_slots_begun].start);
      if (num_arrived < arrivals.size()) now = std::min(now, arrivals[num_arrived]);
      for (const std::size_t j : queue_) now = std::min(now, affordable_[j]);
      if (!part_ends_.empty()) now = std::min(now, part_ends_.front().time);
    }
    ends_ += static_cast<std::int64_t>(part_ends_.size());
    return Status::ok;
  }

  // Writes the outcome; for jobs without a window also the reason.
  void answer(ExecutionAnswer& out) {
    Workspace& work = workspace();
    out.promised = promised_;
    out.ends = ends_, out.moves = moves_;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const JobWindow& window = windows_[j];
      if (window.state == JobState::waiting || window.state == JobState::out) {
        out.windows.add_none();
        const Status status = window.undecided ? Status::undecided : Status::none;
        out.reasons.push_back(static_cast<std::uint8_t>(
            detail::rejection_reason(status, free_.pool, free_.slots, jobs_[j].query, shape_,
                                     work)));
      } else {
        out.windows.add(window.found, window.parts.data(), window.parts.size());
        out.reasons.push_back(0);
      }
    }
  }

 private:
  enum class JobState : std::uint8_t { waiting = 0, reserved, started, out };

  // The state and the window of a job; the window is valid if reserved or started.
  struct JobWindow {
    JobState state = JobState::waiting;
    bool undecided = false;  // a search for this job spent its work: a window may exist
    Found found;
    std::vector<Part> parts;
  };
  // The end of a running part: its time, job, and index among the parts of the job.
  struct PartEnd {
    double time;
    std::uint32_t job, part;
    bool operator<(const PartEnd& other) const {  // reversed: std heaps put the largest on top
      if (time != other.time) return time > other.time;
      return job != other.job ? job > other.job : part > other.part;
    }
  };
  static constexpr std::size_t kNoJob = ~std::size_t{0};

  // Appends the job to the EASY queue; any start up to latest_start() is an improvement.
  void enqueue(std::size_t job) {
    queue_.push_back(job);
    watchlist_.enqueue(job, latest_start(job, -kInfinity));
  }
  // The latest start of interest of a job behind the head: now, or any if its cost may fall.
  double latest_start(std::size_t job, double now) const {
    const bool may_get_cheaper = free_.pool.has_tariffs() && jobs_[job].query.budget < kInfinity;
    return may_get_cheaper ? kInfinity : now;
  }

  // Starts the job in its window, which must be booked, and schedules the ends of its parts.
  void start_job(std::size_t job) {
    JobWindow& window = windows_[job];
    window.state = JobState::started;
    watchlist_.remove_reservation(job, window.parts);
    watchlist_.dequeue(job);
    for (std::size_t k = 0; k < window.parts.size(); ++k) {
      const double time = window.found.start + window.parts[k].length * shares_[job];
      part_ends_.push_back({time, static_cast<std::uint32_t>(job), static_cast<std::uint32_t>(k)});
      std::push_heap(part_ends_.begin(), part_ends_.end());
    }
  }

  // Advances the clock to `now` and releases the unused reserved time of parts that have ended.
  Status release_ended_parts(double now) {
    poll();
    free_.pool.set_clock(now);
    if (ends_since_trim_ >= free_.slots.nodes.size()) {
      free_.pool.trim_before_now();
      ends_since_trim_ = 0;
    }
    while (!part_ends_.empty() && part_ends_.front().time <= now) {
      const JobWindow& window = windows_[part_ends_.front().job];
      const Part& part = window.parts[part_ends_.front().part];
      std::size_t failed_part;
      if (free_.pool.release(window.found.start, &part, 1, failed_part) != Status::ok)
        return Status::internal;
      watchlist_.add(now, window.found.start + part.length, place_of(part));
      std::pop_heap(part_ends_.begin(), part_ends_.end());
      part_ends_.pop_back();
      ++ends_;
      ++ends_since_trim_;
    }
    return Status::ok;
  }

  std::size_t place_of(const Part& part) const {
    return static_cast<std::size_t>(free_.pool.place_of(part.node));
  }

  // Releases the job's reservation. publish_vacated_time() adds the vacated time to the watchlist,
  // after the job has its new window.
  Status release_reservation(std::size_t job) {
    JobWindow& window = windows_[job];
    window.state = JobState::waiting;
    watchlist_.remove_reservation(job, window.parts);
    vacated_start_ = window.found.start;
    vacated_parts_.swap(window.parts);
    std::size_t failed_part;
    return free_.pool.release(vacated_start_, vacated_parts_.data(), vacated_parts_.size(),
                              failed_part) == Status::ok
               ? Status::ok
               : Status::internal;
  }
  void publish_vacated_time(std::size_t job) {
    for (const Part& part : vacated_parts_)
      watchlist_.add(vacated_start_, vacated_start_ + part.length, place_of(part));
    watchlist_.mark_checked(job);
  }

  // Searches for a window that starts within `starts`; returns none if none was found, and
  // records it if that is not proven.
  Status search_window(std::size_t job, const ReleaseWatchlist::StartRange& starts, Found& found) {
    const Status status = free_.pool.find_in_range(starts.first, starts.last, jobs_[job].query,
                                                   earliest_, shape_, workspace(), found);
    if (status == Status::undecided) windows_[job].undecided = true;
    return detail::found_nothing(status) ? Status::none : status;
  }

  Status book_found(std::size_t job, const Found& found) {
    const Workspace& work = workspace();
    return book_window(job, found, work.parts.data(), work.parts.size());
  }

  // Moves a waiting job to an earlier window if there is one; a job without one may get its first.
  Status move_up(std::size_t job) {
    const JobWindow& window = windows_[job];
    const double start = window.state == JobState::reserved ? window.found.start : kInfinity;
    bool moved = false;
    const Status status =
        move_within(job, feasible_starts(job, std::nextafter(start, -kInfinity)), moved);
    moves_ += moved && start < kInfinity;
    return status;
  }

  // Gives the job the best window that starts within `starts`. All of `starts` precede its
  // reservation, if it has one; without a better window the job keeps it.
  Status move_within(std::size_t job, const ReleaseWatchlist::StartRange& starts, bool& moved) {
    if (!starts.any()) return Status::ok;
    const JobWindow& window = windows_[job];
    const bool had = window.state == JobState::reserved;
    Found found;
    if (had)
      free_.pool.assume_free(window.found.start, starts.last, window.parts.data(),
                             window.parts.size());
    const Status status = search_window(job, starts, found);
    if (had) free_.pool.end_assume_free(window.parts.data(), window.parts.size());
    if (status != Status::ok) return status == Status::none ? Status::ok : status;
    moved = true;
    if (!had) return book_found(job, found);
    if (const Status given = release_reservation(job); given != Status::ok) return given;
    if (const Status taken = book_found(job, found); taken != Status::ok) return taken;
    publish_vacated_time(job);
    return Status::ok;
  }

  // Starts the jobs that can start. The head has priority over all others while it holds a
  // reservation: no later arrival, and no job that fits thanks to an early end, may delay it.
  Status start_ready_jobs(double now) {
    if (head_ != kNoJob)
      if (const Status status = move_head(now); status != Status::ok) return status;
    for (const std::size_t j : queue_) {
      if (head_ != kNoJob && !watchlist_.needs_search(j) && affordable_[j] > now) continue;
      if (windows_[j].state != JobState::waiting || jobs_[j].query.earliest > now) continue;
      const Status status = head_ == kNoJob ? start_or_reserve(j, now) : start_if_possible(j, now);
      if (status != Status::ok) return status;
    }
    std::erase_if(queue_, [this](std::size_t j) { return windows_[j].state == JobState::started; });
    return Status::ok;
  }

  // Moves the head to an earlier window, or starts it. At its reserved start other slots may have
  // become the cheapest, so the reservation is then released and searched for again. The window may
  // be the only one by that start: under tariffs its start need not be a turn of cheaper parts.
  Status move_head(double now) {
    const std::size_t j = head_;
    const JobWindow& window = windows_[j];
    const ReleaseWatchlist::StartRange starts = feasible_starts(j, window.found.start);
    if (starts.any() && !(starts.last < window.found.start)) {
      head_ = kNoJob;
      const Found reserved = window.found;
      if (const Status status = release_reservation(j); status != Status::ok) return status;
      if (const Status status = start_or_reserve(j, now, reserved.start); status != Status::ok)
        return status;
      if (window.state == JobState::waiting)
        if (const Status status = start_or_book(j, now, reserved, vacated_parts_);
            status != Status::ok)
          return status;
      publish_vacated_time(j);
      return Status::ok;
    }
    bool moved = false;
    if (const Status status = move_within(j, starts, moved); status != Status::ok) return status;
    if (window.found.start <= now) start_job(std::exchange(head_, kNoJob));
    return Status::ok;
  }

  ReleaseWatchlist::StartRange feasible_starts(std::size_t job, double latest) {
    return watchlist_.feasible_starts(job, latest, windows_[job].parts);
  }

  // Starts the job if a window starts now; jobs behind the head get no reservation.
  Status start_if_possible(std::size_t j, double now) {
    ReleaseWatchlist::StartRange starts = feasible_starts(j, latest_start(j, now));
    if (affordable_[j] <= now) {  // a booking may have taken that window: search all starts again
      affordable_[j] = kInfinity;
      starts = {now, kInfinity};
    }
    if (!starts.any()) return Status::ok;
    Found found;
    if (const Status status = search_window(j, starts, found); status != Status::ok)
      return status == Status::none ? Status::ok : status;
    if (found.start > now) {
      affordable_[j] = std::min(affordable_[j], found.start);
      return Status::ok;
    }
    const Status placed = book_found(j, found);
    if (placed == Status::ok) start_job(j);
    return placed;
  }

  // Starts the job now, or reserves its earliest window by `latest` and makes it the head.
  Status start_or_reserve(std::size_t j, double now, double latest = kInfinity) {
    Found found;
    watchlist_.mark_checked(j);
    affordable_[j] = kInfinity;
    const Status status = search_window(j, {-kInfinity, latest}, found);
    if (status != Status::ok) return status == Status::none ? Status::ok : status;
    return start_or_book(j, now, found, workspace().parts);
  }
  // Books the window and starts the job now, or makes it the head.
  Status start_or_book(std::size_t j, double now, const Found& found,
                       const std::vector<Part>& parts) {
    const Status placed = book_window(j, found, parts.data(), parts.size());
    if (placed != Status::ok) return placed;
    if (found.start <= now)
      start_job(j);
    else
      head_ = j;
    return Status::ok;
  }

  BatchPool& free_;
  const std::vector<BatchJob>& jobs_;
  const ShapeKind shape_;
  const int earliest_;  // index of the criterion of searches
  const double* const shares_;
  ReleaseWatchlist watchlist_;
  std::vector<JobWindow> windows_;
  std::vector<double> affordable_;  // EASY: a start to search for behind the head; infinite: none
  std::vector<double> promised_;
  std::vector<PartEnd> part_ends_;   // heap of the parts that run, earliest end on top
  std::vector<Part> vacated_parts_;  // parts of the reservation released last
  double vacated_start_ = 0;
  std::vector<std::size_t> queue_;   // EASY: jobs that have not started, in order
  std::size_t head_ = kNoJob;        // EASY: the queued job that holds a reservation
  std::size_t ends_since_trim_ = 0;  // parts that ended since the pool last dropped past time
  std::int64_t ends_ = 0, moves_ = 0;
};

}  // namespace slotkern

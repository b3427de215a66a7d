// Replays jobs on a machine: a discrete-event loop around a scheduler.
//
// The events of one time are processed in this order, which is repeated while such an event is
// left: jobs and blocked spans end; blocked spans begin, by end and then width; jobs are submitted,
// by number; the scheduler runs one pass and starts jobs. The result depends on the input alone. A
// job of a `Chain` is submitted when the preceding job has ended and its think time is over, but
// not before its own submission time.
//
// A scheduler has no clock of its own: the loop notifies it of submissions and ends, and it returns
// the jobs to start (concept `Scheduler`), so that other loops can drive it, too.
// Cost: O(log n) for each event, besides the scheduler's; memory O(n + spans of processors).
#pragma once

#include <algorithm>
#include <concepts>
#include <tuple>
#include <variant>

#include "slotkern/base/status.hpp"
#include "slotkern/replay/conservative.hpp"
#include "slotkern/replay/priority.hpp"
#include "slotkern/replay/processors.hpp"
#include "slotkern/replay/queue_scheduler.hpp"

namespace slotkern::replay {

// The interface between the event loop and a scheduler.
template <class S>
concept Scheduler = requires(S scheduler, const S constant, JobId job, double now) {
  scheduler.on_submit(job, now);
  scheduler.on_end(job, now);
  scheduler.start_jobs(now, [](JobId) {});
  { constant.next_wakeup() } -> std::same_as<double>;
  { constant.waiting() } -> std::same_as<std::size_t>;
};
static_assert(Scheduler<QueueScheduler> && Scheduler<ConservativeScheduler>);

// A machine and its blocked time.
struct Machine {
  std::int32_t processors = 1;
  std::vector<BlockedSpan> blocked;
};

// The event loop of one replay.
class Replay {
 public:
  Replay(const JobColumns& jobs, const Machine& machine, Backfill backfill, const QueueOrder& order,
         Usage* usage, const std::int32_t* user, bool nodes, const Chain& chain = {})
      : jobs_(jobs), blocked_(machine.blocked), usage_(usage), user_(user),
        processors_(nodes ? machine.processors : 1), binds_processors_(nodes), start_(jobs.size),
        scheduler_(make_scheduler(jobs, machine, backfill, order)), chain_(chain) {
    for (std::size_t row = 0; row < blocked_.size(); ++row) block_order_.push_back(row);
    std::sort(block_order_.begin(), block_order_.end(), [this](std::size_t a, std::size_t b) {
      const BlockedSpan &x = blocked_[a], &y = blocked_[b];
      return std::tie(x.start, x.end, x.width, a) < std::tie(y.start, y.end, y.width, b);
    });
    if (nodes) placement_.resize(jobs.size + blocked_.size());
    if (chain_.before) build_successor_lists();
  }

  // Processes up to `events` time steps. Status::interrupted: jobs remain, so call it again.
  Status run(std::size_t events) noexcept {
    return guarded([&] {
      return std::visit([&](auto& scheduler) { return run(scheduler, events); }, scheduler_);
    });
  }

  const std::vector<double>& start() const { return start_; }
  const Placement& placement() const { return placement_; }
  std::size_t submitted() const { return next_job_; }
  std::size_t most_waiting() const { return max_waiting_; }
  // Returns, for a chain, the row of each job in the order of submission.
  const std::vector<std::uint32_t>& row_of() const { return row_of_; }

 private:
  using AnyScheduler = std::variant<QueueScheduler, ConservativeScheduler>;

  static AnyScheduler make_scheduler(const JobColumns& jobs, const Machine& machine,
                                     Backfill backfill, const QueueOrder& order) {
    if (backfill == Backfill::conservative)
      return ConservativeScheduler(jobs, machine.processors, order, machine.blocked);
    return QueueScheduler(jobs, machine.processors, order, backfill, machine.blocked);
  }

  template <Scheduler S>
  Status run(S& scheduler, std::size_t events) {
    while (ended_ < jobs_.size) {
      if (events-- == 0) return Status::interrupted;
      const double next_submission = chain_.before            ? next_chain_submission()
                                     : next_job_ < jobs_.size ? jobs_.submit[next_job_]
                                                              : kNever;
      const double block = next_block();
      const double now = std::min({next_submission, block, ends_.time(), scheduler.next_wakeup()});
      for (; ends_.time() == now; ends_.pop()) end(scheduler, ends_.top().job, now);
      while (next_block() == now) start_block(block_order_[next_block_++]);
      if (chain_.before)
        submit_chain_rows(scheduler, now);
      else
        for (; next_job_ < jobs_.size && jobs_.submit[next_job_] == now; ++next_job_)
          scheduler.on_submit(static_cast<JobId>(next_job_), now);
      scheduler.start_jobs(now, [&](JobId job) {
        start_[job] = now;
        if (usage_) usage_->update(user_[job], now, jobs_.width[job]);
        if (binds_processors_) processors_.allocate(job, jobs_.width[job], placement_);
        ends_.push({now + jobs_.run[job], job});
      });
      max_waiting_ = std::max(max_waiting_, scheduler.waiting());
    }
    return Status::ok;
  }

  template <Scheduler S>
  void end(S& scheduler, JobId job, double now) {
    if (binds_processors_) processors_.release(job, placement_);
    if (job >= jobs_.size) return;  // the number of a blocked span
    ++ended_;
    scheduler.on_end(job, now);
    if (usage_) usage_->update(user_[job], now, -jobs_.width[job]);
    if (chain_.before) release_successors(row_of_[job], now);
  }

  // Builds the lists of the rows that depend on each row, one after another in `successors_`.
  void build_successor_lists() {
    const std::size_t rows = chain_.given.size;
    first_.assign(rows + 1, 0);
    for (std::size_t row = 0; row < rows; ++row)
      if (chain_.before[row] >= 0) ++first_[static_cast<std::size_t>(chain_.before[row]) + 1];
    for (std::size_t row = 0; row < rows; ++row) first_[row + 1] += first_[row];
    successors_.resize(first_[rows]);
    std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
    for (std::size_t row = 0; row < rows; ++row)
      if (chain_.before[row] >= 0)
        successors_[at[static_cast<std::size_t>(chain_.before[row])]++] =
            static_cast<std::uint32_t>(row);
    row_of_.reserve(rows);
    skip_successors();
  }

  // Advances to the next row that depends on no other row.
  void skip_successors() {
    while (next_row_ < chain_.given.size && chain_.before[next_row_] >= 0) ++next_row_;
  }

  double next_chain_submission() const {
    const double own =
        next_row_ < chain_.given.size ? chain_.given.submit[next_row_] : kNever;
    return std::min(own, ready_.time());
  }

  // Submits all rows of a chain that are due now, by row.
  template <Scheduler S>
  void submit_chain_rows(S& scheduler, double now) {
    while (true) {
      const bool own = next_row_ < chain_.given.size && chain_.given.submit[next_row_] == now;
      const bool freed = ready_.time() == now;
      if (!own && !freed) return;
      std::uint32_t row = 0;
      if (own && !(freed && ready_.top().job < next_row_)) {
        row = static_cast<std::uint32_t>(next_row_++);
        skip_successors();
      } else {
        row = ready_.top().job;
        ready_.pop();
      }
      const auto job = static_cast<JobId>(next_job_++);
      chain_.write(job, row, now);
      row_of_.push_back(row);
      scheduler.on_submit(job, now);
    }
  }

  void release_successors(std::uint32_t row, double now) {
    for (std::size_t k = first_[row]; k < first_[row + 1]; ++k) {
      const std::uint32_t next = successors_[k];
      ready_.push({std::max(chain_.given.submit[next], now + chain_.think[next]), next});
    }
  }

  double next_block() const {
    return next_block_ < blocked_.size() ? blocked_[block_order_[next_block_]].start : kNever;
  }

  void start_block(std::size_t row) {
    const auto id = static_cast<JobId>(jobs_.size + row);
    if (binds_processors_) processors_.allocate(id, blocked_[row].width, placement_);
    ends_.push({blocked_[row].end, id});
  }

  JobColumns jobs_;
  std::vector<BlockedSpan> blocked_;
  std::vector<std::size_t> block_order_;  // rows of blocked_, by start, end and width
  Usage* usage_;
  const std::int32_t* user_;
  EventQueue ends_;
  ProcessorAllocator processors_;
  bool binds_processors_;
  Placement placement_;
  std::vector<double> start_;
  AnyScheduler scheduler_;
  std::size_t next_job_ = 0, next_block_ = 0, ended_ = 0, max_waiting_ = 0;
  Chain chain_;
  std::vector<std::uint32_t> first_, successors_;  // rows that depend on row r: from first_[r] on
  std::vector<std::uint32_t> row_of_;              // row of each submitted job
  EventQueue ready_;                               // rows whose preceding row has ended
  std::size_t next_row_ = 0;                       // next independent row to submit
};

}  // namespace slotkern::replay

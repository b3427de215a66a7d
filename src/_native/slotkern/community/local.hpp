// Local schedulers: they choose which of the waiting jobs of a node start.
//
// Fcfs needs only the queue. BackfillScheduler drives a scheduler of the replay kernel (EASY, first
// fit or conservative backfilling) by the order of arrival or by the shortest estimate. A pass runs
// after all events of a time.
// Memory of BackfillScheduler: 8 to 12 bytes for each pair of a job and a node, and one column of
// scaled estimates for each distinct speed.
#pragma once

#include <map>
#include <variant>

#include "slotkern/community/queue.hpp"
#include "slotkern/replay/conservative.hpp"
#include "slotkern/replay/queue_scheduler.hpp"

namespace slotkern::community {

// The policy of all local schedulers.
struct LocalPolicy {
  Backfill backfill = Backfill::none;
  bool shortest_first = false;
  bool is_plain_fcfs() const { return backfill == Backfill::none && !shortest_first; }
};

// Empty state of a policy whose schedulers share nothing.
struct NoSharedState {
  NoSharedState(const CommunityJobs&, const LocalPolicy&) {}
};

// First come first served: no job overtakes the head.
class Fcfs {
 public:
  using SharedState = NoSharedState;
  Fcfs(SharedState&, const NodeSpec&) {}

  void on_arrival(JobId, double) {}
  void on_departure(JobId, double) {}
  void on_end(JobId, double) {}
  double next_wakeup() const { return kNever; }

  template <class Start>
  void start_jobs(const CommunityJobs& jobs, const LocalQueue& queue, const std::int32_t& free,
                  double, Start start) {
    while (!queue.empty() && jobs.width[queue[0].job] <= free) start(0);
  }
};

// A local scheduler that drives a scheduler of the replay kernel.
class BackfillScheduler {
 public:
  // State shared by the schedulers of all nodes: keys of the queue order, estimates by speed.
  struct SharedState {
    SharedState(const CommunityJobs& jobs, const LocalPolicy& policy)
        : jobs(jobs), policy(policy), key(jobs.size) {}

    // Returns the jobs with estimates for this speed, computed at the first call.
    replay::JobColumns at(double speed) {
      std::vector<double>& column = estimates[speed];
      if (column.empty())
        for (std::size_t i = 0; i < jobs.size; ++i) column.push_back(jobs.estimate[i] / speed);
      return {jobs.submit, jobs.run, column.data(), jobs.width, jobs.size};
    }

    CommunityJobs jobs;
    LocalPolicy policy;
    std::vector<double> key;
    double came = 0;  // number of arrivals, at any node
    std::map<double, std::vector<double>> estimates;
  };

  BackfillScheduler(SharedState& shared, const NodeSpec& profile)
      : shared_(&shared), scheduler_(make(shared, profile)) {}

  void on_arrival(JobId job, double now) {
    shared_->key[job] =
        shared_->policy.shortest_first ? shared_->jobs.estimate[job] : shared_->came++;
    std::visit([&](auto& it) { it.on_submit(job, now); }, scheduler_);
  }
  void on_departure(JobId job, double now) {
    std::visit([&](auto& it) { it.on_withdraw(job, now); }, scheduler_);
  }
  void on_end(JobId job, double now) {
    std::visit([&](auto& it) { it.on_end(job, now); }, scheduler_);
  }
  double next_wakeup() const {
    return std::visit([](const auto& it) { return it.next_wakeup(); }, scheduler_);
  }

  template <class Start>
  void start_jobs(const CommunityJobs&, const LocalQueue& queue, const std::int32_t&, double now,
                  Start start) {
    std::visit(
        [&](auto& it) { it.start_jobs(now, [&](JobId job) { start(queue.find(job)); }); },
        scheduler_);
  }

 private:
  using Scheduler = std::variant<replay::QueueScheduler, replay::ConservativeScheduler>;

  static Scheduler make(SharedState& shared, const NodeSpec& profile) {
    const replay::JobColumns jobs = shared.at(profile.speed);
    const replay::QueueOrder order{shared.key.data()};
    if (shared.policy.backfill == Backfill::conservative)
      return replay::ConservativeScheduler(jobs, profile.processors, order, {});
    return replay::QueueScheduler(jobs, profile.processors, order,
                                  shared.policy.backfill, {});
  }

  SharedState* shared_;
  Scheduler scheduler_;
};

}  // namespace slotkern::community

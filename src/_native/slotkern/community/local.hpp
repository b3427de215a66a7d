// Local schedulers: which of the jobs that wait on a node start.
//
// Fcfs is strict and needs nothing but the queue. Backfilling drives a scheduler of the replay
// kernel: EASY, first fit or conservative backfilling in the order of coming, or the shortest
// estimate first. A look comes when everything of that time has happened.
// Memory of Backfilling: jobs * nodes, 8 to 12 bytes each, and the scaled estimates of every
// different speed.
#pragma once

#include <map>
#include <variant>

#include "slotkern/community/queue.hpp"
#include "slotkern/replay/backfill.hpp"
#include "slotkern/replay/conservative.hpp"

namespace slotkern::community {

enum class Overtaking : int { none, easy, first_fit, conservative };

struct LocalPolicy {
  Overtaking overtaking = Overtaking::none;
  bool shortest_first = false;
  bool plain() const { return overtaking == Overtaking::none && !shortest_first; }
};

// First come first served: nobody overtakes the head.
class Fcfs {
 public:
  struct Shared {
    Shared(const Jobs&, const LocalPolicy&) {}
  };
  Fcfs(Shared&, const Profile&) {}

  void came(JobId, double) {}
  void left(JobId, double) {}
  void ended(JobId, double) {}
  double wake() const { return kNever; }

  template <class Start>
  void look(const Jobs& jobs, const LocalQueue& queue, const std::int32_t& free, double,
            Start start) {
    while (!queue.empty() && jobs.width[queue[0].job] <= free) start(0);
  }
};

class Backfilling {
 public:
  // What the schedulers of all nodes read: keys of the order; estimates by speed.
  struct Shared {
    Shared(const Jobs& jobs, const LocalPolicy& policy)
        : jobs(jobs), policy(policy), key(jobs.size) {}

    replay::Jobs at(double speed) {
      std::vector<double>& column = estimates[speed];
      if (column.empty())
        for (std::size_t i = 0; i < jobs.size; ++i) column.push_back(jobs.estimate[i] / speed);
      return {jobs.submit, jobs.run, column.data(), jobs.width, jobs.size};
    }

    Jobs jobs;
    LocalPolicy policy;
    std::vector<double> key;
    double came = 0;  // so many jobs have, to any node
    std::map<double, std::vector<double>> estimates;
  };

  Backfilling(Shared& shared, const Profile& profile)
      : shared_(&shared), scheduler_(make(shared, profile)) {}

  void came(JobId job, double now) {
    shared_->key[job] =
        shared_->policy.shortest_first ? shared_->jobs.estimate[job] : shared_->came++;
    std::visit([&](auto& it) { it.submit(job, now); }, scheduler_);
  }
  void left(JobId job, double now) {
    std::visit([&](auto& it) { it.withdraw(job, now); }, scheduler_);
  }
  void ended(JobId job, double now) {
    std::visit([&](auto& it) { it.end(job, now); }, scheduler_);
  }
  double wake() const {
    return std::visit([](const auto& it) { return it.wake(); }, scheduler_);
  }

  template <class Start>
  void look(const Jobs&, const LocalQueue& queue, const std::int32_t&, double now, Start start) {
    std::visit(
        [&](auto& it) { it.decide(now, [&](JobId job) { start(queue.find(job)); }); },
        scheduler_);
  }

 private:
  using Scheduler = std::variant<replay::QueueScheduler, replay::ConservativeScheduler>;

  static Scheduler make(Shared& shared, const Profile& profile) {
    const replay::Jobs jobs = shared.at(profile.speed);
    const replay::Order order{shared.key.data()};
    const auto overtaking = shared.policy.overtaking;
    if (overtaking == Overtaking::conservative)
      return replay::ConservativeScheduler(jobs, profile.processors, order, {});
    return replay::QueueScheduler(jobs, profile.processors, order,
                                  static_cast<replay::Backfill>(overtaking), {});
  }

  Shared* shared_;
  Scheduler scheduler_;
};

}  // namespace slotkern::community

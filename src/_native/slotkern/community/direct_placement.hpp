// The scenarios without a protocol: every job stays at home (Ind), or one centre that sees all
// places it (Cen, BestFit).
//
// BestFit takes the node that has the fewest free processors left, among those that can start
// the job now: enough free processors and an empty queue (section 5.1 of the paper). What is
// done where nothing fits is not printed; `PlacementPolicy` has the choices. A node that has left may come
// back: in Ind its jobs wait for it, also those handed in meanwhile; in Cen those that no other
// node could run wait for whoever joins. At one time jobs end first, then nodes leave or join,
// then decisions are made, then jobs come. In Ind each node looks at its queue once then, as in
// the replay kernel; each decision of the centre of Cen takes effect at once, in the order of
// submission.
//
// With `decision` > 0 the centre decides on one job after another, in the order in which they
// come, and each decision takes that many seconds; the node is chosen when the time has passed.
// A job that leaves a queue because its node left, or that waited for a node to join, is decided
// upon again. A job that waits at the centre has been decided upon. Cost: O(1) a job in Ind,
// O(nodes) in Cen.
#pragma once

#include <algorithm>
#include <deque>

#include "slotkern/community/sites.hpp"

namespace slotkern::community {

enum class PlacementPolicy : int {
  home,          // Ind
  most_free,     // queued at the competent node with the most free processors
  least_load,    // ... with the least queued load per speed and processors
  central_fcfs,  // waits at the centre; nobody overtakes the first
  central_scan,  // waits at the centre; whoever fits starts
};

template <class Local>
class DirectPlacement {
 public:
  DirectPlacement(const CommunityJobs& jobs, const Grid& grid, const LocalPolicy& local,
                  PlacementPolicy policy, double decision)
      : jobs_(jobs), grid_(grid), policy_(policy), decision_(decision), sites_(jobs, grid, local),
        queues_(grid.nodes.size()), present_(grid.present) {}

  // Goes on until everything has happened; may be interrupted between events.
  void run() {
    while (true) {
      const double change =
          next_change_ < grid_.changes.size() ? grid_.changes[next_change_].time : kNever;
      const double coming = next_job_ < jobs_.size ? jobs_.submit[next_job_] : kNever;
      const double end = sites_.next_event();
      const double decided = undecided_.empty() ? kNever : ready_;
      const auto queue_of = [&](NodeId node) -> LocalQueue& { return queues_[node]; };
      if (sites_.has_marked() && std::min({end, change, decided, coming}) > now_) {
        sites_.start_marked(queue_of, now_);
        continue;
      }
      if (end <= change && end <= coming && end <= decided) {
        if (end == kNever) break;
        pacer_.count_event();
        now_ = end;
        sites_.end_jobs(queue_of);
        if (policy_ != PlacementPolicy::home) sites_.start_marked(queue_of, now_);
        if (central()) drain(end);
      } else if (change <= coming && change <= decided) {
        pacer_.count_event();
        now_ = change;
        apply(grid_.changes[next_change_++]);
      } else if (decided <= coming) {
        pacer_.count_event();
        const JobId job = undecided_.front();
        undecided_.pop_front();
        ready_ = decided + decision_;
        now_ = decided;
        place(job, decided);
      } else {
        pacer_.count_event();
        now_ = coming;
        decide(static_cast<JobId>(next_job_++), coming);
      }
    }
    Outcome& outcome = sites_.outcome();
    for (std::size_t job = 0; job < jobs_.size; ++job)
      if (outcome.fate[job] == Fate::pending)
        outcome.fate[job] = std::isnan(outcome.queued[job]) ? Fate::no_node : Fate::stranded;
  }

  const Outcome& outcome() const { return sites_.outcome(); }
  std::size_t submitted() const { return next_job_; }
  std::size_t events() const { return pacer_.events(); }

 private:
  bool central() const { return policy_ >= PlacementPolicy::central_fcfs; }
  bool can_run_on(NodeId node, JobId job) const {
    return present_[node] && grid_.nodes[node].can_run(jobs_, job);
  }
  bool any_node_can_run(JobId job) const {
    for (NodeId node = 0; node < grid_.nodes.size(); ++node)
      if (can_run_on(node, job)) return true;
    return false;
  }
  // Now, or in Ind when the time is over.
  void start_or_mark(NodeId node, double now) {
    if (policy_ == PlacementPolicy::home)
      sites_.mark(node);
    else
      sites_.start_jobs(node, queues_[node], now);
  }

  // Places a job at once, or once the centre has decided upon it.
  void decide(JobId job, double now) {
    if (decision_ == 0) return place(job, now);
    if (undecided_.empty()) ready_ = now + decision_;
    undecided_.push_back(job);
  }

  void place(JobId job, double now) {
    if (policy_ == PlacementPolicy::home) {
      const auto home = static_cast<NodeId>(jobs_.home[job]);
      if (grid_.nodes[home].can_run(jobs_, job)) enqueue(home, job, now);
      return;
    }
    if (!central()) {
      NodeId node = best_fit(job);
      if (node == kNone) node = fallback(job);
      if (node != kNone) return enqueue(node, job, now);
    }
    // It waits at the centre, if there is a node that could run it once it joins.
    const auto fits = [&](const NodeSpec& node) { return node.can_run(jobs_, job); };
    if (!std::any_of(grid_.nodes.begin(), grid_.nodes.end(), fits)) return;
    waiting_.push_back(job);
    if (central()) drain(now);
  }

  void enqueue(NodeId node, JobId job, double now) {
    queues_[node].push({job, 0, now}, jobs_.load(job));
    sites_.on_arrival(node, job, now);
    start_or_mark(node, now);
  }

  NodeId best_fit(JobId job) const {
    NodeId best = kNone;
    std::int32_t least = 0;
    for (NodeId node = 0; node < grid_.nodes.size(); ++node) {
      const std::int32_t left = sites_.free()[node] - jobs_.width[job];
      if (left < 0 || (best != kNone && left >= least)) continue;
      if (!can_run_on(node, job) || !queues_[node].empty()) continue;
      best = node;
      least = left;
    }
    return best;
  }

  NodeId fallback(JobId job) const {
    NodeId best = kNone;
    double least = kNever;
    for (NodeId node = 0; node < grid_.nodes.size(); ++node) {
      if (!can_run_on(node, job)) continue;
      const double value = policy_ == PlacementPolicy::most_free
                               ? -static_cast<double>(sites_.free()[node])
                               : queues_[node].load() / grid_.nodes[node].power();
      if (value >= least) continue;
      best = node;
      least = value;
    }
    return best;
  }

  // Starts what waits at the centre. A job that no node could run now holds nobody up.
  void drain(double now) {
    for (std::size_t i = 0; i < waiting_.size();) {
      const JobId job = waiting_[i];
      const NodeId node = best_fit(job);
      if (node != kNone) {
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        enqueue(node, job, now);
      } else if (policy_ == PlacementPolicy::central_fcfs && any_node_can_run(job)) {
        break;
      } else {
        ++i;
      }
    }
  }

  void apply(const MembershipChange& change) {
    if (present_[change.node] == change.joins) return;
    present_[change.node] = change.joins;
    LocalQueue& queue = queues_[change.node];
    sites_.set_serving(change.node, change.joins, queue, change.time);
    std::vector<JobId> again;  // in the order in which they came
    if (change.joins) {
      start_or_mark(change.node, change.time);
      if (!central()) again.assign(waiting_.begin(), waiting_.end()), waiting_.clear();
    } else if (policy_ != PlacementPolicy::home) {
      while (!queue.empty()) again.push_back(queue.remove(0, jobs_.load(queue[0].job)).job);
    }
    for (const JobId job : again) decide(job, change.time);
    if (central()) drain(change.time);  // whom only the node that left could run holds nobody up
  }

  CommunityJobs jobs_;
  Grid grid_;
  PlacementPolicy policy_;
  double decision_;     // s a job, at the centre
  double ready_ = 0.0;  // s; when the first undecided job is placed
  Sites<Local> sites_;
  std::vector<LocalQueue> queues_;
  std::vector<std::uint8_t> present_;
  std::deque<JobId> waiting_;    // at the centre, decided upon
  std::deque<JobId> undecided_;  // at the centre, in the order in which they came
  std::size_t next_job_ = 0, next_change_ = 0;
  double now_ = 0;
  InterruptPacer pacer_;
};

}  // namespace slotkern::community

// Simulates the scenarios without a protocol: jobs run on their home node (Ind), or a central
// scheduler with complete information places them (Cen, BestFit).
//
// BestFit chooses, among the nodes that can start the job now (enough free processors and an empty
// queue), the node with the fewest processors left (section 5.1 of the paper). The paper leaves
// open what happens if there is none; `PlacementPolicy` has the options. A node that has left may
// return. In Ind its jobs, including those submitted meanwhile, wait for it. In Cen a job that no
// present node can run waits for one that joins. The order of events of one time: job ends,
// departures and arrivals of nodes, decisions, submissions. In Ind each node then runs one pass of
// its local scheduler, as in a replay. In Cen each decision takes effect immediately.
//
// With `decision` > 0, decisions take that many seconds each and are made one after another, in the
// order of submission; the node is chosen at the end of that time. A job is decided again if its
// node leaves while the job is queued, or if a node joins that it waited for; a job in the central
// queue has been decided. Cost for each job: O(1) in Ind, O(nodes) in Cen.
#pragma once

#include <algorithm>
#include <deque>

#include "slotkern/community/sites.hpp"

namespace slotkern::community {

// The policies that choose the node of a job.
enum class PlacementPolicy : int {
  home,          // Ind: the home node
  most_free,     // BestFit, else the queue of the capable node with the most free processors
  least_load,    // BestFit, else the queue with the least load for its speed and processors
  central_fcfs,  // a central queue in order: BestFit for its head, which no job may overtake
  central_scan,  // a central queue: BestFit for each job in order
};

// The event loop of one simulation without a protocol.
template <class Local>
class DirectPlacement {
 public:
  DirectPlacement(const CommunityJobs& jobs, const Grid& grid, const LocalPolicy& local,
                  PlacementPolicy policy, double decision)
      : jobs_(jobs), grid_(grid), policy_(policy), decision_(decision), sites_(jobs, grid, local),
        queues_(grid.nodes.size()), present_(grid.present) {}

  // Processes all events. A signal interrupts it between events; a further call continues.
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
        if (is_central()) drain(end);
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
  bool is_central() const { return policy_ >= PlacementPolicy::central_fcfs; }
  bool can_run_on(NodeId node, JobId job) const {
    return present_[node] && grid_.nodes[node].can_run(jobs_, job);
  }
  bool any_node_can_run(JobId job) const {
    for (NodeId node = 0; node < grid_.nodes.size(); ++node)
      if (can_run_on(node, job)) return true;
    return false;
  }
  // Starts jobs on the node now; in Ind at the end of this time.
  void start_or_mark(NodeId node, double now) {
    if (policy_ == PlacementPolicy::home)
      sites_.mark(node);
    else
      sites_.start_jobs(node, queues_[node], now);
  }

  // Places the job now, or after the decision time of the central scheduler.
  void decide(JobId job, double now) {
    if (decision_ == 0) return place(job, now);
    if (undecided_.empty()) ready_ = now + decision_;
    undecided_.push_back(job);
  }

  // Places a job on a node, or in the central queue.
  void place(JobId job, double now) {
    if (policy_ == PlacementPolicy::home) {
      const auto home = static_cast<NodeId>(jobs_.home[job]);
      if (grid_.nodes[home].can_run(jobs_, job)) enqueue(home, job, now);
      return;
    }
    if (!is_central()) {
      NodeId node = best_fit(job);
      if (node == kNone) node = fallback(job);
      if (node != kNone) return enqueue(node, job, now);
    }
    // Wait in the central queue if some node, present or not, can run the job.
    const auto fits = [&](const NodeSpec& node) { return node.can_run(jobs_, job); };
    if (!std::any_of(grid_.nodes.begin(), grid_.nodes.end(), fits)) return;
    waiting_.push_back(job);
    if (is_central()) drain(now);
  }

  void enqueue(NodeId node, JobId job, double now) {
    queues_[node].push({job, 0, now}, jobs_.load(job));
    sites_.on_arrival(node, job, now);
    start_or_mark(node, now);
  }

  // Returns the node of the BestFit rule, the lowest of equals; kNone if none can start the job.
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

  // Returns the node in whose queue the job waits; kNone if no present node can run it.
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

  // Starts jobs from the central queue. A job that no present node can run blocks no other job.
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

  // Lets a node join or leave, and decides again on the jobs that this affects.
  void apply(const MembershipChange& change) {
    if (present_[change.node] == change.joins) return;
    present_[change.node] = change.joins;
    LocalQueue& queue = queues_[change.node];
    sites_.set_serving(change.node, change.joins, queue, change.time);
    std::vector<JobId> again;  // in the order of arrival
    if (change.joins) {
      start_or_mark(change.node, change.time);
      if (!is_central()) again.assign(waiting_.begin(), waiting_.end()), waiting_.clear();
    } else if (policy_ != PlacementPolicy::home) {
      while (!queue.empty()) again.push_back(queue.remove(0, jobs_.load(queue[0].job)).job);
    }
    for (const JobId job : again) decide(job, change.time);
    if (is_central()) drain(change.time);  // the departure may have unblocked the queue
  }

  CommunityJobs jobs_;
  Grid grid_;
  PlacementPolicy policy_;
  double decision_;     // s for each decision of the central scheduler
  double ready_ = 0.0;  // time of the next decision, in s
  Sites<Local> sites_;
  std::vector<LocalQueue> queues_;
  std::vector<std::uint8_t> present_;
  std::deque<JobId> waiting_;    // the central queue
  std::deque<JobId> undecided_;  // jobs that await their decision, in the order of arrival
  std::size_t next_job_ = 0, next_change_ = 0;
  double now_ = 0;
  InterruptPacer pacer_;
};

}  // namespace slotkern::community

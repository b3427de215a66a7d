// The processors of all nodes of a community: they start and end jobs, independently of how a job
// was placed on its node. A `Local` scheduler chooses which waiting jobs of a node start.
//
// A running job keeps its processors until it ends, even if its node has left. It takes run / speed
// seconds. As in a replay, all events of one time are one event for a local scheduler: a node is
// marked when a job ends, arrives or departs, and the caller lets all marked nodes run one pass at
// the end of that time (`start_marked`).
// Cost: O(log running jobs) for each job, plus the local scheduler.
#pragma once

#include <cmath>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/community/local.hpp"
#include "slotkern/replay/events.hpp"

namespace slotkern::community {

// The arrival or departure of a node.
struct MembershipChange {
  double time;
  NodeId node;
  bool joins;  // false: the node leaves
};

// All nodes, and their changes of membership.
struct Grid {
  std::vector<NodeSpec> nodes;
  std::vector<MembershipChange> changes;  // by time
  std::vector<std::uint8_t> present;      // nonzero: the node is present at the beginning
};

// The final state of a job.
enum class Fate : std::uint8_t {
  pending, done,
  no_node,   // no node that the scenario could choose can run it
  no_offer,  // suspended at the end: no node has offered to run it
  stranded,  // waits on a node that has left, and no node has offered to take it
};

// The result for each job; times are NaN for events that did not happen.
struct Outcome {
  std::vector<double> queued, start, end;  // queued: first arrival at a node
  std::vector<std::int32_t> node;          // last node at which it arrived; -1: none
  std::vector<std::uint32_t> moves;        // moves between nodes after the first assignment
  std::vector<Fate> fate;

  explicit Outcome(std::size_t jobs)
      : queued(jobs, std::nan("")), start(jobs, std::nan("")), end(jobs, std::nan("")),
        node(jobs, -1), moves(jobs), fate(jobs, Fate::pending) {}
};

// The processors, running jobs and local schedulers of all nodes.
template <class Local>
class Sites {
 public:
  Sites(const CommunityJobs& jobs, const Grid& grid, const LocalPolicy& policy)
      : jobs_(jobs), nodes_(grid.nodes), serving_(grid.present), shared_(jobs, policy),
        outcome_(jobs.size), entered_(jobs.size), is_marked_(grid.nodes.size()) {
    free_.reserve(nodes_.size());
    local_.reserve(nodes_.size());
    for (const NodeSpec& profile : nodes_) {
      free_.push_back(profile.processors);
      local_.emplace_back(shared_, profile);
    }
  }
  Sites(const Sites&) = delete;
  Sites& operator=(const Sites&) = delete;

  const Outcome& outcome() const { return outcome_; }
  Outcome& outcome() { return outcome_; }
  const std::vector<std::int32_t>& free() const { return free_; }
  // Returns the next job end, or the next time at which a node runs a pass without an event.
  double next_event() const { return std::min(ends_.time(), wakes_.time()); }

  void on_arrival(NodeId node, JobId job, double now) {
    if (std::isnan(outcome_.queued[job]))
      outcome_.queued[job] = now;
    else
      ++outcome_.moves[job];
    outcome_.node[job] = static_cast<std::int32_t>(node);
    if (serving_[node]) local_[node].on_arrival(job, now);
  }

  void on_departure(NodeId node, JobId job, double now) {
    if (serving_[node]) local_[node].on_departure(job, now);
  }

  // Stops a node from starting jobs, or resumes it with its queue in order.
  void set_serving(NodeId node, bool is_serving, const LocalQueue& queue, double now) {
    for (std::size_t i = 0; i < queue.size(); ++i)
      is_serving ? local_[node].on_arrival(queue[i].job, now)
             : local_[node].on_departure(queue[i].job, now);
    serving_[node] = is_serving;
  }

  // Runs one pass of the node's local scheduler.
  void start_jobs(NodeId node, LocalQueue& queue, double now) {
    if (!serving_[node]) return;
    local_[node].start_jobs(jobs_, queue, free_[node], now, [&](std::size_t i) {
      const JobId job = queue[i].job;
      entered_[job] = queue.remove(i, jobs_.load(job)).entered;
      free_[node] -= jobs_.width[job];
      outcome_.start[job] = now;
      ends_.push({now + jobs_.run[job] / nodes_[node].speed, job});
    });
    const double wake = local_[node].next_wakeup();
    if (wake < kNever) wakes_.push({wake, node});
  }

  // Marks a node for the next start_marked().
  void mark(NodeId node) {
    if (is_marked_[node]) return;
    is_marked_[node] = 1;
    marked_.push_back(node);
  }
  bool has_marked() const { return !marked_.empty(); }

  // Runs one pass on each marked node. queue_of(node) returns its queue.
  template <class QueueOf>
  void start_marked(QueueOf queue_of, double now) {
    for (const NodeId node : marked_) {
      is_marked_[node] = 0;
      start_jobs(node, queue_of(node), now);
    }
    marked_.clear();
  }

  // Ends the jobs that end next and marks their nodes; returns the number of these jobs.
  template <class QueueOf>
  std::size_t end_jobs(QueueOf queue_of) {
    const double now = next_event();
    std::size_t ended = 0;
    for (; ends_.time() == now; ends_.pop(), ++ended) {
      const JobId job = ends_.top().job;
      const auto node = static_cast<NodeId>(outcome_.node[job]);
      free_[node] += jobs_.width[job];
      outcome_.end[job] = now;
      outcome_.fate[job] = Fate::done;
      queue_of(node).record_wait(outcome_.start[job] - entered_[job]);
      local_[node].on_end(job, now);
      mark(node);
    }
    for (; wakes_.time() == now; wakes_.pop()) mark(wakes_.top().job);
    return ended;
  }

 private:
  CommunityJobs jobs_;
  std::vector<NodeSpec> nodes_;
  std::vector<std::uint8_t> serving_;
  std::vector<std::int32_t> free_;
  typename Local::SharedState shared_;
  std::vector<Local> local_;
  Outcome outcome_;
  std::vector<double> entered_;
  replay::EventQueue ends_;
  replay::EventQueue wakes_;  // wake-up times of local schedulers; `job` is the node
  std::vector<NodeId> marked_;
  std::vector<std::uint8_t> is_marked_;
};

// Counts events and polls for signals every 1024 events.
class InterruptPacer {
 public:
  void count_event() {
    if ((++events_ & 1023u) == 0) poll();
  }
  std::size_t events() const { return events_; }

 private:
  std::size_t events_ = 0;
};

}  // namespace slotkern::community

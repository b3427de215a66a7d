// The processors of a community: jobs start on their nodes and end there, whatever has brought
// them to the node. A `Local` scheduler says which of the waiting jobs of a node start.
//
// A running job keeps its processors until it ends, also on a node that has left. A job runs
// run / speed. Cost: O(log running) a job, and what the local scheduler needs.
#pragma once

#include <cmath>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/community/queue.hpp"
#include "slotkern/replay/events.hpp"

namespace slotkern::community {

struct Change {
  double time;
  NodeId node;
  bool joins;  // else it leaves
};

struct Grid {
  std::vector<Profile> nodes;
  std::vector<Change> changes;         // by time
  std::vector<std::uint8_t> present;   // at the beginning
};

enum class Fate : std::uint8_t {
  pending, done,
  no_node,   // no node that the scenario would ask could run it
  no_offer,  // suspended until the end: no node has offered to run it
  stranded,  // waits on a node that has left, and nobody has offered to take it
};

// What became of each job; times are NaN where it never happened.
struct Outcome {
  std::vector<double> queued, start, end;  // queued: when it first came to a node
  std::vector<std::int32_t> node;          // the last one that it came to
  std::vector<std::uint32_t> moves;        // from node to node, once it had been assigned
  std::vector<Fate> fate;

  explicit Outcome(std::size_t jobs)
      : queued(jobs, std::nan("")), start(jobs, std::nan("")), end(jobs, std::nan("")),
        node(jobs, -1), moves(jobs), fate(jobs, Fate::pending) {}
};

// First come first served, strictly: nobody overtakes the head.
struct Fcfs {
  Fcfs(const Jobs&, const Profile&) {}
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

template <class Local>
class Sites {
 public:
  Sites(const Jobs& jobs, const Grid& grid)
      : jobs_(jobs), nodes_(grid.nodes), outcome_(jobs.size), entered_(jobs.size) {
    free_.reserve(nodes_.size());
    local_.reserve(nodes_.size());
    for (const Profile& profile : nodes_) {
      free_.push_back(profile.processors);
      local_.emplace_back(jobs_, profile);
    }
  }

  const Outcome& outcome() const { return outcome_; }
  Outcome& outcome() { return outcome_; }
  const std::vector<std::int32_t>& free() const { return free_; }
  double next_end() const { return ends_.time(); }
  std::size_t ended() const { return ended_; }

  void came(NodeId node, JobId job, double now) {
    if (std::isnan(outcome_.queued[job]))
      outcome_.queued[job] = now;
    else
      ++outcome_.moves[job];
    outcome_.node[job] = static_cast<std::int32_t>(node);
    local_[node].came(job, now);
  }

  void left(NodeId node, JobId job, double now) { local_[node].left(job, now); }

  // Starts what can start.
  void look(NodeId node, LocalQueue& queue, double now) {
    local_[node].look(jobs_, queue, free_[node], now, [&](std::size_t i) {
      const JobId job = queue[i].job;
      entered_[job] = queue.take(i, jobs_.load(job)).entered;
      free_[node] -= jobs_.width[job];
      outcome_.start[job] = now;
      ends_.push({now + jobs_.run[job] / nodes_[node].speed, job});
    });
  }

  // The next job ends; returns it. Its node must be looked at then.
  template <class QueueOf>
  JobId end(QueueOf queue_of) {
    const auto [now, job] = ends_.top();
    ends_.pop();
    const auto node = static_cast<NodeId>(outcome_.node[job]);
    free_[node] += jobs_.width[job];
    outcome_.end[job] = now;
    outcome_.fate[job] = Fate::done;
    queue_of(node).ended(outcome_.start[job] - entered_[job]);
    local_[node].ended(job, now);
    ++ended_;
    return job;
  }

 private:
  Jobs jobs_;
  std::vector<Profile> nodes_;
  std::vector<std::int32_t> free_;
  std::vector<Local> local_;
  Outcome outcome_;
  std::vector<double> entered_;
  replay::EventQueue ends_;
  std::size_t ended_ = 0;
};

// Every so many events the signals are asked for.
class Pulse {
 public:
  void beat() {
    if ((++events_ & 1023u) == 0) poll();
  }
  std::size_t events() const { return events_; }

 private:
  std::size_t events_ = 0;
};

}  // namespace slotkern::community

// The jobs and nodes of a community, and the queue of a node, in the order of arrival.
//
// The load of a job is processors * estimate, the estimate being for a processor of speed 1
// (Definition 1 of the paper: load = pe * length * mips of the job). The queueing time of a job
// starts with its arrival at this node. Running sums give the load and the mean queueing time in
// O(1); they are reset to exact zeros when the queue is empty. Removing the first job costs O(1),
// another one O(queue).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace slotkern::community {

using JobId = std::uint32_t;
using NodeId = std::uint32_t;

inline constexpr double kNever = std::numeric_limits<double>::infinity();
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::int32_t kAnyLabel = -1;

// The jobs as columns; times in s on a processor of speed 1.
struct CommunityJobs {
  const double *submit = nullptr, *run = nullptr, *estimate = nullptr;
  const std::int32_t* width = nullptr;
  const std::int32_t* home = nullptr;
  const std::int32_t* label = nullptr;  // label that its node must have, or kAnyLabel
  std::size_t size = 0;

  double load(JobId job) const { return width[job] * estimate[job]; }
};

// The processors of a node.
struct NodeSpec {
  std::int32_t processors = 1;
  double speed = 1;
  std::int32_t label = 0;

  double power() const { return speed * processors; }
  bool can_run(const CommunityJobs& jobs, JobId job) const {
    return jobs.width[job] <= processors &&
           (jobs.label[job] == label || jobs.label[job] == kAnyLabel);
  }
};

// A job in the queue of a node.
struct QueuedJob {
  JobId job;
  std::uint32_t hop;                  // number of hand-overs so far
  double entered;                     // time of arrival at this node
  std::uint32_t negotiation = kNone;  // index of the negotiation that tries to move it, or kNone
};

// The waiting jobs of a node, and sums over them and over the ended jobs.
class LocalQueue {
 public:
  std::size_t size() const { return waiting_.size() - head_; }
  bool empty() const { return head_ == waiting_.size(); }
  QueuedJob& operator[](std::size_t i) { return waiting_[head_ + i]; }
  const QueuedJob& operator[](std::size_t i) const { return waiting_[head_ + i]; }
  double load() const { return load_; }

  // Returns the index of a job; size() if it is not in the queue.
  std::size_t find(JobId job) const {
    std::size_t i = head_;
    while (i < waiting_.size() && waiting_[i].job != job) ++i;
    return i - head_;
  }

  void push(const QueuedJob& waiting, double load) {
    if (head_ > 64 && 2 * head_ > waiting_.size()) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    waiting_.push_back(waiting);
    load_ += load;
    entered_ += waiting.entered;
  }

  // Removes the job at index i, whose load is given.
  QueuedJob remove(std::size_t i, double load) {
    const QueuedJob removed = (*this)[i];
    if (i == 0)
      ++head_;
    else
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(head_ + i));
    load_ -= load;
    entered_ -= removed.entered;
    if (empty()) {
      waiting_.clear();
      head_ = 0;
      load_ = entered_ = 0;
    }
    return removed;
  }

  // Records the queueing time of a job that has ended.
  void record_wait(double waited) {
    waited_ += waited;
    ++count_;
  }

  // Definition 4: mean queueing time of the waiting jobs, else of the ended jobs, else 0; in s.
  double mean_wait(double now) const {
    if (!empty()) return now - entered_ / static_cast<double>(size());
    return count_ > 0 ? waited_ / static_cast<double>(count_) : 0;
  }

 private:
  std::vector<QueuedJob> waiting_;
  std::size_t head_ = 0;
  double load_ = 0, entered_ = 0, waited_ = 0;
  std::size_t count_ = 0;
};

}  // namespace slotkern::community

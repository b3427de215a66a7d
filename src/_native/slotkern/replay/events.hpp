// Priority queues of events, ordered by time; events of equal time by job.
//
// A 4-ary heap: half as deep as a binary heap, and the children of a node share a cache line.
// O(log n) for each operation. The result is deterministic because the order is total.
#pragma once

#include <algorithm>
#include <vector>

#include "slotkern/replay/jobs.hpp"

namespace slotkern::replay {

// The time of an event and its job; events of equal time are ordered by job.
struct Event {
  double time;
  JobId job;
  friend bool operator<(const Event& a, const Event& b) {
    return a.time < b.time || (a.time == b.time && a.job < b.job);
  }
};

// A 4-ary heap of elements that have a member `time` and a total order by operator<.
template <class Timed>
class EventHeap {
 public:
  bool empty() const { return heap_.empty(); }
  const Timed& top() const { return heap_.front(); }
  double time() const { return heap_.empty() ? kNever : heap_.front().time; }

  void push(Timed event) {
    std::size_t i = heap_.size();
    heap_.push_back(event);
    for (std::size_t parent; i > 0 && event < heap_[parent = (i - 1) / 4]; i = parent)
      heap_[i] = heap_[parent];
    heap_[i] = event;
  }

  void pop() {
    const Timed last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return;
    std::size_t i = 0;
    for (std::size_t child; (child = 4 * i + 1) < size; i = child) {
      for (std::size_t k = child + 1, end = std::min(child + 4, size); k < end; ++k)
        if (heap_[k] < heap_[child]) child = k;
      if (!(heap_[child] < last)) break;
      heap_[i] = heap_[child];
    }
    heap_[i] = last;
  }

 private:
  std::vector<Timed> heap_;
};

using EventQueue = EventHeap<Event>;

}  // namespace slotkern::replay

// The reserved starts of waiting jobs: the earliest first, and the smallest job among equals.
//
// An indexed 4-ary heap that stores the position of each job, because most reservations are moved:
// O(log n) for each operation, mostly O(1) since they move little.
#pragma once

#include <vector>

#include "slotkern/replay/events.hpp"

namespace slotkern::replay {

// An indexed heap of (start, job).
class ReservationHeap {
 public:
  explicit ReservationHeap(std::size_t jobs) : position_(jobs) {}

  double time() const { return heap_.empty() ? kNever : heap_.front().time; }
  JobId job() const { return heap_.front().job; }

  void add(JobId job, double time) {
    heap_.push_back({time, job});
    sift_up(heap_.size() - 1, {time, job});
  }

  void decrease_key(JobId job, double time) { sift_up(position_[job], {time, job}); }

  void remove(JobId job) {
    const std::size_t i = position_[job];
    const Event last = heap_.back();
    heap_.pop_back();
    if (i == heap_.size()) return;
    if (last < heap_[i])
      sift_up(i, last);
    else
      sift_down(i, last);
  }

 private:
  void put(std::size_t i, const Event& event) {
    heap_[i] = event;
    position_[event.job] = static_cast<std::uint32_t>(i);
  }

  void sift_up(std::size_t i, Event event) {
    for (std::size_t parent; i > 0 && event < heap_[parent = (i - 1) / 4]; i = parent)
      put(i, heap_[parent]);
    put(i, event);
  }

  void sift_down(std::size_t i, Event event) {
    const std::size_t size = heap_.size();
    for (std::size_t child; (child = 4 * i + 1) < size; i = child) {
      for (std::size_t k = child + 1, end = std::min(child + 4, size); k < end; ++k)
        if (heap_[k] < heap_[child]) child = k;
      if (!(heap_[child] < event)) break;
      put(i, heap_[child]);
    }
    put(i, event);
  }

  std::vector<Event> heap_;
  std::vector<std::uint32_t> position_;  // in the heap, by job
};

}  // namespace slotkern::replay

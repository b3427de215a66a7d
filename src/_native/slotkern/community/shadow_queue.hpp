// The shadow queue of a node (Definition 2 of the paper): the promises it has made to run jobs, as
// a sum of loads. A promise is redeemed by ASSIGN, revoked, or expires.
//
// Cost: O(1) for each operation; expiry is amortized. The sum is an exact zero if there is no
// promise.
#pragma once

#include <cstddef>
#include <deque>

#include "slotkern/community/handle_table.hpp"
#include "slotkern/community/queue.hpp"

namespace slotkern::community {

// The open promises of a node.
class ShadowQueue {
 public:
  explicit ShadowQueue(std::uint32_t first_generation) : loads_(first_generation) {}

  std::size_t size() const { return loads_.size(); }
  double load() const { return sum_; }

  // Adds a promise that expires at `end`, no earlier than those before it; kNever: never.
  Handle add(double load, double end) {
    const Handle promise = loads_.allocate();
    loads_[promise] = load;
    sum_ += load;
    if (end < kNever) ends_.push_back({end, promise});
    return promise;
  }

  void release(Handle promise) {
    const double* load = loads_.find(promise);
    if (!load) return;
    sum_ -= *load;
    loads_.release(promise);
    if (loads_.size() == 0) sum_ = 0;  // drop the accumulated rounding error
  }

  void expire(double now) {
    for (; !ends_.empty() && ends_.front().time <= now; ends_.pop_front())
      release(ends_.front().promise);
  }

 private:
  struct End {
    double time;
    Handle promise;
  };

  HandleTable<double> loads_;
  std::deque<End> ends_;
  double sum_ = 0;
};

}  // namespace slotkern::community

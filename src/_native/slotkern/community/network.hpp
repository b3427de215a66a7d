// The network of a community: messages are lost with a probability and delayed by a latency that is
// constant or exponentially distributed.
//
// With a constant latency messages arrive in the order of sending, so two FIFO queues suffice: one
// for messages to oneself (no latency, never lost) and one for messages to others. O(1) for each
// message; exponential latencies use a heap, O(log n). Ties are broken by the order of sending.
#pragma once

#include <cmath>
#include <vector>

#include "slotkern/community/messages.hpp"
#include "slotkern/community/random.hpp"
#include "slotkern/replay/events.hpp"

namespace slotkern::community {

// A message in transit, with its arrival time.
struct Delivery {
  double time;
  std::uint64_t serial;  // position in the order of sending
  Message message;
  friend bool operator<(const Delivery& a, const Delivery& b) {
    return a.time < b.time || (a.time == b.time && a.serial < b.serial);
  }
};

// Delays, loses and orders messages.
class Network {
 public:
  // `latency`: in s; the mean of an exponential distribution if it `varies`.
  Network(double latency, bool varies, double loss, std::uint64_t seed)
      : latency_(latency), varies_(varies), loss_(loss), random_(seed, 0xfffffffeu) {}

  // Returns the arrival time of a message sent now; kNever if it is lost.
  double arrival(const Message& message, double now) {
    if (message.from == message.to) return now;
    if (loss_ > 0 && random_.uniform() < loss_) return kNever;
    return varies_ ? now - latency_ * std::log(1 - random_.uniform()) : now + latency_;
  }

  void push(const Delivery& delivery) {
    if (delivery.message.from == delivery.message.to)
      own_.push(delivery);
    else if (varies_)
      reordered_.push(delivery);
    else
      others_.push(delivery);
  }

  // Returns the next message to arrive, or null.
  const Delivery* next() const {
    const Delivery* best = own_.empty() ? nullptr : &own_.front();
    if (!others_.empty() && (!best || others_.front() < *best)) best = &others_.front();
    if (!reordered_.empty() && (!best || reordered_.top() < *best)) best = &reordered_.top();
    return best;
  }

  Delivery pop() {
    const Delivery* delivery = next();
    const Delivery copy = *delivery;
    if (!own_.empty() && delivery == &own_.front())
      own_.pop();
    else if (!others_.empty() && delivery == &others_.front())
      others_.pop();
    else
      reordered_.pop();
    return copy;
  }

 private:
  // A queue in one array; O(1) amortized.
  class FifoQueue {
   public:
    bool empty() const { return first_ == deliveries_.size(); }
    const Delivery& front() const { return deliveries_[first_]; }
    void push(const Delivery& delivery) { deliveries_.push_back(delivery); }
    void pop() {
      if (++first_ == deliveries_.size()) {
        deliveries_.clear();
        first_ = 0;
      } else if (first_ >= 4096 && 2 * first_ >= deliveries_.size()) {
        deliveries_.erase(deliveries_.begin(),
                          deliveries_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
      }
    }

   private:
    std::vector<Delivery> deliveries_;
    std::size_t first_ = 0;
  };

  double latency_;
  bool varies_;
  double loss_;
  Random random_;
  FifoQueue own_, others_;
  replay::EventHeap<Delivery> reordered_;
};

}  // namespace slotkern::community

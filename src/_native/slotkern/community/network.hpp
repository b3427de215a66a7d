// Messages on their way: lost with a probability, late by a constant or by chance.
//
// Under a constant latency messages arrive in the order in which they were sent, and two plain
// queues hold them: to oneself (no latency, never lost) and to others. O(1) each; exponential
// latencies need a heap, O(log n). Equal times: in the order of sending.
#pragma once

#include <cmath>
#include <vector>

#include "slotkern/community/messages.hpp"
#include "slotkern/community/random.hpp"
#include "slotkern/replay/events.hpp"

namespace slotkern::community {

struct Flight {
  double time;
  std::uint64_t serial;  // of sending
  Message message;
  friend bool operator<(const Flight& a, const Flight& b) {
    return a.time < b.time || (a.time == b.time && a.serial < b.serial);
  }
};

class Network {
 public:
  // `latency` is the mean where it varies.
  Network(double latency, bool varies, double loss, std::uint64_t seed)
      : latency_(latency), varies_(varies), loss_(loss), random_(seed, 0xfffffffeu) {}

  // When a message arrives; kNever: it is lost.
  double arrival(const Message& message, double now) {
    if (message.from == message.to) return now;
    if (loss_ > 0 && random_.uniform() < loss_) return kNever;
    return varies_ ? now - latency_ * std::log(1 - random_.uniform()) : now + latency_;
  }

  void push(const Flight& flight) {
    if (flight.message.from == flight.message.to)
      own_.push(flight);
    else if (varies_)
      late_.push(flight);
    else
      others_.push(flight);
  }

  // The next one; null where there is none.
  const Flight* next() const {
    const Flight* best = own_.empty() ? nullptr : &own_.front();
    if (!others_.empty() && (!best || others_.front() < *best)) best = &others_.front();
    if (!late_.empty() && (!best || late_.top() < *best)) best = &late_.top();
    return best;
  }

  Flight pop() {
    const Flight* flight = next();
    const Flight copy = *flight;
    if (!own_.empty() && flight == &own_.front())
      own_.pop();
    else if (!others_.empty() && flight == &others_.front())
      others_.pop();
    else
      late_.pop();
    return copy;
  }

 private:
  class Line {
   public:
    bool empty() const { return first_ == flights_.size(); }
    const Flight& front() const { return flights_[first_]; }
    void push(const Flight& flight) { flights_.push_back(flight); }
    void pop() {
      if (++first_ == flights_.size()) {
        flights_.clear();
        first_ = 0;
      } else if (first_ >= 4096 && 2 * first_ >= flights_.size()) {
        flights_.erase(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
      }
    }

   private:
    std::vector<Flight> flights_;
    std::size_t first_ = 0;
  };

  double latency_;
  bool varies_;
  double loss_;
  Random random_;
  Line own_, others_;
  replay::EventHeap<Flight> late_;
};

}  // namespace slotkern::community

// Whether searches for the cheapest windows of about n parts go by cells (pool/cost_search.hpp), or
// sweep.
//
// The effort of both is counted in the same measure (Workspace::effort). What searches by cells
// gain on sweeps is saved, and a share of what each sweep takes; beyond what a sweep usually takes
// a search by cells may spend some of it, and all where the last one did so to learn. Where cells
// tell much, all searches together take far less than sweeps would; where not, little more.
// Counted, not timed: the same calls one after the other decide alike on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "slotkern/pool/start_bounds.hpp"

namespace slotkern {

class AdaptiveBudget {
 public:
  // How much a search by cells may take now. 0: the next is a sweep, as where too little is saved,
  // and now and then, to see again what it takes.
  std::size_t budget() const {
    if (balance_ < 0 || effort_since_sweep_ > kSweepInterval * mean_sweep_) return 0;
    const std::int64_t max_overrun = last_was_build_ ? balance_ : kMaxOverrun * mean_sweep_;
    return static_cast<std::size_t>(mean_sweep_ + std::min(balance_, max_overrun));
  }

  // After a sweep: how much of it counts as a reason to know costs at all; less, where searches by
  // cells take longer.
  std::size_t record_sweep(std::size_t effort) {
    const auto spent = static_cast<std::int64_t>(effort) + 1;
    effort_since_sweep_ = 0;
    mean_sweep_ = mean_sweep_ == 0 ? spent : (3 * mean_sweep_ + spent) / 4;
    earn(spent / decay_);
    return effort * kMinDecay / static_cast<std::size_t>(decay_);
  }

  // After a search by cells: whether it found all or gave up, and spent most on what it learnt.
  void record_cell_search(bool completed, std::size_t effort, bool was_build) {
    const auto spent = static_cast<std::int64_t>(effort);
    last_was_build_ = was_build;
    if (completed && spent < mean_sweep_)
      decay_ = kMinDecay;
    else if (!was_build)
      decay_ = std::min(2 * decay_, kMaxDecay);
    effort_since_sweep_ += spent;
    earn(completed ? mean_sweep_ - spent : -spent);
  }

 private:
  void earn(std::int64_t effort) {
    balance_ = std::min(balance_ + effort, kMaxBalance * mean_sweep_ + kInitialBalance);
  }

  static constexpr std::int64_t kMinDecay = 4, kMaxDecay = 64;  // one in so many
  static constexpr std::int64_t kMaxBalance = 16, kMaxOverrun = 3, kSweepInterval = 48;  // usual sweeps
  // Tests, whose pools are small, have enough at once.
  static constexpr std::int64_t kInitialBalance = kFewRows == 0 ? 1 << 20 : 0;

  std::int64_t mean_sweep_ = 0;  // what sweeps take; 0: none has been seen
  std::int64_t balance_ = kFewRows == 0 ? kInitialBalance : -1;
  std::int64_t effort_since_sweep_ = 0;  // spent by cells since the last sweep
  std::int64_t decay_ = kMinDecay;
  bool last_was_build_ = true;      // the last by cells did
};

}  // namespace slotkern

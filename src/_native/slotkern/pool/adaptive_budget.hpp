// Decides if a search for the cheapest window of about n parts goes by cells (pool/cost_search.hpp)
// or by a sweep over all slots, and how much effort it may spend by cells before it falls back.
//
// The effort of both is counted in one unit (Workspace::effort), not timed, so the same sequence of
// calls decides alike on every machine. The balance grows by sweep / decay after each sweep, by
// (mean sweep - effort) after each cell search that completes, and falls by the effort of one that
// gives up. A cell search may spend the mean sweep plus min(balance, 3 mean sweeps), or plus the
// whole balance if the last one was building rows of bounds; with a negative balance it does not
// run. So the balance stays above about minus one mean sweep. The total effort is far below that of
// sweeps if bounds prune well. Otherwise it exceeds that by at most about one mean sweep and 1 /
// decay of the effort of the sweeps that ran: 1/4 at first, 1/64 after four cell searches in a row
// that neither gained nor built bounds. The savings of cell searches are estimated by the mean
// sweep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace slotkern {

class AdaptiveBudget {
 public:
  // Returns the effort that a cell search may spend now. 0: sweep, because the balance is negative
  // or the mean sweep is due to be measured again. `credit` is added to the balance.
  std::size_t budget(std::int64_t credit = 0) const {
    const std::int64_t balance = balance_ + credit;
    if (balance < 0 || effort_since_sweep_ > kSweepInterval * mean_sweep_) return 0;
    const std::int64_t max_overrun = last_was_build_ ? balance : kMaxOverrun * mean_sweep_;
    return static_cast<std::size_t>(mean_sweep_ + std::min(balance, max_overrun));
  }

  // Records a sweep; a cell search with good bounds would have spent `by_cells`. Returns what this
  // would have saved, which counts towards building the bounds: less while cell searches do not
  // gain.
  std::int64_t record_sweep(std::size_t effort, std::size_t by_cells = 0) {
    const auto spent = static_cast<std::int64_t>(effort) + 1;
    effort_since_sweep_ = 0;
    mean_sweep_ = mean_sweep_ == 0 ? spent : (3 * mean_sweep_ + spent) / 4;
    earn(spent / decay_);
    const auto saving = static_cast<std::int64_t>(effort) - static_cast<std::int64_t>(by_cells);
    return saving * kMinDecay / decay_;
  }

  // Records a cell search: if it completed or gave up, and if most of its effort built bounds that
  // later searches reuse. Returns the effort that it saved.
  std::int64_t record_cell_search(bool completed, std::size_t effort, bool was_build) {
    const auto spent = static_cast<std::int64_t>(effort);
    last_was_build_ = was_build;
    if (completed && spent < mean_sweep_)
      decay_ = kMinDecay;
    else if (!was_build)
      decay_ = std::min(2 * decay_, kMaxDecay);
    effort_since_sweep_ += spent;
    const std::int64_t saved = completed ? mean_sweep_ - spent : -spent;
    earn(saved);
    return saved;
  }

 private:
  void earn(std::int64_t effort) {
    balance_ = std::min(balance_ + effort, kMaxBalance * mean_sweep_);
  }

  static constexpr std::int64_t kMinDecay = 4, kMaxDecay = 64;  // divisors of the effort of a sweep
  // The largest balance, the largest overrun, and the interval between sweeps, in mean sweeps.
  static constexpr std::int64_t kMaxBalance = 16, kMaxOverrun = 3, kSweepInterval = 48;

  std::int64_t mean_sweep_ = 0;  // moving average; 0: no sweep yet
  std::int64_t balance_ = -1;
  std::int64_t effort_since_sweep_ = 0;  // effort of cell searches since then
  std::int64_t decay_ = kMinDecay;
  bool last_was_build_ = true;  // most effort of the last cell search built bounds
};

}  // namespace slotkern

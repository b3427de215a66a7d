// Whether searches for the cheapest windows of n parts go by cells (pool/cost_search.hpp), or sweep.
//
// The effort of both is counted in the same measure (Workspace::effort). What searches by cells gain on sweeps is
// saved, and a share of what each sweep takes; beyond what a sweep usually takes a search by cells
// may spend what has been saved, most of it on learning. So all searches together take little more
// than sweeps would, and where cells tell much, far less. Counted, not timed: the same calls decide
// alike on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "slotkern/pool/hints.hpp"

namespace slotkern {

class CostAccount {
 public:
  explicit CostAccount(std::int64_t n) : n_(n) {}

  std::int64_t n() const { return n_; }

  // How much a search by cells may take now. 0: the next is a sweep, as where too little is saved,
  // and now and then, to see again what it takes.
  std::size_t allowed() const {
    if (saved_ < 0 || since_ > kAgain * usual_) return 0;
    return static_cast<std::size_t>(usual_ + saved_);
  }

  // After a sweep: how much of it counts as a reason to know costs at all; less, where searches by
  // cells take longer.
  std::size_t swept(std::size_t effort) {
    const auto taken = static_cast<std::int64_t>(effort) + 1;
    since_ = 0;
    usual_ = usual_ == 0 ? taken : (3 * usual_ + taken) / 4;
    save(taken / share_);
    return effort * kShare / static_cast<std::size_t>(share_);
  }

  // After a search by cells: whether it found all or gave up, and had much to learn.
  void asked(bool all, std::size_t effort, bool learnt) {
    const auto taken = static_cast<std::int64_t>(effort);
    if (all && taken < usual_)
      share_ = kShare;
    else if (!learnt)
      share_ = std::min(2 * share_, kLeastShare);
    since_ += taken;
    save(all ? usual_ - taken : -taken);
  }

 private:
  void save(std::int64_t effort) { saved_ = std::min(saved_ + effort, kMostSaved * usual_ + kGiven); }

  static constexpr std::int64_t kShare = 4, kLeastShare = 64;  // one in so many
  static constexpr std::int64_t kMostSaved = 16, kAgain = 16;  // times what a sweep takes
  // Tests, whose pools are small, have enough at once.
  static constexpr std::int64_t kGiven = kFewRows == 0 ? 1 << 20 : 0;

  std::int64_t n_;
  std::int64_t usual_ = 0;      // what sweeps take; 0: none has been seen
  std::int64_t saved_ = kFewRows == 0 ? kGiven : -1;
  std::int64_t since_ = 0;      // spent by cells since the last sweep
  std::int64_t share_ = kShare;
};

}  // namespace slotkern

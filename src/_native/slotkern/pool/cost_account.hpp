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

#include "slotkern/pool/hints.hpp"

namespace slotkern {

class CostAccount {
 public:
  // How much a search by cells may take now. 0: the next is a sweep, as where too little is saved,
  // and now and then, to see again what it takes.
  std::size_t allowed() const {
    if (saved_ < 0 || since_ > kAgain * usual_) return 0;
    const std::int64_t most = learns_ ? saved_ : kMostLost * usual_;
    return static_cast<std::size_t>(usual_ + std::min(saved_, most));
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

  // After a search by cells: whether it found all or gave up, and spent most on what it learnt.
  void asked(bool all, std::size_t effort, bool learnt) {
    const auto taken = static_cast<std::int64_t>(effort);
    learns_ = learnt;
    if (all && taken < usual_)
      share_ = kShare;
    else if (!learnt)
      share_ = std::min(2 * share_, kLeastShare);
    since_ += taken;
    save(all ? usual_ - taken : -taken);
  }

 private:
  void save(std::int64_t effort) {
    saved_ = std::min(saved_ + effort, kMostSaved * usual_ + kGiven);
  }

  static constexpr std::int64_t kShare = 4, kLeastShare = 64;  // one in so many
  static constexpr std::int64_t kMostSaved = 16, kMostLost = 3, kAgain = 48;  // usual sweeps
  // Tests, whose pools are small, have enough at once.
  static constexpr std::int64_t kGiven = kFewRows == 0 ? 1 << 20 : 0;

  std::int64_t usual_ = 0;  // what sweeps take; 0: none has been seen
  std::int64_t saved_ = kFewRows == 0 ? kGiven : -1;
  std::int64_t since_ = 0;  // spent by cells since the last sweep
  std::int64_t share_ = kShare;
  bool learns_ = true;      // the last by cells did
};

}  // namespace slotkern

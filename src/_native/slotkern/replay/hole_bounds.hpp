// What is known of the holes of a profile that are of one width: for every length a bound,
// before which no hole so long begins.
//
// A staircase: the longer the hole, the later it begins. A search for a hole starts at the
// bound of its length and raises it; time that comes free lowers the bounds of the holes it
// makes; time that is taken leaves them, still true. So most searches end where they begin.
// Cost: O(log steps) to ask, O(steps) to change; steps are holes longer than all before
// them, a few dozen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/replay/jobs.hpp"

namespace slotkern::replay {

class HoleBounds {
 public:
  // No hole of this length, and longer than those of the bound before, begins before `start`.
  struct StairStep {
    double length, start;
  };

  // The bounds tell nothing of holes that begin at or after this time.
  double last_start() const { return last_start_; }

  // The bound of holes of this length.
  std::size_t find_step(double length) const {
    const StairStep* at = steps_.data();
    for (std::size_t n = steps_.size(), half; n > 1; n -= half) {
      half = n / 2;
      at += half * (at[half - 1].length < length);  // no branch to guess
    }
    return static_cast<std::size_t>(at - steps_.data());
  }

  double start(std::size_t bound) const { return steps_[bound].start; }

  // All holes up to this length have bounds before this one.
  double covered_length(std::size_t bound) const { return bound == 0 ? 0 : steps_[bound - 1].length; }

  // A search from `bound` on has found nothing before `start` but `seen`, holes that are too
  // short, each longer than all before it. `seen` is used up.
  void raise(std::size_t bound, double start, std::vector<StairStep>& seen) {
    std::size_t after = bound + 1;
    while (after < steps_.size() && steps_[after].start <= start) ++after;
    seen.push_back({steps_[after - 1].length, start});
    replace(bound, after, seen.data(), seen.size());
  }

  // From `start` on there is a hole of this length.
  void lower(double start, double length) {
    std::size_t after = find_step(length);
    if (steps_[after].start <= start) return;
    std::size_t bound = after;
    while (bound > 0 && steps_[bound - 1].start >= start) --bound;
    after += steps_[after].length == length;
    const StairStep made{length, start};
    replace(bound, after, &made, 1);
  }

  // The length that enters here: at least as long as any that fits, whatever is rounded.
  static double length(double start, double end) {
    return end - start + 1e-15 * (std::abs(start) + std::abs(end));
  }

 private:
  void replace(std::size_t first, std::size_t last, const StairStep* with, std::size_t count) {
    const auto at = steps_.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t kept = std::min(count, last - first);
    std::copy_n(with, kept, at);
    if (kept < count)
      steps_.insert(at + static_cast<std::ptrdiff_t>(kept), with + kept, with + count);
    else
      steps_.erase(at + static_cast<std::ptrdiff_t>(kept),
                    steps_.begin() + static_cast<std::ptrdiff_t>(last));
    last_start_ = steps_.back().start;
  }

  std::vector<StairStep> steps_{{kNever, -kNever}};  // ascending; the last one of all lengths
  double last_start_ = -kNever;
};

}  // namespace slotkern::replay

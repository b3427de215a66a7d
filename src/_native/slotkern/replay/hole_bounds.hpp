// For one width: lower bounds on the starts of the holes of an availability profile, as a staircase
// (Pareto front) of (length, start). Both ascend; no hole longer than the previous step's length
// starts before a step's `start`.
//
// The bound for a length is the first step that is at least as long. A search for a hole begins
// there and then raises the bound. Released time lowers the bounds for the holes that it creates;
// reserved time leaves all bounds valid. So most searches end at their first piece.
//
// Cost: O(log steps) to query, O(steps) to change. A step is a hole longer than all earlier ones;
// there are a few dozen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/replay/jobs.hpp"

namespace slotkern::replay {

// The lower bounds of one width.
class HoleBounds {
 public:
  // No hole longer than the previous step's length starts before `start`. Used for lengths up to
  // `length`; the next step has a later start for greater lengths.
  struct StairStep {
    double length, start;
  };

  // Returns the start of the last step, the latest bound: a new hole that starts at or after it
  // lowers no bound.
  double last_start() const { return last_start_; }

  // Returns the step that bounds holes of this length.
  std::size_t find_step(double length) const {
    const StairStep* at = steps_.data();
    for (std::size_t n = steps_.size(), half; n > 1; n -= half) {
      half = n / 2;
      at += half * (at[half - 1].length < length);  // branchless
    }
    return static_cast<std::size_t>(at - steps_.data());
  }

  double start(std::size_t bound) const { return steps_[bound].start; }

  // Returns the greatest length that earlier steps bound.
  double covered_length(std::size_t bound) const {
    return bound == 0 ? 0 : steps_[bound - 1].length;
  }

  // Raises bounds after a search from step `bound` found no hole before `start` other than `seen`:
  // holes that are too short, in order of start, each longer than all before. Consumes `seen`.
  void raise(std::size_t bound, double start, std::vector<StairStep>& seen) {
    std::size_t after = bound + 1;
    while (after < steps_.size() && steps_[after].start <= start) ++after;
    seen.push_back({steps_[after - 1].length, start});
    replace(bound, after, seen.data(), seen.size());
  }

  // Lowers bounds because a hole of this length starts at `start`.
  void lower(double start, double length) {
    std::size_t after = find_step(length);
    if (steps_[after].start <= start) return;
    std::size_t bound = after;
    while (bound > 0 && steps_[bound - 1].start >= start) --bound;
    after += steps_[after].length == length;
    const StairStep made{length, start};
    replace(bound, after, &made, 1);
  }

  // Returns the length of a hole, rounded up: at least as long as any reservation that fits in it.
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

  std::vector<StairStep> steps_{{kNever, -kNever}};  // ascending; the last one bounds all lengths
  double last_start_ = -kNever;
};

}  // namespace slotkern::replay

// Pareto lists of (weight, value) states for one stage of a dynamic program, each with a reference
// to its predecessor. Each row of a class contributes a run sorted by rising weight; merge()
// combines the runs and removes dominated states. O(states * log rows) a class; 24 bytes a state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

struct ParetoList {
  struct ParetoState {
    double weight, value;
  };
  struct ParetoStep {
    // predecessor: index in the list of the stage before; `item`: the item that was added
    std::uint32_t before, item;
  };
  struct ParetoCandidate {
    ParetoState state;
    ParetoStep step;
  };

  std::vector<ParetoCandidate> candidates;
  std::vector<std::size_t> runs;  // end of each run in `candidates`; starts with a 0

  void clear() {
    candidates.clear();
    runs.assign(1, 0);
  }

  // Merges the runs of `candidates` into one list by rising weight without dominated states.
  void merge() {
    const auto lighter = [](const ParetoCandidate& a, const ParetoCandidate& b) {
      return a.state.weight != b.state.weight ? a.state.weight < b.state.weight
                                              : a.state.value <= b.state.value;
    };
    if (runs.size() == 2) prune_run();
    while (runs.size() > 2) {
      merged_.clear();
      std::size_t kept = 0;
      for (std::size_t r = 0; r + 1 < runs.size(); r += 2) {
        std::size_t x = runs[r], y = runs[r + 1];
        const std::size_t x_end = y, y_end = r + 2 < runs.size() ? runs[r + 2] : y;
        double best_value = kInfinity;
        while (x < x_end || y < y_end) {
          const bool take_x = y == y_end || (x < x_end && lighter(candidates[x], candidates[y]));
          const ParetoCandidate& next = candidates[take_x ? x++ : y++];
          if (!(next.state.value < best_value)) continue;
          best_value = next.state.value;
          merged_.push_back(next);
        }
        runs[++kept] = merged_.size();
      }
      runs.resize(kept + 1);
      candidates.swap(merged_);
    }
  }

  // Removes the dominated states of a single run.
  void prune_run() {
    std::size_t end = 0;
    for (const ParetoCandidate& next : candidates) {
      if (end > 0 && !(next.state.value < candidates[end - 1].state.value)) continue;
      if (end > 0 && next.state.weight == candidates[end - 1].state.weight) --end;
      candidates[end++] = next;
    }
    candidates.resize(end);
  }

 private:
  std::vector<ParetoCandidate> merged_;
};

// All stages of a dynamic program: the states of the last one, and the steps of each.
struct ParetoStages {
  std::vector<ParetoList::ParetoState> states;
  std::vector<ParetoList::ParetoStep> steps;
  std::vector<std::size_t> starts;  // first step of each stage

  void start(const ParetoList::ParetoState& state) {
    states.assign(1, state);
    steps.clear(), starts.clear();
  }
  void append(const ParetoList& merged) {
    starts.push_back(steps.size());
    states.clear();
    for (const ParetoList::ParetoCandidate& candidate : merged.candidates) {
      states.push_back(candidate.state);
      steps.push_back(candidate.step);
    }
  }
};

}  // namespace slotkern

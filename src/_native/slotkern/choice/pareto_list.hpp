// Lists of undominated (weight, value) with what led to each: made in runs by rising weight, one a
// row of the class, and merged. O(states * log of the rows) a class; 24 bytes a state made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

struct ParetoList {
  struct State {
    double weight, value;
  };
  struct Step {
    std::uint32_t before, item;  // of the state in the list before
  };
  struct Candidate {
    State state;
    Step step;
  };

  std::vector<Candidate> made;
  std::vector<std::size_t> runs;  // where each ends, after a 0

  void clear() {
    made.clear();
    runs.assign(1, 0);
  }

  // The runs of made, each by rising weight, to one list that nothing in it dominates.
  void merge() {
    const auto lighter = [](const Candidate& a, const Candidate& b) {
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
        double level = kInfinity;
        while (x < x_end || y < y_end) {
          const bool left = y == y_end || (x < x_end && lighter(made[x], made[y]));
          const Candidate& next = made[left ? x++ : y++];
          if (!(next.state.value < level)) continue;
          level = next.state.value;
          merged_.push_back(next);
        }
        runs[++kept] = merged_.size();
      }
      runs.resize(kept + 1);
      made.swap(merged_);
    }
  }

  void prune_run() {
    std::size_t end = 0;
    for (const Candidate& next : made) {
      if (end > 0 && !(next.state.value < made[end - 1].state.value)) continue;
      if (end > 0 && next.state.weight == made[end - 1].state.weight) --end;
      made[end++] = next;
    }
    made.resize(end);
  }

 private:
  std::vector<Candidate> merged_;
};

}  // namespace slotkern

// Depth-first search over the core of a choice under several limits: the items that the bound
// could not decide, by falling weight (value less what the limits' multipliers charge).
//
// With j the next item and r still to choose, no set is worth more than (weights so far) + w_j +
// ... + w_{j+r-1}; and no limit is kept if the sum so far and the r smallest weights from j on
// are above it. Nor is a set better that leaves too much of a limit: what is left costs its
// multiplier. All of this only grows worse with j. Quick where few sets come near the bound.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/choice/bound.hpp"
#include "slotkern/choice/multi_bound.hpp"
#include "slotkern/choice/suffix_sums.hpp"

namespace slotkern {

// Weights are taken relative to the middle between the last item in and the first one out; the
// bound of a set is offset + the sum of its weights.
struct MultiCore {
  std::vector<double> weight, value;
  std::array<std::vector<double>, kMostLimits> use;  // of a limit
  std::vector<int> id;
  int pick = 0, limits = 0;
  double base_value = 0, offset = 0;
  Amounts room{};  // what is left of each limit, and the largest error of its sums
  Amounts slack{}, lambda{};

  std::size_t size() const { return id.size(); }
  void clear() {
    weight.clear(), value.clear(), id.clear();
    for (std::vector<double>& column : use) column.clear();
  }
};

class MultiSearch {
 public:
  std::int64_t nodes = 0;

  // True if the search was finished within `limit` nodes. `best` is what must be beaten;
  // `accept(core positions)` says whether the exact tests admit a set.
  template <class Accept>
  bool run(const MultiCore& core, const Tolerance& tolerance, double& best, std::int64_t limit,
           Accept accept) {
    nodes = 0;
    const std::size_t size = core.size(), pick = static_cast<std::size_t>(core.pick);
    prefix_.assign(size + 1, 0);
    for (std::size_t j = 0; j < size; ++j) prefix_[j + 1] = prefix_[j] + core.weight[j];
    list_ends(core);
    sums_.assign((pick + 1) * kMostLimits, 0);
    stack_.clear();
    Walk<Accept> walk{*this, core, tolerance, best, 0, limit, accept};
    walk.aim();
    return walk.descend(0, core.pick, core.base_value, core.offset);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void list_ends(const MultiCore& core) {
    for (int k = 0; k < core.limits; ++k) {
      least_[at(k)].build(core.use[at(k)], at(core.pick), 1);
      most_[at(k)].build(core.use[at(k)], at(core.pick), -1);
    }
  }

  template <class Accept>
  struct Walk {
    MultiSearch& search;
    const MultiCore& core;
    const Tolerance& tolerance;
    double& best;
    double beat;
    std::int64_t limit;
    Accept& accept;

    Amounts ceiling{}, floor{};  // of the sums that can still win

    // What a set that beats `best` must use of each limit.
    void aim() {
      beat = tolerance.beat(best);
      double heaviest = core.offset;
      for (std::size_t j = 0; j < at(core.pick); ++j) heaviest += core.weight[j];
      for (int k = 0; k < core.limits; ++k) {
        const double room = core.room[at(k)], slack = core.slack[at(k)];
        ceiling[at(k)] = room + slack;
        floor[at(k)] = core.lambda[at(k)] > 0 && beat > -kInfinity
                           ? room - (heaviest - beat) / core.lambda[at(k)] * (1 + 1e-9) - slack
                           : -kInfinity;
      }
    }

    bool descend(std::size_t j, int rest, double value, double weight) {
      const std::size_t depth = search.stack_.size();
      if (rest == 0) {
        if (value > best && accept(search.stack_)) {
          best = value;
          aim();
        }
        return true;
      }
      const std::size_t r = at(rest);
      const double* sums = search.sums_.data() + depth * kMostLimits;
      double* next = search.sums_.data() + (depth + 1) * kMostLimits;
      for (; j + r <= core.size(); ++j) {
        if (!(weight + (search.prefix_[j + r] - search.prefix_[j]) > beat)) return true;
        for (int k = 0; k < core.limits; ++k)
          if (sums[k] + search.least_[at(k)].of(j, r) > ceiling[at(k)] ||
              sums[k] + search.most_[at(k)].of(j, r) < floor[at(k)])
            return true;
        if (search.nodes++ >= limit) return false;
        poll();
        if (!room_with(j, r, sums, next)) continue;
        search.stack_.push_back(static_cast<int>(j));
        const bool finished =
            descend(j + 1, rest - 1, value + core.value[j], weight + core.weight[j]);
        search.stack_.pop_back();
        if (!finished) return false;
      }
      return true;
    }

    bool room_with(std::size_t j, std::size_t r, const double* sums, double* next) const {
      for (int k = 0; k < core.limits; ++k) {
        next[k] = sums[k] + core.use[at(k)][j];
        const double rest = r > 1 ? search.least_[at(k)].of(j + 1, r - 1) : 0;
        if (next[k] + rest > ceiling[at(k)]) return false;
        const double most = r > 1 ? search.most_[at(k)].of(j + 1, r - 1) : 0;
        if (next[k] + most < floor[at(k)]) return false;
      }
      return true;
    }
  };

  std::array<SuffixSums, kMostLimits> least_, most_;
  std::vector<double> prefix_, sums_;
  std::vector<int> stack_;
};

}  // namespace slotkern

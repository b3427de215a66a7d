// Several limits in the branch and bound over the core of a knapsack (choice/core.hpp).
//
// A node is infeasible if its sum plus the r smallest uses from item j on exceeds a limit. A set
// also cannot win if it leaves too much of a limit unused, because each unused unit costs its
// multiplier. Both tests become stricter as j grows, so they end the loop over j.
//
// Items equal in value and uses are adjacent, and the search branches on how many of them it
// chooses: after skipping one it skips the rest. If sums are integers, a state (next item, items to
// choose, sums) that was met before with no less value is pruned (transposition table). If a sum
// has an upper and a lower amount that are close, the last two items are looked up in a list of all
// pairs sorted by their sum. Fast if few sets come near the bound, or if sums have few distinct
// values.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/choice/core.hpp"
#include "slotkern/choice/suffix_bounds.hpp"
#include "slotkern/choice/transposition_table.hpp"

namespace slotkern {

class SeveralLimits {
 public:
  using Sums = double*;  // one number for each limit; the next item's sums follow them
  static constexpr bool kSeveral = true;

  Sums begin(const Core& core, std::int64_t limit) {
    for (int k = 0; k < core.limits; ++k) {
      min_uses_[at(k)].build(core.use[at(k)], at(core.pick), 1);
      max_uses_[at(k)].build(core.use[at(k)], at(core.pick), -1);
    }
    group_equal_items(core);
    use_table_ = core.use_table && start_table(core, limit);
    list_pairs(core);
    sums_.assign((at(core.pick) + 1) * kMaxSumLimits, 0);
    return sums_.data();
  }

  // Computes the range of the sums of a set that beats the incumbent.
  void tighten(const Core& core, double cutoff) {
    double heaviest = core.offset;
    for (std::size_t j = 0; j < at(core.pick); ++j) heaviest += core.weight[j];
    for (int k = 0; k < core.limits; ++k) {
      const double capacity = core.capacity[at(k)], slack = core.slack[at(k)];
      ceiling_[at(k)] = capacity + slack;
      floor_[at(k)] =
          core.lambda[at(k)] > 0 && cutoff > -kInfinity
              ? capacity - (heaviest - cutoff) / core.lambda[at(k)] * (1 + 1e-9) - slack
              : -kInfinity;
    }
  }

  // Completes the set with all pairs from item j on whose sum fits. Returns false, without effect,
  // if there is no list or if there are too many pairs: then the search by weight is cheaper.
  template <class Walk>
  bool complete_pair(Walk& walk, std::size_t j, Sums sums, double value, double weight,
                     bool& finished) {
    if (pairs_.empty()) return false;
    const Core& core = walk.core;
    const double min_sum = sums[below_] - ceiling_[below_];
    const double max_sum = ceiling_[above_] - sums[above_];
    auto pair = std::lower_bound(pairs_.begin(), pairs_.end(), min_sum,
                                 [](const Pair& p, double sum) { return p.sum < sum; });
    const auto max_pairs = static_cast<std::ptrdiff_t>((core.size() - j) / 2);
    if (pairs_.end() - pair > max_pairs && !(pair[max_pairs].sum > max_sum)) return false;
    poll();
    std::vector<int>& stack = walk.search.stack_;
    walk.search.nodes += 3;
    finished = walk.search.nodes < walk.limit;
    for (; finished && pair != pairs_.end() && !(pair->sum > max_sum); ++pair) {
      const std::size_t a = pair->first, b = pair->second;
      finished = walk.count_node();
      if (a < j || !(weight + core.weight[a] + core.weight[b] > walk.cutoff)) continue;
      if (!pair_fits(core, sums, a, b)) continue;
      stack.push_back(static_cast<int>(a));
      stack.push_back(static_cast<int>(b));
      walk.offer(value + core.value[a] + core.value[b]);
      stack.resize(stack.size() - 2);
    }
    return true;
  }

  // Returns true if the state was met before with no less value (beyond its rounding); else stores
  // it.
  bool is_dominated(const Core& core, std::size_t depth, std::size_t j, std::size_t rest,
                    Sums sums, double value) {
    if (!use_table_ || depth == 0) return false;
    table_.begin_key();
    table_.append(static_cast<double>(j));
    table_.append(static_cast<double>(rest));
    for (int k = 0; k < core.limits; ++k)
      if (core.is_integer[at(k)]) table_.append(sums[k] - min_sum_[at(k)]);
    return table_.prune_or_store({core.any_set_suffices ? 0 : -value, 0,
                                  fractional_limit_ >= 0 ? sums[fractional_limit_] : 0},
                                 value_noise_);
  }

  // Returns false if no r items from item j on fit, or none can win.
  SLOTKERN_INLINE bool may_fit(const Core& core, std::size_t j, std::size_t r, Sums sums) const {
    for (int k = 0; k < core.limits; ++k)
      if (sums[k] + min_uses_[at(k)].bound(j, r) > ceiling_[at(k)] ||
          sums[k] + max_uses_[at(k)].bound(j, r) < floor_[at(k)])
        return false;
    return true;
  }

  SLOTKERN_INLINE bool add(const Core& core, std::size_t j, std::size_t r, Sums sums,
                           Sums& next) const {
    next = sums + kMaxSumLimits;
    for (int k = 0; k < core.limits; ++k) {
      next[k] = sums[k] + core.use[at(k)][j];
      const double min_rest = r > 1 ? min_uses_[at(k)].bound(j + 1, r - 1) : 0;
      if (next[k] + min_rest > ceiling_[at(k)]) return false;
      const double max_rest = r > 1 ? max_uses_[at(k)].bound(j + 1, r - 1) : 0;
      if (next[k] + max_rest < floor_[at(k)]) return false;
    }
    return true;
  }

  std::size_t next(std::size_t j) const { return group_end_[j]; }

 private:
  struct Pair {
    double sum;
    std::uint32_t first, second;
  };

  static constexpr std::size_t kMaxPairedItems = 256;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Computes, for each item j, the end of the items that equal it.
  void group_equal_items(const Core& core) {
    group_end_.resize(core.size());
    for (std::size_t j = core.size(); j-- > 0;)
      group_end_[j] = j + 1 < core.size() && core.are_equal(j, j + 1) ? group_end_[j + 1] : j + 1;
  }

  // Lists all pairs by the sum of their uses of a limit that occurs twice: as an upper limit
  // and, negated, as a lower limit.
  void list_pairs(const Core& core) {
    pairs_.clear();
    if (!core.use_table || core.pick < 3 || core.size() > kMaxPairedItems) return;
    for (int a = 0; a < core.limits && pairs_.empty(); ++a)
      for (int b = a + 1; b < core.limits && pairs_.empty(); ++b) {
        const std::vector<double>&up = core.use[at(a)], &down = core.use[at(b)];
        bool opposite = !core.is_integer[at(a)];
        for (std::size_t j = 0; opposite && j < core.size(); ++j) opposite = up[j] == -down[j];
        if (!opposite) continue;
        above_ = at(a), below_ = at(b);
        for (std::size_t i = 0; i < core.size(); ++i)
          for (std::size_t j = i + 1; j < core.size(); ++j)
            pairs_.push_back({up[i] + up[j], static_cast<std::uint32_t>(i),
                              static_cast<std::uint32_t>(j)});
      }
    std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
      if (a.sum != b.sum) return a.sum < b.sum;
      return a.first != b.first ? a.first < b.first : a.second < b.second;
    });
  }

  // Prepares the transposition table. Returns false if states do not fit into its keys, or if two
  // or more limits have uses that are not integers.
  bool start_table(const Core& core, std::int64_t limit) {
    const double pick = core.pick;
    fields_.assign({static_cast<double>(core.size()), pick});
    fractional_limit_ = -1;
    for (int k = 0; k < core.limits; ++k) {
      if (!core.is_integer[at(k)]) {
        if (fractional_limit_ >= 0) return false;
        fractional_limit_ = k;
        continue;
      }
      double smallest = 0, largest = 0;
      for (const double use : core.use[at(k)])
        smallest = std::min(smallest, use), largest = std::max(largest, use);
      min_sum_[at(k)] = pick * smallest;
      fields_.push_back(pick * (largest - smallest));
    }
    double largest = 0;
    for (const double value : core.value) largest = std::max(largest, std::fabs(value));
    value_noise_ = core.has_integer_values ? 0 : 0x1p-52 * pick * largest;
    return table_.reset(fields_, limit);
  }

  bool pair_fits(const Core& core, const double* sums, std::size_t a, std::size_t b) const {
    for (int k = 0; k < core.limits; ++k)
      if (sums[k] + core.use[at(k)][a] + core.use[at(k)][b] > ceiling_[at(k)]) return false;
    return true;
  }

  std::vector<Pair> pairs_;  // by rising sum; empty if no limit qualifies
  std::size_t above_ = 0, below_ = 0;  // the limits of the pairs: upper and lower
  Amounts ceiling_{}, floor_{};  // range of the sums of a set that can still win
  std::array<SuffixBounds, kMaxSumLimits> min_uses_, max_uses_;
  TranspositionTable table_;
  bool use_table_ = false;
  int fractional_limit_ = -1;  // the limit whose uses are not integers, or -1
  double value_noise_ = 0;
  Amounts min_sum_{};  // lower bound on any sum of uses
  std::vector<double> fields_;
  std::vector<std::size_t> group_end_;
  std::vector<double> sums_;  // of the items so far, for each number of them
};

}  // namespace slotkern

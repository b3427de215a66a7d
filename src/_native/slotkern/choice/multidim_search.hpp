// Branch and bound over the core of a multidimensional knapsack: the items that the bound could not
// fix, by falling weight (value minus the multipliers' charge for the constraints).
//
// With j the next item and r items still to choose, no set is worth more than (weights so far) +
// w_j + ... + w_{j+r-1}. A node is infeasible if its sum plus the r smallest uses from j on exceeds
// a constraint. A set also cannot win if it leaves too much of a constraint unused, because each
// unused unit costs its multiplier. All three tests become stricter as j grows, so they end the
// loop.
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
#include <numeric>
#include <vector>

#include "slotkern/choice/multidim_bound.hpp"
#include "slotkern/choice/suffix_bounds.hpp"
#include "slotkern/choice/transposition_table.hpp"

namespace slotkern {

// The core. Weights are relative to the middle between the last item in and the first item out; the
// bound of a set is offset + the sum of its weights.
struct MultidimCore {
  std::vector<double> weight, value;
  std::array<std::vector<double>, kMaxSumLimits> use;  // uses, one column for each constraint
  std::vector<int> id;
  int pick = 0, limits = 0;
  double base_value = 0, offset = 0;
  // `capacity`: amount left of each constraint; `slack`: largest rounding error of its sums
  Amounts capacity{};
  Amounts slack{}, lambda{};
  std::array<bool, kMaxSumLimits> is_integer{};  // all uses of the constraint are integers
  bool has_integer_values = false, use_table = false;
  bool any_set_suffices = false;  // the first feasible set ends the search

  std::size_t size() const { return id.size(); }
  void clear() { resize(0); }
  void resize(std::size_t size) {
    weight.resize(size), value.resize(size), id.resize(size);
    for (std::vector<double>& column : use) column.resize(std::min(size, column.size()));
  }
  void copy_item(std::size_t from, std::size_t to) {
    weight[to] = weight[from], value[to] = value[from], id[to] = id[from];
    for (int k = 0; k < limits; ++k)
      use[static_cast<std::size_t>(k)][to] = use[static_cast<std::size_t>(k)][from];
  }

  bool are_equal(std::size_t a, std::size_t b) const {
    if (weight[a] != weight[b] || value[a] != value[b]) return false;
    for (std::size_t k = 0; k < static_cast<std::size_t>(limits); ++k)
      if (use[k][a] != use[k][b]) return false;
    return true;
  }

  // Sorts by falling weight, with equal items adjacent.
  void sort() {
    order_.resize(size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      if (weight[a] != weight[b]) return weight[a] > weight[b];
      if (value[a] != value[b]) return value[a] > value[b];
      for (std::size_t k = 0; k < static_cast<std::size_t>(limits); ++k)
        if (use[k][a] != use[k][b]) return use[k][a] < use[k][b];
      return id[a] < id[b];
    });
    const auto arrange = [this](auto& column) {
      auto before = column;
      for (std::size_t j = 0; j < order_.size(); ++j) column[j] = before[order_[j]];
    };
    arrange(weight), arrange(value), arrange(id);
    for (std::size_t k = 0; k < static_cast<std::size_t>(limits); ++k) arrange(use[k]);
  }

 private:
  std::vector<std::size_t> order_;
};

class MultidimSearch {
 public:
  std::int64_t nodes = 0;

  // Returns true if the search finished within `limit` nodes. `best`, the incumbent's value, is
  // updated. `accept(core positions)` returns true if the exact tests admit a set.
  template <class Accept>
  bool run(const MultidimCore& core, const MultidimTolerance& tolerance, double& best,
           std::int64_t limit, Accept accept) {
    nodes = 0;
    const std::size_t size = core.size(), pick = static_cast<std::size_t>(core.pick);
    prefix_.assign(size + 1, 0);
    for (std::size_t j = 0; j < size; ++j) prefix_[j + 1] = prefix_[j] + core.weight[j];
    build_suffix_bounds(core);
    group_equal_items(core);
    use_table_ = core.use_table && start_table(core, limit);
    build_pairs(core);
    sums_.assign((pick + 1) * kMaxSumLimits, 0);
    stack_.clear();
    MultidimDescent<Accept> walk{*this, core, tolerance, best, 0, limit, accept};
    walk.update_limits();
    return walk.descend(0, core.pick, core.base_value, core.offset);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void build_suffix_bounds(const MultidimCore& core) {
    for (int k = 0; k < core.limits; ++k) {
      min_uses_[at(k)].build(core.use[at(k)], at(core.pick), 1);
      max_uses_[at(k)].build(core.use[at(k)], at(core.pick), -1);
    }
  }

  // Computes, for each item j, the end of the items that equal it.
  void group_equal_items(const MultidimCore& core) {
    group_end_.resize(core.size());
    for (std::size_t j = core.size(); j-- > 0;)
      group_end_[j] = j + 1 < core.size() && core.are_equal(j, j + 1) ? group_end_[j + 1] : j + 1;
  }

  // Lists all pairs by the sum of their uses of a constraint that occurs twice: as an upper limit
  // and, negated, as a lower limit.
  void build_pairs(const MultidimCore& core) {
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
  // or more constraints have uses that are not integers.
  bool start_table(const MultidimCore& core, std::int64_t limit) {
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

  // Returns true if the state was met before with no less value (beyond its rounding); else stores
  // it.
  bool is_dominated(const MultidimCore& core, std::size_t j, std::size_t rest, const double* sums,
           double value) {
    table_.begin_key();
    table_.append(static_cast<double>(j));
    table_.append(static_cast<double>(rest));
    for (int k = 0; k < core.limits; ++k)
      if (core.is_integer[at(k)]) table_.append(sums[k] - min_sum_[at(k)]);
    return table_.prune_or_store({core.any_set_suffices ? 0 : -value, 0,
                                  fractional_limit_ >= 0 ? sums[fractional_limit_] : 0},
                                 value_noise_);
  }

  template <class Accept>
  struct MultidimDescent {
    MultidimSearch& search;
    const MultidimCore& core;
    const MultidimTolerance& tolerance;
    double& best;
    double cutoff;
    std::int64_t limit;
    Accept& accept;

    Amounts ceiling{}, floor{};  // range of the sums of a set that can still win

    // Computes the cutoff, and the range of uses of a set that beats `best`.
    void update_limits() {
      cutoff = tolerance.cutoff(best);
      double heaviest = core.offset;
      for (std::size_t j = 0; j < at(core.pick); ++j) heaviest += core.weight[j];
      for (int k = 0; k < core.limits; ++k) {
        const double capacity = core.capacity[at(k)], slack = core.slack[at(k)];
        ceiling[at(k)] = capacity + slack;
        floor[at(k)] =
            core.lambda[at(k)] > 0 && cutoff > -kInfinity
                ? capacity - (heaviest - cutoff) / core.lambda[at(k)] * (1 + 1e-9) - slack
                : -kInfinity;
      }
    }

    bool descend(std::size_t j, int rest, double value, double weight) {
      const std::size_t depth = search.stack_.size();
      if (rest == 0) {
        if (value > best && accept(search.stack_)) {
          best = value;
          update_limits();
        }
        return true;
      }
      const std::size_t r = at(rest);
      const double* sums = search.sums_.data() + depth * kMaxSumLimits;
      double* next = search.sums_.data() + (depth + 1) * kMaxSumLimits;
      bool finished = true;
      if (rest == 2 && !search.pairs_.empty() && add_pair(j, value, weight, finished))
        return finished;
      if (search.use_table_ && depth > 0 && search.is_dominated(core, j, r, sums, value))
        return true;
      for (; j + r <= core.size(); j = search.group_end_[j]) {
        if (!(weight + (search.prefix_[j + r] - search.prefix_[j]) > cutoff)) return true;
        for (int k = 0; k < core.limits; ++k)
          if (sums[k] + search.min_uses_[at(k)].bound(j, r) > ceiling[at(k)] ||
              sums[k] + search.max_uses_[at(k)].bound(j, r) < floor[at(k)])
            return true;
        if (search.nodes++ >= limit) return false;
        poll();
        if (!fits_with(j, r, sums, next)) continue;
        search.stack_.push_back(static_cast<int>(j));
        finished =
            descend(j + 1, rest - 1, value + core.value[j], weight + core.weight[j]);
        search.stack_.pop_back();
        if (!finished) return false;
      }
      return true;
    }

    // Completes the set with all pairs from item j on whose sum fits. Returns false, without
    // effect, if there are too many pairs: then the search by weight is cheaper.
    bool add_pair(std::size_t j, double value, double weight, bool& finished) {
      const double* sums = search.sums_.data() + search.stack_.size() * kMaxSumLimits;
      const double min_sum = sums[search.below_] - ceiling[search.below_];
      const double max_sum = ceiling[search.above_] - sums[search.above_];
      auto pair = std::lower_bound(search.pairs_.begin(), search.pairs_.end(), min_sum,
                                   [](const Pair& p, double sum) { return p.sum < sum; });
      const auto max_pairs = static_cast<std::ptrdiff_t>((core.size() - j) / 2);
      if (search.pairs_.end() - pair > max_pairs && !(pair[max_pairs].sum > max_sum)) return false;
      poll();
      search.nodes += 3;
      finished = search.nodes < limit;
      for (; finished && pair != search.pairs_.end() && !(pair->sum > max_sum); ++pair) {
        const std::size_t a = pair->first, b = pair->second;
        finished = search.nodes++ < limit;
        if (a < j || !(weight + core.weight[a] + core.weight[b] > cutoff)) continue;
        if (!pair_fits(sums, a, b)) continue;
        const double sum = value + core.value[a] + core.value[b];
        search.stack_.push_back(static_cast<int>(a));
        search.stack_.push_back(static_cast<int>(b));
        if (sum > best && accept(search.stack_)) {
          best = sum;
          update_limits();
        }
        search.stack_.resize(search.stack_.size() - 2);
      }
      return true;
    }

    bool pair_fits(const double* sums, std::size_t a, std::size_t b) const {
      for (int k = 0; k < core.limits; ++k)
        if (sums[k] + core.use[at(k)][a] + core.use[at(k)][b] > ceiling[at(k)]) return false;
      return true;
    }

    bool fits_with(std::size_t j, std::size_t r, const double* sums, double* next) const {
      for (int k = 0; k < core.limits; ++k) {
        next[k] = sums[k] + core.use[at(k)][j];
        const double min_rest = r > 1 ? search.min_uses_[at(k)].bound(j + 1, r - 1) : 0;
        if (next[k] + min_rest > ceiling[at(k)]) return false;
        const double max_rest = r > 1 ? search.max_uses_[at(k)].bound(j + 1, r - 1) : 0;
        if (next[k] + max_rest < floor[at(k)]) return false;
      }
      return true;
    }
  };

  struct Pair {
    double sum;
    std::uint32_t first, second;
  };

  static constexpr std::size_t kMaxPairedItems = 256;

  std::vector<Pair> pairs_;  // by rising sum; empty if no constraint qualifies
  std::size_t above_ = 0, below_ = 0;
  std::array<SuffixBounds, kMaxSumLimits> min_uses_, max_uses_;
  TranspositionTable table_;
  bool use_table_ = false;
  int fractional_limit_ = -1;  // the constraint whose uses are not integers, or -1
  double value_noise_ = 0;
  Amounts min_sum_{};  // lower bound on any sum of uses
  std::vector<double> fields_;
  std::vector<std::size_t> group_end_;
  std::vector<double> prefix_, sums_;
  std::vector<int> stack_;
};

}  // namespace slotkern

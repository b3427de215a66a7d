// The core of a knapsack with one limit or several: the items that the bound could not fix, by
// falling weight w = value - (multipliers' charge for the uses), and its depth-first branch and
// bound.
//
// With j the next item and r items still to choose, no set is worth more than (weights so far) +
// w_j + ... + w_{j+r-1}. This bound falls as j grows, so it ends the loop over j. The search is
// fast if few sets come near the bound. A class keeps the sums and tests the limits: OneLimit here,
// SeveralLimits in choice/multidim_search.hpp. Each has
//   Sums                         the sums of uses of the items so far;
//   begin(core, limit)           prepares a search, and returns the Sums of no item;
//   tighten(core, cutoff)        takes note of a new cutoff;
//   add(core, j, r, sums, next)  adds item j; false if r - 1 later items cannot fit with it;
//   next(j)                      the next item to branch on, if j is skipped.
//
// Sums here are rounded in other orders than those of the exact test. A set that exceeds a limit by
// at most `slack` is therefore passed to the exact test; only sets beyond that are excluded.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

// The core. Weights are relative to the middle between the last item in and the first item out, so
// that their sums stay small. The bound of a set is offset + the sum of its weights.
struct Core {
  std::vector<double> weight, value;  // sorted by falling weight
  std::array<std::vector<double>, kMaxSumLimits> use;  // one column for each limit
  std::vector<int> id;
  int pick = 0;  // number of items to choose
  int limits = 1;
  double middle = 0, offset = 0;
  double base_value = 0;  // total value of the items fixed outside the core
  // per limit: amount left for the core; largest rounding error of a sum of uses; multiplier
  Amounts capacity{}, slack{}, lambda{};
  // for several limits
  std::array<bool, kMaxSumLimits> is_integer{};  // all uses of the limit are integers
  bool has_integer_values = false, use_table = false;
  bool any_set_suffices = false;  // the first feasible set ends the search

  std::size_t size() const { return id.size(); }
  void clear() {
    weight.clear(), value.clear(), id.clear();
    for (std::vector<double>& column : use) column.clear();
  }
  void resize(std::size_t size) {
    weight.resize(size), value.resize(size), id.resize(size);
    for (std::vector<double>& column : use) column.resize(std::min(size, column.size()));
  }
  // Adds an item with one limit.
  void add(double w, double c, double z, int i) {
    weight.push_back(w), use[0].push_back(c), value.push_back(z), id.push_back(i);
  }
  void copy_item(std::size_t from, std::size_t to) {
    weight[to] = weight[from], value[to] = value[from], id[to] = id[from];
    for (std::size_t k = 0; k < columns(); ++k) use[k][to] = use[k][from];
  }

  // Adds item i, with its weight under the multipliers.
  template <class UseOf>
  void add_weighed(int i, double z, UseOf use_of) {
    double w = z;
    for (int k = 0; k < limits; ++k) {
      const std::size_t c = static_cast<std::size_t>(k);
      use[c].push_back(use_of(k));
      w -= lambda[c] * use[c].back();
    }
    weight.push_back(w - middle), value.push_back(z), id.push_back(i);
  }

  // Computes the offset of the bound; call it when pick, base_value and capacity are set.
  void set_offset() {
    double charge = 0;
    for (std::size_t k = 0; k < columns(); ++k) charge += lambda[k] * capacity[k];
    offset = base_value + charge + pick * middle;
  }

  bool are_equal(std::size_t a, std::size_t b) const {
    if (weight[a] != weight[b] || value[a] != value[b]) return false;
    for (std::size_t k = 0; k < columns(); ++k)
      if (use[k][a] != use[k][b]) return false;
    return true;
  }

  // Sorts by falling weight, with equal items adjacent.
  void sort() {
    order_.resize(size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (weight[a] != weight[b]) return weight[a] > weight[b];
      if (value[a] != value[b]) return value[a] > value[b];
      for (std::size_t k = 0; k < columns(); ++k)
        if (use[k][a] != use[k][b]) return use[k][a] < use[k][b];
      return id[a] < id[b];
    });
    const auto arrange = [this](auto& column) {
      const auto before = column;
      for (std::size_t j = 0; j < order_.size(); ++j) column[j] = before[order_[j]];
    };
    arrange(weight), arrange(value), arrange(id);
    for (std::size_t k = 0; k < columns(); ++k) arrange(use[k]);
  }

 private:
  std::size_t columns() const { return static_cast<std::size_t>(limits); }

  std::vector<std::uint32_t> order_;
};

// One limit: a set cannot fit if r - 1 times the smallest use that follows exceeds it.
class OneLimit {
 public:
  using Sums = double;
  static constexpr bool kSeveral = false;

  Sums begin(const Core& core, std::int64_t) {
    const std::vector<double>& use = core.use[0];
    min_use_from_.resize(use.size() + 1);
    min_use_from_[use.size()] = kInfinity;
    for (std::size_t j = use.size(); j-- > 0;)
      min_use_from_[j] = std::min(min_use_from_[j + 1], use[j]);
    return 0;
  }
  void tighten(const Core&, double) {}
  bool add(const Core& core, std::size_t j, std::size_t r, Sums sum, Sums& next) const {
    next = sum + core.use[0][j];
    const double rest = r > 1 ? static_cast<double>(r - 1) * min_use_from_[j + 1] : 0;
    return !(next + rest > core.capacity[0] + core.slack[0]);
  }
  std::size_t next(std::size_t j) const { return j + 1; }

 private:
  std::vector<double> min_use_from_;  // smallest use of the items from j on
};

// Depth-first branch and bound. Like CoreDynamicProgram it passes each better set to `accept(core
// positions)`, which returns true if the exact test admits the set.
template <class Limits>
class CoreBranchAndBound {
 public:
  std::int64_t nodes = 0;

  // Returns true if the search finished within `limit` nodes. `best`, the incumbent's value, is
  // updated.
  template <class Accept>
  bool run(const Core& core, const Tolerance& tolerance, double& best, std::int64_t limit,
           Accept accept) {
    nodes = 0;
    prefix_.resize(core.size() + 1);
    prefix_[0] = 0;
    for (std::size_t j = 0; j < core.size(); ++j) prefix_[j + 1] = prefix_[j] + core.weight[j];
    stack_.clear();
    const typename Limits::Sums sums = limits_.begin(core, limit);
    CoreDescent<Accept> walk{*this, core, tolerance, best, 0, limit, accept};
    walk.set_cutoff();
    return walk.descend(0, core.pick, sums, core.base_value, core.offset);
  }

 private:
  friend Limits;
  using Sums = typename Limits::Sums;

  template <class Accept>
  struct CoreDescent {
    CoreBranchAndBound& search;
    const Core& core;
    const Tolerance& tolerance;
    double& best;
    double cutoff;
    std::int64_t limit;
    Accept& accept;

    void set_cutoff() {
      cutoff = tolerance.cutoff(best);
      search.limits_.tighten(core, cutoff);
    }

    // Reports the items of the stack as a set.
    void offer(double value) {
      if (!(value > best) || !accept(search.stack_)) return;
      best = value;
      set_cutoff();
    }

    bool count_node() { return search.nodes++ < limit; }

    // Chooses `rest` items from j on. Returns false beyond `limit` nodes.
    bool descend(std::size_t j, int rest, Sums sums, double value, double weight) {
      if (rest == 0) {
        offer(value);
        return true;
      }
      Limits& limits = search.limits_;
      const std::size_t r = static_cast<std::size_t>(rest);
      bool finished = true;
      if constexpr (Limits::kSeveral) {
        if (rest == 2 && limits.complete_pair(*this, j, sums, value, weight, finished))
          return finished;
        if (limits.is_dominated(core, search.stack_.size(), j, r, sums, value)) return true;
      }
      for (; j + r <= core.size(); j = limits.next(j)) {
        if (!(weight + (search.prefix_[j + r] - search.prefix_[j]) > cutoff)) return true;
        if constexpr (Limits::kSeveral)
          if (!limits.may_fit(core, j, r, sums)) return true;
        if (!count_node()) return false;
        poll();
        Sums next;
        if (!limits.add(core, j, r, sums, next)) continue;
        search.stack_.push_back(static_cast<int>(j));
        finished = descend(j + 1, rest - 1, next, value + core.value[j], weight + core.weight[j]);
        search.stack_.pop_back();
        if (!finished) return false;
      }
      return true;
    }
  };

  Limits limits_;
  std::vector<double> prefix_;  // sums of the weights before item j
  std::vector<int> stack_;  // positions of the items so far
};

}  // namespace slotkern

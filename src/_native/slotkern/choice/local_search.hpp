// Local search for knapsacks: a current set of items, and swaps that improve it. SwapSearch holds
// what one limit (LocalSearch here) and several (choice/multidim_local_search.hpp) share.
//
// LocalSearch keeps sets within the limit. Best swap of one item for another: O(pick * count). Best
// swap of two for two: O(pick * count * log), with the list of pairs thinned out beyond kMaxPairs.
// Random swaps come from a fixed seed. This is a heuristic and proves nothing: sets fit by plain
// sums of costs, and the caller's exact test may reject them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

// The current set, the items that swaps may exchange for it, and random numbers.
class SwapSearch {
 public:
  const std::vector<int>& set() const { return in_; }

 protected:
  static constexpr int kPerturbations = 4;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void restart_random() { random_ = 0x9E3779B97F4A7C15u; }
  std::size_t random_below(std::size_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % below;
  }

  // Makes `set` the current set, of `count` items.
  void assign(const std::vector<int>& set, int count) {
    in_ = set;
    inside_.assign(at(count), 0);
    for (const int i : in_) inside_[at(i)] = 1;
  }

  std::vector<int> in_, out_;
  std::vector<char> inside_;  // marks of the set of the last assign()

 private:
  std::uint64_t random_ = 0;
};

class LocalSearch : public SwapSearch {
 public:
  // Sets the items and the budget: costs may sum to `capacity`, up to the rounding `slack`.
  void reset(const Items& items, double capacity, double slack) {
    items_ = items;
    capacity_ = capacity;
    slack_ = slack;
    restart_random();
  }

  // Makes `set` the current set; swaps may use all others.
  void start_from(const std::vector<int>& set) {
    assign(set, items_.count);
    const std::size_t count = at(items_.count) - in_.size();
    out_.resize(count), out_cost_.resize(count), out_value_.resize(count);
    out_value_.resize((count + kLanes - 1) / kLanes * kLanes, -kInfinity);
    std::size_t b = 0;
    for (int i = 0; i < items_.count; ++i) {
      if (inside_[at(i)]) continue;
      out_[b] = i, out_cost_[b] = items_.cost[i], out_value_[b] = items_.value[i];
      ++b;
    }
    sum_costs();
  }

  // Units of work of one swap_one().
  std::int64_t one_swap_work() const {
    return static_cast<std::int64_t>(in_.size() * out_.size() / 32) + 1;
  }

  // Applies the best swap of one item for another. Returns false if none improves the value.
  bool swap_one() {
    const double *costs = out_cost_.data(), *values = out_value_.data();
    const std::size_t count = out_.size();
    double gain = 0;
    std::size_t from = 0, to = count;
    for (std::size_t a = 0; a < in_.size(); ++a) {
      poll();
      const double max_cost = capacity_ - in_cost_ + items_.cost[in_[a]] + slack_;
      const double value = items_.value[in_[a]];
      for (std::size_t group = 0; group < count; group += kLanes) {
        int better = 0;  // few groups have a better item; this test needs no branch for each
        for (std::size_t b = group; b < group + kLanes; ++b) better |= values[b] - value > gain;
        if (!better) continue;
        for (std::size_t b = group; b < group + kLanes; ++b)
          if (values[b] - value > gain && costs[b] <= max_cost) {
            gain = values[b] - value;
            from = a, to = b;
          }
      }
    }
    if (to == count) return false;
    swap_items(from, to);
    return true;
  }

  // Work of one call of swap_two().
  std::int64_t two_swap_work() const {
    return 4 * static_cast<std::int64_t>(in_.size() * out_.size() / pair_stride()) + 1;
  }

  // Applies the best swap of two items for two others: pairs of single swaps, sorted by cost. For
  // each, only the kMaxPartners most expensive partners that fit are tested. Adds its units to
  // `work`. Returns false if none improves the value.
  bool swap_two(std::int64_t& work) {
    const std::size_t stride = pair_stride();
    swaps_.clear();
    for (std::size_t a = 0; a < in_.size(); ++a)
      for (std::size_t b = a % stride; b < out_.size(); b += stride)
        swaps_.push_back({out_cost_[b] - items_.cost[in_[a]],
                          out_value_[b] - items_.value[in_[a]], a, b});
    work += 4 * static_cast<std::int64_t>(swaps_.size()) + 1;
    std::sort(swaps_.begin(), swaps_.end(), [](const Swap& x, const Swap& y) {
      return x.cost < y.cost ||
             (x.cost == y.cost && (x.from < y.from || (x.from == y.from && x.to < y.to)));
    });
    const double spare = capacity_ - in_cost_ + slack_;
    double gain = 0;
    const Swap *one = nullptr, *two = nullptr;
    std::size_t last = swaps_.size();
    for (const Swap& x : swaps_) {
      while (last > 0 && x.cost + swaps_[last - 1].cost > spare) --last;
      for (std::size_t q = last; q > 0 && q + kMaxPartners > last; --q) {
        const Swap& y = swaps_[q - 1];
        if (x.value + y.value > gain && x.from != y.from && x.to != y.to) {
          gain = x.value + y.value;
          one = &x, two = &y;
        }
      }
    }
    if (!one) return false;
    swap_items(one->from, one->to);
    swap_items(two->from, two->to);
    return true;
  }

  // Applies a few random swaps; skips those after which the set might not fit.
  void perturb() {
    for (int k = 0; k < kPerturbations; ++k) {
      const std::size_t from = random_below(in_.size()), to = random_below(out_.size());
      if (in_cost_ + out_cost_[to] - items_.cost[in_[from]] <= capacity_ - slack_)
        swap_items(from, to);
    }
  }

 private:
  static constexpr std::size_t kMaxPairs = 20000, kMaxPartners = 4;
  static constexpr std::size_t kLanes = 8;  // items that swap_one() tests together

  struct Swap {
    double cost, value;
    std::size_t from, to;  // positions in in_ and out_
  };

  // swap_two() tries one in pair_stride() pairs of an item inside and an item outside.
  std::size_t pair_stride() const { return in_.size() * out_.size() / kMaxPairs + 1; }

  void sum_costs() {
    in_cost_ = 0;
    for (const int i : in_) in_cost_ += items_.cost[i];
  }

  void swap_items(std::size_t from, std::size_t to) {
    std::swap(in_[from], out_[to]);
    out_cost_[to] = items_.cost[out_[to]];
    out_value_[to] = items_.value[out_[to]];
    sum_costs();
  }

  Items items_{nullptr, nullptr, 0};
  double capacity_ = 0, slack_ = 0;
  std::vector<double> out_cost_, out_value_;  // columns of out_; values padded to kLanes
  double in_cost_ = 0;
  std::vector<Swap> swaps_;
};

}  // namespace slotkern

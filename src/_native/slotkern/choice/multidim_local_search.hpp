// Local search under several limits: swaps reduce the violation of the limits first, then raise the
// value. A set's swaps use at most kNeighbours of the other items.
//
// Best swap of one item for another: O(pick * kNeighbours * limits). Best swap of two for two: the
// same, sorted by value, with at most kMaxPairs pairs. This is a heuristic and proves nothing: sets
// fit by plain sums up to their rounding error, and the caller's exact test may reject them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/choice/local_search.hpp"
#include "slotkern/choice/multidim_bound.hpp"

namespace slotkern {

class MultidimLocalSearch : public SwapSearch {
 public:
  // Sets the items and the limits: uses may sum to `amount`, up to the rounding `slack`; violations
  // are compared relative to `reach`.
  void reset(const MultidimItems& items, const Amounts& amount, const Amounts& slack,
             const Amounts& reach) {
    items_ = items;
    amount_ = amount, slack_ = slack, reach_ = reach;
    restart_random();
  }

  // Makes `set` the current set; swaps may use the first kNeighbours others in `order`.
  void start_from(const std::vector<int>& set, const std::vector<int>& order) {
    assign(set, items_.count);
    out_.clear();
    for (const int i : order) {
      if (out_.size() == kNeighbours) break;
      if (!inside_[at(i)]) out_.push_back(i);
    }
    sum_uses();
  }

  // Makes the first `pick` items of `order`, after a few random swaps, the current set; swaps may
  // use a random part of the others.
  void start_from_random(const std::vector<int>& order, std::size_t pick) {
    places_ = order;
    const std::size_t rest = order.size() - pick, neighbours = std::min(rest, kNeighbours);
    for (std::size_t k = 0; k < kShakes; ++k)
      std::swap(places_[random_below(pick)], places_[pick + random_below(rest)]);
    for (std::size_t k = 0; k < neighbours; ++k)
      std::swap(places_[pick + k], places_[pick + k + random_below(rest - k)]);
    const auto middle = places_.begin() + static_cast<std::ptrdiff_t>(pick);
    in_.assign(places_.begin(), middle);
    out_.assign(middle, middle + static_cast<std::ptrdiff_t>(neighbours));
    sum_uses();
  }

  bool is_feasible() const { return excess(use_) <= 0; }

  // Applies the swap of one item for another that leaves the least violation and, among those,
  // gains the most value. Adds its units to `work`. Returns false if none improves the current set.
  bool swap_one(std::int64_t& work) {
    const double now = excess(use_);
    double least = now, gain = now > 0 ? -kInfinity : 0;
    std::size_t from = 0, to = out_.size();
    for (std::size_t a = 0; a < in_.size(); ++a) {
      poll();
      for (std::size_t b = 0; b < out_.size(); ++b) {
        Amounts use = use_;
        for (int k = 0; k < items_.limits; ++k) use[at(k)] += change(k, a, b);
        const double over = excess(use), more = gain_of(a, b);
        if (over < least || (over == least && (to < out_.size() || now == 0) && more > gain))
          least = over, gain = more, from = a, to = b;
      }
    }
    work += static_cast<std::int64_t>(in_.size() * out_.size()) * items_.limits / 2 + 1;
    if (to == out_.size()) return false;
    swap_items(from, to);
    return true;
  }

  // Applies the best swap of two for two: pairs of single swaps by falling value. Adds its units to
  // `work`. Returns false if none improves the value.
  bool swap_two(std::int64_t& work) {
    swaps_.clear();
    for (std::size_t a = 0; a < in_.size(); ++a)
      for (std::size_t b = 0; b < out_.size(); ++b) {
        MultidimSwap swap{gain_of(a, b), {}, a, b};
        for (int k = 0; k < items_.limits; ++k) swap.use[at(k)] = change(k, a, b);
        swaps_.push_back(swap);
      }
    std::sort(swaps_.begin(), swaps_.end(), [](const MultidimSwap& x, const MultidimSwap& y) {
      if (x.value != y.value) return x.value > y.value;
      return x.from != y.from ? x.from < y.from : x.to < y.to;
    });
    work += static_cast<std::int64_t>(swaps_.size());
    double gain = 0;
    const MultidimSwap *one = nullptr, *two = nullptr;
    std::int64_t examined = 0;
    for (std::size_t p = 0; p < swaps_.size() && examined < kMaxPairs; ++p) {
      const MultidimSwap& x = swaps_[p];
      if (!(x.value + x.value > gain)) break;
      for (std::size_t q = p + 1; q < swaps_.size(); ++q) {
        const MultidimSwap& y = swaps_[q];
        if (!(x.value + y.value > gain)) break;
        ++examined;
        if (x.from == y.from || x.to == y.to) continue;
        Amounts use = use_;
        for (int k = 0; k < items_.limits; ++k) use[at(k)] += x.use[at(k)] + y.use[at(k)];
        if (!is_within(use)) continue;
        gain = x.value + y.value;
        one = &x, two = &y;
        break;
      }
    }
    work += examined / 4;
    if (!one) return false;
    std::swap(in_[one->from], out_[one->to]);
    swap_items(two->from, two->to);
    return true;
  }

  // Applies a few random swaps; undoes those after which the set does not fit.
  void perturb() {
    for (int k = 0; k < kPerturbations; ++k) {
      const std::size_t from = random_below(in_.size()), to = random_below(out_.size());
      swap_items(from, to);
      if (!is_within(use_)) swap_items(from, to);
    }
  }

 private:
  static constexpr std::size_t kNeighbours = 64, kShakes = 3;
  static constexpr std::int64_t kMaxPairs = 20000;

  struct MultidimSwap {
    double value;
    Amounts use;
    std::size_t from, to;  // positions in in_ and out_
  };

  // Changes of the use of limit k, and of the value, by the swap of the items at these positions.
  double change(int k, std::size_t from, std::size_t to) const {
    const double* use = items_.weight[at(k)];
    return use[out_[to]] - use[in_[from]];
  }
  double gain_of(std::size_t from, std::size_t to) const {
    return items_.value[out_[to]] - items_.value[in_[from]];
  }

  // Total violation of the limits, each relative to its scale; 0 if all fit.
  double excess(const Amounts& use) const {
    double sum = 0;
    for (int k = 0; k < items_.limits; ++k)
      sum += std::max(0.0, use[at(k)] - amount_[at(k)] - slack_[at(k)]) / reach_[at(k)];
    return sum;
  }

  bool is_within(const Amounts& use) const {
    for (int k = 0; k < items_.limits; ++k)
      if (use[at(k)] > amount_[at(k)] + slack_[at(k)]) return false;
    return true;
  }

  void sum_uses() {
    use_ = {};
    for (const int i : in_)
      for (int k = 0; k < items_.limits; ++k) use_[at(k)] += items_.weight[at(k)][i];
  }

  void swap_items(std::size_t from, std::size_t to) {
    std::swap(in_[from], out_[to]);
    sum_uses();
  }

  MultidimItems items_;
  Amounts amount_{}, slack_{}, reach_{}, use_{};
  std::vector<int> places_;
  std::vector<MultidimSwap> swaps_;
};

}  // namespace slotkern

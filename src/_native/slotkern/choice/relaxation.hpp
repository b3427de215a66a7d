// The linear relaxation of a multiple-choice knapsack: steps along the lower convex hulls of the
// classes, made by falling slope until the limit is reached. O(m log m).
//
// Its multiplier lambda bounds every choice: the value of the base rows, plus the loss of each
// other row against its base at lambda. The bound is valid for any lambda >= 0 and any base.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/choice/classes.hpp"

namespace slotkern {

class Relaxation {
 public:
  std::vector<std::uint32_t> base;  // base item of each class
  std::vector<double> losses;  // loss of every item against its base at lambda, >= 0
  double lambda = 0, lower_bound = 0;  // `lower_bound`: no choice has a smaller value
  std::uint32_t break_class = 0;  // break class: the class whose step did not fit

  // Solves the relaxation: sets base, losses, lambda, lower_bound and break_class.
  void solve_relaxation(const ClassItems& problem) {
    make_hulls(problem);
    fill_greedily(problem);
    compute_losses(problem);
  }

 private:
  using Item = ClassItems::Item;

  // Computes the lower hull of every class, and the steps along them by falling slope.
  void make_hulls(const ClassItems& problem) {
    increments_.clear();
    base.clear();
    for (std::size_t k = 0; k < problem.count(); ++k) {
      hull_.clear();
      for (std::size_t i = problem.firsts[k]; i < problem.firsts[k + 1]; ++i) {
        while (hull_.size() >= 2) {
          const Item &a = problem.items[hull_[hull_.size() - 2]], &b = problem.items[hull_.back()];
          const Item& x = problem.items[i];
          if ((b.value - a.value) * (x.weight - a.weight) <
              (x.value - a.value) * (b.weight - a.weight))
            break;
          hull_.pop_back();
        }
        hull_.push_back(static_cast<std::uint32_t>(i));
      }
      for (std::size_t i = 1; i < hull_.size(); ++i) {
        const Item &a = problem.items[hull_[i - 1]], &b = problem.items[hull_[i]];
        const double dw = b.weight - a.weight, df = a.value - b.value;
        // rounding must not change the order of a hull
        double slope = df / (dw * problem.weight_unit);
        if (i > 1) slope = std::min(slope, increments_.back().slope);
        increments_.push_back({slope, dw, df, static_cast<std::uint32_t>(k), hull_[i]});
      }
      base.push_back(hull_.front());
    }
    std::sort(increments_.begin(), increments_.end(), [](const Increment& a, const Increment& b) {
      if (a.slope != b.slope) return a.slope > b.slope;
      return a.group != b.group ? a.group < b.group : a.item < b.item;
    });
  }

  // Greedy: makes steps until the limit is reached. Computes base, lambda, and the lower bound
  // without the correction for negative losses, which compute_losses() adds.
  void fill_greedily(const ClassItems& problem) {
    double w = 0, f = 0;
    for (const std::uint32_t i : base) w += problem.items[i].weight;
    lambda = 0;
    break_class = 0;
    for (const Increment& x : increments_) {
      if (w + x.weight > problem.capacity && x.slope <= kMaxSlope) {
        lambda = x.slope;
        break_class = x.group;
        break;
      }
      w += x.weight;
      base[x.group] = x.item;
    }
    w = 0;
    for (const std::uint32_t i : base) w += problem.items[i].weight, f += problem.items[i].value;
    // Valid for any lambda >= 0 and any base.
    const double charge = lambda * ((problem.capacity + problem.slack - w) * problem.weight_unit);
    lower_bound = f - (charge + 4 * 0x1p-52 * std::fabs(charge));
  }

  // Computes the loss of each row against its base at lambda. If a base is not the best row of its
  // class at lambda, the lower bound is corrected by the difference.
  void compute_losses(const ClassItems& problem) {
    losses.resize(problem.items.size());
    for (std::size_t k = 0; k < problem.count(); ++k) {
      const Item& at = problem.items[base[k]];
      double under = 0;
      for (std::size_t i = problem.firsts[k]; i < problem.firsts[k + 1]; ++i) {
        const double dw = lambda * ((problem.items[i].weight - at.weight) * problem.weight_unit);
        const double df = problem.items[i].value - at.value;
        const double loss = df + dw - 4 * 0x1p-52 * (std::fabs(df) + std::fabs(dw));
        losses[i] = i == base[k] ? 0 : loss;
        under = std::min(under, losses[i]);
      }
      if (under < 0) {
        lower_bound += under;
        for (std::size_t i = problem.firsts[k]; i < problem.firsts[k + 1]; ++i) losses[i] -= under;
      }
    }
  }

  static constexpr double kMaxSlope = 1e12;  // steeper hull steps are rounding errors: always made

  struct Increment {  // a step along the hull of a class
    double slope, weight, value;
    std::uint32_t group, item;  // class and target item of the step
  };

  std::vector<Increment> increments_;
  std::vector<std::uint32_t> hull_;
};

}  // namespace slotkern

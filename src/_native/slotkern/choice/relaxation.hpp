// The linear relaxation of a multiple-choice knapsack: the lower hulls of the classes, taken by
// falling slope until the limit is met. O(m log m).
//
// Its multiplier lambda bounds every choice: the base row of each class, and what each other row
// loses against it at lambda. Valid for any lambda >= 0 and any base.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/choice/classes.hpp"

namespace slotkern {

class Relaxation {
 public:
  std::vector<std::uint32_t> base;  // one item a class
  std::vector<double> losses;       // of every item
  double lambda = 0, lower_bound = 0;        // no choice has less value than lower_bound
  std::uint32_t break_class = 0;         // the class whose step did not fit

  void solve_relaxation(const ClassItems& problem) {
    make_hulls(problem);
    fill_greedily(problem);
    compute_losses(problem);
  }

 private:
  using Item = ClassItems::Item;

  // The lower hull of every class, and the steps along them by falling slope.
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
        double slope = df / (dw * problem.weight_unit);  // rounding must not disorder a hull
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

  // Takes steps until the limit is met: base, lambda, and the bound but for losses below 0.
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
    // Valid for any lambda >= 0 and any base: the losses below 0 count too.
    const double charge = lambda * ((problem.capacity + problem.slack - w) * problem.weight_unit);
    lower_bound = f - (charge + 4 * 0x1p-52 * std::fabs(charge));
  }

  // What each row loses against the base at lambda; where a base is not the best, lower_bound pays.
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

  static constexpr double kMaxSlope = 1e12;  // hull steps beyond are rounding: always taken

  struct Increment {  // a step along the hull of a class
    double slope, weight, value;
    std::uint32_t group, item;  // that it leads to
  };

  std::vector<Increment> increments_;
  std::vector<std::uint32_t> hull_;
};

}  // namespace slotkern

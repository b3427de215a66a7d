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
  double lambda = 0, lb = 0;        // no choice has less value than lb
  std::uint32_t broken = 0;         // the class whose step did not fit

  void relax(const ClassItems& given) {
    make_hulls(given);
    go_along(given);
    bound_losses(given);
  }

 private:
  using Item = ClassItems::Item;

  // The lower hull of every class, and the steps along them by falling slope.
  void make_hulls(const ClassItems& given) {
    increments_.clear();
    base.clear();
    for (std::size_t k = 0; k < given.count(); ++k) {
      hull_.clear();
      for (std::size_t i = given.firsts[k]; i < given.firsts[k + 1]; ++i) {
        while (hull_.size() >= 2) {
          const Item &a = given.items[hull_[hull_.size() - 2]], &b = given.items[hull_.back()];
          const Item& x = given.items[i];
          if ((b.value - a.value) * (x.weight - a.weight) <
              (x.value - a.value) * (b.weight - a.weight))
            break;
          hull_.pop_back();
        }
        hull_.push_back(static_cast<std::uint32_t>(i));
      }
      for (std::size_t i = 1; i < hull_.size(); ++i) {
        const Item &a = given.items[hull_[i - 1]], &b = given.items[hull_[i]];
        const double dw = b.weight - a.weight, df = a.value - b.value;
        double slope = df / (dw * given.weight_unit);  // rounding must not disorder a hull
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
  void go_along(const ClassItems& given) {
    double w = 0, f = 0;
    for (const std::uint32_t i : base) w += given.items[i].weight;
    lambda = 0;
    broken = 0;
    for (const Increment& x : increments_) {
      if (w + x.weight > given.most && x.slope <= kSteep) {
        lambda = x.slope;
        broken = x.group;
        break;
      }
      w += x.weight;
      base[x.group] = x.item;
    }
    w = 0;
    for (const std::uint32_t i : base) w += given.items[i].weight, f += given.items[i].value;
    // Valid for any lambda >= 0 and any base: the losses below 0 count too.
    const double charge = lambda * ((given.most + given.slack - w) * given.weight_unit);
    lb = f - (charge + 4 * 0x1p-52 * std::fabs(charge));
  }

  // What each row loses against the base at lambda; where a base is not the best, lb pays.
  void bound_losses(const ClassItems& given) {
    losses.resize(given.items.size());
    for (std::size_t k = 0; k < given.count(); ++k) {
      const Item& at = given.items[base[k]];
      double under = 0;
      for (std::size_t i = given.firsts[k]; i < given.firsts[k + 1]; ++i) {
        const double dw = lambda * ((given.items[i].weight - at.weight) * given.weight_unit);
        const double df = given.items[i].value - at.value;
        const double loss = df + dw - 4 * 0x1p-52 * (std::fabs(df) + std::fabs(dw));
        losses[i] = i == base[k] ? 0 : loss;
        under = std::min(under, losses[i]);
      }
      if (under < 0) {
        lb += under;
        for (std::size_t i = given.firsts[k]; i < given.firsts[k + 1]; ++i) losses[i] -= under;
      }
    }
  }

  static constexpr double kSteep = 1e12;  // hull steps beyond are rounding: always taken

  struct Increment {  // a step along the hull of a class
    double slope, weight, value;
    std::uint32_t group, item;  // that it leads to
  };

  std::vector<Increment> increments_;
  std::vector<std::uint32_t> hull_;
};

}  // namespace slotkern

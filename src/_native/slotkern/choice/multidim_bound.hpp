// The upper bound of a cardinality-constrained multidimensional knapsack
//
//   max sum z_i x_i   with   sum w_ki x_i <= a_k  for all k,   sum x_i = n,   x binary.
//
// For any multipliers lambda >= 0, (sum of the n largest z - sum_k lambda_k w_k) + sum_k lambda_k
// a_k is an upper bound; its minimum is the value of the linear relaxation. The dual simplex method
// for bounded variables computes its multipliers. The basis has one variable for each constraint
// and one for the cardinality, so a pivot is O(m k); a ratio test that flips variables to their
// other bound keeps pivots few. The simplex only proposes multipliers: bounds, and proofs of
// infeasibility, are recomputed from them with a margin for rounding, so that its errors cannot
// make an answer wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

// Items with one column of weights for each constraint.
struct MultidimItems {
  const double* value = nullptr;
  std::array<const double*, kMaxSumLimits> weight{};
  int count = 0, limits = 0;

  // Weight of item i: scale * value minus the multipliers' charge for its uses.
  double weigh(int i, const Amounts& lambda, double scale = 1) const {
    double sum = scale * value[i];
    for (int k = 0; k < limits; ++k)
      sum -= lambda[static_cast<std::size_t>(k)] * weight[static_cast<std::size_t>(k)][i];
    return sum;
  }
};

class DualSimplex {
 public:
  Amounts lambda{};  // multipliers of the last solve()
  // after solve() returned false: constraints summed with these weights exceed their amounts for
  // any n items, up to rounding
  Amounts ray{};
  int pivots = 0;

  // Returns true if the relaxation has an optimum, or if the pivot limit was reached: `lambda`
  // gives a valid bound in both cases. Returns false if it seems to be infeasible; then see `ray`.
  bool solve(const MultidimItems& items, int n, const Amounts& amount) {
    items_ = items;
    rows_ = items.limits + 1;
    amount_ = amount;
    pick_ = n;
    initialize();
    for (pivots = 0; pivots < kMaxPivots; ++pivots) {
      poll();
      const int row = most_violated();
      if (row < 0) break;
      if (!pivot(row)) return false;
    }
    extract_multipliers();
    return true;
  }

 private:
  static constexpr int kMaxPivots = 200;
  static constexpr int kRows = kMaxSumLimits + 1;
  static constexpr double kTiny = 1e-11, kFeasible = 1e-9;

  using Column = std::array<double, kRows>;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Column of a variable: j < count is an item, count + k the slack variable of constraint k. Rows
  // are scaled so that one tolerance for violations serves all.
  Column column(int j) const {
    Column a{};
    if (j >= items_.count) {
      a[at(j - items_.count)] = 1;
      return a;
    }
    for (int k = 0; k < items_.limits; ++k) a[at(k)] = items_.weight[at(k)][j] * scale_[at(k)];
    a[at(items_.limits)] = 1;
    return a;
  }

  // Start basis: all multipliers 0, the n largest values chosen, the n-th one basic.
  void initialize() {
    const int m = items_.count;
    for (int k = 0; k < items_.limits; ++k) {
      double largest = 0;
      for (int i = 0; i < m; ++i) largest = std::max(largest, std::fabs(items_.weight[at(k)][i]));
      scale_[at(k)] = largest > 0 ? 1 / largest : 1;
      if (!std::isfinite(scale_[at(k)])) scale_[at(k)] = 1;
    }
    upper_.assign(at(m + items_.limits), 0);
    basic_.assign(at(m + items_.limits), 0);
    order_.resize(at(m));
    for (int i = 0; i < m; ++i) order_[at(i)] = i;
    std::nth_element(order_.begin(), order_.begin() + (pick_ - 1), order_.end(),
                     [this](int a, int b) {
                       const double x = items_.value[a], y = items_.value[b];
                       return x > y || (x == y && a < b);
                     });
    for (int i = 0; i < pick_ - 1; ++i) upper_[at(order_[at(i)])] = 1;
    const int nth = order_[at(pick_ - 1)];
    const Column a = column(nth);
    for (int r = 0; r < rows_; ++r) {
      inverse_[at(r)] = {};
      inverse_[at(r)][at(r)] = 1;
    }
    for (int k = 0; k < items_.limits; ++k) {
      basis_[at(k)] = m + k;
      basic_[at(m + k)] = 1;
      inverse_[at(k)][at(items_.limits)] = -a[at(k)];
    }
    basis_[at(items_.limits)] = nth;
    basic_[at(nth)] = 1;
    dual_ = {};
    dual_[at(items_.limits)] = items_.value[nth];
    compute_primal();
  }

  // Computes the values of the basic variables.
  void compute_primal() {
    Column rest{};
    for (int k = 0; k < items_.limits; ++k) rest[at(k)] = amount_[at(k)] * scale_[at(k)];
    rest[at(items_.limits)] = pick_;
    for (int j = 0; j < items_.count; ++j) {
      if (!upper_[at(j)] || basic_[at(j)]) continue;
      for (int k = 0; k < items_.limits; ++k)
        rest[at(k)] -= items_.weight[at(k)][j] * scale_[at(k)];
      rest[at(items_.limits)] -= 1;
    }
    for (int r = 0; r < rows_; ++r) {
      x_[at(r)] = 0;
      for (int q = 0; q < rows_; ++q) x_[at(r)] += inverse_[at(r)][at(q)] * rest[at(q)];
    }
  }

  bool is_item(int j) const { return j < items_.count; }

  // Row of the basic variable that violates its bounds most; -1 if none does.
  int most_violated() const {
    double worst = kFeasible;
    int row = -1;
    for (int r = 0; r < rows_; ++r) {
      const double below = -x_[at(r)];
      const double above = is_item(basis_[at(r)]) ? x_[at(r)] - 1 : -kInfinity;
      const double by = std::max(below, above);
      if (by > worst) worst = by, row = r;
    }
    return row;
  }

  struct RatioTestStep {
    double ratio, change;
    int j;
  };

  // One pivot: the variable of this row leaves the basis at the bound that it violates. Variables
  // whose reduced cost changes its sign are flipped to their other bound while the row stays
  // violated. Returns false if no variable can enter: the relaxation seems to be infeasible.
  bool pivot(int row) {
    const bool below = x_[at(row)] < 0;
    const double sign = below ? 1 : -1;
    const Column& inverse_row = inverse_[at(row)];
    steps_.clear();
    const auto consider = [&](int j, double alpha, double reduced) {
      // A variable may enter if it moves the row's value towards its bound.
      const double a = sign * alpha;
      const bool up = upper_[at(j)];
      if (up ? a > kTiny : a < -kTiny)
        steps_.push_back(
            {std::max(0.0, (up ? reduced : -reduced) / std::fabs(a)), std::fabs(a), j});
    };
    for (int j = 0; j < items_.count; ++j) {
      if (basic_[at(j)]) continue;
      double alpha = inverse_row[at(items_.limits)],
             reduced = items_.value[j] - dual_[at(items_.limits)];
      for (int k = 0; k < items_.limits; ++k) {
        const double a = items_.weight[at(k)][j] * scale_[at(k)];
        alpha += inverse_row[at(k)] * a;
        reduced -= dual_[at(k)] * a;
      }
      consider(j, alpha, reduced);
    }
    for (int k = 0; k < items_.limits; ++k)
      if (!basic_[at(items_.count + k)])
        consider(items_.count + k, inverse_row[at(k)], -dual_[at(k)]);
    double violated = below ? -x_[at(row)] : x_[at(row)] - 1;
    if (steps_.empty()) return record_ray(inverse_row, sign);
    // Smallest ratio first; of equal ratios the largest change.
    const auto after = [](const RatioTestStep& a, const RatioTestStep& b) {
      if (a.ratio != b.ratio) return a.ratio > b.ratio;
      return a.change != b.change ? a.change < b.change : a.j > b.j;
    };
    std::make_heap(steps_.begin(), steps_.end(), after);
    auto end = steps_.end();
    for (;;) {
      std::pop_heap(steps_.begin(), end, after);
      const RatioTestStep& step = *--end;
      if (!is_item(step.j) || violated <= step.change) break;
      if (end == steps_.begin()) return record_ray(inverse_row, sign);
      violated -= step.change;
    }
    for (auto flipped = end + 1; flipped != steps_.end(); ++flipped) upper_[at(flipped->j)] ^= 1;
    const int enters = end->j, leaves = basis_[at(row)];
    const Column a = column(enters);
    Column pivot_column{};
    for (int r = 0; r < rows_; ++r)
      for (int q = 0; q < rows_; ++q) pivot_column[at(r)] += inverse_[at(r)][at(q)] * a[at(q)];
    const double pivot_element = pivot_column[at(row)];
    // too small to divide by; the current duals still give a bound
    if (!(std::fabs(pivot_element) > kTiny)) return true;
    const double reduced = (is_item(enters) ? items_.value[enters] : 0) - dot(dual_, a);
    const double theta = reduced / pivot_element;
    for (int q = 0; q < rows_; ++q) dual_[at(q)] += theta * inverse_row[at(q)];
    for (int q = 0; q < rows_; ++q) inverse_[at(row)][at(q)] /= pivot_element;
    for (int r = 0; r < rows_; ++r) {
      if (r == row) continue;
      const double factor = pivot_column[at(r)];
      if (factor != 0)
        for (int q = 0; q < rows_; ++q)
          inverse_[at(r)][at(q)] -= factor * inverse_[at(row)][at(q)];
    }
    basic_[at(leaves)] = 0;
    upper_[at(leaves)] = static_cast<char>(!below);
    basic_[at(enters)] = 1;
    basis_[at(row)] = enters;
    compute_primal();
    return true;
  }

  double dot(const Column& a, const Column& b) const {
    double sum = 0;
    for (int q = 0; q < rows_; ++q) sum += a[at(q)] * b[at(q)];
    return sum;
  }

  // Stores the row of the inverse as the ray of infeasibility. Returns false.
  bool record_ray(const Column& inverse_row, double sign) {
    for (int k = 0; k < items_.limits; ++k) {
      ray[at(k)] = std::max(0.0, sign * inverse_row[at(k)] * scale_[at(k)]);
      if (!std::isfinite(ray[at(k)])) ray[at(k)] = 0;
    }
    extract_multipliers();
    return false;
  }

  // Converts the dual values to multipliers >= 0 of the unscaled constraints.
  void extract_multipliers() {
    for (int k = 0; k < items_.limits; ++k) {
      lambda[at(k)] = std::max(0.0, dual_[at(k)] * scale_[at(k)]);
      if (!std::isfinite(lambda[at(k)])) lambda[at(k)] = 0;
    }
  }

  MultidimItems items_;
  Amounts amount_{}, scale_{};
  int rows_ = 0, pick_ = 0;
  std::array<int, kRows> basis_{};
  std::array<Column, kRows> inverse_{};
  Column x_{}, dual_{};
  std::vector<char> upper_, basic_;
  std::vector<int> order_;
  std::vector<RatioTestStep> steps_;
};

}  // namespace slotkern

// Constraints on sums over the parts of a window: sum(storage) >= 500, sum(power * length) <= 12.
//
// A part's use of a constraint is its slot's weight, the weight times the part's length, or the
// value of a user function of slot and length. Weights are indexed by row of the array from which
// the slots came, so a slot cut from a row keeps its weight. The sum is exact, rounded once, and
// compared with the amount by the rule of base/exact_sum.hpp; a part with a use beyond kMaxUse is
// in no window.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/base/exact_sum.hpp"

namespace slotkern {

// In addition to the budget and the constraints that a search adds (choice/multidim_bound.hpp).
inline constexpr std::size_t kMaxSumConstraints = 6;
inline constexpr double kMaxUse = 1e290;

// Computes `use` from the record in the user's array and the part's length; returns non-zero on
// failure.
using UseFunction = int (*)(const void* slot, double length, double* use);

struct SumConstraint {
  double amount = 0;
  bool at_least = false;  // otherwise at most
  const double* weight = nullptr;  // [origin row]
  bool by_length = false;  // multiply the weight by the part's length
  UseFunction function = nullptr;  // used instead of weights if not null
  const char* records = nullptr;
  std::ptrdiff_t stride = 0;

  // Computes the use of a part; returns false if the function failed or returned NaN.
  bool use(std::size_t origin, double length, double& out) const {
    if (function) {
      const char* record = records + static_cast<std::ptrdiff_t>(origin) * stride;
      return !function(record, length, &out) && !std::isnan(out);
    }
    out = by_length ? weight[origin] * length : weight[origin];
    return true;
  }
  bool is_met_by(double sum) const {
    return at_least ? sum >= relaxed_min(amount) : sum <= relaxed_max(amount);
  }
  // The upper limit of the equivalent "at most" constraint; uses are negated if at_least.
  double upper_amount() const { return relaxed_max(at_least ? -amount : amount); }
};

struct SumConstraints {
  std::vector<SumConstraint> all;
  std::size_t rows = 0;  // origin rows that have weights; slots of later rows are in no window
};

}  // namespace slotkern

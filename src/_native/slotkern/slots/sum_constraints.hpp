// Limits on sums over the parts of a window: sum(storage) >= 500, sum(power * length) <= 12.
//
// What a part uses of a limit is its slot's weight, that times the part's length, or what a
// user's function says of both. Weights are those of the array that the slots came from: a slot
// cut from a row keeps them. A sum is the exact one, rounded once, and meets its amount by the
// rule of base/exact_sum.hpp; a use beyond kMaxUse fits nowhere.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/base/exact_sum.hpp"

namespace slotkern {

// Beside the budget, and what a search needs for itself (choice/multidim_bound.hpp).
inline constexpr std::size_t kMaxSumConstraints = 6;
inline constexpr double kMaxUse = 1e290;

// Of the record as the user's array holds it; non-zero when it failed.
using UseFunction = int (*)(const void* slot, double length, double* use);

struct SumConstraint {
  double amount = 0;
  bool at_least = false;            // else at most
  const double* weight = nullptr;   // one a row of origin
  bool by_length = false;           // times the part's length
  UseFunction function = nullptr;  // instead of weights
  const char* records = nullptr;
  std::ptrdiff_t stride = 0;

  // False where there is no use: the function failed.
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
  // The same as one from above, of negated uses if it is one from below.
  double upper_amount() const { return relaxed_max(at_least ? -amount : amount); }
};

struct SumConstraints {
  std::vector<SumConstraint> all;
  std::size_t rows = 0;  // of origin that have weights; those behind are in no window
};

}  // namespace slotkern

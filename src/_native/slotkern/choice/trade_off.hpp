// The Pareto front of value and weight for one row from each class: all pairs of sums that no other
// choice beats in both.
//
// The recursion of Toporkov et al. 2014, eqs. 2 to 4, without a limit: Pareto lists of (weight,
// value), one class after another. Values are added in the order of the classes, as in answers;
// floating-point addition is monotone, so dominance stays valid. Weights carry their rounding
// error, so that the final weight is the exact sum, rounded once, as in an answer. O(states * rows
// of the class) a class; the number of states may grow as the product of the class sizes, hence the
// limit `max_states`. Memory: 88 bytes a state.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/choice/classes.hpp"

namespace slotkern {

struct TradeOff {
  std::vector<double> weight, value;  // sorted by rising weight and improving value
  bool complete = true;  // false: more than `max_states` states; both columns are empty

  // Computes the front; creates at most `max_states` states.
  Fault run(const Classes& classes, bool maximize, std::int64_t max_states) {
    const double sign = maximize ? -1 : 1;
    if (const Fault fault = classes.check(); fault.status != Status::ok) return fault;
    std::vector<PartialChoice> states{{0, 0, 0}}, candidates;
    std::int64_t work = max_states;
    enable_interrupts();
    for (std::size_t k = 0; k < classes.count && complete; ++k) {
      candidates.clear();
      for (std::int64_t row = classes.first[k]; row < classes.first[k + 1]; ++row) {
        work -= static_cast<std::int64_t>(states.size());
        complete = complete && work >= 0;
        if (!complete) break;
        poll();
        for (const PartialChoice& s : states) {
          candidates.push_back({s.weight, s.low, s.value + sign * classes.value[row]});
          candidates.back().add(classes.weight[row]);
        }
      }
      std::sort(candidates.begin(), candidates.end(),
                [](const PartialChoice& a, const PartialChoice& b) {
        poll();  // sorting millions of states takes long
        if (a.weight != b.weight) return a.weight < b.weight;
        return a.low != b.low ? a.low < b.low : a.value < b.value;
      });
      states.clear();
      for (const PartialChoice& s : candidates)
        if (states.empty() || s.value < states.back().value) states.push_back(s);
      if (!states.empty() && !(std::isfinite(states.front().weight) &&
                               std::isfinite(states.back().value)))
        return {Status::sum_overflows, 0, 0};
    }
    weight.clear(), value.clear();
    if (!complete) return {};
    for (const PartialChoice& s : states) {
      if (!weight.empty() && weight.back() == s.weight) weight.pop_back(), value.pop_back();
      weight.push_back(s.weight);
      value.push_back(sign * s.value);
    }
    return {};
  }

 private:
  struct PartialChoice {
    double weight, low, value;  // `weight`: rounded sum; `low`: its rounding error

    void add(double x) {
      const double sum = weight + x, part = sum - weight;
      const double rest = (weight - (sum - part)) + (x - part) + low;
      weight = sum + rest;
      low = std::isfinite(weight) ? rest - (weight - sum) : 0;
    }
  };
};

inline Fault trade_off(const Classes& classes, bool maximize, std::int64_t max_states,
                       TradeOff& answer) noexcept {
  Fault fault;
  const Status status = guarded([&] {
    fault = answer.run(classes, maximize, max_states);
    return Status::ok;
  });
  if (status != Status::ok) fault.status = status;
  return fault;
}

}  // namespace slotkern

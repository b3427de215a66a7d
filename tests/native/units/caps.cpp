// Step functions and spans of time with enough of several capacities, against arrays of unit times.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/pool/caps.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

constexpr int kUnits = 24;  // times 0 to kUnits; the last unit has no end
constexpr double kEnd = std::numeric_limits<double>::infinity();
using Units = std::array<std::int64_t, kUnits + 2>;  // [0]: before time 0

struct Change {
  double first, last;
  std::int64_t amount;
};

Change some_change() {
  const auto first = static_cast<int>(below(kUnits));
  const int last = first + 1 + static_cast<int>(below(6));
  const bool open = below(8) == 0;
  return {below(8) == 0 ? -kEnd : first, open || last > kUnits ? kEnd : last,
          static_cast<std::int64_t>(below(7)) - 3};
}

void apply(Units& units, const Change& change) {
  for (int unit = -1; unit <= kUnits; ++unit)
    if ((unit >= change.first || change.first == -kEnd) && unit < change.last)
      units[static_cast<std::size_t>(unit + 1)] += change.amount;
}

void check_equal(const StepFunction& function, const Units& units, int from = -1) {
  for (int unit = from; unit <= kUnits; ++unit) {
    const std::int64_t amount = units[static_cast<std::size_t>(unit + 1)];
    CHECK(function.at(unit) == amount);
    CHECK(function.at(unit + 0.5) == amount);
  }
  CHECK(function.time(0) == -kEnd);
  for (std::size_t step = 1; step < function.size(); ++step) {
    CHECK(function.time(step - 1) < function.time(step));
    CHECK(function.amount(step - 1) != function.amount(step));
  }
}

void check_one_function() {
  StepFunction function(5);
  Units units;
  units.fill(5);
  std::vector<Change> changes;
  for (int i = 0; i < 12; ++i) {
    changes.push_back(some_change());
    function.add(changes.back().first, changes.back().last, changes.back().amount);
    apply(units, changes.back());
    check_equal(function, units);
    const auto first = static_cast<int>(below(kUnits));
    const int last = first + 1 + static_cast<int>(below(kUnits));
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int unit = first; unit < last && unit <= kUnits; ++unit)
      least = std::min(least, units[static_cast<std::size_t>(unit + 1)]);
    CHECK(function.least(first, last) == least);
    const auto amount = static_cast<std::int64_t>(below(9));
    int without = first;
    while (without < last && function.at(without) >= amount) ++without;
    CHECK(function.first_without(first, last, amount) == without);
  }
  StepFunction later = function;
  const auto now = static_cast<int>(below(kUnits));
  later.forget(now);
  check_equal(later, units, now);
  CHECK(later.size() == 1 || later.time(1) > now);
  while (!changes.empty()) {
    const std::size_t k = below(changes.size());
    function.add(changes[k].first, changes[k].last, -changes[k].amount);
    changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(k));
  }
  CHECK(function == StepFunction(5));
}

void check_spans() {
  std::vector<StepFunction> functions(1 + below(3), StepFunction(2));
  std::vector<Units> units(functions.size());
  std::vector<CapacityUse> uses;
  for (std::size_t k = 0; k < functions.size(); ++k) {
    units[k].fill(2);
    for (int i = 0; i < 5; ++i) {
      const Change change = some_change();
      functions[k].add(change.first, change.last, change.amount);
      apply(units[k], change);
    }
    uses.push_back({&functions[k], 1 + static_cast<std::int64_t>(below(2))});
  }
  const auto enough = [&](int unit) {
    for (std::size_t k = 0; k < uses.size(); ++k)
      if (units[k][static_cast<std::size_t>(unit + 1)] < uses[k].amount) return false;
    return true;
  };
  const auto from = static_cast<int>(below(kUnits));
  const int length = static_cast<int>(below(4));
  int start = from;
  for (int unit = start; start <= kUnits && unit < start + std::max(length, 1); ++unit)
    if (!enough(std::min(unit, kUnits))) start = unit + 1;
  CHECK(first_start_with_enough(uses, from, length) == (start <= kUnits ? start : kEnd));
  double at = from;
  for (int unit = from; unit <= kUnits;) {
    int end = unit;
    while (end <= kUnits && enough(end)) ++end;
    const bool open = end > kUnits;
    if (end > unit && (open || end - unit >= length)) {
      const TimeSpan span = span_with_enough(uses, at, length);
      CHECK(span.first == unit && span.last == (open ? kEnd : end));
      CHECK(have_enough(uses, span.first, open ? kUnits + 9 : span.last));
      if (!open) CHECK(!have_enough(uses, span.first, span.last + 1));
      at = span.last;
    }
    unit = end + 1;
  }
  if (at < kEnd) CHECK(span_with_enough(uses, at, length).first == kEnd);
}

}  // namespace

int main() {
  for (int i = 0; i < 3000; ++i) {
    check_one_function();
    check_spans();
  }
  StepFunction none;
  none.add(3, 3, 1);
  none.add(1, 4, 0);
  CHECK(none == StepFunction());
  StepFunction numbered(2);
  numbered.set_epoch(7);
  numbered.add(1, 4, -1);
  CHECK(numbered.epoch() == 7);
  StepFunction copied = numbered;
  CHECK(copied == numbered && copied.epoch() == 0);
  numbered.add(2, 3, 1);
  CHECK(numbered.epoch() == 0);
  // Lengths that differ from a span by rounding are not left out.
  StepFunction late(1);
  late.add(1e9 + 0.1, kEnd, -1);
  CHECK(span_with_enough({{&late, 1}}, 1e9, 0.1 + 1e-8).first == 1e9);
  CHECK(span_with_enough({{&late, 1}}, 1e9, 0.2).first == kEnd);
  return report();
}

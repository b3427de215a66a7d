// Capacities of the whole pool over time, such as licences: step functions of the free amount, and
// the spans of time in which several of them have enough.
//
// Inputs: times of the pool, and whole amounts. A request that uses u of a capacity fits in [start,
// finish) if at least u is free at every time of it. The maximal spans with enough of all
// capacities are disjoint and not adjacent, so each window lies in exactly one of them, and the
// windows of a span [first, last) are those that start at `first` or later and end by `last`.
//
// Invariant of StepFunction: times ascend, the first is -infinity, and adjacent amounts differ; so
// functions with equal values are equal, and a release after a booking restores every bit.
//
// Cost: O(log k) to find a time among k steps, O(k) to change a span (a move of memory).
//
// An epoch is a number of a step function that is lost when an amount rises: bounds on starts that
// were proven in an epoch hold as long as the function has it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace slotkern {

// The amount without a limit. Amounts in use stay below 2^60, so it remains the larger.
inline constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

class StepFunction {
 public:
  explicit StepFunction(std::int64_t amount = 0)
      : times_{-std::numeric_limits<double>::infinity()}, amounts_{amount} {}

  std::size_t size() const { return times_.size(); }
  double time(std::size_t step) const { return times_[step]; }
  std::int64_t amount(std::size_t step) const { return amounts_[step]; }

  std::int64_t at(double time) const { return amounts_[step_at(time)]; }

  // The least amount in [first, last), which is not empty.
  std::int64_t least(double first, double last) const {
    std::size_t step = step_at(first);
    std::int64_t found = amounts_[step];
    while (++step < size() && times_[step] < last) found = std::min(found, amounts_[step]);
    return found;
  }

  // The first time from `from` on with at least `amount`; infinity if there is none.
  double first_with(double from, std::int64_t amount) const {
    std::size_t step = step_at(from);
    while (step < size() && amounts_[step] < amount) ++step;
    return step < size() ? std::max(from, times_[step])
                         : std::numeric_limits<double>::infinity();
  }

  // The first time in [from, last) with less than `amount`; `last` if there is none.
  double first_without(double from, double last, std::int64_t amount) const {
    std::size_t step = step_at(from);
    while (step < size() && times_[step] < last && amounts_[step] >= amount) ++step;
    return step < size() ? std::min(last, std::max(from, times_[step])) : last;
  }

  // The first time from `from` on at which a window of `length` has at least `amount`; infinity if
  // there is none. O(log k + steps from `from` to the end of the window).
  double first_start(double from, double length, std::int64_t amount) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double start = from;
    for (std::size_t step = step_at(from); step < size(); ++step) {
      const double end = step + 1 < size() ? times_[step + 1] : kInfinity;
      if (amounts_[step] < amount)
        start = end;
      else if (start + length <= end)
        return start;
    }
    return kInfinity;
  }

  // The epoch, or 0 for none. The owner of the function numbers epochs: no two functions, and no
  // two epochs of one, may have the same number. A copy has none.
  std::uint64_t epoch() const { return epoch_.number; }
  void set_epoch(std::uint64_t number) { epoch_.number = number; }

  // Adds an amount in [first, last). May throw std::bad_alloc, then without a change.
  void add(double first, double last, std::int64_t amount) {
    if (!(first < last) || amount == 0) return;
    if (amount > 0) epoch_.number = 0;
    times_.reserve(size() + 2);
    amounts_.reserve(size() + 2);
    const std::size_t begin = split(first);
    const std::size_t end = split(last);
    for (std::size_t step = begin; step < end; ++step) amounts_[step] += amount;
    merge(end);
    merge(begin);
  }

  // Removes the steps that end by `time`; the amount at `time` stays, as of all time before it.
  void forget(double time) {
    const std::size_t step = step_at(time);
    if (step == 0) return;
    times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(step));
    amounts_.erase(amounts_.begin(), amounts_.begin() + static_cast<std::ptrdiff_t>(step));
    times_[0] = -std::numeric_limits<double>::infinity();
  }

  friend bool operator==(const StepFunction&, const StepFunction&) = default;

 private:
  // The step that contains a time.
  std::size_t step_at(double time) const {
    const auto after = std::upper_bound(times_.begin() + 1, times_.end(), time);
    return static_cast<std::size_t>(after - times_.begin()) - 1;
  }

  // Returns the step that begins at a time, or size() for infinity; splits the step around it.
  std::size_t split(double time) {
    if (time == std::numeric_limits<double>::infinity()) return size();
    const std::size_t step = step_at(time);
    if (times_[step] == time) return step;
    const auto at = static_cast<std::ptrdiff_t>(step);
    times_.insert(times_.begin() + at + 1, time);
    amounts_.insert(amounts_.begin() + at + 1, amounts_[step]);
    return step + 1;
  }

  // Joins a step with the one before it if their amounts are equal.
  void merge(std::size_t step) {
    if (step == 0 || step >= size() || amounts_[step - 1] != amounts_[step]) return;
    times_.erase(times_.begin() + static_cast<std::ptrdiff_t>(step));
    amounts_.erase(amounts_.begin() + static_cast<std::ptrdiff_t>(step));
  }

  // Not copied, and equal to all others.
  struct Epoch {
    std::uint64_t number = 0;

    Epoch() = default;
    Epoch(const Epoch&) {}
    Epoch& operator=(const Epoch&) { return number = 0, *this; }
    friend bool operator==(const Epoch&, const Epoch&) { return true; }
  };

  std::vector<double> times_;
  std::vector<std::int64_t> amounts_;
  Epoch epoch_;
};

// An amount of one capacity that a window uses from its start to its finish.
struct CapacityUse {
  StepFunction* free;
  std::int64_t amount;
};

// A span of time [first, last).
struct TimeSpan {
  double first, last;
};

// Returns true if all capacities have enough in [start, finish).
inline bool have_enough(const std::vector<CapacityUse>& uses, double start, double finish) {
  return std::all_of(uses.begin(), uses.end(), [&](const CapacityUse& use) {
    return use.free->least(start, finish) >= use.amount;
  });
}

// Returns the first time from `from` on at which all capacities have enough for a window of
// `length`; infinity if there is none.
inline double first_start_with_enough(const std::vector<CapacityUse>& uses, double from,
                                      double length) {
  double start = from;
  // `agreed`: capacities in a row, the last of them before `next`, that have enough at `start`.
  for (std::size_t next = 0, agreed = 0; agreed < uses.size(); next = (next + 1) % uses.size()) {
    const double first = uses[next].free->first_start(start, length, uses[next].amount);
    if (first == std::numeric_limits<double>::infinity()) return first;
    agreed = first == start ? agreed + 1 : 1;
    start = first;
  }
  return start;
}

// Returns the first maximal span from `from` on in which all capacities have enough for a window of
// `length`; first is infinite if there is none. `length` is a lower bound of the runtime: a span
// that is shorter, beyond rounding, cannot hold a window.
inline TimeSpan span_with_enough(const std::vector<CapacityUse>& uses, double from,
                                 double length) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kMargin = 1 - 0x1p-40;
  while (true) {
    double first = from;
    for (bool changed = true; changed;) {
      changed = false;
      for (const CapacityUse& use : uses) {
        const double time = use.free->first_with(first, use.amount);
        if (time == kInfinity) return {kInfinity, kInfinity};
        changed = changed || time > first;
        first = time;
      }
    }
    double last = kInfinity;
    for (const CapacityUse& use : uses) {
      last = use.free->first_without(first, last, use.amount);
    }
    const double rounding = 0x1p-48 * std::max(std::abs(first), std::abs(last));
    if (last == kInfinity || !(last - first + rounding < length * kMargin)) return {first, last};
    from = last;
  }
}

}  // namespace slotkern

// A tariff: the factor that multiplies the price of a part, as a function of time.
//
// The factor is piecewise constant, right-continuous, finite and at least 0: factor 0 holds before
// the first breakpoint, factor k from breakpoint k - 1 on. Neighbours of equal value are merged. A
// part that runs from t for `length` on a slot of price p costs p * integral(t, length).
//
// integral() is the one expression of that amount. The sum of the whole segments between start and
// end is a difference of prefix sums in two doubles, rounded once: prefix sums in one double would
// lose 3 to 4 digits over a year. Within one segment the integral is factor * length.
//
// As a function of t the integral is continuous, with slope factor(t + length) - factor(t). The
// slope rises only if the tariff falls at t or rises at t + length; between such times it is
// concave.
// Cost: O(1) expected for integral() on even breakpoints, O(breakpoints) for construction.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "slotkern/base/numbers.hpp"
#include "slotkern/base/status.hpp"

namespace slotkern {

// Costs that agree in 28 bits of mantissa, rounded to nearest, are equal under tariffs: the
// earliest start is then the best. Rounding, because amounts of few digits must not lie at an edge.
inline std::uint64_t cost_key(double cost) {
  return (std::bit_cast<std::uint64_t>(cost + 0.0) + 0x800000) & ~std::uint64_t{0xFFFFFF};
}

// Largest finite cost with this key.
inline double max_cost_of_key(std::uint64_t key) {
  const double largest = std::bit_cast<double>(key + 0x7FFFFF);
  return std::isfinite(largest) ? largest : std::numeric_limits<double>::max();
}

class Tariff {
 public:
  // The factor 1 at all times.
  Tariff() : factors_{1.0} {}

  // Sets the breakpoints, ascending, and the factors, one more. On an error the tariff is
  // unchanged.
  Status set(std::span<const double> breakpoints, std::span<const double> factors) {
    constexpr double largest = std::numeric_limits<double>::max();
    if (factors.size() != breakpoints.size() + 1) return Status::request_not_valid;
    for (const double factor : factors)
      if (!(factor >= 0 && factor <= largest)) return Status::price_not_valid;
    for (std::size_t k = 0; k < breakpoints.size(); ++k) {
      if (!(std::fabs(breakpoints[k]) <= largest)) return Status::start_not_finite;
      if (k > 0 && !(breakpoints[k - 1] < breakpoints[k])) return Status::not_sorted;
    }
    Tariff made;
    made.factors_[0] = factors[0] + 0.0;  // no negative zero
    for (std::size_t k = 0; k < breakpoints.size(); ++k) {
      if (factors[k + 1] == made.factors_.back()) continue;
      const bool rises = factors[k + 1] > made.factors_.back();
      (rises ? made.rises_ : made.falls_).push_back(breakpoints[k]);
      made.breakpoints_.push_back(breakpoints[k]);
      made.factors_.push_back(factors[k + 1] + 0.0);
    }
    made.max_factor_ = *std::max_element(made.factors_.begin(), made.factors_.end());
    made.sum_segments();
    made.build_index();
    *this = std::move(made);
    return Status::ok;
  }

  std::span<const double> breakpoints() const { return breakpoints_; }
  std::span<const double> factors() const { return factors_; }
  std::span<const double> falls() const { return falls_; }  // breakpoints at which the factor falls
  std::span<const double> rises() const { return rises_; }  // breakpoints at which it rises
  double max_factor() const { return max_factor_; }

  double factor_at(double t) const { return factors_[segment_at(t)]; }
  // Index of the factor at t: the number of breakpoints <= t.
  std::size_t segment_at(double t) const {
    std::size_t k = guess(t);
    while (k < breakpoints_.size() && breakpoints_[k] <= t) ++k;
    while (k > 0 && breakpoints_[k - 1] > t) --k;
    return k;
  }

  // Integral of the factor over [t, t + length).
  double integral(double t, double length) const {
    const double end = t + length;
    const std::size_t i = segment_at(t), j = count_before(end, i);
    if (j <= i) return factors_[i] * length;
    const double head = factors_[i] * (breakpoints_[i] - t);
    const double tail = factors_[j] * (end - breakpoints_[j - 1]);
    return (head + between(i, j - 1)) + tail;
  }

  // Lowest factor over [from, to].
  double min_factor(double from, double to) const {
    std::size_t k = segment_at(from);
    double least = factors_[k];
    for (; k < breakpoints_.size() && breakpoints_[k] <= to; ++k)
      least = std::min(least, factors_[k + 1]);
    return least;
  }

  // Mean factor over [from, to], from < to.
  double mean_factor(double from, double to) const {
    return integral(from, to - from) / (to - from);
  }

  bool falls_at(double t) const { return std::binary_search(falls_.begin(), falls_.end(), t); }

  // True if t is a breakpoint b at which the factor rises minus `length`, rounded.
  bool rises_after(double t, double length) const {
    const double end = t + length;
    const double slack = 0x1p-51 * (std::fabs(t) + std::fabs(end));
    auto at = std::lower_bound(rises_.begin(), rises_.end(), end - slack);
    for (; at != rises_.end() && *at <= end + slack; ++at)
      if (*at - length == t) return true;
    return false;
  }

 private:
  // Number of breakpoints < t; at least `known` of them unless t <= the start of that segment.
  std::size_t count_before(double t, std::size_t known) const {
    if (known == breakpoints_.size() || t <= breakpoints_[known]) return known;
    std::size_t k = guess(t);
    while (k < breakpoints_.size() && breakpoints_[k] < t) ++k;
    while (k > 0 && breakpoints_[k - 1] >= t) --k;
    return k;
  }
  std::size_t guess(double t) const {
    const double at = (t - first_) * scale_;
    if (!(at > 0)) return 0;
    const double last = static_cast<double>(index_.size()) - 1;
    return index_[static_cast<std::size_t>(std::min(at, last))];
  }

  // Sum of the segments from breakpoint i to breakpoint j >= i. A single segment is its product.
  double between(std::size_t i, std::size_t j) const {
    if (j == i) return 0;
    if (j == i + 1) return factors_[j] * (breakpoints_[j] - breakpoints_[i]);
    const double high = sums_[j].high - sums_[i].high;
    const double part = high - sums_[j].high;
    const double error = (sums_[j].high - (high - part)) - (sums_[i].high + part);
    return high + (error + (sums_[j].low - sums_[i].low));
  }

  void sum_segments() {
    sums_.assign(breakpoints_.size(), {});
    for (std::size_t k = 1; k < sums_.size(); ++k) {
      const TwoDouble& before = sums_[k - 1];
      // The definition adds rounded products, so the rounding error of `segment` is not added.
      const double segment = factors_[k] * (breakpoints_[k] - breakpoints_[k - 1]);
      const double high = before.high + segment, part = high - before.high;
      const double low = before.low + ((before.high - (high - part)) + (segment - part));
      sums_[k].high = high + low;
      sums_[k].low = low - (sums_[k].high - high);
    }
  }

  void build_index() {
    if (breakpoints_.empty()) return;
    const std::size_t entries = 2 * breakpoints_.size();
    const double span = breakpoints_.back() - breakpoints_.front();
    first_ = breakpoints_.front();
    scale_ = span > 0 && std::isfinite(span) ? static_cast<double>(entries) / span : 0;
    index_.assign(entries + 1, 0);
    std::size_t k = 0;
    for (std::size_t entry = 0; scale_ > 0 && entry <= entries; ++entry) {
      const double t = first_ + static_cast<double>(entry) / scale_;
      while (k < breakpoints_.size() && breakpoints_[k] < t) ++k;
      index_[entry] = static_cast<std::uint32_t>(k);
    }
  }

  struct TwoDouble {
    double high = 0, low = 0;
  };
  std::vector<double> breakpoints_, factors_;
  std::vector<double> falls_, rises_;
  std::vector<TwoDouble> sums_;  // [k]: sum of the segments from breakpoint 0 to breakpoint k
  // [entry]: number of breakpoints before first_ + entry / scale_, where a search by time begins
  std::vector<std::uint32_t> index_{0};
  double first_ = 0, scale_ = 0;
  double max_factor_ = 1;
};

}  // namespace slotkern

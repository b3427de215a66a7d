// Time cells, and lower bounds on the integral of a tariff by cell and by length of a part.
//
// Time from the first slot start to the last slot time or breakpoint is cut into cells of equal
// width; the last cell has no end. Groups of 16 cells have bounds of their own.
// Lengths are divided into buckets, four for each
// power of two. For a tariff and a bucket [shortest, longest), a table holds for each cell the
// least integral over `shortest` of a part that starts in the cell, and the least factor after
// `shortest`. A part of length L in the bucket pays at least
//     min_integral(cell, L) = least[cell] + (L - shortest) * after[cell]
// for each unit of price. The integral is concave between falls and `rises - shortest`, so its
// least value over a cell is at an edge or at one of these times. Bounds include a margin for
// relative errors of a few ulp and for the rounding of t + L to the clock.
// Cost: O(breakpoints + cells) for a table.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/lazy.hpp"
#include "slotkern/tariff/tariff.hpp"

namespace slotkern {

// Relative margin of lower bounds on costs. It is smaller than the steps of cost_key(), so that
// bounds prove that costs are equal.
inline constexpr double kBoundMargin = 0x1p-34;

// Upper bound on the rounding error of a time near t or t + length.
inline double clock_error(double t, double length) {
  return 0x1p-50 * (std::fabs(t) + length);
}

class TimeCells {
 public:
  TimeCells() = default;
  TimeCells(double first, double last, std::size_t count)
      : origin_(first), width_((last - first) / static_cast<double>(count)), count_(count) {
    if (!(width_ > 0) || !std::isfinite(width_) || !(first + width_ > first))
      count_ = 1, width_ = std::max(1.0, std::fabs(last - first));
  }

  std::size_t size() const { return count_; }
  static constexpr std::size_t kPerGroup = 16;
  std::size_t groups() const { return (count_ + kPerGroup - 1) / kPerGroup; }
  // Start of a cell; begin(size()) is at or after all slot times and breakpoints.
  double begin(std::size_t cell) const { return origin_ + static_cast<double>(cell) * width_; }
  // Exclusive end of a cell.
  double end(std::size_t cell) const { return cell + 1 < count_ ? begin(cell + 1) : kInfinity; }
  // The cell that contains t; the first one for earlier times.
  std::size_t cell_at(double t) const {
    const double at = (t - origin_) / width_;
    const double last = static_cast<double>(count_ - 1);
    auto cell = static_cast<std::size_t>(at > 0 ? std::min(at, last) : 0.0);
    while (cell > 0 && begin(cell) > t) --cell;
    while (cell + 1 < count_ && begin(cell + 1) <= t) ++cell;
    return cell;
  }

 private:
  double origin_ = 0, width_ = 1;
  std::size_t count_ = 1;
};

// Least integral over parts of `length` that start in the cell, exact up to the margin. `edges`:
// the lesser of the integrals from both edges of the cell.
inline double min_integral_in_cell(const Tariff& tariff, const TimeCells& cells, std::size_t cell,
                                   double length, double edges) {
  const double from = cells.begin(cell), to = cells.begin(cell + 1);
  const bool is_last = cell + 1 == cells.size();
  const double error = clock_error(to, length), until = is_last ? kInfinity : to + error;
  double least = edges;
  const auto visit = [&](std::span<const double> times, double shift) {
    auto at = std::lower_bound(times.begin(), times.end(), from + shift - error);
    for (; at != times.end() && *at - shift <= until; ++at)
      least = std::min(least, tariff.integral(*at - shift, length));
  };
  visit(tariff.falls(), 0);
  visit(tariff.rises(), length);
  least = least * (1 - kBoundMargin) - error * tariff.max_factor();
  return std::clamp(least, 0.0, std::numeric_limits<double>::max());
}
inline double min_integral_in_cell(const Tariff& tariff, const TimeCells& cells, std::size_t cell,
                                   double length) {
  return min_integral_in_cell(tariff, cells, cell, length,
                              std::min(tariff.integral(cells.begin(cell), length),
                                       tariff.integral(cells.begin(cell + 1), length)));
}

// Rows of lower bounds: by cell or group.
struct PriceRow {
  std::vector<double> least, after;

  explicit PriceRow(std::size_t size = 0) : least(size, kInfinity), after(size, kInfinity) {}
  void lower(std::size_t at, double integral, double factor) {
    least[at] = std::min(least[at], integral);
    after[at] = std::min(after[at], factor);
  }

  double min_integral(std::size_t at, double more) const { return least[at] + more * after[at]; }
};

struct PriceTable {
  double shortest = 0;
  PriceRow cells, groups;

  PriceTable() = default;
  PriceTable(const Tariff& tariff, const TimeCells& time, double from, double to)
      : shortest(from), cells(time.size()), groups(time.groups()) {
    // The segments after `shortest`, with rising factors: a sliding minimum.
    std::vector<std::size_t> segments;
    std::size_t front = 0, next = 0;
    double left = tariff.integral(time.begin(0), shortest);
    for (std::size_t cell = 0; cell < time.size(); ++cell) {
      const double begin = time.begin(cell), end = time.begin(cell + 1);
      const std::size_t first = tariff.segment_at(begin + shortest - clock_error(end, shortest));
      const std::size_t last = tariff.segment_at(end + clock_error(end, to) + to);
      for (next = std::max(next, first); next <= last; ++next) {
        const double factor = tariff.factors()[next];
        while (segments.size() > front && tariff.factors()[segments.back()] >= factor)
          segments.pop_back();
        segments.push_back(next);
      }
      while (segments[front] < first) ++front;
      const double right = tariff.integral(end, shortest);
      const double least =
          min_integral_in_cell(tariff, time, cell, shortest, std::min(left, right));
      left = right;
      const double after = tariff.factors()[segments[front]];
      cells.lower(cell, least, after);
      groups.lower(cell / TimeCells::kPerGroup, least, after);
    }
  }
};

// The tables of one tariff, each built at first use, also by concurrent searches.
class PriceTables {
 public:
  const PriceTable& get(const Tariff& tariff, const TimeCells& cells, double length) const {
    const std::size_t bucket = bucket_of(length);
    return tables_[bucket].get([&] {
      return PriceTable(tariff, cells, bucket == 0 ? 0 : edge(bucket),
                        bucket + 1 == kBuckets ? kInfinity : edge(bucket + 1));
    });
  }

 private:
  // Buckets by the exponent and the two highest bits of the mantissa; the first and the last bucket
  // have all shorter and longer lengths.
  static constexpr std::size_t kBuckets = 512;
  static constexpr std::uint64_t kFirst = (1023 - 64) * 4;
  static std::size_t bucket_of(double length) {
    const std::uint64_t at = std::bit_cast<std::uint64_t>(length) >> 50;
    return at <= kFirst ? 0 : std::min<std::size_t>(at - kFirst, kBuckets - 1);
  }
  static double edge(std::size_t bucket) {
    return std::bit_cast<double>((kFirst + bucket) << 50);
  }
  std::array<Lazy<PriceTable>, kBuckets> tables_;
};

}  // namespace slotkern

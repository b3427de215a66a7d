// Builds sum limits from a fuzzer's bytes, such that some windows meet them exactly or miss them by
// one bit, and tests them without the kernels' sums.
#pragma once

#include <deque>

#include "instance.hpp"

namespace fuzz {

// The sum of finite terms, rounded once: a fixed-point number of 2200 bits whose lowest bit is the
// smallest subnormal.
class LongSum {
 public:
  void add(double x) {
    if (x == 0) return;
    int exponent = 0;
    const auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
    const int at = exponent - 53 + 1074;  // negative for subnormals: their low digits are 0
    const std::int64_t whole = at < 0 ? digits / (std::int64_t{1} << -at) : digits;
    const int place = std::max(at, 0);
    std::int64_t low = whole % 0x1000000, rest = whole / 0x1000000;
    for (int k = place / 24; low || rest; ++k, low = rest % 0x1000000, rest /= 0x1000000)
      words_.at(static_cast<std::size_t>(k)) += low * (std::int64_t{1} << place % 24);
  }

  // Returns the nearest double; ties go to the one whose last bit is 0.
  double rounded() {
    const bool negative = carry();
    if (negative) {
      for (std::int64_t& word : words_) word = -word;
      carry();
    }
    double near = 0;  // accurate to a few units in the last place
    for (int k = 0; k < static_cast<int>(kWords); ++k)
      near += std::ldexp(static_cast<double>(words_.at(static_cast<std::size_t>(k))), 24 * k - 1074);
    while (above(near, near) < 0) near = next_down(near);
    while (above(next_up(near), next_up(near)) >= 0) near = next_up(near);
    const int side = above(near, next_up(near));
    const bool odd = (std::bit_cast<std::uint64_t>(near) & 1) != 0;
    if (side > 0 || (side == 0 && odd)) near = next_up(near);
    return negative ? -near : near;
  }

 private:
  static constexpr std::size_t kWords = 96;

  // Normalizes the digits to one sign, except for the first; returns true if the sum is negative.
  bool carry() {
    for (std::size_t k = 0; k + 1 < kWords; ++k) {
      const std::int64_t over = words_[k] >> 24;
      words_[k] -= over * 0x1000000;
      words_[k + 1] += over;
    }
    return words_.back() < 0;
  }

  // Returns the sign of the sum minus the mean of two numbers.
  int above(double a, double b) const {
    LongSum difference = *this;
    for (std::int64_t& word : difference.words_) word *= 2;
    difference.add(-a), difference.add(-b);
    if (difference.carry()) return -1;
    const auto zero = [](std::int64_t word) { return word == 0; };
    return std::all_of(difference.words_.begin(), difference.words_.end(), zero) ? 0 : 1;
  }

  std::array<std::int64_t, kWords> words_{};  // of 24 bits, with space for carries
};

inline double sum_of(const std::vector<double>& terms) {
  LongSum exact;
  for (const double x : terms) exact.add(x);
  return exact.rounded();
}

// The limits given to a kernel, with their columns.
struct Limited {
  slotkern::SumConstraints limits;
  std::deque<std::vector<double>> columns;

  static double use(const SumConstraint& limit, const Row& row, std::size_t origin, double length) {
    if (limit.function) return row.price * length;
    return limit.by_length ? limit.weight[origin] * length : limit.weight[origin];
  }
  static bool is_met(const SumConstraint& limit, const std::vector<double>& uses) {
    for (const double use : uses)
      if (!(std::fabs(use) <= slotkern::kMaxUse)) return false;
    const double sum = sum_of(uses);
    return limit.at_least ? sum >= relaxed_min(limit.amount) : sum <= relaxed_max(limit.amount);
  }
};

inline int price_times_length(const void* slot, double length, double* use) {
  *use = static_cast<const Row*>(slot)->price * length;
  return 0;
}

// Creates one to three limits, sometimes the maximum number.
inline void make_limits(Bytes& bytes, const std::vector<Row>& rows, const Query& query,
                        Limited& out) {
  static const std::vector<double> palettes[] = {
      {0, 1, 2, 3},        {0.1, 0.2, 0.3, 0.7},      {-2, -1, 0, 1},
      {1, 0x1p53, 3, -1},  {1 / 3.0, 5, 1e-9, 2},     {0, 1e9, 3, -7},
      {0},                 {1, 1 + 0x1p-52, 1 - 0x1p-53, 2},
      {5e-324, 1e-310, 0, -5e-324},                   {1e290, 1, -1e290, 3e289}};
  out.limits.rows = rows.size();
  const std::size_t count = bytes.one_in(16) ? slotkern::kMaxSumConstraints : 1 + bytes.below(3);
  for (std::size_t k = 0; k < count && !rows.empty(); ++k) {
    SumConstraint limit;
    limit.at_least = bytes.below(2);
    limit.by_length = bytes.one_in(3);
    const std::vector<double>& palette = palettes[bytes.below(bytes.one_in(4) ? 10 : 7)];
    const bool price = bytes.one_in(4), far = bytes.one_in(16);
    std::vector<double>& weights = out.columns.emplace_back();
    for (const Row& row : rows)
      weights.push_back(price && row.price <= slotkern::kMaxUse ? row.price
                                                                 : bytes.pick(palette));
    limit.weight = weights.data();
    if (bytes.one_in(8)) {
      limit.function = price_times_length;
      limit.records = reinterpret_cast<const char*>(rows.data()), limit.stride = sizeof(Row);
    }
    // Returns the joint use of some rows, each for its own time or all for that of one.
    const double one = length_on(query, bytes.pick(rows).performance);
    const bool own = bytes.below(2);
    std::vector<double> uses;
    const std::size_t first = bytes.below(rows.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(query.n); ++i) {
      const std::size_t at = (first + i * (1 + bytes.below(2))) % rows.size();
      const double length = own ? length_on(query, rows[at].performance) : one;
      const double use = Limited::use(limit, rows[at], at, length);
      if (std::fabs(use) <= slotkern::kMaxUse) uses.push_back(use);
    }
    limit.amount = far ? bytes.pick(palette) : sum_of(uses);
    const std::size_t off = bytes.below(7);
    if (off == 4) limit.amount = next_down(limit.amount);
    if (off == 5) limit.amount = next_up(limit.amount);
    if (off == 6) limit.amount *= bytes.below(2) ? 1 - 0x1p-49 : 1 + 0x1p-49;
    out.limits.all.push_back(limit);
  }
}

// The same limits for rows that were cut from others; `origins` are the original row numbers.
inline void limits_of_pieces(const Limited& whole, const std::vector<Row>& rows,
                             const std::vector<std::size_t>& origins, Limited& out) {
  out.limits.rows = rows.size();
  for (SumConstraint limit : whole.limits.all) {
    std::vector<double>& weights = out.columns.emplace_back();
    for (const std::size_t origin : origins) weights.push_back(limit.weight[origin]);
    limit.weight = weights.data();
    if (limit.function) limit.records = reinterpret_cast<const char*>(rows.data());
    out.limits.all.push_back(limit);
  }
}

inline void print(const Limited& limited) {
  for (const SumConstraint& limit : limited.limits.all) {
    std::fprintf(stderr, "limit: sum(%s)%s %s %.17g:", limit.function ? "price" : "weight",
                 limit.function || limit.by_length ? " * length" : "",
                 limit.at_least ? ">=" : "<=", limit.amount);
    for (std::size_t i = 0; i < limited.limits.rows; ++i)
      std::fprintf(stderr, " %.17g", limit.weight[i]);
    std::fprintf(stderr, "\n");
  }
}

}  // namespace fuzz

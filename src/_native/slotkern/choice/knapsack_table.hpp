// The dynamic programming table: choose exactly k of m items with integer costs, for all k <= n.
//
// Recurrence (2) of Toporkov et al. (2018, section 3.3):
//   f_i(C_j, k) = max(f_{i-1}(C_j, k), f_{i-1}(C_j - c_i, k - 1) + z_i),   f(C_j, 0) = 0.
// The rows of f are updated in place, k downwards. One bit a cell and item records if the item was
// taken; trace() follows these bits back. O(m n C) time; m n C / 8 bytes of bits and 8 n C bytes of
// rows for C columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "slotkern/choice/core.hpp"

namespace slotkern {

namespace detail {

inline constexpr std::size_t kLanes = 8;  // columns processed together
inline constexpr std::size_t kBlock = kLanes * 64;  // columns whose bits fill kLanes words

// Updates one row for one item: into[j] = max(into[j], from[j - cost] + value) for the groups
// first..last - 1 of kLanes columns; `from` points to the source of the first group. Bits are
// stored lane by lane, so that no shuffle is needed:
//   column  b * kBlock + g * kLanes + l   <->   bit g of taken[b * kLanes + l]
// Written with vector types, because compilers translate the plain loop into code that is 3 to 5
// times slower (measured: 0.2 against 1 ns a cell).
#if defined(__GNUC__)
// A typedef is required: clang ignores a lowered alignment in an alias declaration.
typedef double Quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef std::int64_t QuadBits __attribute__((vector_size(32), aligned(8), may_alias));
static_assert(alignof(Quad) == 8 && alignof(QuadBits) == 8);  // columns begin anywhere

SLOTKERN_CLONES static inline void update_row(double* __restrict into,
                                            const double* __restrict from, double value,
                                            std::size_t first, std::size_t last,
                                            std::uint64_t* __restrict taken) {
  for (std::size_t group = first; group < last;) {
    const std::size_t block = group / 64, stop = std::min(last, block * 64 + 64);
    QuadBits low = {}, high = {};
    for (; group < stop; ++group) {
      const auto bit = static_cast<std::int64_t>(std::uint64_t{1} << (group % 64));
      Quad* without = reinterpret_cast<Quad*>(into + group * kLanes);
      const Quad* source = reinterpret_cast<const Quad*>(from + (group - first) * kLanes);
      const Quad with_low = source[0] + value, with_high = source[1] + value;
      const QuadBits better_low = with_low > without[0], better_high = with_high > without[1];
      without[0] = better_low ? with_low : without[0];
      without[1] = better_high ? with_high : without[1];
      low |= better_low & bit;
      high |= better_high & bit;
    }
    QuadBits* words = reinterpret_cast<QuadBits*>(taken + block * kLanes);
    words[0] = low;
    words[1] = high;
  }
}
#else
inline void update_row(double* into, const double* from, double value, std::size_t first,
                     std::size_t last, std::uint64_t* taken) {
  for (std::size_t j = first * kLanes; j < last * kLanes; ++j) {
    const double with = from[j - first * kLanes] + value;
    if (!(with > into[j])) continue;
    into[j] = with;
    taken[j / kBlock * kLanes + j % kLanes] |= std::uint64_t{1} << (j % kBlock / kLanes);
  }
}
#endif

}  // namespace detail

class KnapsackTable {
 public:
  static constexpr double kLongCells = 1e7;  // more cells take longer than a few milliseconds
  static constexpr double kCellsPerUnit = 48;  // cells that take as long as one search state

  static double cells(double items, double n, double width) { return items * n * width; }

  // Bytes that run() needs for `width` columns, that is, costs 0..width - 1.
  static double bytes(double items, double n, double width) {
    const double row = std::floor((width + 2 * detail::kBlock) / detail::kBlock) * detail::kBlock;
    return 8 * (n + 1) * row + items * n * (row / 8);
  }

  // True if the table fits into `memory`; the cap keeps cell counts within their integer type.
  static bool fits(double items, double n, double width, double memory) {
    return bytes(items, n, width) <= std::min(memory, 0x1p60);
  }

  // Computes the table. Costs are >= 0; an item that costs more than width - 1 is never chosen.
  // Values may be negative. Afterwards best() and trace() work for all k if `all_cardinalities`,
  // else only for k = n.
  void run(const std::int64_t* cost, const double* value, std::size_t items, std::size_t n,
           std::size_t width, bool all_cardinalities) {
    using detail::kBlock, detail::kLanes;
    n_ = n;
    groups_ = (width + kLanes - 1) / kLanes;
    // kLanes cells of -inf precede column 0, because an item's first group may read them.
    stride_ = kLanes + groups_ * kLanes;
    words_ = (groups_ + 63) / 64 * kLanes;
    cost_ = cost;
    items_ = items;
    rows_.assign((n + 1) * stride_, -kInfinity);
    std::fill(row(0), row(0) + groups_ * kLanes, 0.0);
    if (cells(static_cast<double>(items), static_cast<double>(n), static_cast<double>(width)) >
        kLongCells)
      enable_interrupts();
    clear_taken(items * n * words_);
    for (std::size_t i = 0; i < items; ++i) {
      poll();
      if (cost[i] >= static_cast<std::int64_t>(width)) continue;
      const std::size_t shift = static_cast<std::size_t>(cost[i]), first = shift / kLanes;
      // States with fewer than min_k items cannot reach n items any more.
      const std::size_t min_k = !all_cardinalities && n > items - i ? n - (items - i) + 1 : 1;
      for (std::size_t k = std::min(n, i + 1); k >= min_k; --k) {
        poll();
        const double* from = row(k - 1) + first * kLanes - shift;
        detail::update_row(row(k), from, value[i], first, groups_,
                         &taken_[(i * n + k - 1) * words_]);
      }
    }
  }

  // f(column, k); -inf if no k items cost at most `column`.
  double best(std::size_t k, std::size_t column) { return row(k)[column]; }

  // Appends the items behind f(column, k) to `chosen`.
  template <class Ids>
  void trace(std::size_t k, std::size_t column, Ids& chosen) const {
    using detail::kBlock, detail::kLanes;
    for (std::size_t i = items_; i-- > 0 && k > 0;) {
      const std::size_t word = column / kBlock * kLanes + column % kLanes;
      const std::size_t bit = column % kBlock / kLanes;
      if (taken_[(i * n_ + k - 1) * words_ + word] >> bit & 1) {
        chosen.push_back(static_cast<typename Ids::value_type>(i));
        column -= static_cast<std::size_t>(cost_[i]);
        --k;
      }
    }
  }

 private:
  // Sets all bits to 0, in pieces with poll() between, because the first touch of 256 MiB takes a
  // tenth of a second.
  void clear_taken(std::size_t words) {
    constexpr std::size_t kPiece = std::size_t{1} << 21;  // 16 MiB
    taken_.clear();
    taken_.reserve(words);
    while (taken_.size() < words) {
      taken_.resize(taken_.size() + std::min(kPiece, words - taken_.size()), 0);
      poll();
    }
  }

  double* row(std::size_t k) { return rows_.data() + k * stride_ + detail::kLanes; }

  std::size_t n_ = 0, items_ = 0, groups_ = 0, stride_ = 0, words_ = 0;
  const std::int64_t* cost_ = nullptr;
  std::vector<double> rows_;
  std::vector<std::uint64_t> taken_;
};

// The table over the core of a knapsack with integer costs: applicability, work and result. All
// sets have the same number of items, so the smallest cost is subtracted from every cost, and the
// differences are divided by their greatest common divisor: most tables become much narrower.
class CoreTable {
 public:
  KnapsackTable table;  // the caller may use it between calls

  // Returns the units of work of the table over the core with this integer capacity, or -1 if it is
  // not applicable: costs that are not integers, too little capacity, or too much memory.
  std::int64_t prepare(const Core& core, double capacity, double memory) {
    double min_cost = kInfinity, total = 0;
    for (const double c : core.use[0]) {
      if (c != std::floor(c)) return -1;
      min_cost = std::min(min_cost, c);
    }
    costs_.clear();
    std::int64_t divisor = 0;
    for (const double c : core.use[0]) {
      costs_.push_back(static_cast<std::int64_t>(c - min_cost));
      if (divisor != 1) divisor = std::gcd(divisor, costs_.back());
      total += c - min_cost;
    }
    if (divisor > 1)
      for (std::int64_t& c : costs_) c /= divisor;
    divisor = std::max<std::int64_t>(divisor, 1);
    const double spare = capacity - core.pick * min_cost;
    if (!(total < kMaxIntegerSum) || spare < 0) return -1;
    width_ = std::floor(std::min(spare, total) / static_cast<double>(divisor)) + 1;
    const double size = static_cast<double>(core.size());
    if (!KnapsackTable::fits(size, core.pick, width_, memory)) return -1;
    return static_cast<std::int64_t>(KnapsackTable::cells(size, core.pick, width_) /
                                     KnapsackTable::kCellsPerUnit);
  }

  // Returns the largest value that the core can add; call prepare() first.
  double run(const Core& core) {
    const std::size_t pick = static_cast<std::size_t>(core.pick);
    const std::size_t width = static_cast<std::size_t>(width_);
    table.run(costs_.data(), core.value.data(), core.size(), pick, width, false);
    return table.best(pick, width - 1);
  }

  // Returns the core positions of the set that run() found.
  const std::vector<int>& trace(const Core& core) {
    positions_.clear();
    table.trace(static_cast<std::size_t>(core.pick), static_cast<std::size_t>(width_) - 1,
                positions_);
    return positions_;
  }

 private:
  std::vector<std::int64_t> costs_;
  std::vector<int> positions_;
  double width_ = 0;
};

}  // namespace slotkern

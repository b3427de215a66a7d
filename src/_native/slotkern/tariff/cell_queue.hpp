// Groups and cells of time in the order of their lower bounds, and a cache of the lowest rates.
//
// Entries are ordered by cost_key of the bound, then by time: of equal costs the earliest start is
// the best. RateSums caches, for windows of n parts of at least an amount of work, the sum of the n
// lowest rates of nodes with capacity in a cell; times the least cost for each unit of rate it is a lower
// bound on the cost of a window. Each sum is computed once, until slots of its cell change; after
// changes that only take time away it is still a lower bound.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/tariff/tariff_index.hpp"

namespace slotkern {

// Stages of a bound: by the lowest rates and the least cost for each unit of rate, by the nodes
// with capacity, by the exact integrals of a cell.
enum class BoundLevel : std::uint32_t { group_rates, group, rates, cell, exact };

struct CellBound {
  double bound;
  std::uint32_t cell;  // of a group: its first cell
  BoundLevel level;
};

class CellQueue {
 public:
  bool empty() const { return heap_.empty(); }
  void clear() { heap_.clear(); }
  void append(CellBound entry) { heap_.push_back(entry); }  // then call build()
  void build() { std::make_heap(heap_.begin(), heap_.end(), is_after); }

  CellBound pop() {
    std::pop_heap(heap_.begin(), heap_.end(), is_after);
    const CellBound entry = heap_.back();
    heap_.pop_back();
    return entry;
  }
  void push(CellBound entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), is_after);
  }
  // True if another entry comes before one of this bound and cell.
  bool has_before(double bound, std::uint32_t cell) const {
    return !heap_.empty() && is_after({bound, cell, BoundLevel::exact}, heap_.front());
  }

 private:
  static bool is_after(const CellBound& a, const CellBound& b) {
    const std::uint64_t x = cost_key(a.bound), y = cost_key(b.bound);
    return x != y ? x > y : a.cell > b.cell;
  }
  std::vector<CellBound> heap_;
};

class RateSums {
 public:
  explicit RateSums(const TariffIndex& index) : index_(index) {}

  // Selects the sums for windows of n parts with length * performance of at least `work`.
  void open(std::size_t n, float work) {
    // The two highest bits of the mantissa: the next number below with few digits.
    const std::uint32_t bucket = std::bit_cast<std::uint32_t>(work) >> 21;
    work_ = std::bit_cast<float>(bucket << 21);
    n_ = n;
    least_ = index_.min_rate_sum(n) * (1 - kBoundMargin);
    for (OfRequest& row : sums_)
      if (row.n == n && row.bucket == bucket) {
        row_ = &row;
        return;
      }
    if (sums_.size() == kMaxRows) sums_.clear();
    sums_.reserve(kMaxRows);
    sums_.push_back({n, bucket, std::vector<CachedSum>(index_.cells().size()),
                     std::vector<CachedSum>(index_.cells().groups())});
    row_ = &sums_.back();
  }

  // The sum for a cell, or a lower bound on it, without a computation.
  double get_if_known(std::size_t cell) const {
    return bound(row_->sums[cell], index_.changes(cell));
  }
  // Lower bound on the sums of the cells of a group.
  double get_of_group(std::size_t group) const {
    return bound(row_->group_sums[group], index_.group_changes(group));
  }
  // The sum for a cell; infinite: fewer than n nodes have the capacity.
  double get(std::size_t cell) {
    CachedSum& mine = row_->sums[cell];
    if (mine.sum >= 0 && mine.changes == index_.changes(cell)) return mine.sum;
    std::size_t left = n_;
    double sum = 0;
    index_.each_by_rate(cell, [&](const RatedNode& node) {
      if (node.capacity >= work_) sum += node.rate, --left;
      return left > 0;
    });
    mine = {left > 0 ? kInfinity : sum * (1 - kBoundMargin), index_.changes(cell)};
    const std::size_t group = cell / TimeCells::kPerGroup;
    double least = kInfinity;
    for (std::size_t k = 0, at = group * TimeCells::kPerGroup;
         k < TimeCells::kPerGroup && at < row_->sums.size(); ++k, ++at)
      least = std::min(least, get_if_known(at));
    row_->group_sums[group] = {least, index_.group_changes(group)};
    return mine.sum;
  }

 private:
  static constexpr std::size_t kMaxRows = 64;
  struct CachedSum {
    double sum = -1;  // -1: not computed
    TariffIndex::Changes changes;  // when it was computed
  };
  struct OfRequest {
    std::size_t n;
    std::uint32_t bucket;
    std::vector<CachedSum> sums, group_sums;  // [cell], [group]
  };
  double bound(const CachedSum& sum, const TariffIndex::Changes& changes) const {
    return sum.sum >= 0 && sum.changes.growths == changes.growths ? sum.sum : least_;
  }

  const TariffIndex& index_;
  std::size_t n_ = 0;
  float work_ = 0;
  double least_ = 0;  // the sum of the n lowest rates of all nodes
  std::vector<OfRequest> sums_;
  OfRequest* row_ = nullptr;
};

}  // namespace slotkern

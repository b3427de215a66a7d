// Groups and cells of time in the order of their lower bounds, and a cache of the rates with room.
//
// Entries are ordered by cost_key of the bound, then by time: of equal costs the earliest start is
// the best. RateSums caches, for windows of n parts of at least a length, the sum of the n lowest
// rates of nodes with room in a cell; times the least cost for each unit of rate it is a lower
// bound on the cost of a window. Each sum is computed once, until slots change.
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
// with room, by the exact integrals of a cell.
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

  // Selects the sums for windows of n parts that are at least `length` long.
  void open(std::size_t n, double length) {
    if (version_ != index_.version()) sums_.clear(), version_ = index_.version();
    const float shortest = round_down(length);
    // The two highest bits of the mantissa: the next length below with few digits.
    const auto bucket = std::bit_cast<std::uint32_t>(shortest) >> 21;
    length_ = std::bit_cast<float>(bucket << 21);
    n_ = n;
    for (OfRequest& row : sums_)
      if (row.n == n && row.bucket == bucket) {
        row_ = &row;
        return;
      }
    if (sums_.size() == kMaxRows) sums_.clear();
    sums_.reserve(kMaxRows);
    const double least = index_.min_rate_sum(n) * (1 - kBoundMargin);
    sums_.push_back({n, bucket, std::vector<double>(index_.cells().size(), -1.0),
                     std::vector<double>(index_.cells().groups(), least)});
    row_ = &sums_.back();
  }

  // The sum for a cell if it was computed, else the sum of the n lowest rates of all nodes.
  double get_if_known(std::size_t cell) const {
    const double sum = row_->sums[cell];
    return sum >= 0 ? sum : index_.min_rate_sum(n_) * (1 - kBoundMargin);
  }
  // Lower bound on the sums of the cells of a group.
  double get_of_group(std::size_t group) const { return row_->group_sums[group]; }
  // The sum for a cell; infinite: fewer than n nodes have room.
  double get(std::size_t cell) {
    double& sum = row_->sums[cell];
    if (sum >= 0) return sum;
    const float* const room = index_.room(cell);
    std::size_t left = n_;
    sum = 0;
    for (const TariffIndex::RatedNode& node : index_.by_rate(cell)) {
      if (room[node.rank] >= length_) sum += node.rate, --left;
      if (left == 0) break;
    }
    sum = left > 0 ? kInfinity : sum * (1 - kBoundMargin);
    const std::size_t group = cell / TimeCells::kPerGroup;
    double least = kInfinity;
    for (std::size_t k = 0, at = group * TimeCells::kPerGroup;
         k < TimeCells::kPerGroup && at < row_->sums.size(); ++k, ++at)
      least = std::min(least, get_if_known(at));
    row_->group_sums[group] = least;
    return sum;
  }

 private:
  static constexpr std::size_t kMaxRows = 64;
  struct OfRequest {
    std::size_t n;
    std::uint32_t bucket;
    std::vector<double> sums;  // [cell], -1: not computed
    std::vector<double> group_sums;  // [group]
  };
  const TariffIndex& index_;
  std::uint64_t version_ = 0;
  std::size_t n_ = 0;
  float length_ = 0;
  std::vector<OfRequest> sums_;
  OfRequest* row_ = nullptr;
};

}  // namespace slotkern

// Facts that earlier searches on rows have proven, for later ones.
//
// ShareStartBounds: "no window for this request starts before t". Request A is at least as hard as
// B if it wants at least as many parts and as much of each resource for at least as long, and
// stacks no more parts on a host; a bound recorded for B then holds for A.
//
// ShareGroupBounds: "at most `count` parts can start in this group at one time in [from, until)",
// for each class of requests: equal demand and length. It is independent of n, prices and filters,
// so that a search evaluates only the groups whose bounds do not decide. Classes are in a table by
// hash; a class replaces the one in its place.
//
// Bookings only remove free amounts and keep both true. Amounts that come back in [begin, end) can
// be used by parts that start after begin - length, and lower both to that time.
//
// Cost: at most one pass over the bounds that are kept to look up, O(classes) for each part released.
// Memory: at most about kMaxBytes for all classes together.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/shares/rows.hpp"
#include "slotkern/slots/request.hpp"

namespace slotkern {

// The part of a request that decides how many parts can start in a group of hosts at a time.
struct ShareDemand {
  const Amount* amounts;  // [resource]
  Amount stack;           // most parts on one host
  double volume, setup, step;
  double longest;  // length of a part on the slowest host
};

namespace detail {

// True if searches of hosts keep to all fields of the query: hosts are not slots, so they have
// tests of their own.
inline bool is_query_of_hosts(const Query& query) {
  return query.sets_only<&Query::volume, &Query::budget, &Query::min_performance, &Query::earliest,
                         &Query::deadline, &Query::max_price, &Query::setup, &Query::step,
                         &Query::latest, &Query::max_runtime>();
}

// Returns a time up to which no part of this length starts that lasts beyond `begin`; a margin
// covers the rounding of start + length.
inline double earliest_user(double begin, double length) {
  return begin - length - (std::fabs(begin) + length) * 0x1p-50;
}

// Returns the largest bound among those whose requests are no harder, or -inf. columns[d]: amounts
// of resource d; largest[b]: the largest start of the 8 bounds in block b. A leaf function, for the
// clones.
SLOTKERN_NARROW_CLONES static inline double max_of_easier(
    const Amount* const* columns, const Amount* demand, std::size_t resources,
    const double* volume, const double* setup, const double* start, const double* largest,
    std::size_t blocks, double of_volume, double of_setup) {
  double best = -kInfinity;
  for (std::size_t block = blocks; block-- > 0;) {
    if (!(largest[block] > best)) continue;
    Amount harder[8];
    for (std::size_t k = 0; k < 8; ++k) harder[k] = 0;
    for (std::size_t d = 0; d < resources; ++d)
      for (std::size_t k = 0; k < 8; ++k) harder[k] |= columns[d][8 * block + k] > demand[d];
    for (std::size_t k = 0; k < 8; ++k) {
      const std::size_t j = 8 * block + k;
      const bool is_easier = (harder[k] == 0) & (volume[j] <= of_volume) & (setup[j] <= of_setup);
      const double t = is_easier ? start[j] : -kInfinity;
      best = best > t ? best : t;
    }
  }
  return best;
}

}  // namespace detail

class ShareStartBounds {
 public:
  // `most`: bounds that are kept; a multiple of 8.
  void reset(std::size_t resources, std::size_t most = 512) {
    *this = {};
    most_ = most;
    columns_.resize(resources + 2);
    pointers_.resize(columns_.size());
    amounts_.resize(columns_.size());
  }

  // Returns a time before which no window of n parts starts, or -inf.
  double bound(const ShareDemand& demand, std::int64_t n) {
    if (start_.empty() || demand.step != step_ || !read(demand, n)) return -kInfinity;
    apply_lowered();
    return detail::max_of_easier(pointers_.data(), amounts_.data(), columns_.size(),
                                 volume_.data(), setup_.data(), start_.data(), largest_.data(),
                                 largest_.size(), demand.volume, demand.setup);
  }

  // Records that no window of n parts starts before `start`. The oldest bound is overwritten.
  void record(const ShareDemand& demand, std::int64_t n, double start) {
    if (!read(demand, n)) return;
    if (demand.step != step_) reset(columns_.size() - 2, most_), read(demand, n);
    step_ = demand.step;
    apply_lowered();
    if (start_.size() < most_ && next_ == start_.size()) grow();
    const std::size_t i = next_++;
    if (next_ == most_) next_ = 0;
    for (std::size_t d = 0; d < columns_.size(); ++d) columns_[d][i] = amounts_[d];
    volume_[i] = demand.volume, setup_[i] = demand.setup, longest_[i] = demand.longest;
    start_[i] = start;
    update_largest(i / 8);
  }

  // Keeps the bounds true after amounts came back from `begin` on. O(1): the bounds are lowered when
  // they are read.
  void lower(double begin) { lowered_ = std::min(lowered_, begin); }

 private:
  void apply_lowered() {
    if (lowered_ == kInfinity) return;
    for (std::size_t i = 0; i < start_.size(); ++i)
      start_[i] = std::min(start_[i], lowered_ - longest_[i]);
    lowered_ = kInfinity;
  }
  // Writes the integers that are compared: the demand, n, and the stack, which is easier if larger.
  bool read(const ShareDemand& demand, std::int64_t n) {
    constexpr std::int64_t most = ShareRows::kMaxAmount;
    if (n > most) return false;
    const std::size_t resources = columns_.size() - 2;
    std::copy_n(demand.amounts, resources, amounts_.begin());
    amounts_[resources] = static_cast<Amount>(n);
    amounts_[resources + 1] = -demand.stack;
    return true;
  }
  void update_largest(std::size_t block) {
    const auto first = start_.begin() + static_cast<std::ptrdiff_t>(8 * block);
    largest_[block] = *std::max_element(first, first + 8);
  }
  void grow() {
    const std::size_t size = start_.size() + 8;
    for (auto& column : columns_) column.resize(size, 0);
    for (auto* column : {&volume_, &setup_, &longest_}) column->resize(size, kInfinity);
    start_.resize(size, -kInfinity), largest_.resize(size / 8, -kInfinity);
    for (std::size_t d = 0; d < columns_.size(); ++d) pointers_[d] = columns_[d].data();
  }

  std::vector<std::vector<Amount>> columns_;  // [resource, then n and -stack]
  std::vector<const Amount*> pointers_;       // of columns_
  std::vector<Amount> amounts_;               // scratch
  std::vector<double> volume_, setup_, longest_, start_;
  std::vector<double> largest_;  // [block of 8]: largest start
  double step_ = 0;  // of all bounds
  double lowered_ = kInfinity;  // least `begin` of lower() that is still to be applied
  std::size_t next_ = 0, most_ = 0;
};

// At most `count` parts of a class can start in a group at one time in [from, until). Times are
// rounded so that the interval becomes shorter.
struct ShareGroupBound {
  float from = std::numeric_limits<float>::infinity(), until = -from;
  std::int32_t count = 0;

  bool holds_at(double t) const { return from <= t && t < until; }
  // Sets the bound for [t, end), and before t as far as it held already.
  void set(double t, double end, std::int32_t parts) {
    if (!(count == parts && from <= t && t <= until)) from = round_up(t);
    until = round_down(end);
    count = parts;
  }
  void cut(double begin) { until = std::min(until, round_down(begin)); }
};

class ShareGroupBounds {
 public:
  void reset(std::size_t resources, std::size_t groups) {
    resources_ = resources, groups_ = groups;
    const std::size_t bytes = groups * sizeof(ShareGroupBound) + sizeof(DemandClass);
    classes_.clear();
    classes_.resize(std::clamp<std::size_t>(std::bit_floor(kMaxBytes / bytes), 4, kMaxClasses));
  }

  // Returns the bounds of all groups for this class, [group]. A new class starts with those of an
  // easier one. Valid until the next call.
  ShareGroupBound* find_or_create(const ShareDemand& demand) {
    DemandClass& found = classes_[hash_of(demand) & (classes_.size() - 1)];
    if (is_same(found, demand)) return found.bounds.data();
    const DemandClass* const easier = find_easier(demand, found);
    if (easier)
      found.bounds = easier->bounds;
    else
      found.bounds.assign(groups_, {});
    found.amounts.assign(demand.amounts, demand.amounts + resources_);
    found.stack = demand.stack;
    found.volume = demand.volume, found.setup = demand.setup, found.step = demand.step;
    found.longest = demand.longest;
    return found.bounds.data();
  }

  // Keeps the bounds true after amounts of a host of the group came back in [begin, end).
  void lower(std::size_t group, double begin, double end) {
    for (DemandClass& each : classes_) {
      if (each.bounds.empty()) continue;
      ShareGroupBound& bound = each.bounds[group];
      if (bound.from < end) bound.cut(detail::earliest_user(begin, each.longest));
    }
  }

 private:
  struct DemandClass {
    std::vector<Amount> amounts;
    Amount stack = 0;
    double volume = 0, setup = 0, step = 0, longest = 0;
    std::vector<ShareGroupBound> bounds;  // empty: no class yet
  };
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20, kMaxClasses = 1024,
                               kMaxCompared = 256;

  std::uint64_t hash_of(const ShareDemand& demand) const {
    std::uint64_t hash = static_cast<std::uint64_t>(demand.stack);
    const auto add = [&](std::uint64_t x) {
      hash = (hash ^ x) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    };
    for (std::size_t d = 0; d < resources_; ++d)
      add(static_cast<std::uint64_t>(demand.amounts[d]));
    for (const double x : {demand.volume, demand.setup, demand.step})
      add(std::bit_cast<std::uint64_t>(x));
    return hash;
  }
  bool is_same(const DemandClass& a, const ShareDemand& b) const {
    return !a.bounds.empty() && a.stack == b.stack && a.volume == b.volume &&
           a.setup == b.setup && a.step == b.step && a.longest == b.longest &&
           std::equal(a.amounts.begin(), a.amounts.end(), b.amounts);
  }
  // Returns, of some classes, the one that is no harder and nearest in its demand, or null. Other
  // than `place`, which is to be replaced.
  const DemandClass* find_easier(const ShareDemand& demand, const DemandClass& place) {
    const DemandClass* best = nullptr;
    double most = -1;
    for (std::size_t k = 0; k < std::min(kMaxCompared, classes_.size()); ++k) {
      const DemandClass& each = classes_[next_++ & (classes_.size() - 1)];
      if (each.bounds.empty() || &each == &place || each.volume > demand.volume ||
          each.setup > demand.setup || each.step != demand.step || each.stack < demand.stack)
        continue;
      double size = each.volume / demand.volume;
      bool is_easier = true;
      for (std::size_t d = 0; d < resources_ && is_easier; ++d) {
        is_easier = each.amounts[d] <= demand.amounts[d];
        if (demand.amounts[d] > 0) size += static_cast<double>(each.amounts[d]) / demand.amounts[d];
      }
      if (is_easier && size > most) most = size, best = &each;
    }
    return best;
  }

  std::size_t resources_ = 0, groups_ = 0, next_ = 0;
  std::vector<DemandClass> classes_;
};

}  // namespace slotkern

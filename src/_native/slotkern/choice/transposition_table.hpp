// A transposition table for depth-first searches over integer sums: stores the states that a search
// has visited, each with its cost; a state that is met again at no lower cost is pruned.
//
// A state is a list of integers, such as the number of items still to choose and the sums so far,
// packed without loss into a 128-bit key. Its cost is a number with its rounding error, and a
// second number. Each key maps to one entry and a newer state replaces an older one there, so
// memory is bounded and no state is pruned wrongly. O(1) a state; 56 bytes an entry, at most 2^17
// entries.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slotkern {

class TranspositionTable {
 public:
  struct StateCost {
    double first = 0, error = 0;  // one number: rounded, and its rounding error
    double second = 0;
  };

  // Starts with an empty table; `largest` holds the largest value of each field of a key. Returns
  // false if a key does not fit into 128 bits.
  bool reset(const std::vector<double>& largest, std::int64_t expected) {
    field_bits_.clear();
    int total = 0;
    for (const double size : largest) {
      if (!(size < 0x1p50)) return false;
      int width = 1;
      while (std::ldexp(1.0, width) <= size) ++width;
      field_bits_.push_back(width);
      total += width;
    }
    if (total > 128) return false;
    std::size_t entries = kMinEntries;
    while (entries < kMaxEntries && static_cast<std::int64_t>(entries) < expected) entries *= 2;
    if (entries > table_.size()) table_.assign(entries, {}), stamp_ = 0;
    if (++stamp_ == 0) table_.assign(table_.size(), {}), stamp_ = 1;
    return true;
  }

  void begin_key() { low_ = high_ = 0, next_field_ = 0; }
  void append(double value) {
    const int width = field_bits_[next_field_++];
    high_ = width < 64 ? high_ << width | low_ >> (64 - width) : low_;
    low_ = (width < 64 ? low_ << width : 0) | static_cast<std::uint64_t>(value);
  }

  // Returns true if the state of the current key was met with a first cost no higher (up to
  // `noise`) and a second cost no higher; else stores it.
  bool prune_or_store(const StateCost& cost, double noise) {
    std::uint64_t hash = (low_ ^ (high_ * 0x9E3779B97F4A7C15u)) * 0xD6E8FEB86659FD93u;
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
    StoredState& entry = table_[(hash ^ hash >> 29) & (table_.size() - 1)];
    if (entry.stamp == stamp_ && entry.low == low_ && entry.high == high_ &&
        dominates(entry.cost, cost, noise))
      return true;
    entry = {low_, high_, cost, stamp_};
    return false;
  }

 private:
  static constexpr std::size_t kMinEntries = 1 << 12, kMaxEntries = 1 << 17;

  // True if cost a is no higher than cost b, up to `noise` in the first number.
  static bool dominates(const StateCost& a, const StateCost& b, double noise) {
    if (!(a.second <= b.second)) return false;
    if (a.first == b.first) return noise > 0 || a.error <= b.error;
    return a.first < b.first + noise;
  }

  struct StoredState {
    std::uint64_t low = 0, high = 0;
    StateCost cost;
    std::uint32_t stamp = 0;
  };

  std::vector<int> field_bits_;
  std::vector<StoredState> table_;
  std::uint64_t low_ = 0, high_ = 0;
  std::size_t next_field_ = 0;
  std::uint32_t stamp_ = 0;
};

}  // namespace slotkern

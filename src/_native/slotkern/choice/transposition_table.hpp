// A transposition table of depth-first searches over sums of whole numbers: the states that a
// search has been in, each with its costs; a state that is met again at no lower costs is pruned.
//
// A state is a list of whole numbers such as the items still to choose and the sums so far, packed
// into 128 bits without loss. Its costs are a number with its own rounding error, and another
// number. Each state has one place in the table, and a newer state replaces an older one there, so
// that memory is bounded and no state is pruned wrongly. O(1) a state; 56 bytes a place, at most
// 2^17 places.
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
  struct Cost {
    double first = 0, error = 0;  // together one number
    double second = 0;
  };

  // Starts over, with the number of bits of each field that a state has. False if they are too many.
  bool start(const std::vector<double>& largest, std::int64_t expected) {
    bits_.clear();
    int total = 0;
    for (const double size : largest) {
      if (!(size < 0x1p50)) return false;
      int width = 1;
      while (std::ldexp(1.0, width) <= size) ++width;
      bits_.push_back(width);
      total += width;
    }
    if (total > 128) return false;
    std::size_t places = kFewest;
    while (places < kMost && static_cast<std::int64_t>(places) < expected) places *= 2;
    if (places > table_.size()) table_.assign(places, {}), stamp_ = 0;
    if (++stamp_ == 0) table_.assign(table_.size(), {}), stamp_ = 1;
    return true;
  }

  void begin_state() { low_ = high_ = 0, field_ = 0; }
  void add(double value) {
    const int width = bits_[field_++];
    high_ = width < 64 ? high_ << width | low_ >> (64 - width) : low_;
    low_ = (width < 64 ? low_ << width : 0) | static_cast<std::uint64_t>(value);
  }

  // Whether this state has been met at a first cost no higher but for `noise`, and a second one no
  // higher; else it has been met now.
  bool met(const Cost& cost, double noise) {
    std::uint64_t hash = (low_ ^ (high_ * 0x9E3779B97F4A7C15u)) * 0xD6E8FEB86659FD93u;
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
    Place& place = table_[(hash ^ hash >> 29) & (table_.size() - 1)];
    if (place.stamp == stamp_ && place.low == low_ && place.high == high_ &&
        is_no_higher(place.cost, cost, noise))
      return true;
    place = {low_, high_, cost, stamp_};
    return false;
  }

 private:
  static constexpr std::size_t kFewest = 1 << 12, kMost = 1 << 17;

  static bool is_no_higher(const Cost& a, const Cost& b, double noise) {
    if (!(a.second <= b.second)) return false;
    if (a.first == b.first) return noise > 0 || a.error <= b.error;
    return a.first < b.first + noise;
  }

  struct Place {
    std::uint64_t low = 0, high = 0;
    Cost cost;
    std::uint32_t stamp = 0;
  };

  std::vector<int> bits_;
  std::vector<Place> table_;
  std::uint64_t low_ = 0, high_ = 0;
  std::size_t field_ = 0;
  std::uint32_t stamp_ = 0;
};

}  // namespace slotkern

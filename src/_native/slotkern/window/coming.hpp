// Remnants that have not come yet, taken in the order of slots: start, then node.
//
// A calendar: what comes on a later day waits there unsorted, a heap holds today's. With about
// one a day there is little to sort and no branch to guess wrong; were all on one day, it would be
// the plain heap. O(1) expected for each, O(log m) at worst. No allocation but where more come than
// ever before.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/memory.hpp"
#include "slotkern/base/numbers.hpp"

namespace slotkern::detail {

struct Coming {
  double start;
  std::int32_t node;
  std::uint32_t piece;
  bool operator<(const Coming& other) const {
    return start != other.start ? start < other.start : node < other.node;
  }
};

class Calendar {
 public:
  // For starts from `first` on, few behind `last`.
  void reset(double first, double last) {
    first_ = first;
    days_a_time_ = last > first && last - first < kInfinity ? kDays / (last - first) : 0;
    today_ = 0;
    busy_.fill(0), busy_weeks_ = 0;
    later_.clear(), heap_.clear();
  }

  void add(const Coming& coming) {
    const std::size_t day = day_of(coming.start);
    if (day <= today_) {
      heap_.push_back(coming);
      std::push_heap(heap_.begin(), heap_.end(), After{});
      return;
    }
    std::uint64_t& week = busy_[day / 64];
    const std::uint64_t bit = std::uint64_t{1} << day % 64;
    later_.push_back({coming, week & bit ? last_of_[day] : kNone});
    last_of_[day] = static_cast<std::uint32_t>(later_.size() - 1);
    week |= bit;
    busy_weeks_ |= std::uint64_t{1} << day / 64;
  }

  // The first of all; null where there is none, or none by the day of `until`.
  const Coming* first(double until) {
    if (heap_.empty() && !turn_page(day_of(until))) return nullptr;
    return heap_.data();
  }

  void drop_first() {
    std::pop_heap(heap_.begin(), heap_.end(), After{});
    heap_.pop_back();
  }

 private:
  struct Later {
    Coming coming;
    std::uint32_t before;  // of the same day
  };

  struct After {  // the heap gives the largest
    bool operator()(const Coming& a, const Coming& b) const { return b < a; }
  };

  std::size_t day_of(double start) const {
    const double day = (start - first_) * days_a_time_;
    return day > 0 ? static_cast<std::size_t>(std::min(day, static_cast<double>(kDays - 1))) : 0;
  }

  // On to the next busy day, if there is one by `last`.
  bool turn_page(std::size_t last) {
    std::size_t week = today_ / 64;
    std::uint64_t days = busy_[week] & (~std::uint64_t{1} << today_ % 64);
    if (!days) {
      const std::uint64_t weeks = busy_weeks_ & (~std::uint64_t{1} << week);
      if (!weeks) return false;
      week = static_cast<std::size_t>(std::countr_zero(weeks));
      days = busy_[week];
    }
    const std::size_t day = week * 64 + static_cast<std::size_t>(std::countr_zero(days));
    if (day > last) return false;
    today_ = day;
    for (std::uint32_t i = last_of_[day]; i != kNone; i = later_[i].before) {
      heap_.push_back(later_[i].coming);
      std::push_heap(heap_.begin(), heap_.end(), After{});
    }
    return true;
  }

  static constexpr std::size_t kDays = 4096;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  double first_ = 0, days_a_time_ = 0;
  std::size_t today_ = 0;
  std::array<std::uint64_t, kDays / 64> busy_{};  // a bit a day
  std::uint64_t busy_weeks_ = 0;  // of 64 days
  std::array<std::uint32_t, kDays> last_of_{};  // of busy days
  std::vector<Later> later_;
  std::vector<Coming> heap_;
};

}  // namespace slotkern::detail

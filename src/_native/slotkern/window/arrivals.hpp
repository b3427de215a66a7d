// Slots and what is left of them as they come, and a ring of days for those that have not come yet.
//
// What is left of a part comes no later than the longest part runs, so that a ring of days that is
// twice as long has room for all of it, whatever the times are. A day is put in order when it
// begins: places are counted, which guesses no branch while there are few. O(k) a day for k of the
// nodes that have something left in it, O(k log k) where they are many. A node has at most one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern::detail {

// In the order of slots: start, then node.
struct Arrival {
  double start, end;
  std::int32_t node;
  std::uint32_t rank, row;  // of the node among all; of its slot
  std::uint32_t before;     // of the same day

  bool operator<(const Arrival& other) const {
    return (start < other.start) | ((start <= other.start) & (node < other.node));
  }
};

class ArrivalRing {
 public:
  // For starts from `first` on: at most one of each node, added no more than `longest` ahead of
  // what came last, but for rounding: their size is about `size`.
  void reset(double first, double longest, double size, std::size_t nodes) {
    days_ = std::bit_ceil(std::clamp<std::size_t>(nodes / kNodesADay, 16, 1024));
    first_ = first;
    day_ = std::max({2 * longest / static_cast<double>(days_), size * 0x1p-40,
                     std::numeric_limits<double>::min()});
    days_a_time_ = 1 / day_;
    last_of_.assign(days_ + 1, kNone);
    if (page_.size() < kFew + 1) page_.resize(kFew + 1);
    size_ = waiting_ = 0;
    today_ = 0;
    close(0);
  }

  // Room to add so many.
  void expect(std::size_t more) {
    if (later_.size() < size_ + more + 1) [[unlikely]]
      later_.resize(2 * (size_ + more + 1));
  }

  // Adds one if `really`; where not, it is written nowhere, for that is guessed wrong too often.
  SLOTKERN_INLINE void add(double start, double end, std::int32_t node, std::uint32_t rank,
                           std::uint32_t row, bool really) {
    const auto day = static_cast<std::int64_t>((start - first_) * days_a_time_);
    if (really & (day <= today_)) [[unlikely]]
      return insert({start, end, node, rank, row, kNone});
    std::uint32_t& last =
        last_of_[really ? static_cast<std::size_t>(day) & (days_ - 1) : days_];
    later_[size_] = {start, end, node, rank, row, last};
    last = static_cast<std::uint32_t>(size_);
    size_ += really, waiting_ += really;
  }

  // The next of today; behind the last one stands a time before all of other days.
  const Arrival& next() const { return *next_; }
  void drop(bool really) { next_ += really; }
  bool day_is_over() const { return next_ == end_; }
  bool empty() const { return waiting_ == 0 && day_is_over(); }

  // On to the next day when this one is over; where nothing waits, to that of `t`.
  void turn(double t) {
    if (waiting_ == 0) {
      const double day = std::min((t - first_) * days_a_time_, 0x1p60);
      today_ = std::max(today_ + 1, static_cast<std::int64_t>(day));
      return close(0);
    }
    ++today_;
    std::uint32_t& last = last_of_[static_cast<std::size_t>(today_) & (days_ - 1)];
    std::array<std::uint32_t, kFew> which, place;
    std::array<double, kFew> starts;
    std::size_t count = 0;
    std::uint32_t i = last;
    for (; i != kNone && count < kFew; i = later_[i].before) {
      // Those of one window stand last first: of equal starts the later one comes before.
      const double start = later_[i].start;
      std::uint32_t at = 0;
      for (std::size_t k = 0; k < count; ++k) {
        const std::uint32_t behind = start <= starts[k];
        place[k] += behind, at += 1 - behind;
      }
      which[count] = i, place[count] = at, starts[count++] = start;
    }
    bool sorted = i == kNone;
    if (sorted) {
      for (std::size_t k = 0; k < count; ++k) page_[place[k]] = later_[which[k]];
      for (std::size_t k = 1; k < count; ++k) sorted &= page_[k - 1] < page_[k];
    }
    if (!sorted) count = sort_list(last);
    last = kNone;
    waiting_ -= count;
    close(count);
  }

 private:
  SLOTKERN_APART std::size_t sort_list(std::uint32_t last) {
    page_.clear();
    for (std::uint32_t i = last; i != kNone; i = later_[i].before) page_.push_back(later_[i]);
    std::sort(page_.begin(), page_.end());
    const std::size_t count = page_.size();
    page_.resize(std::max(count, kFew) + 1);
    return count;
  }

  // One of today: where parts are much shorter than the longest.
  SLOTKERN_APART void insert(const Arrival& arrival) {
    if (next_ == page_.data()) {  // else one has left its place
      const auto end = static_cast<std::size_t>(end_ - next_);
      if (page_.size() < end + 2) page_.resize(2 * (end + 2));
      next_ = page_.data() + 1, end_ = next_ + end;
      std::move_backward(page_.data(), end_, end_ + 1);
    }
    Arrival* const at = std::upper_bound(next_, end_, arrival);
    std::move(next_, at, next_ - 1);
    at[-1] = arrival;
    --next_;
  }

  // Today has so many, and ends half a day early, which is before tomorrow however it is rounded.
  void close(std::size_t count) {
    const double over = first_ + (static_cast<double>(today_) + 0.5) * day_;
    page_[count] = {over, 0, std::numeric_limits<std::int32_t>::max(), 0, 0, kNone};
    next_ = page_.data(), end_ = next_ + count;
  }

  static constexpr std::size_t kNodesADay = 4, kFew = 32;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::size_t days_ = 0, size_ = 0, waiting_ = 0;
  double first_ = 0, day_ = 0, days_a_time_ = 0;
  std::int64_t today_ = 0;
  std::vector<std::uint32_t> last_of_;  // by day, and of none
  std::vector<Arrival> later_, page_;
  Arrival *next_ = nullptr, *end_ = nullptr;
};

}  // namespace slotkern::detail

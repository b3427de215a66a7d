// The number of free processors over time, assuming that running jobs end as estimated and reserved
// jobs start as reserved: a step function in two flat arrays.
//
//   time_ [ ... | t_first = now | t1 | t2 | ... ]     free_[i] processors are free from time_[i]
//   free_ [ ... | f_first       | f1 | f2 | ... ]     to time_[i + 1]; the last piece has no end
//
// A profile has at most a few thousand pieces; on every trace tried, flat arrays were faster than
// blocks and trees. A change rewrites the pieces it covers and shifts those behind them. All times
// are computed by the same expressions, start and start + estimate, so that pieces meet exactly.
// A hole of a width is a maximal run of pieces with at least that many processors free; lower
// bounds on the starts of holes are cached for each width (`HoleBounds`).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "slotkern/replay/hole_bounds.hpp"
#include "slotkern/replay/waiting.hpp"

namespace slotkern::replay {

// The number of free processors over time.
class AvailabilityProfile {
 public:
  explicit AvailabilityProfile(std::int32_t processors) : time_{-kNever}, free_{processors} {}

  // Drops the pieces that end before `now`.
  void advance(double now) {
    while (first_ + 1 < time_.size() && time_[first_ + 1] <= now) ++first_;
    if (first_ > 1024 && 2 * first_ > time_.size()) {
      time_.erase(time_.begin(), time_.begin() + static_cast<std::ptrdiff_t>(first_));
      free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  void reserve(double start, double end, std::int32_t width) {
    if (start < end) apply_edges({{start, -width}, {end, width}});
  }

  void release(double start, double end, std::int32_t width) {
    if (start < end) apply_edges({{start, width}, {end, -width}});
  }

  // Moves a reservation of this length from `old` to the earlier `start`.
  void move(double old, double start, double length, std::int32_t width) {
    const double end = start + length;
    apply_edges({{start, -width},
            {std::min(old, end), width},
            {std::max(old, end), width},
            {old + length, -width}});
  }

  // Returns the earliest time, at least `now`, from which `width` are free until `time`.
  double free_since(double now, double time, std::int32_t width) const {
    std::size_t i = piece_at(time);
    i -= i > first_ && time_[i] == time;
    if (free_[i] < width) return time;
    while (i > first_ && free_[i - 1] >= width) --i;
    return std::max(now, time_[i]);
  }

  // Returns the earliest start >= now with `width` free in [start, start + length), or `limit` if
  // there is none before `limit`.
  double find_start(double now, double length, std::int32_t width, double limit) {
    HoleBounds& holes = hole_bounds_of(width);
    const std::size_t bound = holes.find_step(length);
    const double from = std::max(now, holes.start(bound));
    if (from >= limit) return limit;
    const double found = search(from, length, width, limit, holes.covered_length(bound));
    if (found > now) holes.raise(bound, found, short_holes_);
    return found;
  }

  // Returns the maximum number of free processors in [now, until).
  std::int32_t max_free(double now, double until) const {
    if (!(now < until)) return 0;
    std::size_t i = piece_at(now);
    std::int32_t free = free_[i];
    while (++i < time_.size() && time_[i] < until) free = std::max(free, free_[i]);
    return free;
  }

 private:
  // A change of the number of free processors.
  struct Edge {
    double time;
    std::int32_t change;
  };

  // The hole bounds of one width.
  struct Level {
    std::int32_t width;
    HoleBounds holes;
  };

  // Returns the index of the piece that contains `time`.
  std::size_t piece_at(double time) const {
    const double* at = time_.data() + first_;
    for (std::size_t n = time_.size() - first_, half; n > 1; n -= half) {
      half = n / 2;
      at += half * (at[half] <= time);  // branchless
    }
    return static_cast<std::size_t>(at - time_.data());
  }

  // Scans linearly like find_start(); records holes it skips that exceed `longest`, for raise().
  double search(double from, double length, std::int32_t width, double limit, double longest) {
    short_holes_.clear();
    const std::size_t size = time_.size();
    for (std::size_t i = piece_at(from);; ++i) {
      i = detail::first_at_least(free_.data(), i, size, width);  // in the last piece all are free
      const double start = std::max(time_[i], from);
      if (start >= limit) return limit;
      const double until = start + length;
      // Most holes are short or nearly free, so a scalar loop is faster than vector code here.
      while (++i < size && time_[i] < until && free_[i] >= width) continue;
      if (i == size || time_[i] >= until) return start;
      const double hole = std::min(HoleBounds::length(start, time_[i]), length);
      if (hole > longest) short_holes_.push_back({longest = hole, start});
    }
  }

  // Adds the changes at the edges. Edges ascend, changes sum to zero, at most one span is released.
  void apply_edges(std::initializer_list<Edge> edges) {
    const Edge *edge = edges.begin(), *const last = edges.end();
    const std::size_t from = piece_at(edge->time), size = time_.size();
    ensure_scratch(size - from + 2 * edges.size());
    double* const time = new_time_.data();
    std::int32_t* const free = new_free_.data();
    std::size_t count = 0, freed = 0, freed_end = 0;
    std::int32_t more = 0, before = from > first_ ? free_[from - 1] : -1;
    const auto put = [&](double begin, std::int32_t number) {
      time[count] = begin;
      free[count] = number;
      count += number != before;
      before = number;
    };
    std::size_t i = from;
    if (time_[i] < edge->time) put(time_[i], free_[i]);
    for (;;) {
      const double here = edge->time;
      do more += edge->change; while (++edge != last && edge->time == here);
      put(here, free_[i] + more);
      if (edge == last) break;
      if (more > 0) freed = from + count - 1;
      for (; i + 1 < size && time_[i + 1] < edge->time; ++i) put(time_[i + 1], free_[i + 1] + more);
      i += i + 1 < size && time_[i + 1] == edge->time;
      if (more > 0) freed_end = from + count;
    }
    replace(time_, from, i + 1, time, count);
    replace(free_, from, i + 1, free, count);
    if (freed_end > 0) update_hole_bounds(freed, freed_end);
  }

  void ensure_scratch(std::size_t pieces) {
    if (pieces <= new_time_.size()) return;
    new_time_.resize(2 * pieces);
    new_free_.resize(2 * pieces);
  }

  template <class T>
  static void replace(std::vector<T>& all, std::size_t first, std::size_t last, const T* with,
                      std::size_t count) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(last);
    const std::size_t kept = std::min(count, last - first);
    if (kept < count)
      all.insert(end, with + kept, with + count);
    else
      all.erase(at + static_cast<std::ptrdiff_t>(kept), end);
    std::copy_n(with, kept, all.begin() + static_cast<std::ptrdiff_t>(first));
  }

  // Lowers the hole bounds after capacity was released in the pieces [i, j). Widths are visited in
  // descending order: the narrower the width, the longer the hole around the pieces.
  void update_hole_bounds(std::size_t i, std::size_t j) {
    const std::size_t size = time_.size();
    const std::int32_t* const free = free_.data();
    const std::int32_t most = *std::max_element(free + i, free + j);
    std::size_t begin = i, end = j;
    const auto wider = std::upper_bound(
        levels_.begin(), levels_.end(), most,
        [](std::int32_t width, const Level& level) { return width < level.width; });
    for (auto l = wider; l != levels_.begin();) {
      Level& level = *--l;
      while (begin > first_ && free[begin - 1] >= level.width) --begin;
      if (level.holes.last_start() <= time_[begin]) continue;
      while (end < size && free[end] >= level.width) ++end;
      for (std::size_t k = i; k < j; ++k) {
        if (free[k] < level.width) continue;
        const double start = time_[k == i ? begin : k];
        while (k < j && free[k] >= level.width) ++k;
        const std::size_t stop = k == j ? end : k;
        level.holes.lower(start, stop < size ? HoleBounds::length(start, time_[stop]) : kNever);
      }
    }
  }

  // Returns the hole bounds of the width, created at the first search.
  HoleBounds& hole_bounds_of(std::int32_t width) {
    const auto at = static_cast<std::size_t>(width);
    if (at >= level_of_.size()) level_of_.resize(at + 1, kNone);
    if (level_of_[at] == kNone) {
      const auto wider = std::find_if(levels_.begin(), levels_.end(),
                                      [&](const Level& level) { return level.width > width; });
      levels_.insert(wider, Level{width, {}});
      for (std::uint32_t k = 0; k < levels_.size(); ++k)
        level_of_[static_cast<std::size_t>(levels_[k].width)] = k;
    }
    return levels_[level_of_[at]].holes;
  }

  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  std::vector<double> time_;  // start of each piece
  std::vector<std::int32_t> free_;
  std::size_t first_ = 0;                // the piece that contains now
  std::vector<Level> levels_;            // the widths that were searched for, ascending
  std::vector<std::uint32_t> level_of_;  // by width: index into levels_, or kNone
  std::vector<HoleBounds::StairStep> short_holes_;
  std::vector<double> new_time_;
  std::vector<std::int32_t> new_free_;
};

}  // namespace slotkern::replay

// How many processors are free from now on, when running jobs end as estimated and promised
// ones start as promised: a step function in two flat arrays.
//
// Flat arrays, since a profile has some thousand pieces at most: blocks and trees were slower
// on every trace. A change rewrites the pieces it touches and moves what is behind them. All
// times that enter come from the same expressions, start and start + estimate, so that pieces
// meet exactly. A hole of a width is a run of pieces with so many free; what searches have
// learned of them is kept for each width (`HoleBounds`).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "slotkern/replay/hole_bounds.hpp"
#include "slotkern/replay/waiting.hpp"

namespace slotkern::replay {

class AvailabilityProfile {
 public:
  explicit AvailabilityProfile(std::int32_t processors) : time_{-kNever}, free_{processors} {}

  // What was before `now` is forgotten.
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

  // What was taken from `old` on, for `length`, is taken from the earlier `start` on.
  void move(double old, double start, double length, std::int32_t width) {
    const double end = start + length;
    apply_edges({{start, -width},
            {std::min(old, end), width},
            {std::max(old, end), width},
            {old + length, -width}});
  }

  // Since when, but not before now, `width` are free until `time`.
  double free_since(double now, double time, std::int32_t width) const {
    std::size_t i = piece_at(time);
    i -= i > first_ && time_[i] == time;
    if (free_[i] < width) return time;
    while (i > first_ && free_[i - 1] >= width) --i;
    return std::max(now, time_[i]);
  }

  // The earliest start >= now with `width` free in [start, start + length), if it is before
  // `limit`; else `limit`.
  double find_start(double now, double length, std::int32_t width, double limit) {
    HoleBounds& holes = hole_bounds_of(width);
    const std::size_t bound = holes.find_step(length);
    const double from = std::max(now, holes.start(bound));
    if (from >= limit) return limit;
    const double found = search(from, length, width, limit, holes.covered_length(bound));
    if (found > now) holes.raise(bound, found, short_holes_);
    return found;
  }

  // The most that are free at any time in [now, until).
  std::int32_t max_free(double now, double until) const {
    if (!(now < until)) return 0;
    std::size_t i = piece_at(now);
    std::int32_t free = free_[i];
    while (++i < time_.size() && time_[i] < until) free = std::max(free, free_[i]);
    return free;
  }

 private:
  struct Edge {
    double time;
    std::int32_t change;
  };

  struct Level {
    std::int32_t width;
    HoleBounds holes;
  };

  // The piece that holds `time`.
  std::size_t piece_at(double time) const {
    const double* at = time_.data() + first_;
    for (std::size_t n = time_.size() - first_, half; n > 1; n -= half) {
      half = n / 2;
      at += half * (at[half] <= time);  // no branch to guess
    }
    return static_cast<std::size_t>(at - time_.data());
  }

  // Like `find`, by a walk; holes longer than `longest` that it passes by go to `short_holes_`.
  double search(double from, double length, std::int32_t width, double limit, double longest) {
    short_holes_.clear();
    const std::size_t size = time_.size();
    for (std::size_t i = piece_at(from);; ++i) {
      i = detail::first_at_least(free_.data(), i, size, width);  // all are free in the last piece
      const double start = std::max(time_[i], from);
      if (start >= limit) return limit;
      const double until = start + length;
      // Most holes are short or nearly free: only a long walk pays for vector code.
      while (++i < size && time_[i] < until && free_[i] >= width) continue;
      if (i == size || time_[i] >= until) return start;
      const double hole = std::min(HoleBounds::length(start, time_[i]), length);
      if (hole > longest) short_holes_.push_back({longest = hole, start});
    }
  }

  // Edges ascend, their changes add up to nothing, and no more than one span comes free.
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

  // The pieces [i, j) have come free, more than they were: what holes are they part of?
  // The narrower the width, the longer the hole.
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

  std::vector<double> time_;  // where pieces begin
  std::vector<std::int32_t> free_;
  std::size_t first_ = 0;  // the piece that holds now
  std::vector<Level> levels_;            // by width, those that were searched for
  std::vector<std::uint32_t> level_of_;  // by width
  std::vector<HoleBounds::StairStep> short_holes_;
  std::vector<double> new_time_;
  std::vector<std::int32_t> new_free_;
};

}  // namespace slotkern::replay

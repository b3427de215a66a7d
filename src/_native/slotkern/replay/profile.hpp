// How many processors are free from now on, when running jobs end as estimated and promised
// ones start as promised: a step function in two flat arrays.
//
// Flat arrays, since a profile has some thousand pieces at most and is read far more often
// than changed: blocks and trees were slower on every trace. A look walks pieces by vector
// code, a change moves what is behind it. All times that enter come from the same
// expressions, start and start + estimate, so that pieces meet exactly.
#pragma once

#include <algorithm>
#include <vector>

#include "slotkern/replay/waiting.hpp"

namespace slotkern::replay {

class Profile {
 public:
  // More processors than at any time before: from `time` on `free` are.
  struct Peak {
    double time;
    std::int32_t free;
  };

  explicit Profile(std::int32_t processors)
      : processors_(processors), time_{-kNever}, free_{processors} {}

  // What was before `now` is forgotten.
  void advance(double now) {
    while (first_ + 1 < time_.size() && time_[first_ + 1] <= now) ++first_;
    if (first_ > 1024 && 2 * first_ > time_.size()) {
      time_.erase(time_.begin(), time_.begin() + static_cast<std::ptrdiff_t>(first_));
      free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  // `width` more (or fewer) processors in [start, end).
  void add(double start, double end, std::int32_t width) {
    if (!(start < end)) return;
    const std::size_t i = cut(start), j = cut(end);
    for (std::size_t k = i; k < j; ++k) free_[k] += width;
    join(j);
    join(i);
  }

  // The earliest start >= from with `width` free in [start, min(start + length, own)), if it
  // is before `limit`; else `limit`. From `own` on the job has a place already.
  double find(double from, double length, std::int32_t width, double own, double limit) const {
    const std::size_t size = time_.size();
    for (std::size_t i = piece(from);;) {
      i = detail::first_at_least(free_.data(), i, size, width);  // all are free in the last piece
      const double start = std::max(time_[i], from);
      if (start >= limit) return limit;
      const double until = std::min(start + length, own);
      // Most holes are short or nearly free: only a long walk pays for vector code.
      std::size_t k = i + 1;
      while (k < size && time_[k] < until && free_[k] >= width) ++k;
      if (k == size || time_[k] >= until) return start;
      i = k + 1;
    }
  }

  // What is free just before `time`, which must be after now.
  std::int32_t free_before(double time) const {
    return free_[static_cast<std::size_t>(
        std::lower_bound(begin() + 1, time_.end(), time) - time_.begin() - 1)];
  }

  // The peaks in [from, until), ascending.
  void peaks(double from, double until, std::vector<Peak>& out) const {
    out.clear();
    std::int32_t most = 0;
    for (std::size_t i = piece(from); most < processors_; ++i) {
      i = detail::first_at_least(free_.data(), i, time_.size(), most + 1);
      if (i == time_.size() || time_[i] >= until) return;
      most = free_[i];
      out.push_back({std::max(from, time_[i]), most});
    }
  }

 private:
  std::vector<double>::const_iterator begin() const {
    return time_.begin() + static_cast<std::ptrdiff_t>(first_);
  }

  std::size_t piece(double time) const {
    return static_cast<std::size_t>(std::upper_bound(begin() + 1, time_.end(), time) -
                                    time_.begin() - 1);
  }

  std::size_t cut(double time) {
    const std::size_t i = piece(time);
    if (time_[i] == time) return i;
    const auto at = static_cast<std::ptrdiff_t>(i + 1);
    time_.insert(time_.begin() + at, time);
    free_.insert(free_.begin() + at, std::int32_t{free_[i]});
    return i + 1;
  }

  void join(std::size_t i) {
    if (i == first_ || i >= time_.size() || free_[i] != free_[i - 1]) return;
    time_.erase(time_.begin() + static_cast<std::ptrdiff_t>(i));
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  std::int32_t processors_;
  std::vector<double> time_;  // where pieces begin
  std::vector<std::int32_t> free_;
  std::size_t first_ = 0;  // the piece that holds now
};

}  // namespace slotkern::replay

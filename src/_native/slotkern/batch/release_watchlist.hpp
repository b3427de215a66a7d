// Determines which waiting jobs may gain from time that was released, and in which start range.
//
// A window that starts earlier than a job's present one and did not exist at the job's last search
// has a part in time released since then. So each release tests all waiting jobs in one vectorized
// pass over columns: could a part of the job run in the freed time? The test may accept too many
// jobs but never rejects a job that gains. An accepted job gets a watermark: the index of the first
// freed interval that it has not yet accounted for. When the job's turn comes, feasible_starts()
// tests the intervals from the watermark on against the free time that is left by then.
//
// A job's own reservation counts as free: freed time that ends at the start of one of its parts is
// continued by that part. A part of a square window may also become longer and run through the old
// part into time freed behind it, so any time freed on a node of its reservation counts. The
// reservations are indexed by node for this test.
//
// Cost of a release: O(jobs) additions and comparisons, eight at a time. Memory: 48 bytes for each
// job, 16 for each reserved part, 64 for each freed interval.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "slotkern/batch/batch.hpp"

namespace slotkern {

namespace detail {

// Returns a bound on the rounding error of a length that is computed from this time.
inline double rounding_slack(double time) { return std::fabs(time) * 0x1p-51; }

// A free span [start, end) of a node that overlaps or touches newly released time [new_start,
// new_end). Parts that use the new time start no later than `latest_start`.
struct FreedTime {
  double start, end, new_start, new_end, latest_start, performance;
  // Work that a part may occupy its node for in addition to its own (overhead, or waiting for the
  // slowest part): infinite or 0.
  double extra_work;
  std::size_t place;  // index of the node

  // Returns true if a part of the job could start in the new time within [now, latest]. Rounding
  // margins and the conservative comparison allow false positives, never false negatives.
  bool could_host(double volume, double earliest, double deadline, double latest,
                  double now) const {
    const double from = earliest > now ? earliest : now;
    const double first = start > from ? start : from;
    const double by = latest > now ? latest : now;
    const double last = by < latest_start ? by : latest_start;
    const double until = end < deadline ? end : deadline;
    return (first <= last) &
           ((until - first + rounding_slack(until)) * performance * (1 + kMargin) >= volume) &
           ((new_start - last - rounding_slack(new_start)) * performance * (1 - kMargin) <=
            volume + extra_work);
  }
};

// Lowers `since` to `index` for each job that the interval could host. A leaf loop of its own, so
// that it can be cloned for several CPUs.
SLOTKERN_NARROW_CLONES static inline void lower_watermarks(
    const double* __restrict volume, const double* __restrict earliest,
    const double* __restrict deadline, const double* __restrict latest, double* __restrict since,
    std::size_t jobs, double index, double now, FreedTime freed) {
  for (std::size_t j = 0; j < jobs; ++j) {
    const double mark =
        freed.could_host(volume[j], earliest[j], deadline[j], latest[j], now) ? index : kInfinity;
    since[j] = mark < since[j] ? mark : since[j];
  }
}

// Returns the minimum of `size` numbers; infinite if there are none.
SLOTKERN_NARROW_CLONES static inline double minimum(const double* x, std::size_t size) {
  double lane[8];
  for (double& each : lane) each = kInfinity;
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8)
    for (std::size_t k = 0; k < 8; ++k) lane[k] = x[i + k] < lane[k] ? x[i + k] : lane[k];
  for (; i < size; ++i) lane[0] = std::min(lane[0], x[i]);
  for (const double each : lane) lane[0] = std::min(lane[0], each);
  return lane[0];
}

}  // namespace detail

// The waiting jobs with their watermarks, the freed intervals, and the reservations.
class ReleaseWatchlist {
 public:
  // The range of starts of a better window; empty if first > last.
  struct StartRange {
    double first = kInfinity, last = -kInfinity;
    bool any() const { return first <= last; }
  };

  ReleaseWatchlist(const BatchPool& free, const std::vector<BatchJob>& jobs, ShapeKind shape)
      : free_(free), jobs_(jobs), is_square_(shape == ShapeKind::square),
        has_charged_parts_(is_square_) {
    for (auto* column : {&volume_, &first_unseen_, &reserved_start_})
      column->assign(jobs.size(), kInfinity);
    latest_.assign(jobs.size(), -kInfinity);
    for (const BatchJob& job : jobs) {
      earliest_.push_back(job.query.earliest);
      deadline_.push_back(job.query.deadline);
      has_charged_parts_ = has_charged_parts_ || job.query.has_overhead();
    }
    reservations_.resize(free.slots.nodes.size());
  }

  // Adds the job with all freed time unseen. `latest`: no later start is better. All jobs must be
  // added before the first add().
  void enqueue(std::size_t job, double latest) {
    volume_[job] = jobs_[job].query.volume;
    latest_[job] = latest;
    first_unseen_[job] = kAllUnseen;
  }
  void dequeue(std::size_t job) { volume_[job] = first_unseen_[job] = kInfinity; }

  // Resets the job's watermark: all freed time so far is accounted for.
  void mark_checked(std::size_t job) { first_unseen_[job] = kInfinity; }
  bool needs_search(std::size_t job) const { return first_unseen_[job] < kInfinity; }

  // Records and removes the job's reservation.
  void add_reservation(std::size_t job, double start, const std::vector<Part>& parts) {
    reserved_start_[job] = latest_[job] = start;
    const auto j = static_cast<std::uint32_t>(job);
    for (const Part& part : parts) reservations_[place_of(part)].push_back({start, j});
  }
  void remove_reservation(std::size_t job, const std::vector<Part>& parts) {
    reserved_start_[job] = kInfinity;
    for (const Part& part : parts) {
      auto& here = reservations_[place_of(part)];
      const auto it = std::find_if(here.begin(), here.end(),
                                   [job](const auto& each) { return each.second == job; });
      *it = here.back();
      here.pop_back();
    }
  }

  // Returns the earliest start of a reservation; is_reserved_at() identifies its jobs.
  double next_reserved_start() const {
    return detail::minimum(reserved_start_.data(), reserved_start_.size());
  }
  bool is_reserved_at(std::size_t job, double start) const { return reserved_start_[job] == start; }

  // Records that [start, end) was released on the node at index `place`.
  void add(double start, double end, std::size_t place) {
    const double performance = free_.slots.nodes[place].performance;
    while (first_waiting_ < jobs_.size() && volume_[first_waiting_] == kInfinity) ++first_waiting_;
    const double latest_start = end + std::fabs(end) * 0x1p-49;  // snap_finish() may move the end
    for_each_free_span(start, end, place, [&](const Span& span) {
      const auto index = static_cast<double>(freed_.size());
      freed_.push_back({span.start, span.end, start, end, latest_start, performance,
                        has_charged_parts_ ? kInfinity : 0, place});
      const std::size_t w = first_waiting_;
      detail::lower_watermarks(volume_.data() + w, earliest_.data() + w, deadline_.data() + w,
                               latest_.data() + w, first_unseen_.data() + w, jobs_.size() - w,
                               index, free_.pool.now(), freed_.back());
      for (const auto& [begins, job] : reservations_[place])
        if ((is_square_ || begins == span.end) && volume_[job] < kInfinity)
          first_unseen_[job] = std::min(first_unseen_[job], index);
    });
  }

  // Returns the starts, up to `latest`, of windows that the time released since the job's last
  // check makes possible, and resets its watermark. `parts`: the parts of its reservation.
  StartRange feasible_starts(std::size_t job, double latest, const std::vector<Part>& parts) {
    const Query& query = jobs_[job].query;
    const double from = std::max(query.earliest, free_.pool.now());
    const double since = std::exchange(first_unseen_[job], kInfinity);
    if (since == kAllUnseen) return {from, latest};
    StartRange out;
    if (since == kInfinity) return out;
    for (auto i = static_cast<std::size_t>(since); i < freed_.size(); ++i) {
      const detail::FreedTime& freed = freed_[i];
      if (is_square_ && has_part_on(freed.place, parts)) return {from, latest};
      if (freed.end != reserved_start_[job] &&
          !freed.could_host(query.volume, from, query.deadline, latest, from))
        continue;
      const double by = std::min(latest, freed.latest_start);
      const double length = query.length(freed.performance);
      const double earliest_reaching =
          is_square_ ? -kInfinity
                   : freed.new_start - length * (1 + kMargin) -
                         detail::rounding_slack(freed.new_start);
      for_each_free_span(freed.new_start, freed.new_end, freed.place, [&](const Span& span) {
        const double start = std::max({span.start, from, earliest_reaching});
        if (start > by) return;
        const double until = std::min(span.end, query.deadline);
        const double end = until + detail::rounding_slack(until);
        const bool continues_into_reservation =
            span.end == reserved_start_[job] && has_part_on(freed.place, parts);
        if (!continues_into_reservation && !(end - start >= length * (1 - kMargin))) return;
        const double last =
            continues_into_reservation ? by : std::min(by, end - length * (1 - kMargin));
        out.first = std::min(out.first, start);
        out.last = std::max(out.last, last);
      });
    }
    return out;
  }

 private:
  static constexpr double kAllUnseen = -1;  // watermark of a job that was never checked

  bool has_part_on(std::size_t place, const std::vector<Part>& parts) const {
    const std::int32_t node = free_.slots.nodes[place].id;
    return std::any_of(parts.begin(), parts.end(),
                       [node](const Part& part) { return part.node == node; });
  }

  std::size_t place_of(const Part& part) const {
    return static_cast<std::size_t>(free_.pool.place_of(part.node));
  }

  // Visits the node's free spans that intersect the closed interval [start, end].
  template <class Visit>
  void for_each_free_span(double start, double end, std::size_t place, Visit visit) const {
    const std::vector<Span>& spans = free_.pool.free_at(place);
    auto span = std::upper_bound(spans.begin(), spans.end(), start,
                                 [](double t, const Span& x) { return t < x.end; });
    for (; span != spans.end() && span->start <= end; ++span) visit(*span);
  }

  const BatchPool& free_;
  const std::vector<BatchJob>& jobs_;
  std::vector<double> volume_, earliest_, deadline_;  // infinite volume: the job does not wait
  std::vector<double> latest_;          // no later start is better; the current time, if past
  std::vector<double> first_unseen_;    // watermark: index into freed_; infinite: nothing unseen
  std::vector<double> reserved_start_;  // start of the reservation; infinite: none
  std::vector<std::vector<std::pair<double, std::uint32_t>>> reservations_;  // by node: start, job
  std::vector<detail::FreedTime> freed_;
  const bool is_square_;           // all parts run as long as the slowest one
  bool has_charged_parts_;         // some parts run longer than their own work takes
  std::size_t first_waiting_ = 0;  // no job before this one waits
};

}  // namespace slotkern

// The waiting jobs in queue order: by ascending key, and by job among equal keys.
//
// Keys are either fixed (0: order of submission) or change with time. Changing keys are recomputed
// and sorted before each pass over the queue: O(q log q). With fixed keys a job is inserted by
// binary search: O(log q), plus shifting the entries behind it.
// Widths and estimates are separate columns, so that vectorized loops find the next job that fits.
// A removed job leaves a tombstone, an entry wider than any machine, so no scan stops there. The
// columns are compacted when half of the entries are tombstones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "slotkern/base/numbers.hpp"
#include "slotkern/replay/jobs.hpp"

namespace slotkern::replay {

inline constexpr std::int32_t kTombstone = std::numeric_limits<std::int32_t>::max();

namespace detail {

// Returns the first index >= i whose value is at most (at least) `bound`, or n. Leaf loops of their
// own, so that they can be cloned for several CPUs.
SLOTKERN_CLONES static inline std::size_t first_at_most(const std::int32_t* a,
                                                        std::size_t i, std::size_t n,
                                                        std::int32_t bound) {
  for (; i + 16 <= n; i += 16) {
    int any = 0;
    for (std::size_t k = 0; k < 16; ++k) any |= a[i + k] <= bound;
    if (any) break;
  }
  for (; i < n; ++i)
    if (a[i] <= bound) return i;
  return n;
}

SLOTKERN_CLONES static inline std::size_t first_at_least(const std::int32_t* a,
                                                         std::size_t i, std::size_t n,
                                                         std::int32_t bound) {
  for (; i + 16 <= n; i += 16) {
    int any = 0;
    for (std::size_t k = 0; k < 16; ++k) any |= a[i + k] >= bound;
    if (any) break;
  }
  for (; i < n; ++i)
    if (a[i] >= bound) return i;
  return n;
}

// Returns the first index >= i with width <= free and (now + estimate <= until or width <= extra).
SLOTKERN_CLONES static inline std::size_t first_backfill(
    const std::int32_t* width, const double* estimate, std::size_t i, std::size_t n,
    std::int32_t free, double now, double until, std::int32_t extra) {
  for (; i + 16 <= n; i += 16) {
    int any = 0;
    for (std::size_t k = 0; k < 16; ++k) any |= width[i + k] <= free;
    if (!any) continue;
    for (std::size_t k = i; k < i + 16; ++k)
      if (width[k] <= free && (now + estimate[k] <= until || width[k] <= extra)) return k;
  }
  for (; i < n; ++i)
    if (width[i] <= free && (now + estimate[i] <= until || width[i] <= extra)) return i;
  return n;
}

}  // namespace detail

// Computes the keys, at time `now`, of the `count` jobs in `jobs`.
using KeyFunction = void (*)(void* data, double now, const JobId* jobs, std::size_t count,
                             double* keys);

// The order of a queue: fixed or changing keys; ascending.
struct QueueOrder {
  const double* fixed = nullptr;    // key of each job; null: all keys are 0
  KeyFunction changing = nullptr;   // computes changing keys; null: keys are fixed
  void* data = nullptr;
};

// The queue of waiting jobs as columns.
class WaitingJobs {
 public:
  WaitingJobs(const JobColumns& jobs, const QueueOrder& order) : jobs_(jobs), order_(order) {}

  std::size_t num_entries() const { return job_.size(); }  // including tombstones
  std::size_t size() const { return waiting_; }
  bool empty() const { return waiting_ == 0; }
  bool has_changing_keys() const { return order_.changing != nullptr; }
  bool is_tombstone(std::size_t i) const { return width_[i] == kTombstone; }
  JobId job(std::size_t i) const { return job_[i]; }
  const std::int32_t* widths() const { return width_.data(); }
  const double* estimates() const { return estimate_.data(); }

  // Adds a job and returns the index of its entry.
  std::size_t add(JobId job) {
    const double key = order_.fixed ? order_.fixed[job] : 0;
    std::size_t i = num_entries();
    if (!has_changing_keys() && i > 0 && before(key, job, i - 1)) i = insertion_point(key, job);
    const auto at = static_cast<std::ptrdiff_t>(i);
    key_.insert(key_.begin() + at, key);
    job_.insert(job_.begin() + at, job);
    width_.insert(width_.begin() + at, jobs_.width[job]);
    estimate_.insert(estimate_.begin() + at, jobs_.estimate[job]);
    ++waiting_;
    return i;
  }

  void remove_at(std::size_t i) {
    width_[i] = kTombstone;
    --waiting_;
  }

  // Removes a waiting job. A job that was removed and added again may have a tombstone before it.
  void remove(JobId job) {
    std::size_t i =
        has_changing_keys() ? 0 : insertion_point(order_.fixed ? order_.fixed[job] : 0, job);
    while (job_[i] != job || is_tombstone(i)) ++i;
    remove_at(i);
  }

  // Recomputes changing keys for the time `now` and sorts the entries.
  void sort(double now) {
    drop_tombstones();
    order_.changing(order_.data, now, job_.data(), num_entries(), key_.data());
    rank_.resize(num_entries());
    std::iota(rank_.begin(), rank_.end(), 0u);
    std::sort(rank_.begin(), rank_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return key_[a] < key_[b] || (key_[a] == key_[b] && job_[a] < job_[b]);
    });
    old_.assign(job_.begin(), job_.end());
    for (std::size_t i = 0; i < rank_.size(); ++i) {
      job_[i] = old_[rank_[i]];
      width_[i] = jobs_.width[job_[i]];
      estimate_[i] = jobs_.estimate[job_[i]];
    }
  }

  // Removes the tombstones if half of the entries are; returns true if indices have changed.
  bool compact_if_sparse() {
    if (num_entries() <= 64 || 2 * waiting_ > num_entries()) return false;
    drop_tombstones();
    return true;
  }

 private:
  bool before(double key, JobId job, std::size_t i) const {
    return key < key_[i] || (key == key_[i] && job < job_[i]);
  }

  // Returns the first entry that does not precede (key, job), by binary search.
  std::size_t insertion_point(double key, JobId job) const {
    std::size_t low = 0, high = num_entries();
    while (low < high) {
      const std::size_t i = (low + high) / 2;
      if (key_[i] < key || (key_[i] == key && job_[i] < job))
        low = i + 1;
      else
        high = i;
    }
    return low;
  }

  void drop_tombstones() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < num_entries(); ++i) {
      if (is_tombstone(i)) continue;
      key_[kept] = key_[i], job_[kept] = job_[i];
      width_[kept] = width_[i], estimate_[kept] = estimate_[i];
      ++kept;
    }
    key_.resize(kept), job_.resize(kept), width_.resize(kept), estimate_.resize(kept);
  }

  JobColumns jobs_;
  QueueOrder order_;
  std::vector<double> key_, estimate_;
  std::vector<std::int32_t> width_;
  std::vector<JobId> job_, old_;
  std::vector<std::uint32_t> rank_;
  std::size_t waiting_ = 0;
};

}  // namespace slotkern::replay

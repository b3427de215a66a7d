// Cache of lower bounds: "no window for this request starts before t".
//
// Dominance: request A is at least as hard as B if A wants at least as many nodes, as much volume
// and performance, starts no earlier, and pays at most as much per unit of work. A window for A,
// without its most expensive parts, fits B; so a bound recorded for B holds for A. Other
// constraints of A only make it harder: A may use bounds, but none is recorded for it
// (Query::is_cacheable). Bookings only remove free time and keep bounds true; freed time lowers the
// bounds of the requests that it can serve.
//
// Requests with setup or step (Query::length) have caches of their own, one pair of setup and step
// at a time. Among these, more volume is neither shorter nor cheaper, but not proportionally, so
// payment is compared per part instead of per unit of work.
//
// Rounding: the pay per unit of work is a rounded quotient, so it is compared with a safety margin,
// or exactly by budget if the numbers of nodes are equal. Volumes and budgets that might under- or
// overflow are not cached. A lookup is one pass over at most kMaxEntries entries.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "slotkern/base/memory.hpp"
#include "slotkern/slots/prepared.hpp"

namespace slotkern {

namespace detail {

struct CacheKey {
  double n, volume, performance, earliest, budget, rate;
  explicit CacheKey(const Query& q)
      : n(static_cast<double>(q.n)),
        volume(q.volume),
        performance(q.min_performance),
        earliest(q.earliest),
        budget(q.budget),
        rate(q.budget / (n * (q.has_overhead() ? 1 : volume))) {}
};

// Returns the largest bound of the entries that are no harder than q, or -inf. A leaf function, for
// the clones per instruction set.
SLOTKERN_NARROW_CLONES static inline double max_bound_of_dominating(
    const double* n, const double* volume, const double* performance, const double* earliest,
    const double* rate, const double* budget, const double* start, std::size_t size,
    const CacheKey& q) {
  double lane[8];
  for (double& x : lane) x = -kInfinity;
  for (std::size_t i = 0; i < size; i += 8)
    for (std::size_t k = 0; k < 8; ++k) {
      const std::size_t j = i + k;
      const bool easier = (n[j] <= q.n) & (volume[j] <= q.volume) &
                          (performance[j] <= q.performance) & (earliest[j] <= q.earliest) &
                          ((q.rate <= rate[j]) | ((n[j] == q.n) & (q.budget <= budget[j])));
      const double t = easier ? start[j] : -kInfinity;
      lane[k] = lane[k] > t ? lane[k] : t;
    }
  for (double x : lane) lane[0] = std::max(lane[0], x);
  return lane[0];
}

// Lowers to the start of the slot the bounds of the entries that it might serve.
SLOTKERN_NARROW_CLONES static inline void lower_served_bounds(
    const double* n, const double* volume, const double* performance, const double* rate,
    double* start, std::size_t size, double capacity, const Slot& slot) {
  const double from = slot.start, fast = slot.performance, price = slot.rate;
  for (std::size_t i = 0; i < size; ++i) {
    const bool applies = (start[i] > from) & (volume[i] <= capacity) & (performance[i] <= fast) &
                        (price <= n[i] * rate[i] * (1 + 4 * kMargin));
    start[i] = applies ? from : start[i];
  }
}

}  // namespace detail

class StartBoundCache {
 public:
  // Returns a time before which no window for `query` starts, or -inf.
  double bound(const Query& query) const {
    if (n_.empty() || query.setup != setup_ || query.step != step_ || !is_in_safe_range(query))
      return -kInfinity;
    const detail::CacheKey request(query);
    return detail::max_bound_of_dominating(n_.data(), volume_.data(), performance_.data(),
                                earliest_.data(), rate_.data(), budget_.data(), start_.data(),
                                n_.size(), request);
  }

  // Records that no window for `query`, with its earliest start replaced by `earliest`, starts
  // before `start`. `fastest`: highest performance of all nodes. The oldest entry is overwritten.
  void record(const Query& query, double fastest, double earliest, double start) {
    if (!query.is_cacheable() || !is_in_safe_range(query) || query.volume / fastest < 1 / kLargest)
      return;
    if (query.setup != setup_ || query.step != step_) {
      clear();
      setup_ = query.setup, step_ = query.step;
    }
    const detail::CacheKey request(query);
    if (next_ == n_.size()) {
      for (auto* column : columns()) reserve_extra(8, *column);  // all columns or none grow
      for (auto* column : columns()) column->resize(column->size() + 8, kInfinity);
      std::fill(start_.end() - 8, start_.end(), -kInfinity);
    }
    const std::size_t i = next_++ % kMaxEntries;
    n_[i] = request.n;
    volume_[i] = request.volume;
    performance_[i] = request.performance;
    earliest_[i] = earliest;
    rate_[i] = request.rate * (1 - kMargin);
    budget_[i] = request.budget;
    start_[i] = start;
    freed_ = {};  // it has not lowered this bound
    if (next_ % kMaxEntries == 0) next_ = 0;
  }

  // Keeps the bounds true after `slot` has become free or has grown. O(1) if the last slot that
  // lowered the bounds serves all requests that this one can serve, as is usual among the parts of
  // one job.
  void lower_for_freed(const Slot& slot) {
    if (n_.empty()) return;
    const double capacity = PreparedSlots::capacity(slot) * slot.performance * (1 + kMargin);
    Slot cheap = slot;
    // Prices do not bound costs here.
    if (setup_ > 0 || step_ > 0 || slot.rate < 1 / kLargest) cheap.rate = 0;
    const FreedSlot freed{slot.start, slot.performance, cheap.rate, capacity};
    if (freed_.dominates(freed)) return;
    freed_ = freed;
    detail::lower_served_bounds(n_.data(), volume_.data(), performance_.data(), rate_.data(),
                                start_.data(), n_.size(), capacity, cheap);
  }

  void clear() {
    for (auto* column : columns()) column->clear();
    next_ = 0;
    freed_ = {};
  }

 private:
  // The fields of a freed slot on which lower_served_bounds() depends.
  struct FreedSlot {
    double start = kInfinity, performance = 0, rate = kInfinity, capacity = 0;
    // True if this slot has lowered every bound that `other` would lower, at least as far.
    bool dominates(const FreedSlot& other) const {
      return start <= other.start && performance >= other.performance && rate <= other.rate &&
             capacity >= other.capacity;
    }
  };

  static constexpr std::size_t kMaxEntries = 512;
  static constexpr double kLargest = 1e220;

  static bool is_in_safe_range(const Query& query) {
    const auto usual = [](double x) { return 1e-100 <= x && x <= 1e100; };
    return usual(query.volume) &&
           (query.budget == 0 || query.budget == kInfinity || usual(query.budget));
  }

  std::array<std::vector<double>*, 7> columns() {
    return {&n_, &volume_, &performance_, &earliest_, &rate_, &budget_, &start_};
  }

  std::vector<double> n_, volume_, performance_, earliest_, rate_, budget_, start_;
  double setup_ = 0, step_ = 0;  // of all entries
  std::size_t next_ = 0;
  FreedSlot freed_;  // the last that lowered the bounds since one was recorded
};

}  // namespace slotkern

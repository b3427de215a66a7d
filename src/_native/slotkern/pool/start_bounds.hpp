// Remembered lower bounds: "no window for such a request starts before t".
//
// A request is at least as hard as another if it wants no fewer nodes, no less volume, no
// less performance, no earlier start, and pays no more per unit of work. Whatever fits it
// fits the other too (drop its dearest parts), so a bound of an easier request holds for it.
// What else a request wants only makes it harder: it is told what is known, but nothing is
// learnt from it (Query::hints). Charged requests (Query::length) have a table of their own, of
// one setup and step, other terms begin it anew: among these more volume is no shorter and no
// cheaper, but not in proportion, so that the pay compares by part and not by work. Booking only
// takes time away, so bounds stay true; what adds time lowers those it can serve (see lower()).
//
// The pay per unit of work compares rounded quotients: a margin on the safe side, or exact
// by budget where n is the same. Of volumes and budgets so small or large that quotients and
// costs may under- or overflow nothing is known. A look-up is one pass over at most kSize entries.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "slotkern/base/room.hpp"
#include "slotkern/slots/prepared.hpp"

// So few rows are searched as fast as hints are asked: of them only failures are remembered. Tests,
// whose pools are small, remember all.
#if !defined(SLOTKERN_FEW_ROWS)
#define SLOTKERN_FEW_ROWS 128
#endif

namespace slotkern {

inline constexpr std::size_t kFewRows = SLOTKERN_FEW_ROWS;

namespace detail {

struct CacheKey {
  double n, volume, performance, earliest, budget, rate;
  explicit CacheKey(const Query& q)
      : n(static_cast<double>(q.n)), volume(q.volume), performance(q.min_performance),
        earliest(q.earliest), budget(q.budget), rate(q.budget / (n * (q.charged() ? 1 : volume))) {}
};

// A leaf loop of its own, for the per-CPU clones.
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

// Lowers the starts that a slot can serve.
SLOTKERN_NARROW_CLONES static inline void lower_served_bounds(
    const double* n, const double* volume, const double* performance, const double* rate,
    double* start, std::size_t size, double capacity, const Slot& slot) {
  const double from = slot.start, fast = slot.performance, price = slot.rate;
  for (std::size_t i = 0; i < size; ++i) {
    const bool serves = (start[i] > from) & (volume[i] <= capacity) & (performance[i] <= fast) &
                        (price <= n[i] * rate[i] * (1 + 4 * kMargin));
    start[i] = serves ? from : start[i];
  }
}

}  // namespace detail

class StartBoundCache {
 public:
  // No window for `query` starts before this; -inf when nothing is known.
  double bound(const Query& query) const {
    if (n_.empty() || query.setup != setup_ || query.step != step_ || !is_in_safe_range(query))
      return -kInfinity;
    const detail::CacheKey request(query);
    return detail::max_bound_of_dominating(n_.data(), volume_.data(), performance_.data(),
                                earliest_.data(), rate_.data(), budget_.data(), start_.data(),
                                n_.size(), request);
  }

  // No window for `query` starts before `start`; `fastest` is the highest performance there is.
  void record(const Query& query, double fastest, double earliest, double start) {
    if (!query.hints() || !is_in_safe_range(query) || query.volume / fastest < 1 / kLargest) return;
    if (query.setup != setup_ || query.step != step_) {
      clear();
      setup_ = query.setup, step_ = query.step;
    }
    const detail::CacheKey request(query);
    if (next_ == n_.size()) {
      for (auto* column : columns()) room_for(8, *column);  // they stay equally long
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
    if (next_ % kMaxEntries == 0) next_ = 0;
  }

  // The slot has come to be free, or has grown.
  void lower_for_freed(const Slot& slot) {
    if (n_.empty()) return;
    const double capacity = PreparedSlots::room(slot) * slot.performance * (1 + kMargin);
    Slot cheap = slot;
    if (setup_ > 0 || step_ > 0 || slot.rate < 1 / kLargest) cheap.rate = 0;  // whatever it costs
    detail::lower_served_bounds(n_.data(), volume_.data(), performance_.data(), rate_.data(),
                         start_.data(), n_.size(), capacity, cheap);
  }

  void clear() {
    for (auto* column : columns()) column->clear();
    next_ = 0;
  }

 private:
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
  double setup_ = 0, step_ = 0;  // of the requests that it has learnt from
  std::size_t next_ = 0;
};

}  // namespace slotkern

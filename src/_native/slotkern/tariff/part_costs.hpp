// The parts that a request may use, their lower bounds by time cell, and the candidates of a cell.
//
// PartCosts::open() sets the length of a part for each class (tariff, performance): its own length
// (ragged), or one span for all (square). Bounds walk the nodes of a cell or group by ascending
// rate, add the n lowest bounds on their cost, and stop when no later node can be among these.
// gather() lists each slot whose own least cost plus the n - 1 lowest bounds meets a ceiling: every
// part of a window that starts in the cell and costs at most the ceiling is a candidate. total_at()
// adds the n lowest costs of candidates at one start.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/tariff/tariff_index.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

// A slot that may serve, and the starts at which it does: from `begin` while the part ends by
// `limit`. `last` is the latest start, as a turn.
struct TariffCandidate {
  double slot_start, begin, limit, last, price, least_cost;
  std::size_t row;
  std::int32_t node;
  std::uint32_t class_index;
};

class PartCosts {
 public:
  // The largest relative error of the plain sum of n costs, for n up to 2^22.
  static constexpr double kSumError = 0x1p-30;

  explicit PartCosts(const TariffIndex& index) : index_(index), states_(index.classes().size()) {}

  // Admits parts no longer than max_length. If span > 0, all parts run for `span`.
  void open(const Query& query, double max_length, double span) {
    query_ = &query;
    n_ = static_cast<std::size_t>(query.n);
    active_.clear();
    min_work_ = std::numeric_limits<float>::infinity();
    for (std::size_t k = 0; k < states_.size(); ++k) {
      const TariffIndex::Class& of = index_.classes()[k];
      State& state = states_[k];
      state.own_length = query.length(of.performance);
      state.length = span > 0 ? span : state.own_length;
      state.table = nullptr;
      state.tight_cell = state.cost_stamp = kNever;
      if (of.performance < query.min_performance || !(state.own_length <= max_length) ||
          !std::isfinite(state.length))
        continue;
      state.table = &index_.table(of, state.length);
      state.more = state.length - state.table->shortest;
      state.per_rate = of.performance / of.mean_factor;
      state.work = round_down(state.length * of.performance * (1 - kBoundMargin));
      min_work_ = std::min(min_work_, state.work);
      active_.push_back(static_cast<std::uint32_t>(k));
    }
  }

  std::size_t n() const { return n_; }
  double own_length(std::uint32_t k) const { return states_[k].own_length; }
  double length(std::uint32_t k) const { return states_[k].length; }
  bool any() const { return !active_.empty(); }
  // Lower bound on length * performance of an admitted part.
  float min_work() const { return min_work_; }

  // Least cost of a part for each unit of rate, over all classes, by cell or group:
  // for one, or for `count` of them from `first` on.
  double min_cost_per_rate(PriceRow PriceTable::* row, std::size_t at) const {
    double least = kInfinity;
    min_costs_per_rate(row, at, 1, &least);
    return least;
  }
  void min_costs_per_rate(PriceRow PriceTable::* row, std::size_t first, std::size_t count,
                          double* out) const {
    std::fill(out, out + count, kInfinity);
    for (const std::uint32_t k : active_) {
      const State& state = states_[k];
      const double* const base = (state.table->*row).least.data() + first;
      const double* const after = (state.table->*row).after.data() + first;
      const double more = state.more, scale = state.per_rate * (1 - kBoundMargin);
      for (std::size_t at = 0; at < count; ++at) {
        const double x = (base[at] + more * after[at]) * scale;
        out[at] = x < out[at] ? x : out[at];
      }
    }
  }

  // Lower bounds on the cost of a window that starts in the group or cell; infinite: no window
  // does. Tight: by the least integral of each class over the cell instead of its table.
  double bound_group(std::size_t group, double per_rate) {
    return walk([&](auto visit) { index_.each_by_rate_in_group(group, visit); }, per_rate,
                [this, group](std::uint32_t k) {
                  return states_[k].table->groups.min_integral(group, states_[k].more);
                });
  }
  double bound_cell(std::size_t cell, double per_rate) {
    return walk([&](auto visit) { index_.each_by_rate(cell, visit); }, per_rate,
                [this, cell](std::uint32_t k) {
                  return states_[k].table->cells.min_integral(cell, states_[k].more);
                });
  }
  double bound_cell_tightly(std::size_t cell, double per_rate) {
    return walk([&](auto visit) { index_.each_by_rate(cell, visit); }, per_rate,
                [this, cell](std::uint32_t k) { return tight_integral(cell, k); });
  }

  // Lists the candidates of the cell after bound_cell_tightly(); returns false if they are
  // too few for a window. Ascending least_cost.
  bool gather(std::size_t cell, double per_rate, double ceiling, double upto) {
    candidates_.clear(), classes_.clear();
    ++gathered_;
    const double most = (ceiling - others_ * (1 - kBoundMargin)) + ceiling * kSumError;
    const double from = index_.cells().begin(cell), to = index_.cells().end(cell);
    const double deadline = query_->deadline;
    index_.each_by_rate(cell, [&](const RatedNode& node) {
      const auto [rate, rank, capacity] = node;
      if (rate * per_rate > most) return false;
      if (capacity < min_work_) return true;
      const auto k = static_cast<std::uint32_t>(index_.class_at(rank));
      State& state = states_[k];
      if (!state.table || capacity < state.work) return true;
      const double integral = tight_integral(cell, k) * (1 - kBoundMargin);
      if (rate * (integral * state.per_rate) * (1 - kBoundMargin) > most) return true;
      const auto slots = index_.slots_at(rank);
      auto at = std::partition_point(slots.begin(), slots.end(),
                                     [from](const auto& s) { return s.end <= from; });
      if (cell == 0) at = slots.begin();
      for (; at != slots.end() && at->start < to; ++at) {
        const double least_cost = at->price * integral;
        if (least_cost > most) continue;
        const double begin = std::max(at->start, query_->earliest);
        const double limit = std::min(at->end, deadline);
        const double first = std::max(begin, from);
        if (!(begin < to) || !(first + state.length <= limit) || first > upto ||
            first > query_->latest)
          continue;
        const Slot slot{at->start, at->end, index_.classes()[k].performance, at->price, rate,
                        index_.node_at(rank), -1};
        if (!query_->suits(slot) || !query_->passes(at->row)) continue;
        if (state.gathered != gathered_) {
          state.gathered = gathered_;
          classes_.push_back(k);
        }
        const double last = latest_start(limit, state.length);
        candidates_.push_back({at->start, begin, limit, last, at->price, least_cost, at->row,
                               index_.node_at(rank), k});
      }
      return true;
    });
    std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
      return a.least_cost < b.least_cost || (a.least_cost == b.least_cost && a.node < b.node);
    });
    ++stamp_;
    return candidates_.size() >= n_;
  }

  const std::vector<TariffCandidate>& candidates() const { return candidates_; }

  bool is_live(const TariffCandidate& c, double t) const {
    return c.begin <= t && t + states_[c.class_index].length <= c.limit && t <= query_->latest;
  }

  double cost_at(const TariffCandidate& c, double t) {
    return c.price * integral_at(c.class_index, t);
  }

  // Plain sum of the n lowest costs of parts live at t, within kSumError; infinite if there are
  // fewer, or if the sum is proven to exceed the ceiling: relative to the least integral of its
  // class in the cell, no part is cheaper at t than a part of the least expensive class.
  double total_at(double t, double ceiling) {
    begin_start(t);
    live_.clear();
    double least = 0;
    std::size_t next = 0;
    for (; next < candidates_.size() && live_.size() < n_; ++next)
      if (is_live(candidates_[next], t)) {
        live_.push_back(static_cast<std::uint32_t>(next));
        least += candidates_[next].least_cost;
      }
    least *= 1 - kSumError;
    if (live_.size() < n_ || least > ceiling) return kInfinity;
    if (classes_.size() <= n_ + kFewClasses) {
      double excess = kInfinity;
      for (const std::uint32_t k : classes_)
        excess = std::min(excess, integral_at(k, t) / states_[k].tight);  // NaN: a free cell
      if (least * excess > ceiling) return kInfinity;
    }
    lowest_.clear();
    for (const std::uint32_t k : live_) {
      const double cost = cost_at(candidates_[k], t);
      if (cost < kInfinity) lowest_.push_back(cost);
    }
    std::sort(lowest_.begin(), lowest_.end());
    double nth = lowest_.size() == n_ ? lowest_.back() : kInfinity;
    for (; next < candidates_.size(); ++next) {
      const TariffCandidate& c = candidates_[next];
      if (lowest_.size() == n_ && c.least_cost >= nth) break;
      if (!is_live(c, t)) continue;
      const double cost = cost_at(c, t);
      if (cost < nth) nth = insert(cost);
    }
    if (lowest_.size() < n_) return kInfinity;
    double sum = 0;
    for (const double cost : lowest_) sum += cost;
    return sum;
  }

  // True if the n cheapest parts at t cost at most max_cost.
  bool fits(double t, double max_cost) {
    const double sum = total_at(t, max_cost);
    if (sum == kInfinity) return false;
    if (sum > max_cost * (1 + kSumError)) return false;
    if (sum < max_cost * (1 - kSumError)) return true;
    return exact_sum(n_, [this](std::size_t k) { return lowest_[k]; }) <= max_cost;
  }

  // Discards the integrals of another start.
  void begin_start(double t) {
    if (t == start_ && stamp_ != 0) return;
    start_ = t;
    ++stamp_;
  }

  // Adds the turns of all candidates in [from, to), unsorted: the times at which the best start of
  // a window can be.
  void add_turns(double from, double to, std::vector<double>& turns) {
    const auto add = [&](double t) {
      if (from <= t && t < to) turns.push_back(t);
    };
    for (const TariffCandidate& c : candidates_) {
      add(c.begin);
      add(c.last);
    }
    for (const std::uint32_t k : classes_) {
      const Tariff& tariff = index_.tariff_of(index_.classes()[k]);
      const auto falls = tariff.falls(), rises = tariff.rises();
      for (auto at = std::lower_bound(falls.begin(), falls.end(), from);
           at != falls.end() && *at < to; ++at)
        add(*at);
      const double length = states_[k].length;
      const double error = clock_error(from, length);
      for (auto at = std::lower_bound(rises.begin(), rises.end(), from + length - error);
           at != rises.end() && *at - length < to; ++at)
        add(*at - length);
    }
  }

  // True if t is a turn of this candidate, which is live at t.
  bool is_turn(const TariffCandidate& c, double t) const {
    if (t == c.begin || t == c.last) return true;
    const Tariff& tariff = index_.tariff_of(index_.classes()[c.class_index]);
    return tariff.falls_at(t) || tariff.rises_after(t, states_[c.class_index].length);
  }

 private:
  static constexpr std::size_t kFewClasses = 8;
  static constexpr std::size_t kNever = ~std::size_t{0};

  struct State {
    double own_length = 0, length = 0;
    double more = 0;  // length beyond the shortest one of the table
    double per_rate = 0;  // performance / mean factor
    float work = 0;  // lower bound on length * performance
    const PriceTable* table = nullptr;  // null: no part of this class is admitted
    std::size_t tight_cell = kNever, cost_stamp = kNever, gathered = kNever;
    double tight = 0, integral = 0;  // least integral over tight_cell; integral at cost_stamp
  };

  // Adds the n lowest bounds of nodes with capacity, with the least integral of each class. Calls
  // each_by_rate(visit) for the nodes.
  template <class EachByRate, class MinIntegral>
  double walk(EachByRate each_by_rate, double per_rate, MinIntegral min_integral) {
    lowest_.clear();
    double nth = kInfinity;
    each_by_rate([&](const RatedNode& node) {
      const auto [rate, rank, capacity] = node;
      if (capacity < min_work_) return true;
      if (rate * per_rate >= nth) return false;
      const auto k = static_cast<std::uint32_t>(index_.class_at(rank));
      const State& state = states_[k];
      if (state.table && capacity >= state.work)
        nth = insert(rate * (min_integral(k) * state.per_rate) * (1 - kBoundMargin));
      return true;
    });
    if (lowest_.size() < n_) return kInfinity;
    others_ = 0;
    for (std::size_t k = 0; k + 1 < n_; ++k) others_ += lowest_[k];
    return (others_ + lowest_.back()) * (1 - kBoundMargin);
  }

  double tight_integral(std::size_t cell, std::uint32_t k) {
    State& state = states_[k];
    if (state.tight_cell != cell) {
      state.tight_cell = cell;
      state.tight = std::max(state.table->cells.min_integral(cell, state.more) * (1 - kBoundMargin),
                             min_integral_in_cell(index_.tariff_of(index_.classes()[k]),
                                                  index_.cells(), cell, state.length));
    }
    return state.tight;
  }
  double integral_at(std::uint32_t k, double t) {
    State& state = states_[k];
    if (state.cost_stamp != stamp_) {
      state.cost_stamp = stamp_;
      state.integral = index_.tariff_of(index_.classes()[k]).integral(t, state.length);
    }
    return state.integral;
  }

  // The latest start of a part that ends by `limit`, a few doubles lower if t + length is rounded
  // up.
  double latest_start(double limit, double length) const {
    double last = kInfinity;
    if (limit < std::numeric_limits<double>::max()) {
      last = limit - length;
      for (int k = 0; k < 4 && !(last + length <= limit); ++k)
        last = std::nextafter(last, -kInfinity);
    }
    return std::min(last, query_->latest);
  }

  // Inserts a cost among the n lowest and returns the n-th lowest.
  double insert(double cost) {
    if (lowest_.size() == n_) {
      if (!(cost < lowest_.back())) return lowest_.back();
      lowest_.pop_back();
    }
    if (!(cost < kInfinity)) return kInfinity;
    lowest_.insert(std::upper_bound(lowest_.begin(), lowest_.end(), cost), cost);
    return lowest_.size() == n_ ? lowest_.back() : kInfinity;
  }

  const TariffIndex& index_;
  const Query* query_ = nullptr;
  std::size_t n_ = 0;
  double start_ = 0;
  std::size_t stamp_ = 0, gathered_ = 0;
  float min_work_ = 0;
  double others_ = 0;  // sum of the n - 1 lowest bounds of the last walk()
  std::vector<State> states_;  // [class]
  std::vector<std::uint32_t> active_, classes_;  // admitted classes; classes of the candidates
  std::vector<std::uint32_t> live_;  // the first n candidates that are live at a start
  std::vector<double> lowest_;  // ascending
  std::vector<TariffCandidate> candidates_;
};

}  // namespace slotkern

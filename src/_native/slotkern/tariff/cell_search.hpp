// The cheapest window, and the earliest window within a budget, of one kind of parts: all parts up
// to a length (ragged), or parts that all run for one span (square).
//
// A window is a start t and the n cheapest parts live at t by (cost, node). The turns of a part are
// its first start, its latest start, each fall of its tariff and each rise minus its length.
// Between turns the cost of every set of parts is concave.
// 1. Cheapest: the least cost_key, then the earliest start, at a turn of one of its own parts. The
// earliest best start is such a turn: elsewhere the cost is concave around it. Cells are examined
// best first by lower bounds, which rise in two steps; a ceiling above the bound, doubled while
// nothing costs less, limits the candidates of a cell.
// 2. Earliest: a start may be a turn of a part of the window, or any tick. Cells are examined in
// time order. If both ends of an interval between neighbouring turns are over the budget, so is
// every start within, by concavity; if only the right end fits, the starts that fit are a tail of
// the interval, and bisection finds the first.
// Cost: O(cells * classes) for bounds; an examined cell costs O(turns * candidates).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/tariff/cell_queue.hpp"
#include "slotkern/tariff/part_costs.hpp"
#include "slotkern/tariff/tariff_window.hpp"
#include "slotkern/tariff/ticks.hpp"

namespace slotkern {

class CellSearch {
  // A candidate and its cost at one start.
  struct Priced {
    double cost;
    std::size_t candidate;
  };
  auto by_cost() const {
    return [this](const Priced& a, const Priced& b) {
      if (a.cost != b.cost) return a.cost < b.cost;
      return costs_.candidates()[a.candidate].node < costs_.candidates()[b.candidate].node;
    };
  }

 public:
  explicit CellSearch(const TariffIndex& index) : index_(index), costs_(index), rates_(index) {}

  // See PartCosts::open(). In a square search a window of parts that are all shorter than the span
  // belongs to another span, and is not found.
  void open(const Query& query, double max_length, double span) {
    query_ = &query;
    ticks_ = index_.ticks();
    span_ = span;
    max_cost_ = query.max_cost();
    costs_.open(query, max_length, span);
    rates_.open(costs_.n(), costs_.min_work());
  }

  // Improves `best` by the cheapest window; with `any`, stops at the first window within the
  // budget.
  void find_cheapest(TariffWindow& best, bool any) {
    if (!costs_.any() || !open_cells()) return;
    while (!queue_.empty()) {
      const CellBound entry = queue_.pop();
      const double ceiling =
          best.found ? std::min(max_cost_, max_cost_of_key(best.key)) : max_cost_;
      if (entry.bound > ceiling) {
        if (cost_key(entry.bound) > cost_key(ceiling)) return;
        continue;
      }
      if (best.found && cost_key(entry.bound) == best.key &&
          index_.cells().begin(entry.cell) > best.start)
        continue;
      poll();
      if (entry.level < BoundLevel::cell) {
        raise_bound(entry, ceiling);
        continue;
      }
      const double per_rate = per_rate_[entry.cell];
      const double bound =
          std::max(entry.bound, costs_.bound_cell_tightly(entry.cell, per_rate));
      if (!(bound <= ceiling)) continue;
      if (entry.level != BoundLevel::exact && queue_.has_before(bound, entry.cell)) {
        queue_.push({bound, entry.cell, BoundLevel::exact});
        continue;
      }
      const double typical = index_.min_rate_sum(costs_.n()) * query_->volume;
      double limit = ceiling;
      if (!best.found && std::max(bound, typical) > 0)
        limit = std::min(ceiling, max_cost_of_key(cost_key(
                                      bound > 0 ? bound * (1 + slack_) : typical * slack_)));
      const bool first = !best.found;
      const bool improved = examine(entry.cell, per_rate, limit, best);
      if (best.found && any) return;
      if (improved && first && bound > 0)
        slack_ = std::clamp(1.2 * (best.total / bound - 1), 0.01, 1.0);
      if (!improved && first && limit < ceiling) {
        slack_ = std::min(2 * slack_, 0x1p60);
        queue_.push({limit, entry.cell, BoundLevel::exact});
      }
    }
  }

  // Finds the earliest window within the budget with from <= start <= upto. `rejected` is set if a
  // start within the budget is neither a tick nor a turn of its window.
  bool find_earliest(double from, double upto, TariffWindow& best, bool& rejected) {
    const TimeCells& cells = index_.cells();
    if (!costs_.any()) return false;
    from = std::max(from, query_->earliest);
    upto = std::min(upto, query_->latest);
    for (std::size_t cell = cells.cell_at(from); cell < cells.size(); ++cell) {
      if (cell > 0 && cells.begin(cell) > upto) return false;
      poll();
      const double per_rate = costs_.min_cost_per_rate(&PriceTable::cells, cell);
      if (!(rates_.get(cell) * per_rate <= max_cost_)) continue;
      if (!(costs_.bound_cell(cell, per_rate) <= max_cost_)) continue;
      if (!(costs_.bound_cell_tightly(cell, per_rate) <= max_cost_)) continue;
      if (!costs_.gather(cell, per_rate, max_cost_, upto)) continue;
      const CellResult outcome = earliest_in(cell, from, upto, best);
      rejected |= rejected_;
      if (outcome != CellResult::none) return outcome == CellResult::found;
    }
    return false;
  }

  // Reduces the window to the first step, in (start, node) order of the slots, at which it fits;
  // slots that started before `now` start at `now`. Call after find_earliest().
  void keep_first_step(TariffWindow& best, double now) {
    const double t = best.start;
    costs_.begin_start(t);
    joins_.clear();
    for (std::size_t k = 0; k < costs_.candidates().size(); ++k)
      if (costs_.is_live(costs_.candidates()[k], t))
        joins_.push_back({costs_.cost_at(costs_.candidates()[k], t), k});
    const auto order = [this, t, now](const Priced& a, const Priced& b) {
      const TariffCandidate &x = costs_.candidates()[a.candidate],
                            &y = costs_.candidates()[b.candidate];
      if ((x.begin == t) != (y.begin == t)) return y.begin == t;
      const double from = std::max(x.slot_start, now), other = std::max(y.slot_start, now);
      return from != other ? from < other : x.node < y.node;
    };
    std::sort(joins_.begin(), joins_.end(), order);
    chosen_.clear();
    bool changed = false;
    for (std::size_t k = 0; k < joins_.size(); ++k) {
      const auto place = std::upper_bound(chosen_.begin(), chosen_.end(), joins_[k], by_cost()) -
                         chosen_.begin();
      chosen_.insert(chosen_.begin() + place, joins_[k]);
      changed |= static_cast<std::size_t>(place) < costs_.n();
      if (chosen_.size() > costs_.n()) chosen_.pop_back();
      if (k + 1 < joins_.size() && costs_.candidates()[joins_[k + 1].candidate].begin < t) continue;
      if (changed && chosen_.size() == costs_.n() && chosen_total() <= max_cost_) break;
      changed = false;
    }
    describe(t, best);
  }

 private:
  enum class CellResult { none, found, stop };

  // --- cells in the order of their bounds

  bool open_cells() {
    constexpr std::size_t size = TimeCells::kPerGroup;
    const TimeCells& cells = index_.cells();
    per_rate_.resize(cells.size()), group_per_rate_.resize(cells.groups());
    costs_.min_costs_per_rate(&PriceTable::groups, 0, cells.groups(), group_per_rate_.data());
    first_cell_ = cells.cell_at(query_->earliest);
    last_cell_ = cells.cell_at(std::min(query_->latest, query_->deadline));
    queue_.clear();
    if (first_cell_ > last_cell_) return false;
    for (std::size_t group = first_cell_ / size; group <= last_cell_ / size; ++group) {
      const double bound = rates_.get_of_group(group) * group_per_rate_[group];
      const auto first = static_cast<std::uint32_t>(group * size);
      if (bound <= max_cost_) queue_.append({bound, first, BoundLevel::group_rates});
    }
    queue_.build();
    return !queue_.empty();
  }
  // Pushes a group or cell again with the bound of its next stage, or the cells of a group instead.
  void raise_bound(const CellBound& entry, double ceiling) {
    constexpr std::size_t size = TimeCells::kPerGroup;
    const std::size_t group = entry.cell / size;
    const auto push = [&](double bound, std::size_t cell, BoundLevel level) {
      if (bound <= ceiling)
        queue_.push({std::max(bound, entry.bound), static_cast<std::uint32_t>(cell), level});
    };
    if (entry.level == BoundLevel::group_rates) {
      push(costs_.bound_group(group, group_per_rate_[group]), entry.cell, BoundLevel::group);
    } else if (entry.level == BoundLevel::group) {
      const std::size_t from = std::max(group * size, first_cell_);
      const std::size_t to = std::min(group * size + size, last_cell_ + 1);
      costs_.min_costs_per_rate(&PriceTable::cells, from, to - from, per_rate_.data() + from);
      for (std::size_t cell = from; cell < to; ++cell)
        push(rates_.get_if_known(cell) * per_rate_[cell], cell, BoundLevel::rates);
    } else {
      const double bound = rates_.get(entry.cell) * per_rate_[entry.cell];
      if (bound > entry.bound && queue_.has_before(bound, entry.cell))
        push(bound, entry.cell, BoundLevel::rates);
      else if (bound <= ceiling)
        push(costs_.bound_cell(entry.cell, per_rate_[entry.cell]), entry.cell, BoundLevel::cell);
    }
  }

  // --- one cell

  void list_turns(double from, double to) {
    turns_.clear();
    costs_.add_turns(from, to, turns_);
    std::sort(turns_.begin(), turns_.end());
    turns_.erase(std::unique(turns_.begin(), turns_.end()), turns_.end());
  }

  // Examines all turns in the cell; returns true if `best` improved.
  bool examine(std::size_t cell, double per_rate, double ceiling, TariffWindow& best) {
    if (!costs_.gather(cell, per_rate, ceiling, kInfinity)) return false;
    list_turns(index_.cells().begin(cell), index_.cells().end(cell));
    bool improved = false;
    for (const double t : turns_) {
      poll();
      const double sum = costs_.total_at(t, ceiling);
      if (sum == kInfinity || sum > ceiling * (1 + PartCosts::kSumError)) continue;
      if (!choose(t) || !is_own_turn(t)) continue;
      describe(t, trial_);
      if (!(trial_.total <= max_cost_) || !(trial_.total <= ceiling)) continue;
      if (best.found && !trial_.is_cheaper(best)) continue;
      std::swap(best, trial_);
      best.found = improved = true;
      ceiling = std::min(max_cost_, max_cost_of_key(best.key));
    }
    return improved;
  }

  CellResult earliest_in(std::size_t cell, double from, double upto, TariffWindow& best) {
    const double begin = std::max(from, index_.cells().begin(cell)), end = index_.cells().end(cell);
    rejected_ = false;
    list_turns(begin, end);
    if (turns_.empty() || turns_.front() > begin) turns_.insert(turns_.begin(), begin);
    if (end < kInfinity) turns_.push_back(end);
    bool left_fits = false;
    for (std::size_t k = 0; k < turns_.size(); ++k) {
      poll();
      const double right = turns_[k];
      const bool fits = costs_.fits(right, max_cost_);
      if (k > 0) {
        const CellResult outcome = first_between(turns_[k - 1], right, left_fits, fits, upto, best);
        if (outcome != CellResult::none) return outcome;
      }
      if (right > upto) return CellResult::stop;
      if (right == end) break;
      if (fits) {
        const CellResult outcome = accept(right, best);
        if (outcome != CellResult::none) return outcome;
      }
      left_fits = fits;
    }
    if (end == kInfinity)
      return first_between(turns_.back(), end, left_fits, false, upto, best);
    return CellResult::none;
  }

  // The first tick strictly between two neighbouring turns at which the window fits. If the left
  // end fits, it was rejected, and the starts that fit are a head and a tail of the interval.
  CellResult first_between(double left, double right, bool left_fits, bool right_fits, double upto,
                        TariffWindow& best) {
    if (left_fits) {
      const double tick = ticks_.at_or_after(std::nextafter(left, kInfinity));
      if (!(tick < right) || tick > upto) return CellResult::none;
      if (costs_.fits(tick, max_cost_)) return accept(tick, best);
      left = tick;
    }
    if (!right_fits) return CellResult::none;
    double high = right, first = right;
    for (;;) {
      const double middle = left + 0.5 * (high - left);
      if (!(left < middle && middle < high)) break;
      const double tick = ticks_.at_or_after(middle);
      if (!(tick < high)) {
        high = middle;
      } else if (costs_.fits(tick, max_cost_)) {
        first = tick, high = middle;
      } else {
        left = tick;
      }
    }
    if (!(first < right) || first > upto) return CellResult::none;
    return accept(first, best);
  }

  // Accepts a start within the budget if it is allowed. A window of another span makes that span's
  // search start no later, so a tick ends the search of this span.
  CellResult accept(double t, TariffWindow& best) {
    const bool tick = ticks_.is_tick(t);
    if (!choose(t)) return CellResult::none;
    if (tick && is_of_other_span()) return CellResult::stop;
    if (!tick && !is_own_turn(t)) {
      rejected_ = true;
      return CellResult::none;
    }
    describe(t, best);
    best.found = true;
    return CellResult::found;
  }

  // --- the window at one start

  // Selects the n cheapest parts live at t into chosen_, ascending by (cost, node).
  bool choose(double t) {
    costs_.begin_start(t);
    chosen_.clear();
    const std::vector<TariffCandidate>& all = costs_.candidates();
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (!costs_.is_live(all[k], t)) continue;
      const double cost = costs_.cost_at(all[k], t);
      if (std::isfinite(cost)) chosen_.push_back({cost, k});
    }
    const std::size_t n = costs_.n();
    if (chosen_.size() < n) return false;
    const auto middle = chosen_.begin() + static_cast<std::ptrdiff_t>(n);
    std::partial_sort(chosen_.begin(), middle, chosen_.end(), by_cost());
    chosen_.resize(n);
    return true;
  }
  bool is_of_other_span() const {
    if (!(span_ > 0)) return false;
    for (const Priced& part : chosen_)
      if (costs_.own_length(costs_.candidates()[part.candidate].class_index) == span_) return false;
    return true;
  }
  bool is_own_turn(double t) const {
    if (is_of_other_span()) return false;
    for (const Priced& part : chosen_)
      if (costs_.is_turn(costs_.candidates()[part.candidate], t)) return true;
    return false;
  }
  double chosen_total() const {
    return exact_sum(chosen_.size(), [this](std::size_t k) { return chosen_[k].cost; });
  }

  void describe(double t, TariffWindow& window) const {
    window.start = t;
    window.total = chosen_total();
    window.key = cost_key(window.total);
    window.runtime = window.processor_time = 0;
    window.parts.clear();
    for (const Priced& part : chosen_) {
      const TariffCandidate& c = costs_.candidates()[part.candidate];
      const double length = costs_.length(c.class_index);
      window.runtime = std::max(window.runtime, length);
      window.processor_time += length;
      window.parts.push_back({c.row, c.node, length, part.cost});
    }
    std::sort(window.parts.begin(), window.parts.end(),
              [](const Part& a, const Part& b) { return a.node < b.node; });
  }

  const TariffIndex& index_;
  PartCosts costs_;
  const Query* query_ = nullptr;
  Ticks ticks_;
  double span_ = 0, max_cost_ = kInfinity;
  double slack_ = 0.1;  // expected excess of the best cost over the bound of its cell, relative
  bool rejected_ = false;
  std::size_t first_cell_ = 0, last_cell_ = 0;
  std::vector<double> per_rate_, group_per_rate_;  // [cell], [group]
  std::vector<double> turns_;
  CellQueue queue_;
  RateSums rates_;
  std::vector<Priced> chosen_, joins_;
  TariffWindow trial_;
};

}  // namespace slotkern

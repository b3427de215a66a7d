// Finds the best window under tariffs, by the built-in criteria and both shapes.
//
// Definition, with W(t) the n cheapest parts live at t by (cost, node) and allowed starts t: each
// tick, and each turn of a part of W(t). A window fits if the exact sum of its costs meets the
// budget.
//   cost     least cost_key, then the earliest start, total, nodes; t is a turn
//   start    earliest start of a window that fits, then total, nodes
//   first    at the earliest start, the first step in (start, node) order of the slots that fits
//   finish   least start + longest part, over all limits on the length of a part, then the start
//   runtime  least longest part for which a window fits, then the earliest start
// Square windows: all parts run as long as the slowest part; costs are sums of price * integral.
//
// Finish: the limit is lowered below the longest part of each window found; the search goes on from
// the same start, because shorter parts alone never fit earlier. If a start was rejected because it
// is neither a tick nor a turn, this does not hold, and every length is searched from the
// beginning.
// Runtime (ragged): whether a window fits is monotone in the limit, so bisection finds the least.
// A TariffSearch is the scratch memory of one thread; no allocation after the first searches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "slotkern/tariff/cell_search.hpp"
#include "slotkern/window/criteria.hpp"

namespace slotkern {

class TariffSearch {
 public:
  // The index must outlive the search.
  explicit TariffSearch(const TariffIndex& index) : index_(index), search_(index) {}

  // Returns ok with the window in `found` and parts(), none, volume_too_small, or
  // request_not_valid: for limits on sums too. The index must agree with the slots of `prepared`,
  // whose time before `now` is not free.
  Status find(const PreparedSlots& prepared, const Query& given, int criterion, ShapeKind shape,
              Found& found, double now = -kInfinity) noexcept {
    return guarded([&] { return find_unguarded(prepared, given, criterion, shape, found, now); });
  }
  // As find() by the start, for windows that start in [first, latest]: neither time is a turn.
  Status find_in_range(const PreparedSlots& prepared, const Query& given, double first,
                       double latest, ShapeKind shape, Found& found, double now) noexcept {
    first_ = first, latest_ = latest;
    static const int start = criterion_index(Start::name);
    const Status status = find(prepared, given, start, shape, found, now);
    first_ = -kInfinity, latest_ = kInfinity;
    return status;
  }

  const std::vector<Part>& parts() const { return best_.parts; }

 private:
  Status find_unguarded(const PreparedSlots& prepared, const Query& given, int criterion,
                        ShapeKind shape, Found& found, double now) {
    if (criterion < 0 || criterion >= kBuiltins || given.limits) return Status::request_not_valid;
    query_ = prepared.normalized_for_search(given);
    query_.earliest = std::max(query_.earliest, now);
    const Status status = prepared.check(query_, true);
    if (status != Status::ok) return status;
    if (query_.n > static_cast<std::int64_t>(prepared.nodes.size())) return Status::none;
    if (prepared.is_long_running(query_, shape) || index_.is_large()) enable_interrupts();
    list_lengths(prepared.groups);
    best_.found = false;
    if (!lengths_.empty()) {
      if (finds_cheapest(criterion))
        find_cheapest(shape);
      else if (finds_shortest(criterion))
        find_shortest(shape);
      else if (finds_earliest(criterion))
        find_earliest(shape, criterion, now);
      else
        find_earliest_finish(shape);
    }
    if (!best_.found) return Status::none;
    found.start = best_.start, found.runtime = best_.runtime;
    found.cost = best_.total, found.processor_time = best_.processor_time;
    found.value = with_criterion(criterion, [&](auto c) {
      return decltype(c)::value(found.start, found.runtime, found.cost);
    });
    return Status::ok;
  }

  // Distinct lengths of admitted parts, ascending.
  void list_lengths(const std::vector<Group>& groups) {
    lengths_.clear();
    for (const Group& group : groups) {
      const double length = query_.length(group.performance);
      if (group.performance >= query_.min_performance && std::isfinite(length) &&
          (lengths_.empty() || length > lengths_.back()))
        lengths_.push_back(length);
    }
  }
  void open(double max_length, ShapeKind shape) {
    search_.open(query_, max_length, shape == ShapeKind::square ? max_length : 0);
  }
  // Calls visit(length) for each span (square), or once for all lengths.
  template <class Visit>
  void each_span(ShapeKind shape, Visit visit) {
    if (shape == ShapeKind::ragged) return visit(lengths_.back());
    for (const double length : lengths_) visit(length);
  }

  void find_cheapest(ShapeKind shape) {
    each_span(shape, [&](double length) {
      open(length, shape);
      search_.find_cheapest(best_, false);
    });
  }

  void find_earliest(ShapeKind shape, int criterion, double now) {
    const bool first = criterion == criterion_index(First::name);
    double span = 0;
    bool rejected = false;
    each_span(shape, [&](double length) {
      open(length, shape);
      const double upto = best_.found ? best_.start : latest_;
      trial_.found = false;
      if (!search_.find_earliest(first_, upto, trial_, rejected)) return;
      if (best_.found && !(trial_.start < best_.start) &&
          (first || !(trial_.total < best_.total ||
                      (trial_.total == best_.total && trial_.has_smaller_nodes(best_)))))
        return;
      std::swap(best_, trial_);
      span = length;
    });
    if (!first || !best_.found) return;
    open(span, shape);
    if (search_.find_earliest(best_.start, best_.start, best_, rejected))
      search_.keep_first_step(best_, now);
  }

  // Replaces the best window by one with an earlier finish; of equal ones the earlier start.
  void keep_earlier_finish() {
    if (best_.found) {
      const double ours = best_.start + best_.runtime, other = trial_.start + trial_.runtime;
      if (other > ours || (other == ours && trial_.start >= best_.start)) return;
    }
    std::swap(best_, trial_);
  }

  void find_earliest_finish(ShapeKind shape) {
    const bool square = shape == ShapeKind::square;
    const double shortest = lengths_.front();
    const auto latest_for = [&](double length) {
      if (!best_.found) return kInfinity;
      const double finish = best_.start + best_.runtime;
      return finish - length + clock_error(finish, length);
    };
    double from = -kInfinity;
    for (std::size_t k = lengths_.size(); k-- > 0;) {
      const double length = square ? lengths_[lengths_.size() - 1 - k] : lengths_[k];
      open(length, shape);
      bool rejected = false;
      trial_.found = false;
      const double upto = latest_for(square ? length : shortest);
      if (!search_.find_earliest(from, upto, trial_, rejected)) {
        if (square || rejected) continue;
        break;
      }
      const double start = trial_.start, runtime = trial_.runtime;
      keep_earlier_finish();
      if (square || rejected) continue;
      // Shorter parts alone are next.
      from = start;
      while (k > 0 && lengths_[k - 1] >= runtime) --k;
    }
  }

  void find_shortest(ShapeKind shape) {
    std::size_t least = 0;
    if (shape == ShapeKind::ragged) {
      std::size_t most = lengths_.size() - 1;
      if (!has_window(lengths_[most], shape)) return;
      while (least < most) {
        const std::size_t middle = (least + most) / 2;
        if (has_window(lengths_[middle], shape))
          most = middle;
        else
          least = middle + 1;
      }
    } else {
      while (least < lengths_.size() && !has_window(lengths_[least], shape)) ++least;
      if (least == lengths_.size()) return;
    }
    bool rejected = false;
    open(lengths_[least], shape);
    search_.find_earliest(-kInfinity, kInfinity, best_, rejected);
  }
  // True if some window of parts up to this length fits.
  bool has_window(double length, ShapeKind shape) {
    open(length, shape);
    trial_.found = false;
    search_.find_cheapest(trial_, true);
    return trial_.found;
  }

  const TariffIndex& index_;
  CellSearch search_;
  Query query_;
  double first_ = -kInfinity, latest_ = kInfinity;  // the starts of find_earliest()
  std::vector<double> lengths_;
  TariffWindow best_, trial_;
};

}  // namespace slotkern

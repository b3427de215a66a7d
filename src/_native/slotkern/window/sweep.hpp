// Finds the best step of one pass over the slots by start, keeping the n cheapest live slots.
//
// Input: prepared slots, a query, a shape (window/shapes.hpp) and a goal (window/goals.hpp), both
// compiled in. Output: goal.best, in the units of the slots' clock and prices. This is the AEP
// scheme of Toporkov et al. (2013, section 2.1) and the inner loop of the square search (2018,
// section 3.2). A step adds one slot; a slot is live at t if t + d <= min(end, deadline). The key
// of a slot is its contribution to the sum; its index key is the rate or price that the zone map
// stores. The ceiling is the largest total that a better window may have.
//
// Exact because (1) only a slot that enters the n cheapest can lower their sum, so only the times
// at which a slot was added are tested, after all slots of that start; (2) a sum that includes
// expired slots is a lower bound, so it suffices to remove expired slots from sums that would win;
// (3) the zone map skips a slot only if it cannot hold a part, if it and the n - 1 cheapest nodes
// together exceed the ceiling, or if its key reaches the cutoff. The cutoff is the largest kept key
// once the live set is full (window/top_n_live.hpp), or an initial one, used only if n such keys
// exceed the ceiling. Sums count each missing slot as the cutoff; if such a sum would win, rescan()
// reads all live slots again, so that no skipped slot is missed. Cost: expected O(m / 64 +
// survivors * log n); a rescan costs O(m / 64) plus the live slots, and each one doubles the extra
// capacity.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/bitmap_sort.hpp"
#include "slotkern/window/goals.hpp"
#include "slotkern/window/shapes.hpp"
#include "slotkern/window/top_n_live.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

// The quality of an answer under sum limits. If the search ran out of work, no window has a value
// below `bound`. `failed` is the row at which a user's function failed, or kNone.
struct Proof {
  static constexpr std::size_t kNone = ~std::size_t{0};

  bool proven = true;
  double bound = kInfinity;
  std::size_t failed = kNone;
  std::int64_t work = 0;  // units of knapsack work
};

// Scratch memory for sorting many parts by node.
struct NodeOrder {
  BitmapSort by_node;
  std::vector<Part> parts;
};

// Scratch memory of one thread; it only grows.
struct Workspace {
  Proof proof;  // of the last search with limits
  // Work counter since it was last set to 0: in a sweep 4 per block of slots tested, 2 per slot
  // visited, 1 per slot re-examined.
  std::size_t effort = 0;
  TopNLive top_n;
  TopNByKey top, rates;
  std::vector<Entry> chosen;
  std::vector<Part> parts, trial_parts;
  NodeOrder node_order;
  // The slots live at one time, in one linked list per entry of `bounds`. A slot is in the list of
  // the fastest group that it can serve.
  struct GroupListEntry {
    std::size_t row, next;
  };
  std::vector<GroupListEntry> live_by_group;
  std::vector<std::size_t> group_list_heads;  // kNone: empty list
  static constexpr std::size_t kNone = ~std::size_t{0};
  // Node-price statistics of one performance group. `min`: the lowest price in the group. The
  // others are over this group and all faster ones: the n-th lowest price, a lower bound on the sum
  // of the n - 1 lowest, and the n-th minus the median of the n lowest, at least 1/64 of the n-th.
  struct GroupPriceStats {
    double min, nth, sum_of_n_minus_1, nth_minus_median;
  };
  // Statistics of the groups visited so far, for windows of prices.n() nodes.
  struct PriceStatsEntry {
    TopNByKey prices;
    std::vector<GroupPriceStats> groups;
  };
  // cache; num_price_stats entries belong to price_stats_build
  std::vector<PriceStatsEntry> price_stats;
  std::size_t num_price_stats = 0, next_victim = 0;
  BuildId price_stats_build;
  // Bounds of one performance group of the square search: its span, a lower bound on the cost of
  // its windows, a lower bound on the sum of prices of any n - 1 of its nodes, and the n-th lowest
  // node price with its distance from the median (GroupPriceStats).
  struct GroupBound {
    double span, total, least_others, nth, rise;
    std::size_t group;
  };
  std::vector<GroupBound> bounds;
  std::vector<std::size_t> order;
};

// After an improvement at t, restricts the bound to nodes fast enough for a better window: raises
// `least_others` to a lower bound on the cost of n - 1 of them. Returns false if no n of them fit
// the ceiling, so that no better window exists.
template <class Shape, class Goal>
bool bound_by_fast_nodes(const PreparedSlots& prepared, const Query& query, const Shape& shape,
            const Goal& goal, double t, double& least_others, TopNByKey& rates) {
  constexpr std::size_t most = 64;  // beyond, the bound costs more than it saves
  // a sweep of at most 1024 slots costs less than the bound
  if (prepared.slots.size() <= 1024) return true;
  const std::size_t n = static_cast<std::size_t>(query.n);
  const auto is_useful = [&](const Node& node) {
    return goal.is_useful(t, shape.length_on(node.performance));
  };
  if (prepared.nodes.size() > most && is_useful(prepared.nodes[most])) return true;
  rates.reset(n, 0, false);
  for (std::size_t k = 0; k < prepared.nodes.size(); ++k) {
    const Node& node = prepared.nodes[k];
    if (!is_useful(node)) break;  // nodes are sorted by falling performance
    if (node.performance >= query.min_performance)
      rates.offer(shape.min_rate(node), k);
  }
  if (!rates.full() || query.volume * rates.lower() * (1 - kMargin) > goal.ceiling() + kUnderflow)
    return false;
  least_others = std::max(least_others, rates.lower() - rates[n - 1].key);
  return true;
}

// One pass over the slots. Slots of one start are evaluated once, after the last of them, or slot
// by slot for goals with `evaluate_per_slot`.
template <class Shape, class Goal>
class Sweep {
 public:
  // `least_others`: lower bound on the index keys of any n - 1 live slots together.
  // `initial_cutoff`: slots with this key or a higher one are skipped until a window may need one.
  Sweep(const PreparedSlots& prepared, const Query& query, const Shape& shape, double least_others,
        Goal& goal, Workspace& work, double initial_cutoff = kInfinity)
      : prepared_(prepared), query_(query), shape_(shape), least_others_(least_others),
        goal_(goal), work_(work), top_(work.top_n), n_(static_cast<std::size_t>(query.n)),
        dictionary_(Shape::zone_map(prepared).dictionary()),
        dictionary_coded_(Shape::index_order_is_key_order && dictionary_.is_exact()),
        shortest_(shape.shortest(prepared)),
        thresholds_(initial_thresholds(prepared, query, shape)) {
    thresholds_.end = std::max(thresholds_.end,
                               Shape::zone_map(prepared).ending(query.earliest + shortest_));
    // A safe upper bound on starts of parts, in floating point; visit_slot() applies the exact
    // tests.
    const double margin = 4 * 0x1p-52 * (std::fabs(query.deadline) + shortest_);
    last_start_ = std::min(query.latest, query.deadline - shortest_ + margin);
    last_position_ = prepared_.last_position();
    if (query.latest < kInfinity)  // if all slots begin later, there may be no such position
      last_position_ = std::min(last_position_, prepared_.last_row_position_at(last_start_));
    top_.reset(n_, extra_capacity_, initial_cutoff);
    // A cutoff is safe only if n keys at the cutoff exceed the ceiling; otherwise windows beyond it
    // would never be evaluated, so start without one.
    if (!(shape_.total(top_.lower()) > goal_.ceiling())) top_.reset(n_, extra_capacity_);
    max_key_ = max_key_by_ceiling();
    update_threshold();
  }

  // Returns true if it found something better than goal.best.
  bool run() {
    effort_ = last_position_ / 512;  // approximate cost of reading the bounds of blocks
    for (std::size_t from = 0; !finished_; from = restart_at_) {
      restart_at_ = 0;
      const std::size_t blocks = Shape::zone_map(prepared_).each(
          prepared_.order, thresholds_, from, last_position_,
          [&](std::size_t row, std::size_t position) { return visit_slot(row, position); });
      effort_ += kBlockEffort * blocks;
      if (step_pending_ && !finished_ && restart_at_ == 0) evaluate_step(kAll);
      if (restart_at_ == 0) break;
    }
    work_.effort += effort_;
    return better_;
  }

 private:
  // Processes one slot. Returns false if the sweep is finished, or must restart at `restart_at_`
  // with new thresholds.
  bool visit_slot(std::size_t row, std::size_t position) {
    effort_ += 2;
    const Slot& slot = prepared_.slots[row];
    // The threshold may have tightened since this block was tested. With dictionary-coded keys
    // re-test here, because many slots tie; otherwise the cutoff or the sum test rejects the slot.
    if (dictionary_coded_ && !is_within_threshold(slot, thresholds_.key)) return true;
    const double t = query_.start_in(slot);
    if (step_pending_ && t > t_) {
      if (!evaluate_step(kAll)) return false;
      if (dictionary_coded_ && !is_within_threshold(slot, thresholds_.key)) return true;
    }
    if (t > last_start_ || goal_.is_past(t, shortest_)) return !(finished_ = true);
    if (!is_candidate(slot, row, t) || !top_.add(shape_.key(slot), row)) return true;
    t_ = t, step_row_ = row;
    if constexpr (Goal::evaluate_per_slot) return evaluate_step(position);
    step_pending_ = true;
    if (top_.cutoff() != cutoff_) update_threshold();
    return true;
  }

  // Tests a slot's index key against a threshold. In dictionary mode it compares codes, as the
  // index does: the key itself may exceed the threshold although its code does not.
  bool is_within_threshold(const Slot& slot, float most) const {
    const double key = shape_.index_key(slot);
    return dictionary_coded_ ? dictionary_.code_of(key) <= most : key <= most;
  }

  // Returns true if the slot can hold a part of a better window from t on.
  bool is_candidate(const Slot& slot, std::size_t row, double t) const {
    const double length = shape_.length(slot);
    return t + length <= query_.limit(slot) && query_.admits(slot, row) &&
           slot.performance >= shape_.min_performance() && goal_.is_useful(t, length);
  }

  // Tests if the n cheapest slots at t_ form a better window. Returns false, like visit_slot(), if
  // the sweep is finished or must restart.
  bool evaluate_step(std::size_t position) {
    step_pending_ = false;
    if (top_.is_exhausted()) return true;
    if constexpr (!Goal::evaluate_per_slot)  // otherwise there is only one pending slot
      if (shape_.total(top_.optimistic_sum()) > goal_.ceiling()) return true;
    // Accepts every slot that rescan() adds; otherwise the loop below would not end.
    const auto is_live_candidate = [&](std::size_t other) {
      const Slot& s = prepared_.slots[other];
      return is_within_threshold(s, max_key_) && is_live(query_, shape_, s, t_) &&
             goal_.is_useful(t_, shape_.length(s));
    };
    // If even the upper bound is within the ceiling, the sum cannot reject a window; only the
    // number of live slots can.
    if (top_.cutoff() == kInfinity && !(shape_.total(top_.upper_bound()) > goal_.ceiling())) {
      effort_ += n_;
      top_.retain(is_live_candidate);
      if (top_.is_exhausted()) return true;
    }
    const bool changed = top_.merge_pending();
    if (top_.cutoff() != cutoff_) update_threshold();
    if (!changed) return true;
    top_.clear_changed();
    while (!(shape_.total(top_.lower()) > goal_.ceiling())) {
      poll();
      if (!top_.full()) {
        if (top_.cutoff() == kInfinity) break;
        rescan(position == kAll ? prepared_.position_at(t_) : position);
        if (!top_.full()) break;
        continue;
      }
      effort_ += n_;
      if (top_.drop_expired(is_live_candidate)) continue;
      const double total = shape_.total(top_.sum());
      if (!goal_.accepts(t_, total)) break;
      record(total);
      if (goal_.can_stop() || !update_after_improvement()) return !(finished_ = true);
      if (!Goal::can_improve_at_same_time) break;
    }
    return restart_at_ == 0;
  }

  // Stores the current step in goal.best. If no tie and no later slot can change the set of the n
  // cheapest, they are the canonical window, and their entries are copied to the workspace.
  void record(double total) {
    Best& best = goal_.best;
    best.longest = 0;
    if (Goal::needs_times)
      top_.each([&](const Entry& entry) {
        best.longest = std::max(best.longest, shape_.length(prepared_.slots[entry.row]));
      });
    better_ = best.found = true;
    best.start = t_;
    best.total = total;
    best.finish = t_ + best.longest;
    best.nth_key = top_.nth_key();
    best.defining_row = step_row_;
    if constexpr (Shape::per_part_length) {
      best.entries_valid =
          top_.is_tie_free() &&
          (!Goal::later_slots_may_join || prepared_.is_last_starting_by(t_, step_row_));
      if (best.entries_valid) {
        work_.chosen.resize(n_);
        Entry* to = work_.chosen.data();
        top_.each([&](const Entry& entry) { *to++ = entry; });
      }
    }
  }

  // Rebuilds the set from all slots live now, at positions up to `last`, with doubled extra
  // capacity.
  void rescan(std::size_t last) {
    extra_capacity_ = std::min(2 * extra_capacity_, n_ + kMaxExtraCapacity);
    top_.reset(n_, extra_capacity_);
    Thresholds thresholds = thresholds_;
    thresholds.key = max_key_;
    thresholds.end =
        std::max(thresholds.end, Shape::zone_map(prepared_).ending(t_ + shortest_));
    double cut = kInfinity;
    const std::size_t blocks = Shape::zone_map(prepared_).each(
        prepared_.order, thresholds, 0, last, [&](std::size_t row, std::size_t) {
          effort_ += 2;
          const Slot& slot = prepared_.slots[row];
          if (!is_within_threshold(slot, thresholds.key) || !is_candidate(slot, row, t_))
            return true;
          top_.add(shape_.key(slot), row);
          if (top_.cutoff() != cut)
            cut = top_.cutoff(), thresholds.key = std::min(thresholds.key, max_key_by_cutoff());
          return true;
        });
    effort_ += kBlockEffort * blocks;
    top_.merge_pending();
    top_.clear_changed();
    update_threshold();
    restart_at_ = last + 1;
  }

  // The largest index key that the ceiling allows.
  float max_key_by_ceiling() const {
    return std::min(goal_.max_probed_key,
                    max_index_key(shape_.to_index_units(goal_.ceiling()), least_others_));
  }
  // The largest index key that the live set would keep.
  float max_key_by_cutoff() const {
    const float most = max_index_key(shape_.index_key_of(top_.cutoff()), 0);
    if (!dictionary_coded_ || top_.cutoff_row() == kNoRow) return most;
    // Slots that tie with the cutoff are not needed; excluding them skips long runs of equal cost.
    const Slot& costliest = prepared_.slots[top_.cutoff_row()];
    return std::min(most, dictionary_.predecessor_code(shape_.index_key(costliest)));
  }

  void update_threshold() {
    cutoff_ = top_.cutoff();
    thresholds_.key = std::min(max_key_, max_key_by_cutoff());
  }
  // Updates all thresholds after an improvement. Returns false if nothing better can exist.
  bool update_after_improvement() {
    if constexpr (Shape::per_part_length && Goal::can_bound_by_fast_nodes)
      if (!bound_by_fast_nodes(prepared_, query_, shape_, goal_, t_, least_others_, work_.rates))
        return false;
    max_key_ = max_key_by_ceiling();
    update_threshold();
    thresholds_.performance =
        std::max(thresholds_.performance,
                 round_down(goal_.least_performance(query_.volume) * (1 - kMargin)));
    return true;
  }

  static constexpr std::size_t kMaxExtraCapacity = 256;  // in addition to n
  static constexpr std::size_t kBlockEffort = 4;         // to test the rows of a block
  static constexpr std::size_t kAll = ~std::size_t{0};  // all positions up to the evaluated time

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  double least_others_;
  Goal& goal_;
  Workspace& work_;
  TopNLive& top_;
  const std::size_t n_;
  const KeyDictionary& dictionary_;
  const bool dictionary_coded_;
  std::size_t extra_capacity_ = TopNLive::extra_capacity(n_);
  const double shortest_;
  Thresholds thresholds_;
  float max_key_ = 0;  // max_key_by_ceiling() for the current ceiling
  double last_start_ = 0, cutoff_ = kInfinity;
  std::size_t last_position_ = 0;
  double t_ = 0;  // start of the pending step, or of the last evaluated one
  // `restart_at_`: position from which to continue after a rescan; 0: no restart
  std::size_t step_row_ = 0, restart_at_ = 0, effort_ = 0;
  bool step_pending_ = false, finished_ = false, better_ = false;
};

}  // namespace slotkern

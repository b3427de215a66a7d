// The sweep: one pass over the slots by start, keeping the n cheapest live ones.
//
// This is the AEP scheme of Toporkov et al. (2013, section 2.1) and the inner loop of the
// square search (2018, section 3.2). A step adds one slot; live are the slots with
// t + d <= min(end, deadline). Two policies are compiled in, nothing is dispatched inside: the
// shape of the window (window/shapes.hpp) and the goal (window/goals.hpp).
//
// Exact because (1) only a slot that enters the n cheapest can lower their sum, and only the sum
// of all that start at one time is the window's; (2) with expired slots among them the sum is a
// lower bound, so purging only the sums that would win misses nothing; (3) the screen drops a
// slot only if it together with the n - 1 cheapest nodes is over the ceiling, if more than n
// cheaper ones are live_set (window/top_n_live.hpp), or if it is initial_cutoff: n as initial_cutoff ones are over the ceiling.
// Where so few cheaper ones are left that it may count, all that is live is looked through again,
// and the slots behind are screened anew.
// Expected O(m / 64 + survivors * log n); looking again is O(m / 64) beside what is
// live, and the spare doubles each time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/bitmap_sort.hpp"
#include "slotkern/window/goals.hpp"
#include "slotkern/window/top_n_live.hpp"
#include "slotkern/window/top_n_live_bitset.hpp"
#include "slotkern/window/shapes.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

// What is known of an answer where sums over its parts are limited: if the search ran out of work
// no window has a value below `bound`. `failed`: the row that a user's function failed at.
struct Proof {
  static constexpr std::size_t kNone = ~std::size_t{0};

  bool proven = true;
  double bound = kInfinity;
  std::size_t failed = kNone;
  std::int64_t work = 0;  // of knapsacks
};

// Many parts on their way into the order of their nodes.
struct NodeOrder {
  BitmapSort by_node;
  std::vector<Part> parts;
};

// Scratch of one thread; it only grows.
struct Workspace {
  Proof proof;  // of the last search with limits
  // Of searches, since it was 0: two for a slot that a sweep looks at, one for looking once more.
  std::size_t effort = 0;
  TopNLive top_n;
  TopNLiveBitset top_n_bitset;
  TopNByKey top, rates;
  std::vector<Entry> chosen;
  std::vector<Part> parts, trial_parts;
  NodeOrder node_order;
  // Slots live at one time, in a list for each of `bounds`: the fastest they can serve.
  struct GroupListEntry {
    std::size_t row, next;
  };
  std::vector<GroupListEntry> live_by_group;
  std::vector<std::size_t> group_list_heads;  // kNone: the list is empty
  static constexpr std::size_t kNone = ~std::size_t{0};
  // Of the nodes of a group: the least price; with all faster ones: the n-th least price, and
  // what n - 1 of them cost at least, and how far above the n / 2-th the n-th is.
  struct GroupPriceStats {
    double min, nth, sum_of_n_minus_1, nth_minus_median;
  };
  // The same of the groups so far, for windows of prices.n() nodes.
  struct PriceStatsEntry {
    TopNByKey prices;
    std::vector<GroupPriceStats> groups;
  };
  std::vector<PriceStatsEntry> price_stats;  // the first `known` are of PreparedSlots of this identity
  std::size_t num_price_stats = 0, next_victim = 0;
  BuildId price_stats_build;
  // A group of the square search: its span, the least a window of it costs, the least sum of
  // prices of any n - 1 of its nodes, and how prices rise.
  struct GroupBound {
    double span, total, least_others, nth, rise;
    std::size_t group;
  };
  std::vector<GroupBound> bounds;
  std::vector<std::size_t> order;
};

// After an improvement at t only nodes fast can_stop for a better one count: raises `others` to
// what n - 1 of these cost at least. False when no n of them fit the ceiling: nothing is better.
template <class Shape, class Goal>
bool bound_by_fast_nodes(const PreparedSlots& prepared, const Query& query, const Shape& shape,
            const Goal& goal, double t, double& least_others, TopNByKey& rates) {
  constexpr std::size_t most = 64;  // beyond, the bound costs more than it saves
  if (prepared.slots.size() <= 1024) return true;  // as it does for slots that are soon swept
  const std::size_t n = static_cast<std::size_t>(query.n);
  const auto is_useful = [&](const Node& node) {
    return goal.is_useful(t, shape.length_on(node.performance));
  };
  if (prepared.nodes.size() > most && is_useful(prepared.nodes[most])) return true;
  rates.reset(n, 0, false);
  for (std::size_t k = 0; k < prepared.nodes.size(); ++k) {
    const Node& node = prepared.nodes[k];
    if (!is_useful(node)) break;  // they stand by falling performance
    if (node.performance >= query.min_performance)
      rates.offer(shape.min_rate(node), k);
  }
  if (!rates.full() || query.volume * rates.lower() * (1 - kMargin) > goal.ceiling() + kUnderflow)
    return false;
  least_others = std::max(least_others, rates.lower() - rates[n - 1].key);
  return true;
}

// One pass over the slots. What has come by a time is judged once, when all of it is there, or
// slot by slot for goals `evaluate_per_slot`. TopNLive: TopNLiveBitset where that pays.
template <class Shape, class Goal, class TopNLive>
class Sweep {
 public:
  // `least_others`: lower bound on the screen keys of any n - 1 live slots together. `initial_cutoff`: keys
  // from here on are not looked at before a window may need one.
  Sweep(const PreparedSlots& prepared, const Query& query, const Shape& shape, double least_others,
        Goal& goal, Workspace& work, TopNLive& live_set, double initial_cutoff = kInfinity)
      : prepared_(prepared), query_(query), shape_(shape), least_others_(least_others),
        goal_(goal), work_(work), top_(live_set), n_(static_cast<std::size_t>(query.n)),
        dictionary_(Shape::screen(prepared).dictionary()),
        dictionary_coded_(Shape::index_order_is_key_order && dictionary_.is_exact()),
        shortest_(shape.shortest(prepared)),
        thresholds_(initial_thresholds(prepared, query, shape)) {
    thresholds_.end = std::max(thresholds_.end,
                               Shape::screen(prepared).ending(query.earliest + shortest_));
    // No part starts later; the tests themselves are below.
    const double room = 4 * 0x1p-52 * (std::fabs(query.deadline) + shortest_);
    last_start_ = std::min(query.latest, query.deadline - shortest_ + room);
    last_position_ = prepared_.last_position();
    if (query.latest < kInfinity)  // where all begin later there may be no such position
      last_position_ = std::min(last_position_, prepared_.last_row_position_at(last_start_));
    top_.reset(n_, extra_capacity_, initial_cutoff);
    // What is not looked at is not judged: no window may be of initial_cutoff slots alone.
    if (!(shape_.total(top_.lower()) > goal_.ceiling())) top_.reset(n_, extra_capacity_);
    max_key_ = max_key_by_ceiling();
    update_threshold();
  }

  // Says whether it found something better than goal.best.
  bool run() {
    effort_ = last_position_ / 512;  // of the screen, about
    for (std::size_t from = 0; !finished_; from = restart_at_) {
      restart_at_ = 0;
      Shape::screen(prepared_).each(
          prepared_.order, thresholds_, from, last_position_,
          [&](std::size_t row, std::size_t position) { return visit_slot(row, position); });
      if (step_pending_ && !finished_ && restart_at_ == 0) evaluate_step(kAll);
      if (restart_at_ == 0) break;
    }
    work_.effort += effort_;
    return better_;
  }

 private:
  // False: over, or the slots from `restart_at_` on must be screened anew.
  bool visit_slot(std::size_t row, std::size_t position) {
    effort_ += 2;
    const Slot& slot = prepared_.slots[row];
    // The threshold may have fallen within the block. Where keys are few that is told here, as many
    // would tie; else what is live_set tells it, or the sum, which is over the ceiling.
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

  // Of few kinds as the screen says it, where what is less may lie above the threshold.
  bool is_within_threshold(const Slot& slot, float most) const {
    const double key = shape_.index_key(slot);
    return dictionary_coded_ ? dictionary_.code_of(key) <= most : key <= most;
  }

  bool is_candidate(const Slot& slot, std::size_t row, double t) const {
    const double length = shape_.length(slot);
    return t + length <= query_.limit(slot) && query_.admits(slot, row) &&
           slot.performance >= shape_.min_performance() && goal_.is_useful(t, length);
  }

  // Looks whether the n cheapest of now are better. As visit_slot().
  bool evaluate_step(std::size_t position) {
    step_pending_ = false;
    if (top_.is_exhausted()) return true;
    if constexpr (!Goal::evaluate_per_slot)  // else there is but one slot to merge_pending
      if (shape_.total(top_.optimistic_sum()) > goal_.ceiling()) return true;
    const auto is_live_candidate = [&](std::size_t other) {  // all that rescan() takes, or it never ends
      const Slot& s = prepared_.slots[other];
      return is_within_threshold(s, max_key_) && is_live(query_, shape_, s, t_) &&
             goal_.is_useful(t_, shape_.length(s));
    };
    // Where whatever has come accepts the ceiling no sum rules a window out, only how many are live.
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
      best.entries_valid = top_.is_tie_free() && (!Goal::later_slots_may_join || prepared_.is_last_starting_by(t_, step_row_));
      if (best.entries_valid) {
        work_.chosen.resize(n_);
        Entry* to = work_.chosen.data();
        top_.each([&](const Entry& entry) { *to++ = entry; });
      }
    }
  }

  // Keeps the cheapest of all that is live now, at positions up to `last`.
  void rescan(std::size_t last) {
    extra_capacity_ = std::min(2 * extra_capacity_, n_ + kMaxExtraCapacity);
    top_.reset(n_, extra_capacity_);
    Thresholds thresholds = thresholds_;
    thresholds.key = max_key_;
    thresholds.end =
        std::max(thresholds.end, Shape::screen(prepared_).ending(t_ + shortest_));
    double cut = kInfinity;
    Shape::screen(prepared_).each(
        prepared_.order, thresholds, 0, last, [&](std::size_t row, std::size_t) {
          effort_ += 2;
          const Slot& slot = prepared_.slots[row];
          if (!is_within_threshold(slot, thresholds.key) || !is_candidate(slot, row, t_)) return true;
          top_.add(shape_.key(slot), row);
          if (top_.cutoff() != cut)
            cut = top_.cutoff(), thresholds.key = std::min(thresholds.key, max_key_by_cutoff());
          return true;
        });
    top_.merge_pending();
    top_.clear_changed();
    update_threshold();
    restart_at_ = last + 1;
  }

  // SlotZoneMap keys that the ceiling allows, and that can be live_set.
  float max_key_by_ceiling() const {
    return std::min(goal_.max_probed_key, max_index_key(shape_.to_index_units(goal_.ceiling()), least_others_));
  }
  float max_key_by_cutoff() const {
    const float most = max_index_key(shape_.index_key_of(top_.cutoff()), 0);
    if (!dictionary_coded_ || top_.cutoff_row() == kNoRow) return most;
    // What is as initial_cutoff is not live_set: where many cost the same hardly one is looked at.
    const Slot& dearest = prepared_.slots[top_.cutoff_row()];
    return std::min(most, dictionary_.predecessor_code(shape_.index_key(dearest)));
  }

  void update_threshold() {
    cutoff_ = top_.cutoff();
    thresholds_.key = std::min(max_key_, max_key_by_cutoff());
  }
  // After an improvement; false when nothing is better.
  bool update_after_improvement() {
    if constexpr (Shape::per_part_length && Goal::can_bound_by_fast_nodes)
      if (!bound_by_fast_nodes(prepared_, query_, shape_, goal_, t_, least_others_, work_.rates)) return false;
    max_key_ = max_key_by_ceiling();
    update_threshold();
    thresholds_.performance =
        std::max(thresholds_.performance,
                 round_down(goal_.least_performance(query_.volume) * (1 - kMargin)));
    return true;
  }

  static constexpr std::size_t kMaxExtraCapacity = 256;  // beside n
  static constexpr std::size_t kAll = ~std::size_t{0};  // positions up to the time judged

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
  std::size_t extra_capacity_ = TopNLive::spare(n_);
  const double shortest_;
  Thresholds thresholds_;
  float max_key_ = 0;  // max_key_by_ceiling() of the ceiling of now
  double last_start_ = 0, cutoff_ = kInfinity;
  std::size_t last_position_ = 0;
  double t_ = 0;             // of what is not judged yet, or was judged last
  std::size_t step_row_ = 0, restart_at_ = 0, effort_ = 0;
  bool step_pending_ = false, finished_ = false, better_ = false;
};

}  // namespace slotkern

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
// cheaper ones are kept (window/kept.hpp), or if it is dear: n as dear ones are over the ceiling.
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
#include "slotkern/window/kept.hpp"
#include "slotkern/window/kept_by_rank.hpp"
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
  Kept kept;
  KeptByRank by_rank;
  NCheapest top, rates;
  std::vector<Entry> chosen;
  std::vector<Part> parts, trial_parts;
  NodeOrder node_order;
  // Slots live at one time, in a list for each of `bounds`: the fastest they can serve.
  struct Joining {
    std::size_t row, before;
  };
  std::vector<Joining> joining;
  std::vector<std::size_t> last_joining;  // kNone: the list is empty
  static constexpr std::size_t kNone = ~std::size_t{0};
  // Of the nodes of a group: the least price; with all faster ones: the n-th least price, and
  // what n - 1 of them cost at least, and how far above the n / 2-th the n-th is.
  struct GroupPrices {
    double anchor, nth, least_others, rise;
  };
  // The same of the groups so far, for windows of prices.n() nodes.
  struct Priced {
    NCheapest prices;
    std::vector<GroupPrices> groups;
  };
  std::vector<Priced> priced;  // the first `known` are of PreparedSlots of this identity
  std::size_t known = 0, replaced = 0;
  BuildId priced_of;
  // A group of the square search: its span, the least a window of it costs, the least sum of
  // prices of any n - 1 of its nodes, and how prices rise.
  struct Bound {
    double span, total, least_others, nth, rise;
    std::size_t group;
  };
  std::vector<Bound> bounds;
  std::vector<std::size_t> order;
};

// After an improvement at t only nodes fast enough for a better one count: raises `others` to
// what n - 1 of these cost at least. False when no n of them fit the ceiling: nothing is better.
template <class Shape, class Goal>
bool narrow(const PreparedSlots& prepared, const Query& query, const Shape& shape,
            const Goal& goal, double t, double& least_others, NCheapest& rates) {
  constexpr std::size_t most = 64;  // beyond, the bound costs more than it saves
  if (prepared.slots.size() <= 1024) return true;  // as it does for slots that are soon swept
  const std::size_t n = static_cast<std::size_t>(query.n);
  const auto useful = [&](const Node& node) {
    return goal.useful(t, shape.length_on(node.performance));
  };
  if (prepared.nodes.size() > most && useful(prepared.nodes[most])) return true;
  rates.reset(n, 0, false);
  for (std::size_t k = 0; k < prepared.nodes.size(); ++k) {
    const Node& node = prepared.nodes[k];
    if (!useful(node)) break;  // they stand by falling performance
    if (node.performance >= query.min_performance)
      rates.offer(shape.least_rate(node), k);
  }
  if (!rates.full() || query.volume * rates.lower() * (1 - kMargin) > goal.ceiling() + kUnderflow)
    return false;
  least_others = std::max(least_others, rates.lower() - rates[n - 1].key);
  return true;
}

// One pass over the slots. What has come by a time is judged once, when all of it is there, or
// slot by slot for goals `by_step`. Kept: KeptByRank where that pays.
template <class Shape, class Goal, class Kept>
class Sweep {
 public:
  // `least_others`: lower bound on the screen keys of any n - 1 live slots together. `dear`: keys
  // from here on are not looked at before a window may need one.
  Sweep(const PreparedSlots& prepared, const Query& query, const Shape& shape, double least_others,
        Goal& goal, Workspace& work, Kept& kept, double dear = kInfinity)
      : prepared_(prepared), query_(query), shape_(shape), least_others_(least_others),
        goal_(goal), work_(work), top_(kept), n_(static_cast<std::size_t>(query.n)),
        kinds_(Shape::screen(prepared).dictionary()),
        few_kinds_(Shape::keys_by_screen && kinds_.is_exact()),
        shortest_(shape.shortest(prepared)),
        thresholds_(first_thresholds(prepared, query, shape)) {
    thresholds_.end = std::max(thresholds_.end,
                               Shape::screen(prepared).ending(query.earliest + shortest_));
    // No part starts later; the tests themselves are below.
    const double room = 4 * 0x1p-52 * (std::fabs(query.deadline) + shortest_);
    last_ = std::min(query.latest, query.deadline - shortest_ + room);
    last_position_ = prepared_.last_position();
    if (query.latest < kInfinity)  // where all begin later there may be no such position
      last_position_ = std::min(last_position_, prepared_.last_row_position_at(last_));
    top_.reset(n_, spare_, dear);
    // What is not looked at is not judged: no window may be of dear slots alone.
    if (!(shape_.total(top_.lower()) > goal_.ceiling())) top_.reset(n_, spare_);
    most_ = key_most();
    tighten();
  }

  // Says whether it found something better than goal.best.
  bool run() {
    effort_ = last_position_ / 512;  // of the screen, about
    for (std::size_t from = 0; !over_; from = next_) {
      next_ = 0;
      Shape::screen(prepared_).each(
          prepared_.order, thresholds_, from, last_position_,
          [&](std::size_t row, std::size_t position) { return take(row, position); });
      if (pending_ && !over_ && next_ == 0) judge(kAll);
      if (next_ == 0) break;
    }
    work_.effort += effort_;
    return better_;
  }

 private:
  // False: over, or the slots from `next_` on must be screened anew.
  bool take(std::size_t row, std::size_t position) {
    effort_ += 2;
    const Slot& slot = prepared_.slots[row];
    // The threshold may have fallen within the block. Where keys are few that is told here, as many
    // would tie; else what is kept tells it, or the sum, which is over the ceiling.
    if (few_kinds_ && !passes(slot, thresholds_.key)) return true;
    const double t = query_.start_in(slot);
    if (pending_ && t > t_) {
      if (!judge(kAll)) return false;
      if (few_kinds_ && !passes(slot, thresholds_.key)) return true;
    }
    if (t > last_ || goal_.past(t, shortest_)) return !(over_ = true);
    if (!helps(slot, row, t) || !top_.add(shape_.key(slot), row)) return true;
    t_ = t, row_ = row;
    if constexpr (Goal::by_step) return judge(position);
    pending_ = true;
    if (top_.cut() != cut_) tighten();
    return true;
  }

  // Of few kinds as the screen says it, where what is less may lie above the threshold.
  bool passes(const Slot& slot, float most) const {
    const double key = shape_.screen_key(slot);
    return few_kinds_ ? kinds_.code_of(key) <= most : key <= most;
  }

  bool helps(const Slot& slot, std::size_t row, double t) const {
    const double length = shape_.length(slot);
    return t + length <= query_.limit(slot) && query_.admits(slot, row) &&
           slot.performance >= shape_.performance() && goal_.useful(t, length);
  }

  // Looks whether the n cheapest of now are better. As take().
  bool judge(std::size_t position) {
    pending_ = false;
    if (top_.few()) return true;
    if constexpr (!Goal::by_step)  // else there is but one slot to absorb
      if (shape_.total(top_.hoped()) > goal_.ceiling()) return true;
    const auto keep = [&](std::size_t other) {  // all that look_again() takes, or it never ends
      const Slot& s = prepared_.slots[other];
      return passes(s, most_) && live(query_, shape_, s, t_) &&
             goal_.useful(t_, shape_.length(s));
    };
    // Where whatever has come fits the ceiling no sum rules a window out, only how many are live.
    if (top_.cut() == kInfinity && !(shape_.total(top_.most()) > goal_.ceiling())) {
      effort_ += n_;
      top_.drop(keep);
      if (top_.few()) return true;
    }
    const bool changed = top_.absorb();
    if (top_.cut() != cut_) tighten();
    if (!changed) return true;
    top_.settled();
    while (!(shape_.total(top_.lower()) > goal_.ceiling())) {
      poll();
      if (!top_.full()) {
        if (top_.cut() == kInfinity) break;
        look_again(position == kAll ? prepared_.position_at(t_) : position);
        if (!top_.full()) break;
        continue;
      }
      effort_ += n_;
      if (top_.purge(keep)) continue;
      const double total = shape_.total(top_.sum());
      if (!goal_.fits(t_, total)) break;
      record(total);
      if (goal_.enough() || !tighten_all()) return !(over_ = true);
      if (!Goal::repeats) break;
    }
    return next_ == 0;
  }

  void record(double total) {
    Best& best = goal_.best;
    best.longest = 0;
    if (Goal::times)
      top_.each([&](const Entry& entry) {
        best.longest = std::max(best.longest, shape_.length(prepared_.slots[entry.row]));
      });
    better_ = best.found = true;
    best.start = t_;
    best.total = total;
    best.finish = t_ + best.longest;
    best.nth_key = top_.nth_key();
    best.step = row_;
    if constexpr (Shape::own_lengths) {
      best.chosen = top_.distinct() && (!Goal::looks_on || prepared_.is_last_starting_by(t_, row_));
      if (best.chosen) {
        work_.chosen.resize(n_);
        Entry* to = work_.chosen.data();
        top_.each([&](const Entry& entry) { *to++ = entry; });
      }
    }
  }

  // Keeps the cheapest of all that is live now, at positions up to `last`.
  void look_again(std::size_t last) {
    spare_ = std::min(2 * spare_, n_ + kMostSpare);
    top_.reset(n_, spare_);
    Thresholds thresholds = thresholds_;
    thresholds.key = most_;
    thresholds.end =
        std::max(thresholds.end, Shape::screen(prepared_).ending(t_ + shortest_));
    double cut = kInfinity;
    Shape::screen(prepared_).each(
        prepared_.order, thresholds, 0, last, [&](std::size_t row, std::size_t) {
          effort_ += 2;
          const Slot& slot = prepared_.slots[row];
          if (!passes(slot, thresholds.key) || !helps(slot, row, t_)) return true;
          top_.add(shape_.key(slot), row);
          if (top_.cut() != cut)
            cut = top_.cut(), thresholds.key = std::min(thresholds.key, key_kept());
          return true;
        });
    top_.absorb();
    top_.settled();
    tighten();
    next_ = last + 1;
  }

  // SlotZoneMap keys that the ceiling allows, and that can be kept.
  float key_most() const {
    return std::min(goal_.probe, key_ceiling(shape_.screened(goal_.ceiling()), least_others_));
  }
  float key_kept() const {
    const float most = key_ceiling(shape_.screen_key_of(top_.cut()), 0);
    if (!few_kinds_ || top_.cut_row() == kNoRow) return most;
    // What is as dear is not kept: where many cost the same hardly one is looked at.
    const Slot& dearest = prepared_.slots[top_.cut_row()];
    return std::min(most, kinds_.predecessor_code(shape_.screen_key(dearest)));
  }

  void tighten() {
    cut_ = top_.cut();
    thresholds_.key = std::min(most_, key_kept());
  }
  // After an improvement; false when nothing is better.
  bool tighten_all() {
    if constexpr (Shape::own_lengths && Goal::narrows)
      if (!narrow(prepared_, query_, shape_, goal_, t_, least_others_, work_.rates)) return false;
    most_ = key_most();
    tighten();
    thresholds_.performance =
        std::max(thresholds_.performance,
                 round_down(goal_.least_performance(query_.volume) * (1 - kMargin)));
    return true;
  }

  static constexpr std::size_t kMostSpare = 256;  // beside n
  static constexpr std::size_t kAll = ~std::size_t{0};  // positions up to the time judged

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  double least_others_;
  Goal& goal_;
  Workspace& work_;
  Kept& top_;
  const std::size_t n_;
  const KeyDictionary& kinds_;
  const bool few_kinds_;
  std::size_t spare_ = Kept::spare(n_);
  const double shortest_;
  Thresholds thresholds_;
  float most_ = 0;  // key_most() of the ceiling of now
  double last_ = 0, cut_ = kInfinity;
  std::size_t last_position_ = 0;
  double t_ = 0;             // of what is not judged yet, or was judged last
  std::size_t row_ = 0, next_ = 0, effort_ = 0;
  bool pending_ = false, over_ = false, better_ = false;
};

}  // namespace slotkern

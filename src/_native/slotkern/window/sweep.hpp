// The sweep: one pass over the slots by start, keeping the n cheapest live ones.
//
// This is the AEP scheme of Toporkov et al. (2013, section 2.1) and the inner loop of the
// square search (2018, section 3.2). A step adds one slot; live are the slots with
// t + d <= min(end, deadline). Two policies are compiled in, nothing is dispatched inside:
//   Shape  how long a part takes and what it costs (Ragged, Charged, or Square for one group),
//   Goal   what counts as better, which slots can still help, when to stop.
//
// Exact because (1) only a step whose slot enters the n cheapest can lower their sum;
// (2) with expired slots among them the sum is a lower bound, so purging only the sums that
// would win misses nothing; (3) the screen drops a slot only if it together with the n - 1
// cheapest nodes is over the ceiling. Expected O(m / 64 + survivors * n).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "slotkern/slots/prepared.hpp"
#include "slotkern/window/cheapest.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

// Scratch of one thread; it only grows.
struct Workspace {
  NCheapest top, rates;
  std::vector<Entry> chosen;
  std::vector<Part> parts, trial_parts;
  std::vector<std::size_t> row_at;  // by place of the node
  // A group of the square search: its span, the least a window of it costs, the least sum of
  // prices of any n - 1 of its nodes.
  struct Bound {
    double span, total, least_others;
    std::size_t group;
  };
  std::vector<Bound> bounds;
  std::vector<std::size_t> order;
};

// What a sweep found: the step's time and row, the total, the longest part, and the n-th
// smallest key, which bounds the keys of the canonical window at this time.
struct Best {
  bool found = false;
  double start = 0, total = 0, longest = 0, finish = kInfinity, nth_key = 0;
  std::size_t step = 0, group = 0;
};

// Part i runs d_i = V / performance_i and costs V * rate_i. Screen keys are rates.
struct Ragged {
  static constexpr bool own_lengths = true;
  double volume;

  explicit Ragged(const Query& query) : volume(query.volume) {}

  static const Screen& screen(const PreparedSlots& prepared) { return prepared.by_rate; }
  double length_on(double performance) const { return volume / performance; }
  double length(const Slot& s) const { return length_on(s.performance); }
  double key(const Slot& s) const { return volume * s.rate; }
  double least_key(const Node& node) const {
    return volume * (node.min_price / node.performance) * (1 - kMargin);
  }
  double least_rate(const Node& node) const { return node.min_price / node.performance; }
  double screen_key(const Slot& s) const { return s.rate; }
  double total(double sum) const { return sum; }
  double screened(double total) const { return (total + kUnderflow) / volume; }  // screen units
  double screen_key_of(double key) const { return screened(key); }
  double room() const { return volume; }
  double performance() const { return 0; }
  double shortest(const PreparedSlots& prepared) const {
    return length_on(prepared.nodes.front().performance);
  }
};

// The same for a charged request: part i runs Query::length and costs so much times its price.
// No order of rates is one of costs then, but a part costs no less than its work alone, so that
// the screen of rates holds. It is loosened by what a rate may gain where it underflows. A
// rate that overflows makes a part infinitely dear, as in Ragged.
struct Charged {
  static constexpr bool own_lengths = true;
  const Query* query;

  explicit Charged(const Query& asked) : query(&asked) {}

  static const Screen& screen(const PreparedSlots& prepared) { return prepared.by_rate; }
  double length_on(double performance) const { return query->length(performance); }
  double length(const Slot& s) const { return length_on(s.performance); }
  double key(const Slot& s) const {
    return std::isinf(s.rate) ? kInfinity : cost(s.price, s.performance);
  }
  double least_key(const Node& node) const { return cost(node.min_price, node.performance); }
  double least_rate(const Node& node) const {
    return std::max(0.0, node.min_price / node.performance - kLeast);
  }
  double screen_key(const Slot& s) const { return s.rate; }
  double total(double sum) const { return sum; }
  double screened(double total) const {
    return (total + kUnderflow) / query->volume + static_cast<double>(query->n) * kLeast;
  }
  double screen_key_of(double key) const { return screened(key); }
  double room() const { return query->volume; }
  double performance() const { return 0; }
  double shortest(const PreparedSlots& prepared) const {
    return length_on(prepared.nodes.front().performance);
  }

 private:
  double cost(double price, double performance) const {  // what is free is so at any length
    return price > 0 ? price * length_on(performance) : 0;
  }

  static constexpr double kLeast = std::numeric_limits<double>::denorm_min();
};

// All parts run T = Query::length(P_k) on nodes with performance >= P_k; the window costs
// T * (sum of prices). Keys are prices.
struct Square {
  static constexpr bool own_lengths = false;
  double span, least;

  static const Screen& screen(const PreparedSlots& prepared) { return prepared.by_price; }
  double length(const Slot&) const { return span; }
  double key(const Slot& s) const { return s.price; }
  double screen_key(const Slot& s) const { return s.price; }
  double total(double sum) const { return span * sum; }
  double screened(double total) const { return (total + kUnderflow) / span; }
  double screen_key_of(double key) const { return key; }
  double room() const { return span; }
  double performance() const { return least; }
  double shortest(const PreparedSlots&) const { return span; }
};

template <class Shape>
bool live(const Query& query, const Shape& shape, const Slot& slot, double t) {
  return t + shape.length(slot) <= query.limit(slot);
}

// The screen keys of slots that fit under `ceiling` beside `others` (both sides rounded safe).
inline float key_ceiling(double ceiling, double least_others) {
  const double most = ceiling - least_others + kMargin * (ceiling + least_others);
  return std::isnan(most) ? std::numeric_limits<float>::infinity() : round_up(most);
}

template <class Shape>
Thresholds first_thresholds(const Query& query, const Shape& shape) {
  Thresholds thresholds;
  thresholds.room = round_down(shape.room() * (1 - kMargin));
  thresholds.performance = round_down(std::max(query.min_performance, shape.performance()));
  thresholds.end = round_down(query.earliest);
  return thresholds;
}

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

// Says whether it found something better than goal.best. `others`: lower bound on the screen
// keys of any n - 1 live slots together.
template <class Shape, class Goal>
bool sweep(const PreparedSlots& prepared, const Query& query, const Shape& shape,
           double least_others, Goal& goal, Workspace& work) {
  const std::size_t n = static_cast<std::size_t>(query.n), m = prepared.slots.size();
  bool better = false;
  NCheapest& top = work.top;
  top.reset(n, m);
  Thresholds thresholds = first_thresholds(query, shape);
  const auto key_most = [&] {
    return std::min(goal.probe, key_ceiling(shape.screened(goal.ceiling()), least_others));
  };
  thresholds.key = key_most();
  const double shortest = shape.shortest(prepared);
  thresholds.end = std::max(thresholds.end, round_down(query.earliest + shortest));
  // No part starts later; the tests themselves are below.
  const double room = 4 * 0x1p-52 * (std::fabs(query.deadline) + shortest);
  const double last = std::min(query.latest, query.deadline - shortest + room);
  Shape::screen(prepared).each(
      prepared.order, thresholds, prepared.last_position(), [&](std::size_t row) {
        const Slot& slot = prepared.slots[row];
        if (shape.screen_key(slot) > thresholds.key)
          return true;  // the ceiling fell within the block
        const double t = query.start_in(slot), length = shape.length(slot);
        if (t > last || goal.past(t, shortest)) return false;
        if (!(t + length <= query.limit(slot)) || !query.admits(slot, row) ||
            slot.performance < shape.performance() || !goal.useful(t, length))
          return true;
        if (!top.offer(shape.key(slot), row)) return true;
        while (top.full() && !(shape.total(top.lower()) > goal.ceiling())) {
          poll();
          if (top.purge([&](std::size_t other) {
                const Slot& s = prepared.slots[other];
                return shape.screen_key(s) <= thresholds.key && live(query, shape, s, t) &&
                       goal.useful(t, shape.length(s));
              }))
            continue;
          const double total = shape.total(top.sum());
          if (!goal.fits(t, total)) break;
          Best& best = goal.best;
          best.longest = 0;
          if (Goal::times)
            for (std::size_t i = 0; i < n; ++i)
              best.longest = std::max(best.longest, shape.length(prepared.slots[top[i].row]));
          better = best.found = true;
          best.start = t;
          best.total = total;
          best.finish = t + best.longest;
          best.nth_key = top[n - 1].key;
          best.step = row;
          if (goal.enough()) return false;
          if constexpr (Shape::own_lengths && Goal::narrows)
            if (!narrow(prepared, query, shape, goal, t, least_others, work.rates))
              return false;
          thresholds.key = key_most();
          thresholds.performance =
              std::max(thresholds.performance,
                       round_down(goal.least_performance(query.volume) * (1 - kMargin)));
        }
        return true;
      });
  return better;
}

// Goals. ceiling(): no total above it helps. past(t): no step from t on helps. useful(t, d):
// a part of length d can be in a better window. enough(): stop at once.

struct Goal {
  static constexpr bool times = true;     // needs best.longest and best.finish
  static constexpr bool narrows = false;  // worth bounding the rest by fast nodes only
  double budget;
  Best best;
  double least = -kInfinity;  // no window has a lower value: what reaches it is the best
  float probe = std::numeric_limits<float>::infinity();  // look at screen keys up to here only

  double ceiling() const { return budget; }
  bool past(double, double) const { return false; }
  bool useful(double, double) const { return true; }
  bool fits(double, double total) const { return total <= budget; }
  bool enough() const { return true; }
  double least_performance(double) const { return 0; }
};

// The first step whose n cheapest fit.
struct EarliestStart : Goal {
  bool past(double t, double) const { return best.found && t >= best.start; }
};

// The same, but all steps of that time are looked at, so that the n cheapest are the window's.
struct CheapestAtEarliestStart : Goal {
  double ceiling() const { return best.found ? best.total : budget; }
  bool past(double t, double) const { return best.found && t > best.start; }
  bool fits(double, double total) const {
    return best.found ? total < best.total : total <= budget;
  }
  bool enough() const { return false; }
};

// The same, for the earliest finish over groups: later groups are slower, so at an equal
// finish they start earlier.
struct EarliestFinishOfGroups : Goal {
  bool past(double t, double span) const {
    return best.found &&
           (t + span > best.finish || (t + span == best.finish && t >= best.start));
  }
};

struct LowestCost : Goal {
  static constexpr bool times = false;
  double ceiling() const { return best.found ? best.total : budget; }
  bool fits(double t, double total) const {
    if (!best.found) return total <= budget;
    return total < best.total || (total == best.total && t < best.start);
  }
  bool enough() const { return best.total <= least; }
};

// The longest part only ever falls: drop all that are as long, look again.
struct ShortestRuntime : Goal {
  static constexpr bool narrows = true;
  bool past(double, double shortest) const { return best.found && best.longest <= shortest; }
  bool useful(double, double length) const { return !best.found || length < best.longest; }
  bool enough() const { return best.longest <= least; }
  double least_performance(double volume) const { return volume / best.longest; }
};

// The same with t + d; the sum is rounded, hence the extra room of an ulp of the finish.
struct EarliestFinish : Goal {
  bool past(double t, double shortest) const { return best.found && t + shortest >= best.finish; }
  bool useful(double t, double length) const { return !best.found || t + length < best.finish; }
  bool enough() const { return best.finish <= least; }
  double least_performance(double volume) const {
    return volume / (best.longest + std::fabs(best.finish) * 0x1p-51);
  }
};

// The order of the tie rule.
inline bool cheaper(const PreparedSlots& prepared, const Entry& a, const Entry& b) {
  if (a.key != b.key) return a.key < b.key;
  return prepared.slots[a.row].node < prepared.slots[b.row].node;
}

// The tie rule: the n cheapest by (key, node) of the slots at positions 0..last that are live at t
// and pass `useful`, in this order, into `chosen`; whether there are n. `nth_key` and
// `least_performance` are bounds known before. Keeps a max-heap of n; its top tightens the
// screen.
template <class Shape, class Useful>
bool cheapest_at(const PreparedSlots& prepared, const Query& query, const Shape& shape, double t,
                 std::size_t last, double nth_key, double least_performance, Useful useful,
                 std::vector<Entry>& chosen) {
  const std::size_t n = static_cast<std::size_t>(query.n);
  const auto before = [&prepared](const Entry& a, const Entry& b) {
    return cheaper(prepared, a, b);
  };
  chosen.clear();
  chosen.reserve(n + 1);
  Thresholds thresholds = first_thresholds(query, shape);
  thresholds.end = std::max(thresholds.end, round_down(t));
  thresholds.key = key_ceiling(shape.screen_key_of(nth_key), 0);
  thresholds.performance =
      std::max(thresholds.performance, round_down(least_performance * (1 - kMargin)));
  Shape::screen(prepared).each(prepared.order, thresholds, last, [&](std::size_t row) {
    const Slot& s = prepared.slots[row];
    if (!live(query, shape, s, t) || !query.admits(s, row) ||
        s.performance < shape.performance() || !useful(s))
      return true;
    const Entry entry{shape.key(s), row};
    if (chosen.size() == n) {
      if (!before(entry, chosen.front())) return true;
      std::pop_heap(chosen.begin(), chosen.end(), before);
      chosen.back() = entry;
    } else {
      chosen.push_back(entry);
    }
    std::push_heap(chosen.begin(), chosen.end(), before);
    if (chosen.size() == n)
      thresholds.key =
          std::min(thresholds.key, key_ceiling(shape.screen_key_of(chosen.front().key), 0));
    return true;
  });
  std::sort_heap(chosen.begin(), chosen.end(), before);
  return chosen.size() == n;
}

}  // namespace slotkern

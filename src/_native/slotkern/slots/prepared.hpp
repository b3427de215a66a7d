// Prepared slots: what every search over the same slots shares.
//
// Rows of doubles for the exact tests, a screen per shape (slots/screen.hpp), the nodes by falling
// performance, and sums of the cheapest node rates, which bound what the other n - 1 parts of
// a window cost at least (live slots lie on distinct nodes). Build: O(m + N log N).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/slots/request.hpp"
#include "slotkern/slots/screen.hpp"
#include "slotkern/slots/view.hpp"

namespace slotkern {

struct Node {
  std::int32_t id;
  double performance;
  double min_price;  // over its slots
};

// Where a part that is cut out of a slot ends: a rest of at most 4 ulp is rounding, not time.
inline double cut_finish(double finish, double end) {
  return end - finish <= 4 * 0x1p-52 * std::fabs(finish) ? end : finish;
}

// The slots of nodes with performance >= `performance`; `end` counts their nodes.
struct Group {
  double performance;
  std::size_t end;
};

enum class ShapeKind : int { square = 0, ragged = 1 };

// What no other build is called. Each shared library counts by itself: hence whose count it is.
struct Identity {
  const void* counter = nullptr;
  std::uint64_t count = 0;
  bool operator==(const Identity&) const = default;
};

class PreparedSlots {
 public:
  std::vector<Slot> slots;
  std::vector<Node> nodes;                // by falling performance, then id
  std::vector<Group> groups;              // by falling performance
  std::vector<double> cheapest_rates;     // [k]: sum of the k smallest node rates
  Screen by_rate;                         // ragged: room = capacity in work
  Screen by_price;                        // square: room = length in time
  Identity identity;                      // of the nodes and their prices; none before build()
  double latest_start = 0, latest_end = 0;  // largest absolute ones, of ends the finite ones

  // A pool that has changed (pool/pool.hpp) keeps its slots in blocks of 64 rows with gaps among
  // them. A gap has a start and a node too, by which all rows of its block stand in the order of
  // time. Empty while there are none and all rows stand in it.
  BlockOrder order;                       // [position of a block]: its rows start at 64 times this
  std::vector<double> firsts;             // [position]: the start of its first slot
  std::vector<std::uint64_t> taken;       // [order]: bit j: row j of the block holds a slot
  std::vector<std::size_t> origins;       // [row]: the row of the array the slot came from

  std::size_t origin(std::size_t row) const { return origins.empty() ? row : origins[row]; }

  // Position in the order of time: of a row, the last one, that of the last row with a start not
  // after t.
  std::size_t position(std::size_t row) const {
    if (order.empty()) return row;
    return position_of(row / 64, slots[row].start) * 64 + row % 64;
  }
  // Of a block of rows with a slot that starts at t. Where many begin then it is looked for from
  // where it was laid out: others have come or gone before it, but few.
  std::size_t position_of(std::size_t block, double t) const {
    const std::size_t last = block_at(t), guess = std::min(block, last);
    if (order[last] == block) return last;
    for (std::size_t away = 0;; ++away) {
      if (away <= guess && order[guess - away] == block) return guess - away;
      if (away <= last - guess && order[guess + away] == block) return guess + away;
    }
  }
  std::size_t last_position() const {
    return (order.empty() ? slots.size() : order.size() * 64) - 1;
  }
  std::size_t position_at(double t) const {
    const auto begun = [t](const Slot& s) { return s.start <= t; };
    if (order.empty()) {
      const auto after = std::partition_point(slots.begin(), slots.end(), begun);
      return static_cast<std::size_t>(after - slots.begin()) - 1;
    }
    const std::size_t block = block_at(t);
    return block * 64 + count_rows(order[block] * std::size_t{64}, begun) - 1;
  }
  // The same or a later one of its block, found sooner.
  std::size_t position_near(double t) const {
    return order.empty() ? position_at(t) : block_at(t) * 64 + 63;
  }
  // Whether no slot behind that of this row begins by t. False also where its block does not tell.
  bool last_by(double t, std::size_t row) const {
    if (order.empty()) return row + 1 == slots.size() || slots[row + 1].start > t;
    const std::uint64_t behind = taken[row / 64] >> row % 64 >> 1;
    return behind && slots[row + 1 + static_cast<std::size_t>(std::countr_zero(behind))].start > t;
  }
  // How many rows of a block `holds` is true of: of so many first ones, and of none behind them.
  // Counted by eights: no step waits for the one before, and nothing is guessed.
  template <class Holds>
  std::size_t count_rows(std::size_t first, Holds holds) const {
    const Slot* rows = slots.data() + first;
    std::size_t count = 0;
    for (std::size_t k = 7; k < 64; k += 8) count += holds(rows[k]) ? 8 : 0;
    if (count == 64) return count;
    rows += count;
    for (std::size_t k = 0; k < 7; ++k) count += holds(rows[k]);
    return count;
  }
  // Position of the last block that begins at t or before, else of the first.
  std::size_t block_at(double t) const {
    const auto after = std::upper_bound(firsts.begin(), firsts.end(), t);
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - firsts.begin(), 1)) - 1;
  }
  double first_start() const { return order.empty() ? slots.front().start : firsts.front(); }
  // The largest absolute start: of a pool that has changed, where slots are cut, as they are now.
  double farthest_start() const {
    if (order.empty()) return latest_start;
    const std::uint64_t rows = taken[order.back()];
    if (rows == 0) return 0;
    const auto row = static_cast<std::size_t>(63 - std::countl_zero(rows));
    const double last = slots[order.back() * std::size_t{64} + row].start;
    return std::max(std::fabs(firsts.front()), std::fabs(last));
  }

  // At least the length of a part that the slot can hold: t + d <= end is a test on rounded
  // sums and can hold for d a little over end - t.
  static double room(const Slot& s) {
    const double ulp = std::isinf(s.end) ? 0.0 : std::fabs(s.end) * 0x1p-52;
    return s.end - s.start + 4 * ulp;
  }

  // Checks and prepares. `all` prepares both shapes; else only `shape` for n parts.
  Fault build(const SlotView& view, bool all, ShapeKind shape, std::size_t n,
              CheckScratch& scratch) {
    const Fault fault = check_slots(view, scratch);
    if (fault.status != Status::ok) return fault;
    const bool ragged = all || shape == ShapeKind::ragged,
               square = all || shape == ShapeKind::square;
    load(view, scratch);
    const double origin = slots.empty() ? 0 : slots.front().start;
    if (ragged) by_rate.reset(slots.size(), origin);
    if (square) by_price.reset(slots.size(), origin);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (i % kPollSlots == 0) poll();
      const Slot& s = slots[i];
      const double length = room(s);
      if (ragged) by_rate.put(i, s.rate, length * s.performance, s.performance, s.end);
      if (square) by_price.put(i, s.price, length, s.performance, s.end);
    }
    if (ragged) sum_cheapest(all ? nodes.size() : n);
    order_nodes();
    static std::atomic<std::uint64_t> built{0};
    identity = {&built, ++built};
    return fault;
  }

  // Takes over another's slots and nodes, rows in the order of time.
  void copy_all_but_screens(const PreparedSlots& other) {
    slots = other.slots, nodes = other.nodes, groups = other.groups;
    cheapest_rates = other.cheapest_rates;
    identity = other.identity;
    latest_start = other.latest_start, latest_end = other.latest_end;
    order.clear();
  }

  // Before several threads search at once.
  void share() const { by_rate.fold_loose(order), by_price.fold_loose(order); }

  // Lower bound on the sum of the rates of any k live slots.
  double rates_of(std::size_t k) const { return cheapest_rates[k]; }

  // Whether a search of these slots may take more than a few milliseconds.
  bool heavy(const Query& query, ShapeKind shape) const {
    const double sweeps = shape == ShapeKind::square ? static_cast<double>(groups.size()) : 1;
    return static_cast<double>(slots.size()) * static_cast<double>(query.n) * sweeps > 0x1p26;
  }

  // The same request as every search of these slots must read it: its mask by rows of origin, and
  // its most runtime said as a least performance, for no part is shorter on a slower node.
  Query as_searched(const Query& asked) const {
    Query query = asked;
    query.origins = origins.empty() ? nullptr : origins.data();
    if (asked.max_runtime == kInfinity) return query;
    const auto slower =
        std::partition_point(groups.begin(), groups.end(), [&](const Group& group) {
          return asked.length(group.performance) <= asked.max_runtime;
        });
    const double least = slower == groups.begin() ? kInfinity : std::prev(slower)->performance;
    query.min_performance = std::max(asked.min_performance, least);
    query.max_runtime = kInfinity;
    return query;
  }

  // A volume so small that the clock does not move would let one node serve twice. Windows
  // start at a slot's start or at `earliest`; `anywhere` where slots are cut or starts move.
  // Only slots that can hold a part count, so that a pool that leaves others out says the same.
  Status check(const Query& query, bool anywhere = false) const {
    if (!query.sane()) return Status::request_not_valid;
    if (nodes.empty()) return Status::ok;
    double t = std::max(farthest_start(), query.earliest);
    if (anywhere) t = std::max(t, latest_end);
    if (clock_moves(t, query.length(nodes.front().performance))) return Status::ok;

    double latest = -kInfinity;  // possible start
    const auto each_useful = [&](auto visit) {
      each_row([&](std::size_t row) {
        const Slot& s = slots[row];
        const double length = query.length(s.performance);
        if (query.admits(s, row) && query.start_in(s) + length <= query.limit(s))
          visit(s, length);
      });
    };
    each_useful([&](const Slot& s, double) {
      latest = std::max(latest, query.start_in(s));
      if (anywhere && !std::isinf(s.end)) latest = std::max(latest, query.limit(s));
    });
    latest = std::min(latest, query.latest);
    bool moves = true;
    each_useful([&](const Slot& s, double length) {
      for (const double start : {query.start_in(s), std::min(latest, query.limit(s))})
        moves = moves && clock_moves(start, length);
    });
    return moves ? Status::ok : Status::volume_too_small;
  }

  // Calls visit(row) for every slot in the order of time.
  template <class Visit>
  void each_row(Visit visit) const {
    if (order.empty())
      for (std::size_t row = 0; row < slots.size(); ++row) visit(row);
    for (const auto block : order)
      for (std::uint64_t rows = taken[block]; rows; rows &= rows - 1)
        visit(block * std::size_t{64} + static_cast<std::size_t>(std::countr_zero(rows)));
  }

 private:
  void load(const SlotView& view, CheckScratch& scratch) {
    std::vector<std::int32_t> places(scratch.index.size(), -1);
    nodes.clear();
    reserve_far(slots, view.size);
    slots.resize(view.size);
    latest_start = latest_end = 0;
    for (std::size_t i = 0; i < view.size; ++i) {
      if (i % kPollSlots == 0) poll();
      const Record r = Record::of(view, i);
      std::int32_t& place = places[scratch.index.cell(r.node)];
      if (place < 0) {
        place = static_cast<std::int32_t>(nodes.size());
        nodes.push_back({r.node, r.performance, r.price});
      }
      Node& node = nodes[static_cast<std::size_t>(place)];
      node.min_price = std::min(node.min_price, r.price);
      slots[i] = {r.start, r.end, r.performance, r.price, r.price / r.performance, r.node, place};
      latest_start = std::max(latest_start, std::fabs(r.start));
      if (!std::isinf(r.end)) latest_end = std::max(latest_end, std::fabs(r.end));
    }
  }

  void sum_cheapest(std::size_t most) {
    most = std::min(most, nodes.size());
    std::vector<double> rates;
    rates.reserve(nodes.size());
    for (const Node& node : nodes) rates.push_back(node.min_price / node.performance);
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(most);
    const auto less = [](double a, double b) {
      poll();
      return a < b;
    };
    std::nth_element(rates.begin(), middle, rates.end(), less);
    std::sort(rates.begin(), middle, less);
    cheapest_rates.assign(1, 0.0);
    for (std::size_t k = 0; k < most; ++k)
      cheapest_rates.push_back(cheapest_rates.back() + rates[k]);
  }

  void order_nodes() {
    struct Ranked {
      double performance;
      std::int32_t id, place;
    };
    std::vector<Ranked> ranked(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k)
      ranked[k] = {nodes[k].performance, nodes[k].id, static_cast<std::int32_t>(k)};
    std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
      poll();
      return a.performance != b.performance ? a.performance > b.performance : a.id < b.id;
    });
    std::vector<std::int32_t> rank(nodes.size());
    std::vector<Node> sorted(nodes.size());
    for (std::size_t k = 0; k < ranked.size(); ++k) {
      const auto place = static_cast<std::size_t>(ranked[k].place);
      rank[place] = static_cast<std::int32_t>(k);
      sorted[k] = nodes[place];
    }
    nodes.swap(sorted);
    for (Slot& slot : slots) slot.place = rank[static_cast<std::size_t>(slot.place)];
    groups.clear();
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (groups.empty() || groups.back().performance != nodes[k].performance)
        groups.push_back({nodes[k].performance, k});
      groups.back().end = k + 1;
    }
  }
};

}  // namespace slotkern

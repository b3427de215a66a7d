// Prepared slots: what every search over the same slots shares.
//
// Rows of doubles for the exact tests, a screen per shape (slots/zone_map.hpp), the nodes by falling
// performance, and sums of the cheapest node rates, which bound what the other n - 1 parts of
// a window cost at least (live slots lie on distinct nodes). Build: O(m + N log N).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/lazy.hpp"
#include "slotkern/base/sort_by_key.hpp"
#include "slotkern/slots/key_dictionary.hpp"
#include "slotkern/slots/nodes.hpp"
#include "slotkern/slots/request.hpp"
#include "slotkern/slots/view.hpp"
#include "slotkern/slots/zone_map.hpp"

namespace slotkern {

// Where a part that is cut out of a slot ends: a rest of at most 4 ulp is rounding, not time.
inline double snap_finish(double finish, double end) {
  return end - finish <= 4 * 0x1p-52 * std::fabs(finish) ? end : finish;
}

// The slots of nodes with performance >= `performance`; `end` counts their nodes.
struct Group {
  double performance;
  std::size_t end;
  double least_rate, least_price;
};

enum class ShapeKind : int { square = 0, ragged = 1 };

// What no other build is called. Each shared library counts by itself: hence whose count it is.
struct BuildId {
  const void* counter = nullptr;
  std::uint64_t count = 0;
  bool operator==(const BuildId&) const = default;
};

class PreparedSlots {
 public:
  static constexpr float kNoNode = std::numeric_limits<float>::infinity();
  LargeVector<Slot> slots;
  std::vector<Node> nodes;                // by falling performance, then id
  std::vector<Group> groups;              // by falling performance
  std::vector<double> cheapest_rates;     // [k]: sum of the k smallest node rates
  SlotZoneMap by_rate;                         // ragged: capacity = capacity in work
  // [entry of a block, padded to 64]: no node of its slots is less. For the tie rule, where many
  // slots cost the same.
  LargeVector<float> min_node_ids;
  BuildId identity;                      // of the nodes and their prices; none before build()
  bool one_price = false;                 // each node has, of all its slots
  double latest_start = 0, latest_end = 0;  // largest absolute ones, of ends the finite ones

  // A pool that has changed (pool/pool.hpp) keeps its slots in blocks of 64 rows with gaps among
  // them. A gap has a start and a node too, by which all rows of its block stand in the order of
  // time. Empty while there are none and all rows stand in it.
  BlockDirectory order;                           // the rows of a block start at 64 times its number
  std::vector<std::uint64_t> occupied;       // [block]: bit j: row j of it holds a slot
  LargeVector<std::size_t> origins;       // [row]: the row of the array the slot came from

  // For square searches, made when the first comes: capacity = length in time.
  const SlotZoneMap& by_price() const {
    return by_price_.get([this] { return screen_by_price(); });
  }
  SlotZoneMap* by_price_if_built() const { return by_price_.get_if_ready(); }  // null: none has come

  // Where each node has one price: made when the first asks.
  const NodeRateOrder& rate_order() const {
    return rate_order_.get([this] { return NodeRateOrder::by_rate(nodes); });
  }

  std::size_t origin(std::size_t row) const { return origins.empty() ? row : origins[row]; }

  // Position in the order of time: of a row, the last one, that of the last row with a start not
  // after t; one before the first, which is the largest number, where none has.
  std::size_t position(std::size_t row) const {
    if (order.empty()) return row;
    return order.position_of(order.entry_of(row / 64)) * 64 + row % 64;
  }
  std::size_t last_position() const {
    if (order.empty()) return slots.size() - 1;
    return order.position_of(order.last_entry()) * 64 + 63;
  }
  std::size_t position_at(double t) const {
    const auto begun = [t](const Slot& s) { return s.start <= t; };
    if (order.empty()) {
      const auto after = std::partition_point(slots.begin(), slots.end(), begun);
      return static_cast<std::size_t>(after - slots.begin()) - 1;
    }
    const std::size_t entry = order.last_starting_by(t);
    return order.position_of(entry) * 64 + count_prefix(order.block(entry) * 64, begun) - 1;
  }
  // The same or a later one of its block, found sooner.
  std::size_t last_row_position_at(double t) const {
    return order.empty() ? position_at(t) : order.position_of(order.last_starting_by(t)) * 64 + 63;
  }
  // Whether no slot behind that of this row begins by t. False also where its block does not tell.
  bool is_last_starting_by(double t, std::size_t row) const {
    if (order.empty()) return row + 1 == slots.size() || slots[row + 1].start > t;
    const std::uint64_t behind = occupied[row / 64] >> row % 64 >> 1;
    return behind && slots[row + 1 + static_cast<std::size_t>(std::countr_zero(behind))].start > t;
  }
  // How many rows of a block `holds` is true of: of so many first ones, and of none behind them.
  // Counted by eights: no step waits for the one before, and nothing is guessed.
  template <class Holds>
  std::size_t count_prefix(std::size_t first, Holds holds) const {
    const Slot* rows = slots.data() + first;
    std::size_t count = 0;
    for (std::size_t k = 7; k < 64; k += 8) count += holds(rows[k]) ? 8 : 0;
    if (count == 64) return count;
    rows += count;
    for (std::size_t k = 0; k < 7; ++k) count += holds(rows[k]);
    return count;
  }
  double first_start() const {
    return order.empty() ? slots.front().start : order.min_start(order.first_entry());
  }
  // The largest absolute start: of a pool that has changed, where slots are cut, as they are now.
  double max_abs_start() const {
    if (order.empty()) return latest_start;
    const std::size_t block = order.block(order.last_entry());
    const std::uint64_t rows = occupied[block];
    if (rows == 0) return 0;
    const auto row = static_cast<std::size_t>(63 - std::countl_zero(rows));
    return std::max(std::fabs(first_start()), std::fabs(slots[block * 64 + row].start));
  }

  // At least the length of a part that the slot can hold: t + d <= end is a test on rounded
  // sums and can hold for d a little over end - t.
  static double capacity(const Slot& s) {
    return s.end - s.start + 4 * 0x1p-52 * std::fabs(s.end);
  }

  // Checks and prepares for both shapes, or only for n parts of this one.
  Fault build(const SlotView& view, bool all, ShapeKind shape, std::size_t n,
              CheckScratch& scratch) {
    const Fault fault = check_slots(view, scratch);
    if (fault.status != Status::ok) return fault;
    const bool ragged = all || shape == ShapeKind::ragged;
    rank_nodes(scratch);
    // Of all slots there will ever be: those that are booked meanwhile stand in no row.
    one_price = scratch.new_prices == nodes.size();
    rate_order_.drop();
    const auto rate_of = [](double price, double performance) { return price / performance; };
    const auto price_of = [](double price, double) { return price; };
    by_rate.set_dictionary(ragged ? dictionary(view, one_price, rate_of) : KeyDictionary());
    price_dictionary_ = all || !ragged ? dictionary(view, one_price, price_of) : KeyDictionary();
    const std::int32_t* places = scratch.places.data();
    if (scratch.index.dense())
      load(view, ragged, [=](std::int32_t id) { return places[id]; });
    else
      load(view, ragged, [&](std::int32_t id) { return places[scratch.index.number(id)]; });
    if (ragged) sum_cheapest(all ? nodes.size() : n);
    static std::atomic<std::uint64_t> built{0};
    identity = {&built, ++built};
    return fault;
  }

  // Takes over another's slots and nodes, rows in the order of time.
  void copy_without_zone_maps(const PreparedSlots& other) {
    slots = other.slots, nodes = other.nodes, groups = other.groups;
    cheapest_rates = other.cheapest_rates;
    identity = other.identity;
    latest_start = other.latest_start, latest_end = other.latest_end;
    order.clear();
    by_rate.set_dictionary(other.by_rate.dictionary());
    price_dictionary_ = other.price_dictionary_;
    by_price_.drop();
    one_price = other.one_price;
    rate_order_ = other.rate_order_;
  }

  // While several threads search at once: what searches note is noted before, or not at all. Of
  // rows that never change they note nothing.
  class ConcurrentReadGuard {
   public:
    ConcurrentReadGuard(const PreparedSlots& prepared, ShapeKind shape)
        : screen_(shape == ShapeKind::square ? prepared.by_price() : prepared.by_rate),
          changes_(!prepared.order.empty()) {
      if (changes_) screen_.freeze(prepared.order);
    }
    ~ConcurrentReadGuard() {
      if (changes_) screen_.unfreeze();
    }
    ConcurrentReadGuard(const ConcurrentReadGuard&) = delete;
    ConcurrentReadGuard& operator=(const ConcurrentReadGuard&) = delete;

   private:
    const SlotZoneMap& screen_;
    const bool changes_;
  };

  // Lower bound on the sum of the rates of any k live slots.
  double min_rate_sum(std::size_t k) const { return cheapest_rates[k]; }

  // The slowest group of nodes of at least this performance; none: null.
  const Group* slowest_group_at_least(double performance) const {
    const auto slower = std::partition_point(
        groups.begin(), groups.end(),
        [performance](const Group& group) { return group.performance >= performance; });
    return slower == groups.begin() ? nullptr : &*std::prev(slower);
  }

  // Whether a search of these slots may take more than a few milliseconds.
  bool is_long_running(const Query& query, ShapeKind shape) const {
    const double sweeps = shape == ShapeKind::square ? static_cast<double>(groups.size()) : 1;
    return static_cast<double>(slots.size()) * static_cast<double>(query.n) * sweeps > 0x1p26;
  }

  // The same request as every search of these slots must read it: its mask by rows of origin, and
  // its most runtime said as a least performance, for no part is shorter on a slower node.
  Query normalized_for_search(const Query& asked) const {
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
    if (!query.is_valid()) return Status::request_not_valid;
    if (nodes.empty()) return Status::ok;
    double t = std::max(max_abs_start(), query.earliest);
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
    order.each([&](std::size_t entry) {
      const std::size_t block = order.block(entry);
      for (std::uint64_t rows = occupied[block]; rows; rows &= rows - 1)
        visit(block * 64 + static_cast<std::size_t>(std::countr_zero(rows)));
    });
  }

 private:
  // The nodes by falling performance, then id, and the place of each.
  void rank_nodes(CheckScratch& scratch) {
    struct Ranked {
      std::uint64_t key;
      std::int32_t id, number;
      auto operator<=>(const Ranked&) const = default;
    };
    std::vector<Ranked> ranked;
    for (std::size_t k = 0; k < scratch.node_summaries.size(); ++k) {
      const std::int32_t id = scratch.node_summaries[k].id;
      if (id >= 0)
        ranked.push_back({static_cast<std::uint64_t>(id), id, static_cast<std::int32_t>(k)});
    }
    if (!scratch.index.dense()) sort_by_key(ranked);
    for (Ranked& node : ranked)
      node.key = ~key_of(scratch.node_summaries[static_cast<std::size_t>(node.number)].performance);
    sort_by_key(ranked);

    scratch.places.resize(scratch.node_summaries.size());
    nodes.clear(), groups.clear();
    for (const Ranked& node : ranked) {
      const auto number = static_cast<std::size_t>(node.number);
      const CheckScratch::NodeSummary& seen = scratch.node_summaries[number];
      scratch.places[number] = static_cast<std::int32_t>(nodes.size());
      nodes.push_back({seen.id, seen.performance, seen.min_price});
      if (groups.empty())
        groups.push_back({seen.performance, 0, kInfinity, kInfinity});
      else if (groups.back().performance != seen.performance)
        groups.push_back(groups.back());
      Group& group = groups.back();
      group.performance = seen.performance;
      group.end = nodes.size();
      group.least_rate = std::min(group.least_rate, seen.min_price / seen.performance);
      group.least_price = std::min(group.least_price, seen.min_price);
    }
  }

  // In one pass, block by block: what is large is written once and not read again.
  template <class PlaceOf>
  void load(const SlotView& view, bool ragged, PlaceOf place_of) {
    const double origin = view.size == 0 ? 0 : Record::of(view, 0).start;
    slots.clear();
    slots.reserve(view.size);
    by_rate.open(ragged ? view.size : 0, origin);
    by_price_.drop();
    min_node_ids.clear();
    min_node_ids.resize((view.size + 4095) / 4096 * 64, kNoNode);
    latest_end = 0;
    ZoneMapRows rows;
    for (std::size_t first = 0; first < view.size; first += 64) {
      poll();
      const std::size_t end = std::min(view.size, first + 64);
      std::int32_t least = std::numeric_limits<std::int32_t>::max();
      for (std::size_t i = first; i < end; ++i) {
        const Record r = Record::of(view, i);
        slots.push_back({r.start, r.end, r.performance, r.price, r.price / r.performance, r.node,
                         place_of(r.node)});
        latest_end = std::max(latest_end, std::isinf(r.end) ? 0 : std::fabs(r.end));
        least = std::min(least, r.node);
      }
      min_node_ids[first / 64] = round_down(least);
      if (!ragged) continue;
      for (std::size_t i = first; i < end; ++i) {
        const Slot& s = slots[i];
        rows.put(i - first, s.rate, capacity(s) * s.performance, s.performance, s.end);
      }
      rows.end_at(end - first);
      by_rate.append(rows);
    }
    latest_start = slots.empty() ? 0 : std::max(std::fabs(origin), std::fabs(slots.back().start));
  }

  SlotZoneMap screen_by_price() const {
    SlotZoneMap screen;
    screen.set_dictionary(price_dictionary_);
    if (slots.size() > kLongRunningSlots) enable_interrupts();
    if (order.empty()) {
      screen.open(slots.size(), by_rate.origin());
      ZoneMapRows rows;
      for (std::size_t first = 0; first < slots.size(); first += 64) {
        poll();
        const std::size_t end = std::min(slots.size(), first + 64);
        for (std::size_t i = first; i < end; ++i) {
          const Slot& s = slots[i];
          rows.put(i - first, s.price, capacity(s), s.performance, s.end);
        }
        rows.end_at(end - first);
        screen.append(rows);
      }
    } else {
      screen.reset(slots.size(), by_rate.origin(), last_position() / 64 + 1, order.entries());
      each_row([&](std::size_t row) {
        const Slot& s = slots[row];
        screen.set(row, s.price, capacity(s), s.performance, s.end);
      });
      order.each([&](std::size_t entry) { screen.recompute_bounds(entry, order.block(entry) * 64); });
    }
    return screen;
  }

  void sum_cheapest(std::size_t most) {
    struct Rate {
      std::uint64_t key;
      auto operator<=>(const Rate&) const = default;
    };
    std::vector<Rate> rates;
    rates.reserve(nodes.size());
    for (const Node& node : nodes) rates.push_back({key_of(node.min_price / node.performance)});
    if (most < rates.size()) {
      std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(most),
                       rates.end(), [](const Rate& a, const Rate& b) {
                         poll();
                         return a < b;
                       });
      rates.resize(most);
    }
    sort_by_key(rates);
    cheapest_rates.assign(1, 0.0);
    cheapest_rates.reserve(rates.size() + 1);
    for (const Rate& rate : rates)
      cheapest_rates.push_back(cheapest_rates.back() + std::bit_cast<double>(rate.key));
  }

  // The keys of all slots, where many nodes freeze each (slots/key_dictionary.hpp).
  template <class KeyOf>
  KeyDictionary dictionary(const SlotView& view, bool by_node, KeyOf key_of) const {
    const std::size_t most = kKeyIndexThreshold == 0 ? nodes.size() : nodes.size() / 8;
    return KeyDictionary(most, [&](auto visit) {
      for (std::size_t k = 0; by_node && k < nodes.size(); ++k)
        if (!visit(key_of(nodes[k].min_price, nodes[k].performance))) return;
      for (std::size_t i = 0; !by_node && i < view.size; ++i) {
        if (i % kSlotsPerPoll == 0) poll();
        const Record r = Record::of(view, i);
        if (!visit(key_of(r.price, r.performance))) return;
      }
    });
  }

  Lazy<SlotZoneMap> by_price_;
  Lazy<NodeRateOrder> rate_order_;
  KeyDictionary price_dictionary_;  // for by_price(), until it is made
};

}  // namespace slotkern

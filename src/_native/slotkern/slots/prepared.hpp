// Prepared slots: the data shared by all searches over the same slots.
//
// Contains the slots as doubles for exact tests, a zone map per shape (slots/zone_map.hpp), the
// nodes by descending performance, and prefix sums of the lowest node rates. Live slots lie on
// distinct nodes, so these sums are lower bounds on the cost of the other n - 1 parts of a window.
// Build: O(m + N log N) for m slots of N nodes.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "slotkern/base/lazy.hpp"
#include "slotkern/base/sort_by_key.hpp"
#include "slotkern/slots/index_options.hpp"
#include "slotkern/slots/key_dictionary.hpp"
#include "slotkern/slots/nodes.hpp"
#include "slotkern/slots/request.hpp"
#include "slotkern/slots/view.hpp"
#include "slotkern/slots/zone_map.hpp"

namespace slotkern {

// The end of a part cut out of a slot: a remainder of at most 4 ulp is rounding error and is
// dropped.
inline double snap_finish(double finish, double end) {
  return end - finish <= 4 * 0x1p-52 * std::fabs(finish) ? end : finish;
}

// The slots of nodes with performance >= `performance`; `end` is the number of these nodes.
struct Group {
  double performance;
  std::size_t end;
  double least_rate, least_price;  // over these nodes
};

enum class ShapeKind : int { square = 0, ragged = 1 };

class ChangingPrices;

// Process-unique id of a build. Each shared library has its own counter, whose address is part of
// the id.
struct BuildId {
  const void* counter = nullptr;
  std::uint64_t count = 0;
  bool operator==(const BuildId&) const = default;
};

class PreparedSlots {
 public:
  static constexpr float kNoNode = std::numeric_limits<float>::infinity();

  explicit PreparedSlots(const IndexOptions& with = {}) : options(with) {
    by_rate.configure(options, {});
  }

  IndexOptions options;
  LargeVector<Slot> slots;
  std::vector<Node> nodes;  // by descending performance, then id
  std::vector<Group> groups;  // by descending performance
  std::vector<double> least_prices;  // [block of kNodesPerBlock nodes]: lowest price
  std::vector<double> cheapest_rates;  // [k]: sum of the k lowest node rates
  SlotZoneMap by_rate;  // for ragged searches: key = rate, capacity in units of work
  // [directory entry of a block, padded to 64]: smallest node id of its slots, rounded down, for
  // the tie rule.
  LargeVector<float> min_node_ids;
  BuildId identity;  // of the nodes and their prices; null before build()
  bool one_price = false;  // every node has one price in all its slots
  // Prices that change while a part runs (window/changing_prices.hpp); null: none do.
  std::shared_ptr<const ChangingPrices> tariffs;
  bool has_tariffs() const { return tariffs != nullptr; }
  double latest_start = 0, latest_end = 0;  // largest absolute values; of ends, the finite ones

  // A pool that has changed (pool/pool.hpp) stores its slots in blocks of 64 rows with gaps. A gap
  // has a start and a node too, so that all rows of a block are in time order. The next three are
  // empty while there are no gaps and all rows are in time order.
  BlockDirectory order;  // block b has the rows from 64 * b on
  std::vector<std::uint64_t> occupied;  // [block]: bit j is set if row j of it holds a slot
  LargeVector<std::size_t> origins;  // [row]: row of the original array

  // Zone map for square searches (key = price, capacity in units of time), built at first use.
  const SlotZoneMap& by_price() const {
    return by_price_.get([this] { return build_by_price(); });
  }
  SlotZoneMap* by_price_if_built() const { return by_price_.get_if_ready(); }  // null: not built

  std::size_t origin(std::size_t row) const { return origins.empty() ? row : origins[row]; }

  // Position in time order: of a row; of the last row; of the last row with start <= t, or SIZE_MAX
  // if there is none.
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
  // The last position of the block that contains position_at(t); faster.
  std::size_t last_row_position_at(double t) const {
    return order.empty() ? position_at(t) : order.position_of(order.last_starting_by(t)) * 64 + 63;
  }
  // True if no slot after this row starts by t. Also false if its block has no later slot.
  bool is_last_starting_by(double t, std::size_t row) const {
    if (order.empty()) return row + 1 == slots.size() || slots[row + 1].start > t;
    const std::uint64_t behind = occupied[row / 64] >> row % 64 >> 1;
    return behind && slots[row + 1 + static_cast<std::size_t>(std::countr_zero(behind))].start > t;
  }
  // The number of rows of the block at `first` for which `holds` is true: a prefix of the block.
  // Counts in steps of eight without branches or dependent loads.
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
  // Largest absolute start; computed from the current rows of a pool that has changed.
  double max_abs_start() const {
    if (order.empty()) return latest_start;
    const std::size_t block = order.block(order.last_entry());
    const std::uint64_t rows = occupied[block];
    if (rows == 0) return 0;
    const auto row = static_cast<std::size_t>(63 - std::countl_zero(rows));
    return std::max(std::fabs(first_start()), std::fabs(slots[block * 64 + row].start));
  }

  // Upper bound on the length of a part that fits the slot: the rounded test t + d <= end can hold
  // for d slightly above end - t.
  static double capacity(const Slot& s) {
    return s.end - s.start + 4 * 0x1p-52 * std::fabs(s.end);
  }

  // Validates and prepares the slots for both shapes if `all`, otherwise for windows of n parts of
  // `shape`.
  Fault build(const SlotView& view, bool all, ShapeKind shape, std::size_t n,
              CheckScratch& scratch) {
    const Fault fault = check_slots(view, scratch);
    if (fault.status != Status::ok) return fault;
    const bool ragged = all || shape == ShapeKind::ragged;
    rank_nodes(scratch);
    tariffs.reset();
    // Covers all slots that may ever be free: slots that are booked have no row at that time.
    one_price = scratch.new_prices == nodes.size();
    const auto rate_of = [](double price, double performance) { return price / performance; };
    const auto price_of = [](double price, double) { return price; };
    by_rate.configure(options, ragged ? dictionary(view, one_price, rate_of) : KeyDictionary());
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

  // Copies slots, nodes and dictionaries; rows are in time order and the zone maps must be rebuilt.
  void copy_without_zone_maps(const PreparedSlots& other) {
    options = other.options;
    slots = other.slots, nodes = other.nodes, groups = other.groups;
    least_prices = other.least_prices;
    cheapest_rates = other.cheapest_rates;
    identity = other.identity, tariffs = other.tariffs;
    latest_start = other.latest_start, latest_end = other.latest_end;
    order.clear();
    by_rate.configure(options, other.by_rate.dictionary());
    price_dictionary_ = other.price_dictionary_;
    by_price_.drop();
    one_price = other.one_price;
  }

  // Brings the zone map of the shape up to date, so that concurrent searches write nothing.
  void prepare_concurrent_reads(ShapeKind shape) const {
    const SlotZoneMap& zone_map = shape == ShapeKind::square ? by_price() : by_rate;
    if (!order.empty()) zone_map.refresh(order);
  }

  // Lower bound on the sum of the rates of any k live slots.
  double min_rate_sum(std::size_t k) const { return cheapest_rates[k]; }

  // The slowest group with at least this performance, or null.
  const Group* slowest_group_at_least(double performance) const {
    const auto slower = std::partition_point(
        groups.begin(), groups.end(),
        [performance](const Group& group) { return group.performance >= performance; });
    return slower == groups.begin() ? nullptr : &*std::prev(slower);
  }

  // True if a search may take more than a few milliseconds.
  bool is_long_running(const Query& query, ShapeKind shape) const {
    const double sweeps = shape == ShapeKind::square ? static_cast<double>(groups.size()) : 1;
    return static_cast<double>(slots.size()) * static_cast<double>(query.n) * sweeps > 0x1p26;
  }

  // Rewrites a request for these slots: the mask is read by origin row, and max_runtime becomes a
  // minimum performance, which is equivalent because no part is shorter on a slower node.
  Query normalized_for_search(const Query& given) const {
    Query query = given;
    query.origins = origins.empty() ? nullptr : origins.data();
    if (given.max_runtime == kInfinity) return query;
    const auto slower =
        std::partition_point(groups.begin(), groups.end(), [&](const Group& group) {
          return given.length(group.performance) <= given.max_runtime;
        });
    const double least = slower == groups.begin() ? kInfinity : std::prev(slower)->performance;
    query.min_performance = std::max(given.min_performance, least);
    query.max_runtime = kInfinity;
    return query;
  }

  // Rejects a volume that does not advance the clock, since one node could then serve twice.
  // Windows start at a slot's start or at `earliest`, or, if `anywhere`, at other times too (slots
  // are cut or starts move). Only slots that can hold a part count, so the result is the same for a
  // pool that omits other slots.
  Status check(const Query& query, bool anywhere = false) const {
    if (!query.is_valid()) return Status::request_not_valid;
    if (nodes.empty()) return Status::ok;
    double t = std::max(max_abs_start(), query.earliest);
    if (anywhere) t = std::max(t, latest_end);
    if (clock_moves(t, query.length(nodes.front().performance))) return Status::ok;

    double latest = -kInfinity;  // latest possible start
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

  // Calls visit(row) for every slot in time order.
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
  // Sorts the nodes by descending performance, then id, and builds the groups.
  void rank_nodes(CheckScratch& scratch) {
    struct PerformanceKey {
      std::uint64_t key;
      std::int32_t id, number;
      auto operator<=>(const PerformanceKey&) const = default;
    };
    std::vector<PerformanceKey> ranked;
    for (std::size_t k = 0; k < scratch.node_summaries.size(); ++k) {
      const std::int32_t id = scratch.node_summaries[k].id;
      if (id >= 0)
        ranked.push_back({static_cast<std::uint64_t>(id), id, static_cast<std::int32_t>(k)});
    }
    if (!scratch.index.dense()) sort_by_key(ranked);
    for (PerformanceKey& node : ranked)
      node.key = ~key_of(scratch.node_summaries[static_cast<std::size_t>(node.number)].performance);
    sort_by_key(ranked);

    scratch.places.resize(scratch.node_summaries.size());
    nodes.clear(), groups.clear(), least_prices.clear();
    for (const PerformanceKey& node : ranked) {
      const auto number = static_cast<std::size_t>(node.number);
      const CheckScratch::NodeSummary& seen = scratch.node_summaries[number];
      scratch.places[number] = static_cast<std::int32_t>(nodes.size());
      if (nodes.size() % kNodesPerBlock == 0) least_prices.push_back(kInfinity);
      least_prices.back() = std::min(least_prices.back(), seen.min_price);
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

  // Copies slots and builds the zone map block by block in one pass, so that large arrays are
  // written once and not read again.
  template <class PlaceOf>
  void load(const SlotView& view, bool ragged, PlaceOf place_of) {
    const double origin = view.size == 0 ? 0 : Record::load(view, 0).start;
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
        const Record r = Record::load(view, i);
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

  SlotZoneMap build_by_price() const {
    SlotZoneMap zone_map;
    zone_map.configure(options, price_dictionary_);
    if (slots.size() > kLongRunningSlots) enable_interrupts();
    if (order.empty()) {
      zone_map.open(slots.size(), by_rate.origin());
      ZoneMapRows rows;
      for (std::size_t first = 0; first < slots.size(); first += 64) {
        poll();
        const std::size_t end = std::min(slots.size(), first + 64);
        for (std::size_t i = first; i < end; ++i) {
          const Slot& s = slots[i];
          rows.put(i - first, s.price, capacity(s), s.performance, s.end);
        }
        rows.end_at(end - first);
        zone_map.append(rows);
      }
    } else {
      zone_map.reset(slots.size(), by_rate.origin(), last_position() / 64 + 1, order.entries());
      each_row([&](std::size_t row) {
        const Slot& s = slots[row];
        zone_map.set(row, s.price, capacity(s), s.performance, s.end);
      });
      order.each(
          [&](std::size_t entry) { zone_map.recompute_bounds(entry, order.block(entry) * 64); });
    }
    return zone_map;
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

  // Dictionary of the keys of all slots, used if enough nodes share each key.
  template <class KeyOf>
  KeyDictionary dictionary(const SlotView& view, bool by_node, KeyOf key_of) const {
    const std::size_t most = nodes.size() / options.min_nodes_per_key;
    return KeyDictionary(most, [&](auto visit) {
      for (std::size_t k = 0; by_node && k < nodes.size(); ++k)
        if (!visit(key_of(nodes[k].min_price, nodes[k].performance))) return;
      for (std::size_t i = 0; !by_node && i < view.size; ++i) {
        if (i % kSlotsPerPoll == 0) poll();
        const Record r = Record::load(view, i);
        if (!visit(key_of(r.price, r.performance))) return;
      }
    });
  }

  Lazy<SlotZoneMap> by_price_;
  KeyDictionary price_dictionary_;  // for by_price()
};

}  // namespace slotkern

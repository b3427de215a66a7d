// The rows of a changing pool against a sorted list of the same slots.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "slotkern/pool/slot_tree.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

using Key = std::pair<double, std::int32_t>;  // start, node
using List = std::map<Key, SlotWithOrigin>;

Slot slot_of(double start, double end, std::int32_t node) {
  const double performance = 1 + node % 4, price = 1 + node % 7;
  return {start, end, performance, price, price / performance, node, node};
}

std::vector<std::size_t> passing_rows(const PreparedSlots& prepared, const SlotZoneMap& zone_map,
                                const Thresholds& thresholds) {
  std::vector<std::size_t> rows;
  zone_map.each(prepared.order, thresholds, prepared.last_position(), [&](std::size_t row) {
    rows.push_back(row);
    return true;
  });
  return rows;
}

// Each row that meets the thresholds passes the zone map, in the order of time; no gap passes.
template <class KeyOf, class RoomOf>
void check_zone_map(const PreparedSlots& prepared, const SlotZoneMap& zone_map, KeyOf key,
                    RoomOf room) {
  Thresholds thresholds;
  std::vector<std::size_t> all, wanted;
  prepared.each_row([&](std::size_t row) { all.push_back(row); });
  CHECK(passing_rows(prepared, zone_map, Thresholds{}) == all);
  // Thresholds that one of the rows just meets, sometimes the one of largest capacity.
  const auto smaller = [&](std::size_t a, std::size_t b) {
    return room(prepared.slots[a]) < room(prepared.slots[b]);
  };
  const Slot& some = prepared.slots[below(2) ? all[below(all.size())]
                                             : *std::max_element(all.begin(), all.end(), smaller)];
  if (below(2)) thresholds.key = round_up(key(some));
  if (below(4)) thresholds.capacity = round_down(room(some));
  double end = -kInfinity;
  if (below(2)) end = some.end, thresholds.end = zone_map.ending(end);
  for (const std::size_t row : all) {
    const Slot& s = prepared.slots[row];
    if (key(s) <= thresholds.key && room(s) >= thresholds.capacity && s.end >= end)
      wanted.push_back(row);
  }
  const std::vector<std::size_t> found = passing_rows(prepared, zone_map, thresholds);
  std::size_t at = 0;
  for (const std::size_t row : found) at += at < wanted.size() && wanted[at] == row;
  CHECK(at == wanted.size());
}

void check_rows(const PreparedSlots& prepared, const SlotTree& rows, const List& list) {
  CHECK(rows.size() == list.size());
  auto next = list.begin();
  prepared.each_row([&](std::size_t row) {
    if (next == list.end()) return CHECK(!"more rows than slots");
    const Slot &s = prepared.slots[row], &wanted = next->second.first;
    CHECK(s.start == wanted.start && s.end == wanted.end && s.node == wanted.node &&
          s.rate == wanted.rate && prepared.origin(row) == next->second.second);
    ++next;
  });
  CHECK(next == list.end());

  std::size_t blocks = 0, all = 0;
  prepared.order.each([&](std::size_t entry) {
    const std::size_t id = prepared.order.block(entry);
    const Slot* first = prepared.slots.data() + id * 64;
    for (std::size_t k = 1; k < 64; ++k)  // a gap comes after the slot of its time
      CHECK(prepared.occupied[id] >> k & 1 ? SlotTree::before(first[k - 1], first[k])
                                        : !SlotTree::before(first[k], first[k - 1]));
    for (std::uint64_t rows = prepared.occupied[id]; rows; rows &= rows - 1)
      CHECK(prepared.min_node_ids[entry] <=
            static_cast<float>(first[std::countr_zero(rows)].node));
    ++all;
    blocks += prepared.occupied[id] != 0;
    if (prepared.occupied[id])
      CHECK(prepared.order.min_start(entry) ==
            first[std::countr_zero(prepared.occupied[id])].start);
    else
      CHECK(list.empty() && prepared.order.min_start(entry) == -kInfinity);
  });
  CHECK(blocks == all || (blocks == 0 && all == 1));
  std::size_t taken = 0;
  for (const std::uint64_t mask : prepared.occupied) taken += mask != 0;
  CHECK(taken == blocks);  // blocks without a directory entry hold no slots

  if (list.empty()) return;
  const double t = list.begin()->first.first + static_cast<double>(below(100));
  prepared.each_row([&](std::size_t row) {
    const std::size_t position = prepared.position(row);
    const std::size_t entry = prepared.order.entry_at(position / 64);
    CHECK(prepared.order.block(entry) * 64 + position % 64 == row);
    CHECK((prepared.slots[row].start <= t) == (position <= prepared.position_at(t)));
    // Decided by the next slot of the block; for the last one "more may come" is allowed.
    const std::uint64_t behind = prepared.occupied[row / 64] >> row % 64 >> 1;
    const auto next = list.upper_bound({prepared.slots[row].start, prepared.slots[row].node});
    const bool last = next == list.end() || next->first.first > t;
    CHECK(prepared.is_last_starting_by(t, row) == (last && behind != 0));
  });
  CHECK(prepared.max_abs_start() == std::max(std::fabs(list.begin()->first.first),
                                              std::fabs(list.rbegin()->first.first)));

  check_zone_map(prepared, prepared.by_rate, [](const Slot& s) { return s.rate; },
               [](const Slot& s) { return (s.end - s.start) * s.performance; });
  if (prepared.by_price_if_built())
    check_zone_map(prepared, prepared.by_price(), [](const Slot& s) { return s.price; },
                 [](const Slot& s) { return s.end - s.start; });
}

// `starts`: number of distinct starts to draw from; few starts make many slots start together, and
// more slots than starts need many nodes. `turns`: now and then all rows are rebuilt and the share
// of insertions is inverted; blocks removed before a rebuild must not reappear.
void rows_equal_the_sorted_slots(std::size_t first, std::size_t starts, std::size_t changes,
                               std::size_t insert_percent, bool turns = false) {
  List list;
  std::size_t origin = 0;
  const std::size_t nodes = 20000 / starts;
  const auto start = [&] { return static_cast<double>(below(starts)) - 3; };
  const auto fresh = [&] {
    for (;;) {
      const double from = start();
      const auto node = static_cast<std::int32_t>(below(nodes));
      if (!list.count({from, node})) return slot_of(from, from + 1 + 90 * real(), node);
    }
  };
  while (list.size() < first) {
    const Slot slot = fresh();
    list[{slot.start, slot.node}] = {slot, origin++};
  }
  PreparedSlots prepared(options);
  for (std::size_t k = 0; k < nodes; ++k)
    prepared.nodes.push_back({static_cast<std::int32_t>(k), 1, 1});
  SlotTree rows;
  const auto lay_out = [&] {
    std::vector<SlotWithOrigin> slots;
    for (const auto& [key, row] : list) slots.push_back(row);
    rows.build(prepared, slots);
    check_rows(prepared, rows, list);
  };
  lay_out();

  std::set<Key> waiting;  // inserted in this batch
  const auto apply = [&] { rows.apply_pending(), waiting.clear(); };
  for (std::size_t i = 0, batch = 1; i < changes; ++i) {
    if (i == changes / 2) apply(), prepared.by_price();
    const bool comes = list.empty() || below(100) < insert_percent;
    if (comes) {
      const Slot slot = fresh();
      list[{slot.start, slot.node}] = {slot, origin};
      waiting.insert({slot.start, slot.node});
      rows.insert(slot, origin++);
    } else {
      auto it = std::next(list.begin(), static_cast<std::ptrdiff_t>(below(list.size())));
      if (waiting.count(it->first)) apply();
      SlotWithOrigin found = it->second;
      Slot& slot = found.first;
      std::size_t at = below(prepared.slots.size() + 64);  // a wrong hint, possibly out of range
      if (below(2))
        prepared.each_row([&](std::size_t row) {
          if (prepared.slots[row].node == slot.node) at = row;
        });
      const double before = slot.start;
      const auto k = static_cast<std::size_t>(slot.place);
      switch (below(3)) {
        case 0:
          rows.erase(before, k, at);
          list.erase(it);
          break;
        case 1:
          slot.end = before + 1 + 90 * real();
          rows.set_end(before, k, slot.end, at);
          it->second = found;
          break;
        default:
          slot.start = std::min(start(), slot.end - 0.5);
          if (list.count({slot.start, slot.node})) break;
          rows.set_start(before, k, slot.start, at);
          waiting.insert({slot.start, slot.node});
          list.erase(it);
          list[{slot.start, slot.node}] = found;
      }
    }
    if (--batch > 0) continue;
    batch = below(3) ? 1 + below(4) : 1 + below(300);
    apply();
    check_rows(prepared, rows, list);
    if (turns && below(8) == 0) lay_out(), insert_percent = 100 - insert_percent;
  }
  apply();
  check_rows(prepared, rows, list);
}

}  // namespace

int main() {
  for (const std::size_t starts : {1, 4, 60, 4000}) {
    rows_equal_the_sorted_slots(0, starts, 1200, 50);
    rows_equal_the_sorted_slots(40, starts, 1800, 33);
    rows_equal_the_sorted_slots(300, starts, 4500, 60);  // blocks split
    rows_equal_the_sorted_slots(300, starts, 4500, 5);   // blocks merge
    rows_equal_the_sorted_slots(300, starts, 3000, 5, true);
  }
  return report();
}

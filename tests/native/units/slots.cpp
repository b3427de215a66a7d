// Unit tests of slots/: zone maps, directory, node index and prepared slots against plain
// reference implementations.
#if defined(__x86_64__) && defined(__linux__)
#define SLOTKERN_MULTIVERSION 1  // test all SIMD versions that this machine can run
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "slotkern/window/find.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// All SIMD versions of the filter agree, at any alignment.
void simd_filters_agree() {
  using Pass = std::uint64_t (*)(const float*, const float*, const float*, const float*,
                                 const Thresholds&);
  std::vector<Pass> passes = {detail::pass_any, detail::pass64};
#if defined(SLOTKERN_MULTIVERSION) && SLOTKERN_MULTIVERSION
  if (__builtin_cpu_supports("avx2")) passes.push_back(detail::pass_avx2);
  if (__builtin_cpu_supports("avx512f")) passes.push_back(detail::pass_avx512);
#endif
  constexpr float most = std::numeric_limits<float>::infinity();
  constexpr float edges[] = {-most, -1e-45f, -0.0f, 0.0f, 1e-45f, 1.7e9f, 3e38f, most};
  for (int round = 0; round < 4000; ++round) {
    const auto some = [&] { return round % 2 ? edges[below(8)] : static_cast<float>(below(3)); };
    float columns[4][65];
    for (auto& column : columns)
      for (float& x : column) x = some();
    const float *key = columns[0] + round % 3 / 2, *room = columns[1] + round % 3 / 2,
                *performance = columns[2] + round % 3 / 2, *end = columns[3] + round % 3 / 2;
    const Thresholds thresholds{some(), some(), some(), some()};
    std::uint64_t expected = 0;
    for (int j = 0; j < 64; ++j)
      if (key[j] <= thresholds.key && room[j] >= thresholds.capacity &&
          performance[j] >= thresholds.performance && end[j] >= thresholds.end)
        expected |= std::uint64_t{1} << j;
    for (const Pass pass : passes) CHECK(pass(key, room, performance, end, thresholds) == expected);
  }
}

void block_bounds_equal_plain_extremes() {
  constexpr float none = std::numeric_limits<float>::infinity();
  for (int round = 0; round < 4000; ++round) {
    float key[65];
    for (float& x : key) x = round % 3 ? static_cast<float>(below(90)) - 20 : none;
    const float* const keys = key + round % 2;
    CHECK(detail::min64(keys) == *std::min_element(keys, keys + 64));
    CHECK(detail::max64(keys) == *std::max_element(keys, keys + 64));
  }
}

// Builds a zone map of `count` rows; put(rows, j, i) stores row i as the j-th of its block.
template <class Put>
SlotZoneMap zone_map_of(std::size_t count, double origin, Put put) {
  SlotZoneMap zone_map;
  zone_map.configure(options, {});
  zone_map.open(count, origin);
  ZoneMapRows rows;
  for (std::size_t first = 0; first < count; first += 64) {
    const std::size_t here = std::min<std::size_t>(64, count - first);
    for (std::size_t j = 0; j < here; ++j) put(rows, j, first + j);
    rows.end_at(here);
    zone_map.append(rows);
  }
  return zone_map;
}

// The zone map resolves relative differences below 1/1000, also far from zero.
void zone_map_resolves_small_differences() {
  const SlotZoneMap zone_map = zone_map_of(640, 1.7e9, [](ZoneMapRows& rows, std::size_t j,
                                                      std::size_t i) {
    const double near = 1 + 1e-6 * static_cast<double>(i);
    rows.put(j, near, near, near, 1.7e9 + static_cast<double>(i));
  });
  const auto count = [&](const Thresholds& thresholds) {
    std::size_t rows = 0;
    zone_map.each({}, thresholds, 639, [&](std::size_t) { return ++rows > 0; });
    return rows;
  };
  const float half = static_cast<float>(1 + 320e-6);
  CHECK(count({half, 0, 0, 0}) <= 322);
  CHECK(count({2, half, 0, 0}) <= 322);
  CHECK(count({2, 0, half, 0}) <= 322);
  CHECK(count({2, 0, 0, zone_map.ending(1.7e9 + 320)}) <= 322);
}

void zone_map_has_no_false_negatives() {
  for (int round = 0; round < 60; ++round) {
    const std::size_t count = 1 + below(round % 4 == 0 ? 9000 : 300);
    std::vector<float> columns[4];
    const double origin = static_cast<double>(below(3)) - 1;
    for (std::size_t i = 0; i < count; ++i)
      for (auto& column : columns) column.push_back(static_cast<float>(below(8)));
    const SlotZoneMap zone_map = zone_map_of(count, origin, [&](ZoneMapRows& rows, std::size_t j,
                                                       std::size_t i) {
      rows.put(j, columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
    });
    const auto some = [] { return static_cast<float>(below(9)); };
    const Thresholds thresholds{some(), some(), some(), some()};
    const std::size_t last = below(count), most = below(3) == 0 ? below(5) : count;
    std::vector<std::size_t> expected, seen;
    for (std::size_t i = 0; i <= last && expected.size() < most; ++i)
      if (columns[0][i] <= thresholds.key && columns[1][i] >= thresholds.capacity &&
          columns[2][i] >= thresholds.performance && columns[3][i] - origin >= thresholds.end)
        expected.push_back(i);
    if (most > 0)
      zone_map.each({}, thresholds, last, [&](std::size_t row) {
        seen.push_back(row);
        return seen.size() < most;
      });
    CHECK(seen == expected);
  }
}

// Blocks that are inserted and removed stay in order, and data indexed by entry moves with them.
void directory_keeps_blocks_in_order() {
  struct Labels {
    std::vector<std::size_t>* of_seats;
    void resize(std::size_t entries) const { of_seats->resize(entries, BlockDirectory::kNone); }
    void move(std::size_t from, std::size_t to, std::size_t count) const {
      std::memmove(of_seats->data() + to, of_seats->data() + from, count * sizeof(std::size_t));
    }
    void clear(std::size_t entry) const { (*of_seats)[entry] = BlockDirectory::kNone; }
  };
  for (const std::size_t first : {1, 2, 60, 61, 500}) {
    BlockDirectory order;
    order.reserve(first);
    order.bulk_load(first);
    std::vector<std::size_t> label(order.entries(), BlockDirectory::kNone), spare;
    std::vector<std::pair<double, std::size_t>> wanted;  // start of the first slot, block
    order.each([&](std::size_t entry) {
      const auto start = static_cast<double>(wanted.size() / 3);  // three blocks per start
      label[entry] = wanted.size();
      order.set_min_start(entry, start);
      wanted.push_back({start, order.block(entry)});
      CHECK(order.block(entry) + 1 == wanted.size());
    });
    CHECK(wanted.size() == first);
    std::size_t next = first;
    for (int step = 0; step < 6000; ++step) {
      const bool adds = wanted.size() == 1 || below(step / 1000 % 2 == 0 ? 4 : 8) < 3;
      const std::size_t at = below(wanted.size());
      const std::size_t entry = order.entry_of(wanted[at].second);
      if (adds) {
        std::size_t block = next;
        if (spare.empty()) ++next;
        else block = spare.back(), spare.pop_back();
        const std::size_t fresh = order.add(entry, block, Labels{&label});
        order.set_min_start(fresh, wanted[at].first);
        label[fresh] = block;
        wanted.insert(wanted.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                      {wanted[at].first, block});
        CHECK(order.previous(fresh) == order.entry_of(wanted[at].second));
      } else {
        spare.push_back(wanted[at].second);
        order.remove(entry, Labels{&label});
        wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (step % 16 != 0) continue;
      std::size_t j = 0, before = BlockDirectory::kNone, labels = 0;
      order.each([&](std::size_t s) {
        CHECK(order.block(s) == wanted[j].second && label[s] == wanted[j].second);
        CHECK(order.min_start(s) == wanted[j].first && order.entry_of(wanted[j].second) == s);
        CHECK(order.entry_at(order.position_of(s)) == s && order.previous(s) == before);
        if (before != BlockDirectory::kNone)
          CHECK(order.next(before) == s && order.position_of(before) < order.position_of(s));
        before = s, ++j;
      });
      CHECK(j == wanted.size() && order.last_entry() == before &&
            order.next(before) == BlockDirectory::kNone);
      for (const std::size_t one : label) labels += one != BlockDirectory::kNone;
      CHECK(labels == wanted.size());  // no data at empty entries
      const double t = static_cast<double>(below(wanted.size() / 2 + 2)) - 1;
      std::size_t by = 0;
      for (std::size_t k = 0; k < wanted.size(); ++k)
        if (wanted[k].first <= t) by = k;
      CHECK(order.block(order.last_starting_by(t)) == wanted[by].second);
    }
  }
}

// After insertions and removals of blocks and rows, the zone map equals a newly built one.
void zone_map_follows_changes() {
  struct ZoneMapEntries {
    SlotZoneMap* zone_map;
    void resize(std::size_t entries) const { zone_map->resize(entries); }
    void move(std::size_t from, std::size_t to, std::size_t count) const {
      zone_map->move(from, to, count);
    }
    void clear(std::size_t entry) const { zone_map->clear_entry(entry); }
  };
  BlockDirectory order;
  order.bulk_load(1);
  SlotZoneMap zone_map;
  zone_map.configure(options, {});
  zone_map.reset(64, 0, 1, order.entries());
  std::vector<std::vector<double>> keys{std::vector<double>(64, NAN)};  // NaN: no row
  std::vector<std::size_t> blocks{0};  // in time order
  std::size_t most_blocks = 0;
  for (int step = 0; step < 4000; ++step) {
    const bool grow = blocks.size() < 2 || below(step < 2000 ? 3 : 40) == 0;
    const std::size_t at = below(blocks.size());
    const std::size_t entry = order.entry_of(blocks[at]);
    if (grow) {
      const std::size_t block = keys.size();
      zone_map.add_rows();
      const std::size_t fresh = order.add(entry, block, ZoneMapEntries{&zone_map});
      blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(at) + 1, block);
      keys.emplace_back(64, NAN);
      zone_map.recompute_bounds(fresh, block * 64);
    } else if (below(8) == 0) {
      order.remove(entry, ZoneMapEntries{&zone_map});
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const std::size_t row = blocks[at] * 64 + below(64);
      double& key = keys[blocks[at]][row % 64];
      if (std::isnan(key)) {
        key = static_cast<double>(below(50));
        zone_map.set(row, key, 10, 10, 10);
        zone_map.expand(entry, row);
      } else {
        key = NAN;
        zone_map.clear(row);
        zone_map.mark_stale(entry);
        if (below(4) == 0) zone_map.refresh(order);
      }
    }
    const std::size_t last = order.position_of(order.last_entry());
    zone_map.count_blocks(last + 1);
    most_blocks = std::max(most_blocks, blocks.size());
    const double most = static_cast<double>(below(50));
    const Thresholds thresholds{static_cast<float>(most), 1, 1, 1};
    std::vector<std::size_t> expected, seen;
    for (const std::size_t block : blocks)
      for (std::size_t k = 0; k < 64; ++k)
        if (keys[block][k] <= most) expected.push_back(block * 64 + k);
    zone_map.each(order, thresholds, last * 64 + 63, [&](std::size_t row) {
      seen.push_back(row);
      return true;
    });
    CHECK(seen == expected);
  }
  CHECK(most_blocks > 128);  // several leaves
}

void node_numbers_are_distinct() {
  for (const std::int32_t largest : {100, 2'000'000'000}) {
    NodeIndex index;
    index.reset(largest, 50);
    CHECK(index.dense() == (largest == 100));
    std::set<std::size_t> numbers;
    std::vector<std::int32_t> ids{0, largest, largest - 1};
    while (ids.size() < 50) {
      const auto id = static_cast<std::int32_t>(below(static_cast<std::size_t>(largest)));
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    std::vector<std::size_t> first;
    for (const auto id : ids) {
      first.push_back(index.number(id));
      CHECK(first.back() < index.size());
      numbers.insert(first.back());
    }
    CHECK(numbers.size() == ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k) CHECK(index.number(ids[k]) == first[k]);
  }
}

void positions_follow_time_order() {
  std::vector<Row> rows;
  for (int k = 0; k < 40; ++k)
    rows.push_back({k % 8, static_cast<double>(k / 4), k / 4 + 0.5, 1.0 + k % 8 / 2, 2.0 + k % 5});
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
  for (double t = 0; t < 10; t += 0.25) {
    std::size_t last = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].start <= t) last = i;
    CHECK(prepared.position_at(t) == last);
  }
  std::vector<double> rates;
  for (const Node& node : prepared.nodes) rates.push_back(node.min_price / node.performance);
  std::sort(rates.begin(), rates.end());
  double sum = 0;
  for (std::size_t k = 0; k < rates.size(); sum += rates[k++])
    CHECK(std::fabs(prepared.min_rate_sum(k) - sum) < 1e-12);
  CHECK(prepared.groups.size() == 4 && prepared.groups.back().end == 8);
  CHECK(prepared.last_position() == 39 && prepared.first_start() == 0);
  CHECK(prepared.max_abs_start() == 9 && prepared.latest_end == 9.5);
  CHECK(snap_finish(9.5 - 0x1p-50, 9.5) == 9.5 && snap_finish(9, 9.5) == 9);
}

// Node ids do not affect the result: dense and sparse ids give the same windows.
void sparse_ids_change_nothing() {
  for (const int count : {3, 200, 900}) {
    std::vector<Row> rows;
    for (int k = 0; k < 3 * count; ++k)
      rows.push_back({k % count, k / count + 0.1, k / count + 0.5, 1.0 + k % count % 50,
                      k % 11 ? real() : 0});
    std::vector<Row> far = rows;
    for (Row& row : far) row.node = row.node * 2'000'003 + 5;
    PreparedSlots near_ids(options), far_ids(options);
    CHECK(prepare_slots(near_ids, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
    CHECK(prepare_slots(far_ids, view_of(far), true, ShapeKind::square, 0).status == Status::ok);
    CHECK(near_ids.nodes.size() == static_cast<std::size_t>(count));
    CHECK(near_ids.cheapest_rates == far_ids.cheapest_rates);
    for (std::size_t k = 0; k < near_ids.nodes.size(); ++k) {
      const Node &near = near_ids.nodes[k], &wide = far_ids.nodes[k];
      CHECK(near.id * 2'000'003 + 5 == wide.id && near.min_price == wide.min_price);
      if (k == 0) continue;
      const Node& before = near_ids.nodes[k - 1];
      CHECK(before.performance > near.performance ||
            (before.performance == near.performance && before.id < near.id));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Slot& slot = near_ids.slots[i];
      CHECK(slot.place == far_ids.slots[i].place && slot.start == rows[i].start);
      CHECK(near_ids.nodes[static_cast<std::size_t>(slot.place)].id == rows[i].node);
    }
  }
}

// A mask covers the slots that existed when it was made; later slots are filtered out.
void mask_excludes_later_slots() {
  const std::uint8_t mask[] = {1, 0, 1, 1};
  const std::size_t origins[] = {0, 1, 2, 3};
  Query query;
  query.mask = mask, query.origins = origins, query.masked = 3;
  const Slot slot{0, 9, 1, 1, 1, 0, 0};
  CHECK(query.admits(slot, 0) && !query.admits(slot, 1) && query.admits(slot, 2));
  CHECK(!query.admits(slot, 3));
}

}  // namespace

int main() {
  simd_filters_agree();
  block_bounds_equal_plain_extremes();
  zone_map_resolves_small_differences();
  zone_map_has_no_false_negatives();
  directory_keeps_blocks_in_order();
  zone_map_follows_changes();
  node_numbers_are_distinct();
  positions_follow_time_order();
  sparse_ids_change_nothing();
  mask_excludes_later_slots();
  return report();
}

// The parts of kernels that no call from Python reaches alone, each against its plain definition.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "check.hpp"
#include "slotkern/choice/choose.hpp"
#include "slotkern/choice/trade_off.hpp"
#include "slotkern/pool/hints.hpp"
#include "slotkern/window/cheapest.hpp"
#include "slotkern/window/find.hpp"

using namespace slotkern;

namespace {

std::mt19937_64 source(3);

std::size_t below(std::size_t n) { return source() % n; }
double real() { return static_cast<double>(source() >> 11) * 0x1p-53; }

// Calls visit(places) for every choice of `pick` of `count`.
template <class Visit>
void each_set(int count, int pick, Visit visit) {
  for (unsigned bits = 0; bits < 1u << count; ++bits) {
    if (std::popcount(bits) != pick) continue;
    std::vector<int> places;
    for (int i = 0; i < count; ++i)
      if (bits >> i & 1) places.push_back(i);
    visit(places);
  }
}

// --- base

void rounds_to_the_safe_side() {
  for (int round = 0; round < 2000; ++round) {
    const double x = std::ldexp(real() - 0.5, static_cast<int>(below(320)) - 160);
    const float down = round_down(x), up = round_up(x);
    CHECK(down <= x && x <= up);
    CHECK(std::nextafter(down, INFINITY) > x || down == x);
    CHECK(std::nextafter(up, -INFINITY) < x || up == x);
    CHECK(round_down(static_cast<double>(down)) == down);
  }
  CHECK(round_down(-1e-60) < 0 && round_up(1e-60) > 0 && round_down(1e-60) == 0);
}

// --- slots

void screen_keeps_what_a_plain_filter_keeps() {
  for (int round = 0; round < 60; ++round) {
    const std::size_t count = 1 + below(round % 4 == 0 ? 9000 : 300);
    std::vector<float> columns[4];
    Screen screen;
    screen.reset(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (auto& column : columns) column.push_back(static_cast<float>(below(8)));
      screen.put(i, columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
    }
    const auto some = [] { return static_cast<float>(below(9)); };
    const Thresholds thresholds{some(), some(), some(), some()};
    const std::size_t last = below(count), most = below(3) == 0 ? below(5) : count;
    std::vector<std::size_t> expected, seen;
    for (std::size_t i = 0; i <= last && expected.size() < most; ++i)
      if (columns[0][i] <= thresholds.key && columns[1][i] >= thresholds.room &&
          columns[2][i] >= thresholds.performance && columns[3][i] >= thresholds.end)
        expected.push_back(i);
    if (most > 0)
      screen.each({}, thresholds, last, [&](std::size_t row) {
        seen.push_back(row);
        return seen.size() < most;
      });
    CHECK(seen == expected);
  }
}

// Blocks inserted and erased, rows moved: the same as a screen that is made anew.
void screen_follows_rows_that_change() {
  Screen screen;
  screen.reset(64);
  std::vector<std::uint32_t> order{0};
  const auto open = [] { return std::vector<double>(64, NAN); };
  std::vector<std::vector<double>> keys{open()};  // of each block's rows, NaN where there is none
  for (int step = 0; step < 400; ++step) {
    const bool grow = order.size() < 2 || below(3) == 0;
    const std::size_t at = below(order.size() + (grow ? 1 : 0));
    if (grow) {
      const auto block = static_cast<std::uint32_t>(keys.size());
      screen.add_rows();
      screen.insert_block(at);
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), block);
      keys.push_back(open());
      screen.fold(at, block * std::size_t{64});
    } else if (below(8) == 0) {
      screen.erase_block(at);
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const std::size_t row = order[at] * std::size_t{64} + below(64);
      double& key = keys[order[at]][row % 64];
      if (std::isnan(key)) {
        key = static_cast<double>(below(50));
        screen.set(row, key, 10, 10, 10);
        screen.widen(at, row);
      } else {
        const bool bounds = screen.bounds(at, row);
        key = NAN;
        screen.clear(row);
        if (bounds) screen.fold(at, order[at] * std::size_t{64});
      }
    }
    const double most = static_cast<double>(below(50));
    const Thresholds thresholds{static_cast<float>(most), 1, 1, 1};
    std::vector<std::size_t> expected, seen;
    for (const auto block : order)
      for (std::size_t k = 0; k < 64; ++k)
        if (keys[block][k] <= most) expected.push_back(block * std::size_t{64} + k);
    screen.each(order, thresholds, order.size() * 64 - 1, [&](std::size_t row) {
      seen.push_back(row);
      return true;
    });
    CHECK(seen == expected);
  }
}

struct Row {
  std::int32_t node;
  double start, end, performance, price;
};

SlotView view_of(const std::vector<Row>& rows) {
  SlotView view;
  view.base = reinterpret_cast<const char*>(rows.data());
  view.stride = sizeof(Row), view.size = rows.size();
  view.start = offsetof(Row, start), view.end = offsetof(Row, end);
  view.performance = offsetof(Row, performance), view.price = offsetof(Row, price);
  return view;
}

void cells_of_nodes_differ() {
  for (const std::int32_t largest : {100, 2'000'000'000}) {
    NodeIndex index;
    index.reset(largest, 50);
    CHECK(index.dense() == (largest == 100));
    std::set<std::size_t> cells;
    std::vector<std::int32_t> ids{0, largest, largest - 1};
    while (ids.size() < 50) {
      const auto id = static_cast<std::int32_t>(below(static_cast<std::size_t>(largest)));
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    std::vector<std::size_t> first;
    for (const auto id : ids) {
      first.push_back(index.cell(id));
      CHECK(first.back() < index.size());
      cells.insert(first.back());
    }
    CHECK(cells.size() == ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k) CHECK(index.cell(ids[k]) == first[k]);
  }
}

void prepared_rows_know_their_place() {
  std::vector<Row> rows;
  for (int k = 0; k < 40; ++k)
    rows.push_back({k % 8, static_cast<double>(k / 4), k / 4 + 0.5, 1.0 + k % 8 / 2, 2.0 + k % 5});
  PreparedSlots prepared;
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
    CHECK(std::fabs(prepared.rates_of(k) - sum) < 1e-12);
  CHECK(prepared.groups.size() == 4 && prepared.groups.back().end == 8);
  CHECK(prepared.last_position() == 39 && prepared.first_start() == 0);
  CHECK(prepared.farthest_start() == 9 && prepared.latest_end == 9.5);
  CHECK(cut_finish(9.5 - 0x1p-50, 9.5) == 9.5 && cut_finish(9, 9.5) == 9);
}

// --- window

void tables_of_windows_hold_what_they_were_given() {
  WindowTable table, other;
  const Part parts[] = {{4, 2, 5, 10}, {6, 3, 7, 21}};
  table.add({1, 7, 31, 12, 31}, parts, 2);
  table.add_none();
  CHECK(table.size() == 2 && table.any(0) && !table.any(1) && table.count(0) == 2);
  table.set_bound(table.found[1].value, false);
  table.add({2, 5, 10, 5, 10}, parts, 1);
  table.set_bound(8, false);
  table.add({3, 5, 10, 5, 9}, parts, 1);
  CHECK(table.is_proven(0) && table.bound(0) == 31);
  CHECK(!table.is_proven(2) && table.bound(2) == 8);
  CHECK(table.is_proven(3) && table.bound(3) == 9);
  other.add_from(table, 3);
  CHECK(other.bounds.empty());  // all is proven so far
  other.add_from(table, 1);
  other.add_from(table, 2);
  CHECK(other.size() == 3 && !other.any(1) && other.bound(0) == 9 && other.bound(2) == 8);
  CHECK(other.is_proven(0) && !other.is_proven(2));
  CHECK(other.parts_of(2)->row == 4 && other.count(2) == 1);
  std::vector<WindowRow> windows(table.size());
  std::vector<PartRow> pieces(table.parts.size());
  table.fill(windows.data());
  table.fill(pieces.data());
  CHECK(windows[0].finish == 8 && windows[2].start == 2 && std::isnan(windows[1].cost));
  CHECK(pieces[1].start == 1 && pieces[1].end == 8 && pieces[1].row == 6 && pieces[1].cost == 21);
  CHECK(pieces[3].start == 3 && pieces[3].node == 2);
  other.set_bound(8, true);
  CHECK(other.is_proven(2));
  other.clear();
  CHECK(other.size() == 0 && other.firsts.size() == 1 && other.bounds.empty());
}

// Offers, purges, drops and compactions against a plain list.
void smallest_of_follows_a_plain_list() {
  for (int round = 0; round < 80; ++round) {
    const std::size_t n = 1 + below(round % 5 == 0 ? 60 : 10), members = 400;
    const bool reserve = below(4) != 0, ties = below(2) == 0;
    NCheapest cheapest;
    cheapest.reset(n, members, reserve);
    std::vector<Entry> plain;
    std::vector<char> alive(members, 1);
    const auto keep = [&](std::size_t row) { return alive[row] != 0; };
    const auto sort = [&] {
      std::sort(plain.begin(), plain.end(),
                [](const Entry& a, const Entry& b) { return a.key < b.key; });
    };
    for (std::size_t row = 0; row < members; ++row) {
      const double key = ties ? static_cast<double>(below(20)) : 100 * real();
      const bool joined = cheapest.offer(key, row);
      sort();
      const bool among = plain.size() < n || key < plain[n - 1].key;
      if (!ties || plain.size() < n) CHECK(joined == among);
      plain.push_back({key, row});
      if (row % 50 == 49) CHECK(!cheapest.offer(kInfinity, row));
      if (reserve && below(6) == 0) {
        const std::size_t dead = below(row + 1);
        alive[dead] = 0;
      }
      if (!reserve || below(5) != 0) continue;
      std::erase_if(plain, [&](const Entry& entry) { return !alive[entry.row]; });
      sort();
      if (below(3) == 0) cheapest.compact(keep);
      cheapest.purge(keep);
      CHECK(cheapest.full() == (plain.size() >= n));
      if (!cheapest.full()) continue;
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(cheapest[i].key == plain[i].key && alive[cheapest[i].row]);
        sum += plain[i].key;
      }
      CHECK(cheapest.sum() == sum);
      CHECK(cheapest.lower() <= sum && cheapest.lower() >= sum - 1e-9 * (1 + sum));
      if (below(10) == 0 && !ties) {
        cheapest.drop_front(keep);
        cheapest.purge(keep);  // what moved up may have been dead
        plain.erase(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(n));
        CHECK(cheapest.full() == (plain.size() >= n));
        if (cheapest.full()) CHECK(cheapest[n - 1].key == plain[n - 1].key);
      }
    }
    if (!reserve) {
      sort();
      CHECK(cheapest.full());
      for (std::size_t i = 0; i < n; ++i) CHECK(cheapest[i].key == plain[i].key);
    }
  }
}

// What a sweep keeps against a plain list: while nothing is missing below `cut`, what is looked
// for again comes back, and sums are bounds at any time.
void what_is_kept_follows_a_plain_list() {
  for (int round = 0; round < 120; ++round) {
    const std::size_t n = 1 + below(round % 3 == 0 ? 80 : 8), spare = 1 + below(20), members = 500;
    const bool ties = below(2) == 0;
    const double huge = round % 7 == 0 ? 1e300 : 1;
    Kept kept;
    kept.reset(n, spare);
    std::vector<Entry> plain;
    std::vector<char> alive(members, 1);
    const auto keep = [&](std::size_t row) { return alive[row] != 0; };
    double nth = kInfinity;  // when it was settled last
    for (std::size_t row = 0; row < members; ++row) {
      double key = ties ? static_cast<double>(below(20)) : 100 * real();
      if (below(50) == 0) key *= huge;
      CHECK(kept.add(key, row) || key >= kept.cut());
      CHECK(!kept.add(kInfinity, row));
      plain.push_back({key, row});
      if (below(4) == 0) alive[below(row + 1)] = 0;
      if (below(3) != 0) continue;
      std::stable_sort(plain.begin(), plain.end(), ByKey{});
      if (below(2) == 0) {
        const bool less = plain.size() >= n && plain[n - 1].key < nth;
        CHECK(kept.absorb() || !less);
        kept.settled();
      }
      kept.absorb();
      std::erase_if(plain, [&](const Entry& entry) { return !alive[entry.row]; });
      const auto sum = [&] {
        double total = 0;
        for (std::size_t i = 0; i < n; ++i) total += plain[i].key;
        return total;
      };
      if (plain.size() >= n) CHECK(kept.lower() <= sum());
      while (kept.purge(keep)) {
      }
      if (plain.size() >= n) CHECK(kept.lower() <= sum());
      if (!kept.full() && kept.cut() < kInfinity) {
        kept.reset(n, spare);
        for (const Entry& entry : plain) kept.add(entry.key, entry.row);
        kept.absorb();
      }
      kept.settled();
      CHECK(kept.full() == (plain.size() >= n));
      nth = kept.full() ? kept[n - 1].key : kInfinity;
      if (!kept.full()) continue;
      for (std::size_t i = 0; i < n; ++i)
        CHECK(kept[i].key == plain[i].key && alive[kept[i].row]);
      CHECK(kept.sum() == sum());
      if (kept.distinct() && plain.size() > n) CHECK(plain[n - 1].key < plain[n].key);
    }
  }
}

// Beside times as large as seconds since 1970, ends within an ulp of the best one still count.
void a_finish_within_an_ulp_is_a_tie() {
  const double t = 1.7e9;
  const std::vector<Row> rows{{0, t, t + 9, 3, 5}, {1, t, t + 9, 3 * (1 - 2e-7), 1}};
  PreparedSlots prepared;
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  Query query;
  query.n = 1, query.volume = 0.3;
  const Answer answer = find(prepared, query, criterion_index("finish"), ShapeKind::ragged);
  CHECK(answer.status == Status::ok && answer.parts[0].node == 1);
}

// --- choice

void tops_are_the_heaviest() {
  for (int round = 0; round < 200; ++round) {
    const int count = 1 + static_cast<int>(below(200)),
              n = 1 + static_cast<int>(below(static_cast<std::size_t>(count)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(below(12)));
      value.push_back(static_cast<double>(below(12)) - 4);
    }
    Side side;
    Lagrange::top({cost.data(), value.data(), count}, n, 1, 0.5, side);
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    const auto weigh = [&](int i) {
      return value[static_cast<std::size_t>(i)] - 0.5 * cost[static_cast<std::size_t>(i)];
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weigh(a) > weigh(b); });
    order.resize(static_cast<std::size_t>(n));
    double weight = 0, money = 0;
    for (const int i : order) weight += weigh(i), money += cost[static_cast<std::size_t>(i)];
    CHECK(side.weight == weight && side.cost == money && side.last == weigh(order.back()));
    std::vector<int> chosen = side.chosen;
    std::sort(chosen.begin(), chosen.end());
    std::sort(order.begin(), order.end());
    CHECK(chosen == order);
  }
}

// The bound holds for every set that fits, and `closed` means that the set is the best.
void lagrange_bounds_hold() {
  for (int round = 0; round < 400; ++round) {
    const int count = 2 + static_cast<int>(below(8)), n = 1 + static_cast<int>(below(
                                                              static_cast<std::size_t>(count)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(below(20)));
      value.push_back(static_cast<double>(below(20)));
    }
    const double budget = static_cast<double>(below(60));
    double best = -kInfinity;
    each_set(count, n, [&](const std::vector<int>& set) {
      double money = 0, worth = 0;
      for (const int i : set)
        money += cost[static_cast<std::size_t>(i)], worth += value[static_cast<std::size_t>(i)];
      if (money <= budget) best = std::max(best, worth);
    });
    Lagrange lagrange;
    const bool any = lagrange.solve({cost.data(), value.data(), count}, n, budget, 1000, 0,
                                    -kInfinity,
                                    [&](const Side& side) { return side.cost <= budget; });
    CHECK(any == (best > -kInfinity));
    if (!any) continue;
    CHECK(lagrange.bound >= best - 1e-9 && lagrange.under.cost <= budget);
    CHECK(lagrange.under.value <= best);
    if (lagrange.closed) CHECK(lagrange.under.value == best);
    double weight = lagrange.lambda * budget;
    Side side;
    Lagrange::top({cost.data(), value.data(), count}, n, 1, lagrange.lambda, side);
    weight += side.weight;
    if (!lagrange.closed) CHECK(std::fabs(weight - lagrange.bound) < 1e-9 * (1 + weight));
  }
}

// A core as Knapsack::reduce makes it, by falling weight. Its costs may be wrong by `error`.
Core make_core(const std::vector<double>& cost, const std::vector<double>& value, int pick,
               double room, double error) {
  Core core;
  core.pick = pick, core.room = room, core.slack = 2 * error * pick;
  core.lambda = 0.7;
  std::vector<int> order(cost.size());
  std::iota(order.begin(), order.end(), 0);
  const auto weigh = [&](int i) {
    const auto k = static_cast<std::size_t>(i);
    return value[k] - core.lambda * cost[k];
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return weigh(a) > weigh(b); });
  const auto p = static_cast<std::size_t>(pick);
  core.middle = p < order.size() ? 0.5 * (weigh(order[p - 1]) + weigh(order[p])) : 0;
  for (const int i : order) {
    const auto k = static_cast<std::size_t>(i);
    core.add(weigh(i) - core.middle, cost[k] + error * (2 * real() - 1), value[k], i);
  }
  core.offset = core.lambda * room + pick * core.middle;
  return core;
}

// Both searches of the core against every set; where costs are not exact, the lists say that
// they are blurred, and the strict ones are right.
void core_searches_find_the_best_set() {
  int blurred = 0;
  for (int round = 0; round < 1200; ++round) {
    const int count = 2 + static_cast<int>(below(9)), pick = 1 + static_cast<int>(below(
                                                              static_cast<std::size_t>(count - 1)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(1 + below(9)));
      value.push_back(static_cast<double>(below(3)) + cost.back() * (round % 3 == 0));
    }
    const double room = static_cast<double>(below(static_cast<std::size_t>(6 * pick)) + 1);
    const double error = round % 2 == 0 ? 0 : 0.3;
    const Core core = make_core(cost, value, pick, room, error);
    double best = -kInfinity;
    each_set(count, pick, [&](const std::vector<int>& set) {
      double money = 0, worth = 0;
      for (const int i : set)
        money += cost[static_cast<std::size_t>(i)], worth += value[static_cast<std::size_t>(i)];
      if (money <= room) best = std::max(best, worth);
    });
    const Tolerance tolerance{0, 0, 2 * error * pick + 1e-9};
    double seen = -kInfinity;
    const auto accept = [&](const std::vector<int>& positions) {
      double money = 0, worth = 0;
      for (const int j : positions) {
        const auto k = static_cast<std::size_t>(core.id[static_cast<std::size_t>(j)]);
        money += cost[k], worth += value[k];
      }
      CHECK(std::set<int>(positions.begin(), positions.end()).size() ==
            static_cast<std::size_t>(pick));
      if (!(money <= room)) return false;
      seen = worth;
      return true;
    };
    CoreSearch depth;
    double found = -kInfinity;
    CHECK(depth.run(core, tolerance, found, 1'000'000, accept));
    CHECK(found == best && (found == seen || found == -kInfinity));
    found = -kInfinity;
    CHECK(!depth.run(core, tolerance, found, 0, accept) || depth.nodes == 0);
    CoreLists lists;
    found = seen = -kInfinity;
    CHECK(lists.run<false>(core, tolerance, found, 1'000'000, 1e9, accept));
    if (!lists.blurred) CHECK(found == best);
    CHECK(found == seen);
    if (error == 0) CHECK(!lists.blurred);
    blurred += lists.blurred;
    found = seen = -kInfinity;
    CHECK(lists.run<true>(core, tolerance, found, 1'000'000, 1e9, accept));
    CHECK(found == best && found == seen);
    found = -kInfinity;
    if (lists.states > 40) {
      CHECK(!lists.run<true>(core, tolerance, found, 20, 1e9, accept) && lists.states == 20);
      CHECK(!lists.run<true>(core, tolerance, found, 1'000'000, 1, accept));
    }
  }
  CHECK(blurred > 40);
}

void tables_hold_every_cardinality() {
  for (int round = 0; round < 150; ++round) {
    const int count = 1 + static_cast<int>(below(9));
    const auto n = 1 + below(static_cast<std::size_t>(count));
    const std::size_t width = 1 + below(round % 4 == 0 ? 1200 : 40);
    std::vector<std::int64_t> cost;
    std::vector<double> value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<std::int64_t>(below(width + 3)) / (round % 3 + 1));
      value.push_back(static_cast<double>(below(30)) - 5);
    }
    const bool each = below(2) == 0;
    KnapsackTable table;
    table.run(cost.data(), value.data(), cost.size(), n, width, each);
    for (std::size_t k = each ? 1 : n; k <= n; ++k)
      for (const std::size_t column : {width - 1, below(width)}) {
        double best = -kInfinity;
        each_set(count, static_cast<int>(k), [&](const std::vector<int>& set) {
          std::int64_t money = 0;
          double worth = 0;
          for (const int i : set)
            money += cost[static_cast<std::size_t>(i)], worth += value[static_cast<std::size_t>(i)];
          if (money <= static_cast<std::int64_t>(column)) best = std::max(best, worth);
        });
        CHECK(table.best(k, column) == best);
        if (best == -kInfinity) continue;
        std::vector<int> chosen;
        table.trace(k, column, chosen);
        double worth = 0;
        std::int64_t money = 0;
        for (const int i : chosen)
          worth += value[static_cast<std::size_t>(i)], money += cost[static_cast<std::size_t>(i)];
        CHECK(chosen.size() == k && worth == best && money <= static_cast<std::int64_t>(column));
      }
  }
  CHECK(KnapsackTable::fits(10, 3, 1, 8 * 4 * 1024 + 30 * 128));
  CHECK(!KnapsackTable::fits(10, 3, 1, 8 * 4 * 1024 + 30 * 128 - 1));
}

void tables_of_cores_take_off_what_is_common() {
  Core core;
  const double cost[] = {10, 16, 22, 34, 10}, value[] = {1, 5, 6, 9, 2};
  for (int i = 0; i < 5; ++i) core.add(0, cost[i], value[i], i);
  core.pick = 2;
  CoreTable table;
  for (double room = 19; room <= 60; ++room) {
    double best = -kInfinity;
    each_set(5, 2, [&](const std::vector<int>& set) {
      if (cost[set[0]] + cost[set[1]] <= room) best = std::max(best, value[set[0]] + value[set[1]]);
    });
    const std::int64_t work = table.prepare(core, room, 1e6);
    CHECK((work >= 0) == (room >= 20));
    if (work < 0) continue;
    CHECK(work <= 1);  // five columns: costs 0, 1, 2, 4, 0 times 6
    CHECK(table.run(core) == best);
    const std::vector<int>& set = table.trace(core);
    CHECK(set.size() == 2 && value[set[0]] + value[set[1]] == best);
  }
  CHECK(table.prepare(core, 60, 10) < 0);
  core.cost[2] = 22.5;
  CHECK(table.prepare(core, 60, 1e6) < 0);
}

void swaps_are_the_best_ones() {
  for (int round = 0; round < 300; ++round) {
    const int count = 3 + static_cast<int>(below(8)), n = 1 + static_cast<int>(below(
                                                              static_cast<std::size_t>(count - 1)));
    std::vector<double> cost, value;
    for (int i = 0; i < count; ++i) {
      cost.push_back(static_cast<double>(below(10)));
      value.push_back(static_cast<double>(below(10)));
    }
    std::vector<int> set(static_cast<std::size_t>(n));
    std::iota(set.begin(), set.end(), 0);
    const auto sum = [](const std::vector<double>& column, const std::vector<int>& ids) {
      double total = 0;
      for (const int i : ids) total += column[static_cast<std::size_t>(i)];
      return total;
    };
    const double room = sum(cost, set) + static_cast<double>(below(4));
    Swaps swaps;
    swaps.start({cost.data(), value.data(), count}, room, 0);
    swaps.stand_on(set);
    double gain = 0;
    for (const int i : set)
      for (int j = n; j < count; ++j)
        if (sum(cost, set) - cost[static_cast<std::size_t>(i)] +
                cost[static_cast<std::size_t>(j)] <= room)
          gain = std::max(gain, value[static_cast<std::size_t>(j)] -
                                    value[static_cast<std::size_t>(i)]);
    const bool moved = swaps.exchange_one();
    CHECK(moved == (gain > 0));
    CHECK(sum(value, swaps.set()) == sum(value, set) + gain);
    CHECK(sum(cost, swaps.set()) <= room);
    swaps.stand_on(set);
    std::int64_t work = 0;
    if (swaps.exchange_two(work)) CHECK(sum(value, swaps.set()) > sum(value, set));
    CHECK(work == 2 * n * (count - n) + 1);
    CHECK(sum(cost, swaps.set()) <= room);
    swaps.kick();
    std::vector<int> ids = swaps.set();
    CHECK(sum(cost, ids) <= room);
    CHECK(std::set<int>(ids.begin(), ids.end()).size() == static_cast<std::size_t>(n));
  }
}

void one_of_each_class_against_all_of_them() {
  for (int round = 0; round < 500; ++round) {
    const std::size_t count = 1 + below(5);
    std::vector<std::int64_t> first{0};
    std::vector<double> value, weight;
    const double unit = round % 2 == 0 ? 1 : 0.1;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t size = 1 + below(4);
      for (std::size_t i = 0; i < size; ++i) {
        weight.push_back(unit * static_cast<double>(below(12)));
        value.push_back(unit * static_cast<double>(below(12)) - 0.3);
      }
      first.push_back(first.back() + static_cast<std::int64_t>(size));
    }
    const double limit = unit * static_cast<double>(below(10 * count));
    const bool maximize = below(2) == 0;
    const Classes classes{value.data(), weight.data(), first.data(), count};
    double best = -kInfinity, least = kInfinity;
    std::vector<std::pair<double, double>> all{{0, 0}};
    for (std::size_t k = 0; k < count; ++k) {
      std::vector<std::pair<double, double>> more;
      for (const auto& [w, z] : all)
        for (auto row = static_cast<std::size_t>(first[k]);
             row < static_cast<std::size_t>(first[k + 1]); ++row)
          more.push_back({w + weight[row], z + value[row]});
      all = more;
    }
    const double sign = maximize ? 1 : -1;
    for (const auto& [w, z] : all) {
      least = std::min(least, w);
      if (w <= limit) best = std::max(best, sign * z);
    }
    OneEach* answer = nullptr;
    CHECK(choose_one_each(classes, limit, maximize, 0, 1 << 20, answer).status == Status::ok);
    CHECK(answer->feasible == (best > -kInfinity) && answer->least == least);
    if (answer->feasible) {
      CHECK(answer->proven && answer->weight <= limit && answer->rows.size() == count);
      CHECK(std::fabs(sign * answer->value - best) <= 1e-12 * (1 + std::fabs(best)));
      CHECK(sign * answer->bound >= best - 1e-12 * (1 + std::fabs(best)));
      double w = 0;
      for (std::size_t k = 0; k < count; ++k) {
        CHECK(first[k] <= answer->rows[k] && answer->rows[k] < first[k + 1]);
        w += weight[static_cast<std::size_t>(answer->rows[k])];
      }
      CHECK(w == answer->weight);
    }
    CHECK(choose_one_each(classes, limit, maximize, 0, 1, answer).status == Status::ok);
    if (answer->feasible)
      CHECK(sign * answer->bound >= best - 1e-12 * (1 + std::fabs(best)) &&
            sign * answer->value <= sign * answer->bound);
    TradeOff pairs;
    CHECK(trade_off(classes, maximize, 1 << 20, pairs).status == Status::ok && pairs.complete);
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : sign * a.second > sign * b.second;
    });
    std::vector<std::pair<double, double>> front;
    for (const auto& pair : all)
      if (front.empty() || sign * pair.second > sign * front.back().second) front.push_back(pair);
    CHECK(front.size() == pairs.value.size());
    for (std::size_t i = 0; i < std::min(front.size(), pairs.value.size()); ++i)
      CHECK(front[i].first == pairs.weight[i] && front[i].second == pairs.value[i]);
    CHECK(trade_off(classes, maximize, 0, pairs).status == Status::ok && !pairs.complete &&
          pairs.value.empty());
  }
}

// --- pool

Query ask(std::int64_t n, double volume, double budget) {
  Query query;
  query.n = n, query.volume = volume, query.budget = budget;
  return query;
}

void hints_hold_for_what_is_harder() {
  Hints hints;
  const Query asked = ask(2, 10, 35);
  CHECK(hints.bound(asked) == -kInfinity);
  hints.learn(asked, -kInfinity, 50);
  CHECK(hints.bound(asked) == 50);
  CHECK(hints.bound(ask(3, 10, 35)) == 50 && hints.bound(ask(2, 11, 35)) == 50);
  CHECK(hints.bound(ask(1, 10, 35)) == -kInfinity && hints.bound(ask(2, 9, 35)) == -kInfinity);
  CHECK(hints.bound(ask(2, 10, 36)) == -kInfinity && hints.bound(ask(2, 10, 34)) == 50);
  CHECK(hints.bound(ask(4, 10, 69)) == 50 && hints.bound(ask(4, 10, 71)) == -kInfinity);
  Query fast = asked, late = asked;
  fast.min_performance = 2;
  late.earliest = 7;
  CHECK(hints.bound(fast) == 50 && hints.bound(late) == 50);
  // A part may cost all that the budget leaves beside n - 1 others that cost nothing.
  Slot slot{0, 100, 1, 3, 3, 0, 0};
  hints.lower(slot);
  CHECK(hints.bound(asked) == 0);
  hints.learn(asked, -kInfinity, 50);
  slot.rate = slot.price = 4;  // 10 * 4 > 35
  hints.lower(slot);
  CHECK(hints.bound(asked) == 50);
  slot.rate = slot.price = 1, slot.end = 9;  // too short
  hints.lower(slot);
  CHECK(hints.bound(asked) == 50);
  slot.end = 100, slot.start = 60;
  hints.lower(slot);
  CHECK(hints.bound(asked) == 50);
  slot.start = 20;
  hints.lower(slot);
  CHECK(hints.bound(asked) == 20);
  hints.clear();
  CHECK(hints.bound(asked) == -kInfinity);
  hints.learn(fast, -kInfinity, 50);
  CHECK(hints.bound(asked) == -kInfinity && hints.bound(fast) == 50);
  slot.start = 0;
  hints.lower(slot);  // too slow
  CHECK(hints.bound(fast) == 50);
  hints.clear();
  hints.learn(late, 7, 50);
  CHECK(hints.bound(asked) == -kInfinity && hints.bound(late) == 50);
  Query picky = asked;
  picky.deadline = 90;
  hints.clear();
  hints.learn(picky, -kInfinity, 50);
  CHECK(hints.bound(picky) == -kInfinity);
  for (int k = 0; k < 2000; ++k) hints.learn(ask(2, 1000 + k, 35), -kInfinity, k);
  CHECK(hints.bound(ask(2, 4000, 35)) == 1999);
}

}  // namespace

int main() {
  rounds_to_the_safe_side();
  screen_keeps_what_a_plain_filter_keeps();
  screen_follows_rows_that_change();
  cells_of_nodes_differ();
  prepared_rows_know_their_place();
  tables_of_windows_hold_what_they_were_given();
  smallest_of_follows_a_plain_list();
  what_is_kept_follows_a_plain_list();
  a_finish_within_an_ulp_is_a_tie();
  tops_are_the_heaviest();
  lagrange_bounds_hold();
  core_searches_find_the_best_set();
  tables_hold_every_cardinality();
  tables_of_cores_take_off_what_is_common();
  swaps_are_the_best_ones();
  one_of_each_class_against_all_of_them();
  hints_hold_for_what_is_harder();
  return unit::report();
}

// Costs in a pool: the matrix of work classes and the cached cost bounds against their definitions,
// and the cheapest, earliest and shortest windows against a search of slots prepared from scratch.
// And the price statistics of groups of nodes against sorted prices.
#include <algorithm>
#include <cmath>
#include <vector>

#include "slotkern/pool/schedule.hpp"
#include "pools.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Random spans of some nodes; with `ties` many slots are alike, with `several_prices` the prices
// differ within a node.
std::vector<Row> rows_of(int nodes, bool ties, bool several_prices, double scale) {
  std::vector<Row> rows;
  for (int k = 0; k < nodes; ++k) {
    const double speed = ties ? 1.0 + double(below(3)) : 0.5 + 3 * real();
    const double price = ties ? double(below(4)) : speed * (1 + real());
    double t = 5 * real();
    for (std::size_t i = below(9); i > 0; --i) {
      t = ties ? std::floor(t) + double(below(4)) : t + 4 * real();
      const double end = t + (ties ? 1 + double(below(25)) : 0.01 + 25 * real());
      const double own = several_prices ? price * (0.5 + real()) : price;
      rows.push_back({3 * k, t, below(40) ? end : kInfinity, speed, own * scale});
      if (std::isinf(rows.back().end)) break;
      t = end;
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  return rows;
}

struct Booked {
  double start;
  std::vector<Part> parts;
};

bool same(const Answer& mine, const std::vector<Part>& parts, const Answer& other,
          const std::vector<std::size_t>& origins, std::size_t n) {
  if (mine.status != other.status) return false;
  if (mine.status != Status::ok) return true;
  const Found &a = mine.found, &b = other.found;
  bool equal = a.start == b.start && a.cost == b.cost && a.runtime == b.runtime &&
               a.processor_time == b.processor_time && a.value == b.value;
  for (std::size_t i = 0; i < n; ++i)
    equal = equal && parts[i].node == other.parts[i].node &&
            parts[i].row == origins[other.parts[i].row] &&
            parts[i].length == other.parts[i].length && parts[i].cost == other.parts[i].cost;
  return equal;
}

Query some_query(const std::vector<double>& volumes, int nodes, double scale) {
  Query query;
  query.n = std::int64_t(1 + below(std::size_t(below(4) ? std::min(nodes, 6) : nodes)));
  query.volume = volumes[below(volumes.size())];
  if (!below(20)) query.n = std::int64_t(nodes) + (below(2) ? 1 : std::int64_t{1} << 31);
  if (!below(5)) query.volume *= 0.25 + 2 * real();
  if (!below(3)) query.budget = double(query.n) * query.volume * 2 * real() * scale;
  if (!below(3)) query.budget = std::floor(query.budget);
  if (!below(7)) query.earliest = 40 * real();
  if (!below(9)) query.latest = 60 * real();
  if (!below(9)) query.deadline = 80 * real();
  if (!below(9)) query.min_performance = 3 * real();
  if (!below(9)) query.max_price = 2 * scale * real();
  return query;
}

// Every answer on a changing pool equals the answer on its current free slots, bit for bit.
void windows_equal_those_of_fresh_slots(const char* name) {
  const int criterion = criterion_index(name);
  std::size_t found = 0, booked_in_all = 0;
  for (int round = 0; round < 400; ++round) {
    const int nodes = int(1 + below(below(3) ? 20 : 150));
    const double scale = below(9) ? 1 : below(2) ? 1e150 : 1e-150;
    Pool p(rows_of(nodes, below(2) == 0, below(3) == 0, scale));
    if (p.rows.empty()) continue;
    std::vector<double> volumes;
    for (int i = 0; i < 5; ++i)
      volumes.push_back(below(2) ? double(1 + below(9)) : 1 + 15 * real());
    std::vector<Booked> booked;
    std::size_t bad = 0;
    for (std::size_t i = below(3) ? p.rows.size() : 0; i < p.rows.size(); ++i) {
      const Row& row = p.rows[i];  // whole slots, before bounds are built
      if (std::isinf(row.end) || !below(2)) continue;
      const Part part(i, row.node, row.end - row.start, 0);
      if (book(p.pool, row.start, &part, 1, bad) == Status::ok)
        booked.push_back({row.start, {part}});
    }
    for (int step = 0; step < 60; ++step) {
      if (!booked.empty() && !below(8)) {
        const std::size_t i = below(booked.size());
        CHECK(release(p.pool, booked[i].start, booked[i].parts.data(), booked[i].parts.size(),
                      bad) == Status::ok);
        booked.erase(booked.begin() + std::ptrdiff_t(i));
      } else if (!below(40)) {
        CHECK(advance(p.pool, step * real()) == Status::ok);
      } else if (!below(60)) {
        CHECK(remove_node(p.pool, p.rows[below(p.rows.size())].node) != Status::internal);
      }
      Query query = some_query(volumes, nodes, scale);
      if (!below(20)) query.setup = real();
      const Answer mine = find_window(p.pool, query, criterion, ShapeKind::ragged);
      const auto n = static_cast<std::size_t>(query.n);
      const std::vector<Part> parts(mine.parts, mine.parts + (mine.status == Status::ok ? n : 0));

      PoolState state;
      CHECK(state_of(p.pool, state) == Status::ok);
      std::vector<Row> now;
      std::vector<std::size_t> order(state.free.size()), origins;
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return state.free[a].start != state.free[b].start
                   ? state.free[a].start < state.free[b].start
                   : state.free_nodes[a] < state.free_nodes[b];
      });
      for (const std::size_t i : order) {
        now.push_back(p.rows[state.free[i].origin_row]);
        now.back().start = state.free[i].start, now.back().end = state.free[i].end;
        origins.push_back(state.free[i].origin_row);
      }
      query.earliest = std::max(query.earliest, state.now);
      PreparedSlots fresh(options);
      CHECK(prepare_slots(fresh, view_of(now), true, ShapeKind::ragged, 0).status == Status::ok);
      const Answer other = find_window(fresh, query, criterion, ShapeKind::ragged);
      CHECK(same(mine, parts, other, origins, n));
      if (mine.status != Status::ok) continue;
      ++found;
      if (below(4)) {
        CHECK(book(p.pool, mine.found.start, parts.data(), n, bad) == Status::ok);
        booked.push_back({mine.found.start, parts});
        ++booked_in_all;
      }
    }
  }
  CHECK(found > 5000 && booked_in_all > 4000);
}

// The cost of a volume may overflow although that of a smaller volume of the same class does not.
void overflowing_costs_do_not_close_cells() {
  std::vector<Row> rows;
  for (int k = 0; k < 40; ++k)
    for (int i = 0; i < 4; ++i)
      rows.push_back({k, 0.5 * k + 100 * i, 0.5 * k + 100 * i + 90, 1, 0});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  const int cost = criterion_index("cost");
  for (const double price : {1.77e308, 8.85e307, 1.7e308, 1e308, 9e306, 5e-324}) {
    for (Row& row : rows) row.price = price;
    Pool p(rows);
    for (int k = 0; k < 60; ++k) {
      Query query;
      query.n = 1 + k / 2 % 4;
      query.volume = k % 2 ? 1.001 : 1.02;
      if (k > 30) query.volume /= 2;
      const Answer mine = find_window(p.pool, query, cost, ShapeKind::ragged);
      CHECK(mine.status == find_window(p.prepared, query, cost, ShapeKind::ragged).status);
    }
  }
}

// The ranks of the nodes that can do work of a class in a cell, by definition.
std::vector<std::size_t> capable_nodes(const MaxWorkMatrix& cells,
                                       const AvailabilityTimeline& spans,
                                       const PreparedSlots& prepared, std::size_t cell,
                                       std::uint8_t c, double margin) {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < prepared.nodes.size(); ++rank) {
    const MaxWorkMatrix::RankedNode& node = cells.node(rank);
    bool any = false;
    for (const Span& span : spans.free()[node.place])
      if (span.start < cells.end(cell) && span.end > cells.begin(cell)) {
        const double from = std::max(span.start, cells.begin(cell));
        any = any || cells.class_of((span.end - from) * node.performance * margin) >= c;
      }
    if (any) ranks.push_back(rank);
  }
  return ranks;
}

// True if a free span of the node starts in the cell.
bool starts_in_cell(const MaxWorkMatrix& cells, const AvailabilityTimeline& spans, std::size_t rank,
            std::size_t cell) {
  bool any = false;
  for (const Span& span : spans.free()[cells.node(rank).place])
    any = any || (span.start >= cells.begin(cell) && span.start < cells.end(cell));
  return any;
}

// Ignores notifications: this test has no rows.
struct NullObserver {
  bool should_prefetch() const { return true; }
  template <class... Any>
  void prefetch_row(Any...) const {}
  template <class... Any>
  void insert(Any...) {}
  template <class... Any>
  void erase(Any...) {}
  template <class... Any>
  void set_start(Any...) {}
  template <class... Any>
  void set_end(Any...) {}
  template <class... Any>
  void subtract(Any...) {}
  template <class... Any>
  void apply_pending(Any...) {}
};

// After any change each class is at least what its node can do, and at most what a new build gives.
void classes_follow_free_time() {
  std::size_t compared = 0;
  for (int round = 0; round < 60; ++round) {
    const bool ties = below(2) == 0;
    Pool p(rows_of(int(2 + below(90)), ties, false, 1));
    if (p.rows.size() < 8) continue;
    AvailabilityTimeline spans;
    spans.reset(p.prepared.nodes);
    for (std::size_t i = 0; i < p.rows.size(); ++i)
      spans.append_free(spans.place_of_existing(p.rows[i].node),
                        {p.rows[i].start, p.rows[i].end, i});
    MaxWorkMatrix cells;
    cells.build(p.prepared, p.prices, spans, 8);
    NullObserver rows;
    std::vector<Booked> booked;
    for (int step = 0; step < 40; ++step) {
      std::size_t bad = 0;
      if (!booked.empty() && !below(3)) {
        const Booked last = booked.back();
        booked.pop_back();
        CHECK(spans.locate_booked(last.start, last.parts.data(), 1, bad) == Status::ok);
        spans.release(last.start, rows, [&](std::size_t k, const Span& freed, const Span& grown) {
          cells.on_released(k, spans.free()[k], freed, grown,
                     [](std::size_t, std::size_t, std::size_t) {});
        });
      } else {
        const std::size_t k = below(p.prepared.nodes.size());
        if (spans.free()[k].empty()) continue;
        const Span& span = spans.free()[k][below(spans.free()[k].size())];
        const double room = std::min(span.end - span.start, 40.0);
        const double start = span.start + (below(3) ? room * real() / 2 : 0);
        const double length = below(3) ? (room - (start - span.start)) * real() : room / 2;
        const Part part(0, p.prepared.nodes[k].id, length, 0);
        if (spans.locate_free(start, &part, 1, rows, bad) != Status::ok) continue;
        spans.book(start, &part, false, rows);
        cells.on_booked(k, spans.free()[k], start, start + length);
        booked.push_back({start, {part}});
      }
      MaxWorkMatrix rebuilt;
      rebuilt.build(p.prepared, p.prices, spans, 8);
      CHECK(rebuilt.size() == cells.size());
      for (std::size_t cell = 0; cell < cells.size(); ++cell)
        for (const double volume : {0.5, 3.0, 8.0, 15.0}) {
          const std::uint8_t c = cells.class_of(volume);
          std::vector<std::size_t> mine, built;
          constexpr std::size_t none = MaxWorkMatrix::NodeEnumerator::kEnd;
          MaxWorkMatrix::NodeEnumerator walk(cells, cell, c, 0), other(rebuilt, cell, c, 0);
          for (std::size_t r; (r = walk.next()) != none;) mine.push_back(r);
          for (std::size_t r; (r = other.next()) != none;) built.push_back(r);
          const auto capable = capable_nodes(cells, spans, p.prepared, cell, c, 1),
                     nearly_capable = capable_nodes(cells, spans, p.prepared, cell, c, 1 + 1e-6);
          CHECK(std::includes(mine.begin(), mine.end(), capable.begin(), capable.end()));
          CHECK(std::includes(nearly_capable.begin(), nearly_capable.end(), mine.begin(),
                              mine.end()));
          CHECK(mine == built);
          // The spans among them that start in the cell, by definition.
          std::vector<std::size_t> fresh, others;
          MaxWorkMatrix::NodeEnumerator starting(cells, cell, c, 0), old(cells, cell, c, 0);
          for (std::size_t r; (r = starting.next_starting_here()) != none;) fresh.push_back(r);
          for (std::size_t r; (r = old.next_already_free()) != none;) others.push_back(r);
          CHECK(fresh.size() + others.size() == mine.size());
          for (const std::size_t r : fresh) CHECK(starts_in_cell(cells, spans, r, cell));
          for (const std::size_t r : others) CHECK(!starts_in_cell(cells, spans, r, cell));
          compared += mine.size();
        }
    }
  }
  CHECK(compared > 100000);
}

// Small and large times, on cell edges and between them, a few ulps apart and near the largest
// double.
void cell_at_matches_linear_search() {
  std::size_t queries = 0;
  for (int round = 0; round < 200; ++round) {
    const double scale = std::pow(10.0, double(below(600)) - 300);
    const double origin = below(2) ? 0 : scale * 1e3;
    std::vector<Row> rows;
    for (int k = 0; k < int(2 + below(60)); ++k) {
      const double start = origin + scale * (below(3) ? real() : double(below(4)));
      rows.push_back({k, start, below(5) ? start + 2 * scale : kInfinity, 1 + real(), 1 + real()});
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.start != b.start ? a.start < b.start : a.node < b.node;
    });
    Pool p(rows);
    AvailabilityTimeline spans;
    spans.reset(p.prepared.nodes);
    for (std::size_t i = 0; i < rows.size(); ++i)
      spans.append_free(spans.place_of_existing(rows[i].node), {rows[i].start, rows[i].end, i});
    MaxWorkMatrix cells;
    cells.build(p.prepared, p.prices, spans, scale);
    std::vector<double> times{-kInfinity, kInfinity, 0.0, -0.0, 1e308, -1e308, origin};
    for (const Row& row : rows)
      for (const double t : {row.start, std::nextafter(row.start, kInfinity),
                             std::nextafter(row.start, -kInfinity), row.end, row.start / 2})
        times.push_back(t);
    for (const double t : times) {
      std::size_t at = 0;
      while (at + 1 < cells.size() && cells.begin(at + 1) <= t) ++at;
      CHECK(cells.cell_at(t) == at);
      ++queries;
    }
  }
  CHECK(queries > 10000);
}

// A new row inherits the bounds of lower classes and fewer parts, and later improvements reach it.
void rows_inherit_bounds() {
  Pool p(rows_of(40, false, false, 1));
  AvailabilityTimeline spans;
  spans.reset(p.prepared.nodes);
  for (std::size_t i = 0; i < p.rows.size(); ++i)
    spans.append_free(spans.place_of_existing(p.rows[i].node), {p.rows[i].start, p.rows[i].end, i});
  CostBoundCache bounds;
  bounds.build(p.prepared, p.prices, spans, 8);
  const std::uint8_t low = bounds.cells().class_of(4), high = bounds.cells().class_of(6);
  CHECK(low < high && bounds.covers(4) && bounds.covers(15));
  CHECK(!bounds.covers(17) && !bounds.covers(.01));
  bounds.find_or_create_row(3, low).table->raise(low, 1, 6, 0);
  CHECK(bounds.find_or_create_row(3, high).table->rows[high]->least[1] == 6);
  bounds.find_or_create_row(3, low).table->raise(low, 2, 7, 0);
  CHECK(bounds.find_or_create_row(3, high).table->rows[high]->least[2] == 7);
  bounds.find_or_create_row(3, high).table->raise(high, 3, 9, 0);
  CHECK(bounds.find_or_create_row(3, low).table->rows[low]->least[3] == 0);
  const float five = bounds.find_or_create_row(5, high).table->rows[high]->least[1];
  CHECK(five <= 10 && five > 9.999f);
  CHECK(bounds.find_or_create_row(2, high).table->rows[high]->least[1] == 0);
  // A release resets the bounds of its cells.
  const std::size_t k = spans.place_of_existing(p.rows[0].node);
  std::vector<Span> long_free{{bounds.cells().begin(1), kInfinity, 0}};
  bounds.on_released(k, {}, long_free[0], long_free[0]);
  bounds.on_released(k, long_free, long_free[0], long_free[0]);
  CHECK(bounds.find_or_create_row(3, high).table->rows[high]->least[1] == 0);
  CHECK(bounds.find_or_create_row(3, low).table->rows[low]->least[2] == 0);
}

// The largest volume requested before the build is distinguished, but an outlier does not push
// the other volumes below the lowest class.
void classes_cover_the_largest_volume() {
  Pool p(rows_of(40, false, false, 1));
  AvailabilityTimeline spans;
  spans.reset(p.prepared.nodes);
  for (const double largest : {30.0, 1e99}) {
    CostBoundCache bounds;
    bounds.should_use(p.prepared, largest);
    bounds.should_use(p.prepared, 4);
    bounds.build(p.prepared, p.prices, spans, 8);
    CHECK(bounds.covers(4) && bounds.covers(8) && bounds.covers(largest < 100 ? 55.0 : 250.0));
    CHECK(!bounds.covers(largest < 100 ? 65.0 : 300.0));
    bounds.build(p.prepared, p.prices, spans, 8);  // earlier volumes no longer count
    CHECK(bounds.covers(15) && !bounds.covers(17));
  }
}

// The price statistics of each group equal those of sorted prices, with and without blocks of nodes
// that are skipped.
void price_stats_equal_those_of_sorted_prices() {
  for (int round = 0; round < 60; ++round) {
    const std::size_t nodes = 1 + below(400), n = 1 + below(40), kinds = 1 + below(3);
    std::vector<Row> rows;
    for (std::size_t k = 0; k < nodes; ++k) {
      const double price = round % 3 == 0   ? 3
                           : round % 3 == 1 ? double(1 + below(9))
                                            : 10 * real() + 1e-3 * double(k);
      rows.push_back({static_cast<std::int32_t>(k), 0, 9, double(1 + below(kinds)), price});
    }
    PreparedSlots prepared(options);
    CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
    Workspace work;
    const auto& stats = detail::group_price_stats(prepared, n, 0, work);
    CHECK(stats.size() == prepared.groups.size());
    for (std::size_t k = 0; k < stats.size(); ++k) {
      std::vector<double> own, all;
      for (std::size_t i = 0; i < prepared.groups[k].end; ++i) {
        all.push_back(prepared.nodes[i].min_price);
        if (prepared.nodes[i].performance == prepared.groups[k].performance)
          own.push_back(all.back());
      }
      CHECK(stats[k].min == *std::min_element(own.begin(), own.end()));
      std::sort(all.begin(), all.end());
      CHECK(stats[k].nth == (all.size() < n ? kInfinity : all[n - 1]));
      if (all.size() < n) continue;
      double sum = 0;
      for (std::size_t i = 0; i + 1 < n; ++i) sum += all[i];
      CHECK(stats[k].sum_of_n_minus_1 <= sum);
      CHECK(stats[k].sum_of_n_minus_1 >= sum - 1e-12 * (sum + all[n - 1]));
    }
  }
}

}  // namespace

int main() {
  windows_equal_those_of_fresh_slots("cost");
  windows_equal_those_of_fresh_slots("start");
  windows_equal_those_of_fresh_slots("runtime");
  overflowing_costs_do_not_close_cells();
  classes_follow_free_time();
  cell_at_matches_linear_search();
  rows_inherit_bounds();
  classes_cover_the_largest_volume();
  price_stats_equal_those_of_sorted_prices();
  return report();
}

// Searches for the cheapest windows with cached cost bounds. After any earlier searches, failed
// allocations and interrupts, in one thread or several, the results equal those without a cache.
// The counted effort is checked as well.
#include "memory.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "slotkern/pool/adaptive_cost_search.hpp"
#include "pools.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Random spans of some nodes; with `ties` many slots are alike, with `several_prices` the prices
// differ within a node.
std::vector<Row> some_rows(int nodes, bool ties, bool several_prices) {
  std::vector<Row> rows;
  for (int k = 0; k < nodes; ++k) {
    const double speed = ties ? 1.0 + double(below(3)) : 0.5 + 3 * real();
    const double price = ties ? double(below(4)) : speed * (1 + real());
    double t = ties ? double(below(4)) : 5 * real();
    for (std::size_t i = below(9); i > 0; --i) {
      const double end = t + (ties ? 1 + double(below(25)) : 0.01 + 25 * real());
      rows.push_back({3 * k, t, end, speed, several_prices ? price * (0.5 + real()) : price});
      t = end + (ties ? double(below(4)) : 4 * real());
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  return rows;
}

Query some_query(int nodes) {
  Query query;
  query.n = std::int64_t(1 + below(std::size_t(std::min(nodes + 1, below(4) ? 6 : nodes + 1))));
  query.volume = below(2) ? double(1 + below(9)) : 1 + 15 * real();
  if (!below(9)) query.volume *= below(2) ? 100 : 0.01;
  if (!below(3)) query.budget = std::floor(double(query.n) * query.volume * 2 * real());
  if (!below(7)) query.earliest = 40 * real();
  if (!below(9)) query.latest = 60 * real();
  if (!below(9)) query.deadline = 80 * real();
  if (!below(9)) query.min_performance = 3 * real();
  if (!below(9)) query.max_price = 5 * real();
  if (!below(9)) query.max_runtime = 10 * real();
  if (!below(20)) query.setup = real();
  if (!below(40)) query.volume = 1e-16;  // may be too small to advance the clock
  return query;
}

bool same(const Found& a, const Found& b) {
  return a.start == b.start && a.cost == b.cost && a.runtime == b.runtime &&
         a.processor_time == b.processor_time && a.value == b.value;
}
bool same(const Part* a, const Part* b, std::size_t n) {
  return std::equal(a, a + n, b, [](const Part& x, const Part& y) {
    return x.row == y.row && x.node == y.node && x.length == y.length && x.cost == y.cost;
  });
}

void cached_bounds_change_no_result() {
  const int cost = criterion_index("cost");
  std::size_t found = 0, refused = 0, interrupted = 0;
  for (int round = 0; round < 300; ++round) {
    const int nodes = int(1 + below(below(3) ? 20 : 150));
    const std::vector<Row> rows = some_rows(nodes, below(2) == 0, below(3) == 0);
    PreparedSlots prepared(options);
    CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
    CostCachePool memory;
    std::vector<Query> queries;
    std::vector<std::uint8_t> mask(rows.size());
    for (std::uint8_t& lets : mask) lets = below(4) > 0;
    for (int k = 0; k < 80; ++k) {
      Query query = some_query(nodes);
      if (!below(9)) query.mask = mask.data(), query.masked = mask.size();
      if (query.volume > 1e-9) queries.push_back(query);
      const int criterion = below(8) ? cost : int(below(kBuiltins));
      const ShapeKind shape = below(8) ? ShapeKind::ragged : ShapeKind::square;
      if (!below(6)) {  // a failed allocation leaves nothing behind
        memory_left = long(below(12));
        const Answer lean = find_window(prepared, memory, query, criterion, shape);
        memory_left = -1;
        refused += lean.status == Status::no_memory;
      }
      if (!below(9)) {
        InterruptScope watch;
        watch.arm(true);
        detail::stop_flags.fetch_or(detail::by_signal);
        const Status status = find_window(prepared, memory, query, criterion, shape).status;
        detail::stop_flags.fetch_and(~unsigned{detail::by_signal});
        interrupted += status == Status::interrupted;
      }
      const Answer mine = find_window(prepared, memory, query, criterion, shape);
      const Found kept = mine.found;
      const auto n = static_cast<std::size_t>(query.n);
      const std::vector<Part> parts(mine.parts, mine.parts + (mine.status == Status::ok ? n : 0));
      const Answer other = find_window(prepared, query, criterion, shape);
      CHECK(mine.status == other.status);
      if (other.status != Status::ok) continue;
      CHECK(same(kept, other.found) && same(parts.data(), other.parts, n));
      ++found;
      if (!below(50)) memory.clear();
    }
    WindowTable cached, plain;
    std::size_t wrong = 0;
    const Status one = find_windows(prepared, queries, cost, ShapeKind::ragged, 1, plain, wrong);
    const auto threads = unsigned(1 + below(3));
    CHECK(find_windows(prepared, memory, queries, cost, ShapeKind::ragged, threads, cached,
                    wrong) == one);
    if (one != Status::ok) continue;
    CHECK(cached.size() == plain.size() && cached.parts.size() == plain.parts.size());
    for (std::size_t k = 0; k < plain.size(); ++k) {
      CHECK(cached.any(k) == plain.any(k));
      if (!plain.any(k)) continue;
      CHECK(same(cached.found[k], plain.found[k]) &&
            same(cached.parts_of(k), plain.parts_of(k), plain.count(k)));
    }
  }
  CHECK(found > 5000 && interrupted > 500 && refused > 20);
  PreparedSlots none(options);
  CostCachePool memory;
  CHECK(prepare_slots(none, view_of({}), true, ShapeKind::square, 0).status == Status::ok);
  CHECK(find_window(none, memory, some_query(1), cost, ShapeKind::ragged).status == Status::none);
  CHECK(find_window(none, memory, some_query(1), 99, ShapeKind::ragged).status ==
        Status::request_not_valid);
}

// Cell searches that gain nothing cost a small share of the effort of sweeps; if they gain, sweeps
// are rare; and a balance is not spent at once on failures.
void failing_cell_searches_are_rare() {
  for (const bool was_build : {false, true}) {
    AdaptiveBudget losing, gaining;
    double by_cells = 0, by_sweeps = 0;
    for (int k = 0; k < 400000; ++k) {
      const std::size_t allowed = losing.budget();
      if (allowed > 0)
        losing.record_cell_search(false, allowed, was_build);
      else
        CHECK(losing.record_sweep(200) <= 200);
      if (k < 100000) continue;  // the initial balance has been spent
      (allowed > 0 ? by_cells : by_sweeps) += allowed > 0 ? double(allowed) : 200;
    }
    CHECK(by_sweeps > 0 && by_cells > 0 && by_cells < by_sweeps * (was_build ? 0.3 : 0.05));
    CHECK(was_build || losing.record_sweep(200) < 20);

    int sweeps = 0;
    for (int k = 0; k < 400000; ++k) {
      const std::size_t allowed = gaining.budget();
      if (allowed > 0)
        gaining.record_cell_search(true, 10, was_build);
      else
        gaining.record_sweep(200), ++sweeps;
    }
    // One each time that cell searches have spent 48 sweeps, and some at the beginning.
    const double again = (400000 - sweeps) * 10.0 / (48 * 201);
    CHECK(sweeps > again - 2 && sweeps < again + 20);
    while (gaining.budget() == 0) gaining.record_sweep(200);
    CHECK(gaining.budget() <= (was_build ? 17 : 4) * 201);
    while (gaining.budget() > 0) gaining.record_cell_search(true, 10, true);
    for (int k = 0; k < 100; ++k) gaining.record_sweep(200000);  // sweeps have become longer
    CHECK(gaining.budget() > 150000);
  }
}

// Counted effort of 3,000 searches, with cached cost bounds and without.
struct Efforts {
  double cached = 0, plain = 0;
};

template <class Ask>
Efforts efforts_of(const PreparedSlots& prepared, CostCachePool& memory, Ask ask) {
  const int cost = criterion_index("cost");
  Efforts efforts;
  for (int k = 0; k < 3000; ++k) {
    const Query query = ask();
    workspace().effort = 0;
    const Status mine = find_window(prepared, memory, query, cost, ShapeKind::ragged).status;
    efforts.cached += double(workspace().effort);
    workspace().effort = 0;
    CHECK(find_window(prepared, query, cost, ShapeKind::ragged).status == mine);
    efforts.plain += double(workspace().effort);
  }
  return efforts;
}

// The share of the effort that remains with the cache.
template <class Ask>
double share(const PreparedSlots& prepared, CostCachePool& memory, Ask ask) {
  const Efforts efforts = efforts_of(prepared, memory, ask);
  return efforts.cached / efforts.plain;
}

// Realistic pools, with limits just above the measured shares: one width; many widths and volumes;
// hard requests among easy ones; and one width again after many.
void caching_saves_effort() {
  std::vector<Row> rows;
  for (std::int32_t k = 0; k < 120; ++k) {
    const double speed = 2 + 8 * real(), price = speed * (1 + 0.1 * speed) * (0.8 + 0.4 * real());
    for (double t = 90 * real(); t < 6000;) {
      const double end = t + 20 + 300 * real();
      rows.push_back({k, t, end, speed, price});
      t = end + 60 * real();
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  const auto some = [](std::int64_t n, double octaves) {
    Query query;
    query.n = n, query.volume = 200 * std::exp2(octaves * real());
    return query;
  };
  CostCachePool one, many, wide, hard;
  const auto five = [&] { return some(5, 0.6); };
  CHECK(share(prepared, one, five) < 0.36);
  CHECK(share(prepared, one, five) < 0.35);
  // Wide sweeps are cheap, so the share alone is not sufficient: the effort itself must not rise.
  const Efforts efforts =
      efforts_of(prepared, many, [&] { return some(2 + std::int64_t(below(20)), 1); });
  CHECK(efforts.cached < 3000 * 1400 && efforts.cached < 0.5 * efforts.plain);
  CHECK(share(prepared, wide, [&] { return some(2 + std::int64_t(below(60)), 4); }) < 1.12);
  CHECK(share(prepared, wide, five) < 0.35);
  CHECK(share(prepared, hard, [&] {
          Query query = five();
          if (!below(20)) query.min_performance = 7;
          return query;
        }) < 0.41);
}

// Books a stream of cheapest windows into a pool, with cost bounds and without: n parts on nodes of
// many kinds or of four. Returns the share of the effort that remains, with that of builds and
// changes.
double share_of_stream(std::size_t n, bool few_kinds) {
  std::vector<Row> rows;
  for (std::int32_t k = 0; k < 300; ++k) {
    const double speed = few_kinds ? 2.0 * double(1 + below(4)) : 2 + 8 * real();
    const double price = few_kinds ? speed : speed * (0.8 + 0.4 * real());
    for (double t = 300 * real(); t < 3600;) {
      const double end = t + 50 + 500 * real();
      rows.push_back({k, t, end, speed, price});
      t = end + 300 * real();
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  std::vector<double> volumes;
  for (int k = 0; k < 2400; ++k) volumes.push_back(100 + 100 * real());
  double effort[2] = {};
  std::vector<double> costs[2];
  for (const bool cached : {false, true}) {
    if (!cached) options.min_cost_bound_rows = IndexOptions::kNever;
    Pool p(rows);
    options = {};
    for (std::size_t k = 0; k < volumes.size() * 5 / n; ++k) {
      Query query;
      query.n = static_cast<std::int64_t>(n), query.volume = volumes[k];
      workspace().effort = 0;
      const Answer answer = find_window(p.pool, query, criterion_index("cost"), ShapeKind::ragged);
      effort[cached] += double(workspace().effort);
      costs[cached].push_back(answer.status == Status::ok ? answer.found.cost : -1);
      std::size_t bad = 0;
      if (answer.status == Status::ok)
        CHECK(book(p.pool, answer.found.start, answer.parts, n, bad) == Status::ok);
    }
  }
  CHECK(costs[0] == costs[1]);
  return effort[1] / effort[0];
}

void streams_cost_no_more_effort_than_sweeps() {
  const double shares[] = {share_of_stream(5, false), share_of_stream(20, false),
                           share_of_stream(50, false), share_of_stream(5, true),
                           share_of_stream(50, true)};
  CHECK(shares[0] < 0.42 && shares[1] < 0.76 && shares[2] < 0.87);
  for (const double share : shares) CHECK(share < 1.02);
}

// While all caches are leased, further leases find the same windows by sweeps; a cache returned is
// used again.
void searches_without_a_cache_sweep() {
  const std::vector<Row> rows = some_rows(120, false, false);
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  CostCachePool memory;
  const int cost = criterion_index("cost");
  Query query;
  query.n = 3, query.volume = 4;
  const double expected = find_window(prepared, query, cost, ShapeKind::ragged).found.value;
  for (int again = 0; again < 2; ++again) {
    CostCachePool::Lease a(memory), b(memory), c(memory), d(memory), e(memory);
    for (int k = 0; k < 3; ++k)
      for (CostCachePool::Lease* lease : {&a, &b, &c, &d, &e})
        CHECK(lease->find(prepared, query, cost, ShapeKind::ragged).found.value == expected);
  }
}

}  // namespace

int main(int argc, char**) {
  const bool defaults = use_default_options(argc);
  cached_bounds_change_no_result();
  failing_cell_searches_are_rare();
  if (defaults) {
    caching_saves_effort();
    streams_cost_no_more_effort_than_sweeps();
  }
  searches_without_a_cache_sweep();
  return report();
}

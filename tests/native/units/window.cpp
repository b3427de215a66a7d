// Unit tests of window tables, the n-cheapest structures and tie handling, against plain
// definitions.
#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "slotkern/window/alternatives.hpp"
#include "slotkern/window/top_n.hpp"
#include "slotkern/window/find.hpp"
#include "memory.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

void tables_return_what_was_added() {
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
  CHECK(other.bounds.empty());  // every value is proven so far
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
  CHECK(other.size() == 0 && other.ends.empty() && other.bounds.empty());
}

// Compares offer() and drop_expired() with a plain list.
void top_n_matches_a_plain_list() {
  for (int round = 0; round < 80; ++round) {
    const std::size_t n = 1 + below(round % 5 == 0 ? 60 : 10), members = 400;
    const bool reserve = below(4) != 0, ties = below(2) == 0;
    TopNByKey cheapest;
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
      cheapest.drop_expired(keep);
      CHECK(cheapest.full() == (plain.size() >= n));
      if (!cheapest.full()) continue;
      for (std::size_t i = 0; i < n; ++i)
        CHECK(cheapest[i].key == plain[i].key && alive[cheapest[i].row]);
      const double sum = exact_sum(n, [&](std::size_t i) { return plain[i].key; });
      CHECK(cheapest.sum() == sum);
      CHECK(cheapest.lower() <= sum && cheapest.lower() >= sum - 1e-9 * (1 + sum));
    }
    if (!reserve) {
      sort();
      CHECK(cheapest.full());
      for (std::size_t i = 0; i < n; ++i) CHECK(cheapest[i].key == plain[i].key);
    }
  }
}

// Compares offers, removals, taken windows and a compacted overflow with a plain list; ties by
// node.
void top_n_remnants_matches_a_plain_list() {
  using slotkern::detail::TopNRemnants;
  for (int round = 0; round < 120; ++round) {
    const std::size_t n = 1 + below(round % 5 == 0 ? 60 : 10), members = 400;
    const bool ties = below(2) == 0;
    TopNRemnants front(n, 4);
    std::vector<TopNRemnants::Member> plain;
    std::vector<char> alive(members, 1);
    const auto keep = [&](std::uint32_t remnant) { return alive[remnant] != 0; };
    for (std::uint32_t remnant = 0; remnant < members; ++remnant) {
      const auto node = static_cast<std::int32_t>(7 * remnant % members);
      const TopNRemnants::Member member{ties ? static_cast<double>(below(20)) : 100 * real(), node,
                                        remnant};
      if (front.is_overflow_full()) front.compact_overflow(keep);
      CHECK(!front.offer({kInfinity, node, remnant}));
      front.offer(member);
      plain.insert(std::upper_bound(plain.begin(), plain.end(), member), member);
      if (below(6) == 0) alive[below(remnant + 1)] = 0;
      if (below(5) != 0) continue;
      std::erase_if(plain, [&](const TopNRemnants::Member& one) { return !keep(one.remnant); });
      while (front.full() && front.drop_expired(keep)) {
      }
      CHECK(front.full() == (plain.size() >= n));
      if (!front.full()) continue;
      const double sum = exact_sum(n, [&](std::size_t i) { return plain[i].key; });
      for (std::size_t i = 0; i < n; ++i) {
        CHECK(front[i].remnant == plain[i].remnant && front[i].key == plain[i].key);
        std::size_t lower = 0;
        for (std::size_t k = 0; k < n; ++k) lower += plain[k].node < plain[i].node;
        CHECK(front.rank(i) == lower);
      }
      CHECK(front.sum() == sum);
      CHECK(front.lower() <= sum && front.lower() >= sum - 1e-9 * (1 + sum));
      if (below(3) != 0) continue;
      front.drop_cheapest(keep);
      plain.erase(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }
}

// The calendar queue returns entries in sorted order, for any width of its buckets.
void calendar_queue_matches_a_sorted_list() {
  using slotkern::detail::CalendarQueue, slotkern::detail::PendingRemnant;
  static CalendarQueue calendar;
  for (int round = 0; round < 200; ++round) {
    const double first = round % 3 == 0 ? -50 : 0,
                 last = round % 4 == 0 ? first : round % 4 == 1 ? kInfinity : first + 100 * real();
    calendar.reset(first, last);
    std::vector<PendingRemnant> plain;
    double now = first;
    for (std::uint32_t k = 0; k < 300; ++k) {
      const double ahead = below(2) ? static_cast<double>(below(8)) : 40 * real();
      const PendingRemnant coming{now + ahead, static_cast<std::int32_t>(k * 11 % 300), k};
      calendar.add(coming);
      plain.insert(std::upper_bound(plain.begin(), plain.end(), coming), coming);
      const double until = below(9) == 0 ? kInfinity : now + 5 * real() - 1;
      while (below(3) != 0) {
        const PendingRemnant* next = calendar.first(until);
        CHECK(next || plain.empty() || plain.front().start > until);
        if (!next) break;
        CHECK(next->remnant_id == plain.front().remnant_id);
        now = std::max(now, next->start);
        calendar.drop_first();
        plain.erase(plain.begin());
      }
    }
    for (const PendingRemnant& coming : plain) {
      const PendingRemnant* next = calendar.first(kInfinity);
      CHECK(next && next->remnant_id == coming.remnant_id);
      calendar.drop_first();
    }
    CHECK(!calendar.first(kInfinity));
  }
}

// Compares TopNLive with a plain list: while nothing below the cutoff is missing, a rescan restores
// discarded slots, and the sums are bounds at any time.
void top_n_live_matches_a_plain_list() {
  for (int round = 0; round < 120; ++round) {
    const std::size_t n = 1 + below(round % 3 == 0 ? 120 : 8), spare = 1 + below(20), members = 500;
    const bool ties = below(2) == 0;
    const double huge = round % 7 == 0 ? 1e300 : 1;
    TopNLive kept;
    kept.reset(n, spare);
    std::vector<Entry> plain;
    std::vector<char> alive(members, 1);
    const auto keep = [&](std::size_t row) { return alive[row] != 0; };
    double nth = kInfinity;  // at the last call of clear_changed()
    for (std::size_t row = 0; row < members; ++row) {
      double key = ties ? static_cast<double>(below(20)) : 100 * real();
      if (below(50) == 0) key *= huge;
      CHECK(kept.add(key, row) || key >= kept.cutoff());
      CHECK(!kept.add(kInfinity, row));
      plain.push_back({key, row});
      if (below(4) == 0) alive[below(row + 1)] = 0;
      if (below(3) != 0) continue;
      std::stable_sort(plain.begin(), plain.end(), ByKey{});
      const double optimistic_sum = kept.optimistic_sum();  // removal can only raise the sum
      if (below(3) == 0) {  // drop expired slots from any position; all others stay
        kept.retain(keep);
        std::erase_if(plain, [&](const Entry& entry) { return !alive[entry.row]; });
        if (kept.cutoff() == kInfinity) CHECK(kept.is_exhausted() == (plain.size() < n));
        double cheapest = 0;
        for (std::size_t i = 0; i < std::min(n, plain.size()); ++i) cheapest += plain[i].key;
        if (kept.cutoff() == kInfinity) CHECK(kept.upper_bound() >= cheapest * (1 - 1e-9));
      }
      if (below(2) == 0) {
        const bool less = plain.size() >= n && plain[n - 1].key < nth;
        CHECK(kept.merge_pending() || !less);
        kept.clear_changed();
      }
      kept.merge_pending();
      if (optimistic_sum > -kInfinity) CHECK(optimistic_sum <= kept.sum());
      std::erase_if(plain, [&](const Entry& entry) { return !alive[entry.row]; });
      const auto sum = [&] { return exact_sum(n, [&](std::size_t i) { return plain[i].key; }); };
      if (plain.size() >= n) CHECK(kept.lower() <= sum());
      while (kept.drop_expired(keep)) {
      }
      if (plain.size() >= n) CHECK(kept.lower() <= sum());
      if (!kept.full() && kept.cutoff() < kInfinity) {
        kept.reset(n, spare);
        for (const Entry& entry : plain) kept.add(entry.key, entry.row);
        kept.merge_pending();
      }
      kept.clear_changed();
      CHECK(kept.full() == (plain.size() >= n));
      nth = kept.full() ? kept.nth_key() : kInfinity;
      if (!kept.full()) continue;
      auto expected = plain.begin();
      kept.each([&](const Entry& entry) {
        CHECK(entry.key == expected->key && alive[entry.row]);
        ++expected;
      });
      CHECK(kept.sum() == sum());
      if (kept.is_tie_free() && plain.size() > n) CHECK(plain[n - 1].key < plain[n].key);
    }
  }
}

// With times as large as seconds since 1970, ends within an ulp of the best one still count.
void a_finish_within_an_ulp_is_a_tie() {
  const double t = 1.7e9;
  const std::vector<Row> rows{{0, t, t + 9, 3, 5}, {1, t, t + 9, 3 * (1 - 2e-7), 1}};
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  Query query;
  query.n = 1, query.volume = 0.3;
  const Answer answer = find_window(prepared, query, criterion_index("finish"), ShapeKind::ragged);
  CHECK(answer.status == Status::ok && answer.parts[0].node == 1);
}

// Cheap nodes are swept first, up to a rate rounded to a float. A node just beyond it costs the
// same after rounding, and comes first.
void a_tie_beyond_the_cheapest_nodes_counts() {
  const double rate = 2 - 0x1p-23, beyond = std::nextafter(rate, 3);
  double volume = 1.1;
  while (volume * rate != volume * beyond) volume = std::nextafter(volume, 2);
  std::vector<Row> rows;
  for (int node = 0; node < 80; ++node)
    rows.push_back({node, 0, 9, 1, node == 7 ? beyond : node == 60 ? rate : 3});
  for (int node = 0; node < 3; ++node) rows[node].end = 0.5, rows[node].price = 0.5;
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  Query query;
  query.n = 1, query.volume = volume;
  const Answer answer = find_window(prepared, query, criterion_index("cost"), ShapeKind::ragged);
  CHECK(answer.status == Status::ok && answer.parts[0].node == 7);
}

// Many requests in chunks, with any number of threads: each has the same window as alone, and the
// first invalid request is reported.
void many_requests_match_single_requests() {
  std::vector<Row> rows;
  for (int node = 0; node < 40; ++node) {
    const double begin = static_cast<double>(below(9));
    rows.push_back({node, begin, begin + 5 + 20 * real(), 1.0 + below(4), 1.0 + below(3)});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start < b.start || (a.start == b.start && a.node < b.node);
  });
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  const int cost = criterion_index("cost");
  std::vector<Query> queries(1000);
  for (Query& query : queries)  // some request more nodes than exist
    query.n = 1 + static_cast<std::int64_t>(below(50)), query.volume = 1 + 20 * real();
  std::size_t none = 0, wrong = 0;
  for (unsigned threads = 1; threads <= 4; ++threads) {
    WindowTable table;
    table.add_none();  // its previous contents are discarded
    CHECK(find_windows(prepared, queries, cost, ShapeKind::ragged, threads, table, wrong) ==
          Status::ok);
    CHECK(table.size() == queries.size());
    CHECK(4 * table.parts.capacity() <= 5 * table.parts.size());
    for (std::size_t k = 0; k < queries.size(); ++k) {
      const Answer alone = find_window(prepared, queries[k], cost, ShapeKind::ragged);
      CHECK(table.any(k) == (alone.status == Status::ok));
      none += !table.any(k);
      for (std::size_t i = 0; i < table.count(k); ++i)
        CHECK(table.parts_of(k)[i].row == alone.parts[i].row &&
              table.parts_of(k)[i].cost == alone.parts[i].cost);
    }
  }
  CHECK(none > 100 && none < 4 * queries.size() - 100);
  for (unsigned threads = 1; threads <= 4; ++threads) {
    std::vector<Query> some = queries;
    const std::size_t first = below(some.size());
    for (std::size_t k = first; k < some.size(); k += 1 + below(200)) some[k].volume = -1;
    WindowTable table;
    CHECK(find_windows(prepared, some, cost, ShapeKind::ragged, threads, table, wrong) ==
          Status::request_not_valid);
    CHECK(wrong == first);
  }
  WindowTable table;
  CHECK(find_windows(prepared, {}, cost, ShapeKind::ragged, 2, table, wrong) == Status::ok);
  CHECK(table.size() == 0);
}

// A start that no rounded difference reaches counts if the rounded sum is within the deadline.
void the_rounded_sum_decides_the_deadline() {
  int beyond = 0;
  for (int k = 0; k < 200; ++k) {
    // An odd number of half ulps: both the difference and the sum are ties.
    const double deadline = 1.7e9 + static_cast<double>(below(1000)) * 0x1p-22;
    const double length = static_cast<double>(2 * below(1000) + 101) * 0x1p-23;
    double start = deadline - length;
    while (start + length > deadline) start = std::nextafter(start, 0);
    while (std::nextafter(start, kInfinity) + length <= deadline)
      start = std::nextafter(start, kInfinity);
    beyond += start > deadline - length;
    const std::vector<Row> rows{{0, start, deadline + 9, 1, 1}};
    PreparedSlots prepared(options);
    CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status ==
          Status::ok);
    Query query;
    query.n = 1, query.volume = length, query.deadline = deadline;
    const int criterion = criterion_index("start");
    CHECK(find_window(prepared, query, criterion, ShapeKind::ragged).status == Status::ok);
    CHECK(find_window(prepared, query, criterion, ShapeKind::square).status == Status::ok);
  }
  CHECK(beyond > 20);
}

// The first slot is treated as every other: with an unusable slot before it, all searches find the
// same. It is fast and expensive, so that sweeps first keep many cheaper slots and return to it in
// a rescan.
void an_unusable_slot_changes_no_answer() {
  int found = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<Row> rows;
    const int nodes = 120;
    for (int node = 0; node < nodes; ++node) {
      const bool fast = node == 0 || below(12) == 0;
      const double performance = static_cast<double>(fast ? 6 + below(3) : 1 + below(2));
      double now = static_cast<double>(below(3));
      for (std::size_t k = 0; k < 1 + below(4); ++k) {
        const double end = now + static_cast<double>(5 + below(60));
        const double price = static_cast<double>(fast ? 8 + below(8) : 1 + below(3));
        rows.push_back({node, now, end, performance, price});
        now = end + static_cast<double>(below(20));
      }
    }
    rows[0].start = 0, rows[0].end = std::max(rows[0].end, 300.0);
    while (rows.size() > 1 && rows[1].node == 0) rows.erase(rows.begin() + 1);
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.start < b.start || (a.start == b.start && a.node < b.node);
    });
    CHECK(rows[0].node == 0);
    std::vector<Row> more = rows;
    more.insert(more.begin(), {nodes, -1, 1e4, 0.01, 0});
    PreparedSlots plain(options), longer(options);
    CHECK(prepare_slots(plain, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
    CHECK(prepare_slots(longer, view_of(more), true, ShapeKind::square, 0).status == Status::ok);
    Query query;
    query.n = static_cast<std::int64_t>(1 + below(6));
    query.volume = static_cast<double>(10 + below(100));
    query.budget = static_cast<double>(query.n) * query.volume * static_cast<double>(1 + below(3));
    query.min_performance = 0.1;
    for (int criterion = 0; criterion < kBuiltins; ++criterion)
      for (const ShapeKind shape : {ShapeKind::ragged, ShapeKind::square}) {
        const Answer a = find_window(plain, query, criterion, shape);
        const Status status = a.status;
        const Found window = a.found;
        std::vector<std::size_t> places;
        if (status == Status::ok)
          for (std::int64_t i = 0; i < query.n; ++i) places.push_back(a.parts[i].row + 1);
        const Answer b = find_window(longer, query, criterion, shape);
        CHECK(b.status == status);
        if (status != Status::ok) continue;
        ++found;
        CHECK(b.found.start == window.start && b.found.cost == window.cost);
        for (std::size_t i = 0; i < places.size(); ++i) CHECK(b.parts[i].row == places[i]);
      }
  }
  CHECK(found > 200);
}

// Of 41 slots at the first start the sweep keeps the cheapest; after these expire, a rescan
// restores the first slot for two that start late.
void a_rescan_restores_discarded_slots() {
  std::vector<Row> rows{{0, 0, 1000, 1, 2}};
  for (int node = 1; node <= 40; ++node) rows.push_back({node, 0, 10, 1, 1});
  rows.push_back({41, 20, 1000, 1, 0.1});
  rows.push_back({42, 20, 1000, 1, 0.1});
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  Query query;
  query.n = 3, query.volume = 10;
  for (const ShapeKind shape : {ShapeKind::ragged, ShapeKind::square}) {
    const Answer answer = find_window(prepared, query, criterion_index("cost"), shape);
    CHECK(answer.status == Status::ok && answer.found.start == 20);
    CHECK(answer.parts[0].row == 0 && answer.parts[1].row == 41 && answer.parts[2].row == 42);
  }
}

// The search continues for any number of nodes that may give a better window: two slow nodes are
// free at once, a hundred fast ones later.
void a_search_waits_for_many_faster_nodes() {
  std::vector<Row> rows{{0, 0, 2000, 1, 1}, {1, 0, 2000, 1, 1}};
  for (int k = 0; k < 12; ++k)
    for (int node = 2; node < 102; ++node)
      rows.push_back({node, 50 + 100.0 * k, 60 + 100.0 * k, 2, 1});
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  Query query;
  query.n = 2, query.volume = 10;
  const Answer answer = find_window(prepared, query, criterion_index("runtime"), ShapeKind::ragged);
  CHECK(answer.status == Status::ok && answer.found.start == 50);
  CHECK(answer.parts[0].row == 2 && answer.parts[1].row == 3);
}

// If memory runs out at any allocation of a search, the next search still finds the same as a first
// one: no partial state stays in the thread's scratch.
void bad_alloc_leaves_no_partial_state() {
  std::vector<Row> costly, cheap;
  for (int node = 0; node < 60; ++node) {
    const double performance = static_cast<double>(1 + node % 6);
    costly.push_back({node, 0, 100, performance, static_cast<double>(5 + node % 7)});
    cheap.push_back({node, 0, 100, performance, static_cast<double>(node % 5)});
  }
  PreparedSlots first(options), second(options);
  CHECK(prepare_slots(first, view_of(costly), true, ShapeKind::square, 0).status == Status::ok);
  CHECK(prepare_slots(second, view_of(cheap), true, ShapeKind::square, 0).status == Status::ok);
  const int criterion = criterion_index("cost");
  const auto query_for = [](std::int64_t n) {
    Query query;
    query.n = n, query.volume = 60;
    return query;
  };
  double costs[24] = {};
  for (std::int64_t n = 1; n < 24; ++n)
    costs[n] = find_window(second, query_for(n), criterion, ShapeKind::square).found.cost;
  int refused = 0;
  for (long allowed = 0; allowed < 24; ++allowed)
    std::thread([&] {  // with its own scratch
      for (std::int64_t n = 1; n < 12; ++n)
        find_window(first, query_for(n), criterion, ShapeKind::square);
      memory_left = allowed;
      for (std::int64_t n = 23; n > 11; --n)
        refused += find_window(second, query_for(n), criterion, ShapeKind::square).status ==
                   Status::no_memory;
      memory_left = -1;
      for (std::int64_t n = 1; n < 24; ++n) {
        const Answer answer = find_window(second, query_for(n), criterion, ShapeKind::square);
        CHECK(answer.status == Status::ok && answer.found.cost == costs[n]);
      }
    }).join();
  CHECK(refused > 0);
}

}  // namespace

int main() {
  tables_return_what_was_added();
  top_n_matches_a_plain_list();
  top_n_remnants_matches_a_plain_list();
  calendar_queue_matches_a_sorted_list();
  top_n_live_matches_a_plain_list();
  a_finish_within_an_ulp_is_a_tie();
  a_tie_beyond_the_cheapest_nodes_counts();
  many_requests_match_single_requests();
  the_rounded_sum_decides_the_deadline();
  an_unusable_slot_changes_no_answer();
  a_rescan_restores_discarded_slots();
  a_search_waits_for_many_faster_nodes();
  bad_alloc_leaves_no_partial_state();
  return report();
}

// The caches and indexes of a pool, each against its definition.
#include <algorithm>
#include <cmath>
#include <vector>

#include "slotkern/pool/embed.hpp"
#include "memory.hpp"
#include "pools.hpp"

using namespace slotkern;
using namespace unit;

namespace {

Query ask(std::int64_t n, double volume, double budget) {
  Query query;
  query.n = n, query.volume = volume, query.budget = budget;
  return query;
}

// The start bound cached for a window at `start`: none if the pool is too small for caching.
double cached_start(double start) {
  return options.max_rows_without_start_bounds == 0 ? start : -kInfinity;
}

void start_bounds_hold_for_harder_requests() {
  StartBoundCache cache;
  const Query base = ask(2, 10, 35);
  CHECK(cache.bound(base) == -kInfinity);
  cache.record(base, 1, -kInfinity, 50);
  CHECK(cache.bound(base) == 50);
  CHECK(cache.bound(ask(3, 10, 35)) == 50 && cache.bound(ask(2, 11, 35)) == 50);
  CHECK(cache.bound(ask(1, 10, 35)) == -kInfinity && cache.bound(ask(2, 9, 35)) == -kInfinity);
  CHECK(cache.bound(ask(2, 10, 36)) == -kInfinity && cache.bound(ask(2, 10, 34)) == 50);
  CHECK(cache.bound(ask(4, 10, 69)) == 50 && cache.bound(ask(4, 10, 71)) == -kInfinity);
  Query fast = base, late = base;
  fast.min_performance = 2;
  late.earliest = 7;
  CHECK(cache.bound(fast) == 50 && cache.bound(late) == 50);
  // A part may cost the whole budget if the n - 1 others are free of charge.
  Slot slot{0, 100, 1, 3, 3, 0, 0};
  cache.lower_for_freed(slot);
  CHECK(cache.bound(base) == 0);
  cache.record(base, 1, -kInfinity, 50);
  slot.rate = slot.price = 4;  // 10 * 4 > 35
  cache.lower_for_freed(slot);
  CHECK(cache.bound(base) == 50);
  slot.rate = slot.price = 1, slot.end = 9;  // too short
  cache.lower_for_freed(slot);
  CHECK(cache.bound(base) == 50);
  slot.end = 100, slot.start = 60;
  cache.lower_for_freed(slot);
  CHECK(cache.bound(base) == 50);
  slot.start = 20;
  cache.lower_for_freed(slot);
  CHECK(cache.bound(base) == 20);
  // A bound recorded later is lowered too, although the same slot has lowered all before it.
  cache.record(ask(2, 5, 35), 1, -kInfinity, 80);
  CHECK(cache.bound(ask(2, 5, 35)) == 80);
  cache.lower_for_freed(slot);
  CHECK(cache.bound(ask(2, 5, 35)) == 20);
  cache.clear();
  CHECK(cache.bound(base) == -kInfinity);
  cache.record(fast, 1, -kInfinity, 50);
  CHECK(cache.bound(base) == -kInfinity && cache.bound(fast) == 50);
  slot.start = 0;
  cache.lower_for_freed(slot);  // too slow
  CHECK(cache.bound(fast) == 50);
  cache.clear();
  cache.record(late, 1, 7, 50);
  CHECK(cache.bound(base) == -kInfinity && cache.bound(late) == 50);
  Query picky = base;
  picky.deadline = 90;
  cache.clear();
  cache.record(picky, 1, -kInfinity, 50);
  CHECK(cache.bound(picky) == -kInfinity);
  for (int k = 0; k < 2000; ++k) cache.record(ask(2, 1000 + k, 35), 1, -kInfinity, k);
  CHECK(cache.bound(ask(2, 4000, 35)) == 1999);
}

// Many slots that become free lower each bound as a cache that starts over for every slot does.
void freed_slots_lower_all_bounds_that_they_serve() {
  for (int walk = 0; walk < 200; ++walk) {
    StartBoundCache cache;
    std::vector<Query> queries;
    std::vector<double> bounds;
    for (int step = 0; step < 30; ++step) {
      if (below(4) == 0) {
        const double volume = static_cast<double>(1 + below(8));
        queries.push_back(ask(1 + static_cast<std::int64_t>(below(3)), volume, 1000));
        bounds.push_back(static_cast<double>(10 + below(50)));
        cache.record(queries.back(), 1, -kInfinity, bounds.back());
        continue;
      }
      const double start = static_cast<double>(below(40)), end = start + 1 + double(below(8));
      const double performance = static_cast<double>(1 + below(2));
      const Slot slot{start, end, performance, 1, 1 / performance, 0, 0};
      cache.lower_for_freed(slot);
      for (std::size_t k = 0; k < queries.size(); ++k)
        if ((end - start) * performance >= queries[k].volume)
          bounds[k] = std::min(bounds[k], start);
    }
    for (const Query& query : queries) {
      double most = -kInfinity;  // the bounds of easier requests hold too
      for (std::size_t k = 0; k < queries.size(); ++k)
        if (queries[k].n <= query.n && queries[k].volume <= query.volume)
          most = std::max(most, bounds[k]);
      CHECK(cache.bound(query) == most);
    }
  }
}

// Two payments that overflow or underflow would compare equal, but are not.
void extreme_numbers_are_not_cached() {
  StartBoundCache cache;
  const auto record = [&](const Query& query) { cache.record(query, 1, -kInfinity, 50); };
  record(ask(1, 1e-308, 1.5));
  CHECK(cache.bound(ask(1, 1e-308, kInfinity)) == -kInfinity);
  record(ask(1, 1e10, 1e-320));
  CHECK(cache.bound(ask(2, 1e10, 1e-310)) == -kInfinity);
  record(ask(1, 1, 0.1));
  CHECK(cache.bound(ask(4, 1e308, 1e308)) == -kInfinity);
  CHECK(cache.bound(ask(4, 1, 0.3)) == 50);
  cache.clear();
  record(ask(1, 1e-99, 0));
  cache.lower_for_freed(Slot{0, 100, 1, 1e-230, 1e-230, 0, 0});  // 1e-99 * 1e-230 is 0
  CHECK(cache.bound(ask(1, 1e-99, 0)) == 0);
}

// Released time merges with free time on both sides, and cached bounds fall to the start of the
// merged span.
void release_lowers_bounds_to_the_merged_start() {
  const std::vector<Row> rows{{0, 0, 100, 1, 1}, {0, 200, 300, 1, 1}};
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  SlotPool pool;
  pool.open(prepared, {1, 1}, nullptr);
  const Part part{0, 0, 10, 10};
  std::size_t bad = 0;
  CHECK(pool.book(5, &part, 1, bad) == Status::ok);
  const Query query = ask(1, 10, 35);
  Workspace work;
  Found found;
  const int start = criterion_index("start");
  CHECK(pool.find(query, start, ShapeKind::ragged, work, found) == Status::ok && found.start == 15);
  CHECK(pool.earliest_possible_start(query, ShapeKind::ragged) == cached_start(15));
  CHECK(pool.release(5, &part, 1, bad) == Status::ok);
  CHECK(pool.earliest_possible_start(query, ShapeKind::ragged) <= 0);
  CHECK(pool.find(query, start, ShapeKind::ragged, work, found) == Status::ok && found.start == 0);
}

// Adding slots lowers the bounds of the requests that they can serve, and keeps the others.
void added_slots_keep_other_bounds() {
  std::vector<Row> rows{{0, 100, 200, 1, 1}, {1, 0, 5, 1, 1}};
  std::swap(rows[0], rows[1]);
  PreparedSlots before(options), after(options);
  CHECK(prepare_slots(before, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  SlotPool pool;
  pool.open(before, {1, 1}, nullptr);
  Workspace work;
  Found found;
  const Query small = ask(1, 10, 35), large = ask(1, 50, 100);
  const int start = criterion_index("start");
  for (const Query& query : {large, small})
    CHECK(pool.find(query, start, ShapeKind::ragged, work, found) == Status::ok &&
          found.start == 100);
  CHECK(pool.earliest_possible_start(small, ShapeKind::ragged) == cached_start(100));
  PoolState state = pool.state();
  state.first_new_span = state.free.size();
  state.free.push_back({20, 40, 2});  // long enough for the small request only
  state.free_nodes.push_back(2);
  rows.insert(rows.begin() + 1, {2, 20, 40, 1, 1});
  CHECK(prepare_slots(after, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  InterruptScope watch;
  watch.arm(true);
  detail::stop_flags.fetch_or(detail::by_signal);  // an interrupted call changes nothing
  CHECK(extend_pool(pool, after, {1, 1, 1}, state) == Status::interrupted);
  watch.clear();
  CHECK(pool.state().free.size() == 2 &&
        pool.earliest_possible_start(small, ShapeKind::ragged) == cached_start(100));
  CHECK(pool.find(small, start, ShapeKind::ragged, work, found) == Status::ok &&
        found.start == 100);
  CHECK(extend_pool(pool, after, {1, 1, 1}, state) == Status::ok);
  CHECK(pool.earliest_possible_start(small, ShapeKind::ragged) == cached_start(20));
  CHECK(pool.earliest_possible_start(large, ShapeKind::ragged) == cached_start(100));
  CHECK(pool.find(small, start, ShapeKind::ragged, work, found) == Status::ok && found.start == 20);
  CHECK(pool.find(large, start, ShapeKind::ragged, work, found) == Status::ok &&
        found.start == 100);
}

// If one of several windows cannot be booked, all others are released, the first one too.
void book_all_is_atomic() {
  const std::vector<Row> rows{{0, 0, 100, 1, 1}, {1, 0, 100, 2, 1}};
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  SlotPool pool;
  pool.open(prepared, {1, 1}, nullptr);
  const Part parts[] = {{0, 0, 10, 10}, {1, 1, 10, 10}};
  std::size_t which = 0, bad = 0;
  CHECK(book_all(pool, {{0, parts, 2}, {20, parts, 2}, {25, parts + 1, 1}}, which, bad) ==
        Status::not_free);
  CHECK(which == 2 && bad == 0);
  const PoolState state = pool.state();
  CHECK(state.booked.empty() && state.free.size() == 2);
  CHECK(state.free[0].start == 0 && state.free[0].end == 100);
  CHECK(book_all(pool, {{0, parts, 2}, {20, parts, 2}}, which, bad) == Status::ok);
  CHECK(pool.state().booked.size() == 4);
}

void schedule_reports_reasons() {
  const std::vector<Row> rows{{0, 0, 10, 1, 1}, {1, 0, 10, 2, 1}};
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  SlotPool pool;
  pool.open(prepared, {1, 1}, nullptr);
  std::vector<Query> queries{ask(2, 4, 100), ask(1, 4, 1), ask(1, 30, 100), ask(1, 4, 100)};
  queries[0].min_performance = 1.5;  // only one node is fast enough
  queries[3].min_performance = 2;    // exactly fast enough
  WindowTable table;
  std::vector<std::uint8_t> reasons;
  const int start = criterion_index("start");
  CHECK(schedule(pool, prepared, queries, start, ShapeKind::ragged, table, reasons) == Status::ok);
  const std::vector<Reason> expected{Reason::nodes, Reason::budget, Reason::time, Reason::booked};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(static_cast<Reason>(reasons[i]) == expected[i]);
  // The only node of that performance exists but is busy: the reason is the time.
  reasons.clear();
  table.clear();
  queries = {ask(1, 18, 100)};
  queries[0].min_performance = 2;
  CHECK(schedule(pool, prepared, queries, start, ShapeKind::ragged, table, reasons) == Status::ok);
  CHECK(static_cast<Reason>(reasons[0]) == Reason::time);
}

// The work does not suffice to prove that no set meets the amount.
void an_undecided_search_is_not_called_limits() {
  std::vector<Row> rows;
  std::vector<double> uses;
  double use = 0.3;
  for (int node = 0; node < 40; ++node) {
    rows.push_back({node, 0, 10, 1, 1});
    uses.push_back(use = 3.9 * use * (1 - use));
  }
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  SlotPool pool;
  pool.open(prepared, std::vector<double>(40, 1), nullptr);
  const SumConstraints limits{{{.amount = 4.5 + 1e-9, .at_least = false, .weight = uses.data()},
                           {.amount = 4.5, .at_least = true, .weight = uses.data()}},
                          40};
  std::vector<Query> queries{ask(8, 4, 100), ask(50, 4, 100), ask(2, 4, 100)};
  queries[0].limits = queries[1].limits = &limits;
  queries[0].max_work = queries[1].max_work = 10;
  WindowTable table;
  std::vector<std::uint8_t> reasons;
  const int start = criterion_index("start");
  CHECK(schedule(pool, prepared, queries, start, ShapeKind::ragged, table, reasons) == Status::ok);
  const std::vector<Reason> expected{Reason::undecided, Reason::nodes, Reason::booked};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(static_cast<Reason>(reasons[i]) == expected[i]);
  CHECK(find_window(pool, queries[0], start, ShapeKind::ragged).status == Status::undecided);
  CHECK(find_window(pool, queries[1], start, ShapeKind::ragged).status == Status::none);
}

// A row that ends now is kept until rows are trimmed; it must not decide if a volume is too small.
void rows_of_the_past_refuse_no_volume() {
  const double epoch = 0x1p31;  // 1e-8 does not move the clock here, but it does near 0
  const int start = criterion_index("start");
  for (const ShapeKind shape : {ShapeKind::ragged, ShapeKind::square}) {
    Pool past({{0, 0, epoch, 1, 1}});
    CHECK(past.pool.advance(epoch) == Status::ok);
    CHECK(find_window(past.pool, ask(1, 1e-8, 1), start, shape).status == Status::none);
    Pool later({{0, -2 * epoch, -epoch, 1, 1}, {1, 0, 100, 1, 1}});
    CHECK(find_window(later.pool, ask(1, 1e-8, 1), start, shape).status ==
          Status::volume_too_small);
    CHECK(later.pool.advance(-epoch) == Status::ok);
    const Answer answer = find_window(later.pool, ask(1, 1e-8, 1), start, shape);
    CHECK(answer.status == Status::ok && answer.found.start == 0);
  }
}

// Callers of the C interface may pass anything: each single mistake is rejected.
void invalid_requests_are_refused() {
  const std::vector<Row> rows{{0, 0, 9, 1, 1}, {1, 0, 9, 1, 1}};
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  SlotPool pool;
  pool.open(prepared, {1, 1}, nullptr);
  Workspace work;
  Found found;
  const auto status_of = [&](const Query& query, int criterion) {
    return pool.find(query, criterion, ShapeKind::ragged, work, found);
  };
  CHECK(status_of(ask(1, 4, 35), 0) == Status::ok);
  for (const int criterion : {-1, kBuiltins})
    CHECK(status_of(ask(1, 4, 35), criterion) == Status::request_not_valid);
  for (const Query& query : {ask(0, 4, 35), ask(1, -4, 35), ask(1, 4, std::nan(""))})
    CHECK(status_of(query, 0) == Status::request_not_valid);
}

// Fields that the caller omits mean no limit.
void omitted_request_fields_mean_no_limit() {
  const double fields[RequestField::count] = {2, 4, 35, 1.5, 3, 90, 6, 0.5, 0.25, 70, 8};
  for (std::int64_t given = 0; given <= RequestField::count; ++given) {
    Query read, plain;
    CHECK(detail::read_request(fields, given, read) == (given > RequestField::nodes));
    if (given <= RequestField::nodes) continue;
    CHECK(read.n == 2);
#define SLOTKERN_REQUEST_FIELD(name, ...) \
  CHECK(read.name == (RequestField::name < given ? fields[RequestField::name] : plain.name));
#include "slotkern/slots/request_fields.def"
  }
  Query read;
  CHECK(!detail::read_request(fields, RequestField::count + 1, read));
}

// The cache of start bounds holds only answers to requests whose limits it compares.
void requests_with_other_limits_are_not_cached() {
  const std::string_view compared[] = {"volume", "budget",  "min_performance",
                                       "earliest", "setup", "step"};
  Query open;
  open.volume = 4;
  CHECK(open.is_cacheable());
  for (const QueryField& field : kQueryFields) {
    Query query = open;
    field.set(query, 5);
    const bool is_compared = std::ranges::find(compared, field.name) != std::end(compared);
    CHECK(query.is_cacheable() == is_compared);
  }
}

bool is_alike(const SlotPool& one, const SlotPool& other) {
  const PoolState a = one.state(), b = other.state();
  const auto same = [](const std::vector<Span>& x, const std::vector<Span>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Span& s, const Span& t) {
      return s.start == t.start && s.end == t.end && s.origin_row == t.origin_row;
    });
  };
  return a.now == b.now && a.removed == b.removed && a.free_nodes == b.free_nodes &&
         a.booked_nodes == b.booked_nodes && same(a.free, b.free) && same(a.booked, b.booked);
}

// If memory runs out within a change, at whichever allocation, the change is done completely or not
// at all, and searches find what they find in a pool that never ran out.
void changes_are_atomic_when_memory_runs_out() {
  std::vector<Row> rows;
  for (int start = 0; start < 3; ++start)
    for (int node = 0; node < 60; ++node)
      rows.push_back({node, 100.0 * start, 100.0 * start + 90, static_cast<double>(1 + node % 5),
                      static_cast<double>(1 + node % 7)});
  int refused = 0;
  for (int walk = 0; walk < 60; ++walk) {
    Pool limited(rows), unlimited(rows);
    struct BookedWindow {
      double start;
      std::vector<Part> parts;
    };
    std::vector<BookedWindow> booked_windows;
    Workspace work;
    // Makes the same change in both pools; if memory runs out in the first, the second skips it.
    const auto change = [&](auto what) {
      memory_left = below(3) ? static_cast<long>(below(6)) : -1;
      const Status status = what(limited.pool);
      memory_left = -1;
      if (status == Status::no_memory)
        ++refused;
      else
        CHECK(what(unlimited.pool) == status);
      CHECK(is_alike(limited.pool, unlimited.pool));
      return status == Status::ok;
    };
    for (int step = 0; step < 120; ++step) {
      const Query query = ask(static_cast<std::int64_t>(1 + below(6)),
                              static_cast<double>(below(8) ? 20 + below(40) : 1 + below(5)), 1e9);
      const int criterion = static_cast<int>(below(kBuiltins));
      const auto shape = below(2) ? ShapeKind::ragged : ShapeKind::square;
      std::size_t bad = 0;
      if (below(4) == 0) memory_left = static_cast<long>(below(8));
      const Answer limited_answer = find_window(limited.pool, query, criterion, shape);
      memory_left = -1;
      const Answer found = find_window(limited.pool, query, criterion, shape);
      CHECK(limited_answer.status == found.status || limited_answer.status == Status::no_memory);
      std::vector<Part> parts;
      if (found.status == Status::ok) parts.assign(found.parts, found.parts + query.n);
      const Answer other = find_window(unlimited.pool, query, criterion, shape);
      CHECK(found.status == other.status && found.found.value == other.found.value &&
            found.found.start == other.found.start);
      const std::size_t kind = below(20);
      if (kind == 0) {
        const double now = unlimited.pool.now() == -kInfinity ? 0 : unlimited.pool.now();
        const double later = now + static_cast<double>(below(9));
        change([&](SlotPool& pool) { return advance(pool, later); });
      } else if (kind == 1) {
        const auto node = static_cast<std::int32_t>(below(60));
        change([&](SlotPool& pool) { return remove_node(pool, node); });
      } else if (kind < 8 && !booked_windows.empty()) {
        const std::size_t which = below(booked_windows.size());
        const BookedWindow some = booked_windows[which];
        if (change([&](SlotPool& pool) {
              return release(pool, some.start, some.parts.data(), some.parts.size(), bad);
            }))
          booked_windows.erase(booked_windows.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (kind < 11) {
        WindowTable table;
        std::vector<std::uint8_t> reasons;
        const std::vector<Query> queries(3, query);
        memory_left = static_cast<long>(below(30));
        const Status status =
            schedule(limited.pool, limited.prepared, queries, criterion, shape, table, reasons);
        memory_left = -1;
        CHECK(status == Status::ok || status == Status::no_memory);
        refused += status == Status::no_memory;
        for (std::size_t i = 0; i < table.size(); ++i)  // exactly the booked windows
          if (table.any(i)) {
            const Part* first = table.parts_of(i);
            booked_windows.push_back({table.found[i].start, {first, first + table.count(i)}});
            CHECK(book(unlimited.pool, booked_windows.back().start, first, table.count(i), bad) ==
                  Status::ok);
          }
        CHECK(is_alike(limited.pool, unlimited.pool));
      } else if (found.status == Status::ok) {
        if (change([&](SlotPool& pool) {
              return book(pool, found.found.start, parts.data(), parts.size(), bad);
            }))
          booked_windows.push_back({found.found.start, parts});
      }
    }
  }
  CHECK(refused > 500);
}

// The index of bookings against a plain list, while time passes and nodes are removed. Sometimes
// memory for sorting runs out; lookups must still succeed.
void booking_index_matches_a_list() {
  std::size_t found = 0, unsorted = 0;
  for (int round = 0; round < 100; ++round) {
    const std::size_t nodes = 1 + below(5);
    std::vector<BookingIndex::Booking> plain;  // expired ones too
    BookingIndex bookings;
    bookings.reset(nodes);
    double now = 0;
    for (std::size_t row = 0; row < 120; ++row) {
      const std::size_t place = below(nodes);
      const auto of_node = [&](const BookingIndex::Booking& one) { return one.place == place; };
      const double start = now + static_cast<double>(below(60)), end = start + 1 + 4 * real();
      const bool free = std::none_of(plain.begin(), plain.end(), [&](const auto& one) {
        return of_node(one) && one.span.start < end && start < one.span.end;
      });
      bookings.reserve(1, now);
      if (free) {
        bookings.add(place, {start, end, row});
        plain.push_back({place, {start, end, row}});
      }
      if (!below(4)) {
        if (!below(2)) memory_left = static_cast<long>(below(2));
        bookings.flush(now);
        memory_left = -1;
        unsorted += !bookings.sorted_pending().empty();
      }
      if (!below(8)) now += static_cast<double>(below(9));
      if (!below(40)) {
        bookings.remove_node(place);
        std::erase_if(plain, of_node);
      }
      const auto past = [&](const BookingIndex::Booking& one) { return one.span.end <= now; };
      if (!plain.empty() && !below(3)) {
        const std::size_t which = below(plain.size());
        const BookingIndex::Booking one = plain[which];
        if (!past(one)) {
          CHECK(bookings.extract(one.place, one.span.start).origin_row == one.span.origin_row);
          plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(which));
        }
      }

      // The booking that starts at t, or none. Expired ones may be missing.
      for (double t = now; t < now + 70; ++t) {
        const auto one = std::find_if(plain.begin(), plain.end(), [&](const auto& booking) {
          return of_node(booking) && booking.span.start == t;
        });
        const Span* const span = bookings.find(place, t);
        CHECK((span != nullptr) == (one != plain.end()));
        if (!span || one == plain.end()) continue;
        CHECK(span->start == t && span->end == one->span.end &&
              span->origin_row == one->span.origin_row);
        ++found;
      }
      // Sorted by start, appended to what was there.
      std::vector<Span> listed{{1e9, 1e9, 0}};
      bookings.append_unexpired(place, bookings.sorted_pending(), now, listed);
      std::vector<Span> wanted{listed.front()};
      for (const BookingIndex::Booking& one : plain)
        if (of_node(one) && !past(one)) wanted.push_back(one.span);
      const auto sooner = [](const Span& a, const Span& b) { return a.start < b.start; };
      std::sort(wanted.begin() + 1, wanted.end(), sooner);
      const auto same = [](const Span& a, const Span& b) {
        return a.start == b.start && a.end == b.end && a.origin_row == b.origin_row;
      };
      CHECK(std::equal(listed.begin(), listed.end(), wanted.begin(), wanted.end(), same));
      // Each booking that has not expired exactly once, from the lists or the buffer.
      std::vector<std::size_t> rows, all;
      bookings.for_each([&](std::size_t k, const Span& span) {
        if (!past({k, span})) rows.push_back(span.origin_row);
      });
      for (const BookingIndex::Booking& one : plain)
        if (!past(one)) all.push_back(one.span.origin_row);
      std::sort(rows.begin(), rows.end());
      std::sort(all.begin(), all.end());
      CHECK(rows == all);
    }
  }
  CHECK(found > 10000 && unsorted > 100);
}

// In a pool that fills up, a search for the shortest window costs a few searches for the earliest,
// for few node types and for many: performance groups without a window are cached.
void shortest_costs_a_few_earliest_searches() {
  for (const bool kinds : {true, false}) {
    std::vector<Row> rows;
    for (std::int32_t k = 0; k < 300; ++k) {
      const double speed = kinds ? double(2 + below(8)) : 2 + 8 * real();
      for (double t = 20 * real(); t < 3000; t += 20 + 60 * real()) {
        const double end = t + 100 + 200 * real();
        rows.push_back({k, t, end, speed, speed * (1 + real())});
        t = end;
      }
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.start != b.start ? a.start < b.start : a.node < b.node;
    });
    std::vector<double> volumes;
    for (int i = 0; i < 3000; ++i) volumes.push_back(150 + 100 * real());
    double effort[2] = {0, 0};
    for (const bool shortest : {false, true}) {
      Pool p(rows);
      for (const double volume : volumes) {
        Query query;
        query.n = 5, query.volume = volume;
        workspace().effort = 0;
        const Answer mine = find_window(
            p.pool, query, criterion_index(shortest ? "runtime" : "start"), ShapeKind::ragged);
        effort[shortest] += double(workspace().effort);
        std::size_t bad = 0;
        if (mine.status == Status::ok)
          CHECK(book(p.pool, mine.found.start, mine.parts, 5, bad) == Status::ok);
      }
    }
    CHECK(effort[1] < (kinds ? 2.5 : 8.5) * effort[0]);  // 2.24 and 7.77, with tests of blocks
  }
}

}  // namespace

int main(int argc, char**) {
  const bool defaults = use_default_options(argc);
  start_bounds_hold_for_harder_requests();
  freed_slots_lower_all_bounds_that_they_serve();
  extreme_numbers_are_not_cached();
  release_lowers_bounds_to_the_merged_start();
  added_slots_keep_other_bounds();
  book_all_is_atomic();
  schedule_reports_reasons();
  an_undecided_search_is_not_called_limits();
  rows_of_the_past_refuse_no_volume();
  invalid_requests_are_refused();
  omitted_request_fields_mean_no_limit();
  requests_with_other_limits_are_not_cached();
  changes_are_atomic_when_memory_runs_out();
  booking_index_matches_a_list();
  if (defaults) shortest_costs_a_few_earliest_searches();
  return report();
}

// Compares the branch-free sweep of alternatives with the plain one, and its ring with a sorted
// list.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "slotkern/pool/pool.hpp"
#include "slotkern/window/alternatives.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Parts of equal lengths, and some much shorter than the longest, for any bucket width.
void ring_matches_a_sorted_list() {
  using slotkern::detail::Arrival, slotkern::detail::RingCalendarQueue,
      slotkern::detail::to_ordered_bits, slotkern::detail::from_ordered_bits;
  static RingCalendarQueue ring;
  for (int round = 0; round < 300; ++round) {
    const double first = round % 3 == 0 ? -50 : round % 3 == 1 ? 0 : 0x1p40,
                 longest = round % 5 == 0 ? 400 : 40;
    const std::size_t nodes = 1 + below(300);
    ring.reset(first, longest, longest / (1 + 8 * real()), std::fabs(first) + 100, nodes);
    std::vector<Arrival> plain;
    std::vector<bool> waits(nodes);
    const auto come = [&] {
      CHECK(!plain.empty() && ring.next()->start_bits == plain.front().start_bits &&
            ring.next()->node == plain.front().node);
      ring.drop_until(ring.next() + 1);
      waits[Arrival::rank_of(plain.front().node)] = false;
      plain.erase(plain.begin());
    };
    double now = first;
    for (int k = 0; k < 400; ++k) {
      const double ahead = below(2) ? 1 + static_cast<double>(below(8)) : 40 * real();
      const std::size_t rank = below(nodes);
      const auto number = static_cast<std::uint32_t>(nodes - 1 - rank);
      const auto node = number * Arrival::kMaxNodes + static_cast<std::uint32_t>(rank);
      const Arrival one{to_ordered_bits(now + ahead), node, 0};
      const bool really = !waits[rank] && below(5) != 0;
      if (really || !waits[rank]) ring.add(now + ahead, node, really);
      if (really) plain.insert(std::upper_bound(plain.begin(), plain.end(), one), one);
      waits[rank] = waits[rank] || really;
      const double until = below(9) == 0 ? now + 300 : now + 5 * real();
      while (*ring.next() < Arrival{to_ordered_bits(until), 0, 0})
        if (ring.next() == ring.end())
          ring.advance_bucket(until);
        else
          come();
      CHECK(plain.empty() || !(from_ordered_bits(plain.front().start_bits) < until));
      now = std::max(now, until);
    }
    while (!plain.empty())
      if (ring.next() == ring.end())
        ring.advance_bucket(kInfinity);
      else
        come();
    CHECK(ring.empty());
  }
}

bool equal(const WindowTable& a, const WindowTable& b) {
  if (a.size() != b.size() || a.ends != b.ends || a.parts.size() != b.parts.size())
    return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a.found[i], &b.found[i], sizeof(Found)) != 0) return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    const Part &x = a.parts[i], &y = b.parts[i];
    if (x.row != y.row || x.node != y.node || x.at != y.at || x.length != y.length ||
        x.cost != y.cost)
      return false;
  }
  return true;
}

// Ties of prices, starts and ends, budgets just met or missed, changing prices of a node, endless
// free slots, times so late that adding a length hardly changes them, all kinds of limits; also in
// pools with bookings.
void ranked_sweeps_match_plain_ones() {
  std::size_t ranked = 0, windows = 0;
  for (int round = 0; round < 600; ++round) {
    const bool whole = below(2) != 0, changing = below(6) == 0;
    const double money = round % 7 == 0 ? 1e150 : round % 7 == 1 ? 1e-310 : 1,
                 clock = round % 5 == 0 ? 0x1p40 : round % 5 == 1 ? 1e9 : 0;
    std::vector<Row> rows;
    const std::size_t nodes = 1 + below(90);
    for (std::size_t k = 0; k < nodes; ++k) {
      const double performance = whole ? 1 + static_cast<double>(below(4)) : 1 + 9 * real();
      double price = money * (whole ? static_cast<double>(below(4)) : performance * (1 + real())),
             t = clock + static_cast<double>(below(9));
      while (t < clock + 150) {
        const double end = below(200) == 0 ? kInfinity
                                           : t + 1 + (whole ? static_cast<double>(below(40))
                                                            : 40 * real());
        if (changing && below(4) == 0) price *= 1.25;
        rows.push_back({static_cast<std::int32_t>(k * 3), t, end, performance, price});
        t = end + (below(3) ? static_cast<double>(below(9)) : 0);
      }
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.start != b.start ? a.start < b.start : a.node < b.node;
    });
    PreparedSlots prepared(options);
    const std::size_t most = std::min<std::size_t>(nodes, 12);
    CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, most).status ==
          Status::ok);
    SlotPool pool;
    if (round % 2) {
      std::vector<double> prices;
      for (const Row& row : rows) prices.push_back(row.price);
      pool.open(prepared, prices, nullptr);
    }
    double cost = 0;
    for (int k = 0; k < 8; ++k) {
      Query query;
      query.n = static_cast<std::int64_t>(1 + below(most));
      query.volume = whole ? 1 + static_cast<double>(below(60)) : 60 * real() + 0x1p-13;
      query.budget = static_cast<double>(query.n) * query.volume * money * 2 * real();
      if (cost > 0 && below(2)) query.budget = std::nextafter(cost, below(2) ? 0 : kInfinity);
      if (below(8) == 0) query.budget = std::numeric_limits<double>::max();
      if (below(5) == 0) query.earliest = clock + 100 * real();
      if (below(5) == 0) query.deadline = clock + 200 * real();
      if (below(5) == 0)
        query.latest = clock + (whole ? static_cast<double>(below(150)) : 150 * real());
      if (below(8) == 0) query.max_price = 2 * money;
      if (below(8) == 0) query.min_performance = 2;
      if (below(8) == 0) query.setup = 2;
      if (prepared.check(query, true) != Status::ok) continue;
      const std::size_t limit = 64 + below(300);
      const auto compare = [&](const auto& shape) {
        using Shape = std::remove_cvref_t<decltype(shape)>;
        const double others = prepared.min_rate_sum(static_cast<std::size_t>(query.n) - 1);
        WindowTable quick, plain;
        Status status = Status::ok;
        if (!detail::find_ranked(prepared, query, shape, limit, quick, status)) return;
        detail::AlternativesSweep<Shape> sweep(prepared, query, limit, plain);
        sweep.add_group(shape, others);
        const Status same = sweep.run();
        CHECK(status == same);
        CHECK(status != Status::ok || equal(quick, plain));
        ++ranked, windows += plain.size();
        if (plain.size() > 0) cost = plain.found.front().cost;
        std::size_t bad = 0;
        if (round % 2 && status == Status::ok)
          for (std::size_t i = 0; i < plain.size(); i += 3)
            CHECK(pool.book(plain.found[i].start, plain.parts_of(i), plain.count(i), bad) ==
                  Status::ok);
      };
      if (query.has_overhead())
        compare(RaggedWithOverhead(query));
      else
        compare(Ragged(query));
    }
  }
  CHECK(ranked > 1000 && windows > 10000);
}

// Searches with several times more parts than the sweep buffers before it writes to the table.
void long_searches_return_all_windows() {
  std::vector<Row> rows;
  for (int node = 0; node < 90; ++node)
    rows.push_back({node, 0, 1000, 1, static_cast<double>(1 + node % 7)});
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 12).status == Status::ok);
  for (const std::int64_t n : {1, 5, 12}) {
    Query query;
    query.n = n, query.volume = 4;
    constexpr std::size_t limit = 100000;
    WindowTable quick, plain;
    Status status = Status::ok;
    CHECK(detail::find_ranked(prepared, query, Ragged(query), limit, quick, status));
    detail::AlternativesSweep<Ragged> sweep(prepared, query, limit, plain);
    sweep.add_group(Ragged(query), prepared.min_rate_sum(static_cast<std::size_t>(n) - 1));
    CHECK(sweep.run() == status && status == Status::ok);
    CHECK(plain.parts.size() > 20000 && equal(quick, plain));
  }
}

// Times that span more than doubles resolve cannot be divided into buckets.
void times_may_span_the_range_of_doubles() {
  constexpr double far = std::numeric_limits<double>::max();
  std::vector<Row> rows{{0, -far, std::nextafter(-far, 0), 1e-8, 1}};  // too slow for every request
  for (std::int32_t node = 1; node < 9; ++node)
    rows.push_back({node, 2e292, 2e292 + 1e283, 1, 1 + node * 0.125});
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 2).status == Status::ok);
  Query query;
  query.n = 2, query.volume = 1e281, query.min_performance = 1;
  WindowTable quick;
  Status status = Status::ok;
  CHECK(!detail::find_ranked(prepared, query, Ragged(query), 1000, quick, status));
  CHECK(quick.found.empty());  // left to the plain sweep
}

}  // namespace

int main() {
  ring_matches_a_sorted_list();
  ranked_sweeps_match_plain_ones();
  long_searches_return_all_windows();
  times_may_span_the_range_of_doubles();
  return report();
}

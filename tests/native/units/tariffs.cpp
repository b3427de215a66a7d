// Tariffs: integrals against plain sums, and all searches against the plain definition.
// With arguments SEED RUNS it compares that many random cases instead.
#include <cstdlib>

#include "../check.hpp"
#include "../tariff_cases.hpp"
#include "slotkern/tariff/integral_range.hpp"
#include "slotkern/window/find.hpp"

namespace {

using namespace tariffs;

void check_integrals(Random& random) {
  for (int run = 0; run < 300; ++run) {
    const bool dyadic = run % 2;
    const double origin = run % 3 ? 0 : 1.7e9;
    const PlainTariff plain = make_tariff(random, dyadic, origin, 200, 60);
    Tariff tariff;
    CHECK(tariff.set(plain.breakpoints, plain.factors) == Status::ok);
    for (int k = 0; k < 50; ++k) {
      const double t = origin + (dyadic ? 0.25 * static_cast<double>(random.below(400)) - 9
                                        : 120 * random.real() - 9);
      const double length =
          dyadic ? 0.25 * static_cast<double>(1 + random.below(300)) : 90 * random.real();
      const double exact = plain.integral(t, length), ours = tariff.integral(t, length);
      CHECK(dyadic ? ours == exact : std::fabs(ours - exact) <= 1e-15 * exact);
    }
  }
}

// The range of the integrals over an interval of starts is that of starts on a fine raster: with
// dyadic numbers all kinks lie on it.
void check_integral_ranges(Random& random) {
  for (int run = 0; run < 500; ++run) {
    const PlainTariff plain = make_tariff(random, true, 0, 8, 20);
    Tariff tariff;
    CHECK(tariff.set(plain.breakpoints, plain.factors) == Status::ok);
    const auto quarters = [&](std::uint64_t most) {
      return 0.25 * static_cast<double>(random.below(most));
    };
    const double from = quarters(120) - 5, length = 0.25 + quarters(40);
    const bool is_endless = random.one_in(4);
    const double to = is_endless ? kInfinity : from + quarters(80);
    const double last = is_endless ? 1000 : to;
    double least = kInfinity, most = 0;
    for (double t = from; t <= last; t += 0x1p-6) {
      const double integral = plain.integral(t, length);
      least = std::min(least, integral), most = std::max(most, integral);
    }
    const IntegralRange range = integral_range(tariff, from, to, length);
    CHECK(range.least <= least && range.least >= least * (1 - 2 * kBoundMargin));
    CHECK(range.most >= most && range.most <= most * (1 + 2 * kBoundMargin));
  }
}

void check_tariff() {
  Tariff tariff;
  const double b[] = {0, 1, 2, 3}, f[] = {1, 1, 2, 2, 0.5};
  CHECK(tariff.set(b, f) == Status::ok);
  CHECK(tariff.breakpoints().size() == 2 && tariff.rises()[0] == 1 && tariff.falls()[0] == 3);
  CHECK(tariff.factor_at(0.5) == 1 && tariff.factor_at(1) == 2 && tariff.factor_at(3) == 0.5);
  CHECK(tariff.min_factor(0, 2.5) == 1 && tariff.min_factor(1, 3) == 0.5);
  CHECK(tariff.falls_at(3) && !tariff.falls_at(1));
  CHECK(tariff.rises_after(-1, 2) && !tariff.rises_after(-0.5, 2));
  CHECK(tariff.integral(0, 4) == 1 + 2 * 2 + 0.5);
  const double unsorted[] = {1, 1}, negative[] = {1, -1, 1}, three[] = {1, 2, 3};
  CHECK(tariff.set(unsorted, three) == Status::not_sorted);
  CHECK(tariff.set({b, 2}, negative) == Status::price_not_valid);
  CHECK(tariff.set({b, 1}, three) == Status::request_not_valid);
  CHECK(tariff.breakpoints().size() == 2);
  // 12.3 of the same amount, from different sums, are equal costs.
  CHECK(cost_key(0.1 + 0.2) == cost_key(0.3) && cost_key(1) != cost_key(1 + 1e-8));
  CHECK(cost_key(max_cost_of_key(cost_key(0.3))) == cost_key(0.3));
  CHECK(cost_key(std::nextafter(max_cost_of_key(cost_key(0.3)), 1)) != cost_key(0.3));
}

Case one_slot(double start, double end, double volume, PlainTariff tariff) {
  Case c;
  c.tariffs.push_back(std::move(tariff));
  c.slots.push_back({0, start, end, 1, 1, 0, true});
  c.query.volume = volume;
  return c;
}

// The latest start of a slot is a turn: the factor falls from 2 to 1 at 8.
void check_latest_start() {
  Prepared prepared(one_slot(0, 10, 4, {{8}, {2, 1}}));
  Found found;
  Query query;
  query.volume = 4;
  CHECK(prepared.find(query, 4, ShapeKind::ragged, found) == Status::ok);
  CHECK(found.start == 6 && found.cost == 6);
}

// The prefixes of a list of 1,000 nodes hold the lowest nodes through random changes.
void check_node_list(Random& random) {
  std::vector<RatedNode> nodes;
  const auto entry_of = [&random](std::uint32_t rank) {
    const auto rate = static_cast<double>(random.below(60));
    if (random.one_in(5)) return RatedNode{kInfinity, rank, RatedNode::kNoSlot};
    return RatedNode{rate, rank, static_cast<float>(random.below(9))};
  };
  for (std::uint32_t rank = 0; rank < 1000; ++rank) nodes.push_back(entry_of(rank));
  const auto lowest = [&nodes](std::size_t most) {
    NodeList::Prefix prefix;
    for (const RatedNode& node : nodes)
      if (node.capacity != RatedNode::kNoSlot) prefix.nodes.push_back(node);
    std::sort(prefix.nodes.begin(), prefix.nodes.end());
    prefix.is_complete = prefix.nodes.size() <= most;
    if (prefix.is_complete) return prefix;
    prefix.nodes.resize(most);
    prefix.last = prefix.nodes.back();
    return prefix;
  };
  NodeList list;
  for (int run = 0; run < 400; ++run) {
    const std::size_t wanted = random.one_in(3) ? random.below(1000) : random.below(100);
    const std::vector<RatedNode> plain = lowest(1000).nodes;
    std::size_t read = 0;
    bool equal = true;
    list.each(lowest, [&](const RatedNode& node) {
      equal = equal && node.rank == plain[read].rank && node.rate == plain[read].rate &&
              node.capacity == plain[read].capacity;
      return ++read < wanted;
    });
    CHECK(equal && read == std::min(std::max<std::size_t>(wanted, 1), plain.size()));
    // Changes of the lowest nodes shrink and grow the prefixes.
    for (std::uint64_t k = random.below(80); k > 0; --k) {
      const bool is_low = random.one_in(2) && !plain.empty();
      const std::size_t rank = is_low ? plain[random.below(50)].rank : random.below(1000);
      const RatedNode entry = entry_of(static_cast<std::uint32_t>(rank));
      list.replace(nodes[rank], entry);
      nodes[rank] = entry;
    }
  }
}

// Subnormal factors, whose mean has no finite inverse, hide no window.
void check_tiny_factors() {
  for (const double tiny : {5e-324, 1e-310}) {
    Prepared prepared(one_slot(0, 9, 5, {{2}, {tiny, tiny}}));
    Found found;
    Query query;
    query.volume = 5;
    CHECK(prepared.find(query, 4, ShapeKind::ragged, found) == Status::ok);
    CHECK(found.start == 0 && found.cost == tiny * 5);
  }
}

// The earliest start within a budget lies between turns; with ticks it is the first tick that fits.
void check_budget() {
  Found found;
  Query query;
  for (const double tick : {0.0, 0.25, 0.375}) {
    Case c = one_slot(0, 100, 2, {{2}, {3, 1}});
    c.tick = tick;
    Prepared prepared(c);
    query.volume = 2, query.budget = 4;
    CHECK(prepared.find(query, 1, ShapeKind::ragged, found) == Status::ok);
    CHECK(std::fabs(found.start - (tick == 0.375 ? 1.125 : 1)) < 1e-14);
    query.budget = 1.9;
    CHECK(prepared.find(query, 1, ShapeKind::ragged, found) == Status::none);
  }
}

// Equal prices at all nights of a year: the first of equal costs is the answer.
void check_equal_nights() {
  PlainTariff nights{{}, {0.3}};
  for (int day = 0; day < 365; ++day) {
    nights.breakpoints.push_back(1.7e9 + 86400.0 * day + 79200);
    nights.breakpoints.push_back(1.7e9 + 86400.0 * day + 108000);
    nights.factors.insert(nights.factors.end(), {0.1, 0.3});
  }
  Case c = one_slot(1.7e9, kInfinity, 1, nights);
  for (int node = 1; node < 6; ++node) {
    c.slots.push_back(c.slots[0]);
    c.slots.back().node = node;
  }
  Prepared prepared(c);
  Query query;
  query.n = 3;
  for (const double hours : {1.0, 7.9, 8.0, 12.3, 30.0}) {
    query.volume = 3600 * hours;
    Found found;
    CHECK(prepared.find(query, 4, ShapeKind::ragged, found) == Status::ok);
    CHECK(found.start < 1.7e9 + 86400);
    CHECK(prepared.search->parts()[2].node == 2);
  }
}

// If all tariffs are 1, windows equal those of the search without tariffs, for requests whose parts
// are charged by length.
void check_constant(Random& random) {
  int found = 0;
  for (int run = 0; run < 400; ++run) {
    Case c = make_case(random, true, 12, 4, 0);
    for (PlainTariff& tariff : c.tariffs) tariff = {{5, 7}, {1, 1, 1}};
    c.query.setup = 0.5;
    Prepared prepared(c, 1 + random.below(60));
    if (!prepared.valid) continue;
    if (random.one_in(2)) c.query.budget = 4 * static_cast<double>(random.below(20));
    if (!c.mask.empty()) c.query.mask = c.mask.data();
    for (const ShapeKind shape : {ShapeKind::square, ShapeKind::ragged})
      for (int criterion = 0; criterion < kBuiltins; ++criterion) {
        const Answer plain = find_window(prepared.slots, c.query, criterion, shape);
        Found ours;
        const Status status = prepared.find(c.query, criterion, shape, ours);
        CHECK(status == plain.status);
        if (status != Status::ok || plain.status != Status::ok) continue;
        ++found;
        CHECK(ours.value == plain.found.value && ours.start == plain.found.start);
        CHECK(ours.cost == plain.found.cost && ours.runtime == plain.found.runtime);
        CHECK(ours.processor_time == plain.found.processor_time);
        for (std::size_t k = 0; k < prepared.search->parts().size(); ++k) {
          const Part &a = prepared.search->parts()[k], &b = plain.parts[k];
          CHECK(a.row == b.row && a.node == b.node && a.length == b.length && a.cost == b.cost);
        }
      }
  }
  CHECK(found > 500);
}

// An index whose slots changed finds what a new index of the remaining slots finds.
void check_updates(Random& random) {
  for (int run = 0; run < 300; ++run) {
    Case c = make_case(random, true, 6, 6, 8);
    c.mask.clear();
    for (PlainSlot& s : c.slots) s.admitted = true;
    Prepared prepared(c, 1 + random.below(60));
    if (!prepared.valid) continue;
    Counts counts;
    for (int change = 0; change < 3; ++change) {
      const std::size_t place = random.below(prepared.slots.nodes.size());
      std::vector<TariffIndex::NodeSlot> left;
      for (std::size_t row = 0; row < c.slots.size(); ++row) {
        PlainSlot& s = c.slots[row];
        if (s.node != prepared.slots.nodes[place].id) continue;
        s.admitted = !random.one_in(3);
        if (s.admitted) left.push_back({s.start, s.end, s.price, row});
      }
      prepared.index.update_node(place, left);
      int criterion = 0;
      for (const bool square : {false, true})
        CHECK(!compare(c, c.query, prepared, square, counts, criterion));
    }
  }
}

bool compare_random(std::uint64_t seed, std::uint64_t runs, Counts& counts) {
  for (std::uint64_t run = 0; run < runs; ++run) {
    Random random(seed + run);
    const bool dyadic = !random.one_in(4);
    const bool middle = random.one_in(10);
    const Case c = make_case(random, dyadic, middle ? 24 : 5, middle ? 5 : 3, middle ? 40 : 8);
    if (run_case(random, c, counts, random.one_in(4) ? 0 : 1 + random.below(60))) continue;
    std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed + run));
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Counts counts;
  if (argc == 3) {
    const bool equal = compare_random(std::strtoull(argv[1], nullptr, 10),
                                      std::strtoull(argv[2], nullptr, 10), counts);
    std::printf("%llu searches, %llu windows, %llu between turns\n",
                static_cast<unsigned long long>(counts.searches),
                static_cast<unsigned long long>(counts.found),
                static_cast<unsigned long long>(counts.between));
    return equal ? 0 : 1;
  }
  Random random(1);
  check_tariff();
  check_integrals(random);
  check_node_list(random);
  check_integral_ranges(random);
  check_latest_start();
  check_tiny_factors();
  check_budget();
  check_equal_nights();
  check_constant(random);
  check_updates(random);
  CHECK(compare_random(1, 1000, counts));
  CHECK(counts.found > 10000 && counts.between > 100);
  return unit::report();
}

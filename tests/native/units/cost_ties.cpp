// Nodes of few types with many ties of cost: windows against an enumeration of all starts and
// lengths.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "slotkern/slots/key_dictionary.hpp"
#include "pools.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Dictionary codes against the set of all keys: floats in key order, none above its key, and not
// further below it than needed to distinguish the keys.
void dictionary_codes_are_ordered_and_tight() {
  int few = 0, near = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t most = below(3) ? below(600) : below(4), kinds = 1 + below(700);
    const double size = below(3) ? 1.0 / 7 : below(2) ? 1e-42 : 1e300;
    const bool close = below(2);
    std::set<double> all;
    const KeyDictionary keys(most, [&](auto visit) {
      for (std::size_t i = 0; i < 2 * kinds; ++i) {
        double key = static_cast<double>(below(kinds)) * size;
        for (std::size_t ulps = close ? below(4) : 0; ulps > 0; --ulps)
          key = std::nextafter(key, kInfinity);
        if (!below(5000)) key = kInfinity;
        if (key < kInfinity) all.insert(key);
        if (!visit(key)) break;
      }
    });
    CHECK(keys.is_exact() == (most > 0 && all.size() <= std::min<std::size_t>(most, 512)));
    if (!keys.is_exact()) continue;
    ++few;
    near += !keys.is_plain_rounding();
    float before = -std::numeric_limits<float>::infinity();
    std::set<float> rounded;
    for (const double key : all) {
      const float known = keys.code_of(key);
      CHECK(known > before && known <= key && keys.predecessor_code(key) < known &&
            keys.predecessor_code(key) >= before);
      CHECK(known == round_down(key) || !keys.is_plain_rounding());
      before = known, rounded.insert(round_down(key));
    }
    CHECK(keys.is_plain_rounding() == (rounded.size() == all.size()));
    CHECK(keys.code_of(kInfinity) == kInfinity);
  }
  CHECK(few > 300 && few < 2700 && near > 100 && few - near > 100);
}

struct Kind {
  double performance, price;
};

// A small integer, an arbitrary number, or some ulps above a float.
double some_rate() {
  if (below(2)) return double(below(3));
  double rate = real();
  if (below(2)) return rate;
  rate = round_down(rate);
  for (std::size_t ulps = 1 + below(4); ulps > 0; --ulps) rate = std::nextafter(rate, 9);
  return rate;
}

// Rates that are equal or differ, sometimes by a few ulps only, so that they round to the same or
// to neighbouring floats.
std::vector<Kind> some_kinds() {
  std::vector<Kind> kinds;
  for (std::size_t k = 1 + below(5); k > 0; --k) {
    const double performance = 1 + double(below(4));
    kinds.push_back({performance, performance * some_rate()});
  }
  const Kind first = kinds[0];
  double close = first.price;
  for (std::size_t more = below(4) ? 0 : 1 + below(3); more > 0; --more) {
    close = std::nextafter(close, 9);
    kinds.push_back({first.performance, close});
  }
  if (!below(4)) kinds.push_back({first.performance, first.price * (1 + 0x1p-24)});
  return kinds;
}

void sort_rows(std::vector<Row>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
}

std::vector<Row> rows_of(std::size_t nodes, const std::vector<Kind>& kinds) {
  std::vector<Row> rows;
  const bool mixed = below(2);
  const std::size_t stride = 1 + 2 * below(3);
  for (std::size_t k = 0; k < nodes; ++k) {
    const Kind& kind = kinds[mixed ? below(kinds.size()) : k * kinds.size() / nodes];
    const auto id = static_cast<std::int32_t>(k * stride);
    double t = double(below(3)) * double(below(4));
    for (std::size_t i = 1 + below(3); i > 0; --i) {
      const double end = t + 1 + double(below(30));
      rows.push_back({id, t, end, kind.performance, kind.price});
      t = end + double(below(9));
    }
  }
  sort_rows(rows);
  return rows;
}

struct Plain {
  double value = kInfinity, start = 0, cost = 0;
  std::vector<std::int32_t> nodes;  // ascending
};

// The ragged window from the free slots, by definition: at each start, for each length, the n
// cheapest parts that are no longer.
Plain enumerate_windows(const PoolState& state, const std::vector<Row>& rows, const Query& query,
              int criterion) {
  struct Live {
    double key;
    std::int32_t node;
    double length;
    bool operator<(const Live& other) const {
      return std::tie(key, node) < std::tie(other.key, other.node);
    }
  };
  std::set<double> starts, lengths;
  for (const Span& span : state.free) {
    starts.insert(std::max(span.start, query.earliest));
    lengths.insert(query.volume / rows[span.origin_row].performance);
  }
  const bool by_length = criterion == criterion_index("finish") ||
                         criterion == criterion_index("runtime");
  Plain best;
  for (const double t : starts) {
    for (const double most : lengths) {
      if (!by_length && most != *lengths.rbegin()) continue;
      std::vector<Live> live;
      for (std::size_t i = 0; i < state.free.size(); ++i) {
        const Span& span = state.free[i];
        const Row& row = rows[span.origin_row];
        const double length = query.volume / row.performance;
        if (span.start <= t && t + length <= std::min(span.end, query.deadline) &&
            length <= most && row.performance >= query.min_performance)
          live.push_back({query.volume * (row.price / row.performance), row.node, length});
      }
      const auto n = static_cast<std::size_t>(query.n);
      if (live.size() < n) continue;
      std::sort(live.begin(), live.end());
      Plain found;
      found.start = t;
      double longest = 0;
      found.cost = exact_sum(n, [&](std::size_t i) { return live[i].key; });
      for (std::size_t i = 0; i < n; ++i) {
        longest = std::max(longest, live[i].length);
        found.nodes.push_back(live[i].node);
      }
      if (found.cost > relaxed_max(query.budget)) continue;
      std::sort(found.nodes.begin(), found.nodes.end());
      found.value = criterion == criterion_index("start")    ? t
                    : criterion == criterion_index("cost")   ? found.cost
                    : criterion == criterion_index("finish") ? t + longest
                                                             : longest;
      if (std::tie(found.value, found.start, found.cost, found.nodes) <
          std::tie(best.value, best.start, best.cost, best.nodes))
        best = found;
    }
  }
  return best;
}

struct Booked {
  double start;
  std::vector<Part> parts;
};

void windows_of_few_node_types() {
  int found = 0, none = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t nodes = below(3) ? 1 + below(40) : 100 + below(300);
    Pool p(rows_of(nodes, some_kinds()));
    std::vector<Booked> booked;
    for (int job = 0; job < (nodes < 50 ? 30 : 6); ++job) {
      Query query;
      query.n = std::int64_t(1 + below(below(2) ? std::min<std::size_t>(nodes, 6) : nodes));
      query.volume = 1 + double(below(30));
      if (!below(3)) query.budget = double(query.n) * query.volume * double(below(4));
      if (!below(5)) query.earliest = double(below(40));
      if (!below(5)) query.deadline = double(below(60));
      if (!below(5)) query.min_performance = double(below(4));
      static constexpr const char* kCriteria[] = {"start", "cost", "finish", "runtime"};
      const int criterion = criterion_index(kCriteria[below(4)]);
      PoolState state;
      CHECK(state_of(p.pool, state) == Status::ok);
      const Plain wanted = enumerate_windows(state, p.rows, query, criterion);
      const Answer answer = find_window(p.pool, query, criterion, ShapeKind::ragged);
      CHECK((answer.status == Status::ok) == (wanted.value < kInfinity));
      if (answer.status != Status::ok) {
        ++none;
        continue;
      }
      ++found;
      const std::vector<Part> parts(answer.parts, answer.parts + query.n);
      CHECK(answer.found.value == wanted.value && answer.found.start == wanted.start &&
            answer.found.cost == wanted.cost);
      for (std::size_t i = 0; i < parts.size(); ++i) CHECK(parts[i].node == wanted.nodes[i]);
      std::size_t bad = 0;
      CHECK(book(p.pool, answer.found.start, parts.data(), parts.size(), bad) == Status::ok);
      booked.push_back({answer.found.start, parts});
      if (below(4)) continue;
      const auto back = booked.begin() + static_cast<std::ptrdiff_t>(below(booked.size()));
      CHECK(release(p.pool, back->start, back->parts.data(), back->parts.size(), bad) ==
            Status::ok);
      booked.erase(back);
    }
  }
  CHECK(found > 500 && none > 100);
}

// One type, with a rate a few ulps above or below a float: the zone map and the search must agree
// on which slots tie, or the search would rescan for ever.
void windows_of_one_node_type() {
  static constexpr const char* kCriteria[] = {"start", "cost", "finish", "runtime"};
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = 1 + below(3), nodes = 64 * n + 70;
    double rate = round_down(real() + 1e-3);
    for (std::size_t ulps = below(5); ulps > 0; --ulps) rate = std::nextafter(rate, 9);
    std::vector<Row> rows;
    for (std::size_t k = 0; k < nodes; ++k)
      rows.push_back({static_cast<std::int32_t>(k), 0, 100, 1, rate});
    Pool p(rows);
    Query query;
    query.n = std::int64_t(n);
    query.volume = real() + 1;
    for (const char* name : kCriteria) {
      const Answer answer = find_window(p.pool, query, criterion_index(name), ShapeKind::ragged);
      const double cost = exact_sum(n, [&](std::size_t) { return query.volume * rate; });
      CHECK(answer.status == Status::ok && answer.found.start == 0 && answer.found.cost == cost);
      for (std::size_t i = 0; i < n; ++i) CHECK(answer.parts[i].node == static_cast<int>(i));
    }
  }
}

// Many distinct keys that round to the same float need no dictionary: the search must still take
// the cheaper nodes of larger ids, which the zone map cannot distinguish.
void windows_of_keys_with_equal_float() {
  std::vector<Row> rows;
  for (std::int32_t k = 0; k < 700; ++k)
    rows.push_back({k, 0, 100, 1, 1 + (699 - k) * 0x1p-52});
  Pool p(rows);
  CHECK(!p.prepared.by_rate.dictionary().is_exact() &&
        !p.prepared.by_price().dictionary().is_exact());
  Query query;
  query.n = 2, query.volume = 1;
  for (const char* name : {"start", "cost", "finish", "runtime"})
    for (const ShapeKind shape : {ShapeKind::ragged, ShapeKind::square}) {
      const Answer answer = find_window(p.pool, query, criterion_index(name), shape);
      CHECK(answer.status == Status::ok && answer.found.cost == 2 + 0x1p-52);
      CHECK(answer.parts[0].node == 698 && answer.parts[1].node == 699);
    }
}

// The free slots as rows for a new search.
std::vector<Row> rows_left(const PoolState& state, const std::vector<Row>& rows) {
  std::vector<Row> left;
  for (const Span& span : state.free) {
    const Row& row = rows[span.origin_row];
    left.push_back({row.node, span.start, span.end, row.performance, row.price});
  }
  sort_rows(left);
  return left;
}

// By every criterion and in both shapes, the pool finds what a search of its free slots finds.
void check_searches(Pool& p, int& found) {
  PoolState state;
  CHECK(state_of(p.pool, state) == Status::ok);
  const std::vector<Row> left = rows_left(state, p.rows);
  Query query;
  query.n = std::int64_t(1 + below(4));
  query.volume = 1 + double(below(12));
  if (below(2)) query.budget = double(query.n) * query.volume;
  for (int criterion = 0; criterion < kBuiltins; ++criterion)
    for (const ShapeKind shape : {ShapeKind::square, ShapeKind::ragged}) {
      PreparedSlots fresh(options);
      CHECK(prepare_slots(fresh, view_of(left), true, shape, 0).status == Status::ok);
      const Answer wanted = find_window(fresh, query, criterion, shape);
      const Found value = wanted.found;
      std::vector<std::int32_t> nodes;
      for (std::int64_t i = 0; wanted.status == Status::ok && i < query.n; ++i)
        nodes.push_back(wanted.parts[i].node);
      const Answer answer = find_window(p.pool, query, criterion, shape);
      CHECK(answer.status == wanted.status);
      if (answer.status != Status::ok || wanted.status != Status::ok) continue;
      ++found;
      CHECK(answer.found.value == value.value && answer.found.start == value.start &&
            answer.found.cost == value.cost);
      for (std::size_t i = 0; i < nodes.size(); ++i) CHECK(answer.parts[i].node == nodes[i]);
    }
}

// Prices closer together than two floats, on nodes of two prices: all nodes of one price may be
// booked when the rows are rebuilt and the zone map by price is built, and released later.
void booked_slots_count_in_the_dictionary() {
  int found = 0;
  for (int round = 0; round < 300; ++round) {
    const double higher = below(2) ? 1 + 0x1p-40 : std::nextafter(1, 2);
    const std::size_t nodes = 20 + below(60), cheap = 1 + below(8);
    std::vector<Row> rows;
    for (std::size_t k = 0; k < nodes; ++k) {
      const bool is_cheap = k + cheap >= nodes;
      const auto id = static_cast<std::int32_t>(k);
      rows.push_back({id, 0, 100, 1, is_cheap ? 1 : higher});
      if (k < 3 || !below(8)) rows.push_back({id, 200, 300, 1, is_cheap || below(2) ? higher : 7});
    }
    sort_rows(rows);
    Pool p(rows);
    std::vector<Part> parts;
    for (std::size_t k = nodes - cheap; k < nodes; ++k)
      parts.push_back({0, static_cast<std::int32_t>(k), 100, 0});
    std::size_t bad = 0;
    CHECK(book(p.pool, 0, parts.data(), parts.size(), bad) == Status::ok);
    CHECK(advance(p.pool, 0.5) == Status::ok);  // of all nodes: the rows are rebuilt
    check_searches(p, found);
    CHECK(release(p.pool, 0, parts.data(), parts.size(), bad) == Status::ok);
    check_searches(p, found);
  }
  CHECK(found > 2000);
}

}  // namespace

int main(int argc, char**) {
  use_default_options(argc);
  dictionary_codes_are_ordered_and_tight();
  windows_of_keys_with_equal_float();
  booked_slots_count_in_the_dictionary();
  windows_of_one_node_type();
  windows_of_few_node_types();
  return report();
}

// Searches for the cheapest windows that learn: whatever was asked before, memory or not, by one
// thread or several, each finds what one that knows nothing finds; and counts what it takes.
#include "memory.hpp"

#include <algorithm>
#include <vector>

#include "slotkern/pool/known_costs.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Spans of some nodes; perhaps many ties, and prices that differ within a node.
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
  if (!below(20)) query.setup = real();
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

void what_was_asked_before_changes_no_answer() {
  const int cost = criterion_index("cost");
  std::size_t found = 0, refused = 0;
  for (int round = 0; round < 300; ++round) {
    const int nodes = int(1 + below(below(3) ? 20 : 150));
    const std::vector<Row> rows = some_rows(nodes, below(2) == 0, below(3) == 0);
    PreparedSlots prepared;
    CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
    CostMemory memory;
    std::vector<Query> queries;
    for (int k = 0; k < 80; ++k) {
      const Query query = some_query(nodes);
      queries.push_back(query);
      const int criterion = below(8) ? cost : int(below(kBuiltins));
      const ShapeKind shape = below(8) ? ShapeKind::ragged : ShapeKind::square;
      if (!below(6)) {  // of memory that is refused nothing stays behind
        memory_left = long(below(12));
        const Answer lean = find(prepared, memory, query, criterion, shape);
        memory_left = -1;
        refused += lean.status == Status::no_memory;
      }
      const Answer mine = find(prepared, memory, query, criterion, shape);
      const Found kept = mine.found;
      const auto n = static_cast<std::size_t>(query.n);
      const std::vector<Part> parts(mine.parts, mine.parts + (mine.status == Status::ok ? n : 0));
      const Answer other = find(prepared, query, criterion, shape);
      CHECK(mine.status == other.status);
      if (other.status != Status::ok) continue;
      CHECK(same(kept, other.found) && same(parts.data(), other.parts, n));
      ++found;
      if (!below(50)) memory.forget();
    }
    WindowTable learning, plain;
    std::size_t wrong = 0;
    const Status one = find_many(prepared, queries, cost, ShapeKind::ragged, 1, plain, wrong);
    const auto threads = unsigned(1 + below(3));
    CHECK(find_many(prepared, memory, queries, cost, ShapeKind::ragged, threads, learning,
                    wrong) == one);
    if (one != Status::ok) continue;
    CHECK(learning.size() == plain.size() && learning.parts.size() == plain.parts.size());
    for (std::size_t k = 0; k < plain.size(); ++k) {
      CHECK(learning.any(k) == plain.any(k));
      if (!plain.any(k)) continue;
      CHECK(same(learning.found[k], plain.found[k]) &&
            same(learning.parts_of(k), plain.parts_of(k), plain.count(k)));
    }
  }
  CHECK(found > 5000 && refused > 100);
}

// What is spent on searches by cells that gain nothing is a small share of what the sweeps take;
// where they gain, few sweeps are made.
void what_gains_nothing_is_seldom_tried() {
  for (const bool learnt : {false, true}) {
    CostAccount loses(5), gains(5);
    double by_cells = 0, by_sweeps = 0;
    for (int k = 0; k < 400000; ++k) {
      const std::size_t allowed = loses.allowed();
      if (allowed > 0)
        loses.asked(false, allowed, learnt);
      else
        CHECK(loses.swept(200) <= 200);
      if (k < 100000) continue;  // what was given at first has been spent
      (allowed > 0 ? by_cells : by_sweeps) += allowed > 0 ? double(allowed) : 200;
    }
    CHECK(by_sweeps > 0 && by_cells > 0 && by_cells < by_sweeps * (learnt ? 0.3 : 0.05));

    int sweeps = 0;
    for (int k = 0; k < 400000; ++k) {
      const std::size_t allowed = gains.allowed();
      if (allowed > 0)
        gains.asked(true, 10, learnt);
      else
        gains.swept(200), ++sweeps;
    }
    CHECK(sweeps > 1000 && sweeps * 200 < 400000 * 10 / 10);
  }
}

}  // namespace

int main() {
  what_was_asked_before_changes_no_answer();
  what_gains_nothing_is_seldom_tried();
  return report();
}

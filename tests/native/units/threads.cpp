// Concurrent searches, for ThreadSanitizer: two calls of several threads each on slots that never
// change, with and without cached cost bounds, then one after the other on a changing pool.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "pools.hpp"

using namespace slotkern;
using namespace unit;

namespace {

std::vector<Query> some_queries() {
  std::vector<Query> queries(300);
  for (std::size_t k = 0; k < queries.size(); ++k)
    queries[k].n = std::int64_t(1 + k % 4), queries[k].volume = 10 + double(k % 7);
  return queries;
}

// Few prices, or one price per slot, for which searches use different caches.
std::vector<Row> some_rows(bool few) {
  std::vector<Row> rows;
  for (int t = 0; t < 20; ++t)
    for (std::int32_t k = 0; k < 60; ++k)
      rows.push_back({k, 100.0 * t, 100.0 * t + 90, 1.0 + k % 3,
                      few ? 1.0 + k % 5 : 1 + 0.37 * k + 0.01 * t});
  return rows;
}

bool same(const WindowTable& a, const WindowTable& b) {
  return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const Part& x, const Part& y) { return x.node == y.node; });
}

// Several threads find what one thread finds.
void search(const PreparedSlots& prepared, std::atomic<int>& wrong,
            CostCachePool* memory = nullptr) {
  const std::vector<Query> queries = some_queries();
  std::size_t bad = 0;
  for (const ShapeKind shape : {ShapeKind::ragged, ShapeKind::square}) {
    WindowTable found, plain;
    wrong += find_windows(prepared, queries, 1, shape, 3, found, bad) != Status::ok;
    wrong += find_windows(prepared, queries, 1, shape, 1, plain, bad) != Status::ok;
    wrong += !same(found, plain);
  }
  for (int again = 0; memory && again < 3; ++again) {
    const int cost = criterion_index("cost");
    WindowTable found, plain;
    wrong += find_windows(prepared, *memory, queries, cost, ShapeKind::ragged, 3, found, bad) !=
             Status::ok;
    wrong += find_windows(prepared, queries, cost, ShapeKind::ragged, 1, plain, bad) != Status::ok;
    wrong += !same(found, plain);
  }
}

void threads_find_what_one_finds(const std::vector<Row>& rows) {
  std::atomic<int> wrong{0};
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
  CostCachePool memory;
  std::thread first([&] { search(prepared, wrong, &memory); }),
      second([&] { search(prepared, wrong, &memory); });
  first.join(), second.join();
  CHECK(wrong == 0);

  Pool p(rows);
  const Query query = some_queries()[3];
  for (int round = 0; round < 20; ++round) {
    const Answer answer = find_window(p.pool, query, 0, ShapeKind::ragged);
    std::size_t bad = 0;
    CHECK(answer.status == Status::ok);
    const std::vector<Part> parts(answer.parts, answer.parts + query.n);
    CHECK(book(p.pool, answer.found.start, parts.data(), parts.size(), bad) == Status::ok);
    search(p.prepared, wrong);
  }
  CHECK(wrong == 0);
}

}  // namespace

int main() {
  threads_find_what_one_finds(some_rows(true));
  threads_find_what_one_finds(some_rows(false));
  return report();
}

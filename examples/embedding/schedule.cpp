// Books jobs one after another in a pool of free slots, without Python:
//   g++ -std=c++20 -O3 -ffp-contract=off -I "$(python -c 'import slotkern as sk;
//       print(sk.get_include())')" schedule.cpp -o schedule && ./schedule
#include <cstddef>
#include <cstdio>
#include <vector>

#include "slotkern/pool/schedule.hpp"

struct Row {  // any record with these five fields, sorted by (start, node)
  std::int32_t node;
  double start, end, performance, price;
};

int main() {
  const std::vector<Row> rows = {{0, 0, 20, 1, 1}, {1, 0, 30, 2, 3}, {2, 4, 30, 4, 5}};
  slotkern::SlotView view;
  view.base = reinterpret_cast<const char*>(rows.data());
  view.stride = sizeof(Row);
  view.node = offsetof(Row, node), view.start = offsetof(Row, start);
  view.end = offsetof(Row, end), view.performance = offsetof(Row, performance);
  view.price = offsetof(Row, price), view.size = rows.size();

  slotkern::PreparedSlots prepared;
  const auto fault = slotkern::prepare_slots(prepared, view, true, slotkern::ShapeKind::square, 0);
  if (fault.status != slotkern::Status::ok) return std::printf("row %zu\n", fault.row), 1;
  std::vector<double> prices;
  for (const Row& row : rows) prices.push_back(row.price);
  slotkern::SlotPool pool;
  if (open_pool(pool, prepared, prices, nullptr) != slotkern::Status::ok) return 1;

  slotkern::Query job;
  job.n = 2, job.volume = 8, job.budget = 40;
  slotkern::WindowTable done;
  std::vector<std::uint8_t> reasons;
  const int start = slotkern::criterion_index("start");
  const auto shape = slotkern::ShapeKind::ragged;
  if (schedule(pool, prepared, std::vector(12, job), start, shape, done, reasons) !=
      slotkern::Status::ok)
    return 1;
  for (std::size_t i = 0; i < done.size(); ++i)
    if (done.any(i))
      std::printf("job %zu starts %g costs %g\n", i, done.found[i].start, done.found[i].cost);
    else
      std::printf("job %zu does not fit\n", i);
}

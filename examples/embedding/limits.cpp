// Finds two nodes with at least 500 GB of storage together that use at most 6 kWh: constraints on
// sums over the parts of a window.
//
// g++ -std=c++20 -O3 -ffp-contract=off -I <slotkern.get_include()> limits.cpp
#include <cstdio>
#include <vector>

#include "slotkern/window/find.hpp"

namespace {

struct Row {
  std::int32_t node;
  double start, end, performance, price;
};

}  // namespace

int main() {
  using namespace slotkern;
  const std::vector<Row> rows{{0, 0, 20, 1, 1}, {1, 0, 20, 2, 2}, {2, 0, 20, 2, 3}, {3, 0, 20, 4, 9}};
  const std::vector<double> gigabytes{100, 150, 400, 250}, kilowatts{0.1, 0.3, 0.3, 0.9};

  SlotView view;
  view.base = reinterpret_cast<const char*>(rows.data());
  view.stride = sizeof(Row), view.size = rows.size();
  view.node = offsetof(Row, node), view.start = offsetof(Row, start);
  view.end = offsetof(Row, end), view.performance = offsetof(Row, performance);
  view.price = offsetof(Row, price);
  PreparedSlots prepared;
  if (prepare_slots(prepared, view, true, ShapeKind::ragged, 0).status != Status::ok) return 1;

  SumConstraints limits;
  limits.rows = rows.size();
  SumConstraint storage, energy;
  storage.weight = gigabytes.data(), storage.at_least = true, storage.amount = 500;
  energy.weight = kilowatts.data(), energy.by_length = true, energy.amount = 6;
  limits.all = {storage, energy};

  Query job;
  job.n = 2, job.volume = 10, job.limits = &limits;
  for (int criterion = 0; criterion < kBuiltins; ++criterion) {
    const Answer answer = find_window(prepared, job, criterion, ShapeKind::ragged);
    if (answer.status != Status::ok) return 1;
    std::printf("%s: nodes %d and %d for %g%s\n", criterion_name(criterion).data(),
                answer.parts[0].node, answer.parts[1].node, answer.found.cost,
                answer.proven ? "" : ", perhaps not the best");
  }
}

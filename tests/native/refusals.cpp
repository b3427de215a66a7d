// Checks that every kernel and the C functions reject invalid requests. Prints the number of
// rejections; returns 1 at the first request that was accepted.
#include <cmath>
#include <cstdio>

#include "slotkern/pool/embed.hpp"
#include "slotkern/value/find.hpp"
#include "slotkern/window/alternatives.hpp"

using namespace slotkern;

namespace {

struct Row {
  std::int32_t node;
  double start, end, performance, price;
};

int refused = 0;

void expect(bool holds, const char* what) {
  if (!holds) std::printf("not refused: %s\n", what), std::exit(1);
  ++refused;
}

}  // namespace

int main() {
  const Row rows[] = {{0, 0, 20, 1, 1}, {1, 0, 30, 2, 3}, {2, 4, 30, 4, 5}};
  SlotView view;
  view.base = reinterpret_cast<const char*>(rows);
  view.stride = sizeof(Row), view.size = 3;
  view.start = offsetof(Row, start), view.end = offsetof(Row, end);
  view.performance = offsetof(Row, performance), view.price = offsetof(Row, price);
  PreparedSlots prepared;
  if (prepare_slots(prepared, view, true, ShapeKind::square, 0).status != Status::ok) return 1;
  SlotPool pool;
  PreparedSlots changing = prepared;
  if (open_pool(pool, changing, {1, 3, 5}, nullptr) != Status::ok) return 1;

  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr Status no = Status::request_not_valid;
  Query wrong[5];
  for (Query& query : wrong) query.n = 2, query.volume = 8;
  wrong[0].n = 0, wrong[1].n = -1, wrong[2].volume = nan, wrong[3].budget = nan;
  wrong[4].volume = 0;
  for (const Query& query : wrong) {
    WindowTable windows;
    expect(find_window(prepared, query, 1, ShapeKind::ragged).status == no, "by find");
    expect(find_window(pool, query, 1, ShapeKind::square).status == no,
           "by find in a changing pool");
    expect(find_alternatives(prepared, query, ShapeKind::square, 9, windows) == no,
           "by alternatives");
    expect(find_by_value(prepared, query, {}, ShapeKind::ragged, {}, false).status == no,
           "by value");
  }
  Query charged = wrong[4];
  charged.volume = 8, charged.step = -1;
  expect(find_window(prepared, charged, 1, ShapeKind::ragged).status == no, "a negative step");
  Query right = wrong[0];
  right.n = 2;
  for (const int criterion : {-1, kBuiltins})
    expect(find_window(prepared, right, criterion, ShapeKind::square).status == no &&
               find_window(pool, right, criterion, ShapeKind::square).status == no,
           "an unknown criterion");
  expect(advance(pool, nan) == Status::time_is_nan && pool.now() == -kInfinity,
         "a time that is no number");
  if (find_window(pool, right, 1, ShapeKind::square).status != Status::ok) return 1;

  std::shared_mutex mutex;
  PoolHandle handle{&pool, &mutex};
  double request[] = {2, 8, 40, 0, 0, 99, 9}, totals[5], lengths[2], costs[2];
  std::int64_t row[2];
  std::int32_t node[2];
  const auto find_by = [&](void* at, int criterion, int shape) {
    return slotkern_find(at, request, 7, criterion, shape, totals, row, node, lengths, costs);
  };
  if (find_by(&handle, 1, 1) != 0) return 1;
  expect(find_by(nullptr, 1, 1) && find_by(&handle, 1, 2) && find_by(&handle, 9, 1), "by address");
  expect(slotkern_book(nullptr, 0, 2, row, node, lengths) &&
             slotkern_book(&handle, 0, 0, row, node, lengths) &&
             slotkern_book(&handle, 0, 2, row, nullptr, lengths),
         "to be booked by address");
  double more[RequestField::count + 1] = {};
  std::copy(request, request + 7, more);
  more[RequestField::latest] = more[RequestField::max_runtime] = kInfinity;
  expect(
      slotkern_find(&handle, more, RequestField::count, 1, 1, totals, row, node, lengths, costs) == 0 &&
          slotkern_find(&handle, more, RequestField::count + 1, 1, 1, totals, row, node, lengths,
                        costs) != 0,
      "a field that nobody knows");
  const double weight[] = {100, 150, 400};
  SumConstraints limits{{{.amount = 500, .at_least = true, .weight = weight}}, 3};
  handle.limits = {nullptr, &limits};
  const auto within = [&](double number) {
    more[RequestField::limits] = number;
    return slotkern_find(&handle, more, RequestField::count, 1, 1, totals, row, node, lengths, costs);
  };
  if (within(2) != 0 || row[0] + row[1] < 2) return 1;
  for (const double number : {-1.0, 0.5, 1.0, 1.5, 3.0, nan, kInfinity})
    expect(within(number) == static_cast<int>(no), "a number of limits");
  for (const double n : {0.0, -2.0, 1.5, nan, 1e300}) {
    request[0] = n;
    if (find_by(&handle, 1, 1) == 0) expect(false, "a number of nodes by address");
  }
  std::printf("%d refused\n", refused);
}

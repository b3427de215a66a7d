// Unit tests of searches by value: work limits, and a user's function that fails.
#include <algorithm>
#include <vector>

#include "slotkern/value/find.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Rows whose price is proportional to their value at the last start, 100: a budget of half the
// total cost allows very many sets of nearly equal value.
std::vector<Row> nearly_equal_rows(int nodes) {
  std::vector<Row> rows;
  for (int k = 0; k < nodes; ++k) {
    const double start = k == 0 ? 100 : 50 * real();
    rows.push_back({k, start, 1e4, 1, (100 - start) / 10});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.start < b.start; });
  return rows;
}

ValueAnswer found_in(const std::vector<Row>& rows, Valuation valuation,
                     const ValueOptions& options, std::int64_t n) {
  PreparedSlots prepared(unit::options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  Query query;
  query.n = n, query.volume = 10, query.budget = 0;
  for (const Row& row : rows) query.budget += 0.5 * 10 * row.price;
  return find_by_value(prepared, query, valuation, ShapeKind::ragged, options, false);
}

void abandoned_searches_are_not_proven() {
  source.seed(5);
  const std::vector<Row> rows = nearly_equal_rows(60);
  std::vector<double> worth;
  for (const Row& row : rows) worth.push_back(100 - row.start);
  Valuation dependable, column;
  dependable.kind = ValueKind::dependable;
  column.column = worth.data();
  for (const Valuation& valuation : {dependable, column}) {
    ValueOptions options;
    options.limits.memory = 0;  // no memory for lists, and far too many sets to enumerate
    const ValueAnswer answer = found_in(rows, valuation, options, 30);
    CHECK(answer.status == Status::ok && !answer.proven && answer.bound > answer.found.value);
  }
}

void work_limits_are_respected() {
  source.seed(6);
  const std::vector<Row> rows = nearly_equal_rows(18);
  std::vector<double> worth;
  for (const Row& row : rows) worth.push_back(100 - row.start);
  Valuation column;
  column.column = worth.data();
  ValueOptions options;
  const ValueAnswer full = found_in(rows, column, options, 9);
  CHECK(full.proven && full.effort.work > 100);
  options.limits.work = 10;
  const ValueAnswer limited = found_in(rows, column, options, 9);
  CHECK(!limited.proven && limited.found.value <= full.found.value && limited.bound >= full.found.value);
}

void failing_functions_name_their_slot() {
  const std::vector<Row> rows{{0, 0, 50, 1, 1}, {1, 1, 50, 1, 1}};
  Valuation own;
  own.kind = ValueKind::static_function;
  own.records = reinterpret_cast<const char*>(rows.data());
  own.stride = sizeof(Row);
  const StaticValue fails = [](const void* slot, double, double* value) {
    *value = 1;
    return static_cast<int>(static_cast<const Row*>(slot)->node == 1);
  };
  own.function = reinterpret_cast<void*>(fails);
  const ValueAnswer answer = found_in(rows, own, {}, 1);
  CHECK(answer.status == Status::criterion_failed && answer.fault.row == 1);
}

}  // namespace

int main() {
  abandoned_searches_are_not_proven();
  work_limits_are_respected();
  failing_functions_name_their_slot();
  return report();
}

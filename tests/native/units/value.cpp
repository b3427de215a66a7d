// Searches by value: what their limits and a user's failing function come to.
#include <algorithm>
#include <vector>

#include "slotkern/value/find.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Nodes that are as dear as they are worth when the last of them comes, at 100: half of what all
// cost buys any of a great many sets, none of which can be told from the next.
std::vector<Row> much_alike(int nodes) {
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
  PreparedSlots prepared;
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::ragged, 0).status == Status::ok);
  Query query;
  query.n = n, query.volume = 10, query.budget = 0;
  for (const Row& row : rows) query.budget += 0.5 * 10 * row.price;
  return find_by_value(prepared, query, valuation, ShapeKind::ragged, options, false);
}

void what_is_given_up_is_not_called_proven() {
  source.seed(5);
  const std::vector<Row> rows = much_alike(60);
  std::vector<double> worth;
  for (const Row& row : rows) worth.push_back(100 - row.start);
  Valuation dependable, column;
  dependable.kind = ValueKind::dependable;
  column.column = worth.data();
  for (const Valuation& valuation : {dependable, column}) {
    ValueOptions options;
    options.limits.memory = 0;  // none for lists, and far too many sets to go through
    const ValueAnswer answer = found_in(rows, valuation, options, 30);
    CHECK(answer.status == Status::ok && !answer.proven && answer.bound > answer.found.value);
  }
}

void work_ends_where_it_is_limited() {
  source.seed(6);
  const std::vector<Row> rows = much_alike(18);
  std::vector<double> worth;
  for (const Row& row : rows) worth.push_back(100 - row.start);
  Valuation column;
  column.column = worth.data();
  ValueOptions options;
  const ValueAnswer whole = found_in(rows, column, options, 9);
  CHECK(whole.proven && whole.effort.work > 100);
  options.limits.work = 10;
  const ValueAnswer cut = found_in(rows, column, options, 9);
  CHECK(!cut.proven && cut.found.value <= whole.found.value && cut.bound >= whole.found.value);
}

void a_function_that_fails_is_a_fault_of_its_slot() {
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
  what_is_given_up_is_not_called_proven();
  work_ends_where_it_is_limited();
  a_function_that_fails_is_a_fault_of_its_slot();
  return report();
}

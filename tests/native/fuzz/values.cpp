// Fuzz test of searches by value (a column, processor time, placement), some under constraints on
// sums over the parts, against every possible window.
#include "oracle.hpp"
#include "slotkern/value/find.hpp"

namespace {

fuzz::Tally tally{"values"};

struct Case {
  slotkern::ValueKind kind;
  double sign;
  slotkern::ShapeKind shape;
};

void print(const Case& c) {
  std::fprintf(stderr, "values %d, sign %g, shape %d\n", static_cast<int>(c.kind), c.sign,
               static_cast<int>(c.shape));
}

struct Column {
  std::vector<double> values;
};

void print(const Column& column) {
  std::fprintf(stderr, "column:");
  for (const double x : column.values) std::fprintf(stderr, " %.17g", x);
  std::fprintf(stderr, "\n");
}

}  // namespace

namespace slotkern {

static void print(const ValueAnswer& a) {
  std::fprintf(stderr, "status %d, value %.17g, bound %.17g, proven %d, start %.17g, cost %.17g\n",
               static_cast<int>(a.status), a.found.value, a.bound, a.proven, a.found.start,
               a.found.cost);
}

}  // namespace slotkern

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  std::vector<Row> rows = make_rows(bytes, 6, 3);
  for (Row& row : rows)  // placement requires finite ends
    if (std::isinf(row.end)) row.end = row.start + 4 * (rows[0].end - rows[0].start);
  const FilteredQuery request = make_query(bytes, rows, 6);
  for (const Row& row : rows)
    if (std::isinf(row.end)) return 0;
  static const std::vector<double> palettes[] = {
      {0, 1, 2, -1, 0.1, 0.3, 5}, {1}, {1, 1 + 1e-10, 1 - 1e-10}, {0, 1e9, 3, -7}, {1e-9, 2, 1e12}};
  const std::vector<double>& palette = palettes[bytes.below(5)];
  Column column;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool price = bytes.one_in(4);  // values equal to prices make hard instances
    column.values.push_back(price ? std::min(rows[i].price, slotkern::kMaxValue)
                                  : bytes.pick(palette));
  }
  const std::int64_t work = bytes.one_in(8) ? bytes.below(30) : std::int64_t{1} << 40;
  static constexpr Case cases[] = {
      {ValueKind::column, 1, ShapeKind::square},        {ValueKind::column, -1, ShapeKind::square},
      {ValueKind::column, 1, ShapeKind::ragged},        {ValueKind::column, -1, ShapeKind::ragged},
      {ValueKind::part_time, 1, ShapeKind::square},     {ValueKind::part_time, 1, ShapeKind::ragged},
      {ValueKind::dependable, 1, ShapeKind::square},    {ValueKind::dependable, 1, ShapeKind::ragged},
      {ValueKind::coordinated, -1, ShapeKind::square},  {ValueKind::coordinated, -1, ShapeKind::ragged}};
  const Case& c = bytes.pick(cases);
  Limited limited;
  if (bytes.below(2)) make_limits(bytes, rows, request.query, limited);
  ++tally.runs;
  PreparedSlots prepared(IndexOptions::for_small_pools());
  if (prepare_slots(prepared, view_of(rows), true, c.shape, 0).status != Status::ok)
    fail("valid slots are refused", rows);
  Query query = request.query;
  if (!request.mask.empty()) query.mask = request.mask.data();
  if (!limited.limits.all.empty()) query.limits = &limited.limits;
  Valuation valuation;
  valuation.kind = c.kind;
  valuation.column = column.values.data();
  if (c.kind == ValueKind::column) valuation.sign = c.sign;
  ValueOptions options;
  options.limits.work = work;
  const ValueAnswer answer = find_by_value(prepared, query, valuation, c.shape, options, false);
  ++tally.searches;
  if (answer.status == Status::volume_too_small) return check_refusal(rows, request), 0;
  // A work limit can end a constrained search before it has found a window or proven that there is
  // none.
  const bool may_be_undecided = query.limits && work <= 100;
  if (answer.status == Status::undecided && may_be_undecided) return 0;
  if (answer.status != Status::ok && answer.status != Status::none)
    fail("an unexpected status", c, rows, request, limited, column, answer);

  const bool square = c.shape == ShapeKind::square;
  const bool placed = c.kind == ValueKind::dependable || c.kind == ValueKind::coordinated;
  const Oracle oracle(rows, request, c.shape, &limited);
  double largest = 0;  // largest absolute contribution of a part of a window
  const auto value_of = [&](const Totals& w) {
    double total = 0;
    for (const auto i : w.rows) {
      const double d = square ? w.runtime : oracle.length(i);
      const double before = w.start - rows[i].start, after = rows[i].end - w.start - d;
      double z = column.values[i];
      if (c.kind == ValueKind::part_time) z = d;
      if (c.kind == ValueKind::dependable) z = std::min(before, after);
      if (c.kind == ValueKind::coordinated) z = std::max(before, after);
      largest = std::max(largest, std::fabs(z) + (placed ? std::fabs(w.start) : 0));
      total += z;
    }
    return placed ? total / static_cast<double>(query.n) : total;
  };
  const double sign = c.kind == ValueKind::part_time ? -1 : c.sign;
  double best = -kInfinity;
  if (query.n <= static_cast<std::int64_t>(prepared.nodes.size()))
    for (std::size_t i = 0; i < rows.size(); ++i) {
      // Windows start at the starts of slots that may be part of them.
      if (!proper(rows[i], i, request)) continue;
      oracle.windows_at(std::max(rows[i].start, query.earliest), [&](const Totals& w) {
        best = std::max(best, sign * value_of(w));
      });
    }
  if (answer.status == Status::none) {
    // A work limit can end a search before it has found a window.
    if (best > -kInfinity && (answer.proven || work > 100))
      fail("a window is missed", c, rows, request, limited, column, answer);
    return 0;
  }
  ++tally.found;
  if (best == -kInfinity) fail("a window is invented", c, rows, request, limited, column, answer);
  // The answer is a window, and has the value that it reports.
  const Seen found = seen_of(answer.found, answer.parts, query.n);
  bool real = false;
  double value = 0;
  oracle.windows_at(found.start, [&](const Totals& w) {
    const Seen seen = oracle.window(w);
    if (!(seen.rows == found.rows)) return;
    real = seen.cost == found.cost && seen.runtime == found.runtime;
    value = value_of(w);
  });
  if (!real)
    fail("not a window under its constraints", c, rows, request, limited, column, answer, found);
  const double tolerance = 1e-11 * static_cast<double>(query.n) * largest;
  if (!(std::fabs(value - answer.found.value) <= tolerance))
    fail("not the value of its window", c, rows, request, limited, column, answer, found);
  if (answer.proven && !(sign * value >= best - tolerance)) {
    std::fprintf(stderr, "best %.17g\n", sign * best);
    fail("proven, but not the best", c, rows, request, limited, column, answer, found);
  }
  if (!(sign * answer.bound >= best - tolerance)) {
    std::fprintf(stderr, "best %.17g\n", sign * best);
    fail("a bound below the best", c, rows, request, limited, column, answer, found);
  }
  return 0;
}

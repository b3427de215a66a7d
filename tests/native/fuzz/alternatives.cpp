// One sweep for all alternatives against repeated search by "first" and cutting.
#include "oracle.hpp"
#include "slotkern/window/alternatives.hpp"

namespace {

fuzz::Tally tally{"alternatives"};

struct Piece {
  fuzz::Row row;
  std::size_t origin;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  const std::vector<Row> rows = make_rows(bytes, 6, 3);
  Asked asked = make_query(bytes, rows, 6);
  static constexpr std::size_t kMost = 40;  // of alternatives that are compared
  const std::size_t limit = bytes.one_in(4) ? bytes.below(4) : kMost;
  const ShapeKind shape = bytes.below(2) ? ShapeKind::ragged : ShapeKind::square;
  ++tally.runs;
  PreparedSlots prepared;
  if (prepare_slots(prepared, view_of(rows), true, shape, 0).status != Status::ok)
    fail("valid slots are refused", rows);
  Query query = asked.query;
  if (!asked.mask.empty()) query.mask = asked.mask.data();
  WindowTable out;
  const Status status = find_alternatives(prepared, query, shape, limit, out);
  ++tally.searches;
  if (status == Status::volume_too_small) {  // perhaps after that many windows
    double longest = 0;
    for (const Row& row : rows) {
      const double length = length_on(query, row.performance);
      if (std::isfinite(length)) longest = std::max(longest, length);
    }
    return check_refusal(rows, asked, static_cast<double>(limit) * longest), 0;
  }
  if (status != Status::ok) fail("an unexpected status", rows, asked);
  tally.found += !out.found.empty();

  std::vector<Piece> free;
  for (std::size_t i = 0; i < rows.size(); ++i) free.push_back({rows[i], i});
  const auto n = static_cast<std::size_t>(query.n);
  if (n > prepared.nodes.size()) {
    if (!out.found.empty()) fail("windows of more nodes than there are", rows, asked);
    return 0;
  }
  for (std::size_t k = 0; k < limit; ++k) {
    std::sort(free.begin(), free.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.row.start, a.row.node) < std::tie(b.row.start, b.row.node);
    });
    std::vector<Row> now;
    Asked of_now{asked.query, {}};
    for (const Piece& piece : free) {
      now.push_back(piece.row);
      if (!asked.mask.empty()) of_now.mask.push_back(asked.mask[piece.origin]);
    }
    Seen expected;
    const bool any = Oracle(now, of_now, shape).first(expected);
    if (any != (k < out.found.size()))
      fail(any ? "an alternative is missed" : "an alternative is invented", rows, asked, now,
           expected);
    if (!any) break;
    const Seen found = seen_of(out.found[k], &out.parts[k * n], query.n);
    std::vector<Piece> left;
    Rows origins;
    for (std::size_t i = 0; i < free.size(); ++i) {
      const auto* const at = std::find(expected.rows.begin(), expected.rows.end(), i);
      if (at == expected.rows.end()) {
        left.push_back(free[i]);
        continue;
      }
      const Row& row = free[i].row;
      const double d =
          shape == ShapeKind::square ? expected.runtime : length_on(query, row.performance);
      Piece before = free[i], after = free[i];
      before.row.end = expected.start;
      after.row.start = expected.start + d;
      if (row.end - after.row.start <= 4 * 0x1p-52 * std::fabs(after.row.start))
        after.row.start = row.end;
      if (before.row.start < before.row.end) left.push_back(before);
      if (after.row.start < after.row.end) left.push_back(after);
    }
    for (const auto i : expected.rows)
      origins.push_back(static_cast<std::uint32_t>(free[i].origin));
    expected.rows = origins;
    if (!same(found, expected)) fail("not the next alternative", rows, asked, found, expected);
    free = left;
  }
  return 0;
}

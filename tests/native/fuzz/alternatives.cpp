// Fuzzes the one-sweep search of all alternatives against repeated search by "first" and cutting;
// under sum limits, which the sweep rejects, against repeated search and booking in a pool, by
// every criterion.
#include <set>

#include "oracle.hpp"
#include "slotkern/pool/schedule.hpp"
#include "slotkern/window/alternatives.hpp"

namespace {

fuzz::Tally tally{"alternatives"};

struct Piece {
  fuzz::Row row;
  std::size_t origin;
};

// Computes windows that a pool returns one after another.
slotkern::Status find_and_book(slotkern::PreparedSlots& prepared,
                               const std::vector<fuzz::Row>& rows, slotkern::Query query,
                               int criterion, slotkern::ShapeKind shape, std::size_t limit,
                               slotkern::WindowTable& out) {
  using namespace slotkern;
  std::vector<double> prices;
  for (const fuzz::Row& row : rows) prices.push_back(row.price);
  SlotPool pool;
  if (open_pool(pool, prepared, prices, nullptr) != Status::ok) fuzz::fail("no pool", rows);
  if (query.mask) query.masked = rows.size();
  while (out.found.size() < limit) {
    const Answer answer = find_window(pool, query, criterion, shape);
    if (answer.status == Status::none) break;
    if (answer.status != Status::ok) return answer.status;
    if (!answer.proven) fuzz::fail("not proven", rows);
    const auto n = static_cast<std::size_t>(query.n);
    out.add(answer.found, answer.parts, n);
    std::size_t bad = 0;
    if (book(pool, answer.found.start, &out.parts[out.parts.size() - n], n, bad) != Status::ok)
      fuzz::fail("what was found cannot be booked", rows);
  }
  return Status::ok;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  const std::vector<Row> rows = make_rows(bytes, 6, 3);
  FilteredQuery request = make_query(bytes, rows, 6);
  static constexpr std::size_t kMost = 40;  // at most this many alternatives are compared
  const std::size_t limit = bytes.one_in(4) ? bytes.below(4) : kMost;
  const ShapeKind shape = bytes.below(2) ? ShapeKind::ragged : ShapeKind::square;
  Limited limited;
  const bool within = bytes.one_in(3) && !rows.empty();
  if (within) make_limits(bytes, rows, request.query, limited);
  const int criterion = within ? static_cast<int>(bytes.below(kBuiltins)) : 0;
  ++tally.runs;
  PreparedSlots prepared(IndexOptions::for_small_pools());
  if (prepare_slots(prepared, view_of(rows), true, shape, 0).status != Status::ok)
    fail("valid slots are refused", rows);
  Query query = request.query;
  if (!request.mask.empty()) query.mask = request.mask.data();
  WindowTable out;
  if (within) query.limits = &limited.limits;
  Status status = find_alternatives(prepared, query, shape, limit, out);
  if (within && status != Status::volume_too_small) {
    if (status != Status::request_not_valid) fail("limits are not refused", rows, request, limited);
    status = find_and_book(prepared, rows, query, criterion, shape, limit, out);
  }
  ++tally.searches;
  if (status == Status::volume_too_small) {  // possibly after that many windows
    double longest = 0;
    for (const Row& row : rows) {
      const double length = length_on(query, row.performance);
      if (std::isfinite(length)) longest = std::max(longest, length);
    }
    return check_refusal(rows, request, static_cast<double>(limit) * longest), 0;
  }
  if (status != Status::ok) fail("an unexpected status", rows, request, limited);
  tally.found += !out.found.empty();

  std::vector<Piece> free;
  for (std::size_t i = 0; i < rows.size(); ++i) free.push_back({rows[i], i});
  const auto n = static_cast<std::size_t>(query.n);
  if (n > prepared.nodes.size()) {
    if (!out.found.empty()) fail("windows of more nodes than there are", rows, request);
    return 0;
  }
  for (std::size_t k = 0; k < limit; ++k) {
    std::sort(free.begin(), free.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.row.start, a.row.node) < std::tie(b.row.start, b.row.node);
    });
    std::vector<Row> now;
    FilteredQuery of_now{request.query, {}};
    for (const Piece& piece : free) {
      now.push_back(piece.row);
      if (!request.mask.empty()) of_now.mask.push_back(request.mask[piece.origin]);
    }
    Seen expected;
    bool any = false;
    Limited limited_now;
    if (within) {
      std::set<std::int32_t> nodes;
      for (const Row& row : now) nodes.insert(row.node);
      std::vector<std::size_t> pieces;
      for (const Piece& piece : free) pieces.push_back(piece.origin);
      limits_of_pieces(limited, now, pieces, limited_now);
      const BestWithin best(now, of_now, shape, limited_now, n <= nodes.size());
      if ((any = best.any())) expected = best.window(criterion);
    } else {
      any = Oracle(now, of_now, shape).first(expected);
    }
    if (any != (k < out.found.size()))
      fail(any ? "an alternative is missed" : "an alternative is invented", rows, request, limited,
           now, expected);
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
    if (!same(found, expected))
      fail("not the next alternative", rows, request, limited, found, expected);
    free = left;
  }
  return 0;
}

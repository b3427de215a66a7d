// Fuzzes every criterion under sum limits against an enumeration of all windows.
#include "oracle.hpp"

namespace {

fuzz::Tally tally{"constrained"};

struct Answered {
  int criterion;
  slotkern::ShapeKind shape;
  slotkern::Status status;
  bool proven;
};

void print(const Answered& a) {
  std::fprintf(stderr, "criterion %d, shape %d: status %d, proven %d\n", a.criterion,
               static_cast<int>(a.shape), static_cast<int>(a.status), a.proven);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  const bool many = bytes.one_in(8);
  const std::vector<Row> rows = many ? make_rows(bytes, 4, 12) : make_rows(bytes, 6, 3);
  const FilteredQuery request = make_query(bytes, rows, many ? 4 : 6);
  Limited limited;
  make_limits(bytes, rows, request.query, limited);
  const bool all = bytes.below(2);
  const ShapeKind shape = bytes.below(2) ? ShapeKind::ragged : ShapeKind::square;
  ++tally.runs;
  PreparedSlots prepared(IndexOptions::for_small_pools());
  if (prepare_slots(prepared, view_of(rows), all, shape, static_cast<std::size_t>(request.query.n))
          .status != Status::ok)
    fail("valid slots are refused", rows);
  Query query = request.query;
  if (!request.mask.empty()) query.mask = request.mask.data();
  query.limits = &limited.limits;
  const bool enough = query.n <= static_cast<std::int64_t>(prepared.nodes.size());
  const BestWithin best(rows, request, shape, limited, enough);
  const bool any = best.any();
  for (int criterion = 0; criterion < kBuiltins; ++criterion) {
    const Answer answer = find_window(prepared, query, criterion, shape);
    if (answer.status == Status::volume_too_small) return check_refusal(rows, request), 0;
    ++tally.searches;
    const Seen& expected = best.window(criterion);
    const Answered answered{criterion, shape, answer.status, answer.proven};
    if (answer.status != Status::ok && answer.status != Status::none)
      fail("an unexpected status", answered, rows, request, limited);
    if (any != (answer.status == Status::ok))
      fail(any ? "a window is missed" : "a window is invented", answered, rows, request, limited,
           expected);
    if (!any) continue;
    ++tally.found;
    const Seen found = seen_of(answer.found, answer.parts, query.n);
    if (!same(found, expected) || !answer.proven)
      fail("not the best window", answered, rows, request, limited, found, expected);
  }
  return 0;
}

// Fuzzes every criterion against an enumeration of all windows.
#include "oracle.hpp"

namespace {

fuzz::Tally tally{"search"};

// Many nodes with one or two slots, for code that only runs with more than 64 nodes.
std::vector<fuzz::Row> many_rows(fuzz::Bytes& bytes) {
  std::mt19937 random(bytes.next() + 256u * bytes.next());
  std::vector<std::uint8_t> more(2000);
  for (std::uint8_t& x : more) x = static_cast<std::uint8_t>(random());
  fuzz::Bytes drawn(more.data(), more.size());
  return fuzz::make_rows(drawn, 40 + bytes.below(80), 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  const bool many = bytes.one_in(64);
  const std::vector<Row> rows = many ? many_rows(bytes) : make_rows(bytes, 6, 3);
  const FilteredQuery request = make_query(bytes, rows, many ? 20 : 6);
  const bool all = bytes.below(2);
  const ShapeKind shape = bytes.below(2) ? ShapeKind::ragged : ShapeKind::square;
  ++tally.runs;
  const Oracle oracle(rows, request, shape);
  PreparedSlots prepared(IndexOptions::for_small_pools());
  CostCachePool memory;
  const Fault fault = prepare_slots(prepared, view_of(rows), all, shape,
                                 static_cast<std::size_t>(request.query.n));
  if (fault.status != Status::ok) fail("valid slots are refused", rows);
  Query query = request.query;
  if (!request.mask.empty()) query.mask = request.mask.data();
  // A request for more nodes than exist has no window, for any part length.
  const bool enough = query.n <= static_cast<std::int64_t>(prepared.nodes.size());
  Seen first;
  const bool any_first = enough && oracle.first(first);
  // The window consists of the n cheapest slots for some length, and no other window is better.
  std::array<Oracle::Best, 4> best, every;
  if (enough) best = oracle.best(false);
  if (enough && !many) every = oracle.best(true);
  for (int criterion = 0; criterion < kBuiltins; ++criterion) {
    const Answer answer = find_window(prepared, memory, query, criterion, shape);
    if (answer.status == Status::volume_too_small) return check_refusal(rows, request), 0;
    ++tally.searches;
    const std::size_t by = static_cast<std::size_t>(criterion) - 1;
    const bool any = criterion ? best[by].any() : any_first;
    const Seen expected = !any ? Seen{} : criterion ? best[by].window() : first;
    if (any != (answer.status == Status::ok))
      fail(any ? "a window is missed" : "a window is invented", rows, request, expected);
    if (criterion && !many && any != every[by].any()) fail("the oracles differ", rows, request);
    if (!any) continue;
    ++tally.found;
    const Seen found = seen_of(answer.found, answer.parts, query.n);
    if (!same(found, expected)) {
      std::fprintf(stderr, "criterion %d, shape %d\n", criterion, static_cast<int>(shape));
      fail("not the best window", rows, request, found, expected);
    }
    if (criterion == 0 || many) continue;
    const Seen& other = every[by].window();
    const double values[][2] = {{found.start, other.start},
                                {found.start + found.runtime, other.start + other.runtime},
                                {found.runtime, other.runtime},
                                {found.cost, other.cost}};
    if (values[by][0] != values[by][1] || found.start != other.start || found.cost != other.cost)
      fail("a better window", rows, request, found, other);
  }
  return 0;
}

// Fuzzer of a changing pool (book, release, advance, remove, search) against a plain list of spans:
// every search equals one in a pool built from the free spans of the list, and under sum limits one
// over all windows.
#include <deque>
#include <set>
#include <tuple>

#include "oracle.hpp"
#include "slotkern/pool/schedule.hpp"

namespace {

fuzz::Tally tally{"pool"};

using Id = std::int32_t;

struct Piece {
  Id node;
  double start, end;
  std::size_t row;
  bool operator==(const Piece&) const = default;
  bool operator<(const Piece& other) const {
    return std::tie(node, start) < std::tie(other.node, other.start);
  }
};

struct Booking {
  double start;
  std::vector<slotkern::Part> parts;
};

double cut_at(double finish, double end) {
  return end - finish <= 4 * 0x1p-52 * std::fabs(finish) ? end : finish;
}

struct Model {
  std::vector<Piece> free, booked;
  std::set<Id> removed;
  double now = -slotkern::kInfinity;

  bool book(const Booking& booking) {
    std::vector<Piece> left = free, taken;
    for (const slotkern::Part& part : booking.parts) {
      const double finish = booking.start + part.length;
      const auto at = std::find_if(left.begin(), left.end(), [&](const Piece& piece) {
        return piece.node == part.node && piece.start <= booking.start && finish <= piece.end;
      });
      if (at == left.end() || !(finish > booking.start)) return false;
      const Piece piece = *at;
      const double end = cut_at(finish, piece.end);
      left.erase(at);
      taken.push_back({piece.node, booking.start, end, piece.row});
      if (piece.start < booking.start)
        left.push_back({piece.node, piece.start, booking.start, piece.row});
      if (end < piece.end) left.push_back({piece.node, end, piece.end, piece.row});
    }
    free = left;
    booked.insert(booked.end(), taken.begin(), taken.end());
    return true;
  }

  bool release(const Booking& booking) {
    std::vector<Piece> left = booked, given;
    for (const slotkern::Part& part : booking.parts) {
      const double finish = booking.start + part.length;
      if (removed.count(part.node) || finish <= now) continue;
      const auto at = std::find_if(left.begin(), left.end(), [&](const Piece& piece) {
        return piece.node == part.node && piece.start == booking.start && finish <= piece.end &&
               piece.end == cut_at(finish, piece.end);
      });
      if (at == left.end()) return false;
      given.push_back(*at);
      left.erase(at);
    }
    booked = left;
    for (Piece piece : given) {
      piece.start = std::max(piece.start, now);
      for (std::size_t i = free.size(); i-- > 0;) {
        if (free[i].node != piece.node || free[i].row != piece.row) continue;
        if (free[i].end == piece.start)
          piece.start = free[i].start;
        else if (free[i].start == piece.end)
          piece.end = free[i].end;
        else
          continue;
        free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
      }
      free.push_back(piece);
    }
    return true;
  }

  void advance(double t) {
    now = std::max(now, t);
    std::erase_if(free, [&](const Piece& piece) { return piece.end <= now; });
    for (Piece& piece : free) piece.start = std::max(piece.start, now);
  }

  void remove(Id node) {
    removed.insert(node);
    std::erase_if(free, [&](const Piece& piece) { return piece.node == node; });
    std::erase_if(booked, [&](const Piece& piece) { return piece.node == node; });
  }
};

void print(const std::vector<Piece>& pieces) {
  for (const Piece& p : pieces)
    std::fprintf(stderr, "  node %d, %.17g to %.17g, row %zu\n", p.node, p.start, p.end, p.row);
}

bool agree(std::vector<Piece> mine, const std::vector<slotkern::Span>& spans,
           const std::vector<Id>& nodes) {
  std::vector<Piece> theirs;
  for (std::size_t i = 0; i < spans.size(); ++i)
    theirs.push_back({nodes[i], spans[i].start, spans[i].end, spans[i].origin_row});
  std::sort(mine.begin(), mine.end());
  std::sort(theirs.begin(), theirs.end());
  if (mine == theirs) return true;
  std::fprintf(stderr, "the list:\n");
  print(mine);
  std::fprintf(stderr, "the pool:\n");
  print(theirs);
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  std::vector<Row> rows;
  const bool large = bytes.one_in(32);
  if (large) {  // several blocks of 64 rows
    std::mt19937 random(bytes.next());
    std::vector<std::uint8_t> more(4000);
    for (std::uint8_t& x : more) x = static_cast<std::uint8_t>(random());
    Bytes drawn(more.data(), more.size());
    rows = make_rows(drawn, 40, 8);
  } else {
    rows = make_rows(bytes, 6, 4);
  }
  if (rows.empty()) return 0;
  ++tally.runs;
  std::vector<double> prices;
  Model model;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    prices.push_back(rows[i].price);
    model.free.push_back({rows[i].node, rows[i].start, rows[i].end, i});
  }
  const IndexOptions options =
      bytes.one_in(4) ? IndexOptions{} : IndexOptions::for_small_pools();
  PreparedSlots prepared(options);
  SlotPool pool;
  if (prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status != Status::ok ||
      open_pool(pool, prepared, prices, nullptr) != Status::ok)
    fail("valid slots are refused", rows);
  std::vector<FilteredQuery> requests;  // few and repeated, so that caches are used
  for (int k = 0; k < 3; ++k) requests.push_back(make_query(bytes, rows, 6));
  std::deque<Limited> limited(3);
  for (std::size_t k = 0; k < 3; ++k)
    if (bytes.one_in(3)) make_limits(bytes, rows, requests[k].query, limited[k]);
  std::vector<Booking> bookings;
  const auto spoil = [&](Booking booking) {
    if (bytes.one_in(8)) booking.start += 0.5;
    if (bytes.one_in(8)) booking.parts.back().length *= 2;
    return booking;
  };

  const bool cheapest = bytes.one_in(3);  // only cheapest windows, so that cost bounds are used

  for (int step = 0; step < 20 && bytes.left() > 0; ++step) {
    std::size_t bad = 0;
    switch (bytes.below(8)) {
      case 0:
        if (!bookings.empty()) {
          const Booking booking = spoil(bookings[bytes.below(bookings.size())]);
          const bool done = release(pool, booking.start, booking.parts.data(),
                                    booking.parts.size(), bad) == Status::ok;
          if (done != model.release(booking)) fail("release", rows);
        }
        break;
      case 1:
        if (!bookings.empty()) {
          const Booking booking = spoil(bookings[bytes.below(bookings.size())]);
          const bool done = book(pool, booking.start, booking.parts.data(),
                                 booking.parts.size(), bad) == Status::ok;
          if (done != model.book(booking)) fail("book", rows);
        }
        break;
      case 2:
        if (bytes.one_in(3)) {
          const Row& row = bytes.pick(rows);
          const double t = bytes.below(2) && std::isfinite(row.end) ? row.end : row.start + 0.25;
          if (advance(pool, t) != Status::ok) fail("advance", rows);
          model.advance(t);
        } else if (bytes.one_in(6)) {
          const Id node = bytes.pick(rows).node;
          const bool done = remove_node(pool, node) == Status::ok;
          if (done == (model.removed.count(node) > 0)) fail("remove", rows);
          model.remove(node);
        }
        break;
      default: {
        const std::size_t which = bytes.below(3);
        const FilteredQuery& wanted = requests[which];
        const bool within = !limited[which].limits.all.empty();
        Query query = wanted.query;
        if (bytes.one_in(3)) query.n = static_cast<std::int64_t>(1 + bytes.below(4));
        if (bytes.one_in(3)) query.budget *= 0.5 * static_cast<double>(1 + bytes.below(4));
        if (std::isnan(query.budget)) query.budget = kInfinity;
        if (bytes.one_in(4)) query.volume *= 0.5 * static_cast<double>(1 + bytes.below(4));
        if (!(query.volume > 0) || std::isinf(query.volume)) query.volume = 1;
        if (!wanted.mask.empty()) query.mask = wanted.mask.data(), query.masked = rows.size();
        if (within) query.limits = &limited[which].limits;
        const int drawn = static_cast<int>(bytes.below(kBuiltins));
        const int criterion = cheapest ? criterion_index("cost") : drawn;
        const ShapeKind shape =
            bytes.below(2) || cheapest ? ShapeKind::ragged : ShapeKind::square;
        const Answer answer = find_window(pool, query, criterion, shape);
        ++tally.searches;
        Booking found{answer.found.start, {}};
        if (answer.status == Status::ok)
          found.parts.assign(answer.parts, answer.parts + query.n);

        std::sort(model.free.begin(), model.free.end(), [](const Piece& a, const Piece& b) {
          return std::tie(a.start, a.node) < std::tie(b.start, b.node);
        });
        std::vector<Row> now;
        FilteredQuery plain{query, {}};
        plain.query.mask = nullptr;
        plain.query.earliest = std::max(query.earliest, model.now);
        std::vector<std::size_t> pieces;
        for (const Piece& piece : model.free) {
          pieces.push_back(piece.row);
          now.push_back(rows[piece.row]);
          now.back().start = piece.start, now.back().end = piece.end;
          if (query.mask) plain.mask.push_back(wanted.mask[piece.row]);
        }
        Limited of_now;
        limits_of_pieces(limited[which], now, pieces, of_now);
        if (within) plain.query.limits = &of_now.limits;
        PreparedSlots fresh(options);
        if (prepare_slots(fresh, view_of(now), true, shape, 0).status != Status::ok)
          fail("the list is no slots", rows, now);
        Query again = plain.query;
        if (query.mask) again.mask = plain.mask.data();
        const Answer other = find_window(fresh, again, criterion, shape);
        if (answer.status == Status::volume_too_small || other.status == Status::volume_too_small)
          return check_refusal(now, plain), 0;
        if (answer.status != other.status) {
          std::fprintf(stderr, "criterion %d, shape %d\n", criterion, static_cast<int>(shape));
          fail(other.status == Status::ok ? "a window is missed" : "a window is invented", rows,
               now, plain, of_now);
        }
        if (!answer.proven || !other.proven) fail("not proven", rows, now, plain, of_now);
        if (within && !large) {
          const bool enough = query.n <= static_cast<std::int64_t>(fresh.nodes.size());
          const BestWithin best(now, plain, shape, of_now, enough);
          if (best.any() != (other.status == Status::ok))
            fail(best.any() ? "a window is missed" : "a window is invented", now, plain, of_now);
          if (best.any() &&
              !same(seen_of(other.found, other.parts, query.n), best.window(criterion)))
            fail("not the best window", now, plain, of_now, best.window(criterion));
        }
        if (answer.status != Status::ok) break;
        ++tally.found;
        Seen mine = seen_of(answer.found, found.parts.data(), query.n);
        Seen theirs = seen_of(other.found, other.parts, query.n);
        Rows origins;
        for (const auto row : theirs.rows)
          origins.push_back(static_cast<std::uint32_t>(model.free[row].row));
        theirs.rows = origins;
        if (!same(mine, theirs)) {
          std::fprintf(stderr, "criterion %d, shape %d\n", criterion, static_cast<int>(shape));
          fail("another window than in a new pool", rows, now, plain, of_now, mine, theirs);
        }
        if (bytes.below(4)) {
          if (book(pool, found.start, found.parts.data(), found.parts.size(), bad) !=
              Status::ok)
            fail("what was found cannot be booked", rows, now, plain, mine);
          if (!model.book(found)) fail("booked, but not free", rows, now, plain, mine);
          bookings.push_back(found);
        }
      }
    }
    PoolState state;
    if (state_of(pool, state) != Status::ok) fail("no state", rows);
    std::vector<Piece> booked = model.booked;
    std::erase_if(booked, [&](const Piece& piece) { return piece.end <= model.now; });
    if (!agree(model.free, state.free, state.free_nodes)) fail("other free time", rows);
    if (!agree(booked, state.booked, state.booked_nodes)) fail("other booked time", rows);
  }
  return 0;
}

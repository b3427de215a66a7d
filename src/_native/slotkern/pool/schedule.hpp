// The scheduling loop: finds and books a window for each request of a stream, in order. And the
// functions of a SlotPool that return a Status and never throw, for bindings.
//
// Cost of a request: one search on the changed pool and n cuts (pool/pool.hpp). Only the results
// are allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/pool/pool.hpp"
#include "slotkern/window/together.hpp"

namespace slotkern {

inline constexpr std::size_t kManyRequests = 16;  // from here on a call can be interrupted

namespace detail {

// True if a search ended without a window and without an error.
inline bool found_nothing(Status status) {
  return status == Status::none || status == Status::undecided ||
         status == Status::volume_too_small;
}

// Returns the reason for a search that returned `status` instead of a window. `nodes`: number of
// nodes that are fast enough, counted up to n. find(query) returns the status of a search by the
// criterion that is cheapest to search.
template <class Find>
Reason rejection_reason(Status status, std::int64_t nodes, const Query& query, Find find) {
  if (status == Status::volume_too_small) return Reason::volume;
  if (status == Status::undecided) return Reason::undecided;
  if (nodes < query.n) return Reason::nodes;
  Query freer = query;
  if (query.limits) {
    freer.limits = nullptr;
    if (find(freer) == Status::ok) return Reason::limits;
  }
  if (query.groups) {
    freer.groups = nullptr;
    if (find(freer) == Status::ok) return Reason::groups;
  }
  if (query.budget == kInfinity) return Reason::time;
  freer.budget = kInfinity;
  return find(freer) == Status::ok ? Reason::budget : Reason::time;
}

inline Reason rejection_reason(Status status, SlotPool& pool, const PreparedSlots& prepared,
                               const Query& query, ShapeKind shape, Workspace& work) {
  std::int64_t fast = 0;
  for (std::size_t k = 0; k < prepared.nodes.size() && fast < query.n; ++k) {
    if (prepared.nodes[k].performance < query.min_performance) break;
    fast += !pool.removed()[k];
  }
  return rejection_reason(status, fast, query, [&](const Query& freer) {
    constexpr int earliest = 0;  // index of the criterion that is cheapest to search
    Found found;
    return pool.find(freer, earliest, shape, work, found);
  });
}

// Finds and books a window for one request, and appends its row and its Reason. Returns the status
// of an error, without a change; `reject(status)` returns the reason of a search without a window.
template <class Find, class Book, class Reject>
Status schedule_next(const Query& query, Workspace& work, WindowTable& out,
                     std::vector<std::uint8_t>& reasons, Find find, Book book, Reject reject) {
  Found found;
  Reason reason = Reason::booked;
  const Status status = find(found);
  if (status == Status::ok) {
    // Added first, so that `out` contains every booked window even if booking fails later.
    out.add(found, work.parts.data(), work.parts.size());
    const Status booked = guarded([&] {
      if (query.limits && !work.proof.proven) out.set_bound(work.proof.bound, false);
      return book(found.start);
    });
    if (booked != Status::ok) {
      out.drop_last();
      return booked == Status::not_free ? Status::internal : booked;
    }
  } else if (!found_nothing(status)) {
    return status;
  } else {
    reason = reject(status);
  }
  if (reason != Reason::booked) out.add_none();
  reasons.push_back(static_cast<std::uint8_t>(reason));
  return Status::ok;
}

// Reserves memory for the windows of the remaining requests, up to 65536 parts.
inline void reserve_rest(const std::vector<Query>& queries, std::size_t done, WindowTable& out) {
  constexpr std::int64_t max_parts = 1 << 16;
  std::int64_t parts = 0;
  for (std::size_t i = done; i < queries.size() && parts < max_parts; ++i)
    parts += std::min(queries[i].n, max_parts);
  const auto reserved_parts = static_cast<std::size_t>(std::min(parts, max_parts));
  out.reserve(queries.size(), out.parts.size() + reserved_parts);
}

}  // namespace detail

// As find() of window/find.hpp, on a changing pool.
inline Answer find_window(SlotPool& pool, const Query& query, int criterion,
                          ShapeKind shape) noexcept {
  return run_search(query, [&](Workspace& work, Found& found) {
    return pool.find(query, criterion, shape, work, found);
  });
}

// As find_together() of window/together.hpp, on a changing pool.
inline Status find_together(SlotPool& pool, std::vector<Query>& roles, ShapeKind shape,
                            WindowTable& out) noexcept {
  constexpr int start = 1;  // index of the criterion
  return find_together(
      roles, [&](const Query& role) { return find_window(pool, role, start, shape); }, out);
}

// Functions of a SlotPool that never throw. `failed_part`: index of the part that was refused.

inline Status open_pool(SlotPool& pool, PreparedSlots& prepared, const std::vector<double>& prices,
                        const PoolState* state) noexcept {
  return guarded([&] { return pool.open(prepared, prices, state), Status::ok; });
}

inline Status extend_pool(SlotPool& pool, PreparedSlots& fresh, const std::vector<double>& prices,
                          const PoolState& state) noexcept {
  return guarded([&] { return pool.extend(fresh, prices, state), Status::ok; });
}

// Makes `pool` a copy of `other`, and `prepared` a copy of its slots `from`.
inline Status copy_pool(SlotPool& pool, PreparedSlots& prepared, const SlotPool& other,
                        const PreparedSlots& from) noexcept {
  return guarded([&] { return prepared = from, pool.copy(other, prepared), Status::ok; });
}

inline Status state_of(const SlotPool& pool, PoolState& state) noexcept {
  return guarded([&] { return state = pool.state(), Status::ok; });
}

inline Status free_between(const SlotPool& pool, double begin, double end,
                           PoolState& state) noexcept {
  return guarded([&] { return state = pool.free_between(begin, end), Status::ok; });
}

// Writes the nodes whose free time has changed after `version`, and their free spans. If `known`
// is false, these are all free spans, and later changes will be known.
inline Status free_since(SlotPool& pool, std::size_t version, bool& known,
                         std::vector<std::int32_t>& nodes, PoolState& state) noexcept {
  return guarded([&] {
    known = pool.changed_since(version, nodes);
    state = known ? pool.free_of(nodes) : pool.state();
    return Status::ok;
  });
}

// Replaces the free spans of `nodes`, ascending, by `spans`, sorted by (node, start), in a pool in
// which nothing is booked or closed. If memory runs out, some nodes may have been replaced.
inline Status replace_free(SlotPool& pool, const std::vector<std::int32_t>& nodes,
                           const std::vector<std::int32_t>& span_nodes,
                           const std::vector<Span>& spans) noexcept {
  return guarded([&] {
    std::vector<Span> fresh;
    std::size_t next = 0;
    const auto same = [](const Span& a, const Span& b) {
      return a.start == b.start && a.end == b.end && a.origin_row == b.origin_row;
    };
    for (const std::int32_t node : nodes) {
      std::size_t last = next;
      while (last < span_nodes.size() && span_nodes[last] == node) ++last;
      const std::int32_t place = pool.place_of(node);
      if (place < 0) throw std::logic_error("free time of an unknown node");
      const std::vector<Span>& old = pool.free_at(static_cast<std::size_t>(place));
      const std::size_t count = last - next, least = std::min(count, old.size());
      std::size_t first = 0, equal_at_end = 0;
      while (first < least && same(old[first], spans[next + first])) ++first;
      while (equal_at_end < least - first &&
             same(old[old.size() - 1 - equal_at_end], spans[last - 1 - equal_at_end]))
        ++equal_at_end;
      const auto begin = spans.begin() + static_cast<std::ptrdiff_t>(next);
      fresh.assign(begin + static_cast<std::ptrdiff_t>(first),
                   begin + static_cast<std::ptrdiff_t>(count - equal_at_end));
      if (first < old.size() - equal_at_end || !fresh.empty())
        pool.replace(static_cast<std::size_t>(place), first, old.size() - equal_at_end, fresh);
      next = last;
    }
    pool.settle();
    return Status::ok;
  });
}

// Makes the prepared slots equal to the free slots from now() on, for readers other than
// SlotPool::find() that search for this volume or more.
inline Status trim_rows_for(SlotPool& pool, double volume) noexcept {
  return guarded([&] {
    pool.trim_before_now();
    pool.ensure_rows_for(volume);  // rebuilds rows invalidated by trim_before_now()
    pool.renew_prices(volume);
    return Status::ok;
  });
}

inline Status book(SlotPool& pool, double start, const Part* parts, std::size_t n,
                   std::size_t& failed_part) noexcept {
  return guarded([&] { return pool.book(start, parts, n, failed_part); });
}

inline Status release(SlotPool& pool, double start, const Part* parts, std::size_t n,
                      std::size_t& failed_part) noexcept {
  return guarded([&] { return pool.release(start, parts, n, failed_part); });
}

struct WindowParts {
  double start;
  const Part* parts;
  std::size_t n;
};

// Books all windows or none; `failed_window` is the window that was refused. An interrupted call
// takes as long again to release what it had booked.
inline Status book_all(SlotPool& pool, const std::vector<WindowParts>& windows,
                       std::size_t& failed_window, std::size_t& failed_part) noexcept {
  if (windows.size() > kManyRequests) enable_interrupts();
  for (failed_window = 0; failed_window < windows.size(); ++failed_window) {
    const WindowParts& w = windows[failed_window];
    const Status status =
        guarded([&] { return poll(), pool.book(w.start, w.parts, w.n, failed_part); });
    if (status == Status::ok) continue;
    std::size_t other = 0;
    for (std::size_t k = failed_window; k-- > 0;)
      release(pool, windows[k].start, windows[k].parts, windows[k].n, other);
    return status;
  }
  return Status::ok;
}

// Returns ok if each window can be released; changes nothing.
inline Status all_booked(SlotPool& pool, const std::vector<WindowParts>& windows,
                         std::size_t& failed_window, std::size_t& failed_part) noexcept {
  if (windows.size() > kManyRequests) enable_interrupts();
  return guarded([&] {
    for (failed_window = 0; failed_window < windows.size(); ++failed_window) {
      poll();
      const WindowParts& w = windows[failed_window];
      const Status status = pool.locate_booked(w.start, w.parts, w.n, failed_part);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  });
}

inline Status advance(SlotPool& pool, double now) noexcept {
  return guarded([&] { return pool.advance(now); });
}

// See SlotPool::close.
inline Status close_nodes(SlotPool& pool, const std::vector<std::int32_t>& nodes,
                          const std::vector<std::int32_t>& span_nodes,
                          const std::vector<Span>& times) noexcept {
  return guarded([&] { return pool.close(nodes, span_nodes, times), Status::ok; });
}

// Returns none if there is no such node.
inline Status remove_node(SlotPool& pool, std::int32_t node) noexcept {
  return guarded([&] { return pool.remove(node) ? Status::ok : Status::none; });
}

// Writes the Reason why a request has no window now, or `booked` if it has one. Books nothing.
inline Status find_reason(SlotPool& pool, const PreparedSlots& prepared, const Query& query,
                          int criterion, ShapeKind shape, std::uint8_t& reason) noexcept {
  return guarded([&] {
    Workspace& work = workspace();
    Found found;
    const Status status = pool.find(query, criterion, shape, work, found);
    reason = static_cast<std::uint8_t>(Reason::booked);
    if (status == Status::ok) return status;
    if (!detail::found_nothing(status)) return status;
    reason = static_cast<std::uint8_t>(
        detail::rejection_reason(status, pool, prepared, query, shape, work));
    return Status::ok;
  });
}

// Appends one row and one Reason for each request. After an interruption, call it again with the
// same arguments: it continues after the rows that are there.
inline Status schedule(SlotPool& pool, const PreparedSlots& prepared,
                       const std::vector<Query>& queries, int criterion, ShapeKind shape,
                       WindowTable& out, std::vector<std::uint8_t>& reasons) noexcept {
  return guarded([&] {
    Workspace& work = workspace();
    if (queries.size() > kManyRequests) enable_interrupts();
    reasons.reserve(queries.size());
    detail::reserve_rest(queries, reasons.size(), out);
    while (reasons.size() < queries.size()) {
      poll();
      const Query& query = queries[reasons.size()];
      const Status status = detail::schedule_next(
          query, work, out, reasons,
          [&](Found& found) { return pool.find(query, criterion, shape, work, found); },
          [&](double start) {
            std::size_t failed_part = 0;
            return pool.book(start, work.parts.data(), work.parts.size(), failed_part);
          },
          [&](Status failure) {
            return detail::rejection_reason(failure, pool, prepared, query, shape, work);
          });
      if (status != Status::ok) return status;
    }
    return Status::ok;
  });
}

}  // namespace slotkern

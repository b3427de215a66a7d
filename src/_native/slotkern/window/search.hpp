// The one search by a built-in criterion that all callers ask: whether sums over the parts are
// limited is decided here, and not looked at again where they are not.
#pragma once

#include <cmath>

#include "slotkern/window/within.hpp"

namespace slotkern {

namespace detail {

inline Status search_within(const PreparedSlots& prepared, const Query& query, int criterion,
                            ShapeKind shape, double least, Workspace& work, Found& found) {
  const bool square = shape == ShapeKind::square;
  work.proof = {};
  if (!search_unlimited(prepared, query, criterion, shape, least, work, found))
    return Status::none;
  if (keeps_limits(*query.limits, work.parts, square, found.runtime, within_scratch()))
    return Status::ok;
  return with_criterion(criterion, [&](auto c) {
    using Criterion = decltype(c);
    WithinSearch<Criterion> search(prepared, query, work, found);
    const bool any = square            ? search.square()
                     : query.charged() ? search.template ragged<Charged>()
                                       : search.template ragged<Ragged>();
    if (search.failed != Proof::kNone) {
      work.proof.failed = prepared.origin(search.failed);
      return Status::limit_failed;
    }
    if (!any) return Status::none;
    found.value = Criterion::value(found.start, found.runtime, found.cost);
    work.proof.proven = search.proven || !(search.bound < found.value);
    work.proof.bound = search.bound;
    return Status::ok;
  });
}

}  // namespace detail

// ok with the window in `found` and work.parts, or none; the volume has been checked, and a
// most runtime is a least performance. `least`: no window has a lower value.
inline Status search_checked(const PreparedSlots& prepared, const Query& query, int criterion,
                             ShapeKind shape, Workspace& work, Found& found,
                             double least = -kInfinity) {
  if (query.n > static_cast<std::int64_t>(prepared.nodes.size())) return Status::none;
  if (prepared.heavy(query, shape)) expect_long();
  if (query.limits) [[unlikely]]
    return detail::search_within(prepared, query, criterion, shape, least, work, found);
  return detail::search_unlimited(prepared, query, criterion, shape, least, work, found)
             ? Status::ok
             : Status::none;
}

// The same, or volume_too_small.
inline Status search(const PreparedSlots& prepared, const Query& asked, int criterion,
                     ShapeKind shape, Workspace& work, Found& found) {
  const Query query = prepared.as_searched(asked);
  if (criterion < 0 || criterion >= kBuiltins) return Status::request_not_valid;
  const Status status = prepared.check(query);
  if (status != Status::ok) return status;
  return search_checked(prepared, query, criterion, shape, work, found);
}

}  // namespace slotkern

// Finds the best window by a built-in criterion. Every caller uses these functions.
//
// Layers: search() normalizes and checks the request; search_validated() rejects n > nodes and
// dispatches on limits and group rules once, so that a request without them does not pay for them;
// search_unconstrained(), search_constrained() and search_groups() dispatch on criterion and shape.
//
// The four functions in namespace detail instantiate all sweeps, which is most of the compile time
// of these headers. They are inline by default. A build of several libraries compiles them once: it
// defines SLOTKERN_SEARCH_DECLARED in all translation units but one
// (src/_native/compiled/search.cpp), which defines SLOTKERN_SEARCH_LINKAGE as nothing.
#pragma once

#include <cmath>

#include "slotkern/window/changing_prices.hpp"
#include "slotkern/window/constrained.hpp"
#include "slotkern/window/groups.hpp"

#ifndef SLOTKERN_SEARCH_LINKAGE
#ifdef SLOTKERN_SEARCH_DECLARED
#define SLOTKERN_SEARCH_LINKAGE
#else
#define SLOTKERN_SEARCH_LINKAGE inline
#endif
#endif

namespace slotkern {

namespace detail {

// Searches without sum limits. `least`: lower bound on the value of any window. Returns true with
// the window in `found` and work.parts.
SLOTKERN_SEARCH_LINKAGE bool search_unconstrained(const PreparedSlots& prepared, const Query& query,
                                              int criterion, ShapeKind shape, double least,
                                              Workspace& work, Found& found);

// Finds the cheapest ragged window, starting from `incumbent` (possibly empty) as the best so far.
SLOTKERN_SEARCH_LINKAGE bool improve_cheapest(const PreparedSlots& prepared, const Query& query,
                                       double least, const Best& incumbent, Workspace& work,
                                       Found& found);

// Searches under sum limits; the proof is in work.proof.
SLOTKERN_SEARCH_LINKAGE Status search_constrained(const PreparedSlots& prepared, const Query& query,
                                             int criterion, ShapeKind shape, double least,
                                             Workspace& work, Found& found);

// Searches under group rules. Returns ok, none, or groups_not_supported.
SLOTKERN_SEARCH_LINKAGE Status search_groups(const PreparedSlots& prepared, const Query& query,
                                             int criterion, ShapeKind shape, Workspace& work,
                                             Found& found);

#ifndef SLOTKERN_SEARCH_DECLARED

SLOTKERN_SEARCH_LINKAGE bool search_unconstrained(const PreparedSlots& prepared, const Query& query,
                                              int criterion, ShapeKind shape, double least,
                                              Workspace& work, Found& found) {
  return with_criterion(criterion, [&](auto c) {
    using Criterion = decltype(c);
    const bool any =
        shape == ShapeKind::square ? find_best_square<Criterion>(prepared, query, work, found)
        : query.has_overhead()
            ? find_best_ragged<Criterion, RaggedWithOverhead>(prepared, query, least, work, found)
            : find_best_ragged<Criterion, Ragged>(prepared, query, least, work, found);
    if (any) found.value = Criterion::value(found.start, found.runtime, found.cost);
    return any;
  });
}

SLOTKERN_SEARCH_LINKAGE bool improve_cheapest(const PreparedSlots& prepared, const Query& query,
                                       double least, const Best& incumbent, Workspace& work,
                                       Found& found) {
  const bool any =
      find_best_ragged<Cost, Ragged>(prepared, query, least, work, found, incumbent);
  if (any) found.value = Cost::value(found.start, found.runtime, found.cost);
  return any;
}

SLOTKERN_SEARCH_LINKAGE Status search_constrained(const PreparedSlots& prepared, const Query& query,
                                             int criterion, ShapeKind shape, double least,
                                             Workspace& work, Found& found) {
  const bool square = shape == ShapeKind::square;
  work.proof = {};
  if (!search_unconstrained(prepared, query, criterion, shape, least, work, found))
    return Status::none;
  if (satisfies_limits(*query.limits, work.parts, square, found.runtime, constrained_scratch()))
    return Status::ok;
  return with_criterion(criterion, [&](auto c) {
    using Criterion = decltype(c);
    ConstrainedSearch<Criterion> search(prepared, query, work, found);
    const bool any = square ? search.square() : search.template ragged<AnyRagged>();
    if (search.failed != Proof::kNone) {
      work.proof.failed = prepared.origin(search.failed);
      return Status::limit_failed;
    }
    if (any) found.value = Criterion::value(found.start, found.runtime, found.cost);
    work.proof.proven = search.proven(any, found.value);
    work.proof.bound = any ? std::min(search.bound(), found.value) : search.bound();
    work.proof.work = search.work();
    if (!any) return work.proof.proven ? Status::none : Status::undecided;
    return Status::ok;
  });
}

SLOTKERN_SEARCH_LINKAGE Status search_groups(const PreparedSlots& prepared, const Query& query,
                                             int criterion, ShapeKind shape, Workspace& work,
                                             Found& found) {
  if (query.limits || !GroupChoice::supports(*query.groups, static_cast<std::size_t>(query.n)))
    return Status::groups_not_supported;
  return with_criterion(criterion, [&](auto c) {
    using Criterion = decltype(c);
    GroupSearch<Criterion> search(prepared, query, work, found);
    const bool any =
        shape == ShapeKind::square ? search.square() : search.template ragged<AnyRagged>();
    if (!any) return Status::none;
    found.value = Criterion::value(found.start, found.runtime, found.cost);
    return Status::ok;
  });
}

#endif  // SLOTKERN_SEARCH_DECLARED

}  // namespace detail

// Returns ok with the window in `found` and work.parts, or none; under limits on sums also
// undecided or limit_failed; under group rules also groups_not_supported. The caller has checked
// the volume and converted a maximum runtime to a minimum performance. `least`: lower bound on the value.
inline Status search_validated(const PreparedSlots& prepared, const Query& query, int criterion,
                             ShapeKind shape, Workspace& work, Found& found,
                             double least = -kInfinity) {
  if (query.n > static_cast<std::int64_t>(prepared.nodes.size())) return Status::none;
  if (query.groups && prepared.tariffs) [[unlikely]]
    return Status::groups_not_supported;
  if (prepared.tariffs) [[unlikely]]
    return prepared.tariffs->find(prepared, query, criterion, shape, work.parts, found);
  if (prepared.is_long_running(query, shape)) enable_interrupts();
  if (query.groups) [[unlikely]]
    return detail::search_groups(prepared, query, criterion, shape, work, found);
  if (query.limits) [[unlikely]]
    return detail::search_constrained(prepared, query, criterion, shape, least, work, found);
  return detail::search_unconstrained(prepared, query, criterion, shape, least, work, found)
             ? Status::ok
             : Status::none;
}

// Normalizes and checks the request, then searches; can also return volume_too_small.
inline Status search(const PreparedSlots& prepared, const Query& given, int criterion,
                     ShapeKind shape, Workspace& work, Found& found) {
  const Query query = prepared.normalized_for_search(given);
  if (criterion < 0 || criterion >= kBuiltins) return Status::request_not_valid;
  const Status status = prepared.check(query);
  if (status != Status::ok) return status;
  return search_validated(prepared, query, criterion, shape, work, found);
}

}  // namespace slotkern

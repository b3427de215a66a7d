"""Binding of searches: the best window of each request, and all alternatives of one."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status, status_error, InterruptScope, attempt
from slotkern._kernels.caps cimport (
    CapacityUse, Caps, TimeSpan, fill_uses, have_enough, span_with_enough, uncounted)
from slotkern._kernels.headers cimport (
    Answer, Query, ShapeKind, criterion_doc, criterion_name, kBuiltins, kLimitsWork,
    CPreparedSlots,
)
from slotkern._kernels.request cimport (
    Request, copy_request, is_booking_invariant, parse_shape, search_error)
from slotkern._kernels.slots cimport (
    PreparedSlots, as_prepared, context_of, prepare_with_context, resolve_times)
from slotkern._kernels.windows cimport (
    Window, WindowTable, window_from_answer, CWindowTable, table_from_windows,
)

from slotkern._kernels.windows import ALL_STARTS
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import hide_unknown, integer, unknown_keyword, visible
from slotkern.foundation.errors import NoWindowError, UndecidedError

cnp.import_array()

CRITERIA = {
    (<bytes>criterion_name(i)).decode(): (<bytes>criterion_doc(i)).decode()
    for i in range(kBuiltins)
}
cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}


def find_window(slots, request not None, criterion="finish", *, str shape="square",
                str method="exact", str placement="slot-start", str span="window", gap=0.0,
                max_work=None, seed=0, bint required=False, **unknown):
    """Return the best window for a request, or None if no window exists.

    Parameters
    ----------
    slots : structured array, SlotPool or Environment
        Free slots, sorted by (start, node). An array is validated and prepared in every
        call, a pool only once. An Environment means its ``slots``.
    request : Request, AnyOf, Together or Chain
        The requirements of the job. For a job of several parts the result is a `Plan`.
    criterion : str, array, or other
        ``"first"`` (AMP and FirstFit), ``"start"``, ``"finish"``, ``"runtime"`` or
        ``"cost"``; a sum of values: ``"processor_time"``, ``"dependable"``,
        ``"coordinated"``, the name of a numeric field or a float64 array with one value a
        row (both maximized), ``minimize(...)`` of those or of a `profile`, or a function
        made by `criterion`.
    shape : {"square", "ragged"}
        square: all parts are as long as the slowest, T = volume / minimum performance.
        ragged: each part takes its own volume / performance.
    method : {"exact", "lite", "published", "published-lite"}
        exact: the optimum. lite: a heuristic for sums of values, which values the n cheapest
        slots of each step. published, published-lite: the papers' algorithms step by step
        (numba; slow).
    placement : {"slot-start", "any"}
        For sums of values. slot-start: windows start with a slot that passes the request's
        filters, even if this slot is too short for a part. any: at any time.
    span : {"window", "group"}
        For square windows by ``"dependable"``, ``"coordinated"`` and criteria that use the
        start. window: T is volume / minimum performance of the window. group: T may also be
        that of a slower slot which could start at the same time, as in the papers.
    gap : float
        For sums of values: the accepted relative gap between the value and the optimum.
    max_work : int, optional
        For sums of values and for requests with limits: maximum units of counted work
        (default 50,000,000, a few tenths of a second to a second). When it is spent, the
        incumbent is returned with `Window.proven` False and a valid `Window.bound`.
    seed : int
        Seed of published methods that draw random windows.
    required : bool
        True: raise NoWindowError instead of returning None.

    Returns
    -------
    Window, Plan or None
        None if no window exists; `explain` reports the reason. Method exact returns the
        window of the best value; ties are broken by the earliest start, then the lowest
        cost, then the smallest node ids. If costs are equal only after rounding, the n
        cheapest slots are selected. Among windows with equal sums of values the choice is
        unspecified but deterministic.

    Raises
    ------
    ValueError, TypeError
        For an invalid slot or argument; the message contains the row, field and value.
    UndecidedError
        If a request with limits has spent `max_work` before any window was found.
    NoWindowError
        With `required`, if no window exists; the message is that of `explain`.

    Notes
    -----
    A part whose length or cost overflows a float64 fits in no slot.

    *Tariffs.* If prices change while a part runs (the column ``tariff`` of the slots, and
    `Tariffs`), a part costs its price times the integral of the factor over its own time.
    ``"cost"`` is the least cost over all starts, not only those of slots; of costs that agree to
    28 bits the earliest start stands. The other criteria find the earliest start, finish or the
    shortest runtime within the budget: one tick of the clock earlier the window is over it.
    ``minimize(profile(...))`` minimizes a second function of time. Limits on sums, `max_price`,
    other sums of values and other methods are refused.

    Expected time O(m / 64 + candidates * n) for m prepared slots; scratch memory about 150
    bytes for each node and 400 for each part. AEP: Toporkov et al., "Slot Selection and
    Co-allocation Algorithms for Economic Scheduling in Distributed Computing", section 2; square:
    "Optimization of Resources Selection for Jobs Scheduling in Heterogeneous Distributed
    Computing Environments", section 3.2.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=[0, 0, 4], end=[10, 10, 10],
    ...                       performance=[1, 2, 4], price=[1, 3, 5])
    >>> sk.find_window(slots, sk.Request(2, 9), "finish")
    Window(square finish: start=4, finish=8.5, runtime=4.5, cost=36, nodes=[1, 2])
    """
    if unknown:
        raise unknown_keyword("find_window", next(iter(unknown)), KEYWORDS)
    cdef Request given
    if not isinstance(request, Request):
        return adapter("find_compound")(
            slots, request, criterion, shape=shape, method=method, placement=placement,
            span=span, gap=gap, max_work=max_work, seed=seed, required=required)
    given = resolve_times(slots, <Request>request, None, isinstance(slots, PreparedSlots))
    cdef object options = None
    if (method != "exact" or placement != "slot-start" or span != "window" or gap != 0.0
            or max_work is not None or type(seed) is not int or seed < 0):
        options = adapter("SearchOptions")(
            shape, method, placement, span, gap, max_work, seed)
    cdef Window window
    if counts_uses(slots, given):
        window = find_within_capacities(
            slots, (<PreparedSlots>slots).capacities, given, criterion, shape, options)
    else:
        window = find_by_options(slots, given, criterion, shape, options)
    if window is not None:
        window.name = given.name
        if window.special is None:
            window.special = given.special
        window.context = context_of(slots)
    elif required:
        raise NoWindowError(adapter("explain")(slots, request, shape=shape), method)
    return window


cdef tuple KEYWORDS = hide_unknown(find_window)


cdef bint counts_uses(object slots, Request request) except -1:
    """Return True if a pool counts what the request uses, or its account."""
    if not isinstance(slots, PreparedSlots):
        return False
    if (<PreparedSlots>slots).capacities is not None:
        return True
    return (request.special is not None and (<PreparedSlots>slots).is_pool
            and ("uses" in request.special or "account" in request.special))


cdef Window find_by_options(slots, Request request, criterion, str shape, options):
    """Search with the `SearchOptions`, or with the defaults but for the shape if None."""
    cdef object index = INDEX.get(criterion) if type(criterion) is str else None
    cdef PreparedSlots pool
    cdef bint changed = True
    cdef Window window
    if isinstance(slots, PreparedSlots):
        pool = <PreparedSlots>slots
        changed = pool.changed
        if (index is None or (options is not None and options.method != "exact")
                or (changed and not is_booking_invariant(request))):
            pool = pool.snapshot()
        if pool is not slots:
            return find_in_snapshot(pool, request, criterion, shape, options)
    if index is None or options is not None:
        if options is None:
            options = adapter("SearchOptions")(shape)
        return adapter("find_delegated")(slots, request, criterion, options)
    window = search_builtin(slots, request, <str>criterion, index, shape)
    # The pool changed before it was locked: search a snapshot.
    if not changed and pool.changed and not is_booking_invariant(request):
        return find_by_options(slots, request, criterion, shape, options)
    return window


cpdef Window find_builtin(slots, Request request, str criterion, str shape, max_work=None):
    """Return the best window by one of CRITERIA, or None; the method is exact."""
    return search_builtin(slots, request, criterion, INDEX[criterion], shape, max_work)


cdef Window search_builtin(slots, Request request, str criterion, int which, str shape,
                           max_work=None):
    cdef ShapeKind form = parse_shape(shape)
    cdef PreparedSlots pool = as_prepared(slots, False, form, request.query.n)
    request = pool.compile_request(request)
    return search_query(pool, request.query, criterion, which, form, shape, max_work)


cdef Window search_query(PreparedSlots pool, const Query& query, str criterion, int which,
                         ShapeKind form, str shape, max_work):
    """Return the best window of a compiled request, or None."""
    if query.limits != NULL:
        return search_builtin_constrained(pool, query, criterion, which, shape, max_work)
    cdef Answer answer = pool.search(query, which, form)
    if answer.status == Status.ok:
        return window_from_answer(answer, query.n, criterion, shape)
    if answer.status == Status.none:
        return None
    raise search_error(answer.status, query)


cdef Window search_builtin_constrained(PreparedSlots pool, Query query, str criterion, int which,
                                       str shape, max_work):
    """Search under limits on sums; the window's `effort` has the counted work."""
    if max_work is not None:
        query.max_work = min(max_work, 2**62)
    cdef Answer answer = pool.search(query, which, parse_shape(shape))
    cdef Window window
    if answer.status == Status.ok:
        window = window_from_answer(answer, query.n, criterion, shape)
        window.effort = {"work": answer.work}
        return window
    if answer.status == Status.none:
        return None
    if answer.status == Status.limit_failed:
        raise status_error(answer.status, "search", {
            "part": f"the slot of row {answer.failed}: {pool.slots[answer.failed]}"})
    raise search_error(answer.status, query)


cdef object find_in_snapshot(PreparedSlots snapshot, Request request, object criterion,
                             str shape, options):
    """Search a snapshot of a pool; return the window with rows of the pool's origin array."""
    cdef Window window = find_by_options(snapshot, request, criterion, shape, options)
    cdef Py_ssize_t i
    if window is not None and snapshot.origin is not None:
        for i in range(window.count):
            window.parts[i].row = snapshot.origin[window.parts[i].row]
        window.table = None
    return window


def find_once(PreparedSlots pool not None, Request request not None, criterion, *, str shape,
              str method):
    """Return `find_window` for callers that change the pool after each search.

    A search that needs a snapshot copies only the slots between the request's earliest start
    and its deadline, because a change invalidates the copy before it could be reused.
    """
    if (pool.capacities is not None
            or method == "exact" and type(criterion) is str and criterion in INDEX):
        return find_window(pool, request, criterion, shape=shape, method=method)
    return find_in_snapshot(pool.snapshot_for(request.query), request, criterion, shape,
                            adapter("SearchOptions")(shape, method))


def find_windows(slots, requests, criterion="finish", *, str shape="square",
                 str method="exact", threads=1, **options):
    """Return `find_window` of many requests over the same slots, in one call without the GIL.

    Parameters
    ----------
    slots, criterion, shape, method, **options
        As for `find_window`.
    requests : iterable of Request
    threads : int
        Number of threads that share the requests, >= 1. The result does not depend on it.

    Returns
    -------
    WindowTable
        A window, or None, for each request, in order.

    Raises
    ------
    ValueError, TypeError
        As `find_window`, for the first invalid request, or the first one that is undecided
        within `max_work` (`UndecidedError`, which contains its index and name).

    Notes
    -----
    Takes the time of `find_window` for each request. Threads share the requests if the
    criterion is built in and the method exact; otherwise searches run one after another.
    An array of m slots is prepared once in O(m log m). Searches for the cheapest ragged
    window reuse cost bounds of earlier ones; see `SlotPool`.
    """
    if "required" in options:
        raise TypeError("find_windows has no required=: requests without a window give None")
    cdef list asked = list(requests)
    cdef object context = context_of(slots)
    cdef Request each
    cdef Py_ssize_t i
    cdef bint counted = False
    for i in range(len(asked)):
        request = asked[i]
        if not isinstance(request, Request):
            raise TypeError(f"requests[{i}] must be a Request, got {type(request).__name__}")
        each = resolve_times(slots, request, i, True)
        counted = counted or counts_uses(slots, each)
        if each is not request:
            asked[i] = each
    cdef unsigned num_threads = min(integer("threads", threads, 1), 1024)
    if counted or criterion.__class__ is not str or criterion not in INDEX or method != "exact":
        if not isinstance(slots, PreparedSlots):
            slots = PreparedSlots(slots)  # validated and prepared once for all requests
        return with_names(WindowTable.of(each_window(
            slots, asked, criterion, dict(shape=shape, method=method, **options)),
            shape=shape), asked, context)
    if options:
        find_window(slots, Request(1, 1), criterion, shape=shape, **options)  # checks options
    cdef int64_t work = min(options.get("max_work") or kLimitsWork, 2**62)
    if options.get("max_work") == 0:
        work = 0
    cdef ShapeKind form = parse_shape(shape)
    cdef size_t max_nodes = 1
    for each in asked:
        max_nodes = max(max_nodes, <size_t>each.query.n)
    cdef PreparedSlots pool = as_prepared(slots, False, form, max_nodes)
    cdef bint changed = pool.changed
    if changed and not all([is_booking_invariant(each) for each in asked]):
        return with_names(WindowTable.of(
            each_window(slots, asked, criterion, dict(shape=shape, **options)),
            criterion=criterion, shape=shape), asked, context)
    cdef vector[Query] queries
    queries.reserve(len(asked))
    cdef list keep = []  # owners of memory that queries reference
    cdef Request compiled
    for i, each in enumerate(asked):
        compiled = pool.compile_listed_request(each, i)
        if compiled is not each:
            keep.append(compiled)
        queries.push_back(compiled.query)
        queries.back().max_work = work
    cdef WindowTable out = WindowTable.__new__(WindowTable)
    out.criterion, out.shape = criterion, shape
    cdef size_t failed_query = 0
    cdef Status status = pool.search_all(queries, INDEX[criterion], form, num_threads, out.windows,
                                         failed_query)
    if status == Status.undecided:
        raise undecided_at(failed_query, asked[failed_query],
                           search_error(status, queries[failed_query]))
    if status != Status.ok:
        if not asked:
            raise status_error(status, "search")
        raise search_error(status, queries[failed_query])
    if not changed and pool.changed and not all([is_booking_invariant(each) for each in asked]):
        return find_windows(slots, asked, criterion, shape=shape, threads=threads, **options)
    return with_names(out, asked, context)


cdef list each_window(slots, list requests, criterion, dict options):
    """Return find_window of each request; an UndecidedError contains the request's index."""
    cdef list windows = []
    for request in requests:
        try:
            windows.append(find_window(slots, request, criterion, **options))
        except UndecidedError as error:
            raise undecided_at(len(windows), request, error) from None
    return windows


cdef object undecided_at(Py_ssize_t i, Request request, error):
    name = "" if request.name is None else f" ({request.name!r})"
    return UndecidedError(f"requests[{i}]{name}: {error}")


cdef WindowTable with_names(WindowTable table, list requests, object context):
    """Set the names of the requests, also for requests without a window; return the table."""
    cdef Request request
    table.context, table.names = context, None
    for request in requests:
        if request.name:
            table.names = [other.name for other in requests]
            break
    return table


include "search_alternatives.pxi"
include "search_compound.pxi"
include "search_caps.pxi"

"""The door of searches: one window, or one for each of many requests."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from slotkern._base cimport Status, error_of
from slotkern._core cimport PreparedSlots, in_numbers, pool_of, terms_of
from slotkern._kernels cimport (
    Answer, Query, ShapeKind, criterion_doc, criterion_name, kBuiltins, kLimitsWork,
)
from slotkern._request cimport Request, lasting, search_error, shape_of
from slotkern._windows cimport Window, WindowTable, wrap

from slotkern.checks import hide_unknown, integer, unknown_keyword
from slotkern.errors import NoWindowError, UndecidedError

cnp.import_array()

CRITERIA = {
    (<bytes>criterion_name(i)).decode(): (<bytes>criterion_doc(i)).decode()
    for i in range(kBuiltins)
}
cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}


def find_window(slots, Request request not None, criterion="finish", *, str shape="square",
                str method="exact", str placement="slot-start", str span="window", gap=0.0,
                max_work=None, seed=0, bint required=False, **unknown):
    """The best window for a request, or None.

    Parameters
    ----------
    slots : structured array, SlotPool or Environment
        Free slots, sorted by (start, node). An array is checked and prepared at every
        call; a pool was once. Of an Environment, its ``slots``.
    request : Request
        What the job asks for.
    criterion : str, array, or other
        ``"first"`` (AMP and FirstFit), ``"start"``, ``"finish"``, ``"runtime"`` or
        ``"cost"``; a sum of values: ``"processor_time"``, ``"dependable"``,
        ``"coordinated"``, the name of a numeric field or a float64 array with one value a
        row (both maximized), ``minimize(...)`` of those, or a function made by
        `criterion`.
    shape : {"square", "ragged"}
        Whether all parts run as long as the slowest (T = volume / least performance), or
        each for its own volume / performance.
    method : {"exact", "lite", "published", "published-lite"}
        The kernels; the n cheapest of each step, valued; or the papers' algorithms step by
        step (numba; slow).
    placement : {"slot-start", "any"}
        For sums of values: whether windows start where a slot does that the request
        admits (long enough for a part or not), or anywhere.
    span : {"window", "group"}
        For ``"dependable"``, ``"coordinated"`` and criteria that use the start, square:
        whether T is volume / least performance of the window, or that of any slower slot
        which could start at the same time, as in the papers' procedure.
    gap : float
        For sums of values: the share of its own value by which a better one may be missed.
    max_work : int, optional
        For sums of values and for requests with limits: the most units of work, counted and not
        timed (50,000,000, a few tenths of a second to a second). When it is spent, the best window until
        then is returned with `Window.proven` false and a valid `Window.bound`.
    seed : int
        For published methods that draw random windows.
    required : bool
        Whether nothing found is an error.

    Returns
    -------
    Window or None
        None when nothing fits and none is required; `explain` says why. Exact windows are the best by value,
        then earliest start, then lowest cost, then smallest node ids; costs that only
        rounding makes equal are no tie, for there the n cheapest slots stand. Of windows
        with one sum of values any may be the answer, always the same one.

    Raises
    ------
    ValueError, TypeError
        Naming the row, field or argument and its value.
    UndecidedError
        If a request with limits has spent `max_work` before any window was found.
    NoWindowError
        With `required`, where there is none: its text is that of `explain`.

    Notes
    -----
    A part so long or so dear that it overflows a float64 fits nowhere.
    Expected O(m / 64 + candidates * n) time for m slots once prepared; scratch memory about
    150 bytes a node and 400 a part. AEP: Toporkov et al., "Slot Selection and Co-allocation
    Algorithms for Economic Scheduling in Distributed Computing", section 2; square:
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
    asked = request
    request = in_numbers(slots, request)
    cdef Window window = find_by_method(slots, request, criterion, shape, method, placement, span,
                                        gap, max_work, seed)
    if window is not None:
        window.name = request.name
        window.terms = terms_of(slots)
    elif required:
        from slotkern.explanation import explain
        raise NoWindowError(explain(slots, asked, shape=shape), method)
    return window


cdef tuple KEYWORDS = hide_unknown(find_window)


cdef Window find_by_method(slots, Request request, criterion, str shape, str method,
                           str placement, str span, gap, max_work, seed):
    cdef object index = INDEX.get(criterion) if type(criterion) is str else None
    cdef PreparedSlots pool
    cdef bint changed = True
    cdef Window window
    if isinstance(slots, PreparedSlots):
        pool = <PreparedSlots>slots
        changed = pool.changed
        if index is None or method != "exact" or (changed and not lasting(request)):
            pool = pool.settled()
        if pool is not slots:
            return find_settled(pool, request, criterion, dict(
                shape=shape, method=method, placement=placement, span=span, gap=gap,
                max_work=max_work, seed=seed))
    if (index is None or method != "exact" or placement != "slot-start" or span != "window"
            or gap != 0.0 or max_work is not None or type(seed) is not int or seed < 0):
        from slotkern.search import find_otherwise
        return find_otherwise(slots, request, criterion, shape, method, placement, span, gap,
                              max_work, seed)
    window = found(slots, request, <str>criterion, index, shape)
    if not changed and pool.changed and not lasting(request):  # changed before it was locked
        return find_by_method(slots, request, criterion, shape, method, placement, span, gap,
                              max_work, seed)
    return window


cpdef Window find_builtin(slots, Request request, str criterion, str shape, max_work=None):
    """The best window by one of CRITERIA, or None."""
    return found(slots, request, criterion, INDEX[criterion], shape, max_work)


cdef Window found(slots, Request request, str criterion, int which, str shape, max_work=None):
    cdef ShapeKind form = shape_of(shape)
    cdef PreparedSlots pool = pool_of(slots, False, form, request.query.n)
    request = pool.bound(request)
    if request.query.limits != NULL:
        return search_builtin_constrained(pool, request.query, criterion, which, shape, max_work)
    cdef Answer answer = pool.search(request.query, which, form)
    if answer.status == Status.ok:
        return wrap(answer, request.query.n, criterion, shape)
    if answer.status == Status.none:
        return None
    raise search_error(answer.status, request.query)


cdef Window search_builtin_constrained(PreparedSlots pool, Query query, str criterion, int which,
                                       str shape, max_work):
    """The same under limits on sums, with its work."""
    if max_work is not None:
        query.max_work = min(max_work, 2**62)
    cdef Answer answer = pool.search(query, which, shape_of(shape))
    cdef Window window
    if answer.status == Status.ok:
        window = wrap(answer, query.n, criterion, shape)
        window.effort = {"work": answer.work}
        return window
    if answer.status == Status.none:
        return None
    if answer.status == Status.limit_failed:
        raise error_of(answer.status, "search", {
            "part": f"the slot of row {answer.failed}: {pool.slots[answer.failed]}"})
    raise search_error(answer.status, query)


cdef object find_settled(PreparedSlots settled, Request request, object criterion, dict options):
    """find_window on what a pool was when it settled, with rows of its origin array."""
    cdef Window window = find_window(settled, request, criterion, **options)
    cdef Py_ssize_t i
    if window is not None and settled.origin is not None:
        for i in range(window.count):
            window.parts[i].row = settled.origin[window.parts[i].row]
        window.table = None
    return window


def find_once(PreparedSlots pool not None, Request request not None, criterion, *, str shape,
              str method):
    """`find_window` for who changes the pool after each search.

    Where a search runs on a copy of what is free, the copy is of no use to the next one: it
    holds only what lies between the request's earliest start and its deadline.
    """
    if method == "exact" and type(criterion) is str and criterion in INDEX:
        return find_window(pool, request, criterion, shape=shape)
    return find_settled(pool.settled_for(request.query), request, criterion,
                        dict(shape=shape, method=method))


def find_windows(slots, requests, criterion="finish", *, str shape="square",
                 str method="exact", threads=1, **options):
    """`find_window` for many requests over the same slots, in one call without the GIL.

    Parameters
    ----------
    slots, criterion, shape, method, **options
        As for `find_window`.
    requests : iterable of Request
    threads : int
        How many threads share the requests. The result does not depend on it.

    Returns
    -------
    WindowTable
        A window, or None, for each request, in order.

    Raises
    ------
    ValueError, TypeError
        As `find_window`, at the first request that is wrong, or undecided within `max_work`
        (`UndecidedError`, which names it); then nothing is returned.

    Notes
    -----
    The time of `find_window` for each request, shared by the threads when the criterion
    is a built-in one and the method exact; others run one after another. O(m log m) once
    for a raw array of m slots. Searches for the cheapest ragged window learn from those
    before, as `SlotPool` says.
    """
    if "required" in options:
        raise TypeError("find_windows has no required=: where nothing fits there is None")
    cdef list asked = list(requests)
    cdef object terms = terms_of(slots)
    cdef Request each
    cdef Py_ssize_t i
    for i in range(len(asked)):
        request = asked[i]
        if not isinstance(request, Request):
            raise TypeError(f"requests[{i}] must be a Request, got {type(request).__name__}")
        each = in_numbers(slots, request, i)
        if each is not request:
            asked[i] = each
    cdef unsigned crew = min(integer("threads", threads, 1), 1024)
    if criterion.__class__ is not str or criterion not in INDEX or method != "exact":
        if not isinstance(slots, PreparedSlots):
            slots = PreparedSlots(slots)  # keeps its clock; checked and prepared once for all
        return named(WindowTable.of(each_window(
            slots, asked, criterion, dict(shape=shape, method=method, **options)),
            shape=shape), asked, terms)
    if options:
        find_window(slots, Request(1, 1), criterion, shape=shape, **options)  # checks names
    cdef int64_t work = min(options.get("max_work") or kLimitsWork, 2**62)
    if options.get("max_work") == 0:
        work = 0
    cdef ShapeKind form = shape_of(shape)
    cdef size_t most = 1
    for each in asked:
        most = max(most, <size_t>each.query.n)
    cdef PreparedSlots pool = pool_of(slots, False, form, most)
    cdef bint changed = pool.changed
    if changed and not all([lasting(each) for each in asked]):
        return named(WindowTable.of(
            each_window(slots, asked, criterion, dict(shape=shape, **options)),
            criterion=criterion, shape=shape), asked, terms)
    cdef vector[Query] queries
    queries.reserve(len(asked))
    cdef list keep = []  # what queries point at, beside the requests
    cdef Request bound
    for i, each in enumerate(asked):
        bound = pool.bound_one(each, i)
        if bound is not each:
            keep.append(bound)
        queries.push_back(bound.query)
        queries.back().max_work = work
    cdef WindowTable out = WindowTable.__new__(WindowTable)
    out.criterion, out.shape = criterion, shape
    cdef size_t wrong = 0
    cdef Status status = pool.search_all(queries, INDEX[criterion], form, crew, out.windows, wrong)
    if status == Status.undecided:
        raise undecided_at(wrong, asked[wrong], search_error(status, queries[wrong]))
    if status != Status.ok:
        raise search_error(status, queries[wrong]) if asked else error_of(status, "search")
    if not changed and pool.changed and not all([lasting(each) for each in asked]):
        return find_windows(slots, asked, criterion, shape=shape, threads=threads, **options)
    return named(out, asked, terms)


cdef list each_window(slots, list requests, criterion, dict options):
    """find_window for each request; an undecided one is named by its place."""
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


cdef WindowTable named(WindowTable table, list requests, object terms):
    """The table with the names of its requests, also of those that nothing fits."""
    cdef Request request
    table.terms, table.names = terms, None
    for request in requests:
        if request.name:
            table.names = [other.name for other in requests]
            break
    return table

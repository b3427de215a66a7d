"""Binding of searches: the best window of each request, and all alternatives of one."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status, status_error, InterruptScope, attempt
from slotkern._kernels.headers cimport (
    Answer, Query, ShapeKind, criterion_doc, criterion_name, kBuiltins, kLimitsWork,
    CPreparedSlots,
)
from slotkern._kernels.request cimport Request, is_booking_invariant, search_error, parse_shape
from slotkern._kernels.slots cimport (
    PreparedSlots, as_prepared, context_of, prepare_with_context, resolve_times)
from slotkern._kernels.windows cimport (
    Window, WindowTable, window_from_answer, CWindowTable, table_from_windows,
)

from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import hide_unknown, integer, unknown_keyword, visible
from slotkern.foundation.errors import NoWindowError, UndecidedError

cnp.import_array()

CRITERIA = {
    (<bytes>criterion_name(i)).decode(): (<bytes>criterion_doc(i)).decode()
    for i in range(kBuiltins)
}
cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}


def find_window(slots, Request request not None, criterion="finish", *, str shape="square",
                str method="exact", str placement="slot-start", str span="window", gap=0.0,
                max_work=None, seed=0, bint required=False, **unknown):
    """Return the best window for a request, or None if no window exists.

    Parameters
    ----------
    slots : structured array, SlotPool or Environment
        Free slots, sorted by (start, node). An array is validated and prepared in every
        call, a pool only once. An Environment means its ``slots``.
    request : Request
        The requirements of the job.
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
    Window or None
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
    original = request
    request = resolve_times(slots, request)
    cdef object options = None
    if (method != "exact" or placement != "slot-start" or span != "window" or gap != 0.0
            or max_work is not None or type(seed) is not int or seed < 0):
        options = adapter("SearchOptions")(
            shape, method, placement, span, gap, max_work, seed)
    cdef Window window = find_by_options(slots, request, criterion, shape, options)
    if window is not None:
        window.name = request.name
        window.context = context_of(slots)
    elif required:
        raise NoWindowError(adapter("explain")(slots, original, shape=shape), method)
    return window


cdef tuple KEYWORDS = hide_unknown(find_window)


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
    if request.query.limits != NULL:
        return search_builtin_constrained(pool, request.query, criterion, which, shape, max_work)
    cdef Answer answer = pool.search(request.query, which, form)
    if answer.status == Status.ok:
        return window_from_answer(answer, request.query.n, criterion, shape)
    if answer.status == Status.none:
        return None
    raise search_error(answer.status, request.query)


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
    if method == "exact" and type(criterion) is str and criterion in INDEX:
        return find_window(pool, request, criterion, shape=shape)
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
    for i in range(len(asked)):
        request = asked[i]
        if not isinstance(request, Request):
            raise TypeError(f"requests[{i}] must be a Request, got {type(request).__name__}")
        each = resolve_times(slots, request, i)
        if each is not request:
            asked[i] = each
    cdef unsigned num_threads = min(integer("threads", threads, 1), 1024)
    if criterion.__class__ is not str or criterion not in INDEX or method != "exact":
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


cdef extern from "slotkern/window/alternatives.hpp" namespace "slotkern" nogil:
    const size_t kMaxParts, kMaxLive
    Status find_alternatives(const CPreparedSlots&, const Query&, ShapeKind, size_t,
                             CWindowTable&) noexcept

#: The criteria that are attributes of a window (minimized).
ATTRIBUTES = {name: name for name in ("start", "finish", "runtime", "cost", "processor_time")}
ATTRIBUTES["first"] = "start"
MAX_PARTS = kMaxParts


cdef class Alternatives(WindowTable):
    """Alternatives()
--

    Windows of one request that share no slot time, in the order they were found.

    A `WindowTable`: an integer index returns a `Window`, a slice `Alternatives`. A `Window`
    object is created when it is accessed.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time : ndarray of float64, shape (k,)
        The totals of each window.
    table : structured array, shape (k,)
        The totals and the value of each window, as fields.
    parts : structured array, shape (k, n)
        The parts of each window as in `Window.slots`, ascending by node.
    criterion, shape : str
        Arguments of the search.
    """

    cdef Py_ssize_t n
    cdef readonly object searched  # (free slots, origin rows or None)
    cdef PreparedSlots pool  # prepared from `searched` on first use

    def __init__(self, *_args, **_options):
        raise TypeError("Alternatives are made by find_alternatives")

    @classmethod
    def of(cls, windows, **options):
        """Raise TypeError: the free time next to other windows is unknown."""
        raise TypeError("Alternatives are made by find_alternatives; see WindowTable.of")

    cdef str item_noun(self):
        return "alternatives"

    cdef WindowTable select_rows(self, object rows):
        cdef Alternatives some = WindowTable.select_rows(self, rows)
        some.n, some.searched = self.n, self.searched
        return some

    @property
    def parts(self):
        """The parts of all windows, shape (k, n): row, node, start, end, cost."""
        return self.flat_parts().reshape(len(self), self.n)

    def best(self, criterion="finish"):
        """Return the best window by a criterion, the first of equals; None if there are no windows.

        Parameters
        ----------
        criterion : optional
            A criterion of `find_window`: a built-in name, a numeric field of the slots or an
            array with one value for each row (the sum over the parts is maximized),
            ``minimize(...)``, or a function made by ``@criterion``. Placement criteria use the
            tasks next to the searched free slots and ignore the other alternatives.

        Raises
        ------
        ValueError, TypeError
            As `find_window`.

        Notes
        -----
        The best alternative is the result of MultipleBest and CSA in the papers;
        `find_window` returns the best of all windows. O(k n) for k windows of n parts; the
        first criterion that is not an attribute also prepares the m searched slots,
        O(m log m).

        Examples
        --------
        >>> import slotkern as sk
        >>> slots = sk.make_slots(node=[0, 1], start=[0, 2], end=[9, 9], performance=1,
        ...                       price=[3, 1])
        >>> sk.find_alternatives(slots, sk.Request(1, 3)).best("cost").cost
        3.0
        """
        values = self._losses(criterion)
        return self[int(values.argmin())] if len(values) else None

    def pareto(self, *criteria):
        """Return the alternatives that no other alternative dominates: not the job's Pareto front.

        Alternatives are disjoint windows, found one after the other; other windows of the
        job may dominate all of them. `slotkern.pareto` computes the front of the job.

        A window dominates another if it is at least as good by all criteria and better by
        one. Equal windows are all returned. The order is from best to worst by the first
        criterion.

        Parameters
        ----------
        *criteria
            Two or more criteria of `best`.

        Returns
        -------
        Alternatives

        Raises
        ------
        ValueError
            For fewer than two criteria, and as `best`.

        Notes
        -----
        O(k log k) for k windows and two criteria, O(k * front) for more, plus the cost of
        evaluation as in `best`.

        Examples
        --------
        >>> import slotkern as sk
        >>> slots = sk.make_slots(node=[0, 1, 2], start=0, end=4, performance=1,
        ...                       price=[1, 2, 3], memory=[8.0, 4.0, 16.0])
        >>> found = sk.find_alternatives(slots, sk.Request(1, 4))
        >>> [window.nodes for window in found.pareto("cost", "memory")]
        [(0,), (2,)]
        """
        if len(criteria) < 2:
            raise ValueError(f"pareto needs at least two criteria, got {len(criteria)}")
        values = np.column_stack([self._losses(criterion) for criterion in criteria])
        order = np.lexsort(values.T[::-1])
        values = values[order]
        # Rows of `values` that are not dominated; later rows never dominate earlier ones.
        front = []
        if values.shape[1] == 2 and len(values):
            least = np.minimum.accumulate(values[:, 1])
            first = np.concatenate(([True], values[1:, 1] < least[:len(least) - 1]))
            group = np.maximum.accumulate(np.where(first, np.arange(len(values)), 0))
            front = np.flatnonzero((values == values[group]).all(axis=1)).tolist()
        else:
            for i, row in enumerate(values):
                rivals = values[front]
                no_worse = (rivals <= row).all(axis=1)
                if not (no_worse & (rivals < row).any(axis=1)).any():
                    front.append(i)
        return self.select_rows(order[front].tolist())

    def _losses(self, criterion):
        """Return one number for each window, to be minimized."""
        if isinstance(criterion, str) and criterion in ATTRIBUTES:
            return self.table[ATTRIBUTES[criterion]]
        if self.pool is None:
            self.pool = prepare_with_context(self.searched[0], self.context)
            self.pool.origin = self.searched[1]
        parts = self.parts
        rows = parts["row"]
        if self.pool.origin is not None:
            rows = find_slot_rows(self.pool.slots, parts)
        values, more = adapter("values_of_windows")(
            criterion, self.pool, rows, parts, self._lengths())
        return -values if more else values

    def _lengths(self):
        cdef Py_ssize_t k, size = self.windows.parts.size()
        lengths = np.empty((len(self), self.n))
        cdef double[::1] out = lengths.reshape(size)
        for k in range(size):
            out[k] = self.windows.parts[k].length
        return lengths

    def __repr__(self):
        return visible(
            f"Alternatives({len(self)} {self.shape} windows of {self.n} nodes by "
            f"{self.criterion})"
        )

    def __reduce__(self):
        return alternatives_from_windows, (list(self), self.n, self.criterion, self.shape,
                                           self.searched)


cdef Alternatives empty_alternatives(Py_ssize_t n, str criterion, str shape, object searched):
    cdef Alternatives self = Alternatives.__new__(Alternatives)
    self.n, self.criterion, self.shape, self.searched = n, criterion, shape, searched
    return self


def current_slots(slots):
    """Return (current free slots, origin rows or None); see `alternatives_from_windows`."""
    if not isinstance(slots, PreparedSlots):
        return slots, None
    return slots._free()


def find_slot_rows(slots, parts):
    """Return the row of the slot that contains each part, O(m log m).

    It is the last slot of the node that starts no later than the part.
    """
    flat = parts.ravel()
    size, wanted = len(slots), len(flat)
    order = np.lexsort((
        np.arange(size + wanted) >= size,
        np.concatenate([slots["start"], flat["start"]]),
        np.concatenate([slots["node"], flat["node"]]),
    ))
    last = np.maximum.accumulate(np.where(order < size, np.arange(size + wanted), 0))
    rows = np.empty(size + wanted, np.int64)
    rows[order] = order[last]
    return rows[size:].reshape(parts.shape)


def alternatives_from_windows(windows, n, criterion, shape, searched):
    """Return Alternatives of windows with n parts that were found in `searched`."""
    cdef Alternatives self = table_from_windows(Alternatives, windows, criterion, shape)
    self.n, self.searched = n, searched
    return self


cdef dict too_many_details(nodes):
    """Return details for the error of more than MAX_PARTS parts."""
    many = f"{MAX_PARTS // nodes:,} alternatives of {nodes} nodes, {MAX_PARTS:,} parts"
    return {"many": many, "cap": "a limit", "asked": "request", "live": kMaxLive}


def too_many_error(nodes):
    """Return the error of a search with more than MAX_PARTS parts."""
    return status_error(Status.too_many, "search", too_many_details(nodes))


def endless_error():
    """Return the error of a search with infinitely many windows."""
    return status_error(Status.endless, "search")


def first_alternatives(slots, Request request not None, str shape, limit):
    """Return the windows by the criterion "first", at most `limit` (None: all), in one sweep."""
    cdef PreparedSlots pool
    cdef Query query
    cdef Status status
    cdef ShapeKind form = parse_shape(shape)
    cdef size_t most = <size_t>-1 if limit is None else min(limit, 2**62)
    request = resolve_times(slots, request)
    cdef Alternatives self = empty_alternatives(
        request.query.n, "first", shape, current_slots(slots))
    self.context = context_of(slots)
    cdef size_t k
    pool = as_prepared(slots, False, form, request.query.n)
    cdef bint changed = pool.changed
    if changed and not is_booking_invariant(request):
        pool = pool.snapshot()
    cdef Request compiled = pool.compile_request(request)
    query = compiled.query
    cdef InterruptScope interrupts
    while attempt(interrupts, status):
        self.windows.clear()
        status = pool.lock_for_search(query.volume)
        if status == Status.ok:
            with nogil:
                status = find_alternatives(pool.prepared, query, form, most, self.windows)
                pool.unlock_after_search()
    if status != Status.ok:
        raise status_error(status, "search", {"volume": request.volume, **too_many_details(self.n)})
    # The pool changed before it was locked: search a snapshot.
    if not changed and pool.changed and not is_booking_invariant(request):
        return first_alternatives(slots, request, shape, limit)
    if pool.origin is not None:  # replace rows of the snapshot by origin rows
        for k in range(self.windows.parts.size()):
            self.windows.parts[k].row = pool.origin[self.windows.parts[k].row]
    if request.name is not None:
        self.names = [request.name] * len(self)
    return self

"""The doors: check, drop the GIL, call one C++ function, wrap the result."""

import operator
import os
import threading

import numpy as np

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY, isfinite, isinf, isnan
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from libcpp.vector cimport vector

from slotkern._kernels cimport (
    Answer, Answers, Fault, Found, Part, CPreparedSlots, Query, ShapeKind, SlotView, Status, Watch, ask,
    prepare_slots, check, criterion_doc, criterion_name, find, find_many, kBuiltins,
)

cnp.import_array()

cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()

cdef extern from "<limits>" nogil:
    double DBL_MAX "std::numeric_limits<double>::max()"

SLOT = np.dtype(
    [("node", "i4"), ("start", "f8"), ("end", "f8"), ("performance", "f8"), ("price", "f8")],
    align=True,
)
PART = np.dtype(
    [("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8"), ("cost", "f8")], align=True
)
CRITERIA = {
    (<bytes>criterion_name(i)).decode(): (<bytes>criterion_doc(i)).decode()
    for i in range(kBuiltins)
}
cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}
inf = float("inf")  # the name that the signature of Request shows

# Pools from here on are searched without the GIL: below, handing it over costs more.
cdef size_t LARGE = 8192


# --- signals

cdef unsigned long main_thread


def _know_main_thread():
    global main_thread
    main_thread = threading.main_thread().ident


_know_main_thread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_know_main_thread)


cdef bint hears() noexcept:
    """Whether Python answers signals in this thread."""
    return PyThread_get_thread_ident() == main_thread


include "_core_requests.pxi"


# --- slots

cdef Py_ssize_t offset_of(object dtype, str name, object wanted) except -1:
    try:
        field = dtype.fields[name]
    except KeyError:
        raise ValueError(
            f"slots have no field {name!r}; they have {', '.join(dtype.names)}"
        ) from None
    if field[0] != wanted or not field[0].isnative:
        raise TypeError(f"field {name!r} of slots must be native {wanted}, got {field[0].str!r}")
    return field[1]


cpdef object array_of(object slots):
    """The array itself, or the one that an Environment or a TraceSlots holds as `slots`."""
    if cnp.PyArray_Check(slots) or isinstance(slots, (PreparedSlots, Window)):
        return slots
    held = getattr(slots, "slots", None)
    return held if isinstance(held, np.ndarray) else slots


cdef int view_slots(object slots, SlotView* view) except -1:
    if not isinstance(slots, np.ndarray):
        known = "" if isinstance(slots, PreparedSlots) else ", a SlotPool or an Environment"
        raise TypeError(
            f"slots must be a structured numpy array{known}, got {type(slots).__name__}"
        )
    if type(slots) is not np.ndarray and isinstance(slots, np.ma.MaskedArray):
        raise TypeError("slots must have no mask: keep the rows that count, slots[~mask]")
    cdef cnp.ndarray array = <cnp.ndarray>slots
    dtype = array.dtype
    if dtype.fields is None:
        raise TypeError(f"slots must be a structured array with the fields of SLOT, got {dtype}")
    if array.ndim != 1:
        raise ValueError(f"slots must be one-dimensional, got {array.ndim} dimensions")
    if dtype is SLOT:
        view.node, view.start, view.end, view.performance, view.price = 0, 8, 16, 24, 32
    else:
        view.node = offset_of(dtype, "node", np.dtype(np.int32))
        view.start = offset_of(dtype, "start", np.dtype(np.float64))
        view.end = offset_of(dtype, "end", np.dtype(np.float64))
        view.performance = offset_of(dtype, "performance", np.dtype(np.float64))
        view.price = offset_of(dtype, "price", np.dtype(np.float64))
    view.base = <const char*>cnp.PyArray_DATA(array)
    view.stride = cnp.PyArray_STRIDE(array, 0)
    view.size = cnp.PyArray_DIM(array, 0)
    return 0


cdef object fault_error(const Fault& fault, object slots):
    """The one place where what check_slots found becomes an exception."""
    if fault.status == Status.no_memory:
        return MemoryError("not enough memory to prepare the slots")
    if fault.status == Status.internal:
        return RuntimeError("an unexpected error inside the slot check")
    from slotkern.slots import SlotError
    row, other = fault.row, fault.other
    slot, clash = slots[row], slots[other]
    if fault.status == Status.node_negative:
        field, text = "node", f"node {slot['node']} is negative"
    elif fault.status == Status.start_not_finite:
        field, text = "start", f"start {slot['start']} is not finite"
    elif fault.status == Status.end_is_nan:
        field, text = "end", "end is nan"
    elif fault.status == Status.end_not_after_start:
        field, text = "end", f"end {slot['end']} is not after start {slot['start']}"
    elif fault.status == Status.performance_not_positive:
        field = "performance"
        text = f"performance {slot['performance']} is not positive and finite"
    elif fault.status == Status.price_not_valid:
        field, text = "price", f"price {slot['price']} is negative or not finite"
    elif fault.status == Status.not_sorted:
        field = "start" if slot["start"] != clash["start"] else "node"
        text = (f"slots are not sorted by (start, node): ({slot['start']}, {slot['node']}) comes "
                f"after ({clash['start']}, {clash['node']}); make_slots sorts")
    elif fault.status == Status.performance_differs:
        field = "performance"
        text = f"performance {slot['performance']} differs from {clash['performance']}"
    else:
        field = "start"
        text = f"start {slot['start']} lies before end {clash['end']}: slots of one node overlap"
    if fault.status != Status.not_sorted and fault.status != Status.node_negative:
        text += f" (node {slot['node']})"
    return SlotError(text, int(row), field, int(other))


def check_slots(slots):
    """Raise SlotError for the first bad row of a structured array."""
    slots = array_of(slots)
    cdef SlotView view
    view_slots(slots, &view)
    cdef Fault fault
    cdef Watch watch
    watch.arm(hears())
    fault.status = Status.interrupted
    while fault.status == Status.interrupted:
        ask(watch)
        with nogil:
            fault = check(view)
    if fault.status != Status.ok:
        raise fault_error(fault, slots)


cdef class PreparedSlots:
    """PreparedSlots(slots)
--

    Checked slots with columns, screens and nodes prepared: what searches run on.

    Read-only, and safe to search from several threads at once. `SlotPool` adds change.
    """

    def __init__(self, slots):
        if self.table is not None:
            raise TypeError(f"a {type(self).__name__} is made once; make another for other slots")
        self.masks = {}
        slots = array_of(slots)
        prepare(self, slots, True, ShapeKind.square, 0)
        self.table = np.array(slots)
        self.table.flags.writeable = False

    @property
    def slots(self):
        """The free slots: a read-only structured array, sorted by (start, node)."""
        return self.array()

    def __len__(self):
        return len(self.array())

    @property
    def nodes(self):
        """The node ids, ascending (int32)."""
        ids = np.empty(self.prepared.nodes.size(), np.int32)
        cdef int32_t[::1] view = ids
        cdef size_t k
        for k in range(self.prepared.nodes.size()):
            view[k] = self.prepared.nodes[k].id
        ids.sort()
        return ids

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} slots of {self.prepared.nodes.size()} nodes)"

    def __reduce__(self):
        return PreparedSlots, (self.table,)

    def find(self, request, criterion="finish", **options):
        """`find_window` on this pool."""
        return find_window(self, request, criterion, **options)

    cdef object mask_of(self, object where):
        """The rows that a filter lets in: None for all, or an array of bool."""
        if isinstance(where, str):
            mask = self.masks.get(where)
            if mask is None:
                from slotkern.where import evaluate
                mask = np.ascontiguousarray(evaluate(where, self.table), dtype=np.bool_)
                if len(self.masks) >= 64:
                    self.masks.clear()
                self.masks[where] = mask
            return mask
        if where is not None:
            self.check_rows("where")
        if where is not None and len(where) != len(self.table):
            raise ValueError(
                f"where has {len(where)} values for {len(self.table)} slots; "
                "a boolean array must match the searched array row by row"
            )
        return where

    def check_rows(self, name):
        """Refuse an argument with one value for each row, where the pool has changed."""
        if self.changed or self.origin is not None:
            raise ValueError(
                f"{name} is an array, but the pool has changed since its slots had these rows; "
                "use an expression or a field"
            )

    # What a pool that changes does in another way.

    cdef object array(self):
        """The slots that are free now."""
        return self.table

    cdef PreparedSlots settled(self):
        """These slots as they are now, rows in the order of `array`."""
        return self

    cdef void enter(self, double least_volume) noexcept:
        """Before a search for such volumes or larger, and `leave` after it."""

    cdef void leave(self) noexcept nogil:
        pass

    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape):
        cdef Answer answer
        cdef Watch watch
        watch.arm(hears())
        answer.status = Status.interrupted
        while answer.status == Status.interrupted:
            ask(watch)
            if self.prepared.nodes.size() < LARGE:
                answer = find(self.prepared, query, criterion, shape)
            else:
                with nogil:
                    answer = find(self.prepared, query, criterion, shape)
        return answer


cdef int prepare(PreparedSlots self, object slots, bint both, ShapeKind shape, size_t n) except -1:
    cdef SlotView view
    view_slots(slots, &view)
    cdef Fault fault
    cdef Watch watch
    watch.arm(hears())
    fault.status = Status.interrupted
    while fault.status == Status.interrupted:
        ask(watch)
        with nogil:
            fault = prepare_slots(self.prepared, view, both, shape, n)
    if fault.status != Status.ok:
        raise fault_error(fault, slots)
    return 0


cdef PreparedSlots pool_of(object slots, bint both, ShapeKind shape, size_t n):
    """The pool itself, or one prepared for this call only."""
    if isinstance(slots, PreparedSlots):
        return <PreparedSlots>slots
    slots = array_of(slots)
    cdef PreparedSlots pool = PreparedSlots.__new__(PreparedSlots)
    pool.masks = {}
    prepare(pool, slots, both, shape, n)
    pool.table = slots
    return pool


cdef ShapeKind shape_of(str shape) except *:
    if shape == "square":
        return ShapeKind.square
    if shape == "ragged":
        return ShapeKind.ragged
    raise ValueError(f"shape must be 'square' or 'ragged', got {shape!r}")


cdef Py_ssize_t place_in(object index, Py_ssize_t size, str things) except -1:
    """The place that an index means in a sequence of so many things."""
    try:
        return range(size)[index]
    except TypeError:
        name = type(index).__name__
        raise TypeError(f"index must be an integer or a slice, got {name}") from None
    except IndexError:
        raise IndexError(f"index {index} is out of range for {size} {things}") from None


include "_core_windows.pxi"


# --- searches

def find_window(slots, Request request not None, criterion="finish", *, str shape="square",
                str method="exact", str placement="slot-start", str span="window", gap=0.0,
                max_work=None, seed=0):
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
    gap, max_work : float, int, optional
        For sums of values: a relative distance from the optimum that is good enough, and
        the most units of work, counted and not timed; `Window.proven` says what came of it.
    seed : int
        For published methods that draw random windows.

    Returns
    -------
    Window or None
        None when nothing fits; `explain` says why. Exact windows are the best by value,
        then earliest start, then lowest cost, then smallest node ids; costs that only
        rounding makes equal are no tie, for there the n cheapest slots stand. Of windows
        with one sum of values any may be the answer, always the same one.

    Raises
    ------
    ValueError, TypeError
        Naming the row, field or argument and its value.

    Notes
    -----
    A part so long or so dear that it overflows a float64 fits nowhere.
    Expected O(m / 64 + candidates * n) time for m slots once prepared; scratch memory at
    most 16 bytes a slot. AEP: Toporkov et al., "Slot Selection and Co-allocation
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
    cdef object index = INDEX.get(criterion) if type(criterion) is str else None
    if (isinstance(slots, PreparedSlots) and (<PreparedSlots>slots).changed
            and (index is None or method != "exact" or not lasting(request.where))):
        return find_settled(<PreparedSlots>slots, request, criterion, dict(
            shape=shape, method=method, placement=placement, span=span, gap=gap,
            max_work=max_work, seed=seed))
    if (index is None or method != "exact" or placement != "slot-start" or span != "window"
            or gap != 0.0 or max_work is not None or type(seed) is not int or seed < 0):
        from slotkern.search import find_otherwise
        return find_otherwise(slots, request, criterion, shape, method, placement, span, gap,
                              max_work, seed)
    cdef ShapeKind form = shape_of(shape)
    cdef PreparedSlots pool = pool_of(slots, False, form, request.query.n)
    cdef Answer answer
    cdef int which = index
    cdef object mask
    if request.where is not None:
        mask = pool.mask_of(request.where)
        request = request_with(request, mask)
    answer = pool.search(request.query, which, form)
    if answer.status == Status.ok:
        return wrap(answer, request.query.n, <str>criterion, shape)
    if answer.status == Status.none:
        return None
    raise search_error(answer.status, request.query)


cdef bint lasting(object where) except -1:
    """Whether a filter lets in the same slots after bookings, and is no array of rows."""
    if where is None:
        return True
    if not isinstance(where, str):
        return False
    from slotkern.where import columns
    return columns(where).isdisjoint(("start", "end"))


cdef object find_settled(PreparedSlots pool, Request request, object criterion, dict options):
    """find_window on what a changed pool is now, with rows of its origin array."""
    cdef PreparedSlots settled = pool.settled()
    cdef Window window = find_window(settled, request, criterion, **options)
    cdef Py_ssize_t i
    if window is not None:
        for i in range(window.count):
            window.parts[i].row = settled.origin[window.parts[i].row]
        window.table = None
    return window


def prepared(slots):
    """Slots prepared for searches: an array's, or what a pool has free now."""
    if isinstance(slots, PreparedSlots):
        return (<PreparedSlots>slots).settled()
    return PreparedSlots(slots)


def check_volume(slots, Request request not None):
    """Raise the error of a volume so small that the clock does not move."""
    cdef PreparedSlots pool = prepared(slots)
    if request.where is not None:
        request = request_with(request, pool.mask_of(request.where))
    cdef Status status = pool.prepared.check(request.query)
    if status != Status.ok:
        raise search_error(status, request.query)


def filter_rows(slots, where):
    """The slot array behind `slots`, and its rows that `where` lets in (None: all)."""
    cdef PreparedSlots pool
    if isinstance(slots, PreparedSlots):
        pool = (<PreparedSlots>slots).settled()
    else:
        slots = array_of(slots)
        check_slots(slots)
        pool = PreparedSlots.__new__(PreparedSlots)
        pool.masks = {}
        pool.table = slots
    return pool.slots, pool.mask_of(where)


def window_of(slots, rows, double start, double volume, str criterion, str shape, value=None,
              double longest=0):
    """The window of these rows at this start, in the one expression for each quantity.

    A square window takes as long as its slowest part, or `longest` if that is longer. For algorithms that choose rows themselves; nothing is `proven` of it, and its `bound` is -inf.
    """
    cdef ShapeKind form = shape_of(shape)
    table = slots[rows]
    rate = table["price"] / table["performance"]
    key = rate if form == ShapeKind.ragged else table["price"]
    order = np.lexsort((table["node"], key))
    rows, table, rate = np.asarray(rows)[order], table[order], rate[order]
    lengths = volume / table["performance"]
    span = max(lengths.max(), longest)
    costs = volume * rate if form == ShapeKind.ragged else table["price"]
    if form == ShapeKind.square:
        lengths = np.full(len(rows), span)
    cdef double total = 0, time = 0
    for cost, length in zip(costs.tolist(), lengths.tolist()):
        total += cost
        time += length
    if form == ShapeKind.square:
        total, costs, time = span * total, span * costs, len(rows) * span
    cdef Window self = Window.__new__(Window)
    self.start, self.runtime, self.finish = start, span, start + span
    self.cost, self.processor_time = total, time
    values = {"first": start, "start": start, "local_price": start, "finish": self.finish,
              "runtime": self.runtime, "cost": self.cost, "processor_time": self.processor_time}
    self.value = values[criterion] if value is None else value
    self.proven, self.bound = False, -INFINITY
    self.criterion, self.shape = criterion, shape
    hold(self, len(rows))
    cdef Py_ssize_t i
    for i, k in enumerate(np.argsort(table["node"]).tolist()):
        self.parts[i] = Part(rows[k], table["node"][k], lengths[k], costs[k])
    return self


cdef Request request_with(Request request, object mask):
    """A copy whose query points at the mask, which it keeps alive."""
    cdef Request copy = Request.__new__(Request)
    copy.query = request.query
    copy.where = mask
    copy.query.mask = <const unsigned char*>cnp.PyArray_DATA(<cnp.ndarray>mask)
    copy.query.masked = len(mask)
    return copy


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
    list of (Window or None)
        One for each request, in order.

    Raises
    ------
    ValueError, TypeError
        As `find_window`, at the first request that is wrong; then nothing is returned.

    Notes
    -----
    The time of `find_window` for each request, shared by the threads when the criterion
    is a built-in one and the method exact; others run one after another. O(m log m) once
    for a raw array of m slots.
    """
    cdef list asked = list(requests)
    for i, request in enumerate(asked):
        if not isinstance(request, Request):
            raise TypeError(f"requests[{i}] must be a Request, got {type(request).__name__}")
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise ValueError(f"threads must be an integer of at least 1, got {threads!r}")
    if criterion.__class__ is not str or criterion not in INDEX or method != "exact":
        if not isinstance(slots, PreparedSlots):
            slots = PreparedSlots(slots)  # checked and prepared once for all
        return [
            find_window(slots, request, criterion, shape=shape, method=method, **options)
            for request in asked
        ]
    if options:
        find_window(slots, Request(1, 1), criterion, shape=shape, **options)  # checks names
    cdef ShapeKind form = shape_of(shape)
    cdef size_t most = 1
    cdef Request each
    for each in asked:
        most = max(most, <size_t>each.query.n)
    cdef PreparedSlots pool = pool_of(slots, False, form, most)
    if pool.changed and any([each.where is not None for each in asked]):
        return [find_window(slots, each, criterion, shape=shape) for each in asked]
    cdef vector[Query] queries
    queries.reserve(len(asked))
    keep = []
    for each in asked:
        if each.where is not None:
            each = request_with(each, pool.mask_of(each.where))
            keep.append(each)
        queries.push_back(each.query)
    cdef Answers out
    cdef Status status
    cdef unsigned crew = min(threads, 1024)
    cdef int which = INDEX[criterion]
    cdef double least_volume = min([each.volume for each in asked], default=INFINITY)
    cdef Watch watch
    watch.arm(hears())
    status = Status.interrupted
    while status == Status.interrupted:
        ask(watch)
        pool.enter(least_volume)
        with nogil:
            status = find_many(pool.prepared, queries, which, form, crew, out)
            pool.leave()
    if status != Status.ok:
        raise search_error(status, queries[0])
    windows = []
    cdef size_t k
    for k in range(out.answers.size()):
        if out.answers[k].status == Status.ok:
            windows.append(wrap(out.answers[k], queries[k].n, <str>criterion, shape))
        elif out.answers[k].status == Status.none:
            windows.append(None)
        else:
            raise search_error(out.answers[k].status, queries[k])
    return windows

"""The door of slots: check, prepare once, search often."""

import os

import numpy as np

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.string cimport strcmp
from libcpp.vector cimport vector

from slotkern._base cimport Fault, Status, InterruptScope, ask, error_of, hears, name_of
from slotkern._kernels cimport (
    Answer, CPreparedSlots, CWindowTable, UseFunction, SumConstraint, Query, ShapeKind, SlotView,
    check, find_window, find_windows, prepare_slots,
)
from slotkern._request cimport Request, copy_of, numbers_of, search_error

from slotkern.checks import meant, visible
from slotkern.errors import slot_error
from slotkern.display import HasPlot

cnp.import_array()

SLOT = np.dtype(
    [("node", "i4"), ("start", "f8"), ("end", "f8"), ("performance", "f8"), ("price", "f8")],
    align=True,
)

# What the capsule of a compiled function of a slot and a length is named (_value.pyx).
cdef const char* STATIC_NAME = "int (const void *, double, double *)"


cdef Py_ssize_t offset_of(object dtype, str name, object wanted) except -1:
    try:
        field = dtype.fields[name]
    except KeyError:
        raise ValueError(
            f"slots have no field {name!r}; they have {', '.join(dtype.names)}"
            f"{meant(name, dtype.names)}"
        ) from None
    if field[0] != wanted or not field[0].isnative:
        raise TypeError(f"field {name!r} of slots must be native {wanted}, got {field[0].str!r}")
    return field[1]


cpdef object array_of(object slots):
    """The array itself, or the one that an Environment or a TraceSlots holds as `slots`."""
    if cnp.PyArray_Check(slots) or isinstance(slots, PreparedSlots):
        return slots
    held = getattr(slots, "slots", None)
    fields = getattr(getattr(held, "dtype", None), "names", None) or ()
    return held if "performance" in fields else slots  # a Window's have none


cdef int view_slots(object slots, SlotView* view) except -1:
    if not isinstance(slots, np.ndarray):
        known = "" if isinstance(slots, PreparedSlots) else ", a SlotPool or an Environment"
        if isinstance(slots, (str, os.PathLike)):
            made = "; read_slots reads a file of slots, SlotPool.load that of a pool"
        elif hasattr(slots, "columns") or hasattr(slots, "__arrow_c_stream__"):
            made = "; from_pandas and from_arrow make one of a table"
        else:
            made = ""
        raise TypeError(
            f"slots must be a structured numpy array{known}, got {type(slots).__name__}{made}"
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
    if fault.status == Status.no_memory or fault.status == Status.internal:
        return error_of(fault.status, "prepare the slots")
    return slot_error(name_of(fault.status), slots, fault.row, fault.other)


def check_slots(slots):
    """Raise SlotError for the first bad row of a structured array."""
    slots = array_of(slots)
    cdef SlotView view
    view_slots(slots, &view)
    cdef Fault fault
    cdef InterruptScope watch
    watch.arm(hears())
    fault.status = Status.interrupted
    while fault.status == Status.interrupted:
        ask(watch)
        with nogil:
            fault = check(view)
    if fault.status != Status.ok:
        raise fault_error(fault, slots)


cdef class PreparedSlots:
    """PreparedSlots(slots, *, clock=None, machine=None)
--

    Checked slots with columns, screens and nodes prepared: what searches run on.

    Safe to search from several threads at once. They are never changed; what searches for the
    cheapest window learn is kept beside them. `SlotPool` adds change.
    """

    def __init__(self, slots, *, clock=None, machine=None):
        if self.table is not None:
            raise TypeError(f"a {type(self).__name__} is made once; make another for other slots")
        self.masks = {}
        self.terms = terms_of(slots)
        if clock is not None or machine is not None:
            from slotkern.machine.terms import checked_terms
            self.terms = checked_terms(self.terms, clock, machine)
        slots = array_of(slots)
        prepare(self, slots, True, ShapeKind.square, 0)
        self.table = np.array(slots)
        self.table.flags.writeable = False

    @property
    def slots(self):
        """The free slots: a read-only structured array, sorted by (start, node)."""
        return self.array()

    @property
    def clock(self):
        """What the times mean on a calendar, or None."""
        return None if self.terms is None else self.terms[0]

    @property
    def machine(self):
        """The table of the nodes, with their names, or None."""
        return None if self.terms is None else self.terms[1]

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

    to_pandas = HasPlot.to_pandas
    to_arrow = HasPlot.to_arrow
    __arrow_c_stream__ = HasPlot.__arrow_c_stream__
    _repr_html_ = HasPlot._repr_html_
    plot = HasPlot.plot

    def _shown(self):
        """The free slots as a table."""
        from slotkern.display_table import Table
        return Table.from_array(repr(self), self.slots, terms=self.terms, times=("start", "end"))

    def __repr__(self):
        when = "" if self.clock is None else f", {self.clock}"
        return visible(
            f"{type(self).__name__}({len(self)} slots of {len(self.nodes)} nodes{when})")

    def __reduce__(self):
        return restored_slots, (self.table, self.terms)

    def find(self, request, criterion="finish", **options):
        """`find_window` on these slots as they are now."""
        from slotkern._find import find_window
        return find_window(self, request, criterion, **options)

    # Of one table, which another thread may replace meanwhile.
    cdef object mask_of(self, object where, object table):
        """The rows that a filter lets in: None for all, or an array of bool."""
        if isinstance(where, str):
            mask = self.kept(where, table)
            if mask is None:
                from slotkern.where import evaluate
                mask = np.ascontiguousarray(
                    evaluate(where, table, self.machine), dtype=np.bool_)
                self.keep(where, mask, table)
            return mask
        if where is not None:
            self.check_rows("where")
        if where is not None and len(where) != len(table):
            raise ValueError(
                f"where has {len(where)} values for {len(table)} slots; "
                "a boolean array must match the searched array row by row"
            )
        return where

    cdef object kept(self, object key, object table):
        """What a term says of the rows of a table, if it was asked before."""
        found = self.masks.get(key)
        return found[1] if found is not None and found[0] is table else None

    cdef int keep(self, object key, object column, object table) except -1:
        if len(self.masks) >= 64:
            self.masks.clear()
        self.masks[key] = table, column
        return 0

    cdef Request bound(self, Request request):
        """The request with the rows that its filter lets in, and what they use of its limits.

        Itself where it has neither.
        """
        if request.where is None and not request.limits:
            return request
        cdef cnp.ndarray table = self.table
        tied = request.tied
        if tied is not None and tied[0] is table:
            return <Request>tied[1]
        cdef Request copy = copy_of(request)
        cdef SumConstraint part, no_limit
        cdef cnp.ndarray weight
        cdef const char* name
        if request.where is not None:
            mask = self.mask_of(request.where, table)
            copy.tied_arrays.append(mask)
            copy.where = mask
            copy.query.mask = <const unsigned char*>cnp.PyArray_DATA(<cnp.ndarray>mask)
            copy.query.masked = len(mask)
        for limit in request.limits:
            part = no_limit
            part.amount, part.at_least = limit.amount, limit.side == ">="
            if isinstance(limit.of, (str, np.ndarray)):
                weight, part.by_length, unit = self.uses_of(limit, table)
                part.amount = limit.reachable(unit)
                copy.tied_arrays.append(weight)
                part.weight = <const double*>cnp.PyArray_DATA(weight)
            else:
                capsule = limit.of.capsule(table.dtype)
                name = PyCapsule_GetName(capsule)
                if name == NULL or strcmp(name, STATIC_NAME) != 0:
                    raise TypeError(f"a limit's function must not look at the start: {limit.of!r}")
                copy.tied_arrays += (capsule, table)
                part.function = <UseFunction>PyCapsule_GetPointer(capsule, STATIC_NAME)
                part.records = <const char*>cnp.PyArray_DATA(table)
                part.stride = cnp.PyArray_STRIDE(table, 0)
            copy.sums.all.push_back(part)
        copy.sums.rows = len(table)
        if request.limits:
            copy.query.limits = &copy.sums
        if not self.borrowed:
            request.tied = table, copy
        return copy

    cdef Request bound_one(self, Request request, i):
        """The same of one of many requests: an error names it."""
        try:
            return self.bound(request)
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{request.name or f'requests[{i}]'}: {error}") from None

    cdef object uses_of(self, object limit, object table):
        """(weights, by_length, unit) of a term over the columns, or of an array."""
        of = limit.of
        if not isinstance(of, str):
            self.check_rows("a limit")
            if len(of) != len(table):
                raise ValueError(
                    f"a limit has {len(of)} values for {len(table)} slots; "
                    "an array must match the searched array row by row"
                )
            return of, False, limit.unit
        key = "sum", of
        uses = self.kept(key, table)
        if uses is None:
            from slotkern.limits import uses_of
            uses = uses_of(of, table)
            uses = *uses, uses.unit()
            self.keep(key, uses, table)
        return uses

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

    def _free(self):
        """The free slots and, unless they are its own, their rows of origin."""
        return self.table, self.origin

    cdef PreparedSlots settled(self):
        """These slots as they are now and stay, rows in the order of `array`."""
        return self

    cdef PreparedSlots settled_for(self, const Query& query):
        """The same for one search, perhaps without slots that it cannot use."""
        return self.settled()

    cdef Status enter(self, double least_volume) except *:
        """Before a search for such volumes or larger, and `leave` after it: where it is ok."""
        return Status.ok

    cdef void leave(self) noexcept nogil:
        pass

    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape):
        cdef Answer answer
        cdef InterruptScope watch
        watch.arm(hears())
        answer.status = Status.interrupted
        while answer.status == Status.interrupted:
            ask(watch)
            if self.prepared.nodes.size() < LARGE and query.limits == NULL:
                answer = find_window(self.prepared, self.costs, query, criterion, shape)
            else:
                with nogil:
                    answer = find_window(self.prepared, self.costs, query, criterion, shape)
        return answer

    cdef Status search_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                           unsigned threads, CWindowTable& out, size_t& wrong) except *:
        cdef Status status = Status.interrupted
        cdef double least_volume = INFINITY
        cdef size_t i
        for i in range(queries.size()):
            least_volume = min(least_volume, queries[i].volume)
        cdef InterruptScope watch  # a door's own: another's knows nothing of the sweeps that run here
        watch.arm(hears())
        if queries.size() > MANY:  # before signals are looked for: none comes between unseen
            watch.install()
        while status == Status.interrupted:
            ask(watch)
            status = self.enter(least_volume)
            if status != Status.ok:
                break
            with nogil:
                if self.changed:  # what the pool knows of costs is one search's at a time
                    status = find_windows(self.prepared, queries, criterion, shape, threads, out,
                                       wrong)
                else:
                    status = find_windows(self.prepared, self.costs, queries, criterion, shape,
                                       threads, out, wrong)
                self.leave()
        return status


def restored_slots(slots, terms):
    """PreparedSlots as they were pickled."""
    cdef PreparedSlots self = PreparedSlots(slots)
    self.terms = terms
    return self


cdef int prepare(PreparedSlots self, object slots, bint both, ShapeKind shape, size_t n) except -1:
    cdef SlotView view
    view_slots(slots, &view)
    cdef Fault fault
    cdef InterruptScope watch
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
    cdef PreparedSlots pool = PreparedSlots.__new__(PreparedSlots)
    pool.masks, pool.terms = {}, terms_of(slots)
    slots = array_of(slots)
    prepare(pool, slots, both, shape, n)
    pool.table, pool.borrowed = slots, True
    return pool


def prepared(slots):
    """Slots prepared for searches: an array's, or what a pool has free now."""
    if isinstance(slots, PreparedSlots):
        return (<PreparedSlots>slots).settled()
    return PreparedSlots(slots)


def check_volume(slots, Request request not None):
    """Raise the error of a volume so small that the clock does not move."""
    cdef PreparedSlots pool = prepared(slots)
    request = pool.bound(request)
    cdef Status status = pool.prepared.check(request.query)
    if status != Status.ok:
        raise search_error(status, request.query)


def filter_rows(slots, where):
    """The slot array behind `slots`, and its rows that `where` lets in (None: all)."""
    cdef PreparedSlots pool
    if isinstance(slots, PreparedSlots):
        pool = (<PreparedSlots>slots).settled()
    else:
        pool = PreparedSlots.__new__(PreparedSlots)
        pool.masks, pool.terms = {}, terms_of(slots)
        slots = array_of(slots)
        check_slots(slots)
        pool.table = slots
    return pool.slots, pool.mask_of(where, pool.table)


cdef object terms_of(object slots):
    """(clock, machine) of slots that have any, or None."""
    if isinstance(slots, PreparedSlots):
        return (<PreparedSlots>slots).terms
    if isinstance(slots, np.ndarray):
        return None
    terms = getattr(slots, "clock", None), getattr(slots, "machine", None)
    return None if terms == (None, None) else terms


cpdef Request in_numbers(object slots, Request request, object place=None):
    """The request in the numbers of the slots' clock, which is asked once.

    Errors name its `place` among other requests, unless it has a name.
    """
    if request.said is None:
        return request
    terms = terms_of(slots)
    clock = None if terms is None else terms[0]
    if request.plain is None or request.plain[0] is not clock:
        plain = None if clock is None else numbers_of(request, clock.scale)
        if plain is None:  # what is rare, or wrong
            from slotkern.machine.terms import numbered as numbers
            plain = numbers(request, clock, place)
        request.plain = clock, plain
    return request.plain[1]

"""Binding of slot arrays: validate and prepare them once, then search them many times."""

import os

import numpy as np

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.string cimport strcmp
from libcpp.vector cimport vector

from slotkern._kernels.base cimport (
    Fault, Status, InterruptScope, attempt, status_error, status_message, status_name,
)
from slotkern._kernels.headers cimport (
    Answer, CGroupRules, CPreparedSlots, CWindowTable, GroupRule, GroupRuleKind, IndexOptions,
    UseFunction, SumConstraint, Query, ShapeKind, SlotView, check, find_together, find_window,
    find_windows, kNested, prepare_slots, small_pool_options, supports_rules,
)
from slotkern._kernels.request cimport Request, copy_request, convert_times, search_error

from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import meant, named, visible
from slotkern.foundation.context import context_of as context_of_object
from slotkern.foundation.errors import SlotError, slot_error
from slotkern.foundation.special_fields import refuse_special
from slotkern.display import HasPlot

cnp.import_array()

SLOT = np.dtype(
    [("node", "i4"), ("start", "f8"), ("end", "f8"), ("performance", "f8"), ("price", "f8")],
    align=True,
)

SPAN = np.dtype([("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8")], align=True)
#: Closed time, one row for each node and reason. `disabled`: closed by `disable`, not `reserve`.
CLOSURE = np.dtype([("node", "i4"), ("start", "f8"), ("end", "f8"), ("owner", "U1"),
                    ("disabled", "?")], align=True)

# The capsule name of a compiled function of a slot and a length (see values.pyx).
cdef const char* STATIC_NAME = "int (const void *, double, double *)"


cdef Py_ssize_t field_offset(object dtype, str name, object wanted) except -1:
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


cpdef object as_slot_array(object slots):
    """Return the array: `slots` itself, or `slots` of an Environment or TraceSlots."""
    if cnp.PyArray_Check(slots) or isinstance(slots, PreparedSlots):
        return slots
    held = getattr(slots, "slots", None)
    fields = getattr(getattr(held, "dtype", None), "names", None) or ()
    return held if "performance" in fields else slots  # the slots of a Window have no performance


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
        view.node = field_offset(dtype, "node", np.dtype(np.int32))
        view.start = field_offset(dtype, "start", np.dtype(np.float64))
        view.end = field_offset(dtype, "end", np.dtype(np.float64))
        view.performance = field_offset(dtype, "performance", np.dtype(np.float64))
        view.price = field_offset(dtype, "price", np.dtype(np.float64))
    view.base = <const char*>cnp.PyArray_DATA(array)
    view.stride = cnp.PyArray_STRIDE(array, 0)
    view.size = cnp.PyArray_DIM(array, 0)
    return 0


cdef object fault_error(const Fault& fault, object slots):
    if fault.status == Status.no_memory or fault.status == Status.internal:
        return status_error(fault.status, "prepare the slots")
    return slot_error(status_name(fault.status), status_message(fault.status), slots, fault.row,
                      fault.other)


include "slots_tariffs.pxi"
include "slots_groups.pxi"


def check_slots(slots):
    """Raise SlotError for the first bad row of a structured array."""
    slots = as_slot_array(slots)
    cdef SlotView view
    view_slots(slots, &view)
    cdef Fault fault
    cdef InterruptScope interrupts
    while attempt(interrupts, fault.status):
        with nogil:
            fault = check(view)
    if fault.status != Status.ok:
        raise fault_error(fault, slots)
    tariffs_of_nodes(slots)


cdef class PreparedSlots:
    """PreparedSlots(slots, *, clock=None, machine=None, tariffs=None)
--

    Validated slots with prepared columns, zone maps and nodes, on which searches run.

    The slots never change, so several threads may search at once. Cost bounds that searches for
    the cheapest window compute are cached. `SlotPool` adds booking and release.
    """

    def __init__(self, slots, *, clock=None, machine=None, tariffs=None):
        if self.table is not None:
            raise TypeError(f"a {type(self).__name__} cannot be initialized again; create another")
        self.column_cache = {}
        self.context = context_of(slots)
        if clock is not None or machine is not None or tariffs is not None:
            self.context = adapter("checked_context")(self.context, clock, machine, tariffs)
        prepare_all(self, as_slot_array(slots))

    @property
    def slots(self):
        """The free slots: a read-only structured array, sorted by (start, node)."""
        return self.array()

    @property
    def clock(self):
        """The clock that converts times to dates, or None."""
        return None if self.context is None else self.context.clock

    @property
    def machine(self):
        """The `Machine` with the names of the nodes, or None."""
        return None if self.context is None else self.context.machine

    @property
    def tariffs(self):
        """The `Tariffs` by the names in the column ``tariff``, or None."""
        return None if self.context is None else self.context.tariffs

    def __len__(self):
        return len(self.array())

    @property
    def nodes(self):
        """The node ids, ascending (int32)."""
        ids = place_ids(self)
        ids.sort()
        return ids

    to_pandas = HasPlot.to_pandas
    to_arrow = HasPlot.to_arrow
    __arrow_c_stream__ = HasPlot.__arrow_c_stream__
    _repr_html_ = HasPlot._repr_html_
    plot = HasPlot.plot

    def _as_table(self):
        """Return the free slots as a table for display."""
        from slotkern.display.table import Table
        return Table.from_array(repr(self), self.slots, context=self.context, times=("start", "end"))

    def __repr__(self):
        when = "" if self.clock is None else f", {self.clock}"
        return visible(
            f"{type(self).__name__}({len(self)} slots of {len(self.nodes)} nodes{when})")

    def __reduce__(self):
        return unpickle_slots, (self.table, self.context)

    def find(self, request, criterion="finish", **options):
        """Return `find_window` of the current slots; same arguments, result and errors."""
        return adapter("find_window")(self, request, criterion, **options)

    # `table` is passed in, because another thread may replace self.table during the evaluation.
    cdef object mask_of(self, object where, object table):
        """Return the rows that pass a filter: an array of bool, or None for all."""
        if isinstance(where, str):
            mask = self.cached_column(where, table)
            if mask is None:
                from slotkern.expressions.filters import evaluate
                mask = np.ascontiguousarray(
                    evaluate(where, table, self.machine), dtype=np.bool_)
                self.cache_column(where, mask, table)
            return mask
        if where is not None:
            self.require_original_rows("where")
        if where is not None and len(where) != len(table):
            raise ValueError(
                f"where has {len(where)} values for {len(table)} slots; "
                "a boolean array must match the searched array row by row"
            )
        return where

    cdef object cached_column(self, object key, object table):
        """Return the cached values of an expression for the rows of `table`, or None."""
        found = self.column_cache.get(key)
        return found[1] if found is not None and found[0] is table else None

    cdef int cache_column(self, object key, object column, object table) except -1:
        if len(self.column_cache) >= 64:
            self.column_cache.clear()
        self.column_cache[key] = table, column
        return 0

    cdef Request compile_request(self, Request request):
        """Return the request with the mask of its filter, the weights of its limits and its rules.

        A request with none of them is returned itself. The result is cached in the request, unless
        the table is the caller's array, which may change.
        """
        if self.prepared.has_tariffs():
            if request.rules:
                refuse_under_tariffs(self, "group rules (within, distinct, most) do")
            if request.limits:
                refuse_under_tariffs(self, "limits on sums do")
            if request.query.max_price < INFINITY:
                refuse_under_tariffs(self, "max_price does")
        if request.special is not None or request.rules:
            refuse_special(request, "a search of slots", ("within",))
        if request.where is None and not request.limits and not request.rules:
            return request
        cdef cnp.ndarray table = self.table
        compiled = request.compiled
        if compiled is not None and compiled[0] is table:
            return <Request>compiled[1]
        cdef Request copy = copy_request(request)
        cdef SumConstraint part, no_limit
        cdef cnp.ndarray weight
        cdef const char* name
        if request.where is not None:
            mask = self.mask_of(request.where, table)
            copy.referenced_arrays.append(mask)
            copy.where = mask
            copy.query.mask = <const unsigned char*>cnp.PyArray_DATA(<cnp.ndarray>mask)
            copy.query.masked = len(mask)
        for limit in request.limits:
            if limit.kind != "sum":
                continue
            part = no_limit
            part.amount, part.at_least = limit.amount, limit.side == ">="
            if isinstance(limit.of, (str, np.ndarray)):
                weight, part.by_length, unit = self.limit_weights(limit, table)
                part.amount = limit.reachable(unit)
                copy.referenced_arrays.append(weight)
                part.weight = <const double*>cnp.PyArray_DATA(weight)
            else:
                capsule = limit.of.capsule(table.dtype)
                name = PyCapsule_GetName(capsule)
                if name == NULL or strcmp(name, STATIC_NAME) != 0:
                    raise TypeError(
                        f"a limit's function must not depend on the start: {limit.of!r}")
                copy.referenced_arrays += (capsule, table)
                part.function = <UseFunction>PyCapsule_GetPointer(capsule, STATIC_NAME)
                part.records = <const char*>cnp.PyArray_DATA(table)
                part.stride = cnp.PyArray_STRIDE(table, 0)
            copy.sums.all.push_back(part)
        copy.sums.rows = len(table)
        if copy.sums.all.size():
            copy.query.limits = &copy.sums
        cdef CompiledRules rules
        if request.rules:
            if copy.sums.all.size():
                raise ValueError("limits on sums and group rules (within, distinct, most) of one "
                                 "request are not supported together")
            rules = compiled_rules(self, request.rules, table)
            if not supports_rules(rules.rules, request.query.n):
                raise ValueError(
                    f"group rules on these levels are not supported for {request.query.n} nodes: "
                    "their table would be too large; bound fewer groups, or one level")
            copy.referenced_arrays.append(rules)
            copy.query.groups = &rules.rules
        if not self.borrowed:
            request.compiled = table, copy
        return copy

    cdef Request compile_listed_request(self, Request request, i):
        """Compile request i of a list; an error names the request."""
        try:
            return self.compile_request(request)
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(named(request.name or f"requests[{i}]", error)) from None

    cdef object limit_weights(self, object limit, object table):
        """Return (weights, by_length, unit) of a limit on columns or on an array."""
        of = limit.of
        if not isinstance(of, str):
            self.require_original_rows("a limit")
            if len(of) != len(table):
                raise ValueError(
                    f"a limit has {len(of)} values for {len(table)} slots; "
                    "an array must match the searched array row by row"
                )
            return of, False, limit.unit
        key = "sum", of
        uses = self.cached_column(key, table)
        if uses is None:
            from slotkern.expressions.limits import uses_of
            uses = uses_of(of, table)
            uses = *uses, uses.unit()
            self.cache_column(key, uses, table)
        return uses

    def require_original_rows(self, name):
        """Raise ValueError for an argument with one value for each row if the rows have changed."""
        if self.changed or self.origin is not None:
            raise ValueError(
                f"{name} is an array, but the pool has changed since its slots had these rows; "
                "use an expression or a field"
            )

    # Methods that ChangingSlots overrides.

    cdef object array(self):
        """Return the free slots."""
        return self.table

    def _free(self):
        """Return the free slots, and their origin rows (None: these are the original rows)."""
        return self.table, self.origin

    cdef PreparedSlots snapshot(self):
        """Return an immutable copy of the current slots; its rows are in the order of `array`."""
        return self

    cdef PreparedSlots snapshot_for(self, const Query& query):
        """Return a snapshot for one search; slots that the query cannot use may be missing."""
        return self.snapshot()

    cdef Status lock_for_search(self, double least_volume) except *:
        """Lock for searches with this volume or more; on ok, call unlock_after_search() later."""
        return Status.ok

    cdef void unlock_after_search(self) noexcept nogil:
        pass

    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape):
        cdef Answer answer
        cdef InterruptScope interrupts
        while attempt(interrupts, answer.status):
            if (self.prepared.nodes.size() < LARGE and query.limits == NULL
                    and query.groups == NULL):
                answer = find_window(self.prepared, self.costs, query, criterion, shape)
            else:
                with nogil:
                    answer = find_window(self.prepared, self.costs, query, criterion, shape)
        return answer

    cdef Status search_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                           unsigned threads, CWindowTable& out, size_t& failed_query) except *:
        cdef Status status = Status.ok
        cdef double least_volume = INFINITY
        cdef size_t i
        for i in range(queries.size()):
            least_volume = min(least_volume, queries[i].volume)
        cdef InterruptScope interrupts  # of this module: each module has its own polling state
        while attempt(interrupts, status, queries.size() > MANY):
            status = self.lock_for_search(least_volume)
            if status != Status.ok:
                break
            with nogil:
                if self.changed:  # the pool's cost cache serves one search at a time
                    status = find_windows(self.prepared, queries, criterion, shape, threads, out,
                                       failed_query)
                else:
                    status = find_windows(self.prepared, self.costs, queries, criterion, shape,
                                       threads, out, failed_query)
                self.unlock_after_search()
        return status

    cdef Status search_together(self, vector[Query]& roles, ShapeKind shape,
                                CWindowTable& out) except *:
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        while attempt(interrupts, status):
            with nogil:
                status = find_together(self.prepared, roles, shape, out)
        return status


def unpickle_slots(slots, context):
    """Return unpickled PreparedSlots."""
    return prepare_with_context(slots, context)


cdef IndexOptions current_options  # of the slots that are prepared from now on


def index_options(*, bint small=False, **changes):
    """Set the options of the search structures for slots prepared from now on; return them.

    For tests and benchmarks. Starts from the defaults, or from the options for small pools.
    """
    global current_options
    cdef IndexOptions defaults
    options = small_pool_options() if small else defaults
    unknown = changes.keys() - options
    if unknown:
        raise TypeError(f"no options: {', '.join(sorted(unknown))}")
    current_options = {**options, **changes}
    return current_options


cdef int prepare(PreparedSlots self, object slots, bint both, ShapeKind shape, size_t n) except -1:
    cdef SlotView view
    view_slots(slots, &view)
    self.prepared.options = current_options
    cdef Fault fault
    cdef InterruptScope interrupts
    while attempt(interrupts, fault.status):
        with nogil:
            fault = prepare_slots(self.prepared, view, both, shape, n)
    if fault.status != Status.ok:
        raise fault_error(fault, slots)
    return attach_tariffs(self, slots)


cdef int prepare_all(PreparedSlots self, object slots) except -1:
    """Prepare a copy of a slot array for all searches."""
    prepare(self, slots, True, ShapeKind.square, 0)
    self.table = np.array(slots)
    self.table.flags.writeable = False
    return 0


cdef PreparedSlots prepare_with_context(object slots, object context):
    """Return prepared slots of an array with this context."""
    cdef PreparedSlots self = PreparedSlots.__new__(PreparedSlots)
    self.column_cache, self.context = {}, context
    prepare_all(self, slots)
    return self


cdef PreparedSlots as_prepared(object slots, bint both, ShapeKind shape, size_t n):
    """Return a pool itself, or slots prepared for one call with n nodes and this shape."""
    if isinstance(slots, PreparedSlots):
        return <PreparedSlots>slots
    cdef PreparedSlots pool = PreparedSlots.__new__(PreparedSlots)
    pool.column_cache, pool.context = {}, context_of(slots)
    slots = as_slot_array(slots)
    prepare(pool, slots, both, shape, n)
    pool.table, pool.borrowed = slots, True
    return pool


def prepare_snapshot(slots):
    """Return prepared slots: of an array, or a snapshot of a pool."""
    if isinstance(slots, PreparedSlots):
        return (<PreparedSlots>slots).snapshot()
    return PreparedSlots(slots)


def check_volume(slots, Request request not None):
    """Raise ValueError if the volume is so small that a part's end equals its start."""
    cdef PreparedSlots pool = prepare_snapshot(slots)
    request = pool.compile_request(request)
    cdef Status status = pool.prepared.check(request.query)
    if status != Status.ok:
        raise search_error(status, request.query)


def filter_rows(slots, where):
    """Return the slot array of `slots`, and its rows that pass `where` (None: all)."""
    cdef PreparedSlots pool
    if isinstance(slots, PreparedSlots):
        pool = (<PreparedSlots>slots).snapshot()
    else:
        pool = PreparedSlots.__new__(PreparedSlots)
        pool.column_cache, pool.context = {}, context_of(slots)
        slots = as_slot_array(slots)
        check_slots(slots)
        pool.table = slots
    return pool.slots, pool.mask_of(where, pool.table)


cdef object context_of(object slots):
    """Return the SlotContext of slots, or None if they have no clock and no machine."""
    if isinstance(slots, PreparedSlots):
        return (<PreparedSlots>slots).context
    if isinstance(slots, np.ndarray):
        return None
    return context_of_object(slots)


cpdef Request resolve_times(object slots, Request request, object position=None,
                            bint knows_capacities=False):
    """Return the request with dates and durations converted to numbers by the slots' clock.

    The result is cached in the request for one clock. Errors name the request, or its
    `position` in a list if it has no name. A search that does not keep the capacities of a pool
    refuses a request that they limit.
    """
    cdef Caps capacities
    if not knows_capacities:
        capacities = ((<PreparedSlots>slots).capacities if isinstance(slots, PreparedSlots)
                      else getattr(slots, "_capacities", None))
        if capacities is not None and capacities.applies(request):
            who = request.name or ("the request" if position is None else f"requests[{position}]")
            kind = "SlotPool" if isinstance(slots, PreparedSlots) else type(slots).__name__
            raise ValueError(
                f"{who}: this search does not keep the capacities and quotas of a pool; "
                f"{kind}.find and {kind}.schedule of single requests do")
    if request.as_given is None:
        return request
    context = context_of(slots)
    clock = None if context is None else context.clock
    if request.resolved is None or request.resolved[0] is not clock:
        request.resolved = clock, convert_times(request, clock, position)
    return request.resolved[1]


def overlap(free, booked):
    """Return True if two spans of one node overlap; both arrays are sorted by (node, start).

    Merges the arrays in O(len(free) + len(booked)).
    """
    cdef const int32_t[:] nodes = free["node"], more_nodes = booked["node"]
    cdef const double[:] starts = free["start"], more_starts = booked["start"]
    cdef const double[:] ends = free["end"], more_ends = booked["end"]
    cdef size_t i = 0, j = 0, size = len(free), more = len(booked)
    cdef int32_t node, last = -1
    cdef double start, end, until = 0
    while i < size or j < more:
        if j == more or i < size and (nodes[i] < more_nodes[j] or (
                nodes[i] == more_nodes[j] and starts[i] < more_starts[j])):
            node, start, end = nodes[i], starts[i], ends[i]
            i += 1
        else:
            node, start, end = more_nodes[j], more_starts[j], more_ends[j]
            j += 1
        if node == last and start < until:
            return True
        last, until = node, end
    return False

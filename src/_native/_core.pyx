"""The door of slots and requests: check, prepare once, search often."""

import numpy as np

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t

from slotkern._base cimport (
    Fault, Status, Watch, ask, error_of, hears, name_of, number,
)
from slotkern._kernels cimport (
    Answer, CPreparedSlots, Query, ShapeKind, SlotView, check, find, prepare_slots,
)

from slotkern.checks import integer
from slotkern.errors import slot_error

cnp.import_array()

cdef extern from "<limits>" nogil:
    double DBL_MAX "std::numeric_limits<double>::max()"

SLOT = np.dtype(
    [("node", "i4"), ("start", "f8"), ("end", "f8"), ("performance", "f8"), ("price", "f8")],
    align=True,
)
inf = float("inf")  # the name that the signature of Request shows
cdef object MOST_NODES = 0x7FFFFFFF

# Slots of so many nodes are searched without the GIL: below, handing it over costs more.
cdef size_t LARGE = 8192


# --- requests

cdef object checked_where(object where):
    if where is None:
        return None
    if isinstance(where, str):
        from slotkern.where import compile_where
        compile_where(where)
        return where
    array = np.asarray(where)
    if array.dtype != np.bool_ or array.ndim != 1:
        raise TypeError(
            "where must be an expression or a one-dimensional boolean array, "
            f"got {type(where).__name__} of dtype {array.dtype}, {array.ndim}-dimensional"
        )
    array = array.copy()
    array.flags.writeable = False
    return array


cdef class Request:
    """Request(nodes, volume, *, budget=inf, min_performance=0.0, earliest=-inf, deadline=inf,
            max_price=inf, where=None)
--

    What a job asks for: n nodes at once, for a volume of work on each.

    Parameters
    ----------
    nodes : int
        How many different nodes, starting together; at least 1.
    volume : float
        Work per node, > 0. A node of performance p needs ``volume / p`` time.
    budget : float, optional
        The most money for all parts together; inf by default.
    min_performance : float, optional
        Least performance of every node.
    earliest : float, optional
        Earliest start; -inf, the default, for as early as slots are free.
    deadline : float, optional
        Latest end of every part; not before `earliest`.
    max_price : float, optional
        Highest price per time unit of every single slot (the papers' ALP).
    where : str or array of bool, optional
        A filter: an expression over slot columns such as
        ``"memory >= 64 and site == 'a'"`` (parsed, never evaluated as Python), or one
        boolean for each row of exactly the array that will be searched.

    Raises
    ------
    ValueError, TypeError
        Naming the field and its value.

    Examples
    --------
    >>> import slotkern as sk
    >>> sk.Request(5, 150, budget=1500)
    Request(nodes=5, volume=150.0, budget=1500.0)
    """

    def __init__(self, nodes, volume, *, budget=inf, min_performance=0.0, earliest=-inf,
                 deadline=inf, max_price=inf, where=None):
        if type(nodes) is int and 1 <= nodes <= MOST_NODES:
            self.query.n = nodes
        else:
            self.query.n = integer("nodes", nodes, 1, MOST_NODES)
        self.query.volume = number(volume, "volume")
        if not (self.query.volume > 0 and isfinite(self.query.volume)):
            raise ValueError(f"volume must be positive and finite, got {volume!r}")
        self.query.budget = number(budget, "budget", 0)
        self.query.min_performance = number(min_performance, "min_performance", 0, True)
        self.query.earliest = number(earliest, "earliest")
        if self.query.earliest == INFINITY:
            raise ValueError(f"earliest must not be {earliest!r}")
        self.query.deadline = number(deadline, "deadline")
        if self.query.deadline == -INFINITY:
            raise ValueError(f"deadline must not be {deadline!r}")
        if self.query.earliest > self.query.deadline:
            raise ValueError(f"earliest {earliest!r} lies after deadline {deadline!r}")
        self.query.deadline = min(self.query.deadline, DBL_MAX)
        self.query.max_price = number(max_price, "max_price", 0)
        self.query.mask = NULL
        self.where = checked_where(where)

    @property
    def nodes(self):
        """How many different nodes."""
        return self.query.n

    @property
    def volume(self):
        """Work per node."""
        return self.query.volume

    @property
    def budget(self):
        """The most money for all parts together."""
        return self.query.budget

    @property
    def min_performance(self):
        """Least performance of every node."""
        return self.query.min_performance

    @property
    def earliest(self):
        """Earliest start; -inf for none."""
        return self.query.earliest

    @property
    def deadline(self):
        """Latest end of every part."""
        return INFINITY if self.query.deadline == DBL_MAX else self.query.deadline

    @property
    def max_price(self):
        """Highest price per time unit of every single slot."""
        return self.query.max_price

    def _fields(self):
        return {
            "nodes": self.nodes, "volume": self.volume, "budget": self.budget,
            "min_performance": self.min_performance, "earliest": self.earliest,
            "deadline": self.deadline, "max_price": self.max_price, "where": self.where,
        }

    def replace(self, **changes):
        """The same request with some fields changed."""
        return _make_request({**self._fields(), **changes})

    def __repr__(self):
        defaults = Request(1, 1)._fields()
        shown = [f"nodes={self.nodes}", f"volume={self.volume!r}"]
        for name, value in list(self._fields().items())[2:]:
            if value is not defaults[name] and not (
                isinstance(value, float) and value == defaults[name]
            ):
                shown.append(f"{name}={value!r}")
        return f"Request({', '.join(shown)})"

    def __eq__(self, other):
        if not isinstance(other, Request):
            return NotImplemented
        mine, theirs = self._fields(), other._fields()
        return np.array_equal(mine.pop("where"), theirs.pop("where")) and mine == theirs

    def __hash__(self):
        fields = self._fields()
        where = fields.pop("where")
        return hash((*fields.values(), where if isinstance(where, str) else None))

    def __reduce__(self):
        return _make_request, (self._fields(),)


def _make_request(fields):
    return Request(fields.pop("nodes"), fields.pop("volume"), **fields)


REQUEST_FIELDS = tuple(Request(1, 1)._fields())


cdef Request request_with(Request request, object mask):
    """A copy whose query points at the mask, which it keeps alive."""
    cdef Request copy = Request.__new__(Request)
    copy.query = request.query
    copy.where = mask
    copy.query.mask = <const unsigned char*>cnp.PyArray_DATA(<cnp.ndarray>mask)
    copy.query.masked = len(mask)
    return copy


cdef bint lasting(object where) except -1:
    """Whether a filter lets in the same slots after bookings, and is no array of rows."""
    if where is None:
        return True
    if not isinstance(where, str):
        return False
    from slotkern.where import columns
    return columns(where).isdisjoint(("start", "end"))


cdef object search_error(Status status, Query query):
    return error_of(status, "search", {"volume": query.volume})


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
    if cnp.PyArray_Check(slots) or isinstance(slots, PreparedSlots):
        return slots
    held = getattr(slots, "slots", None)
    fields = getattr(getattr(held, "dtype", None), "names", None) or ()
    return held if "performance" in fields else slots  # a Window's have none


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
    if fault.status == Status.no_memory or fault.status == Status.internal:
        return error_of(fault.status, "prepare the slots")
    return slot_error(name_of(fault.status), slots, fault.row, fault.other)


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
        """`find_window` on these slots as they are now."""
        from slotkern._find import find_window
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

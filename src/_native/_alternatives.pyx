"""The door of alternatives: all disjoint windows of a request, held in arrays."""

import numpy as np

cimport numpy as cnp

from slotkern._base cimport Status, InterruptScope, ask, error_of, hears
from slotkern._core cimport PreparedSlots, in_numbers, pool_of, terms_of
from slotkern._kernels cimport CPreparedSlots, Query, ShapeKind
from slotkern._request cimport Request, lasting, shape_of
from slotkern._windows cimport CWindowTable, WindowTable, gathered

from slotkern.checks import visible

cnp.import_array()

cdef extern from "slotkern/window/alternatives.hpp" namespace "slotkern" nogil:
    const size_t kMaxParts, kMaxLive
    Status find_alternatives(const CPreparedSlots&, const Query&, ShapeKind, size_t, CWindowTable&) noexcept

#: The criteria that are attributes of a window, all the better the less.
ATTRIBUTES = {name: name for name in ("start", "finish", "runtime", "cost", "processor_time")}
ATTRIBUTES["first"] = "start"
MOST_PARTS = kMaxParts


cdef class Alternatives(WindowTable):
    """Alternatives()
--

    Windows of one request that share no slot time, in the order they were found.

    A `WindowTable`: indexing gives a `Window`, slicing gives `Alternatives`. Nothing is
    built for a window before it is asked for.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time : ndarray of float64, shape (k,)
        Of each window.
    table : structured array, shape (k,)
        The same and each window's value, as fields.
    parts : structured array, shape (k, n)
        The parts of each window as in `Window.slots`, ascending by node.
    criterion, shape : str
        What was asked for.
    """

    cdef Py_ssize_t n
    cdef readonly object searched  # the free slots, and their rows of a changed pool's origin or None
    cdef PreparedSlots pool  # of them, when first needed

    def __init__(self, *_args, **_options):
        raise TypeError("Alternatives are made by find_alternatives")

    @classmethod
    def of(cls, windows, **options):
        """Not of some windows: what is left free beside them is not known."""
        raise TypeError("Alternatives are made by find_alternatives; see WindowTable.of")

    cdef str things(self):
        return "alternatives"

    cdef WindowTable chosen(self, object rows):
        cdef Alternatives some = WindowTable.chosen(self, rows)
        some.n, some.searched = self.n, self.searched
        return some

    @property
    def parts(self):
        """The parts of every window, shape (k, n): row, node, start, end, cost."""
        return self.flat_parts().reshape(len(self), self.n)

    def best(self, criterion="finish"):
        """The window that is best by a criterion, the first of equals; None if empty.

        Parameters
        ----------
        criterion : optional
            Whatever `find_window` takes: a built-in name, a numeric field of the slots or an
            array with one value a row (the largest sum over the parts), ``minimize(...)``, or
            a function made by ``@criterion``. The placement criteria look at the tasks beside
            the free slots that were searched: the other alternatives do not count.

        Raises
        ------
        ValueError, TypeError
            As `find_window`.

        Notes
        -----
        The best of the alternatives is the papers' MultipleBest and CSA; `find_window` finds
        the best of all windows. O(k n); at the first criterion that is not an attribute,
        O(m log m) for the m slots that were searched. Their array is not copied.

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
        """The alternatives that no other one of them dominates: not the job's Pareto front.

        These alternatives are disjoint windows, found one after the other; other windows
        of the job may dominate all of them. `slotkern.pareto` finds the job's front.

        A window dominates another if it is as good by all criteria and better by one.
        Equals stay together. The best by the first criterion comes first.

        Parameters
        ----------
        *criteria
            Two or more of what `best` takes.

        Returns
        -------
        Alternatives

        Raises
        ------
        ValueError
            For fewer than two criteria, and as `best`.

        Notes
        -----
        O(k log k) for two criteria, O(k * front) for more, and as `best`.

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
        front = []  # rows of `values` not beaten so far; later ones never beat earlier
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
        return self.chosen(order[front].tolist())

    def _losses(self, criterion):
        """One number a window, the less the better."""
        if isinstance(criterion, str) and criterion in ATTRIBUTES:
            return self.table[ATTRIBUTES[criterion]]
        from slotkern.criteria import values_of_windows
        if self.pool is None:
            self.pool = PreparedSlots(self.searched[0])
            self.pool.origin = self.searched[1]
        parts = self.parts
        rows = parts["row"]
        if self.pool.origin is not None:
            rows = rows_that_hold(self.pool.slots, parts)
        values, more = values_of_windows(criterion, self.pool, rows, parts, self._lengths())
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
        return gather, (list(self), self.n, self.criterion, self.shape, self.searched)


cdef Alternatives empty(Py_ssize_t n, str criterion, str shape, object searched):
    cdef Alternatives self = Alternatives.__new__(Alternatives)
    self.n, self.criterion, self.shape, self.searched = n, criterion, shape, searched
    return self


def searched_slots(slots):
    """What `gather` wants: the slots that are free now, and of which rows of origin they are."""
    if not isinstance(slots, PreparedSlots):
        return slots, None
    return slots._free()


def rows_that_hold(slots, parts):
    """The row of the slot that holds each part: the last on its node to start by then."""
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


def gather(windows, n, criterion, shape, searched):
    """Alternatives from windows of n parts found in `searched`."""
    cdef Alternatives self = gathered(Alternatives, windows, criterion, shape)
    self.n, self.searched = n, searched
    return self


cdef dict crowd(nodes):
    """How many alternatives are too many: more than MOST_PARTS parts."""
    many = f"{MOST_PARTS // nodes:,} alternatives of {nodes} nodes, {MOST_PARTS:,} parts"
    return {"many": many, "cap": "a limit", "asked": "request", "live": kMaxLive}


def too_many(nodes):
    """The error of a search that would give more than MOST_PARTS parts."""
    return error_of(Status.too_many, "search", crowd(nodes))


def endless():
    """The error of a search that would never end."""
    return error_of(Status.endless, "search")


def first_alternatives(slots, Request request not None, str shape, limit):
    """All windows by the criterion "first", at most `limit` (None: all)."""
    cdef PreparedSlots pool
    cdef Query query
    cdef Status status
    cdef ShapeKind form = shape_of(shape)
    cdef size_t most = <size_t>-1 if limit is None else min(limit, 2**62)
    request = in_numbers(slots, request)
    cdef Alternatives self = empty(request.query.n, "first", shape, searched_slots(slots))
    self.terms = terms_of(slots)
    cdef size_t k
    pool = pool_of(slots, False, form, request.query.n)
    cdef bint changed = pool.changed
    if changed and not lasting(request):
        pool = pool.settled()
    cdef Request bound = pool.bound(request)
    query = bound.query
    cdef InterruptScope watch
    watch.arm(hears())
    status = Status.interrupted
    while status == Status.interrupted:
        ask(watch)
        self.windows.clear()
        status = pool.enter(query.volume)
        if status == Status.ok:
            with nogil:
                status = find_alternatives(pool.prepared, query, form, most, self.windows)
                pool.leave()
    if status != Status.ok:
        raise error_of(status, "search", {"volume": request.volume, **crowd(self.n)})
    if not changed and pool.changed and not lasting(request):  # changed before it was locked
        return first_alternatives(slots, request, shape, limit)
    if pool.origin is not None:  # rows of the free slots, prepared anew
        for k in range(self.windows.parts.size()):
            self.windows.parts[k].row = pool.origin[self.windows.parts[k].row]
    if request.name is not None:
        self.names = [request.name] * len(self)
    return self

# Alternatives: all windows of one request, which share no time of a node.

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

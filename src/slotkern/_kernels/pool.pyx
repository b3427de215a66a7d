"""Binding of pools: search, book, release, advance and schedule on changing free time.

The included files hold the parts around SlotPool: spans, results, the lock, and saved states.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_MAX
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.utility cimport move
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status, InterruptScope, attempt, status_error, is_main_thread
from slotkern._kernels.headers cimport (
    Part, Query, ShapeKind, Answer, CPreparedSlots, CWindowTable, find_window,
)
from slotkern._kernels.request cimport Request, is_booking_invariant, parse_shape
from slotkern._kernels.slots cimport PreparedSlots, resolve_times, LARGE, MANY
from slotkern._kernels.windows cimport Window, WindowTable, table_from_windows

from slotkern._kernels.base import REASONS
from slotkern._kernels.search import CRITERIA
from slotkern._kernels.slots import CLOSURE, SPAN, as_slot_array, check_slots
from slotkern.display.table import Table
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import integer, meant, number
from slotkern.foundation.errors import SlotError
from slotkern.slots import in_order, row_order

cnp.import_array()

include "pool_spans.pxi"
include "pool_bookings.pxi"
include "pool_changing.pxi"

cdef extern from "slotkern/pool/schedule.hpp" namespace "slotkern" nogil:
    cdef cppclass WindowParts:
        WindowParts()
        double start
        const Part* parts
        size_t n
    Status book_all(CSlotPool&, const vector[WindowParts]&, size_t&, size_t&) noexcept
    Status all_booked(CSlotPool&, const vector[WindowParts]&, size_t&, size_t&) noexcept
    Status release(CSlotPool&, double, const Part*, size_t, size_t&) noexcept
    Status advance(CSlotPool&, double) noexcept
    Status remove_node(CSlotPool&, int32_t) noexcept
    Status close_nodes(CSlotPool&, const vector[int32_t]&, const vector[int32_t]&,
                       const vector[Span]&) noexcept

NO_CLOSURES = np.empty(0, CLOSURE)

cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}


cdef class SlotPool(ChangingSlots):
    """SlotPool(slots, *, clock=None, machine=None)
--

    Free slots that are prepared once for many searches, and can be booked and released.

    Every function that takes ``slots`` accepts a pool. Before the first change a pool consists
    of the structures of every search: columns, zone maps and nodes. The first change builds
    the structures for changes in O(m log m): lists of free and booked time for each node, and
    blocks of slots in order of time. Later changes update a few rows.

    Parameters
    ----------
    slots : structured array, Environment or FreeSlots
        As for `find_window`: the fields of `SLOT`, sorted by (start, node). Copied. FreeSlots
        provide their clock and machine.
    clock : Clock, optional
        Converts dates to times: requests may contain dates, and windows have times and dates.
    machine : Machine, optional
        The names of the nodes.

    Attributes
    ----------
    slots : structured array
        The current free slots, sorted by (start, node): a read-only snapshot.
    origin : structured array
        The given slots, followed by those of `add_slots`. ``Window.slots["row"]`` is a row of
        this array.
    booked : structured array
        Booked parts that are not past: row (of origin), node, start, end, and owner (empty:
        none). Includes time that a disabled node or a reservation withholds.
    closed : structured array
        Closed time of nodes that is not past: node, start, end, owner, and `disabled`: True
        if closed by `disable`, False if covered by a reservation.
    nodes : ndarray of int32
        The node ids, ascending, without removed nodes.
    now : float
        The last argument of `advance`; -inf initially.

    Raises
    ------
    ValueError, TypeError
        For an invalid slot; the message contains the first invalid row, the field and the
        value.

    Notes
    -----
    *Searches.* Every search returns the result of `find_window` on ``pool.slots``, with rows
    of ``pool.origin``. The criteria of `CRITERIA` run on the changed pool directly, also with
    a filter expression, whose rows are evaluated once. All other searches (filters on start
    or end, other criteria, the methods "lite" and "published", `explain`, batches) run on a
    snapshot, which is prepared in O(m log m) and reused until the next change. After the
    first change, boolean filters and value arrays, also inside `minimize`, raise ValueError,
    because they do not match the rows of the slots.

    *Caches.* A search for the earliest start stores a lower bound: this request, and any that
    is at least as hard, cannot start before the time found. Bookings preserve the bound; a
    release lowers it only for requests that the freed slot could serve. Searches for the
    cheapest ragged window store lower bounds of cost for each time bucket, once searches have
    spent about the effort of building them. The first change discards these
    bounds, and a release those of its time. See the guide "loop".

    *Threads.* Searches may run in several threads at the same time. `book`, `release`,
    `schedule` and the other changes wait for each other and for searches, without holding the
    GIL. Searches of a changed pool run one after another.

    *Memory.* In addition to the copy of the slots, about 90 bytes for each slot; after the
    first change 180 bytes for each slot, 32 for each booked part, and up to 140 for each slot
    for cached cost bounds. Before the first change, cost bounds take up to 180 bytes for each
    slot, and 140 for each further thread of up to four that search at the same time. A
    snapshot needs the memory of an initial pool.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=[0, 2], end=[9, 9], performance=[1, 2],
    ...                       price=[1, 3])
    >>> pool = sk.SlotPool(slots)
    >>> window = pool.find(sk.Request(2, 4))
    >>> pool.book(window)
    >>> pool.slots[["node", "start", "end"]].tolist()
    [(0, 0.0, 2.0), (0, 6.0, 9.0), (1, 6.0, 9.0)]
    >>> pool.release(window)
    >>> pool.slots.tolist() == slots.tolist()
    True
    """

    def __cinit__(self):
        self.owners_by_window, self._generations = {}, {}
        self._closures, self.purge_threshold = NO_CLOSURES, 64
        self.limit_numbers, self.compiled_limits = {}, []

    # --- reading

    @property
    def origin(self):
        """The given and added slots; rows of windows refer to this array."""
        return self.table

    @property
    def now(self):
        """The current time: no slot is free before it."""
        return self.pool.now()

    @property
    def nodes(self):
        """The node ids, ascending (int32), without removed nodes."""
        ids = PreparedSlots.nodes.__get__(self)
        return np.setdiff1d(ids, self._state()["gone"]) if self.changed else ids

    @property
    def booked(self):
        """Booked parts that are not past, by (node, start): row, node, start, end, owner."""
        from slotkern.pool.closures import booked_spans
        spans, owners = booked_spans(self)
        table = np.empty(len(spans), [*[(n, SPAN[n]) for n in SPAN.names], ("owner", owners.dtype)])
        for name in SPAN.names:
            table[name] = spans[name]
        table["owner"] = owners
        return table

    @property
    def owners(self):
        """The owners of windows or reservations that are not past, by their first booking."""
        closed = self.closed
        more = closed["owner"][~closed["disabled"]].tolist()
        return list(dict.fromkeys([*(owner for _, owner in self._owned_windows()), *more]))

    @property
    def closed(self):
        """Closed time that is not past: node, start, end, owner, disabled."""
        closures = self._closures  # another thread may replace them
        return closures[closures["end"] > self.pool.now()]

    def _full_state_and_closures(self):
        """Return (origin, state, now, closures), consistent with each other; see `_state`."""
        while True:
            closures = self._closures
            state = self._full_state()
            if self._closures is closures:
                return *state, closures

    def windows(self, owner=None):
        """Return the windows of an owner (None: all owners) that are not past, in booking order."""
        return [window for window, other in self._owned_windows() if owner in (None, other)]

    def bookings(self, *, nodes=None, during=None):
        """Return the windows of all owners as a table with names and dates.

        Parameters
        ----------
        nodes : str, int or sequence of them, optional
            Only windows with a part on one of these nodes, by name or id.
        during : pair of float, date or str, optional
            Only windows with a part that overlaps the span (start, end); None as start or end
            means unbounded. With `nodes`, one part must satisfy both conditions.

        Returns
        -------
        structured array
            One row for each window, in booking order: owner, name (of the request), nodes
            (their names), start, finish, cost; with a clock also start_time and finish_time,
            as text in its zone.

        Raises
        ------
        ValueError, TypeError
            For an unknown node, and for a span that does not end after it starts.
        """
        from slotkern.pool.closures import windows_within
        from slotkern.pool.ledger import window_rows
        pairs = self._owned_windows()
        if nodes is not None or during is not None:
            pairs = windows_within(self, pairs, nodes, during)
        return window_rows([window for window, _ in pairs], self.context,
                           owner=[owner for _, owner in pairs])

    def _as_table(self):
        """Return the free slots as a table for display."""
        booked = len(self._state()["booked"])
        facts = {"booked parts": booked or None, "owners": ", ".join(self.owners) or None}
        return Table.from_array(repr(self), self.slots, context=self.context, times=("start", "end"),
                        facts=facts)

    def by_node(self):
        """Yield pairs of a node id and its free slots, ascending by node."""
        slots = self.slots
        order = np.lexsort((slots["start"], slots["node"]))
        ids, firsts = np.unique(slots["node"][order], return_index=True)
        for node, rows in zip(ids.tolist(), np.split(order, firsts[1:])):
            yield node, slots[rows]

    def find_alternatives(self, request, criterion="first", **options):
        """Return `find_alternatives` of this pool, without a change; same arguments and errors."""
        return adapter("find_alternatives")(self, request, criterion, **options)

    def handle(self):
        """Return the address for functions of `slotkern.numba`, valid while the pool exists."""
        self.lock_for_change()
        self.mutex.unlock()
        self.c_handle.pool = &self.pool
        self.c_handle.mutex = &self.mutex
        return <size_t>&self.c_handle

    def limits_handle(self, limits):
        """Return the number of these limits for requests of `slotkern.numba` and of Cython.

        Parameters
        ----------
        limits : str, Limit, or sequence of those
            As for `Request`; only expressions over columns that bookings do not change.

        Returns
        -------
        int
            0 for no limits. Equal limits have the same number. Valid only for this pool, until
            `add_slots`; otherwise searches return an error.

        Raises
        ------
        ValueError
            For arrays, functions, and terms with ``start`` or ``end``.

        Examples
        --------
        >>> import slotkern as sk
        >>> slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2, gb=[4, 8])
        >>> sk.SlotPool(slots).limits_handle("sum(gb) >= 8")
        1
        """
        cdef Request request = Request(1, 1, limits=limits)
        if not request.limits:
            return 0
        if not is_booking_invariant(request):
            raise ValueError(
                "limits with a handle must be terms over columns other than start and end, "
                "which change with every booking"
            )
        known = self.limit_numbers.get(request.limits)
        if known is not None and known[0] is self.table:
            return known[1]
        number = 0
        while not number:  # retry if another thread adds slots
            table, compiled = self.table, self.compile_request(request)
            self.lock()
            try:
                if self.table is table:
                    self.c_handle.limits.push_back((<Request>compiled).query.limits)
                    number = self.c_handle.limits.size()
                    self.compiled_limits.append(compiled)
            finally:
                self.mutex.unlock()
        # Outside the lock, because hashing may run Python code.
        self.limit_numbers[request.limits] = table, number
        return number

    cdef void invalidate_limits(self):
        """Invalidate the limits of the handle after a change of origin; numbers are not reused.

        The caller holds the lock.
        """
        cdef size_t i
        for i in range(self.c_handle.limits.size()):
            self.c_handle.limits[i] = NULL
        self.compiled_limits.clear()

    # --- writing

    def book(self, window, owner=None):
        """Remove the time of a window, or of all windows of a schedule, from the free slots.

        Parameters
        ----------
        window : Window, or sequence of Window and None
            A window found in this pool or in its original array; a `Schedule` of a batch, or
            a sequence of windows, which are booked all or none.
        owner : str, optional
            Owner of the windows; see `bookings`, `windows` and `release`.

        Raises
        ------
        ValueError
            If a part is not free; the message contains its node and time, and the pool is
            unchanged.

        Notes
        -----
        O(n (log m + 64 + slots of the node)) for n parts. A part that ends within 4 ulp of
        its slot's end is booked up to that end. Ctrl-C releases what has been booked so far,
        which takes about as long as booking it.
        """
        cdef list windows
        cdef vector[WindowParts] parts
        cdef size_t failed_window = 0, failed_part = 0
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        if isinstance(window, Window):
            windows = [window]
        elif window is None:
            raise TypeError("there is no window to book: the search returned None; "
                            "call explain for the reason")
        else:
            windows = [item for item in window if item is not None]
        for item in windows:
            if not isinstance(item, Window):
                raise TypeError(f"only windows can be booked, got {type(item).__name__}")
        collect_parts(windows, parts)
        if owner is not None:
            check_owner(owner)
        while attempt(interrupts, status):
            self.lock_for_change()
            if parts.size() == 1:  # releasing the GIL costs more than booking one window
                status = book_all(self.pool, parts, failed_window, failed_part)
                self.mutex.unlock()
            else:
                with nogil:
                    status = book_all(self.pool, parts, failed_window, failed_part)
                    self.mutex.unlock()
        if status != Status.ok:
            part = describe_part(windows[failed_window], failed_part)
            raise status_error(status, "book", {"what": "the window", "part": part})
        if owner is not None:
            self.record_owner(windows, owner)

    # No Python code runs between a change of the pool and the update of the owners, so a signal
    # handler runs before both or after both.
    cdef int record_owner(self, list windows, str owner) except -1:
        self.owners_by_window.update(dict.fromkeys(windows, owner))
        return 0

    def reserve(self, nodes, start, end, *, owner=None, partly=False):
        """Book given nodes for a given time, for existing jobs or maintenance.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names of the machine's nodes, or ids.
        start, end : float, date or str
            The span [start, end), finite.
        owner : str, optional
            Owner of the reservation, as in ``"maintenance"``.
        partly : bool
            True: book the free part of the span and skip the rest. With an owner, the
            reservation also covers the rest: time that is released there later stays
            unavailable until the owner is released.

        Returns
        -------
        list of Window
            One window for each time at which parts start; each can be released separately.

        Raises
        ------
        ValueError, TypeError
            For time that is not free (unless `partly`; the message contains node and time), an
            unknown node, or a span that ends before it starts. The pool is then unchanged.

        Notes
        -----
        O(m) for m free slots. A part is stored as start and length; if their sum is rounded,
        the part ends about one ulp before `end`, never after it.
        """
        from slotkern.pool.ledger import reservation
        if owner is not None:
            check_owner(owner)
        windows, gaps = reservation(self, nodes, start, end, partly)
        self.book(windows, owner)
        if owner is not None and len(gaps):
            from slotkern.pool.closures import close_gaps
            close_gaps(self, gaps, owner)
        return windows

    def disable(self, nodes, start=None, end=None, owner="down"):
        """Close nodes for a time: the time that is free now, and that is released there later.

        Use this for failed nodes. Windows on these nodes stay booked; the caller decides
        whether to release or rebook them.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names of the machine's nodes, or ids.
        start, end : float, date or str, optional
            The span [start, end). By default it starts at `now`, the time of the last
            `advance`, or includes all time if there was none, and has no end.
        owner : str
            The person or reason that closes the nodes.

        Returns
        -------
        list of Window
            The windows with an owner that have a part on these nodes in this span.

        Raises
        ------
        ValueError, TypeError
            For an unknown node, and for a span that does not end after it starts. The pool is
            then unchanged.

        Notes
        -----
        A node can be closed several times; it is open again after the last closure has ended.
        `add_slots` can add time to closed nodes; `copy` and `save` include closed time. Takes
        time linear in the given nodes and the closed spans.

        Examples
        --------
        >>> import slotkern as sk
        >>> pool = sk.SlotPool(sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1))
        >>> job = sk.Request(1, 4)
        >>> pool.book(pool.find(job), owner="ann")
        >>> (window,) = pool.disable(0, start=2)
        >>> pool.release(window)
        >>> pool.slots[["node", "start", "end"]].tolist()
        [(0, 0.0, 2.0), (1, 0.0, 9.0)]
        >>> pool.enable(0)
        >>> pool.find(job).nodes
        (0,)
        """
        from slotkern.pool.closures import disable
        check_owner(owner)
        return disable(self, nodes, start, end, owner)

    def enable(self, nodes):
        """Reopen nodes closed by `disable`: their time that is not booked is free again.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names of the machine's nodes, or ids.

        Raises
        ------
        ValueError, TypeError
            For a node that is not disabled; the message contains its name, and the pool is
            unchanged.

        Notes
        -----
        Time that reservations cover on these nodes stays covered.
        """
        from slotkern.pool.closures import enable
        enable(self, nodes)

    # No Python code runs between a change of the pool and the change of its records.
    def _replace_closures(self, expected, closures, nodes):
        """Replace the closures, which differ in those of `nodes`, if they are still `expected`.

        Returns False, without a change, if another thread has replaced them.
        """
        cdef vector[int32_t] given, of
        cdef vector[Span] spans
        cdef Status status = Status.ok
        cdef int32_t node
        nodes = np.unique(nodes)
        for node in nodes.tolist():
            given.push_back(node)
        rows = closures[np.isin(closures["node"], nodes)]
        rows = rows[np.lexsort((rows["start"], rows["node"]))]
        table = np.zeros(len(rows), SPAN)
        for name in ("node", "start", "end"):
            table[name] = rows[name]
        fill_spans(table, of, spans)
        closures.flags.writeable = False
        self.lock_for_change()
        if self._closures is not expected:
            self.mutex.unlock()
            return False
        status = close_nodes(self.pool, given, of, spans)
        if status == Status.ok:
            self._closures = closures
        self.mutex.unlock()
        check_status(status)
        return True

    def utilization(self, start=None, end=None):
        """Return the booked time as a share of all booked and free time.

        Parameters
        ----------
        start, end : float, date or str, optional
            The span to evaluate; by default from `now`, or from the first slot, to the last
            end.

        Returns
        -------
        float
            From 0 to 1; 0 if there is neither booked nor free time.

        Raises
        ------
        ValueError
            Without `end`, if a slot has an infinite end.
        """
        from slotkern.pool.ledger import utilization
        return utilization(self, start, end)

    def copy(self):
        """Return an independent pool with the same slots, bookings, owners, clock and machine."""
        cdef SlotPool other = SlotPool(self.table[:0])
        cdef Status status
        self.lock()
        closures = self._closures
        other.table, other.changed = self.table, self.changed
        with nogil:
            status = copy_pool(other.pool, other.prepared, self.pool, self.prepared)
            self.mutex.unlock()
        check_status(status)
        other.context, other.owners_by_window = self.context, dict(self._owned_windows())
        other._generations = dict(self._generations)
        other._closures = closures
        return other

    def _replace_state(self, SlotPool other):
        """Take over slots, bookings, owners, closures, clock and machine of another pool.

        No other thread may use `other`. Searches in this pool see the old state or the new one.
        """
        cdef Status status
        other.lock_for_change()
        other.mutex.unlock()
        self.lock_for_change()
        with nogil:
            status = copy_pool(self.pool, self.prepared, other.pool, other.prepared)
        if status == Status.ok:
            self.table, self.context = other.table, other.context
            self.free_table = self.current = None
            self.owners_by_window = dict(other.owners_by_window)
            self._closures = other._closures
            self.column_cache.clear()
            self.invalidate_limits()
        self.mutex.unlock()
        check_status(status)

    def release(self, window, *, name=None):
        """Release a booked window, or all windows and reservations of an owner that are not past.

        Parameters
        ----------
        window : Window or str
            The window as it was booked; or an owner: all their windows are released, and their
            reservations end.
        name : str, optional
            Only the owner's windows of jobs with this name.

        Raises
        ------
        ValueError
            If a part is not booked; the message contains its node and time, and the pool is
            unchanged, also if the owner has other windows. Parts that are past or on removed
            nodes are skipped. Also for an owner without bookings, or without any of this
            name.

        Notes
        -----
        Adjacent free time of one origin row is merged, so releasing everything restores the
        pool bit for bit. A part that ends at most 4 ulp before its slot was booked up to the
        slot's end; this remainder is released too, also after the window's finish, when the
        window no longer has an owner. A window also loses its owner if one of its parts was
        released as part of another window. Takes the time of `book`, plus a pass over the
        cached bounds.
        """
        cdef Window each
        if not isinstance(window, (str, Window)):
            raise TypeError(
                f"only windows and owners can be released, got {type(window).__name__}")
        if name is not None and not isinstance(window, str):
            raise TypeError("name selects among an owner's windows: give the owner first")
        cdef list windows = self.windows(window) if isinstance(window, str) else [window]
        covered = isinstance(window, str) and name is None and window in self.owners
        if not windows and not covered:
            from slotkern.pool.closures import nothing_booked
            raise ValueError(nothing_booked(self, window))
        if name is not None:
            windows = [each for each in windows if each.name == name]
            if not windows:
                raise ValueError(f"{window!r} has booked nothing for {name!r}")
        if not self.changed:
            raise ValueError("the window cannot be released: nothing is booked in this pool")
        cdef size_t failed_window = 0, failed_part = 0
        cdef Status status = Status.ok
        if len(windows) > 1:
            status = self.check_booked(windows, failed_window, failed_part)
        if status != Status.ok:
            part = describe_part(windows[failed_window], failed_part)
            raise status_error(status, "release", {"part": part})
        if covered:
            from slotkern.pool.closures import reopen_gaps
            reopen_gaps(self, window)
        for each in windows:
            PyErr_CheckSignals()  # windows released so far stay released
            self.release_one(each)

    cdef int release_one(self, Window window) except -1:
        cdef size_t failed_window = 0, failed_part = 0
        self.lock_for_change()
        cdef Status status = release(self.pool, window.start, window.parts, window.count,
                                     failed_part)
        self.mutex.unlock()
        if status != Status.ok:
            raise status_error(status, "release", {"part": describe_part(window, failed_part)})
        if self.owners_by_window.pop(window, None) is None and self.owners_by_window:
            # The owner may have booked an equal set of parts found by another criterion.
            nodes = set(window.nodes)
            for other in [w for w in self.owners_by_window if w.start == window.start]:
                if nodes.isdisjoint(other.nodes):
                    continue
                if self.check_booked([other], failed_window, failed_part) == Status.not_booked:
                    self.owners_by_window.pop(other, None)  # another thread may have
        return 0

    cdef Status check_booked(self, list windows, size_t& failed_window,
                             size_t& failed_part) except *:
        """Return ok if all parts are booked, past or on removed nodes; else set the failed part."""
        cdef vector[WindowParts] parts
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        collect_parts(windows, parts)
        while attempt(interrupts, status):
            self.lock_for_change()
            with nogil:
                status = all_booked(self.pool, parts, failed_window, failed_part)
                self.mutex.unlock()
        return status

    def advance(self, now):
        """Advance the current time: slots that end by `now` are removed, others start at `now`.

        Parameters
        ----------
        now : float, date or str
            The new current time, not before the pool's `now`.

        Raises
        ------
        ValueError, TypeError
            For a time that is not finite or before the pool's `now`.

        Notes
        -----
        O(log m), amortized O(log m + 64) for each slot that ends: ended slots are removed in
        batches, when they and the changes since the last batch are as many as the nodes. The
        first search by the criterion "first" or under limits on sums after a call also trims
        free slots to start at `now`, O(N + k (log m + 64)) for N nodes and k slots with time
        before `now`. Functions that return an array of the free slots trim a copy.
        """
        given, clock = now, self.clock
        if clock is not None:
            now = clock.time(now, "now")
        cdef double time = number("now", now)
        if time < self.pool.now():
            before = self.pool.now() if clock is None else clock.datetime(self.pool.now())
            raise ValueError(f"now must not be before {before}, got {given!r}")
        cdef Status status
        self.lock_for_change()
        with nogil:
            status = advance(self.pool, time)
            self.mutex.unlock()
        check_status(status)
        if len(self.owners_by_window) > self.purge_threshold:
            self.drop_past_owners()

    cdef int drop_past_owners(self) except -1:
        self.owners_by_window = dict(self._owned_windows())
        self.purge_threshold = 64 + 2 * len(self.owners_by_window)
        return 0

    def remove_node(self, node):
        """Remove a node with all its time, free and booked, permanently.

        Windows on it can still be released; their parts on this node are skipped.

        Parameters
        ----------
        node : int or str
            The id of the node, or its name in the machine.

        Raises
        ------
        ValueError, TypeError
            For a node that is not in the pool, or a value that is not an integer.
        """
        if isinstance(node, str) and self.machine is not None:
            ids = self.machine.ids([node], "node")
            if len(ids) > 1:
                raise ValueError(
                    f"node must be one node, got a hostlist of {len(ids):,}: {node!r}; remove "
                    "each separately")
            node = ids[0]
        node = integer("node", node)
        cdef Status status = Status.none
        self.lock_for_change()
        if 0 <= node <= 0x7FFFFFFF:
            status = remove_node(self.pool, <int32_t>node)
        self.mutex.unlock()
        if status == Status.none:
            raise ValueError(f"node {node} is not in the pool")
        check_status(status)

    def add_slots(self, slots):
        """Add free slots, of new nodes or of nodes in the pool.

        Parameters
        ----------
        slots : structured array
            With the fields of ``pool.origin``, sorted by (start, node). The rows are appended
            to ``pool.origin``.

        Raises
        ------
        ValueError, TypeError
            As for `SlotPool`; also for slots that overlap those of ``pool.origin`` (booked or
            not), that start before `now`, or whose node was removed. The pool is then
            unchanged.

        Notes
        -----
        O(m log m): the structures of the pool are rebuilt. Cached bounds are preserved if the
        new slots do not affect them.
        """
        adapter("add_slots")(self, slots)

    def schedule(self, requests, criterion="start", *, str shape="square", owner=None):
        """Find and book a window for each request, in order, in one call.

        Parameters
        ----------
        requests : iterable of Request, mapping or table
            The keys of a mapping are the names of the jobs; the columns of a table are the
            fields of `Request`.
        criterion : str
            A name of `CRITERIA`: each request gets the best window in the time that earlier
            requests left free.
        shape : {"square", "ragged"}
            As for `find_window`.
        owner : str, optional
            Owner of all booked windows.

        Returns
        -------
        Bookings
            Arrays with one entry for each request: start, finish, cost, reason and more.

        Raises
        ------
        ValueError, TypeError
            Before anything is booked: for another criterion, or a request whose filter is
            a boolean array or contains start or end, which change with every booking; find
            and book such requests one by one.

        KeyboardInterrupt
            Within a fraction of a second after Ctrl-C. Windows booked so far stay booked and
            are in the exception's attribute `bookings`: one entry for each processed request,
            in order, and none if the call stopped while it read the requests.

        Every exception that stops the call has this attribute.

        Notes
        -----
        The GIL is released once for all requests. Searches for the earliest start begin at the
        lower bound stored by earlier requests that were not harder.

        Examples
        --------
        >>> import slotkern as sk
        >>> pool = sk.SlotPool(sk.make_slots(node=[0, 1], start=0, end=9, performance=1,
        ...                                  price=2))
        >>> done = pool.schedule([sk.Request(2, 4), sk.Request(1, 4), sk.Request(2, 4)])
        >>> done.start
        array([ 0.,  4., nan])
        >>> done.reasons
        ['booked', 'booked', 'time']
        """
        cdef Bookings out = Bookings.__new__(Bookings)
        out.names, out.context = [], self.context
        stopped = None
        try:
            schedule_into(self, out, requests, criterion, shape, owner)
        except BaseException as error:
            stopped = error
        while owner is not None and len(out):  # record the owner despite further signals
            try:
                self.record_owner([window for window in out if window is not None], owner)
                break
            except KeyboardInterrupt as error:
                stopped = error
        if stopped is not None:
            del out.names[len(out):]  # the requests that were not processed
            stopped.bookings = out
            raise stopped
        return out

    # --- files

    def save(self, path, *, overwrite=False):
        """Write the pool to a file for `load`.

        The write is atomic: a draft in the same folder is flushed to disk and renamed, so
        after a crash `path` is either unchanged or complete. Symbolic links are followed, and
        an existing file keeps its mode.

        Parameters
        ----------
        path : path
            The file: a numpy archive (.npz) without pickles, format "slotkern pool 2", with
            clock, machine and owners.
        overwrite : bool
            True: replace the file even if it changed since this pool was loaded from it or
            saved to it; changes by other processes are lost.

        Raises
        ------
        PoolFileChangedError
            If this pool was loaded from `path` or saved to it, and the file now has another
            generation, because another process saved to it. The file is unchanged. A
            subclass of ValueError.
        TypeError
            If a field of the slots holds Python objects.
        ValueError
            If the suffix is that of another format of slots, such as .csv.
        OSError
            If the file cannot be written; an existing file is unchanged.

        Notes
        -----
        Each save gives the file a new generation: a number, incremented by one, and a digest.
        A pool and its copies store the generation of each file that the pool was loaded from
        or saved to. A pool that was never loaded from `path` replaces the file. Concurrent
        saves of several processes are serialized by ``flock`` (not on Windows).
        """
        adapter("save_pool")(self, path, overwrite)

    @staticmethod
    def load(path):
        """Return the pool from a file of `save`.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        SlotPool
            A pool with equal slots, origin, booked time, owners, clock, machine and `now`.
            Files of format "slotkern pool 1" have no owners, clock or machine.

        Raises
        ------
        ValueError
            If the file is incomplete or has another format; the message contains the path and
            the reason.
        OSError
            If it cannot be read.

        Notes
        -----
        Files are not compressed, and sizes are validated before memory is allocated: loading
        takes at most a few times the length of the file, and O(m log m) time.
        """
        return adapter("load_pool")(path)

    # --- ledgers

    def share(self, where, *, user=None):
        """Create a ledger of this pool, which several processes change at the same time.

        Parameters
        ----------
        where : path
            The new file, such as ``site.db``, on a local disk.
        user : str, optional
            As for `open`.

        Returns
        -------
        SharedPool
            The pool of the new ledger. This pool remains as it is.

        Raises
        ------
        FileExistsError
            If there is a file.
        ValueError
            If parts are booked without an owner: nobody could release them.
        slotkern.ledger.Elsewhere
            For a file system that several machines can write.

        See Also
        --------
        open : Open an existing ledger.
        """
        return adapter("share_pool")(self, where, user)

    @staticmethod
    def open(where, *, user=None, durable="disk", patience=30.0, readonly=False):
        """Open a ledger that `share` created: a pool that several processes change.

        Parameters
        ----------
        where : path
            The file of the ledger.
        user : str, optional
            The user in the list of calls, and the owner of bookings without one; by default
            the user of the process.
        durable : {"disk", "crash"}
            What a booking survives after the call has returned: "disk" the loss of power,
            "crash" only the end of processes.
        patience : float
            Seconds to wait for other writers.
        readonly : bool
            True: the pool can only be read.

        Returns
        -------
        SharedPool

        Raises
        ------
        FileNotFoundError, OSError
            If there is no such file, or it cannot be read.
        slotkern.ledger.LedgerError
            For a file that is not a ledger, a ledger of another format, one on a file system
            that several machines can write, and one that contradicts itself.
        """
        return adapter("open_ledger")(where, user, durable, patience, readonly)

    def __reduce__(self):
        origin, state, now, closures = self._full_state_and_closures()
        return adapter("restore_pool"), (origin, state, now, self.context, self._owned_windows(),
                                         self._generations, closures[closures["end"] > now])

    def _owned_windows(self):
        """Return pairs of a window that is not past and its owner."""
        cdef double now = self.pool.now()
        cdef Window window
        cdef list pairs = []
        for window, owner in list(self.owners_by_window.items()):
            if window.finish > now:
                pairs.append((window, owner))
        return pairs


cdef int check_owner(object owner) except -1:
    if not isinstance(owner, str) or not owner or "\0" in owner:
        raise TypeError(f"owner must be text, got {owner!r}")
    return 0


cdef int collect_parts(list windows, vector[WindowParts]& out) except -1:
    cdef WindowParts parts
    cdef Window window
    for window in windows:
        parts.start, parts.parts, parts.n = window.start, window.parts, window.count
        out.push_back(parts)
    return 0


cdef str describe_part(Window window, size_t failed_part):
    cdef Part part = window.parts[failed_part]
    node, start, end = part.node, window.start, window.start + part.length
    if window.machine is not None:
        node = window.machine.names[node]
    if window.clock is not None:
        start, end = window.clock.datetime(start), window.clock.datetime(end)
    return f"node {node} from {start} to {end}"


cdef int schedule_into(SlotPool self, Bookings out, requests, criterion, str shape,
                       owner) except -1:
    """Compile and schedule the requests; on an error `out` holds what was booked before."""
    cdef ShapeKind form = parse_shape(shape)
    if type(criterion) is not str or criterion not in INDEX:
        raise ValueError(
            f"criterion must be one of {', '.join(CRITERIA)}, got {criterion!r}"
            f"{meant(criterion, CRITERIA)}")
    out.criterion, out.shape = criterion, shape
    cdef vector[Query] queries
    cdef Request each
    masked = []
    if not isinstance(requests, (list, tuple)):
        from slotkern.machine.jobs import requests_of
        requests = requests_of(requests)
    if owner is not None:
        check_owner(owner)
    for i, request in enumerate(requests):
        if not isinstance(request, Request):
            raise TypeError(
                f"requests[{i}] must be a Request, got {type(request).__name__}")
        each = resolve_times(self, request, i)
        out.names.append(each.name)
        if not is_booking_invariant(each):
            raise ValueError(
                f"requests[{i}]: a filter must be an expression without start and end, which "
                "change with every booking, and so must limits; find and book it separately"
            )
        each = self.compile_listed_request(each, i)
        masked.append(each)  # owns the mask
        queries.push_back(each.query)
    return check_status(
        self.schedule_all(queries, INDEX[criterion], form, out.windows, out.codes))


include "pool_state.pxi"

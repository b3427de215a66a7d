"""Binding of pools: search, book, release, advance and schedule on changing free time.

The included files hold the parts around SlotPool: spans, results, the lock, and saved states.
`slotkern.pool.methods` defines the methods that need no kernel.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_MAX
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.utility cimport move
from libcpp.vector cimport vector

from slotkern._kernels.base cimport (
    Status, InterruptScope, attempt, is_main_thread, resolve_index, status_error)
from slotkern._kernels.caps cimport CapacityUse, Caps, fill_uses, uncounted
from slotkern._kernels.headers cimport (
    Answer, CPreparedSlots, CWindowTable, Found, Part, Query, ShapeKind, find_together,
    find_window,
)
from slotkern._kernels.request cimport Request, is_booking_invariant, parse_shape
from slotkern._kernels.slots cimport (
    LARGE, MANY, PreparedSlots, prepare_all, prepare_with_context, resolve_times)
from slotkern._kernels.windows cimport Window, WindowTable, table_from_windows

from slotkern._kernels.base import REASONS
from slotkern._kernels.search import CRITERIA, find_under
from slotkern._kernels.search import find_window as find_window_of
from slotkern._kernels.slots import CLOSURE, SLOT, SPAN, as_slot_array, check_slots
from slotkern.display import HasPlot
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import integer, meant, number
from slotkern.foundation.errors import SlotError, UndecidedError
from slotkern.pool import caps as cap_methods
from slotkern.pool import closures, ledger, methods
from slotkern.pool.ledger import check_owner
from slotkern.slots import in_order, row_order

cnp.import_array()

NO_CLOSURES = np.empty(0, CLOSURE)

cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}

include "pool_spans.pxi"
include "pool_bookings.pxi"
include "pool_changing.pxi"
include "pool_windows.pxi"


cdef class SlotPool(ChangingSlots):
    """SlotPool(slots, *, clock=None, machine=None, tariffs=None, caps=None)
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
    tariffs : mapping of str to Tariff, optional
        The tariffs that the column ``tariff`` of the slots names: prices that change while a
        part runs.
    caps : mapping of str to int or table, optional
        The capacities of the pool, such as ``{"matlab": 10}``, which requests name in `uses`:
        a whole number for all time, or a table with the columns start, end and amount; at other
        times the amount is 0. See `set_cap` and `quota`.

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
    caps : structured array
        The capacities and quotas over time; see `slotkern.pool.caps.table`.

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
    GIL. Searches of a changed pool run one after another. In a free-threaded Python, without a
    GIL, only one thread at a time may use a pool with capacities or quotas.

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

    def __init__(self, slots, *, clock=None, machine=None, tariffs=None, caps=None):
        PreparedSlots.__init__(self, slots, clock=clock, machine=machine, tariffs=tariffs)
        if caps is not None:
            cap_methods.define(self, caps)

    booked = property(methods.booked)
    caps = property(cap_methods.table)
    quota = cap_methods.quota
    set_cap = cap_methods.set_cap
    bookings = methods.bookings
    by_node = methods.by_node
    find_alternatives = methods.find_alternatives
    forecast = methods.forecast
    holes = methods.holes
    reserve = methods.reserve
    starts = methods.starts
    disable = closures.disable
    enable = closures.enable
    utilization = ledger.utilization
    save = methods.save
    load = staticmethod(methods.load)
    share = methods.share
    open = staticmethod(methods.open)
    _as_table = methods.as_table

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

    @property
    def _capacities(self):
        """The `Caps` of the pool, or None."""
        return self.capacities

    @_capacities.setter
    def _capacities(self, Caps found):
        check_no_handle(self, found)
        self.capacities = found

    def handle(self):
        """Return the address for functions of `slotkern.numba`, valid while the pool exists.

        Raises ValueError for a pool with capacities or quotas, which compiled code does not keep.
        """
        if self.capacities is not None:
            raise ValueError("compiled code does not keep the capacities and quotas of a pool")
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
        return limits_number(self, limits)

    # --- writing

    def book(self, window, owner=None):
        """Remove the time of a window, or of all windows of a schedule, from the free slots.

        Parameters
        ----------
        window : Window, or sequence of Window and None
            A window found in this pool or in its original array; a `Schedule` of a batch, or
            a sequence of windows, which are booked all or none.
        owner : str, optional
            Owner of the windows; see `bookings`, `windows` and `release`. By default the
            account of each window.

        Raises
        ------
        ValueError
            If a part is not free; the message contains its node and time, and the pool is
            unchanged. Also if a capacity or a quota has less than a window uses.

        Notes
        -----
        O(n (log m + 64 + slots of the node)) for n parts. A part that ends within 4 ulp of
        its slot's end is booked up to that end. Ctrl-C releases what has been booked so far,
        which takes about as long as booking it.
        """
        book_windows(self, window, owner)

    # No Python code runs between a change of the pool and the change of its records.
    def _replace_closures(self, expected, closures, nodes):
        """Replace the closures, which differ in those of `nodes`, if they are still `expected`.

        Returns False, without a change, if another thread has replaced them.
        """
        cdef PoolState state
        cdef Status status = Status.ok
        nodes = np.unique(nodes)
        cdef vector[int32_t] given = nodes.tolist()
        fill_closed(closures, nodes, state)
        closures.flags.writeable = False
        self.lock_for_change()
        if self._closures is not expected:
            self.mutex.unlock()
            return False
        status = close_nodes(self.pool, given, state.closed_nodes, state.closed)
        if status == Status.ok:
            self._closures = closures
        self.mutex.unlock()
        check_status(status)
        return True

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
        if self.capacities is not None:
            other.capacities = self.capacities.copy()
        return other

    def _replace_state(self, SlotPool other):
        """Take over slots, bookings, owners, closures, clock and machine of another pool.

        No other thread may use `other`. Searches in this pool see the old state or the new one.
        """
        replace_state(self, other)

    def release(self, window, *, name=None):
        """Release a booked window, or all windows and reservations of an owner that are not past.

        Parameters
        ----------
        window : Window, Plan or str
            The window, or the windows of a plan, as booked; or an owner: all their windows are
            released, and their reservations end.
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
        release_windows(self, window, name)

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
        if self.capacities is not None:
            self.capacities.forget(time)
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
            not), that start before `now`, or whose node was removed; and for slots without an
            end in a pool with quotas at hours of the week. The pool is then unchanged.

        Notes
        -----
        O(m log m): the structures of the pool are rebuilt. Cached bounds are preserved if the
        new slots do not affect them.
        """
        add_slots(self, slots)

    def schedule(self, requests, criterion="start", *, str shape="square", owner=None):
        """Find and book a window for each request, in order, in one call.

        Parameters
        ----------
        requests : iterable of Request, AnyOf, Together or Chain; mapping or table
            The keys of a mapping are the names of the jobs; the columns of a table are the
            fields of `Request`.
        criterion : str
            A name of `CRITERIA`: each request gets the best window in the time that earlier
            requests left free.
        shape : {"square", "ragged"}
            As for `find_window`.
        owner : str, optional
            Owner of all booked windows; by default the account of each request.

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
        return schedule_requests(self, requests, criterion, shape, owner)

    def __reduce__(self):
        origin, state, now, closures = self._full_state_and_closures()
        capacities = None if self.capacities is None else self.capacities.copy()
        return restore_pool, (origin, state, now, self.context, self._owned_windows(),
                              self._generations, closures[closures["end"] > now], capacities)

    def _owned_windows(self):
        """Return pairs of a window that is not past and its owner."""
        cdef double now = self.pool.now()
        cdef Window window
        cdef list pairs = []
        for window, owner in list(self.owners_by_window.items()):
            if window.finish > now:
                pairs.append((window, owner))
        return pairs


include "pool_state.pxi"

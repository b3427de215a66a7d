"""The door of the pool that changes: book, release, advance, schedule."""

import numpy as np

cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from slotkern._base cimport Status, InterruptScope, ask, error_of, hears
from slotkern._bookings cimport Bookings
from slotkern._changing cimport ChangingSlots, CSlotPool, check_status, copy_pool
from slotkern._core cimport PreparedSlots, in_numbers
from slotkern._kernels cimport Part, Query, ShapeKind
from slotkern._request cimport Request, lasting, shape_of
from slotkern._spans cimport Span, fill_spans
from slotkern._windows cimport Window

from slotkern._find import CRITERIA
from slotkern._spans import SPAN
from slotkern.checks import integer, meant, number
from slotkern.display_table import Table

cnp.import_array()

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

#: Of closed time, one row a node and reason. `disabled`: by `SlotPool.disable`, not `reserve`.
CLOSURE = np.dtype([("node", "i4"), ("start", "f8"), ("end", "f8"), ("owner", "U1"),
                    ("disabled", "?")], align=True)
NO_CLOSURES = np.empty(0, CLOSURE)

cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}


cdef class SlotPool(ChangingSlots):
    """SlotPool(slots, *, clock=None, machine=None)
--

    Slots prepared once for many searches, that can be booked and released.

    Stands wherever ``slots`` may be given. Until its first change a pool is what searches
    prepare anyway: columns, screens, nodes. The first change lays it out anew, O(m log m),
    with a list of free and booked time for each node and blocks of slots in the order of
    time; every later one touches a few rows only.

    Parameters
    ----------
    slots : structured array, Environment or FreeSlots
        As for `find_window`: the fields of `SLOT`, sorted by (start, node). Copied. The clock
        and the machine of FreeSlots are kept.
    clock : Clock, optional
        What times mean: requests may then say dates, and windows answer in both.
    machine : Machine, optional
        The names of the nodes.

    Attributes
    ----------
    slots : structured array
        What is free now, sorted by (start, node); read-only, a snapshot.
    origin : structured array
        What was given, and what `add_slots` added behind it. ``Window.slots["row"]`` is a
        row of this array.
    booked : structured array
        Booked parts that are not past: row (of origin), node, start, end, and owner, empty
        where it has none. So is what a disabled node or a reservation keeps from being free.
    closed : structured array
        When nodes are closed: node, start, end, owner, and `disabled`, true for what `disable`
        closed and false for what a reservation covers. Not what is past.
    nodes : ndarray of int32
        The node ids, ascending, without the removed ones.
    now : float
        What `advance` was given last; -inf before.

    Raises
    ------
    ValueError, TypeError
        Naming the first bad row, the field and the value.

    Notes
    -----
    *Searches after a change.* Every answer is what `find_window` gives on ``pool.slots``,
    with rows of ``pool.origin``. The criteria of `CRITERIA` run on the changed pool as it
    is, also with a filter expression, whose rows are evaluated once. A search for the
    earliest start also remembers that no such request, and no harder one, fits before the
    time found; booking keeps what is remembered true, and a release lowers only the times
    before which the freed slot could serve. Searches for the cheapest ragged window, also
    before the first change, remember what windows cost at least in each stretch of time, once
    so many have come that it pays; the first change makes all of that void, and a release
    what is known of its time. Everything else (a filter that names start or
    end, another criterion, the methods "lite" and "published", `explain`, batches) runs on
    a copy of the free slots that is prepared at the first such search, also before the
    first change, O(m log m), and kept until the next change. Boolean filters and value
    arrays, also inside `minimize`, are refused once the pool has changed, because their
    rows are no longer its slots'.

    *Threads.* Searches may run in several threads at once while none writes. `book`,
    `release`, `schedule` and the other writers wait for each other and for searches, and
    never hold the interpreter while they wait; searches of a changed pool take turns.

    *Memory.* About 90 bytes a slot beside the copy; once changed 180 bytes a slot, 32 a booked
    part and, where the cheapest windows are searched for, up to 140 a slot for what is
    remembered of costs; before the first change up to 180, and for each more of up to four
    threads that search at a time 140. As much as at first again for the copy that other searches run on.

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
        self.owner_of, self._generations = {}, {}
        self._closures, self.purge_at = NO_CLOSURES, 64
        self.numbered, self.bound_limits = {}, []

    # --- reading

    @property
    def origin(self):
        """What was given and added; rows of windows count in it."""
        return self.table

    @property
    def now(self):
        """The time before which nothing is free."""
        return self.pool.now()

    @property
    def nodes(self):
        """The node ids that can have slots, ascending (int32)."""
        ids = PreparedSlots.nodes.__get__(self)
        return np.setdiff1d(ids, self._state()["gone"]) if self.changed else ids

    @property
    def booked(self):
        """Booked parts that are not past, by (node, start): row, node, start, end, owner."""
        from slotkern.machine.closures import booked_spans
        spans, owners = booked_spans(self)
        table = np.empty(len(spans), [*[(n, SPAN[n]) for n in SPAN.names], ("owner", owners.dtype)])
        for name in SPAN.names:
            table[name] = spans[name]
        table["owner"] = owners
        return table

    @property
    def owners(self):
        """Who has windows or reservations that are not past, by their first booking."""
        closed = self.closed
        more = closed["owner"][~closed["disabled"]].tolist()
        return list(dict.fromkeys([*(owner for _, owner in self._owned()), *more]))

    @property
    def closed(self):
        """When nodes are closed: node, start, end, owner, disabled."""
        return self._closures[self._closures["end"] > self.pool.now()]

    def windows(self, owner=None):
        """The windows that were booked for an owner, or for any; not those that are past."""
        return [window for window, other in self._owned() if owner in (None, other)]

    def bookings(self, *, nodes=None, during=None):
        """What is booked for owners, as a table with names and dates.

        Parameters
        ----------
        nodes : str, int or sequence of them, optional
            Only windows with a part on one of these nodes, by name or id.
        during : pair of float, date or str, optional
            Only windows with a part that overlaps the span (start, end). None in place of
            either is no bound. Given with `nodes`, one part must meet both.

        Returns
        -------
        structured array
            One row a window, in the order of bookings: owner, name (of the request), nodes
            (their names), start, finish, cost; with a clock also start_time and finish_time,
            as text in its zone.

        Raises
        ------
        ValueError, TypeError
            For an unknown node, and for a span that does not end after it starts.
        """
        from slotkern.machine.closures import hit
        from slotkern.machine.ledger import window_rows
        pairs = self._owned()
        if nodes is not None or during is not None:
            pairs = hit(self, pairs, nodes, during)
        return window_rows([window for window, _ in pairs], self.terms,
                           owner=[owner for _, owner in pairs])

    def _shown(self):
        """What is free now as a table."""
        booked = len(self._state()["booked"])
        facts = {"booked parts": booked or None, "owners": ", ".join(self.owners) or None}
        return Table.from_array(repr(self), self.slots, terms=self.terms, times=("start", "end"),
                        facts=facts)

    def by_node(self):
        """Pairs of a node and its free slots, ascending by node."""
        slots = self.slots
        order = np.lexsort((slots["start"], slots["node"]))
        ids, firsts = np.unique(slots["node"][order], return_index=True)
        for node, rows in zip(ids.tolist(), np.split(order, firsts[1:])):
            yield node, slots[rows]

    def find_alternatives(self, request, criterion="first", **options):
        """`find_alternatives` on this pool, which it does not change."""
        from slotkern.alternatives import find_alternatives
        return find_alternatives(self, request, criterion, **options)

    def handle(self):
        """The address that functions of `slotkern.numba` take; valid while the pool lives."""
        self.start_change()
        self.mutex.unlock()
        self.c_handle.pool = &self.pool
        self.c_handle.mutex = &self.mutex
        return <size_t>&self.c_handle

    def limits_handle(self, limits):
        """The number that limits have in requests of `slotkern.numba` and of Cython.

        Parameters
        ----------
        limits : str, Limit, or sequence of those
            As of `Request`, all in words over columns that bookings do not change.

        Returns
        -------
        int
            0 for none. Equal limits have the same number. It holds until `add_slots`, and for
            this pool alone: later, and in others, searches refuse it.

        Raises
        ------
        ValueError
            For arrays, functions, and terms that look at ``start`` or ``end``.

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
        if not lasting(request):
            raise ValueError(
                "limits with a handle must be terms over columns other than start and end, "
                "which change with every booking"
            )
        known = self.numbered.get(request.limits)
        if known is not None and known[0] is self.table:
            return known[1]
        number = 0
        while not number:  # another thread may add slots meanwhile
            table, bound = self.table, self.bound(request)
            self.lock()
            try:
                if self.table is table:
                    self.c_handle.limits.push_back((<Request>bound).query.limits)
                    number = self.c_handle.limits.size()
                    self.bound_limits.append(bound)
            finally:
                self.mutex.unlock()
        self.numbered[request.limits] = table, number  # what hashes may wait for the interpreter
        return number

    cdef void forget_limits(self):
        """With the pool locked, when it has other slots; their numbers stay taken."""
        cdef size_t i
        for i in range(self.c_handle.limits.size()):
            self.c_handle.limits[i] = NULL
        self.bound_limits.clear()

    # --- writing

    def book(self, window, owner=None):
        """Take a window's time, or all of a schedule's, out of the free slots.

        Parameters
        ----------
        window : Window, or sequence of Window and None
            Found in this pool, or in the array it was made from; a `Schedule` of a batch,
            or other windows, of which all are booked or none.
        owner : str, optional
            For whom; see `bookings`, `windows` and `release`.

        Raises
        ------
        ValueError
            If a part is not free, naming its node and time. Nothing is changed then.

        Notes
        -----
        O(n (log m + 64 + slots of the node)) for n parts. A part that ends within 4 ulp of
        its slot's end takes the slot to its end. Ctrl-C gives back what has been booked by
        then, which takes about as long.
        """
        cdef list windows
        cdef vector[WindowParts] asked
        cdef size_t which = 0, bad = 0
        cdef Status status = Status.interrupted
        cdef InterruptScope watch
        if isinstance(window, Window):
            windows = [window]
        elif window is None:
            raise TypeError("there is no window to book: none was found; explain says why")
        else:
            windows = [item for item in window if item is not None]
        for item in windows:
            if not isinstance(item, Window):
                raise TypeError(f"only windows can be booked, got {type(item).__name__}")
        list_parts(windows, asked)
        if owner is not None:
            check_owner(owner)
        watch.arm(hears())
        while status == Status.interrupted:
            ask(watch)
            self.start_change()
            if asked.size() == 1:  # the interpreter is let go only where it pays
                status = book_all(self.pool, asked, which, bad)
                self.mutex.unlock()
            else:
                with nogil:
                    status = book_all(self.pool, asked, which, bad)
                    self.mutex.unlock()
        if status != Status.ok:
            part = part_text(windows[which], bad)
            raise error_of(status, "book", {"what": "the window", "part": part})
        if owner is not None:
            self.own(windows, owner)

    # No Python code runs between a change of the pool and that of owners: a signal comes before
    # both or after.
    cdef int own(self, list windows, str owner) except -1:
        self.owner_of.update(dict.fromkeys(windows, owner))
        return 0

    def _owners_of(self, spans):
        """The owner of each booked part, as text; empty where it has none."""
        from slotkern.machine.ledger import owners_of
        return owners_of(self.owner_of, spans)

    def reserve(self, nodes, start, end, *, owner=None, partly=False):
        """Book given nodes for a given time: what exists already, or maintenance.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names of the machine's nodes, or ids.
        start, end : float, date or str
            The span [start, end), finite.
        owner : str, optional
            For whom, as in ``"maintenance"``.
        partly : bool
            Whether to take what is free of the span and pass over the rest. For an owner, the
            reservation covers the rest too: what is released there later falls under it, until
            the owner is released.

        Returns
        -------
        list of Window
            One for each moment at which parts begin; each can be released by itself.

        Raises
        ------
        ValueError, TypeError
            Naming the node and the time that is not free (unless `partly`), an unknown node,
            and a span that ends before it starts. Nothing is changed then.

        Notes
        -----
        O(m) for m free slots. A part is a start and a length: where their sum is rounded, it
        ends an ulp or so before `end`, never after it.
        """
        from slotkern.machine.ledger import reservation
        if owner is not None:
            check_owner(owner)
        windows, gaps = reservation(self, nodes, start, end, partly)
        self.book(windows, owner)
        if owner is not None and len(gaps):
            from slotkern.machine.closures import cover
            cover(self, gaps, owner)
        return windows

    def disable(self, nodes, start=None, end=None, owner="down"):
        """Close nodes for a time: what is free of it, and what is released in it later.

        As for a node that failed. Windows that are booked on the nodes stay booked; the
        caller decides what becomes of them.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names of the machine's nodes, or ids.
        start, end : float, date or str, optional
            The span [start, end): by default from now on, and for ever.
        owner : str
            Who or what closes them.

        Returns
        -------
        list of Window
            The windows with an owner that have a part on these nodes in this span.

        Raises
        ------
        ValueError, TypeError
            For an unknown node, and for a span that does not end after it starts. Nothing is
            changed then.

        Notes
        -----
        A node may be closed several times, and stays closed until the last of them has ended.
        `add_slots` adds time to closed nodes, `copy` and `save` keep what is closed. Costs a
        pass over the nodes given and what is closed.

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
        from slotkern.machine.closures import disable
        check_owner(owner)
        return disable(self, nodes, start, end, owner)

    def enable(self, nodes):
        """Open nodes that `disable` closed: what is not booked of their time is free again.

        Parameters
        ----------
        nodes : str, int or sequence of them
            Names of the machine's nodes, or ids.

        Raises
        ------
        ValueError, TypeError
            For a node that is not disabled, by its name. Nothing is changed then.

        Notes
        -----
        What reservations cover on these nodes stays covered.
        """
        from slotkern.machine.closures import enable
        enable(self, nodes)

    # No Python code runs between a change of the pool and the change of its records.
    def _close(self, before, closures, nodes):
        """Put `closures` in the place of `before`, of which those of `nodes` differ.

        False, and nothing is changed, if another thread has put others there meanwhile.
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
        self.start_change()
        if self._closures is not before:
            self.mutex.unlock()
            return False
        status = close_nodes(self.pool, given, of, spans)
        if status == Status.ok:
            self._closures = closures
        self.mutex.unlock()
        check_status(status)
        return True

    def utilization(self, start=None, end=None):
        """The share of the time that is booked, of all that is booked or free.

        Parameters
        ----------
        start, end : float, date or str, optional
            Only this span is looked at; by default from `now`, or from the first slot on, to
            the last end.

        Returns
        -------
        float
            From 0 to 1; 0 where there is no time at all.

        Raises
        ------
        ValueError
            Without an end, where a slot has none.
        """
        from slotkern.machine.ledger import utilization
        return utilization(self, start, end)

    def copy(self):
        """A pool of its own with the same slots, bookings and owners, to try things on."""
        cdef SlotPool other = SlotPool(self.table[:0])
        cdef Status status
        self.lock()
        status = copy_pool(other.pool, other.prepared, self.pool, self.prepared)
        closures = self._closures
        other.table, other.changed = self.table, self.changed
        self.mutex.unlock()
        check_status(status)
        other.terms, other.owner_of = self.terms, dict(self._owned())
        other._generations = dict(self._generations)
        other._closures = closures
        return other

    def release(self, window, *, name=None):
        """Give a booked window's time back, or all of an owner's, as far as it is not past.

        Parameters
        ----------
        window : Window or str
            As it was booked; or the owner, all of whose windows are released, and whose
            reservations no longer cover anything.
        name : str, optional
            Only the owner's windows of the jobs of this name.

        Raises
        ------
        ValueError
            If a part is not booked (any more), naming its node and time. Nothing is changed
            then, also where it is one of many windows of an owner. Parts that are past or
            whose node was removed are passed over. Also for an owner who has nothing, or
            nothing of this name.

        Notes
        -----
        Free time of one origin row grows together again, so that releasing everything
        brings back the pool bit for bit. Where a part ends by 4 ulp or less before its slot,
        it is booked to the slot's end: that rest comes back too, also past the window's
        finish, from where on a window has no owner. A window of which a part was given back
        by another has none either. Cost as of `book`, and a pass over what is remembered.
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
            from slotkern.machine.closures import nothing_booked
            raise ValueError(nothing_booked(self, window))
        if name is not None:
            windows = [each for each in windows if each.name == name]
            if not windows:
                raise ValueError(f"{window!r} has booked nothing for {name!r}")
        if not self.changed:
            raise ValueError("the window cannot be released: nothing is booked in this pool")
        cdef size_t which = 0, bad = 0
        cdef Status status = Status.ok
        if len(windows) > 1:
            status = self.still_booked(windows, which, bad)
        if status != Status.ok:
            raise error_of(status, "release", {"part": part_text(windows[which], bad)})
        if covered:
            from slotkern.machine.closures import uncover
            uncover(self, window)
        for each in windows:
            PyErr_CheckSignals()  # what has been given back by then is
            self.release_one(each)

    cdef int release_one(self, Window window) except -1:
        cdef size_t which = 0, bad = 0
        self.start_change()
        cdef Status status = release(self.pool, window.start, window.parts, window.count, bad)
        self.mutex.unlock()
        if status != Status.ok:
            raise error_of(status, "release", {"part": part_text(window, bad)})
        if self.owner_of.pop(window, None) is None and self.owner_of:
            # Booked for somebody as what another criterion found, say.
            nodes = set(window.nodes)
            for other in [w for w in self.owner_of if w.start == window.start]:
                if nodes.isdisjoint(other.nodes):
                    continue
                if self.still_booked([other], which, bad) == Status.not_booked:
                    del self.owner_of[other]
        return 0

    cdef Status still_booked(self, list windows, size_t& which, size_t& bad) except *:
        """Whether they are, but for what is past or gone, or which part is not."""
        cdef vector[WindowParts] asked
        cdef Status status = Status.interrupted
        cdef InterruptScope watch
        list_parts(windows, asked)
        watch.arm(hears())
        while status == Status.interrupted:
            ask(watch)
            self.start_change()
            with nogil:
                status = all_booked(self.pool, asked, which, bad)
                self.mutex.unlock()
        return status

    def advance(self, now):
        """Let the time before `now` leave: slots end there or are cut to start at `now`.

        Parameters
        ----------
        now : float, date or str
            Not before the pool's `now`.

        Raises
        ------
        ValueError, TypeError
            For a time that is not finite or goes backwards.

        Notes
        -----
        O(log m), and over many calls O(log m + 64) for each slot that ends: those that have
        ended leave the pool together, when they and the changes since the last time are as many
        as the nodes. The first search after it by the criterion "first", or within limits on
        sums, also cuts what is free to start at `now`, O(N + k (log m + 64)) for N nodes and k
        slots with time before `now`; so does, without a change, all that makes an array of what
        is free.
        """
        given, clock = now, self.clock
        if clock is not None:
            now = clock.time(now, "now")
        cdef double time = number("now", now)
        if time < self.pool.now():
            before = self.pool.now() if clock is None else clock.datetime(self.pool.now())
            raise ValueError(f"now must not be before {before}, got {given!r}")
        cdef Status status
        self.start_change()
        with nogil:
            status = advance(self.pool, time)
            self.mutex.unlock()
        check_status(status)
        if len(self.owner_of) > self.purge_at:
            self.forget_past()

    cdef int forget_past(self) except -1:
        self.owner_of = dict(self._owned())
        self.purge_at = 64 + 2 * len(self.owner_of)
        return 0

    def remove_node(self, node):
        """Take a node and all its time, free and booked, out of the pool for good.

        Windows booked on it can still be released; its parts are passed over.

        Parameters
        ----------
        node : int or str
            Its id, or its name in the machine.

        Raises
        ------
        ValueError, TypeError
            For a node that the pool does not have (any more), or what is no integer.
        """
        if isinstance(node, str) and self.machine is not None:
            ids = self.machine.ids([node], "node")
            if len(ids) > 1:
                raise ValueError(
                    f"node must be one node, got a hostlist of {len(ids):,}: {node!r}; remove "
                    "each by itself")
            node = ids[0]
        node = integer("node", node)
        cdef Status status = Status.none
        self.start_change()
        if 0 <= node <= 0x7FFFFFFF:
            status = remove_node(self.pool, <int32_t>node)
        self.mutex.unlock()
        if status == Status.none:
            raise ValueError(f"node {node} is not in the pool")
        check_status(status)

    def add_slots(self, slots):
        """Add free time: new nodes, or more slots of known ones.

        Parameters
        ----------
        slots : structured array
            With the fields of ``pool.origin``, sorted by (start, node). Its rows follow
            those that ``pool.origin`` has so far.

        Raises
        ------
        ValueError, TypeError
            As for the first slots; also for slots that overlap those of ``pool.origin``
            (booked or not), that start before `now`, or whose node was removed. Nothing is
            changed then.

        Notes
        -----
        O(m log m): the pool is laid out anew. What earlier searches taught is kept where
        the new slots do not touch it.
        """
        from slotkern._pool_state import add_slots
        add_slots(self, slots)

    def schedule(self, requests, criterion="start", *, str shape="square", owner=None):
        """Find and book a window for each request, in order, in one call.

        Parameters
        ----------
        requests : iterable of Request, mapping or table
            A mapping has the jobs' names as keys; a table the fields of `Request` as columns.
        criterion : str
            A name of `CRITERIA`: each request gets the best window by it that the ones
            before leave.
        shape : {"square", "ragged"}
            As for `find_window`.
        owner : str, optional
            For whom all are booked.

        Returns
        -------
        Bookings
            Arrays with one entry a request: start, finish, cost, reason and more.

        Raises
        ------
        ValueError, TypeError
            Before anything is booked: for another criterion, or a request whose filter is
            a boolean array or names start or end (both change with every booking; find
            and book one by one).

        KeyboardInterrupt
            Within a fraction of a second of Ctrl-C. What was booked until then stays
            booked, and is the exception's `bookings`: one entry for each request that was
            come to, in order. The same of a MemoryError.

        Notes
        -----
        The interpreter is released once for all requests. As fast as the search alone for
        early starts: it begins where earlier requests that were as easy found no room.

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
        cdef ShapeKind form = shape_of(shape)
        if type(criterion) is not str or criterion not in INDEX:
            raise ValueError(
                f"criterion must be one of {', '.join(CRITERIA)}, got {criterion!r}"
                f"{meant(criterion, CRITERIA)}")
        cdef vector[Query] queries
        cdef Request each
        masked = []
        cdef list names = []
        if not isinstance(requests, (list, tuple)):
            from slotkern.machine.jobs import requests_of
            requests = requests_of(requests)
        if owner is not None:
            check_owner(owner)
        for i, request in enumerate(requests):
            if not isinstance(request, Request):
                raise TypeError(
                    f"requests[{i}] must be a Request, got {type(request).__name__}")
            each = in_numbers(self, request, i)
            names.append(each.name)
            if not lasting(each):
                raise ValueError(
                    f"requests[{i}]: a filter must be an expression without start and end, which "
                    "change with every booking, and so must limits; find and book it by itself"
                )
            each = self.bound_one(each, i)
            masked.append(each)  # keeps the mask
            queries.push_back(each.query)
        cdef Bookings out = Bookings.__new__(Bookings)
        out.criterion, out.shape = criterion, shape
        out.names, out.terms = names, self.terms
        stopped = None
        try:
            check_status(self.place_all(queries, INDEX[criterion], form, out.windows, out.codes))
        except BaseException as error:
            stopped = error
        while owner is not None:  # what is booked has its owner, whatever comes meanwhile
            try:
                self.own([window for window in out if window is not None], owner)
                break
            except KeyboardInterrupt as error:
                stopped = error
        if stopped is not None:
            stopped.bookings = out
            raise stopped
        return out

    # --- files

    def save(self, path, *, overwrite=False):
        """Write the pool to one file, which `load` reads.

        The file is written beside `path`, flushed to the disk and renamed: killed at any
        moment, `path` is either what it was or complete. A link is followed, and a file
        that is there keeps its mode.

        Parameters
        ----------
        path : path
            A numpy archive (.npz) without pickles, format "slotkern pool 2", with clock,
            machine and owners.
        overwrite : bool
            Whether to replace the file also if it changed since this pool was loaded from
            it or saved to it. What others saved there meanwhile is lost.

        Raises
        ------
        PoolFileChangedError
            If this pool was loaded from `path`, or saved there, and the file has another
            generation now, because somebody else saved to it. `path` is as it was. A
            ValueError.
        TypeError
            If a field of the slots holds Python objects.
        ValueError
            If the suffix is that of another format of slots, as .csv.
        OSError
            If the file cannot be written; `path` is as it was.

        Notes
        -----
        Each save gives the file a new generation: a number, one more than before, and a
        digest. A pool keeps the generation of each file that it was loaded from or saved to,
        and so do its copies. A pool that was never loaded from `path` replaces what is there.
        Two processes that save at once take turns (by ``flock``, not on Windows).
        """
        from slotkern.pool_file import save_pool  # a search does not need it
        save_pool(self, path, overwrite)

    @staticmethod
    def load(path):
        """The pool that `save` wrote.

        Parameters
        ----------
        path : path

        Returns
        -------
        SlotPool
            Equal in slots, origin, booked time, owners, clock, machine and `now`. Files of
            format "slotkern pool 1" have none of owners, clock and machine.

        Raises
        ------
        ValueError
            If the file is not whole or not of this format, naming it and what is wrong.
        OSError
            If it cannot be read.

        Notes
        -----
        Nothing in such a file is packed, and every size is checked before memory is taken:
        a file never takes more than a few times its own length, O(m log m).
        """
        from slotkern.pool_file import load_pool
        return load_pool(path)

    def __reduce__(self):
        from slotkern._pool_state import restored
        return restored, (*self._whole(), self.terms, self._owned(), self._generations,
                          self.closed)

    def _owned(self):
        """Windows that are not past and their owners, as pairs."""
        cdef double now = self.pool.now()
        cdef Window window
        cdef list pairs = []
        for window, owner in list(self.owner_of.items()):
            if window.finish > now:
                pairs.append((window, owner))
        return pairs


cdef int check_owner(object owner) except -1:
    if not isinstance(owner, str) or not owner or "\0" in owner:
        raise TypeError(f"owner must be text, got {owner!r}")
    return 0


cdef int list_parts(list windows, vector[WindowParts]& out) except -1:
    cdef WindowParts parts
    cdef Window window
    for window in windows:
        parts.start, parts.parts, parts.n = window.start, window.parts, window.count
        out.push_back(parts)
    return 0


cdef str part_text(Window window, size_t bad):
    cdef Part part = window.parts[bad]
    node, start, end = part.node, window.start, window.start + part.length
    if window.machine is not None:
        node = window.machine.names[node]
    if window.clock is not None:
        start, end = window.clock.datetime(start), window.clock.datetime(end)
    return f"node {node} from {start} to {end}"

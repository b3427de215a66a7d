"""Binding of hosts whose resources are shared: search, book and release amounts of them."""

import math

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport malloc
from libcpp.vector cimport vector

from slotkern._kernels.base cimport (
    InterruptScope, Status, attempt, is_main_thread, number, status_error)
from slotkern._kernels.headers cimport Answer, Part, ShapeKind
from slotkern._kernels.request cimport Request, copy_request, parse_shape, search_error
from slotkern._kernels.shares cimport *
from slotkern._kernels.slots cimport PreparedSlots, resolve_times
from slotkern._kernels.windows cimport Window, window_from_answer

from slotkern._kernels.search import CRITERIA
from slotkern._kernels.windows import ALL_STARTS
from slotkern.foundation.checks import integer, one_of
from slotkern.foundation.special_fields import refuse_special

cdef extern from "slotkern/pool/mutexes.hpp" namespace "slotkern" nogil:
    void wait_briefly(shared_mutex&)
    cdef cppclass MutexRegistry:
        @staticmethod
        MutexRegistry& all()
        void add(shared_mutex&) except +
        void remove(shared_mutex&)

cnp.import_array()

#: Largest amount of a resource.
MAX_SHARE = kMaxAmount
#: A span of a host: the row of the host, its node id, and the time.
HOST_SPAN = np.dtype([("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8")], align=True)

cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}
cdef dict METHODS = {"auto": ShareMethod.automatic, "rows": ShareMethod.rows,
                     "views": ShareMethod.views}


@cython.auto_pickle(False)
cdef class ShareCore:
    """Hosts whose resources are shared, with their bookings.

    Parameters
    ----------
    hosts : structured array or PreparedSlots
        One slot for each host, ascending by node: its performance, its price, and the columns
        that filters and limits of requests read. All start and end at the same time.
    capacity : array of int, shape (hosts, resources)
        Amounts of each host, at most `MAX_SHARE`.
    spans : structured array
        Time in which hosts are available: fields row (of the host), start and end. Spans of a
        host do not overlap.
    free : array of int, shape (spans, resources)
        Free amounts of the host in each span.

    Raises
    ------
    ValueError, TypeError
        For invalid arrays, overlapping spans, and amounts out of range.

    Notes
    -----
    All methods may be called from several threads; they wait for each other. Building takes
    O(spans) changes of rows. See `slotkern/shares/share_pool.hpp`.
    """

    def __cinit__(self):
        MutexRegistry.all().add(self.mutex)

    def __dealloc__(self):
        MutexRegistry.all().remove(self.mutex)

    def __init__(self, hosts, capacity, spans, free):
        cdef ShareState state
        self.set_hosts(hosts, capacity)
        self.set_spans(spans, state.free)
        self.set_amounts(free, "free", state.free.size(), state.free_amounts, True)
        self.open(state)

    cdef int set_hosts(self, object hosts, object capacity) except -1:
        self.hosts = hosts if isinstance(hosts, PreparedSlots) else PreparedSlots(hosts)
        self.table = self.hosts.table
        cdef size_t size = len(self.table)
        if size and (np.any(np.diff(self.table["node"]) <= 0)
                     or np.any(self.table["start"] != self.table["start"][0])
                     or np.any(self.table["end"] != self.table["end"][0])):
            raise ValueError("hosts must be one slot for each node, all with one start and end")
        capacity = np.ascontiguousarray(capacity)
        if capacity.ndim != 2 or <size_t>len(capacity) != size or capacity.shape[1] == 0:
            raise ValueError(
                f"capacity must have one row for each of {size} hosts and one column for each "
                f"resource, got shape {capacity.shape}")
        check_amounts(capacity, "capacity")
        self.capacity = capacity.astype(np.int64)
        self.capacity.flags.writeable = False
        self.own_prices = np.ascontiguousarray(self.table["price"])
        return 0

    cdef int open(self, ShareState& state) except -1:
        cdef vector[int32_t] ids = self.table["node"].tolist()
        cdef vector[double] performance = self.table["performance"].tolist()
        cdef size_t resources = self.capacity.shape[1], failed = 0
        cdef double begin = 0, end = 0
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        if len(self.table):
            begin, end = self.table["start"][0], self.table["end"][0]
        while attempt(interrupts, status):
            self.lock()
            with nogil:
                status = open_shares(self.pool, ids, performance, resources, begin, end, state,
                                     failed)
                self.mutex.unlock()
        if status == Status.not_free:
            if failed >= state.free.size():
                raise ValueError("the reserved amounts of the state are out of range")
            raise ValueError(
                f"spans[{failed}] overlaps another span of {self.describe(state.free[failed])}")
        return check_status(status)

    cdef int lock(self) except -1:
        while not self.mutex.try_lock():
            if is_main_thread():
                with nogil:
                    wait_briefly(self.mutex)
                PyErr_CheckSignals()
            else:
                with nogil:
                    self.mutex.lock()
                    self.mutex.unlock()
        return 0

    cdef str describe(self, HostSpan span):
        """Return the words for a span in an error."""
        context = self.hosts.context
        node, start, end = self.table["node"][span.host], span.start, span.end
        if context is not None and context.machine is not None:
            node = context.machine.names[node]
        if context is not None and context.clock is not None:
            start, end = context.clock.datetime(start), context.clock.datetime(end)
        return f"node {node} from {start} to {end}"

    cdef int set_spans(self, object spans, vector[HostSpan]& out) except -1:
        cdef const int64_t[:] row = np.ascontiguousarray(spans["row"], np.int64)
        cdef const double[:] start = np.ascontiguousarray(spans["start"], np.float64)
        cdef const double[:] end = np.ascontiguousarray(spans["end"], np.float64)
        cdef Py_ssize_t i, hosts = len(self.table)
        cdef HostSpan span
        out.reserve(row.shape[0])
        for i in range(row.shape[0]):
            if not (0 <= row[i] < hosts and start[i] > -INFINITY and start[i] < end[i]):
                raise ValueError(
                    f"spans[{i}]: row {row[i]}, start {start[i]}, end {end[i]}: the row must be "
                    f"one of {hosts} hosts, and the end after a finite start")
            span.host, span.start, span.end = row[i], start[i], end[i]
            out.push_back(span)
        return 0

    cdef int set_amounts(self, object amounts, str name, Py_ssize_t rows, vector[int32_t]& out,
                         bint zeros=False) except -1:
        """Check amounts, of one row for each of `rows` spans, and write them to `out`."""
        amounts = np.ascontiguousarray(amounts)
        cdef Py_ssize_t resources = self.capacity.shape[1]
        if amounts.shape != (rows, resources):
            raise ValueError(
                f"{name} must have one amount for each of {resources} resources in {rows} rows, "
                f"got shape {amounts.shape}")
        check_amounts(amounts, name)
        cdef const int32_t[:, ::1] given = amounts.astype(np.int32)
        cdef Py_ssize_t i, d
        cdef bint any_amount
        out.reserve(rows * resources)
        for i in range(rows):
            any_amount = zeros
            for d in range(resources):
                out.push_back(given[i, d])
                any_amount = any_amount or given[i, d] > 0
            if not any_amount:
                raise ValueError(f"{name}[{i}] takes nothing: all its amounts are 0")
        return 0

    def find(self, Request request not None, demand, prices=None, *, stack=1,
             str criterion="start", str shape="square", str method="auto"):
        """Return the best window of parts that each take `demand` of their host, or None.

        Parameters
        ----------
        request : Request
            Its share and stack are not read. Limits on sums and group rules need stack=1.
        demand : array of int, shape (resources,)
            Amounts that each part takes, not all 0.
        prices : array of float, shape (hosts,), optional
            Price of one part on each host, for each time unit; by default the column `price`.
        stack : int
            The most parts on one host.
        criterion : str
            A name of `CRITERIA`.
        shape : {"square", "ragged"}
            As for `find_window`.
        method : {"auto", "rows", "views"}
            The structure that is searched. Rows serve the criterion start without limits on
            sums and group rules; square windows if all hosts have one performance, and
            budgets if they also have one price.

        Returns
        -------
        Window or None
            Its parts name the rows of `hosts`; with `stack` a node may have several parts.

        Raises
        ------
        ValueError, TypeError
            For invalid arguments, and a request that the method does not support.

        Notes
        -----
        Rows: O(hosts) and the rows met; views: O(hosts) for the first search of a demand, and
        O(changed hosts) for later ones.
        """
        cdef ShareRequest asked
        cdef vector[int32_t] amounts
        cdef Answer answer
        cdef InterruptScope interrupts
        cdef ShareMethod by
        cdef int index
        cdef const double[::1] price
        if criterion not in INDEX:
            one_of("criterion", criterion, INDEX)
        if method not in METHODS:
            one_of("method", method, METHODS)
        index, by = INDEX[criterion], METHODS[method]
        self.set_amounts(np.asarray(demand).reshape(1, -1), "demand", 1, amounts)
        if stack.__class__ is not int or not 1 <= stack <= 1 << 20:
            stack = integer("stack", stack, least=1, most=1 << 20)
        price = self.own_prices if prices is None else self.check_prices(prices)
        cdef Request compiled = self.compile(request)
        asked.query, asked.demand, asked.stack = &compiled.query, amounts.data(), stack
        asked.prices = &price[0] if price.shape[0] else NULL
        asked.shape = parse_shape(shape)
        while attempt(interrupts, answer.status):
            self.lock()
            with nogil:
                answer = find_shares(self.pool, asked, index, by)
                self.mutex.unlock()
        if answer.status == Status.none:
            return None
        if answer.status == Status.request_not_valid:
            raise ValueError(
                "this search of shared hosts is not supported: "
                + ("limits on sums and group rules with stack > 1" if method != "rows" else
                   "rows serve the criterion 'start' without limits and group rules; square "
                   "windows and budgets only if all hosts have one performance, and budgets only "
                   "with one price"))
        if answer.status != Status.ok:
            raise search_error(answer.status, compiled.query)
        cdef Window window = window_from_answer(answer, compiled.query.n, criterion, shape)
        window.name, window.context = request.name, self.hosts.context
        return window

    def add_tree(self, hosts, first):
        """Add groups of nested levels, for `TreeSearch`; return the index of the tree.

        Parameters
        ----------
        hosts : array of int, shape (hosts,)
            The rows of all hosts; those of an innermost group are adjacent.
        first : list of array of int
            For each level, from the coarsest: the first group of the next level in each group,
            at the finest level its first place in `hosts`; one more entry ends the last group.
        """
        cdef HostTree tree
        cdef size_t index = 0
        cdef Status status
        cdef vector[uint32_t] places = hosts
        tree.hosts.swap(places)
        for level in first:
            places = level
            tree.first.push_back(places)
        self.lock()
        with nogil:
            status = add_tree(self.pool, tree, index)
            self.mutex.unlock()
        check_status(status)
        return index

    cdef object check_prices(self, object prices):
        if (prices.__class__ is not np.ndarray or prices.dtype != np.float64
                or prices.shape != self.own_prices.shape or not prices.flags.c_contiguous):
            prices = np.ascontiguousarray(prices, np.float64)
        if prices.shape != self.own_prices.shape or not (
                np.isfinite(prices).all() and (prices >= 0).all()):
            raise ValueError(f"prices must be {len(self.own_prices)} finite numbers >= 0")
        return prices

    cdef Request compile(self, Request request):
        """Return the request with the masks and weights of the hosts, without its share."""
        cdef Request plain, compiled
        if request.compiled is not None and request.compiled[0] is self.table:
            return <Request>request.compiled[1]
        refuse_special(request, "a search of shared hosts",
                       ("share", "stack", "within", "tree", "whole"))
        plain = copy_request(resolve_times(self.hosts, request))
        if plain.special is not None:  # the others are arguments of the search
            plain.special = {name: value for name, value in plain.special.items()
                             if name == "within"} or None
        compiled = self.hosts.compile_request(plain)
        request.compiled = self.table, compiled
        return compiled

    def book(self, Window window not None, demand):
        """Book a window found by `find`: each part takes `demand` of its host.

        Raises
        ------
        ValueError
            If a part is not free; nothing is then booked.
        """
        cdef vector[int32_t] amounts
        cdef size_t failed = 0
        cdef Status status
        self.set_amounts(np.asarray(demand).reshape(1, -1), "demand", 1, amounts)
        self.lock()
        with nogil:
            status = book_shares(self.pool, window.start, window.parts, window.count,
                                 PartAmounts(amounts.data(), 0), failed)
            self.mutex.unlock()
        if status != Status.ok:
            raise status_error(status, "book", {
                "what": "the window", "part": self.describe_part(window, failed)})

    def release(self, Window window not None, demand):
        """Release a booked window; parts that are past are skipped.

        Raises
        ------
        ValueError
            If a part is not booked with this demand; nothing is then released.
        """
        cdef vector[int32_t] amounts
        cdef size_t failed = 0
        cdef Status status
        self.set_amounts(np.asarray(demand).reshape(1, -1), "demand", 1, amounts)
        self.lock()
        with nogil:
            status = release_shares(self.pool, window.start, window.parts, window.count,
                                    amounts.data(), failed)
            self.mutex.unlock()
        if status != Status.ok:
            raise status_error(status, "release", {"part": self.describe_part(window, failed)})

    cdef str describe_part(self, Window window, size_t failed):
        cdef HostSpan span
        if failed >= <size_t>window.count:
            return "a part"
        node = window.parts[failed].node
        rows = np.flatnonzero(self.table["node"] == node)
        span.start, span.end = window.start, window.start + window.parts[failed].length
        if not len(rows):
            return f"node {node} from {span.start} to {span.end}"
        span.host = rows[0]
        return self.describe(span)

    def reserve(self, spans, amounts):
        """Take amounts from hosts, free or not; what is left may fall below 0.

        A host with an amount below 0 holds no part at that time.

        Parameters
        ----------
        spans : structured array
            Fields row, start and end.
        amounts : array of int, shape (spans, resources)

        Raises
        ------
        ValueError
            If the reserved amounts of a host would be out of range; spans before it are reserved.
        """
        self.change(spans, amounts, 0)

    def unreserve(self, spans, amounts):
        """End reservations with exactly these times and amounts.

        Raises
        ------
        ValueError
            For one that does not exist; those before it are ended.
        """
        self.change(spans, amounts, 1)

    def add(self, spans, free):
        """Add time in which hosts are available, with the free amounts.

        Raises
        ------
        ValueError
            For a span that overlaps another of its host; those before it are added.
        """
        self.change(spans, free, 2)

    cdef int change(self, object spans, object amounts, int kind) except -1:
        cdef vector[HostSpan] given
        cdef vector[int32_t] taken
        cdef size_t failed = 0
        cdef Status status
        self.set_spans(spans, given)
        self.set_amounts(amounts, "free" if kind == 2 else "amounts", given.size(), taken,
                         kind == 2)
        self.lock()
        with nogil:
            if kind == 0:
                status = reserve_shares(self.pool, given, taken, failed)
            elif kind == 1:
                status = unreserve_shares(self.pool, given, taken, failed)
            else:
                status = add_shares(self.pool, given, taken, failed)
            self.mutex.unlock()
        if status == Status.not_free:
            where = self.describe(given[failed])
            if kind == 2:
                raise ValueError(f"spans[{failed}] overlaps another span of {where}")
            raise ValueError(f"more than {MAX_SHARE:,} would be reserved in total on {where}")
        if status == Status.not_booked:
            raise ValueError(
                f"{self.describe(given[failed])} is not reserved with these amounts")
        return check_status(status)

    def disable(self, spans):
        """Close hosts in these spans: they hold no part then, whether booked or not.

        Parameters
        ----------
        spans : structured array
            Fields row, start and end; an end may be inf.
        """
        cdef vector[HostSpan] given
        cdef Status status
        self.set_spans(spans, given)
        self.lock()
        with nogil:
            status = disable_hosts(self.pool, given)
            self.mutex.unlock()
        check_status(status)

    def enable(self, rows):
        """Open all closed time of these hosts.

        Parameters
        ----------
        rows : sequence of int
            Rows of `hosts`.
        """
        cdef vector[HostSpan] given
        cdef HostSpan span
        cdef Status status
        for row in rows:
            if not 0 <= row < len(self.table):
                raise ValueError(f"row {row} is none of {len(self.table)} hosts")
            span.host, span.start, span.end = row, 0, 0
            given.push_back(span)
        self.lock()
        with nogil:
            status = enable_hosts(self.pool, given)
            self.mutex.unlock()
        check_status(status)

    @property
    def now(self):
        """The current time; -inf before the first `advance`."""
        return self.pool.now()

    @property
    def version(self):
        """A number that every change increases."""
        return self.pool.version()

    @property
    def nbytes(self):
        """Bytes of the rows and the bookings."""
        return self.pool.bytes()

    def advance(self, now):
        """Advance the current time: no window starts before it. An earlier time is ignored."""
        cdef double time = number(now, "now")
        cdef Status status
        self.lock()
        with nogil:
            status = advance_shares(self.pool, time)
            self.mutex.unlock()
        check_status(status)

    def free_spans(self, demand):
        """Return the maximal spans in which a host holds the demand, from `now` on.

        Returns
        -------
        structured array
            Row, node, start and end, ascending by (start, node).
        """
        cdef vector[int32_t] amounts
        cdef vector[HostSpan] spans
        cdef Status status
        self.set_amounts(np.asarray(demand).reshape(1, -1), "demand", 1, amounts)
        self.lock()
        with nogil:
            status = spans_of_demand(self.pool, amounts.data(), spans)
            self.mutex.unlock()
        check_status(status)
        table = span_array(spans, self.table)
        return table[np.lexsort((table["node"], table["start"]))]

    def profile(self, row):
        """Return the free amounts of a host by time, from `now` on.

        Returns
        -------
        spans : structured array
            Row, node, start and end; each span is free time or not throughout.
        free : array of int64, shape (spans, resources)
            Free amounts; below 0 if more is reserved or booked than there is.
        available : array of bool
            False outside of the host's time and in its closed time: it holds no part there.
        """
        cdef vector[HostSpan] spans
        cdef vector[int32_t] amounts
        cdef vector[uint8_t] available
        cdef Status status
        cdef size_t host = integer("row", row, least=0, most=len(self.table) - 1)
        self.lock()
        with nogil:
            status = rows_of_host(self.pool, host, spans, amounts, available)
            self.mutex.unlock()
        check_status(status)
        return (span_array(spans, self.table), self.amount_array(amounts),
                np.array(available, np.bool_))

    def integrals(self, start=-INFINITY, end=INFINITY):
        """Return amounts times time from `start` to `end`, but from `now` on.

        Returns
        -------
        booked, free : array of float64, shape (resources,)
            What is booked; what is free on hosts that are available.
        """
        cdef size_t resources = self.capacity.shape[1]
        cdef double[::1] booked = np.zeros(resources), free = np.zeros(resources)
        cdef double begin = number(start, "start"), last = number(end, "end")
        self.lock()
        with nogil:
            self.pool.integrals(begin, last, &booked[0], &free[0])
            self.mutex.unlock()
        return np.asarray(booked), np.asarray(free)

    @property
    def closed(self):
        """The closed time of all hosts: row, node, start and end."""
        return self.state()["closed"]

    def state(self):
        """Return the state as arrays, for files and `restore`.

        Returns
        -------
        dict
            ``now``; spans with the fields row, node, start and end: ``free`` (all time of the
            hosts), ``booked``, ``reserved`` and ``closed``; their amounts, one row for each span:
            ``free_amounts``, ``booked_amounts`` and ``reserved_amounts``.
        """
        cdef ShareState state
        cdef Status status
        self.lock()
        with nogil:
            status = state_of(self.pool, state)
            self.mutex.unlock()
        check_status(status)
        return {
            "now": state.now,
            "free": span_array(state.free, self.table),
            "free_amounts": self.amount_array(state.free_amounts),
            "booked": span_array(state.booked, self.table),
            "booked_amounts": self.amount_array(state.booked_amounts),
            "reserved": span_array(state.reserved, self.table),
            "reserved_amounts": self.amount_array(state.reserved_amounts),
            "closed": span_array(state.closed, self.table),
        }

    @staticmethod
    def restore(hosts, capacity, state):
        """Return the hosts with the result of `state`.

        Parameters
        ----------
        hosts, capacity
            As for the constructor.
        state : dict
            The result of `state`.

        Raises
        ------
        ValueError, TypeError
            For arrays that are not a valid state.
        """
        cdef ShareCore self = ShareCore.__new__(ShareCore)
        cdef ShareState given
        self.set_hosts(hosts, capacity)
        self.set_spans(state["free"], given.free)
        self.set_amounts(state["free_amounts"], "free_amounts", given.free.size(),
                         given.free_amounts, True)
        self.set_spans(state["booked"], given.booked)
        self.set_amounts(state["booked_amounts"], "booked_amounts", given.booked.size(),
                         given.booked_amounts)
        self.set_spans(state["reserved"], given.reserved)
        self.set_amounts(state["reserved_amounts"], "reserved_amounts", given.reserved.size(),
                         given.reserved_amounts)
        self.set_spans(state["closed"], given.closed)
        given.now = number(state["now"], "now")
        self.open(given)
        return self

    def copy(self):
        """Return independent hosts with the same state."""
        return ShareCore.restore(self.hosts, self.capacity, self.state())

    def __reduce__(self):
        return ShareCore.restore, (self.hosts, self.capacity, self.state())

    cdef object amount_array(self, const vector[int32_t]& amounts):
        resources = self.capacity.shape[1]
        return np.array(amounts, np.int64).reshape(-1, resources)


cdef object span_array(const vector[HostSpan]& spans, object table):
    cdef Py_ssize_t i, size = spans.size()
    cdef int64_t[::1] rows = np.empty(size, np.int64)
    cdef double[::1] start = np.empty(size), end = np.empty(size)
    for i in range(size):
        rows[i], start[i], end[i] = spans[i].host, spans[i].start, spans[i].end
    out = np.empty(size, HOST_SPAN)
    out["row"], out["start"], out["end"] = rows, start, end
    out["node"] = table["node"][np.asarray(rows)]
    return out


def check_amounts(amounts, name):
    """Raise ValueError or TypeError unless all amounts are whole numbers from 0 to `MAX_SHARE`."""
    if amounts.size and amounts.dtype.kind not in "iu":
        if amounts.dtype.kind == "f" and not np.array_equal(amounts, np.floor(amounts)):
            bad = np.argwhere(amounts != np.floor(amounts))[0].tolist()
            raise ValueError(
                f"{name}{bad} is {amounts[tuple(bad)]}: amounts are whole numbers")
        if amounts.dtype.kind != "f":
            raise TypeError(f"{name} must be whole numbers, got {amounts.dtype}")
    wrong = (amounts < 0) | (amounts > MAX_SHARE)
    if wrong.any():
        bad = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            f"{name}{bad} is {amounts[tuple(bad)]}: amounts are from 0 to {MAX_SHARE:,}; use a "
            "larger unit")


cdef int check_status(Status status) except -1:
    if status != Status.ok:
        raise status_error(status, "change shared hosts", {"part": "a host"})
    return 0


@cython.auto_pickle(False)
cdef class TreeSearch:
    """Searches for groups of a tree of hosts, of one demand.

    Parameters
    ----------
    core : ShareCore
        Its hosts have one performance.
    tree : int
        The result of `ShareCore.add_tree` of this core.
    demand : array of int32, shape (resources,) or (hosts, resources)
        What each part takes of its host; one row for each host if parts are whole hosts.
    prices : array of float64, shape (hosts,)
        Price of one part on each host, for each time unit.
    counts : sequence of int
        For each level, from the coarsest: the groups in each group of the level above.
    whole : bool
        True: the finest level, which has no count, is that of groups that are taken whole.
    stack : int
        The most parts on one host.
    share : Amounts or None
        The attribute of the windows.
    kind : type
        The type of the windows: `ShareWindow`.

    Raises
    ------
    ValueError
        For hosts of unlike performance.
    """

    def __init__(self, ShareCore core not None, size_t tree, demand, prices, counts, bint whole,
                 int32_t stack, share, kind):
        cdef const int32_t[:, ::1] amounts = np.atleast_2d(demand)
        cdef const double[::1] price = prices
        performance = core.table["performance"]
        if np.any(performance != performance[:1]):
            raise ValueError(
                "tree and whole need nodes of one performance, but these have "
                f"{performance.min():g} to {performance.max():g}")
        self.core, self.whole, self.share, self.kind = core, whole, share, kind
        self.counts = counts
        self.groups = min(math.prod(counts), 1 << 62)  # above all numbers of nodes
        self.arrays = amounts, price
        cdef bint by_host = amounts.shape[0] > 1 or share is None
        self.asked.demand = PartAmounts(&amounts[0, 0], amounts.shape[1] if by_host else 0)
        self.asked.prices, self.asked.tree, self.asked.stack = &price[0], tree, stack

    def check(self, Request request not None):
        """Raise ValueError if `nodes` is not a multiple of the product of the counts."""
        if request.query.n % self.groups != 0:
            unit = "whole groups" if self.whole else "nodes"
            raise ValueError(
                f"nodes={request.query.n} cannot be divided among {self.groups} groups of the "
                f"tree: give a multiple of {self.groups} {unit}")

    cdef Answer search(self, Request request, size_t& parts) except *:
        """Search once; `parts` becomes the number of parts of the answer."""
        cdef Request compiled = self.core.compile(request)
        cdef Answer answer
        cdef InterruptScope interrupts
        cdef TreeRequest asked = self.asked  # threads share this object
        cdef vector[int32_t] counts = self.counts
        cdef int64_t each = request.query.n // self.groups
        self.check(request)
        if self.whole:
            counts.push_back(<int32_t>each)
        asked.query, asked.counts = &compiled.query, counts.data()
        asked.parts = 0 if self.whole else <int32_t>each
        while attempt(interrupts, answer.status):
            self.core.lock()
            with nogil:
                answer = find_tree(self.core.pool, asked, parts)
                self.core.mutex.unlock()
        if answer.status != Status.ok and answer.status != Status.none:
            raise search_error(answer.status, compiled.query)
        return answer

    def find(self, Request request not None, str criterion, str shape):
        """Return the window of the least start, as a window of shares, or None.

        Parameters
        ----------
        request : Request
            Its nodes are the parts of all groups together, or whole groups.
        criterion : {"start", "finish"}
            With one performance both have the same windows.
        shape : {"square", "ragged"}
            The attribute of the window.

        Raises
        ------
        ValueError
            As `check`.

        Notes
        -----
        See `slotkern/shares/trees.hpp` for the cost.
        """
        cdef size_t parts = 0
        cdef Answer answer = self.search(request, parts)
        if answer.status == Status.none:
            return None
        return self.window(answer, parts, request, criterion, shape)

    def schedule(self, Request request not None, str criterion, str shape, dict booked, owner):
        """Find a window and book it; search again if another thread has taken a part of it.

        With an owner, the window and the owner become an item of `booked` under a new key.
        """
        cdef size_t parts = 0, version
        cdef Answer answer
        cdef Window window
        cdef Status status
        while True:
            version = self.core.pool.version()
            answer = self.search(request, parts)
            if answer.status == Status.none:
                return None
            window = self.window(answer, parts, request, criterion, shape)
            status = self.book(window)
            if status == Status.ok:
                break
            if self.core.pool.version() == version:
                check_status(status)
        if owner is not None:
            booked[object()] = window, owner
        return window

    cdef Window window(self, const Answer& answer, size_t parts, Request request, str criterion,
                       str shape):
        """Return the window with one row for each host, and the number of parts of each."""
        cdef Part* rows = <Part*>malloc(parts * sizeof(Part))
        cdef size_t i, count = 0
        cdef list counts = []
        cdef Window window = self.kind.__new__(self.kind)
        if rows == NULL:
            raise MemoryError
        window.parts = rows  # freed by the window
        for i in range(parts):
            if count and answer.parts[i].row == rows[count - 1].row:
                rows[count - 1].cost += answer.parts[i].cost
                counts[count - 1] += 1
                continue
            rows[count] = answer.parts[i]
            counts.append(1)
            count += 1
        window.count = count
        window.start, window.runtime = answer.found.start, answer.found.runtime
        window.finish = answer.found.start + answer.found.runtime
        window.cost, window.processor_time = answer.found.cost, answer.found.processor_time
        window.value = window.bound = window.start if criterion == "start" else window.finish
        window.proven, window.proven_over = True, ALL_STARTS
        window.criterion, window.shape = criterion, shape
        window.name, window.context = request.name, self.core.hosts.context
        window.share = self.share
        window.counts = tuple(counts) if self.asked.stack > 1 else None
        return window

    cdef Status book(self, Window window):
        """Book a window of `window`."""
        cdef vector[Part] parts
        cdef size_t failed = 0
        cdef Status status
        cdef Py_ssize_t i, k
        counts = window.counts
        for i in range(window.count):
            for k in range(1 if counts is None else counts[i]):
                parts.push_back(window.parts[i])
        self.core.lock()
        with nogil:
            status = book_shares(self.core.pool, window.start, parts.data(), parts.size(),
                                 self.asked.demand, failed)
            self.core.mutex.unlock()
        return status

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
from slotkern._kernels.caps cimport Caps, CapacityUse
from slotkern._kernels.headers cimport Answer, Part, ShapeKind
from slotkern._kernels.pool cimport Bookings
from slotkern._kernels.request cimport Request, copy_request, parse_shape, search_error
from slotkern._kernels.shares cimport *
from slotkern._kernels.slots cimport PreparedSlots, resolve_times
from slotkern._kernels.windows cimport Window, window_from_answer

from slotkern._kernels.base import REASONS as _REASONS
from slotkern._kernels.caps import counted_fields
from slotkern._kernels.search import CRITERIA
from slotkern._kernels.windows import ALL_STARTS
from slotkern.foundation.checks import integer, one_of
from slotkern.foundation.special_fields import refuse_special

cnp.import_array()

#: The jobs that are scheduled before other threads may change the hosts.
cdef size_t JOBS_AT_ONCE = 64
#: Largest amount of a resource.
MAX_SHARE = kMaxAmount
#: A span of a host: the row of the host, its node id, and the time.
HOST_SPAN = np.dtype([("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8")], align=True)

cdef tuple SUPPORTED = ("share", "stack", "within", "tree", "whole", "uses", "account")
cdef frozenset PLAIN = frozenset(SUPPORTED) - {"within"}

cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}
cdef dict METHODS = {"auto": ShareMethod.automatic, "rows": ShareMethod.rows,
                     "views": ShareMethod.views}


include "shares_hosts.pxi"
include "shares_changes.pxi"


cdef bint is_plain_job(Request request) except -1:
    """Return whether a request has neither filter nor limits, and no unknown special field."""
    if request.where is not None or request.limits or request.rules:
        return False
    if request.special is not None:
        for name in request.special:
            if name not in PLAIN:
                return False
    return True


@cython.auto_pickle(False)
cdef class ShareCore(ChangingHosts):
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

    def __init__(self, hosts, capacity, spans, free):
        cdef ShareState state
        self.set_hosts(hosts, capacity)
        self.set_spans(spans, state.free)
        self.set_amounts(free, "free", state.free.size(), state.free_amounts, True)
        self.open(state)

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
        if criterion not in INDEX:
            one_of("criterion", criterion, INDEX)
        if method not in METHODS:
            one_of("method", method, METHODS)
        index, by = INDEX[criterion], METHODS[method]
        owned = self.read_part(demand, prices, stack, amounts, asked)
        cdef Request compiled = self.compile(request)
        asked.query = &compiled.query
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

    cdef object read_part(self, demand, prices, stack, vector[int32_t]& amounts,
                          ShareRequest& out):
        """Write these arguments of `find` to `out`; return the array to which it points."""
        cdef const double[::1] price
        self.set_amounts(np.asarray(demand).reshape(1, -1), "demand", 1, amounts)
        if stack.__class__ is not int or not 1 <= stack <= 1 << 20:
            stack = integer("stack", stack, least=1, most=1 << 20)
        prices = self.own_prices if prices is None else self.check_prices(prices)
        price = prices
        out.demand, out.stack = amounts.data(), stack
        out.prices = &price[0] if price.shape[0] else NULL
        out.set_price_range(price.shape[0])
        return prices

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
        if (is_plain_job(request) and request.as_given is None
                and not self.hosts.prepared.has_tariffs()):
            return request  # its query refers to no arrays
        refuse_special(request, "a search of shared hosts", SUPPORTED)
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

    def check(self, Request request not None):
        """Raise the error of `find` for a request whose filter or limits the hosts do not have."""
        self.compile(request)

    def schedule(self, ShareQueue queue not None, list requests not None, list parts not None,
                 reason):
        """Find and book a window for each request, in order; append the results to the queue.

        Parameters
        ----------
        queue : ShareQueue
            New, of as many jobs. After an exception, such as KeyboardInterrupt, its lists and
            dictionaries have what was booked.
        requests : list of Request
            As for `find`.
        parts : list of ((amounts, prices, stack) or TreeSearch)
            For each request the arguments of `find`, or the search for its tree. Requests whose
            parts are alike share one object: it is read once.
        reason : function
            Called with the index of a request that the capacities of the queue count and that
            has no window; returns the word of `REASONS`.

        Raises
        ------
        ValueError, TypeError
            As for `find`.

        Notes
        -----
        Equal to `find` and `book` of each request. Other threads may change the hosts between two
        groups of `JOBS_AT_ONCE` requests, never between a search and its booking.
        """
        cdef vector[CShareJob] jobs, of_parts
        cdef vector[vector[int32_t]] amounts, counts
        cdef CShareJob job, none
        cdef TreeSearch search
        cdef Request request, compiled
        cdef dict known = {}
        cdef list owned = []  # the objects to which the jobs point
        cdef int index = INDEX[queue.table.criterion]
        cdef size_t place, i, size = len(requests)
        cdef Status status = Status.ok
        amounts.resize(size)  # whose addresses remain valid
        counts.resize(size)
        jobs.reserve(size)
        for i, part in enumerate(parts):
            request = requests[i]
            compiled = self.compile(request)
            owned.append(compiled)
            if type(part) is TreeSearch:
                search, job = part, none
                search.fill(request, counts[i], job.tree)
                job.is_tree = True
            else:
                place = known.setdefault(id(part), of_parts.size())
                if place == of_parts.size():
                    job = none
                    job.parts.shape = parse_shape(queue.table.shape)
                    demand, prices, stack = part
                    owned.append(self.read_part(demand, prices, stack, amounts[place], job.parts))
                    of_parts.push_back(job)
                job = of_parts[place]
            job.query = &compiled.query
            jobs.push_back(job)
        while queue.table.codes.size() < size:
            status = self.schedule_some(jobs, index, queue)
            i = queue.table.codes.size()
            if status == Status.none:
                queue.add(None, _REASONS.index(reason(i)))
            elif status != Status.ok:
                raise search_error(status, jobs[i].query[0])

    cdef Status schedule_some(self, const vector[CShareJob]& jobs, int criterion,
                              ShareQueue queue) except *:
        """Schedule the next jobs while the hosts are locked, and record them."""
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        cdef QueueUses uses
        cdef Bookings out = queue.table
        cdef size_t version
        cdef list counters  # own the memory of `uses`
        while attempt(interrupts, status):
            if queue.capacities is None:
                self.lock()
                with nogil:
                    status = schedule_shares(self.pool, jobs, criterion, JOBS_AT_ONCE, uses,
                                             out.windows, out.codes)
                    self.mutex.unlock()
            else:
                while True:
                    version = queue.capacities.version
                    counters = queue.fill_uses(uses, JOBS_AT_ONCE)
                    self.lock()
                    if queue.capacities.version == version:
                        break
                    self.mutex.unlock()  # the rules were replaced while this thread waited
                # Only code that holds the GIL changes counters.
                status = schedule_shares(self.pool, jobs, criterion, JOBS_AT_ONCE, uses,
                                         out.windows, out.codes)
                self.mutex.unlock()
            queue.record()
            if self.waiting.load() > 0:  # other threads need both the hosts and the GIL
                with nogil:
                    wait_briefly(self.mutex)
        return status

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


include "shares_queue.pxi"
include "shares_trees.pxi"

"""Binding of the search for least windows at prices of node-time, and of walks over plans."""

import numpy as np

cimport cython
cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status, InterruptScope, attempt, status_error

from slotkern._kernels.batch import MEASURES as _MEASURES

cnp.import_array()

cdef extern from "slotkern/batch/plan_walk.hpp" namespace "slotkern" nogil:
    cdef cppclass NodePrices:
        void build(size_t, size_t, const int64_t*, const double*, const double*, const double*) \
            except +
        double max_rate() const
        size_t max_pieces() const
        double integral(size_t, double, double) const

    cdef struct FreePiece:
        int64_t row
        double start, end

    cdef struct Measure:
        int kind
        const double* values

    cdef cppclass PricedJob:
        int nodes
        double budget, earliest, latest, deadline
        vector[uint8_t] usable
        vector[double] own, levels

    cdef cppclass PricingRules:
        size_t nodes
        vector[int64_t] node
        vector[double] price
        cbool square
        Measure target, expense
        double sign, origin

    cdef cppclass CPricing "slotkern::Pricing":
        const NodePrices* prices
        double scale, factor

    cdef cppclass CWindow "slotkern::PricedWindow":
        double total, start, cost, expense
        vector[int64_t] rows
        vector[double] ends

    cdef cppclass WalkRules:
        double penalty
        vector[double] least
        double limit, hot, cold
        int64_t searches

    Status find_least(const PricingRules&, const PricedJob&, const vector[FreePiece]&,
                      const CPricing&, size_t, double&, vector[CWindow]&) noexcept
    Status find_all_least(const PricingRules&, const vector[PricedJob]&, const vector[FreePiece]&,
                          const CPricing&, size_t, vector[double]&,
                          vector[vector[CWindow]]&) noexcept
    Status walk_plans(const PricingRules&, const vector[PricedJob]&, const vector[FreePiece]&,
                      vector[CWindow]&, const CPricing&, const WalkRules&, int64_t&) noexcept


cdef cnp.ndarray floats(object values):
    return np.ascontiguousarray(values, np.float64)


cdef cnp.ndarray integers(object values):
    return np.ascontiguousarray(values, np.int64)


cdef const double* data(cnp.ndarray column):
    return <const double*>cnp.PyArray_DATA(column)


cdef const int64_t* numbers(cnp.ndarray column):
    return <const int64_t*>cnp.PyArray_DATA(column)


@cython.auto_pickle(False)
cdef class Prices:
    """Prices(nodes, node, start, end, rate)
    --

    Price rates of the time of nodes: the sums of rates over spans.

    Parameters
    ----------
    nodes : int
        The number of nodes.
    node, start, end, rate : ndarray
        The index of the node of each span, its start before its end, and its rate.
    """

    cdef NodePrices prices
    cdef readonly size_t nodes

    def __init__(self, size_t nodes, node, start, end, rate):
        cdef cnp.ndarray k = integers(node), a = floats(start), b = floats(end), r = floats(rate)
        cdef size_t count = len(k)
        if not (<size_t>len(a) == count and <size_t>len(b) == count and <size_t>len(r) == count):
            raise ValueError(f"{count} nodes of spans, but {len(a)} starts, {len(b)} ends and "
                             f"{len(r)} rates")
        wrong = np.flatnonzero((k < 0) | (k >= nodes) | ~(a < b))
        if len(wrong):
            i = wrong[0]
            raise ValueError(f"span {i} from {a[i]} to {b[i]} on node {k[i]} of {nodes}")
        self.nodes = nodes
        self.prices.build(nodes, count, numbers(k), data(a), data(b), data(r))

    @property
    def largest(self):
        """The largest rate of any node."""
        return self.prices.max_rate()

    @property
    def pieces(self):
        """The largest number of pieces of the integral of a node's rate."""
        return self.prices.max_pieces()

    def paid(self, node, double start, end):
        """Return the sum of the integrals of parts on some nodes."""
        cdef cnp.ndarray k = integers(node), b = floats(end)
        cdef double total = 0
        cdef Py_ssize_t i
        if len(k) != len(b):
            raise ValueError(f"{len(k)} nodes of parts, but {len(b)} ends")
        for i in range(len(k)):
            if not 0 <= numbers(k)[i] < <int64_t>self.nodes:
                raise IndexError(f"node {numbers(k)[i]} of {self.nodes}")
            total += self.prices.integral(numbers(k)[i], start, data(b)[i] - start)
        return total


cdef object array_of(int kind, const void* values, size_t size):
    cdef cnp.npy_intp length = size
    cdef cnp.ndarray out = cnp.PyArray_SimpleNew(1, &length, kind)
    if size:
        memcpy(cnp.PyArray_DATA(out), values, cnp.PyArray_NBYTES(out))
    return out


cdef tuple fields_of(const CWindow& window):
    """Return total, start, rows, ends, cost and expense."""
    return (window.total, window.start,
            array_of(cnp.NPY_INT64, window.rows.data(), window.rows.size()),
            array_of(cnp.NPY_DOUBLE, window.ends.data(), window.ends.size()),
            window.cost, window.expense)


cdef Measure measure_of(object what, list referenced) except *:
    cdef Measure measure
    measure.values = NULL
    if isinstance(what, str):
        measure.kind = _MEASURES.index(what)
        return measure
    values = floats(what)
    referenced.append(values)
    measure.kind = len(_MEASURES)
    measure.values = data(values)
    return measure


@cython.auto_pickle(False)
cdef class Pricer:
    """Pricer(nodes, node, price, target, expense, sign, origin, square)
    --

    The slots of a batch, the terms of its totals, and its jobs.

    Parameters
    ----------
    nodes : int
        The number of nodes.
    node, price : ndarray
        The index of the node of each slot, and its price.
    target, expense : str or ndarray of float64
        A name of `MEASURES`, or one value a slot that counts for each part.
    sign, origin : float
        The factor of the target, and the time from which it counts starts.
    square : bool
        Whether all parts of a window are as long as its longest.
    """

    cdef PricingRules rules
    cdef vector[PricedJob] jobs
    cdef list referenced

    def __init__(self, size_t nodes, node, price, target, expense, double sign, double origin,
                 bint square):
        cdef cnp.ndarray k = integers(node), p = floats(price)
        cdef size_t i
        if len(k) != len(p):
            raise ValueError(f"{len(k)} nodes of slots, but {len(p)} prices")
        if len(k) and not (k.min() >= 0 and <size_t>k.max() < nodes):
            raise ValueError(f"nodes from {k.min()} to {k.max()}, not below {nodes}")
        self.referenced = []
        self.rules.target = measure_of(target, self.referenced)
        self.rules.expense = measure_of(expense, self.referenced)
        for column in self.referenced:
            if len(column) != len(k):
                raise ValueError(f"{len(column)} values for {len(k)} slots")
        self.rules.nodes, self.rules.square = nodes, square
        self.rules.sign, self.rules.origin = sign, origin
        self.rules.node.resize(len(k))
        self.rules.price.resize(len(k))
        for i in range(self.rules.node.size()):
            self.rules.node[i], self.rules.price[i] = numbers(k)[i], data(p)[i]

    def add_job(self, request, usable, own):
        """Add a job: its request, whether each slot is usable, and the length of its part."""
        cdef cnp.ndarray length = floats(own), mask = np.ascontiguousarray(usable, np.uint8)
        cdef cnp.ndarray levels
        cdef const uint8_t* use = <const uint8_t*>cnp.PyArray_DATA(mask)
        cdef PricedJob job
        if not len(length) == len(mask) == <Py_ssize_t>self.rules.node.size():
            raise ValueError(
                f"{len(length)} lengths and {len(mask)} marks for {self.rules.node.size()} slots")
        levels = np.unique(length[mask.astype(bool)])
        job.nodes = min(request.nodes, 0x3FFFFFFF)
        job.budget, job.earliest = request.budget, request.earliest
        job.latest, job.deadline = request.latest, request.deadline
        job.usable.assign(use, use + len(mask))
        job.own.assign(data(length), data(length) + len(length))
        job.levels.assign(data(levels), data(levels) + len(levels))
        self.jobs.push_back(job)

    cdef vector[FreePiece] pieces_of(self, row, start, end) except *:
        cdef cnp.ndarray rows = integers(row), a = floats(start), b = floats(end)
        cdef vector[FreePiece] pieces
        cdef Py_ssize_t i
        if not len(rows) == len(a) == len(b):
            raise ValueError(f"{len(rows)} rows, {len(a)} starts and {len(b)} ends")
        pieces.resize(len(rows))
        for i in range(len(rows)):
            if not 0 <= numbers(rows)[i] < <int64_t>self.rules.node.size():
                raise IndexError(f"row {numbers(rows)[i]} of {self.rules.node.size()} slots")
            pieces[i].row, pieces[i].start, pieces[i].end = numbers(rows)[i], data(a)[i], data(b)[i]
        return pieces

    def least(self, size_t job, free, Prices prices not None, double factor=0.0, size_t spans=1):
        """Return a lower bound on a job's totals, and its least windows in spans of time.

        The total is the signed target plus `factor` times the expense plus the integrals of the
        rates. The bound is inf if there is no window. Each window is total, start, rows, ends,
        cost and expense.
        """
        if job >= self.jobs.size():
            raise IndexError(f"job {job} of {self.jobs.size()}")
        if not spans:
            raise ValueError("spans must be at least 1")
        cdef vector[FreePiece] pieces = self.pieces_of(free.row, free.start, free.end)
        cdef CPricing pricing
        cdef vector[CWindow] found
        cdef double bound = 0
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        cdef size_t i
        pricing.prices, pricing.scale, pricing.factor = &prices.prices, 1.0, factor
        while attempt(interrupts, status):
            with nogil:
                status = find_least(self.rules, self.jobs[job], pieces, pricing, spans, bound,
                                    found)
        if status != Status.ok:
            raise status_error(status, "price the windows of a batch", {"asked": "jobs"})
        return bound, [fields_of(found[i]) for i in range(found.size())]

    def least_of_all(self, free, Prices prices not None, double factor=0.0, size_t spans=1):
        """Return the bounds of all jobs, and the least windows of each; see `least`."""
        if not spans:
            raise ValueError("spans must be at least 1")
        cdef vector[FreePiece] pieces = self.pieces_of(free.row, free.start, free.end)
        cdef CPricing pricing
        cdef vector[double] bounds
        cdef vector[vector[CWindow]] found
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        cdef size_t i, j
        pricing.prices, pricing.scale, pricing.factor = &prices.prices, 1.0, factor
        while attempt(interrupts, status):
            with nogil:
                status = find_all_least(self.rules, self.jobs, pieces, pricing, spans, bounds,
                                        found)
        if status != Status.ok:
            raise status_error(status, "price the windows of a batch", {"asked": "jobs"})
        return bounds, [[fields_of(found[i][j]) for j in range(found[i].size())]
                        for i in range(found.size())]

    def walk(self, free, dict plan, Prices prices not None, double factor, double penalty, least,
             double limit, int64_t searches, tuple heat):
        """Return the best plan of a random walk, and the number of its searches.

        `free`: one piece for each row, ascending. `plan`: start, rows, ends, cost and expense of
        the window of each job that has one, by job.
        """
        cdef vector[FreePiece] pieces = self.pieces_of(free.row, free.start, free.end)
        cdef vector[CWindow] begin, windows
        cdef CPricing pricing
        cdef WalkRules rules
        cdef cnp.ndarray lower = floats(least), rows, ends
        cdef int64_t searched = 0
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        cdef size_t i
        if <size_t>len(lower) != self.jobs.size():
            raise ValueError(f"{len(lower)} bounds for {self.jobs.size()} jobs")
        begin.resize(self.jobs.size())
        for job, (start, row, end, cost, expense) in plan.items():
            i = job
            if i >= self.jobs.size():
                raise IndexError(f"job {job} of {self.jobs.size()}")
            rows, ends = integers(row), floats(end)
            begin[i].start, begin[i].cost, begin[i].expense = start, cost, expense
            begin[i].rows.assign(numbers(rows), numbers(rows) + len(rows))
            begin[i].ends.assign(data(ends), data(ends) + len(ends))
        pricing.prices, pricing.scale, pricing.factor = &prices.prices, 1.0, factor
        rules.penalty, rules.limit, rules.searches = penalty, limit, searches
        rules.least.assign(data(lower), data(lower) + len(lower))
        rules.hot, rules.cold = heat
        while attempt(interrupts, status):
            windows = begin
            with nogil:
                status = walk_plans(self.rules, self.jobs, pieces, windows, pricing, rules,
                                    searched)
        if status != Status.ok:
            raise status_error(status, "walk over plans", {"asked": "jobs"})
        return {i: fields_of(windows[i]) for i in range(windows.size()) if windows[i].rows.size()
                }, searched

"""Binding of batches: validate, release the GIL, call the kernel, wrap the result."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status, InterruptScope, attempt, status_error
from slotkern._kernels.slots cimport PreparedSlots
from slotkern._kernels.headers cimport CPreparedSlots, Query, ShapeKind
from slotkern._kernels.request cimport Request, parse_shape
from slotkern._kernels.windows cimport CWindowTable, WindowTable

from slotkern._kernels.base import REASONS as WINDOW_REASONS
from slotkern._kernels.search import CRITERIA

cnp.import_array()

cdef extern from "slotkern/batch/bound.hpp" namespace "slotkern" nogil:
    cdef struct BatchJob:
        Query query
        int criterion

    cdef struct Measure:
        int kind
        const double* values

    cdef cppclass BatchRules:
        ShapeKind shape
        vector[size_t] slices
        Measure target, expense
        cbool maximize, limited
        double limit, gap
        int64_t work
        size_t max_alternatives, max_bytes

    cdef struct SliceAnswer:
        double limit, value, bound, expense
        uint8_t proven

    cdef cppclass BatchAnswer:
        CWindowTable alternatives
        vector[int64_t] owner, chosen
        vector[uint8_t] reasons
        vector[SliceAnswer] slices
        double offending_value
        size_t offending_job

    cbool has_unbounded_slot(const CPreparedSlots&)
    Status bound_batch(const CPreparedSlots&, const vector[BatchJob]&, const BatchRules&,
                       double&) noexcept

cdef extern from "slotkern/base/backfill.hpp" namespace "slotkern" nogil:
    cdef enum class Backfill(int):
        none
        easy
        first_fit
        conservative

cdef extern from "slotkern/batch/run.hpp" namespace "slotkern" nogil:
    cdef cppclass ExecutionAnswer:
        CWindowTable windows
        vector[double] promised
        vector[uint8_t] reasons
        int64_t ends, moves

    Status cpp_schedule "slotkern::schedule_batch"(
        const CPreparedSlots&, const vector[BatchJob]&, const BatchRules&, Backfill, int,
        BatchAnswer&) noexcept
    Status cpp_execute "slotkern::execute_batch"(
        const CPreparedSlots&, const vector[BatchJob]&, ShapeKind, Backfill, int,
        const CWindowTable&, const int64_t*, size_t, const double*, ExecutionAnswer&) noexcept

MEASURES = ("start", "finish", "runtime", "cost", "processor_time")
REASONS = "scheduled", *WINDOW_REASONS[1:]
SLICE = np.dtype([("limit", "f8"), ("value", "f8"), ("bound", "f8"), ("expense", "f8"),
                  ("proven", "?")])
cdef object NO_SLICES = np.empty(0, SLICE)
cdef packed struct SliceRow:
    double limit, value, bound, expense
    uint8_t proven
cdef dict INDEX = {name: i for i, name in enumerate(CRITERIA)}
cdef dict MEASURE = {name: i for i, name in enumerate(MEASURES)}
cdef dict BACKFILL = {"none": <int>Backfill.none, "conservative": <int>Backfill.conservative,
                      "easy": <int>Backfill.easy}


cdef class CompiledJobs:
    """The requests of a batch, compiled for the kernels, and its prepared slots.

    `criteria`: the criterion of the alternatives of each job; None: no alternatives.
    """

    cdef PreparedSlots pool
    cdef vector[BatchJob] jobs
    cdef tuple requests, criteria
    cdef list referenced  # further requests that queries point to
    cdef list names  # names of the requests, or None if no request has one

    def __init__(self, slots, requests, criteria):
        cdef Request request, compiled
        cdef Py_ssize_t i
        cdef bint named = False
        if isinstance(slots, PreparedSlots):
            self.pool = (<PreparedSlots>slots).snapshot()
        else:
            self.pool = PreparedSlots(slots)
        self.requests = tuple(requests)
        self.criteria = None if criteria is None else tuple(criteria)
        self.referenced, self.names = [], []
        self.jobs.resize(len(self.requests))
        for i in range(len(self.requests)):
            request = self.requests[i]
            compiled = self.pool.compile_request(request)
            if compiled is not request:
                self.referenced.append(compiled)
            self.jobs[i].query = compiled.query
            if self.criteria is not None:
                self.jobs[i].criterion = INDEX[self.criteria[i]]
            self.names.append(request.name)
            named = named or request.name is not None
        if not named:
            self.names = None

    def __reduce__(self):
        return CompiledJobs, (self.pool, self.requests, self.criteria)

    @property
    def has_unbounded_slot(self):
        """True if a slot has an infinite end."""
        return has_unbounded_slot(self.pool.prepared)

    @property
    def slots(self):
        """The current slots, as an array."""
        return self.pool.slots

    @property
    def prepared(self):
        """The current slots, prepared for searches."""
        return self.pool

    cdef object restore_origin_rows(self, CWindowTable& windows):
        """Replace rows of the free slots by rows of the array that these come from."""
        cdef size_t k
        cdef int64_t[::1] rows
        if self.pool.origin is None:
            return None
        rows = np.ascontiguousarray(self.pool.origin, np.int64)
        for k in range(windows.parts.size()):
            windows.parts[k].row = rows[windows.parts[k].row]


cdef object batch_error(Status status, CompiledJobs jobs, dict details=None):
    return status_error(status, "schedule the batch", {
        "volume": min([request.volume for request in jobs.requests], default=0.0),
        "what": "the schedule", "part": "a part", "many": "1 GiB of alternatives",
        "cap": "most=", "asked": "jobs", **(details or {}),
    })


cdef WindowTable named_table(CWindowTable& windows, str criterion, str shape, CompiledJobs jobs,
                          const vector[int64_t]* owner):
    """Return the windows with the names of their jobs and the clock and machine of the slots.

    `owner`: the job of each window; NULL: window i is that of job i.
    """
    cdef WindowTable table = WindowTable.__new__(WindowTable)
    table.windows.found.swap(windows.found)
    table.windows.ends.swap(windows.ends)
    table.windows.parts.swap(windows.parts)
    table.criterion, table.shape, table.context = criterion, shape, jobs.pool.context
    cdef size_t i
    if jobs.names is not None:
        table.names = list(jobs.names) if owner == NULL else [
            jobs.names[owner[0][i]] for i in range(owner.size())]
    return table


cdef const void* column_of(cnp.ndarray values, int kind, str name) except NULL:
    """Return the data of a contiguous column of this numpy type; raise TypeError if it is not."""
    if (cnp.PyArray_TYPE(values) != kind or cnp.PyArray_NDIM(values) != 1
            or not cnp.PyArray_ISCARRAY_RO(values)):
        kinds = {cnp.NPY_INT64: "int64", cnp.NPY_DOUBLE: "float64"}
        raise TypeError(f"{name} must be a contiguous column of {kinds[kind]}, "
                        f"got {values.dtype} of shape {(<object>values).shape}")
    return cnp.PyArray_DATA(values)


cdef const int64_t* rows_of(cnp.ndarray rows, WindowTable table) except NULL:
    """Return the data of a column of rows of the table (negative: none); raise IndexError."""
    cdef const int64_t* row = <const int64_t*>column_of(rows, cnp.NPY_INT64, "rows")
    cdef Py_ssize_t i
    for i in range(cnp.PyArray_DIM(rows, 0)):
        if row[i] >= <Py_ssize_t>table.windows.size():
            raise IndexError(f"row {row[i]} of {table.windows.size()} windows")
    return row


def select_windows(WindowTable found not None, cnp.ndarray rows not None, list names=None):
    """Return the windows in these rows, with these names; a negative row gives no window."""
    cdef WindowTable some = WindowTable.__new__(WindowTable)
    cdef const int64_t* row = rows_of(rows, found)
    cdef Py_ssize_t i
    some.criterion, some.shape, some.context = found.criterion, found.shape, found.context
    some.names = names
    for i in range(cnp.PyArray_DIM(rows, 0)):
        if row[i] < 0:
            some.windows.add_none()
        else:
            some.windows.add_from(found.windows, row[i])
    return some


cdef Measure measure_of(object what, list referenced) except *:
    """Return the measure of a name in MEASURES, or of an array with one value for each slot."""
    cdef Measure measure
    measure.values = NULL
    if isinstance(what, str):
        measure.kind = MEASURE[what]
        return measure
    referenced.append(what)
    measure.kind = len(MEASURES)
    measure.values = <const double*>cnp.PyArray_DATA(<cnp.ndarray>what)
    return measure


cdef object copy_to_array(int kind, const void* values, size_t size):
    """Return an array of this numpy type with a copy of the values."""
    cdef cnp.npy_intp length = size
    cdef cnp.ndarray out = cnp.PyArray_SimpleNew(1, &length, kind)
    if size:
        memcpy(cnp.PyArray_DATA(out), values, cnp.PyArray_NBYTES(out))
    return out


cdef object slices_of(const vector[SliceAnswer]& slices):
    if slices.empty():
        return NO_SLICES
    cdef cnp.ndarray table = np.empty(slices.size(), SLICE)
    cdef SliceRow* rows = <SliceRow*>cnp.PyArray_DATA(table)
    cdef size_t i
    for i in range(slices.size()):
        rows[i].limit, rows[i].value = slices[i].limit, slices[i].value
        rows[i].bound, rows[i].expense = slices[i].bound, slices[i].expense
        rows[i].proven = slices[i].proven
    return table


cdef BatchRules rules_of(options, list referenced) except *:
    """Return the kernel's form of `slotkern.batch.options.BatchOptions`."""
    cdef BatchRules out
    out.shape = parse_shape(options.shape)
    out.slices = options.slices
    out.target = measure_of(options.target, referenced)
    out.expense = measure_of(options.expense, referenced)
    out.maximize = options.maximize
    out.limited = options.limit is not None
    out.limit = options.limit if out.limited else 0.0
    out.gap, out.work, out.max_alternatives = options.gap, options.max_work, options.most
    out.max_bytes = options.max_bytes
    return out


def schedule(CompiledJobs jobs not None, options, str backfill):
    """Schedule jobs that are sorted by priority.

    Returns the alternatives, the job of each, the alternative chosen for each job (-1: none),
    the reasons, and one row for each sub-batch.
    """
    referenced = []
    cdef BatchRules policy = rules_of(options, referenced)
    cdef Backfill mode = <Backfill><int>BACKFILL[backfill]
    cdef int earliest = INDEX["start"]
    cdef BatchAnswer answer
    cdef Status status = Status.ok
    cdef InterruptScope interrupts
    while attempt(interrupts, status):
        with nogil:
            status = cpp_schedule(jobs.pool.prepared, jobs.jobs, policy, mode, earliest, answer)
    if status in (Status.value_not_finite, Status.cost_not_valid, Status.sum_overflows):
        target, under = options.target_name, options.expense_name
        job = answer.offending_job
        if options.order is not None:
            job = options.order[job]
        raise batch_error(status, jobs, {
            "name": (f"{under if status == Status.cost_not_valid else target} "
                     "of an alternative of job"),
            "row": job, "value": answer.offending_value, "cost": answer.offending_value,
            "rule": "not finite", "what": f"{target} or {under} of the alternatives",
            "largest": f"is {answer.offending_value}, of job {job}",
        })
    if status != Status.ok:
        raise batch_error(status, jobs)
    jobs.restore_origin_rows(answer.alternatives)
    return (named_table(answer.alternatives, options.criterion, options.shape, jobs, &answer.owner),
            copy_to_array(cnp.NPY_INT64, answer.owner.data(), answer.owner.size()),
            copy_to_array(cnp.NPY_INT64, answer.chosen.data(), answer.chosen.size()),
            copy_to_array(cnp.NPY_UINT8, answer.reasons.data(), answer.reasons.size()),
            slices_of(answer.slices))


def find_invalid_share(cnp.ndarray values not None):
    """Return the index of the first float64 value outside (0, 1], or -1."""
    cdef const double* value = <const double*>column_of(values, cnp.NPY_DOUBLE, "shares")
    cdef Py_ssize_t i
    for i in range(cnp.PyArray_DIM(values, 0)):
        if not (0 < value[i] <= 1):
            return i
    return -1


def execute(CompiledJobs jobs not None, str shape, str backfill, WindowTable alternatives not None,
            cnp.ndarray planned not None, size_t fixed, cnp.ndarray shares not None):
    """Execute a plan of jobs in order of priority.

    `planned` (int64): each job's row of `alternatives`, or -1. `shares` (float64): the used
    share of its reserved time. The first `fixed` jobs do not move. Returns the windows, the
    starts of the first reservations, the reasons, and the numbers of parts that ended and of
    reservations that moved.
    """
    cdef ShapeKind form = parse_shape(shape)
    cdef Backfill mode = <Backfill><int>BACKFILL[backfill]
    cdef int earliest = INDEX["start"]
    cdef ExecutionAnswer answer
    cdef Status status = Status.ok
    cdef const int64_t* rows = rows_of(planned, alternatives)
    cdef const double* share = <const double*>column_of(shares, cnp.NPY_DOUBLE, "shares")
    if not len(planned) == len(shares) == <Py_ssize_t>jobs.jobs.size():
        raise ValueError(
            f"{jobs.jobs.size()} jobs, but {len(planned)} rows and {len(shares)} shares")
    cdef InterruptScope interrupts
    while attempt(interrupts, status):
        with nogil:
            status = cpp_execute(jobs.pool.prepared, jobs.jobs, form, mode, earliest,
                                 alternatives.windows, rows, fixed, share, answer)
    if status != Status.ok:
        raise batch_error(status, jobs)
    jobs.restore_origin_rows(answer.windows)
    return (named_table(answer.windows, "start", shape, jobs, NULL),
            copy_to_array(cnp.NPY_DOUBLE, answer.promised.data(), answer.promised.size()),
            copy_to_array(cnp.NPY_UINT8, answer.reasons.data(), answer.reasons.size()),
            answer.ends, answer.moves)


def bound(CompiledJobs jobs not None, options):
    """Return the Lagrangian bound of the jobs' target within the limit."""
    referenced = []
    cdef BatchRules policy = rules_of(options, referenced)
    cdef double found = 0
    cdef Status status = Status.ok
    cdef InterruptScope interrupts
    while attempt(interrupts, status):
        with nogil:
            status = bound_batch(jobs.pool.prepared, jobs.jobs, policy, found)
    if status != Status.ok:
        raise batch_error(status, jobs)
    return found

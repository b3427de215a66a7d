"""The door of searches by value: check, drop the GIL, call one C++ function, wrap the result."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from slotkern._core cimport Request, PreparedSlots, Window, hears, wrap
from slotkern._kernels cimport Answer, Found, Part, CPreparedSlots, Query, ShapeKind, Status, Watch, ask

cnp.import_array()

cdef extern from "slotkern/value/find.hpp" namespace "slotkern" nogil:
    cdef enum class Wrong "slotkern::Status"(int):
        criterion_failed
        end_is_infinite
        out_of_work

    cdef struct Fault:
        size_t row

    cdef enum class ValueKind(int):
        column
        part_time
        static_function
        moving_function
        dependable
        coordinated

    cdef cppclass Valuation:
        ValueKind worth
        double sign
        const double* column
        void* function
        cbool fixed
        const char* records
        Py_ssize_t stride

    cdef cppclass Limits:
        int64_t work
        double memory

    cdef cppclass ValueOptions:
        cbool lite, any_start, group_span
        double gap
        Limits limits

    cdef cppclass Effort:
        int64_t groups, steps, subsets, work

    cdef cppclass ValueAnswer:
        Status status
        Fault fault
        Found found
        double bound
        cbool proven
        Effort effort
        const Part* parts

    cdef cppclass StepValue:
        double start, value

    ValueAnswer find_by_value(const CPreparedSlots&, const Query&, const Valuation&, ShapeKind,
                             const ValueOptions&, cbool) noexcept
    const vector[StepValue]& recorded_steps() noexcept
    size_t values_of_parts(const Valuation&, const int64_t*, const double*, const double*, size_t,
                           double*) noexcept

# What a C function must look like, and the name that its capsule must carry.
STATIC_SIGNATURE = "int (const void *, double, double *)"
MOVING_SIGNATURE = "int (const void *, double, double, double *)"

cdef dict WORTHS = {
    "column": <int>ValueKind.column, "processor_time": <int>ValueKind.part_time,
    "dependable": <int>ValueKind.dependable, "coordinated": <int>ValueKind.coordinated,
}


def capsule_signature(capsule):
    """The signature that a capsule of a function names, or None."""
    if type(capsule).__name__ != "PyCapsule":
        return None
    cdef const char* name = PyCapsule_GetName(capsule)
    return None if name == NULL else (<bytes>name).decode(errors="replace")


cdef object error_of(const ValueAnswer& answer, Query query, object slots, str name,
                     int64_t work=0, double memory=0):
    """The one place where a status code becomes an exception."""
    row = answer.fault.row
    if <int>answer.status == <int>Wrong.criterion_failed:
        return ValueError(f"criterion {name} raised, or gave no number within 1e290, for the slot of "
                          f"row {row}: {slots[row]}")
    if <int>answer.status == <int>Wrong.end_is_infinite:
        return ValueError(f"slot row {row}: end is inf, but {name} needs the next task's start")
    if <int>answer.status == <int>Wrong.out_of_work:
        return ValueError(f"the value of every step, proven, takes more than {work:,} units of work "
                          f"or {memory / 2**20:.0f} MB; raise max_work")
    if answer.status == Status.no_memory:
        return MemoryError("not enough memory for this search")
    if answer.status == Status.volume_too_small:
        return ValueError(
            f"volume {query.volume} is too small: beside times as large as these slots' the "
            "fastest node would take no time at all"
        )
    return RuntimeError("an unexpected error inside the search")


cdef int set_function(Valuation* valuation, object capsule, cnp.ndarray slots) except -1:
    """Make the valuation one by a C function over these records, which must live as long."""
    signature = capsule_signature(capsule)
    if signature == STATIC_SIGNATURE:
        valuation.worth = ValueKind.static_function
    elif signature == MOVING_SIGNATURE:
        valuation.worth = ValueKind.moving_function
    else:
        raise TypeError(f"a criterion's capsule must be named {STATIC_SIGNATURE!r} or "
                        f"{MOVING_SIGNATURE!r}, got {signature!r}")
    valuation.function = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    valuation.records = <const char*>cnp.PyArray_DATA(slots)
    valuation.stride = cnp.PyArray_STRIDE(slots, 0)
    return 0


def part_values(slots, capsule, str name, const int64_t[::1] rows, const double[::1] starts,
                const double[::1] lengths):
    """What a criterion's function says of parts, each in the slot of its row."""
    cdef Valuation valuation
    cdef size_t k = 0, count = len(rows)
    set_function(&valuation, capsule, slots)
    values = np.empty(count)
    cdef double[::1] out = values
    if count:
        with nogil:
            k = values_of_parts(valuation, &rows[0], &starts[0], &lengths[0], count, &out[0])
    cdef ValueAnswer answer
    cdef Query query
    if k < count:
        answer.status = <Status><int>Wrong.criterion_failed
        answer.fault.row = rows[k]
        raise error_of(answer, query, slots, name)
    return values


def find(PreparedSlots pool not None, Request request not None, str worth, object data, double sign,
         str name, str shape, *, bint lite, bint any_start, bint group_span, double gap, int64_t max_work,
         double memory, bint record, bint fixed=False):
    """The best window by value, or with `record` the best value of each step.

    `data` is a float64 column, or a capsule of a function; which, `worth` and the capsule's
    name say. A `fixed` function does not look at the length. Returns None, a Window, or a pair of arrays (starts, values).
    """
    cdef Valuation valuation
    cdef ValueOptions options
    cdef Query query = request.query
    valuation.sign = sign
    if worth == "function":
        set_function(&valuation, data, pool.slots)
        valuation.fixed = fixed
    else:
        valuation.worth = <ValueKind><int>WORTHS[worth]
        if worth == "column":
            valuation.column = <const double*>cnp.PyArray_DATA(<cnp.ndarray>data)
    if request.where is not None:
        mask = pool.mask_of(request.where)
        query.mask = <const unsigned char*>cnp.PyArray_DATA(<cnp.ndarray>mask)
    options.lite, options.any_start, options.gap = lite, any_start, gap
    options.group_span = group_span
    options.limits.work, options.limits.memory = max_work, memory
    cdef ShapeKind form = ShapeKind.ragged if shape == "ragged" else ShapeKind.square
    cdef ValueAnswer answer
    cdef Watch watch
    watch.arm(hears())
    answer.status = Status.interrupted
    while answer.status == Status.interrupted:
        ask(watch)
        with nogil:
            answer = find_by_value(pool.prepared, query, valuation, form, options, record)
    if answer.status == Status.none and not record:
        return None
    if answer.status != Status.ok and answer.status != Status.none:
        raise error_of(answer, query, pool.slots, name, max_work, memory)
    if record:
        return steps_of()
    cdef Answer plain
    plain.found, plain.parts = answer.found, answer.parts
    cdef Window window = wrap(plain, query.n, name, shape)
    window.proven, window.bound = answer.proven, answer.bound
    window.effort = {"groups": answer.effort.groups, "steps": answer.effort.steps,
                     "subsets": answer.effort.subsets, "work": answer.effort.work}
    return window


cdef object steps_of():
    cdef size_t k, size = recorded_steps().size()
    starts, values = np.empty(size), np.empty(size)
    cdef double[::1] start = starts, value = values
    for k in range(size):
        start[k], value[k] = recorded_steps()[k].start, recorded_steps()[k].value
    return starts, values

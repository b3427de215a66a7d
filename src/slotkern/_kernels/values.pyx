"""Binding of searches by value: validate, release the GIL, call the kernel, wrap the result."""

from typing import NamedTuple

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int64_t
from libcpp cimport bool as cbool
from libcpp.utility cimport move
from libcpp.vector cimport vector

from slotkern._kernels.base cimport (
    Fault, Status, InterruptScope, attempt, status_error,
)
from slotkern._kernels.slots cimport PreparedSlots, division_of_rows, refuse_under_tariffs
from slotkern._kernels.headers cimport (
    Answer, CGroupRules, CPreparedSlots, Found, Part, Query, ShapeKind)
from slotkern._kernels.request cimport Request, parse_shape
from slotkern._kernels.windows cimport Window, window_from_answer

from slotkern._kernels.windows import SLOT_STARTS

cnp.import_array()

cdef extern from "slotkern/value/find.hpp" namespace "slotkern" nogil:
    cdef enum class ValueKind(int):
        column
        static_function
        moving_function

    cdef cppclass string_view "std::string_view":
        const char* data()
        size_t size()

    cdef cppclass SourceFacts:
        string_view name, doc
        cbool moving, needs_end, mean
        double sign

    const int kSources
    SourceFacts source_facts(int) noexcept

    cdef cppclass Valuation:
        ValueKind kind
        double sign
        const double* column
        void* function
        cbool fixed
        const char* records
        Py_ssize_t stride

    cdef cppclass WorkLimits:
        int64_t work
        double memory

    cdef cppclass ValueOptions:
        cbool lite, any_start, group_span
        double gap
        WorkLimits limits

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
    vector[StepValue]& recorded_steps() noexcept
    size_t values_of_parts(const CPreparedSlots&, const Valuation&, const int64_t*, const double*,
                           const double*, size_t, double*) noexcept

# The signatures of C functions, which are also the names of their capsules.
STATIC_SIGNATURE = "int (const void *, double, double *)"
MOVING_SIGNATURE = "int (const void *, double, double, double *)"


cdef str decode_view(string_view text):
    return text.data()[:text.size()].decode()


class NamedValue(NamedTuple):
    """Properties of a named value, from the kernels' list of sources."""

    source_index: int
    doc: str
    moving: bool
    needs_end: bool
    mean: bool
    sign: float


cdef dict list_named_values():
    cdef int index
    cdef SourceFacts facts
    values = {}
    for index in range(kSources):
        facts = source_facts(index)
        if facts.name.size():
            values[decode_view(facts.name)] = NamedValue(
                index, decode_view(facts.doc), facts.moving, facts.needs_end, facts.mean,
                facts.sign)
    return values


#: The named sums of values, in the order of the kernels' list of sources.
NAMED_VALUES = list_named_values()


def capsule_signature(capsule):
    """Return the name of a capsule, which is the signature of its function, or None."""
    if type(capsule).__name__ != "PyCapsule":
        return None
    cdef const char* name = PyCapsule_GetName(capsule)
    return None if name == NULL else (<bytes>name).decode(errors="replace")


cdef object value_error(const ValueAnswer& answer, double volume, object slots, str name,
                        int64_t work=0, double memory=0):
    row = answer.fault.row
    slot = slots[row] if row < <size_t>len(slots) else None
    return status_error(answer.status, "search",
                    {"name": name, "row": row, "slot": slot, "volume": volume, "work": work,
                     "part": f"the slot of row {row}: {slot}", "megabytes": memory / 2**20})


cdef int set_function(Valuation* valuation, object capsule, cnp.ndarray slots) except -1:
    """Set the valuation to a C function over these records, which must outlive it."""
    signature = capsule_signature(capsule)
    if signature == STATIC_SIGNATURE:
        valuation.kind = ValueKind.static_function
    elif signature == MOVING_SIGNATURE:
        valuation.kind = ValueKind.moving_function
    else:
        raise TypeError(f"a criterion's capsule must be named {STATIC_SIGNATURE!r} or "
                        f"{MOVING_SIGNATURE!r}, got {signature!r}")
    valuation.function = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    valuation.records = <const char*>cnp.PyArray_DATA(slots)
    valuation.stride = cnp.PyArray_STRIDE(slots, 0)
    return 0


cdef int set_valuation(Valuation* valuation, str source, object data, cnp.ndarray slots) except -1:
    """Set the valuation to a source with its data; see `find`."""
    if source == "function":
        set_function(valuation, data, slots)
    elif source == "column":
        valuation.kind = ValueKind.column
        valuation.column = <const double*>cnp.PyArray_DATA(<cnp.ndarray>data)
    else:
        valuation.kind = <ValueKind><int>NAMED_VALUES[source].source_index
    return 0


def evaluate_parts(PreparedSlots pool not None, str source, object data, str name,
                const int64_t[::1] rows, const double[::1] starts, const double[::1] lengths):
    """Return the value of each part in the slot of its row; `source`, `data`: see `find`."""
    cdef Valuation valuation
    cdef size_t k = 0, count = len(rows)
    set_valuation(&valuation, source, data, pool.slots)
    values = np.empty(count)
    cdef double[::1] out = values
    if count:
        with nogil:
            k = values_of_parts(pool.prepared, valuation, &rows[0], &starts[0], &lengths[0], count,
                                &out[0])
    cdef ValueAnswer answer
    if k < count:
        answer.status, answer.fault.row = Status.criterion_failed, rows[k]
        raise value_error(answer, 0, pool.slots, name)
    return values


def find(PreparedSlots pool not None, Request request not None, str source, object data,
         double sign, str name, str shape, *, bint lite, bint any_start, bint group_span,
         double gap, int64_t max_work, double memory, bint record, bint fixed=False):
    """Return the best window by value, or with `record` the best value of each step.

    `source`: "column", "function" or a name of NAMED_VALUES. `data`: the float64 column, or the
    capsule of the function, whose name is its signature. `fixed`: the function does not depend on
    the length. Returns None, a Window, or a pair of arrays (starts, values).
    """
    cdef ValueSearch search
    refuse_under_tariffs(pool, "criteria of sums of values do")
    request = pool.compile_request(request)
    search.query = request.query
    search.valuation.sign = sign
    set_valuation(&search.valuation, source, data, pool.slots)
    search.valuation.fixed = fixed
    search.options.lite, search.options.any_start, search.options.gap = lite, any_start, gap
    search.options.group_span = group_span
    search.options.limits.work, search.options.limits.memory = max_work, memory
    search.shape = parse_shape(shape)
    search.record = record
    if search.query.groups != NULL:
        return best_of_groups(pool, search, request.where, name, shape)
    return run_search(pool, search, name, shape)


cdef struct ValueSearch:
    Query query
    Valuation valuation
    ValueOptions options
    ShapeKind shape
    bint record


cdef object run_search(PreparedSlots pool, ValueSearch& search, str name, str shape):
    cdef ValueAnswer answer
    cdef InterruptScope interrupts
    while attempt(interrupts, answer.status):
        with nogil:
            answer = find_by_value(pool.prepared, search.query, search.valuation, search.shape,
                                   search.options, search.record)
    if answer.status == Status.none and not search.record:
        return None
    if answer.status != Status.ok and answer.status != Status.none:
        raise value_error(answer, search.query.volume, pool.slots, name,
                          search.options.limits.work, search.options.limits.memory)
    if search.record:
        return take_recorded_steps()
    cdef Answer plain
    plain.found, plain.parts = answer.found, answer.parts
    cdef Window window = window_from_answer(plain, search.query.n, name, shape)
    window.proven, window.bound = answer.proven, answer.bound
    if source_facts(<int>search.valuation.kind).moving and not search.options.any_start:
        window.proven_over = SLOT_STARTS
    window.effort = {"groups": answer.effort.groups, "steps": answer.effort.steps,
                     "subsets": answer.effort.subsets, "work": answer.effort.work}
    return window


cdef Window best_of_groups(PreparedSlots pool, ValueSearch& search, object where, str name,
                           str shape):
    """Return the best window of all groups: one search of the slots of each.

    Raises ValueError for rules other than that all nodes are of one group.
    """
    cdef const CGroupRules* rules = search.query.groups
    if not rules.is_within():
        raise ValueError("criteria of sums of values support within= alone, not 'distinct' with "
                         "other bounds or 'most'")
    if search.record or search.options.lite:
        raise ValueError("step_values and method 'lite' do not support within=")
    cdef Window best = None, window
    cdef SourceFacts facts = source_facts(<int>search.valuation.kind)
    cdef double direction = facts.sign if facts.name.size() else search.valuation.sign
    cdef double bound = -INFINITY, unproven = -INFINITY
    cdef int group
    cdef cnp.ndarray mask
    division = division_of_rows(pool, rules[0])
    search.query.groups = NULL
    for group in range(<int>rules.divisions):
        mask = division == group
        if where is not None:
            mask &= where
        search.query.mask = <const unsigned char*>cnp.PyArray_DATA(mask)
        search.query.masked = len(mask)
        window = run_search(pool, search, name, shape)
        if window is None:
            continue
        bound = max(bound, direction * window.bound)
        if not window.proven:
            unproven = max(unproven, direction * window.bound)
        if best is None or direction * window.value > direction * best.value:
            best = window
    if best is not None:
        best.bound = direction * bound
        best.proven = unproven <= direction * best.value
    return best


cdef object take_recorded_steps():
    cdef vector[StepValue] steps = move(recorded_steps())  # moved first: see window_from_answer()
    cdef size_t k, size = steps.size()
    starts, values = np.empty(size), np.empty(size)
    cdef double[::1] start = starts, value = values
    for k in range(size):
        start[k], value[k] = steps[k].start, steps[k].value
    return starts, values

# What all doors of slotkern share: codes, signals, arguments.
from cpython.exc cimport PyErr_CheckSignals
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.math cimport INFINITY, NAN
from libcpp cimport bool as cbool


cdef extern from "slotkern/base/status.hpp" namespace "slotkern" nogil:
    cpdef enum class Status(int):
        ok
        none
        no_memory
        internal
        interrupted
        node_negative
        start_not_finite
        end_is_nan
        end_not_after_start
        performance_not_positive
        price_not_valid
        not_sorted
        performance_differs
        overlap
        volume_too_small
        cost_not_valid
        value_not_finite
        sum_overflows
        cost_not_integer
        table_too_large
        weight_not_finite
        weights_overflow
        endless
        too_many
        too_many_live
        not_free
        not_booked
        criterion_failed
        end_is_infinite
        out_of_work
        limit_failed
        request_not_valid
        time_is_nan
        undecided

    cdef struct Fault:
        Status status
        size_t row
        size_t other


cdef extern from "slotkern/base/interrupt.hpp" namespace "slotkern" nogil:
    # Of one call, on the stack of its door.
    cdef cppclass InterruptScope:
        void arm(cbool runs_python_handlers)
        void install()
        void clear()


# Let signals be answered, before each try of a call that they may interrupt.
cdef inline int ask(InterruptScope& watch) except -1:
    watch.clear()
    return PyErr_CheckSignals()


# A float or int as it is: what needs no call of Python.
cdef inline bint is_plain(object value) noexcept:
    return type(value) is float or type(value) is int


# A number that is not NaN; what is not at once in order is for checks.py to say.
cdef inline double number(
    object value, str name, double least=-INFINITY, bint finite=False
) except? -1.0:
    cdef double x = NAN
    cdef int beyond = 0
    if type(value) is float:
        x = <double>value
    elif type(value) is int:
        x = <double>PyLong_AsLongLongAndOverflow(value, &beyond)
    if not beyond and x >= least and (not finite or x < INFINITY):
        return x
    return number_of(value, name, least, finite)


cdef bint hears() noexcept
cdef str name_of(Status status)
cdef object error_of(Status status, str doing, dict details=*)
cdef double number_of(object value, str name, double least, bint finite) except? -1.0
cdef Py_ssize_t place_in(object index, Py_ssize_t size, str things) except -1

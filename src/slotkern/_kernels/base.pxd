# Shared by all bindings: status codes, signals, numbers and indices.
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
        line_not_valid

    cdef struct Fault:
        Status status
        size_t row
        size_t other


cdef extern from "slotkern/base/interrupt.hpp" namespace "slotkern" nogil:
    # Lives on the stack of the binding, for the duration of one call.
    cdef cppclass InterruptScope:
        cbool is_armed() const
        void arm(cbool runs_python_handlers)
        void install()
        void clear()


# Repeats an interrupted kernel: `while attempt(interrupts, status): status = kernel(...)`. Returns
# True before the first attempt, whatever the status, and after each interrupted one. Before each
# attempt it runs pending Python signal handlers; their exceptions, such as KeyboardInterrupt, end
# the call. `long_call`: installs the signal handlers at once, before pending signals are checked,
# so that no signal is missed.
cdef inline bint attempt(
    InterruptScope& interrupts, Status status, bint long_call=False
) except -1:
    if not interrupts.is_armed():
        interrupts.arm(is_main_thread())
        if long_call:
            interrupts.install()
    elif status != Status.interrupted:
        return False
    interrupts.clear()
    PyErr_CheckSignals()
    return True


# True for exact floats and ints, which convert without a call of Python.
cdef inline bint is_plain(object value) noexcept:
    return type(value) is float or type(value) is int


# Converts a number: not NaN, >= least, and finite if asked. Fast path for floats and ints; other
# values go through checks.py, which raises ValueError or TypeError with the argument's name.
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
    return convert_number(value, name, least, finite)


cdef bint is_main_thread() noexcept
cdef str status_name(Status status)
cdef object status_error(Status status, str doing, dict details=*)
cdef double convert_number(object value, str name, double least, bint finite) except? -1.0
cdef Py_ssize_t resolve_index(object index, Py_ssize_t size, str item_noun) except -1

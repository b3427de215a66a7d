# Shared by all bindings: status codes, signals, numbers and indices.
from cpython.exc cimport PyErr_CheckSignals
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.math cimport INFINITY, NAN
from libcpp cimport bool as cbool


cdef extern from "slotkern/base/status.hpp" namespace "slotkern" nogil:
    cdef enum class Status(int):  # the codes that bindings name; base/status_list.hpp has all
        ok
        none
        no_memory
        internal
        interrupted
        cost_not_valid
        value_not_finite
        sum_overflows
        weight_not_finite
        weights_overflow
        endless
        too_many
        not_free
        not_booked
        request_not_valid
        criterion_failed
        limit_failed
        undecided
        line_not_valid

    cdef struct StatusText:
        const char* code
        const char* error
        const char* words
        const char* message

    const StatusText* kStatusTexts
    const char** kReasonTexts
    const int kReasons

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
# so that no signal is missed. `status` is a reference, because it has no value before the first.
cdef inline bint attempt(
    InterruptScope& interrupts, const Status& status, bint long_call=False
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
cdef str status_message(Status status)
cdef object status_error(Status status, str doing, dict details=*)
cdef double convert_number(object value, str name, double least, bint finite) except? -1.0
cdef Py_ssize_t resolve_index(object index, Py_ssize_t size, str item_noun) except -1

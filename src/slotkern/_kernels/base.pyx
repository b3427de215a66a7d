"""Shared by all bindings: signals, status codes as exceptions, numbers and indices."""

import os

from libc.math cimport INFINITY

from slotkern.foundation.checks import number as checked_number
from slotkern.foundation.errors import SlotError, UndecidedError

cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()

cdef extern from "slotkern/base/numbers.hpp" namespace "slotkern" nogil:
    const char* clones_in_use()

# Identifier of the main thread; 0: not yet determined. Determined at the first search, so that an
# import of slotkern does not import `threading`.
cdef unsigned long main_thread = 0


def _become_main_thread():
    global main_thread
    main_thread = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):  # the forking thread is the child's main thread
    os.register_at_fork(after_in_child=_become_main_thread)


cdef bint is_main_thread() noexcept:
    """Return True in the main thread, the only one that runs Python signal handlers."""
    global main_thread
    if main_thread == 0:
        import threading
        main_thread = threading.main_thread().ident
    return PyThread_get_thread_ident() == main_thread


# The words of the reasons why a request has no window, by code.
REASONS = tuple([kReasonTexts[i].decode() for i in range(kReasons)])

cdef dict ERRORS = {error.__name__: error for error in (
    MemoryError, RuntimeError, SlotError, UndecidedError, ValueError)}


cdef str status_name(Status status):
    """Return the name of a status code."""
    return kStatusTexts[<int>status].code.decode()


cdef str status_message(Status status):
    """Return the format of the message of a status code."""
    return kStatusTexts[<int>status].message.decode()


cdef object status_error(Status status, str doing, dict details=None):
    """Return the exception for a status code; base/status_list.hpp has the messages."""
    error = ERRORS[kStatusTexts[<int>status].error.decode()]
    return error(status_message(status).format(doing=doing, **(details or {})))


cdef double convert_number(object value, str name, double least, bint finite) except? -1.0:
    """Convert a number by checks.py; raise ValueError or TypeError with the argument's name."""
    return checked_number(name, value, least=None if least == -INFINITY else least, finite=finite)


cdef Py_ssize_t resolve_index(object index, Py_ssize_t size, str item_noun) except -1:
    """Return the position of a (maybe negative) index in a sequence of `size` items."""
    try:
        return range(size)[index]
    except TypeError:
        name = type(index).__name__
        raise TypeError(f"index must be an integer or a slice, got {name}") from None
    except IndexError:
        raise IndexError(f"index {index} is out of range for {size} {item_noun}") from None


def kernel_target():
    """Return the instruction set for which the multiversioned kernels run on this processor."""
    return clones_in_use().decode()

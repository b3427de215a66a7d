"""What all doors share: signals, codes that become exceptions, numbers, places."""

import os

from libc.math cimport INFINITY

from slotkern.checks import number as checked_number
from slotkern.errors import kernel_error

cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()

cdef extern from "slotkern/base/numbers.hpp" namespace "slotkern" nogil:
    const char* clones_in_use()

# 0: not known yet. Asked at the first search, for an import does without `threading`.
cdef unsigned long main_thread = 0


def _become_main_thread():
    global main_thread
    main_thread = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):  # a child has one thread, whichever of ours it was
    os.register_at_fork(after_in_child=_become_main_thread)


cdef bint hears() noexcept:
    """Whether Python answers signals in this thread."""
    global main_thread
    if main_thread == 0:
        import threading
        main_thread = threading.main_thread().ident
    return PyThread_get_thread_ident() == main_thread


cdef str name_of(Status status):
    """The name of a code."""
    return Status(status).name


cdef object error_of(Status status, str doing, dict details=None):
    """The exception of what a kernel answered: see errors.py."""
    return kernel_error(name_of(status), doing, **(details or {}))


cdef double number_of(object value, str name, double least, bint finite) except? -1.0:
    """A number by the rules of checks.py, which says what is wrong with any other."""
    return checked_number(name, value, least=None if least == -INFINITY else least, finite=finite)


cdef Py_ssize_t place_in(object index, Py_ssize_t size, str things) except -1:
    """The place that an index means in a sequence of so many things."""
    try:
        return range(size)[index]
    except TypeError:
        name = type(index).__name__
        raise TypeError(f"index must be an integer or a slice, got {name}") from None
    except IndexError:
        raise IndexError(f"index {index} is out of range for {size} {things}") from None


def clones():
    """For which processors the loops that are compiled for several run here."""
    return clones_in_use().decode()

# Types of slotkern for its own doors: many windows.
from slotkern._kernels cimport Answer, CWindowTable, Part


cdef class Window:
    cdef readonly double start, finish, runtime, cost, processor_time, value, bound
    cdef readonly bint proven
    cdef readonly str proven_over  # the starts that `proven` and `bound` speak of
    cdef readonly str criterion, shape
    cdef readonly object effort
    cdef public object name, terms  # of the request; (clock, machine) of the slots, or None
    cdef Part* parts
    cdef Py_ssize_t count
    cdef object table


cdef Window wrap(const Answer& answer, Py_ssize_t n, str criterion, str shape)


cdef class WindowTable:
    cdef CWindowTable windows
    cdef readonly str criterion, shape
    cdef readonly str proven_over  # as of a Window; None: all starts
    cdef readonly list names  # of the requests, or None where they have none
    cdef public object terms  # (clock, machine) of the slots searched, or None
    cdef object row_table, part_table
    cdef str things(self)
    cdef Window window(self, size_t i)
    cdef WindowTable chosen(self, object rows)
    cdef object flat_parts(self)
    cdef dict figures(self)


cdef WindowTable gathered(type kind, object windows, str criterion, str shape)

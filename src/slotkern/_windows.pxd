# Types of slotkern for its own doors: many windows.
from libc.stdint cimport uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from slotkern._kernels cimport Answer, Found, Part


cdef extern from "slotkern/window/window.hpp" namespace "slotkern" nogil:
    cdef struct WindowRow:
        pass

    cdef struct PartRow:
        pass

    cdef cppclass CWindowTable "slotkern::WindowTable":
        vector[Found] found
        vector[size_t] firsts
        vector[Part] parts
        size_t size() const
        cbool any(size_t) const
        size_t count(size_t) const
        const Part* parts_of(size_t) const
        double bound(size_t) const
        cbool is_proven(size_t) const
        void clear()
        void add(const Found&, const Part*, size_t) except +
        void add_none() except +
        void set_bound(double, cbool) except +
        void add_from(const CWindowTable&, size_t) except +
        void fill(WindowRow*) const
        void fill(PartRow*) const


cdef class Window:
    cdef readonly double start, finish, runtime, cost, processor_time, value, bound
    cdef readonly bint proven
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
    cdef readonly list names  # of the requests, or None where they have none
    cdef public object terms  # (clock, machine) of the slots searched, or None
    cdef object row_table, part_table
    cdef str things(self)
    cdef Window window(self, size_t i)
    cdef WindowTable chosen(self, object rows)
    cdef object flat_parts(self)
    cdef dict figures(self)


cdef WindowTable gathered(type kind, object windows, str criterion, str shape)

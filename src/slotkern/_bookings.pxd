# Types of slotkern for its own doors: what a stream of requests was given.
from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from slotkern._windows cimport WindowTable


cdef class Bookings(WindowTable):
    cdef vector[uint8_t] codes  # of Reason, by request

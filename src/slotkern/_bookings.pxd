# Internal declarations: the result of SlotPool.schedule.
from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from slotkern._windows cimport WindowTable


cdef class Bookings(WindowTable):
    cdef vector[uint8_t] codes  # reason of each request: an index of REASONS

# Internal declarations: dates and durations of requests and clocks.
from libc.stdint cimport int64_t


cdef class TimeValue:
    cdef object value, long_ns  # as given; nanoseconds that exceed int64, else None
    cdef int64_t short_ns
    cdef int store(self, object ns, object value) except -1


cdef class Moment(TimeValue):
    cdef readonly bint aware
    cdef readonly object fold


cdef class Duration(TimeValue):
    pass


cdef class Scale:
    cdef int64_t origin, tick, per
    cdef object zone, given
    cdef bint quick
    cdef bint convert(self, TimeValue value, double* number) except -1


cdef bint needs_clock(object value) except -1
cdef TimeValue parse_time_value(object value, str name, bint is_duration)

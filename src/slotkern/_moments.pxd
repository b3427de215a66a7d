# Dates and durations as requests and clocks hold them. For slotkern's own doors.
from libc.stdint cimport int64_t


cdef class Said:
    cdef object value, long_ns  # what was said; nanoseconds, where int64 does not hold them
    cdef int64_t short_ns
    cdef int hold(self, object ns, object value) except -1


cdef class Moment(Said):
    cdef readonly bint aware
    cdef readonly object fold


cdef class Duration(Said):
    pass


cdef class Scale:
    cdef int64_t origin, tick, per
    cdef object zone, given
    cdef bint quick
    cdef bint number_of(self, Said said, double* number) except -1


cdef bint is_said(object value) except -1
cdef Said meaning_of(object value, str name, bint lasts)

# Internal declarations: requests.
from cpython.object cimport PyObject

from slotkern._kernels.base cimport Status
from slotkern._kernels.headers cimport SumConstraints, Query, ShapeKind


cdef class Request:
    cdef Query query
    cdef readonly object where, name
    cdef readonly object as_given  # {field: (value, parsed)} of times that need a clock, or None
    cdef readonly tuple limits  # of Limit
    cdef readonly tuple rules  # of Rule: the group rules of `limits` and `within`
    cdef readonly dict special  # {field: value} of set fields of SPECIAL_FIELDS, or None
    cdef SumConstraints sums  # storage of query.limits; `referenced_arrays` keeps its arrays alive
    cdef list referenced_arrays
    cdef tuple compiled  # cached (table, request with its mask and weights), or None
    cdef tuple resolved  # cached (clock, this request with times in its numbers), or None
    cdef object resolve_volume(self, object volume, object walltime, object reference)
    cdef int set_field(self, int i, object value) except -1
    cdef int check_order(self, PyObject** given) except -1
    cdef int store_as_given(self, object value, str name, bint is_duration) except -1


cdef Request convert_times(Request request, object clock, object position)
cdef Request copy_request(Request request)
cdef bint is_booking_invariant(Request request) except -1
cdef ShapeKind parse_shape(str shape) except *
cdef object search_error(Status status, Query query)

# Types of slotkern for its own doors: requests.
from slotkern._base cimport Status
from slotkern._kernels cimport SumConstraints, Query, ShapeKind
from slotkern._moments cimport Scale


cdef class Request:
    cdef Query query
    cdef readonly object where, name, said  # said: what only a clock makes numbers, or None
    cdef readonly tuple limits  # of Limit
    cdef SumConstraints sums  # what query.limits points at, and the arrays that it points at
    cdef list tied_arrays
    cdef tuple tied  # (table, this request with what its filter and limits say of it), or None
    cdef tuple plain  # (clock, the same request in its numbers), or None
    cdef object amount(self, object volume, object walltime, object reference)
    cdef object kept(self, object value, str name, double otherwise, bint duration)


cdef Request numbers_of(Request request, Scale scale)
cdef Request copy_of(Request request)
cdef bint lasting(Request request) except -1
cdef ShapeKind shape_of(str shape) except *
cdef object search_error(Status status, Query query)

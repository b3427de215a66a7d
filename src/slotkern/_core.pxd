# Types of slotkern for its own doors. Other people's modules cimport slotkern.embed.
from slotkern._base cimport Status
from slotkern._kernels cimport Answer, CPreparedSlots, Query, ShapeKind


cdef class Request:
    cdef Query query
    cdef readonly object where, name, said  # said: what only a clock makes numbers, or None
    cdef tuple plain  # (clock, the same request in its numbers), or None
    cdef object amount(self, object volume, object walltime, object reference)
    cdef object heard(self, object value, str name, double otherwise, bint duration)


cdef class PreparedSlots:
    cdef CPreparedSlots prepared
    cdef object table, origin
    cdef readonly object terms  # (clock, machine), or None
    cdef dict masks
    cdef bint changed
    cdef object mask_of(self, object where)
    cdef object array(self)
    cdef PreparedSlots settled(self)
    cdef void enter(self, double least_volume) noexcept
    cdef void leave(self) noexcept nogil
    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape)


cpdef Request in_numbers(object slots, Request request)
cdef object terms_of(object slots)
cdef PreparedSlots pool_of(object slots, bint both, ShapeKind shape, size_t n)
cdef ShapeKind shape_of(str shape) except *
cdef bint lasting(object where) except -1
cdef Request request_with(Request request, object mask)
cdef object search_error(Status status, Query query)

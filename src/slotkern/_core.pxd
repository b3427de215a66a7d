# Types of slotkern for its own doors. Other people's modules cimport slotkern.embed.
from slotkern._kernels cimport Answer, Part, CPreparedSlots, Query, ShapeKind, Status


cdef class Request:
    cdef Query query
    cdef readonly object where


cdef class PreparedSlots:
    cdef CPreparedSlots prepared
    cdef object table, origin
    cdef dict masks
    cdef bint changed
    cdef object mask_of(self, object where)
    cdef object array(self)
    cdef PreparedSlots settled(self)
    cdef void enter(self, double least_volume) noexcept
    cdef void leave(self) noexcept nogil
    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape)


cdef class Window:
    cdef readonly double start, finish, runtime, cost, processor_time, value, bound
    cdef readonly bint proven
    cdef readonly str criterion, shape
    cdef readonly object effort
    cdef Part* parts
    cdef Py_ssize_t count
    cdef object table


cdef Window wrap(const Answer& answer, Py_ssize_t n, str criterion, str shape)
cdef PreparedSlots pool_of(object slots, bint both, ShapeKind shape, size_t n)
cdef ShapeKind shape_of(str shape) except *
cdef Py_ssize_t place_in(object index, Py_ssize_t size, str things) except -1
cdef bint lasting(object where) except -1
cdef Request request_with(Request request, object mask)
cdef object search_error(Status status, Query query)
cdef bint hears() noexcept

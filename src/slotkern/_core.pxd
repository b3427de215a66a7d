# Types of slotkern for cimport.
from slotkern._kernels cimport Answer, Part, Pool, Query, Shape, Status


cdef class Request:
    cdef Query query
    cdef readonly object where


cdef class SlotPool:
    cdef Pool pool
    cdef readonly object slots
    cdef dict masks
    cdef object mask_of(self, object where)


cdef class Window:
    cdef readonly double start, finish, runtime, cost, processor_time, value, bound
    cdef readonly bint proven
    cdef readonly str criterion, shape
    cdef readonly object effort
    cdef Part* parts
    cdef Py_ssize_t count
    cdef object table


cdef Window wrap(const Answer& answer, Py_ssize_t n, str criterion, str shape)
cdef SlotPool pool_of(object slots, bint both, Shape shape, size_t n)
cdef Shape shape_of(str shape) except *
cdef object search_error(Status status, Query query)

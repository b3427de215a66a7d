# Types of slotkern for its own doors. Other people's modules cimport slotkern.embed.
from libcpp.vector cimport vector

from slotkern._base cimport Status
from slotkern._kernels cimport Answer, CostCachePool, CPreparedSlots, CWindowTable, Query, ShapeKind
from slotkern._request cimport Request

# Slots of so many nodes are searched without the GIL: below, handing it over costs more.
cdef enum:
    LARGE = 8192
    MANY = 16  # requests that may take a while together


cdef class PreparedSlots:
    cdef CPreparedSlots prepared
    cdef CostCachePool costs         # what searches learn until the slots change
    cdef object table, origin
    cdef readonly object terms  # (clock, machine), or None
    cdef dict masks
    cdef bint changed
    cdef bint borrowed  # the table is the user's own array, which may change
    cdef object mask_of(self, object where, object table)
    cdef Request bound(self, Request request)
    cdef Request bound_one(self, Request request, i)
    cdef object uses_of(self, object limit, object table)
    cdef object kept(self, object key, object table)
    cdef int keep(self, object key, object column, object table) except -1
    cdef object array(self)
    cdef PreparedSlots settled(self)
    cdef PreparedSlots settled_for(self, const Query& query)
    cdef Status enter(self, double least_volume) except *
    cdef void leave(self) noexcept nogil
    # The sweeps are compiled here and for pools (_changing): each door that called them by
    # itself would hold half a megabyte of its own.
    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape)
    cdef Status search_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                           unsigned threads, CWindowTable& out, size_t& wrong) except *


cpdef Request in_numbers(object slots, Request request, object place=*)
cdef object terms_of(object slots)
cdef PreparedSlots pool_of(object slots, bint both, ShapeKind shape, size_t n)

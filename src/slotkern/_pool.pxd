# Types of slotkern for its own doors: a pool of slots.
from libcpp.vector cimport vector

from slotkern._base cimport Status
from slotkern._changing cimport ChangingSlots, CSlotPool, shared_mutex
from slotkern._kernels cimport SumConstraints
from slotkern._windows cimport Window


cdef extern from "slotkern/pool/embed.hpp" namespace "slotkern" nogil:
    cdef cppclass PoolHandle:
        CSlotPool* pool
        shared_mutex* mutex
        vector[const SumConstraints*] limits


cdef class SlotPool(ChangingSlots):
    cdef PoolHandle c_handle
    cdef dict numbered            # limits: (the table they are of, their number in the handle)
    cdef list bound_limits        # requests whose limits the handle refers to
    cdef void forget_limits(self)
    cdef dict owner_of            # the owner of each window that has one; some are past
    cdef readonly dict _generations    # of the files loaded or saved, by their real path
    cdef readonly object _closures     # when nodes are closed: see machine/closures.py
    cdef size_t purge_at               # owned windows, at which those that are past leave
    cdef int forget_past(self) except -1
    cdef int own(self, list windows, str owner) except -1
    cdef int release_one(self, Window window) except -1
    cdef Status still_booked(self, list windows, size_t& which, size_t& bad) except *

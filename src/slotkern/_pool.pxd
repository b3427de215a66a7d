# Internal declarations: the pool.
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
    cdef dict limit_numbers       # limits: (table they were compiled for, number in the handle)
    cdef list compiled_limits        # compiled requests that own the limits of the handle
    cdef void invalidate_limits(self)
    cdef dict owners_by_window            # owner of each owned window; may include past windows
    cdef readonly dict _generations    # generations of loaded or saved files, by real path
    cdef readonly object _closures     # closed time of nodes: see pool/closures.py
    cdef size_t purge_threshold        # number of owned windows that triggers a purge
    cdef int drop_past_owners(self) except -1
    cdef int record_owner(self, list windows, str owner) except -1
    cdef int release_one(self, Window window) except -1
    cdef Status check_booked(self, list windows, size_t& failed_window,
                             size_t& failed_part) except *

# Types of slotkern for its own doors: a pool that changes.
from libc.stdint cimport int32_t, uint8_t
from libcpp.vector cimport vector

from slotkern._base cimport Status
from slotkern._core cimport PreparedSlots
from slotkern._kernels cimport CPreparedSlots
from slotkern._spans cimport Span
from slotkern._windows cimport Window


cdef extern from "<shared_mutex>" namespace "std" nogil:
    cdef cppclass shared_mutex:
        void lock()
        bint try_lock()
        void unlock()
        void lock_shared()
        bint try_lock_shared()
        void unlock_shared()


cdef extern from "slotkern/pool/embed.hpp" namespace "slotkern" nogil:
    cdef cppclass PoolState:
        double now
        vector[int32_t] free_nodes, booked_nodes, gone
        vector[Span] free, booked
        size_t known

    cdef cppclass CSlotPool "slotkern::SlotPool":
        double now()
        size_t version()
        const vector[uint8_t]& gone()

    cdef cppclass PoolDoor:
        CSlotPool* pool
        shared_mutex* mutex

    Status open_pool(CSlotPool&, CPreparedSlots&, const vector[double]&, const PoolState*) noexcept
    Status state_of(const CSlotPool&, PoolState&) noexcept


cdef class SlotPool(PreparedSlots):
    cdef CSlotPool pool
    cdef shared_mutex mutex
    cdef PoolDoor door
    cdef object ledger            # who owns which windows, once anybody does, or None
    cdef object snapshot          # (version, slots, their rows of origin), or None
    cdef PreparedSlots current    # prepared from the snapshot, or None
    cdef void lock(self) noexcept
    cdef int start_change(self) except -1
    cdef int own(self, list windows, str owner) except -1
    cdef int release_one(self, Window window) except -1


cdef int check_status(Status status) except -1

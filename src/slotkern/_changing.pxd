# Internal declarations: prepared slots that change, and their lock.
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from slotkern._base cimport Status
from slotkern._core cimport PreparedSlots
from slotkern._kernels cimport CPreparedSlots, CWindowTable, Query, ShapeKind
from slotkern._spans cimport Span


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
        vector[int32_t] free_nodes, booked_nodes, removed
        vector[Span] free, booked
        size_t first_new_span
        vector[int32_t] withheld_nodes, closed_nodes
        vector[Span] withheld, closed

    cdef cppclass CSlotPool "slotkern::SlotPool":
        double now()
        size_t version()
        const vector[uint8_t]& removed()

    Status open_pool(CSlotPool&, CPreparedSlots&, const vector[double]&, const PoolState*) noexcept
    Status extend_pool(CSlotPool&, CPreparedSlots&, const vector[double]&,
                       const PoolState&) noexcept
    Status copy_pool(CSlotPool&, CPreparedSlots&, const CSlotPool&, const CPreparedSlots&) noexcept
    Status state_of(const CSlotPool&, PoolState&) noexcept
    Status free_between(const CSlotPool&, double, double, PoolState&) noexcept


cdef class ChangingSlots(PreparedSlots):
    cdef CSlotPool pool
    cdef shared_mutex mutex
    cdef object free_table          # cached (version, free slots, their origin rows), or None
    cdef PreparedSlots current    # prepared from `free_table`, or None
    cdef int lock(self) except -1
    cdef int lock_current(self) except -1
    cdef int lock_for_change(self) except -1
    cdef Status schedule_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                          CWindowTable& out, vector[uint8_t]& reasons) except *


# Addresses of slotkern_find, _book and _release of pool/embed.hpp, which only _changing compiles.
ctypedef int (*Find)(void* handle, const double* request, int64_t fields, int criterion, int shape,
                     double* totals, int64_t* rows, int32_t* nodes, double* lengths,
                     double* costs) noexcept nogil
ctypedef int (*Change)(void* handle, double start, int64_t n, const int64_t* rows,
                       const int32_t* nodes, const double* lengths) noexcept nogil
cdef Find find_at
cdef Change book_at, release_at
cdef int check_status(Status status) except -1

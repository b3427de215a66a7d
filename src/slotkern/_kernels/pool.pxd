# Internal declarations: the pool, its lock, spans and results.
from libc.stdint cimport int32_t, uint8_t, int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status
from slotkern._kernels.headers cimport (
    CPreparedSlots, CWindowTable, Query, ShapeKind, SumConstraints,
)
from slotkern._kernels.slots cimport PreparedSlots
from slotkern._kernels.windows cimport WindowTable, Window


cdef extern from "slotkern/pool/availability.hpp" namespace "slotkern" nogil:
    cdef struct Span:
        double start, end
        size_t origin_row


cdef int fill_spans(object table, vector[int32_t]& nodes, vector[Span]& spans) except -1
cdef object span_table(const vector[int32_t]& nodes, const vector[Span]& spans)
cdef vector[double] prices_of(object table) except *


cdef class Bookings(WindowTable):
    cdef vector[uint8_t] codes  # reason of each request: an index of REASONS
    cdef bint is_charged  # each window was counted by the capacities when it was booked
    cdef readonly dict plans  # {index: Plan} of the jobs of several parts; None: no such jobs


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
    Status free_since(CSlotPool&, size_t, cbool&, vector[int32_t]&, PoolState&) noexcept
    Status replace_free(CSlotPool&, const vector[int32_t]&, const vector[int32_t]&,
                        const vector[Span]&) noexcept


cdef class ChangingSlots(PreparedSlots):
    cdef CSlotPool pool
    cdef shared_mutex mutex
    cdef object free_table          # cached (version, free slots, their origin rows), or None
    cdef PreparedSlots current    # prepared from `free_table`, or None
    cdef int lock(self) except -1
    cdef int lock_current(self) except -1
    cdef int lock_for_change(self) except -1
    cdef uint8_t find_reason(self, const Query& query, int criterion,
                             ShapeKind shape) except? 255
    cdef Status schedule_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                          CWindowTable& out, vector[uint8_t]& reasons) except *


# Addresses of slotkern_find, _book and _release of pool/embed.hpp, which only this module compiles.
ctypedef int (*Find)(void* handle, const double* request, int64_t fields, int criterion, int shape,
                     double* totals, int64_t* rows, int32_t* nodes, double* lengths,
                     double* costs) noexcept nogil
ctypedef int (*Change)(void* handle, double start, int64_t n, const int64_t* rows,
                       const int32_t* nodes, const double* lengths) noexcept nogil
cdef Find find_at
cdef Change book_at, release_at
cdef int check_status(Status status) except -1


cdef extern from "slotkern/pool/embed.hpp" namespace "slotkern" nogil:
    cdef cppclass PoolHandle:
        CSlotPool* pool
        shared_mutex* mutex
        vector[const SumConstraints*] limits


cdef class SlotPool(ChangingSlots):
    cdef PoolHandle c_handle
    cdef dict limit_numbers       # limits: (table they were compiled for, number in the handle)
    cdef list compiled_limits        # compiled requests that own the limits of the handle
    cdef dict owners_by_window            # owner of each owned window; may include past windows
    cdef readonly dict _generations    # generations of loaded or saved files, by real path
    cdef readonly object _closures     # closed time of nodes: see pool/closures.py
    cdef size_t purge_threshold        # number of owned windows that triggers a purge
    cdef int drop_past_owners(self) except -1

# Internal declarations: hosts whose resources are shared.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp.atomic cimport atomic
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status
from slotkern._kernels.caps cimport Caps, CapacityUse
from slotkern._kernels.headers cimport Answer, CWindowTable, Part, Query, ShapeKind
from slotkern._kernels.pool cimport Bookings, shared_mutex
from slotkern._kernels.request cimport Request
from slotkern._kernels.slots cimport PreparedSlots
from slotkern._kernels.windows cimport Window


cdef extern from "slotkern/shares/share_pool.hpp" namespace "slotkern" nogil:
    cdef enum class ShareMethod(int):
        automatic
        rows
        views

    cdef struct HostSpan:
        size_t host
        double start, end

    cdef cppclass ShareRequest:
        const Query* query
        const int32_t* demand
        int32_t stack
        const double* prices
        ShapeKind shape
        void set_price_range(size_t)

    cdef cppclass PartAmounts:
        PartAmounts()
        PartAmounts(const int32_t*, size_t)

    cdef cppclass HostTree:
        vector[uint32_t] hosts
        vector[vector[uint32_t]] first

    cdef cppclass TreeRequest:
        const Query* query
        PartAmounts demand
        int32_t stack
        const double* prices
        size_t tree
        const int32_t* counts
        int32_t parts

    cdef cppclass ShareState "slotkern::SharePool::ShareState":
        double now
        vector[HostSpan] free, booked, reserved, closed
        vector[int32_t] free_amounts, booked_amounts, reserved_amounts

    cdef cppclass CSharePool "slotkern::SharePool":
        size_t resources()
        double now()
        size_t version()
        size_t bytes()
        void integrals(double, double, double*, double*)

    const int32_t kMaxAmount "slotkern::ShareRows::kMaxAmount"


cdef extern from "slotkern/shares/schedule.hpp" namespace "slotkern" nogil:
    Answer find_shares(CSharePool&, const ShareRequest&, int, ShareMethod) noexcept
    Answer find_tree(CSharePool&, const TreeRequest&, size_t&) noexcept
    Status add_tree(CSharePool&, const HostTree&, size_t&) noexcept
    Status open_shares(CSharePool&, const vector[int32_t]&, const vector[double]&, size_t, double,
                       double, const ShareState&, size_t&) noexcept
    Status state_of(const CSharePool&, ShareState&) noexcept
    Status book_shares(CSharePool&, double, const Part*, size_t, PartAmounts, size_t&) noexcept
    Status release_shares(CSharePool&, double, const Part*, size_t, const int32_t*,
                          size_t&) noexcept
    Status add_shares(CSharePool&, const vector[HostSpan]&, const vector[int32_t]&,
                      size_t&) noexcept
    Status reserve_shares(CSharePool&, const vector[HostSpan]&, const vector[int32_t]&,
                          size_t&) noexcept
    Status unreserve_shares(CSharePool&, const vector[HostSpan]&, const vector[int32_t]&,
                            size_t&) noexcept
    Status disable_hosts(CSharePool&, const vector[HostSpan]&) noexcept
    Status enable_hosts(CSharePool&, const vector[HostSpan]&) noexcept
    Status advance_shares(CSharePool&, double) noexcept
    Status spans_of_demand(const CSharePool&, const int32_t*, vector[HostSpan]&) noexcept
    Status rows_of_host(const CSharePool&, size_t, vector[HostSpan]&, vector[int32_t]&,
                        vector[uint8_t]&) noexcept
    cdef cppclass CShareJob "slotkern::ShareJob":
        const Query* query
        ShareRequest parts
        TreeRequest tree
        bint is_tree

    cdef cppclass QueueUses:
        size_t first_job
        vector[vector[CapacityUse]] uses
        double now

    Status schedule_shares(CSharePool&, const vector[CShareJob]&, int, size_t, const QueueUses&,
                           CWindowTable&, vector[uint8_t]&) noexcept


cdef class SharedHosts:
    cdef CSharePool pool
    cdef shared_mutex mutex
    cdef atomic[int] waiting  # threads other than the main one that wait for the mutex
    cdef readonly PreparedSlots hosts  # one slot a host
    cdef object table                  # the array of `hosts`
    cdef readonly object capacity      # int64[host, resource]
    cdef object own_prices             # float64[host]: the column `price`
    cdef int lock(self) except -1
    cdef int set_hosts(self, object hosts, object capacity) except -1
    cdef int open(self, ShareState& state) except -1
    cdef str describe(self, HostSpan span)
    cdef str describe_part(self, Window window, size_t failed)
    cdef object amount_array(self, const vector[int32_t]& amounts)
    cdef int set_spans(self, object spans, vector[HostSpan]& out) except -1
    cdef int set_amounts(self, object amounts, str name, Py_ssize_t rows, vector[int32_t]& out,
                         bint zeros=*) except -1


cdef class ChangingHosts(SharedHosts):
    cdef int change(self, object spans, object amounts, int kind) except -1


cdef class ShareCore(ChangingHosts):
    cdef object read_part(self, demand, prices, stack, vector[int32_t]& amounts, ShareRequest& out)
    cdef object check_prices(self, object prices)
    cdef Request compile(self, Request request)
    cdef Status schedule_some(self, const vector[CShareJob]& jobs, int criterion,
                              ShareQueue queue) except *


cdef class ShareQueue:
    cdef readonly Bookings table
    cdef list jobs, windows, reasons
    cdef Caps capacities
    cdef object owner
    cdef dict owned
    cdef size_t first  # the length of `reasons` before the first result
    cdef list fill_uses(self, QueueUses& out, size_t most)
    cdef int record(self) except -1
    cdef int add(self, object window, size_t code) except -1


cdef class HostJob:
    cdef readonly Request given, resolved
    cdef readonly object form, part


cdef class BookedJob:
    cdef readonly Bookings table
    cdef readonly size_t row
    cdef readonly HostJob job
    cdef object made  # the window, once it was accessed


cdef class TreeSearch:
    cdef ShareCore core
    cdef TreeRequest asked  # what all requests have in common
    cdef readonly object share  # of the windows, or None
    cdef object kind            # the type of the windows
    cdef object arrays          # keeps the arrays that `asked` points to
    cdef vector[int32_t] counts  # [level]
    cdef bint whole
    cdef int64_t groups  # product of the counts
    cdef Answer search(self, Request request, size_t& parts) except *
    cdef int fill(self, Request request, vector[int32_t]& counts, TreeRequest& out) except -1
    cdef Window window(self, const Answer& answer, size_t parts, Request request, str criterion,
                       str shape)

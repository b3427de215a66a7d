"""The functions of embed.pxd, for Cython modules. Nothing here is callable from Python."""

from libc.stdint cimport int32_t, int64_t

from slotkern._kernels.search import CRITERIA
from slotkern._kernels.pool cimport book_at, find_at, release_at
from slotkern._kernels.pool import SlotPool

__all__ = []  # only for cimport

cdef extern from "slotkern/pool/embed.hpp" namespace "slotkern" nogil:
    const int kInterface
    const int kRequestFields "slotkern::RequestField::count"
    void write_request "slotkern::detail::fill_request"(
        double* request, int64_t fields, int64_t nodes, double volume)

if kInterface != INTERFACE or kRequestFields != REQUEST_FIELDS:
    raise ImportError("embed.pxd and embed.hpp have different interfaces: reinstall slotkern")


cdef int need_interface(int interface) except -1:
    if interface != INTERFACE:
        raise ImportError(
            f"this module was built for interface {interface} of slotkern, which has "
            f"{INTERFACE}: rebuild it"
        )
    return 0


cdef void* address_of(object pool) except NULL:
    if not isinstance(pool, SlotPool):
        raise TypeError(f"pool must be a SlotPool, got {type(pool).__name__}")
    return <void*><size_t>pool.handle()


cdef int64_t limits_of(object pool, object limits) except -1:
    if not isinstance(pool, SlotPool):
        raise TypeError(f"pool must be a SlotPool, got {type(pool).__name__}")
    return pool.limits_handle(limits)


cdef int criterion_of(str name) except -1:
    if name not in CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {name!r}")
    return list(CRITERIA).index(name)


cdef void fill_request(double* request, int64_t fields, int64_t nodes,
                       double volume) noexcept nogil:
    write_request(request, fields, nodes, volume)


cdef int find(void* pool, const double* request, int64_t fields, int criterion, int shape,
              double* totals, int64_t* rows, int32_t* nodes, double* lengths,
              double* costs) noexcept nogil:
    return find_at(pool, request, fields, criterion, shape, totals, rows, nodes, lengths, costs)


cdef int book(void* pool, double start, int64_t n, const int64_t* rows, const int32_t* nodes,
              const double* lengths) noexcept nogil:
    return book_at(pool, start, n, rows, nodes, lengths)


cdef int release(void* pool, double start, int64_t n, const int64_t* rows,
                 const int32_t* nodes, const double* lengths) noexcept nogil:
    return release_at(pool, start, n, rows, nodes, lengths)

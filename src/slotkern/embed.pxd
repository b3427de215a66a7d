# The interface for Cython modules outside slotkern: search, book and release without the GIL.
#
# No memory layout is exposed: pools are addresses, requests and windows are plain arrays.
# A module built against one release runs with every release of the same INTERFACE. Call
# need_interface(INTERFACE) when the module is imported; it raises ImportError otherwise.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    INTERFACE = 1

# The fields of a request, a vector of REQUEST_FIELDS doubles.
cdef enum:  # written by ci/fields.py
    NODES = 0
    VOLUME = 1
    BUDGET = 2
    MIN_PERFORMANCE = 3
    EARLIEST = 4
    DEADLINE = 5
    MAX_PRICE = 6
    SETUP = 7
    STEP = 8
    LATEST = 9
    MAX_RUNTIME = 10
    LIMITS = 11  # from limits_of; 0: none
    REQUEST_FIELDS = 12

# The totals of a window, a vector of TOTALS doubles.
cdef enum:
    START = 0
    FINISH = 1
    RUNTIME = 2
    COST = 3
    PROCESSOR_TIME = 4
    TOTALS = 5

cdef enum:
    SQUARE = 0
    RAGGED = 1

# Raises ImportError if the module was built for another interface.
cdef int need_interface(int interface) except -1

# Returns the address of a SlotPool, valid while the pool exists; else raises TypeError.
cdef void* address_of(object pool) except NULL

# Returns the number of these sum constraints, for the field LIMITS: see SlotPool.limits_handle.
cdef int64_t limits_of(object pool, object limits) except -1

# Returns the index of a criterion in slotkern.CRITERIA; raises ValueError for another name.
cdef int criterion_of(str name) except -1

# Writes the first `fields` fields of a request for `nodes` nodes and `volume` without constraints.
cdef void fill_request(double* request, int64_t fields, int64_t nodes, double volume) noexcept nogil

# Returns 0 and writes the window: totals, and one part for each node, ascending by node. A nonzero
# Status (base/status.hpp) means that there is none.
cdef int find(void* pool, const double* request, int64_t fields, int criterion, int shape,
              double* totals, int64_t* rows, int32_t* nodes, double* lengths,
              double* costs) noexcept nogil

# Return 0 if all n parts were free (booked) and are now booked (released); otherwise a nonzero
# Status, and the pool is unchanged.
cdef int book(void* pool, double start, int64_t n, const int64_t* rows, const int32_t* nodes,
              const double* lengths) noexcept nogil
cdef int release(void* pool, double start, int64_t n, const int64_t* rows,
                 const int32_t* nodes, const double* lengths) noexcept nogil

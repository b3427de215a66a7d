# slotkern for cimport: the interface of other people's Cython modules.
#
# Nothing here tells how slotkern lies in memory: pools are addresses, requests and windows plain
# arrays. A module built on one release runs with every other of the same INTERFACE;
# need_interface(INTERFACE) at its import says so otherwise.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    INTERFACE = 1

# The fields of a request, a vector of REQUEST_FIELDS doubles.
cdef enum:
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

# ImportError for a module that was built for another interface.
cdef int need_interface(int interface) except -1

# The address of a SlotPool; valid while the pool lives.
cdef void* address_of(object pool) except NULL

# The number of limits on sums over the parts, for the field LIMITS: see SlotPool.limits_handle.
cdef int64_t limits_of(object pool, object limits) except -1

# The place of a criterion's name in slotkern.CRITERIA.
cdef int criterion_of(str name) except -1

# A request for so much without any limit, into its first `fields` fields.
cdef void fill_request(double* request, int64_t fields, int64_t nodes, double volume) noexcept nogil

# 0 and the window, as many parts as nodes asked for, ascending by node; else there is none.
cdef int find(void* pool, const double* request, int64_t fields, int criterion, int shape,
              double* totals, int64_t* rows, int32_t* nodes, double* lengths,
              double* costs) noexcept nogil

# 0 if all of the n parts were free (booked); else nothing has changed.
cdef int book(void* pool, double start, int64_t n, const int64_t* rows, const int32_t* nodes,
              const double* lengths) noexcept nogil
cdef int release(void* pool, double start, int64_t n, const int64_t* rows,
                 const int32_t* nodes, const double* lengths) noexcept nogil

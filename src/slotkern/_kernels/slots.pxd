# Internal declarations: prepared slots. Modules outside slotkern cimport slotkern.embed.
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status
from slotkern._kernels.caps cimport Caps
from slotkern._kernels.headers cimport (
    Answer, CGroupRules, CostCachePool, CPreparedSlots, CWindowTable, Query, ShapeKind)
from slotkern._kernels.request cimport Request

# Searches over at least LARGE nodes release the GIL; for fewer, the release does not pay.
cdef enum:
    LARGE = 8192
    MANY = 16  # more queries in one call install a signal handler


cdef class PreparedSlots:
    cdef CPreparedSlots prepared
    cdef CostCachePool costs         # cached cost bounds, valid until the slots change
    cdef object table, origin
    cdef readonly object context  # a SlotContext, or None
    cdef dict column_cache
    cdef bint changed
    cdef bint borrowed  # True: the table is the caller's array, which may change
    cdef bint is_pool  # True for a SlotPool, which counts uses and accounts
    cdef Caps capacities  # of a pool, or None
    cdef object mask_of(self, object where, object table)
    cdef Request compile_request(self, Request request)
    cdef Request compile_listed_request(self, Request request, i)
    cdef object limit_weights(self, object limit, object table)
    cdef object cached_column(self, object key, object table)
    cdef int cache_column(self, object key, object column, object table) except -1
    cdef object array(self)
    cdef PreparedSlots snapshot(self)
    cdef PreparedSlots snapshot_for(self, const Query& query)
    cdef Status lock_for_search(self, double least_volume) except *
    cdef void unlock_after_search(self) noexcept nogil
    # Only slots and pool link the sweeps (half a megabyte of code each); other bindings call
    # these methods.
    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape)
    cdef Status search_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                           unsigned threads, CWindowTable& out, size_t& failed_query) except *
    cdef Status search_together(self, vector[Query]& roles, ShapeKind shape,
                                CWindowTable& out) except *


# The group rules of a request, compiled for the nodes of prepared slots.
cdef class CompiledRules:
    cdef CGroupRules rules


cpdef Request resolve_times(object slots, Request request, object position=*,
                            bint knows_capacities=*)
cdef object context_of(object slots)
cdef int prepare_all(PreparedSlots self, object slots) except -1
cdef PreparedSlots prepare_with_context(object slots, object context)
cdef object division_of_rows(PreparedSlots self, const CGroupRules& rules)
cdef int refuse_under_tariffs(PreparedSlots self, object what) except -1
cdef PreparedSlots as_prepared(object slots, bint both, ShapeKind shape, size_t n)

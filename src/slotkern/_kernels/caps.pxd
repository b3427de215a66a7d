# Internal declarations: capacities of a pool.
from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from slotkern._kernels.request cimport Request
from slotkern._kernels.windows cimport Window


cdef extern from "slotkern/pool/caps.hpp" namespace "slotkern" nogil:
    const int64_t kUnlimited

    cdef cppclass StepFunction:
        StepFunction() except +
        StepFunction(const StepFunction&) except +
        size_t size()
        double time(size_t)
        int64_t amount(size_t)
        int64_t at(double)
        int64_t least(double, double)
        void add(double, double, int64_t) except +
        void forget(double)
        uint64_t epoch()
        void set_epoch(uint64_t)
        cbool operator==(const StepFunction&)

    cdef cppclass CapacityUse:
        StepFunction* free
        int64_t amount

    cdef cppclass TimeSpan:
        double first, last

    cbool have_enough(const vector[CapacityUse]&, double, double)
    TimeSpan span_with_enough(const vector[CapacityUse]&, double, double)


cdef class Counter:
    cdef StepFunction free


cdef class CapacityRule:
    cdef readonly str what, account, when
    cdef readonly bint each
    cdef readonly tuple steps
    cdef readonly object weekly
    cdef StepFunction limit
    cdef readonly dict counters
    cdef Counter counter(self, object account)
    cdef int64_t amount(self, int64_t nodes, object uses, object account) except -1


cdef class Caps:
    cdef readonly tuple rules
    cdef readonly frozenset names
    cdef readonly double now
    cdef dict charges  # of each booked window: a list of tuples (nodes, uses, account)
    cdef list deferred  # (object with window() and finish, charge) of windows that are not in `charges`
    cdef tuple paces  # cached (table of slots, its largest performance)
    cdef size_t version, purge_threshold
    cdef list fill(self, int64_t nodes, object uses, object account, vector[CapacityUse]& out)
    cdef int recount(self) except -1
    cdef int add(self, Window window, tuple charge, int sign) except -1
    cdef int refuse_name(self, name) except -1
    cdef double largest_performance(self, object table) except -1
    cdef list take(self, list windows)
    cdef int undo(self, list windows, list taken) except -1
    cdef int commit(self, list windows, list taken) except -1
    cdef int charge(self, list windows) except -1
    cdef bint give_back(self, Window window) except -1
    cdef int forget(self, double now) except -1
    cdef int defer(self, object booked, tuple charge) except -1
    cdef int settle(self) except -1


cdef list fill_uses(Caps capacities, Request request, vector[CapacityUse]& out)
cdef Request uncounted(Request request)

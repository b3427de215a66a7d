# Declarations of the C++ headers for the bindings. Modules outside slotkern use embed.pxd.
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Fault, Status


cdef extern from "slotkern/window/together.hpp" namespace "slotkern" nogil:
    cdef enum class ShapeKind(int):
        square
        ragged

    cdef cppclass SlotView:
        const char* base
        Py_ssize_t stride
        Py_ssize_t node, start, end, performance, price
        size_t size

    ctypedef int (*UseFunction)(const void*, double, double*) noexcept

    cdef struct SumConstraint:
        double amount
        cbool at_least
        const double* weight
        cbool by_length
        UseFunction function
        const char* records
        Py_ssize_t stride

    cdef cppclass SumConstraints:
        vector[SumConstraint] all
        size_t rows

    cdef enum class GroupRuleKind(int):
        max_groups
        min_groups
        max_parts

    cdef cppclass GroupRule:
        GroupRuleKind kind
        const int32_t* group
        int64_t bound

    cdef cppclass CGroupRules "slotkern::GroupRules":
        size_t divisions
        vector[int32_t] division
        cbool is_within()
        size_t compile(const vector[GroupRule]&, size_t, size_t&) except +

    const size_t kNested "slotkern::GroupRules::kNested"
    cbool supports_rules "slotkern::GroupChoice::supports"(const CGroupRules&, size_t)

    const size_t kMaxSumConstraints
    const int64_t kLimitsWork

    cdef struct CSlot "slotkern::Slot":
        double start, end, performance, price, rate
        int32_t node, place

    cdef cppclass Query:
        int64_t n
        double volume, earliest, deadline, latest, max_price, budget, max_runtime  # the others: kQueryFields
        const uint8_t* mask
        size_t masked
        const SumConstraints* limits
        const CGroupRules* groups
        int64_t max_work
        double length(double performance)
        cbool suits(const CSlot&)
        cbool has_overhead()
        cbool is_valid()

    cdef enum class FieldKind(int):
        number
        time
        duration

    cdef enum class FieldRange(int):
        any
        amount
        positive

    cdef cppclass QueryField:
        const char* name
        const char* unit
        const char* label
        const char* text
        FieldKind kind
        FieldRange range
        double otherwise
        double get(const Query&)
        cbool accepts(double)
        void set(Query&, double)

    const QueryField* kQueryFields
    const int kQueryFieldCount

    cdef cppclass Node:
        int32_t id
        double performance, min_price

    cdef struct IndexOptions:
        size_t max_unindexed_blocks, min_nodes_per_key
        size_t max_ranked_parts
        cbool omit_short_spans, start_bounds
        size_t max_rows_without_start_bounds, min_cost_bound_rows, rows_per_cell, cell_buckets
        size_t max_bound_rows, effort_before_build
        int64_t cell_search_credit

    IndexOptions small_pool_options "slotkern::IndexOptions::for_small_pools"()

    cdef cppclass CPreparedSlots "slotkern::PreparedSlots":
        IndexOptions options
        vector[Node] nodes
        cbool has_tariffs()
        Status check(const Query&)

    cdef struct Part:
        size_t row
        int32_t node
        double length, cost

    cdef struct Found:
        double start, runtime, cost, processor_time, value

    cdef cppclass Answer:
        Status status
        Found found
        const Part* parts
        cbool proven
        double bound
        int64_t work
        size_t failed

    cdef struct WindowRow:
        pass

    cdef struct PartRow:
        pass

    cdef cppclass CWindowTable "slotkern::WindowTable":
        vector[Found] found
        vector[size_t] ends
        vector[Part] parts
        size_t size() const
        cbool any(size_t) const
        size_t count(size_t) const
        const Part* parts_of(size_t) const
        double bound(size_t) const
        cbool is_proven(size_t) const
        void clear()
        void add(const Found&, const Part*, size_t) except +
        void add_none() except +
        void set_bound(double, cbool) except +
        void add_from(const CWindowTable&, size_t) except +
        void fill(WindowRow*) const
        void fill(PartRow*) const

    Status find_together(const CPreparedSlots&, vector[Query]&, ShapeKind, CWindowTable&) noexcept

    Fault check(const SlotView&) noexcept
    Fault prepare_slots(CPreparedSlots&, const SlotView&, cbool, ShapeKind, size_t) noexcept


cdef extern from "slotkern/pool/adaptive_cost_search.hpp" namespace "slotkern" nogil:
    cdef cppclass CostCachePool:
        void clear()

    Answer find_window(const CPreparedSlots&, CostCachePool&, const Query&, int, ShapeKind) noexcept
    Status find_windows(const CPreparedSlots&, const vector[Query]&, int, ShapeKind, unsigned,
                     CWindowTable&, size_t&) noexcept
    Status find_windows(const CPreparedSlots&, CostCachePool&, const vector[Query]&, int, ShapeKind,
                     unsigned, CWindowTable&, size_t&) noexcept


cdef extern from "slotkern/window/criteria.hpp" namespace "slotkern" nogil:
    const int kBuiltins
    string_view criterion_name(int)
    string_view criterion_doc(int)

# What the doors see of the C++ headers. Not for other people's modules: see embed.pxd for that.
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector


cdef extern from "slotkern/window/find.hpp" namespace "slotkern" nogil:
    cdef enum class Status(int):
        ok
        none
        no_memory
        internal
        interrupted
        node_negative
        start_not_finite
        end_is_nan
        end_not_after_start
        performance_not_positive
        price_not_valid
        not_sorted
        performance_differs
        overlap
        volume_too_small
        endless
        too_many
        too_many_live
        not_free
        not_booked

    cdef enum class ShapeKind(int):
        square
        ragged

    cdef struct Fault:
        Status status
        size_t row
        size_t other

    cdef cppclass SlotView:
        const char* base
        Py_ssize_t stride
        Py_ssize_t node, start, end, performance, price
        size_t size

    cdef cppclass Query:
        int64_t n
        double volume, budget, min_performance, earliest, deadline, max_price
        const uint8_t* mask
        size_t masked

    cdef cppclass Node:
        int32_t id
        double performance, min_price

    cdef cppclass CPreparedSlots "slotkern::PreparedSlots":
        vector[Node] nodes
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

    cdef cppclass Answers:
        vector[Answer] answers

    Fault check(const SlotView&) noexcept
    Fault prepare_slots(CPreparedSlots&, const SlotView&, cbool, ShapeKind, size_t) noexcept
    Answer find(const CPreparedSlots&, const Query&, int, ShapeKind) noexcept
    Status find_many(const CPreparedSlots&, const vector[Query]&, int, ShapeKind, unsigned, Answers&) noexcept


cdef extern from "slotkern/window/criteria.hpp" namespace "slotkern" nogil:
    const int kBuiltins
    string_view criterion_name(int)
    string_view criterion_doc(int)


cdef extern from "slotkern/base/interrupt.hpp" namespace "slotkern" nogil:
    # Of one call, on the stack of its door: see base/interrupt.hpp.
    cdef cppclass Watch:
        void arm(cbool hears)
        void clear()


# Let signals be answered, before each try of a call that they may interrupt.
cdef inline int ask(Watch& watch) except -1:
    watch.clear()
    return PyErr_CheckSignals()

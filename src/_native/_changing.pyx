"""Prepared slots that change: their lock, and what is free and booked now."""

import numpy as np

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_MAX
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from slotkern._base cimport Status, InterruptScope, ask, error_of, hears
from slotkern._core cimport LARGE, MANY, PreparedSlots
from slotkern._kernels cimport Answer, CPreparedSlots, CWindowTable, Query, ShapeKind, find_window
from slotkern._spans cimport prices_of, span_table

from slotkern._spans import SPAN
from slotkern.slots import in_order

cdef extern from "slotkern/pool/schedule.hpp" namespace "slotkern" nogil:
    Answer find_in "slotkern::find_window"(CSlotPool&, const Query&, int, ShapeKind) noexcept
    Status ensure_rows_for(CSlotPool&, double) noexcept
    Status schedule(CSlotPool&, const CPreparedSlots&, const vector[Query]&, int, ShapeKind,
                    CWindowTable&, vector[uint8_t]&) noexcept

cdef extern from "slotkern/pool/mutexes.hpp" namespace "slotkern" nogil:
    void wait_briefly(shared_mutex&)
    cdef cppclass MutexRegistry:
        @staticmethod
        MutexRegistry& all()
        void add(shared_mutex&) except +
        void remove(shared_mutex&)

cdef extern from "slotkern/pool/embed.hpp" nogil:
    const int kInterface "slotkern::kInterface"
    int slotkern_find(void*, const double*, int64_t, int, int, double*, int64_t*, int32_t*,
                      double*, double*) noexcept
    int slotkern_book(void*, double, int64_t, const int64_t*, const int32_t*,
                      const double*) noexcept
    int slotkern_release(void*, double, int64_t, const int64_t*, const int32_t*,
                         const double*) noexcept

find_at, book_at, release_at = slotkern_find, slotkern_book, slotkern_release

# Names carry the interface, so that code compiled and cached against another one finds none.
ADDRESSES = {
    f"slotkern_find_{kInterface}": <size_t>find_at,
    f"slotkern_book_{kInterface}": <size_t>book_at,
    f"slotkern_release_{kInterface}": <size_t>release_at,
}


@cython.auto_pickle(False)
cdef class ChangingSlots(PreparedSlots):
    """What `SlotPool` stands on: searches share the lock, a change has it alone."""

    def __cinit__(self):
        MutexRegistry.all().add(self.mutex)

    def __dealloc__(self):
        MutexRegistry.all().remove(self.mutex)

    cdef object array(self):
        return self._free()[0]

    def _free(self):
        """The free slots and their rows of origin."""
        if not self.changed:
            return self.table, None
        cdef size_t version = self.pool.version()
        found = self.snapshot
        if found is None or found[0] != version:
            self.snapshot = found = version, *slots_of(self.table, self._state()["free"])
        return found[1], found[2]

    cdef PreparedSlots settled(self):
        """A copy, also of a pool that has not changed yet: it may while the copy is in use."""
        cdef PreparedSlots current = self.current
        slots, rows = self._free()
        if current is None or current.origin is not rows:
            current = PreparedSlots(slots)
            current.origin, current.terms = rows, self.terms
            self.current = current
        return current

    # A copy of all that is free costs as much as the pool is large, after every change again: of
    # a flow that has booked far ahead a search until a deadline looks at a small part.
    cdef PreparedSlots settled_for(self, const Query& query):
        cdef PoolState state
        cdef PreparedSlots part
        cdef Status status
        cdef double end = min(query.deadline, query.latest)
        if not self.changed or end == DBL_MAX:
            return self.settled()
        self.lock()
        status = free_between(self.pool, query.earliest, end, state)
        table = self.table
        self.mutex.unlock()
        check_status(status)
        slots, rows = slots_of(table, span_table(state.free_nodes, state.free))
        part = PreparedSlots(slots)
        part.origin, part.terms = rows, self.terms
        return part

    def _state(self):
        """What is free, booked and held, by (node, start), and what is gone, as arrays."""
        return self._whole()[1]

    def _whole(self):
        """Origin, state and now, all of one moment."""
        cdef PoolState state
        cdef Status status = Status.ok
        table = self.table
        if not self.changed:
            rows = np.empty(len(table), SPAN)
            rows["row"] = np.arange(len(rows))
            for name in ("node", "start", "end"):
                rows[name] = table[name]
            none = np.empty(0, SPAN)
            return table, {"free": in_order(rows, "node", "start"), "booked": none,
                           "gone": np.empty(0, np.int32), "held": none}, -np.inf
        self.lock()
        status = state_of(self.pool, state)
        table = self.table
        self.mutex.unlock()
        check_status(status)
        return table, {"free": span_table(state.free_nodes, state.free),
                       "booked": span_table(state.booked_nodes, state.booked),
                       "gone": np.array(state.removed, np.int32),
                       "held": span_table(state.withheld_nodes, state.withheld)}, state.now

    # The mutex is never held while a thread waits for the interpreter: it is taken with the
    # interpreter or waited for without both, and let go before the interpreter is asked for.

    cdef Status enter(self, double least_volume) except *:
        cdef Status status
        while not self.changed:
            if self.mutex.try_lock_shared():
                if not self.changed:
                    return Status.ok
                self.mutex.unlock_shared()
            else:
                with nogil:
                    self.mutex.lock_shared()
                    self.mutex.unlock_shared()
        self.lock()
        status = ensure_rows_for(self.pool, least_volume)
        if status != Status.ok:
            self.mutex.unlock()
        return status

    cdef void leave(self) noexcept nogil:
        if self.changed:
            self.mutex.unlock()
        else:
            self.mutex.unlock_shared()

    cdef int lock(self) except -1:
        while not self.mutex.try_lock():
            if hears():
                with nogil:
                    wait_briefly(self.mutex)
                PyErr_CheckSignals()
            else:
                with nogil:
                    self.mutex.lock()
                    self.mutex.unlock()
        return 0

    cdef Answer search(self, const Query& query, int criterion, ShapeKind shape):
        cdef Answer answer
        cdef InterruptScope watch
        watch.arm(hears())
        answer.status = Status.interrupted
        while answer.status == Status.interrupted:
            ask(watch)
            answer.status = self.enter(query.volume)
            if answer.status != Status.ok:
                break
            if self.changed and query.limits == NULL:
                answer = find_in(self.pool, query, criterion, shape)
                self.leave()
            elif self.changed:
                with nogil:
                    answer = find_in(self.pool, query, criterion, shape)
                    self.leave()
            elif self.prepared.nodes.size() < LARGE and query.limits == NULL:
                answer = find_window(self.prepared, self.costs, query, criterion, shape)
                self.leave()
            else:
                with nogil:
                    answer = find_window(self.prepared, self.costs, query, criterion, shape)
                    self.leave()
        return answer

    # As PreparedSlots.search_all.
    cdef Status place_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                          CWindowTable& out, vector[uint8_t]& reasons) except *:
        cdef Status status = Status.interrupted
        cdef InterruptScope watch
        watch.arm(hears())
        if queries.size() > MANY:
            watch.install()
        while status == Status.interrupted:
            ask(watch)
            self.start_change()
            with nogil:
                status = schedule(self.pool, self.prepared, queries, criterion, shape, out, reasons)
                self.mutex.unlock()
        return status

    cdef int start_change(self) except -1:
        """Locks the pool and makes it ready to change."""
        cdef Status status = Status.interrupted
        cdef vector[double] prices
        cdef InterruptScope watch
        watch.arm(hears())
        if not self.changed:
            prices = prices_of(self.table)
        while status == Status.interrupted:
            ask(watch)
            self.lock()
            status = Status.ok
            if not self.changed:
                status = open_pool(self.pool, self.prepared, prices, NULL)
                self.changed = status == Status.ok
                if self.changed:
                    self.costs.clear()
            if status != Status.ok:
                self.mutex.unlock()
        return check_status(status)


cdef tuple slots_of(table, spans):
    """Spans as slots in the order of time, and the rows of the table that they come from."""
    spans = in_order(spans, "start", "node")
    slots = table.take(spans["row"])
    slots["start"], slots["end"] = spans["start"], spans["end"]
    slots.flags.writeable = False
    return slots, spans["row"]


cdef int check_status(Status status) except -1:
    if status != Status.ok:
        raise error_of(status, "change the pool", {"part": "a slot"})
    return 0

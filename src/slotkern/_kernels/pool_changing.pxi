# Slots that change: the lock, snapshots, and searches on the current slots.
#
# Searches of a pool that has not changed share the lock; a change, or a search after a change, holds
# it exclusively.

cdef extern from "slotkern/pool/schedule.hpp" namespace "slotkern" nogil:
    Answer find_in "slotkern::find_window"(CSlotPool&, const Query&, int, ShapeKind) noexcept
    Status find_together_in "slotkern::find_together"(CSlotPool&, vector[Query]&, ShapeKind,
                                                     CWindowTable&) noexcept
    Status trim_rows_for(CSlotPool&, double) noexcept
    Status find_reason(CSlotPool&, const CPreparedSlots&, const Query&, int, ShapeKind,
                       uint8_t&) noexcept
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

# The names contain the interface number, so code that was compiled and cached against another
# interface fails to find the symbol.
ADDRESSES = {
    f"slotkern_find_{kInterface}": <size_t>find_at,
    f"slotkern_book_{kInterface}": <size_t>book_at,
    f"slotkern_release_{kInterface}": <size_t>release_at,
}


@cython.auto_pickle(False)
cdef class ChangingSlots(PreparedSlots):
    """The base of `SlotPool`: prepared slots with a lock and a changing state."""

    def __cinit__(self):
        self.is_pool = True
        MutexRegistry.all().add(self.mutex)

    def __dealloc__(self):
        MutexRegistry.all().remove(self.mutex)

    cdef object array(self):
        return self._free()[0]

    def _free(self):
        """Return the free slots and their origin rows (None before the first change)."""
        if not self.changed:
            return self.table, None
        cdef size_t version = self.pool.version()
        found = self.free_table
        if found is None or found[0] != version:
            self.free_table = found = version, *slots_from_spans(self.table, self._state()["free"])
        return found[1], found[2]

    cdef PreparedSlots snapshot(self):
        """Return an immutable copy, also before the first change, which may come during its use."""
        cdef PreparedSlots current = self.current
        slots, rows = self._free()
        if current is None or current.origin is not rows:
            current = prepare_with_context(slots, self.context)
            current.origin = rows
            self.current = current
        return current

    # A copy of all free slots costs O(m log m) after every change. A search with a deadline copies
    # only the slots in its span, a small part of a pool that is booked far ahead.
    cdef PreparedSlots snapshot_for(self, const Query& query):
        cdef PoolState state
        cdef PreparedSlots part
        cdef Status status
        cdef double end = min(query.deadline, query.latest)
        if not self.changed or end == DBL_MAX:
            return self.snapshot()
        self.lock()
        status = free_between(self.pool, query.earliest, end, state)
        table = self.table
        self.mutex.unlock()
        check_status(status)
        slots, rows = slots_from_spans(table, span_table(state.free_nodes, state.free))
        part = prepare_with_context(slots, self.context)
        part.origin = rows
        return part

    def _state(self):
        """Return free, booked and withheld spans by (node, start), and removed nodes, as arrays.

        The keys are those of pool files: free, booked, held (withheld by closures), gone (removed).
        """
        return self._full_state()[1]

    def _full_state(self):
        """Return (origin, state, now), consistent with each other; see `_state`."""
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

    @property
    def _version(self):
        """The number of the state of free time: another one after each change."""
        return self.pool.version() if self.changed else 0

    def _free_since(self, size_t version):
        """Return (version, nodes, spans): the free time that has changed after a version.

        `nodes` are the nodes that have changed, ascending, and `spans` all their free spans.
        None instead of nodes: the log does not reach back so far; the spans are those of all nodes.
        """
        cdef PoolState state
        cdef Status status
        cdef cbool known = False
        cdef vector[int32_t] nodes
        if not self.changed:
            return 0, None, self._state()["free"]
        self.lock()
        status = free_since(self.pool, version, known, nodes, state)
        version = self.pool.version()
        self.mutex.unlock()
        check_status(status)
        spans = span_table(state.free_nodes, state.free)
        return version, np.array(nodes, np.int32) if known else None, spans

    def _replace_free(self, nodes, spans):
        """Replace the free time of nodes, in a pool that follows others: nothing is booked in it.

        `nodes` ascend, and `spans` are sorted by (node, start). After an error the pool must not
        be used again.
        """
        cdef Status status
        cdef vector[int32_t] given = nodes.tolist(), span_nodes
        cdef vector[Span] free
        fill_spans(spans, span_nodes, free)
        self.lock_for_change()
        with nogil:
            status = replace_free(self.pool, given, span_nodes, free)
            self.mutex.unlock()
        check_status(status)

    # A thread never waits for the GIL while it holds the mutex: it acquires the mutex with the GIL
    # held (try_lock), waits without either, and unlocks before it acquires the GIL. So no deadlock.

    cdef Status lock_for_search(self, double least_volume) except *:
        cdef Status status = Status.ok
        self.lock_current()
        if self.changed:  # `prepared` may be read as it is: without time before now
            status = trim_rows_for(self.pool, least_volume)
            if status != Status.ok:
                self.mutex.unlock()
        return status

    # Shared before the first change, exclusive after it. Then only `pool` may be read, because
    # `prepared` may contain time before now.
    cdef int lock_current(self) except -1:
        while not self.changed:
            if self.mutex.try_lock_shared():
                if not self.changed:
                    return 0
                self.mutex.unlock_shared()
            else:
                with nogil:
                    self.mutex.lock_shared()
                    self.mutex.unlock_shared()
        return self.lock()

    cdef void unlock_after_search(self) noexcept nogil:
        if self.changed:
            self.mutex.unlock()
        else:
            self.mutex.unlock_shared()

    cdef int lock(self) except -1:
        while not self.mutex.try_lock():
            if is_main_thread():
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
        cdef InterruptScope interrupts
        while attempt(interrupts, answer.status):
            self.lock_current()
            if self.changed and query.limits == NULL:
                answer = find_in(self.pool, query, criterion, shape)
                self.unlock_after_search()
            elif self.changed:
                with nogil:
                    answer = find_in(self.pool, query, criterion, shape)
                    self.unlock_after_search()
            elif self.prepared.nodes.size() < LARGE and query.limits == NULL:
                answer = find_window(self.prepared, self.costs, query, criterion, shape)
                self.unlock_after_search()
            else:
                with nogil:
                    answer = find_window(self.prepared, self.costs, query, criterion, shape)
                    self.unlock_after_search()
        return answer

    cdef Status search_together(self, vector[Query]& roles, ShapeKind shape,
                                CWindowTable& out) except *:
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        while attempt(interrupts, status):
            self.lock_current()
            with nogil:
                if self.changed:
                    status = find_together_in(self.pool, roles, shape, out)
                else:
                    status = find_together(self.prepared, roles, shape, out)
                self.unlock_after_search()
        return status

    # Like PreparedSlots.search_all: installs a signal handler for many queries.
    cdef Status schedule_all(self, const vector[Query]& queries, int criterion, ShapeKind shape,
                          CWindowTable& out, vector[uint8_t]& reasons) except *:
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        while attempt(interrupts, status, queries.size() > MANY):
            self.lock_for_change()
            with nogil:
                status = schedule(self.pool, self.prepared, queries, criterion, shape, out, reasons)
                self.mutex.unlock()
        return status

    cdef uint8_t find_reason(self, const Query& query, int criterion,
                             ShapeKind shape) except? 255:
        """Return the reason why a request has no window now, 0 if it has one. Books nothing."""
        cdef Status status = Status.ok
        cdef uint8_t reason = 0
        cdef InterruptScope interrupts
        while attempt(interrupts, status):
            self.lock_for_change()
            with nogil:
                status = find_reason(self.pool, self.prepared, query, criterion, shape, reason)
                self.mutex.unlock()
        check_status(status)
        return reason

    cdef int lock_for_change(self) except -1:
        """Lock the pool exclusively; the first call also builds the structures for changes."""
        cdef Status status = Status.ok
        cdef vector[double] prices
        cdef InterruptScope interrupts
        if not self.changed:
            prices = prices_of(self.table)
        while attempt(interrupts, status):
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


cdef tuple slots_from_spans(table, spans):
    """Return spans as slots in order of time, and their rows in the table."""
    spans = in_order(spans, "start", "node")
    slots = table.take(spans["row"])
    slots["start"], slots["end"] = spans["start"], spans["end"]
    slots.flags.writeable = False
    return slots, spans["row"]


cdef int check_status(Status status) except -1:
    if status != Status.ok:
        raise status_error(status, "change the pool", {"part": "a slot"})
    return 0

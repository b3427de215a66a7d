# The hosts of a ShareCore, its lock, and checks of the spans and amounts of its arguments.

cdef extern from "slotkern/pool/mutexes.hpp" namespace "slotkern" nogil:
    void wait_briefly(shared_mutex&)
    cdef cppclass MutexRegistry:
        @staticmethod
        MutexRegistry& all()
        void add(shared_mutex&) except +
        void remove(shared_mutex&)


@cython.auto_pickle(False)
cdef class SharedHosts:
    """The hosts, their pool and its lock."""

    def __cinit__(self):
        MutexRegistry.all().add(self.mutex)

    def __dealloc__(self):
        MutexRegistry.all().remove(self.mutex)

    cdef int set_hosts(self, object hosts, object capacity) except -1:
        self.hosts = hosts if isinstance(hosts, PreparedSlots) else PreparedSlots(hosts)
        self.table = self.hosts.table
        cdef size_t size = len(self.table)
        if size and (np.any(np.diff(self.table["node"]) <= 0)
                     or np.any(self.table["start"] != self.table["start"][0])
                     or np.any(self.table["end"] != self.table["end"][0])):
            raise ValueError("hosts must be one slot for each node, all with one start and end")
        capacity = np.ascontiguousarray(capacity)
        if capacity.ndim != 2 or <size_t>len(capacity) != size or capacity.shape[1] == 0:
            raise ValueError(
                f"capacity must have one row for each of {size} hosts and one column for each "
                f"resource, got shape {capacity.shape}")
        check_amounts(capacity, "capacity")
        self.capacity = capacity.astype(np.int64)
        self.capacity.flags.writeable = False
        self.own_prices = np.ascontiguousarray(self.table["price"])
        return 0

    cdef int open(self, ShareState& state) except -1:
        cdef vector[int32_t] ids = self.table["node"].tolist()
        cdef vector[double] performance = self.table["performance"].tolist()
        cdef size_t resources = self.capacity.shape[1], failed = 0
        cdef double begin = 0, end = 0
        cdef Status status = Status.ok
        cdef InterruptScope interrupts
        if len(self.table):
            begin, end = self.table["start"][0], self.table["end"][0]
        while attempt(interrupts, status):
            self.lock()
            with nogil:
                status = open_shares(self.pool, ids, performance, resources, begin, end, state,
                                     failed)
                self.mutex.unlock()
        if status == Status.not_free:
            if failed >= state.free.size():
                raise ValueError("the reserved amounts of the state are out of range")
            raise ValueError(
                f"spans[{failed}] overlaps another span of {self.describe(state.free[failed])}")
        return check_status(status)

    cdef int lock(self) except -1:
        while not self.mutex.try_lock():
            if is_main_thread():
                with nogil:
                    wait_briefly(self.mutex)
                PyErr_CheckSignals()
            else:
                self.waiting.fetch_add(1)
                with nogil:
                    self.mutex.lock()
                    self.mutex.unlock()
                self.waiting.fetch_sub(1)
        return 0

    cdef str describe(self, HostSpan span):
        """Return the words for a span in an error."""
        context = self.hosts.context
        node, start, end = self.table["node"][span.host], span.start, span.end
        if context is not None and context.machine is not None:
            node = context.machine.names[node]
        if context is not None and context.clock is not None:
            start, end = context.clock.datetime(start), context.clock.datetime(end)
        return f"node {node} from {start} to {end}"

    cdef int set_spans(self, object spans, vector[HostSpan]& out) except -1:
        cdef const int64_t[:] row = np.ascontiguousarray(spans["row"], np.int64)
        cdef const double[:] start = np.ascontiguousarray(spans["start"], np.float64)
        cdef const double[:] end = np.ascontiguousarray(spans["end"], np.float64)
        cdef Py_ssize_t i, hosts = len(self.table)
        cdef HostSpan span
        out.reserve(row.shape[0])
        for i in range(row.shape[0]):
            if not (0 <= row[i] < hosts and start[i] > -INFINITY and start[i] < end[i]):
                raise ValueError(
                    f"spans[{i}]: row {row[i]}, start {start[i]}, end {end[i]}: the row must be "
                    f"one of {hosts} hosts, and the end after a finite start")
            span.host, span.start, span.end = row[i], start[i], end[i]
            out.push_back(span)
        return 0

    cdef int set_amounts(self, object amounts, str name, Py_ssize_t rows, vector[int32_t]& out,
                         bint zeros=False) except -1:
        """Check amounts, of one row for each of `rows` spans, and write them to `out`."""
        amounts = np.ascontiguousarray(amounts)
        cdef Py_ssize_t resources = self.capacity.shape[1]
        if amounts.shape != (rows, resources):
            raise ValueError(
                f"{name} must have one amount for each of {resources} resources in {rows} rows, "
                f"got shape {amounts.shape}")
        check_amounts(amounts, name)
        cdef const int32_t[:, ::1] given = amounts.astype(np.int32)
        cdef Py_ssize_t i, d
        cdef bint any_amount
        out.reserve(rows * resources)
        for i in range(rows):
            any_amount = zeros
            for d in range(resources):
                out.push_back(given[i, d])
                any_amount = any_amount or given[i, d] > 0
            if not any_amount:
                raise ValueError(f"{name}[{i}] takes nothing: all its amounts are 0")
        return 0

    cdef str describe_part(self, Window window, size_t failed):
        cdef HostSpan span
        if failed >= <size_t>window.count:
            return "a part"
        node = window.parts[failed].node
        rows = np.flatnonzero(self.table["node"] == node)
        span.start, span.end = window.start, window.start + window.parts[failed].length
        if not len(rows):
            return f"node {node} from {span.start} to {span.end}"
        span.host = rows[0]
        return self.describe(span)

    cdef object amount_array(self, const vector[int32_t]& amounts):
        resources = self.capacity.shape[1]
        return np.array(amounts, np.int64).reshape(-1, resources)


cdef object span_array(const vector[HostSpan]& spans, object table):
    cdef Py_ssize_t i, size = spans.size()
    cdef int64_t[::1] rows = np.empty(size, np.int64)
    cdef double[::1] start = np.empty(size), end = np.empty(size)
    for i in range(size):
        rows[i], start[i], end[i] = spans[i].host, spans[i].start, spans[i].end
    out = np.empty(size, HOST_SPAN)
    out["row"], out["start"], out["end"] = rows, start, end
    out["node"] = table["node"][np.asarray(rows)]
    return out


def check_amounts(amounts, name):
    """Raise ValueError or TypeError unless all amounts are whole numbers from 0 to `MAX_SHARE`."""
    if amounts.size and amounts.dtype.kind not in "iu":
        if amounts.dtype.kind == "f" and not np.array_equal(amounts, np.floor(amounts)):
            bad = np.argwhere(amounts != np.floor(amounts))[0].tolist()
            raise ValueError(
                f"{name}{bad} is {amounts[tuple(bad)]}: amounts are whole numbers")
        if amounts.dtype.kind != "f":
            raise TypeError(f"{name} must be whole numbers, got {amounts.dtype}")
    wrong = (amounts < 0) | (amounts > MAX_SHARE)
    if wrong.any():
        bad = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            f"{name}{bad} is {amounts[tuple(bad)]}: amounts are from 0 to {MAX_SHARE:,}; use a "
            "larger unit")


cdef int check_status(Status status) except -1:
    if status != Status.ok:
        raise status_error(status, "change shared hosts", {"part": "a host"})
    return 0

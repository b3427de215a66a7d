# Part of _pool.pyx: the state of a pool as arrays, and a pool made of them.

def restored(origin, state, now):
    """The pool of these arrays."""
    fresh = SlotPool(origin[np.lexsort((origin["node"], origin["start"]))])._state()
    if now == -np.inf and all([np.array_equal(fresh[name], state[name]) for name in fresh]):
        return SlotPool(origin)  # nothing has changed yet
    pool = SlotPool(origin[:0])
    restore(pool, origin, state, now)
    return pool


cdef int restore(SlotPool pool, object origin, object arrays, double now) except -1:
    """Make a pool that nobody else has one of these slots, spans and removed nodes."""
    cdef PoolState state
    cdef vector[double] prices = prices_of(origin)
    cdef PreparedSlots fresh = in_order(origin)
    cdef Status status
    origin = np.array(origin)
    origin.flags.writeable = False
    state.now, state.known = now, len(arrays["free"])
    fill_spans(arrays["free"], state.free_nodes, state.free)
    fill_spans(arrays["booked"], state.booked_nodes, state.booked)
    state.gone = arrays["gone"].tolist()
    pool.lock()
    status = become(pool, origin, fresh, prices, state)
    pool.mutex.unlock()
    return check_status(status)


cdef bint extend(SlotPool pool, size_t known, object origin, size_t gone, double now) except -1:
    """Free the rows of origin behind `known`; False if the pool has other rows, nodes or now."""
    cdef PoolState state
    cdef vector[double] prices = prices_of(origin)
    cdef PreparedSlots fresh = in_order(origin)
    cdef vector[int32_t] nodes
    cdef vector[Span] spans
    cdef Status status
    cdef bint same = False
    origin.flags.writeable = False
    added = np.empty(len(origin) - known, SPAN)
    added["row"] = np.arange(known, len(origin))
    for name in ("node", "start", "end"):
        added[name] = origin[name][known:]
    fill_spans(added, nodes, spans)
    pool.start_change()
    try:
        status = state_of(pool.pool, state)
        if status == Status.ok:
            same = <size_t>len(pool.table) == known and state.gone.size() == gone and state.now == now
        if same:
            state.known = state.free.size()
            state.free_nodes.insert(state.free_nodes.end(), nodes.begin(), nodes.end())
            state.free.insert(state.free.end(), spans.begin(), spans.end())
            status = become(pool, origin, fresh, prices, state)
    finally:
        pool.mutex.unlock()
    check_status(status)
    return same


cdef PreparedSlots in_order(object origin):
    return PreparedSlots(origin[np.lexsort((origin["node"], origin["start"]))])


cdef Status become(SlotPool pool, object origin, PreparedSlots fresh,
                   const vector[double]& prices, PoolState& state):
    """With the pool locked."""
    pool.prepared = fresh.prepared
    pool.table = origin
    pool.masks.clear()
    pool.changed = True
    return open_pool(pool.pool, pool.prepared, prices, &state)


cdef object failure(Status status):
    cdef Query query
    return search_error(status, query)


cdef int check_status(Status status) except -1:
    if status != Status.ok:
        raise failure(status)
    return 0


cdef vector[double] prices_of(object table) except *:
    cdef vector[double] prices
    cdef const double[::1] column = np.ascontiguousarray(table["price"])
    if column.shape[0]:
        prices.assign(&column[0], &column[0] + column.shape[0])
    return prices


cdef int fill_spans(object table, vector[int32_t]& nodes, vector[Span]& spans) except -1:
    cdef Span span
    for row, node, start, end in table.tolist():
        span.row, span.start, span.end = row, start, end
        spans.push_back(span)
        nodes.push_back(node)
    return 0


cdef object span_table(const vector[int32_t]& nodes, const vector[Span]& spans):
    cdef size_t k, size = spans.size()
    cdef int64_t[::1] rows = np.empty(size, np.int64)
    cdef int32_t[::1] ids = np.empty(size, np.int32)
    cdef double[:, ::1] times = np.empty((2, size))
    for k in range(size):
        rows[k] = spans[k].row
        ids[k] = nodes[k]
        times[0, k] = spans[k].start
        times[1, k] = spans[k].end
    out = np.empty(size, SPAN)
    out["row"], out["node"] = rows, ids
    out["start"], out["end"] = times
    return out


cdef str part_text(Window window, size_t bad):
    cdef Part part = window.parts[bad]
    return f"node {part.node} from {window.start} to {window.start + part.length}"

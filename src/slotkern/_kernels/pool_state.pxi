# States of pools: restores pools from arrays, adds slots, replaces states, and numbers limits.

NO_SPANS = np.empty(0, SPAN)


def restore_pool(origin, state, now, context=None, owned=(), generations=None, closures=None,
                 capacities=None):
    """Return a pool with this state, clock, machine, owned windows and generations of files."""
    if closures is None:
        closures = NO_CLOSURES
    cdef SlotPool pool = pool_from_state(origin, state, now, closures, context)
    pool._closures = closures
    pool._generations.update(generations or {})
    for window, owner in owned:
        window.context = context
        record_owner(pool, [window], owner)
    pool.capacities = capacities
    return pool


cdef SlotPool pool_from_state(origin, state, now, closures, context):
    cdef SlotPool pool = SlotPool(origin[:0])
    pool.context = context
    if (not len(closures) and now == -np.inf and in_order(origin, "start", "node") is origin
            and all_free(origin, state)):
        prepare_all(pool, origin)  # before the first change
    else:
        restore(pool, origin, state, now, closures)
    return pool


cdef int fill_closed(object closures, object ids, PoolState& state) except -1:
    """Write the closed spans of these nodes, sorted by (node, start), to `state`."""
    rows = closures[np.isin(closures["node"], ids)]
    rows = rows[np.lexsort((rows["start"], rows["node"]))]
    table = np.zeros(len(rows), SPAN)
    for name in ("node", "start", "end"):
        table[name] = rows[name]
    state.closed.clear()
    state.closed_nodes.clear()
    return fill_spans(table, state.closed_nodes, state.closed)


cdef bint all_free(origin, state) except -1:
    """Return True if every slot is entirely free and no node is removed."""
    free = state["free"]
    if len(free) != len(origin) or len(state["booked"]) or len(state["gone"]):
        return False
    slots = origin.take(free["row"])
    return all([np.array_equal(slots[name], free[name]) for name in ("node", "start", "end")])


cdef int restore(SlotPool pool, object origin, object arrays, double now,
                 object closures) except -1:
    """Initialize a new pool, not yet visible to other threads, with this state."""
    cdef PoolState state
    cdef vector[double] prices = prices_of(origin)
    cdef PreparedSlots fresh = prepare_with_context(
        in_order(origin, "start", "node"), pool.context)
    origin = np.array(origin)
    origin.flags.writeable = False
    state.now, state.first_new_span = now, len(arrays["free"])
    fill_spans(arrays["free"], state.free_nodes, state.free)
    fill_spans(arrays["booked"], state.booked_nodes, state.booked)
    state.removed = arrays["gone"].tolist()
    fill_spans(arrays.get("held", NO_SPANS), state.withheld_nodes, state.withheld)
    fill_closed(closures, origin["node"], state)
    cdef Status status = Status.ok
    cdef InterruptScope interrupts
    pool.prepared = move(fresh.prepared)
    while attempt(interrupts, status):
        status = open_pool(pool.pool, pool.prepared, prices, &state)
    check_status(status)
    replace_origin(pool, origin)
    return 0


cdef bint extend(SlotPool pool, size_t old_rows, object origin, PreparedSlots fresh, size_t removed,
                 double now) except -1:
    """Add the rows of origin from `old_rows` on as free time.

    Returns False, without a change, if another thread has changed rows, nodes, closures or now.
    """
    cdef PoolState state, closed_state
    cdef vector[double] prices = prices_of(origin)
    cdef vector[int32_t] nodes
    cdef vector[Span] spans
    cdef Status status = Status.ok
    cdef bint same = False
    cdef InterruptScope interrupts
    origin.flags.writeable = False
    added = np.empty(len(origin) - old_rows, SPAN)
    added["row"] = np.arange(old_rows, len(origin))
    for name in ("node", "start", "end"):
        added[name] = origin[name][old_rows:]
    fill_spans(added, nodes, spans)
    closures = pool._closures
    fill_closed(closures, origin["node"], closed_state)  # before the pool is locked
    while attempt(interrupts, status):
        pool.lock_for_change()
        try:
            status = state_of(pool.pool, state)
            if status == Status.ok:
                same = (<size_t>len(pool.table) == old_rows and state.removed.size() == removed
                        and state.now == now and pool._closures is closures)
            if same:
                state.first_new_span = state.free.size()
                state.free_nodes.insert(state.free_nodes.end(), nodes.begin(), nodes.end())
                state.free.insert(state.free.end(), spans.begin(), spans.end())
                state.closed_nodes = closed_state.closed_nodes
                state.closed = closed_state.closed
                status = extend_pool(pool.pool, fresh.prepared, prices, state)
                if status == Status.ok:
                    replace_origin(pool, origin)
        finally:
            pool.mutex.unlock()
    check_status(status)
    return same


cdef int replace_origin(SlotPool pool, object origin) except -1:
    """Set the origin array of a changed pool and drop what was computed for the old one."""
    pool.table = origin
    pool.column_cache.clear()
    invalidate_limits(pool)
    pool.changed = True
    return 0


def add_slots(SlotPool pool, slots):
    """See `SlotPool.add_slots`."""
    slots = as_slot_array(slots)
    check_slots(slots)
    if pool.capacities is not None:
        cap_methods.check_weeks(pool, slots)
    while not add(pool, slots):
        pass  # retry: another thread changed the pool
    if pool.capacities is not None:
        cap_methods.extend_weeks(pool)


cdef object joined_type(object old, object new):
    """Return `old` with its extra columns as wide as the values of `new` need.

    A text that was cut to the width of a column could name another tariff.
    """
    if old == new:
        return old
    types = []
    for name in old.names:
        one, other = old[name], new[name]
        numbers = one.kind in "biuf" and other.kind in "biuf"
        if name not in SLOT.names and (numbers or one.kind == other.kind):
            one = np.promote_types(one, other)
        types.append((name, one))
    return np.dtype(types, align=old.isalignedstruct)


cdef bint add(SlotPool pool, object slots) except -1:
    """Validate and add slots; return False if the pool changed in the meantime."""
    table, state, now = pool._full_state()
    if slots.dtype.names != table.dtype.names:
        raise ValueError(
            f"slots must have the fields {', '.join(table.dtype.names)}, got "
            f"{', '.join(slots.dtype.names)}"
        )
    gone = np.isin(slots["node"], state["gone"])
    if gone.any():
        row = int(np.flatnonzero(gone)[0])
        node = slots["node"][row]
        raise SlotError(f"node {node} was removed from the pool", row, "node", row)
    early = slots["start"] < now
    if early.any():
        row = int(np.flatnonzero(early)[0])
        raise SlotError(f"start {slots['start'][row]} lies before the pool's now, "
                        f"{now}", row, "start", row)
    PyErr_CheckSignals()  # each step may take long, and numpy does not poll
    dtype = joined_type(table.dtype, slots.dtype)
    origin = np.concatenate([table.astype(dtype, copy=False), slots.astype(dtype, copy=False)])
    PyErr_CheckSignals()
    order = row_order(origin["node"], origin["start"])
    in_time = origin.take(order)
    PyErr_CheckSignals()
    try:
        fresh = prepare_with_context(in_time, pool.context)
    except SlotError as error:
        row, other = int(order[error.row]), int(order[error.other])
        old = len(table)
        text = f"{error.problem}; it conflicts with row {min(row, other)} of the pool's origin"
        raise SlotError(text, max(row, other) - old, error.field,
                        max(row, other) - old) from None
    return extend(pool, len(table), origin, fresh, len(state["gone"]), now)


cdef int check_no_handle(SlotPool pool, Caps capacities) except -1:
    """Raise ValueError if compiled code, which does not keep these capacities, uses the pool."""
    if capacities is not None and pool.c_handle.pool != NULL:
        raise ValueError("compiled code has a handle of this pool, and does not keep "
                         "capacities and quotas; use a copy")
    return 0


cdef int replace_state(SlotPool pool, SlotPool other) except -1:
    """See `SlotPool._replace_state`."""
    cdef Status status
    check_no_handle(pool, other.capacities)
    other.lock_for_change()
    other.mutex.unlock()
    pool.lock_for_change()
    with nogil:
        status = copy_pool(pool.pool, pool.prepared, other.pool, other.prepared)
    if status == Status.ok:
        pool.table, pool.context = other.table, other.context
        pool.free_table = pool.current = None
        pool.owners_by_window = dict(other.owners_by_window)
        pool._closures = other._closures
        pool.capacities = None if other.capacities is None else other.capacities.copy()
        pool.column_cache.clear()
        invalidate_limits(pool)
    pool.mutex.unlock()
    check_status(status)
    return 0


cdef size_t limits_number(SlotPool pool, limits) except *:
    """Return the number of limits for requests of compiled code; see `limits_handle`."""
    cdef Request request = Request(1, 1, limits=limits)
    if not request.limits:
        return 0
    if request.rules:
        raise ValueError("limits with a handle are limits on sums, "
                         f"not group rules such as {request.limits[0].text}")
    if not is_booking_invariant(request):
        raise ValueError(
            "limits with a handle must be terms over columns other than start and end, "
            "which change with every booking"
        )
    known = pool.limit_numbers.get(request.limits)
    if known is not None and known[0] is pool.table:
        return known[1]
    number = 0
    while not number:  # retry if another thread adds slots
        table, compiled = pool.table, pool.compile_request(request)
        pool.lock()
        try:
            if pool.table is table:
                pool.c_handle.limits.push_back((<Request>compiled).query.limits)
                number = pool.c_handle.limits.size()
                pool.compiled_limits.append(compiled)
        finally:
            pool.mutex.unlock()
    # Outside the lock, because hashing may run Python code.
    pool.limit_numbers[request.limits] = table, number
    return number


cdef int invalidate_limits(SlotPool pool) except -1:
    """Invalidate the limits of the handle after a change of origin; numbers are not reused.

    The caller holds the lock.
    """
    cdef size_t i
    for i in range(pool.c_handle.limits.size()):
        pool.c_handle.limits[i] = NULL
    pool.compiled_limits.clear()
    return 0

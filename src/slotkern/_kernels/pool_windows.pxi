# Bookings and releases of windows: the amounts of capacities, the pool, and the owners.

cdef int book_windows(SlotPool pool, object window, object owner) except -1:
    """See `SlotPool.book`."""
    cdef list windows, taken
    if isinstance(window, Window):
        windows = [window]
    elif window is None:
        raise TypeError("there is no window to book: the search returned None; "
                        "call explain for the reason")
    else:
        windows = [item for item in window if item is not None]
    for item in windows:
        if not isinstance(item, Window):
            raise TypeError(f"only windows can be booked, got {type(item).__name__}")
    if owner is not None:
        check_owner(owner)
    cdef Caps capacities = pool.capacities
    if capacities is None:
        book_parts(pool, windows)
        if pool.capacities is not None:  # set by another thread meanwhile
            pool.capacities.charge(windows)
    else:
        taken = capacities.take(windows)
        try:
            book_parts(pool, windows)
        except BaseException:
            capacities.undo(windows, taken)
            raise
        capacities.commit(windows, taken)
    record_owner(pool, windows, owner)
    return 0


cdef int book_parts(SlotPool pool, list windows) except -1:
    cdef vector[WindowParts] parts
    cdef size_t failed_window = 0, failed_part = 0
    cdef Status status = Status.ok
    cdef InterruptScope interrupts
    collect_parts(windows, parts)
    while attempt(interrupts, status):
        pool.lock_for_change()
        if parts.size() == 1:  # releasing the GIL costs more than booking one window
            status = book_all(pool.pool, parts, failed_window, failed_part)
            pool.mutex.unlock()
        else:
            with nogil:
                status = book_all(pool.pool, parts, failed_window, failed_part)
                pool.mutex.unlock()
    if status != Status.ok:
        part = describe_part(windows[failed_window], failed_part)
        raise status_error(status, "book", {"what": "the window", "part": part})
    return 0


# No Python code runs between a change of the pool and the update of the owners, so a signal
# handler runs before both or after both.
cdef int record_owner(SlotPool pool, list windows, object owner) except -1:
    """Record the owner of windows; None: the account of each."""
    cdef Window window
    cdef dict owners = pool.owners_by_window
    if owner is not None:
        for window in windows:
            owners[window] = owner
        return 0
    for window in windows:
        if window.special is not None and "account" in window.special:
            pool.owners_by_window[window] = window.special["account"]
    return 0


cdef int release_windows(SlotPool pool, object window, object name) except -1:
    """See `SlotPool.release`."""
    cdef Window each
    plan = window if isinstance(window, HasPlot) and hasattr(window, "windows") else None
    if plan is None and not isinstance(window, (str, Window)):
        raise TypeError(
            f"only windows and owners can be released, got {type(window).__name__}")
    if name is not None and not isinstance(window, str):
        raise TypeError("name selects among an owner's windows: give the owner first")
    cdef list windows = (pool.windows(window) if isinstance(window, str)
                         else [window] if plan is None else list(plan.windows))
    covered = isinstance(window, str) and name is None and window in pool.owners
    if not windows and not covered:
        raise ValueError(closures.nothing_booked(pool, window))
    if name is not None:
        windows = [each for each in windows if each.name == name]
        if not windows:
            raise ValueError(f"{window!r} has booked nothing for {name!r}")
    if not pool.changed:
        raise ValueError("the window cannot be released: nothing is booked in this pool")
    cdef size_t failed_window = 0, failed_part = 0
    cdef Status status = Status.ok
    if len(windows) > 1:
        status = check_booked(pool, windows, failed_window, failed_part)
    if status != Status.ok:
        part = describe_part(windows[failed_window], failed_part)
        raise status_error(status, "release", {"part": part})
    if covered:
        closures.reopen_gaps(pool, window)
    for each in reversed(windows):  # booked in order of time, each leaves the end of its list
        PyErr_CheckSignals()  # windows released so far stay released
        release_one(pool, each)
    return 0


cdef int release_one(SlotPool pool, Window window) except -1:
    cdef size_t failed_window = 0, failed_part = 0
    pool.lock_for_change()
    cdef Status status = release(pool.pool, window.start, window.parts, window.count, failed_part)
    pool.mutex.unlock()
    if status != Status.ok:
        raise status_error(status, "release", {"part": describe_part(window, failed_part)})
    cdef bint counted = pool.capacities is None or pool.capacities.give_back(window)
    cdef bint owned = pool.owners_by_window.pop(window, None) is not None
    if owned and counted:
        return 0
    # The owner may have booked an equal set of parts found by another criterion.
    others = [] if owned else [w for w in pool.owners_by_window if w.start == window.start]
    if not counted:
        others += pool.capacities.windows_from(window.start)
    nodes = set(window.nodes) if others else None
    for other in others:
        if nodes.isdisjoint(other.nodes):
            continue
        if check_booked(pool, [other], failed_window, failed_part) == Status.not_booked:
            pool.owners_by_window.pop(other, None)  # another thread may have
            if pool.capacities is not None:
                pool.capacities.give_back(other)
    return 0


cdef Status check_booked(SlotPool pool, list windows, size_t& failed_window,
                         size_t& failed_part) except *:
    """Return ok if all parts are booked, past or on removed nodes; else set the failed part."""
    cdef vector[WindowParts] parts
    cdef Status status = Status.ok
    cdef InterruptScope interrupts
    collect_parts(windows, parts)
    while attempt(interrupts, status):
        pool.lock_for_change()
        with nogil:
            status = all_booked(pool.pool, parts, failed_window, failed_part)
            pool.mutex.unlock()
    return status

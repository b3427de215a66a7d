# Searches for `slotkern.compound`: a request within narrower limits, and roles that start together.

ANY_TIME = -np.inf, np.inf, np.inf, np.inf, np.inf


cdef int narrow(Query* query, limits) except -1:
    """Apply (earliest, latest, deadline, max_runtime, budget) in addition to the query's own."""
    query.earliest = max(query.earliest, <double>limits[0])
    query.latest = min(query.latest, <double>limits[1])
    query.deadline = min(query.deadline, <double>limits[2])
    query.max_runtime = min(query.max_runtime, <double>limits[3])
    query.budget = min(query.budget, <double>limits[4])
    return 0


cdef int restore_rows(Window window, PreparedSlots pool) except -1:
    """Convert the rows of a window that was found in a snapshot to those of its pool."""
    cdef Py_ssize_t i
    if pool.origin is not None:
        for i in range(window.count):
            window.parts[i].row = pool.origin[window.parts[i].row]
    return 0


def depends_on_bookings(Request request not None):
    """Return True if bookings change the values of the request's filter or limits."""
    return not is_booking_invariant(request)


def find_limited(PreparedSlots slots not None, Request request not None, str criterion, str shape,
                 limits=ANY_TIME, *, bint own_rows=False):
    """Return the window of `find_window` within further limits, or None.

    Parameters
    ----------
    slots : PreparedSlots
        A changed pool only for requests that do not depend on bookings.
    request : Request
        With times in numbers, see `resolve_times`.
    criterion : str
        A name of `CRITERIA`.
    shape : str
    limits : tuple of float
        earliest, latest, deadline, max_runtime and budget; each applies together with the
        request's own. Without a window between them the result is None.
    own_rows : bool
        True: the rows of a window in a snapshot are those of the snapshot.
    """
    cdef ShapeKind form = parse_shape(shape)
    cdef Request compiled = slots.compile_request(request)
    cdef Query query = compiled.query
    narrow(&query, limits)
    cdef Answer answer = slots.search(query, INDEX[criterion], form)
    if answer.status == Status.none:
        return None
    if answer.status == Status.limit_failed:
        raise status_error(answer.status, "search", {"part": f"a slot of row {answer.failed}"})
    if answer.status != Status.ok:
        raise search_error(answer.status, query)
    cdef Window window = window_from_answer(answer, query.n, criterion, shape)
    window.name, window.context = request.name, slots.context
    if not own_rows:
        restore_rows(window, slots)
    return window


cdef Query first_refused(PreparedSlots slots, const vector[Query]& queries, Status status):
    """Return the first query that is refused with this status; the first one if none is."""
    cdef size_t i
    for i in range(queries.size()):
        if slots.prepared.check(queries[i]) == status:
            return queries[i]
    return queries[0]


def find_together(PreparedSlots slots not None, list requests not None, str shape,
                  limits=ANY_TIME):
    """Return the windows of all requests at their earliest common start, or None.

    Parameters
    ----------
    slots, shape, limits
        As for `find_limited`; the limits apply to each request.
    requests : list of Request
        Their candidate slots must lie on different nodes.

    Returns
    -------
    list of Window, or None
        At the common start, each the cheapest.
    """
    cdef ShapeKind form = parse_shape(shape)
    cdef vector[Query] queries
    cdef list keep = []  # owners of memory that queries reference
    cdef Request request, compiled
    for request in requests:
        compiled = slots.compile_request(request)
        keep.append(compiled)
        queries.push_back(compiled.query)
        narrow(&queries.back(), limits)
    cdef WindowTable found = WindowTable.__new__(WindowTable)
    found.criterion, found.shape, found.context = "start", shape, slots.context
    cdef Status status = slots.search_together(queries, form, found.windows)
    if status == Status.none:
        return None
    if status == Status.limit_failed:
        raise status_error(status, "search", {"part": "a slot"})
    if status != Status.ok:
        raise search_error(status, first_refused(slots, queries, status))
    cdef Window window
    cdef list windows = []
    for i, request in enumerate(requests):
        window = found.window(i)
        window.name = request.name
        restore_rows(window, slots)
        windows.append(window)
    return windows

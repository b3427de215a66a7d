# The result of SlotPool.schedule, and the pass over the requests that fills it.

cdef class Bookings(WindowTable):
    """Bookings()
--

    The windows that `SlotPool.schedule` booked, and the reasons for requests without one.

    A `WindowTable`: an integer index returns the booked `Window`, or None; a slice returns
    `Bookings`.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time, value : ndarray of float64, shape (k,)
        Totals of each window; NaN if nothing was booked.
    booked : ndarray of bool, shape (k,)
        True if a window was booked.
    reason : ndarray of uint8, shape (k,)
        0 booked; 1 nodes: fewer than n nodes have this performance; 2 budget: a window
        exists, but only above the budget; 3 time: never n suitable slots at the same time;
        4 volume: so small that a part's end equals its start; 6 limits: a window exists,
        but none meets the limits on sums; 7 undecided: the search under limits spent its
        work, so a window may exist (call `SlotPool.find` with a larger ``max_work``);
        8 groups: a window exists, but none obeys the group rules; 9 cap, 10 quota: a window
        exists, but none for which a capacity, or a quota, of the pool has enough.
    reasons : list of str
        The reasons as words.
    parts : structured array
        All booked parts: row, node, start, end, cost; those of request i are
        ``parts[first[i]:first[i + 1]]``.
    first : ndarray of int64, shape (k + 1,)
        Offsets of the windows in `parts`.
    names : list
        The name of each request, or None.
    plans : dict or None
        For jobs of several parts: the index of each booked one, and its `Plan`, which an integer
        index returns too. `parts` then has the fields ``option`` (-1: none) and ``role``.
    """

    def __init__(self, *_args, **_options):
        raise TypeError("Bookings are made by SlotPool.schedule")

    @classmethod
    def of(cls, windows, **options):
        """Raise TypeError: the reasons of requests are unknown outside `SlotPool.schedule`."""
        raise TypeError("Bookings are made by SlotPool.schedule; see WindowTable.of")

    cdef str item_noun(self):
        return "requests"

    def __getitem__(self, index):
        found = WindowTable.__getitem__(self, index)
        if self.plans is not None and isinstance(found, Window):
            return self.plans.get(resolve_index(index, len(self), "requests"), found)
        return found

    cdef WindowTable select_rows(self, object rows):
        cdef Bookings some = WindowTable.select_rows(self, rows)
        cdef size_t i
        for i in rows:
            some.codes.push_back(self.codes[i])
        if self.plans is not None:
            some.plans = {k: self.plans[i] for k, i in enumerate(rows) if i in self.plans}
        return some

    cdef object flat_parts(self):
        if self.plans is None or self.part_table is not None:
            return WindowTable.flat_parts(self)
        self.part_table = ledger.parts_of_jobs(WindowTable.flat_parts(self), self.first, self.plans)
        return self.part_table

    cdef dict leading_columns(self):
        return WindowTable.leading_columns(self) | {"reason": np.array(self.reasons, np.str_)}

    @property
    def reason(self):
        """The reason code of each request; 0: booked."""
        cdef size_t i
        out = np.empty(self.codes.size(), np.uint8)
        cdef uint8_t[::1] view = out
        for i in range(self.codes.size()):
            view[i] = self.codes[i]
        return out

    @property
    def reasons(self):
        """The reason of each request as a word."""
        return [REASONS[code] for code in self.reason.tolist()]

    @property
    def booked(self):
        """True for each request with a booked window."""
        return self.reason == 0

    def listing(self):
        """Return one row for each request: name, reason, nodes, start, finish, cost, and dates.

        A job of several parts has a row for each window, and all jobs the columns role and option.

        Returns
        -------
        structured array
            nodes: the node names as one text. With a clock also start_time and finish_time:
            text in the clock's zone. Empty or NaN if nothing was booked.
        """
        return ledger.job_rows(list(self), self.context, self.names, self.reasons, self.plans)

    def __repr__(self):
        return f"Bookings({int(self.booked.sum())} of {len(self)} booked)"

    def __eq__(self, other):
        if not isinstance(other, Bookings):
            return WindowTable.__eq__(self, other)
        return self.reasons == other.reasons and WindowTable.__eq__(self, other)

    __hash__ = None

    def __reduce__(self):
        return bookings_from_windows, (list(self), self.reason, self.criterion, self.shape,
                                       self.names, self.context)


def bookings_from_windows(windows, reason, str criterion, str shape, names=None, context=None):
    """Return Bookings from a window, a plan or None, and a reason, for each request."""
    cdef list items = list(windows)
    plans = {i: item for i, item in enumerate(items)
             if item is not None and not isinstance(item, Window)}
    items = [item.merged() if i in plans else item for i, item in enumerate(items)]
    cdef Bookings self = table_from_windows(Bookings, items, criterion, shape)
    self.plans = plans or None
    self.names, self.context = list(names or [None] * len(reason)), context
    cdef uint8_t code
    for code in reason.tolist():
        self.codes.push_back(code)
    return self


cdef Bookings schedule_requests(SlotPool pool, requests, criterion, str shape, owner):
    """Book a window for each request; every exception has what was booked before it."""
    cdef Bookings out = Bookings.__new__(Bookings)
    cdef Caps capacities
    cdef list windows
    out.names, out.context = [], pool.context
    several_parts, stopped = False, None
    try:
        if not isinstance(requests, (list, tuple)):
            from slotkern.machine.jobs import requests_of
            requests = requests_of(requests)
        several_parts = not schedule_into(pool, out, requests, criterion, shape, owner)
    except BaseException as error:
        stopped = error
    owned = owner is not None or out.specials is not None
    capacities = None if out.is_charged else pool.capacities
    while (owned or capacities is not None) and len(out):  # record despite further signals
        try:
            windows = [window for window in out if window is not None]
            if capacities is not None:  # no rule counts them yet, but a later one may
                capacities.charge(windows)
            if owned:
                record_owner(pool, windows, owner)
            break
        except KeyboardInterrupt as error:
            stopped = error
    if stopped is not None:
        del out.names[len(out):]  # the requests that were not processed
        if out.specials is not None:
            del out.specials[len(out):]
        stopped.bookings = out
        raise stopped
    if several_parts:
        return adapter("schedule_compounds")(pool, requests, criterion, shape, owner)
    return out


# The request with times in numbers; `uses`: what it takes of the pool's capacities.
cdef Request request_for_queue(SlotPool pool, Request request, i, vector[CapacityUse]& uses):
    cdef Request given = resolve_times(pool, request, i, True)
    uses.clear()
    check_uses(pool, given, i, uses)
    if not is_booking_invariant(given):
        raise ValueError(
            f"requests[{i}]: a filter must be an expression without start and end, which "
            "change with every booking, and so must limits; find and book it separately"
        )
    return given


def check_queued(SlotPool pool not None, Request request not None, i, *, bint single=True):
    """Raise the error of `schedule` for request i of a queue, or a part of job i.

    Parts of a job may have filters that bookings change.
    """
    cdef vector[CapacityUse] uses
    if single:
        request = uncounted(request_for_queue(pool, request, i, uses))
    else:
        request = resolve_times(pool, request, i)
        if not is_booking_invariant(request):
            return
    pool.compile_listed_request(request, i)


cdef bint schedule_into(SlotPool pool, Bookings out, requests, criterion, str shape,
                        owner) except -1:
    """Compile and schedule the requests; on an error `out` holds what was booked before.

    Returns False, without a change, if some of the jobs have several parts.
    """
    cdef ShapeKind form = parse_shape(shape)
    if type(criterion) is not str or criterion not in INDEX:
        raise ValueError(
            f"criterion must be one of {', '.join(CRITERIA)}, got {criterion!r}"
            f"{meant(criterion, CRITERIA)}")
    out.criterion, out.shape = criterion, shape
    cdef vector[Query] queries
    cdef vector[CapacityUse] uses
    cdef Request each
    cdef bint counted = False
    cdef list asked = []
    masked = []
    if owner is not None:
        check_owner(owner)
    for i, request in enumerate(requests):
        if not isinstance(request, Request):
            adapter("check_job")(request, f"requests[{i}]")
            return False
        each = request_for_queue(pool, request, i, uses)
        counted = counted or not uses.empty()
        asked.append(each)
        out.names.append(each.name)
        each = pool.compile_listed_request(uncounted(each), i)
        masked.append(each)  # owns the mask
        queries.push_back(each.query)
    if any([each.special is not None for each in asked]):
        out.specials = [each.special for each in asked]
    out.is_charged = counted
    if counted:
        schedule_counted(pool, out, asked, queries, INDEX[criterion], form, owner)
    else:
        check_status(pool.schedule_all(queries, INDEX[criterion], form, out.windows, out.codes))
    return True


cdef int check_uses(SlotPool pool, Request request, i, vector[CapacityUse]& uses) except -1:
    """As `fill_uses`, for request i of a list; an error names the request."""
    try:
        fill_uses(pool.capacities, request, uses)
        if request.uses is not None and any([type(of) is str for of in request.uses.values()]):
            adapter("check_sum")(pool, request)
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{request.name or f'requests[{i}]'}: {error}") from None
    return 0


# One search and booking for each request: capacities are step functions that only code with the
# GIL changes.
cdef int schedule_counted(SlotPool pool, Bookings out, list requests,
                          const vector[Query]& queries, int criterion, ShapeKind form,
                          owner) except -1:
    cdef Request request
    cdef Window window
    cdef Found found
    cdef size_t i
    cdef uint8_t code
    for i, request in enumerate(requests):
        window, code = None, 0
        if pool.prepared.check(queries[i]) != Status.ok:
            code = REASONS.index("volume")
        else:
            try:
                window = find_and_book(pool, request, out, owner)
            except UndecidedError:
                code = REASONS.index("undecided")
        if window is not None:
            if out.specials is not None:
                out.specials[i] = window.special  # with the amounts of sums over the nodes
            found.start, found.runtime, found.cost = window.start, window.runtime, window.cost
            found.processor_time, found.value = window.processor_time, window.value
            out.windows.add(found, window.parts, window.count)
            if not window.proven:
                out.windows.set_bound(window.bound, False)
        else:
            code = code or reason_without_window(pool, request, queries[i], criterion, form)
            out.windows.add_none()
        out.codes.push_back(code)
    return 0


cdef Window find_and_book(SlotPool pool, Request request, Bookings out, owner):
    """Book the best window; search again if another thread has booked a part of it."""
    cdef Window window, refused = None
    while True:
        window = find_window_of(pool, request, out.criterion, shape=out.shape)
        if window is None:
            return None
        try:
            book_windows(pool, window, owner)  # not the method of a subclass
            return window
        except ValueError:
            if window == refused:
                raise
            refused = window


cdef uint8_t reason_without_window(SlotPool pool, Request request, const Query& query,
                                   int criterion, ShapeKind form) except? 0:
    """Return the reason why a request has no window that keeps the rules of the pool."""
    cdef Caps rules = pool.capacities
    cdef uint8_t code = pool.find_reason(query, criterion, form)
    if code != 0:
        return code  # without the rules there is no window either
    free = rules.with_rules([rule for rule in rules.rules if rule.account is None])
    try:
        found = find_under(pool, request, "first", shape="square" if form == ShapeKind.square
                           else "ragged", capacities=free)
    except UndecidedError:
        return REASONS.index("undecided")
    return REASONS.index("cap" if found is None else "quota")

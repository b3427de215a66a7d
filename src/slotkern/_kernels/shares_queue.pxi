# The queue of ShareCore.schedule: its results, recorded without a gap after each booking.

def form_key(request):
    """Return the fields that decide how `ShareCore.schedule` searches for a request.

    None for a request with a filter or limits, and for other objects: they are checked one by
    one.
    """
    if not isinstance(request, Request) or not is_plain_job(request):
        return None
    cdef dict special = (<Request>request).special
    if special is None:
        return ()
    share, tree = special.get("share"), special.get("tree")
    return (None if share is None else tuple((<dict>share).items()),
            None if tree is None else tuple((<dict>tree).items()),
            special.get("stack"), special.get("whole"))


@cython.auto_pickle(False)
cdef class HostJob:
    """A request of a queue, as given and in numbers.

    Attributes
    ----------
    given, resolved : Request
    form : object
        Its method ``window(request, table, row)`` returns the booked window.
    part : object
        An item of `parts` of `ShareCore.schedule`; None: it does not schedule this job.
    """

    def __init__(self, Request given not None, Request resolved not None, form, part):
        self.given, self.resolved, self.form, self.part = given, resolved, form, part


@cython.auto_pickle(False)
cdef class BookedJob:
    """A booked window of a queue that is created when it is accessed.

    Attributes
    ----------
    table : Bookings
    row : int
    job : HostJob
    """

    def window(self):
        """Return the window, always the same one."""
        if self.made is None:
            self.made = self.job.form.window(self.job.given, self.table, self.row)
        return self.made

    def __reduce__(self):
        return self.window().__reduce__()

    @property
    def finish(self):
        """The end of the window."""
        return self.table.windows.found[self.row].start + self.table.windows.found[self.row].runtime


@cython.auto_pickle(False)
cdef class ShareQueue:
    """The jobs of `ShareCore.schedule`, and where their results are recorded.

    Parameters
    ----------
    criterion, shape : str
    jobs : list of HostJob
    windows, reasons : list
        Receive for each request a `BookedJob` or None, and a word of `REASONS`.
    capacities : Caps or None
        The capacities and quotas that count the windows.
    owner : str or None
        The owner of all windows; None: the account of each request.
    owned : dict
        Receives (`BookedJob`, owner) of each booked window with an owner.
    context : SlotContext, optional

    Raises
    ------
    ValueError, TypeError
        For an unknown criterion or shape.

    Attributes
    ----------
    table : Bookings
        The totals and parts of the windows.

    Notes
    -----
    No Python code, and so no signal handler, runs between a booking and all of its records.
    """

    def __init__(self, str criterion not None, str shape not None, list jobs not None,
                 list windows not None, list reasons not None, Caps capacities, owner,
                 dict owned not None, context=None):
        one_of("criterion", criterion, INDEX)
        parse_shape(shape)
        self.table = Bookings.__new__(Bookings)
        self.table.criterion, self.table.shape, self.table.context = criterion, shape, context
        self.jobs, self.windows, self.reasons = jobs, windows, reasons
        self.capacities, self.owner, self.owned = capacities, owner, owned
        self.first = len(reasons)

    cdef list fill_uses(self, QueueUses& out, size_t most):
        """Write what the next jobs use; return the counters, which own the memory."""
        cdef size_t i, first = self.table.codes.size()
        cdef size_t last = min(first + most, <size_t>len(self.jobs))
        cdef Request request
        cdef list counters = []
        out.first_job, out.now = first, self.capacities.now
        out.uses.clear()
        out.uses.resize(last - first)
        for i in range(first, last):
            request = (<HostJob?>self.jobs[i]).given
            counters.append(self.capacities.fill(
                request.query.n, special_of(request, "uses"), special_of(request, "account"),
                out.uses[i - first]))
        return counters

    cdef int add(self, object window, size_t code) except -1:
        """Record the result of the next request without a window."""
        self.table.windows.add_none()
        self.table.codes.push_back(code)
        return self.record()

    cdef int record(self) except -1:
        """Record the rows of the table that are new."""
        cdef size_t i, first = <size_t>len(self.reasons) - self.first
        cdef BookedJob booked
        cdef Request request
        for i in range(first, self.table.codes.size()):
            booked = None
            if self.table.codes[i] == 0:
                request = (<HostJob?>self.jobs[i]).given
                booked = BookedJob.__new__(BookedJob)
                booked.table, booked.row, booked.job = self.table, i, self.jobs[i]
                account = special_of(request, "account")
                who = self.owner or account
                if who is not None:
                    self.owned[booked] = booked, who
                if self.capacities is not None:
                    self.capacities.defer(booked, (
                        self.table.windows.count(i), special_of(request, "uses"), account))
            self.windows.append(booked)
            self.reasons.append(_REASONS[self.table.codes[i]])
        return 0


cdef object special_of(Request request, str name):
    """Return a special field whose default is None."""
    return None if request.special is None else request.special.get(name)

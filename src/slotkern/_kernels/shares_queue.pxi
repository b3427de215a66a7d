# The queue of ShareCore.schedule: its results, recorded without a gap after each booking.

@cython.auto_pickle(False)
cdef class BookedJob:
    """A booked window of a queue that is created when it is accessed.

    Attributes
    ----------
    table : Bookings
    row : int
    job : object
        Its method ``window(table, row)`` returns the window.
    """

    def window(self):
        """Return the window, always the same one."""
        if self.made is None:
            self.made = self.job.window(self.table, self.row)
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
    jobs : list
        For each request the object `BookedJob.job`; its attribute ``given`` is the request.
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
            request = self.jobs[i].given
            counters.append(self.capacities.fill(
                request.query.n, request.uses, request.account, out.uses[i - first]))
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
                request = self.jobs[i].given
                booked = BookedJob.__new__(BookedJob)
                booked.table, booked.row, booked.job = self.table, i, self.jobs[i]
                who = self.owner or request.account
                if who is not None:
                    self.owned[booked] = booked, who
                if self.capacities is not None:
                    self.capacities.defer(booked, (
                        self.table.windows.count(i), request.uses, request.account))
            self.windows.append(booked)
            self.reasons.append(_REASONS[self.table.codes[i]])
        return 0

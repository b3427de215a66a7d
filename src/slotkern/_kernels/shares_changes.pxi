# Changes of the time and the amounts of shared hosts other than bookings, and tables of them.

@cython.auto_pickle(False)
cdef class ChangingHosts(SharedHosts):
    """Shared hosts whose amounts are reserved, added, closed and listed."""

    def reserve(self, spans, amounts):
        """Take amounts from hosts, free or not; what is left may fall below 0.

        A host with an amount below 0 holds no part at that time.

        Parameters
        ----------
        spans : structured array
            Fields row, start and end.
        amounts : array of int, shape (spans, resources)

        Raises
        ------
        ValueError
            If the reserved amounts of a host would be out of range; spans before it are reserved.
        """
        self.change(spans, amounts, 0)

    def unreserve(self, spans, amounts):
        """End reservations with exactly these times and amounts.

        Raises
        ------
        ValueError
            For one that does not exist; those before it are ended.
        """
        self.change(spans, amounts, 1)

    def add(self, spans, free):
        """Add time in which hosts are available, with the free amounts.

        Raises
        ------
        ValueError
            For a span that overlaps another of its host; nothing is then added.
        """
        self.change(spans, free, 2)

    cdef int change(self, object spans, object amounts, int kind) except -1:
        cdef vector[HostSpan] given
        cdef vector[int32_t] taken
        cdef size_t failed = 0
        cdef Status status
        self.set_spans(spans, given)
        self.set_amounts(amounts, "free" if kind == 2 else "amounts", given.size(), taken,
                         kind == 2)
        self.lock()
        with nogil:
            if kind == 0:
                status = reserve_shares(self.pool, given, taken, failed)
            elif kind == 1:
                status = unreserve_shares(self.pool, given, taken, failed)
            else:
                status = add_shares(self.pool, given, taken, failed)
            self.mutex.unlock()
        if status == Status.not_free:
            where = self.describe(given[failed])
            if kind == 2:
                raise ValueError(f"spans[{failed}] overlaps another span of {where}")
            raise ValueError(f"more than {MAX_SHARE:,} would be reserved in total on {where}")
        if status == Status.not_booked:
            raise ValueError(
                f"{self.describe(given[failed])} is not reserved with these amounts")
        return check_status(status)

    def disable(self, spans):
        """Close hosts in these spans: they hold no part then, whether booked or not.

        Parameters
        ----------
        spans : structured array
            Fields row, start and end; an end may be inf.
        """
        cdef vector[HostSpan] given
        cdef Status status
        self.set_spans(spans, given)
        self.lock()
        with nogil:
            status = disable_hosts(self.pool, given)
            self.mutex.unlock()
        check_status(status)

    def enable(self, rows):
        """Open all closed time of these hosts.

        Parameters
        ----------
        rows : sequence of int
            Rows of `hosts`.
        """
        cdef vector[HostSpan] given
        cdef HostSpan span
        cdef Status status
        for row in rows:
            if not 0 <= row < len(self.table):
                raise ValueError(f"row {row} is none of {len(self.table)} hosts")
            span.host, span.start, span.end = row, 0, 0
            given.push_back(span)
        self.lock()
        with nogil:
            status = enable_hosts(self.pool, given)
            self.mutex.unlock()
        check_status(status)

    @property
    def now(self):
        """The current time; -inf before the first `advance`."""
        cdef double now
        self.lock()
        now = self.pool.now()
        self.mutex.unlock()
        return now

    @property
    def version(self):
        """A number that every change increases."""
        cdef size_t version
        self.lock()
        version = self.pool.version()
        self.mutex.unlock()
        return version

    @property
    def nbytes(self):
        """Bytes of the rows and the bookings."""
        cdef size_t bytes
        self.lock()
        bytes = self.pool.bytes()
        self.mutex.unlock()
        return bytes

    def advance(self, now):
        """Advance the current time: no window starts before it. An earlier time is ignored."""
        cdef double time = number(now, "now")
        cdef Status status
        self.lock()
        with nogil:
            status = advance_shares(self.pool, time)
            self.mutex.unlock()
        check_status(status)

    def free_spans(self, demand):
        """Return the maximal spans in which a host holds the demand, from `now` on.

        Returns
        -------
        structured array
            Row, node, start and end, ascending by (start, node).
        """
        cdef vector[int32_t] amounts
        cdef vector[HostSpan] spans
        cdef Status status
        self.set_amounts(np.asarray(demand).reshape(1, -1), "demand", 1, amounts)
        self.lock()
        with nogil:
            status = spans_of_demand(self.pool, amounts.data(), spans)
            self.mutex.unlock()
        check_status(status)
        table = span_array(spans, self.table)
        return table[np.lexsort((table["node"], table["start"]))]

    def profile(self, row):
        """Return the free amounts of a host by time, from `now` on.

        Returns
        -------
        spans : structured array
            Row, node, start and end; each span is free time or not throughout.
        free : array of int64, shape (spans, resources)
            Free amounts; below 0 if more is reserved or booked than there is.
        available : array of bool
            False outside of the host's time and in its closed time: it holds no part there.
        """
        cdef vector[HostSpan] spans
        cdef vector[int32_t] amounts
        cdef vector[uint8_t] available
        cdef Status status
        cdef size_t host = integer("row", row, least=0, most=len(self.table) - 1)
        self.lock()
        with nogil:
            status = rows_of_host(self.pool, host, spans, amounts, available)
            self.mutex.unlock()
        check_status(status)
        return (span_array(spans, self.table), self.amount_array(amounts),
                np.array(available, np.bool_))

    def integrals(self, start=-INFINITY, end=INFINITY):
        """Return amounts times time from `start` to `end`, but from `now` on.

        Returns
        -------
        booked, free : array of float64, shape (resources,)
            What is booked; what is free on hosts that are available.
        """
        cdef size_t resources = self.capacity.shape[1]
        cdef double[::1] booked = np.zeros(resources), free = np.zeros(resources)
        cdef double begin = number(start, "start"), last = number(end, "end")
        self.lock()
        with nogil:
            self.pool.integrals(begin, last, &booked[0], &free[0])
            self.mutex.unlock()
        return np.asarray(booked), np.asarray(free)

    @property
    def closed(self):
        """The closed time of all hosts: row, node, start and end."""
        return self.state()["closed"]

    def state(self):
        """Return the state as arrays, for files and `restore`.

        Returns
        -------
        dict
            ``now``; spans with the fields row, node, start and end: ``free`` (all time of the
            hosts), ``booked``, ``reserved`` and ``closed``; their amounts, one row for each span:
            ``free_amounts``, ``booked_amounts`` and ``reserved_amounts``.
        """
        cdef ShareState state
        cdef Status status
        self.lock()
        with nogil:
            status = state_of(self.pool, state)
            self.mutex.unlock()
        check_status(status)
        return {
            "now": state.now,
            "free": span_array(state.free, self.table),
            "free_amounts": self.amount_array(state.free_amounts),
            "booked": span_array(state.booked, self.table),
            "booked_amounts": self.amount_array(state.booked_amounts),
            "reserved": span_array(state.reserved, self.table),
            "reserved_amounts": self.amount_array(state.reserved_amounts),
            "closed": span_array(state.closed, self.table),
        }

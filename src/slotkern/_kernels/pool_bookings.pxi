# The result of SlotPool.schedule.

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
        work, so a window may exist (call `SlotPool.find` with a larger ``max_work``).
    reasons : list of str
        The reasons as words.
    parts : structured array
        All booked parts: row, node, start, end, cost; those of request i are
        ``parts[first[i]:first[i + 1]]``.
    first : ndarray of int64, shape (k + 1,)
        Offsets of the windows in `parts`.
    names : list
        The name of each request, or None.
    """

    def __init__(self, *_args, **_options):
        raise TypeError("Bookings are made by SlotPool.schedule")

    @classmethod
    def of(cls, windows, **options):
        """Raise TypeError: the reasons of requests are unknown outside `SlotPool.schedule`."""
        raise TypeError("Bookings are made by SlotPool.schedule; see WindowTable.of")

    cdef str item_noun(self):
        return "requests"

    cdef WindowTable select_rows(self, object rows):
        cdef Bookings some = WindowTable.select_rows(self, rows)
        cdef size_t i
        for i in rows:
            some.codes.push_back(self.codes[i])
        return some

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

        Returns
        -------
        structured array
            nodes: the node names as one text. With a clock also start_time and finish_time:
            text in the clock's zone. Empty or NaN if nothing was booked.
        """
        from slotkern.pool.ledger import window_rows
        return window_rows(list(self), self.context, name=self.names, reason=self.reasons)

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
    """Return Bookings from a window or None, and a reason, for each request."""
    cdef Bookings self = table_from_windows(Bookings, windows, criterion, shape)
    self.names, self.context = list(names or [None] * len(reason)), context
    cdef uint8_t code
    for code in reason.tolist():
        self.codes.push_back(code)
    return self

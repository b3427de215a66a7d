"""The door of bookings: what a stream of requests was given."""

import numpy as np

from libc.stdint cimport uint8_t

from slotkern._windows cimport WindowTable, gathered

# The reasons of batches, in the same order.
REASONS = ("booked", "nodes", "budget", "time", "volume", "limit", "limits", "undecided")


cdef class Bookings(WindowTable):
    """Bookings()
--

    What `SlotPool.schedule` did with each request.

    A `WindowTable`: an integer index gives the `Window` booked, or None; a slice gives
    `Bookings`.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time, value : ndarray of float64, shape (k,)
        NaN where nothing was booked.
    booked : ndarray of bool, shape (k,)
    reason : ndarray of uint8, shape (k,)
        0 booked; 1 nodes: there are not as many nodes of this performance; 2 budget: it
        fits, but not for its money; 3 time: as many proper slots are never free together;
        4 volume: so small that the clock does not move; 6 limits: it fits, but not within
        its limits on sums; 7 undecided: the search under limits spent its work, so that a
        window may exist (`SlotPool.find` with a larger ``max_work`` decides it).
    reasons : list of str
        The same in words.
    parts : structured array
        All booked parts: row, node, start, end, cost; those of request i are
        ``parts[first[i]:first[i + 1]]``.
    first : ndarray of int64, shape (k + 1,)
    names : list
        The name of each request, or None.
    """

    def __init__(self, *_args, **_options):
        raise TypeError("Bookings are made by SlotPool.schedule")

    @classmethod
    def of(cls, windows, **options):
        """Not of some windows: why others were not booked is not known."""
        raise TypeError("Bookings are made by SlotPool.schedule; see WindowTable.of")

    cdef str things(self):
        return "requests"

    cdef WindowTable chosen(self, object rows):
        cdef Bookings some = WindowTable.chosen(self, rows)
        cdef size_t i
        for i in rows:
            some.codes.push_back(self.codes[i])
        return some

    cdef dict figures(self):
        return WindowTable.figures(self) | {"reason": np.array(self.reasons, np.str_)}

    @property
    def reason(self):
        """Why each request was not booked; 0 where it was."""
        cdef size_t i
        out = np.empty(self.codes.size(), np.uint8)
        cdef uint8_t[::1] view = out
        for i in range(self.codes.size()):
            view[i] = self.codes[i]
        return out

    @property
    def reasons(self):
        """The reasons in words."""
        return [REASONS[code] for code in self.reason.tolist()]

    @property
    def booked(self):
        """Where a window was booked."""
        return self.reason == 0

    def listing(self):
        """One row a request: name, reason, nodes, start, finish, cost; with a clock also dates.

        Returns
        -------
        structured array
            Nodes are their names as one text; start_time and finish_time text in the clock's
            zone; empty or NaN where nothing was booked.
        """
        from slotkern.machine.ledger import window_rows
        return window_rows(list(self), self.terms, name=self.names, reason=self.reasons)

    def __repr__(self):
        return f"Bookings({int(self.booked.sum())} of {len(self)} booked)"

    def __eq__(self, other):
        if not isinstance(other, Bookings):
            return WindowTable.__eq__(self, other)
        return self.reasons == other.reasons and WindowTable.__eq__(self, other)

    __hash__ = None

    def __reduce__(self):
        return bookings_of, (list(self), self.reason, self.criterion, self.shape, self.names,
                             self.terms)


def bookings_of(windows, reason, str criterion, str shape, names=None, terms=None):
    """Bookings of one window or None, and one reason, for each request."""
    cdef Bookings self = gathered(Bookings, windows, criterion, shape)
    self.names, self.terms = list(names or [None] * len(reason)), terms
    cdef uint8_t code
    for code in reason.tolist():
        self.codes.push_back(code)
    return self

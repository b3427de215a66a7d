# Part of _pool.pyx: what a stream of requests was given.

from collections.abc import Sequence

cdef class Bookings:
    """Bookings()
--

    What `SlotPool.schedule` did with each request; a sequence of `Window` or None.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time : ndarray of float64, shape (k,)
        NaN where nothing was booked.
    booked : ndarray of bool, shape (k,)
    reason : ndarray of uint8, shape (k,)
        0 booked; 1 nodes: there are not as many nodes of this performance; 2 budget: it
        fits, but not for its money; 3 time: as many proper slots are never free together;
        4 volume: so small that the clock does not move.
    reasons : list of str
        The same in words.
    parts : structured array
        All booked parts: row, node, start, end, cost; those of request i are
        ``parts[first[i]:first[i + 1]]``.
    first : ndarray of int64, shape (k + 1,)
    """

    cdef CBookings done
    cdef readonly str criterion, shape

    def __init__(self, *_args, **_options):
        raise TypeError("Bookings are made by SlotPool.schedule")

    def __len__(self):
        return self.done.found.size()

    def __getitem__(self, index):
        cdef Py_ssize_t size = self.done.found.size(), i
        if isinstance(index, slice):
            return [self[k] for k in range(size)[index]]
        i = place_in(index, size, "requests")
        if self.done.reasons[i] != 0:
            return None
        cdef Answer answer
        answer.found = self.done.found[i]
        answer.parts = self.done.parts.data() + self.done.firsts[i]
        return wrap(answer, self.done.firsts[i + 1] - self.done.firsts[i], self.criterion,
                    self.shape)

    def index(self, window, start=0, stop=None):
        """The first request that was given this; ValueError if there is none."""
        return Sequence.index(self, window, start, stop)

    def count(self, window):
        """How many requests were given this, a window or None."""
        return Sequence.count(self, window)

    @property
    def reason(self):
        """Why each request was not booked; 0 where it was."""
        cdef size_t i
        out = np.empty(self.done.reasons.size(), np.uint8)
        cdef uint8_t[::1] view = out
        for i in range(self.done.reasons.size()):
            view[i] = self.done.reasons[i]
        return out

    @property
    def reasons(self):
        """The reasons in words."""
        return [REASONS[code] for code in self.reason.tolist()]

    @property
    def booked(self):
        """Where a window was booked."""
        return self.reason == 0

    cdef object column(self, int which):
        cdef size_t i
        cdef Found found
        out = np.full(self.done.found.size(), np.nan)
        cdef double[::1] view = out
        for i in range(self.done.found.size()):
            if self.done.reasons[i] == 0:
                found = self.done.found[i]
                view[i] = (found.start if which == 0 else found.runtime if which == 1
                           else found.cost if which == 2 else found.processor_time)
        return out

    @property
    def start(self):
        """Start of each window."""
        return self.column(0)

    @property
    def runtime(self):
        """From start to finish."""
        return self.column(1)

    @property
    def finish(self):
        """End of the last part."""
        return self.start + self.runtime

    @property
    def cost(self):
        """Money for all parts."""
        return self.column(2)

    @property
    def processor_time(self):
        """Sum of the parts' lengths."""
        return self.column(3)

    @property
    def first(self):
        """Where the parts of each request begin."""
        return np.array(self.done.firsts, np.int64)

    @property
    def parts(self):
        """All booked parts: row, node, start, end, cost."""
        cdef size_t k
        cdef size_t size = self.done.parts.size()
        cdef int64_t[::1] rows = np.empty(size, np.int64)
        cdef int32_t[::1] nodes = np.empty(size, np.int32)
        cdef double[:, ::1] numbers = np.empty((2, size))
        for k in range(size):
            rows[k] = self.done.parts[k].row
            nodes[k] = self.done.parts[k].node
            numbers[0, k] = self.done.parts[k].length
            numbers[1, k] = self.done.parts[k].cost
        out = np.empty(size, PART)
        out["row"], out["node"] = rows, nodes
        starts = np.repeat(self.start, np.diff(self.first))
        out["start"], out["end"], out["cost"] = starts, starts + numbers[0], numbers[1]
        return out

    def __repr__(self):
        return f"Bookings({int(self.booked.sum())} of {len(self)} booked)"

    def __eq__(self, other):
        if not isinstance(other, Bookings):
            return NotImplemented
        return self.reasons == other.reasons and list(self) == list(other)

    def __reduce__(self):
        return bookings_of, (list(self), self.reason, self.criterion, self.shape)


Sequence.register(Bookings)


def bookings_of(windows, reason, str criterion, str shape):
    """Bookings of one window or None, and one reason, for each request."""
    cdef Bookings self = Bookings.__new__(Bookings)
    cdef Window window
    cdef Found found
    cdef Py_ssize_t i
    self.criterion, self.shape = criterion, shape
    self.done.firsts.push_back(0)
    for window, code in zip(windows, reason.tolist()):
        found = Found()
        if window is not None:
            found.start, found.runtime, found.cost = window.start, window.runtime, window.cost
            found.processor_time, found.value = window.processor_time, window.value
            for i in range(window.count):
                self.done.parts.push_back(window.parts[i])
        self.done.found.push_back(found)
        self.done.reasons.push_back(code)
        self.done.firsts.push_back(self.done.parts.size())
    return self

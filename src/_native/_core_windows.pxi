# Part of _core.pyx: what a search returns.

cdef object search_error(Status status, Query query):
    if status == Status.no_memory:
        return MemoryError("not enough memory for this search")
    if status == Status.volume_too_small:
        return ValueError(
            f"volume {query.volume} is too small: beside times as large as these slots' the "
            "fastest node would take no time at all"
        )
    return RuntimeError("an unexpected error inside the search")


@cython.freelist(64)
cdef class Window:
    """Window()
--

    n slots on n different nodes with one common start.

    Attributes
    ----------
    start, finish, runtime : float
        Time of the common start, of the end of the last part, and between them.
    cost : float
        Money for all parts together.
    processor_time : float
        Sum of the parts' lengths.
    value : float
        The criterion in its own units and direction.
    proven : bool
        Whether the value is known to be the best there is.
    bound : float
        No window has a better value than this.
    criterion, shape : str
        What was asked for.
    effort : dict or None
        Of a search by value: how many groups it swept, steps it looked at and knapsacks it
        solved, and their units of work.
    slots : structured array
        One row a part, ascending by node: row (of the array searched), node, start, end,
        cost. Built on first access.
    """

    def __init__(self, *_args, **_options):
        raise TypeError("a Window is made by a search, such as find_window")

    def __dealloc__(self):
        free(self.parts)

    @property
    def slots(self):
        """The parts: row, node, start, end, cost; ascending by node."""
        cdef Py_ssize_t i
        if self.table is None:
            table = np.empty(self.count, PART)
            table["row"] = [self.parts[i].row for i in range(self.count)]
            table["node"] = [self.parts[i].node for i in range(self.count)]
            table["start"] = self.start
            table["end"] = [self.start + self.parts[i].length for i in range(self.count)]
            table["cost"] = [self.parts[i].cost for i in range(self.count)]
            self.table = table
        return self.table

    @property
    def nodes(self):
        """The node ids, ascending, as a tuple."""
        cdef Py_ssize_t i
        return tuple([self.parts[i].node for i in range(self.count)])

    def __len__(self):
        return self.count

    def to_pandas(self):
        """The parts as a pandas DataFrame."""
        from slotkern.files.slots import to_pandas
        return to_pandas(self.slots)

    def to_arrow(self):
        """The parts as a pyarrow Table."""
        from slotkern.files.slots import to_arrow
        return to_arrow(self.slots)

    def to_dict(self):
        """Everything as plain Python numbers, ready for JSON."""
        return {
            "criterion": self.criterion, "shape": self.shape, "value": self.value,
            "proven": self.proven, "start": self.start, "finish": self.finish,
            "runtime": self.runtime, "cost": self.cost, "processor_time": self.processor_time,
            "slots": [dict(zip(PART.names, row)) for row in self.slots.tolist()],
        }

    def __repr__(self):
        return (
            f"Window({self.shape} {self.criterion}: start={self.start:g}, "
            f"finish={self.finish:g}, runtime={self.runtime:g}, cost={self.cost:g}, "
            f"nodes={list(self.nodes)})"
        )

    def __eq__(self, other):
        if not isinstance(other, Window):
            return NotImplemented
        return self._state() == other._state()

    def __hash__(self):
        return hash((self.start, self.cost, self.nodes))

    def _state(self):
        cdef Py_ssize_t i
        return (
            self.start, self.finish, self.runtime, self.cost, self.processor_time, self.value,
            self.bound, self.proven, self.criterion, self.shape,
            tuple([(self.parts[i].row, self.parts[i].node, self.parts[i].length,
                    self.parts[i].cost) for i in range(self.count)]),
        )

    def __reduce__(self):
        return _restore_window, self._state()


cdef int hold(Window window, Py_ssize_t n) except -1:
    window.parts = <Part*>malloc(n * sizeof(Part))
    if window.parts == NULL:
        raise MemoryError
    window.count = n
    return 0


def _restore_window(*state):
    cdef Window self = Window.__new__(Window)
    (self.start, self.finish, self.runtime, self.cost, self.processor_time, self.value,
     self.bound, self.proven, self.criterion, self.shape, parts) = state
    hold(self, len(parts))
    for i, (row, node, length, cost) in enumerate(parts):
        self.parts[i] = Part(row, node, length, cost)
    return self


cdef Window wrap(const Answer& answer, Py_ssize_t n, str criterion, str shape):
    cdef Window self = Window.__new__(Window)
    hold(self, n)
    memcpy(self.parts, answer.parts, n * sizeof(Part))
    self.start = answer.found.start
    self.runtime = answer.found.runtime
    self.finish = answer.found.start + answer.found.runtime
    self.cost = answer.found.cost
    self.processor_time = answer.found.processor_time
    self.value = self.bound = answer.found.value
    self.proven = True
    self.criterion = criterion
    self.shape = shape
    return self

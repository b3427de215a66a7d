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
    name : str or None
        Of the request.
    names : tuple of str
        The nodes' names in the machine, or their ids as text, ascending by id.
    start_time, finish_time : datetime or None
        The same as start and finish, in the zone of the slots' clock.
    duration : timedelta or None
        The same as runtime.
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

    @property
    def clock(self):
        """The clock of the slots that were searched, or None."""
        return None if self.terms is None else self.terms[0]

    @property
    def machine(self):
        """The machine of the slots that were searched, or None."""
        return None if self.terms is None else self.terms[1]

    @property
    def names(self):
        """The names of the nodes, or their ids as text, ascending by id."""
        if self.machine is None:
            return tuple(map(str, self.nodes))
        return tuple(self.machine.names[list(self.nodes)].tolist())

    @property
    def start_time(self):
        """The start as a date, or None without a clock."""
        return None if self.clock is None else self.clock.datetime(self.start)

    @property
    def finish_time(self):
        """The finish as a date, or None without a clock."""
        return None if self.clock is None else self.clock.datetime(self.finish)

    @property
    def duration(self):
        """The runtime as a timedelta, or None without a clock."""
        return None if self.clock is None else self.clock.timedelta(self.runtime)

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
        """Everything as plain Python numbers and text, ready for JSON; see `from_dict`.

        With a clock, ``start_time`` and ``finish_time`` are dates in ISO form; with a machine,
        each part has the ``name`` of its node.
        """
        cdef Py_ssize_t i
        whole = {
            "criterion": self.criterion, "shape": self.shape, "value": self.value,
            "proven": self.proven, "bound": self.bound, "start": self.start,
            "finish": self.finish, "runtime": self.runtime, "cost": self.cost,
            "processor_time": self.processor_time,
        }
        if self.name is not None:
            whole["name"] = self.name
        if self.clock is not None:
            whole["start_time"] = self.start_time.isoformat()
            whole["finish_time"] = self.finish_time.isoformat()
        parts = [dict(zip(PART.names, row)) for row in self.slots.tolist()]
        for i, (part, name) in enumerate(zip(parts, self.names)):
            part["length"] = self.parts[i].length  # end - start is rounded
            if self.machine is not None:
                part["name"] = name
        return whole | {"slots": parts}

    @staticmethod
    def from_dict(whole):
        """The window that `to_dict` told, without clock and machine.

        Parameters
        ----------
        whole : mapping
            As it was, or come back from JSON.

        Raises
        ------
        ValueError, TypeError
            For what is missing or of another type.
        """
        try:
            if not isinstance(whole["proven"], bool) or not len(whole["slots"]):
                raise ValueError("proven must be a bool, and there must be slots")
            parts = [(operator.index(part["row"]), operator.index(part["node"]),
                      number(part["length"], "length"), number(part["cost"], "cost"))
                     for part in whole["slots"]]
            numbers = [number(whole[name], name) for name in (
                "start", "finish", "runtime", "cost", "processor_time", "value", "bound")]
            words = [str(whole[name]) for name in ("criterion", "shape")]
        except KeyError as error:
            raise ValueError(f"not a window: it has no {error}") from None
        return _restore_window(*numbers, whole["proven"], *words, parts, whole.get("name"))

    def __repr__(self):
        if self.terms is not None:
            return (
                f"Window({self.shape} {self.criterion}: start={self.start_time or self.start}, "
                f"finish={self.finish_time or self.finish}, cost={self.cost:g}, "
                f"nodes=[{', '.join(self.names)}])"
            )
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
        return _restore_window, (*self._state(), self.name, self.terms)


cdef int hold(Window window, Py_ssize_t n) except -1:
    window.parts = <Part*>malloc(n * sizeof(Part))
    if window.parts == NULL:
        raise MemoryError
    window.count = n
    return 0


def _restore_window(*state):
    cdef Window self = Window.__new__(Window)
    (self.start, self.finish, self.runtime, self.cost, self.processor_time, self.value,
     self.bound, self.proven, self.criterion, self.shape, parts) = state[:11]
    self.name, self.terms = (*state[11:], None, None)[:2]
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

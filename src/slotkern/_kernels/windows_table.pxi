# WindowTable: the windows of many requests, with a column for each measure.

cdef object total(str name, str text):
    """Return the property for a column of `WindowTable.table`."""
    return property(lambda windows: windows.table[name], doc=text)


cdef class WindowTable:
    """WindowTable()
--

    Many windows in arrays: a sequence of `Window` or None.

    An integer index returns a `Window`, or None for a request without one; a slice or an array
    of integers or of bool returns a table of the same class. A `Window` object is created when
    it is accessed.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time, value : ndarray of float64, shape (k,)
        The totals of each window; NaN if there is none.
    proven : ndarray of bool, shape (k,)
        True if no window of the request has a better value.
    bound : ndarray of float64, shape (k,)
        No window of the request has a better value than this.
    table : structured array, shape (k,)
        start, finish, runtime, cost, processor_time and value as fields.
    parts : structured array
        All parts: row, node, start, end, cost, ascending by node in each window; those of
        window i are ``parts[first[i]:first[i + 1]]``.
    first : ndarray of int64, shape (k + 1,)
        Offsets of the windows in `parts`.
    criterion, shape : str
        Arguments of the search.
    names : list or None
        Name of each request or None; None if no request has a name.

    Notes
    -----
    Memory: 48 bytes for each window, 32 for each part, and the arrays, which are built on first
    access.
    """

    def __init__(self, *_args, **_options):
        raise TypeError(f"{type(self).__name__} cannot be created directly; see WindowTable.of")

    @classmethod
    def of(cls, windows, *, criterion="", shape="", names=None):
        """Return a table of given windows.

        Parameters
        ----------
        windows : iterable of (Window or None)
        criterion, shape : str
            Arguments of the search; by default those of the first window.
        names : sequence of (str or None), optional
            Names of the requests; by default those of the windows.

        Returns
        -------
        WindowTable

        Raises
        ------
        TypeError
            For an item that is not a Window or None; the message contains its index.
        ValueError
            If the numbers of names and windows differ.

        Examples
        --------
        >>> import slotkern as sk
        >>> slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=[3, 1])
        >>> window = sk.find_window(slots, sk.Request(1, 3), "cost")
        >>> sk.WindowTable.of([window, None]).cost
        array([ 3., nan])
        """
        cdef WindowTable table = table_from_windows(cls, windows, criterion, shape)
        if names is not None:
            table.names = list(names)
            if len(table.names) != len(table):
                raise ValueError(f"{len(table.names)} names for {len(table)} windows")
        return table

    def __len__(self):
        return self.windows.size()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.select_rows(range(len(self))[index])
        if isinstance(index, (np.ndarray, list)):
            return self.select_rows(resolve_rows(index, len(self), self.item_noun()))
        return self.window(resolve_index(index, len(self), self.item_noun()))

    cdef str item_noun(self):
        """Return the plural noun for the items, for messages."""
        return "windows"

    cdef Window window(self, size_t i):
        if not self.windows.any(i):
            return None
        cdef Answer answer
        answer.found = self.windows.found[i]
        answer.parts = self.windows.parts_of(i)
        cdef Window window = window_from_answer(
            answer, self.windows.count(i), self.criterion, self.shape)
        window.context = self.context
        if self.names is not None:
            window.name = self.names[i]
        if self.specials is not None:
            window.special = self.specials[i]
        window.bound, window.proven = self.windows.bound(i), self.windows.is_proven(i)
        if self.proven_over is not None:
            window.proven_over = self.proven_over
        return window

    cdef WindowTable select_rows(self, object rows):
        """Return a table of the same class with the windows of these rows."""
        cdef WindowTable some = type(self).__new__(type(self))
        cdef size_t i
        some.criterion, some.shape, some.context = self.criterion, self.shape, self.context
        some.proven_over = self.proven_over
        for i in rows:
            some.windows.add_from(self.windows, i)
        if self.names is not None:
            some.names = [self.names[i] for i in rows]
        if self.specials is not None:
            some.specials = [self.specials[i] for i in rows]
        return some

    def index(self, window, start=0, stop=None):
        """Return the index of the first equal window; raise ValueError if there is none."""
        return Sequence.index(self, window, start, stop)

    def count(self, window):
        """Return the number of items that equal this window (or None)."""
        return Sequence.count(self, window)

    # --- columns

    @property
    def table(self):
        """One row for each window: start, finish, runtime, cost, processor_time, value."""
        if self.row_table is None:
            table = np.empty(len(self), TABLE)
            self.windows.fill(<WindowRow*>cnp.PyArray_DATA(<cnp.ndarray>table))
            table.flags.writeable = False
            self.row_table = table
        return self.row_table

    @property
    def parts(self):
        """The parts of all windows: row, node, start, end, cost."""
        return self.flat_parts()

    cdef object flat_parts(self):
        if self.part_table is None:
            table = np.zeros(self.windows.parts.size(), PART)
            self.windows.fill(<PartRow*>cnp.PyArray_DATA(<cnp.ndarray>table))
            table.flags.writeable = False
            self.part_table = table
        return self.part_table

    @property
    def first(self):
        """Offset of each window's first part in `parts`, and the number of parts at the end."""
        cdef size_t i
        out = np.zeros(self.windows.size() + 1, np.int64)
        cdef int64_t[::1] view = out
        for i in range(self.windows.size()):
            view[i + 1] = self.windows.ends[i]
        return out

    start = total("start", "Start of each window.")
    finish = total("finish", "End of the last part of each window.")
    runtime = total("runtime", "Finish minus start of each window.")
    cost = total("cost", "Cost of all parts of each window.")
    processor_time = total("processor_time", "Sum of the lengths of the parts of each window.")
    value = total("value", "Value of the criterion of each window, in its own units and direction.")

    @property
    def bound(self):
        """A bound for each request: no window of it has a better value."""
        return np.array([self.windows.bound(i) for i in range(len(self))])

    @property
    def proven(self):
        """True for each window if no window of its request has a better value."""
        return np.array([self.windows.is_proven(i) for i in range(len(self))], bool)

    to_pandas = HasPlot.to_pandas
    to_arrow = HasPlot.to_arrow
    __arrow_c_stream__ = HasPlot.__arrow_c_stream__
    _repr_html_ = HasPlot._repr_html_
    plot = HasPlot.plot

    def _as_table(self):
        """Return a table for display: one row for each window with name, totals and nodes."""
        from slotkern.display.table import Table, join_nodes
        columns = self.leading_columns() | {name: self.table[name] for name in TABLE.names}
        columns["nodes"] = join_nodes(self.flat_parts()["node"], self.first, self.context)
        return Table(
            repr(self), columns, len(self), context=self.context, times=("start", "finish"),
            spans=("runtime",))

    cdef dict leading_columns(self):
        """Return the columns of the displayed table before the totals."""
        if self.names is None:
            return {}
        return {"name": np.array([name or "" for name in self.names], np.str_)}

    def __repr__(self):
        return visible(f"{type(self).__name__}({len(self)} {self.shape} {self.item_noun()} by "
                       f"{self.criterion})")

    def __eq__(self, other):
        """Return True if a table, list or tuple has equal windows in the same order."""
        if not isinstance(other, (WindowTable, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None

    def __reduce__(self):
        return type(self).of, (list(self),), {
            "criterion": self.criterion, "shape": self.shape, "names": self.names,
            "context": self.context,
        }

    def __setstate__(self, state):
        self.criterion, self.shape = state["criterion"], state["shape"]
        self.names, self.context = state["names"], state["context"]


Sequence.register(WindowTable)


cdef WindowTable table_from_windows(type kind, object windows, str criterion, str shape):
    """Return a table of class `kind` with these windows; see `WindowTable.of`."""
    cdef WindowTable self = kind.__new__(kind)
    cdef Window window
    cdef Found found
    cdef list names = [], specials = []
    for i, item in enumerate(windows):
        names.append(getattr(item, "name", None))
        specials.append(getattr(item, "special", None))
        if item is None:
            self.windows.add_none()
            continue
        if not isinstance(item, Window):
            raise TypeError(
                f"windows[{i}] must be a Window or None, got {type(item).__name__}")
        window = item
        criterion, shape = criterion or window.criterion, shape or window.shape
        self.context = self.context or window.context
        if window.proven_over != ALL_STARTS:
            self.proven_over = window.proven_over
        found.start, found.runtime, found.cost = window.start, window.runtime, window.cost
        found.processor_time, found.value = window.processor_time, window.value
        self.windows.add(found, window.parts, window.count)
        self.windows.set_bound(window.bound, window.proven)
    self.criterion, self.shape = criterion, shape
    self.names = names if any(names) else None
    self.specials = specials if any(specials) else None
    return self

"""Binding of windows: the results of all searches, single and in tables."""

import math
import operator
from collections.abc import Sequence

import numpy as np

cimport cython
cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from slotkern._kernels.base cimport number, resolve_index
from slotkern._kernels.headers cimport Answer, Found, Part, PartRow, ShapeKind, WindowRow
from slotkern._kernels.request cimport Request, parse_shape
from slotkern.foundation.checks import integer, one_of, visible

from slotkern.display import HasPlot

cnp.import_array()

TABLE = np.dtype([(name, "f8") for name in
                  ("start", "finish", "runtime", "cost", "processor_time", "value")])
PART = np.dtype(
    [("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8"), ("cost", "f8")], align=True
)
#: The sets of starts that a search can compare.
STARTS = ALL_STARTS, SLOT_STARTS = "all starts", "starts of slots"


@cython.freelist(64)
cdef class Window:
    """Window()
--

    n parts on n different nodes with one common start: the result of a search.

    Attributes
    ----------
    start, finish, runtime : float
        Common start of the parts, end of the last part, and the time between them.
    cost : float
        Cost of all parts together: the exact sum, rounded once.
    processor_time : float
        Sum of the parts' lengths.
    value : float
        Value of the criterion, in its own units and direction.
    proven : bool
        True if no window at the starts of `proven_over` has a better value.
    proven_over : {"all starts", "starts of slots"}
        The starts to which `proven` and `bound` refer. Only a criterion that depends on the
        start, searched with ``placement="slot-start"``, compares starts of slots only; a
        window that starts between them may be better.
    bound : float
        No window at these starts has a better value than this one; equals `value` if
        `proven`.
    criterion, shape : str
        Arguments of the search.
    effort : dict or None
        Counted effort. Searches by value: ``groups``, ``steps``, ``subsets`` (knapsacks)
        and ``work``. Other searches under limits on sums: ``work``. Otherwise None.
    slots : structured array
        One row for each part, ascending by node: row (in the searched array), node, start,
        end, cost. Built on first access.
    nodes : tuple of int
        The node ids, ascending.
    name : str or None
        Name of the request.
    names : tuple of str
        Names of the nodes in the machine, or their ids as text, ascending by id.
    start_time, finish_time : datetime or None
        Start and finish as dates in the zone of the slots' clock; None without a clock.
    duration : timedelta or None
        Runtime; None without a clock.
    """

    def __init__(self, *_args, **_options):
        raise TypeError("a Window cannot be created directly; find_window returns one")

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
        return None if self.context is None else self.context.clock

    @property
    def machine(self):
        """The machine of the slots that were searched, or None."""
        return None if self.context is None else self.context.machine

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

    to_pandas = HasPlot.to_pandas
    to_arrow = HasPlot.to_arrow
    __arrow_c_stream__ = HasPlot.__arrow_c_stream__
    _repr_html_ = HasPlot._repr_html_
    plot = HasPlot.plot

    def _as_table(self):
        """Return the parts as a table for display."""
        from slotkern.display.table import Table
        facts = {
            "start": self.start_time or self.start, "finish": self.finish_time or self.finish,
            "runtime": self.duration or self.runtime, "cost": self.cost,
        }
        if self.criterion not in (*facts, "first"):
            facts["value"] = self.value
        if not self.proven:
            facts["bound"] = self.bound
        if self.proven_over != ALL_STARTS:
            facts["best of" if self.proven else "bound of"] = self.proven_over
        called = "" if self.name is None else f" of {self.name}"
        return Table.from_array(
            f"Window{called}: {self.shape} {self.criterion}", self.slots, context=self.context,
            times=("start", "end"), facts=facts)

    def to_dict(self):
        """Return all attributes as Python numbers and text, ready for JSON; see `from_dict`.

        With a clock, ``start_time`` and ``finish_time`` are dates in ISO form; with a machine,
        each part has the ``name`` of its node.
        """
        cdef Py_ssize_t i
        data = {
            "criterion": self.criterion, "shape": self.shape, "value": self.value,
            "proven": self.proven, "proven_over": self.proven_over, "bound": self.bound,
            "start": self.start,
            "finish": self.finish, "runtime": self.runtime, "cost": self.cost,
            "processor_time": self.processor_time,
        }
        if self.name is not None:
            data["name"] = self.name
        if self.clock is not None:
            data["start_time"] = self.start_time.isoformat()
            data["finish_time"] = self.finish_time.isoformat()
        parts = [dict(zip(PART.names, row)) for row in self.slots.tolist()]
        for i, (part, name) in enumerate(zip(parts, self.names)):
            part["length"] = self.parts[i].length  # end - start is rounded
            if self.machine is not None:
                part["name"] = name
        return data | {"slots": parts}

    @staticmethod
    def from_dict(data):
        """Return the window from the result of `to_dict`, without clock and machine.

        Parameters
        ----------
        data : mapping
            The result of `to_dict`, also after a round trip through JSON.

        Raises
        ------
        ValueError, TypeError
            For a missing key or a value of another type; the message contains the key.
        """
        try:
            if not isinstance(data["proven"], bool) or not len(data["slots"]):
                raise ValueError("proven must be a bool, and there must be slots")
            parts = [(integer("row", part["row"], least=0, most=2**63 - 1),
                      integer("node", part["node"], least=0, most=2**31 - 1),
                      number(part["length"], "length"), number(part["cost"], "cost"))
                     for part in data["slots"]]
            numbers = [number(data[name], name) for name in (
                "start", "finish", "runtime", "cost", "processor_time", "value", "bound")]
            words = [str(data[name]) for name in ("criterion", "shape")]
        except KeyError as error:
            raise ValueError(f"not a window: it has no {error}") from None
        over = one_of("proven_over", data.get("proven_over", ALL_STARTS), STARTS)
        return _restore_window(
            *numbers, data["proven"], *words, parts, data.get("name"), None, over)

    def __repr__(self):
        if self.machine is not None:
            from slotkern.foundation.hostlists import fold
            return visible(
                f"Window({self.shape} {self.criterion}: start={self.start_time or self.start}, "
                f"finish={self.finish_time or self.finish}, cost={self.cost:g}, "
                f"nodes={fold(self.names)})"
            )
        if self.clock is not None:
            return visible(
                f"Window({self.shape} {self.criterion}: start={self.start_time or self.start}, "
                f"finish={self.finish_time or self.finish}, cost={self.cost:g}, "
                f"nodes={list(self.nodes)})"
            )
        return visible(
            f"Window({self.shape} {self.criterion}: start={format_time(self.start)}, "
            f"finish={format_time(self.finish)}, runtime={self.runtime:g}, cost={self.cost:g}, "
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
        return _restore_window, (*self._state(), self.name, self.context, self.proven_over)


cdef str format_time(double t):
    """Format a time with six digits; from 1e6 on with twelve, to distinguish seconds."""
    return f"{t:g}" if abs(t) < 1e6 else f"{t:.12g}"


cdef int allocate_parts(Window window, Py_ssize_t n) except -1:
    window.parts = <Part*>malloc(n * sizeof(Part))
    if window.parts == NULL:
        raise MemoryError
    window.count = n
    return 0


def _restore_window(*state):
    cdef Window self = Window.__new__(Window)
    (self.start, self.finish, self.runtime, self.cost, self.processor_time, self.value,
     self.bound, self.proven, self.criterion, self.shape, parts) = state[:11]
    self.name, self.context, self.proven_over = (*state[11:], None, None, ALL_STARTS)[:3] \
        if len(state) < 14 else state[11:14]
    allocate_parts(self, len(parts))
    for i, (row, node, length, cost) in enumerate(parts):
        self.parts[i] = Part(row, node, length, cost)
    return self


# answer.parts points to scratch memory of the thread. It is copied before any Python object is
# created, because garbage collection may run code that searches.
cdef Window window_from_answer(const Answer& answer, Py_ssize_t n, str criterion, str shape):
    cdef Part* parts = <Part*>malloc(n * sizeof(Part))
    if parts == NULL:
        raise MemoryError
    memcpy(parts, answer.parts, n * sizeof(Part))
    cdef Window self
    try:
        self = Window.__new__(Window)
    except MemoryError:
        free(parts)
        raise
    self.parts, self.count = parts, n
    self.start = answer.found.start
    self.runtime = answer.found.runtime
    self.finish = answer.found.start + answer.found.runtime
    self.cost = answer.found.cost
    self.processor_time = answer.found.processor_time
    self.value = answer.found.value
    self.proven = answer.proven
    self.bound = self.value if self.proven else answer.bound
    self.proven_over = ALL_STARTS
    self.criterion = criterion
    self.shape = shape
    return self


def window_from_rows(slots, rows, double start, Request request, str criterion, str shape,
                     value=None, double longest=0):
    """Return the window of the slots `rows` at a start, for algorithms that select rows themselves.

    Uses the same expressions as the kernels, so equal windows have equal totals. A square window
    is as long as its slowest part, or `longest` if that is longer. `proven` is False, `bound` -inf.
    """
    cdef ShapeKind form = parse_shape(shape)
    table = slots[rows]
    lengths, costs = request.length(table["performance"]), table["price"]
    if form == ShapeKind.ragged:
        costs = (costs * lengths if request.query.has_overhead()
                 else request.query.volume * (costs / table["performance"]))
    order = np.lexsort((table["node"], costs))
    rows, table = np.asarray(rows)[order], table[order]
    lengths, costs = lengths[order], costs[order]
    span = max(lengths.max(), longest)
    if form == ShapeKind.square:
        lengths = np.full(len(rows), span)
    cdef double total = math.fsum(costs.tolist()), time = 0
    for length in lengths.tolist():
        time += length
    if form == ShapeKind.square:
        total, costs, time = span * total, span * costs, len(rows) * span
    cdef Window self = Window.__new__(Window)
    self.start, self.runtime, self.finish = start, span, start + span
    self.cost, self.processor_time = total, time
    values = {"first": start, "start": start, "local_price": start, "finish": self.finish,
              "runtime": self.runtime, "cost": self.cost, "processor_time": self.processor_time}
    self.value = values[criterion] if value is None else value
    self.proven, self.bound, self.proven_over = False, -INFINITY, ALL_STARTS
    self.criterion, self.shape = criterion, shape
    allocate_parts(self, len(rows))
    cdef Py_ssize_t i
    for i, k in enumerate(np.argsort(table["node"]).tolist()):
        self.parts[i] = Part(rows[k], table["node"][k], lengths[k], costs[k])
    return self


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
    cdef list names = []
    for i, item in enumerate(windows):
        names.append(getattr(item, "name", None))
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
    return self


cdef object resolve_rows(object index, Py_ssize_t size, str item_noun):
    """Return the rows selected by an array of indices or of bool."""
    rows = np.asarray(index)
    if rows.dtype == bool:
        if rows.shape != (size,):
            raise IndexError(f"a mask must have shape ({size},), got {rows.shape}")
        return np.flatnonzero(rows).tolist()
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise IndexError(f"index must be integers or a mask, got an array of {rows.dtype}")
    return [resolve_index(i, size, item_noun) for i in rows.tolist()]

"""The door of windows: one, and one container for many, whatever found them."""

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

from slotkern._base cimport number, place_in
from slotkern._kernels cimport Answer, Found, Part, PartRow, ShapeKind, WindowRow
from slotkern._request cimport Request, shape_of
from slotkern.checks import integer, one_of, visible

from slotkern.display import HasPlot

cnp.import_array()

TABLE = np.dtype([(name, "f8") for name in
                  ("start", "finish", "runtime", "cost", "processor_time", "value")])
PART = np.dtype(
    [("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8"), ("cost", "f8")], align=True
)
#: The starts that a search compares.
STARTS = ALL_STARTS, SLOT_STARTS = "all starts", "starts of slots"


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
        Money for all parts together: the exact sum, rounded once.
    processor_time : float
        Sum of the parts' lengths.
    value : float
        The criterion in its own units and direction.
    proven : bool
        Whether the value is known to be the best of the windows at the starts that
        `proven_over` names.
    proven_over : {"all starts", "starts of slots"}
        The starts that `proven` and `bound` speak of. Only a criterion that depends on the
        start, searched with ``placement="slot-start"``, compares the starts of slots alone:
        a window that starts between them may be better.
    bound : float
        No window at these starts has a better value than this.
    criterion, shape : str
        What was asked for.
    effort : dict or None
        Of a search by value: the numbers of groups, of steps and of knapsacks, and their units of
        work. Of another search under limits that the best window without them does not keep: the
        units of work.
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

    to_pandas = HasPlot.to_pandas
    to_arrow = HasPlot.to_arrow
    __arrow_c_stream__ = HasPlot.__arrow_c_stream__
    _repr_html_ = HasPlot._repr_html_
    plot = HasPlot.plot

    def _shown(self):
        """The parts as a table."""
        from slotkern.display_table import Table
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
            f"Window{called}: {self.shape} {self.criterion}", self.slots, terms=self.terms,
            times=("start", "end"), facts=facts)

    def to_dict(self):
        """Everything as plain Python numbers and text, ready for JSON; see `from_dict`.

        With a clock, ``start_time`` and ``finish_time`` are dates in ISO form; with a machine,
        each part has the ``name`` of its node.
        """
        cdef Py_ssize_t i
        whole = {
            "criterion": self.criterion, "shape": self.shape, "value": self.value,
            "proven": self.proven, "proven_over": self.proven_over, "bound": self.bound,
            "start": self.start,
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
            parts = [(integer("row", part["row"], least=0, most=2**63 - 1),
                      integer("node", part["node"], least=0, most=2**31 - 1),
                      number(part["length"], "length"), number(part["cost"], "cost"))
                     for part in whole["slots"]]
            numbers = [number(whole[name], name) for name in (
                "start", "finish", "runtime", "cost", "processor_time", "value", "bound")]
            words = [str(whole[name]) for name in ("criterion", "shape")]
        except KeyError as error:
            raise ValueError(f"not a window: it has no {error}") from None
        over = one_of("proven_over", whole.get("proven_over", ALL_STARTS), STARTS)
        return _restore_window(
            *numbers, whole["proven"], *words, parts, whole.get("name"), None, over)

    def __repr__(self):
        if self.machine is not None:
            from slotkern.hostlists import fold
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
            f"Window({self.shape} {self.criterion}: start={time_text(self.start)}, "
            f"finish={time_text(self.finish)}, runtime={self.runtime:g}, cost={self.cost:g}, "
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
        return _restore_window, (*self._state(), self.name, self.terms, self.proven_over)


cdef str time_text(double t):
    """In six digits; in all that matter where these would not tell one second from the next."""
    return f"{t:g}" if abs(t) < 1e6 else f"{t:.12g}"


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
    self.name, self.terms, self.proven_over = (*state[11:], None, None, ALL_STARTS)[:3] \
        if len(state) < 14 else state[11:14]
    hold(self, len(parts))
    for i, (row, node, length, cost) in enumerate(parts):
        self.parts[i] = Part(row, node, length, cost)
    return self


# The parts are the thread's scratch, copied before anything of Python is made: what that collects
# may search too.
cdef Window wrap(const Answer& answer, Py_ssize_t n, str criterion, str shape):
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


def window_of(slots, rows, double start, Request asked, str criterion, str shape, value=None,
              double longest=0):
    """The window of these rows at this start, in the one expression for each quantity.

    A square window takes as long as its slowest part, or `longest` if that is longer. For algorithms that choose rows themselves; nothing is `proven` of it, and its `bound` is -inf.
    """
    cdef ShapeKind form = shape_of(shape)
    table = slots[rows]
    lengths, costs = asked.length(table["performance"]), table["price"]
    if form == ShapeKind.ragged:
        costs = (costs * lengths if asked.query.has_overhead()
                 else asked.query.volume * (costs / table["performance"]))
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
    hold(self, len(rows))
    cdef Py_ssize_t i
    for i, k in enumerate(np.argsort(table["node"]).tolist()):
        self.parts[i] = Part(rows[k], table["node"][k], lengths[k], costs[k])
    return self


cdef class WindowTable:
    """WindowTable()
--

    Many windows in arrays: a sequence of `Window`, or None where there is none.

    An integer index gives a `Window` or None; a slice, an array of integers or of bool
    gives a container of the same kind. Nothing is built for a window before it is asked
    for.

    Attributes
    ----------
    start, finish, runtime, cost, processor_time, value : ndarray of float64, shape (k,)
        Of each window; NaN where there is none.
    proven : ndarray of bool, shape (k,)
        Whether the value is known to be the best there is.
    bound : ndarray of float64, shape (k,)
        No window has a better value.
    table : structured array, shape (k,)
        start, finish, runtime, cost, processor_time and value as fields.
    parts : structured array
        All parts: row, node, start, end, cost, ascending by node in each window; those of
        window i are ``parts[first[i]:first[i + 1]]``.
    first : ndarray of int64, shape (k + 1,)
    criterion, shape : str
        What was asked for.
    names : list or None
        What each request is called, if any is.

    Notes
    -----
    48 bytes a window and 32 a part, and arrays made at first access.
    """

    def __init__(self, *_args, **_options):
        raise TypeError(f"{type(self).__name__} is made by searches; see WindowTable.of")

    @classmethod
    def of(cls, windows, *, criterion="", shape="", names=None):
        """The container of some windows.

        Parameters
        ----------
        windows : iterable of (Window or None)
        criterion, shape : str
            What was asked for; of the first window where they are not given.
        names : sequence of (str or None), optional
            What each request is called; those of the windows where not given.

        Returns
        -------
        WindowTable

        Raises
        ------
        TypeError
            Naming the place of what is no window.

        Examples
        --------
        >>> import slotkern as sk
        >>> slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=[3, 1])
        >>> window = sk.find_window(slots, sk.Request(1, 3), "cost")
        >>> sk.WindowTable.of([window, None]).cost
        array([ 3., nan])
        """
        cdef WindowTable table = gathered(cls, windows, criterion, shape)
        if names is not None:
            table.names = list(names)
            if len(table.names) != len(table):
                raise ValueError(f"{len(table.names)} names for {len(table)} windows")
        return table

    def __len__(self):
        return self.windows.size()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.chosen(range(len(self))[index])
        if isinstance(index, (np.ndarray, list)):
            return self.chosen(rows_of(index, len(self), self.things()))
        return self.window(place_in(index, len(self), self.things()))

    cdef str things(self):
        """What the sequence is one of, for messages."""
        return "windows"

    cdef Window window(self, size_t i):
        if not self.windows.any(i):
            return None
        cdef Answer answer
        answer.found = self.windows.found[i]
        answer.parts = self.windows.parts_of(i)
        cdef Window window = wrap(answer, self.windows.count(i), self.criterion, self.shape)
        window.terms = self.terms
        if self.names is not None:
            window.name = self.names[i]
        window.bound, window.proven = self.windows.bound(i), self.windows.is_proven(i)
        if self.proven_over is not None:
            window.proven_over = self.proven_over
        return window

    cdef WindowTable chosen(self, object rows):
        """A container of the same kind with the windows of these rows."""
        cdef WindowTable some = type(self).__new__(type(self))
        cdef size_t i
        some.criterion, some.shape, some.terms = self.criterion, self.shape, self.terms
        some.proven_over = self.proven_over
        for i in rows:
            some.windows.add_from(self.windows, i)
        if self.names is not None:
            some.names = [self.names[i] for i in rows]
        return some

    def index(self, window, start=0, stop=None):
        """The first place of this window; ValueError if there is none."""
        return Sequence.index(self, window, start, stop)

    def count(self, window):
        """How many are equal to this window (or None)."""
        return Sequence.count(self, window)

    # --- columns

    @property
    def table(self):
        """One row a window: start, finish, runtime, cost, processor_time, value."""
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
        """Where each window's parts begin, and their number at the end."""
        cdef size_t i
        out = np.zeros(self.windows.size() + 1, np.int64)
        cdef int64_t[::1] view = out
        for i in range(self.windows.size()):
            view[i + 1] = self.windows.ends[i]
        return out

    @property
    def start(self):
        """Start of each window."""
        return self.table["start"]

    @property
    def finish(self):
        """End of the last part of each window."""
        return self.table["finish"]

    @property
    def runtime(self):
        """Finish less start of each window."""
        return self.table["runtime"]

    @property
    def cost(self):
        """Money for all parts of each window."""
        return self.table["cost"]

    @property
    def processor_time(self):
        """Sum of the lengths of the parts of each window."""
        return self.table["processor_time"]

    @property
    def value(self):
        """The criterion of each window, in its own units and direction."""
        return self.table["value"]

    @property
    def bound(self):
        """No window has a better value than this."""
        return np.array([self.windows.bound(i) for i in range(len(self))])

    @property
    def proven(self):
        """Whether each value is known to be the best there is."""
        return np.array([self.windows.is_proven(i) for i in range(len(self))], bool)

    to_pandas = HasPlot.to_pandas
    to_arrow = HasPlot.to_arrow
    __arrow_c_stream__ = HasPlot.__arrow_c_stream__
    _repr_html_ = HasPlot._repr_html_
    plot = HasPlot.plot

    def _shown(self):
        """One row a window: its name if it has one, its figures, its nodes."""
        from slotkern.display_table import Table, join_nodes
        columns = self.figures() | {name: self.table[name] for name in TABLE.names}
        columns["nodes"] = join_nodes(self.flat_parts()["node"], self.first, self.terms)
        return Table(
            repr(self), columns, len(self), terms=self.terms, times=("start", "finish"),
            spans=("runtime",))

    cdef dict figures(self):
        """What stands before the figures of each window."""
        if self.names is None:
            return {}
        return {"name": np.array([name or "" for name in self.names], np.str_)}

    def __repr__(self):
        return visible(f"{type(self).__name__}({len(self)} {self.shape} {self.things()} by "
                       f"{self.criterion})")

    def __eq__(self, other):
        """Equal windows in equal order, also of a list."""
        if not isinstance(other, (WindowTable, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None

    def __reduce__(self):
        return type(self).of, (list(self),), {
            "criterion": self.criterion, "shape": self.shape, "names": self.names,
            "terms": self.terms,
        }

    def __setstate__(self, state):
        self.criterion, self.shape = state["criterion"], state["shape"]
        self.names, self.terms = state["names"], state["terms"]


Sequence.register(WindowTable)


cdef WindowTable gathered(type kind, object windows, str criterion, str shape):
    """A container of this kind with some windows."""
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
        self.terms = self.terms or window.terms
        if window.proven_over != ALL_STARTS:
            self.proven_over = window.proven_over
        found.start, found.runtime, found.cost = window.start, window.runtime, window.cost
        found.processor_time, found.value = window.processor_time, window.value
        self.windows.add(found, window.parts, window.count)
        self.windows.set_bound(window.bound, window.proven)
    self.criterion, self.shape = criterion, shape
    self.names = names if any(names) else None
    return self


cdef object rows_of(object index, Py_ssize_t size, str things):
    """The rows that an array of places or of bool means."""
    rows = np.asarray(index)
    if rows.dtype == bool:
        if rows.shape != (size,):
            raise IndexError(f"a mask must have shape ({size},), got {rows.shape}")
        return np.flatnonzero(rows).tolist()
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise IndexError(f"index must be integers or a mask, got an array of {rows.dtype}")
    return [place_in(i, size, things) for i in rows.tolist()]

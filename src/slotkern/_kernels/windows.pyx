"""Binding of windows: the results of all searches, single and in tables."""

import math
import operator
from collections.abc import Sequence

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport INFINITY, fabs, isfinite, signbit
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy
from libcpp.string cimport string, to_string
from libcpp.vector cimport vector

from slotkern._kernels.base cimport number, resolve_index
from slotkern._kernels.headers cimport Answer, Found, Part, PartRow, ShapeKind, WindowRow
from slotkern._kernels.request cimport Request, parse_shape
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import integer, one_of, visible
from slotkern.foundation.special_fields import SPECIAL_FIELDS, special_values

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
    uses : mapping of str to int, or None
        What the window uses of the capacities of the pool from its start to its finish.
    account : str or None
        The account of the request.
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
    def uses(self):
        """The amounts of the pool's capacities in use from start to finish, or None."""
        return None if self.special is None else self.special.get("uses")

    @property
    def account(self):
        """The account of the request, or None."""
        return None if self.special is None else self.special.get("account")

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
        data.update(self.special or {})
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
        if "share" in data:
            return adapter("share_window")(data)
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
        special = {name: data[name] for name in SPECIAL_FIELDS if name in data}
        return _restore_window(*numbers, data["proven"], *words, parts, data.get("name"), None,
                               over, special_values(special))

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

    def __hash__(self):  # equal windows have equal starts, costs and nodes
        cdef double[2] numbers = [self.start + 0.0, self.cost + 0.0]  # -0.0 equals 0.0
        cdef uint64_t[2] bits
        cdef size_t known
        cdef Py_ssize_t i
        memcpy(bits, numbers, 16)
        known = mixed_bits(bits[0]) ^ mixed_bits(bits[1]) * 1000003
        for i in range(self.count):
            known = known * 1000003 ^ <size_t>self.parts[i].node
        return <Py_hash_t>known

    def _state(self):
        cdef Py_ssize_t i
        return (
            self.start, self.finish, self.runtime, self.cost, self.processor_time, self.value,
            self.bound, self.proven, self.criterion, self.shape,
            tuple([(self.parts[i].row, self.parts[i].node, self.parts[i].length,
                    self.parts[i].cost) for i in range(self.count)]),
        )

    def __reduce__(self):
        return _restore_window, (
            *self._state(), self.name, self.context, self.proven_over, self.special)


cdef inline size_t mixed_bits(uint64_t bits) noexcept:
    """Return a number whose low bits depend on all bits, as those of a hash should."""
    bits = (bits ^ bits >> 32) * 0x9E3779B97F4A7C15ULL
    return <size_t>(bits ^ bits >> 29)


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
    return window_from_state(Window, state)


def window_from_state(type kind, state):
    """Return a window of class `kind`, a subclass of Window, from a state of `__reduce__`."""
    cdef Window self = kind.__new__(kind)
    (self.start, self.finish, self.runtime, self.cost, self.processor_time, self.value,
     self.bound, self.proven, self.criterion, self.shape, parts) = state[:11]
    more = *state[11:], *(None, None, ALL_STARTS, None)[len(state) - 11:]
    self.name, self.context, self.proven_over, self.special = more
    allocate_parts(self, len(parts))
    for i, (row, node, length, cost) in enumerate(parts):
        self.parts[i] = Part(row, node, length, cost)
    return self


def body_from_window(Window window not None):
    """Return the bytes of `slotkern.ledger.codec.pack_window`, on little-endian hosts.

    O(parts). Special fields are not in them.
    """
    cdef bytes word = window.criterion.encode()
    cdef Py_ssize_t n = window.count, length = len(word), at = 8 + length + 56, i
    if length > 0xFFFF:
        raise ValueError(f"a criterion of {length} bytes")
    cdef bytes body = PyBytes_FromStringAndSize(NULL, at + 28 * n)
    cdef unsigned char* data = <unsigned char*>PyBytes_AS_STRING(body)
    cdef uint32_t count = <uint32_t>n
    cdef int64_t row
    cdef int32_t node
    cdef double[7] totals = [window.start, window.finish, window.runtime, window.cost,
                             window.processor_time, window.value, window.bound]
    data[0] = 1
    data[1] = (window.proven | (window.shape == "ragged") << 1
               | (window.proven_over != ALL_STARTS) << 2)
    data[2], data[3] = length & 0xFF, length >> 8
    memcpy(data + 4, &count, 4)
    memcpy(data + 8, <const char*>word, length)
    memcpy(data + 8 + length, totals, 56)
    for i in range(n):
        row, node = window.parts[i].row, window.parts[i].node
        memcpy(data + at + 8 * i, &row, 8)
        memcpy(data + at + 8 * n + 4 * i, &node, 4)
        memcpy(data + at + 12 * n + 8 * i, &window.parts[i].length, 8)
        memcpy(data + at + 20 * n + 8 * i, &window.parts[i].cost, 8)
    return body


def windows_from_bodies(list bodies, list names, object context):
    """Return the windows of `slotkern.ledger.codec.pack_window`, on little-endian hosts.

    O(parts). ValueError for bytes that are not a body, as by `unpack_window`.
    """
    cdef list windows = []
    cdef bytes body
    cdef const unsigned char* data
    cdef const unsigned char* known_word = NULL
    cdef Py_ssize_t size, length, known_length = -1, at, i, k
    cdef uint32_t n
    cdef int64_t row
    cdef int32_t node
    cdef double[7] totals
    cdef double[2] values
    cdef Window window
    cdef str word = ""
    for k in range(len(bodies)):
        body = bodies[k]
        data, size = body, len(body)
        if size < 8:
            raise ValueError(f"a window of another length: {size} bytes")
        if data[0] != 1:
            raise ValueError(f"a window of format {data[0]}")
        length = data[2] | data[3] << 8
        memcpy(&n, data + 4, 4)
        at = 8 + length + 56
        if size != at + 28 * <Py_ssize_t>n:
            raise ValueError(f"a window of another length: {size} bytes")
        if length != known_length or memcmp(data + 8, known_word, length) != 0:
            word = body[8 : 8 + length].decode()
            known_word, known_length = data + 8, length
        window = Window.__new__(Window)
        memcpy(totals, data + 8 + length, 56)
        window.start, window.finish, window.runtime = totals[0], totals[1], totals[2]
        window.cost, window.processor_time = totals[3], totals[4]
        window.value, window.bound = totals[5], totals[6]
        window.proven = data[1] & 1
        window.shape = "ragged" if data[1] & 2 else "square"
        window.proven_over = SLOT_STARTS if data[1] & 4 else ALL_STARTS
        window.criterion, window.name, window.context = word, names[k], context
        allocate_parts(window, n)
        for i in range(n):
            memcpy(&row, data + at + 8 * i, 8)
            memcpy(&node, data + at + 8 * n + 4 * i, 4)
            memcpy(&values[0], data + at + 12 * n + 8 * i, 8)
            memcpy(&values[1], data + at + 20 * n + 8 * i, 8)
            if row < 0:
                raise ValueError(f"a window with the row {row}")
            window.parts[i] = Part(row, node, values[0], values[1])
        windows.append(window)
    return windows


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
                     value=None, double longest=0, bint proven=False):
    """Return the window of the slots `rows` at a start, for algorithms that select rows themselves.

    Uses the same expressions as the kernels, so equal windows have equal totals. A square window
    is as long as its slowest part, or `longest` if that is longer. `bound` is the value if `proven`,
    else -inf.
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
    self.proven, self.bound = proven, self.value if proven else -INFINITY
    self.proven_over = ALL_STARTS
    self.criterion, self.shape = criterion, shape
    allocate_parts(self, len(rows))
    cdef Py_ssize_t i
    for i, k in enumerate(np.argsort(table["node"]).tolist()):
        self.parts[i] = Part(rows[k], table["node"][k], lengths[k], costs[k])
    return self


include "windows_table.pxi"
include "windows_log.pxi"
include "windows_text.pxi"


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

"""The door of many windows: one container, whatever found them."""

import operator
from collections.abc import Sequence

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t

from slotkern._core cimport Window, place_in, wrap
from slotkern._kernels cimport Answer, Found, Part
from slotkern._windows cimport PartRow, WindowRow

cnp.import_array()

TABLE = np.dtype([(name, "f8") for name in
                  ("start", "finish", "runtime", "cost", "processor_time", "value")])
PART = np.dtype(
    [("row", "i8"), ("node", "i4"), ("start", "f8"), ("end", "f8"), ("cost", "f8")], align=True
)


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

    Notes
    -----
    48 bytes a window and 32 a part, and arrays made at first access.
    """

    def __init__(self, *_args, **_options):
        raise TypeError(f"{type(self).__name__} is made by searches; see WindowTable.of")

    @classmethod
    def of(cls, windows, *, criterion="", shape=""):
        """The container of some windows.

        Parameters
        ----------
        windows : iterable of (Window or None)
        criterion, shape : str
            What was asked for; of the first window where they are not given.

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
        return gathered(cls, windows, criterion, shape)

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
        window.bound, window.proven = self.windows.bound(i), self.windows.is_proven(i)
        return window

    cdef WindowTable chosen(self, object rows):
        """A container of the same kind with the windows of these rows."""
        cdef WindowTable some = type(self).__new__(type(self))
        cdef size_t i
        some.criterion, some.shape, some.terms = self.criterion, self.shape, self.terms
        for i in rows:
            some.windows.add_from(self.windows, i)
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
        out = np.empty(self.windows.firsts.size(), np.int64)
        cdef int64_t[::1] view = out
        for i in range(self.windows.firsts.size()):
            view[i] = self.windows.firsts[i]
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

    def to_pandas(self):
        """One row a window, as a pandas DataFrame."""
        from slotkern.files.slots import to_pandas
        return to_pandas(self.figures())

    def to_arrow(self):
        """One row a window, as a pyarrow Table."""
        from slotkern.files.slots import to_arrow
        return to_arrow(self.figures())

    cdef object figures(self):
        """What one row a window shows in tables."""
        return self.table

    def __repr__(self):
        return (f"{type(self).__name__}({len(self)} {self.shape} {self.things()} by "
                f"{self.criterion})")

    def __eq__(self, other):
        """Equal windows in equal order, also of a list."""
        if not isinstance(other, (WindowTable, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None

    def __reduce__(self):
        return type(self).of, (list(self),), {"criterion": self.criterion, "shape": self.shape}

    def __setstate__(self, state):
        self.criterion, self.shape = state["criterion"], state["shape"]


Sequence.register(WindowTable)


cdef WindowTable gathered(type kind, object windows, str criterion, str shape):
    """A container of this kind with some windows."""
    cdef WindowTable self = kind.__new__(kind)
    cdef Window window
    cdef Found found
    for i, item in enumerate(windows):
        if item is None:
            self.windows.add_none()
            continue
        if not isinstance(item, Window):
            raise TypeError(
                f"windows[{i}] must be a Window or None, got {type(item).__name__}")
        window = item
        criterion, shape = criterion or window.criterion, shape or window.shape
        self.terms = self.terms or window.terms
        found.start, found.runtime, found.cost = window.start, window.runtime, window.cost
        found.processor_time, found.value = window.processor_time, window.value
        self.windows.add(found, window.parts, window.count)
        self.windows.set_bound(window.bound, window.proven)
    self.criterion, self.shape = criterion, shape
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

"""Slots in and out: files by their suffix, Arrow tables, pandas frames.

What is the same for all of them is done here, once: which columns there must be,
sorting, checking, naming the line of an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern.checks import hint_keywords
from slotkern.extras import extra
from slotkern.slots import SlotError, make_slots, validate_slots

from . import FORMATS, Format
from .arrow import arrow_columns, pyarrow, to_table
from .atomic import AnyPath, as_path, open_atomic, refuse_folder
from .columns import (
    MAX_BYTES,
    Columns,
    InputError,
    MemoryLimit,
    column_names,
    of_text,
    plain_columns,
    row_place,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "from_arrow",
    "from_pandas",
    "read_slots",
    "to_arrow",
    "to_pandas",
    "write_slots",
]


@hint_keywords
def read_slots(path: AnyPath, *, max_bytes: int = MAX_BYTES) -> NDArray[Any]:
    """Return the slots of a file.

    Parameters
    ----------
    path : path
        A file ``.csv``, ``.parquet``, ``.json``, ``.jsonl`` or ``.npz`` with the
        columns node, start, end, performance, price, in any order, and any others.
    max_bytes : int
        How much memory the slots may take, 256 MiB by default; never less than 16 times
        the size of the file. What is packed, and text as wide as its longest cell, can
        take much more than the file.

    Returns
    -------
    structured array, sorted by (start, node)
        The five fields of `SLOT`, then the other columns in the file's order.

    Raises
    ------
    ValueError
        For a suffix that is not one of these, and for anything wrong in the file:
        the message names the file, the line of a text file (or the row, from 0, of a
        binary one), the field and the value. Also for what would take more than
        `max_bytes`.
    OSError
        When the file cannot be opened (``FileNotFoundError``, ...).

    Notes
    -----
    - **csv**: UTF-8, a header line, comma-separated, quotes where needed. Blank lines,
      CRLF, a byte-order mark and blanks around numbers are fine. An endless slot ends
      at ``inf``. CSV has no types: a further column of which every cell is an integer,
      a number, or true/false is read as int64 (uint64), float64 or bool, any other as
      text ("007" is text); a cell may be empty only in a column of text.
    - **json**: an array of objects with equal keys, one per slot; **jsonl**: one
      object a line. "Infinity", "-Infinity" and "NaN" as strings are those numbers.
    - **npz**: one structured array named ``slots``, or one array per column. Never
      unpickles.
    - **parquet**, **npz** keep every bit and dtype of every column.

    O(n log n) time; the memory of a few copies of the file.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.read_slots("slots.csv")  # doctest: +SKIP
    """
    path = as_path(path)
    form = format_of(path)
    data = path.read_bytes()
    try:
        if not data:
            raise InputError("the file is empty")
        memory = MemoryLimit(max_bytes, len(data))
        return _assemble(form.decode(data, memory), memory)
    except InputError as fault:
        raise fault.error(str(path), partial(form.place, data)) from None


@hint_keywords
def write_slots(path: AnyPath, slots: Any) -> None:
    """Write slots to a file, whole or not at all.

    Parameters
    ----------
    path : path
        Ends in ``.csv``, ``.parquet``, ``.json``, ``.jsonl`` or ``.npz``, as
        `read_slots` says; a file that is there is replaced.
    slots : structured array or SlotPool
        Slots; further fields are written as well.

    Raises
    ------
    ValueError
        For slots that are not valid, and for another suffix.
    TypeError
        For a further field that the format cannot hold (of more than one dimension,
        complex, objects that are not strings ...).
    OSError
        When the file cannot be written; nothing is left behind.

    Notes
    -----
    parquet and npz keep every bit and dtype (npz: objects become plain strings). csv
    and json keep every bit of a float64 and of an integer, and lose the widths of
    types. O(n).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[2])
    >>> sk.write_slots("slots.json", slots)  # doctest: +SKIP
    """
    path = as_path(path)
    form = format_of(path)
    slots = _structured(slots)
    validate_slots(slots)
    data = form.encode(slots)
    with open_atomic(path) as file:
        file.write(data)


def from_arrow(table: Any) -> NDArray[Any]:
    """Return the slots of an Arrow table.

    Parameters
    ----------
    table : pyarrow.Table, RecordBatch, or anything that offers an Arrow stream
        The columns node, start, end, performance, price, and any others.

    Returns
    -------
    structured array, sorted by (start, node)

    Raises
    ------
    ValueError
        Naming the row (from 0), the column and the value.
    TypeError
        For what is no Arrow table.

    Notes
    -----
    Reading from Arrow copies each column once. O(n log n).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[2])
    >>> bool((sk.from_arrow(sk.to_arrow(slots)) == slots).all())
    True
    """
    pa = pyarrow()
    if not (isinstance(table, pa.Table) or hasattr(table, "__arrow_c_stream__")):
        raise TypeError(f"table must be an Arrow table, got {type(table).__name__}")
    table = pa.table(table)
    memory = MemoryLimit(MAX_BYTES, table.nbytes)
    return _from_memory(lambda: arrow_columns(table, memory), memory)


def to_arrow(slots: Any) -> Any:
    """Return slots as a pyarrow.Table.

    Parameters
    ----------
    slots : structured array, SlotPool, or Window
        Any structured array of one dimension, or what has one as its ``slots``.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    TypeError
        For a field that Arrow cannot hold.

    Notes
    -----
    The numpy dtype of a column of text is noted in its field's metadata, so that
    `from_arrow` gives back the same width. O(n).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[2])
    >>> sk.to_arrow(slots).column_names
    ['node', 'start', 'end', 'performance', 'price']
    """
    return to_table(_structured(slots))


def from_pandas(frame: pd.DataFrame) -> NDArray[Any]:
    """Return the slots of a pandas frame; its index is not looked at.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns node, start, end, performance, price, and any others.

    Returns
    -------
    structured array, sorted by (start, node)

    Raises
    ------
    ValueError
        Naming the row (from 0), the column and the value.
    TypeError
        For what is no frame.

    Notes
    -----
    NaN in a further column of floats stays; a missing value in any other is an error.
    O(n log n).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[2])
    >>> bool((sk.from_pandas(sk.to_pandas(slots)) == slots).all())
    True
    """

    with extra():
        import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas frame, got {type(frame).__name__}")

    memory = MemoryLimit(MAX_BYTES, int(frame.memory_usage(deep=True).sum()))

    def columns() -> Columns:
        names = column_names(frame.columns)
        return {name: _pandas_column(name, frame[name], memory) for name in names}

    return _from_memory(columns, memory)


def to_pandas(slots: Any) -> pd.DataFrame:
    """Return slots as a pandas.DataFrame.

    Parameters
    ----------
    slots : structured array, SlotPool, or Window
        Any structured array of one dimension, or what has one as its ``slots``.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    TypeError
        For a field of more than one dimension.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[2])
    >>> sk.to_pandas(slots).shape
    (1, 5)
    """
    with extra():
        import pandas as pd

    columns = plain_columns(_structured(slots), "pandas")
    return pd.DataFrame(columns)


def _from_memory(columns: Callable[[], Columns], memory: MemoryLimit) -> NDArray[Any]:
    try:
        return _assemble(columns(), memory)
    except InputError as fault:
        raise fault.error("slots", row_place) from None


def _assemble(columns: Columns, memory: MemoryLimit) -> NDArray[Any]:
    """Return the slots that the columns hold, sorted and checked."""
    column_names(columns)
    rows = max((len(c) for c in columns.values() if c.ndim), default=1)
    width = sum(column.dtype.itemsize for column in columns.values())
    MemoryLimit(memory.limit, 0).reserve(f"{rows:,} slots", rows * width)
    try:
        return make_slots(**columns)
    except SlotError as error:
        raise InputError(error.problem, error.row, error.other) from None
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from None


def _structured(slots: Any) -> NDArray[Any]:
    array = getattr(slots, "slots", slots)
    if not isinstance(array, np.ndarray) or array.dtype.names is None:
        raise TypeError(f"slots must be a structured array, got {type(slots).__name__}")
    return array


def _pandas_column(
    name: str, column: pd.Series[Any], memory: MemoryLimit
) -> NDArray[Any]:
    dtype = getattr(column.dtype, "numpy_dtype", None)  # of nullable numbers
    if column.dtype.kind != "f" or dtype is not None:
        missing = column.isna().to_numpy()
        if missing.any():
            raise InputError(f"{name} is missing", int(missing.argmax()))
    return of_text(name, column.to_numpy(dtype=dtype), memory)


def format_of(path: AnyPath) -> Format:
    """Return the format of a file by its suffix, or raise ValueError."""
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        refuse_folder(path)
        known = ", ".join(FORMATS)
        raise ValueError(f"{path}: the suffix {suffix!r} is not one of {known}")
    return FORMATS[suffix]

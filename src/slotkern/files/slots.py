"""Reading and writing of slots: files by suffix, Arrow tables, pandas frames.

This module does the work common to all formats: it checks that the required columns are
present, sorts and validates the slots, and adds the location to errors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import hint_keywords
from slotkern.foundation.extras import extra
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
    """Read slots from a file.

    Parameters
    ----------
    path : path
        A file with a suffix of `slotkern.files.FORMATS`, such as ``.csv``, with the
        columns node, start, end, performance, price, in any order, and any others.
    max_bytes : int
        The most memory that the slots may use, by default 256 MiB; at least 16 times
        the size of the file is always allowed. Only compressed files, and text whose
        rows are as wide as the longest, can need more.

    Returns
    -------
    structured array, sorted by (start, node)
        The five fields of `SLOT`, then the other columns in the file's order.

    Raises
    ------
    ValueError
        For another suffix, an invalid file, and slots that need more than `max_bytes`;
        the message names the file, the line of a text file (or the row, from 0, of a
        binary one), the field and the value.
    OSError
        If the file cannot be opened (``FileNotFoundError``, ...).

    Notes
    -----
    - **csv**: UTF-8, a header line, comma-separated, quotes where needed. Blank lines,
      CRLF, a byte-order mark and blanks around numbers are accepted. The end of an
      unlimited slot is ``inf``. CSV has no types: a further column whose cells are all
      integers, numbers, or true/false is read as int64 (uint64), float64 or bool, any
      other as text ("007" is text). Only cells of text columns may be empty.
    - **json**: an array of objects with equal keys, one per slot; **jsonl**: one
      object per line. The strings "Infinity", "-Infinity" and "NaN" are numbers.
    - **npz**: one structured array named ``slots``, or one array per column. Pickled
      objects are refused.
    - **parquet**, **npz** preserve the bits and dtypes of all columns.

    O(n log n) time, and the memory of a few copies of the file.

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
    """Write slots to a file atomically.

    Parameters
    ----------
    path : path
        A name with a suffix of `slotkern.files.FORMATS`; see `read_slots`. An existing
        file is replaced.
    slots : structured array or SlotPool
        The slots, with all further fields.

    Raises
    ------
    ValueError
        For invalid slots, and for another suffix.
    TypeError
        For a field that the format cannot represent (several dimensions, complex
        numbers, objects that are not str ...).
    OSError
        If the file cannot be written; an existing file is unchanged.

    Notes
    -----
    parquet and npz preserve all bits and dtypes (npz: objects become text). csv and
    json preserve the values of float64 and integers, but not the widths of types. O(n).

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
    """Convert an Arrow table to slots.

    Parameters
    ----------
    table : pyarrow.Table, RecordBatch, or any object with an Arrow stream
        The columns node, start, end, performance, price, and any others.

    Returns
    -------
    structured array, sorted by (start, node)

    Raises
    ------
    ValueError
        For invalid slots; the message contains the row (from 0), the column and the
        value.
    TypeError
        If the value is not an Arrow table.

    Notes
    -----
    Each column is copied once. O(n log n).

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
    """Convert slots to a pyarrow.Table.

    Parameters
    ----------
    slots : structured array, SlotPool, or Window
        Any one-dimensional structured array, or an object with one as its ``slots``.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    TypeError
        For a field that Arrow cannot represent.

    Notes
    -----
    The numpy dtype of a text column is stored in the metadata of its field, so that
    `from_arrow` restores the width. O(n).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[2])
    >>> sk.to_arrow(slots).column_names
    ['node', 'start', 'end', 'performance', 'price']
    """
    return to_table(_structured(slots))


def from_pandas(frame: pd.DataFrame) -> NDArray[Any]:
    """Convert a pandas frame to slots; its index is ignored.

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
        For invalid slots; the message contains the row (from 0), the column and the
        value.
    TypeError
        If the value is not a frame.

    Notes
    -----
    NaN is preserved in further columns of floats; other missing values are errors.
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
    """Convert slots to a pandas.DataFrame.

    Parameters
    ----------
    slots : structured array, SlotPool, or Window
        Any one-dimensional structured array, or an object with one as its ``slots``.

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
    """Create sorted and validated slots from columns."""
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
    dtype = getattr(column.dtype, "numpy_dtype", None)  # for nullable numbers
    if column.dtype.kind != "f" or dtype is not None:
        missing = column.isna().to_numpy()
        if missing.any():
            raise InputError(f"{name} is missing", int(missing.argmax()))
    return of_text(name, column.to_numpy(dtype=dtype), memory)


def format_of(path: AnyPath) -> Format:
    """Return the format for the suffix of a file; raise ValueError for others."""
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        refuse_folder(path)
        known = ", ".join(FORMATS)
        raise ValueError(f"{path}: the suffix {suffix!r} is not one of {known}")
    return FORMATS[suffix]

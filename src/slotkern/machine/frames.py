"""Conversion of tables and columns of other libraries to arrays.

Tables of pandas, polars and Arrow are converted by narwhals; arrays of numpy, mappings
and lists need no further library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import quote
from slotkern.foundation.extras import extra

from .calendar import Moments

__all__ = [
    "FileColumns",
    "check_width",
    "column_of",
    "columns_of",
    "source_name",
    "with_column_context",
]

#: The most bytes of a column of text, whose rows are all as wide as the longest.
_MAX_TEXT_BYTES = 2**30


class FileColumns(dict[str, Any]):
    """The columns of a table in a file; `source` is its name in errors."""

    def __init__(self, columns: Mapping[str, Any], source: str) -> None:
        super().__init__(columns)
        self.source = source


def source_name(table: Any, name: str) -> str:
    """Return the name of a table in errors: its file, or else the given name."""
    return table.source if isinstance(table, FileColumns) else name


def columns_of(table: Any, name: str) -> dict[str, Any]:
    """Convert a table to columns: arrays of numpy, or `Moments` for dates with a zone.

    Parameters
    ----------
    table : mapping, structured array, DataFrame, Arrow table, or sequence of mappings
        Frames of pandas, polars, pyarrow, or any other library that narwhals supports
        or that offers an Arrow stream.
    name : str
        The name of the table in errors.

    Raises
    ------
    TypeError, ValueError
        If the value is not a table, or its columns have different lengths.
    """
    if isinstance(table, np.ndarray) and table.dtype.names is not None:
        columns = {field: table[field] for field in table.dtype.names}
    elif isinstance(table, Mapping):
        columns = {
            str(key): with_column_context(name, key, column_of, values)
            for key, values in table.items()
        }
    elif isinstance(table, (list, tuple)):
        columns = _of_rows(table, name)
    else:
        columns = _of_frame(table, name)
    shapes = {
        key: len(_array(values))
        for key, values in columns.items()
        if _array(values).ndim
    }
    if any(_array(values).ndim > 1 for values in columns.values()):
        raise ValueError(f"{name}: a column has more than one dimension")
    if len(set(shapes.values())) > 1:
        sizes = ", ".join(f"{key} {length}" for key, length in shapes.items())
        raise ValueError(f"{name}: columns have different numbers of rows: {sizes}")
    return columns


def column_of(values: Any) -> NDArray[Any] | Moments:
    """Convert a column to an array, or to `Moments` if its type has a zone."""
    if isinstance(values, (np.ndarray, Moments)):
        return values
    if isinstance(values, (list, tuple)):
        return _of_list(values)
    if isinstance(values, str) or not hasattr(values, "__len__"):
        return np.asarray(values)  # one value for all rows
    with extra():
        import narwhals as nw

    if hasattr(values, "__arrow_c_array__"):
        with extra():
            import pyarrow as pa
        values = pa.chunked_array([pa.array(values)])
    try:
        series = nw.from_native(values, series_only=True, allow_series=True)
    except TypeError:
        return _of_list(list(values))  # np.asarray would drop the zone of datetimes
    return _of_series(series)


class _TextTooWide(ValueError):
    """A text is too long for its column; the caller adds the name of the column."""


def check_width(longest: int, rows: int) -> None:
    """Refuse a column of text that is too wide: each row is as wide as the longest.

    Raises
    ------
    ValueError
        Above 2**30 bytes; the message lacks the name of the column.
    """
    size = 4 * longest * rows
    if size > _MAX_TEXT_BYTES:
        raise _TextTooWide(
            f"a text of {longest:,} characters; as much for each of {rows:,} rows is "
            f"{size:,} bytes, more than {_MAX_TEXT_BYTES:,}"
        )


def with_column_context(
    name: str, key: Any, make: Callable[[Any], Any], values: Any
) -> Any:
    """Return ``make(values)``; errors about wide text get the name of the column."""
    try:
        return make(values)
    except _TextTooWide as error:
        raise ValueError(f"{name}: column {str(key)!r:.80} has {error}") from None


def _array(values: NDArray[Any] | Moments) -> NDArray[Any]:
    return values.values if isinstance(values, Moments) else values


def _of_list(values: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    kinds = set(map(type, values))
    if kinds <= {str}:
        check_width(max(map(len, values), default=0), len(values))
        return np.array(values, np.str_)
    # A bool among numbers would become 1: mixed lists become objects.
    if all(map(_is_number_type, kinds)) or kinds <= {bool, np.bool_}:
        return np.array(values)
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _is_number_type(kind: type) -> bool:
    """Return whether values of a type are numbers, of Python or numpy."""
    if kind is bool or issubclass(kind, np.timedelta64):
        return False
    return issubclass(kind, (int, float, np.integer, np.floating))


def _of_rows(rows: list[Any] | tuple[Any, ...], name: str) -> dict[str, Any]:
    for row, given in enumerate(rows):
        if not isinstance(given, Mapping):
            raise TypeError(f"{name}, row {row}: not a mapping: {quote(given)}")
        if given.keys() != rows[0].keys():
            raise ValueError(
                f"{name}, row {row}: has {', '.join(map(str, given))}; row 0 has "
                f"{', '.join(map(str, rows[0]))}"
            )
    keys = list(rows[0]) if rows else []
    return {
        str(key): with_column_context(
            name, key, _of_list, [given[key] for given in rows]
        )
        for key in keys
    }


def _of_frame(table: Any, name: str) -> dict[str, Any]:
    with extra():
        import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(
                f"{name} must be a table: of pandas, polars or Arrow, a mapping of "
                f"columns or a structured array; got {type(table).__name__}"
            ) from None
        with extra():
            import pyarrow as pa
        frame = nw.from_native(pa.table(table), eager_only=True)
    return {
        key: with_column_context(name, key, _of_series, frame[key])
        for key in frame.columns
    }


def _of_series(series: Any) -> NDArray[Any] | Moments:
    with extra():
        import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        utc = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return Moments(utc.to_numpy(), True)
    if isinstance(dtype, nw.Date):
        days = series.cast(nw.Datetime("us")).to_numpy()
        return Moments(days, False, days=True)
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        series = series.cast(nw.String)
    if isinstance(dtype, (nw.String, nw.Object)):
        found = np.empty(len(series), object)
        found[:] = series.to_list()
        return _of_list(found.tolist())
    values: NDArray[Any] = series.to_numpy()
    return values

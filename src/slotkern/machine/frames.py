"""Tables and columns of others: pandas, polars, Arrow and what speaks like them.

All of them go through narwhals, which knows their types; what is numpy's or plain
Python needs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.checks import shown
from slotkern.extras import extra

from .moments import Moments

__all__ = [
    "FileColumns",
    "check_width",
    "column_of",
    "columns_of",
    "source_name",
    "with_column_context",
]

#: What a column of text may take, in bytes: each row has as much as the longest.
_MAX_TEXT_BYTES = 2**30


class FileColumns(dict[str, Any]):
    """Columns of a table in a file: `source`, which errors name."""

    def __init__(self, columns: Mapping[str, Any], source: str) -> None:
        super().__init__(columns)
        self.source = source


def source_name(table: Any, name: str) -> str:
    """Return what errors call a table: its file, or else the given name."""
    return table.source if isinstance(table, FileColumns) else name


def columns_of(table: Any, name: str) -> dict[str, Any]:
    """Return the columns of a table: arrays of numpy, or `Moments` for dates.

    Parameters
    ----------
    table : mapping, structured array, DataFrame, Arrow table, or sequence of mappings
        Of pandas, polars, pyarrow and whatever else narwhals knows or offers an Arrow
        stream.
    name : str
        What it is, for errors.

    Raises
    ------
    TypeError, ValueError
        For what is no table, and columns of different lengths.
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
        told = ", ".join(f"{key} {length}" for key, length in shapes.items())
        raise ValueError(f"{name}: columns have different numbers of rows: {told}")
    return columns


def column_of(values: Any) -> NDArray[Any] | Moments:
    """Return one column as an array, or as `Moments` where its type has a zone."""
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
        return _of_list(list(values))  # as an array it would lose its zone
    return _of_series(series)


class _TextTooWide(ValueError):
    """A text that is too long for its column; the column is not known here."""


def check_width(longest: int, rows: int) -> None:
    """Refuse text that would take too much: all of a column is as wide as its longest.

    Raises
    ------
    ValueError
        Beyond 2**30 bytes, without the column's name.
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
    """What `make` makes of a column, which an error names."""
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
    # Among numbers True is no 1.
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
            raise TypeError(f"{name}, row {row}: not a mapping: {shown(given)}")
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

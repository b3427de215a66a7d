"""Arrow tables, and parquet files made of them."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import (
    Columns,
    Fault,
    Format,
    column_names,
    of_text,
    plain_columns,
    row_place,
)


def pyarrow(module: str = "") -> Any:
    """Return pyarrow or one of its modules, imported on first use."""
    try:
        return import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ModuleNotFoundError as error:
        hint = "csv, parquet and Arrow need pyarrow: pip install 'slotkern[io]'"
        raise ModuleNotFoundError(hint, name=error.name) from None


def arrow_columns(table: Any) -> Columns:
    """Return the columns of a pyarrow.Table."""
    names = column_names(table.column_names)
    return {name: _arrow_column(name, table.field(name), table[name]) for name in names}


def _arrow_column(name: str, field: Any, column: Any) -> NDArray[Any]:
    pa, pc = pyarrow(), pyarrow("compute")
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise Fault(f"{name} is missing (null)", row)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = of_text(name, to_numpy(column))
    noted = (field.metadata or {}).get(b"numpy")
    if noted is None or values.dtype.kind not in "US":
        return values
    try:
        dtype = np.dtype(noted.decode())
    except (TypeError, ValueError):
        raise Fault(f"column {name!r} notes the wrong dtype {noted!r}") from None
    if dtype.kind == values.dtype.kind:  # never narrower than the text
        dtype = np.promote_types(dtype, values.dtype)
    return values.astype(dtype) if dtype.kind in (values.dtype.kind, "O") else values


def arrow_array(name: str, column: NDArray[Any]) -> Any:
    """Return a column as an Arrow array."""
    pa = pyarrow()
    try:
        return pa.array(column)
    except (pa.ArrowException, UnicodeError) as error:
        raise ValueError(f"column {name!r} cannot go to arrow: {error}") from None


def to_table(slots: NDArray[Any]) -> Any:
    """Return a structured array as a pyarrow.Table."""
    pa = pyarrow()
    arrays, fields = [], []
    for name, column in plain_columns(slots, "arrow").items():
        array = arrow_array(name, column)
        # Arrow's text has no width: note it.
        noted = {"numpy": column.dtype.str} if column.dtype.kind in "USO" else None
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=noted))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _decode(data: bytes) -> Columns:
    pa, pq = pyarrow(), pyarrow("parquet")
    try:
        source = pa.BufferReader(data)
        table = pq.ParquetFile(source, page_checksum_verification=True).read()
    except Exception as error:  # whatever the parser trips over
        raise Fault(f"not a sound parquet file: {error}") from None
    return arrow_columns(table)


def _encode(slots: NDArray[Any]) -> bytes:
    sink = io.BytesIO()
    table = to_table(slots)
    pyarrow("parquet").write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def to_numpy(column: Any) -> NDArray[Any]:
    """Return an Arrow column as an array."""
    values: NDArray[Any] = column.to_numpy()
    return values


FORMAT = Format(_decode, _encode, lambda _, record: row_place(record))

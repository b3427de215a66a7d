"""Conversion of slots to Arrow tables and back, and parquet files."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.extras import extra

from .columns import (
    Columns,
    Format,
    InputError,
    MemoryLimit,
    column_names,
    of_text,
    plain_columns,
    row_place,
    take_text,
)


def pyarrow(module: str = "") -> Any:
    """Return pyarrow or one of its modules, imported on first use."""
    with extra():
        return import_module(f"pyarrow.{module}" if module else "pyarrow")


def arrow_file(data: bytes) -> Any:
    """Copy data to a file-like object of Arrow.

    Threads of Arrow may release the buffer when the process ends, so it must not be
    memory of Python.
    """
    pa = pyarrow()
    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def arrow_columns(table: Any, memory: MemoryLimit) -> Columns:
    """Convert a pyarrow.Table to columns."""
    names = column_names(table.column_names)
    return {
        name: _arrow_column(name, field, column, memory)
        for name, field, column in zip(names, table.schema, table.columns, strict=True)
    }


def _arrow_column(
    name: str, field: Any, column: Any, memory: MemoryLimit
) -> NDArray[Any]:
    pa, pc = pyarrow(), pyarrow("compute")
    _check_type(field)
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise InputError(f"{name} is missing (null)", row)
    if pa.types.is_dictionary(column.type):
        _take_words(name, column, MemoryLimit(memory.limit, 0))
        column = column.cast(column.type.value_type)
    values = of_text(name, to_numpy(column), memory)
    stored = (field.metadata or {}).get(b"numpy")
    if stored is None or values.dtype.kind not in "US":
        return values
    try:
        dtype = np.dtype(stored.decode())
    except (TypeError, ValueError):
        raise InputError(
            f"column {name!r} has metadata with an invalid dtype {stored!r}"
        ) from None
    if dtype.kind == values.dtype.kind:  # the text may be wider
        dtype = np.promote_types(dtype, values.dtype)
        if dtype.itemsize > values.dtype.itemsize:
            take_text(name, dtype.itemsize, len(values), memory, None)
    return values.astype(dtype) if dtype.kind in (values.dtype.kind, "O") else values


def _take_words(name: str, column: Any, memory: MemoryLimit) -> None:
    """Reserve the memory of a dictionary-encoded column of text."""
    pa, pc = pyarrow(), pyarrow("compute")
    if len(column) and _is_text(column.type):
        words = pa.chunked_array([chunk.dictionary for chunk in column.chunks])
        longest = pc.max(pc.binary_length(words)).as_py() or 0
        take_text(name, longest, len(column), memory, None)


def arrow_array(name: str, column: NDArray[Any]) -> Any:
    """Convert a column to an Arrow array."""
    pa = pyarrow()
    try:
        return pa.array(column)
    except (pa.ArrowException, UnicodeError) as error:
        raise ValueError(f"column {name!r} cannot go to arrow: {error}") from None


def to_table(slots: NDArray[Any] | Columns) -> Any:
    """Convert a structured array, or columns, to a pyarrow.Table."""
    pa = pyarrow()
    arrays, fields = [], []
    for name, column in plain_columns(slots, "arrow").items():
        array = arrow_array(name, column)
        # Text of Arrow has no width: store it as metadata.
        stored = {"numpy": column.dtype.str} if column.dtype.kind in "USO" else None
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=stored))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _decode(data: bytes, memory: MemoryLimit) -> Columns:
    pq = pyarrow("parquet")
    try:
        source = arrow_file(data)
        file = pq.ParquetFile(source)
        words = _check_sizes(file, MemoryLimit(memory.limit, 0))
        file = pq.ParquetFile(
            source, page_checksum_verification=True, read_dictionary=words
        )
        table = file.read()
    except InputError:
        raise
    except Exception as error:  # any error of the parser
        raise InputError(f"not a valid parquet file: {error}") from None
    return arrow_columns(table, memory)


def _check_sizes(file: Any, memory: MemoryLimit) -> list[str]:
    """Check that all columns fit in memory; return the names of text columns."""
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    memory.reserve("the columns", sum(group.total_byte_size for group in groups))
    words = []
    for field in file.schema_arrow:
        _check_type(field)
        # Text is read dictionary-encoded: repeated words need no memory.
        if _is_text(field.type):
            words.append(field.name)
        width = 4 if _is_text(field.type) else field.type.bit_width // 8 + 1
        memory.reserve(f"{field.name!r:.80}", width * file.metadata.num_rows)
    return words


def _check_type(field: Any) -> None:
    if pyarrow().types.is_nested(field.type):
        reason = (
            f"column {field.name!r:.80} is of {field.type!s:.80}, not one value a row"
        )
        raise InputError(reason)


def _is_text(dtype: Any) -> bool:
    pa = pyarrow()
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _encode(slots: NDArray[Any]) -> bytes:
    sink = io.BytesIO()
    table = to_table(slots)
    pyarrow("parquet").write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def to_numpy(column: Any) -> NDArray[Any]:
    """Convert an Arrow column to an array."""
    values: NDArray[Any] = column.to_numpy()
    return values


FORMAT: Format = Format(
    _decode, _encode, lambda _, record: row_place(record), is_typed=True
)

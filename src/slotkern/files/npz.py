"""Archives of numpy (.npz): a structured array ``slots``, or one array per column."""

from __future__ import annotations

import io
from typing import Any

from numpy.typing import NDArray

from slotkern.slots import make_slots

from .archive import read_archive, write_archive
from .columns import (
    MAX_BYTES,
    Columns,
    Format,
    InputError,
    MemoryLimit,
    column_names,
    of_text,
    plain_columns,
    row_place,
)


def _decode(data: bytes, memory: MemoryLimit) -> Columns:
    try:
        arrays = read_archive(io.BytesIO(data), memory)
    except InputError as fault:
        raise InputError(f"not a valid npz file: {fault.reason}") from None
    if [name for name, _ in arrays] == ["slots"]:
        slots = arrays[0][1]
        if slots.dtype.names is None:
            raise InputError(f"slots is of {slots.dtype}, not a structured array")
        arrays = [(name, slots[name]) for name in slots.dtype.names]
    column_names(name for name, _ in arrays)
    return {
        name: column.astype(column.dtype.newbyteorder("="), copy=False)
        for name, column in arrays
    }


def _encode(slots: NDArray[Any]) -> bytes:
    columns = plain_columns(slots, "npz")
    memory = MemoryLimit(MAX_BYTES, sum(column.nbytes for column in columns.values()))
    for name, column in columns.items():
        try:  # numpy would pickle objects
            columns[name] = of_text(name, column, memory)
        except InputError as fault:
            raise fault.error("slots", row_place) from None
    sink = io.BytesIO()
    write_archive(sink, {"slots": make_slots(**columns)})
    return sink.getvalue()


FORMAT: Format = Format(
    _decode, _encode, lambda _, record: row_place(record), is_typed=True
)

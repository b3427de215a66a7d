"""Common parts of file formats: columns, memory limits, and errors with a location."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import integer, meant
from slotkern.slots import SLOT

FIELDS = tuple(SLOT.names or ())

Columns = dict[str, NDArray[Any]]


#: The default limit for the memory that the slots of a file need, in bytes.
MAX_BYTES = 2**28


class MemoryLimit:
    """The memory that reading may use, so that a small file cannot exhaust it.

    The limit is the greater of `max_bytes` and `growth` times the `size` of the input,
    both in bytes. Only compressed data, and columns of text as wide as their longest
    cell, grow by more than 16 times.
    """

    def __init__(self, max_bytes: int, size: int, growth: int = 16) -> None:
        most = max(integer("max_bytes", max_bytes, least=0), growth * size)
        self.limit = self.left = most

    def reserve(self, what: str, size: int, at: int | None = None) -> None:
        """Reserve bytes for `what`; raise InputError if the limit is exceeded."""
        self.left -= size
        if self.left < 0:
            reason = f"{what} would take {size:,} bytes in memory, which exceeds "
            raise InputError(reason + f"the limit of {self.limit:,} (max_bytes)", at)


class Format(NamedTuple):
    """The functions of a file format: decode, encode, and location of a record.

    `is_typed` is True if the format keeps the types and bits of all columns.
    """

    decode: Callable[[bytes, MemoryLimit], Columns]
    encode: Callable[[NDArray[Any]], bytes]
    place: Callable[[bytes, int], str]
    is_typed: bool = False


class InputError(Exception):
    """An error in the input, and its location.

    `at` is the number of a record, a location as text, or None for the whole input;
    `clash` is the number of a record that conflicts with the first.
    """

    def __init__(
        self, reason: str, at: int | str | None = None, clash: int | None = None
    ) -> None:
        self.reason, self.at, self.clash = reason, at, clash

    def error(self, source: str, place: Callable[[int], str]) -> ValueError:
        """Return the ValueError for users; `place` maps a record to its location."""
        where = place(self.at) if isinstance(self.at, int) else self.at
        reason = " ".join(
            self.reason.splitlines()
        )  # messages of other libraries may be long
        reason = reason if len(reason) <= 300 else reason[:300] + "..."
        text = f"{source}, {where}: {reason}" if where else f"{source}: {reason}"
        if self.clash is not None and self.clash != self.at:
            text += f"; see {place(self.clash)}"
        return ValueError(text)


def row_place(record: int) -> str:
    """Return the location of a record in memory or a binary file, from row 0."""
    return f"row {record}"


def distinct_names(names: Iterable[Any]) -> list[str]:
    """Check that the names of columns are distinct texts, and return them."""
    found: dict[str, None] = {}
    for number, name in enumerate(names, 1):
        if not isinstance(name, str):
            raise InputError(
                f"column {number} is named {name!r}, which is not a string"
            )
        if not name:
            raise InputError(f"column {number} has no name")
        if name in found:
            raise InputError(f"column {name!r} occurs twice")
        found[name] = None
    return list(found)


def column_names(names: Iterable[Any]) -> list[str]:
    """Check that the names of columns are distinct and include those of slots."""
    found = distinct_names(names)
    for name in FIELDS:
        if name not in found:
            there = ", ".join(found)
            there = there if len(there) <= 200 else there[:200] + "..."
            hint = meant(name, found)
            raise InputError(f"no column {name!r}; there are {there}{hint}")
    return found


def plain_columns(
    slots: NDArray[Any] | Columns, target: str, text: bool = False
) -> dict[str, NDArray[Any]]:
    """Convert to contiguous native columns; with `text`, bytes and times become str."""
    columns = {}
    names = slots.dtype.names if isinstance(slots, np.ndarray) else slots
    for name in names or ():
        column = slots[name]
        kind = column.dtype.kind
        if column.ndim != 1 or kind not in "biufUSOMm":
            of = np.dtype((column.dtype, column.shape[1:]))
            raise TypeError(f"column {name!r} is {of}, which cannot go to {target}")
        if kind == "O" and not set(map(type, column)) <= {str}:
            raise TypeError(f"column {name!r}: of objects only str can go to {target}")
        if text and kind == "S":
            try:
                column = np.strings.decode(column, "utf-8")
            except UnicodeDecodeError as error:
                raise TypeError(f"column {name!r} is not UTF-8: {error}") from None
        if text and kind in "Mm":
            column = column.astype(np.str_)
        columns[name] = column.astype(column.dtype.newbyteorder("="), order="C")
    return columns


def of_text(name: str, values: NDArray[Any], memory: MemoryLimit) -> NDArray[Any]:
    """Convert a column of str or bytes objects to fixed-width text; return others."""
    if values.dtype.kind != "O":
        return values
    kinds = set(map(type, values))
    if kinds <= {str} or kinds == {bytes}:
        lengths = list(map(len, values))
        longest = max(lengths, default=0)
        row = lengths.index(longest) if lengths else None
        take_text(name, (4 if str in kinds else 1) * longest, len(lengths), memory, row)
        text: NDArray[Any] = values.astype(np.bytes_ if bytes in kinds else np.str_)
        cut = np.strings.str_len(text) != lengths
        if cut.any():  # numpy strips trailing null characters as padding
            row = int(cut.argmax())
            raise InputError(
                f"{name} {values[row]!r:.80} ends with a null character", row
            )
        return text
    row = next(i for i, value in enumerate(values) if type(value) is not str)
    kind = type(values[row]).__name__
    raise InputError(f"{name} {values[row]!r:.80} is of type {kind}", row)


def take_text(
    name: str, width: int, rows: int, memory: MemoryLimit, row: int | None
) -> None:
    """Reserve the memory of a column of text; `width` is in bytes per row."""
    memory.reserve(f"{name} is so long here that its column", width * rows, row)


def utf8(data: bytes) -> str:
    """Decode the bytes of a file, without a byte-order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"byte {data[error.start]:#04x} is not UTF-8 text"
        raise InputError(reason, f"line {line}") from None

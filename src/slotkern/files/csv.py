"""Comma-separated values, through pyarrow; Python's csv module finds the lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import pyarrow, to_numpy
from .columns import (
    FIELDS,
    Columns,
    Fault,
    Format,
    column_names,
    plain_columns,
    utf8,
)

_BOM = b"\xef\xbb\xbf"

# CSV has no types: a further column that matches throughout is of that type. "007" and
# "0x10" are text, "-0" is a float.
_TYPES = (
    ("int64", r"0|-?[1-9][0-9]*"),
    ("uint64", r"0|[1-9][0-9]*"),
    (
        "float64",
        r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
        r"|(?i:[+-]?(inf|infinity)|nan)",
    ),
    ("bool", r"(?i:true|false)"),
)


def _decode(data: bytes) -> Columns:
    pa, arrow_csv = pyarrow(), pyarrow("csv")
    text = utf8(data)
    if not text or text.isspace():
        raise Fault("the file is empty")
    header = next(cells for _, cells in _records(text))
    if data.count(b'"') % 2:
        raise Fault("a quoted cell is not closed")
    names = column_names(name.strip() for name in header)
    body = data.removeprefix(_BOM).lstrip(b"\r\n") + b"\n"
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            arrow_csv.ReadOptions(
                column_names=names, skip_rows_after_names=1, block_size=len(body) + 1
            ),
            arrow_csv.ParseOptions(newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        for record, (_, cells) in enumerate(_records(text), -1):
            if len(cells) != len(names):
                raise Fault(f"{len(cells)} cells, not {len(names)}", record) from None
        raise Fault(f"not CSV: {error}") from None
    return {
        name: _numbers(name, table[name])
        if name in FIELDS
        else _guess(name, table[name])
        for name in names
    }


def _numbers(name: str, cells: Any) -> NDArray[np.float64]:
    """Return the cells of one of the five fields as numbers."""
    pa, pc = pyarrow(), pyarrow("compute")
    cells = pc.utf8_trim_whitespace(cells)
    empty = pc.fill_null(pc.equal(cells, ""), True)
    if (row := pc.index(empty, True).as_py()) >= 0:
        raise Fault(f"{name} is empty", row)
    try:
        return to_numpy(pc.cast(cells, pa.float64()))
    except pa.ArrowInvalid:
        good, bad = 0, len(cells)  # bisect for the first cell that is no number
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                pc.cast(cells.slice(good, middle - good), pa.float64())
            except pa.ArrowInvalid:
                bad = middle
            else:
                good = middle
        reason = f"{name} {cells[good].as_py()!r:.80} is not a number"
        raise Fault(reason, good) from None


def _guess(name: str, cells: Any) -> NDArray[Any]:
    """Return the cells of a further column, in the type that all of them match."""
    pa, pc = pyarrow(), pyarrow("compute")
    trimmed = pc.utf8_trim_whitespace(cells)
    there = pc.drop_null(trimmed)
    for kind, pattern in _TYPES:
        matches = pc.match_substring_regex(there, f"^({pattern})$")
        if len(there) and pc.all(matches).as_py():
            try:
                values = pc.cast(trimmed, pa.type_for_alias(kind))
            except pa.ArrowInvalid:  # an integer beyond 64 bits
                continue
            if values.null_count:
                row = pc.index(pc.is_null(values), True).as_py()
                raise Fault(f"{name} is empty in a column of {kind}", row)
            return to_numpy(values)
    return to_numpy(pc.fill_null(cells, "")).astype(np.str_)


def _encode(slots: NDArray[Any]) -> bytes:
    columns = plain_columns(slots, "csv", text=True)
    for name, column in columns.items():
        if column.dtype.kind == "b":
            columns[name] = np.where(column, "true", "false")
    sink = io.StringIO(newline="")
    # Floats go as repr() writes them; text is quoted, so that an empty one is seen.
    writer = csv.writer(sink, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))
    return sink.getvalue().encode()


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank with its line; the first is the header."""
    reader = csv.reader(io.StringIO(text, newline=""))
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise Fault(f"not CSV: {error}", f"line {line}") from None


def _place(data: bytes, record: int) -> str:
    records = enumerate(_records(utf8(data)), -1)
    return next(f"line {line}" for number, (line, _) in records if number == record)


FORMAT = Format(_decode, _encode, _place)

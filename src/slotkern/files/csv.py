"""Comma-separated values, parsed by pyarrow; this module locates the errors."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrow import arrow_file, pyarrow, to_numpy
from .columns import (
    FIELDS,
    Columns,
    Format,
    InputError,
    MemoryLimit,
    column_names,
    distinct_names,
    of_text,
    plain_columns,
    utf8,
)

BOM = b"\xef\xbb\xbf"

# CSV has no types. A further column has the first type that all of its cells match;
# "007" and "0x10" are text, "-0" is a float.
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


# A record as Arrow parses it: a cell that begins with a quote is quoted, and may go on
# after the closing quote; any other quote is an ordinary character.
_TEXT = r'(?:"(?:[^"]++|"")*+"?)?+[^,\r\n]*+'
_RECORD = re.compile(rf"(?:{_TEXT},)*+{_TEXT}(?:\r\n|\r|\n|\Z)")
_CELL = re.compile(r'(?:"((?:[^"]++|"")*+)("?))?([^,\r\n]*)(,?)')


def _decode(data: bytes, memory: MemoryLimit) -> Columns:
    pa = pyarrow()
    data = with_commas(data)
    names = column_names(_header(utf8(data)))
    # If the appended row is not parsed as the last one, a quoted cell is not closed.
    last = ",".join("0" * len(names)).encode()
    body = data.removeprefix(BOM).lstrip(b"\r\n") + b"\n" + last
    try:
        table = read_table(
            body,
            names,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
    except pa.ArrowInvalid as error:
        check_cells(data, len(names))
        raise InputError(f"not CSV: {error}") from None
    rows = len(table) - 1
    if rows < 0 or table.column(len(names) - 1)[rows].as_py() != "0":
        check_cells(data, len(names))
    columns = dict(zip(names, table.slice(0, rows).columns, strict=True))
    numbers = {name: _numbers(name, columns.pop(name)) for name in FIELDS}
    found = numbers | _guess(columns, rows, memory)
    return {name: found[name] for name in names}


def read_table(data: bytes, names: list[str], **convert: Any) -> Any:
    """Parse a csv file with pyarrow; its first line, the header, is skipped."""
    csv = pyarrow("csv")
    return csv.read_csv(
        arrow_file(data),
        # One block, so that types are inferred from all rows; threads gain nothing.
        csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=1,
            block_size=len(data) + 1,
            use_threads=False,
        ),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(**convert),
    )


def with_commas(data: bytes) -> bytes:
    """Convert a table with the separator `|` to csv; return any other unchanged.

    `sacct -P` and `sinfo -o` of Slurm write such tables, without quotes. A `|` at the
    end of each line is dropped.
    """
    first = data.removeprefix(BOM).lstrip(b"\r\n").split(b"\n", 1)[0].rstrip(b"\r")
    if b"|" not in first or b"," in first or b'"' in first:
        return data
    ends = first.endswith(b"|")
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, lineterminator="\n")
    for line in utf8(data).removeprefix("\ufeff").splitlines():
        cells = (line.removesuffix("|") if ends else line).split("|")
        writer.writerow(cells if line else [])
    return sink.getvalue().encode()


def header_of(data: bytes) -> list[str]:
    """Return the names of the columns of a csv file, after a check."""
    return distinct_names(_header(utf8(data)))


def _header(text: str) -> list[str]:
    if not text or text.isspace():
        raise InputError("the file is empty")
    header = next(_cells(line, record) for line, record in _records(text))
    names = [name.strip() for name in header]
    if len(names) == 1 and (found := re.search(r"[;\t]", names[0])):
        # Numbers of such files may have decimal commas, and points between thousands.
        raise InputError(
            f"the columns are separated by {found[0]!r}, not by commas; read it with "
            f"pandas.read_csv(path, sep={found[0]!r}, decimal=',') or save it with "
            "commas between columns and points in numbers"
        )
    return names


def _numbers(name: str, cells: Any) -> NDArray[np.float64]:
    """Convert the cells of a slot field to numbers."""
    pa, pc = pyarrow(), pyarrow("compute")
    cells = pc.utf8_trim_whitespace(cells)
    empty = pc.fill_null(pc.equal(cells, ""), True)
    if (row := pc.index(empty, True).as_py()) >= 0:
        raise InputError(f"{name} is empty", row)
    try:
        return to_numpy(pc.cast(cells, pa.float64()))
    except pa.ArrowInvalid:
        good, bad = 0, len(cells)  # bisect for the first cell that is not a number
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                pc.cast(cells.slice(good, middle - good), pa.float64())
            except pa.ArrowInvalid:
                bad = middle
            else:
                good = middle
        reason = f"{name} {cells[good].as_py()!r:.80} is not a number"
        raise InputError(reason, good) from None


def _guess(columns: dict[str, Any], rows: int, memory: MemoryLimit) -> Columns:
    """Convert the further columns to the types that all of their cells match."""
    pa, pc = pyarrow(), pyarrow("compute")
    trimmed = {name: pc.utf8_trim_whitespace(c) for name, c in columns.items()}
    # All columns are matched in one call, since calls take longer than the matching.
    there = dict(zip(columns, _by_column(pc.is_valid, trimmed, rows), strict=True))
    untyped = {name: trimmed[name] for name in columns if there[name].any()}
    found: Columns = {}
    for kind, pattern in _TYPES:
        options = pc.MatchSubstringOptions(f"^({pattern})$")

        def matches(cells: Any, options: Any = options) -> Any:
            return pc.fill_null(pc.match_substring_regex(cells, options=options), True)

        fits = _by_column(matches, untyped, rows).all(axis=1)
        for name in np.array(list(untyped), object)[fits]:
            try:
                values = pc.cast(untyped[name], pa.type_for_alias(kind))
            except pa.ArrowInvalid:  # an integer beyond 64 bits
                continue
            if values.null_count:
                row = int(there[name].argmin())
                raise InputError(f"{name} is empty in a column of {kind}", row)
            found[name] = to_numpy(values)
            del untyped[name]
    for name in columns.keys() - found.keys():
        found[name] = of_text(name, to_numpy(pc.fill_null(columns[name], "")), memory)
    return found


def _by_column(
    compute: Callable[[Any], Any], columns: dict[str, Any], rows: int
) -> NDArray[np.bool_]:
    """Apply a predicate to all cells in one call; return shape (columns, rows)."""
    pa = pyarrow()
    chunks = [chunk for column in columns.values() for chunk in column.chunks]
    truths = compute(pa.chunked_array(chunks, pa.string()))
    return to_numpy(truths).astype(np.bool_).reshape(len(columns), rows)


def _encode(slots: NDArray[Any]) -> bytes:
    columns = plain_columns(slots, "csv", text=True)
    for name, column in columns.items():
        if column.dtype.kind == "b":
            columns[name] = np.where(column, "true", "false")
    sink = io.StringIO(newline="")
    # Floats are written by repr(); text is quoted to distinguish empty from missing.
    writer = csv.writer(sink, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))
    return sink.getvalue().encode()


def _records(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each record that is not blank, first the header."""
    line, end = 1, 0
    while end < len(text):
        match = _RECORD.match(text, end)
        assert match
        end, record = match.end(), match[0]
        if record.strip("\r\n"):
            yield line, record
        line += record.count("\n") + record.count("\r") - record.count("\r\n")


def _cells(line: int, record: str) -> list[str]:
    """Split a record into its cells."""
    cells, end, more = [], 0, ","
    while more:
        match = _CELL.match(record, end)
        assert match
        quoted, closed, rest, more = match.groups()
        if quoted is not None and not closed:
            line += record.count("\n", 0, end)
            raise InputError("a quoted cell is not closed", f"line {line}")
        cells.append((quoted or "").replace('""', '"') + rest)
        end = match.end()
    return cells


def check_cells(data: bytes, columns: int) -> None:
    """Raise InputError for the first record with an open quote or a wrong length."""
    for number, (line, record) in enumerate(_records(utf8(data)), -1):
        cells = len(_cells(line, record))
        if cells != columns:
            raise InputError(f"{cells} cells, not {columns}", number)


def lines_of(data: bytes) -> list[int]:
    """Return the first line of each record, without the header."""
    return [line for line, _ in _records(utf8(data))][1:]


def _place(data: bytes, number: int) -> str:
    return f"line {lines_of(with_commas(data))[number]}"


FORMAT: Format = Format(_decode, _encode, _place)

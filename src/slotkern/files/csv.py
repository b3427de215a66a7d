"""Comma-separated values, through pyarrow; what is wrong is looked for here."""

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


# A record as Arrow takes it: quotes count where a cell begins with one, and a quoted
# cell may go on after the closing quote; any other quote is a character like all.
_TEXT = r'(?:"(?:[^"]++|"")*+"?)?+[^,\r\n]*+'
_RECORD = re.compile(rf"(?:{_TEXT},)*+{_TEXT}(?:\r\n|\r|\n|\Z)")
_CELL = re.compile(r'(?:"((?:[^"]++|"")*+)("?))?([^,\r\n]*)(,?)')


def _decode(data: bytes, memory: MemoryLimit) -> Columns:
    pa = pyarrow()
    data = with_commas(data)
    names = column_names(_header(utf8(data)))
    # A row of our own is the last one, unless a cell before it is not closed.
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
    """Return the table of a csv file, of which the first line is left out."""
    csv = pyarrow("csv")
    return csv.read_csv(
        arrow_file(data),
        # One block: threads would win nothing, and types are guessed from all rows.
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
    """Return a table whose columns are separated by `|`, as csv; any other as it is.

    So `sacct -P` and `sinfo -o` of Slurm write tables, without quotes. A `|` at the end
    of all lines separates nothing.
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
    """Return the names of the columns of any csv file, once they are sound."""
    return distinct_names(_header(utf8(data)))


def _header(text: str) -> list[str]:
    if not text or text.isspace():
        raise InputError("the file is empty")
    header = next(_cells(line, record) for line, record in _records(text))
    names = [name.strip() for name in header]
    if len(names) == 1 and (found := re.search(r"[;\t]", names[0])):
        # A comma may stand in its numbers, and a point between thousands.
        raise InputError(
            f"the columns are separated by {found[0]!r}, not by commas; read it with "
            f"pandas.read_csv(path, sep={found[0]!r}, decimal=',') or save it with "
            "commas between columns and points in numbers"
        )
    return names


def _numbers(name: str, cells: Any) -> NDArray[np.float64]:
    """Return the cells of one of the five fields as numbers."""
    pa, pc = pyarrow(), pyarrow("compute")
    cells = pc.utf8_trim_whitespace(cells)
    empty = pc.fill_null(pc.equal(cells, ""), True)
    if (row := pc.index(empty, True).as_py()) >= 0:
        raise InputError(f"{name} is empty", row)
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
        raise InputError(reason, good) from None


def _guess(columns: dict[str, Any], rows: int, memory: MemoryLimit) -> Columns:
    """Return the further columns, each in the type that all of its cells match."""
    pa, pc = pyarrow(), pyarrow("compute")
    trimmed = {name: pc.utf8_trim_whitespace(c) for name, c in columns.items()}
    # All columns are matched at once: a call for each would take longer than the work.
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
    """Return truths of shape (columns, rows), computed for all cells at once."""
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
    # Floats go as repr() writes them; text is quoted, so that an empty one is seen.
    writer = csv.writer(sink, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))
    return sink.getvalue().encode()


def _records(text: str) -> Iterator[tuple[int, str]]:
    """Yield each record that is not blank with its line; the first is the header."""
    line, end = 1, 0
    while end < len(text):
        match = _RECORD.match(text, end)
        assert match
        end, record = match.end(), match[0]
        if record.strip("\r\n"):
            yield line, record
        line += record.count("\n") + record.count("\r") - record.count("\r\n")


def _cells(line: int, record: str) -> list[str]:
    """Return the cells of a record."""
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
    """Raise the fault of the first record that is not closed or not of that length."""
    for number, (line, record) in enumerate(_records(utf8(data)), -1):
        cells = len(_cells(line, record))
        if cells != columns:
            raise InputError(f"{cells} cells, not {columns}", number)


def lines_of(data: bytes) -> list[int]:
    """Return the line in which each record begins, without the header."""
    return [line for line, _ in _records(utf8(data))][1:]


def _place(data: bytes, number: int) -> str:
    return f"line {lines_of(with_commas(data))[number]}"


FORMAT = Format(_decode, _encode, _place)

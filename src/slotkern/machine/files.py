"""Tables with arbitrary columns in files: nodes, busy times, jobs, prices, capacities.

`TABLE_FORMATS` is the one list of their formats, from which messages and the help of
commands are derived.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from slotkern.files import in_words
from slotkern.files.arrow import arrow_file, pyarrow
from slotkern.files.atomic import AnyPath, as_path, refuse_folder
from slotkern.files.columns import InputError, row_place, utf8
from slotkern.files.csv import (
    BOM,
    FORMAT,
    check_cells,
    header_of,
    lines_of,
    read_table,
    with_commas,
)
from slotkern.files.json import NOT_FINITE
from slotkern.foundation.checks import Source, quote

from .frames import (
    FileColumns,
    check_width,
    column_of,
    columns_of,
    with_column_context,
)

__all__ = ["TABLES", "TABLE_FORMATS", "read_columns"]


def read_columns(path: AnyPath, texts: Sequence[str] = ()) -> FileColumns:
    """Return the columns of a table in a file.

    Parameters
    ----------
    path : path
        ``.csv`` with a header line, ``.json`` (a list of objects), or ``.parquet``.
    texts : sequence of str
        The columns of a csv file that remain text even if all cells are numbers.

    Raises
    ------
    ValueError
        For another suffix or an invalid file; the message names the file.
    OSError
        If the file cannot be read.
    """
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_FORMATS:
        refuse_folder(path)
        raise ValueError(
            f"{path}: the suffix {suffix!r} is not one of {', '.join(TABLE_FORMATS)}"
        )
    return TABLE_FORMATS[suffix](path.read_bytes(), str(path), texts)


class _Lines:
    """Maps the records of a csv file to lines; computed on first use, for errors."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def _lines(self) -> list[int]:
        return lines_of(self._data)

    def __call__(self, record: int) -> str:
        return f"line {self._lines[record]}"


def _parquet(data: bytes, name: str, texts: Sequence[str]) -> FileColumns:
    """Read a parquet file, after a check of the memory that its text needs."""
    pa, pq = pyarrow(), pyarrow("parquet")
    try:
        schema = pq.ParquetFile(arrow_file(data)).schema_arrow
        words = [f.name for f in schema if f.type in (pa.string(), pa.large_string())]
        # Dictionary-encoded text needs no memory for repeated words.
        table = pq.ParquetFile(arrow_file(data), read_dictionary=words).read()
    except (pa.ArrowException, OSError) as error:
        raise _invalid(name, error) from None
    for word in words:
        longest = 0
        for chunk in table.column(word).chunks:
            lengths = pyarrow("compute").binary_length(chunk.dictionary)
            longest = max(longest, pyarrow("compute").max(lengths).as_py() or 0)
        try:
            check_width(longest, table.num_rows)
        except ValueError as error:
            raise ValueError(f"{name}: column {word!r:.80} has {error}") from None
    return FileColumns(columns_of(table, name), name)


def _csv(data: bytes, name: str, texts: Sequence[str]) -> FileColumns:
    """Read a csv file. Dates remain text, because a clock parses them."""
    pa = pyarrow()
    try:
        data = with_commas(data)
        names = header_of(data)
        try:
            table = read_table(
                data.removeprefix(BOM).lstrip(b"\r\n"),
                names,
                column_types=dict.fromkeys(texts, pa.string()),
                timestamp_parsers=["-"],
            )
        except pa.ArrowInvalid:
            check_cells(data, len(names))  # raises an error that names the line
            raise
    except InputError as fault:
        place = partial(FORMAT.place, data)
        raise fault.error(name, place) from None
    except pa.ArrowException as error:
        raise _invalid(name, error) from None
    return FileColumns(columns_of(table, name), Source(name, _Lines(data)))


def _invalid(name: str, error: Exception) -> ValueError:
    return ValueError(f"{name}: no valid table: {' '.join(str(error).split())}")


def _json(data: bytes, name: str, texts: Sequence[str]) -> FileColumns:
    """Read a list of objects; a key that an object lacks is an empty cell."""
    try:
        rows = json.loads(utf8(data))
    except InputError as fault:
        raise fault.error(name, row_place) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: no JSON: {error}") from None
    if not isinstance(rows, list):
        raise ValueError(f"{name}: a table in JSON is a list of objects")
    titles: dict[str, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"{name}: row {i} is no object: {quote(row)}")
        titles |= dict.fromkeys(row)
    cells = {title: [row.get(title) for row in rows] for title in titles}
    columns = {
        title: with_column_context(name, title, column_of, _with_infinities(values))
        for title, values in cells.items()
    }
    return FileColumns(columns, name)


def _with_infinities(cells: list[Any]) -> list[Any]:
    """Convert the texts for numbers that JSON lacks, in a column of numbers."""
    if not all(
        type(cell) in (int, float) or (type(cell) is str and cell in NOT_FINITE)
        for cell in cells
    ):
        return cells
    return [NOT_FINITE[cell] if type(cell) is str else cell for cell in cells]


#: The reader of each format: bytes, name in errors, and columns that remain text.
TABLE_FORMATS: dict[str, Callable[[bytes, str, Sequence[str]], FileColumns]] = {
    ".csv": _csv,
    ".json": _json,
    ".parquet": _parquet,
}
#: Their suffixes in words, for help.
TABLES = in_words(TABLE_FORMATS)

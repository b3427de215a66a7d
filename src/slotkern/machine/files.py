"""Tables with arbitrary columns in csv and parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from slotkern.files.arrow import arrow_file, pyarrow
from slotkern.files.atomic import AnyPath, as_path, refuse_folder
from slotkern.files.columns import InputError
from slotkern.files.csv import (
    BOM,
    FORMAT,
    check_cells,
    header_of,
    lines_of,
    read_table,
    with_commas,
)
from slotkern.foundation.checks import Source

from .frames import FileColumns, check_width, columns_of

__all__ = ["read_columns"]


def read_columns(path: AnyPath, texts: Sequence[str] = ()) -> FileColumns:
    """Return the columns of a table in a file.

    Parameters
    ----------
    path : path
        ``.csv`` with a header line, or ``.parquet``.
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
    if suffix not in (".csv", ".parquet"):
        refuse_folder(path)
        raise ValueError(f"{path}: the suffix {suffix!r} is not one of .csv, .parquet")
    data = path.read_bytes()
    if suffix == ".csv":
        data = with_commas(data)
    source = str(path) if suffix == ".parquet" else Source(str(path), _Lines(data))
    pa = pyarrow()
    try:
        packed = suffix == ".parquet"
        table = _parquet(data, str(path)) if packed else _csv(data, texts)
        return FileColumns(columns_of(table, str(path)), source)
    except InputError as fault:
        raise fault.error(str(path), partial(FORMAT.place, data)) from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: no valid table: {reason}") from None


class _Lines:
    """Maps the records of a csv file to lines; computed on first use, for errors."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def _lines(self) -> list[int]:
        return lines_of(self._data)

    def __call__(self, record: int) -> str:
        return f"line {self._lines[record]}"


def _parquet(data: bytes, name: str) -> Any:
    """Read a parquet file, after a check of the memory that its text needs."""
    pa, pq = pyarrow(), pyarrow("parquet")
    schema = pq.ParquetFile(arrow_file(data)).schema_arrow
    words = [f.name for f in schema if f.type in (pa.string(), pa.large_string())]
    # Dictionary-encoded text needs no memory for repeated words.
    table = pq.ParquetFile(arrow_file(data), read_dictionary=words).read()
    for word in words:
        longest = 0
        for chunk in table.column(word).chunks:
            lengths = pyarrow("compute").binary_length(chunk.dictionary)
            longest = max(longest, pyarrow("compute").max(lengths).as_py() or 0)
        try:
            check_width(longest, table.num_rows)
        except ValueError as error:
            raise ValueError(f"{name}: column {word!r:.80} has {error}") from None
    return table


def _csv(data: bytes, texts: Sequence[str]) -> Any:
    """Read a csv file. Dates remain text, because a clock parses them."""
    pa = pyarrow()
    names = header_of(data)
    try:
        return read_table(
            data.removeprefix(BOM).lstrip(b"\r\n"),
            names,
            column_types=dict.fromkeys(texts, pa.string()),
            timestamp_parsers=["-"],
        )
    except pa.ArrowInvalid:
        check_cells(data, len(names))  # raises an error that names the line
        raise

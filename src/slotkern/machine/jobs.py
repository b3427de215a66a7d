"""Conversion of tables of jobs, one row per job, to requests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import FIELDS, REQUEST_FIELDS, Request
from slotkern.files.atomic import AnyPath, as_path
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import meant, quote, row_label
from slotkern.foundation.special_fields import SPECIAL_FIELDS

from .calendar import NO_LIMIT, Moments
from .clock import is_number
from .files import read_columns
from .frames import FileColumns, columns_of, source_name

__all__ = [
    "Compound",
    "check_single",
    "is_table",
    "located_errors",
    "read_jobs",
    "request_of_row",
    "requests_of",
    "rows_of",
]

#: The columns that make jobs of several parts of some rows, in tables for `schedule`.
COMPOUND_COLUMNS = ("after", "any_of", "together", "role")
#: The columns of a table of jobs.
COLUMNS = ("name", *REQUEST_FIELDS, *SPECIAL_FIELDS, "walltime", "reference")
#: Columns of names and expressions, which are text although they may look like numbers.
TEXT_COLUMNS = (
    *("name", "where", "criterion", "user", *COMPOUND_COLUMNS),
    *(name for name, field in SPECIAL_FIELDS.items() if field.kind == "text"),
)
#: The columns of amounts by name: mappings, or columns such as ``share.cores``.
_AMOUNTS = tuple(
    name for name, field in SPECIAL_FIELDS.items() if field.kind == "amounts"
)
#: The columns of whole numbers.
_INTEGERS = (
    "nodes",
    *(name for name, field in SPECIAL_FIELDS.items() if field.kind == "integer"),
)
#: The columns of numbers in clock units, or of dates and durations.
TIME_COLUMNS = (
    *("arrival", "start", "walltime"),
    *(name for name, field in FIELDS.items() if field.kind != "number"),
)

#: The columns in which Slurm's words for no limit are accepted.
_LIMITS = tuple(
    name for name in TIME_COLUMNS if name in FIELDS and FIELDS[name].default == math.inf
)
#: The start of an error about a request without a name.
_POSITION = re.compile(r"requests\[([0-9]+)\](.*)", re.S)

Row = dict[str, Any]


class Compound:
    """Base class of the jobs of several parts of `slotkern.compound`."""

    __slots__ = ()

    name: str | None

    @property
    def parts(self) -> tuple[Any, ...]:
        """The requests, or jobs, in this job."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each part, or its kind and number."""
        raise NotImplementedError

    def replace(self, **changes: Any) -> Compound:
        """Return a copy with some fields changed."""
        raise NotImplementedError


def check_single(request: Any, who: str) -> None:
    """Raise TypeError for a value that is not a Request, for searches without others.

    Parameters
    ----------
    request : object
    who : str
        The name of the search, for the error.
    """
    if not isinstance(request, Request):
        raise TypeError(
            f"{who} takes a Request, got {type(request).__name__}"
            + ("; find_window plans it" if isinstance(request, Compound) else "")
        )


def is_table(jobs: Any) -> bool:
    """Return whether jobs are a table of any kind, rather than requests."""
    names = getattr(getattr(jobs, "dtype", None), "names", None)
    return (
        isinstance(jobs, Mapping)
        or names is not None
        or hasattr(jobs, "columns")
        or hasattr(jobs, "__arrow_c_stream__")
    )


def rows_of(table: Any, more: Sequence[str] = (), name: str = "jobs") -> list[Row]:
    """Convert each row of a table of jobs to a dict without the empty cells.

    Parameters
    ----------
    table : table
        Any table that `columns_of` accepts. Its columns are ``nodes``, ``volume`` or
        ``walltime``, and the other fields of `Request`; a column may be one value.
        Amounts by name are one column each, as ``share.cores``.
    more : sequence of str
        Further allowed columns besides those of `Request`.
    name : str
        The name of the table in errors, unless it is of a file.

    Raises
    ------
    ValueError, TypeError
        For an unknown or missing column, an invalid value, and duplicate names; the
        message contains the column, the row (both rows) and the value.
    """
    name = source_name(table, name)
    columns = columns_of(table, name)
    for title in columns:
        if title not in (*COLUMNS, *more) and not _amount_of(title, more):
            if title in COMPOUND_COLUMNS:
                raise ValueError(
                    f"{name}: the column {title!r} makes jobs of several parts, which "
                    "SlotPool.schedule and `slotkern schedule` read, and batches do not"
                )
            raise ValueError(
                f"{name}: unknown column {title!r}; jobs have "
                f"{', '.join((*COLUMNS, *more))}{meant(title, (*COLUMNS, *more))}"
            )
    if "nodes" not in columns:
        there = ", ".join(columns) or "none"
        raise ValueError(f"{name} has no column 'nodes'; it has {there}")
    if not columns.keys() & {"volume", "walltime"}:
        raise ValueError(
            f"{name} has neither a column 'volume' nor 'walltime'; it has "
            f"{', '.join(columns)}"
        )
    lists = {title: _values(column) for title, column in columns.items()}
    count = max(map(len, lists.values()))
    found: list[Row] = [{} for _ in range(count)]
    for title, values in lists.items():
        given = values * count if len(values) == 1 < count else values
        for i, value in enumerate(given):
            if not _is_empty(value):
                try:
                    _store(found[i], title, value, more)
                except (ValueError, TypeError) as error:
                    at = f"{name}, {row_label(name, i)}, column {title!r}"
                    raise type(error)(f"{at}: {error}") from None
    for i, row in enumerate(found):
        needed = ["volume", "walltime"] if "walltime" in columns else ["volume"]
        for titles in (["nodes"], needed):
            if not row.keys() & set(titles):
                listed = " and ".join(map(repr, titles))
                at = f"{name}, {row_label(name, i)}, column {listed}"
                raise ValueError(f"{at}: is empty")
    _check_names(found, name)
    return found


def _amount_of(title: str, more: Sequence[str]) -> tuple[str, str] | None:
    """Return ("share", "cores") for a column ``share.cores``; None for others.

    A column of `more` has the name of a special field, but another meaning.
    """
    field, dot, name = title.partition(".")
    known = bool(dot and name) and field in _AMOUNTS and field not in more
    return (field, name) if known else None


def _store(row: Row, title: str, value: Any, more: Sequence[str]) -> None:
    """Store a cell that is not empty in the dict of its row."""
    if amount := _amount_of(title, more):
        if found := _cell(title, value):
            row.setdefault(amount[0], {})[amount[1]] = found
    elif title in _AMOUNTS and title not in more:
        row[title] = value if isinstance(value, Mapping) else str(value)
    else:
        row[title] = _cell(title, value)


def _check_names(rows: list[Row], name: str) -> None:
    """Refuse two jobs with the same name, which results could not distinguish."""
    first: dict[str, int] = {}
    for i, row in enumerate(rows):
        job = row.get("name")
        if job is not None and first.setdefault(job, i) != i:
            raise ValueError(
                f"{name}, {row_label(name, i)}, column 'name': {job!r} is the name of "
                f"{row_label(name, first[job])}"
            )


def request_of_row(row: Row, number: int, name: str) -> Request:
    """Create the request of a row; errors contain the table and the row."""
    try:
        return Request(**row)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}, {row_label(name, number)}: {error}") from None


def requests_of(jobs: Any, name: str = "jobs") -> list[Any]:
    """Convert a mapping of requests by name, a table, or an iterable to requests.

    Raises
    ------
    TypeError, ValueError
        For other values, and for an invalid row of a table.
    """
    if isinstance(jobs, Mapping) and all(
        isinstance(v, Request | Compound) for v in jobs.values()
    ):
        return [
            request if request.name == name else request.replace(name=str(name))
            for name, request in jobs.items()
        ]
    if not is_table(jobs):
        try:
            requests = iter(jobs)
        except TypeError:
            raise TypeError(
                "requests must be a table, or a sequence of Request, got "
                f"{type(jobs).__name__}"
            ) from None
        return list(requests)
    name = source_name(jobs, name)
    rows = rows_of(jobs, COMPOUND_COLUMNS, name)
    if any(row.keys() & set(COMPOUND_COLUMNS) for row in rows):
        found: list[Any] = adapter("jobs_of_rows")(rows, name)
        return found
    return [request_of_row(row, i, name) for i, row in enumerate(rows)]


@contextmanager
def located_errors(
    table: FileColumns, requests: Sequence[Any], names: Sequence[str] | None = None
) -> Iterator[None]:
    """Put the file and its line at the start of an error about a request.

    A search names the request, or numbers it as ``requests[i]`` if it has no name. The
    number is that of a row unless rows were joined to jobs of several parts; the error
    is then left as it is. `names` are the names of the rows, by default those in the
    table.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        text = str(error)
        match = _POSITION.match(text)
        rows = max((len(_values(column)) for column in table.values()), default=0)
        if names is None:
            names = list(_values(table["name"])) if "name" in table else []
        named = [k for k, name in enumerate(names) if text.startswith(f"{name}: ")]
        if match is not None and len(requests) == rows:
            row, rest = int(match[1]), match[2]
        elif len(named) == 1:
            row, rest = named[0], f": {text}"
        else:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{table.source}, {row_label(table.source, row)}{rest}") from None


def read_jobs(path: AnyPath) -> FileColumns:
    """Return the columns of a table of jobs in a file, for `rows_of`.

    Parameters
    ----------
    path : path
        ``.csv`` with a header, ``.parquet``, or ``.json`` (a list of objects). A column
        of times of a csv file is numeric if all of its cells are numbers.

    Raises
    ------
    ValueError
        For another suffix or an invalid table; the message names the file.
    OSError
        If the file cannot be read.
    """
    columns = read_columns(path, (*TEXT_COLUMNS, *TIME_COLUMNS))
    if as_path(path).suffix.lower() == ".csv":
        for title in columns.keys() & set(TIME_COLUMNS):
            columns[title] = _if_numbers(columns[title])
    return columns


def _if_numbers(cells: NDArray[Any]) -> NDArray[Any]:
    """Convert cells to numbers if all that are not empty are numbers."""
    texts = [str(cell).strip() for cell in cells.tolist()]
    try:
        return np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return cells


def _values(column: NDArray[Any] | Moments) -> list[Any]:
    """Convert a column to values that `Request` accepts."""
    if isinstance(column, Moments):
        texts = np.datetime_as_string(column.values)
        return ["" if text == "NaT" else f"{text}Z" for text in texts.tolist()]
    column = np.atleast_1d(column)
    # Not tolist(), which converts nanoseconds to integers without a unit.
    return list(column) if column.dtype.kind in "mM" else column.tolist()


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _cell(title: str, value: Any) -> Any:
    """Convert a cell that is not empty to the type of its column."""
    if title in TEXT_COLUMNS:
        return str(value)
    if title == "limits":
        return value if isinstance(value, list | tuple) else str(value)
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    if title in TIME_COLUMNS and not is_number(value):
        if title in _LIMITS and str(value).strip().upper() in NO_LIMIT:
            return math.inf
        return value
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{quote(value)} is no number") from None
    except OverflowError:
        raise ValueError(f"{quote(value)} is too large") from None
    if title not in _INTEGERS:
        return found
    if not found.is_integer():
        raise ValueError(f"{quote(value)} is no integer")
    return int(found)

"""A batch: requests with names, a criterion each and an order, and tables of them."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern._core import in_numbers
from slotkern._find import CRITERIA
from slotkern._request import REQUEST_FIELDS, Request
from slotkern.extras import extra

if TYPE_CHECKING:
    from slotkern.typing import Slots

__all__ = ["Batch", "read_batch"]

#: Columns of a table of jobs: the fields of Request, and what the batch adds.
FIELDS = REQUEST_FIELDS
OWN = ("name", "criterion", "order")
DEFAULT_CRITERION = "finish"


@dataclass(frozen=True)
class Batch:
    """Jobs to be scheduled as a whole.

    Parameters
    ----------
    requests : sequence of Request
    names : sequence of str, optional
        All different; where not given, what the requests are called, else ``job 1``,
        ``job 2``, ...
    criteria : sequence of str, optional
        Each user's own criterion, of `CRITERIA`; ``"finish"`` where not given.

    Raises
    ------
    ValueError, TypeError
        Naming the job; for names that are used twice, both.
    """

    requests: tuple[Request, ...]
    names: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()

    def __init__(
        self,
        requests: Iterable[Request],
        names: Sequence[str] | None = None,
        criteria: Sequence[str] | None = None,
    ) -> None:
        jobs = tuple(requests)
        for i, request in enumerate(jobs):
            if not isinstance(request, Request):
                raise TypeError(
                    f"requests[{i}] must be a Request, got {type(request).__name__}"
                )
        if names is None:
            names = [job.name or f"job {i}" for i, job in enumerate(jobs, 1)]
        if criteria is None:
            criteria = [DEFAULT_CRITERION] * len(jobs)
        for title, column in (("names", names), ("criteria", criteria)):
            if isinstance(column, str) or len(column) != len(jobs):
                raise ValueError(
                    f"{title} must have one entry for each of {len(jobs)} requests"
                )
        first: dict[str, int] = {}
        for i, name in enumerate(names):
            if not isinstance(name, str) or not name:
                raise TypeError(f"names[{i}] must be text, got {name!r}")
            if name in first:
                raise ValueError(
                    f"names[{i}] = {name!r} is the name of job {first[name]} already"
                )
            first[name] = i
        for i, criterion in enumerate(criteria):
            if criterion not in CRITERIA:
                raise ValueError(
                    f"criteria[{i}] must be one of {', '.join(CRITERIA)}; got "
                    f"{criterion!r}"
                )
        object.__setattr__(self, "requests", jobs)
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "criteria", tuple(criteria))

    def __len__(self) -> int:
        return len(self.requests)

    def named_requests(self) -> tuple[Request, ...]:
        """The requests, each called by its name here."""
        pairs = zip(self.requests, self.names, strict=True)
        return tuple(job.replace(name=name) for job, name in pairs)

    def in_numbers(self, slots: Slots) -> Batch:
        """The same jobs, with dates and durations in numbers of the slots' clock."""
        asked = tuple([in_numbers(slots, request) for request in self.requests])
        if all(map(operator.is_, asked, self.requests)):
            return self
        return Batch(asked, self.names, self.criteria)

    @staticmethod
    def of(jobs: Any) -> Batch:
        """Return the batch that a sequence of requests, a table or a batch means.

        Parameters
        ----------
        jobs : Batch, sequence of Request, pandas DataFrame, pyarrow Table or mapping
            A table has one row a job and the columns of `Request`, with ``nodes`` and
            ``volume`` at least, and may have ``name``, ``criterion`` and ``order``
            (smaller first). A cell of ``limits`` is text, ``"sum(storage) >= 500 and
            sum(power) <= 12"``, or a list of such. Empty cells stand for the defaults.

        Raises
        ------
        ValueError, TypeError
            Naming the row, the column and the value.
        """
        if isinstance(jobs, Batch):
            return jobs
        if hasattr(jobs, "to_pydict"):
            return _from_columns(jobs.to_pydict())
        if hasattr(jobs, "to_dict") and hasattr(jobs, "columns"):
            return _from_columns(
                {str(name): jobs[name].tolist() for name in jobs.columns}
            )
        if isinstance(jobs, dict):
            return _from_columns(
                {
                    str(name): column.tolist()
                    if isinstance(column, np.ndarray)
                    else list(column)
                    for name, column in jobs.items()
                }
            )
        return Batch(jobs)


def read_batch(path: str | os.PathLike[str]) -> Batch:
    """Read a table of jobs.

    Parameters
    ----------
    path : str or path-like
        ``.csv`` with a header, ``.parquet``, or ``.json`` (a list of objects). The
        columns are those of `Batch.of`.

    Returns
    -------
    Batch

    Raises
    ------
    ValueError, TypeError
        Naming the file, the row and the column.
    OSError
        If it cannot be read.
    """
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    try:
        if suffix == ".csv":
            return _from_columns(_csv_columns(name))
        if suffix == ".json":
            return _from_columns(_json_columns(name))
        if suffix == ".parquet":
            with extra():
                import pyarrow.parquet

            return _from_columns(pyarrow.parquet.read_table(name).to_pydict())
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from None
    raise ValueError(f"{name}: jobs are read from .csv, .json or .parquet files")


def _csv_columns(path: str) -> dict[str, list[Any]]:
    import csv

    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    if not rows:
        raise ValueError("the file is empty; a header names the columns")
    header = [title.strip() for title in rows[0]]
    if len(set(header)) < len(header):
        double = next(title for title in header if header.count(title) > 1)
        raise ValueError(f"column {double!r} stands twice in the header")
    body = [row for row in rows[1:] if row]
    for i, row in enumerate(body):
        if len(row) != len(header):
            raise ValueError(f"row {i} has {len(row)} cells for {len(header)} columns")
    return {title: [row[k].strip() for row in body] for k, title in enumerate(header)}


def _json_columns(path: str) -> dict[str, list[Any]]:
    import json

    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    if not isinstance(rows, list):
        raise ValueError("jobs in JSON are a list of objects")
    titles: dict[str, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"row {i} is no object: {row!r}")
        titles |= dict.fromkeys(row)
    return {title: [row.get(title) for row in rows] for title in titles}


def _from_columns(columns: dict[str, list[Any]]) -> Batch:
    for title in columns:
        if title not in (*FIELDS, *OWN):
            raise ValueError(
                f"unknown column {title!r}; jobs have {', '.join((*OWN, *FIELDS))}"
            )
    for title in ("nodes", "volume"):
        if title not in columns:
            raise ValueError(f"column {title!r} is missing")
    count = len(columns["nodes"])
    cells = {
        title: [_cell(title, i, value) for i, value in enumerate(values)]
        for title, values in columns.items()
    }
    order = range(count)
    if "order" in cells:
        ranks = [i if rank is None else rank for i, rank in enumerate(cells["order"])]
        order = sorted(range(count), key=lambda i: ranks[i])  # type: ignore[assignment]
    first: dict[str, int] = {}
    for i, name in enumerate(cells.get("name", ())):
        if name is not None and first.setdefault(name, i) != i:
            raise ValueError(
                f"row {i}, column 'name': {name!r} is the name of row {first[name]}"
            )
    requests, names, criteria = [], [], []
    for i in order:
        given = {
            title: cells[title][i]
            for title in FIELDS
            if title in cells and cells[title][i] is not None
        }
        for title in ("nodes", "volume"):
            if title not in given:
                raise ValueError(f"row {i}, column {title!r}: is empty")
        try:
            requests.append(Request(given.pop("nodes"), given.pop("volume"), **given))
        except (ValueError, TypeError) as error:
            raise ValueError(f"row {i}: {error}") from None
        names.append(_own(cells, "name", i) or f"job {i + 1}")
        criterion = _own(cells, "criterion", i) or DEFAULT_CRITERION
        if criterion not in CRITERIA:
            raise ValueError(
                f"row {i}, column 'criterion': must be one of {', '.join(CRITERIA)}; "
                f"got {criterion!r}"
            )
        criteria.append(criterion)
    return Batch(requests, names, criteria)


def _own(cells: dict[str, list[Any]], title: str, row: int) -> str | None:
    value = cells[title][row] if title in cells else None
    return None if value is None else str(value)


def _cell(title: str, row: int, value: Any) -> Any:
    """The value of a cell, or None where it is empty."""
    if value is None or value == "" or value != value:
        return None
    if title in ("where", "name", "criterion"):
        return str(value)
    if title == "limits":
        return value if isinstance(value, list | tuple) else str(value)
    if isinstance(value, bool):
        raise TypeError(f"row {row}, column {title!r}: {value!r} is no number")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"row {row}, column {title!r}: {value!r} is no number"
        ) from None
    if title == "nodes":
        if not number.is_integer():
            raise ValueError(f"row {row}, column 'nodes': {value!r} is no integer")
        return int(number)
    return number

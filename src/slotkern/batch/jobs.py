"""A batch of jobs: requests with names, criteria and an order; tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA
from slotkern._kernels.slots import resolve_times
from slotkern.files.atomic import AnyPath
from slotkern.foundation.checks import meant, row_label
from slotkern.machine.frames import source_name
from slotkern.machine.jobs import (
    is_table,
    located_errors,
    read_jobs,
    request_of_row,
    requests_of,
    rows_of,
)

if TYPE_CHECKING:
    from slotkern.machine.frames import FileColumns
    from slotkern.typing import Slots

__all__ = ["Batch", "flow_of", "located_jobs", "read_batch"]

#: Further columns of a table of jobs besides those of `slotkern.machine.jobs`.
BATCH_COLUMNS = ("criterion", "order")
#: The further columns of a table of jobs that arrive one after another.
FLOW_COLUMNS = ("arrival", "share")
DEFAULT_CRITERION = "finish"


@dataclass(frozen=True)
class Batch:
    """Jobs that are scheduled together.

    Parameters
    ----------
    requests : sequence of Request
    names : sequence of str, optional
        Unique names; by default the names of the requests, else ``job 1``, ``job 2``,
        ...
    criteria : sequence of str, optional
        The user's criterion for each job, of `CRITERIA`; ``"finish"`` by default.

    Raises
    ------
    ValueError, TypeError
        Naming the job; for a duplicate name, both jobs.
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
                    f"{criterion!r}{meant(criterion, CRITERIA)}"
                )
        object.__setattr__(self, "requests", jobs)
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "criteria", tuple(criteria))

    def __len__(self) -> int:
        return len(self.requests)

    @cached_property
    def named_requests(self) -> tuple[Request, ...]:
        """The requests, each with its name in the batch."""
        pairs = zip(self.requests, self.names, strict=True)
        return tuple(
            job if job.name == name else job.replace(name=name) for job, name in pairs
        )

    @cached_property
    def _only_numbers(self) -> bool:
        return all(request.as_given is None for request in self.requests)

    def resolve_times(self, slots: Slots) -> Batch:
        """Return the jobs with dates and durations as numbers of the slots' clock."""
        if self._only_numbers and getattr(slots, "_capacities", None) is None:
            return self
        requests = [resolve_times(slots, request) for request in self.named_requests]
        return Batch(requests, self.names, self.criteria)

    @staticmethod
    def from_jobs(jobs: Any) -> Batch:
        """Return a batch made from a sequence of requests, a table or a batch.

        Parameters
        ----------
        jobs : Batch, sequence of Request, mapping of name to Request, or table
            A table, as for `Machine`, has one row per job and the columns of
            `Request`, at least ``nodes`` and ``volume`` or ``walltime``; it may have
            ``name``, ``criterion`` and ``order`` (smaller first). A cell of ``limits``
            is text, ``"sum(storage) >= 500 and sum(power) <= 12"``, or a list of such
            texts. Empty cells stand for the defaults. Times may be dates and durations
            if the slots have a clock.

        Raises
        ------
        ValueError, TypeError
            Naming the row, the column and the value.
        """
        if isinstance(jobs, Batch):
            return jobs
        if isinstance(jobs, Mapping) and all(
            isinstance(request, Request) for request in jobs.values()
        ):
            return Batch(requests_of(jobs))
        return _from_table(jobs, "jobs") if is_table(jobs) else Batch(jobs)


def read_batch(path: AnyPath) -> Batch:
    """Read a table of jobs.

    Parameters
    ----------
    path : str or path-like
        ``.csv`` with a header, ``.parquet``, or ``.json`` (a list of objects). The
        columns are those of `Batch.from_jobs`.

    Returns
    -------
    Batch

    Raises
    ------
    ValueError, TypeError
        Naming the file, the row and the column.
    OSError
        If the file cannot be read.
    """
    return _from_table(read_jobs(path), "jobs")


def flow_of(
    table: FileColumns,
) -> tuple[Batch, list[tuple[str, Any]], list[float] | None]:
    """Return the jobs of a table that arrive one after another.

    Parameters
    ----------
    table : FileColumns
        As for `read_batch`, with the columns ``arrival`` (a number of the slots' clock
        or a date) and, optionally, ``share`` (the true length as a share of the
        reserved one).

    Returns
    -------
    batch : Batch
    arrivals : list of (str, object)
        One per job: its place in the file for errors, and its value.
    shares : list of float or None
        One per job; 1 for an empty cell. None without the column.

    Raises
    ------
    ValueError, TypeError
        Naming the file, the row and the column.
    """
    name = source_name(table, "jobs")
    if "arrival" not in table:
        raise ValueError(
            f"{name} has no column 'arrival', the time at which each job arrives; it "
            f"has {', '.join(table) or 'none'}{meant('arrival', table)}"
        )
    rows = _rows_in_order(table, name, (*BATCH_COLUMNS, *FLOW_COLUMNS))
    arrivals, shares = [], []
    for i, row in rows:
        place = f"{name}, {row_label(name, i)}, column 'arrival'"
        if "arrival" not in row:
            raise ValueError(f"{place}: is empty")
        arrivals.append((place, row.pop("arrival")))
        share = row.pop("share", 1.0)
        if not 0 < share <= 1:
            raise ValueError(
                f"{name}, {row_label(name, i)}, column 'share': {share:g} is not a "
                "share of the reserved length in (0, 1]"
            )
        shares.append(share)
    return _batch_of(rows, name), arrivals, shares if "share" in table else None


def _from_table(table: Any, name: str) -> Batch:
    name = source_name(table, name)
    return _batch_of(_rows_in_order(table, name, BATCH_COLUMNS), name)


def _rows_in_order(
    table: Any, name: str, more: Sequence[str]
) -> list[tuple[int, dict[str, Any]]]:
    """Return pairs of row number and row, sorted by the column ``order``."""
    rows = rows_of(table, more, name)
    for i, row in enumerate(rows):
        criterion = row.get("criterion", DEFAULT_CRITERION)
        if criterion not in CRITERIA:
            raise ValueError(
                f"{name}, {row_label(name, i)}, column 'criterion': must be one of "
                f"{', '.join(CRITERIA)}; got {criterion!r}"
                f"{meant(criterion, CRITERIA)}"
            )
    order = sorted(range(len(rows)), key=lambda i: rows[i].pop("order", i))
    return [(i, rows[i]) for i in order]


def _batch_of(rows: list[tuple[int, dict[str, Any]]], name: str) -> Batch:
    criteria = [row.pop("criterion", DEFAULT_CRITERION) for _, row in rows]
    names = [row.pop("name", _default_name(i)) for i, row in rows]
    first: dict[str, int] = {}
    for (i, _), each in sorted(
        zip(rows, names, strict=True), key=lambda job: job[0][0]
    ):
        if each in first:
            raise ValueError(
                f"{name}, {row_label(name, i)}, column 'name': {each!r} is the name of "
                f"{row_label(name, first[each])} already"
            )
        first[each] = i
    requests = [request_of_row(row, i, name) for i, row in rows]
    return Batch(requests, names, criteria)


def _default_name(row: int) -> str:
    return f"job {row + 1}"


@contextmanager
def located_jobs(table: FileColumns, batch: Batch) -> Iterator[None]:
    """Put the file and its line at the start of an error about a job of a batch."""
    rows = rows_of(table, (*BATCH_COLUMNS, *FLOW_COLUMNS), table.source)
    names = [row.get("name", _default_name(i)) for i, row in enumerate(rows)]
    with located_errors(table, batch.requests, names):
        yield

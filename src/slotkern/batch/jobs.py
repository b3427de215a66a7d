"""A batch: requests with names, a criterion each and an order, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from slotkern._core import in_numbers
from slotkern._find import CRITERIA
from slotkern._request import Request
from slotkern.checks import row_of
from slotkern.files.whole import AnyPath
from slotkern.machine.frames import called
from slotkern.machine.jobs import (
    is_table,
    read_jobs,
    request_of,
    requests_of,
    rows_of,
)

if TYPE_CHECKING:
    from slotkern.typing import Slots

__all__ = ["Batch", "read_batch"]

#: What a table of jobs may have beside the columns of `slotkern.machine.jobs`.
OWN = ("criterion", "order")
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

    @cached_property
    def named_requests(self) -> tuple[Request, ...]:
        """The requests, each called by its name here."""
        pairs = zip(self.requests, self.names, strict=True)
        return tuple(
            job if job.name == name else job.replace(name=name) for job, name in pairs
        )

    @cached_property
    def _only_numbers(self) -> bool:
        return all(request.said is None for request in self.requests)

    def in_numbers(self, slots: Slots) -> Batch:
        """The same jobs, with dates and durations in numbers of the slots' clock."""
        if self._only_numbers:
            return self
        asked = [in_numbers(slots, request) for request in self.named_requests]
        return Batch(asked, self.names, self.criteria)

    @staticmethod
    def of(jobs: Any) -> Batch:
        """Return the batch that a sequence of requests, a table or a batch means.

        Parameters
        ----------
        jobs : Batch, sequence of Request, mapping of name to Request, or table
            A table, as `Machine` takes them, has one row a job and the columns of
            `Request`, with ``nodes`` and ``volume`` or ``walltime`` at least, and may
            have ``name``, ``criterion`` and ``order`` (smaller first). A cell of
            ``limits`` is text, ``"sum(storage) >= 500 and sum(power) <= 12"``, or a
            list of such. Empty cells stand for the defaults. Times may be dates and
            durations in words, where the slots have a clock.

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
        return _of_table(jobs, "jobs") if is_table(jobs) else Batch(jobs)


def read_batch(path: AnyPath) -> Batch:
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
    return _of_table(read_jobs(path), "jobs")


def _of_table(table: Any, name: str) -> Batch:
    name = called(table, name)
    rows = rows_of(table, OWN, name)
    for i, row in enumerate(rows):
        criterion = row.get("criterion", DEFAULT_CRITERION)
        if criterion not in CRITERIA:
            raise ValueError(
                f"{name}, {row_of(name, i)}, column 'criterion': must be one of "
                f"{', '.join(CRITERIA)}; got {criterion!r}"
            )
    order = sorted(range(len(rows)), key=lambda i: rows[i].pop("order", i))
    criteria = [rows[i].pop("criterion", DEFAULT_CRITERION) for i in order]
    names = [rows[i].pop("name", f"job {i + 1}") for i in order]
    requests = [request_of(rows[i], i, name) for i in order]
    return Batch(requests, names, criteria)

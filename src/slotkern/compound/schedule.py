"""`SlotPool.schedule` for queues that contain jobs of several parts.

Jobs are planned and booked in order. Requests between two jobs of several parts are one
call of the compiled loop. A plan is booked as a whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.base import REASONS
from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.compound.find import check_criterion, find_best
from slotkern.compound.jobs import (
    AnyOf,
    Chain,
    Job,
    Together,
    check_job,
    requests_in,
)
from slotkern.compound.plan import Plan
from slotkern.compound.search import CompoundSearch
from slotkern.foundation.errors import UndecidedError

if TYPE_CHECKING:
    from slotkern._kernels.pool import Bookings, SlotPool

__all__ = ["schedule_compounds"]


class _Done:
    """The windows and plans booked so far, in the order of the jobs."""

    def __init__(self, pool: SlotPool, criterion: str, shape: str) -> None:
        self.pool, self.criterion, self.shape = pool, criterion, shape
        self.windows: list[Window | Plan | None] = []
        self.reasons: list[int] = []
        self.names: list[str | None] = []

    def add(self, job: Job, window: Window | Plan | None, reason: int) -> None:
        self.windows.append(window)
        self.reasons.append(reason)
        name = job.name
        if name is None and window is None and isinstance(job, Chain):
            stages = [stage.name for stage in job.stages]  # in a table each has one
            name = ", ".join(map(str, stages)) if all(stages) else None
        self.names.append(name)

    def extend(self, bookings: Bookings) -> None:
        self.windows += bookings
        self.reasons += bookings.reason.tolist()
        self.names += bookings.names or [None] * len(bookings)

    def bookings(self) -> Bookings:
        from slotkern._kernels.pool import bookings_from_windows

        reasons: NDArray[np.uint8] = np.array(self.reasons, np.uint8)
        return bookings_from_windows(
            *(self.windows, reasons, self.criterion, self.shape),
            *(self.names, self.pool.context),
        )


def schedule_compounds(
    pool: SlotPool, jobs: Any, criterion: str, shape: str, owner: str | None
) -> Bookings:
    """Find and book a window or plan for each job; see `SlotPool.schedule`."""
    given = list(jobs)
    done = _Done(pool, criterion, shape)
    try:
        _check(done, given)
        _run(done, given, owner)
    except BaseException as error:
        some = getattr(error, "bookings", None)
        if some is not None:  # of the requests that the compiled loop has processed
            done.extend(some)
        error.bookings = done.bookings()  # type: ignore[attr-defined]
        raise
    return done.bookings()


def _check(done: _Done, jobs: list[Job]) -> None:
    """Raise the first error of the jobs that is known before a search."""
    from slotkern._kernels.pool import check_queued

    for i, job in enumerate(jobs):
        check_job(job, f"requests[{i}]")
        single = isinstance(job, Request)
        if not single:
            check_criterion(job, _criterion_for(job, done.criterion))
        for request in requests_in(job):
            check_queued(done.pool, request, i, single=single)


def _criterion_for(job: Job, criterion: str) -> str:
    """Return the criterion of a job: for chains their finish, if time is minimized."""
    return "finish" if isinstance(job, Chain) and criterion == "start" else criterion


def _run(done: _Done, jobs: list[Job], owner: str | None) -> None:
    from slotkern._kernels.pool import SlotPool

    pool, shape = done.pool, done.shape
    waiting: list[Request] = []

    def flush() -> None:
        some, waiting[:] = waiting[:], []
        if some:
            criterion: Any = done.criterion
            options: Any = {"shape": shape}
            # That of the base class: a shared pool stores one call for all jobs.
            done.extend(
                SlotPool.schedule(pool, some, criterion, owner=owner, **options)
            )

    for job in jobs:
        if isinstance(job, Request):
            waiting.append(job)
            continue
        flush()
        criterion = _criterion_for(job, done.criterion)
        try:
            plan = _find_and_book(pool, job, criterion, shape, owner)
            reason = 0 if plan is not None else _reason(pool, job, criterion, shape)
        except UndecidedError:
            plan, reason = None, REASONS.index("undecided")
        done.add(job, plan, reason)
    flush()


def _find_and_book(
    pool: SlotPool, job: Job, criterion: str, shape: str, owner: str | None
) -> Plan | None:
    """Book the best plan; search again if another thread has booked a part of it."""
    from slotkern._kernels.pool import SlotPool

    refused = None
    while True:
        plan = find_best(CompoundSearch(pool, job, shape), job, criterion)
        if plan is None:
            return None
        try:
            SlotPool.book(pool, plan, owner)
        except ValueError:
            if plan == refused:
                raise
            refused = plan
        else:
            return plan


def _reason(pool: SlotPool, job: Job, criterion: str, shape: str) -> int:
    """Return the reason of a job without a plan, as an index of REASONS."""
    for word, changes in (("budget", {"budget": np.inf}), ("limits", {"limits": ()})):
        lifted = _lifted(job, changes)
        if (
            lifted != job
            and find_best(CompoundSearch(pool, lifted, shape), lifted, criterion)
            is not None
        ):
            return int(REASONS.index(word))
    nodes = len(pool.nodes)
    most = max(
        min(
            sum(request.nodes for request in requests_in(part))
            for part in (stage.options if isinstance(stage, AnyOf) else (stage,))
        )
        for stage in (job.stages if isinstance(job, Chain) else (job,))
    )
    return int(REASONS.index("nodes" if most > nodes else "time"))


def _lifted(job: Any, changes: dict[str, Any]) -> Any:
    """Return a job without some limits, of all its parts."""
    if isinstance(job, Request):
        return job.replace(**changes)
    parts = tuple(_lifted(part, changes) for part in job.parts)
    if isinstance(job, Together):
        return Together(parts, name=job.name, budget=changes.get("budget", job.budget))
    if isinstance(job, AnyOf):
        return AnyOf(parts, name=job.name)
    return job.replace(stages=parts)

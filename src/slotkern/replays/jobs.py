"""Conversion of the rows of a trace into the jobs of a replay."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import hint_keywords, integer, number, one_of
from slotkern.foundation.logger import log
from slotkern.machine.frames import columns_of
from slotkern.machine.jobs import is_table
from slotkern.replays.cluster import Cluster
from slotkern.traces.clean import partial_records, width_of
from slotkern.traces.trace import SWF, Trace

__all__ = ["ArrivalQueue", "FlowJobs", "as_trace", "prepare_jobs", "resample_weeks"]

WEEK = 7 * 86400.0
#: Limits of `resample_weeks`: weeks, and jobs (a few copies of 152 bytes each).
MAX_WEEKS, MAX_FLOW = 10**6, 2**24


@dataclass(frozen=True)
class FlowJobs:
    """The jobs of a replay, sorted by submission, as columns; times in seconds.

    `dropped` counts the jobs that were left out, by reason.
    """

    row: NDArray[np.int64]  # row in the trace
    submit: NDArray[np.float64]
    run: NDArray[np.float64]
    estimate: NDArray[np.float64]
    width: NDArray[np.int32]
    user: NDArray[np.int64]
    site: NDArray[np.int64]  # row of the site in the cluster
    dropped: dict[str, int]
    killed: NDArray[np.bool_]  # run time cut at the requested time
    # index of the job that each job waits for, or -1
    predecessor: NDArray[np.int32] | None = None
    # seconds from the end of the predecessor to the submission
    think_time: NDArray[np.float64] | None = None

    def subset(self, rows: NDArray[np.int64]) -> FlowJobs:
        """Return the jobs at `rows`, without their predecessors and think times."""
        names = ("row", "submit", "run", "estimate", "width", "user", "site", "killed")
        some = {name: getattr(self, name)[rows] for name in names}
        return replace(self, predecessor=None, think_time=None, **some)

    def dependencies(
        self, jobs: Any
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]] | None:
        """Return predecessors and think times of the jobs of one site, or None.

        `jobs` is a slice of all jobs or an array of their indices. The predecessors
        are indices among `jobs`; -1 for none. Predecessors on other sites do not occur,
        because `prepare_jobs` leaves them out. None: no job has a predecessor.
        """
        if self.predecessor is None or self.think_time is None:
            return None
        before = self.predecessor[jobs]
        if not (before >= 0).any():
            return None
        if not isinstance(jobs, slice):
            place = np.full(len(self.row), -1, np.int32)
            place[jobs] = np.arange(len(jobs))
            before = np.where(before >= 0, place[before], -1).astype(np.int32)
        return before, self.think_time[jobs]

    def submission_times(
        self, start: NDArray[np.float64], run: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the submission times, given the starts and run times of all jobs.

        A job with a predecessor is submitted when that has ended and the think time is
        over, but not before its recorded time; NaN if the predecessor has not run.
        """
        if self.predecessor is None or self.think_time is None:
            return self.submit
        late = np.flatnonzero(self.predecessor >= 0)
        first = self.predecessor[late]
        submit = self.submit.copy()
        submit[late] = np.maximum(
            submit[late], start[first] + run[first] + self.think_time[late]
        )
        return submit


class ArrivalQueue:
    """The submissions of a flow in order of time, for policies that place job by job.

    Jobs without a predecessor are taken from the sorted list; jobs with one are added
    to a heap by `on_job_end`, when the predecessor ends.
    """

    def __init__(self, flow: FlowJobs) -> None:
        self._submit = flow.submit.tolist()
        self._next, self._order = 0, list(range(len(self._submit)))
        self._ready: list[tuple[float, int]] = []
        self._after: dict[int, list[int]] = {}
        if flow.predecessor is not None and flow.think_time is not None:
            self._think_time = flow.think_time.tolist()
            self._order = np.flatnonzero(flow.predecessor < 0).tolist()
            for job in np.flatnonzero(flow.predecessor >= 0).tolist():
                self._after.setdefault(int(flow.predecessor[job]), []).append(job)

    @property
    def next_time(self) -> float:
        """The time of the next submission that is known; inf if there is none."""
        time = math.inf
        if self._next < len(self._order):
            time = self._submit[self._order[self._next]]
        return min(time, self._ready[0][0]) if self._ready else time

    def pop(self) -> int:
        """Remove and return the next job; the smallest index among equal times."""
        if not self._ready:
            self._next += 1
            return self._order[self._next - 1]
        if self._next < len(self._order):
            job = self._order[self._next]
            if (self._submit[job], job) < self._ready[0]:
                self._next += 1
                return job
        return heapq.heappop(self._ready)[1]

    def on_job_end(self, job: int, now: float) -> None:
        """Schedule the submissions of the jobs that wait for `job`, which ends now."""
        for after in self._after.pop(job, ()):
            time = max(self._submit[after], now + self._think_time[after])
            heapq.heappush(self._ready, (time, after))


def as_trace(given: Any) -> Trace:
    """Return a trace; a table of jobs is converted, with -1 in missing fields."""
    if isinstance(given, Trace):
        return given
    if not is_table(given):
        kind = type(given).__name__
        raise TypeError(
            f"jobs must be a Trace or a structured array or a table, got {kind}"
        )
    if isinstance(given, np.ndarray):
        columns: Any = {name: given[name] for name in given.dtype.names or ()}
    else:
        columns = columns_of(given, "jobs")
    for name in ("submit", "run_time"):
        if name not in columns:
            raise ValueError(f"jobs have no field {name!r}")
    sizes = [len(column) for column in columns.values() if np.ndim(column)]
    rows = np.full(max(sizes, default=0), -1, SWF)
    for name in set(SWF.names or ()) & set(columns):
        rows[name] = _numeric_column(columns[name], name)
    if "job" not in columns:
        rows["job"] = np.arange(1, len(rows) + 1)
    return Trace(rows)


def _numeric_column(column: Any, name: str) -> NDArray[Any]:
    """Return a column of a table as the numbers of a field; -1 for a missing value."""
    values = np.asarray(getattr(column, "values", column))
    if values.dtype.kind not in "biuf":
        kind = "dates" if values.dtype.kind in "mM" else f"{values.dtype}"
        raise TypeError(
            f"jobs: column {name!r} holds {kind}; it must hold numbers: seconds, "
            "counts or codes, -1 for unknown"
        )
    if values.dtype.kind != "f":
        return values
    known: NDArray[Any] = np.where(np.isnan(values), -1.0, values)
    if SWF[name].kind == "i":
        bad = ~((np.abs(known) <= 2.0**53) & (known == np.floor(known)))
        if bad.any():
            row = int(bad.argmax())
            value = f"{values.flat[row]:.17g}"
            raise ValueError(f"jobs: row {row}: {name} {value} is not an integer")
    return known


def prepare_jobs(
    trace: Trace,
    cluster: Cluster,
    *,
    width: Literal["allocated", "requested"],
    overrun: Literal["kill", "extend"],
    estimates: float | str,
    load: float,
    preceding: bool,
) -> FlowJobs:
    """Return the jobs to replay: filtered, sorted, with run times and estimates.

    See `slotkern.replay` for the options.
    """
    one_of("width", width, ("allocated", "requested"))
    one_of("overrun", overrun, ("kill", "extend"))
    load = number("load", load, above=0)
    jobs = trace.jobs
    # Contiguous copies: reading one field of a record array reads all records.
    submit, run, requested = (
        np.ascontiguousarray(jobs[name])
        for name in ("submit", "run_time", "requested_time")
    )
    size = width_of(jobs, width)
    site = cluster.site_rows(jobs)
    most = cluster.processors[site]
    left = np.ones(len(jobs), np.bool_)
    dropped = {}
    for reason, wrong in (
        ("part of a checkpointed job", partial_records(jobs)),
        ("submission unknown", ~(submit >= 0)),
        ("run time unknown", ~(run >= 0)),
        ("processors unknown", size <= 0),
        ("no such site", site < 0),
        ("wider than the machine", size > most),
    ):
        dropped[reason] = int((left & wrong).sum())
        left &= ~wrong
    row = np.flatnonzero(left)
    if (np.diff(submit[row]) < 0).any():
        row = row[np.argsort(submit[row], kind="stable")]

    submit, run, requested = submit[row], run[row], requested[row]
    size, site = size[row], site[row]
    speed = cluster.performance[site]
    if missing := int((requested <= 0).sum()):
        log.info("%d jobs have no requested time: their run time is used", missing)
    with np.errstate(over="ignore"):  # infinite times are rejected below
        if len(row) and load != 1:
            submit = submit[0] + (submit - submit[0]) / load
        estimate = np.maximum(np.where(requested > 0, requested, run), 1.0)
        killed = np.zeros(len(row), np.bool_)
        if overrun == "kill":
            killed = run > estimate
            run = np.minimum(run, estimate)
        else:
            estimate = np.maximum(run, estimate)
        estimate = _scheduler_estimates(estimate, run, estimates) / speed
        run = np.minimum(run / speed, estimate)
    before, think = _predecessors(jobs, row, site) if preceding else (None, None)
    _check_times(submit, run, estimate, cluster, think)
    return FlowJobs(
        row,
        submit,
        run,
        estimate,
        size.astype(np.int32),
        jobs["user"][row],
        site,
        {reason: count for reason, count in dropped.items() if count},
        killed,
        before,
        think,
    )


def _predecessors(
    jobs: NDArray[Any], row: NDArray[np.int64], site: NDArray[np.int64]
) -> tuple[NDArray[np.int32] | None, NDArray[np.float64] | None]:
    """Return each job's predecessor and think time (fields 17, 18); None without any.

    A predecessor is ignored if it is not replayed, or if it runs on another site, which
    has a queue of its own.

    Raises
    ------
    ValueError
        If jobs wait for each other in a cycle; the message names one of them.
    """
    if "preceding" not in (jobs.dtype.names or ()) or not len(row):
        return None, None
    wanted = jobs["preceding"][row]
    late = np.flatnonzero(wanted > 0)
    if not len(late):
        return None, None
    number = jobs["job"][row]
    order = np.argsort(number, kind="stable")
    # If several records have the same number, the last one is the predecessor.
    at = np.searchsorted(number[order], wanted[late], side="right") - 1
    found = order[np.maximum(at, 0)]
    exists = number[found] == wanted[late]
    same = exists & (site[found] == site[late])
    if lost := int((~exists).sum()):
        log.warning(
            "%d jobs do not wait for their preceding job, which is not replayed", lost
        )
    if apart := int((exists & ~same).sum()):
        log.warning(
            "%d jobs do not wait for their preceding job, which is on another site",
            apart,
        )
    before = np.full(len(row), -1, np.int32)
    before[late[same]] = found[same]
    if not same.any():
        return None, None
    _check_cycles(before, number)
    has_think = "think_time" in (jobs.dtype.names or ())
    given = jobs["think_time"][row] if has_think else 0.0
    think = np.maximum(np.nan_to_num(given, nan=0.0), 0.0) * np.ones(len(row))
    return before, think


def _check_cycles(before: NDArray[np.int32], number: NDArray[np.int64]) -> None:
    """Raise ValueError if predecessors form a cycle, found by pointer doubling.

    After k steps `ahead` is the predecessor 2**k jobs ahead; without a cycle it is -1
    for all jobs after log2(n) steps. O(n log n).
    """
    ahead = before.astype(np.int64)
    for _ in range(len(before).bit_length()):
        ahead = np.where(ahead >= 0, ahead[ahead], -1)
        if (ahead < 0).all():
            return
    job = int((ahead >= 0).argmax())
    raise ValueError(
        f"jobs: job {number[job]} waits for a cycle of preceding jobs (field 17); "
        "preceding=False ignores the field"
    )


def _scheduler_estimates(
    estimate: NDArray[np.float64], run: NDArray[np.float64], given: float | str
) -> NDArray[np.float64]:
    """Return the run times that the scheduler assumes, at least one second."""
    if isinstance(given, str):
        kind = one_of("estimates", given, ("user", "exact"))
        return estimate if kind == "user" else np.maximum(run, 1.0)
    return np.maximum(run * number("estimates", given, least=1), 1.0)


def _check_times(
    submit: NDArray[np.float64],
    run: NDArray[np.float64],
    estimate: NDArray[np.float64],
    cluster: Cluster,
    think: NDArray[np.float64] | None,
) -> None:
    """Raise ValueError if a time could exceed 2**53 s or an estimate vanish.

    Beyond 2**53, float64 cannot represent every second.
    """
    blocked = cluster.blocked
    latest = float(submit.max(initial=0) + estimate.sum())
    latest += float(np.abs(blocked["start"]).max(initial=0))
    latest += float((blocked["end"] - blocked["start"]).sum())
    latest += 0.0 if think is None else float(think.sum())
    if not latest <= 2.0**53:
        raise ValueError("jobs: the times add up to more than 2**53 seconds")
    if not (submit[1:] + estimate[1:] > submit[1:]).all():
        raise ValueError(
            "jobs: an estimate vanishes when added to its submission in float64"
        )


@hint_keywords
def resample_weeks(
    jobs: Trace | NDArray[Any], seed: int, weeks: int | None = None
) -> Trace:
    """Return a flow of weeks drawn from a trace, with replacement.

    Parameters
    ----------
    jobs : Trace or structured array
        The jobs, in any form that `slotkern.replay` accepts.
    seed : int
        The seed of the random numbers; equal seeds give equal weeks.
    weeks : int, optional
        The number of weeks to draw, at most 1,000,000; by default that of the trace.

    Returns
    -------
    Trace
        Week k of the flow contains the jobs of one whole week of the trace, counted
        from its first submission, so the pattern of days and weekdays is preserved.
        Jobs with an unknown submission are left out. If jobs name preceding jobs (field
        17), all jobs are numbered from 1, and a job of a drawn week waits for its
        preceding job only if that is in the same week.

    Raises
    ------
    ValueError
        For a trace without a known submission, `weeks` less than one or more than
        1,000,000, or a flow of more than 2**24 jobs.

    Notes
    -----
    O(jobs). For a trace of many weeks, replays of several such flows give confidence
    intervals; for a trace of one week all flows are equal, and a warning is logged.
    Resampling a log by weeks is an idea of D. Feitelson, "Resampling with Feedback",
    JSSPP 2016, which draws users; here whole weeks are drawn.

    Examples
    --------
    >>> import numpy as np, slotkern as sk
    >>> jobs = np.zeros(2, sk.SWF)
    >>> jobs["submit"] = [10, 10 + 8 * 86400]
    >>> len(sk.resample_weeks(jobs, seed=1, weeks=5)) >= 5
    True
    """
    trace = as_trace(jobs)
    rows = trace.jobs[trace.jobs["submit"] >= 0]
    if not len(rows):
        raise ValueError("jobs: no submission is known")
    if lost := len(trace.jobs) - len(rows):
        log.warning("weeks are drawn without %d jobs of unknown submission", lost)
    rows = rows[np.argsort(rows["submit"], kind="stable")]
    first = rows["submit"][0]
    week = ((rows["submit"] - first) // WEEK).astype(np.int64)
    count = int(week[-1]) + 1
    if count == 1:
        log.warning("the trace has one week only: all drawn weeks are the same")
    wanted = count if weeks is None else integer("weeks", weeks, 1, MAX_WEEKS)
    generator = np.random.Generator(np.random.PCG64(integer("seed", seed, least=0)))
    drawn = generator.integers(0, count, wanted)
    low, high = np.searchsorted(week, drawn), np.searchsorted(week, drawn + 1)
    size = high - low
    if (total := int(size.sum())) > MAX_FLOW:
        raise ValueError(
            f"weeks: the {wanted:,} weeks drawn have {total:,} jobs, more than "
            f"{MAX_FLOW:,}; draw fewer"
        )
    drawn_row = np.repeat(low - (np.cumsum(size) - size), size) + np.arange(total)
    flow = rows[drawn_row]
    if "preceding" in (flow.dtype.names or ()) and (rows["preceding"] > 0).any():
        _renumber_jobs(flow, rows, drawn_row, week)
    moved = np.repeat(np.arange(len(drawn)) - drawn, size)
    flow["submit"] += moved * WEEK
    return trace.with_jobs(flow, {"weeks": len(drawn)})


def _renumber_jobs(
    flow: NDArray[Any],
    rows: NDArray[Any],
    drawn_row: NDArray[np.int64],
    week: NDArray[np.int64],
) -> None:
    """Number the jobs of drawn weeks from 1, and their preceding jobs likewise.

    `drawn_row` is the source row of each job of the flow; `week` is the week of each
    source row. The jobs of a drawn week are consecutive, in the order of the rows, so a
    predecessor has the same distance in the flow as in the trace.
    """
    order = np.argsort(rows["job"], kind="stable")
    at = np.searchsorted(rows["job"][order], rows["preceding"], side="right") - 1
    found = order[np.maximum(at, 0)]
    exists = (rows["preceding"] > 0) & (rows["job"][found] == rows["preceding"])
    exists &= week[found] == week
    number = np.arange(1, len(flow) + 1)
    back = (np.arange(len(rows)) - found)[drawn_row]
    flow["job"] = number
    flow["preceding"] = np.where(exists[drawn_row], number - back, -1)

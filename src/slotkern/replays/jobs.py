"""From the rows of a trace to the jobs that a replay runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern.checks import integer, number, one_of
from slotkern.notes import log
from slotkern.replays.cluster import Cluster
from slotkern.traces.clean import width_of
from slotkern.traces.read import SWF, Trace

__all__ = ["FlowJobs", "jobs_of", "resample_weeks", "trace_of"]

WEEK = 7 * 86400.0


@dataclass(frozen=True)
class FlowJobs:
    """Jobs sorted by submission, and why others were left out."""

    row: NDArray[np.int64]  # in the trace
    submit: NDArray[np.float64]
    run: NDArray[np.float64]
    estimate: NDArray[np.float64]
    width: NDArray[np.int32]
    user: NDArray[np.int64]
    site: NDArray[np.int64]  # row of the cluster
    dropped: dict[str, int]

    def of(self, kept: NDArray[np.int64]) -> FlowJobs:
        """Some of the jobs."""
        names = ("row", "submit", "run", "estimate", "width", "user", "site")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


def trace_of(given: Any) -> Trace:
    """Return the trace that an argument stands for."""
    if isinstance(given, Trace):
        return given
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        needed = ("submit", "run_time")
        missing = [name for name in needed if name not in given.dtype.names]
        if missing:
            raise ValueError(f"jobs have no field {missing[0]!r}")
        rows = np.full(len(given), -1, SWF)
        for name in set(SWF.names or ()) & set(given.dtype.names):
            rows[name] = given[name]
        if "job" not in given.dtype.names:
            rows["job"] = np.arange(1, len(rows) + 1)
        return Trace(rows)
    kind = type(given).__name__
    raise TypeError(f"jobs must be a Trace or a structured array, got {kind}")


def jobs_of(
    trace: Trace,
    cluster: Cluster,
    *,
    width: Literal["allocated", "requested"],
    overrun: Literal["kill", "extend"],
    estimates: float | str,
    load: float,
) -> FlowJobs:
    """Return what is replayed; see `slotkern.replay` for the options."""
    one_of("width", width, ("allocated", "requested"))
    one_of("overrun", overrun, ("kill", "extend"))
    load = number("load", load, above=0)
    jobs = trace.jobs
    # Columns of their own: each look at a field of a record touches all records.
    submit, run, asked = (
        np.ascontiguousarray(jobs[name])
        for name in ("submit", "run_time", "requested_time")
    )
    size = width_of(jobs, width)
    site = cluster.of_jobs(jobs)
    most = cluster.processors[site]
    left = np.ones(len(jobs), np.bool_)
    dropped = {}
    for reason, wrong in (
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

    submit, run, asked = submit[row], run[row], asked[row]
    size, site = size[row], site[row]
    speed = cluster.performance[site]
    if unasked := int((asked <= 0).sum()):
        log.info("%d jobs ask for no time: their run time stands for it", unasked)
    with np.errstate(over="ignore"):  # endless times are refused below
        if len(row) and load != 1:
            submit = submit[0] + (submit - submit[0]) / load
        estimate = np.maximum(np.where(asked > 0, asked, run), 1.0)
        if overrun == "kill":
            run = np.minimum(run, estimate)
        else:
            estimate = np.maximum(run, estimate)
        estimate = _estimates(estimate, run, estimates) / speed
        run = np.minimum(run / speed, estimate)
    _check_times(submit, run, estimate, cluster)
    return FlowJobs(
        row,
        submit,
        run,
        estimate,
        size.astype(np.int32),
        jobs["user"][row],
        site,
        {reason: count for reason, count in dropped.items() if count},
    )


def _estimates(
    estimate: NDArray[np.float64], run: NDArray[np.float64], given: float | str
) -> NDArray[np.float64]:
    if isinstance(given, str):
        kind = one_of("estimates", given, ("user", "exact"))
        return estimate if kind == "user" else np.maximum(run, 1.0)
    return np.maximum(run * number("estimates", given, least=1), 1.0)


def _check_times(
    submit: NDArray[np.float64],
    run: NDArray[np.float64],
    estimate: NDArray[np.float64],
    cluster: Cluster,
) -> None:
    """Up to 2**53 float64 counts every second; nothing may end later than that."""
    blocked = cluster.blocked
    latest = float(submit.max(initial=0) + estimate.sum())
    latest += float(np.abs(blocked["start"]).max(initial=0))
    latest += float((blocked["end"] - blocked["start"]).sum())
    if not latest <= 2.0**53:
        raise ValueError("jobs: the times add up to more than 2**53 seconds")
    if not (submit[1:] + estimate[1:] > submit[1:]).all():
        raise ValueError("jobs: an estimate is too small beside its submission")


def resample_weeks(
    jobs: Trace | NDArray[Any], seed: int, weeks: int | None = None
) -> Trace:
    """Return a flow of weeks drawn from a trace, with replacement.

    Parameters
    ----------
    jobs : Trace or structured array
        What `slotkern.replay` takes.
    seed : int
        The same seed, the same weeks.
    weeks : int, optional
        How many; by default as many as the trace has.

    Returns
    -------
    Trace
        Week k of the flow holds the jobs of a whole week of the trace, counted from its
        first submission: the rhythm of days and weekdays stays. Jobs whose submission
        is unknown are left out.

    Raises
    ------
    ValueError
        For a trace without a known submission, or `weeks` less than one.

    Notes
    -----
    O(jobs). Replaying several such flows gives confidence intervals, of a trace of many
    weeks; of one week each flow is the same, and the logger says so. The idea of
    resampling a log by weeks is D. Feitelson's, "Resampling with Feedback", JSSPP 2016
    (who draws users; here whole weeks are drawn).

    Examples
    --------
    >>> import numpy as np, slotkern as sk
    >>> jobs = np.zeros(2, sk.SWF)
    >>> jobs["submit"] = [10, 10 + 8 * 86400]
    >>> len(sk.resample_weeks(jobs, seed=1, weeks=5)) >= 5
    True
    """
    trace = trace_of(jobs)
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
        log.warning("the trace has one week only: each that is drawn is the same")
    wanted = count if weeks is None else integer("weeks", weeks, least=1)
    generator = np.random.Generator(np.random.PCG64(integer("seed", seed, least=0)))
    drawn = generator.integers(0, count, wanted)
    low, high = np.searchsorted(week, drawn), np.searchsorted(week, drawn + 1)
    size = high - low
    flow = rows[np.repeat(low - (np.cumsum(size) - size), size) + np.arange(size.sum())]
    moved = np.repeat(np.arange(len(drawn)) - drawn, size)
    flow["submit"] += moved * WEEK
    return trace.with_jobs(flow, {"weeks": len(drawn)})

"""Summary statistics of a trace, and its load over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.traces.clean import REPAIRS, clean_trace, partial_records, width_of
from slotkern.traces.free_slots import most_at_once
from slotkern.traces.trace import Trace

__all__ = ["load_over_time", "trace_summary"]

_SHARES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "most": 1.0}


def trace_summary(trace: Trace) -> dict[str, Any]:
    """Compute summary statistics of a trace.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    dict
        ``jobs``, ``users``; ``days`` from the first submission to the last;
        ``processors`` of the header; ``at_once``: the most processors in use as
        recorded; ``load``: processor seconds of all jobs / (processors * the span of
        submissions), with checkpointed jobs counted once;
        ``columns``: for run time, requested time, processors and wait the median, the
        90th and 99th percentiles, the maximum, and the number of unknown values;
        ``repairs``: the number of jobs that each repair of `clean_trace` alone would
        leave out, cut or move; ``skipped``: the number of malformed lines.

    Notes
    -----
    O(n log n).
    """
    jobs = trace.jobs
    width = width_of(jobs)
    known = (jobs["submit"] >= 0) & (jobs["run_time"] >= 0) & (width > 0)
    known &= ~partial_records(jobs)
    submit = jobs["submit"][jobs["submit"] >= 0]
    span = float(np.ptp(submit)) if len(submit) else 0.0
    at_once = int(_recorded(jobs)[2].max(initial=0))
    if len(_recorded(jobs)[0]):
        at_once = most_at_once(*_recorded(jobs))
    size = trace.processors or at_once
    work = float((jobs["run_time"] * width)[known].sum())
    columns = {
        "run time": jobs["run_time"],
        "requested time": jobs["requested_time"],
        "processors": width,
        "wait": jobs["wait"],
    }
    names = [name for name in REPAIRS if name != "too-wide" or trace.processors]
    return {
        "jobs": len(jobs),
        "users": len(np.unique(jobs["user"][jobs["user"] >= 0])),
        "days": span / 86400,
        "processors": trace.processors,
        "at_once": at_once,
        "load": work / (size * span) if size and span else float("nan"),
        "columns": {name: _percentiles(values) for name, values in columns.items()},
        "repairs": {name: clean_trace(trace, name).repairs[name] for name in names},
        "skipped": trace.skipped,
    }


def load_over_time(trace: Trace, points: int = 400) -> tuple[Any, Any]:
    """Return points in time, and the mean number of processors in use between them."""
    start, end, width = _recorded(trace.jobs)
    if not len(start):
        return np.zeros(2), np.zeros(1)
    edges = np.linspace(start.min(), end.max(), points + 1)
    time = np.concatenate((start, end))
    change = np.concatenate((width, -width))
    order = np.argsort(time, kind="stable")
    time, change = time[order], np.cumsum(change[order])
    # Integrate the step function up to each edge.
    area = np.concatenate(([0.0], np.cumsum(change[:-1] * np.diff(time))))
    return edges, np.diff(np.interp(edges, time, area)) / np.diff(edges)


def _recorded(
    jobs: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return start, end and processors of the jobs for which all three are known."""
    width = width_of(jobs)
    known = (width > 0) & (jobs["run_time"] > 0)
    known &= (jobs["submit"] >= 0) & (jobs["wait"] >= 0) & ~partial_records(jobs)
    start = (jobs["submit"] + jobs["wait"])[known]
    return start, start + jobs["run_time"][known], width[known]


def _percentiles(values: NDArray[Any]) -> dict[str, float]:
    known = values[values >= 0]
    shares = list(_SHARES.values())
    found = np.quantile(known, shares) if len(known) else [np.nan] * len(shares)
    table = dict(zip(_SHARES, map(float, found), strict=True))
    return table | {"unknown": float(len(values) - len(known))}

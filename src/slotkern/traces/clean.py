"""Repairs of a trace, by name, each with a count of what it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.checks import one_of
from slotkern.logger import log
from slotkern.traces.read import Trace

__all__ = ["REPAIRS", "clean_trace", "partial_records", "width_of"]


def width_of(jobs: NDArray[Any], field: str = "allocated") -> NDArray[np.int64]:
    """The processors of each job: allocated (field 5), where unknown requested (8).

    With ``field="requested"`` the other way round. -1 or 0 where neither is known.
    """
    other = "requested" if field == "allocated" else "allocated"
    width: NDArray[np.int64] = np.where(jobs[field] > 0, jobs[field], jobs[other])
    return width


def _unknown(trace: Trace, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    known = (jobs["submit"] >= 0) & (jobs["run_time"] >= 0) & (width_of(jobs) > 0)
    return ~known


def _zero_run(trace: Trace, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    zero: NDArray[np.bool_] = jobs["run_time"] == 0
    return zero


def _too_wide(trace: Trace, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    if trace.processors is None:
        reason = "the header has no MaxProcs"
        raise ValueError(f"{trace.source}: clean='too-wide': {reason}")
    wide: NDArray[np.bool_] = width_of(jobs) > trace.processors
    return wide


def partial_records(jobs: NDArray[Any]) -> NDArray[np.bool_]:
    """Which records are parts (status 2, 3, 4) of a job with a record of its whole."""
    if "status" not in (jobs.dtype.names or ()):
        return np.zeros(len(jobs), np.bool_)
    part = np.isin(jobs["status"], (2, 3, 4))
    if part.any():
        part &= np.isin(jobs["job"], jobs["job"][~part])
    return part


def _partial(trace: Trace, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    return partial_records(jobs)


def _cancelled(trace: Trace, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    gone: NDArray[np.bool_] = (jobs["status"] == 5) & ~(jobs["run_time"] > 0)
    return gone


_LEAVE_OUT = {
    "partial": _partial,
    "cancelled": _cancelled,
    "unknown": _unknown,
    "zero-run": _zero_run,
    "too-wide": _too_wide,
}

#: What `clean_trace` knows, in the order in which it is done.
REPAIRS = (*_LEAVE_OUT, "overrun", "order")


def repair_names(repairs: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of repairs, all of them known ones."""
    names = (repairs,) if isinstance(repairs, str) else tuple(repairs)
    for name in names:
        one_of("clean", name, (*REPAIRS, "all"))
    return names


def clean_trace(trace: Trace, repairs: str | Sequence[str] = "all") -> Trace:
    """Return a trace with named repairs made, and counted.

    Parameters
    ----------
    trace : Trace
        From `read_trace`.
    repairs : str or sequence of str
        Any of these, or ``"all"``; whatever their order, they are made in this one:

        - ``"partial"``: leave out the records of parts of a checkpointed job (status 2,
          3, 4) that has a record of its whole;
        - ``"cancelled"``: leave out jobs that were cancelled before they ran (status 5,
          0 seconds or an unknown run time);
        - ``"unknown"``: leave out jobs whose submission, run time or processors are
          unknown (negative, or 0 processors);
        - ``"zero-run"``: leave out jobs that ran 0 seconds;
        - ``"too-wide"``: leave out jobs with more processors than the header's
          ``MaxProcs``;
        - ``"overrun"``: cut run times that exceed the requested time;
        - ``"order"``: sort by submission; jobs of one moment stay in the file's order.

    Returns
    -------
    Trace
        ``.repairs`` says how many jobs each repair left out, cut or moved (jobs
        submitted before one that stands before them).

    Raises
    ------
    ValueError
        For a name that is not one of these, and for ``"too-wide"`` without MaxProcs.

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> import numpy as np, slotkern as sk
    >>> jobs = np.zeros(2, sk.SWF)
    >>> jobs["submit"] = [5, 3]
    >>> sk.clean_trace(sk.Trace(jobs), "order").repairs
    {'order': 1}
    """
    names = repair_names(repairs)
    if "all" in names:
        names = REPAIRS if trace.processors else tuple(set(REPAIRS) - {"too-wide"})
    jobs, done = trace.jobs, {}
    for name, wrong in _LEAVE_OUT.items():
        if name in names:
            out = wrong(trace, jobs)
            jobs, done[name] = jobs[~out], int(out.sum())
    if "overrun" in names:
        over = (jobs["requested_time"] > 0) & (
            jobs["run_time"] > jobs["requested_time"]
        )
        jobs = jobs.copy()
        jobs["run_time"][over] = jobs["requested_time"][over]
        done["overrun"] = int(over.sum())
    if "order" in names:
        latest = np.maximum.accumulate(jobs["submit"])
        done["order"] = int((jobs["submit"] < latest).sum())
        jobs = jobs[np.argsort(jobs["submit"], kind="stable")]
    told = ", ".join(f"{name} {count:,}" for name, count in done.items() if count)
    if told:
        log.warning("%s: jobs left out, cut or moved: %s", trace.source, told)
    return trace.with_jobs(jobs, done)

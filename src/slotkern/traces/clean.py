"""Named repairs of a workload trace, each with the number of jobs it affects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import one_of
from slotkern.foundation.logger import log
from slotkern.traces.trace import Trace

__all__ = ["REPAIRS", "clean_trace", "partial_records", "width_of"]


def width_of(jobs: NDArray[Any], field: str = "allocated") -> NDArray[np.int64]:
    """Return the processors of each job: allocated (field 5), or else requested (8).

    With ``field="requested"`` the precedence is reversed. The value is -1 or 0 if both
    are unknown.
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
    """Return which records are parts (status 2, 3, 4) of a job with a total record."""
    if "status" not in (jobs.dtype.names or ()):
        return np.zeros(len(jobs), np.bool_)
    part = np.isin(jobs["status"], (2, 3, 4))
    if part.any():
        part &= np.isin(jobs["job"], jobs["job"][~part])
    return part


def _partial(trace: Trace, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    return partial_records(jobs)


def _cancelled(trace: Trace, jobs: NDArray[Any]) -> NDArray[np.bool_]:
    never_ran: NDArray[np.bool_] = (jobs["status"] == 5) & ~(jobs["run_time"] > 0)
    return never_ran


_LEAVE_OUT = {
    "partial": _partial,
    "cancelled": _cancelled,
    "unknown": _unknown,
    "zero-run": _zero_run,
    "too-wide": _too_wide,
}

#: The repairs of `clean_trace`, in the order in which they are applied.
REPAIRS = (*_LEAVE_OUT, "overrun", "order")


def repair_names(repairs: str | Sequence[str]) -> tuple[str, ...]:
    """Check the names of repairs, and return them as a tuple."""
    names = (repairs,) if isinstance(repairs, str) else tuple(repairs)
    for name in names:
        one_of("clean", name, (*REPAIRS, "all"))
    return names


def clean_trace(trace: Trace, repairs: str | Sequence[str] = "all") -> Trace:
    """Apply named repairs to a trace, and count the affected jobs.

    Parameters
    ----------
    trace : Trace
        A trace, as `read_trace` returns it.
    repairs : str or sequence of str
        Any of the following, or ``"all"``; they are always applied in this order:

        - ``"partial"``: leave out the records of parts of a checkpointed job (status 2,
          3, 4) that also has a total record;
        - ``"cancelled"``: leave out jobs that were cancelled before they ran (status 5,
          0 seconds or an unknown run time);
        - ``"unknown"``: leave out jobs whose submission, run time or processors are
          unknown (negative, or 0 processors);
        - ``"zero-run"``: leave out jobs that ran 0 seconds;
        - ``"too-wide"``: leave out jobs with more processors than the header's
          ``MaxProcs``;
        - ``"overrun"``: cut run times that exceed the requested time;
        - ``"order"``: sort by submission; jobs of equal submission keep their order.

    Returns
    -------
    Trace
        A trace whose ``.repairs`` contains the number of jobs that each repair left
        out, cut or moved (jobs submitted before one that precedes them in the file).

    Raises
    ------
    ValueError
        For an unknown name, and for ``"too-wide"`` if the header has no MaxProcs.

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
    counts = ", ".join(f"{name} {count:,}" for name, count in done.items() if count)
    if counts:
        log.warning("%s: jobs left out, cut or moved: %s", trace.source, counts)
    return trace.with_jobs(jobs, done)

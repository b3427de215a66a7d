"""Workload traces from the output of ``sacct -P``.

Input: text with a line of headings such as ``JobID|Submit|Start|End|State``. Output:
the jobs as fields of the Standard Workload Format; lines of job steps (``7.batch``) are
left out. Cost: linear in the text.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.replay import LineError
from slotkern.foundation.logger import log
from slotkern.machine import Clock
from slotkern.machine.calendar import NO_LIMIT
from slotkern.machine.slurm_values import Row, epoch_clock, table

from .trace import SWF

__all__ = ["SacctJobs", "is_sacct", "jobs_of_sacct"]

#: The status of the Standard Workload Format by the first word of a state.
_STATUS = {
    "COMPLETED": 1,
    "CANCELLED": 5,
    "FAILED": 0,
    "TIMEOUT": 0,
    "NODE_FAIL": 0,
    "OUT_OF_MEMORY": 0,
    "BOOT_FAIL": 0,
    "DEADLINE": 0,
    "PREEMPTED": 0,
    "REVOKED": 0,
}
#: Fields of words: the field of the trace, then its headings by priority.
_WORDS = (
    ("user", "User", "UID"),
    ("group", "Group", "Account"),
    ("queue", "QOS", "QOSRAW"),
    ("partition", "Partition"),
)
#: Headings of the allocated CPUs and nodes, by priority.
_CPUS, _NODES = ("AllocCPUS", "NCPUS", "AllocTRES"), ("NNodes", "AllocNodes")
_MOST_REMARKS = 10


class SacctJobs(NamedTuple):
    """Jobs, the words of their codes, the first submission, and lines left out."""

    jobs: NDArray[Any]
    words: dict[str, tuple[str, ...]]
    header: dict[str, str]
    skipped: int
    remarks: tuple[str, ...]


def is_sacct(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is output of ``sacct -P``."""
    line = head.split(b"\n", 1)[0].strip()
    return {b"JobID", b"JobIDRaw"} & set(line.split(b"|")) != set()


def jobs_of_sacct(
    text: str, source: str, zone: str | None, *, skip: bool = False
) -> SacctJobs:
    """Parse the output of ``sacct -P``.

    Parameters
    ----------
    text, source : str
        The output, and its name in errors.
    zone : str or None
        The time zone of local dates; None reads them as UTC.
    skip : bool
        True to leave out malformed lines, and to count them.

    Raises
    ------
    LineError
        For a malformed line; the message contains the line, the field and the value.
    """
    try:
        rows, _ = table(text, source, ("JobID", "JobIDRaw"), epoch_clock("UTC"))
    except ValueError as error:
        raise _line_error(error, source) from None
    _check_headings(rows)
    clock, skipped = epoch_clock(zone or "UTC"), 0
    jobs: list[tuple[float, ...]] = []
    kept: list[Row] = []
    remarks: list[str] = []
    for row in rows:
        if "." in row.text("JobID", "JobIDRaw"):  # a step of a job
            continue
        try:
            jobs.append(_job(row, clock))
            kept.append(row)
        except ValueError as error:
            if not skip:
                raise _line_error(error, source) from None
            skipped += 1
            if len(remarks) < _MOST_REMARKS:
                remarks.append(str(_line_error(error, source)))
    if zone is None and any(":" in row.text("Submit") for row in kept[:1]):
        log.info("%s: local dates are read as UTC; zone= gives their time zone", source)
    if arrays := sum("_[" in row.text("JobID", "JobIDRaw") for row in kept):
        log.info("%s: waiting job arrays, each read as one job: %d", source, arrays)
    return _assemble(jobs, kept, zone, skipped, tuple(remarks))


def _line_error(error: ValueError, source: str) -> LineError:
    return LineError(str(error).removeprefix(f"{source}, ").removeprefix(f"{source}: "))


def _check_headings(rows: list[Row]) -> None:
    if not rows:
        raise LineError("there is no job")
    heading = int(rows[0].line) - 1  # a text has numbers of lines
    for names in (
        ("Submit",),
        ("Start",),
        ("End", "ElapsedRaw", "Elapsed"),
        ("State",),
        (*_CPUS, *_NODES),
    ):
        if rows[0].heading(*names) is None:
            raise LineError(
                f"line {heading}: there is no {' or '.join(names)}; print it "
                "with sacct -P -o "
                "JobID,Submit,Start,End,State,AllocCPUS,ReqCPUS,Timelimit,User,Partition"
            )


def _job(row: Row, clock: Clock) -> tuple[float, ...]:
    """Return submit, wait, run time, processors and status of a job."""
    submit = row.time("Submit", clock)
    if math.isnan(submit):
        raise row.error("Submit", "is no time")
    start = row.time("Start", clock)
    end = row.time("End", clock) if "End" in row.cells else math.nan
    state = row.text("State").upper().split(" ")[0].rstrip("+")
    if not state:
        raise row.error("State", "is no state such as COMPLETED or CANCELLED")
    status = _STATUS.get(state, -1)
    run = math.nan
    if status < 0:  # it still waits or runs: its run time is not known yet
        pass
    elif not math.isnan(start) and not math.isnan(end):
        run = end - start
    elif math.isnan(start) and status == 5 and not math.isnan(end):
        start, run = end, 0.0  # cancelled while it waited
    elif row.heading("ElapsedRaw"):
        run = float(row.whole("ElapsedRaw"))
    elif row.heading("Elapsed"):
        run = row.length("Elapsed")
    if run < 0 and not (status == 5 and end >= submit):
        raise row.error("End", f"is before Start {row.text('Start')}")
    if run < 0:
        start, run = end, 0.0  # cancelled before a start that was planned
    wait = start - submit
    if wait < 0:
        raise row.error("Start", f"is before Submit {row.text('Submit')}")
    processors, requested = _processors(row)
    return (
        submit,
        -1.0 if math.isnan(wait) else wait,
        -1.0 if math.isnan(run) else run,
        processors if processors > 0 else -1,
        requested if requested > 0 else -1,
        _limit(row),
        status,
    )


def _processors(row: Row) -> tuple[int, int]:
    """Return the allocated and the requested CPUs, or nodes if the text has no CPUs.

    Both have the same unit, because a replay takes one if the other is missing.
    """
    if row.heading(*_CPUS):
        return _count(row, *_CPUS), _count(row, "ReqCPUS", "ReqTRES")
    return _count(row, *_NODES), _count(row, "ReqNodes")


def _count(row: Row, *headings: str) -> int:
    name = row.heading(*headings)
    if name is None:
        return -1
    if not name.endswith("TRES"):
        return row.whole(name)
    for part in row.text(name).split(","):
        key, _, value = part.partition("=")
        if key == "cpu":
            return Row(row.source, row.line, {name: value}).whole(name)
    return -1


def _limit(row: Row) -> float:
    """Return the requested time in seconds; -1 if there is none or no limit."""
    if row.text("TimelimitRaw").upper() not in ("", *NO_LIMIT):  # minutes
        return 60.0 * row.whole("TimelimitRaw")
    if row.heading("Timelimit") is None:
        return -1.0
    limit = row.length("Timelimit")
    return limit if math.isfinite(limit) else -1.0


def _assemble(
    jobs: list[tuple[float, ...]],
    rows: list[Row],
    zone: str | None,
    skipped: int,
    remarks: tuple[str, ...],
) -> SacctJobs:
    """Return the jobs in the order of submission, times from the first one on."""
    table_of = np.array(jobs, np.float64).reshape(len(jobs), 7)
    order = np.argsort(table_of[:, 0], kind="stable")
    table_of = table_of[order]
    rows = [rows[k] for k in order.tolist()]
    found = np.full(len(jobs), -1, [*SWF.descr, ("job_id", "i8")])
    first = table_of[0, 0] if len(jobs) else 0.0
    found["job"] = np.arange(1, len(jobs) + 1)
    found["submit"] = table_of[:, 0] - first
    for k, name in enumerate(
        ("wait", "run_time", "allocated", "requested", "requested_time", "status"), 1
    ):
        found[name] = table_of[:, k]
    words: dict[str, tuple[str, ...]] = {}
    for name, *headings in (*_WORDS, ("job_id", "JobID", "JobIDRaw")):
        if rows and rows[0].heading(*headings):
            texts = [row.text(*headings) for row in rows]
            codes = {text: k for k, text in enumerate(dict.fromkeys(texts))}
            found[name] = [codes[text] for text in texts]
            words[name] = tuple(codes)
    header = {"Computer": "Slurm"}
    if len(jobs) and first == math.floor(first) and first > 0:
        header["UnixStartTime"] = f"{int(first)}"
        header["TimeZoneString"] = zone or "UTC"
    return SacctJobs(found, words, header, skipped, remarks)

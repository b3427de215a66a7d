"""Snapshots from the texts of Slurm's commands: nodes, jobs and reservations.

Inputs: the output of ``sinfo`` or ``scontrol -o show node``, of ``squeue``, and of
``scontrol show reservation``; nodes and jobs may be JSON (`json_texts`). Output: a
`Snapshot`. Headings decide which columns there are. In case of doubt a node counts as
busy: a partly used node is busy, a job without a known end is busy for ever, and so is
a node that is allocated though no job in the text uses it.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import hint_keywords, number, quote
from slotkern.foundation.hostlists import MAX_NAMES, quoted
from slotkern.foundation.logger import log
from slotkern.machine import Clock, Machine
from slotkern.machine.slurm_values import Row, epoch_clock, table

from .json_texts import is_json, job_rows, node_rows
from .reservations import read_reservations
from .snapshot import WEEK, BusyRow, Partition, Repeated, Snapshot, busy_table

__all__ = ["Sources", "read_slurm"]

_OCCUPIED = frozenset(("mix", "mixed", "alloc", "allocated", "comp", "completing"))
_CLOSED = frozenset(("maint", "maintenance", "resv", "reserved"))
_OTHERS = """
idle plnd planned cloud dynamic_norm powered_down powering_down powering_up power_up
power_down
"""
#: Words of node states that let jobs start there, now or later.
_USABLE = _OCCUPIED | _CLOSED | frozenset(_OTHERS.split())
#: Marks after a state: * no answer, ^ reboots, $ maintenance; the others do not prevent
#: jobs.
_MARKS, _BAD_MARKS = "*~#!%$@^-+", frozenset("*^")
_ENDED = """
COMPLETED CD CANCELLED CA FAILED F TIMEOUT TO NODE_FAIL NF PREEMPTED PR BOOT_FAIL BF
DEADLINE DL OUT_OF_MEMORY OOM REVOKED RV SPECIAL_EXIT SE
"""
_WAITING = """
PENDING PD REQUEUED RQ REQUEUE_HOLD RH REQUEUE_FED RF RESV_DEL_HOLD RD
"""
_FINISHED, _PENDING = frozenset(_ENDED.split()), frozenset(_WAITING.split())
#: States of jobs that hold nodes but do not run, so that their ends are not known.
_HALTED = frozenset(("SUSPENDED", "S", "STOPPED", "ST"))
#: Seconds for which a job that is past its end still holds its nodes.
OVERDUE = 60.0
_KEY = re.compile(r"(?:^|\s)([A-Za-z:]+)=(\S*)")
#: Headings of the time limit of a job; ``squeue -l`` truncates its heading.
_LIMITS = ("TIME_LIMIT", "TIME_LIMI", "TIMELIMIT")


@dataclass(frozen=True)
class Sources:
    """Names of the texts in errors."""

    nodes: str = "nodes"
    jobs: str = "jobs"
    reservations: str = "reservations"


@dataclass
class _Node:
    """One node while the lines that mention it are read."""

    row: Row
    features: str
    words: set[str] = field(default_factory=set)
    reason: str = ""
    usable: bool = True


@dataclass
class _PartitionRows:
    """One partition: its first row and the names of its nodes, in their order."""

    row: Row
    names: dict[str, None] = field(default_factory=dict)
    is_default: bool = False


@hint_keywords
def read_slurm(
    nodes: str,
    jobs: str | None = None,
    reservations: str | None = None,
    *,
    now: float | None = None,
    zone: str | None = None,
    horizon: float = WEEK,
    sources: Sources | None = None,
    complete: bool = False,
) -> Snapshot:
    """Read a cluster from the output of Slurm's commands.

    Parameters
    ----------
    nodes : str
        The output of ``sinfo`` in any format with the headings NODELIST and STATE, such
        as ``sinfo``, ``sinfo -N -l`` or ``sinfo -N -o '%N|%T|%c|%m|%w|%b|%G|%R|%l'``;
        or of ``scontrol -o show node``; or of ``sinfo --json`` of Slurm 22.05, or
        ``scontrol show nodes --json`` of later ones.
    jobs : str, optional
        The output of ``squeue`` with headings; best ``squeue -a -o
        '%i|%T|%N|%S|%e|%u|%P|%Y'``. Without END_TIME, the end is computed from
        TIME_LEFT, or from TIME_LIMIT and TIME. Waiting jobs count if their planned
        start and nodes are given. Or the output of ``squeue --json``.
    reservations : str, optional
        The output of ``scontrol show reservation``, with ``-o`` or without.
    now : float, optional
        The time of the texts, in seconds since 1970; by default the date that ``squeue
        -l`` or ``sinfo -l`` prints, else the time of this call.
    zone : str, optional
        The time zone of the cluster. Needed for local dates (Slurm prints epoch seconds
        if ``SLURM_TIME_FORMAT=%s`` is set), and for repeated reservations.
    horizon : float
        The spans of repeated reservations are in ``Snapshot.busy`` for this time from
        `now`, in seconds. Free slots after it are computed around later ones as well.
    sources : Sources, optional
        The names of the texts in errors.
    complete : bool
        True if the texts contain all jobs and reservations. By default, a node that is
        allocated, reserved or in maintenance for no visible reason is busy for ever.

    Returns
    -------
    Snapshot
        The machine has the columns ``cpus``, ``memory`` (MB), ``weight`` and ``gpus``,
        and one of bools for each feature (``feature_avx512``) and partition
        (``partition_batch``), as far as the text has them.

    Raises
    ------
    ValueError
        For malformed text; the message contains the source, the line, the field and the
        value.

    Examples
    --------
    >>> from slotkern.clusters import read_slurm
    >>> text = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\\n"
    >>> text += "batch* up 7-00:00:00 3 idle n[1-3]\\n"
    >>> read_slurm(text, now=1800000000).partitions["batch"].limit
    604800.0
    """
    sources = sources or Sources()
    clock = epoch_clock(zone)
    rows, printed = _node_rows(nodes, sources.nodes, clock)
    found, groups = _nodes(rows, sources.nodes)
    rows_of_jobs, printed_jobs = _job_rows(jobs, sources.jobs, clock)
    if now is None:
        known = [t for t in (printed_jobs, printed) if not math.isnan(t)]
        if not known:
            log.info("no text has a date, as squeue -l prints it: read as of now")
        now = known[0] if known else float(math.floor(time.time()))
    now = number("now", now)
    index = {name: k for k, name in enumerate(found)}
    most = max(4 * len(index), 10_000)
    busy = _busy_by_state(found)
    taken = _busy_by_jobs(rows_of_jobs, index, now, clock, most)
    until = now + number("horizon", horizon, above=0)
    reserved = [
        Repeated(each, [index[name] for name in each.nodes if name in index])
        for each in read_reservations(
            reservations or "", sources.reservations, clock, most
        )
    ]
    closed = [row for each in reserved for row in each.rows(now, until, zone)]
    if not complete:
        busy += _unexplained(found, taken, closed, now)
    machine = _machine(found, groups, index)
    partitions = {name: _partition(each, index) for name, each in groups.items()}
    later = tuple(each for each in reserved if each.reservation.is_repeated)
    table_of = busy_table(busy + taken + closed)
    return Snapshot(now, machine, table_of, partitions, zone, until, later)


# --- rows


def _node_rows(text: str, source: str, clock: Clock) -> tuple[list[Row], float]:
    """Return the rows of nodes, and the time at which they were printed or NaN."""
    if is_json(text):
        return node_rows(text, source), math.nan
    if text.lstrip().startswith("NodeName="):
        return _node_records(text, source), math.nan
    return table(text, source, ("NODELIST", "NODE_LIST"), clock)


def _job_rows(text: str | None, source: str, clock: Clock) -> tuple[list[Row], float]:
    """Return the rows of jobs, and the time at which they were printed or NaN."""
    if text is None:
        return [], math.nan
    if is_json(text):
        return job_rows(text, source), math.nan
    return table(text, source, ("JOBID", "JOB_ID"), clock)


def _node_records(text: str, source: str) -> list[Row]:
    """Return the fields of ``scontrol -o show node``; the first of a name counts."""
    rows = []
    for number_of, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not line.startswith("NodeName="):
            raise ValueError(
                f"{source}, line {number_of}: {quote(line)} does not begin with "
                "NodeName=; print one line a node, with scontrol -o show node"
            )
        head, _, reason = line.partition(" Reason=")
        cells: dict[str, str] = {}
        for key, value in _KEY.findall(head):
            cells.setdefault(key, value)
        cells["Reason"] = reason
        rows.append(Row(source, number_of, cells))
    return rows


# --- nodes


def _nodes(
    rows: list[Row], source: str
) -> tuple[dict[str, _Node], dict[str, _PartitionRows]]:
    """Return the nodes and the partitions by name, the default partition first."""
    found: dict[str, _Node] = {}
    groups: dict[str, _PartitionRows] = {}
    for row in rows:
        heading = row.heading("NODELIST", "NODE_LIST", "NodeName") or "NODELIST"
        names = row.hosts(heading, MAX_NAMES - len(found))
        if (at := row.heading("STATE", "State")) is None:
            raise ValueError(f"{row.place}: there is no STATE")
        if names and not row.text(at):
            raise row.error(at, "is no state of a node, such as idle or down")
        state = row.text(at).lower()
        words = {word.rstrip(_MARKS) for word in state.split("+") if word}
        marks = {mark for word in state.split("+") for mark in word if mark in _MARKS}
        usable = words <= _USABLE and _BAD_MARKS.isdisjoint(marks)
        if "$" in marks:
            words.add("maint")
        for name in names:
            node = found.get(name)
            if node is None:
                features = row.text(
                    "ACTIVE_FEATURES", "AVAIL_FEATURES", "ActiveFeatures"
                )
                node = found[name] = _Node(row, features)
            node.words |= words
            node.usable &= usable
            if not usable and not node.reason:
                why = row.text("REASON", "Reason")
                node.reason = f"{state}: {why}" if why else state
        for word in row.text("PARTITION", "Partitions").split(","):
            if word.rstrip("*"):
                group = groups.setdefault(word.rstrip("*"), _PartitionRows(row))
                group.names.update(dict.fromkeys(names))
                group.is_default |= word.endswith("*")  # sinfo marks it
    if not found:
        raise ValueError(f"{source}: there is no node; paste the output of `sinfo`")
    return found, dict(sorted(groups.items(), key=lambda item: not item[1].is_default))


def _partition(group: _PartitionRows, index: dict[str, int]) -> Partition:
    row = group.row
    limit = row.length("TIMELIMIT") if "TIMELIMIT" in row.cells else math.inf
    ids = np.array(sorted(index[name] for name in group.names), np.int32)
    up = row.text("AVAIL").lower() in ("", "up")
    return Partition(ids, math.inf if math.isnan(limit) else limit, up)


def _machine(
    found: dict[str, _Node], groups: dict[str, _PartitionRows], index: dict[str, int]
) -> Machine:
    """Return the machine with the columns that the text has."""
    nodes = list(found.values())
    columns: dict[str, NDArray[Any]] = {
        "name": np.array([quoted(name) for name in found])
    }
    columns["performance"] = np.ones(len(nodes))
    columns["price"] = np.zeros(len(nodes))
    for column, *headings in (
        ("cpus", "CPUS", "CPUTot"),
        ("memory", "MEMORY", "RealMemory"),
        ("weight", "WEIGHT", "Weight"),
    ):
        if nodes[0].row.heading(*headings):
            columns[column] = np.array(
                [
                    node.row.whole(node.row.heading(*headings) or headings[0])
                    for node in nodes
                ],
                np.int64,
            )
    if nodes[0].row.heading("GRES", "Gres"):
        columns["gpus"] = np.array(
            [_gpus(node.row.text("GRES", "Gres")) for node in nodes], np.int64
        )
    marks: dict[str, NDArray[np.bool_]] = {}
    for k, node in enumerate(nodes):
        for feature in filter(None, node.features.split(",")):
            _mark(marks, f"feature_{feature}", len(nodes))[k] = True
    for name, group in groups.items():
        ids = [index[each] for each in group.names]
        _mark(marks, f"partition_{name}", len(nodes))[ids] = True
    return Machine(columns | marks)


def _mark(
    marks: dict[str, NDArray[np.bool_]], name: str, nodes: int
) -> NDArray[np.bool_]:
    """Return the column of a feature or partition, which is made if it is missing."""
    key = re.sub(r"\W", "_", name, flags=re.ASCII)
    if key not in marks:
        marks[key] = np.zeros(nodes, np.bool_)
    return marks[key]


def _gpus(text: str) -> int:
    """Return the number of GPUs of a text such as ``gpu:a100:4(S:0-1),gpu:1``."""
    return sum(
        int(count)
        for count in re.findall(r"\bgpu(?::[^,:()]+)?:([0-9]{1,6})\b", text, re.I)
    )


# --- busy spans


def _busy_by_state(found: dict[str, _Node]) -> list[BusyRow]:
    """Return a span without an end for each node that cannot be used."""
    return [
        (k, -math.inf, math.inf, node.reason, "")
        for k, node in enumerate(found.values())
        if not node.usable
    ]


def _unexplained(
    found: dict[str, _Node], taken: list[BusyRow], closed: list[BusyRow], now: float
) -> list[BusyRow]:
    """Return spans for nodes whose state has no job or reservation as its cause."""
    in_use = {k for k, start, end, _, _ in taken if start <= now < end}
    shut = {k for k, start, end, _, _ in closed if start <= now < end}
    busy: list[BusyRow] = []
    for k, node in enumerate(found.values()):
        if not node.usable:
            continue
        words = (node.words & _OCCUPIED if k not in in_use else set()) | (
            node.words & _CLOSED if k not in shut else set()
        )
        if words:
            state = "+".join(sorted(words))
            busy.append((k, now, math.inf, f"{state}, until an unknown time", ""))
    if busy:
        log.info(
            "%d of %d nodes are in use or closed, but no job or reservation given here "
            "explains it: busy for ever",
            len(busy),
            len(found),
        )
    return busy


def _busy_by_jobs(
    rows: list[Row], index: dict[str, int], now: float, clock: Clock, most: int
) -> list[BusyRow]:
    """Return the spans of jobs that hold nodes or for which Slurm plans nodes."""
    busy: list[BusyRow] = []
    waiting = unknown = 0
    for row in rows:
        state = row.text("STATE", "ST").upper().split(" ")[0]
        if state in _FINISHED:
            continue
        if state in _PENDING:
            names, start, end = _planned(row, clock, most)
            if not names:
                waiting += 1
        else:
            names = _hosts_of_job(row, most)
            start, end = -math.inf, max(_end(row, now, clock), now + OVERDUE)
            if state in _HALTED:
                end = math.inf
        owner, job = row.text("USER"), row.text("JOBID", "JOB_ID")
        ids = [index[name] for name in names if name in index]
        unknown += len(names) - len(ids)
        busy += [(k, start, end, f"job {job}", owner) for k in ids]
    if waiting:
        log.info("waiting jobs without planned nodes, left out: %d", waiting)
    if unknown:
        log.info("nodes of jobs that are not among the nodes, left out: %d", unknown)
    return busy


def _hosts_of_job(row: Row, most: int) -> list[str]:
    """Return the nodes that a job holds; in parentheses is a reason to wait."""
    name = row.heading("NODELIST", "NODELIST(REASON)", "NODES_LIST")
    if name is None:
        raise ValueError(
            f"{row.place}: there is no NODELIST; print it with "
            "squeue -o '%i|%T|%N|%S|%e|%u|%P|%Y'"
        )
    return [] if row.text(name).startswith("(") else row.hosts(name, most)


def _planned(row: Row, clock: Clock, most: int) -> tuple[list[str], float, float]:
    """Return the nodes and the span that Slurm plans for a waiting job."""
    if not row.text("SCHEDNODES") or row.heading("START_TIME") is None:
        return [], math.nan, math.nan
    start = row.time("START_TIME", clock)
    if math.isnan(start):
        return [], start, start
    end = row.time("END_TIME", clock) if "END_TIME" in row.cells else math.nan
    limit = row.heading(*_LIMITS)
    if math.isnan(end) and limit is not None:
        end = start + row.length(limit)
    if end < start:
        raise row.error("END_TIME", "is before START_TIME")
    names = row.hosts("SCHEDNODES", most)
    return names, start, math.inf if math.isnan(end) else end


def _end(row: Row, now: float, clock: Clock) -> float:
    """Return the end of a job that holds nodes; inf if it is unknown."""
    end = row.time("END_TIME", clock) if "END_TIME" in row.cells else math.nan
    if math.isnan(end) and "TIME_LEFT" in row.cells:
        end = now + row.length("TIME_LEFT")
    limit = row.heading(*_LIMITS)
    if math.isnan(end) and limit is not None and "TIME" in row.cells:
        end = now + row.length(limit) - row.length("TIME")
    return math.inf if math.isnan(end) else end

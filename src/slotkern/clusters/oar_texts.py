"""Snapshots and jobs from the JSON of OAR: ``oarnodes -J`` and ``oarstat -f -J``.

OAR has resources, such as cores, with the address of their node; a node can be used if
all of its resources are alive. An advance reservation is a job that OAR planned when it
was submitted. A job of the type ``inner`` runs in the time of its container, so it
takes no further time. OAR's spans contain their last second, so a job of 599 seconds
takes 600. Other waiting jobs have no planned nodes in this output and take no time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slotkern.foundation.checks import quote
from slotkern.foundation.hostlists import quoted
from slotkern.foundation.logger import log
from slotkern.machine import Machine

from .snapshot import BusyRow, Partition, Snapshot, busy_table
from .texts import OVERDUE

__all__ = ["LAST_SECOND", "OarJob", "read_oar", "read_oar_jobs"]

#: Seconds by which the span of a job is longer than its walltime.
LAST_SECOND = 1

_ENDED = frozenset(("Terminated", "Error", "toError"))
_HALTED = frozenset(("Hold", "Suspended", "Resuming"))
#: OAR prints this, and no JSON, if there is no job or node.
_NOTHING = re.compile(r"(?:/!\\[^\n]*)?")


@dataclass(frozen=True)
class OarJob:
    """A job of OAR: seconds since 1970; `end` is inf if it is not known.

    `container` is the number of the job in whose time it runs, or None. OAR validates
    a reservation some time after it was submitted; before that it has no nodes.
    `wanted` and `properties` are the request of a job, in the syntax of ``oarsub``.
    """

    number: int
    name: str
    owner: str
    state: str
    start: int
    end: float
    nodes: tuple[str, ...]
    is_reservation: bool
    container: int | None
    command: str = ""
    is_validated: bool = True
    queue: str = ""
    wanted: str = ""
    properties: str = ""
    depends_on: tuple[int, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Return whether the job holds no nodes any more."""
        return self.state in _ENDED

    @property
    def is_lasting_reservation(self) -> bool:
        """Return whether the job is an advance reservation that has not ended."""
        return self.is_reservation and self.container is None and not self.has_ended


def read_oar(
    nodes: str,
    jobs: str,
    *,
    now: float,
    zone: str | None = None,
    group: str = "",
    sources: tuple[str, str] = ("oarnodes", "oarstat"),
) -> Snapshot:
    """Read a cluster from the output of OAR's commands.

    Parameters
    ----------
    nodes, jobs : str
        The output of ``oarnodes -J`` and of ``oarstat -f -J``.
    now : float
        The time of the texts, in seconds since 1970.
    zone : str, optional
        The time zone of the cluster.
    group : str
        The property whose values are the partitions, such as ``cluster``; by default
        all nodes are one partition, ``default``.
    sources : (str, str)
        The names of the texts in errors.

    Returns
    -------
    Snapshot
        The machine has the column ``cpus``: the resources of each node.

    Raises
    ------
    ValueError
        For malformed text; the message contains the source, the record and the value.

    Notes
    -----
    Linear in the text.

    Examples
    --------
    >>> from slotkern.clusters import read_oar
    >>> nodes = '{"1": {"network_address": "n1", "state": "Alive"}}'
    >>> read_oar(nodes, "{}", now=1800000000)
    Snapshot(1 nodes, 0 busy spans, 2027-01-15 08:00:00+00:00)
    """
    counts: dict[str, int] = {}
    reasons: dict[str, str] = {}
    members: dict[str, dict[str, None]] = {}
    for place, record in _records(nodes, sources[0]):
        if _text(place, record, "type", "default") != "default":
            continue  # a licence or another resource, not a node
        name = _text(place, record, "network_address")
        if not name.strip():
            raise ValueError(
                f"{place}, network_address: {quote(name)} is no name of a node"
            )
        counts[name] = counts.get(name, 0) + 1
        state = _text(place, record, "state")
        if state != "Alive" or record.get("drain") == "YES":
            reasons.setdefault(name, state if state != "Alive" else "drained")
        value = _text(place, record, group) if group else "default"
        members.setdefault(value, {})[name] = None
    if not counts:
        raise ValueError(f"{sources[0]}: there is no node")
    ids = {name: k for k, name in enumerate(counts)}
    busy: list[BusyRow] = [
        (ids[name], -math.inf, math.inf, reason, "") for name, reason in reasons.items()
    ]
    waiting = unknown = 0
    for job in read_oar_jobs(jobs, sources[1]):
        spans = _spans(job, ids, now)
        busy += spans
        if not job.has_ended and job.container is None:
            waiting += not job.nodes
            unknown += len(job.nodes) - len(spans)
    if waiting:
        log.info("waiting jobs without planned nodes, left out: %d", waiting)
    if unknown:
        log.info("nodes of jobs that are not among the nodes, left out: %d", unknown)
    machine = Machine(
        {
            "name": np.array([quoted(name) for name in counts]),
            "performance": np.ones(len(counts)),
            "price": np.zeros(len(counts)),
            "cpus": np.array([*counts.values()], np.int64),
        }
    )
    partitions = {
        value: Partition(
            np.array(sorted(ids[name] for name in names), np.int32), math.inf, True
        )
        for value, names in members.items()
    }
    return Snapshot(now, machine, busy_table(busy), partitions, zone)


def _spans(job: OarJob, ids: Mapping[str, int], now: float) -> list[BusyRow]:
    """Return the busy spans of a job that holds nodes or has planned ones."""
    if job.has_ended or job.container is not None:
        return []
    reason = f"job {job.number}"
    if job.is_reservation:
        reason = f"reservation {job.name or job.number}"
    end = math.inf if job.state in _HALTED else max(job.end, now + OVERDUE)
    return [
        (ids[node], float(job.start), end, reason, job.owner)
        for node in job.nodes
        if node in ids
    ]


def read_oar_jobs(text: str, source: str = "oarstat") -> list[OarJob]:
    """Return the jobs of ``oarstat -f -J`` by number; errors as for `read_oar`."""
    found = []
    for place, record in _records(text, source):
        start = _whole(place, record, "startTime")
        length = _whole(place, record, "walltime")
        types = record.get("types") or []
        if not isinstance(types, list):
            raise ValueError(f"{place}, types: {quote(types)} is no list")
        inner = [
            each.removeprefix("inner=")
            for each in map(str, types)
            if each.startswith("inner=")
        ]
        found.append(
            OarJob(
                _number(place, record),
                _text(place, record, "name", ""),
                _text(place, record, "owner", ""),
                _text(place, record, "state"),
                start,
                start + length + LAST_SECOND if length else math.inf,
                _nodes(place, record),
                record.get("reservation") not in (None, "None"),
                _whole(place, {"types": inner[0]}, "types") if inner else None,
                _text(place, record, "command", ""),
                record.get("reservation") != "toSchedule",
                _text(place, record, "queue", ""),
                _text(place, record, "wanted_resources", ""),
                _text(place, record, "properties", ""),
                _numbers(place, record, "dependencies"),
            )
        )
    return sorted(found, key=lambda job: job.number)


def _nodes(place: str, record: dict[str, Any]) -> tuple[str, ...]:
    """Return the nodes that a job holds, or that a reservation has planned."""
    names = record.get("assigned_network_address")
    planned = record.get("reserved_resources")
    if not names and isinstance(planned, dict):
        names = [
            each.get("network_address") if isinstance(each, dict) else each
            for each in planned.values()
        ]
    names = names or []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise ValueError(f"{place}: {quote(names)} are no names of nodes")
    return tuple(dict.fromkeys(names))


def _records(text: str, source: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the place and the object of each record of JSON, by number.

    OAR prints the records in another order each time.
    """
    if _NOTHING.fullmatch(text.strip()):
        return []
    try:
        whole = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: no valid JSON: {error}") from None
    if not isinstance(whole, dict):
        raise ValueError(f"{source}: {quote(whole)} is no JSON object")
    for key, record in whole.items():
        if not isinstance(record, dict):
            raise ValueError(f"{source}, {quote(key)}: {quote(record)} is no object")
    by_number = sorted(whole, key=lambda key: (len(key), key))
    return [(f"{source}, {quote(key)}", whole[key]) for key in by_number]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys; a repeated key would hide a record."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {quote(max(keys, key=keys.count))} occurs twice")
    return found


def _text(
    place: str, record: dict[str, Any], field: str, default: str | None = None
) -> str:
    value = record.get(field)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or not (value or default == ""):
        raise ValueError(f"{place}, {field}: {quote(value)} is no text")
    return value


def _number(place: str, record: dict[str, Any]) -> int:
    """Return the number of a job, which all jobs have."""
    if record.get("Job_Id") is None:
        raise ValueError(f"{place}: Job_Id is missing")
    return _whole(place, record, "Job_Id")


def _numbers(place: str, record: dict[str, Any], field: str) -> tuple[int, ...]:
    value = record.get(field) or []
    if not isinstance(value, list):
        raise ValueError(f"{place}, {field}: {quote(value)} is no list")
    return tuple(_whole(place, {field: each}, field) for each in value)


def _whole(place: str, record: dict[str, Any], field: str) -> int:
    """Return a whole number; 0 if it is missing."""
    value = record.get(field)
    if value is None:
        return 0
    if not isinstance(value, int | str) or not re.fullmatch(r"[0-9]{1,12}", str(value)):
        raise ValueError(f"{place}, {field}: {quote(value)} is no whole number")
    return int(value)

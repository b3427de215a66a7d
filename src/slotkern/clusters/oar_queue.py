"""The queue of OAR from its JSON: what each waiting job asks for.

A waiting job has no nodes in OAR's output but the request of ``oarsub``, such as
``-l "{type = 'default'}/network_address=2,walltime=1:0:0"``. If a job has several
requests, the first one counts. A request of resources rather than nodes counts as the
fewest nodes that can have them. Filters are SQL; only equality with the property of the
partitions is read, and a job with other filters may use all partitions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from slotkern.foundation.checks import quote

from .oar_texts import LAST_SECOND, OarJob, read_oar, read_oar_jobs
from .queues import ClusterQueue, QueuedJob

__all__ = ["read_oar_queue"]

_LENGTH = re.compile(r"walltime=([0-9]{1,6}):([0-9]{1,4}):([0-9]{1,4})")
_NODES = re.compile(r"/network_address=(ALL|BEST|[0-9]{1,9})")
_RESOURCES = re.compile(r"/[a-z_]+=([0-9]{1,9})(?=[,/])")
#: Queues whose jobs OAR starts last; others have one priority here.
_LAST = ("besteffort",)


def read_oar_queue(
    nodes: str, jobs: str, *, now: float, zone: str | None = None, group: str = ""
) -> ClusterQueue:
    """Read the queue from the output of ``oarnodes -J`` and ``oarstat -f -J``.

    See `read_oar` for the arguments and errors. A job that waits for a job in the text,
    or is in the state Hold, is held; advance reservations and inner jobs do not wait.
    """
    found = read_oar_jobs(jobs)
    snapshot = read_oar(nodes, jobs, now=now, zone=zone, group=group)
    most = int(snapshot.machine.columns["cpus"].max())
    lasting = {job.number for job in found if not job.has_ended}
    queued, held = [], 0
    for job in sorted(found, key=lambda job: (job.queue in _LAST, job.number)):
        if job.has_ended or job.container is not None or job.is_reservation:
            continue
        if job.nodes:
            queued.append(_running(job))
        elif job.state == "Hold" or not lasting.isdisjoint(job.depends_on):
            held += 1
        else:
            queued.append(_waiting(job, most, len(snapshot.machine), group))
    return ClusterQueue(snapshot, tuple(queued), held)


def _running(job: OarJob) -> QueuedJob:
    what = str(job.number), job.owner, (), len(job.nodes), job.end - job.start
    return QueuedJob(*what, float(job.start), job.nodes)


def _waiting(job: OarJob, most: int, nodes: int, group: str) -> QueuedJob:
    """Return a waiting job; `most` is the largest number of resources of a node."""
    first = job.wanted.split(" -l ")[0]
    match = _LENGTH.search(first)
    if match is None:
        raise ValueError(
            f"oarstat, job {job.number}, wanted_resources: {quote(job.wanted)} has no "
            "walltime=hours:minutes:seconds"
        )
    hours, minutes, seconds = map(int, match.groups())
    length = float((hours * 60 + minutes) * 60 + seconds + LAST_SECOND)
    if counted := _NODES.search(first):
        count = int(counted[1]) if counted[1].isdigit() else nodes
    else:
        resources = math.prod(map(int, _RESOURCES.findall(first)))
        count = -(-resources // most)
    text = f"{first} {job.properties}"
    partitions = tuple(dict.fromkeys(_values(text, group))) if group else ()
    return QueuedJob(
        str(job.number), job.owner, partitions, max(count, 1), length, math.nan
    )


def _values(text: str, group: str) -> Iterable[str]:
    """Return the values that the filter of a job allows for a property."""
    return re.findall(rf"\b{re.escape(group)}\s*=\s*'([^']*)'", text)

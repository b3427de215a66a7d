"""The queue of a cluster, and the forecast of when a job behind it starts.

Input: the nodes and the busy spans of a cluster without the starts that its scheduler
plans for waiting jobs, and all jobs that run or wait, in the order of the queue.
`forecast_start` counts the nodes that each job takes from one partition and calls
`slotkern.forecast`. A job counts whole nodes. Cost: linear in the jobs, and a forecast.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from slotkern._kernels.request import Request
from slotkern.expressions.filters import evaluate
from slotkern.foundation.checks import meant
from slotkern.foundation.logger import log
from slotkern.replays.forecast import Forecast, forecast

from .site import Site
from .snapshot import Snapshot

__all__ = ["ClusterQueue", "QueuedJob", "forecast_start"]


class QueuedJob(NamedTuple):
    """A job that runs or waits.

    `nodes` are the names of the nodes that it holds, and empty for a waiting job,
    which asks for `width` nodes. `length` is the requested run time in seconds (inf:
    no limit), `start` the time since which it runs in seconds since 1970 or NaN, and
    `partitions` are those it may use, or empty for all.
    """

    number: str
    user: str
    partitions: tuple[str, ...]
    width: int
    length: float
    start: float
    nodes: tuple[str, ...] = ()


class ClusterQueue(NamedTuple):
    """The jobs of a cluster in the order of its queue.

    `snapshot` has no spans of jobs that wait. `held` is the number of further jobs that
    wait for something else than nodes: a user, a date or another job.
    """

    snapshot: Snapshot
    jobs: tuple[QueuedJob, ...]
    held: int = 0


def forecast_start(
    queue: ClusterQueue,
    site: Site,
    request: Request,
    partition: str | None = None,
    **options: Any,
) -> Forecast:
    """Forecast when a job starts that is submitted now, behind all jobs of the queue.

    Parameters
    ----------
    queue : ClusterQueue
        From `LiveCluster.queue`.
    site : Site
        Uses its ``horizon``, and the performances of its nodes.
    request : Request
        The nodes, the walltime and the filter of the job.
    partition : str, optional
        By default the first one that is up.
    **options
        The keywords of `slotkern.forecast`: ``policy``, by default
        ``"conservative"``, ``history``, ``runs``, ``seed``, ...

    Returns
    -------
    Forecast
        Its times are seconds since ``queue.snapshot.now``.

    Raises
    ------
    ValueError, TypeError
        For an unknown partition, and as for `slotkern.forecast`.

    Notes
    -----
    Waiting jobs count if they may use a partition that shares nodes with this one, and
    running jobs with the nodes that they hold in it. If several jobs share a node, the
    one that ends last holds it. Jobs without a time limit serve as busy time.

    Examples
    --------
    >>> import slotkern as sk
    >>> from slotkern.clusters import ClusterQueue, QueuedJob, Site
    >>> from slotkern.clusters import forecast_start, read_slurm
    >>> nodes = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\\n"
    >>> nodes += "batch up 1-00:00:00 2 idle n[1-2]\\n"
    >>> now = 1800000000
    >>> job = QueuedJob("8", "bert", ("batch",), 2, 3600.0, float("nan"))
    >>> queue = ClusterQueue(read_slurm(nodes, now=now), (job,))
    >>> found = forecast_start(queue, Site(), sk.Request(1, walltime="2h"))
    >>> found.promise, found.quantile(0.9) < 3600
    (3600.0, True)
    """
    snapshot = queue.snapshot
    name = _partition(snapshot, partition)
    machine = site.priced(snapshot.machine)
    free = replace(snapshot, machine=machine).free_slots(0, site.horizon)
    slots = free.slots[np.isin(free.slots["node"], snapshot.partitions[name].nodes)]
    if request.where is not None:
        if not isinstance(request.where, str):
            raise TypeError("where must be a filter, not an array, for a forecast here")
        slots = slots[evaluate(request.where, slots, machine)]
    free = replace(free, slots=slots)
    usable = set(np.unique(free.slots["node"]).tolist())
    shared = {
        other
        for other, each in snapshot.partitions.items()
        if np.isin(each.nodes, snapshot.partitions[name].nodes).any()
    }
    left_out = Counter[str]()
    rows = _running(queue, usable)
    for job in queue.jobs:
        if job.nodes or (job.partitions and shared.isdisjoint(job.partitions)):
            continue
        if job.width > len(usable):
            left_out[f"ask for more than the {len(usable)} nodes"] += 1
        elif not math.isfinite(job.length):
            left_out["have no time limit"] += 1
        else:
            rows.append((job.width, job.length, None, job.user or f"job {job.number}"))
    if queue.held:
        left_out["wait for a user, a date or another job"] = queue.held
    for why, count in left_out.items():
        log.info("waiting jobs that %s, left out: %d", why, count)
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    titles = ("nodes", "walltime", "start", "user")
    table = dict(zip(titles, map(list, columns), strict=True))
    given: dict[str, Any] = {"policy": "conservative", "now": 0.0} | options
    return forecast(free, request.replace(where=None), table, **given)


def _partition(snapshot: Snapshot, partition: str | None) -> str:
    """Return the partition of this name, or the first that is up."""
    there = [name for name, each in snapshot.partitions.items() if each.up]
    if partition is None and there:
        return there[0]
    if partition not in there:
        raise ValueError(
            f"partition {partition!r} is not one of those that are up: "
            f"{', '.join(there) or 'none'}{meant(partition or '', there)}"
        )
    return partition


def _running(queue: ClusterQueue, usable: set[int]) -> list[tuple[Any, ...]]:
    """Return a row of the queue for each running job that holds usable nodes.

    The start is in seconds since now. The length is until the end in the snapshot,
    which a job that is late exceeds.
    """
    snapshot, holder = queue.snapshot, dict[int, tuple[float, int]]()
    ends = {
        (reason, node): end
        for node, _, end, reason, _ in snapshot.busy.tolist()
        if node in usable
    }
    ids = {name: k for k, name in enumerate(snapshot.machine.names.tolist())}
    for at, job in enumerate(queue.jobs):
        for node in map(ids.get, job.nodes):
            end = ends.get((f"job {job.number}", node), math.nan)
            if node is not None and math.isfinite(end) and job.start <= snapshot.now:
                holder[node] = max(holder.get(node, (-math.inf, 0)), (end, at))
    rows = []
    for (end, at), count in Counter(holder.values()).items():
        job = queue.jobs[at]
        start = job.start - snapshot.now
        rows.append((count, end - job.start, start, job.user or f"job {job.number}"))
    return rows

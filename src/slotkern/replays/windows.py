"""Slot-window policies: each job books its best window among the free slots."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern import Request, SlotPool, Window, _replay, make_slots
from slotkern.checks import number, one_of
from slotkern.machine.spans import gaps
from slotkern.replays.cluster import Cluster
from slotkern.replays.jobs import FlowJobs
from slotkern.replays.placed import Placed
from slotkern.traces.free_slots import ranges

__all__ = ["WindowPolicy", "place_windows", "pooled"]


@dataclass(frozen=True, eq=False)
class WindowPolicy:
    """A policy that books each job's best window when the job arrives.

    Attributes
    ----------
    criterion
        What `find_window` takes: ``"start"``, ``"cost"``, ``"finish"``,
        ``"dependable"``, ``"coordinated"``, ...
    shape : {"square", "ragged"}
        Whether all parts also finish together.
    method : {"exact", "lite"}
    budget : float or array
        The most money of a job; an array has one entry for each row of the trace.
    slack : float
        Windows finish at most so many seconds after the earliest possible finish. A
        flow never ends, and the best of all later windows may be far away.
    compress : {"none", "start"}
        What waiting jobs do when one has ended before its estimate: keep their windows;
        or, in the order of submission, move to the window with the earliest start, of
        equal starts the cheapest, if that is earlier or as early and cheaper. No window
        ever moves to a later start.
    """

    criterion: Any = "start"
    shape: Literal["square", "ragged"] = "square"
    method: str = "exact"
    budget: float | NDArray[np.float64] = np.inf
    slack: float = np.inf
    compress: Literal["none", "start"] = "none"

    def __post_init__(self) -> None:
        """Check what can be checked without jobs."""
        one_of("shape", self.shape, ("square", "ragged"))
        one_of("compress", self.compress, ("none", "start"))
        one_of("method", self.method, ("exact", "lite"))
        number("slack", self.slack, least=0, finite=False)
        if not isinstance(self.budget, np.ndarray):
            number("budget", self.budget, least=0, finite=False)

    def budgets(self, rows: NDArray[np.int64], total: int) -> list[float]:
        """The budget of each job."""
        if not isinstance(self.budget, np.ndarray):
            return [float(self.budget)] * len(rows)
        if self.budget.shape != (total,) or self.budget.dtype.kind not in "iuf":
            shape, dtype = self.budget.shape, self.budget.dtype
            reason = f"it needs one number for each of {total} jobs"
            raise ValueError(f"budget has shape {shape} and dtype {dtype}; {reason}")
        found = self.budget[rows].astype(np.float64)
        wrong = ~(found >= 0)
        if wrong.any():
            row = rows[wrong.argmax()]
            raise ValueError(f"budget: row {row} is {self.budget[row]}, not money")
        money: list[float] = found.tolist()
        return money


def pooled(cluster: Cluster) -> Cluster:
    """The sites of a cluster as one pool of nodes, in the order of its rows."""
    return Cluster(
        np.array([-1]),
        np.array([cluster.processors.sum()], np.int32),
        np.ones(1),
        np.zeros(1),
        cluster.blocked,
    )


def place_windows(
    flow: FlowJobs,
    cluster: Cluster,
    policy: WindowPolicy,
    total: int,
    nodes: bool,
    progress: Callable[[int], object] | None,
) -> Placed:
    """Book and release windows as jobs come and end.

    The times of jobs are those of performance 1. One search a job (and one for each
    move), on the pool as it is then.
    """
    count = len(flow.row)
    performance = np.repeat(cluster.performance, cluster.processors)
    price = np.repeat(cluster.price, cluster.processors)
    placed = Placed.nowhere(count)
    held = [np.empty(0, np.int32)] * count  # the nodes of each job
    if count == 0:
        return placed
    pool = SlotPool(_free(flow, cluster, performance, price))
    budgets = policy.budgets(flow.row, total)
    submit, width = flow.submit.tolist(), flow.width.tolist()
    run, estimate = flow.run.tolist(), flow.estimate.tolist()
    windows: dict[int, Window] = {}  # of jobs that have not ended
    ends: list[tuple[float, int]] = []
    starts: list[tuple[float, int]] = []
    waiting: dict[int, None] = {}  # in the order of submission

    def find(job: int, now: float, criterion: Any) -> Window | None:
        limits: dict[str, Any] = {"budget": budgets[job], "earliest": now}
        if policy.slack < np.inf:
            request = Request(width[job], estimate[job], **limits)
            soonest = pool.find(request, "finish", shape=policy.shape)
            if soonest is None:
                return None
            limits["deadline"] = soonest.finish + policy.slack
        request = Request(width[job], estimate[job], **limits)
        return pool.find(request, criterion, shape=policy.shape, method=policy.method)

    def keep(job: int, window: Window) -> None:
        pool.book(window)
        windows[job] = window
        held[job] = np.array(window.nodes, np.int32)
        length = run[job] / float(performance[held[job]].min())
        placed.start[job], placed.run[job] = window.start, length
        heapq.heappush(starts, (window.start, job))
        heapq.heappush(ends, (window.start + length, job))

    def begin(now: float) -> None:
        while starts and starts[0][0] <= now:  # windows are left for earlier ones
            waiting.pop(heapq.heappop(starts)[1], None)

    coming = 0
    while coming < count or ends:
        now = min(
            ends[0][0] if ends else np.inf,
            submit[coming] if coming < count else np.inf,
        )
        pool.advance(now)
        begin(now)
        early = False
        while ends and ends[0][0] == now:
            end, job = heapq.heappop(ends)
            if job not in windows or placed.start[job] + placed.run[job] != end:
                continue  # the end of a window that was left
            window = windows.pop(job)
            parts = held[job]
            placed.cost[job] = (price[parts] * (run[job] / performance[parts])).sum()
            if window.finish > now:
                pool.release(window)
                early = True
        if early and policy.compress == "start":
            for job in list(waiting):
                old = windows[job]
                pool.release(old)
                new = find(job, now, "start")
                if new is None or (new.start, new.cost) >= (old.start, old.cost):
                    new = old
                keep(job, new)
            begin(now)
        while coming < count and submit[coming] == now:
            best = find(coming, now, policy.criterion)
            if best is not None:
                keep(coming, best)
                if best.start > now:
                    waiting[coming] = None
            coming += 1
        placed.most_waiting = max(placed.most_waiting, len(waiting))
        if progress is not None and coming % 256 == 0:
            progress(coming)
    if nodes:
        placed.put_nodes(held)
    return placed


def _free(
    flow: FlowJobs,
    cluster: Cluster,
    performance: NDArray[np.float64],
    price: NDArray[np.float64],
) -> NDArray[Any]:
    """The free slots of all nodes, without blocked time, until all can have ended."""
    begin = float(flow.submit[0])
    work = float(flow.estimate.sum()) / float(performance.min())
    blocked = cluster.blocked
    until = float(max(flow.submit[-1], blocked["end"].max(initial=0))) + work + 1
    node, start, end = [], [], []
    shift = np.cumsum(cluster.processors) - cluster.processors
    for row, site in enumerate(cluster.site):
        spans = blocked[blocked["site"] == site]  # also past ones: they took nodes
        spans = np.sort(spans, order=("start", "end", "processors"))
        count, parts = _nodes_of(spans, int(cluster.processors[row]))
        size = parts[:, 1].astype(np.int64)
        span = np.repeat(np.repeat(spans, count), size)
        to_come = span["end"] > begin
        nodes = ranges(parts[:, 0].astype(np.int64), size)
        node.append(shift[row] + nodes[to_come])
        start.append(span["start"][to_come])
        end.append(span["end"][to_come])
    of, free_from, free_to = gaps(
        len(performance),
        np.concatenate(node),
        np.concatenate(start),
        np.concatenate(end),
        begin,
        until,
    )
    return make_slots(
        node=of,
        start=free_from,
        end=free_to,
        performance=performance[of],
        price=price[of],
    )


def _nodes_of(spans: NDArray[Any], processors: int) -> tuple[Any, Any]:
    """The lowest nodes that are not blocked already, for each span, sorted by start."""
    length = spans["end"] - spans["start"]
    nothing = np.empty(0)
    _, _, count, parts, _ = _replay.replay(
        spans["start"].copy(),
        length,
        length,
        spans["processors"].copy(),
        processors,
        nothing,
        nothing,
        nothing.astype(np.int32),
        "none",
    )
    return count, parts

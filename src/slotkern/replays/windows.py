"""Slot-window policies: each job books its best window among the free slots."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern import Request, SlotPool, Window, _replay, make_slots
from slotkern._find import find_once
from slotkern.checks import number, one_of
from slotkern.machine.spans import gaps
from slotkern.replays.cluster import Cluster
from slotkern.replays.jobs import ArrivalQueue, FlowJobs
from slotkern.replays.placements import Placements
from slotkern.traces.free_slots import ranges

#: The most processors under policies of windows and cycles: about 500 bytes each.
MAX_NODES = 2**20

__all__ = [
    "WindowLedger",
    "WindowPolicy",
    "budget_per_job",
    "merge_sites",
    "place_windows",
]


@dataclass(frozen=True, eq=False)
class WindowPolicy:
    """A policy that books each job's best window when the job arrives.

    Attributes
    ----------
    criterion
        What `find_window` takes: ``"start"``, ``"cost"``, ``"finish"``,
        ``"dependable"``, ``"coordinated"``, ...; also a further column of the cluster,
        of which the most is taken (or by `minimize` the least).
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


def budget_per_job(
    budget: float | NDArray[Any], rows: NDArray[np.int64], total: int
) -> list[float]:
    """The budget of each job, of one for all or of one for each row of the trace."""
    if not isinstance(budget, np.ndarray):
        return [float(budget)] * len(rows)
    if budget.shape != (total,) or budget.dtype.kind not in "iuf":
        shape, dtype = budget.shape, budget.dtype
        reason = f"it needs one number for each of {total} jobs"
        raise ValueError(f"budget has shape {shape} and dtype {dtype}; {reason}")
    found = budget[rows].astype(np.float64)
    wrong = ~(found >= 0)
    if wrong.any():
        row = rows[wrong.argmax()]
        raise ValueError(f"budget: row {row} is {budget[row]}, not money")
    money: list[float] = found.tolist()
    return money


def merge_sites(cluster: Cluster) -> Cluster:
    """The sites of a cluster as one pool of nodes, in the order of its rows."""
    return Cluster(
        np.array([-1]),
        np.array([cluster.processors.sum()], np.int32),
        np.ones(1),
        np.zeros(1),
        cluster.blocked,
    )


class WindowLedger:
    """The free time of a flow's nodes, and the windows that its jobs hold in it.

    Time lasts until all jobs have run one after another, each after a `pause`.
    """

    def __init__(
        self, flow: FlowJobs, cluster: Cluster, shape: str, pause: float = 0.0
    ) -> None:
        if (size := int(cluster.processors.sum())) > MAX_NODES:
            raise ValueError(
                "cluster: policies of windows and cycles have a node for each "
                f"processor, at most {MAX_NODES:,}; the cluster has {size:,}; take a "
                "queue policy, or fewer and larger nodes"
            )
        self.placed = Placements.empty(len(flow.row))
        self.arrivals = ArrivalQueue(flow)
        self.performance = np.repeat(cluster.performance, cluster.processors)
        self.price = np.repeat(cluster.price, cluster.processors)
        free = _free_slots(flow, cluster, self.performance, self.price, pause)
        self.pool = SlotPool(free)
        self._square = shape == "square"
        self.windows: dict[int, Window] = {}  # of jobs that have not ended
        self.waiting: dict[int, None] = {}  # whose windows begin later, as they came
        self._run = flow.run.tolist()
        self._nodes = [np.empty(0, np.int32)] * len(flow.row)
        self._ends: list[tuple[float, int]] = []
        self._starts: list[tuple[float, int]] = []
        self._ended_early: list[
            Window
        ] = []  # of jobs that have ended before their estimate

    @property
    def next_end(self) -> float:
        """When the next job ends, infinite if none runs or waits."""
        return self._ends[0][0] if self._ends else np.inf

    def assign(self, job: int, window: Window) -> None:
        """Give a job its window, which the pool has booked, or another one."""
        placed = self.placed
        if self.windows.get(job) is window:
            return  # given back and taken again
        self.windows[job] = window
        nodes = self._nodes[job] = np.array(window.nodes, np.int32)
        length = self._run[job] / float(self.performance[nodes].min())
        placed.start[job], placed.run[job] = window.start, length
        heapq.heappush(self._starts, (window.start, job))
        heapq.heappush(self._ends, (window.start + length, job))

    def advance_to(self, now: float) -> bool:
        """Let time pass; whether a job has ended before its estimate.

        The pool is told by `sync_pool`, before it is searched.
        """
        self.mark_started(now)
        early = False
        while self._ends and self._ends[0][0] == now:
            end, job = heapq.heappop(self._ends)
            if job not in self.windows or self._end_of(job) != end:
                continue  # the end of a window that was left
            self.arrivals.on_job_end(job, now)
            window, parts = self.windows.pop(job), self._nodes[job]
            used = self.placed.run[job]
            if not self._square:
                used = self._run[job] / self.performance[parts]
            self.placed.cost[job] = (self.price[parts] * used).sum()
            if window.finish > now:
                self._ended_early.append(window)
                early = True
        return early

    def sync_pool(self, now: float) -> None:
        """Tell the pool the time, and what has ended early since the last time."""
        self.pool.advance(now)
        for window in self._ended_early:
            if window.finish > now:
                self.pool.release(window)
        self._ended_early.clear()

    def mark_started(self, now: float) -> None:
        """Note which jobs wait no more."""
        while self._starts and self._starts[0][0] <= now:
            # Windows are left for earlier ones alone.
            self.waiting.pop(heapq.heappop(self._starts)[1], None)

    def finish(self, nodes: bool) -> Placements:
        """Where all jobs have been placed."""
        if nodes and self._nodes:
            self.placed.set_processors(self._nodes)
        return self.placed

    def _end_of(self, job: int) -> float:
        return float(self.placed.start[job] + self.placed.run[job])


def place_windows(
    flow: FlowJobs,
    cluster: Cluster,
    policy: WindowPolicy,
    total: int,
    nodes: bool,
    progress: Callable[[int], object] | None,
) -> Placements:
    """Book and release windows as jobs come and end.

    The times of jobs are those of performance 1. One search a job (and one for each
    move), on the pool as it is then.
    """
    count = len(flow.row)
    if count == 0:
        return Placements.empty(0)
    ledger = WindowLedger(flow, cluster, policy.shape)
    pool, windows, waiting = ledger.pool, ledger.windows, ledger.waiting
    budgets = budget_per_job(policy.budget, flow.row, total)
    arrivals, width = ledger.arrivals, flow.width.tolist()
    estimate = flow.estimate.tolist()

    def find(job: int, now: float, criterion: Any) -> Window | None:
        limits: dict[str, Any] = {"budget": budgets[job], "earliest": now}
        if policy.slack < np.inf:
            request = Request(width[job], estimate[job], **limits)
            soonest = pool.find(request, "finish", shape=policy.shape)
            first = pool.find(request, "start", shape=policy.shape)
            if soonest is None or first is None:
                return None
            limits["deadline"] = soonest.finish + policy.slack
            # No window starts sooner: sums of values look at what is free from then on.
            limits["earliest"] = first.start
        request = Request(width[job], estimate[job], **limits)
        how: Any = {"shape": policy.shape, "method": policy.method}
        return find_once(pool, request, criterion, **how)

    submitted = 0
    while (now := min(ledger.next_end, arrivals.next_time)) < np.inf:
        move = ledger.advance_to(now) and policy.compress == "start"
        if move or arrivals.next_time == now:
            ledger.sync_pool(now)
        if move:
            for job in list(waiting):
                old = windows[job]
                pool.release(old)
                new = find(job, now, "start")
                if new is None or (new.start, new.cost) >= (old.start, old.cost):
                    new = old
                pool.book(new)
                ledger.assign(job, new)
            ledger.mark_started(now)
        while arrivals.next_time == now:
            coming = arrivals.pop()
            best = find(coming, now, policy.criterion)
            if best is not None:
                pool.book(best)
                ledger.assign(coming, best)
                if best.start > now:
                    waiting[coming] = None
            submitted += 1
        ledger.placed.most_waiting = max(ledger.placed.most_waiting, len(waiting))
        if progress is not None and submitted % 256 == 0:
            progress(submitted)
    return ledger.finish(nodes)


def _free_slots(
    flow: FlowJobs,
    cluster: Cluster,
    performance: NDArray[np.float64],
    price: NDArray[np.float64],
    pause: float,
) -> NDArray[Any]:
    """The free slots of all nodes, without blocked time, until all can have ended."""
    begin = float(flow.submit[0])
    work = float(flow.estimate.sum()) / float(performance.min())
    work += pause * len(flow.row)
    if flow.think_time is not None:
        work += float(flow.think_time.sum())
    blocked = cluster.blocked
    until = float(max(flow.submit[-1], blocked["end"].max(initial=0))) + work + 1
    node, start, end = [], [], []
    shift = np.cumsum(cluster.processors) - cluster.processors
    for row, site in enumerate(cluster.site):
        spans = blocked[blocked["site"] == site]  # also past ones: they took nodes
        spans = np.sort(spans, order=("start", "end", "processors"))
        count, parts = _lowest_free_nodes(spans, int(cluster.processors[row]))
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
        **{
            name: np.repeat(column, cluster.processors)[of]
            for name, column in cluster.columns.items()
        },
    )


def _lowest_free_nodes(spans: NDArray[Any], processors: int) -> tuple[Any, Any]:
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

"""Window policies: each job books its best window in a pool when it arrives.

`WindowLedger` combines the pool of free slots with the events of a replay (arrivals,
starts, ends); the policies of windows and of cycles both use it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels import replay as _replay
from slotkern._kernels.pool import SlotPool
from slotkern._kernels.request import Request
from slotkern._kernels.search import find_once
from slotkern._kernels.windows import Window
from slotkern.foundation.checks import number, one_of
from slotkern.machine.gaps import gaps
from slotkern.replays.cluster import Cluster
from slotkern.replays.jobs import ArrivalQueue, FlowJobs
from slotkern.replays.placements import Placements, Pricing
from slotkern.slots import make_slots
from slotkern.traces.free_slots import ranges

#: Maximum number of processors under window and cycle policies (500 bytes each).
MAX_NODES = 2**20
_TARIFF = "prices"  # the tariff of all nodes under `replay(prices=)`

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
        A criterion of `find_window`: ``"start"``, ``"cost"``, ``"finish"``,
        ``"dependable"``, ``"coordinated"``, ...; or the name of a further column of
        the cluster, whose sum is maximized (with `minimize`: minimized).
    shape : {"square", "ragged"}
        ``"square"``: all parts also finish together.
    method : {"exact", "lite"}
    budget : float or array
        The maximum cost of a job; an array has one entry for each row of the trace.
    slack : float
        Seconds; a window finishes at most `slack` after the earliest possible finish.
        Without a limit the best window may be far in the future.
    compress : {"none", "start"}
        What happens to waiting jobs when a job ends before its estimate.
        ``"none"``: they keep their windows. ``"start"``: in the order of submission,
        each moves to the cheapest window with the earliest start if that starts
        earlier, or starts at the same time and costs less. No window moves to a later
        start.
    """

    criterion: Any = "start"
    shape: Literal["square", "ragged"] = "square"
    method: str = "exact"
    budget: float | NDArray[np.float64] = np.inf
    slack: float = np.inf
    compress: Literal["none", "start"] = "none"

    def __post_init__(self) -> None:
        """Validate the fields, except for those that depend on the jobs."""
        one_of("shape", self.shape, ("square", "ragged"))
        one_of("compress", self.compress, ("none", "start"))
        one_of("method", self.method, ("exact", "lite"))
        number("slack", self.slack, least=0, finite=False)
        if not isinstance(self.budget, np.ndarray):
            number("budget", self.budget, least=0, finite=False)


def budget_per_job(
    budget: float | NDArray[Any], rows: NDArray[np.int64], total: int
) -> list[float]:
    """Return the budget of each job.

    `budget` is one number for all jobs, or an array with an entry for each of the
    `total` rows of the trace; `rows` are the rows of the jobs.
    """
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
        raise ValueError(f"budget: row {row} is {budget[row]}, not at least 0")
    money: list[float] = found.tolist()
    return money


def merge_sites(cluster: Cluster) -> Cluster:
    """Return a cluster of one site with the processors of all sites.

    The processors are numbered in the order of the sites' rows. Performance is 1 and
    price 0: window and cycle policies apply those of each processor themselves.
    """
    return Cluster(
        np.array([-1]),
        np.array([cluster.processors.sum()], np.int32),
        np.ones(1),
        np.zeros(1),
        cluster.blocked,
    )


class WindowLedger:
    """The free slots of a cluster, the windows that jobs hold, and the next events.

    Each processor is a node of `pool`. The horizon is long enough for all jobs to run
    one after another, each after `pause` seconds, after the last change of prices.
    Starts and ends of windows are kept in heaps; entries of windows that were replaced
    are skipped when they are popped.
    """

    def __init__(
        self,
        flow: FlowJobs,
        cluster: Cluster,
        shape: str,
        pricing: Pricing | None,
        pause: float = 0.0,
    ) -> None:
        if (size := int(cluster.processors.sum())) > MAX_NODES:
            raise ValueError(
                "cluster: policies of windows and cycles have a node for each "
                f"processor, at most {MAX_NODES:,}; the cluster has {size:,}; use a "
                "queue policy, or fewer and larger nodes"
            )
        self.placed = Placements.empty(len(flow.row))
        self.arrivals = ArrivalQueue(flow)
        self.performance = np.repeat(cluster.performance, cluster.processors)
        self.price = np.repeat(cluster.price, cluster.processors)
        work = _total_work(flow, float(self.performance.min()), pause)
        begin, last = float(flow.submit[0]), _last_event(flow, cluster)
        #: The factor of all prices over time; None: 1 at any time.
        self.tariff = None if pricing is None else pricing(begin, last + work + 1)
        tariffs = None
        if self.tariff is not None:
            tariffs = {_TARIFF: self.tariff}
            names = np.full(len(cluster.site), _TARIFF)
            cluster = replace(cluster, columns=cluster.columns | {"tariff": names})
            # Cheap hours may begin after all jobs could have run.
            last = max(last, float(self.tariff.breakpoints.max(initial=last)))
        free = _free_slots(
            cluster, self.performance, self.price, begin, last + work + 1
        )
        self.pool = SlotPool(free, tariffs=tariffs)
        self._square = shape == "square"
        self.windows: dict[int, Window] = {}  # by job, until it ends
        self.waiting: dict[int, None] = {}  # jobs that have not started, by arrival
        self._run = flow.run.tolist()
        self._nodes = [np.empty(0, np.int32)] * len(flow.row)
        self._ends: list[tuple[float, int]] = []
        self._starts: list[tuple[float, int]] = []
        # windows of jobs that ended early, until `sync_pool` releases the rest
        self._ended_early: list[Window] = []

    @property
    def next_end(self) -> float:
        """The time at which the next job ends; inf if no job runs or waits."""
        return self._ends[0][0] if self._ends else np.inf

    def assign(self, job: int, window: Window) -> None:
        """Record the window of a job, which the pool has booked, or its replacement."""
        placed = self.placed
        if self.windows.get(job) is window:
            return  # released and booked again
        self.windows[job] = window
        nodes = self._nodes[job] = np.array(window.nodes, np.int32)
        length = self._run[job] / float(self.performance[nodes].min())
        placed.start[job], placed.run[job] = window.start, length
        heapq.heappush(self._starts, (window.start, job))
        heapq.heappush(self._ends, (window.start + length, job))

    def advance_to(self, now: float) -> bool:
        """Process the starts and ends until `now`.

        Returns True if a job has ended before its estimate. The pool is not changed:
        `sync_pool` must be called before the next search.
        """
        self.mark_started(now)
        early = False
        while self._ends and self._ends[0][0] == now:
            end, job = heapq.heappop(self._ends)
            if job not in self.windows or self._end_of(job) != end:
                continue  # the end of a window that was replaced
            self.arrivals.on_job_end(job, now)
            window, parts = self.windows.pop(job), self._nodes[job]
            used = self.placed.run[job]
            if not self._square:
                used = self._run[job] / self.performance[parts]
            if self.tariff is not None:
                used = self.tariff.integral(window.start, used)
            self.placed.cost[job] = (self.price[parts] * used).sum()
            if window.finish > now:
                self._ended_early.append(window)
                early = True
        return early

    def sync_pool(self, now: float) -> None:
        """Advance the pool's clock and release the unused time of ended jobs."""
        self.pool.advance(now)
        for window in self._ended_early:
            if window.finish > now:
                self.pool.release(window)
        self._ended_early.clear()

    def mark_started(self, now: float) -> None:
        """Remove the jobs that have started from `waiting`."""
        while self._starts and self._starts[0][0] <= now:
            # Replacements never start later, so entries of replaced windows do no harm.
            self.waiting.pop(heapq.heappop(self._starts)[1], None)

    def finish(self, nodes: bool) -> Placements:
        """Return the placements of all jobs, with their processors if `nodes`."""
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
    pricing: Pricing | None,
) -> Placements:
    """Replay a flow under a window policy: book windows at arrivals, release at ends.

    The times of jobs are those at performance 1. Each job costs one search of the pool
    (three with a finite slack), and one more for each time that it may move.
    """
    count = len(flow.row)
    if count == 0:
        return Placements.empty(0)
    ledger = WindowLedger(flow, cluster, policy.shape, pricing)
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
            # No window starts earlier; sums of values depend on the earliest start.
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
            arrived = arrivals.pop()
            best = find(arrived, now, policy.criterion)
            if best is not None:
                pool.book(best)
                ledger.assign(arrived, best)
                if best.start > now:
                    waiting[arrived] = None
            submitted += 1
        ledger.placed.most_waiting = max(ledger.placed.most_waiting, len(waiting))
        if progress is not None and submitted % 256 == 0:
            progress(submitted)
    return ledger.finish(nodes)


def _last_event(flow: FlowJobs, cluster: Cluster) -> float:
    """Return the last submission or end of a blocked span."""
    return float(max(flow.submit[-1], cluster.blocked["end"].max(initial=0)))


def _total_work(flow: FlowJobs, slowest: float, pause: float) -> float:
    """Return the time in which all jobs run one after another at a performance."""
    work = float(flow.estimate.sum()) / slowest + pause * len(flow.row)
    return work + (0 if flow.think_time is None else float(flow.think_time.sum()))


def _free_slots(
    cluster: Cluster,
    performance: NDArray[np.float64],
    price: NDArray[np.float64],
    begin: float,
    until: float,
) -> NDArray[Any]:
    """Return the free slots of all nodes from `begin` to `until`, but blocked times."""
    blocked = cluster.blocked
    node, start, end = [], [], []
    shift = np.cumsum(cluster.processors) - cluster.processors
    for row, site in enumerate(cluster.site):
        spans = blocked[
            blocked["site"] == site
        ]  # past spans too: they determine the nodes of later ones
        spans = np.sort(spans, order=("start", "end", "processors"))
        count, parts = _lowest_free_nodes(spans, int(cluster.processors[row]))
        size = parts[:, 1].astype(np.int64)
        span = np.repeat(np.repeat(spans, count), size)
        is_future = span["end"] > begin
        nodes = ranges(parts[:, 0].astype(np.int64), size)
        node.append(shift[row] + nodes[is_future])
        start.append(span["start"][is_future])
        end.append(span["end"][is_future])
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
    """Return the lowest nodes that are not blocked yet, for each of the sorted spans.

    The kernel of replays places the spans like jobs that start at their submission.
    """
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

"""Cycle policies: all waiting jobs are scheduled as one batch at regular times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.windows import Window
from slotkern.batch.policies import BSF, Backfilling, BatchSlicer
from slotkern.batch.scheduling import schedule_batch
from slotkern.foundation.checks import integer, number, one_of
from slotkern.replays.cluster import Cluster
from slotkern.replays.jobs import FlowJobs
from slotkern.replays.placements import Placements, Pricing
from slotkern.replays.windows import WindowLedger, budget_per_job

__all__ = ["CyclePolicy", "place_cycles"]

_DEFAULT_SLICER = BatchSlicer(3)
_MAX_CYCLES = 10**7


@dataclass(frozen=True, eq=False)
class CyclePolicy:
    """A policy that schedules all waiting jobs as one batch in each cycle.

    Attributes
    ----------
    length : float
        Seconds from one cycle to the next; the first cycle is at the first submission.
    policy : BatchSlicer, Backfilling or BSF
        A policy of `schedule_batch`; the jobs of a batch are in order of submission.
    horizon : float
        Seconds; windows of a cycle finish at most `horizon` after its time.
    shape : {"square", "ragged"}
        ``"square"``: all parts also finish together.
    budget : float or array
        The maximum cost of a job; an array has one entry for each row of the trace.
    most : int
        The maximum number of alternatives for each job.
    options : mapping
        Further arguments of `schedule_batch`, such as ``minimize`` and ``limit``.

    Notes
    -----
    "Cyclic scheduling scheme" (Toporkov et al. 2014, section 3.1): a job without a
    window is added to the batch of the next cycle, as long as a future event can still
    make a window possible. The unused time of a job that ends early is free for later
    cycles. Cycles without jobs are skipped. In addition to scheduling the batch, a
    cycle takes O(m log m) for m free slots. This is avoided in two cases in which
    booking the earliest window of each job in turn gives the same result: conservative
    backfilling; and a `BatchSlicer` in the order of submission with its default target
    on nodes of equal performance and price, on which all windows of a job have equal
    length and cost.
    """

    length: float = 3600.0
    policy: BatchSlicer | Backfilling | BSF = _DEFAULT_SLICER
    horizon: float = np.inf
    shape: Literal["square", "ragged"] = "square"
    budget: float | NDArray[np.float64] = np.inf
    most: int = 10
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Validate the fields, except for those that depend on the jobs."""
        number("length", self.length, above=0)
        number("horizon", self.horizon, above=0, finite=False)
        one_of("shape", self.shape, ("square", "ragged"))
        integer("most", self.most, least=1)
        if not isinstance(self.policy, (BatchSlicer, Backfilling, BSF)):
            kind = type(self.policy).__name__
            names = "BatchSlicer, Backfilling or BSF"
            raise TypeError(f"policy must be a {names}, got {kind}")
        if not isinstance(self.budget, np.ndarray):
            number("budget", self.budget, least=0, finite=False)


def place_cycles(
    flow: FlowJobs,
    cluster: Cluster,
    policy: CyclePolicy,
    total: int,
    nodes: bool,
    progress: Callable[[int], object] | None,
    pricing: Pricing | None,
) -> Placements:
    """Replay a flow under a cycle policy.

    The times of jobs are those at performance 1. Raises ValueError if the cycles are so
    short that more than `_MAX_CYCLES` are needed, or so long that times lose precision.
    """
    count = len(flow.row)
    if count == 0:
        return Placements.empty(0)
    _check_length(policy, flow)
    ledger = WindowLedger(flow, cluster, policy.shape, pricing, policy.length)
    budgets = budget_per_job(policy.budget, flow.row, total)
    arrivals, width = ledger.arrivals, flow.width.tolist()
    estimate = flow.estimate.tolist()
    in_turn = _takes_earliest_in_turn(policy, ledger)
    last_block = float(cluster.blocked["end"].max(initial=-np.inf))
    first = arrivals.next_time

    def schedule(now: float, jobs: list[int]) -> list[int]:
        """Book windows for the jobs at `now`; return the jobs that found none."""
        requests = [
            Request(
                width[job],
                estimate[job],
                budget=budgets[job],
                earliest=now,
                deadline=now + policy.horizon,
            )
            for job in jobs
        ]
        left = []
        windows = _book(requests, policy, ledger, in_turn)
        for job, window in zip(jobs, windows, strict=True):
            if window is None:
                left.append(job)
                continue
            ledger.assign(job, window)
            if window.start > now:
                ledger.waiting[job] = None
        return left

    queue: list[int] = []
    submitted, cycle, used = 0, 0, 0
    while True:
        begins = first + cycle * policy.length if queue else np.inf
        now = min(ledger.next_end, arrivals.next_time, begins)
        if now == np.inf:
            break
        ledger.advance_to(now)
        while arrivals.next_time == now:
            if not queue:  # skip cycles without jobs
                cycle = max(cycle, int(np.ceil((now - first) / policy.length)))
                begins = first + cycle * policy.length
            queue.append(arrivals.pop())
            submitted += 1
        waiting = len(ledger.waiting) + len(queue)
        ledger.placed.most_waiting = max(ledger.placed.most_waiting, waiting)
        if queue and begins <= now:
            is_last = arrivals.next_time == ledger.next_end == np.inf
            is_idle = is_last and now >= last_block  # no event can free more time
            tried = len(queue)
            ledger.sync_pool(now)
            queue = schedule(now, queue)
            cycle, used = cycle + 1, used + 1
            if used > _MAX_CYCLES:
                waiting_still = f"{len(queue):,} jobs still wait"
                raise ValueError(f"{_too_short(policy)} them, and {waiting_still}")
            if is_idle and len(queue) == tried:  # the rest can never be placed
                break
        if progress is not None and submitted % 256 == 0:
            progress(submitted)
    return ledger.finish(nodes)


def _too_short(policy: CyclePolicy) -> str:
    return f"cycles of {policy.length} s are too short: more than {_MAX_CYCLES:,} of"


def _check_length(policy: CyclePolicy, flow: FlowJobs) -> None:
    """Refuse cycles of a length that is too short or too long for the flow."""
    span, count = float(flow.submit[-1] - flow.submit[0]), len(flow.row)
    if not span / policy.length <= _MAX_CYCLES:
        raise ValueError(f"{_too_short(policy)} them in the {span:g} s of the flow")
    if not policy.length * count <= 2.0**53:
        reason = f"{count:,} of them, one a job, add up to more than 2**53 seconds"
        raise ValueError(f"cycles of {policy.length} s are too long: {reason}")


def _book(
    requests: list[Request], policy: CyclePolicy, ledger: WindowLedger, in_turn: bool
) -> Iterable[Window | None]:
    """Find and book a window, or None, for each request."""
    if in_turn:
        return ledger.pool.schedule(requests, "start", shape=policy.shape)
    found = schedule_batch(
        ledger.pool,
        requests,
        policy.policy,
        shape=policy.shape,
        most=policy.most,
        **policy.options,
    )
    ledger.pool.book(found)
    return found


def _takes_earliest_in_turn(policy: CyclePolicy, ledger: WindowLedger) -> bool:
    """Return whether the policy books the earliest window of each job in turn.

    Then no alternatives need to be searched. On equal nodes all windows of a job have
    the same length and cost, and among equal alternatives a `BatchSlicer` chooses the
    earliest, which is found first.
    """
    batch = policy.policy
    if policy.options:
        return False
    if not isinstance(batch, BatchSlicer):
        return isinstance(batch, Backfilling) and batch.kind == "conservative"
    if ledger.tariff is not None:
        return False  # windows of equal length differ in cost
    equal = all(np.ptp(column) == 0 for column in (ledger.performance, ledger.price))
    plain = not isinstance(batch.k, tuple) and batch.by == "order"
    # "first" may select other nodes for the same start.
    return equal and plain and batch.criterion != "first"

"""A flow of jobs, scheduled batch by batch, cycle after cycle."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._core import PreparedSlots
from slotkern._pool import SlotPool
from slotkern.batch.jobs import Batch
from slotkern.batch.policies import CSS, Policy
from slotkern.batch.schedule import Schedule
from slotkern.batch.scheduling import schedule_batch
from slotkern.checks import integer, number
from slotkern.notes import log
from slotkern.shown import Drawn
from slotkern.shown_table import Table
from slotkern.typing import Slots

__all__ = ["Cycles", "run_cycles"]


@dataclass(frozen=True, eq=False)
class Cycles(Drawn):
    """What became of a flow of jobs.

    Attributes
    ----------
    schedules : list of Schedule
        One a cycle; a cycle without jobs has an empty one.
    times : ndarray of float64, shape (cycles,)
        When each cycle was scheduled.
    jobs : list of ndarray of int64
        Which jobs each cycle's batch was made of, oldest first.
    cycle : ndarray of int64, shape (jobs,)
        The cycle that scheduled each job; -1: none did.
    start, wait : ndarray of float64, shape (jobs,)
        When each job starts, and how long after it arrived; NaN where none did.
    failures : ndarray of int64, shape (cycles,)
        How many jobs of each cycle returned to the next batch.
    """

    schedules: list[Schedule]
    times: NDArray[np.float64]
    jobs: list[NDArray[np.int64]]
    cycle: NDArray[np.int64]
    start: NDArray[np.float64]
    wait: NDArray[np.float64]
    failures: NDArray[np.int64]

    @property
    def throughput(self) -> NDArray[np.int64]:
        """How many jobs each cycle scheduled."""
        return np.array(
            [int(each.scheduled.sum()) for each in self.schedules], np.int64
        )

    def _shown(self) -> Table:
        """One row a job."""
        terms = self.schedules[0].alternatives.terms if self.schedules else None
        columns = {
            "job": np.arange(len(self.cycle)),
            "cycle": self.cycle,
            "start": self.start,
            "wait": self.wait,
        }
        return Table(
            repr(self),
            columns,
            len(self.cycle),
            terms=terms,
            times=("start",),
            spans=("wait",),
            facts={"a cycle at most": self.throughput.max(initial=0)},
        )

    def __repr__(self) -> str:
        done = int((self.cycle >= 0).sum())
        return f"Cycles({len(self.schedules)} cycles, {done} of {len(self.cycle)} jobs)"


def run_cycles(
    slots: Slots,
    requests: Any,
    arrivals: ArrayLike,
    *,
    length: float,
    cycles: int | None = None,
    horizon: float | None = None,
    policy: Policy | Callable[[int], Policy] = CSS,
    prices: Callable[[int, NDArray[np.void]], NDArray[np.float64]] | None = None,
    options: Callable[[int], dict[str, Any]] | None = None,
) -> Cycles:
    """Schedule what has arrived, once a cycle, on what earlier cycles have left.

    Parameters
    ----------
    slots : structured array or SlotPool
        The free time of all cycles together. Never changed.
    requests, arrivals : sequence of Request (or Batch, or table), array_like of float
        The jobs, and when each is handed in. Cycle c, at the time ``c * length``,
        schedules those that have come by then and those that failed before.
    length : float
        Of a cycle.
    cycles : int, optional
        How many; as many as it takes until all jobs have had a turn by default.
    horizon : float, optional
        How far ahead of its time a cycle may book; without end by default.
    policy : Policy or function of the cycle
    prices : function of the cycle and the free slots, optional
        The owners' prices of a cycle, one a slot.
    options : function of the cycle, optional
        Further arguments of `schedule_batch`: the administrators' limit and target.

    Returns
    -------
    Cycles

    Raises
    ------
    ValueError, TypeError
        As `schedule_batch`; for arrivals of another number or that are not finite.

    Notes
    -----
    "Cyclic scheduling scheme" (Toporkov et al. 2014, section 3.1, figures 1 and 3).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=2)
    >>> jobs = [sk.Request(2, 30), sk.Request(2, 30), sk.Request(1, 20)]
    >>> flow = sk.run_cycles(slots, jobs, [0, 5, 12], length=10, horizon=60)
    >>> flow.cycle, flow.start
    (array([0, 1, 2]), array([ 0., 30., 60.]))
    """
    batch = Batch.of(requests).in_numbers(slots)
    times = np.array(arrivals, np.float64)
    if times.shape != (len(batch),):
        raise ValueError(f"arrivals has shape {times.shape} for {len(batch)} jobs")
    if not np.isfinite(times).all():
        row = int(np.flatnonzero(~np.isfinite(times))[0])
        raise ValueError(f"arrivals[{row}] = {times[row]} is not finite")
    step = number("length", length, above=0)
    if cycles is None:
        last = float(times.max(initial=0.0))
        cycles = max(0, math.ceil(last / step)) + 1
        log.info("%d cycles: until all jobs have had a turn", cycles)
    count = integer("cycles", cycles, least=0)
    ahead = math.inf if horizon is None else number("horizon", horizon, above=0)

    pool = slots.copy() if isinstance(slots, SlotPool) else SlotPool(slots)
    waiting = list(np.argsort(times, kind="stable"))
    cycle = np.full(len(batch), -1)
    start = np.full(len(batch), np.nan)
    schedules, batches, failures = [], [], []
    for c in range(count):
        now = c * step
        pool.advance(now)
        ready = np.array([j for j in waiting if times[j] <= now], np.int64)
        free = pool.slots.copy()
        if prices is not None:
            free["price"] = prices(c, free)
        left = PreparedSlots(free, clock=pool.clock, machine=pool.machine)
        asked = [
            batch.requests[j].replace(
                deadline=min(
                    batch.requests[j].deadline,
                    max(now + ahead, batch.requests[j].earliest),
                )
            )
            for j in ready.tolist()
        ]
        schedule = schedule_batch(
            left,
            Batch(
                asked,
                [batch.names[j] for j in ready.tolist()],
                [batch.criteria[j] for j in ready.tolist()],
            ),
            policy(c) if callable(policy) else policy,
            **(options(c) if options is not None else {}),
        )
        for window in schedule:
            if window is not None:
                pool.book(window)
        done = ready[schedule.scheduled]
        cycle[done] = c
        start[done] = schedule.windows.start[schedule.scheduled]
        waiting = [j for j in waiting if cycle[j] < 0]
        schedules.append(schedule)
        batches.append(ready)
        failures.append(len(ready) - len(done))
    return Cycles(
        schedules=schedules,
        times=step * np.arange(count, dtype=np.float64),
        jobs=batches,
        cycle=cycle,
        start=start,
        wait=start - times,
        failures=np.array(failures, np.int64),
    )

"""A flow of jobs that is scheduled batch by batch, once per cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.request import Request
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window
from slotkern.batch.execution import true_shares
from slotkern.batch.jobs import Batch
from slotkern.batch.policies import CSS, Policy
from slotkern.batch.schedule import Schedule
from slotkern.batch.scheduling import schedule_batch
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.domains import Domains
from slotkern.expressions.limits import Limit
from slotkern.foundation.checks import hint_keywords, integer, number, quote
from slotkern.foundation.logger import log
from slotkern.machine.clock import Clock, is_number
from slotkern.search.delegated import restate_window
from slotkern.typing import Slots

__all__ = ["Cycles", "run_cycles"]


@dataclass(frozen=True, eq=False)
class Cycles(HasPlot):
    """The result of `run_cycles`: the schedules of all cycles, and the times by job.

    Attributes
    ----------
    schedules : list of Schedule
        One per cycle; a cycle without jobs has an empty one.
    times : ndarray of float64, shape (cycles,)
        The time at which each cycle was scheduled.
    jobs : list of ndarray of int64
        The jobs of each cycle's batch, oldest first.
    cycle : ndarray of int64, shape (jobs,)
        The cycle that scheduled each job; -1 if none did.
    start, wait : ndarray of float64, shape (jobs,)
        The start of each job, and the time from its arrival to it; NaN if unscheduled.
    failures : ndarray of int64, shape (cycles,)
        The number of jobs of each cycle that returned to the next batch.
    finish : ndarray of float64, shape (jobs,)
        The time at which the last part of each job ends, by its true length; NaN for a
        job without a window.
    pool : SlotPool or Domains
        The free and the booked time after the last cycle.
    """

    schedules: list[Schedule]
    times: NDArray[np.float64]
    jobs: list[NDArray[np.int64]]
    cycle: NDArray[np.int64]
    start: NDArray[np.float64]
    wait: NDArray[np.float64]
    failures: NDArray[np.int64]
    finish: NDArray[np.float64]
    pool: SlotPool | Domains

    @property
    def throughput(self) -> NDArray[np.int64]:
        """The number of jobs that each cycle scheduled."""
        return np.array(
            [int(each.scheduled.sum()) for each in self.schedules], np.int64
        )

    def _as_table(self) -> Table:
        """Return one row per job."""
        context = self.schedules[0].alternatives.context if self.schedules else None
        columns = {
            "job": np.arange(len(self.cycle)),
            "cycle": self.cycle,
            "start": self.start,
            "wait": self.wait,
            "finish": self.finish,
        }
        return Table(
            repr(self),
            columns,
            len(self.cycle),
            context=context,
            times=("start", "finish"),
            spans=("wait",),
            facts={"a cycle at most": self.throughput.max(initial=0)},
        )

    def __repr__(self) -> str:
        done = int((self.cycle >= 0).sum())
        return f"Cycles({len(self.schedules)} cycles, {done} of {len(self.cycle)} jobs)"


@hint_keywords
def run_cycles(
    slots: Slots,
    requests: Any,
    arrivals: ArrayLike,
    *,
    length: Any,
    cycles: int | None = None,
    horizon: Any = None,
    policy: Policy | Callable[[int], Policy] = CSS,
    prices: Callable[[int, NDArray[np.void]], NDArray[np.float64]] | None = None,
    options: Callable[[int], dict[str, Any]] | None = None,
    update: Callable[[int, Any], Any] | None = None,
    lengths: ArrayLike | None = None,
    start: Any = None,
    owner: str | None = None,
) -> Cycles:
    """Schedule the jobs that have arrived, once per cycle, on the time free then.

    Parameters
    ----------
    slots : structured array, SlotPool or Domains
        The free time of all cycles together. Never modified: the cycles use a copy.
    requests, arrivals : sequence of Request (or Batch, or table), array_like
        The jobs, and the time at which each arrives: numbers, or dates if the slots
        have a clock. Cycle c, at the time ``start + c * length``, schedules the jobs
        that have arrived by then and the jobs that failed before. Arrays in ``where``
        and ``limits`` have one value for each row of `slots`, in all cycles.
    length : float or duration
        The time from one cycle to the next.
    cycles : int, optional
        The number of cycles; by default the last one is the first in which all jobs
        have arrived.
    horizon : float or duration, optional
        Windows of a cycle finish at most this long after its time; unlimited by
        default.
    policy : Policy or function of the cycle
    prices : function of the cycle and the free slots, optional
        The prices of a cycle, one per slot.
    options : function of the cycle, optional
        Further arguments of `schedule_batch`: the limit and the target.
    update : function of the cycle and the pool, optional
        Called at each cycle before its batch is scheduled, with the number of the cycle
        and the pool at the cycle's time, ``pool.now``. It changes the pool as the local
        resource managers report: ``pool.reserve`` for local tasks, ``pool.release`` for
        tasks that ended early, ``pool.add_slots``, ``pool.remove_node``. It returns
        None, or the prices of this cycle, one for each row of ``pool.slots``. For
        `Domains` it gets their copy, and changes the pool of each, ``pool["cern"]``.
    lengths : array_like of float, shape (jobs,), optional
        The true work of each job as a share of the reserved work, in (0, 1], as
        in `Schedule.execute`. The unused time of a part that has ended by the time of a
        cycle is free in that cycle. By default jobs use all of their time.
    start : float or date, optional
        The time of cycle 0; by default 0, or the pool's ``now`` if that is later.
    owner : str, optional
        The owner of the windows in the pool: ``pool.windows(owner)`` returns them.

    Returns
    -------
    Cycles

    Raises
    ------
    ValueError, TypeError
        As `schedule_batch`; for arrivals of the wrong number or that are not finite;
        for an array in ``where`` or ``limits`` if the pool has changed before, or if
        `update` adds slots, for which the array has no value.

    Notes
    -----
    "Cyclic scheduling scheme" (Toporkov et al. 2014, section 3.1, figures 1 and 3): the
    sets of slots and their costs are updated at each cycle. The order within a cycle:
    time passes (`SlotPool.advance`), the unused time of ended parts is released,
    `update` is called, prices are set, the batch is scheduled and booked.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=2)
    >>> jobs = [sk.Request(2, 30), sk.Request(2, 30), sk.Request(1, 20)]
    >>> flow = sk.run_cycles(slots, jobs, [0, 5, 12], length=10, horizon=60)
    >>> flow.cycle, flow.start
    (array([0, 1, 2]), array([ 0., 30., 60.]))

    A local task takes node 1 at the second cycle, and jobs need half of their time:

    >>> def local(cycle, pool):
    ...     if cycle == 1:
    ...         pool.reserve([1], 20, 50, owner="local", partly=True)
    >>> flow = sk.run_cycles(slots, jobs, [0, 5, 12], length=10, horizon=90,
    ...                      update=local, lengths=[0.5, 0.5, 0.5])
    >>> flow.start, flow.finish
    (array([ 0., 50., 20.]), array([15., 65., 30.]))
    """
    given = slots if isinstance(slots, SlotPool | Domains) else SlotPool(slots)
    pool = given.copy()
    batch = Batch.from_jobs(requests).resolve_times(pool)
    times = _arrivals(arrivals, len(batch), pool.clock)
    step = number("length", _duration("length", length, pool.clock), above=0)
    begin = _start_time(start, pool)
    count = _number_of_cycles(cycles, times, begin, step)
    ahead = math.inf
    if horizon is not None:
        ahead = number("horizon", _duration("horizon", horizon, pool.clock), above=0)
    _check_arrays(pool, batch)
    rows_given = len(pool.origin)
    shares = None if lengths is None else true_shares(lengths, len(batch), 0, 1.0)

    running: list[_Running] = []
    waiting = list(np.argsort(times, kind="stable"))
    cycle = np.full(len(batch), -1)
    begins, ends = np.full(len(batch), np.nan), np.full(len(batch), np.nan)
    schedules, batches, failures = [], [], []
    for c in range(count):
        now = begin + c * step
        pool.advance(now)
        running = [each for each in running if not each.release_ended(pool, now)]
        updated = None if update is None else update(c, pool)
        ready = np.array([j for j in waiting if times[j] <= now], np.int64)
        current, rows = pool._free()
        free = current.copy()
        if updated is not None:
            free["price"] = _prices(updated, len(free), c)
        if prices is not None:
            free["price"] = prices(c, free)
        schedule = schedule_batch(
            _in_context(pool, free),
            _current_batch(batch, ready.tolist(), rows, rows_given, now + ahead),
            policy(c) if callable(policy) else policy,
            **(options(c) if options is not None else {}),
        )
        windows = [
            restate_window(window, rows) for window in schedule if window is not None
        ]
        for window in windows:
            pool.book(window, owner)
        done = ready[schedule.scheduled]
        cycle[done] = c
        begins[done] = schedule.windows.start[schedule.scheduled]
        used = 1.0 if shares is None else shares[done]
        spans = schedule.windows.runtime[schedule.scheduled]
        ends[done] = begins[done] + spans * used
        if shares is not None:
            pairs = zip(windows, shares[done].tolist(), strict=True)
            running += [
                _Running(window, share, update is not None)
                for window, share in pairs
                if share < 1
            ]
        waiting = [j for j in waiting if cycle[j] < 0]
        schedules.append(schedule)
        batches.append(ready)
        failures.append(len(ready) - len(done))
    return Cycles(
        schedules=schedules,
        times=begin + step * np.arange(count, dtype=np.float64),
        jobs=batches,
        cycle=cycle,
        start=begins,
        wait=begins - times,
        failures=np.array(failures, np.int64),
        finish=ends,
        pool=pool,
    )


def _in_context(pool: SlotPool | Domains, free: NDArray[np.void]) -> PreparedSlots:
    """Return slots with the clock, machine and tariffs of a pool."""
    return PreparedSlots(
        free, clock=pool.clock, machine=pool.machine, tariffs=pool.tariffs
    )


def _number_of_cycles(
    given: int | None, times: NDArray[np.float64], begin: float, step: float
) -> int:
    """Return the given number, or that until all jobs have arrived."""
    if given is not None:
        return integer("cycles", given, least=0)
    last = float(times.max(initial=begin))
    count = max(0, math.ceil((last - begin) / step)) + 1
    log.info("%d cycles: until all jobs have had a turn", count)
    return count


def _current_batch(
    batch: Batch,
    ready: list[int],
    rows: NDArray[np.int64] | None,
    given: int,
    until: float,
) -> Batch:
    """Return the jobs of one cycle, with deadlines within its horizon."""
    limited = []
    for j in ready:
        request = _restrict_arrays(batch.requests[j], batch.names[j], rows, given)
        last = min(request.deadline, max(until, request.earliest))
        limited.append(request.replace(deadline=last))
    return Batch(
        limited,
        [batch.names[j] for j in ready],
        [batch.criteria[j] for j in ready],
    )


class _Running:
    """A booked window whose parts end early.

    Parameters
    ----------
    window : Window
        The window as booked in the pool.
    share : float
        The share of its length that each part uses, below 1.
    shared : bool
        Whether `update` may have released it.
    """

    def __init__(self, window: Window, share: float, shared: bool) -> None:
        whole = window.to_dict()
        self._shared = shared
        self._window, self._whole = window, whole
        # (true end, reserved end, row, part), by descending true end
        self._parts = sorted(
            (
                (
                    window.start + share * part["length"],
                    window.start + part["length"],
                    part["row"],
                    part,
                )
                for part in whole["slots"]
            ),
            key=lambda each: each[:3],
            reverse=True,
        )

    def release_ended(self, pool: SlotPool | Domains, now: float) -> bool:
        """Release the parts that have ended; return True if all have."""
        ended = []
        while self._parts and self._parts[-1][0] <= now:
            _, reserved, _, part = self._parts.pop()
            if reserved > now:
                ended.append(part)
        if ended:
            rest = self._window
            if len(ended) < len(rest):
                ended.sort(key=lambda part: part["node"])  # the order within a window
                rest = Window.from_dict(self._whole | {"slots": ended})
                rest.context = self._window.context
            try:
                pool.release(rest)
            except ValueError:
                if not self._shared:
                    raise
                # `update` has already released it
        return not self._parts


def _arrivals(
    arrivals: ArrayLike, jobs: int, clock: Clock | None
) -> NDArray[np.float64]:
    """Return the arrivals as numbers of the clock, one finite number per job."""
    try:
        times = np.array(arrivals, np.float64)
    except (ValueError, TypeError):
        if clock is None:
            raise
        times = clock.times(arrivals, "arrivals")
    if times.shape != (jobs,):
        raise ValueError(f"arrivals has shape {times.shape} for {jobs} jobs")
    if not np.isfinite(times).all():
        row = int(np.flatnonzero(~np.isfinite(times))[0])
        raise ValueError(f"arrivals[{row}] = {times[row]} is not finite")
    return times


def _duration(name: str, value: Any, clock: Clock | None) -> Any:
    return value if clock is None or is_number(value) else clock.duration(value, name)


def _start_time(start: Any, pool: SlotPool | Domains) -> float:
    """Return the time of cycle 0."""
    if start is None:
        return max(0.0, pool.now)
    time = start if pool.clock is None else pool.clock.time(start, "start")
    return number("start", time, least=None if pool.now == -math.inf else pool.now)


def _prices(returned: Any, rows: int, cycle: int) -> NDArray[np.float64]:
    """Return the prices that `update` returned, checked."""
    at = f"update returned at cycle {cycle}"
    try:
        made = np.asarray(returned, np.float64)
    except (ValueError, TypeError):
        raise TypeError(
            f"{at} {quote(returned)}; it must return None or an array of prices"
        ) from None
    if made.shape != (rows,):
        raise ValueError(
            f"{at} prices of shape {made.shape} for {rows} rows of pool.slots"
        )
    return made


def _check_arrays(pool: SlotPool | Domains, batch: Batch) -> None:
    """Raise ValueError for arrays without one value for each row of the given slots."""
    rows = len(pool.origin)
    for name, request in zip(batch.names, batch.requests, strict=True):
        for title, values in _arrays(request):
            try:
                pool.require_original_rows(title)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            if len(values) != rows:
                raise ValueError(
                    f"{name}: {title} has {len(values)} values for {rows} slots; an "
                    "array must match the given slots row by row"
                )


def _arrays(request: Request) -> Iterable[tuple[str, NDArray[Any]]]:
    """Yield the arrays of a request that have one value for each row of the slots."""
    if isinstance(request.where, np.ndarray):
        yield "where", request.where
    for limit in request.limits:
        if isinstance(limit.of, np.ndarray):
            yield "a limit", limit.of


def _restrict_arrays(
    request: Request, name: str, rows: NDArray[np.int64] | None, given: int
) -> Request:
    """Return the request with its arrays taken at the slots that are free now.

    `rows` has, for each free slot, the row of the given slot that contains it.
    """
    if rows is None or not any(True for _ in _arrays(request)):
        return request
    added = np.flatnonzero(rows >= given)
    if added.size:
        title, values = next(iter(_arrays(request)))
        raise ValueError(
            f"{name}: {title} is an array of {len(values)} values, one for each row of "
            f"the given slots; the slot that was added as row {rows[added[0]]} has "
            "none; use an expression or a field"
        )
    where = request.where
    return request.replace(
        where=where[rows] if isinstance(where, np.ndarray) else where,
        limits=[
            Limit(limit.of[rows], limit.side, limit.amount)
            if isinstance(limit.of, np.ndarray)
            else limit
            for limit in request.limits
        ],
    )

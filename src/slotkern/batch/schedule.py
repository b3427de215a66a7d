"""A schedule: the window of each job of a batch, and its totals and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._kernels import batch as _batch
from slotkern._kernels.request import Request
from slotkern._kernels.search import find_slot_rows, find_windows
from slotkern._kernels.windows import Window, WindowTable
from slotkern.batch.execution import Execution, execute, true_shares
from slotkern.batch.jobs import Batch
from slotkern.batch.options import BatchOptions, Measure
from slotkern.batch.policies import Optimal, Policy
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.foundation.checks import visible
from slotkern.knapsack.one_each import TradeOff, trade_off

if TYPE_CHECKING:
    from slotkern.typing import Criterion, Shape

__all__ = ["Schedule"]

NODE = np.dtype(
    [("node", "i4"), *[(n, "f8") for n in ("free", "used", "utilization", "profit")]]
)


@dataclass(frozen=True, eq=False)
class Schedule(HasPlot):
    """The result of `schedule_batch`: a sequence of `Window` or None, by job.

    Attributes
    ----------
    batch : Batch
    policy : Policy
    alternatives : WindowTable
        All windows that were found for any job, including those of backfilled jobs.
    owner : ndarray of int64
        The job of each alternative.
    chosen : ndarray of int64, shape (jobs,)
        The index of each job's alternative; -1 if the job failed.
    reason : ndarray of uint8, shape (jobs,)
        0 scheduled; 1 nodes: too few nodes have the required performance; 2 budget: a
        window exists, but not within the budget; 3 time: too few suitable slots are
        ever free together; 4 volume: too small to change the time in floating point;
        5 limit: the remaining limit of the organization is too small; 6 limits: a
        window exists, but not within the limits on sums; 7 undecided: the search under
        limits reached its work limit, so a window may exist; 8 groups: a window exists,
        but none obeys the group rules.
    slices : structured array
        The result of each sub-batch's choice: limit, value, bound, expense, proven.
    target, under : str
        The measure that the choice optimizes, and the measure of the limit.
    """

    batch: Batch
    policy: Policy
    alternatives: WindowTable
    owner: NDArray[np.int64]
    chosen: NDArray[np.int64]
    reason: NDArray[np.uint8]
    slices: NDArray[np.void]
    target: str
    under: str
    _options: BatchOptions = field(repr=False)
    _jobs: _batch.CompiledJobs = field(repr=False)

    # 1 us faster than the generated one, which calls object.__setattr__ for each field.
    def __init__(
        self,
        batch: Batch,
        policy: Policy,
        alternatives: WindowTable,
        owner: NDArray[np.int64],
        chosen: NDArray[np.int64],
        reason: NDArray[np.uint8],
        slices: NDArray[np.void],
        target: str,
        under: str,
        _options: BatchOptions,
        _jobs: _batch.CompiledJobs,
    ) -> None:
        self.__dict__.update(
            batch=batch,
            policy=policy,
            alternatives=alternatives,
            owner=owner,
            chosen=chosen,
            reason=reason,
            slices=slices,
            target=target,
            under=under,
            _options=_options,
            _jobs=_jobs,
        )

    def __len__(self) -> int:
        return len(self.batch)

    def __iter__(self) -> Iterator[Window | None]:
        return iter(self.windows)

    def __getitem__(self, index: Any) -> Any:
        return self.windows[index]

    def __repr__(self) -> str:
        return visible(
            f"Schedule({int(self.scheduled.sum())} of {len(self)} jobs, "
            f"{len(self.alternatives)} alternatives, {self.policy})"
        )

    @property
    def shape(self) -> Shape:
        """The shape of the windows."""
        return self._options.shape

    @property
    def order(self) -> NDArray[np.int64]:
        """The jobs, those of highest priority first."""
        order = self._options.order
        return np.arange(len(self)) if order is None else order

    @property
    def scheduled(self) -> NDArray[np.bool_]:
        """True for each job that has a window, shape (jobs,)."""
        return self.chosen >= 0

    @property
    def reasons(self) -> list[str]:
        """The reason of each job in words."""
        return [_batch.REASONS[code] for code in self.reason.tolist()]

    @cached_property
    def windows(self) -> WindowTable:
        """The window of each job, or None."""
        return _batch.select_windows(
            self.alternatives, self.chosen, list(self.batch.names)
        )

    @property
    def slots(self) -> NDArray[np.void]:
        """The slots that were free before scheduling."""
        return self._jobs.slots

    @property
    def count(self) -> NDArray[np.int64]:
        """The number of alternatives of each job."""
        return np.bincount(self.owner, minlength=len(self))

    @property
    def piece(self) -> NDArray[np.int64]:
        """The sub-batch of each job, from 0; -1 for backfilled jobs."""
        first, rank = self._options.slices, np.argsort(self.order)
        at = np.searchsorted(first, rank, side="right") - 1
        return np.where(rank < first[-1], at, -1)

    @property
    def limit(self) -> float:
        """The limit on the expense over all sub-batches; inf if there is none.

        It is the given limit, or the sum of the sub-batches' limits by eq. (5). Each
        sub-batch received a share of what remained of a given limit.
        """
        if not len(self.slices):
            return math.inf
        given = self._options.limit
        return math.fsum(self.slices["limit"].tolist()) if given is None else given

    def totals(self) -> dict[str, float]:
        """Sum every measure over the scheduled jobs (exact sums, rounded once)."""
        some = self.windows.table[self.scheduled]
        return {name: math.fsum(some[name].tolist()) for name in _batch.MEASURES}

    def means(self) -> dict[str, float]:
        """Average every measure over the scheduled jobs; NaN if there are none."""
        jobs = int(self.scheduled.sum())
        return {
            name: total / jobs if jobs else math.nan
            for name, total in self.totals().items()
        }

    @property
    def value(self) -> float:
        """The sum of the target over the scheduled jobs."""
        measure = self._options.target
        if isinstance(measure, str):
            return self.totals()[measure]
        rows = find_slot_rows(self.slots, self.windows.parts)
        return math.fsum(measure[rows].tolist())

    def nodes(self) -> NDArray[np.void]:
        """Return the use of each node: node, free, used, utilization, profit; by node.

        `free` is the time of the slots, `used` the part that the schedule occupies, and
        `profit` the money for it.
        """
        ids, place = np.unique(self.slots["node"], return_inverse=True)
        parts = self.windows.parts
        at = np.searchsorted(ids, parts["node"])
        out = np.zeros(
            len(ids),
            NODE,
        )
        size = len(ids)
        out["node"] = ids
        out["free"] = np.bincount(
            place, self.slots["end"] - self.slots["start"], minlength=size
        )
        out["used"] = np.bincount(at, parts["end"] - parts["start"], minlength=size)
        out["profit"] = np.bincount(at, parts["cost"], minlength=size)
        out["utilization"] = out["used"] / out["free"]
        return out

    @cached_property
    def bound(self) -> float:
        """A bound on `value` over all schedules of the scheduled jobs on these slots.

        It holds for any alternatives within `limit` of the expense, because it places
        each job alone on all the free time. Processor time, cost and sums of a field
        have a Lagrangian bound: for the best lambda >= 0, the sum over the jobs of the
        least target + lambda * expense over n slots that are live together, minus
        lambda * limit (budgets are ignored; the parts of square windows count with
        their shortest length). Start, finish and runtime are bounded by each job's best
        window without the limit; if they are maximized the bound is NaN. `Optimal`
        has proven its bound for all schedules of as many jobs.

        Holds up to rounding: it is computed in floating point.
        """
        if isinstance(self.policy, Optimal):
            return float(self.slices["bound"][0])
        sliced = self.order[: self._options.slices[-1]]
        limited = np.isin(np.arange(len(self)), sliced) & self.scheduled
        total = 0.0
        for some, limit in (
            (limited, self.limit),
            (self.scheduled & ~limited, math.inf),
        ):
            jobs = np.flatnonzero(some).tolist()
            if not jobs:
                continue
            requests = [self.batch.requests[job] for job in jobs]
            total += self._bound_of(requests, None if math.isinf(limit) else limit)
        return total

    def _bound_of(self, requests: list[Request], limit: float | None) -> float:
        target = self._options.target
        single = ("start", "finish", "runtime")
        if isinstance(target, str) and target in single:
            if self._options.maximize:
                return math.nan
            best = find_windows(
                self._jobs.prepared,
                requests,
                cast("Criterion", target),
                shape=self.shape,
            )
            return math.fsum(window.value for window in best if window is not None)
        limit = None if self.under in single else limit
        jobs = _batch.CompiledJobs(
            self._jobs.prepared, requests, ["start"] * len(requests)
        )
        return _batch.bound(jobs, replace(self._options, limit=limit))

    def trade_off(self, points: int = 256) -> TradeOff:
        """Return every trade-off between target and expense of the alternatives.

        One alternative is chosen for each job that has any, regardless of sub-batches.
        See `slotkern.trade_off`.
        """
        rows = np.argsort(self.owner, kind="stable")
        counts = self.count[self.count > 0]
        return trade_off(
            self._column(self._options.target)[rows],
            self._column(self._options.expense)[rows],
            np.concatenate([[0], np.cumsum(counts)]),
            maximize=self._options.maximize,
            points=points,
        )

    def _column(self, measure: Measure) -> NDArray[np.float64]:
        found = self.alternatives
        if isinstance(measure, str):
            return np.asarray(getattr(found, measure))
        rows = find_slot_rows(self.slots, found.parts)
        return np.asarray(np.add.reduceat(measure[rows], found.first[:-1]))

    def execute(
        self,
        lengths: ArrayLike | None = None,
        *,
        reschedule: str | None = None,
        seed: int = 0,
        least: float = 0.2,
    ) -> Execution:
        """Simulate the schedule with true lengths, which are revealed as parts end.

        Parameters
        ----------
        lengths : array_like of float, shape (jobs,), optional
            Each job's true work as a share of the reserved one, in (0, 1]. By default
            uniform on [`least`, 1], as in the paper (section 4.2), from `seed`.
        reschedule : {None, "backfill"}, optional
            The action of sliced jobs when time becomes free: none, or move to an
            earlier start as backfilled jobs do (the paper's second contribution).
            Backfilled jobs always move: conservatively, or by the EASY queue.
        seed, least : int, float
            The seed and the least share of the default lengths.

        Returns
        -------
        Execution

        Raises
        ------
        ValueError, TypeError
            For the wrong number of lengths, or a length outside (0, 1], naming it.

        Notes
        -----
        Conservative: no job starts later than promised. EASY: the first waiting job is
        never delayed; under tariffs a job with a budget also starts when its cost falls
        to the budget. An end costs a test of each waiting job, and a search if the
        freed time may serve the job.
        """
        shares = true_shares(lengths, len(self), seed, least)
        sliced = self._options.slices[-1]
        return execute(self, self._jobs, sliced, shares, reschedule)

    def _as_table(self) -> Table:
        """Return one row per job."""
        of = self.windows._as_table()
        mine = {
            "name": np.array(self.batch.names, np.str_),
            "reason": np.array(self.reasons, np.str_),
            "alternatives": self.count,
        }
        figures = ("start", "finish", "runtime", "cost", "processor_time", "nodes")
        columns = mine | {name: of.columns[name] for name in figures}
        return of._replace(heading=repr(self), columns=columns)

"""A schedule: what each job of a batch was given, and what it amounts to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern import _batch
from slotkern._alternatives import rows_that_hold
from slotkern._find import find_windows
from slotkern._request import Request
from slotkern._windows import Window, WindowTable
from slotkern.batch.execution import Execution, execute, true_shares
from slotkern.batch.jobs import Batch
from slotkern.batch.policies import Policy
from slotkern.checks import visible
from slotkern.one_each import TradeOff, trade_off
from slotkern.shown import Drawn
from slotkern.shown_table import Table

if TYPE_CHECKING:
    from slotkern.typing import Criterion, Shape

__all__ = ["Schedule"]

NODE = np.dtype(
    [("node", "i4"), *[(n, "f8") for n in ("free", "used", "utilization", "profit")]]
)


@dataclass(frozen=True, eq=False)
class Schedule(Drawn):
    """What a batch was given. A sequence of `Window` or None, by job.

    Attributes
    ----------
    batch : Batch
    policy : Policy
    alternatives : WindowTable
        All windows that were found for any job, and those of backfilled jobs.
    owner : ndarray of int64
        The job of each alternative.
    chosen : ndarray of int64, shape (jobs,)
        The alternative that each job got, -1 where it failed.
    reason : ndarray of uint8, shape (jobs,)
        0 scheduled; 1 nodes: there are not as many nodes of this performance; 2 budget:
        it would fit, but not for its money; 3 time: as many proper slots are never free
        together; 4 volume: so small that the clock does not move; 5 limit: the
        organization's limit leaves nothing for it; 6 limits: it would fit, but not
        within its limits on sums; 7 undecided: its search under limits spent its work,
        so that a window may exist.
    slices : structured array
        Of each sub-batch's choice: limit, value, bound, expense, proven.
    target, under : str
        What the choice aims at, and what the limit is on.
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
    _rules: dict[str, Any] = field(repr=False)
    _jobs: _batch.Jobs = field(repr=False)

    # The generated one takes a microsecond: it unlocks a frozen class for each field.
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
        _rules: dict[str, Any],
        _jobs: _batch.Jobs,
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
            _rules=_rules,
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
        shape: Shape = self._rules["shape"]
        return shape

    @property
    def order(self) -> NDArray[np.int64]:
        """The jobs, those of highest priority first."""
        order: NDArray[np.int64] | None = self._rules["order"]
        return np.arange(len(self)) if order is None else order

    @property
    def scheduled(self) -> NDArray[np.bool_]:
        """Where a job has a window, shape (jobs,)."""
        return self.chosen >= 0

    @property
    def reasons(self) -> list[str]:
        """The reasons in words."""
        return [_batch.REASONS[code] for code in self.reason.tolist()]

    @cached_property
    def windows(self) -> WindowTable:
        """The window of each job, or None."""
        return _batch.picked(self.alternatives, self.chosen, list(self.batch.names))

    @property
    def slots(self) -> NDArray[np.void]:
        """The slots that were free before."""
        return self._jobs.slots

    @property
    def count(self) -> NDArray[np.int64]:
        """How many alternatives each job had."""
        return np.bincount(self.owner, minlength=len(self))

    @property
    def piece(self) -> NDArray[np.int64]:
        """The sub-batch of each job, from 0; -1 for those that were backfilled."""
        first, rank = self._rules["slices"], np.argsort(self.order)
        at = np.searchsorted(first, rank, side="right") - 1
        return np.where(rank < first[-1], at, -1)

    @property
    def limit(self) -> float:
        """What the expense was limited to, over all sub-batches; inf if nothing.

        The limit that was given, of which each sub-batch had a share of what was left;
        or the sum of theirs by eq. (5).
        """
        if not len(self.slices):
            return math.inf
        given: float | None = self._rules["limit"]
        return math.fsum(self.slices["limit"].tolist()) if given is None else given

    def totals(self) -> dict[str, float]:
        """Sums over the scheduled jobs, by every measure (exactly rounded)."""
        some = self.windows.table[self.scheduled]
        return {name: math.fsum(some[name].tolist()) for name in _batch.MEASURES}

    def means(self) -> dict[str, float]:
        """Means over the scheduled jobs, by every measure; NaN without any."""
        jobs = int(self.scheduled.sum())
        return {
            name: total / jobs if jobs else math.nan
            for name, total in self.totals().items()
        }

    @property
    def value(self) -> float:
        """The target summed over the scheduled jobs."""
        measure = self._rules["target"]
        if isinstance(measure, str):
            return self.totals()[measure]
        rows = rows_that_hold(self.slots, self.windows.parts)
        return math.fsum(measure[rows].tolist())

    def nodes(self) -> NDArray[np.void]:
        """How the nodes are used: node, free, used, utilization, profit; by node.

        `free` is the time that the slots offered, `used` what the schedule took of it,
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
        """What no schedule of the scheduled jobs on these slots can beat.

        Whatever its alternatives, within `limit` of the expense: each job alone on all
        the free time. Processor time, cost and sums of a field are bounded by Lagrange:
        the least sum of target + lambda * expense over n slots live together, added
        over the jobs, less lambda * limit, for the best lambda >= 0 (budgets are
        forgotten, square parts count as long as they run at least). Start, finish and
        runtime by each job's best window, without the limit; maximized, they have no
        bound (NaN).

        Within rounding: a bound of sums of reals.
        """
        sliced = self.order[: self._rules["slices"][-1]]
        limited = np.isin(np.arange(len(self)), sliced) & self.scheduled
        total = 0.0
        for some, limit in (
            (limited, self.limit),
            (self.scheduled & ~limited, math.inf),
        ):
            jobs = np.flatnonzero(some).tolist()
            if not jobs:
                continue
            asked = [self.batch.requests[job] for job in jobs]
            total += self._bound_of(asked, None if math.isinf(limit) else limit)
        return total

    def _bound_of(self, asked: list[Request], limit: float | None) -> float:
        target = self._rules["target"]
        single = ("start", "finish", "runtime")
        if isinstance(target, str) and target in single:
            if self._rules["maximize"]:
                return math.nan
            best = find_windows(
                self._jobs.prepared,
                asked,
                cast("Criterion", target),
                shape=self.shape,
            )
            return math.fsum(window.value for window in best if window is not None)
        rules = {**self._rules, "limit": None if self.under in single else limit}
        jobs = _batch.Jobs(self._jobs.prepared, asked, ["start"] * len(asked))
        return _batch.bound(jobs, rules)

    def trade_off(self, points: int = 256) -> TradeOff:
        """Every trade-off between target and expense that the alternatives allow.

        One alternative of each job with any, whichever sub-batch it was in. See
        `slotkern.trade_off`.
        """
        rows = np.argsort(self.owner, kind="stable")
        counts = self.count[self.count > 0]
        return trade_off(
            self._column(self._rules["target"])[rows],
            self._column(self._rules["expense"])[rows],
            np.concatenate([[0], np.cumsum(counts)]),
            maximize=self._rules["maximize"],
            points=points,
        )

    def _column(self, measure: Any) -> NDArray[np.float64]:
        found = self.alternatives
        if isinstance(measure, str):
            return np.asarray(getattr(found, measure))
        rows = rows_that_hold(self.slots, found.parts)
        return np.asarray(np.add.reduceat(measure[rows], found.first[:-1]))

    def execute(
        self,
        lengths: ArrayLike | None = None,
        *,
        reschedule: str | None = None,
        seed: int = 0,
        least: float = 0.2,
    ) -> Execution:
        """Run the schedule with true lengths, which become known only as parts end.

        Parameters
        ----------
        lengths : array_like of float, shape (jobs,), optional
            Each job's true work as a share of the reserved one, in (0, 1]. By default
            uniform on [`least`, 1], as in the paper (section 4.2), from `seed`.
        reschedule : {None, "backfill"}, optional
            What sliced jobs do when time comes free: nothing, or move up as backfilled
            jobs do (the paper's second contribution). Backfilled jobs always move up:
            conservatively, or they queue for EASY.
        seed, least : int, float
            Of the default lengths.

        Returns
        -------
        Execution

        Raises
        ------
        ValueError, TypeError
            For another number of lengths, or one that is not within (0, 1], naming it.

        Notes
        -----
        Conservative: no job starts later than promised. EASY: the first job that waits
        is never delayed. An end costs a test of each waiting job, and a search where
        the freed time may serve it.
        """
        shares = true_shares(lengths, len(self), seed, least)
        sliced = self._rules["slices"][-1]
        return execute(self, self._jobs, sliced, shares, reschedule)

    def _shown(self) -> Table:
        """One row a job."""
        of = self.windows._shown()
        mine = {
            "name": np.array(self.batch.names, np.str_),
            "reason": np.array(self.reasons, np.str_),
            "alternatives": self.count,
        }
        figures = ("start", "finish", "runtime", "cost", "processor_time", "nodes")
        columns = mine | {name: of.columns[name] for name in figures}
        return of._replace(heading=repr(self), columns=columns)

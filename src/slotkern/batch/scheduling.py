"""One batch, one schedule: what each job was given, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern import _batch
from slotkern._core import PreparedSlots, Request, Window, find_windows
from slotkern._windows import WindowTable
from slotkern.batch.jobs import Batch
from slotkern.batch.policies import BSF, CSS, Backfilling, BatchSlicer, Policy, ranked
from slotkern.checks import integer, number, one_of
from slotkern.extras import extra
from slotkern.one_each import TradeOff, trade_off

if TYPE_CHECKING:
    from slotkern.typing import Criterion, Shape

__all__ = ["Execution", "Schedule", "schedule_batch"]

#: Other words for what is summed over a schedule.
MEASURES = {"time": "processor_time", **{name: name for name in _batch.MEASURES}}
WORK = 1 << 24
NODE = np.dtype(
    [("node", "i4"), *[(n, "f8") for n in ("free", "used", "utilization", "profit")]]
)


def schedule_batch(
    slots: NDArray[np.void] | PreparedSlots,
    requests: Any,
    policy: Policy = CSS,
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    under: str = "cost",
    limit: float | None = None,
    shape: Shape = "ragged",
    alternatives: str = "amp",
    names: Sequence[str] | None = None,
    criteria: Sequence[str] | None = None,
    most: int | None = None,
    gap: float = 1e-9,
    max_work: int = WORK,
) -> Schedule:
    """Give each job of a batch one window, as the policy of the organization says.

    Parameters
    ----------
    slots : structured array or SlotPool
        As for `find_window`. Never changed: ``pool.book(schedule)`` books it.
    requests : sequence of Request, Batch, or table
        In order of priority. A table is one of pandas, Arrow or a mapping of columns;
        see `Batch.of`.
    policy : BatchSlicer, Backfilling or BSF
        `CSS` is ``BatchSlicer(1, "first")``.
    minimize, maximize : str, optional
        What the choice among the alternatives aims at, summed over the jobs:
        ``"processor_time"`` (or ``"time"``), ``"cost"``, ``"start"``, ``"finish"``,
        ``"runtime"``, or the name of a numeric field of the slots, summed over the
        parts. One of the two; ``minimize="processor_time"`` by default.
    under : str, optional
        What the limit is on; the same names.
    limit : float, optional
        The most of it for the whole batch, of which each sub-batch gets its share of
        what is left. By default eq. (5) for each sub-batch: the sum over the jobs of
        the mean over their alternatives, rounded up. Jobs that do not fit a given limit
        beside those before them fail with the reason ``"limit"``.
    shape : {"ragged", "square"}
        As for `find_window`.
    alternatives : {"amp", "alp"}
        Whether the budget is for the window as a whole, or bounds the price of every
        single slot: the request's `max_price`, else what the budget pays for `nodes`
        parts at `min_performance`.
    names, criteria : sequence of str, optional
        Each job's name, and each user's own criterion (of `CRITERIA`; ``"finish"``).
    most : int, optional
        The most alternatives a job.
    gap, max_work : float, int, optional
        Of each choice; see `choose_one_each`.

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError, TypeError
        Naming the job, the argument or the row and the value.

    Notes
    -----
    The four problems of the paper (Toporkov et al. 2014, section 3.1): maximize cost
    under time (eq. 6), minimize time under cost (7), minimize cost under time (8),
    maximize time under time (9). Filters look at the slots as they are given, not as
    they are cut. Time: a search and n cuts for each alternative; memory as two copies
    of the slots and 120 bytes a part of an alternative.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=0, end=20, performance=[1, 2, 4],
    ...                       price=[1, 3, 5])
    >>> jobs = [sk.Request(1, 8), sk.Request(2, 8), sk.Request(1, 90)]
    >>> schedule = sk.schedule_batch(slots, jobs)
    >>> schedule.reasons
    ['scheduled', 'scheduled', 'time']
    >>> schedule.windows.cost
    array([10., 22., nan])
    """
    batch = Batch.of(requests)
    if names is not None or criteria is not None:
        batch = Batch(batch.requests, names or batch.names, criteria or batch.criteria)
    if not isinstance(policy, (BatchSlicer, Backfilling, BSF)):
        raise TypeError(f"policy must be a policy, got {type(policy).__name__}")
    if minimize is not None and maximize is not None:
        raise ValueError(
            f"minimize={minimize!r} and maximize={maximize!r} contradict each other"
        )
    one_of("alternatives", alternatives, ("amp", "alp"))
    asked = batch.requests
    if alternatives == "alp":
        asked = tuple(_priced(i, request) for i, request in enumerate(asked))
    criterion = "own" if isinstance(policy, Backfilling) else policy.criterion
    own = batch.criteria if criterion == "own" else [criterion] * len(batch)
    order = _order(slots, batch, policy, shape)
    jobs = _batch.Jobs(
        slots, [asked[i] for i in order.tolist()], [own[i] for i in order.tolist()]
    )
    table = jobs.slots
    if most is None and not isinstance(policy, Backfilling) and len(batch):
        _check_ends(table, asked)
    target = maximize or minimize or "processor_time"
    rules = {
        "shape": shape,
        "name": criterion,
        "slices": [0] if isinstance(policy, Backfilling) else policy.slices(len(batch)),
        "target": _measure(table, target, "maximize" if maximize else "minimize"),
        "expense": _measure(table, under, "under"),
        "maximize": maximize is not None,
        "limit": None if limit is None else number("limit", limit, finite=False),
        "gap": number("gap", gap, least=0),
        "work": integer("max_work", max_work, least=0),
        "most": 2**62 if most is None else integer("most", most, least=1),
    }
    kind = "none" if isinstance(policy, BatchSlicer) else policy.kind
    found, owner, chosen, reason, slices = _batch.schedule(jobs, rules, kind)
    place = np.argsort(order)  # of each job in the order of priority
    return Schedule(
        batch=batch,
        policy=policy,
        shape=shape,
        alternatives=found,
        owner=order[owner],
        chosen=chosen[place],
        reason=reason[place],
        slices=slices,
        order=order,
        target=MEASURES.get(target, target),
        under=MEASURES.get(under, under),
        _rules=rules,
        _jobs=jobs,
    )


@dataclass(frozen=True, eq=False)
class Schedule:
    """What a batch was given. A sequence of `Window` or None, by job.

    Attributes
    ----------
    batch : Batch
    policy : Policy
    shape : str
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
        organization's limit leaves nothing for it.
    slices : structured array
        Of each sub-batch's choice: limit, value, bound, expense, proven.
    order : ndarray of int64
        The jobs, those of highest priority first.
    target, under : str
        What the choice aims at, and what the limit is on.
    """

    batch: Batch
    policy: Policy
    shape: Shape
    alternatives: WindowTable
    owner: NDArray[np.int64]
    chosen: NDArray[np.int64]
    reason: NDArray[np.uint8]
    slices: NDArray[np.void]
    order: NDArray[np.int64]
    target: str
    under: str
    _rules: dict[str, Any] = field(repr=False)
    _jobs: _batch.Jobs = field(repr=False)

    def __len__(self) -> int:
        return len(self.batch)

    def __iter__(self) -> Iterator[Window | None]:
        return iter(self.windows)

    def __getitem__(self, index: Any) -> Any:
        return self.windows[index]

    def __repr__(self) -> str:
        return (
            f"Schedule({int(self.scheduled.sum())} of {len(self)} jobs, "
            f"{len(self.alternatives)} alternatives, {self.policy})"
        )

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
        found = self.alternatives
        return WindowTable.of(
            [found[a] if a >= 0 else None for a in self.chosen.tolist()],
            criterion=found.criterion,
            shape=self.shape,
        )

    @property
    def slots(self) -> NDArray[np.void]:
        """The slots that were free before."""
        return self._jobs.slots

    @property
    def count(self) -> NDArray[np.int64]:
        """How many alternatives each job had."""
        return np.bincount(self.owner, minlength=len(self))

    @property
    def limit(self) -> float:
        """What the expense was limited to, over all sub-batches; inf if nothing."""
        limits = self.slices["limit"].tolist()
        return math.fsum(limits) if limits else math.inf

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
        rows = np.searchsorted(np.arange(len(measure)), self.windows.parts["row"])
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
        sums = np.concatenate([[0.0], np.cumsum(measure[found.parts["row"]])])
        return np.asarray(np.diff(sums[found.first]))

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
        if reschedule not in (None, "backfill"):
            raise ValueError(
                f"reschedule must be None or 'backfill', got {reschedule!r}"
            )
        jobs = len(self)
        if lengths is None:
            low = number("least", least, above=0)
            if low > 1:
                raise ValueError(f"least must be at most 1, got {least!r}")
            shares = np.random.default_rng(seed).uniform(low, 1, jobs)
        else:
            shares = np.array(lengths, np.float64)
            if shares.shape != (jobs,):
                raise ValueError(
                    f"lengths must have one entry for each of {jobs} jobs, got shape "
                    f"{shares.shape}"
                )
            bad = np.flatnonzero(~((shares > 0) & (shares <= 1)))
            if bad.size:
                raise ValueError(
                    f"lengths[{bad[0]}] = {shares[bad[0]]} is not a share of the "
                    "reserved length in (0, 1]"
                )
        sliced = (
            0 if isinstance(self.policy, Backfilling) else self._rules["slices"][-1]
        )
        kind = "none" if isinstance(self.policy, BatchSlicer) else self.policy.kind
        planned = self.windows[self.order]
        movable = np.ones(jobs, np.uint8)
        if reschedule is None:
            movable[:sliced] = 0
        elif kind == "none":
            kind = "conservative"
        if kind == "easy":
            waiting = np.arange(jobs) >= (sliced if reschedule is None else 0)
            keep = [None if w else planned[i] for i, w in enumerate(waiting.tolist())]
            planned = WindowTable.of(keep, criterion="start", shape=self.shape)
        windows, promised, reason, ends, moves = _batch.execute(
            self._jobs, self.shape, kind, planned, movable, shares[self.order]
        )
        place = np.argsort(self.order)
        return Execution(
            schedule=self,
            windows=windows[place],
            shares=shares,
            promised=promised[place],
            reason=reason[place],
            ends=ends,
            moves=moves,
        )

    def to_pandas(self) -> Any:
        """One row a job, as a pandas DataFrame."""
        with extra():
            import pandas

        return pandas.DataFrame(self._figures())

    def to_arrow(self) -> Any:
        """One row a job, as a pyarrow Table."""
        with extra():
            import pyarrow

        return pyarrow.table(self._figures())

    def _figures(self) -> dict[str, Any]:
        table = self.windows.table
        return {
            "name": list(self.batch.names),
            "reason": self.reasons,
            "alternatives": self.count,
            **{name: np.array(table[name]) for name in ("start", "finish", "runtime")},
            **{name: np.array(table[name]) for name in ("cost", "processor_time")},
        }


@dataclass(frozen=True, eq=False)
class Execution:
    """What came of a schedule when jobs ended early.

    Attributes
    ----------
    schedule : Schedule
    windows : WindowTable
        By job: where it started, parts as long as they were reserved; None: never.
    shares : ndarray of float64
        What it used of them.
    promised : ndarray of float64
        The first start that each job was given a reservation for; NaN: none before it
        started.
    reason : ndarray of uint8
        As of `Schedule`.
    ends, moves : int
        How many parts ended, and how many reservations moved up.
    """

    schedule: Schedule
    windows: WindowTable
    shares: NDArray[np.float64]
    promised: NDArray[np.float64]
    reason: NDArray[np.uint8]
    ends: int
    moves: int

    @property
    def started(self) -> NDArray[np.bool_]:
        """Which jobs ran."""
        started: NDArray[np.bool_] = self.reason == 0
        return started

    @property
    def start(self) -> NDArray[np.float64]:
        """When each job started."""
        return np.asarray(self.windows.start)

    @property
    def processor_time(self) -> NDArray[np.float64]:
        """The time that each job really used, over all its parts."""
        return np.asarray(self.windows.processor_time * self.shares)

    @property
    def finish(self) -> NDArray[np.float64]:
        """When each job's last part really ended."""
        return np.asarray(self.windows.start + self.windows.runtime * self.shares)

    def __repr__(self) -> str:
        return (
            f"Execution({int(self.started.sum())} of {len(self.shares)} jobs, "
            f"{self.moves} moved up)"
        )


def _order(
    slots: NDArray[np.void] | PreparedSlots, batch: Batch, policy: Policy, shape: Shape
) -> NDArray[np.int64]:
    """The jobs, those of highest priority first."""
    by = "order" if isinstance(policy, Backfilling) else policy.by
    if isinstance(by, tuple):
        if len(by) != len(batch):
            raise ValueError(f"by has {len(by)} numbers for {len(batch)} jobs")
        order = ranked(np.array(by))
    elif by == "performance":
        order = ranked(
            np.array([request.min_performance for request in batch.requests])
        )
    elif by == "cost":
        cheapest = find_windows(slots, batch.requests, "cost", shape=shape)
        order = ranked(
            np.array([math.nan if each is None else each.cost for each in cheapest])
        )
    else:
        order = np.arange(len(batch))
    if isinstance(policy, BSF):  # what is not sliced queues as it came
        first = min(int(policy.n_css), len(batch))
        order = np.concatenate([order[:first], np.sort(order[first:])])
    return order


def _measure(table: NDArray[np.void], name: str, argument: str) -> Any:
    """The name of a measure, or a column of the slots as float64."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be a name, got {name!r}")
    if name in MEASURES:
        return MEASURES[name]
    if name not in (table.dtype.names or ()):
        fields = [field for field in table.dtype.names or () if field != "node"]
        raise ValueError(
            f"{argument} must be one of {', '.join([*MEASURES, *fields])}; got {name!r}"
        )
    if table.dtype[name].kind not in "iufb":
        raise TypeError(f"{argument}: field {name!r} of the slots is not numeric")
    return np.ascontiguousarray(table[name], np.float64)


def _priced(job: int, request: Request) -> Request:
    """ALP: a limit on the price of every single slot instead of the budget."""
    price = request.max_price
    if math.isinf(price) and not math.isinf(request.budget):
        if request.min_performance == 0:
            raise ValueError(
                f"job {job}: alternatives='alp' needs max_price, or min_performance "
                "beside a budget"
            )
        work = request.nodes * request.volume
        price = request.budget * request.min_performance / work
    return request.replace(max_price=price, budget=math.inf)


def _check_ends(table: NDArray[np.void], requests: Sequence[Request]) -> None:
    """Refuse what may have endlessly many alternatives."""
    if np.isinf(table["end"]).any():
        for i, request in enumerate(requests):
            if math.isinf(request.deadline):
                raise ValueError(
                    f"slots have an infinite end, so that job {i} may have endlessly "
                    "many alternatives; give it a deadline, or give most="
                )

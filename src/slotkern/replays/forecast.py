"""Forecasts: when a job will start behind jobs that end earlier than requested.

Input: the free slots of a pool, the running and waiting jobs, and how long jobs run as
a share of what they request. Each run draws a true length for every job and replays the
queue with the compiled replay; the starts of the job in all runs are the forecast. Run
k draws from the generator of (seed, k), so results do not depend on the number of
workers. The promise is the start under conservative backfilling if every job runs as
long as it requested.

Cost: one replay of the queue for each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern._kernels.request import Request
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.foundation.checks import hint_keywords, integer, number
from slotkern.foundation.context import SlotContext
from slotkern.replays.cluster import as_cluster
from slotkern.replays.jobs import prepare_jobs
from slotkern.replays.policies import POLICIES, QueuePolicy, resolve_policy
from slotkern.replays.queue_state import QueueState, state_of_pool
from slotkern.traces.trace import Trace

if TYPE_CHECKING:
    from slotkern.typing import Slots, Time

__all__ = [
    "Arrivals",
    "Forecast",
    "History",
    "forecast",
    "forecast_policies",
    "sample_starts",
]

#: The shares of runs that are printed: the band of 80% and the median.
QUANTILES = (0.1, 0.5, 0.9)
#: Past jobs from which a job draws: enough for a quantile of 10%, few enough to be of
#: similar length.
NEAREST = 300
#: Limits of a forecast: runs, and threads.
MAX_RUNS, MAX_WORKERS = 10**6, 256


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(HasPlot):
    """When a job will start; made by `forecast`.

    Attributes
    ----------
    starts : ndarray of float64
        The start of the job in each run.
    promise : float
        The start that conservative backfilling promises now, by requested lengths.
    now : float
        The time of the forecast.
    policy : str
    running, waiting : int
        The numbers of jobs that run and that wait before this one.
    context : SlotContext or None
        The clock and machine of the slots.
    """

    starts: NDArray[np.float64]
    promise: float
    now: float
    policy: str
    running: int
    waiting: int
    context: SlotContext | None = None

    @property
    def clock(self) -> Any:
        """The clock of the slots, or None."""
        return None if self.context is None else self.context.clock

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        clock, times = self.clock, (*self.band, self.promise)
        first, last, promise = (
            [f"{time:g}" for time in times]
            if clock is None
            else [f"{clock.datetime(time):%Y-%m-%d %H:%M}" for time in times]
        )
        return (
            f"Forecast({self.policy}, {len(self):,} runs: 80% start from {first} to "
            f"{last}; promised {promise})"
        )

    def quantile(self, share: float) -> float:
        """Return the earliest time by which the job has started in a share of runs.

        Parameters
        ----------
        share : float
            From 0 to 1: 0.5 for the median.

        Returns
        -------
        float
            A start of one of the runs.

        Raises
        ------
        ValueError, TypeError
            For a share outside of 0 to 1.
        """
        if number("share", share, least=0) > 1:
            raise ValueError(f"share must be at most 1, got {share!r}")
        return float(np.quantile(self.starts, share, method="inverted_cdf"))

    @property
    def band(self) -> tuple[float, float]:
        """The times between which the job starts in 80% of the runs."""
        return self.quantile(QUANTILES[0]), self.quantile(QUANTILES[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values; with a clock also as dates.

        Returns
        -------
        dict
            ``policy``, ``runs``, ``running``, ``waiting``, ``now``, ``promise`` and
            ``starts``: the quantiles by name, as in ``"10%"``. With a clock also
            ``now_time``, ``promise_time`` and ``starts_time``.
        """
        starts = {f"{share:.0%}": self.quantile(share) for share in QUANTILES}
        found: dict[str, Any] = {
            "policy": self.policy,
            "runs": len(self),
            "running": self.running,
            "waiting": self.waiting,
            "now": self.now,
            "promise": self.promise,
            "starts": starts,
        }
        if self.clock is not None:
            text = self.clock.text
            for name in ("now", "promise"):
                found[f"{name}_time"] = str(text(found[name]))
            found["starts_time"] = {
                name: str(text(time)) for name, time in starts.items()
            }
        return found

    def _as_table(self) -> Table:
        """Return one row for each quantile, and one for the promise."""
        starts = [*map(self.quantile, QUANTILES), self.promise]
        columns = {
            "runs": np.array([*(f"{share:.0%}" for share in QUANTILES), "promise"]),
            "start": np.array(starts),
            "wait": np.array(starts) - self.now,
        }
        options: Any = {"times": ("start",), "spans": ("wait",)}
        return Table(repr(self), columns, len(starts), self.context, **options)


class Arrivals(NamedTuple):
    """Jobs of a history that may be submitted after now, sorted by submission.

    The history is repeated once, so that a span of one `period` can begin anywhere in
    it. Times are clock units.
    """

    submit: NDArray[np.float64]
    run: NDArray[np.float64]
    estimate: NDArray[np.float64]
    width: NDArray[np.int32]
    period: float

    @classmethod
    def of_trace(cls, trace: Trace, processors: int, seconds: float) -> Arrivals:
        """Return the jobs of a trace that fit on the processors.

        `seconds` is the length of a clock unit.
        """
        flow = prepare_jobs(
            trace,
            as_cluster(processors, trace),
            width="allocated",
            overrun="kill",
            estimates="user",
            load=1.0,
            preceding=False,
        )
        if not len(flow.row):
            raise ValueError("arrivals: the trace has no job that fits on the nodes")
        submit = (flow.submit - flow.submit[0]) / seconds
        period = float(submit[-1]) + 1 / seconds  # the next copy is a second later
        return cls(
            np.concatenate([submit, submit + period]),
            np.tile(flow.run / seconds, 2),
            np.tile(flow.estimate / seconds, 2),
            np.tile(flow.width, 2),
            period,
        )

    def between(self, offset: float, span: float) -> tuple[NDArray[Any], ...]:
        """Return submission, run, estimate and width of the jobs in a span."""
        first = np.searchsorted(self.submit, offset)
        last = np.searchsorted(self.submit, offset + span, side="right")
        mine = slice(first, last)
        return (
            self.submit[mine] - offset,
            self.run[mine],
            self.estimate[mine],
            self.width[mine],
        )


@hint_keywords
def forecast(
    slots: Slots,
    request: Request,
    queue: Any,
    *,
    policy: str | QueuePolicy = "easy",
    history: Trace | ArrayLike | None = None,
    arrivals: Trace | None = None,
    now: Time | None = None,
    runs: int = 300,
    seed: int = 0,
    workers: int = 1,
) -> Forecast:
    """Forecast when a job will start behind the jobs of a queue.

    Parameters
    ----------
    slots : structured array, SlotPool or Environment
        The free time of the nodes, as for `find_window`; running jobs are busy there
        until their requested end.
    request : Request
        The job, which is last in the queue: its nodes, length and filter of nodes.
    queue : table
        The jobs before this one, in the order in which the scheduler serves them. The
        columns are ``nodes``, ``walltime`` or ``volume``, and optionally ``name``,
        ``start``: a job with a start runs since then, and ``user``.
    policy : str or QueuePolicy
        One of `POLICIES` that orders the queue by arrival, length or area:
        ``"easy"``, ``"conservative"``, ``"fcfs"``, ``"first-fit"``, ``"sjf"``, ...
    history : Trace or array of float, optional
        The trace of past jobs: a job draws its true length, as a share of the requested
        one, from the 300 past jobs with the nearest requested lengths. Or the shares of
        past jobs, in [0, 1]. By default all shares are equally likely.
    arrivals : Trace, optional
        A trace whose jobs may be submitted after now: each run takes those after a
        random time of it. By default no job is submitted later.
    now : float or date, optional
        The time of the forecast; by default the `now` of a pool after `advance`, else
        the first start of a slot.
    runs : int
        At most 1,000,000.
    seed : int
        The seed of the random numbers; equal seeds give equal forecasts.
    workers : int
        Threads, at most 256. The result does not depend on it.

    Returns
    -------
    Forecast
        ``.quantile(0.9)``, ``.band`` (10% and 90%), ``.promise``, ``.starts``,
        ``.plot()``.

    Raises
    ------
    ValueError, TypeError
        For an invalid argument; the message names it, and the row and value of the
        queue if any. Also for nodes on which a job does not take equally long, for
        fields of the job that the replay does not keep, such as a deadline, and for
        policies that choose windows or change priorities with time.

    Notes
    -----
    The forecast assumes that a job can use any nodes that are free together, that jobs
    of different users run independently of each other, that a user's jobs are alike
    (they have the same rank among the shares of the history), and that all nodes are
    free after the last time of the slots. A running job has a share of those that are
    longer than it has run. O(runs * replay of the queue).

    References
    ----------
    W. Smith, V. Taylor and I. Foster, "Using run-time predictions to estimate queue
    wait times and improve scheduler performance", JSSPP 1999.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1, 2], start=[10, 10, 0], end=100, performance=1, price=1
    ... )
    >>> queue = {"nodes": [2, 3], "walltime": [10, 20], "start": [0, None]}
    >>> found = sk.forecast(slots, sk.Request(2, walltime=5), queue, seed=1)
    >>> found.promise
    30.0
    >>> found.band[1] < found.promise
    True
    """
    name, chosen = resolve_policy(policy)
    if not isinstance(chosen, QueuePolicy) or not isinstance(chosen.order, str):
        raise ValueError(
            f"policy {name!r} chooses windows, or orders jobs by more than their size; "
            f"a forecast takes {', '.join(forecast_policies())}"
        )
    count = integer("runs", runs, least=1, most=MAX_RUNS)
    threads = integer("workers", workers, least=1, most=MAX_WORKERS)
    state, time, context = state_of_pool(slots, request, queue, now)
    clock = None if context is None else context.clock
    seconds = 1.0 if clock is None else clock.timedelta(1.0).total_seconds()
    later = None
    if arrivals is not None:
        if not isinstance(arrivals, Trace):
            kind = type(arrivals).__name__
            raise TypeError(f"arrivals must be a Trace, got {kind}")
        later = Arrivals.of_trace(arrivals, state.processors, seconds)
    promise, starts = sample_starts(
        state,
        chosen,
        None if history is None else History.of(history, seconds),
        count,
        integer("seed", seed, least=0),
        later=later,
        workers=threads,
    )
    return Forecast(
        starts + time,
        promise + time,
        time,
        name,
        state.running,
        len(state.width) - state.running - 1,
        context,
    )


def sample_starts(
    state: QueueState,
    policy: QueuePolicy,
    past: History | None,
    runs: int,
    seed: int,
    *,
    later: Arrivals | None = None,
    workers: int = 1,
) -> tuple[float, NDArray[np.float64]]:
    """Return the promised start of the last job, and its start in each run.

    Without a history, all shares of the requested lengths are equally likely.
    """
    promise = state.start(QueuePolicy("conservative"), state.remaining)
    draw = _TrueLengths(state, past)

    def start_of_run(k: int) -> float:
        random = np.random.default_rng([seed, k])
        run = draw(random)
        if later is None:
            return state.start(policy, run)
        offset, span = random.uniform(0, later.period), min(promise, later.period)
        while True:
            start = state.start(policy, run, later.between(offset, span))
            # No job that is submitted after the start changes it.
            if start <= span or span == later.period:
                return start
            span = min(2 * start, later.period)

    if workers == 1:
        return promise, np.array([*map(start_of_run, range(runs))])
    with ThreadPoolExecutor(workers) as threads:
        return promise, np.array([*threads.map(start_of_run, range(runs))])


class _TrueLengths:
    """Draws how long each job of a queue still runs.

    A job draws from the shares of the past jobs with the nearest requested lengths, a
    running job from those that are longer than it has run. If none is, it runs as long
    as it requested. Jobs of one user have the same rank among their shares.
    """

    def __init__(self, state: QueueState, past: History | None) -> None:
        self._state = state
        self._requested = state.elapsed + state.remaining
        self._least = state.elapsed / self._requested
        self._shares = None if past is None else past.shares_for(self._requested)
        if self._shares is not None:
            # Waiting jobs draw from all shares, also from 0.
            first = [
                row.searchsorted(least, side="right") if least > 0 else 0
                for row, least in zip(self._shares, self._least.tolist(), strict=True)
            ]
            self._first = np.array(first, np.int64)

    def __call__(self, random: np.random.Generator) -> NDArray[np.float64]:
        """Return the true remaining lengths of all jobs."""
        state = self._state
        ranks = random.random(len(state.user))[state.user]
        if self._shares is None:
            return state.remaining * (1 - ranks)
        count = self._shares.shape[1]
        column = self._first + (ranks * (count - self._first)).astype(np.int64)
        is_known = column < count
        share = self._shares[np.arange(len(column)), np.where(is_known, column, 0)]
        run = self._requested * share - state.elapsed
        run = np.where(is_known, run, state.remaining)
        return run.clip(0.0, state.remaining)


class History(NamedTuple):
    """True lengths of past jobs as shares of the requested ones, in [0, 1].

    `requested` are ascending; None: unknown, then `shares` are ascending.
    """

    shares: NDArray[np.float64]
    requested: NDArray[np.float64] | None

    @classmethod
    def of_jobs(
        cls, run: NDArray[np.float64], requested: NDArray[np.float64]
    ) -> History:
        """Return the history of jobs with a known true and requested length."""
        known = (run >= 0) & (requested > 0)
        run, requested = run[known], requested[known]
        order = np.argsort(requested, kind="stable")
        shares = np.minimum(run[order] / requested[order], 1.0)
        return cls(shares, requested[order])._checked()

    @classmethod
    def of(cls, given: Trace | ArrayLike, seconds: float) -> History:
        """Return the history of a trace, or of shares.

        `seconds` is the length of a clock unit.

        Raises
        ------
        ValueError, TypeError
            For a value that is not an array of numbers, a share outside of 0 to 1,
            and a history without shares.
        """
        if isinstance(given, Trace):
            run, asked = given.jobs["run_time"], given.jobs["requested_time"]
            return cls.of_jobs(run / seconds, asked / seconds)
        try:
            shares = np.asarray(given, np.float64).ravel()
        except (ValueError, TypeError) as error:
            raise type(error)(
                f"history must be a Trace or an array of shares: {error}"
            ) from None
        wrong = ~((shares >= 0) & (shares <= 1))
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"history[{row}] is {shares[row]:g}; a share of the requested length "
                "lies in [0, 1]"
            )
        return cls(np.sort(shares), None)._checked()

    def _checked(self) -> History:
        if not len(self.shares):
            raise ValueError("history has no job with a true and a requested length")
        return self

    def shares_for(self, estimate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the ascending shares from which each job draws, a row for each job.

        These are the `NEAREST` past jobs around its requested length in their order.
        """
        if self.requested is None:
            return np.broadcast_to(self.shares, (len(estimate), len(self.shares)))
        count = min(NEAREST, len(self.shares))
        low = np.searchsorted(self.requested, estimate)
        high = np.searchsorted(self.requested, estimate, side="right")
        first = ((low + high - count) // 2).clip(0, len(self.shares) - count)
        return np.sort(self.shares[first[:, None] + np.arange(count)], axis=1)


def forecast_policies() -> Sequence[str]:
    """Return the names of the policies that a forecast can replay."""
    return [
        name
        for name, policy in POLICIES.items()
        if isinstance(policy, QueuePolicy) and isinstance(policy.order, str)
    ]

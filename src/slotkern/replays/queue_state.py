"""The state of a queue at one moment, as input of the compiled replay.

`QueueState` holds equal processors, the spans in which some of them serve no job, the
running jobs and the waiting jobs, whose last one is the job that is forecast. Times are
clock units since the moment. `state_of_pool` builds one from the free slots of a pool:
what is busy there, except for the running jobs of the queue, serves no job.

Nodes are counted, not named: the replay assumes that a job may use any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels import replay as _replay
from slotkern._kernels.request import FIELDS, Request
from slotkern._kernels.slots import PreparedSlots, prepare_snapshot, resolve_times
from slotkern.compound.together import admitted
from slotkern.foundation.checks import quote, row_label
from slotkern.machine.frames import source_name
from slotkern.machine.jobs import check_single, request_of_row, rows_of
from slotkern.pool.ledger import time_of
from slotkern.replays.policies import QueuePolicy
from slotkern.search.holes import current_time

__all__ = ["QueueState", "state_of_pool"]

#: The columns of a queue; a job with a start is running.
COLUMNS = ("name", "nodes", "volume", "walltime", "reference", "start", "user")
#: The fields of the job that is forecast that select nodes or belong to its length.
_KEPT = {"volume", "min_performance", "max_price", "setup", "step"}


@dataclass(frozen=True)
class QueueState:
    """Running and waiting jobs on equal processors at time 0.

    Attributes
    ----------
    processors : int
    blocked : ndarray of float64, shape (spans, 3)
        Start, end and number of processors that serve no job.
    width : ndarray of int32
        The processors of each job: running jobs by start, then waiting jobs in the
        order of the queue. The last one is the job that is forecast.
    elapsed, remaining : ndarray of float64
        How long each job has run (waiting jobs: 0), and the rest of its requested
        length.
    user : ndarray of int64
        The user of each job, from 0; a job of an unknown user has a number of its own.
    running : int
        The number of running jobs.
    """

    processors: int
    blocked: NDArray[np.float64]
    width: NDArray[np.int32]
    elapsed: NDArray[np.float64]
    remaining: NDArray[np.float64]
    user: NDArray[np.int64]
    running: int

    def start(
        self,
        policy: QueuePolicy,
        run: NDArray[np.float64],
        later: tuple[NDArray[Any], ...] | None = None,
    ) -> float:
        """Return the start of the last job.

        Parameters
        ----------
        policy : QueuePolicy
            With an order by name.
        run : ndarray of float64
            How long each job still runs, at most `remaining`.
        later : tuple of ndarray, optional
            Submission, true length, requested length and processors of jobs that are
            submitted later, sorted by submission.
        """
        jobs: Any = np.zeros(len(run)), run, self.remaining, self.width
        if later is not None:
            jobs = [np.concatenate(pair) for pair in zip(jobs, later, strict=True)]
        rows = np.arange(len(jobs[0]))
        options = policy.options(rows, len(rows), jobs[2], jobs[3], rows)
        if "key" in options:
            # All jobs are submitted now; those that run are the first.
            options["key"] = np.where(rows < self.running, -np.inf, options["key"])
        start, end, width = self.blocked.T
        blocked = start.copy(), end.copy(), width.astype(np.int32)
        given: Any = (*jobs, self.processors, *blocked, policy.backfill)
        starts = _replay.replay(*given, nodes=False, **options)[0]
        return float(starts[len(run) - 1])


def state_of_pool(
    slots: Any, request: Request, queue: Any, at: Any = None
) -> tuple[QueueState, float, Any]:
    """Return the state of a queue on the free slots of a pool, now, and their context.

    See `slotkern.forecast` for the arguments and errors.
    """
    check_single(request, "forecast")
    request = resolve_times(slots, request)
    _check_fields(request)
    pool = slots if isinstance(slots, PreparedSlots) else prepare_snapshot(slots)
    now = current_time(pool) if at is None else time_of(pool.clock, at, "now")
    table = pool.slots
    table = table[admitted(pool, table, request) & (table["end"] > now)]
    nodes = len(np.unique(table["node"]))
    if request.nodes > nodes:
        raise ValueError(
            f"{request.name or 'the request'} asks for {request.nodes} nodes; {nodes} "
            "nodes have free time that it can use"
        )
    speeds = np.unique(table["performance"])
    if len(speeds) > 1:
        raise ValueError(
            f"the nodes have performances from {speeds[0]:g} to {speeds[-1]:g}; a "
            "forecast needs nodes on which a job takes equally long: select some by "
            "where= or min_performance="
        )
    width, length, started, user = _read_queue(queue, pool, speeds, nodes, now)
    running = int(np.count_nonzero(~np.isnan(started)))
    order = np.argsort(started, kind="stable")  # NaN, for waiting jobs, is last
    width, length, started = width[order], length[order], started[order]
    until = _snapped((started + length)[:running], table["start"]) - now
    remaining = np.concatenate([until, length[running:], request.length(speeds)])
    with np.errstate(over="ignore"):
        total = remaining.sum()
    if not total <= 2.0**53:  # as for the jobs of a replay
        raise ValueError("queue: the requested lengths add up to more than 2**53")
    state = QueueState(
        nodes,
        _blocked_spans(table, now, nodes, until, width[:running]),
        np.append(width, request.nodes).astype(np.int32),
        np.append(np.nan_to_num(now - started), 0.0),
        remaining,
        np.append(user[order], len(user)),
        running,
    )
    return state, now, pool.context


def _check_fields(request: Request) -> None:
    """Raise ValueError for a field that the replay of a queue does not keep."""
    name = next(iter(request.special or ()), "limits" if request.limits else None)
    for field in sorted(FIELDS.keys() - _KEPT):
        if getattr(request, field) != FIELDS[field].default:
            name = field
    if name is not None:
        raise ValueError(
            f"{request.name or 'the request'} has {name}, which a forecast does not "
            "keep; leave it out"
        )


def _read_queue(
    queue: Any, pool: PreparedSlots, speeds: NDArray[np.float64], nodes: int, now: float
) -> tuple[NDArray[Any], ...]:
    """Return nodes, requested length, start (NaN: it waits) and user of each job."""
    name = source_name(queue, "queue")
    rows = rows_of(queue, ("start", "user"), name)
    user, users = np.arange(len(rows)), dict[str, int]()
    width, length = np.empty(len(rows), np.int64), np.empty(len(rows))
    started = np.full(len(rows), np.nan)
    for i, row in enumerate(rows):
        at = f"{name}, {row_label(name, i)}"
        if other := next((title for title in row if title not in COLUMNS), None):
            raise ValueError(
                f"{at}, column {other!r}: a forecast keeps {', '.join(COLUMNS)} only; "
                "leave the column out"
            )
        given = row.pop("start", None)
        if "user" in row:
            user[i] = users.setdefault(row.pop("user"), i)
        request = request_of_row(row, i, name)
        try:
            request = resolve_times(pool, request)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{at}: {error}") from None
        width[i], length[i] = request.nodes, request.length(speeds)[0]
        if request.nodes > nodes:
            raise ValueError(
                f"{at}, column 'nodes': {request.nodes} is more than the {nodes} nodes "
                "that the request can use; leave out jobs of other nodes"
            )
        if given is not None:
            started[i] = _start_of_running(given, pool.clock, length[i], now, at)
    return width, length, started, user


def _start_of_running(
    given: Any, clock: Any, length: float, now: float, at: str
) -> float:
    """Return the start of a running job, which has not reached its requested length."""
    name = f"{at}, column 'start'"
    time = time_of(clock, given, name)
    if not time <= now < time + length:
        raise ValueError(
            f"{name}: {quote(given)} is not the start of a job that runs now: it must "
            "be at most now, and its end by the requested length after now"
        )
    return time


def _snapped(
    ends: NDArray[np.float64], starts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the ends of jobs; those that equal a start of a slot but for rounding
    become this start.
    """
    edges = np.sort(starts)
    after = np.searchsorted(edges, ends).clip(max=len(edges) - 1)
    near = edges[np.maximum(after - 1, 0)], edges[after]
    nearest = np.where(ends - near[0] < near[1] - ends, *near)
    rounding = 4 * np.spacing(np.maximum(np.abs(ends), 1.0))  # of a few sums
    return np.where(np.abs(nearest - ends) <= rounding, nearest, ends)


def _blocked_spans(
    table: NDArray[np.void],
    now: float,
    nodes: int,
    until: NDArray[np.float64],
    width: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return start, end and nodes of the spans in which nodes serve no job.

    These are the busy nodes of the table, without those of running jobs, which end
    `until` after now. After the last finite time of the table all nodes serve jobs.

    Raises
    ------
    ValueError
        If running jobs hold more nodes than are busy.
    """
    count = np.ones(len(table), np.int64)
    start = np.maximum(table["start"] - now, 0.0)
    times = np.concatenate([[0.0], start, table["end"] - now, until])
    change = np.concatenate([[nodes - width.sum()], -count, count, width])
    last = times[np.isfinite(times)].max()
    times, where = np.unique(np.minimum(times, last), return_inverse=True)
    busy = np.zeros(len(times), np.int64)
    np.add.at(busy, where, change)
    busy = busy.cumsum()[:-1]
    if (busy < 0).any():
        at = int((busy < 0).argmax())
        held = int(width[until > times[at]].sum())
        raise ValueError(
            f"queue: running jobs hold {held} nodes {times[at]:g} from now, but only "
            f"{held + busy[at]} are busy in the pool; running jobs must be busy there "
            "until their requested end, on nodes that become free later"
        )
    spans = np.column_stack([times[:-1], times[1:], busy])
    return spans[busy > 0]

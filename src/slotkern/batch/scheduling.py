"""The entry point of batch scheduling: checks the rules and calls the kernel once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels import batch as _batch
from slotkern._kernels.request import Request
from slotkern._kernels.search import find_windows
from slotkern._kernels.slots import PreparedSlots, prepare_snapshot, refuse_tariffs
from slotkern.batch.jobs import Batch
from slotkern.batch.optimal import find_optimum
from slotkern.batch.options import BatchOptions, Measure
from slotkern.batch.policies import (
    BSF,
    CSS,
    Backfilling,
    BatchSlicer,
    Optimal,
    Policy,
    backfill_of,
    ranked,
)
from slotkern.batch.schedule import Schedule
from slotkern.foundation.checks import (
    hint_keywords,
    integer,
    named,
    number,
    one_of,
    quote,
)
from slotkern.foundation.logger import log
from slotkern.foundation.special_fields import refuse_special

if TYPE_CHECKING:
    from slotkern.typing import Shape

__all__ = ["schedule_batch"]

#: The measure of a schedule for each accepted name.
MEASURES = {"time": "processor_time", **{name: name for name in _batch.MEASURES}}
DEFAULT_GAP, DEFAULT_MAX_WORK = 1e-9, 1 << 24
#: The largest size of the alternatives in bytes.
MAX_BYTES = 1 << 30


@hint_keywords
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
    gap: float = DEFAULT_GAP,
    max_work: int = DEFAULT_MAX_WORK,
) -> Schedule:
    """Choose one window for each job of a batch by the policy of the organization.

    Parameters
    ----------
    slots : structured array or SlotPool
        As for `find_window`. Never changed: ``pool.book(schedule)`` books it.
    requests : sequence of Request, Batch, or table
        In order of priority. A table is one of pandas, Arrow or a mapping of columns;
        see `Batch.from_jobs`.
    policy : BatchSlicer, Backfilling, BSF or Optimal
        `CSS` is ``BatchSlicer(1, "first")``.
    minimize, maximize : str, optional
        The measure of the alternatives that is optimized, summed over the jobs:
        ``"processor_time"`` (or ``"time"``), ``"cost"``, ``"start"``, ``"finish"``,
        ``"runtime"``, or the name of a numeric field of the slots, summed over the
        parts. Give at most one; ``minimize="processor_time"`` by default.
    under : str, optional
        The measure that is limited; one of the same names.
    limit : float, optional
        The largest sum of `under` over the whole batch; each sub-batch gets its share
        of the remainder. A negative remainder is not divided: the first sub-batch that
        can meet all of it does, or nothing is scheduled. Jobs that do not fit a given
        limit together with those before them fail with the reason ``"limit"``. By
        default each sub-batch has the limit of eq. (5): the sum over its jobs of the
        mean over their alternatives, rounded up; `Optimal` has none.
    shape : {"ragged", "square"}
        As for `find_window`.
    alternatives : {"amp", "alp"}
        Whether the budget limits the window as a whole (AMP) or the price of every
        single slot (ALP): the request's `max_price`, else the price at which the budget
        pays for `nodes` parts at `min_performance`.
    names, criteria : sequence of str, optional
        The name of each job, and each user's criterion (of `CRITERIA`; ``"finish"``).
    most : int, optional
        The largest number of alternatives per job.
    gap, max_work : float, int, optional
        The options of each choice; see `choose_one_each`. `Optimal` has its own, and
        refuses these and `most`.

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError, TypeError
        Naming the job, the argument or the row and the value.
    KeyboardInterrupt
        Within a fraction of a second after Ctrl-C. The call books nothing in `slots`,
        complete or not: ``SlotPool.book`` books a schedule.

    Notes
    -----
    The four problems of the paper (Toporkov et al. 2014, section 3.1): maximize cost
    under time (eq. 6), minimize time under cost (7), minimize cost under time (8),
    maximize time under time (9). Filters are evaluated on the given slots, not on the
    remnants of cut slots. Time: a search and n cuts for each alternative; memory: two
    copies of the slots and 120 bytes per part of an alternative; alternatives of more
    than 1 GiB are refused.

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
    batch = Batch.from_jobs(requests)
    if names is not None or criteria is not None:
        batch = Batch(batch.requests, names or batch.names, criteria or batch.criteria)
    batch = batch.resolve_times(slots)
    if not isinstance(policy, (BatchSlicer, Backfilling, BSF, Optimal)):
        raise TypeError(
            "policy must be CSS, or a BatchSlicer, Backfilling, BSF or Optimal; got "
            f"{quote(policy)}"
        )
    if minimize is not None and maximize is not None:
        raise ValueError(
            f"minimize={minimize!r} and maximize={maximize!r} contradict each other"
        )
    one_of("alternatives", alternatives, ("amp", "alp"))
    asked = batch.named_requests
    if alternatives == "alp":
        refuse_tariffs(slots, "alternatives='alp' does")
        asked = tuple(map(_with_price_limit, asked))
    own: Sequence[str] | None
    if isinstance(policy, Optimal):
        criterion, own, slices = "own", None, [0, len(batch)]
        _check_optimal(
            slots, asked, policy, shape, maximize, most, gap, max_work, limit
        )
        gap, max_work = policy.gap, policy.max_work
    elif isinstance(policy, Backfilling):  # the earliest window, regardless of criteria
        criterion, own, slices = "own", None, [0]
    else:
        criterion, slices = policy.criterion, policy.slices(len(batch))
        own = batch.criteria if criterion == "own" else [criterion] * len(batch)
    order = _order(slots, batch, policy, shape)
    if order is not None:
        places = order.tolist()
        asked = tuple(asked[i] for i in places)
        own = None if own is None else [own[i] for i in places]
    jobs = _kernel_jobs(slots, asked, own)
    table = jobs.slots
    if most is None and own is not None and jobs.has_unbounded_slot:
        _check_ends(asked)
    target = maximize or minimize or "processor_time"
    options = BatchOptions(
        shape=shape,
        criterion=criterion,
        slices=slices,
        order=order,
        target=_measure(table, target, "maximize" if maximize else "minimize"),
        expense=_measure(table, under, "under"),
        target_name=target,
        expense_name=under,
        maximize=maximize is not None,
        limit=None if limit is None else number("limit", limit, finite=False),
        gap=number("gap", gap, least=0),
        max_work=integer("max_work", max_work, least=0),
        most=2**62 if most is None else integer("most", most, least=1),
        max_bytes=MAX_BYTES,
    )
    if limit is None and len(slices) > 1:
        log.info("no limit on %s given: each sub-batch has that of eq. (5)", under)
    if isinstance(policy, Optimal):
        answer = find_optimum(jobs, asked, options)
    else:
        answer = _batch.schedule(jobs, options, backfill_of(policy))
    found, owner, chosen, reason, choices = answer
    if order is not None:
        place = np.argsort(order)
        owner, chosen, reason = order[owner], chosen[place], reason[place]
    aim, beside = MEASURES.get(target, target), MEASURES.get(under, under)
    return Schedule(
        batch, policy, found, owner, chosen, reason, choices, aim, beside, options, jobs
    )


def _kernel_jobs(
    slots: NDArray[np.void] | PreparedSlots,
    asked: Sequence[Request],
    own: Sequence[str] | None,
) -> Any:
    """Convert the jobs for the kernel; an error names the job that causes it."""
    try:
        return _batch.CompiledJobs(slots, asked, own)
    except (ValueError, TypeError) as error:
        pool = prepare_snapshot(slots)
        for request in asked:
            try:
                _batch.CompiledJobs(pool, (request,), None)
            except (ValueError, TypeError):
                raise type(error)(named(str(request.name), error)) from None
        raise


def _order(
    slots: NDArray[np.void] | PreparedSlots, batch: Batch, policy: Policy, shape: Shape
) -> NDArray[np.int64] | None:
    """Return the jobs in order of priority; None for the order of the batch."""
    by = "order" if isinstance(policy, (Backfilling, Optimal)) else policy.by
    if isinstance(by, str) and by == "order":
        return None
    if isinstance(by, tuple):
        if len(by) != len(batch):
            raise ValueError(f"by has {len(by)} numbers for {len(batch)} jobs")
        order = ranked(np.array(by))
    elif by == "performance":
        order = ranked(
            np.array([request.min_performance for request in batch.requests])
        )
    else:
        cheapest = find_windows(slots, batch.named_requests, "cost", shape=shape)
        order = ranked(
            np.array([math.nan if each is None else each.cost for each in cheapest])
        )
    if isinstance(policy, BSF):  # jobs that are not sliced keep the batch's order
        first = min(int(policy.n_css), len(batch))
        order = np.concatenate([order[:first], np.sort(order[first:])])
    return order


def _measure(table: NDArray[np.void], name: str, argument: str) -> Measure:
    """Return the name of a measure, or a column of the slots as float64."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be a name, got {name!r}")
    if name in MEASURES:
        return MEASURES[name]
    if name not in (table.dtype.names or ()):
        numbers = [
            field
            for field in table.dtype.names or ()
            if table.dtype[field].kind in "iufb" and field != "node"
        ]
        one_of(argument, name, dict.fromkeys([*MEASURES, *numbers]))
    if table.dtype[name].kind not in "iufb":
        raise TypeError(f"{argument}: field {name!r} of the slots is not numeric")
    values = np.ascontiguousarray(table[name], np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"{argument}: field {name!r} of slot row {row} is {values[row]}, not finite"
        )
    return values


def _check_optimal(
    slots: NDArray[np.void] | PreparedSlots,
    asked: Sequence[Request],
    policy: Optimal,
    shape: str,
    maximize: str | None,
    most: int | None,
    gap: float,
    max_work: int,
    limit: float | None,
) -> None:
    """Raise ValueError for arguments and requests that `Optimal` does not support."""
    refuse_tariffs(slots, "policy Optimal does")
    given = {"most": most is not None, "gap": gap != DEFAULT_GAP}
    given["max_work"] = max_work != DEFAULT_MAX_WORK
    for name, is_given in given.items():
        if is_given:
            raise ValueError(
                f"policy Optimal does not take {name} of schedule_batch; it has "
                "options of its own: Optimal(gap=, max_work=)"
            )
    if limit is not None and number("limit", limit, finite=False) < 0:
        raise ValueError(f"policy Optimal needs a limit of at least 0, got {limit:g}")
    if maximize in ("start", "finish", "runtime"):
        raise ValueError(f"policy Optimal does not maximize {maximize!r}")
    if maximize is not None and shape == "square":
        raise ValueError("policy Optimal maximizes over ragged windows only")
    for request in asked:
        refuse_special(request, "policy Optimal")
        kind = "limits" if request.limits else "group rules" if request.rules else None
        if kind is not None:
            raise ValueError(f"{request.name}: policy Optimal does not support {kind}")


def _with_price_limit(request: Request) -> Request:
    """Replace the budget by a limit on the price of every single slot (ALP)."""
    price = request.max_price
    if math.isinf(price) and not math.isinf(request.budget):
        if request.min_performance == 0:
            raise ValueError(
                f"{request.name}: alternatives='alp' needs max_price, or "
                "min_performance beside a budget"
            )
        longest = float(request.length(request.min_performance))
        price = request.budget / (request.nodes * longest)
    return request.replace(max_price=price, budget=math.inf)


def _check_ends(requests: Sequence[Request]) -> None:
    """Raise ValueError for requests with unboundedly many alternatives."""
    for request in requests:
        if math.isinf(request.deadline) and math.isinf(request.latest):
            raise ValueError(
                f"slots have an infinite end, so that {request.name} may have "
                "endlessly many alternatives; give it a deadline, or give most="
            )

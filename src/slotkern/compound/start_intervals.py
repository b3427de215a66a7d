"""When a request can begin: all its possible starts, as closed intervals.

`starts` jumps from one interval to the next by searches: the window with the earliest
start stays possible until the first of its slots becomes too short; the next search
begins one float after that. Intervals that touch are joined. This needs nothing but the
search itself, so all fields of a request count.

`spans_by_length` divides the starts by the runtime of the window, for chains whose gap
has an upper limit. A slot is live for starts from its own start to its end minus the
length of the part; the number of live slots changes at these times only, and each set
of slots is live in a closed interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.search import find_limited
from slotkern._kernels.slots import prepare_snapshot, resolve_times
from slotkern._kernels.windows import Window
from slotkern.compound.search import NO_LIMITS, CompoundSearch, Limits
from slotkern.compound.together import _Live, met, window_of_rows
from slotkern.foundation.checks import one_of
from slotkern.machine.jobs import check_single

if TYPE_CHECKING:
    from slotkern.typing import Shape, Slots

__all__ = ["StartsOfLength", "joined", "spans_by_length", "starts", "window_of_length"]

#: An interval of possible starts, with both ends.
INTERVAL = np.dtype([("first", "f8"), ("last", "f8")])


def starts(slots: Slots, request: Request, *, shape: Shape = "square") -> NDArray[Any]:
    """Return all possible starts of a request, as closed intervals.

    Parameters
    ----------
    slots : structured array, SlotPool or Environment
        As for `find_window`.
    request : Request
    shape : {"square", "ragged"}

    Returns
    -------
    structured array
        One row for each interval, in order of time: first and last, the first and the
        last start in it. A window exists for each start in one of them, and for no
        other, unless it is later than `last` by a rounding error. With a clock also
        first_time and last_time, as text in its zone. An interval without end has the
        last start infinity.

    Raises
    ------
    ValueError, TypeError
        As `find_window`; also under tariffs for a request with a budget, because costs
        then change with the start.

    Notes
    -----
    One search for each interval, and for each time at which the slots of one window
    give way to others. A changed pool is copied once, in O(m log m).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1, 1], start=[0, 0, 6], end=[20, 4, 20], performance=1, price=1
    ... )
    >>> sk.starts(slots, sk.Request(2, 3)).tolist()
    [(0.0, 1.0), (6.0, 17.0)]
    """
    check_single(request, "starts")
    one_of("shape", shape, ("square", "ragged"))
    given = resolve_times(slots, request)
    pool = prepare_snapshot(slots)
    if pool.tariffs is not None and given.budget < math.inf:
        raise ValueError(
            "under tariffs, the starts of a request with a budget are not computed: "
            "its cost changes with the start; leave out the budget"
        )
    found: list[tuple[float, float]] = []
    reached = -math.inf
    for first, last, rounded in _intervals(pool, given, shape):
        if found and first <= math.nextafter(reached, math.inf):
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
        reached = rounded
    clock = pool.clock
    if clock is None:
        return np.array(found, INTERVAL)
    table = np.array(found, INTERVAL)
    texts = {f"{name}_time": clock.text(table[name]) for name in ("first", "last")}
    dated = np.empty(
        len(table),
        [*INTERVAL.descr, *((name, text.dtype) for name, text in texts.items())],
    )
    for name in ("first", "last"):
        dated[name], dated[f"{name}_time"] = table[name], texts[f"{name}_time"]
    return dated


def _intervals(
    pool: Any, request: Request, shape: str
) -> Iterator[tuple[float, float, float]]:
    """Yield intervals of starts, each that of one window, in order of time.

    Each has its first and last start, and the last one that fits because of rounding.
    """
    ends, limits = pool.slots["end"], NO_LIMITS
    while True:
        window = find_limited(pool, request, "start", shape, limits, own_rows=True)
        if window is None:
            return
        parts = window.slots
        until = np.minimum(ends[parts["row"]], request.deadline)
        lengths = np.array([part["length"] for part in window.to_dict()["slots"]])
        lasts = last_starts(until, lengths)
        # The first start may fit because of rounding, too.
        last = max(window.start, min(request.latest, *lasts.tolist()))
        rounded = min(request.latest, *_rounded_starts(lasts, until, lengths).tolist())
        rounded = max(last, rounded)
        yield window.start, last, rounded
        if rounded >= request.latest:
            return
        limits = limits._replace(earliest=math.nextafter(rounded, math.inf))


def last_starts(
    ends: NDArray[np.float64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the last starts from which parts of these lengths end in time: the end
    minus the length, or one float less if their sum is rounded up.
    """
    found: NDArray[np.float64] = np.asarray(ends - lengths)
    while (late := found + lengths > ends).any():
        found[late] -= np.spacing(np.maximum(np.abs(ends[late]), np.abs(found[late])))
    return found


def _rounded_starts(
    lasts: NDArray[np.float64], ends: NDArray[np.float64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the last starts for which start + length, rounded, is at most the end."""
    low = lasts.copy()
    finite = np.isfinite(low)
    high = np.where(finite, low + 2 * np.spacing(np.maximum(abs(ends), abs(low))), low)
    while True:
        middle = low + (high - low) / 2
        between = finite & (low < middle) & (middle < high)
        if not between.any():
            return low
        fits = middle + lengths <= ends
        low = np.where(between & fits, middle, low)
        high = np.where(between & ~fits, middle, high)


def joined(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the union of closed intervals: sorted, those that touch joined."""
    found: list[tuple[float, float]] = []
    for first, last in sorted(intervals):
        if found and first <= math.nextafter(found[-1][1], math.inf):
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


class StartsOfLength(NamedTuple):
    """Starts of windows with one runtime."""

    runtime: float
    intervals: list[tuple[float, float]]  # closed, in order of time


def spans_by_length(
    search: CompoundSearch, request: Request, limits: Limits
) -> list[StartsOfLength]:
    """Return the starts of a request for each runtime of its window, ascending.

    A window has the runtime T if one of its slots needs exactly T, and none more.

    Raises
    ------
    ValueError
        For limits on sums.
    """
    request = search.resolved(request)
    own = "limits" if request.limits else next(iter(request.special or ()), "")
    if own:
        raise ValueError(
            f"{request.name or 'the request'} has {own}, but the gap after it has an "
            f"upper limit: its starts by length are not computed; leave out {own} or "
            "the upper limit of the gap"
        )
    budget = min(request.budget, limits.budget)
    if search.has_tariffs and budget < math.inf:
        raise ValueError(
            f"{request.name or 'the request'} has a budget under tariffs, but the gap "
            "after it has an upper limit: its cost changes with the start; leave out "
            "the budget or the upper limit of the gap"
        )
    live = _Live(search, request, limits)
    found = []
    for runtime in np.unique(live.lengths[live.good]).tolist():
        intervals = _of_length(live, request, runtime, budget, limits)
        if intervals:
            found.append(StartsOfLength(runtime, intervals))
    return found


def _of_length(
    live: _Live, request: Request, runtime: float, budget: float, limits: Limits
) -> list[tuple[float, float]]:
    """Return the starts of windows with exactly this runtime."""
    usable = np.flatnonzero(live.good & (live.lengths <= runtime))
    square = live.search.shape == "square"
    lengths = np.full(len(usable), runtime) if square else live.lengths[usable]
    first = live.table["start"][usable].clip(min=max(request.earliest, limits.earliest))
    last = last_starts(live.ends[usable], lengths)
    fits = first + lengths <= live.ends[usable]  # the first start because of rounding
    last = np.where(fits, np.maximum(first, last), last)
    last = last.clip(max=min(request.latest, limits.latest))
    keep = first <= last
    usable, first, last = usable[keep], first[keep], last[keep]
    slow = live.lengths[usable] == runtime
    if len(usable) < request.nodes or not slow.any():
        return []
    points = np.unique(np.concatenate([first, last]))
    feasible = _enough(points, first, last, request.nodes)
    feasible &= _enough(points, first[slow], last[slow], 1)
    if budget < math.inf:
        costs = runtime * live.table["price"][usable] if square else live.costs[usable]
        for k in np.flatnonzero(feasible).tolist():
            point, between = points[k // 2], k % 2
            here = (first <= point) & (last >= points[k // 2 + between])
            cost = costs[_cheapest(costs, slow, np.flatnonzero(here), request.nodes)]
            feasible[k] = met(math.fsum(cost.tolist()), budget)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], feasible, [False]])))
    # Sets of slots are live in closed intervals, so runs begin and end at points.
    return joined(
        (float(points[begin // 2]), float(points[(end - 1) // 2]))
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    )


def _enough(
    points: NDArray[np.float64],
    first: NDArray[np.float64],
    last: NDArray[np.float64],
    count: int,
) -> NDArray[np.bool_]:
    """Return whether enough intervals are live at each point, and between points.

    Entry 2k is for point k, entry 2k + 1 for the times between it and the next one.
    """
    begun = np.searchsorted(np.sort(first), points, "right")
    ends = np.sort(last)
    found = np.empty(2 * len(points) - 1, bool)
    found[::2] = begun - np.searchsorted(ends, points, "left") >= count
    found[1::2] = (begun - np.searchsorted(ends, points, "right") >= count)[:-1]
    return found


def _cheapest(
    costs: NDArray[np.float64],
    slow: NDArray[np.bool_],
    rows: NDArray[np.int64],
    count: int,
) -> NDArray[np.int64]:
    """Return the cheapest rows, at least one of them a slow one."""
    order = rows[np.argsort(costs[rows], kind="stable")]
    chosen = order[:count]
    if slow[chosen].any():
        return chosen
    return np.append(order[: count - 1], order[slow[order]][0])


def window_of_length(
    search: CompoundSearch,
    request: Request,
    start: float,
    runtime: float,
    limits: Limits,
) -> Window:
    """Return the cheapest window with this start and exactly this runtime."""
    request = search.resolved(request)
    live = _Live(search, request, limits)
    square = search.shape == "square"
    lengths = live.lengths
    fits = live.good & (live.table["start"] <= start) & (lengths <= runtime)
    fits &= start + (runtime if square else lengths) <= live.ends
    rows = np.flatnonzero(fits)
    rows = rows[np.argsort(live.table["node"][rows], kind="stable")]
    costs = live.table["price"] if square else live.costs
    chosen = _cheapest(costs, lengths == runtime, rows, request.nodes)
    return window_of_rows(search, request, chosen.tolist(), start)

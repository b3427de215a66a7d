"""The exact Pareto front of one job: its windows that no other window dominates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.slots import (
    PreparedSlots,
    has_tariffs,
    prepare_snapshot,
    resolve_times,
)
from slotkern._kernels.windows import Window, WindowTable
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.foundation.checks import hint_keywords, integer, number, one_of, visible
from slotkern.fronts.goals import Goal, make_goal
from slotkern.fronts.search import FrontSearch, Points
from slotkern.machine.jobs import check_single
from slotkern.search.delegated import restate_window

if TYPE_CHECKING:
    from slotkern.typing import FrontCriterion, Shape, Slots

__all__ = ["Front", "pareto"]


@hint_keywords
def pareto(
    slots: Slots,
    request: Request,
    by: Sequence[FrontCriterion] = ("cost", "finish"),
    *,
    shape: Shape = "square",
    most: int | None = None,
    gap: float = 0.0,
    max_work: int | None = None,
) -> Front:
    """Find the Pareto front of a job: its windows that no other window dominates.

    A window dominates another if it is at least as good by both criteria and better by
    one. The front has one window for each pair of values that no window dominates.

    Parameters
    ----------
    slots : structured array, SlotPool or Environment
        As for `find_window`. The search uses a snapshot of a pool.
    request : Request
        The job. Its filter and limits apply to every window.
    by : pair of criteria
        Two of ``"start"``, ``"finish"``, ``"runtime"``, ``"cost"``,
        ``"processor_time"``, and sums of values as in `find_window`: the name of a
        numeric field, an array with one value per row or a function made by `criterion`
        (all maximized), or ``minimize(...)`` of those.
    shape : {"square", "ragged"}
        As for `find_window`.
    most : int, optional
        Return at most this many points, at least 2: both ends, and others spread
        evenly over the front. None returns the whole front.
    gap, max_work : float, int, optional
        As for `find_window`, for each search by a sum of values. With a gap above 0,
        `Front.proven` and `Front.between` hold up to that share of a value.

    Returns
    -------
    Front
        The points, in the order of the first criterion. Empty if nothing fits.

    Raises
    ------
    UndecidedError
        If a search under limits spent `max_work` before it found a window.
    ValueError, TypeError
        As `find_window`; for a criterion whose front would not be exact (``"first"``,
        ``"leftover"``, ``"dependable"``, ``"coordinated"``, functions of the start);
        and if the request has no free limit for a criterion (each sum of values needs
        one of the six).

    Notes
    -----
    Windows start where a slot starts, or at the earliest start: an earlier start makes
    none of these criteria worse, so no other start can add a point.

    Among windows with equal values, the tie-break of `find_window` by the later
    criterion of start, finish, runtime and cost applies: the earliest start, then the
    lowest cost, then the smallest node ids. If one of the criteria is a sum of values
    (or the ragged processor time), the choice is unspecified but deterministic.

    Costs and sums are compared up to the rounding of their decimals: two amounts that
    differ by less than 2**-46 of their size (for up to 50 nodes; n * 2**-50 + 2**-47
    for n) may be treated as equal. Times are compared exactly.

    Two searches per point and two more, by sums up to six; with `most` up to four times
    that number, under tariffs up to eleven times. With `most`, each search is made in
    the gap with the largest unexplored area, so the points spread over the front;
    `Front.between` bounds the windows in each gap.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=[0, 0, 1], end=20,
    ...                       performance=[1, 2, 4], price=[1, 3, 8])
    >>> front = sk.pareto(slots, sk.Request(1, 8), ("cost", "finish"))
    >>> front.values
    array([[ 8.,  8.],
           [12.,  4.],
           [16.,  3.]])
    >>> [window.nodes for window in front]
    [(0,), (1,), (2,)]
    """
    check_single(request, "pareto")
    one_of("shape", shape, ("square", "ragged"))
    number("gap", gap, least=0)
    if max_work is not None:
        integer("max_work", max_work, 0)
    if most is not None:
        most = integer("most", most, least=2)
    if isinstance(by, str) or len(by) != 2:
        raise ValueError(f"by must be two criteria, got {by!r}")
    pool = prepare_snapshot(slots)
    request = resolve_times(slots, request)
    one, other = (make_goal(name, pool, request, shape) for name in by)
    if one.name == other.name != "array":
        raise ValueError(f"by must be two different criteria, got {one.name!r} twice")
    if most is None and "cost" in (one.name, other.name) and has_tariffs(pool):
        raise ValueError(
            "under tariffs the cost changes with every start, so the front may have "
            "endlessly many windows; give most=10 or another number of windows (--most "
            "on the command line)"
        )
    swapped = one.rank > other.rank
    goals = (other, one) if swapped else (one, other)
    options = {"gap": float(gap), "max_work": max_work}
    search = FrontSearch(pool, request, shape, *goals, options)
    points = search.all_points() if most is None else search.some_points(most)
    if swapped:
        points = points.swapped()
    return _front(points, (one, other), pool, shape, request)


def _front(
    points: Points,
    goals: tuple[Goal, Goal],
    pool: PreparedSlots,
    shape: Shape,
    request: Request,
) -> Front:
    """Make the front that users see: values in their units, original rows of slots."""
    name = f"pareto({goals[0].name}, {goals[1].name})"
    origin = pool._free()[1]
    scales = np.array([goals[0].scale, goals[1].scale])
    losses = [(point.first, point.second) for point in points.points]
    values = np.array(losses, np.float64).reshape(-1, 2) * scales
    windows = [
        restate_window(
            point.window,
            origin,
            value=value,
            bound=value if point.proven else math.nan,
            proven=point.proven,
            criterion=name,
            name=request.name,
        )
        for point, value in zip(points.points, values[:, 0].tolist(), strict=True)
    ]
    nothing = (math.nan, math.nan)
    gaps = [nothing if gap is None else gap for gap in points.gaps]
    between = np.array(gaps, np.float64).reshape(-1, 2) * scales
    return Front(
        (goals[0].name, goals[1].name),
        WindowTable.of(windows, criterion=name, shape=shape),
        values,
        np.array([point.proven for point in points.points], bool),
        between,
    )


class Front(HasPlot):
    """The Pareto front of a job; the result of `pareto`.

    A sequence of windows, in the order of the first criterion. A slice is a
    `WindowTable`.

    Attributes
    ----------
    by : pair of str
        The names of the two criteria.
    windows : WindowTable
        The windows. The `Window.value` of each is its value by the first criterion; its
        `Window.bound` is the same for a proven point, and NaN otherwise.
    values : ndarray of float64, shape (k, 2)
        The values of each window by the two criteria, in their own units.
    proven : ndarray of bool, shape (k,)
        Whether it is proven that no window dominates this one. False only if `max_work`
        ended one of the searches of the point.
    between : ndarray of float64, shape (k - 1, 2)
        For each two neighbouring points, bounds on the windows of the front between
        them: no such window has a better value than this by either criterion. NaN if
        it is proven that there is none.
    """

    def __init__(
        self,
        by: tuple[str, str],
        windows: WindowTable,
        values: NDArray[np.float64],
        proven: NDArray[np.bool_],
        between: NDArray[np.float64],
    ) -> None:
        self.by, self.windows, self.values = by, windows, values
        self.proven, self.between = proven, between

    @property
    def shape(self) -> str:
        """The shape of the windows."""
        return self.windows.shape

    @property
    def complete(self) -> bool:
        """True if all points of the front are present and proven."""
        return bool(self.proven.all() and np.isnan(self.between).all())

    @property
    def clock(self) -> Any:
        """The clock of the slots that were searched, or None."""
        return self[0].clock if len(self) else None

    @property
    def machine(self) -> Any:
        """The machine of the slots that were searched, or None."""
        return self[0].machine if len(self) else None

    def __len__(self) -> int:
        return len(self.windows)

    @overload
    def __getitem__(self, place: int) -> Window: ...
    @overload
    def __getitem__(self, place: slice) -> WindowTable: ...
    def __getitem__(self, place: Any) -> Any:
        return self.windows[place]

    def __iter__(self) -> Iterator[Window]:
        for k in range(len(self)):
            yield self[k]

    def __repr__(self) -> str:
        by = f"{self.by[0]} and {self.by[1]}"
        size = f"{len(self)} {self.shape} window{'s' * (len(self) != 1)}"
        gaps = int((~np.isnan(self.between).all(axis=1)).sum())
        whole = "complete" if self.complete else f"{gaps} of {len(self) - 1} gaps open"
        if not self.complete and not gaps:
            whole = f"{int((~self.proven).sum())} points not proven"
        return visible(f"Front({size} by {by}, {whole})")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python numbers and text, ready for JSON.

        ``points`` holds for each window its two ``values`` and whether it is
        ``proven``, besides the keys of `Window.to_dict`; ``between`` holds a
        pair for each gap, None if it is proven empty.
        """
        rows = zip(self.values.tolist(), self, strict=True)
        between = [None if a != a else [a, b] for a, b in self.between.tolist()]
        return {
            "by": list(self.by),
            "shape": self.shape,
            "complete": self.complete,
            "points": [{"values": values} | w.to_dict() for values, w in rows],
            "between": between,
        }

    def _as_table(self) -> Table:
        """Return one row per point: its two values, then all of its window."""
        table = self.windows._as_table()
        columns: dict[str, Any] = {
            name: self.values[:, k]
            for k, name in enumerate(self.by)
            if name not in table.columns
        }
        rest = {name: c for name, c in table.columns.items() if name != "value"}
        columns |= rest
        columns["proven"] = self.proven
        return table._replace(heading=repr(self), columns=columns)

"""What find_window does beyond the kernels, and why a request has no window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._core import (
    CRITERIA,
    PreparedSlots,
    Request,
    Window,
    filter_rows,
    find_window,
    prepared,
    window_of,
)

__all__ = ["Explanation", "explain", "step_values"]

METHODS = ("exact", "lite", "published")
PLACEMENTS = ("slot-start", "any")


def find_otherwise(
    slots: NDArray[np.void] | PreparedSlots,
    request: Request,
    criterion: Any,
    shape: str,
    method: str,
    placement: str,
    gap: float,
    max_work: int | None,
    seed: int,
) -> Window | None:
    """`find_window` for everything that is not one sweep of a built-in criterion."""
    if shape not in ("square", "ragged"):
        raise ValueError(f"shape must be 'square' or 'ragged', got {shape!r}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if placement not in PLACEMENTS:
        raise ValueError(
            f"placement must be one of {', '.join(PLACEMENTS)}, got {placement!r}"
        )
    if method == "published":
        return _find_published(slots, request, criterion, shape, seed)
    if isinstance(criterion, str) and criterion in CRITERIA:
        return _find_lite_builtin(slots, request, criterion, shape)
    window: Window | None = _search_by_value(
        slots, request, criterion, shape, method, placement, gap, max_work, False
    )
    return window


def step_values(
    slots: NDArray[np.void] | PreparedSlots,
    request: Request,
    criterion: Any,
    *,
    shape: str = "square",
    method: str = "exact",
    placement: str = "slot-start",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The value of the best window at each step of the sweep, for pictures.

    Parameters
    ----------
    slots, request, criterion, shape, method, placement
        As for `find_window`; the criterion is one of additive values: a field, an array,
        ``minimize(...)``, a criterion of your own, ``"processor_time"``,
        ``"dependable"`` or ``"coordinated"``.

    Returns
    -------
    (starts, values) : pair of float64 arrays
        Ascending starts, and for each the best value of a window that starts there, in
        the criterion's own direction; infinite where none fits.

    Notes
    -----
    A knapsack for every step and group of performance, without pruning between steps:
    the best of the values is that of `find_window`.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=[0, 0, 4], end=20, performance=2,
    ...                       price=1, q=[1.0, 2.0, 5.0])
    >>> starts, values = sk.step_values(slots, sk.Request(2, 8), "q")
    >>> starts.tolist(), values.tolist()
    ([0.0, 4.0], [3.0, 7.0])
    """
    if shape not in ("square", "ragged"):
        raise ValueError(f"shape must be 'square' or 'ragged', got {shape!r}")
    if method not in ("exact", "lite"):
        raise ValueError(f"method must be 'exact' or 'lite', got {method!r}")
    if isinstance(criterion, str) and criterion in CRITERIA:
        raise ValueError(f"criterion {criterion!r} has no value at every step")
    found: tuple[NDArray[np.float64], NDArray[np.float64]] = _search_by_value(
        slots, request, criterion, shape, method, placement, 0.0, None, True
    )
    return found


#: Units of work after which a search by value gives up proving, unless `max_work` says
#: otherwise: about a second.
WORK = 50_000_000
MEMORY = 256 * 2**20


def _search_by_value(
    slots: NDArray[np.void] | PreparedSlots,
    request: Request,
    criterion: Any,
    shape: str,
    method: str,
    placement: str,
    gap: float,
    max_work: int | None,
    record: bool,
) -> Any:
    from slotkern import _valued
    from slotkern.criteria import PLACEMENT_CRITERIA, valuation_of

    pool = prepared(slots)
    known = [*CRITERIA, "processor_time", *PLACEMENT_CRITERIA]
    worth, data, sign, name = valuation_of(criterion, pool, known)
    if placement not in PLACEMENTS:
        raise ValueError(
            f"placement must be one of {', '.join(PLACEMENTS)}, got {placement!r}"
        )
    uses_start = worth == "function" and (
        _valued.capsule_signature(data) == _valued.MOVING_SIGNATURE
    )
    if placement == "any" and uses_start:
        raise ValueError(
            "placement='any' needs a criterion whose best start is known: dependable, "
            "coordinated, or one that does not use the start"
        )
    if isinstance(gap, bool) or not isinstance(gap, (int, float, np.number)):
        raise TypeError(f"gap must be a number, got {gap!r}")
    if not 0 <= gap < np.inf:
        raise ValueError(f"gap must be finite and not negative, got {gap!r}")
    if max_work is not None:
        if isinstance(max_work, bool) or not isinstance(max_work, (int, np.integer)):
            raise TypeError(f"max_work must be an integer, got {max_work!r}")
        if max_work < 0:
            raise ValueError(f"max_work must be at least 0, got {max_work}")
    return _valued.find(
        pool,
        request,
        worth,
        data,
        sign,
        name,
        shape,
        lite=method == "lite",
        any_start=placement == "any" and worth in PLACEMENT_CRITERIA,
        gap=float(gap),
        max_work=WORK if max_work is None else min(int(max_work), 2**62),
        memory=float(MEMORY),
        record=record,
    )


def _find_lite_builtin(
    slots: NDArray[np.void] | PreparedSlots,
    request: Request,
    criterion: str,
    shape: str,
) -> Window | None:
    """Lite where the n cheapest of each step are optimal already: the exact window."""
    if shape == "ragged" and criterion in ("runtime", "finish"):
        raise ValueError(
            f"method 'lite' does not apply to ragged {criterion}: its windows are not "
            "valued part by part"
        )
    return find_window(slots, request, criterion, shape=shape)


def _find_published(
    slots: NDArray[np.void] | PreparedSlots,
    request: Request,
    criterion: Any,
    shape: str,
    seed: int,
) -> Window | None:
    from slotkern import published

    table, proper = filter_rows(slots, request.where)
    if (shape, criterion if isinstance(criterion, str) else "") not in (
        published.ALGORITHMS
    ) and (shape == "square"):
        return _find_published_by_value(slots, table, proper, request, criterion)
    found = published.find(
        table,
        nodes=request.nodes,
        volume=request.volume,
        budget=request.budget,
        min_performance=request.min_performance,
        earliest=request.earliest,
        deadline=request.deadline,
        max_price=request.max_price,
        proper=proper,
        criterion=criterion,
        shape=shape,
        seed=seed,
    )
    if found is None:
        return None
    start, rows = found
    return window_of(table, rows, start, request.volume, criterion, shape)


def _find_published_by_value(
    slots: NDArray[np.void] | PreparedSlots,
    table: NDArray[np.void],
    proper: NDArray[np.bool_] | None,
    request: Request,
    criterion: Any,
) -> Window | None:
    """MaxQ, DEP and COORD, with the table at every step."""
    from slotkern.criteria import PLACEMENT_CRITERIA, valuation_of
    from slotkern.published import Job
    from slotkern.published.valued import find_valued

    pool = prepared(slots)
    worth, data, sign, name = valuation_of(criterion, pool, list(CRITERIA))
    if worth != "column" and worth not in PLACEMENT_CRITERIA:
        raise ValueError(f"no published algorithm for criterion {name!r}")
    suitable = table["performance"] >= request.min_performance
    suitable &= table["price"] <= request.max_price
    if proper is not None:
        suitable &= proper
    n = request.nodes
    if n > len(table):
        return None
    job = Job(n, request.volume, request.budget, request.earliest, request.deadline)
    found = find_valued(
        table, suitable, job, sign * data if worth == "column" else worth
    )
    if found is None:
        return None
    start, rows = found
    span = request.volume / table["performance"][rows].min()
    if worth == "column":
        value = float(data[rows].sum())
    else:
        before = start - table["start"][rows]
        after = table["end"][rows] - start - span
        pick = np.minimum if worth == "dependable" else np.maximum
        value = float(pick(before, after).mean())
    return window_of(table, rows, start, request.volume, name, "square", value)


@dataclass(frozen=True)
class Explanation:
    """Why a request has no window, or what limits the one it has.

    Every figure is the answer of an exact search over the same slots, so each "smallest
    change" is known to work: make it, and `find_window` finds a window; change less,
    and it finds none.

    Attributes
    ----------
    fits : bool
        Whether there is a window.
    nodes_total, nodes_fast, nodes_proper : int
        Nodes with slots; of these with enough performance; of these with a slot that
        also passes the filter and the price limit.
    slots_total, slots_long : int
        Slots; proper ones that can hold one part between earliest and deadline (square:
        a part as long as on their own node).
    together : int
        The most nodes that can ever start together, whatever they cost.
    cheapest : float or None
        The lowest cost of a window of all the nodes asked for, whatever the budget; the
        smallest budget that fits. None when no budget helps.
    earliest_finish : float or None
        The earliest finish without the deadline: the smallest deadline that fits. None
        when no deadline helps.
    most_nodes : int
        The largest number of nodes that fits with nothing else changed.
    request : Request
        What was asked.
    shape : str
        For which shape.
    """

    fits: bool
    nodes_total: int
    nodes_fast: int
    nodes_proper: int
    slots_total: int
    slots_long: int
    together: int
    cheapest: float | None
    earliest_finish: float | None
    most_nodes: int
    request: Request = field(repr=False)
    shape: str

    def to_dict(self) -> dict[str, Any]:
        """Everything but the request as plain numbers, ready for JSON."""
        return {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name != "request"
        }

    def changes(self) -> dict[str, float]:
        """The smallest single changes that fit: of budget, deadline or nodes."""
        if self.fits:
            return {}
        changes: dict[str, float] = {}
        if self.cheapest is not None:
            changes["budget"] = self.cheapest
        if self.earliest_finish is not None:
            changes["deadline"] = self.earliest_finish
        if self.most_nodes:
            changes["nodes"] = self.most_nodes
        return changes

    def __str__(self) -> str:
        asked = self.request
        lines = [
            f"{self.nodes_total} nodes have slots, {self.nodes_fast} of them have "
            f"performance >= {asked.min_performance:g}, and {self.nodes_proper} of "
            "those also pass the filter and the price limit",
            f"{self.slots_long} of {self.slots_total} slots can hold a part of volume "
            f"{asked.volume:g}",
            f"at most {self.together} nodes are ever free together; {asked.nodes} "
            "are asked for",
        ]
        if self.cheapest is not None:
            lines.append(
                f"the cheapest window costs {self.cheapest:.6g}; the budget is "
                f"{asked.budget:g}"
            )
        if self.fits:
            return "\n".join(["A window fits.", *lines])
        remedies = {
            "budget": "a budget of {!r}",
            "deadline": "a deadline of {!r}",
            "nodes": "{!r} nodes instead",
        }
        either = [remedies[name].format(v) for name, v in self.changes().items()]
        lines.append(
            "it fits with " + ", or with ".join(either)
            if either
            else "no change of budget, deadline or nodes alone makes it fit"
        )
        return "\n".join(["No window fits.", *lines])


def explain(
    slots: NDArray[np.void] | PreparedSlots, request: Request, *, shape: str = "square"
) -> Explanation:
    """Say why nothing fits a request, or what limits what does.

    Parameters
    ----------
    slots : structured array or SlotPool
        As for `find_window`.
    request : Request
    shape : {"square", "ragged"}

    Returns
    -------
    Explanation
        Figures, the smallest changes that help, and all of it in words as ``str()``.

    Raises
    ------
    ValueError, TypeError
        As `find_window`.

    Notes
    -----
    About 2 log2(N) searches for N nodes: fewer nodes never fit worse, so the largest
    numbers are found by bisection.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1], start=[0, 4], end=[9, 9], performance=1, price=2
    ... )
    >>> why = sk.explain(slots, sk.Request(2, 4, budget=10))
    >>> why.fits, why.cheapest, why.most_nodes
    (False, 16.0, 1)
    """
    table, proper = filter_rows(slots, request.where)
    # A raw array is checked and prepared once; a filter array still matches row by row.
    pool = prepared(slots)
    fast = table["performance"] >= request.min_performance
    good = fast & (table["price"] <= request.max_price)
    if proper is not None:
        good &= proper
    starts = np.maximum(table["start"], request.earliest)
    ends = np.minimum(table["end"], min(request.deadline, np.finfo(np.float64).max))
    long = good & (starts + request.volume / table["performance"] <= ends)

    def find(criterion: str, **changes: Any) -> Window | None:
        return find_window(pool, request.replace(**changes), criterion, shape=shape)

    def most(**changes: Any) -> int:
        """The largest number of nodes that fits."""
        low, high = 0, len(np.unique(table["node"][good]))
        while low < high:
            middle = (low + high + 1) // 2
            if find("first", nodes=middle, **changes) is None:
                high = middle - 1
            else:
                low = middle
        return low

    window = find("first")
    cheapest = find("cost", budget=np.inf)
    in_time = find("finish", deadline=np.inf)
    together = most(budget=np.inf)
    return Explanation(
        fits=window is not None,
        nodes_total=len(np.unique(table["node"])),
        nodes_fast=len(np.unique(table["node"][fast])),
        nodes_proper=len(np.unique(table["node"][good])),
        slots_total=len(table),
        slots_long=int(np.count_nonzero(long)),
        together=together,
        cheapest=None if cheapest is None else cheapest.cost,
        earliest_finish=None if in_time is None else in_time.finish,
        most_nodes=most(),
        request=request,
        shape=shape,
    )

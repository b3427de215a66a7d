"""Searches that need more than one sweep of a built-in criterion.

Criteria of additive values (AEP in general, MaxQ, DEP, COORD), the method "lite", other
placements and spans, and the published algorithms. `find_window` calls
`find_delegated`.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA, find_builtin
from slotkern._kernels.slots import (
    check_volume,
    filter_rows,
    prepare_snapshot,
    refuse_tariffs,
    resolve_times,
)
from slotkern._kernels.windows import Window, window_from_rows
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import hint_keywords, integer, number, one_of
from slotkern.foundation.special_fields import refuse_special
from slotkern.search.criteria import Minimize, Profile

if TYPE_CHECKING:
    from slotkern.typing import (
        BuiltIn,
        Method,
        Placement,
        Shape,
        Slots,
        Span,
        ValueCriterion,
    )

__all__ = ["step_values"]

METHODS = ("exact", "lite", "published", "published-lite")
PLACEMENTS = ("slot-start", "any")
SPANS = ("window", "group")


def find_delegated(
    slots: Slots, request: Request, criterion: Any, options: SearchOptions
) -> Window | None:
    """Run `find_window` for anything but one sweep of a built-in criterion."""
    method, span = options.method, options.span
    if method != "exact":
        refuse_tariffs(slots, f"method {method!r} does")
        refuse_special(request, f"method {method!r}")
    has_sums = any(limit.kind == "sum" for limit in request.limits)
    if has_sums and (method != "exact" or span != "window"):
        feature = f"method {method!r}" if method != "exact" else f"span {span!r}"
        raise ValueError(
            f"{feature} does not support limits on sums; the request has some"
        )
    if method.startswith("published"):
        return _find_published(slots, request, criterion, options)
    if isinstance(criterion, str) and criterion in CRITERIA:
        return _find_builtin(slots, request, cast("BuiltIn", criterion), options)
    if isinstance(criterion, Minimize) and isinstance(criterion.criterion, Profile):
        refuse_special(request, "minimize(profile(...))")
        find = adapter("find_by_profile")
        return cast("Window | None", find(slots, request, criterion.criterion, options))
    window: Window | None = _search_by_value(slots, request, criterion, options)
    return window


@dataclass(frozen=True)
class SearchOptions:
    """The checked options of `find_window`."""

    shape: Shape
    method: Method = "exact"
    placement: Placement = "slot-start"
    span: Span = "window"
    gap: float = 0.0
    max_work: int | None = None
    seed: int = 0

    @property
    def is_plain(self) -> bool:
        """True if a built-in criterion is searched as without options."""
        return self.method == "exact" and self.span == "window"

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("shape", self.shape, ("square", "ragged"))
        one_of("placement", self.placement, PLACEMENTS)
        one_of("span", self.span, SPANS)
        if self.span == "group" and self.shape == "ragged":
            raise ValueError("span='group' is for square windows; shape is 'ragged'")
        number("gap", self.gap, least=0)
        integer("seed", self.seed, 0)
        if self.max_work is not None:
            integer("max_work", self.max_work, 0)


@hint_keywords
def step_values(
    slots: Slots,
    request: Request,
    criterion: ValueCriterion,
    *,
    shape: Shape = "square",
    method: Literal["exact", "lite"] = "exact",
    placement: Placement = "slot-start",
    span: Span = "window",
    max_work: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the value of the best window at each step of the sweep, for plots.

    Parameters
    ----------
    slots, request, criterion, shape, method, placement, span, max_work
        As for `find_window`; the criterion is one of additive values: a field, an
        array, ``minimize(...)``, a function made by `criterion`, ``"processor_time"``,
        ``"dependable"`` or ``"coordinated"``.

    Returns
    -------
    (starts, values) : pair of float64 arrays
        Ascending starts, and for each the best value of a window that starts there, in
        the criterion's own direction; infinite if none fits.

    Raises
    ------
    ValueError, TypeError
        As `find_window`; also for a criterion that has no value at every step, and when
        `max_work` units of work (50,000,000, about a second) do not prove all values.

    Notes
    -----
    Solves a knapsack for every step and performance group, without pruning between
    steps: the best of the values is that of `find_window`. The time is that of `choose`
    for each of O(m) steps and each group.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=[0, 0, 4], end=20, performance=2,
    ...                       price=1, q=[1.0, 2.0, 5.0])
    >>> starts, values = sk.step_values(slots, sk.Request(2, 8), "q")
    >>> starts.tolist(), values.tolist()
    ([0.0, 4.0], [3.0, 7.0])
    """
    one_of("method", method, ("exact", "lite"))
    options = SearchOptions(shape, method, placement, span, max_work=max_work)
    if isinstance(criterion, str) and criterion in CRITERIA:
        raise ValueError(f"criterion {criterion!r} has no value at every step")
    refuse_special(request, "step_values")
    if request.limits:
        raise ValueError("step_values does not support limits on sums")
    found: tuple[NDArray[np.float64], NDArray[np.float64]] = _search_by_value(
        slots, resolve_times(slots, request), criterion, options, record=True
    )
    return found


#: Default `max_work` of a search by value, in counted units: about a second.
DEFAULT_MAX_WORK = 50_000_000
MEMORY_LIMIT = 256 * 2**20


def _search_by_value(
    slots: Slots,
    request: Request,
    criterion: Any,
    options: SearchOptions,
    record: bool = False,
) -> Any:
    from slotkern._kernels import values as _values
    from slotkern.search.criteria import (
        PLACEMENT_CRITERIA,
        compile_criterion,
        criterion_names,
    )

    pool = prepare_snapshot(slots)
    worth, data, sign, name, fixed = compile_criterion(
        criterion, pool, criterion_names()
    )
    if worth == "column":
        _check_sums(data, name)
    uses_start = worth == "function" and (
        _values.capsule_signature(data) == _values.MOVING_SIGNATURE
    )
    if options.placement == "any" and uses_start:
        raise ValueError(
            "placement='any' needs a criterion whose best start is known: dependable, "
            "coordinated, or one that does not use the start"
        )
    if options.span == "group" and not (uses_start or worth in PLACEMENT_CRITERIA):
        raise ValueError(
            "span='group' is for dependable, coordinated and criteria that use the "
            f"start, got {name!r}"
        )
    return _values.find(
        pool,
        request,
        worth,
        data,
        sign,
        name,
        options.shape,
        lite=options.method == "lite",
        any_start=options.placement == "any" and worth in PLACEMENT_CRITERIA,
        group_span=options.span == "group",
        gap=float(options.gap),
        max_work=DEFAULT_MAX_WORK
        if options.max_work is None
        else min(int(options.max_work), 2**62),
        memory=float(MEMORY_LIMIT),
        record=record,
        fixed=fixed,
    )


#: Larger values are refused: bounds multiply them, and sums of n of them overflow.
_MAX_VALUE = 1e290


def _check_sums(values: NDArray[np.float64], name: str) -> None:
    """Raise ValueError if the sum of a window's values could overflow."""
    sizes = np.abs(values)
    row = int(sizes.argmax()) if sizes.size else -1
    if row >= 0 and sizes[row] > _MAX_VALUE:
        raise ValueError(
            f"criterion {name}: the value of row {row} is {values[row]}, beyond "
            f"{_MAX_VALUE:g}, where sums overflow"
        )


def _find_builtin(
    slots: Slots,
    request: Request,
    criterion: BuiltIn,
    options: SearchOptions,
) -> Window | None:
    """Return the exact window, which is also the result of Lite and of any placement.

    The n cheapest slots of each step are already optimal, and none of these criteria
    improves if the window starts later than a slot.
    """
    if options.method == "lite" and (options.shape, criterion) in (
        ("ragged", "runtime"),
        ("ragged", "finish"),
    ):
        raise ValueError(
            f"method 'lite' does not apply to ragged {criterion}: its windows are not "
            "valued part by part"
        )
    if options.span == "group":
        raise ValueError(
            "span='group' is for dependable, coordinated and criteria that use the "
            f"start, got {criterion!r}"
        )
    return find_builtin(slots, request, criterion, options.shape, options.max_work)


def _find_published(
    slots: Slots,
    request: Request,
    criterion: Any,
    options: SearchOptions,
) -> Window | None:
    from slotkern import published
    from slotkern.search.criteria import compile_criterion, criterion_names

    if options.placement == "any":
        raise ValueError("the published algorithms start windows at slots' starts only")
    check_volume(slots, request)
    table, proper = filter_rows(slots, request.where)
    name, named = criterion, published.ALGORITHMS
    if not (isinstance(criterion, str) and (options.shape, criterion) in named):
        worth, data, sign, name, _ = compile_criterion(
            criterion, prepare_snapshot(slots), criterion_names()
        )
        if (options.shape, "value" if worth == "column" else worth) not in named:
            raise ValueError(
                f"no published algorithm for {options.shape} windows by criterion "
                f"{name!r}"
            )
        if worth == "column":
            criterion = sign * data
    found = published.find(
        table,
        nodes=request.nodes,
        **published.supported_fields(request, signature(published.find).parameters),
        proper=proper,
        criterion=criterion,
        shape=options.shape,
        lite=options.method == "published-lite",
        seed=options.seed,
    )
    if found is None:
        return None
    value = None
    if isinstance(criterion, np.ndarray):
        value = float(data[found.rows].sum())
    elif found.value is not None:
        value = abs(found.value) / request.nodes
    return window_from_rows(
        table,
        found.rows,
        found.start,
        request,
        name,
        options.shape,
        value,
        found.length,
    )


#: The attributes of a window in the order of `Window.__reduce__`.
_STATE = (
    *("start", "finish", "runtime", "cost", "processor_time", "value", "bound"),
    *("proven", "criterion", "shape", "parts", "name", "context", "proven_over"),
    "special",
)


def restate_window(
    window: Window, rows: NDArray[np.int64] | None = None, **changes: Any
) -> Window:
    """Return a copy of a window with the rows of the original slots.

    Parameters
    ----------
    window : Window
        A window found among slots that were taken from another array.
    rows : ndarray of int64, optional
        The row of the original array for each of these slots; None keeps the rows.
    **changes
        Replaced attributes: value, bound, proven, criterion, name.
    """
    restore, values = cast("tuple[Any, tuple[Any, ...]]", window.__reduce__())
    state = dict(zip(_STATE, values, strict=True)) | changes
    if rows is not None:
        state["parts"] = tuple(
            (int(rows[row]), *others) for row, *others in state["parts"]
        )
    found: Window = restore(*state.values())
    return found

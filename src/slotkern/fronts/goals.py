"""The criteria of a front, as losses that searches minimize and requests limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import MAX_LIMITS, Request
from slotkern._kernels.search import CRITERIA
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.values import NAMED_VALUES, evaluate_parts
from slotkern._kernels.windows import Window
from slotkern.expressions.limits import LENGTH, Limit
from slotkern.search.criteria import Criterion, Minimize, compile_criterion

if TYPE_CHECKING:
    from slotkern.typing import Shape

__all__ = ["EXACT_CRITERIA", "LAST_SUM", "Goal", "bound_to_loss", "make_goal"]

#: The built-in criteria whose fronts are exact.
EXACT_CRITERIA = ("start", "finish", "runtime", "cost", "processor_time")

#: The highest rank of a goal that is a sum of values.
LAST_SUM = 1


class Goal(NamedTuple):
    """One criterion of a front, as a loss to be minimized.

    Attributes
    ----------
    name : str
        The name of the criterion.
    rank : int
        The goal of lower rank is minimized first and the other one is limited. Sums of
        values have the lowest ranks, because a limit on a sum costs more than others.
    search : criterion
        The criterion of `find_window` that minimizes the loss.
    loss : callable
        Computes the loss of a window of `find_window`.
    scale : float
        The factor from the loss to the value in the criterion's own units.
    within : callable
        Returns a request whose loss is limited to at most a number.
    exact : bool
        Whether losses are compared exactly: True for times, False for sums.
    """

    name: str
    rank: int
    search: Any
    loss: Callable[[Window], float]
    scale: float
    limit_to: Callable[[Request, float], Request]
    exact: bool = True


def make_goal(name: Any, pool: PreparedSlots, request: Request, shape: Shape) -> Goal:
    """Make the goal of a criterion; raises ValueError if its front is not exact."""
    if isinstance(name, str):
        match name:
            case "start":
                return Goal(name, 2, name, lambda w: w.start, 1.0, _latest)
            case "finish":
                return Goal(name, 3, name, lambda w: w.finish, 1.0, _deadline)
            case "runtime":
                return Goal(name, 4, name, lambda w: w.runtime, 1.0, _max_runtime)
            case "processor_time" if shape == "square":
                # n times the runtime, hence in the order of the runtime.
                scale = float(request.nodes)
                return Goal(
                    name, 4, "runtime", lambda w: w.runtime, scale, _max_runtime
                )
            case "cost":
                return Goal(name, 5, name, lambda w: w.cost, 1.0, _budget, False)
            case "processor_time":
                limit = _limited(LENGTH, 1.0)
                return Goal(
                    name, 1, name, lambda w: w.processor_time, 1.0, limit, False
                )
            case _ if name in CRITERIA or name in NAMED_VALUES:
                raise ValueError(
                    f"a front by {name!r} would not be exact; it may be by "
                    f"{', '.join(EXACT_CRITERIA)}, a numeric field, an array, "
                    "minimize(...) of those, or a function made by criterion that does "
                    "not use the start"
                )
    return _make_sum_goal(name, pool)


def _make_sum_goal(criterion: Any, pool: PreparedSlots) -> Goal:
    """Make the goal of a column, an array or a function."""
    worth, data, sign, name, _ = compile_criterion(criterion, pool, EXACT_CRITERIA)
    inner = criterion.criterion if isinstance(criterion, Minimize) else criterion
    if worth == "function":
        if not isinstance(inner, Criterion) or inner.uses_start:
            raise ValueError(
                f"a front by {name!r} would not be exact: its value may depend on the "
                "start; take a function made by criterion without uses_start"
            )
        of: Any = inner
    else:
        field = name.removeprefix("minimize(").removesuffix(")")
        plain = field.isidentifier() and not iskeyword(field) and field != LENGTH
        of = field if isinstance(inner, str) and plain else data

    def loss(window: Window) -> float:
        parts = window.slots
        rows = np.ascontiguousarray(parts["row"])
        if worth == "column":
            values = data[rows]
        else:
            starts = np.ascontiguousarray(parts["start"])
            values = evaluate_parts(
                pool, worth, data, name, rows, starts, lengths(window)
            )
        return -sign * math.fsum(values.tolist())

    return Goal(name, 0, criterion, loss, -sign, _limited(of, -sign), False)


def lengths(window: Window) -> NDArray[np.float64]:
    """Return the length of each part of a window, by node."""
    return np.array([part["length"] for part in window.to_dict()["slots"]])


def _latest(request: Request, most: float) -> Request:
    return request.replace(latest=min(request.latest, most))


def _deadline(request: Request, most: float) -> Request:
    return request.replace(deadline=min(request.deadline, most))


def _max_runtime(request: Request, most: float) -> Request:
    return request.replace(max_runtime=min(request.max_runtime, most))


def _budget(request: Request, most: float) -> Request:
    return request.replace(budget=min(request.budget, most))


def _limited(of: Any, scale: float) -> Callable[[Request, float], Request]:
    """Return a function that limits a sum, which is `scale` times the loss."""
    side: Literal["<=", ">="] = "<=" if scale > 0 else ">="

    def limit_to(request: Request, most: float) -> Request:
        count = sum(limit.kind == "sum" for limit in request.limits)
        if count >= MAX_LIMITS:
            raise ValueError(
                f"the request has {count} limits; a front by a sum needs "
                f"one of the {MAX_LIMITS} for itself"
            )
        limit = Limit(of, side, scale * most)
        return request.replace(limits=[*request.limits, limit])

    return limit_to


def bound_to_loss(goal: Goal, bound: float) -> float:
    """Convert the bound of a search, which is a value, to a loss."""
    return bound if goal.rank else bound / goal.scale

"""Searches of a request with one limit changed or lifted, for `explain`.

Each figure is the result of exact searches. Bisection applies, because feasibility is
monotone in the amount of a limit and, without limits on sums, in the number of nodes
from the least count of groups on: of more nodes than groups, one can be left out.
An undecided search counts as one without a window: every reported change suffices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slotkern._kernels.request import FIELDS, Request
from slotkern._kernels.search import find_window
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window
from slotkern.expressions.limits import Limit, uses_of
from slotkern.foundation.errors import UndecidedError

if TYPE_CHECKING:
    from slotkern.typing import BuiltIn, Shape

__all__ = ["LIFTED", "RELAXATIONS", "Relaxation", "RelaxedSearches", "SearchWork"]

#: Relative tolerance of the amounts that are proposed for limits on sums.
_AMOUNT_TOLERANCE = 1e-8


class Relaxation(NamedTuple):
    """A limit whose smallest sufficient value results from a search without it."""

    name: str  # field of the request
    measure: BuiltIn  # criterion of the search, and attribute of its window
    figure: str  # attribute of Explanation
    remedy: str  # text of the changed limit
    always: bool  # whether to search if the request has no such limit


RELAXATIONS = (
    Relaxation("budget", "cost", "cheapest", "a budget of {}", True),
    Relaxation("deadline", "finish", "earliest_finish", "a deadline of {}", True),
    Relaxation("latest", "start", "earliest_start", "a latest start of {}", False),
    Relaxation("max_runtime", "runtime", "shortest_runtime", "a runtime of {}", False),
)
#: The limits that `explain` lifts one by one: for `without`, with their phrases.
LIFTED = {
    name: field.label
    for name, field in FIELDS.items()
    if name not in ("volume", "budget", "deadline")
} | {"where": "the filter", "limits": "the limits", "within": "within"}


class SearchWork:
    """The work that all searches of one explanation may do together.

    Searches do not report the work that they did. Each one first gets a small part of
    what is left, and ten times as much while it is undecided, and all of that is
    subtracted: at most about eleven times of what it needs. Searches without limits on
    sums, groups and uses take a sweep, and count none.

    Attributes
    ----------
    left : int or None
        Units that are left; None: each search has the default limit.
    """

    def __init__(self, most: int | None = None) -> None:
        self.left = most
        self._first = 0 if most is None else max(1, most // 1000)

    def find(
        self, pool: PreparedSlots, request: Request, criterion: BuiltIn, shape: Shape
    ) -> Window | None:
        """Return the best window; UndecidedError if nothing is left."""
        if self.left is None or not (request.limits or request.special):
            return find_window(pool, request, criterion, shape=shape)
        grant = self._first
        while True:
            grant = min(grant, self.left)
            self.left -= grant
            try:
                return find_window(
                    pool, request, criterion, shape=shape, max_work=grant
                )
            except UndecidedError:
                if self.left == 0:
                    raise
            grant *= 10


class RelaxedSearches:
    """The searches of one explanation, each with some fields of the request changed.

    Attributes
    ----------
    pool : PreparedSlots
    request : Request
    undecided : int
        The number of searches that reached their work limit.
    """

    def __init__(
        self,
        pool: PreparedSlots,
        request: Request,
        shape: Shape,
        work: SearchWork | None = None,
    ) -> None:
        self.pool, self.request, self._shape = pool, request, shape
        self._work = SearchWork() if work is None else work
        self.undecided = 0

    def find(self, criterion: BuiltIn, **changes: Any) -> Window | None:
        """Find a window; None also if undecided: reported changes are proven."""
        request = self.request.replace(**changes)
        try:
            return self._work.find(self.pool, request, criterion, self._shape)
        except UndecidedError:
            self.undecided += 1
            return None

    def least(self, relaxation: Relaxation) -> float | None:
        """Return the smallest sufficient value of a limit; None if none helps."""
        name, measure = relaxation.name, relaxation.measure
        if not relaxation.always and math.isinf(getattr(self.request, name)):
            return None
        window = self.find(measure, **{name: np.inf})
        return None if window is None else getattr(window, measure)

    def liftable(self) -> list[str]:
        """Return the limits that each prevent a window alone."""
        free = Request(self.request.nodes, self.request.volume)
        return [
            name
            for name in LIFTED
            if self.find("first", **{name: getattr(free, name)}) is not None
        ]

    @property
    def least_nodes(self) -> int:
        """The number of nodes that touch as many groups as the rules require."""
        bounds = (r.bound for r in self.request.rules if r.kind == "min_groups")
        return max(bounds, default=1)

    def most_nodes(self, high: int, **changes: Any) -> int:
        """Return the largest number of nodes up to `high` that fits, by bisection."""
        low = self.least_nodes - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.find("first", nodes=middle, **changes) is None:
                high = middle - 1
            else:
                low = middle
        return low if low >= self.least_nodes else 0

    def together(self, high: int) -> int:
        """Return the largest number of nodes that start together, at any cost."""
        free = RelaxedSearches(self.pool, self.request, self._shape, self._work)
        free.request = self.request.replace(limits=(), within=None, budget=np.inf)
        found = free.most_nodes(high)
        self.undecided += free.undecided
        return found

    def feasible_nodes(self, high: int) -> tuple[int, int]:
        """Return the largest feasible number of nodes, and the nearest one."""
        limits = self.request.limits
        rules = tuple(limit for limit in limits if limit.kind != "sum")
        nodes, most = self.request.nodes, self.most_nodes(high, limits=rules)
        if len(rules) == len(limits):
            return most, min(max(nodes, self.least_nodes), most)

        @cache
        def fits(number: int) -> bool:
            return self.find("first", nodes=number) is not None

        numbers = range(1, most + 1)  # not monotone: fewer may meet a limit worse
        nearest = next(filter(fits, sorted(numbers, key=lambda n: abs(n - nodes))), 0)
        return next(filter(fits, reversed(numbers)), 0), nearest

    def nearest_feasible(self, k: int) -> float | None:
        """Return the amount nearest to that of limit k with which the request fits."""
        limits = self.request.limits
        others = limits[:k] + limits[k + 1 :]
        return self._nearest_amount(
            limits[k], lambda limit: self.find("first", limits=others + limit)
        )

    def nearest_groups(self) -> int | None:
        """Return the least number of groups of `within` with which the request fits."""
        level, limits = self.request.within, self.request.limits
        if level is None:
            return None
        found = self._nearest_amount(
            Limit(level, "<=", 1, "distinct"),
            lambda limit: self.find("first", within=None, limits=limits + limit),
        )
        return None if found is None else int(found)

    def nearest_reachable(self, k: int) -> float | None:
        """Return the amount nearest to that of limit k that any window reaches."""

        def alone(limits: tuple[Limit, ...]) -> Window | None:
            return self.find("first", limits=limits, budget=np.inf)

        limit, before = self.request.limits[k], self.undecided
        if alone((limit,)) is not None:
            return None
        amount = self._nearest_amount(limit, alone)
        return amount if self.undecided == before else None

    def _nearest_amount(
        self, limit: Limit, find: Callable[[tuple[Limit, ...]], Window | None]
    ) -> float | None:
        """Find the amount nearest to the limit's own that some window meets.

        Feasibility is monotone in the amount, so bisection is exact; the sum of each
        window found tightens the feasible end. Counts of group rules are whole numbers;
        for sums, bisection stops at a relative distance of `_AMOUNT_TOLERANCE`, because
        many sets differ by less.
        """
        window = find(())
        if window is None:
            return None
        near, far = limit.amount, _sum_of(limit, window, self.pool, self.request)
        if limit.kind != "sum":
            while abs(far - near) > 1:
                middle = (near + far) // 2
                window = find((replace(limit, amount=middle),))
                if window is None:
                    near = middle
                else:
                    far = _sum_of(limit, window, self.pool, self.request)
            return far
        middle = near + (far - near) / 2
        while abs(far - near) > _AMOUNT_TOLERANCE * abs(far) and near != middle != far:
            window = find((replace(limit, amount=middle),))
            if window is None:
                near = middle
            else:
                far = _sum_of(limit, window, self.pool, self.request)
            middle = near + (far - near) / 2
        return far


def _sum_of(
    limit: Limit, window: Window, pool: PreparedSlots, request: Request
) -> float:
    """Compute the sum of a limit over the parts of a window, exactly, rounded once.

    For a group rule: the number of groups, or of parts in the fullest group.
    """
    rows = window.slots["row"]
    # Rows of a pool are those of its origin.
    table = getattr(pool, "origin", pool.slots)
    if limit.kind != "sum":
        _, parts = np.unique(table[limit.of][rows], return_counts=True)
        return float(len(parts) if limit.kind == "distinct" else parts.max())
    lengths = request.length(table["performance"][rows])
    if window.shape == "square":
        lengths[:] = window.runtime
    if isinstance(limit.of, str):
        weight, by_length = uses_of(limit.of, table[rows])
        return math.fsum(weight * lengths if by_length else weight)
    if isinstance(limit.of, np.ndarray):
        return math.fsum(limit.of[rows])
    from slotkern._kernels.values import evaluate_parts

    starts = np.full(len(rows), window.start)
    capsule = limit.of.capsule(table.dtype)
    return math.fsum(
        evaluate_parts(pool, "function", capsule, limit.of.name, rows, starts, lengths)
    )

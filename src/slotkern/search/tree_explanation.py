"""Explanations of requests for groups of a tree: the counts and limits to blame.

Each figure is the result of exact searches with one field changed. Fewer groups and
fewer parts are never harder to find, so that bisection is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slotkern._kernels.request import FIELDS
from slotkern.search.capacity_facts import capacity_facts
from slotkern.search.explanation import Explanation
from slotkern.search.relaxations import LIFTED, RELAXATIONS

if TYPE_CHECKING:
    from slotkern._kernels.request import Request
    from slotkern.pool.host_pool import HostPool
    from slotkern.pool.share_windows import ShareWindow
    from slotkern.typing import Shape

__all__ = ["TreeExplanation", "explain_tree"]


@dataclass(frozen=True)
class TreeExplanation(Explanation):
    """The reasons why a request with ``tree`` or ``whole`` has no window.

    The inherited `together` is `most_nodes` without limits on time, budget and filters;
    `nodes_proper` and `slots_long` count all nodes.

    Attributes
    ----------
    levels : dict of str to int
        The levels that each prevent a window alone, and the largest number of their
        groups with which the request fits, with equally many parts of each group.
    """

    levels: dict[str, int] = field(default_factory=dict)

    def changes(self) -> dict[str, float]:
        """Return the smallest change of each limit, as for `Explanation`."""
        counts = {f"tree.{level}": count for level, count in self.levels.items()}
        return super().changes() | counts

    def __str__(self) -> str:
        asked = self.request
        unit = "nodes" if asked.whole is None else f"whole groups of {asked.whole}"
        inside = " in " + _places(asked.tree) if asked.tree else ""
        length = f"{self._describe_length()}{self._time_clause()}"
        lines = [
            f"{asked.nodes} {unit}{inside} are asked for, for {length}",
            f"at most {self.together} are ever free together",
        ]
        if self.capacities is not None:
            lines += self.capacities.lines(self.clock)
        if self.cheapest is not None:
            lines.append(self._describe_cheapest(self.cheapest))
        if self.fits:
            return "\n".join(["A window fits.", *lines])
        return "\n".join(["No window fits.", *lines, self._describe_remedies()])

    def _format_given(self, asked: Request, name: str) -> str:
        if name.startswith("tree."):
            return str((asked.tree or {})[name.removeprefix("tree.")])
        return super()._format_given(asked, name)

    def _remedies(self) -> dict[str, str]:
        remedies = super()._remedies()
        remedies |= {f"tree.{level}": f"{{}} of {level}" for level in self.levels}
        if (whole := self.request.whole) is not None:
            one = self.nearest_nodes == 1
            remedies["nodes"] = (
                f"{{}} whole group{'' if one else 's'} of {whole} instead"
            )
        return remedies


def _places(counts: Any) -> str:
    """Return the numbers of groups as text, such as ``1 of switch and 3 of rack``."""
    return " and ".join(f"{count} of {level}" for level, count in counts.items())


def explain_tree(pool: HostPool, request: Request, shape: Shape) -> TreeExplanation:
    """Explain a request with ``tree`` or ``whole``; see `explain`."""
    resolved, _, _ = pool._asked(request)
    groups = math.prod((request.tree or {}).values())

    def find(**changes: Any) -> ShareWindow | None:
        return pool.find(resolved.replace(**changes), "start", shape=shape)

    def find_uncounted(**changes: Any) -> ShareWindow | None:
        job = resolved.replace(uses=None, account=None, **changes)
        return pool._find_under(job, "start", shape, None)

    def most_parts(find: Callable[..., ShareWindow | None], **changes: Any) -> int:
        each = _largest(
            len(pool) * request.stack,
            lambda k: find(nodes=k * groups, **changes) is not None,
        )
        return each * groups

    window = find()
    free: dict[str, Any] = {
        name: each.default for name, each in FIELDS.items() if name != "volume"
    }
    most = most_parts(find)
    found = Explanation(
        fits=window is not None,
        nodes_total=len(pool),
        nodes_fast=len(pool),
        nodes_proper=len(pool),
        slots_total=len(pool.amounts),
        slots_long=len(pool.amounts),
        together=most_parts(find_uncounted, **free),
        cheapest=_least_cost(find),
        most_nodes=most,
        nearest_nodes=min(request.nodes, most),
        **_limits(resolved, find),
        without=[] if window is not None else _liftable(free | {"where": None}, find),
        sums={},
        beyond={},
        words={},
        request=resolved,
        shape=shape,
        clock=pool.clock,
        asked=request,
        capacities=capacity_facts(pool, resolved, window, shape),
    )
    levels = {} if window is not None else _levels(resolved, find)
    return TreeExplanation(**vars(found), levels=levels)


def _limits(
    request: Request, find: Callable[..., ShareWindow | None]
) -> dict[str, Any]:
    """Return the smallest sufficient value of each limit on time."""
    found: dict[str, Any] = {}
    for each in RELAXATIONS:
        if each.name == "budget":
            continue
        given = getattr(request, each.name)
        window = None
        if each.always or not math.isinf(given):
            window = find(**{each.name: math.inf})
        found[each.figure] = None if window is None else getattr(window, each.measure)
    return found


def _liftable(
    free: dict[str, Any], find: Callable[..., ShareWindow | None]
) -> list[str]:
    """Return the limits that each prevent a window alone."""
    names = [name for name in LIFTED if name in free]
    return [name for name in names if find(**{name: free[name]}) is not None]


def _least_cost(find: Callable[..., ShareWindow | None]) -> float | None:
    """Return the least cost of any window, or None.

    Bisection: no window costs `low` or less. Each step halves the costs left, and ends
    if no window costs less than the last one, in most cases the first.
    """
    if (window := find(budget=math.inf)) is None:
        return None
    low, high = 0.0, window.cost
    while high > 0 and (window := find(budget=high * _BELOW)) is not None:
        high = window.cost
        middle = (low + high) / 2
        if (window := find(budget=middle)) is None:
            low = middle
        else:
            high = window.cost
    return high


#: A cost above the budget by 2^-50 of it is accepted; this factor excludes equal costs.
_BELOW = 1 - 2**-48


def _levels(
    request: Request, find: Callable[..., ShareWindow | None]
) -> dict[str, int]:
    """Return the largest feasible number of groups of each level that is too large."""
    found = {}
    for level, count in (request.tree or {}).items():
        each = request.nodes // count

        def fits(fewer: int, level: str = level, each: int = each) -> bool:
            tree = {**(request.tree or {}), level: fewer}
            return find(nodes=each * fewer, tree=tree) is not None

        if fewer := _largest(count - 1, fits):
            found[level] = fewer
    return found


def _largest(high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from 1 to `high` that fits, by bisection, or 0."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low

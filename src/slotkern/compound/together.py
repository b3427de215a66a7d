"""Roles that start together: the best common start, and the windows there.

Every optimum is at a common start at which a slot begins, or at the earliest time: any
other window can move earlier. `find_together` jumps from one common start to the next
by leapfrog. At each start `_Candidates.cheapest` returns the cheapest windows of all
roles within a length. If no node is a candidate of two roles, these are the cheapest
windows of each role. Otherwise, if those share a node, a min-cost assignment
distributes the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request, suitable_rows
from slotkern._kernels.search import find_together
from slotkern._kernels.slots import filter_rows
from slotkern._kernels.windows import Window, window_from_rows
from slotkern.compound.assignment import assign
from slotkern.compound.jobs import Together
from slotkern.compound.plan import Plan
from slotkern.compound.search import CompoundSearch, Limits

__all__ = [
    "admitted",
    "check_roles",
    "find_roles",
    "is_disjoint",
    "met",
    "plan_of_roles",
]

#: Costs are within a budget up to this relative excess, the rounding of decimals.
_TOLERANCE = 2.0**-50


def met(cost: float, budget: float) -> bool:
    """Return True if a cost is within a budget."""
    return cost <= budget or cost <= budget * (1 + _TOLERANCE)


def find_roles(
    search: CompoundSearch, job: Together, criterion: str, limits: Limits
) -> Plan | None:
    """Return the best plan of roles that start together, or None."""
    if job.budget < limits.budget:
        limits = limits._replace(budget=job.budget)
    requests = [search.resolved(role) for role in job.roles]
    disjoint = is_disjoint(search, job)
    check_roles(search, job, criterion, disjoint)
    if criterion == "start" and disjoint and limits.budget == math.inf:
        windows = find_together(search.slots, requests, search.shape, limits)
    else:
        windows = _best(search, requests, disjoint, criterion, limits)
    return None if windows is None else plan_of_roles(job, windows, criterion)


def plan_of_roles(job: Together, windows: list[Window], criterion: str) -> Plan:
    """Return the plan of the windows of all roles."""
    count, proven = len(windows), all([window.proven for window in windows])
    return Plan(
        tuple(windows),
        *(job.labels, (None,) * count, (0,) * count),
        *(criterion, job.name, proven),
    )


def check_roles(
    search: CompoundSearch, job: Together, criterion: str, disjoint: bool
) -> None:
    """Raise ValueError for roles whose search would not be exact."""
    if disjoint and not search.has_tariffs:
        return
    for label, role in zip(job.labels, job.roles, strict=True):
        own = "a budget" if role.budget < math.inf else "limits" if role.limits else ""
        own = own or next(iter(role.special or ()), "")
        if not disjoint and own:
            hint = ", or give the budget to Together(..., budget=)"
            raise ValueError(
                f"{label!r} has {own} of its own, but some nodes are candidates of "
                "several roles; use filters that share no node"
                + (hint if own == "a budget" else "")
            )
    if search.has_tariffs and (
        criterion == "cost"
        or job.budget < math.inf
        or not disjoint
        or (criterion != "start" and any(r.budget < math.inf for r in job.roles))
    ):
        raise ValueError(
            "under tariffs, Together is found by the earliest start without budget, or "
            "by finish or runtime without budgets, and with filters that share no "
            "node: costs of the roles between starts of slots are not compared"
        )


def is_disjoint(search: CompoundSearch, job: Together) -> bool:
    """Return True if no node is a candidate of two roles.

    Cached in the job for the slots of a pool, which only `add_slots` replaces.
    """
    slots = search.given if search.slots is search.given else search.slots
    table = getattr(slots, "origin", None)
    table = slots.slots if table is None else table
    cached = job.__dict__.get("_disjoint")
    if cached is not None and cached[0] is table:
        return bool(cached[1])
    seen: NDArray[Any] = np.empty(0, np.int32)
    disjoint = True
    for role in job.roles:
        nodes = np.unique(table["node"][admitted(slots, table, search.resolved(role))])
        disjoint = disjoint and not np.isin(nodes, seen).any()
        seen = np.concatenate([seen, nodes])
    if search.keeps_slots and slots is search.given:
        job.__dict__["_disjoint"] = table, disjoint
    return disjoint


def admitted(
    slots: Any, table: NDArray[np.void], request: Request
) -> NDArray[np.bool_]:
    """Return which rows meet the limits of a request on slots, and its filter."""
    found = suitable_rows(request, table)
    if isinstance(request.where, str):
        from slotkern.expressions.filters import evaluate

        found &= evaluate(request.where, table, slots.machine)
    elif request.where is not None:
        mask = filter_rows(slots, request.where)[1]
        assert mask is not None
        found &= mask
    return found


def _best(
    search: CompoundSearch,
    requests: list[Request],
    disjoint: bool,
    criterion: str,
    limits: Limits,
) -> list[Window] | None:
    """Return the windows of all roles at the best common start, or None."""
    bound = _Bound(search, requests, criterion, limits)
    candidates = _Candidates(search, requests, disjoint, limits)
    best, value = None, math.inf
    for windows in _common_starts(search, requests, limits):
        start = windows[0].start
        if bound.at(start) >= value:
            break
        if criterion in ("start", "cost"):
            found = candidates.cheapest(start, math.inf, limits.budget, windows)
        else:
            longest = value if criterion == "runtime" else math.inf
            found = candidates.shortest(start, longest, limits.budget)
        if found is None:
            continue
        figure = _value(found, criterion)
        if best is None or figure < value:
            best, value = found, figure
            if criterion == "start":
                break
            if criterion == "cost":
                limits = limits._replace(budget=min(limits.budget, value))
    return best


def _value(windows: list[Window], criterion: str) -> float:
    if criterion == "cost":
        return math.fsum(window.cost for window in windows)
    values = (getattr(window, criterion) for window in windows)
    return float(max(values))


def _common_starts(
    search: CompoundSearch, requests: list[Request], limits: Limits
) -> Iterator[list[Window]]:
    """Yield the cheapest window of each role at the common starts, in order of time."""
    while True:
        windows = find_together(search.slots, requests, search.shape, limits)
        if windows is None:
            return
        if not all([window.proven for window in windows]):
            search.proven = False
        yield windows
        time = search.next_start(windows[0].start)
        if time == math.inf:
            return
        limits = limits._replace(earliest=time)


class _Bound:
    """A lower bound on the value of all plans from a start on.

    The parts of the bound are results of searches for one role each. A result stays
    valid until the start of its window has passed.
    """

    def __init__(
        self,
        search: CompoundSearch,
        requests: list[Request],
        criterion: str,
        limits: Limits,
    ) -> None:
        self.search, self.requests, self.criterion = search, requests, criterion
        self.limits = limits._replace(budget=math.inf)
        self.measure = "cost" if criterion == "cost" else "runtime"
        self.windows: list[Window | None] = [None] * len(requests)

    def at(self, start: float) -> float:
        """Return the bound for plans that start at this time or later."""
        if self.criterion == "start":
            return start
        values: list[float] = []
        for i, request in enumerate(self.requests):
            window = self.windows[i]
            if window is None or window.start < start:
                limits = self.limits._replace(earliest=start)
                window = self.search.find(request, self.measure, limits)
                if window is None:
                    return math.inf
                self.windows[i] = window
            values.append(getattr(window, self.measure))
        if self.measure == "cost":
            return math.fsum(values)
        return max(values) + (start if self.criterion == "finish" else 0.0)


class _Candidates:
    """The cheapest and the shortest windows of all roles at one start."""

    def __init__(
        self,
        search: CompoundSearch,
        requests: list[Request],
        disjoint: bool,
        limits: Limits,
    ) -> None:
        self.search, self.requests, self.disjoint = search, requests, disjoint
        self.limits = limits
        self.lengths = self._lengths()
        self.tables: list[_Live] = []

    def _lengths(self) -> NDArray[np.float64]:
        """Return the different lengths of a part of any role, ascending."""
        speeds = np.unique(self.search.table["performance"])
        lengths = [request.length(speeds) for request in self.requests]
        return np.unique(np.concatenate(lengths))

    def cheapest(
        self,
        start: float,
        longest: float,
        budget: float,
        windows: list[Window] | None = None,
    ) -> list[Window] | None:
        """Return windows of least total cost, each at most as long, or None.

        `windows`: the cheapest window of each role, if they are known.
        """
        if windows is None:
            found = self._each("cost", start, longest, budget)
            if found is None:
                return None
            windows = found
        if not self.disjoint and _share_nodes(windows):
            distributed = self._distribute(start, longest)
            if distributed is None:
                return None
            windows = distributed
        cost = math.fsum(window.cost for window in windows)
        return windows if met(cost, budget) else None

    def _each(
        self, criterion: str, start: float, longest: float, budget: float
    ) -> list[Window] | None:
        """Return the best window of each role by itself, or None."""
        limits = self.limits._replace(
            earliest=start,
            latest=start,
            max_runtime=min(longest, self.limits.max_runtime),
            budget=budget,
        )
        windows = []
        for request in self.requests:
            window = self.search.find(request, criterion, limits)
            if window is None:
                return None
            windows.append(window)
        return windows

    def shortest(
        self, start: float, longest: float, budget: float
    ) -> list[Window] | None:
        """Return windows of the least common runtime within the budget, or None.

        The least total cost does not increase with the length, so bisection is exact.
        """
        fastest = self._each("runtime", start, longest, budget)
        if fastest is None:
            return None
        least = max(window.runtime for window in fastest)
        found = self.cheapest(start, least, budget)
        if found is not None:
            return found
        lengths = self.lengths
        low = int(np.searchsorted(lengths, least, "right"))
        high = int(np.searchsorted(lengths, longest, "left"))
        while low < high:
            middle = (low + high) // 2
            better = self.cheapest(start, float(lengths[middle]), budget)
            if better is None:
                low = middle + 1
            else:
                found, high = better, middle
        return found

    def _distribute(self, start: float, longest: float) -> list[Window] | None:
        """Return windows of least total cost for roles that share candidates."""
        if not self.tables:
            self.tables = [
                _Live(self.search, request, self.limits) for request in self.requests
            ]
        live = [table.at(start, longest) for table in self.tables]
        if any(len(found) == 0 for found in live):
            return None
        best: list[Window] | None = None
        least = math.inf
        for choice in _choices(live):
            if math.fsum(option.bound for option in choice) >= least:
                continue
            nodes = assign([r.nodes for r in self.requests], [o.costs for o in choice])
            if nodes is None:
                continue
            windows = [
                table.window(start, option, chosen)
                for table, option, chosen in zip(
                    self.tables, choice, nodes, strict=True
                )
            ]
            cost = math.fsum(window.cost for window in windows)
            if best is None or cost < least:
                best, least = windows, cost
        return best


class _Option:
    """Candidates of a role at a start, for one bound on the length of its window."""

    def __init__(self, rows: dict[int, int], costs: dict[int, float], count: int):
        self.rows, self.costs = rows, costs  # by node
        self.bound = math.fsum(sorted(costs.values())[:count])


class _Live:
    """The candidate slots of a role, as arrays."""

    def __init__(
        self, search: CompoundSearch, request: Request, limits: Limits
    ) -> None:
        self.search, self.request, self.limits = search, request, limits
        free = search.free
        self.table = table = search.table
        self.good = admitted(free, table, request)
        self.lengths = request.length(table["performance"])
        self.good &= self.lengths <= min(request.max_runtime, limits.max_runtime)
        self.ends = np.minimum(table["end"], min(request.deadline, limits.deadline))
        if request.setup > 0 or request.step > 0:
            self.costs = table["price"] * self.lengths
        else:
            self.costs = request.volume * (table["price"] / table["performance"])

    def at(self, start: float, longest: float) -> list[_Option]:
        """Return the options of the role: one if ragged, else one for each length."""
        table, lengths = self.table, self.lengths
        live = self.good & (table["start"] <= start) & (lengths <= longest)
        live &= start + lengths <= self.ends
        rows = np.flatnonzero(live)
        count = self.request.nodes
        if self.search.shape == "ragged":
            options = [(rows, self.costs[rows])]
        else:
            options = []
            for length in np.unique(lengths[rows]).tolist():
                some = rows[lengths[rows] <= length]
                some = some[start + length <= self.ends[some]]
                options.append((some, length * table["price"][some]))
        return [
            _Option(
                dict(zip(table["node"][some].tolist(), some.tolist(), strict=True)),
                dict(zip(table["node"][some].tolist(), costs.tolist(), strict=True)),
                count,
            )
            for some, costs in options
            if len(some) >= count
        ]

    def window(self, start: float, option: _Option, nodes: list[int]) -> Window:
        """Return the window on these nodes."""
        rows = [option.rows[node] for node in nodes]
        return window_of_rows(self.search, self.request, rows, start)


def window_of_rows(
    search: CompoundSearch, request: Request, rows: list[int], start: float
) -> Window:
    """Return the window of some free slots, with rows of the searched slots."""
    window = window_from_rows(
        search.table, rows, start, request, "cost", search.shape, proven=True
    )
    origin = search.free._free()[1]
    if origin is not None:
        data = window.to_dict()
        for part in data["slots"]:
            part["row"] = int(origin[part["row"]])
        window = Window.from_dict(data)
    window.name, window.context = request.name, search.context
    return window


def _choices(live: list[list[_Option]]) -> Iterator[tuple[_Option, ...]]:
    """Yield one option for each role, in all combinations, the cheapest first."""
    from itertools import product

    ordered = [sorted(options, key=lambda option: option.bound) for options in live]
    yield from product(*ordered)


def _share_nodes(windows: list[Window]) -> bool:
    """Return True if two windows have a node in common."""
    nodes = [node for window in windows for node in window.nodes]
    return len(set(nodes)) < len(nodes)

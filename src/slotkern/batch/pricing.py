"""The least window of one job at prices of node-time: the pricing problem of a batch.

Inputs: the usable slots of a job, a price rate for each node that is constant between
breakpoints, and the job's own terms: an amount for each part, one for each unit of the
start and of the window's length. Output: windows of least total, with a lower bound on
the total of every window of the job.

A part on node k from t costs its own amount plus the integral of the node's rate over
the part. Money does not depend on the time, so whether a set of slots is within the
budget does not change while all of them are free. The total of a set is therefore
continuous and, between turns, concave in t: its slope rises only if a part starts when
its rate falls, or ends when its rate rises. The least total over all starts is at a
turn or at the first or last start of a slot (`_turns`), and at each of them it is a
choice of n of the free slots within the budget. The same argument holds for tariffs
("Prices that change", ``docs/criteria.md``).

The length of a window enters the total of start, finish and runtime and of square
windows. It is enumerated: at level T only slots with parts no longer than T count. A
set without a part of length T is counted with less at a smaller level.

Cost: for each level O((turns) x (nodes)) numbers, and a knapsack for each turn whose
Lagrangian bound is below the best window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.knapsack import choose
from slotkern._kernels.request import Request, suitable_rows
from slotkern._kernels.slots import PreparedSlots, filter_rows
from slotkern.batch.options import Measure

__all__ = ["Aim", "Free", "PricedJob", "PricedWindow", "Prices", "whole_time"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Terms of a measure: the amount of each unit of start and of length.
_WHOLE = {"start": (1.0, 0.0), "finish": (1.0, 1.0), "runtime": (0.0, 1.0)}
#: The largest number of values that are held at once.
_BLOCK = 1 << 20
#: Numbers of multipliers that are tried to bound the choices within a budget.
_MULTIPLIERS = 10
#: Relative rounding error that is granted to a budget.
_ROUNDING = 2.0**-50
#: The largest size of the tables of a knapsack, in bytes.
_MEMORY = float(1 << 28)


@dataclass(frozen=True)
class Free:
    """Pieces of free time: the row of the slot, its node's index, start and end."""

    row: Ints
    node: Ints
    start: Floats
    end: Floats

    def without(self, row: Ints, start: Floats, end: Floats) -> Free:
        """Return the rest of whole slots besides disjoint parts of them."""
        first = np.concatenate([self.start, end])
        last = np.concatenate([self.end, start])
        begin = np.lexsort((first, np.concatenate([self.row, row])))
        order = np.lexsort((last, np.concatenate([self.row, row])))
        first, last = first[begin], last[order]
        rows, rest = np.concatenate([self.row, row])[begin], first < last
        node = np.concatenate([self.node, self.node[row]])[begin]
        return Free(rows[rest], node[rest], first[rest], last[rest])


class Prices:
    """Rates of the time of nodes: sums of rates over spans."""

    def __init__(
        self, nodes: int, node: Ints, start: Floats, end: Floats, rate: Floats
    ) -> None:
        #: The indices of the nodes that have a price.
        self.nodes: list[int] = np.unique(node).tolist()
        self._times: list[Floats] = [np.zeros(1)] * nodes
        self._sums: list[Floats] = [np.zeros(1)] * nodes
        #: The largest rate of any node.
        self.largest = 0.0
        falls, rises = [np.zeros(0)] * nodes, [np.zeros(0)] * nodes
        for k in self.nodes:
            mine = node == k
            a, b, amount = start[mine], end[mine], rate[mine]
            times = np.unique(np.concatenate([a, b]))
            within = (a <= times[:-1, None]) & (times[:-1, None] < b)
            rates = within @ amount
            self._times[k] = times
            self._sums[k] = np.append(0.0, np.cumsum(rates * np.diff(times)))
            self.largest = max(self.largest, float(rates.max()))
            change = np.diff(rates, prepend=0.0, append=0.0)
            falls[k], rises[k] = times[change < 0], times[change > 0]
        self._falls, self._rises = _ByNode.of(falls), _ByNode.of(rises)

    def integral(self, node: int, start: Floats, length: float | Floats) -> Floats:
        """Return the integral of a node's rate over spans of these lengths."""
        times, sums = self._times[node], self._sums[node]
        over: Floats = np.interp(start + length, times, sums)
        return over - np.interp(start, times, sums)

    def paid(self, node: Ints, start: float, end: Floats) -> float:
        """Return the sum of the integrals of parts on some nodes."""
        at = np.array([start])
        pairs = zip(node.tolist(), (end - start).tolist(), strict=True)
        return sum(float(self.integral(k, at, length)[0]) for k, length in pairs)

    def turns(self, node: Ints, length: Floats, first: Floats, last: Floats) -> Floats:
        """Return the starts of parts at which the slope of their integral rises.

        The parts have these nodes and lengths, and starts from `first` to `last`.
        """
        part, falls = self._falls.at(node)
        found = [falls[(first[part] <= falls) & (falls <= last[part])]]
        part, rises = self._rises.at(node)
        rises = rises - length[part]
        found.append(rises[(first[part] <= rises) & (rises <= last[part])])
        return np.concatenate(found)


class _ByNode(NamedTuple):
    """Times of each node, one node after another."""

    time: Floats
    first: Ints
    size: Ints

    @classmethod
    def of(cls, times: list[Floats]) -> _ByNode:
        """Join the times of all nodes."""
        count = np.array([len(each) for each in times], np.int64)
        joined = np.concatenate([*times, np.zeros(0)])
        return cls(joined, np.cumsum(count) - count, count)

    def at(self, node: Ints) -> tuple[Ints, Floats]:
        """Return the times of several nodes, and for each time its place in `node`."""
        count = self.size[node]
        place = np.repeat(np.arange(len(node)), count)
        before = np.cumsum(count) - count
        return place, self.time[
            np.arange(len(place)) + (self.first[node] - before)[place]
        ]


@dataclass(frozen=True)
class Aim:
    """The target, its sign (-1 to maximize), the expense, and the zero of starts."""

    target: Measure
    expense: Measure
    sign: float
    origin: float

    @property
    def counts_starts(self) -> bool:
        """True if the target contains the start of the window."""
        return isinstance(self.target, str) and self.target in ("start", "finish")

    @property
    def needs_levels(self) -> bool:
        """True if a total contains the length of the window."""
        both = (self.target, self.expense)
        return any(isinstance(m, str) and m in ("finish", "runtime") for m in both)


@dataclass(frozen=True)
class Terms:
    """Amounts of a window: for each unit of start and of length, and for each slot."""

    start: float
    length: float
    part: Floats

    def scaled(self, factor: float) -> Terms:
        """Return a multiple of the amounts."""
        return Terms(factor * self.start, factor * self.length, factor * self.part)

    def plus(self, other: Terms) -> Terms:
        """Return the sums of both amounts."""
        return Terms(
            self.start + other.start, self.length + other.length, self.part + other.part
        )

    def total(self, start: float, length: float, rows: Ints) -> float:
        """Return the amount of a window."""
        whole = self.start * start + self.length * length
        return float(whole + self.part[rows].sum())


@dataclass(frozen=True, eq=False)
class PricedWindow:
    """A window of a job.

    Attributes
    ----------
    total : float
        Its total at the prices of the search.
    start : float
    rows : ndarray of int64
        The rows of its slots, ascending.
    end : ndarray of float64
        The end of the part on each slot.
    cost, expense : float
        Its signed target, with starts from the aim's origin on, and its expense.
    """

    total: float
    start: float
    rows: Ints
    end: Floats
    cost: float
    expense: float

    @property
    def key(self) -> tuple[float, bytes]:
        """An identifier that is equal for equal windows of a job."""
        return self.start, self.rows.tobytes()


@dataclass(frozen=True)
class _Level:
    """Free pieces that are long enough, with the length and the starts of a part."""

    longest: float
    row: Ints
    node: Ints
    length: Floats
    first: Floats
    last: Floats


class PricedJob:
    """The windows of one job on the slots of a batch."""

    def __init__(
        self,
        slots: NDArray[np.void],
        prepared: PreparedSlots,
        request: Request,
        shape: str,
    ) -> None:
        self.request, self.shape = request, shape
        self.price: Floats = np.ascontiguousarray(slots["price"])
        self.own: Floats = request.length(slots["performance"])
        self._ends: Floats = np.ascontiguousarray(slots["end"])
        usable = suitable_rows(request, slots)
        usable &= self.own <= request.max_runtime
        mask = filter_rows(prepared, request.where)[1]
        self.usable: NDArray[np.bool_] = usable if mask is None else usable & mask
        self._cached: tuple[Free, list[_Level]] | None = None

    def terms(self, aim: Aim, factor: float, length: Floats) -> Terms:
        """Return the terms of the target plus `factor` times the expense.

        `length`: that of a part on each slot.
        """
        total = self._measure(aim.target, length).scaled(aim.sign)
        if factor:
            total = total.plus(self._measure(aim.expense, length).scaled(factor))
        return total

    def window(self, total: float, start: float, rows: Ints, aim: Aim) -> PricedWindow:
        """Return the window of these slots."""
        rows = np.sort(rows)
        longest = float(self.own[rows].max())
        length = self._lengths(longest)
        target = self._measure(aim.target, length).total(
            start - aim.origin, longest, rows
        )
        expense = self._measure(aim.expense, length).total(start, longest, rows)
        end = start + length[rows]
        return PricedWindow(total, start, rows, end, aim.sign * target, expense)

    def rows_at(self, free: Free, start: float) -> Ints:
        """Return the rows of the slots on which a part may begin at a start.

        For square windows the shortest part of each slot decides; see `fits`.
        """
        live = self.usable[free.row] & (free.start <= start)
        live &= start + self.own[free.row] <= np.minimum(
            free.end, self.request.deadline
        )
        rows: Ints = free.row[live]
        return rows

    def fits(self, found: PricedWindow) -> bool:
        """True if the parts of a window are free and it is within the budget."""
        length = found.end - found.start
        money = float(
            (
                self.price[found.rows] * self._lengths(float(length.max()))[found.rows]
            ).sum()
        )
        limit = self.request.budget * (1 + _ROUNDING)
        ends = np.minimum(self._ends[found.rows], self.request.deadline)
        return money <= limit and bool((found.end <= ends).all())

    @property
    def longest(self) -> float:
        """The longest part on a usable slot; 0 without one."""
        return float(self.own[self.usable].max(initial=0.0))

    def range(self, aim: Aim, free: Free, last: float) -> tuple[float, float]:
        """Return bounds on the signed target of all windows, and of no window, 0.

        `last` is the latest start that counts.
        """
        some = self.usable[free.row]
        if not some.any():
            return 0.0, 0.0
        row, n = free.row[some], self.request.nodes
        longest = float(self.own[row].max())
        least = self._measure(aim.target, self.own)
        most = self._measure(aim.target, self._lengths(longest))
        start = min(float((free.end[some] - self.own[row]).max()), last) - aim.origin
        low = n * min(0.0, float(least.part[row].min()))
        high = most.total(max(start, 0.0), longest, row[:0])
        high += n * max(0.0, float(most.part[row].max()))
        return min(aim.sign * low, aim.sign * high), max(
            aim.sign * low, aim.sign * high
        )

    def _lengths(self, longest: float) -> Floats:
        """Return the length of a part on each slot, if the longest has this length."""
        return np.full(len(self.own), longest) if self.shape == "square" else self.own

    def _measure(self, measure: Measure, length: Floats) -> Terms:
        if not isinstance(measure, str):
            return Terms(0.0, 0.0, measure)
        if measure in _WHOLE:
            return Terms(*_WHOLE[measure], np.zeros(len(length)))
        return Terms(0.0, 0.0, length * self.price if measure == "cost" else length)

    def levels(self, free: Free, whole: bool) -> list[_Level]:
        """Return the levels of the lengths; a single one unless `whole` or square."""
        if self._cached is not None and self._cached[0] is free:
            return self._cached[1]
        square, some = self.shape == "square", self.usable[free.row]
        row, node = free.row[some], free.node[some]
        start, end, own = free.start[some], free.end[some], self.own[row]
        longest = np.unique(own).tolist() if square or whole else [np.inf]
        levels = []
        for limit in longest:
            length = np.full(len(row), limit) if square else own
            first, last = self._starts(start, end, length)
            fit = (own <= limit) & (first <= last)
            if len(np.unique(node[fit])) >= self.request.nodes:
                levels.append(
                    _Level(
                        limit, row[fit], node[fit], length[fit], first[fit], last[fit]
                    )
                )
        self._cached = free, levels
        return levels

    def _starts(
        self, start: Floats, end: Floats, length: Floats
    ) -> tuple[Floats, Floats]:
        """Return the first and the last start of a part of each piece."""
        end = np.minimum(end, self.request.deadline)
        first = np.maximum(start, self.request.earliest)
        last = np.minimum(end - length, self.request.latest)
        late = last + length > end
        last[late] = np.nextafter(last[late], -np.inf)
        return first, last

    def least(
        self,
        free: Free,
        prices: Prices,
        aim: Aim,
        factor: float = 0.0,
        spans: int = 1,
    ) -> tuple[float, list[PricedWindow]]:
        """Return a lower bound on all windows' totals, and windows from the least on.

        The total is the signed target plus `factor` times the expense plus the
        integrals of the rates; starts count from the aim's origin. The least window is
        exact up to rounding; inf if there is none.
        """
        bound, found = np.inf, []
        for level in self.levels(free, aim.needs_levels):
            terms = self.terms(aim, factor, self._lengths(level.longest))
            at_least, some = self._at_level(level, prices, terms, aim, spans)
            bound = min(bound, at_least)
            found += some
        found.sort(key=lambda each: each.total)
        return bound, found[:spans]

    def _at_level(
        self, level: _Level, prices: Prices, terms: Terms, aim: Aim, spans: int
    ) -> tuple[float, list[PricedWindow]]:
        starts = self._turns(level, prices)
        nodes = int(level.node.max()) + 1
        block, size = max(1, _BLOCK // nodes), -(-len(starts) // spans)
        bound, found = np.inf, []
        for first in range(0, len(starts), min(block, size)):
            some = starts[first : first + min(block, size)]
            value, row = self._values(level, prices, terms, some, nodes)
            whole = terms.start * (some - aim.origin)
            if terms.length:
                whole = whole + terms.length * level.longest
            at_least, best = self._choose(value, row, whole, level)
            bound = min(bound, at_least)
            if best is not None:
                total, at, rows = best
                found.append(self.window(total, float(some[at]), rows, aim))
        return bound, found

    def _values(
        self, level: _Level, prices: Prices, terms: Terms, starts: Floats, nodes: int
    ) -> tuple[Floats, Ints]:
        """Return amount (inf: none) and row of each node's part from each start."""
        value = np.full((len(starts), nodes), np.inf)
        row = np.full((len(starts), nodes), -1)
        length = np.zeros(len(terms.part))
        length[level.row] = level.length
        begin = np.searchsorted(starts, level.first)
        end = np.searchsorted(starts, level.last, "right")
        some = np.flatnonzero(begin < end)
        columns = (level.row, level.node, begin, end, terms.part[level.row])
        for r, k, a, b, amount in zip(
            *(c[some].tolist() for c in columns), strict=True
        ):
            value[a:b, k] = amount
            row[a:b, k] = r
        for k in np.intersect1d(prices.nodes, level.node[some]).tolist():
            value[:, k] += prices.integral(k, starts, length[row[:, k]])
        return value, row

    def _turns(self, level: _Level, prices: Prices) -> Floats:
        """Return all starts at which the least total may be, ascending."""
        own = prices.turns(level.node, level.length, level.first, level.last)
        return np.unique(np.concatenate([level.first, level.last, own]))

    def _choose(
        self, value: Floats, row: Ints, whole: Floats, level: _Level
    ) -> tuple[float, tuple[float, int, Ints] | None]:
        """Choose n slots within the budget at each start.

        Returns a lower bound on all choices, and the total, place and rows of the best.
        """
        n, budget = self.request.nodes, self.request.budget
        if value.shape[1] < n:
            return np.inf, None
        price = (self.price * self._lengths(level.longest))[row]
        bound = np.full(len(value), -np.inf)
        if budget < np.inf:
            money = np.where(value < np.inf, price, np.inf)
            bound[
                np.partition(money, n - 1)[:, :n].sum(1) > budget * (1 + _ROUNDING)
            ] = np.inf
        best: tuple[float, int, Ints] | None = None
        limit, low, high = budget * (1 + _ROUNDING), 0.0, np.inf
        multiplier = 0.0
        for attempt in range(_MULTIPLIERS):
            adjusted = value + multiplier * price if multiplier else value
            chosen = np.argpartition(adjusted, n - 1, axis=1)[:, :n]
            least = np.take_along_axis(adjusted, chosen, 1).sum(1) + whole
            np.maximum(
                bound, least - (multiplier * limit if multiplier else 0.0), out=bound
            )
            money = np.take_along_axis(price, chosen, 1).sum(1)
            total = np.take_along_axis(value, chosen, 1).sum(1) + whole
            total[money > limit] = np.inf
            at = int(np.argmin(total))
            if total[at] < (np.inf if best is None else best[0]):
                best = float(total[at]), at, row[at, chosen[at]]
            lowest = int(np.argmin(bound))
            if best is not None and bound[lowest] >= best[0]:
                return best[0], best
            if bound[lowest] == np.inf:
                return np.inf, None
            if money[lowest] > limit:
                low = multiplier
            else:
                high = multiplier
            if attempt == 0:
                multiplier = _ratio(value, price)
            else:
                multiplier = 2 * low if high == np.inf else (low + high) / 2
        return self._exact(value, price, row, whole, bound, best)

    def _exact(
        self,
        value: Floats,
        price: Floats,
        row: Ints,
        whole: Floats,
        bound: Floats,
        best: tuple[float, int, Ints] | None,
    ) -> tuple[float, tuple[float, int, Ints] | None]:
        """Solve the choice at each start whose bound is below the best choice."""
        n, budget = self.request.nodes, self.request.budget
        for at in np.argsort(bound, kind="stable").tolist():
            if bound[at] >= (np.inf if best is None else best[0]):
                break
            live = np.flatnonzero(value[at] < np.inf)
            choice = choose(
                price[at, live], -value[at, live], n, budget, 0.0, None, _MEMORY, "auto"
            )
            if choice is None:
                bound[at] = np.inf
                continue
            bound[at] = max(bound[at], whole[at] - choice.bound)
            total = whole[at] - choice.value
            if best is None or total < best[0]:
                best = float(total), at, row[at, live[choice.rows]]
        return float(bound.min()), best


def _ratio(value: Floats, price: Floats) -> float:
    """Return a first multiplier: the spread of the values by that of the money."""
    live = value < np.inf
    spread = float(np.ptp(price[live])) if live.any() else 0.0
    return float(np.ptp(value[live])) / spread if spread else 1.0


def whole_time(slots: NDArray[np.void]) -> tuple[Free, Ints]:
    """Return all free time of slots, and the ids of the nodes."""
    ids, node = np.unique(slots["node"], return_inverse=True)
    return (
        Free(
            np.arange(len(slots)),
            node.astype(np.int64),
            np.array(slots["start"], np.float64),
            np.array(slots["end"], np.float64),
        ),
        ids,
    )

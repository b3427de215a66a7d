"""Windows of the least second price: carbon, for example, under a budget of money.

A profile is a function of time that is integrated over each part, like a tariff. The
least integral over all starts is that of a search for the cheapest window whose prices
are the profile. If that window is over the budget, the best start may be one at which
some set of parts meets the budget exactly, and branch and bound over starts finds it:
between two neighbouring turns of both prices each part's value and cost are concave in
the start, so a knapsack of their lesser values at both ends is a lower bound. Intervals
are halved until no bound is below the incumbent by more than the gap.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.search import find_window
from slotkern._kernels.slots import (
    PreparedSlots,
    filter_rows,
    prepare_snapshot,
    refuse_tariffs,
    tariffs_of_nodes,
)
from slotkern._kernels.windows import Window
from slotkern.knapsack.choice import choose
from slotkern.search.criteria import Profile
from slotkern.search.delegated import SearchOptions, restate_window
from slotkern.tariffs import Tariff

if TYPE_CHECKING:
    from slotkern.typing import Slots

__all__: list[str] = []

#: The gap of a search whose budget binds, if the caller gives none.
_DEFAULT_GAP = 1e-3
#: Knapsacks of a search, if the caller gives no `max_work`.
_MAX_KNAPSACKS = 20_000
#: The name of the profile's tariff in the slots that are searched for it.
_NAME = "profile"


def find_by_profile(
    slots: Slots, request: Request, criterion: Profile, options: SearchOptions
) -> Window | None:
    """Return the window of the least value of a profile, or None."""
    if request.limits:
        raise ValueError("minimize(profile(...)) does not support limits on sums")
    if options.span == "group":
        raise ValueError("span='group' does not apply to minimize(profile(...))")
    if options.method != "exact":
        raise ValueError(
            f"method {options.method!r} does not apply to minimize(profile(...))"
        )
    pool = prepare_snapshot(slots)
    if not math.isinf(request.max_price):
        refuse_tariffs(pool, "max_price does")
    tariff = _tariff_of(criterion, pool)
    weights = _weights_of(criterion, pool.slots)
    _, proper = filter_rows(pool, request.where)
    mask = pool.slots["price"] <= request.max_price
    if proper is not None:
        mask &= proper
    free = request.replace(budget=math.inf, max_price=math.inf, where=mask)
    found = find_window(
        _value_slots(pool, tariff, weights), free, "cost", shape=options.shape
    )
    if found is None:
        return None
    search = _BudgetSearch(pool, tariff, weights, request, mask, options)
    best = search.restate(found)
    if not _meets(best.cost, request.budget):
        cheapest = find_window(pool, request, "cost", shape=options.shape)
        if cheapest is None:
            return None
        best = search.run(found.cost, cheapest)
    name = f"minimize({criterion!r})"
    rows = pool._free()[1] if isinstance(slots, PreparedSlots) else None
    return restate_window(best, rows, criterion=name, name=request.name)


def _tariff_of(criterion: Profile, pool: PreparedSlots) -> Tariff:
    if isinstance(criterion.tariff, Tariff):
        return criterion.tariff
    if pool.tariffs is None or criterion.tariff not in pool.tariffs:
        known = [] if pool.tariffs is None else list(pool.tariffs)
        raise ValueError(
            f"profile: the slots have no tariff {criterion.tariff!r}; they have "
            f"{', '.join(known) or 'none'}"
        )
    found: Tariff = pool.tariffs[criterion.tariff]
    return found


def _weights_of(criterion: Profile, table: NDArray[np.void]) -> NDArray[np.float64]:
    if criterion.weight is None:
        return np.ones(len(table))
    fields: Any = table.dtype.fields or {}
    if criterion.weight not in fields or fields[criterion.weight][0].kind not in "iuf":
        raise ValueError(
            f"profile: the slots have no numeric column {criterion.weight!r}"
        )
    weights = table[criterion.weight].astype(np.float64)
    wrong = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"profile: {criterion.weight} of row {row} is {weights[row]}; it must be "
            "finite and at least 0"
        )
    return weights


def _value_slots(
    pool: PreparedSlots, tariff: Tariff, weights: NDArray[np.float64]
) -> PreparedSlots:
    """Return the slots with the weights as prices and the profile as tariff."""
    names = "node", "start", "end", "performance", "price"
    table = pool.slots
    dtype: Any = [*((name, table.dtype[name]) for name in names)]
    made = np.empty(len(table), [*dtype, ("tariff", f"U{len(_NAME)}")])
    for name in names:
        made[name] = table[name]
    made["price"], made["tariff"] = weights, _NAME
    return PreparedSlots(made, clock=pool.clock, tariffs={_NAME: tariff})


def _meets(cost: float, budget: float) -> bool:
    """Return whether a cost meets the budget, as for all searches."""
    return cost <= budget * (1 + 2.0**-50)


class _Parts(NamedTuple):
    """The parts that one group of windows may have, one for each slot in `rows`.

    A part of `length` may start from `begin` to `last`, both inclusive.
    """

    rows: NDArray[np.int64]
    begin: NDArray[np.float64]
    last: NDArray[np.float64]
    length: NDArray[np.float64]


class _BudgetSearch:
    """The search for the least value whose cost meets the budget."""

    def __init__(
        self,
        pool: PreparedSlots,
        tariff: Tariff,
        weights: NDArray[np.float64],
        request: Request,
        mask: NDArray[np.bool_],
        options: SearchOptions,
    ) -> None:
        self.pool, self.table = pool, pool.slots
        self.tariffs: Mapping[str, Tariff] = pool.tariffs or {}
        self.profile, self.weights = tariff, weights
        self.request, self.mask, self.shape = request, mask, options.shape
        self.gap = options.gap or _DEFAULT_GAP
        work = options.max_work
        self.left = _MAX_KNAPSACKS if work is None else work
        named = tariffs_of_nodes(self.table)
        self.names = (
            np.zeros(len(self.table), "U1") if named is None else self.table["tariff"]
        )
        self.tick = None if pool.clock is None else float(pool.clock._per)
        self.lengths = request.length(self.table["performance"])
        self.has_tariffs = bool((self.names != "").any())
        self.overhead = request.setup > 0 or request.step > 0
        self.best: tuple[float, float, NDArray[np.int64], NDArray[np.float64]] | None
        self.best = None

    # --- costs and values

    def costs(
        self, rows: NDArray[np.int64], start: float, lengths: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the money of parts that start at one time."""
        prices = self.table["price"][rows]
        if not self.has_tariffs and self.shape == "ragged" and not self.overhead:
            rates = prices / self.table["performance"][rows]
            charged: NDArray[np.float64] = self.request.volume * rates
            return charged
        integrals = lengths.copy()
        for name in np.unique(self.names[rows]).tolist() if self.has_tariffs else ():
            if name:
                of = self.names[rows] == name
                integrals[of] = self.tariffs[name].integral(start, lengths[of])
        found: NDArray[np.float64] = prices * integrals
        return found

    def total(
        self, rows: NDArray[np.int64], start: float, lengths: NDArray[np.float64]
    ) -> float:
        """Return the money of a window, as the kernels add it."""
        if self.has_tariffs or self.shape == "ragged":
            return math.fsum(self.costs(rows, start, lengths))
        return float(lengths.max()) * math.fsum(self.table["price"][rows])

    def values(
        self, rows: NDArray[np.int64], start: float, lengths: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the values of parts that start at one time."""
        found: NDArray[np.float64] = self.weights[rows] * self.profile.integral(
            start, lengths
        )
        return found

    def restate(self, window: Window) -> Window:
        """Return a window of the value slots with its money as cost."""
        parts = window.slots
        rows = parts["row"].astype(np.int64)
        lengths = np.array([part["length"] for part in window.to_dict()["slots"]])
        return self._window(
            window, rows, window.start, lengths, window.cost, True, None
        )

    def _window(
        self,
        like: Window,
        rows: NDArray[np.int64],
        start: float,
        lengths: NDArray[np.float64],
        value: float,
        proven: bool,
        bound: float | None,
    ) -> Window:
        costs = self.costs(rows, start, lengths)
        nodes = self.table["node"][rows]
        order = np.argsort(nodes)
        parts = tuple(
            (int(rows[k]), int(nodes[k]), float(lengths[k]), float(costs[k]))
            for k in order
        )
        runtime = float(lengths.max())
        return restate_window(
            like,
            start=start,
            finish=start + runtime,
            runtime=runtime,
            cost=self.total(rows, start, lengths),
            processor_time=math.fsum(lengths),
            value=value,
            bound=value if bound is None else bound,
            proven=proven,
            parts=parts,
            context=self.pool.context,
        )

    # --- branch and bound

    def run(self, lowest: float, cheapest: Window) -> Window:
        """Return the window of the least value within the budget.

        `lowest` is a lower bound on all values; `cheapest` the cheapest window.
        """
        rows = cheapest.slots["row"].astype(np.int64)
        lengths = self.lengths[rows]
        if self.shape == "square":
            lengths = np.full(len(rows), cheapest.runtime)
        value = math.fsum(self.values(rows, cheapest.start, lengths))
        self.best = value, cheapest.start, rows, lengths
        queue: list[tuple[float, int, float, float, _Parts, NDArray[np.int64]]] = []
        count = 0
        for parts in self._groups():
            turns = self._turns(parts)
            for t in turns.tolist():
                self._try(parts, t)
            for left, right in pairwise(turns.tolist()):
                live = np.flatnonzero((parts.begin <= left) & (parts.last >= right))
                entry = self._bounded(parts, live, left, right)
                if entry is not None:
                    queue.append((entry, count, left, right, parts, live))
                    count += 1
        heapq.heapify(queue)
        bound = math.inf
        while queue:
            least, _, left, right, parts, live = queue[0]
            if self.left <= 0 or least >= self.best[0] * (1 - self.gap):
                bound = least
                break
            heapq.heappop(queue)
            middle = left + (right - left) / 2
            if not left < middle < right:
                bound = min(bound, least)
                continue
            self._try(parts, middle, exact=False)
            for low, high in ((left, middle), (middle, right)):
                entry = self._bounded(parts, live, low, high)
                if entry is not None:
                    queue_entry = (max(entry, least), count, low, high, parts, live)
                    heapq.heappush(queue, queue_entry)
                    count += 1
        value, start, rows, lengths = self.best
        bound = max(min(bound, value), lowest)
        proven = bound >= value * (1 - self.gap)
        return self._window(cheapest, rows, start, lengths, value, proven, bound)

    def _groups(self) -> Iterator[_Parts]:
        """Yield the parts: all (ragged), or those of each span (square)."""
        request, table = self.request, self.table
        fast = table["performance"] >= request.min_performance
        proper = self.mask & fast & (self.lengths <= request.max_runtime)
        spans = np.unique(self.lengths[proper]) if self.shape == "square" else [None]
        for span in spans:
            rows = np.flatnonzero(
                proper if span is None else proper & (self.lengths <= span)
            )
            length = (
                self.lengths[rows] if span is None else np.full(len(rows), float(span))
            )
            begin = np.maximum(table["start"][rows], request.earliest)
            limit = np.minimum(table["end"][rows], request.deadline)
            last = limit - length
            while (over := np.isfinite(last) & (last + length > limit)).any():
                last[over] = np.nextafter(last[over], -np.inf)
            last = np.minimum(last, request.latest)
            kept = begin <= last
            yield _Parts(rows[kept], begin[kept], last[kept], length[kept])

    def _turns(self, parts: _Parts) -> NDArray[np.float64]:
        """Return the times between which all costs and values are concave."""
        found = [parts.begin, parts.last[np.isfinite(parts.last)]]
        names = self.names[parts.rows]
        for length in np.unique(parts.length).tolist():
            of = parts.length == length
            tariffs = [self.profile]
            tariffs += [self.tariffs[name] for name in np.unique(names[of]) if name]
            for tariff in tariffs:
                steps = np.diff(tariff.factors)
                found.append(tariff.breakpoints[steps < 0])
                found.append(tariff.breakpoints[steps > 0] - length)
        turns = np.unique(np.concatenate(found))
        first = parts.begin.min(initial=np.inf)
        kept = (turns >= first) & (turns <= parts.last.max(initial=-np.inf))
        return np.asarray(turns[kept], np.float64)

    def _choose(
        self, costs: NDArray[np.float64], values: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.int64]] | None:
        """Return a lower bound on the value of n parts within the budget, and the rows.

        None if no n parts meet the budget. There are no rows if no knapsack was solved:
        n parts of any cost are no better than the incumbent, or the work is spent.
        """
        n = self.request.nodes
        if len(costs) < n:
            return None
        assert self.best is not None
        least = float(np.partition(values, n - 1)[:n].sum())
        if self.left <= 0 or least >= self.best[0] * (1 - self.gap / 2):
            return least, np.empty(0, np.int64)
        self.left -= 1
        found = choose(costs, -values, n, self.request.budget)
        if found is None:
            return None
        return -found.bound, found.rows

    def _bounded(
        self, parts: _Parts, live: NDArray[np.int64], left: float, right: float
    ) -> float | None:
        """Return a lower bound on values of windows that start in [left, right]."""
        if len(live) < self.request.nodes:
            return None
        rows, lengths = parts.rows[live], parts.length[live]
        costs = np.minimum(
            self.costs(rows, left, lengths), self.costs(rows, right, lengths)
        )
        values = np.minimum(
            self.values(rows, left, lengths), self.values(rows, right, lengths)
        )
        found = self._choose(costs, values)
        if found is None:
            return None
        bound, chosen = found
        if len(chosen):
            self._slide(parts, live[chosen], left, right)
        return bound

    def _slide(
        self, parts: _Parts, chosen: NDArray[np.int64], left: float, right: float
    ) -> None:
        """Try the start between two turns at which a set of parts meets the budget."""
        rows, lengths = parts.rows[chosen], parts.length[chosen]

        def fits(t: float) -> bool:
            return _meets(self.total(rows, t, lengths), self.request.budget)

        ends = fits(left), fits(right)
        if ends[0] == ends[1]:
            return
        good, bad = (left, right) if ends[0] else (right, left)
        for _ in range(60):
            middle = good + (bad - good) / 2
            if middle in (good, bad):
                break
            if fits(middle):
                good = middle
            else:
                bad = middle
        if self.tick is not None and good not in (left, right):
            count = good * self.tick
            good = (math.floor(count) if good < bad else math.ceil(count)) / self.tick
            if not left <= good <= right or not fits(good):
                return
        self._offer(rows, good, lengths)

    def _try(self, parts: _Parts, t: float, exact: bool = True) -> None:
        """Try the best parts at one start."""
        if not exact and self.tick is not None:
            t = round(t * self.tick) / self.tick
        live = np.flatnonzero((parts.begin <= t) & (t <= parts.last))
        if len(live) < self.request.nodes:
            return
        rows, lengths = parts.rows[live], parts.length[live]
        found = self._choose(
            self.costs(rows, t, lengths), self.values(rows, t, lengths)
        )
        if found is not None and len(found[1]):
            self._offer(rows[found[1]], t, lengths[found[1]])

    def _offer(
        self, rows: NDArray[np.int64], t: float, lengths: NDArray[np.float64]
    ) -> None:
        """Keep a window if it is better, or equal and earlier."""
        if self.shape == "square":  # as long as its own slowest part
            lengths = np.full(len(rows), float(self.lengths[rows].max()))
        if not _meets(self.total(rows, t, lengths), self.request.budget):
            return
        value = math.fsum(self.values(rows, t, lengths))
        assert self.best is not None
        if (value, t) < self.best[:2]:
            self.best = value, t, rows, lengths

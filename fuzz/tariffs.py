"""Compare searches under tariffs with their definition, on random pools.

    python fuzz/tariffs.py [--cases N] [--seed S]

Each pool is searched when it is new and after bookings, releases and advances, by every
criterion and shape. Numbers are dyadic, so that sums are exact and costs tie; times
count from 0 or from the epoch; nodes share one tariff or have one each, up to 100.

The definition enumerates all starts at which a window can begin (each turn of each part
and each tick), takes the cheapest parts that are free at each, and chooses the best. It
shares no code with the package. Without ticks a start may lie between turns: the window
must then fit its budget there, and not at the time one double earlier.

A difference is printed with the number of its pool, and the exit code is 1. Runs with
equal seeds are equal. Cost: about 0.2 ms of CPU time for each search.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import slotkern as sk

CRITERIA = ("first", "start", "finish", "runtime", "cost")
SHAPES = ("square", "ragged")
EPOCH = 1.75e9  # seconds since 1970
FACTORS = (0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 3.0)
CHANGES = 4  # of each pool

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Class:
    """The parts of one tariff and length: their integrals and common turns."""

    def __init__(self, tariff: sk.Tariff | None, length: float) -> None:
        breakpoints, factors = (
            (np.empty(0), np.ones(1))
            if tariff is None
            else (tariff.breakpoints, tariff.factors)
        )
        step = np.diff(factors)
        self.length, self.breakpoints, self.factors = length, breakpoints, factors
        self.turns = np.concatenate(
            (breakpoints[step < 0], breakpoints[step > 0] - length)
        )
        whole = factors[1:-1] * np.diff(breakpoints)
        self.sums = np.concatenate(([0.0], np.cumsum(whole)))

    def integral(self, t: Floats) -> Floats:
        """Return the integral of the tariff over [t, t + length)."""
        b, f, end = self.breakpoints, self.factors, t + self.length
        if not len(b):
            return np.full(len(t), f[0] * self.length)
        i, j = np.searchsorted(b, t, "right"), np.searchsorted(b, end, "left")
        first, last = np.minimum(i, len(b) - 1), np.maximum(j, 1) - 1
        head, tail = f[i] * (b[first] - t), f[j] * (end - b[last])
        across = (head + (self.sums[last] - self.sums[first])) + tail
        return np.where(j <= i, f[i] * self.length, across)


class Best(NamedTuple):
    """A window by the definition, parts by node."""

    start: float
    runtime: float
    cost: float
    nodes: list[int]
    costs: list[float]


class Choice(NamedTuple):
    """The cheapest parts at each of some times."""

    order: NDArray[np.intp]  # [n, times]: parts by cost, then node
    total: Floats  # infinite: too few parts
    runtime: Floats
    is_own_turn: Bools


class Parts:
    """The parts of a request, in the order of nodes; all run for `span` if given."""

    def __init__(
        self, slots: Any, tariffs: Any, request: sk.Request, span: float | None
    ) -> None:
        own = length_on(request, slots["performance"])
        admitted = (slots["performance"] >= request.min_performance) & (
            own <= request.max_runtime
        )
        if span is not None:
            admitted &= own <= span
        order = np.flatnonzero(admitted)
        order = order[np.lexsort((slots["start"][order], slots["node"][order]))]
        self.slots, self.own, self.span = slots[order], own[order], span
        self.n, self.price = request.nodes, self.slots["price"]
        self.length = self.own if span is None else np.full(len(order), span)
        self.begin = np.maximum(self.slots["start"], request.earliest)
        self.limit = np.minimum(self.slots["end"], request.deadline)
        self.latest = request.latest
        with np.errstate(invalid="ignore"):
            self.last = np.minimum(self.limit - self.length, self.latest)
        columns = self.slots["tariff"].tolist(), self.length.tolist()
        keys = list(zip(*columns, strict=True))
        named = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        self.classes = [
            Class(tariffs[name] if name else None, length) for name, length in named
        ]
        self.class_of = np.array([named[key] for key in keys], np.intp)

    def is_live(self, t: Floats) -> Bools:
        """Return for each part and time whether the part can start."""
        at = t[None, :]
        fits = at + self.length[:, None] <= self.limit[:, None]
        return (self.begin[:, None] <= at) & fits & (at <= self.latest)

    def cost(self, t: Floats) -> Floats:
        """Return the cost of each part at each time, infinite if it cannot start."""
        integrals = np.array([each.integral(t) for each in self.classes])
        cost = self.price[:, None] * integrals[self.class_of]
        return np.where(self.is_live(t), cost, np.inf)

    def is_turn(self, t: Floats) -> Bools:
        """Return for each part and time whether the time is a turn of the part."""
        common = np.array([np.isin(t, each.turns) for each in self.classes])
        own = (t == self.begin[:, None]) | (t == self.last[:, None])
        return own | common[self.class_of]

    def starts(self, tick: float) -> Floats:
        """Return all turns at which some part can start, and the ticks among them."""
        if not len(self.own):
            return np.empty(0)
        turns = [each.turns for each in self.classes]
        found = np.unique(np.concatenate((self.begin, self.last, *turns)))
        found = found[np.isfinite(found)]
        found = found[self.is_live(found).any(axis=0)]
        if not tick or not len(found):
            return found
        ticks = np.arange(math.ceil(found[0] / tick), math.floor(found[-1] / tick) + 1)
        return np.unique(np.concatenate((found, ticks * tick)))

    def choose(self, cost: Floats, turns: Bools, most: float) -> Choice:
        """Choose the cheapest parts of a length up to `most` for each time."""
        if len(cost) < self.n:
            none = np.full(cost.shape[1], np.inf)
            empty = np.zeros((0, cost.shape[1]), np.intp)
            return Choice(empty, none, none, none < 0)
        cost = np.where((self.own <= most)[:, None], cost, np.inf)
        order = np.argsort(cost, axis=0, kind="stable")[: self.n]
        runtime = self.own[order].max(axis=0)
        total = np.take_along_axis(cost, order, 0).sum(axis=0)
        if self.span is not None:
            total = np.where(runtime == self.span, total, np.inf)
        own = np.take_along_axis(turns, order, 0).any(axis=0)
        return Choice(order, total, runtime, own)

    def describe(self, start: float, chosen: Any, cost: Floats) -> Best:
        """Return the window of the chosen parts; `cost`: of all parts at the start."""
        chosen = np.sort(chosen)
        costs = cost[chosen].tolist()
        runtime = float(self.own[chosen].max()) if self.span is None else self.span
        nodes = self.slots["node"][chosen].tolist()
        return Best(start, runtime, math.fsum(costs), nodes, costs)

    def cheapest(self, start: float, most: float) -> Best | None:
        """Return the cheapest parts at one start, of any span."""
        cost = self.cost(np.array([start]))[:, 0]
        cost = np.where(self.own <= most, cost, np.inf)
        order = np.argsort(cost, kind="stable")[: self.n]
        if len(order) < self.n or not np.isfinite(cost[order]).all():
            return None
        return self.describe(start, order, cost)


def length_on(request: sk.Request, performance: Any) -> Any:
    """Return the length of a part: setup and work, in whole steps."""
    length = request.setup + request.volume / performance
    if not request.step:
        return length
    return request.step * np.maximum(np.ceil(length / request.step - 1e-9), 1)


def keys_of(cost: Floats) -> NDArray[np.uint64]:
    """Return costs to 28 bits of mantissa, rounded: equal keys are equal costs."""
    bits = (cost + 0.0).view(np.uint64)
    return (bits + np.uint64(1 << 23)) >> np.uint64(24)


class Definition:
    """The best windows of a request among slots, by enumeration of all starts."""

    def __init__(
        self, slots: Any, tariffs: Any, request: sk.Request, shape: str, tick: float
    ) -> None:
        self.most = request.budget * (1 + 2.0**-50)
        self.first, self.best = None, dict.fromkeys(CRITERIA)
        whole = Parts(slots, tariffs, request, None)
        self.lengths = np.unique(whole.own).tolist()
        spans: list[float | None] = [None]
        if shape == "square":
            spans = list(self.lengths)
        self.groups = {
            span: Parts(slots, tariffs, request, span) if span else whole
            for span in spans
        }
        least: dict[str, tuple[Any, ...]] = {}
        for span, parts in self.groups.items():
            times = parts.starts(tick)
            if not len(times):
                continue
            cost, turns = parts.cost(times), parts.is_turn(times)
            is_tick = times % tick == 0 if tick else np.zeros(len(times), bool)
            for most in self.lengths if span is None else [span]:
                found = parts.choose(cost, turns, most)
                fits = (found.total <= self.most) & np.isfinite(found.total)
                allowed = {True: fits & found.is_own_turn}
                allowed[False] = allowed[True] | (fits & is_tick)
                values = {
                    "finish": times + found.runtime,
                    "runtime": found.runtime,
                }
                if most == self.lengths[-1] or span is not None:
                    values |= {"start": times, "first": times}
                    values["cost"] = keys_of(found.total)
                for name, value in values.items():
                    at = np.flatnonzero(allowed[name == "cost"])
                    if not len(at):
                        continue
                    at = at[value[at] == value[at].min()][0]
                    start = float(times[at])
                    window = parts.describe(start, found.order[:, at], cost[:, at])
                    rank: tuple[Any, ...] = (value[at], start, *window[2:4])
                    if name == "first":
                        rank = (start, window.runtime)
                    if name not in least or rank < least[name]:
                        least[name], self.best[name] = rank, window
                        if name == "first":
                            self.first = parts
        if self.best["first"] is not None:
            self.best["first"] = self._first_step(self.best["first"])

    def _first_step(self, best: Best) -> Best:
        """Return the first window that fits as slots join by (start, node)."""
        parts, t = self.first, best.start
        assert parts is not None
        cost = parts.cost(np.array([t]))[:, 0]
        live = np.flatnonzero(np.isfinite(cost))
        coming = live[parts.begin[live] == t]
        coming = coming[np.lexsort((coming, parts.slots["start"][coming]))]
        joined = live[parts.begin[live] < t].tolist()
        for part in (None, *coming.tolist()):
            if part is not None:
                joined.append(part)
            if len(joined) < parts.n:
                continue
            joined.sort(key=lambda each: (cost[each], each))
            window = parts.describe(t, joined[: parts.n], cost)
            if window.cost <= self.most:
                return window
        raise AssertionError("the last step is the window itself")

    def check(self, criterion: str, found: Any, tick: float) -> bool:
        """Return True if the window found is the best one."""
        best = self.best[criterion]
        if best is not None or tick or criterion == "cost" or found is None:
            if (best is None) != (found is None):
                return False
            if best is None:
                return True
        mine = Best(
            found.start,
            found.runtime,
            found.cost,
            list(found.nodes),
            found.slots["cost"].tolist(),
        )
        if tick or criterion == "cost" or mine == best:
            return mine == best
        # A start between turns: the window fits there, and not one double earlier.
        if best is not None:
            value = {"finish": best.start + best.runtime, "runtime": best.runtime}
            if found.value > value.get(criterion, best.start):
                return False
        parts, most = self.groups.get(None), self.lengths[-1]
        if parts is None:
            parts = self.groups[found.runtime]
        elif criterion in ("finish", "runtime"):
            most = found.runtime
        here = parts.cheapest(found.start, most)
        before = parts.cheapest(math.nextafter(found.start, -math.inf), most)
        if criterion != "first" and here != mine:
            return False
        too_dear = before is None or before.cost > self.most
        return here is not None and here.cost <= self.most and too_dear


class Case:
    """A random pool under tariffs, and its requests."""

    def __init__(self, number: int, seed: int) -> None:
        rng = self.rng = random.Random(f"{seed}-{number}")
        nodes, slots, names = rng.choice(
            [(6, 3, 3)] * 14 + [(20, 3, 10)] * 5 + [(100, 2, 100)]
        )
        self.nodes = rng.randint(1, nodes)
        names = [f"t{k}" for k in range(rng.randint(1, names))]
        self.origin = rng.choice([0.0, EPOCH])
        self.tick = rng.choice([0.0, 1.0])
        clock = sk.Clock("1970-01-01T00:00:00+00:00", tick="s") if self.tick else None
        self.tariffs = sk.Tariffs({name: self._tariff() for name in names})
        is_equal = rng.random() < 0.25
        rows = []
        for node in range(self.nodes):
            performance = 2.0 if is_equal else rng.choice([1.0, 2.0, 4.0, 3.0])
            tariff = rng.choice([*names, ""])
            t = self.origin + rng.randint(0, 20) / 4
            for _ in range(rng.randint(1, slots)):
                end = t + rng.randint(1, 30) / 2
                if rng.random() < 0.08:
                    end = math.inf
                price = 1.0 if is_equal else rng.choice([0.0, 0.5, 1.0, 2.0, 3.0])
                rows.append((node, t, end, performance, price, tariff))
                t = end + rng.randint(0, 8) / 4
                if t == math.inf:
                    break
        fields = ("node", "start", "end", "performance", "price", "tariff")
        columns = dict(zip(fields, map(list, zip(*rows, strict=True)), strict=True))
        self.pool = sk.SlotPool(
            sk.make_slots(**columns), tariffs=self.tariffs, clock=clock
        )
        self.booked: list[sk.Window] = []

    def _tariff(self) -> sk.Tariff:
        rng = self.rng
        count = rng.randint(0, 6)
        first = self.origin + rng.randint(-4, 20) / 2
        if rng.random() < 0.5:
            period = rng.randint(1, 8) / 2
            times = [first + k * period for k in range(count)]
            return sk.Tariff(times, [2.0 if k % 2 else 0.5 for k in range(count + 1)])
        times = [first]
        for _ in range(count):
            times.append(times[-1] + rng.randint(1, 6) / 2)
        return sk.Tariff(times, rng.choices(FACTORS, k=count + 2))

    def request(self) -> sk.Request:
        """Return a random request."""
        rng = self.rng
        fields: dict[str, Any] = {}
        for name, more in {"earliest": 0, "latest": 6, "deadline": 8}.items():
            if rng.random() < 0.25:
                fields[name] = self.origin + rng.randint(0, 60) / 4 + more
        last = min(fields.get("latest", math.inf), fields.get("deadline", math.inf))
        if fields.get("earliest", 0) > last:
            del fields["earliest"]
        if rng.random() < 0.25:
            fields["setup"] = rng.randint(0, 4) / 2
        if rng.random() < 0.25:
            fields["step"] = rng.randint(1, 6) / 2
        if rng.random() < 0.2:
            fields["min_performance"] = 2.0
        if rng.random() < 0.15:
            fields["max_runtime"] = float(rng.randint(2, 9))
        if rng.random() < 0.5:
            fields["budget"] = rng.randint(0, 60) / 4
        nodes = rng.randint(1, min(self.nodes, 4))
        return sk.Request(nodes, rng.choice([3.0, 6.0, 12.0, 12.0, 24.0]), **fields)

    def change(self, found: Any) -> None:
        """Book the window, release one, or advance."""
        rng = self.rng
        kind = rng.choice(["book", "book", "release", "advance"])
        if kind == "book" and found is not None:
            self.pool.book(found)
            self.booked.append(found)
        elif kind == "release" and self.booked:
            self.pool.release(self.booked.pop(rng.randrange(len(self.booked))))
        elif kind == "advance":
            now = max(self.pool.now, self.origin) + rng.randint(0, 8) / 4
            self.pool.advance(now)
            self.booked = [each for each in self.booked if each.start >= now]


def compare(number: int, seed: int) -> tuple[int, str]:
    """Compare all searches of a pool; return their number, and the first difference."""
    case, done = Case(number, seed), 0
    request = case.request()
    for change in range(CHANGES + 1):
        some, found = case.pool.slots, None
        for shape in SHAPES:
            defined = Definition(some, case.tariffs, request, shape, case.tick)
            for criterion in CRITERIA:
                found = case.pool.find(request, criterion, shape=shape)
                done += 1
                if not defined.check(criterion, found, case.tick):
                    return done, (
                        f"pool {number}, change {change}: {request!r} by {criterion}, "
                        f"{shape}: found {found!r}, not {defined.best[criterion]}"
                    )
        case.change(found)
        if case.rng.random() < 0.5:
            request = case.request()
    return done, ""


def main() -> int:
    """Compare the given number of searches; return 1 after a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first pool")
    options = parser.parse_args()
    done, number, began = 0, options.first, time.process_time()
    while done < options.cases:
        count, difference = compare(number, options.seed)
        done, number = done + count, number + 1
        if difference:
            print(difference, flush=True)
            return 1
        if number % 1000 == 0:
            print(f"{done:,} searches of {number:,} pools are equal", flush=True)
    spent = time.process_time() - began
    print(f"{done:,} searches in {spent:.0f} s of CPU time, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())

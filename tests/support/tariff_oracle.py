"""The plain definition of windows under tariffs, for tiny cases.

Enumerates all turns of all parts and all ticks; at each start the n cheapest parts.
Exact if all numbers are dyadic with few digits. Independent of ``slotkern/tariff`` and
of `slotkern.tariffs`: the integral adds every segment.
"""

import itertools
import math
import struct
from typing import NamedTuple

from support.oracle import INF, length_on, met

CRITERIA = ("first", "start", "finish", "runtime", "cost")


def integral(tariff, start: float, length: float) -> float:
    """Return the integral of a tariff (breakpoints, factors); None is the factor 1."""
    times, factors = tariff or ([], [1.0])
    end = start + length
    b, f = [], [factors[0]]
    for time, factor in zip(times, factors[1:], strict=True):
        if factor != f[-1]:  # equal neighbours are one
            b.append(time)
            f.append(factor)
    i = sum(time <= start for time in b)
    j = sum(time < end for time in b)
    if j <= i:
        return f[i] * length
    whole = math.fsum(f[k] * (b[k] - b[k - 1]) for k in range(i + 1, j))
    return (f[i] * (b[i] - start) + whole) + f[j] * (end - b[j - 1])


def cost_key(cost: float) -> int:
    """Return the cost to 28 bits, rounded to nearest: equal keys are equal costs."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", cost + 0.0))
    return (bits + (1 << 23)) >> 24


class Slot(NamedTuple):
    """A slot and the tariff of its node."""

    row: int
    node: int
    start: float
    end: float
    performance: float
    price: float
    tariff: object  # (breakpoints, factors), or None


class Window(NamedTuple):
    """A window; parts in the order of the nodes."""

    start: float
    runtime: float
    cost: float
    nodes: tuple[int, ...]
    rows: tuple[int, ...]
    costs: tuple[float, ...]


class Part:
    """A part on a slot: when it can start, and what it costs."""

    def __init__(self, slot: Slot, length: float, own: float, request: dict) -> None:
        self.slot, self.length, self.own = slot, length, own
        self.begin = max(slot.start, request.get("earliest", -INF))
        self.limit = min(slot.end, request.get("deadline", INF))
        self.latest = request.get("latest", INF)
        last = self.limit - length
        while last < INF and last + length > self.limit:
            last = math.nextafter(last, -INF)
        turns = {self.begin, min(last, self.latest)}
        times, factors = slot.tariff or ([], [1.0])
        for time, before, after in zip(times, factors, factors[1:], strict=False):
            if after < before:
                turns.add(time)
            elif after > before:
                turns.add(time - length)
        self.turns = {t for t in turns if math.isfinite(t) and self.is_live(t)}

    def is_live(self, t: float) -> bool:
        fits = self.begin <= t and t + self.length <= self.limit
        return fits and t <= self.latest

    def cost(self, t: float) -> float:
        return self.slot.price * integral(self.slot.tariff, t, self.length)


class Oracle:
    """All windows of a request among slots with tariffs.

    `request`: the fields of a Request as a dict; `where`: rows that pass. `tick`:
    starts other than turns are its multiples; 0: turns only.
    """

    def __init__(self, slots, request: dict, shape: str, tick=0.0, where=None) -> None:
        self.request, self.shape, self.tick = request, shape, tick
        terms = request["volume"], request.get("setup", 0.0), request.get("step", 0.0)
        self.own = {slot.row: length_on(slot.performance, *terms) for slot in slots}
        self.slots = [
            slot
            for slot in slots
            if slot.performance >= request.get("min_performance", 0.0)
            and self.own[slot.row] <= request.get("max_runtime", INF)
            and (where is None or where[slot.row])
        ]
        self.lengths = sorted({self.own[slot.row] for slot in self.slots})
        self.groups = []  # (span or None, parts)
        for span in self.lengths if shape == "square" else [None]:
            parts = [
                Part(
                    slot,
                    self.own[slot.row] if span is None else span,
                    self.own[slot.row],
                    request,
                )
                for slot in self.slots
                if span is None or self.own[slot.row] <= span
            ]
            self.groups.append((span, parts))

    def best(self, criterion: str) -> Window | None:
        """Return the best window by a criterion among turns and ticks."""
        budget = self.request.get("budget", INF)
        found, least, first_parts = None, None, None
        for span, parts in self.groups:
            times = set().union(*(part.turns for part in parts))
            if not times:
                continue
            if self.tick:
                count = math.ceil(min(times) / self.tick)
                last = max(times)
                while count * self.tick <= last:
                    times.add(count * self.tick)
                    count += 1
            for t in sorted(times):
                for most in [span] if span is not None else self._limits(criterion):
                    window, own = self._window(parts, t, most, span)
                    if window is None or not met(window.cost, budget):
                        continue
                    is_tick = self.tick and t % self.tick == 0
                    if not own and (criterion == "cost" or not is_tick):
                        continue
                    rank = self._rank(criterion, window)
                    if least is None or rank < least:
                        found, least, first_parts = window, rank, parts
        if criterion == "first" and found is not None:
            return self._first_step(first_parts, found)
        return found

    def fits(self, t: float, most: float) -> bool:
        """Return True if parts up to the length `most` (square: that span) fit at t."""
        for span, parts in self.groups:
            if span is None or span == most:
                window, _ = self._window(parts, t, most, None)
                return window is not None and met(
                    window.cost, self.request.get("budget", INF)
                )
        return False

    def _limits(self, criterion: str) -> list[float]:
        return self.lengths if criterion in ("finish", "runtime") else self.lengths[-1:]

    @staticmethod
    def _rank(criterion: str, window: Window):
        value = {
            "first": window.start,
            "start": window.start,
            "finish": window.start + window.runtime,
            "runtime": window.runtime,
            "cost": cost_key(window.cost),
        }[criterion]
        if criterion == "first":  # of equal starts the shortest span
            return value, window.runtime
        return value, window.start, window.cost, window.nodes

    def _window(self, parts, t: float, most: float, span):
        """Return the window of the n cheapest parts live at t, and if t is its turn."""
        live = [part for part in parts if part.own <= most and part.is_live(t)]
        n = self.request["nodes"]
        if len(live) < n:
            return None, False
        live.sort(key=lambda part: (part.cost(t), part.slot.node))
        chosen = live[:n]
        window = self._describe(chosen, t)
        if span is not None and window.runtime != span:
            return None, False  # of another group
        return window, any(t in part.turns for part in chosen)

    def _describe(self, parts, t: float) -> Window:
        by_node = sorted(parts, key=lambda part: part.slot.node)
        return Window(
            t,
            max(part.own for part in parts),
            math.fsum(part.cost(t) for part in parts),
            tuple(part.slot.node for part in by_node),
            tuple(part.slot.row for part in by_node),
            tuple(part.cost(t) for part in by_node),
        )

    def _first_step(self, parts, best: Window) -> Window:
        """Return the first step, in (start, node) order of the slots, that fits."""
        t = best.start
        live = [part for part in parts if part.is_live(t)]
        coming = [part for part in live if part.begin == t]
        coming.sort(key=lambda part: (part.slot.start, part.slot.node))
        joined = [part for part in live if part.begin < t]
        for part in itertools.chain([None], coming):
            if part is not None:
                joined.append(part)
            if len(joined) < self.request["nodes"]:
                continue
            joined.sort(key=lambda part: (part.cost(t), part.slot.node))
            window = self._describe(joined[: self.request["nodes"]], t)
            if met(window.cost, self.request.get("budget", INF)):
                return window._replace(
                    runtime=best.runtime if self.shape == "square" else window.runtime
                )
        raise AssertionError("the last step is the window itself")


def brute_least(slots, request: dict, shape: str, raster: float) -> float:
    """Return the least cost of all sets at all starts on a raster, and at all turns."""
    oracle = Oracle(slots, request, shape, raster)
    least = INF
    for span, parts in oracle.groups:
        times = set().union(*(part.turns for part in parts)) or {0.0}
        count = math.ceil(min(times) / raster)
        while count * raster <= max(times):
            times.add(count * raster)
            count += 1
        for t in times:
            live = [part for part in parts if part.is_live(t)]
            for some in itertools.combinations(live, request["nodes"]):
                if len({part.slot.node for part in some}) < len(some):
                    continue
                if span is not None and max(part.own for part in some) != span:
                    continue
                least = min(least, math.fsum(part.cost(t) for part in some))
    return least

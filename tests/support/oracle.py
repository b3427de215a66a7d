"""Exhaustive search for the best window, for tiny cases.

Plain Python floats, one expression for each quantity. Sums of money are exact, rounded
once, and compared with an amount by `met`; other sums run from left to right (`sum`
compensates from Python 3.12 on, so `add` is used). Written from the definitions, to
check both the published algorithms and the kernels.
"""

import math
import sys
from collections.abc import Iterator
from itertools import combinations, repeat
from typing import NamedTuple

import numpy as np

INF = float("inf")


class Best(NamedTuple):
    """The best window by a criterion."""

    value: float
    start: float
    cost: float
    nodes: tuple[int, ...]  # ascending
    rows: tuple[int, ...]  # in the order of the nodes


class Slot(NamedTuple):
    """One row of the slots."""

    row: int
    node: int
    start: float
    end: float
    performance: float
    price: float


class Window(NamedTuple):
    """One combination of n slots at a start."""

    start: float
    runtime: float
    cost: float
    prices: tuple[float, ...]  # or part costs, ascending: order windows of equal cost
    nodes: tuple[int, ...]
    rows: tuple[int, ...]


def add(numbers) -> float:
    """Return the sum from left to right, rounded after each addition."""
    total = 0.0
    for number in numbers:
        total = total + number
    return total


def exact(numbers) -> float:
    """Return the exact sum, rounded once; infinite if it overflows."""
    terms = list(numbers)
    if not all(map(math.isfinite, terms)):
        return add(terms)
    try:
        return math.fsum(terms)
    except OverflowError:
        return INF


def met(total: float, amount: float, at_least: bool = False) -> bool:
    """Return True if a sum is at most (or least) an amount, with tolerance 2^-50.

    The relative tolerance covers the rounding of decimal inputs. An infinite sum meets
    no upper amount.
    """
    if at_least:
        return met(-total, -amount)
    slack = -(2.0**-50) if amount < 0 else 2.0**-50
    return total <= min(amount * (1 + slack), sys.float_info.max)


def length_on(performance: float, volume: float, setup=0.0, step=0.0) -> float:
    """Return the length of a part: whole steps; an excess of 4 ulp is rounding."""
    time = setup + volume / performance
    if step == 0.0 or time / step >= 2.0**52:
        return time
    count = time / step
    steps = max(1, math.ceil(count))
    if steps > 1 and count - (steps - 1) <= 4 * 2.0**-52 * count:
        steps -= 1
    return step * steps


def terms_of(request) -> tuple[float, float, float]:
    """Return volume, setup and step of a request, the arguments of `length_on`."""
    return request["volume"], request.get("setup", 0.0), request.get("step", 0.0)


#: The fields of a request that filter slots.
FILTERS = ("min_performance", "max_price", "proper")


def proper_slots(
    slots: np.ndarray, min_performance=0.0, max_price=INF, proper=None
) -> list[Slot]:
    """Return the slots that pass the filters."""
    fields = ("node", "start", "end", "performance", "price")
    return [
        Slot(row, int(slots["node"][row]), *(float(slots[f][row]) for f in fields[1:]))
        for row in range(len(slots))
        if slots["performance"][row] >= min_performance
        and slots["price"][row] <= max_price
        and (proper is None or proper[row])
    ]


def price_of(slot: Slot, shape: str, volume: float, setup=0.0, step=0.0) -> float:
    """Return the key that orders slots by cost: price, or (ragged) cost of the part."""
    if shape == "square":
        return slot.price
    if setup == 0.0 and step == 0.0:
        return volume * (slot.price / slot.performance)
    return slot.price * length_on(slot.performance, volume, setup, step)


def window_of(
    start: float, parts, shape: str, volume: float, setup=0.0, step=0.0
) -> Window:
    """Return the window of n slots at a start, without checking that it fits."""
    by_node = sorted(parts, key=lambda slot: slot.node)
    nodes = tuple(slot.node for slot in by_node)
    rows = tuple(slot.row for slot in by_node)
    terms = (volume, setup, step)
    prices = tuple(sorted(price_of(slot, shape, *terms) for slot in parts))
    runtime = max(length_on(slot.performance, *terms) for slot in parts)
    cost = runtime * exact(prices) if shape == "square" else exact(prices)
    return Window(start, runtime, cost, prices, nodes, rows)


def is_live(slot: Slot, start: float, length: float, deadline: float) -> bool:
    """Return True if a part of this length from `start` on fits into the slot."""
    return slot.start <= start and start + length <= min(slot.end, deadline)


def cheapest_sets(
    slots: list[Slot], start: float, shape: str, nodes: int, *terms: float
) -> Iterator[list[Slot]]:
    """Yield the n cheapest slots for each upper bound on the length of a window."""
    slots = sorted(slots, key=lambda slot: (price_of(slot, shape, *terms), slot.node))
    lengths = {slot: length_on(slot.performance, *terms) for slot in slots}
    for limit in sorted(set(lengths.values())):
        allowed = [slot for slot in slots if lengths[slot] <= limit]
        if shape == "square":
            allowed = [slot for slot in allowed if start + limit <= slot.end]
        if len(allowed) >= nodes:
            yield allowed[:nodes]


def all_windows(
    slots: np.ndarray,
    shape: str,
    *,
    only_cheapest: bool = False,
    nodes: int,
    volume: float,
    budget: float = INF,
    earliest: float = -INF,
    deadline: float = INF,
    setup: float = 0.0,
    step: float = 0.0,
    latest: float = INF,
    max_runtime: float = INF,
    **filters,
) -> Iterator[Window]:
    """Yield every window within budget and deadline, at the starts of all slots.

    For larger cases, `only_cheapest` yields the n cheapest slots for each length of a
    window. The best window is among them, because replacing a slot by a cheaper one
    that is not slower never makes a window worse.
    """
    usable = proper_slots(slots, **filters)
    terms = (volume, setup, step)
    for start in sorted({max(float(s), earliest) for s in slots["start"]}):
        if start > latest:
            break
        live = [
            s
            for s in usable
            if is_live(s, start, length_on(s.performance, *terms), deadline)
        ]
        if only_cheapest:
            sets = cheapest_sets(live, start, shape, nodes, *terms)
        else:
            sets = combinations(live, nodes)
        for parts in sets:
            window = window_of(start, parts, shape, *terms)
            lengths = [window.runtime] * nodes
            if shape == "ragged":
                lengths = [length_on(slot.performance, *terms) for slot in parts]
            if (
                len(set(window.nodes)) == nodes
                and all(map(is_live, parts, repeat(start), lengths, repeat(deadline)))
                and met(window.cost, budget)
                and window.runtime <= max_runtime
            ):
                yield window


VALUE = {
    "start": lambda window: window.start,
    "finish": lambda window: window.start + window.runtime,
    "runtime": lambda window: window.runtime,
    "cost": lambda window: window.cost,
}


def best_of(windows: list[Window], criterion: str, shape: str) -> Best | None:
    """Return the best window by (value, start, cost, node ids).

    Among windows of equal value and start (square: and runtime) only the n cheapest in
    cost order is compared, even if rounding makes the costs of others equal.
    """
    value = VALUE[criterion]
    cheapest: dict[tuple[float, ...], Window] = {}
    for window in windows:
        key = (value(window), window.start)
        key += (window.runtime,) if shape == "square" else ()
        rank = (window.cost, window.prices, window.nodes)
        best = cheapest.get(key)
        if best is None or rank < (best.cost, best.prices, best.nodes):
            cheapest[key] = window
    return min(
        (Best(value(w), w.start, w.cost, w.nodes, w.rows) for w in cheapest.values()),
        key=lambda best: best[:4],
        default=None,
    )


def steps_in_order(
    slots: np.ndarray,
    shape: str,
    *,
    volume: float,
    earliest: float = -INF,
    deadline: float = INF,
    setup: float = 0.0,
    step: float = 0.0,
    latest: float = INF,
    max_runtime: float = INF,
    **filters,
) -> Iterator[tuple[float, float, list[Slot]]]:
    """Yield (start, group, live slots) for every start, group and step in order.

    A group contains all slots that run a part within a length, which identifies the
    group; shorter lengths come first. Ragged windows have a single group.
    """
    terms = (volume, setup, step)
    usable = [
        slot
        for slot in proper_slots(slots, **filters)
        if length_on(slot.performance, *terms) <= max_runtime
    ]
    steps = sorted(usable, key=lambda s: (max(s.start, earliest), s.start, s.node))
    for start in sorted({max(s.start, earliest) for s in steps}):
        if start > latest:
            return
        groups = sorted({length_on(s.performance, *terms) for s in usable})
        for group in groups if shape == "square" else [INF]:
            for last, newest in enumerate(steps):
                if max(newest.start, earliest) != start:
                    continue
                live = []
                for slot in steps[: last + 1]:
                    own = length_on(slot.performance, *terms)
                    length = group if shape == "square" else own
                    if own <= group and is_live(slot, start, length, deadline):
                        live.append(slot)
                yield start, group, live


def first_window(
    slots: np.ndarray,
    shape: str,
    *,
    nodes: int,
    volume: float,
    budget: float = INF,
    setup: float = 0.0,
    step: float = 0.0,
    **others,
) -> Best | None:
    """Return the window of AMP and FirstFit: the first step whose n cheapest fit."""
    terms = (volume, setup, step)
    steps = steps_in_order(
        slots, shape, volume=volume, setup=setup, step=step, **others
    )
    for start, _, live in steps:
        live.sort(key=lambda s: (price_of(s, shape, *terms), s.node))
        if len(live) >= nodes:
            found = window_of(start, live[:nodes], shape, *terms)
            if met(found.cost, budget):
                return Best(start, start, found.cost, found.nodes, found.rows)
    return None


def best_windows(
    slots: np.ndarray, shape: str, *, only_cheapest: bool = False, **request
) -> dict[str, Best | None]:
    """Return the best window, or None, by first, start, finish, runtime and cost."""
    windows = list(all_windows(slots, shape, only_cheapest=only_cheapest, **request))
    found = {name: best_of(windows, name, shape) for name in VALUE}
    return {"first": first_window(slots, shape, **request)} | found

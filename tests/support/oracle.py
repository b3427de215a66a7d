"""The best window by looking at every window: tiny cases only, but obviously right.

Plain Python floats, one expression for each quantity, no sums but left to right
(`sum` compensates from Python 3.12 on). Written from the rules alone, to judge both
the published algorithms and the fast kernels.
"""

from collections.abc import Iterator
from itertools import combinations, repeat
from typing import NamedTuple

import numpy as np

INF = float("inf")


class Best(NamedTuple):
    value: float
    start: float
    cost: float
    nodes: tuple[int, ...]  # ascending
    rows: tuple[int, ...]  # in the order of the nodes


class Slot(NamedTuple):
    row: int
    node: int
    start: float
    end: float
    performance: float
    price: float


class Window(NamedTuple):
    start: float
    runtime: float
    cost: float
    prices: tuple[float, ...]  # or part costs, ascending: settle what rounding hides
    nodes: tuple[int, ...]
    rows: tuple[int, ...]


def add(numbers) -> float:
    total = 0.0
    for number in numbers:
        total = total + number
    return total


def proper_slots(
    slots: np.ndarray, min_performance=0.0, max_price=INF, proper=None
) -> list[Slot]:
    fields = ("node", "start", "end", "performance", "price")
    return [
        Slot(row, int(slots["node"][row]), *(float(slots[f][row]) for f in fields[1:]))
        for row in range(len(slots))
        if slots["performance"][row] >= min_performance
        and slots["price"][row] <= max_price
        and (proper is None or proper[row])
    ]


def price_of(slot: Slot, shape: str, volume: float) -> float:
    """What orders slots by cost: the price, or (ragged) the cost of the part."""
    return slot.price if shape == "square" else volume * (slot.price / slot.performance)


def window_of(start: float, parts, shape: str, volume: float) -> Window:
    """The window that n slots form at a start, fitting or not."""
    by_node = sorted(parts, key=lambda slot: slot.node)
    nodes = tuple(slot.node for slot in by_node)
    rows = tuple(slot.row for slot in by_node)
    prices = tuple(sorted(price_of(slot, shape, volume) for slot in parts))
    runtime = volume / min(slot.performance for slot in parts)
    cost = runtime * add(prices) if shape == "square" else add(prices)
    return Window(start, runtime, cost, prices, nodes, rows)


def is_live(slot: Slot, start: float, length: float, deadline: float) -> bool:
    return slot.start <= start and start + length <= min(slot.end, deadline)


def cheapest_sets(
    slots: list[Slot], start: float, shape: str, nodes: int, volume: float
) -> Iterator[list[Slot]]:
    """The n cheapest slots for each length that a window may have at most."""
    slots = sorted(slots, key=lambda slot: (price_of(slot, shape, volume), slot.node))
    for limit in sorted({volume / slot.performance for slot in slots}):
        allowed = [slot for slot in slots if volume / slot.performance <= limit]
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
    **filters,
) -> Iterator[Window]:
    """Every window within budget and deadline at every start that can matter.

    For larger cases, `only_cheapest` takes the n cheapest slots for each length of a
    window: exchanging a slot for a cheaper, no slower one never makes a window worse,
    so the best is among these.
    """
    usable = proper_slots(slots, **filters)
    for start in sorted({max(float(s), earliest) for s in slots["start"]}):
        known = [
            s for s in usable if is_live(s, start, volume / s.performance, deadline)
        ]
        if only_cheapest:
            sets = cheapest_sets(known, start, shape, nodes, volume)
        else:
            sets = combinations(known, nodes)
        for parts in sets:
            window = window_of(start, parts, shape, volume)
            lengths = [window.runtime] * nodes
            if shape == "ragged":
                lengths = [volume / slot.performance for slot in parts]
            if (
                len(set(window.nodes)) == nodes
                and all(map(is_live, parts, repeat(start), lengths, repeat(deadline)))
                and window.cost <= budget
            ):
                yield window


VALUE = {
    "start": lambda window: window.start,
    "finish": lambda window: window.start + window.runtime,
    "runtime": lambda window: window.runtime,
    "cost": lambda window: window.cost,
}


def best_of(windows: list[Window], criterion: str, shape: str) -> Best | None:
    """The best by value, start, cost, node ids.

    Windows whose costs differ by less than rounding shows are no tie: among those of
    one value and start (square: and runtime) the n cheapest in cost order stand.
    """
    value = VALUE[criterion]
    cheapest: dict[tuple[float, ...], Window] = {}
    for window in windows:
        key = (value(window), window.start)
        key += (window.runtime,) if shape == "square" else ()
        rank = (window.cost, window.prices, window.nodes)
        held = cheapest.get(key)
        if held is None or rank < (held.cost, held.prices, held.nodes):
            cheapest[key] = window
    return min(
        (Best(value(w), w.start, w.cost, w.nodes, w.rows) for w in cheapest.values()),
        key=lambda best: best[:4],
        default=None,
    )


def first_window(
    slots: np.ndarray,
    shape: str,
    *,
    nodes: int,
    volume: float,
    budget: float = INF,
    earliest: float = -INF,
    deadline: float = INF,
    **filters,
) -> Best | None:
    """AMP, and FirstFit: every start in turn, its groups fastest first, its steps."""
    usable = proper_slots(slots, **filters)
    steps = sorted(usable, key=lambda s: (max(s.start, earliest), s.start, s.node))
    for start in sorted({max(s.start, earliest) for s in steps}):
        fastest_first = sorted({s.performance for s in usable}, reverse=True)
        for group in fastest_first if shape == "square" else [0.0]:
            for last, step in enumerate(steps):
                if max(step.start, earliest) != start:
                    continue
                live = [
                    s
                    for s in steps[: last + 1]
                    if s.performance >= group
                    and is_live(s, start, volume / (group or s.performance), deadline)
                ]
                live.sort(key=lambda s: (price_of(s, shape, volume), s.node))
                if len(live) >= nodes:
                    found = window_of(start, live[:nodes], shape, volume)
                    if found.cost <= budget:
                        return Best(start, start, found.cost, found.nodes, found.rows)
    return None


def best_windows(
    slots: np.ndarray, shape: str, *, only_cheapest: bool = False, **request
) -> dict[str, Best | None]:
    """The best window, or None, for first, start, finish, runtime and cost."""
    windows = list(all_windows(slots, shape, only_cheapest=only_cheapest, **request))
    found = {name: best_of(windows, name, shape) for name in VALUE}
    return {"first": first_window(slots, shape, **request)} | found

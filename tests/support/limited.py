"""The best window within limits on sums over its parts, by looking at every window.

Plain Python, written from the rules alone: a sum is the exact one, rounded once, and
meets its amount by the rule of `oracle.met`; of
windows of one value and start (square: and runtime) the one of least cost stands, and
of equal costs the one whose slots come first in cost order; then node ids decide.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from oracle import (
    INF,
    VALUE,
    Best,
    Window,
    all_windows,
    length_on,
    met,
    price_of,
    proper_slots,
    steps_in_order,
    terms_of,
    window_of,
)


class Limit(NamedTuple):
    weights: list[float]  # one a row
    by_length: bool
    side: str
    amount: float


def use_of(limit: Limit, row: int, length: float) -> float:
    weight = limit.weights[row]
    return weight * length if limit.by_length else weight


def keeps(window: Window, slots, shape: str, limits, *terms: float) -> bool:
    """Whether a window is within all limits."""
    for limit in limits:
        uses = [
            use_of(
                limit,
                row,
                window.runtime
                if shape == "square"
                else length_on(float(slots["performance"][row]), *terms),
            )
            for row in window.rows
        ]
        if not all(abs(use) <= 1e290 for use in uses):
            return False
        total = math.fsum(uses)
        if not met(total, limit.amount, limit.side == ">="):
            return False
    return True


def in_cost_order(window: Window, slots, shape: str, *terms: float) -> tuple:
    """What decides between windows of equal cost, one start and one runtime."""
    return tuple(
        sorted(
            (price_of(slot, shape, *terms), slot.node)
            for slot in proper_slots(slots)
            if slot.row in window.rows
        )
    )


def best_within(slots: np.ndarray, shape: str, limits, **request) -> dict:
    """The best window, or None, for first, start, finish, runtime and cost."""
    terms = terms_of(request)
    windows = [
        window
        for window in all_windows(slots, shape, **request)
        if keeps(window, slots, shape, limits, *terms)
    ]
    found = {"first": first_within(slots, shape, limits, **request)}
    for criterion, value in VALUE.items():
        stands: dict[tuple[float, ...], tuple] = {}
        for window in windows:
            key = (value(window), window.start)
            key += (window.runtime,) if shape == "square" else ()
            rank = (window.cost, in_cost_order(window, slots, shape, *terms))
            if key not in stands or rank < stands[key][0]:
                stands[key] = (rank, window)
        found[criterion] = min(
            (
                Best(value(w), w.start, w.cost, w.nodes, w.rows)
                for _, w in stands.values()
            ),
            key=lambda best: best[:4],
            default=None,
        )
    return found


def first_within(
    slots: np.ndarray,
    shape: str,
    limits,
    *,
    nodes: int,
    volume: float,
    budget: float = INF,
    setup: float = 0.0,
    step: float = 0.0,
    **others,
) -> Best | None:
    """The cheapest windows of the first group at the first step that has any."""
    terms = (volume, setup, step)
    steps = steps_in_order(
        slots, shape, volume=volume, setup=setup, step=step, **others
    )
    for start, group, live in steps:
        windows = [
            window_of(start, parts, shape, *terms)
            for parts in combinations(live, nodes)
        ]
        stands = [
            (window.cost, in_cost_order(window, slots, shape, *terms), window)
            for window in windows
            if window.runtime == group or shape == "ragged"
            if met(window.cost, budget) and keeps(window, slots, shape, limits, *terms)
        ]
        if stands:
            w = min(stands, key=lambda each: each[:2])[2]
            return Best(start, start, w.cost, w.nodes, w.rows)
    return None

"""Exhaustive search for the best window within limits on sums over its parts.

Plain Python, written from the definition. A sum is computed exactly, rounded once, and
compared by `oracle.met`. Among windows of equal value and start (square: and runtime)
the cheapest wins, then the one whose slots come first in cost order; then node ids
decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    """A limit on a sum over the parts; `by_length`: weights are per unit of time."""

    weights: list[float]  # one per slot
    by_length: bool
    side: str
    amount: float


def use_of(limit: Limit, row: int, length: float) -> float:
    """Return the contribution of a part to the sum of a limit."""
    weight = limit.weights[row]
    return weight * length if limit.by_length else weight


def meets_limits(window: Window, slots, shape: str, limits, *terms: float) -> bool:
    """Return True if a window meets all limits."""
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
    """Return the tie-break key of windows of equal cost, start and runtime."""
    return tuple(
        sorted(
            (price_of(slot, shape, *terms), slot.node)
            for slot in proper_slots(slots)
            if slot.row in window.rows
        )
    )


def best_within(slots: np.ndarray, shape: str, limits, **request) -> dict:
    """Return the best windows that meet limits on sums; see `best_that`."""
    terms = terms_of(request)

    def meets(window: Window) -> bool:
        return meets_limits(window, slots, shape, limits, *terms)

    def order(window: Window) -> tuple:
        return window.cost, in_cost_order(window, slots, shape, *terms)

    return best_that(meets, order, slots, shape, **request)


def best_that(
    meets: Callable[[Window], bool],
    order: Callable[[Window], tuple],
    slots: np.ndarray,
    shape: str,
    **request,
) -> dict:
    """Return the best window, or None, by first, start, finish, runtime and cost.

    `meets` returns whether a window is admitted. Among windows of equal value and start
    (square: and runtime) the one that `order` puts first is a candidate.
    """
    windows = [w for w in all_windows(slots, shape, **request) if meets(w)]
    found = {"first": first_that(meets, order, slots, shape, **request)}
    for criterion, value in VALUE.items():
        candidates: dict[tuple[float, ...], tuple] = {}
        for window in windows:
            key = (value(window), window.start)
            key += (window.runtime,) if shape == "square" else ()
            rank = order(window)
            if key not in candidates or rank < candidates[key][0]:
                candidates[key] = (rank, window)
        found[criterion] = min(
            (
                Best(value(w), w.start, w.cost, w.nodes, w.rows)
                for _, w in candidates.values()
            ),
            key=lambda best: best[:4],
            default=None,
        )
    return found


def first_that(
    meets: Callable[[Window], bool],
    order: Callable[[Window], tuple],
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
    """Return the cheapest window of the first length at the first step that has one."""
    terms = (volume, setup, step)
    steps = steps_in_order(
        slots, shape, volume=volume, setup=setup, step=step, **others
    )
    for start, group, live in steps:
        windows = [
            window_of(start, parts, shape, *terms)
            for parts in combinations(live, nodes)
        ]
        candidates = [
            (order(window), window)
            for window in windows
            if window.runtime == group or shape == "ragged"
            if met(window.cost, budget)
            if meets(window)
        ]
        if candidates:
            w = min(candidates, key=lambda each: each[0])[1]
            return Best(start, start, w.cost, w.nodes, w.rows)
    return None

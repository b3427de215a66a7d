"""Checks that a window is valid and that no better one exists, without the kernels.

For each performance group (square) or for all slots (ragged), one sweep in plain
Python considers only windows that would be strictly better, and computes the cheapest
of them. The window is the best if and only if that one exceeds the budget.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def assert_best(
    slots: npt.NDArray[Any], job: Any, criterion: str, shape: str, window: Any
) -> None:
    """Fail unless `window` is valid and best, or None if there is no valid window.

    The times of the slots must be whole numbers: the sweep rearranges t + d <= end.
    """
    if window is not None:
        assert_valid(slots, job, shape, window)
    fit = (slots["performance"] >= job.min_performance) & (
        slots["price"] <= job.max_price
    )
    slots = slots[fit]
    if shape == "ragged":
        lengths = job.volume / slots["performance"]
        assert_nothing_better(slots, lengths, job, criterion, window)
        return
    for performance in np.unique(slots["performance"]).tolist():
        group = slots[slots["performance"] >= performance]
        lengths = np.full(group.size, job.volume / performance)
        assert_nothing_better(group, lengths, job, criterion, window)


def assert_valid(slots: npt.NDArray[Any], job: Any, shape: str, window: Any) -> None:
    """Check all constraints of a window: nodes, times, lengths, costs, budget."""
    parts = window.slots
    chosen = slots[parts["row"]]
    assert parts.size == np.unique(parts["node"]).size == job.nodes
    assert (parts["node"] == chosen["node"]).all()
    assert (parts["start"] == window.start).all()
    assert window.start >= job.earliest
    assert (chosen["start"] <= window.start).all()
    lengths = job.volume / chosen["performance"]
    if shape == "square":
        lengths[:] = lengths.max()
    assert (parts["end"] == window.start + lengths).all()
    assert (parts["end"] <= np.minimum(chosen["end"], job.deadline)).all()
    assert (chosen["performance"] >= job.min_performance).all()
    assert (chosen["price"] <= job.max_price).all()
    assert np.allclose(parts["cost"], lengths * chosen["price"], rtol=1e-12, atol=0)
    assert math.isclose(window.cost, parts["cost"].sum(), rel_tol=1e-12)
    assert window.cost <= job.budget * (1 + 2.0**-50)
    assert window.runtime == lengths.max()
    assert window.finish == window.start + window.runtime
    assert math.isclose(window.processor_time, lengths.sum(), rel_tol=1e-12)


def assert_nothing_better(
    slots: npt.NDArray[Any], lengths: Floats, job: Any, criterion: str, window: Any
) -> None:
    """Sweep over the slots that a better window could use; fail if there is one."""
    begin = np.maximum(slots["start"], job.earliest)
    costs = lengths * slots["price"]
    deadline, limit = job.deadline, job.budget
    keep = np.ones(slots.size, bool)
    if window is not None:
        match criterion:
            case "first" | "start":
                keep = begin < window.start
            case "finish":
                deadline = min(deadline, np.nextafter(window.finish, -np.inf))
            case "runtime":
                keep = lengths < window.runtime
            case "cost":
                limit = window.cost * (1 - 1e-12)
    last = np.minimum(slots["end"], deadline) - lengths
    keep &= begin <= last
    begin, last, costs, node = begin[keep], last[keep], costs[keep], slots["node"][keep]
    # Drop slots that exceed the limit even together with the n - 1 cheapest nodes.
    if np.unique(node).size < job.nodes:
        return
    cheapest = np.full(int(node.max()) + 1, np.inf)
    np.minimum.at(cheapest, node, costs)
    others = np.partition(cheapest, job.nodes - 1)[: job.nodes - 1].sum()
    keep = costs + others <= limit
    least = least_cost(begin[keep], last[keep], costs[keep], job.nodes)
    assert least > limit, f"{criterion}: a better window costs {least}, limit {limit}"


def least_cost(begin: Floats, last: Floats, costs: Floats, n: int) -> float:
    """Return the least sum of n costs among slots with begin <= t <= last, over t."""
    order = np.argsort(begin, kind="stable")
    live: list[float] = []
    expiry: list[tuple[float, float]] = []
    best, now = math.inf, -math.inf
    for t, until, cost in zip(
        begin[order].tolist(), last[order].tolist(), costs[order].tolist(), strict=True
    ):
        if t > now:
            best = min(best, math.fsum(live[:n]) if len(live) >= n else math.inf)
            now = t
            while expiry and expiry[0][0] < t:
                del live[bisect_left(live, heapq.heappop(expiry)[1])]
        insort(live, cost)
        heapq.heappush(expiry, (until, cost))
    return min(best, math.fsum(live[:n]) if len(live) >= n else math.inf)

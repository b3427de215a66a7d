"""Reference model of batch scheduling, for a few jobs on a few slots.

Free time is a list of slots, and each part is cut out of its slot. Windows are found
by exhaustive search (`oracle`), and the choice enumerates all combinations of
alternatives.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import oracle

from slotkern._kernels.request import FIELDS

INF = math.inf
OPTIONS = ("nodes", *FIELDS)


class Placed(NamedTuple):
    """A window, with node and length of each part."""

    start: float
    runtime: float
    cost: float
    parts: tuple[tuple[int, float], ...]  # node, length
    rows: tuple[int, ...]  # rows of the original slots, in the order of `parts`


MEASURES = {
    "start": lambda window: window.start,
    "finish": lambda window: window.start + window.runtime,
    "runtime": lambda window: window.runtime,
    "cost": lambda window: window.cost,
    "processor_time": lambda window: oracle.add(d for _, d in window.parts),
}


class Free:
    """Free time: an array like the slots, and the original row of each piece."""

    def __init__(
        self,
        slots: np.ndarray,
        rows: list[int] | None = None,
        whole: np.ndarray | None = None,
    ) -> None:
        self.slots, self.whole = slots, slots if whole is None else whole
        self.rows = list(range(len(slots))) if rows is None else rows

    def find(self, request: Any, criterion: str, shape: str) -> Placed | None:
        """Return the best window by exhaustive search."""
        options = {name: getattr(request, name) for name in OPTIONS}
        if len(self.slots) == 0:
            return None
        best = oracle.best_windows(self.slots, shape, **options)[criterion]
        if best is None:
            return None
        terms = (request.volume, request.setup, request.step)
        own = [
            oracle.length_on(float(self.slots["performance"][row]), *terms)
            for row in best.rows
        ]
        lengths = own if shape == "ragged" else [max(own)] * len(own)
        return Placed(
            best.start,
            max(own),
            best.cost,
            tuple(zip(best.nodes, lengths, strict=True)),
            tuple(self.rows[row] for row in best.rows),
        )

    def without(self, window: Placed) -> Free:
        """Return the free time that is left after a window is cut out."""
        pieces, rows = [], []
        lengths = dict(window.parts)
        for slot, row in zip(self.slots, self.rows, strict=True):
            node, start, end = (slot[name].item() for name in ("node", "start", "end"))
            left, right = end, end
            if node in lengths and start <= window.start < end:
                left, right = window.start, window.start + lengths[node]
            for a, b in ((start, left), (right, end)):
                if a < b:
                    piece = slot.copy()
                    piece["start"], piece["end"] = a, b
                    pieces.append(piece)
                    rows.append(row)
        order = sorted(
            range(len(pieces)), key=lambda i: (pieces[i]["start"], pieces[i]["node"])
        )
        out = np.array([pieces[i] for i in order], self.slots.dtype)
        return Free(out, [rows[i] for i in order], self.whole)

    def reason(self, request: Any, shape: str) -> str:
        """Return why there is no window: nodes, time or budget."""
        fast = self.whole["performance"] >= request.min_performance
        if len(set(self.whole["node"][fast].tolist())) < request.nodes:
            return "nodes"
        rich = request.replace(budget=INF)
        return "time" if self.find(rich, "start", shape) is None else "budget"


def cut(
    free: Free, requests: list[Any], criteria: list[str], shape: str, most: float
) -> tuple[list[list[Placed]], list[str]]:
    """Return disjoint alternatives of all jobs, and the reason of jobs without one."""
    found: list[list[Placed]] = [[] for _ in requests]
    reasons = ["scheduled"] * len(requests)
    alive = list(range(len(requests)))
    while alive:
        for j in list(alive):
            window = free.find(requests[j], criteria[j], shape)
            if window is None:
                if not found[j]:
                    reasons[j] = free.reason(requests[j], shape)
                alive.remove(j)
                continue
            found[j].append(window)
            free = free.without(window)
            if len(found[j]) >= most:
                alive.remove(j)
    return found, reasons


def usual(expenses: list[list[float]]) -> float:
    """Return the limit of eq. 5: the sum of the mean expenses, each rounded up."""
    return oracle.exact(
        max(math.ceil(oracle.add(own) / len(own)), min(own)) for own in expenses
    )


def best_choice(
    values: list[list[float]], expenses: list[list[float]], limit: float, sign: int
) -> float | None:
    """Return the least (sign -1: largest) sum of one value per job within a limit."""
    sums = [
        oracle.add(values[j][k] for j, k in enumerate(choice))
        for choice in itertools.product(*(range(len(own)) for own in values))
        if oracle.met(oracle.exact(expenses[j][k] for j, k in enumerate(choice)), limit)
    ]
    return min(sums, key=lambda total: sign * total, default=None)


def share_of(left: float, fraction: float) -> float:
    """Return a sub-batch's share of a limit; a negative rest is not divided."""
    return left if left < 0 else left * fraction


def fitting(expenses: list[list[float]], limit: float) -> list[bool]:
    """Return which jobs fit a limit together with earlier ones, by least expenses.

    Jobs with negative expenses may meet a negative limit together.
    """
    savings = [0.0]
    for own in reversed(expenses):
        savings.append(savings[-1] + min(0.0, min(own)) if limit < 0 else 0.0)
    savings.reverse()
    kept, least = [], []
    for own, later in zip(expenses, savings[1:], strict=True):
        fits = oracle.met(oracle.exact([*least, min(own), later]), limit)
        least += [min(own)] if fits else []
        kept.append(fits)
    return kept if oracle.met(oracle.exact(least), limit) else [False] * len(kept)

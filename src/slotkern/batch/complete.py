"""All windows that a better plan of a small batch may have.

A plan whose targets and expenses do not rise if a window begins earlier can be shifted
until every window begins when a slot begins, at its job's earliest start, or when a
part of another job ends. So the starts are those times plus sums of lengths of parts of
different other jobs (`_starts`), up to the rounding of these sums.

Each window of a total below its job's limit at given prices is listed; the limits are
such that a plan with any other window is no better than the plan known (reduced cost
fixing). The number of starts grows exponentially with the jobs, so that the list is
given up when it is longer than allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from slotkern.batch.plans import Planner
from slotkern.batch.pricing import PricedWindow, Prices

__all__ = ["all_windows"]

#: The largest number of starts of a job, and of sets of slots at a start.
_STARTS, _SETS = 4096, 4096
#: Relative rounding error that is granted to a limit or a budget.
_ROUNDING = 2.0**-40


def all_windows(
    planner: Planner,
    prices: Prices,
    factor: float,
    limits: Sequence[float],
    most: int,
) -> list[tuple[int, PricedWindow]] | None:
    """Return job and window of all windows within the limits; None if above `most`.

    `limits`: the largest total of each job at the prices.
    """
    listed: list[tuple[int, PricedWindow]] = []
    for i in range(len(planner.jobs)):
        starts = _starts(planner, i)
        if starts is None:
            return None
        limit = limits[i] + _ROUNDING * abs(limits[i])
        for start in starts.tolist():
            some = _at(planner, i, start, prices, factor, limit)
            if some is None:
                return None
            listed += [(i, found) for found in some]
            if len(listed) > most:
                return None
    return listed


def _starts(planner: Planner, i: int) -> NDArray[np.float64] | None:
    """Return the starts of job i in plans that are shifted to the left."""
    job, free = planner.jobs[i], planner.free
    earliest = [each.request.earliest for each in planner.jobs]
    starts = np.unique(np.concatenate([free.start, earliest]))
    starts = starts[np.isfinite(starts)]
    for other in planner.jobs:
        if other is job:
            continue
        rows = free.row[other.usable[free.row]]
        sums = starts[:, None] + np.append(0.0, np.unique(other.own[rows]))
        starts = np.unique(sums)
        if len(starts) > _STARTS:
            return None
    latest: float = min(job.request.latest, float(free.end.max(initial=-np.inf)))
    some: NDArray[np.float64] = starts[starts >= job.request.earliest]
    return some[some <= latest]


def _at(
    planner: Planner, i: int, start: float, prices: Prices, factor: float, limit: float
) -> list[PricedWindow] | None:
    """Return the windows of job i from a start within the limit; None if too many."""
    job, free = planner.jobs[i], planner.free
    rows = job.rows_at(free, start)
    found: list[PricedWindow] = []
    for count, some in enumerate(combinations(rows.tolist(), job.request.nodes)):
        if count == _SETS:
            return None
        window = job.window(0.0, start, np.array(some), planner.aim)
        if not job.fits(window):
            continue
        paid = prices.paid(free.node[window.rows], start, window.end)
        if window.cost + factor * window.expense + paid <= limit:
            found.append(window)
    return found

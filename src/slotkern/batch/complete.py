"""All windows that a better plan of a small batch may have.

A plan whose targets and expenses do not rise if a window begins earlier can be shifted
until every window begins when a slot begins, at its job's earliest start, or when a
part of another job ends. So the starts are those times plus sums of lengths of parts of
different other jobs (`_starts`), up to the rounding of these sums.

Each window of a total below its job's limit at given prices is listed; the limits are
such that a plan with any other window is no better than the plan known (reduced cost
fixing). The number of starts grows exponentially with the jobs, so that the search is
given up when it would examine more sets of slots than allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from slotkern.batch.plans import Planner
from slotkern.batch.pricing import PricedWindow, Prices

__all__ = ["all_windows"]

#: The largest number of starts of a job.
_STARTS = 4096
#: Relative rounding error that is granted to a limit of a total.
_ROUNDING = 2.0**-40


def all_windows(
    planner: Planner,
    prices: Prices,
    factor: float,
    limits: Sequence[float],
    most: int,
) -> list[tuple[int, PricedWindow]] | None:
    """Return job and window of all windows within the limits; None if not decided.

    `limits`: the largest total of each job at the prices. At most `most` sets of slots
    are examined; each is a unit of the planner's work.
    """
    last = planner.work + most
    listed: list[tuple[int, PricedWindow]] = []
    for i in range(len(planner.jobs)):
        starts = _starts(planner, i)
        if starts is None:
            return None
        limit = limits[i] + _ROUNDING * abs(limits[i])
        for start in starts.tolist():
            rows = planner.jobs[i].rows_at(planner.free, start)
            planner.work += math.comb(len(rows), planner.jobs[i].request.nodes)
            if planner.work > last:
                planner.work = last
                return None
            some = _at(planner, i, start, rows, prices, factor, limit)
            listed += [(i, found) for found in some]
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
    planner: Planner,
    i: int,
    start: float,
    rows: NDArray[np.int64],
    prices: Prices,
    factor: float,
    limit: float,
) -> list[PricedWindow]:
    """Return the windows of job i from a start, on some rows, within the limit."""
    job, free = planner.jobs[i], planner.free
    found: list[PricedWindow] = []
    for some in combinations(rows.tolist(), job.request.nodes):
        window = job.window(0.0, start, np.array(some), planner.aim)
        if not job.fits(window):
            continue
        paid = prices.paid(free.node[window.rows], start, window.end)
        if window.cost + factor * window.expense + paid <= limit:
            found.append(window)
    return found

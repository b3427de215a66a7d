"""Starts, run times, costs and processors that a policy has assigned to jobs.

The processors of a job are spans of consecutive numbers: `count[job]` rows of `spans`
from row `first[job]` on, each a pair (lowest number, number of processors).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slotkern.tariffs import Tariff

__all__ = ["Placements", "Pricing"]

#: Returns the tariff of all processors, with a price for every time from begin to end.
Pricing = Callable[[float, float], Tariff]


@dataclass
class Placements:
    """The placements of a flow: one entry for each job, times in seconds."""

    start: NDArray[np.float64]  # NaN: the job has no window
    run: NDArray[np.float64]  # start to end
    cost: NDArray[np.float64]
    first: NDArray[np.int64]  # row of the first span
    count: NDArray[np.int64]  # number of spans
    spans: NDArray[np.int32]  # (lowest processor, number of processors)
    most_waiting: int = 0  # longest queue

    @staticmethod
    def empty(jobs: int) -> Placements:
        """Return placements of `jobs` jobs that are not placed yet."""
        none = np.zeros(jobs, np.int64)
        times = (np.full(jobs, np.nan), np.zeros(jobs), np.zeros(jobs))
        return Placements(*times, none, none.copy(), np.empty((0, 2), np.int32))

    def subset(self, rows: NDArray[np.int64]) -> Placements:
        """Return the placements of the jobs at `rows`."""
        names = ("start", "run", "cost", "first", "count")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def set_processors(self, nodes: list[NDArray[np.int32]]) -> None:
        """Set the processors of all jobs, as spans of consecutive numbers.

        `nodes` has one ascending array for each job. O(total number of processors).
        """
        self.count = np.array([len(each) for each in nodes], np.int64)
        flat = np.concatenate(nodes)
        new = np.ones(len(flat), np.bool_)  # True at the first number of a span
        new[1:] = np.diff(flat) != 1
        edge = np.cumsum(self.count)
        new[edge[edge < len(flat)]] = True
        begin = np.flatnonzero(new)
        size = np.diff(np.append(begin, len(flat)))
        self.spans = np.stack((flat[begin], size.astype(np.int32)), axis=1)
        rank = np.cumsum(new)
        after = np.concatenate(([0], rank))[edge]
        self.first = np.concatenate(([0], after[:-1])).astype(np.int64)
        self.count = np.diff(np.concatenate(([0], after))).astype(np.int64)

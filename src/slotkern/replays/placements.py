"""Where a policy has placed jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Placements"]


@dataclass
class Placements:
    """One entry a job; its processors are `count` spans of `spans` from `first` on."""

    start: NDArray[np.float64]  # NaN: nowhere
    run: NDArray[np.float64]
    cost: NDArray[np.float64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    spans: NDArray[np.int32]
    most_waiting: int = 0

    @staticmethod
    def empty(jobs: int) -> Placements:
        """Room for so many jobs."""
        none = np.zeros(jobs, np.int64)
        times = (np.full(jobs, np.nan), np.zeros(jobs), np.zeros(jobs))
        return Placements(*times, none, none.copy(), np.empty((0, 2), np.int32))

    def subset(self, rows: NDArray[np.int64]) -> Placements:
        """Some of the jobs."""
        names = ("start", "run", "cost", "first", "count")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def set_processors(self, nodes: list[NDArray[np.int32]]) -> None:
        """Note the processors of every job, each ascending."""
        self.count = np.array([len(each) for each in nodes], np.int64)
        flat = np.concatenate(nodes)
        new = np.ones(len(flat), np.bool_)  # where a span begins
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

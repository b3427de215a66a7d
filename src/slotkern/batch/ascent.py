"""Prices of the cells of free time, raised where windows overlap: subgradient ascent.

Input: free time, divided into cells by a grid, and each job's least window at the
prices so far. Output: the next prices. The Lagrangian bound is concave in the price of
each cell; its subgradient is the share of the cell that the windows use in all, minus
1. A step goes along the mean of the last subgradients, weighted exponentially (the
volume algorithm of Barahona and Anbil, 2000, without its primal part). Its length is a
share of that of Polyak, which grows while the bound rises and is halved when it has not
risen for some rounds; then the ascent continues from the best prices.

The expense of the batch is one more cell, whose size is its limit.

The prices of a linear program over few windows are far from the best ones and change
much between rounds. Those of the ascent are near the best ones after some hundred
searches for each job, and the windows found are good columns.

Cost of a round, besides the searches: O(cells + parts x columns of the grid), since a
part is compared with the cells of its piece.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from slotkern.batch.master import Duals
from slotkern.batch.pricing import Free, PricedWindow

__all__ = ["Ascent"]

Floats = NDArray[np.float64]

#: The number of columns of the grid: at least, at most, and for each round.
_GRID, _FINEST_GRID, _COLUMNS = 40, 120, 0.3
#: The weight of the last subgradient in the mean.
_WEIGHT = 0.1
#: The share of Polyak's step: at first, its growth, and the least before the end.
_STEP, _GROWTH, _LEAST_STEP = 0.1, 1.1, 1e-3
#: Rounds without a larger bound after which the share is halved: at least, and as a
#: share of all rounds.
_PATIENCE, _PATIENCE_SHARE = 6, 0.03
#: A rise of the bound by less than this share counts as none.
_RISE = 1e-4


class Ascent:
    """The prices of cells of free time; after `last` each piece is one cell.

    The more rounds there will be, the finer is the grid and the later are the halvings:
    both end at a larger bound, but rise more slowly.

    Attributes
    ----------
    duals : Duals
        The prices at which the next bound is computed.
    """

    def __init__(
        self, free: Free, limit: float | None, last: float, rounds: int
    ) -> None:
        self._free, self._limit = free, limit
        self._patience = max(_PATIENCE, int(_PATIENCE_SHARE * rounds))
        columns = min(max(_GRID, int(_COLUMNS * rounds)), _FINEST_GRID)
        begin, end = float(free.start.min()), float(free.end.max())
        grid = np.linspace(begin, max(begin, min(end, last)), columns + 1)
        first = np.searchsorted(grid, free.start, "right")
        count = np.maximum(np.searchsorted(grid, free.end) - first, 0) + 1
        piece = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
        column = np.minimum(first[piece] + place, columns)
        self._start = np.where(place == 0, free.start[piece], grid[column - 1])
        self._end = np.where(place == count[piece] - 1, free.end[piece], grid[column])
        some = self._start < self._end
        self._node = free.node[piece][some]
        # The cells of a piece: their number, and the first, by the row of its slot.
        self._count = np.zeros(int(free.row.max()) + 1, np.int64)
        self._first = np.zeros_like(self._count)
        self._count[free.row] = np.bincount(piece[some], minlength=len(free.row))
        self._first[free.row] = np.cumsum(self._count[free.row]) - self._count[free.row]
        self._start, self._end = self._start[some], self._end[some]
        self._size = self._end - self._start
        if limit is not None:
            self._size = np.append(self._size, self._size.sum())
        self._rate = self._best = np.zeros(len(self._size))
        self._bound, self._step, self._stale = -np.inf, _STEP, 0
        self._mean: Floats | None = None

    @property
    def duals(self) -> Duals:
        """The prices of the cells, and that of the expense."""
        amount, expense = self._rate * self._size, 0.0
        if self._limit is not None:
            amount, expense = amount[:-1], float(amount[-1]) / (self._limit or 1.0)
        some = amount > 0
        return Duals(
            self._node[some], self._start[some], self._end[some], amount[some], expense
        )

    def advance(
        self, bound: float, least: Collection[PricedWindow], missed: float
    ) -> bool:
        """Choose the next prices; return False if there are none.

        `bound` and `least` are the bound and the windows at these prices, `missed` the
        distance of the bound to its goal.
        """
        if bound > self._bound + _RISE * abs(self._bound) or self._mean is None:
            self._stale = 0
        else:
            self._stale += 1
        if bound > self._bound:
            self._bound, self._best = bound, self._rate
            self._step *= _GROWTH
        over = self._overload(least)
        if self._stale >= self._patience:
            self._step, self._stale, self._rate = self._step / 2, 0, self._best
        mean = over if self._mean is None else self._mean
        self._mean = _WEIGHT * over + (1 - _WEIGHT) * mean
        way = np.where((self._rate <= 0) & (self._mean < 0), 0.0, self._mean)
        length = float((way * way * self._size).sum())
        if not length > 0 or self._step < _LEAST_STEP:
            return False
        self._rate = np.maximum(self._rate + self._step * missed / length * way, 0.0)
        return bool(np.isfinite(self._rate).all())

    def _overload(self, least: Collection[PricedWindow]) -> Floats:
        """Return the share of each cell that windows use, minus 1."""
        cells = len(self._node)
        used = np.zeros(len(self._size))
        if least:
            row = np.concatenate([found.rows for found in least])
            end = np.concatenate([found.end for found in least])
            start = np.repeat(
                [found.start for found in least], [len(found.rows) for found in least]
            )
            count = self._count[row]
            part = np.repeat(np.arange(len(row)), count)
            before = np.cumsum(count) - count
            cell = np.arange(len(part)) + (self._first[row] - before)[part]
            overlap = np.minimum(self._end[cell], end[part])
            overlap -= np.maximum(self._start[cell], start[part])
            used[:cells] = np.bincount(cell, np.maximum(overlap, 0.0), cells)
            used[:cells] /= self._size[:cells]
        if self._limit is not None:
            expense = sum(found.expense for found in least)
            used[-1] = expense / self._limit if self._limit else 1.0 + expense
        over: Floats = used - 1.0
        return over

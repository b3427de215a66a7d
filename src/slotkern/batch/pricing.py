"""The windows of the jobs of a batch: targets, expenses, free time.

The least window of a job at prices of node-time is found by ``batch/least_window.hpp``
(`slotkern._kernels.pricing`). Here are the jobs in the form that it takes, and the
windows that it returns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pricing import Prices
from slotkern._kernels.request import Request, suitable_rows
from slotkern._kernels.slots import PreparedSlots, filter_rows
from slotkern.batch.options import Measure

__all__ = ["Aim", "Free", "PricedJob", "PricedWindow", "Prices", "whole_time"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Terms of a measure: the amount of each unit of start and of length.
_WHOLE = {"start": (1.0, 0.0), "finish": (1.0, 1.0), "runtime": (0.0, 1.0)}
#: Relative rounding error that is granted to a budget.
_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Free:
    """Pieces of free time: the row of the slot, its node's index, start and end."""

    row: Ints
    node: Ints
    start: Floats
    end: Floats

    def without(self, row: Ints, start: Floats, end: Floats) -> Free:
        """Return the rest of whole slots besides disjoint parts of them."""
        first = np.concatenate([self.start, end])
        last = np.concatenate([self.end, start])
        begin = np.lexsort((first, np.concatenate([self.row, row])))
        order = np.lexsort((last, np.concatenate([self.row, row])))
        first, last = first[begin], last[order]
        rows, rest = np.concatenate([self.row, row])[begin], first < last
        node = np.concatenate([self.node, self.node[row]])[begin]
        return Free(rows[rest], node[rest], first[rest], last[rest])


@dataclass(frozen=True)
class Aim:
    """The target, its sign (-1 to maximize), the expense, and the zero of starts."""

    target: Measure
    expense: Measure
    sign: float
    origin: float

    @property
    def counts_starts(self) -> bool:
        """True if the target contains the start of the window."""
        return isinstance(self.target, str) and self.target in ("start", "finish")


@dataclass(frozen=True)
class Terms:
    """Amounts of a window: for each unit of start and of length, and for each slot."""

    start: float
    length: float
    part: Floats

    def total(self, start: float, length: float, rows: Ints) -> float:
        """Return the amount of a window."""
        whole = self.start * start + self.length * length
        return float(whole + self.part[rows].sum())


@dataclass(frozen=True, eq=False)
class PricedWindow:
    """A window of a job.

    Attributes
    ----------
    total : float
        Its total at the prices of the search.
    start : float
    rows : ndarray of int64
        The rows of its slots, ascending.
    end : ndarray of float64
        The end of the part on each slot.
    cost, expense : float
        Its signed target, with starts from the aim's origin on, and its expense.
    """

    total: float
    start: float
    rows: Ints
    end: Floats
    cost: float
    expense: float

    @property
    def key(self) -> tuple[float, bytes]:
        """An identifier that is equal for equal windows of a job."""
        return self.start, self.rows.tobytes()


class PricedJob:
    """The windows of one job on the slots of a batch."""

    def __init__(
        self,
        slots: NDArray[np.void],
        prepared: PreparedSlots,
        request: Request,
        shape: str,
    ) -> None:
        self.request, self.shape = request, shape
        self.price: Floats = np.ascontiguousarray(slots["price"])
        self.own: Floats = request.length(slots["performance"])
        self._ends: Floats = np.ascontiguousarray(slots["end"])
        usable = suitable_rows(request, slots)
        usable &= self.own <= request.max_runtime
        mask = filter_rows(prepared, request.where)[1]
        self.usable: NDArray[np.bool_] = usable if mask is None else usable & mask

    def window(self, total: float, start: float, rows: Ints, aim: Aim) -> PricedWindow:
        """Return the window of these slots."""
        rows = np.sort(rows)
        longest = float(self.own[rows].max())
        length = self._lengths(longest)
        target = self._measure(aim.target, length).total(
            start - aim.origin, longest, rows
        )
        expense = self._measure(aim.expense, length).total(start, longest, rows)
        end = start + length[rows]
        return PricedWindow(total, start, rows, end, aim.sign * target, expense)

    def rows_at(self, free: Free, start: float) -> Ints:
        """Return the rows of the slots on which a part may begin at a start.

        For square windows the shortest part of each slot decides; see `fits`.
        """
        live = self.usable[free.row] & (free.start <= start)
        live &= start + self.own[free.row] <= np.minimum(
            free.end, self.request.deadline
        )
        rows: Ints = free.row[live]
        return rows

    def fits(self, found: PricedWindow) -> bool:
        """True if the parts of a window are free and it is within the budget."""
        length = found.end - found.start
        money = float(
            (
                self.price[found.rows] * self._lengths(float(length.max()))[found.rows]
            ).sum()
        )
        limit = self.request.budget * (1 + _ROUNDING)
        ends = np.minimum(self._ends[found.rows], self.request.deadline)
        return money <= limit and bool((found.end <= ends).all())

    @property
    def longest(self) -> float:
        """The longest part on a usable slot; 0 without one."""
        return float(self.own[self.usable].max(initial=0.0))

    def range(self, aim: Aim, free: Free, last: float) -> tuple[float, float]:
        """Return bounds on the signed target of all windows, and of no window, 0.

        `last` is the latest start that counts.
        """
        some = self.usable[free.row]
        if not some.any():
            return 0.0, 0.0
        row, n = free.row[some], self.request.nodes
        longest = float(self.own[row].max())
        least = self._measure(aim.target, self.own)
        most = self._measure(aim.target, self._lengths(longest))
        start = min(float((free.end[some] - self.own[row]).max()), last) - aim.origin
        low = n * min(0.0, float(least.part[row].min()))
        high = most.total(max(start, 0.0), longest, row[:0])
        high += n * max(0.0, float(most.part[row].max()))
        return min(aim.sign * low, aim.sign * high), max(
            aim.sign * low, aim.sign * high
        )

    def _lengths(self, longest: float) -> Floats:
        """Return the length of a part on each slot, if the longest has this length."""
        return np.full(len(self.own), longest) if self.shape == "square" else self.own

    def _measure(self, measure: Measure, length: Floats) -> Terms:
        if not isinstance(measure, str):
            return Terms(0.0, 0.0, measure)
        if measure in _WHOLE:
            return Terms(*_WHOLE[measure], np.zeros(len(length)))
        return Terms(0.0, 0.0, length * self.price if measure == "cost" else length)


def whole_time(slots: NDArray[np.void]) -> tuple[Free, Ints]:
    """Return all free time of slots, and the ids of the nodes."""
    ids, node = np.unique(slots["node"], return_inverse=True)
    return (
        Free(
            np.arange(len(slots)),
            node.astype(np.int64),
            np.array(slots["start"], np.float64),
            np.array(slots["end"], np.float64),
        ),
        ids,
    )

"""The slots of one domain that can matter to a search over several domains.

Input: the free slots of a domain, a request, and a cell: an interval of starts [a, b].
Output: bounds on windows that start in the cell, and the candidates, a subset of the
slots. A search among the candidates of all domains for a start in the cell finds the
window that a search among all their slots finds.

*Why the candidates suffice.* Slot y replaces slot x of the same domain if, at each
start in the cell at which x can hold a part, y can too; y comes before x in the order
of keys (price, or cost in ragged windows, then node id); and y is as fast as x. If a
window has x and not y, then the one with y instead of x has the same start, is not
longer, and is not more expensive or has the lower node ids at equal costs: it is not
worse by any criterion, budget or tie rule. It has as many parts in each domain, so it
keeps the rules of groups of domains. A slot that n others can replace is in no best
window of n parts, because one of the n is not in the window. It is left out. Replacing
is transitive, so the n are found among the candidates.

*Limit.* If y is cheaper than x by less than the rounding of the sum, the costs of both
windows are equal, and the lower node ids may be in the one with x. The window found has
the same value and start then, but may have other nodes.

The comparisons use the arithmetic of the kernel: its lengths, costs and ends. In ragged
windows by start or cost, slots that can hold a part at all starts of the cell need not
be compared by speed, because only their costs count.

*Size.* At most n slots for each combination of begin and end within the cell and, where
speed counts, of performance; n if all slots last for the cell and speed does not count.

*Bounds.* The number of parts that can run at one time, the n lowest keys and the n
shortest lengths of slots in the cell. Cost: O(m log m) for m slots once for a request,
O(m) for each cell, and O(m k) for k candidates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request, suitable_rows
from slotkern.expressions.filters import evaluate

__all__ = ["Cell", "Outline", "UsableSlots"]

#: Slots that are compared with the candidates found before in one operation.
_BLOCK = 256


class Cell(NamedTuple):
    """Starts from `first` to `last`, both included."""

    first: float
    last: float


class Outline(NamedTuple):
    """Bounds on the windows that start in a cell, from one domain.

    Attributes
    ----------
    running : int
        The most parts that can run there at one time, at most the nodes of the request.
    first : float
        The earliest start; infinite if no slot can hold a part.
    keys, lengths : ndarray
        The n lowest keys and shortest lengths; fewer if there are fewer slots.
    slowest : float
        The least performance of a usable slot; infinite without one.
    """

    running: int
    first: float
    keys: NDArray[np.float64]
    lengths: NDArray[np.float64]
    slowest: float


class UsableSlots:
    """The slots of a domain that can hold a part of a request, in the order of keys.

    The request has times in numbers.
    """

    def __init__(
        self, slots: NDArray[np.void], machine: Any, request: Request, shape: str
    ) -> None:
        self.request, self.ragged = request, shape == "ragged"
        usable = suitable_rows(request, slots)
        if isinstance(request.where, str):
            usable &= evaluate(request.where, slots, machine)
        start = np.maximum(slots["start"], request.earliest)
        limit = np.minimum(slots["end"], request.deadline)
        length = request.length(slots["performance"])
        usable &= length <= request.max_runtime
        usable &= start + length <= limit
        rows = np.flatnonzero(usable)
        key = self._keys(slots[rows], length[rows])
        order = np.lexsort((slots["node"][rows], key))
        self.rows, self.key = rows[order], key[order]
        self.start, self.limit = start[self.rows], limit[self.rows]
        self.length = length[self.rows]
        self.performance = slots["performance"][self.rows]
        # Latest starts, rounded up, so that a cell has all slots that may start in it.
        # The sum of a start and a length is rounded to the precision of the limit,
        # which may be much coarser than that of the start.
        last = np.nextafter(self.limit, np.inf) - self.length
        last = np.nextafter(last, np.inf)
        self.last = np.minimum(last, request.latest)
        self._by_length = np.argsort(self.length, kind="stable")
        self._starts, self._lasts = np.sort(self.start), np.sort(self.last)
        ended = np.searchsorted(self._lasts, self._starts, side="left")
        self._running = np.arange(1, len(rows) + 1) - ended

    def _keys(
        self, slots: NDArray[np.void], length: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the numbers by which window/shapes.hpp orders slots."""
        price = slots["price"]
        if not self.ragged:
            return np.ascontiguousarray(price)
        with np.errstate(over="ignore"):
            rate = price / slots["performance"]
            if not (self.request.setup or self.request.step):
                cost: NDArray[np.float64] = self.request.volume * rate
                return cost
            cost = np.where(price > 0, price * length, 0.0)
            return np.where(np.isinf(rate), np.inf, cost)

    def quantiles(self, count: int) -> NDArray[np.float64]:
        """Return starts that divide the starts of all slots into equal parts."""
        if not len(self._starts):
            return np.empty(0)
        return np.unique(self._starts[:: max(1, len(self._starts) // count)])

    def outline(self, cell: Cell, costs: bool, lengths: bool) -> Outline:
        """Return the bounds of a cell; without keys or lengths if they do not count."""
        inside = (self.start <= cell.last) & (self.last >= cell.first)
        if not inside.any():
            return Outline(0, np.inf, np.empty(0), np.empty(0), np.inf)
        n = self.request.nodes
        keys = self.key[np.flatnonzero(inside)[:n]] if costs else np.empty(0)
        short = np.empty(0)
        if lengths:
            short = self.length[
                self._by_length[np.flatnonzero(inside[self._by_length])[:n]]
            ]
        low, high = np.searchsorted(self._starts, [cell.first, cell.last], side="right")
        begun = int(low) - int(np.searchsorted(self._lasts, cell.first, side="left"))
        count = max(begun, int(self._running[low:high].max(initial=0)))
        first = max(cell.first, float(self.start[inside].min()))
        slowest = float(self.performance[inside].min())
        return Outline(min(count, n), first, keys, short, slowest)

    def candidates(self, cell: Cell, longest: float, speed: bool) -> NDArray[np.int64]:
        """Return the candidates of a cell: places in these arrays, ascending.

        Parameters
        ----------
        cell : Cell
        longest : float
            The longest run time of a square window.
        speed : bool
            False if no criterion but the start or the cost counts.
        """
        places = np.flatnonzero((self.start <= cell.last) & (self.last >= cell.first))
        start = np.maximum(self.start[places], cell.first)
        span = self.length[places] if self.ragged else np.full(len(places), longest)
        last = min(cell.last, self.request.latest)
        whole = last + span <= self.limit[places]
        end = np.where(whole, np.inf, self.limit[places])
        performance = self.performance[places]
        if self.ragged and not speed:  # of slots for all starts only the costs count
            performance = np.where(whole, np.inf, performance)
        columns = np.stack([start, -end, -performance])
        n = self.request.nodes
        kept = np.empty(0, np.int64)
        for first in range(0, len(places), _BLOCK):
            block = np.arange(first, min(first + _BLOCK, len(places)))
            better = _count_not_worse(columns[:, kept], columns[:, block], None)
            block = block[better < n]
            within = _count_not_worse(columns[:, block], columns[:, block], block)
            # a slot of the block that is left out has n candidates that replace it, and
            # these replace all that it replaces
            kept = np.append(kept, block[better[better < n] + within < n])
        return places[kept]


def _count_not_worse(
    one: NDArray[np.float64], other: NDArray[np.float64], order: Any
) -> NDArray[np.int64]:
    """Count the columns of `one` that are not above each of `other` in any row.

    With `order`, both are the same, and only earlier columns count.
    """
    found = np.ones((one.shape[1], other.shape[1]), bool)
    for a, b in zip(one, other, strict=True):
        found &= a[:, None] <= b[None, :]
    if order is not None:
        found &= np.tri(len(order), k=-1, dtype=bool).T
    count: NDArray[np.int64] = found.sum(axis=0)
    return count

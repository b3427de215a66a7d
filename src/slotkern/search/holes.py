"""Holes: how many nodes are free from one time on, and for how long.

Input: slots and a time. Output: the frontier of the pairs (nodes, length) of all
windows that start at that time. A node is free for the length L if one of its slots has
begun and ends at least L later; the longest window of n nodes is therefore as long as
the n-th longest remainder of a slot. With a level all nodes lie in one of its groups,
and the best group counts for each n. O(m) for m slots, and O(k log k) for the k nodes
that are free at the time.

This is the ``showbf`` of the Maui scheduler (D. Jackson, Q. Snell and M. Clement, "Core
algorithms of the Maui scheduler", JSSPP 2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import Request
from slotkern._kernels.slots import PreparedSlots, prepare_snapshot, resolve_times
from slotkern.compound.start_intervals import last_starts
from slotkern.compound.together import admitted
from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.expressions.groups import groups_of
from slotkern.foundation.checks import hint_keywords, integer, number
from slotkern.foundation.context import SlotContext
from slotkern.pool.ledger import time_of

if TYPE_CHECKING:
    from slotkern.typing import Duration, Slots, Time

__all__ = ["HOLE", "Holes", "current_time", "holes"]

#: A point of the frontier: the most nodes that are free for a length, until `end`.
HOLE = np.dtype([("nodes", "i8"), ("length", "f8"), ("end", "f8")])


@dataclass(frozen=True, eq=False, repr=False)
class Holes(HasPlot):
    """The frontier of nodes and lengths at one time; made by `holes`.

    Attributes
    ----------
    start : float
        The time at which the holes begin.
    frontier : structured array
        One row for each length at which nodes drop out, the longest first: ``nodes``
        are free for ``length``, until ``end``; no more nodes are free for that length,
        and the same nodes for no longer one.
    context : SlotContext or None
        The clock and machine of the slots.
    """

    start: float
    frontier: NDArray[np.void]
    context: SlotContext | None = None

    @property
    def clock(self) -> Any:
        """The clock of the slots, or None."""
        return None if self.context is None else self.context.clock

    def __len__(self) -> int:
        return len(self.frontier)

    def __repr__(self) -> str:
        clock = self.clock
        at = f"{self.start:g}" if clock is None else str(clock.datetime(self.start))
        most = int(self.frontier["nodes"].max(initial=0))
        return f"Holes(at most {most:,} nodes from {at} on)"

    def best_length(self, nodes: int) -> float:
        """Return how long this many nodes are free; 0 if fewer are.

        Parameters
        ----------
        nodes : int
            At least 1.

        Returns
        -------
        float
            The longest length of a window, in clock units; inf for time without end.

        Raises
        ------
        ValueError, TypeError
            For a number that is not an integer of at least 1.
        """
        at = np.searchsorted(self.frontier["nodes"], integer("nodes", nodes, least=1))
        return float(self.frontier["length"][at]) if at < len(self) else 0.0

    def most_nodes(self, length: Duration) -> int:
        """Return the number of nodes that are free for a length; 0 if none is.

        Parameters
        ----------
        length : float or duration
            Clock units; with a clock also a duration, as in ``"2h"``.

        Raises
        ------
        ValueError, TypeError
            For a length that is not finite and more than 0.
        """
        clock = self.clock
        value: Any = length if clock is None else clock.duration(length, "length")
        fits = np.flatnonzero(
            self.frontier["length"] >= number("length", value, above=0)
        )
        return int(self.frontier["nodes"][fits[-1]]) if len(fits) else 0

    def _as_table(self) -> Table:
        return Table.from_array(
            repr(self),
            self.frontier,
            context=self.context,
            times=("end",),
            spans=("length",),
        )


@hint_keywords
def holes(
    slots: Slots,
    at: Time | None = None,
    *,
    where: Any = None,
    min_performance: float = 0.0,
    within: str | None = None,
) -> Holes:
    """Return how many nodes are free from a time on, and for how long.

    Parameters
    ----------
    slots : structured array, SlotPool or Environment
        As for `find_window`.
    at : float or date, optional
        The time at which the windows start; by default the `now` of a pool after
        `advance`, else the first start of a slot.
    where : str or array of bool, optional
        Filter of the slots, as for `Request`.
    min_performance : float
        The least performance of each node.
    within : str, optional
        A level, such as ``"rack"``: only windows whose nodes have the same value.

    Returns
    -------
    Holes
        ``.frontier``, ``.best_length(nodes)``, ``.most_nodes(length)``, ``.plot()``.
        A window of n nodes and length L that starts at `at` exists if some row has at
        least n nodes and at least the length L, and no other, unless it is longer by a
        rounding error. Each part lies in one slot, as in every search.

    Raises
    ------
    ValueError, TypeError
        As `find_window` for slots, filters and levels, and for a pool with quotas that
        count every window.

    Notes
    -----
    O(m) for m slots, a level O(m log m).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1, 2, 2], start=[0, 0, 0, 9], end=[8, 4, 4, 20],
    ...     performance=1, price=1,
    ... )
    >>> now = sk.holes(slots)
    >>> now.frontier.tolist()
    [(1, 8.0, 8.0), (3, 4.0, 4.0)]
    >>> now.best_length(2), now.most_nodes(5)
    (4.0, 1)
    >>> sk.holes(slots, 10).frontier.tolist()
    [(1, 10.0, 20.0)]
    """
    options: Any = {"where": where, "within": within}
    request = Request(1, 1, min_performance=min_performance, **options)
    request = resolve_times(slots, request)  # refuses quotas
    pool = slots if isinstance(slots, PreparedSlots) else prepare_snapshot(slots)
    start = current_time(pool) if at is None else time_of(pool.clock, at, "at")
    table = pool.slots
    live = admitted(pool, table, request)
    live &= (table["start"] <= start) & (table["end"] > start)
    rows = np.flatnonzero(live)
    ends = table["end"][rows]
    group = None if within is None else groups_of(within, table).of_row[rows]
    return Holes(start, _frontier(start, ends, group), pool.context)


def current_time(pool: PreparedSlots) -> float:
    """Return the `now` of a pool after `advance`, else the first start of a slot."""
    now: float = getattr(pool, "now", -math.inf)
    return now if now > -math.inf else float(pool.slots["start"].min(initial=math.inf))


def _frontier(
    start: float, ends: NDArray[np.float64], group: NDArray[np.int32] | None
) -> NDArray[np.void]:
    """Return the points of the frontier, of dtype `HOLE`, by the ends of free nodes."""
    if group is None:
        best = np.sort(ends)[::-1]  # best[n - 1]: the end of the best n nodes
    else:
        order = np.lexsort((-ends, group))
        _, first, count = np.unique(group[order], return_index=True, return_counts=True)
        rank = np.arange(len(order)) - np.repeat(first, count)
        best = np.full(count.max(initial=0), -math.inf)
        np.maximum.at(best, rank, ends[order])
    # Lengths that do not exceed the end when they are added to the start.
    length = last_starts(best, np.full(len(best), start))
    last = np.flatnonzero(length != np.append(length[1:], -math.inf))
    found = np.empty(len(last), HOLE)
    found["nodes"], found["length"], found["end"] = last + 1, length[last], best[last]
    return found

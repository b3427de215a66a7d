"""Free time as arrays of numbers: the complement of spans, cut where prices change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.slots import row_order

__all__ = ["PriceSegments", "check_size", "cut_at_prices", "gaps"]

#: The most slots into which prices may split free time: about 1.2 GiB of memory.
MAX_SLOTS = 2**23

#: Node, begin and price of segments, sorted. A segment ends where the next one begins.
PriceSegments = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]


def gaps(
    nodes: int,
    node: NDArray[Any],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    first: float,
    last: float,
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
    """Return the complement of busy spans in [first, last): node, start and end.

    Spans may overlap, touch, be empty or lie outside.
    """
    within = (start < end) & (start < last) & (end > first)
    every = np.arange(nodes, dtype=np.int32)
    node = np.concatenate((every, node[within].astype(np.int32)))
    from_, to = np.full(nodes, first), np.full(nodes, last)
    # Starts and ends are sorted independently. There is a gap between the k-th end and
    # the next start if that end is earlier: then all k spans that started have ended.
    start = np.concatenate((to, start[within].clip(min=first)))
    end = np.concatenate((from_, end[within].clip(max=last)))
    by_start, by_end = row_order(start, node), row_order(end, node)
    node, start, end = node[by_start], start[by_start], end[by_end]
    gap = np.flatnonzero(end < start)
    return node[gap], end[gap], start[gap]


def cut_at_prices(
    node: NDArray[Any],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    at: NDArray[Any],
    begin: NDArray[np.float64],
    price: NDArray[np.float64],
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Split free spans at the times at which the price of their node changes."""
    times: NDArray[np.float64] = np.unique(np.concatenate((start, end, begin)))

    def key(node: NDArray[Any], time: NDArray[np.float64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = node.astype(np.int64) * len(times)
        return found + np.searchsorted(times, time)

    keys = key(at, begin)
    first = np.searchsorted(keys, key(node, start), "right") - 1
    count = np.searchsorted(keys, key(node, end), "left") - first
    check_size(int(count.sum()), "free slots, cut where prices change,")
    span = np.repeat(np.arange(len(node)), count)
    before = np.cumsum(count) - count
    piece = np.arange(len(span)) + np.repeat(first - before, count)
    after = np.append(begin[1:], np.inf)
    after[:-1][at[1:] != at[:-1]] = np.inf
    return (
        node[span],
        np.maximum(start[span], begin[piece]),
        np.minimum(end[span], after[piece]),
        price[piece],
    )


def check_size(slots: int, what: str) -> None:
    """Raise an error for too many slots, before they are allocated."""
    if slots > MAX_SLOTS:
        raise ValueError(
            f"prices: {slots:,} {what} are more than {MAX_SLOTS:,}; take a shorter "
            "horizon, fewer changes of price, or fewer nodes at a time"
        )

"""Tables of spans of time of the nodes of a `HostPool`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slotkern.machine.capacity import Capacity

__all__ = ["SPAN", "closed_type", "spans_of", "within"]

_TIMES = (("start", "f8"), ("end", "f8"))
SPAN = np.dtype([("row", "i8"), *_TIMES])


def closed_type(widest: int) -> np.dtype[np.void]:
    """Return the type of closed time for owners of up to `widest` characters."""
    owner = f"U{max(64, widest)}"
    return np.dtype([("node", "i4"), *_TIMES, ("owner", owner), ("disabled", "?")])


def spans_of(
    amounts: NDArray[np.void], capacity: Capacity
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Return spans (row, start, end) of rows of amounts, and their free vectors."""
    spans = np.empty(len(amounts), SPAN)
    spans["row"] = amounts["node"]
    spans["start"], spans["end"] = amounts["start"], amounts["end"]
    return spans, np.stack([amounts[name] for name in capacity.names], axis=1)


def within(spans: NDArray[np.void], known: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return the spans that start inside one of the known spans of their row."""
    order = np.lexsort((known["start"], known["row"]))
    known = known[order]
    keys = np.empty(len(known) + len(spans), [("row", "i8"), ("start", "f8")])
    for name in ("row", "start"):
        keys[name] = np.concatenate((known[name], spans[name]))
    rank = np.unique(keys, return_inverse=True)[1]
    at = np.searchsorted(rank[: len(known)], rank[len(known) :], "right") - 1
    inside = at >= 0
    at = at.clip(min=0)
    if not len(known):
        return inside
    found: NDArray[np.bool_] = (
        inside
        & (known["row"][at] == spans["row"])
        & (spans["start"] < known["end"][at])
    )
    return found

"""Closures of nodes of a pool: disabled nodes, and time covered by reservations.

A pool stores one row of `CLOSURE` for each node and reason; its kernel stores the union
of them for each node. Closed time is not free, whether or not it is booked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.slots import CLOSURE
from slotkern.foundation.checks import quote
from slotkern.pool.ledger import check_owner, ids_of, owners_of, time_of

if TYPE_CHECKING:
    from slotkern._kernels.pool import SlotPool
    from slotkern._kernels.windows import Window
    from slotkern.typing import Time

__all__ = [
    "booked_spans",
    "close_gaps",
    "disable",
    "enable",
    "nothing_booked",
    "reopen_gaps",
    "validate_closures",
    "windows_within",
]


def disable(
    self: SlotPool,
    nodes: Any,
    start: Time | None = None,
    end: Time | None = None,
    owner: str = "down",
) -> list[Window]:
    """Close nodes for a time: what is free now, and what is released there later.

    Use this for failed nodes. Windows on these nodes stay booked; the caller decides
    whether to release or rebook them.

    Parameters
    ----------
    nodes : str, int or sequence of them
        Names of the machine's nodes, or ids.
    start, end : float, date or str, optional
        The span [start, end). By default it starts at `now`, the time of the last
        `advance`, or includes all time if there was none, and has no end.
    owner : str
        The person or reason that closes the nodes.

    Returns
    -------
    list of Window
        The windows with an owner that have a part on these nodes in this span.

    Raises
    ------
    ValueError, TypeError
        For an unknown node, and for a span that does not end after it starts. The pool
        is then unchanged.

    Notes
    -----
    A node can be closed several times; it is open again after the last closure has
    ended. `add_slots` can add time to closed nodes; `copy` and `save` include closed
    time. Takes time linear in the given nodes and the closed spans.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
    >>> pool = sk.SlotPool(slots)
    >>> job = sk.Request(1, 4)
    >>> pool.book(pool.find(job), owner="ann")
    >>> (window,) = pool.disable(0, start=2)
    >>> pool.release(window)
    >>> pool.slots[["node", "start", "end"]].tolist()
    [(0, 0.0, 2.0), (1, 0.0, 9.0)]
    >>> pool.enable(0)
    >>> pool.find(job).nodes
    (0,)
    """
    check_owner(owner)
    ids = ids_of(self, nodes)
    first, last = _span(self, (start, end), self.now)
    rows = _rows(ids, np.full(len(ids), first), np.full(len(ids), last), owner, True)
    _replace(self, ids, lambda closures: _joined(closures, rows))
    return [window for window, _ in _hit(self._owned_windows(), ids, first, last)]


def enable(self: SlotPool, nodes: Any) -> None:
    """Reopen nodes closed by `disable`: their time that is not booked is free again.

    Parameters
    ----------
    nodes : str, int or sequence of them
        Names of the machine's nodes, or ids.

    Raises
    ------
    ValueError, TypeError
        For a node that is not disabled; the message contains its name, and the pool is
        unchanged.

    Notes
    -----
    Time that reservations cover on these nodes stays covered.
    """
    ids = ids_of(self, nodes)

    def opened(closures: NDArray[np.void]) -> NDArray[np.void]:
        mine = closures["disabled"] & (closures["end"] > self.now)
        open_now = ~np.isin(ids, closures["node"][mine])
        if open_now.any():
            node = ids[open_now.argmax()]
            name = node if self.machine is None else self.machine.names[node]
            raise ValueError(f"node {quote(name.item())} is not disabled")
        return closures[~(closures["disabled"] & np.isin(closures["node"], ids))]

    _replace(self, ids, opened)


def close_gaps(pool: SlotPool, gaps: NDArray[np.void], owner: str) -> None:
    """Close the time of a reservation that is not free: `gaps` (node, start, end)."""
    rows = _rows(gaps["node"], gaps["start"], gaps["end"], owner, False)
    _replace(pool, gaps["node"], lambda closures: _joined(closures, rows))


def reopen_gaps(pool: SlotPool, owner: str) -> None:
    """Remove the closures of an owner's reservations."""

    def mine(closures: NDArray[np.void]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = ~closures["disabled"] & (closures["owner"] == owner)
        return found

    nodes = pool._closures["node"][mine(pool._closures)]
    if len(nodes):
        _replace(pool, nodes, lambda closures: closures[~mine(closures)])


def nothing_booked(pool: SlotPool, owner: str) -> str:
    """Return the error for an owner who has nothing to release."""
    closed = pool.closed
    disabled = closed["disabled"] & (closed["owner"] == owner)
    more = "; enable opens the nodes that are disabled for it" if disabled.any() else ""
    return f"{owner!r} has nothing booked in this pool{more}"


def windows_within(
    pool: SlotPool, pairs: Sequence[tuple[Window, str]], nodes: Any, during: Any
) -> list[tuple[Window, str]]:
    """Return the (window, owner) pairs with a part on the nodes and in the span."""
    ids = None if nodes is None else ids_of(pool, nodes)
    if during is None:
        during = (None, None)
    if not isinstance(during, (tuple, list)) or len(during) != 2:
        raise TypeError(f"during must be a pair (start, end), got {quote(during)}")
    start, end = during
    return _hit(pairs, ids, *_span(pool, (start, end), -np.inf))


def booked_spans(pool: SlotPool) -> tuple[NDArray[np.void], NDArray[np.str_]]:
    """Return booked and held spans of a pool, sorted by (node, start), and owners."""
    _, state, _, closures = pool._full_state_and_closures()
    booked, held = state["booked"], state["held"]
    owners = owners_of(dict(pool._owned_windows()), booked)
    if not len(held):
        return booked, owners
    spans = np.concatenate([booked, held])
    owners = np.concatenate([owners, _closed_by(closures, held)])
    order = np.lexsort((spans["start"], spans["node"]))
    return spans[order], owners[order]


def validate_closures(closures: NDArray[Any], held: NDArray[Any]) -> NDArray[np.void]:
    """Check the closures of a pool file, and that they cover all held spans.

    Raises
    ------
    ValueError
        If the closures are not those of a pool.
    """
    names = CLOSURE.names or ()
    kinds = [closures.dtype[name].kind for name in closures.dtype.names or ()]
    if closures.ndim != 1 or closures.dtype.names != names or kinds != [*"iffUb"]:
        raise ValueError(f"closures have the type {closures.dtype!s:.80}")
    found = _table(len(closures), closures["owner"].dtype)
    for name in names:
        found[name] = closures[name]
    if not (found["start"] < found["end"]).all() or (found["owner"] == "").any():
        raise ValueError("a closure has no time or no owner")
    node, start, end = _union(found)
    at = _last(node, start, held["node"], held["start"])
    inside = (at >= 0) & (node[at] == held["node"]) if len(node) else at >= 0
    if not (inside & (held["end"] <= end[at] if len(node) else inside)).all():
        raise ValueError("a span is held, but its node is not closed")
    found.flags.writeable = False
    return found


def _span(
    pool: SlotPool, times: tuple[Any, Any], otherwise: float
) -> tuple[float, float]:
    """Convert the start and end of a span to numbers; None has a default."""
    start, end = times
    first = otherwise if start is None else time_of(pool.clock, start, "start")
    last = np.inf if end is None else time_of(pool.clock, end, "end")
    if not first < last:
        raise ValueError(f"end {end} does not lie after start {start}")
    return first, last


def _hit(
    pairs: Sequence[tuple[Window, str]],
    ids: NDArray[np.int32] | None,
    first: float,
    last: float,
) -> list[tuple[Window, str]]:
    pairs = [pair for pair in pairs if pair[0].start < last and pair[0].finish > first]
    if not pairs:
        return []
    slots = [window.slots for window, _ in pairs]
    parts = np.concatenate(slots, dtype=slots[0].dtype)  # else it compares all types
    mine = (parts["start"] < last) & (parts["end"] > first)
    if ids is not None:
        mine &= np.isin(parts["node"], ids)
    sizes = [len(window) for window, _ in pairs]
    rows = np.unique(np.repeat(np.arange(len(pairs)), sizes)[mine])
    return [pairs[row] for row in rows.tolist()]


def _replace(
    pool: SlotPool,
    nodes: NDArray[np.int32],
    change: Callable[[NDArray[np.void]], NDArray[np.void]],
) -> None:
    """Apply a change to the closures of `nodes`, and drop expired closures.

    Retries if another thread has changed the closures meanwhile (optimistic locking).
    """
    while True:
        before = pool._closures
        after = change(before)
        kept = after[after["end"] > pool.now]
        if pool._replace_closures(before, kept, nodes):
            return


def _table(size: int, owner: np.dtype[Any]) -> NDArray[np.void]:
    fields = [(name, CLOSURE[name]) for name in CLOSURE.names or ()]
    return np.empty(size, [(n, owner if n == "owner" else d) for n, d in fields])


def _rows(node: Any, start: Any, end: Any, owner: str, disabled: bool) -> Any:
    rows = _table(len(node), np.array(owner).dtype)
    rows["node"], rows["start"], rows["end"] = node, start, end
    rows["owner"], rows["disabled"] = owner, disabled
    return rows


def _joined(first: NDArray[np.void], second: NDArray[np.void]) -> NDArray[np.void]:
    """Concatenate two tables; the owner column fits the longest owner."""
    owner = np.promote_types(first["owner"].dtype, second["owner"].dtype)
    both = _table(len(first) + len(second), owner)
    for name in CLOSURE.names or ():
        both[name] = np.concatenate([first[name], second[name]])
    return both


def _union(closures: NDArray[np.void]) -> tuple[NDArray[Any], ...]:
    """Return the union of closures: disjoint node, start, end, by (node, start)."""
    order = np.lexsort((closures["start"], closures["node"]))
    node, start, end = (closures[name][order] for name in ("node", "start", "end"))
    if not len(node):
        return node, start, end
    for first, last in _groups(node):
        end[first:last] = np.maximum.accumulate(end[first:last])
    new = np.ones(len(node), bool)
    new[1:] = (node[1:] != node[:-1]) | (start[1:] > end[:-1])
    firsts = np.flatnonzero(new)
    lasts = np.append(firsts[1:], len(node)) - 1
    return node[firsts], start[firsts], end[lasts]


def _groups(node: NDArray[Any]) -> list[tuple[int, int]]:
    """Return the row range [first, last) of each node with several rows."""
    edges = np.flatnonzero(np.diff(node)) + 1
    firsts, lasts = np.append(0, edges), np.append(edges, len(node))
    several = lasts - firsts > 1
    return [*zip(firsts[several].tolist(), lasts[several].tolist(), strict=True)]


def _last(
    node: NDArray[Any], start: NDArray[Any], of: NDArray[Any], at: NDArray[Any]
) -> NDArray[np.int64]:
    """Return for each pair (of, at) the last row with (node, start) <= it, or -1."""
    keys = np.empty(len(node) + len(of), [("node", "i8"), ("time", "f8")])
    keys["node"], keys["time"] = np.append(node, of), np.append(start, at)
    rank = np.unique(keys, return_inverse=True)[1]
    return np.searchsorted(rank[: len(node)], rank[len(node) :], "right") - 1


def _closed_by(closures: NDArray[np.void], held: NDArray[np.void]) -> NDArray[np.str_]:
    """Return the owner of the closure in which each held span begins."""
    rows = closures[np.lexsort((closures["start"], closures["node"]))]
    at = _last(rows["node"], rows["start"], held["node"], held["start"])
    owners = rows["owner"][at]
    for i in np.flatnonzero(rows["end"][at] <= held["start"]).tolist():
        span = held[i]  # the last closure has ended, so an earlier one covers the span
        lasts = (rows["node"] == span["node"]) & (rows["start"] <= span["start"])
        lasts &= rows["end"] > span["start"]
        owners[i] = rows["owner"][lasts.nonzero()[0][-1]]
    found: NDArray[np.str_] = owners
    return found

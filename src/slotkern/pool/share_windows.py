"""Windows whose parts take shares of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.windows import PART, Window, window_from_state
from slotkern.display.table import Table
from slotkern.foundation.amounts import Amounts, amounts_of
from slotkern.foundation.checks import integer, visible

__all__ = ["ShareWindow", "restore_share_window", "share_window"]


class ShareWindow(Window):
    """ShareWindow()

    A window of a `HostPool`: a `Window` whose parts take shares of their nodes.

    Attributes
    ----------
    share : dict of str to int, or None
        What each part takes of its node; None for whole nodes.
    counts : tuple of int or None
        The number of parts on each node, if a node may have several; None for one each.
    slots : structured array
        One row for each node: row, node, start, end, the cost of all of its parts, and
        their `count`.

    Examples
    --------
    >>> import slotkern as sk
    >>> machine = sk.Machine({"name": ["anna"], "cores": [64]}, capacity="cores")
    >>> pool = sk.HostPool(sk.free_slots(machine, start=0, end=24))
    >>> pool.find(sk.Request(2, 4, share={"cores": 16}, stack=4)).counts
    (2,)
    """

    share: Amounts | None
    counts: tuple[int, ...] | None

    @property
    def slots(self) -> NDArray[np.void]:
        """One row for each node: row, node, start, end, cost, count."""
        table = super().slots
        found = np.empty(len(table), [*_PART_FIELDS, ("count", "i4")])
        for name in PART.names or ():
            found[name] = table[name]
        found["count"] = 1 if self.counts is None else self.counts
        return found

    @property
    def heights(self) -> NDArray[np.float64]:
        """The largest part of any resource that the window takes of each node."""
        capacity = None if self.machine is None else self.machine.capacity
        if self.share is None or capacity is None:
            return np.ones(len(self))
        counts = np.array(self.counts or [1] * len(self))[:, None]
        taken = np.array([self.share.get(name, 0) for name in capacity.names])
        size = np.maximum(capacity.amounts[[*self.nodes]], 1)
        found: NDArray[np.float64] = (counts * taken / size).max(axis=1)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes for JSON, as for `Window`, with share and counts."""
        found = super().to_dict()
        parts = found.pop("slots")
        if self.counts is not None:
            for part, count in zip(parts, self.counts, strict=True):
                part["count"] = count
        share = None if self.share is None else dict(self.share)
        return found | {"share": share, "slots": parts}

    def _as_table(self) -> Table:
        table = super()._as_table()
        taken = "whole nodes" if self.share is None else text_of(self.share)
        return table._replace(facts={**table.facts, "share": taken})

    def __repr__(self) -> str:
        if self.share is None:
            return super().__repr__()
        counts = "" if self.counts is None else f", counts={[*self.counts]}"
        return visible(f"{super().__repr__()[:-1]}, share={dict(self.share)}{counts})")

    def _state(self) -> tuple[Any, ...]:
        """Return what distinguishes windows."""
        own = () if self.share is None else (self.share, self.counts)
        return (*super()._state(), *own)

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.share, self.counts))

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    def __reduce__(self) -> Any:
        more = (self.name, self.context, self.proven_over, self.special)
        state = (*Window._state(self), *more)
        return restore_share_window, (state, self.share, self.counts)


_PART_FIELDS = [(name, PART[name]) for name in PART.names or ()]


def restore_share_window(
    state: Iterable[Any], share: Amounts | None, counts: tuple[int, ...] | None
) -> ShareWindow:
    """Return the window of a state with its special fields, a share and counts."""
    window = window_from_state(ShareWindow, state)
    window.share, window.counts = share, counts
    return window


def shared(
    window: Window, share: Amounts | None, host_of: Any = None, stacked: bool = False
) -> ShareWindow:
    """Return a window as one of shares.

    Parameters
    ----------
    window : Window
        Its parts may be on nodes that stand for one part of a host each.
    share : Amounts or None
    host_of : int or None
        The number of such nodes for each host; None if nodes are hosts.
    stacked : bool
        True: unite the parts of one host in one row with a count.
    """
    special = window.special or {}
    counted = {k: special[k] for k in ("uses", "account") if k in special} or None
    state = list(Window._state(window))
    parts = state[10]
    hosts = parts
    if host_of is not None:
        hosts = [(node // host_of, node // host_of, *rest) for _, node, *rest in parts]
    counts = None
    if stacked:
        united, sizes = [], []
        for _, group in groupby(sorted(hosts, key=_node), key=_node):
            each = [*group]
            united.append((*each[0][:3], math.fsum(part[3] for part in each)))
            sizes.append(len(each))
        hosts, counts = united, tuple(sizes)
    state[10] = tuple(hosts)
    state += [window.name, window.context, window.proven_over, counted]
    return restore_share_window(state, share, counts)


def _node(part: tuple[Any, ...]) -> int:
    node: int = part[1]
    return node


def share_window(data: Mapping[str, Any]) -> ShareWindow:
    """Return the window from the result of `ShareWindow.to_dict`."""
    window = Window.from_dict({k: v for k, v in data.items() if k != "share"})
    share = None if data["share"] is None else amounts_of("share", data["share"])
    made = shared(window, share)
    if any("count" in part for part in data["slots"]):
        order = sorted(data["slots"], key=lambda part: part["node"])
        made.counts = tuple(integer("count", part["count"], 1) for part in order)
    return made


def parts_taken(window: ShareWindow) -> tuple[Any, ...]:
    """Return the share of a window, and node, start, end and count of each row."""
    rows = window.slots[["node", "start", "end", "count"]].tolist()
    return window.share, sorted(rows)


def nearest(window: ShareWindow, others: list[ShareWindow]) -> ShareWindow | None:
    """Return the last of the windows that are most like a window, or None.

    An equal window of equal uses and account is preferred to an equal one, and that to
    one with the same parts: its owner may have found them by another criterion.
    """
    parts, found, most = None, None, 0
    for other in reversed(others):
        if other.start != window.start:
            continue
        if other == window:
            likeness = 3 if other.special == window.special else 2
        else:
            parts = parts or parts_taken(window)
            likeness = int(parts_taken(other) == parts)
        if likeness > most:
            found, most = other, likeness
        if most == 3:
            break
    return found


def share_text(window: ShareWindow | None) -> str:
    """Return the share of a window as text; empty for whole nodes and for None."""
    return "" if window is None or window.share is None else text_of(window.share)


def text_of(share: Mapping[str, int]) -> str:
    """Return a share as text, such as ``16 cores + 2 gpus``."""
    return " + ".join(
        f"{amount:,} {name.removesuffix('s') if amount == 1 else name}"
        for name, amount in share.items()
    )

"""An independent check of shares of nodes: amounts by node and time, counted again.

A part of `slotkern.ledger.check`: nothing here uses the kernels that book shares. The
free amounts of a node are pieces of time, each with a vector of amounts; bookings and
reservations take vectors for spans of time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from slotkern.ledger.check_caps import Usage

__all__ = ["BodyShare", "HostAmounts"]

_Vector = tuple[int, ...]
_Span = tuple[int, float, float]  # node, start, end


class BodyShare(NamedTuple):
    """The share of a body by name, None for whole nodes, and its parts on each node."""

    share: dict[str, int] | None
    counts: list[int]


class HostAmounts:
    """The free amounts of a ledger of shares, and what is taken of them.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Those of a snapshot.
    """

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.names: list[str] = arrays["resources"].tolist()
        self.capacity: list[_Vector] = [*map(tuple, arrays["resource amounts"])]
        self.pieces: dict[int, list[tuple[float, float, _Vector]]] = {}
        self.taken: dict[int, list[tuple[_Span, _Vector]]] = {}  # by booking
        self.reserved: list[tuple[str, _Span, _Vector]] = []
        self._usage: dict[tuple[int, int], Usage] = {}  # by node and resource
        spans = arrays["rows free"][["row", "start", "end"]].tolist()
        self._add(spans, arrays["rows free_amounts"].tolist())

    def reserve_all(self, arrays: dict[str, Any]) -> None:
        """Take the reservations of a snapshot, after its bookings."""
        sizes = arrays["reserved size"].tolist()
        owners = np.repeat(arrays["reserved owner"], sizes).tolist()
        rows = arrays["rows reserved"][["row", "start", "end"]].tolist()
        amounts = arrays["rows reserved_amounts"].tolist()
        for owner, span, vector in zip(owners, rows, amounts, strict=True):
            self.reserve(owner, [span], [vector])

    def add(self, table: Any) -> None:
        """Add the free amounts of an entry."""
        spans = table[["node", "start", "end"]].tolist()
        columns = [table[name].tolist() for name in self.names]
        self._add(spans, zip(*columns, strict=True))

    def _add(self, spans: list[_Span], amounts: Iterable[Any]) -> None:
        for (node, start, end), vector in zip(spans, amounts, strict=True):
            pieces = self.pieces.setdefault(node, [])
            pieces.append((start, end, tuple(vector)))
            pieces.sort()

    def vector(self, taken: BodyShare, i: int, node: int) -> _Vector:
        """Return what the i-th part of a body takes of its node."""
        if taken.share is None:
            return self.capacity[node]
        unknown = taken.share.keys() - {*self.names}
        if unknown or min(taken.share.values()) < 1:
            raise ValueError(f"a share of {taken.share}")
        return tuple(taken.counts[i] * taken.share.get(k, 0) for k in self.names)

    def take(self, number: int, parts: list[_Span], taken: BodyShare) -> str:
        """Count a booking; return the first amount that it exceeds, "" for none."""
        mine = [(part, self.vector(taken, i, part[0])) for i, part in enumerate(parts)]
        self.taken[number] = mine
        for part, vector in mine:
            self._count(part, vector, 1)
        return next((why for each in mine if (why := self._excess(*each))), "")

    def give_back(self, number: int) -> None:
        """Count a booking no more."""
        for part, vector in self.taken.pop(number):
            self._count(part, vector, -1)

    def reserve(self, owner: str, spans: list[_Span], amounts: list[Any]) -> None:
        """Withhold amounts, also those that are not free."""
        for span, given in zip(spans, amounts, strict=True):
            vector = tuple(given)
            self.reserved.append((owner, span, vector))
            self._count(span, vector, 1)

    def end_reservations(self, owner: str) -> None:
        """Give back what an owner has reserved."""
        for whose, span, vector in self.reserved:
            if whose == owner:
                self._count(span, vector, -1)
        self.reserved = [each for each in self.reserved if each[0] != owner]

    def _count(self, span: _Span, vector: _Vector, sign: int) -> None:
        node, start, end = span
        for k, amount in enumerate(vector):
            if amount:
                usage = self._usage.setdefault((node, k), Usage())
                usage.add(start, end, sign * amount)

    def _excess(self, span: _Span, vector: _Vector) -> str:
        """Return what a counted span takes that its node does not have, or ""."""
        node, start, end = span
        pieces = self.pieces.get(node, [])
        i = bisect_right([piece[0] for piece in pieces], start) - 1
        at = start
        for first, last, free in pieces[max(i, 0) :]:
            if first > at or at >= end:
                break
            for k, used in self._used(node, vector, max(start, first), min(end, last)):
                if used > free[k]:
                    return f"node {node}: {used} of {free[k]} {self.names[k]} from {at}"
            at = last
        return "" if at >= end else f"node {node} has no time at {at}"

    def _used(
        self, node: int, vector: _Vector, start: float, end: float
    ) -> Iterator[tuple[int, int]]:
        """Yield the largest used amount in a span, for each resource of a vector."""
        for k, amount in enumerate(vector):
            if amount:
                usage = self._usage[node, k]
                times = [start, *usage.changes(start, end)]
                yield k, max(map(usage.at, times))

    def differences(self, other: HostAmounts, booked: Any, now: float) -> str:
        """Return what differs from a snapshot after `now`; "" for nothing.

        `booked` are the nodes and amounts of the parts that its pool has booked.
        """
        if self.capacity != other.capacity or self.names != other.names:
            return "capacity"
        if self._profile(now) != other._profile(now):
            return "free amounts"
        if self._reservations(now) != other._reservations(now):
            return "reservations"
        mine = (each for parts in self.taken.values() for each in parts)
        open_now = ((node, vector) for (node, _, end), vector in mine if end > now)
        return "" if _sums(open_now) == _sums(booked) else "amounts of bookings"

    def _profile(self, now: float) -> dict[int, list[tuple[float, float, _Vector]]]:
        """Return the pieces after `now`, equal neighbours united."""
        found = {}
        for node, pieces in self.pieces.items():
            later = [(max(a, now), b, free) for a, b, free in pieces if b > now]
            united = later[:1]
            for before, piece in pairwise(later):
                if before[1] == piece[0] and before[2] == piece[2]:
                    united[-1] = (united[-1][0], *piece[1:])
                else:
                    united.append(piece)
            if united:
                found[node] = united
        return found

    def _reservations(self, now: float) -> Counter[Any]:
        later = (each for each in self.reserved if each[1][2] > now)
        return Counter(
            (owner, node, end, vector) for owner, (node, _, end), vector in later
        )


def _sums(amounts: Iterable[tuple[int, Iterable[int]]]) -> Counter[tuple[int, int]]:
    """Return the sums of vectors, by node and resource."""
    found: Counter[tuple[int, int]] = Counter()
    for node, vector in amounts:
        for k, amount in enumerate(vector):
            found[node, k] += amount
    return found

"""Nodes that jobs share, by plain definitions: the reference of `slotkern.HostPool`.

A profile is a list with the free amounts of each unit of time; times, lengths, prices
and amounts are whole numbers. A search compares all sets of parts at all starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

Vector = tuple[int, ...]


class Best(NamedTuple):
    """The best window: its value, start, cost, and the node of each part, ascending.

    Fields are in the order of the tie rule: the least tuple is the best.
    """

    value: float
    start: int
    cost: float
    nodes: tuple[int, ...]


@dataclass
class SharesModel:
    """Free amounts of nodes by time.

    Attributes
    ----------
    capacity : list of tuple
    performance : list of int
    price : list of int
        Of the whole node for one unit of time.
    horizon : int
    """

    capacity: list[Vector]
    performance: list[int]
    price: list[int]
    horizon: int
    booked: list[tuple[Any, list[tuple[int, int, int, Vector]]]] = field(
        default_factory=list
    )
    closed: set[tuple[int, int]] = field(default_factory=set)
    now: int = 0

    def free(self, node: int, time: int) -> Vector:
        """Return the free amounts; those of closed and past time are -1."""
        left = list(self.capacity[node])
        if (node, time) in self.closed or not self.now <= time < self.horizon:
            return tuple(-1 for _ in left)
        for _, parts in self.booked:
            for at, start, end, amounts in parts:
                if at == node and start <= time < end:
                    left = [a - b for a, b in zip(left, amounts, strict=True)]
        return tuple(left)

    def holds(self, node: int, start: int, end: int, amounts: Vector) -> bool:
        """Return whether a node has these amounts free in all of [start, end)."""
        return start >= self.now and all(
            a >= b
            for time in range(start, end)
            for a, b in zip(self.free(node, time), amounts, strict=True)
        )

    def part_price(self, node: int, demand: Vector | None) -> float:
        """Return the price of a part: of its largest part of any resource."""
        if demand is None:
            return float(self.price[node])
        pairs = zip(demand, self.capacity[node], strict=True)
        return self.price[node] * max(a / c if c else 0.0 for a, c in pairs)

    def parts(
        self, nodes: tuple[int, ...], start: int, lengths: dict[int, int], demand: Any
    ) -> list[tuple[int, int, int, Vector]]:
        """Return what a window takes: node, start, end and amounts, one per node."""
        found = []
        for node in sorted(set(nodes)):
            each = self.capacity[node] if demand is None else demand
            amounts = tuple(a * nodes.count(node) for a in each)
            found.append((node, start, start + lengths[node], amounts))
        return found

    def find(
        self,
        nodes: int,
        volume: int,
        demand: Vector | None,
        *,
        criterion: str = "start",
        shape: str = "square",
        stack: int = 1,
        budget: float = float("inf"),
        earliest: int = 0,
        deadline: int | None = None,
        fits: Callable[[float, float, list[int]], bool] = lambda *window: True,
    ) -> Best | None:
        """Return the best window over all starts and all sets of parts.

        `fits(start, finish, nodes)` is a further condition of windows.
        """
        best = None
        last = self.horizon if deadline is None else min(deadline, self.horizon)
        hosts = range(len(self.capacity))
        sets = [
            tuple(host for host in hosts for _ in range(counts[host]))
            for counts in product(range(min(stack, nodes) + 1), repeat=len(hosts))
            if sum(counts) == nodes
        ]
        for start in range(max(earliest, self.now), last):
            for chosen in sets:
                found = self._window(chosen, start, volume, demand, shape, last)
                if found is None or found[1] > budget:
                    continue
                runtime, cost = found
                if not fits(start, start + runtime, [*chosen]):
                    continue
                value = {
                    "start": start,
                    "finish": start + runtime,
                    "runtime": runtime,
                    "cost": cost,
                }[criterion]
                each = Best(value, start, cost, chosen)
                best = each if best is None else min(best, each)
        return best

    def _window(
        self,
        chosen: tuple[int, ...],
        start: int,
        volume: int,
        demand: Vector | None,
        shape: str,
        last: int,
    ) -> tuple[int, float] | None:
        """Return the runtime and cost of these parts at a start; None if not free."""
        lengths = lengths_of(self, chosen, volume, shape)
        for at, begin, end, amounts in self.parts(chosen, start, lengths, demand):
            if end > last or not self.holds(at, begin, end, amounts):
                return None
        cost = sum(self.part_price(host, demand) * lengths[host] for host in chosen)
        return max(lengths.values()), cost


def lengths_of(
    model: SharesModel, nodes: tuple[int, ...], volume: int, shape: str
) -> dict[int, int]:
    """Return the length of the parts on each node of a window."""
    own = {node: volume // model.performance[node] for node in nodes}
    longest = max(own.values())
    return {node: longest if shape == "square" else own[node] for node in own}

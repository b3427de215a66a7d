"""Random slots with tariffs, and requests, of dyadic numbers: sums are exact."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from support.tariff_oracle import Slot

import slotkern as sk

FACTORS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 3.0])


class Case(NamedTuple):
    """Slots, the tariffs that they name, and a request; `tick`: 0 without a clock."""

    slots: np.ndarray
    tariffs: sk.Tariffs
    request: dict
    clock: sk.Clock | None
    where: np.ndarray | None

    @property
    def tick(self) -> float:
        return 0.0 if self.clock is None else 1.0

    def pool(self) -> sk.SlotPool:
        return sk.SlotPool(self.slots, tariffs=self.tariffs, clock=self.clock)

    def plain(self, slots=None) -> list[Slot]:
        """Return the slots (by default those of the case) for the oracle."""
        return plain_slots(self.slots if slots is None else slots, self.tariffs)


def plain_slots(slots, tariffs) -> list[Slot]:
    """Return slots with the numbers of their tariffs."""
    named = {
        name: (tariff.breakpoints.tolist(), tariff.factors.tolist())
        for name, tariff in tariffs.items()
    }
    return [
        Slot(
            row,
            int(slot["node"]),
            *(float(slot[name]) for name in ("start", "end", "performance", "price")),
            named.get(str(slot["tariff"])),
        )
        for row, slot in enumerate(slots)
    ]


@st.composite
def tariffs(draw, most: int = 6):
    """Draw a tariff: random steps, or a day and a night that repeat."""
    count = draw(st.integers(0, most))
    first = draw(st.integers(-4, 20)) / 2
    if draw(st.booleans()):
        period = draw(st.integers(1, 8)) / 2
        times = [first + k * period for k in range(count)]
        factors = [2.0 if k % 2 else 0.5 for k in range(count + 1)]
    else:
        steps = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
        times = (first + np.cumsum(steps) / 2).tolist()
        factors = draw(st.lists(FACTORS, min_size=count + 1, max_size=count + 1))
    return sk.Tariff(times, factors)


@st.composite
def cases(draw, most_nodes: int = 5, most_slots: int = 3, budgets: bool = True):
    """Draw a case."""
    names = ["day", "spot", "x"][: draw(st.integers(1, 3))]
    named = sk.Tariffs({name: draw(tariffs()) for name in names})
    nodes = draw(st.integers(1, most_nodes))
    equal = draw(st.integers(0, 3)) == 0
    rows = []
    for node in range(nodes):
        performance = 2.0 if equal else draw(st.sampled_from([1.0, 2.0, 4.0, 3.0]))
        tariff = draw(st.sampled_from([*names, ""]))
        time = draw(st.integers(0, 20)) / 4
        for _ in range(draw(st.integers(1, most_slots))):
            end = time + draw(st.integers(1, 30)) / 2
            if draw(st.integers(0, 11)) == 0:
                end = np.inf
            price = 1.0 if equal else draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]))
            rows.append((node, time, end, performance, price, tariff))
            time = end + draw(st.integers(0, 8)) / 4
            if time == np.inf:
                break
    dtype = [*((name, sk.SLOT[name]) for name in sk.SLOT.names), ("tariff", "U8")]
    slots = np.array(rows, dtype)
    slots = slots[np.lexsort((slots["node"], slots["start"]))]
    request = draw(requests(nodes))
    if budgets and draw(st.booleans()):
        request["budget"] = draw(st.integers(0, 60)) / 4
    clock = (
        sk.Clock("2026-01-01T00:00:00+00:00", tick="s") if draw(st.booleans()) else None
    )
    where = None
    if draw(st.integers(0, 5)) == 0:
        where = np.array([draw(st.booleans()) for _ in slots])
    return Case(slots, named, request, clock, where)


@st.composite
def requests(draw, nodes: int):
    """Draw the fields of a request for some of these nodes."""
    request = {
        "nodes": draw(st.integers(1, min(nodes, 3))),
        "volume": draw(st.sampled_from([3.0, 6.0, 12.0, 12.0, 24.0])),
    }
    times = {"earliest": 0, "latest": 6, "deadline": 8}
    for name, more in times.items():
        if draw(st.integers(0, 3)) == 0:
            request[name] = draw(st.integers(0, 60)) / 4 + more
    if request.get("earliest", 0) > min(
        request.get("latest", 99), request.get("deadline", 99)
    ):
        del request["earliest"]
    if draw(st.integers(0, 3)) == 0:
        request["setup"] = draw(st.integers(0, 4)) / 2
    if draw(st.integers(0, 3)) == 0:
        request["step"] = draw(st.integers(1, 6)) / 2
    if draw(st.integers(0, 4)) == 0:
        request["min_performance"] = 2.0
    if draw(st.integers(0, 6)) == 0:
        request["max_runtime"] = float(draw(st.integers(2, 9)))
    return request


class Given(NamedTuple):
    """Slots with their tariffs and clock, for functions that take slots."""

    slots: np.ndarray
    tariffs: sk.Tariffs
    clock: sk.Clock | None

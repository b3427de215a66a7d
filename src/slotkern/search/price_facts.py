"""Facts about the prices of a request's windows under tariffs, for `explain`.

The cheapest window begins or ends when a price changes, or at an end of a slot; the
earliest window may cost more than the budget allows because of one tariff at one time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slotkern._kernels.slots import PreparedSlots, has_tariffs, tariffs_of_nodes
from slotkern._kernels.windows import Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from slotkern.machine.clock import Clock
    from slotkern.tariffs import Tariff

__all__ = ["PriceFacts", "price_facts"]


class PriceFacts(NamedTuple):
    """Facts about the windows of a request under tariffs; times are numbers.

    Attributes
    ----------
    cheapest_start : float or None
        The start of the cheapest window without the budget.
    turn : str
        Why it does not start earlier or later: "falls" (the tariff falls when it
        starts), "rises" (the tariff rises when a part ends), "begins" (a slot begins,
        or the request's earliest start) or "ends" (the latest start in a slot).
    turn_tariff, turn_factor : str, float or None
        The tariff that falls or rises, and its factor from then on.
    soonest_start, soonest_cost : float or None
        The earliest start without the budget, and the least cost there.
    highest_tariff, highest_factor, highest_from : str, float or None, float or None
        The tariff with the highest factor while that window runs, this factor, and the
        time from which it holds; empty if no part has a tariff.
    affordable_start : float or None
        The earliest start within the budget, without deadline and latest start.
    """

    cheapest_start: float | None = None
    turn: str = ""
    turn_tariff: str = ""
    turn_factor: float | None = None
    soonest_start: float | None = None
    soonest_cost: float | None = None
    highest_tariff: str = ""
    highest_factor: float | None = None
    highest_from: float | None = None
    affordable_start: float | None = None

    def lines(self, clock: Clock | None, budget: float) -> list[str]:
        """Return the facts in words."""

        def time(value: float) -> str:
            if clock is None:
                return f"{value:.10g}"
            return str(clock.datetime(value))

        lines = []
        if self.cheapest_start is not None:
            when = {
                "begins": ", when a slot or the time allowed begins",
                "ends": ", the latest start in a slot or in the time allowed",
            }.get(self.turn, "")
            if self.turn_factor is not None:
                verb = ", when" if self.turn == "falls" else " and ends before"
                when = (
                    f"{verb} tariff {self.turn_tariff!r} {self.turn} to "
                    f"{self.turn_factor:g}"
                )
            lines.append(f"it starts at {time(self.cheapest_start)}{when}")
        if self.soonest_start is not None and self.soonest_cost is not None:
            why = ""
            if self.highest_factor is not None and self.highest_from is not None:
                since = (
                    ""
                    if np.isinf(self.highest_from)
                    else f" from {time(self.highest_from)} on"
                )
                why = (
                    f": tariff {self.highest_tariff!r} is at "
                    f"{self.highest_factor:g}{since}"
                )
            lines.append(
                f"the earliest window starts at {time(self.soonest_start)} and costs "
                f"{self.soonest_cost:.6g}{why}"
            )
            if (
                self.affordable_start is not None
                and self.soonest_cost > budget
                and self.affordable_start > self.soonest_start
            ):
                lines.append(
                    "within the budget the earliest start, without deadline and latest "
                    f"start, is {time(self.affordable_start)}"
                )
        return lines


def price_facts(
    pool: PreparedSlots, earliest: float, find: Callable[..., Window | None]
) -> PriceFacts | None:
    """Collect the facts with `find(criterion, **changes)`; None without tariffs."""
    if not has_tariffs(pool):
        return None
    facts: dict[str, Any] = {}
    cheapest = find("cost", budget=np.inf)
    if cheapest is not None:
        parts = _priced_parts(cheapest, pool)
        turn, tariff, factor = _turn_of(cheapest, parts, pool.slots, earliest)
        facts |= {"cheapest_start": cheapest.start, "turn": turn}
        facts |= {"turn_tariff": tariff, "turn_factor": factor}
    soonest = find("start", budget=np.inf)
    if soonest is not None:
        facts |= {"soonest_start": soonest.start, "soonest_cost": soonest.cost}
        facts |= _highest_of(_priced_parts(soonest, pool))
    affordable = find("start", deadline=np.inf, latest=np.inf)
    if affordable is not None:
        facts["affordable_start"] = affordable.start
    return PriceFacts(**facts)


class _PricedPart(NamedTuple):
    """A part of a window on a node with a tariff."""

    name: str
    tariff: Tariff
    start: float
    end: float
    length: float


def _priced_parts(window: Window, pool: PreparedSlots) -> list[_PricedPart]:
    """Return the parts of a window on nodes with a tariff."""
    named, tariffs = tariffs_of_nodes(pool.slots), pool.tariffs
    assert named is not None
    assert tariffs is not None
    name_of = dict(zip(named[0].tolist(), named[1].tolist(), strict=True))
    return [
        _PricedPart(name, tariffs[name], part["start"], part["end"], part["length"])
        for part in window.to_dict()["slots"]
        if (name := name_of[part["node"]])
    ]


def _turn_of(
    window: Window, parts: list[_PricedPart], slots: NDArray[np.void], earliest: float
) -> tuple[str, str, float | None]:
    """Return the turn of a part at which a window starts, its tariff and factor."""
    for name, tariff, start, _, length in parts:
        times, steps = tariff.breakpoints, np.diff(tariff.factors)
        falls = np.flatnonzero((times == start) & (steps < 0))
        # The start is this difference; start + length may be rounded to another end.
        rises = np.flatnonzero((times - length == start) & (steps > 0))
        for turn, changes in (("falls", falls), ("rises", rises)):
            if changes.size:
                return turn, name, float(tariff.factors[changes[0] + 1])
    inside = np.isin(slots["node"], np.array(window.nodes))
    begins = (inside & (slots["start"].clip(min=earliest) == window.start)).any()
    return "begins" if begins else "ends", "", None


def _highest_of(parts: list[_PricedPart]) -> dict[str, Any]:
    """Return the highest factor of a tariff while a window runs."""
    found = []
    for name, tariff, start, end, _ in parts:
        edges, factors = tariff.segments(-np.inf, np.inf)
        first = int(np.searchsorted(edges, start, "right")) - 1
        last = int(np.searchsorted(edges, end, "left"))
        k = first + int(np.argmax(factors[first:last]))
        found.append((float(factors[k]), name, float(edges[k])))
    if not found:
        return {}
    factor, name, since = max(found, key=lambda each: each[0])
    return {
        "highest_factor": factor,
        "highest_tariff": name,
        "highest_from": since,
    }

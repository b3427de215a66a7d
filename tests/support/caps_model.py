"""Exhaustive search under capacities and quotas, for tiny pools.

Times are multiples of a half from 0 to `HORIZON`, and a step function is a list with
the amount of each half. A window is any set of nodes at any start: slots begin at
halves and lengths are multiples of halves, so no other start is better. Written from
the definitions, without spans of time.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

import slotkern as sk

HORIZON = 12
HALVES = 2 * HORIZON
CRITERIA = ("first", "start", "finish", "runtime", "cost", "watts", "less watts")


class Rule(NamedTuple):
    """A capacity (account None) or a quota, with its amount in each half."""

    what: str
    account: str | None
    each: bool
    amounts: list[float]


class Booking(NamedTuple):
    """The use of a booked window."""

    start: float
    finish: float
    nodes: int
    uses: dict[str, int]
    account: str | None


def counted(rule: Rule, nodes: int, uses: dict[str, int], account: str | None) -> int:
    """Return how much a rule counts of a window."""
    if rule.account not in (None, "*", account):
        return 0
    return nodes if rule.what == "nodes" else uses.get(rule.what, 0)


def halves(start: float, finish: float) -> range:
    """Return the indices of the halves of a span of time."""
    return range(max(0, math.floor(2 * start)), math.ceil(min(HALVES, 2 * finish)))


class CapsModel:
    """The rules of a pool and its bookings, in the simplest form."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.bookings: list[Booking] = []

    def free(self, rule: Rule, account: str | None) -> list[float]:
        """Return the free amount of a rule in each half, for windows of an account."""
        found = list(rule.amounts)
        for each in self.bookings:
            if rule.each and (each.account or "") != (account or ""):
                continue
            amount = counted(rule, each.nodes, each.uses, each.account)
            for half in halves(each.start, each.finish):
                found[half] -= amount
        return found

    def fits(
        self, request: sk.Request, now: float
    ) -> Callable[[float, float, Any], bool]:
        """Return the function that checks that all rules have enough for a window."""
        free = [(rule, self.free(rule, request.account)) for rule in self.rules]

        def enough(start: float, finish: float, rows: Any) -> bool:
            uses = {
                name: sum(int(row[of]) for row in rows) if isinstance(of, str) else of
                for name, of in (request.uses or {}).items()
            }
            for rule, amounts in free:
                need = counted(rule, request.nodes, uses, request.account)
                if need and any(amounts[h] < need for h in halves(start, finish)):
                    return False
            return start >= now

        return enough

    def best(
        self,
        pool: sk.SlotPool,
        request: sk.Request,
        criterion: str,
        shape: str,
        limit: Callable[[Any], bool] = lambda rows: True,
    ) -> float | None:
        """Return the best value of a window of the free slots, or None."""
        slots = pool.slots
        fits = self.fits(request, max(0.0, pool.now))
        found = []
        for start in (half / 2 for half in range(HALVES)):
            if not request.earliest <= start <= request.latest:
                continue
            live = [
                (row, request.volume / row["performance"])
                for row in slots
                if row["start"] <= start
                and start + request.volume / row["performance"] <= row["end"]
            ]
            for parts in combinations(live, request.nodes):
                rows = [row for row, _ in parts]
                if len({row["node"] for row in rows}) < len(rows):
                    continue
                runtime = max(length for _, length in parts)
                lengths = [runtime if shape == "square" else x for _, x in parts]
                finish = start + runtime
                inside = all(
                    start + length <= row["end"]
                    for row, length in zip(rows, lengths, strict=True)
                )
                cost = sum(
                    row["price"] * length
                    for row, length in zip(rows, lengths, strict=True)
                )
                if (
                    inside
                    and finish <= request.deadline
                    and runtime <= request.max_runtime
                    and cost <= request.budget
                    and fits(start, finish, rows)
                    and limit(rows)
                ):
                    watts = float(sum(row["watts"] for row in rows))
                    values = start, start, finish, runtime, cost, -watts, watts
                    found.append(values[CRITERIA.index(criterion)])
        return min(found) if found else None


def searched(criterion: str) -> Any:
    """Return the argument of `find_window` for a criterion of the model."""
    return sk.minimize("watts") if criterion == "less watts" else criterion


def value_of(window: sk.Window | None, criterion: str) -> float | None:
    """Return the value of a window as `CapsModel.best` does."""
    if window is None:
        return None
    return -window.value if criterion == "watts" else window.value


def random_slots(pick: Callable[[Any], Any]) -> np.ndarray:
    """Return slots of up to four nodes with ties, in halves."""
    rows = []
    for node in range(pick(range(1, 5))):
        performance, time = pick((1.0, 1.0, 2.0)), pick((0, 0, 1, 2))
        while time < HORIZON:
            end = min(HORIZON, time + pick(range(1, 9)))
            rows.append(
                (node, time, end, performance, pick((1, 2, 4)), pick((0, 1, 5)))
            )
            time = end + pick((0, 1, 2))
    names = ("node", "start", "end", "performance", "price", "watts")
    columns = zip(*rows, strict=True)
    return sk.make_slots(**dict(zip(names, map(list, columns), strict=True)))


def random_request(pick: Callable[[Any], Any]) -> sk.Request:
    """Return a request whose limits often matter."""
    earliest = pick((-math.inf, -math.inf, 0, 3))
    return sk.Request(
        pick((1, 1, 2, 2, 3)),
        pick((1, 2, 3, 4, 6)),
        budget=pick((math.inf, math.inf, 6, 12, 20)),
        earliest=earliest,
        deadline=pick((math.inf, math.inf, 9, 11)),
        latest=pick((math.inf, math.inf, math.inf, 5)),
        max_runtime=pick((math.inf, math.inf, math.inf, 3)),
        uses=pick(
            (None, {"a": 1}, {"a": 2}, {"b": 3}, {"a": 1, "b": 1}, {"a": "watts"})
        ),
        account=pick((None, "x", "x", "y")),
    )

"""An independent check of capacities and quotas: amounts over time, counted again.

A part of `slotkern.ledger.check`: nothing here uses the kernels that count amounts.
Rules are rows [what, account, each, when, steps, weekly] as `caps` entries have them;
steps are pairs of a time and the amount from it on, None for no limit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Charge", "CountedRules", "Usage"]


class Charge(NamedTuple):
    """The use of a booked window: its span, nodes, amounts by name, and account."""

    start: float
    finish: float
    nodes: int
    uses: dict[str, int]
    account: str | None


class Usage:
    """The used amount over time, as a step function that is 0 before the first step."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.used: list[int] = []

    def add(self, start: float, finish: float, amount: int) -> None:
        """Add an amount in [start, finish). O(steps)."""
        for time in (start, finish):
            i = bisect_left(self.times, time)
            if i == len(self.times) or self.times[i] != time:
                self.times.insert(i, time)
                self.used.insert(i, self.used[i - 1] if i else 0)
        first = bisect_left(self.times, start)
        for i in range(first, bisect_left(self.times, finish)):
            self.used[i] += amount

    def at(self, time: float) -> int:
        """Return the used amount at a time."""
        i = bisect_right(self.times, time)
        return self.used[i - 1] if i else 0

    def changes(self, start: float, finish: float) -> list[float]:
        """Return the times of steps in (start, finish)."""
        first = bisect_right(self.times, start)
        return self.times[first : bisect_left(self.times, finish)]


class CountedRules:
    """The rules of a ledger, and the charges of its open bookings."""

    def __init__(self) -> None:
        self.rules: list[Any] = []
        self.charges: dict[int, Charge] = {}
        self._usage: dict[tuple[int, str | None], Usage] = {}

    def set_rules(self, rules: list[Any]) -> None:
        """Replace all rules, and count the open bookings again."""
        self.rules, self._usage = rules, {}
        for charge in self.charges.values():
            self._count(charge, 1)

    def take(self, number: int, charge: Charge) -> str:
        """Count a booking; return the first rule that it exceeds, "" for none."""
        self.charges[number] = charge
        self._count(charge, 1)
        for i, rule, amount in self._amounts(charge):
            usage, steps = self._usage[i, _counter(rule, charge)], rule[4]
            times = [time for time, _ in steps if charge.start < time < charge.finish]
            times += [charge.start, *usage.changes(charge.start, charge.finish)]
            for time in sorted(times):
                limit = _limit_at(steps, time)
                if limit is not None and usage.at(time) > limit:
                    whose = f" of {rule[1]}" if rule[1] else ""
                    return (
                        f"{rule[0]}{whose}: {usage.at(time)} of {limit} at {time}, "
                        f"{amount} by this booking"
                    )
        return ""

    def give_back(self, number: int) -> None:
        """Count a booking no more."""
        self._count(self.charges.pop(number), -1)

    def _count(self, charge: Charge, sign: int) -> None:
        for i, rule, amount in self._amounts(charge):
            usage = self._usage.setdefault((i, _counter(rule, charge)), Usage())
            usage.add(charge.start, charge.finish, sign * amount)

    def _amounts(self, charge: Charge) -> Iterator[tuple[int, Any, int]]:
        """Yield the number of each rule that counts a booking, the rule, the amount."""
        for i, rule in enumerate(self.rules):
            what, account = rule[:2]
            if account not in (None, "*", charge.account):
                continue
            amount = charge.nodes if what == "nodes" else charge.uses.get(what, 0)
            if amount:
                yield i, rule, amount


def _counter(rule: Any, charge: Charge) -> str | None:
    """Return the account that a rule counts by itself; None for all together."""
    return charge.account or "" if rule[2] else None


def _limit_at(steps: Any, time: float) -> int | None:
    i = bisect_right([start for start, _ in steps], time)
    limit: int | None = steps[i - 1][1] if i else None
    return limit

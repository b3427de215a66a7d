"""Exhaustive search for the best window under group rules, and random cases.

Plain Python, written from the definition: the parts of a window touch the groups of
their rows; `distinct` is the number of these groups, `most` the largest number of parts
in one of them. All sets of parts are enumerated. Among windows of equal value and start
the cheapest wins, before rounding, then the one with the smallest node ids.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from limited import best_that
from oracle import Window
from strategies import Case, pickers

#: Columns of cases: racks lie in sites, sites in halls.
LEVELS = ("rack", "site", "hall")


class Rule(NamedTuple):
    """A group rule; `kind` is "distinct" or "most", `side` "<=" or ">="."""

    kind: str
    level: str
    side: str
    count: int

    @property
    def text(self) -> str:
        return f"{self.kind}({self.level}) {self.side} {self.count}"


def meets_rules(rows, slots: np.ndarray, rules) -> bool:
    """Return True if the parts in these rows meet all rules."""
    for rule in rules:
        parts = Counter(slots[rule.level][row].item() for row in rows)
        count = len(parts) if rule.kind == "distinct" else max(parts.values())
        if not (count <= rule.count if rule.side == "<=" else count >= rule.count):
            return False
    return True


def best_under_rules(slots: np.ndarray, shape: str, rules, **request) -> dict:
    """Return the best window, or None, by first, start, finish, runtime and cost."""

    def meets(window: Window) -> bool:
        return meets_rules(window.rows, slots, rules)

    return best_that(meets, by_cost_and_nodes, slots, shape, **request)


def by_cost_and_nodes(window: Window) -> tuple:
    """Return the key that orders windows of equal value: the exact cost, the nodes."""
    infinite = math.isinf(window.cost)
    return infinite or sum(map(Fraction, window.prices)), window.nodes


def with_levels(slots: np.ndarray, pick) -> np.ndarray:
    """Return the slots with random racks of one to four nodes, sites and halls."""
    fields: list[Any] = [("rack", "U2"), ("site", "i4"), ("hall", "U1")]
    table = np.zeros(len(slots), np.dtype(slots.dtype.descr + fields, align=True))
    for name in slots.dtype.names:
        table[name] = slots[name]
    racks = pick((1, 2, 3, 4))
    site = [pick((0, 1)) for _ in range(racks)]
    for node in np.unique(slots["node"]):
        rack = pick(range(racks))
        at = slots["node"] == node
        table["rack"][at] = f"r{rack}"
        table["site"][at] = site[rack]
        table["hall"][at] = "h"
    return table


def some_rule(pick) -> Rule:
    """Draw a rule that some windows of few nodes meet and others do not."""
    kind = pick(("distinct", "distinct", "most"))
    side = "<=" if kind == "most" else pick(("<=", ">="))
    return Rule(kind, pick(LEVELS[:2] * 2 + LEVELS[2:]), side, pick((1, 1, 2, 2, 3)))


@st.composite
def ruled_cases(draw, of, most: int = 2):
    """Draw a case from `of` with levels, and one to `most` rules that agree."""
    case: Case = draw(of)
    pick = draw(pickers)
    rules = [some_rule(pick) for _ in range(draw(st.integers(1, most)))]
    return Case(with_levels(case.slots, pick), case.request), agreeing(rules)


def agreeing(rules: list[Rule]) -> list[Rule]:
    """Return the rules without those that contradict an earlier one: an error."""
    kept: list[Rule] = []
    for rule in rules:
        low, high = rule.side == ">=", rule.side == "<="
        if not any(
            other.kind == rule.kind == "distinct"
            and other.level == rule.level
            and (
                (low and other.side == "<=" and other.count < rule.count)
                or (high and other.side == ">=" and other.count > rule.count)
            )
            for other in kept
        ):
            kept.append(rule)
    return kept

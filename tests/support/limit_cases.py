"""Limits on sums that some windows of a case meet exactly or miss by one bit."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from limited import Limit
from oracle import length_on, terms_of
from strategies import Case, Picker, pickers

WEIGHTS = (
    (0.0, 1.0, 2.0, 3.0),
    (0.1, 0.2, 0.3, 0.7),
    (-2.0, -1.0, 0.0, 1.0),
    (1.0, 2.0**53, 3.0),
    (1 / 3, 5.0, 1e-9),
)


def some_limit(pick: Picker, case: Case) -> Limit:
    """Draw a limit that some n slots meet exactly or miss by one bit."""
    slots, request = case
    kind, by_length = pick(WEIGHTS), pick((False, False, True))
    weights = [pick(kind) for _ in slots]
    performance = float(pick(slots)["performance"])
    length = length_on(performance, *terms_of(request))
    rows = [pick(range(len(slots))) for _ in range(request["nodes"])]
    amount = math.fsum(
        weights[row] * length if by_length else weights[row] for row in rows
    )
    away = pick((0.0, 0.0, -math.inf, math.inf))
    if away:
        amount = math.nextafter(amount, away)
    return Limit(weights, by_length, pick(("<=", ">=")), amount)


@st.composite
def limited_cases(draw, of):
    """Draw a case from `of` and one to three limits."""
    case = draw(of)
    if not len(case.slots):
        return case, []
    return case, [
        some_limit(draw(pickers), case) for _ in range(draw(st.integers(1, 3)))
    ]


def with_columns(slots, limits):
    """Return the slots with a column per limit, and the limits as expressions."""
    fields = [(f"w{k}", "f8") for k in range(len(limits))]
    table = np.zeros(len(slots), np.dtype(slots.dtype.descr + fields, align=True))
    for name in slots.dtype.names:
        table[name] = slots[name]
    words = []
    for k, limit in enumerate(limits):
        table[f"w{k}"] = limit.weights
        term = f"w{k} * length" if limit.by_length else f"w{k}"
        words.append(f"sum({term}) {limit.side} {limit.amount!r}")
    return table, words

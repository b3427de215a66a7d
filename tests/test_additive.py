"""Windows by any additive criterion: against every window there is, and the table."""

from __future__ import annotations

import ctypes

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SHAPES, Case, cases

import slotkern as sk

PLACEMENTS = ("dependable", "coordinated")


def lengths_of(window, slots, shape, volume):
    """How long each part runs."""
    if shape == "square":
        return [window.runtime] * len(window.rows)
    return [volume / slots["performance"][row] for row in window.rows]


def nearest(slots, row, start, length):
    return min(start - slots["start"][row], slots["end"][row] - start - length)


def farthest(slots, row, start, length):
    return max(start - slots["start"][row], slots["end"][row] - start - length)


def total(function, window, slots, shape, volume):
    return sum(
        function(slots, row, window.start, length)
        for row, length in zip(
            window.rows, lengths_of(window, slots, shape, volume), strict=True
        )
    )


def request_of(case):
    asked = dict(case.request)
    proper = asked.pop("proper", None)
    return sk.Request(asked.pop("nodes"), asked.pop("volume"), **asked, where=proper)


def check_window(window, case, shape):
    """The numbers of a window are those of its rows; it fits."""
    filters = ("min_performance", "max_price", "proper")
    usable = oracle.proper_slots(
        case.slots, **{f: case.request[f] for f in filters if f in case.request}
    )
    rows = window.slots["row"].tolist()
    parts = [slot for slot in usable if slot.row in rows]
    again = oracle.window_of(window.start, parts, shape, case.request["volume"])
    assert list(again.rows) == rows
    assert len(set(again.nodes)) == case.request["nodes"] == len(rows)
    assert (window.cost, window.runtime) == (again.cost, again.runtime)
    assert window.cost <= case.request.get("budget", np.inf)
    assert window.start >= case.request.get("earliest", 0.0)
    for slot, length in zip(
        sorted(parts, key=lambda slot: slot.node),
        lengths_of(again, case.slots, shape, case.request["volume"]),
        strict=True,
    ):
        deadline = case.request.get("deadline", np.inf)
        assert oracle.is_live(slot, window.start, length, deadline)
    return again


def judge(window, best, sign, window_value):
    """The optimum, or None where there is none; the bound lies on the other side."""
    if best is None:
        assert window is None
        return
    assert window is not None
    close = 1e-11 * max(1.0, abs(best))
    assert window.value == pytest.approx(window_value, rel=1e-12, abs=1e-12)
    assert sign * window.value <= sign * best + close
    assert sign * window.bound >= sign * window.value
    assert window.proven
    assert sign * window.value >= sign * best - close


def best_total(case, shape, function, sign):
    values = [
        sign * total(function, window, case.slots, shape, case.request["volume"])
        for window in oracle.all_windows(case.slots, shape, **case.request)
    ]
    return sign * max(values) if values else None


@settings(max_examples=300, deadline=None)
@given(cases(), st.data())
def test_column_equals_exhaustive_search(case: Case, data):
    few = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.1, 0.3, 5.0])
    column = np.array(
        data.draw(st.lists(few, min_size=len(case.slots), max_size=len(case.slots)))
    )
    request = request_of(case)
    for shape in SHAPES:
        for sign, criterion in ((1, column), (-1, sk.minimize(column))):
            best = best_total(case, shape, lambda s, row, t, d: column[row], sign)
            window = sk.find_window(case.slots, request, criterion, shape=shape)
            value = None
            if window is not None:
                again = check_window(window, case, shape)
                value = sum(column[row] for row in again.rows)
            judge(window, best, sign, value)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_processor_time_equals_exhaustive_search(case: Case):
    request = request_of(case)
    for shape in SHAPES:
        best = best_total(case, shape, lambda s, row, t, d: d, -1)
        window = sk.find_window(case.slots, request, "processor_time", shape=shape)
        judge(window, best, -1, window and window.processor_time)
        if window is not None:
            check_window(window, case, shape)


def with_ends(case):
    """The same case with an end to every slot, which placement needs."""
    slots = case.slots.copy()
    endless = np.isinf(slots["end"])
    slots["end"][endless] = slots["start"][endless] + 4.0
    return Case(slots, case.request)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_placement_equals_exhaustive_search(case: Case):
    case = with_ends(case)
    proper = case.request.get("proper")
    if proper is not None:  # windows start where slots that may take part start
        case = Case(case.slots[proper].copy(), {**case.request, "proper": None})
    case.request.pop("proper", None)
    usable = (case.slots["performance"] >= case.request.get("min_performance", 0)) & (
        case.slots["price"] <= case.request.get("max_price", np.inf)
    )
    starts = {
        max(float(s), case.request.get("earliest", 0.0))
        for s in case.slots["start"][usable]
    }
    request = request_of(case)
    nodes = case.request["nodes"]
    for shape in SHAPES:
        for criterion, distance, sign in (
            ("dependable", nearest, 1),
            ("coordinated", farthest, -1),
        ):
            values = [
                sign * total(distance, w, case.slots, shape, case.request["volume"])
                for w in oracle.all_windows(case.slots, shape, **case.request)
                if w.start in starts
            ]
            best = sign * max(values) / nodes if values else None
            window = sk.find_window(case.slots, request, criterion, shape=shape)
            value = None
            if window is not None:
                again = check_window(window, case, shape)
                value = (
                    total(distance, again, case.slots, shape, case.request["volume"])
                    / nodes
                )
            judge(window, best, sign, value)
            anywhere = sk.find_window(
                case.slots, request, criterion, shape=shape, placement="any"
            )
            if window is None:
                continue
            assert anywhere is not None
            check_window(anywhere, case, shape)
            assert anywhere.proven
            assert sign * anywhere.value >= sign * window.value - 1e-9

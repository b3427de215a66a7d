"""Checks of windows by value against their rows, and the papers' environments."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

import slotkern as sk

PLACEMENTS = ("dependable", "coordinated")


def lengths_of(window, slots, shape, request):
    """Return the length of each part."""
    if shape == "square":
        return [window.runtime] * len(window.rows)
    performances = slots["performance"][list(window.rows)].tolist()
    return [oracle.length_on(p, *oracle.terms_of(request)) for p in performances]


def nearest(slots, row, start, length):
    """Return the smaller gap before and after a part in its slot."""
    return min(start - slots["start"][row], slots["end"][row] - start - length)


def farthest(slots, row, start, length):
    """Return the larger gap before and after a part in its slot."""
    return max(start - slots["start"][row], slots["end"][row] - start - length)


def total(function, window, slots, shape, request):
    """Return the sum of a function over the parts of a window."""
    return oracle.add(
        function(slots, row, window.start, length)
        for row, length in zip(
            window.rows, lengths_of(window, slots, shape, request), strict=True
        )
    )


def request_of(case):
    """Return the request of a case as a `Request`."""
    fields = dict(case.request)
    proper = fields.pop("proper", None)
    return sk.Request(fields.pop("nodes"), fields.pop("volume"), **fields, where=proper)


def check_window(window, case, shape):
    """Assert that a window is valid and its totals are those of its rows."""
    usable = oracle.proper_slots(
        case.slots, **{f: case.request[f] for f in oracle.FILTERS if f in case.request}
    )
    rows = window.slots["row"].tolist()
    parts = [slot for slot in usable if slot.row in rows]
    terms = oracle.terms_of(case.request)
    again = oracle.window_of(window.start, parts, shape, *terms)
    assert list(again.rows) == rows
    assert len(set(again.nodes)) == case.request["nodes"] == len(rows)
    assert (window.cost, window.runtime) == (again.cost, again.runtime)
    assert oracle.met(window.cost, case.request.get("budget", np.inf))
    assert window.start >= case.request.get("earliest", -np.inf)
    assert window.start <= case.request.get("latest", np.inf)
    assert window.runtime <= case.request.get("max_runtime", np.inf)
    for slot, length in zip(
        sorted(parts, key=lambda slot: slot.node),
        lengths_of(again, case.slots, shape, case.request),
        strict=True,
    ):
        deadline = case.request.get("deadline", np.inf)
        assert oracle.is_live(slot, window.start, length, deadline)
    return again


def judge(window, best, sign, window_value):
    """Assert that a window has the optimal value and a valid bound, or is None."""
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
    """Return the best sum of a function over all windows, or None."""
    values = [
        sign * total(function, window, case.slots, shape, case.request)
        for window in oracle.all_windows(case.slots, shape, **case.request)
    ]
    return sign * max(values) if values else None


def environment(cycle, *, real=False):
    """Return the papers' environment, with real-valued performance if `real`."""
    slots = sk.generate_environment("square", seed=3, cycle=cycle).slots
    if real:
        rng = np.random.default_rng(cycle)
        performance = rng.uniform(2, 10, slots["node"].max() + 1)
        price = 0.115 * performance * rng.uniform(0.6, 1.4, len(performance))
        slots = slots.copy()
        slots["performance"] = performance[slots["node"]]
        slots["price"] = price[slots["node"]]
    return slots


PAPER = sk.Request(7, 800, budget=644, min_performance=1)

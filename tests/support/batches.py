"""Strategies for small batches, and the invariants of every schedule."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from oracle import met

import slotkern as sk

POLICIES = [
    sk.CSS,
    sk.BatchSlicer(2),
    sk.BatchSlicer(99),
    sk.BatchSlicer(3, "cost", by="performance"),
    sk.Backfilling(),
    sk.Backfilling("easy"),
    sk.BSF(2, k=2, by="cost"),
    sk.BSF(1, kind="easy"),
]


@st.composite
def small_slots(draw, most=5):
    """Draw slots of a few nodes with times and lengths that add up exactly."""
    rows = []
    for node in range(draw(st.integers(1, most))):
        time, performance = 0, draw(st.sampled_from([1, 2, 4]))
        price = draw(st.integers(0, 4))
        for gap, length in draw(
            st.lists(
                st.tuples(st.integers(0, 6), st.integers(1, 24)), min_size=1, max_size=3
            )
        ):
            start = time + gap
            time = start + length
            rows.append((node, start, time, performance, price))
    fields = ("node", "start", "end", "performance", "price")
    return sk.make_slots(
        **dict(zip(fields, map(list, zip(*rows, strict=True)), strict=True))
    )


jobs_of = st.builds(
    sk.Request,
    st.integers(1, 3),
    st.integers(1, 24).map(float),
    budget=st.one_of(st.just(math.inf), st.integers(0, 90).map(float)),
    min_performance=st.sampled_from([0, 0, 2]),
    earliest=st.sampled_from([0, 0, 0, 5]),
    deadline=st.sampled_from([math.inf, math.inf, 30]),
)
batches = st.lists(jobs_of, min_size=1, max_size=5)
shapes = st.sampled_from(["ragged", "ragged", "square"])


def check_disjoint(slots, parts):
    """Assert that no part overlaps another or lies outside the slots."""
    for node in np.unique(parts["node"]):
        mine = np.sort(parts[parts["node"] == node], order="start")
        assert (mine["end"][:-1] <= mine["start"][1:]).all()
        own = slots[slots["node"] == node]
        for part in mine:
            inside = (own["start"] <= part["start"]) & (part["end"] <= own["end"])
            assert inside.any()


def check_schedule(slots, requests, schedule):
    """Assert that all windows are valid and disjoint and that the totals agree."""
    table = schedule.windows.table
    check_disjoint(slots, schedule.windows.parts)
    for j, (request, window) in enumerate(zip(requests, schedule, strict=True)):
        assert (window is None) == (schedule.reasons[j] != "scheduled")
        if window is None:
            continue
        assert schedule.owner[schedule.chosen[j]] == j
        assert len(window) == request.nodes
        assert met(window.cost, request.budget)
        assert request.earliest <= window.start
        assert window.finish <= request.deadline
    # All numbers are exact, so the costs of the jobs equal the profits of the nodes.
    nodes, totals = schedule.nodes(), schedule.totals()
    assert nodes["profit"].sum() == totals["cost"] == np.nansum(table["cost"])
    assert nodes["used"].sum() == totals["processor_time"]
    assert (nodes["used"] <= nodes["free"]).all()
    assert schedule.value == totals["processor_time"]

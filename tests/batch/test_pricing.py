"""The search for least windows at prices, against plain Python; and its refusals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from least_window import Model, Rates

import slotkern as sk
from slotkern._kernels.pricing import Pricer, Prices
from slotkern._kernels.slots import prepare_snapshot
from slotkern.batch.plans import Planner
from slotkern.batch.pricing import Aim, Free, PricedJob, whole_time

#: Times and rates: of few digits, so that many totals are equal, or of many.
NUMBERS = {
    "few": (st.integers(0, 24).map(lambda k: k / 2), st.integers(0, 3).map(float)),
    "many": (st.floats(0, 12), st.floats(0, 3)),
}
TARGETS = ("start", "finish", "runtime", "cost", "processor_time", "column")


@st.composite
def cases(draw):
    """Draw slots, free pieces, spans of prices, a job, and the terms of its total."""
    time, rate = NUMBERS[draw(st.sampled_from(sorted(NUMBERS)))]
    nodes = draw(st.integers(1, 4))
    rows = []
    for node in range(nodes):
        times = sorted(draw(st.lists(time, max_size=6, unique=True)))
        rows += [(node, a, b) for a, b in zip(times[::2], times[1::2], strict=False)]
    spans = []
    for node, a, b in draw(st.lists(st.tuples(st.integers(0, nodes - 1), time, time))):
        if a != b:
            spans.append((node, min(a, b), max(a, b), draw(rate)))
    performance = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=4))
    price = draw(st.lists(rate, min_size=len(rows), max_size=len(rows)))
    gain = draw(st.lists(rate, min_size=len(rows), max_size=len(rows)))
    request = sk.Request(
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1.0, 3.0, 4.0, 6.5])),
        budget=draw(st.sampled_from([math.inf, math.inf, 6.0, 12.0])),
        earliest=draw(st.sampled_from([-math.inf, 2.5])),
        latest=draw(st.sampled_from([math.inf, 7.0])),
        deadline=draw(st.sampled_from([math.inf, 9.5])),
    )
    target, expense = draw(st.tuples(*[st.sampled_from(TARGETS)] * 2))
    return {
        "nodes": nodes,
        "rows": rows,
        "spans": spans,
        "request": request,
        "own": [request.volume / performance[node] for node, _, _ in rows],
        "usable": draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))),
        "slots": {"node": [node for node, _, _ in rows], "price": price},
        "target": gain if target == "column" else target,
        "expense": gain if expense == "column" else expense,
        "sign": draw(st.sampled_from([1.0, 1.0, -1.0])),
        "origin": draw(st.sampled_from([0.0, 1.5])),
        "square": draw(st.booleans()),
        "factor": draw(st.sampled_from([0.0, 0.5])),
        "count": draw(st.integers(1, 3)),
        "scale": draw(st.sampled_from([1.0, 0.5, 0.0])),
    }


def searched(case):
    """Return what the kernel finds for one job, alone and among all jobs."""
    rows, slots = case["rows"], case["slots"]
    terms = [
        np.array(t) if isinstance(t, list) else t
        for t in (case["target"], case["expense"])
    ]
    pricer = Pricer(
        case["nodes"],
        np.array(slots["node"], np.int64),
        slots["price"],
        *terms,
        case["sign"],
        case["origin"],
        case["square"],
    )
    pricer.add_job(case["request"], np.array(case["usable"], bool), case["own"])
    free = Free(
        np.arange(len(rows)),
        np.array(slots["node"], np.int64),
        np.array([a for _, a, _ in rows], float),
        np.array([b for _, _, b in rows], float),
    )
    prices = Prices(
        case["nodes"],
        *(
            np.array(list(zip(*case["spans"], strict=True)))
            if case["spans"]
            else np.zeros((4, 0))
        ),
    )
    alone = pricer.least(0, free, prices, case["factor"], case["count"], case["scale"])
    if case["scale"] == 1:
        bounds, found = pricer.least_of_all(free, prices, case["factor"], case["count"])
        assert repr((bounds, found)) == repr(([alone[0]], [alone[1]]))
    return alone


def compare(case):
    """Compare the kernel with plain Python; return whether the budget binds."""
    bound, found = searched(case)
    names = "request", "usable", "own", "slots", "target", "expense", "sign"
    model = Model(*(case[name] for name in (*names, "origin", "square")))
    pieces = [(row, a, b) for row, (_, a, b) in enumerate(case["rows"])]
    rates = Rates(case["nodes"], case["spans"])
    options = case["factor"], case["count"], case["scale"]
    least, windows = model.least(pieces, rates, *options)
    got = [(t, s, r.tolist(), e.tolist(), c, x) for t, s, r, e, c, x in found]
    if not model.is_tight:
        assert (bound, got) == (least, windows)
        return False
    # The budget binds: other windows of equal totals may be found, up to rounding.
    assert bound == pytest.approx(least, rel=1e-12, abs=1e-12)
    assert len(got) == len(windows)
    for one, other in zip(got, windows, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-12, abs=1e-12)
        pairs = zip(one[2], one[3], strict=True)
        money = sum(case["slots"]["price"][row] * (b - one[1]) for row, b in pairs)
        assert money <= case["request"].budget * (1 + 1e-12)
        assert one[4:] == model.window(*one[:3])[4:]
    return True


@settings(deadline=None)
@given(cases())
def test_equals_plain_python_bit_for_bit(case):
    compare(case)


@pytest.mark.parametrize("seed", range(12))
def test_equals_plain_python_at_many_prices(seed):
    rng = np.random.default_rng(seed)
    nodes, cells = 6, 24
    edges = np.sort(rng.uniform(0, 100, (nodes, cells + 1)), 1).tolist()
    spans = [
        (k, edges[k][i], edges[k][i + 1], float(rng.integers(0, 4)))
        for k in range(nodes)
        for i in range(cells)
    ]
    speed = rng.choice([1.0, 2.0, 2.5], nodes)
    rows = [(k, a, a + 30.0) for k in range(nodes) for a in (0.0, 31.0, 65.5)]
    case = {
        "nodes": nodes,
        "rows": rows,
        "spans": spans,
        "request": sk.Request(2, 17.0, budget=[np.inf, 25.0][seed % 2]),
        "own": [17.0 / speed[k] for k, _, _ in rows],
        "usable": [True] * len(rows),
        "slots": {
            "node": [k for k, _, _ in rows],
            "price": [float(speed[k]) for k, _, _ in rows],
        },
        "target": ["cost", "processor_time", "finish"][seed % 3],
        "expense": "cost",
        "sign": 1.0,
        "origin": 0.0,
        "square": seed % 4 == 3,
        "factor": 0.25 * (seed % 2),
        "count": 4,
        "scale": 1.0,
    }
    assert compare(case) in ((False,) if seed % 2 == 0 else (False, True))


@pytest.mark.parametrize("limit", [math.inf, 60.0])
def test_a_walk_keeps_windows_apart_and_within_the_limit(limit):
    slots = sk.generate_environment("vo", seed=5, nodes=6).slots
    requests = [sk.Request(2, 150.0 + 10 * k) for k in range(8)]
    prepared = prepare_snapshot(slots)
    jobs = [PricedJob(slots, prepared, each, "ragged") for each in requests]
    free, _ = whole_time(slots)
    aim = Aim("cost", "processor_time", 1.0, 0.0)
    none = Prices(6, *np.zeros((4, 0)))
    most = None if limit == math.inf else 8 * limit
    planner = Planner(jobs, free, aim, most, 10_000)
    first = planner.fill({}, range(8), none)
    plan = planner.walk(first, none, 0.0, 500)
    assert planner.total(plan) <= planner.total(first)
    busy = sorted(
        (int(row), found.start, float(end))
        for found in plan.values()
        for row, end in zip(found.rows, found.end, strict=True)
    )
    for (row, _, end), (other, start, _) in itertools.pairwise(busy):
        assert row != other or end <= start
    for row, start, end in busy:
        assert slots["start"][row] <= start
        assert end <= slots["end"][row]
    if planner.is_within_limit(first):
        assert planner.is_within_limit(plan)


def test_paid_is_the_integral_of_overlapping_spans():
    prices = Prices(2, [0, 0, 1], [0.0, 2.0, 1.0], [4.0, 6.0, 2.0], [1.0, 0.5, 3.0])
    assert prices.largest == 3
    assert prices.paid([0, 1], 1.0, [5.0, 5.0]) == 3 + 1.5 + 3
    assert prices.paid([1], 2.0, [9.0]) == 0


def test_wrong_spans_rows_and_jobs_are_refused():
    with pytest.raises(ValueError, match=r"span 1 from 4\.0 to 4\.0 on node 0 of 1"):
        Prices(1, [0, 0], [0.0, 4.0], [1.0, 4.0], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"span 0 from 0\.0 to 1\.0 on node 1 of 1"):
        Prices(1, [1], [0.0], [1.0], [1.0])
    none = Prices(1, *np.zeros((4, 0)))
    with pytest.raises(IndexError, match="node 1 of 1"):
        none.paid([1], 0.0, [1.0])
    pricer = Pricer(1, [0], [1.0], "cost", "cost", 1.0, 0.0, False)
    free = Free(np.array([1]), np.array([0]), np.zeros(1), np.ones(1))
    with pytest.raises(IndexError, match="job 0 of 0"):
        pricer.least(0, free, none)
    with pytest.raises(ValueError, match="1 lengths and 2 marks for 1 slots"):
        pricer.add_job(sk.Request(1, 1), [True, True], [1.0])
    pricer.add_job(sk.Request(1, 1), [True], [1.0])
    with pytest.raises(IndexError, match="row 1 of 1 slots"):
        pricer.least(0, free, none)
    whole = Free(np.array([0]), np.array([0]), np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match="2 bounds for 1 jobs"):
        pricer.walk(whole, {}, none, 0.0, 1.0, 1.0, [0.0, 0.0], math.inf, 1, (1.0, 1.0))

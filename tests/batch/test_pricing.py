"""The search for least windows at prices, against plain Python; and its refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from least_window import Model, Rates

import slotkern as sk
from slotkern._kernels.pricing import Pricer, Prices
from slotkern.batch.pricing import Free

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


@settings(deadline=None)
@given(cases())
def test_equals_plain_python_bit_for_bit(case):
    bound, found = searched(case)
    names = (
        "request",
        "usable",
        "own",
        "slots",
        "target",
        "expense",
        "sign",
        "origin",
        "square",
    )
    model = Model(*(case[name] for name in names))
    pieces = [(row, a, b) for row, (_, a, b) in enumerate(case["rows"])]
    rates = Rates(case["nodes"], case["spans"])
    least, windows = model.least(
        pieces, rates, case["factor"], case["count"], case["scale"]
    )
    got = [(t, s, r.tolist(), e.tolist(), c, x) for t, s, r, e, c, x in found]
    if not getattr(model, "is_tight", False):
        assert (bound, got) == (least, windows)
        return
    # The budget binds: other windows of equal totals may be found, up to rounding.
    assert bound == pytest.approx(least, rel=1e-12, abs=1e-12)
    assert len(got) == len(windows)
    for one, other in zip(got, windows, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-12, abs=1e-12)
        lengths = [end - one[1] for end in one[3]]
        money = sum(
            case["slots"]["price"][r] * n for r, n in zip(one[2], lengths, strict=True)
        )
        assert money <= case["request"].budget * (1 + 1e-12)
        assert one[4:] == model.window(*one[:3])[4:]


def test_paid_is_the_integral_of_overlapping_spans():
    prices = Prices(2, [0, 0, 1], [0.0, 2.0, 1.0], [4.0, 6.0, 2.0], [1.0, 0.5, 3.0])
    assert prices.largest == 3
    assert prices.paid([0, 1], 1.0, [5.0, 5.0]) == 3 + 1.5 + 3
    assert prices.paid([1], 2.0, [9.0]) == 0


def test_wrong_spans_rows_and_jobs_are_refused():
    with pytest.raises(ValueError, match="span 1 from 4.0 to 4.0 on node 0 of 1"):
        Prices(1, [0, 0], [0.0, 4.0], [1.0, 4.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="span 0 from 0.0 to 1.0 on node 1 of 1"):
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
    with pytest.raises(ValueError, match="2 bounds for 1 jobs"):
        pricer.walk(free, {}, none, 0.0, 1.0, 1.0, [0.0, 0.0], math.inf, 1, (1.0, 1.0))

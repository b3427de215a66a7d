"""The search for least windows at prices, against plain Python; and its refusals."""

import itertools
import math
import subprocess
import sys
import textwrap

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
    alone = pricer.least(0, free, prices, case["factor"], case["count"])
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
    least, windows = model.least(pieces, rates, case["factor"], case["count"])
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
    }
    assert compare(case) in ((False,) if seed % 2 == 0 else (False, True))


def test_a_window_counts_at_the_level_of_its_longest_part_only():
    pricer = Pricer(2, [0, 1], [1.0, 1.0], "finish", "cost", 1.0, 0.0, False)
    pricer.add_job(sk.Request(1, 1), [True, True], [1.0, 2.0])
    free = Free(np.arange(2), np.arange(2), np.zeros(2), np.full(2, 9.0))
    bound, found = pricer.least(0, free, Prices(2, *np.zeros((4, 0))), spans=4)
    assert bound == 1
    assert [(total, start, rows.tolist()) for total, start, rows, *_ in found] == [
        (1.0, 0.0, [0])
    ]


def test_many_turns_are_searched_in_blocks_of_bounded_memory():
    rng = np.random.default_rng(49)
    nodes, cells, n = 128, 128, 100  # more than 2**20 amounts in all
    edge = np.sort(rng.uniform(0, 600, (nodes, cells + 1)), 1)
    rate = rng.uniform(0, 1, (nodes, cells))
    price, own = rng.uniform(1, 2, nodes), rng.uniform(50, 200, nodes)
    pricer = Pricer(nodes, np.arange(nodes), price, "cost", "cost", 1.0, 0.0, False)
    pricer.add_job(sk.Request(n, 1), np.ones(nodes, bool), own)
    whole = np.arange(nodes)
    free = Free(whole, whole, np.zeros(nodes), np.full(nodes, 600.0))
    node, first, last = np.repeat(whole, cells), edge[:, :-1], edge[:, 1:]
    prices = Prices(nodes, node, first.ravel(), last.ravel(), rate.ravel())
    bound, found = pricer.least(0, free, prices)
    turns = np.concatenate([edge, edge - own[:, None]], axis=None)
    turns = np.append(turns, [np.zeros(nodes), 600 - own])
    turns = turns[(turns >= 0) & (turns <= 600)]
    amount = np.empty((nodes, len(turns)))
    for k in range(nodes):
        paid = np.append(0.0, np.cumsum(rate[k] * np.diff(edge[k])))
        until = np.interp([turns, turns + own[k]], edge[k], paid)
        amount[k] = own[k] * price[k] + until[1] - until[0]
        amount[k][turns + own[k] > 600] = np.inf
    totals = np.partition(amount, n - 1, axis=0)[:n].sum(0)
    assert n * len(np.unique(turns)) > 2**20
    assert bound == found[0][0] == pytest.approx(totals.min(), rel=1e-12)
    assert found[0][1] == pytest.approx(turns[totals.argmin()])


@pytest.mark.skipif(sys.platform == "win32", reason="needs interval timers")
def test_the_memory_of_a_search_does_not_grow_with_turns_times_nodes():
    code = """
        import resource, signal
        import numpy as np
        import slotkern as sk
        from slotkern._kernels.pricing import Pricer, Prices
        from slotkern.batch.pricing import Free

        nodes, cells, n = 800, 120, 400  # 300 MB for n amounts at each turn
        rng, whole = np.random.default_rng(1), np.arange(nodes)
        edge = np.sort(rng.uniform(0, 600, (nodes, cells + 1)), 1)
        pricer = Pricer(nodes, whole, whole + 1, "cost", "cost", 1.0, 0.0, False)
        pricer.add_job(sk.Request(n, 1), np.ones(nodes, bool), np.full(nodes, 60.0))
        free = Free(whole, whole, np.zeros(nodes), np.full(nodes, 600.0))
        node, first, last = np.repeat(whole, cells), edge[:, :-1], edge[:, 1:]
        rate = rng.uniform(0, 1, nodes * cells)
        prices = Prices(nodes, node, first.ravel(), last.ravel(), rate)

        def stop(*_):
            raise TimeoutError

        signal.signal(signal.SIGALRM, stop)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            pricer.least(0, free, prices)
        except TimeoutError:
            pass
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    assert int(done.stdout) * unit < 2**26


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
    with pytest.raises(ValueError, match="2 nodes of parts, but 1 ends"):
        none.paid([0, 0], 0.0, [1.0])
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
        pricer.walk(whole, {}, none, 0.0, 1.0, [0.0, 0.0], math.inf, 1, (1.0, 1.0))

"""Tests of find_window against exhaustive search with tie-breaks, and `published`."""

from functools import cache

import numpy as np
import oracle
import pytest
from environments import random_environment
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SHAPES, SLOT, Case, cases, rival_groups

import slotkern as sk
from slotkern import published

CRITERIA = ("first", *oracle.VALUE)
SEARCHES = [(shape, criterion) for shape in SHAPES for criterion in CRITERIA]


def test_oracle_covers_all_criteria():
    assert set(CRITERIA) == set(sk.CRITERIA)


def as_request(request: dict) -> sk.Request:
    request = dict(request)
    return sk.Request(
        request.pop("nodes"),
        request.pop("volume"),
        where=request.pop("proper", None),
        **request,
    )


def as_best(window: sk.Window | None) -> oracle.Best | None:
    if window is None:
        return None
    parts = window.slots
    return oracle.Best(
        window.value,
        window.start,
        window.cost,
        tuple(parts["node"].tolist()),
        tuple(parts["row"].tolist()),
    )


def check_lengths_and_costs(
    window: sk.Window, slots: np.ndarray, request: dict
) -> None:
    """Assert that the attributes of a window agree with its parts bit for bit."""
    parts, terms = window.slots, oracle.terms_of(request)
    chosen = slots[parts["row"]]
    lengths = np.array([oracle.length_on(p, *terms) for p in chosen["performance"]])
    named = [oracle.proper_slots(chosen[[i]])[0] for i in range(len(chosen))]
    costs = np.array([oracle.price_of(part, "ragged", *terms) for part in named])
    if window.shape == "square":
        lengths[:] = lengths.max()
        costs = lengths * chosen["price"]
    assert window.runtime == lengths.max()
    assert window.finish == window.start + window.runtime
    assert window.processor_time == pytest.approx(lengths.sum(), rel=1e-12)
    assert (parts["node"] == chosen["node"]).all()
    assert (parts["start"] == window.start).all()
    assert (parts["end"] == window.start + lengths).all()
    assert (parts["cost"] == costs).all()


def check_exact(window: sk.Window, slots: np.ndarray, request: dict) -> None:
    """Assert that a window is consistent and proven."""
    check_lengths_and_costs(window, slots, request)
    assert window.proven
    assert window.bound == window.value


def check(slots: np.ndarray, request: dict, *, only_cheapest: bool = False) -> None:
    """Compare all searches of the array and of a pool with the oracle."""
    job, pool = as_request(request), sk.SlotPool(slots)
    for shape in SHAPES:
        expected = oracle.best_windows(
            slots, shape, only_cheapest=only_cheapest, **request
        )
        for criterion in CRITERIA:
            window = sk.find_window(slots, job, criterion, shape=shape)
            assert as_best(window) == expected[criterion], (shape, criterion)
            assert sk.find_window(pool, job, criterion, shape=shape) == window
            if window is not None:
                check_exact(window, slots, request)


@settings(max_examples=5 * settings.default.max_examples)
@given(cases())
def test_searches_equal_exhaustive_search(case: Case):
    check(*case)


@settings(max_examples=2 * settings.default.max_examples)
@given(rival_groups())
def test_searches_of_competing_groups(case: Case):
    check(*case)


@settings(max_examples=settings.default.max_examples // 5)
@given(cases(max_nodes=7, max_per_node=4))
def test_cheapest_sets_contain_the_best_window(case: Case):
    for shape in SHAPES:
        assert oracle.best_windows(
            case.slots, shape, only_cheapest=True, **case.request
        ) == oracle.best_windows(case.slots, shape, **case.request)


LOW = (0.0, 0.4)


@st.composite
def wide_cases(draw) -> Case:
    """Draw more nodes, many with equal price or performance, and large windows."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.sampled_from((12, 24, 40, 80)))
    seed, unit = int(random.integers(2**32)), draw(st.sampled_from((1.0, 0.1)))
    slots = random_environment(count, draw(st.sampled_from((60, 150))), seed, load=LOW)
    slots["node"] = random.permutation(3 * count)[slots["node"]]
    slots["performance"] = (slots["performance"] - 1) * unit
    slots["price"] = np.round(slots["price"] / 4, draw(st.integers(0, 1)))
    slots["start"], slots["end"] = slots["start"] // 7, slots["end"] // 7
    slots = slots[slots["start"] < slots["end"]]
    slots = np.sort(slots, order=("start", "node"))
    nodes = draw(st.sampled_from((1, 2, 5, 9, 19, 20, 21, 33, 40)))
    volume = draw(st.sampled_from((2.0, 5.1))) * unit
    request = {"nodes": min(nodes, count // 2), "volume": volume}
    if draw(st.booleans()):
        request["earliest"] = draw(st.sampled_from((0.5, 3.0)))
    if draw(st.booleans()):
        request["deadline"] = draw(st.sampled_from((6.0, 9.1)))
    if draw(st.booleans()):
        request["min_performance"] = 2 * unit
    if draw(st.booleans()):
        request["proper"] = random.random(len(slots)) < 0.8
    windows = list(
        oracle.all_windows(
            slots, draw(st.sampled_from(SHAPES)), only_cheapest=True, **request
        )
    )
    if windows:
        request["budget"] = windows[random.integers(len(windows))].cost
    return Case(slots, request)


@settings(max_examples=settings.default.max_examples // 10)
@given(wide_cases())
def test_searches_of_wide_cases_equal_cheapest_sets(case: Case):
    check(*case, only_cheapest=True)


def published_best(slots, shape, criterion, request, seed=0):
    """Return the window of the papers' algorithm as the oracle describes windows."""
    found = published.find(
        slots, criterion=criterion, shape=shape, seed=seed, **request
    )
    if found is None:
        return None
    start, rows = found.start, found.rows
    parts = [oracle.proper_slots(slots[[row]])[0]._replace(row=row) for row in rows]
    window = oracle.window_of(start, parts, shape, *oracle.terms_of(request))
    value = oracle.VALUE.get(criterion, oracle.VALUE["start"])(window)
    return oracle.Best(value, start, window.cost, window.nodes, window.rows)


environment = cache(random_environment)

LARGE = [
    # nodes, interval, real-valued performance, nodes of the window
    (100, 600, False, 5),
    (100, 3600, True, 5),
    (400, 600, False, 5),
    (400, 600, True, 24),
    (300, 600, False, 70),
]


@pytest.mark.parametrize(("count", "interval", "real", "nodes"), LARGE)
@pytest.mark.parametrize(("shape", "criterion"), SEARCHES)
def test_large_searches_equal_published_ones(
    shape, criterion, count, interval, real, nodes
):
    found = 0
    for seed in range(3):
        slots = environment(count, interval, seed, real_performance=real)
        request = {
            "nodes": nodes,
            "volume": 200.0 + seed,
            "budget": (250.0, 190.0, 300.0)[seed] * nodes,
            "earliest": (0.0, 33.3, 100.0)[seed],
            "deadline": (np.inf, 480.0, 0.9 * interval)[seed],
            "min_performance": (0.0, 3.0, 2.5)[seed],
        }
        expected = published_best(slots, shape, criterion, request)
        window = sk.find_window(slots, as_request(request), criterion, shape=shape)
        best = as_best(window)
        if expected is None:
            assert best is None
            continue
        found += 1
        assert best is not None
        check_exact(window, slots, request)
        assert best.value == expected.value
        assert best[:4] <= expected[:4] or criterion == "first"
        if criterion == "first":
            assert best == expected
    assert found


@pytest.mark.parametrize(
    ("shape", "criterion"),
    [
        key
        for key, algorithm in published.ALGORITHMS.items()
        if algorithm.lite is None and "value" not in key
    ],
)
def test_published_method_returns_published_window(shape, criterion):
    slots = environment(100, 600, 7)
    request = {
        "nodes": 5,
        "volume": 300.0,
        "budget": 1500.0,
        "earliest": 20.5,
        "deadline": 550.0,
        "min_performance": 3.0,
        "max_price": 11.0,
        "proper": np.random.default_rng(7).random(len(slots)) < 0.9,
    }
    for given_slots in (slots, sk.SlotPool(slots)):
        for seed in (0, 1):
            expected = published_best(slots, shape, criterion, request, seed)
            window = sk.find_window(
                given_slots,
                as_request(request),
                criterion,
                shape=shape,
                method="published",
                seed=seed,
            )
            assert window is not None
            check_lengths_and_costs(window, slots, request)
            if criterion != "processor_time":
                assert as_best(window) == expected
            else:
                assert as_best(window)[1:] == expected[1:]
                assert window.value == window.processor_time


@pytest.mark.parametrize(("shape", "criterion"), SEARCHES)
def test_windows_of_thousands_of_nodes(shape, criterion):
    random = np.random.default_rng(3)
    slots = np.zeros(3000, SLOT)
    slots["node"] = random.permutation(len(slots))
    slots["start"] = np.sort(random.integers(0, 30, len(slots)))
    slots["end"] = slots["start"] + random.integers(5, 60, len(slots))
    slots["performance"] = random.integers(1, 4, len(slots))
    slots["price"] = random.integers(1, 50, len(slots)) / 8
    slots.sort(order=("start", "node"))
    request = {"nodes": 1200, "volume": 9.0, "budget": 36_000.0}
    expected = published_best(slots, shape, criterion, request)
    window = sk.find_window(slots, as_request(request), criterion, shape=shape)
    assert expected is not None
    assert window is not None
    check_exact(window, slots, request)
    assert window.value == expected.value
    assert as_best(window)[:4] <= expected[:4] or criterion == "first"


@pytest.mark.parametrize(("shape", "criterion"), SEARCHES)
def test_find_windows_equals_single_searches(shape, criterion):
    slots = random_environment(60, 600, seed=5)
    random = np.random.default_rng(5)
    jobs = [
        sk.Request(
            int(random.integers(1, 30)),
            random.uniform(50, 900),
            budget=random.uniform(0, 8000),
            earliest=random.uniform(0, 200),
            deadline=random.uniform(200, 600),
            where=random.random(len(slots)) < 0.9,
        )
        for _ in range(60)
    ]
    single = [sk.find_window(slots, each, criterion, shape=shape) for each in jobs]
    assert 10 < sum(window is not None for window in single) < 60
    for given_slots in (slots, sk.SlotPool(slots)):
        for threads in (1, 3):
            windows = sk.find_windows(
                given_slots, jobs, criterion, shape=shape, threads=threads
            )
            assert windows == single


@pytest.mark.parametrize(("shape", "criterion"), SEARCHES)
@pytest.mark.parametrize("budget", [np.inf, 1e308])
def test_windows_of_infinite_cost_are_excluded(shape, criterion, budget):
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=1e308, performance=[1, 2, 4], price=1e300
    )
    request = sk.Request(2, 1e10, budget=budget)
    for searched in (slots, sk.SlotPool(slots)):
        assert sk.find_window(searched, request, criterion, shape=shape) is None
    assert sk.SlotPool(slots).schedule([request], criterion, shape=shape)[0] is None
    assert not sk.explain(slots, request, shape=shape).fits
    cheap = slots.copy()
    cheap["price"][:2] = 1
    window = sk.find_window(cheap, request, criterion, shape=shape)
    assert window.nodes == (0, 1)


def test_finishes_equal_after_rounding_are_ties():
    # The slower node's part is longer, but both ends round to the same number, so the
    # cheaper node is the answer.
    slots = sk.make_slots(
        node=[0, 1],
        start=1.7e9,
        end=1.7e9 + 9,
        performance=[3, 3 * (1 - 2e-7)],
        price=[5, 1],
    )
    window = sk.find_window(slots, sk.Request(1, 0.3), "finish", shape="ragged")
    assert window.nodes == (1,)


def test_negative_start_times_are_valid():
    slots = sk.make_slots(node=[0, 1], start=-9, end=9, performance=1, price=1)
    for criterion in ("first", "start", "finish", "runtime", "cost", "processor_time"):
        assert sk.find_window(slots, sk.Request(2, 4), criterion).start == -9
    assert sk.Request(2, 4).earliest == -np.inf
    assert repr(sk.Request(2, 4)) == "Request(nodes=2, volume=4.0)"
    assert sk.find_window(slots, sk.Request(2, 4, earliest=0)).start == 0
    before = sk.make_slots(node=[0, 1], start=-9, end=-1, performance=1, price=1)
    why = sk.explain(before, sk.Request(2, 4, earliest=-3))
    assert why.without == ["earliest"]
    assert "without the earliest start" in str(why)


def test_slower_group_with_cost_rounded_to_zero():
    """The free node wins against one whose positive cost is rounded to 0."""
    t = 1e15
    slots = sk.make_slots(
        node=[63, 71, 74],
        start=t,
        end=[t + 0.25, np.inf, t + 0.125],
        performance=[0.7, 2.1, 2.1],
        price=[0.0, 2e-323, 0.0],
    )
    window = sk.find_window(slots, sk.Request(1, 0.2625), "start", shape="square")
    assert window.cost == 0
    assert [int(node) for node in window.nodes] == [74]


def test_slower_group_creates_no_zero_cost_ties():
    """A longer span excludes a free slot; rounded zero costs must not replace it."""
    slots = sk.make_slots(
        node=[1, 2, 3, 4, 5],
        start=0,
        end=[9, 9, 0.1, 9, 9],
        performance=[2, 2, 2, 3, 1],
        price=[5e-324, 5e-324, 0, 0, 5e-324],
    )
    for criterion in ("start", "cost"):
        window = sk.find_window(slots, sk.Request(3, 0.16), criterion, shape="square")
        assert window.cost == 0
        assert [int(node) for node in window.nodes] == [1, 3, 4], criterion


@pytest.mark.parametrize("criterion", ["finish", "runtime"])
def test_subnormal_lengths(criterion):
    # 3.3e-318 / 3 is rounded by about a millionth, as all subnormals of this size.
    for ticks in range(674_660, 674_680):
        volume = ticks * 5e-324
        slots = sk.make_slots(
            node=[1, 2], start=0, end=1 / 3, performance=[9.999e-309, 3], price=0
        )
        job = sk.Request(1, volume)
        assert sk.find_window(slots, job, "start", shape="ragged").nodes == (1,)
        window = sk.find_window(slots, job, criterion, shape="ragged")
        assert window.nodes == (2,)
        assert window.runtime == volume / 3

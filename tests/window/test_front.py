"""Tests of pareto against the front of all windows by exhaustive search."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import all_windows, length_on, terms_of
from strategies import SHAPES, Case, cases, pickers

import slotkern as sk
from slotkern.fronts import Front

TIMES = ("start", "finish", "runtime")
PLAIN = (*TIMES, "cost", "processor_time")
SUMS = ("q", "minimize(u)", "u")
PAIRS = list(itertools.permutations(PLAIN, 2))
WITH_SUMS = [
    *((name, of) for name in PLAIN for of in SUMS),
    *((of, name) for name in PLAIN for of in SUMS),
    ("q", "u"),
    ("minimize(u)", "q"),
    ("minimize(u)", "u"),
]
#: Costs and sums are compared up to rounding, times exactly.
ROUNDING = 2.0**-44


def slack(name: str, shape: str, size: float) -> float:
    exact = name in TIMES or (name == "processor_time" and shape == "square")
    return 0.0 if exact else ROUNDING * abs(size)


def losses(window: oracle.Window, case: Case, by, shape: str) -> tuple[float, float]:
    """Return the two values of a window, negated if they are maximized."""
    slots, terms = case.slots, terms_of(case.request)
    lengths = [
        window.runtime
        if shape == "square"
        else length_on(float(slots["performance"][row]), *terms)
        for row in window.rows
    ]

    def loss(name: str) -> float:
        match name:
            case "start":
                return window.start
            case "finish":
                return window.start + window.runtime
            case "runtime":
                return window.runtime
            case "cost":
                return window.cost
            case "processor_time":
                return math.fsum(lengths)
        field = name.removeprefix("minimize(").removesuffix(")")
        total = math.fsum(slots[field][list(window.rows)].tolist())
        return total if name.startswith("minimize") else -total

    return loss(by[0]), loss(by[1])


def as_request(request: dict) -> sk.Request:
    request = dict(request)
    nodes, volume = request.pop("nodes"), request.pop("volume")
    return sk.Request(nodes, volume, where=request.pop("proper", None), **request)


def with_fields(case: Case, pick) -> Case:
    """Return the case with additional fields of small integers and of decimals."""
    size = len(case.slots)
    q = [pick((0, 1, 2, 3)) for _ in range(size)]
    u = [pick((0.1, 0.2, 0.3, -0.1, 0.7)) for _ in range(size)]
    columns = {name: case.slots[name] for name in case.slots.dtype.names}
    return Case(sk.make_slots(**columns, q=q, u=np.array(u)), case.request)


def signs(by) -> np.ndarray:
    return np.array([-1.0 if name in ("q", "u") else 1.0 for name in by])


def check_front(front: Front, case: Case, by, shape: str, *, whole=True) -> None:
    """Assert that the front contains only, or (`whole`) all, nondominated windows."""
    windows = list(all_windows(case.slots, shape, **case.request))
    every = [losses(window, case, by, shape) for window in windows]
    there = {(w.start, w.rows): pair for w, pair in zip(windows, every, strict=True)}
    found = (front.values * signs(by)).tolist()
    assert bool(found) == bool(every)
    assert front.proven.all()
    for pair, window in zip(found, front, strict=True):
        known = there[window.start, tuple(window.slots["row"].tolist())]
        assert pair == pytest.approx(known, rel=1e-12, abs=1e-300)
        a, b = pair
        near = slack(by[0], shape, a), slack(by[1], shape, b)
        for x, y in every:
            assert not (x <= a and y < b - near[1]), (pair, (x, y))
            assert not (y <= b and x < a - near[0]), (pair, (x, y))
    for (a, b), (c, d) in itertools.pairwise(found):
        assert a < c
        assert b > d
    if not whole:
        return
    assert front.complete
    for x, y in every:
        assert any(
            a <= x + slack(by[0], shape, x) and b <= y + slack(by[1], shape, y)
            for a, b in found
        ), (x, y)


@given(cases(), pickers)
def test_front_equals_exhaustive_search(case: Case, pick):
    request = as_request(case.request)
    for shape in SHAPES:
        by = pick(PAIRS)
        check_front(sk.pareto(case.slots, request, by, shape=shape), case, by, shape)


@settings(max_examples=settings.default.max_examples // 2)
@given(cases(), pickers, pickers)
def test_fronts_by_sums_equal_exhaustive_search(case: Case, pick, pick_field):
    case = with_fields(case, pick_field)
    request = as_request(case.request)
    for shape in SHAPES:
        by = pick(WITH_SUMS)
        check_front(sk.pareto(case.slots, request, by, shape=shape), case, by, shape)


@settings(max_examples=settings.default.max_examples // 3)
@given(cases(), pickers, st.integers(2, 6))
def test_limited_fronts_are_subsets_of_the_front(case: Case, pick, most: int):
    request = as_request(case.request)
    for shape in SHAPES:
        by = pick(PAIRS)
        whole = sk.pareto(case.slots, request, by, shape=shape)
        some = sk.pareto(case.slots, request, by, shape=shape, most=most)
        check_front(some, case, by, shape, whole=some.complete)
        assert len(some) <= most
        assert len(some) == min(most, len(whole))
        if len(whole) > 1:
            near = {"rel": ROUNDING, "abs": 0}
            assert some.values[0] == pytest.approx(whole.values[0], **near)
            assert some.values[-1] == pytest.approx(whole.values[-1], **near)
        check_gaps(some, whole)


def check_gaps(some: Front, whole: Front) -> None:
    """Assert that each omitted point is within the bounds of its gap."""
    left, right = some.values[:-1], some.values[1:]
    for point in whole.values:
        for a, b, bound in zip(left, right, some.between, strict=True):
            inside = a[0] < point[0] < b[0] and b[1] < point[1] < a[1]
            apart = abs(point - a).min() > 1e-9 and abs(point - b).min() > 1e-9
            if inside and apart:
                assert (bound <= point).all()


@settings(max_examples=settings.default.max_examples // 3)
@given(cases(), pickers)
def test_tie_rule_selects_among_equal_points(case: Case, pick):
    request = as_request(case.request)
    for shape in SHAPES:
        by = pick(("start", "finish", "runtime")), "cost"
        windows = list(all_windows(case.slots, shape, **case.request))
        for window in sk.pareto(case.slots, request, by, shape=shape):
            limit = getattr(window, by[0])
            best = oracle.best_of(
                [w for w in windows if oracle.VALUE[by[0]](w) <= limit], "cost", shape
            )
            assert best is not None
            assert window.start == best.start
            assert window.nodes == best.nodes


# --- by example


@pytest.fixture(scope="module")
def environment():
    return sk.generate_environment("square", seed=3)


JOB = sk.Request(5, 300, budget=1500)


def test_front_ends_equal_find_window(environment):
    front = sk.pareto(environment, JOB)
    assert front.by == ("cost", "finish")
    cheapest = sk.find_window(environment, JOB, "cost")
    earliest = sk.find_window(environment, JOB, "finish")
    assert front[0].cost == cheapest.cost == front.windows.cost.min()
    assert front[-1].finish == earliest.finish == front.windows.finish.min()
    assert len(front) == 4


def test_front_is_sorted_by_first_criterion(environment):
    one = sk.pareto(environment, JOB, ("cost", "finish"))
    other = sk.pareto(environment, JOB, ("finish", "cost"))
    assert one.values[::-1, ::-1].tolist() == other.values.tolist()
    assert [w.nodes for w in one][::-1] == [w.nodes for w in other]


def test_front_dominates_alternatives(environment):
    """Each alternative is dominated or is a point of the front."""
    front = sk.pareto(environment, JOB).values
    for window in sk.find_alternatives(environment, JOB).pareto("cost", "finish"):
        assert ((front <= (window.cost, window.finish)).all(axis=1)).any()


@pytest.mark.parametrize("price", [0.57, 1.15, 4.35, 0.1])
def test_costs_equal_in_decimals_are_one_point(price):
    """The next point must be cheaper by more than the rounding of decimals."""
    slots = sk.make_slots(
        node=range(6), start=[0, 0, 0, 5, 5, 5], end=50, performance=1,
        price=[price] * 3 + [price * (1 + 1e-15)] * 3,
    )  # fmt: skip
    front = sk.pareto(slots, sk.Request(3, 10), ("cost", "start"))
    assert len(front) == 1
    more_costly = slots.copy()
    more_costly["price"][:3] = price + 0.01
    front = sk.pareto(more_costly, sk.Request(3, 10), ("cost", "start"))
    assert front.windows.start.tolist() == [5, 0]


def test_windows_of_zero_cost_end_the_front():
    slots = sk.make_slots(
        node=[0, 1], start=[0, 4], end=20, performance=1, price=[1, 0]
    )
    front = sk.pareto(slots, sk.Request(1, 5), ("start", "cost"))
    assert front.values.tolist() == [[0, 5], [4, 0]]


def test_front_with_cancelling_sums():
    slots = sk.make_slots(
        node=range(4), start=[0, 1, 2, 3], end=30, performance=1, price=1,
        u=[0.1, 0.2, -0.3, 0.0],
    )  # fmt: skip
    front = sk.pareto(slots, sk.Request(3, 5), ("start", sk.minimize("u")))
    assert front.values[:, 0].tolist() == [2, 3]
    assert front.values[1, 1] == pytest.approx(-0.2)


def test_front_without_windows_is_empty():
    slots = sk.make_slots(node=[0], start=0, end=2, performance=1, price=1)
    front = sk.pareto(slots, sk.Request(2, 1), most=3)
    assert len(front) == 0
    assert front.complete
    assert front.values.shape == front.between.shape == (0, 2)
    assert list(front) == []
    assert repr(front) == "Front(0 square windows by cost and finish, complete)"


def test_front_respects_filters_limits_and_deadlines(environment):
    slots = environment.slots
    job = JOB.replace(
        where="performance >= 3", limits="sum(q) >= 2.5", deadline=400.0, latest=300.0
    )
    for shape in SHAPES:
        front = sk.pareto(slots, job, ("cost", "finish"), shape=shape)
        assert len(front)
        assert front.complete
        for window in front:
            rows = window.slots["row"]
            assert (slots["performance"][rows] >= 3).all()
            assert slots["q"][rows].sum() >= 2.5
            assert window.finish <= 400


def test_front_by_arrays_and_user_criteria(environment):
    pytest.importorskip("numba")

    @sk.criterion
    def energy(slot, length):
        return (50 + 4 * slot.performance) * length

    slots = environment.slots[:300]
    job = sk.Request(3, 200, budget=700)
    by_field = sk.pareto(slots, job, ("finish", "q"))
    by_array = sk.pareto(slots, job, ("finish", np.array(slots["q"])))
    assert by_array.by == ("finish", "array")
    assert by_array.values.tolist() == by_field.values.tolist()
    front = sk.pareto(slots, job, ("finish", sk.minimize(energy)), shape="ragged")
    assert front.complete
    assert (np.diff(front.values[:, 1]) < 0).all()
    assert front.by[1] == "minimize(energy)"


def test_front_of_changed_pool_has_origin_rows(environment):
    pool = sk.SlotPool(environment.slots)
    pool.book(pool.find(JOB, "finish"))
    front = sk.pareto(pool, JOB)
    fresh = sk.pareto(pool.slots, JOB)
    assert front.values.tolist() == fresh.values.tolist()
    for window in front:
        rows = window.slots["row"]
        assert (environment.slots["node"][rows] == window.slots["node"]).all()
        assert (environment.slots["start"][rows] <= window.start).all()
    by_sum = sk.pareto(pool, JOB, ("finish", "q"))
    assert (
        by_sum.values.tolist() == sk.pareto(pool.slots, JOB, by_sum.by).values.tolist()
    )
    pool.book(front[0])  # windows of a front can be booked


def test_front_with_spent_work_is_not_proven(environment):
    front = sk.pareto(environment.slots, JOB, ("finish", "q"), max_work=0)
    assert not front.complete
    assert not front.proven.all()
    assert "not proven" in repr(front) or "gaps open" in repr(front)


def many_points() -> np.ndarray:
    """Return slots of 40 nodes whose prices fall with time."""
    random = np.random.default_rng(5)
    rows = []
    for node in range(40):
        now, performance = random.uniform(0, 20), float(random.integers(1, 9))
        for k in range(12):
            end = now + random.uniform(20, 60)
            price = performance * random.uniform(0.8, 1.6) * 0.93**k
            rows.append((node, now, end, performance, price))
            now = end + random.uniform(1, 20)
    names = ("node", "start", "end", "performance", "price")
    return sk.make_slots(**dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_limited_front_is_evenly_spread():
    slots, job = many_points(), sk.Request(3, 100)
    whole = sk.pareto(slots, job, shape="ragged")
    some = sk.pareto(slots, job, shape="ragged", most=6)
    assert whole.complete
    assert len(whole) > 20
    assert len(some) == 6
    assert not some.complete
    ends = np.ptp(whole.values, axis=0)
    steps = np.abs(np.diff(some.values, axis=0)) / ends
    assert steps.prod(axis=1).max() < 0.15  # no corner is omitted
    assert repr(some) == (
        "Front(6 ragged windows by cost and finish, 5 of 5 gaps open)"
    )
    check_gaps(some, whole)


@pytest.mark.parametrize(("shape", "most"), [("square", 150), ("ragged", 60)])
def test_fronts_of_two_sums_take_few_knapsacks(shape, most, monkeypatch):
    """One search per point; bounds by multipliers exclude three of four knapsacks."""
    slots = many_points()
    random = np.random.default_rng(8)
    columns = {name: slots[name] for name in slots.dtype.names}
    q, u = random.uniform(size=(2, len(slots)))
    slots = sk.make_slots(**columns, q=q, u=u)
    efforts = []

    def counted(*args, **options):
        window = sk.find_window(*args, **options)
        efforts.append(window.effort["subsets"])
        return window

    monkeypatch.setattr("slotkern.fronts.search.find_window", counted)
    front = sk.pareto(slots, sk.Request(5, 100), ("q", "u"), shape=shape)
    assert front.complete
    assert len(front) >= 20
    assert len(efforts) <= len(front) + 2
    assert sum(efforts) <= most * len(front)


# --- display


def test_front_is_a_sequence(environment):
    front = sk.pareto(environment, JOB)
    assert front[-1] == list(front)[-1]
    assert isinstance(front[1:3], sk.WindowTable)
    assert front[0].criterion == "pareto(cost, finish)"
    assert front[0].value == front.values[0, 0]
    again = pickle.loads(pickle.dumps(front))
    assert list(again) == list(front)
    assert again.values.tolist() == front.values.tolist()


def test_front_tables_contain_values_and_windows(environment):
    pytest.importorskip("pandas")
    front = sk.pareto(environment.slots, JOB, ("finish", "q"))
    frame = front.to_pandas()
    assert list(frame.columns)[:2] == ["q", "start"]
    assert frame["q"].tolist() == front.values[:, 1].tolist()
    assert frame["proven"].all()
    assert "<table" in front._repr_html_()
    table = front.to_dict()
    assert table["by"] == ["finish", "q"]
    assert table["complete"] is True
    assert table["points"][0]["values"] == front.values[0].tolist()
    assert table["between"] == [None] * (len(front) - 1)


def test_front_has_names_and_dates():
    machine = sk.Machine(
        {"name": ["red", "blue"], "performance": [1, 2], "price": [1, 3]}
    )
    times = {"start": "2026-03-02 08:00", "end": "2026-03-02 20:00"}
    slots = sk.free_slots(machine, [], **times, zone="UTC")
    front = sk.pareto(slots, sk.Request(1, walltime="2:00:00"))
    assert [window.names for window in front] == [("red",), ("blue",)]
    assert front[0].start_time.isoformat() == "2026-03-02T08:00:00+00:00"


# --- errors


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (("cost", "first"), "front by 'first' would not be exact"),
        (("cost", "dependable"), "front by 'dependable' would not be exact"),
        (("leftover", "cost"), "front by 'leftover' would not be exact"),
        (("cost", "weight"), "got 'weight'"),
        (("cost", "cost"), "two different criteria, got 'cost' twice"),
        ("cost,finish", "by must be two criteria, got 'cost,finish'"),
        (("cost", "finish", "start"), "by must be two criteria"),
    ],
)
def test_invalid_criteria_are_rejected(environment, by, message):
    with pytest.raises(ValueError, match=message):
        sk.pareto(environment, JOB, by)


def test_criteria_of_the_start_are_rejected(environment):
    @sk.criterion(uses_start=True)
    def late(slot, start, length):
        return start

    pytest.importorskip("numba")
    with pytest.raises(ValueError, match="without uses_start"):
        sk.pareto(environment.slots, JOB, ("cost", late))


def test_front_by_sum_needs_a_free_limit(environment):
    full = JOB.replace(limits=[f"sum(q) >= {-k}" for k in range(6)])
    columns = {name: environment.slots[name] for name in sk.SLOT.names}
    environment = sk.make_slots(**columns, q=columns["price"], u=columns["price"])
    assert len(sk.pareto(environment, full, most=2))
    with pytest.raises(ValueError, match="6 limits; a front by a sum needs one"):
        sk.pareto(environment, full, ("minimize(u)", "q"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most": 1}, "most must be at least 2"),
        ({"gap": -1}, "gap"),
        ({"max_work": -1}, "max_work"),
        ({"shape": "round"}, "shape"),
    ],
)
def test_invalid_options_are_rejected(environment, options, message):
    with pytest.raises(ValueError, match=message):
        sk.pareto(environment, JOB, **options)

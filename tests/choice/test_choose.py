"""The cardinality-constrained knapsack: exhaustive search, its table, HiGHS."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import add, exact, met
from scipy.optimize import Bounds, LinearConstraint, milp

import slotkern as sk

KINDS = ("uncorrelated", "weakly", "strongly", "inversely", "subset-sum")


def ordered_sums(cost, value, rows):
    """The exact cost of a choice, its value summed in ascending (cost, row) order."""
    order = sorted(rows, key=lambda row: (cost[row], row))
    return exact(float(cost[row]) for row in order), add(value[row] for row in order)


def exhaustive(cost, value, n, budget):
    """The best value of n items within the budget, or None."""
    best = None
    for rows in itertools.combinations(range(len(cost)), n):
        spent, worth = ordered_sums(cost, value, rows)
        if met(spent, budget) and (best is None or worth > best):
            best = worth
    return best


def instance(kind, m, n, rng, *, integers):
    """Costs up to 1000, values of the given kind, and a binding budget."""
    cost = rng.uniform(1, 1000, m)
    value = {
        "uncorrelated": rng.uniform(1, 1000, m),
        "weakly": cost + rng.uniform(-100, 100, m),
        "strongly": cost + 100,
        "inversely": cost,
        "subset-sum": cost,
    }[kind]
    if kind == "inversely":
        cost = value + 100
    if integers:
        cost, value = np.floor(cost), np.floor(value)
    ranked = np.sort(cost)
    low, high = ranked[:n].sum(), ranked[m - n :].sum()
    budget = low + rng.uniform(0.05, 0.6) * (high - low)
    return cost, value, float(np.floor(budget))


def by_highs(cost, value, n, budget, gap=0.0):
    answer = milp(
        -value,
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(cost, ub=budget),
            LinearConstraint(np.ones(len(cost)), n, n),
        ],
        options={"mip_rel_gap": gap},
    )
    rows = np.flatnonzero(answer.x > 0.5)
    return ordered_sums(cost, value, rows)


def check(choice, cost, value, n, budget):
    """Check the properties of every answer, optimal or not."""
    assert choice.rows.dtype == np.int64
    assert len(choice.rows) == n
    assert (np.diff(choice.rows) > 0).all()
    assert (choice.cost, choice.value) == ordered_sums(cost, value, choice.rows)
    assert met(choice.cost, budget)
    assert choice.bound >= choice.value


# Few distinct numbers, so that ties, equal sums and exactly met budgets are common;
# tenths, whose sums depend on the order of summation.
numbers = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 1.1, 2.0, 3.0, 5.0])


@st.composite
def small_cases(draw):
    m = draw(st.integers(1, 9))
    cost = draw(st.lists(numbers, min_size=m, max_size=m))
    value = draw(
        st.lists(
            st.one_of(numbers, st.integers(-3, 3), st.floats(-10, 10)),
            min_size=m,
            max_size=m,
        )
    )
    n = draw(st.integers(1, m))
    rows = draw(st.permutations(range(m)))[:n]
    budget = draw(
        st.one_of(
            st.just(ordered_sums(cost, value, rows)[0]),
            st.floats(0, 20),
            st.just(float("inf")),
        )
    )
    return cost, value, n, budget


@settings(max_examples=7 * settings.default.max_examples // 3, deadline=None)
@given(small_cases(), st.sampled_from([None, 0, 3, 30]))
def test_equals_exhaustive_search(case, max_work):
    cost, value, n, budget = case
    best = exhaustive(cost, value, n, budget)
    choice = sk.choose(cost, value, n, budget, max_work=max_work)
    if best is None:
        assert choice is None
        return
    assert choice is not None
    check(choice, cost, value, n, budget)
    close = 1e-12 * abs(best) + 1e-13
    assert choice.bound >= best - close
    assert choice.value <= best + close
    if max_work is None:
        assert choice.proven
    if choice.proven:
        assert choice.value >= best - close


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integers", [True, False])
def test_random_small_instances(kind, integers):
    rng = np.random.default_rng([KINDS.index(kind), integers])
    for _ in range(80):
        m = int(rng.integers(1, 11))
        n = int(rng.integers(1, m + 1))
        cost, value, budget = instance(kind, m, n, rng, integers=integers)
        best = exhaustive(cost, value, n, budget)
        for method in ("auto", "search", "table")[: 3 if integers else 2]:
            choice = sk.choose(cost, value, n, budget, method=method)
            assert (choice is None) == (best is None)
            if choice is not None:
                check(choice, cost, value, n, budget)
                assert choice.proven
                assert choice.value == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_table_and_search_agree(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for m, n in [(30, 3), (60, 7), (120, 12)]:
        for _ in range(10):
            cost, value, budget = instance(kind, m, n, rng, integers=True)
            answers = [
                sk.choose(cost, value, n, budget, method=method)
                for method in ("table", "search", "auto")
            ]
            for choice in answers:
                assert choice is not None
                check(choice, cost, value, n, budget)
                assert choice.proven
                assert choice.value == answers[0].value == choice.bound


def test_no_item_is_fixed_too_early():
    # Seeds for which an item reaches nine tenths of the loss that would fix it.
    for seed in (52001, *range(2000)):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(20, 60)), int(rng.integers(2, 8))
        cost = rng.integers(1, 200, m).astype(float)
        value = cost + rng.integers(-20, 20, m)
        budget = np.sort(cost)[:n].sum() * (1 + rng.random())
        search, table = (
            sk.choose(cost, value, n, budget, method=method)
            for method in ("search", "table")
        )
        assert search.value == table.value


@pytest.mark.parametrize("kind", KINDS)
def test_equals_highs(kind):
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for m, n in [(40, 4), (70, 7), (100, 10)]:
        for _ in range(6):
            cost, value, budget = instance(kind, m, n, rng, integers=True)
            spent, best = by_highs(cost, value, n, budget)
            assert spent <= budget
            choice = sk.choose(cost, value, n, budget)
            assert choice is not None
            check(choice, cost, value, n, budget)
            assert choice.proven
            assert choice.value == best


@pytest.mark.parametrize("kind", ["uncorrelated", "weakly"])
def test_real_values_are_not_below_highs(kind):
    rng = np.random.default_rng(200 + KINDS.index(kind))
    for m, n in [(40, 4), (70, 7)]:
        for _ in range(8):
            cost, value, budget = instance(kind, m, n, rng, integers=False)
            # HiGHS satisfies a budget up to 1e-6
            spent, best = by_highs(cost, value, n, budget - 1e-6, 1e-7)
            assert spent <= budget
            choice = sk.choose(cost, value, n, budget)
            assert choice is not None
            check(choice, cost, value, n, budget)
            assert choice.proven
            assert choice.value >= best - 1e-9
            assert choice.bound <= choice.value * (1 + 1e-12) * (1 + 1e-15)


@pytest.mark.parametrize("kind", ["strongly", "inversely", "subset-sum"])
def test_subset_sums_with_a_gap(kind):
    # The value of n items is their cost plus a constant: the budget gives the bound.
    rng = np.random.default_rng(300 + KINDS.index(kind))
    for m, n in [(100, 10), (400, 20)]:
        for _ in range(8):
            cost, value, budget = instance(kind, m, n, rng, integers=False)
            offset = {"strongly": 100.0 * n, "inversely": -100.0 * n}.get(kind, 0.0)
            choice = sk.choose(cost, value, n, budget, gap=1e-6)
            assert choice is not None
            check(choice, cost, value, n, budget)
            assert choice.proven
            assert choice.value * (1 + 1e-6) >= (budget + offset) * (1 - 1e-12)


def test_exact_is_not_below_the_table_of_rounded_costs():
    rng = np.random.default_rng(5)
    for _ in range(50):
        cost, value = rng.uniform(20, 160, 70), rng.uniform(0, 10, 70)
        exact = sk.choose(cost, value, 7, 644)
        table = sk.choose(np.ceil(cost), value, 7, 644, method="table")
        assert exact is not None
        assert table is not None
        assert exact.value >= table.value - 1e-12
        assert exact.proven


@pytest.mark.parametrize(
    ("method", "integers"),
    [("auto", True), ("table", True), ("search", True), ("auto", False)],
)
def test_each_cardinality(method, integers):
    rng = np.random.default_rng(6)
    for _ in range(30):
        m = int(rng.integers(1, 25))
        cost, value, budget = instance("weakly", m, 1, rng, integers=integers)
        budget *= 3
        each = sk.choose_each(cost, value, m + 3, budget, method=method)
        assert len(each) == m + 3
        assert each[m:] == [None] * 3
        for k, choice in enumerate(each[:m], 1):
            alone = sk.choose(cost, value, k, budget)
            assert (choice is None) == (alone is None)
            if choice is not None:
                check(choice, cost, value, k, budget)
                assert choice.value == pytest.approx(alone.value, rel=1e-12)


def test_budget_test_is_independent_of_summation_order():
    # 0.1 + 0.2 + 0.3 is 0.6000000000000001 in this order, 0.6 in the other
    cost, value = [0.3, 0.2, 0.1, 0.0], [1.0, 1.0, 1.0, 0.0]
    assert (0.1 + 0.2) + 0.3 > 0.6
    assert sk.choose(cost, value, 3, 0.6).value == 3
    assert sk.choose(cost, value, 3, 0.6).cost == 0.6
    assert sk.choose(cost, value, 3, 0.6 * (1 - 2.0**-49)).value == 2


def test_many_items_and_many_to_choose():
    rng = np.random.default_rng(7)
    cost, value = rng.uniform(1, 1000, 20_000), rng.uniform(1, 1000, 20_000)
    choice = sk.choose(cost, value, 3_000, 600_000.0)
    check(choice, cost, value, 3_000, 600_000.0)
    assert choice.proven
    assert choice.value > 0.5 * 3_000 * 1000


def test_gap_and_work_limits_are_respected():
    rng = np.random.default_rng(8)
    cost = rng.uniform(1, 1000, 60)
    cut = sk.choose(cost, cost, 6, 2500.5, max_work=5000)
    assert not cut.proven
    assert cut.value < cut.bound <= 2500.5 * (1 + 1e-12)
    assert cut == sk.choose(cost, cost, 6, 2500.5, max_work=5000)
    near = sk.choose(cost, cost, 6, 2500.5, gap=1e-3)
    assert near.proven
    assert near.value >= near.bound / (1 + 1e-3)


def test_memory_limit_stops_the_search():
    rng = np.random.default_rng(9)
    cost = rng.uniform(1, 1000, 60)
    choice = sk.choose(cost, cost, 6, 2500.5, memory_limit=1e5)
    assert not choice.proven
    assert choice.value <= 2500.5 <= choice.bound * (1 + 1e-12)


def test_nothing_fits():
    assert sk.choose([3, 4], [1, 1], 2, 6.9) is None
    assert sk.choose([3, 4], [1, 1], 3, 100) is None
    assert sk.choose([], [], 1, 1) is None
    assert sk.choose_each([], [], 2, 1) == [None, None]


def test_accepts_other_arrays():
    cost = np.arange(20, dtype=np.int32)[::2]
    value = np.arange(10, dtype=np.float32)
    value.flags.writeable = False
    want = sk.choose(cost.tolist(), value.tolist(), 3, 30)
    assert sk.choose(cost, value, 3, 30) == want
    assert sk.choose(cost.astype(">f8"), value[::-1][::-1], 3, 30) == want


def test_choice_prints_and_pickles():
    choice = sk.choose([3, 4, 2, 5], [10, 7, 4, 9], 2, 7)
    assert repr(choice) == (
        "Choice(rows=[0, 1], value=17.0, cost=7.0, proven=True, bound=17.0)"
    )
    assert pickle.loads(pickle.dumps(choice)) == choice
    assert choice != sk.choose([3, 4, 2, 5], [10, 7, 4, 9], 2, 6)
    assert choice != "Choice"


BAD = [
    (dict(cost=[1, -2]), ValueError, r"cost\[1\] = -2.0"),
    (dict(cost=[1, np.inf]), ValueError, r"cost\[1\] = inf"),
    (dict(cost=[np.nan, 1]), ValueError, r"cost\[0\] = nan"),
    (dict(value=[1, np.nan]), ValueError, r"value\[1\] = nan"),
    (dict(value=[-np.inf, 1]), ValueError, r"value\[0\] = -inf"),
    (dict(cost=[1e308, 1e308]), ValueError, "overflow"),
    (dict(value=[1e308, 1e308]), ValueError, "overflow"),
    (dict(value=[1.0]), ValueError, "1 entries for 2 costs"),
    (dict(cost=[[1, 2]]), ValueError, "one-dimensional, got 2"),
    (dict(cost=["1", "2"]), TypeError, "cost must hold numbers"),
    (dict(cost=[True, False]), TypeError, "cost must hold numbers"),
    (dict(value=[1j, 2]), TypeError, "value must hold numbers"),
    (dict(cost=np.array([2**60, 1])), ValueError, "beyond 2"),
    (dict(n=0), ValueError, "n must be at least 1, got 0"),
    (dict(n=1.0), TypeError, "n must be an integer, got 1.0"),
    (dict(n=True), TypeError, "n must be an integer"),
    (dict(budget=np.nan), ValueError, "budget must not be NaN"),
    (dict(budget=-1), ValueError, "budget must not be negative, got -1"),
    (dict(budget=10**400), ValueError, "budget is too large"),
    (dict(budget="7"), TypeError, "budget must be a number"),
    (dict(gap=-0.1), ValueError, "gap must not be negative"),
    (dict(gap=np.inf), ValueError, "gap must be finite"),
    (dict(max_work=-1), ValueError, "max_work must be at least 0"),
    (dict(max_work=1.5), TypeError, "max_work must be an integer"),
    (dict(memory_limit=np.nan), ValueError, "memory_limit must not be NaN"),
    (dict(method="guess"), ValueError, "method must be one of auto, table, search"),
    (dict(method=[]), ValueError, "method must be one of"),
    (dict(cost=[0.5, 1], method="table"), ValueError, r"cost\[0\] = 0.5 is not"),
    (
        dict(cost=[1e9, 2e9], budget=3e9, method="table"),
        ValueError,
        "more memory than memory_limit = 268435456",
    ),
    (
        dict(cost=[10, 20], budget=30, method="table", memory_limit=100),
        ValueError,
        "more memory than memory_limit = 100",
    ),
]


@pytest.mark.parametrize(("change", "error", "text"), BAD)
@pytest.mark.parametrize("function", [sk.choose, sk.choose_each])
def test_bad_input(change, error, text, function):
    arguments = dict(cost=[1, 2], value=[3, 4], n=1, budget=5) | change
    with pytest.raises(error, match=text):
        function(**arguments)

"""Choices under several limits: exhaustive search, HiGHS, limits met exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import add, exact, met
from scipy.optimize import Bounds, LinearConstraint, milp

import slotkern as sk
from slotkern._kernels.knapsack import MAX_LIMITS


def keeps(rows, cost, budget, limits):
    """Return True if a set satisfies the budget and all limits, as documented."""
    return met(exact(float(cost[row]) for row in rows), budget) and all(
        met(math.fsum(float(weights[row]) for row in rows), amount, side == ">=")
        for weights, side, amount in limits
    )


def exhaustive(cost, value, n, budget, limits):
    """The best value of n items, or None."""
    worth = [
        add(value[row] for row in sorted(rows, key=lambda row: (cost[row], row)))
        for rows in itertools.combinations(range(len(cost)), n)
        if keeps(rows, cost, budget, limits)
    ]
    return max(worth, default=None)


def check(choice, cost, value, n, budget, limits):
    """Compare an answer with exhaustive search."""
    best = exhaustive(cost, value, n, budget, limits)
    assert (choice is None) == (best is None)
    if choice is None:
        return
    assert choice.rows.size == n
    assert (np.diff(choice.rows) > 0).all()
    assert keeps(choice.rows, cost, budget, limits)
    assert choice.proven
    near = max(map(abs, value)) * n * 1e-15 + 1e-12 * abs(best)
    assert choice.value >= best - near
    assert choice.bound >= best - near
    assert choice.bound >= choice.value


few = st.integers(0, 6).map(float)
tenths = st.integers(-30, 60).map(lambda k: k / 10)
odd = st.sampled_from(
    [0.0, 1.0, 3.0, 0.1, 0.2, 0.3, -5.0, 1e-150, 1e150, -1e150, 2.0**53]
)


@st.composite
def problems(draw):
    """Few items; one to three limits that a set meets exactly or misses by an ulp."""
    m = draw(st.integers(1, 9))
    n = draw(st.integers(1, m))
    numbers = draw(st.sampled_from([few, tenths, odd]))
    column = st.lists(numbers, min_size=m, max_size=m)
    cost = [abs(x) for x in draw(column)]
    value = draw(
        st.sampled_from([column, st.just(cost)]).flatmap(lambda strategy: strategy)
    )
    some = draw(st.permutations(range(m)))[:n]
    limits = []
    for _ in range(draw(st.integers(1, 3))):
        weights = draw(column)
        amount = math.fsum(weights[row] for row in some)
        amount = draw(
            st.sampled_from(
                [
                    amount,
                    amount,
                    math.nextafter(amount, math.inf),
                    math.nextafter(amount, -math.inf),
                ]
            )
        )
        limits.append((weights, draw(st.sampled_from(["<=", ">="])), amount))
    budget = draw(st.sampled_from([math.inf, exact(cost[row] for row in some)]))
    return cost, value, n, budget, limits


@pytest.mark.hypothesis
@given(problems())
def test_exhaustive_search_finds_nothing_better(problem):
    check(sk.choose(*problem[:4], limits=problem[4]), *problem)


KINDS = {
    "uncorrelated": lambda w, rng: rng.uniform(1, 1000, w.shape[1]),
    "weakly": lambda w, rng: w.mean(0) + rng.uniform(-100, 100, w.shape[1]),
    "strongly": lambda w, rng: w.mean(0) + 100,
}


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_highs_agrees(kind, count):
    rng = np.random.default_rng([count, len(kind)])
    for _ in range(4):
        m, n = 40, 5
        weights = np.floor(rng.uniform(1, 1000, (count, m)))
        value = np.floor(KINDS[kind](weights, rng))
        amounts = np.floor(weights.mean(1) * n * rng.uniform(0.7, 1.1, count))
        limits = [(w, "<=", a) for w, a in zip(weights, amounts, strict=True)]
        limits[0] = (-weights[0], ">=", -amounts[0])
        choice = sk.choose(np.zeros(m), value, n, 0, limits=limits)
        answer = milp(
            -value,
            integrality=np.ones(m),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(weights, ub=amounts),
                LinearConstraint(np.ones(m), n, n),
            ],
            options={"mip_rel_gap": 0},
        )
        assert answer.status == 0
        assert choice.proven
        assert choice.value == round(-answer.fun)
        assert keeps(choice.rows, np.zeros(m), 0, limits)


def test_a_limit_that_does_not_bind_changes_nothing():
    rng = np.random.default_rng(3)
    cost, value = np.floor(rng.uniform(1, 1000, (2, 60)))
    plain = sk.choose(cost, value, 6, 2500)
    within = sk.choose(cost, value, 6, 2500, limits=[(cost, "<=", 1e6)])
    assert within.value == plain.value
    assert within.proven
    exact = sk.choose(cost, value, 6, 2500, limits=[(cost, "<=", 1e6)], gap=0)
    assert exact.value == exact.bound == plain.value  # sums of integers are exact


def test_one_huge_weight_does_not_affect_others():
    disk = [1e200, 0.1, 0.2, 0.3, 0.4]
    limits = [(disk, ">=", 0.5), (disk, "<=", 0.7)]
    choice = sk.choose([1, 1, 1, 1, 1], [9, 1, 2, 3, 4], 2, 10, limits=limits)
    assert choice.rows.tolist() == [3, 4]
    assert choice.proven
    choice = sk.choose([1, 1, 1, 1, 1], [9, 1, 2, 3, 4], 2, 10, limits=limits[:1])
    assert choice.rows.tolist() == [0, 4]


def test_a_work_limit_leaves_a_valid_bound():
    rng = np.random.default_rng(5)
    weights = np.floor(rng.uniform(1, 10000, (3, 70)))
    value = weights.mean(0)
    limits = [(w, "<=", np.floor(w.mean() * 7)) for w in weights]
    short = sk.choose(np.zeros(70), value, 7, 0, limits=limits, max_work=10_000)
    longer = sk.choose(np.zeros(70), value, 7, 0, limits=limits, max_work=2_000_000)
    assert not short.proven
    assert short.value <= longer.value <= min(short.bound, longer.bound)
    again = sk.choose(np.zeros(70), value, 7, 0, limits=limits, max_work=10_000)
    assert again == short


def test_infeasible_limits_give_none():
    assert sk.choose([1, 2, 3], [1, 2, 3], 2, 9, limits=[([1, 1, 1], ">=", 3)]) is None
    opposite = [([1, 2, 4], "<=", 4), ([1, 2, 4], ">=", 4)]
    assert sk.choose([1, 2, 3], [1, 2, 3], 2, 9, limits=opposite) is None
    assert sk.choose([1, 2, 3], [1, 2, 3], 4, 9, limits=[([1, 1, 1], ">=", 3)]) is None


@pytest.mark.parametrize(
    ("limits", "kind", "words"),
    [
        ([([1, 2], "<=", 1)], ValueError, r"limits\[0\] has 2 weights for 3 costs"),
        ([([1, 2, 3], "<", 1)], ValueError, r"limits\[0\]: the side must be one of"),
        ([([1, 2, 3], "<=")], TypeError, r"limits\[0\] must be \(weights"),
        ([([1, math.nan, 3], "<=", 1)], ValueError, r"limits\[0\]: weights\[1\] = nan"),
        ([([1, 2, 3], "<=", math.nan)], ValueError, r"limits\[0\]: the amount"),
        ([([1, 2, 3], "<=", math.inf)], ValueError, r"limits\[0\]: the amount"),
        (
            [(["a", 2, 3], "<=", 1)],
            TypeError,
            r"limits\[0\]: weights must hold numbers",
        ),
        ([([1e300, 2, 3], "<=", 1)], ValueError, r"limits\[0\]: weights or amount"),
        (
            [([1, 2, 3], "<=", 1)] * (MAX_LIMITS + 1),
            ValueError,
            "at most 7 limits, got 8",
        ),
    ],
)
def test_invalid_limits_are_refused(limits, kind, words):
    with pytest.raises(kind, match=words):
        sk.choose([1, 2, 3], [1, 2, 3], 2, 5, limits=limits)


def test_the_table_does_not_support_limits():
    with pytest.raises(ValueError, match="method 'table' does not support limits"):
        sk.choose([1, 2], [1, 2], 1, 5, method="table", limits=[([1, 2], "<=", 1)])


def test_an_undecided_choice_raises_an_error():
    rng = np.random.default_rng(4)
    weight = rng.integers(10**8, 10**9, 60)
    rows = rng.permutation(60)[:20]
    amount = int(weight[rows].sum())
    limits = [(weight, "<=", amount), (weight, ">=", amount)]  # `rows` meet both
    with pytest.raises(sk.UndecidedError, match="within max_work = 0 units"):
        sk.choose(np.zeros(60), rng.random(60), 20, 0, limits=limits, max_work=0)
    # Infeasibility is proven without any work.
    least = [(weight, "<=", 1)]
    assert sk.choose(np.zeros(60), rng.random(60), 20, 0, limits=least) is None

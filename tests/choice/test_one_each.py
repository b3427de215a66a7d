"""The multiple-choice knapsack: exhaustive search, HiGHS, the paper's grid."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import add, exact, met
from scipy.optimize import Bounds, LinearConstraint, milp

import slotkern as sk
from slotkern.published.batch import grid_choice, time_limit

ROUNDING = 1e-12

odd = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 1.1, 2.0, 3.0, 5.0])
numbers = st.one_of(
    odd,
    st.integers(-3, 3).map(float),
    st.floats(-10, 10),
    st.sampled_from([1e-300, 5e-324, -5e-324, 1e17, -1e17, 1e290, 1 + 2.0**-52]),
)


def exact_sum(weights, rows):
    """The exact sum, rounded once."""
    return exact(weights[row] for row in rows)


def ordered_sum(values, rows):
    """The sum in the order of the classes."""
    return add(values[row] for row in rows)


def exhaustive(value, weight, first, limit, maximize):
    """The best value under the limit, or None."""
    best = None
    better = max if maximize else min
    for rows in itertools.product(*map(range, first[:-1], first[1:])):
        if met(exact_sum(weight, rows), limit):
            total = ordered_sum(value, rows)
            best = total if best is None else better(best, total)
    return best


def noise(value, first):
    """The largest rounding error of sums of the values."""
    sizes = [np.abs(value[i:j]).max() for i, j in itertools.pairwise(first)]
    return 8 * (len(first) + 1) * 2.0**-52 * sum(sizes)


def check(found, value, weight, first, limit, maximize, gap=0.0):
    """Check the properties of every answer, optimal or not."""
    assert found.rows.dtype == np.int64
    assert len(found.rows) == len(first) - 1
    for k, row in enumerate(found.rows):
        assert first[k] <= row < first[k + 1]
    assert found.weight == exact_sum(weight, found.rows)
    assert met(found.weight, limit)
    assert found.value == ordered_sum(value, found.rows)
    assert found.feasible
    assert found.least <= found.weight
    assert found.bound >= found.value if maximize else found.bound <= found.value
    if found.proven:
        near = max(gap, ROUNDING) * abs(found.value) + noise(value, first)
        assert abs(found.bound - found.value) <= near


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(1, 4), max_size=5))
    first = [0, *itertools.accumulate(sizes)]
    kind = draw(st.sampled_from([odd, numbers, st.floats(0, 1000)]))
    column = st.lists(kind, min_size=first[-1], max_size=first[-1])
    value = draw(column)
    weight = value if draw(st.booleans()) else draw(column)
    rows = [draw(st.integers(a, b - 1)) for a, b in itertools.pairwise(first)]
    amount = exact_sum(weight, rows)
    limit = draw(
        st.one_of(
            st.just(amount),
            st.just(float(np.nextafter(amount, np.inf))),
            st.just(float(np.nextafter(amount, -np.inf))),
            st.just(amount * (1 - 2.0**-49)),
            st.floats(-20, 2000),
            st.just(np.inf),
        )
    )
    return value, weight, first, limit


# Weights that vanish when added to a larger one, but decide if that one cancels.
CANCELLED = (
    [0.0, -4.0, 3.0, 1.0],
    [-5e-324, 1e-300, 1e-310, 5e-324],
    [0, 2, 4],
    0.0,
)


@given(
    cases(),
    st.booleans(),
    st.sampled_from([None, None, 0, 5]),
    st.sampled_from([0, 0.1]),
)
@example(CANCELLED, False, None, 0)
def test_equals_exhaustive_search(case, maximize, max_work, gap):
    value, weight, first, limit = case
    try:
        found = sk.choose_one_each(
            value, weight, first, limit, maximize=maximize, gap=gap, max_work=max_work
        )
    except ValueError:  # sums overflow
        assert max(map(abs, [*value, *weight])) > 1e280
        return
    best = exhaustive(value, weight, first, limit, maximize)
    lightest = [np.argmin(weight[i:j]) + i for i, j in itertools.pairwise(first)]
    assert found.least == exact_sum(weight, lightest)
    assert found.feasible == (best is not None)
    if best is None:
        assert len(found.rows) == 0
        assert np.isnan([found.value, found.weight, found.bound]).all()
        return
    check(found, value, weight, first, limit, maximize, gap)
    sign = 1 if maximize else -1
    assert sign * found.value <= sign * best
    assert sign * found.bound >= sign * best - noise(value, first) - ROUNDING * abs(
        best
    )
    if found.proven:
        near = max(gap, ROUNDING) * abs(found.value) + noise(value, first)
        assert abs(found.value - best) <= near


@given(cases(), st.booleans())
def test_the_trade_off_equals_the_choice_at_each_limit(case, maximize):
    value, weight, first, limit = case
    curve = sk.trade_off(value, weight, first, maximize=maximize)
    assert curve.complete
    sign = -1 if maximize else 1
    assert (np.diff(curve.weight) > 0).all()
    assert (np.diff(sign * curve.value) < 0).all()
    best = exhaustive(value, weight, first, limit, maximize)
    within = np.flatnonzero([met(total, limit) for total in curve.weight])
    assert (curve.value[within[-1]] if len(within) else None) == best


def instance(kind, jobs, size, rng):
    """Times and costs of alternatives of the given kind, and the limit of eq. (5)."""
    first = np.arange(jobs + 1) * size
    work = np.repeat(rng.uniform(400, 2000, jobs), size)
    power = rng.uniform(2, 10, jobs * size)
    time = work / power
    if kind == "uncorrelated":
        value, weight = rng.uniform(0, 1000, (2, jobs * size))
    elif kind == "traded":  # time falls as cost rises (eq. 7)
        value, weight = time, work * power**0.05 * rng.uniform(0.8, 1.2, jobs * size)
    elif kind == "dearer":  # the most cost within a time (eq. 6)
        value, weight = -time * rng.uniform(4, 6, jobs * size), time
    else:  # integers with many equal sums
        value, weight = rng.integers(0, 20, (2, jobs * size)).astype(float)
    return value, weight, first, time_limit(weight, first)


def by_highs(value, weight, first, limit):
    m = len(value)
    classes = np.zeros((len(first) - 1, m))
    for k, (i, j) in enumerate(itertools.pairwise(first)):
        classes[k, i:j] = 1
    answer = milp(
        value,
        integrality=np.ones(m),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(weight, ub=limit),
            LinearConstraint(classes, 1, 1),
        ],
        options={"mip_rel_gap": 0},
    )
    return ordered_sum(value, np.flatnonzero(answer.x > 0.5))


@pytest.mark.parametrize("kind", ["uncorrelated", "traded", "dearer", "integers"])
@pytest.mark.parametrize(("jobs", "size", "count"), [(20, 12, 25), (60, 10, 6)])
def test_equals_highs(kind, jobs, size, count):
    rng = np.random.default_rng(jobs)
    for _ in range(count):
        value, weight, first, limit = instance(kind, jobs, size, rng)
        found = sk.choose_one_each(value, weight, first, limit)
        check(found, value, weight, first, limit, False)
        assert found.proven
        # HiGHS may exceed its limit by 1e-6 and so be slightly better
        theirs = by_highs(value, weight, first, limit)
        assert found.value <= theirs + 1e-9 * abs(theirs)
        assert found.value == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("kind", ["traded", "integers"])
def test_no_worse_than_the_grid_of_the_paper(kind):
    rng = np.random.default_rng(3)
    for _ in range(30):
        value, weight, first, limit = instance(kind, 20, 12, rng)
        rows = grid_choice(value, weight, first, limit, 2000, False)
        found = sk.choose_one_each(value, weight, first, limit)
        assert met(exact_sum(weight, rows), limit)
        assert found.value <= ordered_sum(value, rows) * (1 + ROUNDING)
        if kind == "integers":  # one grid step per unit: the grid is exact
            exact = grid_choice(value, weight, first, limit, int(limit), False)
            assert ordered_sum(value, exact) == found.value


def test_values_close_to_weights_reach_the_gap():
    rng = np.random.default_rng(9)
    time = np.repeat(rng.uniform(400, 2000, 1000), 50) / rng.uniform(2, 10, 50_000)
    first = np.arange(1001) * 50
    limit = time_limit(time, first)
    found = sk.choose_one_each(time, time, first, limit, maximize=True, gap=1e-9)
    check(found, time, time, first, limit, True, 1e-9)
    assert found.proven
    assert found.value >= limit * (1 - 1e-9)


def test_a_work_limit_leaves_a_valid_bound():
    rng = np.random.default_rng(1)
    value, weight, first, limit = instance("traded", 60, 20, rng)
    best = sk.choose_one_each(value, weight, first, limit)
    early = sk.choose_one_each(value, weight, first, limit, max_work=0)
    check(early, value, weight, first, limit, False)
    assert best.proven
    assert not early.proven
    assert early.bound <= best.value <= early.value


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_no_choice_is_better_than_the_bound_of_a_proven_one(scale):
    rng = np.random.default_rng(7)
    first = np.arange(0, 21, 4)
    rows = np.array(list(itertools.product(*(range(a, a + 4) for a in first[:-1]))))
    for _ in range(60):
        # Sums differ by less than the rounding that a proof tolerates.
        value = rng.choice([1.0, 1.0, 2.0], 20) + 3e-15 * rng.integers(0, 100, 20)
        weight = rng.random(20)
        sums = weight[rows].sum(axis=1)
        limit = sums[rng.integers(len(rows))]
        feasible = sums <= limit * (1 - 1e-12)
        if not feasible.any():
            continue
        found = sk.choose_one_each(value, weight, first, limit, maximize=scale < 0)
        best = (scale * value[rows].sum(axis=1))[feasible].min()
        assert found.proven
        assert scale * found.bound <= best + 4e-15


def test_infeasible_rows_do_not_affect_rounding():
    found = sk.choose_one_each(
        [1.0, 2.0, 5.0, -1e308], [1.0, 1.0, 0.0, 1e308], [0, 2, 4], 10
    )
    assert found.rows.tolist() == [0, 2]
    assert (found.value, found.weight) == (6.0, 1.0)


def test_no_choice_and_no_classes():
    found = sk.choose_one_each([1, 2, 3], [4, 5, 6], [0, 2, 3], 9)
    assert (len(found.rows), found.least, found.feasible) == (0, 10.0, False)
    assert sk.choose_one_each([1, 2, 3], [4, 5, 6], [0, 2, 3], found.least).feasible
    none = sk.choose_one_each([], [], [0], 5)
    assert (none.feasible, none.value, none.weight, none.proven) == (True, 0, 0, True)
    assert not sk.choose_one_each([], [], [0], -1).feasible
    assert found == pickle.loads(pickle.dumps(found))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, np.nan], [1, 1], [0, 2], 5), r"value\[1\] = nan is not finite"),
        (([1, 1], [1, np.inf], [0, 2], 5), r"weight\[1\] = inf is not finite"),
        (([1, 1], [1], [0, 2], 5), "weight has 1 entries for 2 values"),
        (([1, 1], [1, 1], [0, 1], 5), "first must run from 0 to the number of rows, 2"),
        (([1, 1], [1, 1], [0, 2, 2], 5), r"class 1 has no rows: first\[1\] = 2"),
        (([1, 1], [1, 1], [0, 2], np.nan), "limit must not be NaN"),
        (([1, 1], [1, 1], [], 5), "first must"),
        (([1, 1], [1e308, 1e308], [0, 1, 2], 1e308), "sums overflow"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sk.choose_one_each(*arguments)


@pytest.mark.parametrize("sign", [1, -1])
def test_integer_values_that_differ_by_one(sign):
    value = np.array([20_000_000, 10_000_001, 20_000_000, 10_000_000])
    found = sk.choose_one_each(
        sign * value, value, [0, 2, 4], 30_000_001, maximize=sign > 0
    )
    assert found.proven
    assert found.rows.tolist() == [1, 2]
    assert found.value == found.bound == sign * 30_000_001


def test_a_batch_of_integers_reaches_its_bound():
    value = [20_000_000, 10_000_001, 20_000_000, 10_000_000]
    slots = sk.make_slots(
        node=range(4), start=0, end=10, performance=1, price=1, gb=value
    )
    jobs = [sk.Request(1, 10, where="node <= 1"), sk.Request(1, 10, where="node >= 2")]
    batch = sk.schedule_batch(
        slots, jobs, maximize="gb", under="gb", limit=30_000_001, gap=0
    )
    assert batch.value == batch.slices["bound"][0] == 30_000_001
    curve = batch.trade_off()
    assert batch.value == curve.value[curve.weight <= 30_000_001].max()


@pytest.mark.parametrize("power", range(7, 16))
def test_integer_values_are_compared_exactly(power):
    # Sums a few steps apart among large numbers, exact while they are below 2**53.
    rng = np.random.default_rng(power)
    classes, rows = 3, 3
    first = np.arange(classes + 1) * rows
    sets = np.array(list(itertools.product(range(rows), repeat=classes)))
    for turn in range(60):
        value, weight = rng.integers(
            1, 3, (2, classes, rows)
        ) * 10.0**power + rng.integers(-3, 4, (2, classes, rows))
        value *= rng.choice([-1, 1], value.shape) if turn % 3 == 0 else 1
        weight = (weight, np.abs(value), rng.random(value.shape))[turn % 3]
        places = np.arange(classes)
        weights = weight[places, sets].sum(1)
        values = value[places, sets].sum(1)
        limit = weights[rng.integers(len(sets))] + int(rng.integers(0, 2))
        for maximize in (False, True):
            found = sk.choose_one_each(
                value.ravel(), weight.ravel(), first, limit, maximize=maximize
            )
            within = values[[met(weight, limit) for weight in weights.tolist()]]
            assert found.proven
            assert found.value == (within.max() if maximize else within.min())
            assert found.bound == found.value


def test_other_arguments_are_checked():
    with pytest.raises(TypeError, match="first must hold integers"):
        sk.choose_one_each([1], [1], [0.0, 1.0], 5)
    with pytest.raises(ValueError, match="gap must be finite"):
        sk.choose_one_each([1], [1], [0, 1], 5, gap=np.inf)
    with pytest.raises(TypeError, match="max_work must be an integer"):
        sk.choose_one_each([1], [1], [0, 1], 5, max_work=1.5)
    with pytest.raises(ValueError, match="points must be at least 2"):
        sk.trade_off([1], [1], [0, 1], points=1)
    with pytest.raises(ValueError, match="points must be at most 100000, got 10"):
        sk.trade_off([1], [1], [0, 1], points=10**9)


def test_a_long_trade_off_is_sampled():
    rng = np.random.default_rng(4)
    value, weight, first, _ = instance("traded", 60, 12, rng)
    curve = sk.trade_off(value, weight, first, max_work=1000, points=20)
    assert not curve.complete
    assert 10 < len(curve) <= 21
    for w, v in zip(curve.weight.tolist(), curve.value.tolist(), strict=True):
        found = sk.choose_one_each(value, weight, first, w)
        assert found.value <= v <= found.value * (1 + 1e-8)

"""Tests of amounts that decimal sums meet exactly, and of amounts one cent less."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk

CRITERIA = ("first", "start", "finish", "runtime", "cost", "processor_time", "q")
EXAMPLES = [
    (0.1, 3, 0.3),
    (0.1, 6, 0.6),
    (4.35, 100, 435.0),
    (0.57, 100, 57.0),
    (1.15, 100, 115.0),
]


def idle(prices, performance=1, **columns):
    """Return slots of nodes that are free for ten units of time."""
    return sk.make_slots(
        node=range(len(prices)),
        start=0,
        end=10,
        performance=performance,
        price=prices,
        **{"q": np.arange(float(len(prices)))} | columns,
    )


@pytest.mark.parametrize(("price", "n", "amount"), EXAMPLES)
@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_decimal_sums_meet_their_budget(price, n, amount, shape):
    slots = idle([price] * n)
    cent = 0.01
    for criterion in CRITERIA:
        for limits in ([], ["sum(price * length) <= 1e9"]):
            job = sk.Request(n, 1, budget=amount, limits=limits)
            found = sk.find_window(slots, job, criterion, shape=shape)
            assert found is not None
            assert found.cost == math.fsum([price] * n)
            less = job.replace(budget=amount - cent)
            assert sk.find_window(slots, less, criterion, shape=shape) is None
    limit = f"sum(price * length) <= {amount}"
    assert (
        sk.find_window(slots, sk.Request(n, 1, limits=limit), shape=shape) is not None
    )
    limit = f"sum(price * length) <= {amount - cent}"
    assert sk.find_window(slots, sk.Request(n, 1, limits=limit), shape=shape) is None
    limit = f"sum(price * length) >= {amount}"
    assert (
        sk.find_window(slots, sk.Request(n, 1, limits=limit), shape=shape) is not None
    )


@pytest.mark.parametrize(("price", "n", "amount"), EXAMPLES)
def test_all_functions_compare_amounts_equally(price, n, amount):
    slots, pool = idle([price] * n), sk.SlotPool(idle([price] * n))
    one = sk.Request(n, 1, budget=amount)
    for job, fits in ((one, True), (one.replace(budget=amount - 0.01), False)):
        for shape in ("square", "ragged"):
            assert (len(sk.find_alternatives(slots, job, shape=shape)) > 0) == fits
            assert (pool.find(job, "cost", shape=shape) is not None) == fits
            assert (
                sk.find_window(slots, job, "first", shape=shape, method="published")
                is not None
            ) == fits
            why = sk.explain(slots, job, shape=shape)
            assert why.fits == fits
        assert (
            sk.choose([price] * n, range(n), n=n, budget=job.budget) is not None
        ) == fits
        some = sk.choose(
            [price] * n,
            range(n),
            n=n,
            budget=1e9,
            limits=[([price] * n, "<=", job.budget)],
        )
        assert (some is not None) == fits
        classes = sk.choose_one_each(range(n), [price] * n, range(n + 1), job.budget)
        assert classes.feasible == fits
    # Each job costs the price of one node.
    few = min(n, 10)
    jobs = [sk.Request(1, 10) for _ in range(few)]
    lone = idle([price] * few)
    batch = sk.schedule_batch(
        lone,
        jobs,
        minimize="time",
        under="cost",
        limit=float(Fraction(str(price)) * few * 10),
    )
    assert batch.reasons == ["scheduled"] * few


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=40),
    st.integers(2, 4),
    st.sampled_from(CRITERIA),
    st.sampled_from(["square", "ragged"]),
)
def test_random_decimal_prices_meet_their_sum(units, digits, criterion, shape):
    prices = [float(Fraction(u, 10**digits)) for u in units]
    slots = idle(prices)
    n = len(units)
    job = sk.Request(n, 1, budget=float(Fraction(sum(units), 10**digits)))
    found = sk.find_window(slots, job, criterion, shape=shape)
    assert found is not None
    assert found.cost == math.fsum(prices)
    if sum(units) > 0:
        less = job.replace(budget=float(Fraction(sum(units) - 1, 10**digits)))
        assert sk.find_window(slots, less, criterion, shape=shape) is None


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=60),
    st.sampled_from([1.0, 1e150, 1e-150]),
    st.sampled_from(["square", "ragged"]),
)
def test_window_fits_a_budget_of_its_own_cost(prices, scale, shape):
    slots = idle([price * scale for price in prices])
    job = sk.Request(len(prices), 3)
    for criterion in ("start", "cost", "q"):
        window = sk.find_window(slots, job, criterion, shape=shape)
        again = sk.find_window(
            slots, job.replace(budget=window.cost), criterion, shape=shape
        )
        assert again == window


def test_budget_tolerance_ends_beyond_decimal_rounding():
    slots = idle([1.0, 1.0])
    for off, fits in ((0.5, True), (1.0, True), (2.5, False)):
        job = sk.Request(2, 1, budget=2.0 * (1 - off * 2.0**-50))
        for criterion in CRITERIA:
            assert (sk.find_window(slots, job, criterion) is not None) == fits
        assert (
            sk.choose([1.0, 1.0], [1, 1], n=2, budget=job.budget) is not None
        ) == fits

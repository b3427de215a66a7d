"""Choices whose sums round, cancel or overflow, against exhaustive search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from extremes import Items, Picker, check_each, check_items, items
from hypothesis import given
from hypothesis import strategies as st
from oracle import met

import slotkern as sk

pickers = st.binary(min_size=50, max_size=50).map(
    lambda digits: Picker(int.from_bytes(digits))
)


@given(pickers, st.sampled_from([{}, {"method": "search"}, {"max_work": 3}]))
def test_choose_equals_exhaustive_search(pick, options):
    check_items(items(pick), **options)


@given(pickers, st.sampled_from([{}, {"method": "search"}]))
def test_choose_each_equals_exhaustive_search(pick, options):
    check_each(items(pick, 6), **options)


HUGE = 2.0**53
SPOILED = [
    [HUGE, *(float(number) for number in column.split())]
    for column in (
        "0 50 55 55 42.75 27.25 27.25 28.75 2 0 0 1.25 0 0 0 .5 .5 33.75",
        "55 50 55 55 24.25 24.25 23.75 7.5 0 0 0 0 0 0 0 0 55 .25",
    )
]


@pytest.mark.parametrize(
    "case",
    [
        # the budget is one ulp below a sum of integers
        Items([716, 558, 635], [716, 558, 635], 2, 1350.9999999999998),
        # nothing costs a huge item, which can never be chosen
        Items([2.0**53, 0.0], [1.0, 1.0], 2, 0.0),
        Items([2.0**53, 0.0], [1.0, 1.0], 1, 0.0),
        # multipliers that overflow
        Items([1e-300, 1.0, 2e-300], [1e290, 2.0, 1e280], 2, 1.0),
        Items([5e-324, 0.0, 1e-323], [1e200, 1.0, 2e200], 1, 5e-324),
        Items([1.0, 2.0], [1e12, -1e12], 2, 3.0),
        Items([1.0, 1.0, 1.0], [1e12, -1e12, 1e-9], 2, 3.0),
    ],
)
def test_named_choices(case):
    assert check_items(case) == (case.budget > 0 or case.n == 1)


def test_unaffordable_items_do_not_affect_rounding():
    cost, value = SPOILED
    each = sk.choose_each(cost, value, 16, 26.0)
    without = sk.choose_each(cost[1:], value[1:], 16, 26.0)
    for choice, other in zip(each, without, strict=True):
        assert (choice is None) == (other is None)
        if choice is not None:
            assert choice.proven
            assert choice.cost <= 26.0
            assert (choice.value, choice.cost) == (other.value, other.cost)
            assert (choice.rows == other.rows + 1).all()


def test_sets_over_the_budget_by_rounding_dominate_no_others():
    # Tenths: many sets have equal sums up to the rounding of plain sums. In the dynamic
    # program a set over the budget must not dominate one within it.
    rng = np.random.default_rng(4)
    m, n = 22, 6
    sets = np.array(list(itertools.combinations(range(m), n)))
    for _ in range(60):
        cost = np.sort(rng.integers(1, 60, m)) / 10
        value = np.round(cost * 8) + rng.integers(0, 3, m) / 4
        spent, worth = np.zeros(len(sets)), np.zeros(len(sets))
        for k in range(n):
            spent += np.round(cost[sets[:, k]] * 10)
            worth += value[sets[:, k]]
        spent /= 10  # the exact sums, rounded once
        budget = spent[rng.integers(len(sets))]
        choice = sk.choose(cost, value, n, budget, method="search")
        assert choice.proven
        assert met(choice.cost, budget)
        assert choice.value == worth[spent <= budget].max()

"""The default of `choose` and its two methods: same optimum, bounded extra work."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk
from slotkern._kernels.knapsack import last_work

KINDS = ("inverse", "weakly", "strongly", "uncorrelated", "subset-sum")
#: Bounds of the Lagrange relaxation are not counted; an item's share of them is.
UNCOUNTED = 1


def instance(kind, m, n, top, free, seed, part=0.5):
    """Integer costs up to `top`, some of them 0, values of a kind, and a budget."""
    rng = np.random.default_rng([KINDS.index(kind), m, n, top, free, seed])
    cost = rng.integers(1, top + 1, m)
    offset = top // 10 + 1
    value = {
        "inverse": np.maximum(1, cost - offset),
        "weakly": np.maximum(1, cost + rng.integers(-offset, offset + 1, m)),
        "strongly": cost + offset,
        "uncorrelated": rng.integers(1, top + 1, m),
        "subset-sum": cost,
    }[kind]
    cost = np.concatenate([cost, np.zeros(free, int)])
    value = np.concatenate([value, rng.integers(1, offset + 1, free)])
    ranked = np.sort(cost)
    low, high = ranked[:n].sum(), ranked[-n:].sum()
    return cost, value, n, int(low + (high - low) * part)


def worked(problem, **options):
    """A choice and the units of work that it took."""
    cost, value, n, budget = problem
    choice = sk.choose(cost, value, n, budget, **options)
    return choice, last_work()


def without_end():
    """45 of 150 integer costs, value = cost - 500: a table of 8 million columns."""
    rng = np.random.default_rng(0)
    cost = rng.integers(1, 5000, 150)
    value = np.maximum(1, cost - 500)
    ranked = np.sort(cost)
    low, high = ranked[:45].sum(), ranked[-45:].sum()
    return cost, value, 45, int(low + (high - low) * 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "search"},
        {"memory_limit": 2**20},
        {"max_work": 10**7},
        {"max_work": 10**9},
    ],
)
def test_sums_close_to_a_wide_budget_are_proven(options):
    choice, work = worked(without_end(), **options)
    assert choice.value == choice.bound == 96_433
    assert choice.proven
    assert work < 3_000_000


@pytest.mark.parametrize("kind", ["uncorrelated", "weakly"])
def test_free_items_beside_many_expensive_ones(kind):
    problem = instance(kind, 700, 60, 5000, 700, 1)
    search, least = worked(problem, method="search")
    choice, work = worked(problem)
    assert choice.proven
    assert choice.value == search.value
    assert work <= 3 * least + UNCOUNTED * 1400


SIZES = ((100, 20, 1000, 0), (150, 2, 400, 0), (150, 40, 3000, 60), (400, 8, 2000, 0))


def test_the_default_takes_little_more_work_than_the_better_method():
    ratios = []
    for kind in KINDS:
        for size in SIZES:
            for seed in range(3):
                problem = instance(kind, *size, seed, (0.5, 0.1, 0.8)[seed])
                proofs = []
                for method in ("search", "table"):
                    if method == "table" and size[:3] != (150, 2, 400):
                        continue
                    choice, work = worked(problem, method=method, max_work=500_000)
                    if choice.proven:
                        proofs.append((work, choice.value))
                choice, work = worked(problem)
                if not proofs:
                    continue
                assert choice.proven
                assert {value for _, value in proofs} == {choice.value}
                extra = UNCOUNTED * len(problem[0])
                ratios.append((work + extra) / (min(proofs)[0] + extra))
    assert len(ratios) > 50
    assert statistics.median(ratios) <= 2
    assert max(ratios) <= 5


@pytest.mark.parametrize(
    "problem",
    [
        instance("subset-sum", 60, 6, 40, 0, 1),
        instance("inverse", 120, 20, 60, 40, 2),
        instance("subset-sum", 120, 20, 60, 40, 4),
        instance("subset-sum", 209, 40, 60, 247, 3),
    ],
)
def test_the_search_reserves_the_work_of_the_table(problem):
    table, work = worked(problem, method="table")
    choice, _ = worked(problem, max_work=work)
    assert choice.proven
    assert choice.value == table.value


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(-1, 1)),
        min_size=1,
        max_size=9,
    ),
    st.integers(1, 9),
    st.integers(0, 60),
    st.sampled_from([1, 10**7, 10**11, 6 * 10**13, 10**14]),
)
def test_all_methods_find_the_same_integer_optimum(rows, n, budget, size):
    cost = [a for a, _, _ in rows]
    value = [b * size + c for _, b, c in rows]
    answers = [
        sk.choose(cost, value, n, budget, method=method)
        for method in ("table", "search", "auto")
    ]
    answers.append(sk.choose_each(cost, value, n, budget)[n - 1])
    if answers[0] is None:
        assert answers == [None] * 4
        return
    exact = (n + 2) * max(map(abs, value)) < 2**53  # as the docstring promises
    best = max(choice.value for choice in answers)
    for choice in answers:
        assert choice.proven
        assert choice.value == sum(value[row] for row in choice.rows)
        assert best <= choice.bound
        assert choice.value >= best - 2**-50 * abs(best)
        if exact:
            assert choice.value == choice.bound == best


@pytest.mark.parametrize("top", [60, 5000])
def test_each_cardinality_is_the_single_choice(top):
    cost, value, n, budget = instance("inverse", 40, 12, top, 3, 2)
    each = sk.choose_each(cost, value, n, budget)
    work = last_work()
    single = 0
    for k, choice in enumerate(each, 1):
        alone = sk.choose(cost, value, k, budget)
        single += last_work()
        assert (choice and choice.value) == (alone and alone.value)
        assert choice is None or choice.proven
    assert work <= 5 * single + 2 * UNCOUNTED * len(cost) * n

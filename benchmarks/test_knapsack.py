"""Measures the knapsack of integer costs by its methods: table, search, default.

``make bench`` runs this with pytest-benchmark. Every method must give the same proven
optimum while it is timed, and the default may not take more than five times the work
of the better method. A round is one pass over all instances of a kind.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import slotkern as sk
from slotkern._kernels.knapsack import last_work

KINDS = ("inverse", "weakly", "strongly", "uncorrelated")
SIZES = ((100, 10, 300), (100, 10, 1000), (400, 4, 1000))  # items, n, largest cost
METHODS = {  # named as in the tables of the pages
    "table with backtracking": "table",
    "search": "search",
    "default": "auto",
}


@lru_cache(maxsize=len(KINDS))
def instances(kind: str) -> list[Any]:
    """Return costs, values, n and a budget between the least and the largest cost."""
    rng = np.random.default_rng(KINDS.index(kind))
    found = []
    for items, n, top in SIZES:
        cost = rng.integers(1, top + 1, items)
        value = {
            "inverse": np.maximum(1, cost - top // 10),
            "weakly": np.maximum(1, cost + rng.integers(-top // 10, top // 10, items)),
            "strongly": cost + top // 10,
            "uncorrelated": rng.integers(1, top + 1, items),
        }[kind]
        ranked = np.sort(cost)
        budget = int(ranked[:n].sum() + ranked[-n:].sum()) // 2
        found.append((cost, value, n, budget))
    return found


@lru_cache(maxsize=len(KINDS))
def optima(kind: str) -> list[float]:
    """Return the optimal values, computed by the table."""
    return [sk.choose(*given, method="table").value for given in instances(kind)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_knapsack(benchmark: BenchmarkFixture, kind: str, method: str) -> None:
    problems = instances(kind)
    benchmark.group = f"knapsack {kind}"
    found = benchmark.pedantic(
        lambda: [sk.choose(*given, method=METHODS[method]) for given in problems],
        rounds=3,
        warmup_rounds=1,
    )
    assert all(choice.proven for choice in found)
    assert [choice.value for choice in found] == optima(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_default_method_needs_at_most_five_times_the_better_work(kind: str) -> None:
    for given in instances(kind):
        work = {}
        for name, method in METHODS.items():
            sk.choose(*given, method=method)
            work[name] = last_work() + len(given[0])  # the bound's work is not counted
        assert work["default"] <= 5 * min(work.values())

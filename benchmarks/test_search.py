"""Measures every search over growing environments, on streams of different jobs.

``make bench`` runs this with pytest-benchmark. All answers are compared with one call
of `find_windows`, some are checked by `oracle.assert_best`, and in the smaller
environments they are compared with the papers' algorithms. A round is one pass over
all jobs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from oracle import assert_best
from pytest_benchmark.fixture import BenchmarkFixture

import slotkern as sk

NODES = (100, 400, 4_000, 20_000)
INTERVALS = (600, 3600)
SINCE_1970 = 1.7e9  # seconds
POOLS = [(nodes, interval, 0.0) for nodes in NODES for interval in INTERVALS] + [
    (4_000, 3600, SINCE_1970)
]
PUBLISHED_UP_TO = 400
CHECKED = 10


@lru_cache(maxsize=2)
def pool(nodes: int, interval: int, origin: float) -> Any:
    """Return the environment of paper 000, section 3.1, with a number of nodes.

    With an origin, prices per unit of work differ by less than 1%: a bound that is not
    sharp would prune nothing among nearly equal costs.
    """
    slots = sk.generate_environment("aep", nodes=nodes, interval=interval).slots
    if origin:
        slots["start"] += origin
        slots["end"] += origin
        surcharge = np.random.default_rng(3).uniform(0, 0.01, nodes)
        slots["price"] = slots["performance"] * (1 + surcharge[slots["node"]])
    return sk.SlotPool(slots)


def jobs(count: int, interval: int, origin: float) -> list[Any]:
    """Return requests that differ in all fields."""
    rng = np.random.default_rng(7)
    found = []
    least = 1.0 if origin else 0.7  # relative to the price of a unit of work
    for _ in range(count):
        nodes = int(rng.integers(2, 9))
        volume = float(rng.uniform(150, 450))
        earliest = origin + float(rng.uniform(0, 0.6)) * interval
        found.append(
            sk.Request(
                nodes,
                volume,
                budget=nodes * volume * float(rng.uniform(least, 1.2)),
                earliest=earliest,
                deadline=earliest + float(rng.uniform(0.15, 0.8)) * interval,
                min_performance=float(rng.integers(2, 5)),
                max_price=float(rng.uniform(8, 14)),
            )
        )
    return found


@pytest.mark.parametrize("shape", ["ragged", "square"])
@pytest.mark.parametrize("criterion", sk.CRITERIA)
@pytest.mark.parametrize(("nodes", "interval", "origin"), POOLS)
def test_search(
    benchmark: BenchmarkFixture,
    nodes: int,
    interval: int,
    origin: float,
    criterion: str,
    shape: str,
) -> None:
    slots = pool(nodes, interval, origin)
    requests = jobs(200 if nodes <= 400 else 40, interval, origin)
    benchmark.group = f"{shape} {criterion}"
    benchmark.extra_info |= {"slots": len(slots), "jobs": len(requests)}
    found = benchmark.pedantic(
        lambda: [
            sk.find_window(slots, job, criterion, shape=shape) for job in requests
        ],
        rounds=7,
        warmup_rounds=1,
    )
    assert found == sk.find_windows(slots, requests, criterion, shape=shape)
    assert any(window is not None for window in found)
    for job, window in list(zip(requests, found, strict=True))[:CHECKED]:
        assert_best(slots.slots, job, criterion, shape, window)
        if nodes <= PUBLISHED_UP_TO:
            printed = sk.find_window(
                slots, job, criterion, shape=shape, method="published"
            )
            assert (printed and printed.value) == (window and window.value)


@pytest.mark.parametrize("shape", ["ragged", "square"])
def test_oracle_rejects_windows_that_are_not_best(shape: str) -> None:
    slots = pool(100, 600, 0)
    job = sk.Request(5, 310, budget=1500)
    best = {c: sk.find_window(slots, job, c, shape=shape) for c in sk.CRITERIA}
    for criterion, other in (("cost", "runtime"), ("runtime", "cost")):
        with pytest.raises(AssertionError, match="better"):
            assert_best(slots.slots, job, criterion, shape, best[other])
        with pytest.raises(AssertionError, match="better"):
            assert_best(slots.slots, job, criterion, shape, None)
    for criterion in ("finish", "start"):
        later = sk.find_window(slots, job.replace(earliest=100), "cost", shape=shape)
        with pytest.raises(AssertionError, match="better"):
            assert_best(slots.slots, job, criterion, shape, later)

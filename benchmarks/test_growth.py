"""Measures how search times grow with nodes and interval, as in AEP's Tables 1 and 2.

Only the loops of the papers' algorithms are timed (`slotkern.published.loops`). An
exponent is fitted over sizes that were measured alternately in one run; each time is
the least CPU time of several runs, summed over the same environments.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from time import thread_time_ns
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

import slotkern as sk
from slotkern.commands.streams import stream
from slotkern.published.loops import loop_of
from slotkern.studies.times import growth_exponent

NODES = (50, 100, 200, 400)
INTERVALS = (600, 1200, 2400, 3600)
ENVIRONMENTS = 5
LEAST_NS = 1_000_000
JOB = sk.Request(5, 310, budget=1500)


def least(call: Callable[[int], Any], measurements: int = 3) -> float:
    """Return the least CPU nanoseconds of one of the repeated runs."""
    begin = thread_time_ns()
    call(1)
    times = math.ceil(LEAST_NS / max(thread_time_ns() - begin, 1))
    found = math.inf
    for _ in range(measurements if times > 1 else 1):
        begin = thread_time_ns()
        call(times)
        found = min(found, (thread_time_ns() - begin) / times)
    return found


def pool_search(slots: Any) -> Callable[[int], Any]:
    """Return a function that finds the cheapest windows of `times` jobs in one pool.

    The jobs differ, because a repeated one would use bounds that the pool has cached.
    """
    pool = sk.SlotPool(slots)
    others = itertools.cycle(stream(2_000, 7))

    def run(times: int) -> list[float]:
        window = sk.find_window(pool, JOB, "cost", shape="ragged")
        for job in itertools.islice(others, times - 1):
            sk.find_window(pool, job, "cost", shape="ragged")
        return [] if window is None else [window.start]

    return run


def exponents(key: str, sizes: Sequence[int]) -> dict[str, float]:
    """Return the growth exponents of minCost, CSA and the search in a pool."""
    total: dict[str, list[float]] = {}
    for cycle in range(ENVIRONMENTS):
        for index, size in enumerate(sizes):
            slots = sk.generate_environment(
                "aep", seed=1, cycle=cycle, **{key: size}
            ).slots
            calls = {
                "minCost": loop_of(slots, JOB, "cost"),
                "ours": pool_search(slots),
            }
            assert calls["minCost"](1) == calls["ours"](1)
            if key == "nodes" and cycle < 2:
                calls["CSA"] = loop_of(slots, JOB, None)
                found = sk.find_alternatives(slots, JOB, "first", shape="ragged")
                assert calls["CSA"](1) == found.start.tolist()
            for name, call in calls.items():
                times = total.setdefault(name, [0.0] * len(sizes))
                times[index] += least(call)
    return {name: growth_exponent(sizes, times) for name, times in total.items()}


def test_growth_by_nodes(benchmark: BenchmarkFixture) -> None:
    growth = benchmark.pedantic(exponents, ("nodes", NODES), rounds=1)
    benchmark.extra_info |= growth
    assert 1.8 <= growth["minCost"] <= 2.1, growth
    assert growth["CSA"] > 2.4, growth
    assert growth["ours"] < 0.7, growth


def test_growth_by_interval(benchmark: BenchmarkFixture) -> None:
    growth = benchmark.pedantic(exponents, ("interval", INTERVALS), rounds=1)
    benchmark.extra_info |= growth
    assert 0.9 <= growth["minCost"] <= 1.1, growth
    assert growth["ours"] < 1.1, growth

"""Measures windows by value, alternatives, batches and the loop of find and book.

``make bench`` runs this with pytest-benchmark. Each benchmark compares its answer: with
a choice at every start in every performance group, with CSA and MultipleBest as
published, with the recursion over a batch, and with a search of all slots for each job.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from additive import JOB, environment
from loop import answers, jobs, prepared_pool
from pytest_benchmark.fixture import BenchmarkFixture
from rivals import rescan

import slotkern as sk
from slotkern.published import SCHEMES
from slotkern.published.batch import grid_choice
from slotkern.studies import load_study
from slotkern.studies.batches import draw_cycle

ROUNDS: dict[str, Any] = {"rounds": 5, "warmup_rounds": 1}
CRITERIA = ("q", "dependable", "coordinated")
POLICIES = {
    "CSS": sk.CSS,
    "Batch-slicer": sk.BatchSlicer(3),
    "backfilling": sk.Backfilling("easy"),
    "BSF": sk.BSF(10, k=2),
}


def best_of_steps(slots: Any, criterion: str) -> float:
    """Return the largest sum of values over all groups of performance and all starts.

    The start of every slot is a step of every group. The papers skip the start of a
    slot that is slower than the group or too short for its span; the search does not,
    because other slots may be worth most at that start. A choice must hold a slot of
    the group's own performance, so that the group's span is the runtime.
    """
    start, end, performance = (slots[f] for f in ("start", "end", "performance"))
    best = -np.inf
    for least in np.unique(performance):
        span = JOB.volume / least
        for t in np.unique(start):
            live = (start <= t) & (t + span <= end) & (performance >= least)
            slowest = performance[live] == least
            if live.sum() < JOB.nodes or not slowest.any():
                continue
            before, after = t - start[live], end[live] - t - span
            value = {
                "q": slots["q"][live],
                "dependable": np.minimum(before, after),
                "coordinated": -np.maximum(before, after),
            }[criterion]
            cost = span * slots["price"][live]
            one = [(slowest.astype(float), ">=", 1)]
            choice = sk.choose(cost, value, JOB.nodes, JOB.budget, limits=one)
            if choice is not None:
                assert choice.proven
                best = max(best, choice.value)
    return best


@pytest.mark.parametrize("real", [False, True], ids=["integer", "real"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_by_value(benchmark: BenchmarkFixture, criterion: str, real: bool) -> None:
    """Find windows by MaxQ, DEP and COORD; `real`: all nodes differ in performance."""
    slots = environment(0, nodes=40 if real else 100, real=real)
    pool = sk.SlotPool(slots)
    benchmark.group = "by value"
    window = benchmark.pedantic(lambda: sk.find_window(pool, JOB, criterion), **ROUNDS)
    assert window.proven
    assert window.cost <= JOB.budget
    best = best_of_steps(slots, criterion)
    scale = {"q": 1, "dependable": JOB.nodes, "coordinated": -JOB.nodes}[criterion]
    assert window.value * scale == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("shape", ["ragged", "square"])
def test_alternatives(benchmark: BenchmarkFixture, shape: str) -> None:
    """Find all alternatives in one sweep; compare with CSA and MultipleBest."""
    preset, request = {
        "ragged": ("aep", sk.Request(5, 310, budget=1500)),
        "square": ("square", JOB),
    }[shape]
    slots = sk.generate_environment(preset, seed=3).slots
    pool = sk.SlotPool(slots)
    benchmark.group = "alternatives"
    found = benchmark.pedantic(
        lambda: sk.find_alternatives(pool, request, shape=shape), **ROUNDS
    )
    printed = SCHEMES[shape].search(
        slots,
        nodes=request.nodes,
        volume=request.volume,
        budget=request.budget,
        min_performance=request.min_performance,
    )
    assert len(found) > 10
    assert found.start.tolist() == [start for start, _, _ in printed]
    for window, (_, rows, _) in zip(found, printed, strict=True):
        assert sorted(window.slots["row"]) == sorted(rows)


@pytest.mark.parametrize("name", POLICIES)
def test_batches(benchmark: BenchmarkFixture, name: str) -> None:
    """Schedule ten batches of twenty jobs on 24 nodes."""
    setting = load_study("vo").sweeps["table3"][0]
    drawn = [draw_cycle(setting, cycle) for cycle in range(10)]
    cases = [(sk.SlotPool(each.slots), each.batch) for each in drawn]
    benchmark.group = "batches"
    schedules = benchmark.pedantic(
        lambda: [sk.schedule_batch(*case, POLICIES[name]) for case in cases], **ROUNDS
    )
    for schedule, (pool, _) in zip(schedules, cases, strict=True):
        assert schedule.scheduled.any()
        rest = sk.SlotPool(pool.slots)
        for window in schedule:
            if window is not None:
                rest.book(window)  # raises if the time is not free


def test_choice_of_one_each(benchmark: BenchmarkFixture) -> None:
    """Choose one alternative per job, eqs. (2) to (4), with integer weights."""
    rng = np.random.default_rng(4)
    size, many = 20, 12
    first = np.arange(size + 1) * many
    value, weight = rng.integers(1, 100, (2, size * many)).astype(float)
    limit = 700.0
    benchmark.group = "batches"
    found = benchmark.pedantic(
        lambda: sk.choose_one_each(value, weight, first, limit), **ROUNDS
    )
    assert found.proven
    rows = grid_choice(value, weight, first, limit, int(limit), False)
    assert value[rows].sum() == found.value


@pytest.mark.parametrize("nodes", [100, 1_000])
def test_loop(benchmark: BenchmarkFixture, nodes: int) -> None:
    """Find and book windows of one job after another."""
    slots = sk.generate_environment("aep", nodes=nodes, interval=1200).slots
    requests = jobs(400, 5, seed=nodes)
    benchmark.group = "loop"
    found = benchmark.pedantic(
        lambda pool: pool.schedule(requests, shape="ragged"),
        setup=lambda: ((prepared_pool(slots),), {}),
        rounds=5,
    )
    few = 100 if nodes > 100 else len(requests)
    same = list(rescan(slots, requests[:few]))
    assert any(window is not None for window in same)
    assert answers(found)[:few] == answers(same)

"""Cycles of a flow of jobs: updates, early ends, arrays of the given slots."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slotkern as sk

SLOTS = sk.make_slots(
    node=[0, 1], start=0, end=40, performance=1, price=[1, 2], gb=[4, 8]
)


def nodes_of(flow: sk.Cycles) -> list[Any]:
    """Return the nodes of each job's window, by job; None without a window."""
    found: dict[int, Any] = {}
    for jobs, schedule in zip(flow.jobs, flow.schedules, strict=True):
        for job, window in zip(jobs.tolist(), schedule.windows, strict=True):
            if window is not None:
                found[job] = window.nodes
    return [found.get(job) for job in range(len(flow.cycle))]


ONLY_NODE_0 = {
    "filter": {"where": np.array([True, False])},
    "limit": {"limits": [sk.Limit(np.array([5.0, 0.0]), ">=", 5)]},
}


@pytest.mark.parametrize("terms", ONLY_NODE_0.values(), ids=ONLY_NODE_0)
@pytest.mark.parametrize("policy", [sk.CSS, sk.Backfilling()], ids=str)
def test_arrays_of_the_given_slots_apply_in_all_cycles(terms: Any, policy: Any) -> None:
    # At the second cycle node 1 is the first row of the free slots.
    jobs = [sk.Request(1, 20), sk.Request(1, 10, **terms)]
    flow = sk.run_cycles(SLOTS, jobs, [0, 5], length=10, policy=policy)
    assert flow.start.tolist() == [0, 20]
    assert nodes_of(flow) == [(0,), (0,)]


@pytest.mark.parametrize("terms", ONLY_NODE_0.values(), ids=ONLY_NODE_0)
def test_arrays_of_other_rows_are_refused(terms: Any) -> None:
    job = sk.Request(1, 10, name="narrow", **terms)
    pool = sk.SlotPool(SLOTS)
    pool.reserve([1], 0, 5)
    with pytest.raises(ValueError, match=r"narrow: .*the pool has changed"):
        sk.run_cycles(pool, [job], [0], length=10)
    more = sk.make_slots(
        node=[0, 1, 2], start=0, end=40, performance=1, price=1, gb=[4, 8, 2]
    )
    with pytest.raises(ValueError, match=r"narrow: .* 2 values for 3 slots"):
        sk.run_cycles(more, [job], [0], length=10)

    def update(cycle: int, pool: sk.SlotPool) -> None:
        pool.add_slots(more[2:])

    with pytest.raises(ValueError, match=r"narrow: .*added as row 2 has none"):
        sk.run_cycles(SLOTS, [job], [0], length=10, update=update)


def by_hand(
    slots: Any,
    jobs: list[sk.Request],
    arrivals: list[float],
    tasks: list[tuple[int, int, float, float]],
    shares: list[float],
    factors: list[float],
    policy: Any,
    shape: Any,
) -> list[float]:
    """The definition: each part of a window is booked and released by itself."""
    pool, starts = sk.SlotPool(slots), [float("nan")] * len(jobs)
    parts: list[tuple[float, float, sk.Window]] = []
    for cycle, factor in enumerate(factors):
        now = 10.0 * cycle
        pool.advance(now)
        for true_end, reserved, part in parts:
            if true_end <= now < reserved:
                pool.release(part)
        parts = [each for each in parts if each[0] > now]
        for first_cycle, node, begin, end in tasks:
            if first_cycle == cycle:
                pool.reserve([node], begin, end, partly=True)
        free = pool.slots.copy()
        free["price"] *= factor
        ready = [
            j for j in range(len(jobs)) if arrivals[j] <= now and starts[j] != starts[j]
        ]
        ready.sort(key=lambda j: arrivals[j])
        asked = [
            jobs[j].replace(deadline=min(jobs[j].deadline, now + 60)) for j in ready
        ]
        schedule = sk.schedule_batch(free, asked, policy, shape=shape)
        for j, window in zip(ready, schedule.windows, strict=True):
            if window is None:
                continue
            starts[j] = window.start
            whole = window.to_dict()
            for part in whole["slots"]:
                alone = sk.Window.from_dict(whole | {"slots": [part]})
                pool.book(alone)
                true_end = window.start + shares[j] * part["length"]
                parts.append((true_end, window.start + part["length"], alone))
    return starts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["square", "ragged"]), st.data())
def test_cycles_equal_a_manual_loop(seed: int, shape: Any, data: Any) -> None:
    policies = [sk.CSS, sk.BatchSlicer(2), sk.Backfilling(), sk.Backfilling("easy")]
    policy = data.draw(st.sampled_from(policies))
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    slots = sk.make_slots(
        node=range(width),
        start=0,
        end=120,
        performance=rng.integers(1, 4, width),
        price=rng.integers(1, 4, width),
    )
    jobs = [
        sk.Request(int(rng.integers(1, width + 1)), int(rng.integers(5, 40)))
        for _ in range(count)
    ]
    arrivals = rng.integers(0, 40, count).astype(float).tolist()
    shares = rng.choice([0.25, 0.5, 1.0], count).tolist()
    tasks = []
    for _ in range(int(rng.integers(0, 5))):
        begin = float(rng.integers(0, 60))
        end = begin + float(rng.integers(1, 30))
        node = int(rng.integers(width))
        tasks.append((int(rng.integers(6)), node, begin, end))
    factors = rng.choice([1.0, 2.0], 6).tolist()

    def update(cycle: int, pool: sk.SlotPool) -> Any:
        for first_cycle, node, begin, end in tasks:
            if first_cycle == cycle:
                pool.reserve([node], begin, end, partly=True)
        return pool.slots["price"] * factors[cycle]

    flow = sk.run_cycles(
        slots,
        jobs,
        arrivals,
        length=10,
        cycles=6,
        horizon=60,
        policy=policy,
        options=lambda _: {"shape": shape},
        update=update if tasks or max(factors) > 1 else None,
        lengths=shares,
    )
    expected = by_hand(slots, jobs, arrivals, tasks, shares, factors, policy, shape)
    np.testing.assert_array_equal(flow.start, expected)


def test_runs_never_overlap() -> None:
    """Runs do not overlap even by an ulp: epoch times, thirds of seconds."""
    slots = sk.make_slots(
        node=[0], start=1.7e9, end=1.7e9 + 86400, performance=3, price=1
    )
    for seed in range(60):
        rng = np.random.default_rng(seed)
        jobs = [sk.Request(1, float(v)) for v in rng.integers(100, 3000, 6)]
        done = sk.schedule_batch(slots, jobs, sk.Backfilling()).execute(seed=seed)
        runs = sorted(
            (float(part["start"]), float(part["end"]))
            for run in done.runs().values()
            for part in run.slots
        )
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(runs))


def test_an_update_sees_the_pool_at_the_time_of_its_cycle() -> None:
    seen = []

    def update(cycle: int, pool: sk.SlotPool) -> None:
        seen.append((cycle, pool.now, [w.name for w in pool.windows("flow")]))
        if cycle == 1:  # the first job has ended
            pool.release(pool.windows("flow")[0])

    jobs = [sk.Request(2, 30, name="long"), sk.Request(2, 10, name="short")]
    flow = sk.run_cycles(
        SLOTS, jobs, [0, 5], length=10, cycles=3, update=update, owner="flow"
    )
    assert seen == [(0, 0.0, []), (1, 10.0, ["long"]), (2, 20.0, [])]
    assert flow.start.tolist() == [0, 10]
    assert flow.pool.now == 20
    # A window that the update released may have a later true end by `lengths`.
    again = sk.run_cycles(
        SLOTS,
        jobs,
        [0, 5],
        length=10,
        cycles=3,
        update=update,
        owner="flow",
        lengths=[0.5, 1],
    )
    assert again.start.tolist() == [0, 10]
    assert SLOTS["end"].tolist() == [40, 40]


def test_slots_and_prices_come_with_an_update() -> None:
    def update(cycle: int, pool: sk.SlotPool) -> Any:
        if cycle == 1:
            pool.add_slots(
                sk.make_slots(
                    node=[2], start=10, end=40, performance=1, price=3, gb=[1]
                )
            )
        return pool.slots["price"] * 10

    jobs = [sk.Request(3, 10, where="gb > 0")]
    flow = sk.run_cycles(SLOTS, jobs, [0], length=10, cycles=2, update=update)
    assert flow.cycle.tolist() == [1]
    assert flow.schedules[1].totals()["cost"] == 10 * (1 + 2 + 3) * 10


@pytest.mark.parametrize(
    ("answer", "message"),
    [([1.0], "cycle 0 prices of shape"), ("dear", "cycle 0 'dear'; it must return")],
)
def test_results_of_update_are_checked(answer: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        sk.run_cycles(
            SLOTS, [sk.Request(1, 1)], [0], length=1, update=lambda *_: answer
        )


def test_cycles_in_dates() -> None:
    clock = sk.Clock("2026-11-27T20:00Z", unit="min")
    pool = sk.SlotPool(
        sk.make_slots(node=[0], start=0, end=600, performance=1, price=1), clock=clock
    )
    jobs = [sk.Request(1, walltime="1h"), sk.Request(1, walltime="30min")]
    flow = sk.run_cycles(
        pool,
        jobs,
        ["2026-11-27T20:00Z", "2026-11-27T20:10Z"],
        length="15min",
        horizon="4h",
        lengths=[0.25, 1],
    )
    assert flow.start.tolist() == [0, 15]
    assert flow.finish.tolist() == [15, 45]
    pool.advance(30)
    late = sk.run_cycles(pool, jobs[:1], [0], length="15min")
    assert late.times.tolist() == [30]
    with pytest.raises(ValueError, match="start must be at least 30"):
        sk.run_cycles(pool, jobs[:1], [0], length=15, start=10)

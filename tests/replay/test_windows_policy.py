"""Window and cycle policies against a plain model with lists of busy spans."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk

NODES = 5


def plain_starts(
    jobs: list[tuple[int, int, int, int]], blocked: list[tuple[int, int, int]]
) -> tuple[list[float], list[list[int]]]:
    """Return the starts and nodes of jobs on equal nodes.

    Each job gets the earliest start at which enough nodes are free, and of these the
    lowest. Jobs are (submit, run, estimate, width); a job that ends early releases the
    rest of its time.
    """
    busy: list[list[list[float]]] = [[] for _ in range(NODES)]
    for start, end, width in sorted(blocked):
        free = [
            n for n in range(NODES) if all(end <= a or b <= start for a, b in busy[n])
        ]
        for node in free[:width]:
            busy[node].append([start, end])
    starts, held, ends = [], [], []
    for submit, run, estimate, width in jobs:
        for end, span, came in ends:  # not of jobs that arrive now
            if end <= submit and came < submit:
                span[1] = min(span[1], end)
        times = sorted({submit, *(b for each in busy for _, b in each if b > submit)})
        for start in times:
            free = [
                node
                for node in range(NODES)
                if all(start + estimate <= a or b <= start for a, b in busy[node])
            ]
            if len(free) >= width:
                break
        for node in free[:width]:
            span = [start, start + estimate]
            busy[node].append(span)
            ends.append((start + run, span, submit))
        starts.append(float(start))
        held.append(free[:width])
    return starts, held


@st.composite
def flows(draw: Any) -> list[tuple[int, int, int, int]]:
    jobs = []
    for _ in range(draw(st.integers(1, 10))):
        estimate = draw(st.integers(1, 9))
        run = draw(st.sampled_from([estimate, draw(st.integers(0, estimate))]))
        jobs.append(
            (draw(st.integers(0, 15)), run, estimate, draw(st.integers(1, NODES)))
        )
    return sorted(jobs, key=lambda job: job[0])


@given(
    jobs=flows(),
    blocked=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 6), st.integers(1, 2)), max_size=2
    ),
)
@example(jobs=[(0, 1, 1, 1)] * 2, blocked=[(0, 3, 2), (0, 1, 1)])
@example(jobs=[(1, 1, 1, 1)], blocked=[(0, 1, 1), (0, 2, 1)])
def test_the_earliest_windows_of_equal_nodes(
    jobs: list[tuple[int, int, int, int]], blocked: list[tuple[int, int, int]]
) -> None:
    spans = [(start, start + length, width) for start, length, width in blocked]
    table = np.full(len(jobs), -1, sk.SWF)
    for k, name in enumerate(("submit", "run_time", "requested_time", "allocated")):
        table[name] = [job[k] for job in jobs]
    done = sk.replay(table, NODES, sk.WindowPolicy("start"), blocked=spans)
    starts, held = plain_starts(jobs, spans)
    assert done.jobs["start"].tolist() == starts
    assert [done.nodes(k).tolist() for k in range(len(jobs))] == held
    never_later = sk.replay(
        table, NODES, sk.WindowPolicy("start", compress="start"), blocked=spans
    )
    if all(run == estimate for _, run, estimate, _ in jobs):
        assert never_later.jobs["start"].tolist() == starts


def random_flow(count: int = 150) -> Any:
    rng = np.random.default_rng(7)
    jobs = np.full(count, -1, sk.SWF)
    jobs["submit"] = np.sort(rng.integers(0, 12 * count, count))
    jobs["run_time"] = rng.integers(0, 60, count)
    jobs["requested_time"] = jobs["run_time"] + rng.integers(1, 60, count)
    jobs["allocated"] = rng.integers(1, 5, count)
    return jobs


GRID = {
    "site": [0, 1],
    "processors": [4, 4],
    "performance": [1.0, 3.0],
    "price": [1.0, 6.0],
}


def busy_times(done: Any, jobs: Any, shape: str) -> list[tuple[int, float, float]]:
    """Return the node and the span of every part, on GRID."""
    busy = []
    for index, job in enumerate(done.jobs):
        nodes = done.nodes(index)
        assert len(set(nodes.tolist())) == job["processors"]
        slowest = np.where(nodes < 4, 1.0, 3.0).min()
        assert job["run"] == jobs["run_time"][job["row"]] / slowest
        for node in nodes.tolist():
            speed = 1.0 if node < 4 else 3.0
            length = job["run"] if shape == "square" else job["run"] * slowest / speed
            busy.append((node, job["start"], job["start"] + length))
    return sorted(busy)


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize(
    "criterion", ["start", "finish", "cost", "dependable", "coordinated"]
)
@pytest.mark.parametrize("compress", ["none", "start"])
def test_heterogeneous_nodes(shape: Any, criterion: str, compress: Any) -> None:
    jobs = random_flow()
    policy = sk.WindowPolicy(criterion, shape=shape, compress=compress)
    blocked = [(100, 300, 4, 1), (50, 60, 1, 0)]
    done = sk.replay(jobs, GRID, policy, blocked=blocked)
    assert len(done) == len(jobs)
    assert (done.jobs["start"] >= done.jobs["submit"]).all()
    assert (done.jobs["end"] == done.jobs["start"] + done.jobs["run"]).all()
    busy = busy_times(done, jobs, shape)
    for node, begin, end in busy:
        assert node < 4 or end == begin or begin >= 300 or end <= 100
    for (node, _, end), (other, begin, _) in pairwise(busy):
        assert node != other or end <= begin
    again = sk.replay(jobs, GRID, policy, blocked=blocked)
    assert again.jobs.tobytes() == done.jobs.tobytes()


def test_slack_bounds_how_late_a_window_may_finish() -> None:
    jobs = random_flow(60)
    soon = sk.replay(jobs, GRID, sk.WindowPolicy("finish")).jobs
    tight = sk.replay(jobs, GRID, sk.WindowPolicy("cost", slack=0.0)).jobs
    loose = sk.replay(jobs, GRID, sk.WindowPolicy("cost", slack=1e6)).jobs
    free = sk.replay(jobs, GRID, sk.WindowPolicy("cost")).jobs
    first = soon["start"][0] + soon["estimate"][0]
    assert tight["start"][0] + tight["estimate"][0] <= first
    assert loose["start"].tolist() == free["start"].tolist()
    assert loose["cost"].sum() < tight["cost"].sum()
    assert loose["wait"].mean() > tight["wait"].mean()


def test_cheap_windows_are_cheaper_and_budgets_are_respected() -> None:
    jobs = random_flow()
    cost = {
        name: sk.replay(jobs, GRID, sk.WindowPolicy(name)).metrics()["cost"]
        for name in ("cost", "start")
    }
    assert cost["cost"] < cost["start"]
    budget = np.full(len(jobs), np.inf)
    budget[3] = 1e-3
    done = sk.replay(jobs, GRID, sk.WindowPolicy("start", budget=budget))
    assert done.dropped == {"no window": 1}
    assert 3 not in done.jobs["row"]
    for wrong, kind in ((np.zeros(3), "shape"), (np.zeros(150, "U1"), "dtype")):
        with pytest.raises(ValueError, match=f"budget has .*{kind}"):
            sk.replay(jobs, GRID, sk.WindowPolicy(budget=wrong))
    with pytest.raises(ValueError, match="compress must be one of none, start"):
        sk.WindowPolicy(compress="all")  # type: ignore[arg-type]


def test_compression_makes_no_start_later() -> None:
    jobs = random_flow(300)
    kept = sk.replay(jobs, 6, sk.WindowPolicy("start"))
    moved = sk.replay(jobs, 6, sk.WindowPolicy("start", compress="start"))
    assert moved.jobs["wait"].mean() < kept.jobs["wait"].mean()


BATCHES = [sk.BatchSlicer(2), sk.Backfilling(), sk.Backfilling("easy"), sk.BSF(1)]


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("batch", BATCHES, ids=repr)
def test_cycles_agree_with_run_cycles_without_early_ends(
    batch: Any, shape: Any
) -> None:
    jobs = random_flow(60)
    jobs["requested_time"] = jobs["run_time"] = np.maximum(jobs["run_time"], 1)
    first = float(jobs["submit"][0])
    done = sk.replay(jobs, GRID, sk.CyclePolicy(50, batch, shape=shape, most=4))
    slots = sk.make_slots(
        node=range(8),
        start=first,
        end=first + jobs["run_time"].sum() + 100 * 60,
        performance=[1.0] * 4 + [3.0] * 4,
        price=[1.0] * 4 + [6.0] * 4,
    )
    slots["start"] -= first
    slots["end"] -= first
    requests = [
        sk.Request(int(n), float(v), earliest=float(np.ceil(t / 50) * 50))
        for n, v, t in zip(
            jobs["allocated"], jobs["run_time"], jobs["submit"] - first, strict=True
        )
    ]
    flow = sk.run_cycles(
        slots,
        requests,
        jobs["submit"] - first,
        length=50,
        policy=batch,
        options=lambda _: {"shape": shape, "most": 4},
    )
    assert flow.start.tolist() == (done.jobs["start"] - first).tolist()
    assert (done.jobs["wait"] >= 0).all()


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("batch", BATCHES, ids=repr)
def test_cycles_with_early_ends(batch: Any, shape: Any) -> None:
    jobs = random_flow()
    policy = sk.CyclePolicy(40, batch, horizon=200, shape=shape)
    blocked = [(100, 300, 4, 1), (50, 60, 1, 0)]
    done = sk.replay(jobs, GRID, policy, blocked=blocked)
    assert len(done) == len(jobs)  # jobs without a window are in the next batch again
    first = jobs["submit"][0]
    cycle = np.ceil((done.jobs["submit"] - first) / 40)  # first after submission
    assert (done.jobs["start"] >= first + 40 * cycle).all()
    busy = busy_times(done, jobs, shape)
    for (node, _, end), (other, begin, _) in pairwise(busy):
        assert node != other or end <= begin
    for node, begin, end in busy:
        assert node < 4 or end == begin or begin >= 300 or end <= 100
    again = sk.replay(jobs, GRID, policy, blocked=blocked)
    assert again.jobs.tobytes() == done.jobs.tobytes()
    assert sk.replay(jobs, GRID, "batch-slicer").policy == "batch-slicer"


EQUAL = {**GRID, "performance": [3.0, 3.0], "price": [0.7, 0.7]}


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("criterion", ["own", "start", "runtime", "cost"])
def test_booking_in_turn_agrees_with_choosing_on_equal_nodes(
    criterion: str, shape: Any
) -> None:
    """A named target is optimized even if all alternatives are equally good."""
    jobs = random_flow()
    jobs["requested_time"] += jobs["requested_time"] % 7 == 0
    policy = sk.CyclePolicy(
        40, sk.BatchSlicer(2, criterion), horizon=200, shape=shape, budget=40
    )
    chosen = replace(policy, options={"minimize": "processor_time"})
    blocked = [(100, 300, 4, 1), (50, 60, 1, 0)]
    done = sk.replay(jobs, EQUAL, policy, blocked=blocked)
    slow = sk.replay(jobs, EQUAL, chosen, blocked=blocked)
    assert done.dropped == slow.dropped
    assert 0 < len(done) < len(jobs)
    assert done.jobs.tobytes() == slow.jobs.tobytes()
    assert all(
        done.nodes(k).tolist() == slow.nodes(k).tolist() for k in range(len(done))
    )


def test_no_alternatives_are_searched_if_all_windows_are_equal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise AssertionError("chosen")

    monkeypatch.setattr("slotkern.replays.cycles.schedule_batch", refuse)
    jobs = random_flow()
    assert len(sk.replay(jobs, EQUAL, "batch-slicer")) == len(jobs)
    assert len(sk.replay(jobs, GRID, sk.CyclePolicy(40, sk.Backfilling()))) == len(jobs)
    for policy in (sk.CSS, sk.BatchSlicer(2, by="cost"), sk.BSF(1)):
        with pytest.raises(AssertionError, match="chosen"):
            sk.replay(jobs, EQUAL, sk.CyclePolicy(40, policy))
    with pytest.raises(AssertionError, match="chosen"):
        sk.replay(jobs, GRID, "batch-slicer")


def test_cycles_end_if_a_job_fits_in_none() -> None:
    jobs = random_flow(30)
    budget = np.full(len(jobs), np.inf)
    budget[[3, 29]] = 1e-3
    jobs["requested_time"][7] = 5000
    policy = sk.CyclePolicy(40, budget=budget, horizon=500)
    done = sk.replay(jobs, GRID, policy)
    assert done.dropped == {"no window": 3}
    assert not np.isin([3, 7, 29], done.jobs["row"]).any()
    for length, kind in ((1e-12, "short: more"), (1e15, "long: 30 of them")):
        with pytest.raises(ValueError, match=f"cycles of {length} s are too {kind}"):
            sk.replay(jobs, GRID, sk.CyclePolicy(length))
    for wrong, kind, text in (
        ({"length": 0}, ValueError, "length must be more than 0"),
        ({"horizon": -1}, ValueError, "horizon must be more than 0"),
        ({"most": 0}, ValueError, "most must be at least 1"),
        (
            {"policy": "easy"},
            TypeError,
            "policy must be a BatchSlicer, Backfilling or BSF, got str",
        ),
        ({"shape": "round"}, ValueError, "shape must be one of"),
    ):
        with pytest.raises(kind, match=text):
            sk.CyclePolicy(**wrong)


def test_cycles_are_counted_until_all_jobs_have_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job that does not fit is tried again while a job runs or time is blocked."""
    monkeypatch.setattr("slotkern.replays.cycles._MAX_CYCLES", 1000)
    jobs = random_flow(2)
    jobs["submit"], jobs["allocated"] = [0, 1], 1
    jobs["run_time"] = jobs["requested_time"] = [1, 40]
    policy = sk.CyclePolicy(10, horizon=30)
    assert len(sk.replay(jobs, 4, policy, blocked=[(0, 9000, 1)])) == 1
    with pytest.raises(
        ValueError, match="cycles of 10 s are too short: more than 1,000 of"
    ):
        sk.replay(jobs, 4, policy, blocked=[(0, 20_000, 1)])


def test_cycles_last_longer_than_all_work() -> None:
    """A job that arrives after a cycle waits for the next, even if all is idle."""
    jobs = random_flow(4)
    jobs["submit"] = [0, 1, 3601, 3601]
    jobs["allocated"] = 4
    jobs["run_time"] = jobs["requested_time"] = 10
    done = sk.replay(jobs, 4, "batch-slicer")
    assert done.jobs["start"].tolist() == [0, 3600, 7200, 7210]
    long = sk.replay(jobs, 4, sk.CyclePolicy(1e6, horizon=15))
    assert long.jobs["start"].tolist() == [0, 1e6, 2e6, 3e6]
    once = sk.replay(jobs[:0], 4, "batch-slicer")
    assert len(once) == 0


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("policy", [sk.WindowPolicy, sk.CyclePolicy])
def test_a_job_with_an_exact_estimate_costs_as_much_as_its_window(
    policy: Any, shape: Any
) -> None:
    jobs = random_flow(1)
    jobs["run_time"] = jobs["requested_time"] = 8
    jobs["allocated"] = 5
    slots = sk.make_slots(
        node=range(8),
        start=0,
        end=99,
        performance=[1.0] * 4 + [3.0] * 4,
        price=[1.0] * 4 + [6.0] * 4,
    )
    window = sk.find_window(slots, sk.Request(5, 8), "first", shape=shape)
    chosen = policy(shape=shape)
    done = sk.replay(jobs, GRID, chosen)
    assert window is not None
    assert done.nodes(0).tolist() == list(window.nodes)
    assert done.jobs["cost"].tolist() == pytest.approx([window.cost])
    jobs["run_time"] = 4
    half = sk.replay(jobs, GRID, chosen).jobs["cost"].tolist()
    assert half == pytest.approx([window.cost / 2])


def test_windows_maximize_a_column() -> None:
    jobs = random_flow(40)
    grid = GRID | {"memory": [16, 64], "name": ["a", "b"]}
    most = sk.replay(jobs, grid, sk.WindowPolicy("memory", slack=300.0))
    least = sk.replay(jobs, grid, sk.WindowPolicy(sk.minimize("memory"), slack=300.0))
    large = [(done.nodes(0) >= 4).sum() for done in (most, least)]
    assert large[0] > large[1]
    machine = sk.Machine(
        {
            "name": [f"n{k}" for k in range(8)],
            "site": [0] * 4 + [1] * 4,
            "performance": [1.0] * 4 + [3.0] * 4,
            "price": [1.0] * 4 + [6.0] * 4,
            "memory": [16] * 4 + [64] * 4,
            "rack": range(8),
        }
    )
    same = sk.replay(jobs, machine, sk.WindowPolicy("memory", slack=300.0))
    assert same.jobs["start"].tolist() == most.jobs["start"].tolist()
    assert [same.nodes(k).tolist() for k in range(40)] == [
        most.nodes(k).tolist() for k in range(40)
    ]
    with pytest.raises(ValueError, match="rack"):  # differs on a site
        sk.replay(jobs, machine, sk.WindowPolicy("rack"))


@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=8
    ),
    factors=st.lists(st.integers(0, 6), min_size=4, max_size=4),
    price=st.sampled_from([0.0, 1.0, 3.0]),
)
def test_each_job_takes_its_cheapest_hours(
    jobs: list[tuple[int, int]], factors: list[int], price: float
) -> None:
    width, jobs = 3, sorted(jobs, key=lambda job: job[0])
    flow = np.full(len(jobs), -1, sk.SWF)
    flow["allocated"] = width
    flow["submit"], flow["run_time"] = np.array(jobs).T
    changes = [10, 20, 30]
    tariff = sk.Tariff(changes, factors)
    cluster = {"processors": [width], "price": [price]}
    done = sk.replay(flow, cluster, "window-cost", prices=tariff).jobs
    busy: list[tuple[float, float]] = []
    for (submit, run), placed in zip(jobs, done, strict=True):
        ends = [submit, *changes, *(end for _, end in busy)]
        starts = [x - run for x in (*changes, *(start for start, _ in busy))]
        costs = {
            start: width * (price or 1) * tariff.integral(start, run)
            for start in sorted({*ends, *starts})
            if start >= submit and all(start + run <= a or b <= start for a, b in busy)
        }
        best = min(costs, key=costs.__getitem__)
        assert (placed["start"], placed["cost"]) == (best, costs[best])
        busy.append((best, best + run))


def test_cycles_schedule_batches_under_prices():
    jobs, night = random_flow(60), sk.Tariff([300, 900, 1500], [0.5, 2, 0.25, 1])
    policies = (
        sk.CyclePolicy(100),
        sk.CyclePolicy(100, sk.Backfilling("conservative")),
        sk.CyclePolicy(100, sk.BSF(5)),
    )
    for policy in policies:
        done = sk.replay(jobs, 8, policy, prices=night).jobs
        cost = done["processors"] * night.integral(done["start"], done["run"])
        assert done["cost"].tolist() == cost.tolist()
    slicer = sk.CyclePolicy(100, options={"minimize": "cost"})
    dear = sk.replay(jobs, {"processors": [8], "price": [1.0]}, slicer).jobs
    cheap = sk.replay(jobs, 8, slicer, prices=night).jobs
    paid = dear["processors"] * night.integral(dear["start"], dear["run"])
    assert cheap["cost"].sum() < paid.sum()


def test_prices_must_reach_the_end_of_the_last_window():
    jobs = random_flow(10)
    known = {"start": [0], "end": [300], "price": [1]}
    with pytest.raises(ValueError, match="prices: there is no price from 300 to"):
        sk.replay(jobs, 8, "window-cost", prices=known)
    with pytest.raises(ValueError, match="'lite'"):
        sk.replay(
            jobs,
            8,
            sk.WindowPolicy("cost", method="lite"),
            prices=sk.Tariff([1], [1, 2]),
        )

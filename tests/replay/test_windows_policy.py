"""Slot-window policies against a plain model of nodes with lists of busy spans."""

from __future__ import annotations

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
    """Equal nodes: the earliest start at which enough are free, the lowest of them.

    Jobs are (submit, run, estimate, width); a job that ends gives back what is left.
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
        for end, span, came in ends:  # who came now has not ended before
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


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize(
    "criterion", ["start", "finish", "cost", "dependable", "coordinated"]
)
@pytest.mark.parametrize("compress", ["none", "start"])
def test_unlike_nodes(shape: Any, criterion: str, compress: Any) -> None:
    jobs = random_flow()
    policy = sk.WindowPolicy(criterion, shape=shape, compress=compress)
    blocked = [(100, 300, 4, 1), (50, 60, 1, 0)]
    done = sk.replay(jobs, GRID, policy, blocked=blocked)
    assert len(done) == len(jobs)
    assert (done.jobs["start"] >= done.jobs["submit"]).all()
    busy = []
    for index, job in enumerate(done.jobs):
        nodes = done.nodes(index)
        assert len(set(nodes.tolist())) == job["processors"]
        slowest = np.where(nodes < 4, 1.0, 3.0).min()
        assert job["run"] == jobs["run_time"][job["row"]] / slowest
        assert job["end"] == job["start"] + job["run"]
        for node in nodes.tolist():
            speed = 1.0 if node < 4 else 3.0
            length = job["run"] if shape == "square" else job["run"] * slowest / speed
            busy.append((node, job["start"], job["start"] + length))
            if node >= 4 and length > 0:
                assert job["start"] >= 300 or job["start"] + length <= 100
    busy.sort()
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


def test_cheap_windows_are_cheaper_and_budgets_are_kept() -> None:
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

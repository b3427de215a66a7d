"""Tests of free slots from traces, against a placement second by second."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from trace_files import REAL, Job, swf_line, trace_text

import slotkern as sk
from slotkern import slots_from_trace
from slotkern.traces.clean import width_of
from slotkern.traces.free_slots import most_at_once, place_trace


def some_jobs(seed: int, count: int, processors: int) -> list[Job]:
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 3 * count, count)
    run_time = rng.integers(1, 12, count)
    width = rng.integers(1, processors + 1, count)
    return list(zip(start.tolist(), run_time.tolist(), width.tolist(), strict=True))


def second_by_second(
    jobs: list[Job], processors: int
) -> tuple[list[int], list[list[int]], NDArray[np.bool_]]:
    """Place jobs by the rule of `slots_from_trace`, simulating every second.

    Returns the start and the processors of each job, and the busy (processor, second).
    """
    order = sorted(range(len(jobs)), key=lambda i: jobs[i][0])
    last = max((s for s, _, _ in jobs), default=0) + sum(r for _, r, _ in jobs) + 1
    busy = np.zeros((processors, last), np.bool_)
    begin = [-1] * len(jobs)
    held: list[list[int]] = [[] for _ in jobs]
    for now in range(last):
        for i in order:
            start, run_time, width = jobs[i]
            idle = np.flatnonzero(~busy[:, now])
            if begin[i] < 0 and start <= now and width <= len(idle):
                begin[i] = now
                held[i] = idle[:width].tolist()
                busy[held[i], now : now + run_time] = True
    return begin, held, busy


@cache
def placed(
    seed: int, count: int, processors: int
) -> tuple[list[Job], list[int], NDArray[np.bool_]]:
    jobs = some_jobs(seed, count, processors)
    begin, _, busy = second_by_second(jobs, processors)
    return jobs, begin, busy


JOBS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(1, 5)), max_size=12
)


@given(jobs=JOBS, processors=st.integers(5, 8), at=st.integers(0, 20))
def test_placement_equals_a_model_second_by_second(
    jobs: list[Job], processors: int, at: int
) -> None:
    jobs = sorted(jobs, key=lambda job: job[0])
    begin, held, _ = second_by_second(jobs, processors)
    until = at + 7
    expected = {
        (i, p)
        for i, (_, run_time, _) in enumerate(jobs)
        for p in held[i]
        if begin[i] < until and begin[i] + run_time > at
    }
    rows = np.full(len(jobs), -1, sk.SWF)
    for name, column in zip(
        ("submit", "run_time", "allocated"), zip(*jobs, strict=True), strict=False
    ):
        rows[name] = column
    rows["wait"] = 0
    if not jobs:
        with pytest.raises(ValueError, match="none of 0 jobs can be placed"):
            place_trace(sk.Trace(rows), processors)
        return
    placed = place_trace(sk.Trace(rows), processors)
    assert placed.begin.tolist() == begin
    node, start, end = placed.busy(float(at), float(until))
    expected = sorted((p, begin[i], begin[i] + jobs[i][1]) for i, p in expected)
    assert sorted(zip(node, start, end, strict=True)) == expected


@pytest.mark.parametrize(
    ("seed", "count", "processors"),
    [(0, 40, 6), (1, 30, 1), (2, 80, 130), (3, 60, 64), (4, 60, 65)],
)
@pytest.mark.parametrize(("at", "horizon"), [(0, 60), (25, 40), (100, 3)])
def test_slots_are_the_complement_of_busy_spans(
    tmp_path: Path, seed: int, count: int, processors: int, at: int, horizon: int
) -> None:
    jobs, begin, busy = placed(seed, count, processors)
    busy = np.pad(busy, ((0, 0), (0, at + horizon)))[:, at : at + horizon]
    edges = np.diff(np.pad(~busy, ((0, 0), (1, 1))).astype(int))
    node, start = np.nonzero(edges == 1)
    _, end = np.nonzero(edges == -1)
    expected = sorted(
        zip((start + at).tolist(), node.tolist(), (end + at).tolist(), strict=True)
    )

    path = tmp_path / "small.swf"
    path.write_text(trace_text(jobs))
    found = slots_from_trace(path, at, horizon, processors=processors)
    slots = found.slots
    keys = [slots[name].tolist() for name in ("start", "node", "end")]
    assert list(zip(*keys, strict=True)) == expected
    late = sum(b > s for b, (s, _, _) in zip(begin, jobs, strict=True))
    assert found.delayed == late
    assert (found.jobs, found.skipped, found.processors) == (count, 0, processors)


def test_a_delayed_job_does_not_delay_jobs_that_fit(tmp_path: Path) -> None:
    path = tmp_path / "small.swf"
    path.write_text(trace_text([(0, 10, 2), (1, 5, 4), (2, 3, 1), (3, 20, 1)]))
    found = slots_from_trace(path, 0, 40, processors=4)
    # The second job starts when the last one ends, at 23; the others as recorded.
    assert found.delayed == 1
    assert found.slots[["start", "node", "end"]].tolist() == [
        (0, 2, 2),  # the fourth job takes processor 3 while the third is on 2
        (0, 3, 3),
        (5, 2, 23),
        (10, 0, 23),
        (10, 1, 23),
        (28, 0, 40),
        (28, 1, 40),
        (28, 2, 40),
        (28, 3, 40),
    ]


def test_processors_are_given_or_of_the_header_or_the_peak(
    tmp_path: Path,
) -> None:
    jobs = [(0, 5, 3), (5, 5, 4), (2, 3, 2)]  # 5 at once; ends come before starts
    path = tmp_path / "small.swf"
    for header, size in [
        ("", 5),
        ("; MaxProcs: -1\n", 5),
        ("; MaxProcs: unknown\n", 5),
        (";MaxNodes: 4\n;  MaxProcs:   9\n", 9),
        ("; Note: for MaxProcs: 99 see below\n", 5),
    ]:
        path.write_text(trace_text(jobs, header))
        assert slots_from_trace(path, 0, 10).processors == size
        assert slots_from_trace(path, 0, 10).delayed == 0
        assert slots_from_trace(path, 0, 10, processors=4).processors == 4
        assert slots_from_trace(path, 0, 10, processors=4).delayed == 2


def test_unknown_fields_and_skipped_jobs(tmp_path: Path) -> None:
    path = tmp_path / "small.swf"
    lines = [
        swf_line(1, submit=5, wait=1, run_time=4, allocated=2, requested=3),
        swf_line(2, submit=5, wait=1, run_time=4, allocated=-1, requested=1),
        swf_line(3, submit=5, wait=1, run_time=4, allocated=0, requested=1),
        swf_line(4, submit=5, wait=1, run_time=0, allocated=2),
        swf_line(5, submit=5, wait=1, run_time=-1, allocated=2),
        swf_line(6, submit=5, wait=1, run_time=4, allocated=-1, requested=-1),
        swf_line(7, submit=5, wait=-1, run_time=4, allocated=2),
        swf_line(8, submit=-1, wait=3, run_time=4, allocated=2),
    ]
    path.write_text("\n".join(lines))
    found = slots_from_trace(path, 6, 2, processors=6)
    assert (found.jobs, found.skipped, found.delayed) == (3, 5, 0)
    assert found.slots["node"].tolist() == [4, 5]
    assert repr(found) == (
        "TraceSlots(2 slots, jobs=3, delayed=0, skipped=5, processors=6)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": np.nan}, "at: nan is not a finite number"),
        ({"at": "soon"}, "at: 'soon' is not a finite number"),
        ({"horizon": np.inf}, "horizon: inf is not a finite number"),
        ({"horizon": 0}, "horizon 0.0 does not lead from"),
        ({"horizon": -5}, "horizon -5.0 does not lead from"),
        ({"at": 1e300, "horizon": 1}, "horizon 1.0 does not lead from 1e.300"),
        ({"processors": 0}, "small.swf: 0 processors are not between"),
        ({"processors": 2**40}, "small.swf: 1099511627776 processors are not"),
        ({"processors": 2}, "small.swf: job 1 runs on 3 processors, but the machine"),
        ({"performance": 0}, "performance must be positive"),
        ({"performance": "uniform:0:4"}, "performance must be positive"),
        ({"performance": "uniform:5:4"}, "performance: low 5.0 exceeds high 4.0"),
        ({"performance": "uniform:5"}, "performance: 'uniform:5' is not a law such"),
        ({"performance": "uniform:a:4"}, "performance: 'a' is not a finite number"),
        ({"performance": "fast"}, "performance: 'fast' is not a finite number"),
        ({"performance": True}, "performance: True is not a finite number"),
        ({"performance": "market:1"}, "performance: a market law is for prices"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"price": -1}, "price must not be negative"),
        ({"price": "market:-1"}, "price: level must be positive"),
        ({"price": "market:1:2:3:4"}, "price: 'market:1:2:3:4' is not a law such"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = tmp_path / "small.swf"
    path.write_text(trace_text([(0, 5, 3)]))
    with pytest.raises(ValueError, match=message):
        slots_from_trace(path, **({"at": 0, "horizon": 9} | options))


@pytest.mark.parametrize("processors", [2.5, True, "4"])
def test_processors_are_an_integer(tmp_path: Path, processors: Any) -> None:
    with pytest.raises(TypeError, match="processors must be an integer"):
        slots_from_trace(tmp_path, 0, 1, processors=processors)


def test_a_trace_of_no_known_size(tmp_path: Path) -> None:
    path = tmp_path / "small.swf"
    path.write_text("; nothing\n")
    with pytest.raises(ValueError, match=r"small\.swf: none of 0 jobs can be placed"):
        slots_from_trace(path, 0, 1)
    path.write_text(trace_text([(0, 5, 10**12)]))
    with pytest.raises(ValueError, match="1000000000000 processors are not between"):
        slots_from_trace(path, 0, 1)


def test_performance_and_price_are_seeded_and_one_per_processor(
    tmp_path: Path,
) -> None:
    path = tmp_path / "small.swf"
    path.write_text(trace_text(some_jobs(5, 300, 40)))

    def of_nodes(**options: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        slots = slots_from_trace(path, 0, 900, processors=200, **options).slots
        node, row = np.unique(slots["node"], return_index=True)
        assert node.tolist() == list(range(200))
        for name in ("performance", "price"):
            assert (slots[name] == slots[name][row][slots["node"]]).all()
        return slots["performance"][row], slots["price"][row]

    plain, free = of_nodes()
    assert (plain == 1).all()
    assert (free == 0).all()
    laws: Any = {"performance": "uniform:2:10", "price": "market:1.1"}
    performance, price = of_nodes(**laws)
    again = of_nodes(**laws, seed=0)
    other = of_nodes(**laws, seed=1)
    assert (performance == again[0]).all()
    assert (price == again[1]).all()
    assert (performance != other[0]).any()
    assert set(performance.tolist()) == set(range(2, 11))
    relative = price / (1.1 * performance)
    assert abs(relative.mean() - 1) < 0.05
    assert 0.15 < relative.std() < 0.25

    flat, fixed = of_nodes(performance=3, price="0.5")
    assert (flat == 3).all()
    assert (fixed == 0.5).all()
    same, market = of_nodes(performance="uniform:2:10", price="market:2:1:0")
    assert (same == performance).all()
    assert (market == 2 * performance).all()
    real, between = of_nodes(performance="uniform:2.0:10.0", price="uniform:0:3")
    assert (real % 1 != 0).any()
    assert real.min() >= 2
    assert real.max() < 10
    assert set(between.tolist()) == {0, 1, 2, 3}


@pytest.mark.skipif(not REAL, reason="the real traces are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_traces(path: Path) -> None:
    jobs = sk.read_trace(path).jobs
    at = float(np.median(jobs["submit"]))
    found = slots_from_trace(path, at, 86400)
    assert found.jobs + found.skipped == len(jobs)
    assert 0 <= found.delayed < found.jobs
    assert len(found.slots) > 0
    assert found.slots["start"].min() >= at
    assert found.slots["end"].max() <= at + 86400
    window = sk.find_window(found.slots, sk.Request(4, 1800), "finish")
    assert window is not None
    if found.delayed:  # the log overcommits: a machine of its peak size delays no job
        width = width_of(jobs)
        runs = (jobs["run_time"] > 0) & (width > 0)
        start = (jobs["submit"] + jobs["wait"])[runs]
        peak = most_at_once(start, start + jobs["run_time"][runs], width[runs])
        assert peak > found.processors
        assert slots_from_trace(path, at, 60, processors=peak).delayed == 0

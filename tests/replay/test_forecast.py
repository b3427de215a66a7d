"""Forecasts against plain replays and simple cases, and their errors."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern.replays.forecast import (
    Arrivals,
    History,
    forecast_policies,
    sample_starts,
)
from slotkern.replays.queue_state import QueueState, state_of_pool

seeds = st.integers(0, 2**32).map(random.Random)
fewer = settings(max_examples=settings.default.max_examples // 2)


def random_case(rnd):
    """Return slots, the request, and a queue whose running jobs are busy there.

    Each running job, and each maintenance, holds the nodes of its own.
    """
    rows, queue = [], []
    for _ in range(rnd.randint(1, 4)):
        width, until = rnd.randint(1, 2), rnd.choice((0, 0, 3, 5, 8))
        rows += [until] * width
        if until and rnd.random() < 0.7:
            start = -rnd.randint(1, 4)
            queue.append((width, until - start, start))
    nodes = len(rows)
    for _ in range(rnd.randint(0, 4)):
        queue.append((rnd.randint(1, nodes), rnd.randint(1, 9), None))
    slots = sk.make_slots(
        node=np.arange(nodes)[np.argsort(rows, kind="stable")],
        start=np.sort(rows),
        end=20,
        performance=1,
        price=1,
    )
    table = {
        name: [job[k] for job in queue]
        for k, name in enumerate(("nodes", "walltime", "start"))
    }
    pool = sk.SlotPool(slots)
    pool.advance(0)
    return pool, sk.Request(rnd.randint(1, nodes), rnd.randint(1, 9)), table


def trace_of(table, request, share):
    """Return the running, waiting and forecast jobs as a trace that begins at 10."""
    width = [*table["nodes"], request.nodes]
    length = np.array([*table["walltime"], request.volume], float)
    jobs = np.full(len(width), -1, sk.SWF)
    jobs["submit"] = [10 + (start or 0) for start in (*table["start"], None)]
    jobs["requested_time"], jobs["run_time"] = length, length * share
    jobs["allocated"] = width
    return sk.Trace(jobs)


@fewer
@given(seeds)
def test_the_starts_are_those_of_replays(rnd):
    pool, request, table = random_case(rnd)
    nodes, name = len(pool.nodes), rnd.choice(forecast_policies())
    spans = [(10, 10 + slot["start"], 1) for slot in pool.slots if slot["start"] > 0]
    # A running job is one span less for each of its nodes.
    for width, length, start in zip(*table.values(), strict=True):
        for _ in range(width if start is not None else 0):
            spans.remove((10, 10 + length + start, 1))
    found = pool.forecast(request, table, policy=name, history=[1], runs=1)
    trace = trace_of(table, request, 1.0)
    done = sk.replay(trace, nodes, name, blocked=spans)
    assert found.starts.tolist() == [done.jobs["start"][done.jobs["row"].argmax()] - 10]
    done = sk.replay(trace, nodes, "conservative", blocked=spans)
    assert found.promise == done.jobs["start"][done.jobs["row"].argmax()] - 10
    assert found.running + found.waiting == len(table["nodes"])


@fewer
@given(seeds)
def test_forecasts_do_not_depend_on_workers_and_change_with_the_seed(rnd):
    pool, request, table = random_case(rnd)
    one = pool.forecast(request, table, runs=20, seed=3)
    assert (one.starts == pool.forecast(request, table, runs=20, seed=3).starts).all()
    many = pool.forecast(request, table, runs=20, seed=3, workers=3)
    assert (one.starts == many.starts).all()
    more = pool.forecast(request, table, runs=30, seed=3)
    assert (one.starts == more.starts[:20]).all()
    assert one.now <= one.starts.min()


def one_job():
    """Return slots, a request, and the running job on the other two nodes."""
    slots = sk.make_slots(
        node=[2, 0, 1], start=[0, 10, 10], end=[1, 99, 99], performance=1, price=1
    )
    return slots, sk.Request(2, 5), {"nodes": [2], "walltime": [16], "start": [-6]}


def test_shares_of_running_jobs_are_longer_than_they_have_run():
    slots, request, table = one_job()
    found = sk.forecast(slots, request, table, history=[0.1, 0.25, 0.5, 0.75], runs=400)
    # 6 of 16 have passed: only shares of 0.5 and 0.75 remain, which end at 2 and at 6
    assert set(found.starts.tolist()) == {2.0, 6.0}
    assert 150 < (found.starts == 2).sum() < 250
    assert found.quantile(0) == 2
    assert found.quantile(1) == 6
    assert found.promise == 10
    only = sk.forecast(slots, request, table, history=[0.1], runs=5)
    assert only.starts.tolist() == [10] * 5  # longer than all: as requested
    even = sk.forecast(slots, request, table, runs=400)
    assert 0 < even.starts.min() < 1
    assert 9 < even.starts.max() <= 10
    assert even.band[0] == pytest.approx(1, abs=0.5)


def test_later_jobs_change_a_start_only_if_they_arrive_before_it():
    state = QueueState(
        2,
        np.empty((0, 3)),
        np.array([2, 1, 2], np.int32),
        np.zeros(3),
        np.array([4.0, 3.0, 5.0]),
        np.arange(3),
        0,
    )
    # Each long job of one processor that arrives while one is free overtakes.
    jobs = np.full(40, -1, sk.SWF)
    jobs["submit"], jobs["run_time"] = np.arange(40) * 2, 30
    jobs["requested_time"], jobs["allocated"] = 30, 1
    later = Arrivals.of_trace(sk.Trace(jobs), 2, 1.0)
    policy, ones = sk.POLICIES["first-fit"], History(np.ones(1), None)
    promise, starts = sample_starts(state, policy, ones, 30, 1, later=later)
    assert promise == 7
    for k, start in enumerate(starts):
        offset = np.random.default_rng([1, k])
        offset.random(3)
        offset = offset.uniform(0, later.period)
        whole = later.between(offset, later.period)
        assert start == state.start(policy, state.remaining, whole)
    assert starts.max() > promise
    easy = sample_starts(state, sk.POLICIES["easy"], ones, 30, 1, later=later)
    assert easy[1].tolist() == [7] * 30


def test_clocks_files_and_displays(tmp_path):
    machine = sk.Machine.homogeneous(3, prefix="n")
    busy = {"node": ["n[0-1]"], "start": ["2026-12-01"], "end": ["2026-12-01 06:00"]}
    free = sk.free_slots(
        machine, busy, start="2026-12-01", end="2026-12-03", zone="UTC", unit="h"
    )
    queue = {
        "nodes": [2, 3],
        "walltime": ["8h", "2h"],
        "start": ["2026-11-30 22:00", None],
    }
    jobs = np.full(50, -1, sk.SWF)
    jobs["submit"], jobs["run_time"] = np.arange(50) * 600, np.arange(50) * 60
    jobs["requested_time"], jobs["allocated"] = 3600, 1
    trace = sk.Trace(jobs)
    request = sk.Request(3, walltime="1h", name="mine")
    found = sk.forecast(free, request, queue, history=trace, arrivals=trace, runs=50)
    assert found.promise == 8
    assert 1 <= found.band[0] <= found.band[1]
    assert found.to_dict()["promise_time"] == "2026-12-01T08:00:00+00:00"
    assert set(found.to_dict()["starts"]) == {"10%", "50%", "90%"}
    assert "promised 2026-12-01 08:00" in repr(found)
    assert "promise" in found._repr_html_()
    assert len(found.to_pandas()) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "multifactor"}, "policy 'multifactor' chooses windows, or"),
        ({"policy": "window-cost"}, "policy 'window-cost' chooses windows, or"),
        ({"policy": "eas"}, "did you mean 'easy'"),
        ({"history": [0.5, 2]}, r"history\[1\] is 2"),
        ({"history": []}, "history has no job"),
        ({"history": "a.swf"}, "history must be a Trace or an array of shares"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"request": sk.Request(4, 5)}, "asks for 4 nodes; 3 nodes have free time"),
        ({"now": "2026-12-01"}, "now is the date '2026-12-01', but this pool"),
        ({"request": sk.Request(1, 5, deadline=9)}, "has deadline, which a forecast"),
        ({"request": sk.Request(1, 5, within="rack")}, "has within, which a forecast"),
        ({"nodes": [4]}, "row 0, column 'nodes': 4 is more than the 3 nodes"),
        ({"start": [1]}, "row 0, column 'start': 1.0 is not the start of a job"),
        ({"start": [-16]}, "row 0, column 'start': -16.0 is not the start of"),
        ({"start": ["2026-12-01"]}, "row 0, column 'start' is the date '2026-12-01'"),
        ({"walltime": ["2h"]}, "row 0: .*walltime is '2h', but these slots have no"),
        ({"nodes": [1] * 3, "walltime": [1e308] * 3, "start": None}, "than 2[*][*]53"),
        ({"walltime": [17]}, "hold 2 nodes 10 from now, but only 1 are busy"),
        ({"where": ["node == 1"]}, "row 0, column 'where': a forecast keeps name"),
    ],
)
def test_bad_arguments_are_named(change, message):
    slots, request, table = one_job()
    change = dict(change)
    request = change.pop("request", request)
    table |= {name: change.pop(name) for name in {*table, "where"} & set(change)}
    with pytest.raises(ValueError, match=message):
        sk.forecast(slots, request, table, **change)


def test_nodes_of_several_performances_are_refused():
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=[1, 2], price=1)
    with pytest.raises(ValueError, match="performances from 1 to 2"):
        sk.forecast(slots, sk.Request(1, 5), {"nodes": [1], "walltime": [2]})
    one = sk.Request(1, 5, min_performance=2)
    found = sk.forecast(slots, one, {"nodes": [1], "walltime": [4]}, history=[1])
    assert found.promise == 2  # the job in front needs half of its time


def test_the_forecast_is_made_now():
    slots, request, table = one_job()
    later = sk.forecast(slots, request, table, now=4, history=[1])
    assert later.now == 4
    assert later.promise == 10
    pool = sk.SlotPool(slots)
    pool.advance(4)
    assert pool.forecast(request, table, history=[1]).now == 4


def test_jobs_draw_the_shares_of_past_jobs_with_similar_requests():
    requested = np.repeat([10.0, 1000.0], 400)
    past = History.of_jobs(np.where(requested == 10, 1, 900.0), requested)
    assert np.unique(past.shares_for(np.array([10.0, 1000.0, 3.0]))[0]) == 0.1
    assert np.unique(past.shares_for(np.array([1e9]))) == 0.9
    few = History.of_jobs(np.array([2.0, -1.0, 3.0]), np.array([4.0, 4.0, 3.0]))
    assert few.shares_for(np.array([5.0])).tolist() == [[0.5, 1]]


def test_jobs_of_one_user_have_the_same_rank():
    slots = sk.make_slots(node=[0], start=0, end=99, performance=1, price=1)
    table = {"nodes": [1] * 9, "walltime": [4] * 9}
    request, few = sk.Request(1, 5), {"history": [0, 1], "runs": 50, "policy": "fcfs"}
    apart = sk.forecast(slots, request, table, **few)
    alike = sk.forecast(slots, request, table | {"user": ["bob"] * 9}, **few)
    assert set(alike.starts.tolist()) == {0, 36}
    assert len(np.unique(apart.starts)) > 4


def test_ends_of_running_jobs_are_starts_of_slots_but_for_rounding():
    machine = sk.Machine.homogeneous(30, prefix="n")
    rnd = random.Random(5)
    begin = np.datetime64("2026-12-01T00:00")
    now = begin + np.timedelta64(60, "m")
    start = [begin + np.timedelta64(rnd.randint(0, 60), "m") for _ in range(29)]
    end = [now + np.timedelta64(rnd.randint(1, 600), "m") for _ in range(29)]
    after = [each + np.timedelta64(60, "m") for each in end[:10]]
    busy = {  # maintenance follows on the nodes of ten jobs
        "node": [f"n{k:02}" for k in (*range(29), *range(10))],
        "start": [*start, *end[:10]],
        "end": [*end, *after],
    }
    free = sk.free_slots(
        machine, busy, start=str(now), end="2026-12-05", zone="UTC", unit="h"
    )
    queue = {
        "nodes": [1] * 29,
        "walltime": [(e - s).astype("m8[s]") for s, e in zip(start, end, strict=True)],
        "start": [f"{each}Z" for each in start],
    }
    found = sk.forecast(free, sk.Request(30, walltime="1h"), queue, history=[1], runs=1)
    last = (max(*end, *after) - now) / np.timedelta64(60, "m")
    assert found.promise == found.starts[0] == pytest.approx(last)


def test_busy_time_after_the_last_time_of_the_slots_is_unknown():
    slots = sk.make_slots(node=[0, 1], start=[0, 5], end=[9, 7], performance=1, price=1)
    state, now, _ = state_of_pool(slots, sk.Request(1, 1), {"nodes": [], "volume": []})
    assert now == 0
    assert state.blocked.tolist() == [[0, 5, 1], [7, 9, 1]]
    assert state.processors == 2

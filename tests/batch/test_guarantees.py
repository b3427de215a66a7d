"""Guarantees of schedules and executions, tested on random batches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from backfilling import conservative, easy
from batches import (
    POLICIES,
    batches,
    check_schedule,
    jobs_of,
    shapes,
    small_slots,
)
from hypothesis import given
from hypothesis import strategies as st
from oracle import add, exact, met
from tariff_cases import Given, tariffs

import slotkern as sk
from slotkern.published.batch import time_limit


@given(small_slots(), batches, shapes, st.sampled_from(POLICIES))
def test_every_schedule_meets_its_guarantees(slots, requests, shape, policy):
    before = slots.copy()
    pool = sk.SlotPool(slots)
    schedule = sk.schedule_batch(pool, requests, policy, shape=shape)
    check_schedule(slots, requests, schedule)
    assert (pool.slots == before).all()
    limit = schedule.slices
    assert (limit["expense"] <= limit["limit"]).all()
    assert schedule.bound <= schedule.value * (1 + 1e-9)
    pool.book(schedule)
    used = (
        np.subtract(slots["end"], slots["start"]).sum()
        - np.subtract(pool.slots["end"], pool.slots["start"]).sum()
    )
    assert used == schedule.totals()["processor_time"]


def by_hand(slots, requests, criteria, sizes):
    """Batch-slicer by one search and one cut at a time, and exhaustive choice."""
    pool, first, values = sk.SlotPool(slots), 0, []
    for size in sizes:
        jobs = range(first, first + size)
        first += size
        cut, found = sk.SlotPool(pool.slots), {j: [] for j in jobs}
        alive = list(jobs)
        while alive:
            for j in list(alive):
                window = sk.find_window(cut, requests[j], criteria[j], shape="ragged")
                if window is None:
                    alive.remove(j)
                    continue
                found[j].append(window)
                cut.book(window)
        own = [windows for windows in found.values() if windows]
        expense = np.array([w.cost for windows in own for w in windows])
        starts = np.cumsum([0, *map(len, own)])
        limit = time_limit(expense, starts)
        within = [
            choice
            for choice in itertools.product(*own)
            if met(exact(w.cost for w in choice), limit)
        ]
        least = min(add(w.processor_time for w in choice) for choice in within)
        values.append((limit, least, sorted(map(len, own))))
        rows = sk.choose_one_each(
            [w.processor_time for windows in own for w in windows],
            expense,
            starts,
            limit,
        ).rows
        for window in earliest_of_equals(own, rows - starts[:-1], limit):
            pool.book(window)
    return values


def earliest_of_equals(own, chosen, limit):
    """Each job in order takes its earliest alternative of one value, if paid for."""
    chosen = chosen.tolist()
    for c, windows in enumerate(own):
        for row, window in enumerate(windows):
            now = windows[chosen[c]]
            trial = [*chosen[:c], row, *chosen[c + 1 :]]
            costs = [each[k].cost for each, k in zip(own, trial, strict=True)]
            if (
                window.processor_time == now.processor_time
                and (window.start, row) < (now.start, chosen[c])
                and met(exact(costs), limit)
            ):
                chosen = trial
    return [windows[k] for windows, k in zip(own, chosen, strict=True)]


@given(small_slots(3), st.lists(jobs_of, min_size=2, max_size=3), st.data())
def test_a_slice_is_cut_and_chosen_as_in_the_paper(slots, requests, data):
    criteria = [data.draw(st.sampled_from(list(sk.CRITERIA))) for _ in requests]
    k = data.draw(st.integers(1, 2))
    policy = sk.BatchSlicer(k)
    sizes = np.diff(policy.slices(len(requests))).tolist()
    schedule = sk.schedule_batch(slots, requests, policy, criteria=criteria, gap=0)
    if math.prod(schedule.count[schedule.count > 0].tolist()) > 5000:
        return
    expected = by_hand(slots, requests, criteria, sizes)
    expected = [each for each in expected if each[2]]
    assert [
        s["limit"] for s in schedule.slices if s["limit"] > 0 or s["value"] > 0
    ] == [limit for limit, _, _ in expected]
    assert schedule.slices["value"].sum() == sum(least for _, least, _ in expected)


shares_of = st.integers(1, 8).map(lambda eighths: eighths / 8)


def places(schedule):
    """Return the place of each job: start, and (node, length) of each part."""
    return {
        j: (
            window.start,
            [(p["node"], p["end"] - p["start"]) for p in window.slots],
        )
        for j, window in enumerate(schedule)
        if window is not None
    }


def ran(execution):
    return [
        None
        if window is None
        else (window.start, [(p["node"], p["end"] - p["start"]) for p in window.slots])
        for window in execution.windows
    ]


@given(small_slots(), batches, shapes, st.data())
def test_conservative_runs_are_those_of_the_definition(slots, requests, shape, data):
    shares = [data.draw(shares_of) for _ in requests]
    schedule = sk.schedule_batch(slots, requests, sk.Backfilling(), shape=shape)
    run = schedule.execute(shares)
    movable = [True] * len(requests)
    plan = places(schedule)
    assert ran(run) == conservative(slots, requests, shape, shares, plan, movable)
    late = run.start > schedule.windows.start
    assert not late.any()  # no job starts later than it was promised
    assert (
        run.promised[schedule.scheduled] == schedule.windows.start[schedule.scheduled]
    ).all()


@given(small_slots(), batches, shapes, st.data())
def test_executed_parts_never_overlap(slots, requests, shape, data):
    shares = [data.draw(shares_of) for _ in requests]
    schedule = sk.schedule_batch(slots, requests, sk.Backfilling(), shape=shape)
    execution = schedule.execute(shares)
    runs = execution.runs()
    assert [*runs] == [
        name
        for name, ran in zip(schedule.batch.names, execution.started, strict=True)
        if ran
    ]
    finish = execution.finish[execution.started]
    assert [run.finish for run in runs.values()] == finish.tolist()
    parts = [part for run in runs.values() for part in run.slots.tolist()]
    spans = sorted((node, start, end) for _, node, start, end, _ in parts)
    for (node, _, end), (other, start, _) in itertools.pairwise(spans):
        assert node != other or end <= start


@given(small_slots(), batches, shapes, st.data())
def test_easy_runs_are_those_of_the_definition(slots, requests, shape, data):
    shares = [data.draw(shares_of) for _ in requests]
    schedule = sk.schedule_batch(slots, requests, sk.Backfilling("easy"), shape=shape)
    movable = [True] * len(requests)
    ones = [1.0] * len(requests)
    planned, _ = easy(slots, requests, shape, ones, {}, movable)
    assert [places(schedule).get(j) for j in range(len(requests))] == planned
    run = schedule.execute(shares)
    expected, heads = easy(slots, requests, shape, shares, {}, movable)
    assert ran(run) == expected
    for j, promised in heads.items():  # the head of the queue is never delayed
        assert run.promised[j] == promised
        assert run.start[j] <= promised


@st.composite
def slots_with_tariffs(draw):
    """Draw small slots whose nodes have one of two tariffs, or none."""
    slots = draw(small_slots())
    names = ["", "a", "b"]
    of_node = {node: draw(st.sampled_from(names)) for node in set(slots["node"])}
    fields = {name: slots[name] for name in sk.SLOT.names}
    made = sk.make_slots(**fields, tariff=[of_node[node] for node in slots["node"]])
    return Given(made, sk.Tariffs({name: draw(tariffs()) for name in names[1:]}), None)


def assert_same_places(found, expected):
    """Compare places; the start at which a budget is met is a root, rounded by each."""
    for one, other in zip(found, expected, strict=True):
        if one is None or other is None:
            assert one is other
            continue
        assert [node for node, _ in one[1]] == [node for node, _ in other[1]]
        times, wanted = ([p[0], *(length for _, length in p[1])] for p in (one, other))
        assert times == pytest.approx(wanted, rel=1e-12)


@given(slots_with_tariffs(), batches, shapes, st.booleans(), st.data())
def test_runs_under_tariffs_are_those_of_the_definition(
    slots, requests, shape, is_easy, data
):
    shares = [data.draw(shares_of) for _ in requests]
    policy = sk.Backfilling("easy" if is_easy else "conservative")
    schedule = sk.schedule_batch(slots, requests, policy, shape=shape)
    movable = [True] * len(requests)
    run = schedule.execute(shares)
    if is_easy:
        ones = [1.0] * len(requests)
        planned, _ = easy(slots, requests, shape, ones, {}, movable)
        made = [places(schedule).get(j) for j in range(len(requests))]
        assert_same_places(made, planned)
        expected, heads = easy(slots, requests, shape, shares, {}, movable)
        for j, promised in heads.items():
            assert run.promised[j] == pytest.approx(promised, rel=1e-12)
            assert run.start[j] <= run.promised[j]
    else:
        plan = places(schedule)
        expected = conservative(slots, requests, shape, shares, plan, movable)
        assert not (run.start > schedule.windows.start).any()
    assert_same_places(ran(run), expected)
    for request, window in zip(requests, run.windows, strict=True):
        assert window is None or met(window.cost, request.budget)
        for part in window.slots if window is not None else ():
            slot, length = slots.slots[part["row"]], part["end"] - part["start"]
            given = slot["tariff"], slot["price"], part["start"], length
            assert part["cost"] == pytest.approx(slots.tariffs.cost(*given), rel=1e-12)


@given(small_slots(), batches, st.sampled_from([sk.CSS, sk.BatchSlicer(2)]), st.data())
def test_sliced_jobs_stay_or_start_earlier(slots, requests, policy, data):
    shares = [data.draw(shares_of) for _ in requests]
    schedule = sk.schedule_batch(slots, requests, policy)
    still = schedule.execute(shares)
    at = places(schedule)
    assert ran(still) == [at.get(j) for j in range(len(requests))]
    assert still.moves == 0
    moved = schedule.execute(shares, reschedule="backfill")
    movable = [True] * len(requests)
    assert ran(moved) == conservative(
        slots, requests, "ragged", shares, places(schedule), movable
    )
    both = schedule.scheduled
    assert (moved.start[both] <= schedule.windows.start[both]).all()


@given(small_slots(), batches, st.integers(0, 3), st.data())
def test_batch_slice_filling_keeps_the_sliced_jobs(slots, requests, n_css, data):
    shares = [data.draw(shares_of) for _ in requests]
    schedule = sk.schedule_batch(slots, requests, sk.BSF(n_css, k=2))
    sliced = (
        sk.schedule_batch(
            slots, requests[:n_css], sk.BatchSlicer(2), criteria=["finish"] * n_css
        )
        if n_css and n_css <= len(requests)
        else None
    )
    if sliced is not None:
        assert list(schedule)[:n_css] == list(sliced)
    run = schedule.execute(shares)
    movable = [j >= n_css for j in range(len(requests))]
    assert ran(run) == conservative(
        slots, requests, "ragged", shares, places(schedule), movable
    )


def every_schedule(slots, requests, best, spent, used):
    """Totals (time, cost) of all ways to give each job a window, one after another."""
    if not requests:
        best.append((used, spent))
        return
    request, rest = requests[0], requests[1:]
    for t in sorted({max(s, request.earliest) for s in slots["start"].tolist()}):
        live = [
            i
            for i, slot in enumerate(slots)
            if slot["start"] <= t
            and t + request.volume / slot["performance"]
            <= min(slot["end"], request.deadline)
            and slot["performance"] >= request.min_performance
        ]
        for rows in itertools.combinations(live, request.nodes):
            if len({slots["node"][i] for i in rows}) < request.nodes:
                continue
            times = [request.volume / slots["performance"][i] for i in rows]
            costs = [d * slots["price"][i] for d, i in zip(times, rows, strict=True)]
            if not met(exact(costs), request.budget):
                continue
            left = [slot for i, slot in enumerate(slots.tolist()) if i not in rows]
            for d, i in zip(times, rows, strict=True):
                node, start, end, *others = slots[i].tolist()
                left += [(node, start, t, *others)] * bool(start < t)
                left += [(node, t + d, end, *others)] * bool(t + d < end)
            free = np.array(sorted(left, key=lambda s: (s[1], s[0])), slots.dtype)
            every_schedule(free, rest, best, spent + add(costs), used + add(times))


@given(small_slots(3), st.lists(jobs_of, min_size=1, max_size=2), st.booleans())
def test_nothing_beats_the_bound(slots, requests, cheap):
    target, under = ("cost", "time") if cheap else ("time", "cost")
    schedule = sk.schedule_batch(slots, requests, minimize=target, under=under)
    if not schedule.scheduled.all():
        return
    totals = []
    for order in itertools.permutations(requests):
        every_schedule(slots, list(order), totals, 0.0, 0.0)
    column = 1 if cheap else 0
    within = [x[column] for x in totals if x[1 - column] <= schedule.limit]
    assert schedule.bound <= min(within) * (1 + 1e-9) + 1e-9
    most = sk.schedule_batch(slots, requests, maximize=target, under=under)
    if most.scheduled.all():
        within = [x[column] for x in totals if x[1 - column] <= most.limit]
        assert most.bound >= max(within) * (1 - 1e-9) - 1e-9

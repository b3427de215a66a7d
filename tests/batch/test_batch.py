"""Schedules of batches: what they promise, how they are cut and chosen, bounds."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from backfilling import conservative, easy
from hypothesis import given
from hypothesis import strategies as st
from oracle import add

import slotkern as sk
from slotkern.published.batch import time_limit

POLICIES = [
    sk.CSS,
    sk.BatchSlicer(2),
    sk.BatchSlicer(99),
    sk.BatchSlicer(3, "cost", by="performance"),
    sk.Backfilling(),
    sk.Backfilling("easy"),
    sk.BSF(2, k=2, by="cost"),
    sk.BSF(1, kind="easy"),
]


@st.composite
def small_slots(draw, most=5):
    """Slots of a few nodes; times and lengths that add up exactly."""
    rows = []
    for node in range(draw(st.integers(1, most))):
        time, performance = 0, draw(st.sampled_from([1, 2, 4]))
        price = draw(st.integers(0, 4))
        for gap, length in draw(
            st.lists(
                st.tuples(st.integers(0, 6), st.integers(1, 24)), min_size=1, max_size=3
            )
        ):
            start = time + gap
            time = start + length
            rows.append((node, start, time, performance, price))
    fields = ("node", "start", "end", "performance", "price")
    return sk.make_slots(
        **dict(zip(fields, map(list, zip(*rows, strict=True)), strict=True))
    )


jobs_of = st.builds(
    sk.Request,
    st.integers(1, 3),
    st.integers(1, 24).map(float),
    budget=st.one_of(st.just(math.inf), st.integers(0, 90).map(float)),
    min_performance=st.sampled_from([0, 0, 2]),
    earliest=st.sampled_from([0, 0, 0, 5]),
    deadline=st.sampled_from([math.inf, math.inf, 30]),
)
batches = st.lists(jobs_of, min_size=1, max_size=5)
shapes = st.sampled_from(["ragged", "ragged", "square"])


def check_disjoint(slots, parts):
    """No part overlaps another or lies outside the slots."""
    for node in np.unique(parts["node"]):
        mine = np.sort(parts[parts["node"] == node], order="start")
        assert (mine["end"][:-1] <= mine["start"][1:]).all()
        own = slots[slots["node"] == node]
        for part in mine:
            inside = (own["start"] <= part["start"]) & (part["end"] <= own["end"])
            assert inside.any()


def check_schedule(slots, requests, schedule):
    table = schedule.windows.table
    check_disjoint(slots, schedule.windows.parts)
    for j, (request, window) in enumerate(zip(requests, schedule, strict=True)):
        assert (window is None) == (schedule.reasons[j] != "scheduled")
        if window is None:
            continue
        assert schedule.owner[schedule.chosen[j]] == j
        assert len(window) == request.nodes
        assert window.cost <= request.budget
        assert request.earliest <= window.start
        assert window.finish <= request.deadline
    # exact numbers: what the jobs pay is what the nodes earn, to the last digit
    nodes, totals = schedule.nodes(), schedule.totals()
    assert nodes["profit"].sum() == totals["cost"] == np.nansum(table["cost"])
    assert nodes["used"].sum() == totals["processor_time"]
    assert (nodes["used"] <= nodes["free"]).all()
    assert schedule.value == totals["processor_time"]


@given(small_slots(), batches, shapes, st.sampled_from(POLICIES))
def test_every_schedule_keeps_its_promises(slots, requests, shape, policy):
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
            if add(w.cost for w in choice) <= limit
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
                and add(costs) <= limit
            ):
                chosen = trial
    return [windows[k] for windows, k in zip(own, chosen, strict=True)]


@given(small_slots(3), st.lists(jobs_of, min_size=2, max_size=3), st.data())
def test_a_slice_is_cut_and_chosen_as_the_paper_says(slots, requests, data):
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
    """Where each job is: start and (node, length) of each part."""
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
def test_what_really_ran_never_overlaps(slots, requests, shape, data):
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


@given(small_slots(), batches, st.sampled_from([sk.CSS, sk.BatchSlicer(2)]), st.data())
def test_sliced_jobs_stay_or_move_up(slots, requests, policy, data):
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
            if add(costs) > request.budget:
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


SLOTS = sk.make_slots(
    node=[0, 1, 2],
    start=0,
    end=40,
    performance=[1, 2, 4],
    price=[1, 3, 7],
    watt=[1, 5, 2],
)
JOBS = [sk.Request(1, 8), sk.Request(2, 8), sk.Request(1, 12, budget=21)]


def test_the_four_problems():
    for how in (
        {"minimize": "time", "under": "cost"},
        {"minimize": "cost", "under": "time"},
    ):
        schedule = sk.schedule_batch(SLOTS, JOBS, **how)
        other = sk.schedule_batch(
            SLOTS, JOBS, maximize=how["minimize"], under=how["under"]
        )
        assert schedule.value <= other.value
        assert schedule.bound <= schedule.value
        assert other.bound >= other.value
    most = sk.schedule_batch(SLOTS, JOBS, maximize="time", under="time", gap=1e-9)
    assert most.value <= most.limit


def test_a_column_may_be_limited_or_optimized():
    schedule = sk.schedule_batch(SLOTS, JOBS, minimize="watt", under="cost")
    watts = {0: 1, 1: 5, 2: 2}
    assert schedule.value == add(
        watts[node] for window in schedule if window for node in window.nodes
    )
    assert schedule.bound <= schedule.value


def test_a_limit_is_never_exceeded():
    free = sk.schedule_batch(SLOTS, JOBS, minimize="cost", under="cost")
    for policy in (sk.CSS, sk.BatchSlicer(3)):
        for limit in (free.totals()["cost"], 30, 20, 5, 0):
            schedule = sk.schedule_batch(SLOTS, JOBS, policy, limit=limit)
            assert schedule.totals()["cost"] <= limit
            assert schedule.limit in (limit, math.inf)  # not the sum of the shares
            assert set(schedule.reasons) <= {"scheduled", "limit"}
    assert schedule.reasons == ["limit"] * 3


def test_priorities():
    rich = [sk.Request(1, 8, min_performance=p) for p in (0, 4, 2)]
    order = [1, 2, 0]
    for by in ("performance", "cost", [1.0, 9.0, 5.0]):
        schedule = sk.schedule_batch(SLOTS, rich, sk.BatchSlicer(3, by=by))
        assert schedule.order.tolist() == order
        check_schedule(SLOTS, rich, schedule)


def test_the_curve_of_a_batch():
    schedule = sk.schedule_batch(SLOTS, JOBS, gap=0)
    curve = schedule.trade_off()
    assert curve.complete
    within = curve.weight <= schedule.limit
    assert curve.value[within][-1] == schedule.value


def test_alternatives_by_price_of_each_slot():
    jobs = [sk.Request(2, 8, budget=24, min_performance=1)]  # 1.5 for a unit of time
    amp = sk.schedule_batch(SLOTS, jobs)
    alp = sk.schedule_batch(SLOTS, jobs, alternatives="alp")
    assert amp.reasons == ["scheduled"]
    assert alp.reasons == ["time"]
    with pytest.raises(ValueError, match="job 0: alternatives='alp' needs max_price"):
        sk.schedule_batch(SLOTS, [sk.Request(1, 8, budget=9)], alternatives="alp")


def test_booking_a_schedule_is_whole_or_not_at_all():
    pool = sk.SlotPool(SLOTS)
    schedule = sk.schedule_batch(pool, JOBS)
    pool.book(schedule[2])
    before = pool.slots.copy()
    with pytest.raises(ValueError, match="cannot be booked"):
        pool.book(schedule)
    assert (pool.slots == before).all()
    with pytest.raises(TypeError, match="only windows can be booked, got int"):
        pool.book([1])


def test_a_pool_that_has_changed():
    pool = sk.SlotPool(SLOTS)
    pool.book(pool.find(sk.Request(2, 8)))
    schedule = sk.schedule_batch(pool, JOBS)
    check_schedule(pool.slots, JOBS, schedule)
    parts = schedule.windows.parts
    assert (pool.origin["node"][parts["row"]] == parts["node"]).all()
    pool.book(schedule)


def test_a_schedule_keeps_the_slots_that_were_free_before():
    asked = {"seed": 3, "reschedule": "backfill"}
    for changed in (False, True):
        pool = sk.SlotPool(SLOTS)
        if changed:
            pool.book(pool.find(sk.Request(1, 4)))
        before = sk.schedule_batch(pool.slots, JOBS)
        schedule = sk.schedule_batch(pool, JOBS)
        pool.book(schedule)
        assert schedule.slots.tolist() == before.slots.tolist()
        assert schedule.nodes().tolist() == before.nodes().tolist()
        assert schedule.bound == before.bound
        starts = schedule.execute(**asked).windows.start
        assert starts.tolist() == before.execute(**asked).windows.start.tolist()


def test_a_column_of_a_pool_that_has_changed():
    slots = sk.make_slots(
        node=range(4),
        start=0,
        end=20,
        performance=1,
        price=1,
        watt=[1.0, 2.0, 4.0, 8.0],
    )
    pool = sk.SlotPool(slots)
    pool.book(pool.find(sk.Request(2, 3, where="node < 2")))  # their rests come last
    jobs = [sk.Request(1, 8), sk.Request(2, 8)]
    schedule = sk.schedule_batch(pool, jobs, maximize="watt")
    assert schedule.value == add(
        2.0**node for window in schedule if window for node in window.nodes
    )
    curve = schedule.trade_off()
    assert schedule.value in curve.value


def test_a_schedule_pickles():
    pool = sk.SlotPool(SLOTS)
    schedule = sk.schedule_batch(pool, JOBS, sk.BSF(2))
    again = pickle.loads(pickle.dumps(schedule))
    assert again.windows == schedule.windows
    assert again.bound == schedule.bound
    assert again.execute(seed=4).windows == schedule.execute(seed=4).windows


def test_the_obvious_answers():
    assert len(sk.schedule_batch(SLOTS, [])) == 0
    assert sk.schedule_batch(SLOTS, []).execute().ends == 0
    none = sk.schedule_batch(SLOTS[:0], JOBS)
    assert none.reasons == ["nodes"] * 3
    nothing = none.execute()
    assert nothing.reason.tolist() == [1, 1, 1]
    assert np.isnan(nothing.promised).tolist() == [True, True, True]
    one = sk.schedule_batch(SLOTS, JOBS, sk.BatchSlicer(50))
    assert len(one.slices) == 3
    assert sk.schedule_batch(SLOTS, JOBS, sk.BSF(50)).scheduled.all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minimize": "time", "maximize": "cost"}, "contradict each other"),
        ({"minimize": "volume"}, "minimize must be one of time, start"),
        ({"under": 3}, "under must be a name"),
        ({"limit": math.nan}, "limit must not be NaN"),
        ({"names": ["a", "b", "a"]}, r"names\[2\] = 'a' is the name of job 0"),
        ({"criteria": ["cost", "best", "cost"]}, r"criteria\[1\] must be one of"),
        ({"policy": "css"}, "CSS, or a BatchSlicer, .* or BSF; got 'css'"),
        ({"policy": sk.BatchSlicer((1, 1))}, "sizes sum to 2, but 3 jobs"),
        ({"policy": sk.BatchSlicer(by=[1, 2])}, "by has 2 numbers for 3 jobs"),
        ({"most": 0}, "most must be at least 1"),
        ({"alternatives": "csa"}, "alternatives must be one of amp, alp"),
        ({"shape": "round"}, "shape must be"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sk.schedule_batch(SLOTS, JOBS, **options)


@pytest.mark.parametrize(
    ("nodes", "q", "options", "message"),
    [
        (2, 1e308, {}, r"q of an alternative of job\[[01]\] = inf is not finite"),
        (1, 1e308, {}, r"q or cost .* overflow: the largest is 1e\+308, of job [01]"),
        (1, math.nan, {}, "minimize: field 'q' of slot row 1 is nan, not finite"),
        (1, -math.inf, {"minimize": "cost", "under": "q"}, "under: field 'q' .* -inf"),
        (2, 1e308, {"minimize": "cost", "under": "q"}, r"job\[[01]\] = inf is not"),
    ],
)
def test_what_cannot_be_summed_is_named(nodes, q, options, message):
    slots = sk.make_slots(
        node=[0, 1, 2, 3], start=0, end=40, performance=1, price=1, q=[1e308, q, q, q]
    )
    jobs = [sk.Request(nodes, 10), sk.Request(nodes, 20)]
    with pytest.raises(ValueError, match=message):
        sk.schedule_batch(slots, jobs, **{"minimize": "q", **options})


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([0.5, 0.5], "lengths must have one entry for each of 3 jobs"),
        ([0.5, 1.5, 0.5], r"lengths\[1\] = 1.5 is not a share"),
        ([0.5, 0, 0.5], r"lengths\[1\] = 0.0 is not a share"),
        ([0.5, 0.5, math.nan], r"lengths\[2\] = nan is not a share"),
    ],
)
def test_bad_lengths_are_named(lengths, message):
    with pytest.raises(ValueError, match=message):
        sk.schedule_batch(SLOTS, JOBS).execute(lengths)


def test_bad_policies_are_named():
    for make, message in [
        (lambda: sk.BatchSlicer(0), "k must be at least 1"),
        (lambda: sk.BatchSlicer(()), "sizes must not be empty"),
        (lambda: sk.BatchSlicer((1, 0)), r"sizes\[1\] must be at least 1"),
        (lambda: sk.BatchSlicer(criterion="fast"), "criterion must be one of own"),
        (lambda: sk.BatchSlicer(by="age"), "by must be one of order"),
        (lambda: sk.Backfilling("lazy"), "kind must be one of"),
        (lambda: sk.BSF(-1), "n_css must be at least 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()


def test_endless_slots_need_a_deadline_or_a_number():
    slots = sk.make_slots(node=[0], start=0, end=math.inf, performance=1, price=1)
    with pytest.raises(ValueError, match="job 0 may have endlessly many"):
        sk.schedule_batch(slots, [sk.Request(1, 5)])
    schedule = sk.schedule_batch(slots, [sk.Request(1, 5)], most=3)
    assert schedule.count.tolist() == [3]
    assert sk.schedule_batch(
        slots, [sk.Request(1, 5)], sk.Backfilling()
    ).scheduled.all()


def test_more_alternatives_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr("slotkern.batch.scheduling.ROOM", 1000)
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    tiny = [sk.Request(2, 1e-3), sk.Request(1, 1e-3)]
    words = "more than 1 GiB of alternatives; give most=, or the jobs a deadline"
    with pytest.raises(ValueError, match=words):
        sk.schedule_batch(slots, tiny)
    assert sk.schedule_batch(slots, tiny, most=3).count.tolist() == [3, 3]
    assert sk.schedule_batch(slots, tiny, sk.Backfilling()).scheduled.all()


def test_cycles_of_a_flow():
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=2)
    jobs = [sk.Request(2, 30), sk.Request(2, 30), sk.Request(1, 20), sk.Request(2, 9)]
    flow = sk.run_cycles(slots, jobs, [0, 5, 12, 12], length=10, cycles=5, horizon=60)
    assert flow.cycle.tolist() == [0, 1, 2, 3]
    assert flow.start.tolist() == [0, 30, 60, 80]
    assert flow.wait.tolist() == [0, 25, 48, 68]
    assert flow.throughput.tolist() == [1, 1, 1, 1, 0]
    assert flow.failures.tolist() == [0, 0, 1, 0, 0]
    asked = []

    def prices(cycle, free):
        asked.append(cycle)
        return free["price"] * (cycle + 1)

    dear = sk.run_cycles(
        slots,
        jobs,
        [0, 5, 12, 12],
        length=10,
        policy=lambda cycle: [sk.CSS, sk.Backfilling()][cycle % 2],
        prices=prices,
        options=lambda cycle: {"limit": 100.0} if cycle == 0 else {},
    )
    assert asked == [0, 1, 2]
    assert dear.schedules[0].reasons == ["limit"]
    assert dear.schedules[1].totals()["cost"] == 2 * 2 * 2 * 60
    with pytest.raises(ValueError, match=r"arrivals\[1\] = nan"):
        sk.run_cycles(slots, jobs, [0, math.nan, 1, 2], length=10)
    with pytest.raises(ValueError, match="length must be more than 0"):
        sk.run_cycles(slots, jobs, [0, 1, 1, 2], length=0)


def test_a_batch_learns_nothing_from_the_batch_before():
    """What a thread keeps of some nodes is of no use for others."""
    for k in range(40):
        nodes = 1 + k % 4
        slots = sk.make_slots(
            node=range(nodes),
            start=[k % 3] * nodes,
            end=[60] * nodes,
            performance=[1 + (k * (node + 1)) % 3 for node in range(nodes)],
            price=[(k + node) % 5 for node in range(nodes)],
        )
        job = sk.Request(1 + k % nodes, 13)
        for policy in (sk.Backfilling("easy"), sk.Backfilling("conservative")):
            schedule = sk.schedule_batch(slots, [job], policy, shape="square")
            alone = sk.find_window(slots, job, "start", shape="square")
            assert schedule.windows[0] is not None, k
            assert schedule.windows[0].start == alone.start
            assert schedule.windows[0].cost == alone.cost


def test_easy_moves_up_into_time_that_was_booked_from_the_first_start_on():
    slots = sk.make_slots(node=[0], start=0, end=10, performance=1, price=1)
    jobs = [sk.Request(1, 6), sk.Request(1, 4)]
    schedule = sk.schedule_batch(slots, jobs, sk.BSF(1, kind="easy"))
    assert schedule.windows.start.tolist() == [0, 6]
    assert schedule.execute([0.5, 1]).start.tolist() == [0, 3]


@pytest.mark.parametrize("origin", [0.0, 1.7e9, 1e12])
@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("kind", ["conservative", "easy"])
def test_time_that_is_as_long_as_a_job_but_for_rounding_is_taken(kind, shape, origin):
    # So far from zero the sum of a start and a length is rounded by more than a margin
    # of the length: the time is a little shorter than the part that fits.
    shorter = 0
    for k in range(60):
        first = origin + 15 * (0.3 + k / 150)  # when the first job will have ended
        length = (30 + k / 7) / 3
        slots = sk.make_slots(
            node=[0, 1, 2],
            start=[origin, origin + 100, origin],
            end=[first + length, origin + 200, origin + 1],
            performance=3,
            price=1,
        )
        jobs = [sk.Request(1, volume) for volume in (45, 3, 30 + k / 7)]
        plan = sk.schedule_batch(slots, jobs, sk.Backfilling(kind), shape=shape)
        if plan.windows[2].start < origin + 100:
            continue  # it fits behind the first job
        shorter += first + length - first < length * (1 - 1e-9)
        # The second job's end is looked at before, and helps nobody.
        run = plan.execute([0.3 + k / 150, 0.5, 1.0])
        assert run.windows[2].start == first
    assert (shorter > 5) == (origin > 0)

"""Batches by example: problems, limits, priorities, cycles, bad arguments."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from batches import check_schedule
from oracle import add

import slotkern as sk
from slotkern._kernels import batch as _batch

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


def test_a_negative_limit_is_met_or_nothing_is_scheduled():
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=10, performance=1, price=1, gain=[-6, -3, 8]
    )
    jobs = [sk.Request(1, 10, where=f"node == {node}") for node in (0, 1, 2)]
    some = [jobs[i] for i in (2, 0, 1)]
    for policy in (sk.CSS, sk.BatchSlicer(2), sk.BatchSlicer(3)):
        for chosen in (jobs, jobs[:2], jobs[:1], jobs[1:], some):
            for limit in (-1, -3, -6, -8, -9, -10):
                schedule = sk.schedule_batch(
                    slots, chosen, policy, minimize="cost", under="gain", limit=limit
                )
                if schedule.scheduled.any():
                    assert sum(schedule.slices["expense"]) <= limit
                    assert 0 < schedule.bound <= schedule.value
                else:
                    assert schedule.value == schedule.bound == 0
                    assert set(schedule.reasons) == {"limit"}
    # The first two jobs meet it together, regardless of the cost of the third.
    schedule = sk.schedule_batch(slots, jobs, under="gain", limit=-9)
    assert schedule.reasons == ["scheduled", "scheduled", "limit"]


def test_priorities():
    rich = [sk.Request(1, 8, min_performance=p) for p in (0, 4, 2)]
    order = [1, 2, 0]
    for by in ("performance", "cost", [1.0, 9.0, 5.0]):
        schedule = sk.schedule_batch(SLOTS, rich, sk.BatchSlicer(3, by=by))
        assert schedule.order.tolist() == order
        check_schedule(SLOTS, rich, schedule)


def test_the_trade_off_of_a_batch():
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
    with pytest.raises(ValueError, match="job 1: alternatives='alp' needs max_price"):
        sk.schedule_batch(SLOTS, [sk.Request(1, 8, budget=9)], alternatives="alp")


def test_booking_a_schedule_is_atomic():
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
    pool.book(pool.find(sk.Request(2, 3, where="node < 2")))  # the remnants come last
    jobs = [sk.Request(1, 8), sk.Request(2, 8)]
    schedule = sk.schedule_batch(pool, jobs, maximize="watt")
    assert schedule.value == add(
        2.0**node for window in schedule if window for node in window.nodes
    )
    curve = schedule.trade_off()
    assert schedule.value in curve.value


def test_bindings_reject_columns_of_another_type():
    """Columns are read without conversion, so other types must be rejected before."""
    schedule = sk.schedule_batch(SLOTS, JOBS)
    chosen, found = schedule.chosen, schedule.alternatives
    jobs = _batch.CompiledJobs(SLOTS, JOBS, ["start"] * len(JOBS))
    names = [""] * len(JOBS)
    for rows in (chosen.astype("i4"), chosen[:, None], np.repeat(chosen, 2)[::2]):
        with pytest.raises(
            TypeError, match="rows must be a contiguous column of int64"
        ):
            _batch.select_windows(found, rows, names)
    with pytest.raises(IndexError, match=f"row {len(found)} of {len(found)} windows"):
        _batch.select_windows(found, np.array([len(found)]), names)
    for shares in (np.ones(3, "f4"), np.ones(6)[::2]):
        with pytest.raises(TypeError, match=r"shares must be a contiguous .* float64"):
            _batch.find_invalid_share(shares)
        with pytest.raises(TypeError, match=r"shares must be a contiguous .* float64"):
            _batch.execute(jobs, "ragged", "none", found, chosen, 0, shares)
    with pytest.raises(ValueError, match="3 jobs, but 3 rows and 2 shares"):
        _batch.execute(jobs, "ragged", "none", found, chosen, 0, np.ones(2))
    with pytest.raises(ValueError, match="3 jobs, but 2 rows and 3 shares"):
        _batch.execute(jobs, "ragged", "none", found, chosen[:2].copy(), 0, np.ones(3))


def test_a_schedule_pickles():
    pool = sk.SlotPool(SLOTS)
    schedule = sk.schedule_batch(pool, JOBS, sk.BSF(2))
    again = pickle.loads(pickle.dumps(schedule))
    assert again.windows == schedule.windows
    assert again.bound == schedule.bound
    assert again.execute(seed=4).windows == schedule.execute(seed=4).windows


def test_empty_batches_no_slots_and_many_sub_batches():
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
        ({"minimize": "volume"}, "processor_time, end, performance, price, watt; got"),
        ({"under": 3}, "under must be a name"),
        ({"limit": math.nan}, "limit must not be NaN"),
        ({"names": ["a", "b", "a"]}, r"names\[2\] = 'a' is the name of job 0"),
        ({"criteria": ["cost", "best", "cost"]}, r"criteria\[1\] must be one of"),
        ({"policy": "css"}, "CSS, or a BatchSlicer, .* or Optimal; got 'css'"),
        ({"policy": sk.BatchSlicer((1, 1))}, "sizes sum to 2, but 3 jobs"),
        ({"policy": sk.BatchSlicer(by=[1, 2])}, "by has 2 numbers for 3 jobs"),
        ({"most": 0}, "most must be at least 1"),
        ({"alternatives": "csa"}, "alternatives must be one of amp, alp"),
        ({"shape": "round"}, "shape must be"),
    ],
)
def test_errors_name_bad_arguments(options, message):
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
def test_errors_name_columns_that_cannot_be_summed(nodes, q, options, message):
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
def test_errors_name_bad_lengths(lengths, message):
    with pytest.raises(ValueError, match=message):
        sk.schedule_batch(SLOTS, JOBS).execute(lengths)


def test_errors_name_bad_policies():
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


def test_infinite_slots_need_a_deadline_or_a_number():
    slots = sk.make_slots(node=[0], start=0, end=math.inf, performance=1, price=1)
    with pytest.raises(ValueError, match="job 1 may have endlessly many"):
        sk.schedule_batch(slots, [sk.Request(1, 5)])
    jobs = {"a": sk.Request(1, 5, deadline=9), "b": sk.Request(1, 5)}
    for by in ((0, 1), (1, 0)):  # the name is that of the job, in any order
        with pytest.raises(ValueError, match="so that b may have endlessly many"):
            sk.schedule_batch(slots, jobs, sk.BatchSlicer(by=by))
    schedule = sk.schedule_batch(slots, [sk.Request(1, 5)], most=3)
    assert schedule.count.tolist() == [3]
    assert sk.schedule_batch(
        slots, [sk.Request(1, 5)], sk.Backfilling()
    ).scheduled.all()


def test_alternatives_beyond_the_memory_limit_are_refused(monkeypatch):
    monkeypatch.setattr("slotkern.batch.scheduling.MAX_BYTES", 1000)
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

    costly = sk.run_cycles(
        slots,
        jobs,
        [0, 5, 12, 12],
        length=10,
        policy=lambda cycle: [sk.CSS, sk.Backfilling()][cycle % 2],
        prices=prices,
        options=lambda cycle: {"limit": 100.0} if cycle == 0 else {},
    )
    assert asked == [0, 1, 2]
    assert costly.schedules[0].reasons == ["limit"]
    assert costly.schedules[1].totals()["cost"] == 2 * 2 * 2 * 60
    with pytest.raises(ValueError, match=r"arrivals\[1\] = nan"):
        sk.run_cycles(slots, jobs, [0, math.nan, 1, 2], length=10)
    with pytest.raises(ValueError, match="length must be more than 0"):
        sk.run_cycles(slots, jobs, [0, 1, 1, 2], length=0)


def test_a_batch_does_not_depend_on_the_batch_before():
    """Caches of a thread for some nodes do not apply to other nodes."""
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


def test_easy_uses_time_that_was_booked_from_the_first_start():
    slots = sk.make_slots(node=[0], start=0, end=10, performance=1, price=1)
    jobs = [sk.Request(1, 6), sk.Request(1, 4)]
    schedule = sk.schedule_batch(slots, jobs, sk.BSF(1, kind="easy"))
    assert schedule.windows.start.tolist() == [0, 6]
    assert schedule.execute([0.5, 1]).start.tolist() == [0, 3]


@pytest.mark.parametrize("origin", [0.0, 1.7e9, 1e12])
@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("kind", ["conservative", "easy"])
def test_time_as_long_as_a_job_up_to_rounding_is_used(kind, shape, origin):
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
        # The end of the second job is examined earlier and helps no waiting job.
        run = plan.execute([0.3 + k / 150, 0.5, 1.0])
        assert run.windows[2].start == first
    assert (shorter > 5) == (origin > 0)

"""`Optimal` against all schedules of tiny batches, and its bound on larger ones."""

import math
from itertools import combinations

import numpy as np
import pytest

import slotkern as sk
from slotkern._kernels.slots import prepare_snapshot
from slotkern.batch.plans import Planner
from slotkern.batch.pricing import Aim, PricedJob, Prices, whole_time

pytest.importorskip("highspy")

TARGETS = ("processor_time", "cost", "finish", "start", "runtime", "gain")
#: Targets that are sums over parts; those of ragged windows are maximized, too.
SUMS = ("processor_time", "cost", "gain")


def tiny(rng):
    """Return slots, requests, aim, limit and shape of a tiny batch of integers.

    The aim is the keyword and the target of `schedule_batch`.
    """
    nodes = int(rng.integers(2, 4))
    rows = []
    for node in range(nodes):
        performance, price, at = rng.choice([1, 2]), rng.integers(1, 5), 0
        for _ in range(int(rng.integers(1, 3))):
            start = at + int(rng.integers(0, 4))
            at = start + int(rng.integers(2, 9))
            rows.append((node, start, at, performance, price, int(rng.integers(0, 5))))
    names = ("node", "start", "end", "performance", "price", "gain")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    slots = sk.make_slots(**columns)
    requests = []
    for _ in range(int(rng.integers(1, 4))):
        n, volume = int(rng.integers(1, 3)), int(rng.choice([2, 4, 6]))
        more = {}
        if rng.random() < 0.4:
            more["budget"] = float(rng.integers(2, 30))
        if rng.random() < 0.2:
            more["earliest"] = float(rng.integers(0, 6))
        if rng.random() < 0.2:
            more["deadline"] = float(rng.integers(6, 14))
        requests.append(sk.Request(n, volume, **more))
    limit = float(rng.integers(0, 60)) if rng.random() < 0.4 else None
    shape = str(rng.choice(["ragged", "square"]))
    target, is_most = str(rng.choice(TARGETS)), rng.random() < 0.4
    is_most = is_most and target in SUMS and shape == "ragged"
    aim = "maximize" if is_most else "minimize", target
    return slots, requests, aim, limit, shape


def windows(slots, request, starts, shape):
    """Yield (target values, expense, parts) of all windows from some starts."""
    for start in starts:
        if start < request.earliest:
            continue
        for rows in combinations(range(len(slots)), request.nodes):
            some = slots[list(rows)]
            length = request.volume / some["performance"]
            if shape == "square":
                length = np.full(len(rows), length.max())
            end = start + length
            if len(set(some["node"])) < len(rows) or (some["start"] > start).any():
                continue
            if (end > np.minimum(some["end"], request.deadline)).any():
                continue
            cost = float((some["price"] * length).sum())
            if cost > request.budget:
                continue
            longest = float(length.max())
            values = {
                "start": start,
                "finish": start + longest,
                "runtime": longest,
                "cost": cost,
                "processor_time": float(length.sum()),
                "gain": float(some["gain"].sum()),
            }
            nodes = some["node"].tolist()
            yield (
                values,
                [(k, start, e) for k, e in zip(nodes, end.tolist(), strict=True)],
            )


def best(slots, requests, aim, limit, shape):
    """Return (jobs without a window, best target) over all schedules."""
    target, sign = aim[1], -1 if aim[0] == "maximize" else 1
    # With integer slots and volumes and performances 1 and 2 starts are integers.
    starts = range(int(slots["end"].max()))
    choices = [[None, *windows(slots, each, starts, shape)] for each in requests]
    least = (len(requests), 0.0)

    def extend(i, failed, value, expense, taken):
        nonlocal least
        if i == len(choices):
            if limit is None or expense <= limit:
                least = min(least, (failed, value))
            return
        for choice in choices[i]:
            if choice is None:
                if failed < least[0]:
                    extend(i + 1, failed + 1, value, expense, taken)
                continue
            values, parts = choice
            if not any(
                k == node and a < end and start < b
                for k, a, b in parts
                for node, start, end in taken
            ):
                more = value + sign * values[target], expense + values["cost"]
                extend(i + 1, failed, *more, taken + parts)

    extend(0, 0, 0.0, 0.0, [])
    return least[0], sign * least[1]


def check(seed):
    """Compare a tiny batch with all its schedules; return whether it is proven."""
    slots, requests, aim, limit, shape = case = tiny(np.random.default_rng(seed))
    failed, value = best(*case)
    options = {aim[0]: aim[1], "limit": limit, "shape": shape}
    schedule = sk.schedule_batch(slots, requests, sk.Optimal(gap=0.0), **options)
    assert int((~schedule.scheduled).sum()) == failed, seed
    assert math.isclose(schedule.value, value, rel_tol=1e-9, abs_tol=1e-9), seed
    over = schedule.bound - value if aim[0] == "minimize" else value - schedule.bound
    assert over <= 1e-9 * abs(value), seed
    return aim, bool(schedule.slices["proven"][0])


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_best_of_all_schedules(seed):
    check(seed)


def test_a_better_schedule_than_the_known_one_is_returned():
    slots = sk.make_slots(
        node=[0, 1, 2, 1, 2],
        start=[0, 2, 3, 10, 10],
        end=[5, 7, 9, 17, 17],
        performance=1,
        price=[3, 4, 2, 4, 2],
        gain=[3, 3, 1, 4, 0],
    )
    jobs = [sk.Request(1, 2, budget=22), sk.Request(2, 2)]
    schedule = sk.schedule_batch(
        slots, jobs, sk.Optimal(0), maximize="gain", under="gain", limit=5
    )
    assert schedule.value == 5
    assert schedule.slices["proven"][0]


def test_a_plan_needs_no_time_that_the_slots_lack_and_keeps_the_rows_of_a_pool():
    pool = sk.SlotPool(
        sk.make_slots(node=[0, 1, 2], start=0, end=40, performance=[1, 2, 2], price=1)
    )
    pool.book(pool.find(sk.Request(2, 20), "start"))
    jobs = [sk.Request(2, 30, name="a"), sk.Request(1, 40), sk.Request(3, 99)]
    schedule = sk.schedule_batch(pool, jobs, sk.Optimal(gap=0), minimize="finish")
    assert schedule.reasons == ["scheduled", "scheduled", "time"]
    assert schedule.windows.names[0] == "a"
    pool.book(schedule, "vo")
    assert len(pool.windows("vo")) == 2


def test_jobs_that_exceed_the_limit_fail_with_its_reason():
    slots = sk.make_slots(node=[0], start=0, end=40, performance=1, price=1)
    jobs = [sk.Request(1, 9), sk.Request(1, 8)]
    for gap, proven in ((0.0, 2e-6), (0.01, 0.01)):  # 2e-6 is the least gap
        schedule = sk.schedule_batch(slots, jobs, sk.Optimal(gap=gap), limit=8)
        assert schedule.reasons == ["limit", "scheduled"]
        assert schedule.slices["proven"][0]
        assert schedule.value == 8
        assert 8 * (1 - proven) <= schedule.bound <= 8


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e16])
def test_limits_hold_in_any_unit_of_money(unit):
    slots = sk.make_slots(node=[0, 1], start=0, end=40, performance=1, price=unit)
    jobs = [sk.Request(1, volume) for volume in (13, 4, 6, 20, 15)]
    limit = 20.5 * unit
    schedule = sk.schedule_batch(
        slots, jobs, sk.Optimal(), minimize="cost", under="cost", limit=limit
    )
    assert np.flatnonzero(schedule.scheduled).tolist() == [1, 2]
    assert schedule.value == pytest.approx(10 * unit)
    assert schedule.slices["proven"][0]


def test_amounts_that_the_linear_program_does_not_accept_are_named():
    slots = sk.make_slots(node=[0, 1], start=0, end=40, performance=1, price=1e16)
    jobs = [sk.Request(1, 13), sk.Request(1, 20)]
    with pytest.raises(ValueError, match=r"the expense 1.3e\+17, which HiGHS does not"):
        sk.schedule_batch(slots, jobs, sk.Optimal(), under="cost", limit=0)


@pytest.mark.parametrize("more", [[], [sk.Request(5, 1)]])
def test_a_proven_bound_is_near_the_target_although_penalties_are_large(more):
    slots = sk.make_slots(node=[0, 1], start=0, end=1e9, performance=1, price=1)
    jobs = [*more, *(sk.Request(1, volume) for volume in (13, 4, 6, 20, 15))]
    schedule = sk.schedule_batch(slots, jobs, sk.Optimal(0), minimize="finish")
    assert schedule.value == 85
    assert schedule.slices["proven"][0]
    assert schedule.bound == pytest.approx(85, rel=1e-4)


@pytest.mark.parametrize("end", [1e6, 1e15])
@pytest.mark.parametrize("target", ["start", "finish", "cost", "runtime"])
@pytest.mark.parametrize("seed", range(4))
def test_a_remote_end_or_deadline_changes_nothing(seed, target, end):
    rng = np.random.default_rng(seed)
    columns = {
        "node": range(3),
        "start": rng.integers(0, 4, 3),
        "performance": rng.choice([1, 2], 3),
        "price": rng.integers(1, 5, 3),
    }
    sizes = rng.integers(1, 3, 3).tolist(), rng.choice([2, 4, 6], 3).tolist()
    found = []
    for last, deadline in ((80, math.inf), (end, math.inf), (end, end)):
        slots = sk.make_slots(**columns, end=last)
        jobs = [
            sk.Request(n, volume, deadline=deadline)
            for n, volume in zip(*sizes, strict=True)
        ]
        made = sk.schedule_batch(slots, jobs, sk.Optimal(0), minimize=target)
        assert made.slices["proven"][0]
        assert made.scheduled.all()
        found.append((made.value, pytest.approx(made.bound, rel=1e-5)))
    assert found[0] == found[1] == found[2]


def test_maximizes_sums_over_parts():
    slots = sk.make_slots(node=[0, 1], start=0, end=[8, 6], performance=1, price=[1, 3])
    jobs = [sk.Request(1, 4), sk.Request(1, 4)]
    schedule = sk.schedule_batch(slots, jobs, sk.Optimal(0), maximize="cost")
    assert schedule.value == 16
    assert schedule.bound == pytest.approx(16, rel=2e-6)  # the least gap


def test_the_work_of_improving_a_plan_is_limited():
    slots = sk.make_slots(node=range(4), start=0, end=99, performance=1, price=1)
    requests = [sk.Request(1, volume) for volume in (30, 20, 10) * 6]
    jobs = [
        PricedJob(slots, prepare_snapshot(slots), each, "ragged") for each in requests
    ]
    aim = Aim("finish", "cost", 1.0, 0.0)
    free, _ = whole_time(slots)
    planner = Planner(jobs, free, aim, None, len(jobs) + 1)
    none = Prices(4, np.zeros(0, np.int64), *np.zeros((3, 0)))
    plan = planner.fill({}, range(len(jobs)), none)
    planner.improve(plan, none, {})
    assert len(jobs) < planner.work < 2 * len(jobs)


def test_bounds_of_larger_batches_hold_and_answers_repeat():
    slots = sk.generate_environment("vo", seed=3, nodes=8).slots
    jobs = [sk.Request(2, 200, budget=1500), sk.Request(3, 150), sk.Request(1, 300)]
    first, second = (
        sk.schedule_batch(slots, jobs, sk.Optimal(0.02), minimize="cost")
        for _ in range(2)
    )
    other = sk.schedule_batch(slots, jobs, sk.CSS, minimize="cost")
    assert first.bound <= first.value <= other.value
    assert first.value - first.bound <= 0.02 * first.value
    assert first.windows.parts.tobytes() == second.windows.parts.tobytes()


@pytest.mark.parametrize(
    ("request_", "options", "message"),
    [
        ({"limits": "sum(gain) >= 3"}, {}, "job 1: policy Optimal does not support"),
        ({"within": "gain"}, {}, "job 1: policy Optimal does not support"),
        ({"share": {"cores": 2}}, {}, "HostPool"),
        ({}, {"most": 3}, "does not take most"),
        ({}, {"gap": 0.1}, "does not take gap"),
        ({}, {"max_work": 9}, "does not take max_work"),
        ({}, {"maximize": "finish"}, "does not maximize 'finish'"),
        ({}, {"maximize": "cost", "shape": "square"}, "ragged windows only"),
        ({}, {"limit": -1}, "a limit of at least 0, got -1"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(request_, options, message):
    slots = sk.make_slots(node=[0], start=0, end=40, performance=1, price=1, gain=[2.0])
    job = sk.Request(1, 5, **request_)
    with pytest.raises(ValueError, match=message):
        sk.schedule_batch(slots, [job], sk.Optimal(), **options)


def test_targets_beyond_the_largest_number_are_refused():
    slots = sk.make_slots(
        node=[0, 1, 2],
        start=0,
        end=10,
        performance=[1, 2, 1],
        price=[1e308, 5e307, 1e308 / 3],
    )
    jobs = [sk.Request(1, 0.01), sk.Request(2, 2)]
    with pytest.raises(ValueError, match=r"job 1 has a range of inf.*a larger unit"):
        sk.schedule_batch(slots, jobs, sk.Optimal(0), minimize="cost")
    slots["price"] /= 2.0**40
    best = sk.schedule_batch(slots, jobs, sk.Optimal(0), minimize="cost")
    assert best.scheduled.all()


def test_slots_without_an_end_are_refused():
    slots = sk.make_slots(node=[0], start=0, end=math.inf, performance=1, price=1)
    with pytest.raises(ValueError, match="slots with an infinite end"):
        sk.schedule_batch(slots, [sk.Request(1, 5)], sk.Optimal())


def test_tariffs_are_refused():
    slots = sk.make_slots(
        node=[0], start=0, end=40, performance=1, price=1, tariff="spot"
    )
    pool = sk.SlotPool(slots, tariffs={"spot": sk.Tariff([12], [1, 3])})
    with pytest.raises(ValueError, match="policy Optimal does not support"):
        sk.schedule_batch(pool, [sk.Request(1, 5)], sk.Optimal())


def time_indexed(slots, requests, target, shape):
    """Return the least target over schedules of all jobs, by an integer program."""
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    horizon = int(slots["end"].max())
    cost, job, covers = [], [], []
    for i, request in enumerate(requests):
        for values, parts in windows(slots, request, range(horizon), shape):
            cost.append(values[target])
            job.append(i)
            covers.append(
                [k * horizon + t for k, a, b in parts for t in range(int(a), int(b))]
            )
    size = len(cost)
    one = np.ones(size)
    jobs = sparse.csr_array((one, (job, range(size))), shape=(len(requests), size))
    column = np.repeat(np.arange(size), [len(each) for each in covers])
    row = np.concatenate(covers)
    shape_ = (int(row.max()) + 1, size)
    times = sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape_)
    answer = milp(
        cost,
        constraints=[LinearConstraint(jobs, 1, 1), LinearConstraint(times, -np.inf, 1)],
        integrality=one,
        bounds=Bounds(0, 1),
    )
    return answer.fun


@pytest.mark.parametrize("shape", ["ragged", "square"])
@pytest.mark.parametrize("target", ["processor_time", "cost", "finish"])
def test_agrees_with_a_time_indexed_program(target, shape):
    rng = np.random.default_rng(7)
    # All lengths are integers, so that starts are.
    slots = sk.make_slots(
        node=range(5),
        start=rng.integers(0, 4, 5),
        end=rng.integers(14, 20, 5),
        performance=[1, 1, 2, 2, 1],
        price=rng.integers(1, 6, 5),
        gain=0,
    )
    sizes = rng.integers(1, 3, 5), 2 * rng.integers(1, 4, 5)
    jobs = [sk.Request(int(n), int(v)) for n, v in zip(*sizes, strict=True)]
    least = time_indexed(slots, jobs, target, shape)
    schedule = sk.schedule_batch(
        slots, jobs, sk.Optimal(0.02, 2_000), minimize=target, shape=shape
    )
    assert schedule.scheduled.all()
    assert schedule.bound <= least * (1 + 1e-9)
    assert schedule.value >= least * (1 - 1e-9)
    assert schedule.value <= 1.03 * least

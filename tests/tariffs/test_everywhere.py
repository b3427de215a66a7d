"""Alternatives, fronts, explanations, batches and cycles under tariffs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tariff_cases import cases

import slotkern as sk
from slotkern._kernels.slots import has_tariffs

SHAPES = st.sampled_from(["square", "ragged"])
NIGHT = {"night": sk.Tariff([6, 22], [1, 3, 1]), "spot": sk.Tariff([10], [2, 0.5])}


def night_slots(nodes=2, end=40.0):
    return sk.make_slots(
        node=range(nodes),
        start=0,
        end=end,
        performance=1,
        price=1,
        tariff="night",
    )


@given(cases(most_nodes=3, most_slots=2), SHAPES, st.sampled_from(["first", "cost"]))
def test_alternatives_are_found_and_cut_in_turn(case, shape, criterion):
    case.slots["end"] = np.where(np.isinf(case.slots["end"]), 60, case.slots["end"])
    pool = case.pool()
    request = sk.Request(**case.request)
    found = sk.find_alternatives(pool, request, criterion, shape=shape, limit=4)
    for window in found:
        best = pool.find(request, criterion, shape=shape)
        assert (window.start, window.cost, window.nodes) == (
            best.start,
            best.cost,
            best.nodes,
        )
        pool.book(best)
    if len(found) < 4:
        assert pool.find(request, criterion, shape=shape) is None
    if criterion == "first":
        assert (np.diff(found.start) >= 0).all()


@given(cases(most_nodes=3, most_slots=2))
def test_fronts_are_not_dominated(case):
    pool = case.pool()
    request = sk.Request(**case.request)
    by = ("finish", "cost")
    if has_tariffs(pool):
        with pytest.raises(ValueError, match="endlessly many windows; give most="):
            sk.pareto(pool, request, by)
    front = sk.pareto(pool, request, by, shape="ragged", most=5)
    values = [(window.finish, window.cost) for window in front]
    assert values == sorted(values)
    assert all(a[1] > b[1] for a, b in pairwise(values))
    cheapest = pool.find(request, "cost", shape="ragged")
    if cheapest is None:
        assert not values
        return
    assert values[0][0] == pool.find(request, "finish", shape="ragged").finish
    assert values[-1][1] == pytest.approx(cheapest.cost, rel=1e-8, abs=1e-8)


def test_fronts_spread_over_a_short_fall_of_the_cost():
    # From 0 to 0.25 the cost falls from 10 to 9.5; then a free node begins.
    slots = sk.make_slots(
        node=[0, 1],
        start=[0, 0.25],
        end=20,
        performance=1,
        price=[1, 0],
        tariff=["fall", ""],
    )
    pool = sk.SlotPool(slots, tariffs={"fall": sk.Tariff([3], [3, 1])})
    for shape in ("square", "ragged"):
        front = sk.pareto(
            pool, sk.Request(1, 4), ("start", "cost"), shape=shape, most=5
        )
        starts = [window.start for window in front]
        assert len(starts) == 5
        assert (starts[0], starts[-1]) == (0, 0.25)
        assert 0.05 < starts[1] < 0.2


def test_explanations_name_the_tariff():
    pool = sk.SlotPool(night_slots(), tariffs=NIGHT)
    why = sk.explain(pool, sk.Request(2, 4, budget=9, earliest=6, deadline=20))
    assert not why.fits
    assert (why.cheapest, why.prices.soonest_start, why.prices.soonest_cost) == (
        24,
        6,
        24,
    )
    assert why.prices.highest_tariff == "night"
    assert (why.prices.highest_factor, why.prices.highest_from) == (3, 6)
    assert why.prices.affordable_start == pytest.approx(21.75)
    assert why.changes()["deadline"] == pytest.approx(25.75)
    text = str(why)
    assert "starts at 6 and costs 24: tariff 'night' is at 3 from 6 on" in text
    assert "earliest start, without deadline and latest start, is 21.75" in text
    fits = sk.explain(pool, sk.Request(2, 4, earliest=3))
    assert (fits.prices.turn, fits.prices.turn_tariff) == ("falls", "night")
    assert "it starts at 22, when tariff 'night' falls to 1" in str(fits)
    assert fits.to_dict()["cheapest_start"] == 22
    early = sk.explain(pool, sk.Request(2, 4, latest=5))
    assert (early.prices.cheapest_start, early.prices.turn) == (0, "begins")
    assert (
        sk.explain(
            sk.make_slots(node=0, start=0, end=9, performance=1, price=1),
            sk.Request(1, 3),
        ).prices
        is None
    )


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize(("rise", "length"), [(6.7, 2.1), (6.8, 2.4), (8, 2)])
def test_explanations_name_a_rise_at_the_end(rise, length, shape):
    slots = sk.make_slots(node=0, start=0, end=20, performance=1, price=1, tariff="a")
    pool = sk.SlotPool(slots, tariffs={"a": sk.Tariff([rise - 1, rise], [2, 1, 3])})
    prices = sk.explain(pool, sk.Request(1, length), shape=shape).prices
    assert prices.cheapest_start == rise - length  # rounded: may not end at the rise
    assert (prices.turn, prices.turn_tariff, prices.turn_factor) == ("rises", "a", 3)


def test_batches_charge_the_tariff():
    pool = sk.SlotPool(night_slots(), tariffs=NIGHT)
    jobs = [sk.Request(2, 4), sk.Request(1, 6), sk.Request(2, 2)]
    for policy in (None, sk.BatchSlicer(2)):
        plan = sk.schedule_batch(
            pool, jobs, *([] if policy is None else [policy]), minimize="cost"
        )
        for window in plan:
            parts = window.slots
            costs = NIGHT["night"].integral(
                parts["start"], parts["end"] - parts["start"]
            )
            assert window.cost == pytest.approx(costs.sum(), rel=1e-12)
        pool.copy().book(plan)


def test_a_backfilled_job_starts_when_it_becomes_affordable():
    # "big" needs both nodes, so it waits for "long"; "small" costs 4 from 1 to 3 on.
    slots = night_slots(end=20)
    pool = sk.SlotPool(slots, tariffs={"night": sk.Tariff([3], [2, 1])})
    jobs = [
        sk.Request(1, 10, name="long"),
        sk.Request(2, 5, name="big"),
        sk.Request(1, 3, budget=4, name="small"),
    ]
    plan = sk.schedule_batch(pool, jobs, sk.Backfilling("easy"))
    assert plan.windows.start.tolist() == pytest.approx([0, 10, 2])
    assert plan.windows.cost.tolist() == pytest.approx([13, 10, 4])
    run = plan.execute([0.5, 1, 1])
    assert run.start.tolist() == pytest.approx([0, 5, 2])


@pytest.mark.parametrize("kind", ["easy", "conservative"])
def test_jobs_that_run_keep_budgets_and_promises(kind):
    clock = sk.Clock("2026-01-01T00:00:00+00:00", tick="s")
    rng, checked = np.random.default_rng(0), 0
    for _ in range(40):
        slots = night_slots(4, 60)
        slots["performance"] = rng.uniform(0.7, 3, 4)
        times = np.sort(rng.uniform(0, 40, 5))
        spot = sk.Tariff(times, rng.uniform(0.5, 2, 6))
        pool = sk.SlotPool(slots, tariffs={"night": spot}, clock=clock)
        jobs = [
            sk.Request(int(rng.integers(1, 4)), volume, budget=volume * budget)
            for volume, budget in rng.uniform((2, 0.5), (20, 3), (8, 2)).tolist()
        ]
        plan = sk.schedule_batch(pool, jobs, sk.Backfilling(kind))
        run = plan.execute(rng.uniform(0.2, 1, 8))
        placed = run.started & ~np.isnan(run.promised)
        assert (run.start[placed] <= run.promised[placed]).all()
        for window, job in zip(run.windows, jobs, strict=True):
            assert window is None or window.cost <= job.budget * (1 + 1e-9)
        checked += int(placed.sum())
    assert checked > 40


@given(
    cases(most_nodes=3, most_slots=2, budgets=False),
    SHAPES,
    st.booleans(),
    st.sampled_from(["cost", "processor_time"]),
)
def test_no_batch_beats_the_bound(case, shape, maximize, other):
    case.slots["end"] = np.where(np.isinf(case.slots["end"]), 60, case.slots["end"])
    pool = case.pool()
    jobs = [sk.Request(**case.request), sk.Request(1, 3)]
    goal = {"maximize" if maximize else "minimize": "cost", "under": other}
    plan = sk.schedule_batch(pool, jobs, shape=shape, **goal)
    slack = 1e-9 * (1 + abs(plan.value))
    if maximize:
        assert plan.value <= plan.bound + slack
    else:
        assert plan.value >= plan.bound - slack


def test_batches_of_limits_on_prices_are_refused():
    pool = sk.SlotPool(night_slots(), tariffs=NIGHT)
    for request in (
        sk.Request(1, 2),
        sk.Request(1, 2, budget=6, min_performance=1),
        sk.Request(1, 2, max_price=1),
    ):
        with pytest.raises(ValueError, match="alternatives='alp' does not support slo"):
            sk.schedule_batch(pool, [request], alternatives="alp")


def test_cycles_charge_the_tariff():
    pool = sk.SlotPool(night_slots(), tariffs=NIGHT)
    jobs = [sk.Request(2, 4), sk.Request(1, 6)]
    cycles = sk.run_cycles(pool, jobs, [0, 1], length=5, horizon=30)
    booked = [w for plan in cycles.schedules for w in plan if w is not None]
    assert len(booked) == 2
    for window in booked:
        parts = window.slots
        costs = NIGHT["night"].integral(parts["start"], parts["end"] - parts["start"])
        assert window.cost == pytest.approx(costs.sum(), rel=1e-12)


def test_numba_searches_under_tariffs():
    pytest.importorskip("numba")
    import slotkern.numba as sn

    pool = sk.SlotPool(night_slots(), tariffs=NIGHT)
    window, request = sn.window(2), sn.request(2, 4.0, earliest=3.0)
    for _ in range(3):
        found = pool.find(sk.Request(2, 4, earliest=3), "cost", shape="ragged")
        assert sn.find(pool.handle(), request, window, sn.COST, sn.RAGGED) == 0
        assert (window.totals[0], window.totals[3]) == (found.start, found.cost)
        assert window.costs.tolist() == found.slots["cost"].tolist()
        assert sn.book(pool.handle(), window) == 0
    cheap = sn.request(2, 4.0, max_price=3.0)
    assert sn.find(pool.handle(), cheap, window, sn.COST, sn.RAGGED) > 1

"""The prices of a subgradient ascent: their cells, and bounds at them."""

import numpy as np
import pytest

import slotkern as sk
from slotkern._kernels.slots import prepare_snapshot
from slotkern.batch.ascent import Ascent
from slotkern.batch.plans import Planner
from slotkern.batch.pricing import Aim, PricedJob, PricedWindow, Prices, whole_time


def window(start, rows, length, expense=0.0):
    end = np.full(len(rows), start + length)
    return PricedWindow(0.0, start, np.array(rows), end, 0.0, expense)


def test_the_cells_cover_the_free_time_and_prices_rise_where_windows_overlap():
    slots = sk.make_slots(
        node=[0, 0, 1], start=[0, 7.25, 3], end=[5, 30, 40], performance=1, price=1
    )
    free, _ = whole_time(slots)
    ascent = Ascent(free, None, 40.0, 100)
    assert len(ascent.duals.node) == 0
    # Row 2 is node 0 from 7.25 on; both windows use all of its time from 10 to 20.
    both = [window(10.0, [2], 10.0), window(10.0, [1, 2], 10.0)]
    assert ascent.advance(1.0, both, missed=2.0)
    duals = ascent.duals
    assert set(duals.node.tolist()) == {0}
    assert (duals.start >= 9).all()
    assert (duals.end <= 21).all()
    assert (np.diff(np.sort(duals.start)) > 0).all()
    assert duals.expense == 0


def test_the_price_of_the_expense_rises_above_the_limit_only():
    slots = sk.make_slots(node=[0], start=0, end=40, performance=1, price=1)
    free, _ = whole_time(slots)
    for expense, rises in ((30.0, True), (5.0, False)):
        ascent = Ascent(free, 10.0, 40.0, 100)
        least = [window(0.0, [0], 4.0, expense), window(2.0, [0], 4.0, 0.0)]
        assert ascent.advance(1.0, least, missed=1.0)
        assert (ascent.duals.expense > 0) == rises


def test_windows_that_do_not_overlap_end_the_ascent():
    slots = sk.make_slots(node=[0], start=0, end=40, performance=1, price=1)
    free, _ = whole_time(slots)
    assert not Ascent(free, None, 40.0, 100).advance(
        1.0, [window(0.0, [0], 4.0)], missed=1.0
    )


def test_a_walk_finds_the_order_of_jobs_that_all_fit_and_repeats():
    # Filled in this order, the short jobs leave no time for the long one.
    slots = sk.make_slots(
        node=[0, 1], start=0, end=[10, 12], performance=1, price=[1, 2]
    )
    requests = [sk.Request(1, volume) for volume in (3, 3, 3, 7, 6)]
    jobs = [
        PricedJob(slots, prepare_snapshot(slots), each, "ragged") for each in requests
    ]
    free, _ = whole_time(slots)
    none = Prices(2, np.zeros(0, np.int64), *np.zeros((3, 0)))
    found = []
    for _ in range(2):
        planner = Planner(jobs, free, Aim("cost", "cost", 1.0, 0.0), None, 10_000)
        plan = planner.fill({}, range(5), none)
        assert len(plan) == 4
        best = planner.walk(plan, none, 0.0, 2_000)
        assert planner.total(best) <= planner.total(plan)
        assert planner.work < 2_100
        found.append(best)
    assert len(found[0]) == 5
    first, second = ({i: w.key for i, w in plan.items()} for plan in found)
    assert first == second


@pytest.mark.parametrize("target", ["processor_time", "cost"])
def test_twenty_jobs_are_within_a_few_per_cent_of_the_bound(target):
    slots = sk.generate_environment("vo", seed=4, nodes=12, load=(0.0, 0.15)).slots
    rng = np.random.default_rng(4)
    jobs = [sk.Request(int(rng.integers(1, 4)), 210.0 + 19 * k) for k in range(8)]
    best = sk.schedule_batch(slots, jobs, sk.Optimal(0.01, 3_000), minimize=target)
    assert best.scheduled.all()
    assert best.bound <= best.value <= 1.03 * best.bound

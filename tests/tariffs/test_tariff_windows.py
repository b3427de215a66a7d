"""Windows under tariffs, against the plain definition; refusals."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracle import INF
from support.tariff_cases import Given, cases
from support.tariff_oracle import CRITERIA, Oracle, brute_least, cost_key

import slotkern as sk
from slotkern._kernels.slots import check_slots

SHAPES = ("square", "ragged")


def check_window(case, slots, found, criterion, shape, origin=None):
    """Compare a window with the plain definition among `slots`.

    `origin`: row of the window's array for each slot; None: the same rows.
    """
    where = case.where
    oracle = Oracle(case.plain(slots), case.request, shape, case.tick, where)
    best = oracle.best(criterion)
    if best is None:
        # Without a clock every double is a start, so windows lie between turns as well.
        assert found is None or (not case.tick and criterion != "cost")
        return
    assert found is not None
    budget = case.request.get("budget", INF)
    if case.tick or criterion == "cost" or budget == INF:
        rows = best.rows if origin is None else tuple(origin[list(best.rows)])
        assert found.start == best.start
        assert (found.cost, found.runtime) == (best.cost, best.runtime)
        assert found.nodes == best.nodes
        assert tuple(found.slots["row"]) == rows
        assert tuple(found.slots["cost"]) == best.costs
        return
    # Between turns: it fits, one double earlier does not, and no turn is earlier.
    value = {"finish": best.start + best.runtime, "runtime": best.runtime}
    assert found.value <= value.get(criterion, best.start)
    wide = shape == "square" or criterion in ("finish", "runtime")
    most = found.runtime if wide else oracle.lengths[-1]
    assert oracle.fits(found.start, most)
    assert not oracle.fits(math.nextafter(found.start, -INF), most)


@given(cases(), st.sampled_from(CRITERIA), st.sampled_from(SHAPES))
def test_windows_equal_the_plain_definition(case, criterion, shape):
    request = sk.Request(**case.request, where=case.where)
    pool = case.pool()
    found = sk.find_window(pool, request, criterion, shape=shape)
    check_window(case, None, found, criterion, shape)
    (again,) = sk.find_windows(pool, [request], criterion, shape=shape)
    assert again == found


@given(cases(most_nodes=4, most_slots=2, budgets=False), st.sampled_from(SHAPES))
def test_no_set_of_slots_is_cheaper_at_any_start(case, shape):
    case = case._replace(where=None)
    found = case.pool().find(sk.Request(**case.request), "cost", shape=shape)
    least = brute_least(case.plain(), case.request, shape, 0.25)
    assert (INF if found is None else found.cost) == least or cost_key(
        found.cost
    ) == cost_key(least)


def test_slots_of_an_object_bring_their_tariffs():
    tariffs = sk.Tariffs({"day": sk.Tariff([2], [3, 1])})
    slots = sk.make_slots(
        node=[0, 1], start=0, end=9, performance=1, price=1, tariff=["day", ""]
    )
    given = Given(slots, tariffs, None)
    pool = sk.SlotPool(given)
    assert pool.tariffs is tariffs
    for each in (given, pool, pickle.loads(pickle.dumps(pool)), pool.copy()):
        window = sk.find_window(each, sk.Request(2, 2, budget=6), "start")
        assert window.start == pytest.approx(1)
        assert (window.cost, window.nodes) == (pytest.approx(6), (0, 1))


def test_refusals():
    tariffs = sk.Tariffs({"day": sk.Tariff([2], [3, 1])})
    slots = sk.make_slots(
        node=[0, 1], start=0, end=9, performance=1, price=1, tariff=["day", ""]
    )
    for function in (sk.SlotPool, lambda s: sk.find_window(s, sk.Request(1, 1))):
        with pytest.raises(ValueError, match=r"SlotPool\(slots, tariffs="):
            function(slots)
    with pytest.raises(ValueError, match="'day', which the tariffs lack"):
        sk.SlotPool(slots, tariffs={"days": tariffs["day"]})
    both = slots.copy()
    both["node"], both["start"] = 0, [0, 9]
    both["end"] = [9, 12]
    with pytest.raises(sk.SlotError, match="row 1: tariff '' differs from 'day'"):
        sk.SlotPool(both, tariffs=tariffs)
    with pytest.raises(sk.SlotError, match="row 1: tariff '' differs from 'day'"):
        check_slots(both)
    pool = sk.SlotPool(slots, tariffs=tariffs)
    job = sk.Request(1, 1)
    with pytest.raises(ValueError, match="limits on sums do not support slots with"):
        pool.find(sk.Request(1, 1, limits="sum(price) <= 3"))
    with pytest.raises(ValueError, match="max_price does not support slots with"):
        pool.find(sk.Request(1, 1, max_price=3))
    for method in ("lite", "published"):
        with pytest.raises(ValueError, match=f"method '{method}' does not support"):
            pool.find(job, "start", method=method)
    for name in ("price", "processor_time"):
        with pytest.raises(ValueError, match="sums of values do not support slots"):
            pool.find(job, name)


def test_slots_without_named_tariffs_are_searched_as_without_the_column():
    slots = sk.make_slots(
        node=[0, 1], start=0, end=9, performance=1, price=1, tariff=""
    )
    assert sk.find_window(slots, sk.Request(2, 3), "cost").cost == 6

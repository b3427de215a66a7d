"""Windows of the least second price within the budget, against enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracle import INF, met
from support.tariff_cases import Given, cases, tariffs
from support.tariff_oracle import Oracle, cost_key, integral

import slotkern as sk
from slotkern.knapsack.choice import choose
from slotkern.search import profiles


def brute(case, carbon, shape, raster):
    """Return the least value of all sets at all starts of a raster and all turns."""
    oracle = Oracle(case.plain(), case.request, shape, 0, case.where)
    numbers = carbon.breakpoints.tolist(), carbon.factors.tolist()
    budget = case.request.get("budget", INF)
    least = INF
    for span, parts in oracle.groups:
        times = set().union(*(part.turns for part in parts))
        if not times:
            continue
        lengths = {part.length for part in parts}
        more = {b - d for b in numbers[0] for d in (0, *lengths)}
        first, last = min(times), max(max(times), *more, 0)
        times |= {t for t in more if first <= t}
        count = math.ceil(first / raster)
        while count * raster <= last:
            times.add(count * raster)
            count += 1
        for t in times:
            live = [part for part in parts if part.is_live(t)]
            for some in itertools.combinations(live, case.request["nodes"]):
                if len({part.slot.node for part in some}) < len(some):
                    continue
                if span is not None and max(part.own for part in some) != span:
                    continue
                if not met(math.fsum(part.cost(t) for part in some), budget):
                    continue
                value = math.fsum(integral(numbers, t, part.length) for part in some)
                least = min(least, value)
    return least


@settings(max_examples=settings().max_examples // 3)  # enumeration is slow
@given(
    cases(most_nodes=4, most_slots=2), tariffs(), st.sampled_from(["square", "ragged"])
)
def test_profiles_are_least_within_the_budget(case, carbon, shape):
    case = case._replace(clock=None)
    request = sk.Request(**case.request, where=case.where)
    criterion = sk.minimize(sk.profile(carbon))
    found = case.pool().find(request, criterion, shape=shape)
    least = brute(case, carbon, shape, 0.25)
    if found is None:
        assert least == INF
        return
    if case.request.get("budget", INF) == INF:
        assert found.value == least or cost_key(found.value) == cost_key(least)
    assert met(found.cost, case.request.get("budget", INF))
    assert found.bound <= least * (1 + 1e-12)
    assert found.value <= least / (1 - 0.001) * (1 + 1e-12)
    assert found.proven
    numbers = carbon.breakpoints.tolist(), carbon.factors.tolist()
    lengths = [part["length"] for part in found.to_dict()["slots"]]
    assert found.value == pytest.approx(
        sum(integral(numbers, found.start, d) for d in lengths), rel=1e-12
    )
    money = {slot.row: slot for slot in case.plain()}
    costs = [
        money[row].price * integral(money[row].tariff, found.start, length)
        for row, length in zip(found.slots["row"], lengths, strict=True)
    ]
    assert found.cost == pytest.approx(math.fsum(costs), rel=1e-12)


def test_named_profiles_and_weights():
    named = {"spot": sk.Tariff([12], [1, 3]), "carbon": sk.Tariff([10, 16], [4, 1, 4])}
    slots = sk.make_slots(
        node=[0, 1],
        start=0,
        end=24,
        performance=1,
        price=1,
        tariff="spot",
        kw=[3.0, 1.0],
    )
    pool = sk.SlotPool(slots, tariffs=named)
    green = sk.minimize(sk.profile("carbon", "kw"))
    window = pool.find(sk.Request(1, 4), green)
    assert (window.start, window.value, window.nodes) == (10, 4, (1,))
    assert window.cost == 2 + 2 * 3
    assert window.criterion == "minimize(profile('carbon', 'kw'))"
    tight = pool.find(sk.Request(1, 4, budget=4), green)
    assert (tight.start, tight.cost) == (pytest.approx(8), pytest.approx(4))
    assert tight.value == pytest.approx(10)
    assert pool.find(sk.Request(1, 4, budget=3), green) is None
    with pytest.raises(ValueError, match="no tariff 'co2'; they have spot, carbon"):
        pool.find(sk.Request(1, 4), sk.minimize(sk.profile("co2")))
    with pytest.raises(ValueError, match="no numeric column 'watts'"):
        pool.find(sk.Request(1, 4), sk.minimize(sk.profile("carbon", "watts")))
    pool.book(window)
    again = pool.find(sk.Request(1, 4), green)
    assert (again.start, again.value, again.nodes) == (14, 10, (1,))
    assert pool.origin["node"][again.slots["row"]].tolist() == list(again.nodes)


def test_profiles_refuse_limits_on_prices_that_change():
    carbon = sk.minimize(sk.profile(sk.Tariff([10, 16], [4, 1, 4])))
    slots = sk.make_slots(
        node=[0, 1], start=0, end=24, performance=1, price=[2, 3], tariff="spot"
    )
    request = sk.Request(1, 4, max_price=2)
    pool = sk.SlotPool(slots, tariffs={"spot": sk.Tariff([12], [1, 3])})
    with pytest.raises(ValueError, match="max_price does not support slots with"):
        pool.find(request, carbon)
    slots["tariff"] = ""
    assert sk.find_window(slots, request, carbon).nodes == (0,)


def test_profiles_of_slots_without_tariffs():
    slots = sk.make_slots(node=[0, 1], start=0, end=24, performance=1, price=[2, 3])
    carbon = sk.Tariff([10, 16], [4, 1, 4])
    window = sk.find_window(slots, sk.Request(2, 4), sk.minimize(sk.profile(carbon)))
    assert (window.start, window.value, window.cost) == (10, 8, 20)
    given_slots = Given(slots, sk.Tariffs({"c": carbon}), None)
    named = sk.find_window(given_slots, sk.Request(2, 4), sk.minimize(sk.profile("c")))
    assert named.to_dict()["slots"] == window.to_dict()["slots"]


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_work_is_bounded_and_bounds_stay_valid(shape, monkeypatch):
    hours = np.arange(1, 48)
    tariffs = {
        "spot": sk.Tariff(hours, 2 + np.cos(np.arange(48) / 4)),
        "carbon": sk.Tariff(hours + 0.5, 2 + np.sin(np.arange(48) / 5)),
    }
    slots = sk.make_slots(
        node=range(4),
        start=0,
        end=48,
        performance=[1, 2, 1, 2],
        price=[1, 1.5, 2, 2.5],
        tariff="spot",
    )
    pool = sk.SlotPool(slots, tariffs=tariffs)
    green = sk.minimize(sk.profile("carbon"))
    cheapest = pool.find(sk.Request(2, 5), "cost", shape=shape)
    job = sk.Request(2, 5, budget=1.1 * cheapest.cost)
    solved = []

    def counted(*given):
        solved.append(given)
        return choose(*given)

    monkeypatch.setattr(profiles, "choose", counted)
    best = pool.find(job, green, shape=shape)
    assert best.proven
    assert len(solved) > 4
    for work in (0, 4):
        solved.clear()
        found = pool.find(job, green, shape=shape, max_work=work)
        assert len(solved) == work
        assert not found.proven
        assert found.cost <= job.budget
        assert found.bound <= best.value <= found.value
    assert pool.find(job, green, shape=shape, max_work=0).cost >= cheapest.cost


def test_profiles_are_searched_exactly_or_refused():
    slots = sk.make_slots(node=0, start=0, end=24, performance=1, price=2)
    carbon = sk.minimize(sk.profile(sk.Tariff([10], [4, 1])))
    with pytest.raises(ValueError, match=r"method 'lite' does not apply to minimize\("):
        sk.find_window(slots, sk.Request(1, 4), carbon, method="lite")

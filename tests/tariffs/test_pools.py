"""Changing pools under tariffs find what a search of their free slots finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.tariff_cases import cases, requests
from support.tariff_oracle import CRITERIA

import slotkern as sk

SHAPES = st.sampled_from(["square", "ragged"])
BOOKING = ["book", "book", "release", "schedule", "copy", "advance", "reserve"]
STEPS = st.sampled_from([*BOOKING, "disable", "enable", "remove", "add"])


def facts(window):
    """Return what two windows of equal slots share; their rows may differ."""
    if window is None:
        return None
    parts = window.slots[["node", "start", "end", "cost"]].tolist()
    return window.start, window.runtime, window.cost, parts


def search(pool, case, request, criterion, shape):
    """Return the window of the pool, after comparing it with a search of its slots."""
    found = pool.find(request, criterion, shape=shape)
    free = sk.SlotPool(pool.slots, tariffs=case.tariffs, clock=case.clock)
    assert facts(found) == facts(free.find(request, criterion, shape=shape))
    (listed,) = sk.find_windows(pool, [request], criterion, shape=shape)
    assert facts(listed) == facts(found)
    return found


@given(cases(), st.data())
def test_pools_find_what_a_search_of_their_free_slots_finds(case, data):
    pool = case.pool()
    booked = []
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(STEPS)
        nodes = pool.nodes
        request = sk.Request(**data.draw(requests(3)))
        if data.draw(st.booleans()):
            request = request.replace(budget=data.draw(st.integers(0, 60)) / 4)
        criterion, shape = data.draw(st.sampled_from(CRITERIA)), data.draw(SHAPES)
        if step == "book":
            window = search(pool, case, request, criterion, shape)
            if window is not None:
                pool.book(window)
                booked.append(window)
        elif step == "release" and booked:
            window = booked.pop(data.draw(st.integers(0, len(booked) - 1)))
            if window.finish > pool.now:
                pool.release(window)
        elif step == "advance":
            pool.advance(max(pool.now, data.draw(st.integers(0, 40)) / 4))
        elif step == "reserve" and len(nodes):
            start = max(pool.now, data.draw(st.integers(0, 60)) / 4)
            node = nodes[data.draw(st.integers(0, len(nodes) - 1))]
            pool.reserve(int(node), start, start + 1.5, partly=True)
        elif step == "disable" and len(nodes):
            pool.disable(int(nodes[0]), 2, 9)
        elif step == "enable" and "down" in pool.closed["owner"]:
            pool.enable(int(pool.closed["node"][0]))
        elif step == "remove" and len(nodes) > 1:
            pool.remove_node(int(nodes[-1]))
        elif step == "add":
            more = case.slots[:1].copy()
            more["node"], more["start"], more["end"] = 100 + len(pool.origin), 40, 60
            pool.add_slots(more)
        elif step == "copy":
            pool = pool.copy()
        elif step == "schedule":
            expected = [search(pool, case, request, criterion, shape)]
            done = pool.schedule([request, request], criterion, shape=shape)
            assert facts(done[0]) == facts(expected[0])
            booked += [window for window in done if window is not None]
        search(pool, case, request, criterion, shape)
    for window in booked:
        assert window.cost == sum(window.slots["cost"])


@given(cases(most_nodes=4, most_slots=2))
def test_what_is_booked_and_released_restores_the_pool(case):
    pool = case.pool()
    request = sk.Request(**case.request)
    first = pool.find(request, "cost")
    if first is None:
        return
    pool.book(first)
    again = pool.find(request, "cost")
    assert again is None or not np.array_equal(again.slots, first.slots)
    pool.release(first)
    assert facts(pool.find(request, "cost")) == facts(first)


def test_added_slots_keep_longer_names_of_tariffs():
    tariffs = {"a": sk.Tariff([2], [3, 1]), "ab": sk.Tariff([2], [50, 10])}

    def slots(node, tariff, rack):
        return sk.make_slots(
            node=[node],
            start=0,
            end=9,
            performance=1,
            price=1,
            tariff=[tariff],
            rack=[rack],
        )

    pool = sk.SlotPool(slots(0, "a", 1), tariffs=tariffs)
    pool.add_slots(slots(1, "ab", 1.5))
    assert pool.origin["tariff"].tolist() == ["a", "ab"]
    assert pool.origin["rack"].tolist() == [1, 1.5]
    window = pool.find(sk.Request(2, 2), "start")
    assert window.slots["cost"].tolist() == [6, 100]
    pool.add_slots(slots(2, "a", 2))
    assert pool.origin["tariff"].tolist() == ["a", "ab", "a"]
    assert pool.find(sk.Request(1, 2, where="rack == 1.5"), "start").nodes == (1,)


def test_searches_of_many_requests_follow_the_changes_of_a_pool():
    # Slots of 4 to 40: the first search needs only the long ones, the next all of them.
    slots = sk.make_slots(
        node=range(40),
        start=0,
        end=[4.0 + node for node in range(40)],
        performance=1,
        price=[1.0 + node for node in range(40)],
        tariff="night",
    )
    pool = sk.SlotPool(slots, tariffs={"night": sk.Tariff([3, 9], [1, 3, 1])})
    pool.book(pool.find(sk.Request(1, 2), "start"))
    for step in range(6):
        for volume in (30, 2, 30, 1, 8):
            job = sk.Request(2, volume)
            (listed,) = sk.find_windows(pool, [job], "cost")
            assert facts(listed) == facts(pool.find(job, "cost"))
        if step % 3 == 2:
            pool.advance(step / 2)
        else:
            pool.book(pool.find(sk.Request(2, 3), "cost"))

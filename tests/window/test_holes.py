"""Holes against brute force, against searches, and at their edges."""

import itertools
import math
import random

import numpy as np
import pytest
from compound import INF, random_slots
from hypothesis import given, settings
from hypothesis import strategies as st

import slotkern as sk

seeds = st.integers(0, 2**32).map(random.Random)
#: Times and lengths of cases, whose slots start and end at integers.
TIMES = [t / 2 for t in range(-1, 26)]


def best_length(slots, nodes, at, speed, level):
    """Return the longest window of some nodes at a time, over all sets of slots."""
    live = [
        slot
        for slot in slots
        if slot["start"] <= at < slot["end"] and slot["performance"] >= speed
    ]
    lengths = [
        min(slot["end"] for slot in group) - at
        for group in itertools.combinations(live, nodes)
        if len({slot["node"] for slot in group}) == nodes
        if level is None or len({slot[level] for slot in group}) == 1
    ]
    return max(lengths, default=0.0)


@settings(max_examples=3 * settings.default.max_examples)
@given(seeds)
def test_holes_are_the_longest_windows_of_all_sets(rnd):
    slots = random_slots(rnd, nodes=(0, 5))
    at, speed = rnd.choice(TIMES), rnd.choice((0, 1, 2))
    level = rnd.choice((None, "kind"))
    target = slots if rnd.random() < 0.5 else sk.SlotPool(slots)
    found = sk.holes(target, at, min_performance=speed, within=level)
    expected = [best_length(slots, n, at, speed, level) for n in range(1, 7)]
    assert [found.best_length(n) for n in range(1, 7)] == expected
    for length in TIMES[2:]:
        most = sum(best >= length for best in expected)
        assert found.most_nodes(length) == most
    frontier = found.frontier
    assert (np.diff(frontier["nodes"]) > 0).all()
    assert (np.diff(frontier["length"]) < 0).all()
    assert (frontier["end"] == at + frontier["length"]).all()


@given(seeds)
def test_searches_find_the_holes_of_a_changed_pool_and_no_longer_window(rnd):
    pool = sk.SlotPool(random_slots(rnd, speeds=(1,)))
    for _ in range(rnd.randint(0, 3)):
        window = pool.find(
            sk.Request(1, rnd.choice((1, 2)), earliest=rnd.choice(TIMES))
        )
        if window is not None:
            pool.book(window)
    at, where = rnd.choice(TIMES), rnd.choice((None, "tag == 'a'"))
    found = pool.holes(at, where=where)
    for n in range(1, 6):
        best = found.best_length(n)
        for length in {best, best + 0.5} - {0.0}:
            request = sk.Request(n, length, earliest=at, latest=at, where=where)
            assert (pool.find(request, "start") is not None) == (length == best)


def test_holes_begin_now_by_default():
    slots = sk.make_slots(node=[0, 1], start=[2, 4], end=[9, 8], performance=1, price=1)
    pool = sk.SlotPool(slots)
    assert pool.holes().frontier.tolist() == [(1, 7, 9)]
    pool.advance(1)
    assert pool.holes().start == 1
    assert len(pool.holes()) == 0
    pool.advance(5)
    assert pool.holes().start == 5
    assert pool.holes().frontier.tolist() == [(1, 4, 9), (2, 3, 8)]
    assert repr(pool.holes()) == "Holes(at most 2 nodes from 5 on)"


def test_time_without_end_has_the_length_infinity():
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=[math.inf, 8, math.inf], performance=1, price=1
    )
    found = sk.holes(slots, 3)
    assert found.frontier.tolist() == [(2, INF, INF), (3, 5, 8)]
    assert found.most_nodes(1e300) == 2


def test_lengths_added_to_the_start_are_not_after_the_end():
    rnd = random.Random(4)
    for _ in range(200):
        end = 1 + rnd.random()
        slots = sk.make_slots(node=0, start=0, end=end, performance=1, price=1)
        at = rnd.random()
        assert at + sk.holes(slots, at).best_length(1) <= end


def test_dates_durations_names_and_tables():
    machine = sk.Machine({"name": ["n1", "n2", "n3"], "rack": ["a", "a", "b"]})
    busy = {
        "node": ["n1", "n3"],
        "start": ["2026-12-01 12:00", "2026-12-01 15:00"],
        "end": ["2026-12-02", "2026-12-02"],
    }
    free = sk.free_slots(
        machine, busy, start="2026-12-01", end="2026-12-02", zone="UTC", unit="h"
    )
    found = sk.holes(free, "2026-12-01 09:00")
    assert found.frontier.tolist() == [(1, 15, 24), (2, 6, 15), (3, 3, 12)]
    assert found.most_nodes("5h") == 2
    assert sk.holes(free, "2026-12-01 09:00", within="rack").best_length(2) == 3
    assert sk.holes(free, where="name == 'n1'").best_length(1) == 12
    assert "2026-12-01 15:00" in found._repr_html_()
    assert len(found.to_pandas()) == 3
    with pytest.raises(ValueError, match="at is the date '2026-12-01 09:00', but this"):
        sk.holes(free.slots, "2026-12-01 09:00")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": "rak"}, "rak"),
        ({"where": "memory > 3"}, "memory"),
        ({"min_performance": -1}, "min_performance"),
        ({"at": math.nan}, "at"),
    ],
)
def test_bad_arguments_are_named(options, message):
    slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1, rack=["a"])
    with pytest.raises(ValueError, match=message):
        sk.holes(slots, **options)


def test_pools_with_quotas_of_all_windows_are_refused():
    pool = sk.SlotPool(
        sk.make_slots(node=[0, 1, 2], start=0, end=9, performance=1, price=1)
    )
    pool.quota("nodes", 1, account="ann")  # counts no window without an account
    assert pool.holes().best_length(3) == 9
    pool.quota("nodes", 2)
    assert pool.find(sk.Request(3, 9)) is None
    with pytest.raises(ValueError, match="does not keep the capacities and quotas"):
        pool.holes()


@pytest.mark.parametrize(("nodes", "kind"), [(0, ValueError), (1.5, TypeError)])
def test_numbers_of_nodes_and_lengths_are_checked(nodes, kind):
    found = sk.holes(sk.make_slots(node=0, start=0, end=9, performance=1, price=1))
    with pytest.raises(kind, match="nodes"):
        found.best_length(nodes)
    with pytest.raises(ValueError, match="length"):
        found.most_nodes(0)

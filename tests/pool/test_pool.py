"""Tests of SlotPool: booking, releasing and all other changes."""

from __future__ import annotations

import numpy as np
import pytest
from pools import assert_same_but_rows, random_request, random_slots

import slotkern as sk

FIELDS = ["node", "start", "end"]


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_pool_of_thousands_of_slots(shape):
    """Blocks split, merge and are rebuilt; the pool equals a new one."""
    rng = np.random.default_rng(2)
    slots = random_slots(11, nodes=60, slots=40)
    pool, booked = sk.SlotPool(slots), []
    for turn in range(600):
        if booked and rng.random() < 0.35:
            pool.release(booked.pop(int(rng.integers(len(booked)))))
            continue
        request = random_request(rng, 6)
        criterion = str(rng.choice(["start", "start", "first", "finish", "cost"]))
        window = pool.find(request, criterion, shape=shape)
        if turn % 7 == 0:
            assert_same_but_rows(
                window, sk.find_window(pool.slots, request, criterion, shape=shape)
            )
        if window is not None:
            pool.book(window)
            booked.append(window)
    assert len(booked) > 100
    for window in booked:
        pool.release(window)
    assert pool.slots.tolist() == slots.tolist()
    assert len(pool.booked) == 0


def test_release_of_partly_past_window_frees_the_rest():
    slots = sk.make_slots(node=[0, 1], start=0, end=20, performance=[1, 2], price=1)
    pool = sk.SlotPool(slots)
    window = pool.find(sk.Request(2, 8), "start", shape="ragged")
    assert window.slots["end"].tolist() == [8, 4]
    pool.book(window)
    pool.advance(6)
    assert pool.slots[FIELDS].tolist() == [(1, 6, 20), (0, 8, 20)]
    pool.release(window)
    assert pool.slots[FIELDS].tolist() == [(0, 6, 20), (1, 6, 20)]
    with pytest.raises(ValueError, match=r"node 0 from 0\.0 to 8\.0 is not booked"):
        pool.release(window)
    with pytest.raises(ValueError, match=r"node 0 from 0\.0 to 8\.0 is not free"):
        pool.book(window)
    pool.advance(9)
    pool.release(window)  # the whole window is past
    with pytest.raises(ValueError, match="now must not be before 9"):
        pool.advance(8)
    with pytest.raises(ValueError, match="now must not be NaN"):
        pool.advance(np.nan)


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_advance_by_large_steps(shape):
    slots = random_slots(5, nodes=60, slots=40)
    pool = sk.SlotPool(slots)
    last = slots["end"].max()
    for part in (0.01, 0.3, 0.31, 0.9, 1.0):  # removes few slots, or most
        pool.schedule([sk.Request(3, 9)] * 20, shape=shape)
        now = np.floor(part * last)
        before = pool.slots
        pool.advance(now)
        left = before[before["end"] > now]
        left["start"] = np.maximum(left["start"], now)
        left = left[np.lexsort((left["node"], left["start"]))]
        assert pool.slots.tolist() == left.tolist()
        for criterion in sk.CRITERIA:
            for request in (sk.Request(3, 7), sk.Request(9, 30), sk.Request(1, 3)):
                found = pool.find(request, criterion, shape=shape)
                other = sk.find_window(left, request, criterion, shape=shape)
                assert (found is None) == (other is None)
                if found is not None:
                    assert (found.start, found.nodes) == (other.start, other.nodes)
                    assert (found.value, found.cost) == (other.value, other.cost)


def test_release_needs_equal_lengths():
    pool = sk.SlotPool(sk.make_slots(node=0, start=0, end=9, performance=1, price=1))
    windows = [pool.find(sk.Request(1, volume)) for volume in (4, 6)]
    for booked, other in (windows, windows[::-1]):
        pool.book(booked)
        with pytest.raises(ValueError, match="is not booked"):
            pool.release(other)
        pool.release(booked)


@pytest.mark.parametrize("first", ["release", "advance"])
def test_release_frees_rounding_remnants(first):
    """A remnant of an ulp is booked with its part, also after the window's finish."""
    end = float(np.nextafter(4.0, 9.0))
    slots = sk.make_slots(node=[0], start=0.0, end=end, performance=1, price=1)
    pool = sk.SlotPool(slots)
    window = pool.find(sk.Request(1, 4.0))
    assert window.finish == 4.0
    pool.book(window)
    assert len(pool.slots) == 0
    if first == "release":
        pool.release(window)
    pool.advance(4.0)
    if first == "advance":
        pool.release(window)
    assert len(pool.booked) == 0
    assert pool.slots[["start", "end"]].tolist() == [(4.0, end)]


def test_book_and_release_are_atomic():
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=[1, 2])
    pool, both = sk.SlotPool(slots), sk.find_window(slots, sk.Request(2, 4))
    for row in (0, 1):
        single = sk.find_window(slots, sk.Request(1, 4, where=slots["node"] == row))
        pool.book(single)
        with pytest.raises(ValueError, match=f"node {row} from .* is not free"):
            pool.book(both)
        with pytest.raises(ValueError, match=f"node {1 - row} from .* is not booked"):
            pool.release(both)
        pool.release(single)
        assert pool.slots.tolist() == slots.tolist()
        assert len(pool.booked) == 0


def test_rounding_leaves_no_remnant():
    """0.7 + 0.1 < 0.8 in floats, but the slot must have no remnant."""
    slots = sk.make_slots(node=0, start=0.7, end=0.8, performance=1, price=1)
    pool = sk.SlotPool(slots)
    window = pool.find(sk.Request(1, 0.1))
    assert window.finish < 0.8
    pool.book(window)
    assert len(pool.slots) == 0
    assert pool.booked["end"].tolist() == [0.8]
    pool.release(window)
    assert pool.slots.tolist() == slots.tolist()


def test_touching_slots_are_not_merged():
    slots = sk.make_slots(
        node=0, start=[0, 5], end=[5, 10], performance=1, price=[1, 1]
    )
    pool = sk.SlotPool(slots)
    windows = [pool.find(sk.Request(1, 5), "start")]
    pool.book(windows[0])
    windows.append(pool.find(sk.Request(1, 5), "start"))
    pool.book(windows[1])
    assert len(pool) == 0
    assert pool.find(sk.Request(1, 1)) is None
    for window in windows:
        pool.release(window)
    assert pool.slots.tolist() == slots.tolist()
    assert pool.find(sk.Request(1, 6)) is None


def test_remove_node_and_add_slots():
    slots = random_slots(5, nodes=6)
    pool = sk.SlotPool(slots)
    window = next(
        w
        for n in (6, 5, 4, 3, 2)
        for w in pool.find_alternatives(sk.Request(n, 2))
        if 3 in w.nodes
    )
    pool.book(window)
    pool.remove_node(3)
    assert 3 not in pool.nodes
    assert 3 not in dict(pool.by_node())
    assert 3 not in pool.booked["node"]
    pool.release(window)
    assert pool.slots.tolist() == slots[slots["node"] != 3].tolist()
    for node in (0.5, True, "3"):
        with pytest.raises(TypeError, match="node must be an integer"):
            pool.remove_node(node)
    with pytest.raises(TypeError, match="now must be a number"):
        pool.advance("5")
    with pytest.raises(TypeError, match="must be a structured numpy array, got"):
        sk.SlotPool(pool)
    with pytest.raises(ValueError, match="node 3 is not in the pool"):
        pool.remove_node(3)
    with pytest.raises(ValueError, match="node 3 was removed"):
        pool.add_slots(slots[slots["node"] == 3])
    with pytest.raises(ValueError, match="overlap"):
        pool.add_slots(slots[slots["node"] == 6][:1])
    with pytest.raises(ValueError, match="must have the fields"):
        pool.add_slots(sk.make_slots(node=9, start=0, end=1, performance=1, price=1))
    late = slots[slots["node"] == 6][-1:].copy()
    late["start"], late["end"] = 9000, 9100
    pool.add_slots(late)
    assert len(pool.origin) == len(slots) + 1
    found = pool.find(sk.Request(1, 20, earliest=8999), "start")
    assert (found.start, found.slots["row"].tolist()) == (9000, [len(slots)])
    pool.advance(9500)
    with pytest.raises(ValueError, match="before the pool's now"):
        pool.add_slots(late)
    for node, own in pool.by_node():
        assert (own["node"] == node).all()


def test_start_bounds_stay_valid_after_release_and_addition():
    """Start bounds cached while the pool is full must not hide time freed later."""
    slots = sk.make_slots(
        node=np.arange(4), start=0, end=100, performance=[1, 1, 2, 2], price=1
    )
    pool = sk.SlotPool(slots)
    done = pool.schedule([sk.Request(2, 10)] * 40)
    assert pool.find(sk.Request(2, 10), "start") is None
    pool.release(done[3])
    again = pool.find(sk.Request(2, 10), "start")
    assert again.start == done[3].start
    pool.book(again)
    assert pool.find(sk.Request(1, 10), "start") is None
    pool.add_slots(sk.make_slots(node=7, start=3, end=20, performance=1, price=1))
    assert pool.find(sk.Request(1, 10), "start").start == 3

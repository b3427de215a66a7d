"""SlotPool: booking, releasing and everything else that changes it."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import slotkern as sk

FIELDS = ["node", "start", "end"]


def random_slots(seed, nodes=12, slots=6, step=20, first=0):
    """Slots with whole times, many of them touching or starting together."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.integers(0, nodes * step, (nodes, 2 * slots)), axis=1)
    keep = edges[:, ::2] < edges[:, 1::2]
    node = np.broadcast_to(np.arange(nodes)[:, None], keep.shape)
    performance = np.broadcast_to(rng.integers(1, 5, nodes)[:, None], keep.shape)
    price = rng.choice([0.5, 1, 1, 2, 3], keep.shape)
    return sk.make_slots(
        node=first + 3 * node[keep],
        start=edges[:, ::2][keep],
        end=edges[:, 1::2][keep],
        performance=performance[keep],
        price=price[keep],
        tag=rng.integers(0, 9, keep.sum()),
    )


def random_terms(rng):
    """What a site charges, of few kinds, so that what is remembered is used."""
    return {
        "setup": float(rng.choice([0, 2])),
        "step": float(rng.choice([0, 4])),
        "latest": float(rng.choice([np.inf, 80])),
        "max_runtime": float(rng.choice([np.inf, 9])),
    }


def random_request(rng, most_nodes=4):
    return sk.Request(
        int(rng.integers(1, most_nodes + 1)),
        float(rng.choice([2, 5, 9, 14, 30])) * float(rng.choice([1, 1, 0.7])),
        budget=float(rng.choice([np.inf, 20, 40, 80])),
        min_performance=float(rng.choice([0, 0, 0, 2])),
        earliest=float(rng.choice([0, 0, 0, 30, 55.5])),
        deadline=float(rng.choice([np.inf, np.inf, 150])),
        max_price=float(rng.choice([np.inf, np.inf, 1])),
        **random_terms(rng) if rng.random() < 0.3 else {},
    )


def assert_same_but_rows(found, expected):
    assert (found is None) == (expected is None)
    if found is not None:
        for name in ("start", "finish", "cost", "processor_time", "value", "nodes"):
            assert getattr(found, name) == getattr(expected, name)
        assert found.slots["end"].tolist() == expected.slots["end"].tolist()


class NaivePool:
    """The same promises, kept by lists and loops."""

    def __init__(self, slots):
        self.origin = slots
        names = slots.dtype.names
        self.free = [
            (int(s["node"]), float(s["start"]), float(s["end"]), row)
            for row, s in enumerate(slots[list(names)])
        ]
        self.booked = {}
        self.now = -np.inf

    @property
    def slots(self):
        self.free.sort(key=lambda span: (span[1], span[0]))
        table = self.origin[[span[3] for span in self.free]]
        table["start"] = [span[1] for span in self.free]
        table["end"] = [span[2] for span in self.free]
        return table

    def book(self, window):
        taken = []
        for part in window.slots:
            node, start, end = int(part["node"]), window.start, float(part["end"])
            fits = [s for s in self.free if s[0] == node and s[1] <= start]
            span = max(fits, key=lambda s: s[1], default=None)
            if span is None or end > span[2]:
                return False
            if span[2] - end <= 4 * 2.0**-52 * abs(end):
                end = span[2]
            taken.append((span, end))
        for span, end in taken:
            node, first, last, row = span
            self.free.remove(span)
            for a, b in ((first, window.start), (end, last)):
                if a < b:
                    self.free.append((node, a, b, row))
            self.booked[node, window.start] = (end, row)
        return True

    def release(self, window):
        parts = []
        for part in window.slots:
            node, end = int(part["node"]), float(part["end"])
            if end <= self.now:
                continue
            held = self.booked.get((node, window.start))
            if held is None or abs(held[0] - end) > 1e-12 * abs(end):
                return False
            parts.append((node, held))
        for node, (end, row) in parts:
            del self.booked[node, window.start]
            start = max(window.start, self.now)
            for span in list(self.free):
                if span[0] == node and span[3] == row and span[2] == start:
                    self.free.remove(span)
                    start = span[1]
                elif span[0] == node and span[3] == row and span[1] == end:
                    self.free.remove(span)
                    end = span[2]
            self.free.append((node, start, end, row))
        return True

    def advance(self, now):
        self.now = now
        self.free = [
            (node, max(start, now), end, row)
            for node, start, end, row in self.free
            if end > now
        ]
        self.booked = {k: v for k, v in self.booked.items() if v[0] > now}


class PoolMachine(RuleBasedStateMachine):
    """Any order of operations: the pool and the naive one never differ."""

    @initialize(seed=st.integers(0, 10**6))
    def start(self, seed):
        self.rng = np.random.default_rng(seed)
        slots = random_slots(seed, nodes=int(self.rng.integers(1, 9)))
        self.pool, self.naive = sk.SlotPool(slots), NaivePool(slots)
        self.windows, self.released, self.added = [], [], 0

    @rule(
        criterion=st.sampled_from(list(sk.CRITERIA)),
        shape=st.sampled_from(["square", "ragged"]),
        keep=st.booleans(),
    )
    def find_and_book(self, criterion, shape, keep):
        request = random_request(self.rng)
        window = self.pool.find(request, criterion, shape=shape)
        expected = sk.find_window(self.naive.slots, request, criterion, shape=shape)
        assert_same_but_rows(window, expected)
        if window is not None and keep:
            for part in window.slots:
                slot = self.pool.origin[part["row"]]
                assert slot["node"] == part["node"]
                assert slot["start"] <= part["start"] < part["end"] <= slot["end"]
            self.pool.book(window)
            assert self.naive.book(window)
            self.windows.append(window)

    @rule(shape=st.sampled_from(["square", "ragged"]), count=st.integers(1, 6))
    def schedule(self, shape, count):
        asked = [random_request(self.rng) for _ in range(count)]
        done = self.pool.schedule(asked, shape=shape)
        for request, window in zip(asked, done, strict=True):
            expected = sk.find_window(self.naive.slots, request, "start", shape=shape)
            assert_same_but_rows(window, expected)
            if window is not None:
                assert self.naive.book(window)
                self.windows.append(window)

    @precondition(lambda self: self.windows)
    @rule(data=st.data())
    def release(self, data):
        window = self.windows.pop(data.draw(st.integers(0, len(self.windows) - 1)))
        self.pool.release(window)
        assert self.naive.release(window)
        self.released.append(window)

    @precondition(lambda self: self.windows or self.released)
    @rule(data=st.data())
    def wrong_windows_change_nothing(self, data):
        window = data.draw(st.sampled_from(self.windows + self.released))
        before = self.pool.slots
        if not NaivePool.book(copy_of(self.naive), window):
            with pytest.raises(ValueError, match="not free"):
                self.pool.book(window)
        if not NaivePool.release(copy_of(self.naive), window):
            with pytest.raises(ValueError, match=r"not booked|nothing is booked"):
                self.pool.release(window)
        assert before.tolist() == self.pool.slots.tolist()

    @rule(step=st.sampled_from([0.0, 0.5, 3.0, 20.0]))
    def advance(self, step):
        now = max(self.naive.now, 0.0) + step
        self.pool.advance(now)
        self.naive.advance(now)

    @rule(seed=st.integers(0, 1000))
    def add(self, seed):
        self.added += 1
        more = random_slots(seed, nodes=2, slots=2, first=1000 * self.added)
        more["start"] += max(self.naive.now, 0)
        more["end"] += max(self.naive.now, 0)
        known = len(self.naive.origin)
        self.pool.add_slots(more)
        self.naive.origin = np.concatenate([self.naive.origin, more])
        self.naive.free += [
            (int(s["node"]), float(s["start"]), float(s["end"]), known + i)
            for i, s in enumerate(more)
        ]

    @rule()
    def save_and_load(self, tmp="pool.npz"):
        self.pool = pickle.loads(pickle.dumps(self.pool))

    @invariant()
    def same(self):
        if hasattr(self, "pool"):
            assert self.pool.slots.tolist() == self.naive.slots.tolist()
            booked = {
                (int(b["node"]), float(b["start"])): (float(b["end"]), int(b["row"]))
                for b in self.pool.booked
            }
            assert booked == self.naive.booked


def copy_of(naive):
    copy = NaivePool(naive.origin[:0])
    copy.origin, copy.now = naive.origin, naive.now
    copy.free, copy.booked = list(naive.free), dict(naive.booked)
    return copy


PoolMachine.TestCase.settings = settings(
    max_examples=settings.default.max_examples // 5,
    stateful_step_count=25,
    deadline=None,
)
TestPoolMachine = PoolMachine.TestCase


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_thousands_of_slots_in_many_blocks(shape):
    """Splits, merges and layouts of blocks, against a fresh pool of the same slots."""
    rng = np.random.default_rng(2)
    slots = random_slots(11, nodes=60, slots=40)
    pool, held = sk.SlotPool(slots), []
    for turn in range(600):
        if held and rng.random() < 0.35:
            pool.release(held.pop(int(rng.integers(len(held)))))
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
            held.append(window)
    assert len(held) > 100
    for window in held:
        pool.release(window)
    assert pool.slots.tolist() == slots.tolist()
    assert len(pool.booked) == 0


@pytest.mark.parametrize("criterion", ["start", "cost"])
@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_schedule_equals_finding_and_booking(shape, criterion):
    rng = np.random.default_rng(4)
    slots = random_slots(3, nodes=30, slots=20)
    asked = [random_request(rng, 5) for _ in range(400)]
    one, many = sk.SlotPool(slots), sk.SlotPool(slots)
    done = many.schedule(asked, criterion, shape=shape)
    for request, window, reason in zip(asked, done, done.reasons, strict=True):
        expected = one.find(request, criterion, shape=shape)
        assert window == expected
        if expected is not None:
            one.book(expected)
            continue
        rich = request.replace(budget=np.inf)
        fits_rich = sk.find_window(one.slots, rich, "start", shape=shape) is not None
        assert reason == ("budget" if fits_rich else "time")
    assert one.slots.tolist() == many.slots.tolist()
    assert 0 < done.booked.sum() < len(asked)
    windows = [w for w in done if w is not None]
    assert done.start[done.booked].tolist() == [w.start for w in windows]
    assert done.finish[done.booked].tolist() == [w.finish for w in windows]
    assert done.cost[done.booked].tolist() == [w.cost for w in windows]
    assert done.runtime[done.booked].tolist() == [w.runtime for w in windows]
    times = [w.processor_time for w in windows]
    assert done.processor_time[done.booked].tolist() == times
    assert np.isnan(done.start[~done.booked]).all()
    first, parts = done.first, done.parts
    for i, window in enumerate(done):
        rows = parts[first[i] : first[i + 1]]
        assert rows.tolist() == ([] if window is None else window.slots.tolist())


def test_reasons():
    pool = sk.SlotPool(
        sk.make_slots(
            node=[0, 1, 2], start=0, end=[9, 9, 4], performance=[1, 1, 2], price=2
        )
    )
    asked = [
        sk.Request(4, 1),
        sk.Request(2, 1, min_performance=2),
        sk.Request(2, 4, budget=15),
        sk.Request(3, 5),
        sk.Request(2, 1e-300, earliest=1),
        sk.Request(2, 4),
    ]
    done = pool.schedule(asked)
    assert done.reasons == ["nodes", "nodes", "budget", "time", "volume", "booked"]
    assert repr(done) == "Bookings(1 of 6 booked)"
    assert done[-1].nodes == (0, 1) or done[-1].cost <= 16
    assert pool.schedule([]).start.shape == (0,)
    assert isinstance(done, Sequence)
    assert (done.index(done[-1]), done.count(None)) == (5, 5)
    for copied in (copy.deepcopy(done), pickle.loads(pickle.dumps(done))):
        assert copied == done
        assert copied.parts.tolist() == done.parts.tolist()
        assert np.array_equal(copied.start, done.start, equal_nan=True)
    assert done != pool.schedule(asked)
    for index in (6, -7, 2**70):
        with pytest.raises(IndexError, match="out of range"):
            done[index]


def test_partly_past_windows_give_back_the_rest():
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
    pool.release(window)  # all of it is past
    with pytest.raises(ValueError, match="now must not be before 9"):
        pool.advance(8)
    with pytest.raises(ValueError, match="now must not be NaN"):
        pool.advance(np.nan)


@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_a_clock_that_goes_far(shape):
    slots = random_slots(5, nodes=60, slots=40)
    pool = sk.SlotPool(slots)
    last = slots["end"].max()
    for part in (0.01, 0.3, 0.31, 0.9, 1.0):  # few slots leave, or most
        pool.schedule([sk.Request(3, 9)] * 20, shape=shape)
        now = np.floor(part * last)
        before = pool.slots
        pool.advance(now)
        left = before[before["end"] > now]
        left["start"] = np.maximum(left["start"], now)
        left = left[np.lexsort((left["node"], left["start"]))]
        assert pool.slots.tobytes() == left.tobytes()
        for criterion in sk.CRITERIA:
            for asked in (sk.Request(3, 7), sk.Request(9, 30), sk.Request(1, 3)):
                found = pool.find(asked, criterion, shape=shape)
                other = sk.find_window(left, asked, criterion, shape=shape)
                assert (found is None) == (other is None)
                if found is not None:
                    assert (found.start, found.nodes) == (other.start, other.nodes)
                    assert (found.value, found.cost) == (other.value, other.cost)


def test_a_longer_window_does_not_release_a_shorter_one():
    pool = sk.SlotPool(sk.make_slots(node=0, start=0, end=9, performance=1, price=1))
    windows = [pool.find(sk.Request(1, volume)) for volume in (4, 6)]
    for booked, other in (windows, windows[::-1]):
        pool.book(booked)
        with pytest.raises(ValueError, match="is not booked"):
            pool.release(other)
        pool.release(booked)


def test_half_of_a_window_is_neither_booked_nor_released():
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


def test_a_rest_of_rounding_is_no_time():
    """0.7 + 0.1 < 0.8, but nothing is left of the slot."""
    slots = sk.make_slots(node=0, start=0.7, end=0.8, performance=1, price=1)
    pool = sk.SlotPool(slots)
    window = pool.find(sk.Request(1, 0.1))
    assert window.finish < 0.8
    pool.book(window)
    assert len(pool.slots) == 0
    assert pool.booked["end"].tolist() == [0.8]
    pool.release(window)
    assert pool.slots.tolist() == slots.tolist()


def test_touching_slots_stay_apart():
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


def test_hints_survive_releases_and_additions():
    """Bounds learned on a full pool must not hide what comes free."""
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


def test_threads_that_read_and_write():
    slots = random_slots(1, nodes=40, slots=20)
    pool, errors = sk.SlotPool(slots), []

    def work(seed):
        rng, held = np.random.default_rng(seed), []
        try:
            for _ in range(150):
                window = pool.find(random_request(rng), "start")
                if window is not None:
                    try:
                        pool.book(window)
                        held.append(window)
                    except ValueError:
                        assert window is not None  # another thread was faster
                if len(held) > 3:
                    pool.release(held.pop(0))
                if rng.random() < 0.05:
                    done = pool.schedule([random_request(rng) for _ in range(20)])
                    held += [w for w in done if w is not None]
                    sk.find_windows(pool, [random_request(rng)] * 5, threads=2)
                    assert sk.validate_slots(pool.slots) is None
            for window in held:
                pool.release(window)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
    assert pool.slots.tolist() == slots.tolist()


def test_slots_added_while_others_book():
    """Nothing that was booked meanwhile is lost."""
    pool = sk.SlotPool(
        sk.make_slots(node=np.arange(9), start=0, end=4000, performance=1, price=1)
    )
    booked, errors, added = [], [], 60

    def add(first):
        try:
            for node in range(first, first + added):
                pool.add_slots(
                    sk.make_slots(node=node, start=0, end=1, performance=1, price=1)
                )
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(first,)) for first in (100, 200)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            window = pool.find(sk.Request(1, 2), "start")
            if window is None:
                break  # full
            pool.book(window)
            booked.append((window.nodes[0], window.start))
    finally:
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join(60)
    assert errors == []
    assert len(pool.origin) == 9 + 2 * added
    assert pool.booked[["node", "start"]].tolist() == sorted(booked)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=settings.default.max_examples // 10, deadline=None)
def test_everything_released_is_everything(seed):
    rng = np.random.default_rng(seed)
    slots = random_slots(seed)
    pool = sk.SlotPool(slots)
    for _ in range(3):
        done = pool.schedule(
            [random_request(rng) for _ in range(30)],
            str(rng.choice(list(sk.CRITERIA))),
            shape="ragged",
        )
        windows = [w for w in done if w is not None]
        rng.shuffle(windows)
        for window in windows:
            pool.release(window)
        assert pool.slots.tolist() == slots.tolist()

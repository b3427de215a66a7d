"""Tests of random operations on a pool against a reference model."""

from __future__ import annotations

import pickle

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
from pools import assert_same_but_rows, random_request, random_slots

import slotkern as sk


class NaivePool:
    """Reference model of a pool, implemented with lists and loops."""

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
            booking = self.booked.get((node, window.start))
            if booking is None or abs(booking[0] - end) > 1e-12 * abs(end):
                return False
            parts.append((node, booking))
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
    """Applies random operations to a pool and to the model, and compares both."""

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
        requests = [random_request(self.rng) for _ in range(count)]
        done = self.pool.schedule(requests, shape=shape)
        for request, window in zip(requests, done, strict=True):
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


@given(seed=st.integers(0, 10**6))
@settings(max_examples=settings.default.max_examples // 10, deadline=None)
def test_releasing_all_restores_the_pool(seed):
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

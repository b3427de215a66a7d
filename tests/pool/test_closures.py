"""Tests of closures: time is free if it is neither booked, nor closed, nor past."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import settings
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
from slotkern.files.archive import write_archive


def without(spans, cuts):
    """Return the spans (start, end) without the cuts."""
    for first, last in cuts:
        pieces = [((a, min(b, first)), (max(a, last), b)) for a, b in spans]
        spans = [(a, b) for pair in pieces for a, b in pair if a < b]
    return sorted(set(spans))


class Model:
    """Reference model that derives free time from slots, bookings and closures."""

    def __init__(self, slots):
        self.origin, self.now, self.removed = slots, -np.inf, set()
        self.booked = {}  # (node, start): (end, row)
        self.closures = []  # (node, start, end, owner, disabled)

    def spans(self, closed=True):
        """Return the free spans (node, start, end, row), or those without closures."""
        found = []
        for row, slot in enumerate(self.origin):
            node = int(slot["node"])
            if node in self.removed:
                continue
            cuts = [(-np.inf, self.now)]
            cuts += [(s, e) for (n, s), (e, r) in self.booked.items() if r == row]
            if closed:
                cuts += [(c[1], c[2]) for c in self.closures if c[0] == node]
            whole = [(float(slot["start"]), float(slot["end"]))]
            found += [(node, a, b, row) for a, b in without(whole, cuts)]
        return sorted(found, key=lambda span: (span[1], span[0]))

    @property
    def slots(self):
        spans = self.spans()
        table = self.origin[[span[3] for span in spans]]
        table["start"] = [span[1] for span in spans]
        table["end"] = [span[2] for span in spans]
        return table

    def book(self, window):
        for part in window.slots:
            node, start, end = (part[n].item() for n in ("node", "start", "end"))
            (span,) = [s for s in self.spans() if s[0] == node and s[1] <= start < s[2]]
            assert end <= span[2]
            near = span[2] - end <= 4 * 2.0**-52 * abs(end)
            self.booked[node, start] = (span[2] if near else end, span[3])

    def release(self, window):
        for node in window.nodes:
            self.booked.pop((node, window.start), None)

    def advance(self, now):
        self.now = now
        self.booked = {k: v for k, v in self.booked.items() if v[0] > now}
        self.closures = [c for c in self.closures if c[2] > now]


class ClosureMachine(RuleBasedStateMachine):
    """Applies random operations to a pool and to the model, and compares both."""

    @initialize(seed=st.integers(0, 10**6))
    def start(self, seed):
        self.rng = np.random.default_rng(seed)
        slots = random_slots(seed, nodes=int(self.rng.integers(1, 7)), slots=4)
        self.pool, self.model = sk.SlotPool(slots), Model(slots)
        self.windows, self.added = {}, 0
        # Repeating one request fills the caches of cost bounds.
        self.request = random_request(self.rng)

    def nodes(self):
        """Return a random selection of the pool's nodes."""
        ids = self.pool.nodes
        size = int(self.rng.integers(1, len(ids) + 1)) if len(ids) else 0
        return self.rng.permutation(ids)[:size]

    def span(self):
        """Return a random span that begins now or later."""
        first = float(self.rng.integers(0, 120)) / 2 + max(self.model.now, 0)
        return first, first + float(self.rng.integers(1, 80)) / 2

    def own(self, windows, owner):
        """Book windows of the pool in the model too."""
        for window in windows:
            self.model.book(window)
            self.windows[window] = owner

    @rule(
        criterion=st.sampled_from(list(sk.CRITERIA)),
        shape=st.sampled_from(["square", "ragged"]),
        owner=st.sampled_from(["ann", "bob"]),
        again=st.booleans(),
    )
    def find_and_book(self, criterion, shape, owner, again):
        request = self.request if again else random_request(self.rng)
        window = self.pool.find(request, criterion, shape=shape)
        expected = sk.find_window(self.model.slots, request, criterion, shape=shape)
        assert_same_but_rows(window, expected)
        if window is not None:
            self.pool.book(window, owner)
            self.own([window], owner)

    @rule(criterion=st.sampled_from(["start", "cost"]), count=st.integers(1, 40))
    def schedule(self, criterion, count):
        jobs = [self.request] * count
        done = self.pool.schedule(jobs, criterion, shape="ragged", owner="flow")
        for window in done:
            expected = sk.find_window(
                self.model.slots, self.request, criterion, shape="ragged"
            )
            assert_same_but_rows(window, expected)
            if window is None:
                break
            self.own([window], "flow")

    @precondition(lambda self: self.windows)
    @rule(data=st.data())
    def release(self, data):
        window = data.draw(st.sampled_from([*self.windows]))
        del self.windows[window]
        self.pool.release(window)
        self.model.release(window)

    @precondition(lambda self: len(self.pool.nodes))
    @rule(owner=st.sampled_from(["works", "fair"]))
    def reserve(self, owner):
        nodes, (first, last) = self.nodes(), self.span()
        spans = self.model.spans()
        windows = self.pool.reserve(nodes, first, last, owner=owner, partly=True)
        self.own(windows, owner)
        for node in nodes.tolist():
            free = [(a, b) for n, a, b, _ in spans if n == node]
            for a, b in without([(first, last)], free):
                if b > self.model.now:
                    self.model.closures.append((node, a, b, owner, False))

    @rule(owner=st.sampled_from(["works", "fair", "ann"]))
    def release_owner(self, owner):
        mine = [w for w, o in self.windows.items() if o == owner]
        covers = [c for c in self.model.closures if c[3] == owner and not c[4]]
        assert (owner in self.pool.owners) == bool(mine or covers)
        if not mine and not covers:
            with pytest.raises(ValueError, match="has nothing booked"):
                self.pool.release(owner)
            return
        self.pool.release(owner)
        for window in mine:
            self.model.release(window)
            del self.windows[window]
        self.model.closures = [c for c in self.model.closures if c not in covers]

    @precondition(lambda self: len(self.pool.nodes))
    @rule(ends=st.booleans(), begins=st.booleans())
    def disable(self, ends, begins):
        nodes, (first, last) = self.nodes(), self.span()
        first = first if begins else None
        last = last if ends else None
        hit = self.pool.disable(nodes, first, last)
        first = self.model.now if first is None else first
        last = np.inf if last is None else last
        for node in nodes.tolist():
            self.model.closures.append((node, first, last, "down", True))
        expected = self.hit(nodes.tolist(), first, last)
        assert hit == expected

    def hit(self, nodes, first, last):
        """Return the booked windows that use these nodes within a span."""
        return [
            window
            for window in self.windows
            if any(
                part["node"] in nodes and part["start"] < last and part["end"] > first
                for part in window.slots
            )
        ]

    @rule()
    def enable(self):
        here = self.pool.nodes
        down = sorted({c[0] for c in self.model.closures if c[4] and c[0] in here})
        up = [node for node in self.pool.nodes.tolist() if node not in down]
        if up:
            with pytest.raises(ValueError, match=f"node {up[0]} is not disabled"):
                self.pool.enable([*down[:1], up[0]])
        nodes = [n for n in self.nodes().tolist() if n in down]
        if nodes:
            self.pool.enable(nodes)
            closures = self.model.closures
            self.model.closures = [c for c in closures if c[0] not in nodes or not c[4]]

    @rule(step=st.sampled_from([0.0, 0.5, 3.0, 20.0]))
    def advance(self, step):
        now = max(self.model.now, 0.0) + step
        self.pool.advance(now)
        self.model.advance(now)
        self.windows = {w: o for w, o in self.windows.items() if w.finish > now}

    @rule(seed=st.integers(0, 1000))
    def add(self, seed):
        self.added += 1
        more = random_slots(seed, nodes=3, slots=2)
        more["start"] += 1000 * self.added
        more["end"] += 1000 * self.added
        known = {int(s["node"]): s["performance"] for s in self.model.origin}
        for slot in more:
            slot["performance"] = known.setdefault(
                int(slot["node"]), slot["performance"]
            )
        more = more[~np.isin(more["node"], [*self.model.removed])]
        if self.rng.random() < 0.5 and len(more):  # starts within closures
            more = more[more["start"] < 1000 * self.added + 20]
        if len(more):
            self.pool.add_slots(more)
            self.model.origin = np.concatenate([self.model.origin, more])

    @precondition(lambda self: len(self.pool.nodes) > 2)
    @rule()
    def remove(self):
        node = int(self.rng.choice(self.pool.nodes))
        self.pool.remove_node(node)
        model = self.model
        model.removed.add(node)
        model.booked = {k: v for k, v in model.booked.items() if k[0] != node}

    @rule(
        way=st.sampled_from([sk.SlotPool.copy, lambda p: pickle.loads(pickle.dumps(p))])
    )
    def copy(self, way):
        self.pool = way(self.pool)

    @rule()
    def list_bookings(self):
        nodes, (first, last) = self.nodes(), self.span()
        table = (
            self.pool.bookings(nodes=nodes, during=(first, last)) if len(nodes) else []
        )
        expected = self.hit(nodes.tolist(), first, last)
        assert [row["start"] for row in table] == [w.start for w in expected]

    @invariant()
    def same(self):
        if not hasattr(self, "pool"):
            return
        model, pool = self.model, self.pool
        assert pool.slots.tolist() == model.slots.tolist()
        closed = [(*row,) for row in pool.closed.tolist()]
        assert sorted(closed) == sorted(model.closures)
        assert pool.windows() == [*self.windows]
        # Free, booked and closed time together are all time of the slots.
        table = pool.booked
        assert (table["owner"] != "").all()
        everything = np.concatenate([table["node"], pool.slots["node"]])
        starts = np.concatenate([table["start"], pool.slots["start"]])
        ends = np.concatenate([table["end"], pool.slots["end"]])
        order = np.lexsort((starts, everything))
        for i, j in pairwise(order.tolist()):
            assert everything[i] != everything[j] or ends[i] <= starts[j]
        left = [s for s in model.origin if int(s["node"]) not in model.removed]
        whole = sum(max(s["end"] - max(s["start"], model.now), 0) for s in left)
        starts = np.maximum(starts, model.now)
        assert (ends - starts).sum() == pytest.approx(whole)


ClosureMachine.TestCase.settings = settings(
    max_examples=settings.default.max_examples // 10,
    stateful_step_count=20,
    deadline=None,
)
TestClosureMachine = ClosureMachine.TestCase


@pytest.fixture
def pool():
    slots = sk.make_slots(node=[0, 1, 2], start=0, end=20, performance=1, price=1)
    pool = sk.SlotPool(slots)
    pool.book(pool.find(sk.Request(2, 6, name="x")), owner="ann")
    return pool


def test_reservation_closes_time_released_later(pool):
    pool.reserve([0, 1, 2], 4, 10, owner="down", partly=True)
    assert pool.closed.tolist() == [
        (0, 4, 6, "down", False),
        (1, 4, 6, "down", False),
    ]
    pool.release("ann")
    assert pool.find(sk.Request(1, 5)).start == 10
    assert set(pool.booked["owner"]) == {"down"}
    assert pool.owners == ["down"]
    pool.release("down")
    assert pool.slots.tolist() == pool.origin.tolist()
    assert not len(pool.closed)


def test_reservation_needs_an_owner(pool):
    pool.reserve([0], 4, 10, partly=True)
    assert not len(pool.closed)


def test_files_contain_closures(pool, tmp_path):
    path = tmp_path / "pool.npz"
    pool.advance(1)
    pool.disable([0, 2], 2, 9, owner="rack")
    pool.release("ann")
    pool.save(path)
    later = sk.SlotPool.load(path)
    for name in ("slots", "booked", "closed", "origin"):
        assert getattr(later, name).tolist() == getattr(pool, name).tolist()
    with pytest.raises(ValueError, match=r"'rack' has nothing booked.*enable opens"):
        later.release("rack")
    later.enable([0, 2])
    assert later.slots["start"].tolist() == [1, 1, 1]
    assert later.slots["end"].tolist() == [20, 20, 20]
    with np.load(path) as whole:
        arrays = dict(whole)
    bad = {
        "closed": np.zeros(3),
        "held": np.zeros(0, "i4,f8"),
    }
    for name, value in bad.items():
        with open(path, "wb") as file:
            write_archive(file, arrays | {name: value})
        with pytest.raises(ValueError, match="not a complete slotkern pool"):
            sk.SlotPool.load(path)
    with open(path, "wb") as file:
        write_archive(file, {k: v for k, v in arrays.items() if k != "closed"})
    with pytest.raises(ValueError, match="its node is not closed"):
        sk.SlotPool.load(path)


def test_cached_cost_bounds_stay_valid(pool):
    """Search for many cheapest windows while nodes are disabled and enabled."""
    slots = random_slots(7, nodes=60, slots=12)
    pool, job = sk.SlotPool(slots), sk.Request(3, 8)
    rng = np.random.default_rng(7)
    for _ in range(60):
        pool.schedule([job] * 4, "cost", shape="ragged", owner="flow")
        node = rng.choice(slots["node"])
        if node in pool.closed["node"]:
            pool.enable(node)
        else:
            for window in pool.disable(node):
                pool.release(window)
        found = pool.find(job, "cost", shape="ragged")
        expected = sk.find_window(pool.slots, job, "cost", shape="ragged")
        assert_same_but_rows(found, expected)


def test_invalid_closures_are_rejected(pool):
    for nodes, words in (
        ([7], "node 7 is not in the pool"),
        ([0, 0], "a node occurs twice"),
    ):
        with pytest.raises(ValueError, match=words):
            pool.disable(nodes)
    with pytest.raises(ValueError, match="end 2 does not lie after start 5"):
        pool.disable([0], 5, 2)
    with pytest.raises(TypeError, match="owner must be text"):
        pool.disable([0], owner=3)
    with pytest.raises(ValueError, match="node 1 is not disabled"):
        pool.enable([1])
    with pytest.raises(TypeError, match="pair"):
        pool.bookings(during=5)
    assert not len(pool.closed)


def test_release_by_owner_name(pool):
    pool.book(pool.find(sk.Request(1, 2, name="y")), owner="ann")
    with pytest.raises(ValueError, match="'ann' has booked nothing for 'z'"):
        pool.release("ann", name="z")
    with pytest.raises(TypeError, match="give the owner first"):
        pool.release(pool.windows()[0], name="y")
    pool.release("ann", name="x")
    assert pool.bookings()["name"].tolist() == ["y"]

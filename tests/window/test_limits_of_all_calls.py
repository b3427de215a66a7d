"""Tests of limits on sums in pools, streams, alternatives, batches and explain."""

from __future__ import annotations

import math
import operator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SHAPES

import slotkern as sk

LIMITS = ("sum(storage) >= 230", "sum(power * length) <= 30")


def some_slots(seed, nodes=14, slots=60):
    rng = np.random.default_rng(seed)
    node = rng.integers(0, nodes, slots)
    start = np.floor(rng.uniform(0, 60, slots))
    performance = rng.choice([1.0, 2.0, 3.0], nodes)
    order = np.lexsort((node, start))
    node, start = node[order], start[order]
    end = start + np.floor(rng.uniform(4, 30, slots))
    for k in range(nodes):  # the slots of a node end before those of the next begin
        mine = np.flatnonzero(node == k)
        end[mine[:-1]] = np.minimum(end[mine[:-1]], start[mine[1:]])
    kept = end > start
    return sk.make_slots(
        node=node[kept],
        start=start[kept],
        end=end[kept],
        performance=performance[node[kept]],
        price=rng.integers(1, 9, kept.sum()),
        storage=rng.integers(10, 100, kept.sum()),
        power=rng.integers(1, 9, kept.sum()) / 2,
    )


def sums_of(slots, window):
    """Return the total storage and the total energy of a window."""
    parts = window.slots
    chosen = slots[parts["row"]]
    lengths = np.array([part["end"] - part["start"] for part in parts])
    return chosen["storage"].sum(), (chosen["power"] * lengths).sum()


def assert_meets_limits(slots, window):
    storage, energy = sums_of(slots, window)
    assert storage >= 230
    assert energy <= 30 + 1e-9


def facts(window):
    if window is None:
        return None
    return window.value, window.start, window.cost, window.nodes


JOB = sk.Request(3, 6, limits=LIMITS)


@pytest.mark.parametrize("shape", SHAPES)
def test_limits_change_the_windows(shape):
    slots = some_slots(1)
    for criterion in sk.CRITERIA:
        window = sk.find_window(slots, JOB, criterion, shape=shape)
        assert_meets_limits(slots, window)
    free = sk.find_window(slots, JOB.replace(limits=None), "cost", shape=shape)
    assert facts(free) != facts(sk.find_window(slots, JOB, "cost", shape=shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_limits_in_a_changed_pool(shape):
    slots = some_slots(2)
    pool = sk.SlotPool(slots)
    for criterion in ("start", "cost", "power"):
        pool.book(pool.find(sk.Request(2, 5), "start"))
        window = pool.find(JOB, criterion, shape=shape)
        again = sk.find_window(pool.slots, JOB, criterion, shape=shape)
        assert facts(window) == facts(again)
        if window is not None:
            assert_meets_limits(slots, window)
    with pytest.raises(ValueError, match="the pool has changed"):
        pool.find(JOB.replace(limits=[sk.Limit(slots["power"], "<=", 9)]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("criterion", sk.CRITERIA)
def test_schedule_with_limits(shape, criterion):
    slots = some_slots(3)
    jobs = [JOB, sk.Request(2, 5), JOB.replace(nodes=2), JOB.replace(volume=4)] * 3
    done = sk.SlotPool(slots).schedule(jobs, criterion, shape=shape)
    pool = sk.SlotPool(slots)
    for job, window, reason in zip(jobs, done, done.reasons, strict=True):
        expected = pool.find(job, criterion, shape=shape)
        assert facts(window) == facts(expected)
        if expected is not None:
            pool.book(expected)
        else:
            freer = pool.find(job.replace(limits=None), "first", shape=shape)
            assert (reason == "limits") == (freer is not None)
    assert "limits" in done.reasons
    start = JOB.replace(limits="sum(start) <= 9")
    with pytest.raises(ValueError, match="without start and end"):
        pool.schedule([start])


@pytest.mark.parametrize("shape", SHAPES)
def test_find_windows_with_limits(shape):
    slots = some_slots(4)
    jobs = [JOB.replace(limits=f"sum(storage) >= {k}") for k in range(0, 300, 2)]
    for criterion in ("cost", "start"):
        many = sk.find_windows(slots, jobs, criterion, shape=shape, threads=2)
        single = [sk.find_window(slots, job, criterion, shape=shape) for job in jobs]
        assert list(many) == single
        assert None in single


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("criterion", ["first", "cost", "power"])
def test_alternatives_with_limits(shape, criterion):
    published = pytest.importorskip("slotkern.published.alternatives")
    slots = some_slots(5)
    for job in (JOB, JOB.replace(limits=[sk.Limit(slots["storage"], ">=", 230)])):
        found = sk.find_alternatives(slots, job, criterion, shape=shape)
        words = JOB.replace(limits=LIMITS if job is JOB else LIMITS[0])
        table, expected = slots, []
        while window := sk.find_window(table, words, criterion, shape=shape):
            expected.append(facts(window))
            parts = window.slots
            table, _ = published.cut(table, parts["row"], window.start, parts["end"])
        assert [facts(window) for window in found] == expected
        assert len(expected) > 1


def test_batches_with_limits():
    slots = some_slots(6)
    jobs = {
        "name": ["a", "b", "c"],
        "nodes": [3, 2, 2],
        "volume": [6.0, 5.0, 5.0],
        "limits": [" and ".join(LIMITS), "sum(storage) >= 150", ""],
    }
    batch = sk.Batch.from_jobs(jobs)
    assert [len(job.limits) for job in batch.requests] == [2, 1, 0]
    assert batch.requests[0].limits == JOB.limits
    for policy in (sk.CSS, sk.BatchSlicer(2), sk.Backfilling()):
        done = sk.schedule_batch(slots, batch, policy)
        windows = list(done)
        assert windows[0] is not None
        assert_meets_limits(slots, windows[0])
        assert sums_of(slots, windows[1])[0] >= 150


@pytest.mark.parametrize("shape", SHAPES)
def test_explain_names_the_nearest_attainable_amount(shape):
    slots = some_slots(7)
    job = JOB.replace(limits=["sum(storage) >= 1000", "sum(power * length) <= 40"])
    why = sk.explain(slots, job, shape=shape)
    assert not why.fits
    assert list(why.sums) == [0]
    assert why.without == ["limits"]
    amount = why.sums[0]
    assert f"with sum(storage) >= {amount:g}" in str(why)
    assert why.changes()["limits[0]"] == amount

    def fits(storage):
        limits = [sk.Limit("storage", ">=", storage), job.limits[1]]
        other = job.replace(limits=limits)
        return sk.find_window(slots, other, "first", shape=shape) is not None

    assert fits(amount)
    assert not fits(amount * (1 + 2.0**-49))
    both = JOB.replace(limits=["sum(storage) >= 1000", "sum(power * length) <= 0"])
    why = sk.explain(slots, both, shape=shape)
    assert why.sums == {}
    assert why.without == ["limits"]
    assert list(why.beyond) == [0, 1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (("storage", ">=", 1000), "at most"),
        (("storage", "<=", -1), "at least"),
        (("0 * power", "<=", 0), None),
        (("power * length", "<=", 1e-3), "at least"),
    ],
)
def test_explain_unattainable_amounts(shape, limit, words):
    slots, limit = some_slots(7), sk.Limit(*limit)
    job = sk.Request(3, 6, budget=1, limits=[limit, "sum(storage) <= 1e6"])
    for criterion in sk.CRITERIA:
        assert sk.find_window(slots, job, criterion, shape=shape) is None
    why = sk.explain(slots, job, shape=shape)
    assert not why.fits
    if words is None:
        assert why.beyond == {}
        return
    assert list(why.beyond) == [0]
    amount = why.beyond[0]
    assert f"{str(amount).removesuffix('.0')} {words}" in str(why)
    free = job.replace(budget=math.inf)

    def fits(amount):
        limits = [sk.Limit(limit.of, limit.side, amount)]
        other = free.replace(limits=limits)
        return sk.find_window(slots, other, "first", shape=shape) is not None

    away = 2.0**-49 if limit.side == ">=" else -(2.0**-49)
    assert fits(amount)
    assert not fits(amount * (1 + away))


def test_explain_limit_on_zero_column():
    slots = sk.make_slots(node=range(4), start=0, end=9, performance=1, price=1, gb=0)
    job = sk.Request(2, 4, limits="sum(gb) >= 1")
    assert sk.find_window(slots, job, "cost") is None
    why = sk.explain(slots, job)
    assert why.beyond == why.sums == {0: 0.0}
    assert why.to_dict()["beyond"] == {0: 0.0}


def test_explain_limit_on_array():
    slots = some_slots(7)
    job = JOB.replace(limits=[sk.Limit(slots["power"], "<=", 0.5)])
    words = JOB.replace(limits="sum(power) <= 0.5")
    assert sk.explain(slots, job).sums == sk.explain(slots, words).sums != {}


def test_explain_more_nodes_meet_a_limit():
    slots = sk.make_slots(node=range(4), start=0, end=9, performance=1, price=1, gb=10)
    job = sk.Request(5, 4, limits="sum(gb) >= 40")
    why = sk.explain(slots, job)
    assert why.together == why.most_nodes == 4
    assert sk.explain(slots, job.replace(budget=15)).most_nodes == 0


@pytest.mark.parametrize("nodes", [1, 6, 8, 9, 14, 17, 25])
@pytest.mark.parametrize(
    ("limit", "fit"),
    [("sum(gb) >= 90", range(9, 21)), ("90 <= sum(gb) <= 160", range(9, 17))],
)
def test_explain_reports_nearest_number_of_nodes(nodes, limit, fit):
    slots = sk.make_slots(node=range(20), start=0, end=9, performance=1, price=1, gb=10)
    why = sk.explain(slots, sk.Request(nodes, 4, limits=limit))
    assert why.most_nodes == fit[-1]
    assert why.nearest_nodes == min(fit, key=lambda n: abs(n - nodes))
    assert why.fits == (nodes in fit)
    if not why.fits:
        assert why.changes()["nodes"] == why.nearest_nodes
        assert f"with {why.nearest_nodes} nodes instead" in str(why)


def test_explain_unattainable_amounts_is_fast():
    # With hundreds of nodes of few sizes, very many sets come near an amount.
    rng = np.random.default_rng(4)
    slots = sk.make_slots(
        node=np.arange(200),
        start=rng.uniform(0, 5, 200),
        end=60,
        performance=rng.choice([1, 1.5, 2], 200),
        price=rng.uniform(1, 2, 200),
        memory=rng.choice([64, 128, 256], 200),
    )
    for n in (3, 20):
        why = sk.explain(
            slots, sk.Request(n, 8, limits=f"sum(memory) >= {256 * n + 1}")
        )
        assert why.beyond == why.sums == {0: 256.0 * n}


@given(
    st.lists(st.integers(-40, 40), min_size=2, max_size=6),
    st.sampled_from([1, 3, 0.25, 64, 0.1]),
    st.floats(-200, 200),
    st.sampled_from(["<=", ">="]),
)
def test_attainable_amounts_allow_the_same_sums(values, unit, amount, side):
    weights = np.array(values) * unit
    limit = sk.Limit(weights, side, amount)
    reachable = limit.reachable(limit.unit)
    keeps = operator.le if side == "<=" else operator.ge
    for size in range(len(values) + 1):
        for some in combinations(weights.tolist(), size):
            total = math.fsum(some)
            assert keeps(total, amount) == keeps(total, reachable)
            if limit.unit:
                assert total % limit.unit == 0
    if unit != 0.1:
        assert (limit.unit > 0) == any(values)


def test_errors_name_the_request():
    slots = some_slots(3)
    good, named = sk.Request(1, 1), sk.Request(1, 1, where="foo > 1", name="nightly")
    wrong = [
        sk.Request(1, 1, where="foo > 1"),
        sk.Request(1, 1, limits="sum(foo) <= 1"),
    ]
    for many in (
        lambda jobs: sk.find_windows(slots, jobs),
        lambda jobs: sk.SlotPool(slots).schedule(jobs),
    ):
        for request in wrong:
            with pytest.raises(ValueError, match=r"^requests\[1\]: .*no column 'foo'"):
                many([good, request])
        with pytest.raises(ValueError, match=r"^nightly: .*no column 'foo'"):
            many([good, named])

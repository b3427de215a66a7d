"""Tests of hard limits on sums: equal nodes, amounts met exactly, limited work."""

from __future__ import annotations

import contextlib
import math
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limited import Limit
from strategies import SHAPES, Case
from test_find_window import CRITERIA
from test_limited_searches import check

import slotkern as sk

LITTLE = 1_000_000  # units of work, a few milliseconds


def two_kinds(count: int) -> np.ndarray:
    """Return slots of two kinds of nodes with prices proportional to performance."""
    fast = np.arange(count) % 2 == 1
    return sk.make_slots(
        node=np.arange(count),
        start=0,
        end=100,
        performance=np.where(fast, 7.0, 2.0),
        price=np.where(fast, 2.1, 0.6),
        gb=np.arange(count) // 2 % 3 + 2.0,
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_budget_met_exactly_by_many_equal_nodes(criterion, shape):
    job = sk.Request(10, 10, budget=30, limits="sum(gb) >= 30")
    window = sk.find_window(two_kinds(72), job, criterion, shape=shape, max_work=LITTLE)
    assert window.proven
    assert window.cost == pytest.approx(30, rel=1e-15)
    assert (
        window.value
        == {
            "first": 0,
            "start": 0,
            "finish": 10 / 7,
            "runtime": 10 / 7,
            "cost": window.cost,
        }[criterion]
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("count", "nodes"), [(400, 3), (1000, 3), (1000, 30)])
def test_limit_met_exactly_by_the_least_uses(count, nodes, shape):
    slots = sk.make_slots(
        node=np.arange(count), start=0, end=100, performance=1, price=1, power=0.1
    )
    for criterion in CRITERIA:
        fits = sk.Request(nodes, 10, limits=f"sum(power) <= {nodes / 10}")
        window = sk.find_window(slots, fits, criterion, shape=shape, max_work=LITTLE)
        assert window.proven
        assert window.nodes == tuple(range(nodes))
        less = sk.Request(nodes, 10, limits=f"sum(power) <= {nodes / 10 - 0.01}")
        assert (
            sk.find_window(slots, less, criterion, shape=shape, max_work=LITTLE) is None
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("budget", [8.0, math.inf])
def test_four_kinds_of_nodes_with_successive_starts(shape, budget):
    rng = np.random.default_rng(2)
    kind = rng.integers(0, 4, 200)
    start = np.sort(rng.integers(0, 50, 200)).astype(float)
    slots = sk.make_slots(
        node=np.arange(200),
        start=start,
        end=200,
        performance=kind + 1.0,
        price=(kind + 1.0) * 0.1,
        kw=np.array([0.1, 0.2, 0.3, 0.4])[kind],
    )
    job = sk.Request(8, 10, budget=budget, limits="sum(kw) >= 2.4")
    window = sk.find_window(slots, job, "cost", shape=shape, max_work=LITTLE)
    assert window.proven
    assert window.value == pytest.approx(8, rel=1e-15)
    assert window.start == {"square": 8, "ragged": 2}[shape]


@st.composite
def cases_of_kinds(draw):
    """Draw a few kinds of nodes, and amounts in tenths that some sums meet exactly."""
    kinds = draw(
        st.lists(
            st.tuples(
                st.sampled_from([1, 2, 4, 5]),  # performance
                st.sampled_from([0.1, 0.2, 0.3]),  # price of a unit of performance
                st.integers(0, 4),  # tenths of the first limit
                st.integers(0, 9),  # and of the second
            ),
            min_size=1,
            max_size=3,
        )
    )
    of_node = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=7))
    starts = draw(
        st.lists(
            st.sampled_from([0, 0, 3]), min_size=len(of_node), max_size=len(of_node)
        )
    )
    order = np.argsort(starts, kind="stable")
    of_node = [of_node[i] for i in order]
    nodes = draw(st.integers(1, min(4, len(of_node))))
    slots = sk.make_slots(
        node=np.arange(len(of_node)),
        start=np.array(starts, float)[order],
        end=draw(st.sampled_from([8.0, 23.0, 100.0])),
        performance=[float(kind[0]) for kind in of_node],
        price=[kind[0] * kind[1] for kind in of_node],
    )
    volume = 20.0
    rows = draw(st.permutations(range(len(of_node))))[:nodes]
    limits = [
        Limit(
            [kind[2 + k] / 10 for kind in of_node],
            False,
            draw(st.sampled_from(["<=", ">="])),
            sum(of_node[row][2 + k] for row in rows) / 10,
        )
        for k in range(draw(st.integers(1, 2)))
    ]
    spent = round(sum(volume * of_node[row][1] for row in rows), 6)
    budget = draw(st.sampled_from([math.inf, spent]))
    return Case(slots, {"nodes": nodes, "volume": volume, "budget": budget}), limits


@given(cases_of_kinds())
def test_random_kinds_with_exactly_met_limits(case):
    check(*case)


def hard_then_easy(
    count: int, nodes: int, seed: int = 3
) -> tuple[np.ndarray, sk.Request]:
    """Return slots whose early sums hardly ever meet the amount and later ones do."""
    rng = np.random.default_rng(seed)
    gb = rng.random(count)
    amount = float(np.sort(gb)[count // 4 : count // 4 + nodes].sum()) + 1e-7
    fast = rng.integers(2, 9, count).astype(float)
    slots = sk.make_slots(
        node=np.arange(count + nodes),
        start=np.repeat([0.0, 10.0], [count, nodes]),
        end=np.repeat([9.0, 500.0], [count, nodes]),
        performance=np.concatenate([fast, np.full(nodes, 1.0)]),
        price=np.concatenate([rng.random(count), np.full(nodes, 3.0)]),
        gb=np.concatenate([gb, np.full(nodes, amount / nodes)]),
        worth=np.concatenate([rng.random(count), np.zeros(nodes)]),
    )
    limits = f"{amount - 1e-9} <= sum(gb) <= {amount + 1e-9}"
    return slots, sk.Request(nodes, 10, limits=limits)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("criterion", [*CRITERIA, "worth"])
def test_search_with_spent_work_returns_a_valid_bound(criterion, shape):
    slots, job = hard_then_easy(20, 4)
    best = sk.find_window(slots, job, criterion, shape=shape)
    assert best.proven
    window = sk.find_window(slots, job, criterion, shape=shape, max_work=0)
    assert not window.proven
    assert window.effort["work"] < best.effort["work"]
    assert math.isfinite(window.bound)
    if criterion == "worth":
        assert window.bound >= best.value >= window.value
    else:
        assert window.bound <= best.value <= window.value


@pytest.mark.parametrize("criterion", [*CRITERIA, "worth"])
def test_undecided_search_raises(criterion):
    slots, job = hard_then_easy(40, 5)
    slots = slots[:40]
    with pytest.raises(
        ValueError, match="within max_work = 10 units of work, and it is not"
    ):
        sk.find_window(slots, job, criterion, max_work=10)
    with pytest.raises(ValueError, match="max_work = 10 units"):
        sk.find_windows(slots, [sk.Request(1, 1), job], "start", max_work=10)


@pytest.mark.parametrize("changed", [False, True])
def test_other_threads_run_during_a_search(changed):
    slots, job = hard_then_easy(60, 7)
    pool = sk.SlotPool(slots[:60])
    if changed:
        pool.book(pool.find(sk.Request(1, 1)))
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.perf_counter()
    with contextlib.suppress(ValueError):
        sk.find_window(pool, job, "start")
    ended = time.perf_counter()
    stop.set()
    thread.join()
    middle = ended - (ended - began) / 4, began + (ended - began) / 4
    assert any(middle[1] < t < middle[0] for t in ticks)

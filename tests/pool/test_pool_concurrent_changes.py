"""Tests of pools that change during a call: threads, garbage collection, forks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import slotkern as sk
from slotkern.expressions import filters, limits


def small() -> sk.SlotPool:
    slots = sk.make_slots(
        node=[0, 1], start=0, end=100, performance=1, price=1, gb=[4, 8]
    )
    pool = sk.SlotPool(slots)
    pool.book(pool.find(sk.Request(1, 1)))
    return pool


@pytest.mark.parametrize(
    ("module", "name", "terms"),
    [
        (limits, "uses_of", {"limits": "sum(gb) >= 1000"}),
        (filters, "evaluate", {"where": "gb >= 1000"}),
    ],
)
def test_evaluated_terms_are_cached_for_their_rows(monkeypatch, module, name, terms):
    """Slots are added during the evaluation of a term, as by another thread."""
    pool = small()
    more = sk.make_slots(
        node=np.arange(2, 500), start=0, end=100, performance=50, price=1, gb=1000
    )
    real, calls = getattr(module, name), []

    def adds(*given):
        result = real(*given)
        if not calls:
            calls.append(given)
            pool.add_slots(more)
        return result

    monkeypatch.setattr(module, name, adds)
    request = sk.Request(1, 5, **terms)
    first = pool.find(request, "runtime")
    assert calls
    assert first is None  # evaluated for the rows before the addition
    again = pool.find(request, "runtime")
    assert again.nodes == (2,)
    fresh = sk.find_window(pool.slots, request, "runtime")
    assert (again.nodes, again.start) == (fresh.nodes, fresh.start)


@pytest.mark.parametrize("change", ["book", "add"])
def test_pool_changes_while_alternatives_evaluate_filter(monkeypatch, change):
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=[1, 2])
    pool, window = sk.SlotPool(slots), sk.find_window(slots, sk.Request(1, 3))
    real, calls = filters.evaluate, []

    def changes(*given):
        result = real(*given)
        if not calls:
            calls.append(given)
            if change == "book":
                pool.book(window)
            else:
                pool.add_slots(
                    sk.make_slots(node=[2], start=0, end=9, performance=1, price=3)
                )
        return result

    monkeypatch.setattr(filters, "evaluate", changes)
    found = sk.find_alternatives(pool, sk.Request(1, 3, where="price < 5"))
    assert calls
    assert len(found) >= 5


class Searches:
    """An object in a reference cycle that searches when it is collected."""

    def __init__(self, search):
        self.itself, self.search = self, search

    def __del__(self):
        self.search()


def test_finalizers_may_search_during_a_search():
    def pool(nodes):
        slots = sk.make_slots(
            node=nodes, start=0, end=100, performance=1, price=[1, 2, 3]
        )
        return sk.SlotPool(slots)

    mine, other = pool([0, 1, 2]), pool([7, 8, 9])
    job, before = sk.Request(3, 5), gc.get_threshold()
    cost, value = np.arange(1.0, 9.0), np.arange(8.0, 0.0, -1.0)

    def search():
        other.find(job, "cost")
        other.find(job, "processor_time")
        sk.choose(cost[::-1].copy(), value, 2, 30)
        sk.choose_one_each(value, cost, [0, 8], 30)

    classes = [0, 2, 5, 8]
    each = sk.choose_one_each(value, cost, classes, 12).rows.tolist()
    chosen = sk.choose(cost, value, 3, 9)
    kept = []
    gc.set_threshold(20, 2, 2)
    try:
        for _ in range(3000):
            Searches(search)
            kept.append((mine.find(job, "cost"), sk.choose(cost, value, 3, 9)))
            kept.append((mine.find(job, "processor_time"), chosen))
            assert sk.choose_one_each(value, cost, classes, 12).rows.tolist() == each
    finally:
        gc.set_threshold(*before)
    assert all(window.nodes == (0, 1, 2) for window, _ in kept)
    assert all(choice == chosen for _, choice in kept)


def test_limits_are_hashed_without_the_pool_lock(monkeypatch):
    """The hash runs Python code, which must not wait for the lock of the pool."""
    pool = small()
    real = sk.Limit.__hash__

    def searches(limit):
        assert pool.find(sk.Request(1, 1)) is not None
        return real(limit)

    monkeypatch.setattr(sk.Limit, "__hash__", searches)
    assert pool.limits_handle("sum(gb) >= 8") == pool.limits_handle("sum(gb) >= 8") == 1


def test_added_slots_invalidate_limit_handles():
    pool = small()
    assert pool.limits_handle("sum(gb) >= 8") == 1
    pool.add_slots(
        sk.make_slots(node=[2], start=0, end=9, performance=1, price=1, gb=[9])
    )
    assert pool.limits_handle("sum(gb) >= 8") == 2


AT_A_FORK = """
import gc, os
def act():
    gc.collect()                                  # destroys a pool
    pool = sk.SlotPool(slots)                     # creates one
    pool.book(pool.find(sk.Request(1, 1)))
    kept.book(kept.find(sk.Request(1, 1)))
os.register_at_fork({when}=act)
import slotkern as sk
from slotkern.expressions import filters, limits
class Holder: pass
slots = sk.make_slots(node=[0], start=0, end=99, performance=1, price=1)
kept = sk.SlotPool(slots)
kept.book(kept.find(sk.Request(1, 1)))
gc.disable()
holder = Holder()
holder.itself, holder.pool = holder, sk.SlotPool(slots)
del holder
child = os.fork()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("when", ["before", "after_in_parent", "after_in_child"])
def test_fork_hooks_may_use_pools(when):
    program = AT_A_FORK.format(when=when)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=1500
    )
    assert (run.stdout, run.returncode) == ("7\n", 0), run.stderr


def test_closures_can_be_read_while_others_change_them():
    pool = sk.SlotPool(
        sk.make_slots(node=range(200), start=0, end=9, performance=1, price=1)
    )
    stop = False

    def change(node):
        while not stop:
            for other in range(node, 200, 2):
                pool.disable(other)
            for other in range(node, 200, 2):
                pool.enable(other)

    threads = [threading.Thread(target=change, args=(node,)) for node in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for _ in range(1000):
            assert set(pool.closed["owner"]) <= {"down"}
            table = pool.booked
            assert (table["owner"] == "down").all()
            _, (_, state, *_, closures, _) = pool.__reduce__()
            assert np.isin(state["held"]["node"], closures["node"]).all()
    finally:
        stop = True
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)

"""Searches for the cheapest window that learn from those before find the same."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pools import assert_same_but_rows

import slotkern as sk


def jobs(seed, count):
    """Wide and narrow ones, with limits and without, of several octaves of work."""
    rng = np.random.default_rng(seed)
    return [
        sk.Request(
            int(rng.choice([1, 2, 5, 5, 5, 20, 60, 100])),
            float(rng.uniform(60, 320) * rng.choice([0.01, 1, 1, 1, 1, 4])),
            budget=float(rng.choice([np.inf, np.inf, 900, 4000])),
            earliest=float(rng.choice([-np.inf, -np.inf, 900])),
            deadline=float(rng.choice([np.inf, np.inf, np.inf, 2500])),
            setup=float(rng.choice([0, 0, 0, 0, 0, 3])),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_pool_that_has_learnt_finds_what_its_slots_hold(seed):
    slots = sk.generate_environment(interval=3600, cycle=seed).slots
    asked = jobs(seed, 700)
    fresh = [sk.find_window(slots, job, "cost", shape="ragged") for job in asked[:200]]
    assert sum(window is not None for window in fresh) > 100
    pool = sk.SlotPool(slots)
    for _ in range(2):
        learnt = [pool.find(job, "cost", shape="ragged") for job in asked]
        assert learnt[:200] == fresh
    for given, threads in ((pool, 2), (slots, 1)):
        many = sk.find_windows(given, asked, "cost", shape="ragged", threads=threads)
        assert list(many) == learnt
    again = pickle.loads(pickle.dumps(pool))
    assert again.find(asked[0], "cost", shape="ragged") == fresh[0]

    other = pool.copy()
    booked = 0
    for job in asked[:40]:  # what was learnt of the slots is not true of what is left
        window = pool.find(job, "cost", shape="ragged")
        left = sk.find_window(pool.slots, job, "cost", shape="ragged")
        assert_same_but_rows(window, left)
        if window is not None:
            pool.book(window)
            booked += 1
    assert booked > 20
    assert [other.find(job, "cost", shape="ragged") for job in asked[:40]] == fresh[:40]
    settled = [pool.find(job, "cost", shape="ragged") for job in asked[:60]]
    many = sk.find_windows(pool, asked[:60], "cost", shape="ragged", threads=2)
    assert list(many) == settled


def test_threads_learn_at_the_same_time():
    slots = sk.generate_environment(interval=3600, cycle=7).slots
    asked = jobs(7, 400)
    pool = sk.SlotPool(slots)
    fresh = list(sk.find_windows(slots, asked, "cost", shape="ragged"))

    def find_all(way):
        if way % 2:
            return list(sk.find_windows(pool, asked, "cost", shape="ragged", threads=3))
        return [pool.find(job, "cost", shape="ragged") for job in asked]

    with ThreadPoolExecutor(6) as crew:
        assert all(found == fresh for found in crew.map(find_all, range(12)))

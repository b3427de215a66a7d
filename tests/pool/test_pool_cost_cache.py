"""Tests that cached cost bounds do not change the cheapest windows."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pools import assert_same_but_rows

import slotkern as sk


def jobs(seed, count):
    """Return wide and narrow jobs, with and without limits, of very different work."""
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
def test_cached_bounds_do_not_change_windows(seed):
    slots = sk.generate_environment(interval=3600, cycle=seed).slots
    requests = jobs(seed, 700)
    fresh = [
        sk.find_window(slots, job, "cost", shape="ragged") for job in requests[:200]
    ]
    assert sum(window is not None for window in fresh) > 100
    pool = sk.SlotPool(slots)
    for _ in range(2):
        from_cache = [pool.find(job, "cost", shape="ragged") for job in requests]
        assert from_cache[:200] == fresh
    for given, threads in ((pool, 2), (slots, 1)):
        many = sk.find_windows(given, requests, "cost", shape="ragged", threads=threads)
        assert list(many) == from_cache
    again = pickle.loads(pickle.dumps(pool))
    assert again.find(requests[0], "cost", shape="ragged") == fresh[0]

    other = pool.copy()
    booked = 0
    for job in requests[:40]:  # bounds of all slots do not hold after a booking
        window = pool.find(job, "cost", shape="ragged")
        left = sk.find_window(pool.slots, job, "cost", shape="ragged")
        assert_same_but_rows(window, left)
        if window is not None:
            pool.book(window)
            booked += 1
    assert booked > 20
    assert [other.find(job, "cost", shape="ragged") for job in requests[:40]] == fresh[
        :40
    ]
    booked_pool = [pool.find(job, "cost", shape="ragged") for job in requests[:60]]
    many = sk.find_windows(pool, requests[:60], "cost", shape="ragged", threads=2)
    assert list(many) == booked_pool


def test_threads_fill_cost_bounds_concurrently():
    slots = sk.generate_environment(interval=3600, cycle=7).slots
    requests = jobs(7, 400)
    pool = sk.SlotPool(slots)
    fresh = list(sk.find_windows(slots, requests, "cost", shape="ragged"))

    def find_all(way):
        if way % 2:
            return list(
                sk.find_windows(pool, requests, "cost", shape="ragged", threads=3)
            )
        return [pool.find(job, "cost", shape="ragged") for job in requests]

    with ThreadPoolExecutor(6) as crew:
        assert all(found == fresh for found in crew.map(find_all, range(12)))

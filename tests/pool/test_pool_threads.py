"""A pool in the hands of several threads."""

from __future__ import annotations

import sys
import threading

import numpy as np
from pools import random_request, random_slots

import slotkern as sk


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

"""Tests of a pool that several threads use."""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np
from pools import random_request, random_slots

import slotkern as sk

C_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_double)
)


@C_FUNCTION
def taken(slot, length, value):
    value[0] = length
    return 0


def capsule_of(function):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"int (const void *, double, double *)"
    return new(ctypes.cast(function, ctypes.c_void_p), name, None)


def test_concurrent_searches_and_bookings():
    slots = random_slots(1, nodes=40, slots=20)
    pool, errors = sk.SlotPool(slots), []

    def work(seed):
        rng, booked = np.random.default_rng(seed), []
        try:
            for _ in range(150):
                window = pool.find(random_request(rng), "start")
                if window is not None:
                    try:
                        pool.book(window)
                        booked.append(window)
                    except ValueError:
                        assert window is not None  # another thread has booked the time
                if len(booked) > 3:
                    pool.release(booked.pop(0))
                if rng.random() < 0.05:
                    done = pool.schedule([random_request(rng) for _ in range(20)])
                    booked += [w for w in done if w is not None]
                    sk.find_windows(pool, [random_request(rng)] * 5, threads=2)
                    assert sk.validate_slots(pool.slots) is None
            for window in booked:
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


def test_owners_can_be_listed_during_bookings():
    pool, job, done = sk.SlotPool(random_slots(3, nodes=60, slots=30)), [], []
    for window in sk.find_alternatives(pool, sk.Request(1, 2.0), limit=300):
        pool.book(window, owner="first")
        job.append(window)

    def work():
        while not done:
            for window in job[:20]:
                pool.release(window)
                pool.book(window, owner="second")

    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(60):
            assert {*pool.booked["owner"]} <= {"", "first", "second"}
            assert len(pool.bookings()["owner"]) <= len(job)
    finally:
        done.append(True)
        thread.join(60)
        sys.setswitchinterval(interval)
    assert {*pool.booked["owner"]} == {"first", "second"}


def test_pool_changes_during_search_by_value():
    slots = random_slots(2, nodes=40, slots=20)
    pool, request = sk.SlotPool(slots), sk.Request(3, 2.0)
    best = sk.find_window(slots, request, sk.minimize(capsule_of(taken)))
    window, lengths = pool.find(request, "start"), []

    @C_FUNCTION
    def books(slot, length, value):
        lengths.append(length)
        if len(lengths) == 1:
            pool.book(window)  # as another thread could
        return taken(slot, length, value)

    found = pool.find(request, sk.minimize(capsule_of(books)))
    assert found == best
    assert len(pool.booked) == 3
    assert lengths


def test_add_slots_during_bookings():
    """Bookings made during the addition are preserved."""
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
                break  # the pool is full
            pool.book(window)
            booked.append((window.nodes[0], window.start))
    finally:
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join(60)
    assert errors == []
    assert len(pool.origin) == 9 + 2 * added
    assert pool.booked[["node", "start"]].tolist() == sorted(booked)

"""Tests of SlotPool.schedule: windows, reasons and the container of both."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from pools import random_request, random_slots

import slotkern as sk


@pytest.mark.parametrize("criterion", ["start", "cost"])
@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_schedule_equals_finding_and_booking(shape, criterion):
    rng = np.random.default_rng(4)
    slots = random_slots(3, nodes=30, slots=20)
    requests = [random_request(rng, 5) for _ in range(400)]
    one, many = sk.SlotPool(slots), sk.SlotPool(slots)
    done = many.schedule(requests, criterion, shape=shape)
    for request, window, reason in zip(requests, done, done.reasons, strict=True):
        expected = one.find(request, criterion, shape=shape)
        assert window == expected
        if expected is not None:
            one.book(expected)
            continue
        rich = request.replace(budget=np.inf)
        fits_rich = sk.find_window(one.slots, rich, "start", shape=shape) is not None
        assert reason == ("budget" if fits_rich else "time")
    assert one.slots.tolist() == many.slots.tolist()
    assert 0 < done.booked.sum() < len(requests)
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


def test_reasons_of_jobs_without_window():
    pool = sk.SlotPool(
        sk.make_slots(
            node=[0, 1, 2], start=0, end=[9, 9, 4], performance=[1, 1, 2], price=2
        )
    )
    requests = [
        sk.Request(4, 1),
        sk.Request(2, 1, min_performance=2),
        sk.Request(2, 4, budget=15),
        sk.Request(3, 5),
        sk.Request(2, 1e-300, earliest=1),
        sk.Request(2, 4),
    ]
    done = pool.schedule(requests)
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
    assert done != pool.schedule(requests)
    for index in (6, -7, 2**70):
        with pytest.raises(IndexError, match="out of range"):
            done[index]


def stopped_by(error):
    """Yield a request, then raise the error."""
    yield sk.Request(2, 4, name="first")
    raise error


@pytest.mark.parametrize("owner", [None, "ann"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ValueError("x")])
def test_error_while_requests_are_read_lists_no_bookings(error, owner):
    pool = sk.SlotPool(
        sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2)
    )
    with pytest.raises(type(error)) as stop:
        pool.schedule(stopped_by(error), owner=owner)
    assert stop.value is error
    assert list(stop.value.bookings) == stop.value.bookings.names == []
    assert len(stop.value.bookings.listing()) == 0
    assert (len(pool.booked), pool.owners) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([sk.Request(2, 4), 3],),
            r"^requests\[1\] must be a Request, AnyOf, .*, got int$",
        ),
        (([], "fast"), "^criterion must be one of"),
        (([], 3), "^criterion must be one of"),
        ((7,), "^requests must be a table, or a sequence of Request, got int$"),
        ((None,), "^requests must be a table, .* got NoneType$"),
    ],
)
def test_refused_arguments_list_no_bookings(arguments, message):
    pool = sk.SlotPool(
        sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2)
    )
    with pytest.raises((ValueError, TypeError), match=message) as stop:
        pool.schedule(*arguments)
    assert len(stop.value.bookings) == 0
    with pytest.raises((ValueError, TypeError)) as stop:
        pool.schedule([], owner=5)
    assert len(stop.value.bookings) == 0

"""Tests of free slots, clocks and owners against models in fractions and lists."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk

INF = math.inf
UP = math.nextafter

# --- free slots

#: Times that are equal, differ by an ulp, or are extreme.
TIMES = [
    *(0.0, -0.0, 1.0, UP(1.0, 2), UP(1.0, 0), 2.0, 3.0, 5.0, 7.0, 10.0),
    *(1e-150, -1e-150, 1e150, -1e150, UP(10.0, 0), UP(10.0, 20), 5e-324),
]
times = st.sampled_from(TIMES)


def plain_gaps(nodes, busy, first, last):
    """Subtract spans from [first, last) on each node one by one."""
    left = []
    for node in range(nodes):
        free = [(first, last)]
        for _, start, end in (span for span in busy if span[0] == node):
            cut = []
            for a, b in free:
                if start >= end or end <= a or start >= b:
                    cut.append((a, b))
                    continue
                cut += [(a, start)] if a < start else []
                cut += [(end, b)] if end < b else []
            free = cut
        left += [(node, *span) for span in free]
    return sorted((start, node, end) for node, start, end in left)


@given(
    busy=st.lists(
        st.tuples(st.integers(0, 2), times, st.sampled_from([*TIMES, INF])), max_size=12
    ),
    horizon=st.tuples(times, st.sampled_from([*TIMES, INF])),
    repeat=st.sampled_from([1, 1, 1, 3000]),
)
@example([(0, 0.0, 10.0), (1, -5.0, 0.0), (1, 10.0, INF)], (0.0, 10.0), 1)
def test_free_time_equals_a_span_by_span_model(busy, horizon, repeat):
    first, last = min(horizon), max(horizon)
    busy = [(node, min(a, b), max(a, b)) for node, a, b in busy]
    if not first < last:
        return
    table = {
        "node": np.array([node for node, _, _ in busy] * repeat, int),
        "start": np.array([start for _, start, _ in busy] * repeat, float),
        "end": np.array([end for _, _, end in busy] * repeat, float),
    }
    machine = sk.Machine.homogeneous(3)
    found = sk.free_slots(machine, table, start=first, end=last).slots
    assert [(slot["start"], slot["node"], slot["end"]) for slot in found] == plain_gaps(
        3, busy, first, last
    )


# --- clocks

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "+05:45"]
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
UNITS |= {"h": 3600 * 10**9, "d": 86400 * 10**9}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def plain_instants(wall, zone):
    """Return all instants of a local time, in microseconds of UTC."""
    info = dt.timezone(dt.timedelta(hours=5, minutes=45)) if zone[0] == "+" else None
    info = info or ZoneInfo(zone)
    found = set()
    for fold in (0, 1):
        utc = wall.replace(tzinfo=info, fold=fold).astimezone(dt.UTC)
        if utc.astimezone(info).replace(tzinfo=None, fold=0) == wall:
            found.add((utc - EPOCH) // dt.timedelta(microseconds=1))
    return sorted(found)


def plain_number(ns, origin_ns, unit, tick):
    """Return the number of an instant; None if it is not exact in both directions."""
    if (ns - origin_ns) % UNITS[tick] or ns % UNITS[tick]:
        return None
    since = Fraction(ns - origin_ns, UNITS[tick])
    per = UNITS[unit] // UNITS[tick]
    number = float(since / per)
    return number if round(Fraction(float(number * per))) == since else None


walls = st.one_of(
    st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29)),
    st.datetimes(dt.datetime(1677, 9, 20), dt.datetime(1677, 9, 23)),
    st.datetimes(dt.datetime(2262, 4, 10), dt.datetime(2262, 4, 13)),
    st.datetimes(dt.datetime(2026, 10, 25), dt.datetime(2026, 10, 25, 4)),
    st.datetimes(dt.datetime(2026, 3, 29), dt.datetime(2026, 3, 29, 4)),
    st.datetimes(dt.datetime(2026, 4, 4, 12), dt.datetime(2026, 4, 5, 4)),
)


@given(
    wall=walls,
    zone=st.sampled_from(ZONES),
    unit=st.sampled_from(list(UNITS)),
    tick=st.sampled_from(["s", "ms", "us", "ns"]),
    whole=st.sampled_from([1, 1000, 10**6, 60 * 10**6, 1800 * 10**6]),
)
def test_a_local_time_denotes_one_instant_or_is_refused(wall, zone, unit, tick, whole):
    if UNITS[tick] > UNITS[unit]:
        return
    past = (wall - dt.datetime(1, 1, 1)) // dt.timedelta(microseconds=1)
    wall -= dt.timedelta(microseconds=past % whole)
    origin = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    clock = sk.Clock(origin, unit=unit, zone=zone, tick=tick)
    origin_ns = (origin - EPOCH) // dt.timedelta(microseconds=1) * 1000
    instants = plain_instants(wall, zone)
    expected = None
    if len(instants) == 1:
        expected = plain_number(1000 * instants[0], origin_ns, unit, tick)
    forms = [wall.isoformat(), wall.isoformat(" "), np.datetime64(wall, "us")]
    for form in forms:
        for read in (clock.time, lambda value: clock.times(np.array([value]))[0]):
            if expected is None:
                with pytest.raises(ValueError, match="time"):
                    read(form)
            else:
                assert read(form) == expected
    for instant in instants:
        number = plain_number(1000 * instant, origin_ns, unit, tick)
        if number is not None:
            aware = EPOCH + dt.timedelta(microseconds=instant)
            assert clock.time(aware) == number
            assert clock.times([aware]).tolist() == [number]
            shown = clock.datetime(number)
            assert shown.astimezone(dt.UTC) == aware
            assert shown.replace(tzinfo=None, fold=0) == wall
            try:
                text = clock.text([number])[0]
            except ValueError:  # out of the range of datetime64
                assert tick == "ns"
                assert abs(instant) > 2**63 // 1000 - 86400 * 10**6
            else:
                assert dt.datetime.fromisoformat(text) == aware


# --- lengths and costs

sizes = st.sampled_from([0.1, 0.3, 1 / 3, 0.5, 1.0, 2.0, 3.0, 7.0, 1e-3, 1e3])


@given(
    volume=sizes,
    setup=st.one_of(st.just(0.0), sizes),
    step=st.one_of(st.just(0.0), sizes),
    pace=st.lists(sizes, min_size=1, max_size=4),
    price=sizes,
    shape=st.sampled_from(["square", "ragged"]),
    latest=st.sampled_from([INF, 0.0, 1.0]),
    most=st.sampled_from([INF, 1.0, 10.0]),
)
def test_lengths_and_costs_equal_a_model_in_fractions(
    volume, setup, step, pace, price, shape, latest, most
):
    slots = sk.make_slots(
        node=range(len(pace)), start=0, end=1e9, performance=pace, price=price
    )
    request = sk.Request(
        *(len(pace), volume),
        setup=setup,
        step=step,
        latest=latest,
        max_runtime=most,
    )
    lengths = request.length(pace).tolist()
    for speed, length in zip(pace, lengths, strict=True):
        exact = Fraction(setup) + Fraction(volume) / Fraction(speed)
        if step:
            rest = exact / Fraction(step)
            near = round(rest)
            close = abs(rest - near) <= 8 * rest * Fraction(2) ** -53
            steps = near if close and near else math.ceil(rest)
            assert length == pytest.approx(steps * step, rel=1e-15)
        else:
            assert length == pytest.approx(float(exact), rel=1e-15)
    window = sk.find_window(slots, request, "cost", shape=shape)
    runtime = max(lengths)
    if runtime > most:
        assert window is None
        return
    assert window.runtime == runtime
    run = [runtime] * len(pace) if shape == "square" else lengths
    assert window.cost == pytest.approx(
        sum(price * length for length in run), rel=1e-14
    )
    fits = request.replace(budget=window.cost)
    assert sk.find_window(slots, fits, "cost", shape=shape) == window
    less = request.replace(budget=window.cost * (1 - 2.0**-48))
    found = sk.find_window(slots, less, "cost", shape=shape)
    assert found is None or found.cost < window.cost


# --- owners


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["book", "reserve", "release", "owner", "advance", "copy", "save"]
            ),
            st.integers(0, 2),
            st.integers(0, 14),
            st.integers(1, 4),
            st.sampled_from(["alice", "bob", None]),
        ),
        max_size=9,
    )
)
def test_owners_equal_a_model_as_a_list(tmp_path_factory, steps):
    machine = sk.Machine.homogeneous(3, price=2)
    pool = sk.SlotPool(sk.free_slots(machine, start=0, end=16))
    taken = []  # (window, owner) of all bookings
    now = 0.0
    for what, node, time, length, owner in steps:
        if what == "book":
            job = sk.Request(1 + node, length, earliest=time, name=f"{time}")
            window = pool.find(job, "start")
            if window is not None:
                pool.book(window, owner=owner)
                taken.append((window, owner))
        elif what == "reserve":
            # A reservation with an owner covers released time: see tests/pool.
            for window in pool.reserve(node, time, time + length, partly=True):
                taken.append((window, None))
        elif what == "release" and taken:
            window, _ = taken.pop(time % len(taken))
            pool.release(window)
        elif what == "owner" and owner in pool.owners:
            pool.release(owner)
            taken = [pair for pair in taken if pair[1] != owner]
        elif what == "advance":
            now = max(now, float(min(time, 3)))
            pool.advance(now)
            taken = [pair for pair in taken if pair[0].finish > now]
        elif what == "copy":
            trial = pool.copy()
            for each in trial.owners:
                trial.release(each)
            pool = pool.copy()
        elif what == "save":
            path = tmp_path_factory.mktemp("pool") / "pool.npz"
            pool.save(path)
            pool = sk.SlotPool.load(path)
        owned = [(window, owner) for window, owner in taken if owner is not None]
        assert sorted(pool.owners) == sorted({owner for _, owner in owned})
        listed = [*zip(pool.windows(), pool.bookings()["owner"], strict=True)]
        assert sorted(listed, key=str) == sorted(owned, key=str)
        spans = {
            (part["node"], part["start"], part["end"], owner or "")
            for window, owner in taken
            for part in window.slots
            if part["end"] > now
        }
        assert {
            (p["node"], p["start"], p["end"], str(p["owner"])) for p in pool.booked
        } == spans
        halves = {
            (node, half / 2) for node in range(3) for half in range(int(2 * now), 32)
        } - {
            (node, half / 2)
            for node, start, end, _ in spans
            for half in range(int(2 * start), int(2 * end))
        }
        assert halves == {
            (slot["node"], half / 2)
            for slot in pool.slots
            for half in range(int(2 * slot["start"]), int(2 * slot["end"]))
        }

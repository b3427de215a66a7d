"""Tests that the fast path for common dates and durations equals the slow path."""

from __future__ import annotations

import contextlib
import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk
from slotkern._moments import parse_quickly
from slotkern.machine.durations import read_duration
from slotkern.machine.moments import read_moment

ZONES = ("Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "UTC")


def fields_of(read, value):
    """Return the fields of the parsed value; None if it is refused."""
    try:
        found = read(value)
    except ValueError:
        return None
    return found.ns, getattr(found, "aware", None), getattr(found, "fold", None)


def same(value, lasts, known):
    """Assert that the fast path agrees with the slow one if it accepts the value."""
    quick = parse_quickly(value, lasts)
    if known:
        assert quick is not None
    if quick is not None:
        slow = fields_of(read_duration if lasts else read_moment, value)
        assert fields_of(lambda _: quick, value) == slow
        assert quick.text == str(value)


@given(
    when=st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 12, 31)),
    zone=st.sampled_from([None, "Z", "+05:30", "-12:00"]),
    separator=st.sampled_from(" T"),
    timespec=st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_common_dates_take_the_fast_path(when, zone, separator, timespec):
    text = when.isoformat(separator, timespec) + (zone or "")
    same(text, False, known=True)
    same(text[:10], False, known=True)


@given(st.text("0123456789-+:. TZhmsdinPu", max_size=22))
@example("2026-10-25 18:00:00.1234567891")
@example("2026-10-25 18:00:00.")
@example("2026-02-29")
@example("2026-10-25 24:00")
@example("2026-10-25 18:00+24:00")
@example("1-24:00:00")
@example("99999d99999h")
@example("5m5min")
@example("3msec")
@example("2h 30min")
def test_the_fast_path_agrees_on_any_text_that_it_accepts(text):
    for lasts in (False, True):
        same(text, lasts, known=False)


@given(
    when=st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2300, 1, 1)),
    zone=st.sampled_from(ZONES),
    fold=st.sampled_from([0, 1]),
)
@example(dt.datetime(2026, 10, 25, 2, 30), "Europe/Berlin", 1)
@example(dt.datetime(2026, 3, 29, 2, 30), "Europe/Berlin", 0)
@example(dt.datetime(2011, 12, 30, 2, 30), "Pacific/Apia", 0)
def test_the_fast_path_agrees_on_datetimes(when, zone, fold):
    for info in (None, dt.UTC, dt.timezone(dt.timedelta(hours=-3)), ZoneInfo(zone)):
        same(when.replace(tzinfo=info, fold=fold), False, known=False)
    clock = sk.Clock("2000-01-01T00:00Z", zone=zone)
    naive = when.replace(fold=fold)
    slow = read_moment(naive)
    try:
        expected = clock._float(
            clock._ticks(slow, "time") - clock._origin, "time", slow.text
        )
    except ValueError:
        with pytest.raises(ValueError, match="time: "):
            clock.time(naive)
    else:
        assert clock.time(naive) == expected


@given(
    count=st.integers(-(2**63) + 1, 2**63 - 1),
    unit=st.sampled_from(["D", "h", "m", "s", "ms", "us", "ns", "3h"]),
)
def test_the_fast_path_agrees_on_numpy_values(count, unit):
    same(np.array(count).view(f"m8[{unit}]")[()], True, known=False)
    if unit in ("ms", "us", "ns"):  # in other units the value may exceed year 9999
        same(np.array(count).view(f"M8[{unit}]")[()], False, known=False)


@given(st.timedeltas(dt.timedelta(0)))
def test_the_fast_path_agrees_on_timedeltas(length):
    same(length, True, known=False)


def test_requests_accept_numpy_dates_and_durations():
    machine = sk.Machine.homogeneous(2)
    free = sk.free_slots(machine, start="2026-10-24", end="2026-10-27", zone="UTC")
    window = sk.find_window(
        free,
        sk.Request(
            2,
            walltime=np.timedelta64(90, "m"),
            earliest=np.datetime64("2026-10-25T12:00"),
            deadline=np.datetime64("2026-10-26"),
        ),
    )
    assert (window.start, window.runtime) == (36 * 3600, 5400)
    for wrong in (np.array(5, "m8[s]"), np.datetime64(1, "s")):
        with pytest.raises(TypeError, match="walltime must be a timedelta"):
            sk.Request(1, walltime=wrong)


def test_zones_of_other_libraries():
    times = ["2026-10-24 12:00", "2026-10-26 12:00"]
    expected = sk.Clock("2026-10-24", zone="Europe/Berlin").times(times).tolist()
    zones = [pytest.importorskip("dateutil.tz").gettz("Europe/Berlin")]
    with contextlib.suppress(ModuleNotFoundError):
        zones.append(__import__("pytz").timezone("Europe/Berlin"))
    for zone in zones:
        clock = sk.Clock("2026-10-24", zone=zone)
        assert clock.times(times).tolist() == expected
        assert [clock.time(time) for time in times] == expected
        aware = [clock.datetime(number) for number in expected]
        assert [clock.time(time) for time in aware] == expected

"""Tests of clocks: times and durations are exact in both directions, or refused."""

from __future__ import annotations

import datetime as dt
import pickle
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk
from slotkern.machine.calendar import (
    Moments,
    duration_of,
    instants,
    moment_of,
    moments_of,
)
from slotkern.machine.zones import offsets_of

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # changes its clocks by half an hour
    "Pacific/Apia",  # skipped a day
    "Asia/Kolkata",
    "Africa/Casablanca",
    "UTC",
)
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
ORIGIN = dt.datetime(2026, 10, 24, tzinfo=dt.UTC)
near = st.integers(-40 * 366 * 86400 * 10**6, 40 * 366 * 86400 * 10**6)


@pytest.fixture
def clock():
    return sk.Clock("2026-10-24", zone="Europe/Berlin")


def attempt(call, value):
    """Return the result of a call and the message of its ValueError."""
    try:
        return call(value), ""
    except ValueError as error:
        return None, str(error)


@given(us=near, unit=st.sampled_from(["s", "min", "h", "d", "ms", "us"]))
def test_every_microsecond_of_40_years_is_exact_or_refused(us, unit):
    clock = sk.Clock(ORIGIN, unit=unit, zone="UTC")
    when = ORIGIN + dt.timedelta(microseconds=us)
    time, error = attempt(clock.time, when)
    if error:
        assert unit in (
            "min",
            "h",
            "d",
        )  # a microsecond is not exact in float64 in these units
        assert "cannot be held exactly" in error
        return
    scale = {"ms": Fraction(1, 1000), "us": Fraction(1, 10**6), **UNITS}[unit]
    assert time == float(Fraction(us, 10**6) / scale)  # rounded once
    assert clock.datetime(time) == when
    assert clock.utc([time])[0] == np.datetime64(when.replace(tzinfo=None), "us")


@given(us=near)
def test_seconds_near_the_origin_are_never_refused(us):
    clock = sk.Clock(ORIGIN)
    assert clock.datetime(
        clock.time(ORIGIN + dt.timedelta(microseconds=us))
    ) == ORIGIN + dt.timedelta(microseconds=us)


@given(
    ticks=st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=20),
    form=st.sampled_from(["s", "ms", "us", "ns"]),
    tick=st.sampled_from(["s", "ms", "us", "ns"]),
    unit=st.sampled_from(["s", "min", "h", "d"]),
)
@example([2**34], "s", "ns", "s")
def test_a_column_is_converted_like_its_single_values(ticks, form, tick, unit):
    clock = sk.Clock(ORIGIN, unit=unit, zone="UTC", tick=tick)
    column = np.array(ticks, "i8").view(f"M8[{form}]")
    single = [attempt(clock.time, value)[0] for value in column]
    found, error = attempt(clock.times, column)
    if error:
        assert f"row {single.index(None)}:" in error
    else:
        assert found.tolist() == single
        back, error = attempt(clock.utc, found)
        held = [abs(k) * NANOSECONDS[form] < 2**63 * NANOSECONDS[tick] for k in ticks]
        if all(held):
            assert (back == column).all()
        else:
            assert f"time {single[held.index(False)]!r} lies beyond" in error


NANOSECONDS = {
    **{"W": 604_800 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9},
    **{"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1},
    **{f: Fraction(1, 1000**k) for k, f in enumerate(("ps", "fs", "as"), 1)},
}


def plain_nanoseconds(count, unit):
    """Convert a datetime64 without numpy; months use the cycle of 400 years."""
    if unit in NANOSECONDS:
        return count * NANOSECONDS[unit]
    since_1600 = count * (12 if unit == "Y" else 1) + 370 * 12
    ages, months = divmod(since_1600, 400 * 12)
    first = dt.date(1600 + months // 12, 1 + months % 12, 1)
    days = (first - dt.date(1970, 1, 1)).days + 146_097 * ages
    return days * NANOSECONDS["D"]


@given(
    counts=st.lists(
        st.integers(-3000, 3000)
        | st.integers(-(10**15), 10**15)
        | st.integers(1 - 2**63, 2**63 - 1),
        min_size=1,
        max_size=8,
    ),
    unit=st.sampled_from(["Y", "M", *NANOSECONDS]),
    step=st.sampled_from([1, 1, 7, 1000]),
)
@example([2**55], "h", 1)
@example([2**55], "Y", 1)
@example([10**10, 5], "D", 7)
@example([-1000, 999], "ps", 1)
@example([2**53, 2**61], "ps", 1000)
def test_every_unit_of_numpy_is_exact_or_refused(counts, unit, step):
    column = np.array(counts, "i8").view(f"M8[{step}{unit}]")
    want = [plain_nanoseconds(count * step, unit) for count in counts]
    base = (
        unit if unit in ("s", "ms", "us", "ns") else "ns" if unit[-1:] == "s" else "s"
    )
    bad = [ns % 1 != 0 or abs(ns) >= 2**63 * NANOSECONDS[base] for ns in want]
    for value, ns, wrong in zip(column, want, bad, strict=True):
        if wrong:
            with pytest.raises(
                ValueError, match=r"^end: .* is (out of the range|finer)"
            ):
                moment_of(value, "end")
        else:
            assert moment_of(value, "end").ns == ns
    if any(bad):
        with pytest.raises(ValueError, match=f"^end, row {bad.index(True)}: "):
            moments_of(column, "end")
    else:
        found = moments_of(column, "end").values
        per = NANOSECONDS[np.datetime_data(found.dtype)[0]]
        assert [int(value) * per for value in found.view("i8")] == want


@given(
    zone=st.sampled_from(ZONES),
    start=st.integers(-(10**9), 4 * 10**9),
    steps=st.lists(st.integers(0, 86400 * 400), min_size=1, max_size=30),
)
def test_local_times_of_a_column_equal_those_of_zoneinfo(zone, start, steps):
    info = ZoneInfo(zone)
    utc = np.sort(np.array([start + s for s in steps], "i8")).view("M8[s]")
    offsets = offsets_of(utc, info)
    aware = [
        dt.datetime.fromtimestamp(int(t), dt.UTC).astimezone(info)
        for t in utc.astype(int)
    ]
    assert offsets.tolist() == [t.utcoffset().total_seconds() for t in aware]
    local = utc + offsets.astype("m8[s]")
    fold = np.array([bool(t.fold) for t in aware])
    back = instants(Moments(local, False, fold), info, "times")
    assert (back == utc).all()
    clock = sk.Clock("2000-01-01T00:00Z", zone=zone)
    assert clock.times(aware).tolist() == [clock.time(t) for t in aware]
    assert [
        dt.datetime.fromisoformat(t) for t in clock.text(clock.times(aware))
    ] == aware
    naive = [t.replace(tzinfo=None) for t in aware]  # with their fold
    assert [clock.time(t) for t in naive] == clock.times(aware).tolist()
    assert clock.times(naive).tolist() == clock.times(aware).tolist()


@pytest.mark.parametrize("zone", ZONES)
def test_skipped_and_repeated_hours_are_refused(zone):
    info, clock = ZoneInfo(zone), sk.Clock("2000-01-01T00:00Z", zone=zone)
    hours = np.arange("2011-01-01", "2012-02-01", 1800, dtype="M8[s]")
    for wall in hours:
        naive = wall.item()
        first, second = (
            naive.replace(tzinfo=info, fold=f).astimezone(dt.UTC) for f in (0, 1)
        )
        exists = first.astimezone(info).replace(tzinfo=None) == naive
        if first == second:
            assert clock.time(wall) == clock.time(first)
        else:
            words = "occurs twice" if exists else "does not exist"
            with pytest.raises(ValueError, match=words):
                clock.time(wall)
            with pytest.raises(ValueError, match=f"times, row 1: .* {words}"):
                clock.times(np.array([hours[0], wall]))


def test_times_around_a_change_of_clocks(clock):
    assert clock.time("2026-10-26") == 49 * 3600
    first, second = "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"
    assert clock.time(second) - clock.time(first) == 3600
    naive = dt.datetime(2026, 10, 25, 2, 30)
    assert clock.time(naive) == clock.time(first)
    assert clock.time(naive.replace(fold=1)) == clock.time(second)
    assert clock.datetime(clock.time(second)).isoformat() == "2026-10-25T02:30:00+01:00"
    with pytest.raises(
        ValueError, match="earliest: 2026-03-29 02:30 does not exist in"
    ):
        clock.time("2026-03-29 02:30", "earliest")
    with pytest.raises(ValueError, match="does not exist"):
        clock.time(dt.datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN))


def test_all_forms_of_a_date_give_the_same_number(clock):
    wall = "2026-11-20 18:00:00.25"
    when = dt.datetime.fromisoformat(wall).replace(tzinfo=BERLIN)
    forms = [
        wall,
        "2026-11-20T17:00:00.250Z",
        "2026-11-20T18:00:00.250000000+01:00",
        when,
        when.replace(tzinfo=None),
        when.astimezone(dt.UTC),
        pd.Timestamp(wall),
        pd.Timestamp(wall, tz="Asia/Kolkata").tz_convert("UTC") + pd.Timedelta("4.5h"),
        *(np.datetime64(wall).astype(f"M8[{u}]") for u in ("ms", "us", "ns")),
    ]
    assert {clock.time(form) for form in forms} == {clock.time(when)}
    assert clock.time(dt.date(2026, 11, 20)) == clock.time(np.datetime64("2026-11-20"))
    assert clock.time(17) == 17
    assert clock.time(float("inf")) == float("inf")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "Asia/Kolkata"])
def test_columns_of_all_libraries(clock, unit, zone):
    series = pd.Series(pd.date_range("2026-10-24", periods=5, freq="7h"))
    series = series.dt.tz_localize(zone, ambiguous=True) if zone else series
    if zone is None:
        series = series.drop(index=4)  # without the hour that occurs twice
    series = series.dt.as_unit(unit)
    expected = [clock.time(t) for t in series]
    table = pa.table({"t": pa.array(series)})
    index = pd.DatetimeIndex(series)
    chunk = table["t"].combine_chunks()
    for column in (series, series.tolist(), index, index.array, table["t"], chunk):
        assert clock.times(column).tolist() == expected
    if unit != "s":  # polars lacks seconds
        assert clock.times(pl.from_arrow(table)["t"]).tolist() == expected
    text = [t.isoformat() for t in series]
    assert clock.times(text).tolist() == expected
    assert clock.times(pd.Series(text)).tolist() == expected
    assert clock.times(pl.Series(text)).tolist() == expected


def test_missing_times(clock):
    for column in (
        pd.Series([pd.Timestamp("2026-10-26"), pd.NaT]),
        pl.Series([dt.datetime(2026, 10, 26), None]),
        [dt.datetime(2026, 10, 26), None],
        ["2026-10-26", None],
    ):
        assert clock.times(column, missing=np.inf).tolist() == [49 * 3600, np.inf]
        with pytest.raises(ValueError, match="times, row 1: a time is missing"):
            clock.times(column)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4:00:00", 14400),
        ("100:00:00", 360000),
        ("1-12:00:00", 129600),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("0:00:01.5", 1.5),
        ("2h30m", 9000),
        ("2h 30min", 9000),
        ("1.5 h", 5400),
        ("90min", 5400),
        ("45s", 45),
        ("1d12h", 129600),
        ("250ms", 0.25),
        ("PT4H30M", 16200),
        ("P1DT0.5S", 86400.5),
        ("1 hour", 3600),
        ("2 hours", 7200),
        ("30 minutes", 1800),
        ("1 day 1 minute", 86460),
        ("1.5 weeks", 907_200),
        ("2hours30seconds", 7230),
    ],
)
def test_text_of_a_duration(clock, text, seconds):
    assert clock.duration(text) == seconds
    assert duration_of(f" {text} ").ns == seconds * 10**9
    assert sk.Clock("2026-10-24T00:00Z", unit="ms").duration(text) == seconds * 1000


def test_other_durations(clock):
    for value in (
        dt.timedelta(hours=1),
        np.timedelta64(60, "m"),
        np.timedelta64(3600 * 10**9, "ns"),
        pd.Timedelta("1h"),
        3600,
    ):
        assert clock.duration(value) == 3600
    assert clock.timedelta(3600) == dt.timedelta(hours=1)
    with pytest.raises(ValueError, match="is no whole number of microseconds"):
        clock.duration(pd.Timedelta(1, "ns"))


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("4:00", ValueError, "'4:00' could be hours, minutes or seconds"),
        ("90", ValueError, "'90' could be hours"),
        ("4 parsecs", ValueError, "is no duration such as '4:00:00'"),
        ("", ValueError, "is no duration"),
        ("-1h", ValueError, "is no duration"),
        ("1h2h", ValueError, "has a unit twice"),
        ("1 hour 2 h", ValueError, "has a unit twice"),
        ("1 hourss", ValueError, "is no duration"),
        ("2 months", ValueError, "is no duration"),
        ("1:60:00", ValueError, "is no time of hours:minutes:seconds"),
        ("1-24:00:00", ValueError, "is no time of hours:minutes:seconds"),
        ("1-25", ValueError, "is no time of days-hours"),
        ("0.1ns", ValueError, "is finer than a nanosecond"),
        (dt.timedelta(-1), ValueError, "walltime must not be negative"),
        (-1, ValueError, "walltime must not be negative, got -1"),
        (np.timedelta64(3, "M"), ValueError, "has no unit from weeks to nanoseconds"),
        (np.timedelta64("NaT", "s"), ValueError, "walltime is missing"),
        (pd.NaT, ValueError, "walltime is missing"),
        (None, TypeError, "walltime must be a timedelta, a text such as"),
        (True, TypeError, "walltime must be a number"),
    ],
)
def test_bad_durations(clock, value, error, words):
    with pytest.raises(error, match=words):
        clock.duration(value, "walltime")


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("tonight", ValueError, "start: 'tonight' is no date such as"),
        ("2026-02-30", ValueError, "is no date"),
        ("18:00", ValueError, "is no date"),
        (None, TypeError, "start must be a date"),
        (dt.time(18), TypeError, "start must be a date"),
        (True, TypeError, "start must be a number"),
        (np.timedelta64(1, "s"), TypeError, "start must be a date"),
        (np.datetime64("NaT", "s"), ValueError, "start is missing"),
        (pd.NaT, ValueError, "start is missing"),
        (float("nan"), ValueError, "start must not be NaN"),
        (pd.Timestamp(1, unit="ns"), ValueError, "no whole number of microseconds"),
        ("2026-10-26T00:00:00.0000001", ValueError, "no whole number of microseconds"),
        ("2026-10-26T00:00:00.0000000001", ValueError, "finer than a nanosecond"),
        ("9999-12-31T23:59:59.000001", ValueError, "cannot be held exactly"),
    ],
)
def test_bad_times(clock, value, error, words):
    with pytest.raises(error, match=words):
        clock.time(value, "start")


def test_columns_that_mix_times_with_and_without_zone_are_refused(clock):
    mixed = ["2026-10-26 00:00", "2026-10-26T00:00Z"]
    words = "start, row 0: 2026-10-26 00:00 has no time zone, but .* in row 1 has one"
    for column in (mixed, list(map(dt.datetime.fromisoformat, mixed))):
        with pytest.raises(ValueError, match=r"has no time zone, but .* row 1 has one"):
            clock.times(column, "start")
    with pytest.raises(ValueError, match=words):
        clock.times(mixed, "start")


def test_without_a_zone_only_times_with_offset_are_accepted():
    clock = sk.Clock("2026-10-24T00:00+02:00")
    assert clock.zone is None
    assert clock.time("2026-10-24T00:00Z") == 7200
    assert str(clock.origin) == "2026-10-23 22:00:00+00:00"
    for value in ("2026-10-24", dt.datetime(2026, 10, 24), np.datetime64("2026-10-24")):
        with pytest.raises(ValueError, match="has no time zone; set one"):
            clock.time(value)
    with pytest.raises(
        ValueError, match="times, row 0: 2026-10-24T00:00:00 has no time zone"
    ):
        clock.times(np.array(["2026-10-24"], "M8[D]"))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"origin": "2026-10-24"}, ValueError, "has no time zone"),
        ({"origin": 5, "zone": "UTC"}, TypeError, "origin must be a date, got 5"),
        ({"origin": "x", "zone": "UTC"}, ValueError, "origin: 'x' is no date"),
        ({"zone": "Mars/Olympus"}, ValueError, "zone 'Mars/Olympus' is not known"),
        ({"zone": "../etc/passwd"}, ValueError, "is not known"),
        ({"zone": 2}, TypeError, "zone must be the name of a time zone"),
        ({"zone": "UTC", "unit": "w"}, ValueError, "unit must be one of"),
        ({"zone": "UTC", "unit": "ms", "tick": "s"}, ValueError, "tick 's' is longer"),
    ],
)
def test_bad_clocks(given, error, words):
    with pytest.raises(error, match=words):
        sk.Clock(**{"origin": "2026-10-24", **given})


@pytest.mark.parametrize("tick", ["us", "ns"])
def test_long_durations_are_exact_in_both_directions(tick):
    clock = sk.Clock("2026-10-24", zone="UTC", tick=tick, unit="us")
    for us in (2**53 - 2, 10**16 + 2, 10**17 + 16):
        assert clock.timedelta(us) == dt.timedelta(microseconds=us)
    with pytest.raises(ValueError, match="is longer than 999,999,999 days"):
        clock.timedelta(1e21)


def test_first_and_last_dates(clock):
    assert clock.datetime(float("inf")) is None
    assert clock.timedelta(float("nan")) is None
    assert np.isnat(clock.utc([np.inf, np.nan])).all()
    assert clock.text([np.inf]).tolist() == [""]
    assert clock.text([]).tolist() == []
    assert clock.time("9999-12-31 23:59:59") > 2.5e11  # a common notation for no end
    assert clock.times(["0001-01-01T00:00Z"]).tolist() == [
        clock.time("0001-01-01T00:00Z")
    ]
    with pytest.raises(ValueError, match="beyond the years"):
        clock.datetime(1e15)


def test_clocks_with_nanosecond_ticks():
    clock = sk.Clock("2026-10-24", zone="UTC", tick="ns")
    when = pd.Timestamp("2026-10-25 00:00:00.123456789")
    assert clock.utc([clock.time(when)])[0] == when.to_datetime64()
    with pytest.raises(ValueError, match="cannot be held exactly"):
        clock.time(pd.Timestamp("2126-10-25 00:00:00.123456789"))


def test_clocks_compare_and_pickle_by_value(clock):
    same = pickle.loads(pickle.dumps(clock))
    assert same == clock == sk.Clock.from_dict(clock.to_dict())
    assert same.time("2026-10-26") == 49 * 3600
    assert repr(clock) == (
        "Clock('2026-10-24T00:00:00+02:00', unit='s', zone='Europe/Berlin')"
    )
    assert str(clock) == "seconds since 2026-10-24T00:00:00+02:00 (Europe/Berlin)"
    assert sk.Clock(dt.datetime(2026, 10, 24, tzinfo=BERLIN)) == clock
    assert sk.Clock("2026-10-24", zone="+02:00").time("2026-10-26") == 48 * 3600
    assert moment_of("2026-10-24").ns == moment_of(dt.date(2026, 10, 24)).ns


def test_errors_name_a_local_time_beyond_int64():
    last = (2**63 - 1) // 10**9 - 60  # seconds; Berlin is an hour ahead
    clock = sk.Clock("1970-01-01T00:00Z", zone="Europe/Berlin", tick="ns")
    assert clock.utc([last]).astype("M8[s]").view("i8").tolist() == [last]
    with pytest.raises(ValueError, match=f"time {last}.0 lies beyond the range of ns"):
        clock.text([0.0, last])

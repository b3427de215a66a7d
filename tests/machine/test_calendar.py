"""Tests of dates and durations against plain definitions in integers and fractions."""

from __future__ import annotations

import contextlib
import datetime as dt
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk
from slotkern.foundation.checks import quote
from slotkern.machine.calendar import duration_of, instant_of, moment_of, moments_of
from slotkern.machine.zones import segments, year_of

ZONES = ("Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "UTC")
EPOCH = dt.datetime(1970, 1, 1)
HOUR = dt.timedelta(hours=1)
NANOSECONDS = {
    **{"W": 604_800 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9},
    **{"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1},
}


def plain_nanoseconds(when):
    """Return the nanoseconds of a datetime without zone since 1970."""
    days = when.toordinal() - EPOCH.toordinal()
    seconds = ((days * 24 + when.hour) * 60 + when.minute) * 60 + when.second
    return (seconds * 10**6 + when.microsecond) * 1000


def plain_instants(wall, zone):
    """Return all instants (UTC, without zone) with a local time, in order."""

    def offset(utc):
        return utc.replace(tzinfo=dt.UTC).astimezone(zone).utcoffset()

    offsets = {offset(wall + k * HOUR) for k in range(-26, 27)}
    return sorted(wall - each for each in offsets if offset(wall - each) == each)


@given(
    when=st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 12, 31)),
    minutes=st.none() | st.integers(-1439, 1439),
    separator=st.sampled_from(" T"),
    digits=st.text("0123456789", max_size=9),
)
def test_text_of_a_date(when, minutes, separator, digits):
    when = when.replace(microsecond=0)
    text = when.isoformat(separator) + (f".{digits}" if digits else "")
    expected = plain_nanoseconds(when) + int(digits.ljust(9, "0"))
    if minutes is not None:
        hours, rest = divmod(abs(minutes), 60)
        text += f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"
        expected -= minutes * 60 * 10**9
    for given_text in (text, f" {text} "):
        found = moment_of(given_text)
        assert found[:3] == (expected, minutes is not None, None)
        assert str(found) == given_text
    day = moment_of(text[:10])
    assert day.ns == plain_nanoseconds(dt.datetime.combine(when.date(), dt.time()))
    assert day == moment_of(when.date())._replace(given=text[:10])


@given(
    when=st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 12, 31)),
    separator=st.sampled_from(" T"),
    timespec=st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_text_of_a_date_in_utc(when, separator, timespec):
    text = when.isoformat(separator, timespec)
    digits = {"minutes": 60 * 10**9, "seconds": 10**9, "milliseconds": 10**6}
    ns = plain_nanoseconds(when)
    ns -= ns % digits.get(timespec, 1000)
    assert moment_of(text)[:3] == (ns, False, None)
    assert moment_of(f"{text}Z")[:3] == (ns, True, None)


@given(st.text("0123456789-+:. TZhmsdinPuW", max_size=22))
@example("2026-10-25 24:00")
@example("2026-10-25 18:00:00.1234567891")
@example("2026-10-25 18:00:00.1234567890")
@example("2026-10-25 18:00:00.")
@example("2026-02-29")
@example("2026-W43-7T18:00")
@example("2026-10-25 18:00+24:00")
def test_a_text_is_a_date_if_datetime_reads_it(text):
    try:
        expected = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        with pytest.raises(ValueError, match=r"^time: .* is no date such as"):
            moment_of(text)
        return
    digits = text.partition(".")[2].partition("+")[0].partition("-")[0].rstrip("Z ")
    if digits[9:].strip("0"):
        with pytest.raises(ValueError, match="finer than a nanosecond"):
            moment_of(text)
        return
    offset = expected.utcoffset()
    ns = plain_nanoseconds(expected) + int(digits[6:9].ljust(3, "0"))
    assert moment_of(text).ns == ns - (offset or 0 * HOUR) // HOUR.resolution * 1000
    assert moment_of(text).aware == (offset is not None)


@given(
    when=st.datetimes(dt.datetime(1720, 1, 1), dt.datetime(2280, 1, 1)),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    fold=st.sampled_from([0, 1]),
)
@example(dt.datetime(2026, 10, 25, 2, 30), ZoneInfo("Europe/Berlin"), 1)
@example(dt.datetime(2026, 3, 29, 2, 30), ZoneInfo("Europe/Berlin"), 0)
@example(dt.datetime(2011, 12, 30, 2, 30), ZoneInfo("Pacific/Apia"), 0)
@example(dt.datetime(2011, 4, 3, 1, 45), ZoneInfo("Australia/Lord_Howe"), 1)
def test_local_times_denote_the_instants_of_their_zone(when, zone, fold):
    own, text = when.replace(fold=fold), when.isoformat(" ")
    found = plain_instants(when, zone)
    clock = sk.Clock("2000-01-01T00:00Z", zone=zone, unit="us")
    column = [own, dt.datetime(2026, 1, 1)]
    if not found:
        for value in (text, own, np.datetime64(when), own.replace(tzinfo=zone)):
            with pytest.raises(ValueError, match=r"^time: .* does not exist"):
                clock.time(value)
        for values in (column, [each.replace(tzinfo=zone) for each in column]):
            with pytest.raises(ValueError, match=r"^times, row 0: .* does not exist"):
                clock.times(values)
        return
    chosen = plain_nanoseconds(found[fold if len(found) > 1 else 0])
    assert instant_of(moment_of(own), zone, "time") == chosen
    assert moment_of(own.replace(tzinfo=zone)).ns == chosen
    assert clock.times(column)[0] == clock.time(own)
    assert clock.times([own.replace(tzinfo=zone)])[0] == clock.time(own)
    for value in (text, np.datetime64(when)):
        if len(found) > 1:
            with pytest.raises(ValueError, match=r"^time: .* occurs twice"):
                clock.time(value)
        else:
            assert instant_of(moment_of(value), zone, "time") == chosen


@given(
    when=st.datetimes(),
    offset=st.timedeltas(-23 * HOUR, 23 * HOUR),
    fold=st.sampled_from([0, 1]),
)
def test_datetimes_with_a_fixed_offset_or_none(when, offset, fold):
    own, ns = when.replace(fold=fold), plain_nanoseconds(when)
    assert moment_of(own)[:3] == (ns, False, bool(fold))
    fixed = moment_of(own.replace(tzinfo=dt.timezone(offset)))
    assert fixed[:3] == (ns - offset // offset.resolution * 1000, True, None)
    for utc in (dt.UTC, ZoneInfo("UTC")):
        assert moment_of(own.replace(tzinfo=utc))[:3] == (ns, True, None)


def test_first_and_last_datetimes_of_a_zone():
    """Their instants have no `datetime`, but are accepted in columns and text."""
    last = dt.datetime.max.replace(tzinfo=ZoneInfo("America/New_York"))
    for value in (dt.datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")), last):
        expected = moment_of(value.isoformat()).ns
        assert moment_of(value).ns == expected
        microseconds = moments_of([value], "time").values.astype(int).tolist()
        assert microseconds == [expected // 1000]


@given(
    count=st.integers(-(2**63) + 1, 2**63 - 1),
    unit=st.sampled_from(list(NANOSECONDS)),
    step=st.sampled_from([1, 3, 1000]),
)
def test_numpy_dates(count, unit, step):
    ns = count * step * NANOSECONDS[unit]
    base = {"ms": 10**6, "us": 1000, "ns": 1}.get(unit, 10**9)
    value = np.array(count).view(f"M8[{step}{unit}]")[()]
    if abs(ns) < 2**63 * base:
        assert moment_of(value) == (ns, False, None, value)
    else:
        with pytest.raises(ValueError, match=r"^time: .* is out of the range of"):
            moment_of(value)


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/Sao_Paulo", "Asia/Beirut"])
def test_days_without_a_time_are_their_first_instant(zone):
    info, clock = ZoneInfo(zone), sk.Clock("1970-01-01T00:00Z", zone=zone)
    for day in np.arange("2010-06", "2013-06", dtype="M8[D]"):
        wall = day.astype("M8[us]").item()
        while not (found := plain_instants(wall, info)):
            wall += HOUR
        expected = plain_nanoseconds(found[0]) / 10**9
        assert clock.time(day) == clock.time(str(day)) == expected
        assert clock.times([day.item()]).tolist() == [expected]


@given(
    kind=st.sampled_from(["naive", "utc", "zone", "offset", "mixed"]),
    times=st.lists(
        st.none() | st.datetimes(dt.datetime(2026, 1, 1), dt.datetime(2026, 12, 31)),
        max_size=6,
    ),
    as_text=st.booleans(),
)
def test_a_column_of_dates_equals_its_values(kind, times, as_text):
    zones = {
        "naive": [None],
        "utc": [dt.UTC],
        "zone": [ZoneInfo("America/New_York")],
        "offset": [dt.timezone(-5 * HOUR / 2), dt.UTC],
        "mixed": [ZoneInfo("Asia/Kolkata"), dt.UTC, ZoneInfo("Asia/Tokyo")],
    }[kind]
    column = [
        None if time is None else time.replace(tzinfo=zones[row % len(zones)])
        for row, time in enumerate(times)
    ]
    if as_text:
        column = [None if time is None else time.isoformat() for time in column]
    clock = sk.Clock("2026-01-01", zone="Europe/Berlin")
    try:
        expected = [np.inf if each is None else clock.time(each) for each in column]
    except ValueError:
        with pytest.raises(ValueError, match=r"^end, row .: .*(exist|twice)"):
            clock.times(column, "end", missing=np.inf)
        return
    with contextlib.suppress(ValueError):  # a fold counts if no value is missing
        assert clock.times(column, "end", missing=np.inf).tolist() == expected
        return
    assert None in column
    assert any(
        each is not None and len(plain_instants(each, clock.origin.tzinfo)) == 2
        for each in column
    )


@given(
    times=st.lists(
        st.tuples(
            st.datetimes(dt.datetime(2026, 1, 1), dt.datetime(2026, 12, 31)),
            st.sampled_from(
                [*map(ZoneInfo, ZONES), dt.UTC, dt.timezone(-HOUR / 2), "text", None]
            ),
        ),
        max_size=6,
    ),
    fold=st.sampled_from([0, 1]),
)
@example([(dt.datetime(2026, 10, 25, 2, 30), ZoneInfo("Europe/Berlin"))], 1)
@example(
    [
        (dt.datetime(2026, 1, 1), "text"),
        (dt.datetime(2026, 3, 29, 2, 30), ZoneInfo("Europe/Berlin")),
    ],
    0,
)
def test_a_column_of_several_zones_equals_its_values(times, fold):
    column = [
        None
        if zone is None
        else f"{time}+05:30"
        if zone == "text"
        else time.replace(tzinfo=zone, fold=fold)
        for time, zone in times
    ]
    clock = sk.Clock("2026-01-01", zone="UTC")
    try:
        expected = [np.inf if each is None else clock.time(each) for each in column]
    except ValueError:
        with pytest.raises(ValueError, match=r"^end, row .: .* does not exist"):
            clock.times(column, "end", missing=np.inf)
    else:
        assert (
            clock.times(np.array(column, object), missing=np.inf).tolist() == expected
        )


def test_text_among_datetimes_has_no_fold():
    twice, clock = "2026-10-25 02:30", sk.Clock("2026-01-01", zone="Europe/Berlin")
    datetimes = [dt.datetime.fromisoformat(twice), dt.datetime(2026, 1, 2)]
    assert clock.times(datetimes).tolist() == [clock.time(each) for each in datetimes]
    with pytest.raises(ValueError, match=r"^times, row 1: .* occurs twice"):
        clock.times([datetimes[1], twice])
    mixed = ["2026-01-02", datetimes[1], None, "2026-01-02 00:00:00.123456700"]
    nanoseconds = sk.Clock("2026-01-01", zone="Europe/Berlin", tick="ns")
    for some in (mixed[:3], mixed):
        expected = [0.0 if each is None else nanoseconds.time(each) for each in some]
        assert nanoseconds.times(some, missing=0).tolist() == expected


@given(
    days=st.none() | st.integers(0, 10**5),
    hours=st.integers(0, 23),
    minutes=st.integers(0, 59),
    seconds=st.integers(0, 59),
    digits=st.text("0123456789", max_size=12),
)
def test_text_of_a_duration(days, hours, minutes, seconds, digits):
    fraction = f".{digits}" if digits else ""
    total = Fraction(f"{seconds}{fraction}") + 60 * (60 * hours + minutes)
    total = (total + 86_400 * (days or 0)) * 10**9
    before = "" if days is None else f"{days}-"
    iso = "" if days is None else f"{days}D"
    texts = [
        f"{before}{hours:02}:{minutes:02}:{seconds:02}{fraction}",
        f"{before}{hours}:{minutes}:{seconds}{fraction}",
        f"{iso.lower()}{hours}h{minutes}m{seconds}{fraction}s",
        f" {iso.lower()} {hours} h {minutes}min {seconds}{fraction}s ",
        f"P{iso}T{hours}H{minutes}M{seconds}{fraction}S",
    ]
    if days is not None:
        texts += [
            f"{days} days {hours:02}:{minutes:02}:{seconds:02}{fraction}",
            f"{days} day, {hours}:{minutes:02}:{seconds:02}{fraction}",
        ]
    for text in texts:
        if total.denominator > 1:
            with pytest.raises(ValueError, match="is finer than a nanosecond"):
                duration_of(text)
        else:
            assert duration_of(text).ns == total
            assert str(duration_of(text)) == text


@given(st.text("0123456789-+:. TZhmsdinPu", max_size=12))
@example("1-24:00:00")
@example("5m5min")
@example("3msec")
@example("4:60:00")
@example("2026-10-25")
def test_a_text_is_a_duration_or_refused_by_name(text):
    try:
        assert duration_of(text).ns >= 0
    except ValueError as error:
        assert str(error).startswith(f"duration: {quote(text)} ")  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("99999d99999h", (99_999 * 24 + 99_999) * 3600 * 10**9),
        ("2h 30min", 9000 * 10**9),
        ("3ms5us7ns", 3_005_007),
        ("5m5s", 305 * 10**9),
    ],
)
def test_units_of_a_duration(text, nanoseconds):
    assert duration_of(text).ns == nanoseconds


@given(
    count=st.integers(-(2**63) + 1, 2**63 - 1),
    unit=st.sampled_from(list(NANOSECONDS)),
    step=st.sampled_from([1, 3, 1000]),
)
def test_numpy_durations(count, unit, step):
    value = np.array(count).view(f"m8[{step}{unit}]")[()]
    if count < 0:
        with pytest.raises(ValueError, match="duration must not be negative"):
            duration_of(value)
    else:
        assert duration_of(value).ns == count * step * NANOSECONDS[unit]


@given(st.timedeltas(dt.timedelta(0)))
def test_timedeltas(length):
    days, seconds, microseconds = length.days, length.seconds, length.microseconds
    plain = ((days * 86_400 + seconds) * 10**6 + microseconds) * 1000
    assert duration_of(length) == (plain, length)


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


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_runtime": "0s"}, "max_runtime must be positive, got 0.0"),
        ({"earliest": "2026-03-29 02:30"}, r"\[0\]: earliest: 2026-03-29 02:30 does"),
        ({"earliest": "2026-10-25 02:30"}, r"\[0\]: earliest: 2026-10-25 02:30 occurs"),
        ({"setup": "0.1us"}, r"\[0\]: setup: 0.1us is no whole number of microseconds"),
        (
            {"deadline": "9999-12-31 23:59:59.000001"},
            r"\[0\]: deadline: .* exactly",
        ),
        (
            {"earliest": "2026-10-26", "latest": "2026-10-25"},
            r"^requests\[0\]: earliest 2026-10-26 lies after latest 2026-10-25$",
        ),
        (
            {"earliest": "2026-10-26", "deadline": 5.0, "name": "j"},
            r"^j: earliest 2026-10-26 lies after deadline 5.0$",
        ),
    ],
)
def test_errors_of_dated_requests_name_request_field_and_value(fields, words):
    machine = sk.Machine.homogeneous(2)
    free = sk.free_slots(
        machine, start="2026-03-28", end="2026-10-27", zone="Europe/Berlin"
    )
    with pytest.raises(ValueError, match=words):
        sk.find_windows(free, [sk.Request(1, walltime="1h", **fields)])


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
        assert clock.times(aware).tolist() == expected


def test_offsets_are_whole_seconds():
    odd = dt.timezone(dt.timedelta(microseconds=1500))
    assert moment_of(dt.datetime(1970, 1, 1, tzinfo=odd)).ns == -1_500_000
    words = r"an offset of 0:00:00.001500 from UTC; offsets must be whole seconds"
    for origin in ("2026-10-24", "2026-10-24T00:00Z"):
        with pytest.raises(ValueError, match=words):
            sk.Clock(origin, zone=odd)


def test_the_segments_of_a_year_include_all_dates_of_it():
    for year in range(2, 9999):
        for day in (dt.datetime(year, 1, 1), dt.datetime(year, 12, 31, 23, 59, 59)):
            second = plain_nanoseconds(day) // 10**9
            edges = [second + k * 86_400 for k in (-1, 1)]
            assert year_of(edges[0]) <= year <= year_of(edges[1])
    for year in (-(10**6), 0, 9999, 10**6):
        known = segments(ZoneInfo("Europe/Berlin"), year)
        assert known is segments(ZoneInfo("Europe/Berlin"), min(max(year, 0), 9999))

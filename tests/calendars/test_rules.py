"""Recurrence rules against a brute force over all quarter hours and days."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("dateutil")
from dateutil import rrule

from slotkern.calendars.rules import RecurrenceRule, repeated_spans, utc_of
from slotkern.machine import Clock

DAY = dt.timedelta(days=1)
QUARTER = dt.timedelta(minutes=15)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
#: Zones whose clocks change by an hour, by half an hour, at midnight, and never.
ZONES = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe"),
    *("Africa/Cairo", "America/Santiago", "Asia/Kolkata"),
)


def first_instant(local: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """Return the first quarter hour, counted in UTC, that shows a local time.

    A skipped local time has the last offset before the change.
    """
    low = local.replace(tzinfo=dt.UTC) - DAY
    shown = [low + k * QUARTER for k in range(2 * 96)]
    for instant in shown:
        if instant.astimezone(zone).replace(tzinfo=None) == local:
            return instant
    before = [t for t in shown if t.astimezone(zone).replace(tzinfo=None) < local]
    offset = before[-1].astimezone(zone).utcoffset()
    assert offset is not None
    return (local - offset).replace(tzinfo=dt.UTC)


def follows(parts: dict[str, str], start: dt.date, day: dt.date) -> bool:
    """Return whether a day belongs to a rule of days, weeks or months."""
    every = int(parts.get("INTERVAL", 1))
    days = parts.get("BYDAY")
    match parts["FREQ"]:
        case "DAILY":
            fits = (day - start).days % every == 0
            return fits and (days is None or WEEKDAYS[day.weekday()] in days.split(","))
        case "WEEKLY":
            monday = start - start.weekday() * DAY
            fits = (day - monday).days // 7 % every == 0
            wanted = days.split(",") if days else [WEEKDAYS[start.weekday()]]
            return fits and WEEKDAYS[day.weekday()] in wanted
        case _:
            months = 12 * (day.year - start.year) + day.month - start.month
            if months % every:
                return False
            if days is None:
                return day.day == int(parts.get("BYMONTHDAY", start.day))
            number, name = int(days[:-2]), days[-2:]
            last = (day.replace(day=1) + 31 * DAY).replace(day=1) - DAY
            nth = (
                (day.day - 1) // 7 + 1 if number > 0 else -((last - day).days // 7) - 1
            )
            return WEEKDAYS[day.weekday()] == name and nth == number


def brute_force(
    parts: dict[str, str], start: dt.datetime, zone: ZoneInfo, limit: dt.datetime
) -> Iterator[dt.datetime]:
    """Yield the instants of a rule before a limit."""
    left = int(parts.get("COUNT", 10**6))
    until = parts.get("UNTIL")
    day = start.date()
    while day < limit.date() + 2 * DAY and left:
        if follows(parts, start.date(), day):
            instant = first_instant(dt.datetime.combine(day, start.time()), zone)
            text = f"{instant:%Y%m%dT%H%M%SZ}"
            if (until is None or text <= until) and instant < limit:
                left -= 1
                yield instant
        day += DAY


def drawn_rule(rng: random.Random, start: dt.datetime) -> dict[str, str]:
    parts = {"FREQ": rng.choice(("DAILY", "WEEKLY", "MONTHLY"))}
    if rng.random() < 0.5:
        parts["INTERVAL"] = str(rng.randint(1, 5))
    if rng.random() < 0.5:
        if parts["FREQ"] == "MONTHLY":
            parts["BYDAY"] = f"{rng.choice((1, 2, 3, 4, -1, -2))}{rng.choice(WEEKDAYS)}"
        else:
            parts["BYDAY"] = ",".join(rng.sample(WEEKDAYS, rng.randint(1, 4)))
    end = rng.random()
    if end < 0.3:
        parts["COUNT"] = str(rng.randint(1, 40))
    elif end < 0.6:
        until = start + rng.randint(0, 300) * DAY + rng.randint(0, 95) * QUARTER
        parts["UNTIL"] = f"{until:%Y%m%dT%H%M%SZ}"
    return parts


@pytest.mark.parametrize("name", ZONES)
def test_dates_equal_a_brute_force_over_changes_of_the_clock(name: str) -> None:
    rng, zone = random.Random(name), ZoneInfo(name)
    checked = 0
    for _ in range(25):
        day = dt.datetime(2026, rng.randint(1, 12), rng.randint(1, 28))
        # Clocks change at night: most starts are there.
        start = day + rng.choice((rng.randint(0, 14), rng.randint(0, 95))) * QUARTER
        parts = drawn_rule(rng, start)
        limit = start.replace(tzinfo=dt.UTC) + rng.randint(1, 400) * DAY
        rule = RecurrenceRule.parse(";".join(map("=".join, parts.items())))
        found = [utc_of(each, zone) for each in rule.dates(start, zone, limit)]
        wanted = [*brute_force(parts, start, zone, limit)]
        assert found == wanted, (parts, start)
        checked += len(found)
    assert checked > 100


def test_a_skipped_time_keeps_the_offset_before_the_change() -> None:
    zone = ZoneInfo("Europe/Berlin")
    skipped, twice = dt.datetime(2026, 3, 29, 2, 30), dt.datetime(2026, 10, 25, 2, 30)
    assert utc_of(skipped, zone).hour == 1
    assert utc_of(twice, zone).hour == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not PART=VALUE"),
        ("FREQ", "'FREQ' is not PART=VALUE"),
        ("COUNT=3", "has no FREQ"),
        ("FREQ=WEEKY", "did you mean 'WEEKLY'"),
        ("FREQ=HOURLY", "none of DAILY, WEEKLY, MONTHLY, YEARLY"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ occurs twice"),
        ("FREQ=DAILY;CONT=2", "did you mean 'COUNT'"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL='0' is not allowed"),
        ("FREQ=DAILY;COUNT=-1", "COUNT='-1' is not allowed"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20261224", "exclude each other"),
        ("FREQ=DAILY;UNTIL=20261324", "UNTIL=20261324 is no date"),
        ("FREQ=WEEKLY;BYDAY=XX", "BYDAY=XX is not MO"),
        ("FREQ=WEEKLY;BYDAY=2MO", "needs FREQ=MONTHLY or YEARLY"),
        ("FREQ=MONTHLY;BYDAY=53MO;COUNT=2", "BYDAY=53MO: a month has at most 5"),
        ("FREQ=YEARLY;BYDAY=-6MO;BYMONTH=12", "BYDAY=-6MO: a month has at most 5"),
        ("FREQ=YEARLY;BYMONTH=13", "BYMONTH=13 is not 1 to 12"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY=0 is not 1 to 31"),
        ("FREQ=DAILY;BYHOUR=-1", "BYHOUR='-1' is not allowed"),
        ("FREQ=WEEKLY;WKST=1MO", "WKST='1MO' is not allowed"),
        ("FREQ=YEARLY;BYEASTER=1", "'BYEASTER' is none of"),
        ("FREQ=WEEKLY;BYDAY=MO,\nTU", r"'FREQ=WEEKLY;BYDAY=MO,\nTU' has control"),
    ],
)
def test_an_invalid_rule_is_refused_by_its_part(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^rule: ") as caught:
        RecurrenceRule.parse(text)
    assert message in str(caught.value)


def test_a_rule_needs_an_end_and_a_bounded_number_of_dates() -> None:
    start, zone = dt.datetime(2026, 1, 1), ZoneInfo("UTC")
    with pytest.raises(ValueError, match="has no end: add COUNT or UNTIL"):
        RecurrenceRule.parse("FREQ=DAILY").dates(start, zone, None)
    with pytest.raises(ValueError, match="more than 100,000 dates"):
        RecurrenceRule.parse("FREQ=DAILY;COUNT=999999;BYHOUR=1,2,3,4,5,6,7,8,9").dates(
            start, zone, None
        )


def test_a_rule_without_dates_ends_after_a_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    months: list[int] = []  # dateutil looks up the length of each month it reaches
    length = rrule.calendar.monthrange

    def counted(year: int, month: int) -> tuple[int, int]:
        months.append(year)
        return length(year, month)

    monkeypatch.setattr(rrule.calendar, "monthrange", counted)
    start, limit = dt.datetime(2026, 1, 1), dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
    rule = "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"
    assert RecurrenceRule.parse(rule).dates(start, ZoneInfo("UTC"), limit) == []
    assert min(months) > dt.MAXYEAR - 2 * 400
    rule = "FREQ=DAILY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=29;COUNT=2"
    found = RecurrenceRule.parse(rule).dates(start, ZoneInfo("UTC"), None)
    every_third = [start + k * 3 * DAY for k in range(20_000)]
    leap = [each for each in every_third if (each.month, each.day) == (2, 29)]
    assert found == leap[:2]


def test_a_day_in_until_lasts_until_its_end() -> None:
    rule = RecurrenceRule.parse("FREQ=DAILY;UNTIL=20260103")
    found = rule.dates(dt.datetime(2026, 1, 1, 23), ZoneInfo("Europe/Berlin"), None)
    assert [each.day for each in found] == [1, 2, 3]


def test_spans_have_one_length_and_local_starts() -> None:
    clock = Clock("2026-10-24", zone="Europe/Berlin", unit="h")
    spans = repeated_spans(clock, 8, 10, "FREQ=DAILY;COUNT=3")
    assert spans == [(8, 10), (33, 35), (57, 59)]


def test_spans_that_overlap_or_leave_the_rule_are_refused() -> None:
    clock = Clock("2026-10-24", zone="Europe/Berlin", unit="h")
    with pytest.raises(ValueError, match="repeats before a span of 1 day, 1:00:00"):
        repeated_spans(clock, 8, 33, "FREQ=DAILY;COUNT=4")
    with pytest.raises(ValueError, match="first date is 2026-10-26 08:00:00"):
        repeated_spans(clock, 8, 10, "FREQ=WEEKLY;BYDAY=MO;COUNT=4")
    with pytest.raises(ValueError, match="needs a clock with a time zone"):
        repeated_spans(None, 8, 10, "FREQ=DAILY;COUNT=4")

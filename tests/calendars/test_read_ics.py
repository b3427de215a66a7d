"""Calendars as busy time: events, repeats, zones, and files that are refused."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("icalendar")

import slotkern as sk

HORIZON: dict[str, Any] = {
    "start": "2026-10-01",
    "end": "2026-12-01",
    "zone": "Europe/Berlin",
}
TUESDAY = "DTSTART;TZID=Europe/Berlin:20261020T080000"


def calendar(*events: tuple[str, ...]) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:test"]
    for event in events:
        lines += ["BEGIN:VEVENT", *event, "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR", ""])


def read(path: Path, *events: tuple[str, ...], nodes: str | None = "n0") -> list[str]:
    """Return the spans of events as texts of local time."""
    path = path / "calendar.ics"
    path.write_text(calendar(*events), newline="")
    table = sk.read_ics(path, nodes=nodes, **HORIZON)
    clock = sk.Clock("2026-10-01", zone="Europe/Berlin")
    spans = zip(*(clock.times(table[name]) for name in ("start", "end")), strict=True)
    return [
        " to ".join(f"{clock.datetime(time):%m-%d %H:%M}" for time in span)
        for span in spans
    ]


def test_a_repeated_event_keeps_its_local_time(tmp_path: Path) -> None:
    event = (TUESDAY, "DTEND;TZID=Europe/Berlin:20261020T100000", "RRULE:FREQ=WEEKLY")
    assert read(tmp_path, (*event, "EXDATE:20261103T070000Z")) == [
        f"{day} 08:00 to {day} 10:00"
        for day in ("10-20", "10-27", "11-10", "11-17", "11-24")
    ]


def test_an_end_is_exact_and_a_duration_is_nominal(tmp_path: Path) -> None:
    start, rule = "DTSTART;TZID=Europe/Berlin:20261023T220000", "RRULE:FREQ=DAILY;COUNT"
    by_end = (start, "DTEND;TZID=Europe/Berlin:20261024T220000", f"{rule}=2")
    assert read(tmp_path, by_end)[1] == "10-24 22:00 to 10-25 21:00"
    by_days = (start, "DURATION:P1D", f"{rule}=2")
    assert read(tmp_path, by_days)[1] == "10-24 22:00 to 10-25 22:00"


def test_days_last_from_midnight_to_midnight(tmp_path: Path) -> None:
    assert read(tmp_path, ("DTSTART;VALUE=DATE:20261025",)) == [
        "10-25 00:00 to 10-26 00:00"
    ]
    two = ("DTSTART;VALUE=DATE:20261024", "DTEND;VALUE=DATE:20261026")
    assert read(tmp_path, two) == ["10-24 00:00 to 10-26 00:00"]


def test_added_and_replaced_dates(tmp_path: Path) -> None:
    weekly = (
        *("UID:1", TUESDAY, "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=3"),
        *(
            "RDATE:20261021T080000Z",
            "RDATE;VALUE=PERIOD:20261022T080000Z/20261022T090000Z",
        ),
    )
    moved = (
        "UID:1",
        "RECURRENCE-ID;TZID=Europe/Berlin:20261027T080000",
        "DTSTART;TZID=Europe/Berlin:20261027T120000",
        "DURATION:PT2H",
    )
    cancelled = (
        *("UID:1", "RECURRENCE-ID:20261103T070000Z", "STATUS:CANCELLED"),
        "DTSTART:20261103T070000Z",
    )
    assert read(tmp_path, weekly, moved, cancelled) == [
        "10-20 08:00 to 10-20 09:00",
        "10-21 10:00 to 10-21 11:00",
        "10-22 10:00 to 10-22 11:00",
        "10-27 12:00 to 10-27 14:00",
    ]


def test_the_first_date_counts_even_if_the_rule_lacks_it(tmp_path: Path) -> None:
    event = (TUESDAY, "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=WE;COUNT=3")
    assert [span[:5] for span in read(tmp_path, event)] == ["10-20", "10-21", "10-28"]


def test_zones_of_windows_utc_and_none(tmp_path: Path) -> None:
    for start in (
        "DTSTART;TZID=W. Europe Standard Time:20261020T080000",
        "DTSTART:20261020T060000Z",
        "DTSTART:20261020T080000",
    ):
        span = read(tmp_path, (start, "DURATION:PT1H"))
        assert span == ["10-20 08:00 to 10-20 09:00"]


def test_folded_lines_and_escapes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "folded.ics"
    event = (TUESDAY, "DURATION:PT1H", "LOCATION:n[0-\r\n 2]\\,n7", "SUMMARY:a\\, b")
    path.write_text(calendar(event), newline="")
    table = sk.read_ics(path, **HORIZON)
    assert table["node"].tolist() == ["n[0-2],n7"]
    assert table["reason"].tolist() == ["a, b"]


def test_cancelled_and_transparent_events_take_no_time(tmp_path: Path) -> None:
    for word in ("STATUS:CANCELLED", "TRANSP:TRANSPARENT"):
        assert read(tmp_path, (TUESDAY, "DURATION:PT1H", word)) == []


def test_free_slots_take_a_calendar(tmp_path: Path) -> None:
    path = tmp_path / "course.ics"
    some = (TUESDAY, "DURATION:PT1H", "LOCATION:n[0-1]", "SUMMARY:Course")
    every = ("DTSTART;VALUE=DATE:20261102", "SUMMARY:Power")
    path.write_text(calendar(some, every), newline="")
    free = sk.free_slots(sk.Machine.homogeneous(3), path, **HORIZON)
    assert free.busy["node"].tolist() == [0, 1, 0, 1, 2]
    assert free.busy["reason"].tolist() == ["Course"] * 2 + ["Power"] * 3
    with pytest.raises(ValueError, match="start and end of the horizon are numbers"):
        sk.free_slots(sk.Machine.homogeneous(3), path, start=0, end=9)


def test_an_unknown_node_names_its_event(tmp_path: Path) -> None:
    path = tmp_path / "course.ics"
    event = (TUESDAY, "DURATION:PT1H", "LOCATION:Room 7", "SUMMARY:Course")
    path.write_text(calendar(event), newline="")
    with pytest.raises(ValueError, match=r"course.ics: node, event 'Course'.*Room 7"):
        sk.free_slots(sk.Machine.homogeneous(3), path, **HORIZON)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("SUMMARY:x",), "DTSTART: is missing"),
        (("DTSTART:never",), "DTSTART: .*'never'"),
        (("DTSTART;TZID=Europe/Berln:20261020T080000",), "zone 'Europe/Berln'"),
        ((f"DTSTART;TZID={'x' * 200}:20261020T080000",), r"zone 'x+\.\.\. is not"),
        ((TUESDAY, TUESDAY), "DTSTART: occurs twice"),
        ((TUESDAY, "DURATION:PT1H", "DURATION:PT2H"), "DURATION: occurs twice"),
        ((TUESDAY, "LOCATION:n1", "LOCATION:n2"), "LOCATION: occurs twice"),
        (("DTSTART:00010101T000000",), "DTSTART: 0001-01-01 .* is out of range"),
        (
            ("DTSTART;TZID=America/New_York:99991230T230000", "DURATION:P1D"),
            "DTSTART: 9999-12-31 .* is out of range",
        ),
        (
            (TUESDAY, "RDATE;VALUE=PERIOD:20261022T080000Z/20261021T080000Z"),
            r"RDATE: a period ends at 2026-10-21 08:00:00\+00:00, before its start",
        ),
        ((TUESDAY, "RDATE;VALUE=PERIOD:20261022T080000Z/-PT1H"), "before its start"),
        ((TUESDAY, "DTEND:20261019T080000Z"), "DTEND: is before DTSTART"),
        ((TUESDAY, "DTEND;VALUE=DATE:20261021"), "must both be days, or both times"),
        ((TUESDAY, "DTEND:20261021T080000Z", "DURATION:PT1H"), "with DURATION"),
        ((TUESDAY, "RRULE:FREQ=HOURLY"), "none of DAILY, WEEKLY"),
        ((TUESDAY, "RRULE:FREQ=DAILY;UNTIL=200609"), "RRULE: is invalid"),
        ((TUESDAY, "RRULE:FREQ=DAILY", "RRULE:FREQ=DAILY"), "only one RRULE"),
        ((TUESDAY, "EXRULE:FREQ=DAILY"), "no EXRULE"),
        ((TUESDAY, "EXDATE;VALUE=DATE:20261027"), "is a day, but DTSTART is a time"),
        ((TUESDAY, "RECURRENCE-ID:20261020T060000Z"), "needs the UID"),
        (
            (TUESDAY, "UID:1", "RECURRENCE-ID;RANGE=THISANDFUTURE:20261020T060000Z"),
            "RANGE is not supported",
        ),
        (("DTSTART;VALUE=DATE:20261020", "DURATION:PT1H"), "not a number of days"),
    ],
)
def test_a_wrong_event_is_refused_by_its_property(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, lines)
    assert "calendar.ics, event " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_a_day_does_not_replace_a_time(tmp_path: Path) -> None:
    day = ("UID:1", "DTSTART;VALUE=DATE:20261021", "RECURRENCE-ID;VALUE=DATE:20261020")
    with pytest.raises(ValueError, match="RECURRENCE-ID: 2026-10-20 is a day, but DT"):
        read(tmp_path, (TUESDAY, "UID:1", "RRULE:FREQ=DAILY;COUNT=2"), day)
    days = ("DTSTART;VALUE=DATE:20261020", "UID:1", "RRULE:FREQ=DAILY;COUNT=2")
    assert read(tmp_path, days, day) == ["10-21 00:00 to 10-22 00:00"] * 2
    time = ("UID:1", TUESDAY, "RECURRENCE-ID;TZID=Europe/Berlin:20261020T000000")
    with pytest.raises(ValueError, match="2026-10-20 00:00:00 is a time, but DTSTART"):
        read(tmp_path, days, time)


def test_nodes_are_one_hostlist(tmp_path: Path) -> None:
    event = (TUESDAY, "DURATION:PT1H", "LOCATION:n7")
    with pytest.raises(ValueError, match="nodes is empty"):
        read(tmp_path, event, nodes="")
    names: Any = ["n1"]
    with pytest.raises(TypeError, match=r"nodes must be a hostlist as text, got \['n1"):
        read(tmp_path, event, nodes=names)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it begins with BEGIN:VCALENDAR"),
        (b"hello", "no valid iCalendar file"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"BEGIN:VEVENT\r\nEND:VEVENT\r\n", "it begins with BEGIN:VCALENDAR"),
        (
            b"BEGIN:VCALENDAR\nBEGIN:VFREEBUSY\nEND:VFREEBUSY\nEND:VCALENDAR",
            "VFREEBUSY is not supported",
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "calendar.ics"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        sk.read_ics(path, **HORIZON)
    assert str(path) in str(caught.value)


def test_another_suffix_and_a_missing_location_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"suffix '\.txt' is not one of \.csv"):
        sk.free_slots(sk.Machine.homogeneous(3), "busy.txt", **HORIZON)
    with pytest.raises(ValueError, match="LOCATION: is missing"):
        read(tmp_path, (TUESDAY, "DURATION:PT1H"), nodes=None)


def test_bookings_are_read_again_as_they_were(tmp_path: Path) -> None:
    rng = random.Random(4)
    machine = sk.Machine.homogeneous(12)
    free = sk.free_slots(machine, **HORIZON)
    pool = sk.SlotPool(free)
    for k in range(30):
        nodes = [f"n{i:02}" for i in rng.sample(range(12), rng.randint(1, 4))]
        first = dt.datetime(2026, 10, 2 + k, rng.randint(0, 12), 7)
        pool.reserve(nodes, first, first + dt.timedelta(hours=5), owner=f"o{k}")
    path = tmp_path / "bookings.ics"
    text = sk.to_ics(pool)
    assert text == sk.to_ics(pool)
    assert text.count("UID:") == len(set(text.split("UID:"))) - 1 == 30
    path.write_text(text, newline="")
    again = sk.free_slots(machine, path, **HORIZON)
    names = ["node", "start", "end"]
    assert np.array_equal(again.slots[names], pool.slots[names])


def test_bookings_without_dates_have_no_calendar() -> None:
    slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)
    with pytest.raises(ValueError, match="have no clock"):
        sk.to_ics(sk.SlotPool(slots))
    with pytest.raises(TypeError, match="clock must be a Clock, got 'UTC'"):
        sk.to_ics({"nodes": []}, clock="UTC")  # type: ignore[arg-type]
    clock = sk.Clock("2026-10-01", zone="UTC")
    with pytest.raises(ValueError, match="no column 'start'"):
        sk.to_ics({"nodes": ["n0"]}, clock=clock)


@pytest.mark.parametrize(
    ("start", "finish", "message"),
    [
        (0, np.inf, "bookings: finish, row 0 must be finite, got inf"),
        (np.nan, 1, "bookings: start, row 0 must not be NaN"),
        (5, 1, "bookings: finish, row 0: .* is before"),
    ],
)
def test_a_booking_without_a_span_is_refused(
    start: float, finish: float, message: str
) -> None:
    clock = sk.Clock("2026-10-01", zone="UTC")
    table = {"nodes": ["n0"], "start": [start], "finish": [finish]}
    with pytest.raises(ValueError, match=message):
        sk.to_ics(table, clock=clock)


def test_an_event_covers_the_fractions_of_its_booking() -> None:
    clock = sk.Clock("2026-10-01", zone="UTC")
    table = {"nodes": ["n1,n2", ""], "start": [0.5, 0], "finish": [1.5, 1]}
    text = sk.to_ics(table | {"expires": ["soon", ""]}, clock=clock)
    assert "DTSTART:20261001T000000Z" in text
    assert "DTEND:20261001T000002Z" in text
    assert "STATUS:TENTATIVE" in text
    assert text.count("BEGIN:VEVENT") == 1
    assert r"LOCATION:n[1-2]" in text


def test_windows_are_events_with_their_value() -> None:
    machine = sk.Machine({"name": ["a", "b"], "price": [1, 2]})
    free = sk.free_slots(machine, unit="h", **HORIZON)
    job = sk.Request(2, walltime="4h", name="ocean", deadline="2026-10-01 13:00")
    found = sk.find_alternatives(free, job, "cost")
    text = sk.to_ics(found)
    assert text.count("SUMMARY:ocean") == len(found) == 3
    assert "LOCATION:a\\,b" in text
    assert "DESCRIPTION:cost: 12.0\\nvalue: 12.0" in text
    assert sk.to_ics(found[0]) == sk.to_ics([found[0]])
    assert text.startswith(sk.to_ics(found[0]).removesuffix("END:VCALENDAR\r\n"))
    with pytest.raises(ValueError, match="windows have their own"):
        sk.to_ics(found, clock=free.clock)

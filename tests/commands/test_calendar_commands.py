"""Calendars on the command line: busy time in, bookings out, repeated reservations."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("icalendar")
from command_line import refused, run

import slotkern as sk

COURSE = """\
BEGIN:VCALENDAR
BEGIN:VEVENT
SUMMARY:Course
DTSTART;TZID=Europe/Berlin:20261020T080000
DTEND;TZID=Europe/Berlin:20261020T100000
RRULE:FREQ=WEEKLY
END:VEVENT
END:VCALENDAR
"""
HORIZON = ["--start", "2026-10-19", "--end", "2026-11-02", "--zone", "Europe/Berlin"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text("name\nn[1-4]\n")
    (tmp_path / "course.ics").write_text(COURSE)
    return tmp_path


@pytest.fixture
def pool(files: Path) -> Path:
    path = files / "pool.npz"
    run("free", files / "nodes.csv", *HORIZON, "--output", path)
    return path


@pytest.mark.parametrize(("nodes", "busy"), [((), 4), (("--busy-nodes", "n[1-2]"), 2)])
def test_a_calendar_makes_nodes_busy(files: Path, nodes: tuple, busy: int) -> None:
    path = files / "free.csv"
    given = ["--busy", files / "course.ics", *nodes]
    run("free", files / "nodes.csv", *given, *HORIZON, "--output", path)
    slots = sk.read_slots(path)
    assert len(slots) == 4 + 2 * busy  # two dates, the second after the change
    assert (slots["start"] == 8 * 86400 + 11 * 3600).sum() == busy


def test_nodes_of_events_need_a_calendar(files: Path) -> None:
    given = [files / "nodes.csv", *HORIZON, "--output", files / "x.npz"]
    result = run("free", *given, "--busy-nodes", "n1")
    refused(result, "--busy-nodes n1 needs a calendar")


def test_reserve_repeats_and_bookings_are_a_calendar(pool: Path) -> None:
    span = ["--nodes", "n[1-2]", "--owner", "course"]
    span += ["--start", "2026-10-20 08:00", "--end", "2026-10-20 10:00"]
    run("reserve", pool, *span, "--rule", "FREQ=WEEKLY;COUNT=2")
    again = run("reserve", pool, *span, "--rule", "FREQ=WEEKLY;COUNT=3")
    refused(again, "3 of 3 dates of the rule do not fit")
    path = pool.with_name("bookings.ics")
    run("bookings", pool, "--output", path)
    horizon = {"start": "2026-10-19", "end": "2026-11-02", "zone": "Europe/Berlin"}
    found = sk.read_ics(path, **horizon)
    assert found["node"].tolist() == ["n[1-2]"] * 2
    assert found["reason"].tolist() == ["course"] * 2


def test_a_ledger_writes_a_calendar(pool: Path) -> None:
    ledger, path = pool.with_name("site.db"), pool.with_name("bookings.ics")
    run("ledger", "create", pool, ledger)
    run(
        *("ledger", "hold", ledger, "--nodes", "2", "--walltime", "1:00:00"),
        *("--for", "10min", "--owner", "anna"),
    )
    run("ledger", "bookings", ledger, "--output", path)
    text = path.read_text()
    assert "STATUS:TENTATIVE" in text
    assert "SUMMARY:anna" in text


def test_bookings_without_dates_have_no_calendar(tmp_path: Path) -> None:
    slots = sk.make_slots(node=[3, 5], start=0, end=9, performance=1, price=1)
    pool = sk.SlotPool(slots)
    pool.schedule([sk.Request(1, 2)], owner="anna")
    pool.save(tmp_path / "plain.npz")
    path = tmp_path / "out.ics"
    refused(run("bookings", tmp_path / "plain.npz", "--output", path), "no clock")
    assert not path.exists()


def test_a_calendar_or_a_table_makes_nodes_available(files: Path) -> None:
    path = files / "free.csv"
    given = [files / "nodes.csv", *HORIZON, "--output", path, "--available"]
    run("free", *given, files / "course.ics")
    assert len(sk.read_slots(path)) == 4 * 2
    (files / "nights.csv").write_text("node,start,end\nn2,2026-10-20,2026-10-21\n")
    run("free", *given, files / "nights.csv", "--busy", files / "course.ics")
    slots = sk.read_slots(path)
    assert slots["node"].tolist() == [1, 1]
    assert slots["end"].sum() - slots["start"].sum() == 22 * 3600

"""Pictures show dates if the slots have a clock, else plain numbers."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import slotkern as sk

pytest.importorskip("matplotlib")

from slotkern.plotting.flows import plot_replay_gantt, plot_replays, plot_trace
from slotkern.plotting.times import TimeAxis

BERLIN = ZoneInfo("Europe/Berlin")


def night(unit: str = "h") -> sk.FreeSlots:
    """Four nodes over a night of 25 hours."""
    return sk.free_slots(
        sk.Machine.homogeneous(4, price=0.5),
        {"node": ["n0"], "start": ["2026-10-25 01:00"], "end": ["2026-10-25 05:00"]},
        start="2026-10-24 18:00",
        end="2026-10-26",
        zone="Europe/Berlin",
        unit=unit,
    )


def ticks(axes: Any, clock: sk.Clock) -> tuple[list[dt.datetime], list[str]]:
    """Return the positions of the ticks as dates, and their labels."""
    axes.figure.draw_without_rendering()
    low, high = sorted(axes.get_xlim())
    there = [t for t in axes.xaxis.get_major_ticks() if low <= t.get_loc() <= high]
    dates = [clock.datetime(round(t.get_loc(), 6)) for t in there]
    return [d for d in dates if d], [t.label1.get_text() for t in there]


@pytest.mark.parametrize("unit", ["h", "min", "s", "ms", "d"])
def test_ticks_are_whole_hours_across_the_clock_change(unit: str) -> None:
    free = night(unit)
    assert free.clock is not None
    figure = sk.plot_gantt(free)
    dates, words = ticks(figure.axes[0], free.clock)
    assert len(dates) >= 3
    # The conversion to days rounds to microseconds.
    rounded = [d + dt.timedelta(microseconds=500_000) for d in dates]
    assert all(d.minute == d.second == 0 for d in rounded)
    assert words[0] == "18:00"
    assert "Oct-25" in words
    at = rounded[words.index("Oct-25")]
    assert (at.day, at.hour) == (25, 0)
    assert figure.axes[0].get_xlabel() == "time (Europe/Berlin)"
    low, high = figure.axes[0].get_xlim()
    assert free.clock.timedelta(high - low) == dt.timedelta(hours=31)


@pytest.mark.parametrize(
    ("start", "end", "common"),
    [
        ("2026-10-24 18:00", "2026-10-26", "2026-Oct"),
        ("2026-10-25 08:00", "2026-10-25 17:00", "2026-Oct-25"),
        ("2026-10-01", "2026-12-20", "2026"),
        ("2026-12-20", "2027-01-10", ""),
    ],
)
def test_the_common_part_of_ticks_is_printed_once(
    start: str, end: str, common: str
) -> None:
    machine = sk.Machine.homogeneous(2)
    free = sk.free_slots(machine, start=start, end=end, zone="Europe/Berlin")
    axes = sk.plot_gantt(free).axes[0]
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    assert axes.xaxis.get_offset_text().get_text() == common


def test_rows_are_named_and_captions_are_dates() -> None:
    free = night()
    job = sk.Request(3, walltime="4h", earliest="2026-10-25 00:00", name="$w")
    window = sk.find_window(free, job, "start", required=True)
    axes = sk.plot_gantt(free, window).axes[0]
    assert {t.get_text() for t in axes.get_yticklabels()} == {"n0", "n1", "n2", "n3"}
    assert [t.get_text() for t in axes.texts] == [r"\$w: 10-25 00:00 to 03:00"]
    few = sk.plot_gantt(free, window, nodes="used", horizon="2026-10-25 12:00").axes[0]
    assert [t.get_text() for t in few.get_yticklabels()] == ["n1", "n2", "n3"]
    assert few.get_xlim() == (0, 19)


def test_ambiguous_hours_have_an_offset() -> None:
    clock = sk.Clock("2026-10-24 18:00", zone="Europe/Berlin", unit="h")
    times = TimeAxis(clock, 0, 20)
    assert times.format(8) == "10-25 02:00+0200"
    assert times.format(9) == "10-25 02:00+0100"
    assert times.format(10) == "10-25 03:00"
    assert times.format_span(6, 10) == "10-25 00:00 to 03:00"
    assert times.format_span(5, 10) == "10-24 23:00 to 10-25 03:00"
    assert times.format(np.inf) == ""
    assert TimeAxis(clock, 0, 1).format(0.5) == "18:30"
    assert TimeAxis(clock, 0, 0.1).format(0.05) == "18:03:00"
    assert TimeAxis(clock, 0, 24 * 400).format(0) == "2026-10-24 18:00"
    plain = TimeAxis(None, 0, 9)
    assert (plain.label, plain.format(2.5), plain.format_span(0, 1234)) == (
        "time",
        "2.5",
        "0 to 1,234",
    )


def test_other_pictures_have_dates_too() -> None:
    free = night()
    job = sk.Request(2, walltime="2h")
    window = sk.find_window(free, job, "dependable", required=True)
    axes = sk.plot_neighbours(free, window).axes[0]
    assert axes.get_xlabel() == "time (Europe/Berlin)"
    assert {t.get_text() for t in axes.get_yticklabels()} <= {"n0", "n1", "n2", "n3"}
    steps = sk.plot_steps(free, job, "dependable").axes[0]
    assert steps.get_xlabel() == "start of the window (Europe/Berlin)"
    assert "at 10-25" in steps.texts[0].get_text()
    schedule = sk.schedule_batch(free, [job.replace(name="a"), job])
    assert schedule.plot().axes[0].get_xlabel() == "time (Europe/Berlin)"


def trace(header: dict[str, str]) -> sk.Trace:
    jobs = np.zeros(20, sk.SWF)
    jobs["submit"], jobs["run_time"] = np.arange(20) * 7200, 5000
    jobs["allocated"], jobs["requested_time"] = 2, 6000
    return sk.Trace(jobs, header={"MaxProcs": "8", **header})


def test_traces_with_a_start_time_have_dates() -> None:
    begin = dt.datetime(2026, 10, 24, 18, tzinfo=BERLIN)
    dated = trace(
        {
            "UnixStartTime": str(int(begin.timestamp())),
            "TimeZoneString": "Europe/Berlin",
        }
    )
    assert dated.clock is not None
    for figure in (plot_trace(dated), plot_replays({"easy": sk.replay(dated)})):
        dates, words = ticks(figure.axes[0], dated.clock)
        assert figure.axes[0].get_xlabel() == "time (Europe/Berlin)"
        assert "Oct-25" in words
        assert all(d.hour % 3 == 0 and not d.minute for d in dates)
    done = sk.replay(dated)
    axes = plot_replay_gantt(done, "2026-10-24 20:00", "2026-10-25 02:30+02:00").axes[0]
    assert axes.get_xlim() == (7200, 8.5 * 3600)
    with pytest.raises(ValueError, match="start: 2026-10-25 02:30 occurs twice"):
        plot_replay_gantt(done, "2026-10-25 02:30", "2026-10-26")
    plain = trace({})
    assert plot_trace(plain).axes[0].get_xlabel() == "days"
    assert plot_replays({"a": sk.replay(plain)}).axes[0].get_xlabel() == "days"
    assert plot_replays({}).axes[0].get_xlabel() == "days"


def test_pictures_of_a_trace_name_its_file(tmp_path: Path) -> None:
    path = tmp_path / "some_$.swf"
    sk.write_trace(path, trace({}).jobs)
    read = sk.read_trace(path)
    axes = plot_trace(read).axes[0]
    assert axes.get_title(loc="left") == r"some_\$.swf"
    assert "means of" in axes.get_ylabel()
    (legend,) = plot_replays({"a": sk.replay(read)}).legends
    assert legend.get_title().get_text() == r"some_\$.swf"
    both = {"a": sk.replay(read), "b": sk.replay(trace({}))}
    assert plot_replays(both).legends[0].get_title().get_text() == ""


def test_a_date_without_a_clock_is_refused(tmp_path: Path) -> None:
    slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)
    with pytest.raises(TypeError, match="horizon"):
        sk.plot_gantt(slots, horizon="2026-10-25")
    with pytest.raises(TypeError, match="start"):
        plot_replay_gantt(sk.replay(trace({})), "2026-10-25", 5)

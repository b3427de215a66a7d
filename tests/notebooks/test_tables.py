"""Tests of the display of results: HTML, frames and Arrow, with dates and names."""

from __future__ import annotations

import pickle
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import slotkern as sk
from slotkern.display.html import ROWS, html_of
from slotkern.display.table import Table

NAMES = ["<b>a</b>", "$x$", "\"q'", "d&d"]


def pool() -> sk.SlotPool:
    machine = sk.Machine({"name": NAMES, "price": [0.5] * 4, "rack": ["r"] * 4})
    free = sk.free_slots(
        machine,
        {"node": ["$x$"], "start": ["2026-10-25 01:00"], "end": ["2026-10-25 05:00"]},
        start="2026-10-24 18:00",
        end="2026-10-26",
        zone="Europe/Berlin",
        unit="h",
    )
    return sk.SlotPool(free)


def things() -> dict[str, Any]:
    """Return an object of each class with a display, most with dates and odd names."""
    slots = pool()
    job = sk.Request(2, walltime="2h", name="<i>$job$")
    window = slots.find(job, "start")
    schedule = sk.schedule_batch(slots, [job, job.replace(name="other")])
    jobs = np.zeros(3, sk.SWF)
    jobs["run_time"], jobs["allocated"] = 10, 1
    trace = sk.Trace(jobs, header={"MaxProcs": "2", "UnixStartTime": "1792857600"})
    nodes = sk.generate_community(jobs=20, seed=1)
    booked = slots.copy()
    booked.book(window, owner="<u>$me$</u>")
    found = {
        "window": window,
        "table": sk.find_windows(slots, [job, job.replace(nodes=9)]),
        "bookings": slots.copy().schedule({"a<": job, "big": job.replace(nodes=9)}),
        "alternatives": sk.find_alternatives(slots, job, limit=25),
        "pool": booked,
        "free": sk.free_slots(slots.machine, start=0, end=9),
        "machine": slots.machine,
        "why": sk.explain(slots, job.replace(nodes=4, budget=1)),
        "choice": sk.choose([1, 2, 3], [4, 5, 6], 2, 9),
        "each": sk.choose_one_each([1.0, 2.0], [1.0, 1.0], [0, 1, 2], 5),
        "curve": sk.trade_off([1.0, 2.0], [2.0, 1.0], [0, 2]),
        "environment": sk.generate_environment(nodes=3),
        "schedule": schedule,
        "execution": schedule.execute(),
        "cycles": sk.run_cycles(slots, [job], [0], length=1),
        "trace": trace,
        "replay": sk.replay(trace),
        "community": sk.simulate_community(*nodes, "ind"),
    }
    return found


THINGS = things()


class Reader(HTMLParser):
    """Parses HTML: collects the text of each cell, and asserts that tags are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in {
            *("div", "b", "table", "thead", "tbody", "tr", "th", "td"),
            *("svg", "rect"),
        }
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        assert tag == "rect"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] in (["td"], ["th"]):
            self.cells[-1][-1] += data
        self.text += data


@pytest.mark.parametrize("name", THINGS)
def test_html_is_valid_short_and_escaped(name: str) -> None:
    text = THINGS[name]._repr_html_()
    read = Reader(text)
    assert len(read.cells) <= ROWS + 2
    assert len(text) < 12_000
    assert "mathjax_ignore" in text  # a dollar sign must not begin a formula
    assert not re.search(r"<(i|u)>", text)
    width = {len(row) for row in read.cells if "…" not in row[0]}
    assert len(width) <= 1


def test_html_contents() -> None:
    window = Reader(THINGS["window"]._repr_html_())
    assert "Window of <i>$job$: square start" in window.text
    assert "runtime 2:00:00" in window.text
    assert window.cells[0][:4] == ["row", "node", "start", "end"]
    assert window.cells[1][1:4] == [
        "<b>a</b>",
        "2026-10-24 18:00:00+02:00",
        "2026-10-24 20:00:00+02:00",
    ]
    bookings = Reader(THINGS["bookings"]._repr_html_())
    assert [row[:2] for row in bookings.cells[1:]] == [
        ["a<", "booked"],
        ["big", "nodes"],
    ]
    assert bookings.cells[1][-2] == "<b>a</b>, $x$"
    assert bookings.cells[2][2:5] == ["", "", ""]
    many = Reader(THINGS["alternatives"]._repr_html_())
    assert many.cells[1 + ROWS // 2] == [f"… {len(THINGS['alternatives'])} rows"]
    assert "owners <u>$me$</u>" in Reader(THINGS["pool"]._repr_html_()).text
    why = Reader(THINGS["why"]._repr_html_())
    assert "No window fits." in why.text
    assert ["budget", "1", "4"] in why.cells
    assert "Europe/Berlin" in Reader(pool().clock._repr_html_()).text  # type: ignore[union-attr]


def test_html_numbers_and_bars() -> None:
    columns = {
        "start": np.array([0.0, 1.0, np.nan]),
        "end": np.array([2.0, np.inf, np.nan]),
        "x": np.array([1e300, 1234567.125, -0.1234567]),
        "text": np.array(["a" * 99, "", "b"]),
    }
    text = html_of(Table("t", columns, 3))
    read = Reader(text)
    assert [row[0] for row in read.cells[1:]] == ["0", "1", ""]
    assert [row[1] for row in read.cells[1:]] == ["2", "inf", ""]
    assert [row[2] for row in read.cells[1:]] == ["1e+300", "1234567.12", "-0.123457"]
    assert len(read.cells[1][3]) == 60
    assert text.count("<svg") == 3
    assert text.count('fill="#3b8fc4"') == 2
    wide = Table("w", {f"c{i}": np.zeros(1) for i in range(30)}, 1)
    assert Reader(html_of(wide)).cells[0][-1] == "… 30 columns"


@pytest.mark.parametrize("name", THINGS)
def test_pandas_and_arrow_are_equal(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    thing = THINGS[name]
    table = thing.to_arrow()
    frame = thing.to_pandas()
    assert table.column_names == list(frame)
    read = pa.table(thing)  # reads __arrow_c_stream__ only
    assert read.schema == table.schema
    for column in frame:
        ours, theirs = frame[column].tolist(), read[column].to_pylist()
        assert len(ours) == len(theirs) == table.num_rows
        assert all(
            a == b or (pandas.isna(a) and (b is None or b != b))
            for a, b in zip(ours, theirs, strict=True)
        )


def test_frames_have_zoned_dates_and_node_names() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    window = THINGS["window"]
    frame = window.to_pandas()
    assert str(frame["start_time"].dtype) == "datetime64[us, Europe/Berlin]"
    assert frame["start_time"][0].to_pydatetime() == window.start_time
    assert frame["node_name"].tolist() == list(window.names)
    kind = window.to_arrow().schema.field("end_time").type
    assert str(kind) == "timestamp[us, tz=Europe/Berlin]"
    for zone, name in (("+02:00", "+02:00"), ("UTC", "UTC"), (None, "UTC")):
        clock = sk.Clock("2026-01-01T00:00Z", zone=zone)
        slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)
        table = sk.SlotPool(slots, clock=clock).to_arrow()
        assert str(table.schema.field("start_time").type).endswith(f"tz={name}]")
    endless = sk.make_slots(node=[0], start=0, end=np.inf, performance=1, price=1)
    found = sk.SlotPool(endless, clock=clock)
    assert found.to_arrow()["end_time"].to_pylist() == [None]
    assert found.to_pandas()["end_time"].isna().all()


def test_polars_reads_arrow_stream() -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    free = pool()
    frame = polars.DataFrame(free)
    assert frame["node"].to_list() == free.slots["node"].tolist()
    assert str(frame.schema["start_time"]).startswith("Datetime")
    listed = polars.DataFrame(THINGS["bookings"].to_arrow())
    assert listed["reason"].to_list() == ["booked", "nodes"]
    again = sk.from_arrow(free)
    assert again["start"].tolist() == free.slots["start"].tolist()


@pytest.mark.parametrize("name", THINGS)
def test_objects_with_plot_draw_figures(name: str) -> None:
    pytest.importorskip("matplotlib")
    thing = THINGS[name]
    if name in ("machine", "why", "choice", "each", "curve"):
        assert not hasattr(thing, "plot")
        return
    figure = thing.plot()
    assert figure.axes
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_window_plot_uses_given_slots() -> None:
    pytest.importorskip("matplotlib")
    axes = THINGS["window"].plot(pool(), nodes="used").axes[0]
    labels = {t.get_text() for t in axes.get_yticklabels()}
    assert labels == {"<b>a</b>", r"\$x\$"}
    owned = [t.get_text() for t in THINGS["pool"].plot().axes[0].texts]
    assert owned == [r"<u>\$me\$</u>, <i>\$job\$: 10-24 18:00 to 20:00"]


def test_required_raises_with_explanation() -> None:
    slots = pool()
    job = sk.Request(9, walltime="2h", deadline="2026-10-25 00:00")
    assert slots.find(job) is None
    with pytest.raises(sk.NoWindowError, match="No window fits") as caught:
        slots.find(job, required=True)
    error = caught.value
    assert str(error) == str(sk.explain(slots, job))
    assert isinstance(error, LookupError)
    assert error.explanation.asked is job
    assert pickle.loads(pickle.dumps(error)).args == error.args
    small = sk.Request(1, 1)
    assert sk.find_window(slots, small, required=True) == slots.find(small)
    with pytest.raises(sk.NoWindowError):
        sk.find_window(slots.slots, sk.Request(9, 1), "dependable", required=True)
    with pytest.raises(TypeError, match="required"):
        sk.find_windows(slots, [small], required=True)


def test_batch_windows_have_node_and_request_names() -> None:
    slots = pool()
    jobs = [sk.Request(2, walltime="1h", name="first"), sk.Request(1, 2)]
    changed = slots.copy()
    changed.book(slots.find(jobs[0]))
    for given in (slots, changed, sk.free_slots(slots.machine, start=0, end=40)):
        if getattr(given, "clock", None) is None:
            jobs = [jobs[0].replace(volume=1), jobs[1]]
        for policy in (sk.CSS, sk.Backfilling("easy"), sk.BSF(1)):
            schedule = sk.schedule_batch(given, jobs, policy)
            assert [window.name for window in schedule] == ["first", "job 2"]
            assert schedule.windows.names == ["first", "job 2"]
            for found in (schedule, schedule.execute().windows, schedule.alternatives):
                for window in found:
                    assert window is not None
                    assert set(window.names) <= set(NAMES)
                    assert window.name in ("first", "job 2")
    names = [window.names for window in sk.schedule_batch(slots, jobs[1:])]
    flow = sk.run_cycles(slots, jobs[1:], [0], length=1)
    assert [window.names for window in flow.schedules[0]] == names
    assert [window.name for window in flow.schedules[0]] == ["job 1"]
    assert slots.booked.size == 0

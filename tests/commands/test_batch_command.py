"""``slotkern batch`` and its pictures."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import slotkern as sk
from slotkern.commands.main import app
from slotkern.plotting.batch import MAX_OUTLINES, plot_schedule, plot_trade_off

JOBS = "name,nodes,volume,budget\nbig,2,8,\nsmall,1,4,9\nlong,1,900,\n"


@pytest.fixture
def files(tmp_path):
    slots = sk.make_slots(
        node=[0, 1, 2], start=0, end=40, performance=[1, 2, 4], price=[1, 3, 7]
    )
    sk.write_slots(tmp_path / "slots.csv", slots)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def run(files, *words):
    slots, jobs = files / "slots.csv", files / "jobs.csv"
    return CliRunner().invoke(app, ["batch", str(slots), str(jobs), *words])


def test_one_policy_prints_a_row_per_job(files):
    done = run(files, "--policy", "slicer:2", "--minimize", "time", "--execute")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert any("long" in line and "time" in line for line in lines)
    assert "2 of 3 jobs scheduled" in done.output
    assert "bound for any schedule of these jobs" in done.output
    assert "real start" in done.output


def test_several_policies_print_a_row_each(files):
    done = run(files, *[w for p in ("css", "easy", "bsf:1") for w in ("--policy", p)])
    assert done.exit_code == 0
    names = [line.split()[0] for line in done.output.splitlines() if line.split()]
    assert [n for n in names if n in ("css", "easy", "bsf:1")] == [
        "css",
        "easy",
        "bsf:1",
    ]


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_the_schedule_is_written(files, suffix):
    path = files / f"out.{suffix}"
    assert run(files, "--output", str(path)).exit_code == 0
    if suffix == "csv":
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
    elif suffix == "json":
        rows = json.loads(path.read_text())
    else:
        rows = pq.read_table(path).to_pylist()
    assert [row["job"] for row in rows] == ["big", "big", "small", "long"]
    assert rows[-1]["reason"] == "time"
    batch = sk.read_batch(files / "jobs.csv")
    schedule = sk.schedule_batch(sk.read_slots(files / "slots.csv"), batch)
    parts = schedule.windows.parts
    assert [float(row["start"]) for row in rows[:3]] == parts["start"].tolist()
    assert [int(row["node"]) for row in rows[:3]] == parts["node"].tolist()


def test_exit_code_is_1_if_no_job_is_scheduled(files):
    (files / "jobs.csv").write_text("nodes,volume\n9,1\n")
    assert run(files).exit_code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "fast"], "a policy is css, slicer:K"),
        (["--policy", "slicer:0"], "policy 'slicer:0': k must be at least 1"),
        (["--policy", "slicer:x"], "policy 'slicer:x': 'x' is not an integer"),
        (["--policy", "bsf:1:x"], "policy 'bsf:1:x': 'x' is not an integer"),
        (["--output", "out.txt"], "does not end in .csv, .json, .parquet"),
        (["--minimize", "time", "--maximize", "cost"], "contradict"),
    ],
)
def test_invalid_options_are_one_error(files, words, message):
    done = run(files, *words)
    assert isinstance(done.exception, (ValueError, SystemExit))
    assert message in str(done.exception) + done.output


def test_pictures(files):
    plot, curve = files / "batch.png", files / "curve.svg"
    assert run(files, "--plot", str(plot), "--curve", str(curve)).exit_code == 0
    assert plot.stat().st_size > 10_000
    assert curve.read_text().startswith("<?xml")


def test_a_page(files):
    page = files / "batch.html"
    assert run(files, "--html", str(page)).exit_code == 0
    assert "<title>jobs.csv on slots.csv, css</title>" in page.read_text("ascii")
    assert run(files, "--html", str(files / "batch.pdf")).exit_code != 0


@pytest.mark.parametrize(("nodes", "named"), [(40, True), (80, True), (150, False)])
def test_names_are_within_bars_of_any_height(nodes, named):
    slots = sk.make_slots(
        node=np.arange(nodes), start=0, end=90, performance=1, price=1
    )
    schedule = sk.schedule_batch(slots, {"gap": sk.Request(9, 60)})
    figure = plot_schedule(schedule)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert len(axes.texts) == (9 if named else 0)
    bars = [
        path.get_extents(axes.transData)
        for box in axes.collections
        if box.get_zorder() == 6
        for path in box.get_paths()
    ]
    for text in axes.texts:
        drawn = text.get_window_extent()
        assert any(bar.y0 <= drawn.y0 + 0.5 < drawn.y1 - 0.5 <= bar.y1 for bar in bars)


def test_only_chosen_windows_are_drawn_of_many_alternatives():
    slots = sk.make_slots(
        node=np.arange(400), start=0, end=9, performance=1, price=np.arange(400) + 1.0
    )
    schedule = sk.schedule_batch(slots, {"a": sk.Request(1, 8)})
    rest = len(schedule.alternatives) - 1
    assert rest > MAX_OUTLINES

    def drawn(**options):
        axes = plot_schedule(schedule, **options).axes[0]
        outlines = [c for c in axes.collections if c.get_zorder() == 5]
        return sum(len(box.get_paths()) for box in outlines), axes.get_title(loc="left")

    assert drawn() == (
        0,
        f"1 of 1 jobs, {rest + 1} alternatives ({rest} not drawn)",
    )
    count, title = drawn(alternatives=True, title="all")
    assert (count, title) == (rest, "all")
    assert drawn(title="some")[1] == f"some ({rest} not drawn)"


def test_a_table_names_some_nodes_and_counts_the_rest(files):
    slots = sk.make_slots(node=range(50), start=0, end=9, performance=1, price=1)
    sk.write_slots(files / "slots.csv", slots)
    (files / "jobs.csv").write_text("nodes,volume\n50,8\n")
    printed = " ".join(run(files).output.split())
    assert "0 1 2 3" in printed
    assert "... +38" in printed
    assert "12 13" not in printed


def test_jobs_without_room_for_a_label_are_in_the_legend():
    slots = sk.make_slots(
        node=range(30), start=0, end=900, performance=1, price=1, kind=range(30)
    )
    jobs = {f"work {k:02}": sk.Request(1, 8, where=f"kind == {k}") for k in range(30)}
    figure = plot_schedule(sk.schedule_batch(slots, jobs, most=1))
    figure.draw_without_rendering()
    axes, (legend,) = figure.axes[0], figure.legends
    filled = [c for c in axes.collections if c.get_zorder() == 6]
    looks = {(tuple(c.get_facecolor()[0]), c.get_hatch()) for c in filled}
    assert len(looks) == 30
    printed = [text.get_text() for text in legend.get_texts()]
    printed += [text.get_text() for text in axes.texts]
    assert sorted(printed) == sorted(jobs)
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert not box.overlaps(axes.xaxis.label.get_window_extent())


def test_a_picture_outlines_all_and_fills_the_chosen(files):
    slots = sk.read_slots(files / "slots.csv")
    schedule = sk.schedule_batch(slots, sk.read_batch(files / "jobs.csv"))
    axes = plot_schedule(schedule).axes[0]
    boxes = [c for c in axes.collections if c.get_zorder() in (5, 6)]
    drawn = {5: 0, 6: 0}
    for box in boxes:
        drawn[box.get_zorder()] += len(box.get_paths())
    chosen = len(schedule.windows.parts)
    assert drawn == {5: len(schedule.alternatives.parts) - chosen, 6: chosen}
    labels = [text.get_text() for text in axes.texts]
    assert sorted(labels) == ["big", "big", "small"]
    called = sk.schedule_batch(
        slots, {"$a": sk.Request(1, 16), "long" * 99: sk.Request(1, 4)}
    )
    named = [text.get_text() for text in plot_schedule(called).axes[0].texts]
    assert named == [r"\$a"]  # the bar of the other job is too narrow
    (legend,) = plot_schedule(called).legends
    (printed,) = [text.get_text() for text in legend.get_texts()]
    assert printed.startswith("longlong")
    assert len(printed) == 40
    line = plot_trade_off(schedule).axes[0].lines[0]
    assert (np.diff(line.get_ydata()) < 0).all()
    planned = sk.schedule_batch(slots, [sk.Request(1, 4)], sk.Backfilling())
    with pytest.raises(ValueError, match="no trade-off"):
        plot_trade_off(planned)

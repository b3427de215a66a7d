"""Workloads of communities, generated or from traces; the command; the plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_files import REAL

import slotkern as sk


@pytest.mark.parametrize(("nodes", "windows"), [(26, 5), (1, 1), (10, 2), (103, 21)])
def test_the_share_of_windows_nodes_is_exact(nodes: int, windows: int) -> None:
    for seed in range(8):
        grid = sk.generate_community(jobs=5, nodes=nodes, seed=seed).nodes
        assert grid["label"].sum() == windows


def test_the_generated_workload_has_its_documented_properties() -> None:
    jobs, nodes = sk.generate_community(seed=4)
    assert (len(jobs), len(nodes)) == (10_201, 26)
    assert (np.diff(jobs["submit"]) >= 0).all()
    assert jobs["submit"].max() < 789_000
    assert 0.5 < (jobs["processors"] == 1).mean() < 0.75
    handed = np.bincount(jobs["home"], minlength=26)
    assert handed.max() - handed.min() <= 1
    assert 0.17 < jobs["label"].mean() < 0.23
    assert (jobs["run"] >= 1).all()
    assert (jobs["run"] <= 9 * 86400).all()
    again = sk.generate_community(seed=4)
    assert jobs.tolist() == again.jobs.tolist()
    assert jobs.tolist() != sk.generate_community(seed=5).jobs.tolist()
    more = sk.generate_community(jobs=102, nodes=52, seed=4)
    assert (len(more.jobs), len(more.nodes)) == (102, 52)
    assert more.jobs["submit"].max() < 789_000 * 102 / 10_201 / 2 + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "grid"}, "preset must be one of casa"),
        ({"jobs": -1}, "jobs must be at least 0"),
        ({"nodes": 0}, "nodes must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_invalid_workloads_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sk.generate_community(**options)


def flow() -> sk.Trace:
    rows = np.full(6, -1, sk.SWF)
    rows["submit"] = [100, 0, 50, 60, 70, 80]
    rows["run_time"] = [10, 20, 30, 0, 10, 10]
    rows["requested_time"] = [40, -1, 10, 5, 10, 10]
    rows["allocated"] = [2, 1, 3, 1, -1, 2]
    rows["partition"] = [7, 5, 7, 5, 7, 5]
    return sk.Trace(rows, header={"MaxProcs": "10"})


def test_a_trace_becomes_a_community() -> None:
    jobs, nodes = sk.community_from_trace(flow())
    assert jobs["submit"].tolist() == [0, 50, 80, 100]
    assert jobs["home"].tolist() == [0, 1, 0, 1]
    assert nodes["processors"].tolist() == [2, 3]
    user, _ = sk.community_from_trace(flow(), estimates="user", squeeze=0.5)
    assert user["estimate"].tolist() == [20, 30, 10, 40]
    assert user["submit"].tolist() == [0, 25, 40, 50]
    _, equal = sk.community_from_trace(flow(), homes=3)
    assert equal["processors"].tolist() == [4, 3, 3]
    part, _ = sk.community_from_trace(flow(), sample=2, offset=1, estimates=3)
    assert part["processors"].tolist() == [3, 2]
    assert part["estimate"].tolist() == [90, 30]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"homes": "user"}, "field 'user' of the trace is unknown"),
        ({"homes": "origin_site"}, "the trace has no field 'origin_site'"),
        ({"homes": "queue"}, "homes must be one of"),
        ({"homes": 11}, "11 nodes, but the trace has 10 processors"),
        ({"windows": 2}, "windows must be at most 1"),
        ({"squeeze": 0}, "squeeze must be more than 0"),
        ({"estimates": "none"}, "estimates must be one of"),
    ],
)
def test_invalid_options_for_traces_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sk.community_from_trace(flow(), **options)
    with pytest.raises(ValueError, match="no job has a submission"):
        sk.community_from_trace(sk.Trace(np.full(2, -1, sk.SWF)))


@pytest.mark.skipif(not REAL, reason="the real traces are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_traces_run_in_all_scenarios(path: Path) -> None:
    trace = sk.read_trace(path)
    split = "partition" if len(np.unique(trace.jobs["partition"])) > 1 else 4
    whole = sk.community_from_trace(trace, homes=split, squeeze=0.5)
    jobs = whole.jobs[:5000]
    waits = {}
    for name in ("ind", "cen", "dec-g", "dec-p"):
        run = sk.simulate_community(jobs, whole.nodes, name)
        assert len(run.completed) + sum(run.failures().values()) == len(jobs)
        waits[name] = run.metrics()["waiting"]
        assert run.counts["promises"] == 0
    assert waits["ind"] > waits["dec-g"]


# --- the command line


def command(*arguments: Any) -> Any:
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from typer.testing import CliRunner

    from slotkern.commands import main

    words = ["community", *map(str, arguments)]
    return CliRunner().invoke(main.app, words)


def test_the_command_compares_scenarios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from slotkern.plotting import communities

    titles = {}
    save = communities.save_figure

    def saved(figure: Any, target: Any) -> Any:
        titles[target.name] = figure.axes[0].get_title()
        return save(figure, target)

    monkeypatch.setattr(communities, "save_figure", saved)
    options = ("--jobs", 300, "--seeds", 2, "--plot", tmp_path / "new")
    chosen = ("ind", "cen:central-scan", "dec:3", "dec-g")
    found = command(*options, *(word for s in chosen for word in ("--scenario", s)))
    assert found.exit_code == 0, found.output
    for word in (*chosen, "300 jobs on 26 nodes, 2 seeds", "ind: failed: no node"):
        assert word in found.output
    pictures = {path.name for path in (tmp_path / "new").iterdir()}
    assert "communities.png" in pictures
    assert len(pictures) == 5
    for name in chosen:
        assert titles[f"flow-{name.replace(':', '-')}.png"] == name


def test_the_table_of_all_scenarios_is_as_wide_as_a_page() -> None:
    pytest.importorskip("rich")
    found = command("--jobs", 100, "--seeds", 2)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert max(map(len, lines)) <= 120
    figures = {
        line[:26].strip(): line[26:].split() for line in lines[1:] if line.strip()
    }
    assert figures[""] == ["ind", "cen", "dec-g", "dec-p"]
    jobs, nodes = sk.generate_community(jobs=100, seed=0)
    other = sk.generate_community(jobs=100, seed=1)
    done = [
        100 * (sk.simulate_community(*work, "ind", seed=k).metrics()["completion"])
        for k, work in enumerate(((jobs, nodes), other))
    ]
    assert float(figures["completed %"][0]) == pytest.approx(sum(done) / 2)
    for name in ("waiting +-", "waiting, median", "waiting, common jobs", "messages"):
        assert len(figures[name]) == 4


def test_the_command_reads_traces(tmp_path: Path) -> None:
    path = tmp_path / "flow.swf"
    sk.write_trace(path, flow().jobs)
    found = command(path, "--seeds", 1, "--homes", "partition")
    assert found.exit_code == 0, found.output
    assert "4 jobs on 2 nodes" in found.output
    plain = command(path, "--seeds", 1, "--homes", "partition", "--windows", 0)
    assert found.output == plain.output  # without --windows no label is assigned


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scenario", "best"), "none of ind, cen, dec-g, dec-p"),
        (("--scenario", "dec:x"), "'dec:x' is not dec:K"),
        (("--scenario", "cen:x"), "fallback must be one of"),
        (("--preset", "x"), "preset must be one of"),
        (("--loss", "1"), "loss must be below 1"),
    ],
)
def test_the_command_reports_errors(words: Any, message: str) -> None:
    found = command("--jobs", 10, *words)
    assert found.exit_code == 2
    assert message in found.stderr
    assert found.stderr.count("\n") == 1


# --- plots


def test_plots_show_the_metrics(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from slotkern.plotting.communities import plot_communities, plot_flow

    jobs, nodes = sk.generate_community(jobs=200, seed=6)
    runs = {name: sk.simulate_community(jobs, nodes, name) for name in ("ind", "dec-p")}
    figure = plot_communities(runs, path=tmp_path / "a.svg")
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    found = [100 * run.metrics()["completion"] for run in runs.values()]
    assert heights == pytest.approx(found)
    labels = [axes.get_ylabel() for axes in figure.axes]
    for what, metric, scale in (
        ("utilization, %", "utilization", 100),
        ("uptime, days", "uptime", 1 / 86400),
    ):
        bars = figure.axes[labels.index(what)].patches  # each measure has its own axes
        found = [scale * run.metrics()[metric] for run in runs.values()]
        assert [bar.get_height() for bar in bars] == pytest.approx(found)
    assert "jobs of ind by state" in [axes.get_title() for axes in figure.axes]
    flow = plot_flow(runs["dec-p"], path=tmp_path / "b.png")
    assert len(flow.axes[0].texts) >= 26
    assert (tmp_path / "a.svg").stat().st_size > 1000
    with pytest.raises(ValueError, match="needs at least one run"):
        plot_communities({})


def test_jobs_that_name_a_preceding_job_are_counted_in_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = np.full(3, -1, sk.SWF)
    rows["job"], rows["submit"] = [1, 2, 3], [0, 5, 9]
    rows["run_time"], rows["allocated"], rows["partition"] = 10, 1, 1
    sk.community_from_trace(sk.Trace(rows))
    assert "preceding" not in caplog.text
    rows["preceding"] = [-1, 1, 2]
    jobs = sk.community_from_trace(sk.Trace(rows)).jobs
    assert "2 of 3 jobs name a preceding job (field 17)" in caplog.text
    assert jobs["submit"].tolist() == [0, 5, 9]

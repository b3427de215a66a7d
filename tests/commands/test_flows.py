"""``slotkern trace`` and ``slotkern replay``."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from trace_files import swf_line

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import refused, run

from slotkern.files import atomic


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    jobs = np.full(80, -1, sk.SWF)
    jobs["job"] = np.arange(1, 81)
    jobs["submit"] = np.sort(rng.integers(0, 2000, 80))
    jobs["wait"] = rng.integers(0, 50, 80)
    jobs["run_time"] = rng.integers(0, 200, 80)
    jobs["requested_time"] = (1 + rng.integers(0, 4, 80)) * jobs["run_time"]
    jobs["requested_time"][4] = 1
    jobs["allocated"] = rng.integers(1, 9, 80)
    jobs["user"] = rng.integers(0, 3, 80)
    path = tmp_path / "small.swf"
    sk.write_trace(path, jobs, header={"MaxProcs": "8"})
    return path


def test_trace(trace_file: Path, tmp_path: Path) -> None:
    result = run("trace", trace_file, "--plot", tmp_path / "load.png")
    assert result.exit_code == 0, result.stderr
    for word in (
        "80 jobs of 3 users",
        "8 processors",
        "load ",
        "overrun 1",
        "run time",
    ):
        assert word in result.stdout
    assert (tmp_path / "load.png").read_bytes().startswith(b"\x89PNG")
    cleaned = run("trace", trace_file, "--clean", "overrun", "--clean", "zero-run")
    assert "cleaned: zero-run" in cleaned.stdout
    trace_file.write_text("; nothing\n" + swf_line(1) + "\nx\n")
    refused(run("trace", trace_file), "line 3: 1 fields, not 18")
    skipped = run("trace", trace_file, "--errors", "skip")
    assert "1 line skipped, the first: line 3: 1 fields" in skipped.stdout
    assert "no number of processors in the header" in skipped.stdout
    skipped = run("replay", trace_file, "--errors", "skip")
    assert "; malformed lines skipped: 1. Times" in skipped.stdout
    refused(run("trace", trace_file, "--max-bytes", 5), "more than 5 bytes")
    refused(run("trace", trace_file, "--clean", "all-of-it"), "clean must be one of")


def test_a_trace_without_recorded_runs(trace_file: Path, tmp_path: Path) -> None:
    jobs = sk.read_trace(trace_file).jobs.copy()
    jobs["wait"] = -1
    sk.write_trace(trace_file, jobs, header={"MaxProcs": "8"})
    result = run("trace", trace_file)
    assert result.exit_code == 0, result.stderr
    assert "no job has a recorded run" in result.stdout
    assert "nan" not in result.stdout
    picture = tmp_path / "load.png"
    refused(run("trace", trace_file, "--plot", picture), "no load to draw")
    assert not picture.exists()


def test_a_trace_without_waits_and_processors(tmp_path: Path) -> None:
    jobs = np.zeros(
        3,
        [("job", "i8"), ("submit", "f8"), ("run_time", "f8"), ("allocated", "i8")],
    )
    jobs["job"], jobs["submit"] = [1, 2, 3], [0, 10, 20]
    jobs["run_time"], jobs["allocated"] = [100, 100, 50], [4, 8, 2]
    path = tmp_path / "plain.swf"
    sk.write_trace(path, jobs)
    result = run("replay", path)
    assert result.exit_code == 0, result.stderr
    assert "3 jobs on 8 processors" in result.stdout
    with pytest.raises(
        ValueError, match=r"none of 3 jobs can be placed: .* known wait$"
    ):
        sk.slots_from_trace(path, at=0, horizon=10)


def test_replay_compares_policies(trace_file: Path, tmp_path: Path) -> None:
    folder, pictures = tmp_path / "out", tmp_path / "pictures"
    words = ("--policy", "easy", "--policy", "conservative", "--policy", "sjf")
    result = run("replay", trace_file, *words, "--output", folder, "--plot", pictures)
    assert result.exit_code == 0, result.stderr
    assert "80 jobs on 8 processors" in result.stdout
    trace = sk.read_trace(trace_file)
    for name in words[1::2]:
        done = sk.replay(trace, None, name)
        assert name in result.stdout
        for metric in ("wait_mean", "wait_p95", "bounded_slowdown_p95"):
            assert f"{done.metrics()[metric]:,.2f}" in result.stdout
        written = sk.read_trace(folder / f"{name}.swf").jobs
        starts = written["submit"] + written["wait"]
        assert starts.tolist() == done.jobs["start"].tolist()
    assert len(list(folder.iterdir())) == 3
    assert (pictures / "policies.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_replay_writes_its_table(trace_file: Path, tmp_path: Path, suffix: str) -> None:
    table = tmp_path / f"table{suffix}"
    words = ("--policy", "fcfs", "--policy", "easy", "--output", table)
    result = run("replay", trace_file, *words)
    assert result.exit_code == 0, result.stderr
    if suffix == ".csv":
        rows = list(csv.DictReader(table.read_text().splitlines()))
    else:
        rows = json.loads(table.read_text())
    assert [row["policy"] for row in rows] == ["fcfs", "easy"]
    for row in rows:
        done = sk.replay(sk.read_trace(trace_file), None, row["policy"])
        for name, value in done.metrics().items():
            found = float("nan" if row[name] in ("", None) else row[name])
            np.testing.assert_equal(found, value)
    copy = tmp_path / "trace.csv"
    copy.write_bytes(trace_file.read_bytes())
    refused(run("replay", copy, "--output", copy), "is an input of this command")


def test_replay_writes_a_page_of_the_first_policy(
    trace_file: Path, tmp_path: Path
) -> None:
    page = tmp_path / "replay.html"
    words = ("--policy", "sjf", "--policy", "easy", "--html", page)
    assert run("replay", trace_file, *words).exit_code == 0
    title = f"<title>{trace_file.name}, sjf</title>"
    assert title in page.read_text(encoding="ascii")
    refused(run("replay", trace_file, "--html", "a.png"), "does not end in .html")


def test_replay_what_if(trace_file: Path) -> None:
    plain = run("replay", trace_file)
    assert "easy" in plain.stdout
    for words in (
        ("--load", 2),
        ("--more-processors", 8),
        ("--cluster", 12),
        ("--estimates", "exact"),
        ("--estimates", 5),
        ("--overrun", "extend"),
        ("--blocked", "100:900:8"),
        ("--clean", "zero-run"),
    ):
        result = run("replay", trace_file, *words)
        assert result.exit_code == 0, result.stderr
        assert result.stdout != plain.stdout, words


def test_replay_charges_prices_over_time(trace_file: Path, tmp_path: Path) -> None:
    prices, table = tmp_path / "prices.csv", tmp_path / "table.json"
    prices.write_text("start,price\n0,0.5\n300,2\n900,0.25\n")
    words = ("--policy", "fcfs", "--policy", "easy", "--output", table)
    plain = run("replay", trace_file, *words)
    assert "cost" not in plain.stdout
    result = run("replay", trace_file, *words, "--prices", prices)
    assert result.exit_code == 0, result.stderr
    assert "cost" in result.stdout
    trace = sk.read_trace(trace_file)
    for row in json.loads(table.read_text()):
        done = sk.replay(trace, policy=row["policy"], prices=prices)
        assert row["cost"] == done.metrics()["cost"] > 0
        assert done.jobs["start"].tolist() == (
            sk.replay(trace, policy=row["policy"]).jobs["start"].tolist()
        )
    prices.write_text("start,end,price\n0,300,1\n")
    refused(run("replay", trace_file, "--prices", prices), "there is no price from")
    refused(
        run("replay", trace_file, "--prices", prices, "--output", prices),
        "is an input of this command",
    )


def test_replay_refuses_in_one_line(trace_file: Path, tmp_path: Path) -> None:
    refused(run("replay", trace_file, "--policy", "best"), "best", "fcfs, easy")
    refused(run("replay", trace_file, "--cluster", "many"), "many")
    refused(run("replay", trace_file, "--cluster", "-3"), "-3")
    for option, name in (("--plot", "x.png"), ("--output", "a.swf")):
        message = f"{option}: {tmp_path / name} must be a folder"
        refused(run("replay", trace_file, option, tmp_path / name), message)
        assert not (tmp_path / name).exists()
    message = "more_processors: -200 to 12 processors does not leave 1 to"
    options = ("--cluster", 12, "--more-processors", "-200")
    refused(run("replay", trace_file, *options), message)
    refused(run("replay", trace_file, "--blocked", "3:4"), "3:4", "START:STOP")
    refused(run("replay", trace_file, "--blocked", "4:3:1"), "blocked: row 0")
    refused(run("replay", trace_file, "--blocked", f"3:4:{2**40}"), "blocked: row 0")
    refused(run("replay", trace_file, "--more-processors", 10**20), "more_processors")
    refused(run("replay", trace_file, "--estimates", "1e308"), "add up to more than")
    refused(run("replay", trace_file, "--estimates", "none"), "estimates", "none")
    refused(run("replay", trace_file, "--load", 0), "load")
    refused(run("replay", tmp_path / "no.swf"), "no.swf")
    broken = tmp_path / "broken.swf.gz"
    broken.write_bytes(gzip.compress(b"1 2 3\n" * 99)[:-9])
    refused(run("replay", broken), "broken.swf.gz")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left")])
def test_a_failed_write_leaves_no_files(
    trace_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
) -> None:
    folder = tmp_path / "out"
    sk.replay(sk.read_trace(trace_file)).write_swf(tmp_path / "easy.swf")
    folder.mkdir()
    (folder / "easy.swf").write_text("old")
    calls = []

    def stops(file: int) -> None:
        calls.append(file)
        if len(calls) == 2:
            raise failure

    monkeypatch.setattr(atomic.os, "fsync", stops)
    words = ("--policy", "easy", "--policy", "sjf", "--output", folder)
    result = run("replay", trace_file, *words)
    assert result.exit_code != 0
    assert [path.name for path in folder.iterdir()] == ["easy.swf"]
    assert (folder / "easy.swf").read_text() == "old"

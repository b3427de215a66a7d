"""Result files in all formats; invalid outputs fail before the search."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk

pytest.importorskip("pyarrow")
pytest.importorskip("typer")
import pyarrow.parquet as pq
from command_line import run

from slotkern.commands import tables

JOB = ["--nodes", 2, "--walltime", "4h", "--earliest", "2026-10-25 00:00"]
JOBS = "name,nodes,walltime,budget\nocean,2,4:00:00,10\nall,9,1h,\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool of three named nodes over a night of 25 hours, and a table of jobs."""
    folder = tmp_path_factory.mktemp("results")
    machine = sk.Machine(
        {"name": ["a", "b", "é"], "price": [0.5, 0.25, 1], "memory": [1, 2, 4]}
    )
    horizon = {"start": "2026-10-24 18:00", "end": "2026-10-26", "unit": "h"}
    free = sk.free_slots(machine, zone="Europe/Berlin", **horizon)
    sk.SlotPool(free).save(folder / "pool.npz")
    sk.write_slots(folder / "slots.csv", free.slots)
    (folder / "jobs.csv").write_text(JOBS)
    (folder / "machine.csv").write_text("name,price\na,1\n")
    return folder


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a table: numbers as numbers, dates as text."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        for name in table.column_names:
            assert name.endswith(("t_time", "h_time", "d_time")) == str(
                table[name].type
            ).startswith("timestamp")
        rows = table.to_pylist()
    elif path.suffix == ".json":
        rows = json.loads(path.read_text())
    else:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [*csv.DictReader(file)]
    return [{name: value_of(cell) for name, cell in row.items()} for row in rows]


def value_of(cell: Any) -> Any:
    if hasattr(cell, "isoformat"):
        return cell.isoformat()
    try:
        return str(cell) if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        return cell or None


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_one_result_in_every_form(folder: Path, tmp_path: Path, ending: str) -> None:
    def result(*words: object) -> list[dict[str, Any]]:
        path = tmp_path / f"r{ending}"
        done = run(*words, "--output", path)
        assert done.exit_code == 0, done.stderr
        return rows_of(path)

    pool = folder / "pool.npz"
    window = {"window": 1, "start": 6, "end": 10, "length": 4, "performance": 1}
    window |= {
        "start_time": "2026-10-25T00:00:00+02:00",
        "end_time": "2026-10-25T03:00:00+01:00",
    }
    first = {"node": 0, "row": 0, "name": "a", "cost": 2, "price": 0.5, "memory": 1}
    second = {"node": 1, "row": 1, "name": "b", "cost": 1, "price": 0.25, "memory": 2}
    assert result("find", pool, *JOB) == [window | first, window | second]
    found = result("alternatives", pool, *JOB, "--most", 2)
    assert [row["window"] for row in found] == [1, 1, 2, 2]
    found = result("compare", pool, *JOB, "--criterion", "cost", "--shape", "square")
    assert [(r["criterion"], r["cost"], r["nodes"]) for r in found] == [
        ("cost", 3, "a,b")
    ]
    assert found[0]["finish_time"] == "2026-10-25T03:00:00+01:00"
    booked, failed = result("schedule", pool, folder / "jobs.csv")
    assert (booked["name"], booked["nodes"], booked["cost"]) == ("ocean", "a,b", 3)
    assert booked["start_time"] == "2026-10-24T18:00:00+02:00"
    assert (failed["reason"], failed["start"], failed["start_time"]) == (
        *("nodes", None),
        None,
    )
    (slot,) = result(
        *("free", folder / "machine.csv", "--zone", "UTC", "--unit", "h"),
        *("--start", "2026-10-24", "--end", "2026-10-25"),
    )
    assert (slot["name"], slot["end"], slot["end_time"]) == (
        *("a", 24),
        "2026-10-25T00:00:00+00:00",
    )
    rows = result("batch", folder / "slots.csv", write_batch(tmp_path))
    assert [(row["job"], row["cost"]) for row in rows] == [
        ("x", 2),
        ("y", None),
    ]


def write_batch(folder: Path) -> Path:
    path = folder / "batch.csv"
    path.write_text("name,nodes,volume,budget\nx,1,4,9\ny,4,1,9\n")
    return path


def test_slots_written_by_free_are_slots(folder: Path, tmp_path: Path) -> None:
    csv_file, pool = tmp_path / "free.csv", tmp_path / "pool.npz"
    done = run(
        *("free", folder / "machine.csv", "--zone", "UTC"),
        *("--start", "2026-10-24", "--end", "2026-10-25"),
        *("--output", csv_file, "--output", pool),
    )
    assert done.exit_code == 0, done.stderr
    slots, names = sk.read_slots(csv_file), sk.SLOT.names
    assert slots[[*names]].tolist() == sk.SlotPool.load(pool).slots.tolist()


@pytest.mark.parametrize(
    "command", ["find", "alternatives", "compare", "schedule", "free", "batch"]
)
@pytest.mark.parametrize(
    ("output", "named"),
    [
        ("r.txt", "r.txt does not end in .csv, .json, .parquet"),
        ("none/r.csv", "none does not exist"),
    ],
)
def test_an_invalid_output_is_refused_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    output: str,
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {
        "schedule": ["slots.csv", "jobs.csv"],
        "batch": ["slots.csv", "jobs.csv"],
        "free": ["machine.csv", "--start", "2026-10-24", "--end", "2026-10-25"],
    }
    words = given.get(command, ["slots.csv", "--nodes", "1", "--volume", "1"])
    done = run(command, *words, "--output", output)
    assert done.exit_code == 2
    assert "No such file" not in done.stderr  # the slots file is checked later
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_table_is_empty_if_nothing_fits(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("of an earlier call\n")
    words = ["--nodes", 9, "--volume", 1, "--output", path]
    for command in ("find", "alternatives"):
        assert run(command, folder / "pool.npz", *words).exit_code == 1
        assert rows_of(path) == []
        assert path.read_text().startswith("window,node,name,start,end,cost,start_time")
    done = run("compare", folder / "pool.npz", *words)
    assert done.exit_code == 1
    assert "9 are asked for" in done.stdout
    assert {row["cost"] for row in rows_of(path)} == {None}


def test_compare_shows_the_best_by_each_criterion(folder: Path) -> None:
    done = run("compare", folder / "pool.npz", *JOB)
    assert done.exit_code == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    for word in ("first", "start", "finish", "runtime", "cost"):
        assert any(word in line for line in lines)
    done = run("compare", folder / "pool.npz", *JOB, "--shape", "round")
    assert done.exit_code == 2
    assert "--shape must be one of ragged, square; got 'round'" in done.stderr


def test_a_picture_of_the_comparison_names_each_window_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, sk.Window] = {}
    monkeypatch.setattr(
        sk, "plot_gantt", lambda _, windows, **__: drawn.update(windows)
    )
    words = ["--plot", tmp_path / "compared.png", "--shape", "square"]
    done = run("compare", folder / "pool.npz", *JOB, *words)
    assert done.exit_code == 0, done.stderr
    assert len({(w.start, w.nodes) for w in drawn.values()}) == len(drawn)
    names = [name.removeprefix("square by ").split(", ") for name in drawn]
    criteria = [*sk.CRITERIA, "processor time"]
    assert sorted(chain.from_iterable(names)) == sorted(criteria)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("slotkern sched", ["schedule"]),
        ("slotkern find --wall", ["--walltime"]),
        ("slotkern find x.npz --criterion fi", ["first", "finish"]),
        ("slotkern find x.npz --shape ", ["ragged", "square"]),
        ("slotkern compare x.npz --method pub", ["published", "published-lite"]),
        ("slotkern batch s.csv j.csv --policy s", ["slicer:"]),
        ("slotkern batch s.csv j.csv --minimize co", ["cost"]),
        ("slotkern replay t.swf --policy easy-s", ["easy-sjf"]),
        ("slotkern replay t.swf --clean a", ["all"]),
        ("slotkern generate --preset sq", ["square", "square-natural"]),
        ("slotkern reproduce ca", ["casa"]),
        ("slotkern community --scenario d", ["dec-g", "dec-p", "dec:"]),
        ("slotkern find x.np", []),  # the shell itself completes file names
    ],
)
def test_shell_completion_of_option_values(line: str, words: list[str]) -> None:
    env = {"_SLOTKERN_COMPLETE": "complete_bash", "COMP_WORDS": line}
    env["COMP_CWORD"] = str(line.count(" "))
    command = [sys.executable, "-m", "slotkern"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | env, check=True
    )
    assert done.stdout.split() == words
    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_progress_bars_are_drawn_only_on_a_terminal(folder: Path) -> None:
    command = [sys.executable, "-m", "slotkern", "compare", folder / "pool.npz", *JOB]
    words = [*map(str, command)]
    quiet = subprocess.run(words, capture_output=True, text=True, check=True)
    assert quiet.stderr == ""
    master, slave = pty.openpty()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        drawn = b""
        try:
            while block := os.read(master, 4096):
                drawn += block
        except OSError:  # the other end of the terminal is closed
            pass
        assert process.stdout is not None
        assert process.stdout.read().decode() == quiet.stdout
    os.close(master)
    assert b"criteria" in drawn


def test_small_prices_are_printed():
    assert tables.format_column([7.1e-5, 0.25, 12]) == [
        "0.000071",
        "0.250000",
        "12.000000",
    ]
    assert tables.format_column([0.5, 12]) == ["0.50", "12.00"]
    assert tables.format_column([0, 3e-30]) == ["0.000000000", "0.000000000"]

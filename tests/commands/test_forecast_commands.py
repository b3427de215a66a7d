"""``slotkern holes`` and ``slotkern when``."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import refused, run, strict

DOCS = Path(__file__).parents[2] / "docs"
QUEUE = "nodes,walltime,start\n2,8h,2026-11-30 22:00\n3,2h,\n"
JOB = ("--nodes", 1, "--walltime", "4h")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    machine = sk.Machine.homogeneous(3, prefix="n")
    busy = {"node": ["n[0-1]"], "start": ["2026-12-01"], "end": ["2026-12-01 06:00"]}
    times = {"start": "2026-12-01", "end": "2026-12-03"}
    free = sk.free_slots(machine, busy, **times, zone="UTC", unit="h")
    sk.SlotPool(free).save(tmp_path / "pool.npz")
    (tmp_path / "queue.csv").write_text(QUEUE)
    return tmp_path / "pool.npz"


def test_holes_are_those_of_the_library(pool: Path) -> None:
    at = ("--at", "2026-12-01 07:00")
    found = sk.SlotPool.load(pool).holes("2026-12-01 07:00")
    answer = strict(run("holes", pool, *at, "--nodes", 2, "--json").stdout)
    assert answer["start"] == 7
    assert answer["best_length"] == found.best_length(2) == 41
    rows = [(hole["nodes"], hole["length"], hole["end"]) for hole in answer["holes"]]
    assert rows == found.frontier.tolist()
    assert answer["holes"][0]["end_time"] == "2026-12-03T00:00:00+00:00"
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    assert not {field for field in answer if f"`{field}`" not in page}
    text = run("holes", pool, *at, "--nodes", 2).stdout
    assert "best length for --nodes 2: 1 day, 17:00:00" in text
    table = pool.with_name("holes.csv")
    assert run("holes", pool, *at, "--output", table).exit_code == 0
    (row,) = csv.DictReader(table.read_text().splitlines())
    assert (row["nodes"], row["end_time"]) == ("3", "2026-12-03T00:00:00+00:00")


def test_holes_without_enough_nodes_exit_with_1(pool: Path) -> None:
    result = run("holes", pool, "--nodes", 2)
    assert result.exit_code == 1
    assert "best length for --nodes 2: none" in result.stdout
    assert run("holes", pool, "--where", "name == 'n0'").exit_code == 1
    assert run("holes", pool, "--nodes", 1).exit_code == 0


def test_a_forecast_is_that_of_the_library(pool: Path) -> None:
    queue = pool.with_name("queue.csv")
    table = {
        "nodes": [2, 3],
        "walltime": ["8h", "2h"],
        "start": ["2026-11-30 22:00", None],
    }
    found = sk.SlotPool.load(pool).forecast(
        sk.Request(1, walltime="4h"), table, policy="conservative", runs=40, seed=2
    )
    words = ("--policy", "conservative", "--runs", 40, "--seed", 2, "--queue", queue)
    answer = strict(run("when", pool, *JOB, *words, "--json").stdout)
    assert {name: answer[name] for name in found.to_dict()} == found.to_dict()
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    assert not {field for field in answer if f"`{field}`" not in page}
    text = run("when", pool, *JOB, *words).stdout
    assert "promise" in text
    assert "2026-12-01" in text
    starts = pool.with_name("starts.csv")
    assert run("when", pool, *JOB, *words, "--output", starts).exit_code == 0
    assert len(starts.read_text().splitlines()) == 41


def test_a_history_from_a_file_and_later_arrivals(pool: Path) -> None:
    queue, trace = pool.with_name("queue.csv"), pool.with_name("past.swf")
    line = "{0} {1} 0 1800 1 -1 -1 1 3600 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    trace.write_text("".join(line.format(k + 1, 60 * k) for k in range(99)))
    words = ("--queue", queue, "--history", trace, "--policy", "fcfs", "--json")
    alone = strict(run("when", pool, "--nodes", 3, "--walltime", "1h", *words).stdout)
    # All run for half of their time; the first has 2 of 8 hours behind it.
    assert alone["starts"] == {"10%": 3, "50%": 3, "90%": 3}
    words = (*words, "--arrivals")
    later = strict(run("when", pool, "--nodes", 3, "--walltime", "1h", *words).stdout)
    assert later["starts"] == alone["starts"]


def test_bad_options_are_named(pool: Path) -> None:
    queue = pool.with_name("queue.csv")
    refused(run("when", pool, *JOB, "--queue", queue, "--arrivals"), "--history")
    refused(run("when", pool, *JOB, "--queue", queue, "--policy", "batch"), "policy")
    deadline = ("--deadline", "2026-12-02")
    refused(run("when", pool, *JOB, "--queue", queue, *deadline), "deadline")
    queue.write_text("nodes,walltime,begin\n1,2h,now\n")
    refused(run("when", pool, *JOB, "--queue", queue), queue, "'begin'")
    refused(run("holes", pool, "--at", "noon"), "noon")


def test_pictures(pool: Path) -> None:
    pytest.importorskip("matplotlib")
    queue, picture = pool.with_name("queue.csv"), pool.with_name("picture.svg")
    for words in (("holes", pool), ("when", pool, *JOB, "--queue", queue)):
        assert run(*words, "--plot", picture).exit_code == 0
        assert picture.read_text().startswith("<?xml")
        picture.unlink()

"""``slotkern front``: the Pareto front of a job."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import JOB, refused, run, strict

DOCS = Path(__file__).parents[2] / "docs"
FRONT = ("front", "--budget", 1500, *JOB)
REQUEST = sk.Request(5, 310, budget=1500)


@pytest.mark.parametrize("by", ["cost,finish", "finish, cost", "finish,q"])
def test_the_front_is_that_of_the_library(
    by: str, slots_file: Path, environment: Any
) -> None:
    names: Any = tuple(name.strip() for name in by.split(","))
    front = sk.pareto(environment, REQUEST, names)
    result = run(*FRONT, slots_file, "--by", by, "--json")
    assert result.exit_code == 0, result.stderr
    answer = strict(result.stdout)
    assert [w["values"] for w in answer["windows"]] == front.values.tolist()
    assert answer["complete"] is True
    assert answer["between"] == [None] * (len(front) - 1)
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    assert not {field for field in answer if f"`{field}`" not in page}
    text = run(*FRONT, slots_file, "--by", by).stdout
    assert "complete front by" in text
    for window in front:
        assert " ".join(map(str, window.nodes)) in text


def test_a_limited_front_and_its_gaps(slots_file: Path, environment: Any) -> None:
    words = ("--shape", "ragged", "--most", 3)
    front = sk.pareto(environment, REQUEST, shape="ragged", most=3)
    assert not front.complete
    answer = strict(run(*FRONT, slots_file, *words, "--json").stdout)
    assert [w["values"] for w in answer["windows"]] == front.values.tolist()
    assert answer["between"] == front.to_dict()["between"]
    assert "gaps of the front by cost and finish may hold" in (
        run(*FRONT, slots_file, *words).stdout
    )


def test_a_file_and_a_picture(
    slots_file: Path, environment: Any, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    table, picture = tmp_path / "front.csv", tmp_path / "front.png"
    words = ("--by", "finish,q", "--output", table, "--plot", picture)
    assert run(*FRONT, slots_file, *words).exit_code == 0
    front = sk.pareto(environment, REQUEST, ("finish", "q"))
    head, *rows = table.read_text().splitlines()
    assert head == "q,start,finish,runtime,cost,processor_time,proven,nodes"
    assert len(rows) == len(front)
    cells = csv.DictReader(table.read_text().splitlines())
    assert [row["nodes"] for row in cells] == [",".join(w.names) for w in front]
    assert picture.stat().st_size > 5000


def test_no_window_prints_the_explanation(slots_file: Path) -> None:
    result = run("front", slots_file, *JOB, "--budget", 1)
    assert result.exit_code == 1
    assert "budget" in result.stdout
    result = run("front", slots_file, *JOB, "--budget", 1, "--json")
    assert strict(result.stdout)["windows"] == []


def test_invalid_criteria_of_a_front_are_refused(slots_file: Path) -> None:
    refused(run(*FRONT, slots_file, "--by", "cost"), "two criteria")
    refused(run(*FRONT, slots_file, "--by", "cost,weight"), "'weight'")
    refused(run(*FRONT, slots_file, "--by", "cost,first"), "'first'")
    unknown = run(*FRONT, slots_file, "--by", "cost,banana")
    refused(unknown, "must be one of start, finish, runtime, cost, processor_time, or")
    refused(run(*FRONT, slots_file, "--most", "1"), "most must be at least 2")

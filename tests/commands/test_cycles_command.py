"""``slotkern cycles``: jobs that arrive over time, local tasks, results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from slotkern.commands.main import app

SLOTS = "node,start,end,performance,price\n0,0,100,1,2\n1,0,100,1,2\n"
JOBS = "name,arrival,nodes,volume,share\na,0,2,30,0.5\nb,5,2,30,\nc,12,1,20,0.5\n"
LOCAL = "node,start,end,arrival\n1,20,50,10\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("slots", SLOTS), ("jobs", JOBS), ("local", LOCAL)):
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def run(folder: Path, *words: str) -> Any:
    files = [str(folder / name) for name in ("slots.csv", "jobs.csv")]
    return CliRunner().invoke(app, ["cycles", *files, *words])


def test_early_ends_and_local_tasks(folder: Path) -> None:
    local = str(folder / "local.csv")
    words = ["--length", "10", "--horizon", "90", "--json"]
    done = run(folder, *words)
    assert done.exit_code == 0, done.output
    jobs = json.loads(done.output)["jobs"]
    assert [(j["cycle"], j["start"], j["finish"]) for j in jobs] == [
        (0, 0, 15),
        (1, 30, 60),
        (2, 60, 70),
    ]
    whole = json.loads(run(folder, *words, "--local", local).output)
    assert [j["start"] for j in whole["jobs"]] == [0, 50, 20]
    assert [each["jobs"] for each in whole["cycles"]] == [["a"], ["b"], ["c"]]
    assert whole["jobs"][2]["window"]["slots"][0]["node"] == 0


def test_tables_and_pages(folder: Path) -> None:
    table, page = folder / "out.csv", folder / "out.html"
    picture = folder / "out.png"
    words = ["--output", str(table), "--html", str(page), "--plot", str(picture)]
    done = run(folder, "--length", "10", "--cycles", "2", *words)
    assert done.exit_code == 0
    assert "2 of 3 jobs scheduled in 2 cycles" in done.output
    assert "not yet arrived" in done.output
    lines = table.read_text().splitlines()
    assert lines[0] == "job,cycle,reason,node,start,end,cost"
    assert lines[1] == "a,0,scheduled,0,0.0,30.0,60.0"
    assert lines[-1] == "c,,not yet arrived,,,,"
    assert page.stat().st_size > 1000
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "text", "words", "message"),
    [
        ("jobs", "nodes,volume\n1,2\n", (), "no column 'arrival'"),
        ("jobs", JOBS.replace("5,2", ",2"), (), "line 3, column 'arrival': is empty"),
        ("jobs", JOBS.replace("5,2", "inf,2"), (), "line 3, column 'arrival' must be"),
        # an error of an option is not located in the job of its name
        ("jobs", JOBS.replace("c,", "--length,"), ("--length", "x"), ": --length: 'x'"),
        ("jobs", JOBS.replace("0.5", "2"), (), "line 2, column 'share': 2 is not"),
        ("local", LOCAL.replace("1,20", "7,20"), (), "line 2: node 7 is not in"),
        ("local", LOCAL.replace("1,20", "x,20"), (), "line 2, column 'node': 'x'"),
        ("local", "node,start\n1,2\n", (), "no column 'end'"),
        ("jobs", JOBS, ("--horizon", "1h"), "--horizon: '1h' is a duration"),
        (
            "jobs",
            JOBS.replace("12,1", "noon,1"),
            (),
            "line 4, column 'arrival': 'noon'",
        ),
    ],
)
def test_bad_input_is_one_line(
    folder: Path, name: str, text: str, words: tuple[str, ...], message: str
) -> None:
    (folder / f"{name}.csv").write_text(text)
    local = ("--local", str(folder / "local.csv"))
    done = run(folder, "--length", "10", *local, *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_exit_code_is_1_if_nothing_is_scheduled(folder: Path) -> None:
    (folder / "jobs.csv").write_text("arrival,nodes,volume\n0,5,2\n")
    assert run(folder, "--length", "10").exit_code == 1

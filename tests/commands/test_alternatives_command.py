"""``slotkern alternatives``: disjoint windows, and the non-dominated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import JOB, refused, run, strict

from slotkern.commands import tables

DOCS = Path(__file__).parents[2] / "docs"
ALTERNATIVES = ("alternatives", "--budget", 1500, *JOB)


def test_alternatives_are_those_of_the_library(
    slots_file: Path, environment: Any
) -> None:
    job = sk.Request(5, 310, budget=1500)
    for words, options in (
        ((), {}),
        (("--shape", "ragged", "--most", "3"), {"shape": "ragged", "limit": 3}),
        (("--criterion", "cost"), {"criterion": "cost"}),
    ):
        found = sk.find_alternatives(environment.slots, job, **options)
        result = run(*ALTERNATIVES, slots_file, *words, "--json")
        assert result.exit_code == 0, result.stderr
        answer = strict(result.stdout)
        assert answer["explanation"] is None
        assert len(answer["windows"]) == len(found) > 1
        for mine, window in zip(answer["windows"], found, strict=True):
            assert (mine["start"], mine["cost"]) == (window.start, window.cost)
            assert [part["node"] for part in mine["slots"]] == list(window.nodes)
        text = run(*ALTERNATIVES, slots_file, *words).stdout
        for window in found:
            assert " ".join(map(str, window.nodes)) in text
    pages = (DOCS / "json.md").read_text(encoding="utf-8")
    assert not {field for field in answer if f"`{field}`" not in pages}


def test_alternatives_keep_the_pareto_front(slots_file: Path, environment: Any) -> None:
    found = sk.find_alternatives(environment.slots, sk.Request(5, 310, budget=1500))
    front = found.pareto("cost", "finish")
    result = run(*ALTERNATIVES, slots_file, "--pareto", "cost, finish", "--json")
    costs = [window["cost"] for window in strict(result.stdout)["windows"]]
    assert costs == front.cost.tolist()
    assert len(costs) < len(found)
    refused(run(*ALTERNATIVES, slots_file, "--pareto", "cost,weight"), "'weight'")


def test_no_alternatives_print_the_explanation(slots_file: Path) -> None:
    result = run("alternatives", slots_file, *JOB, "--budget", 1)
    assert result.exit_code == 1
    assert "No window fits." in result.stdout
    result = run("alternatives", slots_file, *JOB, "--budget", 1, "--json")
    assert result.exit_code == 1
    assert strict(result.stdout)["windows"] == []
    assert "No window fits." in strict(result.stdout)["explanation"]["text"]
    for most in (0, -1):
        refused(run("alternatives", slots_file, *JOB, "--most", most), "most", most)


def test_many_alternatives_are_shown_in_part() -> None:
    slots = sk.make_slots(
        node=np.arange(300), start=0, end=1, performance=1, price=np.arange(300)
    )
    found = sk.find_alternatives(slots, sk.Request(1, 1))
    table = tables.alternatives_table(found)
    assert table.row_count == 201
    assert "100 of 300 windows not shown" in str(table.caption)


def test_alternatives_are_drawn(slots_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "all.svg"
    assert run(*ALTERNATIVES, slots_file, "--plot", path).exit_code == 0
    assert "alternatives of 5 nodes" in path.read_text(encoding="utf-8")

"""``slotkern find``: output as a table and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slotkern as sk
from slotkern._kernels.request import FIELDS

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import JOB, refused, run, strict

from slotkern.commands import tables

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("criterion", ["finish", "cost"])
def test_find_prints_parts_and_totals(
    slots_file: Path, environment: Any, shape: str, criterion: str
) -> None:
    options = ("--criterion", criterion, "--shape", shape, "--budget", 600)
    result = run("find", slots_file, *JOB, *options)
    assert result.exit_code == 0, result.stderr
    job = sk.Request(5, 310, budget=600)
    window = sk.find_window(environment.slots, job, criterion, shape=shape)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[1] == [
        *("node", "start", "end", "length", "cost", "performance", "price", "q")
    ]
    assert [int(line[0]) for line in lines[3:8]] == window.slots["node"].tolist()
    costs = [float(line[4].replace(",", "")) for line in lines[3:8]]
    assert costs == pytest.approx(window.slots["cost"], abs=0.005)
    assert result.stdout.rstrip().endswith(tables.totals(window))
    assert f"cost {window.cost:,.2f}" in result.stdout


def test_find_passes_every_option_on(slots_file: Path, environment: Any) -> None:
    options = {
        "budget": 900.0,
        "min_performance": 3.0,
        "earliest": 50.5,
        "deadline": 900.0,
        "max_price": 0.9,
        "setup": 2.5,
        "step": 5.0,
        "latest": 700.0,
        "max_runtime": 90.0,
        "where": "q >= 2 and node != 7",
    }
    words = [
        part
        for name, value in options.items()
        for part in ("--" + name.replace("_", "-"), value)
    ]
    limit = "sum(q) >= 25.0"
    result = run("find", slots_file, *JOB, *words, "--limit", limit, "--json")
    assert result.exit_code == 0, result.stderr
    request = sk.Request(5, 310.0, **options, limits=limit)
    answer = strict(result.stdout)
    unset = {
        name: field.default if np.isfinite(field.default) else None
        for name, field in FIELDS.items()
    }
    expected = unset | {"nodes": 5, "volume": 310.0, "limits": [limit]} | options
    assert answer["request"] == expected
    window = sk.find_window(environment.slots, request)
    assert answer["window"]["finish"] == window.finish
    assert [part["node"] for part in answer["window"]["slots"]] == list(window.nodes)


def test_find_reaches_the_published_algorithms(slots_file: Path) -> None:
    pytest.importorskip("numba")
    words = ("--criterion", "cost", "--shape", "ragged", "--json", "--method")
    exact, printed = (
        strict(run("find", slots_file, *JOB, *words, method).stdout)
        for method in ("exact", "published")
    )
    assert printed["method"] == "published"
    assert printed["window"]["value"] == exact["window"]["value"]


def test_json_of_a_window(slots_file: Path, environment: Any) -> None:
    answer = strict(run("find", slots_file, *JOB, "--json").stdout)
    slots = environment.slots
    window = sk.find_window(slots, sk.Request(5, 310))
    assert answer["request"]["budget"] is None
    assert answer["explanation"] is None
    for name in ("start", "finish", "runtime", "cost", "processor_time", "value"):
        assert answer["window"][name] == getattr(window, name)
    assert answer["window"]["proven"] is True
    for part, expected in zip(answer["window"]["slots"], window.slots, strict=True):
        for name in ("row", "node", "start", "end", "cost"):
            assert part[name] == expected[name]
        assert part["length"] == expected["end"] - expected["start"]
        for name in ("performance", "price", "q"):
            assert part[name] == slots[name][part["row"]]


def test_json_when_there_is_no_window(slots_file: Path, environment: Any) -> None:
    result = run("find", slots_file, *JOB, "--budget", 1, "--json")
    assert result.exit_code == 1
    answer = strict(result.stdout)
    explanation = sk.explain(environment.slots, sk.Request(5, 310, budget=1))
    assert answer["window"] is None
    assert answer["explanation"]["text"] == str(explanation)
    assert answer["explanation"].keys() == explanation.to_dict().keys() | {"text"}


def test_every_json_field_is_documented(slots_file: Path) -> None:
    pages = (DOCS / "json.md").read_text(encoding="utf-8")
    answer = strict(run("find", slots_file, *JOB, "--json").stdout)
    fields = {*answer, *answer["request"], *answer["window"]}
    fields |= {*answer["window"]["slots"][0]} - {"q"}
    assert not {field for field in fields if f"`{field}`" not in pages}


def test_options_for_sums_are_passed_to_the_search(
    slots_file: Path, environment: Any
) -> None:
    job = sk.Request(5, 310)
    for words, options in (
        (("--placement", "any"), {"placement": "any"}),
        (("--span", "group"), {"span": "group"}),
        (("--method", "lite"), {"method": "lite"}),
        (("--gap", "0.2", "--max-work", "0"), {"gap": 0.2, "max_work": 0}),
    ):
        words = ("find", slots_file, *JOB, "--criterion", "coordinated", *words)
        window = sk.find_window(environment.slots, job, "coordinated", **options)
        assert strict(run(*words, "--json").stdout)["window"]["value"] == window.value
    least = sk.find_window(environment.slots, job, sk.minimize("q"))
    words = ("find", slots_file, *JOB, "--criterion", "minimize(q)", "--json")
    assert strict(run(*words).stdout)["window"]["value"] == least.value
    refused(run(*words[:-2], "minimize(minimize(q))"), "is the criterion itself")
    refused(run(*words[:-2], "minimize(w)"), "or minimize(field); got 'w'")
    refused(run("find", slots_file, *JOB, "--gap", -1), "gap", "-1")
    refused(run("find", slots_file, *JOB, "--span", "all"), "span", "'all'")


def test_json_of_columns_without_a_json_type(tmp_path: Path) -> None:
    slots = sk.make_slots(
        node=[0, 1],
        start=0,
        end=np.inf,
        performance=1,
        price=1,
        memory=np.array([np.nan, 2.0]),
        name=np.array([b"a", b"b"]),
        site=np.array(["[red]x[/]", "y"]),
    )
    path = tmp_path / "slots.npz"
    sk.write_slots(path, slots)
    words = ("find", path, "--nodes", 2, "--volume", 3)
    parts = strict(run(*words, "--json").stdout)["window"]["slots"]
    assert [part["memory"] for part in parts] == [None, 2.0]
    assert [part["name"] for part in parts] == ["a", "b"]
    assert "[red]x[/]" in run(*words).stdout


def test_no_window_prints_the_explanation(slots_file: Path, environment: Any) -> None:
    result = run("find", slots_file, *JOB, "--budget", 1)
    assert result.exit_code == 1
    explanation = sk.explain(environment.slots, sk.Request(5, 310, budget=1))
    assert result.stdout.rstrip("\n") == str(explanation).rstrip("\n")


def test_find_draws(slots_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "gantt.png"
    assert run("find", slots_file, *JOB, "--plot", picture).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_wide_window_shows_its_first_and_last_parts(tmp_path: Path) -> None:
    slots = sk.make_slots(
        node=np.arange(300), start=0.0, end=9.0, performance=1.0, price=1.0
    )
    path = tmp_path / "many.npz"
    sk.write_slots(path, slots)
    result = run("find", path, "--nodes", 300, "--volume", 1)
    shown = [line.split()[0] for line in result.stdout.splitlines()[3:204]]
    assert shown == [*map(str, range(100)), "...", *map(str, range(200, 300))]
    assert "100 of 300 parts not shown" in result.stdout


@pytest.mark.parametrize("command", ["find", "alternatives"])
def test_a_page_is_written(command: str, slots_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(command, slots_file, *JOB, "--html", page).exit_code == 0
    text = page.read_text(encoding="ascii")
    assert text.startswith("<!doctype html>")
    assert f"<title>{slots_file.name}: " in text


def test_pages_that_cannot_be_written_are_named(
    slots_file: Path, tmp_path: Path
) -> None:
    refused(run("find", slots_file, *JOB, "--html", "a.png"), "--html: a.png", ".html")
    there = tmp_path / "none" / "a.html"
    refused(run("find", slots_file, *JOB, "--html", there), "none does not exist")
    page = tmp_path / "page.html"
    assert run("find", slots_file, *JOB, "--budget", 1, "--html", page).exit_code == 1
    assert not page.exists()


@pytest.mark.parametrize("option", ["--name", "--owner"])
def test_options_of_bookings_need_book(slots_file: Path, option: str) -> None:
    done = run("find", slots_file, "--nodes", "1", "--volume", "1", option, "alice")
    assert done.exit_code == 2
    assert f"{option} 'alice' needs --book" in done.stderr

"""The command line: what is printed, the exit codes, and one line for each error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from typer.testing import CliRunner

from slotkern import studies
from slotkern.commands import main as cli
from slotkern.commands import tables

DOCS = Path(__file__).parents[2] / "docs"
JOB = ["--nodes", "5", "--volume", "310"]


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def python(*arguments: Any, **options: Any) -> Any:
    words = [sys.executable, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, **options)


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def environment() -> Any:
    return sk.generate_environment("square", nodes=60, seed=3)


@pytest.fixture(scope="module")
def slots_file(environment: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slots") / "slots.npz"
    sk.write_slots(path, environment.slots)
    return path


def refused(result: Any, *words: Any) -> None:
    """Exit code 2 and one line on stderr with these words, nothing on stdout."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for word in words:
        assert str(word) in result.stderr


# --- find


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
    result = run("find", slots_file, *JOB, *words, "--json")
    assert result.exit_code == 0, result.stderr
    request = sk.Request(5, 310.0, **options)
    answer = strict(result.stdout)
    assert answer["request"] == {"nodes": 5, "volume": 310.0} | options
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


def test_options_of_sums_reach_the_search(slots_file: Path, environment: Any) -> None:
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


ALTERNATIVES = ("alternatives", "--budget", 1500, *JOB)


def test_alternatives_are_those_of_the_library(
    slots_file: Path, environment: Any
) -> None:
    job = sk.Request(5, 310, budget=1500)
    for words, options in (
        ((), {}),
        (("--shape", "ragged", "--limit", "3"), {"shape": "ragged", "limit": 3}),
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
    for limit in (0, -1):
        refused(run("alternatives", slots_file, *JOB, "--limit", limit), "limit", limit)


def test_many_alternatives_are_shown_in_part() -> None:
    slots = sk.make_slots(
        node=np.arange(300), start=0, end=1, performance=1, price=np.arange(300)
    )
    found = sk.find_alternatives(slots, sk.Request(1, 1))
    table = tables.alternatives_table(found)
    assert table.row_count == 201
    assert "100 of 300 windows left out" in str(table.caption)


def test_alternatives_are_drawn(slots_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "all.svg"
    assert run(*ALTERNATIVES, slots_file, "--plot", path).exit_code == 0
    assert "alternatives of 5 nodes" in path.read_text(encoding="utf-8")


def test_json_of_columns_that_json_does_not_know(tmp_path: Path) -> None:
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
    refused(run("find", slots_file, *JOB, "--html", there), "none is no folder")
    page = tmp_path / "page.html"
    assert run("find", slots_file, *JOB, "--budget", 1, "--html", page).exit_code == 1
    assert not page.exists()


# --- bad input


def test_bad_files_are_named(tmp_path: Path) -> None:
    refused(run("find", tmp_path / "none.csv", *JOB), tmp_path / "none.csv", "No such")
    odd = tmp_path / "slots.xls"
    odd.write_text("")
    refused(run("find", odd, *JOB), odd)
    bad = tmp_path / "bad.csv"
    bad.write_text("node,start,end,performance,price\n0,0,9,1,1\n1,5,4,1,1\n")
    refused(run("find", bad, *JOB), bad, "line 3", "end", "4")
    bad.write_text("node,start,end,performance,price\n0,0,9,1,1\n1,5,x,1,1\n")
    refused(run("find", bad, *JOB), bad, "line 3", "end", "x")
    bad.write_text("node,start,end,price\n0,0,9,1\n")
    refused(run("find", bad, *JOB), bad, "performance")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--nodes", "0", "--volume", "1"], ["nodes", "0"]),
        (["--nodes", "x", "--volume", "1"], ["--nodes"]),
        (["--nodes", "2.5", "--volume", "1"], ["--nodes"]),
        (["--nodes", "2", "--volume", "-1"], ["volume", "-1"]),
        (["--nodes", "2", "--volume", "nan"], ["volume", "NaN"]),
        (["--nodes", "2"], ["--volume"]),
        ([*JOB, "--budget", "-5"], ["budget", "-5"]),
        ([*JOB, "--deadline", "soon"], ["--deadline"]),
        ([*JOB, "--criterion", "best"], ["best"]),
        ([*JOB, "--shape", "round"], ["round"]),
        ([*JOB, "--method", "magic"], ["magic"]),
        ([*JOB, "--where", "memory >= 64"], ["memory"]),
        ([*JOB, "--where", "q >= "], ["q >="]),
        ([*JOB, "--plot", "gantt.gif"], ["gantt.gif", ".png"]),
        ([*JOB, "--fast"], ["--fast"]),
    ],
)
def test_bad_options_are_named(
    slots_file: Path, words: list[str], named: list[str]
) -> None:
    refused(run("find", slots_file, *words), *named)


@pytest.mark.parametrize(
    "words", [["fnid"], ["bench"], ["find"], ["bench", "scaling", "--cycles", "0"]]
)
def test_bad_commands_take_one_line(words: list[str]) -> None:
    refused(run(*words), " ".join(["slotkern", *words[:-2]]))


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["find", "a.npz", "--nodes", "5", "--volume", "abc"], "abc"),
        (["find", "a.npz", "--nodes=1.5", "--volume", "1"], "1.5"),
        (["bench", "scaling", "--cycles", "-1"], "-1"),
        (["reproduce", "aep", "--cycles", "0"], "0"),
        (["reproduce", "aep", "--seed", "-3"], "-3"),
        (["find", "SLOTS", "--nodes", "5", "--volume", "1", "--seed", "-4"], "-4"),
    ],
)
def test_a_wrong_value_is_told(slots_file: Path, words: list[str], value: str) -> None:
    given = [str(slots_file) if word == "SLOTS" else word for word in words]
    refused(run(*given), value)


def test_a_missing_extra_is_named(
    slots_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "slotkern.plotting.picture", raising=False)
    result = run("find", slots_file, *JOB, "--plot", "gantt.png")
    refused(result, "matplotlib", "pip install 'slotkern[plot]'")


def test_errors_of_our_own_are_not_hidden(
    slots_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(sk, "find_window", broken)
    result = run("find", slots_file, *JOB)
    assert isinstance(result.exception, RuntimeError)


# --- generate, slots-from-trace, bench


def test_generate_writes_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "env.npz"
    words = ("--preset", "square", "--nodes", 7, "--interval", 300, "--load", "0.1:0.4")
    result = run("generate", "--output", path, *words, "--seed", 5)
    assert result.exit_code == 0, result.stderr
    environment = sk.generate_environment(
        "square", nodes=7, interval=300, load=(0.1, 0.4), seed=5
    )
    assert (sk.read_slots(path) == environment.slots).all()
    assert f"{environment.slots.size} free slots of 7 nodes" in result.stdout
    refused(run("generate", "--output", path, "--preset", "x"), "x", "aep")
    refused(run("generate", "--output", path, "--nodes", 0), "nodes", "0")
    for load in ("0.1", "0.1:x", "1:2:3"):
        refused(run("generate", "--output", path, "--load", load), load, "LOW:HIGH")
    assert "--load LOW:HIGH" in " ".join(run("generate", "--help").stdout.split())
    refused(run("generate", "--output", tmp_path / "no" / "env.npz"), tmp_path / "no")


def test_slots_from_trace(tmp_path: Path) -> None:
    trace, path = tmp_path / "small.swf", tmp_path / "slots.npz"
    jobs = [(1, 0, 100, 2), (2, 10, 50, 1), (3, 20, 30, 2), (4, 30, 0, 1)]
    trace.write_text(
        "; MaxProcs: 4\n"
        + "".join(
            f"{job} {submit} 0 {length} {width}" + " -1" * 13 + "\n"
            for job, submit, length, width in jobs
        )
    )
    words = ("--at", 10, "--horizon", 200, "--price", 2, "--performance", 3)
    result = run("slots-from-trace", trace, *words, "--output", path)
    assert result.exit_code == 0, result.stderr
    slots = sk.read_slots(path)
    assert set(slots["price"].tolist()) == {2.0}
    assert set(slots["performance"].tolist()) == {3.0}
    assert result.stdout == (
        f"{path}: {slots.size} free slots of 4 processors in [10, 210); "
        "3 jobs placed, 1 of them delayed, 1 skipped\n"
    )
    plain = run("slots-from-trace", trace, *words[:4], "--output", path)
    assert plain.exit_code == 0, plain.stderr
    machine = sk.read_slots(path)
    assert set(machine["performance"].tolist()) == {1.0}
    assert set(machine["price"].tolist()) == {0.0}
    free = (slots["end"] - slots["start"]).sum()
    assert free == 4 * 200 - (2 * 90 + 50 + 2 * 30)
    word = ("--price", "cheap")
    refused(
        run("slots-from-trace", trace, *words[:4], *word, "--output", path), "cheap"
    )
    trace.write_text("1 2 3\n")
    refused(run("slots-from-trace", trace, *words, "--output", path), trace, "line 1")


def test_bench_scaling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of `reproduce aep`, by the same measurement."""
    pytest.importorskip("numba")
    pytest.importorskip("matplotlib")
    from slotkern.studies.papers import study_text

    text = study_text("aep")
    for key, sizes in (("nodes", "20, 40"), ("interval", "200, 400")):
        begin = text.index(f"grid.environment.{key}")
        line = text[begin : text.index("\n", begin)]
        text = text.replace(line, f"grid.environment.{key} = [{sizes}]")
    for table in ("table1", "table2"):
        for key in ("time_ms", "time_per_alternative_ms"):
            text = text.replace(f' = "aep.{table}.{key}"', ".csa = [1.5, 3]")
    path = tmp_path / "small.toml"
    path.write_text(
        text[: text.index("[[compare]]")] + text[text.index("[[timing]]") :]
    )
    asked: dict[str, int] = {}

    def small(name: str, *, seed: int) -> Any:
        asked.update(seed=seed)
        assert name == "aep"
        return load_study(path, seed=seed)

    load_study = studies.load_study
    monkeypatch.setattr(studies, "load_study", small)
    out = tmp_path / "figures"
    words = ("--cycles", 2, "--seed", 9, "--out", out)
    result = run("bench", "scaling", *words)
    assert result.exit_code == 0, result.stderr
    assert asked == {"seed": 9}
    lines = result.stdout.splitlines()
    for name, sizes in (("nodes", ["20", "40"]), ("interval", ["200", "400"])):
        assert any(line.strip() == f"Times in ms by {name}" for line in lines)
        assert any(line.split() == ["search", *sizes, "growth"] for line in lines)
    assert sum(line.split()[:4] == ["CSA", "published", "1.5", "3"] for line in lines)
    for name in ("CSA", "AMP", "minRuntime", "minFinish", "minCost"):
        kinds = [line.split()[1] for line in lines if line.split()[:1] == [name]]
        assert kinds == ["published" if name == "CSA" else "slotkern"] * 2, name
    printed = [line.split() for line in lines if "paper's algorithm" in line]
    assert len(printed) == 2 * 7  # CSA twice, also per alternative; minProcTime
    assert all(float(cell) > 0 for row in printed for cell in row[-3:-1])
    assert {path.name for path in out.iterdir()} == {"figure-4a.png", "figure-4b.png"}


# --- the process


def test_version_and_help() -> None:
    assert run("--version").stdout == f"slotkern {sk.__version__}\n"
    top = run()
    assert top.exit_code == 0
    for command in ("find", "slots-from-trace", "generate", "bench"):
        assert command in top.stdout
        assert run(command, "--help").exit_code == 0


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from slotkern.commands.main import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'matplotlib', 'pyarrow', 'numba', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_without_typer_one_line_says_what_to_install() -> None:
    code = (
        "import sys, runpy\n"
        "sys.modules['typer'] = None\n"
        "runpy.run_module('slotkern', run_name='__main__')"
    )
    done = python("-c", code)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'slotkern[cli]'" in done.stderr


def test_as_a_process(slots_file: Path, tmp_path: Path) -> None:
    done = python("-m", "slotkern", "find", slots_file, *JOB, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert strict(done.stdout)["window"]
    done = python("-m", "slotkern", "find", slots_file, *JOB, "--budget", "1")
    assert (done.returncode, done.stderr) == (1, "")
    done = python("-m", "slotkern", "find", tmp_path / "none.csv", *JOB)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_gives_no_traceback(tmp_path: Path) -> None:
    many = 20_000
    slots = sk.make_slots(
        node=np.arange(many), start=0.0, end=9.0, performance=1.0, price=1.0
    )
    path = tmp_path / "many.npz"
    sk.write_slots(path, slots)
    words = ["-m", "slotkern", "find", path, "--nodes", many, "--volume", 1, "--json"]
    with subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "{\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_a_window_of_many_parts_is_shown_by_its_ends(tmp_path: Path) -> None:
    slots = sk.make_slots(
        node=np.arange(300), start=0.0, end=9.0, performance=1.0, price=1.0
    )
    path = tmp_path / "many.npz"
    sk.write_slots(path, slots)
    result = run("find", path, "--nodes", 300, "--volume", 1)
    shown = [line.split()[0] for line in result.stdout.splitlines()[3:204]]
    assert shown == [*map(str, range(100)), "...", *map(str, range(200, 300))]
    assert "100 of 300 parts left out" in result.stdout


def test_a_wrong_output_is_refused_before_the_work(tmp_path: Path) -> None:
    refused(
        run("generate", "--nodes", 10**6, "--output", tmp_path / "a.xlsx"),
        tmp_path / "a.xlsx",
        "the suffix '.xlsx' is not one of",
    )
    trace = tmp_path / "nowhere.swf"
    options = ["--at", "0", "--horizon", "9"]
    refused(
        run("slots-from-trace", trace, *options, "--output", tmp_path / "a.xlsx"),
        "the suffix '.xlsx' is not one of",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_trace_is_not_overwritten_by_its_slots(tmp_path: Path) -> None:
    trace, link = tmp_path / "trace.csv", tmp_path / "link.csv"
    trace.write_text("; MaxProcs: 4\n1 0 0 9 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    link.symlink_to(trace)
    before = trace.read_text()
    for output in (trace, link):
        refused(
            run(
                "slots-from-trace", trace, "--at", 0, "--horizon", 9, "--output", output
            ),
            f"{output}: the trace itself, which would be overwritten",
        )
    assert trace.read_text() == before


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 74.5 GiB for an array")

    monkeypatch.setattr(sk, "generate_environment", full)
    refused(
        run("generate", "--output", "a.csv"), "out of memory: Unable to allocate 74"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_one_line_with_the_file(tmp_path: Path) -> None:
    full = tmp_path / "full.csv"
    full.symlink_to("/dev/full")
    refused(
        run("generate", "--nodes", 9, "--output", full),
        f"{full}: No space left on device",
    )

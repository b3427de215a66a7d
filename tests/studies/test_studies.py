"""Studies: their files, their cycles, their commands."""

import datetime
import math
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from small_study import SMALL, load_small
from typer.testing import CliRunner

from slotkern import studies
from slotkern.commands.main import app
from slotkern.studies.cycle import windows_of_cycle
from slotkern.studies.experiment import compute
from slotkern.studies.load import _study
from slotkern.studies.papers import published

TODAY = datetime.date(2020, 1, 1)


@pytest.fixture
def small(tmp_path):
    return load_small(tmp_path)


# --- files ------------------------------------------------------------------------


def test_a_study_that_ships_is_one_file():
    folder = Path(studies.load.__file__).parent / "papers"
    names = {path.stem for path in folder.glob("*.toml")} - {"published"}
    assert set(studies.PAPERS) == names
    assert names == {
        *("aep", "casa", "distance", "placement", "slicing", "square", "vo")
    }


@pytest.mark.parametrize("name", studies.PAPERS)
def test_the_papers_studies_load(name):
    study = studies.load_study(name)
    assert study.name == name
    known = {"aep": 5000, "square": 3000, "placement": 2000, "vo": 5000}
    known |= {"casa": 200, "distance": 200}
    assert study.cycles == known.get(name, 1000)
    random = name in ("aep", "square", "placement")
    assert study.published_cycles == (200 if random else 0)
    nodes = {"vo": 24, "slicing": 24, "distance": 24, "casa": None}.get(name, 100)
    assert study.settings[0].environment.get("nodes") == nodes
    assert studies.load_study(name, seed=5).seed == 5


def test_grids_make_settings(small):
    assert [s.name for s in small.settings] == [
        "base",
        "budget-0",
        "budget-1",
        "budget-2",
    ]
    assert [s.job["budget"] for s in small.settings] == [300, 125, 200, 400]
    assert [s.label for s in small.settings][1] == "budget = 125"
    assert small.settings[1].cycles(100) == 50


def test_a_grid_alone_is_a_sweep(tmp_path):
    path = tmp_path / "study.toml"
    text = SMALL[: SMALL.index("[[sweep]]")]
    path.write_text(
        text + "[grid]\nenvironment.price.level = [0.1, 0.2]\njob.nodes = [2, 3, 4]\n"
    )
    study = studies.load_study(path)
    assert len(study.settings) == 6
    last = study.settings[-1]
    assert last.job["nodes"] == 4
    # The rest of the preset's price law stays.
    assert last.environment["price"] == {
        "level": 0.2,
        "exponent": 1.0,
        "deviation": 0.2,
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "small"', "", ["name", "missing"]),
        ('name = "small"', 'name = "a/b"', ["name", "a/b"]),
        ("seed = 7", "sead = 7", ["sead", "unknown"]),
        ("seed = 7", "seed = -7", ["seed", "-7"]),
        ("seed = 7", "seed = 7 7", ["line"]),
        ("chunk = 10", "chunk = 0", ["chunk", "0"]),
        ("chunk = 10", "chunk = true", ["chunk", "True"]),
        ('preset = "square"', 'preset = "round"', ["environment.preset", "round"]),
        ("nodes = 20", "noodles = 20", ["environment.noodles", "unknown"]),
        ("nodes = 20", "nodes = 0", ["environment", "nodes", "0"]),
        ("interval = 800", "load = [0.9, 0.1]", ["environment", "load", "0.9"]),
        ("interval = 800", "price.levle = 2", ["environment", "price", "levle"]),
        ("volume = 500", "", ["job.volume", "missing"]),
        ("volume = 500", "volume = -5", ["job", "volume", "-5"]),
        ("volume = 500", 'volume = "x"', ["job"]),
        ("budget = 300", "bugdet = 300", ["job.bugdet", "unknown"]),
        ('shape = "ragged"', 'shape = "round"', ["job.shape", "round"]),
        ("[job]", "[jobs]", ["jobs", "unknown"]),
        (', criterion = "cost" }', " }", ["algorithms.cost.criterion", "missing"]),
        ('criterion = "cost" }', 'criterion = "cost", x = 1 }', ["cost.x", "unknown"]),
        (
            'criterion = "cost" }',
            'criterion = "cost", method = "guess" }',
            ["algorithms.cost.method", "guess"],
        ),
        (
            'criterion = "cost" }',
            'criterion = "cost", beside = "cost" }',
            ["algorithms.cost.beside", "must be one of", "got 'cost'"],
        ),
        (
            'published = { cost = 180.0, first = 1.0, finish = "dearer" }',
            "",
            ["compare[0].published", "missing"],
        ),
        ("share = 0.5", "share = 0", ["sweep[1].share", "0"]),
        ('name = "budget"', 'name = "base"', ["sweep[1].name", "base"]),
        ('algorithms = ["cost"]\ngrid', 'algorithms = ["dear"]\ngrid', ["dear"]),
        ("job.budget = [125", "job.budgets = [125", ["grid.job.budgets", "unknown"]),
        ("grid.job.budget = [125", "grid.jobs.budget = [125", ["grid.jobs", "unknown"]),
        ("budget = [125, 200, 400]", "budget = []", ["grid.job.budget", "[]"]),
        ("budget = [125, 200, 400]", "budget = [1, 2, -3]", ["budget", "-3"]),
        ("[100, 200, 300]", "[100, 200]", ["compare[2].published"]),
        ("cost = 180.0", "csot = 180.0", ["compare[0].published", "csot"]),
        ("published = 0.1", 'published = "aep.nothing"', ["aep.nothing"]),
        ('metric = "cost"\nbest', 'metric = "csot"\nbest', ["compare[1]", "csot"]),
        ('sweep = "budget"', 'sweep = "bugdet"', ["compare[2].sweep", "bugdet"]),
        ('kind = "unmatched"', 'kind = "odd"', ["remark[0].kind", "odd"]),
        ('"nearest", "farthest"', '"cost", "cost"', ["metrics", "twice"]),
    ],
)
def test_wrong_files_name_the_key(tmp_path, old, new, words):
    assert old in SMALL
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(ValueError, match=r"wrong\.toml") as caught:
        studies.load_study(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


# All other keys of a study, with the values of SMALL.
FULL = """
[environment.price]
level = 0.1
[environment.extra.memory]
low = 1
high = 5
[job]
min_performance = 1
earliest = 0
deadline = 700
max_price = 5
where = "memory >= 2"
[algorithms.cost]
label = "minCost"
method = "exact"
alternatives = false
twin = false
options = { gap = 0.0 }
beside = "first"
[[timing]]
sweep = "budget"
algorithms = ["cost"]
published = { cost = [1, 2, 3] }
per_alternative = { cost = 1 }
[[figure]]
name = "gantt"
kind = "gantt"
algorithms = ["cost"]
cycle = 2
"""
WRONG = [-1, 10**30, math.nan, True, "x", "two\nlines", [], {}, [[1, "x"]], TODAY]


def full_study():
    """Return the data of SMALL and FULL together."""
    data, more = tomllib.loads(SMALL), tomllib.loads(FULL)
    data["figure"] += more.pop("figure")
    for key in ("environment", "job"):
        data[key] |= more.pop(key)
    data["algorithms"]["cost"] |= more.pop("algorithms")["cost"]
    return data | more


def places(value, path=()):
    """Yield the path of every value in nested tables and lists."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield *path, key
        if isinstance(value[key], dict | list):
            yield from places(value[key], (*path, key))


def inside(data, path):
    """Return the value at a path."""
    for key in path:
        data = data[key]
    return data


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_any_wrong_value_is_one_line(wrong):
    """Any value in any place is accepted, or rejected in one line naming its key."""
    refused = 0
    for path in places(full_study()):
        data = full_study()
        inside(data, path[:-1])[path[-1]] = wrong
        try:
            _study(data)
        except ValueError as error:
            refused += 1
            message = str(error)
            assert "\n" not in message
            (*_, key) = (key for key in path if isinstance(key, str))
            # An empty or too short table or list is reported by the code that uses it.
            if wrong not in ({}, []):
                assert key in message or path[0] in ("compare", "sweep"), message
    assert refused > 40


def test_errors_name_any_unknown_key():
    for path in places(full_study()):
        table = full_study()
        inside(table, path[:-1])
        if not isinstance(inside(table, path), dict):
            continue
        inside(table, path)["sead"] = 1
        with pytest.raises(ValueError, match="sead"):
            _study(table)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            "placment = 'any'",
            "options.placment: unknown key; known are",
        ),
        ("seed = 3", "options.seed: unknown key"),
        ("placement = 'anywhere'", "algorithms.finish: placement must be one of"),
        ("span = 'group'", "algorithms.finish: span='group' is for square windows"),
        ("gap = 'none'", "algorithms.finish: gap must be a number, got 'none'"),
        ("limit = 3", "options.limit: unknown key"),
    ],
)
def test_unknown_options_are_refused_by_name(tmp_path, options, words):
    path = tmp_path / "wrong.toml"
    new = f'criterion = "finish", options = {{ {options} }}'
    path.write_text(SMALL.replace('criterion = "finish"', new))
    with pytest.raises(ValueError, match=re.escape(words)):
        studies.load_study(path)


def test_options_reach_the_search(tmp_path):
    path = tmp_path / "options.toml"
    text = SMALL[: SMALL.index("[[sweep]]")].replace('shape = "ragged"', "")
    path.write_text(
        text
        + 'far = { criterion = "dependable" }\n'
        + 'any = { criterion = "dependable", options = { placement = "any" } }\n'
        + 'one = { criterion = "first", alternatives = true, options.limit = 1 }\n'
    )
    study = studies.load_study(path)
    (setting,) = study.settings
    got = compute(setting, 0, 20)
    far, anywhere = got["nearest"][:, 3], got["nearest"][:, 4]
    assert (anywhere >= far - 1e-9).all()
    assert (anywhere > far + 1e-9).any()
    assert (got["alternatives"][:, 5] == 1).all()


def test_files_that_are_no_studies(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        studies.load_study(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="binary"):
        studies.load_study(binary)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('criterion = "cost"', 'criterion = "csot"', ["algorithms.cost", "csot"]),
        ('"nearest"', '"nearby"', ["metrics", "nearby"]),
    ],
)
def test_errors_name_arguments_that_the_search_rejects(tmp_path, old, new, words):
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(ValueError, match=words[-1]) as caught:
        studies.run(studies.load_study(path), 5, out=tmp_path / "out")
    for word in words:
        assert word in str(caught.value)


def test_published_algorithms_need_cycles(tmp_path):
    path = tmp_path / "never.toml"
    path.write_text(
        SMALL.replace(
            'criterion = "cost" }', 'criterion = "cost", method = "published" }'
        )
    )
    with pytest.raises(ValueError, match=r"algorithms\.cost: .*published_cycles"):
        studies.load_study(path)


def test_published_figures_are_those_of_the_papers():
    assert published("aep.table2.slots") == [472.6, 779.4, 1092, 1405.1, 1718.8, 2030.6]
    assert published("placement.table1.nearest.dep") == 369
    with pytest.raises(ValueError, match=r"aep\.tabel"):
        published("aep.tabel")


# --- cycles -----------------------------------------------------------------------


def test_metrics_of_a_cycle(small):
    setting = small.settings[0]
    got = compute(setting, 3, 5)
    for row, cycle in enumerate((3, 4)):
        environment, found = windows_of_cycle(setting, setting.algorithms, cycle)
        slots, tasks = environment.slots, environment.tasks
        assert (got["slots"][row] == slots.size).all()
        for column, window in enumerate(found):
            assert got["alternatives"][row, column] == 1
            for metric in ("start", "finish", "cost"):
                assert got[metric][row, column] == getattr(window, metric)
            nearest, farthest = [], []
            for part in window.slots:
                mine = tasks[tasks["node"] == part["node"]]
                ends = mine["end"][mine["end"] <= part["start"]]
                starts = mine["start"][mine["start"] >= part["end"]]
                before = part["start"] - max([0, *ends])
                after = min([environment.horizon, *starts]) - part["end"]
                nearest.append(min(before, after))
                farthest.append(max(before, after))
            assert got["nearest"][row, column] == pytest.approx(np.mean(nearest))
            assert got["farthest"][row, column] == pytest.approx(np.mean(farthest))
            q = environment.nodes["q"][window.slots["node"]].sum()
            assert got["q"][row, column] == pytest.approx(q)


def test_cycles_without_a_window_are_counted(small, tmp_path):
    study = small
    setting = study.settings[1]
    got = compute(setting, 0, 40)
    found = got["alternatives"][:, 0] == 1
    assert 0 < found.sum() < 40
    assert np.array_equal(np.isnan(got["cost"][:, 0]), ~found)
    summary = studies.Summary(studies.run(study, 80, out=tmp_path / "out"))
    estimate = summary.estimate(setting, "cost", "cost")
    assert (estimate.count, estimate.missing) == (found.sum(), (~found).sum())


# --- the command line -------------------------------------------------------------


def run_command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_study_command(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    words = ("study", path, "--cycles", 20, "--out", tmp_path / "out")
    result = run_command(*words)
    assert result.exit_code == 0, result.output
    assert "cost, minCost, budget = 125" in result.output
    assert str(tmp_path / "out" / "comparison.csv") in result.output
    assert run_command(*words).output == result.output
    other = run_command(*words, "--seed", 8)
    assert other.exit_code == 2
    assert "seed is 7, here 8" in other.output
    assert other.output.count("\n") == 1


@pytest.mark.parametrize("name", studies.PAPERS)
def test_the_file_of_a_papers_study_is_the_study(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_command("reproduce", name, "--toml")
    assert result.exit_code == 0, result.output
    path = tmp_path / "own.toml"
    path.write_text(result.stdout)
    assert studies.load_study(path) == studies.load_study(name)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["reproduce", "everything"], "everything"),
        (["reproduce", "all", "--toml"], "prints one study"),
        (["reproduce"], "Missing argument"),
        (["reproduce", "aep", "--cycles", "0"], "cycles"),
        (["reproduce", "aep", "--workers", "many"], "workers"),
        (["study", "nowhere.toml"], "nowhere.toml: No such file"),
    ],
)
def test_bad_words_are_one_line(words, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_command(*words)
    assert result.exit_code == 2
    assert printed in result.output
    assert result.output.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "printed"),
    [
        ("seed = 7", "sead = 7", "sead: unknown key"),
        ("seed = 7", "cycles = -5", "cycles must be at least 1, got -5"),
        ("seed = 7", "cycles = 1.5", "cycles must be an integer, got 1.5"),
        ("seed = 7", "seed = ", "(at line 3, column 8)"),
        ("nodes = 20", "nodes = 2147483647", "environment: nodes: 2147483647"),
        (
            "budget = [125, 200, 400]",
            "budget = []",
            "grid.job.budget: [] is not a list",
        ),
        ('criterion = "cost"', 'criterion = "csot"', "algorithms.cost: criterion must"),
        ("job.budget", "environment.prset", "environment.prset: unknown key"),
    ],
)
def test_wrong_study_files_are_one_line(tmp_path, old, new, printed):
    path = tmp_path / "wrong.toml"
    assert old in SMALL
    path.write_text(SMALL.replace(old, new))
    result = run_command("study", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert printed in result.output
    assert result.output.startswith(f"slotkern: {path}: ")
    assert result.output.count("\n") == 1
    assert not (tmp_path / "out").exists()

"""Experiments, criteria and traces of users."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from small_study import SMALL, contents, same
from trace_files import trace_text
from typer.testing import CliRunner

import slotkern as sk
from slotkern import studies
from slotkern.commands.main import app
from slotkern.studies.cycle import windows_of_cycle
from slotkern.studies.experiment import compute
from slotkern.studies.load import _study

ROOT = Path(__file__).parents[2]
PAGE, EXAMPLES = ROOT / "docs" / "studies.md", ROOT / "examples"


def run_command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write the files of the documentation page to a folder; return it."""
    blocks = re.findall(r"```\w+ title=(\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert {name for name, _ in blocks} == {"queue.toml", "mm1.py"}
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mm1", raising=False)
    return tmp_path


def test_the_experiment_of_the_page_runs(page):
    """Its mean wait is near the theoretical one of an M/M/1 queue."""
    words = ("study", page / "queue.toml", "--out", page / "out", "--cycles", 60)
    result = run_command(*words, "--workers", 2, "--format", "csv", "--format", "tex")
    assert result.exit_code == 0, result.output
    assert "wait" in result.output
    names = {path.name for path in (page / "out").iterdir()}
    assert {"summary.csv", "report.txt", "study.json"} < names
    assert any(name.endswith(".tex") for name in names)
    assert not any(name.endswith(".png") for name in names)
    assert len((page / "mm1.py").read_text().splitlines()) <= 20
    study = studies.load_study(page / "queue.toml")
    campaign = studies.Campaign(study, page / "out", 60, 0)
    summary = studies.Summary(campaign)
    for setting in study.settings:
        load = setting.environment["load"]
        got = summary.estimate(setting, "fifo", "wait")
        assert abs(got.mean - load / (1 - load)) < 5 * got.error + 0.1
    # The results do not depend on the process that computes them.
    studies.run(study, 60, out=page / "alone")
    assert same(contents(page / "alone"), contents(page / "out"))


def own(**more):
    study = {
        "name": "own",
        "experiment": "my_experiment:own",
        "metrics": ["x"],
        "algorithms": {"a": {}, "b": {"shift": 2.0}},
    }
    return study | more


MODULE = """
import numpy as np
def check(setting):
    if setting.environment.get("wrong"):
        raise ValueError("environment.wrong: is wrong")
def run(setting, first, last):
    return eval(setting.environment.get("gives", "dict(x=np.arange(first, last))"))
class own:
    check, run = staticmethod(check), staticmethod(run)
class half:
    run = staticmethod(run)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_experiment.py").write_text(MODULE)
    (tmp_path / "my_broken.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_experiment", raising=False)


@pytest.mark.usefixtures("module")
def test_options_of_a_user_experiment():
    """They are given next to the label, or in a table ``options``; not both."""
    both = {"a": {"options": {"shift": 2.0}}, "b": {"shift": 2.0}}
    (setting,) = _study(own(algorithms=both)).settings
    assert [dict(a.options) for a in setting.algorithms] == [{"shift": 2.0}] * 2
    twice = {"a": {"shift": 1, "options": {"shift": 2}}}
    with pytest.raises(ValueError, match=r"a\.options\.shift: is given twice"):
        _study(own(algorithms=twice))


@pytest.mark.usefixtures("module")
def test_a_folder_without_results_blocks_no_study(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ZeroDivisionError):
        studies.run(_study(own(environment={"gives": "1 / 0"})), 5, out=out)
    study = _study(own())
    studies.run(study, 5, out=out)
    with pytest.raises(ValueError, match="holds the results of another study"):
        studies.run(_study(own(environment={"gives": "1 / 0"})), 5, out=out)
    assert studies.run(study, 5, out=out).cycles == 5


@pytest.mark.usefixtures("module")
def test_columns_are_written_as_they_are(tmp_path):
    study = _study(own(grid={"environment": {"some": [1, "two"]}}))
    study_of_one = [s.values for s in study.settings]
    assert study_of_one == [{"environment.some": 1}, {"environment.some": "two"}]
    campaign = studies.run(study, 5, out=tmp_path / "out")
    (path,) = (tmp_path / "out" / "cycles").glob("base-0.*")
    table = parquet.read_table(path).to_pydict()
    assert table["cycle"] == table["x"] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert table["algorithm"] == ["a", "b"] * 5
    got = studies.Summary(campaign).estimate(study.settings[0], "b", "x")
    assert (got.mean, got.count) == (2.0, 5)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experiment": "cycles"}, "experiment: 'cycles' is not one of cycle, batch"),
        ({"experiment": "no_module:x"}, "experiment: 'no_module:x': No module named"),
        ({"experiment": "my_experiment:x"}, "'my_experiment:x': AttributeError"),
        ({"experiment": "my_broken:x"}, "'my_broken:x': ZeroDivisionError"),
        ({"experiment": "my_experiment:half"}, "'my_experiment:half' has no function"),
        ({"environment": {"wrong": True}}, "environment.wrong: is wrong"),
        (
            {"grid": {"algorithms": {"c": {"k": [1]}}}},
            "grid.algorithms.c.k must be one of a, b; got 'c'",
        ),
    ],
)
def test_errors_name_an_invalid_experiment(change, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        _study(own(**change))
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("gives", "message"),
    [
        ("{}", "returns no 'x'"),
        ("dict(x=np.zeros(3))", "shape (3,), where numbers, shape (2,) or (2, 2)"),
        ("dict(x=np.zeros((2, 3)))", "shape (2, 3), where"),
        ("dict(x=np.array(['a', 'b']))", "'x' is of <U1"),
    ],
)
def test_errors_name_wrong_columns(gives, message):
    (setting,) = _study(own(environment={"gives": gives})).settings
    with pytest.raises(ValueError, match=re.escape(message)):
        compute(setting, 4, 6)


@pytest.mark.usefixtures("module")
def test_a_grid_may_vary_an_algorithm():
    study = _study(own(grid={"algorithms": {"b": {"shift": [1, 2]}}}))
    shifts = [[a.options.get("shift") for a in s.algorithms] for s in study.settings]
    assert shifts == [[None, 1], [None, 2]]
    assert study.settings[1].label == "shift = 2"


def test_a_user_criterion(tmp_path, monkeypatch):
    """A criterion named in the file finds the window of the equal built-in one."""
    (tmp_path / "my_criteria.py").write_text(
        "import slotkern as sk\n"
        "@sk.criterion\n"
        "def quality(slot, length):\n"
        "    return slot.q\n"
        "cheap = sk.minimize('price')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    text = SMALL[: SMALL.index("[[sweep]]")]
    path = tmp_path / "study.toml"
    path.write_text(
        text
        + 'q = { criterion = "q" }\n'
        + 'mine = { criterion = "my_criteria:quality" }\n'
        + 'cheap = { criterion = "my_criteria:cheap" }\n'
    )
    (setting,) = studies.load_study(path).settings
    got = compute(setting, 0, 10)["q"]
    assert np.array_equal(got[:, 3], got[:, 4], equal_nan=True)
    assert (got[:, 3] > got[:, 5]).any()
    path.write_text(text + 'mine = { criterion = "my_criteria:nothing" }\n')
    with pytest.raises(ValueError, match=r"mine\.criterion: 'my_criteria:nothing'"):
        studies.load_study(path)


def test_each_further_limit_costs_more():
    study = studies.load_study(EXAMPLES / "limits.toml")
    got = [compute(setting, 0, 10) for setting in study.settings]
    names = [*study.algorithms]
    for name, metric in (("cheapest", "cost"), ("fastest", "runtime")):
        none, one, two = (values[metric][:, names.index(name)] for values in got)
        assert (none <= one).all()
        assert (one <= two).all()
        assert (none < two).any()


def test_a_trace_is_an_environment(tmp_path):
    jobs = [(0, 50, 2), (10, 100, 1), (120, 30, 3), (200, 90, 1), (260, 10, 4)]
    trace = tmp_path / "small.swf"
    trace.write_text(trace_text(jobs, "; MaxProcs: 4\n"))
    data = {
        "name": "trace",
        "metrics": ["start", "cost", "nearest"],
        "seed": 3,
        "environment": {
            "trace": str(trace),
            "horizon": 100,
            "step": 50,
            "performance": "uniform:1:3",
            "price": "market:1",
        },
        "job": {"nodes": 2, "volume": 20},
        "algorithms": {
            "first": {"criterion": "first"},
            "cost": {"criterion": "cost"},
        },
    }
    (setting,) = _study(data).settings
    got = compute(setting, 0, 5)
    for cycle in range(5):
        at = 50 * cycle
        there = sk.slots_from_trace(
            trace, at, 100, performance="uniform:1:3", price="market:1", seed=3
        ).slots
        environment, found = windows_of_cycle(setting, setting.algorithms, cycle)
        assert environment.slots["start"].tolist() == (there["start"] - at).tolist()
        assert environment.slots["price"].tolist() == there["price"].tolist()
        assert got["slots"][cycle, 0] == there.size
        # Tasks and slots tile the span of every processor.
        tiled = np.zeros(4)
        for part in (environment.slots, environment.tasks):
            np.add.at(tiled, part["node"], part["end"] - part["start"])
        assert tiled.tolist() == [100.0] * 4
        window = sk.find_window(there, sk.Request(2, 20), "cost")
        assert got["cost"][cycle, 1] == pytest.approx(window.cost)
        assert found[0].start == got["start"][cycle, 0]
    with pytest.raises(ValueError, match=r"cycle 6: .*not before the end"):
        compute(setting, 6, 7)
    for wrong, message in (
        ({"horizon": 0}, r"environment\.horizon"),
        ({"processors": 3}, r"environment: cycle 0: .*the machine has 3"),
        ({"price": "gold"}, r"environment: cycle 0: price"),
        ({"nodes": 4}, r"environment\.nodes: unknown key"),
    ):
        environment = data["environment"] | wrong
        with pytest.raises(ValueError, match=message):
            _study(data | {"environment": environment})


@pytest.mark.parametrize("kind", ["svg", "pdf", "tex"])
def test_formats(tmp_path, kind):
    """Vector figures and LaTeX tables are the same bytes every time."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("seed = 7", f'seed = 7\nformats = ["{kind}"]'))
    seen = []
    for out in ("one", "two"):
        result = run_command("study", path, "--out", tmp_path / out, "--cycles", 10)
        assert result.exit_code == 0, result.output
        files = {f.name: f.read_bytes() for f in (tmp_path / out).glob(f"*.{kind}")}
        seen.append(files)
    assert seen[0] == seen[1]
    assert not list((tmp_path / "one").glob("*.png"))
    if kind == "tex":
        assert set(files) == {"comparison.tex", "means-base.tex"} | {
            name for name in files if name.startswith("means-")
        }
        for text in files.values():
            lines = text.decode().splitlines()
            columns = len(re.search(r"tabular}{(\w+)}", text.decode())[1])
            assert lines[1] == r"\begin{table}"
            assert lines[-1] == r"\end{table}"
            assert any(line.startswith(r"\caption{") for line in lines)
            assert any(line.startswith(r"\label{tab:") for line in lines)
            assert text.count(b"\\linewidth") == 2
            rows = [line for line in lines if line.endswith(r"\\")]
            assert len(rows) > 1
            for row in rows:
                assert len(re.findall(r"(?<!\\)&", row)) == columns - 1
                assert not re.search(r"(?<!\\)[%#_]", row)
    else:
        assert set(files) == {f"bars.{kind}", f"curves.{kind}"}
        head = {"svg": b"<?xml", "pdf": b"%PDF"}[kind]
        assert all(data.startswith(head) for data in files.values())


def test_figures_without_titles(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("seed = 7", 'seed = 7\nformats = ["svg"]'))
    words = ("study", path, "--cycles", 10, "--out", tmp_path / "out")
    found = []
    for more in ((), ("--no-titles",)):
        assert run_command(*words, *more).exit_code == 0
        found.append(len((tmp_path / "out" / "bars.svg").read_bytes()))
    assert found[1] < found[0]
    assert not _study(own_less() | {"titles": False}).titles
    with pytest.raises(ValueError, match="titles"):
        _study(own_less() | {"titles": 1})


def own_less():
    return {
        "name": "plain",
        "metrics": ["value"],
        "job": {"nodes": 2, "volume": 200, "budget": 300},
        "algorithms": {
            "cost": {"criterion": "cost"},
            "all": {"criterion": "cost", "alternatives": True},
            "first": {"criterion": "first"},
        },
    }


def test_the_value_of_a_criterion_is_a_metric():
    """It is the window's value; for several alternatives that of the first."""
    (setting,) = _study(own_less()).settings
    values = compute(setting, 0, 3)["value"]
    for cycle in range(3):
        _, found = windows_of_cycle(setting, setting.algorithms, cycle)
        cost, every, first = found
        assert values[cycle].tolist() == [cost.cost, every[0].cost, first.start]


def test_errors_name_unknown_formats(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("seed = 7", 'seed = 7\nformats = ["gif"]'))
    with pytest.raises(
        ValueError, match=r"formats must be one of png, svg, pdf.*'gif'"
    ):
        studies.load_study(path)
    path.write_text(SMALL)
    result = run_command("study", path, "--format", "gif", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "--format must be one of png, svg, pdf" in result.output
    assert "'gif'" in result.output
    assert not (tmp_path / "out").exists()

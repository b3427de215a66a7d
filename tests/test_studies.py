"""Studies: files, campaigns (parallel, killed, resumed, on a cluster), summaries."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from rich.console import Console
from typer.testing import CliRunner

from slotkern import cli, studies
from slotkern.studies import campaign as campaign_module
from slotkern.studies.cycle import run_cycles, windows_of_cycle
from slotkern.studies.papers import published
from slotkern.studies.report import print_report, write_report

SMALL = """
name = "small"
seed = 7
chunk = 10
metrics = ["start", "finish", "cost", "nearest", "farthest", "q"]

[environment]
preset = "square"
nodes = 20
interval = 800

[job]
nodes = 3
volume = 500
budget = 300
shape = "ragged"

[algorithms]
first = { label = "AMP", criterion = "first" }
finish = { label = "minFinish", criterion = "finish" }
cost = { label = "minCost", criterion = "cost" }

[[sweep]]
name = "base"

[[sweep]]
name = "budget"
share = 0.5
algorithms = ["cost"]
grid.job.budget = [125, 200, 400]

[[compare]]
metric = "cost"
published = { cost = 180.0, first = 1.0, finish = "dearer" }

[[compare]]
metric = "cost"
best = "cost"
against = ["first", "finish"]
worst = true
published = 0.1

[[compare]]
metric = "cost"
sweep = "budget"
against = ["cost"]
published = [100, 200, 300]

[[remark]]
kind = "unmatched"
algorithms = ["first"]
metrics = ["cost"]
text = "Nobody knows why."

[[figure]]
name = "bars"
metrics = ["cost"]

[[figure]]
name = "curves"
sweep = "budget"
metrics = ["cost"]
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return studies.load_study(path)


def contents(folder):
    """Everything in a campaign's data set, by file."""
    files = sorted((folder / "cycles").iterdir())
    return {file.name: parquet.read_table(file).to_pydict() for file in files}


def same(one, other):
    """Whether two data sets are identical, NaN included."""
    return str(one) == str(other)


# --- files ------------------------------------------------------------------------


@pytest.mark.parametrize("name", studies.PAPERS)
def test_the_papers_studies_load(name):
    study = studies.load_study(name)
    assert study.name == name
    assert study.cycles == {"aep": 5000, "square": 3000, "placement": 2000}[name]
    assert study.published_cycles == 200
    assert study.settings[0].environment["nodes"] == 100
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
        ("share = 0.5", "share = 0", ["sweep[1].share", "0"]),
        ('name = "budget"', 'name = "base"', ["sweep[1].name", "base"]),
        ('algorithms = ["cost"]\ngrid', 'algorithms = ["dear"]\ngrid', ["dear"]),
        ("job.budget = [125", "job.budgets = [125", ["grid.job.budgets", "unknown"]),
        ("grid.job.budget = [125", "grid.jobs.budget = [125", ["grid.jobs.budget"]),
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
def test_what_the_search_does_not_know_is_named(tmp_path, old, new, words):
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(ValueError, match=words[-1]) as caught:
        studies.run(studies.load_study(path), 5, out=tmp_path / "out")
    for word in words:
        assert word in str(caught.value)


# --- cycles -----------------------------------------------------------------------


def test_metrics_of_a_cycle(small):
    setting = small.settings[0]
    got = run_cycles(setting, setting.algorithms, small.metrics, 7, 3, 5)
    for row, cycle in enumerate((3, 4)):
        environment, found = windows_of_cycle(setting, setting.algorithms, 7, cycle)
        slots, tasks = environment.slots, environment.tasks
        assert got["slots"][row] == slots.size
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
    got = run_cycles(setting, setting.algorithms, study.metrics, 7, 0, 40)
    found = got["alternatives"][:, 0] == 1
    assert 0 < found.sum() < 40
    assert np.array_equal(np.isnan(got["cost"][:, 0]), ~found)
    summary = studies.Summary(studies.run(study, 80, out=tmp_path / "out"))
    estimate = summary.estimate(setting, "cost", "cost")
    assert (estimate.count, estimate.missing) == (found.sum(), (~found).sum())


# --- campaigns --------------------------------------------------------------------


def test_workers_and_interruptions_change_nothing(small, tmp_path, monkeypatch):
    studies.run(small, 45, out=tmp_path / "one")
    expected = contents(tmp_path / "one")
    assert len(expected) == 5 + 3 * 3
    studies.run(small, 45, out=tmp_path / "two", workers=2)
    assert same(contents(tmp_path / "two"), expected)
    for file in (tmp_path / "one" / "cycles").iterdir():
        other = tmp_path / "two" / "cycles" / file.name
        assert other.read_bytes() == file.read_bytes()

    write, written = campaign_module._write, []

    def interrupted(*args):
        if len(written) == 4:
            raise KeyboardInterrupt
        written.append(args)
        write(*args)

    monkeypatch.setattr(campaign_module, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        studies.run(small, 45, out=tmp_path / "three")
    assert len(contents(tmp_path / "three")) == 4
    monkeypatch.setattr(campaign_module, "_write", write)
    studies.run(small, 45, out=tmp_path / "three")
    assert same(contents(tmp_path / "three"), expected)


def test_finished_chunks_are_not_computed_again(small, tmp_path, monkeypatch):
    studies.run(small, 20, out=tmp_path)
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "cycles").iterdir()}
    studies.run(small, 40, out=tmp_path)
    after = {f: f.stat().st_mtime_ns for f in (tmp_path / "cycles").iterdir()}
    assert before.items() <= after.items()
    assert len(after) > len(before)
    monkeypatch.setattr(campaign_module, "_compute", None)
    studies.run(small, 40, out=tmp_path)


# Where tests run in the background, the interrupt may arrive switched off.
RUN_FOREVER = """
import signal, sys
from slotkern import studies
signal.signal(signal.SIGINT, signal.default_int_handler)
studies.run(studies.load_study(sys.argv[1]), 100_000, out=sys.argv[2], workers=2)
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_killed_campaigns_resume_to_the_same_numbers(small, tmp_path, blow):
    out = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_FOREVER, tmp_path / "small.toml", out],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while len(list(out.glob("cycles/*.parquet"))) < 10:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(process.pid, blow)
        process.wait(60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    finished = len(contents(out))  # every file there is whole
    assert finished >= 10
    chunks = 10 * finished
    studies.run(small, chunks, out=out)
    studies.run(small, chunks, out=tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    got = contents(out)
    assert same({name: got[name] for name in expected}, expected)


def test_half_written_files_are_not_read(small, tmp_path):
    (tmp_path / ".part-123").mkdir(parents=True)
    name = "base.cycles-0000000-0000010.parquet"
    (tmp_path / ".part-123" / name).write_bytes(b"PAR1 half")
    campaign = studies.run(small, 10, out=tmp_path)
    assert parquet.read_table(tmp_path / "cycles" / name).num_rows == 30
    assert studies.Summary(campaign).estimate(small.settings[0], "cost", "q").count


def test_a_folder_belongs_to_one_study(small, tmp_path):
    studies.run(small, 10, out=tmp_path / "out")
    changed = tmp_path / "changed.toml"
    changed.write_text(SMALL.replace("budget = 300", "budget = 301"))
    with pytest.raises(ValueError, match=r"job\.budget is 300, here 301"):
        studies.run(studies.load_study(changed), 10, out=tmp_path / "out")
    with pytest.raises(ValueError, match="seed is 7, here 8"):
        studies.run(
            studies.load_study(tmp_path / "small.toml", seed=8),
            10,
            out=tmp_path / "out",
        )
    # What only concerns the report may change.
    changed.write_text(SMALL.replace("Nobody knows", "Everybody knows"))
    studies.run(studies.load_study(changed), 10, out=tmp_path / "out")


@pytest.mark.parametrize(
    "wrong",
    [
        {"cycles": 0},
        {"cycles": 1.5},
        {"workers": 0},
        {"workers": -1},
        {"published_cycles": -1},
    ],
)
def test_impossible_campaigns_are_named(small, tmp_path, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        studies.run(small, out=tmp_path, **wrong)


@pytest.mark.parametrize("workers", [1, 2])
def test_memory_does_not_grow_with_the_cycles(small, tmp_path, monkeypatch, workers):
    """No more than a few chunks' arrays are alive at any time."""
    arrays, alive = [], []

    def watched(function):
        def watch(*args):
            result = function(*args)
            for values in (result or args[-1]).values():
                arrays.append(weakref.ref(values))
            alive.append(sum(array() is not None for array in arrays))
            return result

        return watch

    monkeypatch.setattr(campaign_module, "_write", watched(campaign_module._write))
    campaign = studies.run(small, 300, out=tmp_path / "out", workers=workers)
    monkeypatch.setattr(studies.Campaign, "read", watched(studies.Campaign.read))
    summary = studies.Summary(campaign)
    for setting in small.settings:
        summary.estimate(setting, "cost", "cost")
    summary.advantage(small.settings[0], "cost", "first", "cost")
    each = len(small.metrics) + 2
    chunks = 30 + 3 * 15
    assert len(arrays) == each * (chunks + chunks + 30)
    assert max(alive) <= (3 + 2 * workers) * each


def test_a_dask_cluster_gives_the_same_numbers(small, tmp_path):
    distributed = pytest.importorskip("distributed")
    studies.run(small, 45, out=tmp_path / "alone")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len(client.scheduler_info()["workers"]) == 2
        assert cluster.scheduler_address.startswith("tcp://")
        studies.run(small, 45, out=tmp_path / "client", cluster=client)
        studies.run(
            small, 45, out=tmp_path / "address", cluster=cluster.scheduler_address
        )
    expected = contents(tmp_path / "alone")
    assert same(contents(tmp_path / "client"), expected)
    assert same(contents(tmp_path / "address"), expected)


TWINS = (
    SMALL[: SMALL.index("[[sweep]]")].replace(
        'criterion = "cost" }', 'criterion = "cost", twin = true }'
    )
    + """
[[compare]]
metric = "cost"
published = { cost = 120.0 }
"""
)


def test_published_twins_run_on_the_first_cycles(tmp_path):
    path = tmp_path / "twins.toml"
    path.write_text(TWINS)
    study = studies.load_study(path)
    out = tmp_path / "out"
    studies.run(study, 20, out=out, published_cycles=3)
    assert len(list(out.glob("cycles/base.published-*"))) == 3
    exact = {f: f.stat().st_mtime_ns for f in out.glob("cycles/base.cycles-*")}
    campaign = studies.run(study, 20, out=out, published_cycles=12)
    assert len(list(out.glob("cycles/base.published-*"))) == 12
    assert exact == {f: f.stat().st_mtime_ns for f in out.glob("cycles/base.cycles-*")}

    table = pd.read_parquet(out / "cycles")
    twin = table[table["algorithm"] == "cost.published"]["cost"].to_numpy()
    cost = table[table["algorithm"] == "cost"]["cost"].to_numpy()[:12]
    assert np.allclose(twin, cost)  # minCost as published is exact
    summary = studies.Summary(campaign)
    (worth,) = summary.worth(study.settings[0])
    assert worth.metric == "cost"
    assert worth.exact.mean == pytest.approx(cost.mean())
    assert worth.twin.mean == pytest.approx(twin.mean())
    assert (worth.better, worth.worse, worth.only) == (0, 0, 0)
    (row,) = summary.comparisons()
    assert row.twin.mean == pytest.approx(twin.mean())
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=150))
    assert "what exactness is worth, on the first 12 cycles" in stream.getvalue()


def test_published_and_exact_algorithms_are_joined_by_cycle(tmp_path):
    path = tmp_path / "joined.toml"
    text = TWINS[: TWINS.index("[[compare]]")].replace("chunk = 10", "chunk = 30")
    text = text.replace("seed = 7", "seed = 7\npublished_cycles = 50")
    path.write_text(
        text + 'random.criterion = "processor_time"\nrandom.method = "published"\n'
    )
    study = studies.load_study(path)
    out = tmp_path / "out"
    summary = studies.Summary(studies.run(study, 70, out=out))
    (setting,) = study.settings
    assert len(list(out.glob("cycles/base.published-*"))) == 17
    table = pd.read_parquet(out / "cycles").pivot(
        index="cycle", columns="algorithm", values="cost"
    )
    assert table["random"].notna().sum() == 50
    both = table[["cost", "random"]].dropna()
    got = summary.advantage(setting, "cost", "random", "cost")
    assert got.count == len(both)
    assert got.mean == pytest.approx(1 - both["cost"].mean() / both["random"].mean())
    (worth,) = summary.worth(setting)
    assert worth.exact.mean == pytest.approx(table["cost"][:50].mean())


def test_published_algorithms_need_cycles(tmp_path):
    path = tmp_path / "never.toml"
    path.write_text(
        SMALL.replace(
            'criterion = "cost" }', 'criterion = "cost", method = "published" }'
        )
    )
    with pytest.raises(ValueError, match=r"algorithms\.cost: .*published_cycles"):
        studies.load_study(path)


def test_twins_that_find_less_are_told(tmp_path):
    """A window better by the criterion is a gain; one found alone is counted."""
    path = tmp_path / "twins.toml"
    path.write_text(TWINS)
    study = studies.load_study(path)
    campaign = studies.run(study, 4, out=tmp_path / "out", published_cycles=4)
    changes = [(1, 7.0), (2, np.nan), (3, -2.0)]
    for cycle, dearer in changes:
        name = f"base.published-{cycle:07d}-{cycle + 1:07d}.parquet"
        file = tmp_path / "out" / "cycles" / name
        table = parquet.read_table(file)
        cost = pa.array(table["cost"].to_numpy() + dearer)
        at = table.schema.get_field_index("cost")
        parquet.write_table(table.set_column(at, "cost", cost), file)
    (worth,) = studies.Summary(campaign).worth(study.settings[0])
    assert (worth.better, worth.worse, worth.only) == (1, 1, 1)
    assert worth.gain.mean == pytest.approx((0 + 7 - 2) / 3)
    assert worth.gain.missing == 1


# --- the command line -------------------------------------------------------------


def run_command(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words])


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["reproduce", "everything"], "everything"),
        (["reproduce"], "Missing argument"),
        (["reproduce", "aep", "--cycles", "0"], "cycles"),
        (["reproduce", "aep", "--workers", "many"], "workers"),
        (["study", "nowhere.toml"], "nowhere.toml: No such file"),
    ],
)
def test_bad_words_are_one_line(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_command(*words)
    assert result.exit_code == 2
    assert told in result.output
    assert result.output.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_wrong_study_files_are_one_line(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace("seed = 7", "sead = 7"))
    result = run_command("study", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "sead: unknown key" in result.output
    assert result.output.count("\n") == 1
    assert not (tmp_path / "out").exists()


# --- summaries --------------------------------------------------------------------


def test_estimates_are_those_of_the_data_set(small, tmp_path):
    campaign = studies.run(small, 95, out=tmp_path)
    summary = studies.Summary(campaign)
    everything = pd.read_parquet(tmp_path / "cycles")
    assert len(everything) == 95 * 3 + 3 * 48
    for row in summary.rows():
        mine = everything[
            (everything["setting"] == row["setting"])
            & (everything["algorithm"] == row["algorithm"])
        ][row["metric"]].dropna()
        assert row["cycles"] == len(mine)
        assert row["mean"] == pytest.approx(mine.mean())
        assert row["standard_error"] == pytest.approx(mine.sem())


def test_advantages_are_ratios_of_means(small, tmp_path):
    summary = studies.Summary(studies.run(small, 200, out=tmp_path))
    setting = small.settings[0]
    table = pd.read_parquet(tmp_path / "cycles")
    table = table[table["setting"] == "base"].pivot(
        index="cycle", columns="algorithm", values="cost"
    )
    both = table[["cost", "first"]].dropna()
    got = summary.advantage(setting, "cost", "first", "cost")
    ratio = both["cost"].mean() / both["first"].mean()
    assert got.mean == pytest.approx(1 - ratio)
    spread = (both["cost"] - ratio * both["first"]).std()
    error = spread / np.sqrt(len(both)) / both["first"].mean()
    assert got.error == pytest.approx(error)
    # More q is better, so that the smaller mean is divided by the larger one.
    q = summary.advantage(setting, "finish", "cost", "q")
    means = [summary.estimate(setting, a, "q").mean for a in ("cost", "finish")]
    assert q.mean == pytest.approx(1 - means[0] / means[1])


def test_the_report_sets_published_beside_obtained(small, tmp_path):
    campaign = studies.run(small, 60, out=tmp_path)
    summary = studies.Summary(campaign)
    rows = summary.comparisons()
    assert [row.published for row in rows] == [180.0, 1.0, 0.1, 100, 200, 300]
    assert [row.remarks for row in rows] == [(), (0,), (0,), (), (), ()]
    assert rows[2].obtained.mean == max(
        summary.advantage(small.settings[0], "cost", other, "cost").mean
        for other in ("first", "finish")
    )
    assert rows[1].agrees is False
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=150))
    text = stream.getvalue()
    assert "Nobody knows why." in text
    line = next(line for line in text.splitlines() if "cost, AMP" in line)
    assert " 1 " in line
    assert f"{rows[1].obtained.mean:.1f} ±" in line
    assert "* [1]" in line
    written = {path.name: path for path in write_report(summary)}
    assert set(written) == {
        "summary.csv",
        "comparison.csv",
        "report.txt",
        "bars.png",
        "curves.png",
    }
    compared = pd.read_csv(written["comparison.csv"])
    assert np.allclose(compared["obtained"], [row.obtained.mean for row in rows])
    assert written["report.txt"].read_text() == text
    for name in ("bars.png", "curves.png"):
        assert written[name].read_bytes().startswith(b"\x89PNG")


def test_every_sweep_has_a_figure_if_none_is_named(tmp_path):
    path = tmp_path / "study.toml"
    text = SMALL[: SMALL.index("[[sweep]]")].replace(
        '"nearest", "farthest", "q"', '"q"'
    )
    path.write_text(
        text + "[grid]\njob.budget = [125, 300]\nenvironment.nodes = [10, 20]\n"
    )
    study = studies.load_study(path)
    summary = studies.Summary(studies.run(study, 20, out=tmp_path / "out"))
    names = {path.name for path in write_report(summary)}
    assert names == {"summary.csv", "report.txt", "base.png"}
    table = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert set(table["job.budget"]) == {125, 300}
    assert set(table["environment.nodes"]) == {10, 20}


def test_charts_show_one_cycle(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        SMALL[: SMALL.index("[[figure]]")]
        + '[[figure]]\nname = "load"\nkind = "utilization"\n'
        + '[[figure]]\nname = "both"\nkind = "gantt"\ncycle = 3\n'
        + 'algorithms = ["cost", "finish"]\n'
    )
    study = studies.load_study(path)
    campaign = studies.run(study, 5, out=tmp_path / "out")
    written = {path.name: path for path in write_report(studies.Summary(campaign))}
    for name in ("load.png", "both.png"):
        assert written[name].read_bytes().startswith(b"\x89PNG")


def test_published_figures_are_those_of_the_papers():
    assert published("aep.table2.slots") == [472.6, 779.4, 1092, 1405.1, 1718.8, 2030.6]
    assert published("placement.table1.nearest.dep") == 369
    with pytest.raises(ValueError, match=r"aep\.tabel"):
        published("aep.tabel")

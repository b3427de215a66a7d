"""Summaries of campaigns, the papers' algorithms next to them, reports and figures."""

import io
import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from rich.console import Console
from small_study import SMALL, TWINS, load_small

import slotkern as sk
from slotkern import studies
from slotkern.studies import figures
from slotkern.studies.cycle import windows_of_cycle
from slotkern.studies.experiment import experiment_of
from slotkern.studies.report import print_report, write_report
from slotkern.studies.summary import Estimate, _as_ratio
from slotkern.studies.times import growth_exponent, measure_times


@pytest.fixture
def small(tmp_path):
    return load_small(tmp_path)


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
    rows = summary.comparisons
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


READINGS = """
far = { label = "DEP", criterion = "dependable", twin = true }
lite = { label = "Lite", criterion = "dependable", method = "lite", twin = true }
all = { label = "MultipleBest", criterion = "first", alternatives = true }

[algorithms.any]
label = "anywhere"
criterion = "dependable"
options = { placement = "any" }
beside = "far"

[[sweep]]
name = "nodes"
grid.environment.nodes = [15, 20]

[[compare]]
metric = "nearest"
published = { far = 100, lite = [50, 60] }

[[compare]]
metric = "nearest"
best = "far"
published = { lite = 0.5 }

[[compare]]
metric = "nearest"
best = "far"
ratio = true
published = { lite = 1.5 }

[[timing]]
published = { far = 1700, lite = [4.5, 5.5] }
algorithms = ["far", "lite", "all"]
per_alternative.all = 2

[[timing]]
algorithms = ["all", "lite"]
twins = ["all"]

[[remark]]
kind = "unmatched"
algorithms = ["far"]
metrics = ["nearest"]
text = "Nobody knows why."

[[figure]]
name = "times"
kind = "times"

[[figure]]
name = "curves"
metrics = ["nearest"]
"""


@pytest.fixture(scope="module")
def readings(tmp_path_factory):
    """A campaign with alternative interpretations of searches and published times."""
    folder = tmp_path_factory.mktemp("readings")
    path = folder / "readings.toml"
    text = SMALL[: SMALL.index("[[sweep]]")].replace('shape = "ragged"', "")
    path.write_text(text + READINGS)
    study = studies.load_study(path)
    campaign = studies.run(study, 30, out=folder / "out", published_cycles=4)
    return studies.Summary(campaign)


@pytest.fixture(scope="module")
def times(readings):
    return measure_times(readings.study, twins=True)


def test_other_interpretations_are_listed_beside(readings):
    rows = readings.comparisons
    listed = [(row.algorithm, row.setting.index, row.published) for row in rows]
    assert listed == [
        ("far", 0, 100),
        ("any", 0, 100),
        ("far", 1, 100),
        ("any", 1, 100),
        ("lite", 0, 50),
        ("lite", 1, 60),
        ("lite", 0, 0.5),
        ("lite", 1, 0.5),
        ("lite", 0, 1.5),
        ("lite", 1, 1.5),
    ]
    # It has its own numbers, and shares the remarks of the other.
    assert rows[1].obtained.mean > rows[0].obtained.mean
    for row in rows:
        concerned = row.algorithm != "lite" or row.best == "far"
        differs = row.agrees is False and concerned
        assert row.remarks == ((0,) if differs else ())
    assert any(row.remarks for row in rows if row.algorithm == "any")
    lite = {
        w.algorithm.name: w for w in readings.compare_twins(readings.study.settings[0])
    }
    assert lite["lite"].algorithm.twin.options["method"] == "published-lite"
    assert (lite["lite"].better, lite["lite"].worse) == (0, 0)


def test_times_are_listed_beside_the_published_ones(readings, times):
    timings, _ = times
    assert [(t.label, t.setting.index, t.published) for t in timings[:4]] == [
        ("DEP", 0, 1700),
        ("Lite", 0, 4.5),
        ("MultipleBest", 0, pytest.approx(math.nan, nan_ok=True)),
        ("MultipleBest, per alternative", 0, 2),
    ]
    assert timings[5].published == 5.5
    for timing in timings:
        assert timing.here > 0
        has_twin = timing.label in ("DEP", "Lite")
        assert timing.twin > 0 if has_twin else math.isnan(timing.twin)
    assert timings[3].here < timings[2].here

    folder = readings.campaign.folder
    written = {path.name: path for path in write_report(readings, times)}
    table = pd.read_csv(written["times.csv"])
    every = [timing for table in times for timing in table]
    assert list(table["slotkern_ms"]) == pytest.approx([t.here for t in every])
    text = written["report.txt"].read_text()
    assert "They are not compared." in text
    at = text.index("Times in ms")
    assert text.index("1700", at) < text.index("MultipleBest, per alternative", at)
    # Times are not part of the data set.
    columns = set(pd.read_parquet(folder / "cycles").columns)
    assert columns == {
        *("setting", "cycle", "algorithm", "slots", "alternatives"),
        *readings.study.metrics,
    }


def test_times_of_searches_that_take_as_long_are_both_seen(readings, times):
    record = next(f for f in readings.study.figures if f.get("kind") == "times")
    figure = figures._times(record, readings.study, times)
    styles = [line.get_linestyle() for line in figure.axes[0].lines]
    assert len(styles) > 1
    assert all(one != two for one, two in itertools.pairwise(styles))


def test_times_without_the_papers_algorithms(readings):
    for timings in measure_times(readings.study, twins=False, cycles=2):
        assert all(math.isnan(timing.twin) for timing in timings)


def test_the_papers_schemes_are_timed_where_a_table_names_them(readings, times):
    _, timings = times
    for timing in timings:
        assert (timing.twin > 0) == (timing.label == "MultipleBest")
    stream = io.StringIO()
    print_report(readings, Console(file=stream, width=150), times)
    text = stream.getvalue()
    tables = text[text.index("Times in ms") :]
    assert tables.count("growth") == 2


def test_growth_is_the_slope_of_the_logarithms():
    x = np.array([50.0, 100, 200, 400])
    assert growth_exponent(x, 3e-6 * x**1.5) == pytest.approx(1.5)
    noisy = 3e-6 * x**2 * np.array([1.1, 0.9, 0.9, 1.1])
    fitted = np.polynomial.polynomial.polyfit(np.log(x), np.log(noisy), 1)[1]
    assert growth_exponent(x, noisy) == pytest.approx(fitted)
    for unknown in (x - 50, x * math.nan, x[:1]):
        assert math.isnan(growth_exponent(x[: len(unknown)], unknown))


@pytest.mark.parametrize("wrong", ["find_window", "find_alternatives"])
def test_a_different_answer_stops_the_times(tmp_path, monkeypatch, wrong):
    """Timed results are compared: here the published search has a smaller budget."""
    path = tmp_path / "study.toml"
    path.write_text(
        SMALL[: SMALL.index("[[sweep]]")]
        + 'csa = { criterion = "first", alternatives = true }\n'
        + '[[timing]]\nalgorithms = ["cost", "csa"]\ntwins = ["cost", "csa"]\n'
    )
    path.write_text(
        path.read_text().replace("seed = 7", "seed = 7\npublished_cycles = 1")
    )
    study = studies.load_study(path)
    assert measure_times(study, twins=True, cycles=1)
    search = getattr(sk, wrong)

    def poor(slots, request, criterion, **options):
        if options["method"] == "published":
            request = request.replace(budget=request.budget / 10)
        return search(slots, request, criterion, **options)

    monkeypatch.setattr(sk, wrong, poor)
    with pytest.raises(AssertionError, match=r"published and .* differ"):
        measure_times(study, twins=True, cycles=1)


def test_ratios_are_of_the_means(readings):
    """Advantages as ratios have the error of a ratio of means."""
    rows = [row for row in readings.comparisons if row.ratio]
    assert [row.percent for row in rows] == [False, False]
    for row in rows:
        far, lite = (
            readings.estimate(row.setting, name, "nearest").mean
            for name in ("far", "lite")
        )
        assert row.obtained.mean == pytest.approx(far / lite)
        assert 0 < row.obtained.error < row.obtained.mean
        assert row.label.startswith(
            "distance to the nearest task, DEP against Lite, times"
        )
    # The ratio to a mean of 0 is infinite.
    nothing = _as_ratio(Estimate(1.0, 0.0, 3))
    assert (nothing.mean, nothing.count) == (math.inf, 3)


def test_neighbours_are_drawn(readings, tmp_path):
    record = {"name": "beside", "kind": "neighbours", "algorithms": ["far", "any"]}
    figure = experiment_of("cycle").draw("neighbours", readings.study, record)
    setting = readings.study.settings[0]
    chosen = [a for a in setting.exact if a.name in ("far", "any")]
    _, found = windows_of_cycle(setting, chosen, 0)
    for panel, algorithm, window in zip(figure.axes, chosen, found, strict=True):
        title = panel.get_title(loc="left")
        assert title.startswith(f"{algorithm.label}: nearest task")
        assert f"{window.value:.4g} away" in title


def test_figures_mark_published_values(readings):
    """Diamonds mark printed values, hollow ones those derived from percentages."""
    rows = readings.comparisons
    marks = figures._marks([row for row in rows if row.metric == "nearest"], True)
    assert marks["nodes-0", "any"] == (100, True)
    assert marks["nodes-1", "lite"] == (60, True)
    derived = figures._marks([row for row in rows if row.algorithm != "lite"], True)
    assert ("nodes-0", "lite") not in derived
    kept = [row for row in rows if row.algorithm != "lite" or row.percent]
    assert figures._marks(kept, True)["nodes-0", "lite"] == (50, False)
    (panel,) = figures._numbers(
        {"name": "curves", "metrics": ["nearest"]}, readings
    ).axes
    assert panel.get_ylabel() == "distance to the nearest task\n(time units)"
    assert panel.get_xlabel() == "nodes"
    shown = [line for line in panel.lines if line.get_label() == "published"]
    points = {(x, y) for line in shown for x, y in line.get_xydata()}
    assert points == {(15, 100), (20, 100), (15, 50), (20, 60)}


def test_numbers_do_not_overlap_the_diamonds(small, tmp_path):
    summary = studies.Summary(studies.run(small, 30, out=tmp_path / "out"))
    record = {"name": "bars", "metrics": ["cost"]}
    (panel,) = figures._numbers(record, summary).axes
    got = [summary.estimate(small.settings[0], a, "cost") for a in ("first", "cost")]
    heights = {text.get_text(): text.xy[1] for text in panel.texts}
    tips = [estimate.mean + 2 * estimate.error for estimate in got]
    assert heights[f"{got[0].mean:.4g}"] == pytest.approx(tips[0])
    assert heights[f"{got[1].mean:.4g}"] in (pytest.approx(tips[1]), 180.0)


# --- the papers' own algorithms ---------------------------------------------------


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
    (worth,) = summary.compare_twins(study.settings[0])
    assert worth.metric == "cost"
    assert worth.exact.mean == pytest.approx(cost.mean())
    assert worth.twin.mean == pytest.approx(twin.mean())
    assert (worth.better, worth.worse, worth.only) == (0, 0, 0)
    (row,) = summary.comparisons
    assert row.twin.mean == pytest.approx(twin.mean())
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=150))
    assert (
        "exact searches and the published ones, on the first 12 cycles"
        in stream.getvalue()
    )


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
    (worth,) = summary.compare_twins(setting)
    assert worth.exact.mean == pytest.approx(table["cost"][:50].mean())


def test_twins_that_find_less_are_counted(tmp_path):
    """A better window is a gain; one that only the exact search found is counted."""
    path = tmp_path / "twins.toml"
    path.write_text(TWINS)
    study = studies.load_study(path)
    campaign = studies.run(study, 4, out=tmp_path / "out", published_cycles=4)
    changes = [(1, 7.0), (2, np.nan), (3, -2.0)]
    for cycle, added in changes:
        name = f"base.published-{cycle:07d}-{cycle + 1:07d}.parquet"
        file = tmp_path / "out" / "cycles" / name
        table = parquet.read_table(file)
        cost = pa.array(table["cost"].to_numpy() + added)
        at = table.schema.get_field_index("cost")
        parquet.write_table(table.set_column(at, "cost", cost), file)
    (worth,) = studies.Summary(campaign).compare_twins(study.settings[0])
    assert (worth.better, worth.worse, worth.only) == (1, 1, 1)
    assert worth.gain.mean == pytest.approx((0 + 7 - 2) / 3)
    assert worth.gain.missing == 1


def test_published_algorithms_that_do_not_exist_are_refused_at_once(tmp_path):
    path = tmp_path / "none.toml"
    text = TWINS.replace('criterion = "cost", twin', 'criterion = "dependable", twin')
    path.write_text(text)
    study = studies.load_study(path)
    with pytest.raises(ValueError, match=r"algorithms\.cost\.published: "):
        studies.run(study, 20, out=tmp_path / "out", published_cycles=3)
    assert not (tmp_path / "out").exists()
    studies.run(study, 20, out=tmp_path / "out")  # without them it runs


# --- text of a study's author --------------------------------------------------------

ODD = "best [/x] one [s] [bold]b[/] :smile: $x$ a_b \\n"


def odd_study(tmp_path):
    """The small study with text that rich or matplotlib would interpret."""
    label = ODD.replace("\\", "\\\\")
    text = SMALL.replace('label = "AMP"', f'label = "{label}"')
    text = text.replace('label = "minCost"', 'label = "_cost $y$"')
    text = text.replace("Nobody knows why.", f"{label} why.")
    text = text.replace(
        "seed = 7", f'seed = 7\ntitle = "{label}"\nreference = "{label}"'
    )
    figure = f'name = "curves"\ntitle = "{label}"'
    text = text.replace('name = "curves"', figure)
    timing = '\n[[timing]]\nalgorithms = ["first", "cost"]\n'
    gantt = (
        '[[figure]]\nname = "gantt"\nkind = "gantt"\nalgorithms = ["first", "cost"]\n'
    )
    times = '[[figure]]\nname = "times"\nkind = "times"\n'
    path = tmp_path / "odd.toml"
    path.write_text(text + timing + gantt + times, encoding="utf-8")
    return studies.load_study(path)


def test_text_of_the_author_is_printed_verbatim(tmp_path):
    summary = studies.Summary(studies.run(odd_study(tmp_path), 20, out=tmp_path / "o"))
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=400))
    lines = stream.getvalue().splitlines()
    assert lines[0] == ODD
    assert lines[1] == ODD
    assert any(f"cost, {ODD}" in line for line in lines)
    assert any(line.startswith(f"[1] {ODD} why.") for line in lines)
    means = next(i for i, line in enumerate(lines) if "algorithm" in line.split())
    assert any(line.strip().startswith(f"{ODD} ") for line in lines[means:])


def test_text_of_the_author_is_drawn_verbatim(tmp_path, monkeypatch):
    from matplotlib.text import Text

    from slotkern.plotting import style as plot

    drawn = {}

    def look(figure, path):
        drawn[path.stem] = [text.get_text() for text in figure.findobj(Text)]
        plot.save_figure(figure, path)

    monkeypatch.setattr(figures, "save_figure", look)
    study = odd_study(tmp_path)
    summary = studies.Summary(studies.run(study, 20, out=tmp_path / "o"))
    assert len(write_report(summary, measure_times(study, twins=False))) == 4 + 4
    shown = ODD.replace("$", r"\$")
    assert shown in drawn["bars"]  # the title of the study, and a tick
    assert drawn["bars"].count(shown) >= 2
    assert shown in drawn["curves"]
    # A label that begins with an underscore is not hidden.
    assert any(t.startswith(r" _cost \$y\$") for t in drawn["curves"])
    assert any(t.startswith(shown + ":") for t in drawn["gantt"])
    assert shown in drawn["times"]


def test_a_grid_over_two_keys_called_nodes_distinguishes_them(tmp_path):
    path = tmp_path / "study.toml"
    grid = "environment.nodes = [10, 20]\njob.nodes = [2, 3]\n"
    text = SMALL[: SMALL.index("[[sweep]]")]
    path.write_text(f"{text}[grid]\n{grid}job.budget = [300]\n")
    study = studies.load_study(path)
    labels = [setting.label for setting in study.settings]
    assert labels[0] == "environment.nodes = 10, job.nodes = 2, budget = 300"
    assert len(set(labels)) == 4
    summary = studies.Summary(studies.run(study, 5, out=tmp_path / "out"))
    stream = io.StringIO()
    print_report(summary, Console(file=stream, width=150))
    for label in labels:
        assert f"{label}: means" in stream.getvalue()
    assert write_report(summary)[-1].name == "base.png"

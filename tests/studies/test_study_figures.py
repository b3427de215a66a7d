"""Texts of reports and figures: missing results, settings, numbers of cycles."""

import io

from rich.console import Console
from small_study import TWINS, load_small

from slotkern import studies
from slotkern.studies import figures
from slotkern.studies.experiment import experiment_of
from slotkern.studies.report import _sheets, print_report, write_report
from slotkern.studies.sheets import Sheet

NOWHERE = """
name = "nowhere"
metrics = ["cost"]

[environment]
nodes = 20

[job]
nodes = 4000
volume = 600

[algorithms]
a = { label = "cheapest", criterion = "cost" }
b = { label = "first to end", criterion = "finish" }
"""


def test_a_study_without_results_reports_it(tmp_path):
    study = load_small(tmp_path, NOWHERE)
    summary = studies.Summary(studies.run(study, 3, out=tmp_path))
    write_report(summary)
    (panel,) = figures._numbers(figures._default(summary)[0], summary).axes
    assert [text.get_text() for text in panel.texts] == ["found in no cycle"]


def test_claims_without_a_paper_are_not_ascribed_to_one(tmp_path):
    claim = '[[claim]]\ntext = "t"\nmetric = "cost"\nalgorithm = "a"\n'
    text = NOWHERE + claim + 'is = "below"\nat = 1\n'
    for source in (
        text,
        text.replace('name = "nowhere"', 'name = "x"\nreference = "y"'),
    ):
        study = load_small(tmp_path, source)
        out = tmp_path / study.name
        stream = io.StringIO()
        summary = studies.Summary(studies.run(study, 3, out=out))
        print_report(summary, Console(file=stream, width=200))
        assert ("Claims of the paper" in stream.getvalue()) is bool(study.reference)
        assert "\nClaims\n" in stream.getvalue() or study.reference
        assert "papers' own" not in stream.getvalue()
        assert "open t: none" in stream.getvalue()


def test_a_chart_names_its_setting_and_searches_without_a_window(tmp_path):
    text = NOWHERE.replace("nodes = 4000\n", "") + "[grid]\njob.nodes = [4000, 2]\n"
    study = load_small(tmp_path, text)
    record = {"name": "x", "kind": "gantt", "cycle": 2, "algorithms": ["a", "b"]}
    figure = experiment_of("cycle").draw("gantt", study, record)
    title = figure.axes[0].get_title(loc="left").replace("\n", " ")
    none = "(no window in cycle 2: cheapest, first to end)"
    assert title == f"nowhere: nodes = 4000 {none}"


def test_a_legend_is_not_wider_than_its_figure(tmp_path):
    more = "".join(
        f'{k} = {{ label = "{"a long label " * 3}{k}", criterion = "cost" }}\n'
        for k in "cdefg"
    )
    text = NOWHERE.replace("nodes = 4000\n", "") + more
    text += "[grid]\njob.nodes = [2, 3]\nenvironment.nodes = [20, 30]\n"
    study = load_small(tmp_path, text)
    summary = studies.Summary(studies.run(study, 3, out=tmp_path))
    figure = figures._numbers(figures._default(summary)[0], summary)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    printed = [text.get_text() for text in legend.get_texts()]
    assert printed.count("two standard errors") == 1
    assert sum("errors" in words for words in printed) == 1
    assert figure.axes[0].get_xticks().tolist() == [2, 3]


def test_fewer_cycles_are_printed_beside_the_others(tmp_path):
    text = TWINS.replace("twin = true", 'method = "published"')
    text = "published_cycles = 2\n" + text
    study = load_small(tmp_path, text)
    summary = studies.Summary(studies.run(study, 8, published_cycles=2, out=tmp_path))
    few = [a.label for a in study.settings[0].published]
    assert few
    figure = figures._numbers(figures._default(summary)[0], summary)
    ticks = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert set(few) == {t.partition("\n")[0] for t in ticks if t.endswith("2 cycles")}
    sheet = next(s for s in _sheets(summary) if s.name == "means-base")
    cells = {row[0]: row[-1] for row in sheet.rows}
    assert sheet.headings[-1] == "cycles"
    assert {label for label, cycles in cells.items() if cycles == "2"} == set(few)


def test_latex_minus_signs_are_not_hyphens():
    sheet = Sheet(
        "s", "t", "lrr", ["a-1", "b", "c"], [["x-1", "-7.27 (-1.2%)", "1e-9"]]
    )
    assert r"x-1 & $-$7.27 ($-$1.2\%) & 1e-9 \\" in sheet.to_latex()


def test_curves_of_several_metrics_share_a_panel_that_shows_all(tmp_path):
    """The panel covers all curves; its axis has a divided number and a title."""
    text = """
name = "together"
metrics = ["runtime", "cost"]
[environment]
nodes = 20
[job]
nodes = 2
volume = 200
[algorithms]
a = { criterion = "cost" }
[[sweep]]
name = "base"
grid.job.nodes = [2, 4]
[[figure]]
name = "one"
metrics = ["runtime", "cost"]
together = true
divide = 20
axis = "n / m"
"""
    study = load_small(tmp_path, text)
    summary = studies.Summary(studies.run(study, 3, out=tmp_path))
    (panel,) = figures._numbers(study.figures[0], summary).axes
    low, high = panel.get_ylim()
    cost = summary.estimate(study.settings[1], "a", "cost").mean
    assert low <= 0
    assert high > cost
    assert panel.get_xlabel() == "n / m"
    assert panel.get_lines()[0].get_xdata().tolist() == [0.1, 0.2]

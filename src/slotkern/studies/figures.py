"""The figures of a study: bars, curves, and the Gantt charts of one cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slotkern.studies.cycle import windows_of_cycle
from slotkern.studies.study import Setting
from slotkern.studies.summary import Comparison, Summary, metric_label

__all__ = ["draw_figures"]

_BAR, _MARK = "#7f9fc6", "#c0392b"


def draw_figures(summary: Summary, comparisons: Sequence[Comparison]) -> list[Path]:
    """Draw the study's figures (PNG) into the campaign's folder.

    A study that names no figures gets one for each sweep, with all its metrics.

    Returns
    -------
    list of Path
        The files.
    """
    from matplotlib import rc_context

    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.axisbelow": True,
        "legend.frameon": False,
    }
    paths = []
    with rc_context(style):
        for record in summary.study.figures or _default(summary):
            path = summary.campaign.folder / f"{record['name']}.png"
            kind = record.get("kind", "numbers")
            if kind == "numbers":
                figure = _numbers(record, summary, comparisons)
            else:
                figure = _chart(record, summary, windows=kind == "gantt")
            figure.savefig(path, dpi=150)
            paths.append(path)
    return paths


def _default(summary: Summary) -> list[Mapping[str, Any]]:
    return [
        {"name": sweep, "sweep": sweep, "metrics": list(summary.study.metrics)}
        for sweep in summary.study.sweeps
    ]


def _numbers(
    record: Mapping[str, Any], summary: Summary, comparisons: Sequence[Comparison]
) -> Any:
    """Return a figure with one panel for each metric: bars, or curves along a sweep."""
    from matplotlib.figure import Figure

    sweeps = summary.study.sweeps
    settings = sweeps[record.get("sweep", next(iter(sweeps)))]
    names = record.get("algorithms") or [a.name for a in settings[0].algorithms]
    metrics = record["metrics"]
    columns = min(3, len(metrics))
    rows = -(-len(metrics) // columns)
    figure = Figure(
        figsize=(1.2 + 3.4 * columns, 0.6 + 3.0 * rows), layout="constrained"
    )
    figure.suptitle(record.get("title", summary.study.title))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, metric in zip(panels, metrics, strict=False):
        marks = {
            (row.setting.name, row.algorithm): row.published
            for row in comparisons
            if row.metric == metric and row.published is not None and not row.percent
        }
        if len(settings) == 1:
            _bars(panel, settings[0], names, metric, summary, marks)
        else:
            _curves(panel, settings, names, metric, summary, marks)
        panel.set_title(metric_label(metric), fontsize=9)
    for panel in panels[len(metrics) :]:
        panel.set_axis_off()
    return figure


def _bars(
    panel: Any,
    setting: Setting,
    names: Sequence[str],
    metric: str,
    summary: Summary,
    marks: Mapping[tuple[str, str], float],
) -> None:
    """Draw one bar for each algorithm, with error bar and published value."""
    labels = {a.name: a.label for a in setting.algorithms}
    got = [summary.estimate(setting, name, metric) for name in names]
    at = range(len(names))
    error = [2 * estimate.error for estimate in got]
    panel.bar(at, [e.mean for e in got], yerr=error, color=_BAR, capsize=3, width=0.7)
    for x, estimate, name in zip(at, got, names, strict=True):
        if estimate.count:
            tip = estimate.mean + (2 * estimate.error if estimate.count > 1 else 0)
            panel.annotate(
                f"{estimate.mean:.4g}",
                (x, max(tip, marks.get((setting.name, name), tip))),
                (0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=7,
            )
    told = [
        (x, marks[setting.name, name])
        for x, name in zip(at, names, strict=True)
        if (setting.name, name) in marks
    ]
    if told:
        panel.plot(*zip(*told, strict=True), "D", color=_MARK, ms=5, label="published")
        panel.legend(fontsize=7)
    panel.set_xticks(at, [labels[name] for name in names], rotation=35, ha="right")
    panel.grid(visible=False, axis="x")
    panel.margins(y=0.12)


def _curves(
    panel: Any,
    settings: Sequence[Setting],
    names: Sequence[str],
    metric: str,
    summary: Summary,
    marks: Mapping[tuple[str, str], float],
) -> None:
    """Draw curves along the sweep's first parameter: one per rest and algorithm."""
    labels = {a.name: a.label for a in settings[0].algorithms}
    lines: dict[tuple[Any, ...], list[Setting]] = {}
    for setting in settings:
        lines.setdefault(tuple(map(str, list(setting.values.values())[1:])), []).append(
            setting
        )
    path = next(iter(settings[0].values))
    values = list(dict.fromkeys(str(s.values[path]) for s in settings))
    marked = False
    numeric = all(isinstance(s.values[path], int | float) for s in settings)
    for name in names if metric != "slots" else names[:1]:
        for rest, line in lines.items():
            x = [
                s.values[path] if numeric else values.index(str(s.values[path]))
                for s in line
            ]
            got = [summary.estimate(setting, name, metric) for setting in line]
            words = [labels[name]] if metric != "slots" else []
            panel.errorbar(
                x,
                [estimate.mean for estimate in got],
                [2 * estimate.error for estimate in got],
                marker="o",
                ms=4,
                capsize=3,
                label=", ".join([*words, *rest]) or None,
            )
            told = [
                (at, marks[setting.name, name])
                for at, setting in zip(x, line, strict=True)
                if (setting.name, name) in marks
            ]
            if told:
                label = None if marked else "published"
                marked = True
                where = zip(*told, strict=True)
                panel.plot(*where, "D", color=_MARK, ms=8, mfc="none", label=label)
    if not numeric:
        panel.set_xticks(range(len(values)), values)
    panel.set_xlabel(path.rpartition(".")[2].replace("_", " "))
    panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
    if panel.get_legend_handles_labels()[1]:
        panel.legend(fontsize=7)


def _chart(record: Mapping[str, Any], summary: Summary, *, windows: bool) -> Any:
    """Return the Gantt chart of one cycle, with the windows of some algorithms."""
    from slotkern.plot import plot_gantt

    sweeps = summary.study.sweeps
    setting = sweeps[record.get("sweep", next(iter(sweeps)))][0]
    names = record.get("algorithms", []) if windows else []
    chosen = [a for a in setting.algorithms if a.name in names and not a.alternatives]
    environment, found = windows_of_cycle(
        setting, chosen, summary.study.seed, record.get("cycle", 0)
    )
    return plot_gantt(
        environment.slots,
        {a.label: w for a, w in zip(chosen, found, strict=True) if w is not None},
        tasks=environment.tasks,
        horizon=environment.horizon,
        title=record.get("title", summary.study.title),
    )

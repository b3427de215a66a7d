"""The figures of a study: bars, curves along a sweep, and plots of the experiment."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slotkern.files.atomic import make_folder
from slotkern.foundation.extras import extra
from slotkern.plotting.layout import LETTER
from slotkern.plotting.style import (
    FAINT,
    SUFFIXES,
    escape_label,
    new_figure,
    save_figure,
)
from slotkern.studies.experiment import Metric, describe, experiment_of
from slotkern.studies.study import Setting, Study, short_names
from slotkern.studies.summary import Comparison, Summary
from slotkern.studies.times import Timing

__all__ = ["draw_figures", "draw_times"]

_BAR, _MARK = "#7f9fc6", "#c0392b"
#: Style and legend of error bars.
_ERRORS: dict[str, Any] = {
    **{"fmt": "none", "ecolor": "black", "elinewidth": 1, "capsize": 3},
    "label": "two standard errors",
}
#: Line styles of the second varied parameter; colours distinguish algorithms.
_LINES = ("-", "--", ":", "-.")
#: Width of a legend entry without its text, in inches.
_HANDLE = 0.55
#: The largest number of values that are all labelled on an axis.
_TICKS = 8
#: The number of letters per line of a tick label; if all labels together are longer,
#: they are rotated.
_WORDS = 24

#: Published values by setting and algorithm, and whether the paper prints them.
Marks = dict[tuple[str, str], tuple[float, bool]]


def draw_figures(
    summary: Summary, times: Sequence[Sequence[Timing]] = ()
) -> list[Path]:
    """Draw the study's figures into the campaign's folder.

    A study without figures gets one for each sweep, with all its metrics.

    Returns
    -------
    list of Path
        The files written.
    """

    def draw(record: Mapping[str, Any]) -> Any:
        kind = record.get("kind", "numbers")
        if kind == "numbers":
            return _numbers(record, summary)
        if kind == "times":
            return _times(record, summary.study, times)
        study = summary.study
        return experiment_of(study.experiment).draw(kind, study, record)

    records = summary.study.figures or _default(summary)
    if not times:
        records = [record for record in records if record.get("kind") != "times"]
    return _save(records, draw, summary.campaign.folder, summary.study.formats)


def draw_times(
    study: Study, times: Sequence[Sequence[Timing]], folder: Path
) -> list[Path]:
    """Draw the study's figures of times (PNG) into a folder.

    Parameters
    ----------
    study : Study
        The study; its ``[[figure]]`` tables of the kind ``times`` are drawn.
    times : list of list of Timing
        The result of `measure_times` for it.
    folder : Path
        The output folder; created if missing.

    Returns
    -------
    list of Path
        The files written.
    """
    records = [record for record in study.figures if record.get("kind") == "times"]
    make_folder(folder)

    def draw(record: Mapping[str, Any]) -> Any:
        return _times(record, study, times)

    return _save(records, draw, folder, study.formats)


def _save(
    records: Iterable[Mapping[str, Any]],
    draw: Callable[[Mapping[str, Any]], Any],
    folder: Path,
    formats: Sequence[str],
) -> list[Path]:
    """Draw each figure in the common style and save it; returns the files."""
    with extra():
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
    paths: list[Path] = []
    pictures = [suffix for suffix in SUFFIXES if suffix[1:] in formats]
    if not pictures:
        return paths
    with rc_context(style):
        for record in records:
            figure = draw(record)
            for suffix in pictures:
                paths.append(folder / f"{record['name']}{suffix}")
                save_figure(figure, paths[-1])
    return paths


def _default(summary: Summary) -> list[Mapping[str, Any]]:
    return [
        {
            "name": sweep,
            "sweep": sweep,
            "metrics": [m for m in settings[0].metrics if m in summary.study.metrics],
        }
        for sweep, settings in summary.study.sweeps.items()
    ]


def _numbers(record: Mapping[str, Any], summary: Summary) -> Any:
    """Draw a figure with one panel per metric: bars, or curves along a sweep."""
    settings = summary.study.sweep_of(record)
    names = record.get("algorithms") or [a.name for a in settings[0].algorithms]
    metrics = record["metrics"]
    together = record.get("together", False)
    figure, panels = _panels(record, summary.study, 1 if together else len(metrics))
    if together:
        panels = panels * len(metrics)
        figure.set_size_inches(6.4, 4.4)
    several = len(metrics) if together else 1
    for number, (panel, metric) in enumerate(zip(panels, metrics, strict=True)):
        known = describe(summary.study, metric)
        rows = [row for row in summary.comparisons if row.metric == metric]
        marks = _marks(rows, known.more_is_better)
        if len(settings) == 1:
            _bars(panel, settings[0], names, metric, summary, marks)
        else:
            first = number * len(names) if several > 1 else None
            _curves(panel, settings, names, known, summary, marks, record, first)
        panel.set_ylabel(_axis_label(known))
        estimates = (
            summary.estimate(each, name, metric) for each in settings for name in names
        )
        if not any(estimate.count for estimate in estimates):
            nothing = {"ha": "center", "va": "center", "color": FAINT}
            panel.text(
                0.5, 0.5, "found in no cycle", transform=panel.transAxes, **nothing
            )
    if together:
        if not set(metrics) & set(record.get("zoom", ())):
            panels[0].autoscale(axis="y")  # over all curves, not only the first
            panels[0].set_ylim(bottom=min(0.0, panels[0].get_ylim()[0]))
        units = dict.fromkeys(describe(summary.study, m).unit for m in metrics)
        panels[0].set_ylabel(escape_label(", ".join(filter(None, units))))
    _add_legend(figure, panels)
    return figure


def _panels(
    record: Mapping[str, Any], study: Study, count: int, columns: int = 3
) -> tuple[Any, list[Any]]:
    """Make a figure with its title and this many panels, at most `columns` per row."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = new_figure(1.2 + 3.4 * columns, 0.9 + 3.0 * rows, dpi=150)
    if study.titles:
        figure.suptitle(escape_label(record.get("title", study.title)))
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for panel in panels[count:]:
        panel.set_axis_off()
    return figure, panels[:count]


def _marks(rows: Sequence[Comparison], more_is_better: bool) -> Marks:
    """Return published values by setting and algorithm, and whether they are printed.

    Values that are not printed are derived from a printed advantage over another
    algorithm.
    """
    marks: Marks = {}
    for row in rows:
        if row.published is not None and row.best is None:
            marks[row.setting.name, row.algorithm] = row.published, True
    printed = dict(marks)
    for row in rows:
        known = printed.get((row.setting.name, row.best or ""))
        here = row.setting.name, row.algorithm
        if known is not None and row.published is not None and here not in marks:
            share = 1 / row.published if row.ratio else 1 - row.published
            value = known[0] * share if more_is_better else known[0] / share
            marks[here] = value, False
    return marks


def _draw_marks(panel: Any, at: Mapping[tuple[str, str], float], marks: Marks) -> None:
    """Draw published values: filled diamonds, or hollow ones if they are derived."""
    for printed, label in ((True, "published"), (False, "from a published percentage")):
        points = [(x, marks[key][0]) for key, x in at.items() if key in marks]
        matching = [marks[key][1] is printed for key in at if key in marks]
        chosen = [point for point, keep in zip(points, matching, strict=True) if keep]
        if chosen:
            face = _MARK if printed else "white"
            style = {"mec": _MARK, "mfc": face, "ms": 5, "clip_on": False, "zorder": 4}
            panel.plot(*zip(*chosen, strict=True), "D", label=label, **style)


def _bars(
    panel: Any,
    setting: Setting,
    names: Sequence[str],
    metric: str,
    summary: Summary,
    marks: Marks,
) -> None:
    """Draw one bar for each algorithm, with error bar and published value."""
    labels = {a.name: escape_label(a.label) for a in setting.algorithms}
    got = [summary.estimate(setting, name, metric) for name in names]
    ran = {n: e.count + e.missing for n, e in zip(names, got, strict=True)}
    for name, cycles in ran.items():  # published algorithms ran on the first cycles
        if cycles < max(ran.values()):
            labels[name] += f"\n{cycles:,} cycles"
    at = range(len(names))
    tips = [e.mean + (2 * e.error if e.count > 1 else 0) for e in got]
    panel.bar(at, [e.mean for e in got], color=_BAR, width=0.7, label="obtained")
    error = [2 * estimate.error for estimate in got]
    panel.errorbar(at, [estimate.mean for estimate in got], error, **_ERRORS)
    _draw_marks(panel, {(setting.name, n): x for x, n in enumerate(names)}, marks)
    known = [*filter(math.isfinite, tips), *(v for v, _ in marks.values())]
    tallest = max(known, default=0.0)
    for x, estimate, tip, name in zip(at, got, tips, names, strict=True):
        if not estimate.count:
            continue
        mark, _ = marks.get((setting.name, name), (tip, True))
        # Put the number above the bar, or above a diamond that would cover it.
        covered = tip - 0.03 * tallest <= mark <= tip + 0.1 * tallest
        panel.annotate(
            # A value that is tiny compared with the other bars may be a rounding error.
            f"{estimate.mean:.4g}" if abs(estimate.mean) >= 1e-3 * tallest else "0",
            (x, mark if covered else tip),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=7,
        )
    ticks = [labels[name] for name in names]
    panel.set_xticks(at, ticks, rotation=35, ha="right", rotation_mode="anchor")
    panel.grid(visible=False, axis="x")
    panel.margins(y=0.12)


def _curves(
    panel: Any,
    settings: Sequence[Setting],
    names: Sequence[str],
    metric: Metric,
    summary: Summary,
    marks: Marks,
    record: Mapping[str, Any],
    first: int | None,
) -> None:
    """Draw curves along the sweep's first parameter, one per remaining combination.

    `first` is the colour of the first curve if several metrics share the panel (the
    legend then names the metric); otherwise None.
    """
    labels = {a.name: a.label for a in settings[0].algorithms}
    called = short_names(settings[0].values)
    lines: dict[tuple[Any, ...], list[int]] = {}
    for index, setting in enumerate(settings):
        rest = tuple(f"{called[p]} = {v}" for p, v in list(setting.values.items())[1:])
        lines.setdefault(rest, []).append(index)
    x = _along(panel, settings, record.get("divide", 1))
    if "axis" in record:
        panel.set_xlabel(escape_label(record["axis"]))
    chosen = names[:1] if metric.shared else names
    for colour, name in enumerate(chosen, first or 0):
        for style, (rest, line) in zip(itertools.cycle(_LINES), lines.items()):
            got = [
                summary.estimate(settings[index], name, metric.name) for index in line
            ]
            words = ["obtained" if metric.shared else labels[name]]
            if first is not None:
                words = [metric.label] if len(names) == 1 else [*words, metric.label]
            panel.errorbar(
                [x[index] for index in line],
                [estimate.mean for estimate in got],
                [2 * estimate.error for estimate in got],
                color=f"C{colour}",
                linestyle=style,
                marker="o",
                ms=4,
                capsize=3,
                label=escape_label(", ".join([*words, *rest])),
            )
    panel.errorbar([], [], [], **_ERRORS)
    at = {(s.name, n): x for s, x in zip(settings, x, strict=True) for n in names}
    _draw_marks(panel, at, marks)
    if metric.name not in record.get("zoom", ()):
        panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))


def _along(panel: Any, settings: Sequence[Setting], divide: float = 1) -> list[float]:
    """Return the settings' positions along their first parameter; label the axis.

    Numbers are divided by `divide`.
    """
    with extra():
        from matplotlib.ticker import MaxNLocator

    path = next(iter(settings[0].values), "")
    values = [setting.values.get(path, setting.name) for setting in settings]
    words = short_names(settings[0].values).get(path, "").replace("_", " ")
    panel.set_xlabel(escape_label(words.replace(".", ": ")))
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        whole = divide == 1 and all(isinstance(value, int) for value in values)
        locator = panel.xaxis.get_major_locator()
        if isinstance(locator, MaxNLocator):  # not if an earlier curve set the ticks
            locator.set_params(integer=whole)
        numbers = [value / divide for value in values]
        places = sorted(set(numbers))
        gaps = [b - a for a, b in itertools.pairwise(places)]
        if (
            len(places) <= _TICKS
            and min(gaps, default=1) >= (places[-1] - places[0]) / 9
        ):
            panel.set_xticks(places, map("{:g}".format, places))
        return numbers
    ticks = list(dict.fromkeys(map(str, values)))
    labels = [escape_label(textwrap.fill(tick, _WORDS)) for tick in ticks]
    panel.set_xticks(range(len(ticks)), labels)
    if sum(min(len(tick), _WORDS) for tick in ticks) > _WORDS:  # else they overlap
        panel.tick_params(axis="x", labelrotation=35)
        for label in panel.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    return [float(ticks.index(str(value))) for value in values]


def _times(
    record: Mapping[str, Any], study: Study, times: Sequence[Sequence[Timing]]
) -> Any:
    """Draw the times along a sweep: published, and on this machine."""
    settings = study.sweep_of(record)
    timings = next(table for table in times if table[0].setting is settings[0])
    whole = [timing for timing in timings if not timing.per_alternative]
    sides = {
        "published (the paper's machine)": [t.published for t in whole],
        "slotkern (this machine)": [t.here for t in whole],
        "the paper's algorithms (this machine)": [t.twin for t in whole],
    }
    sides = {k: v for k, v in sides.items() if not all(map(math.isnan, v))}
    figure, panels = _panels(record, study, 2 * len(sides), columns=len(sides))
    for column, (title, took) in enumerate(sides.items()):
        linear, log = panels[column], panels[len(sides) + column]
        points = _times_by_label(whole, took)
        apart = _apart(points)
        where = zip((s.name for s in settings), _along(linear, settings), strict=True)
        x = dict(where)
        for index, (label, curve) in enumerate(points.items()):
            style: dict[str, Any] = {"marker": "o", "ms": 4, "color": f"C{index}"}
            # The gaps of the dashes show a curve that lies below.
            style |= {"linestyle": _LINES[index % 2], "label": escape_label(label)}
            along = [x[name] for name in curve]
            for panel in (log,) if label == apart else (linear, log):
                panel.plot(along, list(curve.values()), **style)
        without = f"\nwithout {escape_label(apart)}" if apart else ""
        linear.set_title(title + without, fontsize=9)
        linear.set_ylim(bottom=0)
        _along(log, settings)
        log.set_yscale("log")
        if min(x.values()) > 0:
            log.set_xscale("log")
            places = _log_ticks(sorted(set(x.values())))
            log.set_xticks(places, map("{:g}".format, places))
            log.minorticks_off()
            _draw_powers(log, points, x)
        for panel in (linear, log):
            panel.set_ylabel("time of one search (ms)" if column == 0 else "")
    _add_legend(figure, panels)
    return figure


def _times_by_label(
    timings: Sequence[Timing], took: Sequence[float]
) -> dict[str, dict[str, float]]:
    """Return the measured times (ms) by search, then by the setting's name."""
    points: dict[str, dict[str, float]] = {}
    for timing, ms in zip(timings, took, strict=True):
        at = points.setdefault(timing.label, {})
        if not math.isnan(ms):
            at[timing.setting.name] = ms
    return points


def _apart(points: Mapping[str, Mapping[str, float]]) -> str | None:
    """Return the search that is so slow that a linear axis would flatten the others."""
    tops = sorted((max(v.values()), label) for label, v in points.items() if v)
    if len(tops) < 2 or tops[-1][0] < 5 * tops[-2][0]:
        return None
    return tops[-1][1]


def _log_ticks(places: Sequence[float]) -> list[float]:
    """Return the values whose labels do not overlap on a logarithmic axis."""
    least = 0.12 * math.log(places[-1] / places[0])
    kept = [places[-1]]
    for place in reversed(places[:-1]):
        if math.log(kept[-1] / place) >= least:
            kept.append(place)
    return kept[::-1]


def _draw_powers(
    panel: Any, points: Mapping[str, Mapping[str, float]], x: Mapping[str, float]
) -> None:
    """Draw faint lines of linear, quadratic and cubic growth within the panel."""
    known = [ms for times in points.values() for ms in times.values() if ms > 0]
    ends = min(x.values()), max(x.values())
    if not known or ends[0] == ends[1]:
        return
    limits = panel.get_ylim()
    low = math.sqrt(min(known) * max(known)) / 2
    for name, power, style in (
        ("linear", 1, ":"),
        ("quadratic", 2, "-."),
        ("cubic", 3, "--"),
    ):
        line = [low, low * (ends[1] / ends[0]) ** power]
        panel.plot(ends, line, style, color=FAINT, lw=1, label=name)
    panel.set_ylim(limits)


def _add_legend(figure: Any, panels: Sequence[Any]) -> None:
    """Add one legend for all panels, below them."""
    handles: dict[str, Any] = {}
    for panel in panels:
        found = zip(*panel.get_legend_handles_labels(), strict=True)
        handles |= {label: handle for handle, label in found}
    font = 7
    widest = max(map(len, handles), default=0) * LETTER * font / 72 + _HANDLE
    fit = max(1, int(figure.get_figwidth() / widest))
    rows = math.ceil(len(handles) / min(fit, 2 * len(panels) + 1))
    columns = math.ceil(len(handles) / rows) if handles else 1
    where = {"loc": "outside lower center", "ncols": columns, "fontsize": font}
    where["handlelength"] = 3  # long enough for dashes
    figure.legend(handles.values(), handles.keys(), **where)


def _axis_label(metric: Metric) -> str:
    """Return the metric's name with its unit."""
    break_ = "\n" if len(metric.label) > 20 else " "  # fit the height of the axis
    text = f"{metric.label}{break_}({metric.unit})" if metric.unit else metric.label
    return escape_label(text)

"""The report of a campaign: tables as text, CSV and LaTeX, and figures."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slotkern.files.atomic import open_atomic
from slotkern.foundation.extras import extra
from slotkern.studies.claims import verdicts
from slotkern.studies.figures import draw_figures
from slotkern.studies.sheets import Sheet
from slotkern.studies.study import Algorithm, Setting
from slotkern.studies.summary import (
    Comparison,
    Estimate,
    Median,
    Summary,
    TwinComparison,
)
from slotkern.studies.times import Timing, growth_exponent

with extra():
    from rich.console import Console
    from rich.text import Text

__all__ = ["print_report", "print_times", "write_report", "write_tables"]

# Text written by a study's author is printed as a Text object: rich would interpret
# "[...]" in a str as markup and ":name:" as an emoji.

#: The result of `measure_times`: a table of times for each ``[[timing]]``.
Times = Sequence[Sequence[Timing]]

_KINDS = {
    "unmatched": "Results that cannot be matched, and why",
    "contradiction": "Contradictions within the papers",
    "note": "Notes",
}


#: The printed verdicts of claims; "open" if the errors are too large for a decision.
_ANSWERS = {True: "yes", False: "NO", None: "open"}


def print_report(summary: Summary, console: Console, times: Times = ()) -> None:
    """Print every table of the report.

    Parameters
    ----------
    summary : Summary
        The summary of a finished campaign.
    console : rich.console.Console
        The console to print on.
    times : sequence of sequence of Timing
        The result of `measure_times`, if times are to be printed.
    """
    study, campaign = summary.study, summary.campaign
    console.print(Text(study.title, "bold"))
    if study.reference:
        console.print(Text(study.reference, "dim"))
    facts = f"{campaign.cycles} cycles, seed {study.seed}"
    if any(setting.published for setting in study.settings):
        of = campaign.published_cycles
        facts += f"; the papers' own algorithms on {of} of them"
    console.print(facts)
    comparisons = summary.comparisons
    for sheet in _sheets(summary):
        console.print(sheet.to_rich())
        if sheet.name == "comparison":
            _print_agreement(comparisons, console)
    _print_mixed(summary, console)
    print_times(times, console)
    _print_claims(summary, console)
    _print_remarks(comparisons, summary, console)


def write_report(summary: Summary, times: Times = ()) -> list[Path]:
    """Write the report into the campaign's folder: tables and figures.

    Returns
    -------
    list of Path
        The files written.
    """
    return write_tables(summary, times) + draw_figures(summary, times)


def write_tables(summary: Summary, times: Times = ()) -> list[Path]:
    """Write the numbers of the report into the campaign's folder.

    Returns
    -------
    list of Path
        The files in the formats of the study: CSV (``summary.csv`` with every estimate,
        ``comparison.csv`` with published and obtained numbers, if there are any, and
        ``times.csv`` if times were measured), LaTeX (each printed table); and always
        ``report.txt``, the printed report.
    """
    texts: dict[str, str] = {}
    if "csv" in summary.study.formats:
        texts["summary.csv"] = _csv(summary.rows())
        if summary.comparisons:
            texts["comparison.csv"] = _csv(map(_comparison_row, summary.comparisons))
        if times:
            texts["times.csv"] = _csv(map(_timing_row, itertools.chain(*times)))
    if "tex" in summary.study.formats:
        sheets = (*_sheets(summary), *_time_sheets(times))
        texts |= {f"{sheet.name}.tex": sheet.to_latex() for sheet in sheets}
    report = io.StringIO()
    print_report(summary, Console(file=report, width=150), times)
    texts["report.txt"] = report.getvalue()
    written = []
    for name, text in texts.items():
        written.append(summary.campaign.folder / name)
        with open_atomic(written[-1]) as file:
            file.write(text.encode())
    return written


def _sheets(summary: Summary) -> Iterator[Sheet]:
    """Yield the tables of numbers, in the order of printing."""
    if summary.comparisons:
        yield _comparison_sheet(summary.comparisons)
    compared = {row.setting.sweep for row in summary.comparisons}
    medians = summary.study.medians
    for name, sweep in summary.study.sweeps.items():
        along = len(sweep) > 1 and len(sweep[0].algorithms) == 1
        if along and name not in compared:
            yield _sheet_along(sweep, summary)
        if along and set(medians) & set(sweep[0].metrics):
            (algorithm,) = sweep[0].algorithms
            rows = [(setting.label, setting, algorithm) for setting in sweep]
            yield _medians_sheet(name, "setting", rows, summary)
        for setting in sweep:
            if not along and (name not in compared or not setting.label):
                yield _sheet_of(setting, summary)
            if not along and set(medians) & set(setting.metrics):
                each = [(a.label, setting, a) for a in setting.algorithms]
                yield _medians_sheet(setting.name, "algorithm", each, summary)
            if twins := summary.compare_twins(setting):
                yield _twin_sheet(setting, twins, summary)


def _comparison_sheet(comparisons: list[Comparison]) -> Sheet:
    """Make the table of published and obtained numbers."""
    twins = any(row.twin for row in comparisons)
    headings = ["quantity", "published", "obtained", "difference"]
    headings += ["paper's algorithm", "difference"] if twins else []
    rows = []
    for row in comparisons:
        figure = row.published
        scale, unit = (100.0, "%") if row.percent else (1.0, "")
        cells = [
            row.label,
            "" if figure is None else f"{figure * scale:g}{unit}",
            _plus_minus(row.obtained, scale) + unit,
            _difference(row.obtained, figure, scale),
        ]
        if twins and row.twin is None:
            cells += ["", ""]
        elif row.twin is not None:
            twin = row.twin
            cells += [_plus_minus(twin, scale) + unit, _difference(twin, figure, scale)]
        rows.append([*cells, _flags(row)])
    align = "l" + "r" * (len(headings) - 1) + "l"
    return Sheet("comparison", "Published and obtained", align, [*headings, ""], rows)


def _print_agreement(comparisons: list[Comparison], console: Console) -> None:
    """Print the count of published numbers that are reproduced."""
    compared = [row for row in comparisons if row.agrees is not None]
    within = sum(bool(row.agrees) for row in compared)
    close = sum(map(_is_close, compared))
    console.print(
        f"Of {len(compared)} published numbers, {within} lie within three standard "
        f"errors of the obtained mean, {close} within that or 5 %. "
        "* differs by more; [n] see the remark.",
        highlight=False,
        markup=False,
    )


def _is_close(row: Comparison) -> bool:
    """Return whether a published number is matched within 5 %, or within the errors."""
    assert row.published is not None
    close = abs(row.obtained.mean - row.published) <= 0.05 * abs(row.published)
    return close or bool(row.agrees)


def _difference(got: Estimate, figure: float | None, scale: float) -> str:
    """Format obtained minus published, and the difference relative to the latter."""
    if figure is None or not got.count:
        return ""
    difference = got.mean - figure
    text = f"{difference * scale:+.3g}"
    if scale != 1.0:
        return f"{text} points"
    return f"{text} ({difference / figure:+.1%})" if figure else text


def _flags(row: Comparison) -> str:
    flags = ["*"] if row.agrees is False else []
    return " ".join([*flags, *(f"[{index + 1}]" for index in row.remarks)])


def _sheet_of(setting: Setting, summary: Summary) -> Sheet:
    """Make the table of means of all algorithms and metrics in one setting."""
    some = (*setting.exact, *setting.published)[0]
    shared = [name for name in setting.metrics if summary.metric(name).shared]
    means = [
        f"; {_plus_minus(summary.estimate(setting, some.name, name))} {name}"
        for name in shared
    ]
    where = summary.place(setting)
    title = f"{where}: means" if where else "means"
    return _means_sheet(
        f"means-{setting.name}",
        f"{title} ± standard errors{''.join(means)}",
        "algorithm",
        [(a.label, setting, a) for a in setting.algorithms],
        [name for name in setting.metrics if name not in shared],
        summary,
    )


def _sheet_along(sweep: list[Setting], summary: Summary) -> Sheet:
    """Make the table of means of one algorithm along a sweep."""
    (algorithm,) = sweep[0].algorithms
    name = sweep[0].sweep
    title = f"{name.replace('_', ' ')}, {algorithm.label}: means ± standard errors"
    rows = [(setting.label, setting, algorithm) for setting in sweep]
    metrics = sweep[0].metrics
    return _means_sheet(f"means-{name}", title, "setting", rows, metrics, summary)


def _means_sheet(
    name: str,
    title: str,
    heading: str,
    rows: Sequence[tuple[str, Setting, Algorithm]],
    metrics: Sequence[str],
    summary: Summary,
) -> Sheet:
    """Make a table of means with one row per setting and algorithm."""
    cells, ran = [], []
    for label, setting, algorithm in rows:
        estimates = [summary.estimate(setting, algorithm.name, m) for m in metrics]
        missing = max(estimate.missing for estimate in estimates)
        shown = str(missing) if missing else ""
        cells.append([label, *map(_plus_minus, estimates), shown])
        ran.append(estimates[0].count + estimates[0].missing)
    headings = [heading, *(m.replace("_", " ") for m in metrics), "missing"]
    if len(set(ran)) > 1:  # the papers' own algorithms run on the first cycles only
        headings.append("cycles")
        cells = [[*row, str(count)] for row, count in zip(cells, ran, strict=True)]
    return Sheet(name, title, "l" + "r" * (len(headings) - 1), headings, cells)


def _medians_sheet(
    name: str,
    heading: str,
    rows: Sequence[tuple[str, Setting, Algorithm]],
    summary: Summary,
) -> Sheet:
    """Make a table of medians with one row per setting and algorithm."""
    setting = rows[0][1]
    metrics = [metric for metric in setting.metrics if metric in summary.study.medians]
    cells = [
        [label]
        + [_with_interval(summary.median(at, each.name, name)) for name in metrics]
        for label, at, each in rows
    ]
    where = setting.sweep if heading == "setting" else summary.place(setting)
    title = "medians of the cycles [95% confidence intervals]"
    return Sheet(
        f"medians-{name}",
        f"{where.replace('_', ' ')}: {title}" if where else title,
        "l" + "r" * len(metrics),
        [heading, *(metric.replace("_", " ") for metric in metrics)],
        cells,
    )


def _with_interval(median: Median) -> str:
    if not median.count:
        return "none"
    shown = f"{median.middle:.4g}"
    if math.isnan(median.low):
        return shown
    return f"{shown} [{median.low:.4g}, {median.high:.4g}]"


def _twin_sheet(
    setting: Setting, twins: list[TwinComparison], summary: Summary
) -> Sheet:
    """Make the table of exact searches and their published twins."""
    cycles = max(row.twin.count + row.twin.missing for row in twins)
    place = summary.place(setting)
    where = f"{place}: " if place else ""
    return Sheet(
        f"worth-{setting.name}",
        f"{where}exact searches and the published ones, on the first {cycles} cycles",
        "lrrrrrrr",
        [
            *("algorithm", "metric", "slotkern", "as published", "gain"),
            *("better in", "worse in", "finds more in"),
        ],
        [
            [
                row.algorithm.label,
                row.metric,
                *map(_plus_minus, (row.exact, row.twin, row.gain)),
                *map(str, (row.better, row.worse, row.only)),
            ]
            for row in twins
        ],
    )


def print_times(times: Times, console: Console) -> None:
    """Print tables of published and measured times.

    Parameters
    ----------
    times : list of list of Timing
        The result of `measure_times`.
    console : rich.console.Console
        The console to print on.
    """
    if times:
        console.print(
            "Published times are means of the papers' programs on their machines; the "
            "others are medians of CPU time on this one. They are not compared. The "
            "growth is the power of the varied number that fits the times best."
        )
    for sheet in _time_sheets(times):
        console.print(sheet.to_rich())


def _time_sheets(times: Times) -> Iterator[Sheet]:
    """Yield one table for each list of times."""
    for number, timings in enumerate(times, 1):
        yield _time_sheet(f"times-{number}", timings)


def _time_sheet(name: str, timings: Sequence[Timing]) -> Sheet:
    """Make the table of published and measured times, one column per setting."""
    varied = _varied_number(timings)
    by_label: dict[str, list[Timing]] = {}
    for timing in timings:
        by_label.setdefault(timing.label, []).append(timing)
    settings = [timing.setting for timing in next(iter(by_label.values()))]
    headings = [setting.label for setting in settings]
    title = "Times in ms"
    if varied:  # put its name into the title only
        title += f" by {headings[0].rpartition(' = ')[0]}"
        headings = [*map("{:g}".format, varied), "growth"]
    rows = []
    for label, row in by_label.items():
        cells = {
            "published": [t.published for t in row],
            "slotkern": [t.here for t in row],
            "paper's algorithm": [t.twin for t in row],
        }
        known = {k: v for k, v in cells.items() if not all(map(math.isnan, v))}
        for kind, times in known.items():
            first = label if kind == next(iter(known)) else ""
            shown = "{:g}".format if kind == "published" else _milliseconds
            growth = growth_exponent(varied, times) if varied else math.nan
            last = [] if not varied else [f"{growth:.2f}"]
            rows.append([first, kind, *map(shown, times), *last])
    align = "ll" + "r" * len(headings)
    return Sheet(name, title, align, ["search", "", *headings], rows)


def _varied_number(timings: Sequence[Timing]) -> list[float]:
    """Return the values of the varied number; empty unless it is one and positive."""
    settings = {timing.setting.name: timing.setting for timing in timings}
    values = [list(setting.values.values()) for setting in settings.values()]
    one = len(values) > 1 and all(len(point) == 1 for point in values)
    numbers = [point[0] for point in values] if one else []
    positive = all(isinstance(n, (int, float)) and n > 0 for n in numbers)
    return [float(number) for number in numbers] if positive else []


def _milliseconds(time: float) -> str:
    return f"{time:.0f}" if time >= 100 else f"{time:.3g}"


def _print_mixed(summary: Summary, console: Console) -> None:
    """Print a note on rows whose numbers belong to several windows."""
    labels = [
        each.label
        for each in summary.study.algorithms.values()
        if each.options.get("alternatives") is True
    ]
    if labels and summary.study.experiment == "cycle":
        console.print(
            Text(
                f"{', '.join(labels)}: each metric is that of the alternative best by "
                "it. The numbers of a row belong to different windows, so that start "
                "and runtime do not add up to the finish."
            )
        )


def _print_claims(summary: Summary, console: Console) -> None:
    """Print the verdicts on the claims."""
    found = verdicts(summary)
    if found:
        of_paper = bool(summary.study.reference)
        title = "Claims of the paper" if of_paper else "Claims"
        console.print(Text(f"\n{title}", "bold"))
    for verdict in found:
        details = f": {verdict.details}" if verdict.details else ""
        answer = _ANSWERS[verdict.holds]
        console.print(Text(f"{answer:5}{verdict.text}{details}"))


def _print_remarks(
    comparisons: list[Comparison], summary: Summary, console: Console
) -> None:
    """Print the remarks by kind; unmatched numbers first, with the numbers."""
    for kind, title in _KINDS.items():
        remarks = [
            (index, remark)
            for index, remark in enumerate(summary.study.remarks)
            if remark["kind"] == kind
        ]
        if not remarks:
            continue
        console.print(Text(f"\n{title}", "bold"))
        for index, remark in remarks:
            console.print(Text(f"[{index + 1}] {remark['text']}"))
            for row in comparisons:
                figure = row.published
                if figure is None or index not in row.remarks or row.agrees:
                    continue
                scale, unit = (100.0, "%") if row.percent else (1.0, "")
                console.print(
                    Text(
                        f"    {row.label}: published {figure * scale:g}{unit}, "
                        f"obtained {_plus_minus(row.obtained, scale)}{unit}"
                    )
                )


def _comparison_row(row: Comparison) -> dict[str, Any]:
    return {
        "quantity": row.label,
        "algorithm": row.algorithm,
        "metric": row.metric,
        "setting": row.setting.name,
        "published": row.published,
        "obtained": row.obtained.mean,
        "standard_error": row.obtained.error,
        "difference": row.difference,
        "paper_algorithm": row.twin.mean if row.twin else None,
        "paper_algorithm_error": row.twin.error if row.twin else None,
        "within_three_errors": row.agrees,
        "remarks": " ".join(str(index + 1) for index in row.remarks),
    }


def _timing_row(timing: Timing) -> dict[str, Any]:
    setting = timing.setting
    return {
        "setting": setting.name,
        **setting.values,
        "search": timing.label,
        "published_ms": timing.published,
        "slotkern_ms": timing.here,
        "paper_algorithm_ms": timing.twin,
    }


def _csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Format rows as CSV, with the columns in the order of their first appearance."""
    rows = list(rows)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _plus_minus(estimate: Estimate, scale: float = 1.0) -> str:
    """Format mean and standard error, the latter with two significant digits."""
    if not estimate.count:
        return "none" if estimate.missing else "-"
    mean, error = estimate.mean * scale, estimate.error * scale
    digits = 2
    if error > 0:
        digits = min(max(1 - math.floor(math.log10(error)), 0), 3)
    shown = "" if math.isnan(error) else f" ±{error:.{digits}f}"
    return f"{mean:.{digits}f}{shown}"

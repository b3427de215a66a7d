"""The study of batches, printed beside the paper, with what contradicts it by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from slotkern.extras import extra
from slotkern.files.whole import make_folder, open_whole
from slotkern.studies.papers import published
from slotkern.studies.vo import EXPERIMENTS, OWN, SLICES, Columns, gather

with extra():
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

__all__ = ["reproduce_vo"]

Print = Callable[..., None]

REMARKS = (
    "Table 1's CSS row needs ten sub-batches of first-fit alternatives; one batch, as "
    "the paper defines CSS, has few alternatives (row 'css one batch').",
    "Table 1's finish row contradicts itself: 169.6 + 45 is not 205.5.",
    "Table 2's row for price 2 contradicts itself: 2 * 256.6 is 513.2, but the profit "
    "527.1 and the utilization .44 both give 263.6. The column headed S is P.",
    "The text says 60% discounts for the poorest; budgets from 0.4 of the market price "
    "make nearly every cycle fail, against Y of at most .03. Table 3 has both.",
    "BSF (section 3.3) slices its first part with Batch-slicer; the text on figure 5 "
    "says CSS. Here it is Batch-slicer with k = 3.",
)


def reproduce_vo(
    cycles: int, workers: int, seed: int, out: Path, show: Print, names: Any = None
) -> list[Path]:
    """Run the experiments, print each beside the paper, and write tables and figures.

    Returns
    -------
    list of Path
        The files that were written.
    """
    make_folder(out)
    files, results = [], {}
    for name in names or EXPERIMENTS:
        results[name] = columns = gather(name, cycles, workers, seed)
        files.append(_write(out / f"{name}.csv", columns))
        show(_table(name, columns))
        for remark in _statements(name, columns):
            show(remark)
    for remark in REMARKS:
        show(f"- {remark}")
    files += _figures(results, out)
    return files


def _write(path: Path, columns: Columns) -> Path:
    lines = ["quantity,mean,standard_error,cycles"]
    for title, values in columns.items():
        mean, error, count = _summary(values)
        lines.append(f"{title},{mean!r},{error!r},{count}")
    with open_whole(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return path


def _summary(values: Any) -> tuple[float, float, int]:
    some = values[np.isfinite(values)]
    if not some.size:
        return float("nan"), float("nan"), 0
    spread = some.std(ddof=1) / np.sqrt(some.size) if some.size > 1 else 0.0
    return float(some.mean()), float(spread), int(some.size)


def _mean(columns: Columns, title: str) -> float:
    return _summary(columns[title])[0]


def _paper(name: str, row: str, column: str) -> float | None:
    """What the paper prints for a cell, if it prints it."""
    table = name.split("-")[0]
    if table not in ("table1", "table2", "table3"):
        return None
    figures = published(f"vo.{table}")
    first = next(iter(figures))
    keys = [str(key) for key in figures[first]]
    if row not in keys or column not in figures:
        return None
    return float(figures[column][keys.index(row)])


def _table(name: str, columns: Columns) -> Table:
    """One row a policy, price or number; each cell obtained, published, difference."""
    table = Table(box=SIMPLE_HEAD, title=EXPERIMENTS[name].title, title_justify="left")
    rows: dict[str, dict[str, str]] = {}
    for title, values in columns.items():
        row, column = title.split("/")
        mean, error, _ = _summary(values)
        text = f"{mean:.4g} ±{error:.1g}"
        printed = _paper(name, row, column)
        if printed is not None:
            text += f" ({printed:g}"
            text += f", {mean / printed - 1:+.1%})" if printed else ")"
        rows.setdefault(row, {})[column] = text
    heads = list(dict.fromkeys(column for row in rows.values() for column in row))
    table.add_column("", justify="left", no_wrap=True)
    for head in heads:
        table.add_column(Text(head.replace("_", " ")), justify="right", no_wrap=True)
    for row, cells in rows.items():
        table.add_row(Text(row), *[cells.get(head, "") for head in heads])
    return table


def _statements(name: str, columns: Columns) -> list[str]:
    """What the paper claims in words, and whether it comes out."""
    said: list[tuple[str, bool]] = []

    def mean(title: str) -> float:
        return _mean(columns, title)

    if name == "table1":
        for column in OWN:
            # the paper's exception: the finish criterion has the least start
            rivals = [row for row in OWN if (row, column) != ("finish", "start")]
            best = min(rivals, key=lambda row: mean(f"{row}/{column}"))
            gain = 1 - mean(f"{column}/{column}") / mean(f"css/{column}")
            text = f"the least {column} belongs to the jobs that ask for it"
            said.append((f"{text}; {gain:.1%} under CSS", best == column))
        starts = min(OWN, key=lambda row: mean(f"{row}/start"))
        said.append(
            ("the finish criterion has the least start too", starts == "finish")
        )
    elif name == "table2":
        prices = ("2", "4", "6", "8", "10")
        used = [mean(f"{price}/used_time") for price in prices]
        profit = [mean(f"{price}/profit") for price in prices]
        said.append(("the profit has its peak at price 6", np.argmax(profit) == 2))
        said.append(
            ("utilization falls with the price", bool((np.diff(used) < 0).all()))
        )
    elif name.startswith("table3"):
        for column, of in (("runtime", 1), ("start", -1)):
            for when in ("scheduled", "real"):
                slicer = mean(f"batch-slicer/{column}_{when}")
                other = mean(f"backfilling/{column}_{when}")
                gain = (1 - min(slicer, other) / max(slicer, other)) * np.sign(
                    other - slicer
                )
                text = f"Batch-slicer's advantage in {column}, {when}: {gain:.1%}"
                said.append((text, bool(gain * of > 0)))
    elif name.startswith("figure4"):
        for column, sign in (("alternatives", 1), ("total cost", -1), ("failed", 1)):
            line = [mean(f"{k}/{column}") for k in SLICES]
            way = "rise" if sign > 0 else "fall"
            ok = bool((sign * np.diff(line) >= 0).all())
            said.append((f"{column} {way} with the number of sub-batches", ok))
    elif name == "figure5":
        numbers = range(0, 21, 2)
        time = np.array([mean(f"{n}/processor_time") for n in numbers])
        start = np.array([mean(f"{n}/start") for n in numbers])
        said.append(("T_CPU falls throughout", bool((np.diff(time) < 0).all())))
        said.append(("T_start rises throughout", bool((np.diff(start) > 0).all())))
        over = np.flatnonzero(start > time)
        crossing = (
            f"between {2 * (over[0] - 1)} and {2 * over[0]}" if over.size else "not"
        )
        said.append((f"the curves cross: {crossing}", 0 < over.size < len(time)))
    return [f"{'yes' if true else 'NO '}  {text}" for text, true in said]


def _figures(results: dict[str, Columns], out: Path) -> list[Path]:
    from slotkern.plotting.gantt import FONT, WINDOW_COLOURS, save_figure

    with extra():
        from matplotlib.figure import Figure

    files = []
    lines = {
        name: columns for name, columns in results.items() if name.startswith("figure4")
    }
    if lines:
        figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
        ax: Any = figure.add_subplot()
        for colour, (name, columns) in zip(WINDOW_COLOURS, lines.items(), strict=False):
            time = [_mean(columns, f"{k}/processor_time") for k in SLICES]
            failed = [_mean(columns, f"{k}/failed") for k in SLICES]
            label = (
                f"{name.split('-')[1]} load: Y = {failed[0]:.3g} to {failed[-1]:.3g}"
            )
            ax.plot(SLICES, time, "o-", color=colour, lw=1.4, ms=4, label=label)
        ax.set_xlabel("sub-batches k", fontsize=FONT)
        ax.set_xticks(SLICES)
        ax.set_ylabel("processor time a job", fontsize=FONT)
        files.append(_dressed(figure, ax, out / "figure4.png", save_figure))
    if "figure5" in results:
        figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
        ax = figure.add_subplot()
        numbers = list(range(0, 21, 2))
        for colour, column, label in (
            (WINDOW_COLOURS[0], "processor_time", "processor time"),
            (WINDOW_COLOURS[1], "start", "start"),
        ):
            line = [_mean(results["figure5"], f"{n}/{column}") for n in numbers]
            ax.plot(numbers, line, "o-", color=colour, lw=1.4, ms=4, label=label)
        ax.set_xlabel("jobs that are sliced, of 20", fontsize=FONT)
        ax.set_xticks(numbers)
        ax.set_ylabel("mean over the jobs", fontsize=FONT)
        files.append(_dressed(figure, ax, out / "figure5.png", save_figure))
    return files


def _dressed(figure: Any, ax: Any, path: Path, save: Callable[..., None]) -> Path:
    from slotkern.plotting.gantt import FONT

    ax.tick_params(labelsize=FONT - 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=FONT)
    save(figure, path)
    return path

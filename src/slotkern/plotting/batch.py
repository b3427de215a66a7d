"""Pictures of batches: alternatives and chosen windows, cycles, trade-off curves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern.foundation.extras import extra
from slotkern.plotting.gantt import plot_gantt
from slotkern.plotting.layout import (
    AXES_TALL,
    LETTER,
    ROW_TALL,
    WIDTH,
    fit_font_sizes,
    row_edges,
)
from slotkern.plotting.style import (
    FAINT,
    FONT,
    HATCHES,
    INK,
    WINDOW_COLOURS,
    boxes,
    check_picture_path,
    escape_label,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from slotkern.batch.cycles import Cycles
    from slotkern.batch.schedule import Schedule

__all__ = ["plot_cycles", "plot_schedule", "plot_trade_off"]

#: Colour and hatch of each job; repeated after 42 jobs.
STYLES = [(colour, hatch) for hatch in HATCHES for colour in WINDOW_COLOURS]
#: Parts have labels only if at most this many are filled.
MAX_LABELLED_PARTS = 400
#: Maximum number of unchosen alternatives drawn; more would hide the chosen ones.
MAX_OUTLINES = 300
#: Maximum number of letters of a name in the legend.
MAX_LETTERS = 40
#: Width of the long form of the counts below a cycle, in inches.
COUNTS_WIDE = 0.85
#: Share of the height of a row that is empty above a bar, and below it.
PAD = 0.12


def plot_schedule(
    schedule: Schedule,
    *,
    alternatives: bool | None = None,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the alternatives of a batch in outline and the chosen windows filled.

    This is figure 2 of the paper. Chosen parts are labelled with the name of their job
    if there is room; a job without a name has its number, counted from 1 in the order
    of the batch. The first 42 jobs differ in colour or hatch; a legend lists jobs whose
    parts have no room for a label. If more than 300 alternatives were not chosen, only
    the chosen ones are drawn, and the title counts the others.

    Parameters
    ----------
    schedule : Schedule
    alternatives : bool, optional
        Draw the alternatives that were not chosen: True always, False never, None (the
        default) if there are at most 300.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.
    title : str, optional
        Text above the picture; by default the number of scheduled jobs.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown.
    ModuleNotFoundError
        If matplotlib is not installed.
    """
    target = check_picture_path(path)
    done = int(schedule.scheduled.sum())
    found, owner = schedule.alternatives, schedule.owner
    words = title or f"{done} of {len(schedule)} jobs, {len(found):,} alternatives"
    chosen = np.isin(np.arange(len(found)), schedule.chosen[schedule.scheduled])
    rest = len(found) - done
    if alternatives is None:
        alternatives = rest <= MAX_OUTLINES
    if rest and not alternatives:
        words += f" ({rest:,} not drawn)"
        found, owner, chosen = found[chosen], owner[chosen], chosen[chosen]
    figure = plot_gantt(schedule._jobs.prepared, title=words)
    rows = _NodeRows.from_axes(figure.axes[0], schedule.slots)
    names = [schedule.batch.names[job] for job in owner.tolist()]
    labelled = rows.draw(found.parts, found.first, owner, names, chosen)
    without = np.sort(owner[chosen & ~labelled])
    _legend(figure, {job: schedule.batch.names[job] for job in without.tolist()})
    return save_figure(figure, target)


def _legend(figure: Figure, names: Mapping[int, str]) -> None:
    """Draw a legend below the picture for jobs without labels; none beyond 42 jobs."""
    with extra():
        from matplotlib.patches import Patch

    if not 0 < len(names) <= len(STYLES):
        return
    short = [
        n if len(n) <= MAX_LETTERS else f"{n[: MAX_LETTERS - 3]}..."
        for n in names.values()
    ]
    styles = [STYLES[job % len(STYLES)] for job in names]
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", lw=0, label=label)
        for (colour, hatch), label in zip(styles, map(escape_label, short), strict=True)
    ]
    widest = max(map(len, short))
    columns = max(1, int(WIDTH / (0.55 + LETTER * FONT * widest / 72)))
    lines = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + 0.1 + 0.18 * lines)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=FONT,
        labelcolor=INK,
    )


def plot_cycles(
    flow: Cycles,
    *,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the windows of a flow of jobs by cycle, and the counts of each cycle.

    These are figures 1 and 3 of the paper. Each sub-batch has a colour; parts are
    labelled by the name or number of their job, as in `plot_schedule`. Dotted lines are
    the times of the cycles. Below each are the numbers of jobs that got a window and of
    jobs that returned to the next batch, as +jobs and -jobs if cycles are short.

    Parameters
    ----------
    flow : Cycles
        The result of `run_cycles`.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.
    title : str, optional
        Text above the picture; by default the numbers of cycles and jobs.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown, or there is no cycle.
    ModuleNotFoundError
        If matplotlib is not installed.
    """
    target = None if path is None else check_picture_path(path)
    if not flow.schedules:
        raise ValueError("there is no cycle to draw")
    slots = flow.schedules[0]._jobs.prepared
    words = f"{len(flow.schedules)} cycles, {int(flow.throughput.sum())} jobs"
    figure = plot_gantt(slots, title=title or words)
    ax: Any = figure.axes[0]
    rows, colour = _NodeRows.from_axes(ax, slots.slots), 0
    across = figure.get_figwidth() / np.ptp(ax.get_xlim())  # inches a time unit
    wide = np.diff(flow.times).min(initial=np.inf) * across > COUNTS_WIDE
    counted = "{} scheduled\n{} returned" if wide else "+{}\n-{}"
    for at, jobs, schedule in zip(flow.times, flow.jobs, flow.schedules, strict=True):
        ax.axvline(at, color=INK, ls="dotted", lw=1.2, zorder=6.5)  # below labels
        windows, piece = schedule.windows, schedule.piece
        every = np.ones(len(jobs), np.bool_)
        names = schedule.batch.names
        rows.draw(windows.parts, windows.first, colour + piece, names, every)
        colour += int(piece.max(initial=0)) + 1
        done = int(schedule.scheduled.sum())
        ax.annotate(
            counted.format(done, len(jobs) - done),
            (at, 0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -18),
            textcoords="offset points",
            va="top",
            fontsize=FONT,
            color=INK,
        )
    ax.xaxis.labelpad = 30
    return save_figure(figure, target)


@dataclass(frozen=True)
class _NodeRows:
    """The rows of a Gantt picture; draws the parts of windows onto them."""

    ax: Any
    nodes: NDArray[np.int32]
    edges: NDArray[np.float64]

    @classmethod
    def from_axes(cls, ax: Axes, slots: NDArray[np.void]) -> _NodeRows:
        nodes = np.unique(slots["node"])
        tall = min(ROW_TALL * max(nodes.size, 1), AXES_TALL)
        return cls(ax, nodes, row_edges(np.zeros(nodes.size, bool), tall))

    def draw(
        self,
        parts: NDArray[np.void],
        first: NDArray[np.int64],
        colour: NDArray[np.int64],
        names: Sequence[str],
        filled: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Draw windows and return the mask of windows that have a label.

        Parameters
        ----------
        parts, first
            Parts of all windows, and the index of the first part of each window.
        colour, names, filled
            Number of the style, name of the job, and filled or outlined, per window.
        """
        counts = np.diff(first)
        labelled = np.zeros(len(names), np.bool_)
        window = np.repeat(np.arange(len(names)), counts)
        style = np.repeat(colour, counts) % len(STYLES)
        # Jobs without a name are "job 1", "job 2" ...: the label is the number.
        short = [escape_label(name.removeprefix("job ")) for name in names]
        name = np.repeat(np.array(short, object), counts)
        full = np.repeat(filled, counts)
        row = np.searchsorted(self.nodes, parts["node"])
        for k in np.unique(style).tolist():
            for kind in (False, True):
                some = (style == k) & (full == kind)
                _boxes(self.ax, parts[some], row[some], self.edges, STYLES[k], kind)
        if not 0 < full.sum() <= MAX_LABELLED_PARTS:
            return labelled
        inch = np.ptp(self.ax.get_xlim()) / (0.9 * WIDTH)
        fonts = fit_font_sizes((1 - 2 * PAD) * np.diff(self.edges))
        labels = zip(parts, row, name.tolist(), style, window, full, strict=True)
        for part, at, words, k, mine, shown in labels:
            if not shown:
                continue
            font = float(fonts[at])
            room = inch * (4 + LETTER * font * len(words)) / 72
            if not font:
                continue
            if part["end"] - part["start"] < room and not words.isdecimal():
                continue
            across = (part["start"] + part["end"]) / 2
            self.ax.annotate(
                words,
                (across, (self.edges[at] + self.edges[at + 1]) / 2),
                ha="center",
                va="center_baseline",
                fontsize=font,
                color="white",
                bbox={"facecolor": STYLES[k][0], "edgecolor": "none", "pad": 0.5}
                if STYLES[k][1]
                else None,
                zorder=7,
            )
            labelled[mine] = True
        return labelled


def _boxes(
    ax: Axes,
    parts: NDArray[np.void],
    row: NDArray[np.intp],
    edges: NDArray[np.float64],
    style: tuple[str, str],
    filled: bool,
) -> None:
    """Draw one collection of rectangles, filled or in outline."""
    with extra():
        from matplotlib.collections import PolyCollection

    pad = PAD * (edges[row + 1] - edges[row])
    top, bottom = edges[row] + pad, edges[row + 1] - pad
    left, right = parts["start"], parts["end"]
    colour, hatch = style
    ax.add_collection(
        PolyCollection(
            boxes(left, right, top, bottom),
            facecolors=colour if filled else "none",
            edgecolors="white" if filled else colour,
            linewidths=0.6 if filled else 0.8,
            hatch=(hatch or None) if filled else None,
            zorder=6 if filled else 5,
        ),
        autolim=False,
    )


def plot_trade_off(
    schedule: Schedule, *, path: str | os.PathLike[str] | None = None
) -> Figure:
    """Draw the best total for every limit, the limit, and the chosen total.

    Parameters
    ----------
    schedule : Schedule
        A schedule chosen from alternatives, not one that was only backfilled.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown, or the schedule has no alternatives.
    ModuleNotFoundError
        If matplotlib is not installed.
    """
    target = check_picture_path(path)
    if not len(schedule.slices):
        raise ValueError("there is no trade-off: nothing was chosen from alternatives")
    curve = schedule.trade_off()
    figure = new_figure(7, 4, dpi=150)
    ax: Any = figure.add_subplot()
    ax.step(curve.weight, curve.value, where="post", color=WINDOW_COLOURS[0], lw=1.4)
    ax.axvline(schedule.limit, color=FAINT, ls="dotted", lw=1.2)
    spent = float(schedule.slices["expense"].sum())
    ax.plot(
        [spent], [float(schedule.slices["value"].sum())], "o", color=WINDOW_COLOURS[1]
    )
    ax.annotate(
        "limit",
        (schedule.limit, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        va="top",
        fontsize=FONT,
        color=INK,
    )
    under = schedule.under.replace("_", " ")
    ax.set_xlabel(escape_label(f"{under} of the chosen windows"), fontsize=FONT)
    ax.set_ylabel(escape_label(schedule.target.replace("_", " ")), fontsize=FONT)
    ax.tick_params(labelsize=FONT - 1)
    ax.spines[["top", "right"]].set_visible(False)
    return save_figure(figure, target)

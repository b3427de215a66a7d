"""Pictures of batches: what was chosen of which alternatives, cycles, trade-offs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern.extras import extra
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

#: Colours and hatches, one for each job; they begin anew after 42.
STYLES = [(colour, hatch) for hatch in HATCHES for colour in WINDOW_COLOURS]
LABELLED = 400
#: Of more alternatives, those not chosen are left out: they would hide the chosen.
CLEAR = 300
#: Letters of a name in the legend.
LONG = 40
#: Inches that the counts below a cycle take in words.
COUNTS_WIDE = 0.85
#: The share of a row above a bar, and below it.
PAD = 0.12


def plot_schedule(
    schedule: Schedule,
    *,
    alternatives: bool | None = None,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw all alternatives of a batch in outline and the chosen ones filled.

    This is figure 2 of the paper. Chosen parts carry the name of their job where it has
    room; of a job without one the number, counted from 1 in the order of the batch. The
    first 42 jobs differ in colour or hatch; a legend names those whose parts have no
    room for that.
    When more than 300 alternatives were not chosen, only the chosen ones are drawn, and
    the title says how many are not.

    Parameters
    ----------
    schedule : Schedule
    alternatives : bool, optional
        Whether those that were not chosen are drawn, however many they are.
    path : path, optional
        Save the picture there too: .png, .svg or .pdf.
    title : str, optional
        Written above; what was scheduled, where not given.

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
        alternatives = rest <= CLEAR
    if rest and not alternatives:
        words += f" ({rest:,} not drawn)"
        found, owner, chosen = found[chosen], owner[chosen], chosen[chosen]
    figure = plot_gantt(schedule._jobs.prepared, title=words)
    rows = _Rows.of(figure.axes[0], schedule.slots)
    names = [schedule.batch.names[job] for job in owner.tolist()]
    told = rows.draw(found.parts, found.first, owner, names, chosen)
    without = np.sort(owner[chosen & ~told])
    _legend(figure, {job: schedule.batch.names[job] for job in without.tolist()})
    return save_figure(figure, target)


def _legend(figure: Figure, names: Mapping[int, str]) -> None:
    """Below the picture, the looks of jobs whose bars have no room for their names."""
    with extra():
        from matplotlib.patches import Patch

    if not 0 < len(names) <= len(STYLES):
        return
    short = [n if len(n) <= LONG else f"{n[: LONG - 3]}..." for n in names.values()]
    looks = [STYLES[job % len(STYLES)] for job in names]
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", lw=0, label=label)
        for (colour, hatch), label in zip(looks, map(escape_label, short), strict=True)
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
    """Draw the windows of a flow of jobs, cycle after cycle, and what became of them.

    These are figures 1 and 3 of the paper. Each sub-batch has a colour; parts carry the
    name of their job, or its number, as in `plot_schedule`. Dotted lines are the times
    at which the cycles were scheduled. Below, for each cycle, the jobs that got a
    window, and those that returned to the next batch; where cycles are short, as +jobs
    and -jobs.

    Parameters
    ----------
    flow : Cycles
        What `run_cycles` returned.
    path : path, optional
        Save the picture there too: .png, .svg or .pdf.
    title : str, optional
        Written above.

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
    rows, colour = _Rows.of(ax, slots.slots), 0
    across = figure.get_figwidth() / np.ptp(ax.get_xlim())  # inches a time unit
    wide = np.diff(flow.times).min(initial=np.inf) * across > COUNTS_WIDE
    counted = "{} scheduled\n{} returned" if wide else "+{}\n-{}"
    for at, jobs, schedule in zip(flow.times, flow.jobs, flow.schedules, strict=True):
        ax.axvline(at, color=INK, ls="dotted", lw=1.2, zorder=6.5)  # below the names
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
class _Rows:
    """The rows of a Gantt picture, onto which parts are drawn."""

    ax: Any
    nodes: NDArray[np.int32]
    edges: NDArray[np.float64]

    @classmethod
    def of(cls, ax: Axes, slots: NDArray[np.void]) -> _Rows:
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
        """Draw windows: the last three say how, and whose each is.

        Return which of them carry their name.
        """
        counts = np.diff(first)
        told = np.zeros(len(names), np.bool_)
        window = np.repeat(np.arange(len(names)), counts)
        look = np.repeat(colour, counts) % len(STYLES)
        # Those without a name of their own are called "job 1", "job 2" ...
        short = [escape_label(name.removeprefix("job ")) for name in names]
        name = np.repeat(np.array(short, object), counts)
        full = np.repeat(filled, counts)
        row = np.searchsorted(self.nodes, parts["node"])
        for k in np.unique(look).tolist():
            for kind in (False, True):
                some = (look == k) & (full == kind)
                _boxes(self.ax, parts[some], row[some], self.edges, STYLES[k], kind)
        if not 0 < full.sum() <= LABELLED:
            return told
        inch = np.ptp(self.ax.get_xlim()) / (0.9 * WIDTH)
        fonts = fit_font_sizes((1 - 2 * PAD) * np.diff(self.edges))
        labels = zip(parts, row, name.tolist(), look, window, full, strict=True)
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
            told[mine] = True
        return told


def _boxes(
    ax: Axes,
    parts: NDArray[np.void],
    row: NDArray[np.intp],
    edges: NDArray[np.float64],
    look: tuple[str, str],
    filled: bool,
) -> None:
    """One collection of rectangles: filled, or their outlines."""
    with extra():
        from matplotlib.collections import PolyCollection

    pad = PAD * (edges[row + 1] - edges[row])
    top, bottom = edges[row] + pad, edges[row + 1] - pad
    left, right = parts["start"], parts["end"]
    colour, hatch = look
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
    """Draw what every limit would give, the limit and what was chosen.

    Parameters
    ----------
    schedule : Schedule
        Of alternatives: not one that was only backfilled.
    path : path, optional
        Save the picture there too: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown, or no alternatives were chosen from.
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

"""Pictures of a batch: its alternatives and what was chosen, and the trade-off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern.extras import extra
from slotkern.plotting.gantt import plot_gantt
from slotkern.plotting.layout import AXES_TALL, ROW_TALL, row_edges
from slotkern.plotting.style import (
    FAINT,
    FONT,
    INK,
    WINDOW_COLOURS,
    as_written,
    boxes,
    checked_path,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from slotkern.batch.schedule import Schedule

__all__ = ["plot_schedule", "plot_trade_off"]

LABELLED = 400


def plot_schedule(
    schedule: Schedule,
    *,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw all alternatives of a batch in outline and the chosen ones filled.

    This is figure 2 of the paper. Chosen parts carry the number of their job, counted
    from 1 in the order of the batch.

    Parameters
    ----------
    schedule : Schedule
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
    target = checked_path(path)
    done = int(schedule.scheduled.sum())
    words = f"{done} of {len(schedule)} jobs, {len(schedule.alternatives)} alternatives"
    figure = plot_gantt(schedule.slots, title=title or words)
    ax = figure.axes[0]
    nodes = np.unique(schedule.slots["node"])
    tall = min(ROW_TALL * max(nodes.size, 1), AXES_TALL)
    edges = row_edges(np.zeros(nodes.size, bool), tall)
    found = schedule.alternatives
    parts, counts = found.parts, np.diff(found.first)
    job = np.repeat(schedule.owner, counts)
    chosen = np.repeat(
        np.isin(np.arange(len(found)), schedule.chosen[schedule.scheduled]), counts
    )
    row = np.searchsorted(nodes, parts["node"])
    for k, colour in enumerate(WINDOW_COLOURS):
        mine = job % len(WINDOW_COLOURS) == k
        _boxes(ax, parts[mine & ~chosen], row[mine & ~chosen], edges, colour, False)
        _boxes(ax, parts[mine & chosen], row[mine & chosen], edges, colour, True)
    if 0 < chosen.sum() <= LABELLED:
        for part, at, name in zip(
            parts[chosen], row[chosen], (job[chosen] + 1).tolist(), strict=True
        ):
            middle = (part["start"] + part["end"]) / 2, (edges[at] + edges[at + 1]) / 2
            ax.annotate(
                str(name),
                middle,
                ha="center",
                va="center_baseline",
                fontsize=FONT - 2,
                color="white",
                zorder=7,
            )
    return save_figure(figure, target)


def _boxes(
    ax: Axes,
    parts: NDArray[np.void],
    row: NDArray[np.intp],
    edges: NDArray[np.float64],
    colour: str,
    filled: bool,
) -> None:
    """One collection of rectangles: filled, or their outlines."""
    with extra():
        from matplotlib.collections import PolyCollection

    pad = 0.12 * (edges[row + 1] - edges[row])
    top, bottom = edges[row] + pad, edges[row + 1] - pad
    left, right = parts["start"], parts["end"]
    ax.add_collection(
        PolyCollection(
            boxes(left, right, top, bottom),
            facecolors=colour if filled else "none",
            edgecolors="white" if filled else colour,
            linewidths=0.6 if filled else 0.8,
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
    target = checked_path(path)
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
    ax.set_xlabel(as_written(f"{schedule.under} of the chosen windows"), fontsize=FONT)
    ax.set_ylabel(as_written(schedule.target), fontsize=FONT)
    ax.tick_params(labelsize=FONT - 1)
    ax.spines[["top", "right"]].set_visible(False)
    return save_figure(figure, target)

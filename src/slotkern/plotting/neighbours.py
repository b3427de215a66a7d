"""A picture of windows between adjacent tasks, and their distances in time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slotkern.foundation.checks import hint_keywords
from slotkern.foundation.extras import extra
from slotkern.plotting.layout import (
    WindowLike,
    Windows,
    label_windows,
    require_span_fields,
)
from slotkern.plotting.style import (
    BUSY,
    FAINT,
    FONT,
    FREE,
    INK,
    WINDOW_COLOURS,
    check_picture_path,
    escape_label,
    new_figure,
    save_figure,
)
from slotkern.plotting.times import TimeAxis, first_context, parse_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slotkern.foundation.context import SlotContext
    from slotkern.typing import Time

__all__ = ["plot_neighbours"]

# Inches: height of a row, margins above and below the rows, width of the picture.
ROW, MARGINS, WIDTH = 0.46, 1.15, 9.0


@hint_keywords
def plot_neighbours(
    slots: Any,
    windows: Windows,
    *,
    tasks: npt.NDArray[Any] | None = None,
    horizon: Time | None = None,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the parts of windows as hollow boxes between the tasks next to them.

    Arrows show the time from the previous task, or the edge, to each part, and from the
    part to the next task. The mean of the shorter ones is maximized by the criterion
    ``"dependable"``, the mean of the longer ones is minimized by ``"coordinated"``; the
    heading shows both. Each window has a panel with only its own nodes.

    Parameters
    ----------
    slots : structured array or SlotPool
        The free slots that contain the windows.
    windows : Window, iterable of Window, or mapping of name to Window
        As for `plot_gantt`.
    tasks : structured array, optional
        Busy spans: fields node, start, end. By default all time that is not free is
        busy.
    horizon : float or date, optional
        Right edge; by default the latest finite end of a slot or task.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.
    title : str, optional
        Text above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is no window, no slot contains a part, or the suffix is unknown.
    TypeError
        As `plot_gantt`.
    ModuleNotFoundError
        If matplotlib is not installed.

    Notes
    -----
    O(m + n) for m slots and tasks and n parts. Figure 1 of "Dependable and coordinated
    resources allocation algorithms".

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=[0, 5], end=[40, 60], performance=1,
    ...                       price=1)
    >>> window = sk.find_window(slots, sk.Request(2, 10), "dependable")
    >>> figure = sk.plot_neighbours(slots, window)
    >>> figure.axes[0].get_title(loc="left")
    'nearest task 2.5 away, farthest 35, on average'
    """
    target = check_picture_path(path)
    free = require_span_fields("slots", getattr(slots, "slots", slots))
    if tasks is not None:
        require_span_fields("tasks", tasks)
    named = label_windows(windows)
    if not named:
        raise ValueError("there is no window to draw")
    context = first_context(slots, *named.values())
    enclosing = {name: _enclosing_slots(free, window) for name, window in named.items()}
    ends = [free["end"]] if tasks is None else [free["end"], tasks["end"]]
    every_end = np.concatenate(ends)
    latest = float(every_end[np.isfinite(every_end)].max(initial=0.0))
    last = max([latest, *(float(w.finish) for w in named.values())])
    span = (
        float(min(0.0, free["start"].min())),
        last if horizon is None else parse_time(context.clock, horizon, "horizon"),
    )
    times = TimeAxis(context.clock, *span)

    rows = [len(window.slots) for window in named.values()]
    tall = sum(ROW * count + MARGINS for count in rows)
    figure = new_figure(WIDTH, tall, dpi=150)
    panels = figure.subplots(len(named), 1, squeeze=False, height_ratios=rows)[:, 0]
    for i, (panel, (name, window)) in enumerate(
        zip(panels, named.items(), strict=True)
    ):
        colour = WINDOW_COLOURS[i % len(WINDOW_COLOURS)]
        _draw(panel, free, enclosing[name], window, tasks, span, colour)
        panel.set_yticks(range(len(window.slots)), _nodes(window, context))
        times.apply_to(panel)
        panel.set_xlabel("")
        before, after = _gaps(window, enclosing[name])
        words = (
            f"nearest task {np.minimum(before, after).mean():.4g} away, farthest "
            f"{np.maximum(before, after).mean():.4g}, on average"
        )
        if isinstance(windows, Mapping) or len(named) > 1:
            words = f"{name}: {words}"
        panel.set_title(words, loc="left", fontsize=FONT + 1, color=INK)
    panels[-1].set_xlabel(times.label, fontsize=FONT, color=INK)
    _legend(panels[0], WINDOW_COLOURS[0])
    if title:
        figure.suptitle(
            escape_label(title), fontsize=FONT + 2.5, color=INK, ha="left", x=0.01
        )
    return save_figure(figure, target)


def _nodes(window: WindowLike, context: SlotContext) -> list[str]:
    """Return the names or ids of the nodes of a window."""
    ids = window.slots["node"]
    return [
        escape_label(each)
        for each in (context.machine.names[ids] if context.machine else ids)
    ]


def _enclosing_slots(free: npt.NDArray[Any], window: WindowLike) -> npt.NDArray[Any]:
    """Return the free slot that contains each part; ValueError if there is none."""
    found = []
    for part in window.slots:
        mine = (free["node"] == part["node"]) & (free["start"] <= part["start"])
        rows = np.flatnonzero(mine & (free["end"] >= part["end"]))
        if not rows.size:
            raise ValueError(
                f"no slot of node {part['node']} contains the window's part from "
                f"{part['start']} to {part['end']}"
            )
        found.append(rows[-1])
    return np.asarray(free[found])


def _gaps(
    window: WindowLike, enclosing: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the time since the previous and until the next task of each part."""
    parts = window.slots
    return parts["start"] - enclosing["start"], enclosing["end"] - parts["end"]


def _draw(
    ax: Axes,
    free: npt.NDArray[Any],
    enclosing: npt.NDArray[Any],
    window: WindowLike,
    tasks: npt.NDArray[Any] | None,
    span: tuple[float, float],
    colour: str,
) -> None:
    """Draw one row per part: tasks, free time, the part, and an arrow on each side."""
    first, last = span
    parts = window.slots
    for y, (part, slot) in enumerate(zip(parts, enclosing, strict=True)):
        mine = free[free["node"] == part["node"]]
        under = FREE if tasks is not None else BUSY
        ax.barh(y, last - first, 0.6, first, color=under, zorder=1)
        if tasks is None:
            spans, shade = mine, FREE
        else:
            spans, shade = tasks[tasks["node"] == part["node"]], BUSY
        left, right = (np.clip(spans[end], first, last) for end in ("start", "end"))
        ax.barh([y] * len(spans), right - left, 0.6, left, color=shade, zorder=2)
        box: Any = {"color": "white", "ec": colour, "linewidth": 1.6, "zorder": 4}
        ax.barh(y, part["end"] - part["start"], 0.6, part["start"], **box)
        for begin, end, side in (
            (slot["start"], part["start"], "right"),
            (part["end"], slot["end"], "left"),
        ):
            _arrow(ax, float(begin), float(end), y, last, side)
    ax.set_xlim(first, last)
    ax.set_ylim(len(parts) - 0.5, -0.6)
    ax.set_ylabel("node", fontsize=FONT, color=INK)
    ax.tick_params(axis="both", length=0, labelsize=FONT - 0.5)
    ax.tick_params(axis="x", length=3, color=FAINT)
    ax.grid(visible=False)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def _arrow(
    ax: Axes, begin: float, end: float, y: float, last: float, side: str
) -> None:
    """Draw an arrow from `begin` to `end` with its length; nothing if it is empty.

    The text is above the row and aligned away from the part: it may be wider than the
    arrow and must not cover the part or the task.
    """
    if end <= begin:
        return
    shown = min(end, last)
    ax.annotate(
        "",
        (shown, y),
        (begin, y),
        arrowprops={
            "arrowstyle": "<->",
            "color": INK,
            "lw": 0.8,
            "shrinkA": 0,
            "shrinkB": 0,
        },
        zorder=5,
    )
    ax.annotate(
        f"{end - begin:.4g}",
        (end if side == "right" else begin, y - 0.3),
        xytext=(0, 1),
        textcoords="offset points",
        ha=side,
        va="bottom",
        fontsize=FONT - 1.5,
        color=INK,
        zorder=6,
    )


def _legend(ax: Axes, colour: str) -> None:
    """Draw the legend above the top right corner."""
    with extra():
        from matplotlib.patches import Patch

    ax.legend(
        handles=[
            Patch(facecolor=BUSY, label="task"),
            Patch(facecolor=FREE, edgecolor=FAINT, linewidth=0.5, label="free"),
            Patch(facecolor="white", edgecolor=colour, linewidth=1.6, label="window"),
        ],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3,
        frameon=False,
        fontsize=FONT,
        labelcolor=INK,
        handlelength=1.2,
        borderaxespad=0.2,
    )

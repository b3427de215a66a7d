"""A picture of a Pareto front: one point per window, one axis per criterion."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern.foundation.extras import extra
from slotkern.fronts import Front
from slotkern.plotting.style import (
    FREE,
    INK,
    WINDOW_COLOURS,
    boxes,
    check_picture_path,
    escape_label,
    label_axes,
    new_figure,
    save_axes,
)
from slotkern.plotting.times import TICKS, TimeAxis, time_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_front"]

LINE = WINDOW_COLOURS[0]


def plot_front(
    front: Front,
    *,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the windows of a front by their two values, and gaps that may hold more.

    The line is the best second value for each first value, a step function. A gap that
    may contain further windows is shaded down to the bounds of `Front.between`. Hollow
    points are not proven.

    Parameters
    ----------
    front : Front
        The result of `slotkern.pareto`.
    title : str, optional
        Text above the picture.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default a new figure.

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
    with extra():
        from matplotlib.collections import PolyCollection

    target = check_picture_path(path)
    if ax is None:
        ax = new_figure(7, 4).subplots()
    x, y = front.values.T
    open_gaps = ~np.isnan(front.between).all(axis=1)
    if open_gaps.any():
        low = front.between[open_gaps]
        right, top = x[1:][open_gaps], y[:-1][open_gaps]
        corners = boxes(low[:, 0], right, low[:, 1], top)
        label = "may hold more windows"
        ax.add_collection(
            PolyCollection(corners, facecolor=FREE, edgecolor="#C5D3E0", label=label)
        )
    ax.step(x, y, where="post", color=LINE, linewidth=1.2, zorder=2)
    label = "windows that no other dominates"
    for proven in (True, False):
        some = front.proven == proven
        if some.any():
            face = LINE if proven else "white"
            style: Any = {"markerfacecolor": face, "color": LINE, "zorder": 3}
            ax.plot(x[some], y[some], "o", **style, label=label)
        label = "not proven"
    _format_axes(ax, front)
    if len(front):
        ax.legend(frameon=False)
    return save_axes(ax, target, title)


def _format_axes(ax: Axes, front: Front) -> None:
    """Label the axes; with a clock, add dates and units."""
    with extra():
        from matplotlib.ticker import FuncFormatter

        from slotkern.plotting.dates import DateScale, DateTicks

    clock, labels = front.clock, []
    for name in front.by:
        text = escape_label(name.replace("_", " "))
        if clock is not None and name in ("runtime", "processor_time"):
            text += f" ({clock.unit})"
        labels.append(text)
    label_axes(ax, *labels)
    if clock is None:
        return
    for k, name in enumerate(front.by):
        if name not in ("start", "finish"):
            continue
        times = TimeAxis(clock, *time_bounds(front.values[:, k]))
        label = times.label.replace("time", name, 1)
        if k == 0:
            times.apply_to(ax)
            ax.set_xlabel(label, fontsize=ax.yaxis.label.get_fontsize(), color=INK)
        else:
            ax.yaxis.set_major_locator(DateTicks(DateScale(clock), TICKS))
            ax.yaxis.set_major_formatter(
                FuncFormatter(lambda y, _, t=times: t.format(y))
            )
            ax.set_ylabel(label, color=INK)

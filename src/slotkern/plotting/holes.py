"""A picture of holes: how long how many nodes are free from one time on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from slotkern.foundation.extras import extra
from slotkern.plotting.style import (
    FREE,
    WINDOW_COLOURS,
    check_picture_path,
    label_axes,
    new_figure,
    save_axes,
)
from slotkern.plotting.times import TimeAxis, time_bounds
from slotkern.search.holes import Holes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_holes"]

LINE = WINDOW_COLOURS[0]


def plot_holes(
    holes: Holes,
    *,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the number of free nodes over the end of a window that starts now.

    Every window below the line fits, and none above it. Time without end is cut at the
    right edge.

    Parameters
    ----------
    holes : Holes
        The result of `slotkern.holes`.
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
        from matplotlib.ticker import MaxNLocator

    target = check_picture_path(path)
    if ax is None:
        ax = new_figure(7, 3.5).subplots()
    first, last = time_bounds(np.append(holes.frontier["end"], holes.start))
    ends = np.minimum(holes.frontier["end"][::-1], last)
    edges, nodes = np.append(first, ends), holes.frontier["nodes"][::-1]
    ax.stairs(nodes, edges, fill=True, facecolor=FREE)
    ax.stairs(nodes, edges, baseline=None, color=LINE, linewidth=1.2)
    label_axes(ax, "", "nodes free until then")
    TimeAxis(holes.clock, first, last).apply_to(ax)
    ax.set_xlim(first, last)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return save_axes(ax, target, title)

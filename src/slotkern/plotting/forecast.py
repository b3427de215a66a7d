"""A picture of a forecast: the share of runs in which the job has started."""

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
from slotkern.replays.forecast import Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_forecast"]

LINE, PROMISE = WINDOW_COLOURS[0], WINDOW_COLOURS[1]


def plot_forecast(
    forecast: Forecast,
    *,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the share of runs in which the job has started, the band and the promise.

    Parameters
    ----------
    forecast : Forecast
        The result of `slotkern.forecast`.
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
        from matplotlib.ticker import PercentFormatter

    target = check_picture_path(path)
    if ax is None:
        ax = new_figure(7, 3.5).subplots()
    starts = np.sort(forecast.starts)
    first, last = time_bounds(np.append(starts, [forecast.now, forecast.promise]))
    last += (last - first) * 0.03  # the promise is not on the edge
    low, high = forecast.band
    ax.axvspan(low, high, color=FREE, label="80% of runs")
    shares = np.arange(1, len(starts) + 1) / len(starts)
    edges = np.concatenate([[first], starts, [last]])
    ax.step(edges, [0.0, *shares, 1.0], where="post", color=LINE, label="started")
    ax.axvline(
        forecast.promise, color=PROMISE, linestyle="--", label="promise, as requested"
    )
    label_axes(ax, "", "runs in which the job has started")
    TimeAxis(forecast.clock, first, last).apply_to(ax)
    ax.set_xlim(first, last)
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.legend(frameon=False, loc="upper left")
    return save_axes(ax, target, title)

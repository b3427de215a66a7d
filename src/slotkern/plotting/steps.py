"""A picture of a search by value: the best value of each step of the sweep."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from slotkern._kernels.request import Request
from slotkern._kernels.search import find_window
from slotkern._kernels.slots import prepare_snapshot
from slotkern.foundation.checks import hint_keywords
from slotkern.plotting.style import (
    check_picture_path,
    escape_label,
    new_figure,
    save_axes,
)
from slotkern.plotting.times import TimeAxis, first_context, time_bounds
from slotkern.search.delegated import step_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slotkern.typing import Placement, Shape, Slots, Span, ValueCriterion

__all__ = ["plot_steps"]

LINE, CHOSEN = "#4c78a8", "#d62728"


@hint_keywords
def plot_steps(
    slots: Slots,
    request: Request,
    criterion: ValueCriterion,
    *,
    shape: Shape = "square",
    placement: Placement = "slot-start",
    span: Span = "window",
    max_work: int | None = None,
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the value of the best window of each step, and mark the optimum.

    Parameters
    ----------
    slots, request, criterion, shape, placement, span, max_work
        As for `step_values`.
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
        If the suffix of `path` is unknown, or the criterion has no value at a step that
        is proven within `max_work`.
    ModuleNotFoundError
        If matplotlib is not installed.

    Notes
    -----
    Placement criteria are means over the parts, others sums. Complexity: see
    `step_values`.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=[0, 0, 4], end=20, performance=2,
    ...                       price=1, q=[1.0, 2.0, 5.0])
    >>> figure = sk.plot_steps(slots, sk.Request(2, 8), "q")
    >>> figure.axes[0].get_xlabel()
    'start of the window'
    """
    target = check_picture_path(path)
    pool = prepare_snapshot(slots)
    starts, values = step_values(
        pool,
        request,
        criterion,
        shape=shape,
        placement=placement,
        span=span,
        max_work=max_work,
    )
    window = find_window(
        pool, request, criterion, shape=shape, placement=placement, span=span
    )
    if ax is None:
        ax = new_figure(8, 3.2).subplots()
    times = TimeAxis(first_context(slots)[0], *time_bounds(starts))
    values = np.where(np.isfinite(values), values, np.nan)
    ax.step(starts, values, where="post", color=LINE, linewidth=1.2)
    if window is not None:
        ax.plot(window.start, window.value, "o", color=CHOSEN, markersize=7)
        ax.annotate(
            f"{window.value:g} at {_when(times, window.start)}",
            (window.start, window.value),
            textcoords="offset points",
            xytext=(8, 6),
            color=CHOSEN,
        )
        ax.set_ylabel(escape_label(f"best {window.criterion}"))
    if times.clock is not None:
        times.apply_to(ax)
    ax.set_xlabel(times.label.replace("time", "start of the window"))
    ax.margins(y=0.15)
    ax.spines[["top", "right"]].set_visible(False)
    return save_axes(ax, target)


def _when(times: TimeAxis, start: float) -> str:
    return f"{start:g}" if times.clock is None else times.format(start)

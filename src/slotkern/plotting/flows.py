"""Pictures of job flows: load of a trace, comparison of policies, Gantt of a replay."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slotkern.foundation.extras import extra
from slotkern.plotting.style import (
    BUSY,
    INK,
    WINDOW_COLOURS,
    boxes,
    check_picture_path,
    escape_label,
    label_axes,
    new_figure,
    save_figure,
)
from slotkern.plotting.times import TimeAxis, parse_time, time_bounds
from slotkern.replays.result import Replay
from slotkern.traces.summary import load_over_time
from slotkern.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slotkern.machine.clock import Clock
    from slotkern.typing import Time

__all__ = ["plot_replay_gantt", "plot_replays", "plot_trace"]

DAY = 86400.0
POINTS = 300


def plot_trace(trace: Trace, *, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the processors in use over time, as the trace records them.

    Parameters
    ----------
    trace : Trace
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        Means over 400 equal spans of time, titled by the name of the file; the line is
        the size of the machine, if the header contains it.

    Raises
    ------
    ValueError
        If no job of the trace has a recorded run.
    """
    target = check_picture_path(path)
    edges, load = load_over_time(trace)
    if edges[0] == edges[-1]:
        raise ValueError(
            "no job of the trace has a recorded run, so there is no load to draw"
        )
    figure = new_figure(9, 3)
    ax = figure.add_subplot()
    unit = _set_time_axis(ax, trace.clock, edges)
    ax.stairs(load, edges / unit, fill=True, color=WINDOW_COLOURS[0], alpha=0.75)
    if trace.processors:
        ax.axhline(trace.processors, color=INK, linewidth=0.8)
        ax.set_ylim(0, max(trace.processors, load.max(initial=0)) * 1.05)
    hours = (edges[1] - edges[0]) / 3600
    _label(ax, ax.get_xlabel(), f"processors in use,\nmeans of {hours:.3g} h")
    if trace.source:
        ax.set_title(escape_label(Path(trace.source).name), loc="left", fontsize=10)
    return save_figure(figure, target)


def plot_replays(
    replays: Mapping[str, Replay], *, path: str | os.PathLike[str] | None = None
) -> Figure:
    """Draw policies in one picture: utilization, queue length, bounded slowdown.

    Parameters
    ----------
    replays : mapping of str to Replay
        Replays by the name in the legend.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        Utilization and queue length are means over 300 equal spans of time; the third
        panel shows the share of jobs whose bounded slowdown exceeds a value. The title
        is the name of the trace's file if all replays have the same.
    """
    target = check_picture_path(path)
    figure = new_figure(9, 8.2)
    use, queue, slow = figure.subplots(3)
    jobs = [done.jobs for done in replays.values() if len(done)]
    clocks = {done.trace.clock for done in replays.values()}
    clock = clocks.pop() if len(clocks) == 1 else None
    span = np.array([t for j in jobs for t in (j["submit"][0], j["end"].max())])
    unit = _set_time_axis(use, clock, span)
    _set_time_axis(queue, clock, span)
    looks = ("-", "--", "-.", ":")
    for k, (name, done) in enumerate(replays.items()):
        look = {
            "color": WINDOW_COLOURS[k % len(WINDOW_COLOURS)],
            "linestyle": looks[k // len(WINDOW_COLOURS) % len(looks)],
            "linewidth": 1.1,
            "label": escape_label(name),
        }
        if not len(done):
            continue
        edges = np.linspace(done.jobs["submit"][0], done.jobs["end"].max(), POINTS + 1)
        middle = (edges[1:] + edges[:-1]) / 2 / unit
        size = done.cluster.processors.sum()
        use.plot(middle, 100 * _means(done.utilization(), edges) / size, **look)
        queue.plot(middle, _means(done.queue_length(), edges), **look)
        slowdown = np.sort(done.jobs["bounded_slowdown"])
        share = 100 * (1 - np.arange(len(slowdown)) / len(slowdown))
        slow.plot(slowdown, share, **look)
    _label(use, use.get_xlabel(), "utilization, %")
    _label(queue, queue.get_xlabel(), "waiting jobs")
    _label(slow, "bounded slowdown", "jobs above, %")
    use.set_ylim(0, 103)
    queue.set_ylim(bottom=0)
    slow.set_xscale("log")
    slow.set_ylim(0, 103)
    sources = {Path(done.trace.source).name for done in replays.values()}
    source = sources.pop() if len(sources) == 1 else ""
    if replays:
        figure.legend(
            *use.get_legend_handles_labels(),
            loc="outside upper center",
            title=escape_label(source) or None,
            ncols=min(len(replays), 6),
            frameon=False,
            fontsize=9,
        )
    return save_figure(figure, target)


def plot_replay_gantt(
    replay: Replay,
    start: Time,
    end: Time,
    *,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw which job runs on which processor in [start, end).

    Parameters
    ----------
    replay : Replay
        A replay with placed jobs (``nodes=True``).
    start, end : float or date
        Seconds of the trace, or dates if its header contains the start time.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        One colour per user; sites are stacked; spans with blocked processors have a
        grey background.

    Raises
    ------
    ValueError
        For a replay without placed jobs, and for an empty range.
    """
    with extra():
        from matplotlib.collections import PolyCollection

    target = check_picture_path(path)
    clock = replay.trace.clock
    start, end = parse_time(clock, start, "start"), parse_time(clock, end, "end")
    if not start < end:
        raise ValueError(f"start must be before end, got start={start} and end={end}")
    if not replay.has_nodes:
        raise ValueError(
            "this replay did not place jobs (nodes=False); replay with nodes=True"
        )
    jobs, cluster = replay.jobs, replay.cluster
    seen = np.flatnonzero((jobs["start"] < end) & (jobs["end"] > start))
    job, low, size = replay.parts(seen)
    left = jobs["start"][job].clip(min=start)
    right = jobs["end"][job].clip(max=end)
    height = int(cluster.processors.sum())
    figure = new_figure(10, 4.5)
    ax = figure.add_subplot()
    colours = np.array(WINDOW_COLOURS)[jobs["user"][job] % len(WINDOW_COLOURS)]
    ax.add_collection(
        PolyCollection(
            boxes(left, right, low, low + size),
            facecolors=colours.tolist(),
            edgecolors="white",
            linewidths=0.4,
        )
    )
    for span in cluster.blocked:
        if span["start"] < end and span["end"] > start:
            ax.axvspan(span["start"], span["end"], color=BUSY, alpha=0.5, zorder=0)
    ax.set_xlim(start, end)
    ax.set_ylim(0, height)
    _label(ax, "seconds", "processor")
    if clock is not None:
        _apply_dates(ax, TimeAxis(clock, start, end))
    return save_figure(figure, target)


def _set_time_axis(
    ax: Axes, clock: Clock | None, times: npt.NDArray[np.float64]
) -> float:
    """Set up the horizontal axis and return the divisor of times in seconds.

    With a clock the axis has dates and the divisor is 1, else the axis is in days.
    """
    if clock is None:
        ax.set_xlabel("days", color=INK)
        return DAY
    _apply_dates(ax, TimeAxis(clock, *time_bounds(times)))
    return 1.0


def _apply_dates(ax: Axes, times: TimeAxis) -> None:
    """Show dates, with a label of the same size as that of the other axis."""
    times.apply_to(ax)
    ax.xaxis.label.set_fontsize(ax.yaxis.label.get_fontsize())


def _label(ax: Axes, across: str, up: str) -> None:
    label_axes(ax, across, up)
    ax.margins(x=0)


def _means(steps: npt.NDArray[Any], edges: npt.NDArray[np.float64]) -> Any:
    """Return the mean of a step function between adjacent edges."""
    time, value = steps["time"], steps["value"]
    area = np.concatenate(([0.0], np.cumsum(value[:-1] * np.diff(time))))
    return np.diff(np.interp(edges, time, area)) / np.maximum(np.diff(edges), 1e-9)

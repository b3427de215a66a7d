"""Pictures of communities: comparison of scenarios, job states, flow of jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern.communities.result import MESSAGES, CommunityRun
from slotkern.plotting.style import (
    FAINT,
    INK,
    WINDOW_COLOURS,
    check_picture_path,
    escape_label,
    label_axes,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_communities", "plot_flow", "plot_states"]

DAY = 86400.0
MOST_LINES = 200
#: Metrics of resource use and their factors.
USE = {"utilization": 100.0, "uptime": 1 / DAY}
#: States of jobs and their labels.
STATES = {
    **{state: state for state in ("completed", "running", "waiting")},
    "suspended": "suspended, never run",
}
#: The axis of days ends at this multiple of the median length of the runs, or with the
#: longest run.
LONGEST = 1.5


def plot_communities(
    runs: Mapping[str, CommunityRun],
    *,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw a comparison of scenarios, as in the paper on CASA.

    Parameters
    ----------
    runs : mapping of str to CommunityRun
        Runs by the name in the picture.
    title : str, optional
        Above all panels.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        Completed jobs, resource use, times, slowdown, messages per job by kind, and job
        states over time of the first run (figures 1 to 5 of the paper).

    Raises
    ------
    ValueError
        If there is no run.
    """
    target = check_picture_path(path)
    if not runs:
        raise ValueError("plot_communities needs at least one run, got none")
    figure = new_figure(10, 9)
    if title is not None:
        figure.suptitle(escape_label(title), color=INK, fontsize=11)
    grid = figure.subplots(3, 2)
    names = [escape_label(name) for name in runs]
    found = [run.metrics() for run in runs.values()]
    share = {"completed": [100 * m["completion"] for m in found]}
    _bars(grid[0, 0], names, share, "completed jobs, %")
    grid[0, 0].set_ylim(0, 100)
    use, up = ([scale * m[key] for m in found] for key, scale in USE.items())
    _side_by_side(grid[0, 1], names, ("utilization, %", use), ("uptime, days", up))
    times = {key: [m[key] for m in found] for key in ("response", "waiting")}
    _bars(grid[1, 0], names, times, "seconds")
    _bars(grid[1, 1], names, {"slowdown": [m["slowdown"] for m in found]}, "slowdown")
    kinds = {kind.replace("_", " "): [m[kind] for m in found] for kind in MESSAGES}
    _bars(grid[2, 0], names, kinds, "messages a job")
    first = next(iter(runs.values()))
    steps = first.states()
    ax = grid[2, 1]
    below = np.zeros(len(steps))
    for (state, words), colour in zip(STATES.items(), WINDOW_COLOURS, strict=False):
        above = below + steps[state]
        ax.fill_between(
            steps["time"] / DAY, below, above, step="post", color=colour, label=words
        )
        below = above
    ax.set_title(f"jobs of {names[0]} by state", color=INK, fontsize=10)
    _finish(ax, "days", "jobs", "upper left")
    return save_figure(figure, target)


def plot_states(
    runs: Mapping[str, Sequence[CommunityRun]],
    *,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw the number of jobs in each state over time, as in figure 3 of the paper.

    Parameters
    ----------
    runs : mapping of str to sequence of CommunityRun
        Runs of several seeds by name; one panel per name.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        Days since the first submission. Thin lines are runs, thick lines their means;
        the dashed line, with the axis on the right, is the mean share of processors
        in use. The axis ends at 1.5 times the median length of the runs; the title
        counts the longer runs.

    Raises
    ------
    ValueError
        If there is no run, or a name has none.
    """
    target = check_picture_path(path)
    if not runs or not all(runs.values()):
        raise ValueError("plot_states needs at least one run for each name")
    columns = min(2, len(runs))
    rows = -(-len(runs) // columns)
    figure = new_figure(1 + 4.5 * columns, 0.8 + 3 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in panels[len(runs) :]:
        ax.set_axis_off()
    for ax, (name, some) in zip(panels, runs.items(), strict=False):
        size = float(some[0].nodes["processors"].sum())
        longer = _lines(ax, [run.states() for run in some], size)
        title = f"{name}\n{longer}" if longer else name
        ax.set_title(escape_label(title), color=INK, fontsize=10)
        _finish(ax, "days", "jobs", None)
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(STATES) + 1,
        fontsize=8,
        frameon=False,
    )
    return save_figure(figure, target)


def _lines(ax: Axes, found: Sequence[Any], size: float) -> str:
    """Draw the states of all runs, their means, and the share of processors in use.

    Returns a text that counts the runs longer than the axis, "" if there is none.
    """
    found = [steps for steps in found if len(steps)]
    since = [(steps["time"] - steps["time"][0]) / DAY for steps in found]
    lasts = [float(time[-1]) for time in since]
    last = min(max(lasts, default=0), LONGEST * float(np.median(lasts or [0])))
    at = np.linspace(0, last, 500)

    def counts(state: str) -> list[Any]:
        return [
            steps[state][np.searchsorted(time, at, side="right") - 1]
            for time, steps in zip(since, found, strict=True)
        ]

    for (state, words), colour in zip(STATES.items(), WINDOW_COLOURS, strict=False):
        some = counts(state)
        for count in some if len(some) > 1 else ():
            ax.plot(at, count, color=colour, linewidth=0.4, alpha=0.4)
        mean = np.mean(some, axis=0) if some else np.zeros(len(at))
        ax.plot(at, mean, color=colour, linewidth=1.5, label=words)
    if found:
        other: Any = ax.twinx()
        used = 100 * np.mean(counts("busy"), axis=0) / size
        style: dict[str, Any] = {"color": INK, "linewidth": 1, "linestyle": "--"}
        other.plot(at, used, **style)
        ax.plot([], [], **style, label="processors in use, %")
        label_axes(other, "", "processors in use, %")
        other.spines["right"].set_visible(True)
        other.set_ylim(bottom=0)
    beyond = [each for each in lasts if each > last]
    if not beyond:
        return ""
    more = f"{len(beyond)} of {len(lasts)} runs go on"
    return f"{more}, to day {max(beyond):.0f} at most"


def plot_flow(
    run: CommunityRun,
    *,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw the nodes in a circle and the jobs that moved between them.

    Parameters
    ----------
    run : CommunityRun
    title : str, optional
        Text above the picture; by default the name of the run.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        Arrows lead from the home of jobs to the node that ran them; their width is
        proportional to the number of jobs. Only the 200 widest are drawn; ties are
        broken at random with a fixed seed. The area of a node grows with its number of
        processors, its colour is that of its label.
    """
    target = check_picture_path(path)
    figure = new_figure(7, 7)
    ax = figure.add_subplot()
    size = len(run.nodes)
    angle = 2 * np.pi * np.arange(size) / size
    across, up = np.cos(angle) * (size > 1), np.sin(angle) * (size > 1)
    done = run.jobs[run.completed]
    moved = done["home"] != done["node"]
    pair = np.stack((done["home"][moved], done["node"][moved]), axis=1)
    pairs, counts = np.unique(pair, axis=0, return_counts=True)
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(counts))
    order = order[np.argsort(-counts[order], kind="stable")][:MOST_LINES]
    most = counts.max(initial=1)
    for (home, node), count in zip(pairs[order], counts[order], strict=True):
        style = {"arrowstyle": "-|>", "linewidth": 3 * count / most + 0.1}
        ax.annotate(
            "",
            xy=(across[node], up[node]),
            xytext=(across[home], up[home]),
            arrowprops={**style, "color": FAINT, "alpha": 0.5, "shrinkB": 6},
        )
    largest = min(400.0, (1000 / size) ** 2)  # area of a node, in points squared
    area = largest * (run.nodes["processors"] / run.nodes["processors"].max() + 0.03)
    for label in np.unique(run.nodes["label"]).tolist():
        mine = run.nodes["label"] == label
        colour = WINDOW_COLOURS[label % len(WINDOW_COLOURS)]
        words = f"label {label}"
        ax.scatter(across[mine], up[mine], area[mine], colour, zorder=3, label=words)
    if size <= 60:
        for node in range(size):
            ax.annotate(
                str(node),
                (across[node], up[node]),
                (18 * np.cos(angle[node]), 18 * np.sin(angle[node])),
                textcoords="offset points",
                ha="center",
                va="center",
                color=INK,
                fontsize=8,
            )
    legend = ax.legend(frameon=False, fontsize=8, loc="lower left")
    for handle in legend.legend_handles:
        handle.set_sizes([40])  # type: ignore[union-attr]
    shown = f"{int(counts[order].sum()):,} of {int(counts.sum()):,} jobs that left home"
    shown += "\nwidth of a line: jobs; area of a node: processors"
    ax.text(1.25, -1.25, shown, ha="right", color=INK, fontsize=8)
    ax.set_xlim(-1.25, 1.25)
    ax.set_ylim(-1.25, 1.25)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(escape_label(title or run.name), color=INK, fontsize=10)
    return save_figure(figure, target)


def _bars(ax: Axes, names: list[str], groups: Mapping[str, Any], what: str) -> None:
    width = 0.8 / len(groups)
    for k, (label, values) in enumerate(groups.items()):
        left = np.arange(len(names)) + (k - (len(groups) - 1) / 2) * width
        colour = WINDOW_COLOURS[k % len(WINDOW_COLOURS)]
        ax.bar(left, np.nan_to_num(values), width, color=colour, label=label)
    ax.set_xticks(np.arange(len(names)), names)
    ax.margins(y=0.25)  # for the legend
    _finish(ax, "", what, "best" if len(groups) > 1 else None)


def _side_by_side(
    ax: Axes, names: list[str], left: tuple[str, Any], right: tuple[str, Any]
) -> None:
    """Draw bars of two quantities, each with its own axis."""
    other: Any = ax.twinx()
    for k, (panel, (what, values)) in enumerate(((ax, left), (other, right))):
        at, colour = np.arange(len(names)) + 0.4 * k - 0.2, WINDOW_COLOURS[k]
        panel.bar(at, np.nan_to_num(values), 0.4, color=colour)
        panel.margins(y=0.25)
        label_axes(panel, "", what)
        panel.yaxis.label.set_color(colour)
    other.spines["right"].set_visible(True)
    ax.set_xticks(np.arange(len(names)), names)


def _finish(ax: Axes, across: str, up: str, legend: Any) -> None:
    """Label the axes; `legend` is the place of the legend, None for no legend."""
    label_axes(ax, across, up)
    if legend is not None:
        # The legend may cover areas.
        ax.legend(framealpha=0.8, edgecolor="none", fontsize=7, loc=legend)

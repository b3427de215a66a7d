"""Gantt pictures: which nodes are busy, which are free, and where the windows lie.

matplotlib is imported when the first picture is drawn, and pyplot never: a picture is a
:class:`matplotlib.figure.Figure` of its own, so nothing global changes and no display
is needed.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from slotkern.checks import hint_keywords, one_of
from slotkern.extras import extra
from slotkern.plotting.layout import (
    GUIDED,
    LABELLED_PARTS,
    LANE,
    LETTER,
    TEXT_LINE,
    WIDTH,
    Layout,
    WindowLike,
    Windows,
    bar_edges,
    compute_layout,
    find_room_ends,
    label_windows,
    require_span_fields,
)
from slotkern.plotting.style import (
    BUSY,
    FAINT,
    FONT,
    FREE,
    HATCHES,
    INK,
    LIGHT,
    WINDOW_COLOURS,
    boxes,
    check_picture_path,
    escape_label,
    new_figure,
    save_figure,
)
from slotkern.plotting.times import first_terms, parse_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slotkern.machine.terms import Terms
    from slotkern.typing import Time

__all__ = ["plot_gantt"]

# Inches: edges of boxes vanish in rows thinner than this.
EDGE_ROW = 0.1
LINE, LABEL_GAP = 0.07, 0.125
# What an entry of the legend takes beside its words.
HANDLE = 0.45


class FillStyle(NamedTuple):
    """How the boxes of one kind are filled."""

    colour: str
    hatch: str = ""


@hint_keywords
def plot_gantt(
    slots: Any,
    windows: Windows | None = None,
    *,
    tasks: npt.NDArray[Any] | None = None,
    horizon: Time | None = None,
    nodes: Literal["all", "used"] | Sequence[int] | Sequence[str] = "all",
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw nodes downwards and time across: busy grey, free light, windows in colour.

    Above the rows a line spans every window from start to finish and tells its name and
    both times; lines that leave each other room share one level. More than six windows
    are named on their bars instead, where these are wide and tall enough, or else
    above. The first 42 windows differ in colour or hatch. Rows become thinner as nodes
    become more, until the picture has reached its greatest height; the rows that hold
    parts of a window stay tall enough to read and keep their node's name. Where windows
    overlap on a node, its row is shared out between them.

    Slots with a clock have dates on the axis, in its zone, and those with a machine its
    names; what is drawn stays in the clock's numbers: ``clock.time("2026-10-25")``.

    Parameters
    ----------
    slots : structured array or SlotPool
        The free slots. A slot that ends at infinity is cut at the horizon.
    windows : Window, iterable of Window, or mapping of name to Window, optional
        Anything with ``start``, ``finish`` and ``slots`` (fields node, start, end) is a
        window; None among them is left out. Beside each its name is written: its key in
        a mapping, else what its request is called, else its criterion where these
        differ, else its number.
    tasks : structured array, optional
        What occupies the nodes: fields node, start, end. Without it, all the time of a
        row that is not free is drawn as busy.
    horizon : float or date, optional
        The right edge, in the slots' time units. By default the latest finite time.
    nodes : {"all", "used"} or sequence of int or str
        Which nodes have a row: all that anything is known of, those that the windows
        use, or these, by id or name.
    path : path, optional
        Save the picture there too: .png, .svg or .pdf. The file appears whole or not
        at all.
    ax : matplotlib.axes.Axes, optional
        Draw into these axes instead of a new figure.
    title : str, optional
        Written above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown, or the horizon is not a finite time after
        the first start; for nodes that the machine does not have.
    TypeError
        If slots or tasks have no fields node, start and end, or a window is none.
    ModuleNotFoundError
        If matplotlib is not installed.

    Notes
    -----
    O(s log s) for s slots, tasks and parts; one collection of rectangles per colour.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 1], start=[0, 0, 60], end=[90, 40, 100],
    ...                       performance=[1, 2, 2], price=[1, 2, 2])
    >>> figure = sk.plot_gantt(slots, horizon=100)
    >>> len(figure.axes)
    1
    """
    target = check_picture_path(path)
    free = require_span_fields("slots", getattr(slots, "slots", slots))
    if tasks is not None:
        require_span_fields("tasks", tasks)
    named = label_windows(windows)
    terms = first_terms(slots, *named.values())
    if horizon is not None:
        horizon = parse_time(terms[0], horizon, "horizon")
    only = _chosen(nodes, named, terms)
    if only is not None:
        free = free[np.isin(free["node"], only)]
        tasks = None if tasks is None else tasks[np.isin(tasks["node"], only)]
    size = None if ax is None else _inches(ax)
    plan = compute_layout(free, tasks, named, horizon, size, terms, only)

    if ax is None:
        height = plan.tall + plan.lanes * LANE + 0.95
        ax = new_figure(WIDTH, height, dpi=150).add_subplot()
    if tasks is None:
        whole = np.zeros(plan.nodes.size, free.dtype)
        whole["node"], whole["start"], whole["end"] = plan.nodes, plan.first, plan.last
        _boxes(ax, plan, whole, plan.rows_of(whole), FillStyle(BUSY), 1)
    else:
        _boxes(ax, plan, tasks, plan.rows_of(tasks), FillStyle(BUSY), 1)
    _boxes(ax, plan, free, plan.rows_of(free), FillStyle(FREE), 2)
    looks = [FillStyle(c, h) for h in HATCHES for c in WINDOW_COLOURS]
    looks *= -(-len(plan.named) // len(looks))
    _windows(ax, plan, looks)
    if 0 < plan.parts.size <= LABELLED_PARTS:
        _end_times(ax, plan, find_room_ends(plan, free))
    _window_lanes(ax, plan, looks)
    _names_on_bars(ax, plan, looks)
    ax.set_xlim(plan.first, plan.last)
    ax.set_ylim(plan.edges[-1], -plan.lanes * LANE)
    _dress(ax, plan)
    named_ones = len({c.window for c in plan.captions}) + len(
        {int(plan.parts["window"][label.part]) for label in plan.labels}
    )
    _legend(ax, len(plan.named), named_ones)
    figure = ax.figure.figure
    if title:
        lifted = _title(ax, plan, escape_label(title))
        if size is None:  # a picture of its own makes room
            figure.set_figheight(figure.get_figheight() + lifted)
    return save_figure(figure, target)


def _windows(ax: Axes, plan: Layout, looks: list[FillStyle]) -> None:
    """The parts of all windows, each window in its look."""
    window = plan.parts["window"]
    order = window.argsort(kind="stable")
    cuts = np.searchsorted(window[order], range(1, len(plan.named)))
    for mine, look in zip(np.split(order, cuts), looks, strict=False):
        lanes = plan.lane[mine], plan.of[mine]
        _boxes(ax, plan, plan.parts[mine], plan.row[mine], look, 4, lanes)


def _boxes(
    ax: Axes,
    plan: Layout,
    spans: npt.NDArray[Any],
    row: npt.NDArray[np.intp],
    look: FillStyle,
    order: int,
    lanes: tuple[Any, Any] = (0, 1),
) -> None:
    """The boxes of some spans, each in its row, or in its lane of it."""
    top, bottom = bar_edges(plan.edges, row, *lanes)
    left = np.clip(spans["start"], plan.first, plan.last)
    right = np.clip(spans["end"], plan.first, plan.last)
    _add_boxes(ax, left, right, top, bottom, look, order)


def _add_boxes(
    ax: Axes,
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    top: npt.NDArray[np.float64],
    bottom: npt.NDArray[np.float64],
    look: FillStyle,
    order: int,
) -> None:
    """One collection of rectangles; a white edge where rows are tall enough."""
    with extra():
        from matplotlib.collections import PolyCollection

    keep = right > left
    left, right, top, bottom = left[keep], right[keep], top[keep], bottom[keep]
    edged = bool(top.size) and float(np.median(bottom - top)) > EDGE_ROW
    ax.add_collection(
        PolyCollection(
            boxes(left, right, top, bottom),
            facecolors=look.colour,
            edgecolors="white" if edged or look.hatch else "none",
            linewidths=0.5 if edged else 0.0,
            hatch=look.hatch or None,
            antialiaseds=edged,
            zorder=order,
        ),
        autolim=False,
    )


def _end_times(ax: Axes, plan: Layout, limits: npt.NDArray[np.float64]) -> None:
    """Say of each part that ends before its window does when it ends.

    Beside it where it is free for long enough, else in it, else nowhere.
    """
    with extra():
        from matplotlib.patheffects import withStroke

    parts, middle = plan.parts, (plan.edges[plan.row] + plan.edges[plan.row + 1]) / 2
    finish = np.array([window.finish for window in plan.named.values()])
    early = (parts["end"] < finish[parts["window"]]) & (plan.of == 1)
    for part, limit, y in zip(parts[early], limits[early], middle[early], strict=True):
        words = plan.times.words(part["end"])
        room = plan.inch * (6 + LETTER * (FONT - 1.5) * len(words)) / 72
        if limit - part["end"] >= room:
            shift, align = 3, "left"
        elif part["end"] - part["start"] >= room:
            shift, align = -3, "right"
        else:
            continue
        ax.annotate(
            words,
            (part["end"], y),
            xytext=(shift, 0),
            textcoords="offset points",
            ha=align,
            va="center_baseline",
            fontsize=FONT - 1.5,
            color=INK,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            zorder=5,
        )


def _window_lanes(ax: Axes, plan: Layout, looks: list[FillStyle]) -> None:
    """Above the rows: a line for each window, with its name and its times."""
    with extra():
        from matplotlib.patches import Rectangle

    windows = [*plan.named.values()]
    for caption in plan.captions:
        window, look = windows[caption.window], looks[caption.window]
        y = (caption.level - plan.lanes + 0.5) * LANE
        start, finish = window.start, window.finish
        line = Rectangle((start, y - LINE / 2), finish - start, LINE, zorder=3)
        line.set(facecolor=look.colour, hatch=look.hatch, edgecolor="white", lw=0)
        ax.add_patch(line)
        if len(plan.named) <= GUIDED:
            ax.vlines([start, finish], y, plan.edges[-1], look.colour, "dotted", lw=0.9)
        ax.annotate(
            caption.words,
            (caption.x, y),
            xytext=(caption.shift, 0),
            textcoords="offset points",
            ha=caption.align,
            va="center_baseline",
            fontsize=FONT,
            color=INK,
            annotation_clip=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )


def _names_on_bars(ax: Axes, plan: Layout, looks: list[FillStyle]) -> None:
    """The names of many windows, each on its bars."""
    for part, words, font in plan.labels:
        look = looks[plan.parts["window"][part]]
        begin, end = (plan.parts[name][part] for name in ("start", "end"))
        lane = plan.lane[part], plan.of[part]
        top, bottom = bar_edges(plan.edges, plan.row[part], *lane)
        spare = 72 * (bottom - top) - TEXT_LINE * font  # points
        ax.annotate(
            words,
            ((begin + min(end, plan.last)) / 2, (top + bottom) / 2),
            ha="center",
            va="center_baseline",
            fontsize=font,
            color=INK if look.colour in LIGHT else "white",
            bbox={
                "facecolor": look.colour,
                "edgecolor": "none",
                "pad": min(1, spare / 2),
            },
            zorder=5,
        )


def _chosen(nodes: Any, named: dict[str, WindowLike], terms: Terms) -> Any:
    """The nodes that have a row, or None for all."""
    if isinstance(nodes, str):
        if one_of("nodes", nodes, ("all", "used")) == "all":
            return None
        used = [window.slots["node"] for window in named.values()]
        return np.unique(np.concatenate([np.empty(0, np.int32), *used]))
    if terms[1] is not None:
        return np.unique(terms[1].ids(nodes))
    given = np.asarray(nodes)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TypeError(f"nodes must be 'all', 'used' or ids of nodes, got {nodes!r}")
    return np.unique(given)


def _dress(ax: Axes, plan: Layout) -> None:
    """Ticks and labels: every row while they are tall, else those that matter."""
    nodes, used, edges = plan.nodes, plan.used, plan.edges
    middle = (edges[1:] + edges[:-1]) / 2
    # The rows with windows have first call on a label, then some others to go by.
    wanted = np.concatenate([np.flatnonzero(used), np.flatnonzero(~used)])
    if nodes.size and (edges[-1] / nodes.size) < LABEL_GAP:
        others = np.arange(0, nodes.size, _round_step(nodes.size / 8))
        wanted = np.concatenate([np.flatnonzero(used), others[~used[others]]])
    placed: list[int] = []
    at = np.full(math.ceil(edges[-1] / LABEL_GAP) + 2, np.inf)
    for row in wanted.tolist():
        cell = int(middle[row] / LABEL_GAP)
        near = at[max(cell - 1, 0) : cell + 2]
        if not np.any(np.abs(near - middle[row]) < LABEL_GAP):
            at[cell] = middle[row]
            placed.append(row)
    ax.set_yticks(middle[placed], [plan.node(row) for row in placed])
    for row, label in zip(placed, ax.get_yticklabels(), strict=True):
        label.set_color(INK if used[row] or not used.any() else FAINT)
        label.set_fontsize(FONT - 0.5)
    plan.times.dress(ax)
    ax.set_ylabel("node", fontsize=FONT, color=INK)
    ax.tick_params(axis="both", length=0, labelsize=FONT - 0.5)
    ax.tick_params(axis="x", length=3, color=FAINT)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)


def _title(ax: Axes, plan: Layout, title: str) -> float:
    """Beside the legend where it has room there, else above it, in lines.

    Returns the inches that those take.
    """
    font, beside = FONT + 2.5, ax.get_legend()
    told = beside.get_texts() if beside is not None else []
    wide = (plan.last - plan.first) / plan.inch
    legend = sum(len(text.get_text()) * LETTER * FONT / 72 + HANDLE for text in told)
    letters = 72 / (LETTER * font)  # an inch has so many
    if len(title) <= letters * (wide - legend):
        ax.set_title(title, loc="left", fontsize=font, color=INK)
        return 0.0
    lines = textwrap.fill(title, int(letters * wide))
    pad = 6 + 2 * FONT
    ax.set_title(lines, loc="left", fontsize=font, color=INK, pad=pad)
    return (pad + TEXT_LINE * font * lines.count("\n")) / 72


def _legend(ax: Axes, windows: int, named: int) -> None:
    """Outside the data, above the top right corner."""
    with extra():
        from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=FREE, edgecolor=FAINT, linewidth=0.5, label="free"),
        Patch(facecolor=BUSY, label="busy"),
    ]
    if windows > named:
        words = f"{windows:,} windows, {named:,} of them named"
        handles.append(Patch(facecolor=WINDOW_COLOURS[0], label=words))
    ax.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(handles),
        frameon=False,
        fontsize=FONT,
        labelcolor=INK,
        handlelength=1.2,
        borderaxespad=0.2,
    )


def _round_step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50 ... that is at least `least`."""
    power = int(10 ** max(0, math.floor(math.log10(least))))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= least)


def _inches(ax: Axes) -> tuple[float, float]:
    """The width and height of axes that are there already."""
    extent, dpi = ax.get_window_extent(), ax.figure.figure.dpi
    return float(extent.width / dpi), float(extent.height / dpi)

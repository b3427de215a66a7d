"""Gantt pictures: free and busy time of nodes, and windows, one row per node.

`compute_layout` determines all positions; this module draws them. matplotlib is
imported when the first picture is drawn, pyplot never: each picture is a separate
:class:`matplotlib.figure.Figure`, so no global state changes and no display is needed.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from slotkern.foundation.checks import hint_keywords, one_of
from slotkern.foundation.extras import extra
from slotkern.plotting.heights import partly_free
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
    disabled_spans,
    find_room_ends,
    label_windows,
    require_span_fields,
)
from slotkern.plotting.prices import (
    PRICE_HEIGHT,
    draw_prices,
    price_ranges,
    tariffs_of,
)
from slotkern.plotting.style import (
    BUSY,
    DISABLED,
    DISABLED_HATCH,
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
from slotkern.plotting.times import first_context, parse_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from slotkern.foundation.context import SlotContext
    from slotkern.tariffs.mapping import Tariffs
    from slotkern.typing import Time

__all__ = ["plot_gantt"]

# Boxes have white edges only in rows higher than this, in inches.
EDGE_ROW = 0.1
LINE, LABEL_GAP = 0.07, 0.125
# Width of an entry of the legend without its text, in inches.
HANDLE = 0.45


class FillStyle(NamedTuple):
    """Colour and hatch of the boxes of one kind."""

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
    """Draw a row per node over time: busy grey, free light, windows coloured.

    Time in which a pool's nodes are disabled is dark and hatched.

    Above the rows, a line from start to finish of each window shows its name and both
    times. More than six windows are named on their bars instead, or above if the bars
    are too small. The first 42 windows differ in colour or hatch. With many nodes rows
    become thinner, up to a maximum height of the picture; rows with parts of a window
    stay readable and keep the name of their node. Windows that overlap on a node share
    its row. In a `HostPool`, the height of a part is the largest part of any resource
    that it takes of its node, and time is light if anything of a node is free.

    If slots have tariffs, axes below the rows show the price of each tariff over time,
    and that of nodes without one, as a range if base prices differ; not with `ax`.

    With a clock the axis shows dates in its zone, and with a machine rows have node
    names. The data of the axes stay numbers of the clock: ``clock.time("2026-10-25")``.

    Parameters
    ----------
    slots : structured array or SlotPool
        The free slots. A slot that ends at infinity is cut at the horizon.
    windows : Window, iterable of Window, or mapping of name to Window, optional
        Objects with ``start``, ``finish`` and ``slots`` (fields node, start, end); None
        is skipped. The name of a window is its key in a mapping, else the name of its
        request, else its criterion if all differ, else its number.
    tasks : structured array, optional
        Busy spans: fields node, start, end. By default all time that is not free is
        busy.
    horizon : float or date, optional
        Right edge, in time units of the slots; by default the latest finite time.
    nodes : {"all", "used"} or sequence of int or str
        Nodes with a row: all nodes of slots, tasks, windows and the machine, only
        those used by the windows, or these ids or names.
    path : path, optional
        File to save the picture to: .png, .svg or .pdf; it is written atomically.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default a new figure.
    title : str, optional
        Text above the picture.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the suffix of `path` is unknown, or the horizon is not a finite time after
        the first start, or the machine has no such node.
    TypeError
        If slots or tasks lack a field node, start or end, or an element of windows is
        not a window.
    ModuleNotFoundError
        If matplotlib is not installed.

    Notes
    -----
    O(s log s) for s slots, tasks and parts; one collection of rectangles per style.

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
    free = require_span_fields("slots", partly_free(slots))
    if tasks is not None:
        require_span_fields("tasks", tasks)
    named = label_windows(windows)
    context = first_context(slots, *named.values())
    if horizon is not None:
        horizon = parse_time(context.clock, horizon, "horizon")
    only = _select_nodes(nodes, named, context)
    disabled, booked = disabled_spans(slots)
    if only is not None:
        disabled, booked = (
            each[np.isin(each["node"], only)] for each in (disabled, booked)
        )
        free = free[np.isin(free["node"], only)]
        tasks = None if tasks is None else tasks[np.isin(tasks["node"], only)]
    size = None if ax is None else _axes_size(ax)
    plan = compute_layout(free, tasks, named, horizon, size, context, only, booked)
    styles = [FillStyle(c, h) for h in HATCHES for c in WINDOW_COLOURS]
    styles *= -(-len(plan.named) // len(styles))

    if ax is None:
        ax = _new_axes(plan, free, tariffs_of(slots, named.values()), styles)
    if tasks is None:
        whole = np.zeros(plan.nodes.size, free.dtype)
        whole["node"], whole["start"], whole["end"] = plan.nodes, plan.first, plan.last
        _draw_spans(ax, plan, whole, plan.rows_of(whole), FillStyle(BUSY), 1)
    else:
        _draw_spans(ax, plan, tasks, plan.rows_of(tasks), FillStyle(BUSY), 1)
    _draw_spans(ax, plan, free, plan.rows_of(free), FillStyle(FREE), 2)
    if disabled.size:
        off = FillStyle(DISABLED, DISABLED_HATCH)
        _draw_spans(ax, plan, disabled, plan.rows_of(disabled), off, 2)
    _draw_windows(ax, plan, styles)
    if 0 < plan.parts.size <= LABELLED_PARTS:
        _label_end_times(ax, plan, find_room_ends(plan, free))
    _draw_captions(ax, plan, styles)
    _draw_labels(ax, plan, styles)
    ax.set_xlim(plan.first, plan.last)
    ax.set_ylim(plan.edges[-1], -plan.lanes * LANE)
    _format_axes(ax, plan)
    if size is None:
        ax.label_outer()  # the prices below share the axis of time
    named_ones = len({c.window for c in plan.captions}) + len(
        {int(plan.parts["window"][label.part]) for label in plan.labels}
    )
    _draw_legend(ax, len(plan.named), named_ones, bool(disabled.size))
    figure = ax.figure.figure
    if title:
        lifted = _draw_title(ax, plan, escape_label(title))
        if size is None:  # a new figure grows by the height of the title
            figure.set_figheight(figure.get_figheight() + lifted)
    return save_figure(figure, target)


def _new_axes(
    plan: Layout,
    free: npt.NDArray[Any],
    tariffs: Tariffs | None,
    styles: list[FillStyle],
) -> Axes:
    """Return the axes of a new figure; draw the prices of tariffs below them."""
    height = plan.height + plan.lanes * LANE + 0.95
    ranges = (
        [] if tariffs is None else price_ranges(free, tariffs, plan.first, plan.last)
    )
    if not ranges:
        return new_figure(WIDTH, height, dpi=150).add_subplot()
    figure = new_figure(WIDTH, height + PRICE_HEIGHT + 0.15, dpi=150)
    ax: Axes
    ax, below = figure.subplots(2, sharex=True, height_ratios=[height, PRICE_HEIGHT])
    clock = plan.times.clock
    draw_prices(below, ranges, None if clock is None else clock.unit)
    for window, style in zip(plan.named.values(), styles, strict=False):
        below.axvspan(window.start, window.finish, color=style.colour, alpha=0.2, lw=0)
    plan.times.apply_to(below)
    return ax


def _draw_windows(ax: Axes, plan: Layout, styles: list[FillStyle]) -> None:
    """Draw the parts of all windows, each window in its style."""
    window = plan.parts["window"]
    order = window.argsort(kind="stable")
    cuts = np.searchsorted(window[order], range(1, len(plan.named)))
    for mine, style in zip(np.split(order, cuts), styles, strict=False):
        lanes = plan.lane[mine], plan.lane_count[mine]
        _draw_spans(ax, plan, plan.parts[mine], plan.row[mine], style, 4, lanes)


def _draw_spans(
    ax: Axes,
    plan: Layout,
    spans: npt.NDArray[Any],
    row: npt.NDArray[np.intp],
    style: FillStyle,
    order: int,
    lanes: tuple[Any, Any] = (0, 1),
) -> None:
    """Draw spans as boxes in their rows, or in lanes of their rows."""
    top, bottom = bar_edges(plan.edges, row, *lanes)
    left = np.clip(spans["start"], plan.first, plan.last)
    right = np.clip(spans["end"], plan.first, plan.last)
    _draw_boxes(ax, left, right, top, bottom, style, order)


def _draw_boxes(
    ax: Axes,
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    top: npt.NDArray[np.float64],
    bottom: npt.NDArray[np.float64],
    style: FillStyle,
    order: int,
) -> None:
    """Draw one collection of rectangles, with white edges if rows are high enough."""
    with extra():
        from matplotlib.collections import PolyCollection

    keep = right > left
    left, right, top, bottom = left[keep], right[keep], top[keep], bottom[keep]
    edged = bool(top.size) and float(np.median(bottom - top)) > EDGE_ROW
    ax.add_collection(
        PolyCollection(
            boxes(left, right, top, bottom),
            facecolors=style.colour,
            edgecolors="white" if edged or style.hatch else "none",
            linewidths=0.5 if edged else 0.0,
            hatch=style.hatch or None,
            antialiaseds=edged,
            zorder=order,
        ),
        autolim=False,
    )


def _label_end_times(ax: Axes, plan: Layout, limits: npt.NDArray[np.float64]) -> None:
    """Label the end of each part that ends before the finish of its window.

    The text is to the right if the free time there has room, else inside the part if it
    has room, else omitted. `limits` are the ends of the free time.
    """
    with extra():
        from matplotlib.patheffects import withStroke

    parts, middle = plan.parts, (plan.edges[plan.row] + plan.edges[plan.row + 1]) / 2
    finish = np.array([window.finish for window in plan.named.values()])
    early = (parts["end"] < finish[parts["window"]]) & (plan.lane_count == 1)
    for part, limit, y in zip(parts[early], limits[early], middle[early], strict=True):
        words = plan.times.format(part["end"])
        room = plan.time_per_inch * (6 + LETTER * (FONT - 1.5) * len(words)) / 72
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


def _draw_captions(ax: Axes, plan: Layout, styles: list[FillStyle]) -> None:
    """Draw a line above the rows for each captioned window, with name and times."""
    with extra():
        from matplotlib.patches import Rectangle

    windows = [*plan.named.values()]
    for caption in plan.captions:
        window, style = windows[caption.window], styles[caption.window]
        y = (caption.level - plan.lanes + 0.5) * LANE
        start, finish = window.start, window.finish
        line = Rectangle((start, y - LINE / 2), finish - start, LINE, zorder=3)
        line.set(facecolor=style.colour, hatch=style.hatch, edgecolor="white", lw=0)
        ax.add_patch(line)
        if len(plan.named) <= GUIDED:
            ax.vlines(
                [start, finish], y, plan.edges[-1], style.colour, "dotted", lw=0.9
            )
        ax.annotate(
            caption.text,
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


def _draw_labels(ax: Axes, plan: Layout, styles: list[FillStyle]) -> None:
    """Draw the names of windows on their bars."""
    for part, words, font in plan.labels:
        style = styles[plan.parts["window"][part]]
        begin, end = (plan.parts[name][part] for name in ("start", "end"))
        lane = plan.lane[part], plan.lane_count[part]
        top, bottom = bar_edges(plan.edges, plan.row[part], *lane)
        spare = 72 * (bottom - top) - TEXT_LINE * font  # points
        ax.annotate(
            words,
            ((begin + min(end, plan.last)) / 2, (top + bottom) / 2),
            ha="center",
            va="center_baseline",
            fontsize=font,
            color=INK if style.colour in LIGHT else "white",
            bbox={
                "facecolor": style.colour,
                "edgecolor": "none",
                "pad": min(1, spare / 2),
            },
            zorder=5,
        )


def _select_nodes(
    nodes: Any, named: dict[str, WindowLike], context: SlotContext
) -> Any:
    """Return the ids of the nodes that get a row, or None for all."""
    if isinstance(nodes, str):
        if one_of("nodes", nodes, ("all", "used")) == "all":
            return None
        used = [window.slots["node"] for window in named.values()]
        return np.unique(np.concatenate([np.empty(0, np.int32), *used]))
    if context.machine is not None:
        return np.unique(context.machine.ids(nodes))
    given = np.asarray(nodes)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TypeError(f"nodes must be 'all', 'used' or ids of nodes, got {nodes!r}")
    return np.unique(given)


def _format_axes(ax: Axes, plan: Layout) -> None:
    """Set ticks and labels: all rows if high enough, else first those with windows."""
    nodes, used, edges = plan.nodes, plan.used, plan.edges
    middle = (edges[1:] + edges[:-1]) / 2
    # Rows with windows get their labels first, then others at regular distances.
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
    ax.set_ylabel("node", fontsize=FONT, color=INK)
    plan.times.apply_to(ax)
    ax.tick_params(axis="both", length=0, labelsize=FONT - 0.5)
    ax.tick_params(axis="x", length=3, color=FAINT)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)


def _draw_title(ax: Axes, plan: Layout, title: str) -> float:
    """Draw the title next to the legend if it fits, else wrapped above it.

    Returns the additional height in inches.
    """
    font, beside = FONT + 2.5, ax.get_legend()
    entries = beside.get_texts() if beside is not None else []
    wide = (plan.last - plan.first) / plan.time_per_inch
    legend = sum(len(text.get_text()) * LETTER * FONT / 72 + HANDLE for text in entries)
    letters = 72 / (LETTER * font)  # per inch
    if len(title) <= letters * (wide - legend):
        ax.set_title(title, loc="left", fontsize=font, color=INK)
        return 0.0
    lines = textwrap.fill(title, int(letters * wide))
    pad = 6 + 2 * FONT
    ax.set_title(lines, loc="left", fontsize=font, color=INK, pad=pad)
    return (pad + TEXT_LINE * font * lines.count("\n")) / 72


def _draw_legend(ax: Axes, windows: int, named: int, has_disabled: bool) -> None:
    """Draw the legend above the top right corner of the axes."""
    with extra():
        from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=FREE, edgecolor=FAINT, linewidth=0.5, label="free"),
        Patch(facecolor=BUSY, label="busy"),
    ]
    if has_disabled:
        off = Patch(facecolor=DISABLED, hatch=DISABLED_HATCH, edgecolor="white", lw=0)
        off.set_label("disabled")
        handles.append(off)
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
    """Return the smallest of 1, 2, 5, 10, 20, 50 ... that is at least `least`."""
    power = int(10 ** max(0, math.floor(math.log10(least))))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= least)


def _axes_size(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes in inches."""
    extent, dpi = ax.get_window_extent(), ax.figure.figure.dpi
    return float(extent.width / dpi), float(extent.height / dpi)

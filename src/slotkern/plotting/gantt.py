"""Gantt pictures: which nodes are busy, which are free, and where the windows lie.

matplotlib is imported when the first picture is drawn, and pyplot never: a picture is a
:class:`matplotlib.figure.Figure` of its own, so nothing global changes and no display
is needed.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from slotkern.extras import extra
from slotkern.files.whole import open_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_gantt"]

# Okabe and Ito's colours, which stay apart under every kind of colour blindness.
WINDOW_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# With a hatch they make 42 looks that differ.
HATCHES = ("", "////", "....", "xxxx", "||||", "----", "\\\\\\\\")
BUSY, FREE, INK, FAINT = "#B4B9C0", "#EDF2F7", "#20262E", "#79818C"

SUFFIXES = (".png", ".svg", ".pdf")

# Inches. Rows shrink from ROW_TALL until the picture has reached AXES_TALL; rows that
# carry a window keep WINDOW_ROW as long as they take no more than WINDOW_SHARE of it.
WIDTH, AXES_TALL, ROW_TALL, WINDOW_ROW, WINDOW_SHARE = 10.0, 8.4, 0.27, 0.17, 0.6
# Gaps between rows and edges of boxes vanish in rows thinner than these.
GAP_ROW, EDGE_ROW = 0.045, 0.1
LANE, LINE, LABEL_GAP = 0.21, 0.07, 0.125
FONT, LABELLED_PARTS = 8.5, 24
# A letter is about so many times as wide as its font is large.
LETTER = 0.64
# More windows than these have no name, or no dotted lines at their start and finish.
NAMED, GUIDED = 200, 6


class Look(NamedTuple):
    """How the boxes of one kind are filled."""

    colour: str
    hatch: str = ""


class Caption(NamedTuple):
    """A window's name and times, and where they stand beside its line."""

    words: str
    x: float
    shift: float
    align: str
    level: int


class WindowLike(Protocol):
    """What a window must offer to be drawn."""

    @property
    def start(self) -> float: ...
    @property
    def finish(self) -> float: ...
    @property
    def slots(self) -> npt.NDArray[Any]: ...


Windows = WindowLike | Iterable[WindowLike | None] | Mapping[str, WindowLike | None]


def plot_gantt(
    slots: Any,
    windows: Windows | None = None,
    *,
    tasks: npt.NDArray[Any] | None = None,
    horizon: float | None = None,
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw nodes downwards and time across: busy grey, free light, windows in colour.

    Above the rows a line spans every window from start to finish and tells its name and
    both times; lines that leave each other room share one level. The first 42 windows
    differ in colour or hatch, and the first 200 are named. Rows become thinner as nodes
    become more, until the picture has reached its greatest height; the rows that hold
    parts of a window stay tall enough to read and keep their node's name. Where windows
    overlap on a node, its row is shared out between them.

    Parameters
    ----------
    slots : structured array or SlotPool
        The free slots. A slot that ends at infinity is cut at the horizon.
    windows : Window, iterable of Window, or mapping of name to Window, optional
        Anything with ``start``, ``finish`` and ``slots`` (fields node, start, end) is a
        window; None among them is left out. Beside each its name is written: its key in
        a mapping, else its criterion where these differ, else its number.
    tasks : structured array, optional
        What occupies the nodes: fields node, start, end. Without it, all the time of a
        row that is not free is drawn as busy.
    horizon : float, optional
        The right edge, in the slots' time units. By default the latest finite time.
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
        the first start.
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
    target = None if path is None else checked_path(path)
    free = _with_spans("slots", getattr(slots, "slots", slots))
    if tasks is not None:
        _with_spans("tasks", tasks)
    named = _named(windows)
    looks = [Look(c, h) for h in HATCHES for c in WINDOW_COLOURS]
    looks *= -(-len(named) // len(looks))
    parts = _parts(list(named.values()))
    spans = [free, parts] if tasks is None else [free, parts, tasks]
    nodes = np.unique(np.concatenate([span["node"] for span in spans]))
    first, last = _time_range(spans, horizon)
    used = np.isin(nodes, parts["node"])
    decimals = max(0, 3 - math.floor(math.log10(last - first)))
    inch = (last - first) / (0.9 * WIDTH if ax is None else _inches(ax)[0])
    captions = _captions(named, (first, last), inch, decimals)
    lanes = max((caption.level for caption in captions), default=-1) + 1

    with extra():
        from matplotlib.figure import Figure

    if ax is None:
        tall = min(ROW_TALL * max(nodes.size, 1), AXES_TALL)
        size = (WIDTH, tall + lanes * LANE + 0.95)
        ax = Figure(figsize=size, dpi=150, layout="constrained").add_subplot()
    else:
        tall = max(_inches(ax)[1] - lanes * LANE, LANE)
    figure = ax.figure.figure
    edges = _row_edges(used, tall)

    def rows_of(span: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        return np.searchsorted(nodes, span["node"])

    def boxes(
        row: npt.NDArray[np.intp],
        span: npt.NDArray[Any],
        look: Look,
        order: int,
        share: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
    ) -> None:
        top, bottom = edges[row], edges[row + 1]
        height = bottom - top
        pad = np.where(height > GAP_ROW, 0.08 * height, 0.0)
        top, bottom = top + pad, bottom - pad
        if share is not None:
            lane, of = share
            step = (bottom - top) / of
            top, bottom = top + lane * step, top + (lane + 1) * step
        left = np.clip(span["start"], first, last)
        right = np.clip(span["end"], first, last)
        _add_boxes(ax, left, right, top, bottom, look, order)

    if tasks is None:
        whole = np.zeros(nodes.size, [("start", "f8"), ("end", "f8")])
        whole["start"], whole["end"] = first, last
        boxes(np.arange(nodes.size), whole, Look(BUSY), 1)
    else:
        boxes(rows_of(tasks), tasks, Look(BUSY), 1)
    boxes(rows_of(free), free, Look(FREE), 2)
    row = rows_of(parts)
    lane, of = _lanes(row, parts)
    order = parts["window"].argsort(kind="stable")
    groups = np.split(
        order, np.searchsorted(parts["window"][order], range(1, len(named)))
    )
    for mine, look in zip(groups, looks, strict=False):
        boxes(row[mine], parts[mine], look, 4, (lane[mine], of[mine]))

    if 0 < parts.size <= LABELLED_PARTS:
        limits = _next_starts(parts, free, last)
        middle = (edges[row] + edges[row + 1]) / 2
        _end_times(ax, parts, named, middle, of, limits, inch, decimals)
    _window_lanes(ax, named, looks, captions, edges[-1])
    ax.set_xlim(first, last)
    ax.set_ylim(edges[-1], -lanes * LANE)
    _dress(ax, nodes, used, edges, decimals)
    _legend(ax, len(named))
    if title:
        ax.set_title(as_written(title), loc="left", fontsize=FONT + 2.5, color=INK)
    if target is not None:
        save_figure(figure, target)
    return figure


def checked_path(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(
            f"{target}: a picture's suffix is one of {known}, not {target.suffix!r}"
        )
    return target


def as_written(text: object) -> str:
    """The text for matplotlib to show as it is.

    A dollar sign begins no formula, and a line at its beginning hides no entry of a
    legend.
    """
    shown = str(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _with_spans(name: str, rows: Any) -> npt.NDArray[Any]:
    """Rows that say which node and when; TypeError for anything else."""
    names = getattr(getattr(rows, "dtype", None), "names", None) or ()
    if not {"node", "start", "end"} <= set(names):
        kind = type(rows).__name__
        raise TypeError(f"{name} must have the fields node, start and end, got {kind}")
    return cast("npt.NDArray[Any]", rows)


def _named(windows: Windows | None) -> dict[str, WindowLike]:
    """The windows by the name that is written beside each."""
    if windows is None:
        return {}
    if isinstance(windows, Mapping):
        return {as_written(name): w for name, w in windows.items() if w is not None}
    single = hasattr(windows, "slots")  # all else is a collection of windows
    several = cast("Iterable[WindowLike | None]", [windows] if single else windows)
    found = [w for w in several if w is not None]
    for window in found:
        if not hasattr(window, "slots"):
            raise TypeError(f"windows must be windows, got {window!r} among them")
    criteria = [getattr(w, "criterion", None) for w in found]
    if all(isinstance(c, str) for c in criteria) and len(set(criteria)) == len(found):
        return {
            as_written(f"best by {c}"): w for c, w in zip(criteria, found, strict=True)
        }
    return {f"window {i}": w for i, w in enumerate(found, 1)}


PART = np.dtype([("node", "i8"), ("start", "f8"), ("end", "f8"), ("window", "i8")])


def _parts(windows: list[WindowLike]) -> npt.NDArray[Any]:
    """All parts of all windows in one array, each with the index of its window."""
    parts = np.zeros(sum(w.slots.size for w in windows), PART)
    for name in ("node", "start", "end"):
        columns = [w.slots[name] for w in windows]
        parts[name] = np.concatenate(columns) if columns else 0
    parts["window"] = np.repeat(
        np.arange(len(windows)), [w.slots.size for w in windows]
    )
    return parts


def _time_range(
    spans: list[npt.NDArray[Any]], horizon: float | None
) -> tuple[float, float]:
    """The left and right edge of the picture."""
    times = np.concatenate([s[name] for s in spans for name in ("start", "end")])
    times = times[np.isfinite(times)]
    first = float(times.min()) if times.size else 0.0
    if horizon is None:
        last = float(times.max()) if times.size else first
        if any(np.isinf(s["end"]).any() for s in spans):
            last += 0.1 * (last - first)  # shows that open ends go on
        return first, last if last > first else first + 1.0
    if not (math.isfinite(horizon) and horizon > first):
        raise ValueError(
            f"horizon is {horizon}: it must be a finite time after the first "
            f"start, {first}"
        )
    return first, float(horizon)


def _row_edges(used: npt.NDArray[np.bool_], tall: float) -> npt.NDArray[np.float64]:
    """Top edges of all rows, and the last bottom: `tall` inches, used rows readable."""
    m, k = used.size, int(used.sum())
    heights = np.full(m, tall / max(m, 1))
    if 0 < k < m:
        focus = min(WINDOW_ROW, WINDOW_SHARE * tall / k)
        if focus > tall / m:
            heights[used] = focus
            heights[~used] = (tall - k * focus) / (m - k)
    return np.concatenate([[0.0], np.cumsum(heights)]) if m else np.array([0.0, tall])


def _lanes(
    row: npt.NDArray[np.intp], parts: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each part its lane within its row, and among how many lanes.

    Parts of a row that overlap, directly or through others, share it out between
    their windows.
    """
    lane = np.zeros(parts.size, np.int64)
    of = np.ones(parts.size, np.int64)
    order = np.lexsort((parts["start"], row))
    cluster = np.zeros(parts.size, np.int64)
    latest, last_row, count = -math.inf, -1, -1
    for i in order:
        if row[i] != last_row or parts["start"][i] >= latest:
            count, latest = count + 1, -math.inf
        cluster[i], last_row = count, row[i]
        latest = max(latest, parts["end"][i])
    for crowded in np.flatnonzero(np.bincount(cluster) > 1):
        here = cluster == crowded
        present, lane[here] = np.unique(parts["window"][here], return_inverse=True)
        of[here] = present.size
    return lane, of


def _add_boxes(
    ax: Axes,
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    top: npt.NDArray[np.float64],
    bottom: npt.NDArray[np.float64],
    look: Look,
    order: int,
) -> None:
    """One collection of rectangles; a white edge where rows are tall enough."""
    with extra():
        from matplotlib.collections import PolyCollection

    keep = right > left
    left, right, top, bottom = left[keep], right[keep], top[keep], bottom[keep]
    corners = np.stack(
        [
            np.stack([left, top], -1),
            np.stack([right, top], -1),
            np.stack([right, bottom], -1),
            np.stack([left, bottom], -1),
        ],
        axis=1,
    )
    edged = bool(top.size) and float(np.median(bottom - top)) > EDGE_ROW
    ax.add_collection(
        PolyCollection(
            list(corners),
            facecolors=look.colour,
            edgecolors="white" if edged or look.hatch else "none",
            linewidths=0.5 if edged else 0.0,
            hatch=look.hatch or None,
            antialiaseds=edged,
            zorder=order,
        ),
        autolim=False,
    )


def _next_starts(
    parts: npt.NDArray[Any], free: npt.NDArray[Any], last: float
) -> npt.NDArray[np.float64]:
    """For each part where its free time ends, or the next part begins."""
    limits = np.full(parts.size, last)
    for i, part in enumerate(parts):
        later = parts[(parts["node"] == part["node"]) & (parts["start"] >= part["end"])]
        around = free[(free["node"] == part["node"]) & (free["start"] < part["end"])]
        ends = [*later["start"], *around["end"][around["end"] >= part["end"]]]
        limits[i] = min([last, *ends])
    return limits


def _end_times(
    ax: Axes,
    parts: npt.NDArray[Any],
    named: dict[str, WindowLike],
    middle: npt.NDArray[np.float64],
    lanes: npt.NDArray[np.int64],
    limits: npt.NDArray[np.float64],
    inch: float,
    decimals: int,
) -> None:
    """Say of each part that ends before its window does when it ends.

    Beside it where it is free for long enough, else in it, else nowhere.
    """
    with extra():
        from matplotlib.patheffects import withStroke

    finish = np.array([window.finish for window in named.values()])
    early = (parts["end"] < finish[parts["window"]]) & (lanes == 1)
    for part, limit, y in zip(parts[early], limits[early], middle[early], strict=True):
        words = _number(part["end"], decimals)
        room = inch * (6 + LETTER * (FONT - 1.5) * len(words)) / 72
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


def _captions(
    named: dict[str, WindowLike],
    view: tuple[float, float],
    inch: float,
    decimals: int,
) -> list[Caption]:
    """Name the windows, each at the first level where its line and words have room."""
    first, last = view
    captions: list[Caption] = []
    taken: list[list[tuple[float, float]]] = []
    for name, window in islice(named.items(), NAMED):
        start, finish = (
            min(max(t, first), last) for t in (window.start, window.finish)
        )
        words = (
            f"{name}: {_number(window.start, decimals)} to "
            f"{_number(window.finish, decimals)}"
        )
        length = inch * (10 + LETTER * FONT * len(words)) / 72
        # Beside the line where there is room, else upon it.
        if finish < first + 0.7 * (last - first):
            x, shift, align = finish, 5, "left"
            left, right = start, finish + length
        elif start > first + 0.3 * (last - first):
            x, shift, align = start, -5, "right"
            left, right = start - length, finish
        else:
            x, shift, align = (start + finish) / 2, 0, "center"
            left, right = min(start, x - length / 2), max(finish, x + length / 2)
        level = 0
        while level < len(taken) and any(
            left < end and begin < right for begin, end in taken[level]
        ):
            level += 1
        if level == len(taken):
            taken.append([])
        taken[level].append((left, right))
        captions.append(Caption(words, x, shift, align, level))
    return captions


def _window_lanes(
    ax: Axes,
    named: dict[str, WindowLike],
    looks: list[Look],
    captions: list[Caption],
    bottom: float,
) -> None:
    """Above the rows: a line for each window, with its name and its times."""
    with extra():
        from matplotlib.patches import Rectangle

    lanes = max((caption.level for caption in captions), default=-1) + 1
    for window, look, caption in zip(named.values(), looks, captions, strict=False):
        y = (caption.level - lanes + 0.5) * LANE
        start, finish = window.start, window.finish
        line = Rectangle((start, y - LINE / 2), finish - start, LINE, zorder=3)
        line.set(facecolor=look.colour, hatch=look.hatch, edgecolor="white", lw=0)
        ax.add_patch(line)
        if len(named) <= GUIDED:
            ax.vlines([start, finish], y, bottom, look.colour, "dotted", lw=0.9)
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


def _dress(
    ax: Axes,
    nodes: npt.NDArray[Any],
    used: npt.NDArray[np.bool_],
    edges: npt.NDArray[np.float64],
    decimals: int,
) -> None:
    """Ticks and labels: every row while they are tall, else those that matter."""
    with extra():
        from matplotlib.ticker import FuncFormatter, MaxNLocator

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
    ax.set_yticks(middle[placed], [str(nodes[row]) for row in placed])
    for row, label in zip(placed, ax.get_yticklabels(), strict=True):
        label.set_color(INK if used[row] or not used.any() else FAINT)
        label.set_fontsize(FONT - 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _number(x, decimals)))
    ax.set_xlabel("time", fontsize=FONT, color=INK)
    ax.set_ylabel("node", fontsize=FONT, color=INK)
    ax.tick_params(axis="both", length=0, labelsize=FONT - 0.5)
    ax.tick_params(axis="x", length=3, color=FAINT)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)


def _legend(ax: Axes, windows: int) -> None:
    """Outside the data, above the top right corner."""
    with extra():
        from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=FREE, edgecolor=FAINT, linewidth=0.5, label="free"),
        Patch(facecolor=BUSY, label="busy"),
    ]
    if windows > NAMED:
        words = f"{windows:,} windows, {NAMED} of them named"
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


def _number(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _inches(ax: Axes) -> tuple[float, float]:
    """The width and height of axes that are there already."""
    extent, dpi = ax.get_window_extent(), ax.figure.figure.dpi
    return float(extent.width / dpi), float(extent.height / dpi)


def save_figure(figure: Figure, target: Path) -> None:
    """Write a figure whole or not at all, and with the same bytes every time."""
    with extra():
        import matplotlib

    kind = target.suffix.lower()[1:]
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "slotkern"}):
        figure.savefig(drawn, format=kind, metadata=stamp)
    with open_whole(target) as file:
        file.write(drawn.getvalue())

"""The layout of a Gantt picture: all positions and texts, computed before drawing.

Input are spans (node, start, end) of free time, tasks and windows; output is a `Layout`
with one row per node. Vertical positions are inches from the top of the first row,
horizontal ones times. Rows that contain parts of windows stay readable: they keep a
minimum height while the others shrink.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from slotkern._kernels.pool import CLOSURE, SlotPool
from slotkern.compound.plan import Plan
from slotkern.plotting.heights import part_heights, stack_parts
from slotkern.plotting.style import FONT, escape_label
from slotkern.plotting.times import TimeAxis
from slotkern.pool.host_pool import HostPool

if TYPE_CHECKING:
    from slotkern.foundation.context import SlotContext
    from slotkern.machine.nodes import Machine

__all__ = [
    "Layout",
    "WindowLike",
    "Windows",
    "bar_edges",
    "compute_layout",
    "find_room_ends",
    "fit_font_sizes",
    "label_windows",
    "name_windows",
    "require_span_fields",
    "row_edges",
    "time_range",
    "unique_names",
]

# Inches. Rows are ROW_TALL high; with many nodes they shrink so that all fit AXES_TALL.
# Rows with windows keep WINDOW_ROW while together they fill at most WINDOW_SHARE.
WIDTH, AXES_TALL, ROW_TALL, WINDOW_ROW, WINDOW_SHARE = 10.0, 8.4, 0.27, 0.17, 0.6
# Rows thinner than this have no gap between them, in inches.
GAP_ROW = 0.045
LANE, LINE, LABEL_GAP = 0.21, 0.07, 0.125
# Minimum height of a row with a label, in inches.
LABEL_ROW = 1.01 * LABEL_GAP
LABELLED_PARTS = 24
# Approximate width of a letter in units of the font size.
LETTER = 0.64
# Up to GUIDED windows have a caption: a line above the rows with name and times. With
# more windows, names are on the bars; a window whose bars have no room gets a caption
# while there are at most LANES levels. If more than LABELS parts have room for a name,
# only one part of each window is labelled.
GUIDED, LANES, LABELS = 6, 12, 600
# Text on bars: largest and smallest font in points, line height in font sizes.
TEXT_FONT, TEXT_LEAST, TEXT_LINE = FONT - 2, 4.5, 1.2


class Caption(NamedTuple):
    """A window's name and times above the rows, and their position next to its line.

    `x` is a time, `shift` an offset in points, `level` the level of the line.
    """

    window: int
    text: str
    x: float
    shift: float
    align: str
    level: int


class Label(NamedTuple):
    """A window's name on the bar of one part, and its font size in points."""

    part: int
    text: str
    font: float


class WindowLike(Protocol):
    """The attributes that a window needs to be drawn."""

    @property
    def start(self) -> float: ...
    @property
    def finish(self) -> float: ...
    @property
    def slots(self) -> npt.NDArray[Any]: ...


Windows = WindowLike | Iterable[WindowLike | None] | Mapping[str, WindowLike | None]


@dataclass(frozen=True)
class Layout:
    """Positions of nodes, times, parts and names of windows.

    Attributes
    ----------
    nodes : ndarray
        Node ids, one row each, from top to bottom; `used` marks rows with a part of a
        window.
    edges : ndarray of float64, shape (rows + 1,)
        Top edges of the rows and the bottom of the last one, in inches from the first
        row; `height` is their total.
    first, last : float
        Times of the left and right edge; `time_per_inch` is the scale.
    named : dict
        Windows by the name in the picture.
    parts : structured array
        Parts of all windows. `row` is the row of each; if windows overlap on a node,
        their parts are drawn in lanes: `lane` among `lane_count`.
    captions : list of Caption
    lanes : int
        Number of levels of captions above the rows.
    labels : list of Label
        Names on bars.
    times : TimeAxis
        Format of times.
    machine : Machine or None
        Names of the nodes.
    """

    nodes: npt.NDArray[Any]
    used: npt.NDArray[np.bool_]
    edges: npt.NDArray[np.float64]
    height: float
    first: float
    last: float
    time_per_inch: float
    named: dict[str, WindowLike]
    parts: npt.NDArray[Any]
    row: npt.NDArray[np.intp]
    lane: npt.NDArray[Any]
    lane_count: npt.NDArray[Any]
    captions: list[Caption]
    lanes: int
    labels: list[Label]
    times: TimeAxis
    machine: Machine | None

    def rows_of(self, spans: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """Return the row of each span."""
        return np.searchsorted(self.nodes, spans["node"])

    def node(self, row: int) -> str:
        """Return the name or id of the node of a row."""
        id_ = int(self.nodes[row])
        has_name = self.machine is not None and 0 <= id_ < len(self.machine)
        return escape_label(self.machine.names[id_]) if has_name else str(id_)  # type: ignore[union-attr]


def compute_layout(
    free: npt.NDArray[Any],
    tasks: npt.NDArray[Any] | None,
    named: dict[str, WindowLike],
    horizon: float | None,
    size: tuple[float, float] | None,
    context: SlotContext,
    only: npt.NDArray[Any] | None,
    more: npt.NDArray[Any] | None = None,
) -> Layout:
    """Return the layout for axes of a size in inches; None for a new figure.

    The nodes and times of the spans `more` are part of the picture too.

    O(s log s) for s slots, tasks and parts.
    """
    if horizon is not None:  # later windows are outside the picture
        named = {name: w for name, w in named.items() if w.start < horizon}
    parts = _collect_parts(list(named.values()))
    if only is not None:
        parts = parts[np.isin(parts["node"], only)]
    spans = [free, parts] if tasks is None else [free, parts, tasks]
    if more is not None:
        spans.append(more)
    nodes = only
    if nodes is None:
        every = [span["node"] for span in spans]
        if tasks is None and context.machine is not None and len(free):
            every.append(
                np.arange(len(context.machine))
            )  # including nodes that are never free
        nodes = np.unique(np.concatenate(every))
    first, last = time_range(spans, horizon)
    used = np.isin(nodes, parts["node"])
    row = np.searchsorted(nodes, parts["node"])
    lane: npt.NDArray[Any]
    lane_count: npt.NDArray[Any]
    if (parts["height"] < 1).any():
        top, part = stack_parts(row, parts["start"], parts["end"], parts["height"])
        lane, lane_count = top / part, 1 / part
    else:
        lane, lane_count = _assign_lanes(row, parts)
    plan = Layout(
        nodes=nodes,
        used=used,
        edges=np.zeros(0),
        height=0.0,
        first=first,
        last=last,
        time_per_inch=(last - first) / (0.9 * WIDTH if size is None else size[0]),
        named=named,
        parts=parts,
        row=row,
        lane=lane,
        lane_count=lane_count,
        captions=[],
        lanes=0,
        labels=[],
        times=TimeAxis(context.clock, first, last),
        machine=context.machine,
    )
    height = min(ROW_TALL * max(nodes.size, 1), AXES_TALL) if size is None else size[1]
    while True:
        labels = _place_labels(plan, row_edges(used, height))
        labelled = {int(parts["window"][label.part]) for label in labels}
        captions = _place_captions(plan, labelled)
        lanes = max((caption.level for caption in captions), default=-1) + 1
        if size is None or size[1] - lanes * LANE >= height or height == LANE:
            break
        height = max(size[1] - lanes * LANE, LANE)  # height left by the captions
    return replace(
        plan,
        captions=captions,
        lanes=lanes,
        labels=labels,
        edges=row_edges(used, height),
        height=height,
    )


def require_span_fields(name: str, rows: Any) -> npt.NDArray[Any]:
    """Return `rows`; TypeError if they lack the fields node, start or end."""
    names = getattr(getattr(rows, "dtype", None), "names", None) or ()
    if not {"node", "start", "end"} <= set(names):
        kind = type(rows).__name__
        raise TypeError(f"{name} must have the fields node, start and end, got {kind}")
    return cast("npt.NDArray[Any]", rows)


def disabled_spans(slots: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return when nodes of a pool are disabled, and the booked spans of the pool.

    The first array has the fields node, start, end and owner (the reason), sorted by
    (node, start), without overlaps: time that is disabled twice has the first reason.
    The pool's disabled time is part of the second, so a picture of all its time
    includes it. Both are empty for other slots, and if no node is disabled.
    """
    has = isinstance(slots, (SlotPool, HostPool))
    closed = slots.closed if has else np.empty(0, CLOSURE)
    found = closed[closed["disabled"]][["node", "start", "end", "owner"]].copy()
    found.sort(order=["node", "start"])
    for row in range(1, len(found)):
        before, mine = found[row - 1], found[row]
        if before["node"] == mine["node"] and mine["start"] < before["end"]:
            mine["start"] = before["end"]
            mine["end"] = max(mine["end"], before["end"])
    found = found[found["start"] < found["end"]]
    return found, slots.booked if len(found) else found


def label_windows(windows: Windows | None) -> dict[str, WindowLike]:
    """Return the windows by name, with names escaped for matplotlib."""
    return {escape_label(name): w for name, w in name_windows(windows).items()}


def name_windows(windows: Windows | None) -> dict[str, WindowLike]:
    """Return the windows by name: key, role, request name, criterion or number."""
    if windows is None:
        return {}
    if isinstance(windows, Plan):
        windows = windows.by_role()
    if isinstance(windows, Mapping):
        return {str(name): w for name, w in windows.items() if w is not None}
    single = hasattr(windows, "slots")  # otherwise a collection of windows
    several = cast("Iterable[WindowLike | None]", [windows] if single else windows)
    found = [w for w in several if w is not None]
    if any(isinstance(each, Plan) for each in found):
        return unique_names([pair for each in found for pair in _named_parts(each)])
    for window in found:
        if not hasattr(window, "slots"):
            raise TypeError(f"windows must contain windows only, got {window!r}")
    if any(getattr(window, "name", None) for window in found):
        return unique_names([(getattr(w, "name", None), w) for w in found])
    criteria = [getattr(w, "criterion", None) for w in found]
    if all(isinstance(c, str) for c in criteria) and len(set(criteria)) == len(found):
        names = (c if c == "reserved" else f"best by {c}" for c in criteria)
        return dict(zip(names, found, strict=True))
    return {f"window {i}": w for i, w in enumerate(found, 1)}


def _named_parts(each: Any) -> list[tuple[str | None, Any]]:
    """Return the windows of a plan with the names of job and role, or one window."""
    if not isinstance(each, Plan):
        return [(getattr(each, "name", None), each)]
    job = "" if each.name is None else f"{each.name}, "
    return [(f"{job}{role}", window) for role, window in each.by_role().items()]


def unique_names(pairs: Sequence[tuple[str | None, Any]]) -> dict[str, WindowLike]:
    """Return windows by unique names; a repeated name gets its number appended."""
    named: dict[str, WindowLike] = {}
    for i, (name, window) in enumerate(pairs, 1):
        unique = name or f"window {i}"
        while unique in named:
            unique = f"{unique} ({i})"
        named[unique] = window
    return named


#: A part of a window; its height is a share of its row.
PART = np.dtype(
    [("node", "i8"), ("start", "f8"), ("end", "f8"), ("window", "i8"), ("height", "f8")]
)


def _collect_parts(windows: list[WindowLike]) -> npt.NDArray[Any]:
    """Return the parts of all windows in one array, with the index of their window."""
    parts = np.zeros(sum(w.slots.size for w in windows), PART)
    for name in ("node", "start", "end"):
        columns = [w.slots[name] for w in windows]
        parts[name] = np.concatenate(columns) if columns else 0
    parts["window"] = np.repeat(
        np.arange(len(windows)), [w.slots.size for w in windows]
    )
    parts["height"] = part_heights(windows)
    return parts


def time_range(
    spans: list[npt.NDArray[Any]], horizon: float | None
) -> tuple[float, float]:
    """Return the times of the left and right edge of the picture.

    Raises ValueError if the horizon is not a finite time after the first start.
    """
    times = np.concatenate([s[name] for s in spans for name in ("start", "end")])
    times = times[np.isfinite(times)]
    first = float(times.min()) if times.size else 0.0
    if horizon is None:
        last = float(times.max()) if times.size else first
        if any(np.isinf(s["end"]).any() for s in spans):
            last += 0.1 * (last - first)  # shows slots without an end
        return first, last if last > first else first + 1.0
    if not (math.isfinite(horizon) and horizon > first):
        raise ValueError(
            f"horizon is {horizon}: it must be a finite time after the first "
            f"start, {first}"
        )
    return first, float(horizon)


def row_edges(used: npt.NDArray[np.bool_], height: float) -> npt.NDArray[np.float64]:
    """Return the edges of rows of `height` inches in total; used rows stay readable."""
    m, k = used.size, int(used.sum())
    heights = np.full(m, height / max(m, 1))
    if 0 < k < m:
        focus = min(WINDOW_ROW, WINDOW_SHARE * height / k)
        if height / m > LABEL_ROW:  # every row has room for a label; keep it
            focus = min(focus, (height - (m - k) * LABEL_ROW) / k)
        if focus > height / m:
            heights[used] = focus
            heights[~used] = (height - k * focus) / (m - k)
    return np.concatenate([[0.0], np.cumsum(heights)]) if m else np.array([0.0, height])


def _assign_lanes(
    row: npt.NDArray[np.intp], parts: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the lane of each part within its row, and the number of lanes.

    Parts of a row that overlap, directly or through others, form a cluster; the row is
    divided into one lane per window of the cluster.
    """
    lane = np.zeros(parts.size, np.int64)
    lane_count = np.ones(parts.size, np.int64)
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
        lane_count[here] = present.size
    return lane, lane_count


def find_room_ends(plan: Layout, free: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return for each part the end of the free time after it, in which text fits.

    It ends with the free slot, at the next part or at the edge of the picture.
    """
    parts, last = plan.parts, plan.last
    limits = np.full(parts.size, last)
    for i, part in enumerate(parts):
        later = parts[(parts["node"] == part["node"]) & (parts["start"] >= part["end"])]
        around = free[(free["node"] == part["node"]) & (free["start"] < part["end"])]
        ends = [*later["start"], *around["end"][around["end"] >= part["end"]]]
        limits[i] = min([last, *ends])
    return limits


def bar_edges(
    edges: npt.NDArray[np.float64], row: Any, lane: Any = 0, lane_count: Any = 1
) -> tuple[Any, Any]:
    """Return the top and bottom edges of bars in lanes of rows."""
    height = edges[np.add(row, 1)] - edges[row]
    pad = np.where(height > GAP_ROW, 0.08 * height, 0.0)
    step = (height - 2 * pad) / lane_count
    top = edges[row] + pad + lane * step
    return top, top + step


def fit_font_sizes(heights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return font sizes for bars of heights in inches; 0 for bars without room."""
    fonts = np.minimum(72 * heights / TEXT_LINE, TEXT_FONT)
    return np.where(fonts < TEXT_LEAST, 0.0, fonts)


def _place_labels(plan: Layout, edges: npt.NDArray[np.float64]) -> list[Label]:
    """Return the names on bars that have room for them, if there are many windows."""
    if len(plan.named) <= GUIDED or not plan.parts.size:
        return []
    words = [name.removeprefix("window ") for name in plan.named]
    letters = np.array([len(each) for each in words])
    parts = plan.parts
    top, bottom = bar_edges(edges, plan.row, plan.lane, plan.lane_count)
    fonts = fit_font_sizes(bottom - top)
    wide = (parts["end"].clip(max=plan.last) - parts["start"]) / plan.time_per_inch
    need = (4 + LETTER * fonts * letters[parts["window"]]) / 72
    roomy = np.flatnonzero((wide >= need) & (fonts > 0))
    if roomy.size > LABELS:  # the first of each window
        roomy = roomy[np.unique(parts["window"][roomy], return_index=True)[1]]
    return [
        Label(part, words[parts["window"][part]], float(fonts[part]))
        for part in roomy[:LABELS].tolist()
    ]


def _place_captions(plan: Layout, labelled: set[int]) -> list[Caption]:
    """Place the captions of windows, each at the first level with room for it.

    Windows in `labelled` get none; with many windows, at most LANES levels are used.
    """
    first, last, time_per_inch = plan.first, plan.last, plan.time_per_inch
    captions: list[Caption] = []
    taken: list[list[tuple[float, float]]] = []
    for number, (name, window) in enumerate(plan.named.items()):
        if number in labelled:
            continue
        start, finish = (
            min(max(t, first), last) for t in (window.start, window.finish)
        )
        words = f"{name}: {plan.times.format_span(window.start, window.finish)}"
        length = time_per_inch * (10 + LETTER * FONT * len(words)) / 72
        # Text right or left of the line if there is room, else across it.
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
            if level == LANES and len(plan.named) > GUIDED:
                continue
            taken.append([])
        taken[level].append((left, right))
        captions.append(Caption(number, words, x, shift, align, level))
    return captions

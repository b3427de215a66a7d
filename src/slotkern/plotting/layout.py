"""The layout of a Gantt picture: where everything stands, before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from slotkern.plotting.style import FONT, escape_label
from slotkern.plotting.times import TimeAxis

if TYPE_CHECKING:
    from slotkern.machine.nodes import Machine
    from slotkern.machine.terms import Terms

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

# Inches. Rows shrink from ROW_TALL until the picture has reached AXES_TALL; rows that
# carry a window keep WINDOW_ROW as long as they take no more than WINDOW_SHARE of it.
WIDTH, AXES_TALL, ROW_TALL, WINDOW_ROW, WINDOW_SHARE = 10.0, 8.4, 0.27, 0.17, 0.6
# Gaps between rows vanish in rows thinner than this.
GAP_ROW = 0.045
LANE, LINE, LABEL_GAP = 0.21, 0.07, 0.125
# A row that is not thinner has room for a label.
LABEL_ROW = 1.01 * LABEL_GAP
LABELLED_PARTS = 24
# A letter is about so many times as wide as its font is large.
LETTER = 0.64
# Up to GUIDED windows have a line above the rows with name and times. Of more, each is
# named on its bars; only where none has room, and LANES suffice, it has such a line.
# Each part is named as long as these are at most LABELS, else one of each window.
GUIDED, LANES, LABELS = 6, 12, 600
# Text on a bar: the largest and the smallest font, and the line that it needs.
TEXT_FONT, TEXT_LEAST, TEXT_LINE = FONT - 2, 4.5, 1.2


class Caption(NamedTuple):
    """A window's name and times, and where they stand beside its line."""

    window: int
    words: str
    x: float
    shift: float
    align: str
    level: int


class Label(NamedTuple):
    """A window's name on one of its parts, and the size of its font."""

    part: int
    words: str
    font: float


class WindowLike(Protocol):
    """What a window must offer to be drawn."""

    @property
    def start(self) -> float: ...
    @property
    def finish(self) -> float: ...
    @property
    def slots(self) -> npt.NDArray[Any]: ...


Windows = WindowLike | Iterable[WindowLike | None] | Mapping[str, WindowLike | None]


@dataclass(frozen=True)
class Layout:
    """Where nodes, times, parts and names of windows stand.

    Attributes
    ----------
    nodes : ndarray
        One row each, downwards; `used` where a window has a part.
    edges : ndarray of float64, shape (rows + 1,)
        The tops of the rows and the last bottom, in inches from the first row; `tall`
        in all.
    first, last : float
        The left and right edge, in time; `inch` is the time of one inch.
    named : dict
        The windows by the name that is written beside each.
    parts : structured array
        All their parts; `row` and, where windows overlap, `lane` among `of` lanes.
    captions : list of Caption
    lanes : int
        Levels of lines above the rows.
    labels : list of Label
        The parts that carry the name of their window.
    times : Times
        How times are told.
    machine : Machine or None
        What nodes are called.
    """

    nodes: npt.NDArray[Any]
    used: npt.NDArray[np.bool_]
    edges: npt.NDArray[np.float64]
    tall: float
    first: float
    last: float
    inch: float
    named: dict[str, WindowLike]
    parts: npt.NDArray[Any]
    row: npt.NDArray[np.intp]
    lane: npt.NDArray[np.int64]
    of: npt.NDArray[np.int64]
    captions: list[Caption]
    lanes: int
    labels: list[Label]
    times: TimeAxis
    machine: Machine | None

    def rows_of(self, spans: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The row of each span's node."""
        return np.searchsorted(self.nodes, spans["node"])

    def node(self, row: int) -> str:
        """What the node of a row is called."""
        id_ = int(self.nodes[row])
        known = self.machine is not None and 0 <= id_ < len(self.machine)
        return escape_label(self.machine.names[id_]) if known else str(id_)  # type: ignore[union-attr]


def compute_layout(
    free: npt.NDArray[Any],
    tasks: npt.NDArray[Any] | None,
    named: dict[str, WindowLike],
    horizon: float | None,
    size: tuple[float, float] | None,
    terms: Terms,
    only: npt.NDArray[Any] | None,
) -> Layout:
    """Return the layout for axes of this size in inches, or for a picture of its own.

    O(s log s) for s slots, tasks and parts.
    """
    if horizon is not None:  # what begins later is not in the picture
        named = {name: w for name, w in named.items() if w.start < horizon}
    parts = _parts(list(named.values()))
    if only is not None:
        parts = parts[np.isin(parts["node"], only)]
    spans = [free, parts] if tasks is None else [free, parts, tasks]
    nodes = only
    if nodes is None:
        every = [span["node"] for span in spans]
        if tasks is None and terms[1] is not None and len(free):
            every.append(np.arange(len(terms[1])))  # also those that are never free
        nodes = np.unique(np.concatenate(every))
    first, last = time_range(spans, horizon)
    used = np.isin(nodes, parts["node"])
    row = np.searchsorted(nodes, parts["node"])
    lane, of = _lanes(row, parts)
    plan = Layout(
        nodes=nodes,
        used=used,
        edges=np.zeros(0),
        tall=0.0,
        first=first,
        last=last,
        inch=(last - first) / (0.9 * WIDTH if size is None else size[0]),
        named=named,
        parts=parts,
        row=row,
        lane=lane,
        of=of,
        captions=[],
        lanes=0,
        labels=[],
        times=TimeAxis(terms[0], first, last),
        machine=terms[1],
    )
    tall = min(ROW_TALL * max(nodes.size, 1), AXES_TALL) if size is None else size[1]
    while True:
        labels = _labels(plan, row_edges(used, tall))
        told = {int(parts["window"][label.part]) for label in labels}
        captions = _captions(plan, told)
        lanes = max((caption.level for caption in captions), default=-1) + 1
        if size is None or size[1] - lanes * LANE >= tall or tall == LANE:
            break
        tall = max(size[1] - lanes * LANE, LANE)  # what the lines above leave
    return replace(
        plan,
        captions=captions,
        lanes=lanes,
        labels=labels,
        edges=row_edges(used, tall),
        tall=tall,
    )


def require_span_fields(name: str, rows: Any) -> npt.NDArray[Any]:
    """Rows that say which node and when; TypeError for anything else."""
    names = getattr(getattr(rows, "dtype", None), "names", None) or ()
    if not {"node", "start", "end"} <= set(names):
        kind = type(rows).__name__
        raise TypeError(f"{name} must have the fields node, start and end, got {kind}")
    return cast("npt.NDArray[Any]", rows)


def label_windows(windows: Windows | None) -> dict[str, WindowLike]:
    """The windows by the name that is written beside each, as matplotlib takes it."""
    return {escape_label(name): w for name, w in name_windows(windows).items()}


def name_windows(windows: Windows | None) -> dict[str, WindowLike]:
    """The windows by their names."""
    if windows is None:
        return {}
    if isinstance(windows, Mapping):
        return {str(name): w for name, w in windows.items() if w is not None}
    single = hasattr(windows, "slots")  # all else is a collection of windows
    several = cast("Iterable[WindowLike | None]", [windows] if single else windows)
    found = [w for w in several if w is not None]
    for window in found:
        if not hasattr(window, "slots"):
            raise TypeError(f"windows must be windows, got {window!r} among them")
    if any(getattr(window, "name", None) for window in found):
        return unique_names([(getattr(w, "name", None), w) for w in found])
    criteria = [getattr(w, "criterion", None) for w in found]
    if all(isinstance(c, str) for c in criteria) and len(set(criteria)) == len(found):
        return {f"best by {c}": w for c, w in zip(criteria, found, strict=True)}
    return {f"window {i}": w for i, w in enumerate(found, 1)}


def unique_names(pairs: Sequence[tuple[str | None, Any]]) -> dict[str, WindowLike]:
    """Windows by their names; what is called as another has its number too."""
    named: dict[str, WindowLike] = {}
    for i, (name, window) in enumerate(pairs, 1):
        called = name or f"window {i}"
        while called in named:
            called = f"{called} ({i})"
        named[called] = window
    return named


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


def time_range(
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


def row_edges(used: npt.NDArray[np.bool_], tall: float) -> npt.NDArray[np.float64]:
    """Top edges of all rows, and the last bottom: `tall` inches, used rows readable."""
    m, k = used.size, int(used.sum())
    heights = np.full(m, tall / max(m, 1))
    if 0 < k < m:
        focus = min(WINDOW_ROW, WINDOW_SHARE * tall / k)
        if tall / m > LABEL_ROW:  # all rows can have a label, and keep it
            focus = min(focus, (tall - (m - k) * LABEL_ROW) / k)
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


def find_room_ends(plan: Layout, free: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """For each part where its free time ends, or the next part begins."""
    parts, last = plan.parts, plan.last
    limits = np.full(parts.size, last)
    for i, part in enumerate(parts):
        later = parts[(parts["node"] == part["node"]) & (parts["start"] >= part["end"])]
        around = free[(free["node"] == part["node"]) & (free["start"] < part["end"])]
        ends = [*later["start"], *around["end"][around["end"] >= part["end"]]]
        limits[i] = min([last, *ends])
    return limits


def bar_edges(
    edges: npt.NDArray[np.float64], row: Any, lane: Any = 0, of: Any = 1
) -> tuple[Any, Any]:
    """The top and the bottom of bars in lanes of rows."""
    height = edges[np.add(row, 1)] - edges[row]
    pad = np.where(height > GAP_ROW, 0.08 * height, 0.0)
    step = (height - 2 * pad) / of
    top = edges[row] + pad + lane * step
    return top, top + step


def fit_font_sizes(heights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The font of text on bars of these heights in inches; 0 where none has room."""
    fonts = np.minimum(72 * heights / TEXT_LINE, TEXT_FONT)
    return np.where(fonts < TEXT_LEAST, 0.0, fonts)


def _labels(plan: Layout, edges: npt.NDArray[np.float64]) -> list[Label]:
    """The names that stand on bars which are wide and tall enough, of many windows."""
    if len(plan.named) <= GUIDED or not plan.parts.size:
        return []
    words = [name.removeprefix("window ") for name in plan.named]
    letters = np.array([len(each) for each in words])
    parts = plan.parts
    top, bottom = bar_edges(edges, plan.row, plan.lane, plan.of)
    fonts = fit_font_sizes(bottom - top)
    wide = (parts["end"].clip(max=plan.last) - parts["start"]) / plan.inch
    need = (4 + LETTER * fonts * letters[parts["window"]]) / 72
    roomy = np.flatnonzero((wide >= need) & (fonts > 0))
    if roomy.size > LABELS:  # the topmost bar of each
        roomy = roomy[np.unique(parts["window"][roomy], return_index=True)[1]]
    return [
        Label(part, words[parts["window"][part]], float(fonts[part]))
        for part in roomy[:LABELS].tolist()
    ]


def _captions(plan: Layout, told: set[int]) -> list[Caption]:
    """Name windows, each at the first level where its line and words have room.

    Not those that are told already, and of many windows only as many as LANES hold.
    """
    first, last, inch = plan.first, plan.last, plan.inch
    captions: list[Caption] = []
    taken: list[list[tuple[float, float]]] = []
    for number, (name, window) in enumerate(plan.named.items()):
        if number in told:
            continue
        start, finish = (
            min(max(t, first), last) for t in (window.start, window.finish)
        )
        words = f"{name}: {plan.times.span(window.start, window.finish)}"
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
            if level == LANES and len(plan.named) > GUIDED:
                continue
            taken.append([])
        taken[level].append((left, right))
        captions.append(Caption(number, words, x, shift, align, level))
    return captions

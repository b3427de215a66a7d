"""Gantt pictures: boxes, labels, captions, files."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import slotkern as sk

pytest.importorskip("matplotlib")
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from slotkern.plotting.gantt import plot_gantt
from slotkern.plotting.layout import LANES, name_windows
from slotkern.plotting.style import BUSY, FREE, INK, WINDOW_COLOURS

PART = [("node", "i4"), ("start", "f8"), ("end", "f8")]


def slots_of(nodes: int, per_node: int = 3) -> Any:
    """Return slots: each node is free `per_node` times, 6 of 10 time units."""
    node = np.repeat(np.arange(nodes), per_node)
    start = np.tile(np.arange(per_node) * 10.0, nodes)
    return sk.make_slots(
        node=node, start=start, end=start + 6, performance=1.0, price=1.0
    )


def window_on(*nodes: int, start: float = 1.0, end: float = 4.0) -> Any:
    parts = np.array([(node, start, end) for node in nodes], PART)
    return SimpleNamespace(start=start, finish=end, slots=parts)


def boxes(figure: Figure, colour: str) -> list[tuple[float, float, float, float]]:
    """Return left, right, top and bottom of all rectangles of a colour, sorted."""
    found = []
    for collection in figure.axes[0].collections:
        if not isinstance(collection, PolyCollection):
            continue
        if collection.get_facecolor().tolist() == [list(to_rgba(colour))]:
            for path in collection.get_paths():
                (left, top), (right, bottom) = path.vertices[[0, 2]].tolist()
                found.append((left, right, top, bottom))
    return sorted(found)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def row_labels(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_free_time_and_windows_lie_where_they_should() -> None:
    slots = sk.make_slots(
        node=[5, 9, 9],
        start=[0, 0, 20],
        end=[30, 10, np.inf],
        performance=[1, 2, 2],
        price=1,
    )
    figure = plot_gantt(slots, window_on(5, 9), horizon=40)
    assert [box[:2] for box in boxes(figure, FREE)] == [(0, 10), (0, 30), (20, 40)]
    assert [box[:2] for box in boxes(figure, BUSY)] == [(0, 40), (0, 40)]
    assert [box[:2] for box in boxes(figure, WINDOW_COLOURS[0])] == [(1, 4), (1, 4)]
    upper, lower = (b for b in boxes(figure, FREE) if b[0] == 0)
    assert {upper[3] < lower[2], lower[3] < upper[2]} == {True, False}
    assert row_labels(figure) == ["5", "9"]
    assert figure.axes[0].get_xlim() == (0, 40)


def test_given_tasks_are_the_busy_time() -> None:
    tasks = np.array([(0, 6.0, 10.0), (1, 6.0, 9.0)], PART)
    figure = plot_gantt(slots_of(2), tasks=tasks)
    assert [box[:2] for box in boxes(figure, BUSY)] == [(6, 9), (6, 10)]


def test_the_horizon_is_the_latest_finite_time() -> None:
    slots = sk.make_slots(
        node=[0, 1], start=[0, 0], end=[np.inf, 50], performance=1, price=1
    )
    right = plot_gantt(slots).axes[0].get_xlim()[1]
    assert 50 < right < 60
    assert boxes(plot_gantt(slots), FREE)[-1][1] == right
    assert plot_gantt(slots_of(3)).axes[0].get_xlim() == (0, 26)


@pytest.mark.parametrize("nodes", [8, 400])
def test_one_collection_per_colour(nodes: int) -> None:
    windows = [window_on(1, 2), window_on(3, 4, start=11, end=14)]
    figure = plot_gantt(slots_of(nodes), windows)
    polygons = [c for c in figure.axes[0].collections if isinstance(c, PolyCollection)]
    assert len(polygons) == 4
    assert len(boxes(figure, FREE)) == 3 * nodes


@pytest.mark.parametrize(("nodes", "labelled"), [(8, 8), (100, 40), (400, 40)])
def test_node_labels_do_not_overlap(nodes: int, labelled: int) -> None:
    used = [0, 3, nodes // 2, nodes // 2 + 1, nodes - 1]
    figure = plot_gantt(slots_of(nodes), window_on(*used))
    figure.draw_without_rendering()
    labels = figure.axes[0].get_yticklabels()
    assert {str(node) for node in used} <= {label.get_text() for label in labels}
    assert len(labels) == 8 if nodes == 8 else len(labels) <= labelled
    spans = sorted(label.get_window_extent().intervaly.tolist() for label in labels)
    assert all(low[1] <= high[0] + 1 for low, high in pairwise(spans))


def test_rows_of_a_window_stay_readable_among_many() -> None:
    figure = plot_gantt(slots_of(400), window_on(7, 200))
    rows = {box[2:] for box in boxes(figure, FREE)}
    heights = sorted(bottom - top for top, bottom in rows)
    assert heights[-2] > 4 * heights[0]
    assert heights[-2] > 0.12  # inches


def test_height_grows_then_saturates() -> None:
    heights = [
        plot_gantt(slots_of(n, 1)).get_size_inches()[1] for n in (2, 8, 100, 400, 4000)
    ]
    assert heights[0] < heights[1] < heights[2] == heights[3] == heights[4] < 12


def test_each_caption_has_name_and_times() -> None:
    windows = {"cheap": window_on(0, 1), "soon": None, "fast": window_on(1, end=1.25)}
    figure = plot_gantt(slots_of(3), windows)
    assert [text for text in texts(figure) if "to" in text] == [
        "cheap: 1 to 4",
        "fast: 1 to 1.25",
    ]


@pytest.mark.parametrize(
    ("start", "end", "align"), [(1, 4, "left"), (20, 25, "right"), (1, 25, "center")]
)
def test_the_times_stay_inside_the_picture(
    start: float, end: float, align: str
) -> None:
    figure = plot_gantt(slots_of(3), window_on(0, start=start, end=end))
    figure.draw_without_rendering()
    (text,) = figure.axes[0].texts
    assert text.get_horizontalalignment() == align
    left, right = text.get_window_extent().intervalx
    edges = figure.axes[0].get_window_extent().intervalx
    assert edges[0] <= left < right <= edges[1]


def test_parts_that_end_early_have_end_times() -> None:
    window = window_on(0, 1)
    window.slots["end"][0] = 2.5
    assert "2.5" in texts(plot_gantt(slots_of(3), window))


@pytest.mark.parametrize(
    ("windows", "names"),
    [
        (window_on(0), ["window 1"]),
        ([window_on(0), None, window_on(1)], ["window 1", "window 2"]),
        ([], []),
        (None, []),
    ],
)
def test_forms_of_windows(windows: Any, names: list[str]) -> None:
    figure = plot_gantt(slots_of(3), windows)
    assert [t.split(":")[0] for t in texts(figure)] == names


def test_windows_found_are_named_by_criterion() -> None:
    slots = slots_of(4)
    job = sk.Request(2, 3)
    found = [sk.find_window(slots, job, c) for c in ("finish", "cost")]
    names = [t.split(":")[0] for t in texts(plot_gantt(slots, found))]
    assert names == ["best by finish", "best by cost"]


def looks(figure: Figure) -> list[tuple[Any, ...]]:
    """Return colour and hatch of each collection of rectangles of a window."""
    return [
        (*collection.get_facecolor().tolist()[0], collection.get_hatch())
        for collection in figure.axes[0].collections
        if isinstance(collection, PolyCollection) and collection.get_zorder() == 4
    ]


def test_names_of_many_windows_are_on_wide_bars() -> None:
    wide = [window_on(i, i + 1, start=4.0 * i, end=4.0 * i + 3) for i in range(7)]
    narrow = window_on(8, start=9, end=9.1)
    figure = plot_gantt(slots_of(9), [*wide, narrow])
    axes = figure.axes[0]
    on_bars = [text for text in axes.texts if ":" not in text.get_text()]
    assert [t.get_text() for t in on_bars] == [str(i // 2 + 1) for i in range(14)]
    assert [t for t in texts(figure) if ":" in t] == ["window 8: 9 to 9.1"]
    figure.draw_without_rendering()
    bars = [
        axes.transData.transform(path.vertices[[0, 2]])
        for box in axes.collections
        if isinstance(box, PolyCollection) and box.get_zorder() == 4
        for path in box.get_paths()
    ]
    for text, bar in zip(on_bars, bars, strict=False):
        extent = text.get_window_extent()
        assert bar[0, 0] <= extent.x0 < extent.x1 <= bar[1, 0]


def names_within_bars(figure: Figure) -> list[str]:
    """Return the names on bars; asserts that each is within its bar."""
    axes = figure.axes[0]
    figure.draw_without_rendering()
    bars = [
        axes.transData.transform(path.vertices[[0, 2]])
        for box in axes.collections
        if isinstance(box, PolyCollection) and box.get_zorder() == 4
        for path in box.get_paths()
    ]
    found = [text for text in axes.texts if ":" not in text.get_text()]
    for text in found:
        drawn = text.get_window_extent()
        assert any(
            left <= drawn.x0 < drawn.x1 <= right
            and min(low, high) <= drawn.y0 + 0.5 < drawn.y1 - 0.5 <= max(low, high)
            for (left, low), (right, high) in bars
        ), text
    return [text.get_text() for text in found]


@pytest.mark.parametrize("nodes", [8, 40, 55, 70, 120])
def test_names_are_within_bars_of_any_height(nodes: int) -> None:
    windows = {f"gpj{i}": window_on(i, start=0, end=9) for i in range(nodes)}
    names = names_within_bars(plot_gantt(slots_of(nodes), windows))
    assert names == (list(windows) if nodes < 100 else [])


@pytest.mark.parametrize(("lanes", "named"), [(1, True), (3, True), (4, False)])
def test_names_are_within_their_lanes(lanes: int, named: bool) -> None:
    windows = {
        f"gpj{i}": window_on(i // lanes, start=i % lanes, end=9)
        for i in range(lanes * 7)
    }
    names = names_within_bars(plot_gantt(slots_of(7), windows))
    assert names == (list(windows) if named else [])


@pytest.mark.parametrize("tall", [1, 2, 3, 6])
def test_names_on_bars_of_given_axes(tall: int) -> None:
    figure = Figure(figsize=(9, tall))
    ax = figure.add_axes((0.1, 0.1, 0.8, 0.7))
    short = [window_on(9, start=i, end=i + 0.1) for i in range(9)]
    wide = [window_on(i, start=0, end=9) for i in range(9)]
    plot_gantt(slots_of(10), [*wide, *short], ax=ax)
    assert bool(names_within_bars(figure)) == (tall == 6)


def test_only_selected_nodes_have_rows() -> None:
    window = window_on(3, 7)
    figure = plot_gantt(slots_of(20), window, nodes="used")
    assert row_labels(figure) == ["3", "7"]
    assert len(boxes(figure, FREE)) == 6
    some = plot_gantt(slots_of(20), window, nodes=[7, 1])
    assert sorted(row_labels(some)) == ["1", "7"]
    machine = sk.Machine.homogeneous(20, prefix="$n")
    named = plot_gantt(sk.SlotPool(slots_of(20), machine=machine), nodes=["$n05"])
    assert row_labels(named) == [r"\$n05"]
    with pytest.raises(ValueError, match="nodes must be one of"):
        plot_gantt(slots_of(2), nodes="some")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nodes must be"):
        plot_gantt(slots_of(2), nodes=[0.5])  # type: ignore[list-item]


def test_many_narrow_windows_keep_their_names_and_differ() -> None:
    windows = [window_on(i % 5, start=i / 2, end=i / 2 + 0.2) for i in range(42)]
    figure = plot_gantt(slots_of(5), windows)
    names = [text.get_text().split(":")[0] for text in figure.axes[0].texts]
    assert len(names) > 24
    assert names == sorted(names, key=lambda name: int(name.split()[1]))
    assert len(set(looks(figure))) == 42
    figure.draw_without_rendering()
    # Names and lines of captions do not overlap.
    spans = [text.get_window_extent() for text in figure.axes[0].texts]
    spans += [patch.get_window_extent() for patch in figure.axes[0].patches]
    assert len(spans) == 2 * len(names)
    for i, one in enumerate(spans):
        assert not any(one.overlaps(other) for other in spans[:i])
    # Windows far apart in time share a level: there are fewer levels than windows.
    levels = {patch.get_y() for patch in figure.axes[0].patches}
    assert len(levels) == LANES


def test_the_first_of_very_many_windows_are_named() -> None:
    windows = [window_on(i % 5, start=i / 20, end=i / 20 + 0.2) for i in range(250)]
    figure = plot_gantt(slots_of(5), windows)
    assert len({patch.get_y() for patch in figure.axes[0].patches}) == LANES
    named = len(figure.axes[0].texts)
    assert LANES <= named < 100
    assert len(looks(figure)) == 250
    legend = figure.axes[0].get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["free", "busy", f"250 windows, {named} of them named"]
    figure.draw_without_rendering()
    assert not legend.get_window_extent().overlaps(
        figure.axes[0].patch.get_window_extent()
    )


@pytest.mark.parametrize("seed", range(8))
def test_end_times_do_not_overlap_the_next_bar(seed: int) -> None:
    environment = sk.generate_environment("aep", nodes=12, interval=300, seed=seed)
    job = sk.Request(3, 200)
    found = sk.find_alternatives(environment, job, shape="ragged", limit=8)
    figure = plot_gantt(environment, found, tasks=environment.tasks, horizon=300)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    labels = [text for text in axes.texts if ":" not in text.get_text()]
    assert labels
    boxes = [
        box.vertices
        for collection in axes.collections
        if isinstance(collection, PolyCollection) and collection.get_zorder() in (1, 4)
        for box in map(axes.transData.transform_path, collection.get_paths())
    ]
    for label in labels:
        extent = label.get_window_extent()
        end, _ = axes.transData.transform(label.xy)
        for box in boxes:
            (left, low), (right, high) = box[:4].min(axis=0), box[:4].max(axis=0)
            begins_later = left > end - 0.5
            overlaps = left < extent.x1 and right > extent.x0
            overlaps &= low < extent.y1 - 2 and high > extent.y0 + 2
            assert not (begins_later and overlaps), label.get_text()


def test_names_are_drawn_literally() -> None:
    named = {"a $x^2$ b": window_on(0), "_hidden": window_on(1), "$\\frac$": None}
    figure = plot_gantt(slots_of(2), named, title="$100 and $200")
    own = sk.make_slots(
        node=[0, 1], start=0, end=9, performance=1, price=1, **{"$q$ and $": [1.0, 2.0]}
    )
    best = [sk.find_window(own, sk.Request(1, 1), c) for c in ("$q$ and $", "cost")]
    steps = sk.plot_steps(own, sk.Request(1, 1), "$q$ and $")
    other = plot_gantt(own, best)
    for each in (figure, steps, other):
        each.draw_without_rendering()  # text parsed as a formula would fail here
        for text in each.findobj(Text):
            # An even number of unescaped dollars, if any, would be a formula.
            assert len(re.findall(r"(?<!\\)\$", text.get_text())) == 0
    assert "best by \\$q\\$ and \\$" in texts(other)[0]


def test_overlapping_windows_share_the_row() -> None:
    windows = [window_on(0, 1), window_on(0, start=3, end=6), window_on(2)]
    figure = plot_gantt(slots_of(3), windows)
    first = boxes(figure, WINDOW_COLOURS[0])
    (second,) = boxes(figure, WINDOW_COLOURS[1])
    (whole,) = boxes(figure, WINDOW_COLOURS[2])
    upper, other_row = first
    assert upper[3] == pytest.approx(second[2])
    height = whole[3] - whole[2]
    assert upper[3] - upper[2] == pytest.approx(height / 2)
    assert other_row[3] - other_row[2] == pytest.approx(height)


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_files_are_reproducible(tmp_path: Path, suffix: str, magic: bytes) -> None:
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix.upper()}"
    for path in (first, second):
        plot_gantt(slots_of(8), window_on(1, 2), path=path, title="T")
    assert first.read_bytes().startswith(magic)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_a_failed_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        plot_gantt(slots_of(2), path=path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.gif", "a", "png"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"suffix is one of \.png, \.svg, \.pdf"):
        plot_gantt(slots_of(2), path=tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("horizon", [0.0, -1.0, np.nan, np.inf])
def test_bad_horizon(horizon: float) -> None:
    with pytest.raises(ValueError, match=f"horizon is {horizon}"):
        plot_gantt(slots_of(2), horizon=horizon)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(slots=None), "slots must have the fields node, start and end"),
        (dict(slots=np.zeros(3)), "slots must have the fields"),
        (dict(slots=slots_of(2), tasks=3), "tasks must have the fields"),
        (
            dict(slots=slots_of(2), windows=[3]),
            "windows must contain windows only, got 3",
        ),
    ],
)
def test_invalid_arguments_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        plot_gantt(**given)


def test_dollar_signs_are_literal(tmp_path: Path) -> None:
    windows = {r"$\bad $": window_on(0)}
    path = tmp_path / "money.png"
    plot_gantt(slots_of(2), windows, title=r"100 $, $\bad $", path=path)
    assert path.stat().st_size > 0


def test_into_given_axes_and_from_a_pool() -> None:
    figure = Figure()
    _, right = figure.subplots(1, 2)
    assert plot_gantt(sk.SlotPool(slots_of(3)), window_on(1), ax=right) is figure
    assert len(right.get_yticklabels()) == 3


def test_no_slots(tmp_path: Path) -> None:
    figure = plot_gantt(slots_of(2)[:0], path=tmp_path / "empty.png")
    assert boxes(figure, FREE) == []
    assert (tmp_path / "empty.png").stat().st_size > 0


def test_pyplot_is_not_imported(tmp_path: Path) -> None:
    code = (
        "import sys, slotkern as sk\n"
        "assert 'matplotlib' not in sys.modules\n"
        "slots = sk.make_slots(node=[0], start=0, end=1, performance=1, price=1)\n"
        "sk.plot_gantt(slots, path=sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    target = tmp_path / "a.png"
    subprocess.run([sys.executable, "-c", code, target], check=True)


@pytest.mark.parametrize("letters", [8, 60, 90, 300])
def test_titles_do_not_overlap_the_legend(letters):
    slots = sk.make_slots(node=[0], start=[0], end=[9], performance=[1], price=[1])
    title = ("a title that is long " * 20)[:letters].strip()
    (ax,) = sk.plot_gantt(slots, title=title).axes
    ax.figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    shown = ax._left_title.get_window_extent()
    assert not shown.overlaps(legend)
    assert shown.x1 < ax.figure.bbox.x1
    assert shown.y1 < ax.figure.bbox.y1
    assert ax.get_title(loc="left").replace("\n", " ") == title


def test_windows_beyond_the_horizon_have_no_caption() -> None:
    soon, late = window_on(0, start=0, end=4), window_on(1, start=20, end=24)
    ax = plot_gantt(slots_of(70), {"soon": soon, "late": late}, horizon=15).axes[0]
    printed = [text.get_text().partition(":")[0] for text in ax.texts]
    assert "soon" in printed
    assert "late" not in printed
    strong = {t.get_text() for t in ax.get_yticklabels() if t.get_color() == INK}
    assert strong == {"0"}


def test_rows_without_windows_keep_their_labels() -> None:
    plain = row_labels(plot_gantt(slots_of(60)))
    assert len(plain) == 60
    busy = [window_on(*range(0, 60, 2), start=0, end=4)]
    assert set(row_labels(plot_gantt(slots_of(60), busy))) == set(plain)


def test_bookings_have_the_colours_of_their_page() -> None:
    """Colours follow the names of owners, as on a page, not the order of bookings."""
    pool = sk.SlotPool(slots_of(4))
    for owner in ("maintenance", "alice"):
        window = pool.find(sk.Request(2, 3, name="a"), "first")
        assert window is not None
        pool.book(window, owner=owner)
    texts = [text.get_text() for text in pool.plot().axes[0].texts]
    names = [text.partition(":")[0] for text in texts]
    assert [name for name in names if "," in name] == ["alice, a", "maintenance, a"]


def test_disabled_nodes_have_a_colour_and_a_legend_entry() -> None:
    slots = sk.make_slots(node=[0, 1, 2], start=0, end=40, performance=1, price=1)
    pool = sk.SlotPool(slots)

    def legend(figure: Figure) -> list[str]:
        return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]

    assert legend(sk.plot_gantt(pool)) == ["free", "busy"]
    pool.disable([1])
    figure = sk.plot_gantt(pool)
    assert legend(figure) == ["free", "busy", "disabled"]
    axes = figure.axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["0", "1", "2"]
    hatched = [each for each in axes.collections if each.get_hatch()]
    assert len(hatched) == 1
    assert hatched[0].get_paths()[0].get_extents().intervalx.tolist() == [0, 40]
    assert legend(sk.plot_gantt(pool, nodes=[0, 2])) == ["free", "busy"]


def test_reservations_are_named_as_such() -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=40, performance=1, price=1)
    pool = sk.SlotPool(slots)
    pool.reserve([0], 1, 2, owner="maintenance")
    assert list(name_windows(pool.windows())) == ["reserved"]


def test_a_node_that_is_never_free_has_a_row() -> None:
    machine = sk.Machine({"name": ["a", "b", "c"]})
    busy = {"node": ["b", "c"], "start": [0.0, 0.0], "end": [9.0, 4.0]}
    free = sk.free_slots(machine, busy, start=0, end=9)
    for thing in (free, sk.SlotPool(free)):
        (ax,) = thing.plot().axes
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == ["a", "b", "c"]

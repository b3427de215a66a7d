"""Pictures of windows between adjacent tasks."""

import numpy as np
import pytest

import slotkern as sk

pytest.importorskip("matplotlib")


@pytest.fixture
def slots():
    return sk.make_slots(
        node=[0, 1, 1, 2],
        start=[0, 5, 70, 0],
        end=[40, 60, 90, 8],
        performance=1,
        price=1,
    )


def boxes(panel, colour):
    """Return (row, left, right) of the bars of a face colour."""
    from matplotlib.colors import to_rgba

    return [
        (
            round(bar.get_y() + bar.get_height() / 2),
            bar.get_x(),
            bar.get_x() + bar.get_width(),
        )
        for bar in panel.patches
        if bar.get_facecolor() == to_rgba(colour)
    ]


def test_parts_tasks_and_distances(slots):
    window = sk.find_window(slots, sk.Request(2, 10, earliest=12), "start")
    assert window.start == 12
    tasks = np.array(
        [(0, 40.0, 55.0), (1, 0.0, 5.0), (1, 60.0, 70.0), (2, 8.0, 90.0)],
        dtype=[("node", "i4"), ("start", "f8"), ("end", "f8")],
    )
    (panel,) = sk.plot_neighbours(slots, window, tasks=tasks).axes
    assert boxes(panel, "white") == [(0, 12, 22), (1, 12, 22)]
    assert boxes(panel, "#B4B9C0") == [(0, 40, 55), (1, 0, 5), (1, 60, 70)]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["0", "1"]
    printed = [text.get_text() for text in panel.texts if text.get_text()]
    assert printed == ["12", "18", "7", "38"]
    title = panel.get_title(loc="left")
    assert title == "nearest task 9.5 away, farthest 28, on average"
    near, far = (np.mean(gaps) for gaps in ((12, 7), (18, 38)))
    assert (near, far) == (9.5, 28)


def test_the_means_are_what_the_criteria_optimize(slots):
    request = sk.Request(2, 10)
    for criterion, words in (
        ("dependable", "nearest task"),
        ("coordinated", "farthest"),
    ):
        window = sk.find_window(slots, request, criterion)
        (panel,) = sk.plot_neighbours(slots, {"$w$": window}).axes
        assert f"{words} {window.value:.4g}" in panel.get_title(loc="left")
        assert panel.get_title(loc="left").startswith(r"\$w\$: ")


def test_a_part_at_the_edge_has_one_arrow(slots):
    window = sk.find_window(slots, sk.Request(1, 8), "coordinated")
    assert (window.nodes, window.value) == ((2,), 0)
    (panel,) = sk.plot_neighbours(slots, window).axes
    assert not panel.texts


def test_distances_do_not_overlap_parts_or_tasks():
    slots = sk.make_slots(
        node=[0, 1], start=[0, 1], end=[12, 13], performance=1, price=1
    )
    window = sk.find_window(slots, sk.Request(2, 10, earliest=1.5), "start")
    figure = sk.plot_neighbours(slots, window, horizon=200)
    figure.canvas.draw()
    (panel,) = figure.axes
    bars = [bar.get_window_extent() for bar in panel.patches]
    printed = [text.get_window_extent() for text in panel.texts if text.get_text()]
    assert len(printed) == 4
    for i, text in enumerate(printed):
        assert not any(text.overlaps(other) for other in bars + printed[:i])


def test_files_and_invalid_arguments(slots, tmp_path):
    window = sk.find_window(slots, sk.Request(2, 10), "start")
    path = tmp_path / "beside.png"
    sk.plot_neighbours(slots, [window, window], path=path, title="A $ sign", horizon=30)
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="no window"):
        sk.plot_neighbours(slots, [None])
    with pytest.raises(ValueError, match="suffix"):
        sk.plot_neighbours(slots, window, path="x.gif")
    with pytest.raises(ValueError, match="no slot of node 0 contains"):
        sk.plot_neighbours(slots[1:], window)
    with pytest.raises(TypeError, match="fields node, start and end"):
        sk.plot_neighbours([1, 2], window)

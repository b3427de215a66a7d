"""Tests of reasons and owners of busy spans: preserved, and drawn on pages, plots."""

from __future__ import annotations

from matplotlib.text import Text

import slotkern as sk

MACHINE = sk.Machine({"name": ["a", "b"], "price": [1, 2]})
BUSY = {
    "node": ["a", "b", "a"],
    "start": [0, 2, 8],
    "end": [4, 5, 99],
    "reason": ["maintenance", "job", ""],
    "owner": ["", "ann", ""],
    "ticket": [7, 8, 9],
}


def test_further_columns_of_busy_spans_are_kept() -> None:
    free = sk.free_slots(MACHINE, BUSY, start=1, end=10)
    assert free.busy[["node", "start", "end"]].tolist() == [
        (0, 1, 4),
        (1, 2, 5),
        (0, 8, 10),
    ]
    assert free.busy["reason"].tolist() == ["maintenance", "job", ""]
    assert free.busy["ticket"].tolist() == [7, 8, 9]
    assert len(sk.free_slots(MACHINE, start=1, end=10).busy) == 0


def test_one_hostlist_has_its_reason_on_each_node() -> None:
    busy = {"node": ["[a,b]"], "start": [2], "end": [3], "reason": ["down"]}
    machine = sk.Machine({"name": ["n1", "n2"]})
    busy["node"] = ["n[1-2]"]
    free = sk.free_slots(machine, busy, start=0, end=10)
    assert free.busy["reason"].tolist() == ["down", "down"]


def test_a_page_has_a_colour_for_each_reason() -> None:
    free = sk.free_slots(MACHINE, BUSY, start=0, end=10)
    page = sk.view(free)
    assert "2 busy spans" in repr(page)
    assert '"noun":"reason","names":["job","maintenance"]' in page.html.replace(" ", "")
    assert "ann" in page.html
    assert "busy span" not in repr(sk.view(sk.free_slots(MACHINE, start=0, end=10)))


def test_a_picture_names_the_reasons() -> None:
    free = sk.free_slots(MACHINE, BUSY, start=0, end=10)
    figure = free.plot()
    texts = " ".join(text.get_text() for text in figure.findobj(Text))
    assert "maintenance" in texts
    assert "job" in texts

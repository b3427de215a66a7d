"""Keys, pointers, filters and the table of pages in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.viewer_pages import named_pool, three_windows

import slotkern as sk

Open = Callable[..., Any]


def test_keys_zoom_move_select_and_deselect(open_page: Open) -> None:
    pool = named_pool()
    shown = open_page(sk.view(pool, three_windows(pool)))
    first = shown.visible_range()
    shown.key("+")
    closer = shown.visible_range()
    assert closer[1] - closer[0] == pytest.approx((first[1] - first[0]) / 1.5)
    shown.key("ArrowRight")
    assert shown.visible_range()[0] > closer[0]
    shown.key("Shift+ArrowUp")
    assert shown.visible_range()[3] - shown.visible_range()[2] < first[3] - first[2]
    shown.key("0")
    assert shown.visible_range() == first
    shown.key("n")
    assert shown.evaluate("viewer.chosen") >= 0
    assert shown.page.locator(".panel h2").inner_text() in ("start", "finish", "cost")
    status = shown.page.locator("[role=status].hidden").inner_text()
    assert "2026-10-24" in status
    chosen = shown.evaluate("viewer.chosen")
    shown.key("n")
    assert shown.evaluate("viewer.chosen") != chosen
    shown.key("p")
    assert shown.evaluate("viewer.chosen") == chosen
    shown.key("Enter")
    x0, x1, *_ = shown.visible_range()
    assert x0 <= shown.evaluate(f"viewer.scene.items.start[{chosen}]") < x1
    shown.key("Escape")
    assert shown.evaluate("viewer.chosen") == -1
    assert shown.page.locator(".panel").is_hidden()


def test_zoom_by_keys_keeps_the_selection_in_place(open_page: Open) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=1000, performance=1, price=1)
    window = sk.find_window(slots, sk.Request(2, 20, earliest=800), "start")
    shown = open_page(sk.view(slots, window))
    shown.key("n")
    middle = (window.start + window.finish) / 2
    before = shown.evaluate(f"viewer.painter.x({middle})")
    for _ in range(6):
        shown.key("+")
    assert shown.evaluate(f"viewer.painter.x({middle})") == pytest.approx(
        before, abs=0.5
    )


def test_mouse_wheel_drag_click_and_range(open_page: Open) -> None:
    pool = named_pool()
    shown = open_page(sk.view(pool, three_windows(pool)))
    first = shown.visible_range()
    box = shown.page.locator("canvas[tabindex]").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.page.mouse.move(x, y)
    shown.page.mouse.wheel(0, -400)
    shown.wait_for(f"viewer.viewport.x1 - viewer.viewport.x0 < {first[1] - first[0]}")
    closer = shown.visible_range()
    assert closer[1] - closer[0] < first[1] - first[0]
    shown.page.mouse.down()
    shown.page.mouse.move(x - 120, y, steps=4)
    shown.page.mouse.up()
    assert shown.visible_range()[0] > closer[0]
    assert shown.evaluate("viewer.chosen") == -1
    shown.page.keyboard.down("Shift")
    shown.page.mouse.down()
    shown.page.mouse.move(x + 50, y, steps=4)
    shown.page.mouse.up()
    shown.page.keyboard.up("Shift")
    ranged = shown.visible_range()
    assert ranged[1] - ranged[0] < (closer[1] - closer[0]) / 4
    shown.key("0")
    part = shown.evaluate(
        "[viewer.scene.parts.start[0], viewer.scene.parts.end[0], "
        "viewer.scene.position[viewer.scene.parts.row[0]]]"
    )
    at = shown.evaluate(
        f"[viewer.painter.x({(part[0] + part[1]) / 2}), "
        f"viewer.painter.y({part[2] + 0.5})]"
    )
    shown.page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    shown.frame()
    assert "2026-10-24" in shown.page.locator(".card").inner_text()
    shown.page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    assert shown.evaluate("viewer.chosen") >= 0


def test_two_fingers_zoom_and_one_moves(open_page: Open) -> None:
    pool = named_pool()
    shown = open_page(sk.view(pool), width=390, height=800, has_touch=True)
    first = shown.visible_range()
    box = shown.page.locator("canvas[tabindex]").bounding_box()
    touch = shown.page.context.new_cdp_session(shown.page)

    def fingers(kind: str, *places: tuple[float, float]) -> None:
        points = [
            {"x": box["x"] + x, "y": box["y"] + y, "id": i}
            for i, (x, y) in enumerate(places)
        ]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", (150, 200), (210, 200))
    for step in range(1, 9):
        fingers("touchMove", (150 - 5 * step, 200), (210 + 5 * step, 200))
    fingers("touchEnd")
    shown.wait_for(
        f"viewer.viewport.x1 - viewer.viewport.x0 < 0.7 * {first[1] - first[0]}"
    )
    closer = shown.visible_range()
    assert closer[1] - closer[0] < 0.7 * (first[1] - first[0])
    fingers("touchStart", (200, 200))
    for step in range(1, 9):
        fingers("touchMove", (200 - 10 * step, 200))
    fingers("touchEnd")
    shown.wait_for(f"viewer.viewport.x0 > {closer[0]}")
    moved = shown.visible_range()
    assert moved[0] > closer[0]
    assert moved[1] - moved[0] == pytest.approx(closer[1] - closer[0])


def test_filters_select_rows(open_page: Open) -> None:
    pool = named_pool()
    windows = three_windows(pool)
    shown = open_page(sk.view(pool, windows))
    names = "Array.from(viewer.scene.order, row => viewer.scene.nodeName(row))"
    search = shown.page.get_by_role("searchbox", name="Nodes")
    search.fill("anna1, 3-4")
    assert shown.evaluate(names) == ["anna1", "anna3", "anna4"]
    search.fill("nobody")
    assert shown.evaluate(names) == []
    shown.frame()
    search.fill("")
    shown.page.get_by_role("button", name="only nodes with windows").click()
    used = sorted({name for w in windows.values() for name in w.names})
    assert shown.evaluate(names) == used
    assert shown.messages == []


def test_the_table_sorts_filters_and_selects(open_page: Open) -> None:
    slots = sk.make_slots(
        node=[0, 1], start=0, end=3000, performance=1, price=[1.0, 2.0]
    )
    found = sk.find_alternatives(slots, sk.Request(2, 10), limit=150)
    shown = open_page(sk.view(slots, found))
    shown.page.get_by_text("150 windows as a table").click()
    rows = shown.page.locator("tbody tr")
    shown.wait_for_count(rows, 100)  # the toggle event is asynchronous
    assert "page 1 of 2" in shown.page.locator(".pages").inner_text()
    head = shown.page.get_by_role("columnheader", name="start")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert rows.first.locator("th").inner_text() == "window 150"
    shown.page.get_by_label("Find a window").fill("window 14")
    shown.wait_for_count(rows, 11)  # 14 and 140 to 149
    rows.last.get_by_role("button").click()
    assert shown.evaluate("viewer.chosen") == 13
    assert shown.page.locator(".panel h2").inner_text() == "window 14"


def test_a_batch_shows_chosen_and_other_alternatives(open_page: Open) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    jobs = [sk.Request(1, 30, name="small"), sk.Request(2, 30, name="wide")]
    # Alternatives of one slice are disjoint, those of two slices overlap.
    done = sk.schedule_batch(slots, jobs, sk.BatchSlicer(2))
    shown = open_page(sk.view(done))
    chosen = shown.evaluate("Array.from(viewer.scene.items.chosen)")
    assert np.flatnonzero(chosen).tolist() == sorted(done.chosen.tolist())
    assert len(chosen) == len(done.alternatives)
    boxes = shown.evaluate("viewer.scene.boxes.part.length")
    lanes = "Array.from(viewer.scene.boxes.part, (i) => viewer.scene.lanes[i])"
    assert max(shown.evaluate(lanes)) > 1
    shown.page.get_by_role("button", name="alternatives").click()
    assert shown.evaluate("viewer.scene.boxes.part.length") < boxes
    # Hidden alternatives occupy no lanes.
    assert set(shown.evaluate(lanes)) == {1}
    words = f"{len(done.alternatives)} windows, 2 of them chosen"
    assert words in shown.page.locator(".summary").inner_text()
    legend = shown.page.locator(".legend").inner_text()
    assert "small" in legend
    assert "wide" in legend

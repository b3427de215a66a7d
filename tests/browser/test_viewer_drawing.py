"""Drawing of pages in Chromium: rows, windows, prices and the overview."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.viewer_pages import BLUE, BUSY, FREE

import slotkern as sk

Open = Callable[..., Any]


def test_free_busy_and_windows_have_their_colours(open_page: Open) -> None:
    slots = sk.make_slots(
        node=[0, 1, 1], start=[0, 0, 60], end=[90, 40, 100], performance=1, price=1
    )
    window = sk.find_window(slots, sk.Request(2, 30), "start")
    shown = open_page(sk.view(slots, window))
    assert shown.colour(47, 0.5) == FREE
    assert shown.colour(95, 0.5) == BUSY
    assert shown.colour(47, 1.5) == BUSY
    assert shown.colour(77, 1.5) == FREE
    assert shown.colour(23, 0.8) == shown.colour(23, 1.8) == BLUE
    assert shown.messages == []


@pytest.mark.parametrize("width", [390, 1280])
def test_prices_are_steps_below_the_rows(open_page: Open, width: int) -> None:
    machine = sk.Machine({"name": ["a", "b"], "price": 1})
    half = {"spot": sk.Tariff([12], [1, 0.25])}
    free = sk.free_slots(machine, start=0, end=24, tariffs=half)
    shown = open_page(sk.view(free), width)

    def at(time: float, price: float) -> tuple[int, int, int]:
        row = shown.evaluate(
            f"""(() => {{
              const p = viewer.painter, bottom = p.frame.axis - 3;
              const y = bottom - {price} * (bottom - p.frame.bottom - 22);
              return (y - p.y(0)) / p.pixelsPerRow;
            }})()"""
        )
        return shown.colour(time, row)

    back = at(19, 0.6)
    assert at(7, 0.6) == at(19, 0.12) != back  # below the steps
    assert back == at(19, 0.9)
    assert shown.colour(7, 0.5) == FREE  # the rows end above the strip
    assert shown.messages == []


@pytest.mark.parametrize("nodes", [4, 6000])
def test_disabled_nodes_differ_from_busy_ones(open_page: Open, nodes: int) -> None:
    rows = sk.make_slots(
        node=np.arange(nodes), start=0, end=100, performance=1, price=1
    )
    pool = sk.SlotPool(rows)
    half = nodes // 2
    pool.book(pool.find(sk.Request(nodes, 20), "start"), owner="ann")
    pool.disable(list(range(half)), start=40, owner="fan")
    shown = open_page(sk.view(pool))
    off = shown.evaluate("viewer.colours.disabled")
    colour = tuple(int(off[i : i + 2], 16) for i in (1, 3, 5))
    assert colour not in (FREE, BUSY, BLUE)
    found = {shown.colour(73 + k / 4, half * 0.7) for k in range(5)}
    assert colour in found
    assert not found & {FREE, BUSY}
    assert shown.colour(73, half * 1.7) == shown.colour(33, half * 0.7) == FREE
    assert "disabled" in shown.page.locator(".legend").inner_text()
    shown.evaluate(
        f"(p => viewer.onPointerMove(p.x(70), p.y({half * 0.7})))(viewer.painter)"
    )
    words = shown.page.locator(".card").inner_text()
    assert all(each in words for each in ("disabled", "fan", "enabled again"))
    assert shown.messages == []


def test_many_rows_are_painted_as_shares_of_pixels(open_page: Open) -> None:
    # Every second row is free until 50, all rows are free from 50 on.
    nodes = 6000
    start = np.where(np.arange(nodes) % 2, 50.0, 0.0)
    slots = sk.make_slots(
        node=np.arange(nodes), start=start, end=100.0, performance=1, price=1
    )
    shown = open_page(sk.view(slots))
    half = tuple((a + b) // 2 for a, b in zip(FREE, BUSY, strict=True))
    for row in (1000.5, 2999.5, 5000.5):
        mixed = shown.colour(23, row)
        assert max(abs(a - b) for a, b in zip(mixed, half, strict=True)) <= 6
        assert shown.colour(77, row) == FREE


def test_parts_of_shared_nodes_have_heights(open_page: Open) -> None:
    machine = sk.Machine({"name": ["anna", "bert"], "cores": [8, 8]}, capacity="cores")
    pool = sk.HostPool(sk.free_slots(machine, start=0, end=10))
    for cores, start in ((4, 0), (2, 0), (8, 6)):
        job = sk.Request(1, 4, share={"cores": cores}, earliest=start)
        pool.book(pool.find(job), owner=f"{cores} cores")
    shown = open_page(sk.view(pool))
    tall = shown.evaluate(
        "Array.from(viewer.scene.boxes.part, (_, i) => viewer.painter.boxRect(i).tall)"
    )
    assert tall == pytest.approx([tall[2] / 2, tall[2] / 4, tall[2]])
    assert shown.colour(1.3, 0.4) != shown.colour(1.3, 0.6) != shown.colour(1.3, 0.9)
    assert shown.colour(1.3, 0.9) == FREE
    at = "(viewer.painter.frame.right - viewer.painter.frame.left)"
    for time, taken in ((0.2, 0.75), (0.5, 0), (0.8, 1)):
        shares = shown.evaluate(f"viewer.overview.shares({time} * {at})")
        assert shares["taken"] == pytest.approx(taken, abs=0.01)
        assert shares["free"] == pytest.approx(2 - taken, abs=0.01)


def test_overlapping_windows_share_the_row(open_page: Open) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    both = [sk.find_window(slots, sk.Request(2, 40)) for _ in range(2)]
    shown = open_page(sk.view(slots, {"first": both[0], "second": both[1]}))
    upper, lower = shown.colour(37, 0.35), shown.colour(37, 0.9)
    assert upper == BLUE
    assert lower == (213, 94, 0)
    # The overview counts nodes: a row with two windows counts once.
    at = "(viewer.painter.frame.right - viewer.painter.frame.left)"
    shares = shown.evaluate(f"viewer.overview.shares(0.2 * {at})")
    assert shares["taken"] == pytest.approx(2, abs=0.01)
    assert shares["free"] == pytest.approx(0, abs=0.01)
    assert shown.evaluate(f"viewer.overview.shares(0.6 * {at})")["taken"] < 0.01
    # Overview and legend contain the colours of both.
    colours = shown.evaluate(
        "[...document.querySelectorAll('.legend .swatch')]"
        ".map((mark) => mark.style.background).filter(Boolean)"
    )
    assert colours == ["rgb(0, 114, 178)", "rgb(213, 94, 0)"]
    sums = shown.evaluate(
        "Array.from(viewer.overview.cover.sums.slice(0, viewer.overview.channels))"
    )
    assert sums[4:6] == pytest.approx([2, 0], abs=0.01)


def overview_colour(shown: Any, time: float, share: float) -> tuple[int, int, int]:
    """Return the colour of the overview at a time and a height from 0 to 1."""
    y = f"{1 - share} * 40 - viewer.painter.y(0)"
    row = shown.evaluate(f"({y}) / viewer.painter.pixelsPerRow")
    found: tuple[int, int, int] = shown.colour(time, row)
    return found


@pytest.mark.parametrize("booked", [True, False])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_overview_stacks_free_nodes_on_windows(
    open_page: Open, booked: bool, width: int
) -> None:
    # From 10 to 20, ten of 16 nodes are in the window; two are busy until 60.
    machine = sk.Machine.homogeneous(16)
    busy = {"node": [14, 15], "start": [0, 0], "end": [60, 60]}
    pool = sk.SlotPool(sk.free_slots(machine, busy, start=0, end=100))
    window = pool.find(sk.Request(10, 10, earliest=10), "start")
    if booked:
        pool.book(window, owner="ann")
    shown = open_page(sk.view(pool, None if booked else window), width)
    for share in (0.03, 0.3, 0.58):
        assert overview_colour(shown, 15, share) == BLUE
    for share in (0.67, 0.83):
        assert overview_colour(shown, 15, share) == FREE
    for time in (15, 40):
        for share in (0.91, 0.97):
            assert overview_colour(shown, time, share) == BUSY
    for time, share in ((40, 0.03), (40, 0.83), (80, 0.97)):
        assert overview_colour(shown, time, share) == FREE
    shown.evaluate("viewer.onPointerMove(viewer.painter.x(15), 20)")
    card = shown.page.locator(".card").inner_text()
    assert "4 of 16 nodes" in card
    assert "10 of 16 nodes" in card
    shown.evaluate("viewer.onPointerMove(viewer.painter.x(40), 20)")
    card = shown.page.locator(".card").inner_text()
    assert "14 of 16 nodes" in card
    assert "\n0 of 16 nodes" in card
    assert shown.messages == []


def test_a_window_on_disabled_nodes_leaves_the_rest_free(open_page: Open) -> None:
    pool = sk.SlotPool(sk.free_slots(sk.Machine.homogeneous(8), start=0, end=100))
    pool.book(pool.find(sk.Request(4, 50), "start"), owner="ann")
    pool.disable([0, 1, 6, 7], owner="fan")
    shown = open_page(sk.view(pool))
    colours = [overview_colour(shown, 21, k / 8 + 0.06) for k in range(8)]
    assert colours[:4] == [BLUE] * 4
    assert colours[4:6] == [FREE] * 2
    assert not {*colours[6:]} & {FREE, BUSY, BLUE}

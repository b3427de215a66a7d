"""Pages in Chromium: size, accessibility, printing and safety."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.viewer_pages import named_pool, three_windows

import slotkern as sk

Open = Callable[..., Any]


def large_view(nodes: int = 20_000, each: int = 5, windows: int = 200) -> sk.View:
    """Return a page as large as the viewer is documented to support."""
    rng = np.random.default_rng(1)
    cuts = np.sort(rng.uniform(0, 3 * 86400, (nodes, 2 * each)), axis=1)
    slots = sk.make_slots(
        node=np.repeat(np.arange(nodes), each),
        start=cuts[:, 0::2].ravel(),
        end=cuts[:, 1::2].ravel(),
        performance=np.repeat(rng.integers(1, 5, nodes), each),
        price=rng.uniform(0, 1, nodes * each),
    )
    pool = sk.SlotPool(
        slots,
        clock=sk.Clock("2026-10-24 06:00", zone="Europe/Berlin"),
        machine=sk.Machine.homogeneous(nodes, prefix="node"),
    )
    found = sk.find_alternatives(pool, sk.Request(8, 8000), limit=windows)
    assert len(found) == windows
    return sk.view(pool, found)


def test_a_large_page_draws_without_requests_or_messages(open_page: Open) -> None:
    shown = open_page(large_view())
    assert len(shown.requests) == 1  # the page itself
    assert shown.messages == []
    frames = shown.evaluate(
        """new Promise(done => {
          const first = viewer.scene.about.first, last = viewer.scene.about.last;
          let frames = 0;
          const begin = performance.now();
          const step = () => {
            const by = 1 - 0.002 * (frames % 10);
            viewer.viewport.showAll();
            viewer.viewport.zoomTime(by, (first + last) / 2);
            viewer.paint();
            frames++;
            if (frames < 30) requestAnimationFrame(step);
            else done(frames);
          };
          requestAnimationFrame(step);
        })"""
    )
    assert frames == 30
    # A window can be selected and zoomed to among 20,000 nodes.
    shown.key("n")
    shown.key("Enter")
    x0, x1, y0, y1 = shown.visible_range()
    assert x1 - x0 < 86400
    assert 0 <= y0 < y1 <= 20_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_accessible(open_page: Open, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    axe, pool = Axe(), named_pool()
    shown = open_page(
        sk.view(pool, three_windows(pool)), width=width, color_scheme=scheme
    )
    shown.key("n")
    shown.page.locator("summary").click()
    found = axe.run(shown.page).response["violations"]
    assert [(each["id"], each["impact"]) for each in found] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_enough_contrast(open_page: Open, scheme: str) -> None:
    shown = open_page(sk.view(named_pool()), color_scheme=scheme)
    colours = shown.evaluate("viewer.colours")

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    def contrast(one: str, other: str) -> float:
        high, low = sorted((light(one), light(other)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    assert contrast(colours["free"], colours["busy"]) >= 3
    for text in ("ink", "faint"):
        assert contrast(colours[text], colours["back"]) >= 4.5
    if scheme == "dark":  # in the light scheme windows have dark outlines
        assert min(contrast(each, colours["free"]) for each in colours["windows"]) >= 3


def test_printing_is_white_with_the_table(open_page: Open) -> None:
    pool = named_pool()
    shown = open_page(sk.view(pool, three_windows(pool)), color_scheme="dark")
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.evaluate("viewer.colours.back") == "#ffffff"
    assert shown.evaluate("document.querySelector('details').open")
    assert shown.page.pdf(landscape=True).startswith(b"%PDF")
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    shown.frame()
    assert shown.evaluate("viewer.colours.back") != "#ffffff"
    assert not shown.evaluate("document.querySelector('details').open")


def test_text_of_users_is_not_markup(open_page: Open) -> None:
    evil = "</script><script>document.title='x'</script>"
    turn = "a\u202eb\u2028c\x00d"
    table = sk.Machine({"name": [evil, turn, "<b>&amp;\"'", "שלום"]})
    pool = sk.SlotPool(
        sk.free_slots(table, start="2026-01-01", end="2026-01-02", zone="UTC")
    )
    window = pool.find(sk.Request(4, walltime="1:00:00", name=evil), "start")
    shown = open_page(sk.view(pool, window, title=evil))
    assert shown.page.title() == evil
    names = [shown.evaluate(f"viewer.scene.nodeName({row})") for row in range(4)]
    assert names == [evil, "a\\u202eb\\u2028c\\x00d", "<b>&amp;\"'", "שלום"]
    shown.key("n")
    assert shown.page.locator(".panel h2").inner_text() == evil
    assert shown.page.locator("h1").inner_text() == evil
    assert shown.page.locator("b b, .panel script").count() == 0
    assert shown.messages == []


def test_the_page_works_in_a_sandboxed_frame(browser: Any) -> None:
    pool = named_pool()
    page = browser.new_page()
    page.set_content(sk.view(pool, three_windows(pool))._repr_html_())
    frame = page.frame_locator("iframe")
    frame.locator("canvas").first.wait_for()
    assert frame.locator("h1").inner_text().startswith("slotkern")
    page.close()


@pytest.mark.parametrize("kind", ["none", "empty", "one moment", "no end"])
def test_empty_and_infinite_schedules(open_page: Open, kind: str) -> None:
    slots = sk.make_slots(
        node=[0, 1], start=[0, 5], end=[10, math.inf], performance=1, price=1
    )
    windows: Any = None
    if kind == "empty":
        slots = slots[:0]
    if kind == "one moment":
        slots = slots[:0]
        windows = sk.WindowTable.of([])
    if kind == "no end":
        windows = sk.find_window(slots, sk.Request(1, 3))
    shown = open_page(sk.view(slots, windows))
    for key in ("+", "-", "n", "Enter", "PageDown", "u", "Escape", "0"):
        shown.key(key)
    assert shown.messages == []

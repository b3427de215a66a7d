"""Pages of schedules in Chromium: drawing, controls, accessibility and safety."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slotkern as sk

Open = Callable[..., Any]

FREE, BUSY, BLUE = (237, 243, 249), (132, 141, 152), (0, 114, 178)


def named_pool() -> sk.SlotPool:
    """Return six named nodes in a zone whose clocks go back in the second night."""
    table = sk.Machine(
        {"name": [f"anna{i}" for i in range(6)], "performance": [1, 1, 2, 2, 3, 3]}
    )
    busy = {
        "node": ["anna0", "anna1", "anna2", "anna5"],
        "start": ["2026-10-24 13:00", "2026-10-24 20:00"] * 2,
        "end": ["2026-10-24 18:00", "2026-10-25 04:00"] * 2,
    }
    return sk.SlotPool(
        sk.free_slots(
            table,
            busy,
            start="2026-10-24 12:00",
            end="2026-10-26",
            zone="Europe/Berlin",
            unit="h",
        )
    )


def three_windows(pool: sk.SlotPool) -> dict[str, Any]:
    job = sk.Request(3, walltime="4:00:00")
    return {name: pool.find(job, name) for name in ("start", "finish", "cost")}


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


# --- drawing


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
    assert shares["free"] == pytest.approx(2, abs=0.01)
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


def test_dates_are_shown_in_the_zone_of_the_clock(open_page: Open) -> None:
    pool = named_pool()
    shown = open_page(sk.view(pool, three_windows(pool)))
    assert shown.evaluate("viewer.scale.label") == "Europe/Berlin"
    ticks = shown.evaluate("viewer.scale.ticks(12, 20, 20).map(t => t.text)")
    # Midnight is hour 12; the clocks go back from 3 to 2 o'clock.
    assert ticks[:10:2] == ["00:00", "01:00", "02:00", "02:00", "03:00"]
    text = shown.evaluate("[14.5, 15.5].map(t => viewer.scale.text(t))")
    assert text == ["2026-10-25 02:30 +02:00", "2026-10-25 02:30 +01:00"]
    assert pool.clock is not None
    for hours in (0.0, 12.25, 14.5, 15.5, 35.75):
        expected = str(pool.clock.datetime(hours))
        shown_text = shown.evaluate(f"viewer.scale.text({hours})")
        assert shown_text == f"{expected[:16]} {expected[19:]}"
    days = shown.evaluate("viewer.scale.context(0, 38, 9).map(t => t.text)")
    assert days == ["Sat 2026-10-24", "Sun 2026-10-25", "Mon 2026-10-26"]


ZONES = (
    ("Europe/Berlin", "2026-03-28"),
    ("Australia/Lord_Howe", "2026-04-03"),  # shift of half an hour
    ("Asia/Kathmandu", "2026-01-01"),
    ("America/St_Johns", "2006-10-27"),  # at one minute past midnight
    ("Africa/Casablanca", "2026-02-14"),
    ("Europe/Amsterdam", "1930-05-13"),  # offset with seconds
    ("UTC", "1500-02-27"),  # beyond nanoseconds of 64 bits
)


#: A script that redraws the picture and returns the texts in it.
PAINTED_TEXTS = """() => {
    const canvas = CanvasRenderingContext2D.prototype, old = canvas.fillText;
    const words = [];
    canvas.fillText = function (text, ...rest) {
        words.push(text);
        return old.call(this, text, ...rest);
    };
    viewer.painter.draw(viewer.base2d, -1);
    canvas.fillText = old;
    return words;
}"""


def week(names: str) -> sk.View:
    """Return a page of a week of free time; `names` is the prefix of node names."""
    slots = sk.free_slots(
        sk.Machine.homogeneous(3, prefix=names),
        start="2026-11-23",
        end="2026-11-30",
        zone="Europe/Berlin",
    )
    return sk.view(slots)


@pytest.mark.parametrize(("names", "has_zone"), [("n", False), ("bigmem0", True)])
def test_each_day_of_a_week_has_its_date(
    open_page: Open, names: str, has_zone: bool
) -> None:
    shown = open_page(week(names))
    words = shown.evaluate(PAINTED_TEXTS)
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    dates = [f"{day} 2026-11-{date}" for date, day in enumerate(days, 23)]
    assert [word for word in words if word in dates] == dates
    assert ("Europe/Berlin" in words) is has_zone  # long node names leave space for it


def test_a_narrow_week_has_ticks(open_page: Open) -> None:
    shown = open_page(week("n"))
    shown.page.set_viewport_size({"width": 420, "height": 900})
    shown.frame()
    words = shown.evaluate(PAINTED_TEXTS)
    assert len([word for word in words if word.startswith("11-")]) > 1
    assert "Europe/Berlin" in words


@pytest.mark.parametrize(("zone", "origin"), ZONES, ids=[zone for zone, _ in ZONES])
def test_dates_and_ticks_agree_with_python(
    open_page: Open, zone: str, origin: str
) -> None:
    """Texts and ticks in each zone agree with the datetimes of Python."""
    clock = sk.Clock(origin, zone=zone)
    slots = sk.make_slots(node=0, start=[0], end=[4e8], performance=1, price=1)
    shown = open_page(sk.view(sk.SlotPool(slots, clock=clock)))
    rng = np.random.default_rng(5)
    times = [*rng.integers(0, 4 * 86400, 150), *rng.integers(0, 4 * 10**8, 150)]
    texts = shown.evaluate(f"{[int(t) for t in times]}.map(t => viewer.scale.text(t))")
    for time, text in zip(times, texts, strict=True):
        date = clock.datetime(float(time))
        assert date is not None
        day, hour, offset = text.replace("\u2212", "-").split(" ")
        assert f"{day} {hour}{':00' * (hour.count(':') == 1)}{offset}" == str(date)
    forms = {5: "%H:%M", 8: "%H:%M:%S", 10: "%Y-%m-%d", 7: "%Y-%m", 4: "%Y"}
    for span in (300.0, 7200.0, 40_000.0, 3e5, 2e6, 2e7, 3e8):
        for first in (0.0, 86_400.0, 1e6):
            ticks = shown.evaluate(f"viewer.scale.ticks({first}, {first + span}, 12)")
            assert 2 <= len(ticks) <= 16
            at = [tick["at"] for tick in ticks]
            assert at == sorted(set(at))
            for tick in ticks:
                date = clock.datetime(tick["at"])
                assert date is not None
                text, form = tick["text"], forms[len(tick["text"])]
                if "-" in text and len(text) == 5:
                    form = "%m-%d"
                assert date.strftime(form) == text
                if ":" not in text:
                    midnight = date.hour, date.minute, date.second
                    assert midnight == (0, 0, 0)


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8"]),
        (-3, 3, ["\u22122", "0", "2"]),
        (0, 20000, ["0", "5,000", "10,000", "15,000"]),
    ],
)
def test_plain_numbers_have_round_ticks(
    open_page: Open, first: float, last: float, words: list[str]
) -> None:
    slots = sk.make_slots(node=0, start=[0], end=[100], performance=1, price=1)
    shown = open_page(sk.view(slots))
    ticks = shown.evaluate(f"viewer.scale.ticks({first}, {last}, 5).map(t => t.text)")
    assert ticks == words


# --- moving and selecting


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


# --- size, accessibility, printing and safety


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

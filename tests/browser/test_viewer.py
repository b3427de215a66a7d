"""The page of a schedule in a real browser: what it shows, and how it moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slotkern as sk

Open = Callable[..., Any]

FREE, BUSY, BLUE = (237, 243, 249), (132, 141, 152), (0, 114, 178)


def machine() -> sk.SlotPool:
    """Six nodes with names in a zone whose clocks go back in the second night."""
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


def three(pool: sk.SlotPool) -> dict[str, Any]:
    job = sk.Request(3, walltime="4:00:00")
    return {name: pool.find(job, name) for name in ("start", "finish", "cost")}


def crowd(nodes: int = 20_000, each: int = 5, windows: int = 200) -> sk.View:
    """A large machine, as the viewer promises to show it."""
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


# --- what is painted


def test_free_busy_and_windows_are_painted_where_they_are(opened: Open) -> None:
    slots = sk.make_slots(
        node=[0, 1, 1], start=[0, 0, 60], end=[90, 40, 100], performance=1, price=1
    )
    window = sk.find_window(slots, sk.Request(2, 30), "start")
    shown = opened(sk.view(slots, window))
    assert shown.colour(47, 0.5) == FREE
    assert shown.colour(95, 0.5) == BUSY
    assert shown.colour(47, 1.5) == BUSY
    assert shown.colour(77, 1.5) == FREE
    assert shown.colour(23, 0.8) == shown.colour(23, 1.8) == BLUE
    assert shown.said == []


def test_many_rows_are_painted_as_shares_of_pixels(opened: Open) -> None:
    # Half of the rows is free until 50, all are from 50 on.
    nodes = 6000
    start = np.where(np.arange(nodes) % 2, 50.0, 0.0)
    slots = sk.make_slots(
        node=np.arange(nodes), start=start, end=100.0, performance=1, price=1
    )
    shown = opened(sk.view(slots))
    half = tuple((a + b) // 2 for a, b in zip(FREE, BUSY, strict=True))
    for row in (1000.5, 2999.5, 5000.5):
        mixed = shown.colour(23, row)
        assert max(abs(a - b) for a, b in zip(mixed, half, strict=True)) <= 6
        assert shown.colour(77, row) == FREE


def test_windows_that_overlap_share_the_row(opened: Open) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    both = [sk.find_window(slots, sk.Request(2, 40)) for _ in range(2)]
    shown = opened(sk.view(slots, {"first": both[0], "second": both[1]}))
    upper, lower = shown.colour(37, 0.35), shown.colour(37, 0.9)
    assert upper == BLUE
    assert lower == (213, 94, 0)
    # The strip counts nodes: a row that two windows share is one.
    at = "(viewer.painter.frame.right - viewer.painter.frame.left)"
    shares = shown.ask(f"viewer.strip.shares(0.2 * {at})")
    assert shares["taken"] == pytest.approx(2, abs=0.01)
    assert shares["free"] == pytest.approx(2, abs=0.01)
    assert shown.ask(f"viewer.strip.shares(0.6 * {at})")["taken"] < 0.01
    # Strip and legend have the colours of both.
    colours = shown.ask(
        "[...document.querySelectorAll('.legend .swatch')]"
        ".map((mark) => mark.style.background).filter(Boolean)"
    )
    assert colours == ["rgb(0, 114, 178)", "rgb(213, 94, 0)"]
    sums = shown.ask(
        "Array.from(viewer.strip.cover.sums.slice(0, viewer.strip.channels))"
    )
    assert sums[3:5] == pytest.approx([2, 0], abs=0.01)


def test_nodes_with_names_dates_with_a_zone(opened: Open) -> None:
    pool = machine()
    shown = opened(sk.view(pool, three(pool)))
    assert shown.ask("viewer.scale.label") == "Europe/Berlin"
    ticks = shown.ask("viewer.scale.ticks(12, 20, 20).map(t => t.text)")
    # Midnight is hour 12; the clocks go back from 3 to 2 o'clock.
    assert ticks[:10:2] == ["00:00", "01:00", "02:00", "02:00", "03:00"]
    text = shown.ask("[14.5, 15.5].map(t => viewer.scale.text(t))")
    assert text == ["2026-10-25 02:30 +02:00", "2026-10-25 02:30 +01:00"]
    assert pool.clock is not None
    for hours in (0.0, 12.25, 14.5, 15.5, 35.75):
        said = str(pool.clock.datetime(hours))
        told = shown.ask(f"viewer.scale.text({hours})")
        assert told == f"{said[:16]} {said[19:]}"
    days = shown.ask("viewer.scale.context(0, 38, 9).map(t => t.text)")
    assert days == ["Sat 2026-10-24", "Sun 2026-10-25", "Mon 2026-10-26"]


ZONES = (
    ("Europe/Berlin", "2026-03-28"),
    ("Australia/Lord_Howe", "2026-04-03"),  # half an hour
    ("Asia/Kathmandu", "2026-01-01"),
    ("America/St_Johns", "2006-10-27"),  # at one minute past midnight
    ("Africa/Casablanca", "2026-02-14"),
    ("Europe/Amsterdam", "1930-05-13"),  # seconds
    ("UTC", "1500-02-27"),  # beyond nanoseconds of 64 bits
)


#: The words of a picture that is painted anew.
PAINTED = """() => {
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
    """A week of a machine."""
    slots = sk.free_slots(
        sk.Machine.homogeneous(3, prefix=names),
        start="2026-11-23",
        end="2026-11-30",
        zone="Europe/Berlin",
    )
    return sk.view(slots)


@pytest.mark.parametrize(("names", "told"), [("n", False), ("bigmem0", True)])
def test_each_day_of_a_week_has_its_date(opened: Open, names: str, told: bool) -> None:
    shown = opened(week(names))
    words = shown.ask(PAINTED)
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    dates = [f"{day} 2026-11-{date}" for date, day in enumerate(days, 23)]
    assert [word for word in words if word in dates] == dates
    assert ("Europe/Berlin" in words) is told  # where there is room left of the axis


def test_a_narrow_week_has_ticks(opened: Open) -> None:
    shown = opened(week("n"))
    shown.page.set_viewport_size({"width": 420, "height": 900})
    shown.frame()
    words = shown.ask(PAINTED)
    assert len([word for word in words if word.startswith("11-")]) > 1
    assert "Europe/Berlin" in words


@pytest.mark.parametrize(("zone", "origin"), ZONES, ids=[zone for zone, _ in ZONES])
def test_dates_are_those_of_the_clock(opened: Open, zone: str, origin: str) -> None:
    """Of every zone, in words and at ticks, as Python's own calendar has them."""
    clock = sk.Clock(origin, zone=zone)
    slots = sk.make_slots(node=0, start=[0], end=[4e8], performance=1, price=1)
    shown = opened(sk.view(sk.SlotPool(slots, clock=clock)))
    rng = np.random.default_rng(5)
    times = [*rng.integers(0, 4 * 86400, 150), *rng.integers(0, 4 * 10**8, 150)]
    told = shown.ask(f"{[int(t) for t in times]}.map(t => viewer.scale.text(t))")
    for time, text in zip(times, told, strict=True):
        date = clock.datetime(float(time))
        assert date is not None
        day, hour, offset = text.replace("\u2212", "-").split(" ")
        assert f"{day} {hour}{':00' * (hour.count(':') == 1)}{offset}" == str(date)
    forms = {5: "%H:%M", 8: "%H:%M:%S", 10: "%Y-%m-%d", 7: "%Y-%m", 4: "%Y"}
    for span in (300.0, 7200.0, 40_000.0, 3e5, 2e6, 2e7, 3e8):
        for first in (0.0, 86_400.0, 1e6):
            ticks = shown.ask(f"viewer.scale.ticks({first}, {first + span}, 12)")
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
    opened: Open, first: float, last: float, words: list[str]
) -> None:
    slots = sk.make_slots(node=0, start=[0], end=[100], performance=1, price=1)
    shown = opened(sk.view(slots))
    ticks = shown.ask(f"viewer.scale.ticks({first}, {last}, 5).map(t => t.text)")
    assert ticks == words


# --- moving and selecting


def test_keys_zoom_move_select_and_forget(opened: Open) -> None:
    pool = machine()
    shown = opened(sk.view(pool, three(pool)))
    first = shown.sight()
    shown.key("+")
    closer = shown.sight()
    assert closer[1] - closer[0] == pytest.approx((first[1] - first[0]) / 1.5)
    shown.key("ArrowRight")
    assert shown.sight()[0] > closer[0]
    shown.key("Shift+ArrowUp")
    assert shown.sight()[3] - shown.sight()[2] < first[3] - first[2]
    shown.key("0")
    assert shown.sight() == first
    shown.key("n")
    assert shown.ask("viewer.chosen") >= 0
    assert shown.page.locator(".panel h2").inner_text() in ("start", "finish", "cost")
    told = shown.page.locator("[role=status].hidden").inner_text()
    assert "2026-10-24" in told
    chosen = shown.ask("viewer.chosen")
    shown.key("n")
    assert shown.ask("viewer.chosen") != chosen
    shown.key("p")
    assert shown.ask("viewer.chosen") == chosen
    shown.key("Enter")
    x0, x1, *_ = shown.sight()
    assert x0 <= shown.ask(f"viewer.scene.items.start[{chosen}]") < x1
    shown.key("Escape")
    assert shown.ask("viewer.chosen") == -1
    assert shown.page.locator(".panel").is_hidden()


def test_zoom_by_keys_keeps_the_selection_in_place(opened: Open) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=1000, performance=1, price=1)
    window = sk.find_window(slots, sk.Request(2, 20, earliest=800), "start")
    shown = opened(sk.view(slots, window))
    shown.key("n")
    middle = (window.start + window.finish) / 2
    before = shown.ask(f"viewer.painter.x({middle})")
    for _ in range(6):
        shown.key("+")
    assert shown.ask(f"viewer.painter.x({middle})") == pytest.approx(before, abs=0.5)


def test_mouse_wheel_drag_click_and_range(opened: Open) -> None:
    pool = machine()
    shown = opened(sk.view(pool, three(pool)))
    first = shown.sight()
    box = shown.page.locator("canvas[tabindex]").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.page.mouse.move(x, y)
    shown.page.mouse.wheel(0, -400)
    shown.wait_for(f"viewer.sight.x1 - viewer.sight.x0 < {first[1] - first[0]}")
    closer = shown.sight()
    assert closer[1] - closer[0] < first[1] - first[0]
    shown.page.mouse.down()
    shown.page.mouse.move(x - 120, y, steps=4)
    shown.page.mouse.up()
    assert shown.sight()[0] > closer[0]
    assert shown.ask("viewer.chosen") == -1
    shown.page.keyboard.down("Shift")
    shown.page.mouse.down()
    shown.page.mouse.move(x + 50, y, steps=4)
    shown.page.mouse.up()
    shown.page.keyboard.up("Shift")
    ranged = shown.sight()
    assert ranged[1] - ranged[0] < (closer[1] - closer[0]) / 4
    shown.key("0")
    part = shown.ask(
        "[viewer.scene.parts.start[0], viewer.scene.parts.end[0], "
        "viewer.scene.place[viewer.scene.parts.row[0]]]"
    )
    at = shown.ask(
        f"[viewer.painter.x({(part[0] + part[1]) / 2}), "
        f"viewer.painter.y({part[2] + 0.5})]"
    )
    shown.page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    shown.frame()
    assert "2026-10-24" in shown.page.locator(".card").inner_text()
    shown.page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    assert shown.ask("viewer.chosen") >= 0


def test_two_fingers_zoom_and_one_moves(opened: Open) -> None:
    pool = machine()
    shown = opened(sk.view(pool), width=390, height=800, has_touch=True)
    first = shown.sight()
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
    shown.wait_for(f"viewer.sight.x1 - viewer.sight.x0 < 0.7 * {first[1] - first[0]}")
    closer = shown.sight()
    assert closer[1] - closer[0] < 0.7 * (first[1] - first[0])
    fingers("touchStart", (200, 200))
    for step in range(1, 9):
        fingers("touchMove", (200 - 10 * step, 200))
    fingers("touchEnd")
    shown.wait_for(f"viewer.sight.x0 > {closer[0]}")
    moved = shown.sight()
    assert moved[0] > closer[0]
    assert moved[1] - moved[0] == pytest.approx(closer[1] - closer[0])


def test_filters_leave_the_rows_that_were_asked_for(opened: Open) -> None:
    pool = machine()
    windows = three(pool)
    shown = opened(sk.view(pool, windows))
    names = "Array.from(viewer.scene.order, row => viewer.scene.node(row))"
    search = shown.page.get_by_role("searchbox", name="Nodes")
    search.fill("anna1, 3-4")
    assert shown.ask(names) == ["anna1", "anna3", "anna4"]
    search.fill("nobody")
    assert shown.ask(names) == []
    shown.frame()
    search.fill("")
    shown.page.get_by_role("button", name="only nodes with windows").click()
    used = sorted({name for w in windows.values() for name in w.names})
    assert shown.ask(names) == used
    assert shown.said == []


def test_the_table_sorts_filters_and_selects(opened: Open) -> None:
    slots = sk.make_slots(
        node=[0, 1], start=0, end=3000, performance=1, price=[1.0, 2.0]
    )
    found = sk.find_alternatives(slots, sk.Request(2, 10), limit=150)
    shown = opened(sk.view(slots, found))
    shown.page.get_by_text("150 windows as a table").click()
    rows = shown.page.locator("tbody tr")
    shown.wait_for_count(rows, 100)  # a browser tells later that it has opened
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
    assert shown.ask("viewer.chosen") == 13
    assert shown.page.locator(".panel h2").inner_text() == "window 14"


def test_a_batch_shows_what_was_and_what_was_not_chosen(opened: Open) -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    jobs = [sk.Request(1, 30, name="small"), sk.Request(2, 30, name="wide")]
    # Alternatives of one piece share no time, those of two do.
    done = sk.schedule_batch(slots, jobs, sk.BatchSlicer(2))
    shown = opened(sk.view(done))
    chosen = shown.ask("Array.from(viewer.scene.items.chosen)")
    assert np.flatnonzero(chosen).tolist() == sorted(done.chosen.tolist())
    assert len(chosen) == len(done.alternatives)
    boxes = shown.ask("viewer.scene.boxes.part.length")
    lanes = "Array.from(viewer.scene.boxes.part, (i) => viewer.scene.lanes[i])"
    assert max(shown.ask(lanes)) > 1
    shown.page.get_by_role("button", name="alternatives").click()
    assert shown.ask("viewer.scene.boxes.part.length") < boxes
    # What is not shown takes no room from what is.
    assert set(shown.ask(lanes)) == {1}
    words = f"{len(done.alternatives)} windows, 2 of them chosen"
    assert words in shown.page.locator(".summary").inner_text()
    legend = shown.page.locator(".legend").inner_text()
    assert "small" in legend
    assert "wide" in legend


# --- what it promises


def test_a_crowd_is_quick_small_and_silent(opened: Open) -> None:
    shown = opened(crowd())
    assert len(shown.requests) == 1  # itself
    assert shown.said == []
    frames = shown.ask(
        """new Promise(done => {
          const first = viewer.scene.about.first, last = viewer.scene.about.last;
          let frames = 0;
          const begin = performance.now();
          const step = () => {
            const by = 1 - 0.002 * (frames % 10);
            viewer.sight.all();
            viewer.sight.zoomTime(by, (first + last) / 2);
            viewer.paint();
            frames++;
            if (frames < 30) requestAnimationFrame(step);
            else done(frames);
          };
          requestAnimationFrame(step);
        })"""
    )
    assert frames == 30
    # All windows are there, by name, and one can be found among 20,000 nodes.
    shown.key("n")
    shown.key("Enter")
    x0, x1, y0, y1 = shown.sight()
    assert x1 - x0 < 86400
    assert 0 <= y0 < y1 <= 20_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_used_by_everybody(opened: Open, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    axe, pool = Axe(), machine()
    shown = opened(sk.view(pool, three(pool)), width=width, color_scheme=scheme)
    shown.key("n")
    shown.page.locator("summary").click()
    found = axe.run(shown.page).response["violations"]
    assert [(each["id"], each["impact"]) for each in found] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_apart(opened: Open, scheme: str) -> None:
    shown = opened(sk.view(machine()), color_scheme=scheme)
    colours = shown.ask("viewer.colours")

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
    if scheme == "dark":  # where light ones have no darker outline
        assert min(contrast(each, colours["free"]) for each in colours["windows"]) >= 3


def test_paper_is_white_and_has_the_table(opened: Open) -> None:
    pool = machine()
    shown = opened(sk.view(pool, three(pool)), color_scheme="dark")
    shown.ask("dispatchEvent(new Event('beforeprint'))")
    assert shown.ask("viewer.colours.back") == "#ffffff"
    assert shown.ask("document.querySelector('details').open")
    assert shown.page.pdf(landscape=True).startswith(b"%PDF")
    shown.ask("dispatchEvent(new Event('afterprint'))")
    shown.frame()
    assert shown.ask("viewer.colours.back") != "#ffffff"
    assert not shown.ask("document.querySelector('details').open")


def test_what_people_write_is_text(opened: Open) -> None:
    evil = "</script><script>document.title='x'</script>"
    turn = "a\u202eb\u2028c\x00d"
    table = sk.Machine({"name": [evil, turn, "<b>&amp;\"'", "שלום"]})
    pool = sk.SlotPool(
        sk.free_slots(table, start="2026-01-01", end="2026-01-02", zone="UTC")
    )
    window = pool.find(sk.Request(4, walltime="1:00:00", name=evil), "start")
    shown = opened(sk.view(pool, window, title=evil))
    assert shown.page.title() == evil
    names = [shown.ask(f"viewer.scene.node({row})") for row in range(4)]
    assert names == [evil, "a\\u202eb\\u2028c\\x00d", "<b>&amp;\"'", "שלום"]
    shown.key("n")
    assert shown.page.locator(".panel h2").inner_text() == evil
    assert shown.page.locator("h1").inner_text() == evil
    assert shown.page.locator("b b, .panel script").count() == 0
    assert shown.said == []


def test_it_shows_itself_in_a_frame_without_rights(browser: Any) -> None:
    pool = machine()
    page = browser.new_page()
    page.set_content(sk.view(pool, three(pool))._repr_html_())
    frame = page.frame_locator("iframe")
    frame.locator("canvas").first.wait_for()
    assert frame.locator("h1").inner_text().startswith("slotkern")
    page.close()


@pytest.mark.parametrize("kind", ["none", "empty", "one moment", "no end"])
def test_the_edges_of_what_there_is(opened: Open, kind: str) -> None:
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
    shown = opened(sk.view(slots, windows))
    for key in ("+", "-", "n", "Enter", "PageDown", "u", "Escape", "0"):
        shown.key(key)
    assert shown.said == []

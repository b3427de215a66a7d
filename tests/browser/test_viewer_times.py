"""Dates and ticks of pages in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.viewer_pages import named_pool, three_windows

import slotkern as sk

Open = Callable[..., Any]


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

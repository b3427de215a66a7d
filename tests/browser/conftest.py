"""A real Chromium. Without one these tests are skipped, and say so; else they run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: A frame of this size, headless, on no graphics card, talking to nobody.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)


def chromium() -> str | None:
    """Where Chromium is: as CHROMIUM says, else on the path."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser")
    return next((found for name in names if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, started once for each module of tests."""
    path = chromium()
    if path is None:
        pytest.skip("Chromium is not installed (Debian: chromium; or CHROMIUM=path)")
    if os.environ.get("SLOTKERN_SANITIZED"):
        pytest.skip("Chromium does not start with a sanitizer preloaded")
    # Where there is a browser, that this is missing is a fault: no importorskip.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield started
        started.close()


class Shown:
    """A page that is open, what it asked for, and what it said."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.said: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))

    def go(self, path: Path) -> None:
        """Open a file and wait until it is drawn."""
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.ready")
        assert self.ask("document.documentElement.dataset.ready") != "failed"
        self.frame()

    def ask(self, words: str) -> Any:
        """What a piece of script gives."""
        return self.page.evaluate(words)

    def wait_for(self, words: str) -> None:
        """Wait until a piece of script is true: some events come when they like."""
        self.page.wait_for_function(words)

    def wait_for_count(self, found: Any, count: int) -> None:
        """Wait until a locator finds as many."""
        from playwright.sync_api import expect

        expect(found).to_have_count(count)

    def frame(self) -> None:
        """Wait for the frames that were asked for."""
        self.ask(
            "new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))"
        )

    def sight(self) -> list[float]:
        """The times and rows in sight."""
        self.frame()
        found: list[float] = self.ask(
            "[viewer.sight.x0, viewer.sight.x1, viewer.sight.y0, viewer.sight.y1]"
        )
        return found

    def key(self, name: str) -> None:
        """Press a key in the picture."""
        self.page.focus("canvas[tabindex]")
        self.page.keyboard.press(name)
        self.frame()

    def colour(self, time: float, row: float) -> tuple[int, int, int]:
        """What is painted at a time and a row."""
        found = self.ask(
            f"""(() => {{
              const p = viewer.painter, k = p.frame.ratio;
              const g = new OffscreenCanvas(1, 1).getContext("2d");
              const x = Math.floor(p.x({time}) * k), y = Math.floor(p.y({row}) * k);
              g.drawImage(document.querySelector("canvas"), -x, -y);
              const d = g.getImageData(0, 0, 1, 1).data;
              return [d[0], d[1], d[2]];
            }})()"""
        )
        return tuple(found)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    """Open what `sk.view` returns; each in a profile of its own."""
    contexts = []

    def show(view: Any, width: int = 1280, height: int = 800, **options: Any) -> Shown:
        context = browser.new_context(
            viewport={"width": width, "height": height}, **options
        )
        contexts.append(context)
        shown = Shown(context.new_page())
        path = tmp_path / f"page{len(contexts)}.html"
        view.save(path)
        shown.go(path)
        return shown

    yield show
    for context in contexts:
        context.close()

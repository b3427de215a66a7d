"""Fixtures that open pages in Chromium; without Chromium these tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: Options of Chromium: headless, without a graphics card or background network use.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)


def chromium() -> str | None:
    """Return the path of Chromium, from the variable CHROMIUM or from the path."""
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
    # If there is a browser, playwright must be installed too: no importorskip.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield started
        started.close()


class OpenPage:
    """A page in the browser, with its network requests and console messages."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.messages: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))

    def open(self, path: Path) -> None:
        """Open a file and wait until it is drawn."""
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.ready")
        assert self.evaluate("document.documentElement.dataset.ready") != "failed"
        self.frame()

    def evaluate(self, script: str) -> Any:
        """Return the value of a script."""
        return self.page.evaluate(script)

    def wait_for(self, script: str) -> None:
        """Wait until a script is true, for events that arrive asynchronously."""
        self.page.wait_for_function(script)

    def wait_for_count(self, found: Any, count: int) -> None:
        """Wait until a locator finds `count` elements."""
        from playwright.sync_api import expect

        expect(found).to_have_count(count)

    def frame(self) -> None:
        """Wait until requested animation frames have been drawn."""
        self.evaluate(
            "new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))"
        )

    def visible_range(self) -> list[float]:
        """Return the visible range of times and of rows."""
        self.frame()
        found: list[float] = self.evaluate(
            "(v => [v.x0, v.x1, v.y0, v.y1])(viewer.viewport)"
        )
        return found

    def key(self, name: str) -> None:
        """Press a key in the picture."""
        self.page.focus("canvas[tabindex]")
        self.page.keyboard.press(name)
        self.frame()

    def colour(self, time: float, row: float) -> tuple[int, int, int]:
        """Return the colour that is drawn at a time and a row."""
        found = self.evaluate(
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
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., OpenPage]]:
    """Return a function that opens a result of `sk.view` in a new browser context."""
    contexts = []

    def show(
        view: Any, width: int = 1280, height: int = 800, **options: Any
    ) -> OpenPage:
        context = browser.new_context(
            viewport={"width": width, "height": height}, **options
        )
        contexts.append(context)
        shown = OpenPage(context.new_page())
        path = tmp_path / f"page{len(contexts)}.html"
        view.save(path)
        shown.open(path)
        return shown

    yield show
    for context in contexts:
        context.close()

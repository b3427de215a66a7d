"""Take the screenshots of docs/viewer.md: ``python viewer/pictures.py``.

Needs playwright and Chromium. The page is the one that the example in docs/viewer.md
saves.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Run the example, open the page that it saves, and capture it light and dark."""
    text = (DOCS / "viewer.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.chdir(folder)
        exec(compile(code, "viewer.md", "exec"), {})
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"],
        )
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": 1180, "height": 660}, color_scheme=scheme
            )
            page.goto((Path(folder) / "night.html").as_uri())
            page.wait_for_function("document.documentElement.dataset.ready")
            page.focus("canvas[tabindex]")
            page.keyboard.press("n")
            page.evaluate("document.activeElement.blur()")
            page.wait_for_timeout(300)
            page.screenshot(path=DOCS / f"viewer-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()

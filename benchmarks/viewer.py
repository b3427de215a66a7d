"""Measures the size of a schedule's page and its speed in a real browser.

``python benchmarks/viewer.py [--nodes 20000] [--slots 100000] [--windows 200]`` needs
playwright and Chromium. It prints the bytes of the page and the seconds to write it,
then for the browser without a graphics card: milliseconds until the first paint, the
number of requests, and for the overview and a detail view the frames per second and
the milliseconds to paint a frame.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
FRAMES = """wide => new Promise(done => {
  const app = viewer, {first, last} = app.scene.about, times = [];
  const begin = performance.now();
  const step = () => {
    const k = times.length;
    app.viewport.showAll();
    app.viewport.zoomTime(wide * (1 - 0.002 * (k % 10)), (first + last) / 2);
    if (wide < 1) app.viewport.zoomRows(40 / app.scene.rows, app.scene.rows / 2 + k);
    const now = performance.now();
    app.paint();
    times.push(performance.now() - now);
    if (k < 119) return requestAnimationFrame(step);
    const seconds = (performance.now() - begin) / 1000;
    times.sort((a, b) => a - b);
    done({frames: times.length / seconds, paint: times[60]});
  };
  requestAnimationFrame(step);
})"""


def machine(nodes: int, slots: int) -> sk.SlotPool:
    """Return a pool with `slots // nodes` random slots on each node."""
    rng = np.random.default_rng(1)
    each = slots // nodes
    cuts = np.sort(rng.uniform(0, 3 * 86400, (nodes, 2 * each)), axis=1)
    free = sk.make_slots(
        node=np.repeat(np.arange(nodes), each),
        start=cuts[:, 0::2].ravel(),
        end=cuts[:, 1::2].ravel(),
        performance=np.repeat(rng.integers(1, 5, nodes), each),
        price=rng.uniform(0, 1, nodes * each),
    )
    clock = sk.Clock("2026-10-24 06:00", zone="Europe/Berlin")
    names = sk.Machine.homogeneous(nodes, prefix="node")
    return sk.SlotPool(free, clock=clock, machine=names)


def in_browser(path: Path) -> dict[str, Any]:
    """Return the measurements of a page in a browser."""
    from playwright.sync_api import sync_playwright

    requests: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=[*FLAGS]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_function("document.documentElement.dataset.ready")
        page.wait_for_timeout(500)
        paint = page.evaluate("performance.getEntriesByType('paint')[0].startTime")
        found = {
            "first paint, ms": round(paint),
            "requests": len(requests) - 1,
            "overview": page.evaluate(FRAMES, 1.0),
            "detail": page.evaluate(FRAMES, 0.1),
        }
        browser.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, value in (("nodes", 20_000), ("slots", 100_000), ("windows", 200)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    pool = machine(options.nodes, options.slots)
    windows = sk.find_alternatives(pool, sk.Request(8, 8000), limit=options.windows)
    assert len(windows) == options.windows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        seconds, work = [], []
        for _ in range(5):
            begin, used = time.perf_counter(), time.process_time()
            sk.view(pool, windows).save(path)
            seconds.append(time.perf_counter() - begin)
            work.append(time.process_time() - used)
        print(f"{path.stat().st_size:,} bytes, written in {min(seconds):.2f} s")
        print(f"CPU time of writing: {min(work):.2f} s")
        print(json.dumps(in_browser(path), indent=2))


if __name__ == "__main__":
    main()

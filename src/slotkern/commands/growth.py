"""Growth of search times with nodes, slots and job width, for ``bench scaling --far``.

Measures the median CPU time of a search in a prepared pool over a stream of different
jobs, for each size along an axis, and checks that the published algorithm finds
windows of equal cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import slotkern as sk
from slotkern.commands.streams import stream
from slotkern.plotting.style import FAINT, WINDOW_COLOURS, new_figure, save_figure
from slotkern.studies.sheets import Sheet
from slotkern.studies.times import growth_exponent

__all__ = ["AXES", "Axis", "Growth", "draw_growth", "growth_sheet", "measure_growth"]

#: Criterion and shape of the timed searches; the published algorithm follows them.
SEARCHES = (
    ("start", "ragged"),
    ("finish", "ragged"),
    ("cost", "ragged"),
    ("start", "square"),
    ("cost", "square"),
)
PUBLISHED = "cost, as published"
#: The published algorithm is skipped for sizes beyond the first at which a search takes
#: this many seconds.
_MAX_PUBLISHED_SECONDS = 1.0
_VOLUME, _BUDGET_PER_NODE = 310.0, 400.0


@dataclass(frozen=True)
class Axis:
    """The quantity that grows: nodes, length of the interval, or width of the jobs.

    `unit` is the label of the axis: "nodes", "slots" or "n". `wanted` are the numbers
    of nodes per job.
    """

    title: str
    unit: str
    nodes: Sequence[int] = (100,)
    intervals: Sequence[int] = (600,)
    wanted: Sequence[int] = (5,)


@dataclass(frozen=True)
class Growth:
    """Median CPU seconds of a search for each size along an axis, by name of search.

    NaN: not measured.
    """

    axis: Axis
    sizes: list[int]
    times: dict[str, list[float]]


AXES = (
    Axis("more nodes, n = 5", "nodes", nodes=(100, 1_000, 10_000, 50_000, 200_000)),
    Axis(
        "more slots of 100 nodes, n = 5",
        "slots",
        intervals=(600, 6_000, 60_000, 600_000, 1_860_000),
    ),
    Axis(
        "wider jobs on 4,000 nodes",
        "n",
        nodes=(4_000,),
        wanted=(2, 5, 10, 20, 50, 100, 200, 500),
    ),
)


def measure_growth(axes: Sequence[Axis], jobs: int, seed: int) -> list[Growth]:
    """Measure searches in prepared pools, on a stream of different jobs.

    Parameters
    ----------
    axes : sequence of Axis
    jobs : int
        Number of jobs per size; see `slotkern.commands.streams.stream`.
    seed : int
        Seed of the environments and of the jobs.

    Returns
    -------
    list of Growth
        Times of the published algorithm are NaN beyond the size at which it takes a
        second.

    Raises
    ------
    AssertionError
        If the published algorithm finds a window of a different cost.
    """
    return [_measure_axis(axis, jobs, seed) for axis in axes]


def _measure_axis(axis: Axis, jobs: int, seed: int) -> Growth:
    """Return the times for all sizes along an axis."""
    sizes: list[int] = []
    times: dict[str, list[float]] = {}
    for nodes, interval in product(axis.nodes, axis.intervals):
        slots = sk.generate_environment(
            "aep", nodes=nodes, interval=interval, seed=seed
        ).slots
        pool = sk.SlotPool(slots)
        for n in axis.wanted:
            requests = stream(
                jobs, seed, nodes=n, volume=_VOLUME, budget=n * _BUDGET_PER_NODE
            )
            sizes.append({"nodes": nodes, "slots": len(slots), "n": n}[axis.unit])
            run_published = not times or times[PUBLISHED][-1] < _MAX_PUBLISHED_SECONDS
            for name, seconds in _measure_searches(pool, requests, run_published):
                times.setdefault(name, []).append(seconds)
    return Growth(axis, sizes, times)


def _measure_searches(
    pool: sk.SlotPool, requests: Sequence[sk.Request], run_published: bool
) -> Iterator[tuple[str, float]]:
    """Yield name and median seconds of each search, then of the published algorithm."""
    cheapest: list[sk.Window | None] = []
    for criterion, shape in SEARCHES:
        seconds, found = _time_searches(
            pool, requests, criterion=criterion, shape=shape
        )
        yield f"{criterion}, {shape}", seconds
        if (criterion, shape) == ("cost", "ragged"):
            cheapest = found
    seconds = math.nan
    if run_published:
        few = requests[:5]
        seconds, published = _time_searches(
            pool, few, criterion="cost", shape="ragged", method="published"
        )
        for job, own, other in zip(few, cheapest, published, strict=False):
            same = (own and own.cost) == (other and other.cost)
            assert same, f"{job}: published and exact differ: {own}, {other}"
    yield PUBLISHED, seconds


def _time_searches(
    pool: sk.SlotPool, requests: Sequence[sk.Request], **how: Any
) -> tuple[float, list[sk.Window | None]]:
    """Return the median CPU seconds of a search after one warm-up, and all windows."""
    sk.find_window(pool, requests[0], **how)
    seconds, found = [], []
    for job in requests:
        begin = thread_time()
        found.append(sk.find_window(pool, job, **how))
        seconds.append(thread_time() - begin)
    return median(seconds), found


def growth_sheet(growth: Growth) -> Sheet:
    """Return the times of all sizes in ms as a table, with their exponent of growth."""
    rows = []
    for name, seconds in growth.times.items():
        measured_times = [time for time in seconds if not math.isnan(time)]
        power = growth_exponent(growth.sizes[: len(measured_times)], measured_times)
        cells = ["" if math.isnan(time) else f"{1e3 * time:.4g}" for time in seconds]
        rows.append([name, *cells, f"{power:.2f}"])
    headings = ["search", *(f"{size:,}" for size in growth.sizes), "growth"]
    title = f"Times in ms: {growth.axis.title}, by {growth.axis.unit}"
    return Sheet(
        f"growth-{growth.axis.unit}",
        title,
        "l" + "r" * (len(headings) - 1),
        headings,
        rows,
    )


def draw_growth(growths: Sequence[Growth], target: Path | None = None) -> Any:
    """Draw the times on logarithmic axes, one panel per axis.

    Parameters
    ----------
    growths : sequence of Growth
        The result of `measure_growth`.
    target : Path, optional
        File to write: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(10.5, 4.0)
    panels = figure.subplots(1, len(growths), sharey=True, squeeze=False)[0]
    for panel, growth in zip(panels, growths, strict=True):
        for index, (name, seconds) in enumerate(growth.times.items()):
            published = name == PUBLISHED
            panel.loglog(
                growth.sizes,
                seconds,
                marker="s" if published else "o",
                ms=4,
                color=FAINT if published else WINDOW_COLOURS[index],
                ls="--" if name.endswith("square") else "-",
                label="cost, ragged: the papers' algorithm" if published else name,
            )
        panel.set_title(growth.axis.title, fontsize=9)
        panel.set_xlabel(growth.axis.unit)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("CPU time of one search (s)")
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=8,
    )
    return save_figure(figure, target)

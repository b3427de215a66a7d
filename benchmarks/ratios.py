"""Measures how much faster the kernels are than the papers' algorithms, in one run.

``python benchmarks/ratios.py`` prints the table; ``--keep`` stores it. Every ratio is
the median over interleaved rounds, each on its own environment, of the CPU times of a
stream of different jobs. Every answer of `published` is compared with the kernels'. If
searches use caches that earlier searches filled, the first searches have their own row.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numba
import numpy as np
from results import Measured, store
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import slotkern as sk
from slotkern.commands.streams import stream
from slotkern.environment import Uniform

ROUNDS = 20
FIRST = 20  # number of searches measured before the caches of a pool are filled
AEP_JOB = {"nodes": 5, "volume": 310.0, "budget": 1500.0}
NAMES = {"cost": "cheapest", "runtime": "shortest", "finish": "earliest"}
SQUARE_JOB = {"nodes": 7, "volume": 800.0, "budget": 644.0}


@dataclass
class Row:
    """One line of the table; `aim` is what the figure should reach."""

    what: str
    measured: str
    aim: str = ""
    kept: Measured | None = None


def nanoseconds(
    call: Callable[..., Any], *given: Any, **options: Any
) -> tuple[float, Any]:
    """Return the CPU time of one call, and its result.

    On a busy machine a long call is interrupted more often than a short one, so
    wall-clock ratios would favour the short calls.
    """
    begin = thread_time_ns()
    result = call(*given, **options)
    return thread_time_ns() - begin, result


def search_all(
    slots: Any, jobs: Sequence[Any], criterion: str, shape: str, method: str = "exact"
) -> list[Any]:
    """Return a window for each job, each found by one call."""
    find = sk.find_window
    return [find(slots, job, criterion, shape=shape, method=method) for job in jobs]


def against_published(
    title: str,
    aim: str,
    criteria: Sequence[str],
    shape: str,
    job: dict[str, Any],
    jobs: int,
    **environment: Any,
) -> list[Row]:
    """Return rows with the time per search of `published` divided by the kernels'."""
    per_round = jobs // ROUNDS
    learns = {"cost"} if shape == "ragged" else set()
    ratios: dict[str, list[tuple[float, float, float]]] = {c: [] for c in criteria}
    sizes, compared = [], 0
    for cycle in range(-1, ROUNDS):  # the first round compiles and warms up
        slots = sk.generate_environment(cycle=max(cycle, 0), **environment).slots
        requests = stream(per_round, (1, max(cycle, 0)), **job)
        sample = requests[:: max(1, per_round // 5)]
        sizes.append(slots.size)
        for criterion in criteria:
            pool = sk.SlotPool(slots)
            early, first = nanoseconds(
                search_all, pool, requests[:FIRST], criterion, shape
            )
            fast, windows = nanoseconds(
                search_all, pool, requests[FIRST:], criterion, shape
            )
            windows = first + windows
            slow, printed = nanoseconds(
                search_all, slots, sample, criterion, shape, "published"
            )
            by_job = dict(zip(map(id, requests), windows, strict=True))
            for one, window in zip(sample, printed, strict=True):
                same_value(window, by_job[id(one)])
                compared += 1
            if cycle >= 0:
                ratios[criterion].append(
                    (
                        slow / len(sample),
                        (early + fast) / len(requests),
                        early / len(requests[:FIRST]),
                    )
                )
    rows = []
    for criterion, times in ratios.items():
        slow, fast, early = np.median(np.array(times), axis=0)
        streams = {f"of {per_round:,} jobs": fast}
        if criterion in learns:
            streams[f"the first {FIRST} jobs"] = early
        for part, own in streams.items():
            rows.append(
                Row(
                    f"{title}, {np.mean(sizes):,.0f} slots: {criterion}, {part}",
                    f"{slow / own:,.0f} times ({slow / 1e6:.2f} ms, "
                    f"{own / 1e3:.2f} us)",
                    aim if own == fast else "",
                    Measured(
                        f"{NAMES[criterion]} window, {shape}, n = {job['nodes']}: "
                        f"{environment.get('nodes', 100)} nodes, "
                        f"{np.mean(sizes):,.0f} slots"
                        + (f", {part}" if criterion in learns else ""),
                        slow / 1e9,
                        own / 1e9,
                    ),
                )
            )
    rows[-1].measured += f"; {compared} answers compared"
    return rows


def same_value(printed: Any, fast: Any) -> None:
    """Fail unless both found nothing or windows of the same value."""
    values = [None if w is None else w.value for w in (printed, fast)]
    if values[0] != values[1]:
        raise AssertionError(f"published and kernels differ: {values}")


def smallest_call() -> tuple[float, Row]:
    """Measure the overhead of a call: a search of one slot for one node in a pool."""
    slots = sk.make_slots(node=[0], start=[0], end=[10], performance=[1], price=[1])
    pool, job, find = sk.SlotPool(slots), sk.Request(1, 5.0), sk.find_window
    times = []
    for _ in range(50):
        begin = thread_time_ns()
        for _ in range(2000):
            window = find(pool, job, "cost", shape="ragged")
        times.append((thread_time_ns() - begin) / 2000)
        assert window.cost == 5.0
    overhead = float(np.median(times))
    return overhead, Row(
        "Smallest search through the handle", f"{overhead / 1e3:.2f} us", "<= 0.5 us"
    )


def time_per_slot(overhead: float, jobs: int) -> list[Row]:
    """Measure the time per slot without the call overhead, for growing sizes."""
    sizes = {
        (100, 600): "",
        (100, 3600): "<= 1.5 ns",
        (20_000, 600): "<= 0.5 ns",
    }
    rows = []
    pools = {
        size: [
            sk.SlotPool(
                sk.generate_environment(
                    nodes=size[0], interval=size[1], cycle=cycle
                ).slots
            )
            for cycle in range(ROUNDS if size[0] < 1000 else 3)
        ]
        for size in sizes
    }
    for criterion in ("cost", "runtime", "finish"):
        times: dict[tuple[int, int], list[float]] = {size: [] for size in sizes}
        for cycle in range(ROUNDS):
            requests = stream(jobs // ROUNDS, (2, cycle), **AEP_JOB)
            for size in sizes:
                pool = pools[size][cycle % len(pools[size])]
                total, _ = nanoseconds(search_all, pool, requests, criterion, "ragged")
                each = total / len(requests) - overhead
                times[size].append(each / len(pool))
        for size, aim in sizes.items():
            slots = np.mean([len(pool) for pool in pools[size]])
            rows.append(
                Row(
                    f"Per slot, {size[0]:,} nodes, {slots:,.0f} slots: {criterion}",
                    f"{np.median(times[size]):.2f} ns",
                    aim,
                )
            )
    return rows


@numba.njit(fastmath=True)  # type: ignore[untyped-decorator]
def sum_of_columns(a: Any, b: Any, c: Any, d: Any) -> float:
    """Sum four columns in one vectorised pass."""
    total = 0.0
    for i in range(a.size):
        total += a[i] + b[i] + c[i] + d[i]
    return total


def against_streaming(jobs: int) -> Row:
    """Compare a cost search in a pool of 20,000 nodes with a pass over its columns."""
    slots = sk.generate_environment(nodes=20_000).slots
    pool = sk.SlotPool(slots)
    names = ("start", "end", "performance", "price")
    columns = [np.ascontiguousarray(slots[name]) for name in names]
    expected = sum(float(column.sum()) for column in columns)
    times = []
    for cycle in range(-1, ROUNDS):
        requests = stream(jobs // ROUNDS, (3, max(cycle, 0)), **AEP_JOB)
        search, _ = nanoseconds(search_all, pool, requests, "cost", "ragged")
        begin = thread_time_ns()
        for _ in requests:
            total = sum_of_columns(*columns)
        streaming = thread_time_ns() - begin
        assert np.isclose(total, expected)
        if cycle >= 0:
            times.append((search / len(requests), streaming / len(requests)))
    search, streaming = np.median(np.array(times), axis=0)
    return Row(
        f"Cost over {slots.size:,} slots against a sum of four columns",
        f"{search / streaming:.2f} times ({search / 1e3:.1f} us, "
        f"{streaming / 1e3:.1f} us)",
        "<= 1.5 times",
        Measured(
            f"cheapest window, ragged, n = 5: 20,000 nodes, {slots.size:,} slots",
            streaming / 1e9,
            search / 1e9,
            "a sum of the four columns",
        ),
    )


def validation() -> Row:
    """Measure the validation of a raw slot array."""
    slots = sk.generate_environment(nodes=20_000).slots
    times = [nanoseconds(sk.validate_slots, slots)[0] for _ in range(30)]
    each = np.median(times) / slots.size
    return Row(
        f"Validation of {slots.size:,} raw slots", f"{each:.2f} ns a slot", "<= 5 ns"
    )


def threads(jobs: int) -> Row:
    """Measure find_windows with one thread and with two."""
    slots = sk.generate_environment(interval=3600).slots
    pool = sk.SlotPool(slots)
    times = []
    for cycle in range(-1, ROUNDS):
        requests = stream(jobs, (4, max(cycle, 0)), **AEP_JOB)
        pair = []
        for count in (1, 2):
            begin = perf_counter_ns()
            found = sk.find_windows(
                pool, requests, "cost", shape="ragged", threads=count
            )
            pair.append((perf_counter_ns() - begin, found))
        assert pair[0][1] == pair[1][1]
        if cycle >= 0:
            times.append([spent for spent, _ in pair])
    one, two = np.median(np.array(times), axis=0)
    return Row(
        f"find_windows over {slots.size:,} slots, two threads against one",
        f"{one / two:.2f} times ({jobs / one * 1e9:,.0f}, {jobs / two * 1e9:,.0f} "
        "jobs a second)",
    )


def main() -> None:
    """Run all measurements and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20000, help="jobs in each stream")
    parser.add_argument(
        "--keep", action="store_true", help="store the rows in measured.json"
    )
    options = parser.parse_args()
    jobs = max(options.jobs, 2 * FIRST * ROUNDS)
    overhead, smallest = smallest_call()
    searches = ("cost", "runtime", "finish")
    rows = [
        *against_published(
            "Ragged, n = 5, 100 nodes",
            ">= 500 times",
            searches,
            "ragged",
            AEP_JOB,
            jobs,
            preset="aep",
            interval=3600,
        ),
        *against_published(
            "Ragged, n = 5, 400 nodes",
            ">= 2,000 times",
            searches,
            "ragged",
            AEP_JOB,
            jobs,
            preset="aep",
            nodes=400,
            interval=650,
        ),
        *against_published(
            "Square, n = 7, 100 nodes, real performance",
            ">= 150 times",
            searches,
            "square",
            SQUARE_JOB,
            jobs,
            preset="square",
            performance=Uniform(2, 10),
        ),
        *time_per_slot(overhead, jobs),
        against_streaming(jobs),
        smallest,
        validation(),
        threads(jobs),
    ]
    if options.keep:
        store("ratios", [row.kept for row in rows if row.kept])
    table = Table(box=SIMPLE_HEAD, title=f"Medians over streams of {jobs:,} jobs")
    for heading in ("", "measured", "aim"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.what, row.measured, row.aim)
    Console(width=None if Console().is_terminal else 140).print(table)


if __name__ == "__main__":
    main()

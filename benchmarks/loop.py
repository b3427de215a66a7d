"""The scheduling loop and all alternatives, against what they replace, in one run.

    python benchmarks/loop.py [--quick]

Ratios of CPU times taken in this process on a stream of different jobs, with the
answers compared. Baselines:

naive       `find_window` on a plain array for every job, then the array is cut;
numpy       what a user would write: walk the starts, mask, partition by cost;
count-only  how many nodes are free at each time, no budget, no node named: the planner
            of a batch system. Its figures were measured elsewhere, on such a machine;
csa         the papers' scheme for alternatives (`slotkern.published`), by numba.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.alternatives import cut_window
from slotkern.published.alternatives import all_windows

# Jobs a second of a count-only planner, n = 5, by nodes: find and book, no node named.
COUNT_ONLY = {100: 85_700, 1_000: 15_600, 4_000: 18_800}


def jobs(count: int, nodes: int, seed: int) -> list[sk.Request]:
    """Volumes 100 to 200, budgets that some jobs miss at first."""
    rng = np.random.default_rng(seed)
    volumes = rng.uniform(100, 200, count)
    pay = nodes * volumes * rng.uniform(0.9, 1.6, count)
    return [
        sk.Request(nodes, float(v), budget=float(b))
        for v, b in zip(volumes, pay, strict=True)
    ]


def cpu(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[float, Any]:
    """CPU seconds of a call, and its result."""
    begin = time.process_time()
    result = function(*args, **options)
    return time.process_time() - begin, result


def naive_loop(
    slots: NDArray[np.void], asked: list[sk.Request]
) -> Iterator[sk.Window | None]:
    """Search the whole array again for every job."""
    for request in asked:
        window = sk.find_window(slots, request, "start", shape="ragged")
        if window is not None:
            slots, _ = cut_window(slots, window)
        yield window


def numpy_loop(
    slots: NDArray[np.void], asked: list[sk.Request]
) -> Iterator[float | None]:
    """The earliest start by numpy alone."""
    for request in asked:
        length = request.volume / slots["performance"]
        cost = request.volume * (slots["price"] / slots["performance"])
        latest = slots["end"] - length
        start = None
        for t in np.unique(slots["start"]):
            rows = np.flatnonzero((slots["start"] <= t) & (t <= latest))
            if len(rows) < request.nodes:
                continue
            best = rows[np.argpartition(cost[rows], request.nodes - 1)][: request.nodes]
            if np.sort(cost[best]).sum() <= request.budget:
                start = float(t)
                break
        yield start
        if start is None:
            continue
        left, right = slots[best], slots[best]
        left["end"], right["start"] = start, start + length[best]
        table = np.concatenate([np.delete(slots, best), left, right])
        table = table[table["start"] < table["end"]]
        slots = table[np.lexsort((table["node"], table["start"]))]


def loop(sizes: list[tuple[int, int, int, int, int]]) -> dict[tuple[int, int], float]:
    """Report jobs a second and ratios for (nodes, n, interval, jobs, naive jobs)."""
    times = {}
    for nodes, n, interval, count, few in sizes:
        slots = sk.generate_environment("aep", nodes=nodes, interval=interval).slots
        asked = jobs(count, n, seed=nodes)
        pool = sk.SlotPool(slots)
        pool.schedule([])  # lays the pool out
        first, begun = cpu(pool.schedule, asked[:few], shape="ragged")
        naive, windows = cpu(list, naive_loop(slots, asked[:few]))
        mine = [w and (w.start, w.cost, w.nodes) for w in begun]
        assert mine == [w and (w.start, w.cost, w.nodes) for w in windows]
        by_hand = min(few, 3)
        hand, starts = cpu(list, numpy_loop(slots, asked[:by_hand]))
        assert starts == [w and w.start for w in windows[:by_hand]]
        rest, done = cpu(pool.schedule, asked[few:], shape="ragged")
        each = (first + rest) / count
        times[nodes, n] = each
        # Late in the stream the naive way scans a longer list: ask both again.
        late = jobs(few, n, seed=1)
        free = pool.slots
        again, tail = cpu(pool.schedule, late, shape="ragged")
        scan, tail_naive = cpu(list, naive_loop(free, late))
        assert [w and w.start for w in tail] == [w and w.start for w in tail_naive]
        print(
            f"{nodes:6} nodes, n = {n:2}, {len(slots):7,} slots: "
            f"{1 / each:9,.0f} jobs/s ({each * 1e6:6.1f} us), "
            f"{done.booked.sum():,} of {len(done):,} booked;"
            f" naive / loop {naive / first:6,.0f} early, {scan / again:6,.0f} late,"
            f" numpy / loop {hand / by_hand / (first / few):8,.0f}"
        )
        if n == 5 and nodes in COUNT_ONLY:
            ratio = 1 / each / COUNT_ONLY[nodes]
            print(
                f"{'':9}{ratio:.1f} times the count-only figure {COUNT_ONLY[nodes]:,}"
            )
        rebooking(pool, [*begun, *done], n, each)
    return times


def rebooking(
    pool: sk.SlotPool, windows: list[sk.Window | None], n: int, each: float
) -> None:
    """Release a fifth at random and book again."""
    held = [w for w in windows if w is not None]
    rng = np.random.default_rng(0)
    some = [held[i] for i in rng.permutation(len(held))[: len(held) // 5]]
    release, _ = cpu(lambda: [pool.release(w) for w in some])
    again, _ = cpu(pool.schedule, jobs(len(some), n, seed=2), shape="ragged")
    anew = again / len(some)
    print(
        f"{'':9}release {release / len(some) * 1e6:.1f} us; rebooking"
        f" {anew * 1e6:.1f} us a job, speed {each / anew:.2f} of booking"
    )


def by_one(pool: sk.SlotPool, asked: list[sk.Request]) -> None:
    """schedule() from Python."""
    for request in asked:
        window = pool.find(request, "start", shape="ragged")
        if window is not None:
            pool.book(window)


def from_python(count: int) -> None:
    """What find and book cost one by one, beyond the same in one call."""
    slots = sk.generate_environment("aep", nodes=100, interval=20_000).slots
    asked = jobs(count, 5, seed=3)
    extra = []
    for _ in range(5):
        one, many = sk.SlotPool(slots), sk.SlotPool(slots)

        in_call, _ = cpu(many.schedule, asked, shape="ragged")
        singly, _ = cpu(by_one, one, asked)
        assert (one.slots == many.slots).all()
        extra.append((singly - in_call) / count * 1e6)
    print(
        f"one find + book from Python: {np.median(extra):.2f} us more than in schedule"
    )


def ten_times(pool: sk.SlotPool, request: sk.Request) -> sk.Alternatives:
    """All alternatives, again and again."""
    for _ in range(10):
        found = sk.find_alternatives(pool, request, shape="ragged")
    return found


def alternatives(rounds: int) -> None:
    """All alternatives against CSA."""
    for nodes, interval in ((100, 3600), (400, 600)):
        ratios, counts = [], []
        for seed in range(rounds):
            environment = sk.generate_environment(
                "aep", nodes=nodes, interval=interval, seed=seed
            )
            slots, pool = environment.slots, sk.SlotPool(environment.slots)
            request = sk.Request(5, 310, budget=1500)
            all_windows(slots, "ragged", 5, 310.0, budget=1500.0, limit=1)  # compiles
            slow, published = cpu(all_windows, slots, "ragged", 5, 310.0, budget=1500.0)
            quick = []
            for _ in range(50):
                fast, found = cpu(ten_times, pool, request)
                quick.append(fast / 10)
            rows = [window.slots["row"].tolist() for window in found]
            assert found.start.tolist() == [start for start, _, _ in published]
            assert rows == [
                r[np.argsort(slots["node"][r])].tolist() for _, r, _ in published
            ]
            ratios.append(slow / np.median(quick))
            counts.append(len(published))
        print(
            f"all alternatives, {nodes} nodes, interval {interval}: {counts} windows,"
            f" CSA / one sweep {np.median(ratios):,.0f}"
        )


def threads(count: int) -> None:
    """find_windows by one and two threads."""
    slots = sk.generate_environment("aep", nodes=1000, interval=3600).slots
    pool, asked = sk.SlotPool(slots), jobs(count, 5, seed=4)
    ratios = []
    for _ in range(7):
        wall = {}
        for crew in (1, 2):
            begin = time.perf_counter()
            found = sk.find_windows(pool, asked, "cost", threads=crew)
            wall[crew] = time.perf_counter() - begin
        assert len(found) == count
        ratios.append(wall[1] / wall[2])
    print(f"find_windows by 2 threads: {np.median(ratios):.2f} times one (wall clock)")


def main() -> None:
    """Run all, or a short version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    sizes = [(100, 5, 80_000, 20_000, 60), (1_000, 5, 40_000, 100_000, 20)]
    if quick:
        sizes = [(100, 5, 20_000, 4_000, 30), (1_000, 5, 6_000, 10_000, 10)]
    else:
        sizes += [(4_000, 5, 16_000, 100_000, 10), (10_000, 5, 12_000, 200_000, 5)]
    times = loop(sizes)
    loop([(1_000, 50, 10_000 if quick else 40_000, 500 if quick else 10_000, 10)])
    few, many = min(times), max(times)
    growth = times[many] / times[few]
    print(f"time a job, {many[0]} nodes / {few[0]} nodes: {growth:.1f}")
    from_python(1000 if quick else 5000)
    alternatives(1 if quick else 5)
    threads(2000 if quick else 20_000)


if __name__ == "__main__":
    main()

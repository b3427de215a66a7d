"""Times the loop of find and book against other implementations of its backend.

    python benchmarks/loop.py [--quick] [--keep]

Every stream books different jobs into a pool like the papers' until it is full. All
times are CPU times of this process, except for the wall-clock times of threads, and
the answers of the rivals (rivals.py) are compared. `naive` and `numpy` schedule a few
jobs at several fill levels of the pool. The count-only planner schedules the whole
stream, once with the length of the shortest job as input and once without.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from alternatives import alternatives
from numpy.typing import NDArray
from results import Measured, store
from rivals import by_numpy, check_count_only, count_only, free_counts, rescan

import slotkern as sk

# Jobs per second of a count-only planner of other authors, n = 5, by number of nodes.
ELSEWHERE = {100: 85_700, 1_000: 15_600, 4_000: 18_800}
MEAN_VOLUME = 150


def jobs(count: int, nodes: int, seed: int) -> list[sk.Request]:
    """Return jobs of volume 100 to 200; some budgets are too small at first."""
    rng = np.random.default_rng(seed)
    volumes = rng.uniform(100, 200, count)
    pay = nodes * volumes * rng.uniform(0.9, 1.6, count)
    return [
        sk.Request(nodes, float(v), budget=float(b))
        for v, b in zip(volumes, pay, strict=True)
    ]


def cpu(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and its result."""
    begin = time.process_time()
    result = function(*args, **options)
    return time.process_time() - begin, result


@dataclass
class Stream:
    """A pool to fill; the rivals schedule `few` jobs at each of the checkpoints."""

    nodes: int
    wanted: int
    few: int
    checkpoints: int = 5

    def run(self) -> Measured:
        """Fill the pool, print the rates, and return the seconds per job."""
        slots = sk.generate_environment("aep", nodes=self.nodes, interval=3600).slots
        work = ((slots["end"] - slots["start"]) * slots["performance"]).sum()
        size = int(work / (self.wanted * MEAN_VOLUME))  # the last find nothing
        requests = jobs(size, self.wanted, seed=self.nodes)
        pool = prepared_pool(slots)
        spent, naive, hand = [0.0], [], []
        windows: list[sk.Window | None] = []
        for rows in np.array_split(np.arange(size), self.checkpoints):
            free, part = pool.slots, [requests[i] for i in rows]
            few, rest = part[: self.few], part[self.few :]
            first, begun = cpu(pool.schedule, few, shape="ragged")
            scan, same = cpu(list, rescan(free, few))
            assert answers(begun) == answers(same)
            by_hand, starts = cpu(list, by_numpy(free, few))
            assert starts == [w and w.start for w in same]
            after, done = cpu(pool.schedule, rest, shape="ragged")
            spent[0] += first + after
            naive.append(scan / len(few))
            hand.append(by_hand / len(few))
            windows += [*begun, *done]
        for _ in range(2):
            again = prepared_pool(slots)
            spent.append(cpu(again.schedule, requests, shape="ragged")[0])
            assert (again.slots == pool.slots).all()
        each = float(np.median(spent)) / size
        nothing = np.array([window is None for window in windows])
        assert nothing[-size // 100 :].mean() > 0.9  # the pool is full
        print(
            f"{self.nodes:,} nodes, n = {self.wanted}: {len(slots):,} slots,"
            f" {size:,} jobs, {nothing.mean():.1%} of them got nothing"
        )
        self.show("schedule", each, f"{each * 1e6:.1f} us")
        for name, times in (("naive", naive), ("numpy", hand)):
            early, mean = times[0] / each, np.mean(times) / each
            text = (
                f"schedule is {mean:,.0f} times faster ({early:,.0f} in the beginning)"
            )
            self.show(name, float(np.mean(times)), text)
        self.count(slots, requests, each)
        self.rebook(pool, windows, each)
        return Measured(
            f"find and book, ragged, n = {self.wanted}: one of {size:,} jobs, "
            f"{self.nodes:,} nodes",
            float(np.mean(naive)),
            each,
            "a search of all slots for each job",
        )

    def show(self, name: str, each: float, text: str) -> None:
        """Print one line of the report."""
        print(f"  {name:24}{1 / each:11,.0f} jobs/s, {text}")

    def count(
        self, slots: NDArray[np.void], requests: list[sk.Request], each: float
    ) -> None:
        """Measure count-only planners; a job's length is its mean over the nodes."""
        lengths = np.array([r.volume for r in requests]) / slots["performance"].mean()
        profile, least = free_counts(slots), float(lengths.min())
        count_only(*profile, self.wanted, lengths[:2], least)  # numba compiles
        for name, shortest in (("count-only", 0.0), ("count-only, least known", least)):
            spent, starts = cpu(count_only, *profile, self.wanted, lengths, shortest)
            check_count_only(slots, self.wanted, lengths, starts)
            one = spent / len(lengths)
            self.show(name, one, f"schedule at {one / each:.2f} times its speed")
        if self.wanted == 5 and self.nodes in ELSEWHERE:
            one = 1 / ELSEWHERE[self.nodes]
            text = f"schedule at {one / each:.2f} times its speed"
            self.show("count-only, elsewhere", one, text)

    def rebook(
        self, pool: sk.SlotPool, windows: list[sk.Window | None], each: float
    ) -> None:
        """Release a random fifth of the windows, and book the same number of jobs."""
        booked = [w for w in windows if w is not None]
        rng = np.random.default_rng(0)
        some = [booked[i] for i in rng.permutation(len(booked))[: len(booked) // 5]]
        release, _ = cpu(lambda: [pool.release(w) for w in some])
        requests = jobs(len(some), self.wanted, seed=2)
        again, done = cpu(pool.schedule, requests, shape="ragged")
        rebooking, got = again / len(some), done.booked.mean()
        text = f"{got:.0%} booked, {each / rebooking:.2f} times the speed of booking"
        self.show("release", release / len(some), "one by one from Python")
        self.show("rebook a fifth", rebooking, text)


def prepared_pool(slots: NDArray[np.void]) -> sk.SlotPool:
    """Return a pool whose indexes are built, ready for the first booking."""
    pool = sk.SlotPool(slots)
    pool.schedule([])
    return pool


def answers(windows: Any) -> list[Any]:
    """Return the start, cost and nodes of each window, for comparisons."""
    return [w and (w.start, w.cost, w.nodes) for w in windows]


def by_one(pool: sk.SlotPool, requests: list[sk.Request]) -> None:
    """Do the work of `pool.schedule` by one call of find and book per job."""
    for request in requests:
        window = pool.find(request, "start", shape="ragged")
        if window is not None:
            pool.book(window)


def from_python(count: int) -> None:
    """Print the overhead of find and book from Python over one call of `schedule`."""
    slots = sk.generate_environment("aep", nodes=100, interval=20_000).slots
    requests = jobs(count, 5, seed=3)
    extra = []
    for _ in range(9):
        one, many = prepared_pool(slots), prepared_pool(slots)
        in_call, _ = cpu(many.schedule, requests, shape="ragged")
        singly, _ = cpu(by_one, one, requests)
        assert (one.slots == many.slots).all()
        extra.append((singly - in_call) / count * 1e6)
    print(
        f"one find + book from Python: {np.median(extra):.2f} us more than in schedule"
    )


def prepare(count: int) -> None:
    """Create the pool and the jobs that a thread or process searches."""
    global POOL, REQUESTS
    slots = sk.generate_environment("aep", nodes=1000, interval=3600).slots
    POOL, REQUESTS = sk.SlotPool(slots), jobs(count, 5, seed=4)


def search(part: slice, threads: int = 1) -> int:
    """Return the number of windows found for a part of the jobs."""
    found = sk.find_windows(POOL, REQUESTS[part], "finish", threads=threads)
    return int(np.isfinite(found.start).sum())


def threads(count: int) -> None:
    """Time find_windows by one thread, two threads and two processes, interleaved."""
    prepare(count)
    wall: dict[str, list[float]] = {}
    halves = [slice(0, count // 2), slice(count // 2, count)]
    with ProcessPoolExecutor(2, initializer=prepare, initargs=(count,)) as workers:
        sum(workers.map(search, halves))  # starts the processes
        variants: dict[str, Callable[[], int]] = {
            "one thread": lambda: search(slice(count)),
            "two threads": lambda: search(slice(count), 2),
            "two processes": lambda: sum(workers.map(search, halves)),
        }
        for _ in range(9):
            for name, run in variants.items():
                begin = time.perf_counter()
                assert run() == count
                wall.setdefault(name, []).append(time.perf_counter() - begin)
    one, two, both = (np.array(times) for times in wall.values())
    print(
        f"find_windows (wall clock): two threads {np.median(one / two):.2f} times one"
        f" thread (best times: {one.min() / two.min():.2f}), two processes"
        f" {np.median(one / both):.2f} times ({one.min() / both.min():.2f})"
    )


def main() -> None:
    """Run all measurements, or with --quick the small ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument(
        "--keep", action="store_true", help="store the rows in measured.json"
    )
    options = parser.parse_args()
    quick = options.quick
    streams = [Stream(100, 5, 20), Stream(1_000, 5, 5)]
    if not quick:
        streams += [Stream(4_000, 5, 3), Stream(10_000, 5, 2)]
    rows = [stream.run() for stream in streams]
    growth = rows[-1].own / rows[0].own
    rows.append(Stream(1_000, 50, 5).run())
    print(f"time a job, most nodes / least nodes: {growth:.1f}")
    if options.keep:
        store("loop", rows)
    from_python(1000 if quick else 3000)
    alternatives(1 if quick else 5)
    threads(2000 if quick else 20_000)


if __name__ == "__main__":
    main()

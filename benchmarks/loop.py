"""The scheduling loop, against what else could be its backend, in one run.

    python benchmarks/loop.py [--quick] [--keep]

Every stream books different jobs into a pool like the papers' until it is full. All
times are CPU times of this process, unless said otherwise, and the answers of the
rivals (rivals.py) are compared. `naive` and `numpy` take a few jobs at several
fillings of the pool; count-only planners take the whole stream, in two versions: one
that knows beforehand how short a job can be, and one that does not.
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
from results import Measured, keep
from rivals import by_numpy, check_count_only, count_only, free_counts, rescan

import slotkern as sk

# Jobs a second of a count-only planner measured elsewhere, n = 5, by nodes.
ELSEWHERE = {100: 85_700, 1_000: 15_600, 4_000: 18_800}
MEAN_VOLUME = 150


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


@dataclass
class Stream:
    """A pool to fill: `few` jobs at each of the checkpoints go to the rivals too."""

    nodes: int
    wanted: int
    few: int
    checkpoints: int = 5

    def run(self) -> Measured:
        """Fill the pool, print what was measured, and return it: seconds a job."""
        slots = sk.generate_environment("aep", nodes=self.nodes, interval=3600).slots
        work = ((slots["end"] - slots["start"]) * slots["performance"]).sum()
        size = int(work / (self.wanted * MEAN_VOLUME))  # the last find nothing
        asked = jobs(size, self.wanted, seed=self.nodes)
        pool = laid_out(slots)
        spent, naive, hand = [0.0], [], []
        windows: list[sk.Window | None] = []
        for rows in np.array_split(np.arange(size), self.checkpoints):
            free, part = pool.slots, [asked[i] for i in rows]
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
            again = laid_out(slots)
            spent.append(cpu(again.schedule, asked, shape="ragged")[0])
            assert (again.slots == pool.slots).all()
        each = float(np.median(spent)) / size
        nothing = np.array([window is None for window in windows])
        assert nothing[-size // 100 :].mean() > 0.9  # it is full
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
        self.count(slots, asked, each)
        self.rebook(pool, windows, each)
        return Measured(
            f"find and book, ragged, n = {self.wanted}: one of {size:,} jobs, "
            f"{self.nodes:,} nodes",
            float(np.mean(naive)),
            each,
            "a search of all slots for each job",
        )

    def show(self, name: str, each: float, text: str) -> None:
        """One line of the report."""
        print(f"  {name:24}{1 / each:11,.0f} jobs/s, {text}")

    def count(
        self, slots: NDArray[np.void], asked: list[sk.Request], each: float
    ) -> None:
        """Count-only planners on the same pool; a job takes its mean time on a node."""
        lengths = np.array([r.volume for r in asked]) / slots["performance"].mean()
        profile, least = free_counts(slots), float(lengths.min())
        count_only(*profile, self.wanted, lengths[:2], least)  # compiles
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
        """Release a fifth at random and book again as many."""
        held = [w for w in windows if w is not None]
        rng = np.random.default_rng(0)
        some = [held[i] for i in rng.permutation(len(held))[: len(held) // 5]]
        release, _ = cpu(lambda: [pool.release(w) for w in some])
        asked = jobs(len(some), self.wanted, seed=2)
        again, done = cpu(pool.schedule, asked, shape="ragged")
        anew, got = again / len(some), done.booked.mean()
        text = f"{got:.0%} booked, {each / anew:.2f} times the speed of booking"
        self.show("release", release / len(some), "one by one from Python")
        self.show("rebook a fifth", anew, text)


def laid_out(slots: NDArray[np.void]) -> sk.SlotPool:
    """A pool that is ready for its first booking."""
    pool = sk.SlotPool(slots)
    pool.schedule([])
    return pool


def answers(windows: Any) -> list[Any]:
    """What must be equal."""
    return [w and (w.start, w.cost, w.nodes) for w in windows]


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
    for _ in range(9):
        one, many = laid_out(slots), laid_out(slots)
        in_call, _ = cpu(many.schedule, asked, shape="ragged")
        singly, _ = cpu(by_one, one, asked)
        assert (one.slots == many.slots).all()
        extra.append((singly - in_call) / count * 1e6)
    print(
        f"one find + book from Python: {np.median(extra):.2f} us more than in schedule"
    )


def prepare(count: int) -> None:
    """What a thread or process searches: a pool and jobs."""
    global POOL, ASKED
    slots = sk.generate_environment("aep", nodes=1000, interval=3600).slots
    POOL, ASKED = sk.SlotPool(slots), jobs(count, 5, seed=4)


def search(part: slice, threads: int = 1) -> int:
    """How many windows there are for a part of the jobs."""
    found = sk.find_windows(POOL, ASKED[part], "finish", threads=threads)
    return int(np.isfinite(found.start).sum())


def threads(count: int) -> None:
    """find_windows by one thread, by two, and by two processes, in turns."""
    prepare(count)
    wall: dict[str, list[float]] = {}
    halves = [slice(0, count // 2), slice(count // 2, count)]
    with ProcessPoolExecutor(2, initializer=prepare, initargs=(count,)) as crew:
        sum(crew.map(search, halves))  # starts them
        ways: dict[str, Callable[[], int]] = {
            "one thread": lambda: search(slice(count)),
            "two threads": lambda: search(slice(count), 2),
            "two processes": lambda: sum(crew.map(search, halves)),
        }
        for _ in range(9):
            for name, way in ways.items():
                begin = time.perf_counter()
                assert way() == count
                wall.setdefault(name, []).append(time.perf_counter() - begin)
    one, two, both = (np.array(times) for times in wall.values())
    print(
        f"find_windows (wall clock): two threads {np.median(one / two):.2f} times one"
        f" thread (best times: {one.min() / two.min():.2f}), two processes"
        f" {np.median(one / both):.2f} times ({one.min() / both.min():.2f})"
    )


def main() -> None:
    """Run all, or a short version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--keep", action="store_true", help="in measured.json")
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
        keep("loop", rows)
    from_python(1000 if quick else 3000)
    alternatives(1 if quick else 5)
    threads(2000 if quick else 20_000)


if __name__ == "__main__":
    main()

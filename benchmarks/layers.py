"""Measures what each search structure is worth: all searches without it, one at a time.

    python benchmarks/layers.py [--brief] [--keep] [--only TEXT] [--rounds N]

The structures of `IndexOptions` (slots/index_options.hpp) change no answer, so each
workload runs with the defaults, without each structure, and without all; the windows
must be equal. A ratio is the least CPU time without the structure over the least one
with it, of interleaved rounds on new pools: above 1, the structure helps. `--brief`
runs small workloads once, for the comparison of the windows.

Workloads: streams of bookings into pools of 100 to 100,000 nodes that they fill, in
which a node has one price, its slots have prices of their own, or nodes are of four
kinds; streams by cost into the papers' environments; searches of slots that do not
change; all alternatives of a request. A last table has the time of a search by the
number of parts, which must not jump.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import Ablation, store

import slotkern as sk
from slotkern._kernels.slots import PreparedSlots, index_options

NEVER = 2**64 - 1

#: The options without each structure.
LAYERS: dict[str, dict[str, int]] = {
    "start bounds": {"start_bounds": False},
    "cost bounds": {"min_cost_bound_rows": NEVER},
    "key dictionary": {"min_nodes_per_key": NEVER},
    "short spans omitted": {"omit_short_spans": False},
    "ranked alternatives": {"max_ranked_parts": 0},
}
VARIANTS = {
    "": {},
    **LAYERS,
    "all": {name: x for layer in LAYERS.values() for name, x in layer.items()},
}
CRITERIA = ("start", "finish", "runtime", "cost")
MEAN_VOLUME = 150
#: Nodes, parts and jobs of streams by cost into the papers' environments.
PUBLISHED = ((100, 5, 400), (1000, 5, 3000), (1000, 15, 1000), (1000, 50, 300))
PARTS = (14, 15, 16, 17, 20, 24, 28, 32)


@dataclass(frozen=True)
class Pool:
    """Free slots of random nodes, six intervals each."""

    nodes: int
    span: float
    # of nodes; "own prices" of slots; "few kinds" of nodes; "as published": environment
    prices: str = ""

    def jobs(self, n: int, count: int, seed: int) -> list[sk.Request]:
        """Return jobs for n nodes; some budgets bind."""
        rng = np.random.default_rng(seed)
        volumes = rng.uniform(100, 200, count)
        pay = n * volumes * rng.uniform(0.85, 1.6, count)
        return [
            sk.Request(n, float(v), budget=float(b))
            for v, b in zip(volumes, pay, strict=True)
        ]

    def capacity(self, n: int) -> int:
        """Return the number of jobs that fill the pool."""
        slots = slots_of(self)
        work = ((slots["end"] - slots["start"]) * slots["performance"]).sum()
        return int(0.8 * work / (n * MEAN_VOLUME))


@lru_cache(maxsize=2)
def slots_of(pool: Pool) -> NDArray[np.void]:
    """Return the free slots of the nodes."""
    if pool.prices == "as published":
        environment = sk.generate_environment(
            "aep", nodes=pool.nodes, interval=pool.span, seed=1
        )
        return environment.slots
    rng = np.random.default_rng(pool.nodes)
    cuts = np.sort(rng.random((pool.nodes, 12)) * pool.span, axis=1)
    start, end = cuts[:, ::2].copy(), cuts[:, 1::2].copy()
    end += (pool.span - end) * 0.2
    end[:, :-1] = np.minimum(end[:, :-1], start[:, 1:])
    speed = rng.uniform(2, 10, pool.nodes)
    price = speed * rng.uniform(0.8, 1.2, pool.nodes)
    if pool.prices == "few kinds":
        speed = rng.integers(1, 5, pool.nodes) * 2.0
        price = speed.copy()
    rates = np.repeat(price, 6).reshape(pool.nodes, 6)
    if pool.prices == "own prices":
        rates *= rng.uniform(0.8, 1.2, rates.shape)
    return sk.make_slots(
        node=np.repeat(np.arange(pool.nodes), 6),
        start=start.ravel(),
        end=end.ravel(),
        performance=np.repeat(speed, 6),
        price=rates.ravel(),
    )


def digest(table: sk.WindowTable) -> str:
    """Return a digest of all windows."""
    found = hashlib.sha256()
    for column in (table.start, table.cost, table.value, table.parts["node"]):
        found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of this thread in a call, and its result."""
    begin = time.thread_time()
    result = function()
    return time.thread_time() - begin, result


@dataclass(frozen=True)
class Stream:
    """Books `most` jobs by a criterion; `filled`: after others have filled the pool."""

    pool: Pool
    criterion: Any
    n: int
    most: int = 6000
    filled: bool = True

    @property
    def name(self) -> str:
        """Return the name of the row."""
        light = "" if self.filled else " light"
        prices = f" {self.pool.prices}" if self.pool.prices else ""
        return (
            f"{self.criterion}, {self.pool.nodes:,} nodes x {self.pool.span:g}, "
            f"n = {self.n}{light}{prices}"
        )

    def run(self) -> tuple[float, str]:
        """Return the seconds per job and the digest of the windows."""
        pool = sk.SlotPool(slots_of(self.pool))
        count = min(self.most, self.pool.capacity(self.n))
        before = self.pool.capacity(self.n) - count if self.filled else 0
        wide = 50 * max(1, self.n // 50)
        pool.schedule(
            self.pool.jobs(wide, before * self.n // wide, 5), "start", shape="ragged"
        )
        jobs = self.pool.jobs(self.n, count, 7)
        seconds, found = timed(
            lambda: pool.schedule(jobs, self.criterion, shape="ragged")
        )
        return seconds / count, digest(found)


@dataclass(frozen=True)
class Unchanged:
    """Searches slots that do not change, `count` times."""

    pool: Pool
    criterion: Any
    n: int
    count: int = 1000

    @property
    def name(self) -> str:
        """Return the name of the row."""
        return f"unchanged, {self.criterion}, {self.pool.nodes:,} nodes, n = {self.n}"

    def run(self) -> tuple[float, str]:
        """Return the seconds per search and the digest of the windows."""
        pool = sk.SlotPool(slots_of(self.pool))
        jobs = self.pool.jobs(self.n, self.count, 9)
        sk.find_windows(pool, jobs[:1], "start", shape="ragged")
        seconds, found = timed(
            lambda: sk.find_windows(pool, jobs, self.criterion, shape="ragged")
        )
        return seconds / self.count, digest(found)


@dataclass(frozen=True)
class Alternatives:
    """Finds all alternatives of one request."""

    pool: Pool
    n: int

    @property
    def name(self) -> str:
        """Return the name of the row."""
        return f"all alternatives, {self.pool.nodes:,} nodes, n = {self.n}"

    def run(self) -> tuple[float, str]:
        """Return the seconds per call and the digest of the windows."""
        pool = PreparedSlots(slots_of(self.pool))
        request = sk.Request(self.n, 150, budget=self.n * 150 * 1.3)
        sk.find_alternatives(pool, request, shape="ragged")
        seconds, found = timed(
            lambda: sk.find_alternatives(pool, request, shape="ragged")
        )
        return seconds, digest(found)


Workload = Stream | Unchanged | Alternatives


def workloads() -> Iterator[Workload]:
    """Return the workloads, grouped by pool."""
    small, middle = Pool(100, 3600), Pool(1000, 3600)
    for criterion in ("start", "cost"):
        yield Stream(small, criterion, 5)
    for criterion, n in (
        ("start", 5),
        ("start", 50),
        ("finish", 5),
        ("runtime", 5),
        ("cost", 5),
        ("cost", 50),
    ):
        yield Stream(middle, criterion, n)
    for criterion in CRITERIA:
        for n in (5, 50):
            yield Unchanged(middle, criterion, n)
    for pool in (small, middle):
        for n in (5, 20):
            yield Alternatives(pool, n)
    for criterion in ("start", "cost"):
        yield Stream(Pool(1000, 3600, "few kinds"), criterion, 5)
    for criterion in ("start", "cost"):
        yield Stream(Pool(1000, 3600, "own prices"), criterion, 5)
    for nodes, n, count in PUBLISHED:
        yield Stream(Pool(nodes, 3600, "as published"), "cost", n, count, filled=False)
    yield Stream(Pool(10_000, 600), "start", 5, filled=False)
    large = Pool(10_000, 3600)
    for criterion, n in (
        ("start", 5),
        ("start", 50),
        ("finish", 50),
        ("runtime", 50),
        ("cost", 5),
    ):
        yield Stream(large, criterion, n, most=3000)
    for criterion in CRITERIA:
        for n in (5, 50):
            yield Unchanged(large, criterion, n, count=300)
    huge = Pool(100_000, 600)
    for n in (5, 50):
        yield Stream(huge, "start", n, filled=False)
    yield Stream(Pool(100_000, 600, "few kinds"), "start", 5, filled=False)


def brief_workloads() -> Iterator[Workload]:
    """Return small workloads that use every structure."""
    for prices in ("", "few kinds", "own prices"):
        pool = Pool(200, 1200, prices)
        for criterion in CRITERIA:
            for n in (3, 50):
                yield Stream(pool, criterion, n, most=300)
                yield Unchanged(pool, criterion, n, count=50)
        yield Alternatives(pool, 5)
    yield Stream(Pool(6000, 600), "start", 5, most=200, filled=False)


def measure(work: Workload, rounds: int, seconds: float = 0.0) -> Ablation:
    """Compare the windows of all variants and return their least times.

    Runs more rounds until each variant has run for `seconds`.
    """
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    names, expected, spent = list(VARIANTS), "", 0.0
    try:
        for k in range(10 * rounds):
            if k >= rounds and spent > seconds:
                break
            for name in names[k % len(names) :] + names[: k % len(names)]:
                index_options(**VARIANTS[name])
                begin = time.thread_time()
                each, found = work.run()
                spent += (time.thread_time() - begin) / len(names)
                times[name].append(each)
                expected = expected or found
                assert found == expected, f"{work.name}: other windows without {name}"
    finally:
        index_options()
    least = {name: min(each) for name, each in times.items()}
    own = least.pop("")
    return Ablation(work.name, own, {name: x / own for name, x in least.items()})


def by_parts(rounds: int) -> list[dict[str, Any]]:
    """Return the microseconds of a search for each criterion and number of parts."""
    pool = Pool(1000, 3600)
    rows = []
    for count in (25, 1000):
        for criterion in CRITERIA:
            works = [Unchanged(pool, criterion, n, count) for n in PARTS]
            times = [[work.run()[0] for work in works] for _ in range(rounds)]
            least = np.min(times, axis=0) * 1e6
            rows.append(
                {
                    "what": f"{criterion}, the first {count:,} searches",
                    "microseconds": [round(float(x), 2) for x in least],
                }
            )
            print(
                f"{rows[-1]['what']:32}",
                *(f"{x:7.2f}" for x in least),
                f"  most times the one before: {(least[1:] / least[:-1]).max():.2f}",
            )
    return rows


def main() -> None:
    """Run the workloads and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brief", action="store_true", help="small workloads, once")
    parser.add_argument("--keep", action="store_true", help="store the figures")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--rounds", type=int, default=5, help="least rounds of each")
    chosen = parser.parse_args()
    if chosen.keep and (chosen.brief or chosen.only):
        parser.error("--keep stores all workloads, without --brief and --only")
    if chosen.brief:
        rows = [measure(work, 1) for work in brief_workloads()]
        print(f"{len(rows)} workloads, equal windows without each of {len(LAYERS)}")
        return
    print(f"{'':44} us with all", *VARIANTS, sep="  ")
    rows = []
    for work in workloads():
        if chosen.only not in work.name:
            continue
        row = measure(work, chosen.rounds, seconds=0.5)
        rows.append(row)
        ratios = "  ".join(f"{x:6.2f}" for x in row.without.values())
        print(f"{row.what:44} {row.own * 1e6:9.2f}  {ratios}", flush=True)
    print("parts:", *PARTS)
    parts = by_parts(chosen.rounds)
    if chosen.keep:
        store("layers", rows, sizes=PARTS, parts=parts)


if __name__ == "__main__":
    main()

"""What a job of a stream takes: by other criteria than start, and among many nodes.

    python benchmarks/streams.py [--quick]

`by criterion` fills a pool like the papers' and one that is busy (four busy intervals
a node), with budgets and without, and says how many times as long a job takes as by
start. `by nodes` books few jobs into ever larger pools. CPU times of this process,
medians of interleaved rounds, each on a pool of its own; what is found at some
fillings is compared with the papers' algorithm on what is free then.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

import numpy as np
from loop import MEAN_VOLUME, cpu, jobs, laid_out
from numpy.typing import NDArray

import slotkern as sk

CRITERIA = ("start", "finish", "runtime", "cost")


def papers(nodes: int) -> NDArray[np.void]:
    """Slots as in the papers."""
    return sk.generate_environment("aep", nodes=nodes, interval=3600, seed=1).slots


def busy(nodes: int) -> NDArray[np.void]:
    """Four busy intervals a node, 30% of its time; speeds 2 to 10."""
    horizon, rng = 3600.0, np.random.default_rng(1)
    lengths = horizon * rng.uniform(0.0375, 0.1125, (nodes, 4))
    idle = horizon - lengths.sum(1, keepdims=True)
    begin = np.sort(rng.random((nodes, 4)) * idle, 1) + np.cumsum(lengths, 1) - lengths
    start = np.hstack([np.zeros((nodes, 1)), begin + lengths])
    end = np.hstack([begin, np.full((nodes, 1), horizon)])
    speed = rng.integers(2, 11, nodes).astype(float)
    price = speed * (1.5 + 0.1 * speed) * rng.normal(1, 0.12, nodes).clip(0.5, 1.6)
    free = end > start
    node = np.nonzero(free)[0]
    return sk.make_slots(
        node=node,
        start=start[free],
        end=end[free],
        performance=speed[node],
        price=price[node],
    )


def work_of(asked: list[sk.Request], times: float, pay: float) -> list[sk.Request]:
    """The same with so many times the work, and the budget for that."""
    return [
        sk.Request(r.nodes, times * r.volume, budget=times * pay * r.budget)
        for r in asked
    ]


def free_of_charge(asked: list[sk.Request]) -> list[sk.Request]:
    """The same without budgets."""
    return [sk.Request(r.nodes, r.volume) for r in asked]


def compare(slots: NDArray[np.void], asked: list[sk.Request], criterion: str) -> int:
    """How many windows at four fillings are as good as by the papers' algorithm."""
    pool, same = laid_out(slots), 0
    for part in np.array_split(np.arange(len(asked)), 4):
        job, rest = asked[part[0]], [asked[i] for i in part[1:]]
        mine = pool.find(job, criterion, shape="ragged")
        other = sk.find_window(
            pool.slots, job, criterion, shape="ragged", method="published"
        )
        assert (mine is None) == (other is None)
        assert mine is None or other is None or mine.value == other.value
        same += mine is not None
        pool.schedule([job, *rest], criterion, shape="ragged")
    return same


def medians(
    streams: dict[str, Callable[[], float]], rounds: int, jobs_each: int
) -> dict[str, float]:
    """Microseconds a job of each stream, in turns."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, stream in streams.items():
            times.setdefault(name, []).append(stream() / jobs_each * 1e6)
    return {name: float(np.median(each)) for name, each in times.items()}


def stream(
    slots: NDArray[np.void], asked: list[sk.Request], criterion: str
) -> Callable[[], float]:
    """Books all jobs into a new pool; how long that takes."""

    def once() -> float:
        pool = laid_out(slots)
        return cpu(pool.schedule, asked, criterion, shape="ragged")[0]

    return once


def by_criterion(nodes: int, rounds: int, filled: Iterable[float]) -> None:
    """How long a job takes, by each criterion."""
    for name, slots, times, pay in (
        ("like the papers'", papers(nodes), 1.0, 1.0),
        ("busy", busy(nodes), 6.0, 1.8),
    ):
        work = ((slots["end"] - slots["start"]) * slots["performance"]).sum()
        for wanted in (5, 50):
            for share in filled:
                count = int(share * 0.85 * work / (wanted * times * MEAN_VOLUME))
                dear = work_of(jobs(count, wanted, seed=3), times, pay)
                for terms, asked in (
                    ("budgets", dear),
                    ("no budgets", free_of_charge(dear)),
                ):
                    same = sum(compare(slots, asked, one) for one in CRITERIA)
                    each = medians(
                        {one: stream(slots, asked, one) for one in CRITERIA},
                        rounds,
                        count,
                    )
                    told = ", ".join(
                        f"{one} {took:.1f} us ({took / each['start']:.2f})"
                        for one, took in each.items()
                    )
                    print(
                        f"{name}, {nodes:,} nodes, n = {wanted}, {count:,} jobs"
                        f" ({share:.0%} of what fills it), {terms}: {told};"
                        f" {same} answers compared"
                    )


def by_nodes(sizes: Iterable[int], rounds: int, counts: Iterable[int]) -> None:
    """How a job's time grows with the pool, which is booked by little."""
    pools = {
        nodes: sk.generate_environment("aep", nodes=nodes, interval=600, seed=1).slots
        for nodes in sizes
    }
    for terms in ("budgets", "no budgets"):
        for count in counts:
            asked = jobs(count, 5, seed=2)
            if terms == "no budgets":
                asked = free_of_charge(asked)
            compare(pools[min(pools)], asked, "start")
            each = medians(
                {
                    f"{nodes:,}": stream(slots, asked, "start")
                    for nodes, slots in pools.items()
                },
                rounds,
                count,
            )
            took = list(each.values())
            told = ", ".join(f"{nodes} {one:.2f} us" for nodes, one in each.items())
            print(
                f"by nodes, n = 5, {count:,} jobs, {terms}: {told};"
                f" {took[-1] / took[0]:.2f} times"
            )


def main() -> None:
    """Run all, or a short version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    sizes = (1_000, 10_000) if quick else (1_000, 10_000, 50_000, 200_000)
    by_nodes(sizes, 3 if quick else 5, (500,) if quick else (500, 1_000, 2_000))
    by_criterion(200 if quick else 1_000, 3, (1.0,) if quick else (0.25, 1.0))


if __name__ == "__main__":
    main()

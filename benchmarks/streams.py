"""Measures the time per job of booking streams, by criterion and by number of nodes.

    python benchmarks/streams.py [--quick]

`by criterion` fills a pool like the papers' and a busy one (four busy intervals per
node), with budgets and without, and prints each time relative to the criterion start.
`by nodes` books few jobs into pools of growing size. Times are medians of the CPU time
of interleaved rounds, each on a new pool. At four fill levels the windows are compared
with those of the papers' algorithm on the same free slots.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

import numpy as np
from loop import MEAN_VOLUME, cpu, jobs, prepared_pool
from numpy.typing import NDArray

import slotkern as sk

CRITERIA = ("start", "finish", "runtime", "cost")


def papers(nodes: int) -> NDArray[np.void]:
    """Return slots as in the papers."""
    return sk.generate_environment("aep", nodes=nodes, interval=3600, seed=1).slots


def busy(nodes: int) -> NDArray[np.void]:
    """Return slots between four busy intervals per node, 30% of its time."""
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


def work_of(requests: list[sk.Request], times: float, pay: float) -> list[sk.Request]:
    """Return the jobs with `times` the volume, and budgets times `times * pay`."""
    return [
        sk.Request(r.nodes, times * r.volume, budget=times * pay * r.budget)
        for r in requests
    ]


def free_of_charge(requests: list[sk.Request]) -> list[sk.Request]:
    """Return the jobs without budgets."""
    return [sk.Request(r.nodes, r.volume) for r in requests]


def compare(slots: NDArray[np.void], requests: list[sk.Request], criterion: str) -> int:
    """Compare windows at four fill levels with the papers'; return how many exist."""
    pool, same = prepared_pool(slots), 0
    for part in np.array_split(np.arange(len(requests)), 4):
        job, rest = requests[part[0]], [requests[i] for i in part[1:]]
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
    """Return the median microseconds per job of each stream, interleaved."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, stream in streams.items():
            times.setdefault(name, []).append(stream() / jobs_each * 1e6)
    return {name: float(np.median(each)) for name, each in times.items()}


def stream(
    slots: NDArray[np.void], requests: list[sk.Request], criterion: str
) -> Callable[[], float]:
    """Return a function that books all jobs into a new pool and returns the seconds."""

    def once() -> float:
        pool = prepared_pool(slots)
        return cpu(pool.schedule, requests, criterion, shape="ragged")[0]

    return once


def by_criterion(nodes: int, rounds: int, filled: Iterable[float]) -> None:
    """Print the time per job by each criterion."""
    for name, slots, times, pay in (
        ("like the papers'", papers(nodes), 1.0, 1.0),
        ("busy", busy(nodes), 6.0, 1.8),
    ):
        work = ((slots["end"] - slots["start"]) * slots["performance"]).sum()
        for wanted in (5, 50):
            for share in filled:
                count = int(share * 0.85 * work / (wanted * times * MEAN_VOLUME))
                with_budgets = work_of(jobs(count, wanted, seed=3), times, pay)
                for terms, requests in (
                    ("budgets", with_budgets),
                    ("no budgets", free_of_charge(with_budgets)),
                ):
                    same = sum(compare(slots, requests, one) for one in CRITERIA)
                    each = medians(
                        {one: stream(slots, requests, one) for one in CRITERIA},
                        rounds,
                        count,
                    )
                    text = ", ".join(
                        f"{one} {took:.1f} us ({took / each['start']:.2f})"
                        for one, took in each.items()
                    )
                    print(
                        f"{name}, {nodes:,} nodes, n = {wanted}, {count:,} jobs"
                        f" ({share:.0%} of what fills it), {terms}: {text};"
                        f" {same} answers compared"
                    )


def by_nodes(sizes: Iterable[int], rounds: int, counts: Iterable[int]) -> None:
    """Print how the time per job grows with a pool that stays mostly free."""
    pools = {
        nodes: sk.generate_environment("aep", nodes=nodes, interval=600, seed=1).slots
        for nodes in sizes
    }
    for terms in ("budgets", "no budgets"):
        for count in counts:
            requests = jobs(count, 5, seed=2)
            if terms == "no budgets":
                requests = free_of_charge(requests)
            compare(pools[min(pools)], requests, "start")
            each = medians(
                {
                    f"{nodes:,}": stream(slots, requests, "start")
                    for nodes, slots in pools.items()
                },
                rounds,
                count,
            )
            took = list(each.values())
            text = ", ".join(f"{nodes} {one:.2f} us" for nodes, one in each.items())
            print(
                f"by nodes, n = 5, {count:,} jobs, {terms}: {text};"
                f" {took[-1] / took[0]:.2f} times"
            )


def main() -> None:
    """Run all measurements, or with --quick the small ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    sizes = (1_000, 10_000) if quick else (1_000, 10_000, 50_000, 200_000)
    by_nodes(sizes, 3 if quick else 5, (500,) if quick else (500, 1_000, 2_000))
    by_criterion(200 if quick else 1_000, 3, (1.0,) if quick else (0.25, 1.0))


if __name__ == "__main__":
    main()

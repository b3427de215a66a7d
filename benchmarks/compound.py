"""Times jobs of several parts against the plain searches that they consist of.

``python benchmarks/compound.py`` uses a pool of 1,000 nodes of two kinds, 3,000 jobs
booked. `Together` of 4 and 1 nodes is compared with the leapfrog over `pool.find` in
Python, and `AnyOf` of two options with one search and with two. All answers are
compared. Prints medians of CPU microseconds over `--repeat` calls, interleaved.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import process_time_ns
from typing import Any

import numpy as np

import slotkern as sk

CPU, GPU = "kind == 'cpu'", "kind == 'gpu'"


def busy_pool(seed: int) -> sk.SlotPool:
    """Return 1,000 nodes, 100 of them of the kind gpu, with 3,000 jobs booked."""
    rng = np.random.default_rng(seed)
    slots = sk.make_slots(
        node=np.arange(1000),
        start=0.0,
        end=1e6,
        performance=1.0,
        price=rng.integers(1, 9, 1000).astype(float),
        kind=np.array(["gpu"] * 100 + ["cpu"] * 900),
    )
    pool = sk.SlotPool(slots)
    wheres = rng.choice([GPU, CPU, CPU, CPU], 3000).tolist()
    sizes, lengths = rng.integers(1, 12, 3000), 60 * rng.integers(1, 25, 3000)
    pool.schedule(
        [
            sk.Request(int(n), float(length), where=where)
            for n, length, where in zip(sizes, lengths, wheres, strict=True)
        ]
    )
    return pool


def by_hand(pool: sk.SlotPool, roles: list[sk.Request]) -> list[sk.Window]:
    """Return the windows of roles at their earliest common start, by `pool.find`."""
    time = 0.0
    while True:
        windows = [pool.find(role.replace(earliest=time), "start") for role in roles]
        found = [window for window in windows if window is not None]
        latest = max(window.start for window in found)
        if all(window.start == latest for window in found):
            return found
        time = latest


def medians(calls: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Return the median CPU microseconds of each call, interleaved."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            begin = process_time_ns()
            for _ in range(20):
                call()
            times[name].append((process_time_ns() - begin) / 20e3)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pool = busy_pool(options.seed)
    roles = [sk.Request(4, 240.0, where=CPU), sk.Request(1, 600.0, where=GPU)]
    together = sk.Together(roles)
    plan = pool.find(together, "start")
    assert plan is not None
    assert list(plan) == by_hand(pool, roles)
    found = medians(
        {
            "Together": lambda: pool.find(together, "start"),
            "by pool.find": lambda: by_hand(pool, roles),
        },
        options.repeat,
    )
    for name, figure in found.items():
        print(f"4 + 1 nodes, {name}: {figure:.1f} us")

    first, second = sk.Request(16, 240.0, where=CPU), sk.Request(32, 150.0, where=CPU)
    any_of = sk.AnyOf([first, second])
    for criterion in ("start", "finish", "cost"):
        windows = [pool.find(each, criterion) for each in (first, second)]
        values = [getattr(window, criterion) for window in windows]
        taken = pool.find(any_of, criterion)
        assert taken is not None
        assert taken.value(criterion) == min(values)
        assert taken.option == values.index(min(values))
        found = medians(
            {
                "AnyOf": lambda c=criterion: pool.find(any_of, c),
                "first": lambda c=criterion: pool.find(first, c),
                "second": lambda c=criterion: pool.find(second, c),
            },
            options.repeat,
        )
        one = (found["first"] + found["second"]) / 2
        print(
            f"AnyOf of two by {criterion}: {found['AnyOf']:.1f} us, one search "
            f"{one:.1f} us, ratio {found['AnyOf'] / one:.2f}"
        )


if __name__ == "__main__":
    main()

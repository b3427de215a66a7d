"""Times searches within one group of nodes, such as a rack, against asking each group.

    python benchmarks/groups.py [--quick]

A pool of racks of 25 equal nodes books a queue of jobs of 1 to 16 nodes and 1 to 24
hours, each at its earliest start: anywhere, within one rack, and on at most two racks.
From time to time the same request is searched in each rack by a filter, and the best of
these windows is compared with that of the pool. For cost, finish and runtime, nodes of
four performances and nine prices are searched at the end. Times are CPU times of this
process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import slotkern as sk

SIZE = 25  # nodes of a rack
Key = tuple[float, float, float, tuple[int, ...]]


def machine(racks: int, kinds: int = 1) -> sk.SlotPool:
    """Return a pool of racks, whose nodes have `kinds` performances."""
    rng = np.random.default_rng(racks)
    nodes = np.arange(racks * SIZE)
    performance = 1 + rng.integers(kinds, size=nodes.size)
    price = performance * (1 if kinds == 1 else rng.integers(1, 10, nodes.size))
    return sk.SlotPool(
        sk.make_slots(
            node=nodes,
            start=0,
            end=1e6,
            performance=performance,
            price=price,
            rack=nodes // SIZE,
        )
    )


def jobs(count: int, **rules: Any) -> list[sk.Request]:
    """Return a queue of jobs under group rules."""
    rng = np.random.default_rng(5)
    sizes, hours = rng.integers(1, 17, count), rng.integers(1, 25, count)
    return [
        sk.Request(int(n), 60.0 * int(h), **rules)
        for n, h in zip(sizes, hours, strict=True)
    ]


def cpu(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and its result."""
    begin = time.process_time()
    result = function(*args, **options)
    return time.process_time() - begin, result


def best_rack(
    pool: sk.SlotPool, request: sk.Request, criterion: str, racks: int
) -> sk.Window | None:
    """Return the best window of all racks, each searched by a filter."""
    plain = request.replace(within=None)
    windows = [
        pool.find(plain.replace(where=f"rack == {rack}"), criterion)
        for rack in range(racks)
    ]
    return min((w for w in windows if w is not None), key=key, default=None)


def key(window: sk.Window) -> Key:
    """Return the order of windows: value, start, cost, node ids."""
    return window.value, window.start, window.cost, tuple(window.nodes)


def loop(racks: int, count: int, checks: int) -> None:
    """Book a queue within racks, and compare some searches with asking each rack."""
    spent = {}
    asked = same = 0.0
    for what, rules in {
        "anywhere": {},
        "within one rack": {"within": "rack"},
        "at most two racks": {"limits": "distinct(rack) <= 2"},
    }.items():
        few = count if "two" not in what else count // 20
        pool, queue = machine(racks), jobs(few, **rules)
        spent[what] = 0.0
        for part in np.array_split(np.arange(few), checks):
            seconds, booked = cpu(
                pool.schedule, [queue[i] for i in part], "start", shape="square"
            )
            assert len(booked) == len(part)
            spent[what] += seconds / few
            if what == "within one rack":
                request = queue[part[0]]
                own, window = cpu(pool.find, request, "start")
                each, other = cpu(best_rack, pool, request, "start", racks)
                assert window is not None
                assert other is not None
                assert key(window) == key(other)
                asked += each / checks
                same += own / checks
        print(f"{racks} racks, {few} jobs, {what}: {1e6 * spent[what]:.1f} us a job")
    print(f"one search {1e6 * same:.0f} us, each rack asked {1e6 * asked:.0f} us")


def criteria(racks: int, few: int) -> None:
    """Search by the other criteria, in a loaded pool of unlike nodes."""
    pool = machine(racks, kinds=4)
    pool.schedule(jobs(20 * racks), "start")
    for criterion in ("start", "finish", "runtime", "cost"):
        own = asked = 0.0
        for request in jobs(few, within="rack"):
            seconds, window = cpu(pool.find, request, criterion)
            own += seconds / few
            seconds, other = cpu(best_rack, pool, request, criterion, racks)
            asked += seconds / few
            assert window is not None
            assert other is not None
            assert key(window) == key(other)
        print(
            f"{racks} racks of unlike nodes by {criterion}: {1e6 * own:.0f} us, "
            f"each rack asked {1e6 * asked:.0f} us"
        )


def main() -> None:
    """Run all measurements, or with --quick the small ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    loop(40, 2_000 if quick else 20_000, 10)
    if not quick:
        loop(1_000, 20_000, 5)
    criteria(40, 5 if quick else 20)


if __name__ == "__main__":
    main()

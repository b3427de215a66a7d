"""Times searches and bookings over domains against those of one joined pool.

    python benchmarks/domains.py [--quick]

Ten domains have 20,000 nodes each, with one to three slots a node. Both sides search
the same requests by each criterion; windows must be equal. Then both place a stream of
jobs, and the domains are searched after a local booking in one of them. Times are
medians of CPU times of this process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import slotkern as sk

DOMAINS = 10


def site(nodes: int, seed: int) -> sk.SlotPool:
    """Return a pool with one to three slots a node, performances and prices."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(nodes), rng.integers(1, 4, nodes))
    number = np.arange(len(node)) - np.searchsorted(node, node)  # of a slot in its node
    start = 1000.0 * number + rng.integers(0, 50, len(node))
    slots = sk.make_slots(
        node=node,
        start=start,
        end=start + rng.integers(100, 900, len(node)),
        performance=1 + rng.integers(0, 4, nodes)[node],
        price=rng.integers(1, 20, nodes)[node],
    )
    return sk.SlotPool(slots)


def joined(pools: dict[str, sk.SlotPool], nodes: int) -> sk.SlotPool:
    """Return one pool with the slots of all domains."""
    tables = []
    for k, pool in enumerate(pools.values()):
        table = pool.slots.copy()
        table["node"] += k * nodes
        tables.append(table)
    slots = np.concatenate(tables)
    return sk.SlotPool(slots[np.lexsort((slots["node"], slots["start"]))])


def cpu(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and its result."""
    begin = time.process_time()
    result = function(*args, **options)
    return time.process_time() - begin, result


def parts(window: sk.Window | None) -> Any:
    """Return what windows of both sides have in common."""
    if window is None:
        return None
    return window.start, window.cost, window.slots[["node", "start", "end"]].tolist()


def searches(domains: sk.Domains, pool: sk.SlotPool, count: int) -> None:
    """Time searches of a state that does not change."""
    rng = np.random.default_rng(3)
    print(f"{'search':>12} {'joined ms':>10} {'domains ms':>11} {'ratio':>6}")
    for criterion in sk.CRITERIA:
        ours, theirs = [], []
        for _ in range(count):
            request = sk.Request(
                int(rng.integers(4, 65)),
                float(rng.integers(50, 400)),
                budget=float(rng.integers(20_000, 200_000)),
            )
            a, window = cpu(domains.find, request, criterion, shape="ragged")
            b, other = cpu(pool.find, request, criterion, shape="ragged")
            assert parts(window) == parts(other)
            ours.append(a)
            theirs.append(b)
        report(criterion, ours, theirs)


def stream(domains: sk.Domains, pool: sk.SlotPool, count: int) -> None:
    """Time searches that are booked at once."""
    rng = np.random.default_rng(4)
    ours, theirs = [], []
    for _ in range(count):
        request = sk.Request(int(rng.integers(4, 65)), float(rng.integers(50, 400)))
        a, booking = cpu(domains.place, request)
        b, window = cpu(pool.find, request, "start")
        c, _ = cpu(pool.book, window)
        assert parts(booking.window) == parts(window)
        ours.append(a)
        theirs.append(b + c)
    report("placed", ours, theirs)


def local_changes(domains: sk.Domains, count: int) -> None:
    """Time the first search after a local booking."""
    request = sk.Request(8, 100.0)
    names, times = [*domains], []
    for k in range(count):
        local = domains[names[k % len(names)]]
        local.book(local.find(request))
        times.append(cpu(domains.find, request)[0])
    print(f"first search after a local booking: {1e3 * median(times):.1f} ms")


def report(name: str, ours: list[float], theirs: list[float]) -> None:
    """Print the medians of both sides and their ratio."""
    a, b = 1e3 * median(ours), 1e3 * median(theirs)
    print(f"{name:>12} {b:10.3f} {a:11.3f} {a / b:6.2f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small domains")
    quick = parser.parse_args().quick
    nodes, count = (200, 10) if quick else (20_000, 30)
    pools = {f"site{k}": site(nodes, k) for k in range(DOMAINS)}
    seconds, domains = cpu(sk.Domains, pools)
    print(f"{DOMAINS} domains of {nodes:,} nodes, joined in {seconds:.2f} s")
    pool = joined(pools, nodes)
    print(f"first joined pool: {cpu(lambda: domains.pool)[0]:.2f} s")
    searches(domains, pool, count)
    stream(domains, pool, count if quick else 10)
    local_changes(domains, 5)


if __name__ == "__main__":
    main()

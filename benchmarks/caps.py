"""CPU time of searches under capacities and quotas of a pool, from Python.

    python benchmarks/caps.py [--nodes 1000] [--jobs 2000]

A queue of jobs is placed on a machine whose licence is free in 20 spans; then each job
is searched and booked again with spans made by hand, one search for each span, and the
starts are compared. The last column is the same queue without capacities.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import slotkern as sk

HORIZON = 20_000.0


def licence(seed: int, spans: int) -> dict[str, list[float]]:
    """Return a table of a licence: with 10 in each span, and none at other times."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(0, HORIZON, 60), 2 * spans, replace=False))
    return {
        "start": cuts[::2].tolist(),
        "end": cuts[1::2].tolist(),
        "amount": [10] * spans,
    }


def jobs_of(seed: int, count: int) -> list[sk.Request]:
    """Return jobs of 1 to 11 nodes and 1 to 4 hours that use a licence."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, count).tolist()
    lengths = (60.0 * rng.integers(1, 5, count)).tolist()
    return [
        sk.Request(n, v, uses={"matlab": 1}, account=f"user{n}")
        for n, v in zip(sizes, lengths, strict=True)
    ]


def per_job(run: Callable[[sk.Request], object], jobs: Sequence[sk.Request]) -> float:
    """Return microseconds for each job."""
    begun = time.process_time()
    for job in jobs:
        run(job)
    return (time.process_time() - begun) / len(jobs) * 1e6


def by_hand(
    pool: sk.SlotPool, job: sk.Request, spans: Sequence[tuple[float, float]]
) -> float | None:
    """Return the earliest start in any of the spans, one search for each."""
    plain = job.replace(uses=None, account=None)
    for first, last in spans:
        part = plain.replace(earliest=first, deadline=last)
        window = pool.find(part, "start")
        if window is not None:
            return window.start
    return None


def search(pool: sk.SlotPool, job: sk.Request) -> sk.Window | None:
    """Find the earliest window of a job."""
    return pool.find(job, "start")


def place(pool: sk.SlotPool, job: sk.Request) -> None:
    """Find and book the earliest window of a job."""
    window = pool.find(job, "start")
    if window is not None:
        pool.book(window)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2000)
    options = parser.parse_args()
    slots = sk.make_slots(
        node=range(options.nodes), start=0, end=1e6, performance=1, price=1
    )
    jobs = jobs_of(2, options.jobs)
    print("spans  find us  book us  schedule us  plain find us  plain schedule us")
    for spans in (1, 20, 200 if options.jobs >= 2000 else 20):
        table = licence(1, min(spans, 160))
        caps = {"matlab": {**table, "amount": [options.jobs] * len(table["start"])}}
        pool, plain = sk.SlotPool(slots, caps=caps), sk.SlotPool(slots)
        rows = [*zip(table["start"], table["end"], strict=True)]
        for job in jobs[:: max(1, len(jobs) // 50)]:
            window = pool.find(job, "start")
            assert (window and window.start) == by_hand(pool, job, rows)
            if window is not None:
                pool.book(window)
        found = per_job(partial(search, pool), jobs)
        placed = per_job(partial(place, pool), jobs)
        again = sk.SlotPool(slots, caps=caps)
        begun = time.process_time()
        again.schedule(jobs)
        scheduled = (time.process_time() - begun) / len(jobs) * 1e6
        bare = [job.replace(uses=None, account=None) for job in jobs]
        plain.book(plain.find(bare[0], "start"))
        single = per_job(partial(search, plain), bare)
        begun = time.process_time()
        plain.schedule(bare)
        every = (time.process_time() - begun) / len(jobs) * 1e6
        print(
            f"{len(rows):5}  {found:7.2f}  {placed - found:7.2f}  {scheduled:11.2f}  "
            f"{single:13.2f}  {every:17.2f}"
        )


if __name__ == "__main__":
    main()

"""Times ledgers: processes that book at the same time, replay, opening, `kill -9`.

    python benchmarks/ledger.py [--seconds S] [--processes 1,2,4,8] [--storm KILLS]

Each process books jobs of 5 nodes, each as early as possible, in one ledger of 1,000
alike nodes: one at a time, or in groups of 100. SQLite is in a temporary folder;
PostgreSQL is a temporary server on loopback, if it is installed. The independent check
judges every ledger at the end. Times of calls are wall-clock times; those of replay are
CPU times, with the entries per second of both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk
from slotkern.ledger import opening

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.ledger.storm import storm  # noqa: E402
from tests.support.postgres import missing, temporary_cluster  # noqa: E402

JOB = sk.Request(5, 10.0, name="job")
GROUP = 100


def new_ledger(where: Path | str, nodes: int = 1000) -> sk.SharedPool:
    """Create a ledger of equal nodes."""
    slots = sk.make_slots(node=range(nodes), start=0, end=1e6, performance=1, price=1)
    return sk.SlotPool(slots).share(where)


def book(where: Any, grouped: bool, durable: Any, seconds: float, barrier: Any) -> Any:
    """Book for some seconds; return times of calls, bookings/s, and CPU of one."""
    pool = sk.SlotPool.open(where, durable=durable)
    pool.place(JOB)
    barrier.wait()
    times, count = [], 0
    cpu = time.process_time()
    begin = last = time.perf_counter()
    while last - begin < seconds:
        if grouped:
            with pool.group(most=GROUP, within=60):
                for _ in range(GROUP):
                    pool.place(JOB)
        else:
            pool.place(JOB)
        now = time.perf_counter()
        times.append(now - last)
        count += GROUP if grouped else 1
        last = now
    cpu = (time.process_time() - cpu) / count
    pool.close()
    return times, count / (last - begin), cpu


def _child(queue: Any, *arguments: Any) -> None:
    queue.put(book(*arguments))


def writers(where: Any, processes: int, grouped: bool, durable: str, seconds: float):
    """Return bookings per second and percentiles of milliseconds, of all processes."""
    new_ledger(where).close()
    context = multiprocessing.get_context("spawn")
    queue, barrier = context.Queue(), context.Barrier(processes)
    given = (where, grouped, durable, seconds, barrier)
    children = [
        context.Process(target=_child, args=(queue, *given)) for _ in range(processes)
    ]
    for child in children:
        child.start()
    found = [queue.get() for _ in children]
    for child in children:
        child.join()
    with sk.SlotPool.open(where, durable="crash") as pool:
        report = pool.check()
    assert report, str(report)
    times = 1e3 * np.concatenate([times for times, _, _ in found])
    rate = sum(rate for _, rate, _ in found)
    half, most = np.percentile(times, [50, 99])
    return {
        "per_second": round(rate),
        "p50_ms": round(float(half), 2),
        "p99_ms": round(float(most), 2),
        "longest_ms": round(float(times.max()), 1),
        "cpu_us": round(1e6 * float(np.mean([cpu for _, _, cpu in found])), 1),
        "bookings": report.bookings,
    }


def measured(function: Any) -> tuple[float, float, Any]:
    """Return the wall-clock and the CPU seconds of a call, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def replay(where: Any, count: int, nodes: int = 1000) -> dict[str, Any]:
    """Measure a schedule of many jobs, the replay of its entries, and snapshots."""
    opening.SNAPSHOT_AFTER = 10**9
    pool, follower = new_ledger(where, nodes), sk.SlotPool.open(where, readonly=True)
    jobs = [JOB] * 10_000
    out: dict[str, Any] = {}
    wall, cpu, _ = measured(
        lambda: [pool.schedule(jobs, owner="loop") for _ in range(count // 10_000)]
    )
    out["schedule_per_second"] = round(count / wall)
    out["schedule_per_cpu_second"] = round(count / cpu)
    wall, cpu, replayed = measured(follower.refresh)
    assert replayed == count
    out["catch_up_per_second"] = round(count / wall)
    out["catch_up_per_cpu_second"] = round(count / cpu)
    wall, cpu, other = measured(lambda: sk.SlotPool.open(where, readonly=True))
    assert other.find(JOB) == pool.find(JOB)
    out["open_replaying"] = {"seconds": round(wall, 2), "cpu": round(cpu, 2)}
    pool.snapshot()
    wall, cpu, _ = measured(lambda: sk.SlotPool.open(where, readonly=True))
    out["open_from_snapshot"] = {"seconds": round(wall, 2), "cpu": round(cpu, 2)}
    pool.advance(count / (nodes // JOB.nodes) * 10.0 - 10)
    pool.snapshot()
    wall, cpu, _ = measured(lambda: sk.SlotPool.open(where, readonly=True))
    out["open_mostly_past"] = {"seconds": round(wall, 2), "cpu": round(cpu, 2)}
    pool.close()
    return out


@contextmanager
def stores() -> Iterator[dict[str, Any]]:
    """Yield functions that return the place of a new ledger, by store."""
    numbers = iter(range(10**6))
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = {
            "sqlite": lambda: Path(folder) / f"site{next(numbers)}.db"
        }
        if reason := missing():
            print(f"PostgreSQL is not measured: {reason}")
            yield found
            return
        with temporary_cluster() as cluster:
            cluster.set("max_wal_size", "4GB")
            found["postgresql"] = lambda: f"{cluster.url}?pool=site{next(numbers)}"
            yield found


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--processes", default="1,2,4,8")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--storm", type=int, default=60, help="number of kill -9")
    parser.add_argument("--only", default="", help="writers, replay or storm")
    given = parser.parse_args()
    with stores() as places:
        for store, place in places.items():
            for count in map(int, given.processes.split(",")):
                for grouped in (False, True):
                    for durable in ("disk", "crash"):
                        if given.only not in ("", "writers"):
                            continue
                        found = writers(place(), count, grouped, durable, given.seconds)
                        how = f"groups of {GROUP}" if grouped else "one at a time"
                        show(store, f"{count} processes, {how}, {durable}", found)
            if given.only in ("", "replay"):
                found = replay(place(), given.entries)
                show(store, f"replay of {given.entries:,} entries", found)
            if given.only in ("", "storm") and given.storm:
                with tempfile.TemporaryDirectory() as folder:
                    found = storm(Path(folder), given.storm, 8, place())
                show(store, f"{given.storm} times kill -9, 8 processes", found)


def show(store: str, what: str, found: dict[str, Any]) -> None:
    """Print a line of figures."""
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"{store}, {what}: {json.dumps(found)} ({load})", flush=True)


if __name__ == "__main__":
    main()

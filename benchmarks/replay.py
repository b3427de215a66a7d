"""Jobs a second of replays, beside AccaSim in the same run where it is installed.

    python benchmarks/replay.py [TRACE.swf.gz ...]

A synthetic flow is replayed as well, and one with 2,000 waiting jobs. CPU seconds, the
best of several runs: `sk.replay` with its checks and its table of results, and the
kernel alone. AccaSim runs EASY with its first-fit allocator on the first 2,000 jobs of
the first trace; its own reading of them is included.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk
from slotkern import _replay

POLICIES = ("fcfs", "easy", "easy-sjf", "conservative")


def synthetic(count: int, seed: int = 0) -> sk.Trace:
    """A flow that keeps 128 processors about as busy as real machines are."""
    rng = np.random.default_rng(seed)
    jobs = np.full(count, -1, sk.SWF)
    jobs["job"] = np.arange(1, count + 1)
    jobs["submit"] = rng.exponential(650, count).cumsum().round()
    jobs["run_time"] = rng.lognormal(7, 1.5, count).round()
    jobs["requested_time"] = np.ceil(jobs["run_time"] * rng.uniform(1, 5, count) + 60)
    jobs["allocated"] = 2 ** rng.integers(0, 7, count)
    return sk.Trace(jobs, header={"MaxProcs": "128"}, source="synthetic")


def crowded(menu: bool, count: int = 4000) -> sk.Trace:
    """All come in a short time: more than 2,000 wait.

    People ask for round times, so estimates are few (the menu); or each is its own.
    """
    trace = synthetic(count, 1)
    jobs = trace.jobs
    jobs["submit"] = (jobs["submit"] / 40).round()
    if menu:
        hours = np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24, 48]) * 3600
        place = np.searchsorted(hours, jobs["requested_time"]).clip(max=len(hours) - 1)
        jobs["requested_time"] = np.maximum(hours[place], jobs["run_time"])
    name = "2,000 waiting, round estimates" if menu else "2,000 waiting, own estimates"
    return sk.Trace(jobs, header=trace.header, source=name)


def best(call: Callable[[], Any], seconds: float = 1.0) -> tuple[float, Any]:
    """The least CPU time of a call, and what it returns."""
    least, total, answer = float("inf"), 0.0, None
    while total < seconds:
        begin = time.process_time()
        answer = call()
        took = time.process_time() - begin
        least, total = min(least, took), total + max(took, 1e-4)
    return least, answer


def kernel_time(done: sk.Replay, policy: str) -> float:
    """The kernel alone, on the columns of a replay; its starts are compared."""
    chosen = sk.POLICIES[policy]
    columns = {
        name: np.ascontiguousarray(done.jobs[name])
        for name in ("submit", "run", "estimate")
    }
    width = done.jobs["processors"].astype(np.int32)
    options = chosen.options(
        done.jobs["row"], len(done.trace), columns["estimate"], width, done.jobs["user"]
    )
    nothing = np.empty(0)
    processors = int(done.cluster.processors[0])

    def call() -> Any:
        return _replay.replay(
            *columns.values(),
            width,
            processors,
            nothing,
            nothing,
            nothing.astype(np.int32),
            chosen.backfill,
            **options,
        )

    took, found = best(call)
    assert (found[0] == done.jobs["start"]).all()
    return took


def measure(trace: sk.Trace) -> None:
    """A line for each policy."""
    name = Path(trace.source).name
    for policy in POLICIES:
        took, done = best(lambda policy=policy: sk.replay(trace, policy=policy))
        counted = sk.replay(trace, policy=policy, nodes=False)
        assert (counted.jobs["start"] == done.jobs["start"]).all()
        kernel = kernel_time(done, policy)
        wait = done.jobs["wait"].mean()
        print(
            f"{name:32} {policy:14} {len(done) / took:12,.0f} jobs/s, kernel "
            f"{len(done) / kernel:12,.0f}; mean wait {wait:12,.1f}, "
            f"at most {done.most_waiting:,} waiting"
        )


def accasim(trace: sk.Trace, count: int = 2000) -> None:
    """The same jobs under AccaSim's EASY."""
    for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable"):
        if not hasattr(collections, name):  # it was written for older Pythons
            setattr(collections, name, getattr(collections.abc, name))
    try:
        from accasim.base.allocator_class import FirstFit
        from accasim.base.scheduler_class import EASYBackfilling
        from accasim.base.simulator_class import Simulator
    except ImportError as error:
        print(f"AccaSim is not measured: {error}")
        return
    jobs = trace.jobs[:count]
    with tempfile.TemporaryDirectory() as folder:
        file, config = Path(folder) / "jobs.swf", Path(folder) / "config.json"
        sk.write_trace(file, jobs)
        machine = {"groups": {"g": {"core": 1}}, "resources": {"g": trace.processors}}
        config.write_text(json.dumps(machine))
        scheduler = EASYBackfilling(FirstFit())
        simulator = Simulator(
            str(file), str(config), scheduler, RESULTS_FOLDER_NAME="results"
        )
        begin = time.process_time()
        simulator.start_simulation()
        took = time.process_time() - begin
    ours, _ = best(lambda: sk.replay(jobs, trace.processors, "easy"))
    print(
        f"EASY, {count:,} jobs: AccaSim {count / took:,.0f} jobs/s, slotkern "
        f"{count / ours:,.0f}, {took / ours:,.0f} times as many"
    )


def growth() -> None:
    """EASY and conservative backfilling over longer flows."""
    for count in (10_000, 30_000, 100_000, 300_000):
        trace = synthetic(count)
        took = [
            best(lambda p=p, trace=trace: sk.replay(trace, policy=p))[0]
            for p in ("easy", "conservative")
        ]
        easy, conservative = (count / each for each in took)
        print(
            f"{count:9,} jobs: easy {easy:12,.0f}, conservative {conservative:12,.0f}"
        )


def main() -> None:
    """Measure everything."""
    traces = [sk.read_trace(path) for path in sys.argv[1:]]
    for path in sys.argv[1:]:
        took, trace = best(lambda path=path: sk.read_trace(path))
        print(f"{Path(path).name:32} read in {took:.3f} s, {len(trace):,} jobs")
    for trace in [*traces, synthetic(100_000), crowded(True), crowded(False)]:
        measure(trace)
    growth()
    accasim(traces[0] if traces else synthetic(2000))


if __name__ == "__main__":
    main()

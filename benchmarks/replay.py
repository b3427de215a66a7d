"""Measures the jobs per second of replays.

    python benchmarks/replay.py [TRACE.swf.gz ...]
    python benchmarks/replay.py --growth

A synthetic flow and one with 2,000 waiting jobs are replayed as well. Times are the
least CPU time of several runs, of `sk.replay` with its checks and its table of results
and of the kernel alone. --growth replays only flows of growing length and on growing
machines. `benchmarks/simulators.py` compares with other simulators.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk
from slotkern._kernels import replay as _replay

POLICIES = ("fcfs", "easy", "easy-sjf", "conservative")


def synthetic(count: int, seed: int = 0, processors: int = 128) -> sk.Trace:
    """Return a flow that loads a machine about as much as real traces do.

    On a larger machine the jobs arrive faster; their number of processors is the same.
    """
    rng = np.random.default_rng(seed)
    jobs = np.full(count, -1, sk.SWF)
    jobs["job"] = np.arange(1, count + 1)
    between = 650 * 128 / processors
    jobs["submit"] = rng.exponential(between, count).cumsum().round()
    jobs["run_time"] = rng.lognormal(7, 1.5, count).round()
    jobs["requested_time"] = np.ceil(jobs["run_time"] * rng.uniform(1, 5, count) + 60)
    jobs["allocated"] = 2 ** rng.integers(0, 7, count)
    return sk.Trace(jobs, header={"MaxProcs": str(processors)}, source="synthetic")


def crowded(menu: bool, count: int = 4000) -> sk.Trace:
    """Return a flow whose jobs arrive in a short time, so that more than 2,000 wait.

    With `menu` the estimates are a few round times, as users request them; without,
    every job has its own.
    """
    trace = synthetic(count, 1)
    jobs = trace.jobs
    jobs["submit"] = (jobs["submit"] / 40).round()
    if menu:
        hours = np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24, 48]) * 3600
        index = np.searchsorted(hours, jobs["requested_time"]).clip(max=len(hours) - 1)
        jobs["requested_time"] = np.maximum(hours[index], jobs["run_time"])
    name = "2,000 waiting, round estimates" if menu else "2,000 waiting, own estimates"
    return sk.Trace(jobs, header=trace.header, source=name)


def best(call: Callable[[], Any], seconds: float = 1.0) -> tuple[float, Any]:
    """Return the least CPU time of repeated calls, and the result."""
    least, total, answer = float("inf"), 0.0, None
    while total < seconds:
        begin = time.process_time()
        answer = call()
        took = time.process_time() - begin
        least, total = min(least, took), total + max(took, 1e-4)
    return least, answer


def kernel_time(done: sk.Replay, policy: str) -> float:
    """Return the CPU time of the kernel alone; its starts must equal the replay's."""
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
    """Print a line for each policy."""
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


def growth() -> None:
    """Measure flows of growing length, and growing machines of about equal load."""
    for count in (10_000, 100_000, 1_000_000):
        grown(f"{count:,} jobs, 128 processors", synthetic(count))
    for processors in (100, 1_000, 10_000, 100_000):
        trace = synthetic(100_000, processors=processors)
        grown(f"100,000 jobs, {processors:,} processors", trace)


def grown(name: str, trace: sk.Trace) -> None:
    """Print a line for a flow."""
    line = f"{name:34}"
    for policy in ("easy", "conservative"):
        took, done = best(lambda policy=policy: sk.replay(trace, policy=policy))
        line += f" {policy} {len(done) / took:11,.0f}"
        line += f" (at most {done.most_waiting:,} waiting)"
    print(line, flush=True)


def main() -> None:
    """Run all measurements."""
    if sys.argv[1:] == ["--growth"]:
        return growth()
    traces = [sk.read_trace(path) for path in sys.argv[1:]]
    for path in sys.argv[1:]:
        took, trace = best(lambda path=path: sk.read_trace(path))
        print(f"{Path(path).name:32} read in {took:.3f} s, {len(trace):,} jobs")
    for trace in [*traces, synthetic(100_000), crowded(True), crowded(False)]:
        measure(trace)


if __name__ == "__main__":
    main()

"""Simulated jobs per second of communities, by scenario, number of nodes and of jobs.

    python benchmarks/community.py [--quick]

Each figure is the least CPU time of several runs of `sk.simulate_community`, including
its checks and its table of results; the figure in brackets is the kernel alone. Every
run is checked: completed and failed jobs add up to all jobs, and no promise is left.
The workloads have the load of the preset "casa" and are generated before measuring.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import slotkern as sk
from slotkern._kernels import community as _community

SCENARIOS = ("ind", "cen", "dec-g", "dec-p")


def seconds(call: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Return the least CPU time of several runs, and the result."""
    best, result = float("inf"), None
    for _ in range(runs):
        begin = time.process_time()
        result = call()
        best = min(best, time.process_time() - begin)
    return best, result


class TimedKernel:
    """Wraps the kernel and stores its least CPU time."""

    def __init__(self) -> None:
        self.whole, self.best = _community.simulate, float("inf")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        begin = time.process_time()
        found = self.whole(*arguments, **options)
        self.best = min(self.best, time.process_time() - begin)
        return found


def measure(jobs: Any, nodes: Any, scenario: Any, runs: int) -> str:
    """Return a line with the rates and the results of a simulation."""
    kernel = TimedKernel()
    _community.simulate = kernel
    try:
        whole, run = seconds(
            lambda: sk.simulate_community(jobs, nodes, scenario, seed=1), runs
        )
    finally:
        _community.simulate = kernel.whole
    assert len(run.completed) + sum(run.failures().values()) == len(jobs)
    assert run.counts["promises"] == 0
    found = run.metrics()
    rate, inner = len(jobs) / whole, len(jobs) / kernel.best
    return (
        f"{rate:>12,.0f} ({inner:>12,.0f}) jobs/s, {whole:8.3f} s, "
        f"{found['messages']:7.1f} messages a job, "
        f"completion {100 * found['completion']:.2f} %"
    )


def memory() -> str:
    """Return a line with the peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"the most memory so far: {peak:.2f} GiB"


def main() -> None:
    """Measure all workloads, or with --quick the smaller ones."""
    quick = "--quick" in sys.argv
    print("26 nodes, by number of jobs; seed 1 of each")
    for count in (10_201, 100_000) if quick else (10_201, 100_000, 1_020_195):
        jobs, nodes = sk.generate_community(jobs=count, seed=1)
        for name in SCENARIOS:
            runs = 20 if count < 20_000 else 1
            print(f"{count:>9,} {name:>6}: {measure(jobs, nodes, name, runs)}")
    print(memory())
    print("26 nodes, 10,201 jobs, the mean of 20 seeds")
    for name in SCENARIOS:
        spent = 0.0
        for seed in range(20):
            jobs, nodes = sk.generate_community(seed=seed)
            kernel = TimedKernel()
            _community.simulate = kernel
            for _ in range(5):
                sk.simulate_community(jobs, nodes, name, seed=seed)
            _community.simulate = kernel.whole
            spent += kernel.best
        print(f"{name:>6}: the kernel alone {20 * 10_201 / spent:>12,.0f} jobs/s")
    print("six neighbours, by number of nodes, 100 jobs a node")
    for size in (26, 100, 1000) if quick else (26, 100, 1000, 10_000):
        jobs, nodes = sk.generate_community(jobs=100 * size, nodes=size, seed=1)
        print(f"{size:>9,} dec-p: {measure(jobs, nodes, 'dec-p', 1)}")
    print(memory())
    print("all other nodes asked, by number of nodes, 10 jobs a node")
    for size in (26, 100, 1000):
        jobs, nodes = sk.generate_community(jobs=10 * size, nodes=size, seed=1)
        print(f"{size:>9,} dec-g: {measure(jobs, nodes, 'dec-g', 1)}")
    print("messages per job by number of neighbours, 26 nodes")
    jobs, nodes = sk.generate_community(seed=1)
    for neighbours in (1, 2, 4, 8, 16, 25):
        run = sk.simulate_community(jobs, nodes, sk.Community(neighbours), seed=1)
        found = run.metrics()
        print(
            f"{neighbours:>9}: {found['messages']:6.1f} messages, completion "
            f"{100 * found['completion']:.2f} %, waiting {found['waiting']:,.0f} s"
        )
    assert np.isfinite(found["waiting"])


if __name__ == "__main__":
    main()

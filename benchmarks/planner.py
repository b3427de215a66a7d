"""Times streams of bookings against Flux's planner, which only counts free nodes.

    python benchmarks/planner.py FOLDER [--keep]

FOLDER is a checkout of flux-sched. Its planner is compiled by $CXX (default g++)
together with a C++ loop that queries and books, so that no call from Python is
measured. Each node is busy in four intervals, a third of the time, and jobs arrive
until the nodes are full. Equal nodes cost nothing. Real nodes have performances and
prices, and some jobs have too small a budget; the planner gets only the number of free
nodes and each job's mean length. Both sides process each stream alternately, from the
same initial state. Printed are medians of CPU times of one thread.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from results import Measured, store

import slotkern as sk

HORIZON, PERIODS, ROUNDS = 10_000, 4, 11
SIZES = [
    (nodes, wanted)
    for nodes in (100, 1_000, 4_000, 10_000)
    for wanted in (5, 50, 200)
    if 2 * wanted <= nodes
]
MOST_JOBS = 8_000
AGAINST = "Flux's planner, which counts nodes and names none"

LOOP = """
#include <cstdint>
extern "C" {
#include "resource/planner/c/planner.h"
void place (planner_t *context, int64_t count, uint64_t wanted, const int64_t *length,
            int64_t *start)
{
    for (int64_t i = 0; i < count; ++i) {
        start[i] = planner_avail_time_first (context, 0, length[i], wanted);
        if (start[i] >= 0)
            planner_add_span (context, start[i], length[i], wanted);
    }
}
}
"""


def compiled(folder: Path) -> Any:
    """Compile Flux's planner and load it as a library."""
    source = folder / "resource" / "planner"
    target = Path(tempfile.mkdtemp())
    (target / "config.h").touch()
    (target / "loop.cpp").write_text(LOOP, encoding="utf-8")
    inner = ("planner", "planner_internal_tree", "mintime_resource_tree")
    files = [
        source / "c++" / f"{name}.cpp" for name in (*inner, "scheduled_point_tree")
    ]
    files += [source / "c" / "planner_c_interface.cpp", target / "loop.cpp"]
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O3", "-fPIC", "-shared"]
    command += [f"-I{target}", f"-I{folder}", f"-I{source / 'c++'}"]
    command += [f"-I{source / 'c'}", *map(str, files), "-o", str(target / "planner.so")]
    subprocess.run(command, check=True)
    flux = ctypes.CDLL(str(target / "planner.so"))
    flux.planner_new.restype = ctypes.c_void_p
    flux.planner_new.argtypes = [ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64]
    flux.planner_new.argtypes += [ctypes.c_char_p]
    flux.planner_add_span.restype = ctypes.c_int64
    flux.planner_add_span.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    flux.planner_add_span.argtypes += [ctypes.c_uint64, ctypes.c_uint64]
    array = np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")
    flux.place.restype = None
    flux.place.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64]
    flux.place.argtypes += [array, array]
    return flux


@dataclass
class Stream:
    """Jobs of `wanted` nodes each, on nodes that are all equal or all different."""

    slots: NDArray[np.void]
    nodes: int
    wanted: int
    lengths: NDArray[np.int64]  # on a node of mean performance
    jobs: list[sk.Request]

    def by_planner(self, flux: Any) -> tuple[float, NDArray[np.int64]]:
        """Return the CPU seconds per job, and each job's start (-1: none)."""
        context = flux.planner_new(0, HORIZON, self.nodes, b"node")
        begin, length, busy = self.busy()
        for span in zip(begin, length, busy, strict=True):
            assert flux.planner_add_span(context, *map(int, span)) >= 0
        starts = np.empty(len(self.lengths), np.int64)
        before = thread_time()
        flux.place(context, len(starts), self.wanted, self.lengths, starts)
        spent = thread_time() - before
        flux.planner_destroy(ctypes.byref(ctypes.c_void_p(context)))
        return spent / len(starts), starts

    def by_slotkern(self) -> tuple[float, sk.Bookings]:
        """Return the CPU seconds per job, and the bookings."""
        pool = sk.SlotPool(self.slots)
        pool.schedule([])  # builds the indexes before measuring
        before = thread_time()
        done = pool.schedule(self.jobs, "start", shape="ragged")
        return (thread_time() - before) / len(self.jobs), done

    def busy(self) -> tuple[Any, Any, Any]:
        """Return begin, length and number of busy nodes of each constant interval."""
        times = np.concatenate([self.slots["start"], self.slots["end"]])
        change = np.repeat([-1, 1], len(self.slots))
        at, place = np.unique(times, return_inverse=True)
        count = self.nodes + np.bincount(place, change).cumsum()[:-1]
        taken = count > 0
        return at[:-1][taken], np.diff(at)[taken], count[taken]


def stream(nodes: int, wanted: int, real: bool) -> Stream:
    """Return jobs that about fill the nodes, but no more than MOST_JOBS."""
    rng = np.random.default_rng([nodes, wanted, real])
    lengths = (HORIZON * rng.uniform(0.0375, 0.1125, (nodes, PERIODS))).astype(int)
    idle = HORIZON - lengths.sum(axis=1, keepdims=True)
    gaps = np.sort((rng.random((nodes, PERIODS)) * idle).astype(int), axis=1)
    begin = gaps + np.cumsum(lengths, axis=1) - lengths
    start = np.hstack([np.zeros((nodes, 1), int), begin + lengths])
    end = np.hstack([begin, np.full((nodes, 1), HORIZON)])
    performance = rng.integers(2, 11, nodes) if real else np.ones(nodes, int)
    market = performance * (1.5 + 0.1 * performance)
    price = market * rng.normal(1, 0.12, nodes).clip(0.5, 1.6) if real else market * 0
    some = end > start
    node, mean = np.nonzero(some)[0], performance.mean()
    slots = sk.make_slots(
        node=node,
        start=start[some],
        end=end[some],
        performance=performance[node],
        price=price[node],
    )
    work = ((end - start).sum(axis=1) * performance).sum()
    size = int(0.85 * work / (wanted * 200 * mean))
    length = rng.integers(100, 301, min(size, MOST_JOBS))
    volume = length * mean
    budget = wanted * volume * rng.uniform(1.9, 2.6, len(length))
    if not real:
        budget[:] = np.inf
    jobs = [
        sk.Request(wanted, v, budget=b)
        for v, b in zip(volume.tolist(), budget.tolist(), strict=True)
    ]
    return Stream(slots, nodes, wanted, length, jobs)


def raced(folder: Path) -> Iterator[Measured]:
    """Measure every stream by both sides, alternately."""
    flux = compiled(folder)
    for nodes, wanted in SIZES:
        for real in (False, True):
            jobs = stream(nodes, wanted, real)
            times = []
            for _ in range(ROUNDS):
                rival, starts = jobs.by_planner(flux)
                own, done = jobs.by_slotkern()
                times.append((rival, own))
            if not real:  # the free time is the same at the first job
                assert starts[0] == done.start[0]
            got = f"{done.booked.sum():,} and {(starts >= 0).sum():,}"
            yield Measured(
                f"a job of {wanted} of {nodes:,} {'real' if real else 'equal'} nodes, "
                f"booked at the earliest start ({got} of {len(starts):,} booked)",
                median(rival for rival, _ in times),
                median(own for _, own in times),
                AGAINST,
            )


def main() -> None:
    """Measure all streams and print the times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a checkout of flux-sched")
    parser.add_argument(
        "--keep", action="store_true", help="store the rows in measured.json"
    )
    options = parser.parse_args()
    rows = []
    for row in raced(options.folder):
        print(
            f"{row.what}: {row.rival * 1e6:,.2f} us, slotkern {row.own * 1e6:,.2f} us, "
            f"{row.rival / row.own:,.2f} times",
            flush=True,
        )
        rows.append(row)
    if options.keep:
        store("planner", rows)


if __name__ == "__main__":
    main()

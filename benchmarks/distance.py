"""The policy `Optimal` against HiGHS on the time-indexed model of the same batch.

``python benchmarks/distance.py`` draws batches of ragged windows whose lengths are
whole numbers. The model has a 0/1 variable for each job, node and start, one for each
job and start, and a row for each node and unit of time. Both sides stop at a gap of 1%,
HiGHS also after `--seconds` of wall time. Times are CPU times of single threads, the
two sides in turns. Asserted: no bound exceeds the other side's schedule. Printed, and
stored with `--keep`: medians of times and of the ratio of the bounds (slotkern's by
that of HiGHS), and the numbers of batches that HiGHS and slotkern prove.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
from typing import NamedTuple

import highspy
import numpy as np
from results import Measured, store

import slotkern as sk

TARGETS = {"processor_time": "processor time", "cost": "cost"}
SIZES = ((4, 6, 30), (6, 8, 40), (8, 10, 50))  # jobs, nodes, units of time
GAP = 0.01
ROUNDING = 1e-6


class Answer(NamedTuple):
    """Seconds of CPU time, and value (inf: none) and bound of a side."""

    seconds: float
    value: float
    bound: float


def draw(seed, jobs, nodes, horizon):
    """Return slots and requests; all times are whole numbers."""
    rng = np.random.default_rng([seed, jobs])
    performance = rng.integers(1, 3, nodes)
    slots = sk.make_slots(
        node=range(nodes),
        start=rng.integers(0, horizon // 4, nodes),
        end=rng.integers(3 * horizon // 4, horizon + 1, nodes),
        performance=performance,
        price=performance * rng.uniform(0.6, 1.4, nodes),
    )
    batch = [
        sk.Request(int(n), int(volume))
        for n, volume in zip(
            rng.integers(1, 4, jobs), 2 * rng.integers(4, 10, jobs), strict=True
        )
    ]
    return slots, batch


def time_indexed(slots, batch, target, seconds):
    """Solve the time-indexed model by HiGHS; all jobs must have a window."""
    begin = time.process_time()
    problem, one = highspy.Highs(), 1.0
    problem.setOptionValue("output_flag", False)
    problem.setOptionValue("threads", 1)
    problem.setOptionValue("mip_rel_gap", GAP)
    problem.setOptionValue("time_limit", seconds)
    busy, costs = {}, []  # columns by node and unit of time; objective
    rows = []  # (least, most, columns, coefficients)
    for job in batch:
        parts = {}  # columns of parts by start
        for k, slot in enumerate(slots):
            length = int(job.volume / slot["performance"])
            cost = length * (slot["price"] if target == "cost" else one)
            for start in range(int(slot["start"]), int(slot["end"]) - length + 1):
                parts.setdefault(start, []).append(len(costs))
                for unit in range(start, start + length):
                    busy.setdefault((k, unit), []).append(len(costs))
                costs.append(float(cost))
        starts = []
        for some in parts.values():
            starts.append(len(costs))
            weights = [one] * len(some) + [-float(job.nodes)]
            rows.append((0.0, 0.0, [*some, len(costs)], weights))
            costs.append(0.0)
        rows.append((one, one, starts, [one] * len(starts)))
    for some in busy.values():
        rows.append((0.0, one, some, [one] * len(some)))
    size = len(costs)
    problem.addVars(size, np.zeros(size), np.ones(size))
    every = np.arange(size, dtype=np.int32)
    problem.changeColsCost(size, every, np.array(costs))
    kinds = np.full(size, highspy.HighsVarType.kInteger)
    problem.changeColsIntegrality(size, every, kinds)
    for least, most, columns, weights in rows:
        index = np.array(columns, np.int32)
        problem.addRow(least, most, len(index), index, np.array(weights))
    problem.run()
    info = problem.getInfo()
    return Answer(
        time.process_time() - begin,
        info.objective_function_value,
        info.mip_dual_bound,
    )


def optimal(slots, batch, target):
    """Schedule by `Optimal`; value and bound hold for the scheduled jobs."""
    begin = time.process_time()
    made = sk.schedule_batch(slots, batch, sk.Optimal(GAP), minimize=target)
    seconds = time.process_time() - begin
    value = made.value if made.scheduled.all() else math.inf
    return Answer(seconds, value, made.bound)


def main() -> None:
    """Print one line for each target and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    optimal(*draw(0, *SIZES[0]), "cost")  # imports
    measured = []
    for target, name in TARGETS.items():
        for jobs, nodes, horizon in SIZES:
            pairs = []
            for seed in itertools.count():
                if len(pairs) == options.batches:
                    break
                slots, batch = draw(seed, jobs, nodes, horizon)
                own = optimal(slots, batch, target)
                if own.value == math.inf:  # the model needs all jobs
                    continue
                rival = time_indexed(slots, batch, target, options.seconds)
                assert own.bound <= rival.value * (1 + ROUNDING)
                assert rival.bound <= own.value * (1 + ROUNDING)
                pairs.append((own, rival))
            ratio = statistics.median(a.bound / b.bound for a, b in pairs)
            proven = [
                sum(each.value <= (1 + GAP + ROUNDING) * each.bound for each in side)
                for side in zip(*pairs, strict=True)
            ]
            what = (
                f"least {name} of {jobs} jobs on {nodes} nodes, {horizon} units of "
                f"time ({proven[1]} and {proven[0]} of {len(pairs)} within {GAP:.0%}, "
                f"ratio of bounds {ratio:.4f})"
            )
            row = Measured(
                what,
                statistics.median(b.seconds for _, b in pairs),
                statistics.median(a.seconds for a, _ in pairs),
                f"HiGHS {highspy.Highs().version()}, time-indexed",
            )
            measured.append(row)
            print(
                f"{row.what}: HiGHS {row.rival:.3f} s, Optimal {row.own:.3f} s, "
                f"ratio {row.rival / row.own:.2g}",
                flush=True,
            )
    if options.keep:
        store("distance", measured)


if __name__ == "__main__":
    main()

"""The distance of the papers' policies from the best schedule, by load.

``python benchmarks/distance.py`` draws cycles of Table 3 of Toporkov et al. (2014): 20
jobs on 24 nodes. Each policy minimizes processor time; its distance is its processor
time above the bound of `Optimal`, as a share of the bound. Only cycles in which all
policies schedule all jobs count. Printed: medians, and the gap, the seconds and the
share of proven schedules of `Optimal` itself.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import slotkern as sk
from slotkern.studies import load_study
from slotkern.studies.batches import draw_cycle

POLICIES = {
    "CSS": sk.CSS,
    "batch-slicer, k = 3": sk.BatchSlicer(3),
    "BSF, 10 jobs sliced": sk.BSF(10, k=3),
    "backfilling": sk.Backfilling(),
}


def main() -> None:
    """Print one line for each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.15, 0.3])
    parser.add_argument("--target", default="processor_time")
    parser.add_argument("--max-work", type=int, default=1_200)
    options = parser.parse_args()
    (setting,) = load_study("vo").sweep_of({"sweep": "table3"})
    best = sk.Optimal(0.01, options.max_work)
    for load in options.loads:
        law = replace(setting, environment={**setting.environment, "load": (0.0, load)})
        rows, gaps = [], []
        for cycle in range(options.cycles):
            drawn = draw_cycle(law, cycle)
            begin = time.perf_counter()
            optimum = sk.schedule_batch(
                drawn.slots, drawn.batch, best, minimize=options.target
            )
            seconds = time.perf_counter() - begin
            proven = bool(optimum.slices["proven"][0])
            gaps.append((optimum.value / optimum.bound - 1, seconds, proven))
            others = [
                sk.schedule_batch(
                    drawn.slots, drawn.batch, policy, minimize=options.target
                )
                for policy in POLICIES.values()
            ]
            if all(each.scheduled.all() for each in (optimum, *others)):
                rows.append([each.value / optimum.bound - 1 for each in others])
        print(f"load up to {load:g}: {len(rows)} of {options.cycles} cycles")
        if rows:
            for name, share in zip(POLICIES, np.median(rows, axis=0), strict=True):
                print(f"  {name:22}{share:7.1%}")
        gap, seconds = np.median(np.array(gaps)[:, :2], axis=0)
        share = np.mean([proven for *_, proven in gaps])
        print(f"  Optimal: gap {gap:.2%}, {seconds:.1f} s, proven in {share:.0%}")


if __name__ == "__main__":
    main()

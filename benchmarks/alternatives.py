"""Times the search for all alternatives in one sweep against the papers' CSA.

python benchmarks/alternatives.py [--keep]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from results import Measured, store

import slotkern as sk
from slotkern.published import SCHEMES

JOB = {"nodes": 5, "volume": 310.0, "budget": 1500.0}


def alternatives(rounds: int) -> list[Measured]:
    """Measure CSA and the sweep in random environments, and compare all windows."""
    csa = SCHEMES["ragged"].search
    kept = []
    sizes = [(100, 3600, rounds), (400, 600, rounds), (400, 3600, 1)]
    for nodes, interval, some in sizes:
        slows, quicks, counts = [], [], []
        for seed in range(some):
            environment = sk.generate_environment(
                "aep", nodes=nodes, interval=interval, seed=seed
            )
            slots, pool = environment.slots, sk.SlotPool(environment.slots)
            csa(slots, limit=1, **JOB)  # compiles
            begin = time.process_time()
            published = csa(slots, **JOB)
            slow = time.process_time() - begin
            request, quick = sk.Request(**JOB), []
            for _ in range(50):
                begin = time.process_time()
                for _ in range(10):
                    found = sk.find_alternatives(pool, request, shape="ragged")
                quick.append((time.process_time() - begin) / 10)
            rows = [window.slots["row"].tolist() for window in found]
            assert found.start.tolist() == [start for start, _, _ in published]
            assert rows == [
                r[np.argsort(slots["node"][r])].tolist() for _, r, _ in published
            ]
            slows.append(slow)
            quicks.append(np.median(quick))
            counts.append(len(published))
        print(
            f"all alternatives, {nodes} nodes, interval {interval}: {counts} windows,"
            f" CSA {np.median(slows) * 1e3:,.0f} ms, one sweep"
            f" {np.median(quicks) * 1e6:,.0f} us:"
            f" {np.median(np.divide(slows, quicks)):,.0f} times"
        )
        kept.append(
            Measured(
                f"all alternatives, ragged, n = 5: {nodes} nodes, {len(slots):,} slots",
                float(np.median(slows)),
                float(np.median(quicks)),
                "CSA, compiled",
            )
        )
    return kept


if __name__ == "__main__":
    measured = alternatives(5)
    if "--keep" in sys.argv:
        store("alternatives", measured)

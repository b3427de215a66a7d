"""Millions of operations on one pool: memory must not grow, everything must come back.

python benchmarks/soak.py [operations]
"""

from __future__ import annotations

import resource
import sys

import numpy as np

import slotkern as sk


def main(operations: int) -> None:
    """Book and release at random, then release all."""
    slots = sk.generate_environment("aep", nodes=200, interval=5000).slots
    pool = sk.SlotPool(slots)
    rng = np.random.default_rng(0)
    held: list[sk.Window] = []
    done = 0
    peak = 0
    while done < operations:
        asked = [
            sk.Request(int(n), float(v), budget=float(n * v * b))
            for n, v, b in zip(
                rng.integers(1, 12, 1000),
                rng.uniform(20, 300, 1000),
                rng.uniform(0.9, 2, 1000),
                strict=True,
            )
        ]
        shape = str(rng.choice(["square", "ragged"]))
        held += [w for w in pool.schedule(asked, shape=shape) if w is not None]
        rng.shuffle(held)
        free = int(rng.integers(len(held) // 2, len(held) + 1))
        for window in held[:free]:
            pool.release(window)
        held = held[free:]
        done += len(asked) + free
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if done < operations // 4:
            peak = memory
        elif memory > peak * 1.05:
            raise SystemExit(f"memory grew from {peak} to {memory} kB after {done}")
    for window in held:
        pool.release(window)
    if pool.slots.tolist() != slots.tolist():
        raise SystemExit("the pool is not what it was")
    print(f"{done:,} operations, at most {memory:,} kB, the pool is what it was")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)

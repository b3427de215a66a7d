"""Millions of operations on one pool: memory must not grow, everything must come back.

python benchmarks/soak.py [operations]
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

import slotkern as sk


def memory() -> int:
    """The most memory that was resident so far, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(operations: int) -> None:
    """Book and release at random, then release all."""
    slots = sk.generate_environment("aep", nodes=200, interval=5000).slots
    pool = sk.SlotPool(slots)
    rng = np.random.default_rng(0)
    held: list[sk.Window] = []
    done, begin, first = 0, time.process_time(), 0
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
        sk.find_alternatives(pool, asked[0], shape="ragged", limit=20)
        done += len(asked) + free
        if not first and done > operations // 20:
            first = memory()  # all buffers have met their sizes
            print(f"after {done:,} operations {first:,} kB", flush=True)
    last, spent = memory(), time.process_time() - begin
    for window in held:
        pool.release(window)
    if pool.slots.tolist() != slots.tolist():
        raise SystemExit("the pool is not what it was")
    print(f"after {done:,} operations {last:,} kB, {spent / done * 1e6:.1f} us each;")
    print("everything released, the pool is what it was bit for bit")
    if last > first * 1.05:
        raise SystemExit(f"memory grew from {first:,} to {last:,} kB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)

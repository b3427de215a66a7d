"""Runs millions of operations on one pool and checks memory and the final state.

python benchmarks/soak.py [operations]

Memory must not grow after the first 5% of the operations, and the pool must equal its
initial state after everything is released.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

import slotkern as sk


def memory() -> int:
    """Return the peak resident memory so far, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(operations: int) -> None:
    """Book and release windows at random, then release all."""
    slots = sk.generate_environment("aep", nodes=200, interval=5000).slots
    pool = sk.SlotPool(slots)
    rng = np.random.default_rng(0)
    booked: list[sk.Window] = []
    done, begin, first = 0, time.process_time(), 0
    while done < operations:
        requests = [
            sk.Request(int(n), float(v), budget=float(n * v * b))
            for n, v, b in zip(
                rng.integers(1, 12, 1000),
                rng.uniform(20, 300, 1000),
                rng.uniform(0.9, 2, 1000),
                strict=True,
            )
        ]
        shape = str(rng.choice(["square", "ragged"]))
        booked += [w for w in pool.schedule(requests, shape=shape) if w is not None]
        rng.shuffle(booked)
        free = int(rng.integers(len(booked) // 2, len(booked) + 1))
        for window in booked[:free]:
            pool.release(window)
        booked = booked[free:]
        sk.find_alternatives(pool, requests[0], shape="ragged", limit=20)
        done += len(requests) + free
        if not first and done > operations // 20:
            first = memory()  # all buffers have their final sizes
            print(f"after {done:,} operations {first:,} kB", flush=True)
    last, spent = memory(), time.process_time() - begin
    for window in booked:
        pool.release(window)
    if pool.slots.tolist() != slots.tolist():
        raise SystemExit("the pool differs from its initial state")
    print(f"after {done:,} operations {last:,} kB, {spent / done * 1e6:.1f} us each;")
    print("after everything was released, the pool equals its initial state")
    if last > first * 1.05:
        raise SystemExit(f"memory grew from {first:,} to {last:,} kB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)

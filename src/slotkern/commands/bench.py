"""Streams of jobs for benchmarks: a repeated one is faster than different ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import slotkern as sk

__all__ = ["stream"]


def stream(
    count: int,
    seed: int | Sequence[int],
    *,
    nodes: int = 5,
    volume: float = 310.0,
    budget: float = 1500.0,
) -> list[sk.Request]:
    """Return requests around a base job: volumes and budgets within a fifth of it.

    Parameters
    ----------
    count : int
        How many.
    seed : int or sequence of int
        The same seed, the same jobs.
    nodes, volume, budget
        The base job; by default that of the study ``aep``.

    Examples
    --------
    >>> import slotkern.commands.bench
    >>> [job.nodes for job in slotkern.commands.bench.stream(3, seed=1)]
    [5, 5, 5]
    """
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.8, 1.2, (count, 2))
    return [
        sk.Request(nodes, volume * size, budget=budget * size * wealth)
        for size, wealth in factors.tolist()
    ]

"""Streams of different jobs for benchmarks.

A benchmark must not repeat one job: a pool caches bounds, so that a repeated search is
faster than a new one. `stream` therefore varies volume and budget.
"""

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
    """Return requests whose volumes and budgets differ by up to 20% from a base job.

    Parameters
    ----------
    count : int
        Number of requests.
    seed : int or sequence of int
        Seed of the random factors; equal seeds give equal requests.
    nodes, volume, budget
        The base job; by default the job of the study ``aep``.

    Examples
    --------
    >>> from slotkern.commands.streams import stream
    >>> [job.nodes for job in stream(3, seed=1)]
    [5, 5, 5]
    """
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.8, 1.2, (count, 2))
    return [
        sk.Request(nodes, volume * size, budget=budget * size * wealth)
        for size, wealth in factors.tolist()
    ]

"""One cycle of a study: an environment, every algorithm on it, the metrics of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.environment import Environment, generate_environment
from slotkern.studies.metrics import Windows, metric_of
from slotkern.studies.study import Algorithm, Setting

__all__ = ["count_windows", "run_cycles", "windows_of_cycle"]


def run_cycles(
    setting: Setting,
    algorithms: Sequence[Algorithm],
    metrics: Sequence[str],
    seed: int,
    first: int,
    last: int,
) -> dict[str, NDArray[Any]]:
    """Return the results of the cycles first..last-1 of one setting.

    Returns
    -------
    dict
        ``slots`` (cycles,): the number of slots; ``alternatives`` (cycles,
        algorithms): how many windows were found; and for each metric (cycles,
        algorithms) its value, over several alternatives the best one, NaN where
        nothing was found.
    """
    chosen = [metric_of(name) for name in metrics]
    shape = (last - first, len(algorithms))
    results: dict[str, NDArray[Any]] = {
        "slots": np.zeros(last - first, np.int32),
        "alternatives": np.zeros(shape, np.int32),
    }
    results |= {metric.name: np.full(shape, np.nan) for metric in chosen}
    for row, cycle in enumerate(range(first, last)):
        environment, found = windows_of_cycle(setting, algorithms, seed, cycle)
        count = np.array([count_windows(some) for some in found])
        results["slots"][row] = environment.slots.size
        results["alternatives"][row] = count
        some = np.flatnonzero(count)
        if not some.size:
            continue
        windows = Windows(environment.slots, [found[index] for index in some])
        first_of = (count.cumsum() - count)[some]
        for metric in chosen:
            best = np.maximum if metric.more_is_better else np.minimum
            values = best.reduceat(metric.of(windows), first_of)
            results[metric.name][row, some] = values
    return results


def windows_of_cycle(
    setting: Setting, algorithms: Sequence[Algorithm], seed: int, cycle: int
) -> tuple[Environment, list[Any]]:
    """Return one cycle's environment and what each algorithm finds in it.

    That is a Window, Alternatives (with `alternatives`), or None.
    """
    environment = generate_environment(**setting.environment, seed=seed, cycle=cycle)
    request, shape = setting.request, setting.shape
    # Columns prepared once serve several searches; for one they cost more than that.
    slots: Any = environment.slots
    if len(algorithms) > 1:
        slots = sk.SlotPool(slots)
    return environment, [
        algorithm.search(slots, request, shape, cycle) for algorithm in algorithms
    ]


def count_windows(found: Any) -> int:
    """Return how many windows were found."""
    return 1 if isinstance(found, sk.Window) else len(found or ())

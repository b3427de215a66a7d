"""One cycle of a study: an environment, every algorithm on it, the metrics of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.environment import Environment, generate_environment
from slotkern.studies.study import Algorithm, Setting

__all__ = ["METRICS", "Metric", "column_metric", "run_cycles"]


class _Windows:
    """Windows of one request in one environment, by columns; one row for each."""

    def __init__(self, slots: NDArray[Any], windows: Sequence[Any]) -> None:
        self.slots = slots
        self.windows = windows

    def attribute(self, name: str) -> NDArray[np.float64]:
        return np.array([getattr(w, name) for w in self.windows], np.float64)

    @cached_property
    def parts(self) -> NDArray[Any]:
        """The parts of all windows, shape (windows, nodes)."""
        return np.concatenate([w.slots for w in self.windows]).reshape(
            len(self.windows), -1
        )

    @cached_property
    def gaps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The times from the previous and to the next task of each part."""
        rows = self.parts["row"]
        before = self.attribute("start")[:, None] - self.slots["start"][rows]
        return before, self.slots["end"][rows] - self.parts["end"]


@dataclass(frozen=True)
class Metric:
    """A number that describes a window, and whether more of it is better."""

    name: str
    label: str
    more_is_better: bool
    of: Callable[[_Windows], NDArray[np.float64]]


def _attribute(name: str, label: str) -> Metric:
    return Metric(name, label, False, lambda windows: windows.attribute(name))


_BUILT_IN = (
    _attribute("start", "start time"),
    _attribute("runtime", "runtime"),
    _attribute("finish", "finish time"),
    _attribute("processor_time", "processor time"),
    _attribute("cost", "cost"),
    # Mean over the parts of the distance to the nearer and to the farther of the two
    # neighbouring local tasks; the edges of the interval count as tasks.
    Metric(
        "nearest",
        "distance to the nearest task",
        True,
        lambda windows: np.minimum(*windows.gaps).mean(axis=1),
    ),
    Metric(
        "farthest",
        "distance to the farthest task",
        False,
        lambda windows: np.maximum(*windows.gaps).mean(axis=1),
    ),
)

#: The metrics by name. The name of an extra column of the environment is one too.
METRICS = {metric.name: metric for metric in _BUILT_IN}


def column_metric(name: str) -> Metric:
    """Return the sum over the window of an extra column of the slots."""

    def total(windows: _Windows) -> NDArray[np.float64]:
        values: NDArray[np.float64] = windows.slots[name][windows.parts["row"]].sum(
            axis=1
        )
        return values

    return Metric(name, f"sum of {name}", True, total)


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
    chosen = [METRICS.get(name) or column_metric(name) for name in metrics]
    job = dict(setting.job)
    shape = job.pop("shape", "square")
    request = sk.Request(job.pop("nodes"), job.pop("volume"), **job)
    shape_of = (last - first, len(algorithms))
    results: dict[str, NDArray[Any]] = {
        "slots": np.zeros(last - first, np.int32),
        "alternatives": np.zeros(shape_of, np.int32),
    }
    results |= {metric.name: np.full(shape_of, np.nan) for metric in chosen}
    for row, cycle in enumerate(range(first, last)):
        environment = generate_environment(
            **setting.environment, seed=seed, cycle=cycle
        )
        pool = sk.SlotPool(environment.slots)
        results["slots"][row] = environment.slots.size
        found = [
            _search(environment, pool, request, shape, algorithm, cycle)
            for algorithm in algorithms
        ]
        count = np.array([len(windows) for windows in found])
        results["alternatives"][row] = count
        some = np.flatnonzero(count)
        if not some.size:
            continue
        windows = _Windows(environment.slots, list(chain.from_iterable(found)))
        first_of = (count.cumsum() - count)[some]
        for metric in chosen:
            best = np.maximum if metric.more_is_better else np.minimum
            values = best.reduceat(metric.of(windows), first_of)
            results[metric.name][row, some] = values
    return results


def _search(
    environment: Environment,
    pool: sk.SlotPool,
    request: sk.Request,
    shape: str,
    algorithm: Algorithm,
    cycle: int,
) -> Sequence[Any]:
    """Return the windows that the algorithm finds."""
    try:
        if algorithm.alternatives:
            return sk.find_alternatives(
                pool,
                request,
                algorithm.criterion,
                shape=shape,
                method=algorithm.method,
                **algorithm.options,
            )
        window = sk.find_window(
            pool,
            request,
            algorithm.criterion,
            shape=shape,
            method=algorithm.method,
            seed=cycle,
            **algorithm.options,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"algorithms.{algorithm.name}: {error}") from error
    return [] if window is None else [window]

"""The metrics of windows in the experiment "cycle"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.studies.experiment import Metric

__all__ = ["COUNTS", "METRICS", "WindowMetric", "Windows", "metric_of"]


class Windows:
    """Windows of one request in one environment as columns, one row per window.

    Parameters
    ----------
    slots : structured array
        The free slots of the environment.
    found : sequence of Window or Alternatives
        The windows found, in order.
    """

    def __init__(self, slots: NDArray[Any], found: Sequence[Any]) -> None:
        self.slots = slots
        self.found = found

    def attribute(self, name: str) -> NDArray[np.float64]:
        return np.hstack([getattr(some, name) for some in self.found])

    @cached_property
    def parts(self) -> NDArray[Any]:
        """The parts of all windows, shape (windows, nodes)."""
        return np.vstack(
            [f.slots if isinstance(f, sk.Window) else f.parts for f in self.found]
        )

    @cached_property
    def gaps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The times from the previous and to the next task of each part."""
        rows = self.parts["row"]
        before = self.attribute("start")[:, None] - self.slots["start"][rows]
        return before, self.slots["end"][rows] - self.parts["end"]


@dataclass(frozen=True)
class WindowMetric(Metric):
    """A metric of windows, with the function that computes it."""

    of: Callable[[Windows], NDArray[np.float64]] = field(kw_only=True)
    #: True if several alternatives have the value of the first, not of the best.
    first: bool = field(default=False, kw_only=True)


_TIME = "time units"


def _attribute(name: str, label: str, unit: str = _TIME) -> WindowMetric:
    return WindowMetric(name, label, unit, of=lambda windows: windows.attribute(name))


_BUILT_IN = (
    _attribute("start", "start time"),
    _attribute("runtime", "runtime"),
    _attribute("finish", "finish time"),
    _attribute("processor_time", "processor time"),
    _attribute("cost", "cost", "money"),
    # The value by the search's own criterion, in its units and direction. The first of
    # several alternatives is the best by it.
    WindowMetric(
        "value",
        "value of the criterion",
        of=lambda windows: windows.attribute("value"),
        first=True,
    ),
    # Mean over the parts of the distance to the nearer and to the farther of the two
    # neighbouring local tasks; the edges of the interval count as tasks.
    WindowMetric(
        "nearest",
        "distance to the nearest task",
        _TIME,
        more_is_better=True,
        of=lambda windows: np.minimum(*windows.gaps).mean(axis=1),
    ),
    WindowMetric(
        "farthest",
        "distance to the farthest task",
        _TIME,
        of=lambda windows: np.maximum(*windows.gaps).mean(axis=1),
    ),
)

#: The metrics by name; the names of extra columns of the environment are metrics, too.
METRICS = {metric.name: metric for metric in _BUILT_IN}

#: The counts of every cycle, which are added to each study's metrics.
COUNTS = {
    "slots": Metric("slots", "number of slots", shared=True),
    "alternatives": Metric(
        "alternatives", "number of alternatives", more_is_better=True
    ),
}


def metric_of(name: str) -> WindowMetric:
    """Return a metric by name; other names are those of extra columns."""
    return METRICS.get(name) or _column(name)


def _column(name: str) -> WindowMetric:
    """Make the metric that sums an extra column of the slots over the window."""

    def total(windows: Windows) -> NDArray[np.float64]:
        values = windows.slots[name][windows.parts["row"]]
        totals: NDArray[np.float64] = values.sum(axis=1)
        return totals

    return WindowMetric(name, f"sum of {name}", more_is_better=True, of=total)

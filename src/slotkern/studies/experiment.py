"""Experiments: classes that turn a setting and a range of cycles into columns.

The other modules of studies (files, settings, campaigns, summaries, reports) use only
the interface `Experiment`. `EXPERIMENTS` names the experiments of slotkern; any other
object with `check` and `run` is named ``module:object``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.extras import EXTRAS
from slotkern.studies.study import Setting, Study

__all__ = [
    "EXPERIMENTS",
    "Columns",
    "Experiment",
    "Metric",
    "columns_of_cycles",
    "compute",
    "describe",
    "experiment_of",
    "named_object",
]

#: The experiments that come with slotkern.
EXPERIMENTS = {
    "cycle": "slotkern.studies.cycle:CYCLE",
    "batch": "slotkern.studies.batches:BATCH",
    "flow": "slotkern.studies.flows:FLOW",
    "community": "slotkern.studies.communities:COMMUNITY",
    "distance": "slotkern.studies.distance:DISTANCE",
}

#: Values by metric: one for each cycle and algorithm, or one for each cycle.
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Metric:
    """The description of a column; `shared` if all algorithms have the same values."""

    name: str
    label: str = ""
    unit: str = ""
    more_is_better: bool = False
    shared: bool = False


class Experiment:
    """The interface of experiments: a setting and a range of cycles give columns.

    A user's experiment needs only `check` and `run`, and may be any object that has
    them.
    """

    #: The additional kinds of plots that ``[[figure]]`` may name.
    pictures: ClassVar[tuple[str, ...]] = ()
    #: True if ``[[timing]]`` can time its searches.
    timed: ClassVar[bool] = False

    def check(self, setting: Setting) -> Setting:
        """Return the setting with default values filled in.

        Raises
        ------
        ValueError
            If no cycle of it can run; the message begins with the key in the file.
        """
        return setting

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return the results of the cycles first..last-1.

        Returns
        -------
        dict
            For each of ``setting.metrics`` an array of shape (cycles,) or (cycles,
            algorithms), NaN for missing values. The values depend only on the setting
            and the number of the cycle, not on the division into ranges.
        """
        raise NotImplementedError

    def metric(self, name: str) -> Metric:
        """Return the description of a metric."""
        return Metric(name, name.replace("_", " "))

    def draw(self, kind: str, study: Study, record: Mapping[str, Any]) -> Any:
        """Draw one of `pictures` with a record's options as a matplotlib figure."""
        raise NotImplementedError

    def dry_run(self, setting: Setting) -> None:
        """Raise ValueError for a published algorithm that does not exist.

        Called before a campaign with published algorithms. `check` must be fast and may
        omit this test.
        """


class _UserExperiment(Experiment):
    """An adapter for a user's object that has `check` and `run` only."""

    def __init__(self, user_object: Any) -> None:
        self._user_object = user_object

    def check(self, setting: Setting) -> Setting:
        found = self._user_object.check(setting)
        return setting if found is None else found

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        columns: Columns = self._user_object.run(setting, first, last)
        return columns


@cache
def experiment_of(name: str) -> Experiment:
    """Return an experiment by its name, or a user's own by ``module:object``.

    Raises
    ------
    ValueError
            If there is no such experiment.
    """
    if name not in EXPERIMENTS and ":" not in name:
        known = ", ".join(EXPERIMENTS)
        raise ValueError(
            f"experiment: {name!r} is not one of {known}, or module:object"
        )
    found = named_object("experiment", EXPERIMENTS.get(name, name))
    if isinstance(found, Experiment):
        return found
    for part in ("check", "run"):
        if not callable(getattr(found, part, None)):
            raise ValueError(f"experiment: {name!r} has no function {part!r}")
    return _UserExperiment(found)


def columns_of_cycles(
    setting: Setting,
    first: int,
    last: int,
    cycle: Callable[[int], Iterable[Mapping[str, float]]],
) -> Columns:
    """Collect the columns of cycles from one record per cycle and algorithm.

    Metrics that a record does not contain are NaN.
    """
    shape = (last - first, len(setting.algorithms))
    columns = {name: np.full(shape, np.nan) for name in setting.metrics}
    for row in range(last - first):
        for place, record in enumerate(cycle(first + row)):
            for name, column in columns.items():
                column[row, place] = record.get(name, np.nan)
    return columns


def describe(study: Study, metric: str) -> Metric:
    """Return the description of a metric by the study's experiment."""
    return experiment_of(study.experiment).metric(metric)


def named_object(where: str, name: str) -> Any:
    """Import the object named ``module:object``; ValueError begins with `where`."""
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise
        raise ValueError(f"{where}: {name!r}: {error}") from None
    except Exception as error:  # the user's module may raise anything when imported
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{where}: {name!r}: {words}") from error
    return found


def compute(setting: Setting, first: int, last: int) -> dict[str, NDArray[Any]]:
    """Run cycles of a setting and return its columns, each (cycles, algorithms).

    Raises
    ------
    ValueError
            If the experiment omits a column, or a column has another shape.
    """
    columns = experiment_of(setting.experiment).run(setting, first, last)
    shape = last - first, len(setting.algorithms)
    results = {}
    for name in setting.metrics:
        if name not in columns:
            raise ValueError(f"experiment {setting.experiment!r} returns no {name!r}")
        values = np.asarray(columns[name])
        if values.shape not in (shape, shape[:1]) or values.dtype.kind not in "iufb":
            raise ValueError(
                f"experiment {setting.experiment!r}: {name!r} is of {values.dtype}, "
                f"shape {values.shape}, where numbers, shape {shape[:1]} or {shape}, "
                "are needed"
            )
        if values.ndim == 1:
            values = np.repeat(values[:, None], shape[1], axis=1)
        results[name] = values
    return results

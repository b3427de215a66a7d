"""Experiments: what turns a setting and a range of cycles into columns.

The machine of studies (files, settings, campaigns, summaries, reports) knows no more of
an experiment than `Experiment` says. `EXPERIMENTS` names those that come with slotkern;
any other object that has `check` and `run` is named ``module:object``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slotkern.extras import EXTRAS
from slotkern.studies.study import Setting, Study

__all__ = [
    "EXPERIMENTS",
    "Columns",
    "Experiment",
    "Metric",
    "columns_of",
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
}

#: Values by metric: one for each cycle and algorithm, or one for each cycle.
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Metric:
    """What a column says; `shared` where all algorithms of a cycle have the same."""

    name: str
    label: str = ""
    unit: str = ""
    more_is_better: bool = False
    shared: bool = False


class Experiment:
    """What turns a setting and a range of cycles into columns.

    An experiment of one's own needs `check` and `run` alone, and may be any object that
    has them.
    """

    #: The kinds of pictures of its own that ``[[figure]]`` may ask for.
    pictures: ClassVar[tuple[str, ...]] = ()
    #: Whether ``[[timing]]`` can measure its searches.
    timed: ClassVar[bool] = False

    def check(self, setting: Setting) -> Setting:
        """Return the setting with what it leaves out filled in.

        Raises
        ------
        ValueError
            If no cycle of it can run: the message begins with the key in the file.
        """
        return setting

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return the results of the cycles first..last-1.

        Returns
        -------
        dict
            For each of ``setting.metrics`` an array of shape (cycles,) or (cycles,
            algorithms), NaN where there is no value. They depend on the setting and
            the numbers of the cycles alone, however these are divided into ranges.
        """
        raise NotImplementedError

    def metric(self, name: str) -> Metric:
        """Return what is known of a metric."""
        return Metric(name, name.replace("_", " "))

    def draw(self, kind: str, study: Study, record: Mapping[str, Any]) -> Any:
        """Return the matplotlib figure of one of `pictures`, as its record says."""
        raise NotImplementedError

    def rehearse(self, setting: Setting) -> None:
        """Raise ValueError for a published algorithm that does not exist.

        Called before a campaign of published algorithms; `check`, which must be
        quick, need not find that out.
        """


class _Own(Experiment):
    """An object of the user's that has `check` and `run`, and no more."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def check(self, setting: Setting) -> Setting:
        found = self._own.check(setting)
        return setting if found is None else found

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        columns: Columns = self._own.run(setting, first, last)
        return columns


@cache
def experiment_of(name: str) -> Experiment:
    """Return an experiment by its name, or a user's own by ``module:object``.

    Raises
    ------
    ValueError
        If there is none.
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
    return _Own(found)


def columns_of(
    setting: Setting,
    first: int,
    last: int,
    cycle: Callable[[int], Iterable[Mapping[str, float]]],
) -> Columns:
    """Return the columns of cycles, each of which gives a record an algorithm.

    What a record does not name is NaN.
    """
    shape = (last - first, len(setting.algorithms))
    columns = {name: np.full(shape, np.nan) for name in setting.metrics}
    for row in range(last - first):
        for place, record in enumerate(cycle(first + row)):
            for name, column in columns.items():
                column[row, place] = record.get(name, np.nan)
    return columns


def describe(study: Study, metric: str) -> Metric:
    """Return what the study's experiment knows of a metric."""
    return experiment_of(study.experiment).metric(metric)


def named_object(where: str, name: str) -> Any:
    """Return what ``module:object`` names; ValueError begins with `where`."""
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            raise
        raise ValueError(f"{where}: {name!r}: {error}") from None
    except Exception as error:  # whatever the user's module does when it is loaded
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{where}: {name!r}: {words}") from error
    return found


def compute(setting: Setting, first: int, last: int) -> dict[str, NDArray[Any]]:
    """Run cycles of a setting and return its columns, each (cycles, algorithms).

    Raises
    ------
    ValueError
        If the experiment leaves a column out, or one has another shape.
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

"""A study as data: environment, job, algorithms, metrics, and what is varied.

A study is split into settings, one for each combination of varied parameters; a setting
says everything that one cycle needs to know. `slotkern.studies.load` reads studies from
files, the papers' ones and a user's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import slotkern as sk

__all__ = ["Algorithm", "Setting", "Study", "short_names"]

#: What an algorithm says to the report alone.
_FOR_PEOPLE = ("label", "beside")


@dataclass(frozen=True)
class Algorithm:
    """One way of choosing a window, run on the same environments as all others.

    Attributes
    ----------
    name, label : str
        The key in files and the name for people.
    criterion, method, options
        What `find_window` is called with. With `alternatives`, `find_alternatives` is
        called instead, and each metric is taken from the alternative best by it.
    twin : bool
        Whether the paper's algorithm (``method="published"`` or, for Lite,
        ``"published-lite"``) also runs, on the first cycles, as ``NAME.published``.
    beside : str
        The name of an algorithm of which this is another reading: the report sets it
        beside that one, and beside its published numbers.
    """

    name: str
    label: str
    criterion: str
    method: str = "exact"
    alternatives: bool = False
    twin: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""

    @property
    def is_published(self) -> bool:
        """Whether this is the paper's own algorithm, which is slow."""
        return self.method.startswith("published")

    @property
    def published(self) -> Algorithm:
        """Its twin, the paper's own algorithm for the same purpose."""
        return Algorithm(
            f"{self.name}.published",
            f"{self.label}, as published",
            self.criterion,
            "published-lite" if self.method == "lite" else "published",
            self.alternatives,
            options=self.options,
        )

    def search(self, slots: Any, request: sk.Request, shape: str, cycle: int) -> Any:
        """Return what it finds: a Window, None, or (with `alternatives`) Alternatives.

        Raises
        ------
        ValueError
            If the search does not take the criterion, the method or an option.
        """
        options: dict[str, Any] = {"criterion": self.criterion, "method": self.method}
        options |= {"shape": shape, **self.options}
        try:
            if self.alternatives:
                return sk.find_alternatives(slots, request, **options)
            return sk.find_window(slots, request, seed=cycle, **options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"algorithms.{self.name}: {error}") from error


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return for each dotted path as much of its end as tells it from the others.

    Examples
    --------
    >>> from slotkern.studies.study import short_names
    >>> list(short_names(["environment.nodes", "job.nodes", "job.budget"]).values())
    ['environment.nodes', 'job.nodes', 'budget']
    """
    ends = {
        path: [".".join(path.split(".")[-k:]) for k in range(1, path.count(".") + 2)]
        for path in paths
    }
    told = Counter(end for each in ends.values() for end in each)
    return {
        path: next((end for end in each if told[end] == 1), path)
        for path, each in ends.items()
    }


@dataclass(frozen=True)
class Setting:
    """One combination of the varied parameters; `index` counts within its sweep."""

    name: str
    sweep: str
    index: int
    values: Mapping[str, Any]
    environment: Mapping[str, Any]
    job: Mapping[str, Any]
    algorithms: tuple[Algorithm, ...]
    share: float = 1.0

    @property
    def label(self) -> str:
        """The varied values in words, such as ``nodes = 50``."""
        names = short_names(self.values)
        return ", ".join(f"{names[path]} = {v}" for path, v in self.values.items())

    @property
    def request(self) -> sk.Request:
        """The job as a request."""
        fields = {key: value for key, value in self.job.items() if key != "shape"}
        return sk.Request(fields.pop("nodes"), fields.pop("volume"), **fields)

    @property
    def shape(self) -> str:
        """The shape of the job's window."""
        return str(self.job.get("shape", "square"))

    def cycles(self, cycles: int) -> int:
        """Return how many of the study's cycles this setting runs."""
        return max(1, round(cycles * self.share))

    @property
    def exact(self) -> tuple[Algorithm, ...]:
        """What runs on every cycle: all but the papers' own algorithms."""
        return tuple(a for a in self.algorithms if not a.is_published)

    @property
    def published(self) -> tuple[Algorithm, ...]:
        """The papers' own algorithms, twins of exact ones or not; they are slow."""
        return tuple(
            a.published if a.twin else a
            for a in self.algorithms
            if a.twin or a.is_published
        )


@dataclass(frozen=True)
class Study:
    """A whole study. From `compare` on, the fields only concern the report."""

    name: str
    title: str
    reference: str
    cycles: int
    published_cycles: int
    chunk: int
    seed: int
    metrics: tuple[str, ...]
    settings: tuple[Setting, ...]
    compare: tuple[Mapping[str, Any], ...] = ()
    timings: tuple[Mapping[str, Any], ...] = ()
    remarks: tuple[Mapping[str, Any], ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()

    @property
    def sweeps(self) -> dict[str, list[Setting]]:
        """The settings by sweep, both in the order of the file."""
        sweeps: dict[str, list[Setting]] = {}
        for setting in self.settings:
            sweeps.setdefault(setting.sweep, []).append(setting)
        return sweeps

    @property
    def algorithms(self) -> dict[str, Algorithm]:
        """Every algorithm of any setting, by name."""
        return {a.name: a for setting in self.settings for a in setting.algorithms}

    def sweep_of(self, record: Mapping[str, Any]) -> list[Setting]:
        """Return the settings of the sweep that a table names; else of the first."""
        sweeps = self.sweeps
        return sweeps[record.get("sweep", next(iter(sweeps)))]

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the results of a cycle, and nothing else, as plain data."""
        return {
            "study": self.name,
            "seed": self.seed,
            "chunk": self.chunk,
            "metrics": list(self.metrics),
            "settings": [
                {
                    "name": s.name,
                    "environment": dict(s.environment),
                    "job": dict(s.job),
                    "algorithms": [
                        {k: v for k, v in asdict(a).items() if k not in _FOR_PEOPLE}
                        for a in s.algorithms
                    ],
                }
                for s in self.settings
            ],
        }

"""A study as data: what is run, how, and what is varied.

A study is split into settings, one for each combination of varied parameters; a setting
says everything that one cycle needs to know. What a cycle is, the study's experiment
decides (`slotkern.studies.experiment`); `slotkern.studies.load` reads studies from
files, the papers' ones and a user's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FORMATS", "Algorithm", "Setting", "Study", "short_names"]

#: What a report is written in: pictures, then tables.
FORMATS = ("png", "svg", "pdf", "csv", "tex")


@dataclass(frozen=True)
class Algorithm:
    """One way of doing what the experiment does, in the same cycles as all others.

    Attributes
    ----------
    name, label : str
        The key in files and the name for people.
    options : mapping
        What the file says about it; the experiment knows what it means.
    beside : str
        The name of an algorithm of which this is another reading: the report sets it
        beside that one, and beside its published numbers.
    published : bool
        Whether this is a paper's own algorithm, which is slow: it runs on the first
        cycles only.
    twin : Algorithm, optional
        The paper's own algorithm for the same purpose.
    aim : str
        The metric that it makes as good as it can, if that is one.
    """

    name: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""
    published: bool = False
    twin: Algorithm | None = None
    aim: str = ""


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
    """One combination of the varied parameters; `index` counts within its sweep.

    `environment` and `job` are plain data that the `experiment` (its name) understands,
    `metrics` the columns that it returns.
    """

    name: str
    sweep: str
    index: int
    values: Mapping[str, Any]
    experiment: str
    environment: Mapping[str, Any]
    job: Mapping[str, Any]
    algorithms: tuple[Algorithm, ...]
    metrics: tuple[str, ...]
    seed: int
    share: float = 1.0

    @property
    def label(self) -> str:
        """The varied values in words, such as ``nodes = 50``."""
        names = short_names(self.values)
        return ", ".join(f"{names[path]} = {v}" for path, v in self.values.items())

    def cycles(self, cycles: int) -> int:
        """Return how many of the study's cycles this setting runs."""
        return max(1, round(cycles * self.share))

    @property
    def exact(self) -> tuple[Algorithm, ...]:
        """What runs on every cycle: all but the papers' own algorithms."""
        return tuple(a for a in self.algorithms if not a.published)

    @property
    def published(self) -> tuple[Algorithm, ...]:
        """The papers' own algorithms, twins of exact ones or not; they are slow."""
        every = (a if a.published else a.twin for a in self.algorithms)
        return tuple(a for a in every if a is not None)


@dataclass(frozen=True)
class Study:
    """A whole study. From `medians` on, the fields only concern the report."""

    name: str
    title: str
    reference: str
    experiment: str
    cycles: int
    published_cycles: int
    chunk: int
    seed: int
    metrics: tuple[str, ...]
    settings: tuple[Setting, ...]
    medians: tuple[str, ...] = ()
    compare: tuple[Mapping[str, Any], ...] = ()
    timings: tuple[Mapping[str, Any], ...] = ()
    remarks: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[Mapping[str, Any], ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()
    titles: bool = True
    formats: tuple[str, ...] = ("png", "csv")

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

    @property
    def columns(self) -> tuple[str, ...]:
        """Every metric of any setting."""
        return tuple(dict.fromkeys(m for s in self.settings for m in s.metrics))

    def sweep_of(self, record: Mapping[str, Any]) -> list[Setting]:
        """Return the settings of the sweep that a table names; else of the first."""
        sweeps = self.sweeps
        return sweeps[record.get("sweep", next(iter(sweeps)))]

    def title_of(self, record: Mapping[str, Any]) -> str:
        """Return the title of a picture of the first setting of a record's sweep.

        It is empty if the study's pictures have no titles.
        """
        if not self.titles:
            return ""
        title: str = record.get("title", self.title)
        setting = self.sweep_of(record)[0]
        return f"{title}: {setting.label}" if setting.values else title

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the results of a cycle, and nothing else, as plain data."""
        return {
            "study": self.name,
            "experiment": self.experiment,
            "seed": self.seed,
            "chunk": self.chunk,
            "settings": [
                {
                    "name": s.name,
                    "environment": dict(s.environment),
                    "job": dict(s.job),
                    "metrics": list(s.metrics),
                    "algorithms": [
                        {"name": a.name, "options": dict(a.options)}
                        for a in s.algorithms
                    ],
                }
                for s in self.settings
            ],
        }

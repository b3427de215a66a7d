"""A study as data: its algorithms, its varied parameters and its report.

A study is divided into settings, one for each combination of varied parameters; a
setting is the complete input of a cycle. The study's experiment defines a cycle
(`slotkern.studies.experiment`); `slotkern.studies.load` reads studies of the papers and
of users from files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FORMATS", "Algorithm", "Setting", "Study", "short_names"]

#: The formats of a report: figures, then tables.
FORMATS = ("png", "svg", "pdf", "csv", "tex")


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of an experiment; all algorithms run on the same cycles.

    Attributes
    ----------
    name, label : str
        The key in files and the name in reports.
    options : mapping
        The other keys of its table, which the experiment interprets.
    beside : str
        The name of an algorithm that this one interprets differently: the report
        shows it next to that algorithm and its published numbers.
    published : bool
        Whether this is a paper's own algorithm, which is slow and runs on the first
        cycles only.
    twin : Algorithm, optional
        The paper's own algorithm for the same purpose.
    aim : str
        The metric that it optimizes, or "".
    """

    name: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""
    published: bool = False
    twin: Algorithm | None = None
    aim: str = ""


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the shortest unique suffix of each dotted path.

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
    counts = Counter(end for each in ends.values() for end in each)
    return {
        path: next((end for end in each if counts[end] == 1), path)
        for path, each in ends.items()
    }


@dataclass(frozen=True)
class Setting:
    """One combination of the varied parameters; `index` counts within its sweep.

    `environment` and `job` are plain data that the `experiment` (its name) interprets;
    `metrics` are the columns that it returns.
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
        """The varied values as text, such as ``nodes = 50``."""
        names = short_names(self.values)
        return ", ".join(f"{names[path]} = {v}" for path, v in self.values.items())

    def cycles(self, cycles: int) -> int:
        """Return the number of cycles that this setting runs."""
        return max(1, round(cycles * self.share))

    @property
    def exact(self) -> tuple[Algorithm, ...]:
        """The algorithms that run on every cycle: all but the papers' own."""
        return tuple(a for a in self.algorithms if not a.published)

    @property
    def published(self) -> tuple[Algorithm, ...]:
        """The papers' own algorithms, including twins of exact ones; they are slow."""
        every = (a if a.published else a.twin for a in self.algorithms)
        return tuple(a for a in every if a is not None)


@dataclass(frozen=True)
class Study:
    """A study. The fields from `medians` on concern the report only."""

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
        """Return the settings of the sweep that a table names, or of the first."""
        sweeps = self.sweeps
        return sweeps[record.get("sweep", next(iter(sweeps)))]

    def title_of(self, record: Mapping[str, Any]) -> str:
        """Return the title of a plot of the first setting of a record's sweep.

        Empty if the study's plots have no titles.
        """
        if not self.titles:
            return ""
        title: str = record.get("title", self.title)
        setting = self.sweep_of(record)[0]
        return f"{title}: {setting.label}" if setting.values else title

    @property
    def identity(self) -> dict[str, Any]:
        """The plain data that determine the results of every cycle."""
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

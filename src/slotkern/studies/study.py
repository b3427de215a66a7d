"""A study as data: environment, job, algorithms, metrics, and what is varied.

The papers' studies (``papers/*.toml``) and a user's own are files of one format, read
by `load_study`. A study is split into settings, one for each combination of varied
parameters; a setting says everything that one cycle needs to know.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from slotkern.environment import PRESETS, generate_environment
from slotkern.studies.metrics import METRICS
from slotkern.studies.papers import PAPERS, published, study_text

__all__ = ["PAPERS", "Algorithm", "Setting", "Study", "load_study"]

_ENVIRONMENT_KEYS = tuple(
    name
    for name in inspect.signature(generate_environment).parameters
    if name not in ("seed", "cycle")
)
_JOB_KEYS = (
    "nodes",
    "volume",
    "budget",
    "min_performance",
    "earliest",
    "deadline",
    "max_price",
    "where",
    "shape",
)
_ALGORITHM_KEYS = ("label", "criterion", "method", "alternatives", "twin", "options")
_SWEEP_KEYS = ("name", "share", "algorithms", "grid")
_COMPARE_KEYS = ("metric", "sweep", "published", "against", "best", "worst")
_REMARK_KEYS = ("kind", "algorithms", "metrics", "text")
_FIGURE_KEYS = ("name", "title", "kind", "metrics", "algorithms", "sweep", "cycle")
_STUDY_KEYS = (
    "name",
    "title",
    "reference",
    "cycles",
    "published_cycles",
    "chunk",
    "seed",
    "metrics",
    "environment",
    "job",
    "algorithms",
    "grid",
    "sweep",
    "compare",
    "remark",
    "figure",
)
METHODS = ("exact", "lite", "published")
REMARKS = ("unmatched", "contradiction", "note")
FIGURES = ("numbers", "gantt", "utilization")


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
        Whether the paper's algorithm (``method="published"``) also runs, on the first
        cycles, as ``NAME.published``.
    """

    name: str
    label: str
    criterion: str
    method: str = "exact"
    alternatives: bool = False
    twin: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def published(self) -> Algorithm:
        """Its twin, the paper's own algorithm for the same purpose."""
        return Algorithm(
            f"{self.name}.published",
            f"{self.label}, as published",
            self.criterion,
            "published",
            self.alternatives,
            options=self.options,
        )


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
        return ", ".join(
            f"{path.rpartition('.')[2]} = {value}"
            for path, value in self.values.items()
        )

    def cycles(self, cycles: int) -> int:
        """Return how many of the study's cycles this setting runs."""
        return max(1, round(cycles * self.share))

    @property
    def exact(self) -> tuple[Algorithm, ...]:
        """What runs on every cycle: all but the papers' own algorithms."""
        return tuple(a for a in self.algorithms if a.method != "published")

    @property
    def published(self) -> tuple[Algorithm, ...]:
        """The papers' own algorithms, twins of exact ones or not; they are slow."""
        return tuple(
            a.published if a.twin else a
            for a in self.algorithms
            if a.twin or a.method == "published"
        )


@dataclass(frozen=True)
class Study:
    """A whole study. `compare`, `remarks` and `figures` only concern the report."""

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
                    "algorithms": [asdict(a) for a in s.algorithms],
                }
                for s in self.settings
            ],
        }


def load_study(source: str | Path, *, seed: int | None = None) -> Study:
    """Return one of the papers' studies by name, or a study read from a TOML file.

    Parameters
    ----------
    source : str or Path
        "aep", "square", "placement", or the path of a TOML file (docs/studies.md
        explains its keys).
    seed : int, optional
        Replaces the study's seed.

    Returns
    -------
    Study
        The study, every key and value of it checked.

    Raises
    ------
    ValueError
        For an unknown key or an impossible value; the message names file and key.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> from slotkern import studies
    >>> studies.load_study("aep").cycles
    5000
    """
    if source in PAPERS:
        text = study_text(str(source))
    else:
        try:
            text = Path(source).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{source}: not a text file: {error}") from None
    try:
        data = tomllib.loads(text)
        if seed is not None:
            data["seed"] = seed
        return _study(data)
    except ValueError as error:  # TOMLDecodeError is one
        raise ValueError(f"{source}: {error}") from None


def _study(data: dict[str, Any]) -> Study:
    """Return the study that `data` describes; ValueError names the wrong key."""
    _known("", data, _STUDY_KEYS)
    name = _text("name", data.get("name"))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ValueError(f"name: {name!r} may hold letters, digits, '-' and '_' only")
    metrics = tuple(_texts("metrics", data.get("metrics")))
    algorithms = _algorithms(_table("algorithms", data.get("algorithms")))
    environment = _environment(_table("environment", data.get("environment", {})))
    for metric in metrics:
        if metric not in METRICS and metric not in environment["extra"]:
            known = ", ".join((*METRICS, *environment["extra"]))
            raise ValueError(f"metrics: {metric!r} is not one of {known}")
    job = _table("job", data.get("job"))
    _known("job", job, _JOB_KEYS)
    study = Study(
        name=name,
        title=_text("title", data.get("title", name)),
        reference=_text("reference", data.get("reference", "")),
        cycles=_count("cycles", data.get("cycles", 1000)),
        published_cycles=_count("published_cycles", data.get("published_cycles", 0), 0),
        chunk=_count("chunk", data.get("chunk", 100)),
        seed=_count("seed", data.get("seed", 0), 0),
        metrics=metrics,
        settings=tuple(_settings(data, environment, job, algorithms)),
        compare=_records("compare", data, _COMPARE_KEYS),
        remarks=_records("remark", data, _REMARK_KEYS),
        figures=_records("figure", data, _FIGURE_KEYS),
    )
    for algorithm in algorithms.values():
        if algorithm.method == "published" and not study.published_cycles:
            raise ValueError(
                f"algorithms.{algorithm.name}: published algorithms run on the first "
                "published_cycles cycles, which is 0"
            )
    _check_report(study, algorithms)
    return study


def _settings(
    data: Mapping[str, Any],
    environment: Mapping[str, Any],
    job: Mapping[str, Any],
    algorithms: Mapping[str, Algorithm],
) -> Iterator[Setting]:
    """Yield the settings of every sweep; without ``[[sweep]]``, of the one grid."""
    if "sweep" in data and "grid" in data:
        raise ValueError("grid: belongs inside [[sweep]] when there are sweeps")
    sweeps = _records("sweep", data, _SWEEP_KEYS) or (
        {"name": "base", "grid": data.get("grid", {})},
    )
    seen: set[str] = set()
    for number, sweep in enumerate(sweeps):
        where = f"sweep[{number}]" if "sweep" in data else "grid"
        name = _text(f"{where}.name", sweep.get("name"))
        if name in seen or not re.fullmatch(r"[A-Za-z0-9_]+", name):
            raise ValueError(f"{where}.name: {name!r} is used twice or not plain")
        seen.add(name)
        share = sweep.get("share", 1.0)
        if isinstance(share, bool) or not isinstance(share, (int, float)):
            raise ValueError(f"{where}.share: {share!r} is not a number")
        if not 0 < share <= 1:
            raise ValueError(f"{where}.share: {share} is not within (0, 1]")
        chosen = _chosen(f"{where}.algorithms", sweep.get("algorithms"), algorithms)
        grid = dict(_leaves("grid", _table(f"{where}.grid", sweep.get("grid", {}))))
        for index, values in enumerate(itertools.product(*grid.values())):
            both = {
                "environment": copy.deepcopy(dict(environment)),
                "job": copy.deepcopy(dict(job)),
            }
            point = dict(zip(grid, values, strict=True))
            for path, value in point.items():
                _put(both, path, value)
            setting = Setting(
                name=f"{name}-{index}" if grid else name,
                sweep=name,
                index=index,
                values=point,
                environment=both["environment"],
                job=both["job"],
                algorithms=chosen,
                share=float(share),
            )
            _check_setting(setting)
            yield setting


def _check_setting(setting: Setting) -> None:
    """Raise ValueError, naming the key, if a cycle of this setting cannot run."""
    from slotkern import Request

    at = f" (at {setting.label})" if setting.label else ""
    try:
        generate_environment(**setting.environment)
    except ValueError as error:
        raise ValueError(f"environment: {error}{at}") from None
    job = dict(setting.job)
    shape = job.pop("shape", "square")
    if shape not in ("square", "ragged"):
        raise ValueError(f"job.shape: {shape!r} is neither 'square' nor 'ragged'{at}")
    for key in ("nodes", "volume"):
        if key not in job:
            raise ValueError(f"job.{key}: is missing")
    try:
        Request(job.pop("nodes"), job.pop("volume"), **job)
    except (TypeError, ValueError) as error:
        raise ValueError(f"job: {error}{at}") from None


def _check_report(study: Study, algorithms: Mapping[str, Algorithm]) -> None:
    """Raise ValueError for references of the report to what does not exist."""
    sweeps = study.sweeps
    metrics = ("slots", "alternatives", *study.metrics)

    def check(where: str, record: Mapping[str, Any]) -> list[Setting]:
        sweep = record.get("sweep", next(iter(sweeps)))
        if sweep not in sweeps:
            raise ValueError(f"{where}.sweep: there is no sweep {sweep!r}")
        return sweeps[sweep]

    def check_metric(where: str, metric: Any) -> None:
        if metric not in metrics:
            raise ValueError(f"{where}: {metric!r} is not one of {', '.join(metrics)}")

    def check_names(where: str, names: Iterable[Any], settings: list[Setting]) -> None:
        known = [a.name for a in settings[0].algorithms]
        for name in names:
            if name not in known:
                raise ValueError(f"{where}: {name!r} is not one of {', '.join(known)}")

    for number, record in enumerate(study.compare):
        where = f"compare[{number}]"
        settings = check(where, record)
        check_metric(f"{where}.metric", record.get("metric"))
        figures = record.get("published", {})
        if isinstance(figures, str):
            figures = published(figures)
        if isinstance(figures, Mapping):
            names = [name for name, f in figures.items() if not isinstance(f, str)]
            if "against" not in record:
                check_names(f"{where}.published", names, settings)
        elif "against" not in record:
            raise ValueError(f"{where}.against: say which algorithms the number is of")
        if isinstance(figures, list) and len(figures) != len(settings):
            raise ValueError(f"{where}.published: not one number for each setting")
        if "against" in record:
            against = _texts(f"{where}.against", record["against"])
            check_names(f"{where}.against", against, settings)
        if "best" in record:
            check_names(f"{where}.best", [record["best"]], settings)
    for number, figure in enumerate(study.figures):
        where = f"figure[{number}]"
        settings = check(where, figure)
        _text(f"{where}.name", figure.get("name"))
        if figure.get("kind", "numbers") not in FIGURES:
            kinds = ", ".join(FIGURES)
            raise ValueError(f"{where}.kind: {figure['kind']!r} is not one of {kinds}")
        for metric in figure.get("metrics", ()):
            check_metric(f"{where}.metrics", metric)
        if "algorithms" in figure:
            names = _texts(f"{where}.algorithms", figure["algorithms"])
            check_names(f"{where}.algorithms", names, settings)
    for number, remark in enumerate(study.remarks):
        where = f"remark[{number}]"
        _text(f"{where}.text", remark.get("text"))
        if "metrics" in remark or "algorithms" in remark:  # else about the whole
            for metric in _texts(f"{where}.metrics", remark.get("metrics")):
                check_metric(f"{where}.metrics", metric)
            for name in _texts(f"{where}.algorithms", remark.get("algorithms")):
                if name not in algorithms:
                    raise ValueError(f"{where}.algorithms: there is no {name!r}")
        if remark.get("kind") not in REMARKS:
            kinds = ", ".join(REMARKS)
            raise ValueError(
                f"{where}.kind: {remark.get('kind')!r} is not one of {kinds}"
            )


def _environment(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the preset's parameters as plain data, overlaid with the given ones."""
    _known("environment", given, _ENVIRONMENT_KEYS)
    preset = given.get("preset", "aep")
    if preset not in PRESETS:
        known = ", ".join(sorted(PRESETS))
        raise ValueError(f"environment.preset: {preset!r} is not one of {known}")
    plain = {name: _plain(value) for name, value in PRESETS[preset].items()}
    return {"preset": preset} | _merged(plain, given)


def _plain(value: Any) -> Any:
    """Return laws as tables and tuples as lists, as a TOML file would hold them."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `over`, tables within tables merged."""
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merged(merged[key], value)
        else:
            merged[key] = value
    return merged


def _algorithms(table: Mapping[str, Any]) -> dict[str, Algorithm]:
    """Return the algorithms by name."""
    algorithms = {}
    for name, entry in table.items():
        where = f"algorithms.{name}"
        if not re.fullmatch(r"[A-Za-z0-9_]+", name):
            raise ValueError(f"{where}: a name holds letters, digits and '_' only")
        entry = _table(where, entry)
        _known(where, entry, _ALGORITHM_KEYS)
        method = entry.get("method", "exact")
        if method not in METHODS:
            raise ValueError(
                f"{where}.method: {method!r} is not one of {', '.join(METHODS)}"
            )
        if method == "published" and entry.get("twin"):
            raise ValueError(f"{where}.twin: a published algorithm has none")
        for key in ("alternatives", "twin"):
            if not isinstance(entry.get(key, False), bool):
                raise ValueError(f"{where}.{key}: {entry[key]!r} is not true or false")
        algorithms[name] = Algorithm(
            name,
            _text(f"{where}.label", entry.get("label", name)),
            _text(f"{where}.criterion", entry.get("criterion")),
            method,
            entry.get("alternatives", False),
            entry.get("twin", False),
            dict(_table(f"{where}.options", entry.get("options", {}))),
        )
    if not algorithms:
        raise ValueError("algorithms: at least one is needed")
    return algorithms


def _leaves(where: str, table: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield (path, values) for every list in nested tables."""
    for key, value in table.items():
        path = f"{where}.{key}"
        if isinstance(value, Mapping):
            yield from _leaves(path, value)
        elif isinstance(value, list) and value:
            inside = path.removeprefix("grid.")
            if not inside.startswith(("environment.", "job.")):
                raise ValueError(f"{path}: only environment and job can be varied")
            yield inside, value
        else:
            raise ValueError(f"{path}: {value!r} is not a list of values")


def _put(tables: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path; the key must be one the study could hold."""
    first, *middle, last = path.split(".")
    known = _ENVIRONMENT_KEYS if first == "environment" else _JOB_KEYS
    _known(f"grid.{first}", {(*middle, last)[0]: None}, known)
    table = tables[first]
    for key in middle:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ValueError(f"grid.{path}: {key} is not a table")
    table[last] = value


def _chosen(
    where: str, names: Any, algorithms: Mapping[str, Algorithm]
) -> tuple[Algorithm, ...]:
    """Return the algorithms of these names; of all names if there are none."""
    if names is None:
        return tuple(algorithms.values())
    for name in _texts(where, names):
        if name not in algorithms:
            raise ValueError(f"{where}: there is no {name!r} among the algorithms")
    return tuple(algorithms[name] for name in names)


def _known(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            name = f"{where}.{key}" if where else key
            raise ValueError(f"{name}: unknown key; known are {', '.join(known)}")


def _records(
    key: str, data: Mapping[str, Any], known: tuple[str, ...]
) -> tuple[Mapping[str, Any], ...]:
    """Return the tables of ``[[key]]``."""
    records = data.get(key, [])
    if not isinstance(records, list):
        raise ValueError(f"{key}: write it as [[{key}]]")
    for number, record in enumerate(records):
        _known(f"{key}[{number}]", _table(f"{key}[{number}]", record), known)
    return tuple(records)


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{where}: is missing" if value is None else f"{where}: must be a table"
        )
    return value


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(
            f"{where}: is missing" if value is None else f"{where}: must be a string"
        )
    return value


def _texts(where: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{where}: must be a list of names")
    texts = [_text(where, part) for part in value]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{where}: names a thing twice")
    return texts


def _count(where: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{where}: {value!r} is not an integer >= {least}")
    return value

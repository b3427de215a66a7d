"""Reading studies from TOML files; every key and value is checked.

The papers' studies (``papers/*.toml``) and users' studies have the same format.
"""

from __future__ import annotations

import copy
import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slotkern.files.columns import InputError, utf8
from slotkern.foundation.checks import one_of
from slotkern.studies.claims import (
    ADVANTAGE_CLAIMS,
    NUMBER_CLAIMS,
    RIVAL_CLAIMS,
    TREND_CLAIMS,
    lines,
)
from slotkern.studies.experiment import EXPERIMENTS, experiment_of
from slotkern.studies.fields import (
    as_count,
    as_flag,
    as_list,
    as_name,
    as_number,
    as_records,
    as_table,
    as_text,
    as_texts,
    only_keys,
    overlaid,
)
from slotkern.studies.papers import PAPERS, published, study_text
from slotkern.studies.study import FORMATS, Algorithm, Setting, Study

__all__ = ["as_formats", "load_study"]

_ALGORITHM_KEYS = ("label", "beside")  # other keys belong to the experiment
#: Tables that the experiment interprets, and that a sweep may override.
_TABLES = ("environment", "job")
_SWEEP_KEYS = ("name", "share", "algorithms", "metrics", *_TABLES, "grid")
_COMPARE_KEYS = ("metric", "sweep", "published", "against", "best", "worst", "ratio")
_TIMING_KEYS = ("sweep", "algorithms", "twins", "published", "per_alternative")
_REMARK_KEYS = ("kind", "algorithms", "metrics", "text")
_CLAIM_KEYS = (
    *("text", "sweep", "metric", "algorithm", "is", "of"),
    *("among", "times", "along", "at", "within", "other"),
)
_FIGURE_KEYS = (
    *("name", "title", "kind", "metrics", "algorithms", "sweep", "cycle"),
    *("together", "zoom", "divide", "axis"),
)
_STUDY_KEYS = (
    "titles",
    "name",
    "title",
    "reference",
    "cycles",
    "published_cycles",
    "chunk",
    "seed",
    "experiment",
    "metrics",
    "medians",
    "environment",
    "job",
    "algorithms",
    "grid",
    "sweep",
    "compare",
    "timing",
    "remark",
    "claim",
    "figure",
    "formats",
)
_REMARKS = ("unmatched", "contradiction", "note")
#: The kinds of figures of all studies; an experiment adds its own.
_FIGURES = ("numbers", "times")


def load_study(source: str | Path, *, seed: int | None = None) -> Study:
    """Load one of the papers' studies by name, or a study from a TOML file.

    Parameters
    ----------
    source : str or Path
        "aep", "square", "placement", "vo", "slicing", "distance", "casa", or the path
        of a TOML file (docs/studies.md explains its keys).
    seed : int, optional
        Seed in place of the study's own.

    Returns
    -------
    Study
        The study, with every key and value checked.

    Raises
    ------
    ValueError
        For an unknown key or an invalid value; the message names file and key.
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
            text = utf8(Path(source).read_bytes())
        except InputError as fault:
            raise fault.error(str(source), str) from None
    try:
        data = tomllib.loads(text)
        if seed is not None:
            data["seed"] = seed
        return _study(data)
    except ValueError as error:  # includes TOMLDecodeError
        raise InputError(str(error)).error(str(source), str) from None


def _study(data: dict[str, Any]) -> Study:
    """Make the study that `data` describes; ValueError names the wrong key."""
    only_keys("", data, _STUDY_KEYS)
    name = as_name("name", data.get("name"), "-")
    experiment = as_text("experiment", data.get("experiment", "cycle"))
    experiment_of(experiment)
    base = Setting(
        name=name,
        sweep="",
        index=0,
        values={},
        experiment=experiment,
        environment=as_table("environment", data.get("environment", {})),
        job=as_table("job", data.get("job", {})),
        algorithms=_algorithms(as_table("algorithms", data.get("algorithms"))),
        metrics=tuple(as_texts("metrics", data.get("metrics"))),
        seed=as_count("seed", data.get("seed", 0), 0, None),
    )
    reference = data.get("reference", "")
    study = Study(
        name=name,
        title=as_text("title", data.get("title", name)),
        reference=as_text("reference", reference) if reference != "" else "",
        experiment=experiment,
        cycles=as_count("cycles", data.get("cycles", 1000)),
        published_cycles=as_count(
            "published_cycles", data.get("published_cycles", 0), 0
        ),
        chunk=as_count("chunk", data.get("chunk", 100)),
        seed=base.seed,
        metrics=base.metrics,
        settings=tuple(_settings(data, base)),
        medians=tuple(as_texts("medians", data["medians"]))
        if "medians" in data
        else (),
        compare=as_records("compare", data, _COMPARE_KEYS),
        timings=as_records("timing", data, _TIMING_KEYS),
        remarks=as_records("remark", data, _REMARK_KEYS),
        claims=as_records("claim", data, _CLAIM_KEYS),
        figures=as_records("figure", data, _FIGURE_KEYS),
        titles=as_flag("titles", data.get("titles", True)),
        formats=as_formats("formats", data.get("formats", ["png", "csv"])),
    )
    for algorithm in study.algorithms.values():
        if algorithm.published and not study.published_cycles:
            raise ValueError(
                f"algorithms.{algorithm.name}: published algorithms run on the first "
                "published_cycles cycles, which is 0"
            )
    _check_report(study)
    return study


# --- settings and algorithms ------------------------------------------------------


def _settings(data: Mapping[str, Any], base: Setting) -> Iterator[Setting]:
    """Yield the settings of every sweep; without ``[[sweep]]``, of the only grid."""
    if "sweep" in data and "grid" in data:
        raise ValueError("grid: belongs inside [[sweep]] when there are sweeps")
    sweeps = as_records("sweep", data, _SWEEP_KEYS) or (
        {"name": "base", "grid": data.get("grid", {})},
    )
    seen: set[str] = set()
    for number, sweep in enumerate(sweeps):
        where = f"sweep[{number}]" if "sweep" in data else "grid"
        name = as_name(f"{where}.name", sweep.get("name"))
        if name in seen:
            raise ValueError(f"{where}.name: {name!r} is used twice")
        seen.add(name)
        share = sweep.get("share", 1.0)
        number_given = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not number_given or not 0 < share <= 1:
            raise ValueError(f"{where}.share: {share!r} is not within (0, 1]")
        chosen = {algorithm.name: algorithm for algorithm in base.algorithms}
        if "algorithms" in sweep:
            names = as_texts(f"{where}.algorithms", sweep["algorithms"])
            for wanted in names:
                one_of(f"{where}.algorithms", wanted, chosen)
            chosen = {wanted: chosen[wanted] for wanted in names}
        metrics = base.metrics
        if "metrics" in sweep:
            metrics = tuple(as_texts(f"{where}.metrics", sweep["metrics"]))
            for metric in metrics:
                one_of(f"{where}.metrics", metric, base.metrics)
        grid = dict(_leaves("grid", as_table(f"{where}.grid", sweep.get("grid", {}))))
        for index, values in enumerate(itertools.product(*grid.values())):
            yield _setting(
                replace(
                    base,
                    name=f"{name}-{index}" if grid else name,
                    sweep=name,
                    index=index,
                    values=dict(zip(grid, values, strict=True)),
                    metrics=metrics,
                    share=float(share),
                ),
                chosen,
                *(as_table(f"{where}.{t}", sweep.get(t, {})) for t in _TABLES),
            )


def _setting(
    setting: Setting,
    algorithms: Mapping[str, Algorithm],
    environment: Mapping[str, Any],
    job: Mapping[str, Any],
) -> Setting:
    """Apply a sweep's tables and the varied values to a setting, and check it."""
    tables: dict[str, Any] = {
        "environment": overlaid(setting.environment, environment),
        "job": overlaid(setting.job, job),
        "algorithms": {name: dict(a.options) for name, a in algorithms.items()},
    }
    tables = copy.deepcopy(tables)
    for path, value in setting.values.items():
        _put(tables, path, value)
    values = ", ".join(f"grid.{path} = {v!r}" for path, v in setting.values.items())
    if setting.experiment not in EXPERIMENTS:
        tables["algorithms"] = {
            name: _flat(name, options) for name, options in tables["algorithms"].items()
        }
    try:
        return experiment_of(setting.experiment).check(
            replace(
                setting,
                environment=tables["environment"],
                job=tables["job"],
                algorithms=tuple(
                    replace(algorithm, options=tables["algorithms"][name])
                    for name, algorithm in algorithms.items()
                ),
            )
        )
    except ValueError as error:
        raise ValueError(f"{error} (at {values})" if values else str(error)) from None


def _flat(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an algorithm of a user's experiment.

    They are given next to `label`, or in a table ``options``.
    """
    where = f"algorithms.{name}.options"
    inner = as_table(where, options.pop("options", {}))
    for key in inner:
        if key in options:
            raise ValueError(
                f"{where}.{key}: is given twice, here and as algorithms.{name}.{key}"
            )
    return options | dict(inner)


def _algorithms(table: Mapping[str, Any]) -> tuple[Algorithm, ...]:
    """Make the algorithms of a study."""
    algorithms = []
    for name, entry in table.items():
        where = f"algorithms.{name}"
        as_name(where, name)
        entry = as_table(where, entry)
        algorithms.append(
            Algorithm(
                name,
                as_text(f"{where}.label", entry.get("label", name)),
                {k: v for k, v in entry.items() if k not in _ALGORITHM_KEYS},
                one_of(
                    f"{where}.beside", entry["beside"], [k for k in table if k != name]
                )
                if "beside" in entry
                else "",
            )
        )
    if not algorithms:
        raise ValueError("algorithms: at least one is needed")
    return tuple(algorithms)


def _leaves(where: str, table: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the dotted path and the values of every list in nested tables."""
    for key, value in table.items():
        path = f"{where}.{key}"
        if where == "grid":
            only_keys(where, {key: value}, (*_TABLES, "algorithms"))
            yield from _leaves(path, as_table(path, value))
        elif isinstance(value, Mapping):
            yield from _leaves(path, value)
        else:
            yield path.removeprefix("grid."), as_list(path, value)


def _put(tables: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path."""
    first, *middle, last = path.split(".")
    table = tables[first]
    if first == "algorithms":
        one_of(f"grid.{path}", middle[0] if middle else last, table)
        if not middle:
            raise ValueError(
                f"grid.{path}: name the option of the algorithm that varies"
            )
    for key in middle:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ValueError(f"grid.{path}: {key} is not a table")
    table[last] = value


def as_formats(where: str, value: Any) -> tuple[str, ...]:
    """Return the formats of a report, checked."""
    return tuple(one_of(where, name, FORMATS) for name in as_texts(where, value))


# --- the report -------------------------------------------------------------------


def _check_report(study: Study) -> None:
    """Raise ValueError if a table of the report refers to something undefined."""
    for name in study.medians:
        one_of("medians", name, study.columns)
    for number, record in enumerate(study.compare):
        _check_comparison(f"compare[{number}]", record, study)
    for number, record in enumerate(study.timings):
        _check_timing(f"timing[{number}]", record, study)
    seen: set[str] = set()
    for number, record in enumerate(study.figures):
        where = f"figure[{number}]"
        _check_figure(where, record, study)
        if record["name"] in seen:
            raise ValueError(f"{where}.name: {record['name']!r} is used twice")
        seen.add(record["name"])
    for number, record in enumerate(study.remarks):
        _check_remark(f"remark[{number}]", record, study)
    for number, record in enumerate(study.claims):
        _check_claim(f"claim[{number}]", record, study)


def _check_comparison(where: str, record: Mapping[str, Any], study: Study) -> None:
    settings = _check_sweep(where, record, study)
    _check_metrics(f"{where}.metric", [record.get("metric")], settings)
    figures = _figures(where, record, "published")
    if figures == {} and "against" not in record:
        raise ValueError(f"{where}.published: is missing")
    if "against" in record:
        names = as_texts(f"{where}.against", record["against"])
        _check_names(f"{where}.against", names, settings)
        if isinstance(figures, list) and len(settings) == 1:
            if len(figures) != len(names):
                raise ValueError(
                    f"{where}.published: {figures} is not one number for each of "
                    f"{len(names)} algorithms"
                )
            figures = dict(zip(names, figures, strict=True))
    elif not isinstance(figures, Mapping):
        raise ValueError(
            f"{where}.against: name the algorithms to which the number belongs"
        )
    else:
        names = [name for name, f in figures.items() if not isinstance(f, str)]
        _check_names(f"{where}.published", names, settings, some=False)
    if "best" in record:
        _check_names(f"{where}.best", [record["best"]], settings)
    for key in ("worst", "ratio"):
        as_flag(f"{where}.{key}", record.get(key, False))
        if record.get(key) and "best" not in record:
            raise ValueError(
                f"{where}.{key}: is of one algorithm's advantage; give best"
            )
    _check_figures(f"{where}.published", figures, settings)


def _check_timing(where: str, record: Mapping[str, Any], study: Study) -> None:
    if not experiment_of(study.experiment).timed:
        raise ValueError(f"{where}: experiment {study.experiment!r} has no searches")
    settings = _check_sweep(where, record, study)
    for key in ("per_alternative", "published"):
        figures = as_table(f"{where}.{key}", _figures(where, record, key))
        _check_figures(f"{where}.{key}", figures, settings)
        only_keys(f"{where}.{key}", figures, study.algorithms)
    # The sweep's settings may time searches that do not run in the sweep.
    names = as_texts(f"{where}.algorithms", record.get("algorithms", list(figures)))
    for name in names:
        one_of(f"{where}.algorithms", name, study.algorithms)
    for name in (
        as_texts(f"{where}.twins", record["twins"]) if "twins" in record else ()
    ):
        one_of(f"{where}.twins", name, names)
        if study.algorithms[name].published:
            raise ValueError(
                f"{where}.twins: {name!r} is the published algorithm itself"
            )


def _check_figure(where: str, record: Mapping[str, Any], study: Study) -> None:
    settings = _check_sweep(where, record, study)
    as_name(f"{where}.name", record.get("name"), "-")
    as_text(f"{where}.title", record.get("title", "none"))
    kinds = (*_FIGURES, *experiment_of(study.experiment).pictures)
    kind = one_of(f"{where}.kind", record.get("kind", "numbers"), kinds)
    as_count(f"{where}.cycle", record.get("cycle", 0), 0)
    if kind == "numbers" or "metrics" in record:
        metrics = as_list(f"{where}.metrics", record.get("metrics"))
        _check_metrics(f"{where}.metrics", metrics, settings)
    if "algorithms" in record:
        _check_names(f"{where}.algorithms", record["algorithms"], settings)
    as_flag(f"{where}.together", record.get("together", False))
    if record.get("together") and len(settings) < 2:
        raise ValueError(f"{where}.together: the sweep has one setting, so no curves")
    for name in as_list(f"{where}.zoom", record["zoom"]) if "zoom" in record else ():
        one_of(f"{where}.zoom", name, record.get("metrics", ()))
    as_number(f"{where}.divide", record.get("divide", 1), above=0)
    as_text(f"{where}.axis", record.get("axis", "none"))
    timed = [timing.get("sweep", settings[0].sweep) for timing in study.timings]
    if kind == "times" and settings[0].sweep not in timed:
        raise ValueError(f"{where}.sweep: no [[timing]] of {settings[0].sweep!r}")


def _check_remark(where: str, record: Mapping[str, Any], study: Study) -> None:
    as_text(f"{where}.text", record.get("text"))
    one_of(f"{where}.kind", record.get("kind"), _REMARKS)
    if "metrics" in record or "algorithms" in record:  # else it concerns the study
        metrics = as_list(f"{where}.metrics", record.get("metrics"))
        for metric in metrics:
            one_of(f"{where}.metrics", metric, study.columns)
        for name in as_texts(f"{where}.algorithms", record.get("algorithms")):
            one_of(f"{where}.algorithms", name, study.algorithms)


def _check_claim(where: str, record: Mapping[str, Any], study: Study) -> None:
    as_text(f"{where}.text", record.get("text"))
    settings = _check_sweep(where, record, study)
    _check_metrics(f"{where}.metric", [record.get("metric")], settings)
    _check_names(f"{where}.algorithm", [record.get("algorithm")], settings, twins=True)
    kind = one_of(
        f"{where}.is",
        record.get("is"),
        (*RIVAL_CLAIMS, *NUMBER_CLAIMS, *ADVANTAGE_CLAIMS, *TREND_CLAIMS),
    )
    of = one_of(f"{where}.of", record.get("of", "mean"), ("mean", "median"))
    if of == "median":
        one_of(f"{where}.metric", record["metric"], study.medians)
    as_number(f"{where}.times", record.get("times", 1), above=0)
    as_number(f"{where}.within", record.get("within", 0), least=0)
    if kind in RIVAL_CLAIMS or kind in ADVANTAGE_CLAIMS:
        _check_names(f"{where}.among", record.get("among"), settings, twins=True)
    elif kind in NUMBER_CLAIMS:
        as_number(f"{where}.at", record.get("at"))
    elif len(settings) < 2:
        raise ValueError(f"{where}.sweep: {kind!r} needs more than one setting")
    if kind == "crossing" or kind in ADVANTAGE_CLAIMS:
        _check_metrics(f"{where}.other", [record.get("other")], settings)
    if "along" in record:
        one_of(f"{where}.along", record["along"], settings[0].values)
    if kind == "peak":
        path = record.get("along", next(iter(settings[0].values), None))
        along = [s.values[path] for s in lines(settings, path)[0]]
        if record.get("at") not in along:
            raise ValueError(f"{where}.at: {record.get('at')!r} is not one of {along}")


def _check_sweep(where: str, record: Mapping[str, Any], study: Study) -> list[Setting]:
    """Return the settings of the sweep that a record names, or of the first."""
    if "sweep" in record:
        one_of(f"{where}.sweep", record["sweep"], study.sweeps)
    return study.sweep_of(record)


def _check_metrics(
    where: str, metrics: Iterable[Any], settings: Sequence[Setting]
) -> None:
    for metric in metrics:
        one_of(where, metric, settings[0].metrics)


def _check_names(
    where: str,
    names: Any,
    settings: list[Setting],
    *,
    some: bool = True,
    twins: bool = False,
) -> None:
    """Check that all are names of algorithms that run in the settings.

    With `twins`, also ``NAME.published``, the paper's version of an algorithm.
    """
    known = [a.name for a in settings[0].algorithms]
    if twins:
        known += [a.name for a in settings[0].published if a.name not in known]
    for name in as_texts(where, names) if some or names else ():
        one_of(where, name, known)


def _figures(where: str, record: Mapping[str, Any], key: str) -> Any:
    """Return the published numbers of a record, given directly or by their path."""
    try:
        return published(record.get(key, {}))
    except ValueError as error:
        raise ValueError(f"{where}.{key}: {error}") from None


def _check_figures(where: str, figures: Any, settings: list[Setting]) -> None:
    """Check published numbers: one, one per setting, or either by algorithm."""
    if isinstance(figures, Mapping):
        for name, figure in figures.items():
            if not isinstance(figure, str):  # else the paper gives no number
                _check_figures(f"{where}.{name}", figure, settings)
        return
    along = figures if isinstance(figures, list) else [figures]
    if isinstance(figures, list) and len(along) != len(settings):
        raise ValueError(
            f"{where}: {figures} is not one number for each of {len(settings)} settings"
        )
    for number in along:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError(f"{where}: {number!r} is not a number")

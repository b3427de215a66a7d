"""The experiment "cycle" of the papers: several searches on one environment per cycle.

``[environment]`` holds parameters of `generate_environment`, or a trace, from which
each cycle takes the free slots of another time span; ``[job]`` holds the fields of
`Request` and the window's shape; ``[algorithms]`` holds the searches.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern._kernels.request import REQUEST_FIELDS
from slotkern.environment import PRESETS, Environment, generate_environment
from slotkern.foundation.checks import one_of
from slotkern.studies.experiment import Columns, Experiment, Metric, named_object
from slotkern.studies.fields import (
    as_flag,
    as_table,
    as_text,
    only_keys,
    overlaid,
)
from slotkern.studies.metrics import COUNTS, METRICS, Windows, metric_of
from slotkern.studies.study import Algorithm, Setting, Study
from slotkern.studies.trace_source import environment_of_trace, trace_law

__all__ = [
    "CYCLE",
    "Search",
    "complete_environment",
    "count_windows",
    "environment_of",
    "published_form",
    "request_of_setting",
    "shape_of",
    "windows_of_cycle",
]

_ENVIRONMENT_KEYS = tuple(
    name
    for name in inspect.signature(generate_environment).parameters
    if name not in ("seed", "cycle")
)
_SEARCH_KEYS = ("criterion", "method", "alternatives", "twin", "options")
_METHODS = ("exact", "lite", "published", "published-lite")
#: Options of `find_window` without keys of their own; the seed is the cycle's number.
_OPTIONS = tuple(
    name
    for name, parameter in inspect.signature(sk.find_window).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
    and name not in ("shape", "method", "seed")
)
#: The metric that a built-in criterion optimizes, if the names differ.
_METRIC_OF = {"first": "start", "dependable": "nearest", "coordinated": "farthest"}


class Cycle(Experiment):
    """All searches of a cycle on the same random environment."""

    pictures: ClassVar = ("gantt", "neighbours", "utilization")
    timed: ClassVar = True

    def check(self, setting: Setting) -> Setting:
        """Return the setting with its preset's parameters and its algorithms' twins."""
        if "trace" in setting.environment:
            environment = trace_law(setting.environment)
        else:
            environment = complete_environment(setting.environment)
        extra = environment.get("extra", ())
        for name in setting.metrics:
            one_of("metrics", name, (*COUNTS, *METRICS, *extra))
        try:
            none = environment_of(replace(setting, environment=environment), 0).slots
            none = none[:0]
        except (TypeError, ValueError) as error:
            words = str(error).removeprefix("environment: ")
            raise ValueError(f"environment: {words}") from None
        only_keys("job", setting.job, (*REQUEST_FIELDS, "shape"))
        one_of("job.shape", shape_of(setting), ("square", "ragged"))
        for key in ("nodes", "volume"):
            if key not in setting.job:
                raise ValueError(f"job.{key}: is missing")
        try:
            request = request_of_setting(setting)
            sk.find_window(none, request)  # checks the request's filter
        except (TypeError, ValueError) as error:
            raise ValueError(f"job: {error}") from None
        algorithms = tuple(map(_complete, setting.algorithms))
        for algorithm in algorithms:
            search = Search.from_algorithm(algorithm)
            if algorithm.published:  # avoid its compilation
                method = "lite" if search.method == "published-lite" else "exact"
                search = replace(search, method=method)
            search(none, request, shape_of(setting), 0)
        return replace(
            setting,
            environment=environment,
            algorithms=algorithms,
            metrics=tuple(dict.fromkeys((*setting.metrics, *COUNTS))),
        )

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return the counts and metrics of the cycles, NaN if nothing was found.

        For several alternatives each metric is that of the best one by this metric.
        """
        chosen = [metric_of(name) for name in setting.metrics if name not in COUNTS]
        shape = (last - first, len(setting.algorithms))
        results: dict[str, NDArray[Any]] = {
            "slots": np.zeros(last - first, np.int32),
            "alternatives": np.zeros(shape, np.int32),
        }
        results |= {metric.name: np.full(shape, np.nan) for metric in chosen}
        searches = [
            Search.from_algorithm(algorithm) for algorithm in setting.algorithms
        ]
        for row, cycle in enumerate(range(first, last)):
            environment, found = _found(setting, searches, cycle)
            count = np.array([count_windows(some) for some in found])
            results["slots"][row] = environment.slots.size
            results["alternatives"][row] = count
            some = np.flatnonzero(count)
            if not some.size:
                continue
            windows = Windows(environment.slots, [found[index] for index in some])
            first_of = (count.cumsum() - count)[some]
            for metric in chosen:
                if metric.first:
                    results[metric.name][row, some] = metric.of(windows)[first_of]
                    continue
                best = np.maximum if metric.more_is_better else np.minimum
                values = best.reduceat(metric.of(windows), first_of)
                results[metric.name][row, some] = values
        return results

    def metric(self, name: str) -> Metric:
        """Return the description of a count, a metric or an extra column."""
        return COUNTS.get(name) or metric_of(name)

    def draw(self, kind: str, study: Study, record: Mapping[str, Any]) -> Any:
        """Draw the chart of one cycle, with the windows of some algorithms.

        The kind "neighbours" shows the nodes of the windows only, with the times to the
        tasks before and after each part.
        """
        from slotkern.plotting.gantt import plot_gantt
        from slotkern.plotting.neighbours import plot_neighbours

        setting = study.sweep_of(record)[0]
        names = record.get("algorithms", []) if kind != "utilization" else []
        chosen = [
            algorithm
            for algorithm in setting.algorithms
            if algorithm.name in names
            and not Search.from_algorithm(algorithm).alternatives
        ]
        cycle = record.get("cycle", 0)
        environment, found = windows_of_cycle(setting, chosen, cycle)
        pairs = zip(chosen, found, strict=True)
        by_label = {algorithm.label: window for algorithm, window in pairs}
        windows = {k: window for k, window in by_label.items() if window is not None}
        title, none = study.title_of(record), [k for k in by_label if k not in windows]
        if none:
            title += f" (no window in cycle {cycle}: {', '.join(none)})"
        chart: Any = plot_neighbours if kind == "neighbours" else plot_gantt
        return chart(
            environment.slots,
            windows,
            tasks=environment.tasks,
            horizon=environment.horizon,
            title=title,
        )

    def dry_run(self, setting: Setting) -> None:
        """Raise ValueError for published algorithms that do not exist."""
        none = environment_of(setting, 0).slots[:0]
        for algorithm in setting.published:
            Search.from_algorithm(algorithm)(
                none, request_of_setting(setting), shape_of(setting), 0
            )


@dataclass(frozen=True)
class Search:
    """The search that an algorithm of this experiment makes.

    Attributes
    ----------
    name : str
        The name of the algorithm.
    criterion, method, options
        Arguments of `find_window`. With `alternatives`, `find_alternatives` is called
        instead, and each metric is that of the best alternative by this metric.
    twin : bool
        Whether the paper's algorithm (``method="published"`` or, for Lite,
        ``"published-lite"``) also runs on the first cycles, as ``NAME.published``.
    """

    name: str
    criterion: str
    method: str = "exact"
    alternatives: bool = False
    twin: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_algorithm(cls, algorithm: Algorithm) -> Search:
        """Make the search of an algorithm from its options, checked."""
        where, entry = f"algorithms.{algorithm.name}", algorithm.options
        only_keys(where, entry, _SEARCH_KEYS)
        method = one_of(f"{where}.method", entry.get("method", "exact"), _METHODS)
        alternatives, twin = (
            as_flag(f"{where}.{key}", entry.get(key, False))
            for key in ("alternatives", "twin")
        )
        if method.startswith("published") and twin:
            raise ValueError(f"{where}.twin: a published algorithm has none")
        options = as_table(f"{where}.options", entry.get("options", {}))
        known = (*_OPTIONS, "limit") if alternatives else _OPTIONS
        only_keys(f"{where}.options", options, known)
        criterion = as_text(f"{where}.criterion", entry.get("criterion"))
        return cls(algorithm.name, criterion, method, alternatives, twin, dict(options))

    def __call__(self, slots: Any, request: sk.Request, shape: str, cycle: int) -> Any:
        """Run the search; returns a Window, None, or Alternatives if it asks for them.

        Raises
        ------
        ValueError
            If the search does not accept the criterion, the method or an option.
        """
        where = f"algorithms.{self.name}"
        criterion: Any = self.criterion
        if ":" in self.criterion:
            criterion = named_object(f"{where}.criterion", self.criterion)
        options: dict[str, Any] = {"criterion": criterion, "method": self.method}
        options |= {"shape": shape, **self.options}
        try:
            if self.alternatives:
                return sk.find_alternatives(slots, request, **options)
            return sk.find_window(slots, request, seed=cycle, **options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error


def _complete(algorithm: Algorithm) -> Algorithm:
    """Fill in the fields of an algorithm that follow from its search."""
    search = Search.from_algorithm(algorithm)
    return replace(
        algorithm,
        published=search.method.startswith("published"),
        twin=published_form(algorithm) if search.twin else None,
        aim=_METRIC_OF.get(search.criterion, search.criterion),
    )


def published_form(algorithm: Algorithm) -> Algorithm:
    """Return the paper's own version of an algorithm."""
    lite = algorithm.options.get("method") == "lite"
    method = "published-lite" if lite else "published"
    return Algorithm(
        f"{algorithm.name}.published",
        f"{algorithm.label}, as published",
        {**algorithm.options, "method": method, "twin": False},
        published=True,
    )


def environment_of(setting: Setting, cycle: int) -> Environment:
    """Return the environment of one cycle."""
    law = setting.environment
    if "trace" in law:
        return environment_of_trace(law, setting.seed, cycle)
    return generate_environment(**law, seed=setting.seed, cycle=cycle)


def request_of_setting(setting: Setting) -> sk.Request:
    """Return a setting's job as a request."""
    return sk.Request(**{k: v for k, v in setting.job.items() if k != "shape"})


def shape_of(setting: Setting) -> str:
    """Return the shape of the job's window."""
    shape: str = setting.job.get("shape", "square")
    return shape


def windows_of_cycle(
    setting: Setting, algorithms: Sequence[Algorithm], cycle: int
) -> tuple[Environment, list[Any]]:
    """Return one cycle's environment and the result of each algorithm in it.

    A result is a Window, Alternatives (with `alternatives`), or None.
    """
    return _found(setting, [Search.from_algorithm(each) for each in algorithms], cycle)


def _found(
    setting: Setting, searches: Sequence[Search], cycle: int
) -> tuple[Environment, list[Any]]:
    environment = environment_of(setting, cycle)
    request, shape = request_of_setting(setting), shape_of(setting)
    # Preparing the slots pays off for several searches only.
    slots: Any = environment.slots
    if len(searches) > 1:
        slots = sk.SlotPool(slots)
    return environment, [search(slots, request, shape, cycle) for search in searches]


def count_windows(found: Any) -> int:
    """Return the number of windows found."""
    return 1 if isinstance(found, sk.Window) else len(found or ())


def complete_environment(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the preset's parameters as plain data, overridden by the given ones.

    A law of performance with both ends given draws real numbers unless it has
    ``integer = true``, as in `generate_environment`, regardless of the preset.
    """
    only_keys("environment", given, _ENVIRONMENT_KEYS)
    preset = one_of("environment.preset", given.get("preset", "aep"), PRESETS)
    plain = {name: _plain(value) for name, value in PRESETS[preset].items()}
    merged = {"preset": preset} | overlaid(plain, given)
    as_table("environment.extra", merged["extra"])
    law = given.get("performance")
    if isinstance(law, Mapping) and {"low", "high"} <= law.keys():
        merged["performance"] = {"integer": False} | dict(law)
    return merged


def _plain(value: Any) -> Any:
    """Convert laws to tables and tuples to lists, as in a TOML file."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return list(value) if isinstance(value, tuple) else value


#: The experiment "cycle".
CYCLE = Cycle()

"""Measurement of a study's searches on this machine, next to the published times.

Times differ from run to run, so they are not part of the campaign's data. They are
measured for a report, or by ``slotkern bench scaling``, in one process, with the
searches taking turns on the same environments. They are never judged by their distance
to the published times. The results of a search and its published form are compared.

For AEP's algorithms and CSA the compiled loop alone is timed: one compiled call repeats
it on slots numbered by `slotkern.published.loops`. The overhead of Python and numpy
around a loop of 0.1 ms would hide its growth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import thread_time_ns
from typing import Any

import numpy as np

import slotkern as sk
from slotkern.studies.cycle import (
    Search,
    count_windows,
    environment_of,
    published_form,
    request_of_setting,
    shape_of,
)
from slotkern.studies.papers import published
from slotkern.studies.study import Algorithm, Setting, Study

__all__ = ["Timing", "growth_exponent", "measure_times"]

#: Numbers of environments on which searches, and the slow published ones, are timed.
_CYCLES, _TWIN_CYCLES = 20, 5
#: A compiled loop is repeated until a measurement takes this many ns; the least of this
#: many measurements is the result.
_LEAST_NS, _MEASUREMENTS = 2_000_000, 3


@dataclass(frozen=True)
class Timing:
    """Time of one search in one setting in ms, from the array of slots on.

    `published` is the mean that the paper prints for its program on its machine; `here`
    is the median of the CPU time over some environments on this machine (CPU time,
    because on a busy machine long calls are interrupted more often). `twin` is the same
    for the paper's own algorithm on this machine; for ragged algorithms for its
    compiled loop alone. NaN if not printed or not measured.
    """

    setting: Setting
    label: str
    per_alternative: bool
    published: float
    here: float
    twin: float


def measure_times(
    study: Study, *, twins: bool, cycles: int = _CYCLES
) -> list[list[Timing]]:
    """Time the searches of the study's ``[[timing]]`` tables.

    Parameters
    ----------
    study : Study
        The study that was run.
    twins : bool
        Whether the papers' algorithms, which are slow, are timed too.
    cycles : int
        Number of environments; the papers' algorithms use at most five.

    Returns
    -------
    list of list of Timing
        One list for each table, sorted by setting, then algorithm.

    Raises
    ------
    AssertionError
        If a search and its published form return different results.
    """
    return [list(_measured(study, record, twins, cycles)) for record in study.timings]


def growth_exponent(x: Sequence[float], times: Sequence[float]) -> float:
    """Fit time = c * x**k by least squares of the logarithms and return k.

    NaN for fewer than two times, or if a time is NaN.

    Examples
    --------
    >>> from slotkern.studies.times import growth_exponent
    >>> round(growth_exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    if len(times) < 2 or not all(time > 0 for time in times):
        return math.nan
    log_x = np.log(np.asarray(x, float))
    log_x -= log_x.mean()
    return float(log_x @ np.log(times) / (log_x @ log_x))


def _measured(
    study: Study, record: Mapping[str, Any], twins: bool, cycles: int
) -> Iterator[Timing]:
    """Yield the times of one ``[[timing]]`` table."""
    figures = published(record.get("published", {}))
    each = published(record.get("per_alternative", {}))
    chosen = [study.algorithms[n] for n in record.get("algorithms", list(figures))]
    here = {a.name: a for a in chosen if not a.published}
    paper = {a.name: a for a in chosen if a.published}
    known = record.get("twins", [a.name for a in chosen if a.twin])
    paper |= {a.name: published_form(a) for a in chosen if a.name in known}
    settings = study.sweep_of(record)
    took = _times(settings, here, cycles)
    few = min(cycles, _TWIN_CYCLES)
    twin = _times(settings, paper if twins else {}, few)
    nothing = math.nan, math.nan
    for index, setting in enumerate(settings):
        for name in took[index].found.keys() & twin[index].found.keys():
            pairs = zip(took[index].found[name], twin[index].found[name], strict=False)
            for pair in pairs:
                _check_same(here[name], *pair)
        ours, theirs = took[index].medians(), twin[index].medians()
        for algorithm in chosen:
            name, label = algorithm.name, algorithm.label
            times = zip(ours.get(name, nothing), theirs.get(name, nothing), strict=True)
            whole, part = times
            yield Timing(setting, label, False, _figure(figures, name, index), *whole)
            if name in each:
                label = f"{label}, per alternative"
                yield Timing(setting, label, True, _figure(each, name, index), *part)


@dataclass
class _Measured:
    """Times (ms) and results in one setting, by algorithm; one per environment.

    `took` holds the time of each search, `each` the time per window found.
    """

    took: dict[str, list[float]] = field(default_factory=dict)
    each: dict[str, list[float]] = field(default_factory=dict)
    found: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, name: str, spent: float, found: Any) -> None:
        """Add one search that took `spent` milliseconds."""
        self.took.setdefault(name, []).append(spent)
        self.each.setdefault(name, []).append(spent / max(count_windows(found), 1))
        self.found.setdefault(name, []).append(found)

    def medians(self) -> dict[str, tuple[float, float]]:
        """Return the median times by algorithm, without the first, which warms up."""
        return {
            name: (median(self.took[name][1:]), median(self.each[name][1:]))
            for name in self.took
        }


def _times(
    settings: Sequence[Setting], algorithms: Mapping[str, Algorithm], cycles: int
) -> list[_Measured]:
    """Time the algorithms in all settings.

    The settings take turns within each cycle, so that temporary load on the machine
    affects all sizes alike.
    """
    times = [_Measured() for _ in settings]
    searches = [Search.from_algorithm(algorithm) for algorithm in algorithms.values()]
    for cycle in (0, *range(cycles)) if algorithms else ():
        for setting, measured in zip(settings, times, strict=True):
            slots = environment_of(setting, cycle).slots
            request, shape = request_of_setting(setting), shape_of(setting)
            for name, search in zip(algorithms, searches, strict=True):
                begin = thread_time_ns()
                found = search(slots, request, shape, cycle)
                spent: float = thread_time_ns() - begin
                loop = _loop(search, slots, request, shape, cycle)
                if loop is not None:
                    starts, expected = loop(1), _starts(found)
                    assert starts == expected, (
                        f"{name}: published and its loop differ: {expected}, {starts}"
                    )
                    spent = _repeated(loop)
                measured.add(name, 1e-6 * spent, found)
    return times


def _loop(
    search: Search, slots: Any, request: sk.Request, shape: str, cycle: int
) -> Callable[[int], list[float]] | None:
    """Return the compiled loop of a published search; None if it has none."""
    if search.method != "published" or shape != "ragged" or search.options:
        return None
    from slotkern.published import loops

    if request.where is not None or request.limits:
        return None
    if search.criterion not in loops.CRITERIA:
        return None
    if search.alternatives and search.criterion != "first":
        return None
    criterion = None if search.alternatives else search.criterion
    return loops.loop_of(slots, request, criterion, cycle)


def _repeated(loop: Callable[[int], list[float]]) -> float:
    """Return the time of one run of a compiled loop in ns, the least of several."""
    times = 1
    while True:
        begin = thread_time_ns()
        loop(times)
        spent = thread_time_ns() - begin
        if spent >= _LEAST_NS:
            break
        times = math.ceil(times * max(2.0, 1.2 * _LEAST_NS / max(spent, 1)))
    least = spent / times
    for _ in range(_MEASUREMENTS - 1 if times > 1 else 0):
        begin = thread_time_ns()
        loop(times)
        least = min(least, (thread_time_ns() - begin) / times)
    return least


def _starts(found: Any) -> list[float]:
    """Return the starts of a window, of alternatives, or of nothing."""
    if found is None or isinstance(found, sk.Window):
        return [] if found is None else [found.start]
    return list(found.start.tolist())


def _check_same(algorithm: Algorithm, here: Any, printed: Any) -> None:
    """Assert that a sweep and its published form returned the same result.

    Searches by value are skipped: their published form counts whole units of money and
    may find less.
    """
    search = Search.from_algorithm(algorithm)
    if search.criterion not in sk.CRITERIA:
        return
    if search.alternatives:
        same = here.start.tolist() == printed.start.tolist()
    else:
        values = [
            None if window is None else window.value for window in (here, printed)
        ]
        same = values[0] == values[1]
    assert same, f"{algorithm.name}: published and exact differ: {here}, {printed}"


def _figure(figures: Mapping[str, Any], name: str, index: int) -> float:
    """Return the published time of an algorithm in the setting of this index."""
    figure = figures.get(name, math.nan)
    return float(figure[index] if isinstance(figure, list) else figure)

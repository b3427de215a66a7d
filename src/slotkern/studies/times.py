"""How long a study's searches take on this machine, beside the published times.

Times are no results: they differ from run to run and stay out of the campaign's data.
They are measured when a report is made, or by ``slotkern bench scaling``, in one
process, the searches in turns on the same environments, and are never judged by how
close they are to the published ones. What a search and its published form find is
compared while they are timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    request_of,
    shape_of,
)
from slotkern.studies.papers import published
from slotkern.studies.study import Algorithm, Setting, Study

__all__ = ["Timing", "growth_exponent", "measure_times"]

#: Environments on which the searches, and the papers' own slow ones, are timed.
_CYCLES, _TWIN_CYCLES = 20, 5


@dataclass(frozen=True)
class Timing:
    """Milliseconds that one search takes in one setting, from the array of slots on.

    `published` is the mean that the paper prints, of its program on its machine;
    `here` the median over some environments on this one, of CPU time: on a busy machine
    a long call is interrupted more often than a short one. `twin` is that of the
    paper's own algorithm on this machine. NaN: not printed, or not measured.
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
    """Measure the searches that the study's ``[[timing]]`` tables ask for.

    Parameters
    ----------
    study : Study
        What was run.
    twins : bool
        Whether the papers' own algorithms are timed too; they are slow.
    cycles : int
        On how many environments; the papers' own algorithms on at most five.

    Returns
    -------
    list of list of Timing
        One list for each table, by setting, then algorithm.

    Raises
    ------
    AssertionError
        If a search and the published form of it differ in an answer.
    """
    return [list(_measured(study, record, twins, cycles)) for record in study.timings]


def growth_exponent(x: Sequence[float], times: Sequence[float]) -> float:
    """Fit time = c * x**k by least squares of the logarithms and return k.

    NaN where fewer than two times, or not all of them, are known.

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
    for index, setting in enumerate(study.sweep_of(record)):
        here = {a.name: a for a in chosen if not a.published}
        paper = {a.name: a for a in chosen if a.published}
        known = record.get("twins", [a.name for a in chosen if a.twin])
        paper |= {a.name: published_form(a) for a in chosen if a.name in known}
        took, found = _median_times(setting, here, cycles)
        few = min(cycles, _TWIN_CYCLES)
        twin, printed = _median_times(setting, paper if twins else {}, few)
        for name in found.keys() & printed.keys():
            for pair in zip(found[name], printed[name], strict=False):
                _check_same(here[name], *pair)
        nothing = math.nan, math.nan
        for algorithm in chosen:
            name, label = algorithm.name, algorithm.label
            times = zip(took.get(name, nothing), twin.get(name, nothing), strict=True)
            whole, part = times
            yield Timing(setting, label, False, _figure(figures, name, index), *whole)
            if name in each:
                label = f"{label}, per alternative"
                yield Timing(setting, label, True, _figure(each, name, index), *part)


def _median_times(
    setting: Setting, algorithms: Mapping[str, Algorithm], cycles: int
) -> tuple[dict[str, tuple[float, float]], dict[str, list[Any]]]:
    """Return milliseconds by name, of a search and per window, and what was found.

    All take turns, after one search of each to warm up.
    """
    answers: dict[str, list[Any]] = {name: [] for name in algorithms}
    took: dict[str, list[float]] = {name: [] for name in algorithms}
    each: dict[str, list[float]] = {name: [] for name in algorithms}
    request, shape = request_of(setting), shape_of(setting)
    searches = {name: Search.of(each) for name, each in algorithms.items()}
    for cycle in (0, *range(cycles)) if algorithms else ():
        slots = environment_of(setting, cycle).slots
        for name, search in searches.items():
            begin = thread_time_ns()
            found = search(slots, request, shape, cycle)
            spent = 1e-6 * (thread_time_ns() - begin)
            took[name].append(spent)
            each[name].append(spent / max(count_windows(found), 1))
            answers[name].append(found)
    times = {name: (median(took[name][1:]), median(each[name][1:])) for name in took}
    return times, answers


def _check_same(algorithm: Algorithm, here: Any, printed: Any) -> None:
    """Fail unless a sweep and its published form found the same.

    By value the published form counts whole money, and may find less.
    """
    search = Search.of(algorithm)
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

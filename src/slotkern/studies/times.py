"""How long a study's searches take on this machine, beside the published times.

Times are no results: they differ from run to run and stay out of the campaign's data.
They are measured when a report is made, or by ``slotkern bench scaling``, in one
process, the searches in turns on the same environments, and are never judged by how
close they are to the published ones. What a search and its published form find is
compared while they are timed.

Of AEP's algorithms and CSA, the compiled loop alone is timed: one compiled call repeats
it on slots that `slotkern.published.loops` numbered before. Python and numpy around a
loop of 0.1 ms would hide how it grows.
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
    request_of,
    shape_of,
)
from slotkern.studies.papers import published
from slotkern.studies.study import Algorithm, Setting, Study

__all__ = ["Timing", "growth_exponent", "measure_times"]

#: Environments on which the searches, and the papers' own slow ones, are timed.
_CYCLES, _TWIN_CYCLES = 20, 5
#: A compiled loop is repeated until a measurement takes this long (ns), and the least
#: of this many measurements counts.
_LEAST_NS, _MEASUREMENTS = 2_000_000, 3


@dataclass(frozen=True)
class Timing:
    """Milliseconds that one search takes in one setting, from the array of slots on.

    `published` is the mean that the paper prints, of its program on its machine;
    `here` the median over some environments on this one, of CPU time: on a busy machine
    a long call is interrupted more often than a short one. `twin` is that of the
    paper's own algorithm on this machine: of its compiled loop alone for the ragged
    algorithms. NaN: not printed, or not measured.
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
    """Times (ms) and answers in one setting, by algorithm; one for each environment.

    `took` holds the time of a search, `each` that time for each window found.
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
        """Return the median times by algorithm; the first warmed up and is left out."""
        return {
            name: (median(self.took[name][1:]), median(self.each[name][1:]))
            for name in self.took
        }


def _times(
    settings: Sequence[Setting], algorithms: Mapping[str, Algorithm], cycles: int
) -> list[_Measured]:
    """Time the algorithms in all settings.

    The settings take turns within each cycle, so that a busy minute of the machine does
    not count for one size alone.
    """
    times = [_Measured() for _ in settings]
    searches = [Search.of(algorithm) for algorithm in algorithms.values()]
    for cycle in (0, *range(cycles)) if algorithms else ():
        for setting, measured in zip(settings, times, strict=True):
            slots = environment_of(setting, cycle).slots
            request, shape = request_of(setting), shape_of(setting)
            for name, search in zip(algorithms, searches, strict=True):
                begin = thread_time_ns()
                found = search(slots, request, shape, cycle)
                spent: float = thread_time_ns() - begin
                loop = _loop(search, slots, request, shape, cycle)
                if loop is not None:
                    starts, told = loop(1), _starts(found)
                    assert starts == told, (
                        f"{name}: published and its loop differ: {told}, {starts}"
                    )
                    spent = _repeated(loop)
                measured.add(name, 1e-6 * spent, found)
    return times


def _loop(
    search: Search, slots: Any, request: sk.Request, shape: str, cycle: int
) -> Callable[[int], list[float]] | None:
    """Return the compiled loop of a published search, None if there is none alone."""
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
    """Return the nanoseconds of one run of a compiled loop, the least of several."""
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

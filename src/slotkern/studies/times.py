"""How long a study's searches take on this machine, beside the published times.

Times are no results: they differ from run to run and stay out of the campaign's data.
They are measured when a report is made, in one process, the searches in turns on the
same environments, and are never judged by how close they are to the published ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from slotkern.environment import generate_environment
from slotkern.studies.cycle import count_windows
from slotkern.studies.papers import published
from slotkern.studies.study import Algorithm, Setting, Study

__all__ = ["Timing", "measure_times"]

#: Environments on which the searches, and the papers' own slow ones, are timed.
_CYCLES, _TWIN_CYCLES = 20, 5


@dataclass(frozen=True)
class Timing:
    """Milliseconds that one search takes in one setting, from the array of slots on.

    `published` is the mean that the paper prints, of its program on its machine;
    `here` the median over some environments on this one; `twin` that of the paper's
    own algorithm on this machine. NaN: not printed, or not measured.
    """

    setting: Setting
    label: str
    per_alternative: bool
    published: float
    here: float
    twin: float


def measure_times(study: Study, *, twins: bool) -> list[list[Timing]]:
    """Measure the searches that the study's ``[[timing]]`` tables ask for.

    Parameters
    ----------
    study : Study
        What was run.
    twins : bool
        Whether the papers' own algorithms are timed too; they are slow.

    Returns
    -------
    list of list of Timing
        One list for each table, by setting, then algorithm.
    """
    return [list(_measured(study, record, twins)) for record in study.timings]


def _measured(study: Study, record: Mapping[str, Any], twins: bool) -> Iterator[Timing]:
    """Yield the times of one ``[[timing]]`` table."""
    figures = published(record.get("published", {}))
    each = published(record.get("per_alternative", {}))
    chosen = [study.algorithms[n] for n in record.get("algorithms", list(figures))]
    for index, setting in enumerate(study.sweep_of(record)):
        here = {a.name: a for a in chosen if not a.is_published}
        paper = {a.name: a for a in chosen if a.is_published}
        paper |= {a.name: a.published for a in chosen if a.twin}
        took = _median_times(setting, here, study.seed, _CYCLES)
        twin = _median_times(setting, paper if twins else {}, study.seed, _TWIN_CYCLES)
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
    setting: Setting, algorithms: Mapping[str, Algorithm], seed: int, cycles: int
) -> dict[str, tuple[float, float]]:
    """Return milliseconds by name, of a search and per window that it finds.

    All take turns, after one search of each to warm up.
    """
    took: dict[str, list[float]] = {name: [] for name in algorithms}
    each: dict[str, list[float]] = {name: [] for name in algorithms}
    request, shape = setting.request, setting.shape
    for cycle in (0, *range(cycles)) if algorithms else ():
        law = setting.environment
        slots = generate_environment(**law, seed=seed, cycle=cycle).slots
        for name, algorithm in algorithms.items():
            begin = time.perf_counter()
            found = algorithm.search(slots, request, shape, cycle)
            spent = 1e3 * (time.perf_counter() - begin)
            took[name].append(spent)
            each[name].append(spent / max(count_windows(found), 1))
    return {name: (median(took[name][1:]), median(each[name][1:])) for name in took}


def _figure(figures: Mapping[str, Any], name: str, index: int) -> float:
    """Return the published time of an algorithm in the setting of this index."""
    figure = figures.get(name, math.nan)
    return float(figure[index] if isinstance(figure, list) else figure)

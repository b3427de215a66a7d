"""The experiment "distance": policies against a bound on every schedule of a batch.

Cycles are those of the experiment "batch". Each policy schedules the same batch; its
distance is the part, in per cent of the bound of `Optimal`, by which its target exceeds
the bound. So the distance from the best schedule is at most that, and at least that
minus the distance of `Optimal` itself. Distances are compared over the cycles in which
all algorithms schedule all jobs; the others are NaN.

``[job]`` has two more keys: ``gap`` and ``max_work`` of `Optimal`. An algorithm may
have ``domains``: the nodes with even and with odd ids are two domains, which are
searched together (`slotkern.Domains`), or each for every second job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

import slotkern as sk
from slotkern.foundation.checks import one_of
from slotkern.studies.batches import BATCH, Draw, PolicyRun, draw_cycle
from slotkern.studies.experiment import Columns, Experiment, Metric, columns_of_cycles
from slotkern.studies.fields import as_count, as_number, only_keys
from slotkern.studies.study import Algorithm, Setting

__all__ = ["DISTANCE"]

#: How jobs use the two domains: windows over both, or each job within one.
_DOMAINS = ("together", "apart")
_LAWS = {"gap": 0.01, "max_work": 10_000}
_METRICS = {
    metric.name: metric
    for metric in (
        Metric("distance", "distance from the bound", "%"),
        Metric("failed_jobs", "jobs that failed", "%"),
        Metric("compared", "cycles with all jobs scheduled", "%", more_is_better=True),
        Metric("proven", "cycles proven", "%", more_is_better=True, shared=True),
    )
}


class DistanceExperiment(Experiment):
    """All policies on the same random batch, against the bound of `Optimal`."""

    def check(self, setting: Setting) -> Setting:
        """Return the setting with the laws of batches and the options of `Optimal`."""
        for name in setting.metrics:
            one_of("metrics", name, _METRICS)
        job = {key: value for key, value in setting.job.items() if key not in _LAWS}
        own = _LAWS | {k: v for k, v in setting.job.items() if k in _LAWS}
        as_number("job.gap", own["gap"], least=0)
        as_count("job.max_work", own["max_work"])
        plain = []
        for each in setting.algorithms:
            where, options = f"algorithms.{each.name}", dict(each.options)
            how = options.pop("domains", None)
            if how is not None:
                one_of(f"{where}.domains", how, _DOMAINS)
            if options.get("policy") == "optimal":
                only_keys(where, each.options, ("policy",))
            else:
                plain.append(replace(each, options=options))
        checked = BATCH.check(
            replace(setting, job=job, metrics=(), algorithms=tuple(plain))
        )
        return replace(
            setting, environment=checked.environment, job={**checked.job, **own}
        )

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return distances and shares in per cent."""

        def cycle(number: int) -> Iterator[Mapping[str, float]]:
            drawn = draw_cycle(setting, number)
            best = _optimum(setting, drawn)
            values, failed = [], []
            for algorithm in setting.algorithms:
                made = _schedules(algorithm, setting, drawn, best)
                values.append(sum(each.value for each in made))
                failed.append(sum(int((~each.scheduled).sum()) for each in made))
            complete = best.scheduled.all() and not any(failed)
            for value, lost in zip(values, failed, strict=True):
                distance = value / best.bound - 1 if complete else np.nan
                yield {
                    "distance": 100 * distance,
                    "failed_jobs": 100 * lost / len(drawn.batch),
                    "compared": 100.0 * complete,
                    "proven": 100.0 * bool(best.slices["proven"][0]),
                }

        return columns_of_cycles(setting, first, last, cycle)

    def metric(self, name: str) -> Metric:
        """Return the description of a metric."""
        return _METRICS[name]


def _optimum(setting: Setting, drawn: Draw) -> sk.Schedule:
    """Return the best schedule known, with its bound."""
    aim, target = setting.job["choice"].split()[:2]
    policy = sk.Optimal(setting.job["gap"], setting.job["max_work"])
    return sk.schedule_batch(drawn.slots, drawn.batch, policy, **{aim: target})


def _schedules(
    algorithm: Algorithm, setting: Setting, drawn: Draw, best: sk.Schedule
) -> list[sk.Schedule]:
    """Schedule a cycle's batch by an algorithm: one schedule, or one per domain."""
    options = dict(algorithm.options)
    how = options.pop("domains", None)
    if options["policy"] == "optimal":
        return [best]
    run = PolicyRun.from_algorithm(replace(algorithm, options=options))
    if how is None:
        return [run.schedule(drawn, setting)]
    slots = [drawn.slots[drawn.slots["node"] % 2 == k] for k in range(2)]
    if how == "together":
        pools = {f"d{k}": sk.SlotPool(each) for k, each in enumerate(slots)}
        joined = sk.Domains(pools).pool.slots
        return [run.schedule(replace(drawn, slots=joined), setting)]
    jobs, criteria = drawn.batch.requests, drawn.batch.criteria
    return [
        run.schedule(
            Draw(
                each,
                sk.Batch(jobs[k::2], criteria=criteria[k::2]),
                drawn.lengths[k::2],
            ),
            setting,
        )
        for k, each in enumerate(slots)
    ]


#: The experiment "distance".
DISTANCE = DistanceExperiment()

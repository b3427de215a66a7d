"""The experiment "flow": a section of a trace per cycle, replayed under every policy.

``[environment]`` names the trace, the selection of a cycle's jobs, and options of
`replay`; ``[algorithms]`` holds the policies. Each section begins on an empty machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import one_of, quote
from slotkern.replays.cycles import CyclePolicy
from slotkern.replays.jobs import WEEK, resample_weeks
from slotkern.replays.policies import POLICIES, QueuePolicy, resolve_policy
from slotkern.replays.replay import replay
from slotkern.replays.windows import WindowPolicy
from slotkern.studies.experiment import (
    Columns,
    Experiment,
    Metric,
    columns_of_cycles,
    named_object,
)
from slotkern.studies.fields import as_number, as_text, only_keys
from slotkern.studies.study import Algorithm, Setting
from slotkern.studies.trace_source import named_trace, trace_in
from slotkern.traces.trace import Trace

__all__ = ["FLOW", "flow_of_cycle", "sections"]

#: Keys that are passed to `replay`.
_OPTIONS = (
    *("cluster", "load", "more_processors", "estimates", "overrun", "width"),
    "prices",
)
_KEYS = ("trace", "clean", "draw", "days", *_OPTIONS)
#: Consecutive sections of the trace, or weeks sampled with replacement.
_DRAWS = ("sections", "weeks")
_SECONDS = "s"
_METRICS = {
    metric.name: metric
    for metric in (
        Metric("jobs", "number of jobs"),
        Metric("dropped", "jobs left out"),
        Metric("makespan", "makespan", _SECONDS),
        Metric("utilization", "utilization", more_is_better=True),
        Metric("throughput", "throughput", "jobs/h", more_is_better=True),
        Metric("response_mean", "mean response", _SECONDS),
        Metric("slowdown_mean", "mean slowdown"),
        *(
            Metric(f"{name}_{part}", f"{words}, {label}", unit)
            for name, words, unit in (
                ("wait", "wait", _SECONDS),
                ("bounded_slowdown", "bounded slowdown", ""),
            )
            for part, label in (
                ("mean", "mean"),
                ("median", "median"),
                ("p90", "90%"),
                ("p95", "95%"),
                ("p99", "99%"),
                ("max", "most"),
            )
        ),
        Metric("queue_max", "longest queue", "jobs"),
        Metric("fairness", "fairness between users", more_is_better=True),
        Metric("cost", "cost", "money"),
    )
}


class Flow(Experiment):
    """All policies on the same section of a trace."""

    def check(self, setting: Setting) -> Setting:
        """Return the setting with the trace's digest and the selection's defaults."""
        given = setting.environment
        only_keys("environment", given, _KEYS)
        only_keys("job", setting.job, ())
        for name in setting.metrics:
            one_of("metrics", name, _METRICS)
        how = one_of("environment.draw", given.get("draw", "sections"), _DRAWS)
        days = as_number("environment.days", given.get("days", 7), above=0)
        if how == "weeks" and days % 7:
            raise ValueError(f"environment.days: {days:g} are no whole weeks")
        prices = given.get("prices")
        if prices is not None and not isinstance(prices, Mapping):
            raise ValueError(
                "environment.prices must be a table of start and price, "
                f"such as {{start = [0], price = [1]}}, got {quote(prices)}"
            )
        environment = {**given, **named_trace(given), "draw": how, "days": days}
        setting = replace(setting, environment=environment)
        try:
            trace_in(environment)
            flow = flow_of_cycle(setting, 0)
            replay(
                flow.with_jobs(flow.jobs[:1], {}), policy="fcfs", **_options(setting)
            )
        except (TypeError, ValueError) as error:
            words = str(error).removeprefix("environment.")
            raise ValueError(f"environment.{words}") from None
        for algorithm in setting.algorithms:
            resolve_policy(_policy(algorithm))
        return setting

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return the metrics of the replays of each section.

        Raises
        ------
        ValueError
            For a cycle beyond the trace's sections.
        """
        policies = [_policy(algorithm) for algorithm in setting.algorithms]

        def cycle(number: int) -> Iterator[Mapping[str, float]]:
            flow = flow_of_cycle(setting, number)
            for policy in policies:
                done = replay(flow, policy=policy, nodes=False, **_options(setting))
                yield done.metrics()

        return columns_of_cycles(setting, first, last, cycle)

    def metric(self, name: str) -> Metric:
        """Return the description of a metric."""
        return _METRICS[name]


def sections(trace: Trace, days: float) -> NDArray[np.int64]:
    """Return the section of each job: the number of `days` since the first submission.

    Jobs with unknown submission are in section -1.
    """
    submit = trace.jobs["submit"]
    known = submit >= 0
    if not known.any():
        raise ValueError("trace: no submission is known")
    since = np.where(known, submit - submit[known].min(), -1.0)
    return np.floor(since / (days * 86400.0)).astype(np.int64)


def flow_of_cycle(setting: Setting, cycle: int) -> Trace:
    """Return the jobs of one cycle.

    Raises
    ------
    ValueError
        For a cycle beyond the trace's sections.
    """
    environment = setting.environment
    trace, days = trace_in(environment), environment["days"]
    if environment["draw"] == "weeks":
        spawned = np.random.SeedSequence(setting.seed, spawn_key=(cycle,))
        seed = int(spawned.generate_state(1)[0])
        return resample_weeks(trace, seed, round(days * 86400 / WEEK))
    section = sections(trace, days)
    count = int(section.max()) + 1
    if cycle >= count:
        raise ValueError(
            f"cycle {cycle}: {environment['trace']} has {count} sections of {days:g} "
            f"days; run {count} cycles, or draw weeks"
        )
    return trace.with_jobs(trace.jobs[section == cycle], {})


def _options(setting: Setting) -> Mapping[str, Any]:
    return {
        key: setting.environment[key] for key in _OPTIONS if key in setting.environment
    }


def _policy(
    algorithm: Algorithm,
) -> str | QueuePolicy | WindowPolicy | CyclePolicy:
    """Return the policy that an algorithm names: one of `POLICIES`, or the user's."""
    where = f"algorithms.{algorithm.name}"
    only_keys(where, algorithm.options, ("policy",))
    name = as_text(f"{where}.policy", algorithm.options.get("policy"))
    if ":" not in name:
        return one_of(f"{where}.policy", name, POLICIES)
    found = named_object(f"{where}.policy", name)
    if not isinstance(found, QueuePolicy | WindowPolicy | CyclePolicy):
        raise ValueError(f"{where}.policy: {name!r} is not a policy of replays")
    return found


#: The experiment "flow".
FLOW = Flow()

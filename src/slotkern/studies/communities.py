"""The experiment "community": one workload per cycle, simulated under every scenario.

It is that of "Exploring decentralized dynamic scheduling for grids and clouds using the
community-aware scheduling algorithm" (Huang et al. 2011), section 5. ``[environment]``
holds parameters of `generate_community`, or names a trace and holds those of
`community_from_trace`; ``[algorithms]`` holds the scenarios. All scenarios of a cycle
have the same jobs and nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from slotkern.communities.result import CommunityRun, compare_communities
from slotkern.communities.scenarios import (
    SCENARIOS,
    Centralized,
    Community,
    Independent,
)
from slotkern.communities.simulate import LOCAL_POLICIES, simulate_community
from slotkern.communities.workload import (
    CommunityWorkload,
    community_from_trace,
    generate_community,
)
from slotkern.foundation.checks import one_of
from slotkern.studies.experiment import Columns, Experiment, Metric, columns_of_cycles
from slotkern.studies.fields import as_flag, only_keys
from slotkern.studies.study import Algorithm, Setting, Study
from slotkern.studies.trace_source import named_trace, trace_in

__all__ = ["COMMUNITY", "workload_of_cycle"]

_GENERATED = ("preset", "jobs", "nodes")
_TRACED = ("homes", "sample", "squeeze", "windows", "estimates")
_SECONDS = "s"
_PER_JOB = "a job"
_METRICS = {
    metric.name: metric
    for metric in (
        Metric("completion", "completed jobs, share", more_is_better=True),
        Metric("response", "response time", _SECONDS),
        Metric("waiting", "waiting time", _SECONDS),
        Metric("waiting_median", "median waiting time", _SECONDS),
        Metric("slowdown", "slowdown"),
        Metric("own", "share of jobs on their own node"),
        Metric("moved", "share of jobs that were moved"),
        Metric("uptime", "uptime", _SECONDS),
        Metric("utilization", "utilization", more_is_better=True),
        Metric("request", "REQUEST", _PER_JOB),
        Metric("request_others", "REQUEST to others", _PER_JOB),
        Metric("accept_request", "ACCEPT[R]", _PER_JOB),
        Metric("assign_request", "ASSIGN[R]", _PER_JOB),
        Metric("inform", "INFORM", _PER_JOB),
        Metric("accept_inform", "ACCEPT[I]", _PER_JOB),
        Metric("assign_inform", "ASSIGN[I]", _PER_JOB),
        Metric("receipt", "RECEIPT", _PER_JOB),
        Metric("revoke", "REVOKE", _PER_JOB),
        Metric("messages", "messages", _PER_JOB),
    )
}


class CommunityExperiment(Experiment):
    """All scenarios on the same random workload."""

    pictures: ClassVar = ("states", "flow")

    def check(self, setting: Setting) -> Setting:
        """Return the setting with the digest of its trace, if it names one."""
        given = setting.environment
        traced = "trace" in given
        known = ("trace", "clean", *_TRACED) if traced else _GENERATED
        only_keys("environment", given, known)
        only_keys("job", setting.job, ())
        for name in setting.metrics:
            one_of("metrics", name, _METRICS)
        if traced:
            setting = replace(setting, environment={**given, **named_trace(given)})
            few = setting
        else:
            few = replace(setting, environment={**given, "jobs": 1})
        try:
            generate_community(**{k: v for k, v in given.items() if k in _GENERATED})
            nodes = len(workload_of_cycle(few, 0).nodes)
        except (TypeError, ValueError) as error:
            words = str(error).removeprefix("environment.")
            raise ValueError(f"environment.{words}") from None
        for algorithm in setting.algorithms:
            _ScenarioRun.from_algorithm(algorithm).check(nodes)
        return setting

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return the metrics of each cycle's simulations."""
        runs = [
            _ScenarioRun.from_algorithm(algorithm) for algorithm in setting.algorithms
        ]

        def cycle(number: int) -> Iterator[Mapping[str, float]]:
            found = _simulated(setting, runs, number)
            common = None
            if any(run.common for run in runs):
                common = compare_communities(list(found.values()))
            for run in runs:
                yield found[run.key].metrics(common if run.common else None)

        return columns_of_cycles(setting, first, last, cycle)

    def metric(self, name: str) -> Metric:
        """Return the description of a metric."""
        return _METRICS[name]

    def draw(self, kind: str, study: Study, record: Mapping[str, Any]) -> Any:
        """Draw job states over time, or the flow of jobs between nodes.

        The kind "states" has a panel for each algorithm, a thin line for each cycle up
        to the named one, and their mean; the kind "flow" shows one cycle.
        """
        from slotkern.plotting.communities import plot_flow, plot_states

        setting = study.sweep_of(record)[0]
        names = record.get("algorithms", [a.name for a in setting.algorithms])
        chosen = [a for a in setting.algorithms if a.name in names]
        cycle = record.get("cycle", 0)
        where = f", {setting.label}" if setting.values else ""
        if kind == "flow":
            run = _ScenarioRun.from_algorithm(chosen[0])
            return plot_flow(
                _simulated(setting, [run], cycle)[run.key],
                title=f"{chosen[0].label}{where}",
            )
        runs = [_ScenarioRun.from_algorithm(algorithm) for algorithm in chosen]
        found = [_simulated(setting, runs, k) for k in range(cycle + 1)]
        return plot_states(
            {
                f"{algorithm.label}{where}": [each[run.key] for each in found]
                for algorithm, run in zip(chosen, runs, strict=True)
            }
        )


@dataclass(frozen=True)
class _ScenarioRun:
    """The parsed options of an algorithm: a scenario, and the jobs that it reports."""

    where: str
    key: str  # equal for algorithms with the same simulation
    scenario: Independent | Centralized | Community
    policy: str
    common: bool

    @classmethod
    def from_algorithm(cls, algorithm: Algorithm) -> _ScenarioRun:
        """Parse and check the options of an algorithm."""
        where, entry = f"algorithms.{algorithm.name}", dict(algorithm.options)
        common = as_flag(f"{where}.common", entry.pop("common", False))
        key = repr(sorted(entry.items()))
        base = SCENARIOS[
            one_of(f"{where}.scenario", entry.pop("scenario", None), SCENARIOS)
        ]
        policy = one_of(f"{where}.policy", entry.pop("policy", "fcfs"), LOCAL_POLICIES)
        only_keys(where, entry, [field.name for field in fields(base)])
        try:
            scenario = replace(base, **entry)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from None
        return cls(where, key, scenario, policy, common)

    def check(self, nodes: int) -> None:
        """Raise ValueError if a grid of this many nodes does not allow the scenario."""
        try:
            self.scenario.options(nodes, 0)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.where}: {error}") from None


def workload_of_cycle(setting: Setting, cycle: int) -> CommunityWorkload:
    """Return the jobs and the nodes of a cycle."""
    given = setting.environment
    seed = _seed(setting, cycle)
    if "trace" not in given:
        return generate_community(**given, seed=seed)
    options = {key: given[key] for key in _TRACED if key in given}
    offset = cycle % options.get("sample", 1)
    return community_from_trace(trace_in(given), **options, offset=offset, seed=seed)


def _simulated(
    setting: Setting, runs: list[_ScenarioRun], cycle: int
) -> dict[str, CommunityRun]:
    """Run each distinct simulation of a cycle once."""
    jobs, nodes = workload_of_cycle(setting, cycle)
    seed = _seed(setting, cycle)
    return {
        run.key: simulate_community(
            jobs, nodes, run.scenario, policy=run.policy, seed=seed
        )
        for run in {run.key: run for run in runs}.values()
    }


def _seed(setting: Setting, cycle: int) -> int:
    spawned = np.random.SeedSequence(setting.seed, spawn_key=(cycle,))
    return int(spawned.generate_state(1)[0])


#: The experiment "community".
COMMUNITY = CommunityExperiment()

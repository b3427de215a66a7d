"""Batches in a virtual organization: one batch a cycle, scheduled by every policy.

The experiment of "Preference-based fair resource sharing and scheduling optimization in
Grid VOs" (Toporkov et al. 2014), section 4. ``[environment]`` holds parameters of
`generate_environment` and the price of an owner's node, ``[job]`` the laws of the
batch, ``[algorithms]`` the policies. Every choice minimizes processor time under the
cost analogue of eq. (5), as the paper says for figure 4 and Table 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.environment import generate_environment
from slotkern.studies.cycle import complete_environment
from slotkern.studies.experiment import Columns, Experiment, Metric
from slotkern.studies.fields import as_count, as_list, as_number, one_of, only_keys
from slotkern.studies.study import Algorithm, Setting

__all__ = ["BATCH", "OWN", "Draw", "draw"]

#: The criteria among which each user's own is drawn.
OWN = ("start", "runtime", "finish", "cost")
#: The owner's node: its number, and its performance.
_NODE, _SPEED = 0, 6.5
#: Policies by name; what else an algorithm says are their fields.
_POLICIES: dict[str, Callable[..., Any]] = {
    "slicer": sk.BatchSlicer,
    "backfilling": sk.Backfilling,
    "bsf": sk.BSF,
}
#: Orders of the jobs by nodes * volume, which no policy knows by itself.
_WORK = {"most work": 1.0, "least work": -1.0}
_LAWS = {
    "jobs": 20,
    "nodes": (2, 5),
    "volume": (210.0, 400.0),
    "budget": (0.8, 1.6),
    "length": (0.2, 1.0),
}
_TIME = "time units"
_METRICS = {
    metric.name: metric
    for metric in (
        Metric("start", "start time", _TIME),
        Metric("runtime", "runtime", _TIME),
        Metric("finish", "finish time", _TIME),
        Metric("processor_time", "processor time", _TIME),
        Metric("cost", "cost", "money"),
        Metric("total_cost", "cost of the batch", "money"),
        Metric("alternatives", "alternatives a job", more_is_better=True),
        Metric("failed", "share of cycles with a job that failed"),
        Metric("failed_jobs", "share of jobs that failed"),
        Metric("real_start", "start time, true lengths", _TIME),
        Metric("real_processor_time", "processor time, true lengths", _TIME),
        Metric("used_time", "used time of the owner's node", _TIME),
        Metric("utilization", "utilization of the owner's node"),
        Metric("profit", "profit of the owner's node", "money", more_is_better=True),
    )
}
_OWNERS = {"used_time": "used", "utilization": "used", "profit": "profit"}


@dataclass(frozen=True)
class Draw:
    """One cycle's slots, batch, and true lengths as shares of the reserved ones."""

    slots: NDArray[np.void]
    batch: sk.Batch
    lengths: NDArray[np.float64]


class BatchExperiment(Experiment):
    """Every policy on the same random batch."""

    def check(self, setting: Setting) -> Setting:
        """Return the setting with its preset's parameters and the laws of batches."""
        given = dict(setting.environment)
        owner = as_number("environment.owner", given.pop("owner", 0.0), least=0)
        environment = complete_environment({"preset": "vo"} | given)
        only_keys("job", setting.job, _LAWS)
        job: dict[str, Any] = _LAWS | dict(setting.job)
        as_count("job.jobs", job["jobs"])
        for name in ("nodes", "volume", "budget", "length"):
            job[name] = _pair(f"job.{name}", job[name], whole=name == "nodes")
        if job["length"][1] > 1:
            raise ValueError(f"job.length: {job['length']} is not within (0, 1]")
        for name in setting.metrics:
            one_of("metrics", name, _METRICS)
            if name in _OWNERS and not owner:
                raise ValueError(f"metrics: {name!r} needs environment.owner")
        setting = replace(setting, environment={**environment, "owner": owner}, job=job)
        try:
            batch = draw(setting, 0).batch
        except (TypeError, ValueError) as error:
            raise ValueError(f"environment: {error}") from None
        for algorithm in setting.algorithms:
            _Run.of(algorithm).policy(batch)
        return setting

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return means over the scheduled jobs, NaN where there is none."""
        runs = [_Run.of(algorithm) for algorithm in setting.algorithms]
        shape = (last - first, len(runs))
        columns = {name: np.full(shape, np.nan) for name in setting.metrics}
        for row, cycle in enumerate(range(first, last)):
            drawn = draw(setting, cycle)
            schedules: dict[str, sk.Schedule] = {}
            for place, each in enumerate(runs):
                if each.key not in schedules:
                    schedules[each.key] = each.schedule(drawn)
                schedule = schedules[each.key]
                for name in setting.metrics:
                    value = _measure(name, schedule, each, drawn, setting)
                    columns[name][row, place] = value
        return columns

    def metric(self, name: str) -> Metric:
        """Return what is known of a metric."""
        return _METRICS[name]


@dataclass(frozen=True)
class _Run:
    """What an algorithm does: a policy, and which jobs it tells of."""

    where: str
    name: str
    options: Mapping[str, Any]
    most: int | None
    moves: str | None
    jobs: str | None

    @classmethod
    def of(cls, algorithm: Algorithm) -> _Run:
        """Return what a file says about an algorithm, checked."""
        where, entry = f"algorithms.{algorithm.name}", dict(algorithm.options)
        policy = one_of(f"{where}.policy", entry.pop("policy", None), _POLICIES)
        most, moves, jobs = (entry.pop(key, None) for key in ("most", "moves", "jobs"))
        only_keys(where, entry, [f.name for f in fields(_POLICIES[policy])])  # type: ignore[arg-type]
        if most is not None:
            as_count(f"{where}.most", most)
        if moves is not None:
            one_of(f"{where}.moves", moves, ("backfill",))
        if jobs is not None:
            one_of(f"{where}.jobs", jobs, OWN)
        return cls(where, policy, entry, most, moves, jobs)

    @property
    def key(self) -> str:
        """The same for those who share a schedule."""
        return repr((self.name, self.options, self.most))

    def policy(self, batch: sk.Batch) -> Any:
        """Return the policy for a batch; ValueError names the algorithm."""
        options = dict(self.options)
        by = options.get("by")
        if isinstance(by, str) and by in _WORK:
            options["by"] = [
                _WORK[by] * job.nodes * job.volume for job in batch.requests
            ]
        if isinstance(options.get("k"), list):
            options["k"] = tuple(options["k"])
        try:
            return _POLICIES[self.name](**options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.where}: {error}") from None

    def schedule(self, drawn: Draw) -> sk.Schedule:
        """Return the schedule of a cycle's batch."""
        policy = self.policy(drawn.batch)
        return sk.schedule_batch(drawn.slots, drawn.batch, policy, most=self.most)


def draw(setting: Setting, cycle: int) -> Draw:
    """Return what a cycle is about."""
    law = dict(setting.environment)
    owner = law.pop("owner")
    slots = generate_environment(**law, seed=setting.seed, cycle=cycle).slots
    if owner:
        others = slots[slots["node"] != _NODE]
        mine = np.zeros(1, slots.dtype)
        mine["end"], mine["performance"], mine["price"] = law["interval"], _SPEED, owner
        slots = np.concatenate([mine, others])
        slots = slots[np.lexsort((slots["node"], slots["start"]))]
    job, price = setting.job, law["price"]
    rng = np.random.default_rng([setting.seed, cycle, 2])
    count = job["jobs"]

    def uniform(law: str) -> NDArray[np.float64]:
        low, high = job[law]
        drawn: NDArray[np.float64] = rng.uniform(low, high, size=count)
        return drawn

    nodes = rng.integers(job["nodes"][0], job["nodes"][1] + 1, count)
    volumes = uniform("volume")
    # Of a job on nodes of the mean performance.
    market = price["level"] * 6.0 ** (price["exponent"] - 1)
    budgets = uniform("budget") * nodes * volumes * market
    columns = (nodes.tolist(), volumes.tolist(), budgets.tolist())
    requests = [
        sk.Request(n, volume, budget=budget)
        for n, volume, budget in zip(*columns, strict=True)
    ]
    criteria = [OWN[i] for i in rng.integers(0, len(OWN), count)]
    lengths = uniform("length")
    return Draw(slots, sk.Batch(requests, criteria=criteria), lengths)


def _measure(
    name: str, schedule: sk.Schedule, run: _Run, drawn: Draw, setting: Setting
) -> float:
    """Return one number of one schedule."""
    if name.startswith("real_"):
        done = schedule.execute(drawn.lengths, reschedule=run.moves)
        return _mean(getattr(done, name.removeprefix("real_")))
    if name in _OWNERS:
        node = schedule.nodes()[_NODE]
        share = setting.environment["interval"] if name == "utilization" else 1.0
        return float(node[_OWNERS[name]]) / share
    jobs = np.ones(len(drawn.batch), np.bool_)
    if run.jobs is not None:
        jobs = np.array(drawn.batch.criteria) == run.jobs
    scheduled = schedule.scheduled[jobs]
    match name:
        case "alternatives":
            return _mean(schedule.count[jobs].astype(np.float64))
        case "failed":
            return float(not scheduled.all())
        case "failed_jobs":
            return _mean((~scheduled).astype(np.float64))
        case "total_cost":
            return float(np.nansum(schedule.windows.table["cost"][jobs]))
    return _mean(schedule.windows.table[name][jobs])


def _mean(values: NDArray[np.float64]) -> float:
    """The mean without NaN; NaN of nothing."""
    some = values[np.isfinite(values)]
    return float(some.mean()) if some.size else float("nan")


def _pair(where: str, value: Any, *, whole: bool) -> list[Any]:
    """Return an ascending pair of positive numbers."""
    pair = as_list(where, list(value) if isinstance(value, tuple) else value)
    for part in pair:
        as_count(where, part) if whole else as_number(where, part, above=0)
    if len(pair) != 2 or pair[0] > pair[1]:
        raise ValueError(f"{where}: {pair} is not an ascending pair")
    return pair


#: The experiment "batch".
BATCH = BatchExperiment()

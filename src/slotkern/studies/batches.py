"""The experiment "batch": one random batch per cycle, scheduled by every policy.

It is that of "Preference-based fair resource sharing and scheduling optimization in
Grid VOs" (Toporkov et al. 2014), section 4. ``[environment]`` holds parameters of
`generate_environment` and the price of an owner's node, ``[job]`` the laws of the batch
and the organization's choice, ``[algorithms]`` the policies. By default the choice
minimizes processor time under the cost analogue of eq. (5), as the paper states for
figure 4 and Table 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.batch.scheduling import MEASURES
from slotkern.environment import generate_environment
from slotkern.foundation.checks import one_of
from slotkern.slots import in_order
from slotkern.studies.cycle import complete_environment
from slotkern.studies.experiment import Columns, Experiment, Metric, columns_of_cycles
from slotkern.studies.fields import (
    as_count,
    as_list,
    as_number,
    as_text,
    only_keys,
)
from slotkern.studies.study import Algorithm, Setting, Study

__all__ = [
    "BATCH",
    "USER_CRITERIA",
    "Draw",
    "PolicyRun",
    "draw_cycle",
    "run_flow",
]

#: The criteria from which each user's own is drawn. The earliest start is AMP's, as in
#: the papers: the n cheapest slots so far, even if other slots start at the same time.
USER_CRITERIA = ("first", "runtime", "finish", "cost")
#: The owner's node: its id and its performance.
_NODE, _PERFORMANCE = 0, 6.5
#: The mean performance of the nodes, from which budgets are computed.
_MEAN = 6.0
#: The number of cycles in a plot of a flow.
_CYCLES = 3
#: Policies by name; the other keys of an algorithm are their fields.
_POLICIES: dict[str, Callable[..., Any]] = {
    "slicer": sk.BatchSlicer,
    "backfilling": sk.Backfilling,
    "bsf": sk.BSF,
}
#: Orders of the jobs by nodes * volume, as signs; policies lack this order.
_WORK_ORDERS = {"most work": 1.0, "least work": -1.0}
_LAWS = {
    "jobs": 20,
    "nodes": (2, 5),
    "volume": (210.0, 400.0),
    "budget": (0.8, 1.6),
    "length": (0.2, 1.0),
    "choice": "minimize processor_time under cost",
    "limit": 1.0,
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
_OWNER_METRICS = {"used_time": "used", "utilization": "used", "profit": "profit"}


@dataclass(frozen=True)
class Draw:
    """One cycle's slots, batch, and true lengths as shares of the reserved ones."""

    slots: NDArray[np.void]
    batch: sk.Batch
    lengths: NDArray[np.float64]


class BatchExperiment(Experiment):
    """All policies on the same random batch."""

    pictures: ClassVar = ("alternatives", "cycles")

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
        _choice(job["choice"])
        as_number("job.limit", job["limit"], above=0)
        for name in setting.metrics:
            one_of("metrics", name, _METRICS)
            if name in _OWNER_METRICS and not owner:
                raise ValueError(f"metrics: {name!r} needs environment.owner")
        setting = replace(setting, environment={**environment, "owner": owner}, job=job)
        try:
            batch = draw_cycle(setting, 0).batch
        except (TypeError, ValueError) as error:
            raise ValueError(f"environment: {error}") from None
        for algorithm in setting.algorithms:
            PolicyRun.from_algorithm(algorithm).policy(batch)
        return setting

    def run(self, setting: Setting, first: int, last: int) -> Columns:
        """Return means over the scheduled jobs, NaN if there are none."""
        runs = [PolicyRun.from_algorithm(algorithm) for algorithm in setting.algorithms]

        def cycle(number: int) -> Iterator[Mapping[str, float]]:
            drawn = draw_cycle(setting, number)
            schedules: dict[str, sk.Schedule] = {}
            for run in runs:
                if run.key not in schedules:
                    schedules[run.key] = run.schedule(drawn, setting)
                yield {
                    name: _measure(name, schedules[run.key], run, drawn, setting)
                    for name in setting.metrics
                }

        return columns_of_cycles(setting, first, last, cycle)

    def metric(self, name: str) -> Metric:
        """Return the description of a metric."""
        return _METRICS[name]

    def draw(self, kind: str, study: Study, record: Mapping[str, Any]) -> Any:
        """Draw one cycle under the first of the record's algorithms.

        The plot shows its alternatives and the chosen ones; the kind "cycles" shows the
        same jobs submitted one after another and scheduled cycle by cycle.
        """
        from slotkern.plotting.batch import plot_cycles, plot_schedule

        setting = study.sweep_of(record)[0]
        names = record.get("algorithms", [a.name for a in setting.algorithms])
        run = next(
            PolicyRun.from_algorithm(each)
            for each in setting.algorithms
            if each.name == names[0]
        )
        cycle, title = record.get("cycle", 0), study.title_of(record)
        if kind == "cycles":
            return plot_cycles(run_flow(setting, run, cycle), title=title)
        drawn = draw_cycle(setting, cycle)
        return plot_schedule(run.schedule(drawn, setting), title=title)


@dataclass(frozen=True)
class PolicyRun:
    """The parsed options of an algorithm: a policy, and the jobs that it reports."""

    where: str
    name: str
    options: Mapping[str, Any]
    most: int | None
    moves: str | None
    jobs: str | None
    alternatives: str

    @classmethod
    def from_algorithm(cls, algorithm: Algorithm) -> PolicyRun:
        """Parse and check the options of an algorithm."""
        where, entry = f"algorithms.{algorithm.name}", dict(algorithm.options)
        policy = one_of(f"{where}.policy", entry.pop("policy", None), _POLICIES)
        most, moves, jobs = (entry.pop(key, None) for key in ("most", "moves", "jobs"))
        how = entry.pop("alternatives", "amp")
        only_keys(where, entry, [f.name for f in fields(_POLICIES[policy])])  # type: ignore[arg-type]
        if most is not None:
            as_count(f"{where}.most", most)
        if moves is not None:
            one_of(f"{where}.moves", moves, ("backfill",))
        if jobs is not None:
            one_of(f"{where}.jobs", jobs, USER_CRITERIA)
        one_of(f"{where}.alternatives", how, ("amp", "alp"))
        return cls(where, policy, entry, most, moves, jobs, how)

    @property
    def key(self) -> str:
        """An identifier that is equal for algorithms with the same schedule."""
        return repr((self.name, self.options, self.most, self.alternatives))

    def policy(self, batch: sk.Batch) -> Any:
        """Return the policy for a batch; ValueError names the algorithm."""
        options = dict(self.options)
        by = options.get("by")
        if isinstance(by, str) and by in _WORK_ORDERS:
            options["by"] = [
                _WORK_ORDERS[by] * job.nodes * job.volume for job in batch.requests
            ]
        if isinstance(options.get("k"), list):
            options["k"] = tuple(options["k"])
        try:
            return _POLICIES[self.name](**options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.where}: {error}") from None

    def schedule(self, drawn: Draw, setting: Setting) -> sk.Schedule:
        """Schedule a cycle's batch."""
        policy, batch = self.policy(drawn.batch), drawn.batch
        options = self.arguments(setting)
        if self.alternatives == "alp":
            batch = sk.Batch(
                map(_with_price_limit, batch.requests), criteria=batch.criteria
            )
        schedule = sk.schedule_batch(drawn.slots, batch, policy, **options)
        share = setting.job["limit"]
        if share == 1:
            return schedule
        options["limit"] = share * schedule.limit
        return sk.schedule_batch(drawn.slots, batch, policy, **options)

    def arguments(self, setting: Setting) -> dict[str, Any]:
        """Return the further arguments of `schedule_batch`."""
        choice = _choice(setting.job["choice"])
        return {"most": self.most, "alternatives": self.alternatives, **choice}


def _choice(words: Any) -> dict[str, str]:
    """Parse a choice such as "minimize cost under time" for `schedule_batch`."""
    match as_text("job.choice", words).split():
        case [("minimize" | "maximize") as aim, target, "under", expense]:
            for name in (target, expense):
                one_of("job.choice", name, MEASURES)
            return {aim: target, "under": expense}
    raise ValueError(f"job.choice: {words!r} is not like 'minimize cost under time'")


def _with_price_limit(job: sk.Request) -> sk.Request:
    """Limit the price of every slot to what the budget pays on average."""
    price = job.budget / (job.nodes * float(job.length(_MEAN)))
    return job.replace(max_price=price)


def draw_cycle(setting: Setting, cycle: int) -> Draw:
    """Generate the slots, the batch and the true lengths of a cycle."""
    law = dict(setting.environment)
    owner = law.pop("owner")
    slots = generate_environment(**law, seed=setting.seed, cycle=cycle).slots
    if owner:
        others = slots[slots["node"] != _NODE]
        mine = np.zeros(1, slots.dtype)
        mine["end"], mine["performance"], mine["price"] = (
            law["interval"],
            _PERFORMANCE,
            owner,
        )
        slots = in_order(np.concatenate([mine, others]), "start", "node")
    job, price = setting.job, law["price"]
    rng = np.random.default_rng([setting.seed, cycle, 2])
    count = job["jobs"]

    def uniform(law: str) -> NDArray[np.float64]:
        low, high = job[law]
        drawn: NDArray[np.float64] = rng.uniform(low, high, size=count)
        return drawn

    nodes = rng.integers(job["nodes"][0], job["nodes"][1] + 1, count)
    volumes = uniform("volume")
    # The cost of a unit of work on a node of mean performance.
    market = price["level"] * _MEAN ** (price["exponent"] - 1)
    budgets = uniform("budget") * nodes * volumes * market
    columns = (nodes.tolist(), volumes.tolist(), budgets.tolist())
    requests = [
        sk.Request(n, volume, budget=budget)
        for n, volume, budget in zip(*columns, strict=True)
    ]
    criteria = [USER_CRITERIA[i] for i in rng.integers(0, len(USER_CRITERIA), count)]
    lengths = uniform("length")
    return Draw(slots, sk.Batch(requests, criteria=criteria), lengths)


def run_flow(setting: Setting, run: PolicyRun, cycle: int) -> sk.Cycles:
    """Schedule a cycle's jobs as a flow that arrives during the interval.

    The interval is divided into cycles. Each schedules within its own time, at prices
    that the owners draw for this cycle.
    """
    drawn, law = draw_cycle(setting, cycle), setting.environment
    length = law["interval"] / _CYCLES
    rng = np.random.default_rng([setting.seed, cycle, 3])
    arrivals = np.sort(rng.uniform(-length, law["interval"] - length, len(drawn.batch)))
    charge = 1 + law["price"]["deviation"] * rng.normal(size=(_CYCLES, law["nodes"]))

    def prices(now: int, free: NDArray[np.void]) -> NDArray[np.float64]:
        factors: NDArray[np.float64] = np.maximum(charge[now], 0.0)
        made: NDArray[np.float64] = factors[free["node"]] * free["price"]
        return made

    return sk.run_cycles(
        drawn.slots,
        drawn.batch,
        arrivals,
        length=length,
        cycles=_CYCLES,
        horizon=length,
        policy=run.policy(drawn.batch),
        prices=prices,
        options=lambda _: run.arguments(setting),
    )


def _measure(
    name: str, schedule: sk.Schedule, run: PolicyRun, drawn: Draw, setting: Setting
) -> float:
    """Compute one metric of one schedule."""
    if name.startswith("real_"):
        done = schedule.execute(drawn.lengths, reschedule=run.moves)
        return _mean(getattr(done, name.removeprefix("real_")))
    if name in _OWNER_METRICS:
        node = schedule.nodes()[_NODE]
        share = setting.environment["interval"] if name == "utilization" else 1.0
        return float(node[_OWNER_METRICS[name]]) / share
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
        case "total_cost":  # for a batch that is scheduled as a whole
            return float(schedule.windows.table["cost"][jobs].sum())
    return _mean(schedule.windows.table[name][jobs])


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the finite values; NaN if there are none."""
    some = values[np.isfinite(values)]
    return float(some.mean()) if some.size else float("nan")


def _pair(where: str, value: Any, *, whole: bool) -> list[Any]:
    """Check that a value is an ascending pair of positive numbers."""
    pair = as_list(where, list(value) if isinstance(value, tuple) else value)
    for part in pair:
        as_count(where, part) if whole else as_number(where, part, above=0)
    if len(pair) != 2 or pair[0] > pair[1]:
        raise ValueError(f"{where}: {pair} is not an ascending pair")
    return pair


#: The experiment "batch".
BATCH = BatchExperiment()

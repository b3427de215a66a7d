"""Batches in a virtual organization: the paper's Tables 1 to 3, figures 4 and 5.

"Preference-based fair resource sharing and scheduling optimization in Grid VOs"
(Toporkov et al. 2014), section 4. An experiment is a setting and a function that runs
cycles ``first`` to ``last`` and returns columns with one value a cycle, so that any
division of the cycles among processes gives the same means.

The paper leaves the load, the sizes of jobs and the laws of prices and budgets open;
the settings here were fitted to its figures. Every choice minimizes processor time
under the cost analogue of eq. (5), as the paper says for figure 4 and Table 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slotkern as sk
from slotkern.batch.policies import Policy
from slotkern.environment.generate import Load, Price

__all__ = ["EXPERIMENTS", "Experiment", "Setting", "check", "gather", "run"]

#: The criteria among which each user's own is drawn, and their names in Table 1.
OWN = ("start", "runtime", "finish", "cost")
SLICES = (1, 2, 3, 5, 6, 10, 20)
JOBS = 20

Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Setting:
    """What a cycle is drawn from.

    Attributes
    ----------
    load : float
        The largest share of the interval that local tasks take on a node.
    nodes, volume, budget : (least, most)
        Of the jobs; budgets as a multiple of the market price of the job.
    price : Price
    owner : float
        The price of node 0, which then has performance 6.5 and no local tasks; 0: none.
    """

    load: float = 0.15
    nodes: tuple[int, int] = (2, 5)
    volume: tuple[float, float] = (210.0, 400.0)
    budget: tuple[float, float] = (0.8, 1.6)
    price: Price = field(default_factory=lambda: Price(1.0, 1.05))
    owner: float = 0.0
    seed: int = 1


def check(setting: Setting) -> None:
    """Raise ValueError for a setting that nothing can be drawn from."""
    if not 0 <= setting.load <= 1:
        raise ValueError(f"load must be within [0, 1], got {setting.load}")
    for name in ("nodes", "volume", "budget"):
        low, high = getattr(setting, name)
        if not 0 < low <= high:
            raise ValueError(f"{name} must be an ascending positive pair")


def draw(
    setting: Setting, cycle: int
) -> tuple[NDArray[np.void], sk.Batch, NDArray[np.float64]]:
    """The slots, the batch and the true lengths of a cycle."""
    slots = sk.generate_environment(
        "vo",
        seed=setting.seed,
        cycle=cycle,
        load=Load(0.0, setting.load),
        price=setting.price,
    ).slots
    if setting.owner:
        others = slots[slots["node"] != 0]
        mine = np.zeros(1, slots.dtype)
        mine["end"], mine["performance"], mine["price"] = 600.0, 6.5, setting.owner
        slots = np.concatenate([mine, others])
        slots = slots[np.lexsort((slots["node"], slots["start"]))]
    rng = np.random.default_rng([setting.seed, cycle, 2])
    nodes = rng.integers(setting.nodes[0], setting.nodes[1] + 1, JOBS)
    volumes = rng.uniform(*setting.volume, JOBS)
    market = setting.price.level * 6.0 ** (setting.price.exponent - 1)
    budgets = rng.uniform(*setting.budget, JOBS) * nodes * volumes * market
    jobs = [
        sk.Request(n, v, budget=b)
        for n, v, b in zip(
            nodes.tolist(), volumes.tolist(), budgets.tolist(), strict=True
        )
    ]
    criteria = [OWN[i] for i in rng.integers(0, len(OWN), JOBS)]
    return slots, sk.Batch(jobs, criteria=criteria), rng.uniform(0.2, 1, JOBS)


def of_schedule(schedule: sk.Schedule) -> dict[str, float]:
    """Means over the scheduled jobs, alternatives a job, and whether a job failed."""
    return {
        **schedule.means(),
        "alternatives": float(schedule.count.mean()),
        "total cost": schedule.totals()["cost"],
        "failed": float(not schedule.scheduled.all()),
        "failed jobs": float(np.mean(~schedule.scheduled)),
    }


def table1(setting: Setting, cycle: int) -> Iterator[tuple[str, float]]:
    """By each user's criterion, and by first fit in ten sub-batches and in one."""
    slots, batch, _ = draw(setting, cycle)
    for name, policy in (
        ("own", sk.BatchSlicer(10)),
        ("css", sk.BatchSlicer(10, "first")),
        ("css one batch", sk.CSS),
    ):
        schedule = sk.schedule_batch(slots, batch, policy, most=14)
        table, count = schedule.windows.table, schedule.count
        groups = {name: np.ones(JOBS, bool)}
        if name == "own":
            own = np.array(batch.criteria)
            groups = {criterion: own == criterion for criterion in OWN}
        for group, jobs in groups.items():
            yield f"{group}/alternatives", _mean(count[jobs].astype(float))
            for column in ("start", "runtime", "finish", "cost"):
                yield f"{group}/{column}", _mean(table[column][jobs])


def table2(setting: Setting, cycle: int) -> Iterator[tuple[str, float]]:
    """One owner's node at five prices."""
    for price in (2, 4, 6, 8, 10):
        slots, batch, _ = draw(replace(setting, owner=float(price)), cycle)
        schedule = sk.schedule_batch(slots, batch, sk.BatchSlicer(7))
        used = schedule.nodes()[0]
        yield f"{price}/used_time", float(used["used"])
        yield f"{price}/utilization", float(used["used"]) / 600
        yield f"{price}/profit", float(used["profit"])
        yield f"{price}/failures", float(not schedule.scheduled.all())


def table3(setting: Setting, cycle: int) -> Iterator[tuple[str, float]]:
    """As scheduled, and with true lengths."""
    slots, batch, lengths = draw(setting, cycle)
    for name, policy in (
        ("backfilling", sk.Backfilling("easy")),
        ("conservative", sk.Backfilling()),
        ("css", sk.CSS),
        ("batch-slicer", sk.BatchSlicer(3)),
        ("batch-slicer moved up", sk.BatchSlicer(3)),
    ):
        schedule = sk.schedule_batch(slots, batch, policy)
        moves = "backfill" if name.endswith("moved up") else None
        run = schedule.execute(lengths, reschedule=moves)
        means = schedule.means()
        yield f"{name}/runtime_scheduled", means["processor_time"]
        yield f"{name}/runtime_real", _mean(run.processor_time)
        yield f"{name}/start_scheduled", means["start"]
        yield f"{name}/start_real", _mean(run.start)
        yield f"{name}/failures", float(not schedule.scheduled.all())


def figure4(setting: Setting, cycle: int) -> Iterator[tuple[str, float]]:
    """By the number of sub-batches, alternatives by first fit."""
    slots, batch, _ = draw(setting, cycle)
    for k in SLICES:
        schedule = sk.schedule_batch(slots, batch, sk.BatchSlicer(k, "first"))
        for column, value in of_schedule(schedule).items():
            yield f"{k}/{column}", value


def figure5(setting: Setting, cycle: int) -> Iterator[tuple[str, float]]:
    """By the number of jobs that are sliced."""
    slots, batch, _ = draw(setting, cycle)
    for n_css in range(0, JOBS + 1, 2):
        schedule = sk.schedule_batch(slots, batch, sk.BSF(n_css, k=3))
        for column, value in of_schedule(schedule).items():
            yield f"{n_css}/{column}", value


def slicing(setting: Setting, cycle: int) -> Iterator[tuple[str, float]]:
    """The paper's future work: how many slices, of what sizes, in what order."""
    slots, batch, _ = draw(setting, cycle)
    policies: dict[str, Policy] = {f"k={k}": sk.BatchSlicer(k) for k in SLICES}
    policies |= {
        "sizes 14+4+2": sk.BatchSlicer((14, 4, 2)),
        "sizes 2+4+14": sk.BatchSlicer((2, 4, 14)),
        "dearest first": sk.BatchSlicer(3, by="cost"),
        "most work first": sk.BatchSlicer(
            3, by=[job.nodes * job.volume for job in batch.requests]
        ),
        "least work first": sk.BatchSlicer(
            3, by=[-job.nodes * job.volume for job in batch.requests]
        ),
    }
    for name, policy in policies.items():
        schedule = sk.schedule_batch(slots, batch, policy)
        for column, value in of_schedule(schedule).items():
            yield f"{name}/{column}", value


def _mean(values: NDArray[np.float64]) -> float:
    """The mean without NaN; NaN of nothing."""
    some = values[np.isfinite(values)]
    return float(some.mean()) if some.size else float("nan")


@dataclass(frozen=True)
class Experiment:
    """What is run, and on what."""

    title: str
    measure: Callable[[Setting, int], Iterator[tuple[str, float]]]
    setting: Setting


_TABLE1 = Setting(0.3, (1, 6), (250.0, 400.0), (0.8, 1.6), Price(1.055, 1.05))
_FIGURE4 = Setting(budget=(0.9, 1.6))

EXPERIMENTS = {
    "table1": Experiment("Table 1: the users' preferences", table1, _TABLE1),
    "table2": Experiment(
        "Table 2: one owner's price",
        table2,
        Setting(0.3, (2, 6), (200.0, 400.0), (0.85, 1.6), Price(1.0, 1.0, 0.25)),
    ),
    "table3": Experiment("Table 3: true lengths", table3, Setting()),
    "table3-poor": Experiment(
        "Table 3 where the poorest rely on 60% discounts",
        table3,
        Setting(budget=(0.4, 1.6)),
    ),
    "figure4-high": Experiment(
        "Figure 4, high load", figure4, replace(_FIGURE4, load=0.78)
    ),
    "figure4-medium": Experiment(
        "Figure 4, medium load", figure4, replace(_FIGURE4, load=0.62)
    ),
    "figure4-low": Experiment(
        "Figure 4, low load", figure4, replace(_FIGURE4, budget=(1.0, 1.6))
    ),
    "figure5": Experiment("Figure 5: Batch-slice-filling", figure5, Setting()),
    "slicing-low": Experiment("Slicing at low load", slicing, Setting()),
    "slicing-high": Experiment("Slicing at high load", slicing, Setting(load=0.62)),
}


def run(name: str, first: int, last: int, seed: int = 1) -> Columns:
    """Run cycles `first` to `last` of an experiment: a column for each quantity."""
    experiment = EXPERIMENTS[name]
    setting = replace(experiment.setting, seed=seed)
    check(setting)
    rows = [dict(experiment.measure(setting, cycle)) for cycle in range(first, last)]
    titles = rows[0] if rows else {}
    return {title: np.array([row[title] for row in rows]) for title in titles}


def gather(name: str, cycles: int, workers: int = 1, seed: int = 1) -> Columns:
    """Run all cycles of an experiment, divided among processes.

    The result does not depend on their number.
    """
    size = max(1, min(100, cycles // max(workers, 1)))
    chunks = [(i, min(i + size, cycles)) for i in range(0, cycles, size)]
    if workers == 1:
        parts = [run(name, *chunk, seed) for chunk in chunks]
    else:
        with ProcessPoolExecutor(workers) as pool:
            parts = list(pool.map(_run_chunk, [(name, *c, seed) for c in chunks]))
    return {
        title: np.concatenate([part[title] for part in parts]) for title in parts[0]
    }


def _run_chunk(chunk: tuple[Any, ...]) -> Columns:
    return run(*chunk)

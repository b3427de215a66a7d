"""Plans of a batch, a window for some of its jobs, and their improvement by moves.

The total of a plan is the sum of its windows' signed targets and a penalty for each job
without a window. `Planner.fill` gives jobs their least windows in the time that others
leave; `Planner.improve` gives a job another window, and the jobs in its way their least
ones afterwards, as long as the total falls. `Planner.walk` is a random walk. A search
for a least window is one unit of work; eight searches of a walk are one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pricing import Pricer
from slotkern.batch.pricing import Aim, Free, PricedJob, PricedWindow, Prices

__all__ = ["BatchPlan", "Planner"]

#: The windows of the jobs that have one, by job.
BatchPlan = dict[int, PricedWindow]
Floats = NDArray[np.float64]

#: Passes over all jobs that move one at a time.
_PASSES = 3
#: Searches of a walk for each unit of work: they have few starts, and half no prices.
_WALK_SEARCHES = 8
#: The mean accepted rise of a total in a walk, as a share of it: at first, at last.
_HEAT = 3e-3, 1e-4


class Planner:
    """Plans of some jobs on free time.

    Raises a ValueError if the penalty of the jobs is not finite.

    Attributes
    ----------
    jobs, free, aim, limit
        The jobs, the whole free time, the aim, and the limit on the expense or None.
    last : float
        The latest start in plans whose windows cannot begin earlier: the last start of
        a slot or of a job, and the longest parts of all jobs one after another.
    penalty : float
        The total of a job without a window, above every difference of two such plans'
        targets. No target falls if a window of the same slots begins later.
    least : list of float
        A lower bound on the total of each job, without the others.
    max_work, work : int
        The limit on the units of work, and those spent.
    """

    def __init__(
        self,
        jobs: Sequence[PricedJob],
        free: Free,
        aim: Aim,
        limit: float | None,
        max_work: int,
    ) -> None:
        self.jobs, self.free, self.aim, self.limit = jobs, free, aim, limit
        self.max_work, self.work = max_work, 0
        first = np.append([job.request.earliest for job in jobs], free.start)
        self.last = float(first[np.isfinite(first)].max(initial=0.0))
        self.last += math.fsum(job.longest for job in jobs)
        self.penalty = self._penalty_above_differences()
        self.least = [-math.inf] * len(jobs)
        self._pricer = Pricer(
            int(free.node.max(initial=-1)) + 1,
            free.node,
            jobs[0].price if jobs else np.zeros(len(free.row)),
            aim.target,
            aim.expense,
            aim.sign,
            aim.origin,
            bool(jobs) and jobs[0].shape == "square",
        )
        for job in jobs:
            self._pricer.add_job(job.request, job.usable, job.own)

    def search(
        self, i: int, free: Free, prices: Prices, factor: float = 0.0
    ) -> tuple[float, list[PricedWindow]]:
        """Return a bound on the totals of job i, and its least window, if any."""
        self.work += 1
        bound, found = self._pricer.least(i, free, prices, factor)
        return bound, [PricedWindow(*each) for each in found]

    def search_all(
        self, prices: Prices, factor: float, spans: int
    ) -> tuple[list[float], list[list[PricedWindow]]]:
        """Return these bounds and windows of all jobs on the whole free time."""
        self.work += len(self.jobs)
        bounds, found = self._pricer.least_of_all(self.free, prices, factor, spans)
        return bounds, [[PricedWindow(*each) for each in some] for some in found]

    def total(self, plan: BatchPlan, others: Sequence[float] | None = None) -> float:
        """Return the total of a plan; other jobs fail, or count with these totals."""
        return math.fsum(
            plan[i].cost
            if i in plan
            else (self.penalty if others is None else others[i])
            for i in range(len(self.jobs))
        )

    def is_within_limit(self, plan: BatchPlan) -> bool:
        """True if the plan's expense is within the limit."""
        if self.limit is None:
            return True
        return math.fsum(found.expense for found in plan.values()) <= self.limit

    def free_beside(self, plan: BatchPlan) -> Free:
        """Return the time that a plan leaves free."""
        return self.free.without(*_parts(plan)[1:]) if plan else self.free

    def conflicts(self, plan: BatchPlan, found: PricedWindow) -> set[int]:
        """Return the jobs of a plan whose parts overlap a window."""
        if not plan:
            return set()
        job, row, start, end = _parts(plan)
        same = row[:, None] == found.rows
        over = same & (start[:, None] < found.end) & (end[:, None] > found.start)
        return set(job[over.any(1)].tolist())

    def fill(
        self,
        plan: BatchPlan,
        order: Iterable[int],
        prices: Prices,
        factor: float = 0.0,
        most: float = math.inf,
    ) -> BatchPlan:
        """Return the plan with least windows at prices for further jobs, in order.

        It ends before the last job if the total will exceed `most` anyway.
        """
        plan = dict(plan)
        total = self.total(plan, self.least)
        for i in order:
            if total > most:
                break
            if i not in plan:
                _, found = self.search(i, self.free_beside(plan), prices, factor)
                plan.update((i, each) for each in found[:1])
                total += (found[0].cost if found else self.penalty) - self.least[i]
        return plan

    def improve(
        self,
        plan: BatchPlan,
        prices: Prices,
        wanted: Mapping[int, Sequence[PricedWindow]],
    ) -> BatchPlan:
        """Return the plan after all moves that lower its total.

        A job moves to its least window besides the others, or to one of `wanted`.
        """
        for _ in range(_PASSES):
            before = self.total(plan)
            for i in range(len(self.jobs)):
                if self.work >= self.max_work:
                    return plan
                rest = {job: found for job, found in plan.items() if job != i}
                _, own = self.search(i, self.free_beside(rest), prices)
                for found in [*own, *wanted.get(i, ())]:
                    plan = self._moved(plan, i, found, prices)
            if self.total(plan) == before:
                break
        return plan

    def walk(
        self, plan: BatchPlan, prices: Prices, factor: float, work: int
    ) -> BatchPlan:
        """Return the best plan of a random walk of about `work` units of work.

        In each step some jobs that begin at about the same time leave the plan, and
        get their least windows in random order; a failed job is tried with them. A plan
        with a larger total is accepted at times, less and less often (simulated
        annealing). The walk is the same for equal plans.
        """
        work = min(work, self.max_work - self.work)
        if work <= 0:
            return plan
        begun = {
            i: (w.start, w.rows, w.end, w.cost, w.expense) for i, w in plan.items()
        }
        limit = math.inf if self.limit is None else self.limit
        found, searched = self._pricer.walk(
            self.free,
            begun,
            prices,
            factor,
            self.penalty,
            self.least,
            limit,
            _WALK_SEARCHES * work,
            _HEAT,
        )
        self.work += -(-searched // _WALK_SEARCHES)
        walked = {i: PricedWindow(*each) for i, each in found.items()}
        return walked if self.total(walked) < self.total(plan) else plan

    def _penalty_above_differences(self) -> float:
        with np.errstate(over="ignore"):
            ranges = [job.range(self.aim, self.free, self.last) for job in self.jobs]
        widths = [2 * (high - low) for low, high in ranges]
        if not math.isfinite(sum(widths) * len(widths)):
            i = int(np.argmax(widths))
            raise ValueError(
                f"the target of job {i} has a range of {widths[i] / 2:g}, so that the "
                f"penalties of {len(widths)} jobs in policy Optimal exceed the largest "
                f"number, {sys.float_info.max:g}; use a larger unit of the target"
            )
        return math.fsum(widths) or 1.0

    def _moved(
        self, plan: BatchPlan, i: int, found: PricedWindow, prices: Prices
    ) -> BatchPlan:
        """Return the plan with this window of job i if its total is lower then."""
        rest = {job: each for job, each in plan.items() if job != i}
        out = self.conflicts(rest, found)
        kept = {job: each for job, each in rest.items() if job not in out}
        kept[i] = found
        total = self.total(plan)
        if self.total(kept, self.least) >= total:
            return plan
        moved = self.fill(kept, sorted(out), prices)
        is_better = self.total(moved) < total and self.is_within_limit(moved)
        return moved if is_better else plan


def _parts(
    plan: BatchPlan,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]:
    """Return job, row, start and end of all parts of a plan."""
    found = plan.values()
    size = [len(each.rows) for each in found]
    return (
        np.repeat(list(plan), size),
        np.concatenate([each.rows for each in found]),
        np.repeat([each.start for each in found], size),
        np.concatenate([each.end for each in found]),
    )

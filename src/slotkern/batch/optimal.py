"""The best schedule of a batch, or one within a proven distance: column generation.

Input: the jobs of a batch, their slots, a target and a limit. Output: a plan, a window
or none for each job, and a lower bound on the total of every plan. The total is the
signed target plus a penalty for each job without a window that exceeds every
difference of targets, so that the least total has the most jobs.

The master problem (`slotkern.batch.master`) chooses shares of windows; its duals are
prices of node-time and of the expense. Each job's least window at these prices
(`slotkern.batch.pricing`) is a new column, and the sum of these least totals minus the
duals is a bound on all plans (Lagrangian relaxation). The bound holds for any prices of
at least 0, before convergence too: it is computed from prices that are clipped at 0 and
from exact least windows, so tolerances of the linear program do not enter it.
`_rounding` is subtracted for the rounding errors of its sums. Prices are mixed with the
best ones so far, so that they change little from round to round (smoothing of Wentges,
"Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming", 1997).

The first prices are those of a subgradient ascent (`slotkern.batch.ascent`). Its steps
are proportional to the distance of the bound from the best plan, so a random walk
improves the first plan before. The windows of the ascent with the least reduced costs
become columns.

Plans come from the linear program, whose largest shares are fixed one after another,
improved by moves and a random walk (`slotkern.batch.plans`,
``batch/plan_walk.hpp``), and from an integer
program over the windows of small reduced cost. For few jobs `slotkern.batch.complete`
lists all windows that a better plan may have; the integer program over them closes the
rest of the gap.

Work is counted: one unit is one search for a job's least window, eight searches of a
walk, one simplex pivot, one node of an integer program, or one set of slots examined
for the list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels import batch as _batch
from slotkern._kernels.request import Request
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window, WindowTable, window_from_rows
from slotkern.batch.ascent import Ascent
from slotkern.batch.complete import all_windows
from slotkern.batch.master import Duals, MasterProblem
from slotkern.batch.options import BatchOptions
from slotkern.batch.plans import BatchPlan, Planner
from slotkern.batch.pricing import Aim, PricedJob, PricedWindow, Prices, whole_time
from slotkern.search.delegated import restate_window

__all__ = ["OptimalSearch", "find_optimum"]

#: The share of the best prices in the next ones: at first, and at most.
_INERTIA, _MOST_INERTIA = 0.5, 0.9
#: Rounds of separation of a linear program.
_SEPARATIONS = 8
#: The number of rounds between plans.
_PLAN_EVERY = 5
#: The number of spans of time; the least window in each becomes a column.
_SPANS = 4
#: Rounds of the ascent for each job, and the share of the work at its end.
_ASCENT, _ASCENT_WORK = 100, 0.5
#: The number of windows of the ascent that become columns of each job.
_COLUMNS = 50
#: Work of a random walk for each pair of jobs, its largest share of the work, of the
#: first walk and of later ones, and the share of the best prices at which it searches.
_WALK, _FIRST_WALK, _WALK_WORK, _WALK_PRICES = 100, 0.05, 0.35, 0.5
#: Nodes of an integer program.
_NODES = 200
#: A dual of at most this share of the penalty is dropped.
_NO_PRICE = 1e-12
#: Relative tolerance of the bounds of HiGHS on integer programs, and the least gap.
_TOLERANCE, _LEAST_GAP = 1e-6, 2e-6


#: Indices of reasons: no time besides the other jobs, or no expense left.
_NO_TIME, _NO_EXPENSE = map(_batch.REASONS.index, ("time", "limit"))


def find_optimum(
    jobs: _batch.CompiledJobs, requests: Sequence[Request], options: BatchOptions
) -> tuple[
    WindowTable,
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint8],
    NDArray[np.void],
]:
    """Return the best schedule in the form of `_kernels.batch.schedule`.

    The alternatives are the chosen windows.

    Raises
    ------
    ValueError
        For slots without an end.
    ModuleNotFoundError
        Without HiGHS.
    """
    if jobs.has_unbounded_slot:
        raise ValueError("policy Optimal does not support slots with an infinite end")
    slots, origin = jobs.prepared._free()
    search = OptimalSearch(slots, jobs.prepared, requests, options)
    search.run()
    chosen = np.full(len(requests), -1)
    reason = np.zeros(len(requests), np.uint8)
    windows: list[Window] = []
    owner = sorted(search.plan)
    for i, request in enumerate(requests):
        found = search.plan.get(i)
        if found is None:
            reason[i] = _reason(jobs, request, options)
            continue
        chosen[i] = len(windows)
        window = window_from_rows(
            slots, found.rows, found.start, request, "start", options.shape
        )
        windows.append(window if origin is None else restate_window(window, origin))
    table = WindowTable.of(
        windows,
        criterion=options.criterion,
        shape=options.shape,
        names=[requests[i].name for i in owner],
    )
    table.context = jobs.prepared.context
    choice = np.zeros(1, _batch.SLICE)
    choice["limit"] = math.inf if options.limit is None else options.limit
    choice["value"], choice["bound"] = search.value, search.value_bound
    choice["expense"] = math.fsum(found.expense for found in search.plan.values())
    choice["proven"] = search.is_proven
    return table, np.array(owner, np.int64), chosen, reason, choice


def _reason(jobs: _batch.CompiledJobs, request: Request, options: BatchOptions) -> int:
    """Return why a job has no window: its reason alone, or what the others take."""
    alone = _batch.CompiledJobs(jobs.prepared, [request], None)
    backfill = replace(options, slices=[0], order=None)
    reason = int(_batch.schedule(alone, backfill, "conservative")[3][0])
    return reason or (_NO_TIME if options.limit is None else _NO_EXPENSE)


class OptimalSearch:
    """The search for the best plan of a batch.

    Attributes
    ----------
    plan : dict of int to PricedWindow
        The best plan so far: the window of each job that has one.
    bound : float
        A lower bound on the total of every plan.
    """

    def __init__(
        self,
        slots: NDArray[np.void],
        prepared: PreparedSlots,
        requests: Sequence[Request],
        options: BatchOptions,
    ) -> None:
        self._gap = options.gap
        self._free, self._nodes = whole_time(slots)
        aim = Aim(
            options.target,
            options.expense,
            -1.0 if options.maximize else 1.0,
            float(slots["start"].min()) if len(slots) else 0.0,
        )
        jobs = [PricedJob(slots, prepared, each, options.shape) for each in requests]
        limit, work = options.limit, options.max_work
        if limit == math.inf:
            limit = None
        self._planner = Planner(jobs, self._free, aim, limit, work)
        self._penalty = self._planner.penalty
        self._master = MasterProblem(len(jobs), self._penalty, limit)
        self._columns: dict[tuple[int, tuple[float, bytes]], int] = {}
        self._found: list[PricedWindow] = []
        self._seen: dict[tuple[int, tuple[float, bytes]], PricedWindow] = {}
        self.plan: BatchPlan = {}
        self._total = self._penalty * len(jobs)
        #: The bound, and the rounding errors that are subtracted from it.
        self.bound, self._error = -math.inf, 0.0
        self._best = Duals.none()
        self._no_prices = self._prices(self._best)

    @property
    def aim(self) -> Aim:
        """The target and the expense."""
        return self._planner.aim

    @property
    def work(self) -> int:
        """The units of work spent."""
        return self._planner.work + self._master.work

    @property
    def failures(self) -> float:
        """The part of the plan's total that is due to jobs without a window."""
        return self._penalty * (len(self._planner.jobs) - len(self.plan))

    @property
    def is_proven(self) -> bool:
        """True if no plan is better by more than the gap of this plan's target.

        Plans whose totals differ by no more than rounding errors count as equal.
        """
        value = abs(self._total - self.failures)
        missed = max(0.0, self._total - self.bound - self._error)
        return missed <= max(self._gap, _LEAST_GAP) * value

    @property
    def value(self) -> float:
        """The target of the plan."""
        return self._value_of(self._total)

    @property
    def value_bound(self) -> float:
        """A bound on the target of every plan of as many jobs."""
        return self._value_of(min(self.bound, self._total))

    def _value_of(self, total: float) -> float:
        origin = self.aim.origin * len(self.plan) if self.aim.counts_starts else 0.0
        return self.aim.sign * (total - self.failures) + origin

    def run(self) -> None:
        """Search until the plan is proven, nothing is left, or the work is spent."""
        self._ascend()
        inertia, count = _INERTIA, 0
        while not self._is_over():
            count += 1
            share, duals = self._relax()
            before = self.bound
            mixed = self._best.mixed(inertia, duals) if inertia else duals
            added = self._price(mixed, _SPANS, self._add)[1]
            is_last = not added and not inertia
            if not added:
                inertia = 0.0
            elif self.bound > before:
                inertia = _INERTIA
            else:
                inertia = min(_MOST_INERTIA, (1 + 2 * inertia) / 3)
            if is_last or count % _PLAN_EVERY == 1:
                self._plan_from(share, duals)
            if is_last:
                self._finish()
                break

    def _is_over(self) -> bool:
        return self.is_proven or self.work >= self._planner.max_work

    def _prices(self, duals: Duals, share: float = 1.0) -> Prices:
        rate = share * duals.amount / (duals.end - duals.start)
        return Prices(len(self._nodes), duals.node, duals.start, duals.end, rate)

    def _relax(self) -> tuple[NDArray[np.float64], Duals]:
        """Solve the linear program, with the rows that its solution needs."""
        self._master.drop_rows()
        for _ in range(_SEPARATIONS):
            solved = self._master.solve()
            if not self._master.separate(solved[0]):
                break
        return solved

    def _ascend(self) -> None:
        """Raise the bound by subgradient ascent, from the first plan on."""
        least = self._price(self._best, _SPANS, self._add)[2]
        jobs, most = range(len(self._planner.jobs)), self._planner.max_work
        self._offer(self._planner.fill({}, jobs, self._no_prices), {})
        if not len(self._free.row):
            return
        self._walk(_FIRST_WALK)
        planner, bound = self._planner, self.bound
        count = max(1, len(jobs))
        rounds = min(_ASCENT * count, int(_ASCENT_WORK * most) // count)
        ascent = Ascent(self._free, planner.limit, planner.last, rounds)
        for _ in range(rounds):
            value = abs(self._total - self.failures)
            missed = min(self._total - bound, value)
            if self._is_over() or not ascent.advance(bound, least, missed):
                break
            bound, _, least = self._price(ascent.duals, 1, self._see)
        self._add_best_windows()
        self._walk(_WALK_WORK)

    def _add_best_windows(self) -> None:
        """Add columns of the windows of the ascent with the least reduced costs."""
        prices, factor = self._prices(self._best), self._best.expense
        reduced: dict[int, list[tuple[float, PricedWindow]]] = {}
        for (i, _), found in self._seen.items():
            paid = prices.paid(self._free.node[found.rows], found.start, found.end)
            total = found.cost + factor * found.expense + paid
            reduced.setdefault(i, []).append((total, found))
        for i, some in reduced.items():
            for _, found in sorted(some, key=lambda each: each[0])[:_COLUMNS]:
                self._add(i, found)
        self._seen.clear()

    def _walk(self, share: float = _WALK_WORK) -> None:
        """Improve the best plan by a random walk of at most this share of the work."""
        if not self._is_over():
            pairs = len(self._planner.jobs) ** 2
            most = int(share * self._planner.max_work)
            work = max(1, min(_WALK * pairs, most))
            prices, factor = self._prices(self._best, _WALK_PRICES), self._best.expense
            self._offer(self._planner.walk(self.plan, prices, factor, work), {})

    def _price(
        self, duals: Duals, spans: int, record: Callable[[int, PricedWindow], bool]
    ) -> tuple[float, int, list[PricedWindow]]:
        """Find each job's least windows in some spans of time at these prices.

        `record`, which is `_add` or `_see`, gets each window of a total below the
        penalty. Returns the bound, the number of new windows, and the least window of
        each job whose total is below the penalty. Raises the bound of the search if
        this is larger.
        """
        duals = duals.above(_NO_PRICE * self._penalty)
        prices, added, chosen = self._prices(duals), 0, []
        terms = (-duals.amount).tolist()
        if duals.expense:
            terms.append(-duals.expense * self._planner.limit)  # type: ignore[operator]
        bounds, windows = self._planner.search_all(prices, duals.expense, spans)
        totals = [min(self._penalty, least) for least in bounds]
        for i, found in enumerate(windows):
            if found and found[0].total < self._penalty:
                chosen.append(found[0])
            for each in found:
                if each.total < self._penalty:
                    added += record(i, each)
        terms += totals
        error = self._rounding(terms, prices, duals)
        bound = math.fsum(terms) - error
        if self.bound == -math.inf:
            self._planner.least = totals
        if bound > self.bound:
            self.bound, self._error = bound, error
            self._best, self._best_totals = duals, totals
        return bound, added, chosen

    def _rounding(self, terms: list[float], prices: Prices, duals: Duals) -> float:
        """Return a bound on the rounding errors of a Lagrangian bound.

        The sums of each window have fewer than 2**8 roundings per part, and two
        integrals of a node's rate, with two roundings for each of its pieces; each job
        may have a part on the node. A start is rounded to a double, and the rate of
        the node multiplies its error if the part overlaps a span that has a price.
        """
        epsilon = 2.0**-52
        parts = sum(job.request.nodes for job in self._planner.jobs)
        latest = float(np.abs([duals.start, duals.end]).max(initial=0.0))
        moved = 4 * parts * prices.largest * latest
        roundings = 2**8 + 4 * prices.pieces * len(self._planner.jobs)
        return epsilon * (roundings * math.fsum(map(abs, terms)) + moved)

    def _see(self, job: int, found: PricedWindow) -> bool:
        """Keep a window of the ascent; return False if it was kept already."""
        is_new = (job, found.key) not in self._seen
        self._seen[job, found.key] = found
        return is_new

    def _add(self, job: int, found: PricedWindow) -> bool:
        """Add the column of a window; return False if it was one already."""
        key = job, found.key
        if key in self._columns:
            return False
        node = self._free.node[found.rows]
        self._columns[key] = self._master.add_window(job, found, node)
        self._found.append(found)
        return True

    def _offer(self, plan: BatchPlan, wanted: dict[int, list[PricedWindow]]) -> None:
        """Improve a plan, and keep it if it is the best one."""
        if not self._planner.is_within_limit(plan):
            return
        plan = self._planner.improve(plan, self._no_prices, wanted)
        for i, found in plan.items():
            self._add(i, found)
        total = self._planner.total(plan)
        if total < self._total:
            self.plan, self._total = plan, total

    def _plan_from(self, share: NDArray[np.float64], duals: Duals) -> None:
        """Make a plan from shares: fix the largest, then add the least windows left."""
        wanted: dict[int, list[PricedWindow]] = {}
        for column in np.argsort(-share, kind="stable").tolist():
            if share[column] > 0:
                job = self._master.job[column]
                wanted.setdefault(job, []).append(self._found[column])
        plan: BatchPlan = {}
        for column in self._master.dive(share).tolist():
            i, found = self._master.job[column], self._found[column]
            if i not in plan and not self._planner.conflicts(plan, found):
                plan[i] = found
        jobs, prices = range(len(self._planner.jobs)), self._prices(duals)
        self._offer(self._planner.fill(plan, jobs, prices, duals.expense), wanted)
        self._walk()

    def _finish(self) -> None:
        """Choose a plan among the windows that a better plan may have.

        If these are all windows that a better plan may have, the choice is optimal.
        """
        if self.is_proven:
            return
        prices, factor = self._prices(self._best), self._best.expense
        slack = self._total - self.bound
        room = max(0, self._planner.max_work - self.work)
        listed = all_windows(
            self._planner, prices, factor, [t + slack for t in self._best_totals], room
        )
        if listed is not None:
            for i, found in listed:
                self._add(i, found)
        keep = []
        for column, found in enumerate(self._found):
            i = self._master.job[column]
            paid = prices.paid(self._free.node[found.rows], found.start, found.end)
            total = found.cost + factor * found.expense + paid
            if total < self._best_totals[i] + slack:
                keep.append(column)
        self._choose(np.array(keep, np.int64), listed is not None)

    def _choose(self, columns: NDArray[np.int64], is_complete: bool) -> None:
        """Solve the integer program over some windows."""
        start = [self._columns[i, found.key] for i, found in self.plan.items()]
        columns = np.union1d(columns, np.array(start, np.int64))
        gap = 0.0 if is_complete else self._gap / 4
        chosen, bound, nodes = self._master.solve_integer(columns, start, gap, _NODES)
        self._planner.work += nodes
        self._offer({self._master.job[j]: self._found[j] for j in chosen.tolist()}, {})
        if is_complete:
            bound -= _TOLERANCE * abs(self._total - self.failures)
            self.bound = max(self.bound, min(bound, self._total))

"""The restricted master problem of a batch: a linear program over windows, by HiGHS.

Columns are windows. Each job takes one window or fails at a penalty. A capacity row
belongs to a span of one node: the overlaps of all windows with the span, as shares of
it, sum to at most 1. A schedule obeys such a row for any span, so rows are added only
for the spans that a solution overloads (`MasterProblem.separate`). The dual value of a
row, divided by the length of the span, is a price rate of the node's time.

The integer program over the same columns (`solve_integer`) has a clique of windows for
each moment at which parts overlap, so its solutions are schedules.

HiGHS grants absolute tolerances, so expenses are shares of the limit here, and small
costs are multiplied by a power of two (`_scale_of`).

Cost: a linear program with a warm start for each call of `solve`; O(parts) memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.extras import extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slotkern.batch.pricing import PricedWindow

__all__ = ["Duals", "MasterProblem", "Parts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A node's time counts as overloaded above 1 by this share.
_OVERLOAD = 1e-6
#: Values of a solution below this are zero.
_ZERO = 1e-9
#: The least penalty in the programs.
_LEAST_PENALTY = 2.0**20
#: The number of solutions after which a row of price zero is dropped.
_AGE = 4


@dataclass(frozen=True)
class Parts:
    """Parts of windows: the window's column, the node's index, start and end."""

    column: Ints
    node: Ints
    start: Floats
    end: Floats

    @classmethod
    def join(cls, several: Sequence[Parts]) -> Parts:
        """Return the parts of several tables."""
        names = ("column", "node", "start", "end")
        return cls(*(np.concatenate([getattr(p, n) for p in several]) for n in names))

    def where(self, mask: NDArray[np.bool_]) -> Parts:
        """Return some of the parts."""
        return Parts(
            self.column[mask], self.node[mask], self.start[mask], self.end[mask]
        )


@dataclass(frozen=True)
class Duals:
    """Prices: of each span of a node's time in all, and of a unit of the expense."""

    node: Ints
    start: Floats
    end: Floats
    amount: Floats
    expense: float

    @classmethod
    def none(cls) -> Duals:
        """Return prices of 0."""
        none = np.zeros(0)
        return cls(np.zeros(0, np.int64), none, none, none, 0.0)

    def above(self, least: float) -> Duals:
        """Return the prices without those of spans that are not above a number."""
        some = self.amount > least
        return Duals(
            self.node[some],
            self.start[some],
            self.end[some],
            self.amount[some],
            self.expense,
        )

    def mixed(self, share: float, other: Duals) -> Duals:
        """Return a share of these prices plus the rest of others."""
        rest = 1 - share
        return Duals(
            np.concatenate([self.node, other.node]),
            np.concatenate([self.start, other.start]),
            np.concatenate([self.end, other.end]),
            np.concatenate([share * self.amount, rest * other.amount]),
            share * self.expense + rest * other.expense,
        )


_NO_PARTS = Parts(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
)


class MasterProblem:
    """The linear program over the windows generated so far."""

    def __init__(self, jobs: int, penalty: float, limit: float | None) -> None:
        with extra():
            import highspy
        self._highspy = highspy
        self._jobs, self._limit, self._penalty = jobs, limit, penalty
        #: The unit of the expenses in the programs.
        self._unit = limit or 1.0
        #: The factor of the costs in the programs.
        self._scale = _scale_of(penalty)
        #: The units of work spent: pivots. One takes about as long as a search.
        self.work = 0
        self._lp = self._new_problem()
        one, none = np.ones(jobs), np.zeros(0)
        empty = np.zeros(0, np.int32)
        for _ in range(jobs):
            self._lp.addRow(1.0, 1.0, 0, empty, none)
        self._fixed = jobs + (limit is not None)
        if limit is not None:
            most = limit / self._unit
            self._lp.addRow(-highspy.kHighsInf, most, 0, empty, none)
        self._lp.addCols(
            jobs,
            self._scale * penalty * one,
            0 * one,
            np.full(jobs, highspy.kHighsInf),
            jobs,
            np.arange(jobs, dtype=np.int32),
            np.arange(jobs, dtype=np.int32),
            one,
        )
        self._added = [_NO_PARTS]
        self.job: list[int] = []
        self.cost: list[float] = []
        self.expense: list[float] = []
        self._row_node, self._age = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._row_start, self._row_end = np.zeros(0), np.zeros(0)

    def _new_problem(self) -> Any:
        # The constructor of Highs prints a banner; that of its base class does not.
        problem = self._highspy.Highs.__mro__[1]()
        problem.setOptionValue("output_flag", False)
        problem.setOptionValue("threads", 1)
        return problem

    def add_window(self, job: int, found: PricedWindow, node: Ints) -> int:
        """Add the column of a window with parts on these nodes; return its number."""
        column, size = len(self.job), len(node)
        self.job.append(job)
        self.cost.append(found.cost)
        self.expense.append(found.expense)
        start = np.full(size, found.start)
        self._added.append(Parts(np.full(size, column), node, start, found.end))
        overlap = np.minimum(self._row_end[:, None], found.end) - np.maximum(
            self._row_start[:, None], start
        )
        same = self._row_node[:, None] == node
        amount = np.where(same, np.maximum(overlap, 0.0), 0.0).sum(1)
        amount /= self._row_end - self._row_start
        rows = np.flatnonzero(amount)
        index, value = [job], [1.0]
        if self._limit is not None:
            index.append(self._jobs)
            value.append(found.expense / self._unit)
        index += (rows + self._fixed).tolist()
        value += amount[rows].tolist()
        status = self._lp.addCol(
            self._scale * found.cost,
            0.0,
            self._highspy.kHighsInf,
            len(index),
            np.array(index, np.int32),
            np.array(value),
        )
        if status == self._highspy.HighsStatus.kError:
            raise ValueError(
                f"policy Optimal: a window has the target {found.cost:g} and the "
                f"expense {found.expense:g}, which HiGHS does not accept under the "
                f"limit {self._limit}"
            )
        return column

    @property
    def parts(self) -> Parts:
        """The parts of all windows."""
        if len(self._added) > 1:
            self._added = [Parts.join(self._added)]
        return self._added[0]

    def solve(self) -> tuple[Floats, Duals]:
        """Return each window's share and the duals of the linear program."""
        self._lp.run()
        self._count(self._lp)
        solution = self._lp.getSolution()
        share = np.array(solution.col_value)[self._jobs :]
        dual = np.maximum(-np.array(solution.row_dual), 0.0)
        expense = 0.0
        if self._limit is not None:
            expense = float(dual[self._jobs]) / self._unit / self._scale
        amount = dual[self._fixed :] / self._scale
        self._age = np.where(amount * self._scale > _ZERO, 0, self._age + 1)
        duals = Duals(self._row_node, self._row_start, self._row_end, amount, expense)
        return share, duals

    def _count(self, problem: Any) -> None:
        self.work += max(0, int(problem.getInfo().simplex_iteration_count))

    def separate(self, share: Floats) -> int:
        """Add rows for the spans that a solution overloads; return their number."""
        some = self.parts.where(share[self.parts.column] > _ZERO)
        count = 0
        for node in np.unique(some.node).tolist():
            mine = some.where(some.node == node)
            times = np.unique(np.concatenate([mine.start, mine.end]))
            load = _covers(mine, times[:-1]) @ share[mine.column]
            peak = (load >= np.append(-1.0, load[:-1])) & (
                load >= np.append(load[1:], -1.0)
            )
            for at in np.flatnonzero(peak & (load > 1 + _OVERLOAD)).tolist():
                self._add_row(node, float(times[at]), float(times[at + 1]))
                count += 1
        return count

    def _add_row(self, node: int, start: float, end: float) -> None:
        parts = self.parts
        mine = parts.where(
            (parts.node == node) & (parts.start < end) & (parts.end > start)
        )
        overlap = np.minimum(mine.end, end) - np.maximum(mine.start, start)
        columns = (mine.column + self._jobs).astype(np.int32)
        inf = self._highspy.kHighsInf
        self._lp.addRow(-inf, 1.0, len(columns), columns, overlap / (end - start))
        self._row_node = np.append(self._row_node, node)
        self._row_start = np.append(self._row_start, start)
        self._row_end = np.append(self._row_end, end)
        self._age = np.append(self._age, 0)

    def drop_rows(self) -> None:
        """Drop the rows whose price was zero in the last solutions."""
        old = self._age >= _AGE
        if old.any():
            rows = (np.flatnonzero(old) + self._fixed).astype(np.int32)
            self._lp.deleteRows(len(rows), rows)
            self._row_node, self._age = self._row_node[~old], self._age[~old]
            self._row_start, self._row_end = self._row_start[~old], self._row_end[~old]

    def dive(self, share: Floats) -> Ints:
        """Return the columns of a schedule: fix the largest shares, solve, repeat.

        `share`: the solution of the linear program. Rows that later solutions need are
        added.
        """
        inf, fixed = self._highspy.kHighsInf, set[int]()
        while len(share):
            rest = share.copy()
            rest[sorted(fixed)] = 0.0
            new = set(np.flatnonzero(rest >= 1 - _OVERLOAD).tolist())
            new |= {int(np.argmax(rest))}
            if not rest[list(new)].min() > _ZERO:
                break
            for column in new:
                self._lp.changeColBounds(self._jobs + column, 1.0, 1.0)
            fixed |= new
            share = self.solve()[0]
            if self.separate(share):
                share = self.solve()[0]
        for column in fixed:
            self._lp.changeColBounds(self._jobs + column, 0.0, inf)
        return np.array(sorted(fixed), np.int64)

    def solve_integer(
        self, columns: Ints, start: Sequence[int], gap: float, nodes: int
    ) -> tuple[Ints, float, int]:
        """Choose windows of a schedule among some columns, from a schedule on.

        Returns the chosen columns, a lower bound on the total over these columns, and
        the number of nodes of the search. `start` are
        columns of a known schedule, `gap` a relative gap and `nodes` a limit.
        """
        highspy, inf = self._highspy, self._highspy.kHighsInf
        problem, size = self._new_problem(), len(columns)
        problem.setOptionValue("mip_rel_gap", gap)
        problem.setOptionValue("mip_max_nodes", nodes)
        place = np.full(len(self.job), -1)
        place[columns] = np.arange(size)
        empty, none = np.zeros(0, np.int32), np.zeros(0)
        for j in columns.tolist():  # chosen or not: the job's penalty is saved
            saved = self._scale * (self.cost[j] - self._penalty)
            problem.addCol(saved, 0.0, 1.0, 0, empty, none)
        problem.changeColsIntegrality(
            size,
            np.arange(size, dtype=np.int32),
            np.full(size, highspy.HighsVarType.kInteger),
        )
        job = np.array(self.job)[columns]
        sets = [np.flatnonzero(job == i) for i in np.unique(job)]
        for each in sets + self._cliques(place):
            problem.addRow(
                -inf, 1.0, len(each), each.astype(np.int32), np.ones(len(each))
            )
        if self._limit is not None:
            expense = np.array(self.expense)[columns] / self._unit
            every = np.arange(size, dtype=np.int32)
            problem.addRow(-inf, self._limit / self._unit, size, every, expense)
        known = np.zeros(size)
        known[place[list(start)]] = 1.0
        problem.setSolution(size, np.arange(size, dtype=np.int32), known)
        problem.run()
        self._count(problem)
        value, info = np.array(problem.getSolution().col_value), problem.getInfo()
        cost = self._scale * (np.array(self.cost)[columns] - self._penalty)
        if not np.isclose(cost @ value, info.objective_function_value, rtol=_ZERO):
            # HiGHS found a better schedule but returned the known one: start without.
            problem.clearSolver()
            problem.run()
            self._count(problem)
            value, info = np.array(problem.getSolution().col_value), problem.getInfo()
        bound = float(info.mip_dual_bound) / self._scale + self._penalty * self._jobs
        searched = max(1, int(info.mip_node_count))
        return columns[value > 0.5], bound, searched

    def _cliques(self, place: Ints) -> list[Ints]:
        """Return the largest sets of windows that overlap on a node at one moment."""
        some = self.parts.where(place[self.parts.column] >= 0)
        sets = []
        for node in np.unique(some.node).tolist():
            mine = some.where(some.node == node)
            starts, ends = np.unique(mine.start), np.unique(mine.end)
            # A start is the last one before some end, or a later one has more windows.
            following = np.append(starts[1:], np.inf)
            at = np.minimum(np.searchsorted(ends, starts, "right"), len(ends) - 1)
            for covers in _covers(mine, starts[ends[at] <= following]):
                if covers.sum() > 1:
                    sets.append(place[mine.column[covers]])
        return sets


def _scale_of(penalty: float) -> float:
    """Return a power of two, at least 1, that makes a penalty large enough."""
    scale = 1.0
    while penalty * scale < _LEAST_PENALTY:
        scale *= 2
    return scale


def _covers(parts: Parts, times: Floats) -> NDArray[np.bool_]:
    """Return whether each part covers the time that follows each of `times`."""
    covered: NDArray[np.bool_] = (parts.start <= times[:, None]) & (
        times[:, None] < parts.end
    )
    return covered

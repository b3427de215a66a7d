"""Choices of n slots by value at every step: general AEP, MaxQ, DEP, COORD, Lite.

"Optimization of resources selection for jobs scheduling in heterogeneous distributed
computing environments", sections 3.2 and 3.3; "Dependable and coordinated resources
allocation algorithms", sections 3.3, 3.4 and 4. Every step solves the table of eq. (2)
over an integer budget; Lite takes the n cheapest slots instead. As printed, the window
of a group may contain no slot of the group's own performance.

"Slot selection and co-allocation algorithms for economic scheduling in distributed
computing", section 2.1, states the same problem for ragged windows without a solution;
the same table solves it.

Complexity: for each group and step O(a n C) for the a live slots and the budget C; Lite
sorts the live slots. Ragged windows have no groups.
"""

import numpy as np
from numpy.typing import NDArray

from . import aep
from .job import (
    FINITE,
    Found,
    Job,
    compiled,
    exact_total,
    run_signal_handlers,
)
from .square import SlotsByPrice, number_slots

Numbers = NDArray[np.int64]

COLUMN, DEPENDABLE, COORDINATED = range(3)

#: The largest size of the table of eq. (2), which has one column per unit of budget.
MAX_TABLE_BYTES = 2**30


@compiled
def to_budget_units(cost: float, budget: int) -> int:
    """Convert a cost to whole units of money, rounded up; budget + 1 means too much.

    The table needs integers, and the papers do not define the conversion: rounded up,
    costs within C are within the budget. The 1e-9 absorbs the rounding errors of a
    cost.
    """
    return int(min(np.ceil(cost - 1e-9), budget + 1.0))


@compiled
def table_choice(
    values: NDArray[np.float64], costs: Numbers, n: int, budget: int
) -> tuple[float, Numbers]:
    """Solve eq. (2): f[k, j] is the best value of k of the slots so far at cost <= j.

    Misprint: in the papers C_j starts at 1. Here it starts at 0: after a slot that
    costs all of C_j the others must be free, and f(0, k) is their value. The papers
    define f(C_j, 0) = 0 only; f(C_j, k) of no slots is -inf.
    """
    f = np.full((n + 1, budget + 1), -np.inf)
    f[0] = 0.0
    taken = np.zeros((len(values), n + 1, budget + 1), np.bool_)
    for i in range(len(values)):
        run_signal_handlers()
        cost, value = costs[i], values[i]
        if cost > budget:
            continue
        for k in range(min(n, i + 1), 0, -1):
            for j in range(cost, budget + 1):
                better = f[k - 1, j - cost] + value
                if better > f[k, j]:
                    f[k, j] = better
                    taken[i, k, j] = True
    chosen = np.empty(n, np.int64)
    k, j = n, budget
    for i in range(len(values) - 1, -1, -1):  # the backward induction
        if k > 0 and taken[i, k, j]:
            k -= 1
            chosen[k] = i
            j -= costs[i]
    return f[n, budget], chosen


@compiled
def slot_value(
    kind: int, z: float, begin: float, end: float, start: float, length: float
) -> float:
    """Compute the value of a slot for a window; larger is better."""
    if kind == DEPENDABLE:
        return min(start - begin, end - start - length)
    if kind == COORDINATED:
        return -max(start - begin, end - start - length)
    return z


@compiled
def valued_search(
    slots: SlotsByPrice,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    z: NDArray[np.float64],
    groups: NDArray[np.float64],
    lengths: NDArray[np.float64],
    n: int,
    budget: float,
    kind: int,
    lite: bool,
) -> tuple[float, float, float, Numbers]:
    """Sweep each group, fastest first, and keep the first of the best windows.

    The misprints of `square.square_search` are corrected in the same way: f_max starts
    at -inf (COORD's f is never above 0), expired slots are removed before step A, and
    the windows of Lite may cost exactly C.
    """
    best_start, best_length, best_value = 0.0, 0.0, -np.inf  # 1
    best = np.empty(0, np.int64)
    live = np.empty(len(slots.arrival), np.int64)
    for k, performance in enumerate(groups):  # 3
        length = lengths[k]  # 3a
        size = 0  # 3b
        for slot in slots.arrival:  # 3c
            run_signal_handlers()
            if not slots.proper[slot] or slots.performance[slot] < performance:
                continue  # i
            start = slots.start[slot]  # iii
            if start + length > slots.end[slot]:
                continue  # ii
            live[size] = slot  # iv
            size += 1
            kept, slowest = 0, 0
            for candidate in live[:size]:  # v
                if start + length <= slots.end[candidate]:  # B
                    live[kept] = candidate
                    kept += 1
                    if slots.performance[candidate] == performance:
                        slowest += 1
            size = kept
            if slowest == 0 or size < n:
                continue  # A: a faster group has already covered these slots
            window = np.sort(live[:size])  # vi
            if lite:
                window = window[:n]
                if length * exact_total(window, slots.price) > budget:
                    continue
                value = 0.0
                for s in window:
                    value += slot_value(kind, z[s], begin[s], end[s], start, length)
            else:
                values = np.empty(size)
                costs = np.empty(size, np.int64)
                for i, s in enumerate(window):
                    values[i] = slot_value(kind, z[s], begin[s], end[s], start, length)
                    costs[i] = to_budget_units(length * slots.price[s], int(budget))
                value, chosen = table_choice(values, costs, n, int(budget))
                if value == -np.inf:
                    continue
                window = window[chosen]
            if value > best_value:
                best_start, best_length, best_value = start, length, value
                best = window
    return best_start, best_length, best_value, best


@compiled
def ragged_search(
    slots: aep.SlotsByCost, z: NDArray[np.float64], n: int, budget: float
) -> tuple[float, float, Numbers]:
    """Run the scheme of AEP with eq. (2) as getBestWindow; misprints as in `aep`."""
    best_start, best_value, best = 0.0, -np.inf, np.empty(0, np.int64)
    extended = np.empty(len(slots.arrival), np.int64)
    size = 0
    for next_slot in slots.arrival:
        run_signal_handlers()
        if not slots.proper[next_slot]:
            continue
        extended[size] = next_slot
        size += 1
        start = slots.start[next_slot]
        kept = 0
        for slot in extended[:size]:
            if start + slots.length[slot] <= slots.end[slot]:
                extended[kept] = slot
                kept += 1
        size = kept
        if size < n:
            continue
        window = np.sort(extended[:size])
        costs = np.empty(size, np.int64)
        for i, slot in enumerate(window):
            costs[i] = to_budget_units(slots.cost[slot], int(budget))
        value, chosen = table_choice(z[window], costs, n, int(budget))
        if value > best_value:
            best_start, best_value, best = start, value, window[chosen]
    return best_start, best_value, best


def check_table(job: Job, nodes: int) -> None:
    """Raise ValueError unless the table of eq. (2) fits in `MAX_TABLE_BYTES`.

    At a step at most one slot of each node is live. Each cell has eight bytes for the
    value and one byte per live slot.
    """
    if not np.isfinite(job.budget):
        raise ValueError("the published table needs a finite budget, got inf")
    needed = (job.nodes + 1.0) * (job.budget + 1.0) * (8.0 + nodes)
    if needed > MAX_TABLE_BYTES:
        raise ValueError(
            f"the published table of budget {job.budget:g} and {job.nodes} of {nodes} "
            f"nodes takes {needed:.3g} bytes, more than {MAX_TABLE_BYTES:.3g}; count "
            "money in larger units, or use method 'exact'"
        )


def general(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    z: NDArray[np.float64],
) -> Found | None:
    """AEP's general criterion (section 2.1): the ragged window of the largest sum of z.

    The paper minimizes a sum; z is its negative.
    """
    check_table(job, len(np.unique(slots["node"])))
    row, columns = aep.number_slots(slots, proper, job)
    values = z[row].astype(np.float64)
    start, value, window = ragged_search(columns, values, job.nodes, job.budget)
    if len(window) == 0:
        return None
    return Found(float(start), row[np.sort(window)], value=float(value))


def search(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    kind: int,
    z: NDArray[np.float64],
    lite: bool,
) -> Found | None:
    """Number the slots by price, search the groups, and return the window.

    Raises ValueError if the budget is infinite or the table too large.
    """
    if not lite:
        check_table(job, len(np.unique(slots["node"])))
    row, columns, groups = number_slots(slots, proper, job)
    start, length, value, window = valued_search(
        columns,
        slots["start"][row],
        slots["end"][row],
        z[row].astype(np.float64),
        groups,
        job.lengths(groups),
        job.nodes,
        job.max_cost if lite else min(job.budget, FINITE),
        kind,
        lite,
    )
    if len(window) == 0:
        return None
    return Found(float(start), row[np.sort(window)], float(length), float(value))


def max_value(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    z: NDArray[np.float64],
    lite: bool = False,
) -> Found | None:
    """Run MaxQ (2018, section 3.3) for any values z of the slots, or MaxQ Lite."""
    return search(slots, proper, job, COLUMN, z, lite)


def dependable(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    seed: int,
    lite: bool = False,
) -> Found | None:
    """Run DEP (section 3.4): the largest mean distance to the nearest task, or Lite."""
    return search(slots, proper, job, DEPENDABLE, np.zeros(len(slots)), lite)


def coordinated(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    seed: int,
    lite: bool = False,
) -> Found | None:
    """Run COORD (section 3.4): least mean distance to the farthest task, or Lite."""
    return search(slots, proper, job, COORDINATED, np.zeros(len(slots)), lite)

"""A choice of n by value at every step: AEP in general, MaxQ, DEP, COORD, Lite.

"Optimization of resources selection for jobs scheduling in heterogeneous distributed
computing environments", sections 3.2 and 3.3; "Dependable and coordinated resources
allocation algorithms", sections 3.3, 3.4 and 4. At every step the table of eq. (2) over
an integer budget; Lite takes the n cheapest slots instead. As printed, the window of a
group may lack a slot of the group's own performance.

"Slot selection and co-allocation algorithms for economic scheduling in distributed
computing", section 2.1, states the same problem for ragged windows and leaves its
solution open: the same table solves it.

Complexity: for each group and step O(a n C) for the a live slots and the budget C; Lite
sorts them. Ragged windows know no groups.
"""

import numpy as np
from numpy.typing import NDArray

from . import aep
from .job import (
    FINITE,
    Found,
    Interrupted,
    Job,
    compiled,
    exact_total,
    interrupted,
)
from .square import SlotList, numbered

Numbers = NDArray[np.int64]

COLUMN, DEPENDABLE, COORDINATED = range(3)

#: The largest table of eq. (2), which has a column for each unit of the budget.
MOST_BYTES = 2**30


@compiled
def in_units(cost: float, budget: int) -> int:
    """A cost in whole units of money, rounded up; budget + 1 is beyond all means.

    The table needs integers, and the papers do not say how they make them: rounded up,
    costs within C are within the budget. 1e-9 forgives what rounding adds to a cost.
    """
    return int(min(np.ceil(cost - 1e-9), budget + 1.0))


@compiled
def table_choice(
    values: NDArray[np.float64], costs: Numbers, n: int, budget: int
) -> tuple[float, Numbers]:
    """Eq. (2): f[k, j] is the best value of k of the slots so far at cost j or less.

    Misprint: the papers let C_j run from 1. Here it runs from 0: once a slot that
    costs all of C_j is taken, the others must be free, and f(0, k) says what they are
    worth. The papers set f(C_j, 0) = 0 alone; f(C_j, k) of no slots at all is -inf.
    """
    f = np.full((n + 1, budget + 1), -np.inf)
    f[0] = 0.0
    taken = np.zeros((len(values), n + 1, budget + 1), np.bool_)
    for i in range(len(values)):
        if interrupted():
            break  # the caller sees it, too
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
def worth(
    kind: int, z: float, begin: float, end: float, start: float, length: float
) -> float:
    """How much a slot is worth to a window; the more, the better."""
    if kind == DEPENDABLE:
        return min(start - begin, end - start - length)
    if kind == COORDINATED:
        return -max(start - begin, end - start - length)
    return z


@compiled
def valued_search(
    slots: SlotList,
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

    The misprints of `square.square_search` are mended in the same way: f_max begins at
    -inf (COORD's f is never above 0), expired slots leave before A counts, and Lite's
    windows may cost exactly C.
    """
    best_start, best_length, best_value = 0.0, 0.0, -np.inf  # 1
    best = np.empty(0, np.int64)
    live = np.empty(len(slots.arrival), np.int64)
    for k, performance in enumerate(groups):  # 3
        length = lengths[k]  # 3a
        size = 0  # 3b
        for slot in slots.arrival:  # 3c
            if interrupted():
                raise Interrupted
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
                continue  # A: a faster group has had these slots
            window = np.sort(live[:size])  # vi
            if lite:
                window = window[:n]
                if length * exact_total(window, slots.price) > budget:
                    continue
                value = 0.0
                for s in window:
                    value += worth(kind, z[s], begin[s], end[s], start, length)
            else:
                values = np.empty(size)
                costs = np.empty(size, np.int64)
                for i, s in enumerate(window):
                    values[i] = worth(kind, z[s], begin[s], end[s], start, length)
                    costs[i] = in_units(length * slots.price[s], int(budget))
                value, chosen = table_choice(values, costs, n, int(budget))
                if interrupted():
                    raise Interrupted
                if value == -np.inf:
                    continue
                window = window[chosen]
            if value > best_value:
                best_start, best_length, best_value = start, length, value
                best = window
    return best_start, best_length, best_value, best


@compiled
def ragged_search(
    slots: aep.SlotList, z: NDArray[np.float64], n: int, budget: float
) -> tuple[float, float, Numbers]:
    """The scheme of AEP with eq. (2) for getBestWindow; its misprints as in `aep`."""
    best_start, best_value, best = 0.0, -np.inf, np.empty(0, np.int64)
    extended = np.empty(len(slots.arrival), np.int64)
    size = 0
    for next_slot in slots.arrival:
        if interrupted():
            raise Interrupted
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
            costs[i] = in_units(slots.cost[slot], int(budget))
        value, chosen = table_choice(z[window], costs, n, int(budget))
        if interrupted():
            raise Interrupted
        if value > best_value:
            best_start, best_value, best = start, value, window[chosen]
    return best_start, best_value, best


def check_table(job: Job, nodes: int) -> None:
    """Raise ValueError unless the table of eq. (2) fits in `MOST_BYTES`.

    At a step at most one slot of each node is live, and each has an entry of one byte
    beside the eight of the value.
    """
    if not np.isfinite(job.budget):
        raise ValueError("the published table needs a finite budget, got inf")
    needed = (job.nodes + 1.0) * (job.budget + 1.0) * (8.0 + nodes)
    if needed > MOST_BYTES:
        raise ValueError(
            f"the published table of budget {job.budget:g} and {job.nodes} of {nodes} "
            f"nodes takes {needed:.3g} bytes, more than {MOST_BYTES:.3g}; count money "
            "in larger units, or use method 'exact'"
        )


def general(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    z: NDArray[np.float64],
) -> Found | None:
    """AEP's general criterion (section 2.1): the ragged window of the largest sum of z.

    The paper minimizes; minus its z is z here.
    """
    check_table(job, len(np.unique(slots["node"])))
    row, columns = aep.numbered(slots, proper, job)
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
    """Number the slots by price, search the groups, and tell the window.

    Raises ValueError if the budget is infinite or the table too large.
    """
    if not lite:
        check_table(job, len(np.unique(slots["node"])))
    row, columns, groups = numbered(slots, proper, job)
    start, length, value, window = valued_search(
        columns,
        slots["start"][row],
        slots["end"][row],
        z[row].astype(np.float64),
        groups,
        job.lengths(groups),
        job.nodes,
        job.most if lite else min(job.budget, FINITE),
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
    """MaxQ (2018, section 3.3) for any values z of the slots, or MaxQ Lite."""
    return search(slots, proper, job, COLUMN, z, lite)


def dependable(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    seed: int,
    lite: bool = False,
) -> Found | None:
    """DEP (section 3.4): the largest mean distance to the nearest task, or DEP Lite."""
    return search(slots, proper, job, DEPENDABLE, np.zeros(len(slots)), lite)


def coordinated(
    slots: NDArray[np.void],
    proper: NDArray[np.bool_],
    job: Job,
    seed: int,
    lite: bool = False,
) -> Found | None:
    """COORD (section 3.4): the smallest mean distance to the farthest task, or Lite."""
    return search(slots, proper, job, COORDINATED, np.zeros(len(slots)), lite)

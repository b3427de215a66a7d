"""The general square window search and its FirstFit, MinFinish, MinRuntime, MinCost.

"Optimization of resources selection for jobs scheduling in heterogeneous distributed
computing environments", section 3.2. All parts of a window start and finish together.
The comments give the step labels of the paper's list.

Complexity: linear in the slots for each group (one per different performance); each
step sorts the live slots of the group, at most one per node.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .job import (
    Found,
    Job,
    compiled,
    exact_total,
    rank_slots,
    run_signal_handlers,
)

Numbers = NDArray[np.int64]

START, FINISH, RUNTIME, COST = range(4)


class SlotsByPrice(NamedTuple):
    """The slots available as columns, numbered by (price, node): cheapest first."""

    arrival: Numbers  # the numbers by non-decreasing start
    proper: NDArray[np.bool_]  # satisfies the user's requirements
    start: NDArray[np.float64]  # not before the earliest start of the job
    end: NDArray[np.float64]  # not after its deadline
    performance: NDArray[np.float64]
    price: NDArray[np.float64]


@compiled
def window_cost(window: Numbers, length: float, slots: SlotsByPrice) -> float:
    """Cost of reserving every slot of the window for `length`."""
    return length * exact_total(window, slots.price)


@compiled
def window_value(start: float, length: float, cost: float, criterion: int) -> float:
    """Compute the value of a window: -f of the paper, so smaller is better."""
    if criterion == FINISH:
        return start + length
    if criterion == RUNTIME:
        return length
    if criterion == COST:
        return cost
    return start


@compiled
def square_search(
    slots: SlotsByPrice,
    groups: NDArray[np.float64],
    lengths: NDArray[np.float64],
    n: int,
    budget: float,
    criterion: int,
) -> tuple[float, Numbers]:
    """Sweep each group, fastest first, and keep the first of the best windows.

    Misprint: step 1 sets f_max = 0, but f = -(start + T) and the like are never above
    0, so nothing would be found. Here the first feasible window is accepted.

    Misprint: step v.A looks for a slot of the group's own performance among slots that
    v.B has yet to remove. Here the expired slots are removed first: without a live slot
    of this performance a faster group has had this choice, which is the purpose of A.

    Misprint: step vi requires a total cost C_i < C. Here a window may cost exactly C,
    as in the restriction of eq. (1).
    """
    best_start, best_value, best = 0.0, np.inf, np.empty(0, np.int64)  # 1
    window_slots = np.empty(len(slots.arrival), np.int64)
    for k, performance in enumerate(groups):  # 3
        length = lengths[k]  # 3a
        size = 0  # 3b
        for slot in slots.arrival:  # 3c
            run_signal_handlers()
            if not slots.proper[slot] or slots.performance[slot] < performance:
                continue  # i; slots of slower nodes are not in this group
            start = slots.start[slot]  # iii
            if start + length > slots.end[slot]:
                continue  # ii
            window_slots[size] = slot  # iv
            size += 1
            kept, slowest = 0, 0
            for candidate in window_slots[:size]:  # v
                if start + length <= slots.end[candidate]:  # B
                    window_slots[kept] = candidate
                    kept += 1
                    if slots.performance[candidate] == performance:
                        slowest += 1
            size = kept
            if slowest == 0:
                continue  # A: a faster group has already covered these slots
            if size >= n:  # vi
                window = np.sort(window_slots[:size])[:n]
                cost = window_cost(window, length, slots)
                if cost <= budget:
                    value = window_value(start, length, cost, criterion)
                    if len(best) == 0 or value < best_value:
                        best_start, best_value, best = start, value, window
    return best_start, best


def number_slots(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job
) -> tuple[Numbers, SlotsByPrice, NDArray[np.float64]]:
    """Number the slots by price; returns row of each number, columns and groups."""
    row, arrival = rank_slots(slots, slots["price"])
    columns = SlotsByPrice(
        arrival,
        proper[row],
        np.maximum(slots["start"][row], job.earliest),
        np.minimum(slots["end"][row], job.deadline),
        slots["performance"][row],
        slots["price"][row],
    )
    groups = np.unique(slots["performance"][proper])[::-1].copy()  # 2
    return row, columns, groups


def search(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, criterion: int
) -> Found | None:
    """Search the groups and return the rows of the window."""
    row, columns, groups = number_slots(slots, proper, job)
    start, window = square_search(
        columns,
        groups,
        job.lengths(groups),
        job.nodes,
        job.max_cost,
        criterion,
    )
    return Found(float(start), row[window]) if len(window) else None


def first_fit(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Find the window that starts first in any group, ties to the fastest group.

    Misprint: section 4.2 "returns first suitable and affordable window found". Read as
    the first group in which a window fits, this contradicts the mean start of 0 that
    section 4.2 reports; here it is the least start of all groups.
    """
    return search(slots, proper, job, START)


def min_finish(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Find the window that finishes first (section 3.3): the n cheapest of a step."""
    return search(slots, proper, job, FINISH)


def min_runtime(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Find the shortest window: the n cheapest of a step, valued by the length."""
    return search(slots, proper, job, RUNTIME)


def min_cost(
    slots: NDArray[np.void], proper: NDArray[np.bool_], job: Job, seed: int
) -> Found | None:
    """Find the window of least cost (section 3.3): the n cheapest of each step."""
    return search(slots, proper, job, COST)
